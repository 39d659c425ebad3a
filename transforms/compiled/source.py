"""Text of a program: names for its values, the user's lines as comments, and one function of the inputs.

Long programs become several functions, because Python's compiler needs memory for a whole function at once. A list
``W`` passes values from one piece to later ones.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import keyword
import linecache
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.transforms.compiled.capture import OUTSIDE_FUNCTION
from funcgrad.transforms.compiled.equal_rows import compute_equal_rows_once
from funcgrad.transforms.compiled.graphs import Graph
from funcgrad.transforms.compiled.plain import python_float_values
from funcgrad.transforms.compiled.rewriting import broadcast_later, broadcast_once, take_out_factors
from funcgrad.transforms.compiled.rolling import program_lines, with_loops
from funcgrad.transforms.compiled.statements import RAISE_NOT_FINITE, Parts, Writer
from funcgrad.transforms.compiled.storage import Storage

ndarray = np.ndarray
_FEW = 3_000  # largest number of statements that all get comments, and whose values get the user's names
_UNPACKED = 64  # largest number of slots that all get names, used or not
_numbers = itertools.count(1)


class PathChanged(Exception):  # noqa: N818  (not an error: the function takes another path)
    """Exception for a question whose answer differs from the recorded one."""


class NotFinite(Exception):  # noqa: N818  (not an error: the function itself must be run)
    """Exception for a result that is not finite, of which NumPy may warn, or for a function that warns itself."""


def differs(x: Any, answer: Any) -> bool:
    """Whether a value differs from ``answer`` in any bit, in shape or in dtype."""
    now, then = np.asarray(x), np.asarray(answer)
    return now.shape != then.shape or now.dtype != then.dtype or now.tobytes() != then.tobytes()


def has_other_aval(x: Any, like: Any) -> bool:
    """Whether a result has another shape or dtype than the recorded one."""
    return bool(np.shape(x) != like[0] or np.asarray(x).dtype != like[1])


def allocated(slots: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
    """Return new slots: for ``(shape, dtype)`` an array, for ``(number, view)`` a view of the slot of that number."""
    found: list[Any] = []
    for shape, what in slots:
        found.append(np.empty(shape, what) if isinstance(shape, tuple) else what(found[shape]))
    return tuple(found)


class Program:
    """Generated program.

    Attributes:
        text: its source.
        run: ``run(*inputs, B)``, where ``B`` are the slots.
        namespace: the objects that the text refers to by name.
        slots: the specification of the slots, see ``Storage``.
        pool: the slots that no call uses now.
        statements: the number of statements.
    """

    def __init__(
        self, texts: Sequence[str], namespace: dict[str, Any], slots: list[tuple[Any, Any]], statements: int
    ) -> None:
        self.text, self.namespace, self.slots, self.statements = "\n".join(texts), namespace, slots, statements
        number = next(_numbers)
        for n, text in enumerate(texts):
            file = f"<funcgrad jit {number}{f'.{n}' if n else ''}>"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            exec(compile(text, file, "exec"), namespace)
        self.run: Callable[..., tuple[Any, ...]] = namespace["run"]
        self.pool: list[Any] = []
        self._slots = [(shape, what if isinstance(shape, tuple) else _view_function(what)) for shape, what in slots]

    def allocate(self) -> tuple[Any, ...]:
        """Return new slots."""
        return allocated(self._slots)

    def call(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the program with slots that no other call uses."""
        try:
            slots = self.pool.pop()
        except IndexError:
            slots = self.allocate()
        try:
            return self.run(*inputs, slots)
        finally:
            self.pool.append(slots)

    @property
    def slot_bytes(self) -> int:
        """Size of the slots in bytes."""
        return sum(int(np.prod(s)) * d.itemsize for s, d in self.slots if isinstance(s, tuple))


@functools.cache
def _view_function(expression: str) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = eval(f"lambda x: {expression}")
    return found


def generate(graph: Graph, names: Sequence[str], expected: Sequence[Any], exact: bool = True) -> Program:
    """Write the program of a graph.

    Args:
        graph: the simplified run; it is changed.
        names: the names of the inputs in the program.
        expected: for each leaf of the result the function's result, for its type.
        exact: whether the results must have the same bits.
    """
    compute_equal_rows_once(graph)
    broadcast_later(graph)
    if not exact:
        take_out_factors(graph)
    broadcast_once(graph)
    storage = Storage(graph)
    # with other results every call would give up
    all_finite = all(cmath.isfinite(x) for x in expected if isinstance(x, (float, complex)))
    python_floats, finite_checks = python_float_values(graph) if exact and all_finite else (set(), {})
    for values in finite_checks.values():
        for v in values:
            storage.uses[v] += 1
    writer = Writer(graph, storage, exact, python_floats, finite_checks)
    writer.write()
    ending = _return_statement(writer, expected)
    lines = [*writer.lines, *_finite_checks(writer), (ending, None)]
    if graph.warns:
        lines.insert(writer.end_of_questions, ([RAISE_NOT_FINITE], None))
    _free_large(writer, lines)
    namespace = {**writer.namespace, "NotFinite": NotFinite, "PathChanged": PathChanged}
    namespace |= {"differs": differs, "has_other_aval": has_other_aval, "index": operator.index, "to_int": int}
    return Program(_function_texts(writer, lines, names), namespace, storage.slots, len(lines))


def _finite_checks(writer: Writer) -> list[tuple[Parts, Any]]:
    """Return checks that results computed as plain floats are finite; else the function is run, which may warn."""
    asked = dict.fromkeys([v for v in writer.graph.outputs if type(v) is int and v in writer.python_floats])
    return [
        (["if ", *writer.argument_text(v), " - ", *writer.argument_text(v), ": ", RAISE_NOT_FINITE], None)
        for v in asked
    ]


def _return_statement(writer: Writer, expected: Sequence[Any]) -> Parts:
    """Return the statement that returns the results, each with memory of its own and of the function's type."""
    storage, graph = writer.storage, writer.graph
    parts: Parts = ["return ("]
    seen: set[int] = set()
    for v, like in zip(graph.outputs, expected, strict=True):
        word = writer.argument_text(v)
        kind = graph.facts[v].kind if type(v) is int else type(v.value)
        if type(like) is ndarray:
            own = type(v) is int and kind is ndarray and storage.owns_memory(v) and v not in seen
            if not like.shape:
                word = writer.call(np.array, word)
            elif not own:
                word = [*word, ".copy()"]
        elif kind is ndarray:
            word = [*word, "[()]"]
        is_python = type(v) is int and v in writer.python_numbers
        if type(like) is float:
            word = word if is_python and kind is float else ["float(", *word, ")"]
        elif isinstance(like, (np.generic, int, complex)) and (type(like) is not kind or kind is np.bool_ or is_python):
            word = [writer.register_name(f"as_{type(like).__name__}", type(like)), "(", *word, ")"]
        if type(v) is int:
            seen.add(v)
        parts += [*word, ", "]
    return [*(parts[:-1] if len(graph.outputs) > 1 else parts), ")"]


def _free_large(writer: Writer, lines: list[tuple[Parts, Any]]) -> None:
    """Delete large arrays after the last statement that names them, as the tape does."""
    graph, large = writer.graph, writer.storage.large
    big = {v for v, fact in enumerate(graph.facts) if fact.kind is ndarray and graph.nbytes(v) >= large}
    if not big:
        return
    last: dict[Any, int] = {}
    for n, (parts, _) in enumerate(lines):
        for part in parts:
            if type(part) is tuple:
                kind, v = part
                if kind == "t" or (kind == "v" and v in big):
                    last[part] = n
    over: dict[int, list[Any]] = {}
    for part, n in last.items():
        if n < len(lines) - 1 and lines[n][0][0] != "del ":
            over.setdefault(n, []).append(part)
    for n in sorted(over, reverse=True):
        gone: Parts = ["del "]
        for part in over[n]:
            gone += [part, ", "]
        lines.insert(n + 1, (gone[:-1], lines[n][1]))


# ---- text --------------------------------------------------------------------------------------------------------


def _function_texts(writer: Writer, lines: list[tuple[Parts, Any]], names: Sequence[str]) -> list[str]:
    inputs = _input_variables(names)
    custom_names = {("i", i): name for i, name in enumerate(inputs)}
    few = len(lines) <= _FEW
    items = with_loops(lines)
    rolled = len(items) < len(lines)
    if few and not rolled:
        _name_values(lines, custom_names)
    body, used, needs_list = program_lines(items, custom_names, _comment_for if few or rolled else None)
    head = []
    slots = len(writer.storage.slots)
    if 0 < slots <= _UNPACKED or len(used) == slots > 0:
        head.append("    " + ", ".join([f"b{i}" for i in range(slots)]) + ", = B")
    else:
        head += [f"    b{i} = B[{i}]" for i in sorted(used)]
    if needs_list:
        head.append("    V = []")
    return split_into_functions(head, body, inputs)


def _comment_for(line: Any) -> str:
    if line is OUTSIDE_FUNCTION:
        return "what the transforms do around the function, such as the backward pass"
    return f"{line}  {line.text}".rstrip()


_TARGET = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]+)?[-+*/@%]?=(?!=)")
_RESERVED = re.compile(
    r"[bvtcihusV]\d+(_\d+)?|B|V|W|_|run|run_\d+|index|to_int|differs|has_other_aval|PathChanged|NotFinite"
    r"|np|np_.*|math_.*|k_.*|as_.*|float|slice|range|zip|iter"
)


def _name_values(lines: list[tuple[Parts, Any]], custom_names: dict[Any, str]) -> None:
    """Name the last value of each group of statements after the variable that their source line assigns."""
    used = set(custom_names.values())
    counts: dict[str, int] = {}
    for n, (parts, line) in enumerate(lines):
        ends = n + 1 == len(lines) or lines[n + 1][1] != line
        made = parts[0] if parts and type(parts[0]) is tuple and parts[0][0] == "v" else None
        if line is None or made is None or not ends:
            continue
        found = _TARGET.match(line.text)
        if found is None:
            continue
        name = found[1]
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            name = f"{name}_{counts[name]}"
        if name not in used and not _RESERVED.fullmatch(name) and not keyword.iskeyword(name):
            used.add(name)
            custom_names[made] = name


def _input_variables(names: Sequence[str]) -> list[str]:
    """Return names for the inputs that are different and valid names of variables."""
    found: list[str] = []
    for i, name in enumerate(names):
        word = re.sub(r"\W+", "_", name).strip("_")
        if not word or word[0].isdigit() or _RESERVED.fullmatch(word) or keyword.iskeyword(word):
            word = f"i{i}"
        while word in found:
            word += "_"
        found.append(word)
    return found


_LONG = 10_000  # number of lines above which a program is cut into pieces
_PIECE = 5_000  # least number of lines of a piece
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"(?:for )?([A-Za-z_][\w, ]*?) (?:=|in) ")
_SLOT = re.compile(r"b\d+")


def split_into_functions(head: Sequence[str], body: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Return the functions of a program; the last one is ``run``.

    Args:
        head: the first lines of a program in one piece, which take slots out of ``B``.
        body: the other lines of the program.
        inputs: the names of the inputs.
    """
    if len(body) <= _LONG:
        lines = [*head, *["    " + line for line in body]]
        return ["\n".join([f"def run({', '.join([*inputs, 'B'])}):", *lines]) + "\n"]
    pieces = [_Piece(lines) for lines in _cut_into_pieces(body)]
    last = {name: k for k, piece in enumerate(pieces) for name in piece.names}  # the last piece with each name
    made = set().union(*[piece.assigned for piece in pieces])
    places: dict[str, int] = {}
    given = ", ".join([*inputs, "B", "V", "W"])
    waiting: set[str] = set()  # names that are in W
    texts, calls = [], []
    for k, piece in enumerate(pieces):
        lines = [f"{slot} = B[{slot[1:]}]" for slot in sorted(filter(_SLOT.fullmatch, piece.names)) if slot not in made]
        taken = sorted(waiting & piece.names)
        lines += [f"{name} = W[{places[name]}]" for name in taken]
        ending: list[str] = []
        for name in sorted((piece.assigned | set(taken)) - piece.deleted):
            if last[name] > k and name in piece.assigned:
                ending.append(f"W[{places.setdefault(name, len(places))}] = {name}")
                waiting.add(name)
        over = [name for name in taken if last[name] == k or name in piece.deleted]
        waiting.difference_update(over)
        lines += [f"W[{places[name]}] = None" for name in over]  # nothing else may hold it while the piece runs
        lines += [*piece.lines[: -1 if k == len(pieces) - 1 else None], *ending]
        if k == len(pieces) - 1:
            lines.append(piece.lines[-1])  # the return statement
        texts.append("\n".join([f"def run_{k}({given}):", *["    " + line for line in lines]]) + "\n")
        calls.append(f"    {'return ' if k == len(pieces) - 1 else ''}run_{k}({given})")
    start = [f"def run({', '.join([*inputs, 'B'])}):", f"    V, W = [], [None] * {len(places)}"]
    return [*texts, "\n".join([*start, *calls]) + "\n"]


def _cut_into_pieces(body: Sequence[str]) -> list[list[str]]:
    """Cut the lines into pieces; a loop stays in one piece."""
    found: list[list[str]] = [[]]
    for line in body:
        if len(found[-1]) >= _PIECE and not line.startswith(" "):
            found.append([])
        found[-1].append(line)
    return found


class _Piece:
    """Lines of a program, and their names.

    Attributes:
        names: all names, including those of functions.
        assigned: the names that the lines assign.
        deleted: the names that the lines delete, and do not assign again.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.names: set[str] = set()
        self.assigned: set[str] = set()
        self.deleted: set[str] = set()
        for line in lines:
            line = line.lstrip()
            if line.startswith("#"):
                continue
            names = _NAME.findall(line)
            self.names.update(names)
            if line.startswith("del "):
                self.deleted.update(names[1:])
            elif (found := _ASSIGNED.match(line)) is not None:
                made = _NAME.findall(found[1])
                self.assigned.update(made)
                self.deleted.difference_update(made)
