"""Random arguments of public functions of NumPy and SciPy: ``python -m fuzz.arguments``, see docs/fuzzing.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.calls import FAMILIES, calls
from fuzz.demands import Outcome, judged
from fuzz.draws import Draw, draw
from fuzz.places import place_call

SECONDS = 20


def drawn(family: str, seed: int, number: int, only: str = "") -> tuple[Draw, np.random.Generator]:
    """Return the draw of a number; equal numbers give equal draws."""
    rng = np.random.default_rng([seed, number, zlib.crc32(family.encode())])
    if family == "indexing":
        return Draw(*place_call(rng)), rng
    choices = [call for call in calls(family) if not only or call.name.endswith(only)]
    return draw(choices[int(rng.integers(len(choices)))], rng), rng


def examined(made: Draw, rng: np.random.Generator) -> Outcome:
    """Return the outcome of a draw, in bounded time."""

    def late(*args: Any) -> None:
        raise TimeoutError(f"longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        return judged(made, rng)
    except TimeoutError as error:
        return Outcome(unfit=str(error))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def reported(options: argparse.Namespace, number: int) -> str:
    """Examine one draw, print what disagrees, and return the outcome in a word."""
    made, rng = drawn(options.family, options.seed, number, options.only)
    outcome = examined(made, rng)
    only = f" --only {options.only}" if options.only else ""
    how = f"--family {options.family} --seed {options.seed}{only} --start {number} -n 1"
    for kind, texts in (("", outcome.wrong), ("refused, ", outcome.refused if options.refusals else [])):
        for text in texts[:1]:
            print(f"{how}  # {made.text()}: {kind}{text}", flush=True)
    return outcome.kind


def kinds(options: argparse.Namespace, start: int, stop: int) -> Iterator[str]:
    """Return the outcome of each draw, run in another process, since some calls of SciPy end their process."""
    while start < stop:
        reading, writing = os.pipe()
        if not os.fork():
            with os.fdopen(writing, "w", buffering=1) as out:
                for number in range(start, stop):
                    out.write(reported(options, number) + "\n")
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            for line in lines:
                start += 1
                yield line.strip()
        os.wait()
        if start < stop:
            start += 1
            yield "the end of the process"


def main() -> int:
    """Run draws, print disagreements and a summary; return 1 if something disagreed."""
    parser = argparse.ArgumentParser(prog="fuzz.arguments", description="Random arguments of public functions.")
    parser.add_argument("-f", "--family", choices=FAMILIES, default="numpy")
    parser.add_argument("-n", "--count", type=int, default=1000, help="how many draws")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws others")
    parser.add_argument("--start", type=int, default=0, help="the first draw's number")
    parser.add_argument("--only", default="", help="functions whose name ends so")
    parser.add_argument("--refusals", action="store_true", help="print what funcgrad refuses, too")
    options = parser.parse_args()
    counts = Counter(kinds(options, options.start, options.start + options.count))
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
