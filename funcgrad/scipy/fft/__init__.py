"""Fourier, cosine and sine transforms of ``scipy.fft``.

``fft.fhtoffset`` and the functions that set threads, ``fft.set_workers`` and ``fft.get_workers``, are SciPy's.

Example:
    >>> import numpy as np
    >>> import funcgrad.numpy as fnp
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import fft
    >>> grad(lambda x: fft.dct(x)[0])(np.zeros(3))
    array([2., 2., 2.])
"""

from typing import Any

from funcgrad.optional import import_scipy
from funcgrad.scipy.fft import fourier, hankel, trigonometric
from funcgrad.scipy.fft.fourier import *
from funcgrad.scipy.fft.hankel import *
from funcgrad.scipy.fft.trigonometric import *
from funcgrad.scipy.own_code import missing_name, own_code

__all__: list[str] = []
__all__ += fourier.__all__
__all__ += hankel.__all__
__all__ += trigonometric.__all__

#: Names of SciPy's functions that are used as they are.
_SCIPY_ONLY = ("fhtoffset", "get_workers", "set_workers")


def _other(name: str) -> Any:
    if name in _SCIPY_ONLY:
        return getattr(import_scipy(f"scipy.fft.{name}", "scipy.fft"), name)
    raise missing_name("fft", name)


_listed, __getattr__ = own_code("fft", globals(), _other)
__all__ += _listed
