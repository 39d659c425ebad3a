"""Rows of the table of operations, from which the tests of every operation are generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Op", "Sample", "array", "op", "positive", "spread"]


@dataclass(frozen=True)
class Sample:
    """One call: ``fun(*args, **kwargs)``. Array arguments are positional, all others are static.

    Args:
        args: positional arguments. Floating and complex arrays (and Python floats) among them are differentiated.
        kwargs: static keyword arguments.
        frozen: positions of arrays that are not differentiated (a condition, weights without a rule).
        unbatched: positions that vmap must not map (static positional arguments such as an axis or a shape).
        ordered: whether the arguments must keep their order (rising knots, a triangle): vmap is then
            tested with examples that differ by a factor, not with reversed examples.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    frozen: tuple[int, ...] = ()
    unbatched: tuple[int, ...] = ()
    ordered: bool = False


@dataclass(frozen=True)
class Op:
    """An operation and how to test it.

    Args:
        name: the name in ``funcgrad.numpy``; ``numpy`` and ``jax.numpy`` are looked up under the same name. Names that
            begin with ``scipy.`` belong to ``funcgrad.scipy``, ``scipy`` and ``jax.scipy``; names that begin with
            ``nn.`` belong to ``funcgrad.nn`` and ``jax.nn``.
        samples: calls at points where the operation is smooth (kinks have their own tests).
        fun: function to call instead of the function of that name.
        numpy: NumPy's counterpart: another name, a function, or None when there is none.
        jax: JAX's counterpart, in the same forms; ``None`` needs a reason.
        differentiable: whether the operation has a derivative; if not, the tests check that the gradient is zero.
        order: highest order of derivatives to test.
        complex_samples: calls with complex arguments.
        jit: whether the operation runs under ``jax.jit``; False where the shape of the result depends on values.
        portable: whether JAX arrays and NumPy arrays give the same results; False where that is left open.
        on_jax: whether the operation computes on JAX arrays; False where JAX has no kernel, and the call says so; None
            where an older JAX has none, see ``older.py``.
        reason: why JAX or NumPy is not compared, why the order is below 2, why the operation does not run under
            ``jax.jit``, why it is not portable.
    """

    name: str
    samples: tuple[Sample, ...]
    fun: Callable[..., Any] | None = None
    numpy: Any = "same name"
    jax: Any = "same name"
    differentiable: bool = True
    order: int = 2
    complex_samples: tuple[Sample, ...] = ()
    jit: bool = True
    portable: bool = True
    on_jax: bool | None = True
    reason: str = ""


def op(name: str, *samples: Sample | tuple[Any, ...], complex_samples: Any = (), **options: Any) -> Op:
    """Return a row. A sample may be written as the tuple of its positional arguments."""
    rows = tuple(s if isinstance(s, Sample) else Sample(s) for s in samples)
    complex_rows = tuple(s if isinstance(s, Sample) else Sample(s) for s in complex_samples)
    return Op(name, rows, complex_samples=complex_rows, **options)


def array(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0, kind: str = "float") -> np.ndarray:
    """Return reproducible numbers from ``low`` to ``high``, all different, away from integers and from zero."""
    rng = np.random.default_rng([seed, *shape])
    n = int(np.prod(shape, dtype=int))
    grid = low + (high - low) * (np.arange(n) + rng.uniform(0.2, 0.8, n)) / max(n, 1)
    grid = np.where(np.abs(grid - np.round(grid)) < 0.03, grid + 0.07, grid)
    real = rng.permutation(grid).reshape(shape)
    return real if kind == "float" else real + 1j * array(*shape, seed=seed + 1000, low=low, high=high)


def positive(*shape: int, seed: int = 0, low: float = 0.2, high: float = 3.0) -> np.ndarray:
    """Return reproducible positive numbers."""
    return array(*shape, seed=seed, low=low, high=high)


def spread(*shape: int, seed: int = 0) -> np.ndarray:
    """Return reproducible numbers without near ties: for sorting and extrema."""
    return array(*shape, seed=seed, low=-3.0, high=3.0)
