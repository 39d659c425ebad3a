"""Costs of the library other than time per operation: memory, composition, import."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from timing import Claim, check_equal, interleave, microseconds, paired_ratio
from toolz import compose_left, pipe

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["composition", "dropped_results", "start"]


def dropped_results(quick: bool) -> list[Claim]:
    """Check that results that a function drops are freed at once, even under ``grad``."""
    x, count = np.linspace(0.0, 1.0, 100_000), 100

    def program(x: Any) -> Any:
        for _ in range(count):
            fnp.sin(x)
        return fnp.sum(x)

    gradient = grad(program)
    gradient(x)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = gradient(x)
    held = (tracemalloc.get_traced_memory()[1] - before) / x.nbytes
    tracemalloc.stop()
    check_equal(result, {"ones": np.ones_like(x)})
    return [
        Claim(
            f"{count} results of {x.nbytes / 1e6:.1f} MB, computed and dropped",
            f"{held:.2f} held at most",
            "3",
            held,
            3,
            "arrays",
        )
    ]


def composition(quick: bool) -> list[Claim]:
    """Compare a pipeline of ten stages with the nested call, inside ``grad``."""
    x = np.linspace(0.1, 1.0, 1_000)
    a, b, c, d = fnp.sin, fnp.tanh, fnp.exp, fnp.cos
    composed = compose_left(a, b, c, d, a, b, c, d, b, fnp.sum)
    calls: dict[str, Callable[[Any], Any]] = {
        "nested": grad(lambda x: fnp.sum(b(d(c(b(a(d(c(b(a(x))))))))))),
        "compose": grad(composed),
        "pipe": grad(lambda x: pipe(x, a, b, c, d, a, b, c, d, b, fnp.sum)),
    }
    check_equal(calls["nested"](x), {name: call(x) for name, call in calls.items()}, tolerance=0)
    times = interleave(
        {name: lambda call=call: call(x) for name, call in calls.items()}, rounds=50 if quick else 501, repeat=5
    )
    nested = microseconds(times, "nested")
    return [
        Claim(
            f"{name} of 10 stages inside grad, {x.size:,} numbers",
            f"{microseconds(times, name):.4g} us",
            f"nested call {nested:.4g} us",
            paired_ratio(times, name, "nested"),
            1.02,
        )
        for name in ("compose", "pipe")
    ]


def start(quick: bool) -> list[Claim]:
    """Measure the additional time of ``import funcgrad`` over ``import numpy``: the least of many new interpreters."""
    times: dict[str, list[float]] = {"numpy": [], "funcgrad": []}
    with tempfile.TemporaryDirectory() as folder:
        # Keep compiled files, as is the default: the first import writes them.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for number in range(-1, 3 if quick else 31):
            for name, taken in times.items():
                begin = perf_counter()
                subprocess.run([sys.executable, "-c", f"import {name}"], check=True, env=environment)
                if number >= 0:
                    taken.append(1e3 * (perf_counter() - begin))
    ours, numpy = (min(times[name]) for name in ("funcgrad", "numpy"))
    return [Claim("import funcgrad", f"{ours:.0f} ms", f"import numpy {numpy:.0f} ms", ours - numpy, 120, "ms more")]
