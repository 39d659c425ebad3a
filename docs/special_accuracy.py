"""Write special_accuracy.md: the errors of special functions and their derivatives against mpmath.

python docs/special_accuracy.py
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import special_references_more  # noqa: E402, F401  (it enters the other functions)
from special_references import ENTRIES, UNMEASURED, Entry  # noqa: E402

import funcgrad.scipy.special as fsp  # noqa: E402
from funcgrad import jvp  # noqa: E402

PAGE = HERE / "special_accuracy.md"
EPS = 2.0**-52
DIGITS = 40
#: Number of ulps above which an error is measured against the condition of the problem.
PLAIN = 100.0


def parts(x: Any) -> list[Any]:
    """Return the results of a function as a list."""
    return list(x) if isinstance(x, tuple) else [x]


def points(entry: Entry) -> list[tuple[Any, ...]]:
    """Return all combinations of the grids."""
    return list(itertools.product(*entry.grids))


def live(point: Sequence[Any]) -> list[int]:
    """Return the indices of the arguments that have a derivative."""
    return [i for i, x in enumerate(point) if isinstance(x, float)]


def exact(reference: Callable[..., Any], point: Sequence[Any], order: tuple[int, ...]) -> list[Any]:
    """Compute the partial derivative of this order of each result, in high precision."""
    with mp.workdps(DIGITS):
        args = [mp.mpf(x) if isinstance(x, float) else x for x in point]
        moving = [i for i, n in enumerate(order) if n]
        if not moving:
            return parts(reference(*args))

        def component(j: int) -> Callable[..., Any]:
            def fun(*moved: Any) -> Any:
                full = list(args)
                for i, x in zip(moving, moved, strict=True):
                    full[i] = x
                return parts(reference(*full))[j]

            return fun

        count = len(parts(reference(*args)))
        where, orders = tuple(args[i] for i in moving), tuple(order[i] for i in moving)
        return [mp.diff(component(j), where, orders) for j in range(count)]


def condition(entry: Entry, point: Sequence[Any], order: tuple[int, ...]) -> list[float]:
    """Return how much each result changes when each argument changes by its own size, to first order."""
    total = [abs(v) for v in exact(entry.reference, point, order)]
    for i in live(point):
        more = tuple(n + (j == i) for j, n in enumerate(order))
        total = [t + abs(point[i] * d) for t, d in zip(total, exact(entry.reference, point, more), strict=True)]
    return total


def own(name: str, point: Sequence[Any], i: int | None) -> list[Any]:
    """Compute the value, or the derivative in argument i, with funcgrad."""
    fun = getattr(fsp, name)
    if i is None:
        return parts(fun(*point))
    return parts(jvp(lambda x: fun(*point[:i], x, *point[i + 1 :]), (point[i],), (1.0,))[1])


def error(name: str, point: Sequence[Any], i: int | None) -> tuple[float, bool]:
    """Return the error in ulps of the result, or of the condition, and whether it is relative to the condition."""
    entry = ENTRIES[name]
    order = tuple(int(j == i) for j in range(len(point)))
    got, want = own(name, point, i), exact(entry.reference, point, order)
    away = [
        abs(mp.mpmathify(complex(g) if np.iscomplexobj(g) else float(g)) - w) for g, w in zip(got, want, strict=True)
    ]
    ulps = [a / (abs(w) * EPS) if w else (math.inf if a else 0.0) for a, w in zip(away, want, strict=True)]
    if max(ulps) <= PLAIN:
        return float(max(ulps)), False
    scale, values = condition(entry, point, order), exact(entry.reference, point, (0,) * len(point))
    limited = [a / ((s or abs(v)) * EPS) if s or v else float(a) for a, s, v in zip(away, scale, values, strict=True)]
    return float(max(limited)), True


def worst(name: str, i: int | None) -> tuple[float, bool]:
    """Return the largest error over the grid."""
    found = (0.0, False)
    for point in points(ENTRIES[name]):
        if i is None or i in live(point):
            size, limited = error(name, point, i)
            if not size <= found[0]:
                found = (size, limited)
    return found


def shown(found: tuple[float, bool]) -> str:
    """Format a number of ulps, rounded up to two digits."""
    size, limited = found
    if not math.isfinite(size):
        return str(size)
    digits = 10 ** max(0, math.floor(math.log10(max(size, 1))) - 1)
    return f"{math.ceil(size / digits) * digits}{' c' if limited else ''}"


def line(name: str) -> str:
    """Return the table row of a function."""
    entry = ENTRIES[name]
    domain = ", ".join(f"{min(g):g} to {max(g):g}" if len(g) > 1 else f"{g[0]:g}" for g in entry.grids)
    slopes = ", ".join(shown(worst(name, i)) for i in live(points(entry)[0]))
    return f"| `{name}` | {domain} | {shown(worst(name, None))} | {slopes} |"


def page() -> str:
    """Return the text of the page."""
    names = [name for name in sorted(fsp.__all__) if name in ENTRIES]
    text = [
        "# Accuracy of special functions",
        "",
        "This page lists the largest errors of `funcgrad.scipy.special` against mpmath with 40 digits. Errors are",
        "measured on a grid over the domain, which the table gives for each argument; integers are constants.",
        "`docs/special_accuracy.py` writes the page. Errors are in ulps, units in the last place: 2.2e-16 of the",
        "result. If a result has an error of more than 100 ulps, the table shows the error relative to the condition",
        "of the problem, marked c. The condition is the change of the result when each argument changes by its own",
        "size; the error is divided by it because rounding an argument has that effect already. If the condition is",
        "0, the error is relative to the value. SciPy computes the values. The column of derivatives has the error of",
        "the first derivative with respect to each differentiable argument.",
        "`tests/scipy/special/test_special_extremes.py` tests values and two derivatives at 0, at tiny and huge",
        "numbers and at infinity, to 1e-10, and lists the exceptions with reasons; `docs/special_extremes.py` writes",
        "its table.",
        "",
        "| function | domain | value | derivatives |",
        "| --- | --- | --- | --- |",
        *[line(name) for name in names],
        "",
        "Not in the table:",
        "",
        *[f"- `{name}`: {why}" for name, why in sorted(UNMEASURED.items())],
        "",
    ]
    return "\n".join(text)


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        PAGE.write_text(page())
    print(f"wrote {PAGE}")
