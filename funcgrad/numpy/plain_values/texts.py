"""Strings made from traced numbers, ``f"{x:.3f}"``, which keep ``float(text)`` from losing derivatives silently."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from funcgrad.backend import is_jax_tracer
from funcgrad.core import Tracer, join_repetition, plain_value, traces_of
from funcgrad.errors import ConcretizationError, ConversionError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.shared_state import note_refusal

_EXAMPLES = "the numbers of all examples of a vmap"


class TracedText(str):
    """String made from a traced number, or a part of such a string; keeps neither the number nor its record alive.

    During the run, conversions to numbers and comparisons within a batch differ from ``str``.

    Attributes:
        source: a weak reference to the traced number.
        trace: a weak reference to its trace.
        first: the original string, before parts were taken.
        is_complete: whether the string has all digits of the number.
        shows: what the string shows if that is not one number, so that code cannot ask for its length or its parts.
    """

    __slots__ = ("first", "is_complete", "shows", "source", "trace")

    source: Any
    trace: Any
    first: str
    is_complete: bool
    shows: str

    @classmethod
    def of(cls, text: str, x: Tracer, is_complete: bool, describes: bool = False) -> TracedText:
        """Return ``text`` as the string of ``x``; ``describes`` says that it is the ``repr`` of a tracer."""
        made = cls(text)
        made.source, made.trace, made.first, made.is_complete = ref(x), ref(x._trace), str.__str__(made), is_complete
        made.shows = "" if describes else _several_numbers(x)
        return made

    def number(self) -> Any:
        """Return the traced number that the string shows, or the plain number after the run has ended.

        Raises:
            ConversionError: the number no longer exists, or the string does not have all of its digits.
        """
        trace, x = self.trace(), self.source()
        if trace is None or not (trace.open or join_repetition(trace.level)):
            return float(str.__str__(self))
        if x is None or not self.is_complete or not _is_same(self, self.first):
            refuse_text(self)
        return x

    def __float__(self) -> float:
        found = self.number()
        if isinstance(found, Tracer):
            refuse_text(self)
        return float(found)

    def __int__(self) -> int:
        if self.shows:
            refuse_text(self)
        return int(str.__str__(self))

    def __eq__(self, other: object) -> bool:
        """Whether the string equals ``other``; an error if it shows more than one number."""
        if isinstance(other, str) and not self._equals_for_all(other):
            self._check_alone("text == other")
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if isinstance(other, str) and not self._equals_for_all(other):
            self._check_alone("text != other")
        return str.__ne__(self, other)

    def _equals_for_all(self, other: str) -> bool:
        """Whether ``other`` shows the same numbers, all of them."""
        same = type(other) is TracedText and str.__eq__(self, other) and "..." not in self.first
        return other is self or (same and self.shows == _EXAMPLES)

    __hash__ = str.__hash__  # replaced below, by ``_question``

    def _check_alone(self, call: str) -> None:
        """Check that the string shows one number only."""
        trace = self.trace() if self.shows else None
        if trace is not None and (trace.open or join_repetition(trace.level)):
            raise note_refusal(
                ConcretizationError(
                    f"{call}: one text was asked for, got {str.__repr__(self)}, which shows {self.shows}{user_line()}. "
                    "Compare the numbers: funcgrad.numpy.where(x == other, a, b)."
                )
            )

    def __bool__(self) -> bool:  # a text that shows several numbers is not empty, whatever they are
        return str.__len__(self) > 0

    def __str__(self) -> str:
        return self

    def __format__(self, spec: str) -> str:
        shown: str = _part(self, str.__format__(self, spec))
        return shown

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (str.__str__(self),)


def _several_numbers(x: Tracer) -> str:
    """Return what a text of ``x`` shows if examples of a batch, or later runs, have other numbers."""
    traces = list(traces_of([x]))
    if any(trace.hidden_axes for trace in traces):
        return _EXAMPLES
    if is_jax_tracer(plain_value(x)):
        return "a number that is not known while JAX compiles"
    return "a number that each later run of a recorded program has anew" if any(t.is_bit_exact for t in traces) else ""


def refuse_text(text: str) -> NoReturn:
    """Raise a ``ConversionError`` for reading a number from ``text``, which shows a traced number."""
    raise note_refusal(
        ConversionError(
            "float(text): the text shows a traced number, so the number that is made of it would lose the derivative, "
            f"got {str.__repr__(text)}{user_line()}. Use the number itself; round it with funcgrad.numpy.round."
        )
    )


def _is_same(text: str, first: str) -> bool:
    """Whether ``text`` represents the same number as ``first``."""
    if str.__eq__(text, first):
        return True
    try:
        return float(str.__str__(text)) == float(first)
    except ValueError:
        return False


def _part(whole: TracedText, found: Any) -> Any:
    """Return ``found``, made from the string ``whole`` of a traced number, with all strings in it as ``TracedText``."""
    if isinstance(found, (list, tuple)):
        return type(found)([_part(whole, part) for part in found])
    made = TracedText(found)
    made.source, made.trace, made.first = whole.source, whole.trace, whole.first
    made.is_complete, made.shows = whole.is_complete, whole.shows
    return made


def with_source(text: str, parts: Any) -> str:
    """Return ``text``, made from ``parts``, as a ``TracedText`` if one of them shows several numbers."""
    for part in parts:
        if type(part) is TracedText and part.shows:
            made: str = _part(part, text)
            return made
    return text


class Unshared(str):
    """Empty message, see ``shared_state.pending_refusals``, where a text shows the numbers of all examples."""

    __slots__ = ()


def _traced_text_method(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)
    return lambda self, *args, **kwargs: _part(self, plain(self, *args, **kwargs))


_PART_METHODS = "strip lstrip rstrip split rsplit splitlines partition rpartition replace removeprefix removesuffix"
_OTHER_METHODS = (
    "zfill ljust rjust center lower upper capitalize casefold swapcase title expandtabs translate "
    "__getitem__ __add__ __mul__ __rmul__"
)
for _name in f"{_PART_METHODS} {_OTHER_METHODS}".split():
    setattr(TracedText, _name, _traced_text_method(_name))


def _question(name: str) -> Callable[..., Any]:
    """Return the method ``name`` of ``str`` such that it raises an error if the string shows several numbers."""
    plain = getattr(str, name)
    call = {"__len__": "len(text)", "__hash__": "hash(text)", "__contains__": "part in text", "__iter__": "iter(text)"}
    shown = call.get(name) or f"text.{name}"

    def asked(self: TracedText, *args: Any) -> Any:
        self._check_alone(shown)
        return plain(self, *args)

    return asked


_COMPARISONS = "__len__ __hash__ __iter__ __contains__ __lt__ __le__ __gt__ __ge__"
_SEARCHES = "startswith endswith find rfind index rindex count isalnum isalpha isdecimal isdigit isnumeric isspace"
for _name in f"{_COMPARISONS} {_SEARCHES} encode".split():
    setattr(TracedText, _name, _question(_name))
setattr(TracedText, "__radd__", lambda self, other: _part(self, str.__add__(other, self)))  # noqa: B010  (as above)


def has_all_digits(spec: str) -> bool:
    """Whether ``format(x, spec)`` has enough digits to read the number back bit for bit."""
    found = re.search(r"\.(\d+)([eEgG])", spec)
    return not spec or (found is not None and int(found[1]) >= (16 if found[2] in "eE" else 17))


def reads_back(x: Tracer, spec: str) -> bool:
    """Whether ``spec`` asks for 17 decimals or more (``.18f``) and all numbers of ``x`` are read back bit for bit.

    Later runs of a recorded program have other numbers, of which nothing is known.
    """
    found = re.fullmatch(r"[<>+ -]?\d*\.(\d+)[fF]", spec)
    if found is None or int(found[1]) < 17 or any(trace.is_bit_exact for trace in traces_of([x])):
        return False
    return all(float(format(number, spec)) == number for number in np.ravel(plain_value(x)).tolist())
