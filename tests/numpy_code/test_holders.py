"""Objects of Python's library that hold objects of the program, and containers that hold themselves."""

import math
import threading
import weakref
from collections import ChainMap, UserDict, UserList
from contextvars import ContextVar

import numpy as np
import pytest

from funcgrad import grad, value_and_grad, vmap


class Wave:
    """Object whose method is refused as it is written."""

    def __init__(self, scale):
        self.scale = scale

    def at(self, x):
        return self.scale * math.sin(x)


class Leaf:
    """Object that refers to another one without keeping it alive."""

    def __init__(self, parent):
        self.parent, self.proxy = weakref.ref(parent), weakref.proxy(parent)

    def at(self, x):
        return self.parent().at(x) + self.proxy.at(2 * x)


WAVE = Wave(3.0)
LEAF = Leaf(WAVE)
REFERENCE, PROXY, METHOD = weakref.ref(WAVE), weakref.proxy(WAVE), weakref.WeakMethod(WAVE.at)
BY_KEY, BY_NAME, SOME = weakref.WeakKeyDictionary({WAVE: WAVE}), weakref.WeakValueDictionary(a=WAVE), weakref.WeakSet()
SOME.add(WAVE)
CURRENT = ContextVar("CURRENT", default=WAVE)
OF_THREAD = threading.local()
OF_THREAD.wave, OF_THREAD.number = WAVE, 2.0
NAMED, LISTED, CHAINED = UserDict(a=WAVE), UserList([WAVE]), ChainMap({"a": WAVE})


def stored_in_thread(x):
    OF_THREAD.last = x
    wave = vars(OF_THREAD).get("wave")
    return wave.at(OF_THREAD.last) * OF_THREAD.number / 2.0 + getattr(OF_THREAD, "missing", 0.0)


HELD = {
    "weak reference": lambda x: REFERENCE().at(x),
    "weak reference in an object": lambda x: LEAF.at(x) / 3.0 - math.sin(2 * x) + 2 * math.sin(x),
    "proxy": lambda x: PROXY.at(x) + (PROXY.scale - 3.0),
    "weak method": lambda x: METHOD()(x),
    "weak keys": lambda x: BY_KEY[WAVE].at(x),
    "weak values": lambda x: BY_NAME["a"].at(x),
    "weak set": lambda x: sum(wave.at(x) for wave in SOME),
    "context variable": lambda x: CURRENT.get().at(x) * len(CURRENT.name) / 7,
    "variable of a thread": stored_in_thread,
    "user's dictionary": lambda x: NAMED["a"].at(x),
    "user's list": lambda x: LISTED[0].at(x),
    "chain": lambda x: CHAINED["a"].at(x),
}


@pytest.mark.parametrize("name", HELD)
def test_objects_in_other_objects_are_rebuilt(name):
    value, slope = value_and_grad(HELD[name])(0.4)
    assert value == pytest.approx(3.0 * math.sin(0.4))
    assert slope == pytest.approx(3.0 * math.cos(0.4))
    assert vmap(grad(HELD[name]))(np.array([0.0, 0.4]))[1] == pytest.approx(slope)


def test_dead_reference_is_none():
    gone = weakref.ref(Wave(1.0))
    assert grad(lambda x: math.exp(x) if gone() is None else x * 2)(0.0) == 1.0


def test_changes_are_seen():
    OF_THREAD.scale, token = 2.0, CURRENT.set(Wave(5.0))
    try:
        assert grad(lambda x: CURRENT.get().at(x) * OF_THREAD.scale)(0.0) == 10.0
        OF_THREAD.scale = 3.0
        assert grad(lambda x: CURRENT.get().at(x) * OF_THREAD.scale)(0.0) == 15.0
    finally:
        CURRENT.reset(token)
        del OF_THREAD.scale


# ---- containers that hold themselves --------------------------------------------------------------------------------


class Section(dict):
    """Dictionary that knows the section in which it stands, as those of configuration files do."""

    def __init__(self, parent=None, **items):
        super().__init__(items)
        self.parent = self if parent is None else parent

    def at(self, x):
        return self["scale"] * math.sin(x) + self.parent["scale"] * x


class Chain(list):
    """List that is its own last member."""

    def __init__(self, members):
        super().__init__(members)
        self.append(self)

    def at(self, x):
        return self[-1][0] * math.sin(x)


def test_containers_that_hold_themselves():
    outer = Section(scale=2.0)
    outer["inner"] = inner = Section(outer, scale=3.0)
    assert grad(outer.at)(0.0) == 4.0
    assert grad(inner.at)(0.0) == 5.0
    assert grad(lambda x: outer["inner"].parent.at(x))(0.0) == 4.0
    assert grad(Chain([7.0]).at)(0.0) == 7.0
