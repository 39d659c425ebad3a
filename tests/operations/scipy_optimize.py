"""Rows for solvers: their solutions as functions of the equations' parameters."""

import numpy as np
import scipy.optimize
import scipy.optimize.elementwise

import funcgrad.numpy as fnp
from funcgrad.scipy import optimize
from operations.spec import array, op

NO_JAX = "JAX has no such function, and SciPy does not run under jax.jit"
TIMES = np.linspace(0.0, 1.0, 4)


def row(name, of, *samples, **options):
    """Return a row whose function is ``of(library, *args)``, with SciPy's library or ours."""
    known = {"numpy": lambda *args: of(scipy.optimize, *args), "reason": NO_JAX}
    fun = lambda *args: of(optimize, *args)
    return op(f"scipy.optimize.{name}", *samples, fun=fun, jax=None, jit=False, **{**known, **options})


def cubic(x, a, b):
    return x**3 + b * x - a


def parabola(x, a, b):
    return a * x**2 - b * x


def bracketed(name):
    return lambda lib, a, b: np.float64(1) * getattr(lib, name)(cubic, -3.0, 4.0, args=(a, b), xtol=1e-15)


def equations(x, a):
    return [x[0] ** 2 + a[0] * x[1] - 3.0, x[1] - x[0] * a[1]]


def stacked(x, a):
    return fnp.stack(equations(x, a))


def valley(x, a):
    return a[1] * (x[0] - a[0]) ** 2 + a[0] * (x[1] - a[1] * x[0]) ** 2 + x[0] * x[1]


def line(p, t, y):
    return p[0] + p[1] * t - y


def weighted(t, s=1.0):
    return np.stack([np.ones(len(t)) / s, t / s], axis=1)


def fit(t, y, s=1.0):
    return np.linalg.lstsq(weighted(t, s), y / s)[0]


def spread(t, y, s):
    rest = weighted(t, s) @ fit(t, y, s) - y / s
    return np.linalg.inv(weighted(t, s).T @ weighted(t, s)) * np.sum(rest * rest) / (len(t) - 2)


A2 = np.array([0.8, 1.4])
POINTS = np.array([2.1, 1.6, 1.3, 1.0])
TALL = array(4, 3, seed=3) + np.eye(4, 3)

OPS = [
    *[row(name, bracketed(name), (0.7, 1.3)) for name in ("bisect", "brenth", "brentq", "ridder", "toms748")],
    row("newton", lambda lib, a, b: lib.newton(cubic, np.ones(2), args=(a, b), tol=1e-14), (A2, A2[::-1].copy())),
    row(
        "root_scalar",
        lambda lib, a, b: np.float64(1) * lib.root_scalar(cubic, (a, b), bracket=(0.0, 4.0), xtol=1e-15).root,
        (0.7, 1.3),
    ),
    row("fsolve", lambda lib, a: lib.fsolve(equations, np.ones(2), a, xtol=1e-12), (A2,)),
    row("root", lambda lib, a: lib.root(equations, np.ones(2), a, method="lm", tol=1e-15).x, (A2,)),
    row("fixed_point", lambda lib, a: lib.fixed_point(lambda x: np.cos(a * x), [0.5, 0.6], xtol=1e-14), (A2,)),
    row(
        "minimize",
        lambda lib, a: lib.minimize(valley, A2, a, "Newton-CG", tol=1e-12).x,
        (A2,),
        numpy=None,
        reason=f"{NO_JAX}; test_scipy_optimize.py has SciPy's values",
    ),
    row(
        "minimize_scalar",
        lambda lib, a, b: lib.minimize_scalar(parabola, bracket=(-1.0, 2.0), args=(a, b)).x,
        (0.7, 1.3),
        numpy=lambda a, b: np.float64(b / (2 * a)),
        order=1,
        reason=f"{NO_JAX}; it is not exact enough for differences: test_scipy_optimize.py has the second order",
    ),
    row(
        "elementwise.find_root",
        lambda lib, a, b: lib.elementwise.find_root(cubic, (-3.0, 4.0), args=(a, b)).x,
        (A2, A2[::-1].copy()),
        (0.7, 1.3),
    ),
    row(
        "elementwise.find_minimum",
        lambda lib, a, b: (
            lib.elementwise.find_minimum(lambda x, a, b: a * x**2 - b * x, (-1.0, 0.3, 2.0), args=(a, b)).x
        ),
        (A2, A2[::-1].copy()),
        numpy=lambda a, b: (b / (2 * a)).astype(float),  # the bracket's dtype
        order=1,
        reason=f"{NO_JAX}; it is not exact enough for differences: test_scipy_optimize.py has the second order",
    ),
    row(
        "least_squares",
        lambda lib, t, y: lib.least_squares(line, np.ones(2), args=(t, y)).x,
        (TIMES, POINTS),
        numpy=fit,
    ),
    row(
        "curve_fit",
        lambda lib, t, y, s: lib.curve_fit(lambda t, a, b: a + b * t, t, y, sigma=s),
        (TIMES, POINTS, 0.1 * POINTS),
        numpy=lambda t, y, s: (fit(t, y, s), spread(t, y, s)),
    ),
    row("nnls", lambda lib, a, b: lib.nnls(a, b), (TALL, POINTS)),
    row(
        "linprog",
        lambda lib, a, b: lib.linprog([-1.0, -1.2], a, b).x,
        (np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([4.0, 6.0])),
    ),
    row("lsq_linear", lambda lib, a, b: lib.lsq_linear(a, b, (0.0, 1.5), method="bvls").x, (TALL, POINTS)),
]
