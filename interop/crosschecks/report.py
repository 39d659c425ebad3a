"""Result of a cross-check: rows of errors and verdicts, as text and as HTML."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from funcgrad.errors import CrossCheckError
from funcgrad.graph import PipelineStage, Source

ALONE = "{} stands alone"
_HEAD = ("quantity", "of", "funcgrad – JAX", "funcgrad – referee", "JAX – referee", "referee ±", "verdict")


#: Referees of the quantities that are not compared with numerical derivatives.
_REFEREES = {"vmap": "a loop", "jit": "the run without compiling", "float32": "double precision"}


_HIDDEN = (
    "no operation of the graph differs, so the cause is outside of the graph: a value cut off (no_grad, float(x), "
    "np.asarray), state, random numbers, or another branch taken for JAX arrays"
)


class Row(NamedTuple):
    """One quantity, compared three ways. Errors are relative; nan means that there is nothing to compare.

    Attributes:
        what: "value", "gradient", "vjp", "jvp" or "hvp"; "vmap", "jit" or "float32" in front of the name means in a
            batch, compiled, or in single precision.
        path: the argument or result, as Python would write it.
        funcgrad_jax: the largest error of funcgrad against JAX.
        funcgrad_referee: the largest error of funcgrad against the referee.
        jax_referee: the largest error of JAX against the referee.
        referee_error: the referee's estimate of its own error.
        verdict: "agree", "funcgrad stands alone", "JAX stands alone", "referee stands alone", "all differ",
            "funcgrad and JAX differ" or "not compared", with an explanation after a comma.
        ok: whether the row passes.
    """

    what: str
    path: str
    funcgrad_jax: float
    funcgrad_referee: float
    jax_referee: float
    referee_error: float
    verdict: str
    ok: bool


def without_numbers(what: str, path: str, verdict: str, ok: bool) -> Row:
    """Return the row of a quantity that was not compared."""
    nan = float("nan")
    return Row(what, path, nan, nan, nan, nan, verdict, ok)


class Blame(NamedTuple):
    """Operation with which a difference begins.

    Attributes:
        what: the quantity that differs, as in a ``Row``.
        operation: the operation's name; None if the difference begins at no operation in the function's graph.
        source: the user's line that called the operation.
        stage: the pipeline stage of the operation.
        row: the operation by itself, compared as the function was.
        inside: for a wrong second derivative, the operation inside the rule with which the difference begins.
        together: number of operations that differ only together; ``operation`` is the worst of them.
        why: reason why ``operation`` is None, if there is one other than that none differs.
    """

    what: str
    operation: str | None
    source: Source | None
    stage: PipelineStage | None
    row: Row | None
    inside: Blame | None = None
    together: int = 1
    why: str = ""

    def __str__(self) -> str:
        if self.operation is None or self.row is None:
            return f"{self.what}: {self.why or _HIDDEN}"
        line = "" if self.source is None else f" at {self.source.path}:{self.source.line}"
        text = "" if self.source is None or not self.source.text else f" `{self.source.text}`"
        stage = "" if self.stage is None else f", stage {self.stage} of the pipeline"
        error = (
            self.row.funcgrad_referee if self.row.funcgrad_jax <= self.row.funcgrad_referee else self.row.funcgrad_jax
        )
        off = f", off by {error:.1e}" if error == error else ""
        alone = "" if self.together == 1 else f" (the worst of {self.together} that differ together, none alone)"
        inside = "" if self.inside is None else f"; in its rule {str(self.inside).removeprefix('jvp: ')}"
        return f"{self.what}: {self.operation}{line}{text}{stage}: {self.row.verdict}{off}{alone}{inside}"


def first_to_differ(blames: tuple[Blame, ...]) -> list[str]:
    """Return sentences that say where differences begin, one for each operation."""
    begins: dict[str, list[str]] = {}
    for blame in blames:
        begins.setdefault(str(blame).removeprefix(f"{blame.what}: "), []).append(blame.what)
    return [f"First to differ, {' and '.join(whats)}: {where}." for where, whats in begins.items()]


@dataclass(frozen=True)
class CrossCheck:
    """Report of a cross-check. It is true if no result of funcgrad is wrong; ``str`` returns a table.

    Attributes:
        name: name of the function that was checked.
        rows: one row for each quantity and leaf.
        rtol: the relative tolerance.
        methods: how the referee measured.
        notes: known divergences of JAX that the function ran into.
        blames: for each quantity that differs, the operation with which the difference begins.
        met_at: the user's line for each of ``notes``.
    """

    name: str
    rows: tuple[Row, ...]
    rtol: float
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    blames: tuple[Blame, ...] = ()
    met_at: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every row passes."""
        return all(row.ok for row in self.rows)

    def __bool__(self) -> bool:
        return self.ok

    def raise_if_failed(self) -> CrossCheck:
        """Return the report itself if every row passes.

        Raises:
            CrossCheckError: a row fails (an ``AssertionError``); the message is the report.
        """
        if not self.ok:
            raise CrossCheckError(str(self))
        return self

    @property
    def verdict(self) -> str:
        """Last line of the report."""
        failed = Counter(row.verdict for row in self.rows if not row.ok)
        count = f"{len(self.rows)} quantities"
        if failed:
            named = ", ".join(f"{verdict} ({times})" for verdict, times in failed.items())
            return f"FAILED in {failed.total()} of {count}: {named}."
        remarks = sum(row.verdict != "agree" for row in self.rows)
        said = f", {remarks} with a remark" if remarks else ""
        return f"OK: {count} agree to {self.rtol:.0e}{said}."

    def __str__(self) -> str:
        cells = cells_of(self)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        marks = ["  ", *["  " if row.ok else "✗ " for row in self.rows]]
        lines = [mark + "  ".join(_aligned(row, widths)).rstrip() for mark, row in zip(marks, cells, strict=True)]
        lines.insert(1, "  " + "  ".join("─" * width for width in widths))
        return "\n".join([f"Cross-check of {self.name}", "", *lines, "", *self.remarks(), self.verdict])

    def __repr__(self) -> str:
        return f"<CrossCheck of {self.name}: {self.verdict}>"

    def as_json(self) -> dict[str, Any]:
        """Return the report as data that ``json`` can write."""
        return {
            "function": self.name,
            "ok": self.ok,
            "verdict": self.verdict,
            "rtol": self.rtol,
            "rows": [{name: plain_number(value) for name, value in row._asdict().items()} for row in self.rows],
            "notes": list(self.notes),
            "met_at": list(self.met_at),
            "blames": [str(blame) for blame in self.blames],
        }

    def remarks(self) -> list[str]:
        """Return the remarks that follow the rows."""
        methods = [f"The referee: {', '.join(self.methods)}."] if self.methods else []
        others = {word: says for word, says in _REFEREES.items() if any(row.what.startswith(word) for row in self.rows)}
        if others:
            methods.append(f"For {', '.join(f'{word} it is {says}' for word, says in others.items())}.")
        lines = [f" Met {line}." if line else "" for line in self.met_at] or [""] * len(self.notes)
        notes = [f"Known divergence: {note}{line}" for note, line in zip(self.notes, lines, strict=True)]
        return [*methods, *notes, *first_to_differ(self.blames)]

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...], style: str = "") -> str:
            return f"<tr{style}>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        marked = ' style="color: #b00020; font-weight: bold"'
        body = "".join(line("td", _cells(row), "" if row.ok else marked) for row in self.rows)
        remarks = "".join(f"<p>{html.escape(text)}</p>" for text in (*self.remarks(), self.verdict))
        title = f"<caption>Cross-check of {html.escape(self.name)}</caption>"
        return f"<table>{title}<thead>{line('th', _HEAD)}</thead><tbody>{body}</tbody></table>{remarks}"


def plain_number(value: Any) -> Any:
    """Return ``value`` as JSON can represent it: None for nan, a text for infinity."""
    if type(value) is not float:
        return value
    return None if value != value else value if abs(value) != float("inf") else "inf"


def cells_of(report: CrossCheck) -> list[tuple[str, ...]]:
    """Return the texts of a table of the rows, with the head first."""
    return [_HEAD, *[_cells(row) for row in report.rows]]


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
