"""Code that asks for types by ``type(x)``, as packages do to check arguments: it gets the types of plain values."""

import numbers
import sys
from types import ModuleType

import numpy as np
import pytest

from funcgrad import as_written, grad, hessian, jvp, vmap
from funcgrad.interop import jit
from funcgrad.numpy_code.reachable import compares_types

KINDS = (int, float)


def stored(x):
    kind = type(x)
    return x * 2 if kind is float else x * 3


def checked(coordinates):
    for value in coordinates.values():
        if not issubclass(type(value), numbers.Real) or isinstance(value, bool):
            raise TypeError("a coordinate must be a number")
    return coordinates["a"] * coordinates["b"]


COMPARISONS = {
    "is": lambda x: x * 2 if type(x) is float else x * 3,
    "is not": lambda x: x * 3 if type(x) is not float else x * 2,
    "equals": lambda x: x * 2 if type(x) == float else x * 3,  # noqa: E721
    "in a tuple": lambda x: x * 2 if type(x) in (int, float) else x * 3,
    "in a global tuple": lambda x: x * 2 if type(x) in KINDS else x * 3,
    "issubclass": lambda x: x * 2 if issubclass(type(x), numbers.Real) else x * 3,
    "issubclass of several": lambda x: x * 2 if issubclass(type(x), (int, float)) else x * 3,
    "name": lambda x: x * 2 if type(x).__name__ == "float" else x * 3,
    "each": lambda x: sum([y * 2 if type(y) is float else y * 3 for y in (x, 1.0)]),
    "in a variable": stored,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_numbers_take_the_branch_of_their_type(name):
    f = COMPARISONS[name]
    assert grad(f)(0.5) == 2.0
    assert jvp(f, (0.5,), (1.0,))[1] == 2.0
    assert hessian(lambda x: f(x) ** 2)(0.5) == 8.0
    with as_written():
        assert grad(f)(0.5) == 3.0  # the type is that of a traced value


def of_array(x):
    return np.sum(x * 2 if type(x) is np.ndarray else x * 3)


def of_element(x):
    return x[0] * 2 if type(x[0]) == np.float64 else x[0] * 3  # noqa: E721


@pytest.mark.parametrize(("f", "want"), [(of_array, [2.0, 2.0]), (of_element, [2.0, 0.0])])
def test_elements_and_arrays_take_the_branch_of_their_type(f, want):
    np.testing.assert_array_equal(grad(f)(np.ones(2)), want)
    np.testing.assert_array_equal(vmap(grad(f))(np.ones((3, 2))), [want] * 3)
    np.testing.assert_array_equal(jit(grad(f), backend="numpy")(np.ones(2)), want)


def test_a_check_of_arguments_by_their_types():
    f = lambda x: checked({"a": x[0], "b": x[1] + 1})
    np.testing.assert_array_equal(grad(f)(np.array([2.0, 3.0])), [4.0, 2.0])
    with pytest.raises(TypeError, match="a coordinate must be a number"):
        grad(lambda x: checked({"a": x, "b": x}))(np.ones(2))


def test_a_check_in_a_module_that_the_function_imports(monkeypatch):
    package = ModuleType("package_of_points")
    exec("def norm(x):\n    if type(x) is not float: raise TypeError('number')\n    return x * x", vars(package))
    monkeypatch.setitem(sys.modules, "package_of_points", package)

    def by_module(x):
        import package_of_points

        return package_of_points.norm(x)

    def by_name(x):
        from package_of_points import norm

        return norm(x)

    assert grad(by_module)(2.0) == grad(by_name)(2.0) == 4.0


class Point:
    def __init__(self, x):
        self.x = x

    def moved(self):
        return type(self)(self.x + 1.0)

    def named(self):
        return type(self).__name__ == "Point" and 1 in [1]


OTHERS = [
    Point.moved,
    Point.named,
    lambda x: type(x)(1.0),
    lambda x, y: type(x) is type(y),
    lambda x: float(type(x).start) in (1.0, 2.0),
    lambda x: type("Made", (), {"a": x}),
]


def test_which_codes_compare_types():
    assert all(compares_types(f.__code__) for f in COMPARISONS.values())
    assert not any(compares_types(f.__code__) for f in OTHERS)
    assert compares_types(checked.__code__)
