"""What SciPy's solvers find, differentiated: against closed forms, unrolled iterations and SciPy's own values."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import funcgrad.numpy as fnp
from funcgrad import control, grad, hessian, jacobian, jacrev, jvp, no_grad, trace, vjp, vmap
from funcgrad.errors import ConvergenceError, InputError, ShapeError
from funcgrad.scipy import optimize
from funcgrad.transforms import newton as by_newton

PAIR = np.array([1.0, 1.2])
TIMES = np.linspace(0.0, 2.0, 9)
A = 1.3


def cubic(x, a):
    return x**3 - a * x - 1.0


def slope(x, a):
    return 3 * x**2 - a


def curvature(x, a):
    return 6 * x


def valley(x, a):
    return (x[0] - a) ** 2 + (x[1] - a * x[0]) ** 4 + (x[1] - 1) ** 2


def lowest(a, f=valley, start=PAIR):
    """By Newton's method on the gradient, whose steps are differentiated."""
    return by_newton(grad(lambda x: f(x, a)), start, tol=1e-14)


def root_of_cubic(a):
    return by_newton(lambda x: cubic(x, a), 1.5, tol=1e-14)


def same_derivatives(found, reference, a=A, rtol=1e-6):
    """Of one number, up to the second order and in a batch."""
    np.testing.assert_allclose(found(a), reference(a), rtol=rtol)
    for derivative in (jacobian, jacrev, lambda f: jacobian(jacrev(f)), lambda f: jacrev(jacobian(f))):
        np.testing.assert_allclose(derivative(found)(a), derivative(reference)(a), rtol=rtol, atol=rtol)
    several = np.array([a, a + 0.1, a + 0.2])
    want = np.stack([jacrev(reference)(v) for v in several])
    np.testing.assert_allclose(vmap(jacrev(found))(several), want, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(vmap(found)(several), np.stack([reference(v) for v in several]), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(vjp(found, a)[0], found(a), rtol=1e-13)  # as a plain call


BRACKETING = ("brentq", "brenth", "bisect", "ridder", "toms748")


@pytest.mark.parametrize("name", BRACKETING)
def test_bracketed_roots(name):
    find = getattr(optimize, name)
    same_derivatives(lambda a: find(lambda x: cubic(x, a), 0.0, 5.0), root_of_cubic)
    same_derivatives(lambda a: find(cubic, a - 1.0, 4.0 + a, a), root_of_cubic)  # the ends do not matter
    assert find(cubic, 0.0, 5.0, A) == getattr(scipy.optimize, name)(cubic, 0.0, 5.0, A)
    x, report = vjp(lambda a: find(cubic, 0.0, 5.0, (a,), full_output=True), A, has_aux=True)[::2]
    assert (x, report.converged) == (find(cubic, 0.0, 5.0, A), True)


ROOTS = {
    "bracket": {"bracket": (0.0, 5.0)},
    "guess": {"x0": 1.5},
    "guesses": {"x0": 1.5, "x1": 2},
    "newton": {"x0": 1.5, "fprime": slope, "method": "newton"},
    "halley": {"x0": 1.5, "fprime": slope, "fprime2": curvature},
}


@pytest.mark.parametrize("kind", ROOTS)
def test_roots_of_one_number(kind):
    same_derivatives(lambda a: optimize.root_scalar(cubic, a, **ROOTS[kind]).root, root_of_cubic)
    given = {name: value for name, value in ROOTS[kind].items() if name != "method"}
    if kind in ("guess", "guesses"):
        same_derivatives(lambda a: optimize.newton(cubic, args=(a,), **given), root_of_cubic)
    report = []
    grad(lambda a: report.append(optimize.root_scalar(cubic, a, **ROOTS[kind])) or report[0].root)(A)
    own = scipy.optimize.root_scalar(cubic, A, **ROOTS[kind])
    assert report[0].converged
    assert report[0].method == own.method


def test_newton():
    same_derivatives(lambda a: optimize.newton(cubic, 1.5, slope, (a,)), root_of_cubic)
    same_derivatives(lambda a: optimize.newton(cubic, 1.5, slope, (a,), fprime2=curvature), root_of_cubic)
    both = lambda a: optimize.root_scalar(lambda x: (cubic(x, a), slope(x, a)), x0=1.5, fprime=True).root
    same_derivatives(both, root_of_cubic)
    several = lambda a: optimize.newton(lambda x: x**2 - a * np.array([1.0, 4.0]), np.array([1.0, 1.5]))
    same_derivatives(several, lambda a: fnp.sqrt(a) * np.array([1.0, 2.0]))
    x, converged, flat = vjp(
        lambda a: optimize.newton(lambda x: x**2 - a, np.ones(2), full_output=True), np.array([1.0, 4.0]), has_aux=False
    )[0]
    assert np.allclose(x, [1.0, 2.0])
    assert converged.all()
    assert not flat.any()


def system(x, a):
    return fnp.stack([x[0] + 0.3 * a * fnp.sin(x[1]) - 1.0, x[1] - 0.3 * x[0] ** 2 - a])


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "broyden1", "df-sane"])
def test_systems(method):
    reference = lambda a: by_newton(lambda x: system(x, a), PAIR, tol=1e-14)
    options = {"method": method, "tol": 1e-11}
    same_derivatives(lambda a: optimize.root(system, PAIR, a, **options).x, reference, rtol=1e-5)
    if method in ("hybr", "lm"):
        exact = lambda a: optimize.root(lambda x: (system(x, a), None), PAIR, jac=True, **options).x
        np.testing.assert_allclose(jacobian(exact)(A), jacobian(reference)(A), rtol=1e-6)
        same_derivatives(lambda a: optimize.fsolve(system, PAIR, a), reference)
        jac = lambda x, a: np.array([[1.0, 0.3 * a * np.cos(x[1])], [-0.6 * x[0], 1.0]])
        np.testing.assert_allclose(jacobian(lambda a: optimize.fsolve(system, PAIR, a, jac))(A), jacobian(reference)(A))


def test_fixed_points():
    reference = lambda a: by_newton(lambda x: x - fnp.cos(a * x), 0.5, tol=1e-14)
    same_derivatives(lambda a: optimize.fixed_point(lambda x: fnp.cos(a * x), 0.5), reference)
    whole = lambda a: optimize.fixed_point(lambda x, a: 0.5 * (x + a / x), np.ones(2), (a,), method="iteration")
    np.testing.assert_allclose(jacobian(whole)(np.array([4.0, 9.0])), np.diag([1 / 4, 1 / 6]), rtol=1e-6)


TIGHT = {"gtol": 1e-11}
METHODS = {
    "BFGS": TIGHT,
    "CG": TIGHT,
    "L-BFGS-B": {"gtol": 1e-11, "ftol": 1e-16},
    "SLSQP": {"ftol": 1e-16},
    "Newton-CG": {"xtol": 1e-11},
    "trust-exact": TIGHT,
    "trust-ncg": TIGHT,
    "trust-krylov": {"gtol": 1e-9},
    "dogleg": TIGHT,
    "Nelder-Mead": {"xatol": 1e-10, "fatol": 1e-14},
    "trust-constr": {"gtol": 1e-10},
}


@pytest.mark.parametrize("method", METHODS)
def test_minima(method):
    rtol = 1e-5
    found = lambda a: optimize.minimize(valley, PAIR, a, method=method, options=METHODS[method]).x
    same_derivatives(found, lowest, rtol=rtol)
    if method == "BFGS":
        value = lambda a: optimize.minimize(valley, PAIR, a).fun
        same_derivatives(value, lambda a: valley(lowest(a), a), rtol=rtol)
        exact = lambda a: optimize.minimize(
            lambda x: (valley(x, a), grad(valley)(x, a)), PAIR, jac=True, options={"gtol": 1e-10}
        )
        np.testing.assert_allclose(jacobian(lambda a: exact(a).x)(A), jacobian(lowest)(A), rtol=rtol)


def test_minima_within_bounds():
    """A variable that is held follows its bound, the others what they minimise then."""

    def held(a):
        second = 1.5 * a
        first = lowest(a, lambda x, a: valley(fnp.stack([x, second]), a), 1.0)
        return fnp.stack([first, second])

    limits = lambda a: [(None, None), (1.5 * a, None)]
    same_derivatives(lambda a: optimize.minimize(valley, PAIR, a, bounds=limits(a)).x, held, rtol=1e-4)
    box = scipy.optimize.Bounds([-9.0, -9.0], [9.0, 9.0])
    same_derivatives(
        lambda a: optimize.minimize(valley, PAIR, a, bounds=box, options=METHODS["L-BFGS-B"]).x, lowest, rtol=1e-4
    )
    high = lambda a: optimize.minimize(lambda x: fnp.sum((x - a) ** 2), np.zeros(1), bounds=[(0.0, 1.0)]).x[0]
    assert (high(2.0), grad(high)(2.0), grad(high)(0.5)) == (1.0, 0.0, pytest.approx(1.0))
    with pytest.raises(ShapeError, match="a pair of bounds is needed for each of 2 variables, got 1"):
        grad(lambda a: optimize.minimize(valley, PAIR, a, bounds=[(0, 1)]).fun)(A)


def test_minima_of_one_number():
    f = lambda x, a: fnp.cosh(x - a**2)
    same_derivatives(lambda a: optimize.minimize_scalar(f, args=a).x, fnp.square, rtol=1e-5)
    same_derivatives(
        lambda a: optimize.minimize_scalar(f, (0.0, 1.0), args=a, method="golden").x, fnp.square, rtol=1e-5
    )
    inner = {"bounds": (0.0, 9.0), "options": {"xatol": 1e-9}}
    same_derivatives(lambda a: optimize.minimize_scalar(f, args=a, **inner).x, fnp.square, rtol=1e-5)
    at_end = lambda a: optimize.minimize_scalar(f, args=a, bounds=(0.0, a)).x
    np.testing.assert_allclose([at_end(A), grad(at_end)(A), grad(grad(at_end))(A)], [A, 1.0, 0.0], atol=1e-5)
    low = lambda a: optimize.minimize_scalar(f, args=a, bounds=(a + 1, 9.0)).x
    np.testing.assert_allclose(vmap(grad(low))(np.array([A, 1.1])), 1.0)


def misfit(p, a):
    return p[0] * fnp.exp(-p[1] * TIMES) - (a * np.cos(TIMES) + 2)


LOSSES = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (fnp.sqrt(1 + z) - 1),
    "huber": lambda z: fnp.where(z <= 1, z, 2 * fnp.sqrt(fnp.where(z <= 1, 1.0, z)) - 1),
    "cauchy": fnp.log1p,
    "arctan": fnp.arctan,
}


@pytest.mark.parametrize("loss", LOSSES)
def test_least_squares(loss):
    start, tight = np.array([3.0, 0.5]), {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    cost = lambda p, a: 0.5 * 3.0**2 * fnp.sum(LOSSES[loss]((misfit(p, a) / 3.0) ** 2))
    exact = lambda p, a: jacobian(misfit)(p, a)
    options = {"args": (A,), "loss": loss, "f_scale": 3.0, **tight}
    begin = scipy.optimize.least_squares(misfit, start, **options).x
    found = lambda a: optimize.least_squares(misfit, start, exact, **{**options, "args": (a,)})
    same_derivatives(lambda a: found(a).x, lambda a: lowest(a, cost, begin), rtol=1e-4)
    same_derivatives(lambda a: found(a).cost, lambda a: cost(lowest(a, cost, begin), a), rtol=1e-4)


def test_least_squares_within_bounds():
    f = lambda p, a: fnp.stack([p[0] - a, p[1] - 2 * a, 0.1 * (p[0] + p[1])])
    found = lambda a: optimize.least_squares(f, np.array([0.5, 0.5]), args=(a,), bounds=([0.0, 0.0], [np.inf, 1.0])).x
    np.testing.assert_allclose(found(A), [(A - 0.01) / 1.01, 1.0], rtol=1e-6)
    np.testing.assert_allclose(jacobian(found)(A), [1 / 1.01, 0.0], rtol=1e-6)
    with pytest.raises(InputError, match="loss is the name of one"):
        grad(lambda a: optimize.least_squares(f, PAIR, args=(a,), loss=lambda z: z).cost)(A)


def decay(t, height, rate):
    return height * fnp.exp(-rate * t)


DATA = 2.5 * np.exp(-0.7 * TIMES) + 0.1 * np.sin(9 * TIMES)
SIGMA = np.linspace(0.1, 0.3, 9)
FITS = {
    "plain": {},
    "weights": {"sigma": SIGMA},
    "errors": {"sigma": SIGMA, "absolute_sigma": True},
    "covariance": {"sigma": np.diag(SIGMA) + 0.01},
    "bounds": {"bounds": (0.0, [9.0, 9.0])},
    "start": {"p0": [2.0, 1.0], "jac": lambda t, *p: jacobian(lambda p: decay(t, *p))(np.array(p))},
}


@pytest.mark.parametrize("kind", FITS)
def test_curves(kind):
    data = lambda a: a * DATA + 0.1 * a**2 * np.sin(3 * TIMES)
    fit = lambda a: optimize.curve_fit(decay, TIMES, data(a), **FITS[kind])
    sigma = FITS[kind].get("sigma", np.ones(9))
    inverse = np.linalg.inv(sigma) if np.ndim(sigma) == 2 else np.diag(sigma**-2.0)

    def cost(p, a):
        r = decay(TIMES, *p) - data(a)
        return r @ inverse @ r

    same_derivatives(lambda a: fit(a)[0], lambda a: lowest(a, cost, np.array([3.3, 0.7])), rtol=1e-4)
    popt, pcov = scipy.optimize.curve_fit(decay, TIMES, data(A), **FITS[kind])
    np.testing.assert_allclose(vjp(fit, A)[0][0], popt, rtol=1e-8)
    np.testing.assert_allclose(vjp(fit, A)[0][1], pcov, rtol=1e-5)
    h = 1e-4
    measured = (vjp(fit, A + h)[0][1] - vjp(fit, A - h)[0][1]) / (2 * h)
    np.testing.assert_allclose(jacobian(fit)(A)[1], measured, rtol=1e-4, atol=1e-7)


def test_curves_follow_their_data():
    """Each point, its weight and its place, as a straight line follows them."""
    line = lambda t, height, rate: height + rate * t
    matrix = np.stack([np.ones(9), TIMES], -1)
    follow = jacobian(lambda y: optimize.curve_fit(line, TIMES, y)[0])(DATA)
    np.testing.assert_allclose(follow, np.linalg.pinv(matrix), atol=1e-6)
    direct = lambda t: fnp.linalg.lstsq(fnp.stack([np.ones(9), t], -1), DATA)[0]
    np.testing.assert_allclose(
        jacobian(lambda t: optimize.curve_fit(line, t, DATA)[0])(TIMES), jacobian(direct)(TIMES), atol=1e-6
    )
    with pytest.warns(scipy.optimize.OptimizeWarning, match="Covariance"):
        grad(lambda a: optimize.curve_fit(line, TIMES[:2], a * DATA[:2])[0][0])(A)
    with pytest.raises(ValueError, match="the number of parameters cannot be told"):
        grad(lambda a: optimize.curve_fit(lambda *p: p, TIMES, a * DATA)[0][0])(A)
    with pytest.raises(InputError, match="full_output and nan_policy are for plain calls"):
        grad(lambda a: optimize.curve_fit(line, TIMES, a * DATA, full_output=True)[0][0])(A)


def test_plain_calls_are_scipys():
    assert optimize.minimize(valley, PAIR, A).nfev == scipy.optimize.minimize(valley, PAIR, A).nfev
    assert optimize.minimize(valley, PAIR, (A,), "trust-exact").success
    assert np.array_equal(optimize.fsolve(system, PAIR, A), scipy.optimize.fsolve(system, PAIR, A))
    assert np.array_equal(optimize.root(system, PAIR, A).x, scipy.optimize.root(system, PAIR, A).x)
    assert optimize.newton(cubic, 1.5, args=(A,)) == scipy.optimize.newton(cubic, 1.5, args=(A,))
    assert optimize.minimize_scalar(lambda x: (x - 2) ** 2).x == pytest.approx(2.0)
    assert np.array_equal(optimize.curve_fit(decay, TIMES, DATA)[1], scipy.optimize.curve_fit(decay, TIMES, DATA)[1])
    assert grad(lambda a: no_grad(lambda a: optimize.brentq(cubic, 0.0, 5.0, a))(a) * a)(A) == optimize.brentq(
        cubic, 0.0, 5.0, A
    )


def test_in_graphs_and_on_jax_arrays():
    find = lambda a: optimize.brentq(cubic, 0.0, 5.0, a)
    graph = trace(find)(A)
    assert "optimize.brentq" in str(graph)
    assert graph(1.5) == pytest.approx(find(1.5), rel=1e-12)
    assert control.map(find, np.array([A, 1.5])).shape == (2,)
    np.testing.assert_allclose(grad(find)(jnp.asarray(A)), grad(find)(A), rtol=1e-6)
    assert vmap(find)(np.ones(0)).shape == (0,)
    assert vmap(lambda a: optimize.minimize(valley, PAIR, a).x)(np.ones(0)).shape == (0, 2)


def test_nested_solutions():
    """A minimum of what a root gives."""
    inner = lambda x: optimize.brentq(cubic, 0.0, 9.0, x)
    outer = lambda a: optimize.minimize_scalar(lambda x: (inner(x) - a) ** 2, (1.0, 2.0)).x
    np.testing.assert_allclose(outer(1.7), (1.7**3 - 1) / 1.7, rtol=1e-6)
    np.testing.assert_allclose(grad(outer)(1.7), 2 * 1.7 + 1 / 1.7**2, rtol=1e-5)


REFUSED = {
    "a bracket": (lambda a: optimize.brentq(cubic, 3.0, 5.0, a), ValueError, "must have different signs"),
    "steps": (lambda a: optimize.brentq(cubic, 0.0, 5.0, a, maxiter=2), RuntimeError, "Failed to converge"),
    "quiet steps": (
        lambda a: optimize.brentq(cubic, 0.0, 5.0, a, maxiter=2, disp=False),
        ConvergenceError,
        "optimize.brentq: what is not a solution has no derivative",
    ),
    "a double root": (
        lambda a: optimize.newton(lambda x: (x - a) ** 2, A, lambda x: 2 * (x - a)),
        ConvergenceError,
        "optimize.newton: the solution has no derivative, got a singular",
    ),
    "a system": (
        lambda a: optimize.root(lambda x: x**2 + a, PAIR).x[0],
        ConvergenceError,
        "optimize.root: what is not a solution has no derivative",
    ),
    "a singular system": (
        lambda a: optimize.fsolve(lambda x: fnp.stack([x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a]), PAIR)[0],
        ConvergenceError,
        "optimize.fsolve: the solution has no derivative, got a singular",
    ),
    "a flat valley": (
        lambda a: optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2, PAIR).x[0],
        ConvergenceError,
        "the solution has no derivative, got a singular",
    ),
    "no minimum": (
        lambda a: optimize.minimize(lambda x: a * x[0] ** 3, np.array([-1.0]), options={"maxiter": 3}).x[0],
        ConvergenceError,
        "what is not a minimum has no derivative",
    ),
    "constraints": (
        lambda a: optimize.minimize(valley, PAIR, a, constraints=[{"type": "eq", "fun": lambda x: x[0]}]).fun,
        InputError,
        "minima under constraints are not differentiated",
    ),
    "nowhere": (lambda a: optimize.root_scalar(cubic, a).root, InputError, "somewhere to begin is needed"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refusals(kind):
    f, error, message = REFUSED[kind]
    with pytest.raises(error, match=message):
        grad(f)(A)


def test_reports_of_batches():
    with pytest.raises(InputError, match="full_output tells of one run of the solver, got a vmap"):
        vmap(lambda a: optimize.fsolve(system, PAIR, a, full_output=True)[0])(np.array([A, 1.4]))
    found = []
    vmap(lambda a: found.append(optimize.minimize(valley, PAIR, a)) or found[0].x)(np.array([A, 1.4]))
    assert set(found[0]) == {"x", "fun", "success"}
    assert jvp(lambda a: optimize.minimize(valley, PAIR, a).x, (A,), (1.0,))[1].shape == (2,)
    assert hessian(lambda a: optimize.minimize(valley, PAIR, a).fun)(A).shape == ()
