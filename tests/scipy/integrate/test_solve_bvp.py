"""Boundary value problems: SciPy's solution, derivatives of its equations, unknown parameters, singular terms."""

import pickle

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import funcgrad.numpy as fnp
from funcgrad import as_written, grad, hessian, jacfwd, jacrev, jvp, vmap
from funcgrad.errors import ConvergenceError, ConversionError, InputError
from funcgrad.scipy import integrate

MESH = np.linspace(0.0, 1.0, 11)


def bratu(k, end):
    """Return the problem y'' + k exp(y) = 0, y(0) = 0, y(1) = end."""

    def fun(x, y):
        return [y[1], -k * fnp.exp(y[0])]

    return fun, lambda ya, yb: [ya[0], yb[0] - end]


def middle(k, end, solver=integrate.solve_bvp):
    return solver(*bratu(k, end), MESH, np.zeros((2, 11)), tol=1e-9)


def test_results_match_scipy():
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


@pytest.mark.parametrize("singular", [None, np.array([[0.0, 0.0], [0.0, -1.0]])])
def test_the_interval_and_the_first_mesh_have_derivatives(singular):
    first = np.array([0.0, 0.3, 0.5, 1.0])

    def found(mesh, length=1.0):
        fun = lambda x, y: np.vstack([y[1], -np.exp(y[0]) * (1.0 + x)])
        ends = lambda ya, yb: np.array([ya[0] if singular is None else ya[1], yb[0]])
        result = scipy.integrate.solve_bvp(fun, ends, length * mesh, np.zeros((2, 4)), S=singular, tol=1e-5)
        return np.concatenate([result.y.ravel(), result.yp.ravel(), result.x, result.sol(0.4 * length)])

    step = np.array([0.0, 0.1, -0.2, 0.3]) if singular is None else np.array([0.0, 0.1, -0.2, 0.0])
    for fun, x, v in ((found, first, step), (lambda length: found(first, length), 1.0, 1.0)):
        value, tangent = jvp(fun, (x,), (v,))
        np.testing.assert_allclose(value, fun(x), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(tangent, (fun(x + 1e-4 * v) - fun(x - 1e-4 * v)) / 2e-4, rtol=1e-5, atol=1e-6)
        reverse = grad(lambda x, fun=fun, t=tangent: np.sum(fun(x) * t))(x)
        np.testing.assert_allclose(np.sum(reverse * v), tangent @ tangent, rtol=1e-9)
    pair = vmap(grad(lambda length: found(first, length)[-2]))(np.array([1.0, 0.5]))
    np.testing.assert_allclose(pair[0], grad(lambda length: found(first, length)[-2])(1.0), rtol=1e-9)


def test_unknown_parameter():
    """Check the frequency: y'' + w^2 c y = 0 with two zeros has w = pi / sqrt(c)."""

    def frequency(c):
        fun = lambda x, y, p: [y[1], -c * p[0] ** 2 * y[0]]
        bc = lambda ya, yb, p: [ya[0], yb[0], ya[1] - p[0]]
        return integrate.solve_bvp(fun, bc, MESH, np.stack([np.sin(3 * MESH), 3 * np.cos(3 * MESH)]), p=[3.0], tol=1e-7)

    np.testing.assert_allclose(frequency(1.3).p[0], np.pi / np.sqrt(1.3), rtol=1e-7)
    by_reverse, by_forward = (d(lambda c: frequency(c).p[0])(1.3) for d in (grad, jacfwd))
    np.testing.assert_allclose([by_reverse, by_forward], -np.pi / 2 * 1.3**-1.5, rtol=1e-6)


def test_singular_term():
    """Check Emden's equation with radial symmetry: y'' + 2 y' / x = -c, so that y = y(1) + c (1 - x^2) / 6."""

    def top(c):
        fun = lambda x, y: [y[1], -c + 0.0 * y[0]]
        bc = lambda ya, yb: [ya[1], yb[0] - 1.0]
        return integrate.solve_bvp(fun, bc, MESH, np.zeros((2, 11)), S=[[0.0, 0.0], [0.0, -2.0]], tol=1e-8).y[0, 0]

    np.testing.assert_allclose([top(3.0), grad(top)(3.0), jacfwd(top)(3.0)], [1.5, 1 / 6, 1 / 6], rtol=1e-7)


def test_invalid_calls_raise():
    with pytest.raises(ConvergenceError, match="the solver failed"), np.errstate(all="ignore"):
        grad(lambda k: middle(k, 0.0).y[0, 5])(6.0)  # there is no solution above 3.51
    with pytest.raises(ConvergenceError, match="the solver failed"), np.errstate(all="ignore"):
        vmap(grad(lambda k: middle(k, 0.0).y[0, 5]))(np.array([1.0, 6.0]))
    with np.errstate(all="ignore"):
        assert vmap(lambda k: middle(k, 0.0).success)(np.array([1.0, 6.0])).tolist() == [True, False]
    with pytest.raises(InputError, match="nothing to solve"):
        vmap(lambda k: middle(k, 0.0).y[0, 5])(np.ones(0))
    with pytest.raises(InputError, match="for meshes of any length"):
        vmap(lambda k: changing(k).y[0, 5])(np.array([1.0, 3.0]))


def changing(k):
    """Solve with slopes that depend on ``k`` once more on longer meshes."""
    slopes = lambda x, y: [y[1], -k * fnp.exp(y[0]) + (0.0 if y.shape[1] < 15 else fnp.sin(0 * k))]
    return integrate.solve_bvp(slopes, lambda ya, yb: [ya[0], yb[0]], MESH, np.zeros((2, 11)), tol=1e-9)


def test_batch_examples_have_own_meshes():
    rates, ends = np.array([0.1, 1.0, 3.0]), np.array([0.0, 0.2, 0.1])
    alone = [middle(k, end, scipy.integrate.solve_bvp) for k, end in zip(rates, ends, strict=True)]
    assert len({len(found.x) for found in alone}) > 1
    most = max(len(found.x) for found in alone)

    def run(k, end):
        found = middle(k, end)
        times = np.array([0.0, 0.4, 1.0])
        return found.x, found.y, found.yp, found.sol(times), found.niter, found.success, found.rms_residuals

    x, y, yp, between, niter, success, residuals = vmap(run)(rates, ends)
    for i, want in enumerate(alone):
        missing = most - len(want.x)
        assert (x[i] == np.pad(want.x, (0, missing), "edge")).all()
        assert (y[i] == np.pad(want.y, ((0, 0), (0, missing)), "edge")).all()
        np.testing.assert_allclose(yp[i], np.pad(want.yp, ((0, 0), (0, missing)), "edge"), rtol=1e-12)
        np.testing.assert_allclose(between[i], want.sol(np.array([0.0, 0.4, 1.0])), rtol=1e-12, atol=1e-15)
        assert (niter[i], success[i]) == (want.niter, want.success)
        assert (residuals[i] == np.pad(want.rms_residuals, (0, missing))).all()

    value = lambda k, end: middle(k, end).sol(0.4)[0]
    of_each = [
        (grad(value, (0, 1)), vmap(grad(value, (0, 1)))),
        (jacfwd(value, (0, 1)), vmap(jacfwd(value, (0, 1)))),
        (hessian(value), vmap(hessian(value))),
    ]
    for single, whole in of_each:
        got = whole(rates, ends)
        for i in range(3):
            np.testing.assert_allclose(
                np.stack(np.atleast_1d(got), -1)[i], single(rates[i], ends[i]), rtol=1e-9, atol=1e-12
            )
    summed = grad(lambda rates: fnp.sum(vmap(value)(rates, ends)))(rates)
    np.testing.assert_allclose(summed, vmap(grad(value))(rates, ends), rtol=1e-12)
    nested = vmap(lambda k: vmap(lambda end: grad(value)(k, end))(ends))(rates)
    np.testing.assert_allclose(np.diag(nested), summed, rtol=1e-9)


def test_batched_guesses_parameters_and_jacobians():
    def frequency(c, guess):
        fun = lambda x, y, p: [y[1], -c * p[0] ** 2 * y[0]]
        jacobian = lambda x, y, p: (
            fnp.stack([fnp.stack([0 * x, 1 + 0 * x]), fnp.stack([-c * p[0] ** 2 + 0 * x, 0 * x])]),
            fnp.stack([0 * x, -2 * c * p[0] * y[0]])[:, None],
        )
        bc = lambda ya, yb, p: [ya[0], yb[0], ya[1] - p[0]]
        start = np.stack([np.sin(3 * MESH), 3 * np.cos(3 * MESH)])
        return integrate.solve_bvp(fun, bc, MESH, start, p=guess, fun_jac=jacobian, tol=1e-7).p[0]

    c, guess = np.array([1.0, 1.3]), np.array([[3.0], [2.8]])
    np.testing.assert_allclose(vmap(frequency)(c, guess), np.pi / np.sqrt(c), rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(frequency))(c, guess), -np.pi / 2 * c**-1.5, rtol=1e-5)
    guessed = lambda y: integrate.solve_bvp(*bratu(1.0, 0.0), MESH, y, tol=1e-7).sol(0.5)[0]  # one of two solutions
    low, high = vmap(guessed)(np.stack([np.zeros((2, 11)), np.full((2, 11), 3.0)]))
    angles = [scipy.optimize.brentq(lambda a: a - np.sqrt(2) * np.cosh(a / 4), *ends) for ends in ((1, 4), (8, 12))]
    np.testing.assert_allclose([low, high], 2 * np.log(np.cosh(np.array(angles) / 4)), rtol=1e-6)
    emden = lambda c: integrate.solve_bvp(
        lambda x, y: [y[1], -c + 0.0 * y[0]], lambda ya, yb: [ya[1], yb[0] - 1.0], MESH, np.zeros((2, 11)),
        S=[[0.0, 0.0], [0.0, -2.0]], tol=1e-8,
    ).y[0, 0]  # fmt: skip
    np.testing.assert_allclose(vmap(emden)(np.array([3.0, 6.0])), [1.5, 2.0], rtol=1e-7)
    np.testing.assert_allclose(vmap(grad(emden))(np.array([3.0, 6.0])), [1 / 6, 1 / 6], rtol=1e-7)


def test_solution_that_depends_on_nothing_traced_is_scipys():
    seen = []

    def fun(p):
        found = integrate.solve_bvp(*bratu(1.0, 0.2), MESH, np.zeros((2, 11)))
        seen.append(found.sol)
        return p * found.y[0, 5] + found.sol(p / 4)[1]

    want = scipy.integrate.solve_bvp(*bratu(1.0, 0.2), MESH, np.zeros((2, 11)))
    np.testing.assert_allclose(grad(fun)(2.0), want.y[0, 5] + want.sol(0.5, 1)[1] / 4, rtol=1e-12)
    assert isinstance(seen[0], type(want.sol))
    assert type(pickle.loads(pickle.dumps(seen[0]))) is type(want.sol)


@as_written()
def test_batch_that_only_a_longer_mesh_meets_raises():
    def fun(p):
        slopes = lambda x, y: [y[1], -30.0 * y[0] + 0.0 * x + (p if len(x) > 11 else 1.0)]
        return integrate.solve_bvp(slopes, lambda ya, yb: [ya[0], yb[0] - 1.0], MESH, np.zeros((2, 11)), tol=1e-8).y[
            1, 0
        ]

    with pytest.raises(ConversionError, match="would lose the batch"):
        vmap(fun)(np.array([1.0, 2.0]))
