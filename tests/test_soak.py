"""A few thousand derivatives of all kinds: memory does not grow, and nothing needs the garbage collector.

The work is that of ``benchmarks/soak.py``, which runs 100,000 derivatives.
"""

import gc
import importlib
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import blocks, register_pytree_node, shared_state, trace, vjp, vmap
from funcgrad.reverse import ReverseTrace

WINDOWS, CALLS = 3, 25
#: Blocks per call that count as a leak: even a small tape has more. Caches of the interpreter and NumPy grow for some
#: hundred calls, but ever more slowly, so some windows show no growth.
LEAK = 6


@pytest.fixture(scope="module")
def soak():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).resolve().parent.parent / "benchmarks")
        return importlib.import_module("soak")


def growth(work):
    """Return how many blocks memory grows by in each window, and the number of objects that only a collection frees."""
    for _ in range(CALLS):
        work()
    gc.collect()
    gc.disable()
    try:
        used, unreachable = [sys.getallocatedblocks()], 0
        for _ in range(WINDOWS):
            for _ in range(CALLS):
                work()
            unreachable += gc.collect()  # a collection also empties the interpreter's free lists
            used.append(sys.getallocatedblocks())
    finally:
        gc.enable()
    return [b - a for a, b in pairwise(used)], unreachable


def test_memory_stays_flat(soak):
    with np.errstate(all="ignore"):
        found = {work.__name__: growth(work) for work in soak.KINDS}
    assert len(found) == len(soak.KINDS) > 10
    assert {name: unreachable for name, (_, unreachable) in found.items() if unreachable} == {}
    assert {name: windows for name, (windows, _) in found.items() if min(windows) >= LEAK * CALLS} == {}
    assert not shared_state.open_traces
    assert blocks.none_open()


def test_leak_is_found():
    leak = []
    assert min(growth(lambda: leak.append(vjp(fnp.sin, 1.0)))[0]) >= LEAK * CALLS

    def cycle():
        one = []
        one.append(one)

    assert growth(lambda: None)[1] == 0
    assert growth(cycle)[1] == WINDOWS * CALLS


class Unwilling:
    """A container that refuses to be flattened."""


def refuse(_):
    raise RuntimeError("not now")


register_pytree_node(Unwilling, refuse, lambda _, parts: Unwilling())


def test_unclosed_trace_is_forgotten():
    """An interrupt can come between the start of a run and the ``try`` that would close the run."""
    begun = ReverseTrace()
    assert shared_state.unfinished_traces() == [begun]
    del begun
    assert shared_state.unfinished_traces() == []
    assert not shared_state.open_traces
    assert type(fnp.zeros(3)) is np.ndarray


@pytest.mark.parametrize(
    "call",
    [
        lambda: trace(fnp.sin)(Unwilling()),
        lambda: vmap(fnp.sin)(Unwilling()),
        lambda: vjp(fnp.sin, Unwilling()),
        lambda: vmap(fnp.sin, axis_name=["not hashable"])(np.ones(3)),
    ],
    ids=["trace", "vmap", "vjp", "axis_name"],
)
def test_failure_before_run_leaves_no_trace_open(call):
    with pytest.raises((RuntimeError, TypeError)):
        call()
    assert not shared_state.open_traces
    assert type(fnp.zeros(3)) is np.ndarray
