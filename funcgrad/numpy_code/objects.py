"""NumPy's and SciPy's objects that a program made outside, as funcgrad's objects with the same constants."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy.tables import accept_traced
from funcgrad.numpy_code.matrices import matrix
from funcgrad.numpy_code.random import Random
from funcgrad.numpy_code.sparse.objects import ConstantMatrix

Translate = Callable[[Any], tuple[Any, bool]]


def _from_funcgrad(module: str, name: str) -> Any:
    return getattr(import_module(f"funcgrad.{module}"), name)


def _frozen(value: Any, translate: Translate) -> Any:
    """Rebuild a SciPy distribution with its parameters."""
    return translate(value.dist)[0](*value.args, **value.kwds)


class Distribution:
    """SciPy distribution: funcgrad's functions, and SciPy's own code for those that funcgrad does not have.

    Args:
        funcgrad_object: funcgrad's distribution.
        theirs: SciPy's distribution, viewed through its rebuilt class.
    """

    def __init__(self, funcgrad_object: Any, scipy_object: Any) -> None:
        self.funcgrad_object, self.scipy_object = funcgrad_object, scipy_object

    __class__: Any = property(lambda self: type(self.scipy_object))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.funcgrad_object if self.funcgrad_object.has(name) else self.scipy_object, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the distribution with these parameters."""
        return _Frozen(self, args, kwargs)


class _Frozen:
    """Distribution with its parameters."""

    def __init__(self, dist: Distribution, args: Any, kwargs: Any) -> None:
        self.funcgrad_object, self.dist, self.args, self.kwds = (
            dist.funcgrad_object(*args, **kwargs),
            dist,
            args,
            kwargs,
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(
            self.funcgrad_object
            if self.dist.funcgrad_object.has(name)
            else self.dist.scipy_object(*self.args, **self.kwds),
            name,
        )


def _table(value: Any, translate: Translate) -> Any:
    """Rebuild a table on a grid."""
    make = _from_funcgrad("scipy.interpolate", "RegularGridInterpolator")
    return make(value.grid, value.values, value.method, value.bounds_error, value.fill_value)


def _line(value: Any, translate: Translate) -> Any:
    """Rebuild an ``interp1d``: lines through points, steps or a spline."""
    kind = value._spline.k if value._kind == "spline" else value._kind
    fill = "extrapolate" if value._extrapolate else value.fill_value
    make = _from_funcgrad("scipy.interpolate", "interp1d")
    return make(value.x, value.y, kind, value.axis, bounds_error=value.bounds_error, fill_value=fill)


def _scattered(name: str) -> Callable[[Any, Translate], Any]:
    """Return a function that rebuilds an interpolator of scattered points, which holds its points rescaled."""

    def made(value: Any, translate: Translate) -> Any:
        values = value.values.reshape(len(value.values), *value.values_shape)
        found = _from_funcgrad("scipy.interpolate", name)(value.tri, values, value.fill_value)
        if value.scale is not None:
            found.origin, found.unit = value.offset, value.scale
        return found

    return made


def _nearest(value: Any, translate: Translate) -> Any:
    found = _from_funcgrad("scipy.interpolate", "NearestNDInterpolator")(value.points, value.values)
    if value.scale is not None:
        found.origin, found.unit = value.offset, value.scale
    return found


def _density(value: Any, translate: Translate) -> Any:
    return _from_funcgrad("scipy.stats", "gaussian_kde")(value.dataset, value.factor, value.weights)


def _series(name: str) -> Callable[[Any, Translate], Any]:
    return lambda value, translate: _from_funcgrad("numpy.polynomial", name)(value.coef, value.domain, value.window)


def rebuild_decorated(value: Any, translate: Translate) -> Any:
    """Rebuild a function or method that a decorator of wrapt wraps."""
    return type(value)(translate(value.__wrapped__)[0], translate(value._self_wrapper)[0], value._self_enabled)


def _rebuild_decorated_method(value: Any, translate: Translate) -> Any:
    instance = value._self_instance
    return translate(value._self_parent)[0].__get__(translate(instance)[0], type(instance))


#: Modules that wrapt's classes name: in C since version 2 and before, and in Python.
_WRAPT = ("_wrappers", "builtins", "wrapt.wrappers")
#: Full names of wrapt's class of rebuild_decorated functions.
DECORATED = tuple(f"{home}.FunctionWrapper" for home in _WRAPT)
#: Functions that rebuild objects, by the full name of their class.
MAKERS: dict[Any, Callable[[Any, Translate], Any]] = {
    **dict.fromkeys(DECORATED, rebuild_decorated),
    **{f"{home}.BoundFunctionWrapper": _rebuild_decorated_method for home in _WRAPT},
    "scipy.stats._distn_infrastructure.rv_continuous_frozen": _frozen,
    "scipy.stats._distn_infrastructure.rv_discrete_frozen": _frozen,
    "scipy.interpolate._rgi.RegularGridInterpolator": _table,
    "scipy.interpolate._interpolate.interp1d": _line,
    **{
        f"scipy.interpolate.{home}.{name}": _scattered(name)
        for home in ("_interpnd", "interpnd")  # before SciPy 1.15
        for name in ("LinearNDInterpolator", "CloughTocher2DInterpolator")
    },
    "scipy.interpolate._ndgriddata.NearestNDInterpolator": _nearest,
    "scipy.stats._kde.gaussian_kde": _density,
    **{
        f"scipy.spatial._{name}": lambda value, translate: _from_funcgrad("scipy.spatial", "KDTree").of(value)
        for name in ("ckdtree.cKDTree", "kdtree.KDTree")
    },
    "scipy.spatial.transform._rotation.Rotation": lambda value, translate: _from_funcgrad(
        "scipy.spatial.transform", "Rotation"
    ).from_quat(value.as_quat()),
    **{
        name: lambda value, translate: _from_funcgrad("numpy.frames", "accept_traced")(value)
        for name in ("pandas.Series", "pandas.DataFrame", "pandas.core.series.Series", "pandas.core.frame.DataFrame")
    },
    **{
        f"xarray.core.{home}": lambda value, translate: accept_traced(value)
        for home in ("dataarray.DataArray", "dataset.Dataset")
    },
    **{
        f"scipy.sparse._{home}.{home}_{kind}": lambda value, translate: ConstantMatrix(value)
        for home in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
        for kind in ("array", "matrix")
    },
    "numpy.random._generator.Generator": lambda value, translate: Random(value),
    "numpy.random.mtrand.RandomState": lambda value, translate: Random(value),
    "numpy.lib._index_tricks_impl.RClass": lambda value, translate: fnp.r_,
    "numpy.lib._index_tricks_impl.CClass": lambda value, translate: fnp.c_,
    "numpy.matrix": lambda value, translate: matrix(translate(np.asarray(value))[0]),
    "numpy.poly1d": lambda value, translate: _from_funcgrad("numpy", "poly1d")(value.coeffs),
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
