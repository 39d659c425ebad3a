"""Functions of ``numpy.emath``, whose results are complex for real numbers outside of their real domain.

One number outside of the domain makes all results complex. The dtype thus depends on values, which ``jax.jit`` does
not allow. The derivatives are those of ``funcgrad.numpy``'s functions of complex numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe, plain_value
from funcgrad.errors import InputError
from funcgrad.graph import report_answer
from funcgrad.numpy import elementwise
from funcgrad.numpy.choice import where
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.function_tables import docstring, set_identity
from funcgrad.numpy.plain_values.peeking import concrete_or_none, is_plain
from funcgrad.numpy.reductions import any as some
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import greater, less
from funcgrad.typing import Array, ArrayLike

__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]

_NUMBERS = frozenset((bool, int, float, complex))


def _plain_to_numpy(fun: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap ``fun`` so that plain arguments go to NumPy's function of the same name."""
    theirs = getattr(np.emath, fun.__name__)

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Array:
        return theirs(*args, **kwargs) if is_plain(*args, *kwargs.values()) else fun(*args, **kwargs)

    return call


def _test_anywhere(name: str, outside: Array) -> bool:
    """Whether ``outside`` is true for any number in any example of a ``vmap``."""
    found = some(outside)
    values = concrete_or_none(found, steers=False)
    if values is None and backend.is_jax_tracer(plain_value(found)):
        raise InputError(
            f"emath.{name}: whether its results are complex depends on values, got {describe(found)} of jax.jit. Use "
            "funcgrad.numpy's function of x.astype(complex), or of what is in its domain."
        )
    if values is not None and values.ndim:
        return bool(report_answer(found, values).any())
    return bool(found)


def _complex(x: Array) -> Array:
    """Convert ``x`` to complex numbers as NumPy does: single precision if it holds all digits of ``x``, else double."""
    to = np.complex64 if backend.dtype_of(x).char in "fbBhH" else np.complex128
    return astype(x, backend.native_dtype(backend.library_of(x), to))


def _negative_complex(name: str, x: ArrayLike) -> Array:
    x = as_value(x)
    return _complex(x) if backend.dtype_of(x).kind != "c" and _test_anywhere(name, less(x, 0)) else x


def _inverse_beyond_one(x: ArrayLike, real: Callable[[Array], Array], right: float, left: float, sign: int) -> Array:
    """Return arccos or arcsin of ``x``: ``real(x)`` within [-1, 1], complex if any element lies outside.

    The real part is ``right`` above 1 and ``left`` below -1. These numbers lie on the branch cut of the complex
    function, where JAX's derivative has the wrong sign, because JAX's square root ignores the sign of zero.
    """
    name, x = real.__name__, as_value(x)
    if backend.dtype_of(x).kind == "c" or not _test_anywhere(name, greater(absolute(x), 1)):
        return real(x)
    whole = _complex(x)
    size = absolute(x)
    outside = greater(size, 1)
    flat = where(outside, where(greater(x, 0), right, left), real(where(outside, 0, x)))
    return astype(flat + sign * 1j * where(outside, elementwise.arccosh(where(outside, size, 2)), 0), whole.dtype)


def _large_complex(x: ArrayLike) -> Array:
    x = as_value(x)
    return _complex(x) if backend.dtype_of(x).kind != "c" and _test_anywhere("arctanh", greater(absolute(x), 1)) else x


def _row(
    name: str, compute: Callable[[ArrayLike], Array], text: str, example: str, shows: str
) -> Callable[[ArrayLike], Array]:
    def call(x: ArrayLike) -> Array:
        return compute(x)

    return _plain_to_numpy(set_identity(call, __name__, name, docstring(text, example, shows)))


# fmt: off
sqrt = _row("sqrt", lambda x: elementwise.sqrt(_negative_complex("sqrt", x)),
    "The square root, which is imaginary for negative numbers.", "fnp.emath.sqrt([-4.0, 4.0]).round(6)",
    "array([0.+2.j, 2.+0.j])")
log = _row("log", lambda x: elementwise.log(_negative_complex("log", x)),
    "The natural logarithm, whose imaginary part is pi for negative numbers.", "fnp.emath.log([-1.0, 1.0]).round(6)",
    "array([0.+3.141593j, 0.+0.j      ])")
log2 = _row("log2", lambda x: elementwise.log2(_negative_complex("log2", x)),
    "The logarithm to base 2, ``log(x) / log(2)``, complex for negative numbers.",
    "fnp.emath.log2([-4.0, 4.0]).round(6)", "array([2.+4.53236j, 2.+0.j     ])")
log10 = _row("log10", lambda x: elementwise.log10(_negative_complex("log10", x)),
    "The logarithm to base 10, ``log(x) / log(10)``, complex for negative numbers.",
    "fnp.emath.log10([-10.0, 10.0]).round(6)", "array([1.+1.364376j, 1.+0.j      ])")
arccos = _row("arccos", lambda x: _inverse_beyond_one(x, elementwise.arccos, 0.0, math.pi, -1),
    "The inverse cosine, which is complex outside of [-1, 1].", "fnp.emath.arccos([0.5, 2.0]).round(6)",
    "array([1.047198-0.j      , 0.      -1.316958j])")
arcsin = _row("arcsin", lambda x: _inverse_beyond_one(x, elementwise.arcsin, math.pi / 2, -math.pi / 2, 1),
    "The inverse sine, which is complex outside of [-1, 1].", "fnp.emath.arcsin([0.5, 2.0]).round(6)",
    "array([0.523599+0.j      , 1.570796+1.316958j])")
arctanh = _row("arctanh", lambda x: elementwise.arctanh(_large_complex(x)),
    "The inverse hyperbolic tangent, which is complex outside of [-1, 1].",
    "fnp.emath.arctanh([0.5, 2.0]).round(6)", "array([0.549306+0.j      , 0.549306+1.570796j])")
# fmt: on


@_plain_to_numpy
def logn(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the logarithm of ``x`` to base ``n``, as ``log``.

    Example:
        >>> fnp.emath.logn(2.0, [-4.0, 4.0]).round(6)
        array([2.+4.53236j, 2.+0.j     ])
    """
    return elementwise.log(_negative_complex("logn", x)) / elementwise.log(_negative_complex("logn", n))


@_plain_to_numpy
def power(x: ArrayLike, p: ArrayLike) -> Array:
    """Return ``x`` to the power of ``p``, complex for negative ``x``; negative integer ``p`` count as floats.

    Example:
        >>> fnp.emath.power([-4.0, 4.0], 0.5).round(6)
        array([0.+2.j, 2.+0.j])
    """
    x, p = (np.asarray(v) if type(v) in _NUMBERS else v for v in (x, p))  # as NumPy does here: arrays, which promote
    p = as_value(p)
    if backend.dtype_of(p).kind in "biu" and _test_anywhere("power", less(p, 0)):
        p = astype(p, float)
    return elementwise.power(_negative_complex("power", x), p)
