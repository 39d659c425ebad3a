"""Boundary value problems: SciPy's solution, derivatives by its equations, unknown parameters, singular terms."""

import numpy as np
import pytest
import scipy.integrate

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jvp, vmap
from funcgrad.errors import ConcretizationError, ConvergenceError
from funcgrad.scipy import integrate

MESH = np.linspace(0.0, 1.0, 11)


def bratu(k, end):
    """y'' + k exp(y) = 0, y(0) = 0, y(1) = end."""

    def fun(x, y):
        return [y[1], -k * fnp.exp(y[0])]

    return fun, lambda ya, yb: [ya[0], yb[0] - end]


def middle(k, end, solver=integrate.solve_bvp):
    return solver(*bratu(k, end), MESH, np.zeros((2, 11)), tol=1e-9)


def test_results_are_scipys():
    want, plain = (middle(1.0, 0.2, solver) for solver in (scipy.integrate.solve_bvp, integrate.solve_bvp))
    seen = []

    def traced(k):
        seen.append(middle(k, 0.2))
        return seen[-1].y, seen[-1].yp, seen[-1].sol(np.array([0.3, 0.7, 1.0])), seen[-1].sol(0.3)

    y, yp, between, alone = jvp(traced, (1.0,), (1.0,))[0]
    assert (plain.y == want.y).all()
    assert (y == want.y).all()
    np.testing.assert_allclose(yp, want.yp, rtol=1e-14)
    np.testing.assert_allclose(between, want.sol(np.array([0.3, 0.7, 1.0])), rtol=1e-12)
    np.testing.assert_allclose(alone, want.sol(0.3), rtol=1e-12)
    assert type(seen[0]) is type(want)
    assert (seen[0].x == want.x).all()
    assert (seen[0].niter, seen[0].status, seen[0].message) == (want.niter, want.status, want.message)


def test_derivatives_of_a_solution():
    value = lambda k, end: middle(k, end).sol(0.4)[0]
    got, step = grad(value, (0, 1))(1.0, 0.2), 1e-4
    for i, moved in enumerate(np.eye(2) * step):
        ends = [middle(1.0 + s * moved[0], 0.2 + s * moved[1]).sol(0.4)[0] for s in (1, -1)]
        np.testing.assert_allclose(got[i], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(jvp(value, (1.0, 0.2), (1.0, 1.0))[1], sum(got), rtol=1e-10)
    bends = [grad(value)(1.0 + s * step, 0.2) for s in (1, -1)]
    np.testing.assert_allclose(jacfwd(jacrev(value))(1.0, 0.2), (bends[0] - bends[1]) / (2 * step), rtol=1e-5)
    in_time = grad(lambda t, k: middle(k, 0.2).sol(t)[0] + 0.0 * k, (0, 1))(0.4, 1.0)
    np.testing.assert_allclose(in_time, [middle(1.0, 0.2).sol(0.4)[1], got[0]], rtol=1e-5)


def test_an_unknown_parameter():
    """The frequency of y'' + w^2 c y = 0 with two zeros is pi / sqrt(c)."""

    def frequency(c):
        fun = lambda x, y, p: [y[1], -c * p[0] ** 2 * y[0]]
        bc = lambda ya, yb, p: [ya[0], yb[0], ya[1] - p[0]]
        return integrate.solve_bvp(fun, bc, MESH, np.stack([np.sin(3 * MESH), 3 * np.cos(3 * MESH)]), p=[3.0], tol=1e-7)

    np.testing.assert_allclose(frequency(1.3).p[0], np.pi / np.sqrt(1.3), rtol=1e-7)
    by_reverse, by_forward = (d(lambda c: frequency(c).p[0])(1.3) for d in (grad, jacfwd))
    np.testing.assert_allclose([by_reverse, by_forward], -np.pi / 2 * 1.3**-1.5, rtol=1e-6)


def test_a_singular_term():
    """Emden's equation with radial symmetry: y'' + 2 y' / x = -c, so that y = y(1) + c (1 - x^2) / 6."""

    def top(c):
        fun = lambda x, y: [y[1], -c + 0.0 * y[0]]
        bc = lambda ya, yb: [ya[1], yb[0] - 1.0]
        return integrate.solve_bvp(fun, bc, MESH, np.zeros((2, 11)), S=[[0.0, 0.0], [0.0, -2.0]], tol=1e-8).y[0, 0]

    np.testing.assert_allclose([top(3.0), grad(top)(3.0), jacfwd(top)(3.0)], [1.5, 1 / 6, 1 / 6], rtol=1e-7)


def test_what_is_refused():
    with pytest.raises(ConvergenceError, match="was not solved"), np.errstate(all="ignore"):
        grad(lambda k: middle(k, 0.0).y[0, 5])(6.0)  # there is no solution above 3.51
    with pytest.raises(ConcretizationError):
        vmap(lambda k: middle(k, 0.0).y[0, 5])(np.ones(2))
