"""Full Hessian of a function of 50 parameters: products with all unit vectors at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from programs import LESS, Program

import funcgrad.numpy as fnp
from funcgrad import hessian

__all__ = ["programs"]

HIDDEN = 10
PARAMETERS = 5 * HIDDEN


def programs(quick: bool) -> list[Program]:
    return [full_hessian(10 if quick else 100)]


def problem(points: int, dtype: Any) -> tuple[Any, ...]:
    """Return all parameters in one array, points, targets."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, 3))
    return tuple(a.astype(dtype) for a in (rng.standard_normal(PARAMETERS), x, np.sin(x.sum(axis=1))))


def network(tanh: Any, mean: Any) -> Any:
    """Return the squared error of a network with one hidden layer of ten."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        inputs, bias, out = p[:30].reshape(3, HIDDEN), p[30:40], p[40:]
        return mean((tanh(x @ inputs + bias) @ out - y) ** 2)

    return loss


LOSS = network(fnp.tanh, fnp.mean)


def in_funcgrad(p: Any, x: Any, y: Any) -> Any:
    whole = hessian(LOSS)
    return lambda: whole(p, x, y)


def in_torch(p: Any, x: Any, y: Any) -> Any:
    import torch

    def loss(p: Any, x: Any, y: Any) -> Any:
        hidden = torch.tanh(torch.addmm(p[30:40], x, p[:30].reshape(3, HIDDEN)))
        return torch.nn.functional.mse_loss(hidden @ p[40:], y)

    whole, tensors = torch.func.hessian(loss), [torch.from_numpy(a) for a in (p, x, y)]
    return lambda: whole(*tensors)


def in_torch_vectorized(p: Any, x: Any, y: Any) -> Any:
    """Compute the Hessian by batched reverse mode over reverse mode, torch's alternative."""
    import torch

    inputs, targets, leaf = torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(p)

    def loss(p: Any) -> Any:
        hidden = torch.tanh(torch.addmm(p[30:40], inputs, p[:30].reshape(3, HIDDEN)))
        return torch.nn.functional.mse_loss(hidden @ p[40:], targets)

    return lambda: torch.autograd.functional.hessian(loss, leaf, vectorize=True)


def in_autograd(p: Any, x: Any, y: Any) -> Any:
    import autograd
    import autograd.numpy as anp

    whole = autograd.hessian(network(anp.tanh, anp.mean))
    return lambda: whole(p, x, y)


def in_jax(p: Any, x: Any, y: Any) -> Any:
    import jax
    import jax.numpy as jnp

    whole = jax.jit(jax.hessian(network(jnp.tanh, jnp.mean)))
    return lambda: whole(p, x, y)


def full_hessian(points: int) -> Program:
    return Program(
        name=f"Hessian, {PARAMETERS} parameters, {points} points",
        args=lambda dtype: problem(points, dtype),
        libraries={
            "funcgrad": in_funcgrad,
            "torch": in_torch,
            "torch.autograd.functional": in_torch_vectorized,
            "autograd": in_autograd,
        },
        reference=in_jax,
        bars={**LESS, "torch.autograd.functional": 1.0},
        small=lambda dtype: problem(2, dtype),
    )
