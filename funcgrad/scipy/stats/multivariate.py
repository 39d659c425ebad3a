"""Distributions of vectors, and densities estimated from samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_scalar
from funcgrad.numpy_code import run_anywhere
from funcgrad.optional import import_scipy
from funcgrad.primitives import solving
from funcgrad.scipy import special as fsp
from funcgrad.scipy.stats.distribution import (
    SciPyDistribution,
    as_double,
    delegates_plain,
    nan_where_invalid,
    true_if_known,
)
from funcgrad.typing import Array, ArrayLike

__all__ = ["dirichlet", "multinomial", "multivariate_normal", "multivariate_t", "gaussian_kde"]


LOG_2PI = math.log(2 * math.pi)


def _length(call: str, x: tuple[int, ...], mean: tuple[int, ...], cov: tuple[int, ...]) -> int:
    """Return the length of vectors, from the shapes of points, mean and covariance; plain numbers have length 1.

    Raises:
        ShapeError: lengths that do not match.
    """
    lengths = {*mean[-1:], *cov[-2:]}
    if lengths:
        lengths |= set(x[-1:])
    lengths -= {1} if len(lengths) > 1 else set()
    if len(lengths) > 1:
        raise ShapeError(f"{call}: vectors and matrices of one length are needed, got {sorted(lengths)}. Check them.")
    return lengths.pop() if lengths else 1


def _gaussian_form(call: str, x: Any, mean: Any, cov: Any) -> tuple[Any, Any, int]:
    """Return the squared distance of ``x`` from ``mean`` in units of ``cov``, ``cov``'s log-determinant, the length."""
    x, mean, cov = [as_double(v if backend.shape_of(v) else fnp.asarray(v)) for v in map(as_value, (x, mean, cov))]
    shapes = [backend.shape_of(v) for v in (x, mean, cov)]
    n = _length(call, *shapes)
    if len(shapes[2]) < 2:  # the variances, as in SciPy
        cov = cov[..., None] * np.eye(n) if len(shapes[2]) == 1 else cov * np.eye(n)
    if n == 1 and (not shapes[0] or shapes[0][-1] != 1):
        x = x[..., None]
    factor = solving.cholesky(cov, upper=False)
    gap = (x - mean)[..., None]
    whitened = solving.solve_triangular(factor, gap, lower=True, transposed=False, unit_diagonal=False)[..., 0]
    log_det = 2 * fnp.sum(fnp.log(fnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return fnp.sum(whitened * whitened, axis=-1), log_det, n


class _MultivariateNormal(SciPyDistribution):
    """Normal distribution of vectors. Traced covariances must be positive definite; their gradients are symmetric."""

    name = "multivariate_normal"
    functions = ("pdf", "logpdf", "entropy")

    @delegates_plain
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the logarithm of the density.

        Args:
            x: vectors along the last axis.
            mean: the mean; zeros by default.
            cov: the covariance matrix; a vector is its diagonal, a number the variance of all.
            allow_singular: for plain values only.

        Raises:
            LinAlgError: a matrix that is not positive definite. JAX arrays give NaN instead.
            ShapeError: lengths that do not match.

        Example:
            >>> from funcgrad.scipy import stats
            >>> stats.multivariate_normal.logpdf([0.0, 0.0], cov=[[1.0, 0.0], [0.0, 1.0]]).round(6)
            np.float64(-1.837877)
        """
        square, log_det, n = _gaussian_form("stats.multivariate_normal", x, 0.0 if mean is None else mean, cov)
        return -0.5 * (n * LOG_2PI + log_det + square)

    @delegates_plain
    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the density; see ``logpdf``."""
        return fnp.exp(self.logpdf(x, mean, cov))

    @delegates_plain
    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """Return the entropy, which does not depend on the mean."""
        cov = as_double(cov)
        x = np.zeros(backend.shape_of(cov)[-1:])
        _, log_det, n = _gaussian_form("stats.multivariate_normal", x, x, cov)
        return 0.5 * (n * (LOG_2PI + 1) + log_det)


class _MultivariateT(SciPyDistribution):
    """Student's distribution of vectors."""

    name = "multivariate_t"
    functions = ("pdf", "logpdf")

    @delegates_plain
    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the logarithm of the density.

        Args:
            x: vectors along the last axis.
            loc: the location; zeros by default.
            shape: a positive-definite matrix.
            df: degrees of freedom; an infinite number, for a normal distribution, is a constant.

        Raises:
            LinAlgError: a matrix that is not positive definite. JAX arrays give NaN instead.
            ShapeError: lengths that do not match.

        Example:
            >>> from funcgrad.scipy import stats
            >>> stats.multivariate_t.logpdf([0.0, 0.0], shape=[[1.0, 0.0], [0.0, 1.0]], df=2.0).round(6)
            np.float64(-1.837877)
        """
        square, log_det, n = _gaussian_form("stats.multivariate_t", x, 0.0 if loc is None else loc, shape)
        if is_plain(df) and np.all(np.isposinf(df)):
            return -0.5 * (n * LOG_2PI + log_det + square)
        half = 0.5 * (df + n)
        start = fsp.gammaln(half) - fsp.gammaln(0.5 * df) - 0.5 * n * fnp.log(math.pi * df)
        return start - 0.5 * log_det - half * fnp.log1p(square / df)

    @delegates_plain
    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the density; see ``logpdf``."""
        return fnp.exp(self.logpdf(x, loc, shape, df))


class _Dirichlet(SciPyDistribution):
    """Dirichlet distribution: vectors of shares, which add up to 1."""

    name = "dirichlet"
    functions = ("pdf", "logpdf", "entropy", "mean", "var")

    @delegates_plain
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Return the logarithm of the density; minus infinity outside of the support.

        Args:
            x: shares along the first axis, as in SciPy: all, or all but the last, which then follows.
            alpha: concentrations, a positive vector.

        Raises:
            ShapeError: lengths that do not match.

        Example:
            >>> from funcgrad.scipy import stats
            >>> stats.dirichlet.logpdf([0.25, 0.75], [1.0, 1.0])
            np.float64(0.0)
        """
        x, alpha = as_double(x), as_double(alpha)
        shape, (n,) = backend.shape_of(x), backend.shape_of(alpha)
        if shape[:1] not in ((n,), (n - 1,)):
            raise ShapeError(
                f"stats.dirichlet: x has as many rows as alpha has elements, or one less, got {describe(x)} and "
                f"{describe(alpha)}. Check them."
            )
        if shape[0] != n:
            x = fnp.concatenate([x, 1 - fnp.sum(x, axis=0, keepdims=True)], axis=0)
        inside = fnp.all((x >= 0) & (x <= 1), axis=0) & (abs(fnp.sum(x, axis=0) - 1) <= 1e-6)  # as JAX, for float32 too
        kept = fnp.where(inside, x, 1 / n)
        weights = fnp.reshape(alpha - 1, (n, *(1,) * (len(shape) - 1)))
        norm = fnp.sum(fsp.gammaln(alpha)) - fsp.gammaln(fnp.sum(alpha))
        ans = fnp.where(inside, fnp.sum(fsp.xlogy(weights, kept), axis=0) - norm, -math.inf)
        return as_scalar(fnp.squeeze(nan_where_invalid(ans, true_if_known(fnp.all(alpha > 0)), fnp.sum(alpha))))

    @delegates_plain
    def pdf(self, x: Any, alpha: Any) -> Any:
        """Return the density; see ``logpdf``."""
        return fnp.exp(self.logpdf(x, alpha))

    @delegates_plain
    def mean(self, alpha: Any) -> Any:
        """Return the mean."""
        alpha = as_double(alpha)
        return alpha / fnp.sum(alpha)

    @delegates_plain
    def var(self, alpha: Any) -> Any:
        """Return the variances."""
        alpha = as_double(alpha)
        total = fnp.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1))

    @delegates_plain
    def entropy(self, alpha: Any) -> Any:
        """Return the entropy."""
        alpha = as_double(alpha)
        total, n = fnp.sum(alpha), backend.shape_of(alpha)[0]
        norm = fnp.sum(fsp.gammaln(alpha)) - fsp.gammaln(total)
        return norm + (total - n) * fsp.psi(total) - fnp.sum((alpha - 1) * fsp.psi(alpha))


class _Multinomial(SciPyDistribution):
    """Multinomial distribution: counts of several outcomes."""

    name = "multinomial"
    functions = ("pmf", "logpmf")

    @delegates_plain
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the logarithm of the probability of the counts ``x``.

        The derivative treats the probabilities as independent numbers. If plain probabilities do not add up to 1, SciPy
        replaces the last one; traced probabilities are used unchanged.

        Args:
            x: counts along the last axis.
            n: the total count.
            p: the probabilities, along the last axis.

        Example:
            >>> from funcgrad.scipy import stats
            >>> stats.multinomial.logpmf([1, 1], 2, [0.5, 0.5]).round(6)
            np.float64(-0.693147)
        """
        x, n, p = as_double(x), as_double(n), as_double(p)
        inside = fnp.all(x >= 0, axis=-1) & (fnp.sum(x, axis=-1) == n)
        kept = fnp.where(inside[..., None], x, 0.0)
        ans = fsp.gammaln(n + 1.0) + fnp.sum(fsp.xlogy(kept, p) - fsp.gammaln(kept + 1), axis=-1)
        allowed = true_if_known(fnp.all((p >= 0) & (p <= 1), axis=-1))
        return nan_where_invalid(fnp.where(inside, ans, -math.inf), allowed, fnp.sum(p, axis=-1))

    @delegates_plain
    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the probability of the counts ``x``; see ``logpmf``."""
        return fnp.exp(self.logpmf(x, n, p))


multivariate_normal = _MultivariateNormal()
multivariate_t = _MultivariateT()
dirichlet = _Dirichlet()
multinomial = _Multinomial()


class gaussian_kde:  # noqa: N801  (SciPy's name)
    """A density: the mean of normal densities at the points of a sample, with its covariance, scaled down.

    The density has derivatives in the points of evaluation, in the sample, in the weights and in the factor.

    Args:
        dataset: the sample, (points,) or (dimensions, points).
        bw_method: the factor of the standard deviation: "scott" (the default), "silverman", a number, or a function of
            this object, which has ``n``, ``d`` and ``neff``.
        weights: the weight of each point; equal by default.

    Raises:
        ShapeError: fewer than two points, or another number of weights.
        ValueError: an unknown ``bw_method``.
        LinAlgError: a covariance that is not positive definite. JAX arrays give NaN instead.

    Example:
        >>> from funcgrad.scipy import stats
        >>> stats.gaussian_kde([0.0, 1.0, 3.0]).logpdf([1.0]).round(6)
        array([-1.537604])
    """

    def __init__(self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike | None = None) -> None:
        self._given: Any = None
        if is_plain(dataset, bw_method, weights):
            self._given = import_scipy("stats.gaussian_kde", "scipy.stats").gaussian_kde(dataset, bw_method, weights)
        self.dataset = fnp.atleast_2d(as_double(dataset))
        self.d, self.n = backend.shape_of(self.dataset)
        if self.n < 2:
            raise ShapeError(
                f"stats.gaussian_kde: two points or more are needed, got {describe(self.dataset)}. Points stand along "
                "the last axis."
            )
        raw = fnp.ones(self.n) if weights is None else fnp.atleast_1d(as_double(weights))
        if backend.shape_of(raw) != (self.n,):
            raise ShapeError(
                f"stats.gaussian_kde: a weight for each of {self.n} points is needed, got {describe(raw)}. Check them."
            )
        self.weights = raw / fnp.sum(raw)
        self.neff = 1 / fnp.sum(self.weights * self.weights)
        gaps = self.dataset - (self.dataset @ self.weights)[:, None]
        self._spread = (gaps * self.weights) @ gaps.T / (1 - fnp.sum(self.weights * self.weights))
        self._set_factor(self._factor(bw_method))

    def _set_factor(self, factor: Any) -> None:
        self.factor, self.covariance = factor, self._spread * factor**2
        self._cholesky = solving.cholesky(self.covariance, upper=False)

    @property
    def inv_cov(self) -> Any:
        """The inverse of the covariance."""
        return fnp.linalg.inv(self.covariance) if self._given is None else self._given.inv_cov

    @property
    def cho_cov(self) -> Any:
        """The lower triangle whose product with its transpose is the covariance."""
        return self._cholesky if self._given is None else self._given.cho_cov

    @property
    def log_det(self) -> Any:
        """The logarithm of the determinant of the covariance times 2 pi."""
        found = 2 * fnp.sum(fnp.log(fnp.diagonal(self._cholesky))) + self.d * LOG_2PI
        return found if self._given is None else self._given.log_det

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set another factor of the standard deviation, see ``gaussian_kde``; None changes nothing."""
        if bw_method is not None:
            self._set_factor(self._factor(bw_method))
            self._given = self._given if is_plain(self.factor) else None
            if self._given is not None:
                self._given.set_bandwidth(bw_method)

    def resample(self, size: int | None = None, seed: Any = None) -> Any:
        """Draw random numbers, which move with the sample."""
        return self._by_scipy("resample", size, seed)

    def _factor(self, bw_method: Any) -> Any:
        if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
            return self.scotts_factor()
        if isinstance(bw_method, str) and bw_method == "silverman":
            return self.silverman_factor()
        if isinstance(bw_method, str):
            raise ValueError(
                f"stats.gaussian_kde: bw_method is 'scott', 'silverman', a number or a function, got {bw_method!r}. "
                "Give one of them."
            )
        return bw_method(self) if callable(bw_method) else bw_method

    def scotts_factor(self) -> Any:
        """Return Scott's factor."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Return Silverman's factor."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Any:
        """Integrate a density of one dimension between two numbers.

        Raises:
            ShapeError: a density of more dimensions (a ``ValueError``).
        """
        if self.d != 1:
            raise ShapeError(f"stats.gaussian_kde: integrate_box_1d() is of one dimension, got {self.d}.")
        spread = fnp.sqrt(self.covariance[0, 0])

        def share(end: Any) -> Any:
            end = as_double(end)
            infinite = fnp.isinf(end)  # an infinite distance would have an infinite derivative in the width
            return fnp.where(infinite, end > 0, fsp.ndtr((fnp.where(infinite, 0.0, end) - self.dataset[0]) / spread))

        below, above = share(low), share(high)
        return fnp.sum(self.weights * (above - below))

    def covariance_factor(self) -> Any:
        """Return the factor of the standard deviation."""
        return self.factor

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Any:
        """Integrate the product with a normal density of this mean and covariance.

        Raises:
            ValueError: a mean or covariance of another number of dimensions.
        """
        return self._by_scipy("integrate_gaussian", mean, cov)

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: Any = None, **options: Any) -> Any:
        """Integrate between two corners; with traced values, in one or two dimensions only.

        Args:
            low_bounds: the lower corner.
            high_bounds: the upper corner.
            maxpts: the largest number of points that are sampled, in more dimensions.
            **options: SciPy's other options.
        """
        return self._by_scipy("integrate_box", low_bounds, high_bounds, maxpts, **options)

    def integrate_kde(self, other: Any) -> Any:
        """Integrate the product with another density estimated from a sample.

        Raises:
            ValueError: a density of another number of dimensions.
        """
        return self._by_scipy("integrate_kde", other)

    def marginal(self, dimensions: Any) -> gaussian_kde:
        """Return the marginal density in some of the dimensions.

        Raises:
            ValueError: dimensions that are not integers, do not exist, or are repeated.
        """
        found = self._by_scipy("marginal", dimensions)
        return gaussian_kde(found.dataset, found.factor, found.weights)

    def _by_scipy(self, name: str, *args: Any, **options: Any) -> Any:
        """Call SciPy's method: with plain values on SciPy's object, else rebuilt and with this object as ``self``."""
        given = [x._given or x if isinstance(x, gaussian_kde) else x for x in args]
        if self._given is not None and is_plain(*given) and not any(isinstance(x, gaussian_kde) for x in given):
            return getattr(self._given, name)(*given, **options)
        scipy_class = import_scipy(f"stats.gaussian_kde.{name}", "scipy.stats").gaussian_kde
        return run_anywhere(getattr(scipy_class, name), (self, *args), options)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at points (points,) or (dimensions, points).

        Raises:
            ShapeError: another number of dimensions than the sample has.
        """
        if self._given is not None and is_plain(x):
            found: Array = self._given.logpdf(x)
            return found
        points = fnp.atleast_2d(as_double(x))
        shape = backend.shape_of(points)
        if shape[0] != self.d:
            if shape != (1, self.d):
                raise ShapeError(
                    f"stats.gaussian_kde: points of {self.d} dimensions are needed, got {describe(points)}. They stand "
                    "along the last axis."
                )
            points, shape = points.T, (self.d, 1)
        options = {"lower": True, "transposed": False, "unit_diagonal": False}
        sample, asked = [solving.solve_triangular(self._cholesky, p, **options) for p in (self.dataset, points)]
        gaps = asked[:, :, None] - sample[:, None, :]
        log_size = 0.5 * self.d * LOG_2PI + fnp.sum(fnp.log(fnp.diagonal(self._cholesky)))
        energies = -0.5 * fnp.sum(gaps * gaps, axis=0)
        return fnp.logsumexp(energies, axis=1, b=self.weights[None, :]) - log_size

    def evaluate(self, points: ArrayLike) -> Array:
        """Return the density at points (points,) or (dimensions, points)."""
        if self._given is not None and is_plain(points):
            found: Array = self._given.evaluate(points)
            return found
        return fnp.exp(self.logpdf(points))

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density; an alias of ``evaluate``."""
        return self.evaluate(x)

    __call__ = evaluate
