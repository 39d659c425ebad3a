"""Functions that catch a refusal and go on: the result has the whole derivative, or the call raises."""

import contextlib
import io
import json
import math
import operator
import struct
import warnings
from array import array
from decimal import Decimal
from fractions import Fraction
from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from helpers import differences
from scipy.linalg.blas import dasum

from funcgrad import as_written, checkpoint, grad, hessian, jvp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, StagingError
from funcgrad.interop import jit, to_jax


def distance(x):
    """Compute with compiled code and plain numbers the distance to the nearer of 0 and 1."""
    return min(dasum(np.array([float(x)])), dasum(np.array([float(x) - 1.0]))) + 0.0


def nearest(x):
    return min(dasum(np.array([x])), dasum(np.array([x - 1.0])))


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


#: A ``return`` in ``finally``, of which the compiler warns since Python 3.14.
FINISHED = """
def finished(ask, x, otherwise):
    v = otherwise(x)
    try:
        v = ask(x)
    finally:
        return v
"""
with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
    exec(FINISHED)


def twice(ask, x, otherwise):
    try:
        try:
            v = ask(x)
        except TypeError as error:
            raise ValueError("again") from error
    except ValueError:
        v = otherwise(x)
    return v


CATCHING = (excepted, suppressed, returned, finished, twice)  # noqa: F821
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
def test_caught_refusal_gives_full_derivative_or_raises(asking):
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


def of_key(x):
    return next(iter({x: 1.0}))


READING = {
    "few digits": lambda x: float(f"{x:.3f}"),
    "joined text": lambda x: float(f"{x:.17g}0"),
    "array of texts": lambda x: np.array([f"{x:.17g}"], dtype=float)[0],
    "decimal": lambda x: float(Decimal(f"{x:.17g}")),
    "fraction": lambda x: float(Fraction(x)),
    "json": lambda x: json.loads(f"[{x:.17g}]")[0],
    "file in memory": lambda x: np.loadtxt(io.StringIO(f"{x:.17g} 2"))[0],
    "bytes in memory": lambda x: np.genfromtxt(io.BytesIO(f"1,{x:.17g}".encode()), delimiter=",")[1],
    "lines": lambda x: np.loadtxt(line for line in [f"{x:.17g} 2"])[0],
    "json file": lambda x: json.load(io.StringIO(f'{{"a": {x:.17g}}}'))["a"],
    "table": lambda x: pd.read_csv(io.StringIO(f"a,b\n{x:.17g},2"))["a"].astype(float)[0],
    "key": of_key,
    "hex": lambda x: float.fromhex(x.hex()),
    "ratio": lambda x: operator.truediv(*x.as_integer_ratio()),
}


@pytest.mark.parametrize("way", [excepted, suppressed])
@pytest.mark.parametrize("asking", READING)
def test_caught_refusal_of_text_conversion_raises(asking, way):
    """Check that a function that catches the refusal does not go on with another number."""
    f = lambda x: x * way(READING[asking], x, lambda x: 7.0)
    assert f(0.25) == 0.0625
    for run in (grad(f), lambda x: jvp(f, (x,), (1.0,)), lambda x: vmap(f)(np.array([x, 0.5]))):
        texts = "text shows a traced number|lose the|traced number cannot be a key|one text was asked for"
        with pytest.raises(ConversionError, match=texts):
            run(0.25)


def test_tables_in_memory_may_hold_digits_that_were_shown():
    def f(x):
        shown.append(f"{x:.1f}")
        return np.loadtxt(io.StringIO("0.35 10.3\n0.311 2")).sum() * math.sin(x)

    shown = []
    assert grad(f)(0.3) == pytest.approx(12.961 * math.cos(0.3))
    assert shown[-1] == "0.3"


WHOLE = {"format": "{:.17g}".format, "repr": repr, "str": str, "percent": lambda x: "%.17g" % x}  # noqa: UP031


@pytest.mark.parametrize("shown", WHOLE)
@pytest.mark.parametrize("way", [excepted, suppressed])
def test_full_precision_texts_in_batch(shown, way):
    f = lambda x: x * way(lambda x: float(WHOLE[shown](x)), x, lambda x: 7.0)
    xs = np.array([0.1, 0.7])
    np.testing.assert_array_equal(vmap(f)(xs), xs * xs)
    np.testing.assert_allclose(vmap(grad(f))(xs), 2 * xs)
    assert grad(f)(0.7) == pytest.approx(1.4)


def test_integers_read_from_batched_texts():
    f = lambda x: x * excepted(lambda x: int(f"{10 * x:.0f}"), x, lambda x: 0)
    assert grad(f)(0.3) == 3.0
    with pytest.raises(ConversionError, match="text shows a traced number"):
        vmap(f)(np.array([0.3, 0.4]))


def test_float_methods_missing_on_arrays():
    kind = lambda x: 1.0 if hasattr(x, "hex") and hasattr(x, "as_integer_ratio") else 2.0
    assert grad(lambda x: kind(x) * x)(0.5) == 1.0
    np.testing.assert_array_equal(grad(lambda x: np.sum(kind(x) * x))(np.ones(2)), [2.0, 2.0])


def fallback(x):
    try:
        d = nearest(x)
    except Exception:
        d = np.minimum(np.abs(x), np.abs(x - 1.0))
    return d * x


def test_fallback_to_equal_value_is_accepted():
    assert grad(fallback)(0.3) == pytest.approx(0.6)
    assert hessian(fallback)(0.3) == pytest.approx(2.0)
    with pytest.raises(ConversionError, match="continued after this error"), as_written():
        grad(fallback)(0.3)
    with pytest.raises(ConversionError, match="continued after this error"):  # no comparison for each example
        vmap(grad(fallback))(np.array([0.3, 0.4]))


def branch(x):
    return x[0] if x[0] > 0 else -x[0]


def selected(x):
    return np.sort(x[x > 0]).sum()


def counted(x):
    return [1.0, 2.0, 3.0][int(abs(x[1]))] * x[0]


def repeated(x):
    return sum(x[0] for _ in range(int(x[1] > 1) + 1))


UNANSWERED = [branch, selected, counted, repeated]
EXAMPLES = np.array([[0.7, 1.3], [-0.4, 0.5]])


@pytest.mark.parametrize("way", [excepted, suppressed])
@pytest.mark.parametrize("ask", UNANSWERED)
def test_caught_branch_error_in_batch_raises(ask, way):
    """Check that in a batch, or compiled, a function that catches the error of a request raises instead of going on."""
    f = lambda x: way(ask, x, lambda x: 7.0 * x[1])
    compiled = [] if ask is branch else [jit(vmap(f))]
    for run in (vmap(f), vmap(grad(f)), *compiled):
        with pytest.raises((ConversionError, StagingError, ConcretizationError), match=r"asked|known|depends on"):
            run(EXAMPLES)
    if ask is branch:  # compiled functions follow the branch
        assert jit(f)(EXAMPLES[0]) == ask(EXAMPLES[0])
        assert jit(vmap(f))(EXAMPLES).tolist() == [ask(x) for x in EXAMPLES]
        assert float(jax.jit(to_jax(f))(EXAMPLES[0])) == pytest.approx(ask(EXAMPLES[0]))
    for run in [] if ask is branch else [jax.jit(to_jax(f)), jit(f), jit(grad(f))]:
        with pytest.raises((ConversionError, StagingError), match="known"):
            run(EXAMPLES[0])
    assert f(EXAMPLES[0]) == ask(EXAMPLES[0])
    assert grad(f)(EXAMPLES[0]) == pytest.approx(differences(ask, EXAMPLES[0]))


def test_int_of_abstract_values():
    f = lambda x: int(x[1]) * x[0]
    assert jit(f)(EXAMPLES[0]) == pytest.approx(0.7)
    assert jit(grad(f))(EXAMPLES[0]) == pytest.approx([1.0, 0.0])


def test_error_of_code_that_caught_a_refusal_shows_the_refusal():
    def digits(x):
        try:
            number = array("d", [x])[0]
        except TypeError:
            number = math.nan
        return int(number)

    with pytest.raises(ValueError, match="cannot convert float NaN") as caught:
        grad(lambda x: digits(x) * x)(2.0)
    assert "code caught this error: float(x): converting a traced value" in caught.value.__notes__[-1]
