"""Comparison of a program's results with the function's: bits, types, dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.transforms.compiled.arguments import Form
from funcgrad.transforms.compiled.graphs import copy_with_layout
from funcgrad.transforms.compiled.source import differs

ndarray = np.ndarray
_DISTANCE = 0.03  # relative distance of nearby arguments
_SMALL, _TRIALS_IF_SMALL, _TRIALS_IF_LARGE = 1_000, 32, 3  # trials: a few numbers may be rounded alike by chance


def difference_message(found: Any, expected: Any, exact: bool = True) -> str:
    """Return how a result differs from the expected one, or ""; bit for bit if ``exact``, else up to rounding."""
    leaves, spec = tree.flatten(found)
    expected_leaves, expected_spec = tree.flatten(expected)
    if spec != expected_spec:
        return "its recorded result has another structure"
    for number, (x, y) in enumerate(zip(leaves, expected_leaves, strict=True)):
        if type(x) is not type(y):
            return f"result {number} is {type(y).__name__}, but {type(x).__name__} when recorded"
        if not _has_same_bits(x, y) and (exact or not _is_close(x, y)):
            return f"the recorded result {number} has different bits"
    return ""


def difference_message_nearby(fun: Callable[..., Any], run: Callable[[list[Any]], Any], form: Form) -> str:
    """Return how a program differs from the function for arguments near the recorded ones, or "".

    Args:
        fun: the function itself, which is run for these arguments.
        run: the program, a function of the list of inputs.
        form: the recorded arguments.
    """
    rng = np.random.default_rng(0)
    few = sum([np.size(x) for x in form.inputs]) < _SMALL
    for _ in range(_TRIALS_IF_SMALL if few else _TRIALS_IF_LARGE):
        inputs = [_value_nearby(x, rng) for x in form.inputs]
        try:
            found = run(inputs)
            args, kwargs = form.arguments_with(inputs)
            expected = fun(*args, **kwargs)
        except Exception:  # another path or an error there proves nothing
            continue
        if difference_message(found, expected):
            return "its program rounds differently than the function for other values"
    return ""


def _value_nearby(x: Any, rng: np.random.Generator) -> Any:
    """Return a value near ``x`` with the memory layout of ``x``."""
    if not backend.is_inexact(x):
        return x
    if type(x) is not ndarray:
        return type(x)(x * (1 + _DISTANCE * rng.uniform(-1, 1)))
    made = copy_with_layout(x)
    made *= 1 + _DISTANCE * rng.uniform(-1, 1, x.shape)
    return made


def _has_same_bits(x: Any, y: Any) -> bool:
    """Whether two leaves are equal bit for bit, where all NaNs count as equal."""
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


def _is_close(x: Any, y: Any) -> bool:
    """Whether two leaves are equal up to rounding."""
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0))
    return bool(np.allclose(x, y, rtol=0.0, atol=float(np.sqrt(np.finfo(y.dtype).eps)) * largest, equal_nan=True))
