"""Code in which calls of some names look for other names: ``float(x)`` for ``⟨float⟩(x)``.

A class such as ``float`` is a function where it is called, and a class everywhere else: ``isinstance(x, float)``,
``dtype=float``. Python's compiler tells them apart: a global name that is called right away is loaded with a flag.
Only the names of these instructions are changed, so that lines, positions and everything else stay what they are.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import ref

from funcgrad.numpy_code.conversions import filled

_GLOBAL, _NAME, _ATTRIBUTE = [dis.opmap[name] for name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR")]
#: Loads a method, before Python 3.12; no instruction afterwards.
_METHOD = dis.opmap["LOAD_METHOD"] if sys.version_info < (3, 12) else -1
#: The instructions that load an attribute. Of modules Python's compiler knows that no method is meant: then the module
#: is loaded with the flag, or a method is loaded.
_ATTRIBUTES = (_ATTRIBUTE, _METHOD)
_NAMING = (_GLOBAL, _NAME, *_ATTRIBUTES)
#: Pushes the flag of a name in code made of a text, and where that stands from the name.
_PUSHED, _FLAG_BESIDE = dis.opmap["PUSH_NULL"], -1 if sys.version_info < (3, 13) else 1
#: Calls ``super`` and asks what it gives for an attribute at once, since Python 3.12.
_SUPER = dis.opmap.get("LOAD_SUPER_ATTR", -1)
#: The instructions with which a call of something without arguments begins.
_CALLS = (dis.opmap.get("PRECALL", -1), dis.opmap["CALL"])
#: How far the number of a name is shifted in an instruction that has a flag, too.
_SHIFTS = {_GLOBAL: 1, _ATTRIBUTE: int(sys.version_info >= (3, 12))}
#: What is no instruction of its own.
_BETWEEN = (dis.opmap["CACHE"], dis.EXTENDED_ARG)


#: An instruction: where it stands, which it is, its argument, and the name that it loads.
_Step = tuple[int, int, int, str]


class Known(ref[Any]):
    """A weak reference that holds what is known of its object. One object each: the collector looks at all of them."""

    __slots__ = ("found", "number")

    number: int
    found: Any


class ByIdentity:
    """What is known of objects as long as they live, told apart as objects and not by all that they hold."""

    def __init__(self) -> None:
        known: dict[int, Known] = {}
        self.known = known
        self.forget: Callable[[Known], Any] = lambda dead: known.pop(dead.number, None)

    def get(self, value: Any) -> Any:
        """What was put for ``value``, or None."""
        known = self.known.get(id(value))
        if known is None or known() is not value:
            return None
        return value if known.found is _ITSELF else known.found

    def put(self, value: Any, found: Any) -> None:
        """Know ``found`` of ``value``, which may be the object itself."""
        known = Known(value, self.forget)
        known.number, known.found = id(value), _ITSELF if found is value else found
        self.known[known.number] = known


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
    steps = _steps(raw, names) if _may_change(code, is_called) else []
    for at, (offset, op, _, name) in enumerate(steps):
        if name and _is_call(steps, at, is_called):
            _rename(raw, names, offset, called(name), _SHIFTS.get(op, 0))
    consts = tuple([_constant(c, is_called) for c in code.co_consts])
    if len(names) == len(code.co_names) and all(a is b for a, b in zip(consts, code.co_consts, strict=True)):
        return code
    return code.replace(co_code=bytes(raw), co_names=tuple(names), co_consts=consts)


def _steps(raw: bytearray, names: list[str]) -> list[_Step]:
    """The instructions of a code. ``dis`` tells the same with positions and texts, and takes ten times as long."""
    steps, high = [], 0
    for offset in range(0, len(raw), 2):
        op, arg = raw[offset], raw[offset + 1] | high
        high = arg << 8 if op == dis.EXTENDED_ARG else 0
        if op not in _BETWEEN:
            steps.append((offset, op, arg, names[arg >> _SHIFTS.get(op, 0)] if op in _NAMING else ""))
    return steps


def _may_change(code: CodeType, is_called: Callable[[str, str], bool]) -> bool:
    """Whether a name of the code may be meant where it is called: in most code none is."""
    names = code.co_names
    owners = ["", *[name for name in names if is_called(name, "")]]
    return any(is_called(owner, name) for owner in owners for name in names)


def _constant(value: Any, is_called: Callable[[str, str], bool]) -> Any:
    """A constant of a code: the code of a function inside, or a text, which may be filled by ``%`` somewhere else."""
    if isinstance(value, CodeType):
        return _changed(value, is_called)
    if type(value) is not tuple:
        return filled(value)
    members = tuple([_constant(member, is_called) for member in value])
    return value if all(map(operator.is_, members, value)) else members


def _is_call(steps: list[_Step], at: int, is_called: Callable[[str, str], bool]) -> bool:
    """Whether the instruction at this place loads a name that is called right away, and is meant."""
    _, op, arg, name = steps[at]
    if name == "super":
        return op == _GLOBAL and _has_class(steps, at) and is_called("", name)
    if op == _GLOBAL:
        return bool(arg & 1) and is_called("", name)
    if op == _NAME:  # in code made of a text, where the flag is an instruction of its own
        beside = at + _FLAG_BESIDE
        return 0 <= beside < len(steps) and steps[beside][1] == _PUSHED and is_called("", name)
    _, before, flagged, owner = steps[at - 1]
    if at == 0 or before != _GLOBAL:
        return False
    is_method = op == _METHOD or (_SHIFTS[_ATTRIBUTE] == 1 and bool(arg & 1))
    following = steps[at + 1][1] if at + 1 < len(steps) else None
    is_pushed = following == _PUSHED and _FLAG_BESIDE == 1  # of a module, since Python 3.13
    is_last = bool(flagged & 1) and following not in _ATTRIBUTES
    return (is_method or is_pushed or is_last) and is_called(owner, name)


def _has_class(steps: list[_Step], at: int) -> bool:
    """Whether ``super``, loaded at this place, is called with a class: without one it looks for it in its caller."""
    if steps[at][2] & 1 and steps[at + 1][1] in _CALLS:
        return steps[at + 1][2] > 0
    op, arg = next(((op, arg) for _, op, arg, _ in steps[at:] if op == _SUPER or op in _CALLS), (0, 0))
    return bool(arg & 2) if op == _SUPER else bool(steps[at][2] & 1)


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
