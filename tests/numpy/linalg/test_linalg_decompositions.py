"""Decompositions where values coincide or vanish, conventions, NumPy's results, and functions of matrices.

Derivatives that do not exist are NaN; functions that do not depend on an arbitrary choice have correct derivatives.
Expected numbers are JAX's where it has them (each test compares with JAX), formulas, or central differences.
"""

import decimal
import warnings

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
import scipy.linalg
from helpers import at_least, close, complex_normal, normal

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.linalg import LinAlgError

la = fnp.linalg
EYE = np.eye(3)


def all_nan(x):
    return bool(np.isnan(np.asarray(x)).all())


def unitary(n, seed=0, real=True):
    return np.linalg.qr(normal(n, n, seed=seed) if real else complex_normal(n, n, seed=seed))[0]


def with_eigenvalues(*w, seed=0, real=True):
    """Return a Hermitian matrix with the given eigenvalues in a random basis."""
    q = unitary(len(w), seed, real)
    a = (q * np.array(w)) @ q.conj().T
    return (a + a.conj().T) / 2


def with_singular_values(*s, rows, columns, seed=0, real=True):
    u, v = unitary(rows, seed, real)[:, : len(s)], unitary(columns, seed + 1, real)[:, : len(s)]
    return (u * np.array(s)) @ v.conj().T


def slope(f, x, t, h=1e-5):
    """Return the derivative of ``f`` at ``x`` along ``t``, by central differences of values."""
    return (f(x + h * t) - f(x - h * t)) / (2 * h)


def curvature(f, x, t, h=1e-4):
    return (f(x + h * t) - 2 * f(x) + f(x - h * t)) / h**2


def along(gradient, t):
    return np.sum(np.asarray(gradient) * t).real


def adjoint(x):
    return fnp.conj(fnp.swapaxes(x, -1, -2))


# ---- results -----------------------------------------------------------------------------------------------


A = normal(4, 3)
S = normal(3, 3)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("eigh", (S,), {}),
        ("eigh", (S, "U"), {}),
        ("eigh", (np.stack([S, S]), "l"), {}),
        ("eigvalsh", (S,), {"UPLO": "U"}),
        ("eig", (S,), {}),
        ("eig", (np.diag([1.0, 2.0]),), {}),
        ("eigvals", (S,), {}),
        ("svd", (A,), {}),
        ("svd", (A, False), {}),
        ("svd", (A, True, False), {}),
        ("svd", (S,), {"hermitian": True}),
        ("svd", (S, True, False, True), {}),
        ("svdvals", (A,), {}),
        ("qr", (A,), {}),
        ("qr", (A, "complete"), {}),
        ("qr", (A, "r"), {}),
        ("qr", (A, "raw"), {}),
        ("pinv", (A,), {}),
        ("pinv", (A, 0.5), {}),
        ("pinv", (S,), {"hermitian": True, "rtol": 0.3}),
        ("lstsq", (A, normal(4)), {}),
        ("lstsq", (A, normal(4, 2)), {"rcond": -1}),
        ("lstsq", (A.T, normal(3, 2), 0.1), {}),
    ],
)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex64, int, list])
def test_results_match_numpy(name, args, kwargs, kind):
    def cast(a):
        if not isinstance(a, np.ndarray):
            return a
        return a.tolist() if kind is list else (10 * a).astype(kind)

    args = [cast(a) for a in args]
    got, want = getattr(la, name)(*args, **kwargs), getattr(np.linalg, name)(*args, **kwargs)
    assert type(got) is type(want)
    for g, w in zip(*[(x if isinstance(x, tuple) else (x,)) for x in (got, want)], strict=True):
        assert type(g) is type(w)
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("name", ["eigh", "eig", "svd", "qr"])
def test_traced_results_are_named_tuples(name):
    found = vjp(getattr(la, name), S)[0]
    assert type(found) is type(getattr(np.linalg, name)(S))
    assert type(found) is type(vmap(getattr(la, name))(S[None]))


def test_traced_lstsq_matches_numpy():
    b = normal(4, 2)

    def fun(a):
        x, residuals, rank, s = la.lstsq(a, b)
        assert rank == 3
        return x, residuals, s

    want = np.linalg.lstsq(A, b)
    for g, w in zip(vjp(fun, A)[0], (want[0], want[1], want[3]), strict=True):
        close(g, w, 1e-14)
    lost = with_singular_values(2.0, 1.0, rows=4, columns=3)
    assert vjp(lambda a: la.lstsq(a, b)[1], lost)[0].shape == (0,)


def test_invalid_calls_raise():
    def refuses(error, match, fun, *args):
        for call in (fun, lambda *a: vjp(fun, *a)):
            with pytest.raises(error, match=match):
                call(*args)

    refuses(ValueError, "UPLO", lambda a: la.eigh(a, "X"), S)
    refuses(ValueError, "Unrecognized mode", lambda a: la.qr(a, "other"), S)
    refuses(ValueError, "both", lambda a: la.pinv(a, 0.1, rtol=0.1), S)
    for name in ("eigh", "eigvalsh", "eig", "eigvals", "expm", "sqrtm", "logm"):
        refuses(LinAlgError, "square|equal length", getattr(la, name), A)
    for name in ("svd", "svdvals", "qr", "pinv"):
        refuses(LinAlgError, "dimensional", getattr(la, name), A[0])
    refuses(LinAlgError, "Incompatible", la.lstsq, A, normal(3))
    refuses(LinAlgError, "two-dimensional", la.lstsq, A[None], normal(4))
    with pytest.raises(NotDifferentiableError, match="raw"):
        vjp(lambda a: la.qr(a, "raw"), S)


def test_one_triangle_is_read_and_gradient_is_hermitian():
    lower = np.array([[2.0, 50.0], [1.0, 3.0]])
    want = np.linalg.eigvalsh(lower)
    for value in (vjp(la.eigvalsh, lower)[0], vjp(lambda a: la.eigh(a.T, "U")[0], lower)[0]):
        close(value, want, 1e-14)
    # as for a Hermitian matrix: both triangles share the derivative
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    for f, theirs in (
        (lambda a: la.eigvalsh(a)[0], lambda a: jnp.linalg.eigvalsh(a)[0]),
        (lambda a: la.pinv(a, hermitian=True)[0, 1], lambda a: jnp.linalg.pinv(a, hermitian=True)[0, 1]),
    ):
        found = grad(f)(a)
        close(found, found.T, 0)
        close(found, jax.grad(theirs)(jnp.asarray(a)))


def test_eigenvectors_on_jax_arrays():
    a = with_eigenvalues(1.0, 2.0, 4.0)
    weights = normal(3, 3)
    functions = [
        lambda a: fnp.sum(la.eigh(a)[1] ** 2 * weights),
        lambda a: fnp.sum(la.qr(a)[0] * weights),
        lambda a: fnp.sum(la.svd(a)[0] ** 2 * weights),
        lambda a: fnp.real(fnp.sum(la.eig(a)[1] ** 2 * weights)),
    ]
    for f in functions[: 4 if at_least(jax, "0.10.0") else 2]:  # older versions lack vector rules for the last two
        want = grad(f)(a)
        close(jax.jit(grad(f))(jnp.asarray(a)), want)
        close(jax.grad(f)(jnp.asarray(a)), want)


# ---- phases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_phases_of_complex_vectors_match_jax(columns):
    """Phases are arbitrary, so a convention decides: functions that depend on phases get JAX's derivatives."""
    weights = complex_normal(3, 3), complex_normal(columns, columns)
    k = min(3, columns)

    def svd(xp):
        def fun(a):
            u, _, vh = xp.linalg.svd(a, full_matrices=False)
            return xp.real(xp.sum(u * weights[0][:, :k]) + xp.sum(vh * weights[1][:k]))

        return fun

    a = complex_normal(3, columns)
    close(grad(svd(fnp))(a), jax.grad(svd(jnp))(jnp.asarray(a)))
    t = complex_normal(3, columns, seed=1)
    close(jvp(svd(fnp), (a,), (t,))[1], jax.jvp(svd(jnp), (jnp.asarray(a),), (jnp.asarray(t),))[1])


def test_complex_eigenvectors_match_jax():
    weights, t = complex_normal(3, 3, seed=1), complex_normal(3, 3, seed=2)
    hermitian = with_eigenvalues(1.0, 2.0, 4.0, real=False)
    general = complex_normal(3, 3)
    theirs = lambda a: jax.lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)[1]
    pairs = [(hermitian, la.eigh, lambda a: jnp.linalg.eigh(a)[1]), (general, la.eig, theirs)]
    for a, ours, other in pairs[: 2 if at_least(jax, "0.10.0") else 1]:  # older versions lack the vector rule of eig
        f = lambda a, ours=ours: fnp.real(fnp.sum(ours(a)[1] * weights))
        g = lambda a, other=other: jnp.real(jnp.sum(other(a) * weights))
        close(grad(f)(a), jax.grad(g)(jnp.asarray(a)))
        close(jvp(f, (a,), (t,))[1], jax.jvp(g, (jnp.asarray(a),), (jnp.asarray(t),))[1])


def test_eigenvectors_keep_lapack_normalization():
    """Length 1, the largest element real: so differences confirm the derivatives of single elements."""
    for a in (complex_normal(3, 3), normal(3, 3, seed=4)):
        t = normal(3, 3, seed=1) * (1 if a.dtype.kind == "f" else 1 + 0.5j)
        w, v = jvp(la.eig, (a,), (t,))[1]
        close(w, slope(lambda a: np.linalg.eig(a)[0], a, t), 1e-6)
        close(v, slope(lambda a: np.linalg.eig(a)[1], a, t), 1e-6)


@pytest.mark.parametrize("rows", [2, 4])
def test_basis_completion_does_not_rotate(rows):
    a, t = complex_normal(rows, 6 - rows), complex_normal(rows, 6 - rows, seed=1)
    for name in ("svd", "qr"):
        f = (lambda a: la.qr(a, "complete")) if name == "qr" else la.svd
        q, dq = jvp(f, (a,), (t,))
        bases = [(q[0], dq[0])] if name == "qr" else [(q[0], dq[0]), (q[2].conj().T, dq[2].conj().T)]
        for basis, change in bases:
            turn = basis.conj().T @ change
            close(turn, -turn.conj().T)
            close(turn[2:, 2:], np.zeros_like(turn[2:, 2:]))
        if name == "qr":
            close(dq[0] @ q[1] + q[0] @ dq[1], t)


# ---- eigenvalues that coincide -----------------------------------------------------------------------------

TWIN = with_eigenvalues(1.0, 1.0, 2.0)
TWIN_COMPLEX = with_eigenvalues(1.0, 1.0, 2.0, real=False)


def weights_for(a, seed=5):
    return normal(*a.shape, seed=seed) if a.dtype.kind == "f" else complex_normal(*a.shape, seed=seed)


def hermitian_direction(a, seed=7):
    t = weights_for(a, seed)
    return (t + t.conj().T) / 2


def test_eigenvalues_of_the_identity():
    """The derivative of each eigenvalue is the one along its vector in the returned basis."""
    t = normal(3, 3)
    for i in range(3):
        want = np.zeros((3, 3))
        want[i, i] = 1
        close(grad(lambda a, i=i: la.eigvalsh(a)[i])(EYE), want)
        close(jax.grad(lambda a, i=i: jnp.linalg.eigvalsh(a)[i])(jnp.eye(3)), want)
        close(grad(lambda a, i=i: la.svdvals(a)[i])(EYE), want)
        close(jax.grad(lambda a, i=i: jnp.linalg.svdvals(a)[i])(jnp.eye(3)), want)
    for f, theirs in ((la.eigvalsh, jnp.linalg.eigvalsh), (la.svdvals, jnp.linalg.svdvals)):
        close(jvp(f, (EYE,), (t,))[1], np.diag(t))
        close(jax.jvp(theirs, (jnp.eye(3),), (jnp.asarray(t),))[1], np.diag(t))


def test_eigenvector_derivatives_of_identity_are_nan():
    weights, t = normal(3, 3), normal(3, 3, seed=1)
    of_eigh = lambda a: fnp.sum(la.eigh(a)[1] * weights)
    of_svd = lambda a: fnp.sum(la.svd(a)[0] * weights)
    of_eig = lambda a: fnp.sum(fnp.real(la.eig(a)[1]) * weights)  # complex for every matrix since NumPy 2.5
    for f in (of_eigh, of_svd, of_eig):
        assert all_nan(grad(f)(EYE))
        assert all_nan(jvp(f, (EYE,), (t,))[1])
    assert all_nan(jax.grad(lambda a: jnp.sum(jnp.linalg.eigh(a)[1] * weights))(jnp.eye(3)))


@pytest.mark.parametrize("a", [TWIN, TWIN_COMPLEX, 1e8 * TWIN, np.diag([1.0, 1.0, 2.0])], ids=range(4))
def test_projector_onto_eigenspace(a):
    c, t = weights_for(a), hermitian_direction(a) * abs(a).max()

    def projector(xp):
        def fun(a):
            v = xp.linalg.eigh(a)[1][:, :2]
            return xp.real(xp.sum((v @ xp.conj(v.T)) * c))

        return fun

    close(along(grad(projector(fnp))(a), t), slope(projector(np), a, t), 1e-8)
    # with both vectors together it is the constant identity
    close(grad(lambda a: fnp.real(fnp.sum((lambda v: v @ adjoint(v))(la.eigh(a)[1]) * c)))(a), np.zeros_like(a))
    # forward mode has only the vectors, and they rotate
    assert all_nan(jvp(projector(fnp), (a,), (t,))[1])


@pytest.mark.parametrize("a", [TWIN, TWIN_COMPLEX, EYE], ids=range(3))
def test_directions_that_keep_repeated_eigenvectors(a):
    """Along these directions the vectors of one eigenvalue may stay, so forward mode is defined."""
    t = a @ a * 3 + EYE
    w, v = jvp(la.eigh, (a,), (t,))[1]
    close(v, np.zeros_like(v))
    close(w, 3 * np.linalg.eigvalsh(a) ** 2 + 1)


@pytest.mark.parametrize("a", [TWIN, TWIN_COMPLEX], ids=range(2))
def test_sums_of_repeated_eigenvalues(a):
    t = hermitian_direction(a)
    pair = lambda xp: lambda a: xp.sum(xp.linalg.eigvalsh(a)[:2])
    close(along(grad(pair(fnp))(a), t), slope(pair(np), a, t), 1e-8)
    close(jvp(pair(fnp), (a,), (t,))[1], slope(pair(np), a, t), 1e-8)
    close(grad(lambda a: fnp.sum(la.eigvalsh(a)))(a), EYE)
    close(grad(lambda a: fnp.sum(la.eigvalsh(a) ** 2))(a), 2 * a.conj())
    # second order, in all four combinations of modes
    want = curvature(pair(np), a, t)
    pulled = lambda a: along_tracer(grad(pair(fnp))(a), t)
    pushed = lambda a: jvp(pair(fnp), (a,), (t,))[1]
    for fun in (pulled, pushed):
        close(along(grad(fun)(a), t), want, 1e-6)
    close(jvp(pulled, (a,), (t,))[1], want, 1e-6)


def along_tracer(gradient, t):
    return fnp.sum(fnp.real(gradient * t))


def test_third_derivative_of_repeated_eigenvalue_sum_is_nan():
    t = hermitian_direction(TWIN)
    line = lambda s: fnp.sum(la.eigvalsh(TWIN + s * t)[:2])
    assert np.isnan(grad(grad(grad(line)))(0.0))
    apart = lambda s: fnp.sum(la.eigvalsh(with_eigenvalues(1.0, 1.5, 3.0) + s * t)[:2])
    check_grads(grad(grad(apart)), (0.0,), order=1)


def test_repeated_eigenvalues_with_vectors_give_nan():
    """The gradient exists, but cannot be computed from these cotangents: the result is NaN, not a wrong number."""
    c = normal(3, 3)

    def of(f):
        def fun(a):
            w, v = la.eigh(a)
            return fnp.sum((v * f(w)) @ v.T * c)

        return fun

    for f in (fnp.exp, lambda w: w, lambda w: w - 1, fnp.log):
        assert all_nan(grad(of(f))(TWIN))
        assert all_nan(grad(of(f))(EYE))
        assert all_nan(jvp(of(f), (TWIN,), (normal(3, 3, seed=1),))[1])
    entry = lambda a: (lambda w, v: ((v * fnp.exp(w)) @ v.T)[0, 1])(*la.eigh(a))
    assert all_nan(grad(entry)(EYE))
    # where all eigenvalues differ, the gradient is right
    a, t = with_eigenvalues(1.0, 2.0, 4.0), hermitian_direction(TWIN)
    close(along(grad(of(fnp.exp))(a), t), np.sum(scipy.linalg.expm_frechet(a, t)[1] * c))
    # functions of matrices are right everywhere
    close(along(grad(lambda a: fnp.sum(la.expm(a) * c))(TWIN), t), np.sum(scipy.linalg.expm_frechet(TWIN, t)[1] * c))


def test_unused_repeated_eigenvectors_do_not_matter():
    """Use values and vectors of the largest eigenvalues, as for principal components: unused ones may coincide."""
    a = with_eigenvalues(0.0, 0.0, 0.0, 1.0, 3.0)
    c, t = normal(5, 5), hermitian_direction(a)

    def fun(xp):
        def largest(a):
            w, v = xp.linalg.eigh(a)
            return xp.sum((v[:, 3:] * xp.exp(w[3:])) @ v[:, 3:].T * c) + xp.sum(w[:3])

        return largest

    close(along(grad(fun(fnp))(a), t), slope(fun(np), a, t), 1e-7)


@pytest.mark.parametrize("real", [True, False])
def test_second_derivatives_of_one_eigenvector_where_others_coincide(real):
    a = with_eigenvalues(1.0, 1.0, 3.0, 4.0, real=real)
    c, t = weights_for(a), hermitian_direction(a)
    f = lambda a: fnp.sum(abs(c @ la.eigh(a)[1][:, 2]) ** 2) + 2.0 * la.eigvalsh(a)[3]
    along_t = lambda h: f(a + h * t)
    around = slope(lambda h: grad(along_t)(h), 0.0, 1.0)
    close(grad(grad(along_t))(0.0), around, 1e-7)
    close(jvp(grad(along_t), (0.0,), (1.0,))[1], around, 1e-7)
    close(vmap(grad(grad(along_t)))(np.array([0.0, 0.01]))[0], around, 1e-7)
    used = lambda h: fnp.sum(abs(c @ la.eigh(a + h * t)[1][:, 0]) ** 2)
    assert all_nan(grad(grad(used))(0.0))


def test_repeated_eigenvalues_in_single_precision():
    a = TWIN.astype(np.float32)
    c = normal(3, 3).astype(np.float32)
    projector = lambda a: (lambda v: fnp.sum((v @ v.T) * c))(la.eigh(a)[1][:, :2])
    found = grad(projector)(a)
    assert found.dtype == np.float32
    close(found, grad(projector)(TWIN), 1e-5)
    assert all_nan(grad(lambda a: fnp.sum(la.eigh(a)[1] * c))(a))


def test_numpy_linalg_dispatches_on_tracers():
    a, c = with_eigenvalues(1.0, 2.0, 4.0), normal(3, 3)
    for name in ("eigh", "svd", "qr"):
        close(
            grad(lambda a, name=name: fnp.sum(getattr(np.linalg, name)(a)[0] ** 2 * c[0]))(a),
            grad(lambda a, name=name: fnp.sum(getattr(la, name)(a)[0] ** 2 * c[0]))(a),
            0,
        )
    close(grad(lambda a: fnp.sum(np.linalg.lstsq(a, c[0])[0]))(a), grad(lambda a: fnp.sum(la.lstsq(a, c[0])[0]))(a), 0)


def test_batches_with_and_without_repeated_eigenvalues():
    a = np.stack([TWIN, with_eigenvalues(1.0, 2.0, 4.0), EYE])
    c = normal(3, 3)
    f = lambda a: fnp.sum(la.eigh(a)[1] * c)
    found = vmap(grad(f))(a)
    assert [all_nan(g) for g in found] == [True, False, True]
    close(found[1], grad(f)(a[1]))
    close(grad(lambda a: fnp.sum(la.eigh(a)[0]))(a), np.stack([EYE] * 3))


# ---- singular values that coincide or vanish ---------------------------------------------------------------


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 3), (3, 5)])
def test_repeated_singular_values(rows, columns, real):
    a = with_singular_values(2.0, 2.0, 1.0, rows=rows, columns=columns, real=real)
    c, t = weights_for(a), weights_for(a, 7)

    def polar(xp):  # independent of the choice of vectors
        def fun(a):
            u, _, vh = xp.linalg.svd(a, full_matrices=False)
            return xp.real(xp.sum((u @ vh) * c))

        return fun

    close(along(grad(polar(fnp))(a), t), slope(polar(np), a, t), 1e-8)
    assert all_nan(jvp(polar(fnp), (a,), (t,))[1])
    assert all_nan(grad(lambda a: fnp.real(fnp.sum(la.svd(a, full_matrices=False)[0] * c[:, :3])))(a))
    for f in (lambda xp: lambda a: xp.sum(xp.linalg.svdvals(a)), lambda xp: lambda a: xp.sum(xp.linalg.svdvals(a)[:2])):
        close(along(grad(f(fnp))(a), t), slope(f(np), a, t), 1e-8)
        close(jvp(f(fnp), (a,), (t,))[1], slope(f(np), a, t), 1e-8)
        want = curvature(f(np), a, t)
        pulled = lambda a, f=f: along_tracer(grad(f(fnp))(a), t)
        close(jvp(pulled, (a,), (t,))[1], want, 1e-5)
        close(along(grad(pulled)(a), t), want, 1e-5)


@pytest.mark.parametrize("real", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (4, 3), (3, 5)])
def test_svd_of_low_rank(rows, columns, real):
    """Functions of the nonzero singular values and their vectors are smooth."""
    a = with_singular_values(3.0, 1.0, rows=rows, columns=columns, real=real)
    c, t = weights_for(a), weights_for(a, 7)

    def cut(xp):
        def fun(a):
            u, s, vh = xp.linalg.svd(a, full_matrices=False)
            return xp.real(xp.sum((u[:, :2] * xp.sqrt(s[:2])) @ vh[:2] * c))

        return fun

    def whole(a):
        u, s, vh = la.svd(a, full_matrices=False)
        return fnp.real(fnp.sum((u * s) @ vh * c))

    close(along(grad(cut(fnp))(a), t), slope(cut(np), a, t), 1e-7)
    assert all_nan(grad(whole)(a))  # for zeros, only their products with the vectors would determine the derivative
    if rows < columns:
        of_zero = lambda a: fnp.real(fnp.sum(la.svd(a, full_matrices=False)[2][2] * c[0]))
    else:
        of_zero = lambda a: fnp.real(fnp.sum(la.svd(a, full_matrices=False)[0][:, 2] * c[:, 0]))
    assert all_nan(grad(of_zero)(a))
    assert np.isfinite(jvp(la.svdvals, (a,), (t,))[1]).all()
    top = lambda xp: lambda a: xp.sum(xp.linalg.svdvals(a)[:2])
    close(jvp(lambda a: along_tracer(grad(top(fnp))(a), t), (a,), (t,))[1], curvature(top(np), a, t), 1e-5)


def test_zero_matrix():
    zero = np.zeros((3, 2))
    assert np.isfinite(grad(lambda a: fnp.sum(la.svdvals(a)))(zero)).all()
    assert all_nan(grad(lambda a: fnp.sum(la.svd(a)[0] * normal(3, 3)))(zero))
    close(grad(lambda a: fnp.sum(la.pinv(a)))(zero), zero)
    close(grad(lambda a: fnp.sum(la.eigvalsh(a)))(np.zeros((3, 3))), EYE)


# ---- matrices that lack eigenvectors -----------------------------------------------------------------------


def test_eigenvalues_of_defective_matrix():
    jordan = np.array([[1.0, 1.0], [0.0, 1.0]])
    assert all_nan(grad(lambda a: fnp.real(la.eigvals(a)[0]))(jordan))
    assert all_nan(jvp(la.eigvals, (jordan,), (np.ones((2, 2)),))[1])
    assert all_nan(grad(lambda a: fnp.real(fnp.sum(la.eig(a)[1] * normal(2, 2))))(jordan))
    close(grad(lambda a: fnp.real(fnp.sum(la.eigvals(a))))(jordan), np.eye(2))


def test_repeated_eigenvalues_with_eigenvectors():
    s = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])  # so the eigenvalues coincide on every machine
    a = s @ np.diag([1.0, 1.0, 3.0]) @ np.linalg.inv(s)
    c, t = normal(3, 3, seed=1), normal(3, 3, seed=2)

    def projector(xp):
        def fun(a):
            w, v = xp.linalg.eig(a)
            index = int(xp.argmax(xp.real(w)))  # the order of eigenvalues depends on LAPACK
            return xp.real(xp.sum(v[:, index, None] * xp.linalg.inv(v)[index] * c))

        return fun

    close(along(grad(projector(fnp))(a), t), slope(projector(np), a, t), 1e-7)
    assert all_nan(grad(lambda a: fnp.real(fnp.sum(la.eig(a)[1] * c)))(a))
    close(grad(lambda a: fnp.real(fnp.sum(la.eigvals(a))))(a), EYE, 1e-11)
    values_and_vectors = lambda a: fnp.real(fnp.sum((lambda w, v: (v * fnp.exp(w)) @ la.inv(v))(*la.eig(a)) * c))
    assert all_nan(grad(values_and_vectors)(a))


# ---- QR, pseudo-inverses, least squares --------------------------------------------------------------------


def test_qr_of_dependent_columns():
    a = np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    assert all_nan(grad(lambda a: fnp.sum(la.qr(a)[0]))(a))
    assert all_nan(jvp(lambda a: la.qr(a)[0], (a,), (normal(3, 2),))[1])
    assert all_nan(grad(lambda a: fnp.sum(la.qr(a)[0]))(np.zeros((2, 2))))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
@pytest.mark.parametrize("real", [True, False])
def test_pinv_of_low_rank(shape, real):
    make = normal if real else complex_normal
    a, t, c = (make(*shape, seed=i) for i in range(3))
    a = with_singular_values(3.0, 1.0, rows=shape[0], columns=shape[1], real=real)
    f = lambda xp: lambda a: xp.real(xp.sum(xp.linalg.pinv(a) * c.T))
    close(grad(f(fnp))(a), jax.grad(f(jnp))(jnp.asarray(a)), 1e-11)
    close(jvp(f(fnp), (a,), (t,))[1], jax.jvp(f(jnp), (jnp.asarray(a),), (jnp.asarray(t),))[1], 1e-11)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_constant_rank_is_smooth(shape):
    """A product of factors keeps its rank, so differences of first and second order exist."""
    left, right, b = normal(shape[0], 2), normal(2, shape[1], seed=1), normal(shape[0], 2, seed=2)
    check_grads(lambda x, y: la.pinv(x @ y, rcond=1e-10), (left, right), order=2)
    check_grads(lambda x, y, b: la.lstsq(x @ y, b, 1e-10)[0], (left, right, b), order=2)
    check_grads(lambda x, y, b: la.lstsq(x @ y, b, 1e-10)[0], (left, right, b[:, 0]), order=1)


def test_pinv_and_lstsq_with_cutoff():
    """Singular values that are cut off need not be zero."""
    for rows, columns in ((4, 3), (3, 4)):
        a = with_singular_values(3.0, 1.0, 0.5, rows=rows, columns=columns)
        b = normal(rows, 2)
        check_grads(lambda a: la.pinv(a, rcond=0.25), (a,), order=2)
        check_grads(lambda a, b: la.lstsq(a, b, 0.25)[0], (a, b), order=2)
    values = fnp.asarray([[2.0, 0.3], [0.2, 0.9]])
    symmetric = lambda a: la.pinv((a + a.T) / 2, rcond=0.6, hermitian=True)
    check_grads(symmetric, (values,), order=2)


def test_lstsq_residuals():
    a, b = normal(5, 3), normal(5, 2, seed=1)
    check_grads(lambda a, b: la.lstsq(a, b)[1], (a, b), order=2)
    # examples of different rank
    lost = with_singular_values(2.0, 1.0, rows=5, columns=3)
    found = vmap(lambda a: la.lstsq(a, b)[1])(np.stack([a, lost]))
    close(found[0], np.linalg.lstsq(a, b)[1])
    assert all_nan(found[1])
    assert vmap(lambda a: la.lstsq(a, b)[1])(np.stack([lost, lost])).shape == (2, 0)
    ranks = vmap(lambda a: la.lstsq(a, b)[2])(np.stack([a, lost]))
    np.testing.assert_array_equal(ranks, [3, 2])
    # on JAX arrays residuals exist at any rank
    f = lambda a: fnp.sum(la.lstsq(a, b, 0.6)[1])
    theirs = lambda a: jnp.sum(jnp.linalg.lstsq(a, b, 0.6)[1])
    close(jax.jit(grad(f))(jnp.asarray(a)), jax.grad(theirs)(jnp.asarray(a)))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "qr", "pinv", "expm"])
def test_empty_matrices_and_batches(name, dtype):
    """Matrices without elements, and batches without matrices."""
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        x = np.ones(shape, dtype)

        def fun(a, shape=shape):
            found = getattr(la, name)(a)
            return [fnp.real(part) for part in (found if isinstance(found, tuple) else (found,))]

        outs, pullback = vjp(fun, x)
        assert pullback(outs)[0].shape == shape
        assert [o.shape for o in jvp(fun, (x,), (x,))[1]] == [o.shape for o in outs]


# ---- functions of matrices ---------------------------------------------------------------------------------

POSITIVE = S @ S.T + EYE + 0.3 * S
FUNCTIONS = ("expm", "sqrtm", "logm")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "a",
    [
        POSITIVE,
        POSITIVE + 0.5j * S,
        POSITIVE @ POSITIVE.T,
        S,  # complex roots
        1e-6 * POSITIVE,
        40 * POSITIVE,
        np.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 1]]),  # defective
        np.array([[-1.0, 1.0], [0.0, -2.0]]),  # on the branch cut
        np.diag([-1.0, 2.0]).astype(complex),
        EYE[:1, :1] * 3,
        1 / (np.arange(5)[:, None] + np.arange(5) + 1),  # almost singular
        np.array([[0.0, -1.0], [1.0, 0.0]]),
    ],
    ids=range(12),
)
def test_matrix_functions_match_scipy(name, a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns of its own rounding errors
        got, want = getattr(la, name)(a), getattr(scipy.linalg, name)(a)
    if name != "sqrtm" or at_least(scipy, "1.16.0"):  # older versions gave some real roots a complex dtype
        assert got.dtype == want.dtype
    close(got / abs(want).max(), want / abs(want).max(), 1e-11 if a.shape == (5, 5) else 1e-12)
    single = (a / abs(a).max()).astype(np.complex64 if a.dtype.kind == "c" else np.float32)
    assert getattr(la, name)(single).dtype == np.dtype(got.dtype.kind + str(got.dtype.itemsize // 2))


def long_expm(a):
    """Compute the exponential with 60 decimal digits: the Taylor series of a / 4096, squared 12 times."""
    with decimal.localcontext(prec=60):
        exact = np.vectorize(lambda x: decimal.Decimal(float(x)), otypes=[object])
        x = exact(a) / decimal.Decimal(4096)
        term = ans = exact(np.eye(len(a)))
        for k in range(1, 40):
            term = term @ x / decimal.Decimal(k)
            ans = ans + term
        for _ in range(12):
            ans = ans @ ans
        return ans.astype(float)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 10.0, 100.0])
def test_expm_error_is_within_conditioning(scale):
    for a in (S, S - S.T, POSITIVE, np.triu(S)):
        want = long_expm(scale * a)
        size = abs(want).max()
        close(la.expm(scale * a) / size, want / size, 1e-15 * max(3, np.linalg.norm(scale * a)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrix_functions_of_batches(name):
    a = np.stack([POSITIVE, POSITIVE @ POSITIVE.T, 5 * POSITIVE, S, EYE])
    f = getattr(la, name)
    close(f(a), np.stack([f(x).astype(f(a).dtype) for x in a]), 1e-13)
    close(vmap(f)(a), f(a), 0)
    assert f(a[:0]).shape == (0, 3, 3)
    assert f(np.diag([4, 9])).dtype == float


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("a", [POSITIVE, POSITIVE + 0.5j * S, EYE, 3 * EYE], ids=range(4))
def test_derivatives_of_matrix_functions(name, a):
    """Derivatives are right to second order, even if eigenvalues coincide."""
    check_grads(getattr(la, name), (a,), order=2)


def test_derivatives_of_matrix_functions_at_identity():
    t = normal(3, 3)
    close(jvp(la.logm, (EYE,), (t,))[1], t)
    close(jvp(la.sqrtm, (EYE,), (t,))[1], t / 2)
    close(jvp(la.expm, (0 * EYE,), (t,))[1], t)
    close(jvp(lambda a: jvp(la.logm, (a,), (t,))[1], (EYE,), (t,))[1], -t @ t)
    close(jvp(lambda a: jvp(la.sqrtm, (a,), (t,))[1], (EYE,), (t,))[1], -t @ t / 4)
    close(jvp(lambda a: jvp(la.expm, (a,), (t,))[1], (0 * EYE,), (t,))[1], t @ t)


def test_expm_derivative_matches_scipy_and_jax():
    for scale in (1e-3, 1.0, 30.0):
        t = normal(3, 3)
        want = scipy.linalg.expm_frechet(scale * S, t)[1]
        for size in (1e-20, 1.0, 1e20):
            got = jvp(la.expm, (scale * S,), (size * t,))[1] / size
            close(got / abs(want).max(), want / abs(want).max(), 1e-12)
    c = normal(3, 3, seed=1)
    close(grad(lambda a: fnp.sum(la.expm(a) * c))(S), jax.grad(lambda a: jnp.sum(jax.scipy.linalg.expm(a) * c))(S))


def test_real_matrices_with_complex_roots():
    a = np.array([[-1.5, 0.7], [0.4, -2.5]])
    for f in (la.sqrtm, la.logm):
        assert f(a).dtype == complex
        check_grads(f, (a,), order=2)
    close(la.sqrtm(-EYE), 1j * EYE)
    close(la.logm(-EYE), np.pi * 1j * EYE)


def test_missing_root_or_logarithm():
    nilpotent = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert all_nan(la.sqrtm(nilpotent))
    assert all_nan(la.logm(nilpotent))
    ones = np.ones((2, 2))
    close(la.sqrtm(ones), ones / np.sqrt(2), 1e-14)
    close(la.sqrtm(np.zeros((2, 2))), np.zeros((2, 2)))
    assert all_nan(la.logm(ones))
    assert all_nan(jvp(la.sqrtm, (ones,), (normal(2, 2),))[1])  # the derivative is infinite
    broken = np.array([[np.nan, 1.0], [0.0, 1.0]])
    found = la.sqrtm(np.stack([broken, 4 * np.eye(2), ones, nilpotent]))
    assert all_nan(found[0])
    close(found[1], 2 * np.eye(2))
    close(found[2], ones / np.sqrt(2), 1e-14)
    assert all_nan(found[3])
    assert all_nan(la.logm(broken))


def test_matrix_functions_on_jax_arrays():
    for name in FUNCTIONS:
        f = getattr(la, name)
        for a in (POSITIVE, 1e4 * POSITIVE if name != "expm" else 10 * S, POSITIVE + 0.5j * S):
            want = f(a)
            close(f(jnp.asarray(a)) / abs(want).max(), want / abs(want).max(), 1e-12)
    assert all_nan(la.sqrtm(-jnp.eye(2)))
    assert all_nan(la.logm(-jnp.eye(2)))
    singular = np.stack([np.diag([4.0, 0.0, 9.0]), np.ones((3, 3)), POSITIVE @ POSITIVE.T])
    close(jax.jit(la.sqrtm)(singular), la.sqrtm(singular), 1e-12)
    of_root = lambda x: fnp.sum(la.sqrtm(x) ** 2 * S)
    for a in (2 * np.eye(3), POSITIVE @ POSITIVE.T):
        close(jax.grad(of_root)(jnp.asarray(a)), grad(of_root)(a), 1e-10)
    t = normal(3, 3)
    close(jax.jvp(la.logm, (jnp.asarray(POSITIVE),), (jnp.asarray(t),))[1], jvp(la.logm, (POSITIVE,), (t,))[1])


def test_rtol_of_pinv():
    a = with_singular_values(1.0, 2e-16, rows=4, columns=3).astype(np.float32)
    np.testing.assert_array_equal(la.pinv(a, rtol=None), np.linalg.pinv(a, rtol=None))
    np.testing.assert_array_equal(vjp(lambda a: la.pinv(a, rtol=0.3), A)[0], np.linalg.pinv(A, rtol=0.3))
    many = np.stack([A, 2 * A])
    np.testing.assert_array_equal(la.pinv(many, rcond=[0.1, 0.9]), np.linalg.pinv(many, rcond=[0.1, 0.9]))
    np.testing.assert_array_equal(vmap(la.pinv)(many, np.array([0.1, 0.9])), np.linalg.pinv(many, rcond=[0.1, 0.9]))


def test_jacobians_of_eigenvalues_agree_in_both_modes():
    close(jacfwd(la.eigvalsh)(TWIN), jacrev(la.eigvalsh)(TWIN))
    close(jacfwd(la.svdvals)(TWIN), jacrev(la.svdvals)(TWIN))
