"""The linear algebra of SciPy: elements that are read, batches, errors, differences from JAX."""

import warnings

import jax
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import scipy
import scipy.linalg as sl
from helpers import at_least, differences, traced

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jvp, trace, tree, value_and_grad, vjp, vmap
from funcgrad.errors import NotDifferentiableError
from funcgrad.optional import double_precision
from funcgrad.scipy import linalg
from funcgrad.scipy.own_code import mirrors

A = np.array([[4.0, 1.0, 0.5], [0.7, 5.0, -1.0], [0.2, -0.8, 6.0]])
B = np.array([1.0, -2.0, 0.5])
UPPER = np.triu(np.ones((3, 3), bool))


def total(fun):
    return lambda *args: fnp.sum(fnp.sin(fun(*args)))


TRIANGULAR = {
    "cholesky": lambda a, lower: linalg.cholesky(a, lower=lower),
    "cho_factor": lambda a, lower: linalg.cho_factor(a, lower=lower)[0] * (UPPER.T if lower else UPPER),
    "cho_solve": lambda a, lower: linalg.cho_solve((a, lower), B),
    "solve_triangular": lambda a, lower: linalg.solve_triangular(a, B, lower=lower),
    "solve of a triangle": lambda a, lower: linalg.solve(a, B, assume_a=f"{'lower' if lower else 'upper'} triangular"),
    "solve of a definite": lambda a, lower: linalg.solve(a, B, lower=lower, assume_a="pos"),
    "inv of a symmetric": lambda a, lower: linalg.inv(a, lower=lower, assume_a="sym"),
}
if not at_least(scipy, "1.17.0"):  # older versions of inv, which gives the numbers here, took no assume_a
    del TRIANGULAR["inv of a symmetric"]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("name", TRIANGULAR)
def test_only_triangle_read_has_derivative(name, lower):
    fun = total(lambda a: TRIANGULAR[name](a, lower))
    unread = ~(UPPER.T if lower else UPPER)
    found = grad(fun)(A)
    assert np.array_equal(found[unread], np.zeros(3))
    assert np.all(found[~unread] != 0)
    assert jvp(fun, (A,), (unread * 1.0,))[1] == 0.0
    t = np.where(unread, 0.0, A)
    h = 1e-5
    numeric = (fun(A + h * t) - fun(A - h * t)) / (2 * h)
    assert jvp(fun, (A,), (t,))[1] == pytest.approx(numeric, rel=1e-8)
    assert np.sum(found * t) == pytest.approx(numeric, rel=1e-8)


def test_unit_diagonal_has_no_derivative():
    found = grad(total(lambda a: linalg.solve_triangular(a, B, unit_diagonal=True)))(A)
    assert np.array_equal(np.diagonal(found), np.zeros(3))


def test_cholesky_ignored_triangle_has_no_derivative():
    """Check for zeros in that triangle; JAX has derivatives there, or since 0.12 the zeros of funcgrad."""
    with double_precision(jax):
        theirs = jax.grad(lambda a: jax.numpy.sum(jax.numpy.sin(jsl.cholesky(a, lower=True))))(A)
    ours = grad(total(lambda a: linalg.cholesky(a, lower=True)))(A)
    assert np.any(np.asarray(theirs)[~UPPER.T] != 0) or np.allclose(theirs, ours, rtol=1e-12, atol=1e-14)
    assert np.array_equal(ours[~UPPER.T], np.zeros(3))


BATCHED = {
    "inv": lambda lib, a: lib.inv(a),
    "solve": lambda lib, a: lib.solve(a, B),
    "cholesky": lambda lib, a: lib.cholesky(a),
    "lu_factor": lambda lib, a: lib.lu_factor(a)[0],
    "lu": lambda lib, a: lib.lu(a)[0],
    "lu_solve": lambda lib, a: lib.lu_solve(lib.lu_factor(a), B),
    "lu_solve of the transposed": lambda lib, a: lib.lu_solve(lib.lu_factor(a), B, trans=1),
    "indices of lu": lambda lib, a: lib.lu(a[..., ::-1, :], p_indices=True)[0],
    "polar": lambda lib, a: lib.polar(a, side="left")[1],
    "toeplitz": lambda lib, a: lib.toeplitz(a[..., 0, :]),
    "block_diag": lambda lib, a: lib.block_diag(a, 2 * a),
    "expm": lambda lib, a: lib.expm(a / 4),
    "solve_sylvester": lambda lib, a: lib.solve_sylvester(a, a, a),
    "solve_banded": lambda lib, a: lib.solve_banded((1, 1), a[..., [1, 2, 0], :] + 3, B),
    "pinv": lambda lib, a: lib.pinv(a[..., :2]),
    "eigvalsh": lambda lib, a: lib.eigvalsh(a, subset_by_index=(1, 2)),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batches_match_scipy(name):
    batch = np.stack([A, A + np.diag([1.0, 2.0, 3.0])])
    fun = BATCHED[name]
    want = np.stack([fun(sl, a) for a in batch])
    assert np.allclose(traced(lambda a: fun(linalg, a), batch), want, rtol=1e-12, atol=1e-13)
    assert np.allclose(vmap(lambda a: fun(linalg, a))(batch), want, rtol=1e-12, atol=1e-13)
    pulled = grad(lambda a: fnp.sum(fnp.sin(1.0 * fun(linalg, a))))
    if name not in ("lu", "indices of lu"):
        assert np.allclose(pulled(batch), np.stack([pulled(a) for a in batch]), rtol=1e-10, atol=1e-12)


def test_large_banded_solve():
    n = 20_000
    bands = np.stack([np.full(n, 1.0), np.full(n, 4.0), np.full(n, -1.0)])
    of_bands, of_b = grad(lambda ab, b: fnp.sum(linalg.solve_banded((1, 1), ab, b) ** 2), (0, 1))(bands, np.ones(n))
    assert of_bands.shape == (3, n)
    assert of_b[n // 2] == pytest.approx(2 / 16, rel=1e-12)  # the solution inside is 1 / 4


def test_polar_derivatives_at_repeated_singular_values():
    x = 2 * np.eye(2)
    t = np.array([[0.3, 0.5], [-0.1, 0.7]])
    u, p = jvp(linalg.polar, (x,), (t,))[1]
    assert np.allclose(u, (t - t.T) / 4, atol=1e-14)
    assert np.allclose(p, (t + t.T) / 2, atol=1e-14)


def test_generalized_eigenproblem_pairs():
    w, v = traced(lambda a, b: linalg.eigh(a, b, type=3), A, np.diag([1.0, 2.0, 3.0]))
    want = sl.eigh(A, np.diag([1.0, 2.0, 3.0]), type=3)
    assert np.allclose(w, want[0], rtol=1e-12)
    assert np.allclose(v * v, want[1] * want[1], rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda a: linalg.solve(a, B, assume_a="round"), ValueError, "assume_a"),
        (lambda a: linalg.solve(a, np.ones(2)), ValueError, "a row for each of 3 equations"),
        (lambda a: linalg.inv(a[:2]), np.linalg.LinAlgError, "square"),
        (lambda a: linalg.solve_triangular(a, B, trans=3), ValueError, "trans"),
        (lambda a: linalg.solve_banded((1, 0), a, B), ValueError, "diagonals"),
        (lambda a: linalg.qr(a, mode="raw"), NotDifferentiableError, "raw"),
        (lambda a: linalg.qr(a, mode="half"), ValueError, "mode"),
        (lambda a: linalg.polar(a, "up"), ValueError, "side"),
        (lambda a: linalg.eig(a, a, homogeneous_eigvals=True), NotDifferentiableError, "homogeneous_eigvals"),
        (lambda a: linalg.qz(a, a, sort="lhp"), ValueError, "ordqz"),
        (lambda a: linalg.ordqz(a - a.T, a + a.T), NotDifferentiableError, "output='complex'"),
        (lambda a: linalg.pinv(a, rtol=-1.0), ValueError, "tolerances"),
        (lambda a: linalg.orthogonal_procrustes(a, B), ValueError, "one shape"),
        (lambda a: linalg.solve_discrete_lyapunov(a, a, "guess"), ValueError, "method"),
        (lambda a: linalg.companion(a[0, :1]), ValueError, "coefficients"),
        (lambda a: linalg.leslie(a[0], a[0]), ValueError, "Incorrect lengths"),
        (lambda a: linalg.convolution_matrix(a[0], 0), ValueError, "n must be a positive"),
        (lambda a: linalg.khatri_rao(a, a[:, :2]), ValueError, "columns"),
        (lambda a: linalg.lu(a[0]), ValueError, "matrix"),
    ],
)
def test_errors_name_the_problem(call, error, says):
    with pytest.raises(error, match=says):
        vjp(call, A)


@pytest.mark.parametrize("name", ["cossin", "null_space", "nothing"])
def test_missing_functions_raise(name):
    with pytest.raises(AttributeError, match=f"'{name}'"):
        getattr(linalg, name)


def test_riccati_equations_in_batches_and_complex():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 2)) + 0j
    q, r, e, s = np.eye(3) + 0j, np.eye(2) + 0j, a[0] + 4 * np.eye(3), 0.1 * b
    t = tuple(rng.normal(size=m.shape) + 1j * rng.normal(size=m.shape) for m in (a[0], b, q, r, e, s))
    t = (*t[:2], t[2] + t[2].conj().T, t[3] + t[3].conj().T, *t[4:])
    for name in ("solve_continuous_are", "solve_discrete_are"):
        ours, theirs = getattr(linalg, name), getattr(sl, name)
        batch = vmap(lambda a, ours=ours: ours(a, b, q, r))(a)
        np.testing.assert_allclose(traced(lambda a, ours=ours: ours(a, b, q, r), a), batch, rtol=1e-9)
        np.testing.assert_allclose(batch[1], theirs(a[1], b, q, r), rtol=1e-9)
        value, moved = jvp(ours, (a[0], b, q, r, e, s), t)
        near = [theirs(*[m + h * d for m, d in zip((a[0], b, q, r, e, s), t, strict=True)]) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(value, theirs(a[0], b, q, r, e, s), rtol=1e-9)
        np.testing.assert_allclose(moved, (near[0] - near[1]) / 2e-6, rtol=1e-6, atol=1e-7)


#: Whether SciPy takes batches of matrices where it took one matrix before.
TAKES_BATCHES = at_least(scipy, "1.16.0")


@pytest.mark.parametrize("solve", [sl.solve_continuous_are, sl.solve_discrete_are])
def test_riccati_equations_of_a_batch_beside_one_matrix_under_vmap(solve):
    a, b = np.stack([A, A.T, -A]) / 7 if TAKES_BATCHES else A / 7, A[:, :2] / 7
    slope = lambda a, b: jvp(lambda a, b: solve(a, b, np.eye(3), np.eye(2)), (a, b), (a, b))
    found = vmap(slope)(np.stack([a, a / 2]), np.stack([b, b / 3]))
    want = [np.stack(parts) for parts in zip(slope(a, b), slope(a / 2, b / 3), strict=True)]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


def test_riccati_equation_wrongly_balanced_by_scipy():
    a, e, b = A[:2, :2], np.eye(2) + A[:2, :2] / 9, np.array([[1.0], [-0.3]])
    q, r = np.diag([3.0, 1.0]), np.eye(1)
    x = linalg.solve_continuous_are(a, b, q, r, e)
    gain = b.T @ x @ e
    assert np.allclose(a.T @ x @ e + e.T @ x @ a + q, gain.T @ gain, rtol=1e-9)
    assert np.allclose(x, sl.solve_continuous_are(a, b, q, r, e, balanced=False), rtol=1e-9)


def test_structured_systems():
    c, b = np.array([4.0, 1.0, 0.5]), np.arange(6.0).reshape(3, 2)
    for axes in ({}, {"baxis": 1, "outaxis": -1}):
        right = b.T if axes else b
        want = sl.solve_circulant(c, right, **axes)
        np.testing.assert_allclose(traced(lambda c, x=right, k=axes: linalg.solve_circulant(c, x, **k), c), want)
    singular = np.array([1.0, -1.0, 0.0])
    want = sl.solve_circulant(singular, b[:, 0], singular="lstsq")
    got = traced(lambda c: linalg.solve_circulant(c, b[:, 0], singular="lstsq"), singular)
    np.testing.assert_allclose(got, want, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        traced(lambda c: linalg.solve_circulant(c, b), singular)
    rank = traced(lambda a: linalg.pinvh(a, return_rank=True)[0], np.diag([2.0, 0.0]))
    np.testing.assert_allclose(rank, np.diag([0.5, 0.0]))
    with pytest.raises(NotDifferentiableError, match="select='v'"):
        grad(lambda d: linalg.eigh_tridiagonal(d, d[1:], select="v", select_range=(0, 1))[0][0])(c)
    np.testing.assert_array_equal(linalg.hilbert(3), sl.hilbert(3))


@pytest.mark.parametrize("norm", [sl.norm, linalg.norm])
def test_norms_computed_by_blas_and_lapack(norm):
    x = np.array([0.3, -0.5, 0.9, 0.2])
    for order in (None, 2, 1, np.inf, 3):
        slope, want = grad(lambda x, o=order: norm(x, o))(x), grad(lambda x, o=order: fnp.linalg.norm(x, o))(x)
        np.testing.assert_array_equal(slope, want)
    for order in (1, np.inf, "fro"):
        for matrix in (x.reshape(2, 2), x.reshape(2, 2).T):
            slope = grad(lambda a, o=order: norm(a, o))(matrix)
            np.testing.assert_array_equal(slope, grad(lambda a, o=order: fnp.linalg.norm(a, o))(matrix))
    np.testing.assert_allclose(grad(norm)(x), x / np.linalg.norm(x))
    with pytest.raises(ValueError, match="infs or NaNs"):
        grad(lambda x: norm(x * np.inf))(x)


@pytest.mark.parametrize("norm", [sl.norm, linalg.norm])
@pytest.mark.parametrize("size", [np.float32(1e20), np.float32(1e-25), 1e200, 1e-200])
def test_norms_of_vectors_whose_squares_overflow(norm, size):
    x = np.array([3.0, 4.0]) * size
    value, slope = value_and_grad(norm)(x)
    rtol = 1e-6 if x.dtype == np.float32 else 1e-15
    np.testing.assert_allclose(value, sl.norm(x), rtol=rtol)
    np.testing.assert_allclose(slope, [0.6, 0.8], rtol=rtol)
    np.testing.assert_allclose(vmap(jacfwd(norm))(np.stack([x, x[::-1]])), [[0.6, 0.8], [0.8, 0.6]], rtol=rtol)
    curvature = np.array([[0.128, -0.096], [-0.096, 0.072]])
    np.testing.assert_allclose(jacfwd(grad(norm))(x) * size, curvature, rtol=rtol)


def test_arguments_of_installed_scipy_version():
    def det(a):
        return fnp.linalg.det(a)

    det.__module__ = "funcgrad.scipy.linalg"
    det = mirrors(det)
    assert grad(lambda x: det(x, check_finite=True))(np.array([[2.0]])) == 1.0
    with pytest.raises(TypeError, match="check_finite"):
        grad(lambda x: det(x, check_finite=False))(np.array([[2.0]]))


def test_singular_pencils_raise():
    a, b = np.array([[2.0, 0.3], [0.1, 1.5]]), np.diag([1.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError, match=r"b must have an inverse.*Take eig\(b, a\)"):
        vjp(lambda a: sl.eigvals(a, b), a)


@pytest.mark.parametrize("name", ["inv", "cholesky", "eigvals", "svdvals", "pinv", "sqrtm"])
def test_extended_precision_is_computed_in_double_as_by_scipy(name):
    def f(a):
        return np.abs(getattr(sl, name)(a @ a.T)).sum()

    value, slope = jvp(f, (A.astype(np.longdouble),), (A.astype(np.longdouble),))
    np.testing.assert_allclose((value, slope), jvp(f, (A,), (A,)), rtol=1e-12)
    assert value.dtype == f(A.astype(np.longdouble)).dtype == np.float64


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate:RuntimeWarning")
def test_logm_of_float32_returns_float64():
    a = np.array([[2.0, 0.3], [0.1, 1.5]], np.float32)
    want = scipy.linalg.logm(a)
    found = vjp(scipy.linalg.logm, a)[0]
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-6)


SIGNS = {
    "eigh": lambda a, b: scipy.linalg.eigh(a),
    "upper": lambda a, b: scipy.linalg.eigh(a, lower=False),
    "driver": lambda a, b: scipy.linalg.eigh(a, driver="evd"),
    "by index": lambda a, b: scipy.linalg.eigh(a, subset_by_index=[0, 1]),
    "by value": lambda a, b: scipy.linalg.eigh(a, subset_by_value=[-1.0, 1.0]),
    "complex": lambda a, b: scipy.linalg.eigh(a * (1 + 0j) + 1j * np.tri(len(a), k=-1) - 1j * np.tri(len(a), k=-1).T),
    "pair": lambda a, b: scipy.linalg.eigh(a, b),
    "upper pair": lambda a, b: scipy.linalg.eigh(a, b, lower=False),
    "pair by index": lambda a, b: scipy.linalg.eigh(a, b, subset_by_index=[1, 1]),
    "tridiagonal": lambda a, b: scipy.linalg.eigh_tridiagonal(a[0], a[0, 1:]),
    "part of tridiagonal": lambda a, b: scipy.linalg.eigh_tridiagonal(a[0], b[0, 1:], select="i", select_range=(0, 1)),
    "banded": lambda a, b: scipy.linalg.eig_banded(a[:2], lower=True),
    "wider band": lambda a, b: scipy.linalg.eig_banded(a[:3], lower=True),
    "upper band": lambda a, b: scipy.linalg.eig_banded(a[:3]),
    "part of a band": lambda a, b: scipy.linalg.eig_banded(a[:2], select="i", select_range=(0, 1)),
    "part of a lower band": lambda a, b: scipy.linalg.eig_banded(a[:2], True, select="v", select_range=(-1.0, 1.5)),
    "part of a complex band": lambda a, b: scipy.linalg.eig_banded(a[:2] * (1 + 0.5j), select="i", select_range=(1, 1)),
    "general pair": lambda a, b: scipy.linalg.eig(a + np.triu(a), b + np.tri(len(a))),
    "left": lambda a, b: scipy.linalg.eig(a + np.triu(a), b + np.tri(len(a)), left=True)[:2],
}
if TAKES_BATCHES:
    SIGNS["pairs"] = lambda a, b: [x[1] for x in scipy.linalg.eig(np.stack([a, a + np.triu(a)]), b + np.tri(len(a)))]


def test_eigenvalues_of_pairs_have_the_order_of_scipy():
    found_of = scipy.linalg.eigvals
    for seed in range(40):
        a, b = np.random.default_rng(seed).normal(size=(2, 4, 4))
        np.testing.assert_allclose(vjp(found_of, a, b)[0], found_of(a, b), rtol=1e-8)
        np.testing.assert_allclose(vmap(found_of, (0, None))(np.stack([a, a.T]), b)[1], found_of(a.T, b), rtol=1e-8)


def test_cholesky_factors_of_a_batch_computed_before():
    a = np.random.default_rng(0).normal(size=(2, 3, 3) if TAKES_BATCHES else (3, 3))
    factor, lower = scipy.linalg.cho_factor(a @ a.swapaxes(-1, -2) + np.eye(3), lower=True)
    b = np.arange(3.0)
    want = scipy.linalg.cho_solve((factor, lower), b)
    value, tangent = jvp(lambda c, b: scipy.linalg.cho_solve((c, lower), b), (factor, b), (factor, b))
    np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(tangent, -want, rtol=1e-12)  # want by b, and -want by each of the two factors


def test_batches_of_expm_frechet_broadcast():
    shapes = ((1, 3, 2, 2), (2, 1, 2, 2)) if TAKES_BATCHES else ((2, 2), (2, 2))
    a, e = [np.random.default_rng(seed).normal(size=shape) for seed, shape in enumerate(shapes)]
    found = vjp(scipy.linalg.expm_frechet, a, e)[0]
    for part, theirs in zip(found, scipy.linalg.expm_frechet(a, e), strict=True):
        np.testing.assert_allclose(part, theirs, rtol=1e-10)


@pytest.mark.parametrize("name", SIGNS)
def test_eigenvectors_of_traced_matrices_have_the_signs_of_scipy(name):
    rng = np.random.default_rng(0)
    for n in (2, 3, 3, 4, 5, 6):
        a, b = rng.normal(size=(2, n, n))
        a, b = a + a.T, b @ b.T + np.eye(n)
        w, v = SIGNS[name](a, b)
        (traced_w, traced_v), _ = jvp(lambda a, b=b: SIGNS[name](a, b), (a,), (a,))
        np.testing.assert_allclose(traced_w, w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(traced_v, v, rtol=1e-8, atol=1e-10)


OF_NUMBERS = {
    "cholesky": (sl.cholesky, 1),
    "expm": (sl.expm, 1),
    "solve": (sl.solve, 2),
    "solve_continuous_are": (sl.solve_continuous_are, 4),
    "solve_continuous_lyapunov": (sl.solve_continuous_lyapunov, 2),
    "solve_discrete_are": (sl.solve_discrete_are, 4),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_number_counts_as_matrix_where_it_does_in_scipy(name):
    fun, count = OF_NUMBERS[name]
    numbers = (2.0, 1.5, 3.0, 1.2)[:count]
    for i in range(count):
        of_one = lambda x, i=i: fun(*numbers[:i], x, *numbers[i + 1 :])
        value, tangent = jvp(of_one, (numbers[i],), (1.0,))
        np.testing.assert_allclose(value, fun(*numbers), rtol=1e-12, strict=True)
        np.testing.assert_allclose(tangent, differences(of_one, numbers[i]), rtol=1e-7)


SQUARE = np.array([[2.0, -1.0, 0.3], [0.4, 1.5, 0.2], [-0.7, 0.1, 0.9]])
OPTIONS = {
    "lu, permuted": lambda a: sl.lu(a[::-1], permute_l=True),
    "lu, permuted, tall": lambda a: sl.lu(np.concatenate([a, a @ a])[None], permute_l=True),
    "lu, permuted, wide": lambda a: sl.lu(a[:2], permute_l=True),
    "whole power": lambda a: sl.fractional_matrix_power(a, 3.0),
    "inverse power": lambda a: sl.fractional_matrix_power(a, -2),
    "pinv with atol": lambda a: sl.pinv(a, atol=1.0),
    "pinv with both tolerances": lambda a: sl.pinv(a, atol=0.5, rtol=0.2),
    "pinv of zeros": lambda a: sl.pinv(0 * a, atol=1.0, return_rank=True),
}
if TAKES_BATCHES:
    OPTIONS["pinv and rank of a batch"] = lambda a: sl.pinv(np.stack([a, 0 * a]), atol=1.0, return_rank=True)


@pytest.mark.parametrize("name", OPTIONS)
def test_less_common_options_match_scipy(name):
    fun = OPTIONS[name]
    for got, want in zip(*map(jax.tree.leaves, (traced(fun, SQUARE), fun(SQUARE))), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)
    first = lambda a: 1.0 * tree.leaves(fun(a))[0]
    np.testing.assert_allclose(jacfwd(first)(SQUARE), differences(first, SQUARE), atol=1e-7)
    np.testing.assert_allclose(jacrev(first)(SQUARE), jacfwd(first)(SQUARE), atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), *[(2, 0, 3)] * TAKES_BATCHES])
def test_lu_and_pinv_of_empty_matrices(shape):
    a = np.zeros(shape)
    for fun in (sl.lu, lambda a: sl.lu(a, permute_l=True), lambda a: sl.pinv(a, atol=0.5), sl.lu_factor):
        got, want = traced(lambda a, fun=fun: [1.0 * part for part in fun(a)], a), [1.0 * part for part in fun(a)]
        assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]


def test_lengths_of_structured_systems_must_fit():
    with pytest.raises(ValueError, match="c and b differ in length"):
        grad(lambda c: linalg.solve_circulant(c, np.ones(2)).sum())(np.ones(3))
    with pytest.raises(ValueError, match="e must be one shorter than d"):
        grad(lambda d: linalg.eigh_tridiagonal(d, np.ones(3))[0].sum())(np.ones(3))


@pytest.mark.parametrize("lower", [False, True])
def test_exponential_of_a_badly_scaled_triangular_matrix(lower):
    """Large elements off the diagonal need no more squarings than those on it, each of which would lose digits."""

    def f(a):
        x = fnp.stack([fnp.stack([a, 1e8 * a]), fnp.stack([0.0 * a, -a])])
        return linalg.expm(x.T if lower else x)

    nothing = 1e-23  # rounding of the zero, which is 1e8 times as small as in the balanced matrix
    a = 0.7
    value = np.array([[np.exp(a), 1e8 * np.sinh(a)], [0.0, np.exp(-a)]])
    slope = np.array([[np.exp(a), 1e8 * np.cosh(a)], [0.0, -np.exp(-a)]])
    value, slope = (value.T, slope.T) if lower else (value, slope)
    np.testing.assert_allclose(f(a), value, rtol=1e-14, atol=nothing)
    np.testing.assert_allclose(jacfwd(f)(a), slope, rtol=1e-14, atol=nothing)
    np.testing.assert_allclose(jacrev(f)(a), slope, rtol=1e-14, atol=nothing)
    np.testing.assert_allclose(vmap(jacfwd(jacrev(f)))(np.array([0.2, a]))[1], value, rtol=1e-14, atol=nothing)


def test_angles_of_subspaces_with_a_common_direction():
    """The common direction has no influence on the other angle, whatever bases span the subspaces."""

    def f(t):
        A = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
        B = np.array([[1.0, 0.0], [0.0, np.cos(t)], [0.0, np.sin(t)], [0.0, 0.0]])
        return sl.subspace_angles(A, B)

    for t in (0.3, 1.2):
        np.testing.assert_allclose(traced(f, t), [t, 0.0], rtol=1e-14, atol=1e-14)
        for derivative, want in ((jacfwd(f), [1.0, 0.0]), (jacrev(f), [1.0, 0.0]), (jacfwd(jacrev(f)), [0.0, 0.0])):
            np.testing.assert_allclose(derivative(t), want, atol=1e-13)
            np.testing.assert_allclose(vmap(derivative)(np.array([0.1, t]))[1], want, atol=1e-13)


@pytest.mark.parametrize("forms", [linalg.schur, lambda a: linalg.qz(a, np.eye(len(a)))])
def test_derivatives_of_triangular_forms_take_steps_for_columns_not_for_pairs(forms):
    def steps(n):
        a = np.diag(np.arange(1.0, n + 1)) + np.sin(np.arange(n))[:, None] * np.sin(np.arange(n)) / n
        return sum(1 for _ in trace(lambda s: jvp(lambda s: forms(s * a)[0], (s,), (1.0,))[1])(1.1))

    assert steps(20) < 2.1 * steps(10)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [2.0, 4.0]], [[2.0, 1.0, 1.0], [1.0, 1.0, 1.0], [4.0, 2.0, 2.0]]])
def test_lu_whose_last_pivot_is_zero(rows):
    a = np.array(rows)

    def f(a):
        low, up = sl.lu(a)[1:]
        return (low**2 * np.arange(1.0, low.size + 1).reshape(low.shape)).sum() + (up * low.T).sum() + up[-1, -1] ** 2

    assert sl.lu(a)[2][-1, -1] == 0.0
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(grad(f)(a), differences(f, a), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(jacfwd(f)(a), grad(f)(a), atol=1e-12)
    np.testing.assert_allclose(jacfwd(grad(f))(a), jacrev(grad(f))(a), atol=1e-10)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([a, 2 * a]))[0], grad(f)(a), atol=1e-12)
