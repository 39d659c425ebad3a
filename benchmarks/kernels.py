"""NumPy's own calls of a gradient and nothing else: what no library that computes by NumPy can do without.

The kernels that one run calls, forwards and backwards, are called again on the same values, one after the other.
Sums of cotangents that meet are left out, and so is all that finds out what to call: a little less than the floor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MOST", "kernels_of"]

#: Programs of more operations keep too many values at once.
MOST = 20_000
#: Numbers meet by Python's operators, which are faster than NumPy's functions.
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
}
NUMBERS = (float, np.float64, np.float32)


class Recorder:
    """Takes down which kernels are called with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []

    def run(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What ``core.through`` asks for."""
        kernel = primitive.kernel(np)
        if primitive.name in OPERATORS and all(type(a) in NUMBERS for a in args):
            kernel = OPERATORS[primitive.name]
        if primitive.name == "matmul" and all(np.ndim(a) <= 2 for a in args):
            kernel = np.dot  # the same product sooner
        self.calls.append((kernel, args, params))
        return primitive.compute(args, params)


def kernels_of(call: Callable[[], Any]) -> Callable[[], None]:
    """A function that calls the kernels of ``call``."""
    from funcgrad import blocks  # here: the other tree of trees.py may have none

    recorder = Recorder()
    with blocks.through(recorder):
        call()
    calls = recorder.calls

    def again() -> None:
        for kernel, args, params in calls:
            kernel(*args, **params)

    return again
