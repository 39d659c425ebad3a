"""Cosine and sine transforms, of the types 1 to 4.

All are linear, and the transpose of each is another of them. For n entries, and up to the scale that ``norm`` chooses,
entry k of the ``dct`` is twice the sum of ``x[j]`` times

* ``cos(pi * j * k / (n - 1))`` (type 1, with the first and last entries halved),
* ``cos(pi * (j + 1/2) * k / n)`` (type 2),
* ``cos(pi * j * (k + 1/2) / n)`` (type 3, with the first entry halved),
* ``cos(pi * (j + 1/2) * (k + 1/2) / n)`` (type 4).

The ``dst`` has sines: indices without a half count from 1, type 1 divides by ``n + 1``, type 3 halves the last entry.
SciPy uses ``overwrite_x`` and ``workers`` for plain arrays; other arrays are never overwritten.
"""

from __future__ import annotations

import operator
from typing import Any

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.fft import Norm
from funcgrad.primitives.fourier import NORMS
from funcgrad.scipy.fft.fourier import lengths_and_axes
from funcgrad.scipy.fft.operations.cosines import INVERSE
from funcgrad.scipy.fft.operations.cosines import trigonometric as prim
from funcgrad.scipy.own_code import mirror_rows, mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]


def _transformed(
    name: str, x: Array, type: int, lengths: list[int], axes: list[int], norm: Norm, orthogonalize: bool | None
) -> Array:
    """Transform ``x`` along each of ``axes``; an inverse is the transform of the inverse type, scaled the other way."""
    if type not in INVERSE:
        raise ValueError(f"scipy.fft.{name}: the types are 1, 2, 3 and 4, got type={type}. Take one of them.")
    scale: str = norm or "backward"
    if scale not in NORMS:
        raise ValueError(
            f'scipy.fft.{name}: norm must be "backward", "ortho" or "forward", got {norm!r}. Give one of them.'
        )
    orthogonal = scale == "ortho" if orthogonalize is None else bool(orthogonalize)
    if orthogonal != (scale == "ortho") and backend.dtype_of(x).kind == "c":
        raise InputError(
            f"scipy.fft.{name}: SciPy ignores orthogonalize for complex numbers, got {describe(x)} with "
            f"orthogonalize={orthogonalize}. Transform the real and the imaginary part."
        )
    if name.startswith("i"):
        type, scale = INVERSE[type], NORMS[scale]
    kind = name.lstrip("i")[:3]
    for axis, n in zip(axes, lengths, strict=True):
        if n < 1:
            raise ValueError(f"scipy.fft.{name}: at least one entry is needed, got {n} along axis {axis}.")
        x = prim(x, kind=kind, type=type, n=n, axis=axis, norm=scale, orthogonal=orthogonal)
    return x


@mirror_rows
def _along_one(
    name: str,
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Array:
    x = as_value(x)
    shape = backend.shape_of(x)
    along = normalize_axis(axis, len(shape))
    length = shape[along] if n is None else operator.index(n)
    return _transformed(name, x, type, [length], [along], norm, orthogonalize)


def _several(name: str, x: ArrayLike, type: int, s: Any, axes: Any, norm: Norm, orthogonalize: bool | None) -> Array:
    x = as_value(x)
    shape = backend.shape_of(x)
    lengths, along = lengths_and_axes(name, x, s, axes)
    lengths = [shape[axis] for axis in along] if lengths is None else lengths
    return _transformed(name, x, type, lengths, along, norm, orthogonalize)


@mirror_rows
def _along_several(
    name: str,
    x: ArrayLike,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Array:
    return _several(name, x, type, s, axes, norm, orthogonalize)


@mirrors
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Compute ``dct`` along several axes, by default all.

    Args:
        x: an array.
        type: 1, 2, 3 or 4.
        s: the number of entries along each of ``axes``; -1 keeps the length.
        axes: the axes, all different; the default is all, or with ``s`` the last ones.
        norm: as for ``dct``, like all that follow.
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        orthogonalize: whether the matrices are orthogonal if ``norm`` is "ortho".

    Raises:
        ValueError: ``s`` and ``axes`` have different lengths, an axis is given twice, or as for ``dct``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.dctn([[1.0, 2.0], [3.0, 4.0]], norm="ortho").round(6)
        array([[ 5., -1.],
               [-2.,  0.]])
    """
    return _several("dctn", x, type, s, axes, norm, orthogonalize)


# fmt: off
dct = _along_one("dct", """The cosine transform along ``axis``.

    Args:
        x: an array. If ``x`` is complex, the real and the imaginary part are transformed separately.
        type: 1, 2, 3 or 4. Type 3 is the inverse of type 2; types 1 and 4 are their own inverses.
        n: the number of entries, to which ``x`` is cut or padded with zeros; the default keeps the length.
        axis: the axis to transform.
        norm: which transform is scaled: "backward" (or None) the inverse, "forward" this one, "ortho" both.
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        orthogonalize: whether entries without a mirror image are scaled by ``sqrt(2)``, so that the matrix is
            orthogonal with ``norm="ortho"``; the default is True for this norm only.

    Raises:
        ValueError: ``type`` or ``norm`` is unknown, or there are no entries.
        IndexError: ``axis`` is out of range.
        InputError: ``orthogonalize`` with traced complex numbers, for which SciPy ignores it (a ``TypeError``).""",
    'fft.dct([1.0, 2.0, 3.0], norm="ortho").round(6)', "array([ 3.464102, -1.414214,  0.      ])")
idct = _along_one("idct", "The inverse of ``dct`` of the same type; arguments as for ``dct``.",
    "fft.idct([12.0, -3.464102, 0.0]).round(6)", "array([1., 2., 3.])")
dst = _along_one("dst", "The sine transform along ``axis``; arguments as for ``dct``.",
    "fft.dst([1.0, 2.0, 3.0], type=1).round(6)", "array([ 9.656854, -4.      ,  1.656854])")
idst = _along_one("idst", "The inverse of ``dst`` of the same type; arguments as for ``dct``.",
    "fft.idst([9.656854, -4.0, 1.656854], type=1).round(6)", "array([1., 2., 3.])")
idctn = _along_several("idctn", "The inverse of ``dctn`` of the same type; arguments as for ``dctn``.",
    'fft.idctn([[5.0, -1.0], [-2.0, 0.0]], norm="ortho").round(6)', "array([[1., 2.],\n       [3., 4.]])")
dstn = _along_several("dstn", "The ``dst`` along several axes, by default all; arguments as for ``dctn``.",
    'fft.dstn([[1.0, 2.0], [3.0, 4.0]], norm="ortho").round(6)', "array([[ 5., -1.],\n       [-2.,  0.]])")
idstn = _along_several("idstn", "The inverse of ``dstn`` of the same type; arguments as for ``dctn``.",
    'fft.idstn([[5.0, -1.0], [-2.0, 0.0]], norm="ortho").round(6)', "array([[1., 2.],\n       [3., 4.]])")
# fmt: on
