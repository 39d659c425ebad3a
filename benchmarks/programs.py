"""Measured programs, and builders that take the gradient of a program by each library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = [
    "BY_HAND",
    "LESS",
    "Program",
    "by_autograd",
    "by_funcgrad",
    "by_jax",
    "by_mygrad",
    "by_torch",
    "everywhere",
    "of_losses",
    "of_module",
    "value_of",
]

Call = Callable[[], Any]
#: Type of functions that make a call without arguments, which returns the gradient, from the program's arguments.
Builder = Callable[..., Call]
Loss = Callable[..., Any]

BY_HAND = "NumPy by hand"
#: Largest ratios of times: funcgrad must take less time than each library in every program.
LESS = {"torch": 1.0, "autograd": 1.0, "mygrad": 1.0}


@dataclass(frozen=True)
class Program:
    """One program, written idiomatically for each library.

    Args:
        name: name in the table.
        args: returns the builders' arguments for a dtype; their size is the program's.
        libraries: a builder for each library, and for each other way worth a line; ``funcgrad`` is one of the keys.
        reference: the builder whose float64 gradient all others must match.
        value: a builder of the plain value, by funcgrad's functions on NumPy arrays.
        bars: largest ratio of funcgrad's time to that of each peer.
        dtype: dtype of the measurement.
        operations: number of operations in one run of the function; 0 means that they are counted.
        small: returns arguments of the same form and tiny size; without them no memory is measured.
        memory_bars: largest ratio of funcgrad's peak of memory to that of each peer.
    """

    name: str
    args: Callable[[Any], tuple[Any, ...]]
    libraries: dict[str, Builder]
    reference: Builder
    value: Builder | None = None
    bars: dict[str, float] = field(default_factory=dict)
    dtype: Any = np.float64
    operations: int = 0
    small: Callable[[Any], tuple[Any, ...]] | None = None
    memory_bars: dict[str, float] = field(default_factory=lambda: LESS)


def by_funcgrad(loss: Loss) -> Builder:
    """Return the builder of the gradient of ``loss`` with respect to its first argument."""

    def build(*args: Any) -> Call:
        gradient = grad(loss)
        return lambda: gradient(*args)

    return build


def value_of(loss: Loss) -> Builder:
    return lambda *args: lambda: loss(*args)


def by_autograd(loss: Loss) -> Builder:
    def build(*args: Any) -> Call:
        import autograd

        gradient = autograd.grad(loss)
        return lambda: gradient(*args)

    return build


def by_torch(loss: Loss) -> Builder:
    """Return the builder for torch: leaves share memory with NumPy arrays; gradients are returned, not accumulated."""

    def build(params: Any, *rest: Any) -> Call:
        import torch

        leaves = {name: torch.from_numpy(p).requires_grad_() for name, p in params.items()}
        others = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in rest]
        flat = list(leaves.values())

        def call() -> Any:
            return dict(zip(leaves, torch.autograd.grad(loss(leaves, *others), flat), strict=True))

        return call

    return build


def by_mygrad(loss: Loss) -> Builder:
    """Return the builder for mygrad: a tensor in a new graph forgets its gradient; costly memory guarding is off."""

    def build(params: Any, *rest: Any) -> Call:
        import mygrad

        mygrad.turn_memory_guarding_off()
        leaves = {name: mygrad.tensor(p, copy=False) for name, p in params.items()}

        def call() -> Any:
            loss(leaves, *rest).backward()
            return {name: leaf.grad for name, leaf in leaves.items()}

        return call

    return build


def by_jax(loss: Loss, compiled: bool = True) -> Builder:
    """Return the builder for JAX, compiled where possible and worthwhile: only its numbers count."""

    def build(*args: Any) -> Call:
        import jax

        gradient = jax.jit(jax.grad(loss)) if compiled else jax.grad(loss)
        return lambda: gradient(*args)

    return build


def of_losses(
    loss: Loss, torch: Loss, autograd: Loss, mygrad: Loss, jax: Loss, others: dict[str, Builder]
) -> dict[str, Any]:
    """Return arguments of ``Program`` for a loss that is written for each library; ``others`` are builders by name."""
    libraries = {
        "funcgrad": by_funcgrad(loss),
        "torch": by_torch(torch),
        "autograd": by_autograd(autograd),
        "mygrad": by_mygrad(mygrad),
    }
    return {"libraries": libraries | others, "reference": by_jax(jax), "value": value_of(loss)}


def of_module(module: str, write: Callable[[Any], Any], build: Callable[[Any], Builder]) -> Builder:
    """Return the builder of a program written with a module's functions; it loads the module at its first call."""
    return lambda *args: build(write(importlib.import_module(module)))(*args)


def everywhere(write: Callable[[Any], Loss]) -> dict[str, Builder]:
    """Return builders of a loss that all libraries write with the same names, for the arrays of a dictionary."""
    return {
        "funcgrad": by_funcgrad(write(fnp)),
        "torch": of_module("torch", write, by_torch),
        "autograd": of_module("autograd.numpy", write, by_autograd),
        "mygrad": of_module("mygrad", write, by_mygrad),
    }
