"""Functions of ``scipy.signal``: convolution, filters, spectra. The windows, ``signal.windows``, are SciPy's.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import signal
    >>> grad(lambda a: signal.lfilter([1.0], [1.0, a], np.array([1.0, 0.0, 0.0]))[2])(0.5)
    np.float64(1.0)
"""

from typing import Any

from funcgrad.optional import import_scipy
from funcgrad.scipy.own_code import missing_name, own_code
from funcgrad.scipy.signal import filters, spectra
from funcgrad.scipy.signal.filters import *
from funcgrad.scipy.signal.spectra import *

__all__: list[str] = []
__all__ += filters.__all__
__all__ += spectra.__all__


def _other(name: str) -> Any:
    if name == "windows":
        return import_scipy("signal.windows", "scipy.signal.windows")
    raise missing_name("signal", name)


_listed, __getattr__ = own_code("signal", globals(), _other)
__all__ += _listed
