"""Convolution, correlation, interpolation, and window functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import library_of
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.kinds.linear import conj, reshape
from funcgrad.numpy.creation import as_buffer, as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.peeking import any_true, is_numpy_only, is_plain
from funcgrad.numpy.reducing import as_dtype, as_floating, as_scalar
from funcgrad.primitives import signals as prim
from funcgrad.primitives.arithmetic import absolute, remainder, subtract
from funcgrad.primitives.comparison import greater, less, where
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import concatenate, flip
from funcgrad.primitives.sorting import argsort
from funcgrad.typing import Array, ArrayLike, Scalar
from funcgrad.writable import as_array

__all__ = ["bartlett", "blackman", "convolve", "correlate", "hamming", "hanning", "i0", "interp", "kaiser"]

_MODES = {"valid": "valid", "same": "same", "full": "full", 0: "valid", 1: "same", 2: "full"}


def _mode(mode: Any) -> str:
    if mode not in _MODES:
        raise ValueError("Use one of 'valid', 'same', or 'full' for convolve/correlate mode")
    return _MODES[mode]


def _vector(name: str, what: str, x: Array) -> Array:
    """Check that ``x`` has one axis and is not empty, and return ``x``."""
    shape = backend.shape_of(x)
    if len(shape) != 1:
        raise ValueError(
            f"{name}: {what} must have one axis, got {describe(x)}. Use vmap, or apply_along_axis, for several."
        )
    if not shape[0]:
        raise ValueError(f"{what} cannot be empty")
    return x


def _part(mode: str, n: int, m: int) -> tuple[int, int]:
    """Return the start of the result of ``mode`` in the full convolution of n and m elements, and its length.

    The result of "same" is centred. If the shorter length is even, there are two centres, and NumPy's choice depends on
    which array is shorter: this function is for n >= m.
    """
    if mode == "full":
        return 0, n + m - 1
    short, long = min(n, m), max(n, m)
    return ((short - 1) // 2, long) if mode == "same" else (short - 1, long - short + 1)


def convolve(a: ArrayLike, v: ArrayLike, mode: Any = "full") -> Array:
    """Return the discrete convolution ``sum(a[i] * v[k - i])`` over i, at k, of arrays of one axis.

    Args:
        a: an array.
        v: an array.
        mode: "full" for every k at which the arrays overlap, "same" for the central part of the length of the
            longer array, "valid" for every k at which the shorter array lies within the longer.

    Raises:
        ValueError: an empty array, an array with several axes, or an unknown ``mode``.

    Example:
        >>> fnp.convolve([1.0, 2.0, 3.0], [1.0, 10.0])
        array([ 1., 12., 23., 30.])
    """
    a, v = as_value(a), as_value(v)
    if is_plain(a, v):
        return np.convolve(a, v, mode)
    a, v = (reshape(x, to=(1,)) if not backend.shape_of(x) else x for x in (a, v))
    a, v = _vector("convolve", "a", a), _vector("convolve", "v", v)
    start, length = _part(_mode(mode), backend.shape_of(a)[0], backend.shape_of(v)[0])
    return prim.convolve(a, v, start=start, length=length)


def correlate(a: ArrayLike, v: ArrayLike, mode: Any = "valid") -> Array:
    """Return the cross-correlation ``sum(a[i + k] * conj(v[i]))`` over i, at k, of arrays of one axis.

    Arguments as for ``convolve``; the first k of "full" is ``1 - len(v)``.

    Example:
        >>> fnp.correlate([1.0, 2.0, 3.0], [1.0, 10.0])
        array([21., 32.])
    """
    a, v = as_value(a), as_value(v)
    if is_plain(a, v):
        return np.correlate(a, v, mode)
    a = _vector("correlate", "first array argument", a)
    v = _vector("correlate", "second array argument", v)
    n, m = backend.shape_of(a)[0], backend.shape_of(v)[0]
    start, length = _part(_mode(mode), n, m)
    if n < m and length == m:
        start = n + m - 1 - length - start  # NumPy then exchanges the arrays and reverses the result
    if backend.dtype_of(v).kind == "c":
        v = conj(v)
    return prim.convolve(a, flip(v, axis=(0,)), start=start, length=length)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: Scalar | None = None,
) -> Array:
    """Interpolate linearly between the points ``(xp, fp)`` at ``x``; the derivative flows to all three.

    At a knot the derivative with respect to ``x`` is the slope to the right, at the last knot the slope to the left.
    Outside the knots it is 0, and the cotangent goes to ``left`` or ``right``, by default the first or last ``fp``.

    Args:
        x: the points to evaluate at, of any shape.
        xp: the knots, ascending (in any order if ``period`` is given).
        fp: the values at the knots, real or complex.
        left: the result before the first knot.
        right: the result after the last knot.
        period: the period of ``x``; ``left`` and ``right`` are then ignored.

    Raises:
        ValueError: ``xp`` and ``fp`` are not vectors of equal length, or are empty; the period is 0.
        TypeError: ``x`` or ``xp`` are complex.

    Example:
        >>> fnp.interp([0.5, 1.5, 9.0], [0.0, 1.0, 2.0], [0.0, 10.0, 30.0])
        array([ 5., 20., 30.])
        >>> grad(fnp.interp)(1.0, [0.0, 1.0, 2.0], [0.0, 10.0, 30.0])
        np.float64(20.0)
    """
    x, xp, fp = as_value(x), as_value(xp), as_value(fp)
    if is_plain(x, xp, fp, left, right, period):
        return np.interp(x, xp, fp, left, right, period)
    if len(backend.shape_of(xp)) != 1 or len(backend.shape_of(fp)) != 1:
        raise ValueError("Data points must be 1-D sequences")
    if backend.shape_of(xp) != backend.shape_of(fp):
        raise ValueError("fp and xp are not of the same length")
    if backend.shape_of(xp) == (0,):
        raise ValueError("array of sample points is empty")
    if "c" in (backend.dtype_of(x).kind, backend.dtype_of(xp).kind):
        got = f"got {describe(x)} and {describe(xp)}"
        raise InputError(f"interp: points and knots are real numbers, {got}. Take their real parts.")
    x, xp, fp = _doubles(x, xp, fp)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, as_value(period))
        left = right = None
    shape = backend.shape_of(x)
    ans = prim.interp(x if len(shape) == 1 else reshape(x, to=(math.prod(shape),)), xp, fp)
    if len(shape) != 1:
        ans = reshape(ans, to=shape) if shape else getitem(ans, 0)  # a number, which is not a view
    if left is not None:
        ans = where(less(x, getitem(xp, 0)), as_value(left), ans)
    if right is not None:
        ans = where(greater(x, getitem(xp, -1)), as_value(right), ans)
    return as_scalar(ans)


def _doubles(x: Array, xp: Array, fp: Array) -> tuple[Array, Array, Array]:
    """Convert the arguments of ``interp``: NumPy interpolates in double precision, other libraries in their own."""
    if any(library_of(v) is not np for v in (x, xp, fp)):
        return x, as_floating(xp), as_floating(fp)
    values = np.complex128 if backend.dtype_of(fp).kind == "c" else np.float64
    return as_dtype(x, np.float64), as_dtype(xp, np.float64), as_dtype(fp, values)


def _periodic(x: Array, xp: Array, fp: Array, period: Array) -> tuple[Array, Array, Array]:
    """Return ``x`` and the knots within one period, the knots in ascending order with one more on each side."""
    if any_true(lambda period: period == 0, period):
        raise ValueError("period must be a non-zero value")
    period = absolute(period)
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp, axis=0, kind="quicksort")
    xp, fp = getitem(xp, order), getitem(fp, order)
    first, last = slice(0, 1), slice(-1, None)
    xp = concatenate(subtract(getitem(xp, last), period), xp, getitem(xp, first) + period, axis=0)
    return x, xp, concatenate(getitem(fp, last), fp, getitem(fp, first), axis=0)


def i0(x: ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind of order 0; derivatives of every order are exact.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> float(fnp.i0(1.0))
        1.2660658777520082
        >>> grad(fnp.i0)(0.0)
        np.float64(0.0)
    """
    x = as_value(x)
    if is_numpy_only(x):
        return np.i0(x)
    if backend.dtype_of(x).kind == "c":
        raise InputError(f"i0: complex numbers are not supported, got {describe(x)}. Take the real part.")
    return as_array(prim.bessel_i(as_floating(x), order=0))


def _length(name: str, M: Any) -> Any:
    """Return the length of a window, which determines the shape of the result and has no derivative."""
    if isinstance(M, Tracer) and backend.is_inexact(M):
        raise InputError(f"{name}: M must be an integer where values are traced, got {describe(M)}. Pass a constant.")
    return concrete(M, f"{name}: M") if isinstance(M, Tracer) else M


@function_table
def _window(name: str, M: int) -> Array:
    return as_buffer(getattr(np, name)(_length(name, M)))


# fmt: off
bartlett = _window("bartlett", "Return the triangular window of ``M`` points.", "fnp.bartlett(5)",
    "array([0. , 0.5, 1. , 0.5, 0. ])")
blackman = _window("blackman", "Return the Blackman window of ``M`` points.", "fnp.blackman(3).round(12) + 0.0",
    "array([0., 1., 0.])")
hamming = _window("hamming", "Return the Hamming window of ``M`` points.", "fnp.hamming(3)",
    "array([0.08, 1.  , 0.08])")
hanning = _window("hanning", "Return the Hann window of ``M`` points.", "fnp.hanning(3)", "array([0., 1., 0.])")
# fmt: on


def kaiser(M: int, beta: Scalar) -> Array:
    """Return the Kaiser window of ``M`` points; the derivative flows to its shape parameter ``beta``.

    Raises:
        ValueError: ``beta`` is not a single number.

    Example:
        >>> from funcgrad import jacobian
        >>> jacobian(lambda beta: fnp.kaiser(3, beta))(0.0)
        array([0., 0., 0.])
    """
    M, beta = _length("kaiser", M), as_value(beta)
    if is_numpy_only(beta):
        return as_buffer(np.kaiser(M, beta))
    if backend.shape_of(beta):
        raise ValueError(f"kaiser: beta must be a number, got {describe(beta)}. Use vmap for several windows.")
    if M == 1:
        return as_buffer(np.ones(1))
    if library_of(beta) is np:
        beta = as_dtype(beta, np.float64)
    middle = (M - 1) / 2.0
    profile = np.sqrt(1 - ((np.arange(0, M) - middle) / middle) ** 2.0)
    return i0(beta * profile) / i0(beta)
