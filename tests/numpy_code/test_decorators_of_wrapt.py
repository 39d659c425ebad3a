"""Functions in decorators of wrapt, which are objects of compiled code."""

import math

import numpy as np
import pytest
import wrapt

from funcgrad import grad, hessian, vmap


@wrapt.decorator
def plain(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs)


def times(n):
    @wrapt.decorator
    def decorate(wrapped, instance, args, kwargs):
        return n * float(wrapped(*args, **kwargs))

    return decorate


@plain
def wave(x):
    return math.sin(x)


@times(2.0)
def product(x):
    return np.array([x, 1.0]).dot(np.array([x, 2.0]))


class Oscillator:
    def __init__(self, rate):
        self.rate = rate

    @plain
    def at(self, x):
        return math.sin(self.rate * x)

    @times(3.0)
    @plain
    def twice(self, x):
        return math.cos(self.rate * x)

    @staticmethod
    @plain
    def still(x):
        return math.exp(x)

    @classmethod
    @plain
    def of_class(cls, x):
        return math.cosh(x)


SLOW = Oscillator(1.3)
FUNCTIONS = {
    "function": lambda x: wave(x),
    "function itself": wave,
    "arguments": lambda x: product(x),
    "method": lambda x: SLOW.at(x),
    "method itself": SLOW.at,
    "two decorators": lambda x: SLOW.twice(x),
    "made inside": lambda x: Oscillator(x).at(x),
    "static": lambda x: SLOW.still(x) + Oscillator.still(x),
    "class": lambda x: SLOW.of_class(x) + Oscillator.of_class(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_decorated_functions_are_rebuilt(name):
    fun = FUNCTIONS[name]
    np.testing.assert_allclose(grad(fun)(0.7), (fun(0.7 + 1e-6) - fun(0.7 - 1e-6)) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(hessian(fun)(0.7), (grad(fun)(0.7 + 1e-6) - grad(fun)(0.7 - 1e-6)) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(vmap(grad(fun))(np.array([0.7, 0.8])), [grad(fun)(0.7), grad(fun)(0.8)])
