"""Elementwise operations at their kinks, poles and limits, on branch cuts and at extreme arguments.

The conventions are JAX's; the tests compare with JAX at every point except where JAX is known to be wrong.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import in_one_test

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError
from funcgrad.numpy.ufuncs import UFUNCS

INF, NAN, PI = math.inf, math.nan, math.pi

# Function, arguments, and the derivative in each argument; the same in both modes and in JAX.
KINKS = [
    ("absolute", (0.0,), (1.0,)),
    ("absolute", (-0.0,), (1.0,)),
    ("absolute", (-INF,), (-1.0,)),
    ("absolute", (NAN,), (-1.0,)),
    ("fabs", (0.0,), (1.0,)),
    ("sign", (0.0,), (0.0,)),
    ("copysign", (0.0, 1.0), (1.0, 0.0)),
    ("copysign", (-0.0, 1.0), (1.0, 0.0)),
    ("copysign", (0.0, -1.0), (-1.0, 0.0)),
    ("copysign", (2.0, -0.0), (-1.0, 0.0)),
    ("copysign", (-2.0, 3.0), (-1.0, 0.0)),
    ("heaviside", (0.0, 0.5), (0.0, 1.0)),
    ("heaviside", (1.0, 0.5), (0.0, 0.0)),
    ("maximum", (2.0, 2.0), (0.5, 0.5)),
    ("maximum", (0.0, -0.0), (0.5, 0.5)),
    ("maximum", (INF, INF), (0.5, 0.5)),
    ("maximum", (NAN, 2.0), (0.0, 0.0)),
    ("maximum", (2.0, NAN), (0.0, 0.0)),
    ("minimum", (2.0, 2.0), (0.5, 0.5)),
    ("minimum", (NAN, 2.0), (0.0, 0.0)),
    ("minimum", (2.0, NAN), (0.0, 0.0)),
    ("fmax", (2.0, 2.0), (0.0, 1.0)),
    ("fmax", (NAN, 2.0), (0.0, 1.0)),
    ("fmax", (2.0, NAN), (1.0, 0.0)),
    ("fmax", (NAN, NAN), (1.0, 0.0)),
    ("fmin", (2.0, 2.0), (0.0, 1.0)),
    ("fmin", (NAN, 2.0), (0.0, 1.0)),
    ("fmin", (2.0, NAN), (1.0, 0.0)),
    ("clip", (1.0, 1.0, 2.0), (0.5, 0.5, 0.0)),
    ("clip", (2.0, 1.0, 2.0), (0.5, 0.0, 0.5)),
    ("clip", (1.0, 1.0, 1.0), (0.25, 0.25, 0.5)),
    ("clip", (0.0, 1.0, 2.0), (0.0, 1.0, 0.0)),
    ("clip", (3.0, 1.0, 2.0), (0.0, 0.0, 1.0)),
    ("clip", (1.5, 2.0, 1.0), (0.0, 0.0, 1.0)),
    ("clip", (NAN, 1.0, 2.0), (0.0, 0.0, 0.0)),
    ("hypot", (0.0, 0.0), (0.5, 0.5)),
    ("hypot", (0.0, 1.0), (0.0, 1.0)),
    ("arctan2", (0.0, 0.0), (NAN, NAN)),
    ("arctan2", (0.0, -1.0), (-1.0, 0.0)),
    ("logaddexp", (0.0, 0.0), (0.5, 0.5)),
    ("logaddexp", (1.0, -INF), (1.0, 0.0)),
    ("logaddexp", (-INF, 1.0), (0.0, 1.0)),
    ("logaddexp", (1000.0, 0.0), (1.0, 0.0)),
    ("logaddexp2", (0.0, 0.0), (0.5, 0.5)),
    ("logaddexp2", (-INF, 1.0), (0.0, 1.0)),
    ("remainder", (7.0, 3.0), (1.0, -2.0)),
    ("remainder", (-7.0, 3.0), (1.0, 3.0)),
    ("remainder", (6.0, 3.0), (1.0, -2.0)),
    ("remainder", (7.0, -3.0), (1.0, 3.0)),
    ("fmod", (-7.0, 3.0), (1.0, 2.0)),
    ("fmod", (6.0, 3.0), (1.0, -2.0)),
    ("floor_divide", (6.0, 3.0), (0.0, 0.0)),
    ("floor", (1.0,), (0.0,)),
    ("ceil", (1.0,), (0.0,)),
    ("trunc", (1.0,), (0.0,)),
    ("rint", (0.5,), (0.0,)),
    ("round", (0.5,), (0.0,)),
    ("sinc", (0.0,), (0.0,)),
    ("sqrt", (0.0,), (INF,)),
    ("cbrt", (0.0,), (INF,)),
    ("log", (0.0,), (INF,)),
    ("log2", (0.0,), (INF,)),
    ("log10", (0.0,), (INF,)),
    ("log1p", (-1.0,), (INF,)),
    ("reciprocal", (0.0,), (-INF,)),
    ("arcsin", (1.0,), (INF,)),
    ("arcsin", (-1.0,), (INF,)),
    ("arccos", (1.0,), (-INF,)),
    ("arccosh", (1.0,), (INF,)),
    ("arctanh", (1.0,), (INF,)),
    ("arctanh", (-1.0,), (INF,)),
    ("nan_to_num", (NAN,), (0.0,)),
    ("nan_to_num", (INF,), (0.0,)),
    ("nan_to_num", (-INF,), (0.0,)),
    ("nan_to_num", (1.0,), (1.0,)),
    ("power", (0.0, 1.0), (1.0, 0.0)),
    ("power", (0.0, 2.0), (0.0, 0.0)),
    ("power", (0.0, 0.5), (INF, 0.0)),
    ("power", (0.0, -1.0), (-INF, NAN)),
    ("power", (-2.0, 3.0), (12.0, NAN)),
    ("power", (2.0, 0.0), (0.0, math.log(2.0))),
    ("power", (INF, 0.0), (0.0, INF)),
    ("float_power", (0.0, 2.0), (0.0, 0.0)),
]

# The same columns, where JAX has no derivative, a wrong one, or one that depends on the mode.
OWN = [
    ("power", (0.0, 0.0), (0.0, NAN)),  # x**0 has the derivative 0, 0**y jumps and has none
    ("heaviside", (NAN, 0.5), (0.0, 0.0)),
    ("logaddexp", (INF, 1.0), (1.0, 0.0)),
    ("logaddexp2", (INF, 1.0), (1.0, 0.0)),
    ("logaddexp", (-INF, -INF), (0.0, 0.0)),
    ("logaddexp2", (-INF, -INF), (0.0, 0.0)),
    ("divide", (1.0, 0.0), (INF, -INF)),
    ("divide", (0.0, 0.0), (INF, NAN)),
    ("remainder", (7.0, 0.0), (1.0, -INF)),
    ("angle", (-1.0,), (0.0,)),
    ("angle", (0.0,), (0.0,)),
    ("spacing", (1.0,), (0.0,)),
    ("nextafter", (1.0, 2.0), (1.0, 0.0)),
    ("nextafter", (1.0, 1.0), (1.0, 0.0)),
]

SECOND = [
    (fnp.absolute, 0.0, 0.0),
    (fnp.fabs, 0.0, 0.0),
    (lambda x: fnp.maximum(x, 2.0), 2.0, 0.0),
    (lambda x: fnp.clip(x, 1.0, 2.0), 1.0, 0.0),
    (lambda x: fnp.hypot(x, 0.0), 0.0, 0.0),
    (lambda x: fnp.hypot(x, 1.0), 0.0, 1.0),
    (fnp.sinc, 0.0, -(PI**2) / 3),
    (lambda x: fnp.logaddexp(x, 0.0), 0.0, 0.25),
    (lambda x: fnp.logaddexp(x, -INF), 1.0, 0.0),
    (lambda x: fnp.power(x, 0), 0.0, 0.0),
    (lambda x: fnp.power(x, 0.0), 0.0, 0.0),
    (lambda x: fnp.power(x, 1), 0.0, 0.0),
    (lambda x: fnp.power(x, 1.0), 0.0, 0.0),
    (lambda x: fnp.power(x, 2), 0.0, 2.0),
    (lambda x: fnp.power(x, 2.0), 0.0, 2.0),
    (lambda x: fnp.power(x, 3), 0.0, 0.0),
    (lambda x: fnp.power(x, np.array(1.0)), 0.0, 0.0),
    (lambda x: fnp.power(x, np.array(2.0)), 0.0, 2.0),
    (fnp.sqrt, 0.0, -INF),
    (fnp.cbrt, 0.0, -INF),
    (fnp.log, 0.0, -INF),
    (fnp.reciprocal, 0.0, INF),
    (fnp.arccosh, 1.0, -INF),
]

# Function, argument, derivative: no overflow, no NaN, no loss of digits (and no warning, which would be an error).
EXTREMES = [
    (fnp.tanh, 1e4, 0.0),
    (fnp.tanh, -1e308, 0.0),
    (fnp.expm1, -800.0, 0.0),
    (fnp.expm1, -40.0, math.exp(-40.0)),
    (fnp.expm1, 1e-300, 1.0),
    (fnp.log1p, 1e300, 1e-300),
    (fnp.log1p, -1 + 2.0**-53, 2.0**53),
    (fnp.log, 1e-308, 1e308),
    (fnp.log10, 1e308, 1e-308 / math.log(10)),
    (fnp.sqrt, 1e-320, 0.5 / math.sqrt(1e-320)),
    (fnp.arctan, 1e200, 0.0),
    (fnp.arctan, 1e150, 1e-300),
    (fnp.arcsinh, -1e200, 1e-200),
    (fnp.arccosh, 1e200, 1e-200),
    (fnp.arccosh, 1 + 2.0**-52, 2.0**25.5),
    (fnp.arcsin, 1 - 2.0**-53, 2.0**26),
    (fnp.arctanh, 1 - 2.0**-53, 2.0**52),
    (lambda x: fnp.hypot(x, 1e200), 1e200, math.sqrt(0.5)),
    (lambda x: fnp.hypot(x, 1e-200), 1e-200, math.sqrt(0.5)),
    (lambda x: fnp.arctan2(x, 1e200), 1e200, 5e-201),
    (lambda x: fnp.arctan2(x, 1e-200), 1e-200, 5e199),
    (lambda x: fnp.logaddexp(x, 0.0), 1e308, 1.0),
    (lambda x: fnp.logaddexp(x, 0.0), -1e308, 0.0),
    (lambda x: fnp.logaddexp(x, 1e8), 1e8, 0.5),
    (lambda x: fnp.logaddexp2(x, 0.0), -1000.0, 2.0**-1000),
    (lambda x: fnp.divide(1e300, x), 1e300, -1e-300),
    (lambda x: fnp.divide(1e-300, x), 1e-150, -1.0),
    (fnp.sinc, 1e-9, -(PI**2) / 3 * 1e-9),
    (fnp.sinc, 1e-200, -(PI**2) / 3 * 1e-200),
]


def reverse(fun, *args):
    out, pullback = vjp(fun, *args)
    return pullback(np.ones_like(out))


def forward(fun, *args):
    def along(i):
        return jvp(lambda x: fun(*args[:i], x, *args[i + 1 :]), (args[i],), (1.0,))[1]

    return tuple(along(i) for i in range(len(args)))


def theirs(fun, *args):
    def along(i):
        return jax.grad(lambda x: fun(*args[:i], x, *args[i + 1 :]))(args[i])

    return tuple(along(i) for i in range(len(args)))


def label(value):
    return value if isinstance(value, str) else None


@pytest.fixture
def _silent():
    with np.errstate(all="ignore"):
        yield


MODES = pytest.mark.parametrize("mode", [reverse, forward])


@pytest.mark.usefixtures("_silent")
@in_one_test({"name, args, expected": [*KINKS, *OWN], "mode": [reverse, forward]})
def test_kink_matches_convention(name, args, expected, mode):
    np.testing.assert_allclose(mode(getattr(fnp, name), *args), expected, rtol=1e-15)


@pytest.mark.usefixtures("_silent")
@in_one_test({"name, args, expected": [*KINKS, *OWN], "mode": [reverse, forward]})
def test_kink_of_an_array(name, args, expected, mode):
    """Arrays take other paths than numbers do; the ordinary second element must not change the first."""
    arrays = [np.array([a, 0.7]) for a in args]
    found = [part[0] for part in mode_of_arrays(mode, getattr(fnp, name), arrays)]
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def mode_of_arrays(mode, fun, arrays):
    if mode is reverse:
        return reverse(fun, *arrays)
    rest = range(len(arrays))
    return [jvp(lambda x, i=i: fun(*arrays[:i], x, *arrays[i + 1 :]), (arrays[i],), (np.ones(2),))[1] for i in rest]


@pytest.mark.parametrize(("name", "args", "expected"), KINKS, ids=label)
def test_kink_matches_jax(name, args, expected):
    found = theirs(getattr(jnp, name), *args)
    if name == "hypot" and args == (0.0, 0.0) and np.isnan(found[0]).all():  # JAX's value since 0.12
        return
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize(("fun", "x", "expected"), SECOND)
def test_second_derivative(fun, x, expected):
    np.testing.assert_allclose(grad(grad(fun))(x), expected, rtol=1e-14)
    np.testing.assert_allclose(jvp(grad(fun), (x,), (1.0,))[1], expected, rtol=1e-14)
    np.testing.assert_allclose(grad(lambda x: jvp(fun, (x,), (1.0,))[1])(x), expected, rtol=1e-14)


@MODES
@pytest.mark.parametrize(("fun", "x", "expected"), EXTREMES)
def test_extreme_argument(fun, x, expected, mode):
    np.testing.assert_allclose(mode(fun, x), [expected], rtol=1e-12)


@pytest.mark.parametrize(("name", "x"), [("arctan", 300.0), ("arcsinh", 300.0), ("tanh", 300.0), ("log10", 6e4)])
def test_half_precision_does_not_overflow(name, x):
    (ct,) = reverse(getattr(fnp, name), np.float16(x))
    assert ct.dtype == np.float16
    (exact,) = reverse(getattr(fnp, name), x)
    np.testing.assert_allclose(ct, exact, rtol=3e-3, atol=6e-8)


# ---- operations with more than a derivative ----------------------------------------------------------------


def test_one_argument_twice():
    assert grad(lambda x: fnp.maximum(x, x))(2.0) == 1.0
    assert grad(lambda x: fnp.fmax(x, x))(2.0) == 1.0
    assert grad(lambda x: fnp.clip(x, x, x))(2.0) == 1.0
    with np.errstate(all="ignore"):
        assert math.isnan(grad(lambda x: fnp.power(x, x))(0.0))


def test_modf_and_frexp():
    for mode in (reverse, forward):
        assert mode(lambda x: fnp.modf(x)[0], 2.0) == (1.0,)
        assert mode(lambda x: fnp.modf(x)[1], 2.0) == (0.0,)
        assert mode(lambda x: fnp.frexp(x)[0], 0.0) == (1.0,)
        assert mode(lambda x: fnp.frexp(x)[0], 2.5) == (0.25,)
        assert mode(lambda x: fnp.divmod(x, 3.0)[0], 6.0) == (0.0,)
        assert mode(lambda x: fnp.divmod(x, 3.0)[1], 6.0) == (1.0,)


def test_where_selects_derivative_by_condition():
    for mode in (reverse, forward):
        assert mode(lambda x: fnp.where(fnp.greater(x, 0), x, 0.0), 0.0) == (0.0,)
        assert mode(lambda x: fnp.where(fnp.greater_equal(x, 0), x, 0.0), 0.0) == (1.0,)


def test_where_does_not_mask_infinite_derivative_in_reverse():
    def guarded(x):
        return fnp.where(fnp.greater(x, 0), fnp.sqrt(x), 0.0)

    with np.errstate(all="ignore"):
        assert np.isnan(reverse(guarded, 0.0)).all()
        assert forward(guarded, 0.0) == (0.0,)


@pytest.mark.parametrize("order", range(1, 8))
def test_sinc_of_every_order(order):
    """Compare with the Taylor coefficients at 0; elsewhere the two formulas must agree."""
    fun = fnp.sinc
    for _ in range(order):
        fun = grad(fun)
    exact = 0.0 if order % 2 else (-1.0) ** (order // 2) * PI**order / (order + 1)
    np.testing.assert_allclose(fun(0.0), exact, rtol=1e-15, atol=1e-300)
    nodes, weights = np.polynomial.legendre.leggauss(40)  # sinc(x) is the mean of cos(pi x s) for s from 0 to 1
    s = (nodes + 1) / 2
    for x in (1e-3, 0.2, 0.31, 0.33, 0.5, 0.99, 1.2, 1.6, 2.7):
        mean = (weights / 2 * (PI * s) ** order * np.cos(PI * x * s + order * PI / 2)).sum()
        np.testing.assert_allclose(fun(x), mean, rtol=1e-11, atol=1e-13 * PI**order)


def test_mixed_second_derivative_of_power():
    """At y = 0 the derivative in x vanishes, but its derivative in y does not."""
    mixed = grad(lambda x, y: grad(fnp.power)(x, y), 1)
    np.testing.assert_allclose(mixed(2.0, 0.0), 0.5)
    np.testing.assert_allclose(mixed(np.float64(2.0), 3.0), 4.0 * (1 + 3 * math.log(2.0)))


def test_power_of_array_exponents():
    x, n = np.array([0.0, 0.0, -2.0, 3.0]), np.array([0, 1, 3, -1])
    np.testing.assert_allclose(reverse(lambda x: fnp.power(x, n), x)[0], [0.0, 1.0, 12.0, -1 / 9])
    np.testing.assert_allclose(reverse(lambda x: fnp.power(x, n.astype(float)), x)[0], [0.0, 1.0, 12.0, -1 / 9])


# ---- complex numbers ---------------------------------------------------------------------------------------


def test_complex_kinks():
    assert grad(fnp.absolute)(0j) == 0
    np.testing.assert_allclose(grad(fnp.absolute)(1 + 2j), (1 - 2j) / math.sqrt(5))
    np.testing.assert_allclose(grad(fnp.angle)(1 + 2j), -0.4 - 0.2j)
    assert jvp(fnp.absolute, (0j,), (1 + 1j,))[1] == 0
    assert grad(lambda z: fnp.real(fnp.sign(z)))(0j) == 0
    with np.errstate(all="ignore"):
        assert np.isnan(grad(fnp.angle)(0j))
        assert np.isnan(grad(fnp.sqrt, holomorphic=True)(0j))


def test_conj_conjugates():
    assert jvp(fnp.conj, (1 + 2j,), (3 + 4j,))[1] == 3 - 4j
    assert vjp(fnp.conj, 1 + 2j)[1](3 + 4j) == (3 - 4j,)


def test_imaginary_part_of_real_numbers_is_constant():
    assert reverse(fnp.imag, 1.5) == (0.0,)
    assert jvp(fnp.imag, (np.ones(2),), (np.ones(2),))[1].tolist() == [0.0, 0.0]


CUTS = [
    *[(name, z) for name in ("sqrt", "log", "log2", "log10") for z in ((-2.0, 0.0), (-2.0, -0.0))],
    *[(name, (a, b)) for name in ("arcsin", "arccos", "arctanh") for a in (-2.0, 2.0) for b in (0.0, -0.0)],
    *[(name, (a, b)) for name in ("arctan", "arcsinh") for a in (0.0, -0.0) for b in (-2.0, 2.0)],
    *[(name, (a, b)) for name in ("arccosh",) for a in (-2.0, -0.5, 0.5) for b in (0.0, -0.0)],
    *[(name, (-2.0, b)) for name in ("log1p",) for b in (0.0, -0.0)],
    ("arccosh", (-1.3, 0.7)),
    ("arccosh", (-1.3, -0.7)),
]


@pytest.mark.parametrize(("name", "z"), CUTS)
def test_derivative_on_a_branch_cut(name, z):
    """The derivative belongs to the side of the value: the quotient along the cut, with signs of zeros kept."""
    own, reference = getattr(fnp, name), getattr(np, name)
    a, b = z
    step = 1e-6
    along = (a, b + step, b - step) if name in ("arctan", "arcsinh") else (b, a + step, a - step)
    ends = [complex(along[0], e) if name in ("arctan", "arcsinh") else complex(e, along[0]) for e in along[1:]]
    quotient = (reference(ends[0]) - reference(ends[1])) / (2 * step)
    if name in ("arctan", "arcsinh"):
        quotient /= 1j
    np.testing.assert_allclose(grad(own, holomorphic=True)(complex(a, b)), quotient, rtol=1e-8)
    np.testing.assert_allclose(jvp(own, (complex(a, b),), (1 + 0j,))[1], quotient, rtol=1e-8)


# ---- dtypes ------------------------------------------------------------------------------------------------

PAIRS = [
    *("add", "subtract", "multiply", "divide", "power", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin"),
    *("hypot", "arctan2", "logaddexp", "logaddexp2", "copysign", "heaviside"),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("name", PAIRS)
def test_python_numbers_do_not_promote(name, dtype):
    x, one = np.array([0.5, 1.5, 0.0], dtype), np.ones(3, dtype)
    for other in (0.75, 2, 0.0, -1.0):
        for fun in (lambda x, o=other: getattr(fnp, name)(x, o), lambda x, o=other: getattr(fnp, name)(o, x)):
            with np.errstate(all="ignore"):
                (ct,) = reverse(fun, x)
                value, t = jvp(fun, (x,), (one,))
                second = jvp(lambda x, f=fun: vjp(f, x)[1](one)[0], (x,), (one,))[1]
            assert ct.dtype == value.dtype == t.dtype == second.dtype == dtype


def test_clip_where_and_select_do_not_promote():
    x = np.ones(3, np.float32)
    for fun in (
        lambda x: fnp.clip(x, 0.0, 1),
        lambda x: fnp.clip(x, None, 0.5),
        lambda x: fnp.where(fnp.greater(x, 0), x, 0.5),
        lambda x: fnp.select([fnp.greater(x, 0)], [x], 0.5),
        lambda x: fnp.nan_to_num(x, posinf=1.0),
        fnp.sinc,
        lambda x: fnp.angle(x * 1j, deg=True),
    ):
        value, pullback = vjp(fun, x)
        assert value.dtype == np.float32
        assert pullback(np.ones_like(value))[0].dtype == np.float32


UNARY = ["negative", "absolute", "square", "sqrt", "reciprocal", "exp", "log", "sin", "arctan", "tanh", "floor", "sign"]


@pytest.mark.parametrize("name", [*UNARY, *PAIRS, "floor_divide"])
def test_dtype_argument_sets_computation_dtype(name):
    ufunc, own = getattr(np, name), getattr(fnp, name)
    for args in ((np.array([1.25, 2.5]), np.array([3, 2])), (0.1, np.float32(0.3)), ([0.1, 0.2], 2)):
        args = args[: ufunc.nin]
        want, got = ufunc(*args, dtype=np.float32), own(*args, dtype=np.float32)
        assert type(got) is type(want)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    cts = vjp(lambda *x: own(*x, dtype=np.float32), *[np.array([1.25, 2.5])] * ufunc.nin)[1](np.ones(2, np.float32))
    assert {ct.dtype for ct in cts} == {np.dtype(np.float64)}
    if name != "absolute":
        with pytest.raises(TypeError):
            own(*[1 + 2j] * ufunc.nin, dtype=np.float64)


def test_float_power_computes_in_double_precision():
    x = np.array([2.0, 3.0], np.float32)
    value, pullback = vjp(lambda x: fnp.float_power(x, -2), x)
    assert value.dtype == np.float64
    np.testing.assert_array_equal(value, np.float_power(x, -2))
    (ct,) = pullback(np.ones(2))
    assert ct.dtype == np.float32
    np.testing.assert_allclose(ct, [-0.25, -2 / 27], rtol=1e-6)
    assert fnp.float_power([1, 2], -2).tolist() == [1.0, 0.25]


# ---- values and errors -------------------------------------------------------------------------------------


def test_every_ufunc_is_covered():
    """Ufuncs of linear algebra have core axes; isnat is for dates."""
    public = {u for u in vars(np).values() if isinstance(u, np.ufunc)}
    elsewhere = {np.matmul, np.vecdot, np.matvec, np.vecmat, np.isnat}
    assert public - set(UFUNCS) - elsewhere == set()
    assert UFUNCS[np.add] is fnp.add
    assert UFUNCS[np.divide] is fnp.true_divide
    assert UFUNCS[np.conjugate] is fnp.conj


def test_clip_of_integers():
    small = np.array([0, 100, 200], np.uint8)
    for limits in ((-5, 150), (50, 1000), (None, 1000), (-1, None), (50, None), (None, None)):
        want, got = np.clip(small, *limits), fnp.clip(small, *limits)
        assert got.dtype == want.dtype
        assert got.tolist() == want.tolist()
    assert fnp.clip(2.5, min=3.0) == 3.0
    with pytest.raises(ValueError, match="given twice"):
        fnp.clip(1.0, min=0.5, a_min=0.0)


def test_where_of_one_argument():
    assert [a.tolist() for a in fnp.where(np.array([[0, 1], [2, 0]]))] == [[0, 1], [1, 0]]
    x = np.array([3.0, 0.0, 4.0])
    found = []  # in a derivative these are plain indices
    vjp(lambda x: found.append(fnp.where(x)[0]) or fnp.multiply(x, x), x)
    assert found[0].tolist() == [0, 2]
    with pytest.raises(ValueError, match="both or neither"):
        fnp.where(x, x)
    with pytest.raises(ConcretizationError, match="vmap"):
        vmap(fnp.where)(np.tri(2, 3))


def test_select():
    x = np.arange(6, dtype=np.float32)
    for choices, default in (([x, 2.5], 0), ([x, np.arange(6)], 1), ([1, 2], 3), ([x, 1j], 0)):
        conditions = [x < 2, x < 4]
        want, got = np.select(conditions, choices, default), fnp.select(conditions, choices, default)
        assert got.dtype == want.dtype
        assert got.tolist() == want.tolist()
    with pytest.raises(ValueError, match="2 choices and 1 conditions"):
        fnp.select([x < 2], [x, x])
    with pytest.raises(ValueError, match="at least one"):
        fnp.select([], [])
    with pytest.raises(TypeError, match="boolean"):
        fnp.select([x], [x])


def test_allclose_and_array_equal_return_python_bools():
    x = np.array([1.0, NAN])
    for own, theirs in ((fnp.allclose, np.allclose), (fnp.array_equal, np.array_equal)):
        for args in ((x, x), (x, x, 1.0), (1.0, 1.0), (x[:1], x), ([1, 2], [1, 2])):
            if own is fnp.array_equal or len(args) == 2:
                if args[0] is not args[1] and np.shape(args[0]) != np.shape(args[1]) and own is fnp.allclose:
                    continue
                found = own(*args)
                assert found is theirs(*args)
    assert fnp.array_equal(x, x, equal_nan=True) is True
    assert fnp.allclose(x, x, equal_nan=True) is True
    assert grad(lambda x: x * 2.0 if fnp.allclose(x, 3.0) else x)(3.0) == 2.0
    rows = np.array([[1.0, 2.0], [1.0, 3.0]])
    for fun in (fnp.allclose, fnp.array_equal):
        assert vmap(lambda row, f=fun: f(row, rows[0]))(rows).tolist() == [True, False]
        twice = vmap(vmap(lambda a, b, f=fun: f(a, b)))(rows, rows[:, ::-1])
        assert twice.tolist() == [[False, False], [False, False]]


def test_nan_to_num_in_place():
    x = np.array([1.0, NAN])
    assert fnp.nan_to_num(x, copy=False) is x
    assert x.tolist() == [1.0, 0.0]
    z = np.array([complex(NAN, 1.0), complex(2.0, INF)])
    value, pullback = vjp(lambda z: fnp.nan_to_num(z, posinf=9.0), z)
    assert value.tolist() == [1j, 2 + 9j]
    assert pullback(np.array([1 + 2j, 1 + 2j]))[0].tolist() == [2j, 1.0]


def test_real_functions_raise_for_complex_numbers():
    for name in ("fabs", "hypot", "arctan2", "floor", "remainder", "copysign", "logaddexp", "cbrt", "deg2rad"):
        ufunc = getattr(np, name)
        with pytest.raises(TypeError):
            getattr(fnp, name)(*[1j] * ufunc.nin)
        with pytest.raises(TypeError):
            vjp(getattr(fnp, name), *[1j] * ufunc.nin)
