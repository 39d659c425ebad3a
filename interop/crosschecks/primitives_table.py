"""Table of all public functions: the differences between funcgrad and JAX for each kind of derivative."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from funcgrad.errors import InputError
from funcgrad.interop.crosschecks.blame import blame_search
from funcgrad.interop.crosschecks.checking import comparison_settings, find_blames
from funcgrad.interop.crosschecks.comparing import KINDS, Comparison, random_directions
from funcgrad.interop.crosschecks.judging import Judge
from funcgrad.interop.crosschecks.report import Blame, Row, plain_number
from funcgrad.interop.crosschecks.samples import Sample, samples
from funcgrad.optional import import_jax
from funcgrad.transforms.checking import Problem

#: Names of the columns.
COLUMNS = dict(zip(KINDS, ("value", "VJP", "JVP", "2nd order", "vmap", "jit", "float32"), strict=True))
_EPS = {kind: float(np.finfo(np.float32 if kind == "float32" else np.float64).eps) for kind in KINDS}


class Cell(NamedTuple):
    """One quantity of one function.

    Attributes:
        ulps: the largest error, in units of the last place of the largest entry: of funcgrad against JAX, or
            against the referee if there is no result of JAX; nan if nothing was compared.
        ok: whether funcgrad passes.
        verdict: the worst verdict of the leaves.
    """

    ulps: float
    ok: bool
    verdict: str


@dataclass(frozen=True)
class Line:
    """One function.

    Attributes:
        name: its name below ``funcgrad.numpy``.
        cells: cells by kind.
        seconds: time that the checks took.
        notes: known divergences of JAX that the function ran into.
        blames: where differences begin.
        error: the error that a call raised, as text.
    """

    name: str
    cells: dict[str, Cell]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    blames: tuple[Blame, ...] = ()
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether every cell passes."""
        return not self.error and all(cell.ok for cell in self.cells.values())


@dataclass(frozen=True)
class Table:
    """All functions.

    Attributes:
        kinds: kinds of the columns.
        lines: lines of the functions that were checked.
        total: number of functions to check.
        about: device and versions.
    """

    kinds: tuple[str, ...]
    total: int
    about: dict[str, str]
    lines: list[Line] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every line passes."""
        return all(line.ok for line in self.lines)

    @property
    def verdict(self) -> str:
        """One line that sums up the table."""
        failed = [line.name for line in self.lines if not line.ok]
        missing = self.total - len(self.lines)
        told = f"FAILED in {len(failed)} of" if failed else "OK:"
        end = f": {', '.join(failed)}" if failed else " agree"
        rest = f" {missing} were not checked." if missing else ""
        return f"{told} {len(self.lines)} functions{end}.{rest}"

    def as_json(self) -> dict[str, Any]:
        """Return the table as data that ``json`` can write."""
        return {
            "about": self.about,
            "ok": self.ok,
            "checked": len(self.lines),
            "total": self.total,
            "functions": [_line_as_json(line) for line in self.lines],
        }


def _line_as_json(line: Line) -> dict[str, Any]:
    cells = {
        COLUMNS[kind]: {"ulps": plain_number(cell.ulps), "ok": cell.ok, "verdict": cell.verdict}
        for kind, cell in line.cells.items()
    }
    told = {"notes": list(line.notes), "blames": [str(b) for b in line.blames], "error": line.error}
    return {"name": line.name, "ok": line.ok, "seconds": round(line.seconds, 3), "quantities": cells, **told}


def check_primitives(
    only: Collection[str] = (),
    *,
    kinds: Collection[str] = KINDS,
    device: Any = None,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    seed: int = 0,
    before: Callable[[str, int, int], None] | None = None,
    after: Callable[[Line], None] | None = None,
) -> Table:
    """Check the public functions of ``funcgrad.numpy``, each at a point of its domain.

    JAX differentiates each function by its own rules, on ``device``, in one compiled program; the referee of
    measures numerically. An interrupt (Ctrl-C) ends the check; the table then holds the functions checked so far.

    Args:
        only: names such as "sum" or "linalg.inv"; "linalg" includes every function below it. No names: all functions.
        kinds: some of "value", "reverse", "forward", "second", "vmap", "jit", "float32".
        device: where JAX runs.
        rtol: the relative tolerance, as for ``crosscheck``.
        atol: the absolute tolerance.
        seed: seed of directions and cotangents.
        before: called before each function with its name, its index and the number of functions.
        after: called after each function with its line.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        InputError: no function has one of the names (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.crosschecks.primitives_table import check_primitives
        >>> table = check_primitives(["tanh"], kinds=["value", "reverse"])
        >>> table.verdict
        'OK: 1 functions agree.'
    """
    jax = import_jax("check_primitives")
    chosen = _chosen(only)
    names = list(dict.fromkeys(sample.name for sample in chosen))
    ordered = tuple(kind for kind in KINDS if kind in kinds)
    with comparison_settings(jax, device, "check_primitives"):
        table = Table(ordered, len(names), _about(jax))
        try:
            for place, name in enumerate(names):
                if before is not None:
                    before(name, place, len(names))
                calls = [sample for sample in chosen if sample.name == name]
                table.lines.append(_line(jax, name, calls, ordered, Judge(rtol, atol, False), seed))
                if after is not None:
                    after(table.lines[-1])
        except KeyboardInterrupt:
            pass
    return table


def _chosen(only: Collection[str]) -> list[Sample]:
    every = samples()
    for name in only:
        if not any(_under(sample.name, name) for sample in every):
            raise InputError(
                f"check_primitives: there is no such function in the table, got {name!r}. Give names such as 'sum' or "
                "'linalg.inv', or 'linalg' for all below it."
            )
    return [s for s in every if not only or any(_under(s.name, name) for name in only)]


def _under(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _about(jax: Any) -> dict[str, str]:
    device = jax.numpy.zeros(()).devices().pop()
    return {
        "device": f"{device.platform} ({device.device_kind})",
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _line(jax: Any, name: str, calls: Sequence[Sample], kinds: tuple[str, ...], judge: Judge, seed: int) -> Line:
    start, error = perf_counter(), ""
    rows: dict[str, list[Row]] = {}
    notes: dict[str, None] = {}
    blames: dict[Blame, None] = {}
    for sample in calls:
        try:
            with np.errstate(all="ignore"):
                found, met, blamed = _checked(jax, sample, kinds, judge, seed)
        except Exception as failed:  # one function that fails must not hide the others
            error = error or f"{type(failed).__name__}: {failed}"
            continue
        for kind in kinds:
            rows.setdefault(kind, []).extend(found[kind])
        notes.update(dict.fromkeys(met))
        blames.update(dict.fromkeys(blamed))
    cells = {kind: _cell(kind, every) for kind, every in rows.items()}
    return Line(name, cells, perf_counter() - start, tuple(notes), tuple(blames), error)


def _checked(
    jax: Any, sample: Sample, kinds: tuple[str, ...], judge: Judge, seed: int
) -> tuple[dict[str, list[Row]], Sequence[str], Sequence[Blame]]:
    """Return the rows of one call by kind; if they disagree, also known divergences and the blames."""
    problem = Problem(sample.fun, sample.args, sample.kwargs, call="check_primitives")
    rng = np.random.default_rng(seed)
    directions = random_directions(rng, problem)
    comparison = Comparison(jax, problem, directions, kinds, rng, jitted=False)
    rows = {kind: comparison.rows(kind, judge) for kind in kinds}
    if all(row.ok for found in rows.values() for row in found):
        return rows, (), ()
    notes = blame_search(jax, problem, directions, judge)("value", True).run.known_divergences()
    judge = judge._replace(has_known_divergence=bool(notes))
    rows = {kind: comparison.rows(kind, judge) for kind in kinds}
    return rows, notes, find_blames(jax, problem, comparison, rows, judge, by_halving=True)


def _cell(kind: str, rows: list[Row]) -> Cell:
    """Return the cell that sums up some rows, with the worst verdict."""
    errors = [row.funcgrad_jax if row.funcgrad_jax == row.funcgrad_jax else row.funcgrad_referee for row in rows]
    ulps = max((error / _EPS[kind] for error in errors if error == error), default=float("nan"))
    worst = min(rows, key=lambda row: (row.ok, row.verdict == "agree"))
    return Cell(ulps, all(row.ok for row in rows), worst.verdict)
