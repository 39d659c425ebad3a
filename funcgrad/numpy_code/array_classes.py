"""A program's own classes derived from ``numpy.ndarray``, with traced values in their arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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
    #: Whether the class defines operators or ``__array_ufunc__``.
    has_own_arithmetic = False
    #: Whether the class defines ``__array_ufunc__``.
    has_own_ufuncs = False
    #: Returns what rebuilt code has for a ufunc of NumPy, so that the class can compare it.
    ufunc_of: Callable[[np.ufunc], Any]
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
        ufunc: Any = getattr(np, name, None)
        return self._compute(ufunc, "__call__", *args) if ufunc in UFUNCS else None

    def wrap(self, ans: Any, name: str) -> Any:
        """Return ``ans`` as an array of this class."""
        return self.__array_wrap__(ans) if getattr(ans, "shape", ()) else ans

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of the method of this name."""
        _, *rest = args
        name = _ALIASES.get(name, name)
        if not hasattr(np.ndarray, name):
            return operation(*args, **kwargs)
        found = getattr(self, name)
        return found(*rest, **kwargs) if callable(found) else found

    def _like(self, value: Any) -> Any:
        return type(self).of_array(value, self)

    def _compute(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the first of the classes of ``inputs`` that knows the operation returns."""
        own, objects = self.ufunc_of(ufunc), [x for x in inputs if isinstance(x, ArrayObject)]
        for x in objects:
            found = x.__array_ufunc__(own, method, *inputs, **kwargs)
            if found is not NotImplemented:
                return found
        if not objects:
            return own(*inputs)
        raise TypeError(f"operand type(s) all returned NotImplemented from __array_ufunc__: {ufunc.__name__}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        objects = [x for x in inputs if isinstance(x, ArrayObject)]
        if any(x.has_own_ufuncs for x in objects):
            return NotImplemented
        compute = ufunc if method == "__call__" else getattr(ufunc, method)
        found = compute(*map(array_of, inputs), **{name: array_of(x) for name, x in kwargs.items()})
        if out is not None:
            array_of(out[0])[...] = found
            return out[0]
        if not objects:
            return found
        wrap = objects[0].__array_wrap__
        if type(found) is tuple:
            return tuple([wrap(part, (ufunc, inputs, number)) for number, part in enumerate(found)])
        return wrap(found, (ufunc, inputs, 0))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return self._like(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._val, dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_val":
            raise AttributeError(name)
        if type(self).has_own_ufuncs and (method := self._method_by_ufuncs(name)) is not None:
            return method
        found = getattr(self._val, name)
        if not callable(found):
            return self._like(found) if name in ("T", "real", "imag") else found
        if name in _PLAIN_METHODS:
            return lambda *args, **kwargs: found(*map(array_of, args), **kwargs)
        return lambda *args, **kwargs: self._like(found(*map(array_of, args), **kwargs))

    def _method_by_ufuncs(self, name: str) -> Callable[..., Any] | None:
        """Return a method that calls ``__array_ufunc__`` as NumPy's does; None if NumPy's method calls no ufunc."""
        if name in _BY_OPERATORS:
            return partial(_BY_OPERATORS[name], self)
        if name in ("round", "trace"):
            raise ConversionError(
                f"{type(self).__name__}: x.{name}() calls __array_ufunc__ in NumPy's compiled code, got "
                f"{describe(self._val)}{user_line()}. Write it with operators and functions of numpy."
            )
        if name not in _BY_UFUNC:
            return None
        ufunc, kind = _BY_UFUNC[name]
        axis = {"axis": None} if kind == "reduce" else {"axis": 0} if kind == "accumulate" else {}

        def method(*args: Any, **kwargs: Any) -> Any:
            if axis and args:
                args, kwargs = args[1:], {"axis": args[0], **kwargs}
            x = self.ravel() if kind == "accumulate" and kwargs.get("axis") is None else self
            return self._compute(ufunc, kind, x, *args, **{**axis, **kwargs})

        return method

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
    own = getattr(np, ufunc)

    def plain(self: ArrayObject, *others: Any) -> Any:
        return self._compute(own, "__call__", self, *others)

    def reflected(self: ArrayObject, other: Any) -> Any:
        return self._compute(own, "__call__", other, self)

    def in_place(self: ArrayObject, other: Any) -> Any:
        return self._compute(own, "__call__", self, other, out=(self,))

    setattr(ArrayObject, f"__{name}__", plain)
    if name in _OPERATORS:
        setattr(ArrayObject, f"__r{name}__", reflected)
        setattr(ArrayObject, f"__i{name}__", in_place)


for _name, _ufunc in {**_OPERATORS, **_OTHERS}.items():
    _set_operator(_name, _ufunc)

#: Ufuncs that NumPy calls in place of ``power``, by the exponent.
_POWERS = {2: np.square, 0.5: np.sqrt, 1: np.positive, -1: np.reciprocal}


def _power(self: ArrayObject, exponent: Any) -> Any:
    ufunc = _POWERS.get(exponent) if isinstance(exponent, (int, float)) and self.dtype.kind in "fc" else None
    return (
        self._compute(np.power, "__call__", self, exponent) if ufunc is None else self._compute(ufunc, "__call__", self)
    )


ArrayObject.__pow__ = _power  # type: ignore[operator]

#: Members with which a class has arithmetic of its own.
_ARITHMETIC = frozenset([f"__{side}{name}__" for name in {**_OPERATORS, **_OTHERS} for side in ("", "r", "i")])


def _mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    total = x.sum(axis, keepdims=keepdims)
    return total / (x.size / np.size(array_of(total)))


def _var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **options: Any,
) -> Any:
    centred = x - _mean(x, axis, keepdims=True)
    total = x._compute(np.multiply, "__call__", centred, centred).sum(axis, keepdims=keepdims)
    return total / (x.size / np.size(array_of(total)) - ddof)


def _std(x: Any, *args: Any, **kwargs: Any) -> Any:
    return x._compute(np.sqrt, "__call__", _var(x, *args, **kwargs))


#: Methods that NumPy computes by others.
_BY_OPERATORS: dict[str, Callable[..., Any]] = {"mean": _mean, "var": _var, "std": _std}
#: Methods that NumPy computes by ufuncs.
_BY_UFUNC: dict[str, tuple[Any, str]] = {
    **{"sum": (np.add, "reduce"), "prod": (np.multiply, "reduce"), "max": (np.maximum, "reduce")},
    **{"min": (np.minimum, "reduce"), "any": (np.logical_or, "reduce"), "all": (np.logical_and, "reduce")},
    **{"cumsum": (np.add, "accumulate"), "cumprod": (np.multiply, "accumulate")},
    **{"clip": (np.clip, "__call__"), "conj": (np.conjugate, "__call__"), "conjugate": (np.conjugate, "__call__")},
}


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
    by_ufuncs = cls.__array_ufunc__ is not np.ndarray.__array_ufunc__
    own = by_ufuncs or any(getattr(cls, name, None) is not getattr(np.ndarray, name, None) for name in _ARITHMETIC)
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "numpy_class": cls}
    members |= {**names, "has_own_arithmetic": own, "has_own_ufuncs": by_ufuncs}
    members["ufunc_of"] = staticmethod(lambda ufunc: translate(ufunc)[0])
    return _ArrayClass(cls.__name__, tuple(ArrayObject if base is np.ndarray else base for base in bases), members)


def array_object(x: Any, cls: Any, translate: Any) -> Any:
    """Return an array of a program's class, made outside of the function, as one of the class ``cls``."""
    made = object.__new__(cls)
    value = translate(np.asarray(x))[0]
    vars(made).update({name: translate(part)[0] for name, part in vars(x).items()}, _val=value)
    return made
