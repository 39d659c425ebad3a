"""Initial value problems: SciPy's results bit for bit, derivatives of all methods, events, the adjoint."""

import gc
import importlib
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse
from helpers import at_least, differences

import funcgrad.numpy as fnp
from funcgrad import (
    check_grads,
    checkpoint_chain,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stop_gradient,
    value_and_grad,
    vmap,
)
from funcgrad.errors import ConcretizationError, ConvergenceError, InputError, ShapeError, StagingError
from funcgrad.optional import double_precision
from funcgrad.scipy import integrate, optimize
from funcgrad.scipy.integrate.ivp import iterations, products, records
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.compiled import straight

METHODS = ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]
START = np.array([10.0, 5.0])
RATES = np.array([1.1, 0.4, 0.4, 0.1])
TIMES = np.array([1.0, 2.5, 4.0])
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def hunters(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def in_argument(f, args, i, step=1e-5):
    """Compute the derivative of ``f`` in argument ``i`` by central differences, with two integrations per entry.

    The result has the shape of the argument, followed by that of the result of ``f``.
    """
    found = []
    for place in np.ndindex(np.shape(args[i])):
        ends = []
        for sign in (1, -1):
            moved = [np.array(a, float) for a in args]
            moved[i][place] += sign * step
            ends.append(f(*moved))
        found.append((ends[0] - ends[1]) / (2 * step))
    return np.reshape(found, np.shape(args[i]) + np.shape(found[0]))


def ground(t, y, *rest):
    return y[0]


ground.terminal, ground.direction = True, -1


def falling(t, y, g):
    return [y[1], -g]


@pytest.mark.parametrize("method", METHODS)
def test_results_match_scipy_bitwise(method):
    def middle(t, y, p):
        return y[0] - 8.0

    for options in (
        {"t_eval": TIMES},
        {"events": [middle], "dense_output": True},
        {"dense_output": True, "t_eval": TIMES, "max_step": 0.3},
    ):
        want = scipy.integrate.solve_ivp(hunters, (0, 5), START, method, args=(RATES,), **options)
        plain = integrate.solve_ivp(hunters, (0, 5), START, method, args=(RATES,), **options)
        seen = {}

        def traced(p, options=options, seen=seen):
            seen["it"] = found = integrate.solve_ivp(hunters, (0, 5), START, method, args=(p,), **options)
            seen["sol"] = found.sol(np.array([0.1, 4.9, 2.0])) if found.sol is not None else None
            return found.t, found.y, found.t_events, found.y_events, seen["sol"]

        t, y, t_events, y_events, sol = jvp(traced, (RATES,), (RATES,))[0]
        for found_t, found_y in ((plain.t, plain.y), (t, y)):
            assert (found_t == want.t).all()
            assert (found_y == want.y).all()
        for found in (plain, seen["it"]):
            assert type(found) is type(want)
            assert [found[k] for k in ("nfev", "njev", "nlu", "status", "message", "success")] == [
                want[k] for k in ("nfev", "njev", "nlu", "status", "message", "success")
            ]
        if want.t_events is not None:
            assert (t_events[0] == want.t_events[0]).all()
            assert (y_events[0] == want.y_events[0]).all()
        if want.sol is not None:
            assert (sol == want.sol(np.array([0.1, 4.9, 2.0]))).all()
            assert isinstance(seen["it"].sol, scipy.integrate.OdeSolution)


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_in_all_arguments(method):
    def end(y0, p, t0, t1):
        found = integrate.solve_ivp(hunters, (t0, t1), y0, method, args=(p,), **TIGHT)
        return found.y[0, -1] + 2 * found.y[1, -1] + found.t[-1] ** 2

    def within(y0, p, times):
        found = integrate.solve_ivp(hunters, (0.0, 5.0), y0, method, times, args=(p,), **TIGHT)
        return fnp.sum(found.y[0] ** 2) + found.y[1, -1] * found.t[0]

    for f, args in ((end, (START, RATES, 0.3, 5.0)), (within, (START, RATES, TIMES))):
        places = tuple(range(len(args)))
        got = grad(f, places)(*args)
        for i in places:
            np.testing.assert_allclose(got[i], in_argument(f, args, i), rtol=2e-6, atol=2e-6)
        pushed = jvp(f, args, tuple(np.ones(np.shape(a)) for a in args))[1]
        np.testing.assert_allclose(pushed, sum(np.sum(g) for g in got), rtol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_second_derivatives(method):
    def end(p, t0, t1):
        return integrate.solve_ivp(hunters, (t0, t1), START, method, args=(p,), **TIGHT).y[0, -1]

    args, along = (RATES, 0.3, 5.0), np.array([1.0, 2.0, 3.0, 4.0])
    reverse = jacrev(grad(end, (0, 1, 2)), (0, 1, 2))(*args)
    forward = jacfwd(grad(end, (0, 1, 2)), (0, 1, 2))(*args)

    def slopes(*a):
        by_rates, *by_times = grad(end, (0, 1, 2))(*a)
        return np.array([along @ by_rates, *by_times])

    for j in range(3):
        measured = in_argument(slopes, args, j)
        for i in range(3):
            np.testing.assert_allclose(reverse[i][j], forward[i][j], rtol=1e-9, atol=1e-9)
            row = np.tensordot(along, reverse[i][j], 1) if i == 0 else reverse[i][j]
            np.testing.assert_allclose(row, measured[..., i], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["RK45", "BDF", "LSODA"])
def test_higher_derivatives_in_the_first_time_of_a_slope_that_depends_on_time(method):
    def end(t0, **more):
        return integrate.solve_ivp(lambda t, y: y * t, (t0, 2.0), [3.0], method, **TIGHT, **more).y[0, -1]

    y = 3.0 * np.exp(1.875)
    np.testing.assert_allclose(grad(grad(end))(0.5), -0.75 * y, rtol=1e-5)
    np.testing.assert_allclose(jacfwd(jacfwd(jacfwd(end)))(0.5), 1.375 * y, rtol=1e-5)
    if method != "LSODA":
        in_pieces = grad(grad(lambda t0: end(t0, budget=3, t_eval=[2.0])))(0.5)
        np.testing.assert_allclose(in_pieces, -0.75 * y, rtol=1e-5)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_fixed_explicit_steps_have_exact_derivatives(method):
    """Check that with fixed steps, where the function is smooth, derivatives are those of the computed values."""

    def path(y0, p, times):
        options = {"rtol": 1e9, "atol": 1e9, "max_step": 0.25, "first_step": 0.25}
        return integrate.solve_ivp(hunters, (0.0, 1.0), y0, method, times, args=(p,), **options).y

    check_grads(path, (START / 10, RATES, np.array([0.1, 0.6, 0.9])), order=2)


@pytest.mark.parametrize("method", METHODS)
def test_batch_examples_take_own_steps(method):
    def path(y0, p):
        return integrate.solve_ivp(hunters, (0.0, 3.0), y0, method, TIMES[:2], args=(p,)).y

    starts = np.stack([START, START * 1.3, START * 0.2])
    values = vmap(path, (0, None))(starts, RATES)
    loss = lambda y0, p: fnp.sum(path(y0, p) ** 2)
    slopes, bends = (vmap(f(loss, 1), (0, None))(starts, RATES) for f in (grad, hessian))
    for i, start in enumerate(starts):
        want = scipy.integrate.solve_ivp(hunters, (0, 3), start, method, TIMES[:2], args=(RATES,))
        assert (values[i] == want.y).all()
        np.testing.assert_allclose(slopes[i], grad(loss, 1)(start, RATES), rtol=1e-10)
        np.testing.assert_allclose(bends[i], hessian(loss, 1)(start, RATES), rtol=1e-9, atol=1e-9)
    counts = vmap(lambda y0: integrate.solve_ivp(hunters, (0, 3), y0, method, TIMES[:2], args=(RATES,)).nfev)(starts)
    assert len(set(counts.tolist())) > 1
    with pytest.raises(ShapeError, match="must be the same in every example"):
        vmap(lambda y0: integrate.solve_ivp(hunters, (0, 3), y0, method, args=(RATES,)).y)(starts)


@pytest.mark.parametrize("method", METHODS)
def test_event_times_have_derivatives(method):
    def solve(h, g):
        return integrate.solve_ivp(
            falling, (0, 100.0), [h, 0.0], method, events=ground, args=(g,), rtol=1e-8, atol=1e-10
        )

    def time(h, g):
        return solve(h, g).t_events[0][0]

    h, g = 3.0, 9.81
    np.testing.assert_allclose(time(h, g), np.sqrt(2 * h / g), rtol=1e-8)
    np.testing.assert_allclose(grad(time, (0, 1))(h, g), [1 / np.sqrt(2 * h * g), -np.sqrt(h / 2) * g**-1.5], rtol=1e-8)
    np.testing.assert_allclose(grad(grad(time))(h, g), -0.5 / np.sqrt(2 * g) * h**-1.5, rtol=1e-7)
    np.testing.assert_allclose(jvp(time, (h, g), (1.0, 0.0))[1], 1 / np.sqrt(2 * h * g), rtol=1e-8)
    np.testing.assert_allclose(grad(lambda h: solve(h, g).y_events[0][0, 1])(h), -np.sqrt(g / 2 / h), rtol=1e-7)
    np.testing.assert_allclose(
        grad(lambda h: solve(h, g).y[1, -1] + solve(h, g).t[-1])(h), (1 - g) / np.sqrt(2 * g * h)
    )
    batch = vmap(grad(time), (0, None))(np.array([3.0, 4.0]), g)
    np.testing.assert_allclose(batch, 1 / np.sqrt(2 * np.array([3.0, 4.0]) * g), rtol=1e-8)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_bouncing_ball(method):
    def last_bounce(h, e, g=9.81):
        t, y = 0.0, fnp.stack([h, 0.0 * h])
        for _ in range(20):
            found = integrate.solve_ivp(falling, (t, t + 100.0), y, method, events=ground, args=(g,), rtol=1e-10)
            t, v = found.t_events[0][0], found.y_events[0][0, 1]
            y = fnp.stack([0.0 * v, -e * v])
        return t

    def exact(h, e, g=9.81):
        first = fnp.sqrt(2 * h / g)
        return first + sum(2 * first * e**k for k in range(1, 20))

    got, want = (value_and_grad(f, (0, 1))(1.0, 0.9) for f in (last_bounce, exact))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-11)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-10)
    if method == "RK45":
        np.testing.assert_allclose(
            grad(grad(last_bounce, 1), 1)(1.0, 0.9), grad(grad(exact, 1), 1)(1.0, 0.9), rtol=1e-8
        )


def test_terminal_count_and_touching_events():
    def level(t, y, c):
        return y[0] - c

    def oscillating(t, y, c):
        return [y[1], -y[0]]

    level.terminal = 3
    when = lambda c: integrate.solve_ivp(oscillating, (0, 20.0), [0.0, 1.0], events=level, args=(c,), **TIGHT)
    np.testing.assert_allclose(when(0.5).t_events[0], [np.pi / 6, 5 * np.pi / 6, 13 * np.pi / 6], rtol=1e-7)
    np.testing.assert_allclose(
        jacrev(lambda c: when(c).t_events[0])(0.5), np.array([1, -1, 1]) / np.sqrt(0.75), rtol=1e-6
    )
    never = jvp(lambda c: (when(c).t_events[0], when(c).y[0, -1]), (2.0,), (1.0,))
    assert never[0][0].shape == (0,)
    assert never[1][1] == 0
    flat = lambda c: integrate.solve_ivp(
        lambda t, y: [1.0 + 0 * y[0]], (-1.0, 1.0), [c], events=lambda t, y: fnp.sign(y[0]), max_step=0.5
    ).t_events[0][0]
    with pytest.raises(np.linalg.LinAlgError, match="only touches zero"):
        grad(flat)(-1.0)


def test_pytree_complex_and_other_states():
    def decay(t, y, k):
        return {"a": -k * y["a"], "b": y["a"] - y["b"]}

    start = {"a": np.ones((2, 2)), "b": np.zeros((2, 2))}
    found = integrate.solve_ivp(decay, (0.0, 1.0), start, args=(0.5,), dense_output=True, **TIGHT)
    np.testing.assert_allclose(found.y["a"][..., -1], np.exp(-0.5), rtol=1e-7)
    np.testing.assert_allclose(found.sol(0.3)["a"], np.exp(-0.15), rtol=1e-7)
    slope = grad(
        lambda y, k: fnp.sum(integrate.solve_ivp(decay, (0.0, 1.0), y, args=(k,), **TIGHT).y["a"][..., -1]), (0, 1)
    )
    by_start, by_rate = slope(start, 0.5)
    np.testing.assert_allclose(by_start["a"], np.exp(-0.5), rtol=1e-7)
    np.testing.assert_allclose(by_rate, -4 * np.exp(-0.5), rtol=1e-7)
    crossing = lambda t, y, k: y["a"][0, 0] - 0.8
    at = integrate.solve_ivp(decay, (0.0, 1.0), start, args=(0.5,), events=crossing, **TIGHT)
    np.testing.assert_allclose(at.y_events[0]["a"][0], 0.8, rtol=1e-7)
    for method in ("RK45", "BDF"):
        turned = lambda w, method=method: integrate.solve_ivp(
            lambda t, z: 1j * w * z, (0.0, 1.0), np.array([1 + 0j]), method, **TIGHT
        ).y[0, -1]
        np.testing.assert_allclose(turned(2.0), np.exp(2j), rtol=1e-6)
        np.testing.assert_allclose(grad(lambda w, f=turned: fnp.real(f(w)))(2.0), -np.sin(2), rtol=1e-6)
    conjugate = lambda y: fnp.real(integrate.solve_ivp(lambda t, z: fnp.conj(z) * 1j, (0.0, 1.0), y, **TIGHT).y[0, -1])
    got = grad(conjugate)(np.array([1 + 2j]))  # the function is not holomorphic: re' = im, im' = re
    np.testing.assert_allclose(got, [np.cosh(1) - 1j * np.sinh(1)], rtol=1e-7)


@pytest.mark.parametrize("method", METHODS[1:])
def test_adjoint_equation(method):
    tight = {"rtol": 1e-7, "atol": 1e-7}

    def loss(y0, p, times, adjoint):
        found = integrate.solve_ivp(hunters, (0.0, 5.0), y0, method, times, args=(p,), adjoint=adjoint, **tight)
        return fnp.sum(found.y[0] ** 2) + found.y[1, -1]

    def end(y0, p, t0, t1, adjoint):
        found = integrate.solve_ivp(hunters, (t0, t1), y0, method, args=(p,), adjoint=adjoint, **tight)
        return found.y[0, -1] + found.t[-1]

    for f, args in ((loss, (START, RATES, TIMES)), (end, (START, RATES, 0.3, 5.0))):
        places = tuple(range(len(args)))
        for a, b in zip(grad(f, places)(*args, True), grad(f, places)(*args, False), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        jacfwd(grad(loss, 1), 1)(START, RATES, TIMES, True), hessian(loss, 1)(START, RATES, TIMES, False), rtol=1e-9
    )
    batch = vmap(lambda y0: grad(loss, 1)(y0, RATES, TIMES, True))(np.stack([START, START * 1.1]))
    np.testing.assert_allclose(batch[1], grad(loss, 1)(START * 1.1, RATES, TIMES, False), rtol=1e-4)


def test_closures_and_branches_on_values():
    def closed(k, method):
        return integrate.solve_ivp(lambda t, y: -k * y + fnp.sin(k), (0.0, 1.0), [1.0], method, **TIGHT).y[0, -1]

    want = lambda k: np.exp(-k) * (1 - np.sin(k) / k) + np.sin(k) / k
    for method in METHODS:
        step = 1e-6
        measured = (want(0.7 + step) - want(0.7 - step)) / (2 * step)
        np.testing.assert_allclose(grad(lambda k, m=method: closed(k, m))(0.7), measured, rtol=1e-6)
    timed = lambda k: integrate.solve_ivp(lambda t, y: -k * y + fnp.sin(k), (0, 1.0), [1.0], t_eval=[1.0], **TIGHT).y
    several = np.array([0.5, 0.7])
    np.testing.assert_allclose(vmap(timed)(several)[:, 0, 0], want(several), rtol=1e-7)

    def switching(t, y, k):
        return [-k * y[0] if t < 0.5 else -2.0 * y[0]]

    last = lambda k: integrate.solve_ivp(switching, (0.0, 1.0), [1.0], args=(k,), max_step=0.25, rtol=1e-8).y[0, -1]
    np.testing.assert_allclose(grad(last)(1.0), -0.5 * np.exp(-1.5), rtol=1e-3)
    threshold = lambda c: integrate.solve_ivp(
        lambda t, y: [1.0 + 0 * y[0]], (0.0, 5.0), [0.0], events=lambda t, y: y[0] - c
    ).t_events[0][0]
    np.testing.assert_allclose(grad(threshold)(2.0), 1.0, rtol=1e-9)


def test_steady_state_start_and_delayed_effect():
    def growth(t, y, k):
        return k * y * (1 - y) - 0.1

    def after(k):
        start = optimize.root(lambda y: growth(0.0, y, k), np.array([0.9])).x
        return integrate.solve_ivp(growth, (0.0, 5.0), start, args=(k,), **TIGHT).y[0, -1]

    k = 0.7
    exact = lambda k: 0.5 + fnp.sqrt(0.25 - 0.1 / k)
    np.testing.assert_allclose(after(k), exact(k), rtol=1e-8)
    np.testing.assert_allclose(grad(after)(k), grad(exact)(k), rtol=1e-7)

    def delayed(k):  # y' = -k y(t - 1), y = 1 before 0, by the method of steps
        first = integrate.solve_ivp(lambda t, y: [-k + 0 * y[0]], (0.0, 1.0), [1.0], dense_output=True, **TIGHT)
        second = integrate.solve_ivp(lambda t, y: -k * first.sol(t - 1.0), (1.0, 2.0), first.y[:, -1], **TIGHT)
        return second.y[0, -1]

    np.testing.assert_allclose(delayed(k), 1 - 2 * k + k * k / 2, rtol=1e-9)
    np.testing.assert_allclose(grad(delayed)(k), -2 + k, rtol=1e-8)


def diffusion(n):
    def flow(t, y, k):
        return k * (fnp.concatenate([y[1:], y[-1:]]) - 2 * y + fnp.concatenate([y[:1], y[:-1]])) - y**3

    pattern = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    return flow, np.cos(np.arange(n) / n * np.pi) + 1.5, pattern


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA"])
def test_long_states(method):
    flow, start, pattern = diffusion(40)
    options = {} if method in ("RK45", "LSODA") else {"jac_sparsity": pattern}
    loss = lambda y0, k, options: fnp.sum(
        integrate.solve_ivp(flow, (0.0, 0.5), y0, method, args=(k,), rtol=1e-8, atol=1e-8, **options).y[:, -1] ** 2
    )
    given, found = (grad(loss, (0, 1))(start, 20.0, chosen) for chosen in (options, {}))
    np.testing.assert_allclose(found[1], in_argument(lambda k: loss(start, k, {}), (20.0,), 0, 1e-2), rtol=3e-5)
    np.testing.assert_allclose(found[0], given[0], rtol=1e-6)
    pushed = jvp(lambda y0, k: loss(y0, k, {}), (start, 20.0), (np.ones(40), 1.0))[1]
    np.testing.assert_allclose(pushed, np.sum(found[0]) + found[1], rtol=1e-9)
    wrong = {} if method in ("RK45", "LSODA") else {"jac_sparsity": scipy.sparse.eye_array(40)}
    np.testing.assert_allclose(grad(loss, 1)(start, 20.0, wrong), found[1], rtol=1e-5)
    full = lambda t, y, k: flow(t, y, k) + 1e-3 * fnp.sum(y)  # no zeros in the Jacobian
    dense = lambda k: fnp.sum(integrate.solve_ivp(full, (0.0, 0.1), start, method, args=(k,), rtol=1e-8).y[:, -1] ** 2)
    np.testing.assert_allclose(grad(dense)(20.0), in_argument(dense, (20.0,), 0, 1e-2), rtol=1e-3)
    np.testing.assert_allclose(jvp(dense, (20.0,), (1.0,))[1], grad(dense)(20.0), rtol=1e-9)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_exact_jacobians_save_evaluations(method):
    flow, start, pattern = diffusion(60)
    counts = []
    for options in ({}, {"jac": "exact"}):
        calls = []

        def counted(t, y, k, calls=calls):
            calls.append(t)
            return flow(t, y, k)

        found = integrate.solve_ivp(counted, (0.0, 0.5), start, method, args=(2000.0,), rtol=1e-6, **options)
        counts.append(len(calls))
        assert found.success
    assert counts[1] < 0.8 * counts[0]
    sparse = {} if method == "LSODA" else {"jac_sparsity": pattern}
    both = [
        integrate.solve_ivp(flow, (0.0, 0.5), start, method, args=(20.0,), **TIGHT, **options).y[:, -1]
        for options in ({}, {"jac": "exact", **sparse})
    ]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-7)


def test_user_jacobians_and_solvers():
    def jacobian(t, y, p):
        return [[p[0] - p[1] * y[1], -p[1] * y[0]], [p[3] * y[1], -p[2] + p[3] * y[0]]]

    last = lambda p, **options: integrate.solve_ivp(hunters, (0, 2.0), START, "Radau", args=(p,), **TIGHT, **options).y[
        0, -1
    ]
    np.testing.assert_allclose(grad(lambda p: last(p, jac=jacobian))(RATES), grad(last)(RATES), rtol=1e-7)

    class Mine(scipy.integrate.RK45):
        pass

    own = lambda p: integrate.solve_ivp(hunters, (0, 2.0), START, Mine, args=(p,), **TIGHT).y[0, -1]
    np.testing.assert_allclose(grad(own)(RATES), grad(last)(RATES), rtol=1e-6)
    columns = lambda p: integrate.solve_ivp(
        lambda t, y, p: fnp.stack(hunters(t, y, p)), (0, 2.0), START, "Radau", args=(p,), vectorized=True, **TIGHT
    ).y[0, -1]
    np.testing.assert_allclose(grad(columns)(RATES), grad(last)(RATES), rtol=1e-7)
    assert integrate.RK45 is scipy.integrate.RK45
    assert issubclass(integrate.OdeResult, dict)
    assert "OdeSolver" in dir(integrate)
    with pytest.raises(AttributeError, match="no attribute 'RK99'"):
        _ = integrate.RK99


def test_empty_interval_and_failed_runs():
    still = lambda y: integrate.solve_ivp(hunters, (1.0, 1.0), y, args=(RATES,)).y[0, -1]
    np.testing.assert_allclose(grad(still)(START), [1.0, 0.0])
    with np.errstate(all="ignore"):
        early = []
        value = lambda y: early.append(integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), y)) or early[-1].y[0, -1]
        assert grad(value)(np.array([1.0]))[0] > 1e3
    assert early[-1].status == -1
    assert not early[-1].success
    backwards = lambda k: integrate.solve_ivp(lambda t, y: -k * y, (1.0, 0.0), [1.0], t_eval=[0.7, 0.2], **TIGHT).y[0]
    np.testing.assert_allclose(jacrev(backwards)(0.5), [0.3 * np.exp(0.15), 0.8 * np.exp(0.4)], rtol=1e-6)


def test_equal_steps_run_under_jit():
    def decay(t, y, k):
        return -k * y

    for method, steps in (("RK23", 8), ("RK45", 4), ("DOP853", 2)):  # XLA compiles all stages of all steps
        solve = lambda k, m=method, **how: integrate.solve_ivp(decay, (0.0, 1.0), jnp.ones(1), m, args=(k,), **how)
        last = lambda k, solve=solve, steps=steps: solve(k, steps=steps).y[0, -1]
        with double_precision(jax):
            value, slope = jax.jit(value_and_grad(last))(0.5)
            np.testing.assert_allclose(value, np.exp(-0.5), rtol=1e-5)
            np.testing.assert_allclose(slope, -np.exp(-0.5), rtol=1e-4)
            adaptive = solve(0.5, rtol=1e-6)
        np.testing.assert_allclose(adaptive.y[0, -1], np.exp(-0.5), rtol=1e-5)
    with pytest.raises(StagingError, match="unknown while JAX traces"):
        jax.jit(lambda y: integrate.solve_ivp(decay, (0.0, 1.0), y, args=(0.5,)).y)(jnp.ones(1))


@pytest.mark.usefixtures("written")
def test_invalid_calls_raise():
    decay = lambda t, y, k: -k * y
    with pytest.raises(ValueError, match="method"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "Euler", args=(0.5,))
    with pytest.raises(InputError, match="args must be a tuple"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], args=0.5)
    with pytest.raises(InputError, match="goes without events"):
        grad(lambda k: integrate.solve_ivp(decay, (0.0, 1.0), [1.0], args=(k,), adjoint=True, events=ground).y[0, -1])(
            0.5
        )
    with pytest.raises(InputError, match="equal steps"):
        integrate.solve_ivp(decay, (0.0, 1.0), jnp.ones(1), "Radau", args=(0.5,))
    with pytest.raises(InputError, match='"exact"'):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "Radau", args=(0.5,), jac="exact ")
    with pytest.raises(ShapeError, match="y0 must be a vector"):
        grad(lambda k: integrate.solve_ivp(decay, (0.0, 1.0), np.ones((2, 2)), args=(k,)).y[0, -1])(0.5)
    with pytest.raises(ConcretizationError):
        grad(lambda k: integrate.solve_ivp(lambda t, y: [float(k) * y[0]], (0.0, 1.0), [1.0]).y[0, -1])(0.5)
    with pytest.raises(ValueError, match="not within"):
        grad(lambda k: integrate.solve_ivp(decay, (0.0, 1.0), [1.0], t_eval=[2.0], args=(k,)).y[0, -1])(0.5)


def test_exact_jacobian_of_numpy_code_in_plain_calls():
    run = lambda xp, jac: integrate.solve_ivp(
        lambda t, y: xp.array([-y[0], y[0] ** 2 - y[1]]), (0.0, 1.0), [1.0, 2.0], "BDF", jac=jac
    )
    got, want = run(np, "exact"), run(np, lambda t, y: np.array([[-1.0, 0.0], [2 * y[0], -1.0]]))
    np.testing.assert_allclose(got.y, want.y, rtol=1e-14)
    assert got.nfev == want.nfev == run(fnp, "exact").nfev


def test_shooting_and_integrals_of_solutions():
    """Check that the initial slope of y'' = -k y with y(0) = 0 and y(1) = 1 is sqrt(k) / sin(sqrt(k))."""

    def slope(k):
        flow = lambda t, y: [y[1], -k * y[0]]
        start = lambda s: fnp.concatenate([np.zeros(1), s])
        miss = lambda s: integrate.solve_ivp(flow, (0, 1.0), start(s), rtol=1e-10, atol=1e-10).y[0, -1:] - 1
        return optimize.fsolve(miss, np.ones(1), xtol=1e-12)[0]

    exact = lambda k: fnp.sqrt(k) / fnp.sin(fnp.sqrt(k))
    for got, want in ((slope, exact), (grad(slope), grad(exact)), (grad(grad(slope)), grad(grad(exact)))):
        np.testing.assert_allclose(got(2.0), want(2.0), rtol=1e-8)
    decayed = lambda x, k: integrate.solve_ivp(lambda t, y: -k * y, (0, 1.0), [x], t_eval=[1.0], **TIGHT).y[0, -1]
    mean = lambda k: integrate.quad(decayed, 0.0, 1.0, (k,))[0]
    np.testing.assert_allclose([mean(1.0), grad(mean)(1.0)], [np.exp(-1) / 2, -np.exp(-1) / 2], rtol=1e-7)


def test_recorded_solve_takes_new_steps_for_new_values():
    flow, times = (lambda t, y, k: -k * y), np.array([0.0, 1.0])
    last = {"t_eval": [1.0], **TIGHT}
    by_ivp = lambda x, k: integrate.solve_ivp(flow, (0, 1.0), fnp.stack([x * x]), args=(k,), **last).y[0, -1]
    by_odeint = lambda x, k: integrate.odeint(flow, fnp.stack([x * x]), times, (k,), tfirst=True)[1, 0]
    for solve in (by_ivp, by_odeint):
        mean = lambda k, solve=solve: integrate.quad(lambda x: solve(x, k), 0.0, 1.0)[0]
        found = [mean(0.5), grad(mean)(0.5), grad(grad(mean))(0.5), jacfwd(mean)(0.5)]
        np.testing.assert_allclose(found, np.exp(-0.5) / 3 * np.array([1, -1, 1, -1]), rtol=1e-6)
        reaching = lambda k, solve=solve: optimize.brentq(lambda x: solve(x, k) - 0.3, 0.0, 2.0, xtol=1e-12)
        rates = np.array([0.5, 1.0])
        np.testing.assert_allclose(vmap(reaching)(rates), np.sqrt(0.3 * np.exp(rates)), rtol=1e-6)
        np.testing.assert_allclose(vmap(grad(reaching))(rates), np.sqrt(0.3 * np.exp(rates)) / 2, rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"dense_output": True}])
def test_recorded_steps_for_other_values_raise(options):
    def elsewhere(k):
        solve = lambda x: integrate.solve_ivp(lambda t, y: -k * y * y, (0, 1.0), fnp.stack([x]), **options)
        last = lambda x: solve(x).sol(1.0)[0] if options else solve(x).y[0, -1]
        recorded = RecordedClosure("test", last, 0.5, checks_branches=True)
        same = stop_gradient(recorded(0.5, recorded.captured))
        np.testing.assert_allclose(same, 0.5 / (1 + 0.5 * stop_gradient(k)), rtol=1e-2)
        return recorded(50.0, recorded.captured)

    with pytest.raises(ConcretizationError, match="run again with other"):
        grad(elsewhere)(1.0)


def test_long_run_in_checkpointed_parts(tmp_path):
    flow = lambda t, y, k: [y[1], -k * y[0]]

    def part(y, t, k):
        return integrate.solve_ivp(flow, (t, t + 1.0), y, "DOP853", args=(k,), **TIGHT).y[:, -1]

    whole = lambda k: integrate.solve_ivp(flow, (0.0, 12.0), [1.0, 0.0], "DOP853", args=(k,), **TIGHT).y[0, -1]
    start = np.array([1.0, 0.0])
    parts = lambda k: checkpoint_chain(part, start, range(12), args=(k,), budget=3, store=tmp_path)[0]
    np.testing.assert_allclose(grad(parts)(2.0), grad(whole)(2.0), rtol=1e-6)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
@pytest.mark.parametrize("kind", ["network", "few entries", "looks at values"])
def test_products_of_long_states_are_recorded_once(method, kind):
    n = 30
    weights = np.random.default_rng(0).normal(size=(n, n)) / np.sqrt(n)

    def flow(t, y, p):
        if kind == "few entries":
            return p[0] * fnp.concatenate([y[1:] ** 2, y[:1]]) - p[1] * y * fnp.exp(-t)
        rate = p[0] if kind == "network" or y[0] > 0 else 1.1 * p[0]
        return rate * fnp.tanh(weights @ y + fnp.sin(t)) - p[1] * y

    start, p = np.cos(np.arange(n)) / 2, np.array([1.5, 0.7])
    options = {"rtol": 1e9, "atol": 1e9, "max_step": 0.2, "first_step": 0.2}  # fixed steps
    last = lambda y0, p: fnp.sum(integrate.solve_ivp(flow, (0, 1.0), y0, method, args=(p,), **options).y[:, -1] ** 3)
    by_start, by_rate = grad(last, (0, 1))(start, p)
    np.testing.assert_allclose(by_rate, in_argument(last, (start, p), 1, 1e-6), rtol=1e-7)
    along = np.sin(np.arange(n))
    ends = [last(start + s * 1e-6 * along, p) for s in (1, -1)]
    np.testing.assert_allclose(by_start @ along, (ends[0] - ends[1]) / 2e-6, rtol=1e-7)
    pushed = jvp(last, (start, p), (along, np.ones(2)))[1]
    np.testing.assert_allclose(pushed, by_start @ along + by_rate.sum(), rtol=1e-12)
    slope = lambda y0, p: grad(last, 1)(y0, p)[0]
    np.testing.assert_allclose(hessian(last, 1)(start, p)[0], in_argument(slope, (start, p), 1, 1e-6), rtol=1e-6)


def test_product_code_is_generated_once(monkeypatch):
    """Check that a second solve with more steps reuses the code, unlike a solve of another right-hand side."""
    written = []
    write = straight._write_program
    monkeypatch.setattr(straight, "_programs", {})
    monkeypatch.setattr(straight, "_write_program", lambda *args: written.append(0) or write(*args))
    flow, start, _ = diffusion(30)
    bent = lambda t, y, k: flow(t, y, k) - y**3
    for k, fun, count in ((5.0, flow, 1), (7.0, flow, 1), (5.0, bent, 2), (7.0, bent, 2), (6.0, flow, 2)):
        last = lambda k, fun=fun: fnp.sum(integrate.solve_ivp(fun, (0, 0.5), start, args=(k,), **TIGHT).y[:, -1] ** 2)
        np.testing.assert_allclose(grad(last)(k), in_argument(last, (k,), 0, 1e-4), rtol=1e-5)
        assert len(written) == count


@pytest.mark.parametrize("method", ["DOP853", "LSODA"])
def test_cached_product_code_uses_current_values(method, monkeypatch):
    """Check gradients of one code with other arrays, arguments and numbers against those of a first call."""
    rng, n, made = np.random.default_rng(0), 30, []
    parted = products._split
    monkeypatch.setattr(products, "_parts", {})
    monkeypatch.setattr(products, "_split", lambda *args: made.append(0) or parted(*args))

    def loss(weights, power, p, start):
        flow = lambda t, y, p: p[0] * fnp.tanh(weights @ y + fnp.sin(t)) - p[1] * y**power
        found = integrate.solve_ivp(flow, (0.1, 1.0), start, method, args=(p,), **TIGHT)
        return fnp.sum(found.y[:, -1] ** 2)

    few, more = (rng.normal(size=(n, n)) / np.sqrt(n) for _ in range(2))
    p, start = np.array([1.5, 0.7]), np.cos(np.arange(n)) / 2
    cases = [
        (few, 3, p, start),
        (more, 3, p, start),
        (few, 2, p, start),
        (few, 3, 1.1 * p, 0.9 * start),
        (more, 2, p, start),
    ]
    once = [0, 0, 1, 1, 1]  # numbers of further recordings
    found = []
    for case, further in zip(cases, once, strict=True):
        found.append(grad(loss, (2, 3))(*case))
        assert len(made) == 1 + further
    for case, (by_rate, by_start) in zip(cases, found, strict=True):
        monkeypatch.setattr(products, "_parts", {})
        anew = grad(loss, (2, 3))(*case)
        np.testing.assert_allclose(by_rate, anew[0], rtol=1e-13)
        np.testing.assert_allclose(by_start, anew[1], rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(
            by_rate, in_argument(lambda p, c=case: loss(*c[:2], p, c[3]), (case[2],), 0, 1e-4), rtol=1e-5
        )


@pytest.mark.parametrize("more", [{}, {"adjoint": True}, {"dense_output": True}, {"t_eval": [0.005, 0.01]}])
@pytest.mark.parametrize("method", METHODS)
def test_solve_leaks_no_array(method, more):
    """Check that no memory waits for garbage collection or stays; LSODA works with a matrix, of 320 kB here."""
    flow, start, _ = diffusion(200)
    solve = lambda k: integrate.solve_ivp(flow, (0, 0.01), start, method, args=(k,), **more)
    slope = grad(lambda k: fnp.sum(solve(k).y[:, -1] ** 2))
    slope(5.0)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        slope(5.0)
        before = tracemalloc.get_traced_memory()[0]
        slope(5.0)
        assert tracemalloc.get_traced_memory()[0] - before < 5e4
    finally:
        tracemalloc.stop()
        gc.enable()


def mixing(n):
    """Return a network whose units decay at very different rates: its Jacobian is full, and stiff."""
    weights = np.random.default_rng(0).normal(size=(n, n)) / np.sqrt(n)
    decay = np.logspace(0, 3, n)

    def flow(t, y, p):
        return p[0] * fnp.tanh(weights @ y) * (1.0 + fnp.sin(3.0 * t)) - p[1] * decay * y

    return flow, np.cos(np.arange(n)), np.array([1.5, 0.7])


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_full_jacobians_of_long_states(method, monkeypatch):
    """Check that one factorisation serves many steps, and that the iterations agree with one factorisation per step."""
    flow, start, p = mixing(30)
    options = {"rtol": 1e-6, "atol": 1e-8}
    last = lambda y0, p: fnp.sum(
        integrate.solve_ivp(flow, (0.0, 2.0), y0, method, [0.7, 2.0], args=(p,), **options).y ** 2
    )
    made = []
    renew = iterations.Iterated._update_jacobian
    monkeypatch.setattr(iterations.Iterated, "_update_jacobian", lambda self, n: made.append(n) or renew(self, n))
    by_start, by_rate = grad(last, (0, 1))(start, p)
    assert 0 < len(made) < 20
    tangents = np.sin(np.arange(30)), np.array([0.3, -0.2])
    pushed = jvp(last, (start, p), tangents)[1]
    np.testing.assert_allclose(pushed, by_start @ tangents[0] + by_rate @ tangents[1], rtol=1e-9)
    tight = lambda p: fnp.sum(
        integrate.solve_ivp(flow, (0.0, 2.0), start, method, [0.7, 2.0], args=(p,), rtol=1e-9, atol=1e-11).y ** 2
    )
    np.testing.assert_allclose(by_rate, in_argument(tight, (p,), 0, 1e-4), rtol=1e-3)
    bend = hessian(last, 1)(start, p)
    np.testing.assert_allclose(bend, bend.T, rtol=1e-7, atol=1e-9 * np.abs(bend).max())
    batch = vmap(grad(lambda p: last(start, p)))(np.stack([p, 1.1 * p]))
    np.testing.assert_allclose(batch[0], by_rate, rtol=1e-8)

    monkeypatch.setattr(iterations, "_MAX_ITERATIONS", 1)  # the iterations never converge
    for got, want in zip((by_start, by_rate), grad(last, (0, 1))(start, p), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * np.abs(want).max())
    np.testing.assert_allclose(pushed, jvp(last, (start, p), tangents)[1], rtol=1e-9)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
@pytest.mark.parametrize("backwards", [False, True])
def test_full_jacobians_in_backward_time_and_with_branches(method, backwards):
    flow, start, p = mixing(30)
    ends = (1.0, 0.7) if backwards else (0.0, 1.0)
    rate = -1e-2 if backwards else 1.0
    plain = lambda t, y, p: rate * flow(t, y, p)
    steered = lambda t, y, p: plain(t, y, p) if y[0] > -100 else 0 * y
    last = lambda p, f: fnp.sum(integrate.solve_ivp(f, ends, start, method, args=(p,)).y[:, -1])
    slope = grad(last)(p, plain)
    np.testing.assert_allclose(grad(last)(p, steered), slope, rtol=1e-8)
    np.testing.assert_allclose(jvp(lambda p: last(p, steered), (p,), (p,))[1], slope @ p, rtol=1e-8)


def test_lsoda_on_stiff_and_nonstiff_long_states(monkeypatch):
    """Check a batch of a stiff and a non-stiff system, in which steps have different stages."""
    flow, start, _ = diffusion(30)
    last = lambda k: fnp.sum(integrate.solve_ivp(flow, (0, 0.5), start, "LSODA", [0.2, 0.5], args=(k,), **TIGHT).y ** 2)
    rates = np.array([0.5, 2000.0])
    stages = []
    written = records._lsoda
    monkeypatch.setattr(records, "_lsoda", lambda *args: stages.append(len((found := written(*args))["T"][0])) or found)
    slopes = vmap(grad(last))(rates)
    assert stages == [2, 1]
    bends = vmap(hessian(last))(rates)
    for i, k in enumerate(rates):
        np.testing.assert_allclose(slopes[i], grad(last)(k), rtol=1e-9)
        np.testing.assert_allclose(slopes[i], in_argument(last, (k,), 0, 1e-3 * k), rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(jvp(last, (k,), (1.0,))[1], slopes[i], rtol=1e-9)
        np.testing.assert_allclose(bends[i], in_argument(grad(last), (k,), 0, 1e-3 * k), rtol=1e-3, atol=1e-9)


def alternating(n):
    """Return a system that is not stiff, stiff for a while, and not stiff again."""
    weights = np.random.default_rng(0).normal(size=(n, n)) / np.sqrt(n)

    def flow(t, y, p):
        rate = 1.0 + 5000.0 * fnp.exp(-((5.0 * (t - 1.0)) ** 2))
        return p[0] * fnp.tanh(weights @ y) - p[1] * rate * (y - fnp.sin(30.0 * t))

    return flow, np.cos(np.arange(n)), np.array([1.5, 0.7])


@pytest.mark.parametrize("system", [diffusion, mixing, alternating])
@pytest.mark.parametrize("backwards", [False, True])
def test_lsoda_steps_are_consistent(system, backwards, monkeypatch):
    """Check for long states that the rows of a step are consistent, and its slopes are those of the right-hand side."""
    ahead, start, more = system(30)
    flow = (lambda t, y, p: -ahead(-t, y, p)) if backwards else ahead
    p, end = 2.0 if system is diffusion else more, -3.0 if backwards else 3.0
    seen = []
    written = records._lsoda
    monkeypatch.setattr(records, "_lsoda", lambda *args: seen.append((list(args[0]), found := written(*args))) or found)
    solve = lambda p: integrate.solve_ivp(flow, (0.0, end), start, "LSODA", args=(p,), rtol=1e-7, atol=1e-9).y
    jvp(solve, (p,), (p,))
    [(notes, found)] = seen
    S, X, T, U, V, P, Q = (found[name] for name in ("S", "X", "T", "U", "V", "P", "Q"))
    size = np.abs(P) @ np.abs(S[:-1]) + np.abs(Q) @ np.abs(X)
    assert (np.abs(P @ S[:-1] + Q @ X - S[1:]) <= 1e-12 * size.max(-1, keepdims=True)).all()
    states = U @ S[:-1] + V @ X
    slopes = np.array([[flow(t, y, p) for t, y in zip(*stage, strict=True)] for stage in zip(T, states, strict=True)])
    stiff = np.array([note.stiff for note in notes])
    if stiff.any():  # LSODA iterates until a norm is small enough
        assert X.shape[1] == 1
        assert system is not diffusion
        np.testing.assert_allclose(slopes, X, rtol=1e-3, atol=1e-3 * np.abs(X).max())
    else:
        np.testing.assert_allclose(slopes, X, rtol=1e-10, atol=1e-10 * np.abs(X).max())
    assert np.flatnonzero(np.diff(stiff)).size == {diffusion: 0, mixing: 1, alternating: 2}[system]


@pytest.mark.parametrize("system", [diffusion, mixing, alternating])
def test_gradients_through_lsoda_steps(system, monkeypatch):
    flow, start, more = system(30)
    p = 2.0 if system is diffusion else more
    options = {"rtol": 1e-9, "atol": 1e-11, "dense_output": True}

    def last(start, p):
        found = integrate.solve_ivp(flow, (0.0, 1.5), start, "LSODA", [0.3, 1.5], args=(p,), **options)
        return fnp.sum(found.y**2) + fnp.sum(found.sol(0.77))

    by_start, by_rate = grad(last, (0, 1))(start, p)
    np.testing.assert_allclose(by_rate, in_argument(last, (start, p), 1, 1e-4), rtol=1e-4)
    along = np.sin(np.arange(30))
    ends = [last(start + s * 1e-4 * along, p) for s in (1, -1)]
    np.testing.assert_allclose(by_start @ along, (ends[0] - ends[1]) / 2e-4, rtol=1e-4)
    pushed = jvp(last, (start, p), (along, np.ones_like(p)))[1]
    np.testing.assert_allclose(pushed, by_start @ along + np.sum(by_rate), rtol=1e-9)
    monkeypatch.setattr(records, "nordsieck_steps", lambda *some: None)  # as after a restart of LSODA
    np.testing.assert_allclose(grad(last, 1)(start, p), by_rate, rtol=1e-4)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_jacobian_closes_over_traced_values(method):
    """Check that the Jacobian affects the steps only."""

    def last(p):
        jac = lambda t, y: np.diag(-2.0 * p * y)
        options = {"method": method, "rtol": 1e-9, "atol": 1e-10}
        return scipy.integrate.solve_ivp(lambda t, y: -p * y**2, (0, 2), [0.7, 1.1], jac=jac, **options).y[:, -1].sum()

    exact = lambda p: -sum(2 / (1 / y + 2 * p) ** 2 for y in (0.7, 1.1))
    np.testing.assert_allclose(grad(last)(0.4), exact(0.4), rtol=1e-6)


def test_bdf_does_not_warn_for_uninitialized_memory(monkeypatch):
    """Check that no warning comes from SciPy's unfilled differences, where a signalling NaN is "invalid"."""
    module = importlib.import_module("scipy.integrate._ivp.bdf")
    filled = type("Filled", (), {"__getattr__": lambda _, name: getattr(np, name)})()
    filled.empty = lambda shape, dtype: np.full(shape, 0x7FF0000000000001, np.uint64).view(dtype)
    monkeypatch.setattr(module, "np", filled)
    solve = lambda k: integrate.solve_ivp(lambda t, y: -k * y, (0, 1), [1.0, 2.0], "BDF").y[:, -1].sum()
    assert grad(solve)(0.5) == pytest.approx(-3 * np.exp(-0.5), rel=1e-2)


def test_batch_with_equal_branches_on_closure_values():
    def last(d):
        def slope(t, y):
            flow = d * y[0]
            return [-flow * y[0] * (2.0 if flow < 0.01 else 1.0 + 1.0 / flow)]

        return scipy.integrate.solve_ivp(slope, (0.0, 0.5), [1.0], rtol=1e-8).y[0, -1]

    d = np.array([1.0, 1.1])
    np.testing.assert_allclose(vmap(last)(d), [last(one) for one in d], rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(last))(d), [grad(last)(one) for one in d], rtol=1e-10)


def test_batch_with_differing_branches_raises():
    def last(d):
        slope = lambda t, y: [-y[0] * (d if d * y[0] < 1.05 else 1.0)]
        return scipy.integrate.solve_ivp(slope, (0.0, 0.5), [1.0]).y[0, -1]

    with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
        vmap(grad(last))(np.array([1.0, 1.1]))


def test_branching_right_hand_side_with_closure():
    times = np.linspace(0.0, 1.0, 6)

    def slope(t, y, k, table):
        i = np.searchsorted(times, t).clip(1, 5)
        part = (t - times[i - 1]) / (times[i] - times[i - 1])
        return -k * y + table[i - 1] * (1.0 - part) + table[i] * part if t < 0.8 else -y

    def last(k, table, **more):
        return integrate.solve_ivp(slope, (0.0, 1.0), [1.0], max_step=0.1, args=(k, table), **more).y[0, -1]

    def closed(k, table, **more):
        fun = lambda t, y: slope(t, y, k, table)
        return integrate.solve_ivp(fun, (0.0, 1.0), [1.0], max_step=0.1, **more).y[0, -1]

    args = (2.0, np.cos(times))
    for more in ({}, {"method": "BDF"}, {"t_eval": [0.5, 1.0]}, {"t_eval": [1.0], "budget": 3}):
        got, want = (grad(lambda *args, f=f, more=more: f(*args, **more), (0, 1))(*args) for f in (closed, last))
        np.testing.assert_allclose(got[0], want[0])
        np.testing.assert_allclose(got[1], want[1], atol=1e-14)


FROM_HALF = {
    "solve_ivp": lambda f, s: scipy.integrate.solve_ivp(f, (0.0, 1.0), [1.0], rtol=1e-8, atol=1e-10).y[0, -1],
    "BDF": lambda f, s: scipy.integrate.solve_ivp(f, (0.0, 1.0), [1.0], "BDF", rtol=1e-8, atol=1e-10).y[0, -1],
    "LSODA": lambda f, s: scipy.integrate.solve_ivp(f, (0.0, 1.0), [1.0], "LSODA", rtol=1e-8, atol=1e-10).y[0, -1],
    "odeint": lambda f, s: scipy.integrate.odeint(f, 1.0, [0.0, 0.5, 1.0], tfirst=True)[-1, 0],
    "in pieces": lambda f, s: integrate.odeint(f, 1.0, np.array([0.0, 0.5, 1.0]), tfirst=True, budget=20)[-1, 0],
    "adjoint": lambda f, s: integrate.odeint(f, 1.0, np.array([0.0, 0.5, 1.0]), tfirst=True, adjoint=True)[-1, 0],
}


if not at_least(scipy, "1.17.0"):  # older versions of LSODA cannot begin in the middle
    del FROM_HALF["in pieces"]


@pytest.mark.parametrize("name", FROM_HALF)
def test_right_hand_side_with_closure_on_later_branch(name):
    """Check closed-over values that the trial at the start does not meet; solvers reuse the memory of ``y``."""
    code = "lambda s: solve(lambda t, y: -y if t < 0.5 else -s * y, s)"
    last = eval(code, {"solve": FROM_HALF[name]})  # new code: its first call compares the arrays that it uses
    want = -0.5 * np.exp(-0.5 - 0.5 * 1.4)
    assert grad(last)(1.4) == pytest.approx(want, rel=1e-5)
    assert jvp(last, (1.4,), (1.0,))[1] == pytest.approx(want, rel=1e-5)
    if name != "in pieces":  # pieces are for a single run
        assert vmap(grad(last))(np.array([1.4, 1.4])) == pytest.approx(want, rel=1e-5)


def test_event_with_closure_on_later_branch():
    def when(s):
        event = lambda t, y: y[0] - 0.5 if t < 0.2 else y[0] - s
        exact = {"rtol": 1e-9, "atol": 1e-12}
        return scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], events=event, **exact).t_events[0][0]

    assert grad(when)(0.3) == pytest.approx(-1 / 0.3, rel=1e-6)


@pytest.mark.parametrize("method", ["BDF", "Radau", "LSODA"])
def test_jacobian_that_closes_over_parameters_in_vmap(method):
    def last(p):
        def jacobian(t, y):
            return np.array([[-p[0], 1.0], [p[0], -2.0 * p[1] * y[1]]])

        rhs = lambda t, y: np.array([-p[0] * y[0] + y[1], p[0] * y[0] - p[1] * y[1] ** 2])
        options = {"jac": jacobian, "t_eval": [0.5, 1.0], "rtol": 1e-9, "atol": 1e-11}
        return scipy.integrate.solve_ivp(rhs, (0.0, 1.0), [1.0, 0.5], method, **options).y[:, -1] @ [1.0, 2.0]

    rows = np.array([[0.5, 1.0], [0.6, 1.2]])
    slopes = [grad(last)(row) for row in rows]
    np.testing.assert_allclose(vmap(grad(last))(rows), slopes, rtol=1e-12)
    np.testing.assert_allclose(slopes[0], differences(last, rows[0], 1e-3), rtol=1e-6)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_intervals_of_length_zero(method):
    solve = lambda y, **options: scipy.integrate.solve_ivp(lambda t, y: -y, (0.5, 0.5), y, method, **options)
    start = np.array([1.0, 2.0])
    for found in (lambda y: solve(y).y[:, -1], lambda y: solve(y, dense_output=True).sol(0.5)):
        np.testing.assert_array_equal(found(start), start)
        np.testing.assert_array_equal(jacrev(found)(start), np.eye(2))
        np.testing.assert_array_equal(jacfwd(found)(start), np.eye(2))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("method", ["BDF", "Radau"])
def test_constant_jacobians_of_traced_values(method, form):
    n = 6
    laplacian = np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), -1, 0) - 2 * np.eye(n)
    start = np.sin(np.arange(n)) + 1.0

    def last(p, jac):
        options = {"method": method, "rtol": 1e-8, "atol": 1e-10, "jac": jac(p)}
        return scipy.integrate.solve_ivp(lambda t, y: p * (laplacian @ y), (0.0, 0.5), start, **options).y[3, -1]

    want = (last(1.0 + 1e-4, lambda p: None) - last(1.0 - 1e-4, lambda p: None)) / 2e-4
    for jac in (lambda p: form(laplacian) * p, lambda p: lambda t, y: form(laplacian) * p):
        assert grad(last)(1.0, jac) == pytest.approx(want, rel=1e-6)


def test_no_requested_times():
    late = lambda t, y: y[0] - 0.5
    late.terminal = True
    for options in ({"t_eval": []}, {"t_eval": [4.0, 5.0], "events": late}):
        fun = lambda k: scipy.integrate.solve_ivp(lambda t, y: -k * y, (0.0, 5.0), [1.0], **options).y  # noqa: B023
        assert np.shape(jvp(fun, (1.0,), (1.0,))[1]) == np.shape(fun(1.0)) == (0,)


def test_backwards_in_pieces():
    fun = lambda k, **how: (
        integrate.solve_ivp(lambda t, y: -k * y, (1.0, 0.0), [1.0], t_eval=[0.9, 0.1], **how).y[0].sum()
    )
    assert grad(lambda k: fun(k, budget=2))(1.0) == pytest.approx(grad(fun)(1.0), rel=1e-12)


@pytest.mark.parametrize("method", ["RK45", "BDF", "Radau", "LSODA"])
def test_slopes_that_depend_on_python_branches(method):
    """The branches differ in a value, not in the solution."""

    def last(k, branches):
        def slope(t, y):
            return -k * y if not branches or float(y[0]) > 0.5 else (-2.0 * k * y) / 2.0

        return scipy.integrate.solve_ivp(slope, (0.0, 1.5), [1.0, 0.3], method, rtol=1e-9, atol=1e-10).y[0, -1]

    for transformed in (lambda b: grad(last)(1.0, b), lambda b: jvp(lambda k: last(k, b), (1.0,), (1.0,))[1]):
        assert transformed(True) == pytest.approx(transformed(False), rel=1e-9)


def test_wrong_calls_raise():
    sparsity = scipy.sparse.eye_array(3)
    start = np.ones(12)
    for error, says, fun in (
        (InputError, "fun must return a tree like y0", lambda p: integrate.solve_ivp(
            lambda t, y: [p * y["a"]], (0.0, 1.0), {"a": np.ones(1)}).y["a"]),
        (ShapeError, "jac_sparsity must be a square matrix", lambda p: scipy.integrate.solve_ivp(
            lambda t, y: p * y, (0.0, 1.0), start, "BDF", jac_sparsity=sparsity).y),
        (ShapeError, "t must be a number or a vector", lambda p: scipy.integrate.solve_ivp(
            lambda t, y: p * y, (0.0, 1.0), start, dense_output=True).sol(np.ones((2, 2)))),
    ):  # fmt: skip
        with pytest.raises(error, match=says):
            jvp(fun, (1.0,), (1.0,))
    with pytest.raises(InputError, match="a batch without an example"):
        vmap(lambda p: scipy.integrate.solve_ivp(lambda t, y: p * y, (0.0, 1.0), [1.0]).y)(np.zeros(0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjoint", [False, True])
def test_empty_state(method, adjoint):
    def fun(p):
        found = integrate.solve_ivp(lambda t, y: p * y, (0.0, 1.0), np.zeros(0), method, [0.5, 1.0], adjoint=adjoint)
        assert found.y.shape == (0, 2)
        return fnp.sum(found.y) + p * p

    assert grad(fun)(3.0) == 6.0
    assert jvp(fun, (3.0,), (1.0,)) == (9.0, 6.0)


def emptied(p, method):
    """Return the height of water that runs out, which reaches 0, where the slope has an infinite derivative."""
    slope = lambda t, y: -p * fnp.sqrt(fnp.maximum(y, 0.0))
    return integrate.solve_ivp(slope, (0.0, 3.0), [1.0], method, adjoint=True).y[0, -1]


@pytest.mark.parametrize("method", METHODS)
def test_adjoint_equation_with_infinite_derivatives(method):
    """SciPy's explicit methods would shorten their steps without end."""
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match="the right-hand side must have finite"):
        grad(emptied)(1.0, method)
    with np.errstate(all="ignore"):
        assert np.isnan(grad(lambda p: emptied(p / 4, method) * fnp.asarray(np.nan))(1.0))


def test_examples_that_end_in_different_ways_raise():
    """One example reaches its end after one step; the solver gives up in the second step of the other."""
    wild = lambda t: 1e200 * np.sign(np.sin(1e17 * t)) if t > 1.5 else 0.0

    def fun(length):
        found = integrate.solve_ivp(lambda t, y: wild(t) + 0.0 * y, (1.0, 1.0 + length), [1.0], first_step=0.5)
        return fnp.sum(found.y)

    assert fun(0.5) == fun(2.0) == 2.0
    with pytest.raises(ShapeError, match=r"all examples must end alike, got status \[0, -1\]. Pass t_eval"):
        vmap(fun)(np.array([0.5, 2.0]))


def test_adjoint_equation_without_solution():
    """The slope is infinite at rest, so the adjoint equation has no solution."""
    rest = lambda p: integrate.solve_ivp(lambda t, y: p * np.sqrt(np.abs(y)), (0.0, 1.0), [0.0], adjoint=True).y[0, -1]
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match="the adjoint equation was not solved"):
        grad(rest)(1.0)
