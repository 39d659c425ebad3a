"""Rows for eigenvalues, singular values, QR, pseudo-inverses, least squares, and functions of matrices.

Vectors are defined up to signs and phases, so most rows use functions that do not depend on these. If an operation
assumes Hermitian matrices, the row makes its matrices Hermitian.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np

import funcgrad
import funcgrad.numpy as fnp
from operations.spec import Sample, array, op

S = Sample


def rows(name, of, *samples, theirs=None, **options):
    """Return a row whose function is ``of(xp, *args, **kwargs)`` in each library; ``theirs`` replaces it for JAX."""
    options.setdefault("jax", theirs or (lambda *args, **kwargs: of(jnp, *args, **kwargs)))
    return op(
        name,
        *samples,
        fun=lambda *args, **kwargs: of(fnp, *args, **kwargs),
        numpy=lambda *args, **kwargs: of(np, *args, **kwargs),
        **options,
    )


def real(*shape, seed=0):
    return (array(*shape, seed=seed),)


def complexes(*shape, seed=0):
    return (array(*shape, seed=seed, kind="complex"),)


def adjoint(xp, x):
    return xp.conj(xp.swapaxes(x, -1, -2))


def hermitian(xp, a):
    return (a + adjoint(xp, a)) / 2


def squares(xp, v):
    """Return the squared moduli of a vector's elements, which do not depend on phases."""
    return xp.real(v * xp.conj(v))


def eigh(xp, a, **options):
    w, v = xp.linalg.eigh(hermitian(xp, a), **options)
    return w, squares(xp, v), (v * xp.sin(w)[..., None, :]) @ adjoint(xp, v)


def eigvalsh(xp, a, **options):
    return xp.linalg.eigvalsh(hermitian(xp, a), **options)


def of_eig(xp, w, v):
    w, v = w + 0j, v + 0j  # NumPy returns real arrays if all eigenvalues are real
    return w, squares(xp, v), (v * xp.exp(w)[..., None, :]) @ xp.linalg.inv(v)


def eig(xp, a):
    return of_eig(xp, *xp.linalg.eig(a))


def jax_eig(a):
    return jax.lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)


def svd(xp, a, **options):
    u, s, vh = xp.linalg.svd(a, **options)
    return s, squares(xp, u), squares(xp, vh), (u * xp.sin(s)[..., None, :]) @ vh


def full_svd(xp, a):
    """Return functions of the full SVD; the vectors that complete the basis enter as a projector."""
    u, s, vh = xp.linalg.svd(a)
    k = s.shape[-1]
    inner = (u[..., :k] * xp.sin(s)[..., None, :]) @ vh[..., :k, :]
    u, vh = u[..., k:], vh[..., k:, :]
    return s, inner, u @ adjoint(xp, u), adjoint(xp, vh) @ vh


def complete_qr(xp, a):
    q, r = xp.linalg.qr(a, mode="complete")
    k = min(a.shape[-2:])
    rest = q[..., k:]
    return q[..., :k], r, rest @ adjoint(xp, rest)


def lstsq(xp, a, b, rcond=None):
    x, _, _, s = xp.linalg.lstsq(a, b, rcond)
    return x, s


def residuals(xp, a, b):
    return xp.linalg.lstsq(a, b)[1]


def pushed(name):
    """Return a function that NumPy lacks, of a matrix shifted to have no eigenvalues on the negative axis."""
    return lambda a: getattr(fnp.linalg, name)(a + 5 * np.eye(a.shape[-1], dtype=np.int8))


def svdvals(xp, a):
    return xp.linalg.svdvals(a)


def gradient(lib, xp, of):
    """Return the gradient of a sum of values; it has a rule of its own."""
    return lib.grad(lambda a: xp.sum(of(xp, a)[..., :2]))


OPS = [
    rows(
        "linalg.eigh",
        eigh,
        real(3, 3),
        S(real(2, 2, 2), {"UPLO": "U"}),
        real(0, 0),
        complex_samples=[complexes(3, 3)],
    ),
    rows(
        "linalg.eigh",
        lambda xp, a: squares(xp, xp.linalg.eigh(hermitian(xp, a))[1]),
        real(3, 3),
        complex_samples=[complexes(3, 3)],
    ),
    rows(
        "linalg.eigvalsh",
        eigvalsh,
        S(real(3, 3), {"UPLO": "U"}),
        real(2, 2, 2),
        complex_samples=[complexes(3, 3)],
    ),
    rows(
        "linalg.eig",
        eig,
        real(3, 3),
        real(2, 2, 2),
        complex_samples=[complexes(3, 3)],
        theirs=lambda a: of_eig(jnp, *jax_eig(a)),
    ),
    rows(
        "linalg.eigvals",
        lambda xp, a: xp.linalg.eigvals(a) + 0j,  # see of_eig
        real(3, 3),
        real(2, 2, 2),
        complex_samples=[complexes(3, 3)],
        theirs=lambda a: jax_eig(a)[0],
    ),
    rows(
        "linalg.svd",
        svd,
        S(real(3, 3), {"full_matrices": False}),
        S(real(2, 3, 2), {"full_matrices": False}),
        S(real(2, 3), {"full_matrices": False}),
        complex_samples=[S(complexes(3, 2), {"full_matrices": False})],
    ),
    rows(
        "linalg.svd",
        lambda xp, a: svd(xp, hermitian(xp, a), hermitian=True),
        real(3, 3),
        complex_samples=[complexes(2, 2)],
    ),
    op(
        "linalg.svd",
        S(real(2, 3), {"compute_uv": False}),
        S(real(2, 3, 3), {"compute_uv": False, "full_matrices": False}),
    ),
    rows(
        "linalg.svd",
        lambda xp, a: xp.linalg.svd(hermitian(xp, a), compute_uv=False, hermitian=True),
        real(3, 3),
    ),
    rows(
        "linalg.svd",
        full_svd,
        real(4, 2),
        real(2, 2, 3),
        real(3, 0),
        complex_samples=[complexes(2, 4)],
        jax=None,
        reason="JAX has no derivative of full matrices",
    ),
    op("linalg.svdvals", real(3, 3), real(2, 3, 2), real(0, 3), complex_samples=[complexes(2, 3)]),
    op("linalg.qr", real(3, 3), real(2, 3, 2), real(2, 3), complex_samples=[complexes(3, 2), complexes(2, 3)]),
    op("linalg.qr", S(real(4, 2), {"mode": "r"}), S(real(2, 3), {"mode": "r"})),
    rows(
        "linalg.qr",
        complete_qr,
        real(4, 2),
        real(2, 3, 1),
        real(2, 3),
        complex_samples=[complexes(4, 2)],
        jax=None,
        reason="JAX has no derivative of complete matrices",
    ),
    op(
        "linalg.pinv",
        real(3, 2),
        real(2, 2, 3),
        real(0, 2),
        complex_samples=[complexes(3, 2)],
    ),
    op(
        "linalg.pinv",
        S(real(3, 3), {"rcond": 0.4}),
        S(real(2, 3, 2), {"rcond": np.array([0.1, 0.9])}),
        complex_samples=[S(complexes(3, 4), {"rcond": 0.4})],
        jax=None,
        reason="JAX takes what does not count for zero, which it is not here",
    ),
    rows(
        "linalg.pinv",
        lambda xp, a: xp.linalg.pinv(hermitian(xp, a), hermitian=True),
        real(3, 3),
        complex_samples=[complexes(2, 2)],
    ),
    rows(
        "linalg.lstsq",
        lstsq,
        (*real(4, 2), *real(4, seed=1)),
        (*real(2, 3), *real(2, 2, seed=1)),
        S((*real(3, 3), *real(3, seed=1)), {"rcond": 0.4}),
        complex_samples=[(*complexes(3, 2), *complexes(3, 2, seed=1))],
    ),
    rows(
        "linalg.lstsq",
        residuals,
        (*real(4, 2), *real(4, 2, seed=1)),
        complex_samples=[(*complexes(3, 2), *complexes(3, seed=1))],
    ),
    *[
        op(
            f"linalg.{of.__name__}",
            *samples,
            fun=gradient(funcgrad, fnp, of),
            numpy=None,
            jax=gradient(jax, jnp, of),
            reason="NumPy has no gradient",
        )
        for of, samples in ((eigvalsh, [real(3, 3)]), (svdvals, [real(4, 3), real(3, 4)]))
    ],
    op(
        "linalg.expm",
        real(3, 3),
        real(2, 2, 2),
        (8 * array(2, 2),),
        complex_samples=[complexes(2, 2)],
        numpy=None,
        jax=jax.scipy.linalg.expm,
        reason="NumPy does not have it",
    ),
    *[
        op(
            f"linalg.{name}",
            real(3, 3),
            real(2, 2, 2),
            complex_samples=[complexes(2, 2)],
            fun=pushed(name),
            numpy=None,
            jax=None,
            reason="NumPy does not have it, JAX no derivative of it",
        )
        for name in ("sqrtm", "logm")
    ],
]
