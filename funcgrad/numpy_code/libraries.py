"""Packages whose functions are not rebuilt."""

from __future__ import annotations

import builtins
import sys
from types import FunctionType
from typing import Any

from funcgrad.numpy_code.mathematics import NUMBER_MODULES
from funcgrad.numpy_code.metaclasses import members_of

#: Libraries that do not compute with NumPy, or that convert on purpose.
_LIBRARIES = (
    "IPython PIL _pytest attr attrs autograd cupy cytoolz dask funcgrad h5py hypothesis jax jaxlib joblib "
    "mpmath mypy narwhals numba opt_einsum optree pandas polars pydantic pytest rich sympy "
    "tensorflow threadpoolctl toolz torch tqdm xarray"
)
#: Libraries that draw: they get plain numbers, see ``drawings``.
DRAWING_PACKAGES = frozenset(("bokeh", "matplotlib", "mpl_toolkits", "plotly", "seaborn"))
#: Packages whose functions and classes stay unchanged.
KEPT_PACKAGES = (sys.stdlib_module_names - set(NUMBER_MODULES) - {"__main__"}).union(
    _LIBRARIES.split(), DRAWING_PACKAGES
)
#: Code of kept packages that is rebuilt all the same, because it gives numbers to ``math``, or arrays to NumPy, SciPy
#: and pandas: the names of modules, and of methods.
REBUILT_MODULES = frozenset(("matplotlib.mlab", "random", "xarray.core.missing", "xarray.computation.fit"))
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


def module_of(value: Any) -> Any:
    """Return the name of the module that a function or class is from; None if a text without a module name made it.

    ``functools.wraps(np.array)`` gives a program's function the module of NumPy's; the code shows where it is from.
    Python takes a class for one of its own if ``exec`` makes it in a scope without a name: code in this scope finds the
    ``__name__`` of the built-in names.

    Example:
        >>> from functools import wraps
        >>> array = wraps(np.array)(eval("lambda x: x", {"__name__": "program"}))
        >>> array.__module__, module_of(array), module_of(np.array), module_of(float)
        ('numpy', 'program', 'numpy', 'builtins')
        >>> scope = {}
        >>> exec("class C: pass", scope)
        >>> scope["C"].__module__, module_of(scope["C"])
        ('builtins', None)
    """
    named = getattr(value, "__module__", None)
    if type(value) is FunctionType:
        defined = value.__globals__.get("__name__")
        is_known = not isinstance(defined, str) or is_mirrored(defined) or is_kept(defined)
        return named if is_known or package_of(defined) == package_of(named) else defined
    is_made = named == "builtins" and isinstance(value, type) and "__module__" in members_of(value)
    return None if is_made and vars(builtins).get(value.__name__) is not value else named


def is_mirrored(module: str) -> bool:
    """Whether names of ``module`` have counterparts: a module of NumPy or SciPy, or ``math`` and its like."""
    return module.partition(".")[0] in ("numpy", "scipy") or module in NUMBER_MODULES


def package_of(module: Any) -> str | None:
    """Return the package of a module, given its name; None if there is no name.

    Example:
        >>> package_of("numpy.linalg"), package_of(None)
        ('numpy', None)
    """
    return module.partition(".")[0] if isinstance(module, str) else None
