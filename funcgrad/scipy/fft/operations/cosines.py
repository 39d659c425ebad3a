"""Cosine and sine transforms along one axis, of the types 1 to 4 that ``scipy.fft`` numbers.

The input is cut or padded with zeros to ``n`` entries along ``axis``, a non-negative number; ``norm`` is "backward",
"ortho" or "forward". SciPy computes NumPy arrays; for JAX arrays, the transforms are made of fast Fourier transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.kinds import linear
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy
from funcgrad.primitives.fourier import as_input_cotangent, in_transformable_dtype
from funcgrad.typing import Array, Shape

#: For each type the type of its inverse, up to a scale.
INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}

# Transposes. Let K be the matrix of the cosines or sines, s the scale, and W = diag(1, 2, ..., 2), with ones where
# an entry has no mirror image: the first and last of the cosines of type 1, the first of those of types 2 and 3, the
# last of the sines of types 2 and 3, otherwise none. Up to s the types are K W (1), 2 K (2), K^T W (3) and 2 K (4), and
# K is symmetric in types 1 and 4. So their transposes are W (K W) W^-1 (1), (K^T W) (2 W^-1) (2), (W / 2) (2 K) (3)
# and 2 K (4): the inverse type, applied to an input whose ends (where W is 1) are doubled (1, 2), with the same ends
# of the result halved (1, 3). Orthogonal types scale the ends by square roots of 2, and need no correction.
_ENDS: dict[tuple[str, int], list[int]] = {
    ("dct", 1): [0, -1],
    ("dct", 2): [0],
    ("dct", 3): [0],
    ("dst", 2): [-1],
    ("dst", 3): [-1],
}


def _with_ends(x: Any, ends: list[int], axis: int, factor: float) -> Any:
    """Return ``x`` with the entries at ``ends`` multiplied by ``factor``."""
    weights = np.ones(x.shape[axis])
    weights[ends] = factor
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return x * weights.reshape(shape).astype(x.real.dtype)


def _resized(xp: Any, x: Any, n: int, axis: int) -> Any:
    if x.shape[axis] >= n:
        return x[(*(slice(None),) * axis, slice(0, n))]
    return xp.pad(x, [(0, n - m if i == axis else 0) for i, m in enumerate(x.shape)])


def _trigonometric(
    xp: Any, x: Any, *, kind: str, type: int, n: int, axis: int, norm: str, orthogonal: bool, dual: bool = False
) -> Any:
    x = in_transformable_dtype(xp, xp.asarray(x))
    if x.dtype.kind == "c":  # SciPy 1.17 ignores ``orthogonalize`` for complex numbers
        params: dict[str, Any] = {
            "kind": kind,
            "type": type,
            "n": n,
            "axis": axis,
            "norm": norm,
            "orthogonal": orthogonal,
        }
        parts = [_trigonometric(xp, part, **params, dual=dual) for part in (x.real, x.imag)]
        return parts[0] + parts[1] * x.dtype.type(1j)
    routine = _by_scipy if xp is np else _by_fft
    if not dual:
        return routine(xp, _resized(xp, x, n, axis), kind, type, axis, norm, orthogonal)
    ends = [] if orthogonal else _ENDS.get((kind, type), [])
    if ends and type in (1, 2):
        x = _with_ends(x, ends, axis, 2.0)
    x = routine(xp, x, kind, INVERSE[type], axis, norm, orthogonal)
    return _with_ends(x, ends, axis, 0.5) if ends and type in (1, 3) else x


def _by_scipy(xp: Any, x: Any, kind: str, type: int, axis: int, norm: str, orthogonal: bool) -> Any:
    routine = getattr(import_scipy(f"scipy.fft.{kind}", "scipy.fft"), kind)
    return routine(x, type, None, axis, norm, orthogonalize=orthogonal)


def _by_fft(xp: Any, x: Any, kind: str, type: int, axis: int, norm: str, orthogonal: bool) -> Any:
    """Compute the transform by fast Fourier transforms of twice the length."""
    dtype = xp.result_type(x.dtype, float) if x.dtype.kind in "biu" else x.dtype
    x = xp.moveaxis(x.astype(dtype), axis, -1)
    n, ends = x.shape[-1], _ENDS.get((kind, type), []) if orthogonal else []
    if ends and type in (1, 3):
        x = _with_ends(x, ends, x.ndim - 1, 2**0.5)
    x = _cosines(xp, x, type) if kind == "dct" else _sines(xp, x, type)
    if ends and type in (1, 2):
        x = _with_ends(x, ends, x.ndim - 1, 0.5**0.5)
    if norm != "backward":
        period = 2 * (n - {"dct": 1, "dst": -1}[kind] if type == 1 else n)
        x = x / (period if norm == "forward" else period**0.5)
    return xp.moveaxis(x.astype(dtype), -1, axis)


def _cosines(xp: Any, x: Any, type: int) -> Any:
    n = x.shape[-1]
    if type == 1:
        if n < 2:
            raise RuntimeError("dct: one entry has no transform of type 1, got 1. Take another type, or more entries.")
        return xp.fft.rfft(xp.concatenate([x, x[..., -2:0:-1]], -1)).real
    k = np.arange(n)
    wide = np.result_type(x.dtype, np.complex64)
    turn = np.exp(-0.5j * np.pi * k / n).astype(wide)
    if type == 2:
        return (xp.fft.rfft(xp.concatenate([x, x[..., ::-1]], -1))[..., :n] * turn).real
    if type == 3:
        return xp.fft.fft(x * turn * np.where(k, 2, 1).astype(x.dtype), 2 * n)[..., :n].real
    return 2 * (xp.fft.fft(x * turn, 2 * n)[..., :n] * (turn * np.exp(-0.25j * np.pi / n)).astype(wide)).real


def _sines(xp: Any, x: Any, type: int) -> Any:
    n = x.shape[-1]
    if type == 1:
        nothing = xp.zeros((*x.shape[:-1], 1), x.dtype)
        return -xp.fft.rfft(xp.concatenate([nothing, x, nothing, -x[..., ::-1]], -1))[..., 1 : n + 1].imag
    signs = (1 - 2 * (np.arange(n) % 2)).astype(x.dtype)
    return _cosines(xp, x * signs, 2)[..., ::-1] if type == 2 else _cosines(xp, x[..., ::-1], type) * signs


def _transpose(ct: Array, shape: Shape, dtype: Any, *, axis: int, dual: bool = False, **how: Any) -> Array:
    return as_input_cotangent(trigonometric(ct, axis=axis, dual=not dual, **how), shape, dtype, axis)


#: ``trigonometric(x, *, kind, type, n, axis, norm, orthogonal, dual=False)``: transform of kind "dct" or "dst"; with
#: ``dual`` its transpose, of an input of ``n`` entries.
trigonometric: Operation = linear("trigonometric", _trigonometric, transpose=_transpose, conforms=True, batch="axis")
