"""Elementwise functions as SciPy has them: ufuncs, with ``out``, ``where``, ``dtype`` and ``casting``.

    @ufunc(prim.erf)
    def erf(x: ArrayLike, /) -> Array:
        \"\"\"The error function.\"\"\"

makes a function that is called as fast as ``prim.erf`` is. SciPy's ufunc is looked up when an option is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from funcgrad.numpy.ufunc_calls import DEFAULTS, applied
from funcgrad.optional import special

__all__ = ["Ufunc", "ufunc"]

#: A function of arrays with the options of ufuncs.
Ufunc = Callable[..., Any]


def ufunc(own: Callable[..., Any]) -> Callable[[Callable[..., Any]], Ufunc]:
    """Make a ufunc of a documented function, whose name is that of SciPy's.

    Args:
        own: what computes it.

    Example:
        >>> @ufunc(lambda x: 1 - x)
        ... def erfc(x, /):
        ...     '''Not quite.'''
        >>> erfc(0.25), erfc(0.0, out=np.zeros(()))
        (0.75, array(1.))
    """

    def decorate(stub: Callable[..., Any]) -> Ufunc:
        name, nin = stub.__name__, len(inspect.signature(stub).parameters)

        def call(*args: Any, out: Any = None, **options: Any) -> Any:
            if len(args) == nin and out is None and not options:
                return own(*args)
            if len(args) < nin:
                raise TypeError(f"{name}() takes {nin} arguments, got {len(args)}")
            theirs: Any = special(np, name)
            places = out if len(args) == nin else args[nin] if theirs.nout == 1 else args[nin:]
            return applied(theirs, own, args[:nin], places, options, name)

        wraps(stub)(call)
        dressed: Any = call
        del dressed.__wrapped__
        dressed.__signature__ = _signature(stub)
        dressed.nin = nin
        return call

    return decorate


def _signature(stub: Callable[..., Any]) -> inspect.Signature:
    """That of ``stub``, with ``out`` and options behind its arguments."""
    plain = inspect.signature(stub)
    out = inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    rest = [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in DEFAULTS.items()]
    return plain.replace(parameters=[*plain.parameters.values(), out, *rest])
