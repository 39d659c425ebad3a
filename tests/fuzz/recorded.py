"""Random programs, run as written and recorded: both give the same bits, on inputs that take other branches too.

``python -m fuzz.recorded -n 1000 --seed 0`` checks many programs.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections import Counter
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import jit, tree
from funcgrad.errors import EagerWarning
from fuzz.generating import generate, library
from fuzz.helpers import each
from fuzz.programs import Program

__all__ = ["difference", "examine", "examine_inside", "same"]

#: Changes of a program's input, so that branches, masks and loops take other paths.
CHANGES = (
    lambda x: x,
    lambda x: x * 0.96875,
    lambda x: -x,
    lambda x: np.repeat(x[::-1], 2, axis=-1)[..., ::2] if np.ndim(x) else x * 2.0,  # with gaps in memory
    lambda x: x * 3.0 + 0.25,
)


def same(x: Any, y: Any) -> bool:
    """Whether two leaves have one type, shape, dtype, and equal bits; all NaN are equal."""
    if type(x) is not type(y):
        return False
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.tobytes() == y.tobytes():
        return True
    if x.dtype.kind not in "fc":
        return False
    x, y = [np.ascontiguousarray(z).reshape(-1).view(z.real.dtype) for z in (x, y)]
    nan = np.isnan(x)
    return bool((nan == np.isnan(y)).all()) and bool(x[~nan].tobytes() == y[~nan].tobytes())


def difference(found: Any, expected: Any) -> str:
    """Return where two results differ, or "" if they agree."""
    ours, spec = tree.flatten(found)
    theirs, like = tree.flatten(expected)
    if spec != like:
        return f"structure {spec}, expected {like}"
    for n, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if not same(x, y):
            return f"leaf {n}: {x!r}, expected {y!r}"
    return ""


def near(found: Any, expected: Any, scale: float = 0.0) -> bool:
    """Whether two results, of terms as large as ``scale``, agree but for the last bits."""
    pairs = zip(tree.leaves(found), tree.leaves(expected), strict=True)
    return all(
        type(x) is type(y) and np.shape(x) == np.shape(y) and _near(np.asarray(x), np.asarray(y), scale)
        for x, y in pairs
    )


def _near(x: np.ndarray, y: np.ndarray, scale: float) -> bool:
    if x.dtype != y.dtype or x.dtype.kind not in "fc":
        return same(x, y)
    largest = float(np.max(np.abs(y[np.isfinite(y)]), initial=scale))
    return bool(np.allclose(x, y, rtol=0.0, atol=1e4 * float(np.finfo(y.dtype).eps) * largest, equal_nan=True))


def outcome(fun: Any, x: Any) -> Any:
    """Return the result of a call, or the class of the error it raises."""
    try:
        return fun(x)
    except Exception as error:
        return type(error).__name__


def numbers(found: Any) -> Any:
    """Return a result in which arrays without axes are numbers."""
    return tree.map(lambda x: x[()] if isinstance(x, np.ndarray) and not x.ndim else x, found)


def copied(found: Any) -> Any:
    """Return a copy of a result."""
    return tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, found)


def examine(program: Program) -> tuple[str, str]:
    """Return a verdict ("agree", "not recorded", "rounds otherwise", "differs", "not repeatable") and details."""
    np_ = np if program.dispatch else fnp
    f = program.function()
    fun = program.stacked()(np_, library(), lambda x: f(np_, library(), x))
    points = [each(change, program.point) for change in CHANGES]
    with warnings.catch_warnings(record=True) as heard, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        expected = [outcome(fun, x) for x in points]
        fast = jit(fun, backend="numpy")
        kept = []
        for _ in range(2):
            for x, want in zip(points, expected, strict=True):
                got = outcome(fast, x)
                if off := difference(got, want):
                    if difference(outcome(fun, x), want):
                        return "not repeatable", ""
                    alike = not isinstance(got, str) and not isinstance(want, str) and near(got, want)
                    return "rounds otherwise" if alike else "differs", off
                kept.append((got, copied(got)))
        if any(difference(got, copy) for got, copy in kept):
            return "differs", "an earlier result has changed"
        if off := in_threads(fast, points, expected):
            if any(in_threads(fun, points, expected) for _ in range(50)):
                return "not repeatable", ""
            return "differs" if "other" not in off else "rounds otherwise", off
        said = [str(w.message) for w in heard if w.category is EagerWarning]
    return ("not recorded", said[0].partition("since ")[2].partition(". Results")[0]) if said else ("agree", "")


def examine_inside(program: Program) -> tuple[str, str]:
    """Check transforms around a recorded function: the order of sums may differ, nothing else."""
    np_ = np if program.dispatch else fnp
    f = program.function()
    fun = lambda x: f(np_, library(), x)
    fast = jit(fun, backend="numpy")
    points = [each(change, program.point) for change in CHANGES]
    with warnings.catch_warnings(record=True) as heard, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        for x in points * 2:
            # a value may be a NumPy number, or an array without axes
            want = numbers(outcome(program.stacked()(np_, library(), fun), x))
            got = numbers(outcome(program.stacked()(np_, library(), fast), x))
            if difference(got, want) and (isinstance(got, str) or isinstance(want, str) or not near(got, want, 1.0)):
                if difference(numbers(outcome(program.stacked()(np_, library(), fun), x)), want):
                    return "not repeatable", ""
                return "differs", difference(got, want)
        said = [str(w.message) for w in heard if w.category is EagerWarning]
    return ("not recorded", said[0].partition("since ")[2].partition(". Results")[0]) if said else ("agree", "")


def in_threads(fast: Any, points: list[Any], expected: list[Any]) -> str:
    """Check the function in two threads at once."""
    found: list[str] = []

    def work(order: int) -> None:
        with np.errstate(all="ignore"):
            for x, want in list(zip(points, expected, strict=True))[::order]:
                got = outcome(fast, x)
                if off := difference(got, want):
                    rounded = not isinstance(got, str) and not isinstance(want, str) and near(got, want)
                    found.append(f"in a thread, {'other bits ' if rounded else ''}{off}")

    threads = [threading.Thread(target=work, args=(order,)) for order in (1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[0] if found else ""


def main() -> int:
    """Check many programs and return 1 if something differs."""
    parser = argparse.ArgumentParser(prog="fuzz.recorded")
    parser.add_argument("-n", "--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help="transforms around what is recorded")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    for number in range(options.start, options.start + options.count):
        kind, details = (examine_inside if options.inside else examine)(generate(options.seed, number))
        kinds[kind if kind != "not recorded" else f"{kind}: {details}"] += 1
        if kind in ("differs", "rounds otherwise"):
            print(f"{kind}, program {number} of seed {options.seed}: {details[:300]}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:7d}  {kind}")
    return 1 if kinds["differs"] or kinds["rounds otherwise"] else 0


if __name__ == "__main__":
    sys.exit(main())
