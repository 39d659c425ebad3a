"""SciPy's random variables, such as ``stats.Normal(mu=x)``: elements outside of a support never reach a formula.

SciPy computes every formula for all elements and masks the result where it does not hold; there, the derivative becomes
zero times a NaN or an infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy_code.own import own


def _inside(low: Any, high: Any) -> Any:
    """Return a point between the ends of a support, a constant."""
    between = own("scipy.stats.distribution").between(fnp.asarray(low), fnp.asarray(high))
    return own("transforms.stopping").stop_gradient(between)


def _constant_at(*values: float) -> Callable[[Any], Callable[..., Any]]:
    """Wrap a density or probability: results that equal ``values[0]`` are constants.

    Results that equal ``values[1]`` are constants where the density is not positive, and at an end of the support.
    """

    def wrap(built: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, x: Any, **options: Any) -> Any:
            found = built(self, x, **options)
            if not isinstance(found, Tracer):
                return found
            fixed, full = (fnp.equal(found, value) for value in (values[0], values[-1]))
            low, high = self.support()
            if len(values) > 1 and any_true(np.asarray, full):
                fixed = fixed | (full & ~((x > low) & (x < high) & (self.pdf(x) > 0)))
            if not any_true(np.asarray, fixed):
                return found
            inner = built(self, fnp.where(fixed, _inside(low, high), x), **options)
            return fnp.where(fixed, own("transforms.stopping").stop_gradient(found), inner)[()]

        return call

    return wrap


def _with_ends(low: float, high: float, upper: bool) -> Callable[[Any], Callable[..., Any]]:
    """Wrap a quantile function of probabilities from ``low`` to ``high``, at which it is an end of the support."""

    def wrap(built: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, p: Any, **options: Any) -> Any:
            p = fnp.asarray(p)
            inside = (p > low) & (p < high)
            if not any_true(np.logical_not, inside):
                return built(self, p, **options)
            found = built(self, fnp.where(inside, p, 0.5 if high else -0.5), **options)
            first, last = self.support()[:: -1 if upper else 1]
            ends = fnp.where(p == low, first, fnp.where(p == high, last, np.nan))
            return fnp.where(inside, found, ends)[()]

        return call

    return wrap


def _known_at_ends(below: float, above: float) -> Callable[[Any], Callable[..., Any]]:
    """Wrap a distribution function that SciPy also calls for ends of a support: there it is a constant."""

    def wrap(built: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, x: Any, *args: Any, method: Any = None, **params: Any) -> Any:
            low, high = self._support(**params)
            none = x < low if hasattr(self, "_solve_bounded_discrete") else x <= low
            known = none | (x >= high)
            if not any_true(np.asarray, known):
                return built(self, x, *args, method=method, **params)
            inner = built(self, fnp.where(known, _inside(low, high), x), *args, method=method, **params)
            return fnp.where(known, fnp.where(none, below, above), inner)

        return call

    return wrap


def _transform(self: Any, x: Any, loc: Any, scale: Any, **params: Any) -> Any:
    """Compute ``(x - loc) / scale``; an infinite ``x`` depends on neither."""
    infinite = fnp.isinf(x)
    return fnp.where(infinite, x * fnp.sign(scale), (fnp.where(infinite, 0.0, x) - loc) / scale)


def _itransform(self: Any, x: Any, loc: Any, scale: Any, **params: Any) -> Any:
    infinite = fnp.isinf(x)
    return fnp.where(infinite, x * fnp.sign(scale), fnp.where(infinite, 0.0, x) * scale + loc)


def _folded(name: str, nothing: float, add: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the density of the absolute value of a random variable: both sides, if they are in its support."""

    def density(self: Any, x: Any, *args: Any, method: Any = None, **params: Any) -> Any:
        x, (low, high) = fnp.abs(x), self._dist._support(**params)
        has_left, has_right, of = -x >= low, x <= high, getattr(self._dist, name)
        left = of(fnp.where(has_left, -x, x), *args, method=method, **params)
        right = of(fnp.where(has_right, x, -x), *args, method=method, **params)
        return add(fnp.where(has_left, left, nothing), fnp.where(has_right, right, nothing))

    return density


_HOME = "scipy.stats._distribution_infrastructure"


def _places(cls: str, names: str) -> list[tuple[str, str]]:
    return [(_HOME, f"{cls}.{name}") for name in names.split()]


_BASE = "ContinuousDistribution"
#: Replacements, by module and name.
RANDOM_VARIABLES: dict[tuple[str, str], Callable[..., Any]] = {
    (_HOME, "ShiftedScaledDistribution._transform"): _transform,
    (_HOME, "ShiftedScaledDistribution._itransform"): _itransform,
    (_HOME, "FoldedDistribution._pdf_dispatch"): _folded("_pdf_dispatch", 0.0, fnp.add),
    (_HOME, "FoldedDistribution._logpdf_dispatch"): _folded("_logpdf_dispatch", -np.inf, fnp.logaddexp),
}
#: Wrappers, by module and name.
RANDOM_VARIABLE_WRAPPERS: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
    **dict.fromkeys(_places(_BASE, "pdf pmf"), _constant_at(0.0)),
    **dict.fromkeys(_places(_BASE, "logpdf logpmf"), _constant_at(-np.inf)),
    **dict.fromkeys(_places(_BASE, "_cdf1 _ccdf1"), _constant_at(0.0, 1.0)),
    **dict.fromkeys(_places(_BASE, "_logcdf1 _logccdf1"), _constant_at(-np.inf, 0.0)),
    (_HOME, f"{_BASE}.icdf"): _with_ends(0.0, 1.0, False),
    (_HOME, f"{_BASE}.iccdf"): _with_ends(0.0, 1.0, True),
    (_HOME, f"{_BASE}.ilogcdf"): _with_ends(-np.inf, 0.0, False),
    (_HOME, f"{_BASE}.ilogccdf"): _with_ends(-np.inf, 0.0, True),
    (_HOME, f"{_BASE}._cdf_dispatch"): _known_at_ends(0.0, 1.0),
    (_HOME, f"{_BASE}._ccdf_dispatch"): _known_at_ends(1.0, 0.0),
    (_HOME, f"{_BASE}._logcdf_dispatch"): _known_at_ends(-np.inf, 0.0),
    (_HOME, f"{_BASE}._logccdf_dispatch"): _known_at_ends(0.0, -np.inf),
}
