"""Functions of square matrices, and matrix equations.

SciPy solves Riccati's equations, of optimal control. A derivative solves the equation of Lyapunov or Stein with the
closed-loop matrix. With the gain K, which is stationary at the solution, ``D = da - db K`` and ``C = a - b K``,

    C^H dX + dX C + D^H X + X D + K^H dr K - ds K - K^H ds^H + dq = 0

in continuous time, and ``C^H dX C - dX + D^H X C + C^H X D + ... = 0`` in discrete time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.extend import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.function_tables import with_signature_of
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg import operations as prim
from funcgrad.scipy.linalg.solving import double, floating, square
from funcgrad.scipy.own_code import mirror_rows, mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "expm", "expm_frechet", "fractional_matrix_power", "logm", "solve_continuous_lyapunov", "solve_discrete_lyapunov",
    "solve_lyapunov", "solve_sylvester", "sqrtm", "tanhm", "solve_continuous_are", "solve_discrete_are",
]  # fmt: skip


def _tanhm(a: Array) -> Array:
    up, down = fnp.linalg.expm(a), fnp.linalg.expm(-a)
    return fnp.linalg.solve(0.5 * (up + down), 0.5 * (up - down))


_OF_SQUARE = {
    "expm": fnp.linalg.expm,
    "sqrtm": fnp.linalg.sqrtm,
    "logm": lambda a: fnp.linalg.logm(double(a)),
    "tanhm": _tanhm,
}


@mirror_rows
def _of_square(name: str, A: ArrayLike) -> Array:
    return _OF_SQUARE[name](square(name, A, numbers=name == "expm"))


# fmt: off
expm = _of_square("expm", """The exponential of square matrices; see ``funcgrad.numpy.linalg.expm``.

    Raises:
        LinAlgError: a matrix is not square.""",
    "expm([[0.0, 1.0], [0.0, 0.0]])", "array([[1., 1.],\n       [0., 1.]])")
sqrtm = _of_square("sqrtm", """The principal square root of square matrices; see ``funcgrad.numpy.linalg.sqrtm``.

    Raises:
        LinAlgError: a matrix is not square.""",
    "sqrtm([[4.0, 0.0], [0.0, 9.0]])", "array([[2., 0.],\n       [0., 3.]])")
logm = _of_square("logm", """The principal logarithm of square matrices; see ``funcgrad.numpy.linalg.logm``.

    Raises:
        LinAlgError: a matrix is not square.""",
    "logm([[1.0, 1.0], [0.0, 1.0]]).round(12)", "array([[0., 1.],\n       [0., 0.]])")
tanhm = _of_square("tanhm", """The hyperbolic tangent of square matrices.

    Raises:
        LinAlgError: a matrix is not square, or its hyperbolic cosine is singular.""",
    "tanhm([[0.0, 1.0], [0.0, 0.0]])", "array([[0., 1.],\n       [0., 0.]])")
# fmt: on


@mirrors
def expm_frechet(
    A: ArrayLike, E: ArrayLike, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """Compute the exponential of ``A`` and its derivative along ``E``.

    Args:
        A: square matrices.
        E: directions; their batches broadcast with those of ``A``.
        method: used by SciPy alone, like ``check_finite``.
        compute_expm: whether to return the exponential too.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], compute_expm=False)
        array([[1., 2.],
               [3., 4.]])
    """
    a, e = fnp.broadcast_arrays(double(square("expm_frechet", A)), double(square("expm_frechet", E)))
    n = backend.shape_of(a)[-1]
    made = fnp.linalg.expm(_block(a, e))
    return (made[..., :n, :n], made[..., :n, n:]) if compute_expm else made[..., :n, n:]


def _block(a: Array, e: Array) -> Array:
    """Return ``[[a, e], [0, a]]``."""
    above = fnp.concatenate([a, e], axis=-1)
    return fnp.concatenate([above, fnp.concatenate([fnp.zeros_like(a), a], axis=-1)], axis=-2)


@mirrors
def fractional_matrix_power(A: ArrayLike, t: Any) -> Array:
    """Raise square matrices to the power ``t``, which need not be an integer: ``expm(t * logm(A))``.

    Args:
        A: square matrices. Traced ones must have an inverse, if ``t`` is not an integer.
        t: the exponent, a number. It has a derivative.

    Raises:
        LinAlgError: a matrix is not square.

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


@mirrors
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Array:
    """Return the matrix ``x`` with ``a @ x + x @ b = q``.

    Args:
        a: square matrices.
        b: square matrices; no eigenvalue of ``b`` is minus an eigenvalue of ``a``.
        q: right-hand sides.

    Raises:
        LinAlgError: a matrix is not square, or the solution is not unique.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_sylvester(np.array([[2.0]]), np.array([[3.0]]), np.array([[10.0]]))
        array([[2.]])
    """
    right = floating(q)
    return prim.solve_sylvester(square("solve_sylvester", a), square("solve_sylvester", b), right)


@mirrors
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """Return the matrix ``x`` with ``a @ x + x @ a^H = q``; arguments and errors as for ``solve_sylvester``.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_continuous_lyapunov([[2.0]], [[8.0]])
        array([[2.]])
    """
    a, q = (square("solve_continuous_lyapunov", m, numbers=True) for m in (a, q))
    return prim.solve_sylvester(a, adjoint(a), q)


solve_lyapunov = solve_continuous_lyapunov


@mirrors
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """Return the matrix ``x`` with ``a @ x @ a^H - x + q = 0``.

    Args:
        a: square matrices.
        q: right-hand sides.
        method: "direct", by one linear system with as many equations as ``x`` has entries, or "bilinear", by
            ``solve_continuous_lyapunov``; the default is "direct" for fewer than ten rows.

    Raises:
        LinAlgError: a matrix is not square, or the solution is not unique.
        ValueError: ``method`` is unknown.

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


def _routine(name: str) -> Any:
    def impl(xp: Any, *matrices: Any, balanced: bool) -> Any:
        if xp is not np:
            raise InputError(
                f"{name}: JAX has no kernel for it, got JAX arrays. Pass NumPy arrays, outside of jax.jit."
            )
        routine = getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
        batch = np.broadcast_shapes(*[m.shape[:-2] for m in matrices])
        if 0 in batch:
            return np.zeros(batch + matrices[0].shape[-2:], np.result_type(*matrices))
        solve = lambda a, b, q, r, s: (routine(a, b, q, r, s=s, balanced=balanced),)
        return prim.each(solve, (2,) * len(matrices), *matrices)[0]

    return impl


def _gain(x: Array, a: Array, b: Array, r: Array, s: Array, discrete: bool) -> Array:
    if discrete:
        return fnp.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a + adjoint(s))
    return fnp.linalg.solve(r, adjoint(b) @ x + adjoint(s))


def _jvps(discrete: bool) -> list[Any]:
    """Return the JVP rules for the five matrices."""

    def rule(moved: Any) -> Any:
        def jvp(t: Array, ans: Array, args: Any, *, balanced: bool) -> Array:
            a, b, _, r, s = args
            gain = _gain(ans, a, b, r, s, discrete)
            closed = a - b @ gain
            source = moved(t, ans @ closed if discrete else ans, gain)
            source = 0.5 * (source + adjoint(source))
            if discrete:
                return solve_discrete_lyapunov(adjoint(closed), source)
            return solve_sylvester(adjoint(closed), closed, -source)

        return jvp

    of = [
        lambda t, x, gain: 2.0 * (adjoint(t) @ x),
        lambda t, x, gain: -2.0 * (adjoint(t @ gain) @ x),
        lambda t, x, gain: t,
        lambda t, x, gain: adjoint(gain) @ t @ gain,
        lambda t, x, gain: -2.0 * (t @ gain),
    ]
    return [rule(moved) for moved in of]


def _operation(name: str, discrete: bool) -> Operation:
    return primitive(name, _routine(name), jvps=_jvps(discrete), batch="elementwise")


_CONTINUOUS, _DISCRETE = _operation("solve_continuous_are", False), _operation("solve_discrete_are", True)


def _solved(
    name: str, operation: Operation, a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Array:
    if e is None and is_plain(a, b, q, r, s):
        # With e, SciPy is not called: if it balances, its answer need not solve the equation (SciPy 1.17).
        routine = getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
        plain: Array = routine(a, b, q, r, s=s, balanced=balanced)
        return plain
    a, q, r = (double(square(name, m, numbers=True)) for m in (a, q, r))
    b = double(floating(fnp.atleast_2d(b)))
    s = fnp.zeros_like(b) if s is None else double(floating(fnp.atleast_2d(s)))
    if e is not None:  # the same equation, divided by e from both sides
        over = fnp.linalg.inv(double(square(name, e, numbers=True)))
        a, q, s = a @ over, adjoint(over) @ q @ over, adjoint(over) @ s
    q, r = (0.5 * (m + adjoint(m)) for m in (q, r))  # SciPy checks that they are Hermitian
    dtype = np.result_type(*[backend.dtype_of(m) for m in (a, b, q, r, s)])
    return operation(*[fnp.astype(m, dtype) for m in (a, b, q, r, s)], balanced=bool(balanced))


def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
    balanced: bool = True,
) -> Array:
    """Return the stabilising X of ``a^H X e + e^H X a - (e^H X b + s) inv(r) (b^H X e + s^H) + q = 0``.

    Differentiable in all matrices, to any order; ``q`` and ``r`` are taken to be Hermitian.

    Args:
        a: a square matrix (M, M).
        b: a matrix (M, N).
        q: a Hermitian matrix (M, M).
        r: a Hermitian matrix (N, N) that has an inverse.
        e: a matrix (M, M) that has an inverse; the identity if not given. The equation is divided by ``e``, because
            SciPy's result with ``e`` need not be a solution if SciPy balances the equation.
        s: a matrix (M, N); zero if not given.
        balanced: whether SciPy balances the equation before it solves it.

    Raises:
        LinAlgError: a matrix is not square, or there is no stabilising solution.
        ValueError: shapes do not match, or ``q`` or ``r`` is not Hermitian.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda q: linalg.solve_continuous_are([[0.0]], [[1.0]], q * np.eye(1), [[1.0]])[0, 0])(4.0).round(9)
        np.float64(0.25)
    """
    return _solved("solve_continuous_are", _CONTINUOUS, a, b, q, r, e, s, balanced)


@with_signature_of(solve_continuous_are)
def solve_discrete_are(*args: Any, **kwargs: Any) -> Array:
    """Return the stabilising X of ``a^H X a - e^H X e - (a^H X b + s) inv(r + b^H X b) (b^H X a + s^H) + q = 0``.

    Arguments and errors are those of ``solve_continuous_are``; ``r`` need not have an inverse.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda q: linalg.solve_discrete_are([[1.0]], [[1.0]], q * np.eye(1), [[1.0]])[0, 0])(0.5).round(9)
        np.float64(1.333333333)
    """
    return _solved("solve_discrete_are", _DISCRETE, *args, **kwargs)
