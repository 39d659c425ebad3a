"""Operators on Python numbers alone are Python's under every transform: errors, complex powers and digits.

NumPy's numbers and functions warn and give inf or nan, and so do their derivatives.
"""

import importlib
import math
import operator

import numpy as np
import pytest
from helpers import differences

import funcgrad.numpy as fnp
from funcgrad import debug_nans, grad, hessian, jvp, linearize, no_grad, value_and_grad, vjp

RAISING = {
    "division": lambda x: 1 / (x - x),
    "division by a constant": lambda x: x / 0.0,
    "of a whole number": lambda x: 2 / (x * 0),
    "floor division": lambda x: x // (x - x),
    "remainder": lambda x: x % (x - x),
    "divmod": lambda x: divmod(x, 0.0)[0],
    "power": lambda x: (x - x) ** -1,
    "power of a constant": lambda x: 0.0 ** (x - 1),
    "overflow": lambda x: (x * 1e300) ** 2,
    "overflow of a constant": lambda x: 1e300 ** (4 * x),
    "of a function of math": lambda x: 1 / math.sin(x - x),
    "of an element": lambda x: 1.0 / float(np.stack([x, x])[0] - x),
    "item": lambda x: 1.0 / (np.stack([x, x]) - x).item(0),
    "tolist": lambda x: 1.0 / (np.stack([x, x]) - x).tolist()[0],
}
RUNS = {
    "grad": lambda f, x: grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (1.0,)),
    "linearize": lambda f, x: linearize(f, x),
    "reverse over reverse": lambda f, x: grad(grad(f))(x),
    "reverse over forward": lambda f, x: grad(lambda x: jvp(f, (x,), (1.0,))[1])(x),
    "forward over reverse": lambda f, x: jvp(grad(f), (x,), (1.0,)),
    "hessian": lambda f, x: hessian(f)(x),
    "in no_grad": lambda f, x: grad(lambda x: _without(f, x))(x),
    "watched": lambda f, x: _watched(f, x),
}


def _without(f, x):
    with no_grad():
        return f(x) + 0.0 * x


def _watched(f, x):
    with debug_nans():
        return grad(f)(x)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", RAISING)
def test_python_errors_are_raised(name, run):
    with pytest.raises(ArithmeticError) as plain:
        RAISING[name](0.5)
    with pytest.raises(type(plain.value)):
        RUNS[run](RAISING[name], 0.5)


CAUGHT = {
    "quotient": lambda x: 1 / (x - 2),
    "power": lambda x: (x - 2) ** -1.5,
    "logarithm": lambda x: math.log(x - 2),
    "overflow": lambda x: math.exp((x - 2) * 1e300 + 800),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_caught_python_errors_are_raised(name):
    def f(x):
        try:
            return CAUGHT[name](x)
        except (ArithmeticError, ValueError):
            return 3.0 * x**2

    assert value_and_grad(f)(2.0) == (12.0, 12.0)
    assert grad(grad(f))(2.0) == 6.0
    assert jvp(f, (2.0,), (1.0,))[1] == 12.0


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: 1 / (x - x),
        lambda x: fnp.divide(x, 0.0),
        lambda x: fnp.divide(1, x - x),
        lambda x: fnp.floor_divide(x, 0.0),
        lambda x: fnp.remainder(x, 0.0),
        lambda x: fnp.power(x - x, -1.0),
        lambda x: fnp.power(-x, 0.5),
    ],
)
def test_numpy_scalars_and_functions_do_not_raise(f):
    x = np.float64(0.5)
    for of in (x, 0.5) if f(0.5 * np.ones(())).shape == () and "fnp" in f.__code__.co_names else (x,):
        with np.errstate(all="ignore"):
            value, _ = value_and_grad(f)(of)
            np.testing.assert_equal(float(value), float(f(x)))
            np.testing.assert_equal(float(jvp(f, (of,), (1.0,))[0]), float(f(x)))


def test_derivatives_do_not_raise():
    with np.errstate(all="ignore"):
        assert grad(lambda x: x**0.5)(0.0) == np.inf
        assert grad(grad(lambda x: x**1.5))(0.0) == np.inf
        assert grad(grad(lambda x: x**0.5))(0.0) == -np.inf
        assert jvp(grad(lambda x: x**0.5), (0.0,), (1.0,))[1] == -np.inf
        assert hessian(lambda x: math.sqrt(x) + 0.0)(0.0) == -np.inf


@pytest.mark.parametrize("power", [1.5, 1 / 3, -0.5])
def test_powers_of_negative_numbers_are_complex(power):
    def f(x):
        z = (x - 3.0) ** power
        return z.real + 2.0 * z.imag

    assert value_and_grad(f)(1.0)[0] == f(1.0)
    slope, bend = [differences(lambda x, g=g: g(float(x)), 1.0, 1e-6) for g in (f, grad(f))]
    np.testing.assert_allclose(grad(f)(1.0), slope, rtol=1e-7)
    np.testing.assert_allclose(jvp(f, (1.0,), (1.0,))[1], slope, rtol=1e-7)
    np.testing.assert_allclose(grad(grad(f))(1.0), bend, rtol=1e-7)
    np.testing.assert_allclose(jvp(grad(f), (1.0,), (1.0,))[1], bend, rtol=1e-7)


def test_second_derivatives_of_powers_with_a_complex_exponent():
    x, z = np.array([1.0, 2.5]), 1.0 + 2.0j

    def slopes(x, z):
        return vjp(lambda x, z: x**z, x, z)[1](np.array([1.0 + 2.0j, 0.3j]))

    for i, moved in enumerate(jvp(slopes, (x, z), (x, 1.0 + 0.0j))[1]):
        near = [slopes(x + h * x, z + h)[i] for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(moved, (near[0] - near[1]) / 2e-5, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", ["truediv", "floordiv", "mod", "pow", "add", "sub", "mul"])
def test_results_match_python_exactly(name):
    of_two = getattr(operator, name)
    rng = np.random.default_rng(3)
    for x, y in rng.uniform(0.1, 9.0, (50, 2)).tolist():
        for f in (of_two, lambda x, y: of_two(x, 3), lambda x, y: of_two(7, y)):
            value, _ = vjp(f, x, y)
            assert type(value) is float
            assert value == f(x, y)
            assert jvp(f, (x, y), (1.0, 1.0))[0] == f(x, y)


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_return_python_bools(name):
    found = []

    def f(x, other):
        found.extend([getattr(operator, name)(x, other), getattr(operator, name)(other, x * 1.0)])
        return x * 1.0

    for transform in (grad, lambda f: grad(grad(f)), lambda f: lambda x, y: jvp(lambda x: f(x, y), (x,), (1.0,))):
        transform(f)(2.0, 1.5)
    assert {type(x) for x in found} == {bool}
    found.clear()
    grad(f)(2.0, np.float64(1.5))
    assert {type(x) for x in found} == {np.bool_}


def test_comparison_matches_case_true():
    def f(x):
        match x > 1.0:
            case True:
                return x * x
            case _:
                return 0.0 * x

    assert grad(f)(2.0) == 4.0


def test_math_functions_match_python_exactly():
    def f(x):
        y = math.exp(math.sin(x)) / math.sqrt(x)
        kinds.append(isinstance(y, float))
        return y**1.7

    kinds = []
    for x in np.random.default_rng(4).uniform(0.1, 9.0, 50).tolist():
        assert value_and_grad(f)(x)[0] == f(x)
    assert all(kinds)


def test_error_leaves_no_state():
    f = lambda x: 1 / (x - x)
    for block in (debug_nans, no_grad):
        with pytest.raises(ZeroDivisionError), block():
            grad(f)(1.0)
    assert grad(lambda x: x * x)(3.0) == 6.0


OF_NUMPY = {
    "asarray": np.asarray,
    "array": lambda x: np.array(x, dtype=float),
    "float64": lambda x: np.float64(x),
    "copy": lambda x: np.copy(x),
    "item": lambda x: np.asarray(x)[()],
    "abs": np.abs,
    "add": lambda x: np.add(x, 0.0),
    "subtract": lambda x: np.subtract(0.0, x),
    "multiply": lambda x: np.multiply(2.0, x),
    "negative": np.negative,
    "sin": np.sin,
    "sum": np.sum,
    "funcgrad's add": lambda x: fnp.add(0.0, x),
    "funcgrad's abs": lambda x: fnp.abs(x),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_results_of_numpy_functions_are_numpy_scalars(name):
    def f(x):
        with np.errstate(all="ignore"):
            return 1.0 / OF_NUMPY[name](x) + (OF_NUMPY[name](x) - 1.0) ** 0.5

    def value(run):
        with np.errstate(all="ignore"):
            return float(run(0.0))

    np.testing.assert_equal(value(lambda x: vjp(f, x)[0]), value(f))
    np.testing.assert_equal(value(lambda x: jvp(f, (x,), (1.0,))[0]), value(f))
    np.testing.assert_equal(value(lambda x: vjp(lambda x: f(x) + 0.0 * math.sin(x), x)[0]), value(f))


@pytest.mark.parametrize(
    ("name", "ours"), [("erf", "erf"), ("erfc", "erfc"), ("gamma", "gamma"), ("lgamma", "gammaln")]
)
def test_math_functions_run_once(name, ours, monkeypatch):
    f = lambda x: getattr(math, name)(x)
    want = grad(f)(0.5)
    calls, special = [], importlib.import_module("funcgrad.scipy.special")
    computed = getattr(special, ours)
    monkeypatch.setattr(special, ours, lambda x: calls.append(x) or computed(x))
    assert grad(f)(0.5) == want
    assert len(calls) == 1
