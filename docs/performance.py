"""Write the figures into performance.md, between its two marks, from the JSON that ``make bench`` writes.

python docs/performance.py out/benchmarks.json   keeps that JSON as benchmarks/results.json, and writes the page from it
python docs/performance.py                       writes the page from benchmarks/results.json

Figures of ``make bench ONLY=...`` replace those of the same programs; the page says when these were measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "benchmarks")]

import measuring  # noqa: E402
from table import COLUMNS, duration, memory_ratio, number  # noqa: E402

PAGE = HERE / "performance.md"
RESULTS = HERE.parent / "benchmarks" / "results.json"
BEGIN, END = "<!-- written by docs/performance.py: begin -->", "<!-- written by docs/performance.py: end -->"
NAMES = {"torch": "PyTorch", "autograd": "HIPS autograd", "mygrad": "MyGrad"}
METHOD = """\
Each program is written for each library as a good user would write it, eagerly, and runs on one thread. First the
gradients of all libraries are compared with JAX's in float64. Then funcgrad and one other library, each in a fresh
interpreter, take turns on one core. The figures are medians of processor time. If a machine does other things at the
same time, the times of both libraries grow alike, so only the ratios count. A ratio is funcgrad's time divided by the
other library's: below 1, funcgrad is faster. The number in brackets is the bound that the project sets itself; a ratio
above its bound is **bold**. "Gradient / value" is the time of the gradient divided by the time of the function itself
on NumPy arrays."""
MEMORY = """\
The table shows the largest growth of the process in megabytes, in a fresh interpreter for each library, relative to
its size after the imports and a first tiny call. A program is called a few times, or once if a call takes seconds.
Memory that a library keeps from one call for the next counts, and so does freed memory in pieces too small to reuse.
There is no ratio if both libraries stay below 1 MB."""
OWN = """\
These bounds cover more than eager gradients: costs grow in proportion to the work, memory is released, and
checkpointing stores little. Programs that funcgrad compiles with XLA are compared with programs written by
hand for JAX."""

Report = dict[str, Any]


def cell(peer: dict[str, Any] | None) -> str:
    """Return a ratio and its upper bound, as a cell of a table."""
    if peer is None:
        return ""
    ratio, bar = in_short(peer["ratio"]), peer["bar"]
    if bar is None:
        return ratio
    return f"**{ratio}** ({bar:g})" if peer["ratio"] > bar else f"{ratio} ({bar:g})"


def in_short(ratio: float) -> str:
    """Format a ratio with two decimals, or with three below 0.1."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def rows(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    head = list(head)
    rule = ["---"] * len(head)
    return [*("| " + " | ".join(line) + " |" for line in (head, rule, *lines)), ""]


def named(label: str) -> str:
    """Return the name of a library as the page writes it."""
    return NAMES.get(label, label)


def times(report: Report) -> list[str]:
    """Return the table of times and ratios."""
    ratios = [f"ratio to {named(name)}" for name in COLUMNS]
    head = ["", "funcgrad", "µs per operation", "gradient / value", *ratios, "ratio to others"]
    return rows(head, (line_of(program) for program in report["programs"]))


def line_of(program: dict[str, Any]) -> list[str]:
    """Return the row of a program in the table of times."""
    peers = program["peers"]
    others = "; ".join(f"{name}: {cell(peer)}" for name, peer in peers.items() if name not in COLUMNS)
    figures = [duration(program["us"]), number(program["us_per_operation"]), number(program["gradient_per_value"])]
    return [program["name"], *figures, *(cell(peers.get(name)) for name in COLUMNS), others]


def memory(report: Report) -> list[str]:
    """Return the table of peaks of memory, with the programs for which they were measured."""
    programs = [program for program in report["programs"] if program["memory"]]
    head = ["", "funcgrad, MB"]
    for name in NAMES:
        head += [f"{named(name)}, MB", "ratio"]
    return rows(head, (memory_line(program) for program in programs))


def memory_line(program: dict[str, Any]) -> list[str]:
    """Return the row of a program in the table of peaks."""
    found = program["memory"]
    line = [program["name"], f"{found['funcgrad']['megabytes']:.1f}"]
    for name in NAMES:
        line += [f"{found[name]['megabytes']:.1f}" if name in found else "", cell(memory_ratio(found, name))]
    return line


def own(report: Report) -> list[str]:
    """Return the table of the claims that funcgrad makes about itself and about what it compiles."""
    lines, program = [], ""
    for claim in report["claims"]:
        part = claim["what"].startswith(" ")  # a figure of the program above
        program = program if part else claim["what"]
        figure, bar, unit = claim["figure"], claim["bar"], claim.get("unit", "")
        shown = "failed" if figure is None else f"{figure:.3g} {unit}".rstrip()
        shown = shown if claim["met"] else f"**{shown}**"
        limit = "" if bar is None else f"{bar:.3g} {unit}".rstrip()
        lines.append(
            [f"{program}: {claim['what'].strip()}" if part else program, claim["ours"], claim["against"], shown, limit]
        )
    return rows(["", "funcgrad", "compared with", "figure", "at most"], lines)


def standing(report: Report) -> list[str]:
    """Describe the wins and losses in words, one line for each library and quantity."""
    lines = []
    for name in NAMES:
        finders = {
            "Time": lambda program, name=name: program["peers"].get(name),
            "Memory": lambda program, name=name: memory_ratio(program["memory"], name),
        }
        for kind, find in finders.items():
            lines += counted(report, f"{kind}, compared with {named(name)}", find)
    return [*lines, ""]


def counted(report: Report, what: str, find: Callable[[dict[str, Any]], dict[str, Any] | None]) -> list[str]:
    """Count the programs in which funcgrad needs less than the other library, and list those in which it needs more."""
    found = [(program["name"], peer["ratio"]) for program in report["programs"] if (peer := find(program))]
    if not found:
        return []
    lost = [f"{name} ({ratio:.2f})" for name, ratio in sorted(found, key=lambda line: -line[1]) if ratio > 1]
    text = f"- {what}: funcgrad needs less in {len(found) - len(lost)} of {len(found)} programs"
    return [f"{text}, more in {'; '.join(lost)}." if lost else f"{text}."]


def figures(report: Report) -> str:
    """Return the text between the marks."""
    setting = "; ".join(f"{key}: {value}" for key, value in report["setting"].items())
    text = [BEGIN, "", f"Measured by `make bench` ({setting}).", "", *measured_later(report), METHOD, ""]
    text += [*times(report), "### Wins and losses", "", *standing(report)]
    text += ["### Peak of memory", "", MEMORY, "", *memory(report)]
    text += ["### funcgrad against itself and against compiled JAX", "", OWN, "", *own(report), END]
    return "\n".join(text)


def merged(kept: Report, new: Report) -> Report:
    """Return the report ``kept`` with the programs that ``new`` measured again, or first, and when it did."""
    when = f"{new['setting']['date']}, {new['setting']['funcgrad']}"
    measured = {program["name"]: {**program, "measured": when} for program in new["programs"]}
    programs = {program["name"]: program for program in kept["programs"]} | measured
    return {**kept, "programs": [programs[name] for name in measuring.find(quick=False) if name in programs]}


def measured_later(report: Report) -> list[str]:
    """Say which programs were measured later than the others."""
    when: dict[str, list[str]] = {}
    for program in report["programs"]:
        if "measured" in program:
            when.setdefault(program["measured"], []).append(program["name"])
    return [f"Measured later ({setting}): {'; '.join(names)}.\n" for setting, names in when.items()]


def page(text: str, report: Report) -> str:
    """Return the page ``text`` with the figures of ``report`` between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name}: the marks around the figures must both be there. Put back {BEGIN!r}, {END!r}.")
    return before + figures(report) + after


def main() -> None:
    """Write the page."""
    if len(sys.argv) > 1:
        source = Path(sys.argv[1])
        report = json.loads(source.read_text())
        if report["quick"]:
            sys.exit(f"{source} is of a quick run, whose figures mean nothing: run make bench")
        if report.get("only"):
            report = merged(json.loads(RESULTS.read_text()), report)
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULTS.read_text())))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
