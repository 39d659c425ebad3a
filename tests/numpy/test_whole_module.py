"""``import funcgrad.numpy as np`` in place of NumPy's import has every name. Tables of pandas next to arrays."""

import io
import operator

import numpy
import pandas as pd
import pytest
from helpers import identical

import funcgrad.numpy as np
from funcgrad import as_written, grad, jvp, vmap


def test_every_numpy_name_exists():
    gone = {"in1d", "trapz"}  # removed in NumPy 2.4
    missing = {name for name in dir(numpy) if not name.startswith("_") and not hasattr(np, name)}
    assert missing - gone == {"test"}


def test_unchanged_module():
    data = np.loadtxt(io.StringIO("1.0 2.0 3.0"))

    def loss(x):
        noise = np.random.RandomState(0).normal(size=3)
        out = np.zeros(3, dtype=np.float64)
        for i in range(3):
            out[i] = x[i] * data[i] + 0.1 * noise[i]
        assert isinstance(x, np.ndarray)
        assert not isinstance(out, np.ma.MaskedArray)
        return np.sum(np.where(out > 1.5, out, 0.0)) + np.e * x[0]

    x = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(grad(loss)(x), [np.e, 2.0, 3.0])
    assert np.bytes_ is numpy.bytes_
    assert np.datetime64("2020-01-01") == numpy.datetime64("2020-01-01")
    assert np.row_stack([x, x]).shape == (2, 3)


S = pd.Series([1.0, 2.0, 3.0], index=list("abc"))
FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
BESIDE = {
    "product": (lambda x: (x * S).sum(), [1.0, 2.0, 3.0]),
    "product, on the left": (lambda x: (S * x).sum(), [1.0, 2.0, 3.0]),
    "matrix product": (lambda x: x @ S, [1.0, 2.0, 3.0]),
    "function": (lambda x: (np.exp(S) * x).sum(), numpy.exp([1.0, 2.0, 3.0])),
    "numpy's function": (lambda x: (numpy.exp(S) * x).sum(), numpy.exp([1.0, 2.0, 3.0])),
    "power": (lambda x: np.power(S, x).sum(), [0.0, 2 * numpy.log(2), 27 * numpy.log(3)]),
    "difference": (lambda x: np.sum((S - x) ** 2), [0.0, -2.0, 0.0]),
    "number": (lambda x: (S * x[0]).sum(), [6.0, 0.0, 0.0]),
    "comparison": (lambda x: (x * (x < S)).sum(), [0.0, 1.0, 0.0]),
    "columns": (lambda x: ((FRAME["a"] * x[0] + FRAME["b"]) ** 2).mean(), [2 * (5 + 14 + 27) / 3, 0.0, 0.0]),
    "frame": (lambda x: (FRAME * x[0]).sum().sum(), [21.0, 0.0, 0.0]),
    "dot": (lambda x: np.dot(S, x), [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_tables_with_traced_values(name):
    f, slope = BESIDE[name]
    x = numpy.array([1.0, 1.0, 3.0])
    with as_written():
        numpy.testing.assert_allclose(grad(f)(x), slope)
        assert jvp(f, (x,), (numpy.ones(3),))[1] == pytest.approx(sum(slope))
        numpy.testing.assert_allclose(vmap(grad(f))(numpy.stack([x, x]))[1], slope)


def test_tables_of_texts_raise():
    with pytest.raises(TypeError, match="not an array or a number, got Series"):
        grad(lambda x: (x * pd.Series(["a", "b", "c"])).sum())(numpy.ones(3))


#: Calls on plain values whose results depend on more than values: dtypes, kinds of numbers, empty and 0-d arrays.
PLAIN = {
    "dot into no axes": lambda m: m.dot(numpy.ones(3), numpy.ones(3), out=numpy.zeros(())),
    "sum of a number into no axes": lambda m: m.sum(numpy.float32(2.5), out=numpy.zeros((), "f4")),
    "arange without a step": lambda m: m.arange(0.5, 3.0, None),
    "partition at an array without axes": lambda m: m.partition([3.0, 1.0, 2.0], numpy.array(1)),
    "ix_ of nothing": lambda m: m.ix_([1, 2], []),
    "weights at integers": lambda m: m.polynomial.chebyshev.chebweight(numpy.array([0, 3], "u1")),
    "number[...]": lambda m: getattr(m, "getitem", operator.getitem)(numpy.int32(1), ...),
    "number[..., None]": lambda m: getattr(m, "getitem", operator.getitem)(numpy.float32(1), (..., None)),
    "number[()]": lambda m: getattr(m, "getitem", operator.getitem)(numpy.bool_(True), ()),
    "partition of nothing": lambda m: m.partition(numpy.zeros((3, 0)), 4),
    "argpartition of nothing": lambda m: m.argpartition(numpy.zeros(0), [0, 3]),
    "rows inserted into fields": lambda m: m.insert(numpy.zeros(2, "i4,S1"), [0, 1], [(4, "d"), (5, "e")]),
}

#: Python objects with NaN among them.
OBJECTS = numpy.array([[1.0, 2.0, 5.0], [numpy.nan, 4.0, 3.0]], dtype=object)
NAN_FUNCTIONS = {
    **dict.fromkeys(["nanmin", "nanmax", "nansum", "nanprod", "nanmean", "nanvar", "nancumsum", "nancumprod"], ()),
    "nanquantile": (0.3,),
    "nanpercentile": (30,),
}


@pytest.mark.parametrize("call", PLAIN.values(), ids=PLAIN)
def test_plain_calls_match_numpy(call):
    with numpy.errstate(all="ignore"):
        identical(call(np), call(numpy))


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("name", [*NAN_FUNCTIONS])
def test_nan_among_python_objects_is_left_out(name, axis):
    ours, theirs = (getattr(m, name)(OBJECTS, *NAN_FUNCTIONS[name], axis=axis) for m in (np, numpy))
    numpy.testing.assert_array_equal(ours, theirs, strict=True)


def test_traced_quantiles_of_python_objects():
    objects = OBJECTS[0]
    assert grad(lambda q: numpy.nanquantile(objects, q))(0.25) == pytest.approx(2.0)
    assert grad(lambda q: np.nanquantile(objects, q))(0.75) == pytest.approx(6.0)


@pytest.mark.parametrize("name", ["nanstd", "nanmedian"])
def test_nan_among_all_python_objects_is_left_out(name):
    identical(getattr(np, name)(OBJECTS), getattr(numpy, name)(OBJECTS))


@pytest.mark.parametrize(
    ("sorter", "error"),
    [([4, 0, -1, 2, 3], ValueError), ([1, 2, 3, 4], ValueError), ([0.0] * 5, TypeError), ([0, 1, 2, 3, 5], ValueError)],
)
def test_sorters_that_do_not_sort_raise_as_numpy(sorter, error):
    for m in (np, numpy):
        with pytest.raises(error, match=r"(?i)sorter"):
            m.searchsorted(numpy.array([5, 2, 1, 3, 4]), 4, sorter=sorter)


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
def test_nan_means_with_integer_dtype_raise_as_numpy(name):
    for options in ({"dtype": int}, {"out": numpy.zeros((), int)}):
        for m in (np, numpy):
            with pytest.raises(TypeError, match="must be inexact"):
                getattr(m, name)(numpy.array([1.5, numpy.nan]), **options)


def test_warnings_point_at_calling_line():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom") as caught, numpy.errstate(all="ignore"):
        grad(lambda x: np.cov(x).sum())(numpy.ones((2, 1)))
    assert {w.filename for w in caught} == {__file__}
