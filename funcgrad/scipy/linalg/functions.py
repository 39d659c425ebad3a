"""Functions of square matrices, and equations of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg import operations as prim
from funcgrad.scipy.linalg.mirror import mirrors
from funcgrad.scipy.linalg.triangles import double, floating, square
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "expm", "expm_frechet", "fractional_matrix_power", "logm", "solve_continuous_lyapunov", "solve_discrete_lyapunov",
    "solve_lyapunov", "solve_sylvester", "sqrtm", "tanhm",
]  # fmt: skip


@mirrors
def expm(A: ArrayLike) -> Array:
    """The exponential of square matrices; see ``funcgrad.numpy.linalg.expm``.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.expm([[0.0, 1.0], [0.0, 0.0]])
        array([[1., 1.],
               [0., 1.]])
    """
    return fnp.linalg.expm(square("expm", A))


@mirrors
def expm_frechet(
    A: ArrayLike, E: ArrayLike, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of ``A`` and its derivative along ``E``.

    Args:
        A: square matrices.
        E: directions, of the shape of ``A``.
        method: for SciPy alone, as ``check_finite`` is.
        compute_expm: whether to return the exponential too.
        check_finite: see ``method``.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], compute_expm=False)
        array([[1., 2.],
               [3., 4.]])
    """
    a, e = double(square("expm_frechet", A)), double(square("expm_frechet", E))
    n = backend.shape_of(a)[-1]
    made = fnp.linalg.expm(_block(a, e))
    return (made[..., :n, :n], made[..., :n, n:]) if compute_expm else made[..., :n, n:]


def _block(a: Array, e: Array) -> Array:
    """``[[a, e], [0, a]]``."""
    above = fnp.concatenate([a, e], axis=-1)
    return fnp.concatenate([above, fnp.concatenate([fnp.zeros_like(a), a], axis=-1)], axis=-2)


@mirrors
def sqrtm(A: ArrayLike) -> Array:
    """The principal square root of square matrices; see ``funcgrad.numpy.linalg.sqrtm``.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]])
        array([[2., 0.],
               [0., 3.]])
    """
    return fnp.linalg.sqrtm(square("sqrtm", A))


@mirrors
def logm(A: ArrayLike) -> Array:
    """The principal logarithm of square matrices; see ``funcgrad.numpy.linalg.logm``.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.logm([[1.0, 1.0], [0.0, 1.0]]).round(12)
        array([[0., 1.],
               [0., 0.]])
    """
    return fnp.linalg.logm(square("logm", A))


@mirrors
def fractional_matrix_power(A: ArrayLike, t: Any) -> Array:
    """Square matrices to the power ``t``, which need not be an integer: ``expm(t * logm(A))``.

    Args:
        A: square matrices. Of traced values they have an inverse, if ``t`` is not an integer.
        t: the exponent, a number. It has a derivative.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.fractional_matrix_power([[4.0, 0.0], [0.0, 9.0]], 0.5).round(12)
        array([[2., 0.],
               [0., 3.]])
    """
    a = double(square("fractional_matrix_power", A))
    if not isinstance(t, Tracer) and backend.namespace_of(t) is np and float(t).is_integer():
        return fnp.linalg.matrix_power(a, int(t))
    return fnp.linalg.expm(t * fnp.linalg.logm(a))


def _hyperbolic(a: Array) -> tuple[Array, Array]:
    up, down = fnp.linalg.expm(a), fnp.linalg.expm(-a)
    return 0.5 * (up + down), 0.5 * (up - down)


@mirrors
def tanhm(A: ArrayLike) -> Array:
    """The hyperbolic tangent of square matrices.

    Raises:
        LinAlgError: matrices that are not square, or a singular hyperbolic cosine.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.tanhm([[0.0, 1.0], [0.0, 0.0]])
        array([[0., 1.],
               [0., 0.]])
    """
    cosine, sine = _hyperbolic(square("tanhm", A))
    return fnp.linalg.solve(cosine, sine)


@mirrors
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Array:
    """The matrix ``x`` with ``a @ x + x @ b = q``.

    Args:
        a: square matrices.
        b: square matrices; no eigenvalue of one is minus one of the other.
        q: right-hand sides.

    Raises:
        LinAlgError: matrices that are not square, or no single solution.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_sylvester([[2.0]], [[3.0]], [[10.0]])
        array([[2.]])
    """
    right = floating(q)
    return prim.solve_sylvester(square("solve_sylvester", a), square("solve_sylvester", b), right)


@mirrors
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """The matrix ``x`` with ``a @ x + x @ a^H = q``.

    Args:
        a: square matrices.
        q: right-hand sides.

    Raises:
        LinAlgError: matrices that are not square, or no single solution.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_continuous_lyapunov([[2.0]], [[8.0]])
        array([[2.]])
    """
    a = square("solve_continuous_lyapunov", a)
    return prim.solve_sylvester(a, adjoint(a), square("solve_continuous_lyapunov", q))


solve_lyapunov = solve_continuous_lyapunov


@mirrors
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """The matrix ``x`` with ``a @ x @ a^H - x + q = 0``.

    Args:
        a: square matrices.
        q: right-hand sides.
        method: "direct", by one system of as many equations as ``x`` has elements, or "bilinear", by
            ``solve_continuous_lyapunov``; by default the first of fewer than ten rows.

    Raises:
        LinAlgError: matrices that are not square, or no single solution.
        ValueError: an unknown ``method``.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_discrete_lyapunov([[0.5]], [[3.0]])
        array([[4.]])
    """
    a, q = double(square("solve_discrete_lyapunov", a)), double(square("solve_discrete_lyapunov", q))
    n = backend.shape_of(a)[-1]
    method = (method or ("direct" if n < 10 else "bilinear")).lower()
    if method not in ("direct", "bilinear"):
        raise ValueError(
            f"solve_discrete_lyapunov: method is 'direct' or 'bilinear', got {method!r}. Give one of them, or None."
        )
    eye = np.eye(n, dtype=np.int8)
    if method == "direct":
        products = a[..., :, None, :, None] * a.conj()[..., None, :, None, :]
        batch = backend.shape_of(a)[:-2]
        system = np.eye(n * n, dtype=np.int8) - fnp.reshape(products, (*batch, n * n, n * n))
        right = fnp.reshape(q, (*backend.shape_of(q)[:-2], n * n, 1))
        x = fnp.linalg.solve(system, right)
        return fnp.reshape(x, (*backend.shape_of(x)[:-2], n, n))
    across = fnp.linalg.inv(adjoint(a) + eye)
    b = (adjoint(a) - eye) @ across
    c = 2 * (fnp.linalg.inv(a + eye) @ q @ across)
    return prim.solve_sylvester(adjoint(b), b, -c)
