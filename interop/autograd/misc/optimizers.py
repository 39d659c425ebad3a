"""Gradient descent with momentum, RMSprop and Adam, on nested containers of arrays.

``grad(x, i)`` returns the gradient in step ``i``. ``callback(x, i, g)`` is called in each step, before ``x`` changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.interop.autograd.misc.flatten import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any]


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Return an optimiser of nested containers, made from an optimiser of vectors."""

    @wraps(optimize)
    def of_trees(grad: Gradient, x0: Any, callback: Callback | None = None, *args: Any, **kwargs: Any) -> Any:
        start, unflatten = flatten(x0)

        def flat_grad(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def flat_callback(x: Any, i: int, g: Any) -> None:
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(flat_grad, start, flat_callback if callback else None, *args, **kwargs))

    return of_trees


@unflatten_optimizer
def sgd(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Minimize by gradient descent with momentum: the velocity is a running mean of negative gradients.

    Example:
        >>> sgd(lambda x, i: 2 * x, np.array([1.0])).round(4) + 0.0
        array([0.])
    """
    velocity = fnp.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Minimize by RMSprop: divide steps by the root of a running mean of squared gradients, which begins at 1."""
    mean_square = fnp.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean_square = gamma * mean_square + (1 - gamma) * g**2
        x = x - step_size * g / (fnp.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Minimize by Adam (Kingma and Ba, 2015, algorithm 1)."""
    first, second = fnp.zeros(len(x)), fnp.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        first = b1 * first + (1 - b1) * g
        second = b2 * second + (1 - b2) * g**2
        unbiased_first, unbiased_second = first / (1 - b1 ** (i + 1)), second / (1 - b2 ** (i + 1))
        x = x - step_size * unbiased_first / (fnp.sqrt(unbiased_second) + eps)
    return x
