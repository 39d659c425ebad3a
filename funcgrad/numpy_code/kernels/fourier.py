"""SciPy's compiled Fourier transforms, which the Python code of ``scipy.fftpack`` calls.

Each has the signature of the compiled function. The scale of a result is a number: 0 for none, 1 for division by the
root of the number of elements, 2 for division by that number. Memory for the result is not used, but for parts of
complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.own import own

#: Names of the scales in NumPy, for transforms forwards and backwards.
_FORWARD: tuple[Any, ...] = ("backward", "ortho", "forward")
_BACKWARD: tuple[Any, ...] = _FORWARD[::-1]


def _c2c(a: Any, axes: Any = None, forward: bool = True, inorm: int = 0, out: Any = None, nthreads: int = 1) -> Any:
    """Compute the transform of a complex array."""
    if forward:
        return fnp.fft.fftn(a, axes=axes, norm=_FORWARD[inorm])
    return fnp.fft.ifftn(a, axes=axes, norm=_BACKWARD[inorm])


def _r2c(a: Any, axes: Any = None, forward: bool = True, inorm: int = 0, out: Any = None, nthreads: int = 1) -> Any:
    """Compute the half of the transform of a real array that determines the other half."""
    found = fnp.fft.rfftn(a, axes=axes, norm=_FORWARD[inorm])
    return found if forward else fnp.conj(found)


def _c2r(
    a: Any,
    axes: Any = None,
    lastsize: int = 0,
    forward: bool = True,
    inorm: int = 0,
    out: Any = None,
    nthreads: int = 1,
) -> Any:
    """Compute the real transform whose half ``a`` is."""
    axes = range(a.ndim) if axes is None else axes
    sizes = [*[a.shape[axis] for axis in axes[:-1]], lastsize or 2 * (a.shape[axes[-1]] - 1)]
    return fnp.fft.irfftn(fnp.conj(a) if forward else a, sizes, axes, norm=_BACKWARD[inorm])


def _cosines_or_sines(name: str) -> Callable[..., Any]:
    """Return the cosine or sine transform over several axes."""

    def transform(
        a: Any, type: int, axes: Any = None, inorm: int = 0, out: Any = None, nthreads: int = 1, ortho: Any = ...
    ) -> Any:
        compute = getattr(own("scipy.fft"), name)
        is_part = ortho is ...  # of a complex array: SciPy takes the result from ``out``
        found = compute(a, type, axes=axes, norm=_FORWARD[inorm], orthogonalize=None if is_part else ortho)
        if is_part and out is not None:
            out[...] = found
        return found

    return transform


def _r2r_fftpack(
    a: Any, axes: Any, real2hermitian: bool, forward: bool, inorm: int = 0, out: Any = None, nthreads: int = 1
) -> Any:
    """Compute the transform of a real array in FFTPACK's format, or its inverse: real and imaginary parts in turn."""
    (axis,) = axes
    a = fnp.moveaxis(a, axis, -1)
    n = a.shape[-1]
    if real2hermitian:
        half = _r2c(a, (-1,), forward, inorm)
        pairs = fnp.stack([half.real, half.imag], -1).reshape((*a.shape[:-1], -1))
        found = fnp.concatenate([pairs[..., :1], pairs[..., 2 : n + 1]], -1)
    else:
        whole = fnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, 1 - n % 2)])
        parts = fnp.concatenate([whole[..., :1], fnp.zeros_like(whole[..., :1]), whole[..., 1:]], -1)
        half = parts[..., 0::2] + 1j * parts[..., 1::2]
        found = _c2r(half, (-1,), n, forward, inorm)
    return fnp.moveaxis(found, -1, axis)


def _convolve(x: Any, omega: Any, swap_real_imag: Any = 0, overwrite_x: Any = 0) -> Any:
    """Multiply the transform of ``x``, in FFTPACK's format, by ``omega``, and transform back."""
    x, n = fnp.asarray(x, np.float64), len(x)
    moved = _r2r_fftpack(x, (0,), True, True) * omega
    if swap_real_imag:
        order = np.arange(n)
        last = n - (n + 1) % 2  # parts of one number are neighbours, but the first and the Nyquist frequency are real
        order[1:last] = order[1:last].reshape(-1, 2)[:, ::-1].ravel()
        moved = moved[order]
    return _r2r_fftpack(moved, (0,), False, False)


def _convolve_z(x: Any, omega_real: Any, omega_imag: Any, overwrite_x: Any = 0) -> Any:
    """Multiply the transform of ``x`` by complex numbers, and transform back."""
    return _convolve(x, omega_real) + _convolve(x, omega_imag, 1)


_COMPILED: dict[str, Callable[..., Any]] = {
    "c2c": _c2c,
    "c2r": _c2r,
    "dct": _cosines_or_sines("dctn"),
    "dst": _cosines_or_sines("dstn"),
    "r2c": _r2c,
    "r2r_fftpack": _r2r_fftpack,
}
_HOMES = ("scipy.fft._pocketfft.pypocketfft", "scipy.fft._duccfft.pyduccfft")  # the latter since SciPy 1.18
FOURIER: dict[tuple[str, str], Callable[..., Any]] = {
    **{(home, name): ours for home in _HOMES for name, ours in _COMPILED.items()},
    ("scipy.fftpack.convolve", "convolve"): _convolve,
    ("scipy.fftpack.convolve", "convolve_z"): _convolve_z,
}
