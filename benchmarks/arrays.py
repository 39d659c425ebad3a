"""Elementwise operations on large arrays, where passes over the memory are the cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["programs"]

#: Names of functions. Two products and a sum follow each, so the program has twenty operations.
CURVES = ("tanh", "sin", "exp", "sqrt", "tanh")
SCALE = 0.5


def programs(quick: bool) -> list[Program]:
    size = 1_000 if quick else 1_000_000
    return [elementwise(size, dtype) for dtype in (np.float32, np.float64)]


def problem(size: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the point of the derivative, and a constant; all values computed from them are positive and moderate."""
    rng = np.random.default_rng(0)
    x, a = rng.uniform(0.1, 1.0, (2, size)).astype(dtype)
    return x, a


def written_with(xp: Any) -> Any:
    """Return the sum of a chain of four operations for each curve."""
    curves = [getattr(xp, name) for name in CURVES]

    def total(x: Any, a: Any) -> Any:
        y = x
        for curve in curves:
            y = curve(y * SCALE + a) * x
        return xp.sum(y)

    return total


def in_funcgrad(x: Any, a: Any) -> Any:
    gradient = grad(written_with(fnp))
    return lambda: gradient(x, a)


def value(x: Any, a: Any) -> Any:
    total = written_with(fnp)
    return lambda: total(x, a)


def in_autograd(x: Any, a: Any) -> Any:
    import autograd
    import autograd.numpy as anp

    gradient = autograd.grad(written_with(anp))
    return lambda: gradient(x, a)


def in_torch(x: Any, a: Any) -> Any:
    import torch

    total, leaf, constant = written_with(torch), torch.from_numpy(x).requires_grad_(), torch.from_numpy(a)
    return lambda: torch.autograd.grad(total(leaf, constant), leaf)[0]


def in_mygrad(x: Any, a: Any) -> Any:
    import mygrad

    mygrad.turn_memory_guarding_off()
    total, leaf = written_with(mygrad), mygrad.tensor(x, copy=False)

    def call() -> Any:
        total(leaf, a).backward()
        return leaf.grad

    return call


def in_jax(x: Any, a: Any) -> Any:
    import jax
    import jax.numpy as jnp

    gradient = jax.jit(jax.grad(written_with(jnp)))
    return lambda: gradient(x, a)


def by_hand(x: np.ndarray, a: np.ndarray) -> Any:
    """Return the gradient by hand: allocate all arrays once; a curve's slope overwrites its argument or its result."""
    inner = np.empty((len(CURVES), *x.shape), x.dtype)
    outer, ct, found, spare = np.empty_like(inner), *np.empty((3, *x.shape), x.dtype)
    scale = x.dtype.type(SCALE)

    def slope(name: str, below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Return the derivative of a curve, overwriting its argument ``below`` or its value ``above``."""
        if name == "exp":
            return above
        if name == "sin":
            return np.cos(below, out=below)
        if name == "sqrt":
            return np.divide(x.dtype.type(0.5), above, out=above)
        np.multiply(above, above, out=above)
        return np.subtract(x.dtype.type(1), above, out=above)

    def call() -> np.ndarray:
        y = x
        for place, name in enumerate(CURVES):
            np.multiply(y, scale, out=inner[place])
            inner[place] += a
            getattr(np, name)(inner[place], out=outer[place])
            y = np.multiply(outer[place], x, out=spare)
        y.sum()  # the value, which every library computes too
        for place in range(len(CURVES) - 1, -1, -1):
            if place == len(CURVES) - 1:  # the cotangent is 1
                found[...] = outer[place]
                np.multiply(x, slope(CURVES[place], inner[place], outer[place]), out=ct)
            else:
                np.multiply(ct, outer[place], out=spare)
                np.add(found, spare, out=found)
                np.multiply(ct, x, out=ct)
                np.multiply(ct, slope(CURVES[place], inner[place], outer[place]), out=ct)
            np.multiply(ct, scale, out=ct)
        return np.add(found, ct, out=found)

    return call


def elementwise(size: int, dtype: Any) -> Program:
    return Program(
        name=f"20 elementwise operations, {size:,} numbers, {np.dtype(dtype).name}",
        args=lambda dtype: problem(size, dtype),
        libraries={
            "funcgrad": in_funcgrad,
            "torch": in_torch,
            "autograd": in_autograd,
            "mygrad": in_mygrad,
            BY_HAND: by_hand,
        },
        reference=in_jax,
        value=value,
        bars={**LESS, BY_HAND: 1.1},
        dtype=dtype,
        operations=20,
        small=lambda dtype: problem(10, dtype),
    )
