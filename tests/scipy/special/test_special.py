"""Special functions against mpmath, in both modes and two orders; kinks, ends of domains and errors."""

import math
import pickle
import pkgutil
import re
import sys
from importlib import import_module

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats
from helpers import close_leaves

import funcgrad.numpy as fnp
import funcgrad.scipy.special as fsp
from funcgrad import grad, hessian, jacfwd, jvp, vjp, vmap
from funcgrad.core import Primitive
from funcgrad.errors import ConcretizationError, InputError, MissingExtraError, NotDifferentiableError
from funcgrad.scipy.special import operations
from funcgrad.scipy.special.operations import bessel_related, convex, error_functions, hypergeometric, incomplete

DIGITS = 40


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, regularized=True)


def incomplete_beta(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def student(v, t):
    tails = incomplete_beta(v / 2, mp.mpf(1) / 2, v / (v + t * t)) / 2
    return tails if t < 0 else 1 - tails


def dilogarithm(z):
    return mp.re(mp.polylog(2, 1 - z))


def owens_t(h, a):
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def boxcox(x, lmbda):
    return mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x)


def inv_boxcox(y, lmbda):
    return mp.exp(mp.log1p(lmbda * y) / lmbda) if lmbda else mp.exp(y)


def pseudo_huber(d, r):
    return d * d * (mp.sqrt(1 + (r / d) ** 2) - 1)


def voigt(x, s, g):
    z = (x + 1j * g) / (s * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (s * mp.sqrt(2 * mp.pi))


#: Name, mpmath's function, points. Every argument is differentiated, except integers.
TABLE = [
    ("erf", mp.erf, (-3.0,), (0.0,), (5.0,)),
    ("erfc", mp.erfc, (-1.0,), (20.0,)),
    ("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (-4.0,), (0.3,), (0.999,), (1.001,), (25.0,), (1e6,)),
    ("erfi", mp.erfi, (-1.5,), (4.0,)),
    ("erfinv", mp.erfinv, (-0.99,), (0.3,)),
    ("erfcinv", lambda y: mp.erfinv(1 - y), (1e-9,), (1.3,)),
    ("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (-20.0,), (0.4,), (7.01,), (3e3,)),
    ("ndtr", mp.ncdf, (-20.0,), (1.0,)),
    ("log_ndtr", lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), (-300.0,), (-1.0,), (5.0,)),
    ("ndtri", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (1e-6,), (0.7,)),
    ("ndtri_exp", lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), (-30.0,), (-0.2,)),
    ("owens_t", owens_t, (0.5, 2.0), (3.0, -0.4)),
    ("gamma", mp.gamma, (0.01,), (4.5,), (-2.5,), (150.0,)),
    ("gammaln", lambda x: mp.log(abs(mp.gamma(x))), (1e-8,), (-3.3,), (1e6,)),
    ("loggamma", mp.loggamma, (0.2,), (30.0,)),
    ("rgamma", mp.rgamma, (-3.0,), (0.0,), (0.49,), (0.51,), (-8.7,), (20.0,)),
    ("digamma", mp.digamma, (-1.3,), (0.1,), (1e4,)),
    ("polygamma", mp.polygamma, (2, 0.3), (0, 20.0)),
    ("beta", mp.beta, (0.3, 4.0), (20.0, 1e-3)),
    ("betaln", lambda a, b: mp.log(mp.beta(a, b)), (0.3, 4.0), (200.0, 1e3)),
    ("poch", mp.rf, (0.7, 3.5), (5.0, -1.2)),
    ("binom", mp.binomial, (5.5, 2.3), (30.0, 29.5), (-2.5, 1.5), (-98.5, 2.5)),
    ("zeta", mp.zeta, (1.01, 1.0), (2.0, 0.02), (7.0, 50.0), (40.0, 1.5)),
    ("zeta", mp.zeta, (-12.3,), (-2.0,), (0.5,), (1.5,), (9.0,)),
    ("expit", lambda x: 1 / (1 + mp.exp(-x)), (-40.0,), (0.5,), (30.0,)),
    ("log_expit", lambda x: -mp.log1p(mp.exp(-x)), (-40.0,), (30.0,)),
    ("logit", lambda x: mp.log(x / (1 - x)), (1e-12,), (0.7,)),
    ("boxcox", boxcox, (2.0, 0.0), (3.0, 1e-9), (1e-5, 0.4), (50.0, -2.0)),
    ("boxcox1p", lambda x, k: boxcox(1 + x, k), (1e-8, 0.5), (2.0, 0.0)),
    ("inv_boxcox", inv_boxcox, (2.0, 0.0), (3.0, 1e-9), (0.4, -2.0)),
    ("inv_boxcox1p", lambda y, k: inv_boxcox(y, k) - 1, (2.0, 0.0), (0.4, 1.5)),
    ("pseudo_huber", pseudo_huber, (1.5, 1e-3), (0.2, 30.0)),
    ("exprel", lambda x: mp.expm1(x) / x if x else mp.mpf(1), (0.0,), (1e-8,), (-0.999,), (-50.0,), (3.0,)),
    ("powm1", lambda x, y: x**y - 1, (1.5, 2.5), (0.2, 1e-9)),
    ("gammainc", lower, (0.02, 1e-30), (0.3, 2.0), (2.0, 3.0), (40.0, 35.0), (500.0, 540.0)),
    ("gammaincc", upper, (0.5, 40.0), (40.0, 10.0)),
    ("betainc", incomplete_beta, (0.02, 0.5, 1e-20), (2.0, 3.0, 0.5), (0.7, 30.0, 0.01), (90.0, 60.0, 0.65)),
    ("betaincc", lambda a, b, x: 1 - incomplete_beta(a, b, x), (5.0, 0.3, 0.99)),
    ("stdtr", student, (0.1, -50.0), (2.5, 0.7), (2.5, -1e-5), (30.0, 2.0), (2e3, 1.5)),
    ("chdtr", lambda v, x: lower(v / 2, x / 2), (3.0, 2.0)),
    ("gdtr", lambda a, b, x: lower(b, a * x), (3.0, 2.0, 0.5)),
    ("fdtr", lambda n, d, x: incomplete_beta(n / 2, d / 2, n * x / (d + n * x)), (3.0, 7.0, 0.5)),
    ("pdtr", lambda k, m: upper(k + 1, m), (3, 2.0)),
    ("bdtr", lambda k, n, p: incomplete_beta(n - k, k + 1, 1 - p), (3, 7, 0.4)),
    ("nbdtr", lambda k, n, p: incomplete_beta(n, k + 1, p), (3, 7, 0.4)),
    ("expi", mp.ei, (-3.0,), (0.2,), (20.0,)),
    ("exp1", mp.e1, (1e-5,), (20.0,)),
    ("expn", mp.expint, (0, 0.5), (1, 0.5), (2, 1e-3), (7, 30.0)),
    ("spence", dilogarithm, (1e-10,), (0.49,), (0.51,), (1.0,), (1.3,), (40.0,)),
    ("voigt_profile", voigt, (0.5, 1.0, 0.3), (2.0, 0.7, 1.5)),
]
SPLIT = [  # functions with two results
    ("fresnel", mp.fresnels, mp.fresnelc, 0.7),
    ("sici", mp.si, mp.ci, 0.3),
    ("sici", mp.si, mp.ci, 9.0),
    ("shichi", mp.shi, mp.chi, 2.0),
]
CASES = [(name, theirs, point, i) for name, theirs, *points in TABLE for point in points for i in range(len(point))]
CASES = [case for case in CASES if isinstance(case[2][case[3]], float)]
LABELS = [f"{name}-{'-'.join(map(str, point))}-{i}" for name, _, point, i in CASES]
each = pytest.mark.parametrize(("name", "theirs", "point", "i"), CASES, ids=LABELS)


def of_one(fun, point, i):
    """Return ``fun`` as a function of its argument ``i`` alone."""
    return lambda x: fun(*point[:i], x, *point[i + 1 :])


def forward(fun):
    """Compute the derivative by forward mode."""
    return lambda x: jvp(fun, (x,), (1.0,))[1]


def truth(theirs, point, i, order):
    with mp.workdps(DIGITS):
        values = [p if isinstance(p, int) else mp.mpf(p) for p in point]
        x = values[i]
        # relative steps: a function may vary on the scale of its argument, or at 0
        return float(mp.diff(of_one(theirs, values, i), x, order, h=(abs(x) or 1) * mp.mpf(10) ** -13))


@each
def test_derivatives_match_mpmath(name, theirs, point, i):
    fun = of_one(getattr(fsp, name), point, i)
    x = point[i]
    first, second = truth(theirs, point, i, 1), truth(theirs, point, i, 2)
    for found in (grad(fun)(x), forward(fun)(x)):
        assert found == pytest.approx(first, rel=1e-10, abs=1e-290)
    for found in (grad(grad(fun))(x), forward(forward(fun))(x), grad(forward(fun))(x)):
        assert found == pytest.approx(second, rel=2e-9, abs=1e-290)


@pytest.mark.parametrize(("name", "first", "second", "x"), SPLIT)
def test_derivatives_of_two_arguments_match_mpmath(name, first, second, x):
    for place, theirs in enumerate((first, second)):
        for order in (1, 2):
            fun = one = lambda x, place=place: getattr(fsp, name)(x)[place]
            other = one
            for _ in range(order):
                fun, other = grad(fun), forward(other)
            want = pytest.approx(truth(theirs, (x,), 0, order), rel=1e-12)
            assert fun(x) == want
            assert other(x) == want


@pytest.mark.parametrize(
    "z",
    [0.3 + 0.7j, 30 + 1j, 7.9 + 0.2j, 8.1 + 0.2j, 8.1 - 0.2j, -9 - 3j, 1 - 9j, 1e5 + 1e-3j, 2.5, 7 + 7j, 3 - 25.5j],
)
@pytest.mark.parametrize("name", ["wofz", "dawsn"])
def test_complex_derivatives_of_wofz_and_dawsn(name, z):
    ours = getattr(fsp, name)
    with mp.workdps(DIGITS):
        wofz = lambda z: mp.exp(-z * z) * mp.erfc(-1j * z)
        fun = wofz if name == "wofz" else lambda z: mp.sqrt(mp.pi) / 2 * mp.exp(-z * z) * mp.erfi(z)
        first, second = (complex(mp.diff(fun, mp.mpmathify(z), n, h=mp.mpf(10) ** -13)) for n in (1, 2))
    one = type(z)(1)
    assert abs(jvp(ours, (z,), (one,))[1] / first - 1) < 1e-11
    assert abs(jvp(lambda z: jvp(ours, (z,), (one,))[1], (z,), (one,))[1] / second - 1) < 1e-10


def third(fun):
    return grad(grad(grad(fun)))


@pytest.mark.parametrize(("x", "gamma"), [(1.0, 0.5), (-0.7, 1.2), (0.0, 1.0)])
@pytest.mark.parametrize("kind", [float, np.float64])
def test_voigt_profile_of_width_zero_is_the_limit(x, gamma, kind):
    """Lorentz's profile; in the width the profile is even, and its second derivative is that in x."""
    point = (kind(x), kind(0.0), kind(gamma))
    lorentz = lambda x, gamma: gamma / (np.pi * (x * x + gamma * gamma))
    of_x, of_gamma = grad(lorentz, (0, 1))(x, gamma)
    found = grad(scipy.special.voigt_profile, (0, 1, 2))(*point)
    np.testing.assert_allclose(found, [of_x, 0.0, of_gamma], rtol=1e-14, atol=1e-16)
    near = [scipy.special.voigt_profile(x, 1e-3, gamma), scipy.special.voigt_profile(x, 0.0, gamma)]
    curvature = grad(grad(lorentz))(x, gamma)
    np.testing.assert_allclose(2 * (near[0] - near[1]) / 1e-6, curvature, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(grad(grad(scipy.special.voigt_profile, 1), 1)(*point), curvature, rtol=1e-13)
    batch = vmap(grad(scipy.special.voigt_profile))(np.full(2, x), np.array([0.0, 0.3]), np.full(2, gamma))
    np.testing.assert_allclose(batch[0], of_x, rtol=1e-14, atol=1e-16)


def test_third_derivatives_in_parameters():
    assert third(lambda a: fsp.gammainc(a, 3.0))(2.0) == pytest.approx(truth(lower, (2.0, 3.0), 0, 3), rel=1e-10)
    beta = truth(incomplete_beta, (2.0, 3.0, 0.3), 1, 3)
    assert third(lambda b: fsp.betainc(2.0, b, 0.3))(3.0) == pytest.approx(beta, rel=1e-10)
    assert third(lambda v: fsp.stdtr(v, 1.2))(4.0) == pytest.approx(truth(student, (4.0, 1.2), 0, 3), rel=1e-10)
    assert third(fsp.zeta)(-3.3) == pytest.approx(truth(mp.zeta, (-3.3,), 0, 3), rel=1e-10)


def test_mixed_derivatives_of_betainc():
    found = hessian(lambda p: fsp.betainc(p[0], p[1], p[2]))(np.array([2.0, 3.0, 0.3]))
    with mp.workdps(DIGITS):
        for i, j in [(0, 1), (0, 2), (1, 2)]:
            orders = tuple(int(k in (i, j)) for k in range(3))
            want = mp.diff(incomplete_beta, (mp.mpf(2), mp.mpf(3), mp.mpf("0.3")), orders)
            assert found[i, j] == pytest.approx(float(want), rel=1e-10)
            assert found[j, i] == pytest.approx(float(want), rel=1e-10)


# ---- large arguments -----------------------------------------------------------------------------------------


def test_large_arguments():
    assert grad(fsp.erfcx)(1e10) == pytest.approx(-1e-20 / math.sqrt(math.pi), rel=1e-13)
    assert grad(fsp.dawsn)(1e10) == pytest.approx(-0.5e-20, rel=1e-13)
    assert grad(grad(fsp.dawsn))(1e10) == pytest.approx(1e-30, rel=1e-13)
    assert grad(fsp.log_ndtr)(-1e8) == pytest.approx(1e8, rel=1e-14)
    assert grad(grad(fsp.log_ndtr))(-1e3) == pytest.approx(-1 + 1e-6, rel=1e-9)
    assert grad(fsp.log_ndtr)(50.0) == 0.0


def test_large_parameters():
    """Check near the mean, where the derivative in a is, to first order, that of a normal distribution."""
    with mp.workdps(60):
        a = mp.mpf(10) ** 6
        want = mp.diff(lambda a: -mp.gammainc(a, mp.mpf(1001000), regularized=True), a, h=mp.mpf(10) ** -20)
    assert grad(fsp.gammainc)(1e6, 1.001e6) == pytest.approx(float(want), rel=1e-10)
    assert grad(fsp.betainc)(5e5, 5e5, 0.5) == pytest.approx(-math.sqrt(2 / math.pi) / 2 / math.sqrt(1e6), rel=1e-5)


# ---- ends and kinks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("derivative", [grad, forward])
@pytest.mark.parametrize(
    ("fun", "x", "want"),
    [
        (fsp.entr, 0.0, math.inf),
        (lambda x: fsp.xlogy(x, 1.0), 0.0, 0.0),
        (lambda y: fsp.xlogy(0.0, y), 2.0, 0.0),
        (lambda x: fsp.rel_entr(x, 1.0), 0.0, -math.inf),
        (lambda y: fsp.rel_entr(0.0, y), 2.0, 0.0),
        (lambda x: fsp.kl_div(x, 1.0), 0.0, -math.inf),
        (lambda r: fsp.huber(1.0, r), 1.0, 1.0),
        (lambda r: fsp.huber(1.0, r), -3.0, -1.0),
        (lambda d: fsp.huber(d, 1.0), 1.0, 0.0),
        (lambda r: fsp.pseudo_huber(0.0, r), 2.0, 0.0),
        (lambda d: fsp.pseudo_huber(d, 2.0), 0.0, 2.0),
        (fsp.logit, 0.0, math.inf),
        (fsp.spence, 0.0, -math.inf),
        (fsp.exp1, 0.0, -math.inf),
        (fsp.rgamma, -1.0, -1.0),
        (lambda a: fsp.gammainc(a, 0.0), 2.0, 0.0),
        (lambda x: fsp.gammainc(1.0, x), 0.0, 1.0),
        (lambda a: fsp.betainc(a, 2.0, 0.0), 2.0, 0.0),
        (lambda b: fsp.betainc(2.0, b, 1.0), 2.0, 0.0),
        (lambda x: fsp.betainc(1.0, 3.0, x), 0.0, 3.0),
        (lambda v: fsp.stdtr(v, 0.0), 2.0, 0.0),
        (lambda p: fsp.bdtr(3, 3, p), 0.5, 0.0),
        (lambda k: fsp.boxcox(0.0, k), 2.0, 0.25),
        (fsp.gammasgn, 2.0, 0.0),
        (lambda n: fsp.comb(n, 3), 2.0, 0.0),
        (lambda k: fsp.comb(1.0, k, repetition=True), 0.0, 0.0),
        (lambda k: fsp.comb(2.0, k, repetition=True), 0.0, 1.0),
        (lambda n: fsp.comb(n, 0.0, repetition=True), 0.0, 0.0),
        (lambda n: fsp.comb(n, 4.0, repetition=True), 0.0, 0.25),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ends_of_domains(derivative, fun, x, want):
    assert derivative(fun)(x) == want


@pytest.mark.parametrize("derivative", [grad, forward])
@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (fsp.gamma, -1.0),
        (fsp.loggamma, -1.5),
        (fsp.entr, -1.0),
        (lambda a: fsp.gammainc(a, 1.0), -1.0),
        (lambda a: fsp.betainc(a, 1.0, 0.5), -1.0),
        (lambda x: fsp.betainc(1.0, 1.0, x), 1.5),
        (lambda v: fsp.stdtr(v, 1.0), -1.0),
        (lambda s: fsp.zeta(s, 2.0), 0.5),
        (lambda d: fsp.pseudo_huber(d, 0.0), 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_outside_of_domains(derivative, fun, x):
    assert np.isnan(derivative(fun)(x))


# ---- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("derivative", [grad, forward])
@pytest.mark.parametrize(
    "fun",
    [
        lambda n: fsp.polygamma(n, 2.0),
        lambda n: fsp.expn(n, 2.0),
        lambda k: fsp.pdtr(k, 2.0),
        lambda k: fsp.nbdtr(k, 2.0, 0.5),
        lambda k: fsp.bdtri(k, 5, 0.5),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_integer_arguments_have_no_derivative(derivative, fun):
    with pytest.raises(NotDifferentiableError, match=r"^scipy\.special\.\w+: it has no derivative in \w+, got"):
        derivative(fun)(2.0)


def test_complex_digamma_has_no_derivative():
    with pytest.raises(NotDifferentiableError, match="complex numbers"):
        grad(lambda z: fnp.real(fsp.digamma(z)))(1 + 1j)


def test_functions_without_jax_kernel():
    with pytest.raises(InputError, match="JAX has no kernel"):
        fsp.gammaincinv(jnp.asarray(2.0), jnp.asarray(0.5))


@pytest.mark.parametrize("a", [2.0, np.array([3.0, 1.0])])
def test_multigammaln_checks_its_domain(a):
    with pytest.raises(ValueError, match="must be greater"):
        grad(lambda a: fnp.sum(fsp.multigammaln(a, 5)))(a)
    with pytest.raises(ValueError, match="positive whole number"):
        fsp.multigammaln(a, 1.5)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MissingExtraError, match=r"funcgrad\[scipy\]"):
        fsp.erf(1.0)


# ---- calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1, 0.5, [0.5, 1.0], np.float32(0.5), np.arange(1, 3), np.zeros((0, 2)), np.float16(1)])
@pytest.mark.parametrize("name", ["erf", "gammaln", "exprel", "dawsn", "erfcx", "digamma"])
def test_plain_values_match_scipy(name, x):
    got, want = getattr(fsp, name)(x), getattr(scipy.special, name)(x)
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_options_of_ufuncs():
    x, out = np.array([0.5, 1.0]), np.zeros(2)
    assert fsp.erf(x, out=out) is out
    np.testing.assert_array_equal(out, scipy.special.erf(x))
    assert fsp.erf(x, dtype=np.float32).dtype == np.float32
    assert fsp.beta(x, 2.0, out).tolist() == scipy.special.beta(x, 2.0).tolist()
    s, c = fsp.fresnel(x, out=(out, None))
    assert s is out
    np.testing.assert_array_equal(c, scipy.special.fresnel(x)[1])
    zeta = np.zeros(2)
    assert fsp.zeta(x + 1, out=zeta) is zeta

    def written(x):
        place = fnp.zeros(2)
        fsp.gamma(x, out=place)
        return fnp.sum(place)

    np.testing.assert_allclose(grad(written)(x), scipy.special.gamma(x) * scipy.special.digamma(x))
    with pytest.raises(TypeError):
        fsp.beta(x)
    with pytest.raises(TypeError):
        fsp.erf(x, nonsense=1)


def test_scipy_functions_dispatch_on_tracers():
    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(
        grad(lambda x: np.sum(scipy.special.gammaln(x)))(x), scipy.special.digamma(x), rtol=1e-15
    )
    assert vmap(grad(lambda x: scipy.special.betainc(2.0, 3.0, x)))(x / 2).shape == (2,)
    assert grad(scipy.special.zeta)(1.5) == grad(fsp.zeta)(1.5)
    assert grad(scipy.special.zeta, (0, 1))(1.5, 2.0) == grad(fsp.zeta, (0, 1))(1.5, 2.0)
    assert jvp(scipy.special.lambertw, (1.5,), (1.0,)) == jvp(fsp.lambertw, (1.5,), (1.0,))


@pytest.mark.usefixtures("written")
def test_unsupported_scipy_function_names_counterpart():
    for call, instead in (
        (lambda x: scipy.special.softmax(x), " Use funcgrad.scipy.special.softmax for scipy.special.softmax."),
        (lambda x: scipy.linalg.solve(np.eye(3), x), " Use funcgrad.scipy.linalg.solve for scipy.linalg.solve."),
    ):
        with pytest.raises(ConcretizationError, match=re.escape(instead)):
            vjp(call, np.ones(3))
    with pytest.raises(ConcretizationError) as caught:  # there is no replacement
        vjp(scipy.signal.medfilt2d, np.ones((3, 3)))
    assert "Use funcgrad.scipy" not in str(caught.value)


def test_derivative_families_pickle():
    families = (convex.exprel, error_functions.erfcx, bessel_related.struve, hypergeometric.eval_jacobi)
    for operation in (*families, incomplete.betainc):
        assert pickle.loads(pickle.dumps(operation)) is operation


def test_logsumexp_and_softmax_match_scipy():
    assert fsp.logsumexp([0.0, 0.0]) == scipy.special.logsumexp([0.0, 0.0])
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_allclose(fsp.softmax(x), scipy.special.softmax(x), rtol=1e-15)
    np.testing.assert_allclose(fsp.log_softmax(x), scipy.special.log_softmax(x), rtol=1e-15)


def test_betaln_on_jax_arrays():
    """Check ``betaln`` where JAX's version is accurate to seven digits only, with the larger argument in 8 to 50."""
    a, b = map(np.ravel, np.meshgrid([0.3, 3.0, 9.0, 10.5, 40.0], [0.7, 7.9, 8.1, 12.0, 60.0, 1e4]))
    want = np.array([float(mp.log(mp.beta(*x))) for x in zip(a, b, strict=True)])
    np.testing.assert_allclose(np.asarray(fsp.betaln(jnp.asarray(a), jnp.asarray(b))), want, rtol=2e-13, atol=1e-13)
    theirs = np.asarray(jax.scipy.special.betaln(a, b))
    assert np.max(np.abs(theirs - want)) > 1e-8, "JAX's is good now: take it"


@pytest.mark.parametrize("fun", [fsp.erf, fsp.erfc, fsp.ndtr, lambda x: fsp.log_ndtr(abs(x))])
@pytest.mark.parametrize("x", [np.inf, -np.inf, 1e100, np.float32(np.inf), -45.0])
def test_derivatives_vanish_at_infinity(fun, x):
    """Check infinite arguments, such as the outermost thresholds of a model of ordered classes."""
    for order in range(1, 5):
        fun = grad(fun) if order % 2 else forward(fun)
        with np.errstate(all="raise", under="ignore"):
            found = fun(x)
        assert found == 0
        assert found.dtype == np.asarray(x).dtype


def test_derivatives_at_ends_of_formulas():
    """Check at 0 and far to the right, where a formula divides by zero or overflows."""
    for a, slope in ((0.5, np.inf), (1.0, 1.0), (1.5, 0.0), (2.0, 0.0), (3.0, 0.0)):
        assert grad(lambda x, a=a: fsp.gammainc(a, x))(0.0) == slope
        assert grad(lambda x, a=a: fsp.gammaincc(a, x))(0.0) == -slope
    for a, second in ((1.0, -1.0), (2.0, 1.0), (2.5, 0.0), (3.0, 0.0), (7.0, 0.0)):
        assert grad(grad(lambda x, a=a: fsp.gammainc(a, x)))(0.0) == second
    slope = grad(fsp.log_ndtr)
    for x in (30.0, 38.0, 100.0, 1e4):
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        assert math.isclose(slope(x), density, rel_tol=1e-9)
        assert math.isclose(grad(slope)(x), -x * density, rel_tol=1e-6)
    np.testing.assert_allclose(grad(slope)(-1e4), -1 + 1e-8, rtol=1e-12)  # DLMF 7.8.5: 1 - 1 / x**2
    for of, end in ((fsp.xlogy, 0.0), (fsp.xlog1py, -1.0)):  # 0 for every y where x is 0
        assert grad(of, 1)(0.0, end) == grad(grad(of, 1), 1)(0.0, end) == 0.0
        with np.errstate(all="ignore"):
            assert grad(grad(of, 1))(0.0, end) == np.inf
    assert grad(fsp.kl_div, argnums=1)(0.0, 0.0) == 1.0  # along x = 0 the function is y


@pytest.mark.parametrize("order", [1, 2, 3])
def test_zeta_near_zero(order):
    f = fsp.zetac
    for _ in range(order):
        f = grad(f)
    for x in (-0.3, -0.19, -1e-3, -1e-8, 0.0, 1e-8, 0.3):
        with mp.workdps(30):
            want = float(mp.zeta(mp.mpf(x), 1, order))
        np.testing.assert_allclose(f(x), want, rtol=1e-13)


@pytest.mark.parametrize("ratio", [1e-14, 1e-10, 1e-6, 1e-3, 0.019, 0.021, 0.5])
def test_digamma_differences_are_accurate(ratio):
    """Check that digamma(a + b) - digamma(a), as in Beta and Pochhammer's symbol, does not cancel for small b."""
    for a in (1e-6, 0.02, 0.5, 7.3, 100.5, 1e4):
        b = a * ratio
        with mp.workdps(50):
            step = mp.digamma(mp.mpf(a) + mp.mpf(b)) - mp.digamma(a)
            curved = mp.psi(1, a) - mp.psi(1, mp.mpf(a) + mp.mpf(b))
            wanted = [-step, -step * mp.beta(a, b), step * mp.rf(a, b)]
        found = [grad(fun)(a, b) for fun in (fsp.betaln, fsp.beta, fsp.poch)]
        np.testing.assert_allclose(found, [float(x) for x in wanted], rtol=1e-8)
        np.testing.assert_allclose(found[0], float(wanted[0]), rtol=1e-11)
        np.testing.assert_allclose(grad(grad(fsp.betaln))(a, b), float(curved), rtol=1e-9)
        np.testing.assert_allclose(jvp(lambda a, b=b: fsp.betaln(a, b), (a,), (1.0,))[1], float(wanted[0]), rtol=1e-11)


@pytest.mark.filterwarnings("ignore:floating point number truncated", "ignore:non-integer arg n:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("yn", [0.5]),
        ("kn", [-1.5]),
        ("expn", [0.5]),
        ("expn", [1.7]),
        ("pdtri", [-0.5]),
        ("bdtr", [2.4, 5.6]),
        ("bdtrc", [2.4, 5.6]),
        ("bdtri", [2.4, 5.6]),
        ("nbdtr", [2.6, 5.6]),
        ("nbdtrc", [-0.5, 5.6]),
        ("nbdtri", [2.6, 5.6]),
        ("smirnov", [5.6]),
    ],
)
def test_counts_are_truncated_like_scipy(name, counts):
    fun, at = getattr(fsp, name), len(counts)
    for x in (0.3, 0.7):
        np.testing.assert_equal(fun(*counts, x), fun(*np.trunc(counts), x))
        want = grad(fun, at)(*[int(n) for n in counts], x)
        assert grad(fun, at)(*counts, x) == pytest.approx(want, rel=1e-14)
        assert jacfwd(fun, at)(*counts, x) == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("pdtrik", (0.1, 1.5), 0.0),
        ("nbdtrik", (0.1, 2.0, 0.5), 0.0),
        ("bdtrik", (0.1, 3.0, 0.5), 0.0),
        ("fdtridfd", (0.3, 0.98, 0.8), 1e100),
        ("stdtridf", (0.9, 0.3), 1e10),
        ("stdtridf", (0.5, 2.58), 5e-51),
        ("tklmbda", (0.3, 7.0), 1.0),
        ("tklmbda", (-0.9, 2.0), 0.0),
    ],
)
def test_derivatives_are_zero_beyond_search_range(name, args, value):
    fun = getattr(fsp, name)
    assert fun(*args) == value
    assert grad(fun, tuple(range(len(args))))(*args) == (0,) * len(args)
    assert grad(grad(fun))(*args) == 0


def test_bdtrik_derivative():
    def probability(k, n, p):
        return mp.betainc(n - k, k + 1, 0, 1 - p, regularized=True)

    y, n, p = 0.6, 9.0, 0.4
    k = fsp.bdtrik(y, n, p)
    slopes = [mp.diff(probability, (k, n, p), order) for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    want = np.array([1 / slopes[0], -slopes[1] / slopes[0], -slopes[2] / slopes[0]], float)
    np.testing.assert_allclose(grad(fsp.bdtrik, (0, 1, 2))(y, n, p), want, rtol=1e-7)


def kolmogorov(y):
    return 2 * sum((-1) ** (j - 1) * mp.exp(-2 * (j * y) ** 2) for j in range(1, 60))


@pytest.mark.parametrize("y", [-1.0, 0.0, 0.01, 0.2, 0.99, 1.01, 4.0])
def test_kolmogorov(y):
    fun = fsp.kolmogorov
    for order in (1, 2, 3):
        fun = grad(fun)
        with mp.workdps(DIGITS):
            want = mp.diff(kolmogorov, mp.mpf(y), order) if y > 0.1 else 0
        assert fun(y) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(1, 0.3), (5, 0.05), (5, 0.62), (40, 0.2), (700, 0.03), (3, -0.1), (3, 1.2)])
def test_smirnov(n, d):
    def exact(d):
        count = int(mp.floor(n * (1 - mp.mpf(point))))
        x = [mp.mpf(j) / n for j in range(count + 1)]
        return sum(mp.binomial(n, j) * d * (d + x[j]) ** (j - 1) * (1 - d - x[j]) ** (n - j) for j in range(count + 1))

    fun, point = fsp.smirnov, d
    for order in (1, 2, 3):
        fun = grad(fun, 1)
        with mp.workdps(DIGITS):
            want = mp.diff(exact, mp.mpf(d), order) if 0 < d < 1 else 0
        assert fun(n, d) == pytest.approx(float(want), rel=1e-11)
    assert grad(fsp.smirnovi, 1)(5, 0.4) == pytest.approx(1 / grad(fsp.smirnov, 1)(5, fsp.smirnovi(5, 0.4)))
    with pytest.raises(NotDifferentiableError, match="whole number"):
        grad(fsp.smirnov)(5.0, 0.3)


def test_operations_pickle_by_name():
    for found in pkgutil.iter_modules(operations.__path__, f"{operations.__name__}."):
        module = import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(getattr(value, "primitive", None), Primitive) and value.__module__ == found.name:
                assert pickle.loads(pickle.dumps(value)) is value, name


@pytest.mark.parametrize("name", ["cbrt", "exp2", "expm1", "log1p"])
@pytest.mark.parametrize("x", [np.uint8([0, 1, 2]), np.array([True, False]), np.float16([0.3, 0.7])], ids=repr)
def test_narrow_dtypes_compute_in_double_as_scipy(name, x):
    close_leaves(getattr(fsp, name)(x), getattr(scipy.special, name)(x), rtol=1e-15)
    assert getattr(fsp, name) is not getattr(fnp, name)
    np.testing.assert_array_equal(grad(getattr(fsp, name))(0.5), grad(getattr(fnp, name))(0.5))


@pytest.mark.parametrize("x", [np.uint8([0, 1, 2]), [0, 1, 2], np.float16([0.3, 0.7])], ids=repr)
def test_shifted_polynomials_of_small_integers_and_lists(x):
    for name in ("eval_sh_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_chebyc", "eval_chebys"):
        np.testing.assert_allclose(getattr(fsp, name)(3, x), getattr(scipy.special, name)(3, x), rtol=1e-6)
    got, want = (m.eval_sh_jacobi(np.uint8(130), np.uint8(3), np.uint8(2), [0.0, 0.5]) for m in (fsp, scipy.special))
    assert np.isfinite(want).all()
    np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "argnum", "point"),
    [
        ("gammaincinv", 0, (2.0, 0.0)),
        ("gammainccinv", 0, (0.5, 1.0)),
        ("betaincinv", 1, (2.3, 12.0, 1.0)),
        ("betainccinv", 0, (150.3, 35.7, 0.0)),
        ("gdtrix", 1, (3.0, 35.7, 0.0)),
        ("chdtri", 0, (2.3, 1.0)),
    ],
)
def test_quantiles_at_an_end_of_the_support_do_not_depend_on_the_shape(name, argnum, point):
    assert grad(getattr(fsp, name), argnum)(*point) == 0.0


@pytest.mark.parametrize("point", [(1.5, -1.5), (2.5, -3.5), (0.5, -0.5), (-1.5, -0.5)])
def test_beta_at_its_zeros(point):
    with mp.workdps(DIGITS):
        first, second = [mp.diff(lambda v: mp.beta(v, point[1]), mp.mpf(point[0]) + mp.mpf("1e-25"), n) for n in (1, 2)]
    for i, args in ((0, point), (1, point[::-1])):
        for mode in (grad, jacfwd):
            assert mode(fsp.beta, i)(*args) == pytest.approx(float(first), rel=1e-13)
        assert grad(grad(fsp.beta, i), i)(*args) == pytest.approx(float(second), rel=1e-11)


def test_beta_between_two_poles():
    """Check ``beta(a, n) = 1 / (a (a + 1) ...)`` for whole n, where ``gamma(a)`` and ``gamma(a + n)`` are infinite."""
    for a, n, exact in ((-1.0, 1.0, (-1.0, -2.0)), (-2.0, 2.0, (0.75, 1.75))):
        slope = grad(fsp.beta)
        np.testing.assert_allclose([slope(a, n), grad(slope)(a, n)], exact, rtol=1e-13)
        assert grad(fsp.betaln)(a, n) == pytest.approx(exact[0] / fsp.beta(a, n), rel=1e-13)
    np.testing.assert_allclose(vmap(slope, (0, None))(np.array([-2.0, 1.5]), 2.0), [0.75, slope(1.5, 2.0)], rtol=1e-13)


@pytest.mark.parametrize("z", [1e-20 + 1e-20j, -1e-12 + 1e-7j, 1e-8j, -0.5 + 0.8j, 3.0 + 4.0j])
def test_logarithms_of_complex_numbers_near_one(z):
    with mp.workdps(DIGITS):
        value, slope = complex(mp.log(1 + mp.mpc(z))), complex(1 / (1 + mp.mpc(z)))
    for fun in (scipy.special.log1p, fsp.log1p, lambda z: fsp.xlog1py(1.0, z)):
        found = jvp(fun, (z,), (1.0 + 0.0j,))
        for got, want in zip(found, (value, slope), strict=True):
            assert got.real == pytest.approx(want.real, rel=1e-14)
            assert got.imag == pytest.approx(want.imag, rel=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_noncentral_densities_where_factors_overflow():
    """Check points at which SciPy's compiled density raises: a power of the tail, and the slope of the tail."""
    x, df, nc = 1e200, 0.5, 2.0
    assert grad(fsp.nctdtr, 2)(df, nc, x) == pytest.approx(df / x * (1 - fsp.nctdtr(df, nc, x)), rel=1e-6)
    assert grad(fsp.nctdtr, 2)(df, nc, -x) == pytest.approx(df / x * fsp.nctdtr(df, nc, -x), rel=1e-9)
    assert grad(fsp.nctdtr, 2)(1e6, 1.0, 30.0) < 1e-100
    x, dfn = 1e-300, 0.001
    assert grad(fsp.ncfdtr, 3)(dfn, 1e6, 1.0, x) == pytest.approx(dfn / 2 / x * fsp.ncfdtr(dfn, 1e6, 1.0, x), rel=1e-9)
    assert np.isfinite([grad(fsp.chndtr, i)(1e-300, 3.0, 1000.0) for i in range(3)]).all()


@pytest.mark.parametrize(
    "n",
    [2.5, np.array([-2.5, 0.5, 4.0]), np.array([1.5 + 1.0j, -0.5j]), np.ones(2, np.float32), np.array([2.0 + 1.0j])],
)
def test_factorial_of_complex_and_negative_numbers(n):
    factorial = lambda x: scipy.special.factorial(x, extend="complex")
    got, slope = jvp(factorial, (n,), (np.ones_like(n)[()],))
    np.testing.assert_allclose(got, factorial(n), rtol=1e-14 if got.dtype.itemsize > 4 else 1e-6)
    assert got.dtype == factorial(n).dtype
    np.testing.assert_allclose(slope, scipy.special.gamma(n + 1) * scipy.special.psi(n + 1), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("fun", "normal", "x"),
    [
        (lambda t: fsp.stdtr(math.inf, t), fsp.ndtr, 1.3),
        (lambda p: fsp.stdtrit(math.inf, p), fsp.ndtri, 0.3),
        (lambda t: fsp.nctdtr(math.inf, 0.5, t), lambda t: fsp.ndtr(t - 0.5), 1.3),
        (lambda nc: fsp.nctdtr(math.inf, nc, 1.3), lambda nc: fsp.ndtr(1.3 - nc), 0.5),
        (lambda df: fsp.stdtr(df, 1.3), lambda df: 0.0 * df, math.inf),
    ],
)
def test_student_distributions_with_infinitely_many_degrees_of_freedom_are_normal(fun, normal, x, order):
    derive = grad if order == 1 else lambda f: grad(grad(f))
    assert derive(fun)(x) == pytest.approx(0.0 if x == math.inf else derive(normal)(x), rel=1e-9)


@pytest.mark.parametrize(("fun", "order"), [(fsp.rgamma, 1), (fsp.log_ndtr, 2), (fsp.spence, 2)])
@pytest.mark.parametrize("z", [1.3 + 0.4j, -1.2 + 0.7j, 0.3 - 0.2j])
def test_derivatives_at_a_complex_number_of_python(fun, order, z):
    slope = lambda z: jvp(fun, (z,), (1.0 + 0.0j,))[1]
    for f in (fun, slope)[:order]:
        want = (f(z + 1e-5) - f(z - 1e-5)) / 2e-5
        assert jvp(f, (z,), (1.0 + 0.0j,))[1] == pytest.approx(want, rel=1e-7)


def test_factorial_at_its_poles():
    factorial = lambda x: scipy.special.factorial(x, extend="complex")
    n = np.array([-1.0, -2.0, 0.0])
    got = vjp(factorial, n)[0]
    np.testing.assert_array_equal(got, factorial(n))
    assert np.isnan(grad(factorial)(-1.0))
    assert np.isnan(jvp(factorial, (-1.0,), (1.0,))[1])
    with pytest.raises(InputError, match="exact=True is for plain integers"):
        grad(lambda x: scipy.special.factorial(x, exact=True))(3.0)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
@pytest.mark.parametrize("derivative", [False, True])
def test_spherical_functions_truncate_orders(name, derivative):
    fun, z = getattr(scipy.special, name), np.array([0.5, 1.7, 4.0])
    n = np.array([0.5, 1.0, 2.9])
    got, slope = jvp(lambda z: fun(n, z, derivative), (z,), (np.ones(3),))
    np.testing.assert_allclose(got, fun(n, z, derivative), rtol=1e-13)
    want = jvp(lambda z: fun(np.array([0, 1, 2]), z, derivative), (z,), (np.ones(3),))[1]
    np.testing.assert_allclose(slope, want, rtol=1e-13)


def test_third_derivatives_of_betainc_and_stdtr():
    def along(fun, i):
        return lambda *args: jvp(
            fun, args, tuple([np.ones_like(a) if i == j else np.zeros_like(a) for j, a in enumerate(args)])
        )[1]

    a, b, x = np.array([0.7, 2.5]), np.array([1.5, 0.6]), np.array([0.3, 0.8])
    of_both = along(along(fsp.betainc, 0), 1)
    step = 1e-4 * np.ones(2)
    want = (of_both(a, b, x + step) - of_both(a, b, x - step)) / 2e-4
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        fun = fsp.betainc
        for i in order:
            fun = along(fun, i)
        np.testing.assert_allclose(fun(a, b, x), want, rtol=1e-5)
    v, t = np.array([2.5, 30.0]), np.array([0.7, -1.2])
    density = along(along(lambda v, t: scipy.stats.t.pdf(t, v), 0), 0)(v, t)
    np.testing.assert_allclose(along(along(along(fsp.stdtr, 0), 0), 1)(v, t), density, rtol=1e-9)


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
@pytest.mark.parametrize("z", [1.3 + 0.4j, 900.0 + 3.0j, 0.3 - 700.0j])
def test_orders_of_scaled_bessel_functions_at_complex_points(name, z):
    """Such a function is analytic in the order, but not in a complex z."""
    fun = getattr(fsp, name)
    of_order = lambda v: getattr(scipy.special, name)(v, z)
    slope = lambda v: jvp(lambda v: fun(v, z), (v,), (1.0,))[1]
    size, step = abs(of_order(1.7)), 1e-4
    assert abs(slope(1.7) - (of_order(1.7 + step) - of_order(1.7 - step)) / (2 * step)) < 1e-6 * size
    assert abs(jvp(slope, (1.7,), (1.0,))[1] - (slope(1.7 + step) - slope(1.7 - step)) / (2 * step)) < 1e-6 * size
    with pytest.raises(NotDifferentiableError, match="no derivative in complex z, got a traced complex z"):
        jvp(lambda x: fun(1.7, x + 1j), (z.real,), (1.0,))


def test_complex_airye_has_no_derivative():
    with pytest.raises(NotDifferentiableError, match="no derivative in complex z, got a traced complex z"):
        jvp(lambda z: scipy.special.airye(z)[0], (1.0 + 1.0j,), (1.0 + 0.0j,))


def test_second_derivatives_of_integrals_at_the_python_number_0():
    """The other integral, which is infinite there, must not raise Python's ZeroDivisionError."""
    push = lambda f: lambda x: jvp(f, (x,), (1.0,))[1]
    with np.errstate(all="ignore"):
        assert push(push(lambda x: fsp.shichi(x)[0]))(0.0) == 0
        assert math.isinf(grad(grad(fsp.exp1))(0.0))
