"""Inspection functions of the Python array API standard, version 2024.12, for funcgrad.numpy.

The functions tell dtypes, devices, capabilities and limits of dtypes. The end of the file lists names of NumPy that
do not compute with arrays, so that ``import funcgrad.numpy as np`` can replace NumPy's import: types, files, random
numbers, tests, dates and strings. These objects are NumPy's, are looked up at first use, and are not exported by
``from funcgrad.numpy import *``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from funcgrad.backend import namespace_of
from funcgrad.core import Tracer

__all__ = ["NamespaceInfo", "__array_api_version__", "__array_namespace_info__", "finfo", "iinfo", "NUMPYS"]


#: Version of the standard that this namespace follows.
__array_api_version__ = "2024.12"

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = (*_KINDS["signed integer"], *_KINDS["unsigned integer"])
_KINDS["numeric"] = (*_KINDS["integral"], *_KINDS["real floating"], *_KINDS["complex floating"])
_ALL = (*_KINDS["bool"], *_KINDS["numeric"])


def _check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"__array_namespace_info__: arrays are made on the CPU, got device={device!r}. Use 'cpu'.")


class NamespaceInfo:
    """Result of ``__array_namespace_info__``."""

    def capabilities(self) -> dict[str, Any]:
        """Return capabilities: indexing by masks, shapes that depend on data, the largest number of axes.

        Inside ``vmap`` shapes cannot depend on data, because the examples would differ in shape.

        Example:
            >>> NamespaceInfo().capabilities()
            {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 64}
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device on which arrays are made.

        Example:
            >>> NamespaceInfo().default_device()
            'cpu'
        """
        return "cpu"

    def devices(self) -> list[Any]:
        """Return the devices that functions which make arrays accept; JAX arrays stay on their device.

        Example:
            >>> NamespaceInfo().devices()
            ['cpu']
        """
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtypes of arrays.

        Raises:
            ValueError: an unknown device.

        Example:
            >>> NamespaceInfo().default_dtypes()["real floating"]
            dtype('float64')
        """
        _check_device(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int_),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the standard by name; float16 and bfloat16 work too but are not in the standard.

        Args:
            device: a device.
            kind: a kind of dtypes, such as "numeric" or "real floating", or several; by default all.

        Raises:
            ValueError: an unknown kind or device.

        Example:
            >>> NamespaceInfo().dtypes(kind="real floating")
            {'float32': dtype('float32'), 'float64': dtype('float64')}
        """
        _check_device(device)
        kinds = (kind,) if isinstance(kind, str) else kind
        unknown = [k for k in kinds or () if k not in _KINDS]
        if unknown:
            raise ValueError(f"dtypes: unknown kind of dtypes, got {unknown[0]!r}. Choose from {', '.join(_KINDS)}.")
        wanted = _ALL if kinds is None else {name for k in kinds for name in _KINDS[k]}
        return {name: np.dtype(name) for name in _ALL if name in wanted}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the name is the standard's)
    """Return an object with the inspection functions of the array API standard.

    Example:
        >>> fnp.__array_namespace_info__().default_dtypes()["integral"]
        dtype('int64')
    """
    return NamespaceInfo()


def _dtype(of: Any) -> Any:
    """Return the dtype of an array or a tracer; return any other value, a dtype or its name, as it is."""
    return of.dtype if isinstance(of, Tracer) or (namespace_of(of) is not None and hasattr(of, "dtype")) else of


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating dtype or of an array's dtype: NumPy's ``finfo``, for bfloat16 ml_dtypes'.

    Raises:
        ValueError: the dtype is not floating.

    Example:
        >>> fnp.finfo(fnp.zeros(3)).bits
        64
    """
    dtype = _dtype(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind == "V" and "ml_dtypes" in sys.modules:
        return sys.modules["ml_dtypes"].finfo(dtype)
    return np.finfo(dtype)


def iinfo(type: Any) -> Any:
    """Return the limits of an integer dtype or of an array's dtype: NumPy's ``iinfo``.

    Raises:
        ValueError: the dtype is not an integer dtype.

    Example:
        >>> fnp.iinfo(np.ones(3, np.int8)).max
        127
    """
    return np.iinfo(_dtype(type))


_MODULES = "char core ctypeslib dtypes exceptions f2py ma random rec strings testing typing"
_FILES = "fromfile fromregex fromstring genfromtxt load loadtxt memmap save savetxt savez savez_compressed"
_TYPES = "ScalarType bytes_ character datetime64 flexible object_ record str_ timedelta64 typecodes void"
_CLASSES = "broadcast busdaycalendar flatiter matrix nested_iters recarray"
_DATES = "busday_count busday_offset datetime_as_string datetime_data is_busday"
_OTHERS = "__version__ asmatrix bmat get_include info little_endian sctypeDict show_config show_runtime"

#: Module of NumPy that has each name, as ``optional.lazy_attributes`` expects it.
NUMPYS = {name: f"numpy.{name}" for name in _MODULES.split()} | {
    name: f"numpy:{name}" for name in f"{_FILES} {_TYPES} {_CLASSES} {_DATES} {_OTHERS}".split()
}
NUMPYS |= {name: f"numpy:{name}" for name in ("complex256", "float128") if hasattr(np, name)}  # platform-dependent
NUMPYS["row_stack"] = "funcgrad.numpy.joining:vstack"
