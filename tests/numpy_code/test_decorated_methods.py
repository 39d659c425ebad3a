"""Methods that stand in their class as objects with ``__get__``, which a decorator written as a class makes."""

import functools
import math
import traceback
from abc import ABC, abstractmethod
from functools import partial
from types import MethodType

import numpy as np
import pytest
import scipy.special
import scipy.stats

from funcgrad import grad


class Available:
    """Method that exists if the object's ``on`` is true, as in scikit-learn's ``available_if``."""

    def __init__(self, fun):
        self.fun = fun

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        if not obj.on:
            raise AttributeError("off")
        return MethodType(self.fun, obj)


class Doubled:
    """Method whose result is doubled by the decorator itself."""

    def __init__(self, fun):
        self.fun, self.factor = fun, np.array([2.0])

    def __get__(self, obj, owner=None):
        return partial(self.__call__, obj)

    def __call__(self, obj, x):
        return float(self.factor[0]) * self.fun(obj, x)


class ComputedOnce:
    """Value that the first lookup puts into the object."""

    def __init__(self, fun):
        self.fun = fun

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        value = obj.__dict__[self.name] = self.fun(obj)
        return value


class Base(ABC):
    @abstractmethod
    def other(self, x): ...


class Model(Base):
    def __init__(self, on=True):
        self.on, self.scale, self.count = on, np.array([3.0, 4.0]), 0

    @Available
    def sine(self, x):
        out = np.zeros(2)
        out[0] = math.sin(x)
        return float(out.dot(self.scale))

    @Doubled
    def twice(self, x):
        return math.sin(x) * self.scale[1]

    @ComputedOnce
    def size(self):
        return float(np.dot(self.scale, self.scale))

    @Doubled
    def other(self, x):
        return math.exp(x)

    def total(self, x):
        return self.sine(x) + self.twice(x) + self.size * math.sin(x) + self.size * x


def test_decorated_methods():
    model = Model()
    assert grad(model.sine)(0.0) == 3.0
    assert grad(model.twice)(0.0) == 8.0
    assert grad(lambda x: model.sine(x) + model.twice(x) + model.other(x))(0.0) == 13.0
    assert grad(model.total)(0.0) == 3.0 + 8.0 + 50.0
    assert "size" not in vars(model)  # the rebuilt code uses a copy of the object


def test_missing_methods_raise():
    model = Model(on=False)
    assert grad(lambda x: model.twice(x) if not hasattr(model, "sine") else x)(0.0) == 8.0
    with pytest.raises(AttributeError, match="sine"):
        grad(lambda x: math.sin(x) + model.sine(x))(0.0)


def test_decorated_method_of_object_made_in_function():
    assert grad(lambda x: Model().total(x))(0.0) == 61.0


def test_changed_decorator_attribute_is_seen():
    model, decorator = Model(), vars(Model)["twice"]
    assert grad(model.twice)(0.0) == 8.0
    decorator.factor = np.array([3.0])
    try:
        assert grad(model.twice)(0.0) == 12.0
    finally:
        decorator.factor = np.array([2.0])


def same(*_):
    """Make a decorator that returns the function itself."""
    return lambda fun: fun


def of_no_decorator(x):
    """Raise from the line of ``float``: ``dtype(x)`` makes the function be compiled again."""
    dtype = np.float64
    y = dtype(x)
    return float("none") * y


@same()
def of_one_decorator(x):
    dtype = np.float64
    y = dtype(x)
    return float("none") * y


@same(
    1,
    2,
)
@same()
def of_two_decorators(x):
    dtype = np.float64
    y = dtype(x)
    return float("none") * y


@pytest.mark.parametrize("fun", [of_no_decorator, of_one_decorator, of_two_decorators])
def test_tracebacks_of_decorated_functions_show_the_line_that_ran(fun):
    with pytest.raises(ValueError, match="could not convert") as caught:
        grad(fun)(2.0)
    last = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.name == fun.__name__][-1]
    assert last.line == 'return float("none") * y'


class Named:
    """Class with a method that contains a text of several lines, and an expression that ends after its last code."""

    def scaled(self, x, dtype=np.float64):
        title = """rate
            per day"""
        return (
            dtype(x * len(title))
        )  # fmt: skip


def test_local_classes_beside_texts_of_several_lines():
    named = Named()
    assert grad(lambda x: np.array([1.0, 2.0]).dot(np.full(2, named.scaled(x))))(2.0) == 3.0 * 24


def with_vectorized_form(fun):
    """Decorate a method of numbers such that it takes arrays, as astropy does: the form is an attribute."""

    @functools.wraps(fun)
    def wrapper(*args):
        wrapper.calls += 1
        return fun(*args) if np.ndim(args[-1]) == 0 else wrapper.vectorized(*args)

    wrapper.vectorized = np.vectorize(fun)
    wrapper.calls = 0
    return wrapper


class Ruler:
    unit = 2.0

    @with_vectorized_form
    def measured(self, x):
        return self.unit * math.sin(x)


def test_functions_in_attributes_of_functions():
    ruler, counted = Ruler(), Ruler.measured
    f = lambda x: np.sum(ruler.measured(x))
    for at in (np.array([0.3, 0.7]), 0.3):
        np.testing.assert_allclose(grad(f)(at), 2.0 * np.cos(at))
        before = counted.calls
        grad(f)(at)
        assert counted.calls == before + 1
    counted.vectorized = np.vectorize(lambda owner, x: 3.0 * math.sin(x))  # the next call sees it
    np.testing.assert_allclose(grad(f)(np.zeros(2)), [3.0, 3.0])
    counted.vectorized = np.vectorize(counted.__wrapped__)


def tripled(fun):
    """Decorate a function of a library, whose name and module the result takes over."""

    @functools.wraps(fun)
    def call(*args, **kwargs):
        return 3.0 * fun(*args, **kwargs)

    return call


#: Functions of this module that are named like the functions of libraries that they call.
NAMED_LIKE_OTHERS = {
    fun.__name__: tripled(fun) for fun in (np.array, math.sin, scipy.special.stdtr, scipy.stats.boxcox_llf)
}
data = np.array([0.5, 1.3, 2.4])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("array", lambda x: ([x, x * x],)),
        ("sin", lambda x: (x,)),
        ("stdtr", lambda x: (3.0, x)),
        ("boxcox_llf", lambda x: (x, data)),
    ],
)
def test_function_that_takes_over_the_name_of_a_library_function(name, args):
    def f(x):
        return np.sum(NAMED_LIKE_OTHERS[name](*args(x)))

    step = 1e-5
    assert grad(f)(0.7) == pytest.approx((f(0.7 + step) - f(0.7 - step)) / (2 * step), rel=1e-7)


class Sine:
    def __call__(self, x):
        return math.sin(x)


def made(name):
    made.count += 1
    return made.kinds[name]()


made.kinds, made.count = {"sine": Sine}, 0


def test_tables_in_attributes_of_functions():
    assert grad(lambda x: made("sine")(x))(0.5) == pytest.approx(math.cos(0.5), rel=1e-12)
    assert made.count > 0
    assert made.kinds == {"sine": Sine}
