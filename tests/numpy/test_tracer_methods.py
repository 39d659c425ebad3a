"""Tracers behave like ndarrays: every operator, attribute and method gives the result of an ndarray.

The rows have the format of the table of operations and undergo its checks; the referee of ``x.sum()`` is ``x.sum()``
of an ndarray. The table covers comparisons with JAX.
"""

import array as arrays
import collections
import operator
from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from operations import batched, checks
from operations.cases import Row
from operations.spec import Sample, array, op, positive, spread

from funcgrad import grad, jacfwd, jvp, value_and_grad, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.primitives import arithmetic
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.products import matmul

S = Sample
REASON = "the table of operations compares the functions behind it with JAX"
MATRIX, VECTOR, ZERO, EMPTY = array(2, 3), array(3), array(), array(0, 3)
COMPLEX = array(2, 3, kind="complex")
INTEGERS = np.array([[1, 2, 3], [4, 6, 9]])
MASK = np.array([[True, False, True], [False, True, True]])


def same(name, fun, *samples, **options):
    """Return a row whose referee is the same function of ndarrays."""
    return Row(op(name, *samples, fun=fun, numpy=fun, jax=None, reason=REASON, **options))


def constant(name, fun, *samples, **options):
    """Return a row as ``same`` does, for a function without a derivative."""
    return same(name, fun, *samples, differentiable=False, **options)


ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "mod": operator.mod,
}
PAIRS = [
    (positive(2, 3), positive(2, 3, seed=1)),
    (positive(2, 1), positive(3, seed=1)),
    (positive(3), 1.25),
    (1.25, positive(3)),
    S((2, positive(3)), unbatched=(0,)),
    S((positive(3), 2), unbatched=(1,)),
    (positive(), positive(2, seed=1)),
    (positive(3), np.array([1, 2, 4])),
    (np.array([1, 2, 4]), positive(3)),
    (positive(0, 3), positive(3, seed=1)),
    S((positive(3), [1.0, 2.5, 3.5]), unbatched=(1,)),
    S(([1.0, 2.5, 3.5], positive(3)), unbatched=(0,)),
    S(((1.0, 2.5, 3.5), positive(3)), unbatched=(0,)),
    S((positive(3), np.float64(2.5)), frozen=(1,), unbatched=(1,)),
    S((np.float64(2.5), positive(3)), frozen=(0,), unbatched=(0,)),
    S((np.array([1.0, 2.5, 3.5]), positive(3)), frozen=(0,), unbatched=(0,)),
]
OPERATORS = [
    *[same(name, fun, *PAIRS) for name, fun in ARITHMETIC.items()],
    same(
        "divmod", divmod, *PAIRS[:2], (2.5, positive(3)), (np.array([2.5, 3.5, 4.5]), positive(3)), (positive(3), 0.7)
    ),
    same(
        "matmul", operator.matmul, (array(2, 3), array(3, 2)), (array(3), array(3, seed=1)), (array(4, 2, 3), array(3))
    ),
    same("neg", operator.neg, (MATRIX,), (ZERO,), (EMPTY,), complex_samples=[(COMPLEX,)]),
    same("pos", operator.pos, (MATRIX,), (ZERO,)),
    same("abs", abs, (MATRIX,), (ZERO,), complex_samples=[(COMPLEX,)]),
    same("python round", lambda x: round(x, 2) * 1.0 + x, (np.float64(1.234),), (2.342,)),
    same("in place", lambda x: operator.itruediv(operator.imul(x * 1.0, 2.0), x + 3.0), (MATRIX,)),
]
COMPARED = [
    (MATRIX, array(2, 3, seed=1)),
    (VECTOR, 0.5),
    (0.5, VECTOR),
    (ZERO, VECTOR),
    S((VECTOR, [1.0, 2.0, 3.0]), unbatched=(1,)),
]
INTEGER_PAIRS = [
    (INTEGERS, INTEGERS[::-1]),
    S((INTEGERS, 2), unbatched=(1,)),
    S((3, INTEGERS), unbatched=(0,)),
    S((INTEGERS, [1, 2, 1]), unbatched=(1,)),
]
CONSTANT_OPERATORS = [
    *[constant(name, getattr(operator, name), *COMPARED) for name in ("lt", "le", "gt", "ge", "eq", "ne")],
    constant("floordiv", operator.floordiv, *PAIRS[:4]),
    *[constant(name, getattr(operator, name), *INTEGER_PAIRS) for name in ("and_", "or_", "xor", "lshift", "rshift")],
    constant("invert", operator.invert, (INTEGERS,), (MASK,)),
    constant("logic", lambda x, y: ~(x > 0) & (y < 1) | (x > 1) ^ (y > 0), (MATRIX, VECTOR)),
    constant("round to an integer", round, (np.float64(2.5),), (1.7,)),
]
ATTRIBUTES = [
    same("T", lambda x: x.T * np.ones((3, 2)), (MATRIX,)),
    same("T of other ranks", lambda x: x.T, (array(2, 3, 4),), (VECTOR,), (ZERO,)),
    same("mT", lambda x: x.mT, (MATRIX,), (array(2, 3, 4),)),
    same("real", lambda x: x.real, (MATRIX,), complex_samples=[(COMPLEX,)]),
    same("imag", lambda x: x.imag, complex_samples=[(COMPLEX,)]),
    same("flat", lambda x: sum(v * v * i for i, v in enumerate(x.flat)), (MATRIX,)),
]
INDICES = {
    "integer": 1,
    "negative integers": (-1, -2),
    "slice": (slice(None), slice(None, None, -1)),
    "new axis and ellipsis": (..., None, 0),
    "list": [1, 0, 1],
    "array": (slice(None), np.array([[2, 0], [2, 1]])),
    "mask": MASK,
    "nothing": (),
}
INDEXING = [
    *[same(f"index {name}", lambda x, i=index: x[i], (MATRIX,)) for name, index in INDICES.items()],
    same("index by a mask of itself", lambda x: x[x > 0] * 2.0, S((VECTOR,), unbatched=(0,))),
    same("iteration", lambda x: sum(row * (i + 1) for i, row in enumerate(x)), (MATRIX,), (VECTOR,)),
    same("nested iteration", lambda x: [v * w for v, w in x.reshape(3, 2)], (MATRIX,)),
    same("unpacking", lambda x: (lambda a, b, c: a * b / c)(*x), (VECTOR,)),
    same("reversed", lambda x: [v * i for i, v in enumerate(reversed(x))], (VECTOR,)),
    same("zip", lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)), (VECTOR, array(3, seed=1))),
]
METHODS = [
    same("astype", lambda x: x.astype(complex) * 2j + x.astype("float64"), (MATRIX,)),
    same("astype same kind", lambda x: x.astype(float, casting="same_kind", copy=False), (MATRIX,)),
    same("clip", lambda x: x.clip(-1.0, 1.0), (MATRIX,)),
    same("clip by keyword", lambda x: x.clip(max=0.5), (MATRIX,)),
    same("clip between arrays", lambda x, y: x.clip(y, max=y + 1.0), (MATRIX, VECTOR)),
    same("compress", lambda x: x.compress([True, False, True], axis=1), (MATRIX,)),
    same("conj", lambda x: (x.conj(), x.conjugate()), (MATRIX,), complex_samples=[(COMPLEX,)]),
    same("copy", lambda x: x.copy(), (MATRIX,), (ZERO,)),
    same("cumprod", lambda x: (x.cumprod(), x.cumprod(1)), (MATRIX,)),
    same("cumsum", lambda x: (x.cumsum(), x.cumsum(axis=0)), (MATRIX,)),
    same("diagonal", lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(axis1=1, axis2=0)), (MATRIX,)),
    same("dot", lambda x: (x.dot(x.T), x.dot(VECTOR), x[0].dot(x[1]), x.dot([1.0, 2.0, 3.0])), (MATRIX,)),
    same("flatten", lambda x: (x.flatten(), x.flatten("F")), (MATRIX,)),
    same("max", lambda x: (x.max(), x.max(0), x.max(axis=1, keepdims=True)), (spread(2, 3),)),
    same("min", lambda x: (x.min(), x.min(0), x.min(axis=-1, initial=-1.0)), (spread(2, 3),)),
    same("mean", lambda x: (x.mean(), x.mean(0), x.mean((0, 1)), x.mean(axis=1, keepdims=True)), (MATRIX,)),
    same("prod", lambda x: (x.prod(), x.prod(0)), (MATRIX,)),
    same("ravel", lambda x: (x.ravel(), x.ravel("F")), (MATRIX,), (ZERO,)),
    same("repeat", lambda x: (x.repeat(2), x.repeat([1, 2], axis=0)), (MATRIX,)),
    same(
        "reshape",
        lambda x: (x.reshape(6), x.reshape(3, 2), x.reshape((3, -1)), x.reshape(-1), x.reshape([6, 1])),
        (MATRIX,),
    ),
    same("reshape by keyword", lambda x: (x.reshape(3, 2, order="F"), x.reshape((2, -1), order="C")), (MATRIX,)),
    same("squeeze", lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(axis=(0, 2))), (array(1, 3, 1),)),
    same("std", lambda x: (x.std(), x.std(0), x.std(axis=1, ddof=1)), (MATRIX,)),
    same("sum", lambda x: (x.sum(), x.sum(0), x.sum((0, 1)), x.sum(axis=1, keepdims=True)), (MATRIX,)),
    same("sum of some", lambda x: (x.sum(dtype=float, where=MASK), x.sum(0, initial=2.0)), (MATRIX,)),
    same("swapaxes", lambda x: x.swapaxes(0, -1), (array(2, 3, 4),)),
    same("take", lambda x: (x.take([1, 0, 1], axis=0), x.take(2), x.take([7, -8], mode="wrap")), (MATRIX,)),
    same("trace", lambda x: (x.trace(), x.trace(1)), (MATRIX,)),
    same(
        "transpose",
        lambda x: (x.transpose(), x.transpose(None), x.transpose(2, 0, 1), x.transpose((1, 0, 2))),
        (array(2, 3, 4),),
    ),
    same("transpose of a vector", lambda x: (x.transpose(), x.transpose(0)), (VECTOR,)),
    same("var", lambda x: (x.var(), x.var(0), x.var(axis=1, ddof=1, keepdims=True)), (MATRIX,)),
    same("a chain", lambda x: (x.reshape(3, 2).T @ x.sum(0)).clip(-9.0, 9.0).mean() / (x**2).sum() ** 0.5, (MATRIX,)),
]
CONSTANT_METHODS = [
    constant("all", lambda x: (x.all(), x.all(0), x.all(axis=1, keepdims=True)), (MATRIX,), (MASK,)),
    constant("any", lambda x: (x.any(), x.any(0)), (MATRIX,), (MASK,)),
    constant("argmax", lambda x: (x.argmax(), x.argmax(1)), (MATRIX,)),
    constant("argmin", lambda x: (x.argmin(), x.argmin(axis=0)), (MATRIX,)),
    constant("argsort", lambda x: (x.argsort(), x.argsort(0), x.argsort(axis=None)), (MATRIX,)),
    constant("argpartition", lambda x: (x.argpartition(1), x.argpartition([0], axis=0)), (MATRIX,)),
    constant("astype int", lambda x: (x.astype(int), x.astype("int32"), x.astype(bool)), (MATRIX,)),
    constant("round", lambda x: (x.round(), x.round(1), x.round(decimals=2)), (MATRIX,)),
    constant(
        "searchsorted",
        lambda x: (x.searchsorted(0.1), x.searchsorted([0.3, -1.0], side="right")),
        S((np.sort(VECTOR),), ordered=True),
    ),
]
LIVE = [case for row in (*OPERATORS, *ATTRIBUTES, *INDEXING, *METHODS) for case in row.cases]
FIXED = [case for row in (*CONSTANT_OPERATORS, *CONSTANT_METHODS) for case in row.cases]


def each(cases, admits=lambda case: True):
    chosen = [case for case in cases if admits(case)]
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen])


def mapped(case):
    return any(leaf.mapped for leaf in case.leaves)


@each(LIVE)
def test_method_derivatives(case):
    checks.check_jvp(case)
    checks.check_vjp(case)
    checks.check_linearize(case)


@each(LIVE)
def test_method_second_derivatives(case):
    checks.check_second_order(case)


@each(LIVE)
def test_method_dtypes(case):
    checks.check_dtypes(case)


@each([*LIVE, *FIXED], mapped)
def test_method_vmap(case):
    batched.check_vmap(case)


@each(LIVE, mapped)
def test_method_vmap_of_derivatives(case):
    batched.check_vmap_of_derivatives(case)


@each(FIXED)
def test_methods_without_derivative(case):
    checks.check_zero(case)


# ---- attributes, and operations that ndarrays refuse ------------------------------------------------------


def seen(fun, x):
    """Return the results of ``fun`` on the tracers of ``x``, in each kind of trace."""
    results = []
    vjp(lambda t: results.append(fun(t)) or t, x)
    jvp(lambda t: results.append(fun(t)) or t, (x,), (np.ones_like(x),))
    vmap(lambda t: results.append(fun(t)) or t)(np.stack([x, x]))
    vmap(lambda t: vjp(lambda u: results.append(fun(u)) or u, t)[0])(np.stack([x, x]))
    assert len(results) == 4
    return results


@pytest.mark.parametrize("x", [MATRIX, VECTOR, ZERO, EMPTY, COMPLEX, np.float32([1.0])], ids=str)
@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "itemsize", "nbytes", "device"])
def test_static_attributes(name, x):
    want = getattr(x, name)
    for got in seen(lambda t: getattr(t, name), x):
        assert got == want
        assert type(got) is type(want)


def test_attributes_of_a_python_number():
    assert (
        seen(lambda t: (t.shape, t.dtype, t.ndim, t.size, t.itemsize, t.nbytes, t.device), 2.0)
        == [((), np.dtype(float), 0, 1, 8, 8, "cpu")] * 4
    )


def test_device_of_a_jax_array():
    x = jnp.ones(3)
    assert vjp(lambda t: (t, str(t.device)), x, has_aux=True)[2] == str(x.device)


def test_len():
    assert seen(len, MATRIX) == [2] * 4
    assert seen(len, EMPTY) == [0] * 4
    with pytest.raises(TypeError, match=r"^len\(\) of unsized object$"):
        vjp(len, np.asarray(2.0))  # test_classes covers numbers


@pytest.mark.parametrize("use", [iter, list, lambda x: x[0], lambda x: x.mT, lambda x: 1.0 in x[0]])
def test_errors_match_numpy(use):
    """An operation that NumPy refuses raises the same class of error with the same text."""
    with pytest.raises(Exception) as expected:  # noqa: PT011
        use(np.asarray(2.0))
    for run in (lambda f, x: vjp(f, x), lambda f, x: vmap(f)(np.stack([x, x]))):
        with pytest.raises(type(expected.value)) as caught:
            run(use, np.asarray(2.0))
        assert str(caught.value) == str(expected.value) or "a number has no elements" in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x[5],
        lambda x: x[0, 0, 0],
        lambda x: x["a"],
        lambda x: x.reshape(7),
        lambda x: x.sum(2),
        lambda x: x.transpose(0, 0),
        lambda x: x.transpose(0),
        lambda x: x.squeeze(0),
        lambda x: x.swapaxes(0, 5),
        lambda x: x + np.ones(4),
        lambda x: x @ np.ones(4),
        lambda x: x.astype(int, casting="safe"),
        lambda x: x.cumsum(3),
    ],
)
def test_invalid_calls_raise_as_numpy(use):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        use(MATRIX)
    for run in (
        lambda f: vjp(f, MATRIX),
        lambda f: jvp(f, (MATRIX,), (MATRIX,)),
        lambda f: vmap(f)(np.stack([MATRIX] * 2)),
    ):
        with pytest.raises(type(expected.value)):
            run(use)


def test_contains():
    def asked(x):
        return x, (VECTOR[1] in x, 7.0 in x, x[0] in x, [9.0, 9.0, VECTOR[2]] in x, None in x)

    assert vjp(asked, VECTOR, has_aux=True)[2] == (True, False, True, True, False)
    assert jvp(asked, (VECTOR,), (VECTOR,), has_aux=True)[2] == (True, False, True, True, False)
    with pytest.raises(ConcretizationError, match="vmap"):
        vmap(lambda x: MATRIX[0, 0] in x)(MATRIX)


def test_equality_with_nonnumbers():
    for got in seen(lambda x: (x == None, x != None, x == "auto", x in (None, "auto")), 2.0):  # noqa: E711
        assert got == (False, True, False, False)


class _Wrapped:
    """Object that converts itself to an array, and leaves operators to NumPy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class _Interface:
    def __init__(self, values):
        self.__array_interface__ = values.__array_interface__
        self.values = values


class _Prior(_Wrapped):
    """Object that NumPy asks first."""

    __array_priority__ = 10.0
    __hash__ = None

    def __eq__(self, other):
        return "asked"

    __ne__ = __eq__


CONVERTED = {
    "array": arrays.array("d", VECTOR),
    "range": range(len(VECTOR)),
    "deque": collections.deque(VECTOR),
    "wrapped": _Wrapped(VECTOR),
    "interface": _Interface(VECTOR),
    "asked": _Prior(VECTOR),
    "list": list(VECTOR),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_equality_with_what_numpy_converts(name):
    y = CONVERTED[name]

    def answers(x):
        return [np.asarray(found).tolist() for found in (x == y, x != y, y == x, x[0] == y)]

    expected = answers(VECTOR)
    assert expected[0] != False  # noqa: E712
    assert vjp(lambda x: (x, answers(x)), VECTOR, has_aux=True)[2] == expected
    assert jvp(lambda x: (x, answers(x)), (VECTOR,), (VECTOR,), has_aux=True)[2] == expected


def test_equality_of_python_numbers():
    """A number of Python is not equal to a list."""
    got = vjp(lambda x: (x, (x == [1.0], x != (1.0,), x in ([1.0],))), 1.0, has_aux=True)[2]
    assert got == (False, True, False)
    with pytest.raises(InputError, match="Decimal"):
        grad(lambda x: x if x == Decimal(1) else 2 * x)(1.0)


def test_nonzero():
    x = MATRIX.clip(0.0)
    want = [where.tolist() for where in x.nonzero()]
    for found in (
        vjp(lambda x: (x, x.nonzero()), x, has_aux=True)[2],
        jvp(lambda x: (x, x.nonzero()), (x,), (x,), has_aux=True)[2],
    ):
        assert [where.tolist() for where in found] == want


def test_iteration_stops_early():
    assert grad(lambda x: next(iter(x)) ** 2)(VECTOR).tolist() == [2 * VECTOR[0], 0.0, 0.0]


def test_iteration_costs_only_rows_read():
    """A pullback through n rows needs memory and time for n rows, not for n arrays."""
    x = np.arange(200_000.0).reshape(2000, 100)
    np.testing.assert_array_equal(grad(lambda x: sum(row @ row for row in x))(x), 2 * x)


# ---- speed -------------------------------------------------------------------------------------------------


def test_operators_are_the_primitives_themselves():
    """``x * y`` calls the operation directly."""
    assert Tracer.__mul__.text == arithmetic.multiply.text  # bound differently where a graph records it
    assert Tracer.__add__ is arithmetic.add
    assert Tracer.__sub__ is arithmetic.subtract
    assert Tracer.__truediv__ is arithmetic.divide
    assert Tracer.__pow__.text == arithmetic.power.text
    assert Tracer.__neg__ is arithmetic.negative
    assert Tracer.__matmul__ is matmul
    assert Tracer.__getitem__ is getitem


# ---- rounding by Python ------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("number", [2.675, 0.15, 12.5, 1e22, np.float64(2.675), np.float64(1e22), np.float32(2.5)])
def test_round_of_python_number_matches_python(number, digits):
    """A Python float is rounded by its exact decimals; without digits the result is a Python integer."""
    seen = []

    def f(x):
        rounded = round(x, digits)
        seen.append((rounded, type(rounded) is int, isinstance(rounded, np.generic)))
        return rounded * x

    plain, (value, slope) = f(number), value_and_grad(f)(number)
    assert seen[0] == seen[1]
    assert value == plain
    assert slope == seen[0][0]


# ---- JAX arrays --------------------------------------------------------------------------------------------


def test_methods_on_jax_arrays():
    def f(x):
        y = (2.0 * x.T @ x[:, ::-1] - x.sum(0) / x.std()).clip(-3.0, 3.0)
        return (y.reshape(-1)[1:] * y.ravel()[:-1]).mean() + abs(x).max() + sum(v * v for v in x[0])

    x = jnp.asarray(array(3, 3))
    own, theirs, own_second, their_second = jax.jit(
        lambda x: (grad(f)(x), jax.grad(f)(x), jacfwd(grad(f))(x), jax.hessian(f)(x))
    )(x)
    np.testing.assert_allclose(own, theirs, rtol=1e-12)
    np.testing.assert_allclose(own_second, their_second, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(own, grad(f)(np.asarray(x)), rtol=1e-12)
