"""Bridges between funcgrad and JAX: compiled functions, functions of either for the other, devices, the cross-check.

JAX is needed when one of these is called, not to import them. It comes with the extra ``funcgrad[jax]``. Each is loaded
with its first use: a program that takes one of them waits for no other.

Example:
    >>> import numpy as np
    >>> from funcgrad.interop import crosscheck
    >>> bool(crosscheck(np.tanh)(0.5))
    True
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from funcgrad.interop.from_array_api import from_array_api  # modules of the same names would hide these
from funcgrad.interop.from_numpy import from_numpy

if _TYPE_CHECKING:
    from funcgrad.interop.crosschecks.checking import crosscheck
    from funcgrad.interop.crosschecks.report import CrossCheck, Row
    from funcgrad.interop.jax.conversion import adopt
    from funcgrad.interop.jax.devices import default_device, device_put
    from funcgrad.interop.jax.jit import jit
    from funcgrad.interop.jax.lift import to_jax
    from funcgrad.interop.jax.programs import from_jax

__all__ = [
    "CrossCheck", "Row", "adopt", "crosscheck", "default_device", "device_put", "from_array_api", "from_jax",
    "from_numpy", "jit", "to_jax",
]  # fmt: skip

_HOMES = {
    "CrossCheck": "crosschecks.report",
    "Row": "crosschecks.report",
    "adopt": "jax.conversion",
    "crosscheck": "crosschecks.checking",
    "default_device": "jax.devices",
    "device_put": "jax.devices",
    "from_jax": "jax.programs",
    "jit": "jax.jit",
    "to_jax": "jax.lift",
}


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = globals()[name] = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
