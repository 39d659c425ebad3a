"""Gradients with Hessian-vector products of costs that choose, gather and sum by segments: Newton's method.

Each point belongs to the cluster of the nearest centre. For dense points the Hessian is diagonal, so its product with
ones is its diagonal. Sparse points are the rows of a matrix of which only the nonzero numbers are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from programs import LESS, Program, of_module, value_of

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import grad, jvp, vjp

__all__ = ["programs"]

CENTRES, DIMENSIONS, COLUMNS, IN_ROW = 10, 4, 50, 5
Function = Callable[..., Any]


def programs(quick: bool) -> list[Program]:
    """Return the programs, by the number of distances, or of products of numbers and centres."""
    sizes = (200,) if quick else (10_000, 100_000, 1_000_000)
    return [
        program for size in sizes for make in (dense, sparse) for program in (make(size, FORWARD), make(size, REVERSE))
    ]


# How each library differentiates a cost; the arguments are the first argument, a direction, and the data.


def forward_by_funcgrad(cost: Function) -> Function:
    """Compute the gradient's derivative along the direction."""
    return lambda c, v, *data: lambda: jvp(grad(lambda c: cost(c, *data)), (c,), (v,))


def reverse_by_funcgrad(cost: Function) -> Function:
    """Compute the pullback of the gradient, since the Hessian is symmetric."""

    def build(c: Any, v: Any, *data: Any) -> Any:
        slope = grad(lambda c: cost(c, *data))

        def call() -> Any:
            found, pullback = vjp(slope, c)
            return found, pullback(v)[0]

        return call

    return build


def forward_by_torch(cost: Function) -> Function:
    def build(*args: Any) -> Any:
        import torch

        c, v, *data = map(torch.from_numpy, args)
        slope = torch.func.grad(lambda c: cost(c, *data))
        return lambda: torch.func.jvp(slope, (c,), (v,))

    return build


def reverse_by_torch(cost: Function) -> Function:
    def build(c: Any, *rest: Any) -> Any:
        import torch

        leaf, (v, *data) = torch.from_numpy(c).requires_grad_(), map(torch.from_numpy, rest)

        def call() -> Any:
            (slope,) = torch.autograd.grad(cost(leaf, *data), leaf, create_graph=True)
            return slope.detach(), torch.autograd.grad(slope, leaf, v)[0]

        return call

    return build


def forward_by_autograd(cost: Function) -> Function:
    def build(c: Any, v: Any, *data: Any) -> Any:
        import autograd

        pushed = autograd.make_jvp(autograd.grad(lambda c: cost(c, *data)))
        return lambda: pushed(c)(v)

    return build


def reverse_by_autograd(cost: Function) -> Function:
    def build(c: Any, v: Any, *data: Any) -> Any:
        import autograd

        slope = autograd.grad(lambda c: cost(c, *data))

        def call() -> Any:
            pullback, found = autograd.make_vjp(slope)(c)
            return found, pullback(v)

        return call

    return build


#: Two ways to a product with the Hessian: of the gradient, the derivative along the direction, or the pullback.
FORWARD: dict[str, Function] = {
    "funcgrad": forward_by_funcgrad,
    "torch": forward_by_torch,
    "autograd": forward_by_autograd,
}
REVERSE: dict[str, Function] = {
    "funcgrad": reverse_by_funcgrad,
    "torch": reverse_by_torch,
    "autograd": reverse_by_autograd,
}


def by_jax(cost: Function) -> Function:
    def build(c: Any, v: Any, *data: Any) -> Any:
        import jax

        whole = jax.jit(lambda c, v, *data: jax.jvp(lambda c: jax.grad(cost)(c, *data), (c,), (v,)))
        return lambda: whole(c, v, *data)

    return build


def of(name: str, cost: Callable[[Any], Function], problem: Function, size: int, ways: dict[str, Function]) -> Program:
    """Return a program of a cost that all libraries write with the same names."""
    written = cost(fnp)
    return Program(
        name=f"{name}, {'forward' if ways is FORWARD else 'reverse'} over reverse",
        args=partial(problem, size),
        libraries={
            "funcgrad": ways["funcgrad"](written),
            "torch": of_module("torch", cost, ways["torch"]),
            "autograd": of_module("autograd.numpy", cost, ways["autograd"]),
        },
        reference=of_module("jax.numpy", cost, by_jax),
        value=value_of(lambda c, v, *data: written(c, *data)),
        bars=LESS,
        small=partial(problem, 10 * CENTRES),
    )


# Cost functions.


def dense_problem(size: int, dtype: Any) -> tuple[Any, ...]:
    """Return centres, ones, points."""
    points = np.random.default_rng(0).normal(size=(size // CENTRES, DIMENSIONS)).astype(dtype)
    return points[:CENTRES] + dtype(0.1), np.ones((CENTRES, DIMENSIONS), dtype), points


def dense_cost(xp: Any) -> Function:
    def cost(c: Any, points: Any) -> Any:
        nearest = xp.argmin(xp.sum(c * c, 1) - 2.0 * (points @ c.T), 1)
        apart = points - c[nearest]
        return xp.sum(apart * apart)

    return cost


def dense(size: int, ways: dict[str, Function]) -> Program:
    return of(f"Hessian's diagonal, nearest centres, {size:,} distances", dense_cost, dense_problem, size, ways)


def sparse_problem(size: int, dtype: Any) -> tuple[Any, ...]:
    """Return centres and a direction, a column per centre; numbers, their rows and columns; squared norms of rows."""
    rng, count = np.random.default_rng(0), size // CENTRES
    c, v = rng.normal(size=(2, COLUMNS, CENTRES)).astype(dtype)
    numbers, columns = rng.normal(size=count).astype(dtype), rng.integers(0, COLUMNS, count)
    rows = np.arange(count) // IN_ROW
    return c, v, numbers, rows, columns, np.bincount(rows, numbers**2).astype(dtype)


def sparse_cost(xp: Any) -> Function:
    total = SEGMENT_SUMS[xp.__name__]()

    def cost(c: Any, numbers: Any, rows: Any, columns: Any, norms: Any) -> Any:
        products = total(numbers[:, None] * c[columns], rows, len(norms))
        distances = norms[:, None] - 2.0 * products + xp.sum(c * c, 0)
        least = distances[xp.arange(len(norms)), xp.argmin(distances, 1)]
        return xp.sum(xp.log(least + COLUMNS))

    return cost


def segment_sum_torch() -> Function:
    import torch

    return lambda data, rows, count: torch.zeros(count, data.shape[1], dtype=data.dtype).index_add(0, rows, data)


def segment_sum_autograd() -> Function:
    """Return the operation that autograd lacks, as its users write it."""
    from autograd.extend import defjvp, defvjp, primitive

    @primitive
    def segment_sum(data: Any, rows: Any, count: int) -> Any:
        found = np.zeros((count, data.shape[1]), data.dtype)
        np.add.at(found, rows, data)
        return found

    defvjp(segment_sum, lambda ans, data, rows, count: lambda ct: ct[rows], argnums=(0,))
    defjvp(segment_sum, lambda t, ans, data, rows, count: segment_sum(t, rows, count), argnums=(0,))
    return segment_sum


def segment_sum_jax() -> Function:
    import jax

    return jax.ops.segment_sum


SEGMENT_SUMS: dict[str, Callable[[], Function]] = {
    "funcgrad.numpy": lambda: fnn.segment_sum,
    "torch": segment_sum_torch,
    "autograd.numpy": segment_sum_autograd,
    "jax.numpy": segment_sum_jax,
}


def sparse(size: int, ways: dict[str, Function]) -> Program:
    return of(f"Hessian times vector, sparse points, {size:,} products", sparse_cost, sparse_problem, size, ways)
