"""Requests of Python or NumPy for a plain value of a tracer: answers, refusals, and printing.

Truth values and integer indices cut no derivative, so a tracer gives them whenever it represents one value.
A number or an ndarray would silently lose the derivative: the tracer refuses it with an error that names the
user's line. Inside ``no_grad`` an older tracer is a constant and returns its value.
"""

from __future__ import annotations

import math
import operator
import os
import re
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from io import UnsupportedOperation
from types import MethodType
from typing import Any, NoReturn, cast

import numpy as np

from funcgrad import backend, blocks
from funcgrad.batching import BatchTrace, unbatched_if_equal
from funcgrad.core import (
    Tracer,
    check_open,
    describe,
    is_in_transform,
    plain_value,
    shallow_copy,
    traces_of,
)
from funcgrad.errors import ConcretizationError, ConversionError, ReadOnlyError
from funcgrad.graph import report_answer
from funcgrad.numpy.plain_values.hints import hints_for_request, standard_library_hint, user_frame, user_line
from funcgrad.numpy.plain_values.texts import TracedText, Unshared, has_all_digits, reads_back, refuse_text
from funcgrad.shared_state import followed_paths, note_answer, note_refusal, open_path, pending_refusals
from funcgrad.writable import is_buffer, make_buffer

__all__ = [
    "CONCRETIZATION", "RefusedInWorker", "as_number", "as_python", "as_python_item", "check_text", "concrete",
    "constant_array", "elements_of", "forget_refusal", "latest_rebuilt_run", "note_constant", "open_rebuilt_run",
    "other_thread_remark", "pending_refusals", "refuse_conversion", "strip_constant_tracers", "user_frame", "user_line",
]  # fmt: skip


def refuse_conversion(x: Tracer, request: str) -> NoReturn:
    """Raise the error for the conversion of ``x`` to a plain value; ``request`` names the conversion."""
    kind = type(x._trace).__name__.removesuffix("Trace").lower()
    batch = _innermost_batch(x)
    lost = "derivative" if batch is None else "batch"
    found = hints_for_request(request, None if batch is None else batch.size)
    if elsewhere := other_thread_remark():
        found.insert(0, elsewhere.strip())
    error = ConversionError(
        f"{request}: converting a traced value to a plain one would lose the {lost}, got {describe(x)} in {kind} "
        f"mode{user_line()}. {found[0]}"
    )
    for other in found[1:]:
        error.add_note(other)
    owner = _thread_of(x)
    pending_refusals[owner] = str(error) if owner == threading.get_ident() else RefusedInWorker(error)
    try:
        raise error
    finally:
        del error  # the error refers to this frame: a reference cycle


def note_constant(error: ReadOnlyError) -> None:
    """Note that rebuilt code wrote to a constant, because the function may catch the error and go on."""
    if open_rebuilt_run() is not None:
        error.of_constant = True
        pending_refusals[threading.get_ident()] = str(error)


class RefusedInWorker(str):
    """Message of a refusal in a worker thread of a transform that another thread runs."""

    __slots__ = ()


def forget_refusal() -> None:
    """Forget the refusal in this thread, because the caller computes the result in another way."""
    pending_refusals.pop(threading.get_ident(), None)


def _thread_of(x: Tracer) -> int:
    """Return the id of the thread that runs the transform of ``x``."""
    here, owner = threading.get_ident(), x._trace.thread
    return owner if owner not in (0, here) and not is_in_transform() else here


def other_thread_remark() -> str:
    """Return the remark for a traced value in a thread that is not known to work for a transform."""
    if is_in_transform():
        return ""
    return (
        " This thread does not run the transform, so funcgrad.numpy makes plain arrays here. Make the array in the "
        "thread that runs the transform and pass it to this one, or join the results of the threads with "
        "funcgrad.numpy.stack."
    )


def _innermost_batch(x: Any) -> BatchTrace | None:
    """Return the trace of the innermost ``vmap`` of ``x``, or None."""
    return next((trace for trace in traces_of([x]) if isinstance(trace, BatchTrace)), None)


def concrete(x: Tracer, request: str, *, steers: bool = True) -> Any:
    """Return the plain array or number at the bottom of the tracers of ``x``.

    Args:
        x: a tracer.
        request: the conversion that requests the value, for messages.
        steers: whether the control flow depends on the value, so that graphs must remember it; False for printing.

    Raises:
        ConcretizationError: the examples of a ``vmap`` have different values.
    """
    x = unbatched_if_equal(x)
    batch = _innermost_batch(x)
    plain = plain_value(x) if batch is None else _value_of_all_examples(x)
    if plain is None and batch is not None:
        raise _error_for_differing_examples(x, request, batch.size)
    return report_answer(x, plain) if steers else plain


def _value_of_all_examples(x: Tracer) -> Any:
    """Return the value that all examples of the ``vmap``s of ``x`` share, or None if the examples differ."""
    whole, hidden = plain_value(x), sum([trace.hidden_axes for trace in traces_of([x])])
    if backend.is_jax_tracer(whole):
        return None
    rows = np.reshape(whole, (-1, *np.shape(whole)[hidden:]))
    return rows[0] if len(rows) and bool(np.all(rows == rows[0])) else None


def _error_for_differing_examples(x: Tracer, request: str, size: int) -> ConcretizationError:
    """Return the error for a request for one value from a traced value that differs between examples of a ``vmap``."""
    if not size:
        return ConcretizationError(
            f"{request}: one value was asked for, got {describe(x)} in a vmap without examples{user_line()}. Return "
            "the result for an empty batch before the vmap."
        )
    ways = [
        "Instead of `if`, `while`, `and`, `or` or `not` use funcgrad.numpy's where(condition, a, b), "
        "logical_and, minimum, ...",
        "Instead of an index use funcgrad.numpy's take(table, x, axis=0).",
    ]
    first, second = ways[::-1] if request == "index(x)" else ways
    error = ConcretizationError(
        f"{request}: one value was asked for, got {describe(x)} that differs between the {size} examples of a vmap"
        f"{user_line()}. {first}"
    )
    error.add_note(second)
    error.add_note(
        "To take one example at a time, use funcgrad.control.map(f, xs). With JAX, vmap(jit(f)) lets each take its own "
        "branch."
    )
    return error


def strip_constant_tracers(x: Any) -> Any:
    """Strip the tracers that an enclosing ``no_grad`` makes constant from ``x``; return the array of a buffer."""
    if is_buffer(x):
        return x._val
    if type(x) is Tracer and x._trace.is_bit_exact:  # the recording remembers the answer and checks it in later runs
        return report_answer(x, x._val)
    if blocks.last_entered() is not None:
        floor = blocks.current().min_level
        while isinstance(x, Tracer) and x._trace.differentiates and x._trace.level < floor:
            x = x._val
    return x


def _bool(x: Tracer) -> bool:
    """Return the truth value of one element; it steers Python's control flow and carries no derivative."""
    check_open(x)
    if x.dtype.kind != "b" and _innermost_batch(x) is not None:
        x = operator.ne(x, 0)  # examples with different numbers may share this truth value
    return bool(_answer(x, "bool(x)", bool))


def _index(x: Tracer) -> int:
    """Return the integer for Python's indexing and ``range``."""
    check_open(x)
    if x.dtype.kind not in "iu":
        remedy = "Convert it with x.astype(int), which is a constant for derivatives."
        if x.shape:
            remedy = "Pass one integer; arrays to join come in one list, as in concatenate([a, b])."
        remedy = standard_library_hint().strip() or remedy
        raise ConcretizationError(
            f"index(x): an index or a length must be an integer, got {describe(x)}{user_line()}. {remedy}"
        )
    return int(_answer(x, "index(x)", operator.index))


def _answer(x: Tracer, request: str, convert: Callable[[Any], Any]) -> Any:
    """Return the converted value that all examples share, and report it to graphs: Python will branch on it."""
    x = unbatched_if_equal(x)
    is_asked = convert is bool and open_path.get() is not None and math.prod(x.shape) == 1
    answer = _answer_on_path(x) if is_asked and backend.is_jax_tracer(plain_value(x)) else None
    if answer is None:
        try:
            answer = report_answer(x, convert(concrete(x, request, steers=False)))
        except TypeError as error:
            answer = _answer_on_path(x) if is_asked and not backend.is_jax_tracer(plain_value(x)) else None
            if answer is None:
                _note_refused_request(request, x, error)
                raise
    if followed_paths:
        note_answer(answer)
    return answer


def _answer_on_path(x: Tracer) -> bool | None:
    """Return the truth value of ``x``, which has no single one, on the path that JAX compiles; None without a path."""
    path = open_path.get()
    return None if path is None else cast("bool | None", path.answer(x))


def _note_refused_request(request: str, x: Tracer, error: TypeError) -> None:
    """Remember that ``x`` has no single value for ``request``: code that catches the error may take another path."""
    if isinstance(error, ConcretizationError):
        note_refusal(error)
    elif backend.is_jax_tracer(plain_value(x)):
        note_refusal(
            error, f"{request}: the value is needed here and is not known yet, got {describe(x)}{user_line()}."
        )


def _int(x: Tracer) -> int:
    """Compute ``int(x)``; an integer has no derivative, so its own value is returned."""
    return _index(x) if x.dtype.kind in "iu" and not x.shape else _PLAIN_INT(x)


def _shared_integer(x: Tracer) -> Any:
    """Return the integer that all examples of a ``vmap`` share, which prints as it does outside; otherwise None."""
    if x.shape or x.dtype.kind not in "biu" or _innermost_batch(x) is None:
        return None
    one = unbatched_if_equal(x)
    return None if _innermost_batch(one) is not None else concrete(one, "str(x)")


def _format(x: Tracer, spec: str) -> str:
    """Format the value by ``spec``. A number in a ``vmap`` gives the text of the numbers of all examples."""
    if not spec:
        return str(x)
    if (whole := _shared_integer(x)) is not None:
        return format(whole, spec)
    bottom = plain_value(x)
    if backend.is_jax_tracer(bottom):
        return str(x)
    is_complete = has_all_digits(spec) or reads_back(x, spec)
    if x.shape or _innermost_batch(x) is None:
        return as_traced_text(x, format(bottom, spec), is_complete)  # NumPy refuses to format arrays
    shown: Any = {"all": lambda number: format(number, spec)}
    text = np.array2string(np.asarray(bottom), formatter=shown, threshold=20, edgeitems=2)
    return as_traced_text(x, text, is_complete)


def as_traced_text(x: Tracer, text: str, is_complete: bool, describes: bool = False) -> str:
    """Return ``text``, which shows ``x``, as a string that remembers ``x``, unless ``x`` is a constant."""
    if is_buffer(x) or not _is_worth_remembering(x if x._trace.is_bit_exact else strip_constant_tracers(x)):
        return text
    made = TracedText.of(text, x, is_complete, describes)
    if (run := open_rebuilt_run()) is not None:
        run.note_text(x, text)  # the program may read the number from the text
    else:
        noted = pending_refusals.get(_thread_of(x), "")
        pending_refusals[_thread_of(x)] = noted or (Unshared() if made.shows else noted)
    return made


def check_text(values: Any) -> None:
    """Check that no number is parsed from a text that shows a traced number of a run of rebuilt code.

    Args:
        values: texts; lists, arrays and columns of texts; files and their names; anything else passes.

    Raises:
        ConversionError: a text shows a traced number, or a part of one.
    """
    run = open_rebuilt_run()
    if run is None or not run.texts:
        return
    if getattr(getattr(values, "dtype", None), "kind", None) in _TEXTS:
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        for value in values:
            check_text(value)
        return
    if read := _content(values, run.first_text - _CLOCK):
        for _, shown in run.texts:  # a table may have numbers of which the text is a part
            if (found := shown.strip()) and re.search(rf"(?<![\d.]){re.escape(found)}(?![\d.])", read):
                refuse_text(found)
    elif isinstance(values, (str, bytes)):
        read = (str.__str__(values) if isinstance(values, str) else values.decode("latin-1")).strip()
        for _, shown in run.texts:
            if shown.strip() in read or (len(read) >= _SHORTEST_MATCH and read in shown):
                refuse_text(str(values))


def _content(file: Any, since: float) -> str:
    """Return the text in a file, given open or by its name; "" if it is older than ``since``, a pipe, or no file."""
    if isinstance(file, (str, bytes, os.PathLike)):
        if not os.path.isfile(file):
            return ""
        with np.lib.npyio.DataSource().open(os.fsdecode(file), "rb") as opened:  # reads compressed files, too
            return _content(opened, since)
    if not hasattr(file, "seekable") or not file.seekable():
        return ""
    file = getattr(file, "buffer", file)  # a text file does not tell its position while its lines are read
    with suppress(AttributeError, UnsupportedOperation):  # raised by files in memory and by a program's own
        if os.stat(file.fileno()).st_mtime < since:
            return ""
    position = file.tell()
    file.seek(0)
    read = file.read()
    file.seek(position)
    return read if isinstance(read, str) else read.decode("latin-1")


_TEXTS = frozenset("OSTU")  # kinds of arrays that may hold texts
_CLOCK = 2.0  # seconds by which the times of a file system may be behind
_SHORTEST_MATCH = 3  # smallest length at which a piece of a text counts as a part of it


def _is_worth_remembering(x: Any) -> bool:
    """Whether ``x`` has a derivative, or represents further values: those of a batch or of later runs."""
    return any(t.differentiates or t.is_bit_exact or t.runs_jax or isinstance(t, BatchTrace) for t in traces_of([x]))


def _str(x: Tracer) -> str:
    """Return the text of the numbers, as outside of the transform; or dtype and shape if JAX does not know them yet."""
    if (whole := _shared_integer(x)) is not None:
        return str(whole)
    bottom = plain_value(x)
    if backend.is_jax_tracer(bottom):
        return as_traced_text(x, describe(x), False)
    alone = _innermost_batch(x) is None
    text = str(bottom) if alone else np.array2string(np.asarray(bottom), threshold=20, edgeitems=2)
    return as_traced_text(x, text, not x.shape)


def _repr(x: Tracer) -> str:
    return as_traced_text(x, _description(x), True, describes=True)


def _description(x: Tracer) -> str:
    """Describe kind, level, shape, dtype and value of ``x``; describe a nested tracer in the same way."""
    value = x._val
    if is_buffer(x):
        return repr(value)
    is_nested = isinstance(value, Tracer)
    with np.printoptions(threshold=20, edgeitems=2) if not is_nested else nullcontext():
        shown = _description(value) if is_nested else repr(value)
        return f"{x._trace.tracer_name}(level={x._trace.level}, {describe(x)}, value={shown})"


def _hash(x: Tracer) -> NoReturn:
    kind = "array" if x.shape else "number"
    error = ConversionError(
        f"hash(x): a traced {kind} cannot be a key of a dictionary, a member of a set or an argument of a cached "
        f"function (lru_cache, memoize), got {describe(x)}{user_line()}. A cache would keep it for the next run: "
        "call the function without its cache (f.__wrapped__), or cache functions of settings only; use strings or "
        "positions as keys; to look a number up in a table, use funcgrad.numpy's searchsorted, take or where."
    )
    raise error if x.shape else note_refusal(error)  # NumPy's arrays have no hash either


def _pickle(x: Tracer, protocol: Any) -> Any:
    if is_buffer(x):
        return x._val.__reduce_ex__(protocol)
    raise ConcretizationError(
        f"pickle: a traced value belongs to the running transform and cannot be stored or sent, got {describe(x)}"
        f"{user_line()}. Pickle what the transformed function returns, or stop_gradient(x)."
    )


def _copy_tracer(x: Tracer) -> Tracer:
    """Copy a tracer so that a write to the tracer or to its copy does not show in the other."""
    return make_buffer(np.array(x._val)) if is_buffer(x) else shallow_copy(x)


def _plain_value_method(request: str, convert: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that converts a constant and refuses everything else."""

    def method(x: Tracer, *args: Any, **kwargs: Any) -> Any:
        if not x._trace.as_numpy:
            return convert(constant_array(x, request), *args, **kwargs)
        try:
            return convert(x._val, *args, **kwargs)
        except TypeError as error:  # the value is abstract in JAX
            _note_refused_request(request, x, error)
            raise

    return method


_PLAIN_INT = _plain_value_method("int(x)", int)


def constant_array(x: Tracer, request: str) -> Any:
    """Return the array of the constant ``x``; refuse a traced value.

    Raises:
        ConversionError: the conversion ``request`` would lose a derivative.
    """
    check_open(x)
    value = strip_constant_tracers(x)
    if isinstance(value, Tracer):
        refuse_conversion(value, request)
    return value


def _as_ndarray(value: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """Return an ndarray; without a copy it is read-only, because tapes and callers may refer to its memory."""
    made = np.array(value, dtype, copy=copy)
    if made is value:
        made = made.view()
        made.flags.writeable = False
    return made


def elements_of(x: Tracer) -> np.ndarray:
    """Return an object array of the elements of ``x``, each traced."""
    if is_buffer(x):
        return np.array(x._val, object)
    found, parts = np.empty(x.shape, object), cast("Any", x)
    for place in np.ndindex(*x.shape):
        found[place] = parts[place] if place else x
    return found


_PLAIN_ARRAY = _plain_value_method("numpy.asarray(x)", _as_ndarray)


def _array(x: Tracer, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return the ndarray of a constant, or the elements if NumPy asks for objects; refuse everything else."""
    is_for_objects = dtype is not None and np.dtype(dtype).kind == "O" and not x._trace.as_numpy
    return elements_of(x) if is_for_objects else _PLAIN_ARRAY(x, dtype, copy)


class _LatestRebuiltRun(threading.local):
    """Latest run of rebuilt code in this thread, ``open`` or not; None before the first run."""

    run: Any = None


latest_rebuilt_run = _LatestRebuiltRun()


def open_rebuilt_run() -> Any:
    """Return the open run of rebuilt code in this thread, or None; numbers that such a run takes out stay traced."""
    run = latest_rebuilt_run.run
    return run if run is not None and run.open else None


def _stays_traced(x: Any) -> bool:
    """Whether a number that code takes out of ``x`` stays traced: yes in rebuilt code, unless ``x`` is a constant."""
    return open_rebuilt_run() is not None and (x._trace.as_numpy or isinstance(strip_constant_tracers(x), Tracer))


def as_number(x: Any) -> Any:
    """Return a traced array of one element as a number; ``isinstance`` and ``type`` see a number, too."""
    x = x.reshape(()) if x.shape else x
    return x[()] if issubclass(x.__class__, np.ndarray) else x


def as_python(x: Any) -> Any:
    """Return a new tracer that acts as a Python number, whose operators raise errors, for a traced NumPy number.

    Values of batches and of recordings, which compute with NumPy's numbers, are returned unchanged.
    """
    value, trace = x._val, x._trace
    if trace.hidden_axes or trace.is_bit_exact:
        return x
    if type(value) is np.float64:
        found: Any = float(value)
    elif type(value) is np.complex128:  # complex64 stays, because its record is in single precision
        found = value.item()
    elif type(value) is not Tracer or (found := as_python(value)) is value:
        return x
    made = Tracer()  # ``shallow_copy`` would take a lock, which a number does not need: it is never written to
    made._val, made._trace, made.link, made.aval, made.alias = found, trace, x.link, None, None
    return made


def _item(x: Any, *args: Any) -> Any:
    """Return one element as a number; in rebuilt code, an element of a traced array stays traced."""
    if not _stays_traced(x):
        return _ndarray_method("item")(x, *args)
    place = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    one = x[place] if len(place) > 1 or (place and x.ndim == 1) else x.reshape(-1)[place[0]] if place else as_number(x)
    return as_python_item(one)


#: What Python's numbers hold in place of a dtype of lower precision.
_PRECISE = {np.dtype(np.float16): np.float64, np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def as_python_item(x: Any) -> Any:
    """Return a traced number as ``item`` and ``tolist`` return it: Python's numbers have double precision."""
    precise = _PRECISE.get(x.dtype) if isinstance(plain_value(x), (np.generic, np.ndarray)) else None
    return as_python(as_number(x if precise is None else x.astype(precise)))


def _list(x: Any) -> Any:
    """Return nested lists of the elements; each element is converted as in ``_item``."""
    if not _stays_traced(x):
        return _ndarray_method("tolist")(x)
    return [_list(row) for row in x] if x.ndim else as_python_item(x)


def _ndarray_method(name: str) -> Callable[..., Any]:
    return _plain_value_method(
        f"x.{name}()", lambda value, *args, **kwargs: getattr(np.asarray(value), name)(*args, **kwargs)
    )


class _NumberMethod:
    """Descriptor of a method that only numbers have, so that ``hasattr(x, "hex")`` tells numbers from arrays."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.method = _plain_value_method(f"x.{name}()", lambda value: getattr(np.asarray(value)[()], name)())

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is not None and x.shape:
            raise AttributeError(f"an array has no attribute {self.name!r}")
        return self if x is None else MethodType(self.method, x)


#: Methods that ``methods.install`` sets on tracers.
CONCRETIZATION: dict[str, Any] = {
    "__bool__": _bool,
    "__index__": _index,
    "__format__": _format,
    "__repr__": _repr,
    "__str__": _str,
    "__hash__": _hash,
    "__reduce_ex__": _pickle,
    "__copy__": _copy_tracer,
    "__deepcopy__": lambda x, memo: _copy_tracer(x),
    "__float__": _plain_value_method("float(x)", float),
    "__int__": _int,
    "__complex__": _plain_value_method("complex(x)", complex),
    "__trunc__": _plain_value_method("math.trunc(x)", math.trunc),
    "__floor__": _plain_value_method("math.floor(x)", math.floor),
    "__ceil__": _plain_value_method("math.ceil(x)", math.ceil),
    "__array__": _array,
    "item": _item,
    "tolist": _list,
    **{name: _ndarray_method(name) for name in ("tobytes", "tofile", "dump", "dumps")},
    **{name: _NumberMethod(name) for name in ("as_integer_ratio", "hex")},
}
