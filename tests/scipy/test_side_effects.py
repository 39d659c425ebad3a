"""Functions that keep values on objects while a solver calls them: then all is as after one call at the solution."""

import math

import numpy as np
import pytest
from helpers import differences
from scipy import integrate, optimize
from scipy.optimize import elementwise

from funcgrad import custom_root, fixed_point, grad, hessian, jacfwd, vmap
from funcgrad.scipy.optimize import minimize
from funcgrad.transforms import newton
from funcgrad.transforms.side_effects import isolated, settle


class Model:
    """Object that keeps what it computes: in a cache, an attribute, an array, a table, a list and a counter."""

    def __init__(self, a):
        self.a = a
        self.calls = 0
        self.history = []
        self.buffer = np.zeros(2)
        self.table = {}

    def note(self, x):
        self.calls += 1
        self.history.append(float(x))
        if not hasattr(self, "cache"):
            self.cache = math.exp(self.a)
        self.latest = self.cache * x
        self.table["latest"] = self.latest
        self.buffer[0] = x

    def line(self, x):
        self.note(np.sum(x))
        return self.cache * x**2 + x - 2.0

    def curve(self, x):
        if not hasattr(self, "cache"):
            self.cache = math.exp(self.a)
        self.table["latest"] = self.cache * x
        self.calls += 1
        return self.cache * x**2 + x - 2.0

    def line_slope(self, x):
        self.weight = math.exp(self.a)
        return 2 * self.weight * x + 1.0

    def pair_slope(self, p):
        self.weight = math.exp(self.a)
        return np.array([[1.0, 0.0], [-1.0, 1.0]])

    def loss(self, p):
        self.note(p[0])
        return (p[0] - self.cache) ** 2 + (p[1] - self.buffer[0] * self.a) ** 2

    def slope(self, p):
        self.note(p[0])
        self.rest = p[1] - p[0] * self.a
        return np.array([2 * (p[0] - self.cache) - 2 * self.a * self.rest, 2 * self.rest])

    def pair(self, p):
        self.note(p[0])
        return np.array([p[0] - self.cache, p[1] - p[0]])

    def in_array(self, p):
        self.buffer[:] = self.pair(p)
        return self.buffer

    def in_list(self, p):
        self.found = list(self.pair(p))
        return self.found

    def limit(self, p):
        if not hasattr(self, "bound"):
            self.bound = self.a**2
        return p[0] - self.bound

    def rate(self, t, y):
        self.note(y[0])
        return -self.cache * y

    def beam(self, x, y):
        self.note(y[0, 0])
        return np.stack([y[1], self.cache * y[0]])


START = np.array([1.0, 0.5])
ONE = np.ones(1)

#: Calls of a solver for ``m``, a ``Model``.
SOLVERS = {
    "minimize": lambda m: optimize.minimize(m.loss, START, tol=1e-12).x[1],
    "a given gradient": lambda m: optimize.minimize(m.loss, START, jac=m.slope, tol=1e-12).x[1] + m.rest,
    "both together": lambda m: optimize.minimize(lambda p: (m.loss(p), m.slope(p)), START, jac=True, tol=1e-12).fun,
    "Nelder-Mead": lambda m: optimize.minimize(
        m.loss, START, method="Nelder-Mead", options={"xatol": 1e-11, "fatol": 1e-15}
    ).x[1],
    "a constraint": lambda m: (
        optimize.minimize(m.loss, START, method="SLSQP", constraints={"type": "eq", "fun": m.limit}, tol=1e-13).x[1]
        + m.bound
    ),
    "fmin_bfgs": lambda m: optimize.fmin_bfgs(m.loss, START, disp=0, gtol=1e-10)[1],
    "minimize_scalar": lambda m: (
        optimize.minimize_scalar(lambda x: m.line(x) ** 2, bounds=(0.0, 2.0), options={"xatol": 1e-11}).x
    ),
    "leastsq": lambda m: optimize.leastsq(m.pair, START)[0][1],
    "least_squares": lambda m: optimize.least_squares(m.pair, START, xtol=1e-14).x[1],
    "least_squares, a given Jacobian": lambda m: (
        optimize.least_squares(m.pair, START, jac=m.pair_slope, xtol=1e-14).x[1] + m.weight
    ),
    "root, a given Jacobian": lambda m: optimize.root(m.pair, START, jac=m.pair_slope).x[1] + m.weight,
    "newton, a given slope": lambda m: optimize.newton(m.line, 1.0, fprime=m.line_slope) + m.weight,
    "root_scalar, a given slope": lambda m: (
        optimize.root_scalar(m.line, x0=1.0, fprime=m.line_slope, method="newton").root + m.weight
    ),
    "curve_fit": lambda m: optimize.curve_fit(lambda x, p: m.line(p) * x, np.arange(3.0), np.arange(3.0))[0][0],
    "root": lambda m: optimize.root(m.pair, START).x[1],
    "an array that is returned": lambda m: optimize.root(m.in_array, START).x[1] + m.buffer[0] + m.buffer[1],
    "a list that is returned": lambda m: optimize.root(m.in_list, START).x[1],
    "krylov": lambda m: optimize.root(m.pair, START, method="krylov", tol=1e-12).x[1],
    "fsolve": lambda m: optimize.fsolve(m.pair, START)[1],
    "brentq": lambda m: optimize.brentq(m.line, 0.0, 2.0),
    "newton": lambda m: optimize.newton(m.line, 1.0),
    "newton of an array": lambda m: optimize.newton(m.line, ONE)[0],
    "root_scalar": lambda m: optimize.root_scalar(m.line, bracket=(0.0, 2.0)).root,
    "elementwise.find_root": lambda m: elementwise.find_root(m.curve, (0.0, 2.0)).x,
    "elementwise.find_minimum": lambda m: elementwise.find_minimum(lambda x: m.curve(x) ** 2, (0.0, 0.5, 2.0)).x,
    "tanhsinh": lambda m: integrate.tanhsinh(m.curve, 0.0, 1.0).integral,
    "cubature": lambda m: integrate.cubature(lambda x: m.curve(x[:, 0]), [0.0, 0.0], [1.0, 1.0]).estimate,
    "custom_root": lambda m: custom_root(m.line, 1.0, newton),
    "funcgrad.fixed_point": lambda m: fixed_point(lambda x: 1 / (4 + m.line(x)), 0.5),
    "fixed_point": lambda m: optimize.fixed_point(lambda x: 1 / (4 + m.line(x)), 0.5, xtol=1e-12),
    "quad": lambda m: integrate.quad(m.line, 0.0, 1.0)[0],
    "dblquad": lambda m: integrate.dblquad(lambda y, x: m.line(x * y), 0.0, m.a, 0.0, lambda x: x)[0],
    "quad_vec": lambda m: integrate.quad_vec(lambda x: m.line(x) * np.ones(2), 0.0, 1.0)[0][0],
    "solve_ivp": lambda m: integrate.solve_ivp(m.rate, (0.0, 1.0), ONE, rtol=1e-10, atol=1e-12).y[0, -1],
    "Radau": lambda m: integrate.solve_ivp(m.rate, (0.0, 1.0), ONE, method="Radau", rtol=1e-10, atol=1e-12).y[0, -1],
    "odeint": lambda m: integrate.odeint(m.rate, ONE, [0.0, 1.0], tfirst=True, rtol=1e-12, atol=1e-12)[-1, 0],
    "solve_bvp": lambda m: integrate.solve_bvp(
        m.beam, lambda a, b: np.array([a[0] - 1.0, b[0]]), np.linspace(0.0, 1.0, 9), np.ones((2, 9)), tol=1e-9
    ).y[1, 0],
}


def in_variables(a):
    """Keep values in variables and in a dictionary of the function around."""
    best, known = None, {}

    def loss(p):
        nonlocal best
        if "scale" not in known:
            known["scale"] = math.exp(a)
        best = known["scale"] * p[0]
        return (p[0] - known["scale"]) ** 2 + p[1] ** 2

    found = optimize.minimize(loss, START, tol=1e-12).x[0]
    return found * best + known["scale"]


CACHE = {}


def in_global_table(a):
    """Keep values in a dictionary of the module, which is emptied first."""
    CACHE.clear()

    def loss(p):
        if "scale" not in CACHE:
            CACHE["scale"] = math.exp(a)
        CACHE["latest"] = CACHE["scale"] * p[0]
        return (p[0] - CACHE["scale"]) ** 2 + p[1] ** 2

    found = optimize.minimize(loss, START, tol=1e-12).x[0]
    return found * CACHE["latest"] + CACHE["scale"]


class WithSlots:
    """Object whose attributes are slots; one of them has no value at first."""

    __slots__ = ("a", "cache", "latest")

    def __init__(self, a):
        self.a, self.latest = a, 0.0

    def loss(self, p):
        if not hasattr(self, "cache"):
            self.cache = math.exp(self.a)
        self.latest = self.cache * p[0]
        return (p[0] - self.cache) ** 2 + p[1] ** 2


def in_slots(a):
    m = WithSlots(a)
    return optimize.minimize(m.loss, START, tol=1e-12).x[0] + m.latest * m.cache


#: What a program takes from the object after the solver, given the solution and the object.
LATER = {
    "cache": lambda x, m: x + m.cache,
    "another call": lambda x, m: x * m.line(0.5),
    "table": lambda x, m: x + m.table["latest"] * 0.0 + m.cache,
    "counter": lambda x, m: x * (m.calls > 0) + m.cache,
}


#: Solvers that record the function, in plain calls too: what the recorded call leaves in a table is refused.
RECORDED = ("tanhsinh", "cubature", "custom_root", "funcgrad.fixed_point")
PAIRS = [(solver, later) for solver in SOLVERS for later in LATER if (later, solver in RECORDED) != ("table", True)]


@pytest.mark.parametrize(("solver", "later"), PAIRS)
def test_derivatives_after_a_search(solver, later):
    def f(a):
        m = Model(a)
        x = SOLVERS[solver](m)
        return LATER[later](x, m)

    slope = grad(f)(0.7)
    assert slope == pytest.approx(differences(f, 0.7, 1e-3), rel=2e-5)
    assert jacfwd(f)(0.7) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in ("solve_ivp", "Radau")])  # own times each
def test_batches_after_a_search(solver):
    def f(a):
        m = Model(a)
        return SOLVERS[solver](m) * m.line(0.5) + getattr(m, "rest", 0.0)

    x = np.array([0.7, 0.9])
    np.testing.assert_allclose(vmap(grad(f))(x), [grad(f)(0.7), grad(f)(0.9)], rtol=1e-6)


@pytest.mark.parametrize("fun", [in_variables, in_global_table, in_slots, lambda a: kept_by_minimum(a)])
def test_values_of_the_call_at_the_solution(fun):
    slope = grad(fun)(0.7)
    assert slope == pytest.approx(differences(fun, 0.7, 1e-3), rel=1e-6)
    assert hessian(fun)(0.7) == pytest.approx(differences(grad(fun), 0.7, 1e-3), rel=1e-6)
    np.testing.assert_allclose(vmap(grad(fun))(np.array([0.7, 0.9])), [slope, grad(fun)(0.9)], rtol=1e-9)


def kept_by_minimum(a):
    m = Model(a)
    optimize.minimize(m.loss, START, tol=1e-12)
    return m.latest * m.buffer[0] + m.table["latest"] * m.cache


def test_lists_and_counters_of_a_search_stay():
    def f(a):
        m = Model(a)
        x = optimize.minimize(m.loss, START, method="Nelder-Mead").x
        seen.append((m.calls, len(m.history), m.history[0]))
        return x[0] * m.cache

    seen = []
    f(0.7)
    grad(f)(0.7)
    assert seen[0][0] == seen[0][1] > 20
    assert all(counts == seen[0] for counts in seen)


@pytest.mark.parametrize("method", ["Nelder-Mead", "BFGS", "Newton-CG"])
def test_outside_of_transforms(method):
    m = Model(0.7)
    found = minimize(m.loss, START, method=method, tol=1e-9)
    assert m.latest == pytest.approx(math.exp(1.4), rel=1e-4)
    assert {type(x) for x in (*m.history, m.latest, m.cache)} <= {float, np.float64}
    assert found.x[1] == pytest.approx(0.7 * math.exp(0.7), rel=1e-4)
    assert len(m.history) == m.calls
    assert m.calls > 20 if method == "Nelder-Mead" else m.calls >= 1


def test_errors_leave_no_traced_values():
    m = Model(0.7)

    def failing(p):
        m.latest = p[0]
        if p[0] != 1.0:
            raise ArithmeticError("outside")
        return p[0] ** 2 + p[1] ** 2

    with pytest.raises(ArithmeticError, match="outside"):
        grad(lambda a: optimize.minimize(failing, a * START).fun)(1.0)
    assert not hasattr(m, "latest")


def test_functions_that_reach_nothing_stay_themselves():
    scale = 2.0
    pure = lambda x: scale * np.sum(x**2)
    assert isolated(pure, np.ones(2), 3.0) is pure
    settle(pure, np.ones(2))  # does not call it
