"""Rows for integrals and differential equations."""

import numpy as np
import scipy.integrate

import funcgrad.numpy as fnp
from funcgrad.scipy import integrate
from operations.spec import Sample, array, op

NO_JAX = "JAX has no such function"
KNOTS = np.array([0.1, 0.5, 1.4, 1.7, 2.5, 3.1])
TIMES = np.array([0.0, 0.4])
#: Few intervals: double precision needs one, single precision never converges and would use ten thousand.
VECTORS = {"epsabs": 1e-13, "limit": 10}


def sampled(*shape, axis=-1, **kwargs):
    return Sample((array(*shape), KNOTS[: shape[axis]]), {"axis": axis, **kwargs}, ordered=True)


def integrand(x, k):
    return fnp.exp(-k * x) * x


def flow(y, t, k):
    return -k * y * y[::-1] + fnp.sin(t)


OPS = [
    op("scipy.integrate.trapezoid", sampled(2, 4)),
    op(
        "scipy.integrate.cumulative_trapezoid",
        sampled(4, 2, axis=0),
        Sample((array(4),), {"dx": 0.5, "initial": 0}),
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.simpson",
        sampled(5),
        sampled(2, 6),
        Sample((array(4, 2),), {"dx": 0.5, "axis": 0}),
        (array(2), KNOTS[:2]),
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.cumulative_simpson",
        sampled(5, initial=0.5),
        sampled(6, 2, axis=0),
        fun=lambda y, x, **kwargs: integrate.cumulative_simpson(y, x=x, **kwargs),
        numpy=lambda y, x, **kwargs: scipy.integrate.cumulative_simpson(y, x=x, **kwargs),
        jax=None,
        reason=NO_JAX,
    ),
    op("scipy.integrate.romb", (array(5), 0.5), jax=None, reason=NO_JAX),
    op(
        "scipy.integrate.fixed_quad",
        (0.3, 1.1, 0.7),
        fun=lambda a, b, k: integrate.fixed_quad(integrand, a, b, (k,), n=3)[0],
        numpy=lambda a, b, k: scipy.integrate.fixed_quad(lambda x: np.exp(-k * x) * x, a, b, n=3)[0],
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.quad",
        (0.3, 1.1, 0.7),
        fun=lambda a, b, k: integrate.quad(integrand, a, b, (k,))[0],
        numpy=lambda a, b, k: np.float64(scipy.integrate.quad(lambda x: np.exp(-float(k) * x) * x, a, b)[0]),
        jax=None,
        jit=False,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.quad_vec",
        (0.3, 1.1, array(2)),
        fun=lambda a, b, k: integrate.quad_vec(lambda x: integrand(x, k), a, b, **VECTORS)[0],
        numpy=lambda a, b, k: scipy.integrate.quad_vec(lambda x: np.exp(-k * x) * x, float(a), float(b), **VECTORS)[0],
        jax=None,
        jit=False,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.tanhsinh",
        (0.3, array(2, low=1.0, high=2.0), array(2)),
        fun=lambda a, b, k: integrate.tanhsinh(integrand, a, b, args=(k,)).integral,
        numpy=lambda a, b, k: scipy.integrate.tanhsinh(lambda x, k: np.exp(-k * x) * x, a, b, args=(k,)).integral,
        jax=None,
        jit=False,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.nsum",
        (array(2),),
        fun=lambda k: integrate.nsum(integrand, 1.0, 4.0, args=(k,)).sum,
        numpy=lambda k: scipy.integrate.nsum(lambda x, k: np.exp(-k * x) * x, 1.0, 4.0, args=(k,)).sum,
        jax=None,
        jit=False,
        reason=NO_JAX,
    ),
    op(
        "scipy.integrate.odeint",
        (array(2), TIMES, 0.7),
        fun=lambda y, t, k: integrate.odeint(flow, y, t, (k,), steps=1),
        numpy=None,
        jax=None,
        jit=False,
        portable=False,
        reason="JAX takes long to compile steps: test_scipy_integrate.py has it under jit",
    ),
    op(
        "scipy.integrate.solve_ivp",
        (array(2), 0.7),
        fun=lambda y, k: integrate.solve_ivp(lambda t, y: flow(y, t, k), (0.0, 0.3), y, t_eval=TIMES / 2, steps=1).y,
        numpy=None,
        jax=None,
        jit=False,
        portable=False,
        reason="JAX takes long to compile steps, and has no such function",
    ),
]
