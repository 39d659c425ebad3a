"""Integrals and differential equations: closed forms, SciPy's and JAX's results, both backward methods, errors."""

import jax
import jax.experimental.ode
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from helpers import differences

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConvergenceError, InputError, ShapeError, StagingError
from funcgrad.optional import double_precision
from funcgrad.scipy import integrate

TIMES = np.linspace(0.0, 2.0, 5)
START = np.array([1.0, 0.5])
TOL = 1e-10
ARGS = (1.1, np.array([0.9, 0.7]))


def hunters(y, t, a, b):
    return fnp.stack([a * y[0] - y[0] * y[1] * b[0], y[0] * y[1] - b[1] * y[1] + fnp.sin(t)])


def hunters_in_jax(y, t, a, b):
    return jnp.stack([a * y[0] - y[0] * y[1] * b[0], y[0] * y[1] - b[1] * y[1] + jnp.sin(t)])


def energy(y0, t, a, b, **options):
    return fnp.sum(integrate.odeint(hunters, y0, t, (a, b), **options) ** 2)


def test_odeint_matches_scipy():
    got = integrate.odeint(hunters, START, TIMES, ARGS)
    assert (got == scipy.integrate.odeint(hunters, START, TIMES, ARGS)).all()
    traced = vmap(lambda a: integrate.odeint(hunters, START, TIMES, (a, ARGS[1])))(np.array([1.1, 0.8]))
    assert (traced[0] == got).all()
    assert integrate.odeint(lambda y, t: -y, 1.0, [0, 1]).shape == (2, 1)
    backwards = integrate.odeint(lambda t, y: -y, 1.0, TIMES[::-1], tfirst=True)
    np.testing.assert_allclose(backwards[:, 0], np.exp(2 - TIMES[::-1]), rtol=1e-7)
    whole = integrate.odeint(lambda y, t: -y, np.ones((2, 3)), TIMES)
    np.testing.assert_allclose(whole, np.exp(-TIMES)[:, None, None] * np.ones((2, 3)), rtol=1e-7)


@pytest.mark.parametrize("adjoint", [False, True])
def test_odeint_of_a_linear_equation_to_second_order(adjoint):
    def last(k, t):
        return integrate.odeint(
            lambda y, t, k: -k * y, 2.0, fnp.stack([0.0, t]), (k,), rtol=TOL, atol=TOL, adjoint=adjoint
        )[1, 0]

    k, t = 0.7, 1.3
    want = 2 * np.exp(-k * t)
    np.testing.assert_allclose(grad(last, (0, 1))(k, t), [-t * want, -k * want], rtol=1e-6)
    np.testing.assert_allclose(jvp(last, (k, t), (1.0, 1.0))[1], -(k + t) * want, rtol=1e-6)
    np.testing.assert_allclose(hessian(last)(k, t), t * t * want, rtol=1e-6)
    np.testing.assert_allclose(grad(grad(last), 1)(k, t), (k * t - 1) * want, rtol=1e-6)
    np.testing.assert_allclose(grad(grad(grad(last)))(k, t), -(t**3) * want, rtol=1e-5)


@pytest.mark.parametrize("adjoint", [False, True])
def test_odeint_gradients_match_jax(adjoint):
    def in_jax(y0, t, a, b):
        return jnp.sum(jax.experimental.ode.odeint(hunters_in_jax, y0, t, a, b, rtol=1e-10, atol=1e-10) ** 2)

    with double_precision(jax):
        want = jax.grad(in_jax, (0, 1, 2, 3))(START, TIMES, *ARGS)
    got = grad(lambda *x: energy(*x, adjoint=adjoint), (0, 1, 2, 3))(START, TIMES, *ARGS)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-6, atol=1e-6)
    tangents = (np.ones(2), np.ones(5), 1.0, np.ones(2))
    pushed = jvp(lambda *x: energy(*x, adjoint=adjoint), (START, TIMES, *ARGS), tangents)[1]
    np.testing.assert_allclose(pushed, sum(np.sum(g) for g in want), rtol=1e-5)


def test_both_hessians_of_odeint_agree():
    steps, adjoint = (
        hessian(lambda b, way=way: energy(START, TIMES[:2], 1.1, b, adjoint=way))(ARGS[1]) for way in (False, True)
    )
    np.testing.assert_allclose(steps, adjoint, rtol=1e-6)


def test_odeint_with_fixed_steps_has_exact_derivative():
    check_grads(lambda *x: energy(*x, steps=2), (START, TIMES[:2], *ARGS), order=2)
    compiled = jax.jit(lambda a: energy(START, TIMES[:2], a, ARGS[1], steps=1))
    np.testing.assert_allclose(compiled(1.1), energy(START, TIMES[:2], *ARGS, steps=1), rtol=1e-12)


def test_odeint_in_vmap_and_with_closures():
    rates = np.array([0.2, 1.5])
    times = np.array([0.0, 1.0])

    def last(k, adjoint=False):
        return integrate.odeint(lambda y, t, k: -k * y, 1.0, times, (k,), adjoint=adjoint)[1, 0]

    for adjoint in (False, True):
        np.testing.assert_allclose(vmap(lambda k, way=adjoint: last(k, way))(rates), np.exp(-rates), rtol=1e-6)
        np.testing.assert_allclose(vmap(grad(lambda k, way=adjoint: last(k, way)))(rates), -np.exp(-rates), rtol=1e-6)

    def closed(k):
        return integrate.odeint(lambda y, t: -k * y, 1.0, times)[1, 0]

    np.testing.assert_allclose(grad(closed)(0.5), -np.exp(-0.5), rtol=1e-6)
    closed_adjoint = lambda k: integrate.odeint(lambda y, t: -k * y, 1.0, times, adjoint=True)[1, 0]
    np.testing.assert_allclose(grad(closed_adjoint)(0.5), -np.exp(-0.5), rtol=1e-6)


def test_odeint_adjoint_with_equal_steps():
    """Check the adjoint equation of steps that JAX can trace, in value, times and arguments, against the steps."""

    def cost(p, adjoint):
        oscillator = lambda y, t, a, b: fnp.stack([y[1], -a * y[0] - b * fnp.sin(t) * y[1]])
        times = fnp.concatenate([np.zeros(1), p[4:6]])
        ys = integrate.odeint(oscillator, p[:2], times, (p[2], p[3]), steps=10, adjoint=adjoint)
        return fnp.sum(ys * np.array([[0.3, 0.1], [0.5, -0.2], [1.0, 0.4]]))

    p, by_steps, by_adjoint = (
        np.array([1.0, 0.3, 2.0, 0.4, 0.5, 1.2]),
        lambda p: cost(p, False),
        lambda p: cost(p, True),
    )
    slope = grad(by_steps)(p)
    # the adjoint equation has its own discretization error, 2e-8 for these steps and 2e-11 for 40
    np.testing.assert_allclose(grad(by_adjoint)(p), slope, atol=1e-7)
    np.testing.assert_allclose(jacfwd(by_adjoint)(p), slope, rtol=1e-12)
    np.testing.assert_allclose(hessian(by_adjoint)(p), hessian(by_steps)(p), atol=1e-6)
    np.testing.assert_allclose(vmap(grad(by_adjoint))(np.stack([p, p])), np.stack([slope] * 2), atol=1e-7)
    np.testing.assert_allclose(jax.grad(by_adjoint)(jnp.asarray(p)), grad(by_adjoint)(p), rtol=1e-9)


def test_odeint_dtypes_and_errors():
    single = integrate.odeint(lambda y, t: -y, np.ones(2, np.float32), [0.0, 1.0], rtol=1e-4, atol=1e-4)
    assert single.dtype == np.float64  # as in SciPy
    turning = integrate.odeint(lambda y, t: 1j * y, 1.0 + 0j, TIMES)
    np.testing.assert_allclose(turning[:, 0], np.exp(1j * TIMES), rtol=1e-6)
    with pytest.raises(ShapeError, match="func must return an array like y"):
        grad(lambda y: fnp.sum(integrate.odeint(lambda y, t: fnp.sum(y), y, TIMES)))(START)
    with pytest.raises(ConvergenceError, match="too many or too small"), np.errstate(all="ignore"):
        grad(lambda y: integrate.odeint(lambda y, t: y * y, y, [0.0, 2.0])[1, 0])(1.0)
    with pytest.raises(InputError, match="full_output"):
        grad(lambda y: integrate.odeint(lambda y, t: y, y, [0.0, 1.0], full_output=1)[1, 0])(1.0)
    with pytest.raises(StagingError, match="unknown while JAX traces"):
        jax.jit(lambda y: integrate.odeint(lambda y, t: -y, y, jnp.arange(2.0)))(jnp.ones(2))
    with pytest.raises(InputError, match="adjoint=True is for real values"):
        integrate.odeint(lambda y, t: y, 1j, [0.0, 1.0], adjoint=True)
    with pytest.raises(ShapeError, match="vector of times"):
        integrate.odeint(lambda y, t: y, 1.0, 1.0)


def test_solve_ivp():
    def decay(t, y, k):
        return -k * y

    found = integrate.solve_ivp(decay, (0.0, 1.0), [1.0, 2.0], args=(0.5,), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.y, np.exp(-0.5 * found.t) * np.array([[1.0], [2.0]]), rtol=1e-7)
    assert found.success
    assert found.t[-1] == 1.0

    def last(k):
        return integrate.solve_ivp(decay, (0.0, 1.0), [1.0], t_eval=[0.5, 1.0], args=(k,), rtol=1e-9, atol=1e-9).y[
            0, -1
        ]

    np.testing.assert_allclose([grad(last)(0.5), jacfwd(jacrev(last))(0.5)], [-np.exp(-0.5), np.exp(-0.5)], rtol=1e-7)


def test_quad_of_parameters_and_limits():
    def gaussian(a, b, k):
        return integrate.quad(lambda x, k: fnp.exp(-k[0] * x * x) * k[1], a, b, (k,))[0]

    k = np.array([2.0, 3.0])
    check_grads(gaussian, (0.3, 1.1, k), order=2)
    np.testing.assert_allclose(gaussian(-np.inf, np.inf, k), 3 * np.sqrt(np.pi / 2), rtol=1e-9)
    want = -1.5 * np.sqrt(np.pi) * 2**-1.5
    np.testing.assert_allclose(grad(lambda c: gaussian(-np.inf, np.inf, fnp.stack([c, 3.0])))(2.0), want, rtol=1e-9)
    np.testing.assert_allclose(vmap(lambda b: gaussian(0.0, b, k))(np.array([0.5, 1.0]))[0], gaussian(0.0, 0.5, k))
    mixed = jacrev(jacrev(gaussian, 2), 2)(0.3, 1.1, k)
    np.testing.assert_allclose(mixed, jacfwd(jacfwd(gaussian, 2), 2)(0.3, 1.1, k), rtol=1e-9, atol=1e-12)


def test_quad_of_plain_values_and_lost_derivatives():
    def ramp(x):
        return x

    assert integrate.quad(ramp, 0, 2) == scipy.integrate.quad(ramp, 0, 2)
    assert len(integrate.quad(ramp, 0, 2, full_output=1)) == 3
    broken = grad(lambda k: integrate.quad(lambda x, k: k * abs(x - 0.3), 0.0, 1.0, (k,), points=[0.3])[0])(2.0)
    np.testing.assert_allclose(broken, 0.29, rtol=1e-9)
    with pytest.raises(InputError, match="powers of weight"):
        grad(lambda k: integrate.quad(ramp, 0.0, 1.0, weight="alg", wvar=(k, 0.5))[0])(0.5)


WEIGHTED = {
    "frequency": lambda p: integrate.quad(lambda x: np.exp(-p[0] * x), 0.1 * p[1], 2.0, weight="cos", wvar=3 * p[1])[0],
    "frequency of a long wave": lambda p: integrate.quad(
        lambda x: np.exp(-p[0] * x), 0.0, np.inf, weight="sin", wvar=3 * p[1]
    )[0],
    "pole": lambda p: integrate.quad(lambda x: np.exp(-p[0] * x), p[1] - 0.5, 2.0, weight="cauchy", wvar=p[1])[0],
    **{
        weight: lambda p, weight=weight: integrate.quad(
            lambda x: np.exp(-p[0] * x), 0.1 * p[0], 3 * p[1], weight=weight, wvar=(-0.3, 0.4)
        )[0]
        for weight in ("alg", "alg-loga", "alg-logb", "alg-log")
    },
    "a jump": lambda p: integrate.quad(lambda x: np.where(x < p[0], 1.0 + x * p[1], 3.0), 0.0, 1.0, points=[p[0]])[0],
    "complex": lambda p: np.abs(integrate.quad(lambda x: np.exp(1j * x * p[0]), 0.0, p[1], complex_func=True)[0]),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_quad_with_traced_weight_or_points(name):
    fun, p = WEIGHTED[name], np.array([0.4, 0.7])
    slopes = grad(fun)(p)
    np.testing.assert_allclose(slopes, differences(fun, p), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jacfwd(fun)(p), slopes, rtol=1e-8)
    np.testing.assert_allclose(jacfwd(grad(fun))(p), differences(grad(fun), p, 1e-3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["frequency", "frequency of a long wave", "pole"])
def test_quad_with_weights_that_differ_between_examples(name):
    fun, p = WEIGHTED[name], np.array([[0.4, 0.7], [0.5, 0.6]])
    np.testing.assert_allclose(vmap(fun)(p), [fun(p[0]), fun(p[1])], rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(fun))(p), [grad(fun)(p[0]), grad(fun)(p[1])], rtol=1e-9)
    np.testing.assert_allclose(grad(lambda p: fnp.sum(vmap(fun)(p)))(p), vmap(grad(fun))(p), rtol=1e-9)


def test_quad_full_output_matches_scipy():
    def told(k):
        value, _, info = integrate.quad(lambda x: np.exp(-k * x), 0.0, 1.0, full_output=1)
        return value * info["neval"]

    np.testing.assert_allclose(grad(told)(2.0), 21 * (3 * np.exp(-2) - 1) / 4, rtol=1e-9)


def test_quad_with_closure_over_traced_values():
    def tail(k):
        return integrate.quad(lambda x: x * np.exp(-k * x), 0.0, np.inf)[0]

    np.testing.assert_allclose([grad(tail)(2.0), grad(grad(tail))(2.0)], [-1 / 4, 3 / 8], rtol=1e-9)
    np.testing.assert_allclose(jvp(tail, (2.0,), (1.0,))[1], -1 / 4, rtol=1e-9)
    np.testing.assert_allclose(vmap(grad(tail))(np.array([1.0, 2.0])), [-2.0, -1 / 4], rtol=1e-9)
    both = lambda k: integrate.quad(lambda x, c: np.exp(k) * c * x, -k, k**2, (k,))[0]
    want = lambda k: np.exp(k) * k * (k**4 - k**2) / 2
    np.testing.assert_allclose([grad(both)(1.2), grad(grad(both))(1.2)], [grad(want)(1.2), grad(grad(want))(1.2)])
    nested = lambda k: integrate.quad(lambda x: integrate.quad(lambda y: k * x * y, 0.0, x)[0], 0.0, 1.0)[0]
    np.testing.assert_allclose(grad(nested)(3.0), 1 / 8)
    for low, high in ((-np.inf, 1.0), (-np.inf, np.inf)):
        bell = lambda k, low=low, high=high: integrate.quad(lambda x: np.exp(-k * x * x), low, high)[0]
        measured = (bell(2.0 + 1e-5) - bell(2.0 - 1e-5)) / 2e-5
        np.testing.assert_allclose(grad(bell)(2.0), measured, rtol=1e-6)
    above = lambda k: integrate.quad(lambda x: k * x if x > 0.5 else 0.0, 0.0, 1.0)[0]
    np.testing.assert_allclose(grad(above)(2.0), 3 / 8)


def test_invalid_fixed_quad_and_sample_rules_raise():
    with pytest.raises(ValueError, match="finite limits"):
        integrate.fixed_quad(np.sin, 0.0, np.inf)
    with pytest.raises(ValueError, match="one plus a non-negative power of 2"):
        grad(lambda y: integrate.romb(y))(np.ones(4))
    with pytest.raises(ValueError, match="`initial` must be `None` or `0`"):
        grad(lambda y: integrate.cumulative_trapezoid(y, initial=1.0)[0])(np.ones(4))
    with pytest.raises(ValueError, match="length of x along axis must be the same as y"):
        grad(lambda y: integrate.simpson(y, np.arange(3.0)))(np.ones(4))
    np.testing.assert_allclose(grad(integrate.simpson)(np.ones(1)), [0.0])
    for n in (1, 2):
        traced = vmap(lambda y: integrate.cumulative_simpson(y, initial=0.0))(np.ones((1, n)))[0]
        np.testing.assert_allclose(traced, scipy.integrate.cumulative_simpson(np.ones(n), initial=0.0))


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("steps", [None, 2])
def test_odeint_at_one_time_is_the_first_value(steps, adjoint):
    fun = lambda y, t, k: integrate.odeint(lambda y, t, k: -k * y, y, t, (k,), steps=steps, adjoint=adjoint)
    start, time = np.array([1.0, 2.0]), np.array([0.5])
    value, pullback = vjp(fun, start, time, 2.0)
    np.testing.assert_array_equal(value, [start])
    of_start, of_time, of_rate = pullback(np.array([[3.0, 4.0]]))
    np.testing.assert_array_equal(of_start, [3.0, 4.0])
    assert of_time == 0
    assert of_rate == 0
    np.testing.assert_array_equal(jvp(fun, (start, time, 2.0), (start, time, 1.0))[1], [start])


#: A short pulse, which steps of 0.1 do not resolve, and the logarithm of the factor by which it changes the solution.
PULSE, FACTOR = (lambda y, t, k: k * 40.0 * np.exp(-(((t - 3.0) * 40.0) ** 2)) * y), np.sqrt(np.pi)


@pytest.mark.parametrize("start", [1.0, 1.0 + 0.5j], ids=["JAX", "complex"])
def test_portable_steps_are_repeated_shorter(start):
    def fun(k, **options):
        y = np.array([start]) if isinstance(start, complex) else jnp.array([start])
        return integrate.odeint(pulse, y, np.array([0.0, 6.0]), (k,), hmax=0.1, rtol=1e-6, atol=1e-6, **options)[-1, 0]

    pulse = PULSE
    want = start * np.exp(1.3 * FACTOR)
    np.testing.assert_allclose(fun(1.3), want, rtol=1e-4)
    np.testing.assert_allclose(grad(lambda k: fun(k).real)(1.3), FACTOR * want.real, rtol=1e-4)


@pytest.mark.parametrize(
    ("slope", "options"),
    [
        (lambda y, t: y * y, {}),
        (lambda y, t: np.nan * y, {}),
        (lambda y, t: 1j * y, {"mxstep": 3}),
        (lambda y, t: PULSE(y, t + 2.0, 1.0), {"mxstep": 25, "hmax": 0.1}),
    ],
    ids=["a pole", "NaN", "few steps", "few repeated steps"],
)
def test_portable_steps_give_up(slope, options):
    with pytest.raises(ConvergenceError, match="the steps are too many or too small"):
        integrate.odeint(slope, np.array([1.0 + 0.0j]), np.array([0.0, 20.0]), **options)


def test_shapes_of_portable_slopes():
    with pytest.raises(ShapeError, match=r"func must return an array like y, got complex128\[3\], expected \[1\]"):
        integrate.odeint(lambda y, t: np.ones(3) + 0j, np.array([1.0 + 0j]), np.array([0.0, 2.0]))


@pytest.mark.parametrize("tfirst", [False, True])
def test_odeint_with_jacobian(tfirst):
    def fun(k, by_args):
        slope, jacobian = (lambda t, y, q: -q * y), (lambda t, y, q: -q * np.eye(2))
        turned = lambda f: f if tfirst else lambda y, t, q: f(t, y, q)
        closing = lambda f: (lambda t, y: f(t, y, k)) if tfirst else lambda y, t: f(t, y, k)
        two = [turned(f) if by_args else closing(f) for f in (slope, jacobian)]
        options = {"args": (k,)} if by_args else {}
        return scipy.integrate.odeint(two[0], [1.0, 2.0], [0.0, 0.5, 1.0], Dfun=two[1], tfirst=tfirst, **options)[-1]

    for by_args in (False, True):
        value, slope = jvp(lambda k: fun(k, by_args), (1.5,), (1.0,))  # noqa: B023
        np.testing.assert_array_equal(value, fun(1.5, by_args))
        np.testing.assert_allclose(slope, [-np.exp(-1.5), -2 * np.exp(-1.5)], rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_first_values_of_running_integrals(axis):
    y = np.random.default_rng(0).normal(size=(3, 5, 4))
    first = np.take(y, [0], axis) + 1.0
    fun = lambda y, first: scipy.integrate.cumulative_simpson(y, dx=0.3, axis=axis, initial=first)
    np.testing.assert_allclose(vjp(fun, y, first)[0], fun(y, first), rtol=1e-13)
    check_grads(fun, (y, first), order=1)
    with pytest.raises(ShapeError, match="x must be as long as y"):
        grad(lambda x: scipy.integrate.cumulative_simpson(np.ones(4), x=x).sum())(np.arange(3.0))
