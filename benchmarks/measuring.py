"""Tasks of the fresh interpreters: the reference gradient, times on request, the peak of memory."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pickle
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from programs import Program
from timing import check_equal

__all__ = ["MODULES", "LONG", "find", "memory", "reference", "serve"]

#: Names of the modules with programs, in the order of the table.
MODULES = (
    "chains",
    "orders",
    "small",
    "solvers",
    "mlp",
    "mixture",
    "lstm",
    "second",
    "pullbacks",
    "curvature",
    "jacobians",
    "arrays",
)
MODULES += ("convolution",)
#: Seconds from which a call is repeated only if needed.
LONG = 3.0
TOLERANCE = {"float64": 1e-8, "float32": 2e-3}


def find(quick: bool) -> dict[str, Program]:
    """Return every program by its name."""
    found = [program for module in MODULES for program in importlib.import_module(module).programs(quick)]
    return {program.name: program for program in found}


def one_thread(label: str) -> None:
    """Set torch to one thread, which the environment does not settle."""
    if label.startswith("torch"):
        import torch

        torch.set_num_threads(1)


def one_core() -> None:
    """Stay on the core of the pair's other process: the cores of a shared machine differ in speed."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def reference(program: Program, target: Path) -> None:
    """Write the gradient that JAX computes in float64 to ``target``."""
    import jax

    gradient = jax.tree.map(np.asarray, program.reference(*program.args(np.float64))())
    target.write_bytes(pickle.dumps(gradient))


def serve(program: Program, label: str, known: Path) -> None:
    """Time a library whenever the other process requests it, after a check of its gradient.

    The library ``value`` is the function itself, on NumPy arrays. The process first prints the time of a first call.
    Then it reads lines with a number of calls, and prints the seconds per call for each.
    """
    one_thread(label)
    one_core()
    right = pickle.loads(known.read_bytes())
    build = program.libraries["funcgrad" if label == "value" else label]
    for dtype in dict.fromkeys((np.dtype(np.float64), np.dtype(program.dtype))):
        call = build(*program.args(dtype.type))
        first = checked(call, right, label, TOLERANCE[dtype.name])
    if label == "value":
        call = value_call(program)
        first = seconds(call)
    operations = program.operations or (count(program) if label == "funcgrad" else 0)
    print(json.dumps({"first": first, "operations": operations}), flush=True)
    for line in sys.stdin:
        print(seconds(call, int(line)), flush=True)


def value_call(program: Program) -> Callable[[], Any]:
    """Return the call of the function itself."""
    assert program.value is not None
    return program.value(*program.args(program.dtype))


def checked(call: Callable[[], Any], right: Any, label: str, tolerance: float) -> float:
    """Return the seconds of a first call, after a check of its result."""
    found = []
    taken = seconds(lambda: found.append(call()))
    check_equal(right, {label: found[0]}, tolerance)
    return taken


def count(program: Program) -> int:
    """Return the number of operations in one run of the function."""
    from funcgrad import trace

    if program.value is None:
        return 0
    return len(list(trace(lambda *args: program.value(*args)())(*program.args(program.dtype))))


def seconds(call: Callable[[], Any], repeat: int = 1) -> float:
    start = process_time()
    for _ in range(repeat):
        call()
    return (process_time() - start) / repeat


def memory(program: Program, label: str) -> dict[str, float]:
    """Return the largest growth of the process in megabytes, relative to its size after a first tiny call.

    A few calls run, as in training, so memory that a library keeps between calls counts. A call that takes long
    runs once.
    """
    one_thread(label)
    build = program.libraries[label]
    assert program.small is not None
    build(*program.small(program.dtype))()
    call = build(*program.args(program.dtype))
    gc.collect()
    release()
    before = resident(reset=True)
    for _ in range(3 if seconds(call) < LONG else 0):
        call()
    return {"megabytes": (resident(reset=False) - before) / 1e6}


def release() -> None:
    """Return free memory to the system, so that no call starts with a store of it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def resident(reset: bool) -> float:
    """Return the peak of resident bytes since the last reset; with ``reset``, reset it and return the present size."""
    status = Path("/proc/self/status")
    if not status.exists():  # here the peak cannot be reset, and the peak of the imports hides smaller peaks
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmRSS" if reset else "VmHWM"].split()[0]) * 1024
