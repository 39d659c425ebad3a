"""Densities estimated from samples."""

from __future__ import annotations

import math
from typing import Any

import funcgrad.numpy as fnp
import funcgrad.scipy.special as fsp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.primitives import solving
from funcgrad.scipy.stats.distribution import as_double
from funcgrad.typing import Array, ArrayLike

__all__ = ["gaussian_kde"]

LOG_2PI = math.log(2 * math.pi)


class gaussian_kde:  # noqa: N801  (SciPy's name)
    """A density: the mean of normal ones around the points of a sample, all of the sample's covariance, scaled down.

    It has derivatives in the points where it is asked for, in the sample, in the weights and in the factor.

    Args:
        dataset: the sample, (points,) or (dimensions, points).
        bw_method: the factor of the standard deviation: "scott" (the default), "silverman", a number, or a function of
            this object, which has ``n``, ``d`` and ``neff``.
        weights: what each point counts; by default all the same.

    Raises:
        ShapeError: fewer than two points, or another number of weights.
        ValueError: an unknown ``bw_method``.
        LinAlgError: a covariance that is not positive definite. On JAX arrays that gives NaN.

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
        self.factor = self._factor(bw_method)
        gaps = self.dataset - (self.dataset @ self.weights)[:, None]
        spread = (gaps * self.weights) @ gaps.T / (1 - fnp.sum(self.weights * self.weights))
        self.covariance = spread * self.factor**2
        self._cholesky = solving.cholesky(self.covariance, upper=False)

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
        """Scott's factor."""
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Silverman's factor."""
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Any:
        """The integral of a density of one dimension between two numbers.

        Raises:
            ShapeError: a density of more dimensions (a ``ValueError``).
        """
        if self.d != 1:
            raise ShapeError(f"stats.gaussian_kde: integrate_box_1d() is of one dimension, got {self.d}.")
        spread = fnp.sqrt(self.covariance[0, 0])
        below, above = [fsp.ndtr((as_double(end) - self.dataset[0]) / spread) for end in (low, high)]
        return fnp.sum(self.weights * (above - below))

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points (points,) or (dimensions, points).

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
        """The density at points (points,) or (dimensions, points)."""
        if self._given is not None and is_plain(points):
            found: Array = self._given.evaluate(points)
            return found
        return fnp.exp(self.logpdf(points))

    def pdf(self, x: ArrayLike) -> Array:
        """``evaluate``, by another name."""
        return self.evaluate(x)

    __call__ = evaluate
