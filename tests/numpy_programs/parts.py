"""Functions and classes of random programs, written as programs for NumPy are."""

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


def general(a, b=0.7, *rest, k=1.0, **others):
    return math.sin(a) * b + k * sum(rest) + others.get("z", 0.0)


def repeated(s, n):
    return s if n == 0 else repeated(math.cos(s) + 0.1 * n, n - 1)


def smooth(v):
    out = np.empty_like(v)
    out[0] = v[0]
    for i in range(1, len(v)):
        out[i] = 0.6 * out[i - 1] + 0.4 * v[i]
    return out


def with_first(a, s):
    a *= 0.5
    a[0] = s
    return a


def powers(v):
    total = 0.0
    for e in v:
        total = total + e * e
        yield total


def halves(a):
    return a[:2], a[2:]


def counter():
    n = 0.0

    def add(s):
        nonlocal n
        n += s
        return n

    return add


def times(k):
    def wrap(fun):
        @functools.wraps(fun)
        def inner(*args, **kwargs):
            return k * fun(*args, **kwargs)

        return inner

    return wrap


@times(0.7)
def decorated(a, b):
    return math.sin(a) + b


@contextlib.contextmanager
def scaled(a, s):
    a *= 2.0
    yield a
    a += s


@np.vectorize
def mapped(a, b):
    return a * b if a > b else a + b


@functools.singledispatch
def shape_of(a):
    return a * 0.5


@shape_of.register
def _(a: list):
    return sum(a)


def walked(t):
    return sum(map(walked, t)) if isinstance(t, (list, tuple)) else math.tanh(t)


class Point(NamedTuple):
    a: float
    v: np.ndarray

    def total(self):
        return self.a * np.sum(self.v)


@dataclass
class Box:
    a: float
    v: np.ndarray

    def area(self):
        return float(self.a) * self.v.sum()

    @property
    def scaled(self):
        return self.v * self.a

    def put(self, i, s):
        self.v[i] = s
        self.a += s
        return self


class Base:
    scale = 0.5

    def __init__(self, v, *items):
        self.v, self.log = np.array(v, dtype=float), list(items)

    def step(self, s):
        self.v[1:] += s * self.v[:-1]
        self.log.append(self.v.copy())
        return self

    def value(self):
        return float(self.v @ self.v) * self.scale

    def __call__(self, s):
        return self.value() + s

    def __matmul__(self, other):
        return self.v @ other.v

    def __getattr__(self, name):
        if name.startswith("c"):
            return self.v[int(name[1:])]
        raise AttributeError(name)


class Child(Base):
    def __init__(self, v, s):
        super().__init__(v, s)
        self.s = s

    def step(self, s):
        super().step(s * 0.5)
        self.v[0] = self.s
        return self

    @staticmethod
    def mix(a, b):
        return 0.3 * a + 0.7 * b

    @classmethod
    def of(cls, s):
        return cls(np.full(4, s), s)

    @functools.cached_property
    def product(self):
        return self.v.sum() * self.s
