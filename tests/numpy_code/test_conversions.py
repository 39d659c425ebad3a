"""``float``, ``int``, ``complex`` and ``math`` of arrays, and arrays that receive number-like objects."""

import cmath
import collections.abc
import functools
import math
import re
from collections.abc import Iterable as Many
from collections.abc import Sized
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import SupportsIndex

import numpy as np
import pandas as pd
import pytest
from helpers import close, differences

from funcgrad import grad, hessian, jacfwd, jvp, value_and_grad, vmap
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.conversions import with_writable_results

ASKED = {
    "float": float,
    "int": int,
    "complex": complex,
    "math.sin": math.sin,
    "math.floor": math.floor,
    "math.log": lambda x: math.log(x, 2.0),
    "math.atan2": lambda x: math.atan2(1.0, x),
    "cmath.exp": lambda x: abs(cmath.exp(x)),
}


@pytest.mark.parametrize("name", ASKED)
def test_conversion_of_array_raises_type_error(name):
    """Check that conversions raise TypeError, by which programs recognise arrays."""

    def f(x):
        math.sin(x[0])  # this makes the function be rebuilt
        try:
            found = ASKED[name](x)
        except TypeError:
            found = 3.0 * x.sum()
        return found

    x = np.array([1.5, 2.0])
    assert value_and_grad(f)(x)[0] == f(x) == 10.5
    assert grad(f)(x).tolist() == [3.0, 3.0]
    assert vmap(grad(f))(np.stack([x, x])).tolist() == [[3.0, 3.0]] * 2


COMPLEX = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "log",
    "log10",
    "phase",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_cmath_imported_by_name(name):
    """Check functions that code holds under a name of its own, as after ``from cmath import exp``."""
    imported = getattr(cmath, name)

    def f(x):
        z = imported(complex(x, 0.5) * 1j)
        return z.real + 2.0 * z.imag

    x = 0.3
    np.testing.assert_allclose(grad(f)(x), differences(f, x), rtol=1e-7)
    np.testing.assert_allclose(grad(grad(f))(x), differences(grad(f), x), rtol=1e-7)


SHOW, HASH = float.__repr__, float.__hash__
TIMES, AFTER, LOWER, POWER = float.__mul__, float.__rsub__, float.__lt__, (float.__pow__, float.__neg__)


def test_methods_of_float():
    """Check methods that code holds under a name of its own, with a traced number on either side."""

    def f(x):
        found = TIMES(x, 2.0) * TIMES(3.0, x) + AFTER(1.0, math.exp(x)) * AFTER(x, 4.0) + POWER[0](x, 3)
        assert TIMES(2.0, 3.0) == 6.0
        assert LOWER(x, 5.0)
        assert (SHOW(2.5), HASH(2.0)) == ("2.5", 2)
        return POWER[1](found)

    np.testing.assert_allclose(grad(f)(0.7), differences(f, 0.7), rtol=1e-7)
    np.testing.assert_allclose(grad(grad(f))(0.7), differences(grad(f), 0.7), rtol=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.array([0.7, 0.2])), [grad(f)(0.7), grad(f)(0.2)], rtol=1e-12)


class Shared:
    """Quaternion-like class, made from a number, from several numbers, or from another object of the class."""

    def __init__(self, given):
        try:
            self.parts = np.array([float(given), 0.0])
        except TypeError:
            self.parts = np.array([float(part) for part in given])


def test_classes_that_test_for_numbers_by_conversion():
    def f(x):
        return (Shared(x).parts * Shared(x[0]).parts).sum() + math.fsum(x)

    np.testing.assert_allclose(grad(f)(np.array([2.0, 3.0])), [5.0, 1.0])


class Number:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)


class Cell:
    """Object with ``__array__`` that is not an array."""

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.rows)


GIVEN = {
    "fraction": (lambda x: Fraction(1, 4), 0.25),
    "method of a class": (lambda x: Fraction.from_float(0.25), 0.25),
    "decimal": (lambda x: Decimal("0.25"), 0.25),
    "own": (lambda x: Number(0.25), 0.25),
    "own traced": (lambda x: Number(x * x), None),
    "array": (lambda x: Cell(0.25), 0.25),
    "array traced": (lambda x: Cell(x * x), None),
}


@pytest.mark.parametrize("x", [0.7, np.array([0.7, 1.2])])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * Fraction(1, 3) + Fraction(2, 7) / x - Fraction(1, 9) ** x,
        lambda x: np.add(x, Fraction(1, 3)) ** Fraction(3, 2) % Fraction(1, 7),
        lambda x: x * (x < Fraction(3, 4)),
        lambda x: x * np.array([Fraction(1, 3), 2]) @ np.array([Fraction(1, 7), Fraction(2, 7)]),
    ],
)
def test_fractions_are_constants(fun, x):
    """NumPy calls the operators of fractions, which take them for floats."""
    total = lambda x: np.sum(fun(x))
    close(grad(total)(x), differences(lambda x: float(total(x)), x), rtol=1e-7)


def written(x, value):
    made = np.zeros(3)
    made[1] = x
    made[0] = value
    return made


def written_all(x, value):
    made = np.zeros(3)
    made[2] = x
    made[:] = value
    return made


def written_list(x, value):
    made = np.zeros(3)
    made[1] = x
    made[[0, 2]] = [value, value]
    return made


WAYS = {
    "element": written,
    "all": written_all,
    "list": written_list,
    "array": lambda x, value: np.array([x, value], dtype=float),
    "full": lambda x, value: np.full(3, value, dtype=float) * x,
}


@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name in GIVEN for way in WAYS if "array" not in name or way in ("all", "full")],
)
def test_float_arrays_accept_numberlike_objects(name, way):
    given, number = GIVEN[name]

    def f(x):
        return WAYS[way](x, given(x)).dot(np.arange(2.0, 5.0)[: len(WAYS[way](x, given(x)))]) * x

    def plain(x):
        return WAYS[way](x, x * x if number is None else number).dot(np.arange(2.0, 5.0)[: len(WAYS[way](x, 0.0))]) * x

    assert value_and_grad(f)(1.5) == value_and_grad(plain)(1.5)
    assert f(1.5) == plain(1.5)
    np.testing.assert_allclose(hessian(f)(1.5), hessian(plain)(1.5))
    np.testing.assert_allclose(vmap(grad(f))(np.array([1.5, 2.0])), vmap(grad(plain))(np.array([1.5, 2.0])))


def test_nonnumeric_objects_raise():
    for given, error in ((object(), "only numbers can be written"), ("half", "only numbers can be written")):
        with pytest.raises(TypeError, match=error):
            grad(lambda x, given=given: written(x, given).sum())(1.0)


def test_numeric_strings_are_written_as_numbers():
    def f(x):
        a, n = np.zeros(4), np.zeros(2, int)
        a[0], a[1], a[2:] = "1.5", x, b"2"
        n[0], n[1:] = "3", ["4"]
        return (a**2).sum() * x + n.sum()

    assert value_and_grad(f)(1.5) == (f(1.5), 3 * 1.5**2 + 1.5**2 + 8.0)
    with pytest.raises(ConversionError, match="shows a traced number"):
        grad(lambda x: written(x, f"{x:.2f}").sum() * math.sin(x))(1.25)


def test_base_of_views():
    def f(x):
        y, z = x * 2.0, np.zeros(4)
        part = z[1:3]
        part[:] = x[:2]
        assert part.base is z
        assert y.base is None
        assert y[1:][:2].base is y
        return (z**2).sum() + part.base[2] * y[1:].base[0] * float(y[0])

    X = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(grad(f)(X), differences(f, X), rtol=1e-8)


def test_date_formats_are_plain_strings():
    """Check that date formats are plain strings, as compiled code of pandas requires."""
    days = pd.date_range("2020-06-01", periods=3)

    def f(x):
        numbers = days.strftime("%j").astype(float).to_numpy()
        month = pd.to_datetime("2020-03", format="%Y-%m").month
        said = "%.1f %%" % x  # noqa: UP031
        return math.sin(x) * numbers.sum() * month * len(said)

    np.testing.assert_allclose(grad(f)(0.5), f(0.5) / np.tan(0.5))


def imported_here(x):
    import numpy as np
    import pandas as pd
    import xarray as xr

    rows = np.array([x, np.float64(math.sin(x)), 2.0])
    table = pd.DataFrame({"a": rows, "b": rows**2})
    return float((pd.Series(rows) * 2.0).sum() + table.prod().sum() + (xr.DataArray(rows, dims="t") ** 2).sum())


def with_modules():
    import pandas as pd

    def series(rows):
        return pd.Series(rows, index=list("abc"))

    return lambda x: (0.5 * series(np.array([x, x * x, 1.0]))).prod()


@pytest.mark.parametrize("fun", [imported_here, with_modules()])
def test_classes_from_modules_imported_in_function(fun):
    np.testing.assert_allclose(grad(fun)(0.7), (fun(0.7 + 1e-6) - fun(0.7 - 1e-6)) / 2e-6, rtol=1e-6)
    np.testing.assert_allclose(hessian(fun)(0.7), (grad(fun)(0.7 + 1e-6) - grad(fun)(0.7 - 1e-6)) / 2e-6, rtol=1e-6)


#: Functions of math and cmath, of which the last three raise an error that the program catches.
OF_SINGLE = {
    "sqrt": lambda x: math.sqrt(x),
    "atan2": lambda x: math.atan2(x, np.float32(2.0)),
    "cmath.exp": lambda x: cmath.exp(x * np.complex64(1j)).imag,
    "fsum": lambda x: math.fsum([x * np.float16(60_000.0)] * 20) / 6e4,
    "dist": lambda x: math.dist([x * np.float16(60_000.0)] * 4, [0.0] * 4) / 6e4,
    "math domain error": lambda x: math.log(x - 1.0),
    "math domain error of cmath": lambda x: cmath.log(complex(0.0 * x, 0.0)).real,
    "math range error": lambda x: math.exp(x * 10_000.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("name", OF_SINGLE)
def test_functions_of_math_compute_in_double_precision(name, dtype):
    """Check values, errors and derivatives of functions of ``math`` for elements of arrays of each precision."""

    def f(x):
        try:
            return OF_SINGLE[name](x[0])
        except (ValueError, OverflowError):
            return math.cos(2.0 * x[0])

    x = np.array([0.3], dtype)
    value, slope = value_and_grad(f)(x)
    assert value == f(x)
    assert slope.dtype == dtype
    exact = grad(f)(x.astype(np.float64))
    np.testing.assert_allclose(slope, exact, rtol=2e-3 if dtype == np.float16 else 1e-6)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x])), [exact] * 2, rtol=2e-3 if dtype == np.float16 else 1e-6)


OF_TWO_NUMBERS = {
    "log": lambda x, y: math.log(x) * y,
    "log of a base": lambda x, y: math.log(x, y),
    "atan2": lambda x, y: math.atan2(x, y) + math.atan2(1.5, x) - math.atan2(y, 2),
    "pow": lambda x, y: math.pow(x, y) + math.pow(2, x) * math.pow(y, 3),
    "fmod": lambda x, y: math.fmod(5.0 * x, y) * math.fmod(7.0, x),
    "copysign": lambda x, y: math.copysign(x * y, -y) * math.copysign(2.0, -x),
    "hypot": lambda x, y: math.hypot(x, y) * math.hypot(x, 2.0, y),
}


@pytest.mark.parametrize("start", [0.8, np.float64(0.8)], ids=["float", "float64"])
@pytest.mark.parametrize("name", OF_TWO_NUMBERS)
def test_functions_of_two_numbers(name, start):
    fun = OF_TWO_NUMBERS[name]
    value, slopes = value_and_grad(fun, (0, 1))(start, 1.7)
    assert value == fun(0.8, 1.7)
    near = [((fun(0.8 + h, 1.7 + k) - fun(0.8 - h, 1.7 - k)) / 2e-6) for h, k in ((1e-6, 0.0), (0.0, 1e-6))]
    np.testing.assert_allclose(slopes, near, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose([jacfwd(fun, i)(start, 1.7) for i in (0, 1)], slopes, rtol=1e-14)
    both = hessian(fun, (0, 1))(start, 1.7)
    near = [
        [(grad(fun, i)(0.8 + h, 1.7 + k) - grad(fun, i)(0.8 - h, 1.7 - k)) / 2e-6 for h, k in ((1e-6, 0), (0, 1e-6))]
        for i in (0, 1)
    ]
    np.testing.assert_allclose(both, near, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(grad(lambda y: grad(fun)(start, y))(1.7), both[0][1], rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(fun, (0, 1)))(np.full(2, 0.8), np.full(2, 1.7)), np.transpose([slopes] * 2))


@pytest.mark.parametrize(
    "fun", [lambda x: math.pow(x, 0.5), lambda x: math.log(x), lambda x: math.fmod(1.0, x + 1), lambda x: math.log()]
)
def test_errors_of_functions_of_two_numbers_are_those_of_python(fun):
    with pytest.raises((ValueError, TypeError)) as plain:
        fun(-1.0)
    with pytest.raises(type(plain.value), match=re.escape(str(plain.value))):
        grad(fun)(-1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_numbers_taken_out_have_double_precision(dtype):
    """Check that ``item`` and ``tolist`` of lower precision return Python's numbers, which do not overflow at 1e39."""

    def f(x):
        first, second = x.tolist()
        return abs(x[0].item() * 1e60 * first) / 1e60 + abs(x.item(1) * second) * float(np.ones(1)[0])

    x = np.array([0.5, 2.0], dtype)
    value, slope = value_and_grad(f)(x)
    assert value == f(x)
    assert slope.dtype == dtype
    np.testing.assert_allclose(slope, [1.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x])), [slope, slope], rtol=1e-6)


#: Programs with ``complex`` of parts, and what they return for x = [1e-3, 2.0].
OF_PARTS = {
    "both": (lambda x: complex(x[0], x[1]), 1e-3 + 2j),
    "by name": (lambda x: complex(imag=x[0], real=x[1]), 2.0 + 1e-3j),
    "imaginary alone": (lambda x: complex(imag=x[1]) + complex(real=1.0), 1.0 + 2j),
    "real by name": (lambda x: complex(real=x[1]), 2.0 + 0j),
    "complex part": (lambda x: complex(x[1], complex(0.0, x[0])), 2.0 - 1e-3 + 0j),
}


@pytest.mark.filterwarnings("ignore:complex.. argument:DeprecationWarning")  # since Python 3.14, of the complex part
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OF_PARTS)
def test_complex_of_parts(name, dtype):
    """Check ``complex`` of one or two numbers, by name too; numbers near 1e120 overflow in single precision."""
    make, expected = OF_PARTS[name]

    def f(x):
        z = make(x) * 1e60
        return (abs(z) ** 2 + z.real * 1e60) / 1e120

    x = np.array([1e-3, 2.0], dtype)
    value, slope = value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(value, abs(expected) ** 2 + expected.real, rtol=1e-6)
    np.testing.assert_allclose(slope, differences(f, x.astype(np.float64)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x])), [slope, slope], rtol=1e-6)


def test_a_function_that_returns_its_argument_does_so():
    x, found = np.ones(2), []
    grad(lambda zero: found.append(with_writable_results(lambda a: a)(x)) or zero)(0.0)
    assert found[0] is x


def of_imaginary_parts_written(v):
    z = np.ones(2, complex)
    z.real[0] = v
    z.imag[0] = -0.0
    return np.sqrt(z)[0]


#: Programs at a branch cut, which a zero with its sign chooses a side of.
AT_CUTS = {
    **{
        f"cmath.{name}": lambda v, name=name: getattr(cmath, name)(complex(v, -0.0))
        for name in ("sqrt", "log", "log10", "acos", "asin", "atanh", "acosh", "phase")
    },
    "numpy": lambda v: np.sqrt(complex(v, -0.0)),
    "numpy.emath": lambda v: np.emath.log(complex(v, -0.0)),
    "power": lambda v: complex(v, -0.0) ** 1.5,
    "rect": lambda v: cmath.sqrt(cmath.rect(v, -0.0) * 1.0),
    "array": lambda v: np.log(np.array([complex(v, -0.0), 1.0])).sum(),
    "writes": of_imaginary_parts_written,
}


@pytest.mark.parametrize("name", AT_CUTS)
def test_sign_of_zero_imaginary_part(name):
    f = lambda v: (lambda z: z.real + 2.0 * z.imag)(AT_CUTS[name](v))
    slope = differences(f, -4.0)
    value, found = value_and_grad(f)(-4.0)
    np.testing.assert_allclose(value, f(-4.0), rtol=1e-14)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jvp(f, (-4.0,), (1.0,)), [f(-4.0), slope], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(vmap(f)(np.array([-4.0, -3.0])), [f(-4.0), f(-3.0)], rtol=1e-14)
    np.testing.assert_allclose(hessian(f)(-4.0), differences(grad(f), -4.0), rtol=1e-6, atol=1e-8)


def test_complex_with_infinite_part():
    assert value_and_grad(lambda v: complex(v, math.inf).real)(2.0) == (2.0, 1.0)


def arrays_only(x):
    if type(x) != np.ndarray:  # noqa: E721
        raise TypeError("the argument must be a numpy ndarray")
    return (x**2).sum()


def test_check_of_the_exact_class():
    assert grad(lambda x: arrays_only(x))(np.ones(2)).tolist() == [2.0, 2.0]


TOTAL, ITEM = np.ndarray.sum, np.ndarray.__getitem__


class Doubling(np.ndarray):
    def __add__(self, other):
        return np.ndarray.__add__(self, other) * 2

    def total(self):
        return np.ndarray.sum(self) + np.ndarray.__getitem__(self, 1)


def by_type(a):
    return type(a).sum(a * math.exp(a[0])) + type(a[1]).__mul__(a[1], math.exp(a[0]))


def by_import(a):
    import numpy

    return numpy.ndarray.sum(a * math.exp(a[0])) + numpy.float64.__mul__(a[0], 2.0)


def into_copy(a):
    made = np.zeros(3)
    np.ndarray.__setitem__(made, 1, a[0] * a[1])
    return np.ndarray.__iadd__(made, a * a).sum()


METHODS_OF_CLASSES = [
    by_type,
    by_import,
    into_copy,
    lambda a: np.ndarray.__matmul__(np.arange(3.0), a * a) + np.ndarray.__rsub__(a, np.ones(3)).prod(),
    lambda a: np.ndarray.dot(a, a) + np.ndarray.mean(a * a, axis=0) + np.ndarray.__getitem__(a, slice(1, 3)).prod(),
    lambda a: functools.reduce(np.ndarray.__mul__, [np.arange(3.0), a, a]).sum() + sum(map(np.ndarray.max, [a, -a])),
    lambda a: sum(map(float.__abs__, a.tolist())) * max(a.tolist(), key=float.__neg__),
    lambda a: float.__rpow__(float(a[0]), 3.0) + float.__divmod__(float(a[1]), 1.0)[1] * int.__mul__(2, int(a[0])),
    lambda a: complex.__mul__(complex(a[0], a[1]), 1j).real + complex.__abs__(complex(a[0], a[1])),
    lambda a: a[0] if float.__mul__(float(a[0]), np.ones(3)) is NotImplemented else a[1],
    lambda a: eval("np.ndarray.sum(a) * float.__mul__(float(a[0]), 2.0)"),
    lambda a: TOTAL(a * a) * ITEM(a, 1) * math.exp(a[2]),
    lambda a: np.asarray(a.view(Doubling) + a * math.exp(a[0])).sum() + float(a.view(Doubling).total()) ** 2,
]


@pytest.mark.parametrize("fun", METHODS_OF_CLASSES)
def test_methods_called_through_their_class(fun):
    """Check methods that code takes from ``float``, ``complex`` and ``ndarray``, by name or by ``type(x)``."""
    x = np.array([1.5, 2.5, -0.5])
    slopes = [differences(lambda t, e=e: fun(x + t * e), 0.0) for e in np.eye(3)]
    value, found = value_and_grad(fun)(x)
    np.testing.assert_allclose(value, fun(x), rtol=1e-14)
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(vmap(grad(fun))(np.array([x, x]))[1], grad(fun)(x), rtol=1e-12)


def test_texts_by_methods_of_float():
    assert grad(lambda x: x * len(float.__repr__(x)) + x * len(float.__str__(x + 0.25)))(1.5) == 7.0


def test_method_of_a_class_in_a_variable_says_how_to_call_it():
    def fun(x, kind=np.ndarray):
        return kind.sum(x * np.ones(2))

    with pytest.raises(TypeError, match="descriptor") as caught:
        grad(fun)(1.0)
    assert "Call it on the object: x.sum(), x + y." in caught.value.__notes__[0]


def asked_by_a_helper(x):
    return sum(x) if hasattr(x, "__iter__") else x * x


class Scaling:
    def by(self, x):
        return max(5.0 * v for v in x) if isinstance(x, collections.abc.Iterable) else x * x


ASKING = [
    asked_by_a_helper,
    lambda x: asked_by_a_helper(x),
    Scaling().by,
    lambda x: x[0] if isinstance(x, (list, Sized)) else x * x,
    lambda x: x * x if getattr(x, "__iter__", None) is None else x[0],
    lambda x: 5.0 * x if isinstance(x, SupportsIndex) else x * x,
]


@pytest.mark.parametrize("fun", ASKING)
def test_number_takes_the_branch_for_numbers_where_code_asks_whether_it_is_iterable(fun):
    for _ in range(3):
        assert grad(fun)(3.0) == 6.0
    assert jvp(fun, (3.0,), (1.0,)) == (9.0, 6.0)
    assert vmap(grad(fun))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert grad(lambda x: fun(x))(3.0) == 6.0


def test_python_number_has_no_items():
    assert grad(lambda x: x[0] if hasattr(x, "__getitem__") else x * x)(3.0) == 6.0


def test_array_takes_the_branch_for_arrays_where_code_asks_whether_it_is_iterable():
    assert grad(asked_by_a_helper)(np.array([3.0, 4.0])).tolist() == [1.0, 1.0]


def test_array_has_no_hash():
    fun = lambda x: 5.0 * x[0] if isinstance(x, collections.abc.Hashable) else x[0] * x[0]
    assert grad(fun)(np.array([3.0, 1.0])).tolist() == [6.0, 0.0]


# ---- classes that other functions call ------------------------------------------------------------------------------

TO_SERIES, TO_FLOAT = partial(pd.Series, index=[3, 4]), functools.partial(float)

CALLED_LATER = {
    "a partial of the program": lambda x: TO_FLOAT(x[0]) * x[1],
    "a partial": lambda x: partial(float)(x[0]) * functools.partial(np.float64)(x[1]),
    "a partial in a loop": lambda x: sum(map(partial(float), x)) ** 2,
    "tables": lambda x: TO_SERIES(x).loc[3] ** 2 + partial(pd.Series)(x).std(),
    "map": lambda x: math.prod(map(np.float64, x)) + sum(map(float, x)),
}


@pytest.mark.parametrize("name", CALLED_LATER)
def test_class_that_a_partial_or_map_calls_takes_traced_numbers(name):
    fun, x = CALLED_LATER[name], np.array([1.5, 2.0])
    np.testing.assert_allclose(grad(fun)(x), differences(fun, x, 1e-5), rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(fun))(np.stack([x, 2 * x]))[1], grad(fun)(2 * x), rtol=1e-12)


def test_partial_stays_a_class():
    def f(x):
        made = partial(float)
        assert isinstance(made, partial)
        return made(x)

    assert grad(f)(2.0) == 1.0


def test_functions_for_ufuncs_are_ufuncs():
    def count(fun):
        return fun.nin if isinstance(fun, np.ufunc) else 7

    def f(x):
        assert [type(fun) is np.ufunc for fun in (np.add, np.sum, math.sin)] == [True, False, False]
        return math.sin(x) * sum(map(count, (np.sin, np.add, np.sum, f)))

    assert grad(f)(0.0) == 1 + 2 + 7 + 7


class Reading:
    """Object with methods for conversions."""

    def __init__(self, x):
        self.x = x

    def __float__(self):
        return self.x * 2.0

    def __complex__(self):
        return self.x * 3j

    def __int__(self):
        return int(self.x) + 4

    def __trunc__(self):
        return 6

    def __floor__(self):
        return self.x * 7.0

    def __ceil__(self):
        return 8


OF_OBJECTS = {
    "float": float,
    "int": int,
    "complex": lambda r: complex(r).imag,
    "float64": np.float64,
    "complex128": lambda r: np.complex128(r).imag,
    "int64": np.int64,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "sin": math.sin,
}


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_numbers_by_methods_of_objects(name):
    def f(x):
        held = np.zeros(1)
        held[0] = x
        return OF_OBJECTS[name](Reading(x)) * held[0]

    value, slope = jvp(f, (1.75,), (1.0,))
    assert value == pytest.approx(f(1.75), rel=1e-15)
    assert slope == pytest.approx(differences(lambda x: float(f(float(x))), 1.75, 1e-3), rel=1e-6)
    assert grad(f)(1.75) == pytest.approx(slope, rel=1e-12)
    assert vmap(f)(np.array([1.75, 1.875])) == pytest.approx([f(1.75), f(1.875)], rel=1e-7)


@pytest.mark.parametrize("fun", [float, int, math.sin])
def test_conversions_of_complex_numbers_raise_type_error(fun):
    def f(x):
        held = np.zeros(1)
        held[0] = x
        with pytest.raises(TypeError):
            fun(complex(held[0], 1.0))
        with pytest.raises(TypeError):
            fun(np.exp(1j * held)[0])
        return held[0]

    assert jvp(f, (2.0,), (1.0,)) == (2.0, 1.0)


def test_text_as_complex_number():
    def f(x):
        return abs(complex(f"{x}") * complex("2.0"))

    assert jvp(f, (-1.5,), (1.0,)) == (3.0, -2.0)


def test_abstract_classes_with_one_method():
    def f(x):
        math.sin(x[0])  # this makes the function be rebuilt
        assert issubclass(list, collections.abc.Iterable)
        assert not issubclass(float, Sized)
        assert Sized.__name__ == "Sized"
        return x[0] * len(str(Many[float]))

    assert grad(f)(np.array([2.0])).tolist() == [len(str(Many[float]))]


def test_conversions_in_code_of_many_names():
    """Check a function with so many global names that the number of the last one needs two bytes."""
    names = {f"number_{i}": 0.5 for i in range(140)}
    exec(f"def f(x):\n    total = {' + '.join(names)}\n    return float(x[0]) * total * complex(x[1], 1.0).real", names)
    assert grad(names["f"])(np.array([2.0, 3.0])).tolist() == [210.0, 140.0]


@pytest.mark.parametrize("dtype", [float, np.float32, complex])
def test_none_beside_traced_numbers_is_nan(dtype):
    def f(x):
        whole = np.zeros(3, dtype)
        whole[:] = [x, None, 2.0 * x]
        pair = np.array([[x, None], [1.0, x]], dtype=dtype)
        assert np.isnan(whole).sum() == np.isnan(pair).sum() == 1
        assert np.isnan(whole[1].imag) == (dtype is complex)
        return (whole[0] * whole[2] + pair[0, 0] * pair[1, 1]).real

    assert grad(f)(2.0) == 12.0
