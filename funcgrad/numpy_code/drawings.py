"""Libraries that draw, such as Matplotlib: they get the numbers of traced values, and no derivative comes back.

A program asks such a library for objects, and asks these for more: ``axes.plot(x, y)[0].set_data(x, z)``. Each of them
is a ``Drawing`` in rebuilt code. It passes plain numbers on, and what it returns is a ``Drawing`` again. Numbers that a
call returns for traced values refuse their derivative where one is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds.general import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.plain_values.texts import TracedText
from funcgrad.numpy_code.conversions import is_traced, numbers_of
from funcgrad.numpy_code.libraries import DRAWING_PACKAGES, REBUILT_MODULES, module_of, package_of
from funcgrad.numpy_code.metaclasses import mro_of

__all__ = ["Drawing", "is_of_drawing", "without_view"]


def is_of_drawing(value: Any) -> bool:
    """Whether a module, a function, or an object's class or one of its bases is from a library that draws.

    Example:
        >>> import math
        >>> is_of_drawing(math), is_of_drawing(math.sin), is_of_drawing(1.0)
        (False, False, False)
    """
    if isinstance(value, ModuleType):
        return package_of(value.__name__) in DRAWING_PACKAGES and value.__name__ not in REBUILT_MODULES
    module = module_of(value)  # of an object, that of its class
    if package_of(module) in DRAWING_PACKAGES:
        return module not in REBUILT_MODULES
    return any(package_of(cls.__module__) in DRAWING_PACKAGES for cls in mro_of(type(value))[1:-1])


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotDifferentiableError(
        "a drawing of x: a number that a library for pictures computed from traced values has no derivative. Compute "
        "it with NumPy, such as the edges of plt.hist with numpy.histogram, or pass stop_gradient(x) to the library."
    )


#: ``number_of_picture(x, number)`` is ``number``, which a library that draws computed from ``x``. Its derivative is
#: refused in reverse mode, and NaN in forward mode, where nobody knows yet whether the program uses the number.
number_of_picture: Operation = primitive(
    "number_of_picture",
    lambda xp, x, number: number,
    vjps=[_refuse, None],
    jvps=[lambda t, ans: np.full(np.shape(ans), np.nan) * fnp.sum(t), None],
    batch=lambda size, args, batched, params: (args[1], batched[1]),
)


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """Apply ``change`` to what is in nested lists, tuples, dictionaries and arrays of objects."""
    if type(x) in (list, tuple):
        return type(x)([_mapped(change, part) for part in x])
    if type(x) is dict:
        return {name: _mapped(change, part) for name, part in x.items()}
    if type(x) is not np.ndarray or x.dtype != object:
        return change(x)
    made = np.empty(x.size, object)
    for at, part in enumerate(x.flat):  # as a whole, NumPy would ask each for its length
        made[at] = _mapped(change, part)
    return made.reshape(x.shape)


def as_drawing(value: Any, drawn: Sequence[Any] = ()) -> Any:
    """Return what a library that draws returned for the traced values ``drawn``, also in containers.

    Its objects become a ``Drawing``; numbers and arrays, such as the edges of a histogram, refuse their derivative.
    """

    def one(x: Any) -> Any:
        if drawn and isinstance(x, (float, complex, np.ndarray, np.inexact)) and backend.is_inexact(x):
            return reduce(lambda found, traced: number_of_picture(traced, found), drawn, x)
        return Drawing(x) if is_of_drawing(x) else x

    return _mapped(one, value)


def _plain(value: Any, drawn: list[Any] | None = None) -> Any:
    """Return what a library that draws gets for ``value``: plain numbers, which it may keep, and its own objects.

    The traced values are added to the list ``drawn``.
    """

    def one(x: Any) -> Any:
        if not issubclass(type(x), Tracer):
            return str.__str__(x) if type(x) is TracedText else without_view(x)
        if drawn is not None and is_traced(x):
            drawn.append(x)
        return numbers_of(x, "a drawing of x")[()]

    return _mapped(one, value)


class Drawing:
    """An object, class, function or module of a library that draws; it is used as that one, by traced values too.

    Args:
        shown: the object of the library.
    """

    __slots__ = ("_shown",)

    def __init__(self, shown: Any) -> None:
        object.__setattr__(self, "_shown", shown)

    @property  # type: ignore[misc]  # typeshed has a setter, too
    def __class__(self) -> Any:
        """The class of the library's object, for ``isinstance``; a class or module has not its dictionary."""
        kind = type(shown_by(self))
        return Drawing if issubclass(kind, (type, ModuleType)) else kind

    def __getattr__(self, name: str) -> Any:
        return as_drawing(getattr(shown_by(self), name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(shown_by(self), name, _plain(value))

    def __delattr__(self, name: str) -> None:
        delattr(shown_by(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the library with plain numbers."""
        drawn: list[Any] = []
        given, named = _plain(args, drawn), _plain(kwargs, drawn)
        return as_drawing(shown_by(self)(*given, **named), drawn)

    def __iter__(self) -> Iterator[Any]:
        return map(as_drawing, shown_by(self))

    def __instancecheck__(self, other: Any) -> bool:
        return isinstance(_plain(other), shown_by(self))

    def __subclasscheck__(self, other: Any) -> bool:
        return issubclass(_plain(other), shown_by(self))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (shown_by(self),)

    def __repr__(self) -> str:
        return repr(shown_by(self))

    def __hash__(self) -> int:
        return hash(shown_by(self))


def without_view(x: Any) -> Any:
    """Return the library's object behind a ``Drawing``; any other value unchanged."""
    return shown_by(x) if type(x) is Drawing else x


#: Return the library's object behind a ``Drawing``.
shown_by: Callable[[Any], Any] = Drawing.__dict__["_shown"].__get__


def _operator(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: as_drawing(fun(shown_by(self), *map(_plain, args)))


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args: as_drawing(getattr(shown_by(self), name)(*map(_plain, args)))


for _fun in (len, bool, dir, str):
    setattr(Drawing, f"__{_fun.__name__}__", _operator(_fun))
for _name in ("getitem", "setitem", "delitem", "contains", "eq", "ne", "add", "sub", "or", "and", "mul", "neg"):
    setattr(Drawing, f"__{_name}__", _operator(getattr(operator, f"__{_name}__")))
for _name in ("enter", "exit"):
    setattr(Drawing, f"__{_name}__", _method(f"__{_name}__"))
