"""Run functions as they are written, with funcgrad's functions in place of those of NumPy, SciPy and ``math``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import partial
from threading import get_ident
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.blocks import Block, current, last_entered
from funcgrad.core import Trace, Tracer, is_in_transform
from funcgrad.errors import ConversionError, FuncgradError, text_of
from funcgrad.numpy.plain_values.concretization import RefusedInWorker, latest_rebuilt_run
from funcgrad.numpy_code.classes import with_original_namedtuples
from funcgrad.numpy_code.drawings import Drawing, without_view
from funcgrad.numpy_code.functions import Built, has_same_values, rebuild_closure
from funcgrad.numpy_code.joined_texts import may_use_text_of_examples
from funcgrad.numpy_code.known import Choice, Facts, choice_of, facts_of, known_codes
from funcgrad.numpy_code.libraries import package_of
from funcgrad.numpy_code.object_views import has_rebuilt_class, original
from funcgrad.numpy_code.overwriting import CheckedForWrites, unchecked
from funcgrad.numpy_code.reachable import codes_and_needs, deciding, held_by, is_of_library, values_held
from funcgrad.numpy_code.reading import reads_texts
from funcgrad.numpy_code.refusals import (
    LostWrite,
    add_note,
    check_after_refusal,
    is_conversion,
    is_own,
    note_lost_writes,
    restore_refusal,
    take_refusal,
)
from funcgrad.numpy_code.replacements import PLAIN_TYPES, Run, end_run, run_of_thread
from funcgrad.numpy_code.scope import are_same, globals_object
from funcgrad.numpy_code.translation import (
    FUNCTIONS,
    READ_ONLY_ARRAYS,
    WRITABLE_ARRAYS,
    Translator,
    is_of_own_distribution,
)
from funcgrad.numpy_code.xarrays import REBUILDER, has_adopted
from funcgrad.shared_state import FORMAT_ERROR, open_path, pending_refusals
from funcgrad.writable import Proxy, as_constant, is_buffer

_LEVELS = {
    FUNCTIONS: "with funcgrad's functions",
    READ_ONLY_ARRAYS: "with funcgrad's functions and arrays",
    WRITABLE_ARRAYS: "with funcgrad's functions and arrays that can be written to",
}
#: The translators, by level.
_TRANSLATORS = {level: Translator(level) for level in _LEVELS}


class Rebuilt:
    """``fun``, rebuilt from its code, to be called like ``fun``.

    Args:
        fun: a user's function.
        level: how much is rebuilt, see ``translation``.
    """

    __slots__ = ("_plan", "fun", "level")
    retries_itself = True

    def __init__(self, fun: Callable[..., Any], level: int) -> None:
        self.fun = fun
        self.level = level
        self._plan = _CallPlan(fun, level)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        run = latest_rebuilt_run.run or run_of_thread()
        if run.open:
            return self._call_inside(run, args, kwargs)
        try:
            if run.used:  # an interrupt kept the last run from being ended
                end_run(run)
            run.open = True
            plan = self._plan
            checks = plan.watched.checks
            if checks is None:
                plan = self._current_plan()
                checks = plan.watched.collect()
            if not are_same(checks):
                plan.watched.refresh()
            call = plan.lasting  # the same call, for what a function of a few numbers can afford
            if call is None or kwargs or not _are_unreplaced(map(type, args)):
                out = plan.call(run, True, args, kwargs)
            else:
                out = call(*args)
            if pending_refusals:
                check_after_refusal(self.fun, args, kwargs, out)
            if run.used:
                note_lost_writes(run)
            return out if type(out) in _UNREPLACED else _with_original_classes(out)
        finally:
            run.open, run.owner = False, None
            if run.used:
                end_run(run)

    def _call_inside(self, run: Run, args: Any, kwargs: Any) -> Any:
        """Run the function, called by a rebuilt function."""
        around = pending_refusals.pop(get_ident(), None) if pending_refusals else None
        out = self._plan.call(run, False, args, kwargs)
        if pending_refusals:
            check_after_refusal(self.fun, args, kwargs, out)
        if around is not None:
            pending_refusals[get_ident()] = around
        return out

    def _current_plan(self) -> _CallPlan:
        """Return the way to call the function; a new one, with everything rebuilt, if a function got new code."""
        level, translate = self.level, self._plan.translate
        if _TRANSLATORS[level] is not translate or (translate.may_be_stale and translate.is_stale()):
            if _TRANSLATORS[level] is translate:
                _TRANSLATORS[level] = Translator(level)
            self._plan = _CallPlan(self.fun, level)
        return self._plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fun, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fun, self.level)


class _CallPlan:
    """Way to call a rebuilt function. Python finds attributes of this class faster than those of a ``Rebuilt``.

    Attributes:
        translate: the translator.
        watched: the names that the translator watches.
        function: the function; for a method that is rebuilt, its function.
        owner: the object of a method that is rebuilt, else None.
        built: the replacement, valid in every run while its closure variables stay; None if no such replacement exists.
        lasting: the replacement if nothing else decides which function runs and with which arguments, else None.
    """

    __slots__ = ("built", "function", "lasting", "owner", "translate", "watched")

    def __init__(self, fun: Any, level: int) -> None:
        self.translate = _TRANSLATORS[level]
        self.watched = self.translate.watched
        self.built: Built | None = None
        self.lasting: Callable[..., Any] | None = None
        self.function, self.owner = fun, None
        if type(fun) is MethodType and type(fun.__func__) is FunctionType and not is_of_own_distribution(fun):
            self.function, self.owner = fun.__func__, fun.__self__

    def call(self, run: Run, begins: bool, args: Any, kwargs: Any) -> Any:
        """Call the replacement of the function with those of its arguments; ``begins``: whether the run begins."""
        translate, built = self.translate, self.built
        if translate.replaces_arrays and not is_in_transform():  # nothing is traced, and arrays need no replacement
            translate, built = _TRANSLATORS[FUNCTIONS], None
        if not _are_unreplaced(map(type, args)):
            args = tuple(map(translate.argument, args))
        if self.owner is not None:
            args = (translate.owner(self.owner, run, begins), *args)
        if built is None or (built[1] and not has_same_values(built[1])):
            built = self._current_replacement(translate, run, begins)
        if kwargs:
            return built[0](*args, **{name: translate.argument(x) for name, x in kwargs.items()})
        return built[0](*args)

    def _current_replacement(self, translate: Translator, run: Run, begins: bool) -> Built:
        fun = self.function
        is_closure = type(fun) is FunctionType and fun.__closure__
        found = rebuild_closure(fun, translate, run, begins) if is_closure else None
        if found is not None:
            built, lasts = found
        else:
            made, lasts = translate(fun)
            known = translate.closures.get(fun) if type(fun) is FunctionType else None
            built, lasts = (known, True) if known is not None and known[0] is made else ((made, []), lasts)
        if lasts and translate is self.translate:
            self.built = built
            self.lasting = built[0] if not (built[1] or translate.replaces_arrays or self.owner is not None) else None
        return built


REBUILDER.append(lambda fun: Rebuilt(fun, WRITABLE_ARRAYS))


#: Types of arguments and results of a rebuilt function that need no replacement.
_UNREPLACED = PLAIN_TYPES | {Tracer}
_are_unreplaced = _UNREPLACED.issuperset


def _with_original_classes(out: Any) -> Any:
    """Return a result as the original function would: objects are of their original classes."""
    if issubclass(type(out), Tracer) or type(out) is np.ndarray:
        return out
    out = with_original_namedtuples(out)
    leaves, spec = tree.flatten(out)
    if not any(has_rebuilt_class(leaf) or isinstance(leaf, Proxy) or type(leaf) is Drawing for leaf in leaves):
        return tree.unflatten(spec, leaves) if has_adopted() and leaves else out
    leaves = [leaf.as_result() if isinstance(leaf, Proxy) else leaf for leaf in map(without_view, leaves)]
    return tree.unflatten(spec, [original(leaf) if has_rebuilt_class(leaf) else leaf for leaf in leaves])


class as_written(Block, ContextDecorator):  # noqa: N801  (a block, as no_grad is)
    """Block or decorator ``as_written()``: transforms run functions once, as they are written.

    Outside of the block, if code of NumPy, SciPy or ``math`` would lose a derivative, a transform runs the function
    again with funcgrad's functions. In the block the transform raises an error that says what to change.

    Example:
        >>> import math
        >>> from funcgrad import as_written, grad
        >>> grad(math.sin)(0.0)
        np.float64(1.0)
        >>> with as_written():
        ...     grad(math.sin)(0.0)
        Traceback (most recent call last):
        ...
        funcgrad.errors.ConversionError: float(x): converting a traced value to a plain one ...
    """

    def __init__(self) -> None:
        Block.__init__(self, lambda state: state._replace(as_written=True))


def is_as_written() -> bool:
    """Whether functions run as they are written in this context."""
    return last_entered() is not None and current().as_written


#: Rebuilt functions that ``rebuilt_if_known`` returned last, by the ``id`` of their code.
_LATEST: dict[int, Rebuilt] = {}
_MANY = 64
_DEPTH = 32  # limit for nested partials; an object may return something for every attribute


def _code_of(fun: Any) -> Any:
    """Return the code of ``fun``, which identifies a function even if a loop defines it again in every round."""
    for _ in range(_DEPTH):
        if type(fun) is FunctionType:
            return fun.__code__
        inner = fun.__func__ if type(fun) is MethodType else getattr(fun, "func", None) or getattr(fun, "fun", None)
        if inner is None or not callable(inner):
            call = getattr(type(fun), "__call__", None)  # noqa: B004  (the function itself is wanted)
            return call.__code__ if type(call) is FunctionType and type(fun) is not type else None
        fun = inner
    return None


def rebuilt_if_known(fun: Any, args: tuple[Any, ...] = (), before: Any = None, run: Any = None) -> Any:
    """Return ``fun`` rebuilt if it has converted a traced value before, unless it handles conversions itself.

    At its first call a function is returned as ``CheckedForWrites``, and again with other functions in ``args``, in its
    closure variables or in its object, see ``held_by``.

    Args:
        fun: a function.
        args: what else decides which code runs, see ``deciding``.
        before: what ran in an earlier call; a rebuilt function is returned again if it fits.
        run: what calls it, see ``codes_and_needs``.
    """
    kind = type(fun)
    if kind is FunctionType:
        code = fun.__code__
    elif kind is MethodType and type(fun.__func__) is FunctionType:
        code = fun.__func__.__code__
    elif hasattr(kind, "retries_itself"):
        return fun
    else:
        code = _code_of(fun)
        if code is None:
            return fun
    known = known_codes.get(id(code))
    facts: Facts = facts_of(code, fun) if known is None else known.stored
    if facts.runs_as_it_is and not (args or facts.paths) and kind is FunctionType and not values_held(fun):
        return fun  # the most frequent case
    given, level = fun, facts.level
    if level and not is_as_written():
        fits = type(before) is Rebuilt and before.fun is fun and before.level == level
        given = before if fits else _rebuilt(fun, code, level)
    if facts.is_of_library or level == WRITABLE_ARRAYS:
        return given
    held, named = held_by(fun, args), None
    if held in facts.looked_at:
        return given if is_as_written() else facts.followed(given)
    if not (level or facts.was_searched or is_as_written()):
        facts.was_searched = True
        named, at_once = codes_and_needs(fun, run)
        if at_once:  # a conversion would print an error, or a number would take the branch for arrays
            facts.rebuild(FUNCTIONS)
            given = Rebuilt(fun, FUNCTIONS)
    return CheckedForWrites(given, partial(facts.note_looked_at, fun, code, held, named))


def _rebuilt(fun: Any, code: CodeType, level: int) -> Rebuilt:
    if type(fun) is not FunctionType:
        return Rebuilt(fun, level)
    made = _LATEST.get(id(code))
    if made is None or made.fun is not fun or made.level != level:
        if len(_LATEST) > _MANY:
            _LATEST.clear()
        made = _LATEST[id(code)] = Rebuilt(fun, level)
    return made


def level_of(fun: Any) -> int:
    """Return how much of ``fun`` is rebuilt, as far as its calls have shown."""
    return facts_of(_code_of(fun), fun).level or 0


def choice_for_next_call(fun: Any, given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Choice | None:
    """Return the choice to run ``given``, which ``rebuilt_if_known`` returned, in the next call; None for none."""
    if type(given) is CheckedForWrites and (not given.paths or given.rewind is not None):
        return None
    inner = unchecked(given)
    level = inner.level if type(inner) is Rebuilt else 0
    return choice_of(fun, given, level, level == WRITABLE_ARRAYS or is_of_library(fun), args, kwargs)


def is_rebuilt(fun: Any) -> bool:
    """Whether ``fun`` runs rebuilt, in its first call or in a later one."""
    return type(unchecked(fun)) is Rebuilt


def run_or_rebuild(fun: Any, work: Callable[[Any], Any], others: tuple[Any, ...] = ()) -> Any:
    """Return ``work(fun)``; if code in it would lose a derivative, run ``work`` again with ``fun`` rebuilt.

    Args:
        fun: a user's function.
        work: what a transform does with the function. It may run twice, because functions are pure.
        others: what else decides which code runs, see ``deciding``.
    """
    given = rebuilt_if_known(fun, others)
    around = take_refusal() if pending_refusals else None
    try:
        found = work(given)
        if pending_refusals:
            check_refused(given)
    except Exception as error:
        if not is_conversion(error):
            raise
        return retry_rebuilt(fun, given, work, error)
    finally:
        if pending_refusals or around is not None:
            restore_refusal(around, fun)
    return found


def check_refused(given: Any) -> None:
    """Check that neither ``given`` nor a thread that it started went on after a conversion had been refused.

    Raises:
        ConversionError: it did, or it may read a number from a text that shows a traced number, or may compare such a
            text of a batch, which Python has joined to another one.
    """
    message = pending_refusals.get(get_ident())
    if type(message) is LostWrite:
        fun = unchecked(given)
        if is_own(fun) or package_of(type(fun).__module__) == "funcgrad":  # among them rebuilt functions
            return  # it made no array itself; the refusal goes on to the function around it
        raise ConversionError(message)
    if message:
        raise ConversionError(f"{message} The function continued after this error, without the derivative.")
    if message == "" and type(given) is not Rebuilt:
        if reads_texts(given):
            raise ConversionError(
                "float(text): a text shows a traced number, and the function reads numbers from texts."
            )
        if may_use_text_of_examples(given):
            raise ConversionError("text: a text shows the numbers of all examples, and the function joins texts.")


class SelfRebuilding:
    """``fun`` as a function that reruns itself rebuilt when it would lose a derivative, whoever calls it.

    For functions that are called inside funcgrad's own functions, which are not rebuilt.
    """

    __slots__ = ("fun",)
    retries_itself = True

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        return run_or_rebuild(self.fun, lambda fun: fun(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fun, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fun,)


def retry_rebuilt(fun: Any, given: Any, work: Callable[[Any], Any], error: Exception) -> Any:
    """Run ``work`` with ``fun`` rebuilt, level by level, after it raised ``error`` with ``given``."""
    level = given.level if is_rebuilt(given) else 0
    done = given.done if type(given) is CheckedForWrites else lambda path: None
    first, before, lost = error, None, None
    try:
        while level < WRITABLE_ARRAYS and is_conversion(error, before) and _can_be_rebuilt(fun):
            level = WRITABLE_ARRAYS if getattr(error, "overwritten", False) else level + 1
            _log("%r is run %s: %s", fun, _LEVELS[level], error)
            _leave_path(fun, level)
            try:
                pending_refusals.pop(get_ident(), None)
                if type(given) is CheckedForWrites and given.rewind is not None:
                    given.rewind()
                built = Rebuilt(fun, level)
                given = CheckedForWrites(built, done)
                found = work(given)
                if pending_refusals:
                    check_refused(built)
            except Exception as other:
                before, error = error, other
            else:
                _remember(fun, level)
                lost = pending_refusals.get(get_ident())
                return found
        if error is not first:
            error.__suppress_context__ = error.__cause__ is None or error.__suppress_context__
            add_note(error, first, _LEVELS[level])
        message = pending_refusals.get(get_ident())
        of_text = type(error) is TypeError and text_of(error).startswith(FORMAT_ERROR)
        of_worker = type(message) is RefusedInWorker and not isinstance(error, FuncgradError)
        if message and (of_text or of_worker):
            raise ConversionError(message) from error
        if message and not isinstance(error, FuncgradError):
            error.add_note(f"Before, code caught this error: {message}")
        raise error
    finally:
        pending_refusals.pop(get_ident(), None)
        if type(lost) is LostWrite:  # for the enclosing function
            pending_refusals[get_ident()] = lost
        del error, first, before  # they hold this frame


def run_rebuilt(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run ``fun(*args, **kwargs)`` rebuilt from the start, and with its constant arrays replaced if that is needed."""
    if is_rebuilt(fun):
        return fun(*args, **kwargs)
    fun = unchecked(fun)  # rebuilt from the start, so looked at below
    known = rebuilt_if_known(fun, deciding(args, kwargs))
    inner = unchecked(known)
    given = inner if type(inner) is Rebuilt else Rebuilt(fun, FUNCTIONS)
    first = type(known) is CheckedForWrites and is_in_transform()  # else there is nothing to look at
    try:
        return (known.with_fun(given) if first else given)(*args, **kwargs)
    except Exception as error:
        return retry_rebuilt(fun, given, lambda fun: fun(*args, **kwargs), error)


def run_anywhere(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``fun(*args, **kwargs)`` rebuilt, for arrays of any library, inside or outside of a transform.

    Outside of every transform, the results of code that gets arrays of another library, such as JAX, would be immutable
    arrays of that library, too: ``part += y`` for a view would leave the base unchanged, without an error. So the code
    runs in a trace of its own: results are writable.

    Example:
        >>> run_anywhere(np.sin, (0.0,), {})
        np.float64(0.0)
    """
    given, spec = tree.flatten((args, kwargs))
    if is_in_transform() or not any(map(backend.is_of_other_library, given)):
        return run_rebuilt(fun, args, kwargs)
    trace = Trace()
    try:
        args, kwargs = tree.unflatten(spec, [as_constant(x) if backend.is_of_other_library(x) else x for x in given])
        return tree.map(lambda x: x._val if is_buffer(x) else x, run_rebuilt(fun, args, kwargs))
    finally:
        trace.close()


def _can_be_rebuilt(fun: Any) -> bool:
    if is_as_written() or is_own(fun) or type(fun) in (Rebuilt, CheckedForWrites):  # what calls these rebuilds them
        return False
    return globals_object(getattr(fun, "__globals__", None)) is None


def _leave_path(fun: Any, level: int) -> None:
    """Begin a path that JAX compiles anew: the function may ask for other truth values when it runs rebuilt."""
    path = open_path.get()
    if path is not None and path.has_answered and _remember(fun, level):
        raise path.begin_anew()


def _remember(fun: Any, level: int) -> bool:
    """Let later calls run ``fun`` rebuilt; return whether they rebuild more of it than before.

    A transform has the code of its function, of which an earlier call may have rebuilt more.
    """
    code = _code_of(fun)
    facts = None if code is None else facts_of(code, fun)
    if facts is None or (facts.level or 0) >= level:
        return False
    facts.rebuild(level)
    return True


def _log(*message: Any) -> None:
    """Log a message to ``funcgrad.numpy_code``; without effect, and without an import, if ``logging`` is not loaded."""
    if "logging" in sys.modules:
        sys.modules["logging"].getLogger("funcgrad.numpy_code").info(*message)
