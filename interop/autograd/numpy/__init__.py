"""HIPS autograd's ``numpy``: NumPy's names for funcgrad's functions, with autograd's choices at kinks.

Example:
    >>> import funcgrad.interop.autograd.numpy as np
    >>> from funcgrad.interop.autograd import elementwise_grad
    >>> elementwise_grad(np.abs)(np.array([-1.0, 0.0, 2.0]))
    array([-1.,  0.,  1.])
"""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

import numpy as _np

import funcgrad.numpy as _fnp
from funcgrad.interop.autograd.lookup import mirrored as _mirrored
from funcgrad.interop.autograd.numpy import conventions as _conventions
from funcgrad.interop.autograd.numpy import fft as fft
from funcgrad.interop.autograd.numpy import linalg as linalg
from funcgrad.interop.autograd.numpy import numpy_boxes as numpy_boxes
from funcgrad.interop.autograd.numpy import numpy_vjps as numpy_vjps
from funcgrad.interop.autograd.numpy import numpy_vspaces as numpy_vspaces
from funcgrad.interop.autograd.numpy import numpy_wrapper as numpy_wrapper
from funcgrad.interop.autograd.numpy import random as random

_chosen = {name: getattr(_conventions, name) for name in _conventions.__all__ if not name.startswith("eig")}
_here = {name: getattr(numpy_wrapper, name) for name in numpy_wrapper.__all__}
_names = _mirrored(_fnp, _np, {**_chosen, **_here})
globals().update(_names)

__version__ = _np.__version__
__all__ = sorted({*_names, "fft", "linalg", "random"})


class _Module(_ModuleType):
    """Class of this module. ``dir`` omits the names that ``__getattr__`` adds, so loops over ``dir`` miss them."""

    @property
    def __name__(self) -> str:  # type: ignore[override]
        """Name under which the module is installed; programs read ``numpy.__name__`` to learn which library runs."""
        installed = "autograd.numpy"
        return installed if _sys.modules.get(installed) is self else "funcgrad.interop." + installed

    def __getattr__(self, name: str) -> _Any:
        """Return a name that NumPy imports lazily, such as ``numpy.polynomial``."""
        return getattr(_fnp if not name.startswith("_") and hasattr(_fnp, name) else _np, name)


_sys.modules[__name__].__class__ = _Module
