"""Rows for the linear algebra of SciPy: small matrices, one call per function."""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import scipy
import scipy.linalg as sl
from helpers import at_least

from funcgrad.scipy import linalg
from operations.spec import Sample, array, op, positive

S = Sample
NO_JAX = "JAX has no such function, or no derivative of it"


def regular(*shape, seed=0, kind="float"):
    """Return matrices that are far from singular."""
    return array(*shape, seed=seed, kind=kind) + 4 * np.eye(shape[-1])


def definite(n, seed=5):
    x = array(n, n, seed=seed)
    return x @ x.T + np.eye(n)


def rows(name, of, *samples, **options):
    """Return a row whose function is ``of(library, *args)``, with SciPy's linear algebra or a counterpart."""
    options.setdefault("jax", lambda *args, **kwargs: of(jsl, *args, **kwargs))
    return op(
        f"scipy.linalg.{name}",
        *samples,
        fun=lambda *args, **kwargs: of(linalg, *args, **kwargs),
        numpy=lambda *args, **kwargs: of(sl, *args, **kwargs),
        **options,
    )


def alone(name, *samples, of=None, **options):
    """Return a row without a counterpart in JAX."""
    of = of or (lambda lib, *args, **kwargs: getattr(lib, name)(*args, **kwargs))
    return rows(name, of, *samples, jax=None, reason=NO_JAX, **options)


def symmetric(a):
    return (a + a.T) / 2


def assuming(structure):
    return lambda lib, a, b: lib.solve(symmetric(a), b, assume_a=structure, lower=True)


def factored(lib, a, lower):
    return lib.cho_factor(symmetric(a), lower=lower)[0] * np.tri(2)


def modes(lib, a, **options):
    w, v = lib.eigh(symmetric(a), **options)
    return w, v * v


def eigensystem(lib, a, b):
    w, v = lib.eigh(symmetric(a), symmetric(b))
    return w, v * v


def eigenvectors(lib, a):
    w, v = lib.eig(a)
    return w, (v * v.conj()).real


def riccati(name):
    def of(lib, a, b, q, r, *rest):
        return getattr(lib, name)(
            a + DOUBLE, b + DOUBLE, symmetric(q) + DOUBLE, symmetric(r) + DOUBLE, *rest, balanced=not rest
        )

    return of


def tridiagonal(lib, d, e):
    w, v = lib.eigh_tridiagonal(d, e, select="i", select_range=(0, 1))
    return w, v * v


def procrustes(lib, a, b):
    r, scale = lib.orthogonal_procrustes(a, b)
    return r, scale * 1.0


def left_eigenvectors(lib, a, b):
    _, left, right = lib.eig(a, b, left=True)
    return (left * left.conj()).real, (right * right.conj()).real


def sizes_of(name):
    """Return a function of the squared moduli of the results, which do not depend on phases of columns."""
    return lambda lib, *args, **options: [(part * part.conj()).real for part in getattr(lib, name)(*args, **options)]


#: 3x3 matrices with a pair of conjugate eigenvalues, and with distinct real eigenvalues.
PAIRED = np.array([[1.0, 2.0, 0.3], [-1.5, 0.7, 0.4], [0.2, 0.1, -2.0]])
DISTINCT = np.array([[1.0, 0.4, 0.3], [0.2, 4.0, 0.5], [0.1, 0.3, -3.0]])
M, D, X = regular(2, 2), definite(2), array(2, seed=3)
DOUBLE = np.zeros(())
BANDS = np.array([[0.0, 1.0, -2.0], [5.0, 6.0, 7.0], [1.5, -0.5, 0.0]])

#: Samples that SciPy supports since a version.
BATCHED = at_least(scipy, "1.16.0")  # several matrices at once
ROOTED = at_least(scipy, "1.16.0")  # real matrices with complex eigenvalues have a real root
BANDED = at_least(scipy, "1.17.0")  # a system of two unknowns can be tridiagonal

OPS = [
    op("scipy.linalg.inv", (M,)),
    op("scipy.linalg.det", (M,)),
    op("scipy.linalg.norm", (M,), jax=jnp.linalg.norm),
    *[op(f"scipy.linalg.{name}", (array(3, 2),), jax=getattr(jnp.linalg, name)) for name in ("pinv",)],
    op("scipy.linalg.svdvals", (array(3, 2),), jax=lambda a: jnp.linalg.svd(a, compute_uv=False)),
    rows(
        "lstsq",
        lambda lib, a, b: lib.lstsq(a, b)[0],
        (array(3, 2), array(3)),
        jax=lambda a, b: jnp.linalg.lstsq(a, b)[0],
    ),
    op("scipy.linalg.solve", (M, X), *[(regular(2, 2, 2), array(2, 2, 1))] * BATCHED),
    rows("solve", assuming("pos"), (D, X)),
    alone(
        "solve",
        S((D, X), {"assume_a": "sym"}),
        *[S((M, X), {"assume_a": "tridiagonal", "transposed": True})] * BANDED,
    ),
    op(
        "scipy.linalg.solve_triangular",
        S((M, X), {"lower": True}),
        *[S((regular(2, 2, 2), array(2, 2, 1)), {"trans": 1, "unit_diagonal": True})] * BATCHED,
        complex_samples=[S((regular(2, 2, kind="complex"), X), {"trans": 2})],
    ),
    alone(
        "solve_banded",
        S(((1, 1), BANDS, array(3)), unbatched=(0,)),
        S(((2, 0), np.array([[5.0, 6.0, 7.0], [1.5, -0.5, 0.0], [1.0, 0.0, 0.0]]), array(3, 2))),
    ),
    alone(
        "solveh_banded", (BANDS[:2], array(3)), complex_samples=[S((BANDS[1:] * (1 + 0j), array(3)), {"lower": True})]
    ),
    alone("solve_toeplitz", (np.array([4.0, 1.0]), X)),
    rows("cholesky", lambda lib, a: lib.cholesky(symmetric(a), lower=True), (D,)),
    alone("cholesky", (D,), complex_samples=[(definite(2) + 0.1j * np.array([[0, 1], [-1, 0]]),)]),
    rows("cho_factor", factored, S((D, True), unbatched=(1,))),
    rows(
        "cho_solve", lambda lib, c, b: lib.cho_solve((c, False), b), (M, X), jax=None, reason="JAX reads both triangles"
    ),
    rows("lu_factor", lambda lib, a: lib.lu_factor(a)[0], (array(2, 2),)),
    rows("lu", lambda lib, a: lib.lu(a)[1:], (array(3, 2, seed=4),), (array(2, 3),)),
    rows(
        "lu_solve",
        lambda lib, f, b: lib.lu_solve((f, np.array([1, 1], np.int32)), b, trans=1),
        (M, X),
        complex_samples=[(regular(2, 2, kind="complex"), X)],
    ),
    rows("qr", lambda lib, a: lib.qr(a, mode="economic"), (array(3, 2),)),
    alone("polar", (array(3, 2),), complex_samples=[S((array(2, 3, kind="complex"),), {"side": "left"})]),
    alone("orthogonal_procrustes", (array(3, 2), array(3, 2, seed=1)), of=procrustes),
    rows("svd", lambda lib, a: lib.svd(a, full_matrices=False), (array(3, 2),)),
    alone("eigh", (D, definite(2, seed=6)), of=eigensystem),
    alone(
        "eigh",
        (D,),
        (array(3, 3),),
        S((array(3, 3),), {"driver": "evd"}),
        S((array(3, 3),), {"subset_by_index": (1, 2)}),
        of=modes,
    ),
    rows("eigvalsh", lambda lib, a: lib.eigvalsh(symmetric(a)), (D,), jax=lambda a: jsl.eigh(symmetric(a))[0]),
    alone("eig", (M,), of=eigenvectors),
    alone("eigvals", (M, regular(2, 2, seed=9))),
    alone("eig", (M, regular(2, 2, seed=9)), of=left_eigenvectors),
    alone("qr", (DISTINCT,), of=lambda lib, a: lib.qr(a, mode="economic", pivoting=True)[:2], on_jax=False),
    alone("schur", (PAIRED,), (DISTINCT,), on_jax=False),
    alone("schur", S((PAIRED,), {"output": "complex"}), of=sizes_of("schur"), on_jax=False),
    alone("schur", S((PAIRED,), {"sort": "rhp"}), of=lambda lib, a, sort: lib.schur(a, sort=sort)[:2], on_jax=False),
    alone(
        "hessenberg",
        S((PAIRED,), {"calc_q": True}),
        complex_samples=[S((PAIRED * (1 + 0.2j),), {"calc_q": True})],
        on_jax=False,
    ),
    alone("qz", (DISTINCT,), of=lambda lib, a: lib.qz(a, definite(3)), on_jax=False),
    alone("qz", (definite(3),), of=lambda lib, b: lib.qz(DISTINCT, b), on_jax=False),
    alone("qz", (PAIRED,), of=lambda lib, a: sizes_of("qz")(lib, a, definite(3), output="complex"), on_jax=False),
    alone("ordqz", (DISTINCT,), of=lambda lib, a: lib.ordqz(a, definite(3), sort="rhp")[0], on_jax=False),
    op("scipy.linalg.toeplitz", (X, array(3)), complex_samples=[(array(2, kind="complex"),)]),
    op("scipy.linalg.hankel", (X, array(3))),
    op("scipy.linalg.circulant", (array(3),)),
    op("scipy.linalg.companion", (array(3),)),
    op("scipy.linalg.fiedler", (array(3),)),
    op("scipy.linalg.leslie", (array(3), array(2))),
    op("scipy.linalg.convolution_matrix", S((array(3), 2, "valid"), unbatched=(1, 2))),
    op("scipy.linalg.block_diag", (M, array(1, 3))),
    alone("khatri_rao", (M, array(3, 2))),
    op("scipy.linalg.expm", (array(3, 3),), jax=None, reason="linalg.expm is compared"),
    alone("sqrtm", (M if ROOTED else D,)),
    *[alone(name, (M,)) for name in ("cosm", "sinm", "tanm")],
    *[alone(name, (array(3, 3),)) for name in ("coshm", "sinhm", "tanhm")],
    # in single precision SciPy warns, or the precision of the result varies
    alone("logm", (M,), of=lambda lib, a: lib.logm(a + DOUBLE)),
    alone(
        "expm_frechet",
        (array(2, 2), array(2, 2, seed=7)),
        of=lambda lib, a, e: lib.expm_frechet(a + DOUBLE, e + DOUBLE),
    ),
    alone("fractional_matrix_power", (D, 0.3), of=lambda lib, a, t: lib.fractional_matrix_power(a + DOUBLE, t)),
    alone("solve_sylvester", (M, regular(3, 3), array(2, 3))),
    *[alone(name, (M, D)) for name in ("solve_continuous_lyapunov", "solve_lyapunov", "solve_discrete_lyapunov")],
    alone("solve_discrete_lyapunov", S((M, D), {"method": "bilinear"})),
    *[
        alone(name, (M, array(2, 1), D, np.array([[1.5]])), of=riccati(name), on_jax=False)
        for name in ("solve_continuous_are", "solve_discrete_are")
    ],
    alone(
        "solve_continuous_are",
        S((-M, array(2, 1), D, np.array([[1.5]]), np.eye(2) + M / 9, array(2, 1, seed=8) / 8), ordered=True),
        of=riccati("solve_continuous_are"),
        on_jax=False,
    ),
    alone("pinvh", (D,), complex_samples=[S((definite(2) + 0.1j * np.array([[0, 1], [-1, 0]]),), {"lower": False})]),
    alone("solve_circulant", (array(3) + np.array([5.0, 0, 0]), array(3, 2)), complex_samples=[(M[0] + 4j, X)]),
    alone("matmul_toeplitz", (array(3), array(3, 2)), complex_samples=[(array(2, kind="complex"), array(2))]),
    alone("matmul_toeplitz", (X, array(3), array(3, seed=4)), of=lambda lib, c, r, x: lib.matmul_toeplitz((c, r), x)),
    alone("eigh_tridiagonal", (array(3), positive(2)), of=tridiagonal),
    alone("eigvalsh_tridiagonal", (array(3), positive(2))),
    alone("cho_solve_banded", (BANDS[:2], array(3)), of=lambda lib, c, b: lib.cho_solve_banded((c, False), b)),
    alone(
        "cho_solve_banded",
        complex_samples=[(BANDS[1:] + 1j * BANDS[1:], array(3, 2))],
        of=lambda lib, c, b: lib.cho_solve_banded((c, True), b),
    ),
]
