"""Long programs as several functions: Python's compiler takes memory for a whole function at once.

What one piece makes and a later one needs is handed on in a list ``W``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["in_pieces"]

_LONG = 10_000  # lines from which on a program is taken apart
_PIECE = 5_000  # lines of a piece, at the least
_NAME = re.compile(r"[A-Za-z_]\w*")
_MADE = re.compile(r"(?:for )?([A-Za-z_][\w, ]*?) (?:=|in) ")
_SLOT = re.compile(r"b\d+")


def in_pieces(head: Sequence[str], body: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """The functions of a program; the last one is ``run``.

    Args:
        head: what a program in one piece begins with, which takes slots out of ``B``.
        body: its other lines.
        inputs: the names of its inputs.
    """
    if len(body) <= _LONG:
        lines = [*head, *["    " + line for line in body]]
        return ["\n".join([f"def run({', '.join([*inputs, 'B'])}):", *lines]) + "\n"]
    pieces = [_Piece(lines) for lines in _cut(body)]
    last = {name: k for k, piece in enumerate(pieces) for name in piece.names}  # where a name comes last
    made = set().union(*[piece.made for piece in pieces])
    places: dict[str, int] = {}
    given = ", ".join([*inputs, "B", "V", "W"])
    waiting: set[str] = set()  # names that are in W
    texts, calls = [], []
    for k, piece in enumerate(pieces):
        lines = [f"{slot} = B[{slot[1:]}]" for slot in sorted(filter(_SLOT.fullmatch, piece.names)) if slot not in made]
        taken = sorted(waiting & piece.names)
        lines += [f"{name} = W[{places[name]}]" for name in taken]
        ending: list[str] = []
        for name in sorted((piece.made | set(taken)) - piece.gone):
            if last[name] > k and name in piece.made:
                ending.append(f"W[{places.setdefault(name, len(places))}] = {name}")
                waiting.add(name)
        over = [name for name in taken if last[name] == k or name in piece.gone]
        waiting.difference_update(over)
        lines += [f"W[{places[name]}] = None" for name in over]  # nobody else holds it while the piece runs
        lines += [*piece.lines[: -1 if k == len(pieces) - 1 else None], *ending]
        if k == len(pieces) - 1:
            lines.append(piece.lines[-1])  # what returns the results
        texts.append("\n".join([f"def run_{k}({given}):", *["    " + line for line in lines]]) + "\n")
        calls.append(f"    {'return ' if k == len(pieces) - 1 else ''}run_{k}({given})")
    start = [f"def run({', '.join([*inputs, 'B'])}):", f"    V, W = [], [None] * {len(places)}"]
    return [*texts, "\n".join([*start, *calls]) + "\n"]


def _cut(body: Sequence[str]) -> list[list[str]]:
    """The lines in pieces; a loop stays in one."""
    found: list[list[str]] = [[]]
    for line in body:
        if len(found[-1]) >= _PIECE and not line.startswith(" "):
            found.append([])
        found[-1].append(line)
    return found


class _Piece:
    """Lines, and their names.

    Attributes:
        names: all, those of functions too.
        made: those of what they make.
        gone: what they let go of, and do not make again.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.names: set[str] = set()
        self.made: set[str] = set()
        self.gone: set[str] = set()
        for line in lines:
            line = line.lstrip()
            if line.startswith("#"):
                continue
            names = _NAME.findall(line)
            self.names.update(names)
            if line.startswith("del "):
                self.gone.update(names[1:])
            elif (found := _MADE.match(line)) is not None:
                made = _NAME.findall(found[1])
                self.made.update(made)
                self.gone.difference_update(made)
