"""Special functions of ``scipy.special``, with derivatives in every argument that has one.

The public names are those in the ``__all__`` of each module, and NumPy's ``sinc``.

Example:
    >>> import funcgrad.scipy.special as fsp
    >>> from funcgrad import grad
    >>> grad(fsp.betainc)(2.0, 3.0, 0.5).round(6)
    np.float64(-0.195289)
"""

from funcgrad.numpy import sinc
from funcgrad.scipy.own_code import own_code
from funcgrad.scipy.special import (
    bessel,
    bessel_related,
    elliptic,
    error_functions,
    gamma_functions,
    incomplete,
    logarithms,
    orthogonal,
    statistical,
)
from funcgrad.scipy.special.bessel import *
from funcgrad.scipy.special.bessel_related import *
from funcgrad.scipy.special.elliptic import *
from funcgrad.scipy.special.error_functions import *
from funcgrad.scipy.special.gamma_functions import *
from funcgrad.scipy.special.incomplete import *
from funcgrad.scipy.special.logarithms import *
from funcgrad.scipy.special.orthogonal import *
from funcgrad.scipy.special.statistical import *

__all__: list[str] = ["sinc"]
__all__ += bessel.__all__
__all__ += bessel_related.__all__
__all__ += elliptic.__all__
__all__ += error_functions.__all__
__all__ += gamma_functions.__all__
__all__ += incomplete.__all__
__all__ += logarithms.__all__
__all__ += orthogonal.__all__
__all__ += statistical.__all__

_listed, __getattr__ = own_code("special", globals())
__all__ += _listed
