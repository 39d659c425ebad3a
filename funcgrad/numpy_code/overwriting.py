"""Ordinary arrays that a function uses and changes afterwards, such as ``w *= 0.9`` after ``w * x``.

Records refer to the arrays that an operation used, so reverse mode would use the new numbers. To compare every array
with its numbers at the time of use would slow down small programs. So the first call of each function compares them,
because any call may change arrays: ``np.multiply(w, 2.0, w)``, ``setattr``, compiled code. A function that does change
one is rebuilt with arrays that notice writes; where it still changes an ordinary array, the error is raised.

A later call may take another path: its arguments have other shapes, or Python branches on traced values. If the code of
a function can change arrays, later calls note their path, and arrays are compared on each new one.
"""

from __future__ import annotations

import builtins
import dis
import zlib
from collections.abc import Callable
from functools import partial
from threading import get_ident
from types import CodeType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from funcgrad.batching import BatchTrace
from funcgrad.blocks import Block, Watcher, current, end_early, forget_ended, last_entered
from funcgrad.core import Primitive, Trace, Tracer
from funcgrad.errors import ConversionError
from funcgrad.forward import ForwardTrace
from funcgrad.numpy_code.libraries import package_of
from funcgrad.shared_state import followed_paths, open_path

#: Largest number of operations, and of bytes of arrays, that the first call looks at: a loop soon repeats itself.
_MOST_OPERATIONS, _MOST_BYTES = 1_000, 1 << 27
#: Traces that compute derivatives and batches at once.
_WITHOUT_RECORDS = (ForwardTrace, BatchTrace)
#: Size from which on a sum of the bytes stands for the numbers of an array.
_LARGE = 256
#: Number of paths of a function that are known at most; arrays are not compared on further ones.
MOST_PATHS = 32
#: Instructions that store an element or a slice, the one for operators, and its arguments for operators such as ``+=``.
_STORES = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}
_OPERATOR, _IN_PLACE = dis.opmap["BINARY_OP"], range(13, 26)
_BUILTINS, _PLAIN = frozenset(dir(builtins)), frozenset((bool, int, float, complex, str))
#: Names of methods, functions and arguments that change arrays.
_CHANGING = frozenset(
    (
        *("byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "sort", "__setitem__"),
        *("copyto", "fill_diagonal", "place", "put_along_axis", "putmask", "shuffle", "at", "setattr", "setitem"),
        *("iadd", "isub", "imul", "itruediv", "ipow", "out", "overwrite_a", "overwrite_b", "overwrite_x"),
    )
)


def may_change_arrays(code: CodeType, names: dict[str, Any] | None = None) -> bool:
    """Whether a code, or that of a function inside, may make ordinary arrays, or name them, and change one.

    Args:
        code: the code.
        names: the global names of the function, if they are known.
    """
    if any(may_change_arrays(x, names) for x in code.co_consts if type(x) is CodeType):
        return True
    if not code.co_freevars and not any(_may_give_arrays(name, names) for name in code.co_names):
        return False
    steps = code.co_code
    keywords = [name for x in code.co_consts if type(x) is tuple for name in x if type(name) is str]
    return not _CHANGING.isdisjoint((*code.co_names, *keywords)) or any(
        op in _STORES or (op == _OPERATOR and arg in _IN_PLACE) for op, arg in zip(steps[::2], steps[1::2], strict=True)
    )


def _may_give_arrays(name: str, names: dict[str, Any] | None) -> bool:
    """Whether a name in a code may stand for an ordinary array, or for a module or function that makes one."""
    if name in _BUILTINS:
        return False
    if names is None:
        return True
    value = names.get(name)  # None for the name of an attribute
    home = value.__name__ if type(value) is ModuleType else getattr(value, "__module__", None)
    return value is not None and type(value) not in _PLAIN and package_of(home) != "funcgrad"


class _Path:
    """Path of one call.

    Attributes:
        mark: the same number for calls with arguments of the same shapes and the same answers on which Python branches.
    """

    __slots__ = ("__weakref__", "mark")

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.mark = hash(tuple([x.aval if type(x) is Tracer else getattr(x, "shape", None) for x in args]))

    def take(self, answer: Any) -> None:
        """Note an answer: a truth value, whether all or any of an array are true, or the length of an integer."""
        kind = type(answer)
        if kind is not bool and kind is not np.bool:
            if kind is np.ndarray:
                count = np.count_nonzero(answer)
                answer = count > 0, count == answer.size
            elif kind is int:
                answer = answer.bit_length()
            else:
                return  # a traced value: if Python branches on it, it asks for the truth value
        self.mark = hash((self.mark, answer))


def _rewind() -> Callable[[], None] | None:
    """Return what makes a runner of operations, or the path that JAX compiles, forget those from now on; or None."""
    runner = current().runner if last_entered() is not None else None
    if runner is None:
        runner = open_path.get()
    return None if runner is None else runner.mark()


class CheckedForWrites:
    """``fun``, whose calls on a new path raise an error if they change an array that they have used.

    Args:
        fun: a function.
        done: ``done(mark)`` is called if operations were looked at and no array was changed, with the mark of the path.
        paths: the marks of paths on which calls are not looked at.

    Attributes:
        rewind: makes a runner of operations forget those since this object was made; None without a runner.
    """

    __slots__ = ("done", "fun", "paths", "rewind")

    def __init__(self, fun: Any, done: Callable[[int], None], paths: Any = frozenset()) -> None:
        self.fun, self.done, self.paths = fun, done, paths
        self.rewind = _rewind()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; run it again if it took a new path, unless a function around it does so.

        Raises:
            ConversionError: an operation used an array that the function changed afterwards.
        """
        thread, paths = get_ident(), self.paths
        known = followed_paths.get(thread)
        if known is not None and known() is None:  # an interrupt kept a call from ending its path
            known = None
        if known is not None and paths:  # the path is a part of that of a function around, which would run again
            return self.fun(*args, **kwargs)
        path = _Path(args)
        followed_paths[thread] = ref(path)
        try:
            if paths:
                rewind = _rewind()
                out = self.fun(*args, **kwargs)
                if path.mark in paths or len(paths) >= MOST_PATHS:
                    return out
                if rewind is not None:
                    rewind()
                path = _Path(args)
                followed_paths[thread] = ref(path)
            return self._look(args, kwargs, path)
        finally:
            if known is None:
                followed_paths.pop(thread, None)
            else:
                followed_paths[thread] = known

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any], path: _Path) -> Any:
        """Run the function, and compare the arrays that it uses."""
        look = _Look(current().watcher)
        try:
            with Block(lambda state: state._replace(watcher=look)):
                out = self.fun(*args, **kwargs)
                unchanged = look.is_unchanged()
        except Exception:
            look.forget()
            raise
        finally:
            forget_ended()  # later calls look whether any block was entered
        if unchanged and look.saw_operations:
            self.done(path.mark)
        return out

    def with_fun(self, fun: Any) -> CheckedForWrites:
        """Return the same for another function."""
        return CheckedForWrites(fun, self.done, self.paths)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fun, name)


def unchecked(fun: Any) -> Any:
    """Return the function that ``CheckedForWrites`` calls; any other as it is."""
    return fun.fun if type(fun) is CheckedForWrites else fun


class _Look:
    """Watcher that notes the ordinary arrays that operations use, and their numbers.

    Args:
        outer: the watcher around this one, which does all else; or None.

    Attributes:
        saw_operations: whether there was an operation on traced values.
    """

    def __init__(self, outer: Watcher | None) -> None:
        self.nans, self.all = outer is not None and outer.nans, outer is not None and outer.all
        self.meter = None if outer is None else outer.meter
        self.writes = outer is not None and outer.writes  # a record of a write does not refer to what is written
        self._outer = outer
        self._left, self._bytes = _MOST_OPERATIONS, _MOST_BYTES
        self._noted: dict[int, tuple[np.ndarray, Any, str, bool]] = {}
        self._noted_before = set(outer._noted) if type(outer) is _Look else set()
        self.saw_operations = False

    @property
    def dropped(self) -> list[Any]:
        """Cases in which a VJP rule returned None for a parent."""
        return [] if self._outer is None else self._outer.dropped

    def begin(self, trace: Trace) -> Any:
        """Return the ``cuts`` of a new trace."""
        return None if self._outer is None else self._outer.begin(trace)

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let ``trace`` process the operation."""
        if self._left and self._bytes >= 0:
            keeps = type(trace) not in _WITHOUT_RECORDS
            for x in args:
                if issubclass(type(x), np.ndarray):
                    self._note(x, primitive.name, keeps)
            self._left -= 1
        else:
            end_early(self)
        self.saw_operations = True
        process = trace.process if self._outer is None else partial(self._outer.process, trace)
        return process(primitive, args, params)

    def note_stopped(self, trace: Trace, args: tuple[Any, ...]) -> None:
        """Note an operation that ``no_grad`` hides from ``trace``."""
        if self._outer is not None:
            self._outer.note_stopped(trace, args)

    def backward_pass(self, pending: dict[int, Any]) -> Any:
        """Return the watcher of a backward pass inside of the function."""
        return None if self._outer is None else self._outer.backward_pass(pending)

    def _note(self, x: np.ndarray, name: str, keeps: bool) -> None:
        """Note an array; anew if an operation ``keeps`` it, and those before did not."""
        before = self._noted.get(id(x))
        if before is None or (keeps and not before[-1]):
            self._bytes -= x.nbytes
            self._noted[id(x)] = x, numbers_of(x), name, keeps

    def forget(self) -> None:
        """Let the look around this one forget the arrays that it noted since: the function may run again."""
        if type(self._outer) is _Look:
            for key in self._noted.keys() - self._noted_before:
                self._outer._noted.pop(key, None)

    def is_unchanged(self) -> bool:
        """Whether all noted arrays have their numbers still.

        Raises:
            ConversionError: one has other numbers, and a record refers to it.
        """
        unchanged = True
        for x, numbers, name, is_kept in self._noted.values():
            if numbers_of(x) == numbers:
                continue
            unchanged = False
            if is_kept:
                error = ConversionError(
                    f"{name}: the function changed an array after this operation had used it, got {x.dtype}"
                    f"{list(x.shape)}, so that reverse mode would use the new numbers. Make a new array, as w = w * "
                    "0.9 in place of w *= 0.9."
                )
                error.overwritten = True
                raise error
        return unchanged


def numbers_of(x: np.ndarray) -> Any:
    """Return the numbers of an array as bytes, or a sum of the bytes of a large one."""
    if x.size < _LARGE:
        return x.tobytes()
    whole: Any = np.ascontiguousarray(x)
    return zlib.crc32(whole.data.cast("B"))
