"""``x.flat``: an iterator over the elements of an array, for reading and writing, like NumPy's ``flatiter``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.numpy.creation import as_value, copy
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.shaping import ravel
from funcgrad.numpy.writes.assignment import set_item, write_in_order
from funcgrad.numpy.writing import place, positions, write_positions
from funcgrad.primitives import comparison
from funcgrad.primitives.indexing import getitem
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array
from funcgrad.writable import Proxy


def _operator(operation: Callable[[Any, Any], Any]) -> Callable[[Flat, Any], Any]:
    return lambda x, y: operation(x.as_array(), y.as_array() if isinstance(y, Flat) else y)


class Flat(Proxy):
    """Iterator over the elements of ``x`` in C order; the attribute ``flat`` of a tracer.

    Reading returns copies; writing to the iterator writes to ``x``. NumPy's functions treat the iterator as the
    flattened array.
    """

    __slots__ = ("_base", "_next")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000.0

    def __init__(self, x: Tracer) -> None:
        self._base = x
        self._next = 0

    @property
    def base(self) -> Tracer:
        """The array whose elements are iterated over."""
        return self._base

    @property
    def index(self) -> int:
        """The position of the next element."""
        return self._next

    @property
    def coords(self) -> tuple[int, ...]:
        """The index of the next element."""
        rest, found = self._next, []
        for n in self._base.shape[:0:-1]:
            rest, i = divmod(rest, n) if n else (rest, 0)
            found.append(i)
        return (rest, *found[::-1]) if self._base.shape else ()

    def as_array(self) -> Array:
        """Return a flattened copy of the array."""
        return copy(ravel(self._base))

    copy = as_array

    def __len__(self) -> int:
        return prod(self._base.shape)

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Array:
        if self._next >= len(self):
            raise StopIteration
        index = self.coords
        self._next += 1
        return getitem(self._base, index)

    def _number(self, key: Any) -> int | None:
        """Return the non-negative position that ``key`` names, or None if ``key`` may name several."""
        if not issubclass(type(key), (int, np.integer)):
            return None
        n = len(self)
        if not -n <= key < n:
            raise IndexError(f"index {key} is out of bounds for size {n}")
        return int(key) % n

    def __getitem__(self, key: Any) -> Array:
        self._next = 0  # NumPy's flatiter is reset too
        key = _as_key(key)
        number = self._number(key)
        if number is None:
            found = getitem(ravel(self._base), key)
            return copy(found) if backend.shape_of(found) else found
        index = np.unravel_index(number, self._base.shape) if self._base.shape else ()
        return getitem(self._base, tuple([int(i) for i in index]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._next = 0
        key = _as_key(key)
        number = self._number(key)
        if number is not None:
            value = as_value(value)
            if backend.shape_of(value):
                raise ValueError("Error setting single item of array.")
            write_positions(self._base, np.array([number]), value)
            return

        def write(target: np.ndarray, source: np.ndarray) -> None:
            target.flat[key] = source

        with write_lock:
            if not isinstance(key, Tracer) and write_in_order(self._base, value, write):
                return
        if not is_plain(key):
            key = as_value(key)
            if backend.dtype_of(key).kind == "b":
                place(self._base, key, value)
            else:
                write_positions(self._base, positions(key, len(self)), value)
            return
        write_positions(self._base, np.arange(len(self))[key], value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.as_array(), dtype)  # raises if an element is traced

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_unwrapped(inputs), **kwargs)

    def __array_function__(self, fun: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return fun(*_unwrapped(args), **{name: _unwrapped(value) for name, value in kwargs.items()})

    __eq__ = _operator(comparison.equal)
    __ne__ = _operator(comparison.not_equal)
    __lt__ = _operator(comparison.less)
    __le__ = _operator(comparison.less_equal)
    __gt__ = _operator(comparison.greater)
    __ge__ = _operator(comparison.greater_equal)


def _as_key(key: Any) -> Any:
    if type(key) is tuple:
        if len(key) > 1:
            raise IndexError(
                f"too many indices for flat iterator: flat iterator is 1-dimensional, but {len(key)} were indexed"
            )
        key = key[0] if key else ...
    if isinstance(key, bool) or key is None:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`) and integer or boolean arrays are valid indices"
        )
    return key


def _unwrapped(args: Any) -> Any:
    if isinstance(args, Flat):
        return args.as_array()
    return type(args)([_unwrapped(a) for a in args]) if type(args) in (tuple, list) else args


def write_flat(x: Tracer, values: Any) -> None:
    """Do ``x.flat = values``; repeat ``values`` from the start if they are too few."""
    if not x.shape:
        set_item(x, (), values)
        return
    Flat(x)[...] = values
