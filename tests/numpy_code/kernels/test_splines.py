"""Splines of SciPy with traced data: their compiled parts have replacements with derivatives."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.interpolate as si
from helpers import close, differences

from funcgrad import check_grads, grad, jacfwd, jacobian, jit, jvp, stop_gradient, trace, value_and_grad, vjp, vmap
from funcgrad.errors import ConversionError, InputError
from funcgrad.numpy_code.kernels import spline_values

T = np.linspace(0.0, 1.0, 9)
AT = np.array([0.03, 0.31, 0.97])
Y = np.array([0.3, 1.2, 0.7, -0.4, 0.9, 1.1, 0.2, -0.3, 0.8])
Z = np.outer(Y, np.cos(Y[:7])) + Y[:7]
KNOTS = np.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.7, 1.0, 1.0, 1.0, 1.0])
C = np.array([0.4, 1.3, -0.2, 0.8, 0.5, 0.9, 0.0, 0.0, 0.0, 0.0])
WEIGHTS = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0, 1.0, 1.0])
D = np.sin(np.arange(12.0))
GRID = np.linspace(0.0, 2.0, 7)

PIECES, LINE = si.PchipInterpolator(T, Y), si.interp1d(T, Y, kind="cubic")


def nd(c):
    return si.NdBSpline((np.arange(6.0), np.arange(8.0)), c.reshape(3, 4, 1), k=(2, 3))


CASES = {
    "degree 2": (lambda y: si.splev(AT, si.splrep(T, y, k=2)), Y),
    "degree 4": (lambda y: si.splev(AT, si.splrep(T, y, k=4)), Y),
    "degree 5": (lambda y: si.splev(AT, si.splrep(T, y, k=5)), Y),
    "wider": (lambda y: si.splev(AT, si.splrep(T, y, xb=-0.5, xe=1.5)), Y),
    "knots": (lambda y: si.splev(AT, si.splrep(T, y, w=WEIGHTS, t=[0.4, 0.6])), Y),
    "residual": (lambda y: si.splrep(T, y, t=[0.4, 0.6], full_output=True)[1], Y),
    "univariate": (lambda y: si.InterpolatedUnivariateSpline(T, y, k=4).derivative()(AT), Y),
    "extended": (lambda y: si.InterpolatedUnivariateSpline(T, y, ext="const")(np.array([-0.2, 0.3, 1.4])), Y),
    "integral": (lambda y: si.UnivariateSpline(T, y, s=0).integral(0.2, 0.7), Y),
    "least squares": (lambda y: si.LSQUnivariateSpline(T, y, [0.3, 0.6], w=WEIGHTS)(AT), Y),
    "several": (lambda y: si.make_lsq_spline(T, np.stack([y, y**2], 1), KNOTS, w=WEIGHTS)(AT), Y),
    "normal equations": (lambda y: si.make_lsq_spline(T, y, KNOTS, method="norm-eq")(AT), Y),
    "inserted twice": (lambda c: si.insert(0.55, (KNOTS, c, 3), m=2)[1][:8], C),
    "surface": (lambda z: si.RectBivariateSpline(T, GRID, z, kx=2)(AT, AT), Z),
    "partial": (lambda z: si.RectBivariateSpline(T, GRID, z)(AT, AT, dx=1, dy=1), Z),
    "at points": (lambda z: si.RectBivariateSpline(T, GRID, z)(AT, AT[::-1], grid=False), Z),
    "partial at points": (lambda z: si.RectBivariateSpline(T, GRID, z).ev(AT, AT[::-1], dx=1), Z),
    "place": (lambda x: si.RectBivariateSpline(T, GRID, Z).ev(x, x**2), AT),
    "outside": (lambda x: si.RectBivariateSpline(T, GRID, Z)(x, [0.5]), np.array([-0.4, 0.5, 1.3])),
    "places of data": (lambda x: si.splev(AT, si.splrep(x, Y)), T),
    "interpolated there": (lambda x: si.make_interp_spline(x, Y, bc_type="natural")(AT), T),
    "nearest there": (lambda x: si.make_lsq_spline(x, Y, KNOTS, w=WEIGHTS)(AT), T * 0.98 + 0.01),
    "smoothed there": (lambda x: si.make_smoothing_spline(x, Y, lam=0.01, w=WEIGHTS)(AT), T),
    "hermite": (lambda x: si.CubicHermiteSpline(x, Y, C[:9] + 0.3)(AT), T),
    "knots of a spline": (
        lambda t: si.BSpline(np.append(np.zeros(4), np.append(t, np.ones(4))), C[:6], 3)(AT),
        AT[1:2] + np.array([0.0, 0.3]),
    ),
    "falling breaks": (
        lambda t: si.PPoly(np.array([Y[:3], Y[3:6]]), np.append(t[::-1], 0.0))(np.array([0.2, 0.5])),
        AT,
    ),
    "falling breaks, Bernstein": (
        lambda t: si.BPoly(np.array([Y[:3], Y[3:6]]), np.append(t[::-1], 0.0))(np.array([0.2, 0.5, 0.9])),
        AT,
    ),
    "integral over falling breaks": (
        lambda t: np.array(si.PPoly(np.array([Y[:3], Y[3:6]]), np.append(t[::-1], 0.0)).integrate(0.95, 0.1)),
        AT,
    ),
    "breaks of pieces": (lambda t: si.PPoly(np.array([Y[:3], Y[3:6]]), np.append(0.0, t))(np.array([0.2, 0.5])), AT),
    "breaks of bernstein": (lambda t: si.BPoly(np.array([Y[:3], Y[3:6]]), np.append(0.0, t))(np.array([0.2, 0.5])), AT),
    "basis": (lambda x: si.BSpline.design_matrix(x, KNOTS, 3).toarray(), AT),
    "zeros": (lambda y: si.sproot(si.splrep(T, y)), Y),
    "curve": (lambda y: np.concatenate(si.splev(AT, si.splprep([y, np.cos(3 * T)], s=0)[0])), Y),
    "parameter of a curve": (lambda y: si.splprep([y, np.cos(3 * T)], s=0)[1], Y),
    "volume": (lambda z: np.array(si.RectBivariateSpline(T, GRID, z).integral(0.1, 0.7, 0.3, 1.8)), Z),
    "near": (lambda y: si.make_splrep(T, y, s=0.5)(AT), Y),
    "near curve": (lambda y: si.make_splprep([y, np.cos(3 * T)], s=0.5)[0](AT), Y),
    "radial": (
        lambda x: si.RBFInterpolator(np.stack([x, np.sin(5 * x)], 1), Y, kernel="cubic")(D[:6].reshape(3, 2)),
        T,
    ),
    "radial of neighbors": (
        lambda x: si.RBFInterpolator(np.stack([x, np.sin(5 * x)], 1), Y, neighbors=4)(D[:6].reshape(3, 2)),
        T,
    ),
    "radial at places": (lambda x: si.RBFInterpolator(T[:, None], Y, neighbors=4)(x[:, None]), AT),
    "smooth radial": (
        lambda e: si.RBFInterpolator(T[:, None], Y, kernel="gaussian", epsilon=e[0], smoothing=0.1)(AT[:, None]),
        Y[1:2],
    ),
    "roots": (lambda y: si.CubicSpline(T, y).roots(), Y),
    "solved": (lambda y: si.PchipInterpolator(T, y).solve(0.5 + y[0] / 9, extrapolate=False), Y),
    "extremes": (lambda y: si.Akima1DInterpolator(T, y).derivative().roots(extrapolate=False), Y),
    "knots move": (lambda x: si.CubicSpline(np.append(x, 2.0), C[:4]).solve(0.6, extrapolate=False), AT),
    "jumps": (lambda y: si.PPoly(np.array([y[:3], y[3:6]]), [0.0, 1.0, 2.0, 3.0]).solve(y[6]), Y),
    "level of constants": (lambda x: PIECES.solve(x[0], extrapolate=False), AT),
    "cubic of constants": (lambda x: LINE(x), AT),
    "interpn": (lambda z: si.interpn((T, GRID), z, np.stack([AT, 2 * AT[::-1]], -1), "splinef2d"), Z),
    "interpn at the edge": (lambda z: si.interpn((T, GRID), z, (T[[0, -1]], GRID[[-1, 3]]), "splinef2d"), Z),
    "interpn place": (lambda x: si.interpn((T, GRID), Z, (x, 1.5 * x**2), "splinef2d"), AT),
    "interpn outside": (
        lambda x: si.interpn((T, GRID), Z * x[1], (x, x), "splinef2d", False, 0.5),
        np.array([-0.4, 0.5, 1.3]),
    ),
    "tensor": (lambda c: nd(c)(np.array([[2.2, 3.1], [2.9, 3.6]]), nu=(1, 0)), D),
    "tensor outside": (lambda c: nd(c)(np.array([5.2, 3.1])), D),
    "tensor place": (lambda x: nd(D)(x.reshape(1, 2)), np.array([2.4, 3.3])),
    "data move": (lambda x: si.splev(AT, si.splrep(x, Y)), T**1.2),
    "data of degree 2 move": (lambda x: si.splev(AT, si.splrep(x, Y, k=2)), T**1.2),
    "data of all knots move": (lambda x: si.make_interp_spline(x, Y)(AT), T**1.2),
    "corners move": (lambda x: si.make_interp_spline(x, Y, k=1)(AT), T**1.2),
    "nearest to data that move": (lambda x: si.make_lsq_spline(x, Y, KNOTS, w=WEIGHTS)(AT), 0.05 + 0.9 * T**1.2),
    "knots of the nearest move": (lambda t: si.make_lsq_spline(T, Y, np.r_[KNOTS[:4], t, KNOTS[6:]])(AT), KNOTS[4:6]),
    "smoothed data move": (lambda x: si.make_smoothing_spline(x, Y, lam=0.1)(AT), T**1.2),
    "nearest univariate data move": (lambda x: si.LSQUnivariateSpline(x, Y, [0.3, 0.6])(AT), T**1.2),
    "univariate data move": (lambda x: si.UnivariateSpline(x, Y, s=0)(AT), T**1.2),
    "grids move": (lambda x: si.RectBivariateSpline(x, GRID, Z)(AT, AT), T**1.2),
    "knots of a spline move": (
        lambda t: np.append(si.BSpline(t, C[:6], 3)(AT), si.splev(AT, (t, C, 3), der=1)),
        np.linspace(-0.8, 1.9, 10),
    ),
    "knots of an integral move": (lambda t: si.splint(0.2, 0.9, (np.r_[KNOTS[:4], t, KNOTS[6:]], C, 3)), KNOTS[4:6]),
    "knots beside another move": (
        lambda t: si.insert(0.55, (np.r_[KNOTS[:4], t, KNOTS[6:]], C, 3), m=2)[1][:8],
        KNOTS[4:6],
    ),
    "slope in Bernstein's basis": (lambda y: si.BPoly(y.reshape(3, 3), [0.0, 0.3, 0.7, 1.0])(AT, nu=1), Y),
    "slope where places move": (
        lambda x: si.BPoly(Y.reshape(3, 3), [0.0, 0.3, 0.7, 1.0]).derivative()(x) + si.BPoly([[1], [2]], [0, 1])(x, 2),
        AT,
    ),
    "pieces integrated twice": (
        lambda y: np.append(
            si.PchipInterpolator(T, y).antiderivative(2)(AT),
            si.PPoly(y.reshape(3, 3), [1.0, 0.7, 0.4, 0.0]).antiderivative(3)(AT),
        ),
        Y,
    ),
    "pieces between moving ends integrated": (
        lambda x: si.PPoly(Y.reshape(3, 3), np.r_[0.0, x]).antiderivative(2)(0.9),
        np.array([0.3, 0.5, 1.0]),
    ),
    "higher derivative than the degree": (
        lambda c: (si.BSpline(KNOTS, c, 2)(AT, nu=3) + c[0]) * si.BSpline(KNOTS, c, 2)(AT, nu=2),
        C[:7],
    ),
    "pieces of two variables": (
        lambda y: [
            si.NdPPoly(np.outer(y, np.cos(y))[:8, :6].reshape(2, 4, 2, 3), (T[::4], [0, 0.2, 0.5, 0.9]))((AT, 0.3), nu)
            for nu in (None, [1, 0], [0, 2], [2, 0])
        ],
        Y,
    ),
    "places in pieces of one variable": (
        lambda x: si.NdPPoly(Y.reshape(3, 3), (T[:4] * 3,))(x) * si.NdPPoly(Y.reshape(3, 3), (T[:4] * 3,))((x,)),
        AT,
    ),
    "outside of the pieces": (
        lambda x: np.nan_to_num(
            si.NdPPoly(np.outer(Y, Y[:2]).reshape(3, 2, 3, 1), (x, [0.0, 1.0]))(((0.4, 0.5),), extrapolate=False)
            + np.append(si.NdPPoly(Y.reshape(3, 3), (x,))([1.9], extrapolate=False), 2.0)
        ),
        np.array([0.0, 0.35, 0.6, 1.1]),
    ),
    "integral of pieces": (
        lambda x: si.NdPPoly(np.outer(Y, Y[:2]).reshape(3, 2, 3, 1), (T[:4] * 3, [0, 1])).integrate([x[:2], x[1:]]),
        AT,
    ),
    "scattered": (lambda y: si.griddata((Y, np.sin(5 * Y)), y, ([0.3, 0.5], [0.2, 0.4]), rescale=True), Y),
}


@pytest.mark.parametrize("name", CASES)
def test_splines(name):
    fun, x = CASES[name]

    def total(x):
        found = np.ravel(fun(x))
        return np.sum(found * np.cos(np.arange(found.size)))

    slope = grad(total)(x)
    np.testing.assert_allclose(slope, differences(total, x, 1e-4), rtol=1e-6, atol=1e-8)
    value, pushed = jvp(total, (x,), (np.cos(x),))
    np.testing.assert_allclose(value, total(x), rtol=1e-11)
    np.testing.assert_allclose(pushed, np.sum(slope * np.cos(x)), rtol=1e-9)


DROPPING = {
    "splrep": lambda z: si.splrep(T, z)[1],
    "splev": lambda z: si.splev(0.4, (KNOTS, np.append(z, z[:1]), 3)),
    "points of splev": lambda z: si.splev(0.3 + 0.1 * z, (KNOTS, C, 3)),
    "splint": lambda z: si.splint(0.1, 0.7, (KNOTS, np.append(z, z[:1]), 3)),
    "smoothing": lambda z: si.UnivariateSpline(T, z, s=0)(0.4),
    "grid": lambda z: si.RectBivariateSpline(T, T, np.outer(Y, z))(0.4, 0.6),
    "points of a curve": lambda z: PIECES(0.1 * z) + si.CubicSpline(T, Y)(0.1 * z),
}


@pytest.mark.parametrize("name", DROPPING)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_splines_drop_imaginary_parts(name):
    """Check the value, and that the derivative along imaginary numbers is zero; or the refusal."""
    fun, z = DROPPING[name], Y * (1.0 + 0.5j) + 0.1j
    try:
        want = fun(z)
    except TypeError:  # some functions of SciPy 1.18 refuse complex numbers
        with pytest.raises(InputError, match="must be real, got"):
            jvp(fun, (z,), (z,))
        return
    value, tangent = jvp(fun, (z,), (z,))
    np.testing.assert_allclose(value, want, rtol=1e-12, atol=1e-14)
    assert np.asarray(value).dtype == np.asarray(want).dtype == float
    step = 1e-6
    np.testing.assert_allclose(tangent, (fun(z + step * z) - fun(z - step * z)) / (2 * step), rtol=1e-6, atol=1e-8)
    assert not np.any(jvp(fun, (z,), (1j * z.real,))[1])


REFUSING = [
    (lambda z: si.PchipInterpolator(T, z)(0.4), ValueError),
    (lambda z: si.Akima1DInterpolator(T, z)(0.4), ValueError),
    (lambda z: si.CubicSpline(z, Y)(0.4), ValueError),
    (lambda z: si.splprep([T, z], s=0)[0][0], TypeError),
    (lambda z: si.insert(0.3, (KNOTS, np.append(z, z[:1]), 3))[1], TypeError),
]


@pytest.mark.parametrize(("fun", "error"), REFUSING)
def test_splines_refuse_complex_numbers(fun, error):
    z = T + 0.1j
    with pytest.raises(error):
        fun(z)
    with pytest.raises(error, match="must be real, got"):
        jvp(fun, (z,), (z,))


def test_tensor_product_splines_outside_knots():
    def f(c):
        spline = nd(c)
        return np.sum(np.nan_to_num(spline([[9.0, 3.1], [2.2, 3.1]], extrapolate=False)))

    np.testing.assert_allclose(grad(f)(D), differences(f, D, 1e-4), rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="ndim=2"):
        grad(lambda c: nd(c)([[1.0, 2.0, 3.0]]).sum())(D)


def test_batched_spline_data():
    far, near = np.stack([T, T**1.2]), np.stack([T, 0.99 * T + 0.002])
    for fun, xs in (
        (lambda x: si.splev(0.31, si.splrep(x, Y)), far),
        (lambda x: si.make_interp_spline(x, Y)(0.31), far),
        (lambda x: si.make_lsq_spline(0.05 + 0.9 * x, Y, KNOTS)(0.31), near),  # in the same pieces
    ):
        total = lambda x, fun=fun: np.sum(fun(x))
        np.testing.assert_allclose(vmap(total)(xs), [total(x) for x in xs], rtol=1e-9)
        np.testing.assert_allclose(vmap(grad(total))(xs), [grad(total)(x) for x in xs], rtol=1e-7, atol=1e-9)


SMOOTH = ("cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic", "gaussian")


@pytest.mark.parametrize("kernel", [*SMOOTH, "linear", "thin_plate_spline"])
def test_radial_functions_at_coinciding_points(kernel):
    """Check a point at distance 0 from itself, where the distance has no derivative: gradients were NaN."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.2], [0.45, 0.5], [0.2, 0.8], [0.7, 0.3]])

    def total(points, values, at):
        return si.RBFInterpolator(points, values, kernel=kernel, epsilon=1.3)(at).sum()

    check_grads(total, (points, Y[:7], np.array([[0.5, 0.4]])), order=1)
    here = lambda at: total(points, Y[:7], at)
    np.testing.assert_allclose(grad(here)(points[3:4]), differences(here, points[3:4]), rtol=1e-4, atol=1e-6)
    if kernel in SMOOTH:
        check_grads(here, (points[3:4],), order=2)


def test_double_root_keeps_its_value():
    """The root of ``(x - 1)**2`` moves with the square root of a change: its derivative is infinite or NaN."""
    made = []

    def f(a):
        made.append(si.PPoly(np.array([[1.0, -4.0, 3.0 * a], [a, 0.0, 0.0]]).T, [-2.0, 1.0, 2.0]).solve())
        return made[-1][1]

    with np.errstate(invalid="ignore", divide="ignore"):
        value, slope = value_and_grad(f)(1.0)
    assert (value, made[0].shape) == (1.0, (2,))
    assert not np.isfinite(slope)


def test_spline_roots_to_second_order():
    fun = lambda y: np.sum(si.CubicSpline(T, y).roots() ** 2)
    check_grads(fun, (Y,), order=2)
    flat = lambda y: np.sum(si.CubicSpline(T, np.stack([y, y], 1)).roots()[0])
    with pytest.raises(InputError, match="the curve must have one value"):
        grad(flat)(Y)


SMOOTHED = {
    "splrep": lambda y: si.splev(AT, si.splrep(T, y, w=WEIGHTS, s=0.5)),
    "UnivariateSpline": lambda y: si.UnivariateSpline(T, y, s=0.5)(AT),
    "with a straight line": lambda y: si.splev(AT, si.splrep(T, y, k=1, s=50.0)) * si.UnivariateSpline(T, y, s=9.0)(AT),
    "residual of the nearest": lambda y: np.append(si.UnivariateSpline(T, y, s=50.0).get_residual(), y[0]),
    "through the points": lambda y: si.splev(AT, si.splrep(T, y, s=1e-25, full_output=1, quiet=1)[0]),
    "splprep": lambda y: np.concatenate(si.splev(AT, si.splprep([y, np.cos(3 * T)], u=T, s=0.3)[0])),
    "by the places": lambda x: si.splev(AT, si.splrep(x, Y, s=0.5)),
    "with a knot for each point": lambda y: si.UnivariateSpline(T[:6], y[:6], s=0.1)(AT / 2),
    "of even degree with a knot for each point": lambda y: si.splev(AT, si.splrep(T, y, k=2, s=0.02)),
    "of several columns with a knot for each point": lambda y: np.concatenate(
        si.splev(AT, si.splprep([y, np.cos(y)], u=T, k=2, s=0.02)[0])
    ),
}


@pytest.mark.parametrize("name", SMOOTHED)
def test_smoothing_splines(name):
    """Check against differences, which are rough: FITPACK's sum of squares varies by a thousandth of s.

    The values therefore move by steps, while the derivative is taken at a constant sum.
    """
    fun, at = SMOOTHED[name], T if name == "by the places" else Y
    value, slopes = vjp(fun, at)[0], jacobian(fun)(at)
    np.testing.assert_allclose(value, fun(at), rtol=1e-10)
    np.testing.assert_allclose(jacfwd(fun)(at), slopes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(slopes, differences(fun, at, 1e-2), atol=0.02 * np.abs(slopes).max())


@pytest.mark.parametrize("ext", [0, 1, 3])
def test_spline_derivatives_outside_knots(ext):
    """Check that ``ext=3`` of FITPACK holds the boundary's value, while derivatives are extrapolated."""
    at = np.array([-0.2, 0.3, 1.4])
    for fun in (
        lambda y: si.splev(at, si.splrep(T, y), der=1, ext=ext),
        lambda y: si.InterpolatedUnivariateSpline(T, y, ext=ext)(at, 2),
        lambda y: si.InterpolatedUnivariateSpline(T, y, ext=ext)(at),
    ):
        np.testing.assert_allclose(vjp(fun, Y)[0], fun(Y), rtol=1e-10)
        np.testing.assert_allclose(jacobian(fun)(Y), differences(fun, Y), rtol=1e-6, atol=1e-6)


def test_invalid_interpn_raises():
    at = lambda z, xi, **options: si.interpn((T, GRID), z, np.array([xi]), "splinef2d", **options)[0]
    for fun in (
        lambda z: at(z, [0.3, 3.0]),
        lambda z: at(z, [0.3, 1.0], bounds_error=False, fill_value=None),
        lambda z: si.interpn((T, GRID, [0.0, 1.0]), np.stack([z, z], -1), np.array([[0.3] * 3]), "splinef2d")[0],
    ):
        with pytest.raises(ValueError, match=r"splinef2d|out of bounds in dimension 1"):
            fun(Z)
        with pytest.raises(ValueError, match=r"splinef2d|out of bounds in dimension 1"):
            grad(fun)(Z)
        with pytest.raises(ValueError, match=r"splinef2d|out of bounds in dimension 1"):
            grad(lambda z, fun=fun: np.full(1, z[0, 0])[0] * fun(z))(Z)  # which is rebuilt before
    with pytest.raises(ValueError, match="x value not in the domain"):
        jvp(lambda y: si.splev([-1.0, 0.3], si.splrep(T, y), ext=2), (Y,), (Y,))
    with pytest.raises(ValueError, match="cannot be negative"):
        jvp(lambda y: si.NdPPoly(y.reshape(3, 3), (T[:4],))(AT, nu=[-1]), (Y,), (Y,))
    with pytest.raises(ConversionError, match="cannot be periodic"):
        jvp(lambda y: si.splprep([y, np.cos(y)], per=True)[0][0], (Y,), (Y,))


def test_smoothing_surfaces_raise():
    with pytest.raises(ConversionError, match="smoothing surface"):
        grad(lambda y: si.RectBivariateSpline(T, T, np.outer(y, y), s=1.0)(0.3, 0.2)[0, 0])(Y)


def test_aaa_with_traced_data_raises():
    with pytest.raises(ConversionError, match=r"Use interpolate\.FloaterHormannInterpolator"):
        grad(lambda y: si.AAA(T, y)(0.3))(Y)
    check_grads(lambda y: si.FloaterHormannInterpolator(T, y)(0.33), (Y,), order=2)
    check_grads(lambda x: si.AAA(T, np.exp(T))(x), (0.33,), order=1)


@pytest.mark.parametrize("extrapolate", [True, False])
@pytest.mark.parametrize("c", [np.sin(np.arange(7.0))[:, None], np.exp(1j * np.arange(14.0)).reshape(7, 2)])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("nu", [0, 1, 2])
def test_operation_for_points_agrees_with_formula(nu, k, c, extrapolate):
    """Knots and coefficients are constants; a repeated knot, points at knots, outside, and NaN."""
    nu = min(nu, k + 1)  # SciPy 1.15 writes outside of its memory for higher ones
    t = np.sort(np.r_[np.zeros(k + 1), np.linspace(0.5, 2.5, 5 - k), 1.0, np.full(k + 1, 3.0)])
    x = np.array([0.2, 0.5, 1.0, 1.7, 2.9])
    v = np.array([0.3, -0.2, 0.5, 0.1, 0.4])
    f = lambda x: spline_values.spline(t, c, k, x, nu, extrapolate)
    g = lambda x: spline_values._by_formula(t, c, k, x, nu, extrapolate)
    compare_operation(f, g, x, v, si.BSpline(t, c, k, extrapolate), nu)


@pytest.mark.parametrize("extrapolate", [True, False])
@pytest.mark.parametrize("form", ["PPoly", "BPoly"])
@pytest.mark.parametrize("nu", range(4))
def test_operation_for_pieces_agrees_with_formula(form, nu, extrapolate):
    """Real curves, and several complex ones whose knots fall."""
    for c, knots in ((CUBICS, [0.0, 0.5, 1.0, 3.0]), (np.exp(1j * CUBICS.repeat(2, axis=2)), [3.0, 1.0, 0.5, 0.0])):
        f = lambda x, c=c, knots=knots: spline_values.pieces(form, c, knots, x, nu, extrapolate)
        g = lambda x, c=c, knots=knots: spline_values._FORMULAS[form](knots, c, len(c) - 1, x, nu, extrapolate)
        x, v = np.array([0.2, 0.5, 1.0, 1.7, 2.9]), np.array([0.3, -0.2, 0.5, 0.1, 0.4])
        compare_operation(f, g, x, v, getattr(si, form)(c, knots, extrapolate), nu)


CUBICS = np.sin(np.arange(12.0)).reshape(4, 3, 1)


def compare_operation(f, g, x, v, curve, nu):
    """Compare the operation in ``f`` with the formula in ``g``, in all modes at ``x``, and with SciPy's ``curve``."""
    pulled = lambda h, x: (found := vjp(h, x))[1](np.ones_like(stop_gradient(found[0])))[0]
    got, want = jvp(f, (x,), (v,)), jvp(g, (x,), (v,))
    close(got[0], want[0], 1e-12)
    close(got[1], want[1], 1e-11)
    close(pulled(f, x), pulled(g, x), 1e-11)
    close(*[jvp(lambda x, h=h: pulled(h, x), (x,), (v,))[1] for h in (f, g)], 1e-10)
    batch = np.stack([x, x + 0.05])
    close(vmap(f)(batch), np.stack([f(x), f(x + 0.05)]), 1e-12)
    close(vmap(lambda x: pulled(f, x))(batch), np.stack([pulled(f, one) for one in batch]), 1e-12)
    close(jit(f)(x), g(x), 1e-12)
    close(jit(f, backend="numpy")(x), f(x), 1e-12)
    outside = np.array([-0.5, 3.5, np.nan])
    close(jvp(f, (outside,), (v[:3],))[0], curve(outside, nu), 1e-10)


def test_recorded_points_are_computed_by_jax():
    """A graph that was recorded with NumPy's arrays takes JAX's."""
    t, c = np.r_[np.zeros(4), 1.0, 2.0, np.full(4, 3.0)], np.sin(np.arange(6.0))[:, None]
    recorded = trace(lambda x: spline_values.spline(t, c, 3, x, 0, True))(np.array([0.2, 1.4]))
    assert "spline_values" in str(recorded)
    close(recorded(jnp.array([0.3, 2.7])), spline_values.spline(t, c, 3, np.array([0.3, 2.7]), 0, True), 1e-12)


THROUGH = {
    "make_interp_spline": lambda x, y: si.make_interp_spline(x, y)(0.3),
    "splrep": lambda x, y: si.splev(0.3, si.splrep(x, y)),
    "degree 4": lambda x, y: si.InterpolatedUnivariateSpline(x, y, k=4)(0.3),
}


@pytest.mark.parametrize("name", THROUGH)
def test_interpolation_builds_no_whole_matrix(name):
    """The system has as many diagonals as the degree says; its matrix would grow with the square of the points."""
    x = np.linspace(0.0, 1.0, 300)
    graph = trace(grad(lambda scale: THROUGH[name](scale * x, np.sin(7 * x))))(1.1)
    assert max(np.prod(shape, dtype=int) for node in graph for shape in node.shapes) < 50 * len(x)


OVER_PIECES = {
    "integrate": lambda pieces: pieces.integrate(0.1, 0.9),
    "antiderivative": lambda pieces: pieces.antiderivative(2)(0.7),
}


@pytest.mark.parametrize("name", OVER_PIECES)
def test_integrals_of_polynomials_take_no_step_per_piece(name):
    def steps(count):
        c, x = np.sin(np.arange(3.0 * count)).reshape(3, count), np.linspace(0.0, 1.0, count + 1)
        return sum(1 for _ in trace(lambda scale: OVER_PIECES[name](si.PPoly(scale * c, x)))(1.1))

    assert steps(100) == steps(10)


def test_integrals_over_rectangles_take_no_step_per_knot():
    def steps(count):
        x = np.linspace(0.0, 1.0, count)
        surface = si.RectBivariateSpline(x, x, np.sin(7 * x + x[:, None]))
        return sum(1 for _ in trace(lambda scale: surface.integral(0.1, 0.8 * scale, 0.2, 0.9 * scale))(1.1))

    assert steps(20) == steps(10)


def test_splines_through_unknown_positions():
    f = lambda scale: si.splev(0.3, si.splrep(scale * T, Y))
    close(jit(grad(f))(1.1), grad(f)(1.1), 1e-11)
    points = np.array([0.9, 1.1, 1.4])
    close(vmap(grad(f))(points), [grad(f)(point) for point in points], 1e-12)


class Doubled(si.PchipInterpolator):
    def __call__(self, x):
        return 2 * super().__call__(x)


@pytest.mark.parametrize("made", [Doubled, lambda x, y: type(PIECES)(x, y)], ids=["derived", "type of another"])
def test_classes_of_monotone_curves(made):
    """SciPy's class calls its static methods by its name, which is that of funcgrad's class in rebuilt code."""
    ours = jacobian(lambda y: made(T, y)(AT))(Y)
    np.testing.assert_allclose(ours, differences(lambda y: made(T, y)(AT), Y), rtol=1e-6, atol=1e-8)
