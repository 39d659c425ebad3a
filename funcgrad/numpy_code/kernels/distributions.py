"""Parts of SciPy's distributions whose code as written has no derivative, though their results have one.

SciPy's quantiles scale the bounds of the support, even infinite ones, and a choice between two formulas computes
both, of which one is undefined: the derivative becomes zero times an infinity or a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise, product
from operator import mul
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import BranchError, ConversionError, NoRuleError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.mathematics import python_function
from funcgrad.numpy_code.object_views import viewed_object
from funcgrad.numpy_code.own import known_value, own
from funcgrad.optional import import_scipy
from funcgrad.writable import Proxy

_special, _stats = partial(own, "scipy.special"), partial(own, "scipy.stats")


def _quantile(name: str) -> Callable[..., Any]:
    """Compute ``rv_continuous.ppf`` or ``isf``: the quantile of the standard distribution, scaled and shifted."""

    def quantile(self: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        parameters, loc, scale = self._parse_args(*args, **kwds)
        q, loc, scale, *shapes = fnp.broadcast_arrays(q, loc, scale, *parameters)
        shape = q.shape
        q, loc, scale, *shapes = map(fnp.ravel, (q, loc, scale, *shapes))  # some ``_ppf`` iterate over or write to them
        low, high = self._get_support(*shapes)
        low, high = (high, low) if name == "isf" else (low, high)
        x = getattr(self, f"_{name}")(fnp.where(fnp.logical_and(q > 0, q < 1), q, 0.5), *shapes)
        x = fnp.where(q == 0, low, fnp.where(q == 1, high, x))
        allowed = fnp.logical_and(self._argcheck(*shapes), fnp.logical_and(scale > 0, (q >= 0) & (q <= 1)))
        infinite = fnp.isinf(x)  # an end of the support, which moves neither with location nor with scale
        x = fnp.where(infinite, x, fnp.where(infinite, 0.0, x) * scale + loc)
        return fnp.where(allowed, x, self.badvalue).reshape(shape)[()]

    return quantile


def _constant_quantile(self: Any, q: Any, *shapes: Any) -> Any:
    """Compute ``rv_generic._ppf``, a search: for discrete distributions it finds integers, which are constants."""
    if not hasattr(self, "_logpmf"):
        return self._ppfvec(q, *shapes)
    return viewed_object(self)._ppfvec(*[known_value(x, "ppf") for x in (q, *shapes)])


def _harmonic(first: Any, last: Any, a: Any) -> Any:
    """Return the sum of ``k**-a`` for integers from ``first`` to ``last``."""
    first, last, a = fnp.broadcast_arrays(first, last, a)
    k = np.arange(1.0, 1.0 + np.max(known_value(last, "zipfian"), initial=0))
    inside = (k >= fnp.asarray(first)[..., None]) & (k <= fnp.asarray(last)[..., None])
    return fnp.sum(fnp.where(inside, k ** -fnp.asarray(a)[..., None], 0.0), axis=-1)


def _two_sided(below: Callable[[Any, Any], Any], above: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a function of ``abs(x)`` with one formula for positive ``x``, and another that holds at 0 too."""

    def chosen(self: Any, x: Any, a: Any) -> Any:
        high = x > 0
        return fnp.where(high, above(fnp.where(high, x, 1.0), a), below(fnp.where(high, 1.0, -x), a))

    return chosen


def _gamma_quantile(q: Any, a: Any, upper: bool) -> Any:
    """Compute the quantile of the double gamma distribution: that of one side, or its negative."""
    inverse = _special().gammainccinv
    is_high = q > 0.5 if not upper else q <= 0.5  # a half belongs to the tail of q
    tail = fnp.where(q > 0.5, 1 - q, q)
    x = inverse(a, 2 * tail)
    return fnp.where(is_high, x, -x)


def _log1mexp(x: Any) -> Any:
    """Compute ``log(1 - exp(x))`` for negative ``x``."""
    near = x > -math.log(2)
    return fnp.where(near, fnp.log(-fnp.expm1(fnp.where(near, x, -0.5))), fnp.log1p(-fnp.exp(fnp.where(near, -1.0, x))))


def _cosine_cdf(x: Any) -> Any:
    inside = fnp.clip(x, -np.pi, np.pi)
    return (np.pi + inside + fnp.sin(inside)) / (2 * np.pi)


@around
def with_triangular_factor(built: Built, self: Any, M: Any, *args: Any, **kwargs: Any) -> None:
    """Wrap ``_PSD``: a traced covariance that is positive definite is factorized by Cholesky.

    The eigenvectors that SciPy takes have no derivative where two variances are equal, and the roots that it takes of
    variances that are 0 have none either.
    """
    if not isinstance(M := fnp.asarray(M), Tracer):
        built(self, M, *args, **kwargs)
        return
    built(self, own("transforms.stopping").stop_gradient(M), *args, **kwargs)
    self._M = M
    if self.rank < len(self._M):
        variances, vectors = fnp.linalg.eigh(self._M)
        kept = variances[-self.rank :]
        self.U, self.log_pdet = vectors[:, -self.rank :] / fnp.sqrt(kept), fnp.sum(fnp.log(kept))
    else:
        factor = fnp.linalg.cholesky(self._M)
        self.U, self.log_pdet = fnp.linalg.inv(factor).T, 2.0 * fnp.sum(fnp.log(fnp.diagonal(factor)))


def _demean(a: Any, mean: Any, axis: Any, **options: Any) -> Any:
    """Compute ``a - mean``. NaNs in ``a``, which SciPy omits later, do not contribute to derivatives."""
    return a - mean if isinstance(a, Proxy) else fnp.where(fnp.isnan(a), np.nan, a - mean)


def _entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """Compute ``scipy.stats.entropy``. Probabilities that are exactly 0 are constants: their slopes are infinite."""
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    weights = list(fnp.broadcast_arrays(*map(fnp.asarray, [pk] if qk is None else [pk, qk])))
    missing = sum(fnp.isnan(w) for w in weights) > 0
    if nan_policy == "raise" and np.any(known_value(missing, "entropy")):
        raise ValueError("The input contains nan values")
    unknown = fnp.any(missing, axis, keepdims=True) if nan_policy == "propagate" else False
    weights = [fnp.where(missing, 0, fnp.where(unknown, 1, w)) for w in weights]
    empty, term = weights[0] == 0, _special().entr if qk is None else _special().rel_entr
    weights = [fnp.where(empty, 0, weights[0]), *weights[1:]]
    shares = [w / fnp.sum(w, axis, keepdims=True) for w in weights]
    there = 0.0 if qk is None else fnp.where(shares[1] >= 0, 0.0, np.inf)
    terms = fnp.where(empty, there, term(*[fnp.where(empty, 1, share) for share in shares]))
    found = fnp.sum(fnp.where(unknown, np.nan, terms), axis, keepdims=keepdims)
    return found if base is None else found / python_function("math", "log")(base)


def _from_funcgrad(module: str, name: str, **settings: Any) -> Callable[..., Any]:
    """Return a function of ``funcgrad.scipy`` with these settings."""
    return lambda *args: getattr(own(f"scipy.{module}"), name)(*args, **settings)


_distributed = partial(_from_funcgrad, "special.operations.distributions")
_noncentral = partial(_from_funcgrad, "special.operations.noncentral")


def _landau(name: str, **settings: Any) -> Callable[..., Any]:
    """Return a function of the Landau distribution, which SciPy calls for the standard one."""
    fun = _distributed(f"landau_{name}", **settings)
    return lambda x, loc, scale: fun(x)


def _ncx2_logpdf(self: Any, x: Any, df: Any, nc: Any) -> Any:
    """Compute SciPy's formula, which divides by the noncentrality; near 0, the first terms of the Poisson mixture."""
    special, order, near = _special(), 0.5 * df - 1, nc < 1e-300
    away, m = fnp.where(near, 1.0, nc), 0.5 * fnp.where(near, nc, 0.0)
    bessel = special.ive(order, fnp.sqrt(x * away))
    usual = 0.5 * special.xlogy(order, x / away) - 0.5 * (fnp.sqrt(x) - fnp.sqrt(away)) ** 2
    usual = usual + fnp.where(bessel > 0, fnp.log(fnp.where(bessel > 0, 0.5 * bessel, 1.0)), -np.inf)
    total, term = 1.0, 1.0
    for j in range(4):
        term = term * m * 0.5 * x / ((j + 1.0) * (order + 1.0 + j))
        total = total + term
    central = special.xlogy(order, 0.5 * x) - 0.5 * x - special.gammaln(order + 1) - math.log(2)
    return fnp.where(fnp.isinf(x), -np.inf, fnp.where(near, central - m + fnp.log(total), usual))


def _quotient(z: Any) -> Any:
    """Compute ``log(1 + z) / z``, which is 1 at 0."""
    return own("scipy.special.operations.convex").log1p_quotient(z, order=0)


def _kappa4_exponent(x: Any, k: Any) -> Any:
    """Compute ``(1 - k * x)**(1 / k)``, also for vanishing ``k``."""
    return fnp.exp(-x * _quotient(-k * x))


def _kappa4_support(self: Any, h: Any, k: Any) -> tuple[Any, Any]:
    """Return the ends of the support by formulas that hold for a vanishing ``k`` too."""
    log = fnp.log(fnp.where(h > 0, h, 1.0))
    open_below = fnp.where(k < 0, 1.0 / fnp.where(k < 0, k, -1.0), -np.inf)
    below = fnp.where(h > 0, log * _special().exprel(-k * log), open_below)
    return below, fnp.where(k > 0, 1.0 / fnp.where(k > 0, k, 1.0), np.inf) + 0.0 * h


def _kappa4_logpdf(self: Any, x: Any, h: Any, k: Any) -> Any:
    """Compute the log density by one formula for all shapes: SciPy's for a vanishing shape does not depend on it."""
    y = _kappa4_exponent(x, k)
    return fnp.where(fnp.isinf(x), -np.inf, -(1 - k) * x * _quotient(-k * x) - (1 - h) * y * _quotient(-h * y))


def _kappa4_logcdf(self: Any, x: Any, h: Any, k: Any) -> Any:
    y = _kappa4_exponent(x, k)
    return -y * _quotient(-h * y)


def _kappa4_pdf(self: Any, x: Any, h: Any, k: Any) -> Any:
    """Compute the density. At the ends, which move with the shapes, it is a constant: 0, infinite or finite."""
    near = 1 - 4e-16
    far = k * x >= near
    y = _kappa4_exponent(fnp.where(far, 0.0, x), k)
    end = fnp.logical_or(far, h * y >= near)
    power = fnp.where(far, fnp.where(k > 0, 1 - k, 1 - h * k), 1 - h)  # exponent of the distance from the end
    below = fnp.logical_and(far & (k < 0), power == 0)
    below = fnp.where(below, h, -1.0)
    constant = fnp.where(power > 0, 0.0, fnp.where(power < 0, np.inf, (-below) ** (1 / below - 1)))
    inside = _kappa4_logpdf(self, *[fnp.where(end, v, z) for v, z in ((0.0, x), (0.5, h), (0.5, k))])
    return fnp.where(end, constant, fnp.exp(inside))


def _kappa4_entropy(h: Any, k: Any) -> Any:
    """Compute the integral of ``-logpdf(ppf(q))`` over q, with constant limits: DLMF 5.9.12 and 5.11.2."""
    near, size = fnp.abs(h) < 0.03, fnp.abs(h)
    away = fnp.where(near, 1.0, size)
    sum_of_logs = fnp.log(away) + _special().digamma(1 / away + 1) + fnp.where(h < 0, h, 0.0)
    z = fnp.where(near, h, 0.0)
    s = z * z
    series = z / 2 - s / 12 * (1 - s / 10 * (1 - s * 10 / 21 * (1 - s * 21 / 20)))
    return 1 - h + (1 - k) * (np.euler_gamma + fnp.where(near, series, sum_of_logs))


def _truncpareto_moment(self: Any, n: Any, b: Any, c: Any) -> Any:
    """Compute a moment of ``truncpareto`` by one formula for all shapes: SciPy's of order b differs."""
    log = fnp.log(c)
    return b * log * c**n * _special().exprel((b - n) * log) / fnp.expm1(b * log)


@around
def entropy_of_density(built: Built, self: Any, *shapes: Any) -> Any:
    """Wrap ``rv_continuous._entropy``, an integral over the support, with formulas for kappa4 and pearson3.

    If SciPy's integrand, a closure, branches at points of a piecewise density, ``quad`` gets the shapes as ``args``.
    """
    name = type(viewed_object(self)).__name__
    if name == "kappa4_gen":
        return _kappa4_entropy(*shapes)
    if name == "pearson3_gen":
        return _pearson3_entropy(partial(built, self), *shapes)
    try:
        return built(self, *shapes)
    except BranchError:
        density = lambda x, *shapes: _special().entr(self._pdf(x, *shapes))
        return own("scipy.integrate").quad(density, *self._get_support(*shapes), args=shapes)[0]


@around
def expectation(
    built: Built,
    self: Any,
    func: Any = None,
    args: Any = (),
    loc: Any = 0,
    scale: Any = 1,
    lb: Any = None,
    ub: Any = None,
    conditional: bool = False,
    **kwds: Any,
) -> Any:
    """Wrap ``rv_continuous.expect``: it integrates over the standard distribution between limits that do not move.

    At an end of a support that moves with the parameters, the density or its derivative may be infinite, and SciPy's
    density may be 0 where it jumps. So the integral is over the share of the support, or the distance from its end.
    """
    if "weight" in kwds or "points" in kwds:  # in terms of the variable itself
        return built(self, func, args, loc, scale, lb, ub, conditional, **kwds)
    self._argcheck(*args)

    def ends(args: Any) -> list[Any]:
        support = zip(self._get_support(*args), (lb, ub), strict=True)
        return [
            end if bound is None else bound if fnp.isinf(bound) else (bound - loc) / scale for end, bound in support
        ]

    def place(args: Any) -> tuple[Any, Any]:
        low, high = ends(args)
        infinite, endless = fnp.isinf(low), fnp.isinf(high)
        start = fnp.where(infinite, fnp.where(endless, 0.0, high), low)
        return start, fnp.where(fnp.logical_or(infinite, endless), 1.0, high - low)

    below, above = self.cdf(ends(args), *args)
    fixed = own("transforms.stopping").stop_gradient([below, above, *ends(args), *place(args), *args])
    inner = fixed[0] + (fixed[1] - fixed[0]) * np.array([0.05, 0.95])  # as SciPy splits body and tails
    points = [(x - fixed[4]) / fixed[5] for x in (fixed[2], *self._ppf(inner, *fixed[6:]), fixed[3])]

    def integrand(t: Any, *args: Any) -> Any:
        start, width = place(args)  # of these arguments: the integrals of both partial derivatives may diverge
        y = start + width * t
        x = loc + scale * y
        return (x if func is None else func(x)) * self.pdf(y, *args) * width

    total = sum(own("scipy.integrate").quad(integrand, a, b, args=args, **kwds)[0] for a, b in pairwise(points))
    return total / (above - below) if conditional else total


def _kappa4_ppf(self: Any, q: Any, h: Any, k: Any) -> Any:
    boxcox = _special().boxcox
    return -boxcox(-boxcox(q, h), k)


def _pearson3(near: Callable[..., Any], above: Callable[..., Any], below: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of Pearson's distribution, from the gamma distribution for both signs of the skewness.

    SciPy treats a small skewness as zero. Here, Edgeworth's series is used, up to the second power of the skewness.
    """

    def call(self: Any, x: Any, skew: Any) -> Any:
        small = fnp.abs(skew) < 0.000016
        beta = 2 / fnp.where(small, 1.0, skew)
        alpha = beta * beta
        t = beta * x + alpha
        found = fnp.where(beta > 0, above(t, alpha, beta), below(t, alpha, beta))
        s, z = fnp.where(small, skew, 0.0), fnp.where(small, x, 0.0)
        return fnp.where(small, near(z, s), found)

    return call


def _pearson3_entropy(integrated: Callable[[Any], Any], skew: Any) -> Any:
    """Compute the entropy; for a larger skewness by a formula, as the density may be infinite at its end."""
    far = fnp.abs(skew) > 0.3
    size = fnp.where(far, fnp.abs(skew), 1.0)
    alpha, special = 4 / size**2, _special()
    exact = alpha + fnp.log(size / 2) + special.gammaln(alpha) + (1 - alpha) * special.digamma(alpha)
    return fnp.where(far, exact, integrated(fnp.where(far, 0.0, skew)))


def _gamma_cdf(t: Any, alpha: Any, beta: Any) -> Any:
    return _stats().gamma.cdf(t, alpha)


def _gamma_sf(t: Any, alpha: Any, beta: Any) -> Any:
    return _stats().gamma.sf(t, alpha)


def _pearson3_logpdf(t: Any, alpha: Any, beta: Any) -> Any:
    return fnp.log(fnp.abs(beta)) + _stats().gamma.logpdf(t, alpha)


def _pearson3_ppf(self: Any, q: Any, skew: Any) -> Any:
    """Compute the quantile; near the normal distribution, by the series of Cornish and Fisher."""
    small = fnp.abs(skew) < 0.000016
    beta = 2 / fnp.where(small, 1.0, skew)
    found = _special().gammaincinv(beta * beta, fnp.where(beta < 0, 1 - q, q)) / beta - beta
    s, z = fnp.where(small, skew, 0.0), _special().ndtri(q)
    near = z + s * (z * z - 1) / 6 + s * s * z * ((z * z - 3) / 16 - (2 * z * z - 5) / 36)
    return fnp.where(small, near, found)


def _burr_stats(self: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """Compute ``burr_gen._stats``; moments that do not exist do not contribute to the derivatives of others."""
    n = np.arange(1.0, 5.0).reshape(4, 1) / c
    exists = n < 1
    moments = _special().beta(d + n, 1.0 - fnp.where(exists, n, 0.5)) * d
    one, two, three, four = fnp.where(exists, moments, np.nan)
    spread = two - one**2
    skewness = (three - 3 * two * one + 2 * one**3) / spread**1.5
    excess = (four - 4 * three * one + 6 * two * one**2 - 3 * one**4) / spread**2 - 3
    found = (one, spread, skewness, excess)
    return found if fnp.ndim(c) else tuple([x[0] for x in found])


def _near_normal_logpdf(z: Any, s: Any) -> Any:
    z2 = z * z
    return _stats().norm.logpdf(z) + s * (z2 - 3) * z / 6 - s * s * (z2 * (z2 - 2) / 16 + 1 / 48)


def _near_normal_cdf(z: Any, s: Any) -> Any:
    """Compute the series of the cdf. With ``-z`` and ``-s``, the mirror image, it is the survival function."""
    z2 = z * z
    waves = s * (z2 - 1) / 6 + s * s * z * ((z2 - 3) / 16 + (z2 * (z2 - 10) + 15) / 72)
    return _stats().norm.cdf(z) - _stats().norm.pdf(z) * waves


def _method(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the argument and the shapes as a method of the distribution."""
    return lambda self, *args: fun(*args)


def _geninvgauss_logpdf(x: Any, p: Any, b: Any) -> Any:
    inside = fnp.greater(x, 0)
    x = fnp.where(inside, x, 1.0)
    constant = b - math.log(2) - fnp.log(_special().kve(p, b))
    return fnp.where(inside, constant + (p - 1) * fnp.log(x) - 0.5 * b * (x + 1 / x), -np.inf)


def _genhyperbolic_logpdf(x: Any, p: Any, a: Any, b: Any) -> Any:
    square, radius, kve = (a + b) * (a - b), fnp.sqrt(1 + x * x), _special().kve
    root = fnp.sqrt(square)
    constant = 0.5 * p * fnp.log(square) - 0.5 * math.log(2 * math.pi) - (p - 0.5) * fnp.log(a)
    constant = constant - fnp.log(kve(p, root)) + root
    return constant + (p - 0.5) * fnp.log(radius) + fnp.log(kve(p - 0.5, a * radius)) - a * radius + b * x


def _probability(density: Callable[..., Any], low: Any, high: Any, middle: Any) -> Any:
    """Integrate a density; if ``middle``, where it may have a narrow peak, is inside, in two parts."""
    quad, ends = own("scipy.integrate").quad, [low, high]
    if low < middle < high:
        ends.insert(1, middle)
    return sum([quad(density, a, b, epsabs=0.0, epsrel=1e-10)[0] for a, b in pairwise(ends)])


def _integrated(middle: Callable[..., Any], start: float, upper: bool) -> Callable[..., Any]:
    """Return the probability below or above ``x`` as an integral of the density, which begins at ``start``."""

    def probability(self: Any, x: Any, *shapes: Any) -> Any:
        def one(x: Any, *shapes: Any) -> Any:
            low, high = (x, np.inf) if upper else (start, x)
            return _probability(lambda t: self._pdf(t, *shapes), low, high, middle(*shapes))

        return fnp.vectorize(one, [np.float64])(x, *shapes)

    return probability


def _geninvgauss_mode(p: Any, b: Any) -> Any:
    return (p - 1 + fnp.hypot(p - 1, b)) / b


def _genhyperbolic_mean(p: Any, a: Any, b: Any) -> Any:
    root, kve = fnp.sqrt((a + b) * (a - b)), _special().kve
    return b / root * kve(p + 1, root) / kve(p, root)


def _skellam_pmf(self: Any, x: Any, mu1: Any, mu2: Any) -> Any:
    """Compute the mass from the one density that SciPy chooses: the other has no derivative at some counts."""
    below = fnp.less(x, 0)
    near, far = fnp.where(below, mu2, mu1), fnp.where(below, mu1, mu2)
    return 2 * _noncentral("ncx2_density")(2 * near, 2 * (1 + fnp.abs(x)), 2 * far)


def _skellam_cdf(self: Any, x: Any, mu1: Any, mu2: Any) -> Any:
    x = fnp.floor(x)
    below = fnp.less(x, 0)
    low = _noncentral("chndtr")(2 * mu2, fnp.where(below, -2 * x, 2), 2 * mu1)
    return fnp.where(below, low, _noncentral("ncx2_sf")(2 * mu1, fnp.where(below, 2, 2 * (x + 1)), 2 * mu2))


def _discrete_function(name: str, function: str) -> Callable[..., Any]:
    """Return a function of a discrete distribution of ``funcgrad.scipy.stats``."""
    return lambda *args: getattr(getattr(_stats(), name), function)(*args)


def _mvnun(low: Any, high: Any, means: Any, covar: Any, *options: Any) -> tuple[Any, int]:
    """Compute ``_mvn.mvnun`` of SciPy 1.15: the probability between bounds of one or two normal variables.

    Raises:
        ConversionError: there are more variables, whose integral SciPy samples.
    """
    if len(low) > 2:
        raise ConversionError(
            "stats.multivariate_normal.cdf: compiled code of SciPy's samples the integral of more than two variables, "
            f"and the derivative ends there, got {len(low)}{user_line()}. Take two, or give the function a derivative "
            "of its own with funcgrad.custom_vjp or custom_jvp."
        )
    return _box_probability(fnp.subtract(low, means), fnp.subtract(high, means), covar), 0


def _box_probability(low: Any, high: Any, covar: Any) -> Any:
    """Return the probability between bounds of one or two normal variables of mean zero.

    Infinite bounds are not divided by a deviation: the derivative would be zero times an infinity.
    """
    covar = fnp.asarray(covar)
    deviations = fnp.sqrt(fnp.diagonal(covar))
    first, last = (fnp.where(fnp.isinf(x), x, fnp.where(fnp.isinf(x), 0.0, x) / deviations) for x in (low, high))
    if len(covar) == 1:
        return _special().ndtr(last[0]) - _special().ndtr(first[0])
    r = covar[0, 1] / (deviations[0] * deviations[1])
    above = _from_funcgrad("special.operations.distributions", "bivariate_upper")
    corners = [above(h[0], k[1], r) for h, k in product((first, last), repeat=2)]
    return corners[0] - corners[1] - corners[2] + corners[3]


@around
def integral_of_normals(built: Built, func: Any, covar: Any, low: Any, high: Any, *args: Any, **kwds: Any) -> Any:
    """Wrap ``_qauto``: the probabilities of one or two variables come from ``_box_probability``."""
    if len(covar) <= 2:
        return _box_probability(low, high, covar), 1e-15, 0
    return built(func, covar, low, high, *args, **kwds)


def _nct_mean(df: Any, nc: Any) -> Any:
    gammaln = _special().gammaln
    return nc * fnp.sqrt(0.5 * df) * fnp.exp(gammaln(0.5 * df - 0.5) - gammaln(0.5 * df))


def _ncf_variance(n: Any, d: Any, nc: Any) -> Any:
    total = (n + nc) ** 2 + (n + 2 * nc) * (d - 2)
    return 2 * (d / n) ** 2 * total / ((d - 2) ** 2 * (d - 4))


def _nct_moments(df: Any, nc: Any, count: int) -> list[Any]:
    """Return moments about 0: those of a shifted normal variable times those of the root of df over chi2."""
    gammaln, half = _special().gammaln, 0.5 * df
    shifted = (nc, 1 + nc**2, nc * (3 + nc**2), 3 + nc**2 * (6 + nc**2))[:count]
    logs = [k * fnp.log(half) + gammaln(half - k) - gammaln(half) for k in (0.5, 1.0, 1.5, 2.0)[:count]]
    return [m * fnp.exp(log) for m, log in zip(shifted, logs, strict=True)]


def _ncf_moments(n: Any, d: Any, nc: Any, count: int) -> list[Any]:
    """Return moments about 0: those of noncentral chi2, from its cumulants, times those of the divisor."""
    k1, k2, k3, k4 = n + nc, 2 * (n + 2 * nc), 8 * (n + 3 * nc), 48 * (n + 4 * nc)
    moments = (k1, k2 + k1**2, k3 + 3 * k2 * k1 + k1**3, k4 + 4 * k3 * k1 + 3 * k2**2 + 6 * k2 * k1**2 + k1**4)
    factors = accumulate([d / (n * (d - 2 * k)) for k in range(1, count + 1)], mul)
    return [m * factor for m, factor in zip(moments, factors, strict=False)]


def _shape_statistic(moments: Callable[..., Any], order: int, position: int, least: int) -> Callable[..., Any]:
    """Return the skewness or, of order 4, the excess kurtosis; NaN where the degrees of freedom are not above least.

    SciPy's of nct without noncentrality is 1. That of ncf is not in excess: SciPy's Python code subtracts 3.
    """
    normal = 3.0 if moments is _nct_moments else 0.0

    def call(*shapes: Any) -> Any:
        exists = shapes[position] > least
        inner = [fnp.where(exists, x, least + 1.0) if i == position else x for i, x in enumerate(shapes)]
        m, second, third, *fourth = moments(*inner, order)
        variance = second - m * m
        if fourth:
            found = (fourth[0] - 4 * m * third + 6 * m * m * second - 3 * m**4) / variance**2 - normal
        else:
            found = (third - 3 * m * second + 2 * m**3) / variance**1.5
        return fnp.where(exists, found, np.nan)

    return call


_SPECIAL: dict[str, Callable[..., Any]] = {
    "_log1mexp": _log1mexp,
    "_beta_pdf": lambda x, a, b: _from_funcgrad("special.operations.incomplete", "beta_density")(a, b, x),
    "_beta_ppf": lambda q, a, b: _special().betaincinv(a, b, q),
    "_cosine_cdf": _cosine_cdf,
    "_cosine_invcdf": _distributed("cosine_ppf"),
    "_gen_harmonic": lambda n, a: _harmonic(1, n, a),
    "_normalized_gen_harmonic": lambda j, k, n, a: _harmonic(j, k, a) / _harmonic(1, n, a),
    "_invgauss_ppf": lambda q, mu, shape: _stats().invgauss.ppf(q, mu),
    "_invgauss_isf": lambda q, mu, shape: _stats().invgauss.isf(q, mu),
    "_nbinom_mean": lambda n, p: n * (1 - p) / p,
    "_nbinom_variance": lambda n, p: n * (1 - p) / p**2,
    "_nbinom_skewness": lambda n, p: (2 - p) / fnp.sqrt(n * (1 - p)),
    "_nbinom_kurtosis_excess": lambda n, p: (6 + p**2 / (1 - p)) / n,
    "_ncf_mean": lambda n, d, nc: fnp.where(d > 2, d * (n + nc) / (n * (d - 2)), np.nan),
    "_ncf_variance": lambda n, d, nc: fnp.where(d > 4, _ncf_variance(n, d, nc), np.nan),
    "_nct_mean": lambda df, nc: fnp.where(df > 1, _nct_mean(df, nc), np.nan),
    "_nct_variance": lambda df, nc: fnp.where(df > 2, df * (1 + nc * nc) / (df - 2) - _nct_mean(df, nc) ** 2, np.nan),
    **{
        f"_{name}_{statistic}": _shape_statistic(moments, order, position, step * order)
        for name, moments, position, step in (("ncf", _ncf_moments, 1, 2), ("nct", _nct_moments, 0, 1))
        for order, statistic in ((3, "skewness"), (4, "kurtosis_excess"))
    },
    "_kolmogc": _distributed("kolmogc"),
    "_kolmogci": _distributed("kolmogci"),
    "_kolmogp": _distributed("kolmogorov", order=1),
    "_scaled_exp1": _from_funcgrad("special.operations.hypergeometric", "scaled_exp1"),
    "_skewnorm_isf": lambda q, loc, scale, a: _stats().skewnorm.isf(q, a),
    "_skewnorm_ppf": lambda q, loc, scale, a: _stats().skewnorm.ppf(q, a),
    "_smirnovc": _distributed("smirnovc"),
    "_smirnovci": _distributed("smirnovci"),
    "_smirnovp": _distributed("smirnov", order=1),
    "_landau_pdf": _landau("density", order=0),
    **{f"_landau_{name}": _landau(name) for name in ("cdf", "sf", "ppf", "isf")},
    **{
        f"_{name}_{function}": _discrete_function(name, function)
        for name in ("binom", "nbinom")
        for function in ("pmf", "cdf", "sf")
    },
    "_ncx2_pdf": _noncentral("ncx2_density"),
    "_ncf_pdf": _noncentral("ncf_density"),
    "_nct_pdf": _noncentral("nct_density"),
    "_nct_ppf": _noncentral("nct_ppf"),
    **{f"_{name}": _noncentral(name) for name in ("ncx2_sf", "ncx2_isf", "ncf_sf", "ncf_isf", "nct_sf", "nct_isf")},
}


def _without_derivative(name: str, method: str) -> Callable[..., Any]:
    """Return a method of a distribution that compiled code integrates: it refuses traced values."""

    def call(self: Any, *args: Any) -> Any:
        traced = [describe(x) for x in args if holds_traced((x,))]
        if traced:
            error = NoRuleError(
                f"scipy.stats.{name}: SciPy integrates it by compiled code, which has no derivative, got "
                f"{traced[0]}{user_line()}. Pass stop_gradient(x) for a constant, or interpolate a table of its values "
                "with scipy.interpolate.CubicSpline."
            )
            error.compiled = True  # for each example of a vmap, too
            raise error
        theirs = getattr(import_scipy(f"stats.{name}", "scipy.stats"), name)
        return getattr(theirs, method)(*[known_value(x, name) for x in args])

    return call


_DISTRIBUTIONS = "scipy.stats._continuous_distns"
DISTRIBUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.stats._distn_infrastructure", "rv_continuous.ppf"): _quantile("ppf"),
    ("scipy.stats._distn_infrastructure", "rv_continuous.isf"): _quantile("isf"),
    ("scipy.stats._stats_py", "_demean"): _demean,
    ("scipy.stats._entropy", "entropy"): _entropy,
    ("scipy.stats._distn_infrastructure", "rv_generic._ppf"): _constant_quantile,
    (_DISTRIBUTIONS, "dgamma_gen._cdf"): _two_sided(
        lambda x, a: 0.5 * _special().gammaincc(a, x), lambda x, a: 0.5 + 0.5 * _special().gammainc(a, x)
    ),
    (_DISTRIBUTIONS, "dgamma_gen._sf"): _two_sided(
        lambda x, a: 0.5 + 0.5 * _special().gammainc(a, x), lambda x, a: 0.5 * _special().gammaincc(a, x)
    ),
    (_DISTRIBUTIONS, "dweibull_gen._cdf"): _two_sided(
        lambda x, c: 0.5 * fnp.exp(-(x**c)), lambda x, c: 1 - 0.5 * fnp.exp(-(x**c))
    ),
    (_DISTRIBUTIONS, "dweibull_gen._sf"): _two_sided(
        lambda x, c: 1 - 0.5 * fnp.exp(-(x**c)), lambda x, c: 0.5 * fnp.exp(-(x**c))
    ),
    (_DISTRIBUTIONS, "dgamma_gen._ppf"): lambda self, q, a: _gamma_quantile(q, a, False),
    (_DISTRIBUTIONS, "dgamma_gen._isf"): lambda self, q, a: _gamma_quantile(q, a, True),
    (_DISTRIBUTIONS, "geninvgauss_gen._cdf"): _integrated(_geninvgauss_mode, 0.0, False),
    (_DISTRIBUTIONS, "genhyperbolic_gen._cdf"): _integrated(_genhyperbolic_mean, -np.inf, False),
    (_DISTRIBUTIONS, "genhyperbolic_gen._sf"): _integrated(_genhyperbolic_mean, -np.inf, True),
    ("scipy.stats._mvn", "mvnun"): _mvnun,
    ("scipy.stats._stats", "geninvgauss_logpdf"): _geninvgauss_logpdf,
    ("scipy.stats._stats", "genhyperbolic_logpdf"): _genhyperbolic_logpdf,
    ("scipy.stats._stats", "genhyperbolic_pdf"): lambda *args: fnp.exp(_genhyperbolic_logpdf(*args)),
    ("scipy.stats._stats", "von_mises_cdf"): lambda kappa, x: _stats().vonmises.cdf(x, kappa),
    (_DISTRIBUTIONS, "ncx2_gen._logpdf"): _ncx2_logpdf,
    (_DISTRIBUTIONS, "burr_gen._stats"): _burr_stats,
    (_DISTRIBUTIONS, "truncpareto_gen._munp"): _truncpareto_moment,
    (_DISTRIBUTIONS, "kappa4_gen._get_support"): _kappa4_support,
    (_DISTRIBUTIONS, "kappa4_gen._logpdf"): _kappa4_logpdf,
    (_DISTRIBUTIONS, "kappa4_gen._pdf"): _kappa4_pdf,
    (_DISTRIBUTIONS, "kappa4_gen._logcdf"): _kappa4_logcdf,
    (_DISTRIBUTIONS, "kappa4_gen._ppf"): _kappa4_ppf,
    (_DISTRIBUTIONS, "pearson3_gen._logpdf"): _pearson3(_near_normal_logpdf, _pearson3_logpdf, _pearson3_logpdf),
    (_DISTRIBUTIONS, "pearson3_gen._ppf"): _pearson3_ppf,
    (_DISTRIBUTIONS, "pearson3_gen._cdf"): _pearson3(_near_normal_cdf, _gamma_cdf, _gamma_sf),
    (_DISTRIBUTIONS, "pearson3_gen._sf"): _pearson3(lambda z, s: _near_normal_cdf(-z, -s), _gamma_sf, _gamma_cdf),
    # SciPy subtracts from 1; here, the reciprocal has a distribution of the same kind
    (_DISTRIBUTIONS, "dpareto_lognorm_gen._logsf"): lambda self, x, u, s, a, b: self._logcdf(1 / x, -u, s, b, a),
    # for noncentrality 0, SciPy computes a formula without the noncentrality
    (_DISTRIBUTIONS, "ncx2_gen._pdf"): _method(_noncentral("ncx2_density")),
    (_DISTRIBUTIONS, "ncx2_gen._cdf"): _method(_noncentral("chndtr")),
    (_DISTRIBUTIONS, "ncx2_gen._sf"): _method(_noncentral("ncx2_sf")),
    (_DISTRIBUTIONS, "ncx2_gen._ppf"): _method(_noncentral("chndtrix")),
    (_DISTRIBUTIONS, "ncx2_gen._isf"): _method(_noncentral("ncx2_isf")),
    ("scipy.stats._discrete_distns", "skellam_gen._pmf"): _skellam_pmf,
    ("scipy.stats._discrete_distns", "skellam_gen._cdf"): _skellam_cdf,
    **{
        (home, f"{name}_gen.{method}"): _without_derivative(name, method)
        for home, name in ((_DISTRIBUTIONS, "studentized_range"), ("scipy.stats._levy_stable", "levy_stable"))
        for method in ("_pdf", "_cdf")
    },
    **{("scipy.special._ufuncs", name): fun for name, fun in _SPECIAL.items()},
}
