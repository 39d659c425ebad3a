"""Checks that raise an error for some values: a program recorded with other values raises the error too."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, jit
from funcgrad.scipy import interpolate, signal

X = np.random.default_rng(0).normal(size=6)
W = np.abs(X) + 0.1
EDGES, FALLING = np.array([-4.0, -1.0, 0.0, 4.0]), np.array([-4.0, 1.0, 0.0, 4.0])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0])
PLACES = np.array([0, 2, 1])
NAN, KNOTS = np.full(6, np.nan), np.arange(6.0)
CLOSED = np.array([1.0, 2.0, 0.5, 2.5, 3.0, 1.0])

#: Cases by name: a function, arguments that it accepts, and arguments that it refuses.
CASES = {
    "average": (lambda x, w: fnp.average(x, weights=w), (X, W), [(X, W * 0), (X, SIGNS)]),
    "average of columns": (lambda x, w: fnp.average(fnp.outer(x, x), 0, w), (X, W), [(X, W * 0)]),
    "cov": (grad(lambda x, w: fnp.sum(fnp.cov(x, aweights=w, ddof=0))), (X, W), [(X, -W), (X, W * 0)]),
    "quantile": (fnp.quantile, (X, 0.3), [(X, 1.3), (X, -0.1), (X, np.nan)]),
    "quantiles": (fnp.quantile, (X, np.array([0.3, 0.5])), [(X, np.array([0.3, 1.5])), (X, np.array([np.nan, 0.5]))]),
    "percentile": (fnp.percentile, (X, 30.0), [(X, 130.0)]),
    "nanquantile": (fnp.nanquantile, (X, 0.3), [(X, 1.3)]),
    "weighted quantile": (
        lambda x, w: fnp.quantile(x, 0.3, weights=w, method="inverted_cdf"),
        (X, W),
        [(X, -W), (X, W * 0), (X, NAN)],
    ),
    "histogram with edges": (lambda x, e: fnp.histogram(x, e)[0], (X, EDGES), [(X, FALLING)]),
    "histogram of a range": (
        lambda x, e: fnp.histogram(x, 3, (e[0], e[1]), weights=x)[0],
        (X, EDGES[::3]),
        [(X, -EDGES[::3]), (X, np.array([np.nan, 1.0]))],
    ),
    "histogram": (lambda x: fnp.histogram(x, 3)[0], (X,), [(NAN,), (X * np.inf,)]),
    "histogram2d": (lambda x, e: fnp.histogram2d(x, x, [e, e])[0], (X, EDGES), [(X, FALLING)]),
    "histogramdd": (lambda x, e: fnp.histogramdd(fnp.stack([x, x], 1), [e, e])[0], (X, EDGES), [(X, FALLING)]),
    "digitize": (fnp.digitize, (X, EDGES), [(X, FALLING)]),
    "bincount": (lambda i, x: fnp.bincount(i, x[:3]), (PLACES, X), [(PLACES - 1, X)]),
    "unravel_index": (
        lambda i, x: fnp.unravel_index(i, (2, 3))[1] + x[0],
        (PLACES, X),
        [(PLACES + 4, X), (PLACES - 1, X)],
    ),
    "ravel_multi_index": (
        lambda i, x: fnp.ravel_multi_index((i, i), (3, 3)) + x[0],
        (PLACES, X),
        [(PLACES + 1, X), (PLACES - 1, X)],
    ),
    "choose": (lambda i, x: fnp.choose(i, [x[:3], x[3:], x[:3]]), (PLACES, X), [(PLACES + 1, X)]),
    "interp of a period": (lambda x, p: fnp.interp(x, KNOTS, x, period=p), (X, 6.5), [(X, 0.0)]),
    "asarray_chkfinite": (fnp.asarray_chkfinite, (X,), [(NAN,)]),
    "filter": (grad(lambda a: fnp.sum(signal.lfilter_zi(np.ones(2), a))), (EDGES[1:3] - 1,), [(SIGNS[:2],)]),
    "spline": (lambda x, y: interpolate.CubicSpline(x, y)(0.5), (KNOTS, X), [(KNOTS[::-1].copy(), X), (KNOTS * 0, X)]),
    "closed spline": (
        lambda y: interpolate.CubicSpline(KNOTS, y, bc_type="periodic")(0.5),
        (CLOSED,),
        [(X,)],
    ),
    "interp1d": (lambda y, q: interpolate.interp1d(KNOTS, y)(q), (X, 2.5), [(X, 5.5), (X, -0.5)]),
    "grid": (
        lambda y, q: interpolate.RegularGridInterpolator((KNOTS,), y)(fnp.reshape(q, (1, 1))),
        (X, 2.5),
        [(X, 5.5), (X, -0.5)],
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("fun", "good", "bad"), CASES.values(), ids=CASES)
def test_program_raises_errors_of_function(fun, good, bad):
    fast = jit(fun, backend="numpy")
    expected = fun(*good)
    for wrong in bad:
        for _ in range(2):
            np.testing.assert_array_equal(fast(*good), expected)
        with pytest.raises(Exception) as theirs:  # noqa: PT011 - any error
            fun(*wrong)
        with pytest.raises(theirs.type) as ours:
            fast(*wrong)
        assert str(ours.value) == str(theirs.value)
    report = fast.report()
    assert not report.eager
    assert len(report.variants) == 1


def test_evenly_spaced_points_get_own_variant():
    """Check that evenly spaced points get another variant, since ``np.gradient`` has another formula for them."""
    fast = jit(fnp.gradient, backend="numpy")
    for points in (KNOTS, KNOTS**2, KNOTS * 0.1, np.linspace(0, 1, 6), KNOTS**3 + KNOTS):
        np.testing.assert_array_equal(fast(X, points), fnp.gradient(X, points))
    assert not fast.report().eager
    assert len(fast.report().variants) == 2
