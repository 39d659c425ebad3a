"""Refusals: notes that code wanted the plain number of a traced value and was refused, and the errors that follow.

The code may catch the error and go on, or raise another one. So a refusal is noted for its thread, and what called the
function asks for it afterwards, see ``shared_state.pending_refusals``.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTrace
from funcgrad.core import Tracer, describe, is_in_transform
from funcgrad.errors import (
    ConcretizationError,
    ConversionError,
    EscapedTracerError,
    FuncgradError,
    InputError,
    ReadOnlyError,
    text_of,
)
from funcgrad.numpy.plain_values.concretization import latest_rebuilt_run
from funcgrad.numpy.plain_values.texts import Unshared
from funcgrad.numpy.tables.containers import LIBRARIES, REGISTERED
from funcgrad.numpy_code.libraries import package_of
from funcgrad.numpy_code.replacements import Run
from funcgrad.shared_state import open_path, pending_refusals
from funcgrad.writable import CONSTANTS


def check_after_refusal(fun: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> None:
    """Check that a result is correct if the function went on after a conversion had been refused.

    The function may have taken another branch that keeps the derivative: then it returns what it returns for plain
    numbers. If nothing in the result is traced, or a number differs, the derivative is lost.

    Raises:
        ConversionError: nothing in the result is traced, or it differs from the result for plain numbers.
    """
    message = pending_refusals.get(get_ident())
    if not message or type(message) is LostWrite:
        return
    if Tracer not in map(type, tree.flatten(out)[0]):
        raise ConversionError(f"{message} The function continued after this error, and its result has no derivative.")
    if not _agrees_with_plain(fun, args, kwargs, out):
        raise ConversionError(
            f"{message} The function continued after this error, and returned a different number than outside of "
            "the transform."
        )
    pending_refusals.pop(get_ident(), None)  # the other branch is as good


def _agrees_with_plain(fun: Callable[..., Any], args: Any, kwargs: Any, out: Any) -> bool:
    """Whether ``fun`` of the plain numbers behind the arguments returns those behind ``out``; False if unknown."""
    leaves, spec = tree.flatten((args, kwargs))
    given, found = [_plain(leaf) for leaf in leaves], [_plain(leaf) for leaf in tree.flatten(out)[0]]
    if any(isinstance(x, Tracer) or backend.is_jax_tracer(x) for x in (*given, *found)):
        return False
    around, latest_rebuilt_run.run = latest_rebuilt_run.run, None
    message = pending_refusals.pop(get_ident())
    try:
        args, kwargs = tree.unflatten(spec, given)
        expected = [_plain(leaf) for leaf in tree.flatten(fun(*args, **kwargs))[0]]
        is_plain = get_ident() not in pending_refusals  # else it closes over traced values
    except Exception:
        return False
    finally:
        latest_rebuilt_run.run = around
        pending_refusals[get_ident()] = message
    return is_plain and len(expected) == len(found) and all(map(_is_near, found, expected))


def _plain(x: Any) -> Any:
    """Return the plain value behind a tracer; ``x`` itself if it has the values of many examples of a ``vmap``."""
    bottom = x
    while isinstance(bottom, Tracer):
        if isinstance(bottom._trace, BatchTrace):
            return x
        bottom = bottom._val
    return bottom


def _is_near(x: Any, y: Any) -> bool:
    """Whether two ways to compute a number agree."""
    try:
        return bool(np.allclose(x, y, rtol=1e-9, atol=0.0, equal_nan=True))
    except TypeError:  # not numbers
        return bool(x == y)


class LostWrite(str):
    """Refusal that concerns the function around a rebuilt one, whose array has received no traced values."""

    __slots__ = ()


def note_lost_writes(run: Run) -> None:
    """Note it if rebuilt code, whose run ends, wrote traced values to an array from outside: they went to a buffer.

    If a function around it, which runs as it is written, made the array, it must run rebuilt too.
    """
    for memo in run.memos.values():
        for value, ours in memo.values():
            if type(ours) is Tracer and type(value) is np.ndarray and ours._trace is not CONSTANTS:
                refusal = LostWrite(
                    "x[...] = y: a function in a transform wrote a traced value to an array that was made outside of "
                    f"it, got {describe(ours)}. Return the value instead."
                )
                pending_refusals.setdefault(get_ident(), refusal)
                return


def take_refusal() -> str | None:
    """Remove and return the refusal noted in this thread, which concerns the enclosing function, not the next one.

    A refusal that an interrupt, or a run begun by hand, left while no transform runs is dropped: None is returned.
    """
    message = pending_refusals.pop(get_ident(), None)
    return message if is_in_transform() else None


def restore_refusal(around: str | None, fun: Any) -> None:
    """Restore what ``take_refusal`` returned before a call of ``fun``.

    A refusal noted since was handled, or an error ended the function.
    """
    left = pending_refusals.pop(get_ident(), None)
    if type(left) is LostWrite and is_in_transform():
        around = around or left
    if left == "" and (around is None or type(left) is Unshared) and not around and (is_in_transform() or is_own(fun)):
        around = left  # the enclosing function may read the text, or it is called by ``fun``, a function of funcgrad
    if around is not None:
        pending_refusals[get_ident()] = around


def is_own(fun: Any) -> bool:
    """Whether ``fun`` is a function of funcgrad, such as the one that ``jacfwd`` maps over tangents."""
    return type(fun) is FunctionType and package_of(fun.__globals__.get("__name__")) == "funcgrad"


def add_note(error: Exception, first: Exception, how: str) -> None:
    """Say of an error in a rebuilt function what does not show in it: that it ran ``how``, because of ``first``."""
    if isinstance(error, EscapedTracerError):
        error.add_note(
            "The function ran twice, and its first run, which was stopped, wrote a traced value to an object outside "
            "of it, which the second run read. Make that object again. Then let the function write to a copy, or "
            f"transform from_numpy(f), which runs once. The first run was stopped by: {first}"
        )
    elif not isinstance(error, FuncgradError) and text_of(error) != text_of(first):
        cause = first.__cause__ if isinstance(first, SystemError) else None  # of Python's C interface
        error.add_note(f"The function ran {how} in place of NumPy's, because without them it raised: {cause or first}")
    if type(error) in (TypeError, struct.error) and any(text in text_of(error) for text in _REFUSALS_OF_C):
        error.add_note(
            "Compiled code got a traced value, but takes plain arrays only. Pass stop_gradient(x) for a constant, or "
            "give the function that calls it a derivative of its own with funcgrad.custom_vjp or custom_jvp."
        )
    if type(error) is TypeError and text_of(error).startswith("descriptor ") and "'Tracer'" in text_of(error):
        error.add_note(
            "A method that is called through its class, such as float.__add__(x, y), takes no traced value. Call it on "
            "the object: x.sum(), x + y."
        )
    if type(error) is ValueError and "__array__ method not producing an array" in text_of(error):
        error.add_note(
            "NumPy's own code got an object whose method __array__ returns a traced value, as in np.float64(2.0) * y. "
            "Write np.asarray(y) for y, or float(a) for a NumPy number a on its left."
        )


#: Parts of the messages with which code made by Cython refuses traced values.
_REFUSALS_OF_C = (
    "a bytes-like object is required, not 'Tracer'",
    "object supporting the buffer API required",  # hashlib
    "required argument is not a float",  # struct
    "(expected numpy.ndarray, got Tracer)",
    "Function call with ambiguous argument types",
)


def is_conversion(error: BaseException, before: BaseException | None = None) -> bool:
    """Whether ``error`` was raised because code that takes plain values only got a traced one.

    C code that requests a number raises its own error when it gets none, with funcgrad's error as the context.

    Args:
        error: the error raised.
        before: an error that was already being handled when ``error`` was raised.
    """
    message = pending_refusals.get(get_ident())
    if message and message != text_of(error):
        return True  # compiled code and other threads may have raised another error after the refusal
    seen: BaseException | None = error
    while seen is not None and seen is not before:
        if isinstance(seen, ConversionError) or (isinstance(seen, ReadOnlyError) and seen.of_constant):
            return True
        if _JAX_ERRORS & {kind.__name__ for kind in type(seen).__mro__}:
            return True
        if before is None and isinstance(seen, ConcretizationError):  # SciPy's code may take the whole batch
            return True
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)  # see ``retry_rebuilt``
    text = text_of(error)
    if type(error) is ZeroDivisionError:  # of objects in a column of pandas, which rebuilt code makes one of numbers
        return "pandas" in sys.modules
    if not isinstance(error, (TypeError, ValueError, AttributeError, SystemError)):
        return False
    if package_of(_raising_module(error)) in LIBRARIES:  # in rebuilt code tables hold columns of traced numbers
        return True
    asks_for_memory = "a traced value has no memory of its own" in text
    of_two_kinds = "Multiple namespaces" in text and "funcgrad" in text  # an error message of SciPy
    is_sparse = "is a sparse matrix, got" in text  # the right operand of an operator, see ``sparse.ConstantMatrix``
    is_sparse = is_sparse or "got matrix of" in text or text.startswith("matrix(x): a traced")  # see ``matrices``
    # a text of a traced number was made, perhaps this one; on a path that JAX compiles it is more likely an error's own
    may_show_tracer = "Tracer" in text or (message == "" and open_path.get() is None)
    may_show_tracer = may_show_tracer or "ndarray" in text  # the program asked ``type(x) is numpy.ndarray``
    names_tracer = may_show_tracer and not isinstance(error, FuncgradError)  # funcgrad's messages may show tracers
    in_place = text.startswith("'NotImplementedType' object has no attribute")  # ``series *= x`` of pandas
    # rebuilt code makes tables of traced numbers where other code makes tables of Python objects
    of_table = type(error) is InputError and "is not an array or a number, got" in text and bool(REGISTERED)
    of_objects = text.startswith(_OBJECT_ERRORS)
    lacks_array = of_objects or of_table or backend.NO_ARRAY in text or text.endswith("is not JSON serializable")
    # code may have written to ``numpy.asarray`` of an array that funcgrad's functions made
    is_read_only = type(error) is ValueError and text.rstrip(".").endswith("is read-only")
    return is_read_only or names_tracer or asks_for_memory or of_two_kinds or is_sparse or in_place or lacks_array


def _raising_module(error: BaseException) -> Any:
    """Return the name of the module whose code raised an error."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return None if place is None else place.tb_frame.f_globals.get("__name__")


#: Beginnings of errors for arrays of Python objects, traced numbers: of ufuncs, and of Cython's functions of arrays.
_OBJECT_ERRORS = (
    "loop of ufunc does not support argument",
    "Function call with ambiguous argument types",
    "No matching signature found",
    "Cannot change data-type for array of references",  # ``constants.view(cls)`` with a class of rebuilt code
)
#: Names of the errors that JAX raises where code requests the numbers of an abstract value.
_JAX_ERRORS = {"ConcretizationTypeError", "TracerArrayConversionError", "TracerIntegerConversionError"}
