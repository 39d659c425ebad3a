"""The errors of funcgrad. Each derives from the builtin error that a caller would catch anyway.

Messages read ``<public call>: <what is wrong>, got <value>. <what to do>.``
"""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "AxisNameError", "BranchError", "ConcretizationError", "ConvergenceError", "ConversionError", "CrossCheckError",
    "DeviceError", "EagerWarning", "EscapedTracerError", "FuncgradError", "GradientCheckError", "InputError",
    "MissingExtraError", "NanError", "NoRuleError", "NotDifferentiableError", "ReadOnlyError", "ReplayError",
    "ShapeError", "StagingError", "StructuralZeroError", "UnsizedError",
]  # fmt: skip


class FuncgradError(Exception):
    """Base class of all errors that funcgrad raises on purpose.

    Example:
        >>> issubclass(EscapedTracerError, FuncgradError)
        True
    """


class InputError(FuncgradError, TypeError):
    """Wrong type, dtype or structure of an argument (a ``TypeError``)."""


class ShapeError(FuncgradError, ValueError):
    """Wrong shape, size or number of entries of an argument (a ``ValueError``)."""


class UnsizedError(InputError, AttributeError):
    """Request for the length of a traced number.

    It is a ``TypeError``, as of ``len(2.0)``, and an ``AttributeError``, so that ``hasattr(x, "__len__")`` is False.
    """


class ReadOnlyError(InputError, ValueError):
    """Write to a read-only array (a ``TypeError`` and, as in NumPy, a ``ValueError``)."""

    #: Whether the array is a constant of rebuilt code, which may run once more with a writable array in its place.
    of_constant = False


class NotDifferentiableError(FuncgradError, TypeError):
    """Derivative of an operation that has none (a ``TypeError``)."""


class ConcretizationError(FuncgradError, TypeError):
    """Request for a plain Python or NumPy value of a tracer, which would cut the derivative (a ``TypeError``)."""


class ConversionError(ConcretizationError, InputError):
    """Request for a plain value of a tracer by code that would lose the derivative (a ``TypeError``).

    A transform that catches this error runs the function once more, with funcgrad's functions in place of NumPy's.
    """

    #: Whether compiled code raised the error; compiled code takes no traced values, however the function is rebuilt.
    compiled = False
    #: Whether the function changed an ordinary array that it had used; arrays of rebuilt code notice writes.
    overwritten = False


class NoRuleError(NotDifferentiableError, ConversionError):
    """Traced value in a call of another library's function that has no rule (a ``TypeError``)."""


class StructuralZeroError(NotDifferentiableError):
    """Derivative that is zero whatever the values are, under ``strict`` (a ``TypeError``)."""


class NanError(FuncgradError, FloatingPointError):
    """NaN or infinity under ``debug_nans`` (a ``FloatingPointError``).

    Attributes:
        operation: the name of the operation that made the value, in its computation or in its VJP rule.
    """

    def __init__(self, message: str, operation: str | None = None) -> None:
        super().__init__(message)
        self.operation = operation


class EscapedTracerError(FuncgradError, RuntimeError):
    """Use of a tracer after the transform that made it has finished (a ``RuntimeError``)."""


class GradientCheckError(FuncgradError, AssertionError):
    """Derivative that does not agree with the numerical derivative (an ``AssertionError``)."""


class AxisNameError(FuncgradError, NameError):
    """Axis name in a collective that no enclosing ``vmap`` binds (a ``NameError``)."""


class BranchError(FuncgradError, ValueError):
    """Evaluation of a captured graph on inputs for which the function takes another branch (a ``ValueError``)."""


class ReplayError(FuncgradError, RuntimeError):
    """Second run of a function under ``checkpoint`` that differs from the first run (a ``RuntimeError``)."""


class ConvergenceError(FuncgradError, ArithmeticError):
    """Solver that did not find a solution (an ``ArithmeticError``)."""


class EagerWarning(FuncgradError, UserWarning):  # noqa: N818
    """Warning that ``jit`` cannot record a function and runs it unchanged (a ``UserWarning``)."""


class MissingExtraError(FuncgradError, ImportError):
    """Missing optional library that this call needs (an ``ImportError``)."""


class CrossCheckError(FuncgradError, AssertionError):
    """Derivative that did not pass the cross-check (an ``AssertionError``); the message is the report."""


class StagingError(FuncgradError, TypeError):
    """Request of a function under compilation for a value that is not known yet (a ``TypeError``)."""


class DeviceError(FuncgradError, RuntimeError):
    """Device that does not exist on this machine (a ``RuntimeError``)."""


def short_repr(x: Any) -> str:
    """Return the ``repr`` of ``x``, shortened for messages."""
    try:
        text = repr(x)
    except RecursionError:
        return "nested too deep to be shown"
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return text if len(text) <= 60 else text[:57] + "..."


def typed_repr(x: Any) -> str:
    """Return the type and the shortened ``repr`` of ``x``, for messages.

    Example:
        >>> typed_repr("text"), typed_repr(None)
        ("str 'text'", 'None')
    """
    name, text = type(x).__name__, short_repr(x)
    return text if x is None or text.startswith(f"{name}(") else f"{name} {text}"


def text_of(error: BaseException) -> str:
    """Return the text of an error as an ordinary string, also if the text shows traced numbers."""
    return str.__str__(str(error))
