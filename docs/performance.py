"""Writes the figures into performance.md, between its two marks, from the JSON that ``make bench`` writes.

python docs/performance.py out/benchmarks.json   keeps that JSON as benchmarks/results.json, and writes the page from it
python docs/performance.py                       writes the page from benchmarks/results.json
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "benchmarks")]

from table import COLUMNS, duration, memory_ratio, number  # noqa: E402

PAGE = HERE / "performance.md"
RESULTS = HERE.parent / "benchmarks" / "results.json"
BEGIN, END = "<!-- written by docs/performance.py: begin -->", "<!-- written by docs/performance.py: end -->"
NAMES = {"torch": "PyTorch", "autograd": "HIPS autograd", "mygrad": "MyGrad"}
METHOD = """\
Each program is written for each library as a good user of it would write it, eagerly, and runs on one thread. funcgrad
and one other library, each in a fresh interpreter, take turns on one core, after the gradients of both have been
compared with what JAX computes in float64; the figures are medians of processor time. Where a machine does other things
at the same time, times grow and shrink with them, for both of a pair alike: only the ratios count. A ratio is
funcgrad's time divided by the other's: below 1 funcgrad is faster. The bound that the project sets itself follows in
brackets; a ratio above it is **bold**. "Gradient / value" is the gradient in evaluations of the function itself on
NumPy's arrays."""
MEMORY = """\
By how many megabytes the process grows at the most, in a fresh interpreter for each library, over what it holds after
its imports and a first tiny call. A few calls are made, or one where it takes seconds: what a library keeps from one
call for the next counts, and so does memory that it has freed in pieces nobody can use. Where both stay below 1 MB
there is no ratio."""
OWN = """\
What funcgrad is held to besides eager gradients: that costs grow as the work does, that memory is given back, what
checkpointing keeps, and what it hands to XLA to compile, against the same programs written by hand for JAX."""

Report = dict[str, Any]


def cell(peer: dict[str, Any] | None) -> str:
    """A ratio and the most it may be."""
    if peer is None:
        return ""
    ratio, bar = in_short(peer["ratio"]), peer["bar"]
    if bar is None:
        return ratio
    return f"**{ratio}** ({bar:g})" if peer["ratio"] > bar else f"{ratio} ({bar:g})"


def in_short(ratio: float) -> str:
    """Two decimals, of small ones three."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def rows(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    """A table."""
    head = list(head)
    rule = ["---"] * len(head)
    return [*("| " + " | ".join(line) + " |" for line in (head, rule, *lines)), ""]


def named(label: str) -> str:
    """What the page calls a library."""
    return NAMES.get(label, label)


def times(report: Report) -> list[str]:
    """The table of times and ratios."""
    of = [f"of {named(name)}" for name in COLUMNS]
    head = ["", "funcgrad", "µs per operation", "gradient / value", *of, "of others"]
    return rows(head, (line_of(program) for program in report["programs"]))


def line_of(program: dict[str, Any]) -> list[str]:
    """A program in that table."""
    peers = program["peers"]
    others = ", ".join(f"{cell(peer)} of {name}" for name, peer in peers.items() if name not in COLUMNS)
    figures = [duration(program["us"]), number(program["us_per_operation"]), number(program["gradient_per_value"])]
    return [program["name"], *figures, *(cell(peers.get(name)) for name in COLUMNS), others]


def memory(report: Report) -> list[str]:
    """The peaks, where they were measured."""
    programs = [program for program in report["programs"] if program["memory"]]
    head = ["", "funcgrad, MB"]
    for name in NAMES:
        head += [f"{named(name)}, MB", "ratio"]
    return rows(head, (memory_line(program) for program in programs))


def memory_line(program: dict[str, Any]) -> list[str]:
    """A program in the table of peaks."""
    found = program["memory"]
    line = [program["name"], f"{found['funcgrad']['megabytes']:.1f}"]
    for name in NAMES:
        line += [f"{found[name]['megabytes']:.1f}" if name in found else "", cell(memory_ratio(found, name))]
    return line


def own(report: Report) -> list[str]:
    """The claims that funcgrad makes of itself and of what it compiles."""
    lines, program = [], ""
    for claim in report["claims"]:
        part = claim["what"].startswith(" ")  # of the program above it
        program = program if part else claim["what"]
        figure, bar, unit = claim["figure"], claim["bar"], claim.get("unit", "")
        shown = "failed" if figure is None else f"{figure:.3g} {unit}".rstrip()
        shown = shown if claim["met"] else f"**{shown}**"
        limit = "" if bar is None else f"{bar:.3g} {unit}".rstrip()
        lines.append(
            [f"{program}: {claim['what'].strip()}" if part else program, claim["ours"], claim["against"], shown, limit]
        )
    return rows(["", "funcgrad", "against", "figure", "at most"], lines)


def standing(report: Report) -> list[str]:
    """Wins and losses in words, against each of the other tools."""
    lines = []
    for name in NAMES:
        finders = {
            "time": lambda program, name=name: program["peers"].get(name),
            "memory": lambda program, name=name: memory_ratio(program["memory"], name),
        }
        for kind, find in finders.items():
            lines += counted(report, f"In {kind}, against {named(name)}", find)
    return [*lines, ""]


def counted(report: Report, what: str, find: Callable[[dict[str, Any]], dict[str, Any] | None]) -> list[str]:
    """How often funcgrad needs less than the other, and where it needs more."""
    found = [(program["name"], peer["ratio"]) for program in report["programs"] if (peer := find(program))]
    if not found:
        return []
    lost = [f"{name} ({ratio:.2f})" for name, ratio in sorted(found, key=lambda line: -line[1]) if ratio > 1]
    text = f"- {what}: less in {len(found) - len(lost)} of {len(found)} programs"
    return [f"{text}, more in {'; '.join(lost)}." if lost else f"{text}."]


def figures(report: Report) -> str:
    """What stands between the marks."""
    setting = "; ".join(f"{key}: {value}" for key, value in report["setting"].items())
    text = [BEGIN, "", f"Measured by `make bench` ({setting}).", "", METHOD, ""]
    text += [*times(report), "### Wins and losses", "", *standing(report)]
    text += ["### Peak of memory", "", MEMORY, "", *memory(report)]
    text += ["### funcgrad against itself and against compiled JAX", "", OWN, "", *own(report), END]
    return "\n".join(text)


def page(text: str, report: Report) -> str:
    """The page ``text`` with the figures of ``report`` between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name}: the marks around the figures must both be there. Put back {BEGIN!r}, {END!r}.")
    return before + figures(report) + after


def main() -> None:
    """Write the page."""
    if len(sys.argv) > 1:
        source = Path(sys.argv[1])
        if json.loads(source.read_text())["quick"]:
            sys.exit(f"{source} is of a quick run, whose figures mean nothing: run make bench")
        shutil.copy(source, RESULTS)
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULTS.read_text())))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
