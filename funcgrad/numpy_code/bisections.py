"""Codes that halve an interval, as bisections do: recognized by their instructions."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

_HALVES = frozenset((2, 2.0, 0.5))
#: Instructions that go back to the begin of a loop.
_LOOPS = frozenset(code for name, code in dis.opmap.items() if "BACKWARD" in name)
_VARIABLES = ("LOAD_DEREF", "LOAD_FAST", "STORE_DEREF", "STORE_FAST")
_SMALL = dis.opmap.get("LOAD_SMALL_INT")
#: One step of a code: whether a variable is stored, and its name; or an operator or a constant.
_Step = tuple[str, Any]


def halves_intervals(code: CodeType) -> bool:
    """Whether a code, or that of a function inside, has a loop that halves an interval, as a bisection does.

    Such a loop computes ``middle = (low + high) / 2`` and then does ``low = middle`` or ``high = middle``.

    Example:
        >>> halves_intervals((lambda a, b: (a + b) / 2).__code__)
        False
    """
    of_index = "int" in code.co_names  # it has no derivative
    is_likely = _halves(code) and not of_index and not _LOOPS.isdisjoint(code.co_code[::2])
    if is_likely and _is_bisection(list(_steps(dis.get_instructions(code)))):
        return True
    return any(halves_intervals(x) for x in code.co_consts if type(x) is CodeType)


def _halves(code: CodeType) -> bool:
    """Whether a code has the constants 2 or 0.5; Python 3.14 has small integers in the instructions."""
    constants = [x for x in code.co_consts if type(x) in (int, float)]
    return not _HALVES.isdisjoint(constants) or (_SMALL is not None and bytes((_SMALL, 2)) in code.co_code)


def _steps(instructions: Iterable[dis.Instruction]) -> Iterator[_Step]:
    for one in instructions:
        if one.opname.startswith(_VARIABLES):
            names = one.argval if type(one.argval) is tuple else (one.argval,)
            kinds = [part for part in one.opname.split("_") if part in ("LOAD", "STORE")]
            yield from zip(kinds, names, strict=False)
        elif one.opname == "BINARY_OP":
            yield "operator", one.argrepr
        elif one.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            yield "constant", one.argval
        elif one.opname.startswith(("CALL", "JUMP", "POP_JUMP", "RETURN")):
            yield "other", None


def _is_bisection(steps: list[_Step]) -> bool:
    """Whether the middle of two variables is stored, and assigned to each of them in other places."""
    assigned = {(b[1], a[1]) for a, b in pairwise(steps) if (a[0], b[0]) == ("LOAD", "STORE")}
    begin = 0
    for i, (kind, name) in enumerate(steps):
        if kind in ("STORE", "other"):
            ends = _ends_of_middle(steps[begin:i]) if kind == "STORE" else ()
            if ends and all((end, name) in assigned for end in ends):
                return True
            begin = i + 1
    return False


def _ends_of_middle(steps: list[_Step]) -> set[Any]:
    """Return the two variables of which an expression computes the middle; the empty set for other expressions."""
    names = {name for kind, name in steps if kind == "LOAD"}
    operators = [name for kind, name in steps if kind == "operator"]
    halves = any(kind == "constant" and type(x) in (int, float) and x in _HALVES for kind, x in steps)
    is_middle = halves and "+" in operators and not {"/", "*"}.isdisjoint(operators)
    return names if is_middle and len(names) == 2 and set(operators) <= {"+", "-", "*", "/"} else set()
