"""Constants for SciPy's compiled code: arrays, and settings on which an exact result does not depend."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer, describe, plain_value, shallow_copy
from funcgrad.errors import StagingError
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers
from funcgrad.transforms.stopping import stop_gradient


def constant_array(call: str, x: Any) -> np.ndarray:
    """Return ``x`` as a constant NumPy array.

    Raises:
        StagingError: the values are abstract inside a JAX transform (a ``TypeError``).
    """
    y = strip_constant_tracers(shallow_copy(x))
    bottom = plain_value(y)
    if backend.is_jax_tracer(bottom):
        raise StagingError(
            f"{call}: SciPy chooses steps by values, which JAX knows only later, got {describe(bottom)}. Call it "
            "outside of jax.jit, or pass steps=n for n equal steps."
        )
    return np.asarray(y)


#: Tolerances, lengths of steps, and what a search begins with.
_SETTINGS = frozenset(
    (
        *("atol", "rtol", "tol", "epsabs", "epsrel"),
        *("first_step", "h0", "hmax", "hmin", "max_step", "min_step", "tcrit"),
        *("sigma", "v0"),
    )
)


def constant_settings(call: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return ``options`` with constants for traced settings, on which the exact result does not depend."""
    return {
        name: _constant_setting(call, x)
        if name in _SETTINGS and any(isinstance(v, Tracer) for v in tree.leaves(x))
        else x
        for name, x in options.items()
    }


def _constant_setting(call: str, x: Any) -> Any:
    return constant_array(call, unbatched_if_equal(stop_gradient(fnp.asarray(x))))[()]
