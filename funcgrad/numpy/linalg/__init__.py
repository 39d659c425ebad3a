"""Linear algebra of ``numpy.linalg``; the last two axes hold matrices, the other axes are batches."""

from numpy.linalg import LinAlgError

from funcgrad.numpy.linalg import decompositions, functions, norms, solving
from funcgrad.numpy.linalg.decompositions import *
from funcgrad.numpy.linalg.functions import *
from funcgrad.numpy.linalg.norms import *
from funcgrad.numpy.linalg.solving import *

__all__ = ["LinAlgError"]
__all__ += decompositions.__all__
__all__ += functions.__all__
__all__ += norms.__all__
__all__ += solving.__all__
