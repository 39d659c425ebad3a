"""Which function of this library a NumPy ufunc is: the table behind ``numpy.sin(x)`` of a traced ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy import arithmetic, choice, comparison, products, rounding, transcendental

__all__ = ["UFUNCS"]


def _table() -> dict[np.ufunc, Callable[..., Any]]:
    modules = (arithmetic, choice, comparison, products, rounding, transcendental)
    functions = [getattr(module, name) for module in modules for name in module.__all__]
    return {function.ufunc: function for function in functions if getattr(function, "ufunc", None) is not None}


#: From NumPy's ufunc to the function of the same name. Those that are not here are of dates and of texts.
UFUNCS: dict[np.ufunc, Callable[..., Any]] = _table()
