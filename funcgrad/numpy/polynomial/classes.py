"""Base class with which NumPy's classes of series accept traced coefficients and points."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.polynomial.series import as_series, series
from funcgrad.primitives.products import matmul
from funcgrad.typing import Array, ArrayLike

#: Functions that NumPy's classes call, with their names in ``Series``.
_PARTS = {
    **{name: name for name in ("add", "sub", "mul", "div", "pow", "val", "der", "fit", "line", "roots", "fromroots")},
    "int": "integral",
}


_mapping: Any = np.polynomial.polyutils.mapparms


def _numpy_class(cls: type) -> Any:
    return next(base for base in cls.__mro__ if base.__module__.startswith("numpy."))


class TracedSeries:
    """Base class placed before one of NumPy's classes of series; ``prefix`` names the family.

    Arithmetic, values, derivatives, integrals and roots of traced series work as in NumPy's class. Methods that need
    plain numbers (cutting small coefficients, domains made from traced points) refuse traced values.
    """

    coef: Any
    domain: Any
    window: Any

    def __init_subclass__(cls, *, prefix: str) -> None:
        for theirs, ours in _PARTS.items():
            setattr(cls, f"_{theirs}", staticmethod(getattr(series(prefix), ours)))

    def __init__(self, coef: ArrayLike, domain: Any = None, window: Any = None, symbol: str = "x") -> None:
        base: Any = super()
        base.__init__(coef if is_plain(coef) else [0.0], domain, window, symbol)
        if not is_plain(coef):
            (self.coef,) = as_series(coef)

    @classmethod
    def fromroots(cls, roots: ArrayLike, domain: Any = (), window: Any = None, symbol: str = "x") -> Any:
        """Return the series that has these roots."""
        base: Any = super()
        domain = [] if isinstance(domain, tuple) and not domain else domain  # NumPy's default: the class's domain
        if is_plain(roots):
            return base.fromroots(roots, domain, window, symbol)
        given: Any = base.fromroots([0.0], domain if domain is not None else as_value(roots), window, symbol)
        offset, scale = _mapping(given.domain, given.window)
        (roots,) = as_series(roots)
        coef = cls._fromroots(offset + scale * roots) / scale ** len(roots)  # type: ignore[attr-defined]
        return cls(coef, given.domain, given.window, symbol)

    def __call__(self, arg: Any) -> Any:
        """Return the values at ``arg``; if ``arg`` is a series, return the composed series, which ``convert`` needs."""
        if is_plain(getattr(arg, "coef", arg), self.coef):
            base: Any = super()
            return base.__call__(arg)
        if hasattr(arg, "coef"):
            return self._composed(arg)
        offset, scale = _mapping(self.domain, self.window)
        return self._val(offset + scale * as_value(arg), self.coef)  # type: ignore[attr-defined]

    def _composed(self, inner: Any) -> Any:
        """Compose with another series term by term, as the result is linear in the coefficients of this one."""
        if not is_plain(inner.coef):
            bases = [_numpy_class(type(self)).basis(i, self.domain, self.window) for i in range(len(self.coef))]
            made = reduce(add, [basis(inner) * self.coef[i] for i, basis in enumerate(bases)])
            made.coef = made.coef[: (len(self.coef) - 1) * (len(inner.coef) - 1) + 1]  # NumPy's zeros are cut off
            return made
        outer, theirs = _numpy_class(type(self)), _numpy_class(type(inner))
        given = theirs(inner.coef, inner.domain, inner.window)
        count = len(self.coef)
        terms = [outer.basis(i, self.domain, self.window)(given).coef for i in range(count)]
        matrix = np.zeros((count, max(map(len, terms))))
        for row, term in zip(matrix, terms, strict=True):
            row[: len(term)] = term
        ours = getattr(import_module("funcgrad.numpy.polynomial"), theirs.__name__)
        return ours(matmul(as_value(self.coef), matrix), inner.domain, inner.window)

    def roots(self) -> Array:
        """Return the zeros, sorted."""
        offset, scale = _mapping(self.window, self.domain)
        return offset + scale * self._roots(self.coef)  # type: ignore[attr-defined]
