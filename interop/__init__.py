"""Bridges between funcgrad and JAX: compiled functions, conversion of functions, devices, the cross-check.

JAX comes with the extra ``funcgrad[jax]`` and is needed only when one of these functions is called. Each function is
loaded at its first use, so a program that uses one of them does not wait for the others.

Example:
    >>> import numpy as np
    >>> from funcgrad.interop import crosscheck
    >>> bool(crosscheck(np.tanh)(0.5))
    True
"""

from typing import TYPE_CHECKING

from funcgrad.interop.from_array_api import from_array_api  # modules of the same names would hide these
from funcgrad.interop.from_numpy import from_numpy
from funcgrad.optional import lazy_attributes

if TYPE_CHECKING:
    from funcgrad.interop import autograd as autograd
    from funcgrad.interop import scipy as scipy
    from funcgrad.interop.crosschecks.checking import crosscheck
    from funcgrad.interop.crosschecks.report import CrossCheck, Row
    from funcgrad.interop.jax.conversion import adopt
    from funcgrad.interop.jax.devices import default_device, device_put
    from funcgrad.interop.jax.jit import jit
    from funcgrad.interop.jax.lift import to_jax
    from funcgrad.interop.jax.programs import from_jax
else:
    _LATER = {
        "crosschecks.checking": "crosscheck",
        "crosschecks.report": "CrossCheck Row",
        "jax.conversion": "adopt",
        "jax.devices": "default_device device_put",
        "jax.jit": "jit",
        "jax.lift": "to_jax",
        "jax.programs": "from_jax",
    }
    _HOMES = {name: f"{__name__}.{module}:{name}" for module, names in _LATER.items() for name in names.split()}
    _HOMES |= {module: f"{__name__}.{module}" for module in ("autograd", "scipy")}
    __getattr__, __dir__ = lazy_attributes(__name__, globals(), _HOMES)

__all__ = [
    "CrossCheck", "Row", "adopt", "crosscheck", "default_device", "device_put", "from_array_api", "from_jax",
    "from_numpy", "jit", "to_jax",
]  # fmt: skip
