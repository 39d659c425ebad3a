"""Gradients recorded as NumPy code, relative to the eager run and to handwritten NumPy.

Each way is timed in its own process, the processes in turn. The least time of many turns counts.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import arrays
import convolution
import lstm
import measuring
import mixture
import mlp
import numpy as np
import small
import turns
from chains import by_hand, chain, derivative
from programs import BY_HAND, Program
from run import ENVIRONMENT
from solvers import RATE, STEP, TOLERANCE, descended, determinant, runge_kutta
from timing import Claim, check_equal

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jit

__all__ = ["against_xla", "chains", "derivatives", "first_calls", "memory", "networks", "solvers"]

Function = Callable[..., Any]
#: Bars relative to the eager time and to NumPy by hand: chains of numbers, of ten elements, networks.
NUMBERS, NOT_EXACT, TEN, NETWORKS = (0.18, 1.3), (0.06, 0.8), (0.35, 1.0), (0.35, 1.6)


@dataclass(frozen=True)
class Case:
    """A measured program.

    Args:
        what: name in the table.
        fun: the original function.
        args: its arguments.
        bars: largest ratios of the recorded time to the eager time and to the time by hand.
        hand: a call that computes the same by hand, if there is one.
        options: options of ``jit``.
        outside: function to time instead if transforms surround the recorded function, else None.
    """

    what: str
    fun: Function
    args: tuple[Any, ...]
    bars: tuple[float | None, float | None]
    hand: Function | None = None
    options: dict[str, Any] = field(default_factory=dict)
    outside: Function | None = None

    def call(self, way: str) -> Function:
        """Return the call to time: "eager", "recorded", or "by hand"."""
        if way == "by hand":
            assert self.hand is not None
            return self.hand
        fun = self.fun if way == "eager" else self.outside or jit(self.fun, backend="numpy", **self.options)
        return partial(fun, *self.args)


def of_chains(quick: bool) -> Iterator[Case]:
    """Yield chains of numbers and of ten elements."""
    for steps in (100,) if quick else (333, 3_333, 33_333):
        run, x, ten = chain(fnp.sin, steps), np.float64(0.7), np.linspace(0.1, 1.0, 10)
        number = derivative(grad, lambda y: y, run, 1)
        name = f"chain of {steps:,} steps on "
        yield Case(name + "a number", number, (x,), NUMBERS, by_hand(0.7, steps))
        yield Case(name + "a number, not exact", number, (x,), NOT_EXACT, by_hand(0.7, steps), {"exact": False})
        yield Case(name + "ten elements", derivative(grad, fnp.sum, run, 1), (ten,), TEN, by_hand(ten, steps))


def of_derivatives(quick: bool) -> Iterator[Case]:
    """Yield one call at a number, and derivatives of higher order."""
    x = np.float64(0.7)
    yield Case("sin(cos(exp(x*x))) at a number", grad(small.composed(fnp)), (x,), (0.35, None))
    for order in (2,) if quick else (2, 3, 4, 5):
        fun = derivative(grad, lambda y: y, chain(fnp.sin, 3), order)
        yield Case(f"derivative of order {order}", fun, (x,), (0.2 if order > 2 else 0.1, None))
    points = np.linspace(0.1, 1, 10 if quick else 50)
    fun = hessian(lambda x: fnp.sum(fnp.sin(x) * fnp.exp(x[::-1]) / (1 + x * x)))
    yield Case(f"Hessian of {len(points)}", fun, (points,), (0.1, None))


def of_networks(quick: bool) -> Iterator[Case]:
    """Yield the networks and mixtures of the other tables."""
    bars: dict[str, tuple[float, float | None]] = {"network 3-3-1": (0.35, 1.2), "RNN": NETWORKS, "LSTM": (0.35, 1.2)}
    bars |= {"d = 2,": (0.6, 1.6), "d = 10": (0.9, 1.6), "d = 32": (0.95, 1.6), "d = 64": (1.0, 1.6)}
    bars |= {"MLP": (1.0, 1.05), "conv": (1.0, 1.05), "elementwise": (1.0, None)}
    for module in (small, lstm, mixture, mlp, convolution, arrays):
        for program in module.programs(quick):
            bar = next((bar for key, bar in bars.items() if key in program.name), None)
            if bar is not None and "per example" not in program.name:
                yield of_program(program, bar)
    args = small.tutorial_args(np.float64)
    loss = small.tutorial_funcgrad()
    around = grad(jit(loss, backend="numpy"))
    yield Case("network 3-3-1, grad(jit(f))", grad(loss), args, (1.0, None), outside=around)


def of_program(program: Program, bars: tuple[float, float | None]) -> Case:
    """Return the case of a program that another table has too."""
    args = program.args(program.dtype)
    call: Any = program.libraries["funcgrad"](*args)
    held = dict(zip(call.__code__.co_freevars, [cell.cell_contents for cell in call.__closure__], strict=True))
    gradient = held.get("gradient", held.get("fun"))
    hand = program.libraries.get(BY_HAND)
    return Case(program.name, gradient, held.get("args", args), bars, hand(*args) if hand else None)


def of_solvers(quick: bool) -> Iterator[Case]:
    """Yield a differential equation, a recursive determinant, a loop to a tolerance that takes gradients."""
    a = np.random.default_rng(0).normal(size=(20, 20)) / 20
    fun = grad(lambda a, y: fnp.sum(runge_kutta(lambda y: fnp.tanh(a @ y), y, 20 if quick else 100)))
    by_hand = partial(runge_kutta_by_hand, a, np.ones(20), 20 if quick else 100)
    yield Case("Runge-Kutta, 20 states", fun, (a, np.ones(20)), (0.35, 1.0), by_hand)
    size = 4 if quick else 6
    square = np.random.default_rng(1).normal(size=(size, size))
    yield Case(f"determinant {size} x {size} by recursion", grad(determinant), (square,), (0.1, None))
    slope = grad(lambda y, x: (y * y - x) ** 2)
    descent = grad(lambda x: descended(slope, x))
    by_hand = partial(descended_by_hand, 0.3)
    yield Case("gradient of a descent to a tolerance", descent, (np.float64(0.3),), (0.1, 1.7), by_hand)


def runge_kutta_by_hand(a: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    """Compute forward and back; one product computes the outer products of all stages."""
    passed, places, slopes = [], [], []
    for _ in range(steps):
        k1 = np.tanh(a @ y)
        y2 = y + 0.5 * STEP * k1
        k2 = np.tanh(a @ y2)
        y3 = y + 0.5 * STEP * k2
        k3 = np.tanh(a @ y3)
        y4 = y + STEP * k3
        k4 = np.tanh(a @ y4)
        passed.append((k1, k2, k3, k4))
        places += [y, y2, y3, y4]
        y = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    y.sum()  # the value, which every library computes too
    ct, back = np.ones_like(y), a.T
    for k1, k2, k3, k4 in reversed(passed):
        share = STEP / 6 * ct
        d4 = share * (1 - k4 * k4)
        c4 = back @ d4
        d3 = (2 * share + STEP * c4) * (1 - k3 * k3)
        c3 = back @ d3
        d2 = (2 * share + 0.5 * STEP * c3) * (1 - k2 * k2)
        c2 = back @ d2
        d1 = (share + 0.5 * STEP * c2) * (1 - k1 * k1)
        ct = ct + c4 + c3 + c2 + back @ d1
        slopes += [d4, d3, d2, d1]
    return np.array(slopes[::-1]).T @ np.array(places)


def descended_by_hand(x: float) -> float:
    """Compute the gradient of the descent by hand, on Python numbers."""
    passed, y = [], 1.0 * x
    while abs(slope := 4 * y * (y * y - x)) > TOLERANCE:
        passed.append(y)
        y = y - RATE * slope
    ct, found = 1.0, 0.0
    for y in reversed(passed):
        found += ct * RATE * 4 * y
        ct -= ct * RATE * (12 * y * y - 4 * x)
    return found + ct


CASES = {"chains": of_chains, "derivatives": of_derivatives, "networks": of_networks, "solvers": of_solvers}


def compared(group: str, case: Case, quick: bool) -> list[Claim]:
    """Return the lines of a program: relative to the eager time, and to the time by hand if there is one."""
    ways = ["recorded", "eager", *["by hand"] * (case.hand is not None)]
    commands = {way: [sys.executable, __file__, *["--quick"] * quick, group, case.what, way] for way in ways}
    with turns.started(commands, ENVIRONMENT) as servants:
        times = turns.in_turn(servants, quick)
    best = {way: min(of) for way, of in times.items()}
    claims = []
    for way, bar in zip(("eager", "by hand"), case.bars, strict=True):
        if way in best:
            ours, against = f"{1e6 * best['recorded']:.3g} us", f"{way} {1e6 * best[way]:.3g} us"
            claims.append(Claim(f"recorded: {case.what}", ours, against, best["recorded"] / best[way], bar))
    return claims


def serve(group: str, what: str, way: str, quick: bool) -> None:
    """Time a way whenever the other process requests it by a line with the number of calls."""
    measuring.one_core()
    case = next(case for case in CASES[group](quick) if case.what == what)
    call = case.call(way)
    for _ in range(3):  # transforms around a recorded function choose the best way at the third call
        found = call()
    check_equal(case.fun(*case.args), {way: found}, measuring.TOLERANCE["float32" if "float32" in what else "float64"])
    print(json.dumps({"first": seconds(call, 1)}), flush=True)
    for line in sys.stdin:
        print(seconds(call, int(line)), flush=True)


def seconds(call: Function, repeat: int) -> float:
    start = thread_time()
    for _ in range(repeat):
        call()
    return (thread_time() - start) / repeat


def chains(quick: bool) -> list[Claim]:
    """Measure chains of numbers and of ten elements."""
    return [claim for case in of_chains(quick) for claim in compared("chains", case, quick)]


def derivatives(quick: bool) -> list[Claim]:
    """Measure one call at a number, and derivatives of higher order."""
    return [claim for case in of_derivatives(quick) for claim in compared("derivatives", case, quick)]


def networks(quick: bool) -> list[Claim]:
    """Measure the networks and mixtures of the other tables."""
    return [claim for case in of_networks(quick) for claim in compared("networks", case, quick)]


def solvers(quick: bool) -> list[Claim]:
    """Measure a differential equation, a recursive determinant, a loop to a tolerance that takes gradients."""
    return [claim for case in of_solvers(quick) for claim in compared("solvers", case, quick)]


def first_calls(quick: bool) -> list[Claim]:
    """Measure first calls, relative to eager gradients and per operation; for long programs also time and memory."""
    claims = []
    for steps in (100,) if quick else (333, 3_333, 14_286):
        fun = derivative(grad, lambda y: y, chain(fnp.sin, steps), 1)
        claims += first_call(f"{7 * steps:,} operations", fun, (np.float64(0.7),), 7 * steps)
    if not quick:
        claims[-1:] = [*claims[-1:], Claim(claims[-1].what, claims[-1].ours, "", claims[-1].figure * 0.100002, 5, "s")]
        fun = derivative(grad, fnp.sum, chain(fnp.sin, 3_333), 1)
        claims += first_call("23,331 operations on ten elements", fun, (np.linspace(0.1, 1.0, 10),), 23_331)
        before = measuring.resident(reset=True)
        fun = derivative(grad, lambda y: y, chain(fnp.sin, 142_858), 1)
        taken = elapsed(partial(jit(fun, backend="numpy"), np.float64(0.7)))
        grown = (measuring.resident(reset=False) - before) / 1e9
        what = "recorded: first call, 1,000,006 operations"
        claims.append(Claim(what, f"{taken:.3g} s", "", taken, 60, "s"))
        claims.append(Claim(what, f"{grown:.3g} GB", "", grown, 2, "GB"))
    return claims


def first_call(name: str, fun: Function, args: tuple[Any, ...], operations: int) -> list[Claim]:
    eager = min(seconds(partial(fun, *args), 1) for _ in range(7))
    first = min(seconds(partial(jit(fun, backend="numpy"), *args), 1) for _ in range(3))
    what = f"recorded: first call, {name}"
    return [
        Claim(what, f"{first:.3g} s", f"eager {eager:.3g} s", first / eager, 30),
        Claim(what, f"{first:.3g} s", "an operation", 1e6 * first / operations, 50, "us"),
    ]


def against_xla(quick: bool) -> list[Claim]:
    """Measure first calls of the same unrolled programs, which XLA compiles."""
    import jax
    import jax.numpy as jnp

    claims = []
    number, ten = np.float64(0.7), np.linspace(0.1, 1.0, 10)
    for steps in (20,) if quick else (333, 1_000):
        ours, theirs = (derivative(g, lambda y: y, chain(xp.sin, steps), 1) for g, xp in ((grad, fnp), (jax.grad, jnp)))
        claims.append(beside_xla(f"chain of {steps:,} steps on a number", ours, theirs, (number,)))
        ours, theirs = (derivative(g, xp.sum, chain(xp.sin, steps), 1) for g, xp in ((grad, fnp), (jax.grad, jnp)))
        claims.append(beside_xla(f"chain of {steps:,} steps on ten elements", ours, theirs, (ten,)))
    rng = np.random.default_rng(0)
    w, u, xs = rng.normal(size=(10, 10)) / 5, rng.normal(size=(20, 10)) / 5, rng.normal(size=(200, 20))
    steps = 10 if quick else 200
    ours, theirs = grad(recurrent(fnp, xs[:steps]), (0, 1)), jax.grad(recurrent(jnp, xs[:steps]), (0, 1))
    return [*claims, beside_xla(f"recurrent network of {steps} steps", ours, theirs, (w, u))]


def recurrent(xp: Any, xs: Any) -> Function:
    def loss(w: Any, u: Any) -> Any:
        hidden = xp.zeros(10)
        for x in xs:
            hidden = xp.tanh(hidden @ w + x @ u)
        return xp.sum(hidden * hidden)

    return loss


def beside_xla(name: str, ours: Function, theirs: Function, args: tuple[Any, ...]) -> Claim:
    import jax

    fast = jit(ours, backend="numpy")
    first, compiled = elapsed(partial(fast, *args)), jax.jit(theirs)
    xla = elapsed(lambda: jax.block_until_ready(compiled(*args)))
    check_equal(ours(*args), {"recorded": fast(*args), "XLA": compiled(*args)})
    return Claim(f"recorded: first call, {name}", f"{first:.3g} s", f"XLA {xla:.3g} s", first / xla, 0.1)


def memory(quick: bool) -> list[Claim]:
    """Measure the peak memory of a call, with the memory kept between calls, relative to an eager call."""
    claims = []
    ten = np.linspace(0.1, 1.0, 10)
    found = [Case("chain on ten elements", derivative(grad, fnp.sum, chain(fnp.sin, 333), 1), (ten,), (1.0, None))]
    for case in [*found, *of_networks(quick)]:
        if case.outside is None:
            eager, fast = case.call("eager"), jit(case.fun, backend="numpy")
            fast(*case.args)
            kept = sum(size for *_, size in fast.report().variants)
            ours, theirs = kept + peak(partial(fast, *case.args)), peak(eager)
            words = f"{1e-6 * ours:.3g} MB", f"eager {1e-6 * theirs:.3g} MB"
            claims.append(Claim(f"recorded: memory of a call, {case.what}", *words, ours / theirs, 1.0))
    return claims


def peak(call: Function) -> int:
    """Return the largest number of bytes that a call holds."""
    call()
    gc.collect()
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def elapsed(call: Function) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--quick"]
    serve(*words, quick="--quick" in sys.argv)
