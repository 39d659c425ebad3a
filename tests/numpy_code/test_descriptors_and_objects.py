"""Descriptors of a program's classes, whose methods are rebuilt as properties are, and arrays of objects."""

import copy
import functools
import hashlib
import inspect
import math
import operator
import struct
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pytest
import scipy.optimize
from helpers import differences

from funcgrad import grad, hessian, jacfwd, jvp, value_and_grad, vmap


class Positive:
    """Data descriptor that converts what is stored."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, cls=None):
        return self if obj is None else np.asarray(getattr(obj, self.name)) * 1.0

    def __set__(self, obj, value):
        setattr(obj, self.name, np.exp(np.asarray(value, float)))

    def __delete__(self, obj):
        setattr(obj, self.name, math.exp(2.0))


class OnFirstUse:
    """Descriptor without `__set__`, which an attribute of the object hides after the first use."""

    weights = np.array([1.0, 2.0])

    def __init__(self, fun):
        self.fun = fun
        self.name = fun.__name__

    def __get__(self, obj, cls=None):
        value = obj.__dict__[self.name] = self.fun(obj) * self.weights.dot([1.0, obj.rate])
        return value


class Model:
    rate = Positive()

    def __init__(self, rate=0.3):
        self.rate = rate

    @OnFirstUse
    def wave(self):
        return math.sin(self.rate)

    def cost(self, x):
        self.rate = x
        return np.sum(self.rate * 2.0) + self.wave * self.wave

    def without_rate(self, x):
        before = math.sin(x)
        del self.rate
        return before * self.rate


class Child(Model):
    def cost(self, x):
        return super().cost(x) * math.cos(x)


class Tracked:
    """Data descriptor without `__get__`: reads find the attribute of the object, or the descriptor."""

    def __set_name__(self, owner, name):
        self.name = name

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value
        obj.__dict__.pop("total", None)


class Network:
    weights = Tracked()

    def __init__(self):
        self.weights = {"ab": 2.0, "bc": 3.0}

    @functools.cached_property
    def total(self):
        return sum(self.weights.values())

    def cost(self, x):
        before = self.total
        self.weights = {**self.weights, "cd": math.sin(x)}
        return before * math.cos(x) * self.total * len(self.weights) * ("ab" in self.weights)

    def unset(self):
        del self.__dict__["weights"]
        return self.weights


class Results:
    def __init__(self, weights):
        self.weights = weights
        self.scale = 2.0

    def predict(self, x):
        return np.dot(self.weights, [math.exp(x), x, 1.0]) * self.scale


class Wrapper:
    """Object that reads its attributes by `object.__getattribute__`, and takes the others from what it wraps."""

    def __init__(self, results):
        self._results = results
        self.table = np.array([1.0, 2.0, 3.0])
        self.itself = self

    def __getattribute__(self, name):
        try:
            results = object.__getattribute__(self, "_results")
        except AttributeError:
            pass
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return getattr(results, name)

    def spread(self, x):
        self.table[0] = x
        return np.dot(self.itself.table, self.weights)


class SlottedWrapper(Wrapper):
    __slots__ = ("_results",)


class Unfinished:
    table = None

    @property
    def center(self):
        return self.table.mean()

    def cost(self, x):
        return math.sin(x) * self.center

    def other_cost(self, x):
        return math.sin(x) * self.other


@pytest.mark.parametrize("make", [Model, Child])
def test_descriptor_methods_are_rebuilt(make):
    outside = make()
    step = 1e-6
    expected = (make().cost(0.5 + step) - make().cost(0.5 - step)) / (2 * step)
    for fun in (lambda x: make().cost(x), outside.cost):
        np.testing.assert_allclose(grad(fun)(0.5), expected, rtol=1e-8)
        second = (grad(fun)(0.5 + step) - grad(fun)(0.5 - step)) / (2 * step)
        np.testing.assert_allclose(hessian(fun)(0.5), second, rtol=1e-7)
        np.testing.assert_allclose(vmap(grad(fun))(np.array([0.5, 0.7])), [grad(fun)(0.5), grad(fun)(0.7)], rtol=1e-12)
    assert vars(outside) == {"_rate": np.exp(0.3)}


def test_descriptor_without_get():
    expected = 5.0 * 3 * (math.cos(1.0) - 5.0 * math.sin(0.5))  # of 15 cos(x) (5 + sin(x))
    outside = Network()
    for fun in (lambda x: Network().cost(x), outside.cost):
        np.testing.assert_allclose(grad(fun)(0.5), expected, rtol=1e-12)
        np.testing.assert_allclose(vmap(grad(fun))(np.array([0.5, 0.5])), expected, rtol=1e-12)
    assert outside.weights == {"ab": 2.0, "bc": 3.0}
    assert grad(lambda x: math.sin(x) * isinstance(Network().unset().name, str))(0.0) == 1.0


@pytest.mark.parametrize("make", [Wrapper, SlottedWrapper])
def test_objects_that_read_their_own_attributes(make):
    wrapped = make(Results(np.array([1.0, 2.0, 3.0])))
    for fun in (wrapped.predict, lambda x: wrapped.predict(x)):
        np.testing.assert_allclose(grad(fun)(0.5), 2.0 * (math.exp(0.5) + 2.0), rtol=1e-12)
        np.testing.assert_allclose(hessian(fun)(0.5), 2.0 * math.exp(0.5), rtol=1e-12)
        np.testing.assert_allclose(vmap(grad(fun))(np.zeros(2)), 6.0, rtol=1e-12)
    assert grad(lambda x: math.sin(x) * wrapped.spread(x))(0.0) == 13.0
    assert np.array_equal(wrapped.table[1:], [2.0, 3.0])


def test_property_error_keeps_its_text():
    """Python asks `__getattr__`, which rebuilt classes have, when a property raises an `AttributeError`."""
    fails = Unfinished()
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'mean'"):
        grad(fails.cost)(0.5)
    with pytest.raises(AttributeError, match="'Unfinished' object has no attribute 'other'"):
        grad(fails.other_cost)(0.5)


def test_descriptor_delete():
    np.testing.assert_allclose(grad(Model().without_rate)(0.5), math.cos(0.5) * math.exp(2.0), rtol=1e-12)


def test_descriptor_read_from_class():
    assert grad(lambda x: math.sin(x) * len(Model.rate.name))(0.0) == len("_rate")
    assert isinstance(Model.rate, Positive)


def test_object_arrays_are_compared():
    """Arrays of objects are constants, or hold traced numbers beside other objects."""
    kinds = np.array([None, "level", None], object)

    def fun(x):
        chosen = np.equal(kinds, None)
        row = np.array([x, None], dtype=object)
        numbers = np.array(np.array([x, 2.0], dtype=object), dtype=float)
        return (
            math.sin(x) * chosen.sum() + row[0] * np.not_equal(row, None).sum() + numbers.sum() * np.asarray(x, object)
        )

    expected = 2 * math.cos(0.5) + 1.0 + 2 * 0.5 + 2.0
    np.testing.assert_allclose(grad(fun)(0.5), expected, rtol=1e-12)


def test_object_arrays_of_arrays():
    """Arrays of different lengths are objects; those of one shape become one array of numbers."""

    def fun(x):
        row = np.array([math.sin(x), 2.0, 3.0])
        same = np.array([row, [1.0, 2.0, 3.0]], dtype=object)
        different = np.array([row, row[:2]], dtype=object)
        mixed = np.array([row, [None, 1.0, x]], dtype=object)
        axes = np.array(np.ogrid[:3, :4], dtype=object)
        shapes = same.shape, different.shape, mixed.shape, axes.shape, different[1].shape, axes[1].shape
        assert shapes == ((2, 3), (2,), (2, 3), (2,), (2,), (1, 4))
        return same.sum() + different[1].sum() + mixed[0, 0] * mixed[1, 2] + axes[1].sum() * x

    np.testing.assert_allclose(grad(fun)(0.5), 2 * math.cos(0.5) + 0.5 * math.cos(0.5) + math.sin(0.5) + 6, rtol=1e-12)


Item = TypeVar("Item")


class Stack(Generic[Item]):
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self


class Numbers(Stack[float]):
    def sine(self):
        return math.sin(self.items[-1])


def test_generic_classes():
    assert grad(lambda x: math.exp(Stack[float]().push(x).items[0]))(0.7) == pytest.approx(math.exp(0.7))
    assert grad(lambda x: Numbers().push(x).sine())(0.7) == pytest.approx(math.cos(0.7))


class Parameter:
    """Value of a model that converts what it gets."""

    def set(self, value):
        self.stored = np.array(value)

    def get(self):
        return np.float64(self.stored.item())


class Collecting(type):
    """Metaclass that makes a table of the parameters among the members of a class."""

    def __new__(cls, name, bases, members):
        members["table"] = {name: value for name, value in members.items() if isinstance(value, Parameter)}
        return super().__new__(cls, name, bases, members)


class Wave(metaclass=Collecting):
    """Model with a copy of each parameter of its class."""

    height = Parameter()
    length = Parameter()

    def __init__(self, **values):
        for name, parameter in self.table.items():
            self.__dict__[name] = copy.deepcopy(parameter)
            self.__dict__[name].set(values[name])

    def at(self, t):
        return self.height.get() * math.sin(t / self.length.get())


def test_objects_in_a_table_that_a_metaclass_made():
    f = lambda x: Wave(height=x[0], length=x[1]).at(0.5)
    x = np.array([2.0, 0.7])
    want = np.array([math.sin(0.5 / 0.7), -2.0 * math.cos(0.5 / 0.7) * 0.5 / 0.7**2])
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x])), [want, want], rtol=1e-12)
    np.testing.assert_allclose(hessian(f)(x)[0], [0.0, want[1] / 2.0], rtol=1e-12, atol=1e-15)
    assert not vars(Wave.height)


class Registering(type):
    """Metaclass with keywords that wraps methods, keeps its classes, and has methods and properties of its own."""

    made: ClassVar[dict] = {}

    def __new__(cls, name, bases, members, factor=1.0):
        wrapped = {key: doubling(value) if key == "at" else value for key, value in members.items()}
        found = cls.made[name] = super().__new__(cls, name, bases, wrapped)
        found.factor = factor
        return found

    def __init__(cls, name, bases, members, factor=1.0):
        super().__init__(name, bases, members)

    def __call__(cls, x):
        made = super().__call__(x)
        made.x = made.x * cls.factor
        return made

    def __getitem__(cls, x):
        return cls(math.sin(x)).at()

    @property
    def unit(cls):
        return math.exp(cls.factor)

    def scaled(cls, x):
        return math.exp(x * cls.factor)


def doubling(method):
    return lambda self: 2.0 * method(self)


class Bent(metaclass=Registering, factor=0.5):
    def __init__(self, x):
        self.x = x

    def at(self):
        return math.tanh(self.x)


class BentTwice(Bent, factor=0.3):
    def at(self):
        return math.sin(super().at())


@pytest.mark.parametrize("kind", [Bent, BentTwice])
def test_a_metaclass_runs_once_for_each_class(kind):
    f = lambda x: kind(x).at() + Registering.made[kind.__name__](x).at() * kind[x] + kind.scaled(x) * kind.unit
    want = (f(0.4 + 1e-6) - f(0.4 - 1e-6)) / 2e-6
    found, slope = value_and_grad(f)(0.4)
    assert found == pytest.approx(f(0.4), rel=1e-15)
    assert slope == pytest.approx(want)
    assert vmap(grad(f))(np.array([0.4, 0.4])) == pytest.approx([want, want])
    assert Registering.made == {"Bent": Bent, "BentTwice": BentTwice}


def test_a_metaclass_is_the_type_of_its_classes():
    def f(x):
        assert isinstance(Bent, Registering)
        assert type(Bent) is Registering

        class Inner(Bent, factor=0.7):
            def at(self):
                return math.cos(self.x)

        assert isinstance(Inner(x), Bent)
        assert type(Inner) is Registering
        return Inner(x).at()

    assert grad(f)(0.4) == pytest.approx(-1.4 * math.sin(0.28))
    del Registering.made["Inner"]


class WithoutDictionary(type):
    """Metaclass whose classes have empty ``__slots__``, unless they say otherwise."""

    def __new__(cls, name, bases, members):
        members.setdefault("__slots__", ())
        return super().__new__(cls, name, bases, members)


class Scale(metaclass=WithoutDictionary):
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def times(self, x):
        return np.array([x])[0] * self.factor


class Half(Scale):
    def times(self, x):
        return np.array([super().times(x)])[0] / 2.0


@pytest.mark.parametrize("kind", [Scale, Half])
def test_objects_of_a_metaclass_that_adds_empty_slots(kind):
    outside = kind(3.0)
    f = lambda x: np.array([outside.times(x) + kind(x).times(x)])[0]
    want = (f(2.0 + 1e-6) - f(2.0 - 1e-6)) / 2e-6
    assert grad(f)(2.0) == pytest.approx(want)
    assert vmap(grad(f))(np.array([2.0, 2.0])) == pytest.approx([want, want])


class Step(functools.partial):
    """Object that holds data of C code, which only its own class can make."""

    def of(self, x):
        return self(x) * np.array([x])[0]


def test_objects_with_data_of_compiled_code():
    outside = Step(operator.mul, 3.0)
    assert grad(lambda x: np.array([outside(x)])[0] * x)(2.0) == 12.0
    assert grad(lambda x: np.array([x * Step(operator.mul, 3.0).of(x)])[0])(2.0) == 36.0


class Measured:
    """Number that converts itself to an array, with its own division."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value)

    def __rtruediv__(self, other):
        return other / self.value


def test_numpys_number_divided_by_an_object_that_converts_itself():
    two = np.float64(2.0)
    assert grad(lambda x: float(two) / Measured(np.array([x])[0]))(4.0) == -0.125
    assert grad(lambda x: two / np.asarray(Measured(np.array([x])[0])))(4.0) == -0.125
    with pytest.raises(ValueError, match="__array__") as caught:
        grad(lambda x: two / Measured(np.array([x])[0]))(4.0)
    assert any("np.asarray(y)" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        (lambda x: hashlib.md5(np.array([x])).digest(), TypeError),
        (lambda x: struct.pack("d", np.array([x])[0]), struct.error),
    ],
)
def test_bytes_of_traced_numbers(use, kind):
    with pytest.raises(kind) as caught:
        grad(lambda x: len(use(x)) * x)(1.0)
    assert any("Compiled code got a traced value" in note for note in caught.value.__notes__)


class Report:
    """Object that lists the public names of its class."""

    limit = 3.0

    def __init__(self, value):
        self.value = np.array([value])[0]

    def names(self):
        return [name for name in vars(type(self)) if not name.startswith("_")]


def test_public_names_of_a_rebuilt_class_are_those_of_the_program():
    found = []

    def f(x):
        report = Report(x)
        found[:] = report.names()
        return report.value

    assert grad(f)(1.0) == 1.0
    assert found == ["limit", "names"]


def cells(x):
    mixed = np.empty(3, dtype=object)
    mixed[:] = [x[0], math.sin(x[1]), x[1:]]
    mixed[1] *= 2.0
    return mixed[0] + mixed[1] + mixed[2].sum()


def cells_written_to_numbers(x):
    column, out = np.empty(3, dtype=object), np.zeros(4)
    column[:] = x
    column[1] *= math.sin(x[0])
    out[1:] = column
    out *= 2.0
    x = x * 1.0
    x[:] = column
    return out[1:].prod() + x @ np.arange(3.0)


def rows_of_cells(x):
    table, out = np.zeros((2, 2), object), np.ones(4)
    table[0] = x[:2]
    table[:, 1] = math.sin(x[0])
    table += 1
    out[1:3] = table[0]
    return out.prod() * table.sum()


def numbers_as_objects(x):
    constants, mixed = np.array([[1, 2.0, 0.5], [3, 1.5, 2]], object), np.array([2.0, x[1], 1], object)
    products = np.dot(constants, x) * math.sin(x[0])
    return products.sum() + (mixed * x).sum() + np.concatenate([mixed, x]).prod() + np.maximum(x, mixed).sum()


@pytest.mark.parametrize("f", [cells, cells_written_to_numbers, rows_of_cells, numbers_as_objects])
def test_arrays_of_objects_take_traced_arrays(f):
    x = np.array([0.7, 1.3, 0.4])
    want = differences(f, x, 5e-4)
    found, slope = value_and_grad(f)(x)
    assert found == pytest.approx(f(x), rel=1e-14)
    assert slope == pytest.approx(want, rel=1e-8)
    np.testing.assert_allclose(jacfwd(f)(x), slope, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x])), [slope, slope], rtol=1e-12)


class Tally:
    """Class whose attributes change: an array that the program replaces, a list that the function makes anew."""

    weights = np.array([1.0, 2.0])
    items: ClassVar[list] = [0.0]

    @classmethod
    def added(cls, x):
        cls.items = []
        for _ in range(2):
            cls.items.append(x * (cls.items[-1] if cls.items else 1.0))
        return np.array([math.exp(cls.items[-1]), x]).dot(cls.weights)


def test_attributes_of_classes_that_change(monkeypatch):
    f = Tally.added
    for first in (1.0, 3.0, 5.0):
        monkeypatch.setattr(Tally, "weights", np.array([first, 2.0]))
        for _ in range(2):
            assert grad(f)(0.5) == pytest.approx(first * math.exp(0.25) + 2.0, rel=1e-14)
        assert f(0.5) == pytest.approx(first * math.exp(0.25) + 1.0, rel=1e-14)


class Scaled:
    """Object whose class has a name, which the object itself has not."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x, power=2):
        return math.exp(self.factor * x) ** power


SCALED = Scaled(0.5)


def named(x):
    names = [getattr(SCALED, name, "none") for name in ("__name__", "__qualname__", "__mro__", "mro")]
    return SCALED(x) * len("".join(names)) * len(inspect.signature(SCALED).parameters)


def test_objects_have_no_attributes_of_metaclasses():
    assert named(0.7) == pytest.approx(32 * math.exp(0.7), rel=1e-14)
    assert value_and_grad(named)(0.7) == pytest.approx((named(0.7), named(0.7)), rel=1e-14)


def test_basinhopping_which_asks_for_signatures_of_objects():
    def lowest(a):
        options = {"args": (a,), "tol": 1e-10}
        f = lambda x, a: np.sum((x - a) ** 2) + np.sum(np.cos(3 * x))
        return np.sum(scipy.optimize.basinhopping(f, [1.0, 1.0], niter=2, rng=1, minimizer_kwargs=options).x)

    assert grad(lowest)(0.3) == pytest.approx((lowest(0.3001) - lowest(0.2999)) / 2e-4, rel=1e-4)


class Gauge:
    """Object with slots, a property that can be deleted, and a method with a part of its arguments."""

    __slots__ = ("__dict__", "sensor", "weights")

    def __init__(self):
        self.sensor, self.weights, self._level = math.sin, np.array([2.0, 3.0]), 1.5

    @property
    def level(self):
        return self._level * 2.0

    @level.deleter
    def level(self):
        self._level = 0.25

    def scaled(self, x, by=1.0):
        return self.sensor(x) * by * self.level

    tripled = functools.partialmethod(scaled, by=3.0)


class Names:
    """Mapping of the names of evaluated code: it can neither be looped over nor has it a length."""

    def __init__(self, **known):
        self.known = known

    def __getitem__(self, name):
        return self.known[name]

    def __setitem__(self, name, value):
        self.known[name] = value

    def __delitem__(self, name):
        del self.known[name]

    def keys(self):
        return self.known.keys()


GAUGE = Gauge()


def property_deleted(x):
    del GAUGE.level
    return GAUGE.tripled(x) * GAUGE.weights[1] * GAUGE.level


def slots_of_a_copy(x):
    other = copy.copy(GAUGE)
    other.note = x
    del other.note
    return other.tripled(x) * other.weights.sum() * len(vars(other))


def names_of_evaluated_code(x):
    names = Names(x=x)
    exec(
        "y = math.sin(x)\nw = 3.0\ndel w\nz = y * 2.0\ncount = len(dir()) + len(locals().keys())", {"math": math}, names
    )
    return names["z"] * names["count"]


@functools.lru_cache
def kept(pair):
    return pair[0] * pair[1][0] ** 2


@pytest.mark.parametrize(
    "f", [property_deleted, slots_of_a_copy, names_of_evaluated_code, lambda x: kept((x, (x, 2))) * kept((x, (x, 2)))]
)
def test_less_common_members_and_names(f):
    def rebuilt(x):
        held = np.zeros(1)
        held[0] = x
        return f(x) * held[0]

    GAUGE.__init__()
    expected = rebuilt(0.7)
    GAUGE.__init__()
    value, slope = jvp(rebuilt, (0.7,), (1.0,))
    assert value == pytest.approx(expected, rel=1e-14)
    assert GAUGE.level == 3.0
    assert grad(rebuilt)(0.7) == pytest.approx(slope, rel=1e-12)
    fresh = lambda x: GAUGE.__init__() or rebuilt(x)
    assert slope == pytest.approx(differences(fresh, 0.7), rel=1e-7)
    GAUGE.__init__()


class Base:
    def scale(self, x):
        return math.sinh(x)

    @property
    def shift(self):
        return 2.0

    @shift.setter
    def shift(self, value):
        raise AssertionError("replaced before it is used")


class Refined(Base):
    def scale(self, x):
        return math.cosh(x) + super().scale(x)

    def run(self, x):
        return math.sin(x)

    def all_of(self, x):
        return self.scale(x) + self.shift * math.exp(x)

    def set_and_run(self, x):
        self.shift = math.sqrt(x)
        return self.shift * self.scale(x)


class Halving:
    """Descriptor that is no function."""

    def __get__(self, obj, cls=None):
        return lambda x: math.tan(x) / 2.0


#: Changes of a class after it was rebuilt, and before the changed member is first used.
CHANGES = {
    "a method": lambda patch: patch.setattr(Refined, "scale", lambda self, x: math.log(x)),
    "a method of the base, which super() finds": lambda patch: patch.setattr(Base, "scale", lambda self, x: x**3),
    "a static method": lambda patch: patch.setattr(Refined, "scale", staticmethod(math.log)),
    "a descriptor": lambda patch: patch.setattr(Refined, "scale", Halving()),
    "an object that is called": lambda patch: patch.setattr(Refined, "scale", Scaled(3.0)),
    "a method that is deleted": lambda patch: patch.delattr(Refined, "scale"),
    "a property that is another": lambda patch: patch.setattr(Base, "shift", property(lambda self: 5.0)),
    "a property that is a number": lambda patch: patch.setattr(Base, "shift", 4.0),
    "a property that is deleted": lambda patch: (
        patch.delattr(Base, "shift"),
        patch.setattr(Refined, "shift", 6.0, raising=False),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_members_that_change_before_they_are_used(change):
    thing = Refined()

    def f(x):
        return thing.run(x)

    def g(x):
        return thing.all_of(x)

    assert grad(f)(0.5) == pytest.approx(math.cos(0.5), rel=1e-14)  # rebuilds the class
    with pytest.MonkeyPatch.context() as patch:
        CHANGES[change](patch)
        for _ in range(2):
            value, slope = value_and_grad(g)(0.5)
            assert value == pytest.approx(g(0.5), rel=1e-14)
            assert slope == pytest.approx(differences(g, 0.5), rel=1e-8)
    assert grad(g)(0.5) == pytest.approx(differences(g, 0.5), rel=1e-8)


def test_property_that_is_replaced_before_it_is_set():
    thing = Refined()
    assert grad(lambda x: thing.run(x))(0.5) == pytest.approx(math.cos(0.5), rel=1e-14)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(Base, "shift")
        slope = differences(lambda x: math.sqrt(x) * (math.cosh(x) + math.sinh(x)), 0.5)
        assert grad(lambda x: thing.set_and_run(x))(0.5) == pytest.approx(slope, rel=1e-8)
    assert "shift" not in vars(thing)
