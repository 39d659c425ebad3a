"""Narrow, unsigned or real constants combined with differentiated values count as the same numbers in double."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as theirs

import funcgrad.numpy as fnp
import funcgrad.scipy.special as special
from funcgrad import grad, jvp, vjp, vmap

OPERATIONS = {
    f"{module.__name__.removeprefix('funcgrad.')}.{name}": (getattr(module, name), ufunc.nin)
    for module, reference in ((fnp, np), (special, theirs))
    for name, ufunc in vars(reference).items()
    if isinstance(ufunc, np.ufunc) and 2 <= ufunc.nin <= 4 and ufunc.signature is None and hasattr(module, name)
}
VALUES = [(1, 2, 3, 1), (2, 3, 2, 3), (0, 1, 2, 1), (5, 7, 3, 2)]
CONSTANTS = {dtype.__name__: lambda v, dtype=dtype: np.full(2, v, dtype) for dtype in (np.int8, np.uint8, np.bool_)}
CONSTANTS |= {"int16": lambda v: np.full(2, v, np.int16), "uint64": lambda v: np.full(2, v, np.uint64)}
CONSTANTS |= {"Python's int": int, "Python's float": float, "Python's bool": bool}


def derivatives(fun, x, values, position, constant):
    """Return result, cotangent and tangent, or None if the result has no derivative."""
    args = [constant(v) for v in values]

    def of(x):
        return fun(*args[:position], x, *args[position + 1 :])

    out, pullback = vjp(of, x)
    if isinstance(out, tuple) or out.dtype.kind not in "fc":
        return None
    return out, pullback(np.ones_like(out))[0], jvp(of, (x,), (np.ones_like(x),))[1]


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore::DeprecationWarning"
)  # SciPy's, for numbers that are not integers
@pytest.mark.parametrize("name", OPERATIONS)
def test_narrow_constants_equal_double_constants(name):
    fun, arity = OPERATIONS[name]
    with np.errstate(all="ignore"):
        for dtype, tolerance, tried in ((np.float64, 1e-9, VALUES), (np.float32, 1e-4, VALUES[:2])):
            for values in tried:
                for position in range(arity):
                    compare(fun, np.full(2, values[position] * 0.37 + 0.1, dtype), values[:arity], position, tolerance)


def compare(fun, x, values, position, tolerance):
    floating = functools.cache(lambda values: derivatives(fun, x, values, position, lambda v: np.full(2, v, x.dtype)))
    for name, constant in CONSTANTS.items():
        try:
            want = floating(tuple(float(np.max(constant(v))) for v in values))  # cached: most constants coincide
            theirs = fun(*[x if i == position else constant(v) for i, v in enumerate(values)])
        except (TypeError, ValueError):  # no derivative exists, or integers are required or refused
            continue
        if want is None or not np.allclose(theirs, want[0], tolerance) or np.isnan(want[1]).any():
            continue
        got = derivatives(fun, x, values, position, constant)
        assert got[1].dtype == x.dtype, (name, values, position)
        for mine, exact in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine, exact, tolerance, tolerance, err_msg=f"{name}, {values}, {position}")


def test_unsigned_constants_in_a_batch():
    delta, x = np.array([3, 2], np.uint8), np.array([-0.84, 4.0])
    np.testing.assert_allclose(vmap(grad(special.huber, 1))(delta, x), [-0.84, 2.0])
    np.testing.assert_allclose(grad(lambda x: fnp.sum(special.rel_entr(delta, x)))(x), -delta.astype(float) / x)


@pytest.mark.parametrize("base", [-0.5, -2, np.float32(-2), np.int8(-3), np.array(-1.5), True])
def test_complex_powers_of_negative_numbers(base):
    y = np.complex128(1 + 2j)
    want = jax.grad(lambda y: jnp.asarray(base, float) ** y, holomorphic=True)(y)
    np.testing.assert_allclose(grad(lambda y: fnp.power(base, y), holomorphic=True)(y), want, 1e-7)
    np.testing.assert_allclose(jvp(lambda y: base**y, (np.array([y]),), (np.ones(1, complex),))[1], [want], 1e-7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_constants_beside_doubles(dtype):
    few, many = np.array([0.3, 1.7], dtype), np.array([1.5, 2.5])
    functions = {
        "exponent": lambda x, few: few**x,
        "base": lambda x, few: x**few,
        "coefficients": lambda x, few: fnp.polyval(x, few),
        "series": lambda x, few: fnp.polynomial.chebyshev.chebval(few, x),
        "argument": lambda x, few: fnp.polynomial.polynomial.polyval(x, few),
        "points": lambda x, few: fnp.polyval(few, x),
    }
    for name, fun in functions.items():
        want = vjp(lambda x, fun=fun: fun(x, few.astype(float)), many)[1](many)[0]
        got = vjp(lambda x, fun=fun: fun(x, few), many)[1](many)[0]
        np.testing.assert_allclose(got, want, 1e-14, err_msg=name)
