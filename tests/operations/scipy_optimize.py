"""Rows for what solvers find, as a function of what their equations hold."""

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.scipy import optimize
from operations.spec import array, op

REASON = "SciPy's solvers take values only, and JAX has no such function; test_scipy_optimize.py compares with SciPy"
PAIR = np.array([1.0, 1.2])
TIMES = np.linspace(0.0, 2.0, 5)
SLOPES = np.stack([np.ones(5), TIMES], -1)


def cubic(x, a):
    return x**3 - a * x - 1.0


def slope(x, a):
    return 3 * x**2 - a


def system(x, a):
    return fnp.stack([x[0] ** 2 + a * x[1] - 3.0, x[0] * x[1] - a])


# What these find is exact after a step or two, whatever the tolerances: the referee measures to eleven digits.


def bowl(x, a):
    return (x[0] - a**2) ** 2 + (x[1] - fnp.sin(a) * x[0]) ** 2


def misfit(p, a):
    return p[0] + p[1] * TIMES - fnp.exp(a * TIMES / 3)


def line(t, height, rate):
    return height + rate * t


FOUND = {
    **{
        name: lambda a, name=name: getattr(optimize, name)(cubic, 0.0, 5.0, (a,), xtol=1e-15)
        for name in ("brentq", "brenth", "bisect", "ridder", "toms748")
    },
    "newton": lambda a: optimize.newton(cubic, 1.5, slope, (a,), tol=1e-14),
    "root_scalar": lambda a: optimize.root_scalar(cubic, (a,), bracket=(0.0, 5.0), xtol=1e-15).root,
    "fsolve": lambda a: optimize.fsolve(system, PAIR, (a,), xtol=1e-14),
    "root": lambda a: optimize.root(system, PAIR, (a,), tol=1e-14).x,
    "fixed_point": lambda a: optimize.fixed_point(lambda x: fnp.cos(a * x), 0.5, xtol=1e-14),
    "minimize": lambda a: optimize.minimize(bowl, PAIR, (a,), method="trust-exact").x,
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda x: fnp.cosh(x - a**2)).fun,
    "least_squares": lambda a: optimize.least_squares(misfit, PAIR, lambda p, a: SLOPES, args=(a,)).x,
    "curve_fit": lambda y: optimize.curve_fit(line, TIMES, fnp.exp(y), PAIR, jac=lambda t, *p: SLOPES)[0],
}

OPS = [
    op(
        f"scipy.optimize.{name}",
        (array(5),) if name == "curve_fit" else (1.3,),
        fun=fun,
        numpy=None,
        jax=None,
        jit=False,
        portable=False,
        reason=REASON,
    )
    for name, fun in FOUND.items()
]
