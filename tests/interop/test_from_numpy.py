"""``from_numpy``: functions written for NumPy, SciPy and ``math``, rebuilt with funcgrad's functions."""

import abc
import cmath
import collections
import enum
import functools
import math
import pickle
import sys
import types
from dataclasses import dataclass
from math import exp as number_exp
from typing import Generic, TypeVar

import jax
import numpy as np
import numpy.linalg as la
import pytest
import scipy.special
import scipy.stats
from numpy import array as make
from scipy.special import gammaln
from scipy.stats import norm

import funcgrad.numpy as fnp
from funcgrad import as_written, compose, curry, grad, hessian, jvp, pipe, register_dataclass, vjp, vmap
from funcgrad.errors import ConversionError, InputError
from funcgrad.interop import crosscheck, from_numpy, jit
from funcgrad.numpy_code.names import counterpart
from funcgrad.numpy_code.translation import FUNCTIONS, Translator

translated = Translator(FUNCTIONS)
Number = TypeVar("Number")


def by_array(x):
    return np.array([x, x**2]).sum()


def by_writing(x):
    found = np.zeros(3)
    for i in range(3):
        found[i] = x**i
    return np.sum(found)


def by_names(x):
    return make([x, number_exp(x)]).prod() + gammaln(x) + norm.logpdf(x)


def by_modules(x):
    return la.norm(np.full(3, x)) + scipy.special.logsumexp([x, 1.0]) + scipy.stats.gamma.logpdf(x, 2.0)


def by_math(x):
    plain = math.sin(0.5) + math.floor(2.5) + math.factorial(3) + math.pi + math.comb(4, 2)
    return plain * math.atan2(x, 2.0) + math.lgamma(x) * math.hypot(x, 1.0) + math.log(x, 3.0) + math.fsum([x, 2.0])


def by_import(x):
    from math import sqrt

    import numpy.fft as other
    import scipy.linalg
    from numpy import asarray as given

    return sqrt(x) * abs(other.fft(given([x, 1.0]))[0]) + scipy.linalg.solve([[x, 0.0], [0.0, 1.0]], [1.0, 2.0])[0]


def helper(x):
    return np.array([x, 1.0])


def by_helper(x, f=helper, *, g=np.asarray):
    return f(x)[0] * g([x])[0]


def factorial(n, x):
    return x if n == 0 else np.array([factorial(n - 1, x) * x])[0]


def by_recursion(x):
    return factorial(3, x)


def by_closures(x):
    def inner(n):
        return np.array([x]) if n == 0 else inner(n - 1) * x

    return sum(np.array([f(x) for f in (lambda t: math.exp(t), lambda t: inner(2)[0])]))


def by_vectorize(x):
    return np.vectorize(lambda t: math.exp(t) if t > 0 else -t)(np.array([x, -x])).sum()


class Base:
    factor = 2.0

    def term(self, x):
        return np.array([x * self.factor])[0]


class Model(Base):
    def __init__(self, x):
        self.x = x

    def term(self, x):
        return math.exp(super().term(x))

    @property
    def first(self):
        return np.asarray([self.x])[0]

    @functools.cached_property
    def second(self):
        return np.asarray([self.x])[0]

    @staticmethod
    def third(x):
        return np.array([x])[0]

    @classmethod
    def made(cls, x):
        return cls(np.array([x])[0])

    def __call__(self, x):
        return math.exp(x)


@dataclass
class Pair:
    one: object
    two: float = 1.0

    def total(self):
        return np.array([self.one, self.two]).sum()


class Shape(abc.ABC, Generic[Number]):
    @abc.abstractmethod
    def area(self): ...

    def twice(self):
        return 2.0 * np.array([self.area()])[0]


class Disc(Shape[float]):
    __slots__ = ("radius",)

    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * math.pow(self.radius, 2)


@register_dataclass
@dataclass
class Point:
    x: float

    def doubled(self):
        return 2.0 * self.x


def wrapped(f):
    @functools.wraps(f)
    def call(*args):
        return f(*args)

    return call


@wrapped
def by_decorator(x):
    return np.array([x])[0] ** 2


def terms(x):
    for i in range(3):
        yield np.array([x * i])[0]


def by_language(x):
    """Use abstract and generic classes, slots, registered containers, decorators, generators, comprehensions."""
    inner = grad(lambda p: p.doubled() * x)(Point(x)).x
    return Disc(x).twice() + by_decorator(x) + sum(terms(x)) + sum([np.array([x * i])[0] for i in range(3)]) + inner


def by_classes(x):
    model = Model.made(x)
    assert isinstance(model, Model)
    return model.term(x) + model.first * model.second * model.third(x) + Pair(x).total() + model(x)


PROGRAMS = [
    by_array,
    by_writing,
    by_names,
    by_modules,
    by_math,
    by_import,
    by_helper,
    by_recursion,
    by_closures,
    by_vectorize,
    by_classes,
    by_language,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_match_differences(f):
    ours, x, h = from_numpy(f), 0.7, 1e-6
    assert ours(x) == pytest.approx(f(x), rel=1e-14)
    slope = grad(ours)(x)
    assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-8)
    assert jvp(ours, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-12)
    assert grad(grad(ours))(x) == pytest.approx((grad(ours)(x + h) - grad(ours)(x - h)) / (2 * h), rel=1e-6)
    if f is not by_vectorize:  # by_vectorize branches
        assert vmap(grad(ours))(np.array([x, 0.9])) == pytest.approx([slope, grad(ours)(0.9)], rel=1e-12)


@pytest.mark.parametrize("f", [by_array, by_writing, by_helper, by_recursion])
def test_from_numpy_under_jit_and_crosscheck(f):
    ours = from_numpy(f)
    assert jit(grad(ours))(0.7) == pytest.approx(grad(ours)(0.7), rel=1e-12)
    assert crosscheck(ours)(0.7)


def test_originals_are_unchanged():
    before = dict(globals())
    grad(from_numpy(by_helper))(0.7)
    grad(from_numpy(by_classes))(0.7)
    assert {name: value for name, value in globals().items() if value is not before.get(name)} == {}
    assert np.array is make
    assert type(Model(1.0)) is Model
    with as_written(), pytest.raises(ConversionError):
        grad(by_helper)(0.7)


def test_all_kinds_of_callables():
    assert grad(from_numpy(functools.partial(factorial, 2)))(2.0) == 12.0
    assert grad(from_numpy(curry(factorial)(2)))(2.0) == 12.0
    assert grad(from_numpy(compose(np.sum, helper)))(2.0) == 1.0
    assert grad(lambda x: pipe(x, from_numpy(helper), np.sum))(2.0) == 1.0
    assert grad(from_numpy(Model(2.0).third))(2.0) == 1.0
    assert grad(from_numpy(Model(2.0)))(0.0) == 1.0
    assert grad(from_numpy(np.array))(2.0) == 1.0
    assert grad(from_numpy(math.sin))(0.0) == 1.0
    assert from_numpy(grad(by_array))(2.0) == 5.0
    assert grad(lambda x: from_numpy(Pair)(x).total())(2.0) == 1.0
    assert hessian(from_numpy(lambda x: np.array([x[0] * x[1], x[1]]).prod()))(np.ones(2)).tolist() == [[0, 2], [2, 2]]


def test_global_names_are_looked_up_at_use(monkeypatch):
    ours = from_numpy(by_helper)
    ours(1.0)
    module = sys.modules[__name__]
    late = from_numpy(lambda x: helper(x).sum())
    assert late(2.0) == 3.0
    monkeypatch.setattr(module, "helper", lambda x: np.array([x, x, 5.0]))
    assert grad(late)(2.0) == 2.0
    assert late(2.0) == 9.0
    with pytest.raises(NameError, match="there_is_none"):
        from_numpy(lambda: there_is_none)()  # noqa: F821


def test_variables_are_shared_with_the_original():
    count = 0

    def counting(x):
        nonlocal count
        count += 1
        return np.array([x])[0]

    scale = 2.0

    def scaled(x):
        return np.array([x])[0] * scale

    assert grad(from_numpy(counting))(1.0) == 1.0
    assert count == 1
    assert grad(from_numpy(scaled))(1.0) == 2.0
    scale = 3.0
    assert grad(from_numpy(scaled))(1.0) == 3.0


TOTAL = 0.0


def assigning(x):
    global TOTAL
    TOTAL = TOTAL + 1.0
    return np.sin(x)


def test_functions_that_assign_to_global_names():
    before = TOTAL
    assert grad(from_numpy(lambda x: assigning(x) + np.array([x])[0]))(0.0) == 2.0
    assert before + 1 == TOTAL


def test_functions_of_other_modules(monkeypatch):
    other = types.ModuleType("their_physics")
    exec(
        "import numpy as np\nK = 2.0\ndef energy(x):\n    return K * np.array([x, x]).sum()\n"
        "class Spring:\n    def force(self, x):\n        return energy(x)\n",
        vars(other),
    )
    monkeypatch.setitem(sys.modules, "their_physics", other)
    assert grad(from_numpy(lambda x: other.energy(x)))(1.0) == 4.0
    assert grad(from_numpy(lambda x: other.Spring().force(x)))(1.0) == 4.0

    def f(x):
        import their_physics
        from their_physics import energy

        their_physics.K = 3.0
        return energy(x)

    assert grad(from_numpy(f))(1.0) == 6.0
    assert other.K == 3.0


def test_nonfunction_values_are_returned_unchanged():
    class Colour(enum.Enum):
        RED = 1

    Point = collections.namedtuple("Point", "x y")

    for value in (
        1.0,
        None,
        "numpy",
        np.float64,
        np.ndarray,
        float,
        dict,
        len,
        Colour,
        Point,
        KeyError,
        grad,
    ):
        assert translated(value)[0] is value
    assert translated(np.random)[0] is not None
    rng = from_numpy(lambda: np.random.default_rng(0).normal())()
    assert rng == np.random.default_rng(0).normal()
    assert counterpart(np.sin) is fnp.sin
    assert counterpart(cmath.sqrt)(-4.0) == 2.0j
    assert "array" in dir(translated(np)[0])
    assert repr(from_numpy(lambda: isinstance(np.ones(2), np.ndarray))()) == "True"

    def local(x):
        class Box:
            ones = np.ones(2)

            def total(self):
                return np.array([x, 1.0]).sum() + self.ones.sum()

        return Box().total()

    assert grad(from_numpy(local))(1.0) == 1.0


def test_result_behaves_like_a_function():
    ours = from_numpy(by_helper)
    assert (ours.__name__, repr(ours)) == ("by_helper", "<from_numpy of by_helper>")
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert again(2.0) == 4.0
    assert vjp(ours, 2.0)[1](1.0) == (4.0,)
    with pytest.raises(InputError, match="from_numpy"):
        from_numpy(3.0)


CONVERTED = {
    "np.float64": lambda x: np.float64(x) ** 2,
    "np.float32": lambda x: np.float32(x) * np.float32(2.0),
    "np.complex128": lambda x: np.abs(np.complex128(x) ** 2 * 1j),
    "float": lambda x: math.sin(float(x)) * np.float64(x),
    "complex": lambda x: complex(x, 1.0).real * x,
    "int": lambda x: int(x) * x,
    "in a list": lambda x: np.asarray([np.float64(x), 2.0]).prod(),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_jax_scalars_are_converted_outside_transforms(name):
    f, x = CONVERTED[name], 1.5
    ours, given = from_numpy(f), jax.numpy.asarray(x)
    assert float(jax.jit(ours)(given)) == pytest.approx(float(f(x)), rel=1e-14)
    assert float(jax.grad(ours)(given)) == pytest.approx(float(grad(f)(x)), rel=1e-14)
    assert float(jax.grad(jax.grad(ours))(given)) == pytest.approx(float(grad(grad(f))(x)), rel=1e-13, abs=1e-14)
    np.testing.assert_allclose(jax.vmap(ours)(jax.numpy.array([1.5, 1.7])), [f(1.5), f(1.7)], rtol=1e-14)


def test_writes_to_parts_of_jax_arrays():
    def adds_to_a_part(x):
        roots = np.sin(x)
        part = roots[3:]
        part += 10.0 * x[:3]
        roots[0] = x[1]
        return np.sum(roots * np.arange(1.0, 7.0))

    x, built = np.arange(1.0, 7.0), from_numpy(adds_to_a_part)
    value, slope = adds_to_a_part(x), grad(built)(x)
    for run in (built, jax.jit(built)):
        found = run(jax.numpy.asarray(x))
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, value, rtol=1e-13)
        np.testing.assert_allclose(jax.grad(run)(jax.numpy.asarray(x)), slope, rtol=1e-13)
