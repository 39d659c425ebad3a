"""Strings made from traced numbers, ``f"{x:.3f}"``, which keep ``float(text)`` from losing derivatives silently."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import ref

from funcgrad.core import Tracer, join_repetition, traces_of
from funcgrad.errors import ConcretizationError, ConversionError
from funcgrad.numpy.hints import user_line
from funcgrad.shared_state import note_refusal


class TracedText(str):
    """String made from a traced number, or a part of such a string; keeps neither the number nor its record alive.

    During the run, conversions to numbers and comparisons within a batch differ from ``str``.

    Attributes:
        source: a weak reference to the traced number.
        trace: a weak reference to its trace.
        first: the original string, before parts were taken.
        is_complete: whether the string has all digits of the number.
        is_batched: whether the string shows the numbers of all examples of a ``vmap``.
    """

    __slots__ = ("first", "is_batched", "is_complete", "source", "trace")

    source: Any
    trace: Any
    first: str
    is_complete: bool
    is_batched: bool

    @classmethod
    def of(cls, text: str, x: Tracer, is_complete: bool) -> TracedText:
        """Return ``text`` as the string of ``x``."""
        made = cls(text)
        made.source, made.trace, made.first, made.is_complete = ref(x), ref(x._trace), str.__str__(made), is_complete
        made.is_batched = any(trace.hidden_axes for trace in traces_of([x]))
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
        if self.is_batched:
            refuse_text(self)
        return int(str.__str__(self))

    def __eq__(self, other: object) -> bool:
        """Whether the string equals ``other``; an error for a batch, where each example has another string."""
        self._check_alone(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._check_alone(other)
        return str.__ne__(self, other)

    __hash__ = str.__hash__

    def _check_alone(self, other: object) -> None:
        # two strings of a batch may be compared
        trace = self.trace() if self.is_batched and type(other) is str else None
        if trace is not None and (trace.open or join_repetition(trace.level)):
            raise note_refusal(
                ConcretizationError(
                    f"text == other: one text was asked for, got {str.__repr__(self)}, which shows the numbers of all "
                    f"examples of a vmap{user_line()}. Compare the numbers: funcgrad.numpy.where(x == other, a, b)."
                )
            )

    def __str__(self) -> str:
        return self

    def __format__(self, spec: str) -> str:
        shown: str = _part(self, str.__format__(self, spec))
        return shown

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (str.__str__(self),)


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
    if not isinstance(found, str):
        return found
    made = TracedText(found)
    made.source, made.trace, made.first = whole.source, whole.trace, whole.first
    made.is_complete, made.is_batched = whole.is_complete, whole.is_batched
    return made


def _traced_text_method(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)
    return lambda self, *args, **kwargs: _part(self, plain(self, *args, **kwargs))


_PART_METHODS = "strip lstrip rstrip split rsplit splitlines partition rpartition replace removeprefix removesuffix"
_OTHER_METHODS = "zfill ljust rjust center lower upper __getitem__ __add__ __mul__ __rmul__"
for _name in f"{_PART_METHODS} {_OTHER_METHODS}".split():
    setattr(TracedText, _name, _traced_text_method(_name))
setattr(TracedText, "__radd__", lambda self, other: _part(self, str.__add__(other, self)))  # noqa: B010  (as above)


def has_all_digits(spec: str) -> bool:
    """Whether ``format(x, spec)`` has enough digits to read the number back bit for bit."""
    found = re.search(r"\.(\d+)([eEgG])", spec)
    return not spec or (found is not None and int(found[1]) >= (16 if found[2] in "eE" else 17))
