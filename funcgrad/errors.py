"""The errors funcgrad raises of its own: each derives from the builtin a caller would catch anyway.

Messages read ``<public call>: <what is wrong>, got <value>. <what to do>.``
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AxisNameError",
    "BranchError",
    "ConcretizationError",
    "ConvergenceError",
    "ConversionError",
    "CrossCheckError",
    "DeviceError",
    "EagerWarning",
    "EscapedTracerError",
    "FuncgradError",
    "GradientCheckError",
    "InputError",
    "MissingExtraError",
    "NanError",
    "NoRuleError",
    "NotDifferentiableError",
    "ReadOnlyError",
    "ReplayError",
    "ShapeError",
    "StagingError",
    "StructuralZeroError",
    "UnsizedError",
]


class FuncgradError(Exception):
    """The common ancestor of every error that funcgrad raises on purpose.

    Example:
        >>> issubclass(EscapedTracerError, FuncgradError)
        True
    """


class InputError(FuncgradError, TypeError):
    """An argument of a transform has the wrong type, dtype or structure (a ``TypeError``)."""


class ShapeError(FuncgradError, ValueError):
    """An argument has the wrong shape, size or number of entries (a ``ValueError``)."""


class UnsizedError(InputError, AttributeError):
    """A traced number was asked for its length.

    It is a ``TypeError`` of ``len(x)``, and an ``AttributeError``, so that ``hasattr(x, "__len__")`` is False.
    """


class ReadOnlyError(InputError, ValueError):
    """A read-only array was written to (a ``TypeError`` and, as in NumPy, a ``ValueError``)."""

    #: Whether the array is a constant of code that was built anew, which may run once more with others in its place.
    of_constant = False


class NotDifferentiableError(FuncgradError, TypeError):
    """A derivative was asked for through an operation that has none (a ``TypeError``)."""


class ConcretizationError(FuncgradError, TypeError):
    """A plain Python or NumPy value was asked of a tracer, which would cut the derivative (a ``TypeError``)."""


class ConversionError(ConcretizationError, InputError):
    """A plain value was asked of a tracer by code that would lose its derivative (a ``TypeError``).

    A transform that meets it runs the function once more, with funcgrad's functions in place of NumPy's.
    """

    #: Whether compiled code refused, which takes no traced value whatever the function around it does.
    compiled = False


class NoRuleError(NotDifferentiableError, ConversionError):
    """A traced value came to a function of another library for which there is no rule (a ``TypeError``)."""


class StructuralZeroError(NotDifferentiableError):
    """Under ``strict``, a derivative is zero whatever the values are (a ``TypeError``)."""


class NanError(FuncgradError, FloatingPointError):
    """A NaN or an infinity appeared under ``debug_nans`` (a ``FloatingPointError``).

    Attributes:
        operation: the operation that made it, or whose pullback did.
    """

    def __init__(self, message: str, operation: str | None = None) -> None:
        super().__init__(message)
        self.operation = operation


class EscapedTracerError(FuncgradError, RuntimeError):
    """A tracer was used after the transform that made it had finished (a ``RuntimeError``)."""


class GradientCheckError(FuncgradError, AssertionError):
    """A derivative does not agree with a numerical one (an ``AssertionError``)."""


class AxisNameError(FuncgradError, NameError):
    """A collective named an axis that no enclosing ``vmap`` binds (a ``NameError``)."""


class BranchError(FuncgradError, ValueError):
    """A captured graph was evaluated on inputs for which the function would take another branch (a ``ValueError``)."""


class ReplayError(FuncgradError, RuntimeError):
    """The second run of a function under ``checkpoint`` did something else than the first (a ``RuntimeError``)."""


class ConvergenceError(FuncgradError, ArithmeticError):
    """A solver did not find a solution (an ``ArithmeticError``)."""


class EagerWarning(FuncgradError, UserWarning):  # noqa: N818
    """A function that cannot be recorded runs as it stands (a ``UserWarning``)."""


class MissingExtraError(FuncgradError, ImportError):
    """A library that funcgrad needs only here is not installed (an ``ImportError``)."""


class CrossCheckError(FuncgradError, AssertionError):
    """A derivative did not pass the cross-check (an ``AssertionError``); the message is the report."""


class StagingError(FuncgradError, TypeError):
    """A function that is compiled asked for a value that is not known yet (a ``TypeError``)."""


class DeviceError(FuncgradError, RuntimeError):
    """There is no such device here (a ``RuntimeError``)."""


def shown(x: Any) -> str:
    """The ``repr`` of ``x``, shortened for messages.

    Example:
        >>> shown([1.5])
        '[1.5]'
    """
    try:
        text = repr(x)
    except RecursionError:
        return "nested too deep to be shown"
    return text if len(text) <= 60 else text[:57] + "..."
