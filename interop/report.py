"""What a cross-check found: rows of errors and verdicts, as text and as HTML."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from funcgrad.errors import CrossCheckError

__all__ = ["CrossCheck", "Row"]

ALONE = "{} stands alone"
_HEAD = ("quantity", "of", "funcgrad – JAX", "funcgrad – referee", "JAX – referee", "referee ±", "verdict")


class Row(NamedTuple):
    """One quantity, compared three ways. Errors are relative; nan where there is nothing to compare.

    Attributes:
        what: "value", "gradient", "vjp", "jvp" or "hvp".
        path: which argument or result, as Python would write it.
        funcgrad_jax: the largest error of funcgrad against JAX.
        funcgrad_referee: the same of funcgrad against the referee.
        jax_referee: the same of JAX against the referee.
        referee_error: how far the referee says that it may itself be off.
        verdict: "agree", "funcgrad stands alone", "JAX stands alone", "referee stands alone", "all differ" or
            "funcgrad and JAX differ", with what explains it after a comma.
        ok: whether nothing speaks against funcgrad's result here.
    """

    what: str
    path: str
    funcgrad_jax: float
    funcgrad_referee: float
    jax_referee: float
    referee_error: float
    verdict: str
    ok: bool


@dataclass(frozen=True)
class CrossCheck:
    """The report of a cross-check. True where all is well; ``str`` gives a table.

    Attributes:
        name: the function that was checked.
        rows: one for each quantity and leaf.
        rtol: the relative tolerance.
        methods: how the referee measured.
        notes: known divergences of JAX that the function met.
    """

    name: str
    rows: tuple[Row, ...]
    rtol: float
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether every row is."""
        return all(row.ok for row in self.rows)

    def __bool__(self) -> bool:
        return self.ok

    def raise_if_failed(self) -> CrossCheck:
        """The report itself when it is good.

        Raises:
            CrossCheckError: it is not (an ``AssertionError``); the message is the report.
        """
        if not self.ok:
            raise CrossCheckError(str(self))
        return self

    @property
    def verdict(self) -> str:
        """The last line of the report."""
        failed = Counter(row.verdict for row in self.rows if not row.ok)
        count = f"{len(self.rows)} quantities"
        if failed:
            named = ", ".join(f"{verdict} ({times})" for verdict, times in failed.items())
            return f"FAILED in {failed.total()} of {count}: {named}."
        remarks = sum(row.verdict != "agree" for row in self.rows)
        said = f", {remarks} with a remark" if remarks else ""
        return f"OK: {count} agree to {self.rtol:.0e}{said}."

    def __str__(self) -> str:
        cells = [_HEAD, *[_cells(row) for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        marks = ["  ", *["  " if row.ok else "✗ " for row in self.rows]]
        lines = [mark + "  ".join(_aligned(row, widths)).rstrip() for mark, row in zip(marks, cells, strict=True)]
        lines.insert(1, "  " + "  ".join("─" * width for width in widths))
        return "\n".join([f"Cross-check of {self.name}", "", *lines, "", *self._remarks(), self.verdict])

    def __repr__(self) -> str:
        return f"<CrossCheck of {self.name}: {self.verdict}>"

    def _remarks(self) -> list[str]:
        methods = [f"The referee: {', '.join(self.methods)}."] if self.methods else []
        return methods + [f"Known divergence: {note}" for note in self.notes]

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...], style: str = "") -> str:
            return f"<tr{style}>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        marked = ' style="color: #b00020; font-weight: bold"'
        body = "".join(line("td", _cells(row), "" if row.ok else marked) for row in self.rows)
        remarks = "".join(f"<p>{html.escape(text)}</p>" for text in (*self._remarks(), self.verdict))
        title = f"<caption>Cross-check of {html.escape(self.name)}</caption>"
        return f"<table>{title}<thead>{line('th', _HEAD)}</thead><tbody>{body}</tbody></table>{remarks}"


def _cells(row: Row) -> tuple[str, ...]:
    errors = (row.funcgrad_jax, row.funcgrad_referee, row.jax_referee, row.referee_error)
    return (row.what, row.path, *[_number(e) for e in errors], row.verdict)


def _number(error: float) -> str:
    if error != error:
        return "–"
    return "0" if error == 0 else f"{error:.1e}"


def _aligned(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    pairs = list(zip(cells, widths, strict=True))
    left, right = pairs[:2], pairs[2:-1]
    return [*[c.ljust(w) for c, w in left], *[c.rjust(w) for c, w in right], cells[-1]]
