"""Elementwise functions with the interface of SciPy's ufuncs: ``out``, ``where``, ``dtype`` and ``casting``.

    row = table(__name__)
    erf = row("erf(x)", prim.erf, "The error function.", "fsp.erf([0.0, 1.0])", "array([0.        , 0.84270079])")

makes a function that is called as fast as ``prim.erf``. SciPy's ufunc is looked up only when an option is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import docstring, stub
from funcgrad.numpy.ufunc_methods import DEFAULTS, apply_ufunc
from funcgrad.optional import special

#: Type of a function of arrays that takes the options of ufuncs.
Ufunc = Callable[..., Any]

_OPTIONS = [
    Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None),
    *[Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in DEFAULTS.items()],
]


def table(module: str) -> Callable[[str, Callable[..., Any], str, str, str], Ufunc]:
    """Return the function that makes one ufunc of ``module`` from each row.

    A row consists of the call, whose name is that of SciPy's function, the operation, the text of the docstring, an
    example and the result that the example shows.

    Example:
        >>> row = table("here")
        >>> erfc = row("erfc(x)", lambda x: 1 - x, "Not quite.", "erfc(0.25)", "0.75")
        >>> erfc(0.25), erfc(0.0, out=np.zeros(()))
        (0.75, array(1.))
    """

    def row(call: str, operation: Callable[..., Any], text: str, example: str, shows: str) -> Ufunc:
        return _ufunc(stub(module, call, docstring(text, example, shows)), operation)

    return row


def widened(x: Any, name: str = "") -> Any:
    """Return ``x`` as SciPy's ufuncs take it: in double precision if NumPy would compute in half precision.

    Since SciPy 1.18 some ufuncs take it in single precision, if this holds all values of the dtype. Such a ufunc is
    asked by its ``name``.

    Example:
        >>> widened(np.uint8(3)), widened(np.int64(3), "cbrt")
        (np.float64(3.0), np.float64(3.0))
    """
    if type(x) in (int, float, complex):  # joins the precision of the other arguments
        return x
    x = as_value(x)
    dtype = backend.dtype_of(x)
    if dtype.kind not in "biu" and dtype != np.float16:
        return x
    ufunc: Any = special(np, name) if name else None
    return fnp.astype(x, float if ufunc is None else ufunc.resolve_dtypes((*(dtype,) * ufunc.nin, None))[0])


def _ufunc(documented_stub: Callable[..., Any], operation: Callable[..., Any]) -> Ufunc:
    plain = signature(documented_stub)
    name, nin = documented_stub.__name__, len(plain.parameters)

    @wraps(documented_stub)
    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        if len(args) == nin and out is None and not options:
            return operation(*args)
        if len(args) < nin:
            raise TypeError(f"{name}() takes {nin} arguments, got {len(args)}")
        scipy_ufunc: Any = special(np, name)
        out_arrays = out if len(args) == nin else args[nin] if scipy_ufunc.nout == 1 else args[nin:]
        return apply_ufunc(scipy_ufunc, operation, args[:nin], out_arrays, options, name)

    made: Any = call
    del made.__wrapped__
    made.__signature__ = plain.replace(parameters=[*plain.parameters.values(), *_OPTIONS])
    made.nin = nin
    return call
