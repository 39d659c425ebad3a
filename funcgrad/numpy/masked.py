"""Masked arrays with traced values. Imported only after ``numpy.ma``, because that takes a fifth of all import time.

Masked elements have no influence on a result, and none on a derivative: operations compute with a harmless number in
their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce, wraps
from inspect import signature
from operator import methodcaller
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer, describe, plain_value
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.primitives.indexing import getitem
from funcgrad.writable import Proxy, is_buffer

#: The element that ``numpy.ma`` returns in place of a masked number.
MASKED = np.ma.masked


class _UfuncMethod:
    """Descriptor of ``__array_ufunc__``: NumPy gets it from the class, and ``numpy.ma.masked + m`` from the object.

    There, None leaves the operator to the object.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, obj: Any, cls: type) -> Any:
        return self.method if obj is None else None


class Masked(Proxy):
    """Array of which some elements are masked, like ``numpy.ma.MaskedArray``.

    Args:
        value: the array.
        mask: the mask, True where an element is masked, of the same shape; None if no element is masked.
        fill_value: the number that ``filled`` puts in the place of masked elements; None for NumPy's.
        shared: the program's array of which the mask was made: in NumPy it is the mask.
    """

    __slots__ = ("_fill", "_own", "_shared", "_val")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 2000.0

    def __init__(self, value: Any, mask: Any = None, fill_value: Any = None, shared: Any = None) -> None:
        self._mask = mask
        self._val, self._fill = value, fill_value
        self._shared = None if shared is None else (shared, shared.copy())

    @property
    def _mask(self) -> Any:
        """The mask, None if no element was masked."""
        if self._shared is not None:
            array, before = self._shared
            changed = array != before
            if changed.any():
                self._own[changed] = before[changed] = array[changed]
        return self._own

    @_mask.setter
    def _mask(self, mask: Any) -> None:
        if mask is np.ma.nomask:  # written by functions of SciPy
            mask = None
        # records on the tape refer to an ordinary array, and would see a write to the mask
        self._own, self._shared = fnp.array(mask) if type(mask) is np.ndarray else mask, None

    type_of = staticmethod(lambda x: np.ma.MaskedArray)
    shape = property(lambda self: self._val.shape, lambda self, shape: self._set_shape(shape))
    ndim = property(lambda self: len(self._val.shape))
    size = property(lambda self: self._val.size)
    dtype = property(lambda self: self._val.dtype)
    data = _data = property(lambda self: self._val)
    _sharedmask = property(lambda self: False, lambda self, flag: None)  # set by functions of ``numpy.ma``
    real = property(lambda self: Masked(self._val.real, self._mask))
    imag = property(lambda self: Masked(self._val.imag, self._mask))
    T = property(lambda self: self.transpose())

    def _set_shape(self, shape: Any) -> None:
        mask = self._mask
        self._val, self._mask = self._val.reshape(shape), None if mask is None else fnp.reshape(mask, shape)

    def array_class(self) -> type:
        """Return ``numpy.ma.MaskedArray``."""
        return np.ma.MaskedArray

    def as_array(self) -> Any:
        """Return the array, with the numbers that are masked."""
        return self._val

    def as_operand(self) -> Any:
        """Return the array if no element is masked: functions of NumPy would compute with the masked numbers.

        Raises:
            ConversionError: elements are masked.
        """
        if not self._may_mask():
            return self._val
        raise ConversionError(
            f"numpy.ma: this function would lose the mask, got a masked array of {describe(self._val)}{user_line()}. "
            "Take a method of the array or a function of numpy.ma, or m.filled(0.0), m.compressed()."
        )

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the result of an elementwise operation on ``args``; None for other operations."""
        return replace_call(name, args)

    def wrap(self, ans: Any, name: str) -> Any:
        """Return the result of ``numpy.where``, which ignores masks; refuse other operations."""
        if name != "where":
            self.as_operand()
        return ans

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a function of NumPy whose first argument is this array."""
        return call_method(name, operation, args, kwargs)

    def as_result(self) -> Any:
        """Return NumPy's masked array if it is constant, and the array if no element is masked.

        Raises:
            ConversionError: elements of a traced array are masked.
        """
        if is_constant(self._val):
            return to_numpy(self)
        if self._may_mask():
            raise ConversionError(
                f"numpy.ma: a masked array as the result of a transformed function, got {describe(self._val)}. Return "
                "m.filled(0.0), m.compressed(), or m.data and m.mask."
            )
        return self._val

    def _may_mask(self) -> bool:
        """Whether an element is masked, or the mask is not computed yet."""
        known = None if self._mask is None else concrete_or_none(self._mask)
        return self._mask is not None and (known is None or bool(known.any()))

    @property
    def mask(self) -> Any:
        """The mask, ``numpy.ma.nomask`` if no element was masked."""
        return np.ma.nomask if self._mask is None else self._mask

    @mask.setter
    def mask(self, mask: Any) -> None:
        self._mask = None if mask is np.ma.nomask else to_mask(mask, self.shape)

    def __setmask__(self, mask: Any, copy: bool = False) -> None:
        self.mask = mask

    @property
    def fill_value(self) -> Any:
        """The number that ``filled`` puts in the place of masked elements."""
        return np.ma.default_fill_value(np.dtype(self.dtype)) if self._fill is None else self._fill

    @fill_value.setter
    def fill_value(self, value: Any) -> None:
        self._fill = value

    def get_fill_value(self) -> Any:
        """Return ``fill_value``."""
        return self.fill_value

    def set_fill_value(self, value: Any = None) -> None:
        """Set ``fill_value``; None stands for NumPy's."""
        self.fill_value = value

    def _like(self, value: Any, mask: Any = None) -> Any:
        return Masked(value, self._mask if mask is None else mask, self._fill)

    def filled(self, fill_value: Any = None) -> Any:
        """Return an array with ``fill_value`` in the place of masked elements."""
        if self._mask is None:
            return self._val
        value = fnp.asarray(self.fill_value if fill_value is None else fill_value)
        return fnp.where(self._mask, fnp.astype(value, self.dtype), self._val)

    def compressed(self) -> Any:
        """Return the elements that are not masked, as a vector."""
        flat = self._val.reshape(-1)
        if self._mask is None:
            return fnp.copy(flat)
        return flat[~np.asarray(concrete(fnp.asarray(self._mask), "m.compressed()")).reshape(-1)]

    def nonzero(self) -> Any:
        """Return the positions of elements that are neither masked nor 0."""
        return fnp.nonzero(self.filled(0) != 0)

    def count(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return how many elements are not masked."""
        found = fnp.sum(~mask_array(self), axis=axis, keepdims=bool(keepdims))
        return found if isinstance(found, Tracer) or np.ndim(found) else int(found)

    def __getitem__(self, key: Any) -> Any:
        key = _plain_key(key)
        mask: Any = self._mask
        if mask is not None:
            mask = getitem(mask, key) if isinstance(key, Tracer) else mask[key]  # a part of NumPy's array is a view
        return part_or_reduction(getitem(self._val, key), mask, self._fill)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _plain_key(key)
        if value is MASKED:
            self._set_mask(key, True)
            return
        mask = value._mask if isinstance(value := as_masked(value), Masked) else None
        data = data_of(value)
        of_objects = self._val.dtype == object and isinstance(data, Tracer)
        self._val[key] = fnp.astype(data, object) if of_objects else data
        if mask is not None or self._mask is not None:
            self._set_mask(key, False if mask is None else unbatched_if_equal(mask))

    def _set_mask(self, key: Any, mask: Any) -> None:
        if self._mask is None:
            self._mask = fnp.zeros(self.shape, bool)
        self._mask[key] = mask
        for array in self._shared or ():
            array[key] = plain_value(mask)

    def fill(self, value: Any) -> None:
        """Write a number to all elements; masked elements stay masked."""
        self._val[...] = value

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        """Write values, repeated, to the elements that have the positions ``indices`` in C order."""
        places = np.arange(self.size).take(np.ravel(indices), mode=mode)
        if values is not MASKED:
            flat = as_masked(values).reshape(-1)
            values = flat[np.arange(len(places)) % len(flat)]
        self[np.unravel_index(places, self.shape)] = values

    def unshare_mask(self) -> Masked:
        """Copy the mask, to which writes to other arrays may write."""
        self._mask = None if self._mask is None else fnp.array(self._mask)
        return self

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array as a ``MaskedArray``, or without its mask as an ``ndarray``."""
        kinds = {getattr(x, "numpy_class", x) for x in (*args, *kwargs.values())}
        if kinds <= {np.ma.MaskedArray}:
            return Masked(self._val, self._mask, self._fill)
        return self._val if kinds == {np.ndarray} else self.as_operand().view(*args, **kwargs)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def tolist(self, fill_value: Any = None) -> list[Any]:
        """Return nested lists of the elements, with ``fill_value`` in the place of masked ones."""
        parts = [fill_value if part is MASKED else part for part in self]
        return [part.tolist(fill_value) if isinstance(part, Masked) else part for part in parts]

    def __len__(self) -> int:
        return len(self._val)

    def __float__(self) -> float:
        return float(self._val)

    def __repr__(self) -> str:
        return f"Masked({self._val!r}, mask={self.mask!r})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._val, dtype)

    @_UfuncMethod
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or not hasattr(fnp, ufunc.__name__):
            return getattr(ufunc, method)(*map(_operand, inputs), **kwargs)
        return elementwise(ufunc.__name__, *inputs)

    def compute_ufunc(self, ufunc: np.ufunc, method: str, args: Any, options: dict[str, Any]) -> Any:
        """Write the result to a masked array given as ``out``; for any other ``out``, the array is the operand."""
        (out, *others), rest = options.get("out", (None,)), {k: x for k, x in options.items() if k != "out"}
        if others or not isinstance(out, Masked):
            return NotImplemented
        own = getattr(fnp, ufunc.__name__, ufunc)
        out[...] = (own if method == "__call__" else getattr(own, method))(*args, **rest)
        return out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_method(func.__name__, func, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Look up NumPy's method of a read-only copy if the array is constant: a write to the copy would be lost."""
        if name.startswith("__") or not is_constant(self._val):
            raise AttributeError(
                f"a masked array with traced values has no attribute {name!r}. Take m.filled(0.0) or m.compressed()"
            )
        copied = to_numpy(self)
        copied.flags.writeable = False
        found = getattr(copied, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: from_numpy(found(*map(to_numpy, args), **kwargs))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the sum of the elements that are not masked."""
        return self._reduce(fnp.sum, 0, axis, keepdims, dtype=dtype)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the product of the elements that are not masked."""
        return self._reduce(fnp.prod, 1, axis, keepdims, dtype=dtype)

    def _reduce(self, compute: Callable[..., Any], neutral: Any, axis: Any, keepdims: Any, **options: Any) -> Any:
        options = {name: value for name, value in options.items() if value is not None}
        options |= {"keepdims": True} if keepdims is True else {}
        found = compute(self.filled(neutral), axis=axis, **options)
        return part_or_reduction(found, self._all_masked(axis, keepdims))

    def _all_masked(self, axis: Any, keepdims: Any = False) -> Any:
        return None if self._mask is None else fnp.all(self._mask, axis=axis, keepdims=keepdims is True)

    def max(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: Any = False) -> Any:
        """Return the greatest element that is not masked."""
        return self._reduce(fnp.max, self._extreme(-1) if fill_value is None else fill_value, axis, keepdims)

    def min(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: Any = False) -> Any:
        """Return the smallest element that is not masked."""
        return self._reduce(fnp.min, self._extreme(1) if fill_value is None else fill_value, axis, keepdims)

    def _extreme(self, sign: int) -> Any:
        """Return a number above (``sign=1``) or below all others of the dtype."""
        kind = self.dtype.kind
        if kind in "iu":
            return np.iinfo(self.dtype).max if sign > 0 else np.iinfo(self.dtype).min
        return sign > 0 if kind == "b" else sign * np.inf

    def ptp(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: bool = False) -> Any:
        """Return the difference of the greatest and the smallest element that is not masked."""
        return self.max(axis, None, fill_value, keepdims) - self.min(axis, None, fill_value, keepdims)

    def any(self, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        """Return whether an element that is not masked is true."""
        return self._reduce(fnp.any, False, axis, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        """Return whether all elements that are not masked are true."""
        return self._reduce(fnp.all, True, axis, keepdims)

    def argmax(self, axis: Any = None, fill_value: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the position of the greatest element that is not masked."""
        filled = self.filled(self._extreme(-1) if fill_value is None else fill_value)
        return fnp.argmax(filled, axis=axis, keepdims=keepdims is True)

    def argmin(self, axis: Any = None, fill_value: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the position of the smallest element that is not masked."""
        filled = self.filled(self._extreme(1) if fill_value is None else fill_value)
        return fnp.argmin(filled, axis=axis, keepdims=keepdims is True)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        """Return the mean of the elements that are not masked."""
        if self._mask is None:
            return self._reduce(fnp.mean, 0, axis, keepdims, dtype=dtype)
        n = self.count(axis, keepdims is True)
        total = fnp.sum(self.filled(0), axis=axis, dtype=dtype, keepdims=keepdims is True)
        return part_or_reduction(total / fnp.maximum(n, 1), self._all_masked(axis, keepdims))

    def anom(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the differences from the mean."""
        return self - self.mean(axis, dtype, keepdims=axis is not None)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        **options: Any,
    ) -> Any:
        """Return the variance of the elements that are not masked."""
        if self._mask is None:
            return self._reduce(fnp.var, 0, axis, keepdims, dtype=dtype, ddof=ddof, **options)
        n = self.count(axis, keepdims is True) - ddof
        centred = self - (self.mean(axis, dtype, keepdims=True) if options.get("mean") is None else options["mean"])
        if centred is MASKED:
            return MASKED
        total = fnp.sum(fnp.abs(centred.filled(0)) ** 2, axis=axis, keepdims=keepdims is True)
        return part_or_reduction(total / fnp.maximum(n, 1), n <= 0, self._fill)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        **options: Any,
    ) -> Any:
        """Return the standard deviation of the elements that are not masked."""
        found = self.var(axis, dtype, None, ddof, keepdims, **options)
        return found if found is MASKED else fnp.sqrt(found)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return running sums, for which masked elements count as 0."""
        return self._accumulated(fnp.cumsum, 0, axis, dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return running products, for which masked elements count as 1."""
        return self._accumulated(fnp.cumprod, 1, axis, dtype)

    def _accumulated(self, accumulate: Callable[..., Any], neutral: int, axis: Any, dtype: Any) -> Any:
        found = accumulate(self.filled(neutral), axis=axis, dtype=dtype)
        return Masked(found, None if self._mask is None else fnp.reshape(self._mask, found.shape))

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        """Return the elements, limited to an interval."""
        return self._like(fnp.clip(self._val, min, max, **options), union(self._mask))

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return rounded elements."""
        return self._like(fnp.round(self._val, decimals))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the elements in another dtype."""
        return self._like(fnp.astype(self._val, np.dtype(dtype)), union(self._mask))

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        """Return a copy of the elements and of the mask."""
        return self._like(fnp.copy(self._val), union(self._mask))

    def conj(self) -> Any:
        """Return complex conjugates."""
        return self._like(fnp.conj(self._val))

    conjugate = conj

    def dot(self, b: Any, out: Any = None, strict: bool = False) -> Any:
        """Return the product of matrices or vectors, for which masked elements count as 0."""
        a, b = self, as_masked(b)
        if strict and a.ndim and b.ndim:  # a masked element masks its row or column
            axes = (a.ndim - 1, max(b.ndim - 2, 0))
            a, b = [
                x._like(x._val, mask | mask.any(i, keepdims=True))
                for i, x, mask in zip(axes, (a, b), map(mask_array, (a, b)), strict=True)
            ]
        found = fnp.dot(a.filled(0), b.filled(0))
        there = fnp.dot(1 - 1 * mask_array(a), 1 - 1 * mask_array(b))
        return part_or_reduction(found, there == 0)

    def sort(self, axis: Any = -1, *args: Any, **kwargs: Any) -> None:
        """Sort in place, with the masked elements at the end."""
        order = self.argsort(axis, *args, **kwargs)
        self._val[...] = fnp.take_along_axis(self._val, order, axis)
        if self._mask is not None:
            self._set_mask(..., fnp.take_along_axis(self._mask, order, axis))

    def argsort(
        self,
        axis: Any = np._NoValue,
        kind: Any = None,
        order: Any = None,
        endwith: Any = True,
        fill_value: Any = None,
        *,
        stable: Any = None,
    ) -> Any:
        """Return the positions in which the array would be sorted, those of masked elements last or as of a number."""
        axis = (-1 if self.ndim < 2 else None) if axis is np._NoValue else axis
        if fill_value is None:
            fill_value = np.nan if endwith and backend.is_inexact(self._val) else self._extreme(1 if endwith else -1)
        return fnp.argsort(self.filled(fill_value), axis, kind, stable=stable)


def part_or_reduction(found: Any, mask: Any, fill_value: Any = None) -> Any:
    """Return a part or a reduction of a masked array: a number, ``numpy.ma.masked`` or a masked array."""
    if backend.shape_of(found):
        return Masked(found, mask, fill_value)
    if mask is None:
        return found
    known = concrete_or_none(mask)
    if known is None or known.shape != ():  # not computed yet, or the examples of a vmap may differ
        return fnp.where(mask, np.nan, found) if known is None or known.any() else found
    return MASKED if mask else found


def is_constant(x: Any) -> bool:
    """Whether an array holds no traced values."""
    return not isinstance(x, Tracer) or is_buffer(x)


def to_numpy(x: Any) -> Any:
    """Return NumPy's masked array for a constant ``Masked``, and an ndarray for a buffer."""
    if isinstance(x, Masked):
        mask = np.ma.nomask if x._mask is None else to_numpy(x._mask)
        return np.ma.array(to_numpy(x._val), mask=mask, fill_value=x._fill)
    return np.array(x._val) if is_buffer(x) else x


def from_numpy(x: Any) -> Any:
    """Return ``Masked`` for NumPy's masked arrays, also in tuples and lists."""
    if type(x) in (tuple, list):
        return type(x)(map(from_numpy, x))
    if not isinstance(x, np.ma.MaskedArray) or x is MASKED or x.dtype.kind not in "biufc":
        return x
    if x.hardmask:
        refuse_hard_mask()
    mask = None if x.mask is np.ma.nomask else fnp.array(np.asarray(x.mask))
    return Masked(fnp.array(x.data), mask, getattr(x, "_fill_value", None))


def refuse_hard_mask() -> None:
    """Refuse masks that writes do not change."""
    raise ConversionError(
        f"numpy.ma: an array with a hard mask takes no traced values, got hard_mask=True{user_line()}. Leave it "
        "out, and write to m[~m.mask]."
    )


def as_masked(x: Any) -> Any:
    """Return ``x`` as a ``Masked``."""
    if isinstance(x, Masked):
        return x
    return from_numpy(x) if isinstance(x, np.ma.MaskedArray) else Masked(fnp.asarray(x))


def data_of(x: Any) -> Any:
    """Return the array of a masked array, and any other value unchanged.

    Example:
        >>> data_of(np.ma.array([1.0, 2.0], mask=[True, False]))
        array([1., 2.])
    """
    return x._val if isinstance(x, Masked) else np.asarray(x) if isinstance(x, np.ma.MaskedArray) else x


def mask_of(x: Any) -> Any:
    """Return the mask of ``x``; None if ``x`` has none."""
    if isinstance(x, np.ma.MaskedArray):
        return None if x.mask is np.ma.nomask else np.array(x.mask)
    return x._mask if isinstance(x, Masked) else None


def mask_array(x: Any) -> Any:
    """Return the mask of ``x``, with False for each element if ``x`` has none."""
    mask = mask_of(x)
    return np.zeros(np.shape(data_of(x)), bool) if mask is None else mask


def union(*masks: Any) -> Any:
    """Return a new mask of the elements that any of the masks masks; None if all are None."""
    given = [mask for mask in masks if mask is not None]
    return reduce(fnp.logical_or, given[1:], fnp.copy(given[0])) if given else None


def to_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    """Return a mask of this shape of its own memory."""
    mask = as_masked(mask).filled(True)
    mask = fnp.array(mask, bool)
    if mask.shape == shape:
        return mask
    return fnp.reshape(mask, shape) if mask.size == np.prod(shape) else fnp.copy(fnp.broadcast_to(mask, shape))


def _plain_key(key: Any) -> Any:
    return tuple(map(data_of, key)) if type(key) is tuple else data_of(key)


#: Operations whose results ``numpy.ma`` masks where they are not finite.
_WITH_DOMAIN = frozenset(
    (
        *("arccos", "arccosh", "arcsin", "arctanh", "divide", "floor_divide", "fmod", "log", "log10", "log2"),
        *("power", "remainder", "sqrt", "tan"),
    )
)
#: Numbers at which operations and their derivatives are finite, where 0.5 is none.
_HARMLESS = {"arccosh": 2.0}


def elementwise(name: str, *args: Any) -> Any:
    """Compute an elementwise operation; elements that are masked in any argument are masked in the result."""
    if any(x is MASKED for x in args):
        if not any(map(fnp.shape, map(data_of, args))):
            return MASKED
        args = tuple([Masked(fnp.zeros(()), np.True_) if x is MASKED else x for x in args])
    args = tuple([fnp.asarray(x) if backend.is_sequence(x) else x for x in args])
    compute = getattr(fnp, name)
    given = list(map(data_of, args))
    mask = mask_of(args[0]) if len(args) == 1 else union(*map(mask_of, args))  # NumPy shares the mask of one argument
    if name in _WITH_DOMAIN:
        with np.errstate(all="ignore"):
            mask = union(mask, ~fnp.isfinite(compute(*given)))
    fill = next((x._fill for x in args if isinstance(x, Masked)), None)
    fill = fill if fill is None or name not in _COMPARING else bool(fill)
    found = compute(*given) if mask is None else _compute_unmasked(name, compute, given, mask)
    if mask is not None and fnp.shape(mask) != fnp.shape(found):
        mask = fnp.copy(fnp.broadcast_to(mask, fnp.shape(found)))
    return found if mask is None and not backend.shape_of(found) else part_or_reduction(found, mask, fill)


def replace_call(name: str, args: tuple[Any, ...]) -> Any:
    """Return the result of an operation on masked arrays if it is elementwise, else None."""
    ufunc = getattr(np, name, None)
    is_elementwise = isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.nout == 1
    return elementwise(name, *args) if is_elementwise else None


def _compute_unmasked(name: str, compute: Callable[..., Any], given: list[Any], mask: Any) -> Any:
    """Compute the elements that are not masked; others get the first argument, as in ``numpy.ma``."""
    if name in _COMPARING or name in _BITWISE:
        return compute(*given)
    harmless = [fnp.where(mask, _harmless(name, x), x) for x in given]
    found, first = compute(*harmless), given[0]
    return fnp.where(mask, fnp.astype(fnp.asarray(first), found.dtype), found)


_BITWISE = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "invert"))  # NumPy computes masked elements, too
_COMPARING = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))


def _harmless(name: str, x: Any) -> Any:
    dtype = backend.dtype_of(x)
    return dtype.type(_HARMLESS.get(name, 0.5) if dtype.kind in "fc" else 1)


#: Functions of NumPy that call the method of a masked array.
METHODS = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "max", "mean", "min"),
        *("prod", "ptp", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace"),
        *("transpose", "var"),
    )
)
#: Functions of NumPy that are no methods, and keep masks.
REARRANGING = frozenset(
    (
        *("atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "flip", "fliplr", "flipud", "moveaxis"),
        *("real_if_close", "rot90", "tile"),
    )
)
_ALIASES = {"amax": "max", "amin": "min", "around": "round", "product": "prod"}


def _operand(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_operand, x))
    return x.as_operand() if isinstance(x, Masked) else x


def call_method(name: str, operation: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Compute ``operation``, a function of NumPy, whose first argument is a masked array."""
    name = _ALIASES.get(name, name)
    first, *rest = args
    if name == "argsort" and not rest:
        kwargs = {"axis": -1, **kwargs}  # the default of the function, not that of the method
    if name in METHODS and isinstance(first, Masked):
        return getattr(first, name)(*rest, **kwargs)
    if name in ("shape", "ndim", "size"):
        return getattr(first, name)
    if name in REARRANGING and isinstance(first, Masked):
        return rearranged(operation, *args, **kwargs)
    if name == "copy" and isinstance(first, Masked):
        return first.copy() if kwargs.get("subok", rest[1:] == [True]) else fnp.copy(first._val)
    if name.endswith("_like") and isinstance(first, Masked):
        made = operation(first._val, *rest, **kwargs)
        subok = rest[2 + (name == "full_like") :][:1] or [kwargs.get("subok", True)]
        return first._like(made, union(first._mask)) if subok[0] and made.shape == first.shape else made
    if name == "result_type":
        return operation(*map(data_of, args))
    return operation(*map(_operand, args), **{key: _operand(x) for key, x in kwargs.items()})


def writing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that writes its result to the array ``out``, if there is one."""
    parameters = signature(method)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs)
        out = given.arguments.pop("out", None)
        found = method(*given.args, **given.kwargs)
        if out is None:
            return found
        out[...] = found if isinstance(out, Masked) else data_of(found)
        return out

    return call


_WITH_OUT = ("all", "any", "argmax", "argmin", "clip", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod", "ptp")
for _name in (*_WITH_OUT, "round", "std", "sum", "var"):
    setattr(Masked, _name, writing(getattr(Masked, _name)))


def rearranged(arrange: Callable[..., Any], a: Masked, *args: Any, **kwargs: Any) -> Any:
    """Return what ``arrange`` makes of the array and of its mask."""
    mask = None if a._mask is None else arrange(a._mask, *args, **kwargs)
    return part_or_reduction(arrange(a._val, *args, **kwargs), mask, a._fill)


def _rearranging(name: str) -> Callable[..., Any]:
    def method(self: Masked, *args: Any, **kwargs: Any) -> Any:
        given = Masked(self._val, self._mask) if name == "take" else self  # whose result has NumPy's fill value
        return rearranged(methodcaller(name, *args, **kwargs), given)

    return method


_SHAPED = ("diagonal", "flatten", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "take", "transpose")
for _name in ("compress", *_SHAPED):
    setattr(Masked, _name, _rearranging(_name))


def _trace(self: Masked, *args: Any, **kwargs: Any) -> Any:
    return self.diagonal(*args, **kwargs).sum(-1)


Masked.trace = _trace  # type: ignore[attr-defined]

#: Elementwise operations of NumPy by the name of the operator.
_OPERATORS = {
    **{"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"},
    **{"mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"},
}
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_COMPARISONS |= {"eq": "equal", "ne": "not_equal"}
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}


def _in_place(name: str) -> Callable[..., Any]:
    def method(self: Masked, other: Any) -> Any:
        found = elementwise(name, self, other)
        self._val[...] = found._val
        if found._mask is not None:
            self._set_mask(..., unbatched_if_equal(found._mask))
        return self

    return method


for _name, _numpys in {**_OPERATORS, **_COMPARISONS, **_UNARY}.items():
    setattr(Masked, f"__{_name}__", lambda *args, name=_numpys: elementwise(name, *args))
for _name, _numpys in _OPERATORS.items():
    setattr(Masked, f"__r{_name}__", lambda self, other, name=_numpys: elementwise(name, other, self))
    setattr(Masked, f"__i{_name}__", _in_place(_numpys))
