"""Singular or non-smooth determinants, inverses, systems, Cholesky factors and norms, and refusals.

The expected numbers at kinks are JAX's; each test compares with JAX, unless it states a reason.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from helpers import at_least, close, complex_normal, normal

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jvp, vjp, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.interop import from_numpy
from funcgrad.numpy.linalg import LinAlgError
from funcgrad.primitives.solving import solve_triangular

same = partial(close, rtol=1e-13)

NAN, INF = float("nan"), float("inf")
la = fnp.linalg


# ---- determinants ------------------------------------------------------------------------------------------


def minors(x):
    """Return the cofactors by their definition."""
    n = len(x)
    signs = (-1.0) ** np.add.outer(np.arange(n), np.arange(n))
    drop = lambda i, j: np.delete(np.delete(x, i, 0), j, 1)
    return signs * [[np.linalg.det(drop(i, j)) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("lost", [0, 1, 2, 6])
def test_gradient_of_det_is_cofactor_matrix(n, lost):
    rank = max(n - lost, 0)
    x = normal(n, rank) @ normal(rank, n, seed=1)
    want = minors(x)
    same(grad(la.det)(x), want, rtol=1e-12)
    same(jacfwd(la.det)(x), want, rtol=1e-12)
    same(jax.grad(jnp.linalg.det)(jnp.array(x)), want, rtol=1e-12)
    same(vmap(grad(la.det))(np.stack([x, np.eye(n), x])), [want, np.eye(n), want], rtol=1e-12)


def test_gradient_of_det_of_integer_values_is_exact():
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_array_equal(grad(la.det)(x), [[4.0, -2.0], [-2.0, 1.0]])
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    np.testing.assert_array_equal(grad(la.det)(x), [[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]])


def along(n, order, x, t):
    """Return derivative number ``order`` of ``det(x + s t)`` in s at 0, from the coefficients of that polynomial."""
    s = np.arange(n + 1.0) - n / 2
    coefficients = np.polynomial.polynomial.polyfit(s, [np.linalg.det(x + v * t) for v in s], n)
    return coefficients[order] * np.prod(np.arange(1, order + 1))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("lost", [0, 1, 2, 3, 5])
def test_second_derivative_of_det(n, lost):
    rank = max(n - lost, 0)
    x, t = normal(n, rank) @ normal(rank, n, seed=1), normal(n, n, seed=2)
    want = along(n, 2, x, t)
    slope = lambda s: la.det(x + s * t)
    same(grad(grad(slope))(0.0), want, rtol=1e-10)
    same(jacfwd(jacfwd(slope))(0.0), want, rtol=1e-10)
    same(np.sum(t * jvp(grad(la.det), (x,), (t,))[1]), want, rtol=1e-10)


@pytest.mark.parametrize(("n", "lost"), [(2, 2), (3, 0), (3, 3), (4, 0), (6, 0)])
def test_third_derivative_of_det(n, lost):
    x, t = normal(n, n - lost) @ normal(n - lost, n, seed=1), normal(n, n, seed=2)
    slope = lambda s: la.det(x + s * t)
    want = along(n, 3, x, t) if n > 2 else 0.0
    same(grad(grad(grad(slope)))(0.0), want, rtol=1e-9)
    same(jacfwd(jacfwd(jacfwd(slope)))(0.0), want, rtol=1e-9)


def test_hessian_of_det_where_jax_has_zero():
    x = np.diag([1.0, 2.0, 0.0, 0.0])
    found = hessian(la.det)(x)
    assert found[2, 2, 3, 3] == pytest.approx(2.0)
    assert found[2, 3, 3, 2] == pytest.approx(-2.0)
    same(jax.jit(hessian(la.det))(jnp.array(x)), found)
    assert jax.hessian(jnp.linalg.det)(jnp.array(x))[2, 2, 3, 3] == 0.0


def test_det_of_empty_and_nan_matrices():
    out, pullback = vjp(la.det, np.ones((2, 0, 0)))
    same(out, [1.0, 1.0])
    assert pullback(np.ones(2))[0].shape == (2, 0, 0)
    x = np.stack([np.eye(4), np.zeros((4, 4))])
    x[1, 2, 3] = NAN
    with np.errstate(all="ignore"):
        found = vmap(grad(la.det))(x)
    same(found[0], np.eye(4))
    assert np.isnan(found[1]).all()


def test_det_of_float32_keeps_dtype():
    x = np.ones((4, 4), np.float32)
    assert grad(la.det)(x).dtype == np.float32
    assert jvp(grad(la.det), (x,), (x,))[1].dtype == np.float32


@pytest.mark.parametrize(
    ("x", "want"),
    [
        ([[1.0, 2.0], [2.0, 4.0]], [[INF, -INF], [-INF, INF]]),
        ([[0.0, 0.0], [0.0, 0.0]], [[NAN, NAN], [NAN, NAN]]),
    ],
)
def test_slogdet_of_a_singular_matrix(x, want):
    x = np.array(x)
    logarithm = lambda x: la.slogdet(x)[1]
    value, pullback = vjp(logarithm, x)
    assert value == -INF
    same(pullback(1.0)[0], want)
    with np.errstate(invalid="ignore"):
        tangent = jvp(logarithm, (x,), (np.abs(x),))[1]
    assert np.isnan(tangent) == np.isnan(want[0][0]) or np.isinf(want[0][0])
    if at_least(jax, "0.10.0"):  # older versions gave infinities the opposite sign
        same(jax.grad(lambda x: jnp.linalg.slogdet(x)[1])(jnp.array(x)), want)
    # the other matrix of the batch keeps its derivative
    batch = vmap(grad(logarithm))(np.stack([2 * np.eye(2), x]))
    same(batch, [np.eye(2) / 2, want])


def test_slogdet_of_a_singular_matrix_with_four_rows():
    found = grad(lambda x: la.slogdet(x)[1])(np.diag([1.0, 2.0, 3.0, 0.0]))
    assert found[3, 3] == INF
    assert not np.isfinite(found).any()


def test_slogdet_is_a_named_tuple():
    x = np.array([[0.0, 2.0], [1.0, 0.0]])
    for found in (la.slogdet(x), jvp(la.slogdet, (x,), (x,))[1], vmap(la.slogdet)(x[None])):
        assert type(found) is type(np.linalg.slogdet(x))
        assert found._fields == ("sign", "logabsdet")


def test_sign_of_complex_determinant_has_derivative():
    x, t = complex_normal(3, 3), complex_normal(3, 3, seed=1)
    sign = lambda x: la.slogdet(x).sign
    value, pushed = jvp(sign, (x,), (t,))
    assert abs((pushed * np.conj(value)).real) < 1e-14
    assert abs(pushed) > 0.1
    h = 1e-6
    same(pushed, (sign(x + h * t) - sign(x - h * t)) / (2 * h), rtol=1e-8)
    check_grads(la.slogdet, (x,), order=2)


# ---- inverses and systems ----------------------------------------------------------------------------------


@pytest.mark.parametrize("singular", [np.zeros((2, 2)), np.ones((3, 3))])
@pytest.mark.parametrize("transform", [grad, vmap])
def test_singular_matrices_raise(singular, transform):
    n = len(singular)
    x = np.stack([np.eye(n), singular]) if transform is vmap else singular
    for fun in (la.inv, lambda x: la.solve(x, np.ones(n)), lambda x: la.matrix_power(x, -2)):
        with pytest.raises(LinAlgError, match="Singular"):
            transform(lambda x: fnp.sum(fun(x)))(x)  # noqa: B023


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky"])
@pytest.mark.parametrize("shape", [(2, 3), (3,), ()])
def test_nonsquare_matrices_raise(name, shape):
    x = np.ones(shape)
    with pytest.raises(LinAlgError):
        getattr(np.linalg, name)(x)
    with pytest.raises(LinAlgError, match=rf"{name}: square matrices .* got float64\[.*Check"):
        jvp(getattr(la, name), (x,), (x,))


def test_batch_of_vectors_is_not_a_matrix():
    with pytest.raises(LinAlgError, match="square matrices"):
        vmap(la.inv)(np.eye(3))
    with pytest.raises(LinAlgError, match="square matrices"):
        vmap(lambda x: la.matrix_power(x, 2))(np.eye(3))


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "cholesky"])
def test_half_precision_raises_as_numpy(name):
    x = np.eye(2, dtype=np.float16)
    with pytest.raises(TypeError, match="float16 is unsupported"):
        getattr(la, name)(x)
    with pytest.raises(TypeError, match="float16 is unsupported"):
        jvp(getattr(la, name), (x,), (x,))


def test_integers_become_floats():
    x = np.stack([np.array([[2, 1], [1, 1]]), np.eye(2, dtype=int)])
    for name in ("inv", "det", "slogdet", "cholesky"):
        want = getattr(np.linalg, name)(x)
        same(vmap(getattr(la, name))(x), want)
    right = np.array([1.0, 2.0])
    same(grad(lambda b: fnp.sum(la.solve(x[0], b)))(right), np.linalg.inv(x[0]).sum(0))


def test_right_hand_side_is_vector_only_with_one_axis():
    x, b = normal(3, 3, 3), normal(3, 3)
    want = np.linalg.solve(x, b)  # three systems with all columns of b, not three vectors
    same(vjp(la.solve, x, b)[0], want)
    same(vmap(la.solve)(x, b), np.linalg.solve(x, b[..., None])[..., 0])
    assert grad(lambda b: fnp.sum(la.solve(x, b)))(b).shape == b.shape
    for bad in (np.ones(2), np.ones((2, 3)), np.float64(1.0), np.ones((3, 2, 3))):
        with pytest.raises(ValueError, match="solve: as many right-hand sides"):
            jvp(lambda x: la.solve(x, bad), (x[0],), (x[0],))  # noqa: B023
        with pytest.raises(ValueError, match=r"solve1?: Input operand 1"):
            np.linalg.solve(x[0], bad)


def test_shared_matrix_is_factored_once(monkeypatch):
    calls = []
    plain = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda x, y: calls.append(x.shape) or plain(x, y))
    x, b = normal(3, 3), normal(7, 3)
    _, pullback = vjp(lambda x, b: vmap(la.solve, in_axes=(None, 0))(x, b), x, b)
    same(pullback(b)[1], plain(x.T, b.T).T)
    assert calls == [(3, 3), (3, 3)]  # one solve forward, one backward for both arguments


def test_invalid_tensorsolve_and_tensorinv_raise():
    x = np.ones((2, 3, 4))
    with pytest.raises(LinAlgError, match="tensorsolve: as many equations"):
        jvp(lambda x: la.tensorsolve(x, np.ones(2)), (x,), (x,))
    with pytest.raises(ValueError, match="tensorinv: ind"):
        jvp(lambda x: la.tensorinv(x, 0), (x,), (x,))
    with pytest.raises(LinAlgError):
        jvp(lambda x: la.tensorinv(x, 1), (x,), (x,))


@pytest.mark.parametrize(("lower", "transposed", "unit"), list(itertools.product([True, False], repeat=3)))
@pytest.mark.parametrize("kind", [normal, complex_normal])
def test_triangular_systems(lower, transposed, unit, kind):
    options = {"lower": lower, "transposed": transposed, "unit_diagonal": unit}
    solve = lambda x, y: solve_triangular(x, y, **options)
    x, y = kind(3, 3) + 3 * np.eye(3), kind(2, 3, 2, seed=1)
    part = np.tril(x) if lower else np.triu(x)
    if unit:
        np.fill_diagonal(part, 1.0)
    spoilt = np.where(np.tril(np.ones((3, 3), bool), -1) if not lower else np.triu(np.ones((3, 3), bool), 1), NAN, x)
    matrix = part.T if transposed else part
    same(solve(spoilt, y), np.linalg.solve(matrix, y))
    same(vmap(solve, in_axes=(None, 0))(x, y), np.linalg.solve(matrix, y))
    same(vmap(solve, in_axes=(0, None))(np.stack([x, x]), y[0]), np.linalg.solve(matrix, np.stack([y[0], y[0]])))
    same(jax.jit(solve)(jnp.array(x), jnp.array(y)), np.linalg.solve(matrix, y))
    check_grads(solve, (x, y), order=2)


def test_triangular_systems_use_substitution():
    """Substitution exchanges no rows, so a tiny pivot gives the exact answer."""
    x, y = np.array([[1e-20, 0.0], [1.0, 1.0]]), np.array([[1e-20], [3.0]])
    options = {"lower": True, "transposed": False, "unit_diagonal": False}
    np.testing.assert_array_equal(solve_triangular(x, y, **options), [[1.0], [2.0]])


# ---- Cholesky factors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(upper):
    x = normal(3, 3)
    x = x @ x.T + np.eye(3)
    rest = np.tril(normal(3, 3, seed=1), -1)
    spoilt = x + (rest if upper else rest.T)
    factor = lambda x: la.cholesky(x, upper=upper)
    want = np.linalg.cholesky(x, upper=upper)
    value, pullback = vjp(factor, spoilt)
    np.testing.assert_array_equal(value, np.linalg.cholesky(spoilt, upper=upper))
    same(value, want)
    ct = normal(3, 3, seed=2)
    (found,), t = pullback(ct), normal(3, 3, seed=3)
    theirs = lambda x: jnp.linalg.cholesky(x, upper=upper)
    ours = jax.vjp(theirs, jnp.array(x))[1](jnp.array(ct))[0]
    tangent = jax.jvp(theirs, (jnp.array(x),), (jnp.array(t),))[1]
    # of a symmetric matrix the derivative is symmetric; else all of it is in the triangle that is read
    same(vjp(factor, x)[1](ct)[0], ours, rtol=1e-12)
    same(jvp(factor, (x,), (t,))[1], tangent, rtol=1e-12)
    one = (lambda x: np.triu(x) + np.triu(x, 1).T) if upper else (lambda x: np.tril(x) + np.tril(x, -1).T)
    same(found, (np.triu if upper else np.tril)(2 * ours) - np.diag(np.diag(ours)), rtol=1e-12)
    same(jvp(factor, (spoilt,), (t,))[1], jvp(factor, (x,), (one(t),))[1], rtol=1e-12)
    on_jax, pullback = jax.vjp(jax.jit(factor), jnp.array(spoilt))
    same(on_jax, want)
    same(pullback(jnp.array(ct))[0], found, rtol=1e-12)


ONE_TRIANGLE = {
    "cholesky": lambda a: np.linalg.cholesky(a),
    "upper cholesky": lambda a: np.linalg.cholesky(a.T, upper=True),
    "eigh": lambda a: np.linalg.eigh(a)[1] ** 2,
    "upper eigh": lambda a: np.linalg.eigh(a.T, "U")[0],
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "pinv": lambda a: np.linalg.pinv(a, hermitian=True),
    "svd": lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True),
    "scipy eigh": lambda a: scipy.linalg.eigh(a)[1] ** 2,
    "scipy eigvalsh": lambda a: scipy.linalg.eigvalsh(a),
}


@pytest.mark.parametrize("name", ONE_TRIANGLE)
@pytest.mark.parametrize("at", [0.5, 0.0])
def test_program_that_fills_the_triangle_that_is_read(name, at):
    weights = normal(3, 3)

    def loss(a):
        found = ONE_TRIANGLE[name](np.array([[2.0, 0.0, 0.0], [a, 3.0, 0.0], [a * a, 0.3 * a, 4.0]]))
        return (found * weights[: len(found)]).sum()

    h = 1e-4
    want = (8 * (loss(at + h) - loss(at - h)) - (loss(at + 2 * h) - loss(at - 2 * h))) / (12 * h)
    second = (loss(at + h) - 2 * loss(at) + loss(at - h)) / h**2
    same(grad(loss)(at), want, rtol=1e-9, atol=1e-10)
    same(jvp(loss, (at,), (1.0,))[1], want, rtol=1e-9, atol=1e-10)
    same(vmap(grad(loss))(np.array([at, 0.4])), [want, grad(loss)(0.4)], rtol=1e-9, atol=1e-10)
    same(hessian(loss)(at), second, rtol=1e-5, atol=1e-6)
    same(grad(grad(loss))(at), second, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ONE_TRIANGLE)
def test_one_triangle_of_jax_array_is_read(name):
    read = from_numpy(ONE_TRIANGLE[name])
    a = np.array([[2.0, 9.0, 9.0], [0.5, 3.0, 9.0], [0.1, 0.3, 4.0]])
    same(read(jnp.array(a)), ONE_TRIANGLE[name](a), rtol=1e-9, atol=1e-12)
    slope = jax.grad(lambda a: read(a).sum())(jnp.array(a))
    same(slope, grad(lambda a: read(a).sum())(a), rtol=1e-9, atol=1e-12)


def test_cholesky_of_invalid_matrix_raises():
    with pytest.raises(LinAlgError, match="positive definite"):
        grad(lambda x: fnp.sum(la.cholesky(x)))(-np.eye(2))


# ---- norms -------------------------------------------------------------------------------------------------

X = [2.0, -2.0, 0.0]
T = [[1.0, -2.0], [2.0, 1.0]]
ZERO, EYE = [[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
NANS = [[NAN, NAN], [NAN, NAN]]
r = 0.5**0.5


@pytest.mark.parametrize(
    ("x", "ord", "gradient", "tangent"),
    [
        ([0.0] * 3, None, [NAN] * 3, NAN),
        ([0.0] * 3, 2, [NAN] * 3, NAN),
        ([0.0] * 3, 3, [NAN] * 3, NAN),
        ([0.0] * 3, -1, [NAN] * 3, NAN),
        ([0.0] * 3, 1, [1.0] * 3, 7.0),
        ([0.0] * 3, INF, [1 / 6] * 3, 7 / 6),
        ([0.0] * 3, -INF, [1 / 3] * 3, 7 / 3),
        ([0.0] * 3, 0, [0.0] * 3, 0.0),
        (X, None, [r, -r, 0.0], -r),
        (X, 1, [1.0, -1.0, 1.0], 3.0),
        (X, INF, [0.5, -0.5, 0.0], -0.5),
        (X, -INF, [0.0, 0.0, 1.0], 4.0),
        (X, 0, [0.0] * 3, 0.0),
        (X, 0.5, [2.0, -2.0, INF], INF),
        (X, -1, [0.0, 0.0, NAN], NAN),
        (ZERO, "fro", NANS, NAN),
        (ZERO, 1, [[0.25, 0.25], [0.25, 0.25]], 0.5),
        (ZERO, -1, [[0.5, 0.5], [0.5, 0.5]], 1.0),
        (ZERO, INF, [[0.25, 0.25], [0.25, 0.25]], 0.5),
        (ZERO, -INF, [[0.5, 0.5], [0.5, 0.5]], 1.0),
        (EYE, 1, [[0.5, 0.5], [0.5, 0.5]], 1.0),
        (EYE, INF, [[0.5, 0.5], [0.5, 0.5]], 1.0),
        (T, 1, [[0.5, -0.5], [0.5, 0.5]], 3.0),
        (T, -INF, [[0.5, -0.5], [0.5, 0.5]], 3.0),
        (EYE, "nuc", EYE, 2.0),
        (EYE, 2, [[0.5, 0.0], [0.0, 0.5]], 1.0),
        (EYE, -2, [[0.5, 0.0], [0.0, 0.5]], 1.0),
    ],
)
def test_norm_at_kinks(x, ord, gradient, tangent):
    x = np.array(x)
    direction = np.array([1.0, 2.0, 4.0]) if x.ndim == 1 else np.array(T)
    ours, theirs = lambda x: la.norm(x, ord), lambda x: jnp.linalg.norm(x, ord)
    with np.errstate(all="ignore"):
        same(grad(ours)(x), gradient)
        same(jvp(ours, (x,), (direction,))[1], tangent)
    if x.any() or ord not in (1, INF) or at_least(jax, "0.10.0"):  # older versions mixed two conventions at 0
        same(jax.grad(theirs)(jnp.array(x)), gradient)
        same(jax.jvp(theirs, (jnp.array(x),), (jnp.array(direction),))[1], tangent)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, -1.0])
@pytest.mark.parametrize("norm", [fnp.linalg.norm, lambda x, p: fnp.linalg.vector_norm(x, ord=p)])
def test_derivative_in_the_power_of_a_norm(norm, p):
    x = np.array([1.0, -2.0, 3.0])
    for f in (lambda q: norm(x, q), lambda q: norm(x * q, q)):
        h = 1e-5
        assert grad(f)(p) == pytest.approx((f(p + h) - f(p - h)) / (2 * h), rel=1e-7)
        assert hessian(f)(p) == pytest.approx((grad(f)(p + h) - grad(f)(p - h)) / (2 * h), rel=1e-7)
        np.testing.assert_allclose(vmap(f)(np.array([p, 3.0])), [f(p), f(3.0)], rtol=1e-14)
    assert grad(lambda q: norm(np.array([0.0, 2.0]), q))(2.0) == 0.0
    with pytest.raises(InputError, match="matrices have norms for a few numbers only"):
        grad(lambda q: fnp.linalg.norm(np.eye(2), q))(p)


@pytest.mark.parametrize("p", [INF, -INF, 0.0])
@pytest.mark.parametrize("norm", [fnp.linalg.norm, lambda x, p: fnp.linalg.vector_norm(x, ord=p)])
def test_traced_power_of_a_norm_at_its_limits(norm, p):
    """NumPy defines these norms on their own; the formula of all powers gives other numbers there."""
    x = np.array([1.0, 0.5, -3.0, 0.0])
    value, pullback = vjp(norm, x, p)
    assert type(value) is np.float64
    assert value == np.linalg.norm(x, p)
    slope, in_power = pullback(1.0)
    np.testing.assert_array_equal(slope, grad(lambda x: norm(x, p))(x))
    assert in_power == 0.0
    np.testing.assert_allclose(vmap(lambda p: norm(x, p))(np.array([p, 3.0])), [value, norm(x, 3.0)], rtol=1e-14)


def test_norm_of_complex_numbers():
    x = np.array([3.0 + 4.0j, 0.0])
    same(grad(la.norm)(x), [0.6 - 0.8j, 0.0])
    same(grad(lambda x: la.norm(x, INF))(x), [0.6 - 0.8j, 0.0])
    same(grad(lambda x: la.norm(x, 1))(x), [0.6 - 0.8j, 0.0])


def test_norm_of_empty_arrays():
    for ord in (None, 1, INF, 0):
        assert vjp(lambda x: la.norm(x, ord), np.ones(0))[0] == 0.0  # noqa: B023
    assert grad(lambda x: la.norm(x, 1))(np.ones(0)).shape == (0,)
    with pytest.raises(ValueError, match="zero-size"):
        vjp(lambda x: la.norm(x, -INF), np.ones(0))


def test_norms_of_integers_and_half_precision():
    x = np.array([[3, 4], [6, 8]])
    same(vmap(la.norm)(x), [5.0, 10.0])
    same(vmap(lambda x: la.vector_norm(x, ord=1))(x), [7.0, 14.0])
    half = np.array([3.0, 4.0], np.float16)
    assert grad(la.norm)(half).dtype == np.float16
    assert vjp(la.norm, half)[0].dtype == np.float16
    assert vjp(lambda x: la.norm(x, 3), half)[0].dtype == np.float16


@pytest.mark.parametrize(
    ("message", "error", "fun"),
    [
        ("norm: vectors have no norm", ValueError, lambda x: la.norm(x[0], "fro")),
        ("vector_norm: vectors have no norm", ValueError, lambda x: la.vector_norm(x, ord="nuc")),
        ("norm: matrices have no such norm", ValueError, lambda x: la.norm(x, 3)),
        ("norm: matrices have no such norm", ValueError, lambda x: la.matrix_norm(x, ord=0)),
        ("norm: one axis for vectors, two", ValueError, lambda x: la.norm(x[None], 1)),
        ("norm: one axis for vectors, two", ValueError, lambda x: la.norm(x[0, 0], 1)),
        ("norm: a matrix has two different axes", ValueError, lambda x: la.norm(x, axis=(0, -2))),
        ("norm: axis is an integer", InputError, lambda x: la.norm(x, axis=[0, 1])),
        ("out of bounds", np.exceptions.AxisError, lambda x: la.norm(x, axis=2)),
        ("out of bounds", np.exceptions.AxisError, lambda x: la.matrix_norm(x[0])),
        ("cond: matrices without elements", LinAlgError, lambda x: la.cond(x[:, :0])),
        ("cond: square matrices", LinAlgError, lambda x: la.cond(x, 1)),
        ("matrix_rank: one tolerance", ValueError, lambda x: la.matrix_rank(x, 1.0, rtol=1.0)),
        ("matrix_power: square", LinAlgError, lambda x: la.matrix_power(x, 2)),
        ("matrix_power: the exponent", TypeError, lambda x: la.matrix_power(x[:, :2], 0.5)),
        ("multi_dot: two arrays", ValueError, lambda x: la.multi_dot([x])),
        ("multi_dot: factor 1", LinAlgError, lambda x: la.multi_dot([x, x[0], x])),
        ("multi_dot: columns meet rows", ShapeError, lambda x: la.multi_dot([x, x, x])),
        ("outer: two vectors", ShapeError, lambda x: la.outer(x, x)),
        ("cross: vectors have three", ShapeError, lambda x: la.cross(x[:, :2], x)),
    ],
)
def test_invalid_calls_raise(message, error, fun):
    x = np.ones((2, 3))
    with pytest.raises(error, match=message):
        jvp(fun, (x,), (x,))


# ---- condition numbers and ranks ---------------------------------------------------------------------------


def test_condition_of_singular_matrices():
    x = np.stack([np.diag([2.0, 1.0]), np.array([[1.0, 2.0], [2.0, 4.0]]), np.full((2, 2), NAN)])
    for p in (1, -1, INF, "fro"):
        fun = lambda x: la.cond(x, p)  # noqa: B023
        with np.errstate(all="ignore"):
            same(vmap(fun)(x), np.linalg.cond(x, p))
            value, pullback = vjp(fun, x[1])
            assert value == INF
            assert not np.isfinite(pullback(1.0)[0]).any()
            found = vjp(fun, x)[1](np.ones(3))[0]
        same(found[0], grad(fun)(x[0]))


def test_rank_of_vectors_and_tolerances():
    x = np.stack([np.diag([3.0, 2.0, 1.0]), np.eye(3)])
    assert vmap(la.matrix_rank)(np.zeros((2, 3))).tolist() == [0, 0]
    assert vmap(la.matrix_rank)(np.ones((2, 3))).tolist() == [1, 1]
    assert vmap(lambda x: la.matrix_rank(x, 1.5))(x).tolist() == [2, 0]
    assert jvp(lambda x: la.matrix_rank(x, rtol=np.array([0.5, 2.0])), (x,), (x,))[0].tolist() == [2, 0]


# ---- faces -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("inv", (np.eye(2),)),
        ("solve", (np.eye(2), np.ones(2))),
        ("det", (np.eye(2),)),
        ("cholesky", (np.eye(2),)),
        ("norm", (np.ones(2),)),
        ("vector_norm", (np.ones(2),)),
        ("matrix_norm", (np.eye(2),)),
        ("cond", (np.eye(2), 1)),
        ("matrix_power", (np.eye(2), 3)),
        ("tensorinv", (np.eye(4).reshape(2, 2, 4),)),
        ("tensorsolve", (np.eye(4).reshape(2, 2, 4), np.ones((2, 2)))),
        ("cross", (np.ones(3), np.arange(3.0))),
        ("outer", (np.ones(2), np.ones(3))),
        ("matmul", (np.eye(2), np.ones(2))),
        ("vecdot", (np.ones(2), np.ones(2))),
        ("tensordot", (np.eye(2), np.eye(2))),
        ("trace", (np.eye(2),)),
        ("diagonal", (np.eye(2),)),
        ("matrix_transpose", (np.eye(2),)),
    ],
)
def test_numpy_linalg_dispatches_on_tracers(name, args):
    theirs, ours = getattr(np.linalg, name), getattr(la, name)
    x, rest = args[0], args[1:]
    for fun in (theirs, ours):
        out, pullback = vjp(lambda x: fun(x, *rest), x)  # noqa: B023
        same(out, theirs(*args))
        same(pullback(np.ones_like(out))[0], vjp(lambda x: ours(x, *rest), x)[1](np.ones_like(out))[0])


def test_numpy_multi_dot_dispatches_on_tracers():
    x = normal(2, 3)
    same(grad(lambda x: np.linalg.multi_dot([np.ones(2), x, np.ones(3)]))(x), np.ones((2, 3)))


def test_matrix_power_zero_is_identity():
    x = normal(2, 3, 3)
    out, pullback = vjp(lambda x: la.matrix_power(x, 0), x)
    same(out, [np.eye(3)] * 2)
    same(pullback(x)[0], np.zeros((2, 3, 3)))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("axes", [{}, {"axisa": 0, "axisb": 1, "axisc": 0}])
def test_cross_product_of_plane_vectors_warns(n, m, axes):
    x, y = normal(n, 3) if axes else normal(3, n), normal(3, m, seed=1)
    cross = lambda x, y: fnp.cross(x, y, **axes)
    if np.lib.NumpyVersion(np.__version__) >= "2.5.0":  # since then NumPy refuses them
        for call in (np.cross, fnp.cross):
            with pytest.raises(ValueError, match="3-dimensional vectors"):
                call(x, y, **axes)
        with pytest.raises(ShapeError, match="append a zero"):
            vjp(cross, x, y)
        return
    with pytest.warns(DeprecationWarning, match="Arrays of 2-dimensional vectors are deprecated"):
        want = np.cross(x, y, **axes)
    with pytest.warns(DeprecationWarning, match="2-dimensional vectors are deprecated"):
        same(vjp(cross, x, y)[0], want)
    with pytest.warns(DeprecationWarning, match="2-dimensional vectors are deprecated"):
        check_grads(cross, (x, y), order=2)
