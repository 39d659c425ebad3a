"""NumPy's functions that write into one of their arguments.

Like ``x[i] = y``, these functions write to arrays that a transformed function made, with ``fnp.zeros``, ``x.copy()`` or
an operation on traced values. An ordinary ndarray accepts only ordinary numbers; NumPy's functions do that.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.cumulative import cumsum
from funcgrad.numpy.plain_values.concretization import refuse_conversion, user_line
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain
from funcgrad.numpy.shaping import ravel, reshape
from funcgrad.numpy.updating import at
from funcgrad.numpy.writes.assignment import set_all_items, set_item, write_in_order
from funcgrad.numpy.writes.items import without_excess_axes
from funcgrad.primitives.arithmetic import clip, remainder
from funcgrad.primitives.comparison import floor_divide, not_equal
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.indexing import getitem
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array, ArrayLike, Axis, Shape
from funcgrad.writable import Proxy

__all__ = ["at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]

Mode: TypeAlias = Literal["raise", "wrap", "clip"]
_NUMBERS = frozenset((bool, int, float, complex))


def _values_for_numpy(name: str, target: Any, *values: Any) -> tuple[Any, ...] | None:
    """Return ``values``, none traced, for NumPy to write to ``target``; None if ``target`` is a tracer."""
    if isinstance(target, Tracer):
        return None
    if backend.is_of_other_library(target):
        raise InputError(
            f"{name}: an array of another library cannot be written to, got {describe(target)}{user_line()}. Use "
            "funcgrad.numpy.at(x)[index].set(y), which gives a new array."
        )
    return tuple([v if is_plain(v) else _constant(name, as_value(v)) for v in values])


def _constant(name: str, value: Any) -> Any:
    try:
        return np.asarray(value)
    except ConcretizationError:
        refuse_conversion(value, f"numpy.{name}")


def copyto(dst: Any, src: ArrayLike, casting: Any = "same_kind", where: ArrayLike | bool = True) -> None:
    """Write ``src``, which broadcasts, to ``dst``; if a mask is given, only to the elements where the mask is true.

    Args:
        dst: an array that was made by the function that writes to it.
        src: the values to write. The derivative passes to ``src``, and where the mask is false to the old ``dst``.
        casting: the allowed conversions of dtypes. With "unsafe" complex numbers lose their imaginary part.
        where: a mask that broadcasts to ``dst``; it may be traced and differ between the examples of a ``vmap``.

    Raises:
        TypeError: ``casting`` does not allow the change of the dtype.
        ValueError: a shape does not fit ``dst``, or ``dst`` is read-only.

    Example:
        >>> def f(x):
        ...     y = fnp.ones(3)
        ...     fnp.copyto(y, x, where=[True, False, True])
        ...     return fnp.sum(y * y)
        >>> grad(f)(np.array([3.0, 4.0, 5.0]))
        array([ 6.,  0., 10.])
    """
    dst = dst.as_target() if isinstance(dst, Proxy) else dst
    plain = _values_for_numpy("copyto", dst, src, where)
    if plain is not None:
        np.copyto(dst, plain[0], casting, plain[1])
        return
    src = as_value(src)
    probe = src if type(src) in _NUMBERS else np.empty((0,) if backend.shape_of(src) else (), backend.dtype_of(src))
    np.copyto(np.empty(0, dst.dtype), probe, casting)  # so that NumPy raises its error
    if type(src) not in _NUMBERS:
        src = astype(src, dst.dtype, copy=False)
    if where is True:
        set_item(dst, ..., src)
        return
    mask = as_value(where)
    shape = backend.shape_of(mask)
    if np.broadcast_shapes(shape, dst.shape) != dst.shape:
        raise ValueError(f"could not broadcast where mask from shape {shape} into shape {dst.shape}")
    _write_where(dst, mask, without_excess_axes(src, dst.shape))


def _write_where(x: Tracer, mask: Array, y: Any) -> None:
    """Write ``x[mask] = y[mask]``; mask and ``y`` broadcast to the shape of ``x``, and the mask may be traced."""
    if backend.dtype_of(mask).kind != "b":
        mask = not_equal(mask, 0)
    y = x.dtype.type(y) if type(y) in _NUMBERS else astype(y, x.dtype, copy=False)
    with write_lock:  # other threads may write to elements where the mask is false
        chosen = choose(mask, y, x)
        set_all_items(x, chosen if backend.shape_of(chosen) == x.shape else broadcast_to(chosen, to=x.shape))


def _repeat_to_length(values: Any, n: int) -> Any:
    """Return a vector of ``n`` elements of ``values``, repeated from the start if there are fewer."""
    row = ravel(values)
    have = row.shape[0]
    if have == n:
        return row
    return getitem(row, np.arange(n) % have)


def write_positions(x: Tracer, places: Any, values: Any) -> None:
    """Write ``values``, repeated, to ``x`` at the positions ``places`` of its elements in C order, from 0."""
    places, values = ravel(places), as_value(values)
    n = places.shape[0]
    if not n or not prod(backend.shape_of(values)):
        return
    if backend.shape_of(values):
        values = _repeat_to_length(values, n)
    if not x.shape:
        set_item(x, (), getitem(values, -1) if backend.shape_of(values) else values)
        return
    index: list[Any] = []
    for length in x.shape[:0:-1]:
        index.append(remainder(places, length))
        places = floor_divide(places, length)
    set_item(x, (places, *index[::-1]), values)


def put(a: Any, ind: ArrayLike, v: ArrayLike, mode: Mode = "raise") -> None:
    """Write ``v`` to the elements of ``a`` that have the positions ``ind`` in C order.

    Args:
        a: an array that was made by the function that writes to it.
        ind: integers. If an element is written several times, the last write counts.
        v: the values to write, repeated from the start if there are too few.
        mode: the treatment of positions out of range: "raise", "wrap" around, or "clip" (negative ones to 0).

    Raises:
        IndexError: a position out of range in mode "raise".
        ValueError: another mode, or ``a`` is read-only.

    Example:
        >>> def f(x):
        ...     y = fnp.zeros((2, 2))
        ...     fnp.put(y, [0, 3], x)
        ...     return y[0, 0] * y[1, 1]
        >>> grad(f)(np.array([3.0, 4.0]))
        array([4., 3.])
    """
    a = a.as_target() if isinstance(a, Proxy) else a
    plain = _values_for_numpy("put", a, ind, v)
    if plain is not None:
        indices, values = plain
        np.put(a, indices, values, mode)
        return
    if mode not in ("raise", "wrap", "clip", None):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    ind = as_value(ind)
    if is_plain(ind):
        ind = np.asarray(ind).astype(np.intp)
    elif backend.dtype_of(ind).kind not in "iu":
        raise InputError(
            f"put: positions must be integers, got {describe(ind)}{user_line()}. Convert them with astype(int), which "
            "is a constant for derivatives."
        )
    write_positions(a, positions(ind, prod(a.shape), mode), v)


def positions(ind: Array, n: int, mode: Mode = "raise") -> Array:
    """Return positions from 0 to ``n - 1`` for ``ind``, with positions out of range treated by ``mode``.

    Raises:
        IndexError: a position out of range in mode "raise".
    """
    if mode == "wrap":
        return remainder(ind, n)
    if mode == "clip":
        return clip(ind, 0, n - 1)
    if any_true(lambda ind: (ind < -n) | (ind >= n), ind):
        values: Any = concrete_or_none(ind)
        wrong = values[(values < -n) | (values >= n)]
        raise IndexError(f"index {wrong[0]} is out of bounds for axis 0 with size {n}")
    if concrete_or_none(ind, steers=False) is not None and not any_true(lambda ind: ind < 0, ind):
        return ind
    return choose(ind < 0, ind + n, ind)


def place(arr: Any, mask: ArrayLike, vals: ArrayLike) -> None:
    """Write ``vals``, one after the other, to the elements of ``arr`` for which ``mask`` is true.

    Args:
        arr: an array that was made by the function that writes to it.
        mask: one truth value for each element; may be traced and differ between the examples of a ``vmap``.
        vals: the values to write, repeated from the start if there are too few.

    Raises:
        ValueError: another number of truth values, no values to write, or ``arr`` is read-only.

    Example:
        >>> from funcgrad import jacrev
        >>> def f(x):
        ...     y = fnp.zeros(3)
        ...     fnp.place(y, [False, True, True], x)
        ...     return y
        >>> jacrev(f)(np.array([3.0, 4.0]))
        array([[0., 0.],
               [1., 0.],
               [0., 1.]])
    """
    arr = arr.as_target() if isinstance(arr, Proxy) else arr
    plain = _values_for_numpy("place", arr, mask, vals)
    if plain is not None:
        np.place(arr, *plain)
        return
    mask, row = _as_mask("place", mask, arr.shape), ravel(vals)
    if not row.shape[0]:
        if concrete_or_none(mask, steers=False) is None or any_true(lambda hit: hit, mask):
            raise ValueError("Cannot insert from an empty array!")
        return
    order = cumsum(ravel(mask).astype(int)) - 1
    chosen = getitem(row, remainder(order, row.shape[0]))
    _write_where(arr, mask, reshape(chosen, arr.shape))


def _as_mask(name: str, mask: ArrayLike, shape: Shape) -> Array:
    """Return ``mask`` as booleans of ``shape``."""
    mask = as_value(mask)
    mask = mask if backend.dtype_of(mask).kind == "b" else not_equal(mask, 0)
    have = backend.shape_of(mask)
    if prod(have) != prod(shape):
        raise ValueError(f"{name}: mask and data must be the same size")
    return mask if have == shape else reshape(mask, shape)


def putmask(a: Any, /, mask: ArrayLike, values: ArrayLike) -> None:
    """Write elements of ``values`` to the same positions of ``a`` where ``mask`` is true.

    Args:
        a: an array that was made by the function that writes to it.
        mask: one truth value for each element; may be traced and differ between the examples of a ``vmap``.
        values: the values to write, repeated from the start if there are too few.

    Raises:
        ValueError: another number of truth values, or ``a`` is read-only.

    Example:
        >>> def f(x):
        ...     y = x * x
        ...     fnp.putmask(y, x < 0, -x)
        ...     return fnp.sum(y)
        >>> grad(f)(np.array([3.0, -4.0]))
        array([ 6., -1.])
    """
    a = a.as_target() if isinstance(a, Proxy) else a
    plain = _values_for_numpy("putmask", a, mask, values)
    if plain is not None:
        np.putmask(a, *plain)
        return
    mask, values = _as_mask("putmask", mask, a.shape), as_value(values)
    shape = backend.shape_of(values)
    if not prod(shape):
        return
    if shape and shape != a.shape:
        values = reshape(_repeat_to_length(values, prod(a.shape)), a.shape)
    _write_where(a, mask, values)


def put_along_axis(arr: Any, indices: ArrayLike, values: ArrayLike, axis: Axis) -> None:
    """Write ``values`` to ``arr`` at ``indices`` along ``axis``, such as indices from ``argsort`` or ``argmax``.

    Args:
        arr: an array that was made by the function that writes to it.
        indices: integers with as many axes as ``arr``; the axes other than ``axis`` broadcast.
        values: the values to write, which broadcast. If an element is written several times, the last write counts.
        axis: the axis; None means the flattened array.

    Raises:
        IndexError: indices that are out of range or not integers.
        ValueError: another number of axes, or ``arr`` is read-only.

    Example:
        >>> def f(x):
        ...     y = x * x
        ...     fnp.put_along_axis(y, np.array([[1], [0]]), 1.0, axis=1)
        ...     return fnp.sum(y)
        >>> grad(f)(np.array([[3.0, 4.0], [5.0, 6.0]]))
        array([[ 6.,  0.],
               [ 0., 12.]])
    """
    arr = arr.as_target() if isinstance(arr, Proxy) else arr
    plain = _values_for_numpy("put_along_axis", arr, indices, values)
    if plain is not None:
        np.put_along_axis(arr, np.asarray(plain[0]), plain[1], axis)
        return
    indices = as_value(indices)
    shape = backend.shape_of(indices)
    if backend.dtype_of(indices).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if len(shape) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        values = without_excess_axes(as_value(values), shape)
        write_positions(arr, positions(indices, prod(arr.shape)), broadcast_to(values, to=shape))
        return
    rank = len(arr.shape)
    axis = normalize_axis(axis, rank)
    if len(shape) != rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index: list[Any] = [np.arange(n).reshape(*(1,) * i, n, *(1,) * (rank - 1 - i)) for i, n in enumerate(arr.shape)]
    index[axis] = indices
    set_item(arr, tuple(index), values)


def fill_diagonal(a: Any, val: ArrayLike, wrap: bool = False) -> None:
    """Write ``val`` to the diagonal of ``a``, the elements whose indices along all axes are equal.

    Args:
        a: an array of two or more axes that was made by the function that writes to it; more than two axes must
            have one length.
        val: the values to write, repeated from the start if there are too few.
        wrap: whether a tall matrix has another diagonal below the first, after one free row, and so on.

    Raises:
        ValueError: fewer than two axes, different lengths of more than two axes, or ``a`` is read-only.

    Example:
        >>> def f(x):
        ...     y = x * x
        ...     fnp.fill_diagonal(y, 0.0)
        ...     return fnp.sum(y)
        >>> grad(f)(np.array([[3.0, 4.0], [5.0, 6.0]]))
        array([[ 0.,  8.],
               [10.,  0.]])
    """
    a = a.as_target() if isinstance(a, Proxy) else a
    plain = _values_for_numpy("fill_diagonal", a, val)
    if plain is not None:
        (value,) = plain
        np.fill_diagonal(a, value, wrap)
        return
    shape = a.shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    end = prod(shape)
    if len(shape) == 2:
        step = shape[1] + 1
        end = end if wrap else min(end, shape[1] * shape[1])
    else:
        step = 1 + sum([prod(shape[:i]) for i in range(1, len(shape))])
    places = slice(0, end, step)

    def write(target: np.ndarray, source: np.ndarray) -> None:
        target.flat[places] = source

    with write_lock:
        if not write_in_order(a, val, write):
            write_positions(a, np.arange(0, end, step), val)
