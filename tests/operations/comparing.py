"""Comparisons of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FLOAT0 = np.dtype([("float0", "V")])


def assert_close(got: Any, want: Any, tolerance: float, what: str) -> None:
    """Check that ``got`` equals ``want`` to ``tolerance``, relative to the largest number in ``want``."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if got.dtype == FLOAT0 or want.dtype == FLOAT0:
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
        return
    if (got == want).all():  # the most frequent case; the rest takes ten times as long
        return
    unlike = np.isnan(got) != np.isnan(want)
    assert not unlike.any(), f"{what}: not a number in different places\ngot  {got}\nwant {want}"
    number = ~np.isnan(want) & (got != want)  # equal infinities are equal
    error = np.abs(np.where(number, got, 0).astype(complex) - np.where(number, want, 0))
    finite = np.abs(want[np.isfinite(want)])
    scale = max(0.01, finite.max(initial=0.0))
    worst = error.max(initial=0.0)
    assert worst <= tolerance * scale, (
        f"{what}: off by {worst:.2e}, allowed {tolerance * scale:.2e}\ngot  {got}\nwant {want}"
    )


def assert_all_close(got: Sequence[Any], want: Sequence[Any], tolerance: float, what: str) -> None:
    """Call ``assert_close`` for each pair."""
    assert len(got) == len(want), f"{what}: {len(got)} results, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_close(g, w, tolerance, f"{what} {i}" if len(want) > 1 else what)


def inner(a: Sequence[Any], b: Sequence[Any]) -> tuple[float, float]:
    """Return the real part of the bilinear product of two lists of arrays, and the sum of its terms' sizes."""
    products = [np.asarray(p) * q for p, q in zip(a, b, strict=True)]
    return (
        float(sum(p.real.sum(dtype=np.float64) for p in products)),
        float(sum(np.abs(p).sum(dtype=np.float64) for p in products)),
    )


def assert_transposed(cts: Any, pushed: Any, pulled: Any, tangents: Any, what: str, tolerance: float) -> None:
    """Check that ``<ct, J t> == <J^T ct, t>``, so both modes have the same derivative."""
    left, left_size = inner(cts, pushed)
    right, right_size = inner(pulled, tangents)
    allowed = tolerance * max(0.01, left_size, right_size)
    assert abs(left - right) <= allowed, (
        f"{what}: <ct, J t> = {left!r}, <J^T ct, t> = {right!r}, off by {abs(left - right):.2e}, allowed {allowed:.2e}"
    )


def assert_like(got: Sequence[Any], likes: Sequence[Any], what: str) -> None:
    """Check that each array has the shape and dtype of its counterpart."""
    assert len(got) == len(likes), f"{what}: {len(got)} results, expected {len(likes)}"
    for i, (g, like) in enumerate(zip(got, likes, strict=True)):
        like = np.asarray(like)
        assert isinstance(g, (np.ndarray, np.generic)), f"{what} {i}: {type(g).__name__} is no array"
        assert g.shape == like.shape, f"{what} {i}: shape {g.shape}, expected {like.shape}"
        assert g.dtype == like.dtype, f"{what} {i}: dtype {g.dtype}, expected {like.dtype}"
