"""Compact notes about each step of a long run, to compare a repetition of the step with its first run.

Notes in tuples and arrays would take a gigabyte for a million steps. Evenly spaced numbers, such as those of
records, are stored as the first number and the spacing; the values of a state as one number for each dtype.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from threading import Lock
from typing import Any

import numpy as np

#: Number of elements of an array that are compared one by one.
_SAMPLE = 16
#: Weights of numbers in a sum; no two are equal, and none is small.
_WEIGHTS = 0.5 + np.arange(1, 65) * 0.6180339887498949 % 1.0
#: Number of first steps for which whole samples are stored, which takes less time.
_IN_FULL = 32


class StepNumbers:
    """For each step the numbers of its record and of the records of its results, and a hash of what it recorded.

    Consecutive steps with the same hash and evenly spaced numbers are one piece, which takes constant memory.

    Example:
        >>> found = StepNumbers()
        >>> for step in range(1000):
        ...     found.add(step, (-3 * step, -3 * step - 1), 7)
        >>> found.get(999), found.get(1000), found.pieces
        (((-2997, -2998), 7), None, 1)
    """

    __slots__ = ("_counted", "_ends", "_firsts", "_increments", "_irregular", "_kinds", "_known", "_lock", "_starts")

    def __init__(self) -> None:
        self._starts, self._ends = array("q"), array("q")  # the first step of a piece, and the last
        self._firsts = array("q")  # the first number in a piece
        self._increments = array("q")  # the increment per step
        self._kinds = array("q")  # the index in ``_counted`` of (numbers per step, operations_hash)
        self._counted: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}
        self._irregular: dict[int, tuple[tuple[int, ...], int]] = {}  # out of order, or another thread took a number
        self._lock = Lock()

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return len(self._starts)

    def add(self, step: int, numbers: tuple[int, ...], operations_hash: int) -> None:
        """Add the numbers and the hash of a step that has none yet."""
        first, count = numbers[0], len(numbers)
        with self._lock:
            last = self._ends[-1] if self._ends else -1
            if step <= last or numbers[-1] != first - count + 1:
                self._irregular[step] = numbers, operations_hash
                return
            kind = self._known.get((count, operations_hash))
            if kind is None:
                kind = self._known[count, operations_hash] = len(self._counted)
                self._counted.append((count, operations_hash))
            if step == last + 1 and last >= 0 and self._kinds[-1] == kind:
                start, rise = self._starts[-1], first - self._firsts[-1]
                if last == start:
                    self._increments[-1] = rise
                if rise == self._increments[-1] * (step - start):
                    self._ends[-1] = step
                    return
            self._firsts.append(first)
            self._increments.append(0)
            self._kinds.append(kind)
            self._ends.append(step)
            self._starts.append(step)  # last, because ``get`` reads without the lock and must find the rest

    def get(self, step: int) -> tuple[tuple[int, ...], int] | None:
        """Return the numbers and the hash of a step, or None."""
        piece = bisect_right(self._starts, step) - 1
        if piece < 0 or step > self._ends[piece] or step in self._irregular:
            return self._irregular.get(step)
        count, operations_hash = self._counted[self._kinds[piece]]
        first = self._firsts[piece] + self._increments[piece] * (step - self._starts[piece])
        return tuple(range(first, first - count, -1)), operations_hash


class Digests:
    """A few numbers for each step, which tell whether the values of a state are the same in a repetition.

    Values may differ by rounding, because kernels may sum in another order. Integers are not compared.

    Example:
        >>> digests = Digests()
        >>> [digests.agree(0, [np.arange(3.0) + more]) for more in (0.0, 1e-12, 1e-3)]
        [True, True, False]
    """

    __slots__ = ("_by_dtype", "_exact", "_samples")

    def __init__(self) -> None:
        self._exact = array("q")  # a hash of the samples of each step
        self._samples: list[list[Any]] = []  # the samples of the first steps; most runs have no others
        self._by_dtype: dict[Any, array[float]] = {}  # for later steps, by dtype: a number that rounding hardly changes

    def agree(self, step: int, leaves: list[Any]) -> bool:
        """Whether the NumPy arrays in ``leaves`` agree with those of the first call for this step, which notes them.

        First calls must come in the order of the steps. Arrays of other libraries are not compared.
        """
        samples = [_sample(leaf) for leaf in leaves]
        exact = hash(tuple([None if x is None else (x.tobytes(), x.dtype) for x in samples]))
        if step == len(self._exact):
            self._exact.append(exact)
            if step < _IN_FULL:
                self._samples.append(samples)
            else:
                self._note(step - _IN_FULL, _numbers(samples))
            return True
        return exact == self._exact[step] or self._is_close(step, _numbers(samples))

    def _note(self, row: int, numbers: dict[Any, float]) -> None:
        for dtype in numbers.keys() - self._by_dtype.keys():
            self._by_dtype[dtype] = array("d", [math.inf]) * row  # earlier steps had no array of this dtype
        for dtype, column in self._by_dtype.items():
            column.append(numbers.get(dtype, math.inf))

    def _is_close(self, step: int, now: dict[Any, float]) -> bool:
        if step < _IN_FULL:
            return are_close(_numbers(self._samples[step]), now)
        return are_close({dtype: column[step - _IN_FULL] for dtype, column in self._by_dtype.items()}, now)


def digest(arrays: list[Any]) -> dict[Any, float]:
    """Return by dtype a number that distinguishes arrays and that rounding hardly changes."""
    return _numbers([_sample(x) for x in arrays])


def are_close(before: dict[Any, float], now: dict[Any, float]) -> bool:
    """Whether two digests agree up to rounding.

    Example:
        >>> before = digest([np.ones(3)])
        >>> are_close(before, digest([np.ones(3) + 1e-12])), are_close(before, digest([np.zeros(3)]))
        (True, False)
    """
    return all(
        abs(now.get(dtype, math.inf) - before.get(dtype, math.inf)) <= 0.25 * math.sqrt(np.finfo(dtype).eps)
        for dtype in now.keys() | {dtype for dtype, number in before.items() if number < math.inf}
    )


def _sample(x: Any) -> Any:
    """Return a few elements of an array, and means of all elements; None for anything but arrays of floats."""
    if isinstance(x, (np.generic, float, complex)):
        x = np.asarray(x)
    if type(x) is np.ndarray and x.size and x.dtype.kind in "fc":
        few, flat = x.flat[:: -(-x.size // _SAMPLE)], x.reshape(-1)
        if x.size <= _SAMPLE or not np.isfinite(few).all():
            return few
        with np.errstate(all="ignore"):
            return np.append(few, [flat.mean(), flat[::2].mean(), np.abs(flat).mean()]).astype(x.dtype)
    return None


def _numbers(samples: list[Any]) -> dict[Any, float]:
    """Return by dtype one number for all samples."""
    found = {np.dtype(float): float(len(samples))}
    for index, few in enumerate(samples):
        if few is not None:
            found[few.dtype] = found.get(few.dtype, 0.0) + float(_WEIGHTS[index % 64]) * _number(few)
    return found


def _number(few: Any) -> float:
    """Reduce a sample to a number: the weighted sum over the largest number, plus the log of that, plus the length."""
    if few.dtype.kind == "c":
        few = np.concatenate([few.real, few.imag])
    few = few.astype(float)
    sizes = np.abs(few)
    largest = float(np.maximum.reduce(sizes)) or 1.0
    if not math.isfinite(largest):
        largest = float(sizes[np.isfinite(sizes)].max(initial=0.0)) or 1.0
        few = np.nan_to_num(few / largest, nan=3.0, posinf=5.0, neginf=-7.0) * largest
    return float((few / largest).dot(_WEIGHTS[: len(few)])) + math.log(largest) + len(few)
