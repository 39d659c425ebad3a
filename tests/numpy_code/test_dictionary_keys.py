"""Dictionaries whose keys are functions, classes or objects: rebuilt code looks up what replaces them."""

import collections
import dataclasses
import enum
import math

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, hessian, vmap

X = np.array([0.7, 1.4])


def square(v):
    return v**2


def cube(v):
    return v**3


class Shape:
    def __init__(self, size):
        self.size = size

    def area(self, x):
        return math.exp(x) * self.size


class Disc(Shape):
    pass


@dataclasses.dataclass(frozen=True)
class Species:
    name: str
    charge: float

    def force(self, x):
        return math.sin(x) * self.charge


class Axis(enum.IntEnum):
    FIRST = 0
    SECOND = 1


class Handlers(dict):
    def __missing__(self, key):
        return self[None]

    def use(self, key, x):
        return self[key](x)


class Word(dict):
    """Key with attributes in slots: what it is hashed by, and an object."""

    __slots__ = ("known_hash", "scale", "unset")

    def __init__(self, *given, scale):
        super().__init__(*given)
        self.known_hash, self.scale = None, scale

    def __hash__(self):
        if self.known_hash is None:
            self.known_hash = hash(frozenset(self.items()))
        return self.known_hash

    def times(self, x):
        return math.sin(x) * self.scale.area(self["x"]) * (not hasattr(self, "unset"))


disc, proton = Disc(2.0), Species("p", 1.0)
DERIVATIVES = {np.sin: np.cos, math.sin: math.cos, square: cube, np.sum: 3.0}
OF_CLASSES = {Shape: lambda s, x: s.area(x), Disc: lambda s, x: 2.0 * s.area(x)}
NEIGHBOURS = {disc: [proton], proton: 5.0, (Axis.SECOND, proton): 4.0, frozenset([proton]): Shape(3.0)}
HANDLERS = Handlers({np.sin: np.cos, Shape: math.sin, None: np.exp})
SENTENCE = {Word({"x": 0.5}, scale=Disc(2.0)): 3.0}
WEIGHTS = collections.defaultdict(lambda: 0.5, {Shape.area: 2.0})

PROGRAMS = {
    "ufuncs": lambda x: DERIVATIVES[np.sin](np.array([x[0], float(x[1])])).sum(),
    "functions_of_math": lambda x: DERIVATIVES[math.sin](x[0]) * x[1] ** 2,
    "functions": lambda x: DERIVATIVES.get(square, abs)(math.sin(x[0])) * DERIVATIVES[np.sum] * x[1],
    "identity": lambda x: math.sin(x[0]) * x[1] * (next(iter(DERIVATIVES)) is np.sin),
    "classes": lambda x: OF_CLASSES[type(disc)](disc, x[0]) + OF_CLASSES[Shape](Shape(x[1]), x[0]),
    "objects": lambda x: NEIGHBOURS[disc][0].force(x[0]) * NEIGHBOURS[proton] * x[1],
    "equal_objects": lambda x: NEIGHBOURS[Species("p", 1.0)] * math.sin(x[0]) * x[1],
    "tuples_and_sets": lambda x: NEIGHBOURS[1, proton] * NEIGHBOURS[frozenset([proton])].area(x[0]) * x[1],
    "classes_derived_from_dict": lambda x: HANDLERS.use(np.sin, math.sin(x[0])) + HANDLERS.use(Shape, x[1]),
    "attributes_in_slots": lambda x: sum(word.times(x[0]) * times * x[1] for word, times in SENTENCE.items()),
    "defaults": lambda x: WEIGHTS[Shape.area] * math.sin(x[0]) * x[1] + WEIGHTS["other"] * x[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    np.testing.assert_allclose(grad(f)(X), differences(lambda x: float(f(x)), X, 2e-4), rtol=1e-8)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12)


def test_keys_that_are_stored_in_a_run():
    cache = {}

    def f(x):
        if square not in cache:
            cache[square] = 3.0
        return cache[square] * math.sin(x)

    for _ in range(3):
        np.testing.assert_allclose(grad(f)(0.3), 3.0 * math.cos(0.3), rtol=1e-14)


class Sorted(dict):
    """Dictionary whose methods return other values than it stores."""

    def __iter__(self):
        return iter(sorted(dict.keys(self)))

    def keys(self):
        return [*self, "absent"]

    def __getitem__(self, key):
        return 2.0 * dict.__getitem__(self, key)


TABLE = Sorted(b=3.0, a=1.0)


def test_dictionary_of_a_class_that_overrides_how_it_is_read():
    f = lambda x: math.sin(x) * TABLE["b"] + sum(math.exp(TABLE[key] * x) for key in TABLE)
    assert grad(f)(0.3) == pytest.approx(6.0 * math.cos(0.3) + 6.0 * math.exp(1.8) + 2.0 * math.exp(0.6), rel=1e-12)
