"""Arrays as sets: which elements get the derivative, refusals, and NumPy's shapes and orders."""

import re

import jax
import numpy as np
import pytest
from helpers import at_least, identical, traced

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, trace, vjp, vmap
from funcgrad.errors import BranchError, ConcretizationError

X = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
T = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])
NAN = float("nan")


# ---- which elements get the derivative ---------------------------------------------------------------------


def test_unique_derivative_goes_to_first_equal_element():
    weights = np.array([1.0, 2.0, 4.0])
    identical(grad(lambda x: fnp.sum(fnp.unique(x) * weights))(X), np.array([4.0, 1.0, 0.0, 2.0, 0.0]))
    identical(jvp(fnp.unique, (X,), (T,))[1], np.array([10.0, 1000.0, 1.0]))


def test_unique_derivative_goes_to_first_nan():
    x = np.array([NAN, 1.0, NAN])
    identical(jvp(fnp.unique, (x,), (T[:3],))[1], np.array([10.0, 1.0]))
    identical(jvp(lambda x: fnp.unique(x, equal_nan=False), (x,), (T[:3],))[1], np.array([10.0, 1.0, 100.0]))


def test_unique_rows():
    x = np.stack([X[:3], X[:3] + 1, X[:3]])
    t = np.arange(9.0).reshape(3, 3)
    identical(jvp(lambda x: fnp.unique(x, axis=0), (x,), (t,))[1], t[:2])
    identical(jvp(lambda x: fnp.unique(x, axis=1), (x.T,), (t.T,))[1], t.T[:, :2])


@pytest.mark.parametrize("sign", [1, -1])
def test_unstable_order_matches_numpy(sign):
    """The derivative belongs to the element that NumPy puts at that position."""
    x = sign * np.array([8.5, -3.0, 700.25, 0.0, 8.5, 41.0, -3.0, 12.0])
    for fun, plain in (
        (fnp.unique_values, np.unique_values),
        (lambda x: fnp.unique(x, sorted=False), lambda x: np.unique(x, sorted=False)),
    )[: 2 if at_least(np, "2.3.0") else 1]:  # older versions have no argument sorted
        value, tangent = jvp(fun, (x,), (x * 3,))
        identical(value, plain(x))
        identical(tangent, plain(x) * 3)


def test_intersect1d_derivative_goes_to_first_array():
    y = np.array([2.0, 3.0, 3.0])
    value, pullback = vjp(fnp.intersect1d, X, y)
    identical(value, np.array([2.0, 3.0]))
    identical(pullback(np.array([1.0, 2.0])), (np.array([2.0, 0, 0, 1.0, 0]), np.zeros(3)))
    identical(vjp(fnp.union1d, X, y)[1](np.array([1.0, 2.0, 3.0])), (np.array([3.0, 1.0, 0, 2.0, 0]), np.zeros(3)))


def test_setdiff1d_derivative():
    y = np.array([4.0, 3.0, 4.0])
    identical(jvp(lambda x: fnp.setdiff1d(x, y), (X,), (T,))[1], np.array([10.0, 1000.0]))
    identical(jvp(fnp.setxor1d, (X, y), (T, T[:3] / 10))[1], np.array([10.0, 1000.0, 0.1]))


def test_jax_loses_derivative_of_unique():
    """Therefore the rows are not compared with JAX; funcgrad keeps the derivative on JAX arrays, too."""
    want = np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(jax.grad(lambda x: jax.numpy.unique(x).sum())(X), np.zeros(5))
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(fnp.unique(x)))(jax.numpy.asarray(X)), want)
    np.testing.assert_array_equal(jax.grad(lambda x: fnp.sum(fnp.unique(x)))(X), want)


def test_graph_of_unique_checks_values():
    graph = trace(lambda x: fnp.unique(x) * 2)(X)
    identical(graph(np.array([5.0, 6.0, 7.0, 5.0, 7.0])), np.array([10.0, 12.0, 14.0]))
    with pytest.raises(BranchError, match=r"got int64\[2\], traced int64\[3\]"):
        graph(np.array([5.0, 5.0, 5.0, 5.0, 7.0]))


# ---- NumPy's shapes and orders -----------------------------------------------------------------------------

EVERYTHING = {"return_index": True, "return_inverse": True, "return_counts": True}


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (X, {}),
        (X, EVERYTHING),
        (X.reshape(1, 5), EVERYTHING),
        (X[0], EVERYTHING),
        (X[:0], EVERYTHING),
        (X, {"axis": 0, **EVERYTHING}),
        (X[[0, 1, 0, 1]].reshape(2, 2), {"axis": 0, **EVERYTHING}),
        *[(X[[0, 1, 0, 1]].reshape(2, 2), {"axis": -1, "return_inverse": True, "sorted": False})]
        * at_least(np, "2.3.0"),
        (np.array([2, 1, 2]), EVERYTHING),
        (np.float32([0.0, -0.0, NAN, NAN]), EVERYTHING),
        (np.array([1 + 1j, 1 - 1j, 1 + 1j]), EVERYTHING),
    ],
)
def test_unique_matches_numpy(x, options):
    identical(
        jvp(lambda x: fnp.unique(x, **options), (x,), (x,))[0] if x.dtype.kind in "fc" else fnp.unique(x, **options),
        np.unique(x, **options),
    )


def test_invalid_unique_raises_as_numpy():
    for axis in (1, -2):
        with pytest.raises(np.exceptions.AxisError):
            traced(lambda x, axis=axis: fnp.unique(x, axis=axis), X)


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse"])
def test_unique_returns_named_tuples(name):
    x = np.array([[1.0, NAN], [NAN, 1.0]])
    identical(traced(getattr(fnp, name), x), getattr(np, name)(x))
    identical(getattr(fnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("ar1", [X, X.reshape(5, 1), np.float32(X), X[:0]])
@pytest.mark.parametrize("ar2", [np.array([3, 2, 7, 2]), np.array([0.5]), np.array([])])
def test_functions_of_two_sets_match_numpy(ar1, ar2):
    for name, options in (
        ("union1d", {}),
        ("intersect1d", {}),
        ("intersect1d", {"return_indices": True}),
        ("setdiff1d", {}),
        ("setxor1d", {}),
        ("isin", {}),
        ("isin", {"invert": True}),
    ):
        fun, plain = getattr(fnp, name), getattr(np, name)
        identical(traced(lambda x, f=fun, o=options: f(x, ar2, **o), ar1), plain(ar1, ar2, **options))
        if ar2.dtype.kind == "f":
            identical(traced(lambda y, f=fun, o=options: f(ar1, y, **o), ar2), plain(ar1, ar2, **options))
    different = np.array([3.0, 1.0, 2.0])
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        fun, plain = getattr(fnp, name), getattr(np, name)
        other = np.unique(ar2)[::-1]
        got = traced(lambda x, f=fun, o=other: f(x, o, assume_unique=True), different)
        identical(got, plain(different, other, assume_unique=True))


def test_isin_under_vmap():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = np.array([[3.0, 5.0], [4.0, 4.0]])
    for invert in (False, True):
        want = [np.isin(a, b, invert=invert) for a, b in zip(x, y, strict=True)]
        identical(vmap(lambda a, b, i=invert: fnp.isin(a, b, invert=i))(x, y), np.stack(want))
        want = [np.isin(x, b, invert=invert) for b in y]
        identical(vmap(lambda b, i=invert: fnp.isin(x, b, invert=i))(y), np.stack(want))
    identical(vmap(lambda a, b: fnp.isin(a, b))(x[:, 0], y[:, :0]), np.array([False, False]))


def test_lexsort():
    keys = np.round(np.random.default_rng(0).normal(size=(2, 3, 4)))
    for axis in (-1, 0):
        identical(traced(lambda k, axis=axis: fnp.lexsort(k, axis), keys), np.lexsort(keys, axis))
        identical(traced(lambda k, axis=axis: fnp.lexsort([k, keys[1]], axis), keys[0]), np.lexsort(keys, axis))
    with pytest.raises(np.exceptions.AxisError):
        traced(lambda k: fnp.lexsort((k,), 2), keys[0])
    identical(traced(fnp.lexsort, keys[0, 0]), np.lexsort(keys[0, 0]))


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int64", "float16", "float32", "float64", "longdouble", "complex64"]
)
def test_sort_complex_matches_numpy_dtypes(dtype):
    x = np.array([[3, 1, 2], [0, 5, 4]], dtype)
    identical(vmap(fnp.sort_complex)(x), np.sort_complex(x))


@pytest.mark.parametrize("trim", ["fb", "f", "b", "BF"])
@pytest.mark.parametrize("axis", [None, 0, -1, *[(0, 1), ()] * at_least(np, "2.3.0")])  # several axes since 2.3
@pytest.mark.parametrize(
    "x", [np.zeros((2, 3)), np.pad([[1.0, 0.0, 2.0]], 1), np.pad([[1.0], [0.0], [2.0]], ((0, 1), (2, 0)))]
)
def test_trim_zeros_matches_numpy(x, trim, axis):
    got, pullback = vjp(lambda x: fnp.trim_zeros(x, trim, axis), x)
    want = np.trim_zeros(x, trim, axis)
    identical(got, want)
    assert pullback(np.ones_like(got))[0].sum() == got.size


def test_trim_zeros_accepts_lists():
    assert fnp.trim_zeros([0, 1, 2, 0]) == [1, 2]
    identical(traced(lambda a: fnp.trim_zeros([0.0, a, 0.0]), 2.0), np.array([2.0]))
    with pytest.raises(ValueError, match="unexpected character"):
        traced(lambda x: fnp.trim_zeros(x, "x"), X)


# ---- refusals ----------------------------------------------------------------------------------------------

REFUSED = {
    "unique": lambda x: fnp.unique(x),
    "unique_all": lambda x: fnp.unique_all(x),
    "unique_values": lambda x: fnp.unique_values(x),
    "union1d": lambda x: fnp.union1d(x, X),
    "intersect1d": lambda x: fnp.intersect1d(X, x),
    "setdiff1d": lambda x: fnp.setdiff1d(x, X),
    "setdiff1d of distinct elements": lambda x: fnp.setdiff1d(x, X, assume_unique=True),
    "setxor1d": lambda x: fnp.setxor1d(x, X),
    "trim_zeros": lambda x: fnp.trim_zeros(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_differing_sizes_in_batch_raise(name):
    with pytest.raises(ConcretizationError, match=re.compile("differs between .*examples")):
        vmap(REFUSED[name])(np.stack([X, 0.0 * X]))


def test_numpy_set_functions_dispatch_on_tracers():
    identical(grad(lambda x: np.sum(np.unique(x)))(X), np.array([1.0, 1.0, 0.0, 1.0, 0.0]))
    identical(grad(lambda x: np.sum(np.setdiff1d(x, [3.0])))(X), np.array([0.0, 1.0, 0.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fnp.sum(fnp.unique(fnp.concatenate([x, x[:2]])) * np.arange(4.0)),
        lambda x: x[1] * fnp.sum(fnp.unique(x[np.array([2, 0, 2])], return_inverse=True)[1]),
        lambda x: fnp.sum(fnp.intersect1d(x, fnp.concatenate([x[1:3], 9.0], axis=None)) ** 2),
        lambda x: fnp.sum(fnp.trim_zeros(fnp.concatenate([0.0, x, 0.0], axis=None)) ** 3),
        lambda x: fnp.sum(x[fnp.nonzero(x > 1.0)] ** 2),
        lambda x: fnp.sum(x[fnp.argwhere(x[::-1] > 1.0)[:, 0]] ** 3),
    ],
    ids=["unique", "inverse", "intersect1d", "trim_zeros", "nonzero", "argwhere"],
)
def test_vmap_of_as_many_elements_in_each_example(f):
    xs = np.array([[0.7, 1.3, -0.4, 2.1], [2.1, 0.7, 1.3, -0.4], [3.0, 0.2, 0.1, 5.0]])
    for each in (f, grad(f), hessian(f)):
        np.testing.assert_allclose(vmap(each)(xs), [each(x) for x in xs], rtol=1e-12)


@pytest.mark.parametrize("f", [lambda x: fnp.unique(x), lambda x: x[fnp.nonzero(x > 2.0)]], ids=["unique", "nonzero"])
def test_vmap_of_different_numbers_of_elements_raises(f):
    with pytest.raises(ConcretizationError, match=re.compile("differs between .*examples")):
        vmap(f)(np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]))
