"""Functions of libraries that programs seldom call, in unchanged code: both modes, second derivatives and batches."""

import cmath
import collections.abc
import math
import statistics
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.cluster.hierarchy
import scipy.cluster.vq
import scipy.interpolate
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.special
import scipy.stats
from helpers import differences
from numpy import ma
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

from funcgrad import grad, hessian, jacfwd, jit, jvp, vmap

X, Y = np.array([0.7, 1.3, 0.4, 2.1]), np.array([0.3, 1.0, 2.2, 2.9])
TIMES, PLACES = np.arange(4.0), ([0, 1, 2, 0], [1, 2, 0, 2])


def written_flat(x):
    z, w, one, two = np.zeros(4), x * 1.0, np.zeros(()), np.zeros(())
    z.flat[np.argsort(x)] = x * 2.0
    w.flat[x > 1.0] = x[:2] ** 2
    w.flat[np.argmax(x)] = 7.0 * x[0]
    one.flat = [x[0] * x[1]]
    np.put(one, 0, one * 3.0)
    np.put(one, [0], [one * 2.0, 1.0])
    two.flat = x[2] ** 2
    np.place(two, np.array(True), two * x[0])
    numbers = np.zeros(4)
    numbers[:] = np.array(["1.5", "2", "3", "4"])
    return z @ x + w @ x + one + two + numbers @ x


def written_where_parts_do_not_overlap(x):
    z = np.concatenate([x, x**2])
    odd, even = z[::2], z[1::2]
    odd[np.array([True, True, False, False])] = even[:2]
    return z @ np.arange(8.0)


def written_to_tuples(x):
    clipped, whole, parts, running = np.zeros(4), np.zeros(4), np.zeros(2), np.zeros(4)
    np.clip(x, 0.5, 2.0, out=(clipped,))
    np.fix(x, out=(whole,))
    np.add.reduceat(x * x, [0, 1], out=(parts,))
    np.add.accumulate(x, out=(running,))
    return (clipped * running) @ (x + whole) + parts.prod()


def counted_positions(x):
    places, out = np.argsort(x), np.zeros(())
    middle = np.nanmedian(places) + np.nanmedian(places, out=out) + out
    parts = (
        np.nanmax(places) + np.nanmin(places, initial=-3) + np.nanmean(places) + np.nanvar(places) + np.nansum(places)
    )
    between = np.percentile(places, [30, 50])[0] * np.quantile(places, 0.3)
    return (middle * x[0] + parts) * x[1] + between * x[2] ** 2


def quantiles_at_positions(x):
    places = np.argsort(x)
    whole = np.quantile(x, places // 3, method="hazen").sum() * np.quantile(x, 1, method="hazen")
    return whole + np.percentile(x, 30 + places, method="weibull") @ x + np.quantile(x, np.array([0, 1])) @ x[:2]


def bins_of_positions(x):
    places = np.argsort(x)
    found, edges = np.histogram(places, 3, weights=x)
    return found @ edges[:3] + np.histogram_bin_edges(places, 2) @ x[:3]


def numbers_alone(x):
    y = np.zeros(4)
    y[0] = x[0]
    product = np.vectorize(lambda a, b: a * b, excluded={0, 1})
    walk = np.nditer([x, None])
    while not walk.finished:
        walk[1] = walk[0] * walk[0]
        walk.iternext()
    return product(x[0], x[1]) * y.sum() + walk.operands[1] @ x


def series_of_order_zero(x):
    whole = chebyshev.chebder(x, 0) @ x + chebyshev.chebpow(x, 0)[0] * x[0] + (Polynomial(x) ** 0).coef[0] * x[1] ** 2
    return whole + chebyshev.chebtrim(x, 5.0)[0] * x[2]


def fits_in_full(x):
    values = np.append(x, x[:2] ** 2)
    c, (left, rank, sizes, _) = chebyshev.chebfit(np.arange(6.0), values, 1, full=True)
    fitted, (missed, *_) = Chebyshev.fit(np.arange(6.0), values, [0, 2], full=True)
    return (c @ c) * left[0] * sizes[0] * rank + fitted.coef.sum() * missed[0]


def masked_put(x):
    a = ma.masked_less(x**2, 0.5)
    ma.put(a, [0, 2], x[:2] * 3.0)
    return a.sum()


def masked_all(x):
    a = ma.masked_all(4)
    a[:2] = x[:2] ** 2
    return a.sum()


def masked_reductions(x):
    a = ma.masked_less(x, 0.5)
    return a.any() * a[0] + a.all() * a[1] ** 2 + a[a.argmin()] * 2.0


def clusters(x):
    tree = scipy.cluster.hierarchy.linkage(np.stack([x, x**2], axis=1), "average")
    numbers = scipy.cluster.hierarchy.fcluster(tree, 2, "maxclust")
    return tree[-1, 2] * numbers.sum() + tree[0, 2] * scipy.cluster.hierarchy.leaders(tree, numbers)[0].sum()


def sparse_resized(x):
    A = scipy.sparse.csr_matrix((x**2, PLACES), (3, 3))
    A.resize(2, 3)
    return (A @ np.array([1.0, 2.0, 3.0])).sum()


def sparse_members(x):
    A = scipy.sparse.csr_matrix((x**2, PLACES), (3, 3))
    parts = A.imag.sum() + A.T.copy().tocoo().sum() + A.sorted_indices().data[1]
    return parts + A.transpose().toarray()[1, 0] * A.size + A.getnnz() + A.getnnz(axis=0) @ np.arange(3.0) * x[0]


WEIGHTS = np.arange(1.0, 5.0).reshape(2, 2)


def shuffled(x, axis):
    m = x.reshape(2, 2) * math.sin(x[0])
    np.random.default_rng(3).shuffle(m, axis=axis)
    return (m * WEIGHTS).sum()


def permuted(x, axis):
    m, out = x.reshape(2, 2) * math.sin(x[0]), np.zeros((2, 2))
    np.random.default_rng(4).permuted(m, axis=axis, out=m)
    np.random.default_rng(4).permuted(m * m, axis=axis, out=out)
    return ((np.random.default_rng(5).permuted(m, axis=axis) + out) * WEIGHTS).sum()


def permutation(x):
    m = x.reshape(2, 2) * math.sin(x[0])
    return (np.random.default_rng(5).permutation(m, axis=1) * WEIGHTS).sum()


def drawn_columns(x):
    m = x.reshape(2, 2) * math.sin(x[0])
    return (np.random.default_rng(0).choice(m, 3, axis=1, p=[0.2, 0.8]) @ [1.0, 2.0, 4.0] * [1.0, 3.0]).sum()


def required(x):
    """``numpy.require`` returns a view that can be written to, and copies one that does not own its memory."""
    m = np.ones((4, 4))
    row, column = np.require(m[::-1][1], float, "W"), np.require(m[:, 0], requirements="O")
    row[0] += math.sin(x[0])
    column[1] *= x[1]
    return m.prod() * column.sum()


def close_to_real(x):
    """``numpy.real_if_close`` of a number returns an array without axes, which ``+=`` changes in place."""
    number = np.real_if_close(x[0] * (1 + 1e-18j))
    parts = [number]
    parts[0] += math.sin(x[1])
    return number * x[2]


def curves_at_a_number(x):
    """A curve at a number is an array without axes, which ``+=`` changes in place."""
    spline = scipy.interpolate.CubicSpline(TIMES, x)
    values = [spline(1.7), spline.integrate(0.0, 1.7), scipy.interpolate.interp1d(TIMES, x)(1.7)]
    values.append(scipy.interpolate.PchipInterpolator(TIMES, x).antiderivative()(1.7))
    values.append(scipy.interpolate.Akima1DInterpolator(TIMES, x).derivative()(1.7))
    total = 0.0
    for value in values:
        held = [value]
        held[0] += math.sin(x[0])
        total = total + value * held[0]
    return total


def rebuilt(fun):
    """Return a program that computes ``fun``, and cannot run as it is written."""

    def program(x):
        held = np.zeros(1)
        held[0] = x[0]
        return fun(x)

    return program


def draws_of_constants(x):
    return (
        x[:3] * np.random.default_rng(0).gamma(2.0, 2.0, 3) * np.random.default_rng(1).triangular(0.0, 1.0, 2.0, 3)
        + np.random.default_rng(2).multivariate_normal(np.zeros(3), np.eye(3), method="cholesky") * x[1:]
        + np.random.RandomState(3).multivariate_normal(np.zeros(3), np.eye(3)) * x[0]
    ).sum()


def constants_by_replaced_functions(x):
    solved = scipy.sparse.linalg.lsqr(np.diag(TIMES + 1.0), Y)[0]
    response = scipy.signal.freqresp(([1.0, 1.0], [1.0, 2.0, 2.0]), [0.5, 1.0])[1]
    without_edges = scipy.sparse.csgraph.shortest_path(np.diag(x))
    return solved @ x**2 + abs(response[1]) * x[0] * x[1] + np.isinf(without_edges).sum() * x[2]


PROGRAMS = {
    "harmonic_mean": lambda x: statistics.harmonic_mean(x) + statistics.harmonic_mean(list(x), [1, 2, 3, 4]),
    "covariance": lambda x: statistics.covariance(x, Y) * statistics.covariance(x, x**2),
    "correlation": lambda x: statistics.correlation(x, Y) + statistics.correlation(x**2, x),
    "slope and intercept": lambda x: (
        statistics.linear_regression(Y, x).slope * statistics.linear_regression(x, Y).intercept
    ),
    "mode": lambda x: statistics.mode([x[0], x[1], x[1] * 1.0, x[2]]) ** 2 + statistics.mode(x) * x[3],
    "multimode": lambda x: sum(statistics.multimode([x[0], x[2] * x[2], x[0] * 1.0, x[3], x[2] * x[2]])),
    "abstract classes of numbers": lambda x: sum(
        math.sin(v) * (2.0 if isinstance(v, (collections.abc.Iterable, str)) else v) for v in (x[0], x[1])
    ),
    "proportional": lambda x: statistics.linear_regression(x, Y, proportional=True)[0],
    "quantiles": lambda x: statistics.quantiles(x)[0] ** 2 + sum(statistics.quantiles(list(x), n=5)),
    "inclusive quantiles": lambda x: statistics.quantiles(x**2, n=3, method="inclusive")[0],
    "rebuilt quantiles": rebuilt(
        lambda x: (
            statistics.quantiles(x**2, n=7)[5] * statistics.quantiles(iter(x))[0]
            + statistics.quantiles(list(x), n=3, method="inclusive")[1]
        )
    ),
    "rebuilt means": rebuilt(
        lambda x: (
            statistics.geometric_mean(dict(enumerate(x)).values())
            + statistics.harmonic_mean(x, [1, 2, 3, 4])
            + statistics.fmean(v * v for v in x)
        )
    ),
    "nearest codes of numbers": lambda x: (
        (scipy.cluster.vq.vq(x, np.array([0.5, 1.7]))[1] ** 2).sum() + scipy.cluster.vq.vq(x**2, 1.1 * x[1:3])[1].prod()
    ),
    "energy distance of equal values": lambda x: scipy.stats.energy_distance([0.9, 0.9, 2.0], np.append(x, 0.9)) ** 2,
    "integer programs with constraints by place": lambda x: (
        scipy.optimize.milp(x, constraints=[np.ones((1, 4)), 1.5, 3.0], bounds=scipy.optimize.Bounds(0, 1)).fun ** 2
    ),
    "transposed coordinates": lambda x: scipy.sparse.csr_array(np.outer(x, x**2)).T @ x @ np.arange(4.0),
    "draws of constants": draws_of_constants,
    "rebuilt draws of constants": rebuilt(draws_of_constants),
    "constants by replaced functions": rebuilt(constants_by_replaced_functions),
    "cmath.isclose": lambda x: (
        x[0] ** 2 if cmath.isclose(complex(x[0], x[1]), complex(0.7, 1.3), rel_tol=0.1) else x[1]
    ),
    "siegelslopes": lambda x: (
        scipy.stats.siegelslopes(x**2, Y).slope + scipy.stats.siegelslopes(x, Y, method="separate").intercept
    ),
    "genhyperbolic": lambda x: (
        scipy.stats.genhyperbolic.cdf(0.3, x[0], x[1], x[2]) + scipy.stats.genhyperbolic.sf(0.1, x[0], x[1], x[2])
    ),
    "two normal variables": lambda x: scipy.stats.multivariate_normal.cdf(
        x[:2], [0.0, 0.0], [[1.0, x[2] / 2.0], [x[2] / 2.0, x[3]]]
    ),
    "clusters": clusters,
    "shuffled rows": lambda x: shuffled(x, 0),
    "shuffled columns": lambda x: shuffled(x, 1),
    "permuted": lambda x: permuted(x, None),
    "permuted rows": lambda x: permuted(x, 1),
    "permutation": permutation,
    "drawn columns": drawn_columns,
    "unique_values": lambda x: (np.unique_values(np.arange(4)) * np.sin(x)).sum(),
    "require": required,
    "curves at a number": curves_at_a_number,
    "real_if_close": close_to_real,
    "masked_equal": lambda x: ma.masked_equal(np.append(x**2, 5.0), 5.0).sum(),
    "masked_values": lambda x: ma.masked_values(np.append(x**2, 5.0), 5.0).sum(),
    "masked append": lambda x: (ma.append(ma.masked_less(x, 0.5), x) ** 2).sum(),
    "written flat": written_flat,
    "written where parts do not overlap": written_where_parts_do_not_overlap,
    "written to tuples": written_to_tuples,
    "counted positions": counted_positions,
    "quantiles at positions": quantiles_at_positions,
    "bins of positions": bins_of_positions,
    "numbers alone": numbers_alone,
    "series of order zero": series_of_order_zero,
    "fits in full": fits_in_full,
    "einsum in a dtype": lambda x: np.einsum("i,i->i", x, x, dtype=np.float64) @ np.einsum("i,j->i", x, x, dtype=float),
    "positions in the flattened array": lambda x: (
        np.take_along_axis(x.reshape(2, 2), np.array([2, 0, 1]), None) @ x[:3] ** 2
    ),
    "fractions among numbers": lambda x: (
        np.array([[x[0], 1.0], np.array([Fraction(1, 2), Fraction(1, 3)], dtype=object)], dtype=float).sum() * x[1]
    ),
    "logsumexp of complex numbers": lambda x: (
        np.real(scipy.special.logsumexp(x + 1j * x[::-1], b=np.arange(1.0, 5.0))) * x[0]
        + np.imag(scipy.special.logsumexp(np.outer(x, 1j * x), b=x, axis=0)) @ x
    ),
    "masked put": masked_put,
    "masked_all": masked_all,
    "masked reductions": masked_reductions,
    "sparse members": sparse_members,
    "sparse resize": sparse_resized,
    "splrep": lambda x: scipy.interpolate.splev(1.1, scipy.interpolate.splrep(TIMES, x**2)),
    "PPoly of a spline": lambda x: scipy.interpolate.PPoly.from_spline(scipy.interpolate.splrep(TIMES, x**2))(0.3),
    "BPoly of derivatives": lambda x: scipy.interpolate.BPoly.from_derivatives(
        [0.0, 1.0, 2.0], [[x[0] ** 2, x[1]], [x[2], x[3]], [x[0], x[2]]]
    )(0.6),
    "splinef2d": lambda x: scipy.interpolate.interpn((TIMES, TIMES), np.outer(x, x), [[1.5, 2.2]], method="splinef2d")[
        0
    ],
    "rows of a frame": lambda x: pd.DataFrame({"a": x, "b": x**2}).apply(lambda row: row * row["a"], axis=1)["b"].sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    slope, bend = grad(f)(X), hessian(f)(X)
    np.testing.assert_allclose(f(X), vmap(f)(X[None])[0], rtol=1e-9)
    np.testing.assert_allclose(slope, differences(f, X, 5e-4), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jacfwd(f)(X), slope, rtol=1e-9, atol=1e-12)
    rows = [(grad(f)(X + 1e-5 * e) - grad(f)(X - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    np.testing.assert_allclose(bend, rows, rtol=1e-4, atol=1e-4)
    xs = np.stack([X, X * 1.001])
    np.testing.assert_allclose(vmap(grad(f))(xs), [grad(f)(x) for x in xs], rtol=1e-7, atol=1e-9)


FAILING = {
    "no parts": lambda x: statistics.quantiles(x, n=0),
    "one number": lambda x: statistics.quantiles(list(x[:1])),
    "unknown method": lambda x: statistics.quantiles(x, method="other"),
    "variance": lambda x: statistics.variance(x[:1]),
    "stdev": lambda x: statistics.stdev(list(x[:1])),
    "lengths": lambda x: statistics.covariance(x, x[:2]),
    "equal numbers": lambda x: statistics.correlation((0 * x).tolist(), x.tolist()),
    "equal places": lambda x: statistics.linear_regression([1.0] * 4, x.tolist()),
    "negative numbers": lambda x: statistics.harmonic_mean(-x),
    "zeros": lambda x: statistics.geometric_mean(0 * x),
    "weights": lambda x: statistics.fmean(x, weights=[1.0, 2.0]),
    "sum of weights": lambda x: statistics.fmean(x, weights=0 * x),
    "rows": lambda x: statistics.mean(np.outer(x, x)),
    "dimensions": lambda x: math.dist(x, x[:2]),
}


#: Those that Python 3.13 and later compute.
ALLOWED = ("one number", "zeros") if sys.version_info >= (3, 13) else ()


@pytest.mark.parametrize("name", FAILING)
def test_errors_of_statistics_are_those_of_python(name):
    f = rebuilt(FAILING[name])
    if name in ALLOWED:
        with np.errstate(all="ignore"):  # the derivative at zeros is not finite
            np.testing.assert_allclose(jvp(f, (X,), (X,))[0], f(X))
        return
    with pytest.raises((ValueError, TypeError)) as expected:  # StatisticsError is a ValueError
        f(X)
    with pytest.raises(expected.type) as found:
        grad(f)(X)
    assert found.value.args[0].partition("\n")[0] == expected.value.args[0]


@pytest.mark.parametrize("fun", [lambda x: statistics.mean(x), lambda x: math.prod(x), lambda x: math.fsum(x)])
def test_infinite_results_of_sequences(fun):
    value, slope = jvp(rebuilt(fun), (np.append(X, np.inf),), (np.eye(5)[0],))
    assert value == np.inf
    assert slope > 0


def test_errors_of_statistics_in_a_batch():
    with pytest.raises(statistics.StatisticsError, match="at least 2 data points"):
        vmap(rebuilt(lambda x: statistics.variance(x[:1])))(np.stack([X, X + 1.0]))
    for fun in (statistics.harmonic_mean, statistics.geometric_mean):
        of_rows = vmap(rebuilt(lambda x, fun=fun: fun(x)))
        np.testing.assert_allclose(of_rows(np.stack([X, X + 1.0])), [fun(X), fun(X + 1.0)], rtol=1e-14)
        with pytest.raises(statistics.StatisticsError):
            of_rows(np.stack([-X, -X]))


@pytest.mark.parametrize("fun", [statistics.harmonic_mean, statistics.geometric_mean, math.exp, math.log, math.atan])
def test_recorded_functions_of_python_raise_the_same_errors(fun):
    """Functions in a derivative that takes the recorded number from outside compute on the recording."""
    of_sequence = fun.__module__ == "statistics"

    def f(x):
        return grad(rebuilt(lambda y: y[0] * (fun([x[0], 2.0]) if of_sequence else fun(x[0]))))(np.array([3.0]))[0]

    recorded = jit(f, backend="numpy")
    for number in (0.5, 2.5, -1.5, np.inf, 900.0, 0.75):
        x = np.array([number])
        try:
            expected = f(x)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                recorded(x)
        else:
            np.testing.assert_allclose(recorded(x), expected, rtol=1e-14)


def test_functions_for_domains_of_polynomials():
    utils = np.polynomial.polyutils

    def f(x):
        low, high = utils.getdomain([x, 2.0 * x, 1.0])
        return low + 3.0 * high + utils.mapdomain(np.array([x, 0.2]), [0.0, 1.0], [x, 3.0]).sum()

    assert grad(f)(0.3) == pytest.approx(differences(f, 0.3), rel=1e-8)
    assert hessian(f)(0.3) == pytest.approx(-2.0, rel=1e-12)


def test_isotonic_regression_builds_no_matrix_of_memberships():
    y = np.arange(2000.0) + 3 * np.sin(np.arange(2000.0))
    derivative = grad(lambda scale: np.sum(scipy.optimize.isotonic_regression(y * scale).x ** 2))
    derivative(1.1)
    tracemalloc.start()
    try:
        derivative(1.1)
        assert tracemalloc.get_traced_memory()[1] < 100 * y.nbytes
    finally:
        tracemalloc.stop()
