"""Code in which calls of some names look up other names: ``⟨float⟩(x)`` in place of ``float(x)``.

A class such as ``float`` is a function where it is called, and a class everywhere else: ``isinstance(x, float)``,
``dtype=float``. Python's compiler marks the difference: it loads a global name that is called at once with a flag.
Only the names in these instructions are changed, so that lines, positions and everything else stay the same.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import ref

from funcgrad.numpy.tables.containers import CONSTRUCTING_METHODS
from funcgrad.numpy_code.conversions import as_format_string

_GLOBAL, _NAME, _ATTRIBUTE = [dis.opmap[name] for name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR")]
#: Opcode that loads a method, before Python 3.12; -1 in later versions.
_METHOD = dis.opmap["LOAD_METHOD"] if sys.version_info < (3, 12) else -1
#: Opcodes that load an attribute. Python's compiler knows that an attribute of a module is not a method: it loads
#: the module with the flag, or it loads a method.
_ATTRIBUTES = (_ATTRIBUTE, _METHOD)
_NAMING = (_GLOBAL, _NAME, *_ATTRIBUTES)
#: Opcode that pushes the flag of a name in code compiled from a text, and its offset from the name.
_PUSHED, _FLAG_OFFSET = dis.opmap["PUSH_NULL"], -1 if sys.version_info < (3, 13) else 1
#: Opcode, since Python 3.12, that calls ``super`` and loads an attribute of the result at once.
_SUPER = dis.opmap.get("LOAD_SUPER_ATTR", -1)
#: Opcodes with which a call without arguments begins.
_CALLS = (dis.opmap.get("PRECALL", -1), dis.opmap["CALL"])
#: Number of bits by which the index of a name is shifted in an instruction that also has a flag.
_SHIFTS = {_GLOBAL: 1, _ATTRIBUTE: int(sys.version_info >= (3, 12))}
#: Opcodes that are not instructions of their own.
_NO_INSTRUCTIONS = (dis.opmap["CACHE"], dis.EXTENDED_ARG)


#: Name that no global value has.
_UNKNOWN = "?"
#: An instruction: its offset, opcode and argument, and the name that it loads.
_Step = tuple[int, int, int, str]


class WeakEntry(ref[Any]):
    """Weak reference that also holds what is known of its object: fewer objects for the garbage collector to visit."""

    __slots__ = ("number", "stored")

    number: int
    stored: Any


class IdentityCache:
    """Facts about objects, kept as long as the objects live, and keyed by identity, not by equality."""

    def __init__(self) -> None:
        known: dict[int, WeakEntry] = {}
        self.entries = known
        self.forget: Callable[[WeakEntry], Any] = lambda dead: known.pop(dead.number, None)

    def get(self, value: Any) -> Any:
        """Return what was stored for ``value``, or None."""
        known = self.entries.get(id(value))
        if known is None or known() is not value:
            return None
        return value if known.stored is _ITSELF else known.stored

    def put(self, value: Any, stored: Any) -> None:
        """Store ``stored`` for ``value``; ``stored`` may be ``value`` itself."""
        known = WeakEntry(value, self.forget)
        known.number, known.stored = id(value), _ITSELF if stored is value else stored
        self.entries[known.number] = known


_ITSELF: Any = object()
_CHANGED_CODES = IdentityCache()


def call_name(name: str) -> str:
    """Return the name that replaces ``name`` in calls."""
    return f"⟨{name}⟩"


def owner_name(name: str) -> str:
    """Return the name that replaces ``name``, that of a class, where code takes a method from the class."""
    return f"⟨{name}.⟩"


def names_owner(name: str) -> bool:
    """Whether ``owner_name`` made ``name``."""
    return name.endswith(".⟩")


def source_name(name: str) -> str:
    """Return the name in the source for a name made by ``call_name`` or ``owner_name``; "" for another name."""
    return name[1:-1].removesuffix(".") if name[0] == "⟨" else ""


def with_calls(code: CodeType, is_called: Callable[[str, str], bool]) -> CodeType:
    """Return ``code``, and the code of the functions inside, with other names in some calls.

    Args:
        code: a function's code.
        is_called: ``is_called("", name)`` tells whether calls of a global name are replaced, ``is_called(owner, name)``
            those of an attribute of the global name ``owner``, ``is_called(owner, "")`` those of any of its attributes;
            with ``owner_name(name)``, whether methods that are taken from the class of this name are replaced.
    """
    made: CodeType | None = _CHANGED_CODES.get(code)
    if made is None:
        made = _changed(code, is_called)
        _CHANGED_CODES.put(code, made)
    return made


def _changed(code: CodeType, is_called: Callable[[str, str], bool]) -> CodeType:
    names, raw = list(code.co_names), bytearray(code.co_code)
    steps = _steps(raw, names) if _may_change(code, is_called) else []
    for at, (offset, op, _, name) in enumerate(steps):
        if name and (new := _new_name(steps, at, is_called)):
            _rename(raw, names, offset, new, _SHIFTS.get(op, 0))
    consts = tuple([_constant(c, is_called) for c in code.co_consts])
    if len(names) == len(code.co_names) and all(a is b for a, b in zip(consts, code.co_consts, strict=True)):
        return code
    return code.replace(co_code=bytes(raw), co_names=tuple(names), co_consts=consts)


def _steps(raw: bytearray, names: list[str]) -> list[_Step]:
    """Return the instructions of a code. ``dis`` returns them with positions and texts, but takes ten times as long."""
    steps, high = [], 0
    for offset in range(0, len(raw), 2):
        op, arg = raw[offset], raw[offset + 1] | high
        high = arg << 8 if op == dis.EXTENDED_ARG else 0
        if op not in _NO_INSTRUCTIONS:
            steps.append((offset, op, arg, names[arg >> _SHIFTS.get(op, 0)] if op in _NAMING else ""))
    return steps


def _may_change(code: CodeType, is_called: Callable[[str, str], bool]) -> bool:
    """Whether a call of any name in the code may be replaced; in most code none is."""
    names = code.co_names
    owners = ["", *[name for name in names if is_called(name, "")]]
    return any(is_called(owner, name) or is_called(owner, owner_name(name)) for owner in owners for name in names)


def _constant(value: Any, is_called: Callable[[str, str], bool]) -> Any:
    """Return a constant of a code: the changed code of an inner function, or a text that ``%`` may fill elsewhere."""
    if isinstance(value, CodeType):
        return _changed(value, is_called)
    if type(value) is not tuple:
        return as_format_string(value)
    members = tuple([_constant(member, is_called) for member in value])
    return value if all(map(operator.is_, members, value)) else members


def _new_name(steps: list[_Step], at: int, is_called: Callable[[str, str], bool]) -> str:
    """Return the name that the instruction at index ``at`` is to load in place of its own; "" for none."""
    name = steps[at][3]
    if _is_call(steps, at, is_called):
        return call_name(name)
    new, has_attribute = owner_name(name), at + 1 < len(steps) and steps[at + 1][1] in _ATTRIBUTES
    return new if has_attribute and is_called(_owner(steps, at), new) else ""


def _owner(steps: list[_Step], at: int) -> str:
    """Return the global name of whose value the instruction at index ``at`` loads an attribute.

    It is "" for an instruction that loads a global name itself, and ``_UNKNOWN`` for an attribute of something else.
    """
    if steps[at][1] not in _ATTRIBUTES:
        return ""
    return steps[at - 1][3] if at and steps[at - 1][1] in (_GLOBAL, _NAME) else _UNKNOWN


def _is_call(steps: list[_Step], at: int, is_called: Callable[[str, str], bool]) -> bool:
    """Whether the instruction at index ``at`` loads a name that is called at once and whose call is replaced."""
    _, op, arg, name = steps[at]
    if name == "super":
        return op == _GLOBAL and _has_argument(steps, at) and is_called("", name)
    if at + 1 < len(steps) and steps[at + 1][3] in CONSTRUCTING_METHODS:
        return _is_class_of_table(steps, at, is_called)
    if op == _GLOBAL:
        is_owner = at + 1 < len(steps) and steps[at + 1][1] in _ATTRIBUTES  # ``Fraction`` in ``Fraction.from_float(x)``
        return bool(arg & 1) and not is_owner and is_called("", name)
    if op == _NAME:  # in code compiled from a text, where the flag is an instruction of its own
        flag_index = at + _FLAG_OFFSET
        return 0 <= flag_index < len(steps) and steps[flag_index][1] == _PUSHED and is_called("", name)
    _, before, flagged, owner = steps[at - 1]
    if at == 0 or before != _GLOBAL:
        return False
    is_method = op == _METHOD or (_SHIFTS[_ATTRIBUTE] == 1 and bool(arg & 1))
    following = steps[at + 1][1] if at + 1 < len(steps) else None
    is_pushed = following == _PUSHED and _FLAG_OFFSET == 1  # of a module, since Python 3.13
    is_last = bool(flagged & 1) and following not in _ATTRIBUTES
    return (is_method or is_pushed or is_last) and is_called(owner, name)


def _is_class_of_table(steps: list[_Step], at: int, is_called: Callable[[str, str], bool]) -> bool:
    """Whether the name before ``.from_dict`` is a global name, or an attribute of one, whose calls are replaced."""
    op, name = steps[at][1], steps[at][3]
    if op not in _ATTRIBUTES:
        return is_called("", name)
    return at > 0 and steps[at - 1][1] in (_GLOBAL, _NAME) and is_called(steps[at - 1][3], name)


def _has_argument(steps: list[_Step], at: int) -> bool:
    """Whether ``super``, loaded at index ``at``, has an argument: else it inspects its caller's frame."""
    if steps[at][2] & 1 and steps[at + 1][1] in _CALLS:
        return steps[at + 1][2] > 0
    op, arg = next(((op, arg) for _, op, arg, _ in steps[at:] if op == _SUPER or op in _CALLS), (0, 0))
    return bool(arg & 2) if op == _SUPER else bool(steps[at][2] & 1)


def _rename(raw: bytearray, names: list[str], offset: int, name: str, shift: int) -> None:
    """Let the instruction at ``offset`` load ``name``, if its index in the table of names fits there."""
    index = names.index(name) if name in names else len(names)
    arg = index << shift | (raw[offset + 1] & 1 if shift else 0)
    wide = offset >= 2 and raw[offset - 2] == dis.EXTENDED_ARG
    if arg > (0xFFFF if wide else 0xFF):
        return  # more than a hundred global names: the call stays unchanged, and may be refused
    if name not in names:
        names.append(name)
    raw[offset + 1] = arg & 0xFF
    if wide:
        raw[offset - 1] = arg >> 8
