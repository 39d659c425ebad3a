"""Convolution, interpolation, Bessel functions, windows, differences and phases: kinks, edges and refusals.

The tests compare with JAX where JAX has the function.
"""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close
from operations.spec import array

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.primitives import signals

same = partial(close, rtol=1e-13, atol=1e-14)

NAN = float("nan")
MODES = ("full", "same", "valid")


def value_and_jacobians(fun, *args):
    """Return the value on traced arguments and the Jacobians in reverse mode; check them against forward mode."""
    argnums = tuple(range(len(args)))
    backward, forward = jacrev(fun, argnums)(*args), jacfwd(fun, argnums)(*args)
    for b, f in zip(backward, forward, strict=True):
        same(b, f)
    return vjp(fun, *args)[0], backward


# ---- convolution -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolve_every_pair_of_lengths(name, mode):
    """The Jacobian in one argument is the function applied to the other argument and the unit vectors."""
    numpys, ours = getattr(np, name), getattr(fnp, name)
    for n, m in itertools.product(range(1, 6), repeat=2):
        a, v = array(n), array(m, seed=1)
        value, (in_a, in_v) = value_and_jacobians(lambda a, v: ours(a, v, mode), a, v)
        same(value, numpys(a, v, mode))
        same(in_a, np.stack([numpys(e, v, mode) for e in np.eye(n)], -1))
        same(in_v, np.stack([numpys(a, e, mode) for e in np.eye(m)], -1))


@pytest.mark.parametrize("mode", MODES)
def test_convolve_every_pair_of_lengths_complex(mode):
    """Correlation conjugates its second argument; the pullback is the transpose without conjugation."""
    for n, m in itertools.product(range(1, 5), repeat=2):
        a, v = array(n, kind="complex"), array(m, seed=1, kind="complex")
        out, pullback = vjp(lambda a, v: fnp.correlate(a, v, mode), a, v)
        same(out, np.correlate(a, v, mode))
        ct = array(out.size, seed=2, kind="complex")
        in_a, in_v = pullback(ct)
        same(in_a, [np.sum(ct * np.correlate(e, v, mode)) for e in np.eye(n)])
        same(in_v, [np.conj(np.sum(ct * np.correlate(a, e, mode))) for e in np.eye(m)])


@pytest.mark.parametrize("lengths", [(7, 3), (3, 7), (90, 60)])
@pytest.mark.parametrize("mode", MODES)
def test_convolve_under_vmap(mode, lengths):
    """Short and long convolutions use different algorithms."""
    n, m = lengths
    a, v = array(3, n), array(2, m, seed=1)
    want = [[np.convolve(x, y, mode) for y in v] for x in a]
    got = vmap(lambda x: vmap(lambda y: fnp.convolve(x, y, mode))(v))(a)
    same(got, want, rtol=1e-12)
    total = lambda a, v: fnp.sum(vmap(lambda x: vmap(lambda y: fnp.convolve(x, y, mode))(v))(a) ** 2)
    loop = lambda a, v: sum(fnp.sum(fnp.convolve(x, y, mode) ** 2) for x in a for y in v)
    for got, want in zip(grad(total, (0, 1))(a, v), grad(loop, (0, 1))(a, v), strict=True):
        same(got, want, rtol=1e-12)


def test_convolve_mode_as_number():
    a, v = array(4), array(3)
    for number, mode in enumerate(("valid", "same", "full")):
        same(vjp(lambda a, n=number: fnp.convolve(a, v, n), a)[0], np.convolve(a, v, mode))


REFUSED = [
    ("convolve-empty", lambda xp, a: xp.convolve(a, a[:0]), ValueError, "v cannot be empty"),
    ("convolve-matrix", lambda xp, a: xp.convolve(a[None], a), ValueError, "too deep|one axis"),
    ("convolve-mode", lambda xp, a: xp.convolve(a, a, "no"), ValueError, "'valid', 'same', or 'full'"),
    ("correlate-empty", lambda xp, a: xp.correlate(a[:0], a), ValueError, "first array argument cannot be empty"),
    ("correlate-number", lambda xp, a: xp.correlate(a[0], a), ValueError, "too small depth|one axis"),
    ("interp-matrix", lambda xp, a: xp.interp(a, a[None], a[None]), ValueError, "1-D|too deep"),
    (
        "interp-complex",
        lambda xp, a: xp.interp(1j * a, a, a),
        TypeError,
        "Cannot cast|are real numbers",
    ),
    (
        "interp-complex-knots",
        lambda xp, a: xp.interp(a, 1j * a, a),
        TypeError,
        "Cannot cast|are real numbers",
    ),
    ("interp-lengths", lambda xp, a: xp.interp(a, a, a[1:]), ValueError, "not of the same length"),
    ("interp-empty", lambda xp, a: xp.interp(a, a[:0], a[:0]), ValueError, "sample points is empty"),
    ("interp-period", lambda xp, a: xp.interp(a, a, a, period=0), ValueError, "period must be a non-zero"),
    ("i0-complex", lambda xp, a: xp.i0(a * 1j), TypeError, "complex"),
    ("kaiser-several", lambda xp, a: xp.kaiser(4, a), ValueError, "sequence|number"),
    ("diff-number", lambda xp, a: xp.diff(a[0]), ValueError, "at least one dim"),
    ("diff-order", lambda xp, a: xp.diff(a, -1), ValueError, "non-negative"),
    ("diff-axis", lambda xp, a: xp.diff(a, axis=1), np.exceptions.AxisError, "out of bounds"),
    ("ediff1d-complex", lambda xp, a: xp.ediff1d(a, to_end=1j), TypeError, "to_end"),
    ("gradient-few", lambda xp, a: xp.gradient(a[:2], edge_order=2), ValueError, "too small"),
    ("gradient-order", lambda xp, a: xp.gradient(a, edge_order=3), ValueError, "greater than 2"),
    ("gradient-many", lambda xp, a: xp.gradient(a, 1.0, 2.0), TypeError, "invalid number"),
    ("gradient-length", lambda xp, a: xp.gradient(a, a[1:]), ValueError, "must match the length"),
    ("gradient-matrix", lambda xp, a: xp.gradient(a, a[None]), ValueError, "either scalars or 1d"),
    ("gradient-axis", lambda xp, a: xp.gradient(a[None], axis=(0, 0)), ValueError, "repeated|duplicate"),
    ("trapezoid-axis", lambda xp, a: xp.trapezoid(a, axis=1), (ValueError, IndexError), "out of"),
    ("unwrap-complex", lambda xp, a: xp.unwrap(a * 1j), TypeError, "remainder|complex"),
    ("unwrap-number", lambda xp, a: xp.unwrap(a[0]), ValueError, "axis|dimension"),
]


@pytest.mark.parametrize(("call", "error", "match"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_invalid_calls_raise_as_numpy(call, error, match):
    a = array(4)
    with pytest.raises(error, match=match):
        call(np, a)
    with pytest.raises(error, match=match):
        vjp(lambda a: call(fnp, a), a)


# ---- interpolation -----------------------------------------------------------------------------------------

KNOTS, HEIGHTS = np.array([0.0, 1.0, 2.0]), np.array([0.0, 10.0, 30.0])


def check_interp(x, slope, knots, heights, xp=KNOTS, fp=HEIGHTS):
    """Check the derivatives at a point in reverse and forward mode, here and in JAX."""
    wanted = (slope, knots, heights)
    for interp, gradient, push in ((fnp.interp, grad, jvp), (jnp.interp, jax.grad, jax.jvp)):
        for i, (got, want) in enumerate(zip(gradient(interp, (0, 1, 2))(x, xp, fp), wanted, strict=True)):
            same(got, want)
            args = (x, xp, fp)
            t = np.ones(np.shape(args[i])) * 2.0
            one = lambda a, i=i, args=args, interp=interp: interp(*args[:i], a, *args[i + 1 :])
            same(push(one, (args[i],), (t,))[1], np.sum(np.multiply(want, 2.0)))


@pytest.mark.parametrize(
    ("x", "slope", "knots", "heights"),
    [
        (0.5, 10.0, [-5.0, -5.0, 0.0], [0.5, 0.5, 0.0]),
        (0.0, 10.0, [-10.0, 0.0, 0.0], [1.0, 0.0, 0.0]),  # the first knot: the slope to the right
        (1.0, 20.0, [0.0, -20.0, 0.0], [0.0, 1.0, 0.0]),  # a knot: the slope to the right
        (2.0, 20.0, [0.0, 0.0, -20.0], [0.0, 0.0, 1.0]),  # the last knot: the slope to the left
        (-1.0, 0.0, [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        (3.0, 0.0, [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
        (NAN, 20.0, [0.0, NAN, NAN], [0.0, NAN, NAN]),
    ],
)
def test_interp_at_knots_and_outside(x, slope, knots, heights):
    check_interp(x, slope, knots, heights)


def test_interp_at_a_jump():
    """Value and derivative use the later knot where two knots coincide."""
    xp, fp = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 10.0, 20.0, 40.0])
    check_interp(1.0, 20.0, [0.0, 0.0, -20.0, 0.0], [0.0, 0.0, 1.0, 0.0], xp, fp)


def test_interp_at_coinciding_last_knots():
    """NumPy returns the value of the last knot, JAX that of the one before."""
    xp, fp = np.array([0.0, 1.0, 1.0]), np.array([0.0, 10.0, 20.0])
    assert np.interp(1.0, xp, fp) == 20.0
    slope, knots, heights = grad(fnp.interp, (0, 1, 2))(1.0, xp, fp)
    assert (slope, knots.tolist(), heights.tolist()) == (0.0, [0, 0, 0], [0, 0, 1])


def test_interp_of_one_knot():
    for x in (-1.0, 0.0, 1.0):
        check_interp(x, 0.0, [0.0], [1.0], np.array([0.0]), np.array([5.0]))


@pytest.mark.parametrize(("x", "to_left", "to_right"), [(-1.0, 1.0, 0.0), (0.0, 0, 0), (2.0, 0, 0), (3.0, 0.0, 1.0)])
def test_interp_left_and_right(x, to_left, to_right):
    for interp, gradient in ((fnp.interp, grad), (jnp.interp, jax.grad)):
        got = gradient(lambda left, right, fp, interp=interp: interp(x, KNOTS, fp, left, right), (0, 1, 2))(
            5.0, 7.0, HEIGHTS
        )
        same(got[0], to_left)
        same(got[1], to_right)
        same(np.sum(got[2]), 1.0 - to_left - to_right)
    assert jvp(lambda left: fnp.interp(x, KNOTS, HEIGHTS, left), (5.0,), (1.0,))[1] == to_left


def test_interp_with_a_period():
    """Knots may have any order, and the period gets a derivative too."""
    args = (np.array([-0.7, 0.45, 2.9]), np.array([2.75, 0.1, -0.2, 1.4]), array(4), 2.5)
    argnums = (0, 1, 2, 3)
    periodic = lambda interp: lambda x, xp, fp, period: interp(x, xp, fp, period=period)
    theirs = jax.jit(jax.jacrev(periodic(jnp.interp), argnums))(*args)
    for jacobian in (jacrev, jacfwd):
        for got, want in zip(jacobian(periodic(fnp.interp), argnums)(*args), theirs, strict=True):
            same(got, want, rtol=1e-11)
    check_grads(periodic(fnp.interp), args, order=2)
    x, xp, fp, period = args
    shuffled = np.stack([xp, xp[::-1], xp + 0.2])
    want = [np.interp(x, knots, fp, period=period) for knots in shuffled]
    same(vmap(periodic(fnp.interp), (None, 0, None, None))(x, shuffled, fp, period), want)


def test_interp_under_jax_derivatives():
    args = (jnp.array([0.3, 1.0, 2.0, 2.5]), jnp.array(KNOTS), jnp.array(HEIGHTS))
    for got, want in zip(
        jax.grad(lambda *a: fnp.sum(fnp.interp(*a) ** 2), (0, 1, 2))(*args),
        grad(lambda *a: fnp.sum(fnp.interp(*a) ** 2), (0, 1, 2))(*map(np.asarray, args)),
        strict=True,
    ):
        same(got, want)


def test_interp_second_order():
    args = (np.array([0.3, 1.2, 1.9]), KNOTS, HEIGHTS)
    check_grads(fnp.interp, args, order=2)


def test_interp_of_batched_knots():
    """Check ``vmap(grad)`` and ``grad(vmap)``."""
    x, xp, fp = array(2, 5), np.sort(array(3, 4, seed=1)), array(3, 4, seed=2)
    one = lambda x, xp, fp: fnp.sum(fnp.interp(x, xp, fp) ** 2)
    many = lambda x, xp, fp: vmap(lambda x: vmap(one, (None, 0, 0))(x, xp, fp))(x)
    want = [[np.sum(np.interp(a, b, c) ** 2) for b, c in zip(xp, fp, strict=True)] for a in x]
    same(many(x, xp, fp), want)
    total = grad(lambda *args: fnp.sum(many(*args)), (0, 1, 2))(x, xp, fp)
    per_pair = vmap(lambda x: vmap(grad(one, (0, 1, 2)), (None, 0, 0))(x, xp, fp))(x)
    for got, parts, axis in zip(total, per_pair, (1, 0, 0), strict=True):
        same(got, np.sum(parts, axis))


def test_interp_computes_in_double_precision():
    """``interp`` computes in double as NumPy does; cotangents have the arguments' dtype."""
    x, xp, fp = np.float32(0.3), KNOTS.astype(np.float32), HEIGHTS.astype(np.float32)
    out, pullback = vjp(fnp.interp, x, xp, fp)
    assert out.dtype == np.interp(x, xp, fp).dtype == np.float64
    assert [ct.dtype for ct in pullback(np.float64(1.0))] == [np.dtype(np.float32)] * 3
    assert fnp.interp(jnp.float32(0.3), jnp.asarray(xp), jnp.asarray(fp)).dtype == np.float32


# ---- Bessel functions and windows --------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 6))
def test_i0_matches_integral(order):
    """Compare with ``(1/pi) int_0^pi exp(x cos t) cos(n t) dt``, which the mean over n points gives exactly."""
    x = np.concatenate([np.linspace(-60.0, 60.0, 97), [1e-3, 20.0, np.nextafter(20.0, 30.0), 500.0]])
    t = np.arange(1024) * (2 * math.pi / 1024)
    scaled = np.mean(np.exp(np.abs(x)[:, None] * (np.cos(t) - 1)) * np.cos(order * t), -1)
    got = signals.bessel_i(x, order=order) * np.exp(-np.abs(x)) * np.sign(x) ** order
    np.testing.assert_allclose(got, scaled, rtol=1e-12, atol=1e-16)


def test_i0_at_zero_to_any_order():
    """i0 is even, and its even derivatives at 0 are C(2n, n) / 4^n."""
    fun = fnp.i0
    for order in range(9):
        want = math.comb(order, order // 2) / 2**order if order % 2 == 0 else 0.0
        assert float(fun(0.0)) == pytest.approx(want, abs=1e-15)
        assert float(jvp(fun, (0.0,), (1.0,))[0]) == pytest.approx(want, abs=1e-15)
        fun = grad(fun)


@pytest.mark.parametrize("inner", [0, 2])
def test_i0_under_jax_derivatives(inner):
    """JAX differentiates the power series."""
    fun = fnp.i0
    for _ in range(inner):
        fun = grad(fun)
    want = math.comb(inner + 2, inner // 2 + 1) / 2 ** (inner + 2)
    same(jax.jit(jax.grad(jax.grad(fun)))(0.0), want)
    same(jax.jit(jax.grad(fun))(-25.0), grad(fun)(-25.0))


def test_i0_satisfies_its_differential_equation():
    """Check ``x^2 f'' + x f' - x^2 f = 0`` near and far from 0, on both sides."""
    x = np.array([-35.0, -3.0, 0.5, 7.9, 8.1, 19.9, 20.1, 300.0])
    first, second = vmap(grad(fnp.i0))(x), vmap(grad(grad(fnp.i0)))(x)
    same((second + first / x) / np.i0(x), np.ones(8))


def test_i0_overflows_as_numpy():
    with np.errstate(over="ignore"):
        assert np.isinf(grad(fnp.i0)(800.0))
        assert np.isneginf(grad(fnp.i0)(-800.0))
    assert np.isnan(grad(fnp.i0)(NAN))


def test_i0_of_integers():
    same(vmap(fnp.i0)(np.array([0, 1, 2])), np.i0(np.array([0, 1, 2])))


def test_kaiser():
    assert fnp.kaiser(5, 2).tolist() == np.kaiser(5, 2).tolist()
    for length in (0, 1, 2, 5):
        same(vjp(lambda beta, n=length: fnp.kaiser(n, beta), 2.5)[0], np.kaiser(length, 2.5))
    assert jacrev(lambda beta: fnp.kaiser(1, beta))(2.5).tolist() == [0.0]
    check_grads(lambda beta: fnp.kaiser(6, beta), (3.0,), order=3)
    assert vjp(lambda beta: fnp.kaiser(4, beta), np.float32(2))[1](np.ones(4))[0].dtype == np.float32


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_window_length_is_static(name):
    more = (2.0,) if name == "kaiser" else ()
    with pytest.raises(TypeError, match="integer"):
        grad(lambda m: fnp.sum(getattr(fnp, name)(m, *more)))(5.0)
    with pytest.raises(ConcretizationError):
        vmap(lambda m: getattr(fnp, name)(m, *more))(np.array([4, 5]))


# ---- differences -------------------------------------------------------------------------------------------


def test_diff_matches_numpy():
    a = array(3, 4)
    for n, axis in itertools.product(range(5), (0, -1)):
        same(vjp(lambda a, n=n, axis=axis: fnp.diff(a, n, axis), a)[0], np.diff(a, n, axis))
    same(vjp(lambda a: fnp.diff(a, axis=0, prepend=7, append=a[:2]), a)[0], np.diff(a, axis=0, prepend=7, append=a[:2]))
    assert fnp.diff(a, 0) is a
    assert vjp(lambda a: fnp.diff(a, prepend=0), a.astype(np.float32))[0].dtype == np.float64  # NumPy's promotion
    flags = np.array([[True, False, False]])
    assert vmap(fnp.diff)(flags).tolist() == np.diff(flags).tolist()


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("fun", [lambda xp, a: xp.diff(a), lambda xp, a: xp.ediff1d(a), lambda xp, a: xp.trapezoid(a)])
def test_differences_of_short_arrays(fun, length):
    a = array(length)
    out, pullback = vjp(lambda a: fun(fnp, a), a)
    same(out, fun(np, a))
    same(pullback(np.ones_like(out))[0], [np.sum(fun(np, e)) for e in np.eye(length)])
    assert jvp(lambda a: fun(fnp, a), (a,), (a,))[1].shape == out.shape


def test_ediff1d_keeps_its_dtype():
    a = array(3).astype(np.float32)
    out, pullback = vjp(lambda a, end: fnp.ediff1d(a, end), a, np.array([1.0, 2.0]))
    assert out.dtype == np.float32
    in_a, in_end = pullback(np.ones(4, np.float32))
    assert (in_a.dtype, in_end.dtype, in_end.tolist()) == (np.float32, np.float64, [1.0, 1.0])


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize(
    "spacing", [[], [0.3], [np.array([0.0, 0.5, 1.0, 1.5])], [np.array([0.0, 0.1, 0.7, 1.5])], [[0, 1, 3, 4]]]
)
def test_gradient_matches_numpy(spacing, edge_order):
    """Its Jacobian in the samples is the gradient of unit vectors; constant and traced spacings agree."""
    f = array(4)
    want = np.gradient(f, *spacing, edge_order=edge_order)
    on_grid = lambda f, *h: fnp.gradient(f, *h, edge_order=edge_order)
    value, (jacobian,) = value_and_jacobians(lambda f: on_grid(f, *spacing), f)
    same(value, want)
    same(jacobian, np.stack([np.gradient(e, *spacing, edge_order=edge_order) for e in np.eye(4)], -1))
    if spacing:
        h = np.asarray(spacing[0], float)
        same(vjp(on_grid, f, h)[0], want)
        check_grads(on_grid, (f, h), order=2)


def test_gradient_of_several_axes():
    f, x = array(3, 4), np.array([0.0, 1.0, 3.0])
    outs, pullback = vjp(lambda f, x: fnp.gradient(f, x, 0.5), f, x)
    for out, want in zip(outs, np.gradient(f, x, 0.5), strict=True):
        same(out, want)
    assert [ct.shape for ct in pullback(outs)] == [(3, 4), (3,)]
    assert vjp(lambda f: fnp.gradient(f, axis=()), f)[0] == np.gradient(f, axis=()) == ()
    assert vjp(lambda h: fnp.gradient(np.arange(4), h), 2.0)[0].tolist() == [0.5] * 4
    assert vjp(lambda f: fnp.gradient(f, np.array([0.0, 1.0, 3.0])), f.astype(np.float32)[:, 0])[0].dtype == np.float32


def test_gradient_on_even_grid_depends_on_spacing():
    """The weight of the middle sample is zero there, but its derivative is not."""
    f, x = np.array([1.0, 5.0, 2.0]), np.array([0.0, 1.0, 2.0])
    check_grads(lambda x: fnp.gradient(f, x), (x,), order=2)


def test_trapezoid():
    x = np.array([0.0, 1.0, 3.0])
    assert grad(lambda x: fnp.trapezoid(x, x))(x).tolist() == [0.0, 0.0, 3.0]  # derivative of x**2 / 2
    y = array(3, 2, 4)
    for axis in (0, -1):
        at = array(y.shape[axis], seed=1)
        same(vjp(lambda y, x, axis=axis: fnp.trapezoid(y, x, axis=axis), y, at)[0], np.trapezoid(y, at, axis=axis))
    assert vjp(lambda dx: fnp.trapezoid([1, 2, 4], dx=dx), 0.5)[1](1.0)[0] == 4.5
    same(
        vjp(lambda y: fnp.trapezoid(y, dx=np.array([1.0, 2.0])), y[:, 0, :3])[0],
        np.trapezoid(y[:, 0, :3], dx=np.array([1.0, 2.0])),
    )
    assert hessian(lambda x: fnp.trapezoid(x * x, x))(x).shape == (3, 3)


# ---- phases ------------------------------------------------------------------------------------------------


def test_unwrap_is_the_identity_between_jumps():
    p = array(2, 5) * 6
    for axis in (0, 1):
        value, (jacobian,) = value_and_jacobians(lambda p, axis=axis: fnp.unwrap(p, axis=axis), p)
        same(value, np.unwrap(p, axis=axis))
        same(jacobian.reshape(10, 10), np.eye(10))
    same(vjp(lambda p: fnp.unwrap(p, 4.0), p)[0], np.unwrap(p, 4.0))
    same(vjp(lambda p, period: fnp.unwrap(p, period=period), p, 3.0)[0], np.unwrap(p, period=3.0))


@pytest.mark.parametrize("p", [[0.0, 0.5, 0.7], [0.0, -0.5, -0.7], [0.0, 1.5, 3.0, 4.5]])
def test_unwrap_at_half_a_period(p):
    """The value jumps in the direction that NumPy chooses; the derivative is the same on both sides."""
    value, (jacobian,) = value_and_jacobians(lambda p: fnp.unwrap(p, period=1.0), np.array(p))
    same(value, np.unwrap(p, period=1.0))
    same(jacobian, np.eye(len(p)))


@pytest.mark.parametrize("period", [4, 5])
def test_unwrap_integers(period):
    p = np.array([[0, 2, 5, 7, 10, 3], [4, 0, 2, -2, 9, 1]])
    got = vmap(lambda p: fnp.unwrap(p, period=period))(p)
    want = np.unwrap(p, period=period)
    assert got.dtype == want.dtype
    assert got.tolist() == want.tolist()


def test_unwrap_counts_periods():
    p = np.array([0.1, 2.9, -2.9, 3.0, 3.1])
    assert jvp(lambda period: fnp.unwrap(p, period=period), (2 * math.pi,), (1.0,))[1].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    "name", ["convolve", "correlate", "interp", "i0", "diff", "ediff1d", "gradient", "trapezoid", "unwrap"]
)
def test_numpy_functions_dispatch_on_tracers(name):
    args = {"convolve": (HEIGHTS,), "correlate": (HEIGHTS,), "interp": (KNOTS, HEIGHTS)}.get(name, ())
    x = np.array([0.2, 0.9, 1.7])
    out, pullback = vjp(lambda x: getattr(np, name)(x, *args), x)
    same(out, getattr(np, name)(x, *args))
    same(pullback(out)[0], vjp(lambda x: getattr(fnp, name)(x, *args), x)[1](out)[0])


def test_messages_name_a_remedy():
    with pytest.raises(ValueError, match=r"convolve: a must have one axis, got float64\[1, 4\]. Use vmap"):
        grad(lambda a: fnp.sum(fnp.convolve(a[None], a)))(array(4))
    with pytest.raises(InputError, match="i0: complex numbers are not supported, got complex128"):
        vjp(fnp.i0, np.array([1j]))


def test_interp_of_batched_knots_on_jax_arrays():
    x, xp, fp = (
        jnp.array([0.5, 1.5]),
        jnp.array([[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]]),
        jnp.array([[0.0, 1.0, 4.0], [0.0, 2.0, 3.0]]),
    )
    ours = vmap(grad(lambda xp, fp: fnp.sum(fnp.interp(x, xp, fp) ** 2), (0, 1)))
    theirs = jax.vmap(jax.grad(lambda xp, fp: jnp.sum(jnp.interp(x, xp, fp) ** 2), (0, 1)))
    for run in (ours, jax.jit(ours)):
        for got, want in zip(run(xp, fp), theirs(xp, fp), strict=True):
            same(got, want)
