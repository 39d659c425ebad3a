"""``float``, ``int``, ``complex``, ``type`` and ``isinstance`` as functions for rebuilt code with traced values."""

from __future__ import annotations

import re
from collections import OrderedDict, abc, deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from types import FunctionType
from typing import Any, SupportsIndex

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import is_jax_tracer
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer, describe, plain_value
from funcgrad.errors import ConcretizationError
from funcgrad.graph import report_answer
from funcgrad.numpy.creation import as_buffer
from funcgrad.numpy.plain_values.concretization import as_number, as_python, check_text, concrete
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.texts import TracedText, has_all_digits, reads_back, with_source
from funcgrad.numpy.tables.containers import unlabel_number
from funcgrad.numpy_code.metaclasses import members_of
from funcgrad.numpy_code.replacements import current_run, is_worker
from funcgrad.primitives.arithmetic import complex_of
from funcgrad.shared_state import note_refusal
from funcgrad.writable import CONSTANTS, Proxy, is_buffer, is_selection, make_buffer


def is_traced(x: Any) -> bool:
    """Whether ``x`` is a traced value: a buffer, which holds constants, is one only if JAX traces what it holds."""
    return issubclass(type(x), Tracer) and (x._trace is not CONSTANTS or is_jax_tracer(x._val))


#: Containers whose members are checked, views of dictionary values among them.
_HOLDING: tuple[type, ...] = (list, tuple, deque, set, frozenset, type({}.values()), type(OrderedDict().values()))


def holds_traced(values: Any) -> bool:
    """Whether a traced value is among ``values``, or in a sequence, a set or a dictionary among them."""
    return any(
        is_traced(x)
        or (issubclass(type(x), _HOLDING) and holds_traced(x))
        or (type(x) is dict and holds_traced(x.values()))
        or (type(x) is np.ndarray and x.dtype == object and holds_traced(x.ravel().tolist()))
        for x in values
    )


#: Types of values on the fast path; batches and nested tracers need more checks.
_DOUBLES = frozenset((float, np.float64))


def as_float(*args: Any) -> Any:
    """Return ``float(x)``; for a traced number, the traced number in double precision."""
    x: Any = args[0] if len(args) == 1 else None
    if issubclass(type(x), Tracer) and type(x._val) in _DOUBLES:
        return as_python(x)
    if type(x) is TracedText:
        x = x.number()
    x = number_from_method(unlabel_number(x), "__float__")
    if not is_traced(x):
        if isinstance(x, (str, bytes)):
            check_text(x)
        return float(*args)
    _check_real(float, x)
    check_axes(float, x)
    return as_python(as_number(x.astype(np.float64) if x.dtype != np.float64 else x))


def _check_real(convert: type, x: Tracer) -> None:
    if x.dtype.kind == "c":
        raise TypeError(f"{convert.__name__}() argument must be a string or a real number, not 'complex'")


def check_axes(convert: type, x: Tracer) -> None:
    """Raise NumPy's error for ``float``, ``int`` or ``complex`` of an array with axes.

    By this error programs find out that an argument is an array and not a number.
    """
    if x.shape:
        convert(np.broadcast_to(np.ones((), x.dtype), x.shape))


def number_from_method(x: Any, name: str) -> Any:
    """Return the traced number that a user's object returns for ``float`` or ``complex``; else the object."""
    if issubclass(type(x), Proxy):
        return x.number_by(name)
    method = getattr(type(x), name, None)
    if type(method) is not FunctionType or issubclass(type(x), Tracer):
        return x
    found = method(x)
    return found if is_traced(found) else x


def as_complex(*args: Any, **parts: Any) -> Any:
    """Return ``complex(x)`` or ``complex(re, im)``, with traced numbers too."""
    if parts:
        if not any(map(is_traced, (*args, *parts.values()))):
            return complex(*args, **parts)
        args = _complex_parts(*args, **parts)
    if len(args) == 1:
        args = (number_from_method(args[0], "__complex__"),)
    if len(args) == 1 and type(args[0]) is TracedText:
        args = (args[0].number(),)
    if not any(map(is_traced, args)):
        check_text(args)
        return complex(*args)
    for x in filter(is_traced, args):
        check_axes(complex, x)
    if len(args) == 1:
        return as_python(as_number(fnp.astype(args[0], np.complex128)))
    real, imag = map(_in_double_precision, args)
    if any(getattr(x, "dtype", np.dtype(float)).kind == "c" for x in (real, imag)):
        return real + 1j * imag
    return as_python(as_number(complex_of(real, imag)))


def _complex_parts(real: Any = 0.0, imag: Any = 0.0) -> tuple[Any, Any]:
    """Return the arguments of ``complex``, which may be given by name."""
    return real, imag


def _in_double_precision(x: Any) -> Any:
    """Return a part of a complex number in double precision; it may be complex itself."""
    return as_complex(x) if getattr(x, "dtype", np.dtype(float)).kind == "c" else as_float(x)


def as_python_int(x: Any) -> Any:
    """Return a traced number without a fraction as a Python integer; a batch of them stays traced.

    The integer is constant wherever it has a derivative, so Python may use it as an index or a number of steps.
    """
    one = unbatched_if_equal(x)
    try:
        answer = int(concrete(one, "int(x)", steers=False))
    except TypeError:  # x has several examples, or is abstract in JAX
        return fnp.astype(x, np.int64)
    if abs(answer) >= 2**63:
        return int(concrete(one, "int(x)"))
    return report_answer(fnp.astype(one, np.int64), answer)  # other numbers may have the same whole part


def as_int(*args: Any) -> Any:
    """Return ``int(x)``."""
    x: Any = number_from_method(args[0], "__int__") if len(args) == 1 else None
    if not is_traced(x):
        return int(*args)
    _check_real(int, x)
    check_axes(int, x)
    return as_python_int(x)


def type_of(*args: Any) -> Any:
    """Return ``type(x)``; for a traced value, the type of the value behind it."""
    if len(args) != 1 or not issubclass(type(args[0]), Tracer):
        found: Any = type(*args)
        if len(args) != 1:
            return found
        if issubclass(found, type):
            return args[0].__class__  # a rebuilt class has a metaclass of its own
        if found is FunctionType and _replaces_ufunc(args[0]):
            return np.ufunc
        return found.type_of(args[0]) if hasattr(found, "type_of") else found
    x = args[0]
    if is_jax_tracer(plain_value(x)):  # code compiled for JAX was written for NumPy
        return np.ndarray if x.shape else x.dtype.type
    return x.__class__


class FormatString(str):
    """Format string such as ``"%.3f"`` that may be filled with traced numbers: the result shows their values."""

    __slots__ = ()

    def __str__(self) -> str:  # ``logging`` calls it before it fills the text
        return self

    def __add__(self, other: Any) -> str:
        made: str = as_format_string(str.__add__(self, other))
        return made

    def __radd__(self, other: Any) -> str:
        made: str = as_format_string(str.__add__(other, self))
        return made

    def __mul__(self, count: Any) -> str:
        made: str = as_format_string(str.__mul__(self, count))
        return made

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        if {kind for _, kind in _KINDS.findall(self)} == {"r"}:
            return str.__mod__(self, values)  # describes a traced number, as ``repr`` does
        if unknown := [str(x) for x in _parts(values) if is_traced(x) and is_jax_tracer(plain_value(x))]:
            return with_source(str.__mod__(_KINDS.sub(r"%\1s", self), values), unknown)
        try:
            text = str.__mod__(self, _shown(values))
        except ConcretizationError:
            text = _text_of_examples(self, values)
        traced = [x for x in _parts(values) if is_traced(x)]
        if not traced or text == self:
            return with_source(text, _parts(values))
        for x in traced:
            current_run().note_text(x, text)
        alone = self.count("%") == 1 and self.strip()[:1] == "%" and self.strip()[-1:] in "eEfFgGs"
        spec = self.strip()[1:]
        whole = alone and (has_all_digits(self) or spec == "s" or reads_back(traced[0], spec))
        return TracedText.of(text, traced[0], whole)


def _text_of_examples(text: str, values: Any) -> str:
    """Return ``text % values`` for the first examples of a ``vmap`` whose values differ."""
    parts = _parts(values)
    known = [is_traced(x) and not is_jax_tracer(plain_value(x)) for x in parts]
    rows = [np.ravel(plain_value(x)).tolist() if flag else [x] for x, flag in zip(parts, known, strict=True)]
    count, names = max(map(len, rows)), list(values) if type(values) is dict else None
    given = [tuple([row[i % len(row)] for row in rows]) for i in range(min(count, 3))]
    texts = [str.__mod__(text, each if names is None else dict(zip(names, each, strict=True))) for each in given]
    return " | ".join(texts + ["..."] * (count > len(texts)))


def _parts(values: Any) -> tuple[Any, ...]:
    """Return the values that fill a text."""
    return values if type(values) is tuple else tuple(values.values()) if type(values) is dict else (values,)


#: Kinds of the values that fill a text, such as "f" in "%.3f".
_KINDS = re.compile(r"%(\([^)]*\))?[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?([diouxXeEfFgGcrsa])")
#: Texts that Python fills; those of ``strftime``, such as "%Y-%m-%d", are not among them.
_FILLED = re.compile(
    r"(?:[^%]|%(?:\([^)]*\))?[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[hlL]?[diouxXeEfFgGcrsa%])*", re.DOTALL
)


def as_format_string(value: Any) -> Any:
    """Return a text with ``%`` as a ``FormatString``, which takes traced numbers; any other value unchanged."""
    return FormatString(value) if type(value) is str and "%" in value and _FILLED.fullmatch(value) else value


def _shown(x: Any) -> Any:
    if type(x) is tuple:
        return tuple([_shown(part) for part in x])
    if type(x) is dict:
        return {name: _shown(part) for name, part in x.items()}
    return concrete(x, "'%' % x", steers=False) if is_traced(x) else x


def plain_values(x: Any, plain: Callable[[Tracer], Any]) -> Any:
    """Return ``plain(x)`` for traced values, also in lists, tuples and dictionaries, where no derivative is needed."""
    if issubclass(type(x), Tracer):
        return plain(x)
    if type(x) is dict:
        return {name: plain_values(part, plain) for name, part in x.items()}
    return type(x)([plain_values(part, plain) for part in x]) if type(x) in (list, tuple) else x


def numbers_of(x: Tracer, request: str) -> np.ndarray:
    """Return a copy of the numbers of ``x``, for a picture or a file, which is no part of the result.

    Raises:
        ConcretizationError: the examples of a ``vmap`` have different numbers, or ``jit`` compiles with JAX.
    """
    found: Any = None
    with suppress(ConcretizationError):
        found = concrete(x, request, steers=False)
    if found is None or is_jax_tracer(found):
        raise note_refusal(
            ConcretizationError(
                f"{request}: it takes the numbers of one example, got {describe(x)} that differs between the examples "
                f"of a vmap, or that jit has not computed{user_line()}. Return the array, and call it outside of the "
                "transform; funcgrad.control.map(f, xs) takes one example at a time."
            )
        )
    return np.array(found)


def shown_value(x: Any) -> Any:
    """Return what a text shows of ``x``: its value, or a text itself if the examples of a ``vmap`` differ."""
    texts = list(map(str, x.ravel().tolist()))  # a run remembers them: the program may read them again
    try:
        found = concrete(x, "json.dumps(x)", steers=False)
    except ConcretizationError:
        return texts[0] if not x.shape else texts
    if is_traced(x) and x.dtype.kind in "fc":  # in a batch with equal examples the text shows one of them
        for number in np.ravel(found).tolist():
            current_run().note_text(x, str(number))
    return found


def map_nested(change: Callable[[Any], Any], x: Any) -> Any:
    """Apply ``change`` to the leaves of nested lists and tuples, and of an object array."""
    if type(x) is np.ndarray and x.dtype == object:
        x = x.tolist()
    return type(x)(map_nested(change, part) for part in x) if type(x) in (list, tuple) else change(x)


def _number_of(x: Any, kind: type) -> Any:
    """Return the number or array that NumPy's scalar class reads of a program's object; any other value unchanged."""
    if not isinstance(x, Proxy):
        names = {np.integer: "__int__", np.complexfloating: "__complex__"}
        return number_from_method(x, next((names[base] for base in names if issubclass(kind, base)), "__float__"))
    if not hasattr(type(x), "numpy_class"):
        return x
    return x.number_by("__float__") if kind is np.float64 else x.as_array()


def scalar_conversion(kind: type) -> Any:
    """Return a function for a scalar class such as ``np.float64``."""

    def made(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is TracedText and not kwargs:
            args = (args[0].number(),)
        elif len(args) == 1:
            args = (_number_of(args[0], kind),)
        check_text(args)
        if len(args) != 1 or kwargs or not (is_traced(args[0]) or is_buffer(args[0]) or holds_traced(args)):
            return kind(*args, **kwargs)
        found = fnp.asarray(args[0])
        if issubclass(kind, np.integer) and not found.shape:
            found = as_python_int(found)  # Python may use it as an index
            return found if is_traced(found) else kind(found)
        return fnp.asarray(found, kind) if found.shape else as_number(fnp.astype(found, kind))

    return made


def as_writable(made: Any, *given: Any) -> Any:
    """Return arrays of numbers that NumPy has just made as arrays that traced values can be written to.

    An array that shares memory with a ``given`` one is returned unchanged: the given one would not see the write.
    """
    if type(made) is np.ndarray:
        if any(_shares_memory(made, x) for x in given) or made.dtype.kind not in "fcbiu":
            return made
        return make_buffer(made) if is_worker() else as_buffer(made)
    return type(made)([as_writable(part, *given) for part in made]) if type(made) in (tuple, list) else made


def _shares_memory(made: Any, x: Any) -> bool:
    """Whether an array shares memory with another one, or with one in a list or tuple."""
    if type(x) in (tuple, list):
        return any(_shares_memory(made, part) for part in x)
    is_view = made.base is not None and isinstance(x, np.ndarray)
    return made is x or (is_view and np.may_share_memory(made, x))


#: Attributes of functions that make arrays: methods of ufuncs, and the function for ordinary arrays.
_METHODS = {"accumulate", "of_arrays", "outer", "reduce", "reduceat"}


@cache
def with_writable_results(fun: Any) -> Any:
    """Return ``fun`` such that traced values can be written to the arrays in its results."""

    @wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        return as_writable(fun(*args, **kwargs), *args, *kwargs.values())

    for name in vars(fun).keys() & _METHODS if hasattr(fun, "__dict__") else ():
        setattr(made, name, with_writable_results(getattr(fun, name)))
    return made


def has_attribute(x: Any, name: str, /) -> bool:
    """Return ``hasattr(x, name)``; a traced Python number has the attributes of a number, so no ``shape``."""
    return hasattr(x, name) and (type(x) is not Tracer or is_jax_tracer(plain_value(x)) or hasattr(x.__class__, name))


def attribute_of(x: Any, name: str, /, *default: Any) -> Any:
    """Return ``getattr(x, name, *default)``; the default for what ``has_attribute`` denies."""
    return default[0] if default and type(x) is Tracer and not has_attribute(x, name) else getattr(x, name, *default)


def is_instance(x: Any, classes: Any, /) -> bool:
    """Return ``isinstance(x, classes)``; objects that represent arrays of a class derived from ndarray are arrays."""
    if type(x) is Tracer:  # the class may be an attribute of ``collections.abc``, or one of a tuple
        classes = map_nested(lambda cls: ABSTRACT.get(cls, cls), classes)
    if type(x) is FunctionType and _replaces_ufunc(x):
        return issubclass(np.ufunc, classes)
    return isinstance(x, classes) or (issubclass(type(x), Proxy) and issubclass(x.array_class(), classes))


def _replaces_ufunc(fun: FunctionType) -> bool:
    """Whether ``fun`` is the function of funcgrad that rebuilt code has in place of a ufunc."""
    return hasattr(fun, "nin") and fun.__module__.startswith("funcgrad.")


def is_subclass(kind: Any, classes: Any, /) -> bool:
    """Return ``issubclass(kind, classes)``; a class that represents one derived from ndarray counts as that class."""
    return issubclass(kind, classes) or issubclass(getattr(kind, "numpy_class", None) or kind, classes)


class _Abstract(type):
    """Metaclass of replacements for abstract classes that treat a traced number as a number."""

    real: Any

    def __instancecheck__(cls, x: Any) -> bool:
        return issubclass(x.__class__, cls.real) if type(x) is Tracer else isinstance(x, cls.real)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.real)

    def __getitem__(cls, item: Any) -> Any:
        return cls.real[item]


#: Replacements for abstract classes that check for a method: every traced value has the methods of arrays.
ABSTRACT: dict[Any, Any] = {
    cls: _Abstract(cls.__name__, (), {"real": cls})
    for cls in (abc.Collection, abc.Container, abc.Hashable, abc.Iterable, abc.Sized, SupportsIndex)
}


def super_of(cls: Any, *rest: Any) -> Any:
    """Return ``super(cls, x)``, which continues after the user's class.

    Otherwise ``super`` of a rebuilt class would find the user's class next, and its methods would run twice.
    """
    return super(members_of(cls).get("__original__", cls) if isinstance(cls, type) else cls, *rest)


def length_of(x: Any, /) -> Any:
    """Return ``len(x)``, traced for a part ``x[mask]`` of unknown length."""
    return x.shape[0] if is_selection(x) else len(x)


#: Replacements for classes and functions in calls; for ``super``, in calls with a class.
CONVERSIONS: dict[Any, Any] = {
    float: as_float, int: as_int, complex: as_complex, type: type_of, hasattr: has_attribute,
    getattr: attribute_of, len: length_of,
    isinstance: is_instance, issubclass: is_subclass, super: super_of,
}  # fmt: skip
