"""Many small operations, where the library is the cost, not the arithmetic."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program
from timing import Claim, check_equal, interleave, microseconds

import funcgrad.numpy as fnp
from funcgrad import grad, jvp

__all__ = ["growth", "left_behind", "programs"]

# Factor so small that the gradient neither vanishes nor explodes, however long the chain.
FACTOR = 1e-6
OPERATIONS = 3  # per step of the chain: a product, a sine, a sum
#: Initial values of a chain: one number, or ten.
STARTS = {"scalar": 0.7, "10 elements": np.linspace(0.1, 1.0, 10)}
ORDERS = {1: "gradient", 2: "second derivative", 3: "third derivative"}
BARS = {**LESS, "JAX, not compiled": 1.0}
#: Numbers of steps for each order; the higher orders go as far as time and memory allow.
LENGTHS = {1: (333, 3_333, 33_333, 333_333), 2: (333, 33_333), 3: (333, 3_333)}
QUICK = {1: (100, 300), 2: (50,), 3: (20,)}
Function = Callable[[Any], Any]


def chain(sin: Function, steps: int) -> Function:
    """Return the function that computes ``x * a + sin(x)`` repeatedly, ``steps`` times."""

    def run(x: Any) -> Any:
        for _ in range(steps):
            x = x * FACTOR + sin(x)
        return x

    return run


def derivative(transform: Callable[[Function], Function], total: Function, run: Function, order: int) -> Function:
    """Return the ``order``-th derivative; each order is the gradient of the sum."""
    return reduce(lambda f, _: transform(lambda x: total(f(x))), range(order), run)


def in_funcgrad(order: int) -> Callable[..., Any]:
    def build(x: Any, steps: int) -> Any:
        total = fnp.sum if np.ndim(x) else lambda y: y
        gradient = derivative(grad, total, chain(fnp.sin, steps), order)
        return lambda: gradient(x)

    return build


def in_autograd(order: int) -> Callable[..., Any]:
    def build(x: Any, steps: int) -> Any:
        import autograd
        import autograd.numpy as anp

        total = anp.sum if np.ndim(x) else lambda y: y
        gradient = derivative(autograd.grad, total, chain(anp.sin, steps), order)
        return lambda: gradient(x)

    return build


def in_torch(order: int) -> Callable[..., Any]:
    def build(x: Any, steps: int) -> Any:
        import torch

        return torch_derivative(chain(torch.sin, steps), x, order)

    return build


def torch_derivative(run: Function, x: Any, order: int) -> Any:
    """Return the ``order``-th derivative in torch, by graphs of graphs."""
    import torch

    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)

    def call() -> Any:
        value = run(leaf)
        for left in range(order, 0, -1):
            total = value.sum() if value.ndim else value
            (value,) = torch.autograd.grad(total, leaf, create_graph=left > 1)
        return value

    return call


def in_mygrad(x: Any, steps: int) -> Any:
    import mygrad

    mygrad.turn_memory_guarding_off()
    run, leaf = chain(mygrad.sin, steps), mygrad.tensor(x)

    def call() -> Any:
        value = run(leaf)
        (value.sum() if value.ndim else value).backward()
        return leaf.grad

    return call


def by_hand(x: Any, steps: int) -> Any:
    """Return the gradient by a forward loop and a backward loop: the time of the NumPy calls alone."""
    sin, cos = (math.sin, math.cos) if isinstance(x, float) else (np.sin, np.cos)

    def call() -> Any:
        passed, y = [], x
        for _ in range(steps):
            passed.append(y)
            y = y * FACTOR + sin(y)
        ct = np.ones_like(x) if np.ndim(x) else 1.0
        for y in reversed(passed):
            ct = ct * FACTOR + ct * cos(y)
        return ct

    return call


def in_jax(order: int) -> Callable[..., Any]:
    def build(x: Any, steps: int) -> Any:
        import jax
        import jax.numpy as jnp

        gradient = jax.jit(derivative(jax.grad, jnp.sum, scanned(steps), order))
        return lambda: gradient(x)

    return build


def in_jax_eagerly(x: Any, steps: int) -> Any:
    import jax
    import jax.numpy as jnp

    gradient, at = derivative(jax.grad, jnp.sum, chain(jnp.sin, steps), 1), jnp.asarray(x)
    return lambda: jax.block_until_ready(gradient(at))


def scanned(steps: int) -> Function:
    """Return the chain as a loop of JAX: an unrolled chain of this length cannot be compiled."""
    import jax
    import jax.numpy as jnp

    return lambda x: jax.lax.scan(lambda x, _: (x * FACTOR + jnp.sin(x), None), x, length=steps)[0]


def plain(x: Any, steps: int) -> Any:
    run = chain(fnp.sin, steps)
    return lambda: run(x)


def forward(x: Any, steps: int) -> Any:
    run, tangent = chain(fnp.sin, steps), np.ones_like(x)
    return lambda: jvp(run, (x,), (tangent,))[1]


def forward_autograd(x: Any, steps: int) -> Any:
    import autograd
    import autograd.numpy as anp

    push, tangent = autograd.make_jvp(chain(anp.sin, steps)), np.ones_like(x)
    return lambda: push(x)(tangent)[1]


def forward_torch(x: Any, steps: int) -> Any:
    """Return the derivative by dual numbers, which cost less than ``torch.func.jvp``."""
    import torch
    from torch.autograd import forward_ad

    run, primal = chain(torch.sin, steps), torch.tensor(x, dtype=torch.float64)
    tangent = torch.ones_like(primal)

    def call() -> Any:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(run(forward_ad.make_dual(primal, tangent))).tangent

    return call


def forward_jax(x: Any, steps: int) -> Any:
    import jax

    push = jax.jit(lambda x, t: jax.jvp(scanned(steps), (x,), (t,))[1])
    return lambda: push(x, np.ones_like(x))


def programs(quick: bool) -> list[Program]:
    """Return chains of one number and of ten, up to the third order, and in forward mode."""
    lengths = QUICK if quick else LENGTHS
    found = []
    for kind, x in STARTS.items():
        for order, steps_of in lengths.items():
            ways = {"funcgrad": in_funcgrad(order), "torch": in_torch(order), "autograd": in_autograd(order)}
            if order == 1:
                ways |= {"mygrad": in_mygrad, BY_HAND: by_hand}
            what = f"{ORDERS[order]}, {kind}"
            found += [of_length(what, x, steps, dict(ways), in_jax(order)) for steps in steps_of]
            if order == 1:  # JAX without its compiler takes so long that one length is enough
                found[-len(steps_of)].libraries["JAX, not compiled"] = in_jax_eagerly
            held = found[-1 if order > 1 else -2]  # long enough to show the memory held
            found[found.index(held)] = replace(held, small=lambda _, x=x: (x, 10))
        ways = {"funcgrad": forward, "torch": forward_torch, "autograd": forward_autograd}
        found += [of_length(f"forward mode, {kind}", x, steps, ways, forward_jax) for steps in lengths[1][:3:2]]
    return found


def of_length(what: str, x: Any, steps: int, ways: dict[str, Any], reference: Any) -> Program:
    count = OPERATIONS * steps
    return Program(
        name=f"chain, {what}, 10^{math.log10(count):.0f} operations",
        args=lambda _: (x, steps),
        libraries=ways,
        reference=reference,
        value=plain,
        bars=BARS,
        operations=count,
    )


def growth(quick: bool) -> list[Claim]:
    """Check that an operation costs as much in a long chain as in a short one: no recursion, no collection."""
    short, long = (100, 1_000) if quick else (333, 333_333)
    claims = []
    for kind, x in STARTS.items():
        calls = {"short": in_funcgrad(1)(x, short), "long": in_funcgrad(1)(x, long)}
        reference = in_jax(1)(x, long)()
        check_equal(reference, {"funcgrad": calls["long"]()})
        times = interleave({"short": repeated(calls["short"], 20), "long": calls["long"]}, rounds=3 if quick else 7)
        first = microseconds(times, "short", 20 * OPERATIONS * short)
        last = microseconds(times, "long", OPERATIONS * long)
        what = f"chain, {kind}: an operation of {OPERATIONS * long:,} against one of {OPERATIONS * short:,}"
        claims.append(Claim(what, f"{last:.3g} us", f"{first:.3g} us", last / first, 1.3))
    return claims


def repeated(call: Callable[[], Any], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            call()

    return run


def left_behind(quick: bool) -> list[Claim]:
    """Count objects that only the collector frees after a call, and memory blocks that are held without it."""
    call = in_funcgrad(1)(STARTS["10 elements"], 2_000 if quick else 200_000)
    gc.collect()
    gc.disable()
    try:
        call()  # fills the interpreter's free lists of tuples
        before = sys.getallocatedblocks()
        call()
        blocks = max(sys.getallocatedblocks() - before, 0)
        garbage = gc.collect()
    finally:
        gc.enable()
    return [
        Claim("chain: left for the garbage collector", f"{garbage} objects", "none", garbage, 0, "objects"),
        Claim("chain: not freed with collection off", f"{blocks} blocks", "100 blocks", blocks, 100, "blocks"),
    ]
