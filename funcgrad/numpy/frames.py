"""Columns of pandas that hold traced values, and its tables as containers. Imported when pandas has been."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import ReadOnlyError
from funcgrad.numpy.callers import user_line
from funcgrad.numpy.tables import BINARY, UNARY, Held, Labels, fits, taken_out

pd: Any = import_module("pandas")
__all__ = ["TracedColumn", "TracedDtype", "join", "of_traced"]

#: Where a table says what stands in the place of its numbers, which is none of them.
_LEAF = "⟨leaf⟩"
#: What a reduction of pandas is called in NumPy, and which arguments it passes on.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name, **kwargs: getattr(fnp, name)(x) for name in ("sum", "mean", "prod", "min", "max")},
    "median": lambda x, **kwargs: fnp.median(x),
    "std": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof),
    "var": lambda x, ddof=1, **kwargs: fnp.var(x, ddof=ddof),
    "sem": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof) / np.sqrt(len(x)),
}


class TracedDtype(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    """The type of a column of traced numbers."""

    name, kind, type = "traced", "f", np.float64
    na_value = np.nan
    _is_numeric = True

    @classmethod
    def construct_array_type(cls) -> Any:
        """The class of such columns."""
        return TracedColumn


class TracedColumn(pd.api.extensions.ExtensionArray):  # type: ignore[misc]
    """A column of traced numbers, as pandas asks for: see ``pandas.api.extensions.ExtensionArray``.

    Args:
        value: a traced array with one axis.
    """

    __array_priority__ = 2000

    def __init__(self, value: Any) -> None:
        self.held = Held(taken_out(value))

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
        return cls(fnp.stack(list(scalars)) if len(scalars) else np.zeros(0))

    @classmethod
    def _concat_same_type(cls, parts: Any) -> Any:
        return cls(fnp.concatenate([part.held.value for part in parts]))

    dtype = property(lambda self: TracedDtype())
    nbytes = property(lambda self: self.held.nbytes)

    def __len__(self) -> int:
        return len(self.held)

    def __getattr__(self, name: str) -> Any:
        """Methods of arrays, for programs that ask a series for its values."""
        if name.startswith("_") or name == "held":
            raise AttributeError(name)
        return getattr(self.held.value, name)

    def __getitem__(self, key: Any) -> Any:
        found = self.held.value[pd.api.indexers.check_array_indexer(self, key)]
        return TracedColumn(found) if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ReadOnlyError(
            f"s[i] = y: a column of traced numbers cannot be written to, got {describe(self.held.value)}{user_line()}. "
            "Write to a copy of its values: x = s.to_numpy().copy()."
        )

    def isna(self) -> Any:
        """Where numbers are missing: nowhere."""
        return np.zeros(len(self), bool)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Any:
        """The numbers at some places; at -1 a number to fill in."""
        indices = np.asarray(indices)
        found = self.held.value[indices]
        if allow_fill and (indices < 0).any():
            found = fnp.where(indices < 0, np.nan if fill_value is None else fill_value, found)
        return TracedColumn(found)

    def copy(self) -> Any:
        """Another column of the same numbers."""
        return TracedColumn(self.held)

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **kwargs: Any) -> Any:
        if name not in _REDUCTIONS:
            raise TypeError(f"a column of traced numbers has no reduction {name!r}")
        found = _REDUCTIONS[name](self.held.value, **kwargs)
        return TracedColumn(found[None]) if keepdims else found

    def _accumulate(self, name: str, *, skipna: bool = True, **kwargs: Any) -> Any:
        return TracedColumn(getattr(fnp, name)(self.held.value))

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> Any:
        """The traced array."""
        return self.held.value

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The column in another precision; as objects its numbers, each traced."""
        if isinstance(dtype, TracedDtype):
            return self.copy() if copy else self
        if np.dtype(dtype) == object:
            found = np.empty(len(self), object)
            found[:] = list(self.held.value)
            return found
        return TracedColumn(self.held.value.astype(dtype)) if np.dtype(dtype).kind in "fc" else np.asarray(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.held.value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(_is_labelled, inputs)):
            return NotImplemented
        return _column(getattr(ufunc, method)(*map(_values, inputs), **kwargs))


def _is_labelled(x: Any) -> bool:
    return isinstance(x, (pd.Series, pd.DataFrame, pd.Index))


def _values(x: Any) -> Any:
    return x.held.value if isinstance(x, TracedColumn) else taken_out(x)


def _column(found: Any) -> Any:
    return TracedColumn(found) if isinstance(found, Tracer) and fnp.ndim(found) and found.dtype.kind in "fc" else found


def _binary(name: str, reflected: bool) -> Callable[..., Any]:
    apply = getattr(operator, name + "_" if name in ("and", "or") else name)

    def run(self: Any, other: Any) -> Any:
        if _is_labelled(other):
            return NotImplemented
        pair = (_values(other), self.held.value) if reflected else (self.held.value, _values(other))
        return _column(apply(*pair))

    return run


def _unary(name: str) -> Callable[..., Any]:
    apply = getattr(operator, name)
    return lambda self: _column(apply(self.held.value))


for _name in BINARY.split():
    setattr(TracedColumn, f"__{_name}__", _binary(_name, reflected=False))
    setattr(TracedColumn, f"__r{_name}__", _binary(_name, reflected=True))
for _name in UNARY.split():
    setattr(TracedColumn, f"__{_name}__", _unary(_name))


# ---- containers -----------------------------------------------------------------------------------------------


def _numbers(series: Any) -> Any:
    """What is the leaf of a series."""
    if _LEAF in series.attrs:
        return series.attrs[_LEAF]
    return series.array.held.value if isinstance(series.array, TracedColumn) else series.to_numpy()


def _series(leaf: Any, index: Any, name: Any) -> Any:
    """The series with this leaf."""
    if isinstance(leaf, Tracer) or hasattr(leaf, "ndim"):
        return pd.Series(TracedColumn(leaf) if isinstance(leaf, Tracer) else np.asarray(leaf), index, name=name)
    made = pd.Series(np.zeros(len(index)), index, name=name)
    made.attrs[_LEAF] = leaf
    return made


def _of_series(series: Any) -> tuple[Any, Any]:
    return (_numbers(series),), Labels(pd.Series(np.zeros(len(series)), series.index, name=series.name))


def _to_series(labels: Labels, leaves: Any) -> Any:
    (leaf,) = leaves
    shell = labels.template
    return _series(leaf, shell.index, shell.name) if fits(leaf, shell.shape) else leaf


def _is_of_numbers(series: Any) -> bool:
    return isinstance(series.array, TracedColumn) or getattr(series.dtype, "kind", "O") in "fc"


def _of_frame(frame: Any) -> tuple[Any, Any]:
    places = [i for i in range(frame.shape[1]) if _is_of_numbers(frame.iloc[:, i])]
    shell = frame.copy()
    for i in places:
        shell.isetitem(i, np.zeros(len(frame)))
    shell.attrs = {}
    found = frame.attrs[_LEAF] if _LEAF in frame.attrs else [_numbers(frame.iloc[:, i]) for i in places]
    return found, (tuple(places), Labels(shell))


def _to_frame(static: Any, leaves: Any) -> Any:
    places, labels = static
    leaves, made = list(leaves), labels.template.copy()
    if not all(fits(leaf, (len(made),)) for leaf in leaves):
        return dict(zip([made.columns[i] for i in places], leaves, strict=True))
    if any(not hasattr(leaf, "ndim") for leaf in leaves):
        made.attrs[_LEAF] = leaves
        return made
    for i, leaf in zip(places, leaves, strict=True):
        made.isetitem(i, _series(leaf, made.index, None).array)
    return made


def join() -> None:
    """Let tables of pandas be containers."""
    tree.register_pytree_node(pd.Series, _of_series, _to_series)
    tree.register_pytree_node(pd.DataFrame, _of_frame, _to_frame)


def of_traced(x: Any) -> Any:
    """A traced array as what pandas makes a column, or a table, of."""
    return TracedColumn(x) if x.ndim == 1 else pd.DataFrame({i: TracedColumn(x[:, i]) for i in range(x.shape[1])})
