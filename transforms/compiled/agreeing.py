"""Whether a program gives what the function gives: the same bits, types, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.transforms.compiled.arguments import Form
from funcgrad.transforms.compiled.graphs import copy_of
from funcgrad.transforms.compiled.source import differs

__all__ = ["disagreement", "disagreement_nearby"]

ndarray = np.ndarray
_NEARBY = 0.03  # how far other arguments are
_SMALL, _OF_SMALL, _OF_LARGE = 1_000, 32, 3  # so many are tried; of few numbers one may be rounded alike by chance


def disagreement(found: Any, expected: Any, exact: bool = True) -> str:
    """What is the matter with a result, nothing if it is the same: to the last bit, or nearly."""
    ours, spec = tree.flatten(found)
    theirs, like = tree.flatten(expected)
    if spec != like:
        return "its result has another structure when it is recorded"
    for number, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if type(x) is not type(y):
            return f"result {number} is {type(y).__name__} and {type(x).__name__} when it is recorded"
        if not _same(x, y) and (exact or not _near(x, y)):
            return f"result {number} has other bits when it is recorded"
    return ""


def disagreement_nearby(fun: Callable[..., Any], run: Callable[[list[Any]], Any], form: Form) -> str:
    """The same of a program for other arguments than those that it was recorded with.

    Args:
        fun: the function as it stands, which is run for them.
        run: the program, of inputs.
        form: the arguments.
    """
    rng = np.random.default_rng(0)
    few = sum([np.size(x) for x in form.inputs]) < _SMALL
    for _ in range(_OF_SMALL if few else _OF_LARGE):
        inputs = [_moved(x, rng) for x in form.inputs]
        try:
            found = run(inputs)
            args, kwargs = form.filled(inputs)
            expected = fun(*args, **kwargs)
        except Exception:  # it goes another way there, or cannot go there at all: that says nothing
            continue
        if disagreement(found, expected):
            return "its program rounds otherwise for other values than the function does"
    return ""


def _moved(x: Any, rng: np.random.Generator) -> Any:
    """A value near ``x``, which lies in memory as it does."""
    if not backend.is_inexact(x):
        return x
    if type(x) is not ndarray:
        return type(x)(x * (1 + _NEARBY * rng.uniform(-1, 1)))
    made = copy_of(x)
    made *= 1 + _NEARBY * rng.uniform(-1, 1, x.shape)
    return made


def _same(x: Any, y: Any) -> bool:
    """Whether two leaves are the same to the last bit; any NaN is a NaN."""
    if not backend.is_value(y):
        return bool(x is y or x == y)
    if not differs(x, y):
        return True
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    x, y = [np.ascontiguousarray(z).reshape(-1).view(z.real.dtype) for z in (x, y)]
    nan = np.isnan(x)
    return bool((nan == np.isnan(y)).all()) and bool(x[~nan].tobytes() == y[~nan].tobytes())


def _near(x: Any, y: Any) -> bool:
    """Whether two leaves are the same up to rounding."""
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0))
    return bool(np.allclose(x, y, rtol=0.0, atol=float(np.sqrt(np.finfo(y.dtype).eps)) * largest, equal_nan=True))
