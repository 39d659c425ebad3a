"""Functions that catch a refusal and go on: the result has the whole derivative, or the call raises."""

import contextlib
import struct
from array import array
from itertools import product

import numpy as np
import pytest
from helpers import differences
from scipy.linalg.blas import dnrm2

from funcgrad import as_written, checkpoint, grad, hessian, jvp, vmap
from funcgrad.errors import ConversionError


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
