"""Many small operations: here the library itself is the cost, not the arithmetic."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Claim, check_equal, interleave, microseconds, slower

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["first_order", "long_chain", "scalar_call", "second_order"]

# So small that the gradient neither vanishes nor grows, however long the chain.
FACTOR = 1e-6
OPERATIONS = 3  # in one step of the chain: a product, a sine, a sum
START = np.linspace(0.1, 1.0, 10)


def chain(sin: Callable[[Any], Any], steps: int) -> Callable[[Any], Any]:
    """``x * a + sin(x)``, ``steps`` times."""

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = x * FACTOR + sin(x)
        return x

    return run


def in_funcgrad(steps: int) -> Callable[[], Any]:
    run = chain(fnp.sin, steps)
    gradient = grad(lambda x: fnp.sum(run(x)))
    return lambda: gradient(START)


def in_autograd(steps: int) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    run = chain(anp.sin, steps)
    gradient = autograd.grad(lambda x: anp.sum(run(x)))
    return lambda: gradient(START)


def in_torch(steps: int) -> Callable[[], Any]:
    import torch

    run = chain(torch.sin, steps)

    def gradient() -> Any:
        x = torch.from_numpy(START).requires_grad_()
        run(x).sum().backward()
        return x.grad

    return gradient


def in_jax(steps: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    run = chain(jnp.sin, steps)
    gradient, x = jax.grad(lambda x: jnp.sum(run(x))), jnp.asarray(START)
    return lambda: jax.block_until_ready(gradient(x))


def first_order(quick: bool) -> list[Claim]:
    """A chain of 6,000 operations, forward and backward, against everybody; JAX on a shorter one."""
    steps, short = (200, 20) if quick else (2_000, 100)
    ours = in_funcgrad(steps)
    peers = {"torch": in_torch(steps), "autograd": in_autograd(steps)}
    check_equal(ours(), {name: peer() for name, peer in peers.items()})
    check_equal(in_funcgrad(short)(), {"JAX": in_jax(short)()})
    times = interleave({"funcgrad": ours, **peers, "JAX": in_jax(short)}, rounds=3 if quick else 15)
    mine = microseconds(times, "funcgrad", OPERATIONS * steps)
    what = f"gradient, chain of {OPERATIONS * steps:,} operations"
    return [
        slower(what, "/op", mine, name, microseconds(times, name, OPERATIONS * length), bar)
        for name, length, bar in (("torch", steps, 1 / 2), ("autograd", steps, 1 / 12), ("JAX", short, 1 / 40))
    ]


def long_chain(quick: bool) -> list[Claim]:
    """A hundred times longer: no recursion, and freed by reference counts alone."""
    steps = 2_000 if quick else 200_000
    count = OPERATIONS * steps
    ours, peer = in_funcgrad(steps), in_torch(steps)
    check_equal(ours(), {"torch": peer()})
    times = interleave({"funcgrad": ours, "torch": peer}, rounds=3)
    what = f"gradient, chain of {count:,} operations"
    mine, theirs = (microseconds(times, name, count) for name in ("funcgrad", "torch"))
    garbage, blocks = left_behind(ours)
    return [
        slower(what, "/op", mine, "torch", theirs, 1 / 2),
        Claim("  left for the garbage collector", f"{garbage} objects", "none", garbage, 0, "objects"),
        Claim("  not freed with collection off", f"{blocks} blocks", "100 blocks", blocks, 100, "blocks"),
    ]


def left_behind(call: Callable[[], Any]) -> tuple[int, int]:
    """Objects that only the collector frees after ``call``, and memory blocks that are held while it is off."""
    gc.collect()
    gc.disable()
    try:
        call()  # fills the interpreter's stores of free tuples
        before = sys.getallocatedblocks()
        call()
        blocks = sys.getallocatedblocks() - before
        return gc.collect(), max(blocks, 0)
    finally:
        gc.enable()


def second_order(quick: bool) -> list[Claim]:
    """The second derivative of a chain: a tape of a tape."""
    import torch

    steps = 50 if quick else 200
    run, torch_run = chain(fnp.sin, steps), chain(torch.sin, steps)
    first = grad(lambda x: fnp.sum(run(x)))
    second = grad(lambda x: fnp.sum(first(x)))

    def ours() -> Any:
        return second(START)

    def peer() -> Any:
        x = torch.from_numpy(START).requires_grad_()
        (slope,) = torch.autograd.grad(torch_run(x).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.sum(), x)[0]

    check_equal(ours(), {"torch": peer()})
    times = interleave({"funcgrad": ours, "torch": peer}, rounds=5 if quick else 41)
    mine, theirs = (microseconds(times, name, OPERATIONS * steps) for name in ("funcgrad", "torch"))
    what = f"second derivative, chain of {OPERATIONS * steps:,} operations"
    return [slower(what, "/op", mine, "torch", theirs, 1 / 1.5)]


def scalar_call(quick: bool) -> list[Claim]:
    """One whole call on one number, from the argument to the gradient."""
    import autograd
    import autograd.numpy as anp
    import torch

    def program(xp: Any) -> Callable[[Any], Any]:
        return lambda x: xp.sin(xp.cos(xp.exp(-x * x)))

    ours, hips, of_tensor = grad(program(fnp)), autograd.grad(program(anp)), program(torch)
    functional = torch.func.grad(of_tensor)

    def in_torch(x: float) -> Any:
        leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        of_tensor(leaf).backward()
        return leaf.grad

    def in_torch_func(x: float) -> Any:
        return functional(torch.tensor(x, dtype=torch.float64))

    point = 0.7
    calls = {"funcgrad": ours, "autograd": hips, "torch": in_torch, "torch.func.grad": in_torch_func}
    check_equal(ours(point), {name: call(point) for name, call in calls.items()})
    times = interleave(
        {name: lambda call=call: call(point) for name, call in calls.items()}, rounds=20 if quick else 101, repeat=50
    )
    mine = microseconds(times, "funcgrad")
    what = "gradient of sin(cos(exp(-x*x))) at a number"
    return [Claim(what, f"{mine:.3g} us", "15 us", mine, 15.0, "us")] + [
        slower(what, "", mine, name, microseconds(times, name), bar)
        for name, bar in (("autograd", 15 / 48), ("torch", 15 / 94), ("torch.func.grad", None))
    ]
