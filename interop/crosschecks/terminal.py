"""What the command line prints: plain text, and colours and a progress bar where rich is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from funcgrad.interop.crosschecks.primitives_table import COLUMNS, Cell, Line, Table
from funcgrad.interop.crosschecks.report import CrossCheck, first_to_differ

__all__ = ["FAIR", "FINE", "Plain", "Rich", "details", "terminal", "told"]

_NAME, _WIDTH = 26, 11
FINE, FAIR = 16.0, 4096.0  # ulps: what rounding does to one operation, and what it may do to many


def told(cell: Cell) -> str:
    """The error of a cell in few characters."""
    if cell.ulps != cell.ulps:
        return "–"
    return f"{cell.ulps:.0f}" if cell.ulps < 1e4 else f"{cell.ulps:.0e}"


def terminal(color: str) -> Plain:
    """What prints: with rich on a terminal or where colours are wanted, plain text else.

    Args:
        color: "auto", "always" or "never".
    """
    if color == "never" or (color == "auto" and not sys.stdout.isatty()):
        return Plain()
    try:
        importlib.import_module("rich")
    except ImportError:
        return Plain()
    return Rich(forced=color == "always")


class Plain:
    """Plain text; the lines of a table appear one after the other, as they are done."""

    kinds: tuple[str, ...] = ()

    def say(self, text: str) -> None:
        """Print a text."""
        print(text, flush=True)

    def report(self, report: CrossCheck) -> None:
        """Print a report."""
        self.say(str(report))

    @contextmanager
    def table(self, kinds: tuple[str, ...]) -> Iterator[Plain]:
        """Print what ``before`` and ``after`` hear, as a table."""
        self.kinds = kinds
        yield self

    def before(self, name: str, place: int, total: int) -> None:
        """Here comes a function."""
        if place == 0:
            head = "".join(COLUMNS[kind].rjust(_WIDTH) for kind in self.kinds)
            self.say(f"Largest error in ulps, {total} functions\n\n{'function'.ljust(_NAME)}{head}")
            self.say("─" * (_NAME + _WIDTH * len(self.kinds)))

    def after(self, line: Line) -> None:
        """A function has been checked."""
        cells = "".join((("" if c.ok else "✗ ") + told(c)).rjust(_WIDTH) for c in line.cells.values())
        self.say("\n".join([line.name.ljust(_NAME) + cells, *[f"    {text}" for text in details(line)]]))

    def end(self, table: Table) -> None:
        """The whole table is there."""
        about = ", ".join(f"{name} {value}" for name, value in table.about.items())
        self.say(f"\n{about}\n{table.verdict}")


def details(line: Line) -> list[str]:
    """What is to be said of a line besides its numbers."""
    odd = [f"{COLUMNS[k]}: {c.verdict}" for k, c in line.cells.items() if c.verdict != "agree"]
    notes = [f"Known divergence: {note}" for note in line.notes]
    return [*([line.error] if line.error else []), *odd, *first_to_differ(line.blames), *notes]


class Rich(Plain):
    """Colours, and a progress bar."""

    def __init__(self, *, forced: bool = False) -> None:
        rich = {name: importlib.import_module(f"rich.{name}") for name in ("console", "table", "progress", "text")}
        self.rich: dict[str, Any] = rich
        self.console = rich["console"].Console(force_terminal=forced or None, width=150 if forced else None)
        self.progress: Any = None

    def say(self, text: str) -> None:
        """Print a text; its last line says whether all is well."""
        *others, last = text.split("\n")
        for line in others:
            self.console.print(line, markup=False, highlight=False)
        style = "bold red" if last.startswith("FAILED") else "bold green" if last.startswith("OK") else None
        self.console.print(last, markup=False, highlight=False, style=style)

    def report(self, report: CrossCheck) -> None:
        """Print a report, its rows in colours."""
        for line in str(report).split("\n"):
            style: str | None = None
            if line.startswith("✗"):
                style = "red"
            elif line.startswith(("FAILED", "First to differ")):
                style = "bold red"
            elif line.startswith(("OK", "Cross-check")):
                style = "bold green" if line.startswith("OK") else "bold"
            elif line.startswith("Known divergence"):
                style = "yellow"
            self.console.print(line, markup=False, highlight=False, style=style, soft_wrap=True)

    @contextmanager
    def table(self, kinds: tuple[str, ...]) -> Iterator[Plain]:
        """A progress bar while the functions are checked."""
        parts = self.rich["progress"]
        columns = [
            parts.TextColumn("{task.description:26}"),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TimeRemainingColumn(),
        ]
        with parts.Progress(*columns, console=self.console, transient=True) as self.progress:
            self.task = self.progress.add_task("", total=None)
            yield self

    def before(self, name: str, place: int, total: int) -> None:
        """Move the bar."""
        self.progress.update(self.task, description=name, completed=place, total=total)

    def after(self, line: Line) -> None:
        """Say at once what is wrong."""
        if not line.ok:
            self.progress.console.print(f"✗ {line.name}", style="red", markup=False, highlight=False)

    def end(self, table: Table) -> None:
        """The whole table."""
        made = self.rich["table"].Table(title="largest error in ulps", header_style="bold")
        made.add_column("function")
        for kind in table.kinds:
            made.add_column(COLUMNS[kind], justify="right")
        made.add_column("")
        for line in table.lines:
            cells = [self._cell(line.cells.get(kind)) for kind in table.kinds]
            name = self._text(line.name, "" if line.ok else "bold red")
            made.add_row(name, *cells, self._text("; ".join(details(line)), "yellow" if line.ok else "red"))
        self.console.print(made)
        super().end(table)

    def _cell(self, cell: Cell | None) -> Any:
        if cell is None:
            return self._text("", "")
        if not cell.ok:
            return self._text(f"✗ {told(cell)}", "bold red")
        style = "green" if cell.ulps <= FINE else "yellow" if cell.ulps <= FAIR else "magenta"
        return self._text(told(cell), style if cell.ulps == cell.ulps else "dim")

    def _text(self, text: str, style: str) -> Any:
        return self.rich["text"].Text(text, style=style)
