"""Gain by a second thread: NumPy releases the interpreter's lock in large operations, the library holds it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np
from timing import Claim, check_equal

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["scaling"]

JOBS = 4  # per measurement, by one thread or by two
Work = Callable[[], Any]


def matrices(size: int) -> tuple[Work, Work]:
    """Return the gradient of ``sum((a @ tanh(a @ b))**2)`` in ``a``, four matrix products, and the same by hand."""
    a, b = np.random.default_rng(0).standard_normal((2, size, size)) / size**0.5
    gradient = grad(lambda a: fnp.sum((a @ fnp.tanh(a @ b)) ** 2))

    def by_hand() -> Any:
        hidden = np.tanh(a @ b)
        ct = 2.0 * (a @ hidden)
        return ct @ hidden.T + ((a.T @ ct) * (1.0 - hidden * hidden)) @ b.T

    return lambda: gradient(a), by_hand


def elements(size: int) -> tuple[Work, Work]:
    """Return the gradient of ``sum(exp(-x) * sin(x))``, and the same by hand."""
    x = np.linspace(0.0, 3.0, size)
    gradient = grad(lambda x: fnp.sum(fnp.exp(-x) * fnp.sin(x)))

    def by_hand() -> Any:
        falling = np.exp(-x)
        return falling * np.cos(x) - falling * np.sin(x)

    return lambda: gradient(x), by_hand


def many_small(steps: int) -> tuple[Work, Work]:
    """Return the gradient of a chain of small operations, which hold the lock, and the chain alone by hand."""
    x = np.linspace(0.1, 1.0, 10)

    def chain(sin: Callable[[Any], Any], x: Any) -> Any:
        for _ in range(steps):
            x = x * 1e-6 + sin(x)
        return x

    gradient = grad(lambda x: fnp.sum(chain(fnp.sin, x)))
    return lambda: gradient(x), lambda: chain(np.sin, x)


def seconds(work: Work, pool: ThreadPoolExecutor | None) -> float:
    """Return the elapsed time of ``JOBS`` runs of the work: processor time says nothing about two threads."""
    begin = perf_counter()
    if pool is None:
        for _ in range(JOBS):
            work()
    else:
        for job in [pool.submit(work) for _ in range(JOBS)]:
            job.result()
    return perf_counter() - begin


def gained(works: dict[str, Work], rounds: int) -> dict[str, float]:
    """Return the median speedup of two threads over one for each of the works, measured in turn."""
    found: dict[str, list[float]] = {name: [] for name in works}
    with ThreadPoolExecutor(2) as two:
        for work in works.values():
            seconds(work, two)
        for number in range(rounds):
            for name, work in works.items():
                pools = (None, two) if number % 2 else (two, None)
                times = {pool: seconds(work, pool) for pool in pools}
                found[name].append(times[None] / times[two])
    return {name: statistics.median(ratios) for name, ratios in found.items()}


def scaling(quick: bool) -> list[Claim]:
    """Measure the speedup of gradients in two threads over one after the other, and of NumPy by hand.

    The figure is NumPy's speedup divided by the gradient's: the gain that two threads can bring depends on the machine.
    """
    size, numbers, steps = (100, 20_000, 100) if quick else (500, 500_000, 1_000)
    programs = (
        (f"matrices of {size} x {size}", matrices(size), 1.3),
        (f"elementwise on {numbers:,} numbers", elements(numbers), 1.3),
        (f"a chain of {3 * steps:,} operations on 10 numbers", many_small(steps), None),
    )
    claims = []
    for what, (gradient, by_hand), bar in programs:
        if bar is not None:
            check_equal(gradient(), {"NumPy by hand": by_hand()})
        gains = gained({"gradient": gradient, "by hand": by_hand}, rounds=3 if quick else 15)
        ours, hand = gains["gradient"], gains["by hand"]
        claims.append(
            Claim(
                f"two threads, {what}",
                f"gain {ours:.2f}",
                f"NumPy by hand gains {hand:.2f}",
                hand / ours,
                bar,
            )
        )
    return claims
