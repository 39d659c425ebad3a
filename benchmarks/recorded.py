"""Gradients recorded and written down as NumPy code, in shares of the eager run and of the same by hand."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import convolution
import lstm
import mixture
import mlp
import numpy as np
import small
from chains import by_hand, chain, derivative
from programs import BY_HAND, Program
from solvers import descended, determinant, runge_kutta
from timing import Claim, check_equal, interleave

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jit

__all__ = ["chains", "derivatives", "first_calls", "networks", "solvers"]

Function = Callable[..., Any]
#: In shares of the eager time and of what NumPy takes by hand: chains of numbers, of ten elements, networks.
NUMBERS, NOT_EXACT, TEN, NETWORKS = (0.18, 1.3), (0.06, 0.8), (0.35, 1.0), (0.35, 1.6)


def compared(
    what: str,
    fun: Function,
    args: tuple[Any, ...],
    by_hand: Any,
    bars: tuple[float | None, float | None],
    **options: Any,
) -> list[Claim]:
    """The lines of a program: of the eager time, and of the time by hand if there is one."""
    fast = jit(fun, backend="numpy", **options)
    check_equal(fun(*args), {"recorded": fast(*args)})
    calls = {"eager": lambda: fun(*args), "recorded": lambda: fast(*args)}
    if by_hand is not None:
        calls["by hand"] = by_hand
    once = statistics.median(interleave(calls, 3)["eager"])
    times = interleave(calls, 15, repeat=max(1, int(2e-2 / max(once, 1e-6))))
    best = {name: min(of) for name, of in times.items()}
    ours = f"{1e6 * best['recorded']:.3g} us"
    claims = []
    for name, bar in zip(("eager", "by hand"), bars, strict=True):
        if name in best:
            against = f"{name} {1e6 * best[name]:.3g} us"
            claims.append(Claim(f"recorded: {what}", ours, against, best["recorded"] / best[name], bar))
    return claims


def chains(quick: bool) -> list[Claim]:
    """Chains of numbers and of ten elements."""
    claims = []
    for steps in (100,) if quick else (333, 3_333, 33_333):
        run, x, ten = chain(fnp.sin, steps), np.float64(0.7), np.linspace(0.1, 1.0, 10)
        number = derivative(grad, lambda y: y, run, 1)
        name = f"chain of {steps:,} steps on "
        claims += compared(name + "a number", number, (x,), by_hand(0.7, steps), NUMBERS)
        claims += compared(name + "a number, not exact", number, (x,), by_hand(0.7, steps), NOT_EXACT, exact=False)
        claims += compared(name + "ten elements", derivative(grad, fnp.sum, run, 1), (ten,), by_hand(ten, steps), TEN)
    return claims


def derivatives(quick: bool) -> list[Claim]:
    """One call at a number, and derivatives of higher order."""
    claims = compared(
        "sin(cos(exp(x*x))) at a number", grad(small.composed(fnp)), (np.float64(0.7),), None, (0.35, None)
    )
    for order in (2,) if quick else (2, 3, 4, 5):
        fun = derivative(grad, lambda y: y, chain(fnp.sin, 3), order)
        claims += compared(f"derivative of order {order}", fun, (np.float64(0.7),), None, (0.1, None))
    x = np.linspace(0.1, 1, 10 if quick else 50)
    fun = hessian(lambda x: fnp.sum(fnp.sin(x) * fnp.exp(x[::-1]) / (1 + x * x)))
    return [*claims, *compared(f"Hessian of {len(x)}", fun, (x,), None, (0.1, None))]


def networks(quick: bool) -> list[Claim]:
    """The networks and mixtures of the other tables."""
    bars: dict[str, tuple[float, float]] = {"network 3-3-1": (0.35, 1.2), "RNN": NETWORKS, "LSTM": (0.35, 1.2)}
    bars |= {"d = 2,": (0.6, 1.6), "d = 10": (0.9, 1.6), "d = 32": (0.95, 1.6), "d = 64": (1.0, 1.6)}
    bars |= {"MLP": (1.0, 1.05), "conv": (1.0, 1.05)}
    claims = []
    for module in (small, lstm, mixture, mlp, convolution):
        for program in module.programs(quick):
            bar = next((bar for key, bar in bars.items() if key in program.name), None)
            if bar is not None and "per example" not in program.name:
                claims += of_program(program, bar)
    return claims


def of_program(program: Program, bar: tuple[float, float]) -> list[Claim]:
    """The lines of a program that another table has too."""
    args = program.args(program.dtype)
    call: Any = program.libraries["funcgrad"](*args)
    held = dict(zip(call.__code__.co_freevars, [cell.cell_contents for cell in call.__closure__], strict=True))
    hand = program.libraries.get(BY_HAND)
    return compared(program.name, held["gradient"], held["args"], hand(*args) if hand else None, bar)


def solvers(quick: bool) -> list[Claim]:
    """A differential equation, a determinant by recursion, a loop that stops on a tolerance around a gradient."""
    claims = []
    a = np.random.default_rng(0).normal(size=(20, 20)) / 20
    fun = grad(lambda a, y: fnp.sum(runge_kutta(lambda y: fnp.tanh(a @ y), y, 20 if quick else 100)))
    claims += compared("Runge-Kutta, 20 states", fun, (a, np.ones(20)), None, (0.35, None))
    size = 4 if quick else 6
    square = np.random.default_rng(1).normal(size=(size, size))
    claims += compared(f"determinant {size} x {size} by recursion", grad(determinant), (square,), None, (0.1, None))
    slope = grad(lambda y, x: (y * y - x) ** 2)
    descent = grad(lambda x: descended(slope, x))
    claims += compared("gradient of a descent to a tolerance", descent, (np.float64(0.3),), None, (0.1, None))
    return claims


def first_calls(quick: bool) -> list[Claim]:
    """To record, write and compile, in eager gradients and by operation."""
    claims = []
    for steps in (100,) if quick else (333, 3_333, 14_286):
        fun = derivative(grad, lambda y: y, chain(fnp.sin, steps), 1)
        x = np.float64(0.7)
        eager = min(seconds(partial(fun, x)) for _ in range(5))
        first = min(seconds(partial(jit(fun, backend="numpy"), x)) for _ in range(2))
        operations, what = 7 * steps, f"recorded: first call, {7 * steps:,} operations"
        claims.append(Claim(what, f"{first:.3g} s", f"eager {eager:.3g} s", first / eager, 30))
        claims.append(Claim(what, f"{first:.3g} s", "an operation", 1e6 * first / operations, 50, "us"))
    return claims


def seconds(call: Function) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
