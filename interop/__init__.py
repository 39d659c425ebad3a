"""Bridges between funcgrad and JAX: compiled functions, functions of either for the other, devices, the cross-check.

JAX is needed when one of these is called, not to import them. It comes with the extra ``funcgrad[jax]``.

Example:
    >>> import numpy as np
    >>> from funcgrad.interop import crosscheck
    >>> bool(crosscheck(np.tanh)(0.5))
    True
"""

from funcgrad.interop.crosschecks.checking import crosscheck
from funcgrad.interop.crosschecks.report import CrossCheck, Row
from funcgrad.interop.from_array_api import from_array_api
from funcgrad.interop.from_numpy import from_numpy
from funcgrad.interop.jax.containers import adopt
from funcgrad.interop.jax.devices import default_device, device_put
from funcgrad.interop.jax.from_jax import from_jax
from funcgrad.interop.jax.jit import jit
from funcgrad.interop.jax.lift import to_jax

__all__ = [
    "CrossCheck", "Row", "adopt", "crosscheck", "default_device", "device_put", "from_array_api", "from_jax",
    "from_numpy", "jit", "to_jax",
]  # fmt: skip
