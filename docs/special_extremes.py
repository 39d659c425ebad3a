"""Write the tests' ``special_extremes.json``: mpmath's derivatives of special functions at the ends of domains.

python docs/special_extremes.py [NAME ...]

Every function of ``special_references`` is differentiated in each real argument, once and twice, at 0, at tiny and huge
numbers and at infinity. The table has mpmath's result or says why a point is not tested. A run takes half an hour.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath as mp

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import special_references_more  # noqa: E402, F401  (it enters the other functions)
from special_references import ENTRIES, Entry  # noqa: E402

TABLE = HERE.parent / "tests" / "scipy" / "special" / "special_extremes.json"
EXTREMES = (0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 1e-10, -1e-10, 1e10, -1e10, 1e300, math.inf, -math.inf)
#: Orders of Bessel functions and degrees: whole, half and real ones.
ORDERS = (0.0, 0.5, 1.0, 2.0, 10.3, 100.5, 300.0, 700.0, -0.5, -1.0)
DEGREES = (0, 1, 2, 50, 700)
SIZES = (1e-10, 1.0, 50.0, 700.0)
#: Entries without rows, each with the entry whose rows are used instead.
SAME = {
    **dict.fromkeys(("jn", "jve", "jvp", "h1vp", "h2vp"), "jv"),
    **dict.fromkeys(("yve", "yvp"), "yv"),
    "ivp": "iv",
    "kvp": "kv",
    "psi": "digamma",
    "comb": "binom",
    **dict.fromkeys(("chdtr", "gdtr", "pdtrc"), "gammainc"),
    **dict.fromkeys(("chdtrc", "gdtrc"), "gammaincc"),
    **dict.fromkeys(("fdtrc", "bdtrc", "nbdtrc", "betaincc"), "betainc"),
    "elliprj": "elliprd",
    "eval_sh_jacobi": "eval_jacobi",
}
#: Entries without rows: far out, values are SciPy's series; ``special_accuracy`` gives their accuracy where usual.
#: ``radian`` is linear.
WITHOUT = {
    *("bei", "beip", "ber", "berp", "kei", "keip", "kelvin", "ker", "kerp"),
    *("itairy", "iti0k0", "itj0y0", "itmodstruve0", "itstruve0"),
    *("kolmogorov", "log_wright_bessel", "pbdv", "radian", "wright_bessel"),
}
#: Functions with an oscillating part, which mpmath's steps, as large as the argument, skip.
TURNING = {"ellipkinc", "ellipeinc"}
#: Seconds that one point may take.
PATIENCE = 2.0
STEPS = 25  # decimal digits of a step below the scale of the argument
AGREED = mp.mpf(10) ** -18

FAILURES = (ArithmeticError, ValueError, TypeError, NotImplementedError, RecursionError, mp.libmp.NoConvergence)


class UnknownError(Exception):
    """Reason why a point is not tested."""


def base_points(name: str, entry: Entry, i: int) -> list[tuple[Any, ...]]:
    """Return values of the other arguments while argument i goes to its ends."""
    grids = entry.grids
    of_order = len(grids) == 2 and grids[0][:2] == (0.0, 0.4)
    if of_order:
        return [(v, 0.0) for v in ORDERS] if i == 1 else [(0.0, x) for x in SIZES]
    if len(grids) == 2 and isinstance(grids[0][0], int) and len(grids[0]) > 1:
        top = {"eval": 50, "sph": 700}.get(name.split("_")[0], 700)
        least = min(grids[0])
        return [(n, 0.0) for n in DEGREES if least <= n <= top]
    middle = tuple(g[len(g) // 2] for g in grids)
    last = tuple(g[-1] for g in grids)
    return [middle] if len(grids) != 2 else [middle, last]


def points(name: str, entry: Entry) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Generate pairs of an argument's index, to differentiate in it, and a point."""
    for i, grid in enumerate(entry.grids):
        if not isinstance(grid[0], float):
            continue
        of_order = len(entry.grids) == 2 and entry.grids[0][:2] == (0.0, 0.4)
        for base in base_points(name, entry, i):
            values = (*EXTREMES, *ORDERS[1:]) if of_order and i == 0 else EXTREMES
            for x in dict.fromkeys(map(repr, values)):
                yield i, (*base[:i], float(x), *base[i + 1 :])


def results(entry: Entry, args: list[Any]) -> list[Any]:
    """Return the function's results as a list."""
    found = entry.reference(*args)
    return list(found) if isinstance(found, tuple) else [found]


def along(entry: Entry, point: tuple[Any, ...], i: int, x: Any, h: Any, digits: int) -> list[list[Any]]:
    """Compute the derivatives of order 0, 1, 2 and 3 of each result, by differences over five points."""
    with mp.workdps(digits):
        args = [mp.mpf(p) if isinstance(p, float) else p for p in point]
        values = []
        for k in (-2, -1, 0, 1, 2):
            args[i] = x + k * h
            values.append(results(entry, args))
        columns = zip(*values, strict=True)
        return [
            [c, (b2 - b1) / (2 * h), (b2 - 2 * c + b1) / h**2, (a2 - 2 * b2 + 2 * b1 - a1) / (2 * h**3)]
            for a1, b1, c, b2, a2 in columns
        ]


def derivatives(entry: Entry, point: tuple[Any, ...], i: int, x: Any) -> list[list[Any]]:
    """Compute the derivatives of order 0 to 3 at a finite x, of each result, from steps that agree."""
    size = abs(x)
    log = int(mp.floor(mp.log10(size))) if size else 0
    scales = [0] if not size else [0, log] if log < 0 else [log, 0, -log] if log else [0]
    failure: Exception = UnknownError("mpmath's differences do not converge")
    for scale in scales:
        apart = abs(log) if not scale else 2 * max(0, -log) + 40  # a term added to a constant may be this small
        digits = 60 + 3 * (STEPS + 3) + abs(log - scale) + apart
        try:
            first = along(entry, point, i, x, mp.mpf(10) ** (scale - STEPS), digits)
            second = along(entry, point, i, x, mp.mpf(10) ** (scale - STEPS - 3), digits)
        except FAILURES as e:
            failure = UnknownError(f"mpmath: {type(e).__name__}")
            continue
        if all(agree(a[n], b[n]) for a, b in zip(first, second, strict=True) for n in (0, 1, 2)):
            return first
    raise failure


def agree(a: Any, b: Any) -> bool:
    """Whether two numbers agree to 18 digits."""
    return bool(mp.isfinite(a) and mp.isfinite(b) and abs(a - b) <= AGREED * abs(a))


def from_one_side(entry: Entry, point: tuple[Any, ...], i: int, places: tuple[Any, Any]) -> list[list[Any]]:
    """Return limits of the derivatives, extrapolated from two places on the way."""
    near, nearer = (derivatives(entry, point, i, mp.mpf(x)) for x in places)
    return [[limit(a[n], b[n]) for n in range(3)] + [mp.mpf(0)] for a, b in zip(near, nearer, strict=True)]


def limit(a: Any, b: Any) -> Any:
    """Return the limit of a sequence that goes from a to b: 0, infinity, or a number."""
    if a == b == 0:
        return mp.mpf(0)
    if abs(a - b) <= mp.mpf(10) ** -12 * abs(b):
        return b
    if abs(b) <= abs(a) / 1000:
        return mp.mpf(0)
    if abs(b) >= abs(a) * 1000 and not mp.im(b) and mp.sign(a) == mp.sign(b):
        return mp.sign(b) * mp.inf
    return mp.nan


def at(entry: Entry, point: tuple[Any, ...], i: int) -> list[list[Any]]:
    """Return the derivatives at a point, as limits if the point is an end of the domain."""
    x = point[i]
    if math.isinf(x):
        sign = 1 if x > 0 else -1
        return from_one_side(entry, point, i, (sign * mp.mpf(10) ** 290, sign * mp.mpf(10) ** 300))
    if x:
        return derivatives(entry, point, i, mp.mpf(x))
    try:
        return derivatives(entry, point, i, mp.mpf(0))
    except UnknownError:
        return at_zero(entry, point, i)


def at_zero(entry: Entry, point: tuple[Any, ...], i: int) -> list[list[Any]]:
    """Return the limits at 0 from above if the domain ends there, or the limits from both sides if they agree."""
    places = mp.mpf(10) ** -200, mp.mpf(10) ** -300
    above = from_one_side(entry, point, i, places)
    try:
        below = from_one_side(entry, point, i, (-places[0], -places[1]))
    except (UnknownError, *FAILURES):
        return above
    for right, left in zip(above, below, strict=True):
        if any(mp.im(v) for v in left):
            continue
        if any(
            r != s and not abs(r - s) <= mp.mpf(10) ** -12 * abs(r) for r, s in zip(right[:3], left[:3], strict=True)
        ):
            raise UnknownError("0 is a kink or a pole")
    return above


def printed(x: Any) -> Any:
    """Format a number with 17 digits, from which a float is read; a complex number becomes two of them."""
    if isinstance(x, mp.mpc) and x.imag:
        return [printed(x.real), printed(x.imag)]
    x = mp.re(x)
    if mp.isnan(x):
        return "nan"
    if mp.isinf(x) or abs(x) > mp.mpf(2) ** 1024:  # a finite number that no float holds
        return ("" if mp.isinf(x) else "overflow ") + ("inf" if x > 0 else "-inf")
    return "0.0" if abs(x) < mp.mpf(2) ** -1076 else mp.nstr(x, 17)


def found_at(entry: Entry, i: int, point: tuple[Any, ...]) -> Any:
    """Return the derivatives of order 0 to 3 of each result, or the reason why there are none."""
    try:
        return [[printed(v) for v in column] for column in at(entry, point, i)]
    except UnknownError as e:
        return str(e)
    except FAILURES as e:
        return f"mpmath: {type(e).__name__}"


def in_time(entry: Entry, i: int, point: tuple[Any, ...]) -> Any:
    """Run ``found_at`` in a process of its own, since one product of huge integers may take for ever."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(found_at(entry, i, point)), daemon=True)
    process.start()
    found = here.recv() if here.poll(PATIENCE) else "mpmath takes too long"
    process.kill()
    process.join()
    return found


def rows(name: str) -> list[Any]:
    """Return the table's rows of one function: the argument, the point, the derivatives or why there are none."""
    entry, found = ENTRIES[name], []
    for i, point in points(name, entry):
        if name in TURNING and i == 0 and abs(point[0]) > 1e100:
            value: Any = "mpmath's steps skip half periods"
        else:
            value = in_time(entry, i, point)
        found.append([i, list(map(repr, point)), value])
    return found


if __name__ == "__main__":
    with warnings.catch_warnings(), mp.workdps(760):
        warnings.simplefilter("ignore")
        mp.gamma(mp.mpf(10) / 7)  # this caches coefficients that each process would compute again
    names = sys.argv[1:] or [name for name in sorted(ENTRIES) if name not in SAME and name not in WITHOUT]
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in names:
        print(name, flush=True)
        table[name] = rows(name)
    TABLE.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(table[n])}" for n in sorted(table)) + "\n}\n")
