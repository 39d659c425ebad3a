"""Texts of traced numbers, ``f"{x:.3f}"``: they remember that, so that ``float(text)`` loses nothing unseen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn
from weakref import ref

from funcgrad.core import Tracer, repeated, traces_of
from funcgrad.errors import ConcretizationError, ConversionError
from funcgrad.numpy.hints import user_line
from funcgrad.running import noted


class Shown(str):
    """The text of a traced number, and parts of it: an ordinary text, until a number is made of it while the run lasts.

    It does not keep the number alive, nor what the number was computed from.

    Attributes:
        source: a weak reference to the traced number.
        trace: one to its trace.
        first: the text as it was made, before parts were taken of it.
        whole: whether the text tells the number to its last digit.
        many: whether it shows the numbers of all examples of a ``vmap``.
    """

    __slots__ = ("first", "many", "source", "trace", "whole")

    source: Any
    trace: Any
    first: str
    whole: bool
    many: bool

    @classmethod
    def of(cls, text: str, x: Tracer, whole: bool) -> Shown:
        """``text``, which shows ``x``."""
        made = cls(text)
        made.source, made.trace, made.first, made.whole = ref(x), ref(x._trace), str.__str__(made), whole
        made.many = any(trace.hidden for trace in traces_of([x]))
        return made

    def number(self) -> Any:
        """The traced number that the text tells, or the plain one once the run is over.

        Raises:
            ConversionError: the number is gone, or the text has not all of its digits.
        """
        trace, x = self.trace(), self.source()
        if trace is None or not (trace.open or repeated(trace.level)):
            return float(str.__str__(self))
        if x is None or not self.whole or not _is_same(self, self.first):
            refuse_text(self)
        return x

    def __float__(self) -> float:
        found = self.number()
        if isinstance(found, Tracer):
            refuse_text(self)
        return float(found)

    def __int__(self) -> int:
        if self.many:
            refuse_text(self)
        return int(str.__str__(self))

    def __eq__(self, other: object) -> bool:
        """Whether it is the text ``other``; refused of a batch, where each example has another text."""
        self._check_alone(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        self._check_alone(other)
        return str.__ne__(self, other)

    __hash__ = str.__hash__

    def _check_alone(self, other: object) -> None:
        trace = self.trace() if self.many and type(other) is str else None  # two of a batch may be the same
        if trace is not None and (trace.open or repeated(trace.level)):
            raise noted(
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
    """Refuse to read a number from ``text``, which shows a traced one."""
    raise noted(
        ConversionError(
            "float(text): the text shows a traced number, so the number that is made of it would lose the derivative, "
            f"got {str.__repr__(text)}{user_line()}. Use the number itself; round it with funcgrad.numpy.round."
        )
    )


def _is_same(text: str, first: str) -> bool:
    """Whether ``text`` tells the number that ``first`` does."""
    if str.__eq__(text, first):
        return True
    try:
        return float(str.__str__(text)) == float(first)
    except ValueError:
        return False


def _part(whole: Shown, found: Any) -> Any:
    """A text, or several, that was made of the text of a traced number."""
    if isinstance(found, (list, tuple)):
        return type(found)([_part(whole, part) for part in found])
    if not isinstance(found, str):
        return found
    made = Shown(found)
    made.source, made.trace, made.first = whole.source, whole.trace, whole.first
    made.whole, made.many = whole.whole, whole.many
    return made


def _kept(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)
    return lambda self, *args, **kwargs: _part(self, plain(self, *args, **kwargs))


_PARTS = "strip lstrip rstrip split rsplit splitlines partition rpartition replace removeprefix removesuffix"
_OTHERS = "zfill ljust rjust center lower upper __getitem__ __add__ __mul__ __rmul__"
for _name in f"{_PARTS} {_OTHERS}".split():
    setattr(Shown, _name, _kept(_name))
setattr(Shown, "__radd__", lambda self, other: _part(self, str.__add__(other, self)))  # noqa: B010  (as above)


def has_all_digits(spec: str) -> bool:
    """Whether a number can be read again to its last bit from the text that ``format(x, spec)`` gives."""
    found = re.search(r"\.(\d+)([eEgG])", spec)
    return not spec or (found is not None and int(found[1]) >= (16 if found[2] in "eE" else 17))
