"""Timing of all benchmarks, and the claims about it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

__all__ = ["Claim", "check_equal", "interleave", "microseconds", "paired_ratio", "slower"]

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Claim:
    """One line of the table: a measured figure that must not exceed its bar.

    Args:
        what: the program that was measured.
        ours: funcgrad's result, in words.
        against: the result to compare with, in words.
        figure: the measured figure.
        bar: largest value allowed; None if the line is for information.
        unit: unit of ``figure`` and ``bar``; empty for a ratio.
    """

    what: str
    ours: str
    against: str
    figure: float
    bar: float | None
    unit: str = ""

    @property
    def met(self) -> bool:
        # A figure that is not a number is a failed measurement.
        return math.isfinite(self.figure) and (self.bar is None or self.figure <= self.bar)


def interleave(candidates: dict[str, Callable[[], Any]], rounds: int, repeat: int = 1, warm: bool = True) -> Times:
    """Return seconds per call of every candidate, called in turn (A B C, B C A, ...) so that a slow spell hits all.

    Times are processor times, so that other work of the machine counts as little as possible. With ``warm``, each
    candidate runs once untimed before. Garbage collection stays on, as in ordinary programs.
    """
    times: Times = {name: [] for name in candidates}
    order = list(candidates.items())
    for _, call in order if warm else []:
        call()
    for _ in range(rounds):
        for name, call in order:
            start = process_time()
            for _ in range(repeat):
                call()
            times[name].append((process_time() - start) / repeat)
        order.append(order.pop(0))  # no candidate always runs first after the same other one
    return times


def microseconds(times: Times, name: str, operations: int = 1) -> float:
    """Return the median time of ``name`` in microseconds per operation."""
    return statistics.median(times[name]) / operations * 1e6


def paired_ratio(times: Times, ours: str, theirs: str) -> float:
    """Return the median over the rounds of ``ours / theirs``, which resolves differences of a few per cent."""
    return statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))


def slower(what: str, per: str, ours: float, peer: str, theirs: float, bar: float | None) -> Claim:
    """Return the claim that ``ours`` is at most ``bar`` times ``theirs``, both in microseconds ``per`` something."""
    return Claim(what, f"{ours:.3g} us{per}", f"{peer} {theirs:.3g} us{per}", ours / theirs, bar)


def check_equal(reference: Any, others: dict[str, Any], tolerance: float = 1e-8) -> None:
    """Raise an error if a peer computes something else: a comparison of times would then mean nothing."""
    for name, other in others.items():
        pairs: Sequence[tuple[Any, Any]] = list(zip(_leaves(reference), _leaves(other), strict=True))
        for ours, theirs in pairs:
            a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
            scale = float(np.abs(a).max())
            assert a.shape == b.shape, f"{name}: shapes {a.shape} and {b.shape}"
            assert np.abs(a - b).max() <= tolerance * scale, f"{name}: another gradient"
            assert scale > 0, "a gradient of zeros tells nothing"


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in _leaves(value[key])]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [value]
