"""``nditer`` on traced values: one element after the other, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.shaping import broadcast_arrays, ravel
from funcgrad.primitives.indexing import getitem
from funcgrad.typing import Array, Shape

__all__ = ["nditer"]

_FLAGS = frozenset(("multi_index", "c_index", "f_index", "zerosize_ok", "refs_ok", "common_dtype"))
_UNSUPPORTED = {"op_dtypes": None, "op_axes": None, "itershape": None, "buffersize": 0}


def nditer(op: Any, flags: Any = None, op_flags: Any = None, *args: Any, order: str = "K", **kwargs: Any) -> Any:
    """An iterator over the elements of one array, or of several that broadcast; NumPy's own for NumPy arrays.

    Of traced values the elements can be read, and carry the derivative. They come in C order, unless
    ``order`` is "F": a traced value has no order in memory.

    Args:
        op: an array, or a list of arrays.
        flags: of traced values "multi_index", "c_index", "f_index", "zerosize_ok" and "refs_ok".
        op_flags: of traced values "readonly".
        *args: see NumPy; not for traced values.
        order: "C" or "F".
        **kwargs: see NumPy; not for traced values.

    Raises:
        InputError: a traced value and something that needs its memory.
        ValueError: nothing to iterate over, and "zerosize_ok" is not among the flags.

    Example:
        >>> grad(lambda x: sum(a * b for a, b in fnp.nditer([x, 2.0])))(np.ones(3))
        array([2., 2., 2.])
    """
    if is_plain(op):
        return np.nditer(op, flags, op_flags, *args, order=order, **kwargs)  # type: ignore[call-overload]
    wanted = [*(flags or ()), *(f for f in _flattened(op_flags) if f != "readonly")]
    for flag in wanted:
        if flag not in _FLAGS:
            _refuse(f"{flag!r}")
    if args:
        _refuse("positional arguments after op_flags")
    for name, value in kwargs.items():
        if name != "casting" and value != _UNSUPPORTED.get(name, ...):
            _refuse(f"{name}={value!r}")
    return _Elements(op if isinstance(op, (list, tuple)) else [op], frozenset(wanted), order)


def _flattened(flags: Any) -> Iterator[str]:
    for flag in flags or ():
        if isinstance(flag, str):
            yield flag
        else:
            yield from _flattened(flag)


def _refuse(what: str) -> NoReturn:
    raise InputError(
        f"nditer: traced values can only be read, one element at a time, got {what}. Use whole-array functions of "
        "funcgrad.numpy, which are faster as well."
    )


class _Elements:
    """The iterator: what ``numpy.nditer`` offers to those who only read."""

    def __init__(self, operands: Any, flags: frozenset[str], order: str) -> None:
        values = broadcast_arrays(*[as_value(x) for x in operands])
        self.shape: Shape = backend.shape_of(values[0])
        self.ndim = len(self.shape)
        self.nop = len(values)
        self.itersize = prod(self.shape)
        if not self.itersize and "zerosize_ok" not in flags:
            raise ValueError("Iteration of zero-sized operands is not enabled")
        self.operands = tuple(values)
        self.iterindex = 0
        self._order = "F" if order == "F" else "C"
        self._flags = flags
        self._flat = [ravel(x, self._order) for x in values]

    def __iter__(self) -> _Elements:
        return self

    def __next__(self) -> Any:
        self.iterindex += self._begun
        if self.finished:
            raise StopIteration
        self._begun = 1
        return self.value

    _begun = 0  # whether __next__ has given the element where the iterator stands

    def __enter__(self) -> _Elements:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return self.nop

    def __getitem__(self, number: int) -> Array:
        return getitem(self._flat[number], self.iterindex)

    def close(self) -> None:
        """Nothing is to be written back."""

    def reset(self) -> None:
        """Go back to the first element."""
        self.iterindex, self._begun = 0, 0

    def iternext(self) -> bool:
        """Go to the next element; whether there is one."""
        self.iterindex += 1
        return not self.finished

    @property
    def finished(self) -> bool:
        """Whether all elements have been visited."""
        return self.iterindex >= self.itersize

    @property
    def value(self) -> Any:
        """The element where the iterator stands; of several arrays a tuple."""
        here = tuple([getitem(x, self.iterindex) for x in self._flat])
        return here[0] if self.nop == 1 else here

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The position of the element."""
        if "multi_index" not in self._flags:
            raise ValueError("Iterator is not tracking a multi-index")
        return self._position()

    @property
    def index(self) -> int:
        """The position in the flattened array, in C or in F order."""
        orders = [flag[0].upper() for flag in ("c_index", "f_index") if flag in self._flags]
        if not orders:
            raise ValueError("Iterator does not have an index")
        return int(np.ravel_multi_index(self._position(), self.shape, order=orders[0])) if self.ndim else 0  # type: ignore[call-overload]

    def _position(self) -> tuple[int, ...]:
        return tuple([int(i) for i in np.unravel_index(self.iterindex, self.shape, self._order)])  # type: ignore[call-overload]
