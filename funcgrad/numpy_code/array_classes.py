"""A program's own classes derived from ``numpy.ndarray``, with traced values in their arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import cache, partial
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError, InputError
from funcgrad.numpy.masked import writing
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.ufuncs import UFUNCS
from funcgrad.numpy_code.array_functions import PROTOCOLS, accepting_numpys
from funcgrad.numpy_code.conversions import as_complex, as_float, as_int
from funcgrad.numpy_code.metaclasses import set_until_end
from funcgrad.numpy_code.replacements import PLAIN_TYPES
from funcgrad.shared_state import pending_refusals
from funcgrad.writable import Proxy, as_array, make_buffer

#: Members that Python adds to a class, which the class itself gets anew.
_OF_PYTHON = frozenset(("__dict__", "__weakref__", "__module__", "__qualname__"))


class _ArrayClass(type):
    """Metaclass of the classes that replace a program's classes derived from ndarray."""

    numpy_class: Any
    __class__: Any = property(lambda cls: type(cls.numpy_class) if cls.numpy_class else _ArrayClass)

    __setattr__, __delattr__ = set_until_end(type.__setattr__), set_until_end(type.__delattr__)

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
    #: Whether the class defines ``__array_function__``.
    has_own_functions = False
    #: The class's ``__array_priority__``.
    priority = 0.0
    #: Returns what rebuilt code has for a function or ufunc of NumPy, so that the class can compare it.
    replacement_of: Callable[[Any], Any]
    #: Returns a function rebuilt from its code.
    rebuilt_function: Callable[[Any], Any]
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

    def as_target(self) -> Any:
        """Return the array, which shares the memory of the object."""
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

    def number_by(self, name: str) -> Any:
        """Return the number that the class's own method returns, if it has one, else the array."""
        is_own = type(getattr(type(self).numpy_class, name, None)) is FunctionType
        return getattr(self, name)() if is_own else self._val

    def as_result(self) -> Any:
        """Return the array; refuse if the class has operators or functions of its own.

        Raises:
            InputError: it has, as quantities do, so that the array alone may be another value.
        """
        kind = type(self)
        if kind.has_own_arithmetic and (kind.has_own_functions or not kind.has_own_ufuncs):
            raise InputError(
                f"{type(self).__name__}: a transform returns arrays and numbers, and this class has arithmetic of its "
                f"own, such as units, got {describe(self._val)}{user_line()}. Return numpy.asarray(x)."
            )
        return self._val

    def compute_ufunc(self, ufunc: np.ufunc, method: str, args: Any, options: Any) -> Any:
        """Return what ``__array_ufunc__`` returns."""
        return self._compute(ufunc, method, *args, **options)

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the result of a ufunc as an array of this class, or that of a reflected operator of its own."""
        is_right = len(args) == 2 and args[1] is self and not isinstance(args[0], (np.generic, ArrayObject))
        method = _REFLECTED.get(name) if is_right else None  # numbers of NumPy call the ufunc
        if method is not None and type(getattr(self.numpy_class, method)) is FunctionType and not self.has_own_ufuncs:
            own = vars(self)
            if not own.get("_is_reflecting"):  # else its code calls the ufunc
                own["_is_reflecting"] = True
                try:
                    if (found := getattr(self, method)(args[0])) is not NotImplemented:
                        return found
                finally:
                    del own["_is_reflecting"]
        ufunc: Any = getattr(np, name, None)
        return self._compute(ufunc, "__call__", *args) if ufunc in UFUNCS else None

    def wrap(self, ans: Any, name: str) -> Any:
        """Return ``ans`` as an array of this class."""
        return self.__array_wrap__(ans) if getattr(ans, "shape", ()) else ans

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of the method of this name."""
        _, *rest = args
        name = _ALIASES.get(name, name)
        if name in _REARRANGING:
            if rest and name.startswith("atleast"):
                each = [x.call_function(name, operation, (x,), {}) if isinstance(x, ArrayObject) else x for x in args]
                return tuple([x if isinstance(x, ArrayObject) else operation(x) for x in each])
            return self._like(operation(self._val, *rest, **kwargs))
        if name == "copy":
            found = operation(self._val, *rest, **kwargs)
            return self._like(found) if kwargs.get("subok", rest[1:] == [True]) else found
        if name in ("size", "ptp") or not hasattr(np.ndarray, name):  # ``ndarray.ptp`` of NumPy 2.2 only raises
            found = operation(*args, **kwargs)
            return self._like(found) if name == "ptp" and found.shape else found
        found = getattr(self, name)
        return found(*rest, **kwargs) if callable(found) else found

    def _like(self, value: Any) -> Any:
        return type(self).of_array(as_array(value), self)

    def __copy__(self) -> Any:
        return self._like(fnp.copy(self._val))

    def __deepcopy__(self, memo: Any) -> Any:
        return self._like(fnp.copy(self._val))

    def defers_to(self, other: Any) -> bool:
        """Whether an operator is left to the other operand, as by ``ndarray``."""
        kind = type(other)
        if kind in _WITHOUT_OPERATORS or issubclass(kind, type(self)):
            return False
        if hasattr(kind, "__array_ufunc__"):
            return kind.__array_ufunc__ is None
        return bool(getattr(other, "__array_priority__", -1e6) > self.priority)

    def _compute(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the first of the classes of ``inputs`` that knows the operation returns."""
        own, objects = self.replacement_of(ufunc), _objects_in(inputs, kwargs)
        for x in objects:
            found = x.__array_ufunc__(own, method, *inputs, **kwargs)
            if found is not NotImplemented:
                return found
        if not objects:  # methods in the class may return anything, such as plain arrays
            return own(*inputs)
        raise TypeError(f"operand type(s) all returned NotImplemented from __array_ufunc__: {ufunc.__name__}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        objects = [x for x in inputs if isinstance(x, ArrayObject)]
        if any(x.has_own_ufuncs for x in _objects_in(inputs, {"out": out})):
            return NotImplemented
        compute = ufunc if method == "__call__" else getattr(ufunc, method)
        given = kwargs if out is None else {**kwargs, "out": out}
        found = compute(*map(array_of, inputs), **{name: _arrays_in(x) for name, x in given.items()})
        parts = found if type(found) is tuple else (found,)
        first: Any = max(objects, key=lambda x: x.priority) if objects else None
        made: list[Any] = []
        for number, (place, part) in enumerate(zip(out or [None] * len(parts), parts, strict=True)):
            if place is not None or first is None:
                made.append(part if place is None else place)
            else:
                made.append(first.__array_wrap__(_wrapped(part), (ufunc, inputs, number)))
        return tuple(made) if type(found) is tuple else made[0]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return self._like(array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._val, dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Compute a function of NumPy as ``ndarray`` does, see ``run_numpys_code``."""
        if not all(issubclass(kind, ArrayObject) for kind in types):
            return NotImplemented
        return func._implementation(*args, **kwargs)

    def run_numpys_code(self, numpys: Any, own: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of NumPy's own Python code of a function, which calls methods and functions in turn.

        Args:
            numpys: the function of NumPy.
            own: the function of funcgrad for arrays, if NumPy's is compiled.
            args: the arguments.
            kwargs: the keyword arguments.
        """
        places = () if numpys.__module__ == "numpy.fft" else _OF_PLAIN_ARRAYS.get(numpys.__name__)
        if places is None and type(numpys._implementation) is FunctionType:
            return self.rebuilt_function(numpys._implementation)(*args, **kwargs)
        found = own(*_arrays_in(args), **{name: _arrays_in(x) for name, x in kwargs.items()})
        if places is not None:
            given = [*args, *kwargs.values()]
            return _with_class(found, given[numpys.__name__ in ("lstsq", "solve")], places)
        if numpys.__name__ == "concatenate":  # the result has no attributes, and the class of the highest priority
            return type(self).of_array(found, None) if self.priority > 0 else found
        return self._like(found) if numpys.__name__ in _COMPILED_WITH_CLASS and found.shape else found

    def _member(self, name: str) -> Any:
        """Return the attribute or method of this name that ``ndarray`` has."""
        if type(self).has_own_ufuncs and (method := self._method_by_ufuncs(name)) is not None:
            return method
        found = getattr(self._val, name)
        if not callable(found):
            return self._like(found) if name in ("T", "mT", "real", "imag") else found
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
            if (out := kwargs.pop("out", None)) is not None:
                kwargs["out"] = (out,)
            x = self._member("ravel")() if kind == "accumulate" and kwargs.get("axis") is None else self
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

    def __float__(self) -> Any:
        return as_float(self._val)

    def __int__(self) -> Any:
        return as_int(self._val)

    def __complex__(self) -> Any:
        return as_complex(self._val)

    def __index__(self) -> int:
        return operator.index(self._val)

    def __contains__(self, x: Any) -> bool:
        return array_of(x) in self._val

    def __repr__(self) -> str:
        return text_of_class(type(self).__name__, self._val)

    def __str__(self) -> str:
        return str(self._val)

    def __format__(self, spec: str) -> str:
        return format(self._val, spec)


#: Types of operands that leave operators to an array.
_WITHOUT_OPERATORS = PLAIN_TYPES | {Tracer, np.ndarray}
#: Methods that return plain numbers, lists or positions.
_PLAIN_METHODS = frozenset(("argmax", "argmin", "dot", "item", "nonzero", "sort", "tobytes", "tolist"))
#: Functions without a method, whose results have the class of the array.
_REARRANGING = frozenset(
    ("atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "rot90")
)
_ALIASES = {"amax": "max", "amin": "min", "around": "round"}
_OPERATORS = {
    **{"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"},
    **{"mod": "remainder", "divmod": "divmod", "pow": "power", "matmul": "matmul", "and": "bitwise_and"},
    **{"or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift"},
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


#: Methods that Python calls first if the right operand is of a class derived from that of the left one.
_REFLECTED = {
    **{ufunc: f"__r{name}__" for name, ufunc in _OPERATORS.items()},
    **{"less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__"},
    **{"equal": "__eq__", "not_equal": "__ne__"},
}


def text_of_class(name: str, x: Any) -> str:
    """Return ``repr`` of the array ``x`` as of one of the class ``name``.

    Example:
        >>> text_of_class("Signal", np.ones(2))
        'Signal([1., 1.])'
    """
    text = repr(x)
    if not text.startswith("array"):  # a traced value
        return f"{name}({text})"
    first, *lines = text.split("\n")
    return "\n".join([name + first.removeprefix("array"), *[" " * (len(name) - len("array")) + line for line in lines]])


def _wrapped(x: Any) -> Any:
    """Return a result for ``__array_wrap__``, which may view it as an array of another class."""
    return as_array(x) if isinstance(x, Tracer) else make_buffer(np.asarray(x))


def _objects_in(inputs: Any, options: dict[str, Any]) -> list[ArrayObject]:
    """Return the arrays of a program's classes among the arguments of a ufunc and the arrays for its results."""
    return [x for x in (*inputs, *(options.get("out") or ())) if isinstance(x, ArrayObject)]


def _arrays_in(x: Any) -> Any:
    """Return ``x`` with arrays in place of arrays of a program's class, also in lists and tuples."""
    return type(x)(map(_arrays_in, x)) if type(x) in (list, tuple) else array_of(x)


#: Compiled functions of NumPy whose results have the class of the arguments.
_COMPILED_WITH_CLASS = frozenset(("dot", "empty_like", "inner"))
#: Functions whose Python code computes with plain arrays, and the results that it gives the class of an argument.
_OF_PLAIN_ARRAYS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("cross", "det", "eigvals", "eigvalsh", "einsum", "interp", "slogdet"), ()),
    **{"cholesky": (0,), "inv": (0,), "solve": (0,), "eig": (1,), "eigh": (1,)},
    **{"qr": (0, 1), "lstsq": (0, 1), "svd": (0, 2)},
}


def _with_class(found: Any, owner: Any, places: tuple[int, ...]) -> Any:
    """Return results with those at some places as arrays of the class of ``owner``, an argument."""
    if not isinstance(owner, ArrayObject):
        return found
    if not isinstance(found, tuple):  # also R of ``qr``; singular values have no class
        return owner.__array_wrap__(found) if 0 in places and 2 not in places else found
    parts = [owner.__array_wrap__(part) if i in places else part for i, part in enumerate(found)]
    return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)


def _set_operator(name: str, ufunc: str) -> None:
    own = getattr(np, ufunc)

    def plain(self: ArrayObject, *others: Any) -> Any:
        return NotImplemented if others and self.defers_to(*others) else self._compute(own, "__call__", self, *others)

    def reflected(self: ArrayObject, other: Any) -> Any:
        return NotImplemented if self.defers_to(other) else self._compute(own, "__call__", other, self)

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


def _power(self: ArrayObject, exponent: Any, modulus: None = None) -> Any:
    ufunc = _POWERS.get(exponent) if isinstance(exponent, (int, float)) and self._val.dtype.kind in "fc" else None
    return (
        self._compute(np.power, "__call__", self, exponent) if ufunc is None else self._compute(ufunc, "__call__", self)
    )


ArrayObject.__pow__ = _power  # type: ignore[operator]


def _set_member(name: str) -> None:
    """Give arrays of a program's classes the attribute or method of ``ndarray`` with this name."""

    def put(self: ArrayObject, value: Any) -> None:
        if name == "shape":  # that of this object only: the array of which it is a view keeps its own
            self._val = fnp.reshape(self._val, value, copy=False)
        else:
            setattr(self._val, name, array_of(value))

    setattr(ArrayObject, name, property(lambda self: self._member(name), put))


for _name in dir(np.ndarray):
    if not _name.startswith("__") and not hasattr(ArrayObject, _name):
        _set_member(_name)

#: Members with which a class has arithmetic of its own.
_ARITHMETIC = frozenset([f"__{side}{name}__" for name in {**_OPERATORS, **_OTHERS} for side in ("", "r", "i")])


@writing
def _mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    total = x.sum(axis, keepdims=keepdims)
    return total / (x.size / np.size(array_of(total)))


@writing
def _var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    **options: Any,
) -> Any:
    mean = options.get("mean")
    centred = x - (_mean(x, axis, keepdims=True) if mean is None else mean)
    total = x._compute(np.multiply, "__call__", centred, centred).sum(axis, keepdims=keepdims)
    return total / (x.size / np.size(array_of(total)) - ddof)


@writing
def _std(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    return x._compute(np.sqrt, "__call__", _var(x, axis, dtype, None, *args, **kwargs))


#: Methods that NumPy computes by others.
_BY_OPERATORS: dict[str, Callable[..., Any]] = {"mean": _mean, "var": _var, "std": _std}
#: Methods that NumPy computes by ufuncs.
_BY_UFUNC: dict[str, tuple[Any, str]] = {
    **{"sum": (np.add, "reduce"), "prod": (np.multiply, "reduce"), "max": (np.maximum, "reduce")},
    **{"min": (np.minimum, "reduce"), "any": (np.logical_or, "reduce"), "all": (np.logical_and, "reduce")},
    **{"cumsum": (np.add, "accumulate"), "cumprod": (np.multiply, "accumulate")},
    **{"clip": (np.clip, "__call__"), "conj": (np.conjugate, "__call__"), "conjugate": (np.conjugate, "__call__")},
}


def array_class(cls: Any, translate: Any, bases: list[type], rebuilt: Callable[[type, str, Any], Any]) -> type:
    """Return the class that replaces a program's class derived from ndarray.

    Args:
        cls: the class.
        translate: see ``translation.Translator``.
        bases: the replacements for its bases; ``numpy.ndarray`` stands for itself.
        rebuilt: ``rebuilt(cls, name, member)`` is the rebuilt member.

    Raises:
        ConversionError: constant arrays are not replaced yet, and could not be viewed as arrays of the class.
    """
    by_functions = cls.__array_function__ is not np.ndarray.__array_function__
    if not translate.replaces_arrays:
        message = f"{cls.__name__}: a class derived from numpy.ndarray takes traced values if constant arrays do."
        pending_refusals[get_ident()] = message
        raise ConversionError(message)
    members = {name: rebuilt(cls, name, value) for name, value in vars(cls).items() if name not in _OF_PYTHON}
    by_ufuncs = cls.__array_ufunc__ is not np.ndarray.__array_ufunc__
    own = by_ufuncs or any(getattr(cls, name, None) is not getattr(np.ndarray, name, None) for name in _ARITHMETIC)
    members |= {name: accepting_numpys(members[name], translate) for name in PROTOCOLS if callable(vars(cls).get(name))}
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "numpy_class": cls}
    if isinstance(cls.__array_priority__, (int, float)):  # that of ndarray is a descriptor
        names["priority"] = cls.__array_priority__
    members |= {**names, "has_own_arithmetic": own, "has_own_ufuncs": by_ufuncs, "has_own_functions": by_functions}
    members["replacement_of"] = staticmethod(lambda fun: translate(fun)[0])
    members["rebuilt_function"] = staticmethod(translate.rebuilt)
    bases = [ArrayObject if base is np.ndarray else base for base in bases]
    made: type = _metaclass(frozenset(map(type, bases)))(cls.__name__, tuple(bases), members)
    return made


@cache
def _metaclass(kinds: frozenset[type]) -> Any:
    """Return the metaclass of a class with bases of the metaclasses ``kinds``: rebuilt mixins have their own."""
    wanted = {*kinds, _ArrayClass}
    least = [kind for kind in wanted if sum(issubclass(other, kind) for other in wanted) == 1]
    least.sort(key=lambda kind: not issubclass(kind, _ArrayClass))  # its methods come first
    return least[0] if len(least) == 1 else type(_ArrayClass.__name__, tuple(least), {})


def array_object(x: Any, cls: Any, translate: Any) -> Any:
    """Return an array of a program's class, made outside of the function, as one of the class ``cls``."""
    made = object.__new__(cls)
    vars(made)["_val"] = translate(np.asarray(x))[0]
    translate.memo()[id(x)] = x, made  # before the attributes, which may refer to ``x``
    vars(made).update({name: translate(part)[0] for name, part in vars(x).items()})
    return made
