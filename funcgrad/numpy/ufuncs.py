"""Which function of this library a NumPy ufunc is: the table behind ``numpy.sin(x)`` of a traced ``x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy import choice, elementwise, products

_OURS = [getattr(module, name) for module in (choice, elementwise, products) for name in module.__all__]
#: From NumPy's ufunc to the function of the same name. Those that are not here are of dates and of texts.
UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    fun.ufunc: fun for fun in _OURS if getattr(fun, "ufunc", None) is not None
}
