"""Solvers for the transforms of ``implicit``: dense linear systems, Newton, and fixed points by iteration.

They are ordinary functions of ``funcgrad.numpy``: they run under ``vmap``, where they go on until every example
has converged, and can be differentiated through, which gives the unrolled derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer
from funcgrad.errors import ConvergenceError
from funcgrad.extend import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.transforms.products import jvp
from funcgrad.transforms.vectorize import vmap
from funcgrad.typing import PyTree

__all__ = ["anderson", "dense_solve", "newton", "picard"]

_solve: Operation = primitive(
    "dense_solve",
    lambda xp, a, b: xp.linalg.solve(a, b[..., None])[..., 0],
    vjps=[
        lambda ct, x, ans: -_solve(fnp.swapaxes(x, -1, -2), ct)[..., :, None] * ans[..., None, :],
        lambda ct, x: _solve(fnp.swapaxes(x, -1, -2), ct),
    ],
    jvps=[lambda t, x, ans: -_solve(x, fnp.matvec(t, ans)), lambda t, x: _solve(x, t)],
    batch="leading",
)


class _Flat:
    """A tree as one vector, and back."""

    def __init__(self, like: PyTree) -> None:
        leaves, self.spec = tree.flatten(like)
        self.likes = [(backend.shape_of(leaf), backend.dtype_of(leaf)) for leaf in leaves]
        self.sizes = [int(np.prod(shape, dtype=int)) for shape, _ in self.likes]
        self.dtype = np.result_type(*[dtype for _, dtype in self.likes])
        self.xp = backend.library_of(leaves[0]) if leaves else np

    def vector(self, whole: PyTree) -> Any:
        """The leaves one after the other."""
        parts = [fnp.reshape(leaf, (-1,)) for leaf in tree.leaves(whole)]
        return parts[0] if len(parts) == 1 else fnp.concatenate(parts)

    def tree(self, vector: Any) -> PyTree:
        """The tree with these numbers."""
        leaves, start = [], 0
        for (shape, dtype), size in zip(self.likes, self.sizes, strict=True):
            part = fnp.reshape(vector[start : start + size], shape)
            leaves.append(part if backend.dtype_of(part) == dtype else part.astype(dtype))
            start += size
        return tree.unflatten(self.spec, leaves)


def dense_solve(matvec: Callable[[Any], Any], b: PyTree) -> PyTree:
    """Solve ``matvec(x) = b`` by forming the matrix: exact, for systems of up to a few thousand unknowns.

    Args:
        matvec: a linear function of a tree like ``b`` that returns such a tree.
        b: the right-hand side.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular.

    Example:
        >>> import numpy as np
        >>> from funcgrad.transforms import dense_solve
        >>> dense_solve(lambda x: np.array([[2.0, 0.0], [1.0, 4.0]]) @ x, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    flat = _Flat(b)
    basis = flat.xp.eye(sum(flat.sizes), dtype=flat.dtype)
    matrix = vmap(lambda e: flat.vector(matvec(flat.tree(e))), out_axes=1)(basis)
    return flat.tree(_solve(matrix, flat.vector(b)))


def newton(f: Callable[[Any], Any], x0: PyTree, *, tol: float | None = None, maxiter: int = 50) -> PyTree:
    """A root of ``f`` near ``x0`` by Newton's method.

    Args:
        f: a function of a tree that returns a tree of the same structure and shapes.
        x0: where to begin.
        tol: the largest last step, relative to the root where that is large; None for ``eps**0.75``.
        maxiter: the most steps.

    Raises:
        ArithmeticError: no convergence.

    Example:
        >>> from funcgrad.transforms import newton
        >>> newton(lambda x: x * x - 2.0, 1.0).round(6)
        np.float64(1.414214)
    """
    flat = _Flat(x0)
    tol = _tolerance(flat, tol)
    x, size = x0, None
    for _ in range(maxiter):
        at = x
        step = dense_solve(lambda v, at=at: jvp(f, (at,), (v,))[1], f(at))  # type: ignore[misc]
        x = tree.map(lambda a, b: a - b, at, step)
        size = _size(flat, step, x)
        if _everywhere(size <= tol):
            return x
    raise _no_convergence("newton", "a step", size, maxiter)


def picard(g: Callable[[Any], Any], x0: PyTree, *, tol: float | None = None, maxiter: int = 1000) -> PyTree:
    """A fixed point of ``g`` by plain iteration, for contractions.

    Args:
        g: a function of a tree that returns a tree of the same structure and shapes.
        x0: where to begin.
        tol: the largest last step, relative to the fixed point where that is large; None for ``eps**0.75``.
        maxiter: the most steps.

    Raises:
        ArithmeticError: no convergence.

    Example:
        >>> import numpy as np
        >>> from funcgrad.transforms import picard
        >>> picard(np.cos, 1.0).round(6)
        np.float64(0.739085)
    """
    flat = _Flat(x0)
    tol = _tolerance(flat, tol)
    x, size = x0, None
    for _ in range(maxiter):
        new = g(x)
        size = _size(flat, tree.map(lambda a, b: a - b, new, x), new)
        x = new
        if _everywhere(size <= tol):
            return x
    raise _no_convergence("picard", "a step", size, maxiter)


def anderson(
    g: Callable[[Any], Any], x0: PyTree, *, memory: int = 5, tol: float | None = None, maxiter: int = 200
) -> PyTree:
    """A fixed point of ``g`` by Anderson's accelerated iteration.

    Each step mixes the last iterates so that the residual is least. (D. G. Anderson, Iterative procedures
    for nonlinear integral equations, 1965; in the form of Walker and Ni, 2011.)

    Args:
        g: a function of a tree that returns a tree of the same structure and shapes.
        x0: where to begin.
        memory: how many iterates are mixed.
        tol: the largest last residual, relative to the fixed point where that is large; None for ``eps**0.75``.
        maxiter: the most steps.

    Raises:
        ArithmeticError: no convergence.

    Example:
        >>> import numpy as np
        >>> from funcgrad.transforms import anderson
        >>> anderson(np.cos, 1.0).round(6)
        np.float64(0.739085)
    """
    flat = _Flat(x0)
    tol = _tolerance(flat, tol)
    x, size = flat.vector(x0), None
    points: list[Any] = []
    residuals: list[Any] = []
    for _ in range(maxiter):
        residual = flat.vector(g(flat.tree(x))) - x
        size = _size(flat, residual, x)
        if _everywhere(size <= tol):
            return flat.tree(x + residual)
        points, residuals = [*points, x][-memory - 1 :], [*residuals, residual][-memory - 1 :]
        x = x + residual
        if len(points) > 1:
            x = x - _mixed(flat, points, residuals)
    raise _no_convergence("anderson", "a residual", size, maxiter)


def _mixed(flat: _Flat, points: list[Any], residuals: list[Any]) -> Any:
    """What the earlier iterates take away from the plain step, by least squares."""
    moved = fnp.stack([b - a for a, b in pairwise(points)])
    changed = fnp.stack([b - a for a, b in pairwise(residuals)])
    gram = changed @ changed.T
    info = np.finfo(flat.dtype)
    # Near the end the changes are nearly parallel, or all zero where an example of a batch has converged.
    ridge = fnp.trace(gram) * float(info.eps) * 10 + float(info.tiny)
    weights = _solve(gram + ridge * np.eye(len(points) - 1, dtype=flat.dtype), changed @ residuals[-1])
    return weights @ (moved + changed)


def _tolerance(flat: _Flat, tol: float | None) -> float:
    return float(np.finfo(flat.dtype).eps) ** 0.75 if tol is None else tol


def _size(flat: _Flat, step: PyTree, x: PyTree) -> Any:
    """The largest entry of ``step``, relative to the largest of ``x`` where that is above 1."""
    largest = [fnp.max(fnp.abs(flat.vector(v)), initial=0.0) for v in (step, x)]
    return largest[0] / (1 + largest[1])


def _everywhere(condition: Any) -> bool:
    """Whether ``condition`` holds for all examples of every enclosing ``vmap``."""
    while isinstance(condition, Tracer):
        condition = condition.value
    return bool(condition.all())


def _no_convergence(call: str, what: str, size: Any, maxiter: int) -> ConvergenceError:
    while isinstance(size, Tracer):
        size = size.value
    size = np.nan if size is None else size
    return ConvergenceError(
        f"{call}: no convergence after {maxiter} steps, got {what} of relative size {np.max(size):.1e}. Begin nearer "
        "to the solution, or allow more steps or a larger tol."
    )
