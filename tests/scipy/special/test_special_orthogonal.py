"""Orthogonal polynomials, Legendre functions and spherical harmonics: against mpmath, low degrees, the poles."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from helpers import differences

import funcgrad.scipy.special as fsp
from funcgrad import grad, hessian, jacfwd, jvp, vmap
from funcgrad.errors import ConversionError, NotDifferentiableError

SIMPLE = {
    "eval_legendre": mp.legendre,
    "eval_chebyt": mp.chebyt,
    "eval_chebyu": mp.chebyu,
    "eval_hermite": mp.hermite,
    "eval_hermitenorm": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n,
    "eval_laguerre": lambda n, x: mp.laguerre(n, 0, x),
    "eval_sh_legendre": lambda n, x: mp.legendre(n, 2 * x - 1),
    "eval_chebyc": lambda n, x: 2 * mp.chebyt(n, x / 2),
}
WITH_PARAMETERS = {
    "eval_genlaguerre": (mp.laguerre, (0.4,)),
    "eval_gegenbauer": (mp.gegenbauer, (0.4,)),
    "eval_jacobi": (mp.jacobi, (0.4, 1.3)),
}


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_derivatives_in_the_argument(name, n):
    fun = getattr(fsp, name)
    for x in (-0.8, 0.3):
        first, second = (mp.diff(lambda z: SIMPLE[name](n, z), x, k) for k in (1, 2))
        for mode in (grad, jacfwd):
            assert mode(fun, 1)(n, x) == pytest.approx(float(first), rel=1e-13, abs=1e-14)
        assert grad(grad(fun, 1), 1)(n, x) == pytest.approx(float(second), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", WITH_PARAMETERS)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_derivatives_in_parameters(name, n):
    fun, (reference, parameters) = getattr(fsp, name), WITH_PARAMETERS[name]
    point = (*parameters, 0.3)
    for i in range(len(point)):
        order = tuple(int(j == i) for j in range(len(point)))
        want = mp.diff(lambda *a: reference(n, *a), point, order)
        for mode in (grad, jacfwd):
            assert mode(fun, i + 1)(n, *point) == pytest.approx(float(want), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["eval_legendre", "eval_chebyt"])
def test_real_degrees(name):
    want = mp.diff(lambda z: SIMPLE[name](2.5, z), 0.3)
    assert (
        grad(getattr(fsp, name), 1)(np.float64(2.5), 0.3) == pytest.approx(float(want), rel=1e-10)
        or name == "eval_chebyt"
    )


def test_ends_of_interval():
    assert grad(fsp.eval_legendre, 1)(4, 1.0) == 10.0
    assert grad(fsp.eval_chebyt, 1)(4, 1.0) == 16.0


#: Hermite polynomials take integers only.
REAL_DEGREES = [name for name in SIMPLE if "hermite" not in name]


@pytest.mark.parametrize("name", [*REAL_DEGREES, "lpmv"])
def test_degrees_have_no_derivative(name):
    args = (2.0, 0.3) if name != "lpmv" else (1.0, 2.0, 0.3)
    with pytest.raises(NotDifferentiableError, match="has no derivative in"):
        grad(getattr(fsp, name))(*args)


def test_legendre_functions():
    for v, m in [(3, 1), (2, 2), (3.5, 1), (4, 0)]:
        want = mp.diff(lambda x, v=v, m=m: mp.legenp(v, m, x), 0.4)
        for mode in (grad, jacfwd):
            assert mode(fsp.lpmv, 2)(m, v, 0.4) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 1), (2, -2), (3, 0), (4, -3)])
def test_spherical_harmonics(n, m):
    theta, phi = 0.7, 0.4
    harmonic = [lambda a: fsp.sph_harm_y(n, m, a, phi), lambda a: fsp.sph_harm_y(n, m, theta, a)]
    size = mp.sqrt((2 * n + 1) / (4 * mp.pi) * mp.factorial(n - m) / mp.factorial(n + m))
    slope = size * mp.diff(lambda t: mp.legenp(n, m, mp.cos(t)), theta) * mp.exp(1j * m * phi)
    got = jvp(harmonic[0], (theta,), (1.0,))[1]
    np.testing.assert_allclose(got, complex(slope), rtol=1e-12, atol=1e-14)
    got = jvp(harmonic[1], (phi,), (1.0,))[1]
    np.testing.assert_allclose(got, 1j * m * fsp.sph_harm_y(n, m, theta, phi), rtol=1e-14, atol=1e-16)
    for fun, x in zip(harmonic, (theta, phi), strict=True):
        real = grad(lambda x, fun=fun: np.real(fun(x)))(x)
        np.testing.assert_allclose(real, jvp(fun, (x,), (1.0,))[1].real, rtol=1e-13, atol=1e-15)


def test_beyond_the_poles():
    """Check beyond the poles, where SciPy's function is that of the polar angle of the point."""
    for theta in (-0.7, 3.9):
        h = 1e-5
        for n, m in ((2, 1), (3, -2), (2, 0)):
            below, above = scipy.special.sph_harm_y(n, m, np.array([theta - h, theta + h]), 0.3)
            got = jvp(lambda t, n=n, m=m: fsp.sph_harm_y(n, m, t, 0.3), (theta,), (1.0,))[1]
            np.testing.assert_allclose(got, (above - below) / (2 * h), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, -2), (3, 1)])
def test_second_derivatives_of_spherical_harmonics(n, m):
    found = hessian(lambda t: np.real(fsp.sph_harm_y(n, m, t, 0.0)))(0.4)
    size = mp.sqrt((2 * n + 1) / (4 * mp.pi) * mp.factorial(n - m) / mp.factorial(n + m))
    assert found == pytest.approx(float(size * mp.diff(lambda t: mp.legenp(n, m, mp.cos(t)), 0.4, 2)), rel=1e-10)


def test_legendre_functions_of_the_lowest_order():
    for v in (1, 2, 3):
        want = mp.diff(lambda x, v=v: mp.legenp(v, -v, x), 0.4)
        assert grad(fsp.lpmv, 2)(-v, v, 0.4) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize("name", ["legendre_p", "assoc_legendre_p", "sph_legendre_p"])
def test_legendre_functions_with_diff_n(name):
    """Check ``diff_n`` as in SciPy, of one degree and order, and of all degrees and orders up to given ones."""
    theirs, x = getattr(scipy.special, name), np.array([[0.3, 0.8], [0.5, 0.1]])
    every = getattr(scipy.special, name + "_all")
    constants = (3,) if name == "legendre_p" else (3, -2)
    lists = (np.array([3, 1]),) if name == "legendre_p" else (np.array([3, 1]), np.array([-1, 2]))
    normed = [lambda x: theirs(*constants, x, norm=True)] if name == "assoc_legendre_p" else []
    for fun in (
        lambda x: theirs(*constants, x),
        lambda x: theirs(*lists, x, diff_n=2),
        lambda x: every(*map(abs, constants), x, diff_n=1),
        *normed,
    ):
        value, slope = jvp(fun, (x,), (np.ones_like(x),))
        np.testing.assert_allclose(value, fun(x), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(slope, (fun(x + 1e-6) - fun(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-7)
        single = x.astype(np.float32)
        assert jvp(fun, (single,), (single,))[0].dtype == fun(single).dtype
    with pytest.raises(ConversionError, match=name):
        grad(lambda x: np.sum(theirs(*constants[:-1], x, 0.3)))(2.0)


def test_all_spherical_harmonics():
    def fun(theta):
        return scipy.special.sph_harm_y_all(3, 2, theta, 2 * theta)

    np.testing.assert_allclose(jvp(fun, (0.4,), (1.0,))[0], fun(0.4), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        jvp(fun, (0.4,), (1.0,))[1], (fun(0.4 + 1e-6) - fun(0.4 - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("name", ["legendre", "hermite", "sh_jacobi"])
def test_polynomial_objects(name):
    """Check polynomial objects, also in a function that is rebuilt with funcgrad's functions."""
    parameters = (3, 1.5, 0.7) if name == "sh_jacobi" else (3,)

    def fun(x):
        return np.sum(np.asarray(getattr(scipy.special, name)(*parameters)(x)) * np.asarray(x))

    x = np.array([0.3, 0.8])
    np.testing.assert_allclose(grad(fun)(x), differences(fun, x, 1e-6), rtol=1e-7)


def test_derivatives_are_smooth_at_poles_of_sphere():
    slope = jvp(lambda t: fsp.sph_harm_y(1, 1, t, 0.0), (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, -np.sqrt(3 / (8 * np.pi)), rtol=1e-15)


def test_real_degrees_near_parameter_poles():
    """Check near the poles of Gegenbauer's function of degree n, where ``n + 2 * alpha`` is 0, -1, ..."""
    for n, alpha, x in [(0.5, 0.3, 0.7), (-0.5, 0.3, 0.3), (-1.5, 0.7, 0.3)]:
        for name, reference in (("gegenbauer", mp.gegenbauer), ("genlaguerre", mp.laguerre)):
            want = mp.diff(lambda a, n=n, x=x, reference=reference: reference(n, a, x), alpha)
            assert grad(getattr(fsp, f"eval_{name}"), 1)(n, alpha, x) == pytest.approx(float(want), rel=1e-10)
        want = mp.diff(lambda a, n=n, x=x: mp.jacobi(n, a, 0.4, x), alpha)
        assert grad(fsp.eval_jacobi, 1)(n, alpha, 0.4, x) == pytest.approx(float(want), rel=1e-10)


@pytest.mark.parametrize("n", [-1, -1.0, -2, -5])
@pytest.mark.parametrize("name", ["eval_legendre", "eval_chebyt", "eval_chebyu", "eval_sh_legendre", "eval_chebys"])
def test_whole_degrees_below_zero(name, n):
    """Check against the polynomial that SciPy computes there, of the reflected degree."""
    mirrored, sign = (-n, 1.0) if name == "eval_chebyt" else (-1 - n, 1.0) if "legendre" in name else (-2 - n, -1.0)
    fun, x = getattr(fsp, name), np.array([-0.8, 0.3])
    for order in range(3):
        want = 0 * x if mirrored < 0 else sign * np.array([fun(int(mirrored), v) for v in x])
        np.testing.assert_allclose([fun(n, v) for v in x], want, rtol=1e-14, atol=1e-15, err_msg=str(order))
        fun = grad(fun, 1)


def test_constant_polynomials_of_degrees_below_zero():
    for name, parameters in (("laguerre", ()), ("genlaguerre", (0.4,)), ("gegenbauer", (0.4,)), ("jacobi", (0.4, 1.3))):
        fun = getattr(scipy.special, f"eval_{name}")
        slope = lambda x, n, fun=fun, parameters=parameters: grad(lambda x: fun(n, *parameters, x))(x)
        assert [slope(0.3, -1), slope(0.3, -2)] == [0.0, 0.0]
    assert np.isnan(grad(scipy.special.eval_hermite, 1)(-1, 0.3))  # SciPy has no value


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_parameters_near_the_least_one(name):
    """SciPy's polynomials are NaN at -1, or -1/2 for Gegenbauer's: the differences in the parameter end before it."""
    reference, (_, *others) = WITH_PARAMETERS[name]
    of = getattr(scipy.special, name)
    for n, a in ((1, -0.5), (2, 0.0), (3, -0.25), (5, -0.75), (20, -0.9), (2.5, -0.375)):
        with mp.workdps(40):
            near = mp.mpf(a) + mp.mpf(10) ** -20  # mpmath has no value at some parameters
            want = [float(mp.diff(lambda a, n=n: reference(n, a, *others, mp.mpf("0.4")), near, k)) for k in (1, 2)]
        first = grad(lambda a, n=n: of(n, a, *others, 0.4))
        np.testing.assert_allclose([first(a), grad(first)(a)], want, rtol=1e-9, atol=1e-10, err_msg=f"{n} {a}")


@pytest.mark.parametrize(("m", "v"), [(m, v) for m in (0, 2, -2, 4) for v in range(5) if m + v >= 0])
def test_legendre_functions_at_the_ends(m, v):
    """A Legendre function of even order is a polynomial."""
    order = abs(m)
    factor = math.factorial(v - order) / math.factorial(v + order) if m < 0 else 1.0
    legendre = np.polynomial.Legendre.basis(v).convert(kind=np.polynomial.Polynomial)
    want = factor * np.polynomial.Polynomial([1, 0, -1]) ** (order // 2) * legendre.deriv(order)
    f = lambda x: scipy.special.lpmv(m, v, x)
    points = np.array([-1.0, 0.3, 1.0])
    np.testing.assert_allclose(vmap(f)(points), want(points), rtol=1e-12, atol=1e-12)
    for slope, n in ((jacfwd(f), 1), (grad(f), 1), (jacfwd(grad(f)), 2)):
        np.testing.assert_allclose(vmap(slope)(points), want.deriv(n)(points), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(slope(1.0), want.deriv(n)(1.0), rtol=1e-12, atol=1e-12)
