"""Packages whose functions are not rebuilt."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from funcgrad.numpy_code.mathematics import NUMBER_MODULES
from funcgrad.numpy_code.metaclasses import members_of

#: Libraries that do not compute with NumPy, or that convert on purpose.
_LIBRARIES = (
    "IPython PIL _pytest attr attrs autograd cupy cytoolz dask funcgrad h5py hypothesis jax jaxlib joblib "
    "matplotlib mpmath mypy narwhals numba opt_einsum optree pandas plotly polars pydantic pytest rich sympy "
    "tensorflow threadpoolctl toolz torch tqdm xarray"
)
#: Packages whose functions and classes stay unchanged.
KEPT_PACKAGES = (sys.stdlib_module_names - set(NUMBER_MODULES) - {"__main__"}).union(_LIBRARIES.split())
#: Code of kept packages that is rebuilt all the same, because it gives numbers to ``math``, or arrays to NumPy, SciPy
#: and pandas: the names of modules, and of methods.
REBUILT_MODULES = frozenset(("random", "xarray.core.missing", "xarray.computation.fit"))
REBUILT_METHODS = frozenset(
    ("_weighted_quantile", "bfill", "curvefit", "ffill", "interp", "interpolate_na", "to_pandas", "to_series")
)


def is_kept(module: Any) -> bool:
    """Whether functions and classes of a module stay unchanged, given its name.

    Example:
        >>> is_kept("pandas"), is_kept("numpy.linalg"), is_kept("xarray.core.missing")
        (True, False, False)
    """
    return package_of(module) in KEPT_PACKAGES and module not in REBUILT_MODULES


def home_of(value: Any) -> Any:
    """Return the name of the module of a function or class; None if it was made by ``exec`` in a scope without a name.

    Python takes such a class for one of its own: code in this scope finds the ``__name__`` of the built-in names.

    Example:
        >>> home_of(float)
        'builtins'
        >>> scope = {}
        >>> exec("class C: pass", scope)
        >>> scope["C"].__module__, home_of(scope["C"])
        ('builtins', None)
    """
    home = getattr(value, "__module__", None)
    is_made = home == "builtins" and isinstance(value, type) and "__module__" in members_of(value)
    return None if is_made and vars(builtins).get(value.__name__) is not value else home


def package_of(module: Any) -> str | None:
    """Return the package of a module, given its name; None if there is no name.

    Example:
        >>> package_of("numpy.linalg"), package_of(None)
        ('numpy', None)
    """
    return module.partition(".")[0] if isinstance(module, str) else None
