"""Fifth derivative of a small network of one number: gradients of gradients, five deep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from chains import Function, derivative, torch_derivative
from programs import LESS, Program, of_module

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["programs"]

ORDER = 5


def programs(quick: bool) -> list[Program]:
    return [deep(3 if quick else 10)]


def problem(hidden: int) -> tuple[Any, ...]:
    """Return the point of the derivative, and the weights of two hidden layers."""
    rng = np.random.default_rng(0)
    inner = rng.standard_normal((hidden, hidden)) * hidden**-0.5
    return 0.3, rng.standard_normal(hidden), rng.standard_normal(hidden), inner, rng.standard_normal(hidden)


def network(tanh: Function, *weights: Any) -> Function:
    first, bias, inner, last = weights
    return lambda x: tanh(tanh(x * first + bias) @ inner) @ last


def by_gradients(transform: Callable[[Function], Function]) -> Callable[[Function], Any]:
    """Return the derivative by a transform that takes the gradient of a function."""

    def of(tanh: Function) -> Any:
        def build(x: Any, *weights: Any) -> Any:
            whole = derivative(transform, lambda y: y, network(tanh, *weights), ORDER)
            return lambda: whole(x)

        return build

    return of


def in_torch(x: Any, *weights: Any) -> Any:
    import torch

    return torch_derivative(network(torch.tanh, *map(torch.from_numpy, weights)), x, ORDER)


def in_torch_func(x: Any, *weights: Any) -> Any:
    import torch

    whole = derivative(torch.func.grad, lambda y: y, network(torch.tanh, *map(torch.from_numpy, weights)), ORDER)
    at = torch.tensor(x, dtype=torch.float64)
    return lambda: whole(at)


def in_autograd(*args: Any) -> Any:
    import autograd

    return of_module("autograd.numpy", lambda anp: anp.tanh, by_gradients(autograd.grad))(*args)


def in_jax(*args: Any) -> Any:
    import jax

    return of_module("jax.numpy", lambda jnp: jnp.tanh, by_gradients(lambda f: jax.jit(jax.grad(f))))(*args)


def plain(x: Any, *weights: Any) -> Any:
    run = network(fnp.tanh, *weights)
    return lambda: run(x)


def deep(hidden: int) -> Program:
    return Program(
        name=f"fifth derivative, network 1-{hidden}-{hidden}-1",
        args=lambda _: problem(hidden),
        libraries={
            "funcgrad": by_gradients(grad)(fnp.tanh),
            "torch": in_torch,
            "torch.func.grad": in_torch_func,
            "autograd": in_autograd,
        },
        reference=in_jax,
        value=plain,
        bars={**LESS, "torch.func.grad": 1.0},
        small=lambda _: problem(2),
    )
