"""Deferred imports of modules that only some calls need, with a clear error for each missing library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from types import MappingProxyType
from typing import Any

from funcgrad.errors import InputError, MissingExtraError


def lazy_attributes(
    package: str, names: dict[str, Any], homes: dict[str, str], advice: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package that imports some of its names at their first access.

    Args:
        package: the name of the package.
        names: its ``globals()``.
        homes: by name, the module that the name means, or ``module:name`` for an attribute of a module.
        advice: by a name that other libraries have, the replacement for it.

    Example:
        >>> found, listed = lazy_attributes("json", names := {}, {"tool": "json.tool", "Decoder": "json:JSONDecoder"})
        >>> found("Decoder").__name__, found("tool").__name__, listed()
        ('JSONDecoder', 'json.tool', ['Decoder', 'tool'])
    """

    def get(name: str) -> Any:
        if name not in homes:
            instead = f". Use {advice[name]}." if name in advice else ""
            module = sys.modules.get(package)  # Python suggests a similar name of this object
            raise AttributeError(f"module {package!r} has no attribute {name!r}{instead}", name=name, obj=module)
        home, _, own = homes[name].partition(":")
        module = importlib.import_module(home)
        found = names[name] = getattr(module, own) if own else module
        return found

    def listed() -> list[str]:
        shown = names.get("__all__", names)
        return sorted({*shown, *homes, *[name for name in names if name.startswith("__")]})

    return get, listed


def import_jax(call: str) -> Any:
    """Import the module ``jax``, with ``jax.numpy`` loaded.

    Args:
        call: the public call that needs it, for the message.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
    """
    try:
        importlib.import_module("jax.numpy")
        return importlib.import_module("jax")
    except ImportError as error:
        raise MissingExtraError(
            f"{call}: JAX cannot be imported, got {type(error).__name__}: {error}. "
            "Install it with the extra: pip install 'funcgrad[jax]'."
        ) from error


def loaded_jax() -> Any:
    """Return the module ``jax`` if it has been imported, as any program with a JAX array has done; else None."""
    return sys.modules.get("jax")


def import_scipy(call: str, module: str = "scipy.optimize") -> Any:
    """Import a module of SciPy.

    Args:
        call: the public call that needs it, for the message.
        module: its full name.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{call}: SciPy cannot be imported, got {type(error).__name__}: {error}. "
            "Install it with the extra: pip install 'funcgrad[scipy]'."
        ) from error


def special(xp: Any, name: str) -> Callable[..., Any]:
    """Return the function ``scipy.special.name`` for the values of the array library ``xp``.

    The function of this name in ``jax.scipy.special`` serves JAX values.

    Raises:
        MissingExtraError: SciPy is not installed.
        InputError: JAX has no such function.
    """
    if xp.__name__ == "numpy":
        module = sys.modules.get("scipy.special") or import_scipy(f"scipy.special.{name}", "scipy.special")
        found: Callable[..., Any] = getattr(module, name)
        return found
    of_jax: Callable[..., Any] | None = getattr(importlib.import_module("jax.scipy.special"), name, None)
    if of_jax is None:
        raise InputError(
            f"scipy.special.{name}: JAX has no kernel for it, got JAX arrays. Pass NumPy arrays, outside of jax.jit."
        )
    return of_jax


def private_special(xp: Any, name: str) -> Callable[..., Any]:
    """Return a function of ``scipy.special`` as ``special`` does, also a private one, named with an underscore."""
    if xp.__name__ != "numpy" or name[0] != "_":
        return special(xp, name)
    found: Callable[..., Any] = getattr(import_scipy(f"scipy.special.{name}", "scipy.special._ufuncs"), name)
    return found


def double_precision(jax: Any) -> AbstractContextManager[Any]:
    """Return a context manager that switches JAX to x64 mode and restores the mode at exit, also after an error."""
    return precision_switch(jax)(True)


def precision_switch(jax: Any) -> Callable[[bool], AbstractContextManager[Any]]:
    """Return JAX's ``enable_x64``, which makes a context manager that switches x64 mode on or off."""
    found: Callable[[bool], AbstractContextManager[Any]]
    found = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64  # it was not always public
    return found


def running_sum(x: Any, axis: int) -> Any:
    """Return the running sum of an array of JAX, kept apart from what XLA would fold into it.

    XLA folds the padding of a slice's derivative into the running sum, and sums too much: the second derivative of
    ``jnp.cumsum(w * jnp.ones(3))[1] ** 2`` is 12 under ``jax.jit`` in place of 8 (seen with JAX 0.4.38 and 0.10.2).
    """
    jax = loaded_jax()
    if not isinstance(x, jax.core.Tracer):
        return jax.numpy.cumsum(x, axis)
    if not _differentiates_barriers():
        return jax.lax.associative_scan(jax.numpy.add, x, axis=axis)
    return jax.lax.optimization_barrier(jax.numpy.cumsum(x, axis))


@cache
def _differentiates_barriers() -> bool:
    """Whether this version of JAX has derivatives of ``jax.lax.optimization_barrier``."""
    jax = loaded_jax()
    try:
        jax.grad(jax.lax.optimization_barrier)(1.0)
    except NotImplementedError:
        return False
    return True
