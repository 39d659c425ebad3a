"""Documented conventions that no other table of kinks has, by mode; and what the cross-check knows about JAX.

The expected numbers are JAX's; each test compares with JAX, unless the row states a reason.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jvp, vjp
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.interop import crosscheck
from funcgrad.interop.crosschecks.divergences import KNOWN

INF, NAN = math.inf, math.nan
FLOAT0 = np.dtype([("float0", "V")])
Z, C = 1 + 2j, 3 - 1j
WEIGHTS = np.array([1.0, 10.0, 100.0])
THREES = np.full(3, 3.0)


@pytest.fixture
def _silent():
    with np.errstate(all="ignore"):
        yield


# ---- kinks, edges and complex numbers ----------------------------------------------------------------------


class Row(NamedTuple):
    """Function ``fun(xp, x)`` at ``x``, with its cotangent in reverse mode and its tangent in forward mode.

    Cotangents are 1, or 1, 10, 100 where there are three results; directions 1, or 1, 10, 100.
    """

    name: str
    fun: Any
    x: Any
    reverse: Any
    forward: Any
    why_not_jax: str = ""


ROWS = [
    Row("x**0 at 0", lambda xp, x: x**0, 0.0, 0, 0),
    Row("x**1 at 0", lambda xp, x: x**1, 0.0, 1, 1),
    Row("x**1.0 at 0", lambda xp, x: x**1.0, 0.0, 1, 1),
    Row("x**2 at 0", lambda xp, x: x**2, 0.0, 0, 0),
    Row("x**2.0 at 0", lambda xp, x: x**2.0, 0.0, 0, 0),
    Row("x**-1 at 0", lambda xp, x: x**-1, np.float64(0.0), -INF, -INF),
    Row("x**x at 0", lambda xp, x: x**x, 0.0, NAN, NAN),
    Row("0**x at 2", lambda xp, x: 0.0**x, 2.0, 0, 0),
    Row("2**x at 0", lambda xp, x: 2.0**x, 0.0, math.log(2), math.log(2)),
    Row("x**n of unsigned n", lambda xp, x: x ** np.array([0, 1, 2], np.uint8), THREES, [0, 10, 600], [0, 10, 600]),
    Row("x**n of the smallest n", lambda xp, x: x ** np.int8(-128), 2.0, -(2.0**-122), -(2.0**-122), "n - 1 is 127"),
    Row("abs(x) at 0", lambda xp, x: abs(x), 0.0, 1, 1),
    Row("maximum(x, x)", lambda xp, x: xp.maximum(x, x), 2.0, 1, 1),
    Row("fmax(x, x)", lambda xp, x: xp.fmax(x, x), 2.0, 1, 1),
    Row("clip(x, x, x)", lambda xp, x: xp.clip(x, x, x), 2.0, 1, 1),
    Row("maximum(x, 0) at 0", lambda xp, x: xp.maximum(x, 0), 0.0, 0.5, 0.5),
    Row("max along an axis", lambda xp, x: xp.max(x, axis=0), np.ones((2, 3)), [[0.5, 5, 50]] * 2, WEIGHTS),
    Row("argmax reads the first", lambda xp, x: x[xp.argmax(x)], np.array([3.0, 1.0, 3.0]), [1, 0, 0], 1),
    Row("falling order", lambda xp, x: xp.sort(x)[::-1], np.array([2.0, 2.0, 1.0]), [10, 1, 100], [10, 1, 100]),
    Row("to integers and back", lambda xp, x: x.astype(int).astype(float), THREES, [0] * 3, [0] * 3),
    Row("remainder of itself", lambda xp, x: x % x, 2.0, 0, 0),
    Row("sign of x times x", lambda xp, x: xp.sign(x) * x, 0.0, 0, 0),
    Row("|z|^2", lambda xp, z: xp.real(z * xp.conj(z)), Z, 2 - 4j, 2),
    Row("abs(z)^2", lambda xp, z: xp.abs(z) ** 2, Z, 2 - 4j, 2),
    Row("real(z)", lambda xp, z: xp.real(z), Z, 1, 1),
    Row("imag(z)", lambda xp, z: xp.imag(z), Z, -1j, 0),
    Row("real(z^2)", lambda xp, z: xp.real(z**2), Z, 2 + 4j, 2),
    Row("real(conj(z) c)", lambda xp, z: xp.real(xp.conj(z) * C), Z, np.conj(C), C.real),
    Row("angle(z)", lambda xp, z: xp.angle(z), Z, -0.4 - 0.2j, -0.4),
    Row("z^2", lambda xp, z: z**2, Z, 2 * Z, 2 * Z),
    Row("conj(z)", lambda xp, z: xp.conj(z), Z, 1, 1),
    Row("x c", lambda xp, x: x * C, 2.0, 3, C),
    Row("abs(z) at 0", lambda xp, z: xp.abs(z), 0j, 0, 0),
    Row("real(sign(z)) at 0", lambda xp, z: xp.real(xp.sign(z)), 0j, 0, 0),
    Row("angle(z) at 0", lambda xp, z: xp.angle(z), 0j, NAN, NAN),
    Row("sqrt(z) at 0", lambda xp, z: xp.sqrt(z), 0j, NAN, NAN),
    Row("z**2 at 0", lambda xp, z: z**2, 0j, 0, 0),
    Row("real(z)^2 at 0", lambda xp, z: xp.real(z) ** 2, 0j, 0, 0),
    Row("sort of z", lambda xp, z: xp.sort(z), np.array([3 + 1j, 1 + 2j, 1 - 1j]), [100, 10, 1], [100, 10, 1]),
    Row("prod of z with a zero", lambda xp, z: xp.prod(z), np.array([0, Z, C]), [Z * C, 0, 0], Z * C),
]  # fmt: skip


def weights(like):
    """Return 1, or 1, 10, 100 along the last axis, in the dtype of ``like``."""
    like = np.asarray(like)
    return (np.ones(like.shape) * (WEIGHTS if like.shape[-1:] == (3,) else 1.0)).astype(like.dtype)[()]


def reverse(lib, fun, x):
    out, pullback = lib.vjp(fun, x)
    return pullback(weights(out))[0]


def forward(lib, fun, x):
    return lib.jvp(fun, (x,), (weights(x),))[1]


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "c" and np.isnan(want).any():  # a complex number with one NaN counts as NaN
        got = np.where(np.isnan(got), NAN, got)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-14, atol=1e-300)


MODES = pytest.mark.parametrize("mode", [reverse, forward])


@MODES
@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_convention_by_mode(row, mode):
    got = mode(funcgrad, lambda x: row.fun(fnp, x), row.x)
    same(got, getattr(row, mode.__name__))
    if mode is reverse:
        assert got.dtype == np.asarray(row.x).dtype  # complex arguments have complex cotangents


@MODES
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_convention_matches_jax(row, mode):
    if not row.why_not_jax:
        x = jnp.asarray(row.x) if isinstance(row.x, np.ndarray) else row.x
        same(mode(jax, lambda x: row.fun(jnp, x), x), getattr(row, mode.__name__))


@pytest.mark.usefixtures("_silent")
def test_zero_power_has_no_second_derivative_in_exponent():
    for exponent in np.array([0.0, -1.0]):  # NumPy scalars: Python numbers would raise an error
        assert np.isnan(grad(lambda y: 0.0**y)(exponent))
        assert np.isnan(grad(grad(lambda y: 0.0**y))(exponent))
        assert np.isnan(grad(lambda x, y=exponent: grad(fnp.power, 1)(x, y))(0.0))
    assert grad(grad(lambda y: 0.0**y))(2.0) == 0


def test_real_cotangent_of_complex_result_raises():
    pullback = vjp(lambda x: x * C, 2.0)[1]
    with pytest.raises(InputError, match=r"wrong dtype, got float64, expected complex128\. Convert"):
        pullback(1.0)


def test_jacobians_between_real_and_complex():
    x, z = np.array([1.0, 2.0]), np.array([Z, C])
    same(jacfwd(lambda x: x * 1j)(x), np.diag([1j, 1j]))
    same(jacrev(lambda z: fnp.abs(z) ** 2)(z), np.diag(2 * np.conj(z)))
    same(jax.jacrev(lambda z: jnp.abs(z) ** 2)(z), np.diag(2 * np.conj(z)))
    for refused in (lambda: jacrev(lambda x: x * 1j)(x), lambda: jacfwd(fnp.real)(z)):
        with pytest.raises(InputError, match=r"vjp or jvp|use jvp"):
            refused()


# ---- integers ----------------------------------------------------------------------------------------------


def test_integers_have_float0_derivatives():
    n = np.arange(3)
    for transform in (grad, jacrev):
        ct = transform(lambda n: fnp.sum(n * 1.5), allow_int=True)(n)
        assert (ct.dtype, ct.shape) == (FLOAT0, (3,))
    value, tangent = jvp(lambda n, x: (n * x, n), (n, 2.0), (np.zeros(3, FLOAT0), 1.0))
    np.testing.assert_array_equal(tangent[0], n)
    assert tangent[1].dtype == FLOAT0
    np.testing.assert_array_equal(value[0], 2.0 * n)


@pytest.mark.parametrize("ct", [np.zeros((), FLOAT0), 0.0])
def test_integer_result_accepts_any_zero_cotangent(ct):
    x = np.array([1.0, 3.0, 2.0])
    pulled = vjp(lambda x: fnp.argmax(x), x)[1](ct)[0]
    assert pulled.dtype == np.float64
    np.testing.assert_array_equal(pulled, np.zeros(3))


# ---- the cross-check knows JAX -----------------------------------------------------------------------------

# By primitive (the key): a function, a point where JAX is known to differ, a point where JAX agrees.
DIFFERENT = {
    "power": (lambda x: x**0.0, (0.0,), (2.0,)),
    "float_power": (lambda x: fnp.float_power(x, 1.0), (0.0,), (2.0,)),
    "partition": (lambda x: fnp.sum(fnp.partition(x, 1) * np.arange(4)), (np.array([3.0, 2.0, 2.0, 1.0]),), None),
    "logaddexp": (fnp.logaddexp, (INF, 1.0), (2.0, 1.0)),
    "logaddexp2": (fnp.logaddexp2, (INF, 1.0), (2.0, 1.0)),
    "hypot": (fnp.hypot, (1e200, 1e200), (2.0, 1.0)),
    "hypot at (0, 0)": (fnp.hypot, (0.0, 0.0), (2.0, 1.0)),
    "arctan2": (fnp.arctan2, (1e200, 1e200), (2.0, 1.0)),
    "sinc": (fnp.sinc, (1e-200,), (0.5,)),
    "arctanh": (fnp.arctanh, (1.0,), (0.5,)),
    "heaviside": (fnp.heaviside, (NAN, 0.5), (1.0, 0.5)),
    "angle_of_real": (lambda x: fnp.angle(x) + x, (0.0,), (2.0,)),
    "absolute": (fnp.absolute, (0j,), (1 + 2j,)),
    "logsumexp": (fnp.logsumexp, (np.full(3, -INF),), (np.array([-INF, 1.0]),)),
    "reduce_var": (lambda x: fnp.var(x, ddof=1), (np.ones(1),), (np.array([1.0, 3.0]),)),
    "arccosh": (fnp.arccosh, (-1.3 + 0.7j,), (1.3 + 0.7j,)),
    "arccosh on its branch cut": (fnp.arccosh, (complex(0.5, -0.0),), (1.3 + 0.7j,)),
    "sqrt": (fnp.sqrt, (complex(-2.0, -0.0),), (-2 + 1j,)),
    "arcsin": (fnp.arcsin, (complex(2.0, 0.0),), (0.5 + 1j,)),
    "arccos": (fnp.arccos, (complex(2.0, 0.0),), (0.5 + 1j,)),
    "arcsinh": (fnp.arcsinh, (complex(0.0, -2.0),), (0.5 + 1j,)),
}


OF_SECOND_ORDER = ("absolute", "arctan2", "arctanh", "float_power")


@pytest.mark.usefixtures("_silent")
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("name", DIFFERENT)
def test_known_divergence_is_recognised(name):
    """The divergence is known only for the versions of JAX that have it."""
    fun, there, elsewhere = DIFFERENT[name]
    primitive, _, where = name.partition(" ")
    entry = [entry for entry in KNOWN if entry.primitive == primitive][1 if where else 0]
    check = crosscheck(fun, order=2 if primitive in OF_SECOND_ORDER else 1)
    report = check(*there)
    differs = any(row.verdict.endswith("a known divergence") for row in report.rows)
    assert differs == (entry.since <= jax.__version_info__ < entry.until), str(report)
    assert report.ok, str(report)
    assert (entry.says in report.notes) == differs
    assert (f"Known divergence: {entry.says[:40]}" in str(report)) == differs
    if elsewhere is not None:
        report = check(*elsewhere)
        assert report.notes == ()
        assert {row.verdict for row in report.rows} <= {"agree", "agree, no referee"}, str(report)


# JAX's own functions are wrong here, but JAX sees funcgrad's primitives, and differentiates those correctly.
ALIKE = {
    "sign of a complex number": (lambda z: fnp.real(fnp.sign(z)), (Z,)),
    "arange": (lambda a: fnp.sum(fnp.arange(a, 3.0)), (0.5,)),
    "a list as an index": (lambda x: fnp.sum(x[[0, 1]] ** 2), (WEIGHTS,)),
    "a factor 0 in logsumexp": (
        lambda x, b: fnp.logsumexp(x, b=b, return_sign=True)[0],
        (np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 0.0])),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_jax_agrees_on_our_primitives(name):
    fun, args = ALIKE[name]
    report = crosscheck(fun, order=1, also=())(*args)
    assert report.notes == ()
    assert {row.verdict for row in report.rows} == {"agree"}, str(report)


@pytest.mark.parametrize(
    ("fun", "error", "message"),
    [
        (lambda x: x[0].item() * x[0], ConcretizationError, "item"),
        (lambda x: x[5], IndexError, "index 5 is out of bounds"),
        (lambda x: fnp.take(x, 5), IndexError, "index 5 is out of bounds"),
    ],
)
@pytest.mark.usefixtures("written")
def test_crosscheck_raises_where_jax_drops_silently(fun, error, message):
    with pytest.raises(error, match=message):
        crosscheck(fun)(WEIGHTS)
