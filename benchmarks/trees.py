"""Compare this tree with another, such as that of an earlier commit: ``python benchmarks/trees.py OTHER``.

For each program, funcgrad of this tree and of the other tree take turns on one core, each in a fresh interpreter, as
two libraries do in ``run.py``; fresh interpreters measure the peaks of memory too. On a machine with other work,
the shortest of many calls is the best measure, so minima are compared here, not medians.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import measuring
import run
import turns
from programs import Program

import funcgrad  # noqa: F401  (fails at once if there is no funcgrad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the root of the other tree")
    parser.add_argument("--quick", action="store_true", help="shorter programs and fewer rounds: a smoke test")
    parser.add_argument("--only", metavar="PATTERN", default="", help="programs in whose name this is found")
    parser.add_argument("--out", metavar="FILE", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    wanted = re.compile(options.only, re.IGNORECASE)
    found = []
    print(f"{'':62}{'time':>8}{'memory':>8}   (this tree in the other)")
    for name, program in measuring.find(options.quick).items():
        if wanted.search(name):
            found.append(compared(program, options.other.resolve(), options.quick))
            print_line(found[-1])
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(any(line["error"] for line in found))


def compared(program: Program, other: Path, quick: bool) -> dict[str, Any]:
    """Return times and peaks of both trees, and the ratios of this tree's to the other's."""
    trees = {"this": run.ROOT, "other": other}
    with tempfile.TemporaryDirectory() as folder:
        known = str(Path(folder) / "gradient")
        _, error = run.fresh(quick, "reference", program.name, known)
        words = run.command(quick, "serve", program.name, "funcgrad", known)
        try:
            with turns.started({which: of_tree(tree, words) for which, tree in trees.items()}, run.ENVIRONMENT) as both:
                us = {which: min(times) * 1e6 for which, times in turns.in_turn(both, quick).items()}
        except turns.EndedError as ended:
            return {"name": program.name, "us": {}, "megabytes": {}, "error": error or str(ended)}
    megabytes = {}
    if program.small is not None:
        for which, tree in trees.items():
            answer, error = run.fresh(quick, "memory", program.name, "funcgrad", before=of_tree(tree, []))
            megabytes[which] = answer["megabytes"] if answer else 0.0
    return {"name": program.name, "us": us, "megabytes": megabytes, "error": error}


def of_tree(tree: Path, words: list[str]) -> list[str]:
    """Return a command that imports funcgrad from ``tree``."""
    return ["env", f"PYTHONPATH={tree}", *words]


def print_line(found: dict[str, Any]) -> None:
    """Print a program's ratios of this tree to the other tree."""
    cells = [
        f"{values['this'] / max(values['other'], floor):8.2f}" if values and max(values.values()) > floor else " " * 8
        for values, floor in ((found["us"], 1e-3), (found["megabytes"], 1.0))
    ]
    print(f"{found['name']:62}{''.join(cells)}  {found['error']}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
