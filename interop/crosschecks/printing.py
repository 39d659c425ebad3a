"""Output of reports and tables by the command line: text, colours if rich is installed, and HTML pages."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from funcgrad.interop.crosschecks.primitives_table import COLUMNS, Cell, Line, Table
from funcgrad.interop.crosschecks.report import CrossCheck, cells_of, first_to_differ

_NAME, _WIDTH = 26, 11
FINE, FAIR = 16.0, 4096.0  # ulps: the rounding of one operation, and of many operations


#: Styles of the lines of a report, by how they begin.
_LINE_STYLES = {
    "✗": "red",
    "FAILED": "bold red",
    "First to differ": "bold red",
    "OK": "bold green",
    "Cross-check": "bold",
    "Known divergence": "yellow",
}
_COLOURS = {"good": "green", "fair": "yellow", "poor": "magenta", "bad": "bold red", "none": "dim"}


def ulps_text(cell: Cell) -> str:
    """Return the error of a cell in few characters."""
    if cell.ulps != cell.ulps:
        return "–"
    return f"{cell.ulps:.0f}" if cell.ulps < 1e4 else f"{cell.ulps:.0e}"


def _grade(cell: Cell) -> str:
    """Return the grade of a cell: "good", "fair", "poor", "bad", or "none" if nothing was compared."""
    if not cell.ok or cell.ulps != cell.ulps:
        return "none" if cell.ok else "bad"
    return "good" if cell.ulps <= FINE else "fair" if cell.ulps <= FAIR else "poor"


def terminal(color: str) -> Plain:
    """Return the printer: with rich if colours are wanted or the output is a terminal, else plain text.

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
    """Plain text; the lines of a table are printed as soon as they are done."""

    kinds: tuple[str, ...] = ()

    def say(self, text: str) -> None:
        """Print a text."""
        print(text, flush=True)

    def report(self, report: CrossCheck) -> None:
        """Print a report."""
        self.say(str(report))

    @contextmanager
    def table(self, kinds: tuple[str, ...]) -> Iterator[Plain]:
        """Print as a table what ``before`` and ``after`` receive."""
        self.kinds = kinds
        yield self

    def before(self, name: str, place: int, total: int) -> None:
        """Announce a function that is about to be checked; print the head before the first."""
        if place == 0:
            head = "".join(COLUMNS[kind].rjust(_WIDTH) for kind in self.kinds)
            self.say(f"Largest error in ulps, {total} functions\n\n{'function'.ljust(_NAME)}{head}")
            self.say("─" * (_NAME + _WIDTH * len(self.kinds)))

    def after(self, line: Line) -> None:
        """Print the line of a function that has been checked."""
        cells = "".join((("" if c.ok else "✗ ") + ulps_text(c)).rjust(_WIDTH) for c in line.cells.values())
        self.say("\n".join([line.name.ljust(_NAME) + cells, *[f"    {text}" for text in details(line)]]))

    def end(self, table: Table) -> None:
        """Print the end of the complete table."""
        about = ", ".join(f"{name} {value}" for name, value in table.about.items())
        self.say(f"\n{about}\n{table.verdict}")


def details(line: Line) -> list[str]:
    """Return the remarks on a line, which follow its numbers."""
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
        """Print a text, with colours for the lines of a report."""
        for line in text.split("\n"):
            style = next((style for start, style in _LINE_STYLES.items() if line.startswith(start)), None)
            self.console.print(line, markup=False, highlight=False, style=style, soft_wrap=True)

    @contextmanager
    def table(self, kinds: tuple[str, ...]) -> Iterator[Plain]:
        """Show a progress bar while the functions are checked."""
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
        """Print the name of a function that fails at once."""
        if not line.ok:
            self.progress.console.print(f"✗ {line.name}", style="red", markup=False, highlight=False)

    def end(self, table: Table) -> None:
        """Print the complete table."""
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
        return self._text(("" if cell.ok else "✗ ") + ulps_text(cell), _COLOURS[_grade(cell)])

    def _text(self, text: str, style: str) -> Any:
        return self.rich["text"].Text(text, style=style)


_STYLE = """
:root { --ink: #1d2430; --soft: #667085; --line: #e4e7ec; --paper: #ffffff; --tile: #f7f8fa;
  --good: #e3f4e8; --fair: #fdf3d7; --poor: #fbe3cf; --bad: #c62828; --badink: #ffffff; --ok: #1f7a3f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2d3542; --paper: #12161d;
  --tile: #1a202a; --good: #173524; --fair: #3d3413; --poor: #46290f; --bad: #d9534f; --ok: #63c587; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
p { margin: .3rem 0; }
.about, .legend { color: var(--soft); font-size: .85rem; }
.verdict { font-size: 1.05rem; font-weight: 600; margin: 1rem 0; padding: .7rem 1rem; border-radius: .5rem;
  background: var(--tile); border-left: .3rem solid var(--ok); }
.verdict.failed { border-left-color: var(--bad); }
.tools { display: flex; gap: 1.2rem; align-items: center; margin: 1rem 0 .5rem; flex-wrap: wrap; }
input[type=search] { font: inherit; padding: .35rem .6rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--tile); color: inherit; width: 16rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { position: sticky; top: 0; background: var(--paper); font-weight: 600; font-size: .85rem; color: var(--soft); }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.name, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; }
td.good { background: var(--good); } td.fair { background: var(--fair); } td.poor { background: var(--poor); }
td.bad { background: var(--bad); color: var(--badink); font-weight: 600; }
td.none { color: var(--soft); }
tr.more td { text-align: left; white-space: normal; color: var(--soft); font-size: .85rem; padding-left: 2rem; }
.key { display: inline-block; padding: 0 .5rem; border-radius: .25rem; margin-right: .2rem; }
"""

_SCRIPT = """
const field = document.querySelector("input[type=search]"), odd = document.querySelector("input[type=checkbox]");
function show() {
  for (const row of document.querySelectorAll("tr[data-name]")) {
    row.hidden = !row.dataset.name.includes(field.value.trim()) || (odd.checked && !("odd" in row.dataset));
  }
}
field.addEventListener("input", show); odd.addEventListener("input", show);
"""


def _page(title: str, body: str, script: str = "") -> str:
    code = f"<script>{script}</script>\n" if script else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n{code}</body>\n</html>\n"
    )


def _verdict(text: str, ok: bool) -> str:
    return f'<p class="verdict{"" if ok else " failed"}">{escape(text)}</p>'


def page_of_table(table: Table) -> str:
    """Return the table of functions as a page: coloured errors, a search field, a box that shows only odd functions."""
    head = "".join(f"<th>{COLUMNS[kind]}</th>" for kind in table.kinds)
    rows = "\n".join(_rows(line, table.kinds) for line in table.lines)
    about = " · ".join(f"{escape(name)} {escape(value)}" for name, value in table.about.items())
    body = f"""<h1>funcgrad against JAX, function by function</h1>
<p class="about">{about}</p>
{_verdict(table.verdict, table.ok)}
<div class="tools"><input type="search" placeholder="search a function" aria-label="search">
<label><input type="checkbox"> only what is worth a look</label></div>
<p class="legend">The largest error in units of the last place.
{_key("good", f"up to {FINE:.0f}")} {_key("fair", f"up to {FAIR:.0f}")} {_key("poor", "more, within the tolerance")}
{_key("bad", "a disagreement")} – not compared</p>
<div class="wide"><table>
<thead><tr><th>function</th>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>"""
    return _page("funcgrad: cross-check of all functions", body, _SCRIPT)


def _key(style: str, says: str) -> str:
    return f'<span class="key" style="background: var(--{style})">&nbsp;</span>{says}'


def _rows(line: Line, kinds: tuple[str, ...]) -> str:
    """Return a line of the table, followed by the remarks on it."""
    said = details(line)
    mark = f' data-name="{escape(line.name)}"' + (" data-odd" if said else "")
    cells = "".join(_cell(line.cells.get(kind)) for kind in kinds)
    more = f'<tr class="more"{mark}><td colspan="{len(kinds) + 1}">{"<br>".join(map(escape, said))}</td></tr>'
    return f'<tr{mark}><td class="name">{escape(line.name)}</td>{cells}</tr>' + (more if said else "")


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return '<td class="bad">error</td>'
    return f'<td class="{_grade(cell)}" title="{escape(cell.verdict)}">{ulps_text(cell)}</td>'


def page_of_report(report: CrossCheck) -> str:
    """Return the report on one function as a page."""
    (what, path, *numbers, verdict), *lines = cells_of(report)
    words = [f'<th class="text">{escape(text)}</th>' for text in (what, path)]
    head = "".join([*words, *[f"<th>{escape(n)}</th>" for n in numbers], f'<th class="text">{escape(verdict)}</th>'])
    rows = "\n".join(_report_row(cells, row.ok) for cells, row in zip(lines, report.rows, strict=True))
    remarks = "".join(f"<p>{escape(text)}</p>" for text in report.remarks())
    body = f"""<h1>Cross-check of <code>{escape(report.name)}</code></h1>
{_verdict(report.verdict, report.ok)}
<div class="wide"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<div class="about">{remarks}</div>"""
    return _page(f"funcgrad: cross-check of {report.name}", body)


def _report_row(cells: tuple[str, ...], ok: bool) -> str:
    what, path, *numbers, verdict = cells
    style = "text" if ok else "text bad"
    middle = "".join(f"<td>{escape(n)}</td>" for n in numbers)
    return (
        f'<tr><td class="text">{escape(what)}</td><td class="text name">{escape(path)}</td>{middle}'
        f'<td class="{style}">{escape(verdict)}</td></tr>'
    )
