"""Differentiable versions of NumPy's functions, with the same names, arguments and results.

The functions take arrays, numbers, nested lists, JAX arrays, and the tracers of any transform. Functions without
a derivative (comparisons, rounding, sizes, searches) are here too, and every derivative treats their results as
constants. Constants and dtypes are NumPy's. The public names are those in the ``__all__`` of each module below.

Example:
    >>> import numpy as np
    >>> import funcgrad.numpy as fnp
    >>> from funcgrad import grad
    >>> grad(lambda x: fnp.sum(fnp.sin(x) ** 2))(np.array([0.0, np.pi / 4])).round(12)
    array([0., 1.])
"""

from typing import TYPE_CHECKING  # noqa: I001  (names in rows)

from numpy import (
    False_, True_, bool, bool_, byte, cdouble, clongdouble, complex64, complex128, complexfloating, csingle, double,
    dtype, e, errstate, euler_gamma, float16, float32, float64, floating, generic, half, inexact, inf, int8, int16,
    int32, int64, int_, intc, integer, intp, issubdtype, long, longdouble, longlong, nan, ndarray, newaxis, number, pi,
    promote_types, short, signedinteger, single, ubyte, uint, uint8, uint16, uint32, uint64, uintc, uintp, ulong,
    ulonglong, unsignedinteger, ushort,
)  # fmt: skip

from funcgrad.numpy import (
    choice, creation, cumulative, diagonals, differences, elementwise, functional, indexing, inspection, joining,
    polynomials, products, quantiles, ranges, rearranging, reductions, sets, shaping, signals, sorting, special,
    statistics, writing,
)  # fmt: skip
from funcgrad.numpy.choice import *
from funcgrad.numpy.creation import *
from funcgrad.numpy.cumulative import *
from funcgrad.numpy.diagonals import *
from funcgrad.numpy.differences import *
from funcgrad.numpy.elementwise import *
from funcgrad.numpy.functional import *
from funcgrad.numpy.indexing import *
from funcgrad.numpy.inspection import *
from funcgrad.numpy.joining import *
from funcgrad.numpy.namespace_info import NUMPYS, __array_api_version__, __array_namespace_info__, finfo, iinfo
from funcgrad.numpy.polynomials import *
from funcgrad.numpy.products import *
from funcgrad.numpy.quantiles import *
from funcgrad.numpy.ranges import *
from funcgrad.numpy.rearranging import *
from funcgrad.numpy.reductions import *
from funcgrad.numpy.sets import *
from funcgrad.numpy.shaping import *
from funcgrad.numpy.signals import *
from funcgrad.numpy.sorting import *
from funcgrad.numpy.special import *
from funcgrad.numpy.statistics import *
from funcgrad.numpy.writing import *
from funcgrad.optional import lazy_attributes

if TYPE_CHECKING:
    from funcgrad.numpy import fft, lib, linalg, polynomial
    from funcgrad.numpy.lib import scimath as emath
else:  # imported at first use: these modules take a fifth of the time of an import
    _HOMES = {name: f"funcgrad.numpy.{name}" for name in ("fft", "lib", "linalg", "polynomial")}
    _HOMES |= {"emath": "funcgrad.numpy.lib.scimath", **NUMPYS}
    _ADVICE = {
        "cat": "concatenate",
        "clamp": "clip",
        "erf": "funcgrad.scipy.special.erf",
        "expit": "funcgrad.scipy.special.expit",
        "inv": "linalg.inv",
        "mm": "matmul",
        "norm": "linalg.norm",
        "solve": "linalg.solve",
        "tensor": "array",
        "unsqueeze": "expand_dims",
        **{name: f"funcgrad.nn.{name}" for name in ("gelu", "log_softmax", "one_hot", "relu", "sigmoid", "silu")},
    }
    __getattr__, __dir__ = lazy_attributes(__name__, globals(), _HOMES, _ADVICE)

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "emath", "fft", "lib", "linalg", "polynomial", "e",
    "euler_gamma", "inf", "nan", "newaxis", "pi", "False_", "True_", "bool", "bool_", "byte", "cdouble", "clongdouble",
    "complex64", "complex128", "complexfloating", "csingle", "double", "dtype", "errstate", "finfo", "float16",
    "float32", "float64", "floating", "generic", "half", "iinfo", "inexact", "int8", "int16", "int32", "int64", "int_",
    "intc", "integer", "intp", "issubdtype", "long", "longdouble", "longlong", "ndarray", "number", "promote_types",
    "short", "signedinteger", "single", "ubyte", "uint", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp",
    "ulong", "ulonglong", "unsignedinteger", "ushort",
]  # fmt: skip
__all__ += elementwise.__all__
__all__ += choice.__all__
__all__ += creation.__all__
__all__ += cumulative.__all__
__all__ += diagonals.__all__
__all__ += differences.__all__
__all__ += functional.__all__
__all__ += indexing.__all__
__all__ += inspection.__all__
__all__ += joining.__all__
__all__ += polynomials.__all__
__all__ += products.__all__
__all__ += quantiles.__all__
__all__ += ranges.__all__
__all__ += rearranging.__all__
__all__ += reductions.__all__
__all__ += sets.__all__
__all__ += shaping.__all__
__all__ += signals.__all__
__all__ += sorting.__all__
__all__ += special.__all__
__all__ += statistics.__all__
__all__ += writing.__all__
