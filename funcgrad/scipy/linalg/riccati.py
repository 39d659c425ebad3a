"""Riccati's equations, of optimal control.

SciPy solves. A derivative solves Lyapunov's equation, or Stein's, with the matrix of the closed loop: with the gain K,
which is stationary at the solution, ``D = da - db K`` and ``C = a - b K``,

    C^H dX + dX C + D^H X + X D + K^H dr K - ds K - K^H ds^H + dq = 0

in continuous time, and ``C^H dX C - dX + D^H X C + C^H X D + ... = 0`` in discrete time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.extend import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg.functions import solve_discrete_lyapunov, solve_sylvester
from funcgrad.scipy.linalg.triangles import double, floating, square
from funcgrad.typing import Array, ArrayLike

__all__ = ["solve_continuous_are", "solve_discrete_are"]


def _routine(name: str) -> Any:
    def impl(xp: Any, *matrices: Any, balanced: bool) -> Any:
        if xp is not np:
            raise InputError(
                f"{name}: JAX has no kernel for it, got JAX arrays. Pass NumPy arrays, outside of jax.jit."
            )
        routine = getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
        batch = np.broadcast_shapes(*[m.shape[:-2] for m in matrices])
        if not batch:
            a, b, q, r, s = matrices
            return routine(a, b, q, r, s=s, balanced=balanced)
        whole = [np.broadcast_to(m, batch + m.shape[-2:]) for m in matrices]
        found = [impl(xp, *[m[place] for m in whole], balanced=balanced) for place in np.ndindex(batch)]
        shape = batch + matrices[0].shape[-2:]
        return np.stack(found).reshape(shape) if found else np.zeros(shape, np.result_type(*matrices))

    return impl


def _gain(x: Array, a: Array, b: Array, r: Array, s: Array, discrete: bool) -> Array:
    if discrete:
        return fnp.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a + adjoint(s))
    return fnp.linalg.solve(r, adjoint(b) @ x + adjoint(s))


def _jvps(discrete: bool) -> list[Any]:
    """The tangent rules of the five matrices."""

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
    return primitive(name, _routine(name), jvps=_jvps(discrete), batch="leading")


_CONTINUOUS, _DISCRETE = _operation("solve_continuous_are", False), _operation("solve_discrete_are", True)


def _solved(name: str, operation: Operation, given: Any, e: Any, s: Any, balanced: bool) -> Array:
    if e is None and is_plain(*given, s):
        # With e SciPy is not asked: where it balances, its answer need not solve the equation (SciPy 1.17).
        routine = getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
        plain: Array = routine(*given, s=s, balanced=balanced)
        return plain
    a, q, r = (double(square(name, given[i])) for i in (0, 2, 3))
    b = double(floating(given[1]))
    s = fnp.zeros_like(b) if s is None else double(floating(s))
    if e is not None:  # the same equation, from both sides divided by e
        over = fnp.linalg.inv(double(square(name, e)))
        a, q, s = a @ over, adjoint(over) @ q @ over, adjoint(over) @ s
    q, r = (0.5 * (m + adjoint(m)) for m in (q, r))  # SciPy looks whether they are Hermitian
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
    """The stabilising X of ``a^H X e + e^H X a - (e^H X b + s) inv(r) (b^H X e + s^H) + q = 0``.

    Differentiable in all matrices, to any order; ``q`` and ``r`` are taken for Hermitian ones.

    Args:
        a: a square matrix (M, M).
        b: a matrix (M, N).
        q: a Hermitian matrix (M, M).
        r: a Hermitian matrix (N, N) that has an inverse.
        e: a matrix (M, M) that has an inverse; the identity if not given. The equation is divided by it, for where
            SciPy balances one with ``e``, what it gives need not be a solution.
        s: a matrix (M, N); zero if not given.
        balanced: whether SciPy balances the equation before it solves it.

    Raises:
        LinAlgError: matrices that are not square, or no stabilising solution.
        ValueError: shapes that do not fit, ``q`` or ``r`` that are not Hermitian.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda q: linalg.solve_continuous_are([[0.0]], [[1.0]], q * np.eye(1), [[1.0]])[0, 0])(4.0).round(9)
        np.float64(0.25)
    """
    return _solved("solve_continuous_are", _CONTINUOUS, (a, b, q, r), e, s, balanced)


def solve_discrete_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: ArrayLike | None = None,
    s: ArrayLike | None = None,
    balanced: bool = True,
) -> Array:
    """The stabilising X of ``a^H X a - e^H X e - (a^H X b + s) inv(r + b^H X b) (b^H X a + s^H) + q = 0``.

    Takes and raises what ``solve_continuous_are`` does; ``r`` need not have an inverse.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda q: linalg.solve_discrete_are([[1.0]], [[1.0]], q * np.eye(1), [[1.0]])[0, 0])(0.5).round(9)
        np.float64(1.333333333)
    """
    return _solved("solve_discrete_are", _DISCRETE, (a, b, q, r), e, s, balanced)
