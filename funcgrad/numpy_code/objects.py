"""NumPy's and SciPy's objects that a program made outside, as funcgrad's objects with the same constants."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.matrices import matrix
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.random import PythonRandom, Random
from funcgrad.numpy_code.sparse.objects import ConstantMatrix
from funcgrad.numpy_code.xarrays import accept_traced

Translate = Callable[[Any], tuple[Any, bool]]


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
        self.dist, self.args, self.kwds = dist, args, kwargs
        self.funcgrad_object = dist.funcgrad_object(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if self.dist.funcgrad_object.has(name):
            return getattr(self.funcgrad_object, name)
        return getattr(self.dist.scipy_object(*self.args, **self.kwds), name)


def _masked(value: Any, translate: Translate) -> Any:
    """Return funcgrad's masked array of the same numbers."""
    masked = import_module("funcgrad.numpy.masked")
    found = masked.from_numpy(value)
    return masked.Masked(translate(found._val)[0], found._mask, found._fill) if found is not value else value


def _table(value: Any) -> Any:
    """Return funcgrad's table on a grid."""
    make = own("scipy.interpolate").RegularGridInterpolator
    return make(value.grid, value.values, value.method, value.bounds_error, value.fill_value)


def _line(value: Any) -> Any:
    """Return funcgrad's ``interp1d``: lines through points, steps or a spline."""
    kind = value._spline.k if value._kind == "spline" else value._kind
    fill = "extrapolate" if value._extrapolate else value.fill_value
    make = own("scipy.interpolate").interp1d
    return make(value.x, value.y, kind, value.axis, bounds_error=value.bounds_error, fill_value=fill)


def _scattered(value: Any) -> Any:
    """Return funcgrad's interpolator of scattered points; SciPy's holds its points rescaled."""
    make = getattr(own("scipy.interpolate"), type(value).__name__)
    if make.__name__ == "NearestNDInterpolator":
        found = make(value.points, value.values)
    else:
        found = make(value.tri, value.values.reshape(len(value.values), *value.values_shape), value.fill_value)
    if value.scale is not None:
        found.origin, found.unit = value.offset, value.scale
    return found


def _series(value: Any) -> Any:
    return getattr(fnp.polynomial, type(value).__name__)(value.coef, value.domain, value.window)


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
#: Functions that rebuild objects with what they refer to, by the full name of their class.
REBUILDERS: dict[Any, Callable[[Any, Translate], Any]] = {
    **dict.fromkeys(DECORATED, rebuild_decorated),
    **{f"{home}.BoundFunctionWrapper": _rebuild_decorated_method for home in _WRAPT},
    "scipy.stats._distn_infrastructure.rv_continuous_frozen": _frozen,
    "scipy.stats._distn_infrastructure.rv_discrete_frozen": _frozen,
    **dict.fromkeys(("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"), _masked),
    **{
        f"xarray.core.{name}": accept_traced for name in ("dataarray.DataArray", "dataset.Dataset", "variable.Variable")
    },
    "numpy.matrix": lambda value, translate: matrix(translate(np.asarray(value))[0]),
    "random.Random": PythonRandom,
}
#: Functions that return funcgrad's object for another one, by the full name of its class.
MAKERS: dict[str, Callable[[Any], Any]] = {
    "scipy.interpolate._rgi.RegularGridInterpolator": _table,
    "scipy.interpolate._interpolate.interp1d": _line,
    **{
        f"scipy.interpolate.{home}.{name}": _scattered
        for home in ("_interpnd", "interpnd")  # before SciPy 1.15
        for name in ("LinearNDInterpolator", "CloughTocher2DInterpolator")
    },
    "scipy.interpolate._ndgriddata.NearestNDInterpolator": _scattered,
    "scipy.stats._kde.gaussian_kde": lambda value: own("scipy.stats").gaussian_kde(
        value.dataset, value.factor, value.weights
    ),
    **{
        f"scipy.spatial._{name}": lambda value: own("scipy.spatial").KDTree.of(value)
        for name in ("ckdtree.cKDTree", "kdtree.KDTree")
    },
    "scipy.spatial._qhull.Delaunay": lambda value: own("scipy.spatial").Delaunay.of(value),
    "scipy.spatial.transform._rotation.Rotation": lambda value: own("scipy.spatial.transform").Rotation.from_quat(
        value.as_quat()
    ),
    **{
        f"pandas.{name}": lambda value: own("numpy.tables.frames").accept_traced(value)
        for name in ("Series", "DataFrame", "core.series.Series", "core.frame.DataFrame")
    },
    **{
        f"scipy.sparse._{home}.{home}_{kind}": ConstantMatrix
        for home in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
        for kind in ("array", "matrix")
    },
    "numpy.random._generator.Generator": Random,
    "numpy.random.mtrand.RandomState": Random,
    "numpy.lib._index_tricks_impl.RClass": lambda value: fnp.r_,
    "numpy.lib._index_tricks_impl.CClass": lambda value: fnp.c_,
    "numpy.poly1d": lambda value: fnp.poly1d(value.coeffs),
    **{
        f"numpy.polynomial.{name}": _series
        for name in (
            "polynomial.Polynomial",
            "chebyshev.Chebyshev",
            "legendre.Legendre",
            "hermite.Hermite",
            "hermite_e.HermiteE",
            "laguerre.Laguerre",
        )
    },
}
