"""Systems of many fields and the classical stiff systems: SciPy's values, published values, gradients."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.experimental.ode
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from ode_systems import STIFF, SYSTEMS

import funcgrad.numpy as fnp
from funcgrad import grad, jvp
from funcgrad.optional import double_precision
from funcgrad.scipy import integrate

REFERENCES = json.loads((Path(__file__).parents[2] / "stiff_references.json").read_text())
MORE = {"rtol": 1e-9, "atol": 1e-10}
#: Earlier end times for systems that take long.
EARLY = {"robertson": 1e4, "van der pol 1e6": 0.5, "brusselator on 200 points": 0.5, "pleiades": 1.0}
EARLY |= {"orego": 3.0, "hires": 15.0, "e5": 1e2}


def solved(module, system, start, p, **options):
    return module.solve_ivp(system.fun, (0.0, system.end), start, system.method, args=(p,), **options)


def along_parameters(last, p, step):
    """Compute the derivative of ``last`` by the logarithm of each parameter, by differences: solves take long."""

    def slope(i):
        ends = [last(p * np.exp(sign * step * (np.arange(len(p)) == i))) for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step)

    return np.array([slope(i) for i in range(len(p))])


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_system_matches_scipy(system):
    start, p = np.array(system.start), np.array(system.parameters)
    want = solved(scipy.integrate, system, start, p)
    got = jvp(lambda p: (lambda found: (found.t, found.y))(solved(integrate, system, start, p)), (p,), (p,))[0]
    assert (got[0] == want.t).all()
    assert (got[1] == want.y).all()

    weights = np.linspace(1.0, 2.0, len(start))
    loss = lambda module: lambda start, p: fnp.sum(weights * solved(module, system, start, p, **MORE).y[:, -1])
    by_start, by_parameters = grad(loss(integrate), (0, 1))(start, p)
    measured = along_parameters(lambda p: loss(scipy.integrate)(start, p), p, 3e-4)
    size = np.abs(measured).max()
    np.testing.assert_allclose(by_parameters * p, measured, rtol=3e-5, atol=1e-5 * size)
    tangents = np.cos(np.arange(len(start))), np.sin(1.0 + np.arange(len(p))) * p
    pushed = jvp(loss(integrate), (start, p), tangents)[1]
    np.testing.assert_allclose(pushed, by_start @ tangents[0] + by_parameters @ tangents[1], rtol=1e-9)


@pytest.mark.parametrize("name", ["hunters", "pendulum", "kepler"])
def test_gradients_match_jax(name):
    system = next(s for s in SYSTEMS if s.name == name)
    start, p = np.array(system.start), np.array(system.parameters)
    got = grad(lambda y, p: fnp.sum(solved(integrate, system, y, p, **MORE).y[:, -1]), (0, 1))(start, p)

    def in_jax(y, p):
        flow = lambda y, t, p: jnp.stack(system.fun(t, y, p))
        return jnp.sum(
            jax.experimental.ode.odeint(flow, y, jnp.array([0.0, system.end]), p, rtol=1e-11, atol=1e-11)[-1]
        )

    with double_precision(jax):
        want = jax.grad(in_jax, (0, 1))(start, p)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("system", STIFF, ids=lambda s: s.name)
def test_stiff_system_matches_reference(system):
    start, p = np.array(system.start, float), np.array(system.parameters)
    found = solved(integrate, system, start, p, **system.options)
    want = solved(scipy.integrate, system, start, p, **system.options)
    assert (found.t == want.t).all()
    assert (found.y == want.y).all()
    # two methods agree at tolerances near the limit of doubles: see stiff_references.py
    first, second = (np.array(values[-1]) for values in REFERENCES[system.name].values())
    size = 1e-3 * np.abs(first).max() if system.name in ("pleiades", "brusselator on 200 points") else 0.0
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8 * size)
    np.testing.assert_allclose(found.y[:, -1], first, rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("system", [s for s in STIFF if s.published], ids=lambda s: s.name)
def test_references_match_published_test_set(system):
    first = next(iter(REFERENCES[system.name].values()))[-1]
    np.testing.assert_allclose(first, system.published, rtol=1e-7)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_e5_matches_published_values(method):
    """Check E5, whose second value is the sum of the third and fourth; at the end the fourth is zero.

    The published second and third values, computed with 19 digits, differ by a part in 700 at the end. Their mean has
    no first-order error from this difference, so the test compares the mean.
    """
    system = next(s for s in STIFF if s.name == "e5")
    start, p = np.array(system.start), np.array(system.parameters)
    published = np.array([0.1152903278711829e-290, 0.8867655517642120e-22, 0.8854814626268838e-22, 0.0])
    options = {"method": method, "args": (p,), "rtol": 1e-8, "atol": 1e-30}
    found = integrate.solve_ivp(system.fun, (0.0, 1e13), start, **options).y[:, -1]
    assert np.abs(found[[0, 3]]).max() < 1e-30
    np.testing.assert_allclose(found[1:3].mean(), published[1:3].mean(), rtol=2e-6)
    np.testing.assert_allclose(found[1:3], published[1:3], rtol=3e-3)


@pytest.mark.parametrize("system", STIFF, ids=lambda s: s.name)
def test_gradients_of_stiff_system(system):
    start, p = np.array(system.start, float), np.array(system.parameters)
    part = replace(system, end=EARLY[system.name])
    size = np.abs(solved(scipy.integrate, part, start, p, **system.options).y[:, -1])
    weights = 1.0 / (size + (0.0 if system.name == "e5" else 1e-3))
    last = lambda module: lambda p: fnp.sum(weights * solved(module, part, start, p, **system.options).y[:, -1])
    got = grad(last(integrate))(p) * p
    measured = along_parameters(last(scipy.integrate), p, 1e-3)
    np.testing.assert_allclose(got, measured, rtol=1e-3, atol=1e-4 * np.abs(measured).max())
    np.testing.assert_allclose(jvp(last(integrate), (p,), (p,))[1], got.sum(), rtol=1e-6)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("system", [s for s in STIFF if s.name != "pleiades"], ids=lambda s: s.name)
def test_exact_jacobians_save_evaluations_of_stiff_system(system, method):
    """Count every run of the right-hand side, also those for Jacobians, some of which SciPy's ``nfev`` leaves out."""
    start, p = np.array(system.start, float), np.array(system.parameters)
    counts, ends = [], []
    for module, options in ((scipy.integrate, {}), (integrate, {"jac": "exact"})):
        calls = []

        def counted(t, y, p, calls=calls):
            calls.append(t)
            return system.fun(t, y, p)

        part = replace(system, fun=counted, end=EARLY[system.name], method=method)
        ends.append(solved(module, part, start, p, **system.options, **options).y[:, -1])
        counts.append(len(calls))
    if method == "LSODA":  # LSODA steps by other rules if a Jacobian is given, and in part without the Jacobian
        assert counts[1] < 1.1 * counts[0]
    else:
        assert counts[1] < counts[0]
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-4, atol=1e-4 * np.abs(ends[0]).max() * (system.name != "e5"))


def test_methods_agree_on_gradient():
    system = next(s for s in STIFF if s.name == "robertson")
    start, p = np.array(system.start), np.array(system.parameters)
    last = lambda p, method: integrate.solve_ivp(
        system.fun, (0.0, 40.0), start, method, args=(p,), rtol=1e-9, atol=1e-13
    ).y[0, -1]
    found = [grad(last)(p, method) * p for method in ("Radau", "BDF", "LSODA")]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-5)
    times = np.array([0.0, 4.0, 40.0])
    options = {"tfirst": True, "rtol": 1e-10, "atol": 1e-13}
    by_odeint = grad(lambda p: integrate.odeint(system.fun, start, times, (p,), **options)[2, 0])
    np.testing.assert_allclose(by_odeint(p) * p, found[0], rtol=1e-5)


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_explicit_steps_of_a_solution_at_rest_give_a_warning(method):
    """SciPy's steps get as long as the interval, and the derivative along them explodes."""

    def end(u, **options):
        return integrate.solve_ivp(lambda t, y: [u - 9.0 * y[0]], (0.0, 3.0), [0.0], method, **options).y[0, -1]

    with pytest.warns(RuntimeWarning, match=r"times as long as the time 0\.11 in which the system reacts"):
        assert abs(grad(end)(0.0)) > 1e3
    with pytest.warns(RuntimeWarning, match="Pass max_step=0.1, or adjoint=True"):
        jvp(end, (0.0,), (1.0,))
    assert grad(end)(0.5) == pytest.approx(1 / 9, rel=1e-2)
    assert grad(lambda u: end(u, max_step=0.1))(0.0) == pytest.approx(1 / 9, rel=1e-3)
    assert grad(lambda u: end(u, adjoint=True))(0.0) == pytest.approx(1 / 9, rel=1e-2)
