"""Solvers of SciPy with derivatives: SciPy's values, measured derivatives, fields of results, errors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so
import scipy.sparse
from helpers import differences
from scipy.optimize.elementwise import find_minimum, find_root

import funcgrad.numpy as fnp
from funcgrad import as_written, control, grad, hessian, jacfwd, jacobian, jvp, trace, vmap
from funcgrad.errors import (
    BranchError,
    ConvergenceError,
    ConversionError,
    InputError,
    NotDifferentiableError,
    ShapeError,
    StagingError,
)
from funcgrad.scipy import optimize

RNG = np.random.default_rng(0)
TIMES = np.linspace(0.0, 2.0, 6)
POINTS = 2.0 * np.exp(-0.5 * TIMES) + 0.05 * RNG.normal(size=6)
SPREADS = np.array([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])
EXACT = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}


def cube(x, a):
    return x**3 - a


def curve(t, a, b):
    return a * np.exp(-b * t)


def valley(x, a):
    return (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


def pulled(x, c):
    return fnp.sum((x - c) ** 2 * np.array([1.0, 2.0, 3.0])) + x[0] * x[1]


BRACKETED = ("bisect", "brenth", "brentq", "ridder", "toms748")


@pytest.mark.parametrize("name", BRACKETED)
def test_bracketed_roots(name):
    find = getattr(optimize, name)
    root, told = find(cube, 0.0, 3.0, (8.0,), full_output=True)
    want, theirs = getattr(so, name)(cube, 0.0, 3.0, (8.0,), full_output=True)
    assert root == want
    assert type(root) is type(want)
    assert told == theirs
    closed = lambda a: find(lambda x: cube(x, a), 0.0, 3.0, full_output=True)[1]
    assert grad(lambda a: closed(a).root)(8.0) == pytest.approx(1 / 12, rel=1e-10)
    assert grad(grad(lambda a: closed(a).root))(8.0) == pytest.approx(-1 / 144, rel=1e-10)
    assert vmap(lambda a: closed(a).iterations)(np.array([8.0, 1.0]))[0] == theirs.iterations
    np.testing.assert_allclose(vmap(grad(lambda a: closed(a).root))(np.array([8.0, 1.0])), [1 / 12, 1 / 3], rtol=1e-10)


def test_brackets_and_guesses_are_constants():
    assert grad(lambda b: optimize.brentq(cube, 0.0, b, (8.0,)))(3.0) == 0.0
    np.testing.assert_allclose(vmap(lambda b: optimize.brentq(cube, 0.0, b, 8.0))(np.array([3.0, 4.0])), 2.0)
    assert grad(lambda x: optimize.newton(cube, x, args=(8.0,)))(1.0) == 0.0
    assert jacobian(lambda x: optimize.fsolve(cube, x, 8.0))(np.ones(1)) == 0.0
    assert jacobian(lambda x: optimize.minimize(valley, x, 1.0).x)(np.zeros(2)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    "how",
    [{"x0": 1.0}, {"x0": 1.0, "method": "halley"}, {"x0": 1.0, "method": "secant"}, {"x0": 1.0, "x1": 3.0}]
    + [{"bracket": (0.0, 3.0), "method": name} for name in (None, *BRACKETED)],
    ids=str,
)
def test_root_scalar(how):
    found = lambda a: optimize.root_scalar(lambda x: cube(x, a), **how).root
    assert found(8.0) == pytest.approx(2.0, rel=1e-9)
    assert grad(found)(8.0) == pytest.approx(1 / 12, rel=1e-9)
    if how.get("method") != "halley":  # halley takes no differences
        assert optimize.root_scalar(lambda x: math.cos(x) - x, **how).converged


def test_root_scalar_with_given_derivatives():
    both = lambda x, a: (x**3 - a, 3 * x**2)
    result = optimize.root_scalar(both, (8.0,), x0=1.0, fprime=True)
    assert result == so.root_scalar(both, (8.0,), x0=1.0, fprime=True)
    assert grad(lambda a: optimize.root_scalar(both, (a,), x0=1.0, fprime=True).root)(8.0) == pytest.approx(1 / 12)
    given = {"x0": 1.0, "fprime": lambda x, a: 3 * x**2}
    assert optimize.root_scalar(cube, 8.0, **given) == so.root_scalar(cube, (8.0,), **given)
    assert grad(lambda a: optimize.root_scalar(cube, a, **given).root)(8.0) == pytest.approx(1 / 12)
    alone = {"x0": 1.0, "fprime": lambda x: 3 * x**2}
    assert optimize.newton(lambda x: x**3 - 8.0, full_output=True, **alone)[1].method == "newton"


def test_newton_of_arrays():
    for a in (8.0, np.array([8.0, 1.0])):
        got = optimize.newton(cube, np.array([1.0, 1.5]), args=(a,), full_output=True)
        want = so.newton(cube, np.array([1.0, 1.5]), args=(a,), full_output=True)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
    roots = lambda a: optimize.newton(cube, np.array([1.0, 1.5]), args=(a,), full_output=True)
    np.testing.assert_allclose(jacobian(lambda a: roots(a).root)(np.array([8.0, 1.0])), np.diag([1 / 12, 1 / 3]))
    turned = lambda a: optimize.newton(lambda x: x * x - a, 1.0 + 1.0j)
    np.testing.assert_allclose(jvp(turned, (2j,), (1.0 + 0j,))[1], 0.5 / (1 + 1j))
    with pytest.raises(ConvergenceError):  # the function is not elementwise
        jacobian(lambda a: optimize.newton(lambda x: x + 0.5 * x[::-1] - a, np.ones(2)))(np.ones(2))


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: so.fsolve(lambda x: a * x**2 - 1.0, 1.0)[0],
        lambda a: so.root(lambda x: a * x**2 - 1.0, 1.0).x[0],
        lambda a: so.leastsq(lambda x: a * x**2 - 1.0, 1.0)[0][0],
    ],
    ids=["fsolve", "root", "leastsq"],
)
def test_first_call_of_minpack_prints_nothing(solve, capfd):
    """Check that no traced number reaches MINPACK, which prints the error of its conversion."""
    assert grad(solve)(4.0) == pytest.approx(-0.0625, rel=1e-6)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov"])
def test_root_of_one_equation_that_returns_a_number(method):
    solved = lambda a: so.root(lambda x: x[0] ** 2 - a, [1.0], method=method, tol=1e-12)
    np.testing.assert_allclose(grad(lambda a: solved(a).x[0])(4.0), 0.25, rtol=1e-9)
    assert jacobian(lambda a: solved(a).fun)(4.0).shape == np.shape(solved(4.0).fun)


def test_fsolve_and_root():
    equations = lambda p, r: [p[0] ** 2 + p[1] ** 2 - r**2, p[0] - p[1] * r]
    exact = lambda r: np.array([r * r, r]) / np.sqrt(1 + r * r)
    for solve in (
        lambda r: optimize.fsolve(equations, np.ones(2), r),
        lambda r: optimize.fsolve(equations, np.ones(2), r, full_output=True)[0],
        lambda r: optimize.fsolve(equations, np.ones(2), r, epsfcn=1e-8, factor=50),
        *[lambda r, m=m: optimize.root(equations, np.ones(2), r, m, tol=1e-10).x for m in ("hybr", "lm", "broyden1")],
    ):
        np.testing.assert_allclose(solve(1.3), exact(1.3), rtol=1e-8)
        np.testing.assert_allclose(jacobian(solve)(1.3), differences(exact, 1.3), rtol=1e-7)
    found = optimize.root(equations, np.ones(2), 1.3)
    assert found.njev >= 1
    told = jacobian(lambda r: optimize.fsolve(equations, np.ones(2), r, full_output=True)[1]["fvec"])(1.3)
    np.testing.assert_allclose(told, 0.0, atol=1e-12)
    assert optimize.fsolve(lambda x: math.cos(x[0]) - x[0], 1.0)[0] == pytest.approx(0.739085, rel=1e-6)
    assert jacobian(lambda a: optimize.root(lambda x: x**2 - a, 1.0, method="lm").x)(4.0)[0] == pytest.approx(0.25)
    scalar = optimize.root(lambda x: (x**2 - 4.0, 2 * x), 1.0, jac=True)
    assert scalar.x[0] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "method",
    [None, "CG", "L-BFGS-B", "TNC", "Newton-CG", "trust-ncg", "trust-constr", "trust-exact", "Nelder-Mead", "Powell"],
)
def test_minima(method):
    best = lambda a: optimize.minimize(valley, np.full(2, 0.9), a, method, tol=1e-8)
    np.testing.assert_allclose(best(1.1).x, [1.1, 1.21], rtol=1e-3)
    np.testing.assert_allclose(jacobian(lambda a: best(a).x)(1.1), [1.0, 2.2], rtol=1e-3)
    assert abs(grad(lambda a: best(a).fun)(1.1)) < 1e-5


def test_minima_to_second_order_and_in_batches():
    best = lambda a: optimize.minimize_scalar(lambda x: np.exp(x) - a * x).x
    assert best(2.0) == so.minimize_scalar(lambda x: np.exp(x) - 2.0 * x).x
    assert grad(grad(best))(2.0) == pytest.approx(-0.25, rel=1e-7)
    assert grad(grad(lambda a: optimize.minimize_scalar(lambda x: np.exp(x) - a * x).fun))(2.0) == pytest.approx(-0.5)
    np.testing.assert_allclose(vmap(grad(best))(np.array([2.0, 4.0])), [0.5, 0.25], rtol=1e-7)
    batch = vmap(jacobian(lambda a: optimize.minimize(valley, np.zeros(2), a, tol=1e-9).x))(np.array([1.0, 1.1]))
    np.testing.assert_allclose(batch, [[1.0, 2.0], [1.0, 2.2]], rtol=1e-5)
    given = lambda x, a: fnp.stack([2 * (x[0] - a) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])
    for how in ({"fun": valley, "jac": given}, {"fun": lambda x, a: (valley(x, a), given(x, a)), "jac": True}):
        found = jacobian(lambda a, how=how: optimize.minimize(x0=np.zeros(2), args=a, **how).x)(1.1)
        np.testing.assert_allclose(found, [1.0, 2.2], rtol=1e-4)
    plain = optimize.minimize(lambda x: math.cosh(x[0] - 1.0), [0.0])
    assert plain.x[0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-constr", "Powell"])
def test_minima_within_bounds(method):
    c = np.array([2.0, -1.0, 0.5])

    def best(c, b):
        bounds = [(None, b), (-0.5, None), (None, None)]
        return optimize.minimize(pulled, np.zeros(3), c, method, bounds=bounds, tol=1e-9)

    np.testing.assert_allclose(best(c, 1.0).x, [1.0, -0.5, 0.5], atol=1e-3)
    of_c, of_b = jacobian(lambda c, b: best(c, b).x, (0, 1))(c, 1.0)
    np.testing.assert_allclose(of_c, np.diag([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(of_b, [1.0, 0.0, 0.0])
    assert grad(lambda b: best(c, b).fun)(1.0) == pytest.approx(-2.5, rel=1e-3)  # the multiplier of the bound
    assert grad(lambda b: best(c, b).jac[0])(1.0) == pytest.approx(2.0)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_active_bounds_do_not_depend_on_the_scale_of_the_function(scale):
    inside = lambda a: so.minimize_scalar(lambda x: scale * (np.cosh(x) - a * x), bounds=(0, 1)).x
    at_bound = lambda b: so.fminbound(lambda x: scale * (x + 2) ** 2, b, 3)
    assert grad(inside)(0.4) == pytest.approx(1 / math.sqrt(1.16), rel=1e-5)
    assert grad(at_bound)(1.0) == 1.0
    for method in ("Nelder-Mead", "Powell"):
        best = lambda a, how=method: so.minimize(
            lambda x: scale * ((x[0] - a) ** 2 + (x[1] + a) ** 2), [0.2, 0.1], bounds=[(0, 1)] * 2, method=how
        )
        np.testing.assert_allclose(jacobian(lambda a, best=best: best(a).x)(0.4), [1.0, 0.0], atol=1e-6)
    kink = lambda a: so.fminbound(lambda x: scale * max(a * x, 1 - x), 0, 1)
    with pytest.raises(NotDifferentiableError, match="kink"):
        grad(kink)(2.0)


@pytest.mark.parametrize("search", [so.fmin, so.fmin_powell, so.fmin_cg, so.fmin_bfgs])
def test_callbacks_of_older_functions(search):
    seen = []

    def best(a):
        return search(lambda x: (x[0] - a) ** 4 + (x[0] - a) ** 2, [0.2], callback=seen.append, disp=False)

    assert jacobian(lambda a: best(a).ravel())(0.4) == pytest.approx([1.0], rel=1e-5)
    assert all(np.shape(x) == (1,) for x in seen)
    assert len(seen) > 1


def test_points_in_lists_and_guesses_of_two_axes():
    line, y = lambda x, a, b: a * x + b, np.array([3.0, 5.2, 7.1, 8.9])
    slope = jacobian(lambda y: so.curve_fit(line, [1, 2, 3, 4], y)[0])(y)
    np.testing.assert_allclose(slope, jacobian(lambda y: so.curve_fit(line, np.arange(1.0, 5.0), y)[0])(y), rtol=1e-9)
    found = jacobian(lambda y: so.leastsq(lambda p: line(np.arange(1.0, 5.0), *p) - y, np.ones((1, 2)))[0])(y)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-9)


def test_bound_at_which_the_function_is_undefined():
    best = lambda b: so.minimize_scalar(lambda x: math.sqrt(x - 1.0) + b * x, bounds=(1.0, 3.0)).x
    assert grad(best)(2.0) == 0.0


def test_every_form_of_bounds():
    c = np.array([2.0, -1.0, 0.5])
    for bounds in (so.Bounds(-np.inf, [1.0, np.inf, np.inf]), np.array([[-9.0, 1.0], [-9.0, 9.0], [-9.0, 9.0]])):
        found = jacobian(lambda c, b=bounds: optimize.minimize(pulled, np.zeros(3), c, bounds=b).x)(c)
        np.testing.assert_allclose(found, [[0, 0, 0], [0, 1, 0], [0, 0, 1]], atol=1e-12)
    whole = np.array([[-9.0, 1.0], [-9.0, 9.0], [-9.0, 9.0]])
    found = jacobian(lambda b: optimize.minimize(pulled, np.zeros(3), c, bounds=b).x)(whole)
    np.testing.assert_allclose(found[:, 0, 1], [1.0, -0.25, 0.0], rtol=1e-6)
    assert found[:, :, 0].any() == np.False_
    batch = vmap(lambda b: optimize.minimize(pulled, np.zeros(3), c, bounds=[(None, b)] * 3).x[0])(np.array([1.0, 1.5]))
    np.testing.assert_allclose(batch, [1.0, 1.5])
    assert grad(lambda b: optimize.minimize_scalar(lambda x: np.exp(x) - 2 * x, bounds=(b, 3.0)).x)(1.0) == 1.0


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_least_squares(loss):
    def best(lib, y, **how):
        return lib.least_squares(lambda p: curve(TIMES, *p) - y, np.ones(2), loss=loss, f_scale=0.1, **EXACT, **how)

    np.testing.assert_allclose(best(optimize, POINTS).x, best(so, POINTS).x, rtol=1e-8)
    got = jacobian(lambda y: best(optimize, y).x)(POINTS)
    np.testing.assert_allclose(got, differences(lambda y: best(so, y, jac="3-point").x, POINTS), rtol=1e-4, atol=1e-5)
    got = grad(lambda y: best(optimize, y).cost)(POINTS)
    np.testing.assert_allclose(
        got, differences(lambda y: best(so, y, jac="3-point").cost, POINTS), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 9.0)])
def test_jacobians_of_least_squares(bounds):
    """Packages compute covariances of the Jacobian at the solution, with the shares that the loss gives to points."""

    def covariance(y, **how):
        found = so.least_squares(lambda p: curve(TIMES, *p) - y, np.ones(2), bounds=bounds, loss="cauchy", **how)
        assert not found.active_mask.any()
        return np.linalg.inv(found.jac.T @ found["jac"]) * found.cost

    got = jacobian(lambda y: covariance(y, **EXACT))(POINTS)
    want = differences(lambda y: covariance(y, jac="3-point", **EXACT), POINTS)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_least_squares_with_bounds_and_custom_loss():
    def best(y, b, **how):
        bounds = ([0.0, 0.0], [b, 5.0])
        return optimize.least_squares(lambda p, y: curve(TIMES, *p) - y, np.ones(2), bounds=bounds, args=(y,), **how)

    found = best(POINTS, 1.5)
    assert found.active_mask.tolist() == [1, 0]
    of_b = jacobian(lambda b: best(POINTS, b).x)(1.5)
    np.testing.assert_allclose(of_b, differences(lambda b: best(POINTS, b, **EXACT).x, 1.5), rtol=1e-4)
    own = lambda z: fnp.stack([fnp.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])
    got, want = (jacobian(lambda y, how=how: best(y, 9.0, loss=how).x)(POINTS) for how in (own, "cauchy"))
    np.testing.assert_allclose(got, want, rtol=1e-6)


COVARIANCE = np.diag(SPREADS**2) + 0.001
FITS = {
    "plain": {},
    "deviations": {"sigma": SPREADS},
    "covariances": {"sigma": COVARIANCE},
    "absolute": {"sigma": SPREADS, "absolute_sigma": True},
    "trf": {"method": "trf"},
    "a loss": {"method": "trf", "loss": "cauchy", "f_scale": 0.1},
    "bounds": {"bounds": (0.0, [1.8, 5.0])},
}


@pytest.mark.parametrize("how", FITS.values(), ids=FITS)
def test_curve_fit(how):
    got, want = (lib.curve_fit(curve, TIMES, POINTS, **how) for lib in (optimize, so))
    traced = jvp(lambda y: optimize.curve_fit(curve, TIMES, y, **how), (POINTS,), (POINTS,))[0]
    for g, t, w in zip(got, traced, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(t, g, rtol=1e-6, atol=1e-9)

    def theirs(x, y, i):
        exact = lambda t, a, b: np.stack([np.exp(-b * t), -a * t * np.exp(-b * t)], axis=1)
        return so.curve_fit(curve, x, y, **how, **EXACT, jac=exact)[i]

    for i in (0, 1):
        of_x, of_y = jacobian(lambda x, y, i=i: optimize.curve_fit(curve, x, y, **how, **EXACT)[i], (0, 1))(
            TIMES, POINTS
        )
        np.testing.assert_allclose(of_x, differences(lambda x, i=i: theirs(x, POINTS, i), TIMES), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_y, differences(lambda y, i=i: theirs(TIMES, y, i), POINTS), rtol=1e-4, atol=1e-5)


def test_curve_fit_with_sigma_batches_and_closures():
    fits = lambda s: optimize.curve_fit(curve, TIMES, POINTS, sigma=s, **EXACT)[0]
    for s in (SPREADS, COVARIANCE):
        np.testing.assert_allclose(jacfwd(fits)(s), jacobian(fits)(s), rtol=1e-9, atol=1e-12)
        d = RNG.normal(size=s.shape)
        d = d + d.T if d.ndim == 2 else d
        pushed = jvp(fits, (s,), (0.01 * d,))[1]
        np.testing.assert_allclose(
            pushed, differences(lambda h, s=s, d=d: fits(s + 0.01 * h * d), 0.0, 1e-2), rtol=1e-4
        )
    scaled = vmap(lambda c: optimize.curve_fit(lambda t, a, b: c * curve(t, a, b), TIMES, POINTS)[0])(
        np.array([1.0, 2.0])
    )
    np.testing.assert_allclose(scaled[1], scaled[0] * np.array([0.5, 1.0]), rtol=1e-7)
    assert hessian(lambda y: optimize.curve_fit(curve, TIMES, y)[0][0])(POINTS).shape == (6, 6)
    missing = np.where(TIMES == 0.0, np.nan, POINTS)
    got, want = (lib.curve_fit(curve, TIMES, missing, nan_policy="omit")[0] for lib in (optimize, so))
    np.testing.assert_allclose(got, want)
    assert len(optimize.curve_fit(curve, list(TIMES), list(POINTS), full_output=True)) == 5


@pytest.mark.parametrize("jac", ["2-point", "3-point", "cs"])
def test_curve_fit_by_differences(jac):
    fit = lambda y: so.curve_fit(curve, TIMES, y, p0=[1.0, 1.0], jac=jac, method="trf")[0]
    exact = lambda y: so.curve_fit(curve, TIMES, y)[0]
    np.testing.assert_allclose(jvp(fit, (POINTS,), (POINTS,))[0], exact(POINTS), rtol=1e-6)
    np.testing.assert_allclose(jacobian(fit)(POINTS), jacobian(exact)(POINTS), rtol=1e-5, atol=1e-6)


def test_curve_fit_to_as_many_points_as_parameters():
    def spread(y, **options):
        return so.curve_fit(lambda t, a, b: a * t + b * t * t, np.array([1.0, 2.0]), y, **options)[1]

    y = np.array([1.0, 3.0])
    with pytest.warns(so.OptimizeWarning, match="could not be estimated"):
        got, slope = jvp(spread, (y,), (y,))
    np.testing.assert_array_equal(got, np.full((2, 2), np.inf))
    np.testing.assert_array_equal(slope, np.zeros((2, 2)))
    known = {"sigma": np.ones(2), "absolute_sigma": True}
    np.testing.assert_allclose(jvp(lambda y: spread(y, **known), (y,), (y,))[0], spread(y, **known), rtol=1e-6)


def test_lsq_linear_and_nnls():
    A, b = RNG.normal(size=(5, 3)), RNG.normal(size=5)
    for got, want in zip(optimize.nnls(A, b), so.nnls(A, b), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(
        jacobian(lambda A: optimize.nnls(A, b)[0])(A),
        differences(lambda A: so.nnls(A, b)[0], A),
        atol=1e-8,
    )
    best = lambda lib, A, b, u, method: lib.lsq_linear(A, b, (-0.1, u), method).x
    point = (A, b, np.full(3, 0.3))
    for i in range(3):
        want = differences(lambda v, i=i: best(so, *[v if i == j else point[j] for j in range(3)], "bvls"), point[i])
        for method in ("trf", "bvls"):
            got = jacobian(lambda *x, method=method: best(optimize, *x, method), i)(*point)
            np.testing.assert_allclose(got, want, atol=1e-7)
    sparse = jacobian(lambda b: optimize.lsq_linear(scipy.sparse.csr_array(A), b).x)(b)
    np.testing.assert_allclose(sparse, np.linalg.pinv(A), rtol=1e-9)


def test_result_has_scipy_fields():
    found = []
    grad(lambda a: found.append(optimize.minimize(valley, np.zeros(2), a)) or found[0].fun)(1.1)
    assert set(found[0]) == {"x", "fun", "jac", "message", "success", "status", "nfev", "njev", "nit"}
    assert isinstance(optimize.minimize(valley, np.zeros(2), 1.1), so.OptimizeResult)
    assert optimize.Bounds is so.Bounds
    with pytest.raises(AttributeError, match="'milp'"):
        optimize.milp  # noqa: B018


def test_results_have_the_fields_of_scipy():
    """Fields that have no derivative are constants, or an error names them."""

    def fields_of(call):
        found = []
        grad(lambda a: found.append(call(a)) or found[0].x[0])(1.1)
        expected = call(1.1)
        return expected.keys() - found[0].keys(), found[0]

    bowl = lambda x, a: fnp.sum((x - a) ** 2)
    within = {"bounds": [(0.0, 2.0)] * 2, "constraints": {"type": "ineq", "fun": lambda x: 3.0 - x[0] - x[1]}}
    lost, found = fields_of(lambda a: so.minimize(bowl, np.ones(2), a, method="COBYLA", tol=1e-9, **within))
    assert lost == set()
    assert found.maxcv == 0.0
    lost, found = fields_of(lambda a: so.minimize(valley, np.zeros(2), a, method="trust-constr"))
    assert lost == {"constr_penalty", "lagrangian_grad", "tr_radius"}
    assert found.grad is found.jac
    assert not hasattr(found, "no such field")
    lost, found = fields_of(lambda a: so.lsq_linear(np.eye(3)[:, :2] * a, np.ones(3), (0.0, 0.5)))
    assert lost == {"unbounded_sol"}
    assert found.active_mask.tolist() == [1, 1]
    lost, found = fields_of(lambda a: so.dual_annealing(valley, [(0.0, 2.0)] * 2, (a,), maxiter=20, rng=0))
    assert lost == set()
    assert found.message == ["Maximum number of iteration reached"]


def test_graph_solves_again():
    graph = trace(lambda a: optimize.brentq(lambda x: cube(x, a), 0.0, 3.0))(8.0)
    assert graph(1.0) == pytest.approx(1.0)
    assert grad(graph)(1.0) == pytest.approx(1 / 3)
    fit = trace(lambda y: optimize.curve_fit(curve, TIMES, y)[0])(POINTS)
    np.testing.assert_allclose(fit(2 * POINTS), so.curve_fit(curve, TIMES, 2 * POINTS)[0], rtol=1e-6)


def test_jax_arrays():
    root = lambda a: optimize.brentq(cube, 0.0, 3.0, (a,))
    assert isinstance(grad(root)(jnp.float32(8.0)), jax.Array)
    for transformed in (
        jax.jit(root),
        jax.grad(root),
        jax.jit(grad(root)),
        jax.jit(lambda a: vmap(root)(a * jnp.ones(2))),
    ):
        with pytest.raises(StagingError, match="unknown while JAX traces"):
            transformed(8.0)


@pytest.mark.parametrize(
    ("program", "error", "says"),
    [
        (
            lambda a: optimize.brentq(cube, 0.0, 3.0, (a,), maxiter=2, disp=False),
            ConvergenceError,
            "brentq: the solver has not",
        ),
        (lambda a: optimize.brentq(cube, 0.0, 3.0, (a,), maxiter=2), RuntimeError, "converge"),
        (lambda a: optimize.brentq(cube, 2.0, 3.0, (a,)), ValueError, "different signs"),
        (lambda a: optimize.bisect(lambda x: (x - a) ** 3, 0.0, 2.0), np.linalg.LinAlgError, "singular matrix"),
        (lambda a: optimize.fsolve(lambda x: x**2 + a, 1.0)[0], ConvergenceError, "fsolve: the solver has not"),
        (
            lambda a: optimize.fsolve(lambda x: fnp.stack([x[0] + x[1] - a] * 2), [1.0, 0.0])[0],
            np.linalg.LinAlgError,
            "fsolve: the derivative",
        ),
        (
            lambda a: optimize.root(lambda x: fnp.stack([x[0] - a] * 2), [0.5], method="lm").x[0],
            ShapeError,
            "least_squares",
        ),
        (lambda a: optimize.minimize(valley, np.zeros(2), a, options={"maxiter": 2}).x[0], ConvergenceError, "Maximum"),
        (lambda a: optimize.minimize(lambda x: (x[0] - a) ** 2, np.zeros(2)).x[0], np.linalg.LinAlgError, "singular"),
        (  # the vertex of the bounds holds on one side of a == 1 only
            lambda a: optimize.minimize(
                lambda x: (x[0] - 3.0) ** 2 + x[1],
                np.ones(2) / 2,
                bounds=[(0, 1)] * 2,
                constraints={"type": "eq", "fun": lambda x: x[0] + x[1] - a},
            ).x[0],
            np.linalg.LinAlgError,
            "leave out constraints that follow from others or from active bounds",
        ),
        (
            lambda a: optimize.minimize(
                valley, np.ones(2), a, constraints=[{"type": "eq", "fun": lambda x, k=k: x[0] * k} for k in (1, 2)]
            ).x[1],
            ConvergenceError,
            "Singular matrix",
        ),
        (
            lambda a: optimize.curve_fit(curve, TIMES, a * POINTS, full_output=True)[0][0],
            InputError,
            "full_output is for plain",
        ),
        (
            lambda a: optimize.curve_fit(curve, TIMES, a * POINTS, nan_policy="omit")[0][0],
            InputError,
            "nan_policy is for plain",
        ),
        (
            lambda a: optimize.minimize(valley, np.zeros(2), a).hess_inv[0, 0],
            NotDifferentiableError,
            "minimize: the steps of the search leave .* got 'hess_inv', at .* funcgrad.hessian",
        ),
        (
            lambda a: so.minimize(valley, np.zeros(2), a, method="Powell")["direc"][0, 0],
            NotDifferentiableError,
            "got 'direc'",
        ),
        (
            lambda a: so.root(lambda x: x**3 - a, [1.0]).fjac[0, 0],
            NotDifferentiableError,
            "root: the steps of the search leave .* got 'fjac'",
        ),
        (
            lambda a: so.fsolve(lambda x: x**3 - a, [1.0], full_output=True)[1]["qtf"][0],
            NotDifferentiableError,
            "got 'qtf'",
        ),
        (
            lambda a: so.differential_evolution(lambda x: (x[0] - a) ** 2, [(0, 3)], rng=0).population[0, 0],
            NotDifferentiableError,
            "got 'population'",
        ),
        (lambda a: optimize.curve_fit(lambda t: t, TIMES, a * POINTS)[0][0], ValueError, "number of fit parameters"),
    ],
)
def test_errors(program, error, says):
    with pytest.raises(error, match=says):
        grad(program)(1.0)


def test_errors_are_those_of_scipy_and_of_the_caller():
    def raises(x):
        raise RuntimeError("of the caller")

    square = lambda x: np.sum((x - 2.0) ** 2)
    for error, says, program in (
        (TypeError, "Improper input parameters", lambda a: a * so.fsolve(lambda x: x - 2.0, 1.0, xtol=-1)[0]),
        (ValueError, "must return a scalar", lambda a: so.minimize(lambda x: x * a, np.ones(2)).fun),
        (RuntimeError, "of the caller", lambda a: a * so.minimize(square, np.ones(2), jac=raises).fun),
    ):
        with pytest.raises(error, match=says):
            grad(program)(2.0)
    with pytest.raises(ConversionError, match="would lose the batch"):
        vmap(lambda tol: so.fsolve(lambda x: x - 2.0, 1.0, xtol=tol))(np.array([1e-3, 1e-4]))


def test_minimum_next_to_the_end_of_the_domain():
    def inside(x, a):
        if x[0] < a - 1e-4:
            raise ValueError("outside of the domain")
        return (x[0] - a) ** 2

    assert grad(lambda a: so.minimize(inside, np.array([2.0 + 1e-9]), a).x[0])(2.0) == pytest.approx(1.0)


def test_warnings_match_scipy():
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        optimize.fsolve(lambda x: x**2 + 1.0, 1.0)
    assert not optimize.minimize(valley, np.zeros(2), 1.0, options={"maxiter": 2}).success


def nearest(point, **options):
    """Return where the curve `(t**2, exp(t))` is nearest to `point`."""
    distance = lambda t: np.linalg.norm(np.array([t[0] ** 2 - point[0], np.exp(t[0]) - point[1]]))
    return so.minimize(distance, [0.1], method="Nelder-Mead", **options).x[0]


def test_kink_at_minimum_raises():
    """A distance of zero has no curvature: that next to the minimum gave an arbitrary derivative."""
    on_curve, beside = np.array([1.0, math.e]), np.array([1.1, math.e])
    for options in ({}, {"options": {"fatol": 1e-10}}, {"tol": 1e-9}):
        for transform in (jacobian, jacfwd, lambda f: lambda x: vmap(grad(f))(np.stack([beside, x]))):
            with pytest.raises(NotDifferentiableError, match=r"optimize\.minimize: fun has a kink at its minimum"):
                transform(lambda p, options=options: nearest(p, **options))(on_curve)
    given = {"tol": 1e-10}
    np.testing.assert_allclose(
        grad(lambda p: nearest(p, **given))(beside), differences(lambda p: nearest(p, **given), beside), rtol=1e-4
    )
    assert nearest(on_curve) == pytest.approx(1.0)
    for fun in (lambda t, a: np.hypot(t * t - a, np.exp(t) - math.e), lambda t, a: abs(t - a) + 0.1 * (t - 2 * a) ** 2):
        with pytest.raises(NotDifferentiableError, match=r"optimize\.minimize_scalar: fun has a kink"):
            grad(lambda a, fun=fun: so.minimize_scalar(fun, (0.5, 0.9), args=(a,)).x)(1.0)


@pytest.mark.parametrize(
    ("method", "error"), [("Nelder-Mead", NotDifferentiableError), ("BFGS", ConvergenceError)], ids=str
)
def test_minimum_at_a_kink_whose_gradient_has_no_derivative_raises(method, error):
    """The minimum is at ``a``, but the gradient, the sign of ``x - a`` plus ``2 x``, does not depend on ``a``."""
    bent = lambda x, a: abs(x[0] - a) + x[0] ** 2
    for result in ("x", "fun"):
        with pytest.raises(error):
            grad(lambda a, n=result: np.sum(so.minimize(bent, [0.0], (a,), method)[n]))(0.25)
    if error is NotDifferentiableError:
        with pytest.raises(error):
            grad(lambda a: so.minimize_scalar(lambda x: abs(x - a) + x**2, args=()).x)(0.25)


@pytest.mark.parametrize(
    ("fun", "start", "options"),
    [
        (lambda x, a: np.sqrt(1e-6 + (x[0] - a) ** 2), 0.9, {"method": "Nelder-Mead"}),
        (lambda x, a: -np.exp(-((x[0] - 1000 * a) ** 2) / 2), 999.5, {"tol": 1e-2}),
        (lambda x, a: (x[0] - a) ** 2 + (x[0] - a) ** 4 * 1e6, 0.9, {}),
        (lambda x, a: a * x[0] - np.log(x[0]), 0.5, {"bounds": [(1e-8, None)]}),
        (lambda x, a: a * x[0] - np.log(x[0]), 0.5, {"tol": 0.1}),
    ],
)
def test_narrow_minima_have_derivatives(fun, start, options):
    where = lambda a: so.minimize(fun, [start], (a,), **options).x[0]
    exact = -1.0 if start == 0.5 and options.get("method") is None else round(where(1.0))
    assert grad(where)(1.0) == pytest.approx(exact, rel=0.2 if options.get("tol") == 0.1 else 1e-3)


def test_rounding_limited_search_counts_as_converged():
    """Check solutions for which SciPy could not reach a tolerance that rounding makes unreachable."""
    bent = lambda x, a: (x[0] - a) ** 2 + (x[1] - a * x[0]) ** 4 + (x[1] - 1) ** 2
    lowest = lambda a, gtol: optimize.minimize(bent, np.array([1.0, 1.2]), a, options={"gtol": gtol})
    assert not lowest(1.3, 1e-15).success
    follow = lambda gtol: jacobian(lambda a: lowest(a, gtol).x)
    np.testing.assert_allclose(follow(1e-15)(1.3), follow(1e-9)(1.3), rtol=1e-6)
    np.testing.assert_allclose(vmap(follow(1e-15))(np.array([1.3, 1.4]))[0], follow(1e-9)(1.3), rtol=1e-6)
    with pytest.raises(ConvergenceError):
        jacobian(lambda a: optimize.minimize(bent, np.zeros(2), a, options={"maxiter": 1}).x)(1.3)


def test_nested_solvers_and_graphs():
    """Check a minimum of a function that calls a root finder; in a graph, the solver is one operation."""
    inner = lambda x: optimize.brentq(lambda y: y**3 - x * y - 1.0, 0.0, 9.0)
    outer = lambda a: optimize.minimize_scalar(lambda x: (inner(x) - a) ** 2, (1.0, 2.0)).x
    np.testing.assert_allclose(outer(1.7), (1.7**3 - 1) / 1.7, rtol=1e-6)
    np.testing.assert_allclose(grad(outer)(1.7), 2 * 1.7 + 1 / 1.7**2, rtol=1e-5)
    graph = trace(inner)(1.3)
    np.testing.assert_allclose(graph(1.5), inner(1.5), rtol=1e-12)
    np.testing.assert_allclose(grad(graph)(1.5), grad(inner)(1.5), rtol=1e-9)


# ---- minima under constraints ------------------------------------------------------------------------------

A0 = np.array([1.2, -0.4, 0.7])
SLSQP = {"method": "SLSQP", "tol": 1e-14}
TRUST = {"method": "trust-constr", "options": {"gtol": 1e-12, "xtol": 1e-13, "maxiter": 3_000}}


def apart(x, a):
    return np.sum((x - a) ** 2)


def on_sum(x):
    return np.sum(x) - 1.0


#: Constraints by kind: the solution, and its closed form.
UNDER = {
    "an equation": (
        lambda a: optimize.minimize(apart, np.zeros(3), a, constraints={"type": "eq", "fun": on_sum}, **SLSQP).x,
        lambda a: a - (np.sum(a) - 1.0) / 3.0,
    ),
    "of what it closes over": (
        lambda a: (
            optimize.minimize(
                lambda x: x @ x, np.ones(3), constraints={"type": "eq", "fun": lambda x: x @ a - 1.0}, **SLSQP
            ).x
        ),
        lambda a: a / (a @ a),
    ),
    "of arguments": (
        lambda a: (
            optimize.minimize(
                lambda x: x @ x,
                np.ones(3),
                constraints=[{"type": "eq", "fun": lambda x, b, c: x @ b - c, "args": (a, a[0])}],
                **SLSQP,
            ).x
        ),
        lambda a: a * a[0] / (a @ a),
    ),
    "an inequality that holds": (
        lambda a: (
            optimize.minimize(
                apart, np.zeros(3), a, constraints={"type": "ineq", "fun": lambda x: 0.5 - x @ x}, **SLSQP
            ).x
        ),
        lambda a: a * np.sqrt(0.5 / (a @ a)),
    ),
    "an inequality that does not": (
        lambda a: (
            optimize.minimize(
                apart, np.zeros(3), a, constraints={"type": "ineq", "fun": lambda x: 9.0 - x @ x}, **SLSQP
            ).x
        ),
        lambda a: a * 1.0,
    ),
    "a linear one": (
        lambda a: (
            optimize.minimize(
                apart, np.zeros(3), a, constraints=so.LinearConstraint(np.ones((1, 3)), -np.inf, 1.0), **SLSQP
            ).x
        ),
        lambda a: a - (np.sum(a) - 1.0) / 3.0,
    ),
    "nonlinear ones": (
        lambda a: (
            optimize.minimize(
                apart,
                np.zeros(3),
                a,
                constraints=so.NonlinearConstraint(lambda x: np.stack([x @ x, x[2]]), [-np.inf, -5.0], [0.5, 5.0]),
                **SLSQP,
            ).x
        ),
        lambda a: a * np.sqrt(0.5 / (a @ a)),
    ),
    "by trust-constr": (
        lambda a: (
            optimize.minimize(
                apart, np.zeros(3), a, constraints=so.LinearConstraint(np.ones((1, 3)), 1.0, 1.0), **TRUST
            ).x
        ),
        lambda a: a - (np.sum(a) - 1.0) / 3.0,
    ),
    "bounds beside one": (  # the second unknown is at its bound
        lambda a: (
            optimize.minimize(
                apart, np.ones(3) / 3, a, bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": on_sum}, **SLSQP
            ).x
        ),
        lambda a: np.stack([(1.0 + a[0] - a[2]) / 2.0, 0.0 * a[1], (1.0 + a[2] - a[0]) / 2.0]),
    ),
    "a corner that bounds fix": (  # the gradient fixes the multiplier to a range only
        lambda a: optimize.minimize(
            lambda x, a: apart(x[:3], a) + (x[3] - 3.0) ** 2 + (x[4] - 5.0) ** 2,
            np.ones(5) / 2,
            a,
            bounds=[(-9, 9)] * 3 + [(0, 1)] * 2,
            constraints={"type": "eq", "fun": lambda x: x[3] + x[4] - 1.0},
            **SLSQP,
        ).x[:3],
        lambda a: a,
    ),
    "one inequality twice": (
        lambda a: (
            optimize.minimize(
                apart, np.zeros(3), a, constraints=[{"type": "ineq", "fun": lambda x: 0.5 - x @ x}] * 2, **SLSQP
            ).x
        ),
        lambda a: a * np.sqrt(0.5 / (a @ a)),
    ),
    "the least value": (
        lambda a: optimize.minimize(apart, np.zeros(3), a, constraints={"type": "eq", "fun": on_sum}, **SLSQP).fun,
        lambda a: (np.sum(a) - 1.0) ** 2 / 3.0,
    ),
}


@pytest.mark.parametrize(("found", "closed"), UNDER.values(), ids=UNDER)
def test_minima_under_constraints(found, closed):
    def squares(fun):
        return lambda a: np.sum(fun(a) * np.arange(1.0, 4.0) * fun(a))

    near = {"rtol": 1e-6, "atol": 1e-6}  # tolerances of the minimum itself
    np.testing.assert_allclose(found(A0), closed(A0), **near)
    np.testing.assert_allclose(jacobian(found)(A0), jacobian(closed)(A0), **near)
    np.testing.assert_allclose(jacfwd(found)(A0), jacobian(closed)(A0), **near)
    np.testing.assert_allclose(hessian(squares(found))(A0), hessian(squares(closed))(A0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kind", ["an equation", "of arguments", "an inequality that holds", "bounds beside one", "a corner that bounds fix"]
)
def test_minima_under_constraints_in_a_batch(kind):
    found, closed = UNDER[kind]
    batch = A0 + np.array([[0.0], [0.02], [-0.03]])
    np.testing.assert_allclose(vmap(found)(batch), [closed(a) for a in batch], rtol=1e-6, atol=1e-6)
    slopes = [jacobian(closed)(a) for a in batch]
    np.testing.assert_allclose(vmap(jacobian(found))(batch), slopes, rtol=1e-6, atol=1e-6)


def at_corner(a, **limits):
    """Return the point next to ``a`` by an interior-point method, which stays at a distance from the limits."""
    return so.minimize(lambda x: np.sum((x - a) ** 2), np.array([0.2, 0.4]), method="trust-constr", **limits).x


BELOW, DISC = so.LinearConstraint([[1.0, 1.0]], -np.inf, 2.0), lambda x: x[0] ** 2 + x[1] ** 2
INTERIOR = {  # the limits, and the derivative at (2, 3) along (1, 1/2)
    "an upper limit": ({"constraints": BELOW}, [0.25, -0.25]),
    "a lower limit": ({"constraints": so.LinearConstraint([[-1.0, -1.0]], -2.0, np.inf)}, [0.25, -0.25]),
    "a sparse matrix": (
        {"constraints": so.LinearConstraint(scipy.sparse.csr_array([[1.0, 1.0]]), -np.inf, 2.0)},
        [0.25, -0.25],
    ),
    "two limits": ({"constraints": so.LinearConstraint([[1.0, 1.0], [1.0, 0.0]], -np.inf, [2.0, 0.3])}, [0.0, 0.0]),
    "one of two": (
        {"constraints": so.LinearConstraint([[1.0, 1.0], [1.0, 0.0]], -np.inf, [2.0, 0.6])},
        [0.25, -0.25],
    ),
    "a bound": ({"constraints": BELOW, "bounds": [(0.0, 0.3), (0.0, 5.0)]}, [0.0, 0.0]),
    "a bound beside a limit that does not hold": (
        {"constraints": so.LinearConstraint([[1.0, 1.0]], -np.inf, 9.0), "bounds": [(0.0, 0.3), (0.0, 5.0)]},
        [0.0, 0.5],
    ),
}


@pytest.mark.parametrize(("limits", "slope"), INTERIOR.values(), ids=INTERIOR)
def test_limits_that_an_interior_point_method_does_not_reach(limits, slope):
    point, along = np.array([2.0, 3.0]), np.array([1.0, 0.5])
    found = lambda a: at_corner(a, **limits)
    np.testing.assert_allclose(jvp(found, (point,), (along,))[1], slope, atol=1e-12)
    np.testing.assert_allclose(jacobian(found)(point) @ along, slope, atol=1e-12)
    both = vmap(jacobian(found))(np.stack([point, [0.1, 0.2]]))
    np.testing.assert_allclose(both @ along, [slope, along], atol=1e-12)
    assert vmap(found)(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0:UserWarning")  # of SciPy, at the solution
@pytest.mark.parametrize(
    "given",
    [
        {"jac": "cs"},
        {"jac": "3-point"},
        {"jac": lambda x: np.array([[2 * x[0], 2 * x[1]]])},
        {"jac": lambda x: np.array([[2 * x[0], 2 * x[1]]]), "hess": lambda x, v: 2 * v[0] * np.eye(2)},
    ],
    ids=["complex steps", "differences", "a Jacobian", "a Jacobian and a Hessian"],
)
def test_derivatives_of_nonlinear_constraints(given):
    def found(a):
        return at_corner(a, constraints=so.NonlinearConstraint(DISC, -np.inf, 2.0, **given))

    a = np.array([2.0, 3.0])
    np.testing.assert_allclose(found(a), a * np.sqrt(2.0 / (a @ a)), rtol=1e-4)
    np.testing.assert_allclose(
        jacobian(found)(a), jacobian(lambda a: a * np.sqrt(2.0 / (a @ a)))(a), rtol=1e-4, atol=1e-5
    )


def test_constraints_on_plain_values_match_scipy():
    limit = {"type": "ineq", "fun": lambda x: 0.5 - x @ x, "jac": lambda x: -2.0 * x}
    ours = optimize.minimize(apart, np.zeros(3), A0, constraints=limit, **SLSQP)
    theirs = so.minimize(apart, np.zeros(3), A0, constraints=limit, **SLSQP)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-7)
    assert ours.success
    assert set(ours) == set(theirs)


# ---- linear programs ---------------------------------------------------------------------------------------

ROWS, ENDS, COST = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([4.0, 6.0]), np.array([-1.0, -1.2])
PROGRAMS = {
    "ends": (lambda b: so.linprog(COST, ROWS, b).x, ENDS),
    "a column of ends": (lambda b: so.linprog(COST, ROWS, b[:, None]).x, ENDS),
    "rows": (lambda a: so.linprog(COST, A_ub=a, b_ub=ENDS).x, ROWS),
    "cost": (lambda c: so.linprog(c, ROWS, ENDS).x, COST),
    "least value": (lambda c: so.linprog(c, ROWS, ENDS).fun * np.ones(1), COST),
    "slack": (lambda b: so.linprog(COST, ROWS, b, bounds=(0, 1.0)).slack, ENDS),
    "sparse rows": (lambda b: so.linprog(COST, scipy.sparse.csr_array(ROWS), b, method="highs-ds").x, ENDS),
    "bounds": (lambda b: so.linprog(COST, ROWS, ENDS, bounds=[(0, b[0] / 8), (0.1, None)]).x, ENDS),
    "an equation": (
        lambda b: so.linprog([1.0, 2.0, 0.5], A_eq=np.ones((1, 3)), b_eq=b[:1], bounds=[(0, b[1] / 2)] * 3).x,
        ENDS,
    ),
}


@pytest.mark.parametrize(("fun", "x"), PROGRAMS.values(), ids=PROGRAMS)
def test_linear_programs_at_vertices(fun, x):
    slopes = jacobian(fun)(x)
    np.testing.assert_allclose(slopes, differences(fun, x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacfwd(fun)(x), slopes, rtol=1e-12, atol=1e-14)

    def squares(x):
        return np.sum(fun(x) ** 2)

    np.testing.assert_allclose(hessian(squares)(x), differences(grad(squares), x), rtol=1e-6, atol=1e-8)
    batch = np.stack([x, 1.01 * x])
    np.testing.assert_allclose(vmap(fun)(batch), [fun(x) for x in batch], rtol=1e-12)
    np.testing.assert_allclose(vmap(jacobian(fun))(batch)[0], slopes, rtol=1e-12, atol=1e-14)


def test_invalid_linear_programs_raise():
    with pytest.raises(ConvergenceError, match="infeasible"):
        grad(lambda b: optimize.linprog(COST, ROWS, b, bounds=(1.0, None)).fun)(-ENDS)


def cubic(a):
    return lambda t: t**3 - a


DERIVATIVES_GIVEN = {
    "newton": lambda a: optimize.newton(cubic(a), 1.5, lambda t: 3 * t**2 + 0 * a),
    "newton, Halley": lambda a: optimize.newton(cubic(a), 1.5, lambda t: 3 * t**2, fprime2=lambda t: 6 * t + 0 * a),
    "newton, several": lambda a: fnp.sum(optimize.newton(cubic(a), [1.5, 1.4], lambda t: 3 * t**2 + 0 * a)),
    "root_scalar": lambda a: optimize.root_scalar(cubic(a), x0=1.5, fprime=lambda t: 3 * t**2 + 0 * a).root,
    "root": lambda a: optimize.root(cubic(a), [1.5], jac=lambda t: fnp.reshape(3 * t**2 + 0 * a, (1, 1))).x[0],
    "fsolve": lambda a: optimize.fsolve(cubic(a), [1.5], fprime=lambda t: fnp.reshape(3 * t**2 + 0 * a, (1, 1)))[0],
    "fsolve, columns": lambda a: fnp.sum(
        optimize.fsolve(
            lambda t: fnp.stack([t[0] + 2 * t[1] - a, t[1] ** 3 - a]),
            [1.5, 1.5],
            fprime=lambda t: fnp.array([[1.0 + 0 * a, 0.0], [2.0, 3 * t[1] ** 2]]),
            col_deriv=True,
        )
    ),
    "minimize": lambda a: optimize.minimize(
        lambda t: (t[0] - a) ** 2 + t[0] ** 4, [1.2], jac=lambda t: 2 * (t - a) + 4 * t**3, options={"gtol": 1e-9}
    ).x[0],
    "minimize, Hessian": lambda a: optimize.minimize(
        lambda t: (t[0] - a) ** 2 + t[0] ** 4,
        [1.2],
        jac=lambda t: 2 * (t - a) + 4 * t**3,
        hess=lambda t: fnp.reshape(2 + 0 * a + 12 * t**2, (1, 1)),
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x[0],
    "least_squares": lambda a: optimize.least_squares(
        lambda t: fnp.stack([t[0] - a, t[0] ** 2 - 1.0]),
        [1.0],
        jac=lambda t: fnp.array([[1.0 + 0 * a], [2 * t[0]]]),
        xtol=1e-13,
        gtol=1e-13,
        ftol=1e-13,
    ).x[0],
    "curve_fit": lambda a: optimize.curve_fit(
        lambda t, k: fnp.exp(-k * t) * a,
        np.arange(5.0),
        2.5 * np.exp(-0.3 * np.arange(5.0)),
        [0.2],
        jac=lambda t, k: (-t * fnp.exp(-k * t) * a)[:, None],
        xtol=1e-13,
        ftol=1e-13,
    )[0][0],
}


@pytest.mark.parametrize("name", DERIVATIVES_GIVEN)
def test_user_derivatives_close_over_batch(name):
    """Check derivatives passed to SciPy that close over a batch: each example's search uses its own values."""
    f, batch = DERIVATIVES_GIVEN[name], np.array([2.0, 3.0])
    np.testing.assert_allclose(vmap(f)(batch), [f(a) for a in batch], rtol=1e-7)
    slopes = [grad(f)(a) for a in batch]
    np.testing.assert_allclose(vmap(grad(f))(batch), slopes, rtol=1e-6)
    np.testing.assert_allclose(slopes, [differences(f, a) for a in batch], rtol=1e-5)


def test_batch_with_one_start_at_minimum():
    """Check BFGS, whose inverse Hessian has integers for an example at the minimum, and floats elsewhere."""
    f = lambda a: optimize.minimize(lambda t: (t[0] - a) ** 2 + t[0] ** 4, [1.0], method="BFGS").x[0]
    np.testing.assert_allclose(vmap(f)(np.array([2.0, 3.0])), [f(2.0), 1.0], rtol=1e-6)


OLDER = {
    "fmin": lambda f, slope: so.fmin(f, [1.0], disp=0, xtol=1e-11, ftol=1e-15),
    "fmin_bfgs": lambda f, slope: so.fmin_bfgs(f, [1.0], slope, disp=0, full_output=True)[0],
    "fmin_cg": lambda f, slope: so.fmin_cg(f, [1.0], slope, disp=0),
    "fmin_ncg": lambda f, slope: so.fmin_ncg(f, [1.0], slope, disp=0),
    "fmin_powell": lambda f, slope: so.fmin_powell(f, [1.0], disp=0, full_output=True)[0],
    "fmin_l_bfgs_b": lambda f, slope: so.fmin_l_bfgs_b(lambda x: (f(x), slope(x)), [1.0])[0],
    "fmin_l_bfgs_b, bounds": lambda f, slope: so.fmin_l_bfgs_b(f, [1.0], slope, bounds=[(0, 5)])[0],
    "fmin_tnc": lambda f, slope: so.fmin_tnc(f, [1.0], slope, disp=0)[0],
    "fmin_slsqp": lambda f, slope: so.fmin_slsqp(f, [1.0], fprime=slope, disp=0, full_output=True)[0],
    "fmin_cobyla": lambda f, slope: so.fmin_cobyla(f, [1.0], lambda x: x + 3, rhoend=1e-12),
    "brent": lambda f, slope: so.brent(f, brack=(1.0, 1.5)),
    "fminbound": lambda f, slope: so.fminbound(f, -1.0, 3.0),
    "golden": lambda f, slope: so.golden(f, brack=(0.5, 1.1, 2.5), tol=1e-12),
}


@pytest.mark.parametrize("name", OLDER)
def test_fmin_functions_starting_at_minimum(name):
    def found(s):
        least = OLDER[name](lambda x: np.sum((x - s) ** 2) + s * np.sum(x), lambda x: 2 * (x - s) + s)
        return np.sum(least)

    assert grad(found)(2.0) == pytest.approx(0.5, abs=1e-6)
    assert vmap(grad(found))(np.array([2.0, 3.0])) == pytest.approx(0.5, abs=1e-6)


STRAIGHT = {
    "brent": lambda s: so.brent(parabola(s)),
    "brent, bracket": lambda s: so.brent(parabola(s), brack=(1.0, 1.5)),
    "brent, full": lambda s: so.brent(parabola(s), full_output=True)[0],
    "fminbound": lambda s: so.fminbound(parabola(s), -3.0, 3.0),
    "golden": lambda s: so.golden(parabola(s)),
    "golden, bracket": lambda s: so.golden(parabola(s), brack=(0.0, 0.5, 3.0)),
    "minimize_scalar": lambda s: so.minimize_scalar(parabola(s)).x,
    "minimize_scalar, bounds": lambda s: so.minimize_scalar(parabola(s), bounds=(-3.0, 3.0)).x,
    "minimize_scalar, golden": lambda s: so.minimize_scalar(parabola(s), method="golden").x,
    "newton": lambda s: so.newton(square(s), 1.0, fprime=lambda x: 2 * x) / s,
    "newton at the root": lambda s: so.newton(square(s), 1.0 * float(np.sqrt(2.0)), fprime=lambda x: 2 * x) / s,
    "newton, secants": lambda s: so.newton(square(s), 1.0, x1=3.0) / s,
    "newton, Halley": lambda s: so.newton(square(s), 1.0, lambda x: 2 * x, fprime2=lambda x: 2.0) / s,
    "root_scalar": lambda s: so.root_scalar(square(s), x0=1.0, fprime=lambda x: 2 * x).root / s,
    "toms748": lambda s: so.toms748(square(s), 0.0, 5.0) / s,
    "find_root": lambda s: find_root(square(s), (1.0, 5.0)).x / s,
    "find_root at an end": lambda s: find_root(lambda x, s: x - s**-0.5, (2.0**-0.5, 5.0), args=(s,)).x,
    "find_minimum": lambda s: find_minimum(parabola(s), (-3.0, 0.5, 2.0)).x,
    "find_minimum in the middle": lambda s: find_minimum(lambda x, s: parabola(s)(x), (0.0, 1.0, 3.0), args=(s,)).x,
}


def parabola(s):
    return lambda x: (x - s) ** 2 + s * x


def square(s):
    return lambda x: x * x - s


@pytest.mark.parametrize("name", STRAIGHT)
def test_searches_without_conversion_have_derivative(name):
    f = STRAIGHT[name]
    roots = f(2.0) == pytest.approx(2.0**-0.5)
    first, second = (-0.5 * 2.0**-1.5, 0.75 * 2.0**-2.5) if roots else (0.5, 0.0)
    assert grad(f)(2.0) == pytest.approx(first, rel=1e-9)
    assert jvp(f, (2.0,), (1.0,))[1] == pytest.approx(first, rel=1e-9)
    assert grad(grad(f))(2.0) == pytest.approx(second, abs=1e-9)
    assert vmap(grad(f))(np.array([2.0, 2.0])) == pytest.approx(first, rel=1e-9)
    with as_written(), pytest.raises(ConversionError, match=r"a comparison in a search|asarray"):
        grad(f)(2.0)


def test_elementwise_solvers_take_arguments_by_name():
    a = np.array([1.5, 2.0])
    root = lambda a, b: optimize.elementwise.find_root(
        lambda x, a, *, b: x**2 - a * b, (0.0, 9.0), args=a, kwargs={"b": b}
    )
    np.testing.assert_allclose(root(a, 1.5).x, np.sqrt(1.5 * a))
    np.testing.assert_allclose(grad(lambda b: root(a, b).x.sum())(1.5), np.sum(np.sqrt(a / 1.5)) / 2)
    least = lambda a: optimize.elementwise.find_minimum(
        lambda x, *, s: parabola(s)(x), (-3.0, 0.5, 2.0), kwargs={"s": a}
    )
    np.testing.assert_allclose(jacobian(lambda a: least(a).x)(a), 0.5 * np.eye(2))


def test_elementwise_roots_and_minima():
    a, low, high = np.array([2.0, 3.0, 4.0]), np.array([0.0, 1.0, 2.0]), 5.0
    roots = lambda a: find_root(lambda x, a: x**3 - a * x - 1.0, (low, high), args=(a,))
    theirs, slope = roots(a), lambda x: x / (3 * x**2 - a)
    ours = optimize.elementwise.find_root(lambda x, a: x**3 - a * x - 1.0, (low, high), args=(a,))
    np.testing.assert_array_equal(ours.bracket, theirs.bracket)
    np.testing.assert_array_equal(ours.nfev, theirs.nfev)
    np.testing.assert_allclose(jacobian(lambda a: roots(a).x)(a), np.diag(slope(theirs.x)), rtol=1e-9, atol=1e-12)
    traced = []
    grad(lambda a: traced.append(roots(a)) or a.sum())(a)
    assert traced[0].success.all()
    np.testing.assert_array_equal(traced[0].bracket, theirs.bracket)
    np.testing.assert_allclose(jacobian(lambda a: roots(a).f_x)(a), np.zeros((3, 3)), atol=1e-9)
    least = lambda a: find_minimum(lambda x, a: np.exp(x) - a * x, (low - 1.0, 1.1, high), args=(a,))
    np.testing.assert_allclose(jacobian(lambda a: least(a).x)(a), np.diag(1 / a), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(vmap(grad(lambda a: least(a).x[1]))(np.stack([a, a])), [[0, 1 / 3, 0]] * 2, rtol=1e-6)
    np.testing.assert_allclose(hessian(lambda a: least(a).x.sum())(a), np.diag(-1 / a**2), rtol=1e-6, atol=1e-12)
    with pytest.raises(ConvergenceError, match=r"elementwise\.find_root"):
        jacobian(lambda a: find_root(lambda x, a: x**3 - a * x - 1.0, (low, high), args=(a,), maxiter=2).x)(a)


WITH_LISTS = {
    "newton": lambda f: so.newton(f, np.array([1.0]), args=[2.0, 0.3]),
    "fixed_point": lambda f: so.fixed_point(lambda x, a, b: x - 0.2 * f(x, a, b), 1.0, args=[2.0, 0.3]),
    "least_squares": lambda f: so.least_squares(f, [1.0], args=[2.0, 0.3]).x,
    "fmin_bfgs": lambda f: so.fmin_bfgs(lambda x, a, b: np.sum(f(x, a, b) ** 2), [1.0], args=[2.0, 0.3], disp=0),
    "fminbound": lambda f: so.fminbound(lambda x, a, b: f(x, a, b) ** 2, 0.0, 2.0, args=[2.0, 0.3]),
    "nquad": lambda f: si.nquad(f, [(0.0, 1.0)], args=[2.0, 0.3])[0],
    "dblquad": lambda f: si.dblquad(lambda y, x, a, b: f(x, a, b), 0.0, 1.0, 0.0, 1.0, args=[2.0, 0.3])[0],
}


@pytest.mark.parametrize("name", WITH_LISTS)
def test_args_given_as_list(name):
    def found(s):
        return np.sum(WITH_LISTS[name](lambda x, a, b: s * a * x**2 - b - 1.0))

    np.testing.assert_allclose(grad(found)(1.1), differences(found, 1.1, 1e-4), rtol=2e-3)


def _decay(t, a, b):
    return a * np.exp(-b * t)


def _valley(s):
    return lambda p: (p[0] - s) ** 2 + (p[1] - s * p[0]) ** 2


AT = np.linspace(0.0, 1.0, 6)
MEASURED = np.exp(-1.3 * AT) + 0.01 * np.cos(9 * AT)
STARTS_IN_LISTS = {
    "curve_fit": lambda s: so.curve_fit(_decay, AT, s * MEASURED, [s, 1.0])[0],
    "least_squares": lambda s: so.least_squares(lambda p: _decay(AT, *p) - s * MEASURED, (s, 1.0)).x,
    "leastsq": lambda s: so.leastsq(lambda p: _decay(AT, *p) - s * MEASURED, [s, 1.0])[0],
    "minimize": lambda s: so.minimize(_valley(s), [s, 1.0], tol=1e-9).x,
    "minimize, bounds": lambda s: so.minimize(_valley(s), [s, 1.0], bounds=[(0.0, s + 2.0), (None, 9.0)], tol=1e-12).x,
    "fmin_bfgs": lambda s: so.fmin_bfgs(_valley(s), [s, 1.0], gtol=1e-8, disp=0),
    "newton": lambda s: so.newton(lambda x: x**2 - s, [s, 2.0 * s]),
}


@pytest.mark.parametrize("name", STARTS_IN_LISTS)
def test_start_is_list_of_tracers(name):
    def found(s):
        return np.dot(STARTS_IN_LISTS[name](s), [1.0, 2.0])

    np.testing.assert_allclose(grad(found)(1.37), differences(found, 1.37, 1e-4), rtol=2e-3)
    np.testing.assert_allclose(vmap(grad(found))(np.array([1.37, 1.4]))[0], grad(found)(1.37))


@pytest.mark.parametrize(
    "solve",
    [
        lambda xp: optimize.minimize(lambda x: xp.sum(xp.array([x[0] - 1, x[1] * x[0]]) ** 2), np.full(2, 0.3)),
        lambda xp: optimize.minimize(
            lambda x: x @ x,
            np.ones(2),
            constraints=so.NonlinearConstraint(lambda x: xp.array([x[0] * x[1], x[0]]), [2.0, 0.5], np.inf),
        ),
        lambda xp: optimize.root(lambda x: xp.array([x[0] - 1, x[1] * x[0] - 0.5]), np.ones(2)),
        lambda xp: optimize.curve_fit(
            lambda t, a, b: xp.array([a * one + b for one in t]), np.arange(4.0), np.sin(np.arange(4.0))
        ),
    ],
    ids=["minimize", "constraints", "root", "curve_fit"],
)
def test_exact_derivatives_of_numpy_code_in_plain_calls(solve):
    """Check that code written for NumPy takes as few calls as code written for funcgrad."""
    got, want = solve(np), solve(fnp)
    for a, b in zip(*[[r.x, r.nfev, r.njev] if hasattr(r, "x") else list(r) for r in (got, want)], strict=True):
        np.testing.assert_array_equal(a, b)


def test_branches_of_closures_in_batches_raise():
    def solution(a):
        return so.brentq(lambda x: x**3 - a if x > 1.0 else x - a, 0.1, 3.0)

    assert control.map(solution, np.array([2.0, 0.5])) == pytest.approx([2.0 ** (1 / 3), 0.5])
    with pytest.raises(BranchError, match=r"optimize\.brentq: inside vmap .* may not branch.*control\.map"):
        vmap(solution)(np.array([2.0, 0.5]))


#: Solvers that find the ``x`` with ``x**3 + x == a``: as a root, a minimum and a fixed point.
KEEPING = {
    "brentq": (lambda x, a: x**3 + x - a, lambda f: so.brentq(f, 0.0, 3.0)),
    "newton": (lambda x, a: x**3 + x - a, lambda f: so.newton(f, 1.5)),
    "newton of an array": (lambda x, a: x**3 + x - a, lambda f: so.newton(f, np.full(2, 1.5))),
    "fsolve": (lambda x, a: x**3 + x - a, lambda f: so.fsolve(f, 1.5)),
    "fixed_point": (lambda x, a: a / (1 + x * x), lambda f: so.fixed_point(f, 1.5)),
    "minimize": (lambda x, a: np.sum(x**4 / 4 + x**2 / 2 - a * x), lambda f: so.minimize(f, 1.5, tol=1e-9)),
}


@pytest.mark.parametrize("name", KEEPING)
def test_what_functions_keep_is_of_the_solution(name):
    """Check numbers that a program reads from the last call of its function, as objects with models do."""
    rule, solve = KEEPING[name]

    def kept(a):
        seen = {}

        def f(x):
            seen["square"] = x * x
            return rule(x, a)

        solve(f)
        return np.mean(seen["square"])

    x = so.brentq(lambda x: x**3 + x - 4.0, 0.0, 3.0)
    np.testing.assert_allclose(grad(kept)(4.0), 2 * x / (3 * x * x + 1), rtol=1e-6)
