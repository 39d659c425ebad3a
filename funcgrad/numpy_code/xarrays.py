"""Objects of xarray in rebuilt code: their methods take traced values, and so do the methods of their results.

A DataArray gets a class derived from xarray's, with xarray's methods; so do windows, groups and weights. Its numbers
are a ``TableArray``, to which traced values can be written. Methods that give arrays to NumPy, SciPy or pandas are
rebuilt as other code is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import READ_ONLY, Tracer
from funcgrad.numpy.tables import containers
from funcgrad.numpy.tables.containers import TableArray, unwrap_from_table, wrap_for_table
from funcgrad.numpy_code.libraries import REBUILT_METHODS
from funcgrad.writable import COPY_ON_WRITE, is_buffer, make_buffer

__all__ = ["MISSING_OVERRIDES", "accept_traced", "accepted", "adopt", "constructor", "has_adopted", "of_arrays"]

_TABLES = ("DataArray", "Dataset", "Variable")
#: Ends of the names of the classes whose objects are adopted.
_ADOPTED = (*_TABLES, "Coarsen", "GroupBy", "Resample", "Rolling", "Weighted")
#: Methods that Python or xarray calls, in addition to the public ones.
_SPECIAL = ("__array_ufunc__", "__call__", "__getitem__", "__setitem__", "_to_temp_dataset", "_weighted_quantile")
#: Attribute of a derived class that holds xarray's class.
_ORIGINAL = "⟨xarray⟩"


def adopt(x: Any, buffer_of: Callable[[Any], Any] | None = None) -> Any:
    """Give an object of xarray that nothing else holds the class whose methods take traced values, and return it.

    Args:
        x: the object, or a tuple of objects; any other value is returned unchanged.
        buffer_of: returns the buffer for an array of numbers; by default one that copies the array before a write.
    """
    if type(x) is tuple:
        return tuple([adopt(part, buffer_of) for part in x])
    kind: Any = type(x)
    name = kind.__name__
    is_other = not kind.__module__.startswith("xarray.") or not name.endswith(_ADOPTED) or _ORIGINAL in vars(kind)
    if is_other or name == "IndexVariable":  # labels are constants
        return x
    if name in _TABLES:
        containers.register_loaded()
        is_dataset = name == "Dataset"
        for variable in [x._variables[key] for key in x.data_vars] if is_dataset else [getattr(x, "variable", x)]:
            data = variable._data
            if type(data) is np.ndarray and data.dtype.kind in "fc":
                variable._data = TableArray((buffer_of or _copied_before_write)(data))
    x.__class__ = _derived_class(kind)
    return x


def accept_traced(table: Any, translate: Callable[[Any], tuple[Any, bool]]) -> Any:
    """Return a table of the program as a shallow copy whose methods take traced values."""
    if _ORIGINAL in vars(type(table)):
        return table
    return adopt(table.copy(deep=False), lambda data: _read_only(translate(data)[0]))


def _copied_before_write(data: Any) -> Any:
    made = make_buffer(data)
    made.link = COPY_ON_WRITE
    return made


def _read_only(data: Any) -> Any:
    """Return a buffer as it is, an array as a read-only buffer: other holders would not see what is written to it."""
    if is_buffer(data):
        return data
    made = _copied_before_write(data)
    made.alias = READ_ONLY
    return made


def constructor(cls: Any) -> Callable[..., Any]:
    """Return a function that constructs objects of a class of xarray and also accepts traced arrays."""

    @wraps(cls, updated=())
    def made(*args: Any, **kwargs: Any) -> Any:
        containers.register_loaded()
        given = [*_arrays((args, kwargs))]

        def buffer_of(data: Any) -> Any:
            is_shared = any(np.may_share_memory(data, x) for x in given)
            return _read_only(data) if is_shared else _copied_before_write(data)

        return adopt(cls(*accepted(args), **accepted(kwargs)), buffer_of)

    return made


def _arrays(x: Any) -> Iterator[Any]:
    """Yield the arrays in nested tuples, lists and dictionaries."""
    if type(x) in (tuple, list, dict):
        for part in x.values() if type(x) is dict else x:
            yield from _arrays(part)
    elif type(x) is np.ndarray:
        yield x


def accepted(x: Any) -> Any:
    """Return an argument of xarray with a ``TableArray`` for each traced value, also in tuples and dictionaries."""
    if type(x) is dict:
        return {name: accepted(part) for name, part in x.items()}
    if type(x) is tuple:
        return tuple(map(accepted, x))
    if is_buffer(x) and x.dtype.kind not in "fc":  # constants, such as labels
        return np.asarray(x)
    return wrap_for_table(x)


def of_arrays(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``func`` for use by xarray: it gets the arrays in tables, and its traced results go into tables."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        found = func(*map(unwrap_from_table, args), **kwargs)
        return tuple(map(wrap_for_table, found)) if type(found) is tuple else wrap_for_table(found)

    return apply


@cache
def _derived_class(cls: Any) -> Any:
    """Return a class derived from a class of xarray whose methods take traced values and adopt their results."""
    members: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__, _ORIGINAL: cls}
    members["type_of"] = staticmethod(lambda _: cls)
    for name in dir(cls):
        member = getattr(cls, name)
        if type(member) is FunctionType and (name in _SPECIAL or not name.startswith("_")):
            members[name] = _method(member)
    if cls.__name__ in ("DataArray", "Variable"):
        values, data = property(_values, _set_data), property(cls.data.fget, _set_data)
        members |= {"values": values, "data": data, "to_numpy": _values}
    if cls.__name__ in ("DataArray", "Dataset"):
        members["to_dataframe"] = _to_dataframe(cls.to_dataframe)
    made = type(cls)(cls.__name__, (cls,), members)
    if cls in containers.PYTREES:
        flatten, unflatten = containers.PYTREES[cls]
        tree.register_pytree_node(made, lambda x: flatten(_as_original(x)), unflatten)
    return made


def has_adopted() -> bool:
    """Whether any object of xarray was adopted."""
    return _derived_class.cache_info().currsize > 0


def _original_class(x: Any) -> Any:
    return vars(type(x))[_ORIGINAL]


def _as_original(table: Any) -> Any:
    """Return a table with the same numbers, of xarray's class."""
    made = table.copy(deep=False)
    made.__class__ = _original_class(table)
    return made


def _method(member: FunctionType) -> Any:
    """Return a method of xarray that takes traced values and adopts its results."""
    name = member.__name__
    run = _rebuilt if name in REBUILT_METHODS else lambda method: method

    @wraps(member)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "reduce" and args:
            args = (of_arrays(args[0]), *args[1:])
        if name == "__setitem__":
            args = (args[0], _labelled(args[1]))
        return adopt(run(member)(self, *accepted(args), **accepted(kwargs)))

    return call


def _to_dataframe(member: FunctionType) -> Any:
    """Return ``to_dataframe``: traced numbers become columns in the frame that xarray makes of zeros in their place."""

    @wraps(member)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_dataset = hasattr(self, "data_vars")
        parts = dict(self.data_vars) if is_dataset else {kwargs.get("name", *args[:1]) or self.name: self}
        traced = {name: part for name, part in parts.items() if isinstance(part.variable._data, TableArray)}
        zeros = {name: (part.dims, np.zeros(part.shape)) for name, part in traced.items()}
        shell = _as_original(self)
        if traced:
            shell = shell.assign(zeros) if is_dataset else shell.copy(data=zeros.popitem()[1][1])
        frames = import_module("funcgrad.numpy.tables.frames")
        found = frames.accept_traced(member(shell, *args, **kwargs))
        dims = found.index.names if self.sizes.keys() >= set(found.index.names) else self.dims
        for name, part in traced.items():
            along = part.variable.set_dims({dim: self.sizes[dim] for dim in dims})
            found[name] = frames.as_table(unwrap_from_table(along._data).reshape(-1))
        return found

    return call


def _labelled(x: Any) -> Any:
    """Return a traced number as a DataArray without axes, which a Dataset takes, too; return anything else."""
    is_number = issubclass(type(x), Tracer) and not x.shape
    return import_module("xarray").DataArray(wrap_for_table(x)) if is_number else x


#: Function that rebuilds a method of xarray, which ``rebuilding`` provides.
REBUILDER: list[Callable[[FunctionType], Any]] = []


@cache
def _rebuilt(member: FunctionType) -> Any:
    return REBUILDER[0](member)


def _values(self: Any) -> Any:
    """Return the numbers, traced or not; what is written to them is written to the table."""
    data = getattr(self, "variable", self)._data
    return unwrap_from_table(data) if isinstance(data, TableArray) else _original_class(self).values.fget(self)


def _set_data(self: Any, data: Any) -> None:
    """Replace the numbers of a table."""
    _original_class(self).data.fset(self, accepted(data))


# ---- module xarray.core.missing --------------------------------------------------------------------------------------


def fill_forward(array: Any, n: Any = None, axis: int = -1) -> Any:
    """Replace each missing number by the last one before it, at most ``n`` places away, as bottleneck's ``push``.

    Example:
        >>> fill_forward(np.array([np.nan, 1.0, np.nan, np.nan]), n=1)
        array([nan,  1.,  1., nan])
    """
    rows = fnp.moveaxis(array, axis, -1)
    places = np.arange(rows.shape[-1])
    last = fnp.maximum.accumulate(fnp.where(fnp.isnan(rows), 0, places), axis=-1)
    found = fnp.take_along_axis(rows, last, axis=-1)
    if n is not None:
        found = fnp.where(places - last <= n, found, np.nan)
    return fnp.moveaxis(found, -1, axis)


def _with_flat_places(interp1d: Callable[..., Any]) -> Callable[..., Any]:
    """Return xarray's ``_interp1d``, which reads the memory of results with several axes, for places along one axis."""

    def call(var: Any, x: Any, new_x: Any, func: Any, kwargs: Any) -> Any:
        (places,) = new_x
        if places.ndim < 2:
            return interp1d(var, x, new_x, func, kwargs)
        found = interp1d(var, x, [places.stack({"⟨places⟩": places.dims})], func, kwargs)
        return found.reshape(*found.shape[:-1], *places.shape)

    return call


#: Replacements for functions of the module; ``_localize`` drops points that are far from the places, by their numbers.
MISSING_OVERRIDES: dict[str, Callable[[Any], Any]] = {
    "push": lambda _: fill_forward,
    "_interp1d": _with_flat_places,
    "_localize": lambda _: lambda obj, places: (obj, places),
}
