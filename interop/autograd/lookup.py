"""Lookup of the names of a module: funcgrad's functions first, then the names of the mirrored library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.backend import ARRAY_CLASSES
from funcgrad.core import Tracer, is_array
from funcgrad.errors import InputError
from funcgrad.interop.autograd.rules import open_primitive
from funcgrad.optional import import_scipy

__all__ = ["mirrored", "names_of_scipy"]


def mirrored(own: ModuleType, library: ModuleType, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public names of a module of NumPy.

    Args:
        own: funcgrad's module. The names in its ``__all__`` come from here, except modules that it imports lazily:
            these stay lazy.
        library: NumPy's module, for dtypes, constants and what funcgrad lacks; its functions refuse traced values.
        chosen: names with other values.
    """
    public = {name: value for name, value in vars(library).items() if not name.startswith("_")}
    plain = {name: value for name, value in public.items() if not isinstance(value, ModuleType)}
    present = [name for name in own.__all__ if name in vars(own) and (name in plain or name not in public)]
    operations = {name: getattr(own, name) for name in present} | dict(chosen)
    return plain | {name: _lenient(value, plain.get(name)) for name, value in operations.items()}


def _lenient(operation: Any, numpy_function: Any) -> Any:
    """Return ``operation`` so that it takes data frames and other array-likes if it is a function, as NumPy's does."""
    if not isinstance(operation, FunctionType) or not callable(numpy_function):
        return operation

    @wraps(operation)
    def call(*args: Any, **kwargs: Any) -> Any:
        if ARRAY_CLASSES and _is_of_registered_classes(args, kwargs):
            return numpy_function(*args, **kwargs)
        try:
            return operation(*args, **kwargs)
        except InputError:
            if Tracer not in map(type, tree.leaves((args, kwargs))):
                return numpy_function(*args, **kwargs)
            if not any(_is_foreign(arg) for arg in args):
                raise
        return operation(*[np.asarray(arg) if _is_foreign(arg) else arg for arg in args], **kwargs)

    return call


def _is_of_registered_classes(args: Any, kwargs: Any) -> bool:
    """Return whether some argument is an array of a class that a program registered, and no argument is traced."""
    leaves = tree.leaves((args, kwargs))
    return any(type(leaf) in ARRAY_CLASSES for leaf in leaves) and Tracer not in map(type, leaves)


def _is_foreign(x: Any) -> bool:
    """Return whether NumPy can make an array of ``x``, and funcgrad does not know the class of ``x``."""
    return hasattr(type(x), "__array__") and not is_array(x)


def names_of_scipy(path: str, present: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module whose names are those of ``scipy.<path>``.

    Args:
        path: "special", "stats.norm", ...
        present: names that the module defines itself.
    """
    top, *inner = path.split(".")

    @cache
    def homes() -> list[Any]:
        found = []
        if find_spec("funcgrad.scipy." + top) is not None:
            found.append(import_module("funcgrad.scipy." + top))
        found.append(import_scipy(f"scipy.{path}", "scipy." + top))
        for name in inner:
            found = [getattr(home, name) for home in found if hasattr(home, name)]
        return found

    @cache
    def declarable(found: Any) -> Any:
        """Return a function of SciPy as one for which a program may declare derivative rules."""
        return (
            open_primitive(found)
            if callable(found) and hasattr(found, "__name__") and not isinstance(found, type)
            else found
        )

    def member(name: str) -> Any:
        if not name.startswith("_"):
            for home in homes():
                found = getattr(home, name, None)
                if found is not None and not isinstance(found, ModuleType):
                    return declarable(found) if home is homes()[-1] else found
        raise AttributeError(
            f"module 'autograd.scipy.{path}' has no attribute {name!r}: neither funcgrad.scipy nor SciPy has it."
        )

    def names() -> list[str]:
        return sorted({name for home in homes() for name in dir(home) if not name.startswith("_")} | set(present))

    return member, names
