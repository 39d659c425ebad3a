"""Arrays of short rows are computed column by column: NumPy's numbers bit for bit, in the same layout."""

import itertools

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, vjp, vmap
from funcgrad.kinds.elementwise import in_columns
from funcgrad.kinds.linear import broadcast_array, row_sums

LENGTHS = range(1, 7)
SHAPES = [
    lambda k: ((9_000, k), (k,)),
    lambda k: ((k,), (9_000, k)),
    lambda k: ((9_000, k), (9_000, 1)),
    lambda k: ((70, 1, k), (80, k)),
    lambda k: ((1_000, k), (5, 1, k)),
    lambda k: ((1_000, 1), (5, 1, k)),
    lambda k: ((4, k), (k,)),
]


def special(shape, dtype, seed):
    """Return numbers of many sizes, with zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
        x[rng.random(shape) < 0.02] = value
    return x.astype(dtype)


def identical(got, want):
    assert (type(got), got.dtype, got.shape, got.strides) == (type(want), want.dtype, want.shape, want.strides)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert np.where(np.isnan(got), 0, got).tobytes() == np.where(np.isnan(want), 0, want).tobytes()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "i8"])
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.filterwarnings("ignore")
def test_elementwise_operations_by_column(shapes, dtype):
    for length, ufunc in itertools.product(LENGTHS, (np.subtract, np.divide, np.arctan2)):
        if dtype == "c16" and ufunc is np.arctan2:
            continue
        v, w = (
            np.nan_to_num(special(s, "f8", i)).astype(dtype) if dtype == "i8" else special(s, dtype, i)
            for i, s in enumerate(shapes(length))
        )
        before = v.tobytes(), w.tobytes()
        identical(in_columns(ufunc, ufunc)(v, w), ufunc(v, w))
        assert (v.tobytes(), w.tobytes()) == before


@pytest.mark.parametrize("shapes", [((900, 2), (3,)), ((900, 3), (800, 3)), ((5, 900, 1), (4, 1, 2))])
def test_mismatched_shapes_raise_as_numpy(shapes):
    v, w = (np.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        in_columns(np.add, np.add)(v, w)
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        grad(lambda v: fnp.sum(v + w))(v)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("length", LENGTHS)
def test_other_layouts(length, order):
    v, w = special((9_000, length), "f8", 0), special((3, 1, length), "f8", 1)
    for x in (np.asarray(v, order=order), v[::-1], v[:, ::-1], np.broadcast_to(v[:1], v.shape)):
        with np.errstate(all="ignore"):
            identical(in_columns(np.multiply, np.multiply)(x, w), x * w)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "i8"])
@pytest.mark.parametrize("length", range(1, 10))
@pytest.mark.filterwarnings("ignore")
def test_sums_of_short_rows(length, dtype):
    for shape in ((300, length), (3, 200, length), (600, 1, length)):
        x = np.nan_to_num(special(shape, "f8", 0)).astype(dtype) if dtype == "i8" else special(shape, dtype, 0)
        x[0] = -0.0
        for view in (x, np.asfortranarray(x), x[::-1], x[..., ::-1]):
            for keepdims in (False, True):
                got = row_sums(view, axis=(view.ndim - 1,), keepdims=keepdims)
                want = np.sum(view, axis=-1, keepdims=keepdims)
                assert (got.dtype, got.shape) == (want.dtype, want.shape)
                np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
                assert np.where(np.isnan(got), 0, got).tobytes() == np.where(np.isnan(want), 0, want).tobytes()


@pytest.mark.parametrize("length", LENGTHS)
def test_broadcast_of_short_rows(length):
    for have in ((length,), (1,), (9_000, 1), (9_000, length), (1, length)):
        x = special(have, "f8", 0)
        np.testing.assert_array_equal(broadcast_array(x, to=(9_000, length)), np.broadcast_to(x, (9_000, length)))


def distances(xp):
    """Return a function of points and a centre, of which every step is computed column by column."""

    def total(points, centre):
        away = (points - centre) / xp.sqrt(xp.sum(points * points, axis=-1, keepdims=True) + 1.0)
        return xp.sum(xp.sum(away * away, axis=-1) ** 2)

    return total


@pytest.mark.parametrize("length", LENGTHS)
def test_derivatives_match_few_rows(length):
    """Compare a few rows, which NumPy computes, with the same rows repeated many times."""
    few, centre = np.random.default_rng(0).normal(size=(5, length)), np.arange(1.0, 1.0 + length)
    many = np.tile(few, (2_000, 1))
    fun = distances(fnp)
    for argnum, scale in ((0, 1), (1, 2_000)):
        got, want = grad(fun, argnum)(many, centre), grad(fun, argnum)(few, centre)
        np.testing.assert_allclose(got[:5] if argnum == 0 else got, want * scale, rtol=1e-11)
    push = lambda x: jvp(fun, (x, centre), (np.ones_like(x), centre))[1]
    np.testing.assert_allclose(push(many), 2_000 * push(few), rtol=1e-11)
    curved = lambda x: grad(lambda x: fnp.sum(grad(fun)(x, centre) ** 2))(x)
    np.testing.assert_allclose(curved(many)[:5], curved(few), rtol=1e-10)
    np.testing.assert_allclose(
        vmap(grad(fun), (0, None))(many[None], centre)[0, :5], grad(fun)(few, centre), rtol=1e-11
    )


def test_results_are_writable_and_unshared():
    points, centre = np.ones((9_000, 3)), np.arange(3.0)

    def fun(points, centre):
        away = points - centre
        kept = away * away
        away[0] = 0.0
        return fnp.sum(kept) + fnp.sum(away)

    value, pullback = vjp(fun, points, centre)
    assert value == 9_000 * (1 + 0 + 1) + 8_999 * (1 + 0 - 1)
    np.testing.assert_array_equal(pullback(1.0)[0][:2], [[2.0, 0.0, -2.0], [3.0, 1.0, -1.0]])
    np.testing.assert_array_equal(points, np.ones((9_000, 3)))
