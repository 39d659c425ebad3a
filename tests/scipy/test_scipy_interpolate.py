"""Interpolation: SciPy's values everywhere, derivatives, axes, points outside, errors."""

import numpy as np
import pytest
import scipy.interpolate
import scipy.spatial
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, jacobian, vjp, vmap
from funcgrad.errors import ConversionError, InputError, ShapeError
from funcgrad.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.array([0.1, 0.7, 1.6, 2.2, 3.1, 3.3])
Y = RNG.normal(size=6)
INSIDE = np.linspace(0.15, 3.25, 14)
WIDE = np.linspace(-0.5, 4.0, 19)

CONDITIONS = [
    "not-a-knot",
    "natural",
    "clamped",
    ((1, 0.3), (2, -0.2)),
    ("natural", "not-a-knot"),
]


@pytest.mark.parametrize("bc_type", CONDITIONS, ids=str)
@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_cubic_splines_match_scipy(bc_type, n):
    x, y = X[:n], Y[:n]
    ours, theirs = (m.CubicSpline(x, y, bc_type=bc_type) for m in (interpolate, scipy.interpolate))
    for nu in range(5):
        np.testing.assert_allclose(ours(WIDE, nu), theirs(WIDE, nu), rtol=1e-9, atol=1e-9)
    assert np.isnan(ours(WIDE, extrapolate=False)[0])
    check_grads(lambda x, y, q: interpolate.CubicSpline(x, y, bc_type=bc_type)(q), (x, y, INSIDE[:2]), order=2)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_periodic_splines_match_scipy(n):
    y = np.concatenate([RNG.normal(size=(n - 1, 2)), np.zeros((1, 2))])
    y[-1] = y[0]
    ours, theirs = (m.CubicSpline(X[:n], y, bc_type="periodic") for m in (interpolate, scipy.interpolate))
    for nu in range(4):
        np.testing.assert_allclose(ours(WIDE, nu), theirs(WIDE, nu), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours(WIDE, extrapolate=True), theirs(WIDE, extrapolate=True), rtol=1e-9, atol=1e-9)

    def closed(x, y, q):
        return interpolate.CubicSpline(x, fnp.concatenate([y, y[:1]]), bc_type="periodic")(q)

    check_grads(closed, (X[:n], y[:-1], WIDE[[0, 7, 17]]), order=2)
    batch = vmap(closed, in_axes=(None, 1, None))(X[:n], y[:-1], WIDE)
    np.testing.assert_allclose(batch, ours(WIDE).T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_other_interpolators_match_scipy(n):
    x, y = X[:n], Y[:n]
    for make in (
        lambda m, x, y: m.PchipInterpolator(x, y),
        lambda m, x, y: m.Akima1DInterpolator(x, y, extrapolate=True),
        lambda m, x, y: m.Akima1DInterpolator(x, y, method="makima", extrapolate=True),
    )[: 3 if n > 2 or at_least(scipy, "1.16.0") else 1]:  # before, Akima's curve through two points was no line
        ours, theirs = (make(m, x, y) for m in (interpolate, scipy.interpolate))
        for nu in range(3):
            np.testing.assert_allclose(ours(WIDE, nu), theirs(WIDE, nu), rtol=1e-9, atol=1e-9)
        check_grads(lambda x, y, q, make=make: make(interpolate, x, y)(q), (x, y, X[:1] + 0.2), order=2)
    level = interpolate.PchipInterpolator(X, np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0]))
    assert np.ptp(level(np.linspace(0.7, 2.2, 5))) == 0


@pytest.mark.parametrize(
    "kind",
    ["linear", "slinear", "quadratic", "cubic", 0, 1, 2, 4, "previous", "next", "nearest", "nearest-up", "zero"],
)
def test_interp1d_matches_scipy(kind):
    y = RNG.normal(size=(2, 6, 3))
    order = RNG.permutation(6)
    for axis, given in ((1, y), (-1, np.moveaxis(y, 1, -1))):
        shuffled = np.take(given, order, axis)
        ours, theirs = (m.interp1d(X[order], shuffled, kind, axis) for m in (interpolate, scipy.interpolate))
        for q in (INSIDE, INSIDE.reshape(2, 7), X, 1.0):
            np.testing.assert_allclose(ours(q), theirs(q), rtol=1e-9, atol=1e-12)
    for options in (
        {"fill_value": (1.0, 2.0), "bounds_error": False},
        {"fill_value": "extrapolate"},
        {"bounds_error": False},
    ):
        ours, theirs = (m.interp1d(X, Y, kind, **options) for m in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours(WIDE), theirs(WIDE), rtol=1e-9, atol=1e-12)


def test_splines_of_interp1d_are_made_once(monkeypatch):
    make, made = scipy.interpolate.make_interp_spline, []
    monkeypatch.setattr(scipy.interpolate, "make_interp_spline", lambda *args: made.append(args) or make(*args))
    line = interpolate.interp1d(X, Y, "quadratic")
    for q in INSIDE[:3]:
        line(q)
    assert len(made) == 1


def test_axes_and_batches():
    y = RNG.normal(size=(2, 6, 3))
    for q in (INSIDE, INSIDE.reshape(2, 7), 1.0):
        ours, theirs = (m.CubicSpline(X, y, axis=1)(q) for m in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    batch = vmap(lambda y: interpolate.CubicSpline(X, y)(INSIDE), in_axes=0)(y[:, :, 0])
    np.testing.assert_allclose(batch, scipy.interpolate.CubicSpline(X, y[:, :, 0], axis=1)(INSIDE), atol=1e-12)
    slope = vmap(grad(interpolate.CubicSpline(X, Y)))(INSIDE)
    np.testing.assert_allclose(slope, scipy.interpolate.CubicSpline(X, Y)(INSIDE, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grid_interpolation_matches_scipy(method):
    points, values = (X, X[:3], X[:4]), RNG.normal(size=(6, 3, 4, 2))
    q = RNG.uniform(0.2, 1.5, size=(5, 2, 3))
    ours, theirs = (m.RegularGridInterpolator(points, values, method) for m in (interpolate, scipy.interpolate))
    np.testing.assert_allclose(ours(q), theirs(q), rtol=1e-12)
    wide = RNG.uniform(-1.0, 4.0, size=(9, 3))
    wide[3, 1] = wide[5, 2] = np.nan
    for fill_value in (np.nan, None, 7.0):
        options = {"method": method, "bounds_error": False, "fill_value": fill_value}
        ours, theirs = (m.RegularGridInterpolator(points, values, **options) for m in (interpolate, scipy.interpolate))
        np.testing.assert_allclose(ours(wide), theirs(wide), rtol=1e-12)
        narrow = [
            m.RegularGridInterpolator(points, values.astype("f"), **options) for m in (interpolate, scipy.interpolate)
        ]
        assert narrow[0](wide).dtype == narrow[1](wide).dtype
    pair = interpolate.RegularGridInterpolator(points[:2], values[:, :, 0, 0], method)((0.8, np.array([0.2, 1.0])))
    assert pair.shape == (2,)


@pytest.mark.parametrize("method", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("bounds_error", [True, False])
def test_descending_grids(method, bounds_error):
    points, values = (X[::-1], X[:4]), RNG.normal(size=(6, 4))
    q = np.array([[0.3, 0.2], [2.7, 1.5], [1.7, 1.1]])

    def fun(x, v, q):
        return scipy.interpolate.RegularGridInterpolator((x, points[1]), v, method, bounds_error)(q)

    exact = interpolate.RegularGridInterpolator((X, points[1]), values[::-1], method)(q)
    np.testing.assert_allclose(fun(points[0], values, q), exact, rtol=1e-4)  # SciPy solves in steps
    check_grads(lambda v, q: fun(points[0], v, q), (values, q), order=1)
    np.testing.assert_array_equal(interpolate.RegularGridInterpolator(points, values, method)(q), exact)
    at = lambda v: scipy.interpolate.interpn(points, v, q, method, bounds_error)
    np.testing.assert_array_equal(vmap(at)(np.stack([values, values])), [exact, exact])
    if method != "cubic":
        check_grads(lambda x: fun(x, values, q), (points[0],), order=1)


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic"])
def test_grid_splines_match_scipy(method):
    grid, rng = [np.linspace(0.0, 1.0, n) ** 1.3 for n in (7, 6)], np.random.default_rng(1)
    values, places = rng.normal(size=(7, 6, 2)), np.array([[0.45, 0.5], [0.6, 0.3]])
    exact = scipy.interpolate.RegularGridInterpolator(grid, values, f"{method}_legacy", False, None)
    ours = interpolate.RegularGridInterpolator(grid, values, method, False, None)
    np.testing.assert_allclose(ours(places), exact(places), rtol=1e-9)
    slopes = jacobian(lambda q: ours(q[None])[0, 0])(places[0])
    np.testing.assert_allclose(ours(places[:1], nu=[1, 0])[0, 0], slopes[0], rtol=1e-9)
    check_grads(lambda v, q: interpolate.RegularGridInterpolator(grid, v, method, False, None)(q), (values, places))
    np.testing.assert_allclose(jacobian(lambda q: exact(q[None])[0, 0])(places[0]), slopes, rtol=1e-9)  # made outside
    with pytest.raises(ValueError, match="Can only compute derivatives"):
        interpolate.RegularGridInterpolator(grid, values)(places, nu=[1, 0])
    with pytest.raises(ValueError, match="derivative orders"):
        ours(places, nu=1)


@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic", "pchip"])
def test_grid_splines_have_derivatives_in_the_grid(method):
    grid, rng = [np.linspace(0.0, 1.0, n) ** 1.3 for n in (7, 6)], np.random.default_rng(1)
    values, places = rng.normal(size=(7, 6)), np.array([[0.45, 0.5], [0.6, 0.3]])
    fun = lambda x, v, q: scipy.interpolate.RegularGridInterpolator((x, grid[1]), v, method)(q)
    check_grads(fun, (grid[0], values, places), order=1)


def test_monotone_grid_interpolation_matches_scipy():
    grid, rng = [np.linspace(0.0, 1.0, n) ** 1.3 for n in (5, 4, 6)], np.random.default_rng(1)
    values, places = rng.normal(size=(5, 4, 6, 2)), rng.uniform(size=(3, 2, 3))
    ours, theirs = (m.RegularGridInterpolator(grid, values, "pchip") for m in (interpolate, scipy.interpolate))
    np.testing.assert_allclose(ours(places), theirs(places), rtol=1e-12)
    with pytest.raises(ValueError, match="4 points per dimension"):
        interpolate.RegularGridInterpolator((X[:3],), Y[:3], "pchip")
    with pytest.raises(ValueError, match="real values"):
        interpolate.RegularGridInterpolator((X,), Y + 0j, "pchip")


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("at", [0.0, 0.5, 3.0, 6.1, 6.9])
def test_knots_of_periodic_splines(k, at):
    x, y = np.array([0.0, 0.8, 1.7, 2.9, 3.3, 4.6, 5.9, 7.0]), np.array([0.3, 1.2, -0.4, 0.8, 0.1, -0.9, 0.5, 0.3])
    t, c, _ = scipy.interpolate.splrep(x, y, per=True, k=k, s=0)

    def inserted(c):
        knots, coefficients, _ = scipy.interpolate.insert(at, (t, c, k), min(k, 2), per=True)
        return knots, coefficients[: len(knots) - k - 1]  # SciPy does not set the others

    for ours, theirs in zip(vjp(inserted, c)[0], inserted(c), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
    check_grads(inserted, (c,), order=1)


@pytest.mark.parametrize("k", [5, 7])
def test_periodic_splines_through_few_points(k):
    x, y = np.array([0.0, 1.5, 2.9, 4.6, 7.0]), np.array([0.3, 1.2, -0.4, 0.8])
    fun = lambda x, y: scipy.interpolate.make_interp_spline(x, np.append(y, y[0]), k, bc_type="periodic")(1.7)
    np.testing.assert_allclose(vjp(fun, x, y)[0], fun(x, y), rtol=1e-9)
    check_grads(fun, (x, y), order=1)


def test_nearest_interpolation_derivatives():
    rows = jacobian(lambda y: interpolate.interp1d(X, y, "nearest")(INSIDE[:2]))(Y)
    assert rows.sum(axis=1).tolist() == [1.0, 1.0]
    assert grad(lambda q: interpolate.interp1d(X, Y, "previous")(q))(1.0) == 0.0


POINTS = RNG.normal(size=(20, 2))
VALUES = RNG.normal(size=(20, 3))
PLACES = RNG.normal(size=(7, 2)) * 0.3


@pytest.mark.parametrize("rescale", [False, True])
def test_scattered_interpolation_matches_scipy(rescale):
    wide = PLACES * [4.0, 200.0]
    ours, theirs = [
        m.LinearNDInterpolator(POINTS * [1.0, 50.0], VALUES, rescale=rescale) for m in (interpolate, scipy.interpolate)
    ]
    np.testing.assert_allclose(ours(wide), theirs(wide), rtol=1e-9)
    mesh = scipy.spatial.Delaunay(POINTS)
    ours, theirs = [m.LinearNDInterpolator(mesh, VALUES[:, 0], 0.5) for m in (interpolate, scipy.interpolate)]
    np.testing.assert_allclose(ours(*wide.T), theirs(*wide.T), rtol=1e-9)


def test_scattered_interpolation_has_derivatives():
    check_grads(lambda points: interpolate.LinearNDInterpolator(points, VALUES)(PLACES).sum(), (POINTS,))
    check_grads(lambda q: interpolate.LinearNDInterpolator(POINTS, VALUES)(q).sum(), (PLACES,))

    def f(q):
        return fnp.sum(interpolate.LinearNDInterpolator(POINTS, VALUES[:, 0], 0.0)(q) ** 2)

    batch = np.stack([PLACES, PLACES * 9.0])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(q) for q in batch], rtol=1e-9, atol=1e-12)
    with pytest.raises(ConversionError):
        vmap(lambda points: interpolate.LinearNDInterpolator(points, VALUES)(PLACES))(np.stack([POINTS, POINTS]))


@pytest.mark.parametrize("rescale", [False, True])
def test_clough_tocher_matches_scipy(rescale):
    wide, exact = PLACES * [4.0, 200.0], {"tol": 1e-15, "maxiter": 10_000}
    points, tall = POINTS * [1.0, 50.0], VALUES + 1j * VALUES[::-1]
    for values in (VALUES, VALUES[:, 0], tall, np.arange(20)):
        ours = interpolate.CloughTocher2DInterpolator(points, values, rescale=rescale)(wide)
        theirs = scipy.interpolate.CloughTocher2DInterpolator(points, values, rescale=rescale, **exact)(wide)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    ours, theirs = [
        m.CloughTocher2DInterpolator(tuple(points.T), VALUES[:, 0], 0.5, rescale=rescale, **exact)(*wide.T)
        for m in (interpolate, scipy.interpolate)
    ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert interpolate.CloughTocher2DInterpolator(POINTS, VALUES[:, 0])([0.0, 0.0]).shape == (1,)
    assert interpolate.LinearNDInterpolator(POINTS, VALUES)([0.0, 0.0]).shape == (1, 3)


def test_clough_tocher_with_duplicate_points():
    points, values = np.vstack([POINTS, POINTS[:2]]), np.vstack([VALUES, VALUES[:2]])
    theirs = scipy.interpolate.CloughTocher2DInterpolator(points, values, tol=1e-15, maxiter=10_000)(PLACES)
    np.testing.assert_allclose(interpolate.CloughTocher2DInterpolator(points, values)(PLACES), theirs, rtol=1e-9)


@pytest.mark.parametrize("rescale", [False, True])
def test_clough_tocher_has_derivatives(rescale):
    def f(points, values, q):
        found = interpolate.CloughTocher2DInterpolator(points, values, 0.0, rescale=rescale)(q)
        return fnp.sum(found * np.arange(1.0, 22.0).reshape(7, 3))

    check_grads(f, (POINTS, VALUES, PLACES))
    batch = np.stack([PLACES, PLACES * 9.0])
    rows = [grad(f, argnums=2)(POINTS, VALUES, q) for q in batch]
    batched = vmap(grad(f, argnums=2), in_axes=(None, None, 0))(POINTS, VALUES, batch)
    np.testing.assert_allclose(batched, rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("name", ["LinearNDInterpolator", "CloughTocher2DInterpolator"])
def test_interpolators_made_outside(name, rescale):
    surface = getattr(scipy.interpolate, name)(POINTS * [1.0, 50.0], VALUES, rescale=rescale)
    ours = getattr(interpolate, name)(POINTS * [1.0, 50.0], VALUES, rescale=rescale)
    place = np.array([0.1, -3.0])
    found = jacobian(lambda q: surface(q)[0])(place)
    np.testing.assert_allclose(found, jacobian(lambda q: ours(q)[0])(place), rtol=1e-9)
    assert np.abs(found).min() > 0


def test_errors():
    with pytest.raises(ShapeError, match="lie in a plane"):
        interpolate.CloughTocher2DInterpolator(RNG.normal(size=(9, 3)), np.ones(9))
    with pytest.raises(ShapeError, match="one entry for each point"):
        interpolate.LinearNDInterpolator(POINTS, VALUES[:4])
    with pytest.raises(ShapeError, match="must be 2 long"):
        interpolate.LinearNDInterpolator(POINTS, VALUES)([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="outside the interpolation range"):
        interpolate.interp1d(X, Y)(9.0)
    with pytest.raises(ValueError, match="out of bounds"):
        interpolate.RegularGridInterpolator((X,), Y)([9.0])
    with pytest.raises(InputError, match="kind must be"):
        interpolate.interp1d(X, Y, "quartic")
    with pytest.raises(ValueError, match="Method 'other' is not defined"):
        interpolate.RegularGridInterpolator((X,), Y, "other")
    with pytest.raises(ShapeError, match="method must be akima"):
        interpolate.Akima1DInterpolator(X, Y, method="other")
    with pytest.raises(ShapeError, match="bc_type must be"):
        interpolate.CubicSpline(X, Y, bc_type="other")
    with pytest.raises(ShapeError, match="must be equal"):
        interpolate.CubicSpline(X, Y, bc_type="periodic")
    with pytest.raises(ShapeError, match="x must rise"):
        interpolate.CubicSpline(X[::-1], Y)
    with pytest.raises(ShapeError, match="as long as y"):
        interpolate.PchipInterpolator(X, Y[:3])
    with pytest.raises(ShapeError, match="at least two points"):
        interpolate.PchipInterpolator(X[:1], Y[:1])
    with pytest.raises(ShapeError, match="must rise or fall along axis 1"):
        interpolate.RegularGridInterpolator((X, [0.0, 2.0, 1.0]), np.ones((6, 3)))
    with pytest.raises(ShapeError, match="must begin with the axes"):
        interpolate.RegularGridInterpolator((X, X), Y)
    with pytest.raises(ShapeError, match="last axis of xi"):
        interpolate.RegularGridInterpolator((X, X), np.ones((6, 6)))(np.ones(3))


CURVES = [
    ("CubicSpline", {}),
    ("CubicSpline", {"bc_type": "periodic"}),
    ("CubicSpline", {"axis": 1}),
    ("CubicSpline", {"extrapolate": False}),
    ("PchipInterpolator", {}),
    ("Akima1DInterpolator", {}),
]


@pytest.mark.parametrize(("name", "options"), CURVES, ids=str)
def test_derivative_and_integral_methods_match_scipy(name, options):
    y = np.stack([Y, np.cos(X)], axis=1)
    y[-1] = y[0]
    y = y.T if "axis" in options else y
    ours, theirs = (getattr(m, name)(X, y, **options) for m in (interpolate, scipy.interpolate))
    for order in (-2, -1, 0, 1, 2, 3, 4):
        np.testing.assert_allclose(
            ours.derivative(order)(WIDE), theirs.derivative(order)(WIDE), rtol=1e-9, atol=1e-9, equal_nan=True
        )
        np.testing.assert_allclose(ours.antiderivative(order)(INSIDE), theirs.antiderivative(order)(INSIDE), atol=1e-9)
    for a, b in ((0.2, 2.9), (2.9, 0.2), (0.7, 0.7), (-0.5, 3.5), (-9.2, 17.3)):
        np.testing.assert_allclose(ours.integrate(a, b), theirs.integrate(a, b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "Akima1DInterpolator"])
def test_integrals_of_curves_through_tracers(name):
    def f(y, b):
        curve = getattr(scipy.interpolate, name)(X, y)
        return curve.derivative()(b) + curve.integrate(0.2, b) + curve.antiderivative()(1.0)

    check_grads(f, (Y, 2.5), order=2)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_nearest_values_match_scipy_dtype(dtype):
    points, values = np.array([[0.0, 0.0], [1.0, 0.0], [0.2, 1.0]]), np.arange(3).astype(dtype)
    nearest = lambda v: scipy.interpolate.griddata(points, v, np.array([[0.9, 0.2]]), method="nearest")
    found = vjp(nearest, values)[0]
    assert found.dtype == nearest(values).dtype
    assert found == nearest(values)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "Akima1DInterpolator"])
def test_coefficients_are_an_array_that_can_be_written_to(name):
    make = getattr(scipy.interpolate, name)
    np.testing.assert_allclose(getattr(interpolate, name)(X, Y).c, make(X, Y).c, rtol=1e-9, atol=1e-9)

    def scaled(q):
        curve = make(X, Y)
        before = curve(q).sum()
        curve.c *= 3.0
        curve.c[3, 0] = q[0]
        return before * curve(q).sum() + curve.derivative()(q).sum()

    check_grads(scaled, (INSIDE[:3],), order=2)
    np.testing.assert_allclose(vjp(scaled, INSIDE[:3])[0], scaled(INSIDE[:3]), rtol=1e-9)


@pytest.mark.parametrize("method", ["linear", "nearest", "cubic", "pchip"])
@pytest.mark.parametrize("at", [[1.5, 2.2], [1.5], [[1.5], [2.2]]], ids=str)
def test_grids_of_one_axis(method, at):
    grid, values = (np.arange(5.0),), np.array([1.0, -0.5, 0.3, 2.0, 1.1])
    fun = lambda v: scipy.interpolate.RegularGridInterpolator(grid, v, method=method)(at)
    np.testing.assert_allclose(vjp(fun, values)[0], fun(values), rtol=1e-12)
    check_grads(fun, (values,), order=1)


def test_conditions_of_a_spline_are_one_for_each_end():
    with pytest.raises(ShapeError, match="one condition for each end, got 1"):
        grad(lambda y: scipy.interpolate.CubicSpline(np.arange(4.0), y, bc_type=[(1, 0.0)])(0.5))(np.ones(4))
