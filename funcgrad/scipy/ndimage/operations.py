"""Filters along axes with the borders of ``scipy.ndimage``: sums, splines, choices in a window.

The values that a filter reads beyond the border are elements of the array itself (or zeros). A transpose therefore
folds their cotangents back onto those elements.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of, shape_of
from funcgrad.kinds import linear, multilinear, nondifferentiable
from funcgrad.kinds.linear import astype, batch_rule, reshape, to_batch
from funcgrad.kinds.rules import Operation
from funcgrad.nn.operations.convolution import Geometry, convolution
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import pad_zeros
from funcgrad.primitives.shaping import flip
from funcgrad.typing import Array, Shape

#: NumPy's names for SciPy's borders.
_PADDING: dict[str, Any] = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap"}


def _scipy(name: str) -> Any:
    return getattr(import_scipy(f"ndimage.{name}", "scipy.ndimage"), name)


# ---- borders -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def sources(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """Return the index of the element, of ``n``, at each place of the array with its borders, by ``mode``."""
    return np.pad(np.arange(n), (before, after), _PADDING[mode])


def _fold(xp: Any, x: Any, *, axis: int, before: int, n: int, mode: str) -> Any:
    places = sources(n, before, x.shape[axis] - n - before, mode)
    rows = xp.moveaxis(x, axis, 0)
    if xp is not np:
        total = xp.zeros((n, *rows.shape[1:]), x.dtype).at[places].add(rows)
    else:
        total = rows[before : before + n].copy()
        for i in (*range(before), *range(before + n, len(rows))):
            total[places[i]] += rows[i]
    return xp.moveaxis(total, 0, axis)


#: ``extend(x, *, axis, before, after, mode)``: ``x`` with that many more elements at both ends of ``axis``.
extend: Operation = linear(
    "extend",
    lambda xp, x, *, axis, before, after, mode: xp.take(x, sources(x.shape[axis], before, after, mode), axis),
    transpose=lambda ct, shape, *, axis, before, after, mode: fold(
        ct, axis=axis, before=before, n=shape[axis], mode=mode
    ),
    conforms=True,
    batch="axis",
)

#: ``fold(x, *, axis, before, n, mode)``: transpose of ``extend``, for ``x`` with ``n`` elements between its borders.
fold: Operation = linear(
    "fold",
    _fold,
    transpose=lambda ct, shape, *, axis, before, n, mode: extend(
        ct, axis=axis, before=before, after=shape[axis] - n - before, mode=mode
    ),
    conforms=True,
    batch="axis",
)

# ---- weighted sums -----------------------------------------------------------------------------------------


def _widths(lengths: Shape, origins: Shape) -> tuple[tuple[int, int], ...]:
    """Return how far a window reaches beyond both ends of each axis."""
    return tuple([(m // 2 + o, m - 1 - m // 2 - o) for m, o in zip(lengths, origins, strict=True)])


def _padded(x: Array, lengths: Shape, origins: Shape, mode: str) -> tuple[Array, Shape]:
    """Return ``x`` with the elements that windows read beyond its ends, and how many zeros it lacks in front."""
    widths = _widths(lengths, origins)
    if mode == "constant":
        return x, tuple([before for before, _ in widths])
    for axis, (before, after) in enumerate(widths):
        x = extend(x, axis=axis, before=before, after=after, mode=mode) if before or after else x
    return x, (0,) * len(widths)


def _summed(x: Array, y: Array, before: Shape, out: Shape) -> Array:
    """Compute sums of products over all places where ``y`` lies on ``x``, with zeros around it."""
    ones = (1,) * len(out)
    x, y = (reshape(a, to=(1, 1, 1, *shape_of(a))) for a in (x, y))
    return reshape(convolution(x, y, geometry=Geometry(ones, before, ones, ones, out)), to=out)


def _correlate_axes(xp: Any, x: Any, y: Any, *, mode: str, origins: Shape) -> Any:
    """Compute the sums in the precision of ``x``: for SciPy, weights are plain numbers."""
    x, y = xp.asarray(x), xp.asarray(y)
    mixed = "c" in (x.dtype.kind, y.dtype.kind)
    dtype = xp.promote_types(x.dtype, np.complex64) if mixed else x.dtype
    long = [axis for axis, m in enumerate(y.shape) if m > 1]
    if not long:
        return (x * y).astype(dtype)
    if xp is np and len(long) == 1:
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        weights = np.conj(y.ravel()) if y.dtype.kind == "c" else y.ravel()  # SciPy conjugates the weights
        found = _scipy("correlate1d")(wide, weights, long[0], None, mode, 0.0, origins[long[0]])
        return found.astype(dtype, copy=False)
    around, before = _padded(x, y.shape, origins, mode)
    return _summed(around, y, before, x.shape).astype(dtype)


def _windowed_transpose(ct: Array, lengths: Shape, origins: Shape, mode: str, sums: Any) -> Array:
    """Compute the transpose of a windowed sum: ``sums(x, mode, origins)`` with a reversed window, folded back."""
    widths = _widths(lengths, origins)
    turned = tuple([after - m // 2 for m, (_, after) in zip(lengths, widths, strict=True)])
    if mode in ("constant", "wrap"):
        return sums(ct, mode, turned)
    whole = sums(pad_zeros(ct, widths=widths), "constant", turned)
    for axis, ((before, after), n) in enumerate(zip(widths, shape_of(ct), strict=True)):
        whole = fold(whole, axis=axis, before=before, n=n, mode=mode) if before or after else whole
    return whole


def _correlate_dx(ct: Array, y: Array, *, mode: str, origins: Shape) -> Array:
    lengths = shape_of(y)
    y = flip(y, axis=tuple(range(len(lengths))))
    return _windowed_transpose(
        ct, lengths, origins, mode, lambda x, mode, to: correlate_axes(x, y, mode=mode, origins=to)
    )


def _correlate_dy(ct: Array, x: Array, shape: Shape, *, mode: str, origins: Shape) -> Array:
    around, before = _padded(x, shape, origins, mode)
    return _summed(around, ct, before, shape)


def _correlate_batch(
    size: int, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
) -> tuple[Any, bool]:
    """Add a batch of arrays as one more axis; weights that differ between examples take one call for each."""
    if not size:
        x, mixed = args[0] if batched[0] else to_batch(args[0], 0), "c" in [dtype_of(a).kind for a in args]
        return (astype(x, to=np.promote_types(dtype_of(x), np.complex64)) if mixed else x), True
    if batched[1]:
        found, is_batch = batch_rule("loop", lambda: correlate_axes)(size, args, batched, params)
        return found, is_batch
    weights = reshape(args[1], to=(1, *shape_of(args[1])))
    return correlate_axes(args[0], weights, mode=params["mode"], origins=(0, *params["origins"])), True


#: ``correlate_axes(x, y, *, mode, origins)``: ``sum(y[k] * x[i + k - m // 2 - origin])`` over k, at each i; the
#: weights ``y``, m of them along each axis, have as many axes as ``x``. "constant" means zeros beyond the border.
correlate_axes: Operation = multilinear(
    "correlate_axes", _correlate_axes, transposes=[_correlate_dx, _correlate_dy], batch=_correlate_batch
)


def _uniform(xp: Any, x: Any, *, axis: int, size: int, mode: str, origin: int) -> Any:
    if xp is not np:
        to = tuple([size if i == axis else 1 for i in range(x.ndim)])
        origins = tuple([origin if i == axis else 0 for i in range(x.ndim)])
        return correlate_axes(x, np.full(to, 1 / size), mode=mode, origins=origins)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    return _scipy("uniform_filter1d")(wide, size, axis, None, mode, 0.0, origin).astype(x.dtype, copy=False)


def _uniform_transpose(ct: Array, *, axis: int, size: int, mode: str, origin: int) -> Array:
    def along(x: Array, mode: str, origins: Shape) -> Array:
        return uniform_axis(x, axis=axis, size=size, mode=mode, origin=origins[axis])

    lengths, origins = [1] * len(shape_of(ct)), [0] * len(shape_of(ct))
    lengths[axis], origins[axis] = size, origin
    return _windowed_transpose(ct, tuple(lengths), tuple(origins), mode, along)


#: ``uniform_axis(x, *, axis, size, mode, origin)``: means of ``size`` neighbours, like ``correlate_axes``.
uniform_axis: Operation = linear("uniform_axis", _uniform, transpose=_uniform_transpose, conforms=True, batch="axis")

# ---- splines -----------------------------------------------------------------------------------------------

_SHORT = 64  # elements; up to here SciPy's filter with mode "reflect" is affected by the other end, and not symmetric


@lru_cache(maxsize=64)
def _spline_matrix(n: int, order: int, mode: str) -> np.ndarray:
    """Return the filtered columns of the identity."""
    found: np.ndarray = _scipy("spline_filter1d")(np.eye(n), order, 0, mode=mode)
    return found


def _spline(xp: Any, x: Any, *, axis: int, order: int, mode: str, transposed: bool) -> Any:
    n = x.shape[axis]
    if xp is not np or (transposed and n <= _SHORT):
        matrix = _spline_matrix(n, order, mode)
        matrix = xp.asarray(matrix.T if transposed else matrix, x.dtype)
        return xp.moveaxis(xp.tensordot(matrix, x, (1, axis)), 0, axis)
    if transposed and mode == "mirror":
        # the mirror mode counts the first and the last element half: this scale makes the filter symmetric
        scale = np.ones([n if i == axis else 1 for i in range(x.ndim)])
        scale[(0,) * x.ndim] = scale[tuple([n - 1 if i == axis else 0 for i in range(x.ndim)])] = 0.5
        return scale * _spline(xp, x / scale, axis=axis, order=order, mode=mode, transposed=False)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return _scipy("spline_filter1d")(x, order, axis, wide, mode).astype(x.dtype, copy=False)


#: ``spline_axis(x, *, axis, order, mode, transposed)``: coefficients of the spline through the elements along
#: ``axis``; ``mode`` is "mirror", "reflect" or "grid-wrap".
spline_axis: Operation = linear(
    "spline_axis",
    _spline,
    transpose=lambda ct, *, axis, order, mode, transposed: spline_axis(
        ct, axis=axis, order=order, mode=mode, transposed=not transposed
    ),
    conforms=True,
    batch="axis",
)

# ---- choices in a window -----------------------------------------------------------------------------------

_BLOCK = 1 << 22  # elements of windows that are sorted at once


def _views(x: Any, offsets: tuple[Shape, ...], shape: Shape) -> list[Any]:
    """Return the elements of ``x`` at each offset in the window."""
    return [x[(..., *[slice(o, o + n) for o, n in zip(offset, shape, strict=True)])] for offset in offsets]


def _extremes(views: list[np.ndarray], largest: bool) -> np.ndarray:
    """Return the index of the view that has the extremum, the first of ties."""
    best = views[0].copy()
    which = np.zeros(best.shape, np.intp)
    for i, view in enumerate(views[1:], 1):
        better = view > best if largest else view < best
        np.copyto(best, view, where=better)
        which[better] = i
    return which


def _ranked(xp: Any, views: list[Any], rank: int) -> Any:
    """Return the index of the view that has the element of that rank, the first of ties."""
    window = xp.stack(views, -1)
    value = (np.partition(window, rank, -1) if xp is np else xp.sort(window, -1))[..., rank]
    return xp.argmax(window == value[..., None], -1)


def _rank_indices(xp: Any, x: Any, *, offsets: tuple[Shape, ...], shape: Shape, rank: int) -> Any:
    lengths = x.shape[x.ndim - len(shape) :]
    steps = [prod(lengths[i + 1 :]) for i in range(len(lengths))]
    starts = sum(s * i for s, i in zip(steps, np.ogrid[tuple([slice(n) for n in shape])], strict=True))
    ahead = np.array([sum(s * o for s, o in zip(steps, offset, strict=True)) for offset in offsets])
    views = _views(x, offsets, shape)
    if xp is np and rank in (0, len(offsets) - 1):
        return starts + ahead[_extremes(views, rank > 0)]
    if xp is not np:
        return xp.asarray(starts) + xp.asarray(ahead)[_ranked(xp, views, rank)]
    which = np.empty(views[0].shape, np.intp)
    axis = which.ndim - len(shape)
    rows = max(1, _BLOCK * shape[0] // max(1, which.size * len(offsets)))
    for i in range(0, shape[0], rows):
        part: Any = (*(slice(None),) * axis, slice(i, i + rows))
        which[part] = _ranked(np, [view[part] for view in views], rank)
    return starts + ahead[which]


#: ``rank_indices(x, *, offsets, shape, rank)``: for each place of ``shape`` the index in ``x``, with its last axes
#: flattened, of the element of that rank among the elements at ``offsets`` from the place.
rank_indices: Operation = nondifferentiable("chosen", _rank_indices, batch="leading")
