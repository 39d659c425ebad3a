"""Modules of funcgrad that are imported at their first use, and SciPy's own functions called with plain values."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import concrete


def own(module: str) -> Any:
    """Return the module of funcgrad with this name, such as ``own("scipy.optimize")``.

    Example:
        >>> own("scipy.optimize").__name__
        'funcgrad.scipy.optimize'
    """
    return import_module(f"funcgrad.{module}")


def known_value(x: Any, request: str) -> Any:
    """Return the plain value behind a tracer, on which the run may depend; any other value unchanged.

    Args:
        x: the value.
        request: what requests the plain value, for messages.

    Raises:
        ConcretizationError: the examples of a ``vmap`` have different values.
    """
    return concrete(x, request) if isinstance(x, Tracer) else x


def on_plain_values(module: str, name: str) -> Callable[..., Any]:
    """Return SciPy's function called with plain values: its integer results have no derivative."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [np.asarray(known_value(x, name), order="C") if isinstance(x, Tracer) else x for x in args]
        return getattr(import_module(module), name)(*given, **kwargs)

    return call
