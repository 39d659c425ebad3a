"""Operators between traced values and objects that define operators: the object's are called, as with ndarrays."""

import operator
from array import array
from collections import UserList, deque
from typing import NamedTuple

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import as_written, check_grads, grad, hessian, jacfwd, jvp, no_grad, value_and_grad, vjp, vmap
from funcgrad.errors import InputError

X = np.array([0.5, 1.5, 2.5])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge]


class Number:
    """A number with operators of its own on either side."""

    def __init__(self, number):
        self.number = number


class Apart(Number):
    """A number that takes no part in NumPy's ufuncs."""

    __array_ufunc__ = None


class Measured(Number):
    """A number that implements NumPy's ufuncs itself, as pint's quantities do."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        return type(self)(getattr(ufunc, method)(*[getattr(x, "number", x) for x in inputs], **kwargs))


class Preferred(Number):
    """A number that NumPy can convert to an array, and whose operators have priority."""

    __array_priority__ = 10.0

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("nobody asked for an array")


def _left(operation):
    return lambda self, other: type(self)(operation(self.number, other))


def _right(operation):
    return lambda self, other: type(self)(operation(other, self.number))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _operation = getattr(operator, _name)
    setattr(Number, f"__{_name}__", _left(_operation))
    setattr(Number, f"__r{_name}__", _right(_operation))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _left(getattr(operator, _name)))

KINDS = [Apart, Measured, Preferred]


@pytest.mark.parametrize("rebuilt", [True, False])
@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_operand_operators_are_called(kind, operation, rebuilt):
    constant, plain = kind(1.25), lambda x: operation(x, 1.25).sum()
    right = lambda x: operation(x, constant).number.sum()
    left = lambda x: operation(constant, x).number.sum()
    run = (lambda f: f) if rebuilt else as_written()
    assert type(operation(X, constant)) is kind  # the class that NumPy gives
    np.testing.assert_array_equal(run(grad(right))(X), grad(plain)(X))
    np.testing.assert_array_equal(run(hessian(right))(X), hessian(plain)(X))
    np.testing.assert_array_equal(run(jacfwd(right))(X), jacfwd(plain)(X))
    np.testing.assert_array_equal(run(vmap(grad(right)))(X[:, None]), vmap(grad(plain))(X[:, None]))
    np.testing.assert_array_equal(run(grad(left))(X), grad(lambda x: operation(1.25, x).sum())(X))


@pytest.mark.parametrize("operation", COMPARISONS)
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_operand_comparisons_are_called(kind, operation):
    chosen = grad(lambda x: (x * operation(x, kind(1.5)).number).sum())(X)
    np.testing.assert_array_equal(chosen, operation(X, 1.5).astype(float))


def test_ufuncs_match_operators_on_foreign_operands():
    measured = Measured(np.array([2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(grad(lambda x: np.multiply(x, measured).number.sum())(X), measured.number)
    np.testing.assert_array_equal(grad(lambda x: fnp.multiply(measured, x).number.sum())(X), measured.number)


def test_buffer_with_foreign_operand():
    def f(x):
        made = fnp.ones(3) * Measured(2.0)
        made = made.number
        made[0] = x[1]
        return (made * x).sum()

    np.testing.assert_array_equal(grad(f)(X), [1.5, 0.5 + 2.0, 2.0])


def test_in_place_operator_rebinds_to_foreign_result():
    def f(x):
        y = x * 2.0
        y *= Measured(3.0)
        return y.number.sum()

    np.testing.assert_array_equal(grad(f)(X), [6.0, 6.0, 6.0])


class Knowing:
    """An object whose operators accept only objects of its own class."""

    def __rmul__(self, other):
        return NotImplemented

    __mul__ = __rmul__


class Failing:
    """An object whose operator raises."""

    def __rmul__(self, other):
        raise ZeroDivisionError("its own")


class Named:
    """An object that NumPy can convert to an array, without priority for its operators."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)

    def __rmul__(self, other):
        return other


def test_operand_with_array_method_is_converted():
    np.testing.assert_array_equal(grad(lambda x: (x * Named() + np.exp(Named())).sum())(X), np.arange(3.0))
    np.testing.assert_array_equal(grad(lambda x: (Named() + x) @ Named())(X), np.arange(3.0))


@pytest.mark.parametrize(
    "operand",
    [Knowing(), object(), "text", {1.0}, None],
    ids=lambda x: type(x).__name__,
)
def test_unsupported_operand_raises(operand):
    shown = "None" if operand is None else f"{type(operand).__name__} "
    with pytest.raises(InputError, match=rf"multiply: argument 1 is not .* {shown}.* Pass arrays"):
        grad(lambda x: x * operand)(X)


def test_unsupported_left_operand_raises():
    with pytest.raises(InputError, match="is not an array or a number, got Knowing"):
        grad(lambda x: Knowing() * x)(X)


def test_operand_errors_pass_through():
    with pytest.raises(ZeroDivisionError, match="its own"):
        grad(lambda x: x * Failing())(X)


def test_masked_constant_masks_the_result():
    mask = np.ma.array(X, mask=[0, 1, 0])
    assert grad(lambda x: (x * mask).sum())(X).tolist() == [X[0], 0.0, X[2]]


@pytest.mark.parametrize("sides", [operator.mul, lambda x, y: y * x])
def test_numpy_series_operator_is_rebuilt(sides):
    series = np.polynomial.Chebyshev([1.0, 2.0])
    np.testing.assert_array_equal(grad(lambda x: sides(x[0], series)(2.0))(X), [5.0, 0.0, 0.0])


class Point(NamedTuple):
    x: float
    y: float


def written(x):
    out = fnp.zeros((2, 2))
    out[0], out[1] = Point(x[0], 2.0 * x[1]), deque([x[0] ** 2, x[1]])
    return out


LISTS = {
    "right": lambda x: (x * [x[0], 1.0]).sum(),
    "left": lambda x: ([x[0], 1.0] - x).prod(),
    "a tuple": lambda x: (x / (2.0, x[1] ** 2)).sum(),
    "matmul": lambda x: x @ [[x[0], 1.0], [2.0, x[1]]] @ [1.0, x[0]],
    "a ufunc": lambda x: fnp.maximum([x[0] ** 2, 3.0], x).sum(),
    "of NumPy's": lambda x: np.multiply(x, [x[0], 1.0]).sum(),
    "of NumPy's arrays": lambda x: (np.ones(2) * [x[0], x[1] ** 3]).sum(),
    "where": lambda x: fnp.where(x > 1.0, [x[0], 2.0], (3.0, x[1] ** 2)).sum(),
    "named": lambda x: (x * Point(x[0], 1.0)).sum(),
    "an array of named ones": lambda x: np.linalg.det(np.array([Point(*x), Point(1.0, x[0])])),
    "a deque": lambda x: np.mean(deque([x[0], x[1] ** 2], maxlen=2)) + (x * deque([x[1], 2.0])).sum(),
    "a deque of arrays": lambda x: np.concatenate(deque([x, x[:1] ** 3])).sum(),
    "written": lambda x: written(x).prod(),
}


@pytest.mark.parametrize("f", LISTS.values(), ids=LISTS)
def test_lists_of_tracers_are_operands(f):
    check_grads(f, (np.array([1.5, 0.7]),), order=2)
    assert vmap(f)(np.array([[1.5, 0.7]]))[0] == pytest.approx(f(np.array([1.5, 0.7])))


def test_no_condition_does_not_hold():
    assert grad(lambda x: np.where(None, x, 3.0 * x))(2.0) == 3.0


def test_lists_of_nonnumbers_raise():
    with pytest.raises(TypeError, match="not an array or a number, got str"):
        grad(lambda x: (x * ["a", x[0]]).sum())(np.ones(2))


NUMBERS = (2, 1.5, 1 + 2j, True, np.float32(1.5), np.float16(1.5), np.int32(2), np.bool_(True), np.complex128(1 + 2j))


@pytest.mark.parametrize("y", [*NUMBERS, [1.5, 2.0], np.array(1.5), np.array(2)], ids=repr)
@pytest.mark.parametrize("symbol", ["iadd", "isub", "imul", "itruediv", "ipow"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_in_place_operator_updates_views(dtype, symbol, y):
    def written(x):
        whole = fnp.array(x) * 2 if type(x) is np.ndarray else 2 * x  # inside of a transform both can be written to
        view = whole[:]
        whole = getattr(operator, symbol)(whole, y)
        return view

    points = np.array([1.25, 0.75], dtype)
    try:
        plain = written(points)
    except TypeError:  # the casting rules of NumPy refuse
        with pytest.raises(TypeError):
            vjp(written, points)
        return
    *_, seen = vjp(lambda x: (fnp.sum(x), (written(x), no_grad(written)(x), written(points))), points, has_aux=True)
    for one in seen:
        np.testing.assert_allclose(one, plain, rtol=1e-6)


@pytest.mark.parametrize("operation", [*ARITHMETIC, *COMPARISONS, np.add, np.maximum, np.dot])
@pytest.mark.parametrize("other", [range(1, 4), array("d", [1.0, 2.0, 3.0])], ids=type)
def test_python_sequences_are_operands(operation, other):
    plain = np.asarray(other)
    for f, g in (
        (lambda x: operation(x, other), lambda x: operation(x, plain)),
        (lambda x: operation(other, x), lambda x: operation(plain, x)),
    ):
        found, want = fnp.sum(f(X) * 1.0), fnp.sum(g(X) * 1.0)
        assert found == want
        np.testing.assert_array_equal(
            grad(lambda x, f=f: fnp.sum(f(x) * x))(X), grad(lambda x, g=g: fnp.sum(g(x) * x))(X)
        )
    for made in (lambda x: x * UserList([x[0], 2.0, x[1]]), lambda x: fnp.where(X > 1.0, x, range(3))):
        check_grads(lambda x, made=made: fnp.sum(made(x) ** 2), (X,), order=2)


class Length:
    """An array with a unit that reads the ``value`` of its operands, as units of measurement do."""

    def __init__(self, value):
        self.value = value

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return Length(getattr(ufunc, method)(*[getattr(x, "value", x) for x in inputs], **kwargs))

    def __mul__(self, other):
        return Length(self.value * getattr(other, "value", other))


def test_tracer_has_no_attributes_of_quantity_classes():
    for f in (lambda x: (Length(70.0) * x).value, lambda x: np.multiply(Length(70.0), x).value):
        assert value_and_grad(f)(0.5) == (35.0, 70.0)
        assert jvp(f, (0.5,), (1.0,)) == (35.0, 70.0)
        np.testing.assert_array_equal(vmap(grad(f))(np.ones(2)), [70.0, 70.0])
    for name in ("value", "val", "primal", "magnitude", "m", "nominal_value", "values", "array"):
        assert grad(lambda x, name=name: x * (1.0 - hasattr(x, name)))(0.5) == 1.0
        assert grad(lambda x, name=name: getattr(x, name, x) * 2.0)(0.5) == 2.0


def test_objects_with_functions_of_their_own():
    class Named:
        def __array_function__(self, func, types, args, kwargs):
            return f"{func.__name__} of {len(args)} arguments"

    assert fnp.where(Named(), Named(), X) == "where of 3 arguments"
