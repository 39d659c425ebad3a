"""Bessel functions: derivatives in the order, at 0 and far out, of complex arguments, and errors."""

import mpmath as mp
import numpy as np
import pytest

import funcgrad.numpy as fnp
import funcgrad.scipy.special as fsp
from funcgrad import grad, jacfwd, jvp, vmap
from funcgrad.errors import NotDifferentiableError

FUNCTIONS = {"jv": mp.besselj, "yv": mp.bessely, "iv": mp.besseli, "kv": mp.besselk}
ORDERS = np.array([0.3, 2.5, 7.2, 30.1])
X = np.array([1e-3, 0.8, 3.3, 25.0])
BOTH = [(v, x) for v in ORDERS for x in X]


def exact(fun, v, x, order):
    with mp.workdps(40):
        return mp.diff(fun, (mp.mpf(v), mp.mpf(x)), order)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("mode", [grad, jacfwd])
def test_derivative_in_the_order(name, mode):
    for v, x in BOTH:
        want = exact(FUNCTIONS[name], v, x, (1, 0))
        got = mode(getattr(fsp, name))(v, x)
        assert abs(got - want) <= 1e-12 * abs(want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name):
    fun = getattr(fsp, name)
    for v, x in [(0.3, 0.8), (2.5, 3.3), (7.2, 25.0)]:
        scale = max(abs(exact(FUNCTIONS[name], v, x, order)) for order in [(0, 0), (1, 0), (0, 1)])
        for order, (i, j) in {(2, 0): (0, 0), (1, 1): (0, 1), (0, 2): (1, 1)}.items():
            want = exact(FUNCTIONS[name], v, x, order)
            for outer, inner in [(grad, grad), (jacfwd, grad), (grad, jacfwd)]:
                got = outer(lambda *a, inner=inner, i=i: inner(fun, i)(*a), j)(v, x)
                assert abs(got - want) <= 1e-11 * max(abs(want), scale)


def test_orders_with_closed_forms():
    x = np.array([0.01, 1.0, 8.0, 60.0])
    slope = vmap(grad(fsp.yv), in_axes=(None, 0))(0.0, x)  # DLMF 10.15.4
    np.testing.assert_allclose(slope, -np.pi / 2 * fsp.j0(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(vmap(grad(fsp.jv), in_axes=(None, 0))(0.0, x), np.pi / 2 * fsp.y0(x), rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(fsp.iv), in_axes=(None, 0))(0.0, x), -fsp.k0(x), rtol=1e-12)  # DLMF 10.38.4
    assert not np.any(vmap(grad(fsp.kv), in_axes=(None, 0))(0.0, x))


def test_kv_has_derivatives_of_any_order_in_its_order():
    def nth(n):
        return fsp.kv if n == 0 else grad(nth(n - 1))

    want = exact(mp.besselk, 1.7, 2.2, (6, 0))
    assert abs(nth(6)(1.7, 2.2) - want) <= 1e-12 * abs(want)


def test_fifth_derivative_in_the_order_raises():
    def nth(n):
        return fsp.jv if n == 0 else grad(nth(n - 1))

    want = exact(mp.besselj, 1.7, 2.2, (4, 0))
    assert abs(nth(4)(1.7, 2.2) - want) <= 1e-9 * abs(want)
    with pytest.raises(NotDifferentiableError, match="up to order 4"):
        nth(5)(1.7, 2.2)


@pytest.mark.parametrize(
    ("name", "slope", "second"), [("j1", 0.5, 0.0), ("i1", 0.5, 0.0), ("j0", 0.0, -0.5), ("i0", 0.0, 0.5)]
)
def test_at_zero(name, slope, second):
    fun = getattr(fsp, name)
    assert grad(fun)(0.0) == jacfwd(fun)(0.0) == slope
    assert grad(grad(fun))(0.0) == jacfwd(jacfwd(fun))(0.0) == second


@pytest.mark.parametrize(("v", "slope"), [(0, 0.0), (1, 0.5), (2, 0.0), (1.5, 0.0)])
def test_at_zero_of_any_order(v, slope):
    for fun in (fsp.jv, fsp.iv):
        assert grad(fun, 1)(v, 0.0) == slope
    assert grad(fsp.jv)(2.0, 0.0) == 0


def test_negative_arguments():
    np.testing.assert_allclose(grad(fsp.jv, 1)(2, -1.5), -grad(fsp.jv, 1)(2, 1.5), rtol=1e-15)
    assert np.isnan(grad(fsp.jv)(2.0, -1.5)), "only whole orders are real there"


def test_scaled_functions_do_not_overflow():
    for x in (900.0, 1e5):
        for name in ("ive", "kve"):
            for i in (0, 1):
                assert np.isfinite(grad(getattr(fsp, name), i)(2.5, x))
        assert np.isfinite(grad(fsp.i1e)(x))
        assert np.isfinite(grad(grad(fsp.i0e))(x))


def test_scaling_has_a_kink_at_zero():
    """The slope there is that for positive numbers, as the slope of ``abs``, so that the kinks of both cancel."""
    assert grad(fsp.i0e)(0.0) == jacfwd(fsp.i0e)(0.0) == grad(fsp.ive, 1)(0.0, 0.0) == -1
    smooth = lambda x: fnp.log(fsp.i0e(x)) + fnp.abs(x)
    assert grad(smooth)(0.0) == 0
    assert grad(grad(smooth))(0.0) == 0.5
    assert grad(fsp.i0e)(np.float32(-0.7)) == -grad(fsp.i0e)(np.float32(0.7))
    assert grad(fsp.i0e)(np.float32(0.7)).dtype == np.float32


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv", "hankel1", "hankel2", "kve", "hankel1e", "hankel2e"])
def test_complex_arguments(name):
    fun, z, h = getattr(fsp, name), 1.3 + 0.4j, 1e-4
    slope = jvp(lambda z: fun(0.7, z), (z,), (1.0 + 0j,))[1]
    np.testing.assert_allclose(slope, (fun(0.7, z + h) - fun(0.7, z - h)) / (2 * h), rtol=1e-7)
    turned = jvp(lambda z: fun(0.7, z), (z,), (1j,))[1]
    np.testing.assert_allclose(turned, 1j * slope, rtol=1e-14)
    in_order = jvp(lambda v: fun(v, z), (0.7,), (1.0,))[1]
    np.testing.assert_allclose(in_order, (fun(0.7 + h, z) - fun(0.7 - h, z)) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_scaling_is_not_analytic(name):
    with pytest.raises(NotDifferentiableError, match="not analytic"):
        jvp(lambda z: getattr(fsp, name)(0.7, z), (1.3 + 0.4j,), (1.0 + 0j,))


@pytest.mark.parametrize("name", ["yn", "kn", "spherical_jn"])
def test_integer_orders_have_no_derivative(name):
    with pytest.raises(NotDifferentiableError, match="whole number"):
        grad(getattr(fsp, name))(2.0, 1.5)


def test_airy_functions_of_negative_numbers():
    values, slopes = jvp(fsp.airy, (-2.3,), (1.0,))
    np.testing.assert_allclose(slopes, [values[1], -2.3 * values[0], values[3], -2.3 * values[2]], rtol=1e-15)
    assert grad(lambda z: fsp.airye(z)[2])(-2.3) == pytest.approx(fsp.airy(-2.3)[3], rel=1e-12)


def test_integrals_of_airy_functions():
    slopes = jvp(fsp.itairy, (4.3,), (1.0,))[1]
    want = [mp.airyai(4.3), mp.airybi(4.3), mp.airyai(-4.3), mp.airybi(-4.3)]
    np.testing.assert_allclose(slopes, np.array(want, float), rtol=1e-12)
    assert grad(lambda x: fsp.itairy(x)[2])(-4.3) == pytest.approx(float(want[0]), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_kelvin_functions_at_zero(order):
    for name in ("ber", "bei"):
        fun = getattr(fsp, name)
        for _ in range(order):
            fun = jacfwd(fun)
        want = mp.taylor(lambda x, name=name: getattr(mp, name)(0, x), 0, 4)[order] * mp.factorial(order)
        assert fun(0.0) == pytest.approx(float(want), abs=1e-14)


@pytest.mark.parametrize("name", ["it2j0y0", "it2i0k0"])
def test_integrals_of_one_minus_bessel_near_zero(name):
    bessel, sign = (mp.besselj, 1) if "j" in name else (mp.besseli, -1)

    def fun(x):
        return getattr(fsp, name)(x)[0]

    def slope(t):
        return sign * (1 - bessel(0, t)) / t

    for x in (0.0, 1e-9, 0.999, 1.001):
        with mp.workdps(40):
            first, second = (slope(mp.mpf(x)), mp.diff(slope, mp.mpf(x))) if x else (0, mp.mpf(1) / 4)
        with np.errstate(all="ignore"):  # the other integral is infinite at 0
            assert grad(fun)(x) == pytest.approx(float(first), rel=1e-13)
            assert jacfwd(grad(fun))(x) == pytest.approx(float(second), rel=1e-13)


def test_derivative_functions_check_order():
    with pytest.raises(TypeError, match="n must be a non-negative integer"):
        grad(fsp.jvp)(1.0, 2.0, 1.5)
    with pytest.raises(ValueError, match="n must be a non-negative integer"):
        grad(fsp.jvp)(1.0, 2.0, -1)
    np.testing.assert_allclose(fsp.kvp(0.7, 2.0, 3), grad(grad(grad(fsp.kv, 1), 1), 1)(0.7, 2.0), rtol=1e-13)


def test_integer_orders_of_any_dtype():
    for dtype in (np.uint8, np.bool_, np.int64):
        assert grad(fsp.jv, 1)(np.asarray(0, dtype), 1.5) == pytest.approx(-fsp.j1(1.5), rel=1e-15)


@pytest.mark.parametrize(("name", "v", "x"), [("kv", 829.25, 787.0), ("iv", 829.25, 787.0), ("iv", 600.5, 787.0)])
def test_derivative_in_a_large_order_at_a_large_argument(name, v, x):
    """``exp(x)`` overflows there, and its inverse underflows."""
    f, h = getattr(fsp, name), 1e-3
    want = (8 * (f(v + h, x) - f(v - h, x)) - f(v + 2 * h, x) + f(v - 2 * h, x)) / (12 * h)
    assert grad(f)(v, x) == pytest.approx(want, rel=1e-9)
