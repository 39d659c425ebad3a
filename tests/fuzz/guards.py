"""Conditions under which a line of a random program is smooth: no kink, tie or branch point is near."""

from typing import Any

import numpy as np

__all__ = ["GUARDS", "guard_of"]

MARGIN = 0.03


def away(*xs: Any) -> bool:
    """Whether no number is near zero."""
    return all(bool(np.all(np.abs(x) > MARGIN)) for x in xs)


def away_from_integers(x: Any) -> bool:
    return bool(np.all(np.abs(x - np.round(x)) > MARGIN))


def below(x: Any, bound: float) -> bool:
    """Whether absolute values are well below a bound."""
    return bool(np.all(np.abs(x) < bound - MARGIN))


def distinct(x: Any) -> bool:
    """Whether all elements differ."""
    x = np.sort(np.ravel(x))
    return x.size < 2 or bool(np.all(np.abs(np.diff(x)) > MARGIN))


def off_cut(z: Any) -> bool:
    """Whether complex numbers are off the negative axis."""
    return bool(np.all((np.real(z) > MARGIN) | (np.abs(np.imag(z)) > MARGIN)))


def conditioned(a: Any) -> bool:
    """Whether matrices are far from singular."""
    s = np.linalg.svd(a, compute_uv=False)
    return bool(np.all(s[..., -1] > 0.1 * np.maximum(s[..., 0], 1))) if s.size else True


def spaced(a: Any) -> bool:
    """Whether singular values of matrices are different and not small."""
    s = np.linalg.svd(a, compute_uv=False)
    return bool(np.all(s > 0.1)) and bool(np.all(np.abs(np.diff(s)) > 0.1))


def apart(w: Any) -> bool:
    """Whether eigenvalues, in their order, are different."""
    return bool(np.all(np.abs(np.diff(w)) > 0.1))


def steps(x: Any, factor: float, bound: float, count: int) -> bool:
    """Whether the sum of squares falls below a bound in so many steps, and is never near the bound."""
    total = np.sum(x * x)
    sums = [total * factor ** (2 * n) for n in range(count + 1)]
    clear = all(abs(s - bound) > MARGIN * bound for s in sums)
    return clear and all(s > bound for s in sums[:-1]) and bool(sums[-1] <= bound)


#: Guards of lines, by the text with which a line begins.
BEGINNINGS = {
    "np.tri": "np.ndim({0}) >= 2",
    "np.vander": "np.all({0} != 0)",  # else JAX's derivatives are NaN
    "np.corrcoef": "np.ndim({0}) and {0}.shape[-1] > 2",  # the correlation of two points is 1 or -1
    "np.polyval": "np.shape({0})[:1] != (0,)",  # the shapes of JAX and NumPy differ then
    "np.polymul": "away(np.ravel({0})[:1], np.ravel({1})[:1])",  # JAX keeps leading zeros
}


def guard_of(text: str) -> str:
    """Return the guard of a line of a kind that needs a guard."""
    return next((guard for start, guard in BEGINNINGS.items() if text.startswith(start)), "")


GUARDS = {fun.__name__: fun for fun in (away, away_from_integers, below, distinct, off_cut, conditioned, spaced, apart)}
GUARDS["steps"] = steps
