"""Functions that change the shape or the order of axes but not the elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.core import READ_ONLY, Tracer, plain_value
from funcgrad.kinds.linear import broadcast_to as stretch
from funcgrad.kinds.linear import broadcast_view, permute
from funcgrad.kinds.linear import reshape as refill
from funcgrad.numpy.axes import as_shape, normalize_axes, normalize_axis, resolve_shape
from funcgrad.numpy.creation import as_buffer, as_value, asarray
from funcgrad.numpy.creation import copy as duplicate
from funcgrad.typing import Array, ArrayLike, Axes, Shape
from funcgrad.views import array_with_layout_of, axes_in_memory, make_read_only, note_view, shares_memory
from funcgrad.writable import is_buffer, is_number, make_buffer, root_of

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims",
    "iscomplexobj", "isrealobj", "isscalar", "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "reshape",
    "result_type", "rollaxis", "shape", "size", "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def _rank(a: Array) -> int:
    return len(backend.shape_of(a))


def _reversed(a: Array) -> Array:
    return permute(a, axes=tuple(range(_rank(a) - 1, -1, -1)))


def _order(a: Array, order: Any) -> Any:
    """Return ``order`` as "C" or "F"; resolve "A" by the memory layout of ``a``."""
    order = order.upper() if isinstance(order, str) else order
    if order == "A":
        return "F" if array_with_layout_of(a).flags.fnc else "C"
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C', 'F' or 'A', got {order!r}.")
    return order


def reshape(a: ArrayLike, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Array:
    """Return the elements of ``a`` in another shape.

    Args:
        a: an array.
        shape: the lengths; one length may be -1 and is then inferred.
        order: "C" reads and writes with the last axis changing fastest, "F" with the first; "A" means "F" for an
            array that is contiguous in Fortran order, else "C".
        copy: whether the result must be a copy; None copies only if necessary, False raises an error then.

    Raises:
        ValueError: the elements do not fill ``shape``.

    Example:
        >>> fnp.reshape([1, 2, 3, 4], (2, -1))
        array([[1, 2],
               [3, 4]])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.reshape(a, shape, order, copy=copy)
    to = resolve_shape(shape, backend.shape_of(a))
    if order == "C" or _order(a, order) == "C":
        made = refill(a, to=to)
    else:
        made = _reversed(refill(_reversed(a), to=to[::-1]))
        if (
            isinstance(made, Tracer)
            and made.alias is READ_ONLY
            and not shares_memory(like := array_with_layout_of(a), like.reshape(to, order="F"))
        ):
            made = duplicate(made)  # an argument from another library: its memory order was lost
    if copy is False and isinstance(a, Tracer) and not is_number(a) and not _is_part(made, a):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return duplicate(made) if copy else made


def _is_part(made: Any, a: Tracer) -> bool:
    """Whether ``made`` is ``a``, a view of ``a``, or part of an array that cannot be written to."""
    return isinstance(made, Tracer) and (made.alias is READ_ONLY or root_of(made) is root_of(a))


def ravel(a: ArrayLike, order: Any = "C") -> Array:
    """Return the elements of ``a`` along one axis.

    Args:
        a: an array.
        order: as for ``reshape``, or "K" for the order in memory.

    Example:
        >>> fnp.ravel([[1, 2], [3, 4]])
        array([1, 2, 3, 4])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.ravel(a, order)
    if order in ("K", "k"):
        a = permute(a, axes=axes_in_memory(array_with_layout_of(a)))
    elif order != "C" and _order(a, order) == "F":
        a = _reversed(a)
    made = refill(a, to=(prod(backend.shape_of(a)),))
    # NumPy copies even if a view with gaps is possible
    return made if not isinstance(a, Tracer) or array_with_layout_of(a).flags.c_contiguous else duplicate(made)


def transpose(a: ArrayLike, axes: Axes = None) -> Array:
    """Return ``a`` with its axes in the order ``axes``, by default reversed.

    Raises:
        ValueError: ``axes`` is not a permutation.

    Example:
        >>> fnp.transpose([[1, 2], [3, 4]])
        array([[1, 3],
               [2, 4]])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.transpose(a, axes)
    if axes is None:
        return _reversed(a)
    order = normalize_axes(axes, _rank(a))
    if len(order) != _rank(a):
        raise ValueError("axes don't match array")
    return permute(a, axes=order)


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return ``x`` with its last two axes exchanged.

    Raises:
        ValueError: fewer than two axes.

    Example:
        >>> fnp.matrix_transpose(np.ones((4, 2, 3))).shape
        (4, 3, 2)
    """
    x = as_value(x)
    rank = _rank(x)
    if rank < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {rank}")
    return permute(x, axes=(*range(rank - 2), rank - 1, rank - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Return ``a`` with two axes exchanged.

    Example:
        >>> fnp.swapaxes(np.ones((4, 2, 3)), 0, -1).shape
        (3, 2, 4)
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.swapaxes(a, axis1, axis2)
    axes = list(range(_rank(a)))
    first, second = normalize_axis(axis1, _rank(a)), normalize_axis(axis2, _rank(a))
    axes[first], axes[second] = second, first
    return permute(a, axes=tuple(axes))


def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Return ``a`` with the axes ``source`` moved to ``destination``; the other axes keep their order.

    Raises:
        ValueError: different numbers of axes, or one named twice.

    Example:
        >>> fnp.moveaxis(np.ones((4, 2, 3)), 0, -1).shape
        (2, 3, 4)
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.moveaxis(a, source, destination)  # type: ignore[arg-type]
    rank = _rank(a)
    moved = normalize_axes(source, rank), normalize_axes(destination, rank)
    if len(moved[0]) != len(moved[1]):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    axes = [i for i in range(rank) if i not in moved[0]]
    for to, axis in sorted(zip(moved[1], moved[0], strict=True)):
        axes.insert(to, axis)
    return permute(a, axes=tuple(axes))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Return ``a`` with one axis moved in front of the axis ``start``.

    Example:
        >>> fnp.rollaxis(np.ones((4, 2, 3)), 2).shape
        (3, 4, 2)
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.rollaxis(a, axis, start)
    rank = _rank(a)
    moved, before = normalize_axis(axis, rank), normalize_axis(start, rank + 1 if start >= 0 else rank)
    return moveaxis(a, moved, before - 1 if moved < before else before)


def expand_dims(a: ArrayLike, axis: int | tuple[int, ...]) -> Array:
    """Return ``a`` with axes of length 1 at the positions ``axis`` of the result.

    Example:
        >>> fnp.expand_dims([1, 2], 1)
        array([[1],
               [2]])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.expand_dims(a, axis)
    have = backend.shape_of(a)
    if type(axis) is int:
        at = normalize_axis(axis, len(have) + 1)
        return refill(a, to=(*have[:at], 1, *have[at:]))
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    new, rest = normalize_axes(axis, len(have) + count), iter(have)
    return refill(a, to=tuple([1 if i in new else next(rest) for i in range(len(have) + count)]))


def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """Return ``a`` without the axes of length 1 in ``axis``, by default without all such axes.

    Raises:
        ValueError: an axis in ``axis`` has another length.

    Example:
        >>> fnp.squeeze([[1, 2]])
        array([1, 2])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.squeeze(a, axis)
    have = backend.shape_of(a)
    if axis is None:
        return refill(a, to=tuple([n for n in have if n != 1]))
    dropped = normalize_axes(axis, len(have))
    if any(have[i] != 1 for i in dropped):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return refill(a, to=tuple([n for i, n in enumerate(have) if i not in dropped]))


def broadcast_to(array: ArrayLike, shape: Any, subok: bool = False) -> Array:
    """Return ``array`` broadcast to a larger shape without copying.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> fnp.broadcast_to([1, 2], (2, 2))
        array([[1, 2],
               [1, 2]])
    """
    array = as_value(array)
    if namespace_of(array) is np:
        return np.broadcast_to(array, shape, subok)
    return _broadcast_view(array, as_shape(shape))


def _broadcast(x: Array, *, to: Shape) -> Array:
    """Broadcast ``x``; the result for a buffer, or for its value, is a view that shows later writes to the buffer."""
    if type(x) is np.ndarray:
        return np.broadcast_to(x, to)
    if is_buffer(x) and type(value := x._val) is np.ndarray:
        return make_buffer(np.broadcast_to(value, to))
    as_numpy = type(x) is Tracer and (x._trace.is_bit_exact or is_number(x))
    return (broadcast_view if as_numpy else stretch)(x, to=to)


def _broadcast_view(x: Array, to: Shape) -> Array:
    """Return ``x`` broadcast to the shape ``to`` as a read-only view."""
    if namespace_of(x) is np:
        return np.broadcast_to(x, to)
    made = _broadcast(x, to=to)
    if isinstance(x, Tracer) and not is_number(x):
        note_view(x, made, _broadcast, {"to": to})
    return make_read_only(made)


def broadcast_arrays(*args: ArrayLike, subok: bool = False) -> tuple[Array, ...]:
    """Return all arrays broadcast to their common shape without copying.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> fnp.broadcast_arrays([1, 2], [[3], [4]])
        (array([[1, 2],
               [1, 2]]), array([[3, 3],
               [4, 4]]))
    """
    values = [as_value(a) for a in args]
    if all(namespace_of(a) is np for a in values):
        return np.broadcast_arrays(*values, subok=subok)
    to = broadcast_shapes(*[backend.shape_of(a) for a in values])
    return tuple([asarray(a) if backend.shape_of(a) == to else _broadcast_view(a, to) for a in values])


def broadcast_shapes(*args: Shape | int) -> Shape:
    """Return the shape that arrays of these shapes broadcast to.

    Example:
        >>> fnp.broadcast_shapes((3, 1), 4)
        (3, 4)
    """
    return np.broadcast_shapes(*args)


def _atleast(rank: int, arys: tuple[ArrayLike, ...]) -> Any:
    values, numpys = [as_value(a) for a in arys], (np.atleast_1d, np.atleast_2d, np.atleast_3d)[rank - 1]
    if all(namespace_of(a) is np for a in values):
        return numpys(*values)
    made = []
    for a in values:
        if namespace_of(a) is np:
            plain = numpys(a)
            made.append(plain if issubclass(type(a), np.ndarray) else as_buffer(plain))
            continue
        have = backend.shape_of(a)
        if len(have) >= rank:
            made.append(a)
        elif rank == 3 and have:  # vectors and matrices also get a new trailing axis
            made.append(refill(a, to=(1, *have, 1) if len(have) == 1 else (*have, 1)))
        else:
            made.append(refill(a, to=(*(1,) * (rank - len(have)), *have)))
    return made[0] if len(made) == 1 else tuple(made)


def atleast_1d(*arys: ArrayLike) -> Any:
    """Return each array with at least one axis; a tuple for several arrays.

    Example:
        >>> fnp.atleast_1d(2.0)
        array([2.])
    """
    return _atleast(1, arys)


def atleast_2d(*arys: ArrayLike) -> Any:
    """Return each array with at least two axes, new axes first; a tuple for several arrays.

    Example:
        >>> fnp.atleast_2d([1, 2])
        array([[1, 2]])
    """
    return _atleast(2, arys)


def atleast_3d(*arys: ArrayLike) -> Any:
    """Return each array with at least three axes: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    Example:
        >>> fnp.atleast_3d([1, 2]).shape
        (1, 2, 1)
    """
    return _atleast(3, arys)


def shape(a: ArrayLike) -> Shape:
    """Return the lengths of the axes; inside ``vmap`` the lengths for one example.

    Example:
        >>> fnp.shape([[1, 2]])
        (1, 2)
    """
    if hasattr(type(a), "tocoo"):  # a sparse matrix, which is no array
        return tuple(a.shape)
    return backend.shape_of(as_value(a))


def ndim(a: ArrayLike) -> int:
    """Return the number of axes.

    Example:
        >>> fnp.ndim([[1, 2]])
        2
    """
    return len(shape(a))


def size(a: ArrayLike, axis: Axes = None) -> int:
    """Return the number of elements, or the length along ``axis``.

    Example:
        >>> fnp.size([[1, 2, 3]]), fnp.size([[1, 2, 3]], 0)
        (3, 1)
    """
    have = shape(a)
    return prod([have[i] for i in normalize_axes(axis, len(have))])


def iscomplexobj(x: Any) -> bool:
    """Whether ``x`` has a complex dtype.

    Example:
        >>> fnp.iscomplexobj(1 + 0j)
        True
    """
    return bool(backend.dtype_of(as_value(x)).kind == "c")


def isrealobj(x: Any) -> bool:
    """Whether the dtype of ``x`` is not complex.

    Example:
        >>> fnp.isrealobj([1.0, 2.0])
        True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number, not an array; a traced value counts if it represents a number.

    As in JAX, an array of JAX without axes counts as a number.

    Example:
        >>> fnp.isscalar(1.0), fnp.isscalar([1.0])
        (True, False)
    """
    return np.isscalar(element) or (backend.is_of_other_library(plain_value(element)) and not backend.shape_of(element))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype of an operation on all arguments; Python numbers take the dtype of arrays.

    Example:
        >>> fnp.result_type(np.float32(1), 2.0)
        dtype('float32')
    """
    found = [plain_value(a) if isinstance(a, Tracer) else a for a in arrays_and_dtypes]
    return backend.namespace(found).result_type(*found)
