"""Installation under the name ``autograd``, for programs that import it and shall not be changed."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any

from funcgrad.core import Tracer
from funcgrad.errors import FuncgradError
from funcgrad.interop.autograd.nodes import node_of, value_of

__all__ = ["Installation", "InstallError", "install", "uninstall"]

_HERE = "funcgrad.interop.autograd"
#: Attributes that programs read from a box. Without ``install`` traced values lack them, and ``hasattr`` says so.
_BOX_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {"_node": node_of, "_value": value_of}
#: Modules that ``sys.modules`` had under these names before; None while nothing is installed.
_replaced_modules: dict[str, ModuleType] | None = None


class InstallError(FuncgradError, ImportError):
    """Failure of ``install``: HIPS autograd itself has been imported before (an ``ImportError``)."""


class Installation:
    """Result of ``install``: a context manager that removes the modules if this call of ``install`` added them."""

    def __init__(self, mine: bool) -> None:
        self._mine = mine

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._mine:
            uninstall()


def _modules() -> dict[str, ModuleType]:
    """Return the module for each name that begins with ``autograd``."""
    for info in pkgutil.walk_packages(import_module(_HERE).__path__, _HERE + "."):
        import_module(info.name)
    ours = [name for name in sys.modules if f"{name}.".startswith(f"{_HERE}.")]
    return {name.replace(_HERE, "autograd", 1): sys.modules[name] for name in ours}


def _imported_modules() -> dict[str, Any]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "autograd"}


def install(replace: bool = False) -> Installation:
    """Make ``import autograd`` and ``from autograd.numpy import ...`` import this package from now on, process-wide.

    Modules that imported HIPS autograd before keep it. A second call changes nothing.

    Args:
        replace: whether to set HIPS autograd aside if it is imported already; ``uninstall`` restores it.

    Returns:
        A context manager that undoes the installation. Without ``with`` it lasts until ``uninstall``.

    Raises:
        InstallError: HIPS autograd is imported already, and ``replace`` is false.

    Example:
        >>> with install(replace=True):
        ...     from autograd import grad
        >>> grad(lambda x: x**2)(3.0)
        np.float64(6.0)
    """
    global _replaced_modules
    if _replaced_modules is not None:
        return Installation(mine=False)
    found = _imported_modules()
    if found and not replace:
        raise InstallError(
            f"install: HIPS autograd is imported already, got {min(found)} in sys.modules. Call install() before "
            "anything imports it, or install(replace=True) to put it aside."
        )
    ours = _modules()
    for name in found:
        del sys.modules[name]
    sys.modules.update(ours)
    _replaced_modules = found
    for name, attribute in _BOX_ATTRIBUTES.items():
        setattr(Tracer, name, property(attribute))
    return Installation(mine=True)


def uninstall() -> None:
    """Undo ``install``: restore the modules that were imported as ``autograd`` before. No-op without ``install``."""
    global _replaced_modules
    if _replaced_modules is None:
        return
    for name in _imported_modules():
        del sys.modules[name]
    sys.modules.update(_replaced_modules)
    _replaced_modules = None
    for name in _BOX_ATTRIBUTES:
        delattr(Tracer, name)
