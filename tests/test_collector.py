"""The cyclic collector goes through a long tape once at most, and nobody else notices."""

import subprocess
import sys
from pathlib import Path

import pytest

from funcgrad import collector

ROOT = Path(__file__).resolve().parent.parent
# In an interpreter of its own: the tests freeze objects themselves.
PROGRAM = """
import gc
import weakref

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import collector, grad

gc.set_threshold(200, 2, 2)


class Knot:
    def __init__(self):
        self.me = self


def chain(x, steps):
    for _ in range(steps):
        x = x * 0.999 + 1e-3
    return x
"""
# Later collectors go through the objects in small steps, and nothing is left out.
SPARING = {
    "what survives is left out until the recording ends": """
seen = []


def f(x):
    x = chain(x, 40_000)
    seen.append((gc.get_freeze_count() > 40_000, collector.sparing))
    return x


grad(f)(0.5)
assert seen == [(True, True)], seen
assert gc.get_freeze_count() == 0
assert not collector.sparing
""",
    "what comes later is collected": """
def f(x):
    x = chain(x, 40_000)
    assert collector.sparing
    knot = weakref.ref(Knot())
    x = chain(x, 20_000)
    assert knot() is None
    return x


grad(f)(0.5)
""",
    "who asks gets all that is garbage": """
def f(x):
    knot = Knot()
    seen = weakref.ref(knot)
    x = chain(x, 40_000)
    assert collector.sparing
    del knot
    gc.collect()
    assert seen() is None
    assert gc.get_freeze_count() == 0
    x = chain(x, 40_000)
    assert collector.sparing
    return x


grad(f)(0.5)
assert gc.get_freeze_count() == 0
""",
    "cycles that live for a while are collected": """
import collections

seen = []


def f(x):
    recent = collections.deque(maxlen=300)
    for _ in range(2_000):
        knot = Knot()
        seen.append(weakref.ref(knot))
        recent.append(knot)
        x = chain(x, 5)
    return x


gc.set_threshold(200, 5, 10)
grad(f)(0.5)
gc.collect()
assert all(knot() is None for knot in seen)
seen.clear()
gc.set_threshold(200, 5, 1_000_000)
grad(lambda x: f(x) * (sum(knot() is None for knot in seen) > 0))(0.5)
assert not collector.sparing
""",
    "where nearly all that is new are records nothing is gone through": """
knots = [Knot() for _ in range(100)]
gc.collect()
seen = [weakref.ref(knot) for knot in knots]


def f(x):
    knots.clear()
    x = chain(x, 40_000)
    assert all(knot() is not None for knot in seen)
    return x


grad(f)(0.5)
gc.collect()
assert all(knot() is None for knot in seen)
""",
    "where other objects are new too all is gone through": """
knots = [Knot() for _ in range(100)]
gc.collect()
seen = [weakref.ref(knot) for knot in knots]


def f(x):
    knots.clear()
    kept = []
    for _ in range(8_000):
        x = chain(x, 5)
        kept.append([[]])
    assert all(knot() is None for knot in seen)
    assert collector.sparing
    return x


grad(f)(0.5)
""",
    "of a second tape it is the same": """
def f(x):
    x = chain(x, 40_000)
    assert collector.sparing
    return x


for steps in (0, 20_000, 0):
    grad(lambda x: f(chain(x, steps)))(0.5)
    assert gc.get_freeze_count() == 0
""",
    "an error ends it too": """
def f(x):
    chain(x, 40_000)
    assert collector.sparing
    raise KeyError


try:
    grad(f)(0.5)
except KeyError:
    assert gc.get_freeze_count() == 0
""",
}
ALWAYS = {
    "of short tapes nothing is left out": """
def f(x):
    junk = [[] for _ in range(100_000)]
    assert gc.get_freeze_count() == 0
    return chain(x, 100)


grad(f)(0.5)
""",
    "a collection that is asked for collects": """
gc.disable()


def f(x):
    x = chain(x, 20_000)
    knot = Knot()
    seen = weakref.ref(knot)
    gc.collect()
    assert gc.get_freeze_count() == 0
    del knot
    gc.collect()
    assert seen() is None
    return x


grad(f)(0.5)
""",
    "what the program has frozen stays so": """
gc.freeze()
before = gc.get_freeze_count()
grad(lambda x: chain(x, 40_000))(0.5)
assert gc.get_freeze_count() == before > 0
""",
}


CHECKS = ALWAYS | (SPARING if sys.version_info < (3, 14) else {})


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_collector(check, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + check)
    done = subprocess.run([sys.executable, script], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_is_left_out_here():
    assert not collector.sparing
