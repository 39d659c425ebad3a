"""A function of a few arrays that is called very often, as straight NumPy code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.transforms.compiled.agreeing import disagreement
from funcgrad.transforms.compiled.capture import capture
from funcgrad.transforms.compiled.copies import copy_of
from funcgrad.transforms.compiled.source import generate

__all__ = ["straight"]


def straight(fun: Callable[..., Any], inputs: Sequence[Any]) -> Callable[..., Any] | None:
    """``fun`` as a program for plain arrays in the form of ``inputs``; None where it cannot be written down.

    Unlike that of ``jit`` the program looks at nothing: each call must have arrays of the same shapes, dtypes and
    strides, and take the same way. What ``fun`` closes over is taken as it is now. It keeps memory between calls, so it
    is for one thread at a time.

    Args:
        fun: a function of arrays to one array, which the program must give to the last bits for ``inputs``.
        inputs: what it is recorded with.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> double = straight(lambda x, y: fnp.sin(x) + 2.0 * y, [np.zeros(2), np.ones(2)])
        >>> double(np.zeros(2), np.full(2, 3.0))
        array([6., 6.])
    """
    copies: dict[int, Any] = {}

    def held(x: Any) -> Any:
        known = copies.get(id(x))
        if known is None:
            known = copies[id(x)] = (x, copy_of(x))  # the first keeps its number from being used again
        return known[1]

    expected = fun(*inputs)
    try:
        with np.errstate(all="ignore"):
            graph, spec = capture(fun, lambda values: (values, {}), inputs, held, lambda x: False, ())
            program = generate(graph, [f"x{i}" for i in range(len(inputs))], [expected], False)
            slots = program.allocate()
            found = program.run(*inputs, slots)
    except Exception:  # what a function does when it is recorded is not known
        return None
    if spec != tree.structure(expected) or disagreement(found[0], expected, False):
        return None
    run = program.run
    return lambda *values: run(*values, slots)[0]
