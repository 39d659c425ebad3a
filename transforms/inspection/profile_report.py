"""Results of ``profile``: rows by operation, line and stage, as a table, as numbers, and as a flame picture.

A flame is an SVG picture of nested blocks, each as wide as the figure that it shows is large.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from funcgrad.transforms.inspection.drawing import aligned_table, describe_bytes
from funcgrad.transforms.inspection.metering import Row

_WIDTH, _MARGIN, _BAR, _GAP = 960, 16, 26, 14
_LETTER = 6.3  # approximate width of a letter in this font and size
_NARROWEST = 0.4
_INK, _PAPER = "#263238", "#ffffff"


@dataclass
class Block:
    """Part of a flame.

    Attributes:
        name: the text on the block.
        size: the width of the block, in the measured unit; its parts together are no wider.
        tooltip: the text shown when the mouse is over the block.
        colour: the colour of the block, and of its parts unless they have their own.
        parts: the parts of the block, by key; they are drawn below it, in this order.
    """

    name: str
    size: float
    tooltip: str = ""
    colour: str = ""
    parts: dict[object, Block] = field(default_factory=dict)

    def depth(self) -> int:
        """Return how many levels the block has."""
        return 1 + max((part.depth() for part in self.parts.values()), default=0)


def flames(title: str, roots: Sequence[Block]) -> str:
    """Draw flames below each other, on one scale.

    Example:
        >>> picture = flames("a run", [Block("all", 3.0, colour="#00796b", parts={0: Block("a part", 1.0)})])
        >>> picture.count("<rect"), "a part" in picture
        (3, True)
    """
    largest = max((root.size for root in roots), default=0.0)
    shapes: list[str] = []
    top = _MARGIN + 24
    for root in roots:
        if largest > 0:
            _draw(shapes, root, _MARGIN, top, (_WIDTH - 2 * _MARGIN) / largest, root.colour, root.size)
        top += root.depth() * _BAR + _GAP
    height = top - _GAP + _MARGIN
    said = html.escape(title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" aria-label="{said}" font-family="Helvetica, Arial, sans-serif" '
            f'font-size="12" fill="{_INK}">',
            f"<title>{said}</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}" rx="10"/>',
            f'<text x="{_MARGIN}" y="{_MARGIN + 9}" font-size="13" font-weight="600">{said}</text>',
            *shapes,
            "</svg>\n",
        ]
    )


def _draw(shapes: list[str], block: Block, x: float, y: float, scale: float, colour: str, whole: float) -> None:
    """Add a block and its parts; wider blocks have a stronger colour."""
    width = block.size * scale
    if width < _NARROWEST:
        return
    colour = block.colour or colour
    strength = 0.12 + 0.4 * min(block.size / whole, 1.0) if whole else 0.12
    name = _fitted(block.name, width - 8)
    label = f'<text x="{x + 4:.1f}" y="{y + 17}">{html.escape(name)}</text>' if name else ""
    shapes.append(
        f'<g><title>{html.escape(block.tooltip or block.name)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{_BAR - 2}" rx="3" fill="{colour}" fill-opacity="{strength:.2f}" stroke="{colour}" '
        f'stroke-width="0.8"/>{label}</g>'
    )
    for part in block.parts.values():
        _draw(shapes, part, x, y + _BAR, scale, colour, whole)
        x += part.size * scale


def _fitted(text: str, width: float) -> str:
    """Return as much of a text as fits into the width."""
    letters = int(width / _LETTER)
    if len(text) <= letters:
        return text
    return text[: letters - 1] + "…" if letters >= 4 else ""


MAX_ROWS = 30
_HEAD = ("operation", "source", "stage", "calls", "forward", "backward", "share", "saved", "results")
_TEXT_COLUMNS = 3  # number of leading columns that hold words; the others hold numbers
_COLOURS = {"forward": "#00796b", "backward": "#c77700"}  # the colours of the documentation's drawings
_GREY = "#607d8b"


class Pass(NamedTuple):
    """Cost of one of the two passes.

    Attributes:
        name: "forward" or "backward".
        seconds: the seconds of the pass without a profiler.
        measured: the seconds of the pass while every operation was measured, without the profiler's own steps.
        elsewhere: the seconds of ``measured`` outside of all operations and VJP rules.
        peak: the largest number of bytes in use, above those before the first pass; None if it was not measured.
    """

    name: str
    seconds: float
    measured: float
    elsewhere: float
    peak: int | None


class Profile:
    """Cost of the operations of a function and of its pullback. ``profile`` makes it.

    Attributes:
        name: the function's name.
        operations: a ``Row`` for each operation on each line in each stage, in the order of first calls.
        passes: a ``Pass`` each for forward and backward; only the first if nothing was differentiated.
        saved: the bytes that tapes kept, each value counted once, including values that a checkpoint records again.
        own: the seconds that the profiler took for itself; no other figure includes them.

    Example:
        >>> from funcgrad import profile
        >>> found = profile(lambda x: fnp.sum(fnp.exp(x) * 2.0))(np.ones(1000))
        >>> [row.operation for row in found.operations], [one.name for one in found.passes]
        (['exp', 'multiply', 'reduce_sum'], ['forward', 'backward'])
        >>> found.saved, found.peak >= 16_000, found.seconds > 0
        (8000, True, True)
    """

    def __init__(self, name: str, operations: Sequence[Row], passes: Sequence[Pass], *, own: float, saved: int) -> None:
        self.name = name
        self.operations, self.passes = tuple(operations), tuple(passes)
        self.own, self.saved = own, saved

    @property
    def seconds(self) -> float:
        """Seconds of both passes without a profiler."""
        return sum(one.seconds for one in self.passes)

    @property
    def measured(self) -> float:
        """Seconds of both passes while every operation was measured."""
        return sum(one.measured for one in self.passes)

    @property
    def elsewhere(self) -> float:
        """Seconds of ``measured`` outside of operations: Python, NumPy on constants, sums of cotangents."""
        return sum(one.elsewhere for one in self.passes)

    @property
    def kernels(self) -> float:
        """Seconds of the forward pass that the array library took."""
        return sum(row.kernel for row in self.operations)

    @property
    def peak(self) -> int | None:
        """Largest number of bytes in use, above those before the call; None if it was not measured."""
        return max((one.peak for one in self.passes if one.peak is not None), default=None)

    @property
    def stages(self) -> tuple[Row, ...]:
        """Rows, one for each stage of the pipeline."""
        return self._summed(lambda row: row.stage)

    @property
    def lines(self) -> tuple[Row, ...]:
        """Rows, one for each line of the program."""
        return self._summed(lambda row: row.source)

    def _summed(self, key: Callable[[Row], Hashable]) -> tuple[Row, ...]:
        groups: dict[Hashable, list[Row]] = {}
        for row in self.operations:
            groups.setdefault(key(row), []).append(row)
        return tuple(map(_sum, groups.values()))

    def text(self, limit: int = MAX_ROWS) -> str:
        """Return the table as plain text; beyond ``limit`` rows, the rows that took longest and a sum of the rest."""
        lines = [self._headline()]
        if any(row.stage is not None for row in self.operations):
            rows = [row._replace(operation=None, source=None) for row in self.stages]
            lines += ["", *aligned_table([_HEAD, *map(self._cells, rows)], _TEXT_COLUMNS)]
        lines += ["", *aligned_table([_HEAD, *self._body(limit)], _TEXT_COLUMNS), "", self._footline()]
        return "\n".join(lines)

    def svg(self) -> str:
        """Draw forward and backward as flames: in each the stages, their lines, and the operations of these lines."""
        elsewhere = {one.name: one.elsewhere for one in self.passes}
        drawn = [name for name in _COLOURS if name in elsewhere or any(getattr(row, name) for row in self.operations)]
        return flames(self._headline(), [self._flame(name, elsewhere.get(name, 0.0)) for name in drawn])

    def as_json(self) -> dict[str, Any]:
        """Return the figures as values that ``json`` can write."""
        return {
            "function": self.name,
            "seconds": self.seconds,
            "measured": self.measured,
            "elsewhere": self.elsewhere,
            "own": self.own,
            "saved": self.saved,
            "peak": self.peak,
            "passes": [one._asdict() for one in self.passes],
            "operations": [_row_as_json(row) for row in self.operations],
        }

    def show(self, limit: int = MAX_ROWS) -> None:
        """Print the table: on a terminal with rich if it is installed, else as text."""
        try:
            console = import_module("rich.console").Console() if sys.stdout.isatty() else None
        except ImportError:
            console = None
        if console is None:
            print(self.text(limit))
        else:
            console.print(self._rich(limit))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def __rich__(self) -> Any:
        return self._rich(MAX_ROWS)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line("td", cells) for cells in self._body(MAX_ROWS))
        return f"{self.svg()}<table>{line('th', _HEAD)}{body}</table><p>{html.escape(self._footline())}</p>"

    def _headline(self) -> str:
        times = ", ".join(f"{one.name} {describe_seconds(one.seconds)}" for one in self.passes)
        peak = "" if self.peak is None else f", the peak of memory is {describe_bytes(self.peak)}"
        return f"profile of {self.name}: {times}; tapes saved {describe_bytes(self.saved)}{peak}"

    def _footline(self) -> str:
        times = ", ".join(f"{one.name} {describe_seconds(one.measured)}" for one in self.passes)
        return (
            f"Measured one by one: {times}; kernels of the operations {describe_seconds(self.kernels)}. "
            f"The profiler's own {describe_seconds(self.own)} are not counted."
        )

    def _body(self, limit: int) -> Iterator[tuple[str, ...]]:
        """Yield the cells of the rows that took longest, and of the rest."""
        rows = sorted(self.operations, key=lambda row: -(row.forward + row.backward))
        yield from map(self._cells, rows[:limit])
        if rows[limit:]:
            yield (f"{len(rows) - limit} more", *self._cells(_sum(rows[limit:]))[1:])
        shares = [describe_seconds(one.elsewhere) for one in self.passes]
        yield ("elsewhere", "", "", "", *shares, *[""] * (2 - len(shares)), self._share(self.elsewhere), "", "")

    def _cells(self, row: Row) -> tuple[str, ...]:
        return (
            row.operation or "",
            "" if row.source is None else str(row.source),
            "" if row.stage is None else str(row.stage),
            str(row.calls or ""),
            describe_seconds(row.forward) if row.forward else "",
            describe_seconds(row.backward) if row.backward else "",
            self._share(row.forward + row.backward),
            describe_bytes(row.saved) if row.saved else "",
            describe_bytes(row.results) if row.results else "",
        )

    def _share(self, seconds: float) -> str:
        return f"{seconds / self.measured:.0%}" if self.measured else ""

    def _flame(self, name: str, elsewhere: float) -> Block:
        """Return the flame of operations ("forward") or of VJP rules ("backward")."""
        root = Block("", 0.0, colour=_COLOURS[name])
        staged = any(row.stage is not None for row in self.operations)
        for row in self.operations:
            seconds: float = getattr(row, name)
            if seconds <= 0:
                continue
            inside = root
            if staged:
                inside = _part_of(inside, row.stage, "outside of the pipeline" if row.stage is None else str(row.stage))
            line = "an unknown line" if row.source is None else f"{row.source} {row.source.text}".rstrip()
            inside = _part_of(inside, row.source, line)
            tooltip = (
                f"{row.operation}: {describe_seconds(seconds)}, calls {row.calls}, saved {describe_bytes(row.saved)}"
            )
            inside.parts[row.operation] = Block(row.operation or "", seconds, tooltip)
        root.size = _add_up(root) + elsewhere
        root.name = root.tooltip = f"{name} {describe_seconds(root.size)}"
        if elsewhere > 0:
            tooltip = f"elsewhere: {describe_seconds(elsewhere)}"
            root.parts["elsewhere"] = Block("elsewhere", elsewhere, tooltip, _GREY)
        return root

    def _rich(self, limit: int) -> Any:
        """Return the table as a table of rich."""
        table = import_module("rich.table").Table(
            title=self._headline(), caption=self._footline(), title_justify="left", caption_justify="left", box=None
        )
        for place, name in enumerate(_HEAD):
            words = place < _TEXT_COLUMNS
            table.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not words)
        for cells in self._body(limit):
            table.add_row(*map(import_module("rich.text").Text, cells))
        return table


def _part_of(block: Block, key: object, name: str) -> Block:
    return block.parts.setdefault(key, Block(name, 0.0))


def _add_up(block: Block) -> float:
    """Give each block without a size the size of its parts, and return the size of ``block``."""
    parts = sum(map(_add_up, block.parts.values()))
    if not block.size:
        block.size = parts
        block.tooltip = f"{block.name}: {describe_seconds(parts)}"
    return block.size


def _sum(rows: Sequence[Row]) -> Row:
    """Sum several rows to one, with the words on which all rows agree."""
    first, *others = rows
    words = [word if all(row[i] == word for row in others) else None for i, word in enumerate(first[:3])]
    return Row(*words, *map(sum, zip(*[row[3:] for row in rows], strict=True)))  # type: ignore[arg-type]


def _row_as_json(row: Row) -> dict[str, Any]:
    source = None if row.source is None else row.source._asdict()
    return {**row._asdict(), "source": source, "stage": None if row.stage is None else row.stage._asdict()}


def describe_seconds(seconds: float) -> str:
    """Format a time for reading.

    Example:
        >>> describe_seconds(0.00123), describe_seconds(42e-6), describe_seconds(75.0)
        ('1.23 ms', '42 µs', '75 s')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            digits = f"{seconds * factor:.3g}" if seconds < 1000 else f"{seconds:.0f}"
            return f"{digits} {unit}"
    raise AssertionError
