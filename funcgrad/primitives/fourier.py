"""Discrete Fourier transforms along one axis. Transforms along several axes are composed of them, as in NumPy.

The input is cut or padded with zeros to ``n`` entries along ``axis``, a non-negative number; ``norm`` is
"backward", "ortho" or "forward". The transpose of every transform is another transform, and nothing is
saved on the tape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds import linear
from funcgrad.kinds.linear import conform
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.indexing import getitem, pad_zeros
from funcgrad.typing import Shape

#: ``norm`` of the inverse transform, by the ``norm`` of the transform.
NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _cut_or_padded(x: Any, n: int, axis: int) -> Any:
    """Cut or pad ``x`` with zeros to ``n`` entries along ``axis``: the transpose of the cut or pad of the input."""
    shape = shape_of(x)
    if shape[axis] == n:
        return x
    if shape[axis] > n:
        return getitem(x, (*(slice(None),) * axis, slice(0, n)))
    return pad_zeros(x, widths=tuple([(0, n - m if i == axis else 0) for i, m in enumerate(shape)]))


def in_transformable_dtype(xp: Any, x: Any) -> Any:
    """Return ``x`` in a precision that the array namespace ``xp`` can transform: float16 only with NumPy."""
    return x if xp is np or x.dtype.itemsize > 2 else x.astype(np.float32)


def as_input_cotangent(ct: Any, shape: Shape, dtype: Any, axis: int) -> Any:
    """Return ``ct``, the transform of a cotangent, as the cotangent of an input of that shape and dtype."""
    return conform(_cut_or_padded(ct, shape[axis], axis), None, dtype)


def _complex_transform(name: str) -> Operation:
    """Make a transform of complex numbers; its matrix is symmetric, so it is its own transpose."""
    call: Operation = linear(
        name,
        lambda xp, x, *, n, axis, norm: getattr(xp.fft, name)(in_transformable_dtype(xp, x), n, axis, norm),
        transpose=lambda ct, shape, dtype, *, n, axis, norm: as_input_cotangent(
            call(ct, n=n, axis=axis, norm=norm), shape, dtype, axis
        ),
        conforms=True,
        batch="axis",
    )
    return call


#: ``fft(x, *, n, axis, norm)``.
fft: Operation = _complex_transform("fft")
#: ``ifft(x, *, n, axis, norm)``.
ifft: Operation = _complex_transform("ifft")


def _with_mirrored_weight(xp: Any, x: Any, n: int, axis: int, factor: float) -> Any:
    """Return ``x``, half a spectrum, with ``factor`` times those entries that represent their mirror image too.

    These are all entries but the first and, when ``n`` is even, the last. A NumPy array is overwritten.
    """
    last = (n + 1) // 2
    if xp is np:
        x[(*(slice(None),) * axis, slice(1, last))] *= factor
        return x
    k = np.arange(x.shape[axis])
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return x * np.where((k > 0) & (k < last), factor, 1).reshape(shape).astype(x.real.dtype)


def _rfft(xp: Any, x: Any, *, n: int, axis: int, norm: str, dual: bool = False) -> Any:
    ans = xp.fft.rfft(in_transformable_dtype(xp, x), n, axis, norm)
    return _with_mirrored_weight(xp, xp.conjugate(ans), n, axis, 2.0) if dual else ans


def _irfft(xp: Any, x: Any, *, n: int, axis: int, norm: str, dual: bool = False) -> Any:
    if dual:
        x = _with_mirrored_weight(xp, xp.conjugate(x), n, axis, 0.5)
    if not x.shape[axis]:  # NumPy would read the first entry from arbitrary memory
        x = xp.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
    return xp.fft.irfft(in_transformable_dtype(xp, x), n, axis, norm)


def _rfft_transpose(ct: Any, shape: Shape, dtype: Any, *, n: int, axis: int, norm: str, dual: bool = False) -> Any:
    return as_input_cotangent(irfft(ct, n=n, axis=axis, norm=NORMS[norm], dual=not dual), shape, dtype, axis)


def _irfft_transpose(ct: Any, shape: Shape, dtype: Any, *, n: int, axis: int, norm: str, dual: bool = False) -> Any:
    return as_input_cotangent(rfft(ct, n=n, axis=axis, norm=NORMS[norm], dual=not dual), shape, dtype, axis)


# With w_k = exp(-2 pi i k / n): rfft gives z_k = sum_j x_j w_k^j for the first n // 2 + 1 of the k, and irfft
# gives x_j = sum_k c_k real(z_k conj(w_k)^j) / n, where c_k is 2 for entries that represent a mirror image
# too, else 1. The transpose of rfft is x_j = real(sum_k z_k w_k^j): irfft with conj(z_k) / c_k and
# without the n; the transpose of irfft is z_k = c_k conj(sum_j x_j w_k^j) / n. These are the duals.

#: ``rfft(x, *, n, axis, norm, dual=False)``; the dual is the transpose of ``irfft``.
rfft: Operation = linear("rfft", _rfft, transpose=_rfft_transpose, conforms=True, batch="axis")

#: ``irfft(x, *, n, axis, norm, dual=False)``; the dual, of n // 2 + 1 entries, is the transpose of ``rfft``.
irfft: Operation = linear("irfft", _irfft, transpose=_irfft_transpose, conforms=True, batch="axis")
