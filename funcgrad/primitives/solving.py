"""Inverses, systems of linear equations, and Cholesky factors of matrices in the last two axes.

Leading axes are batches; in systems of equations they broadcast. Right-hand sides are
matrices here: callers give vectors a second axis. The rules are those of M. Giles, "Collected matrix
derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Primitive, bind, call_operation
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import batch_rule, conform, permute, reshape
from funcgrad.kinds.rules import Operation, finish_operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.elementwise import conjugated
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.shaping import tril, triu
from funcgrad.reverse import vjp_for_all
from funcgrad.typing import Array

ndarray = np.ndarray


def adjoint(x: Array) -> Array:
    """Return ``x`` with its last two axes exchanged, and conjugated."""
    return conjugated(swap_last_axes(x))


def hermitian_part(x: Array) -> Array:
    """Return the Hermitian matrix nearest to ``x``."""
    return (x + adjoint(x)) * 0.5


def _triangle_shares(xp: Any, x: Any, *, lower: bool) -> Any:
    n, other = x.shape[-1], abs(x - x.swapaxes(-1, -2).conj())
    rounding = 1000 * float(np.finfo(x.dtype).eps)
    size = abs(x * (1 - np.eye(n))).max((-2, -1), keepdims=True, initial=0)
    both = (other.max((-2, -1), keepdims=True, initial=0) <= rounding * size) & (size > 0)
    triangle = np.tri(n, k=-1) + np.eye(n) / 2
    return xp.where(both, 0.5, triangle if lower else triangle.T).astype(other.dtype)


#: ``triangle_shares(x, *, lower)``: the share of each element of ``x`` in a Hermitian matrix of which one triangle is
#: read. Half if ``x`` is Hermitian within rounding, so that gradients are Hermitian. Otherwise, and for diagonal
#: matrices, a program may have filled one triangle only: this triangle stands for both.
triangle_shares: Operation = nondifferentiable("triangle_shares", _triangle_shares, batch="leading")


def hermitian_tangent(t: Array, x: Array, *, lower: bool = True) -> Array:
    """Return the tangent of the Hermitian matrix that a function reads in ``x``, for the tangent ``t`` of ``x``."""
    part = t * triangle_shares(x, lower=lower)
    return part + adjoint(part)


def hermitian_cotangent(ct: Array, x: Array, *, lower: bool = True) -> Array:
    """Return the cotangent of ``x`` for the cotangent of the Hermitian matrix that a function reads in it."""
    return (ct + adjoint(ct)) * triangle_shares(x, lower=lower)


inv: Operation = primitive(
    "inv",
    lambda xp, x: xp.linalg.inv(x),
    vjps=[lambda ct, ans: -matmul(swap_last_axes(ans), matmul(ct, swap_last_axes(ans)))],
    jvps=[lambda t, ans: -matmul(ans, matmul(t, ans))],
    batch="leading",
)

# ---- systems of equations ----------------------------------------------------------------------------------


def _linear_system(
    name: str,
    impl: Callable[..., Any],
    *,
    solve_transposed: Callable[..., Any],
    matrix_tangent: Callable[..., Any],
    matrix_cotangent: Callable[..., Any],
) -> Operation:
    """Make the operation that solves ``M Z = y`` for Z, where M is made of the elements of ``x``.

    One more system gives the cotangents of both arguments, or the tangent from both.

    Args:
        name: the name of the operation.
        impl: ``impl(xp, x, y, **params)``.
        solve_transposed: ``solve_transposed(x, ct, **params)`` solves the transposed system.
        matrix_tangent: ``matrix_tangent(t, **params)`` returns the tangent of M from a tangent of ``x``.
        matrix_cotangent: ``matrix_cotangent(ct, **params)``, its transpose: the cotangent of ``x`` from one of M.
    """

    def vjp_each(ct: Any, traced: Any, x: Any, ans: Any, avals: Any, params: Any) -> list[Any]:
        right = solve_transposed(x, ct, **params)
        cts = [right if i else matrix_cotangent(-matmul(right, swap_last_axes(ans)), **params) for i in traced]
        return [conform(c, *aval) for c, aval in zip(cts, avals, strict=True)]

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        ans = call_operation(call, args, params)
        avals = [backend.shape_and_dtype_of(args[i]) for i in traced]
        vjp = vjp_for_all(name, vjp_each, len(traced))
        return ans, vjp, (traced, args[0], ans if 0 in traced else None, avals, params)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = call_operation(call, args, params)
        x_tangent, right = tangents
        if x_tangent is not None:
            moved = matmul(matrix_tangent(x_tangent, **params), ans)
            right = -moved if right is None else right - moved
        return ans, call(args[0], right, **params)

    def call(x: Any, y: Any, **params: Any) -> Any:
        if type(x) is ndarray and type(y) is ndarray:
            return kernel(x, y, **params)
        return bind(made, (x, y), params)

    made = Primitive(name, impl, reverse, forward, _linear_system_batch(call))
    kernel = made.kernel(np)
    return finish_operation(made, call)


def _linear_system_batch(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the batching rule: matrices broadcast, but a single matrix takes all right-hand sides at once."""
    aligned = batch_rule("elementwise", lambda: call)

    def batch(size: int, args: Any, batched: Any, params: Any) -> Any:
        x, y = args
        if batched[0] or len(x.shape) > 2 or len(y.shape) > 3:
            return aligned(size, args, batched, params)
        n, columns = y.shape[1:]
        right_sides = reshape(permute(y, axes=(1, 0, 2)), to=(n, size * columns))
        solved = reshape(call(x, right_sides, **params), to=(n, size, columns))
        return permute(solved, axes=(1, 0, 2)), True

    return batch


def _solve(xp: Any, x: Any, y: Any) -> Any:
    if xp is not np and y.ndim < x.ndim:  # an older JAX takes ``y`` for vectors
        y = y.reshape((*(1,) * (x.ndim - y.ndim), *y.shape))
    return xp.linalg.solve(x, y)


#: ``solve(x, y)``: the solution Z of ``x Z = y``.
solve: Operation = _linear_system(
    "solve",
    _solve,
    solve_transposed=lambda x, ct: solve(swap_last_axes(x), ct),
    matrix_tangent=lambda t: t,
    matrix_cotangent=lambda ct: ct,
)


def _solve_triangular(xp: Any, x: Any, y: Any, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    if xp is not np:
        shape, dtype = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), xp.result_type(x, y)
        x, y = (xp.broadcast_to(a, (*shape, *a.shape[-2:])).astype(dtype) for a in (x, y))
        options = {"lower": lower, "transpose_a": transposed, "unit_diagonal": unit_diagonal}
        return loaded_jax().lax.linalg.triangular_solve(x, y, left_side=True, **options)
    x = np.tril(x) if lower else np.triu(x)
    if unit_diagonal:
        x[..., range(x.shape[-1]), range(x.shape[-1])] = 1
    if transposed:
        x = x.swapaxes(-1, -2)
    if lower is transposed:
        return np.linalg.solve(x, y)
    # The general solver exchanges no rows of an upper triangle, so it does plain substitution.
    return np.linalg.solve(x[..., ::-1, ::-1], y[..., ::-1, :])[..., ::-1, :]


def _triangle(x: Array, *, lower: bool, transposed: bool, unit_diagonal: bool) -> Array:
    """Return the triangle of ``x`` that the operation reads."""
    return tril(x, k=-unit_diagonal) if lower else triu(x, k=+unit_diagonal)


def _triangle_of(t: Array, **options: bool) -> Array:
    part = _triangle(t, **options)
    return swap_last_axes(part) if options["transposed"] else part


#: ``solve_triangular(x, y, *, lower, transposed, unit_diagonal)``: the solution Z of ``M Z = y``, where M is the
#: lower or upper triangle of ``x``, transposed (not conjugated) if ``transposed``. Other elements of ``x`` are
#: not read; with ``unit_diagonal`` the diagonal counts as ones.
solve_triangular: Operation = _linear_system(
    "solve_triangular",
    _solve_triangular,
    solve_transposed=lambda x, ct, *, transposed, **options: solve_triangular(
        x, ct, transposed=not transposed, **options
    ),
    matrix_tangent=_triangle_of,
    matrix_cotangent=lambda ct, **options: _triangle(swap_last_axes(ct) if options["transposed"] else ct, **options),
)


# ---- Cholesky factors --------------------------------------------------------------------------------------


def as_hermitian(xp: Any, x: Any, *, lower: bool = True) -> Any:
    """Return what a routine of ``xp`` needs to see of ``x`` to read one triangle: JAX's read the mean of both."""
    if xp is np:
        return x
    part = x * backend.detached(xp, _triangle_shares(xp, x, lower=lower))
    return part + part.swapaxes(-1, -2).conj()


def _cholesky(xp: Any, x: Any, *, upper: bool) -> Any:
    return xp.linalg.cholesky(as_hermitian(xp, x, lower=not upper), upper=upper)


def _with_half_diagonal(x: Array) -> Array:
    """Return the lower triangle of ``x`` with its diagonal halved."""
    n = x.shape[-1]
    share = np.tri(n, k=-1) + np.eye(n) / 2
    return x * share.astype(np.empty(0, x.dtype).real.dtype)


def _by_factor(factor: Array, x: Array, transposed: bool = False) -> Array:
    return solve_triangular(factor, x, lower=True, transposed=transposed, unit_diagonal=False)


def _cholesky_jvp(t: Array, x: Array, ans: Array, *, upper: bool) -> Array:
    factor = adjoint(ans) if upper else ans
    half = _by_factor(factor, hermitian_tangent(t, x, lower=not upper))
    moved = matmul(factor, _with_half_diagonal(adjoint(_by_factor(factor, adjoint(half)))))
    return adjoint(moved) if upper else moved


def _cholesky_vjp(ct: Array, x: Array, ans: Array, *, upper: bool) -> Array:
    factor, ct = (adjoint(ans), adjoint(ct)) if upper else (ans, ct)
    half = _by_factor(factor, _with_half_diagonal(matmul(swap_last_axes(factor), ct)), transposed=True)
    half = adjoint(_by_factor(factor, adjoint(half), transposed=True))
    return hermitian_cotangent(half, x, lower=not upper)


#: ``cholesky(x, *, upper)``: the triangular L with ``x = L adjoint(L)``, or adjoint(L). Reads one triangle of ``x``;
#: tangents and cotangents are those of Hermitian matrices, see ``triangle_shares``.
cholesky: Operation = primitive("cholesky", _cholesky, vjps=[_cholesky_vjp], jvps=[_cholesky_jvp], batch="leading")
