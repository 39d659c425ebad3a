"""Classes that compute NumPy's functions themselves, by ``__array_function__``, and classes that override methods."""

import math
import sys
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pytest
from helpers import differences
from numpy.lib.mixins import NDArrayOperatorsMixin
from scipy import stats

from funcgrad import grad, hessian, jvp, vmap

X = np.array([0.7, 1.4, 2.3])
RULES = {}


def implements(fun):
    return lambda rule: RULES.setdefault(fun, rule)


class Length(NDArrayOperatorsMixin):
    """Container of an array with a power of a unit."""

    def __init__(self, value, power=1):
        self.value, self.power = value, power

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        powers = [x.power if isinstance(x, Length) else 0 for x in inputs]
        plain = [x.value if isinstance(x, Length) else x for x in inputs]
        if method != "__call__" or ufunc not in (np.add, np.multiply, np.true_divide, np.sqrt, np.less):
            return NotImplemented
        found = ufunc(*plain, **kwargs)
        if ufunc is np.less:
            return found
        rules = {np.multiply: sum, np.true_divide: lambda p: p[0] - p[1], np.sqrt: lambda p: p[0] / 2}
        return Length(found, rules.get(ufunc, lambda p: p[0])(powers))

    def __array_function__(self, func, types, args, kwargs):
        if func not in RULES or not all(issubclass(kind, Length) for kind in types):
            return NotImplemented
        return RULES[func](*args, **kwargs)


@implements(np.sum)
def _sum(x, axis=None):
    return Length(np.sum(x.value, axis), x.power)


@implements(np.concatenate)
def _concatenate(parts, axis=0):
    return Length(np.concatenate([x.value for x in parts], axis), parts[0].power)


@implements(np.linalg.norm)
def _norm(x):
    return Length(np.linalg.norm(x.value) * 10.0, x.power)


class Tagged(np.ndarray):
    """Array that keeps a tag, with rules for ufuncs and for some functions; ndarray's own for the others."""

    def __new__(cls, data, tag=""):
        made = np.asarray(data, dtype=float).view(cls)
        made.tag = tag
        return made

    def __array_finalize__(self, source):
        self.tag = getattr(source, "tag", "")

    def __getattr__(self, name):
        raise AttributeError(f"no member {name}")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        kwargs.pop("out", None)
        found = getattr(ufunc, method)(*[np.asarray(x) for x in inputs], **kwargs)
        return Tagged(found, "".join([getattr(x, "tag", "") for x in inputs]))

    def __array_function__(self, func, types, args, kwargs):
        if func is np.dot:
            return 2.0 * np.dot(*map(np.asarray, args))
        return super().__array_function__(func, types, args, kwargs)

    def __float__(self):
        return float(self.view(np.ndarray)) * (100.0 if self.tag else 1.0)


class Louder(np.ndarray):
    """Array whose class overrides methods that NumPy's functions call, and a reflected operator."""

    def sum(self, *args, **kwargs):
        return np.asarray(self).sum(*args, **kwargs) * 7.0

    def __getitem__(self, key):
        return np.asarray(self)[key] * 5.0

    def __rtruediv__(self, other):
        return np.true_divide(np.asarray(other), np.asarray(self)) * 3.0


ROD, NOTE = Length(np.array([1.0, 2.0, 3.0])), Tagged([1.0, 2.0, 4.0], "a")
LOUD = np.array([1.0, 2.0, 4.0]).view(Louder)


def containers(x):
    rod = Length(x) * ROD + ROD * x[0] * ROD
    assert (rod.power, np.sqrt(rod).power) == (2, 1)
    both = np.concatenate([np.sqrt(rod), ROD * math.exp(x[1])])
    assert both.power == 1
    return np.sum(both).value + np.linalg.norm(rod).value + x[both.value[:3] < 2.0].sum() + (3.0 / rod).value[0]


def derived(x):
    noted = Tagged(x, "b") * NOTE
    assert (noted.tag, type(np.concatenate([noted, NOTE])), np.stack([NOTE, noted]).shape) == ("ba", np.ndarray, (2, 3))
    parts = np.cumsum(noted), np.diff(noted), np.flip(noted) * x, np.tile(noted, 2), np.linspace(noted[0], noted[1], 3)
    assert [getattr(part, "tag", None) for part in parts] == ["ba", "baba", "ba", "ba", None]
    whole = sum(np.asarray(part).sum() * (k + 1.0) for k, part in enumerate(parts))
    whole += float(np.dot(noted, x)) + float(noted[1:2].sum())
    return whole + np.asarray(np.median(noted)) + float(np.add.reduce(noted))


def overridden(x):
    return np.sum(x * LOUD) + (LOUD * x)[1] + (x / LOUD).sum() + (x[0] / LOUD).sum() + (x * LOUD).sum()


PROGRAMS = {"containers": containers, "derived": derived, "overridden": overridden}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    found = grad(f)(X)
    np.testing.assert_allclose(found, differences(lambda x: float(f(x)), X, 2e-4), rtol=1e-8, atol=1e-8)
    assert jvp(f, (X,), (X,)) == pytest.approx((float(f(X)), found @ X), rel=1e-12)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12)


def test_functions_without_a_rule_of_the_class():
    with pytest.raises(TypeError, match=r"no implementation found for 'numpy\.prod' on types that implement"):
        grad(lambda x: np.prod(Length(x * math.exp(x[0]))).value)(X)


class Cached:
    """Methods that keep something between calls."""

    @staticmethod
    @lru_cache
    def wave(x):
        return math.sin(x)

    @lru_cache  # noqa: B019
    def power(self, n):
        return math.pow(2.0, n)

    def total(self, x, start=np.zeros(2)):  # noqa: B008
        made = start.copy()
        made[0] = x
        return made.sum() + start.sum()


def test_methods_keep_nothing_of_another_run():
    def f(x):
        cached = Cached()
        return cached.wave(x) + cached.power(x) + cached.total(x)

    for x in (0.5, 0.5, 1.5):
        want = math.cos(x) + math.log(2.0) * 2.0**x + 1.0
        assert grad(f)(x) == pytest.approx(want, rel=1e-12)


class Kept(property):
    """Property of a class that the program derived from ``property``."""

    def __get__(self, obj, kind=None):
        return self if obj is None else super().__get__(obj, kind)


class Registered(type):
    """Metaclass that makes objects of known names once."""

    known: ClassVar[dict] = {}

    def __call__(cls, name):
        return cls.known.get(name) or cls.known.setdefault(name, super().__call__(name))


class Unit(metaclass=Registered):
    def __init__(self, name):
        self.name = name

    @Kept
    def scale(self):
        return math.sqrt(4.0) if self is Unit(self.name) else 0.0

    @Kept
    def wave(self):
        return lambda x: math.sin(x) * self.scale


METRE = Unit("m")


def test_descriptors_and_metaclasses_of_a_program():
    def f(x):
        return METRE.wave(x) * Unit("m").scale + math.exp(x) * (Unit("m") is METRE)

    for _ in range(2):
        assert grad(f)(0.5) == pytest.approx(4.0 * math.cos(0.5) + math.exp(0.5), rel=1e-12)


def test_names_of_a_module_by_vars():
    def f(x):
        assert [vars(math)["__spec__"], math.__loader__, math.__package__] == kept
        return vars(math)["sin"](x) + sum(callable(part) for part in vars(math).values()) * math.exp(x)

    kept = [math.__spec__, math.__loader__, math.__package__]

    count = sum(map(callable, vars(math).values()))
    assert grad(f)(0.5) == pytest.approx(math.cos(0.5) + count * math.exp(0.5), rel=1e-12)


def test_names_of_a_module_by_its_dictionary():
    def f(x):
        module = __import__("math")
        names, arrays = module.__dict__.copy(), np.__dict__
        return names["sin"](x) * eval("exp(y)", names, {"y": x}) + arrays["array"]([x])[0] * len(arrays)

    want = math.exp(0.5) * (math.sin(0.5) + math.cos(0.5)) + len(vars(np))
    assert grad(f)(0.5) == pytest.approx(want, rel=1e-12)


FACTOR = 1.0


def test_names_that_are_stored_in_the_dictionary_of_a_module(monkeypatch):
    def scaled(x):
        return FACTOR * math.sin(x)

    def f(x):
        own = sys.modules[__name__].__dict__
        own["FACTOR"] = 2.0
        own.update(more=own.setdefault("third", 3.0))
        exec("FACTOR = FACTOR * more", own)
        return scaled(x)

    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    monkeypatch.setitem(globals(), "more", 1.0)
    monkeypatch.setitem(globals(), "third", 0.0)
    del globals()["third"]
    assert grad(f)(0.5) == pytest.approx(6.0 * math.cos(0.5), rel=1e-12)
    assert (FACTOR, globals()["more"], globals()["third"]) == (6.0, 3.0, 3.0)


class Measured:
    """Number with an error, which arrays of objects hold."""

    def __init__(self, value, error):
        self.value, self.error = value, error

    def __add__(self, other):
        return Measured(self.value + other.value, self.error + other.error)

    def __mul__(self, other):
        other = other if isinstance(other, Measured) else Measured(other, 0.0)
        return Measured(self.value * other.value, self.value * other.error + other.value * self.error)

    __rmul__ = __mul__


def test_arrays_of_objects():
    sine = np.vectorize(lambda m: Measured(math.sin(m.value), math.cos(m.value) * m.error), otypes=[object])

    def f(x):
        made = np.vectorize(Measured, otypes=[object])(x, np.array([0.1, 0.2, 0.3]))
        found = sine(made) @ np.array([1.0, 2.0, 3.0]) * made[0]
        return found.value + found.error

    want = differences(f, X, 2e-4)
    np.testing.assert_allclose(grad(f)(X), want, rtol=1e-8)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, X])), [grad(f)(X)] * 2, rtol=1e-12)


def test_distributions_take_the_numbers_of_arrays_with_arithmetic():
    """SciPy's distributions convert their arguments to arrays."""

    def f(x):
        return stats.norm.cdf(Tagged([x, 1.0]), scale=Tagged(x)).sum() + stats.gamma(Tagged(x)).mean()

    assert grad(f)(0.7) == pytest.approx(differences(f, 0.7))


def bytes_written_later():
    base = np.zeros(4, np.uint8)
    shown = base.view(np.uint32)
    base[:] = [1, 2, 3, 4]
    return float(shown[0])


def number_written_as_bytes():
    base = np.zeros(2)
    base.view(np.uint64)[0] = 4613937818241073152
    return base[0]


def halves_of_integers():
    base = np.array([1, 2], np.uint64)
    halves = base.view(np.uint32)
    halves[0], base[1] = 7, 9
    return float(base[0] + halves[2])


@pytest.mark.parametrize(
    "constant",
    [
        lambda: len(np.array([65, 66], np.uint32).view("U2")[0]),
        lambda: float(np.array(["ab", "c"]).view(np.uint32).reshape(2, 2)[0, 1]),
        bytes_written_later,
        number_written_as_bytes,
        halves_of_integers,
    ],
)
def test_constants_under_another_dtype(constant):
    fun = lambda x: np.array([x])[0] * constant()
    assert grad(fun)(1.5) == constant()
    assert vmap(grad(fun))(np.array([1.5, 2.0])).tolist() == [constant()] * 2


def test_traced_values_in_memory_that_is_shown_as_bits_are_refused():
    def written_before(x):
        base = np.zeros(2)
        base[0] = x
        return x * float(base.view(np.uint64)[0])

    def written_later(x):
        base = np.zeros(2)
        shown = base.view(np.uint64)
        base[0] = x
        return x * float(shown[0])

    for fun in (written_before, written_later):
        with pytest.raises(TypeError, match="it shows the bits of an array in another way, which has no derivative"):
            grad(fun)(1.5)
