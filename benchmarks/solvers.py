"""Python loops with small arrays: a differential equation, a recursive determinant, descents to a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from programs import LESS, Program, by_autograd, by_funcgrad, by_jax, by_torch, everywhere, of_module, value_of

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["descended", "determinant", "programs", "runge_kutta"]

Function = Callable[..., Any]
STEPS, STEP = 100, 0.01
TOLERANCE, RATE = 1e-6, 0.1


def programs(quick: bool) -> list[Program]:
    """Return the programs, those with few numbers first."""
    states = (5,) if quick else (20, 1_000)
    found = [equation(count, 10 if quick else STEPS) for count in states]
    return [
        *found,
        by_recursion(4 if quick else 6),
        descent("a number", 0.3),
        descent("20 numbers", np.arange(4, 24) / 20),
    ]


# Explicit method of the fourth order.


def runge_kutta(slope: Function, y: Any, steps: int) -> Any:
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + 0.5 * STEP * k1)
        k3 = slope(y + 0.5 * STEP * k2)
        k4 = slope(y + STEP * k3)
        y = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def weather(xp: Any) -> Function:
    """Return the equation of Lorenz (1996): states on a circle, each driven by its neighbours."""

    def slope(y: Any) -> Any:
        return (xp.roll(y, -1) - xp.roll(y, 2)) * xp.roll(y, 1) - y + 8.0

    def loss(params: Any, steps: int) -> Any:
        return xp.sum(runge_kutta(slope, params["y"], steps) ** 2)

    return loss


def equation(states: int, steps: int) -> Program:
    start = np.random.default_rng(0).normal(size=states)
    return Program(
        name=f"Runge-Kutta, {states:,} states, {steps} steps",
        args=lambda dtype: ({"y": start.astype(dtype)}, steps),
        libraries=everywhere(weather),
        reference=of_module("jax.numpy", weather, lambda loss: by_jax(loss, compiled=False)),
        value=value_of(weather(fnp)),
        bars=LESS,
        small=lambda dtype: ({"y": start.astype(dtype)}, 1),
    )


# Determinant, by expansion along the first row.


def determinant(m: Any, concatenate: Function = fnp.concatenate) -> Any:
    if len(m) == 1:
        return m[0, 0]
    rest = (concatenate([m[1:, :j], m[1:, j + 1 :]], axis=1) for j in range(len(m)))
    return sum((-1) ** j * (m[0, j] * determinant(minor, concatenate)) for j, minor in enumerate(rest))


def expanded(xp: Any) -> Function:
    return lambda params: determinant(params["a"], xp.concatenate)


def by_recursion(size: int) -> Program:
    square = np.random.default_rng(1).normal(size=(size, size))
    return Program(
        name=f"determinant by recursion, {size} x {size}",
        args=lambda dtype: ({"a": square.astype(dtype)},),
        libraries=everywhere(expanded),
        reference=of_module("jax.numpy", lambda jnp: lambda params: jnp.linalg.det(params["a"]), by_jax),
        value=value_of(expanded(fnp)),
        bars=LESS,
        small=lambda dtype: ({"a": square[:2, :2].astype(dtype)},),
    )


# Derivative of the end of a descent, which takes gradients itself.


def descended(slope: Function, x: Any, largest: Function = abs) -> Any:
    """Descend from ``x`` along ``slope(y, x)``, until the slope is within ``TOLERANCE``."""
    y = 1.0 * x
    while largest(g := slope(y, x)) > TOLERANCE:
        y = y - RATE * g
    return y


def energy(total: Function) -> Function:
    return lambda y, x: total((y * y - x) ** 2)


def ended(gradient: Callable[[Function], Function]) -> Callable[[Any], Function]:
    """Return a writer of the loss, a sum over the end of the descent, for a transform that takes gradients."""

    def write(xp: Any) -> Function:
        slope = gradient(energy(xp.sum))
        return lambda params: xp.sum(descended(slope, params["x"], lambda g: xp.max(abs(g))) ** 3)

    return write


def torch_gradient(fun: Function) -> Function:
    """Return the gradient with a graph, through which the outer gradient runs again."""

    def slope(y: Any, x: Any) -> Any:
        import torch

        return torch.autograd.grad(fun(y, x), y, create_graph=True)[0]

    return slope


def autograd_gradient(fun: Function) -> Function:
    import autograd

    return autograd.grad(fun)


def jax_gradient(fun: Function) -> Function:
    import jax

    return jax.grad(fun)


def descent(what: str, start: Any) -> Program:
    def args(dtype: Any) -> tuple[Any, ...]:
        return ({"x": np.asarray(start, dtype)},)

    return Program(
        name=f"gradient of a descent to a tolerance, {what}",
        args=args,
        libraries={
            "funcgrad": by_funcgrad(ended(grad)(fnp)),
            "torch": of_module("torch", ended(torch_gradient), by_torch),
            "autograd": of_module("autograd.numpy", ended(autograd_gradient), by_autograd),
        },
        reference=of_module("jax.numpy", ended(jax_gradient), lambda loss: by_jax(loss, compiled=False)),
        bars=LESS,
        small=args,
    )
