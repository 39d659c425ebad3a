"""Functions that catch a refusal and go on: the result has the whole derivative, or the call raises."""

import contextlib
import struct
from array import array
from itertools import product

import jax
import numpy as np
import pytest
from helpers import differences
from scipy.linalg.blas import dnrm2

from funcgrad import as_written, checkpoint, grad, hessian, jvp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, StagingError
from funcgrad.interop import jit, to_jax


def distance(x):
    """Compiled, of plain numbers: the distance to the next of 0 and 1."""
    return min(dnrm2(np.array([float(x)])), dnrm2(np.array([float(x) - 1.0]))) + 0.0


def nearest(x):
    return min(dnrm2(np.array([x])), dnrm2(np.array([x - 1.0])))


def packed(x):
    return struct.unpack("d", struct.pack("d", x))[0]


def of_c(x):
    return array("d", [x])[0]


ASKING = {"compiled": nearest, "struct": packed, "array": of_c, "numbers": distance}


def excepted(ask, x, otherwise):
    try:
        v = ask(x)
    except Exception:
        v = otherwise(x)
    return v


def suppressed(ask, x, otherwise):
    v = otherwise(x)
    with contextlib.suppress(Exception):
        v = ask(x)
    return v


def returned(ask, x, otherwise):
    try:
        return ask(x)
    except TypeError:
        return otherwise(x)


def finished(ask, x, otherwise):
    v = otherwise(x)
    try:
        v = ask(x)
    finally:
        return v  # noqa: B012


def twice(ask, x, otherwise):
    try:
        try:
            v = ask(x)
        except TypeError as error:
            raise ValueError("again") from error
    except ValueError:
        v = otherwise(x)
    return v


CATCHING = (excepted, suppressed, returned, finished, twice)
OTHERWISE = {"number": lambda x: 7.0, "nothing": lambda x: 0.0, "other value": lambda x: x * x, "argument": lambda x: x}
USING = {
    "product": lambda v, x: v * x,
    "sum": lambda v, x: v + x**2,
    "alone": lambda v, x: v,
    "branch": lambda v, x: x if v > 0.25 else x**3,
    "list": lambda v, x: sum([v, x, v * x]),
}
CASES = [(*names, catch) for *names, catch in product(ASKING, OTHERWISE, USING, CATCHING)]


@pytest.mark.parametrize("asking", ASKING)
def test_the_derivative_is_whole_or_the_call_raises(asking):
    outcomes = set()
    for name, otherwise, using, catch in CASES:
        if name != asking:
            continue
        ask, other, use = ASKING[name], OTHERWISE[otherwise], USING[using]

        def f(x, ask=ask, other=other, use=use, catch=catch):
            return use(catch(ask, x, other), x)

        expected = differences(f, 0.3)
        for call in (lambda: grad(f)(0.3), lambda: jvp(f, (0.3,), (1.0,))[1], lambda: grad(checkpoint(f))(0.3)):
            try:
                assert call() == pytest.approx(expected, rel=1e-7), (name, otherwise, using, catch.__name__)
                outcomes.add("whole")
            except (ConversionError, struct.error):
                outcomes.add("raises")
        with as_written():
            try:
                assert grad(f)(0.3) == pytest.approx(expected, rel=1e-7), (name, otherwise, using, catch.__name__)
            except (ConversionError, struct.error):
                outcomes.add("raises")
    assert outcomes == {"whole", "raises"}


def fallback(x):
    try:
        d = nearest(x)
    except Exception:
        d = np.minimum(np.abs(x), np.abs(x - 1.0))
    return d * x


def test_another_way_to_the_same_number_is_taken():
    assert grad(fallback)(0.3) == pytest.approx(0.6)
    assert hessian(fallback)(0.3) == pytest.approx(2.0)
    with pytest.raises(ConversionError, match="went on"), as_written():
        grad(fallback)(0.3)
    with pytest.raises(ConversionError, match="went on"):  # it cannot be compared for each example
        vmap(grad(fallback))(np.array([0.3, 0.4]))


def branch(x):
    return x[0] if x[0] > 0 else -x[0]


def selected(x):
    return x[x > 0].sum()


def counted(x):
    return [1.0, 2.0, 3.0][int(abs(x[1]))] * x[0]


def repeated(x):
    return sum(x[0] for _ in range(int(x[1] > 1) + 1))


UNANSWERED = [branch, selected, counted, repeated]
EXAMPLES = np.array([[0.7, 1.3], [-0.4, 0.5]])


@pytest.mark.parametrize("way", [excepted, suppressed])
@pytest.mark.parametrize("ask", UNANSWERED)
def test_questions_that_have_no_one_answer(ask, way):
    """A function of a batch, or one that is compiled, does not go on in the way that it takes after an error."""
    f = lambda x: way(ask, x, lambda x: 7.0 * x[1])
    for run in (vmap(f), vmap(grad(f)), jit(vmap(f))):
        with pytest.raises((ConversionError, StagingError, ConcretizationError), match=r"asked|known|depends on"):
            run(EXAMPLES)
    for run in (jit(f), jit(grad(f)), jax.jit(to_jax(f))):
        with pytest.raises((ConversionError, StagingError), match="known"):
            run(EXAMPLES[0])
    assert f(EXAMPLES[0]) == ask(EXAMPLES[0])
    assert grad(f)(EXAMPLES[0]) == pytest.approx(differences(ask, EXAMPLES[0]))


def test_integers_of_values_that_are_not_known():
    f = lambda x: int(x[1]) * x[0]
    assert jit(f)(EXAMPLES[0]) == pytest.approx(0.7)
    assert jit(grad(f))(EXAMPLES[0]) == pytest.approx([1.0, 0.0])
