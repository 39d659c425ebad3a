"""What a measured program is, and how each library takes the gradient of one."""

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
#: Makes, of the arguments, a call without arguments that gives the gradient.
Builder = Callable[..., Call]
Loss = Callable[..., Any]

BY_HAND = "NumPy by hand"
#: In every program funcgrad is to take less than the others.
LESS = {"torch": 1.0, "autograd": 1.0, "mygrad": 1.0}


@dataclass(frozen=True)
class Program:
    """One program, written for each library as a good user of it would.

    Args:
        name: what the table calls it.
        args: the arguments that the builders get, for a dtype; their size is the program's.
        libraries: a builder for each library, and for each other way worth a line; ``funcgrad`` is one of them.
        reference: the builder whose gradient in float64 all the others must have.
        value: a builder of the plain value, by funcgrad's functions on arrays of NumPy.
        bars: the most that funcgrad may take, in what the peer takes.
        dtype: in which it is measured.
        operations: in one run of the function; counted where it is 0.
        small: arguments of the same form and next to no size; without them no memory is measured.
        memory_bars: the same as ``bars``, for the peak of memory.
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
    """The gradient of ``loss`` in its first argument."""

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
    """Leaves that share the memory of NumPy's arrays; the gradients are returned, not accumulated."""

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
    """A tensor forgets its gradient when it takes part in something new. Guarding of memory is off: it costs time."""

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
    """Compiled where that can be done and pays: only the numbers count here."""

    def build(*args: Any) -> Call:
        import jax

        gradient = jax.jit(jax.grad(loss)) if compiled else jax.grad(loss)
        return lambda: gradient(*args)

    return build


def of_losses(
    loss: Loss, torch: Loss, autograd: Loss, mygrad: Loss, jax: Loss, others: dict[str, Builder]
) -> dict[str, Any]:
    """What a ``Program`` is told of a loss that is written for each library; ``others`` are builders by name."""
    libraries = {
        "funcgrad": by_funcgrad(loss),
        "torch": by_torch(torch),
        "autograd": by_autograd(autograd),
        "mygrad": by_mygrad(mygrad),
    }
    return {"libraries": libraries | others, "reference": by_jax(jax), "value": value_of(loss)}


def of_module(module: str, write: Callable[[Any], Any], build: Callable[[Any], Builder]) -> Builder:
    """Builds with what is written by the functions of a module, which is loaded only where the program runs by it."""
    return lambda *args: build(write(importlib.import_module(module)))(*args)


def everywhere(write: Callable[[Any], Loss]) -> dict[str, Builder]:
    """The gradient of a loss that all libraries write with the same names, in the arrays of a dictionary."""
    return {
        "funcgrad": by_funcgrad(write(fnp)),
        "torch": of_module("torch", write, by_torch),
        "autograd": of_module("autograd.numpy", write, by_autograd),
        "mygrad": of_module("mygrad", write, by_mygrad),
    }
