"""Documented conventions of linear algebra, transforms, signals, statistics and sets, by mode.

The expected numbers are JAX's; each row is compared with JAX, unless it states a reason. Refusals are NumPy's.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_conventions import MODES, WEIGHTS, Row, reverse

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import grad, jvp

INF, NAN = math.inf, math.nan
SINGULAR, LOW = np.array([[1.0, 2.0], [2.0, 4.0]]), np.diag([2.0, 0.0])
ZERO, EYE, ONES = np.zeros((2, 2)), np.eye(2), np.ones((2, 2))
TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])  # its eigenvalues are i and -i
COUNTS = np.array([0.0, 1.0, 2.0])
S72, S144 = math.sin(0.4 * math.pi), math.sin(0.8 * math.pi)


def sized(xp, name="size"):
    """Return the size that JAX needs where a length depends on values."""
    return {name: 3} if xp is jnp else {}


def of_rank_one(a, x, b):
    """Return the derivatives of ``sum(pinv(a) * b)`` and of ``pinv(a)`` along ``x``; constant rank, symmetric ``a``."""
    p, rest = np.linalg.pinv(a), np.eye(2) - a @ np.linalg.pinv(a)
    pushed = -p @ x @ p + p @ p @ x.T @ rest + rest @ x.T @ p @ p
    pulled = -p @ b @ p + (rest @ b.T @ p @ p + p @ p @ b.T @ rest)
    return pulled, pushed


PULLED, PUSHED = of_rank_one(SINGULAR, ONES, ONES)
PULLED_B = of_rank_one(SINGULAR, ONES, ONES * [1, 2])[0]
UNSIZED = "JAX has no derivative where it is not told the size"

# Cotangents are 1, or 1, 10, 100 where there are three results; directions 1, or 1, 10, 100 along the last axis.
LINALG = [
    Row("det of rank n-1", lambda xp, a: xp.linalg.det(a), SINGULAR, [[4, -2], [-2, 1]], 1),
    Row("det of rank n-1 of 3", lambda xp, a: xp.linalg.det(a), np.diag([1.0, 2.0, 0.0]), np.diag([0, 0, 2.0]), 200),
    Row("det of rank n-2", lambda xp, a: xp.linalg.det(a), np.ones((3, 3)), np.zeros((3, 3)), 0),
    Row("det of nothing but zeros", lambda xp, a: xp.linalg.det(a), ZERO, ZERO, 0),
    Row("complex det", lambda xp, a: xp.real(xp.linalg.det(a)), 1j * SINGULAR, [[4j, -2j], [-2j, 1j]], 0),
    Row("sign of a det of 0", lambda xp, a: xp.linalg.slogdet(a)[0], SINGULAR, ZERO, 0),
    Row(
        "log of a det of 0",
        lambda xp, a: xp.linalg.slogdet(a)[1],
        SINGULAR,
        [[INF, -INF], [-INF, INF]],
        NAN,
        "forward mode: JAX has the infinity of one side",
    ),
    Row("pinv of low rank", lambda xp, a: xp.linalg.pinv(a), SINGULAR, PULLED, PUSHED),
    Row("pinv of zeros", lambda xp, a: xp.linalg.pinv(a), ZERO, ZERO, ZERO),
    Row(
        "lstsq of low rank",
        lambda xp, a: xp.linalg.lstsq(a, np.array([1.0, 2.0]))[0],
        SINGULAR,
        PULLED_B,
        PUSHED @ [1, 2],
    ),
    Row("lstsq of low rank in b", lambda xp, b: xp.linalg.lstsq(SINGULAR, b)[0], EYE[0], [0.12, 0.24], [0.12, 0.24]),
    Row("lstsq of zeros", lambda xp, a: xp.linalg.lstsq(a, EYE[0])[0], ZERO, ZERO, [0, 0], "JAX's is NaN"),
    Row(
        "cholesky is of a symmetric matrix",
        lambda xp, a: xp.linalg.cholesky(a),
        np.array([[1.0, 1.0], [1.0, 2.0]]),
        np.array([[0.5, 0.0], [0.0, 0.5]]),
        [[0.5, 0], [0.5, 0]],
    ),
    Row(
        "cholesky of a diagonal matrix, of which one triangle may be filled",
        lambda xp, a: xp.linalg.cholesky(a),
        EYE,
        [[0.5, 0], [1, 0.5]],
        [[0.5, 0], [1, 0.5]],
        "JAX's is symmetric",
    ),
    Row(
        "eigvalsh is of a symmetric matrix",
        lambda xp, a: xp.linalg.eigvalsh(a)[0],
        np.array([[2.0, 1.0], [1.0, 3.0]]),
        np.array([[1 + 5**-0.5, -(2 * 5**-0.5)], [-(2 * 5**-0.5), 1 - 5**-0.5]]) / 2,
        1 - 2 * 5**-0.5,
    ),
    Row("eigvalsh of I", lambda xp, a: xp.linalg.eigvalsh(a), EYE, EYE, [1, 1]),
    Row("one eigenvalue of I", lambda xp, a: xp.linalg.eigvalsh(a)[1], EYE, [[0, 0], [0, 1]], 1),
    Row("eigvalsh of complex I", lambda xp, a: xp.linalg.eigvalsh(a), EYE + 0j, EYE, [1, 1]),
    Row("eigvalsh of zeros", lambda xp, a: xp.linalg.eigvalsh(a), ZERO, EYE, [1, 1]),
    Row("vectors of I", lambda xp, a: xp.linalg.eigh(a)[1][0, 1], EYE, NAN * ONES, NAN, "its NaN are not everywhere"),
    Row("svdvals of I", lambda xp, a: xp.linalg.svdvals(a), EYE, EYE, [1, 1]),
    Row("svdvals of zeros", lambda xp, a: xp.linalg.svdvals(a), ZERO, EYE, [1, 1]),
    Row("svdvals of low rank", lambda xp, a: xp.linalg.svd(a, compute_uv=False), LOW, EYE, [1, 1]),
    Row("left vectors of I", lambda xp, a: xp.linalg.svd(a)[0][0, 1], EYE, NAN * ONES, NAN, "as vectors of I"),
    Row("eigvals of I", lambda xp, a: xp.real(xp.linalg.eigvals(a)), EYE, EYE, [1, 1]),
    Row("complex eigvals of a real matrix", lambda xp, a: xp.abs(xp.linalg.eigvals(a)), TURN, TURN, [0, 0]),
    Row("rank", lambda xp, a: xp.linalg.matrix_rank(a) * 1.0, SINGULAR, ZERO, 0),
    Row("power of 0", lambda xp, a: xp.linalg.matrix_power(a, 0), SINGULAR, ZERO, ZERO),
    Row("expm of zeros", lambda xp, a: xp.linalg.expm(a), ZERO, ONES, ONES, "it is in jax.scipy, and takes long"),
    Row("qr of zeros", lambda xp, a: xp.linalg.qr(a)[0], ZERO, NAN * ONES, NAN * ONES),
    Row("cross with itself", lambda xp, a: xp.cross(a, a), COUNTS, [0, 0, 0], [0, 0, 0]),
]  # fmt: skip

NORMS = {  # at zeros that test_linalg_solving leaves out, and at diag(2, 0)
    "nuc": (EYE, EYE),
    "fro": (None, EYE * [1, 0]),
    2: (EYE / 4, EYE * [1, 0]),
    -2: (EYE / 2, EYE * [0, 1]),
    1: (None, ONES * [1, 0]),
    -1: (None, ONES * [0, 1]),
    INF: (None, ONES * [[1], [0]]),
    -INF: (None, ONES * [[0], [1]]),
}
LINALG += [
    Row(f"norm {order} of {name}", lambda xp, a, o=order: xp.linalg.norm(a, o), at, want, np.sum(want))
    for order, wanted in NORMS.items()
    for name, at, want in zip(("zeros", "diag(2, 0)"), (ZERO, LOW), wanted, strict=True)
    if want is not None
]
UNIT, UNDEFINED = np.array([0.6 - 0.8j, 0]), np.array([0, complex(NAN, NAN)])
LINALG += [
    Row(f"norm {order} of 3 + 4i, 0", lambda xp, z, o=order: xp.linalg.norm(z, o), 5 * UNIT, want, want.real.sum())
    for order, want in {
        None: UNIT.conj(), 1: UNIT.conj(), 2: UNIT.conj(), 3: UNIT.conj(), INF: UNIT.conj(), -INF: 0 * UNIT,
        0: 0 * UNIT, -1: UNDEFINED, -2: UNDEFINED, 0.5: UNIT.conj() + UNDEFINED,
    }.items()
]  # fmt: skip
LINALG += [
    Row("norm of complex zeros", lambda xp, z: xp.linalg.norm(z), np.zeros(3) + 0j, np.full(3, NAN + 0j), NAN),
    Row("norm 1 of complex zeros", lambda xp, z: xp.linalg.norm(z, 1), np.zeros(3) + 0j, [0, 0, 0], 0),
    Row("cond 2 of I", lambda xp, a: xp.linalg.cond(a), EYE, EYE * [1, -1], 0),
    Row("cond -2 of I", lambda xp, a: xp.linalg.cond(a, -2), EYE, EYE * [-1, 1], 0),
    Row("cond 1 of I", lambda xp, a: xp.linalg.cond(a, 1), EYE, ZERO, 0),
    Row("cond fro of I", lambda xp, a: xp.linalg.cond(a, "fro"), EYE, ZERO, 0),
]

# In the half spectrum of a real signal the first entry is real, and for even lengths the last one too.
FOURIER = [
    Row("irfft of 4", lambda xp, x: xp.fft.irfft(1j * x, 4)[1], COUNTS, [0, -0.5, 0], -5),
    Row("irfft of 5", lambda xp, x: 5 * xp.fft.irfft(1j * x, 5)[1], COUNTS, [0, -2 * S72, -2 * S144],
        -20 * S72 - 200 * S144),
    Row("hfft of 4", lambda xp, x: xp.fft.hfft(1j * x, 4)[1], COUNTS, [0, 2, 0], 20),
    Row("hfft of 5", lambda xp, x: xp.fft.hfft(1j * x, 5)[1], COUNTS, [0, 2 * S72, 2 * S144], 20 * S72 + 200 * S144),
    Row("irfft2", lambda xp, x: xp.fft.irfft2(1j * x[None], (1, 4))[0, 1], COUNTS, [0, -0.5, 0], -5),
    Row("irfftn", lambda xp, x: xp.fft.irfftn(1j * x, (4,), (0,))[1], COUNTS, [0, -0.5, 0], -5),
    Row("irfft of a cut spectrum", lambda xp, x: xp.fft.irfft(1j * x, 2)[1], COUNTS, [0, 0, 0], 0),
    Row("ihfft", lambda xp, x: xp.imag(xp.fft.ihfft(x)[0]), COUNTS, [0, 0, 0], 0),
]  # fmt: skip

SIGNALS = [
    Row("unwrap at half a period", lambda xp, x: xp.unwrap(x, period=1.0), np.array([0.0, 0.5, 0.7]), [1, 10, 100],
        [1, 10, 100], "JAX's two modes differ"),
    Row("i0 at 0", lambda xp, x: xp.i0(x), 0.0, 0, 0),
    Row("kaiser of 0", lambda xp, b: xp.kaiser(3, b), 0.0, 0, [0, 0, 0]),
    Row("interp at every knot", lambda xp, x: xp.interp(x, COUNTS, np.array([0.0, 10.0, 30.0])), COUNTS,
        [10, 200, 2000], [10, 200, 2000]),
    Row("trapezoid of no width", lambda xp, x: xp.trapezoid(np.array([1.0, 2.0, 4.0]), x), np.ones(3),
        [-1.5, -1.5, 3], 283.5),
    Row("convolve of zeros", lambda xp, x: xp.convolve(x, x), np.zeros(2), [0, 0], [0, 0, 0]),
    Row("piecewise at its edge", lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t * t + t]),
        np.array([-1.0, 0.0, 1.0]), [-1, 10, 300], [-1, 10, 300]),
    Row("select beside a root of 0", lambda xp, x: xp.select([x > 0, x < 0], [xp.sqrt(x), -x]),
        np.array([0.0, 0.25, -1.0]), [NAN, 10, NAN], [0, 10, -100]),
    Row("geomspace of equal ends", lambda xp, x: xp.geomspace(1.0, x, 3), 1.0, 105, [0, 0.5, 1]),
    Row("logspace of 1", lambda xp, x: xp.logspace(0.0, x, 3, base=math.e), 0.0, 105, [0, 0.5, 1]),
    Row("poly of equal zeros", lambda xp, x: xp.poly(x), np.ones(2), [90, 90], [0, -2, 2]),
    Row("polyval at 0", lambda xp, x: xp.polyval(np.array([1.0, 3.0, 2.0]), x), 0.0, 3, 3),
    Row("vander of 0", lambda xp, x: xp.vander(x, 3), np.zeros(1), [10], [[0, 1, 0]], "it takes x to a power"),
    Row("trim_zeros", lambda xp, x: xp.trim_zeros(x), np.array([0.0, 1.0, 0.0]), [0, 1, 0], [10],
        "its length depends on values"),
]  # fmt: skip

TIES = np.array([3.0, 3.0, 1.0, 3.0])
STATISTICS = [
    Row("counts", lambda xp, x: xp.histogram(x, 2)[0] * 1.0, COUNTS, [0, 0, 0], [0, 0]),
    Row("edges", lambda xp, x: xp.histogram(x, 2)[1], COUNTS, [6, 0, 105], [1, 50.5, 100]),
    Row("weights", lambda xp, w: xp.histogram(COUNTS, 2, weights=w)[0], COUNTS, [1, 1, 1], [1, 110]),
    Row("density", lambda xp, x: xp.histogram(x, 2, density=True)[0], np.array([0.0, 1.0, 4.0]), [1 / 8, 0, -1 / 8],
        [-8.25, -4.125]),
    Row("searchsorted", lambda xp, x: xp.searchsorted(x, 1.0) * 1.0, COUNTS, [0, 0, 0], 0),
    Row("digitize", lambda xp, x: xp.digitize(x, np.array([0.0, 1.0])) * 1.0, COUNTS, [0, 0, 0], [0, 0, 0]),
    Row("bincount", lambda xp, w: xp.bincount(np.array([0, 2, 0]), w, **sized(xp, "length")), COUNTS, [1, 100, 1],
        [101, 0, 10]),
    Row("cov of what does not vary", lambda xp, x: xp.cov(x), np.full(3, 2.0), [0, 0, 0], 0),
    Row("correlation of 1", lambda xp, x: xp.corrcoef(x, COUNTS)[0, 1], 2 * COUNTS, [0, 0, 0], 0),
    Row("correlation of what does not vary", lambda xp, x: xp.corrcoef(x, COUNTS)[0, 1], np.ones(3), [NAN] * 3, NAN),
    Row("ptp of a tie", lambda xp, x: xp.ptp(x), np.array([3.0, 1.0, 3.0]), [0.5, -1, 0.5], 40.5),
    Row("median of ties", lambda xp, x: xp.median(x), TIES, [0.5, 0.5, 0, 0], 1),
    Row("lower of ties", lambda xp, x: xp.quantile(x, 0.5, method="lower"), TIES, [1, 0, 0, 0], 1),
    Row("higher of ties", lambda xp, x: xp.quantile(x, 0.5, method="higher"), TIES, [0, 1, 0, 0], 1),
    Row("midpoint of ties", lambda xp, x: xp.quantile(x, 0.4, method="midpoint"), TIES, [0.5, 0.5, 0, 0], 1),
    Row("nearest of ties", lambda xp, x: xp.quantile(x, 0.5, method="nearest"), TIES, [0, 1, 0, 0], 1,
        "of two that are as near NumPy takes the even position"),
    Row("weights that cancel", lambda xp, w: xp.average(COUNTS, weights=w), np.array([1.0, -1.0, 1.0]),
        [-1, 0, 100 / 100], 99),
    Row("nanprod with a zero", lambda xp, x: xp.nanprod(x), np.array([NAN, 0.0, 3.0]), [0, 3, 0], 30),
    Row("nancumprod with a zero", lambda xp, x: xp.nancumprod(x), np.array([NAN, 0.0, 3.0]), [0, 310, 0], [0, 10, 30]),
]  # fmt: skip

SETS = [
    Row("unique", lambda xp, x: xp.unique(x, **sized(xp)), np.array([2.0, 1.0, 2.0, 3.0]), [10, 1, 0, 100],
        [1, 1, 1]),
    Row("union1d", lambda xp, x: xp.union1d(x, np.array([1.0, 5.0]), **sized(xp)), np.array([1.0, 2.0]), [1, 10],
        [1, 1, 0]),
    Row("intersect1d", lambda xp, x: xp.intersect1d(x, np.array([1.0, 2.0, 5.0])), np.array([2.0, 1.0, 2.0]),
        [1, 1, 0], [10, 1], UNSIZED),
    Row("setdiff1d", lambda xp, x: xp.setdiff1d(x, np.array([1.0])), np.array([1.0, 2.0, 2.0]), [0, 1, 0], [10],
        UNSIZED),
    Row("setxor1d", lambda xp, x: xp.setxor1d(x, np.array([1.0, 3.0])), np.array([1.0, 2.0]), [0, 1], [1, 0], UNSIZED),
    Row("isin", lambda xp, x: xp.isin(x, COUNTS) * x, COUNTS, [1, 10, 100], [1, 10, 100]),
    Row("sort_complex", lambda xp, z: xp.sort_complex(z), np.array([1 + 2j, 1 + 1j, 0]), [100, 10, 1], [100, 10, 1]),
    Row("sort_complex of ties", lambda xp, x: xp.real(xp.sort_complex(x)), np.array([2.0, 2.0, 1.0]), [10, 100, 1],
        [100, 1, 10]),
    Row("partition of ties", lambda xp, x: xp.partition(x, 1), np.array([2.0, 2.0, 1.0]), [10, 100, 1],
        [100, 1, 10], "ties in another order"),
]  # fmt: skip

ROWS = [*LINALG, *FOURIER, *SIGNALS, *STATISTICS, *SETS]


@pytest.fixture
def _silent():
    with np.errstate(all="ignore"):
        yield


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "c" and np.isnan(want).any():  # a complex number with one NaN counts as NaN
        got = np.where(np.isnan(got), NAN, got)
        want = np.where(np.isnan(want), NAN, want)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-12, atol=1e-15)


def weights(like):
    """Return 1, or 1, 10, 100 along the last axis, in the dtype of ``like``."""
    by_axis = WEIGHTS if like.shape[-1:] == (3,) else 1.0
    return jnp.asarray(np.ones(like.shape) * by_axis, like.dtype)


@MODES
@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_convention_by_mode(row, mode):
    got = mode(funcgrad, lambda x: row.fun(fnp, x), row.x)
    same(got, getattr(row, mode.__name__))
    if mode is reverse:
        assert got.dtype == np.asarray(row.x).dtype


#: Rows for which older versions of JAX had another convention.
CAME_LATER = ("norm 2 of zeros",) if jax.__version_info__ < (0, 10) else ()


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row.why_not_jax and row.name not in CAME_LATER], ids=lambda row: row.name
)
def test_convention_matches_jax(row):
    """One program computes both modes and is compiled without optimization: compiling dominates the time."""
    fun = lambda x: row.fun(jnp, x)
    x = jnp.asarray(row.x)
    of_out, of_x = weights(jax.eval_shape(fun, x)), weights(x)
    both = jax.jit(lambda x: (jax.vjp(fun, x)[1](of_out)[0], jax.jvp(fun, (x,), (of_x,))[1]))(x)
    for got, want in zip(both, (row.reverse, row.forward), strict=True):
        same(got, want)


def test_row_names_are_unique():
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.usefixtures("_silent")
def test_multiple_root_has_no_finite_derivative():
    """JAX returns a large number there, as if the two roots were separate."""
    c = np.array([1.0, -2.0, 1.0])
    assert not np.isfinite(grad(lambda c: fnp.real(fnp.roots(c)[0]))(c)).any()
    assert not np.isfinite(jvp(fnp.roots, (c,), (np.ones(3),))[1]).any()


@pytest.mark.parametrize(
    ("fun", "error"),
    [
        (lambda a: fnp.linalg.inv(a), np.linalg.LinAlgError),
        (lambda a: fnp.linalg.solve(a, EYE), np.linalg.LinAlgError),
        (lambda a: fnp.linalg.cholesky(a), np.linalg.LinAlgError),
        (lambda a: fnp.linalg.tensorinv(a, ind=1), np.linalg.LinAlgError),
        (lambda a: fnp.average(a[0], weights=np.array([1.0, -1.0])), ZeroDivisionError),
    ],
)
@pytest.mark.usefixtures("_silent")
def test_invalid_calls_raise_in_both_modes(fun, error):
    with pytest.raises(error):
        jvp(fun, (SINGULAR,), (ONES,))
    with pytest.raises(error):
        grad(lambda a: fnp.sum(fun(a)))(SINGULAR)
