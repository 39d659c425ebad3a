"""Distribution functions of ``scipy.special``, and their inverses in every argument.

Nearly all are incomplete gamma or beta functions, so their partial derivatives are made of those of ``gammainc`` and
``betainc`` and of the densities. The inverse in an argument takes the probability in place of that argument; its
derivatives follow from the same partial derivatives by the implicit function theorem.

Student's function is differentiable in the degrees of freedom to any order. The derivatives of ``stdtr(df, t)`` in df
are integrals of the density times Bell's polynomials in the derivatives of its logarithm. They are 0 at infinity and at
t = 0. Therefore ``tail`` integrates the tail beyond t for abs(t) > 1, otherwise the part between 0 and t, both in the
logarithm of t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy, private_special, special
from funcgrad.primitives.arithmetic import minimum, power
from funcgrad.primitives.comparison import floor, isinf, less, logical_or, where
from funcgrad.primitives.elementwise import cos, exp, expm1, log, log1p
from funcgrad.scipy.special.operations.convex import boxcox_slope
from funcgrad.scipy.special.operations.error_functions import ndtr, ndtri
from funcgrad.scipy.special.operations.incomplete import (
    DEPTH,
    beta_density,
    betainc_parameter,
    gamma_density,
    gammainc_parameter,
    polynomial,
    tail,
)
from funcgrad.scipy.special.operations.partials import (
    Partials,
    derivatives,
    difference_quotient,
    distribution,
    in_double,
    inverse,
    pointwise,
    polygamma,
    refused,
    scipy_operation,
    summed,
    whole,
)


def _private(name: str) -> Callable[..., Any]:
    """Return the ``impl`` that calls the private function ``name`` of ``scipy.special``."""
    return lambda xp, *args: private_special(xp, name)(*args)


# ---- incomplete gamma functions ------------------------------------------------------------------------------

CHI_SQUARE: Partials = (
    lambda v, x: 0.5 * gammainc_parameter(0.5 * v, 0.5 * x, order=1),
    lambda v, x: 0.5 * gamma_density(0.5 * v, 0.5 * x),
)
GAMMA: Partials = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gammainc_parameter(b, a * x, order=1),
    lambda a, b, x: a * gamma_density(b, a * x),
)
#: Partial derivative in the mean. The count is a whole number here; in ``POISSON_REAL``, for its inverse, it is real.
POISSON: Partials = ("k", lambda k, m: -gamma_density(floor(k) + 1, m))
POISSON_REAL: Partials = (lambda k, m: -gammainc_parameter(k + 1, m, order=1), lambda k, m: -gamma_density(k + 1, m))

chdtr: Operation = distribution("chdtr", CHI_SQUARE, lambda xp, v, x: special(xp, "gammainc")(v / 2, x / 2))
chdtrc: Operation = distribution("chdtrc", CHI_SQUARE, lambda xp, v, x: special(xp, "gammaincc")(v / 2, x / 2), -1.0)
chdtri: Operation = inverse("chdtri", CHI_SQUARE, 1, -1.0)
chdtriv: Operation = inverse("chdtriv", CHI_SQUARE, 0)
gdtr: Operation = distribution("gdtr", GAMMA, lambda xp, a, b, x: special(xp, "gammainc")(b, a * x))
gdtrc: Operation = distribution("gdtrc", GAMMA, lambda xp, a, b, x: special(xp, "gammaincc")(b, a * x), -1.0)
gdtria: Operation = inverse("gdtria", GAMMA, 0)
gdtrib: Operation = inverse("gdtrib", GAMMA, 1)
gdtrix: Operation = inverse("gdtrix", GAMMA, 2)
pdtr: Operation = distribution("pdtr", POISSON, lambda xp, k, m: special(xp, "gammaincc")(xp.floor(k) + 1, m))
pdtrc: Operation = distribution("pdtrc", POISSON, lambda xp, k, m: special(xp, "gammainc")(xp.floor(k) + 1, m), -1.0)
pdtri: Operation = inverse("pdtri", ("k", lambda k, m: -gamma_density(whole(k) + 1, m)), 1)
pdtrik: Operation = inverse("pdtrik", POISSON_REAL, 0, searched=True)

# ---- incomplete beta functions -------------------------------------------------------------------------------


def _ratio(n: Any, d: Any, x: Any) -> Any:
    """Return the point at which ``fdtr`` evaluates the incomplete beta function."""
    return n * x / (d + n * x)


def _ratio_density(n: Any, d: Any, x: Any) -> Any:
    """Return the beta density at ``_ratio`` over ``(d + n * x)**2``, from the smaller of ratio and 1 - ratio."""
    above, total = n * x, d + n * x
    upper = less(d, above)
    first, second = where(upper, d, n), where(upper, n, d)
    return beta_density(0.5 * first, 0.5 * second, where(upper, d, above) / total) / total / total


FISHER: Partials = (
    lambda n, d, x: (
        0.5 * betainc_parameter(0.5 * n, 0.5 * d, _ratio(n, d, x), orders=(1, 0)) + d * x * _ratio_density(n, d, x)
    ),
    lambda n, d, x: (
        0.5 * betainc_parameter(0.5 * n, 0.5 * d, _ratio(n, d, x), orders=(0, 1)) - n * x * _ratio_density(n, d, x)
    ),
    lambda n, d, x: n * d * _ratio_density(n, d, x),
)


def _binomial_slope(k: Any, n: Any, p: Any) -> Any:
    """Return the derivative of ``bdtr`` in p; 0 for k >= n, because there are never more than n events."""
    k, n = floor(k), whole(n)
    all_events = less(n, k + 1)
    return where(all_events, 0, -beta_density(k + 1, where(all_events, 1, n - k), p))


BINOMIAL: Partials = ("k", "n", _binomial_slope)
#: Partial derivatives for the inverses in the numbers of events and trials, which are real numbers there.
BINOMIAL_REAL: Partials = (
    lambda k, n, p: (
        betainc_parameter(n - k, k + 1, 1 - p, orders=(0, 1)) - betainc_parameter(n - k, k + 1, 1 - p, orders=(1, 0))
    ),
    lambda k, n, p: betainc_parameter(n - k, k + 1, 1 - p, orders=(1, 0)),
    lambda k, n, p: -beta_density(k + 1, n - k, p),
)
NEGATIVE_BINOMIAL_REAL: Partials = (
    lambda k, n, p: betainc_parameter(n, k + 1, p, orders=(0, 1)),
    lambda k, n, p: betainc_parameter(n, k + 1, p, orders=(1, 0)),
    lambda k, n, p: beta_density(n, k + 1, p),
)
NEGATIVE_BINOMIAL: Partials = ("k", "n", lambda k, n, p: beta_density(whole(n), whole(k) + 1, p))


def _of_ratio(xp: Any, n: Any, d: Any, x: Any) -> Any:
    return special(xp, "betainc")(n / 2, d / 2, _ratio(n, d, x))


def _binomial_of_jax(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """Compute ``bdtrc`` on JAX arrays."""
    k, n = xp.floor(k), xp.trunc(n)
    return xp.where(k >= n, 0.0, special(xp, "betainc")(k + 1, xp.maximum(n - k, 1), p))


fdtr: Operation = distribution("fdtr", FISHER, _of_ratio)
fdtrc: Operation = distribution("fdtrc", FISHER, lambda xp, n, d, x: _of_ratio(xp, d, n, 1 / x), -1.0)
fdtri: Operation = inverse("fdtri", FISHER, 2)
fdtridfd: Operation = inverse("fdtridfd", FISHER, 1, searched=True)
bdtr: Operation = distribution("bdtr", BINOMIAL, lambda xp, k, n, p: 1 - _binomial_of_jax(xp, k, n, p))
bdtrc: Operation = distribution("bdtrc", BINOMIAL, _binomial_of_jax, -1.0)
bdtri: Operation = inverse("bdtri", BINOMIAL, 2)
nbdtr: Operation = distribution(
    "nbdtr", NEGATIVE_BINOMIAL, lambda xp, k, n, p: special(xp, "betainc")(xp.trunc(n), xp.trunc(k) + 1, p)
)
nbdtrc: Operation = distribution(
    "nbdtrc", NEGATIVE_BINOMIAL, lambda xp, k, n, p: special(xp, "betainc")(xp.trunc(k) + 1, xp.trunc(n), 1 - p), -1.0
)
nbdtri: Operation = inverse("nbdtri", NEGATIVE_BINOMIAL, 2)
bdtrik: Operation = inverse("bdtrik", BINOMIAL_REAL, 0, searched=True)
bdtrin: Operation = inverse("bdtrin", BINOMIAL_REAL, 1, searched=True)
nbdtrik: Operation = inverse("nbdtrik", NEGATIVE_BINOMIAL_REAL, 0, searched=True)
nbdtrin: Operation = inverse("nbdtrin", NEGATIVE_BINOMIAL_REAL, 1, searched=True)

# ---- Kolmogorov's and Smirnov's distributions ---------------------------------------------------------------


def _kolmogorov(xp: Any, y: Any, order: int) -> Any:
    """Return the derivative of order 1 or more of ``kolmogorov``.

    For y > 1 it differentiates the sum of ``exp(-2 j**2 y**2)`` with alternating signs. Below, it differentiates the
    sum that Poisson's formula gives: ``exp(-c / y**2) / y``, where c is ``(2 j - 1)**2 pi**2 / 8``.
    """
    large = xp.where(y > 1, xp.minimum(y, 30.0), 1)  # beyond 30, the terms underflow
    small = xp.where((y > 0.03) & (y <= 1), y, 1)
    far, near = 0.0, 0.0
    for j in range(1, 8):
        s = math.sqrt(2) * j
        before, hermite = 0.0, 1.0
        for n in range(order):
            before, hermite = hermite, 2 * s * large * hermite - 2 * n * before
        far = far - 2 * (-1) ** j * (-s) ** order * hermite * xp.exp(-(s * s) * large * large)
        c, powers = ((2 * j - 1) * math.pi) ** 2 / 8, {1: 1.0}
        for _ in range(order):
            raised: dict[int, float] = {}
            for m, factor in powers.items():
                raised[m + 1] = raised.get(m + 1, 0.0) - m * factor
                raised[m + 3] = raised.get(m + 3, 0.0) + 2 * c * factor
            powers = raised
        near = near - sum([factor * small**-m for m, factor in powers.items()]) * xp.exp(-c / small**2)
    return xp.where(y > 1, far, xp.where(y > 0.03, math.sqrt(2 * math.pi) * near, 0.0))


#: ``kolmogorov(y, *, order)``: see ``derivatives``.
kolmogorov: Operation = derivatives("kolmogorov", lambda xp, y: special(xp, "kolmogorov")(y), _kolmogorov)
kolmogi: Operation = scipy_operation("kolmogi", dx=lambda ans: 1 / kolmogorov(ans, order=1))
#: Kolmogorov's distribution function, which is private in SciPy, and its inverse.
kolmogc: Operation = elementwise("kolmogc", _private("_kolmogc"), dx=lambda x: -kolmogorov(x, order=1))
kolmogci: Operation = elementwise("kolmogci", _private("_kolmogci"), dx=lambda ans: -1 / kolmogorov(ans, order=1))


def _falling(x: Any, count: int) -> Any:
    return math.prod([x - i for i in range(count)])


def _smirnov_slope(n: Any, d: Any, order: int) -> Any:
    """Return the derivative of this order in d: Birnbaum's and Tingey's formula, differentiated term by term.

    The terms are ``comb(n, j) * d * (d + j / n)**(j - 1) * (1 - d - j / n)**(n - j)``, for all j below ``n * (1 - d)``.
    """
    n, d = np.broadcast_arrays(np.trunc(n), d)
    inside = (d > 0) & (d < 1) & (n > 0)
    n, d, gammaln = np.where(inside, n, 1.0), np.where(inside, d, 0.5), special(np, "gammaln")

    def term(j: Any) -> Any:
        left, right = d + j / n, 1 - d - j / n
        live = right > 0
        right, rest = np.where(live, right, 1.0), np.where(live, n - j, 0.0)
        size = gammaln(n + 1) - gammaln(j + 1) - gammaln(rest + 1) + (j - 1) * np.log(left) + rest * np.log(right)
        total = 0.0
        for i in range(order + 1):
            first = d * _falling(j - 1, i) / left**i
            first = first + i * _falling(j - 1, i - 1) / left ** (i - 1) if i else first
            second = _falling(rest, order - i) / (-right) ** (order - i)
            total = total + math.comb(order, i) * first * second
        return np.where(live, total * np.exp(size), 0.0)

    return np.where(inside, summed(term, int(np.max(n, initial=0)), d), 0.0)


def _smirnov(xp: Any, n: Any, d: Any, *, order: int) -> Any:
    value = special(xp, "smirnov")  # raises for JAX arrays: JAX has no such function
    return in_double(np, lambda n, d: _smirnov_slope(n, d, order), n, d) if order else value(n, d)


_SIZE = "It is a whole number: pass it as a constant"
#: ``smirnov(n, d, *, order)``: derivative of this order in d.
smirnov: Operation = pointwise(
    "smirnov", _smirnov, refused("smirnov", "n", _SIZE), lambda n, d, *, order: smirnov(n, d, order=order + 1)
)
smirnovi: Operation = scipy_operation(
    "smirnovi", dx=refused("smirnovi", "n", _SIZE), dy=lambda x, ans: 1 / smirnov(x, ans, order=1)
)
smirnovc: Operation = elementwise(
    "smirnovc", _private("_smirnovc"), dx=refused("smirnov", "n", _SIZE), dy=lambda x, y: -smirnov(x, y, order=1)
)
smirnovci: Operation = elementwise(
    "smirnovci",
    _private("_smirnovci"),
    dx=refused("smirnovi", "n", _SIZE),
    dy=lambda x, ans: -1 / smirnov(x, ans, order=1),
)

# ---- distributions that SciPy keeps for itself ----------------------------------------------------------------


def _landau(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of the density, which falls like ``exp(-exp(-x))`` to the left."""
    fun = _of_landau("pdf")
    rate = 1 + xp.exp(xp.minimum(-1.6 * x, 5.0)) / (1 + xp.maximum(x, 0))
    return difference_quotient(xp, lambda x: fun(xp, x), [x], [rate], [order])


def _of_landau(name: str) -> Callable[..., Any]:
    standard = _private(f"_landau_{name}")
    return lambda xp, x: standard(xp, x, 0.0, 1.0)


#: ``landau_density(x, *, order)``: see ``derivatives``.
landau_density: Operation = derivatives("landau_density", _of_landau("pdf"), _landau)
landau_cdf: Operation = elementwise("landau_cdf", _of_landau("cdf"), dx=lambda x: landau_density(x, order=0))
landau_sf: Operation = elementwise("landau_sf", _of_landau("sf"), dx=lambda x: -landau_density(x, order=0))
landau_ppf: Operation = elementwise("landau_ppf", _of_landau("ppf"), dx=lambda ans: 1 / landau_density(ans, order=0))
landau_isf: Operation = elementwise("landau_isf", _of_landau("isf"), dx=lambda ans: -1 / landau_density(ans, order=0))


def _upper_of_two(h: float, k: float, r: float) -> Any:
    """Compute ``_bvnu`` by the Fortran code of SciPy 1.15, without its lock, which the calling SciPy code may hold."""
    home = import_scipy("stats.multivariate_normal", "scipy.stats._mvn")
    bounds, options = ([h, k], [np.inf, np.inf]), (2000, 1e-5, 1e-5)  # two variables do not need the options
    return home.mvnun(*bounds, [0.0, 0.0], [[1.0, r], [r, 1.0]], *options)[0]


def _bivariate(xp: Any, h: Any, k: Any, r: Any) -> Any:
    newer = getattr(import_scipy("stats.multivariate_normal", "scipy.special._ufuncs"), "_bivariate_normal_cdf", None)
    if newer is not None:  # since SciPy 1.18; it also returns the probability above h and k
        return newer(h, k, r, dtype=np.float64)
    home = import_scipy("stats.multivariate_normal", "scipy.stats._stats_pythran")
    with np.errstate(divide="ignore", invalid="ignore"):  # Fortran divided without warnings, this code would warn
        return np.vectorize(getattr(home, "_bvnu", _upper_of_two), [np.float64])(h, k, r)[()]


def _beyond(x: Any, y: Any, z: Any) -> Any:
    """Return the derivative of ``bivariate_upper`` in its first argument."""
    far, all_or_nothing = isinf(x), isinf(y)
    h, k = where(far, 0.0, x), where(all_or_nothing, 0.0, y)
    density = where(far, 0.0, exp(-0.5 * h * h) / math.sqrt(2 * math.pi))
    return -density * where(all_or_nothing, where(less(y, 0), 1.0, 0.0), ndtr((z * h - k) / power(1 - z * z, 0.5)))


def _density_of_two(x: Any, y: Any, z: Any) -> Any:
    far = logical_or(isinf(x), isinf(y))
    h, k, rest = where(far, 0.0, x), where(far, 0.0, y), 1 - z * z
    density = exp(-0.5 * (h * h - 2 * z * h * k + k * k) / rest) / (2 * math.pi * power(rest, 0.5))
    return where(far, 0.0, density)


#: ``bivariate_upper(h, k, r)``: probability that two normal variables of correlation r are above h and k.
bivariate_upper: Operation = elementwise(
    "bivariate_upper",
    _bivariate,
    dx=lambda x, y, z: _beyond(x, y, z),
    dy=lambda x, y, z: _beyond(y, x, z),
    dz=lambda x, y, z: _density_of_two(x, y, z),
)
#: Quantile function of the cosine distribution, whose density is ``(1 + cos(x)) / (2 pi)``.
cosine_ppf: Operation = elementwise(
    "cosine_ppf", _private("_cosine_invcdf"), dx=lambda ans: math.pi / cos(0.5 * ans) ** 2
)

# ---- others --------------------------------------------------------------------------------------------------


def _quantile_slope(ans: Any) -> Any:
    """Return the derivative of ``ndtri`` where its value is ``ans``."""
    return math.sqrt(2 * math.pi) * exp(0.5 * ans * ans)


#: Mean and deviation of a normal distribution: ``x - std ndtri(p)``, ``(x - mn) / ndtri(p)``.
nrdtrimn: Operation = scipy_operation(
    "nrdtrimn",
    lambda xp, p, std, x: x - std * special(xp, "ndtri")(p),
    dx=lambda x, y: -y * _quantile_slope(ndtri(x)),
    dy=lambda x: -ndtri(x),
    dz=1,
)
nrdtrisd: Operation = scipy_operation(
    "nrdtrisd",
    lambda xp, mn, p, x: (x - mn) / special(xp, "ndtri")(p),
    dx=lambda y: -1 / ndtri(y),
    dy=lambda y, ans: -ans * _quantile_slope(ndtri(y)) / ndtri(y),
    dz=lambda y: 1 / ndtri(y),
)


def _within(ans: Any, slope: Callable[[Any], Any]) -> Any:
    """Return ``slope(ans)``; 0 where the result is exactly 0 or 1, beyond the ends of the distribution."""
    certain = logical_or(ans == 0, ans == 1)
    return where(certain, 0, slope(where(certain, 0.5, ans)))


def _tukey_rate(y: Any, ans: Any) -> Any:
    """Return the derivative of the quantile function ``boxcox(p, y) - boxcox(1 - p, y)`` in p."""
    return power(ans, y - 1) + power(1 - ans, y - 1)


tklmbda: Operation = scipy_operation(
    "tklmbda",
    dx=lambda y, ans: _within(ans, lambda p: 1 / _tukey_rate(y, p)),
    dy=lambda y, ans: _within(
        ans, lambda p: (boxcox_slope(log1p(-p), y) - boxcox_slope(log(p), y)) / _tukey_rate(y, p)
    ),
)


#: Coefficients of ``log(gamma((v+1)/2) / gamma(v/2) / sqrt(v/2))`` at the powers 1, 3, 5, ... of 1/v.
_RATIO = (-1 / 4, 1 / 24, -1 / 20, 17 / 112, -31 / 36, 691 / 88)
_LARGE = 40.0


def _log_ratio(xp: Any, v: Any, order: int) -> Any:
    """Return the derivative of this order of ``log(gamma((v+1)/2) / gamma(v/2) / sqrt(v/2))``."""
    large = v > _LARGE
    near, far = xp.where(large, 1, v), xp.where(large, v, _LARGE)
    series = 0
    for i, c in reversed(list(enumerate(_RATIO))):
        factor = (-1) ** order * math.factorial(2 * i + order) // math.factorial(2 * i)
        series = series / (far * far) + c * factor
    series = series / far ** (order + 1)
    if order == 0:
        gammaln = special(xp, "gammaln")
        exact = gammaln((near + 1) / 2) - gammaln(near / 2) - xp.log(near / 2) / 2
    else:
        exact = polygamma(xp, order - 1, (near + 1) / 2) - polygamma(xp, order - 1, near / 2)
        exact = exact / 2**order + (-1) ** order * math.factorial(order - 1) / (2 * near**order)
    return xp.where(large, series, exact)


#: Degrees of freedom with which Student's distribution is normal in double precision; infinitely many count as these.
#: Single precision can hold the number.
MANY_DEGREES = 1e30


def _density(xp: Any, v: Any, t: Any) -> Any:
    def compute(v: Any, t: Any) -> Any:
        inside = v > 0
        w = xp.where(inside, xp.minimum(v, MANY_DEGREES), 1)
        log_density = _log_ratio(xp, w, 0) - (w + 1) / 2 * xp.log1p(t * t / w) - math.log(2 * math.pi) / 2
        return xp.where(inside, xp.exp(log_density), math.nan)

    return in_double(xp, compute, v, t)


#: ``student_constant(v, *, order)``: derivative of this order of the logarithm of the density's constant.
student_constant: Operation = derivatives("student_constant", None, _log_ratio)


def _density_slope(v: Any, t: Any) -> Any:
    """Return the derivative in v of the logarithm of the density."""
    square, v = t * t, minimum(v, MANY_DEGREES)
    return student_constant(v, order=1) + 0.5 * ((square / v) * ((v + 1) / (v + square)) - log1p(square / v))


def _student_slope(v: Any, t: Any) -> Any:
    v = minimum(v, MANY_DEGREES)
    return t * ((v + 1) / (v + t * t))


#: ``student_density(v, t)``: density of Student's distribution with v degrees of freedom.
student_density: Operation = elementwise(
    "student_density",
    _density,
    dx=lambda x, y, ans: ans * _density_slope(x, y),
    dy=lambda x, y, ans: -ans * _student_slope(x, where(isinf(y), 0, y)),
)


def _length(xp: Any, v: Any, square: Any) -> Any:
    """Solve ``(v+1)/2 log((v + t**2 exp(2s)) / (v + t**2)) - s = DEPTH`` for s by Newton's method; t**2 >= 1."""
    q = square / (v + square)
    s = (DEPTH + (v + 1) / 2 * -xp.log(q)) / v
    s = xp.minimum(s, 0.5 * xp.log1p(2 * (DEPTH + xp.sqrt(DEPTH * v)) / (v * q)) + DEPTH / v)
    for _ in range(6):
        rest = q + (1 - q) * xp.exp(-2 * s)
        s = s - ((v + 1) / 2 * (2 * s + xp.log(rest)) - s - DEPTH) / ((v + 1) * q / rest - 1)
    return s


def _parameter(xp: Any, v: Any, t: Any, order: int) -> Any:
    """Return the derivative of this order in v, for positive v and t."""
    outside = t >= 1
    length = xp.where(outside, _length(xp, v, xp.where(outside, t * t, 1)), DEPTH)
    bend = xp.where(outside, 0.5 * xp.log(v) - xp.log(t), 0)
    constants = [_log_ratio(xp, v, k)[..., None] for k in range(1, order + 1)]
    direction = xp.where(outside, 1.0, -1.0)[..., None]
    v_, start, limit = v[..., None], (2 * xp.log(t) - xp.log(v))[..., None], xp.log1p(t * t / v)[..., None]

    def integrand(s: Any) -> Any:
        u = start + 2 * direction * s
        log_sum = xp.maximum(u, 0) + xp.log1p(xp.exp(-xp.abs(u)))  # log(1 + t**2 / v), without overflow

        def slope(k: int, _: int) -> Any:
            if k == 1:
                return constants[0] + 0.5 * ((1 + 1 / v_) / (1 + xp.exp(-xp.maximum(u, -700))) - log_sum)
            powers = [(-1) ** (j - 1) * math.factorial(j - 1) * xp.expm1(-j * log_sum) / v_**j for j in (k, k - 1)]
            return constants[k - 1] - 0.5 * ((v_ + 1) * powers[0] + k * powers[1])

        return polynomial(slope, order) * xp.exp(direction * s - (v_ + 1) / 2 * (log_sum - limit))

    scale = t * xp.exp(_log_ratio(xp, v, 0) - (v + 1) / 2 * xp.log1p(t * t / v)) / math.sqrt(2 * math.pi)
    return xp.where(outside, -1.0, 1.0) * scale * tail(xp, integrand, length, bend)


def _stdtr_parameter(xp: Any, v: Any, t: Any, *, order: int) -> Any:
    def compute(v: Any, t: Any) -> Any:
        v, t = xp.broadcast_arrays(v, t)
        size = xp.abs(t)
        defined = (v > 0) & (t == t)
        inside = defined & (v < math.inf) & (size > 0) & (size < 1e150)
        found = xp.sign(t) * _parameter(xp, xp.where(inside, v, 1), xp.where(inside, size, 1), order)
        return xp.where(inside, found, xp.where(defined, 0, math.nan))

    return in_double(xp, compute, v, t)


def _density_parameter(x: Any, y: Any, *, order: int) -> Any:
    """Return the derivative of this order in v of the density."""
    log_sum = log1p(y * y / x)

    def slope(k: int, _: int) -> Any:
        if k == 1:
            return _density_slope(x, y)
        powers = [(-1) ** (j - 1) * math.factorial(j - 1) * expm1(-j * log_sum) / x**j for j in (k, k - 1)]
        return student_constant(x, order=k) - 0.5 * ((x + 1) * powers[0] + k * powers[1])

    return student_density(x, y) * polynomial(slope, order)


#: ``stdtr_parameter(v, t, *, order)``: derivative in v of ``stdtr`` of this order, 1 or more.
stdtr_parameter: Operation = pointwise(
    "stdtr_parameter",
    _stdtr_parameter,
    lambda x, y, *, order: stdtr_parameter(x, y, order=order + 1),
    _density_parameter,
)


def _stdtr_of_jax(xp: Any, v: Any, t: Any) -> Any:
    tails = special(xp, "betainc")(v / 2, 0.5, v / (v + t * t)) / 2
    return xp.where(t < 0, tails, 1 - tails)


_STUDENT: Partials = (lambda v, t: stdtr_parameter(v, t, order=1), lambda v, t: student_density(v, t))
stdtr: Operation = distribution("stdtr", _STUDENT, _stdtr_of_jax)
stdtrit: Operation = inverse("stdtrit", _STUDENT, 1)
stdtridf: Operation = inverse("stdtridf", _STUDENT, 0, searched=True)
