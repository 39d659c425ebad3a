"""Enumerations of programs whose methods or values convert traced values."""

import enum
import functools
import math
from enum import Enum

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, hessian, jvp, vmap

X = np.array([0.7, 1.4, 2.3])


class Law(Enum):
    LINEAR = 1.5
    DECAY = 2.5
    ALIAS = 2.5

    def weight(self, x):
        return math.exp(-self.value * x) if self is Law.DECAY else self.value * float(x)

    @property
    def table(self):
        return np.array([self.value, 1.0])

    @classmethod
    def best(cls, x):
        return max(cls, key=lambda law: law.weight(x))

    @staticmethod
    def scale(x):
        return math.sqrt(x)


class Activation(Enum):
    TANH = enum.member(functools.partial(math.tanh))
    SQUARE = enum.member(functools.partial(lambda k, x: np.array([x, k]).dot(np.array([x, 1.0])), 2.0))
    FUNCTION = enum.nonmember(functools.partial(math.tanh))
    TABLE = enum.nonmember({"sine": math.sin})
    WEIGHTS = enum.nonmember(np.array([1.0, 2.0, 3.0]))

    def __call__(self, x):
        return self.value(x)


class WithPartial:
    """Class with an attribute that is a descriptor from Python 3.13 on, and binds objects from 3.14 on."""

    function = functools.partial(math.tanh)


class Planet(Enum):
    """Members with attributes, as Python's documentation defines them."""

    MERCURY = (3.3, 2.4, [1.0, 2.0])
    EARTH = (5.9, 6.3, [2.0, 0.5])

    def __init__(self, mass, radius, orbit):
        self.mass = mass
        self.radius = radius
        self.orbit = np.array(orbit)

    def gravity(self, x):
        return math.pow(x, 1.5) * self.mass / (self.radius * self.radius) + self.orbit.dot(np.array([x, 1.0]))


class Order(enum.IntEnum):
    FIRST = 1
    SECOND = 2

    def __call__(self, x):
        return x**self


class Degree(enum.IntEnum):
    """Numbers with methods."""

    LINE = 1
    SQUARE = 2

    def of(self, x):
        return math.pow(x, self) * self.value

    @classmethod
    def total(cls, x):
        return sum(degree.of(x) for degree in cls)


class Point(int, Enum):
    """Numbers whose values are others."""

    THIRD = 3, "third"

    def __new__(cls, number, label):
        made = int.__new__(cls, number)
        made._value_ = label
        return made

    def of(self, x):
        return math.sin(x) * self


class Scale(float, Enum):
    HALF = 0.5

    def of(self, x):
        return math.exp(x * self)


class Kind(enum.StrEnum):
    SINE = "sin"
    ROOT = "sqrt"

    def of(self, x):
        return getattr(math, self)(x) * len(self)


class Name(str, Enum):  # noqa: UP042
    COSINE = "cos"

    def of(self, x):
        return getattr(math, self)(x)


class Term(enum.Flag):
    SINE = enum.auto()
    ROOT = enum.auto()
    BOTH = SINE | ROOT

    def of(self, x):
        return sum({Term.SINE: math.sin, Term.ROOT: math.sqrt}[term](x) for term in self)


class Bit(enum.IntFlag):
    ONE = 1
    FOUR = 4

    def of(self, x):
        return math.exp(-x) * self


def of_numbers(x):
    assert Degree(2) is Degree.SQUARE is Degree["SQUARE"]
    assert isinstance(Degree.LINE, int)
    assert Degree.LINE < Degree.SQUARE == 2
    assert Point("third") is Point.THIRD == 3
    assert {2: "b"}[Degree.SQUARE] == "b"
    assert Degree.LINE in Degree and f"{Degree.SQUARE}" == "2"  # noqa: PT018
    return Degree.total(x[0]) * x[Degree.LINE] + Point.THIRD.of(x[1]) + Scale.HALF.of(x[2])


def of_texts(x):
    assert Kind("sin") is Kind.SINE
    assert Kind.SINE == "sin"
    assert "".join(Kind) == f"{Kind.SINE}{Kind.ROOT}" == "sinsqrt"
    return Kind.SINE.of(x[0]) * Kind.ROOT.of(x[1]) + Name.COSINE.of(x[2])


def of_flags(x):
    assert Term.SINE | Term.ROOT == Term.BOTH
    assert (Term.SINE | Term.ROOT) is Term.BOTH
    assert Term.BOTH & ~Term.ROOT is Term.SINE
    assert Term.SINE in Term.BOTH
    assert not Term.SINE & Term.ROOT
    assert len(Term.BOTH) == 2
    assert [term.name for term in Term.BOTH] == ["SINE", "ROOT"]
    both = Bit.ONE | Bit.FOUR
    assert both == 5
    assert 1 | Bit.FOUR == both  # noqa: SIM300
    assert isinstance(both, Bit)
    return Term.BOTH.of(x[0]) * (Term.SINE ^ Term.BOTH).of(x[1]) * both.of(x[2])


WEIGHTS = {Law.LINEAR: 2.0, Law.DECAY: 3.0}


class Model:
    law = Law.DECAY

    def __init__(self):
        self.laws = [Law.LINEAR, Law.DECAY]

    def loss(self, x):
        return sum(law.weight(v) * WEIGHTS[law] for law, v in zip(self.laws, x, strict=False)) + self.law.weight(x[2])


MODEL = Model()


def chosen(x):
    match Law(2.5):
        case Law.LINEAR:
            found = 0.0
        case Law.DECAY:
            found = Law.DECAY.weight(x[0])
    assert Law["ALIAS"] is Law.DECAY is Law(Law.DECAY)
    assert Law.LINEAR in Law
    assert isinstance(Law.LINEAR, Law)
    assert (Law.LINEAR == Law.DECAY) is False
    assert [law.name for law in Law] == ["LINEAR", "DECAY"]
    assert f"{Law.LINEAR}" == str(Law.LINEAR) == "Law.LINEAR"
    return found * WEIGHTS[Law.best(x[1])] + {Law.LINEAR: x[2]}[Law.LINEAR]


@functools.singledispatch
def magnitude(x):
    return math.exp(x)


@magnitude.register
def _(x: Law):
    return 2.0 if x is Law.DECAY else 3.0


class Part(enum.IntFlag, boundary=enum.EJECT):
    """Flags whose unknown combinations are integers."""

    FIRST = 1
    SECOND = 2

    def of(self, x):
        return math.sin(x) * self.value


def members(x):
    """What an enumeration tells about its members."""
    found = sum(law.weight(v) for law, v in zip(reversed(Law), x, strict=False))
    assert (len(Law), Law.LINEAR in Law, isinstance(Law.DECAY, Law), isinstance(2.0, Law)) == (2, True, True, False)
    assert (repr(Law.DECAY), str(Law.DECAY), f"{Law.DECAY}") == ("<Law.DECAY: 2.5>", "Law.DECAY", "Law.DECAY")
    assert list(Law.__members__) == ["LINEAR", "DECAY", "ALIAS"]
    return found * Law.__members__["DECAY"].weight(x[0]) + Part(8) * Part(3).of(x[1])


PROGRAMS = {
    "members": members,
    "dispatched": lambda x: magnitude(x[0]) * magnitude(Law.DECAY) * magnitude(Law.LINEAR),
    "methods": lambda x: sum(law.weight(v) for law, v in zip(Law, x, strict=False)) + Law.scale(x[2]),
    "properties": lambda x: Law.DECAY.table.dot(x[:2]),
    "functions_as_values": lambda x: Activation.TANH(x[0]) * Activation["SQUARE"](x[1]) + x[2],
    "other_attributes": lambda x: (
        Activation.FUNCTION(x[0]) * Activation.TABLE["sine"](x[1]) + Activation.WEIGHTS.dot(np.asarray(x))
    ),
    "partial_of_class": lambda x: WithPartial.function(x[0]) * x[1] + x[2],
    "attributes": lambda x: sum(planet.gravity(v) for planet, v in zip(Planet, x, strict=False)),
    "in_objects": MODEL.loss,
    "integers": lambda x: Order.SECOND(math.sin(x[0])) + Order(1)(x[1]) + x[Order.SECOND],
    "chosen": chosen,
    "numbers": of_numbers,
    "texts": of_texts,
    "flags": of_flags,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    found = grad(f)(X)
    np.testing.assert_allclose(found, differences(f, X, 2e-4), rtol=1e-8, atol=1e-8)
    assert jvp(f, (X,), (X,)) == pytest.approx((float(f(X)), found @ X), rel=1e-12)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12)


def test_results_are_the_members_of_the_program():
    slope, law = grad(lambda x: (Law.DECAY.weight(x), Law.DECAY), has_aux=True)(0.5)
    assert slope == pytest.approx(-2.5 * math.exp(-1.25), rel=1e-15)
    assert law is Law.DECAY
    found = grad(lambda x: (Degree.SQUARE.of(x), [Degree.SQUARE, Term.SINE | Term.ROOT, Kind.SINE]), has_aux=True)(0.5)
    assert found[0] == 2.0
    assert [type(x) for x in found[1]] == [Degree, Term, Kind]
    assert found[1][1] is Term.BOTH
