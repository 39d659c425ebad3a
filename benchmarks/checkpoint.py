"""Memory that checkpointing holds, and steps that it runs again."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from timing import Claim

import funcgrad.numpy as fnp
from funcgrad import grad
from funcgrad.transforms.checkpointing import checkpoint, checkpoint_chain
from funcgrad.transforms.policies import dots_saveable

__all__ = ["layers", "long_chain", "online_chain"]

STATE = 131_072  # numbers: 1 MiB
MB = 1e6


class Step:
    """One elementwise step of a chain that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, h: Any, *_: Any) -> Any:
        self.calls += 1
        return h + h * (1e-4 - 1e-4 * h)  # the derivative of many steps neither vanishes nor explodes


def held(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of ``call`` and the largest memory that it held at once, in megabytes."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = call()
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return result, most / MB


def chain_claims(what: str, steps: int, budget: int, bars: tuple[float, float], xs: Callable[[], Any]) -> list[Claim]:
    """Measure memory and repeated steps of the gradient of a chain, and compare its entries with the plain loop's."""
    step, state = Step(), np.linspace(0.1, 0.9, STATE)
    gradient, most = held(lambda: grad(lambda h: fnp.sum(checkpoint_chain(step, h, xs(), budget=budget)))(state))
    calls = step.calls

    def loop(h: Any) -> Any:
        for _ in range(steps):
            h = step(h)
        return fnp.sum(h)

    some = np.ascontiguousarray(state[:: STATE // 8])
    assert np.array_equal(gradient[:: STATE // 8], grad(loop)(some)), "another gradient than the loop's"
    assert gradient.any()
    plain = steps * state.nbytes / MB  # the least that the loop keeps: a state for each step
    title = f"{what} of {steps:,} steps of {state.nbytes / MB:.1f} MB, budget {budget}"
    return [
        Claim(f"{title}: held", f"{most:.1f} MB", f"the loop {plain:,.0f} MB", most, bars[0], "MB"),
        Claim(f"{title}: sweeps", f"{calls:,} steps", f"the loop {steps:,}", calls / steps - 1, bars[1], "more"),
    ]


def long_chain(quick: bool) -> list[Claim]:
    """Measure a chain of known length, for which the places of the kept states are optimal."""
    steps, budget = (300, 10) if quick else (10_000, 37)
    return chain_claims("chain", steps, budget, (60.0, 3.0), lambda: range(steps))


def online_chain(quick: bool) -> list[Claim]:
    """Measure a chain whose length is unknown while it runs."""
    steps, budget = (300, 10) if quick else (5_000, 37)

    def items() -> Iterator[int]:
        yield from range(steps)

    return chain_claims("chain of unknown length", steps, budget, (60.0, 4.0), items)


def layers(quick: bool) -> list[Claim]:
    """Measure a network of wide layers of several operations: plain, checkpointed, and with the products kept."""
    rows, width, depth = (256, 64, 8) if quick else (2_048, 256, 16)
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(rows, width)), list(rng.normal(size=(depth, width, width)) / np.sqrt(width))

    def loss(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(weights: Any) -> Any:
            h = x
            for w in weights:
                h = wrap(lambda h, w=w: h + fnp.tanh(fnp.sin(h @ w) * fnp.exp(-h * h)) * fnp.cos(h))(h)
            return fnp.sum(h * h)

        return run

    ways: dict[str, Callable[[Any], Any]] = {
        "plain": lambda f: f,
        "checkpoint": checkpoint,
        "checkpoint, products kept": lambda f: checkpoint(f, policy=dots_saveable),
    }
    figures, results = {}, {}
    for name, wrap in ways.items():
        gradient = grad(loss(wrap))
        results[name], most = held(lambda gradient=gradient: gradient(weights))
        start = perf_counter()
        gradient(weights)
        figures[name] = most, perf_counter() - start
    claims = []
    most_plain, time_plain = figures["plain"]
    for name, bar in (("checkpoint", 0.4), ("checkpoint, products kept", 0.6)):
        assert all(map(np.array_equal, results[name], results["plain"])), f"{name}: another gradient"
        most, time = figures[name]
        title = f"{depth} layers, {rows} x {width}, {name}"
        claims.append(Claim(f"{title}: held", f"{most:.0f} MB", f"plain {most_plain:.0f} MB", most / most_plain, bar))
        claims.append(Claim(f"{title}: time", f"{time:.3g} s", f"plain {time_plain:.3g} s", time / time_plain, None))
    return claims
