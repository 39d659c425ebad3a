"""Code in which calls of some names look for other names: ``float(x)`` for ``⟨float⟩(x)``.

A class such as ``float`` is a function where it is called, and a class everywhere else: ``isinstance(x, float)``,
``dtype=float``. Python's compiler tells them apart: a global name that is called right away is loaded with a flag.
Only the names of these instructions are changed, so that lines, positions and everything else stay what they are.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import ref

from funcgrad.numpy_code.conversions import Text

__all__ = ["CALLED", "ByIdentity", "called", "with_calls", "written"]

#: Names that mean something else where they are called.
CALLED = frozenset(("complex", "eval", "exec", "float", "int", "map", "type"))
#: The instructions that load an attribute. Of modules Python's compiler knows that no method is meant: then the module
#: is loaded with the flag, or a method is loaded.
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_IS_FLAGGED = sys.version_info >= (3, 12)  # whether the loading of attributes has a flag, too
#: Where the instruction stands that tells of a name in code made of a text that it is called.
_FLAG_BESIDE = -1 if sys.version_info < (3, 13) else 1


class ByIdentity:
    """What is known of objects as long as they live, told apart as objects and not by all that they hold."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[ref[Any], Any]] = {}

    def get(self, value: Any) -> Any:
        """What was put for ``value``, or None."""
        known = self.known.get(id(value))
        if known is None or known[0]() is not value:
            return None
        return value if known[1] is _ITSELF else known[1]

    def put(self, value: Any, found: Any) -> None:
        """Know ``found`` of ``value``, which may be the object itself."""
        number, known = id(value), self.known
        known[number] = ref(value, lambda _: known.pop(number, None)), _ITSELF if found is value else found


_ITSELF: Any = object()
_KNOWN = ByIdentity()


def called(name: str) -> str:
    """The name that stands for ``name`` where it is called."""
    return f"⟨{name}⟩"


def written(name: str) -> str:
    """The name that stands in the code for ``name`` of ``called``; nothing where it is another name."""
    return name[1:-1] if name[0] == "⟨" else ""


def with_calls(code: CodeType, is_called: Callable[[str, str], bool]) -> CodeType:
    """``code``, and the code of the functions inside, with other names where some are called.

    Args:
        code: a function's code.
        is_called: ``is_called(owner, name)``: whether the call of a global name is meant, ``owner`` being empty,
            or that of an attribute of the global name ``owner``; ``name`` being empty, whether it may be that of any.
    """
    made: CodeType | None = _KNOWN.get(code)
    if made is None:
        made = _changed(code, is_called)
        _KNOWN.put(code, made)
    return made


def _changed(code: CodeType, is_called: Callable[[str, str], bool]) -> CodeType:
    names, raw = list(code.co_names), bytearray(code.co_code)
    steps = list(dis.get_instructions(code)) if _may_change(code, is_called) else []
    for at, step in enumerate(steps):
        if _is_call(steps, at, is_called):
            shift = 1 if step.opname == "LOAD_GLOBAL" or (step.opname == "LOAD_ATTR" and _IS_FLAGGED) else 0
            _rename(raw, names, step.offset, called(step.argval), shift)
    fills = any(step.opname == "BINARY_OP" and step.argrepr in ("%", "%=") for step in steps)
    consts = tuple([_constant(c, is_called, fills) for c in code.co_consts])
    if len(names) == len(code.co_names) and all(a is b for a, b in zip(consts, code.co_consts, strict=True)):
        return code
    return code.replace(co_code=bytes(raw), co_names=tuple(names), co_consts=consts)


def _may_change(code: CodeType, is_called: Callable[[str, str], bool]) -> bool:
    """Whether a name of the code is meant where it is called, or a text may be filled: most code has none of these."""
    names = code.co_names
    owners = ["", *[name for name in names if is_called(name, "")]]
    return any(is_called(owner, name) for owner in owners for name in names) or any(
        type(value) is str and "%" in value for value in code.co_consts
    )


def _constant(value: Any, is_called: Callable[[str, str], bool], fills: bool) -> Any:
    """A constant of a code: the code of a function inside, or a text, which may be filled by ``%``."""
    if isinstance(value, CodeType):
        return _changed(value, is_called)
    return Text(value) if fills and type(value) is str and "%" in value else value


def _is_call(steps: list[dis.Instruction], at: int, is_called: Callable[[str, str], bool]) -> bool:
    """Whether the instruction at this place loads a name that is called right away, and is meant."""
    step = steps[at]
    if step.opname == "LOAD_GLOBAL":
        return bool((step.arg or 0) & 1) and is_called("", step.argval)
    if step.opname == "LOAD_NAME":  # in code made of a text, where the flag is an instruction of its own
        beside = at + _FLAG_BESIDE
        return 0 <= beside < len(steps) and steps[beside].opname == "PUSH_NULL" and is_called("", step.argval)
    owner = steps[at - 1]
    if step.opname not in _ATTRIBUTES or at == 0 or owner.opname != "LOAD_GLOBAL":
        return False
    is_method = step.opname == "LOAD_METHOD" or (_IS_FLAGGED and bool((step.arg or 0) & 1))
    following = steps[at + 1].opname if at + 1 < len(steps) else ""
    is_pushed = following == "PUSH_NULL" and _FLAG_BESIDE == 1  # of a module, since Python 3.13
    is_last = bool((owner.arg or 0) & 1) and following not in _ATTRIBUTES
    return (is_method or is_pushed or is_last) and is_called(owner.argval, step.argval)


def _rename(raw: bytearray, names: list[str], offset: int, name: str, shift: int) -> None:
    """Let the instruction at ``offset`` load ``name``, if its place in the table of names can be written there."""
    place = names.index(name) if name in names else len(names)
    arg = place << shift | (raw[offset + 1] & 1 if shift else 0)
    wide = offset >= 2 and raw[offset - 2] == dis.EXTENDED_ARG
    if arg > (0xFFFF if wide else 0xFF):
        return  # a function with more than a hundred global names: the call stays what it is, and may be refused
    if name not in names:
        names.append(name)
    raw[offset + 1] = arg & 0xFF
    if wide:
        raw[offset - 1] = arg >> 8
