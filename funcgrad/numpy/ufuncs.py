"""Table from NumPy's ufuncs to funcgrad's functions, used for ``numpy.sin(x)`` with a traced ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy import choice, elementwise, products

_FUNCTIONS = [getattr(module, name) for module in (choice, elementwise, products) for name in module.__all__]
#: Function of the same name for each NumPy ufunc; ufuncs for dates and strings have none.
UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    fun.ufunc: fun for fun in _FUNCTIONS if getattr(fun, "ufunc", None) is not None
}
