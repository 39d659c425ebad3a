"""Jacobians of many inputs by forward mode: JVPs with all unit vectors at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from programs import LESS, Program, of_module, value_of

import funcgrad.numpy as fnp
from funcgrad import jacfwd

__all__ = ["programs"]

Function = Callable[..., Any]


def programs(quick: bool) -> list[Program]:
    widths, points = ((6, 5, 4), 10) if quick else ((200, 100, 50), 1_000)
    name = f"Jacobian forwards, network {'-'.join(map(str, widths))}"
    return [
        of(name, network, partial(network_problem, widths), partial(network_problem, (3, 2, 2))),
        of(f"Jacobian forwards, Burgers' equation, {points:,} points", flow, partial(flow_problem, points)),
    ]


def of(name: str, write: Callable[[Any], Function], args: Function, small: Function | None = None) -> Program:
    """Return a program of a function that all libraries write with the same names."""
    return Program(
        name=name,
        args=args,
        libraries={
            "funcgrad": by_funcgrad(write(fnp)),
            "torch": of_module("torch", write, by_torch),
            "autograd": of_module("autograd.numpy", write, by_autograd),
            "autograd, reverse": of_module("autograd.numpy", write, by_autograd_backwards),
        },
        reference=of_module("jax.numpy", write, by_jax),
        value=value_of(write(fnp)),
        bars={**LESS, "autograd, reverse": 1.0},
        small=small or partial(flow_problem, 10),
    )


def by_funcgrad(fun: Function) -> Function:
    whole = jacfwd(fun)
    return lambda *args: lambda: whole(*args)


def by_torch(fun: Function) -> Function:
    def build(*args: Any) -> Any:
        import torch

        whole, tensors = torch.func.jacfwd(fun), list(map(torch.from_numpy, args))
        return lambda: whole(*tensors)

    return build


def by_autograd(fun: Function) -> Function:
    """Compute with one unit vector at a time: autograd has no ``vmap``."""

    def build(x: Any, *rest: Any) -> Any:
        import autograd

        push, units = autograd.make_jvp(lambda x: fun(x, *rest)), np.eye(len(x), dtype=x.dtype)
        return lambda: np.stack([push(x)(unit)[1] for unit in units], axis=1)

    return build


def by_autograd_backwards(fun: Function) -> Function:
    def build(*args: Any) -> Any:
        import autograd

        whole = autograd.jacobian(fun)
        return lambda: whole(*args)

    return build


def by_jax(fun: Function) -> Function:
    def build(*args: Any) -> Any:
        import jax

        whole = jax.jit(jax.jacfwd(fun))
        return lambda: whole(*args)

    return build


def network_problem(widths: tuple[int, ...], dtype: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape) * shape[0] ** -0.5 for shape in (widths[:2], widths[1:])]
    return tuple(a.astype(dtype) for a in (rng.normal(size=widths[0]), *weights))


def network(xp: Any) -> Function:
    return lambda x, first, second: xp.tanh(xp.tanh(x @ first) @ second)


def flow_problem(points: int, dtype: Any) -> tuple[Any, ...]:
    place = 2 * np.pi * np.arange(points) / points
    return ((np.sin(place) + 0.3 * np.cos(3 * place)).astype(dtype),)


def flow(xp: Any) -> Function:
    """Return the rate of change of a flow on a circle, by central differences."""

    def change(u: Any) -> Any:
        left, right = xp.roll(u, 1), xp.roll(u, -1)
        return 0.1 * (left - 2.0 * u + right) - 0.5 * u * (right - left)

    return change
