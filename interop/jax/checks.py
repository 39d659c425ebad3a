"""Errors that a compiled program raises: the program returns conditions, and whoever calls it raises the error.

A function may raise an error on one side of a branch, as in ``if rate < 0: raise ValueError(...)``. While JAX compiles,
the condition is not known, so the error is made and kept beside the program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import Tracer, describe
from funcgrad.numpy.plain_values.hints import user_line


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """An error to raise if a condition is true when the compiled program runs.

    Attributes:
        error: the error.
        place: the user's line, ", at FILE:LINE `CODE`".
    """

    error: Exception
    place: str

    def copied(self) -> FailedCheck:
        """Return the check with an error of its own, which may be raised."""
        kind = type(self.error)
        error: Exception = kind.__new__(kind, *self.error.args)  # its constructor may take other arguments
        vars(error).update(vars(self.error))
        error.__notes__ = [*getattr(self.error, "__notes__", ())]
        return FailedCheck(error, self.place)

    def to_raise(self, name: str) -> Exception:
        """Return the error, for one call of the function ``name``."""
        error = self.copied().error
        error.__notes__ = [
            *error.__notes__,
            f"The compiled program of {name} raised this error{self.place}. It does not know the numbers in the text: "
            f"call {name} without jit to see them.",
        ]
        return error


def failed_check(error: Exception, place: str | None = None) -> FailedCheck:
    """Return a check that raises ``error``, as it can be kept: without frames, and with texts for traced values."""
    place = user_line(error) if place is None else place
    error.args = tree.map(_kept, error.args)
    vars(error).update(tree.map(_kept, vars(error)))
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return FailedCheck(error, place)


def _kept(x: Any) -> Any:
    if type(x) is Tracer:
        return describe(x)
    return without_tracers(x) if isinstance(x, str) else x


#: The text of a traced value inside of which is no other: ``LiftedTracer(level=1, float64[], value=2.0)``.
_TRACED_TEXT = re.compile(r"\w+Tracer\((?:level=\d+, |aval=)?~?(\w+(?:\[[^\]()]*\])?)(?:, [^()]*)?\)")


def without_tracers(text: str) -> str:
    """Return a text with dtype and shape in place of traced values.

    Example:
        >>> without_tracers("got ReverseTracer(level=2, float64[3], value=JitTracer(~float64[3]))")
        'got float64[3]'
    """
    found, count = _TRACED_TEXT.subn(r"\1", str.__str__(text))
    return without_tracers(found) if count else found


def raise_failed(name: str, checks: Sequence[FailedCheck], failed: Any) -> None:
    """Raise the error of the first check that has failed.

    Args:
        name: the function's name.
        checks: the checks of a compiled program.
        failed: their conditions, an array of JAX or NumPy.

    Raises:
        Exception: the error that the function raises there.
    """
    which = np.flatnonzero(np.asarray(failed))
    if which.size:
        raise checks[which[0]].to_raise(name)
