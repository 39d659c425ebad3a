"""Graphs as text, as DOT and Mermaid for drawing, and as SVG if Graphviz is installed.

A picture is made of boxes. If there are too many nodes to look at, several nodes share a box: the nodes of
one line of the program or else the nodes of one name, whichever first gives few enough boxes.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, MissingExtraError
from funcgrad.graph import PipelineStage
from funcgrad.transforms.inspection.nodes import Node, Operand

#: Largest number of nodes that are drawn, and of nodes that are printed, before they are summarised.
MAX_DRAWN = 150
MAX_PRINTED = 100
_MAX_WIDTH = 48  # largest number of characters in a column


class Picture:
    """Nodes that can be iterated, searched, printed and drawn: the common base of graphs and tapes.

    Attributes:
        inputs: the nodes of the inputs.
        nodes: the operations in order of execution; iteration, ``len`` and ``[i]`` refer to these nodes.
        outputs: for each output its node, or the constant that it is.
        saved: the bytes that reverse mode keeps, each value counted once.
        rebuilt: whether the function ran with funcgrad's functions in place of NumPy's.
    """

    kind = "picture"
    rebuilt = False

    def __init__(
        self, name: str, inputs: Sequence[Node], nodes: Sequence[Node], outputs: Sequence[Any], *, saved: int
    ) -> None:
        self.name = name
        self.inputs, self.nodes = tuple(inputs), tuple(nodes)
        self.returned = tuple(outputs)
        self.outputs = tuple(out.node if type(out) is Operand else out for out in outputs)
        self.saved = saved
        self._svg: str | None = None

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __bool__(self) -> bool:
        return True  # a function that only returns its argument has a graph too

    @property
    def output(self) -> Any:
        """Node of the only output.

        Raises:
            TypeError: there is not exactly one output.
        """
        if len(self.outputs) != 1:
            raise InputError(f"{self.kind}.output: there must be one output, got {len(self.outputs)}. Use outputs.")
        return self.outputs[0]

    @property
    def stages(self) -> tuple[PipelineStage, ...]:
        """Stages of the pipeline, in the order of their first operations."""
        return tuple(dict.fromkeys(node.stage for node in self.nodes if node.stage is not None))

    def find(
        self, operation: str | None = None, *, stage: Any = None, where: Callable[[Node], bool] | None = None
    ) -> list[Node]:
        """Return the operations that fulfil all given conditions, in order of execution.

        Args:
            operation: the name of a primitive.
            stage: a stage's number or name, or a ``PipelineStage``.
            where: ``where(node)`` returns whether a node is wanted.

        Raises:
            TypeError: ``operation`` is not a name.

        Example:
            >>> from funcgrad import compose_left, trace
            >>> graph = trace(compose_left(fnp.square, lambda x: fnp.exp(x) * 2.0))(1.0)
            >>> graph.find("exp"), graph.find(stage="square"), graph.find(stage=2, where=lambda node: node.parents)
            ([<operation 1: exp -> float64>], [<operation 0: square -> float64>], [<operation 1: exp -> float64>, \
<operation 2: multiply -> float64>])
        """
        if operation is not None and not isinstance(operation, str):
            raise InputError(
                f"{self.kind}.find: an operation is found by its name, got {describe(operation)}. "
                f"Those here are called {', '.join(sorted({node.name for node in self.nodes})[:20])}."
            )
        return [
            node
            for node in self.nodes
            if (operation is None or node.name == operation)
            and (stage is None or (node.stage is not None and stage in (node.stage, *node.stage, str(node.stage))))
            and (where is None or where(node))
        ]

    def users(self, node: Node) -> list[Node]:
        """Return the operations that take a result of ``node`` as an argument."""
        return [other for other in self.nodes if any(type(a) is Operand and a.node is node for a in other.args)]

    def text(self, limit: int = MAX_PRINTED) -> str:
        """Return a table with a line per node; beyond ``limit``, the first and last nodes and a count of the others."""
        returned = _short(", ".join(map(_argument, self.returned[:20])), 200) or "nothing"
        return "\n".join([_headline(self), *_table(self, limit), f"returns {returned}"])

    def dot(self, limit: int = MAX_DRAWN) -> str:
        """Return the drawing in Graphviz's language; more than ``limit`` nodes are drawn as groups."""
        return _dot(self, limit)

    def mermaid(self, limit: int = MAX_DRAWN) -> str:
        """Return the drawing in Mermaid's language, for Markdown viewers; more than ``limit`` nodes as groups."""
        return _mermaid(self, limit)

    def svg(self, limit: int = MAX_DRAWN) -> str:
        """Return the drawing as SVG, made by Graphviz.

        Raises:
            ImportError: the package ``graphviz`` or Graphviz's program ``dot`` is not installed.
        """
        return _render(self.dot(limit))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{_headline(self)}>"

    def _repr_svg_(self) -> str | None:
        if self._svg is None:
            try:
                self._svg = self.svg()
            except MissingExtraError:
                self._svg = ""
        return self._svg or None

    def _repr_html_(self) -> str:
        svg = self._repr_svg_()
        return f"<pre>{html.escape(self.text())}</pre>" if svg is None else svg[max(svg.find("<svg"), 0) :]


def describe_bytes(count: int) -> str:
    """Format a number of bytes for reading.

    Example:
        >>> describe_bytes(640), describe_bytes(1_250_000)
        ('640 B', '1.2 MB')
    """
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"


def aligned_table(rows: Sequence[Sequence[str]], text_columns: int | None = None) -> list[str]:
    """Return the lines of a table, columns aligned, empty columns left out; only the first ``text_columns`` go left."""
    columns = [
        (str.ljust if text_columns is None or i < text_columns else str.rjust, c)
        for i, c in enumerate(zip(*rows, strict=True))
    ]
    padded = [[pad(cell, max(map(len, c))) for cell in c] for pad, c in columns if any(c[1:])]
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def _headline(picture: Picture) -> str:
    parts = {"input": picture.inputs, "operation": picture.nodes, "output": picture.outputs}
    counts = [_count(len(part), noun) for noun, part in parts.items()]
    saved = f"reverse mode saves {describe_bytes(picture.saved)}"
    rebuilt = "; run with funcgrad's functions" if picture.rebuilt else ""
    return f"{picture.kind} of {picture.name}: {', '.join(counts)}; {saved}{rebuilt}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _results(node: Node) -> str:
    """Return dtypes and shapes of the results."""
    return ", ".join(f"{d}{list(s) if s else ''}" for d, s in zip(node.dtypes, node.shapes, strict=True))


def _label(node: Node) -> str:
    return node.name if node.kind == "input" else f"%{node.index}"


def _shown_name(node: Node) -> str:
    return "input" if node.kind == "input" else node.name


def _argument(arg: Any) -> str:
    if type(arg) is Operand:
        several = len(arg.node.shapes) > 1
        return f"{_label(arg.node)}.{arg.output}" if several else _label(arg.node)
    if backend.shape_of(arg) == () and issubclass(type(arg), (int, float, complex, np.generic, np.ndarray)):
        return repr(arg.item() if isinstance(arg, (np.generic, np.ndarray)) else arg)
    return describe(arg)


def _short(text: str, width: int = _MAX_WIDTH) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _table(picture: Picture, limit: int) -> Iterator[str]:
    """Yield the lines of the table, columns aligned, empty columns left out."""
    nodes = (*picture.inputs, *picture.nodes)
    head, tail = (len(nodes), 0) if len(nodes) <= limit else (limit - limit // 2, limit // 2)
    shown = (*nodes[:head], *nodes[len(nodes) - tail :])
    rows = [("", "operation", "result", "arguments", "saved", "decided", "stage", "source"), *map(_row, shown)]
    lines = aligned_table(rows)
    if not nodes:
        return
    yield from lines[: head + 1]
    if tail:
        names = Counter(_shown_name(node) for node in nodes[head : len(nodes) - tail])
        most = ", ".join(f"{name} x {n}" for name, n in names.most_common(5))
        yield f"... {_count(len(nodes) - head - tail, 'line')} more: {most}{', ...' if len(names) > 5 else ''}"
        yield from lines[head + 1 :]


def _decided(node: Node) -> str:
    """Return the answer by which Python took a branch; of a long array only its ends."""
    if node.decided is None:
        return ""
    with np.printoptions(threshold=6, edgeitems=2):
        return _short(" ".join(str(node.decided).split()))


def _row(node: Node) -> tuple[str, ...]:
    params = [f"{name}={_short(repr(value), 24)}" for name, value in node.params.items() if name != "rules"]
    return (
        _label(node),
        _shown_name(node),
        _short(_results(node)),
        _short(", ".join([*map(_argument, node.args), *params])),
        describe_bytes(node.saved) if node.saved else "",
        _decided(node),
        "" if node.stage is None else _short(str(node.stage)),
        "" if node.source is None else _short(str(node.source)),
    )


class _Box:
    """Box of a drawing: one node, or several nodes that belong together."""

    def __init__(self, number: int, stage: PipelineStage | None, kind: str) -> None:
        self.id = f"n{number}"
        self.stage, self.kind = stage, kind
        self.nodes: list[Node] = []

    def lines(self) -> list[str]:
        """Return the lines of the label."""
        if len(self.nodes) == 1:
            node = self.nodes[0]
            facts = [node.name, _short(_results(node))]
            facts.append("" if node.source is None else str(node.source))
            facts.append("" if node.decided is None else f"decided {_decided(node)}")
            return [fact for fact in facts if fact]
        names = Counter(node.name for node in self.nodes).most_common(4)
        first = self.nodes[0].source
        same = first is not None and all(node.source == first for node in self.nodes)
        title = _count(len(self.nodes), self.kind)
        if self.kind == "input":
            return [title]
        return [title, *(f"{name} x {n}" for name, n in names[:3]), *["..."][: len(names) > 3], *[str(first)][:same]]


def _groupings() -> Iterator[Callable[[Node], Hashable]]:
    """Yield ways to share boxes, finer ones first; the last one always gives few boxes."""
    yield lambda node: (node.kind, node.index)
    yield lambda node: (node.kind, node.stage, node.source)
    yield lambda node: (node.stage, node.kind, _shown_name(node))
    yield lambda node: (node.kind, _shown_name(node))
    yield lambda node: node.kind


def _boxes(picture: Picture, limit: int) -> tuple[list[_Box], dict[tuple[str, str], int]]:
    """Return the boxes, and how many arrows go from one box to another."""
    nodes = (*picture.inputs, *picture.nodes)
    for key in _groupings():
        keys = [key(node) for node in nodes]
        if len(set(keys)) <= limit:
            break
    by_key: dict[Hashable, _Box] = {}
    box_of: dict[Node, _Box] = {}
    for k, node in zip(keys, nodes, strict=True):
        box = by_key.get(k)
        if box is None:
            box = by_key[k] = _Box(len(by_key), node.stage, node.kind)
        elif box.stage != node.stage:
            box.stage = None
        box.nodes.append(node)
        box_of[node] = box
    arrows: Counter[tuple[str, str]] = Counter()
    for node in nodes:
        target = box_of[node]
        arrows.update((s.id, target.id) for s in (box_of[p] for p in node.parents) if s is not target)
    ends = dict.fromkeys(box_of[out].id for out in picture.outputs if isinstance(out, Node))
    return list(by_key.values()), {**arrows, **{(end, "result"): 1 for end in ends}}


def _clusters(boxes: list[_Box]) -> dict[PipelineStage | None, list[_Box]]:
    """Return the boxes of each stage, boxes outside of any stage first."""
    clusters: dict[PipelineStage | None, list[_Box]] = {None: []}
    for box in boxes:
        clusters.setdefault(box.stage, []).append(box)
    return clusters


def _dot(picture: Picture, limit: int) -> str:
    """Return the picture in DOT. Labels are quoted strings, in which only backslashes and quotes are special."""
    boxes, arrows = _boxes(picture, limit)
    lines = [
        f"digraph {_quoted(picture.name)} {{",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for number, (stage, members) in enumerate(_clusters(boxes).items()):
        inside = [f"{b.id} [label={_quoted(*b.lines())}{_SHAPES[b.kind]}];" for b in members]
        if stage is None:
            lines += [f"  {line}" for line in inside]
        else:
            lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(str(stage))};"]
            lines += [*(f"    {line}" for line in inside), "  }"]
    if any(target == "result" for _, target in arrows):
        lines.append('  result [label="result", shape=ellipse];')
    for (start, end), times in arrows.items():
        label = f" [label={_quoted(f'x {times}')}]" if times > 1 else ""
        lines.append(f"  {start} -> {end}{label};")
    return "\n".join([*lines, "}"]) + "\n"


_SHAPES = {"input": ", shape=ellipse", "operation": ""}


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _mermaid(picture: Picture, limit: int) -> str:
    """Return the picture in Mermaid. Quotes and characters special in HTML are written as entities."""
    boxes, arrows = _boxes(picture, limit)
    lines = ["flowchart TD"]
    for number, (stage, members) in enumerate(_clusters(boxes).items()):
        texts = {b: f"[{_entities(*b.lines())}]" for b in members}
        inside = [f"{b.id}({text})" if b.kind == "input" else f"{b.id}{text}" for b, text in texts.items()]
        if stage is None:
            lines += [f"  {line}" for line in inside]
        else:
            lines.append(f"  subgraph stage{number}[{_entities(str(stage))}]")
            lines += [*(f"    {line}" for line in inside), "  end"]
    if any(target == "result" for _, target in arrows):
        lines.append('  result(["result"])')
    for (start, end), times in arrows.items():
        lines.append(f"  {start} -->{f'|x {times}|' if times > 1 else ''} {end}")
    return "\n".join(lines) + "\n"


def _entities(*lines: str) -> str:
    special = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "\n": " ", "`": "#96;"}
    return '"' + "<br/>".join("".join(special.get(c, c) for c in line) for line in lines) + '"'


def _render(dot: str) -> str:
    """Convert ``dot`` to SVG by Graphviz."""
    try:
        graphviz = import_module("graphviz")
    except ImportError:
        raise MissingExtraError(
            "svg: the package graphviz is not installed. Install funcgrad[graph] and Graphviz's program dot, or "
            "use dot() or mermaid()."
        ) from None
    try:
        svg: str = graphviz.Source(dot).pipe(format="svg", encoding="utf-8")
    except graphviz.ExecutableNotFound:
        raise MissingExtraError(
            "svg: Graphviz's program dot was not found on the path. Install Graphviz (a package of the operating "
            "system), or use dot() or mermaid()."
        ) from None
    return svg
