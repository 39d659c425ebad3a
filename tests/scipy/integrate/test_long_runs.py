"""Runs of SciPy's solvers whose steps are recomputed: equal derivatives, little memory, nothing left behind."""

import os
import signal
import subprocess
import sys
import textwrap
from functools import wraps

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, value_and_grad, vmap
from funcgrad.errors import ConvergenceError, InputError
from funcgrad.scipy import integrate
from funcgrad.scipy.integrate.ivp import pieces

START = np.array([10.0, 5.0])
RATES = np.array([1.1, 0.4, 0.4, 0.1])


def hunters(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def begins_lsoda(test):
    """Expect the refusal before SciPy 1.17, whose LSODA cannot begin in the middle; later versions run the test."""
    known = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17)

    @wraps(test)
    def run(**given):
        if known or given.get("method", "LSODA") != "LSODA":
            return test(**given)
        with pytest.raises(InputError, match=r"from SciPy 1\.17 on"):
            test(**given)

    return run


@pytest.fixture
def short(monkeypatch):
    """Split runs into pieces of few steps, even for short states."""
    monkeypatch.setattr(pieces, "_MAX_ENTRIES", 48)


def loss(method, y0, p, t0, times, **more):
    found = integrate.solve_ivp(hunters, (t0, 5.0), y0, method, times, args=(p,), rtol=1e-7, atol=1e-7, **more)
    return fnp.sum(found.y**2) + found.t[-1] ** 2


@pytest.mark.parametrize("times", [np.array([5.0]), np.array([0.3, 1.0, 1.01, 2.5])], ids=["end", "several"])
@pytest.mark.parametrize("method", pieces.RESTARTABLE)
@begins_lsoda
def test_derivatives_match_saving_all_steps(short, tmp_path, method, times):
    args = START, RATES, 0.3, times
    whole, cut = (
        lambda *some, more=more: loss(method, *some, **more) for more in ({}, {"budget": 3, "store": tmp_path})
    )
    places = (0, 1, 2, 3)
    want, got = value_and_grad(whole, places)(*args), value_and_grad(cut, places)(*args)
    assert got[0] == want[0]
    for g, w in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-11, atol=1e-11)
    tangents = tuple(np.ones(np.shape(x)) for x in args)
    np.testing.assert_allclose(jvp(cut, args, tangents)[1], jvp(whole, args, tangents)[1], rtol=1e-12)
    bends = [jvp(grad(f, 1), args, tangents)[1] for f in (cut, whole)]
    np.testing.assert_allclose(*bends, rtol=1e-10, atol=1e-9)
    assert list(tmp_path.iterdir()) == []


def test_results_match_scipy(short, tmp_path):
    options = {"t_eval": [1.0, 2.0], "rtol": 1e-6}
    want = scipy.integrate.solve_ivp(hunters, (0, 3), START, "BDF", args=(RATES,), **options)
    plain = integrate.solve_ivp(hunters, (0, 3), START, "BDF", args=(RATES,), store=tmp_path, **options)
    seen = {}

    def run(p):
        seen["it"] = found = integrate.solve_ivp(hunters, (0, 3), START, "BDF", args=(p,), store=tmp_path, **options)
        return found.t, found.y

    t, y = jvp(run, (RATES,), (RATES,))[0]
    for found_t, found_y, result in ((plain.t, plain.y, plain), (t, y, seen["it"])):
        assert (found_t == want.t).all()
        assert (found_y == want.y).all()
        assert [result[k] for k in ("nfev", "njev", "nlu", "status", "message", "success")] == [
            want[k] for k in ("nfev", "njev", "nlu", "status", "message", "success")
        ]


def test_backward_time_trees_complex_states_and_closures(short):
    def check(run, x, **more):
        np.testing.assert_allclose(grad(lambda x: run(x, budget=2))(x), grad(run)(x), rtol=1e-10)

    tight = {"rtol": 1e-7, "atol": 1e-9}
    check(lambda k, **m: integrate.solve_ivp(hunters, (3.0, 0.0), START, "Radau", [2.0, 0.0], args=(k * RATES,), **m).y[
        0, -1
    ], 1.1)  # fmt: skip
    start = {"a": np.ones(2), "b": np.zeros(2)}

    def closed(k, **more):
        tree = lambda t, y: {"a": -k * y["a"], "b": y["a"] - y["b"]}
        return fnp.sum(integrate.solve_ivp(tree, (0.0, 2.0), start, t_eval=[1.0, 2.0], **tight, **more).y["b"])

    check(closed, 0.7)

    def turned(w, method, **more):
        y0 = np.array([1.0 + 0.5j])
        found = integrate.solve_ivp(lambda t, z, w: 1j * w * z, (0.0, 2.0), y0, method, [2.0], args=(w,), **more)
        return fnp.real(found.y[0, -1])

    for method in ("RK45", "DOP853", "BDF"):
        check(lambda w, method=method, **more: turned(w, method, **tight, **more), 1.3)

    n = 40
    band = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])

    def diffusion(t, y, k):
        return k * (fnp.concatenate([y[1:], y[-1:]]) - 2 * y + fnp.concatenate([y[:1], y[:-1]])) - y**3

    y0 = np.sin(np.arange(n))
    for options in ({}, {"jac_sparsity": band}, {"jac_sparsity": band, "jac": "exact"}):
        for method in ("Radau", "BDF"):
            run = lambda k, method=method, options=options, **more: fnp.sum(
                integrate.solve_ivp(diffusion, (0, 1), y0, method, [0.5, 1.0], args=(k,), **options, **more).y ** 2
            )
            check(run, 5.0)


@begins_lsoda
def test_lsoda_restarts_in_stiff_mode(short, tmp_path):
    robertson = lambda t, y, k: [
        -k[0] * y[0] + k[1] * y[1] * y[2],
        k[0] * y[0] - k[1] * y[1] * y[2] - k[2] * y[1] ** 2,
        k[2] * y[1] ** 2,
    ]
    rates = np.array([0.04, 1e4, 3e7])
    options = {"method": "LSODA", "t_eval": [0.3, 40.0], "rtol": 1e-8, "atol": 1e-11}
    run = lambda k, **more: fnp.sum(
        integrate.solve_ivp(robertson, (0, 40.0), [1.0, 0, 0], args=(k,), **options, **more).y[1]
    )
    got = grad(lambda k: run(k, budget=4, store=tmp_path))(rates)
    np.testing.assert_allclose(got, grad(run)(rates), rtol=1e-9)
    exact = lambda k, **more: run(k, jac="exact", **more)
    np.testing.assert_allclose(grad(lambda k: exact(k, budget=4))(rates), grad(exact)(rates), rtol=1e-9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(2,), (1, 2)])
@begins_lsoda
def test_odeint_recomputes_states(short, tmp_path, shape):
    """Check ``odeint``: the values are SciPy's, and derivatives use the steps of LSODA."""
    times = np.array([0.0, 0.4, 1.5, 4.0])

    def flow(y, t, p):
        a, b = y.ravel()
        return fnp.reshape(fnp.stack(hunters(t, (a, b), p)), shape)

    def loss(y0, t, p, **more):
        return fnp.sum(integrate.odeint(flow, y0, t, (p,), **more)[1:] ** 2)

    args = START.reshape(shape), times, RATES
    cut = lambda *some: loss(*some, budget=3, store=tmp_path)
    want, got = value_and_grad(loss, (0, 1, 2))(*args), value_and_grad(cut, (0, 1, 2))(*args)
    assert got[0] == want[0]
    for g, w in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
    np.testing.assert_allclose(hessian(cut, 2)(*args), hessian(loss, 2)(*args), rtol=1e-6, atol=1e-4)
    tangents = tuple(np.ones(np.shape(x)) for x in args)
    np.testing.assert_allclose(jvp(cut, args, tangents)[1], jvp(loss, args, tangents)[1], rtol=1e-9)
    assert list(tmp_path.iterdir()) == []
    if len(shape) == 1:
        plain = integrate.odeint(flow, START, times, (RATES,), store=tmp_path)
        assert (plain == scipy.integrate.odeint(flow, START, times, (RATES,))).all()


@begins_lsoda
def test_invalid_odeint_raises(tmp_path, monkeypatch):
    last = lambda k, y0=1.0, **more: integrate.odeint(lambda y, t, k: -k * y, y0, np.array([0.0, 1.0]), (k,), **more)[1]
    for more in ({"steps": 3}, {"adjoint": True}):
        with pytest.raises(InputError, match=r"integrate\.odeint: store and budget go with chosen steps"):
            grad(lambda k, more=more: last(k, budget=3, **more)[0])(1.0)
    with pytest.raises(InputError, match="real arrays of NumPy"):
        grad(lambda k: fnp.real(last(k, y0=1j, store=tmp_path)[0]))(1.0)
    with pytest.raises(InputError, match=r"integrate\.odeint: store must be an existing folder"):
        grad(lambda k: last(k, store=tmp_path / "none")[0])(1.0)
    with pytest.raises(InputError, match=r"integrate\.odeint: store and budget are for one run"):
        vmap(lambda k: last(k, budget=3)[0])(np.ones(2))
    with pytest.raises(ConvergenceError, match="the steps are too many"):
        grad(lambda k: last(k, budget=3, mxstep=2)[0])(1.0)
    monkeypatch.setattr(pieces, "_LSODA_MEMORY", ("nowhere",))
    with pytest.raises(InputError, match=r"from SciPy 1\.17 on"):
        grad(lambda k: last(k, budget=3)[0])(1.0)


def test_invalid_calls_raise(tmp_path):
    run = lambda k, **more: integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=(k,), **more).y[0, -1]
    for more in (
        {"budget": 3},
        {"store": tmp_path, "t_eval": [1.0], "method": type("Mine", (scipy.integrate.RK45,), {})},
        {"budget": 3, "t_eval": [1.0], "dense_output": True},
        {"budget": 3, "t_eval": [1.0], "adjoint": True},
        {"budget": 3, "t_eval": [1.0], "events": lambda t, y, k: y[0]},
    ):
        with pytest.raises(InputError, match="store and budget go with"):
            grad(lambda k, more=more: run(k, **more))(1.0)
    with pytest.raises(InputError, match="for one run"):
        vmap(lambda k: run(k, t_eval=[1.0], budget=3))(np.ones(2))
    with pytest.raises(InputError, match="store must be an existing folder"):
        grad(lambda k: run(k, t_eval=[1.0], store=tmp_path / "none"))(1.0)
    with pytest.raises(InputError, match="need steps and times"):
        grad(lambda k: run(k, t_eval=[], store=tmp_path))(1.0)


def test_error_or_killed_process_leaves_no_file(tmp_path):
    program = """
        import os, signal, sys
        import numpy as np
        import funcgrad.numpy as fnp
        from funcgrad import grad
        from funcgrad.scipy import integrate

        calls, ending = 0, sys.argv[2]

        def slope(t, y, k):
            global calls
            calls += 1
            if calls == 1000:
                if ending == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ZeroDivisionError("on the way")
            return -k * y

        options = {"rtol": 1e9, "atol": 1e9, "first_step": 0.01, "max_step": 0.01}
        run = lambda k: integrate.solve_ivp(
            slope, (0.0, 1.0), np.ones(20_000), t_eval=[1.0], args=(k,), store=sys.argv[1], **options
        )
        grad(lambda k: fnp.sum(run(k).y))(1.0)
    """
    for ending, code in (("killed", -signal.SIGKILL), ("error", 1)):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(tmp_path), ending], check=False, capture_output=True
        )
        assert done.returncode == code, done.stderr
        assert (b"on the way" in done.stderr) == (ending == "error")
        assert os.listdir(tmp_path) == []


def test_memory_does_not_grow_with_steps(tmp_path):
    """Check the memory for a state of 256 kB: 100 steps of seven stages would take 175 MB."""
    program = """
        import resource, sys
        import numpy as np
        import funcgrad.numpy as fnp
        from funcgrad import grad
        from funcgrad.scipy import integrate

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        calls = 0

        def slope(t, y, k):
            global calls
            calls += 1
            return -k * y

        x, steps = np.linspace(0.5, 1.0, 32768), int(sys.argv[2])
        options = {"rtol": 1e9, "atol": 1e9, "first_step": 1 / steps, "max_step": 1 / steps}
        run = lambda k, end: integrate.solve_ivp(
            slope, (0.0, end), x, t_eval=[end], args=(k,), budget=20, store=sys.argv[1], **options
        )
        grad(lambda k: fnp.sum(run(k, 3 / steps).y))(1.0)
        before, calls = peak(), 0
        found = grad(lambda k: fnp.sum(run(k, 1.0).y))(1.0)
        print(peak() - before, calls, found / (-np.exp(-1) * x.sum()))
    """
    found = []
    for steps in (30, 100):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(tmp_path), str(steps)],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append([float(x) for x in done.stdout.split()])
        assert found[-1][0] < 25  # MB
        np.testing.assert_allclose(found[-1][2], 1.0, rtol=1e-8)
    assert abs(found[1][0] - found[0][0]) < 10
