"""Ordinary arrays that a function uses and changes afterwards, such as ``w *= 0.9`` after ``w * x``.

Records refer to the arrays that an operation used, so reverse mode would use the new numbers. To compare every array
with its numbers at the time of use would slow down small programs. So the first call of a function whose code may
change arrays compares them, and a function that does change one is rebuilt with arrays that notice writes.
"""

from __future__ import annotations

import dis
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from funcgrad.blocks import Block, Watcher, current
from funcgrad.core import Primitive, Trace
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.libraries import is_kept, package_of

#: Largest number of operations, and of bytes of arrays, that the first call looks at: a loop soon repeats itself.
_MOST_OPERATIONS, _MOST_BYTES = 1_000, 1 << 27
#: Size from which on a sum of the bytes stands for the numbers of an array.
_LARGE = 256
_STORING = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}
_BINARY, _IN_PLACE = dis.opmap["BINARY_OP"], range(13, 26)
#: Methods and functions that change an array.
_CHANGING = {"at", "copyto", "fill", "fill_diagonal", "partition", "place", "put", "put_along_axis", "putmask"}
_CHANGING |= {"itemset", "setfield", "shuffle", "sort"}
#: Largest number of functions and objects that are looked at.
_MOST_VALUES = 300
_CALLABLE = (FunctionType, MethodType, staticmethod, classmethod, partial)


def may_change_arrays(fun: Any) -> bool:
    """Whether the code of ``fun``, or of functions, methods and classes that it names, has steps that change arrays."""
    waiting: list[Any] = [fun]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_VALUES:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, ModuleType):
            continue
        seen.add(id(value))
        if type(value) is FunctionType:
            if _is_of_library(value):
                continue
            if _changes(value.__code__):
                return True
            waiting += [value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__]
            waiting += _contents(value)
        elif type(value) is MethodType:
            waiting += [value.__func__, value.__self__]
        elif isinstance(value, partial):
            waiting += [value.func, *value.args]
        elif type(value) in (list, tuple, dict):
            waiting += value.values() if type(value) is dict else value
        else:
            waiting += _functions_of(value)
    return bool(waiting)  # too many to look at


def _changes(code: CodeType) -> bool:
    if not _CHANGING.isdisjoint(code.co_names):
        return True
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    if any(op in _STORING or (op == _BINARY and arg in _IN_PLACE) for op, arg in steps):
        return True
    return any("out" in c if type(c) is tuple else type(c) is CodeType and _changes(c) for c in code.co_consts)


def _functions_of(value: Any) -> list[Any]:
    """Return the functions in the attributes of an object, and of its class; of a class, its methods."""
    kind, found = (value, []) if isinstance(value, type) else (type(value), _attributes(value))
    if not _is_of_library(kind):
        found = [*found, *[x for base in kind.__mro__ for x in vars(base).values()]]
    return [x.__func__ if isinstance(x, (staticmethod, classmethod)) else x for x in found if isinstance(x, _CALLABLE)]


def _attributes(value: Any) -> list[Any]:
    """Return the attributes of an object without asking its class, which may make attributes up."""
    try:
        own: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return list(own.values())


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*[_names(c) for c in code.co_consts if type(c) is CodeType])


def _contents(fun: FunctionType) -> list[Any]:
    found = list(fun.__defaults__) if fun.__defaults__ else []
    for cell in fun.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # the variable has no value yet
            pass
    return found


def held_codes(fun: Any) -> tuple[int, ...]:
    """Return the ``id`` of the codes of the functions that ``fun`` holds, which differ between wrappers with one code.

    They are in its closure variables, in the attributes of the object of a method or of a callable object, and in those
    of these functions.
    """
    found: list[int] = []
    _add_held(fun, found, 3)
    return tuple(found)


def _add_held(fun: Any, found: list[int], depth: int) -> None:
    if type(fun) is FunctionType:
        values = _contents(fun)
    elif type(fun) is MethodType:
        values = _attributes(fun.__self__)
    else:
        values = [fun.func, *fun.args] if isinstance(fun, partial) else _attributes(fun)
    for value in values:
        kind = type(value)
        if kind is FunctionType:
            found.append(id(value.__code__))
            if depth and value.__closure__:
                _add_held(value, found, depth - 1)
        elif kind is MethodType and depth:
            if type(value.__func__) is FunctionType:
                found.append(id(value.__func__.__code__))
            _add_held(value, found, depth - 1)


def _is_of_library(x: Any) -> bool:
    module = getattr(x, "__module__", None)
    return package_of(module) in ("numpy", "scipy", "funcgrad") or (module != "builtins" and is_kept(module))


class FirstCall:
    """``fun``, to be called once: it raises an error if it changes an array that it has used.

    Args:
        fun: a function.
        done: called if no array was changed, with the functions to which the call applied transforms, as ``_Look``
            notes them.
    """

    __slots__ = ("done", "fun")

    def __init__(self, fun: Any, done: Callable[[list[tuple[CodeType, tuple[int, ...]]]], None]) -> None:
        self.fun, self.done = fun, done

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function.

        Raises:
            ConversionError: an operation used an array that the function changed afterwards.
        """
        with ExitStack() as stack:
            look = _Look(current().watcher, stack)
            stack.enter_context(Block(lambda state: state._replace(watcher=look)))
            out = self.fun(*args, **kwargs)
        look.check()
        self.done(look.functions)
        return out

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fun, name)


def is_part_of_call(code: CodeType, held: tuple[int, ...]) -> bool:
    """Whether a ``FirstCall`` is running in this context, which looks at the function with this code, too."""
    look = current().watcher
    if type(look) is not _Look:
        return False
    look.functions.append((code, held))
    return True


class _Look:
    """Watcher that notes the ordinary arrays that operations use, and their numbers.

    Args:
        outer: the watcher around this one, which does all else; or None.
        stack: what to close when enough operations were looked at.

    Attributes:
        functions: functions to which transforms were applied inside: their code and ``held_codes``.
    """

    def __init__(self, outer: Watcher | None, stack: ExitStack) -> None:
        self.nans, self.all = outer is not None and outer.nans, outer is not None and outer.all
        self.meter = None if outer is None else outer.meter
        self.writes = outer is not None and outer.writes  # a record of a write does not refer to what is written
        self.functions: list[tuple[CodeType, tuple[int, ...]]] = []
        self._outer, self._stack = outer, stack
        self._left, self._bytes = _MOST_OPERATIONS, _MOST_BYTES
        self._noted: dict[int, tuple[np.ndarray, Any, str]] = {}

    @property
    def dropped(self) -> list[Any]:
        """Cases in which a VJP rule returned None for a parent."""
        return [] if self._outer is None else self._outer.dropped

    def begin(self, trace: Trace) -> Any:
        """Return the ``cuts`` of a new trace."""
        return None if self._outer is None else self._outer.begin(trace)

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let ``trace`` process the operation."""
        for x in args:
            if type(x) is np.ndarray:
                self._note(x, primitive.name)
        self._left -= 1
        if not self._left or self._bytes < 0:
            self._stack.close()
        process = trace.process if self._outer is None else partial(self._outer.process, trace)
        return process(primitive, args, params)

    def note_stopped(self, trace: Trace, args: tuple[Any, ...]) -> None:
        """Note an operation that ``no_grad`` hides from ``trace``."""
        if self._outer is not None:
            self._outer.note_stopped(trace, args)

    def backward_pass(self, pending: dict[int, Any]) -> Any:
        """Return the watcher of a backward pass inside of the function."""
        return None if self._outer is None else self._outer.backward_pass(pending)

    def _note(self, x: np.ndarray, name: str) -> None:
        if id(x) not in self._noted:
            self._bytes -= x.nbytes
            self._noted[id(x)] = x, _numbers(x), name

    def check(self) -> None:
        """Raise an error if a noted array has other numbers."""
        for x, numbers, name in self._noted.values():
            if _numbers(x) != numbers:
                error = ConversionError(
                    f"{name}: the function changed an array after this operation had used it, got {x.dtype}"
                    f"{list(x.shape)}, so that reverse mode would use the new numbers. Make a new array, as w = w * "
                    "0.9 in place of w *= 0.9."
                )
                error.overwritten = True
                raise error


def _numbers(x: np.ndarray) -> Any:
    if x.size < _LARGE:
        return x.tobytes()
    whole: Any = np.ascontiguousarray(x)
    return zlib.crc32(whole.data.cast("B"))
