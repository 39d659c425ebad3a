"""Fast Hankel transforms along the last axis, computed by SciPy."""

from __future__ import annotations

from typing import Any

from funcgrad.errors import InputError
from funcgrad.kinds.linear import conform, linear
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy
from funcgrad.typing import Array, Shape


def _hankel(xp: Any, x: Any, *, name: str, dln: float, mu: float, offset: float, bias: float) -> Any:
    if xp.__name__ != "numpy":
        raise InputError(
            f"scipy.fft.{name}: JAX has no kernel for it, got JAX arrays. Pass NumPy arrays, outside of jax.jit."
        )
    return getattr(import_scipy(f"scipy.fft.{name}", "scipy.fft"), name)(x, dln, mu, offset, bias)


def _transpose(ct: Array, shape: Shape, dtype: Any, **how: Any) -> Array:
    return conform(hankel(ct, **how), shape, dtype)


# The transform is b D F C D: C is a real circulant matrix, F reverses the order of entries, D is diagonal, b a number.
# Reversing rows and columns transposes a circulant matrix, F C F == C.T, so F C is symmetric, and so is the transform.

#: ``hankel(x, *, name, dln, mu, offset, bias)``, with the name "fht" or "ifht". It is its own transpose.
hankel: Operation = linear("hankel", _hankel, transpose=_transpose, conforms=True, batch="leading")
