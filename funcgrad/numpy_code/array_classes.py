"""A program's own classes derived from ``numpy.ndarray``, with traced values in their arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import ConversionError
from funcgrad.numpy.hints import user_line
from funcgrad.numpy.ufuncs import UFUNCS
from funcgrad.shared_state import pending_refusals
from funcgrad.writable import Proxy

#: Members that Python adds to a class, which the class itself gets anew.
_OF_PYTHON = frozenset(("__dict__", "__weakref__", "__module__", "__qualname__"))


class _ArrayClass(type):
    """Metaclass of the classes that replace a program's classes derived from ndarray."""

    numpy_class: Any

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, cls.numpy_class)


class ArrayObject(Proxy, metaclass=_ArrayClass):
    """Array of a program's class: the base of classes with the methods of that class, rebuilt."""

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 2000.0
    numpy_class: Any = ()
    #: Whether the class defines operators of its own.
    has_own_arithmetic = False
    _val: Any

    def __new__(cls, shape: Any, dtype: Any = float, buffer: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return a new array as ``numpy.ndarray(shape, dtype, buffer)`` does."""
        if (args or kwargs) and buffer is not None:
            raise ConversionError(
                f"{cls.__name__}: traced values are read from the beginning of a buffer, in C order, got offset or "
                f"strides{user_line()}. Take numpy.asarray(x).view({cls.__name__})."
            )
        if buffer is None:
            return cls.of_array(fnp.empty(shape, dtype), None)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return cls.of_array(buffer.reshape(-1)[: int(np.prod(shape))].reshape(shape), None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, as ``numpy.ndarray`` does: ``__new__`` takes the arguments."""

    @classmethod
    def of_array(cls, value: Any, template: Any) -> Any:
        """Return an array of this class that was made from ``template``, with the memory of ``value``."""
        made = object.__new__(cls)
        vars(made)["_val"] = value
        made.__array_finalize__(template)
        return made

    def __array_finalize__(self, obj: Any) -> None:
        """Do nothing; classes set their attributes here."""

    def array_class(self) -> type:
        """Return the program's class."""
        found: type = type(self).numpy_class
        return found

    def as_array(self) -> Any:
        """Return the array."""
        return self._val

    def as_operand(self) -> Any:
        """Return the array for functions of NumPy; refuse if the class has arithmetic of its own.

        Raises:
            ConversionError: the class defines operators.
        """
        if type(self).has_own_arithmetic:
            name = type(self).__name__
            raise ConversionError(
                f"{name}: this function of NumPy would lose that the array is of this class, which has arithmetic of "
                f"its own, got {describe(self._val)}{user_line()}. Take the array numpy.asarray(x)."
            )
        return self._val

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the result of a ufunc as an array of this class."""
        own: Any = UFUNCS.get(getattr(np, name, None))  # type: ignore[arg-type]
        return None if own is None else self.__array_ufunc__(own, "__call__", *args)

    def wrap(self, ans: Any, name: str) -> Any:
        """Return ``ans`` as an array of this class."""
        return self._like(ans) if getattr(ans, "shape", ()) else ans

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of the method of this name."""
        _, *rest = args
        found = getattr(self, _ALIASES.get(name, name))
        return found(*rest, **kwargs) if callable(found) else found

    def _like(self, value: Any) -> Any:
        return type(self).of_array(value, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        compute = ufunc if method == "__call__" else getattr(ufunc, method)
        found = compute(*map(array_of, inputs), **{name: array_of(x) for name, x in kwargs.items()})
        if out is not None:
            array_of(out[0])[...] = found
            return out[0]
        return tuple(map(self._like, found)) if type(found) is tuple else self._like(found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._val, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_val":
            raise AttributeError(name)
        found = getattr(self._val, name)
        if not callable(found):
            return self._like(found) if name in ("T", "real", "imag") else found
        if name in _PLAIN_METHODS:
            return lambda *args, **kwargs: found(*map(array_of, args), **kwargs)
        return lambda *args, **kwargs: self._like(found(*map(array_of, args), **kwargs))

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Return the array as one of another class, or of this class."""
        kind = dtype if type is None else type
        if kind is None:
            return self._like(self._val.view())
        if hasattr(kind, "of_array"):
            return kind.of_array(self._val.view(), self)
        return self._val.view(kind)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "shape":
            self._val.shape = value
        else:
            object.__setattr__(self, name, value)

    def __getitem__(self, key: Any) -> Any:
        found = self._val[tuple(map(array_of, key)) if type(key) is tuple else array_of(key)]
        return self._like(found) if getattr(found, "shape", ()) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        self._val[tuple(map(array_of, key)) if type(key) is tuple else array_of(key)] = array_of(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self._val)

    def __bool__(self) -> bool:
        return bool(self._val)

    def __float__(self) -> float:
        return float(self._val)

    def __contains__(self, x: Any) -> bool:
        return array_of(x) in self._val

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._val!r})"

    def __str__(self) -> str:
        return str(self._val)

    def __format__(self, spec: str) -> str:
        return format(self._val, spec)


#: Methods that return plain numbers, lists or positions.
_PLAIN_METHODS = frozenset(("argmax", "argmin", "dot", "item", "nonzero", "sort", "tobytes", "tolist"))
_ALIASES = {"amax": "max", "amin": "min", "around": "round"}
_OPERATORS = {
    **{"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"},
    **{"mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or"},
    "xor": "bitwise_xor",
}
_OTHERS = {
    **{"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"},
    **{"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"},
}


def array_of(x: Any) -> Any:
    """Return the array in an array of a program's class; any other value unchanged.

    Example:
        >>> array_of(1.0)
        1.0
    """
    return x._val if issubclass(type(x), ArrayObject) else x


def _set_operator(name: str, ufunc: str) -> None:
    own = getattr(fnp, ufunc)

    def plain(self: ArrayObject, *others: Any) -> Any:
        return self.__array_ufunc__(own, "__call__", self, *others)

    def reflected(self: ArrayObject, other: Any) -> Any:
        return self.__array_ufunc__(own, "__call__", other, self)

    def in_place(self: ArrayObject, other: Any) -> Any:
        return self.__array_ufunc__(own, "__call__", self, other, out=(self,))

    setattr(ArrayObject, f"__{name}__", plain)
    if name in _OPERATORS:
        setattr(ArrayObject, f"__r{name}__", reflected)
        setattr(ArrayObject, f"__i{name}__", in_place)


for _name, _ufunc in {**_OPERATORS, **_OTHERS}.items():
    _set_operator(_name, _ufunc)

#: Members with which a class has arithmetic of its own.
_ARITHMETIC = frozenset([f"__{side}{name}__" for name in {**_OPERATORS, **_OTHERS} for side in ("", "r", "i")])


def array_class(cls: Any, translate: Any, bases: list[type], rebuilt: Callable[[Any, Any], Any]) -> type:
    """Return the class that replaces a program's class derived from ndarray.

    Args:
        cls: the class.
        translate: see ``translation.Translator``.
        bases: the replacements for its bases; ``numpy.ndarray`` stands for itself.
        rebuilt: ``rebuilt(member, translate)`` is the rebuilt member.

    Raises:
        ConversionError: constant arrays are not replaced yet, and could not be viewed as arrays of the class.
    """
    if not translate.replaces_arrays:
        message = f"{cls.__name__}: a class derived from numpy.ndarray takes traced values if constant arrays do."
        pending_refusals[get_ident()] = message
        raise ConversionError(message)
    members = {name: rebuilt(value, translate) for name, value in vars(cls).items() if name not in _OF_PYTHON}
    own = not _ARITHMETIC.isdisjoint(members) or any(getattr(base, "has_own_arithmetic", False) for base in bases)
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    members |= {**names, "numpy_class": cls, "has_own_arithmetic": own}
    return _ArrayClass(cls.__name__, tuple(ArrayObject if base is np.ndarray else base for base in bases), members)


def array_object(x: Any, cls: Any, translate: Any) -> Any:
    """Return an array of a program's class, made outside of the function, as one of the class ``cls``."""
    made = object.__new__(cls)
    value = translate(np.asarray(x))[0]
    vars(made).update({name: translate(part)[0] for name, part in vars(x).items()}, _val=value)
    return made
