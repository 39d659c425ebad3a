"""Objects of NumPy and SciPy that a program made outside, as funcgrad's objects with the same constants."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from funcgrad.numpy_code.random import Random
from funcgrad.numpy_code.sparse import Constant

__all__ = ["MAKERS"]

Translate = Callable[[Any], tuple[Any, bool]]


def _own(module: str, name: str) -> Any:
    return getattr(import_module(f"funcgrad.{module}"), name)


def _frozen(value: Any, translate: Translate) -> Any:
    """A distribution of SciPy with its parameters."""
    return translate(value.dist)[0](*value.args, **value.kwds)


def _table(value: Any, translate: Translate) -> Any:
    """A table on a grid. Of methods other than these SciPy's own code is built anew."""
    if value.method not in ("linear", "nearest"):
        return value
    make = _own("scipy.interpolate", "RegularGridInterpolator")
    return make(value.grid, value.values, value.method, value.bounds_error, value.fill_value)


def _line(value: Any, translate: Translate) -> Any:
    """A line through points, or steps, or a cubic spline."""
    kind = value._kind if isinstance(value._kind, str) else ""
    if kind not in ("linear", "cubic", "previous", "next", "nearest", "zero"):
        return value
    fill = "extrapolate" if value._extrapolate else value.fill_value
    make = _own("scipy.interpolate", "interp1d")
    return make(value.x, value.y, kind, value.axis, bounds_error=value.bounds_error, fill_value=fill)


def _density(value: Any, translate: Translate) -> Any:
    return _own("scipy.stats", "gaussian_kde")(value.dataset, value.factor, value.weights)


def _series(name: str) -> Callable[[Any, Translate], Any]:
    return lambda value, translate: _own("numpy.polynomial", name)(value.coef, value.domain, value.window)


#: By the full name of the class.
MAKERS: dict[Any, Callable[[Any, Translate], Any]] = {
    "scipy.stats._distn_infrastructure.rv_continuous_frozen": _frozen,
    "scipy.stats._distn_infrastructure.rv_discrete_frozen": _frozen,
    "scipy.interpolate._rgi.RegularGridInterpolator": _table,
    "scipy.interpolate._interpolate.interp1d": _line,
    "scipy.stats._kde.gaussian_kde": _density,
    "scipy.spatial.transform._rotation.Rotation": lambda value, translate: _own(
        "scipy.spatial.transform", "Rotation"
    ).from_quat(value.as_quat()),
    **{
        f"scipy.sparse._{home}.{home}_{kind}": lambda value, translate: Constant(value)
        for home in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
        for kind in ("array", "matrix")
    },
    "numpy.random._generator.Generator": lambda value, translate: Random(value),
    "numpy.random.mtrand.RandomState": lambda value, translate: Random(value),
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
