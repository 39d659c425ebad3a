"""Every method with every kind of state and option: all derivatives are those of the closed form."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jit, jvp, vmap
from funcgrad.scipy import integrate

EXPLICIT = ["RK23", "RK45", "DOP853"]
METHODS = [*EXPLICIT, "Radau", "BDF", "LSODA"]
IMPLICIT = METHODS[3:]
START = np.array([1.0, -0.4, 0.7])
WEIGHTS = np.array([1.0, 2.0, -1.5])
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
#: Start, rate, first and last time, and a time in between.
POINT = (START, 0.8, 0.1, 1.2, 0.6)
OPTIONS = {
    "nothing": (METHODS, {}),
    "max_step": (METHODS, {"max_step": 0.2}),
    "first_step": (METHODS, {"first_step": 1e-3}),
    "vectorized": (METHODS, {"vectorized": True}),
    "jac": (IMPLICIT, {"jac": lambda t, y, k: np.diag([-k, -k, -k])}),
    "constant jac": (IMPLICIT[:2], {"jac": -0.8 * np.eye(3)}),
    "exact jac": (IMPLICIT, {"jac": "exact"}),
    "jac_sparsity": (IMPLICIT[:2], {"jac_sparsity": scipy.sparse.eye_array(3)}),
    "exact jac and jac_sparsity": (IMPLICIT[:2], {"jac": "exact", "jac_sparsity": scipy.sparse.eye_array(3)}),
    "adjoint": (METHODS[1:], {"adjoint": True}),
}


def turning(t, z, k):
    """Return the slope of complex states."""
    return (1j * k - 0.3) * z


def decaying(t, y, k):
    return -k * y


def of_each(t, y, k):
    """Return the slope of trees."""
    return {"a": -k * y["a"], "b": (-k * y["b"][0],)}


def number(y):
    """Return a number made of the states at one time."""
    return fnp.sum(WEIGHTS * fnp.real(y)) + 0.5 * fnp.sum(WEIGHTS * fnp.imag(y)) if fnp.iscomplexobj(y) else WEIGHTS @ y


def columns(found, is_tree):
    y = found.y
    return fnp.concatenate([y["a"], fnp.reshape(y["b"][0], (1, -1))]) if is_tree else y


def solved(start, k, t0, t1, t, method, kind, dense, **options):
    """Return a number that depends on the state at the end, on the state at ``t``, and on both times."""
    flow, first = {
        "array": (decaying, start),
        "complex": (turning, start * (1.0 + 0.5j)),
        "tree": (of_each, {"a": start[:2], "b": (start[2],)}),
    }[kind]
    within = {"t_eval": fnp.stack([t1]), "dense_output": True} if dense else {"t_eval": fnp.stack([t, t1])}
    found = integrate.solve_ivp(flow, (t0, t1), first, method, args=(k,), **within, **TIGHT, **options)
    y = columns(found, kind == "tree")
    if dense:
        between = found.sol(t)
        between = fnp.concatenate([between["a"], fnp.reshape(between["b"][0], (1,))]) if kind == "tree" else between
    else:
        between = y[:, 0]
    return number(between) ** 2 + number(y[:, -1]) * found.t[-1]


def exact(start, k, t0, t1, t, kind):
    rate, first = (1j * k - 0.3, start * (1.0 + 0.5j)) if kind == "complex" else (-k, start)
    at = lambda t: number(first * fnp.exp(rate * (t - t0)))
    return at(t) ** 2 + at(t1) * t1


def check(value, want, rtol=2e-6):
    """Check values, gradients in all arguments in both modes, second derivatives, and batches."""
    places, tangents = tuple(range(len(POINT))), (np.array([0.3, 0.2, 0.1]), 0.5, -0.1, 0.2, 0.15)
    close = lambda got, right, more=1.0: np.testing.assert_allclose(got, right, rtol=more * rtol, atol=more * rtol)
    close(value(*POINT), want(*POINT))
    for got, right in zip(grad(value, places)(*POINT), grad(want, places)(*POINT), strict=True):
        close(got, right)
    close(jvp(value, POINT, tangents)[1], jvp(want, POINT, tangents)[1])
    bends = jvp(grad(value, places), POINT, tangents)[1]
    for got, right in zip(bends, jvp(grad(want, places), POINT, tangents)[1], strict=True):
        close(got, right, 10.0)
    close(hessian(value, 1)(*POINT), hessian(want, 1)(*POINT), 10.0)
    rates = np.array([0.8, 1.1])
    in_rate = lambda f: lambda k: grad(f, places)(POINT[0], k, *POINT[2:])
    for got, right in zip(vmap(in_rate(value))(rates), vmap(in_rate(want))(rates), strict=True):
        close(got, right)


@pytest.mark.parametrize("dense", [False, True], ids=["t_eval", "dense_output"])
@pytest.mark.parametrize("kind", ["array", "complex", "tree"])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_state(method, kind, dense):
    if method in ("Radau", "LSODA") and kind == "complex":
        for module in (integrate, scipy.integrate):
            with pytest.raises(ValueError, match="complex"):
                module.solve_ivp(turning, (0.0, 1.0), START + 0j, method, args=(0.8,))
        return
    check(
        lambda *args: solved(*args, method, kind, dense),
        lambda *args: exact(*args, kind),
    )


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, (methods, _) in OPTIONS.items() for method in methods]
)
def test_every_option(name, method):
    options = OPTIONS[name][1]
    check(
        lambda *args: solved(*args, method, "array", False, **options),
        lambda *args: exact(*args, "array"),
        1e-5 if name == "adjoint" else 2e-6,
    )


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize("method", EXPLICIT)
def test_jit_of_equal_steps(method, backend):
    """Check that compiled values and derivatives of both backends are those of the same steps run eagerly."""

    def flow(t, y, k):
        return fnp.stack([k * y[1], fnp.sin(t) - y[0]])

    def loss(y0, k, times):
        found = integrate.solve_ivp(flow, (0.0, times[-1]), y0, method, times, args=(k,), steps=2)
        return fnp.sum(found.y**2) + found.y[0, -1]

    places = (0, 1, 2)
    given = (START[:2], 0.7, np.array([0.4, 1.5])), (1.3 * START[:2], 0.9, np.array([0.5, 1.2]))
    value, slopes = (jit(f, backend=backend) for f in (loss, grad(loss, places)))
    for args in given:  # a second call runs the code that the first has compiled
        np.testing.assert_allclose(value(*args), loss(*args), rtol=1e-13)
        for got, want in zip(slopes(*args), grad(loss, places)(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    y0, k, times = given[0]
    step = 1e-5
    ends = [loss(y0, k + sign * step, times) for sign in (1, -1)]
    np.testing.assert_allclose(slopes(*given[0])[1], (ends[0] - ends[1]) / (2 * step), rtol=1e-8)
    if backend == "numpy":
        bend = jit(hessian(loss, 1), backend=backend)(y0, k, times)
        np.testing.assert_allclose(bend, hessian(loss, 1)(y0, k, times), rtol=1e-12)
        rates = np.array([0.7, 0.9])
        several = jit(vmap(grad(loss, 1), (None, 0, None)), backend=backend)(y0, rates, times)
        np.testing.assert_allclose(several, [grad(loss, 1)(y0, rate, times) for rate in rates], rtol=1e-12)


SETTINGS = {
    "rtol": lambda s: {"rtol": 1e-9 * s, "atol": 1e-11},
    "atol": lambda s: {"rtol": 1e-9, "atol": [1e-11 * s, 1e-11]},
    "max_step": lambda s: {**TIGHT, "max_step": 0.1 * s},
    "first_step": lambda s: {**TIGHT, "first_step": 0.01 * s},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("method", ["RK45", "LSODA"])
def test_traced_settings_are_constants(name, method):
    """SciPy's compiled solvers read them without asking whether they are numbers."""

    def f(s):
        options = SETTINGS[name](s)
        return scipy.integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0.0, 1.0), [1.0, s], method, **options).y[0, -1]

    assert grad(f)(1.5) == pytest.approx(np.sin(1.0), rel=1e-7)
    assert jvp(f, (1.5,), (1.0,))[1] == pytest.approx(np.sin(1.0), rel=1e-7)
    assert vmap(f)(np.array([1.5, 1.5]))[0] == f(1.5)
    assert vmap(grad(f))(np.array([1.5, 1.5]))[0] == pytest.approx(np.sin(1.0), rel=1e-7)


def test_traced_settings_of_odeint_are_constants():
    def f(s):
        options = {"rtol": 1e-9 * s, "atol": 1e-9 * s, "hmax": s, "h0": 0.01 * s}
        return scipy.integrate.odeint(lambda y, t: [y[1], -y[0]], [1.0, s], [0.0, 1.0], **options)[-1, 0]

    assert grad(f)(1.5) == pytest.approx(np.sin(1.0), rel=1e-7)
