"""Which function of this library a NumPy ufunc is: the table behind ``numpy.sin(x)`` of a traced ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy import arithmetic, choice, comparison, rounding, transcendental

__all__ = ["UFUNCS"]


def _table() -> dict[np.ufunc, Callable[..., Any]]:
    modules = (arithmetic, choice, comparison, rounding, transcendental)
    own = {name: getattr(module, name) for module in modules for name in module.__all__}
    pairs = [(getattr(np, name), function) for name, function in own.items()]
    return {found: function for found, function in pairs if isinstance(found, np.ufunc)}


#: From NumPy's ufunc to the function of the same name. Those that are not here are of linear algebra and of dates.
UFUNCS: dict[np.ufunc, Callable[..., Any]] = _table()
