"""Arrays with fields (structured arrays and ``numpy.recarray``) to which traced values can be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.writable import Proxy, is_buffer, make_buffer

_REMEDY = "Take the fields, x['name'], or use a dictionary of arrays, one for each field."


class Records(Proxy):
    """Array with fields: one array for each field, whose leading axes are those of the array.

    Args:
        fields: the arrays by name; a field that has fields itself is a ``Records``.
        dtype: the dtype, with the names of the fields.
        shape: the shape.
        whole: the array of numbers whose parts along the last axis are the fields, if these have one dtype.
    """

    __slots__ = ("_fields", "_whole", "dtype", "shape")
    __hash__ = None  # type: ignore[assignment]
    has_fields = True

    def __init__(self, fields: dict[str, Any], dtype: Any, shape: tuple[int, ...], whole: Any = None) -> None:
        self._fields, self.dtype, self.shape, self._whole = fields, dtype, shape, whole

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    type_of = staticmethod(lambda x: np.ndarray)

    def array_class(self) -> type:
        """Return ``numpy.ndarray``."""
        return np.ndarray

    def as_array(self) -> Any:
        """Return NumPy's array.

        Raises:
            ConversionError: a field is traced.
        """
        made = np.empty(self.shape, self.dtype)
        for name, field in self._fields.items():
            if isinstance(field, Tracer) and not is_buffer(field):
                raise ConversionError(
                    f"an array with fields: this code takes no traced values in it, got the field {name!r}"
                    f"{user_line()}. {_REMEDY}"
                )
            made[name] = field._val if is_buffer(field) else field.as_array() if isinstance(field, Records) else field
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.as_array()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._fields[key]
        if _are_names(key):
            return Records({name: self._fields[name] for name in key}, self.dtype[key], self.shape)
        key = _plain(key)
        shape = np.broadcast_to(False, self.shape)[key].shape
        if not shape:
            return Record(self, key)
        if self._whole is not None:
            return _records_of_whole(
                self._whole[(*key, slice(None)) if type(key) is tuple else (key, slice(None))], self.dtype
            )
        return Records({name: field[self._key(name, key)] for name, field in self._fields.items()}, self.dtype, shape)

    def _key(self, name: str, key: Any) -> Any:
        """Return ``key`` for a field, which may have axes after those of the array."""
        return (*key, *(slice(None),) * len(self.dtype[name].shape)) if type(key) is tuple else key

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self._fields[key][...] = value
            return
        if _are_names(key):
            self[key][...] = value
            return
        key = _plain(key)
        for place, (name, field) in enumerate(self._fields.items()):
            if isinstance(value, np.ndarray) and value.dtype.names:
                part: Any = value[value.dtype.names[place]]
            elif isinstance(value, Records):
                part = list(value._fields.values())[place]
            elif type(value) is list:
                members = [row[place] for row in value]
                part = members if isinstance(field, Records) else fnp.stack(list(map(fnp.asarray, members)))
            else:
                part = value[place] if isinstance(value, (tuple, Record, np.void)) else value
            field[self._key(name, key)] = part

    def __getattr__(self, name: str) -> Any:
        """Look up a field, as in a ``recarray``; other attributes are those of NumPy's array."""
        if name in self._fields:
            return self._fields[name]
        if name not in _METHODS:
            raise AttributeError(f"an array with fields that takes traced values has no attribute {name!r}")
        return getattr(self.as_array(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__slots__:
            self[name] = value
        else:
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        return self.as_array() == _array_of(other)

    def __ne__(self, other: object) -> Any:
        return self.as_array() != _array_of(other)

    def __repr__(self) -> str:
        return f"Records({self._fields!r})"

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array itself as a ``recarray`` or ``ndarray``: both are of this class; or its numbers.

        Raises:
            ConversionError: the numbers have several dtypes, or another dtype is asked for.
        """
        kinds = [getattr(x, "numpy_class", x) for x in (*args, *kwargs.values())]
        kinds = [kind for kind in kinds if kind is not np.recarray and kind is not np.ndarray]
        if not kinds:
            return self
        to, whole = np.dtype(kinds[0]), self._whole
        if len(kinds) > 1 or whole is None or to.base != whole.dtype or to.shape not in ((), (len(self.dtype),)):
            raise ConversionError(
                f"an array with fields: its view must have the dtype of all fields, got {to} for {self.dtype}"
                f"{user_line()}. {_REMEDY}"
            )
        return whole if to.shape or not self.shape else whole.reshape(*self.shape[:-1], -1)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a copy with the fields of another dtype, which get the values of the fields in the same place."""
        made = records_of(np.zeros(self.shape, dtype))
        made[...] = self
        return made

    def tolist(self) -> Any:
        """Return nested lists of records, each a tuple."""
        return [part.tolist() for part in self] if self.shape else self[()].tolist()

    def copy(self, *args: Any) -> Any:
        """Return a copy."""
        if self._whole is not None:
            return _records_of_whole(self._whole.copy(), self.dtype)
        return Records({name: field.copy() for name, field in self._fields.items()}, self.dtype, self.shape)

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a function of NumPy whose first argument is this array."""
        if name in ("ndim", "shape", "size"):
            return getattr(self, name)
        return getattr(self, name)(*args[1:], **kwargs) if name in _FUNCTIONS else operation(*args, **kwargs)

    def reshape(self, *shape: Any) -> Any:
        """Return the records in another shape."""
        to = np.broadcast_to(False, self.shape).reshape(*shape).shape
        if self._whole is not None:
            return _records_of_whole(self._whole.reshape(*to, -1), self.dtype)
        fields = {name: field.reshape(to + field.shape[self.ndim :]) for name, field in self._fields.items()}
        return Records(fields, self.dtype, to)

    def ravel(self) -> Any:
        """Return the records along one axis."""
        return self.reshape(-1)

    def flatten(self) -> Any:
        """Return a copy with one axis."""
        return self[np.unravel_index(range(self.size), self.shape)]

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        """Return the positions in which the array would be sorted by the fields ``order``, with ties by the others."""
        names = [] if order is None else [order] if isinstance(order, str) else list(order)
        names += [name for name in self._fields if name not in names and not self.dtype[name].shape]
        return fnp.lexsort([key for name in reversed(names) for key in _keys(self._fields[name])], axis)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sort in place by the fields ``order``."""
        places: list[Any] = list(np.indices(self.shape, sparse=True))
        places[axis] = self.argsort(axis, kind, order)
        self[...] = self[tuple(places)]


def _keys(field: Any) -> list[Any]:
    """Return numbers by which ``lexsort`` sorts the elements of a field: the last of them decide first."""
    if isinstance(field, Records):
        return [key for name in reversed(field.dtype.names) for key in _keys(field[name])]
    if isinstance(field, Tracer):
        return [field]
    return [np.unique(field, return_inverse=True)[1].reshape(field.shape)]  # such as texts


#: Functions of NumPy whose methods take traced values.
_FUNCTIONS = frozenset(("argsort", "copy", "ravel", "reshape"))

#: Methods of NumPy's array that change nothing.
_METHODS = frozenset(("item", "tobytes"))


class Record(Proxy):
    """One record of an array with fields; writes to it write to the array.

    Args:
        owner: the array.
        key: the index of the record.
    """

    __slots__ = ("_key", "_owner")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, owner: Records, key: Any) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_key", key)

    dtype = property(lambda self: self._owner.dtype)
    shape = ()
    ndim = 0

    def as_array(self) -> Any:
        """Return NumPy's record."""
        return self._owner.as_array()[self._key]

    def _name(self, name: Any) -> Any:
        return name if isinstance(name, str) else self.dtype.names[name]

    def __getitem__(self, name: Any) -> Any:
        name = self._name(name)
        return self._owner[name][self._owner._key(name, self._key)]

    def __setitem__(self, name: Any, value: Any) -> None:
        name = self._name(name)
        self._owner[name][self._owner._key(name, self._key)] = value

    def __getattr__(self, name: str) -> Any:
        if name not in self._owner._fields:
            raise AttributeError(f"a record has no attribute {name!r}")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __len__(self) -> int:
        return len(self.dtype.names)

    def __eq__(self, other: object) -> Any:
        return self.as_array() == _array_of(other)

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self.dtype.names)

    def item(self) -> tuple[Any, ...]:
        """Return the members as a tuple."""
        return tuple([part.item() if isinstance(part, Record) else part for part in self])

    tolist = item


def _array_of(x: Any) -> Any:
    return x.as_array() if isinstance(x, (Records, Record)) else x


def _are_names(key: Any) -> bool:
    return type(key) is list and bool(key) and all(isinstance(name, str) for name in key)


def _plain(key: Any) -> Any:
    """Return a key that all fields take, also those without numbers: without traced indices and masks."""
    if type(key) is tuple:
        return tuple(map(_plain, key))
    return np.asarray(concrete(unbatched_if_equal(key), "x[key]")) if isinstance(key, Tracer) else key


def records_of(x: Any) -> Records:
    """Return an array with fields, to which traced values can be written, with the elements of ``x``."""
    kinds = {x.dtype[name] for name in x.dtype.names}
    (kind, *others) = kinds
    if not others and kind.kind in "biufc" and x.dtype.itemsize == kind.itemsize * len(x.dtype):
        return _records_of_whole(make_buffer(np.array(x).view((kind, len(x.dtype)))), x.dtype)
    fields = {}
    for name in x.dtype.names:
        part = x[name]
        of_numbers = part.dtype.kind in "biufc"
        fields[name] = records_of(part) if part.dtype.names else make_buffer(np.array(part)) if of_numbers else part
    return Records(fields, x.dtype, x.shape)


def _records_of_whole(whole: Any, dtype: Any) -> Records:
    """Return the array with fields that are the parts of ``whole`` along its last axis."""
    fields = {name: whole[..., i] for i, name in enumerate(dtype.names)}
    return Records(fields, dtype, whole.shape[:-1], whole)


def records_from_rows(rows: Any, dtype: Any) -> Records:
    """Return the array with fields whose records are the tuples ``rows``, a tuple or a list of tuples."""
    dtype = np.dtype(dtype)
    if isinstance(rows, tuple):
        made = records_of(np.zeros((), dtype))
        made[()] = rows
        return made
    made = records_of(np.zeros(len(rows), dtype))
    for i, row in enumerate(rows):
        made[i : i + 1] = [tuple(row)]
    return made


def records_from_arrays(
    arrays: Sequence[Any], dtype: Any = None, shape: Any = None, formats: Any = None, names: Any = None, **options: Any
) -> Records:
    """Return ``numpy.rec.fromarrays``."""
    arrays = list(map(fnp.asarray, arrays))
    likes = [np.zeros(x.shape, x.dtype) for x in arrays]
    made = records_of(np.asarray(np.rec.fromarrays(likes, dtype, shape, formats, names, **options)))
    for name, x in zip(made.dtype.names, arrays, strict=True):
        made[name] = x
    return made
