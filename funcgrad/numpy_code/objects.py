"""Objects of NumPy and SciPy that a program made outside, as funcgrad's objects with the same constants."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["MAKERS"]

Translate = Callable[[Any], tuple[Any, bool]]


def _own(module: str, name: str) -> Any:
    return getattr(import_module(f"funcgrad.{module}"), name)


def _frozen(value: Any, translate: Translate) -> Any:
    """A distribution of SciPy with its parameters."""
    return translate(value.dist)[0](*value.args, **value.kwds)


def _pieces(name: str) -> Callable[[Any, Translate], Any]:
    """Polynomials in pieces: their coefficients and breakpoints."""
    return lambda value, translate: _own("scipy.interpolate", name)(value.c, value.x, value.extrapolate)


def _series(name: str) -> Callable[[Any, Translate], Any]:
    return lambda value, translate: _own("numpy.polynomial", name)(value.coef, value.domain, value.window)


#: By the full name of the class.
MAKERS: dict[Any, Callable[[Any, Translate], Any]] = {
    "scipy.stats._distn_infrastructure.rv_continuous_frozen": _frozen,
    "scipy.stats._distn_infrastructure.rv_discrete_frozen": _frozen,
    "numpy.poly1d": lambda value, translate: _own("numpy", "poly1d")(value.coeffs),
    **{
        f"numpy.polynomial.{home}.{name}": _series(name)
        for home, name in (
            ("polynomial", "Polynomial"),
            ("chebyshev", "Chebyshev"),
            ("legendre", "Legendre"),
            ("hermite", "Hermite"),
            ("hermite_e", "HermiteE"),
            ("laguerre", "Laguerre"),
        )
    },
}
