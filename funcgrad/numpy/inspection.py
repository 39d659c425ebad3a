"""Functions that inspect and print arrays, dtypes and numbers, or convert arrays from other sources.

Most functions are NumPy's; those that inspect an array take a traced array, too. The results have no derivative,
except for functions that return their argument: ``real_if_close``, ``asarray_chkfinite``, ``require``,
``from_dlpack``, ``fromiter``.
"""

from __future__ import annotations  # noqa: I001  (names in rows)

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy import (
    base_repr, binary_repr, frombuffer, get_printoptions, getbufsize, geterr, geterrcall, isdtype, iterable,
    mintypecode, printoptions, set_printoptions, setbufsize, seterr, seterrcall, typename,
)  # fmt: skip

from funcgrad.backend import dtype_of, shape_of
from funcgrad.core import READ_ONLY, Tracer
from funcgrad.kinds.linear import real
from funcgrad.numpy.axes import ALL_AXES, normalize_axis
from funcgrad.numpy.plain_values.concretization import as_traced_text, concrete
from funcgrad.numpy.creation import (
    array, as_buffer, as_value, asanyarray, asarray, ascontiguousarray, asfortranarray, copy,
)  # fmt: skip
from funcgrad.numpy.elementwise import array_equal, imag
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain, shared_truth
from funcgrad.numpy.shaping import broadcast_arrays, ravel
from funcgrad.primitives import counting as prim
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import isfinite, less
from funcgrad.primitives.reductions import reduce_all
from funcgrad.typing import Array, ArrayLike
from funcgrad.writable import Proxy, View

__all__ = [
    "array2string", "array_equiv", "array_repr", "array_str", "asarray_chkfinite", "base_repr", "binary_repr",
    "can_cast", "common_type", "format_float_positional", "format_float_scientific", "from_dlpack", "frombuffer",
    "fromiter", "get_printoptions", "getbufsize", "geterr", "geterrcall", "isdtype", "isfortran", "isnat", "iterable",
    "may_share_memory", "min_scalar_type", "mintypecode", "packbits", "printoptions", "real_if_close", "require",
    "set_printoptions", "setbufsize", "seterr", "seterrcall", "shares_memory", "typename", "unpackbits",
]  # fmt: skip

numpy: Any = np  # NumPy's annotations do not allow traced values

# ---- dtypes ------------------------------------------------------------------------------------------------


def _dtype_sample(x: Any) -> Any:
    """Return ``x``, or for a traced value an empty array of its dtype."""
    return np.empty(0, x.dtype) if isinstance(x, Tracer) else x


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return whether the dtype ``from_``, or the dtype of an array ``from_``, can be converted to the dtype ``to``.

    Example:
        >>> fnp.can_cast(np.float32, np.float64), fnp.can_cast(np.ones(2), np.float32)
        (True, False)
    """
    return numpy.can_cast(_dtype_sample(from_), to, casting)  # type: ignore[no-any-return]


def common_type(*arrays: Array) -> Any:
    """Return the floating type that can hold the numbers of all ``arrays``.

    Example:
        >>> fnp.common_type(np.ones(2, np.float32), np.ones(2, int))
        <class 'numpy.float64'>
    """
    return numpy.common_type(*[_dtype_sample(a) for a in arrays])


def min_scalar_type(a: ArrayLike, /) -> np.dtype[Any]:
    """Return the smallest dtype that can hold the number ``a``, or the dtype of an array ``a``.

    Raises:
        ConcretizationError: the number differs between the examples of a ``vmap``.

    Example:
        >>> fnp.min_scalar_type(300)
        dtype('uint16')
    """
    if isinstance(a, Tracer):
        a = _dtype_sample(a) if shape_of(a) else concrete(a, "min_scalar_type")
    return numpy.min_scalar_type(a)  # type: ignore[no-any-return]


def isnat(x: ArrayLike, /, *args: Any, **kwargs: Any) -> Any:
    """Return where dates are missing. Traced values are numbers, which are refused as in NumPy.

    Raises:
        TypeError: ``x`` are not dates or differences of dates.

    Example:
        >>> fnp.isnat(np.datetime64("NaT", "D"))
        np.True_
    """
    return np.isnat(_dtype_sample(x), *args, **kwargs)


# ---- memory ------------------------------------------------------------------------------------------------


def isfortran(a: Array) -> bool:
    """Return whether an array has Fortran order and not C order in memory; False for a traced value.

    Example:
        >>> fnp.isfortran(np.ones((2, 3)).T)
        True
    """
    return not isinstance(a, Tracer) and np.isfortran(a)


def shares_memory(a: Array, b: Array, /, max_work: int = -1) -> bool:
    """Return whether two arrays, or the arrays that traced values represent, have an element in common in memory.

    Example:
        >>> x = np.ones(4)
        >>> fnp.shares_memory(x[::2], x[1::2])
        False
    """
    return _share(numpy.shares_memory, a, b, max_work)


def may_share_memory(a: Array, b: Array, /, max_work: int = 0) -> bool:
    """Return whether the memory of two arrays overlaps, so that they might have an element in common.

    Example:
        >>> x = np.ones(4)
        >>> fnp.may_share_memory(x[::2], x[1::2])
        True
    """
    return _share(numpy.may_share_memory, a, b, max_work)


def _share(numpys: Callable[..., bool], a: Array, b: Array, max_work: int) -> bool:
    given = [x.as_array() if isinstance(x, Proxy) else as_value(x) for x in (a, b)]
    first, second = [concrete_or_none(x, steers=False) for x in given]
    return first is not None and second is not None and numpys(first, second, max_work)


# ---- printing ----------------------------------------------------------------------------------------------


def array2string(a: ArrayLike, *args: Any, **kwargs: Any) -> str:
    """Format the elements of an array, or the values of a traced array, as NumPy does, with NumPy's options.

    Raises:
        ConcretizationError: a value differs between the examples of a ``vmap``.

    Example:
        >>> fnp.array2string(np.array([1.0, 2.5]), precision=1)
        '[1.  2.5]'
    """
    return _text(np.array2string, a if isinstance(a, Tracer) else np.asarray(a), *args, **kwargs)


def _text(make: Callable[..., str], x: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text that ``make`` makes of ``x``. A number that is read from that of a traced one is an error."""
    if not isinstance(x, Tracer):
        return make(x, *args, **kwargs)
    text = make(np.asarray(concrete(x, make.__name__, steers=False)), *args, **kwargs)
    return as_traced_text(x, text, is_complete=False)


def array_repr(arr: Array, *args: Any, **kwargs: Any) -> str:
    """Return ``repr(arr)``, with NumPy's options; for a traced value the text says so and shows the value.

    Example:
        >>> fnp.array_repr(np.array([1.0, 2.5]))
        'array([1. , 2.5])'
    """
    return repr(arr) if isinstance(arr, Tracer) else np.array_repr(arr, *args, **kwargs)


def array_str(a: Array, *args: Any, **kwargs: Any) -> str:
    """Return ``str(a)``, with NumPy's options; for a traced value too.

    Example:
        >>> fnp.array_str(np.array([1.0, 2.5]))
        '[1.  2.5]'
    """
    return _text(np.array_str, a, *args, **kwargs) if args or kwargs or not isinstance(a, Tracer) else str(a)


def format_float_positional(x: Any, *args: Any, **kwargs: Any) -> str:
    """Format a number without an exponent, with NumPy's options.

    Example:
        >>> fnp.format_float_positional(1e-3)
        '0.001'
    """
    return _text(np.format_float_positional, x, *args, **kwargs)


def format_float_scientific(x: Any, *args: Any, **kwargs: Any) -> str:
    """Format a number with an exponent, with NumPy's options.

    Example:
        >>> fnp.format_float_scientific(0.001)
        '1.e-03'
    """
    return _text(np.format_float_scientific, x, *args, **kwargs)


# ---- values ------------------------------------------------------------------------------------------------


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    """Return whether two arrays have equal elements after broadcasting.

    Example:
        >>> fnp.array_equiv([1, 2], [[1, 2], [1, 2]])
        True
    """
    if is_plain(a1, a2):
        return np.array_equiv(a1, a2)
    a1, a2 = as_value(a1), as_value(a2)
    try:
        np.broadcast_shapes(shape_of(a1), shape_of(a2))
    except ValueError:
        return False
    return array_equal(*broadcast_arrays(a1, a2))


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """Return the real part of ``a`` if all imaginary parts are close to zero, else ``a`` itself.

    Args:
        a: an array.
        tol: the tolerance: in units of the dtype's machine epsilon if larger than 1, else absolute.

    Raises:
        ConcretizationError: the examples of a ``vmap`` do not agree.

    Example:
        >>> fnp.real_if_close([2.1 + 4e-15j, 5.2 + 3e-15j])
        array([2.1, 5.2])
    """
    if is_plain(a):
        return np.real_if_close(a, tol)
    a = asarray(a)  # of a number, too, an array, which can be written to
    dtype = dtype_of(a)
    if dtype.kind != "c":
        return a
    limit = float(np.finfo(dtype).eps) * tol if tol > 1 else tol
    close = less(absolute(imag(a)), limit)
    return real(a) if shared_truth(reduce_all(close, axis=ALL_AXES[len(shape_of(a))])) else a


def asarray_chkfinite(a: ArrayLike, dtype: Any = None, order: Any = None) -> Array:
    """Convert ``a`` to an array and check that it holds no NaN and no infinity; ``jax.jit`` skips the check.

    Raises:
        ValueError: there is a NaN or an infinity.

    Example:
        >>> fnp.asarray_chkfinite([1, 2], dtype=float)
        array([1., 2.])
    """
    if is_plain(a):
        return np.asarray_chkfinite(a, dtype, order)
    x = asarray(a, dtype, order)
    if any_true(lambda finite: ~finite, isfinite(x)):
        raise ValueError("array must not contain infs or NaNs")
    return x


def require(a: ArrayLike, dtype: Any = None, requirements: Any = None) -> Array:
    """Return ``a`` as an array of ``dtype``; the memory of a NumPy array or traced value meets ``requirements``.

    Args:
        a: an array.
        dtype: the dtype, by default that of ``a``.
        requirements: flags as in NumPy, such as "C" or "W".

    Example:
        >>> fnp.require(np.ones((2, 3)).T, requirements="C").flags.c_contiguous
        True
    """
    if is_plain(a):
        return numpy.require(a, dtype, requirements)
    made, letters = asanyarray(a, dtype), {str(r).upper()[0] for r in requirements or ()}
    if "F" in letters:
        made = asfortranarray(made) if shape_of(made) else made
    elif "C" in letters:
        made = ascontiguousarray(made) if shape_of(made) else made
    alias: Any = made.alias if isinstance(made, Tracer) else None
    is_view = type(alias) is View
    fits = not ("O" in letters and is_view) and not ("W" in letters and is_view and alias.locked)
    return made if fits and not (letters & {"O", "W"} and alias is READ_ONLY) else copy(made)


# ---- bits --------------------------------------------------------------------------------------------------


def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: Any = "big") -> Array:
    """Pack every eight truth values along ``axis`` into the bits of one number. The derivative is zero.

    Args:
        a: integers or booleans; every number other than zero is true.
        axis: the axis; None flattens first.
        bitorder: "big" if the first value is the highest bit, "little" if the first value is the lowest bit.

    Raises:
        TypeError: ``a`` holds other numbers.

    Example:
        >>> fnp.packbits([1, 0, 1, 0, 0, 0, 0, 0])
        array([160], dtype=uint8)
    """
    a, axis = _along(a, axis)
    return prim.packbits(a, axis=axis, bitorder=bitorder)


def unpackbits(a: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: Any = "big") -> Array:
    """Unpack numbers into their bits along ``axis``. The derivative is zero.

    Args:
        a: numbers of dtype uint8.
        axis: the axis; None flattens first.
        count: the number of bits to return; if negative, the number of bits to leave out at the end.
        bitorder: "big" for the highest bit first, "little" for the lowest bit first.

    Raises:
        TypeError: ``a`` has another dtype.

    Example:
        >>> fnp.unpackbits(np.array([160], np.uint8), count=3)
        array([1, 0, 1], dtype=uint8)
    """
    a, axis = _along(a, axis)
    return prim.unpackbits(a, axis=axis, count=count, bitorder=bitorder)


def _along(a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    a = as_value(a)
    return (ravel(a), 0) if axis is None else (a, normalize_axis(axis, len(shape_of(a))))


# ---- arrays from elsewhere ---------------------------------------------------------------------------------


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Convert an array of another library to NumPy, without a copy if possible; pass a traced value through.

    Example:
        >>> fnp.from_dlpack(np.ones(2))
        array([1., 1.])
    """
    if isinstance(x, Tracer):
        return array(x) if copy else x
    return as_buffer(np.from_dlpack(x, device=device, copy=copy))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    """Make an array with one axis from the numbers that ``iter`` yields; the derivative flows to traced numbers.

    Args:
        iter: an iterable, which is iterated over once.
        dtype: the dtype.
        count: the number of elements to take; -1 for all.

    Raises:
        ValueError: ``iter`` yields fewer than ``count`` numbers.

    Example:
        >>> fnp.fromiter((n * n for n in range(4)), dtype=float)
        array([0., 1., 4., 9.])
    """
    items = list(iter if count < 0 else itertools.islice(iter, count))
    if is_plain(items):
        return np.fromiter(items, dtype, count)
    if len(items) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
    return asarray(items, dtype)
