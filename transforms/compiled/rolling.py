"""Loops for equal pieces of a program, so that its text does not grow with the number of recorded steps.

A piece equals the one before it if their statements are equal, and if the numbers in their names change by constant
steps from piece to piece: ``v7``, ``v19``, ``v31`` and so on. Slots are then read from slices of ``B``. Values that
other statements need are appended to a list ``V`` when they are made, and read from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import add
from typing import Any, NamedTuple

_LONG = 500  # least number of statements of a program with loops: short programs are faster without
_TIMES = 6  # least number of equal pieces
_PIECE = 4_000  # largest number of statements of a piece
_WIDE, _SHORT = 16, 4  # number of statements of joined pieces; twice as many for pieces of up to ``_SHORT`` statements
_WIDEST = 2 * _WIDE  # largest number of pieces that are joined
_TRIES = 6
_KINDS = {kind: number for number, kind in enumerate("ibtv")}
Line = tuple[list[Any], Any]


class _Name(NamedTuple):
    """Name in a piece: its kind, its number in the first piece, and the step from piece to piece."""

    kind: str
    first: int
    step: int


class Loop:
    """Loop over equal pieces of a program.

    Attributes:
        body: the statements of the first piece.
        names: for each statement its names, in order.
        times: the number of pieces.
        first_use: by name, the first statement of the piece that has the name.
    """

    def __init__(self, body: list[Line], names: list[list[_Name]], times: int) -> None:
        self.body, self.names, self.times = body, names, times
        self.assigned_at = {
            name: place
            for place, (line, used) in enumerate(zip(body, names, strict=True))
            for name in used[: _count_of_targets(line[0])]
        }
        self.first_use: dict[_Name, int] = {}
        for place, used in enumerate(names):
            for name in used:
                self.first_use.setdefault(name, place)

    def numbers(self, name: _Name) -> range | list[int]:
        """Return the numbers of a name in all pieces."""
        if name.step:
            return range(name.first, name.first + name.step * self.times, name.step)
        return [name.first]

    def origin(self, name: _Name) -> str:
        """Return where a value comes from: "here", the piece "before", or "outside"."""
        if name in self.assigned_at:
            return "here"
        if name._replace(first=name.first + name.step) in self.assigned_at and name.step:
            return "before"
        return "outside"

    def has_value(self, name: _Name) -> bool:
        """Whether an iteration has the value of a name, its own or that of the iteration before."""
        return name in self.assigned_at or (name in self.first_use and self.origin(name) == "before")

    def is_valid(self) -> bool:
        """Whether each piece needs values of itself, of the piece before, or from outside of the loop only."""
        made = {n for name in self.assigned_at for n in self.numbers(name)}
        for place, used in enumerate(self.names):
            for name in used:
                if name.kind != "v":
                    continue
                origin = self.origin(name)
                if origin == "here" and self.assigned_at[name] > place:
                    return False
                if origin == "outside" and any(n in made for n in self.numbers(name)):
                    return False
        return True


def _outside_names(loop: Loop) -> list[_Name]:
    """Return the names of values that each iteration reads from outside, different values in each."""
    return [name for name in loop.first_use if name.kind == "v" and name.step and loop.origin(name) == "outside"]


def _matched_reads(loop: Loop, other: Loop) -> tuple[list[_Name], int, int] | None:
    """Return the names in ``other`` of what ``loop`` reads, if each iteration reads from one iteration of ``other``.

    The tuple also holds the iteration of ``other`` that the first one reads, and 1 or -1 for the order of the next.
    """
    read, growing = _outside_names(loop), {name.step for name in other.assigned_at}
    if len(growing) != 1 or len({name.step for name in read}) != 1 or abs(read[0].step) not in growing:
        return None
    (step,) = growing
    made = {name.first % step: name for name in other.assigned_at}
    pairs = [(made[name.first % step], name.first) for name in read if name.first % step in made]
    if len(pairs) < len(read):
        return None
    iteration, direction = max([(number - name.first) // step for name, number in pairs]), read[0].step // step
    row = [name._replace(first=number - iteration * step) for name, number in pairs]
    ends = (iteration, iteration + direction * (loop.times - 1))
    there = min(ends) >= 0 and max(ends) < other.times and all(other.has_value(name) for name in row)
    return (row, iteration, direction) if there else None


def _count_of_targets(parts: list[Any]) -> int:
    """Return the number of names that a statement assigns: those of values before its `` = ``."""
    count = 0
    for part in parts:
        if type(part) is tuple:
            if part[0] != "v":
                return 0
            count += 1
        elif part.startswith(" = ") or part.startswith(", = "):
            return count
        elif part != ", ":
            return 0
    return 0


def with_loops(lines: Sequence[Line]) -> list[Any]:
    """Return the statements, with loops in place of equal pieces."""
    if len(lines) < _LONG:
        return list(lines)
    ids, names, following = _templates(lines)
    found: list[Any] = []
    at = 0
    while at < len(lines):
        loop = _loop_at(at, lines, ids, names, following)
        if loop is None:
            found.append(lines[at])
            at += 1
        else:
            before = [item for item in found if type(item) is Loop]
            skipped, loop = _matched_to_earlier(loop, before) or (0, _with_longer_pieces(loop))
            found += [*lines[at : at + skipped], loop]
            at += skipped + loop.times * len(loop.body)
    return found


def _templates(lines: Sequence[Line]) -> tuple[list[int], list[list[Any]], list[int]]:
    """Return, for each statement, a number of its text, its names, and the next statement with the same text."""
    known: dict[Any, int] = {}
    ids, names = [], []
    for parts, _ in lines:
        used = [p for p in parts if type(p) is tuple]
        key = tuple([p if type(p) is str else _KINDS[p[0]] for p in parts])
        ids.append(known.setdefault(key, len(known)))
        names.append(used)
    following, last = [-1] * len(lines), [-1] * len(known)
    for i in range(len(lines) - 1, -1, -1):
        following[i] = last[ids[i]]
        last[ids[i]] = i
    return ids, names, following


def _loop_at(at: int, lines: Any, ids: Any, names: Any, following: Any) -> Loop | None:
    """Return the loop that begins at statement ``at``, or None."""
    other = following[at]
    for _ in range(_TRIES):
        size = other - at
        if other < 0 or size > _PIECE:
            return None
        if ids[at : at + size] == ids[other : other + size] and ids[at] == ids[at + size]:
            loop = _loop_of_size(at, size, lines, ids, names)
            if loop is not None:
                return loop
        other = following[other]
    return None


def _matched_to_earlier(loop: Loop, before: Sequence[Loop]) -> tuple[int, Loop] | None:
    """Join pieces of ``loop`` to match an earlier loop whose values it reads; None if that is impossible.

    Returns the number of statements to skip first, and a loop whose iterations each read from one of the other loop.
    """
    read = _outside_names(loop)
    for other in reversed(before) if read else ():
        together, rest = divmod(max([name.step for name in other.assigned_at], default=0), abs(read[0].step))
        if rest or not 1 <= together <= _WIDEST:
            continue
        for skipped in range(min(together, loop.times - 2 * together + 1)):
            wider = _joined_pieces(loop, together, skipped)
            if _matched_reads(wider, other) is not None and wider.is_valid():
                return skipped * len(loop.body), wider
    return None


def _with_longer_pieces(loop: Loop) -> Loop:
    """Join several short pieces into one, because every iteration of a loop takes time of its own."""
    size = len(loop.body)
    most = min((_WIDE if size > _SHORT else 2 * _WIDE) // size, loop.times // _TIMES)
    if most < 2:
        return loop
    together = min(range(most, most * 3 // 4, -1), key=lambda count: loop.times % count)  # the rest is a loop too
    wider = _joined_pieces(loop, together, 0)
    return wider if wider.is_valid() else loop


def _joined_pieces(loop: Loop, together: int, skipped: int) -> Loop:
    """Return the loop with ``together`` pieces joined into one, without the first ``skipped`` pieces."""
    names = [
        [_Name(kind, first + iteration * step, together * step) for kind, first, step in used]
        for iteration in range(skipped, skipped + together)
        for used in loop.names
    ]
    return Loop(loop.body * together, names, (loop.times - skipped) // together)


def _loop_of_size(at: int, size: int, lines: Any, ids: Any, names: Any) -> Loop | None:
    """Return the loop with pieces of ``size`` statements; None if there are too few pieces."""
    steps: list[list[_Name]] = []
    for i in range(at, at + size):
        if i + size >= len(lines):
            return None
        pairs = zip(names[i], names[i + size], strict=True)
        steps.append([_Name(kind, first, second - first) for (kind, first), (_, second) in pairs])
    if any(name.kind in "it" and name.step for used in steps for name in used):
        return None
    piece, times = ids[at : at + size], 1
    numbers = [name.first for used in steps for name in used]
    growing = [name.step for used in steps for name in used]
    for start in range(at + size, len(lines) - size + 1, size):
        numbers = list(map(add, numbers, growing))
        here = names[start : start + size]
        if ids[start : start + size] != piece or [number for used in here for _, number in used] != numbers:
            break
        times += 1
    if times < _TIMES:
        return None
    loop = Loop(list(lines[at : at + size]), steps, times)
    return loop if loop.is_valid() else None


# ---- text --------------------------------------------------------------------------------------------------------


class _Values:
    """Values that loops make, the places of values in ``V``, and the loops that pass tuples to another loop.

    Attributes:
        rows: by the identity of a loop that makes tuples, its lists, each with the names of the values in a tuple.
        row_of: by the identity of a loop that reads tuples, the list, and the first place and the step of its reads.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.maker: dict[int, _Name] = {}
        self.last: dict[int, str] = {}  # the last value of each name in a loop, whose word stays valid after the loop
        self.stored: set[Any] = set()  # numbers of values, and names in loops
        self.rows: dict[int, dict[str, list[_Name]]] = {}
        self.row_of: dict[int, _Name] = {}
        self._loops: dict[_Name, Loop] = {}  # by the names that the loops make
        for item in items:
            if type(item) is Loop:
                self._find_row(item)
                for name in item.assigned_at:
                    numbers = item.numbers(name)
                    self.maker.update((n, name) for n in numbers)
                    self.last[numbers[-1]] = f"v{name.first}"
                    self._loops[name] = item
        for item in items:
            if type(item) is Loop:
                self._note_reads_of(item)
            else:
                for part in item[0]:
                    if type(part) is tuple and part[0] == "v":
                        self.note_read(part[1], plain=True)
        self.places = self._positions_in_list(items)

    def _note_reads_of(self, loop: Loop) -> None:
        for used in loop.names:
            for name in used:
                if name.kind != "v":
                    continue
                origin = loop.origin(name)
                if origin == "outside" and not (name.step and id(loop) in self.row_of):
                    for n in loop.numbers(name):
                        self.note_read(n, plain=not name.step)
                elif origin == "before":
                    self.note_read(name.first, plain=True)

    def _find_row(self, loop: Loop) -> None:
        """Let an earlier loop make tuples, if each iteration of this loop reads from one iteration of that loop."""
        read = _outside_names(loop)
        other = next((self._loops[self.maker[name.first]] for name in read if name.first in self.maker), None)
        found = None if other is None else _matched_reads(loop, other)
        if found is not None:
            row, iteration, direction = found
            word = f"V{read[0].first}"
            self.rows.setdefault(id(other), {})[word] = row
            self.row_of[id(loop)] = _Name(word, iteration, direction)

    def note_read(self, number: int, plain: bool) -> None:
        """Note that a value is read; from ``V`` unless it is the last of a loop, or if a loop reads several."""
        made = self.maker.get(number)
        if plain and number in self.last:
            return
        if made is not None:
            self.stored.add(made)
        elif not plain:
            self.stored.add(number)

    def _positions_in_list(self, items: Sequence[Any]) -> dict[int, int]:
        """Return the places of values in ``V``, in the order in which they are made."""
        order: list[int] = []
        for item in items:
            if type(item) is Loop:
                kept = [item.numbers(name) for name in self.stored_names(item)]
                order += [numbers[iteration] for iteration in range(item.times) for numbers in kept] if kept else []
            else:
                order += [part[1] for part in self.stored_targets(item[0])]
        return {number: place for place, number in enumerate(order)}

    def stored_names(self, loop: Loop) -> list[_Name]:
        """Return the names of a loop whose values are appended to ``V``."""
        return [name for name in loop.assigned_at if name in self.stored]

    def stored_targets(self, parts: list[Any]) -> list[Any]:
        """Return the names that a statement outside of loops assigns and appends to ``V``."""
        found = parts[: 2 * _count_of_targets(parts)]
        return [part for part in found if type(part) is tuple and part[1] in self.stored]

    def text_of(self, number: int, name: str) -> str:
        """Return the text for a value outside of the loop that makes it."""
        return self.last.get(number) or (f"V[{self.places[number]}]" if number in self.maker else name)

    def source_of(self, loop: Loop, name: _Name) -> _Name:
        """Return where a loop reads values: ``V``, a list of tuples, or, out of order, an expression with step 0."""
        if id(loop) in self.row_of:
            return self.row_of[id(loop)]
        places = [self.places[n] for n in loop.numbers(name)]
        step = places[1] - places[0]
        if all(after - before == step for before, after in pairwise(places)):
            return _Name("V", places[0], step)
        return _Name(f"[V[i] for i in {tuple(places)}]", 0, 0)


def program_lines(
    items: Sequence[Any], custom_names: dict[Any, str], comment_for: Any
) -> tuple[list[str], set[int], bool]:
    """Return the lines of a program.

    Args:
        items: statements and loops.
        custom_names: the words for names that are not called by their kind and number.
        comment_for: ``comment_for(line)`` returns the comment for a line of the user's program; None for no comments.

    Returns:
        The lines, the slots that they name, and whether they need ``V``.
    """
    rolled = any(type(item) is Loop for item in items)
    values, slots, before = _Values(items if rolled else ()), set[int](), None
    text: list[str] = []
    named: dict[Any, str] = {}  # names with the same word everywhere

    def name(part: Any) -> str:
        kind, number = part
        if kind == "b":
            slots.add(number)
        word = custom_names.get(part) or f"{kind}{number}"
        if rolled and kind == "v":
            return values.text_of(number, word)
        named[part] = word
        return word

    for item in items:
        if type(item) is Loop:
            text += _loop_text(item, values, slots, custom_names, comment_for)
            before = None
            continue
        parts, line = item
        parts = _with_slot_slices(parts)
        if comment_for is not None and line is not None and line != before:
            before = line
            text.append(f"# {comment_for(line)}")
        text.append("".join([p if type(p) is str else named.get(p) or name(p) for p in parts]))
        if rolled:
            text += _append_statement([name(part) for part in values.stored_targets(parts)])
    return text, slots, bool(values.places)


def _append_statement(words: list[str]) -> list[str]:
    """Return the statement that appends values to ``V``, in a list; no statement for no values."""
    if len(words) > 1:
        return [f"V += {', '.join(words)}"]
    return [f"V.append({words[0]})"] if words else []


def _with_slot_slices(parts: list[Any]) -> list[Any]:
    """Return a statement in which a slice of ``B`` replaces many slots in a row."""
    if len(parts) < 2 * _TIMES:
        return parts
    found: list[Any] = []
    at = 0
    while at < len(parts):
        count = _count_in_row(parts, at)
        if count >= _TIMES:
            first, second = parts[at][1], parts[at + 2][1]
            found += ["*", _slice(_Name("B", first, second - first), count), ", "]
            at += 2 * count
        else:
            found.append(parts[at])
            at += 1
    return found


def _count_in_row(parts: list[Any], at: int) -> int:
    """Return the number of slots in a row, each followed by a comma, whose numbers have a constant step."""
    count, step = 0, 0
    while at + 2 * count + 1 < len(parts):
        part, comma = parts[at + 2 * count], parts[at + 2 * count + 1]
        if type(part) is not tuple or part[0] != "b" or comma != ", ":
            break
        if count:
            grown = part[1] - parts[at + 2 * count - 2][1]
            if grown == 0 or (count > 1 and grown != step):
                break
            step = grown
        count += 1
    return count


def _loop_text(
    loop: Loop, values: _Values, slots: set[int], custom_names: dict[Any, str], comment_for: Any
) -> list[str]:
    words: dict[_Name, str] = {}
    read: dict[str, _Name] = {}
    carried: dict[str, tuple[str, str]] = {}
    for name, place in loop.first_use.items():
        kind, first, step = name
        origin = loop.origin(name) if kind == "v" else "here"
        if kind == "b":
            words[name] = f"b{first}" if not step else f"s{first}_{abs(step)}"
            if step:
                read[words[name]] = name._replace(kind="B")
            else:
                slots.add(first)
        elif origin == "here":
            words[name] = custom_names.get((kind, first)) or f"{kind}{first}"
        elif origin == "outside" and step:
            words[name] = word = f"u{first}_{place}"
            read[word] = values.source_of(loop, name)
        else:
            plain = values.text_of(first, custom_names.get((kind, first)) or f"v{first}")
            words[name] = plain if origin == "outside" else f"u{first}_{place}"
            if origin == "before":
                carried[words[name]] = (plain, f"v{first + step}")
    rows = values.rows.get(id(loop), {})
    for word, name in _carried_over(loop, words, carried, rows).items():
        words[name] = values.last[loop.numbers(name)[-1]] = word
        carried[word] = (carried[word][0], word)
    kept = _append_statement([words[name] for name in values.stored_names(loop)])
    for word, row in rows.items():
        kept.append(f"{word}.append({_tuple_text([words[name] for name in row])})")
    return [*[f"{word} = []" for word in rows], *_loop_lines(loop, words, read, carried, kept, comment_for)]


def _tuple_text(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _carried_over(loop: Loop, words: Any, carried: Any, rows: Any) -> dict[str, _Name]:
    """Return the names whose value in the next iteration can take over their word, as nothing reads the old one."""
    found: dict[str, _Name] = {}
    for name, word in words.items():
        if word not in carried or not name.step or any(name in row for row in rows.values()):
            continue
        made = name._replace(first=name.first + name.step)
        place = loop.assigned_at[made]
        if all(name not in used for used in loop.names[place + 1 :]) and made not in found.values():
            found[word] = made
    return found


def _loop_lines(loop: Loop, words: Any, read: Any, carried: Any, kept: Any, comment_for: Any) -> Iterator[str]:
    """Yield the lines of a loop."""
    for word, (start, _) in carried.items():
        yield f"{word} = {start}"
    yield _loop_heading(read, loop.times)
    before = None
    for (parts, line), used in zip(loop.body, loop.names, strict=True):
        if comment_for is not None and line is not None and line != before:
            before = line
            yield f"    # {comment_for(line)}"
        names = iter(used)
        yield "    " + "".join([p if type(p) is str else words[next(names)] for p in parts])
    yield from ["    " + line for line in kept]
    for word, (_, after) in carried.items():
        if after != word:
            yield f"    {word} = {after}"


def _loop_heading(read: dict[str, _Name], times: int) -> str:
    """Return the first line of a loop. One iterator gives all reads from a list, if they leave nothing out."""
    if not read:
        return f"for _ in range({times}):"
    words: dict[_Name, list[str]] = {}
    for word, name in read.items():
        words.setdefault(name, []).append(word)
    ordered = sorted(words, key=lambda name: (*_list_of(name), name.first * name.step))
    texts = []
    for (kind, step), row in groupby(ordered, _list_of):
        names = list(row)
        count, first = len(names), names[0].first
        whole = count > 1 and step and step % count == 0
        if whole and [name.first for name in names] == list(range(first, first + step, step // count)):
            texts.append(f"*[iter({_slice(_Name(kind, first, step // count), count * times)})] * {count}")
        else:
            texts += [_slice(name, times) for name in names]
    targets = ", ".join([_tuple_text(words[name]) for name in ordered])
    return f"for {targets} in {texts[0] if len(ordered) == 1 else 'zip(' + ', '.join(texts) + ')'}:"


def _list_of(name: _Name) -> tuple[str, int]:
    return name.kind, name.step


def _slice(name: _Name, times: int) -> str:
    if not name.step:
        return name.kind
    stop = name.first + name.step * times
    return f"{name.kind}[{name.first}:{'' if stop < 0 else stop}:{name.step}]"
