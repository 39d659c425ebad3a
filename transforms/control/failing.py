"""Errors that the functions of a compiled loop or branch raise: their conditions are one more result of the call.

A function may raise an error on one side of a branch. While JAX compiles, the condition is not known, and nothing can
be raised out of the body of a loop. So the error is kept, its condition leaves the body, and the error is raised where
the loop was called, if the condition is true: Python branches on it there, on the path that is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.optional import loaded_jax
from funcgrad.shared_state import open_path
from funcgrad.transforms.control.staging import Aval


class Failures:
    """Conditions of the errors that the functions of one call may raise: an array, or nothing if there are no errors.

    Lists of values of JAX hold this array or nothing.

    Args:
        checks: the errors that each function may raise, in the order in which the functions run.
    """

    def __init__(self, *checks: Sequence[Any]) -> None:
        self._counts = [len(some) for some in checks]
        self.checks = [check for some in checks for check in some]

    @property
    def avals(self) -> list[Aval]:
        """Shape and dtype of the conditions."""
        return [Aval((len(self.checks),), np.dtype(bool), False)] if self.checks else []

    def none(self) -> list[Any]:
        """Return the conditions before anything has run."""
        return [loaded_jax().numpy.zeros(len(self.checks), bool)] if self.checks else []

    def joined(self, *failed: Sequence[Any]) -> list[Any]:
        """Return all conditions from those of each function, which are empty for one that has not run."""
        jnp = loaded_jax().numpy
        pairs = zip(failed, self._counts, strict=True)
        parts = [some[0] if some else jnp.zeros(count, bool) for some, count in pairs]
        return [jnp.concatenate(parts)] if self.checks else []

    def earliest(self, before: Sequence[Any], now: Sequence[Any]) -> list[Any]:
        """Return the conditions after a step: those of the first step in which one is true."""
        where = loaded_jax().numpy.where
        return [where(old.any(), old, new) for old, new in zip(before, now, strict=True)]

    def raise_first(self, results: Sequence[Any]) -> None:
        """Raise the error of the first condition that is true; the conditions are the last of the call's results.

        Raises:
            Exception: the error that a function raised.
        """
        if self.checks:
            open_path.get().raise_first(self.checks, results[-1])
