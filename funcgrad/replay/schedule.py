"""Where a long run keeps its states so that going through it backwards repeats the fewest steps.

With ``s`` states kept at a time, the first one included, and no step run more than ``r`` times on the
way to states, ``binomial(s + r, s)`` steps can be reversed and no more; both rules below reach that.

Sources:
    A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Transactions on Mathematical Software 26 (2000), for a
    known number of steps; Q. Wang, P. Moin, G. Iaccarino, Minimal repetition dynamic checkpointing algorithm for
    unsteady adjoint calculation, SIAM Journal on Scientific Computing 31 (2009), for an unknown one.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, inf

__all__ = ["Placement", "split", "states_for"]


@lru_cache(maxsize=4096)
def split(steps: int, states: int) -> int:
    """How far to go from a kept state before the next is kept.

    Args:
        steps: how many steps are to be reversed, at least 2.
        states: how many states may be kept, the one at hand included, at least 2.

    Example:
        >>> split(10, 3)
        4
    """
    repeats = 1
    while comb(states + repeats, states) < steps:
        repeats += 1
    return min(comb(states + repeats - 1, states), steps - comb(states + repeats - 2, states - 1))


def states_for(steps: int, repeats: int) -> int:
    """The fewest states, the first included, with which no step is repeated more than ``repeats`` times.

    Example:
        >>> states_for(10_000, 3)
        38
    """
    states = 1
    while comb(states + repeats, states) < steps:
        states += 1
    return states


class Placement:
    """Which states to keep while nobody knows how long the run will be.

    Args:
        budget: how many may be kept after the first.

    Example:
        >>> placement, kept = Placement(2), [0]
        >>> for i in range(1, 7):
        ...     given_up = placement.next()
        ...     if given_up is not None:
        ...         del kept[given_up]
        ...     kept.append(i)
        >>> kept
        [0, 3, 6]
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._ranks: list[float] = [inf]  # of the kept states, in their order

    def next(self) -> int | None:
        """The place of the kept state to give up for the one that comes now; None where there is room."""
        ranks = self._ranks
        if len(ranks) <= self._budget:
            ranks.append(0)
            return None
        highest = ranks[-1]
        for place in range(len(ranks) - 2, 0, -1):
            if ranks[place] < highest:  # one after it does its work
                del ranks[place]
                ranks.append(0)
                return place
            highest = max(highest, ranks[place])
        ranks[-1] += 1
        return len(ranks) - 1
