"""How a rule says what it needs: by the names of its arguments.

The arguments of a primitive are called ``x``, ``y`` and ``z`` by position, its result ``ans``, a
tangent or cotangent ``t`` or ``ct``, and static parameters are keyword-only. The tape saves exactly
the values that the rules of the differentiated arguments name.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, TypeAlias

from funcgrad.core import Primitive
from funcgrad.errors import InputError

__all__ = ["NAMES", "Operation", "Rule", "check_names", "finish", "positional_names", "pull_of"]

NAMES = ("x", "y", "z")
_DEFINERS = ("funcgrad.kinds", "funcgrad.extend")
Rule: TypeAlias = Callable[..., Any]
#: What a definer returns: a function of arrays, with the primitive as its attribute ``primitive``.
Operation: TypeAlias = Callable[..., Any]


def positional_names(rule: Rule) -> tuple[str, ...]:
    """The names of the positional arguments of ``rule``.

    Example:
        >>> positional_names(lambda ct, x, *, axis: ct)
        ('ct', 'x')
    """
    if type(rule) is FunctionType:
        code = rule.__code__
        return code.co_varnames[: code.co_argcount]
    parameters = inspect.signature(rule).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def check_names(operation: str, names: Sequence[str], known: Iterable[str]) -> Sequence[str]:
    """``names``, what a rule of ``operation`` asks for, if all of it is known."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"{operation}: a rule names what it needs, got {', '.join(unknown)}. It may name {', '.join(known)}."
        )
    return names


def pull_of(operation: str | Callable[[Any], str], pull: Rule) -> Rule:
    """``pull``, marked once and for all with the operation it belongs to, so that a record on the tape has a name.

    Args:
        operation: the name; a function of the record where the rule serves several operations.
        pull: ``pull(ct, node)``, of this operation alone.
    """
    pull.operation = operation  # type: ignore[attr-defined]
    return pull


def finish(call: Operation, primitive: Primitive) -> Operation:
    """Join a function and its primitive, and name the function so that it pickles."""
    call.primitive = primitive  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = primitive.name
    frame: Any = sys._getframe(1)
    while frame.f_globals["__name__"].startswith(_DEFINERS) and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    call.__module__ = frame.f_globals["__name__"]
    primitive.call = call
    return call
