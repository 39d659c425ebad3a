"""Where Python or NumPy asks a tracer for a plain value: what is answered, what is refused, and how it prints.

Truth values and integer indices cut no derivative, so a tracer gives them wherever it stands for one
value. A number or an ndarray would silently leave the derivative behind: refused, with the user's line.
Inside ``no_grad`` an older tracer is a constant, and answers.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from contextlib import nullcontext
from types import MethodType
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend, blocks
from funcgrad.batching import BatchTrace, shared
from funcgrad.core import Tracer, describe, raise_escaped, repeated, traces_of, twin
from funcgrad.errors import ConcretizationError, ConversionError, ReadOnlyError
from funcgrad.graph import steer
from funcgrad.numpy.hints import remedies, user_frame, user_line
from funcgrad.numpy.texts import Shown, has_all_digits, refuse_text
from funcgrad.running import noted, refused
from funcgrad.writable import bottom, buffer, inside, is_buffer

__all__ = [
    "CONCRETIZATION", "Elsewhere", "as_number", "as_python", "check_text", "concrete", "constant", "constant_array",
    "forgive", "keeping", "note_constant", "other_thread", "refuse", "refused", "run_here", "user_frame", "user_line",
]  # fmt: skip


def refuse(x: Tracer, asked: str) -> NoReturn:
    """Refuse to turn ``x`` into a plain value, which ``asked`` names."""
    kind = type(x._trace).__name__.removesuffix("Trace").lower()
    batch = _batch_below(x)
    lost = "derivative" if batch is None else "batch"
    found = remedies(asked, None if batch is None else batch.size)
    if elsewhere := other_thread():
        found.insert(0, elsewhere.strip())
    error = ConversionError(
        f"{asked}: a plain value was asked of a traced one, which would lose the {lost}, got {describe(x)} in {kind} "
        f"mode{user_line()}. {found[0]}"
    )
    for other in found[1:]:
        error.add_note(other)
    owner = _thread_of(x)
    refused[owner] = str(error) if owner == threading.get_ident() else Elsewhere(error)
    try:
        raise error
    finally:
        del error  # it holds this frame


def note_constant(error: ReadOnlyError) -> None:
    """Note that a constant was written to, in code that was built anew: the function may go on after that."""
    if run_here() is not None:
        error.of_constant = True
        refused[threading.get_ident()] = str(error)


class Elsewhere(str):
    """What was refused in a thread that works for a transform which another one runs."""

    __slots__ = ()


def forgive() -> None:
    """Forget what was refused in this thread: what was refused is computed in another way."""
    refused.pop(threading.get_ident(), None)


def _thread_of(x: Tracer) -> int:
    """The thread that runs the transform which ``x`` belongs to."""
    here, owner = threading.get_ident(), x._trace.thread
    return owner if owner not in (0, here) and not inside() else here


def other_thread() -> str:
    """What to say of a traced value in a thread that does not know that it works for a transform."""
    if inside():
        return ""
    return (
        " This thread is not the one that runs the transform, so arrays that funcgrad.numpy makes here are NumPy's: "
        "make the array in the thread that runs it and hand it to this one, or join what the threads give with "
        "funcgrad.numpy.stack."
    )


def _batch_below(x: Any) -> BatchTrace | None:
    """The innermost ``vmap`` among the traces of ``x``."""
    while isinstance(x, Tracer):
        if isinstance(x._trace, BatchTrace):
            return x._trace
        x = x._val
    return None


def concrete(x: Tracer, asked: str, *, steers: bool = True) -> Any:
    """The array or number that ``x`` stands for in the end.

    Args:
        x: a tracer.
        asked: what asks, for messages.
        steers: whether the run goes on by it, so that graphs must remember it; what only prints it does not.

    Raises:
        ConcretizationError: the examples of a ``vmap`` have different values.
    """
    x = shared(x)
    batch = _batch_below(x)
    plain = bottom(x) if batch is None else _of_all_examples(x)
    if plain is None and batch is not None:
        raise _differs(x, asked, batch.size)
    return steer(x, plain) if steers else plain


def _of_all_examples(x: Tracer) -> Any:
    """The value of all examples of the ``vmap``s behind ``x``, a value of a graph perhaps; None where they differ."""
    whole, hidden = bottom(x), sum([trace.hidden for trace in traces_of([x])])
    if backend.is_stand_in(whole):
        return None
    rows = np.reshape(whole, (-1, *np.shape(whole)[hidden:]))
    return rows[0] if len(rows) and bool(np.all(rows == rows[0])) else None


def _differs(x: Tracer, asked: str, size: int) -> ConcretizationError:
    """The error where one value is ``asked`` of a traced value that has another in each example of a ``vmap``."""
    ways = [
        "Instead of `if`, `while`, `and`, `or`, `not`, min or max use funcgrad.numpy's where(condition, a, b), "
        "logical_and, minimum, ...",
        "Instead of an index use funcgrad.numpy's take(table, x, axis=0).",
    ]
    first, second = ways[::-1] if asked == "index(x)" else ways
    error = ConcretizationError(
        f"{asked}: one value was asked for, got {describe(x)} that differs between the {size} examples of a vmap"
        f"{user_line()}. {first}"
    )
    error.add_note(second)
    error.add_note("To take one example at a time, use funcgrad.control.map(f, xs).")
    return error


def constant(x: Any) -> Any:
    """``x`` without the tracers that an enclosing ``no_grad`` makes constants of; the array of a buffer."""
    if is_buffer(x):
        return x._val
    if type(x) is Tracer and x._trace.repeats:  # the recording remembers the answer, and asks again
        return steer(x, x._val)
    if blocks.here() is not None:
        floor = blocks.current().floor
        while isinstance(x, Tracer) and x._trace.differentiates and x._trace.level < floor:
            x = x._val
    return x


def _check_open(x: Tracer) -> None:
    if not x._trace.open and not repeated(x._trace.level):
        raise_escaped(type(x._trace))


def _bool(x: Tracer) -> bool:
    """The truth value of one element; it steers Python's control flow and carries no derivative."""
    _check_open(x)
    if x.dtype.kind != "b" and _batch_below(x) is not None:
        x = operator.ne(x, 0)  # which examples with different numbers may share
    x = shared(x)
    try:
        answer: bool = steer(x, bool(concrete(x, "bool(x)", steers=False)))
    except TypeError as error:
        _note("bool(x)", x, error)
        raise
    return answer


def _index(x: Tracer) -> int:
    """The integer, for Python's indexing and ``range``."""
    _check_open(x)
    if x.dtype.kind not in "iu":
        raise ConcretizationError(
            f"index(x): an index or a length must be an integer, got {describe(x)}{user_line()}. "
            + (
                "Pass one integer; arrays to join come in one list, as in concatenate([a, b])."
                if x.shape
                else "Convert it with x.astype(int), which is a constant for derivatives."
            )
        )
    x = shared(x)
    try:
        answer: int = steer(x, operator.index(concrete(x, "index(x)", steers=False)))
    except TypeError as error:
        _note("index(x)", x, error)
        raise
    return answer


def _note(asked: str, x: Tracer, error: TypeError) -> None:
    """Remember that ``x`` has no one value for what is ``asked``: who catches the error goes on in another way."""
    if isinstance(error, ConcretizationError):
        noted(error)
    elif backend.is_stand_in(bottom(x)):
        noted(error, f"{asked}: a plain value was asked of one that is not known yet, got {describe(x)}{user_line()}.")


def _int(x: Tracer) -> int:
    """``int(x)``: of an integer itself, which has no derivative."""
    return _index(x) if x.dtype.kind in "iu" and not x.shape else _PLAIN_INT(x)


def _whole(x: Tracer) -> Any:
    """The integer that all examples of a ``vmap`` share, which shows as it does outside; None for other values."""
    if x.shape or x.dtype.kind not in "biu" or _batch_below(x) is None:
        return None
    one = shared(x)
    return None if _batch_below(one) is not None else concrete(one, "str(x)")


def _format(x: Tracer, spec: str) -> str:
    """``spec`` applied to the value, for printing; without a ``spec`` the tracer itself shows.

    Of a number in a ``vmap`` the numbers of all examples show, as an array does.
    """
    if (whole := _whole(x)) is not None:
        return format(whole, spec)
    if not spec:
        return repr(x)
    bottom: Any = x
    while isinstance(bottom, Tracer):
        bottom = bottom._val
    if backend.is_stand_in(bottom):
        raise ConcretizationError(
            f"format(x, {spec!r}): a value is not known while jit compiles, got {describe(x)}{user_line()}. Write "
            "f'{x}' to see shape and dtype, or print the numbers when they are computed, with jax.debug.print."
        )
    if x.shape or _batch_below(x) is None:
        return _remembered(x, format(bottom, spec), spec)  # NumPy refuses to format arrays
    shown: Any = {"all": lambda number: format(number, spec)}
    return _remembered(x, np.array2string(np.asarray(bottom), formatter=shown, threshold=20, edgeitems=2), spec)


def _remembered(x: Tracer, text: str, spec: str) -> str:
    """``text``, which shows ``x``: one that knows that, unless ``x`` is a constant."""
    if is_buffer(x) or not _is_followed(x if x._trace.repeats else constant(x)):
        return text
    if (run := run_here()) is not None:
        run.shows(x, text)  # the number itself may be asked for
    else:
        refused.setdefault(_thread_of(x), "")
    return Shown.of(text, x, has_all_digits(spec))


def check_text(values: Any) -> None:
    """See that no number is read from texts that show traced numbers of a run of code that was built anew.

    Args:
        values: texts, and lists and tuples of them; anything else passes.

    Raises:
        ConversionError: one shows a traced number, or a part of one.
    """
    run = run_here()
    if run is None or not run.texts:
        return
    if isinstance(values, (list, tuple)):
        for value in values:
            check_text(value)
    elif isinstance(values, (str, bytes)):
        read = (values if isinstance(values, str) else values.decode("latin-1")).strip()
        for _, shown in run.texts:
            if shown.strip() in read or (len(read) >= _TELLING and read in shown):
                refuse_text(str(values))


_TELLING = 3  # so many characters of a text tell that they are of it


def _is_followed(x: Any) -> bool:
    """Whether a derivative of ``x`` is asked for, or it stands for other values too, in a batch or in later runs."""
    while isinstance(x, Tracer):
        if x._trace.differentiates or x._trace.repeats or isinstance(x._trace, BatchTrace):
            return True
        x = x._val
    return False


def _str(x: Tracer) -> str:
    whole = _whole(x)
    return repr(x) if whole is None else str(whole)


def _repr(x: Tracer) -> str:
    return _remembered(x, _described(x), "")


def _described(x: Tracer) -> str:
    """Kind, level, shape, dtype and value; the value of a nested tracer shows in the same way."""
    value = x._val
    if is_buffer(x):
        return repr(value)
    is_nested = isinstance(value, Tracer)
    with np.printoptions(threshold=20, edgeitems=2) if not is_nested else nullcontext():
        shown = _described(value) if is_nested else repr(value)
        return f"{x._trace.shown}(level={x._trace.level}, {describe(x)}, value={shown})"


def _hash(x: Tracer) -> NoReturn:
    kind = "array" if x.shape else "number"
    error = ConversionError(
        f"hash(x): a traced {kind} cannot be a key of a dictionary, a member of a set or an argument of a cached "
        f"function (lru_cache, memoize), got {describe(x)}{user_line()}. A cache would keep it for the next run: "
        "call the function without its cache (f.__wrapped__), or cache functions of settings only; use strings or "
        "positions as keys; to look a number up in a table, use funcgrad.numpy's searchsorted, take or where."
    )
    raise error if x.shape else noted(error)  # arrays of NumPy's have no hash either


def _pickle(x: Tracer, protocol: Any) -> Any:
    if is_buffer(x):
        return x._val.__reduce_ex__(protocol)
    raise ConcretizationError(
        f"pickle: a traced value belongs to the running transform and cannot be stored or sent, got {describe(x)}"
        f"{user_line()}. Pickle what the transformed function returns, or stop_gradient(x)."
    )


def _copied(x: Tracer) -> Tracer:
    """What ``copy`` makes of a tracer: a write to one is not seen in the other."""
    return buffer(np.array(x._val)) if is_buffer(x) else twin(x)


def _plain(asked: str, convert: Callable[..., Any]) -> Callable[..., Any]:
    """A method that converts a constant and refuses everything else."""

    def method(x: Tracer, *args: Any, **kwargs: Any) -> Any:
        if not x._trace.as_numpy:
            return convert(constant_array(x, asked), *args, **kwargs)
        try:
            return convert(x._val, *args, **kwargs)
        except TypeError as error:  # JAX does not know the value yet
            _note(asked, x, error)
            raise

    return method


_PLAIN_INT = _plain("int(x)", int)


def constant_array(x: Tracer, asked: str) -> Any:
    """The array that ``x``, a constant, stands for; refused where it is traced.

    Raises:
        ConcretizationError: a derivative would be lost by what is ``asked``.
    """
    _check_open(x)
    value = constant(x)
    if isinstance(value, Tracer):
        refuse(value, asked)
    return value


def _as_ndarray(value: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """As an ndarray; without a copy it can only be read, for tapes and callers may hold its memory."""
    made = np.array(value, dtype, copy=copy)
    if made is value:
        made = made.view()
        made.flags.writeable = False
    return made


class _Keeping(threading.local):
    """The run of this thread of code that was built anew, ``open`` or not; None before the first."""

    run: Any = None


keeping = _Keeping()


def run_here() -> Any:
    """The run of rebuilt code that is open in this thread, or None: numbers that it takes out stay traced."""
    run = keeping.run
    return run if run is not None and run.open else None


def _stays(x: Any) -> bool:
    """Whether a number that code takes out of ``x`` stays traced: in code that was built anew, but for constants."""
    return run_here() is not None and (x._trace.as_numpy or isinstance(constant(x), Tracer))


def as_number(x: Any) -> Any:
    """A traced array of one element as a number, which is what ``isinstance`` and ``type`` take it for, too."""
    x = x.reshape(()) if x.shape else x
    return x[()] if issubclass(x.__class__, np.ndarray) else x


def as_python(x: Any) -> Any:
    """A traced number of NumPy's as one of Python's, whose operators raise errors: another object for the same value.

    Of many examples, and in recordings, which compute with NumPy's numbers, it stays what it is.
    """
    value, trace = x._val, x._trace
    if trace.hidden or trace.repeats:
        return x
    if type(value) is np.float64:
        found: Any = float(value)
    else:
        found = as_python(value) if type(value) is Tracer else _plain_number(value)
        if found is value:
            return x
    made = Tracer()  # no twin, which threads wait for: nobody writes to a number
    made._val, made._trace, made.link, made.form = found, trace, x.link, None
    return made


def _plain_number(value: Any) -> Any:
    """A complex number as Python's. One of single precision has a record in single precision."""
    return value.item() if type(value) is np.complex128 else value


def _item(x: Any, *args: Any) -> Any:
    """One element as a number: of a traced array a traced one, for code that was built anew."""
    if not _stays(x):
        return _of_ndarray("item")(x, *args)
    place = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    one = x[place] if len(place) > 1 or (place and x.ndim == 1) else x.reshape(-1)[place[0]] if place else as_number(x)
    return as_python(one)


def _list(x: Any) -> Any:
    """Nested lists of the elements, as ``_item`` has them."""
    if not _stays(x):
        return _of_ndarray("tolist")(x)
    return [_list(row) for row in x] if x.ndim else as_python(as_number(x))


def _of_ndarray(name: str) -> Callable[..., Any]:
    return _plain(f"x.{name}()", lambda value, *args, **kwargs: getattr(np.asarray(value), name)(*args, **kwargs))


class _OfNumbers:
    """A method that numbers have, and arrays have not: ``hasattr(x, "hex")`` tells them apart."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.method = _plain(f"x.{name}()", lambda value: getattr(np.asarray(value)[()], name)())

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is not None and x.shape:
            raise AttributeError(f"an array has no attribute {self.name!r}")
        return self if x is None else MethodType(self.method, x)


#: What ``methods.install`` puts on tracers.
CONCRETIZATION: dict[str, Any] = {
    "__bool__": _bool,
    "__index__": _index,
    "__format__": _format,
    "__repr__": _repr,
    "__str__": _str,
    "__hash__": _hash,
    "__reduce_ex__": _pickle,
    "__copy__": _copied,
    "__deepcopy__": lambda x, memo: _copied(x),
    "__float__": _plain("float(x)", float),
    "__int__": _int,
    "__complex__": _plain("complex(x)", complex),
    "__trunc__": _plain("math.trunc(x)", math.trunc),
    "__floor__": _plain("math.floor(x)", math.floor),
    "__ceil__": _plain("math.ceil(x)", math.ceil),
    "__array__": _plain("numpy.asarray(x)", _as_ndarray),
    "item": _item,
    "tolist": _list,
    **{name: _of_ndarray(name) for name in ("tobytes", "tofile", "dump", "dumps")},
    **{name: _OfNumbers(name) for name in ("as_integer_ratio", "hex")},
}
