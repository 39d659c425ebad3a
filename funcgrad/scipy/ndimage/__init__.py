"""Functions of ``scipy.ndimage``: filters, interpolation, measurements of labelled regions of arrays.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import ndimage
    >>> grad(lambda s: ndimage.gaussian_filter(np.eye(5), s)[2, 2])(1.0).round(6)
    np.float64(-0.27019)
"""

from funcgrad.scipy.ndimage import interpolation, measurements, ranks, sums
from funcgrad.scipy.ndimage.interpolation import *
from funcgrad.scipy.ndimage.measurements import *
from funcgrad.scipy.ndimage.ranks import *
from funcgrad.scipy.ndimage.sums import *
from funcgrad.scipy.own_code import own_code

__all__: list[str] = []
__all__ += interpolation.__all__
__all__ += measurements.__all__
__all__ += ranks.__all__
__all__ += sums.__all__

_listed, __getattr__ = own_code("ndimage", globals())
__all__ += _listed
