"""Arrays that a function makes from constants, by any NumPy function, accept writes of traced values."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.special
from helpers import differences
from scipy import integrate, interpolate, optimize, signal, sparse, special

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, value_and_grad, vmap
from funcgrad.errors import ConversionError
from funcgrad.interop import from_numpy
from funcgrad.numpy_code import rebuilding

B = np.array([1.0, 2.0, 3.0])
M = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])

#: Expressions of numbers, of lists, and of arrays that the function closes over.
MADE = """
atleast_1d(0.5); tile(1.0, 3); repeat(0.5, 3); append(0.5, 1.0); ravel(0.5); where([True, False], 1.0, 2.0)
logspace(0, 1, 3); geomspace(1, 2, 3); indices((3,))[0] * 1.0; mgrid[0:3] * 1.0; ogrid[0:3] * 1.0; r_[1.0, 2.0]
hanning(4); kaiser(4, 1.0); blackman(4); bartlett(4); hamming(4); fft.fftfreq(4); full((2,), [1.0, 2.0])
concatenate([[1.0, 2.0], [3.0]]); append([1.0, 2.0], [1.0]); stack([1.0, 2.0]); hstack([1.0, 2.0]); block([[1.0, 2.0]])
vstack([[1.0, 2.0], [1.0, 2.0]]); column_stack([[1.0, 2.0], [1.0, 2.0]]); c_[[1.0, 2.0], [1.0, 2.0]]
tile([1.0, 2.0], 3); repeat([1.0, 2.0], 3); outer([1.0, 2.0], [1.0, 2.0]); diag([1.0, 2.0])
sort([2.0, 1.0]); cumsum([1.0, 2.0]); diff([1.0, 2.0, 3.0]); roll([1.0, 2.0], 1); flip([1.0, 2.0]); pad([1.0, 2.0], 1)
insert([1.0, 2.0], 1, 3.0); delete([1.0, 2.0], 1); meshgrid([1.0, 2.0], [1.0, 2.0])[0]; take([1.0, 2.0], [0, 1])
add([1.0, 2.0], 1.0); exp([1.0, 2.0]); maximum([1.0, 2.0], 1.0); clip([1.0, 2.0], 1, 2); isnan([1.0, 2.0]) * 1.0
sum([[1.0, 2.0], [1.0, 2.0]], axis=0); mean([[1.0, 2.0], [1.0, 2.0]], axis=0); dot([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
linalg.inv([[1.0, 2.0], [2.0, 2.0]]); linalg.eigvalsh([[1.0, 2.0], [2.0, 2.0]]); kron([1.0, 2.0], [1.0, 2.0])
argsort([1.0, 2.0]) * 1.0; nonzero([1.0, 2.0])[0] * 1.0; histogram([1.0, 2.0], 2)[1]; bincount([0, 1, 1]) * 1.0
triu_indices(2)[0] * 1.0; unique([1.0, 2.0]); interp([1.5], [1.0, 2.0], [1.0, 3.0]); polynomial.legendre.leggauss(3)[0]
add.outer([1.0, 2.0], [1.0, 2.0]) * 1.0; transpose([[1.0, 2.0], [1.0, 2.0]]); ravel(M); diag(B); B[[0, 1]]; B[B > 1]
"""
EXPRESSIONS = [text.strip() for line in MADE.splitlines() for text in line.split(";") if text.strip()]
FOREIGN = [
    "scipy.linalg.toeplitz([1.0, 2.0])",
    "scipy.linalg.block_diag([1.0, 2.0], [3.0])",
    "scipy.special.gamma([1.0, 2.0])",
]


def programs(text):
    """Generate functions that write to the array of ``text``: with NumPy's names, and with funcgrad's."""
    source = "def fun(x):\n    o = {}\n    o[..., :1] *= x\n    o[...] += x**2\n    return {}sum(o * o)"
    names = {"B": B, "M": M, "scipy": scipy}
    for module, name in ((np, "np"), (fnp, "fnp")):
        if text in FOREIGN:
            made = text
        elif text.startswith("B["):
            made = f"{text}.copy()"
        else:
            made = f"{name}.{text}" if text not in ("ravel(M)", "diag(B)") else f"{name}.{text}.copy()"
        space = {**names, name: module}
        exec(source.format(made, f"{name}."), space)
        yield space["fun"]


@pytest.mark.parametrize("text", [*EXPRESSIONS, *FOREIGN])
def test_constant_arrays_accept_traced_values(text):
    for fun in programs(text):
        expected = differences(fun, 1.3)
        assert grad(fun)(1.3) == pytest.approx(expected, rel=1e-6)
        assert jvp(fun, (1.3,), (1.0,))[1] == pytest.approx(expected, rel=1e-6)
        assert vmap(grad(fun))(np.array([1.3, 0.7]))[0] == pytest.approx(expected, rel=1e-6)


def test_write_to_view_of_constant_raises_or_updates_base():
    """Check that a write to a part of a constant array shows in the whole array, as in NumPy."""

    def of_own(x):
        whole = np.append([1.0, 2.0], [3.0])
        part = np.reshape(whole, (3, 1))
        part[0] = x
        return np.sum(whole * whole)

    assert grad(of_own)(2.0) == pytest.approx(4.0)

    def of_parts(x):
        left, right = np.split(np.tile([1.0, 2.0], 2), 2)
        left[:] = x * right
        return np.sum(left * right)

    assert grad(of_parts)(2.0) == pytest.approx(5.0)


def of_sparse_matrix(x):
    A = sparse.diags_array([np.ones(3), np.ones(2)], offsets=[0, 1]).toarray()
    A[0, 0] = x
    A.T[1] *= x
    return (A**2).sum() + np.linalg.det(A)


def of_part_of_sparse_matrix(x):
    row = 2 * sparse.eye_array(3).toarray()[1]
    row[0] = x
    return (row**2).sum()


def of_spline(x):
    left, right = np.split(interpolate.CubicSpline([0, 1, 2.0], [1, 2, 4.0])(np.linspace(0, 2, 4)), 2)
    left[0] = x
    return left.sum() * right.sum()


def of_equation(x):
    y = integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0, 2.0]).y[:, -1]
    y[0] *= x
    return (y**2).sum()


def of_table(x):
    column = pd.DataFrame({"a": [1.0, 2.0]})["a"].to_numpy(copy=True)
    column[0] = x
    return (column**2).sum()


def of_vectorized(x):
    made = np.vectorize(lambda t: t * t + 1)(np.arange(3.0))
    objects = np.frompyfunc(lambda t: t + 1, 1, 1)(np.arange(3.0)).astype(float)
    made[1] *= x
    objects += x
    return (made**2).sum() + (objects**2).sum()


def of_copies(x):
    # protocol 5, the default since Python 3.14, makes an array on a buffer, which others may hold
    first, second = copy.deepcopy(B), pickle.loads(pickle.dumps(M, protocol=4))
    first[0], second[0] = x, x
    return (first**2).sum() + (second**2).sum()


def of_pair(x):
    numerator, denominator = signal.butter(2, 0.3)
    numerator[0] *= x
    zeros = special.jn_zeros(1, 2)
    zeros[1] = x
    return (numerator**2).sum() + denominator.sum() + (zeros**2).sum()


def of_texts(x):
    made = np.char.add(["1", "2"], ".5").astype(float)
    made[0] *= x
    return (made**2).sum()


class Holder:
    def __init__(self):
        self.values = sparse.eye_array(3).toarray()

    def row(self):
        return self.values[0]


def of_parts_of_object(x):
    holder = Holder()
    row, same = holder.row(), holder.values
    row[1] = x
    same[2] *= x
    return (holder.values**2).sum()


@pytest.mark.counts
@pytest.mark.parametrize(
    "fun",
    [
        *(of_sparse_matrix, of_part_of_sparse_matrix, of_spline, of_equation, of_table, of_vectorized, of_copies),
        *(of_pair, of_texts, of_parts_of_object),
    ],
)
def test_arrays_that_other_code_made_accept_traced_values(fun):
    expected = differences(fun, 1.3)
    assert grad(fun)(1.3) == pytest.approx(expected, rel=1e-6)
    assert jvp(fun, (1.3,), (1.0,))[1] == pytest.approx(expected, rel=1e-6)
    assert vmap(grad(fun))(np.array([1.3, 0.7]))[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("is_written_traced", [True, False])
def test_arrays_converted_by_scalar_classes_accept_writes(kind, is_written_traced):
    """A class that is called by its name or as a variable returns an array that may be written to, as NumPy's."""

    def as_kind(a, dtype=None):
        dtype = kind if dtype is None else dtype
        return dtype(a)

    def fun(x):
        by_name, by_variable = np.ones(3), np.ones((2, 3))
        by_name[1] = 2.0
        same, by_variable = np.float64(by_name), as_kind(by_variable)
        same[0] = math.sin(x) if is_written_traced else 5.0  # NumPy does not copy an array of the same dtype
        by_variable[1] = 3.0
        return (by_name * by_variable).sum() * math.exp(x)

    expected = differences(fun, 1.3)
    assert grad(fun)(1.3) == pytest.approx(expected, rel=1e-6)
    assert grad(from_numpy(fun))(1.3) == pytest.approx(expected, rel=1e-6)
    assert jvp(fun, (1.3,), (1.0,))[1] == pytest.approx(expected, rel=1e-6)
    assert vmap(grad(fun))(np.array([1.3, 0.7]))[0] == pytest.approx(expected, rel=1e-6)


def test_array_that_other_code_keeps_refuses_traced_values():
    def fun(x):
        found = optimize.minimize(lambda z: ((z - 1) ** 2).sum(), np.zeros(2))
        part = found.x
        part[0] *= x
        return found.x.sum()

    with pytest.raises(ConversionError):
        grad(fun)(1.3)


def test_constants_are_unchanged_after_run():
    kept = B.copy(), M.copy()
    for text in EXPRESSIONS:
        for fun in programs(text):
            grad(fun)(1.3)
    assert np.array_equal(B, kept[0])
    assert np.array_equal(M, kept[1])


@pytest.mark.parametrize("write", [
    lambda out: np.add(1.0, 2.0, out=np.asarray(out)),
    lambda out: np.asarray(out).__setitem__(slice(None), 3.0),
])  # fmt: skip
def test_writes_through_numpy_to_arrays_of_funcgrad(write):
    """The array that ``numpy.asarray`` returns is read-only; in a rebuilt function it is the array itself."""

    def fun(x):
        out = fnp.zeros(2)
        write(out)
        return x * out.sum()

    assert grad(fun)(1.0) == 6.0


def test_a_write_to_a_read_only_array_raises():
    frozen = np.ones(2)
    frozen.flags.writeable = False

    def fun(x):
        np.asarray(fnp.zeros(2))
        frozen[0] = 2.0
        return x * frozen.sum()

    with pytest.raises(ValueError, match="read-only"):
        grad(fun)(1.0)


def test_functions_without_a_rule_take_constants_that_are_read_only_in_rebuilt_code():
    constant = np.arange(3.0)

    def f(x):
        weights = {"0.0": 2.0, "1.0": 3.0, "2.0": 5.0}
        return constant.dot(x) * weights[str(np.char.mod("%.1f", constant)[2])]

    assert grad(f)(np.ones(3)).tolist() == [0.0, 5.0, 10.0]
    assert rebuilding.level_of(f) == rebuilding.READ_ONLY_ARRAYS


def with_numbers_of_a_ufunc(x):
    total = np.frompyfunc(lambda a, b: math.sin(a) * b, 2, 1).reduce([x, 2.0, x])
    both = [total, np.frompyfunc(lambda a: math.cos(a), 1, 1)(x)]
    both[0] += 10.0 * x
    both[1] *= 2.0
    return total + both[1]


def test_numbers_that_a_ufunc_of_a_function_returns_are_not_written_to():
    assert value_and_grad(with_numbers_of_a_ufunc)(0.7)[0] == pytest.approx(with_numbers_of_a_ufunc(0.7), rel=1e-14)
    assert grad(with_numbers_of_a_ufunc)(0.7) == pytest.approx(differences(with_numbers_of_a_ufunc, 0.7), rel=1e-8)


SIZE = np.frompyfunc(abs, 1, 1)


def test_ufunc_of_a_built_in_function():
    assert grad(lambda x: float(SIZE(x)) * math.sin(x))(-0.7) == pytest.approx(
        math.sin(0.7) + 0.7 * math.cos(0.7), rel=1e-14
    )
