"""How operations pickle: by the module and the name that they have there, for a rule is code."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from funcgrad.errors import InputError

__all__ = ["by_name"]


def by_name(primitive: Any) -> tuple[Any, ...]:
    """What ``__reduce__`` of a primitive gives.

    Raises:
        InputError: its operation stands in no module.
    """
    module = sys.modules.get(home := getattr(primitive.call, "__module__", ""))
    for name, operation in list(vars(module).items() if module is not None else ()):
        if getattr(operation, "primitive", None) is primitive:
            return _named, (home, name)
    raise InputError(
        f"pickle: an operation is stored by its name in a module, got {primitive!r}, which stands in none. Define it "
        "at the top of a module, or store the function and run it again."
    )


def _named(home: str, name: str) -> Any:
    return getattr(import_module(home), name).primitive
