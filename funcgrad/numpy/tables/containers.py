"""Support of tables of pandas and xarray as arguments of transforms: containers of arrays with fixed labels.

A function gets a table of the same kind, with traced values as arrays of a class that the library accepts: an
``ExtensionArray`` in a column of pandas, a duck array in a variable of xarray. Results are tables with these labels.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.writable import Proxy, is_buffer


class TableArray(Proxy):
    """Traced array inside a table; results computed with it are of this class too.

    Args:
        value: the traced array.
    """

    __slots__ = ("_val",)

    def __init__(self, value: Any) -> None:
        self._val = value

    def as_array(self) -> Any:
        """Return the traced array."""
        return self._val

    # Attributes of xarray's protocol are defined here: since Python 3.12 ``isinstance`` does not call ``__getattr__``.
    shape = property(lambda self: self._val.shape)
    dtype = property(lambda self: self._val.dtype)
    real = property(lambda self: wrap_for_table(self._val.real))
    imag = property(lambda self: wrap_for_table(self._val.imag))
    ndim = property(lambda self: self._val.ndim)
    size = property(lambda self: self._val.size)
    nbytes = property(lambda self: self._val.size * self._val.dtype.itemsize)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_val":  # a protocol that this class does not implement
            raise AttributeError(name)
        found = getattr(self._val, name)
        if not callable(found) or name in ("item", "tolist"):
            return found
        return lambda *args, **kwargs: _wrap_like(self, found(*map(unwrap_from_table, args), **kwargs))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.get("out")
        if outs is not None or any(_is_table(x) for x in inputs):
            return NotImplemented
        return _wrap_like(self, without_missing(getattr(ufunc, method), unwrap_from_table(inputs), kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = func(*unwrap_from_table(args), **unwrap_from_table(kwargs))
        return _wrap_like(self, found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = isinstance(self._val, Tracer) and self._val.dtype.kind in "bui"  # have no derivative: only labels do
        return np.asarray(concrete(self._val, "table.values") if whole else self._val, dtype)

    def __getitem__(self, key: Any) -> Any:
        return _wrap_like(self, self._val[unwrap_from_table(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._val[unwrap_from_table(key)] = unwrap_from_table(value)

    def __copy__(self) -> TableArray:
        return TableArray(self._val)

    def __deepcopy__(self, memo: Any) -> TableArray:
        return TableArray(self._val.copy())

    def __len__(self) -> int:
        return len(self._val)

    def __bool__(self) -> bool:
        return bool(self._val)

    def __float__(self) -> float:
        return float(self._val)

    def __repr__(self) -> str:
        return repr(self._val)


def unwrap_from_table(x: Any) -> Any:
    """Replace each ``TableArray`` in ``x`` by its traced array, also in lists, tuples and dictionaries."""
    if type(x) in (list, tuple):
        return type(x)(map(unwrap_from_table, x))
    if type(x) is dict:
        return {name: unwrap_from_table(part) for name, part in x.items()}
    return x._val if isinstance(x, TableArray) else x


def _is_table(x: Any) -> bool:
    return backend.is_table_class(type(x))


def wrap_for_table(x: Any) -> Any:
    """Wrap ``x`` for a table: a traced array or number becomes ``TableArray``, positions that examples share plain."""
    if isinstance(x, Tracer) and x.dtype.kind in "iu":
        x = unbatched_if_equal(x)
    return TableArray(x) if isinstance(x, Tracer) else x


def _wrap_like(given: Any, x: Any) -> Any:
    """Wrap ``x``, computed from ``given``, for a table; floating results of a constant ``TableArray`` stay one."""
    if type(x) in (list, tuple):
        return type(x)([_wrap_like(given, part) for part in x])
    is_number = isinstance(x, np.ndarray) and x.dtype.kind in "fc"
    given = unwrap_from_table(given)
    return TableArray(x) if is_number and (is_buffer(given) or not isinstance(given, Tracer)) else wrap_for_table(x)


def without_missing(apply: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute ``apply(*args)``; missing numbers, which tables leave out, get no derivative."""
    found = apply(*args, **kwargs)
    if not isinstance(found, Tracer) or found.dtype.kind not in "fc":
        return found
    fnp: Any = import_module("funcgrad.numpy")
    missing = fnp.isnan(found)
    known = concrete_or_none(missing)
    if known is not None and not known.any():
        return found
    places = [missing if fnp.shape(x) == found.shape else fnp.isnan(x) for x in args]
    args = [fnp.where(place, 1.0, x) for place, x in zip(places, args, strict=True)]
    return fnp.where(missing, np.nan, apply(*args, **kwargs))


BINARY = "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne and or xor"
UNARY = "neg pos abs invert"


def _binary(name: str, reflected: bool) -> Callable[..., Any]:
    apply = getattr(operator, name + "_" if name in ("and", "or") else name)

    def run(table: TableArray, other: Any) -> Any:
        if _is_table(other):
            return NotImplemented
        first, second = (other, table) if reflected else (table, other)
        return _wrap_like(first, without_missing(apply, unwrap_from_table((first, second)), {}))

    return run


def _unary(name: str) -> Callable[..., Any]:
    apply = getattr(operator, name)
    return lambda a: _wrap_like(a, apply(unwrap_from_table(a)))


for _name in BINARY.split():
    setattr(TableArray, f"__{_name}__", _binary(_name, reflected=False))
    setattr(TableArray, f"__r{_name}__", _binary(_name, reflected=True))
for _name in UNARY.split():
    setattr(TableArray, f"__{_name}__", _unary(_name))


class Labels:
    """Labels of a table without its numbers; two are equal if all labels are equal.

    Args:
        template: a table with these labels.
    """

    def __init__(self, template: Any) -> None:
        self.template = template

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        mine, theirs = self.template, other.template
        return type(mine) is type(theirs) and bool(
            mine.identical(theirs) if hasattr(mine, "identical") else mine.equals(theirs)
        )

    def __hash__(self) -> int:
        return hash(type(self.template))


def fits_shape(leaf: Any, shape: tuple[int, ...]) -> bool:
    """Whether a leaf can replace an array of this shape; objects without ``ndim``, from pytree code, always can."""
    return not hasattr(leaf, "ndim") or tuple(leaf.shape) == shape


def register_loaded() -> bool:
    """Register the tables of imported libraries as containers; return whether any were registered now."""
    found = False
    for name, join in LIBRARIES.items():
        library = sys.modules.get(name)
        last = "Series" if name == "pandas" else "Dataset"  # defined when the library is completely imported
        if name not in REGISTERED and hasattr(library, last):
            REGISTERED.add(name)
            join(library)
            found = True
    return found


def unlabel_number(out: Any) -> Any:
    """Return the number in a result with labels but without axes; return any other result as it is."""
    is_labelled = isinstance(out, TableArray) or (
        type(out).__module__.startswith("xarray.") and not getattr(out, "ndim", 1)
    )
    return tree.leaves(out)[0] if is_labelled and tree.is_container(type(out)) else out


def holds_tables(spec: tree.PyTreeSpec) -> bool:
    """Whether a structure contains tables."""
    return bool(REGISTERED) and f"{Labels.__module__}.{Labels.__name__}" in str(spec)


def have_same_labels(*trees: tuple[tree.PyTreeSpec, Sequence[Any]]) -> bool:
    """Whether structures, given with their leaves, differ only in that some of their tables hold traced values."""
    if not all(holds_tables(spec) for spec, _ in trees):
        return False
    plain = [tree.unflatten(spec, [np.zeros(backend.shape_of(x)) for x in leaves]) for spec, leaves in trees]
    return len({tree.structure(one) for one in plain}) == 1


class _Nested:
    """Leaf that stands for a whole tree. Its shape is that of no table, so that none keeps its labels for it."""

    ndim, shape = 1, (None,)

    def __init__(self, whole: Any) -> None:
        self.whole = whole


def unflatten_nested(spec: tree.PyTreeSpec, leaves: list[Any]) -> Any:
    """Return the tree of ``spec`` with these leaves, which may be trees; they replace the tables that they are in.

    A table with several arrays becomes a dictionary.
    """
    if not (any(tree.is_container(type(leaf)) for leaf in leaves) and holds_tables(spec)):
        return tree.unflatten(spec, leaves)
    return tree.map(lambda leaf: leaf.whole, tree.unflatten(spec, map(_Nested, leaves)))


#: Methods of pandas' classes that construct tables.
CONSTRUCTING_METHODS = frozenset(("from_dict", "from_records"))


def _array_in(x: Any) -> Any:
    """Return the array of an object that represents an array of a program's class; any other value unchanged."""
    return x.as_array() if issubclass(type(x), Proxy) and hasattr(type(x), "numpy_class") else x


def table_constructor(cls: Any) -> Callable[..., Any]:
    """Return a function that constructs tables of ``cls`` and also accepts traced arrays; it has ``from_dict``.

    Args:
        cls: ``Series`` or ``DataFrame`` of pandas.
    """

    def inside(x: Any) -> Any:
        if isinstance(x, dict):
            return {name: inside(part) for name, part in x.items()}
        if type(x) is list:
            column = import_module("funcgrad.numpy.tables.columns").column_of_rows(x)
            return x if column is None else column
        x = _array_in(x)
        if is_buffer(x):
            return np.array(x._val)
        if not issubclass(type(x), Tracer) or not x.ndim:
            return x
        return import_module("funcgrad.numpy.tables.frames").as_table(x)

    def made(*args: Any, **kwargs: Any) -> Any:
        register_loaded()
        frames = import_module("funcgrad.numpy.tables.frames")
        args, kwargs = tuple(map(_array_in, args)), {name: _array_in(x) for name, x in kwargs.items()}
        data: Any = args[0] if args else kwargs.get("data")
        if type(data) is list and cls.__name__ == "DataFrame":
            index = args[1] if len(args) > 1 else kwargs.get("index")
            rows = frames.matrix_of_rows(data)
            data = frames.frame_of_series(data, index) if rows is None else rows
            args = (data, *args[1:])
            kwargs.pop("data", None)
        if issubclass(type(data), Tracer) and not is_buffer(data) and data.ndim != 1:
            return frames.table_of_array(cls, *args, **kwargs)
        kind = frames.TracedSeries if cls.__name__ == "Series" else cls
        found = kind(*map(inside, args), **{name: inside(x) for name, x in kwargs.items()})
        return frames.accept_traced(frames.with_traced_columns(found))

    return _with_constructing_methods(made, cls)


def _with_constructing_methods(made: Any, cls: Any) -> Callable[..., Any]:
    """Give ``made`` the methods of a class of pandas that construct tables."""
    if hasattr(cls, "from_dict"):
        made.from_dict = partial(cls.from_dict.__func__, made)  # which calls ``made`` in place of the class
        made.from_records = lambda *args, **kwargs: made(cls.from_records(*args, **kwargs))
    found: Callable[..., Any] = made
    return found


#: By class of xarray, the functions that flatten and unflatten a table.
PYTREES: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = {}
#: Names of libraries whose tables are registered as containers.
REGISTERED: set[str] = set()
tree.register_pytree_node(TableArray, lambda x: ((x._val,), None), lambda _, leaves: wrap_for_table(*leaves))


# ---- xarray ---------------------------------------------------------------------------------------------------------


def _register_xarray(xr: Any) -> None:
    def parts(array: Any) -> tuple[Any, Any]:
        variable = getattr(array, "variable", array)
        data, dims = variable._data, variable.dims
        shape = tuple(getattr(data, "shape", None) or [1] * len(dims)) if dims else ()
        return (unwrap_from_table(data),), Labels(array.copy(deep=False, data=np.broadcast_to(0.0, shape)))

    def whole(labels: Labels, leaves: Any) -> Any:
        (leaf,) = leaves
        shell = labels.template
        if not fits_shape(leaf, shell.shape):
            return leaf
        made = shell.copy(deep=False)
        getattr(made, "variable", made)._data = wrap_for_table(leaf)
        return made

    def variables(table: Any) -> tuple[Any, Any]:
        names = [name for name, array in table.data_vars.items() if _is_numeric(array.variable._data)]
        shell = table.assign({name: table[name].copy(data=np.broadcast_to(0.0, table[name].shape)) for name in names})
        return [unwrap_from_table(table[name].variable._data) for name in names], (tuple(names), Labels(shell))

    def dataset(static: Any, leaves: Any) -> Any:
        names, labels = static
        pairs = list(zip(names, leaves, strict=True))
        if not all(fits_shape(leaf, labels.template[name].shape) for name, leaf in pairs):
            return dict(pairs)
        made = labels.template.copy()
        for name, leaf in pairs:
            made._variables[name]._data = wrap_for_table(leaf)
        return made

    PYTREES.update({xr.DataArray: (parts, whole), xr.Variable: (parts, whole), xr.Dataset: (variables, dataset)})
    for cls, functions in PYTREES.items():
        tree.register_pytree_node(cls, *functions)


def _is_numeric(x: Any) -> bool:
    return not hasattr(x, "dtype") or getattr(x.dtype, "kind", "O") in "fc"


#: Functions that register the tables of a library as containers.
LIBRARIES: dict[str, Callable[[Any], None]] = {
    "pandas": lambda pd: import_module("funcgrad.numpy.tables.frames").register_pytrees(),
    "xarray": _register_xarray,
}
