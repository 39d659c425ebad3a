"""Arrays read at coordinates: warped, shifted, zoomed, rotated, by splines up to the fifth order.

The end of the module finds the elements that a coordinate reads, and their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.graph import report_answer
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_double
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.ndimage.operations import sources, spline_axis
from funcgrad.scipy.ndimage.sums import one_per_axis, plain_values, prepared
from funcgrad.scipy.own_code import mirrors
from funcgrad.scipy.special import cosdg, sindg
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = ["affine_transform", "map_coordinates", "rotate", "shift", "spline_filter1d", "zoom"]


def _image(call: str, input: ArrayLike, output: Any) -> tuple[Array, np.dtype[Any]]:
    """Return the array in double precision, in which SciPy computes, and the dtype of the result."""
    x, dtype = prepared(call, input, output)
    if not backend.shape_of(x):
        raise ShapeError(f"ndimage.{call}: input must have an axis, got {describe(x)}.")
    return as_double(x), dtype


def _with_outside_value(values: Array, outside: Any, settings: InterpolationSettings, dtype: Any) -> Array:
    return fnp.astype(values if outside is None else fnp.where(outside, settings.cval, values), dtype)


@mirrors
def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Read an array at ``coordinates`` by a spline; differentiable in ``input``, ``coordinates`` and ``cval``.

    Where the slope jumps (for ``order`` 1 at the elements), the derivative is the slope to the right, at the last
    element the slope to the left. For ``order`` 0, the nearest element, the derivative in the coordinates is zero.

    Args:
        input: an array.
        coordinates: along the first axis the coordinates for each axis of ``input``.
        output: the dtype of the result; the default is that of ``input``.
        order: the order of the spline, from 0 to 5.
        mode: values beyond the border: "constant" (``cval`` as soon as a coordinate is outside), "grid-constant",
            "nearest", "mirror", "reflect" or "grid-mirror", "grid-wrap", or "wrap".
        cval: the value beyond the border.
        prefilter: whether ``input`` holds values; otherwise it holds the coefficients of the spline.

    Raises:
        TypeError: a traced call with an array for ``output``, or with an integer result; complex
            coordinates.
        ValueError: shapes do not match, or the order or mode is invalid.

    Example:
        >>> from funcgrad.scipy.ndimage import map_coordinates
        >>> image = np.array([0.0, 1.0, 4.0, 9.0])
        >>> map_coordinates(image, [[0.5, 1.5]], order=1)
        array([0.5, 2.5])
        >>> grad(lambda c: map_coordinates(image, [[c]], order=1)[0])(1.5)
        np.float64(3.0)
    """
    if isinstance(coordinates, (list, tuple)) and not is_plain(coordinates):
        coordinates = fnp.stack([fnp.asarray(c) for c in coordinates])
    settings = InterpolationSettings("map_coordinates", order, mode, cval, prefilter)
    x, dtype = _image("map_coordinates", input, output)
    coordinates = as_value(coordinates)
    rank, shape = len(backend.shape_of(x)), backend.shape_of(coordinates)
    if backend.dtype_of(coordinates).kind == "c":
        raise InputError(f"ndimage.map_coordinates: coordinates must be real, got {describe(coordinates)}.")
    if len(shape) < 2 or shape[0] != rank:
        raise ShapeError(
            f"ndimage.map_coordinates: coordinates must have {rank} along their first of two or more axes, got "
            f"{describe(coordinates)}."
        )
    at = as_double(coordinates)
    return _with_outside_value(
        *sampled(coefficients(x, settings, rank), [at[i] for i in range(rank)], settings), settings, dtype
    )


def _by_axes(x: Array, coordinates: Sequence[Array], settings: InterpolationSettings, dtype: Any) -> Array:
    """Read ``x`` on a grid whose coordinates along an axis depend on the index along that axis alone."""
    rank = len(coordinates)
    x, outside = coefficients(x, settings, rank), None
    for axis, c in enumerate(coordinates):
        (n,) = backend.shape_of(c)
        rows = fnp.moveaxis(x, axis, -1)
        shape = backend.shape_of(rows)
        flat = reshape(rows, to=(prod(shape[:-1]), shape[-1]))
        values, beyond = sampled(flat, [c], settings)
        x = fnp.moveaxis(reshape(values, to=(*shape[:-1], n)), -1, axis)
        if beyond is not None:
            beyond = reshape(beyond, to=tuple([n if i == axis else 1 for i in range(rank)]))
            outside = beyond if outside is None else outside | beyond
    return _with_outside_value(x, outside, settings, dtype)


@mirrors
def shift(
    input: ArrayLike,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Shift ``input`` by ``shift``, one number for all axes, or one for each; differentiable in both.

    Arguments as for ``map_coordinates``.

    Example:
        >>> from funcgrad.scipy.ndimage import shift
        >>> shift([0.0, 1.0, 4.0], 0.5, order=1)
        array([0. , 0.5, 2.5])
    """
    settings = InterpolationSettings("shift", order, mode, cval, prefilter)
    x, dtype = _image("shift", input, output)
    lengths = backend.shape_of(x)
    moves = [as_double(s) for s in one_per_axis("shift", "shift", shift, len(lengths))]
    return _by_axes(x, [np.arange(float(n)) - s for n, s in zip(lengths, moves, strict=True)], settings, dtype)


@mirrors
def zoom(
    input: ArrayLike,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """Resample an array on a finer or coarser grid; ``zoom``, one for all axes or one for each, only sets the shape.

    Arguments as for ``map_coordinates``; ``grid_mode`` says that elements are cells, not points.

    Raises:
        TypeError: ``zoom`` is traced: only the shape depends on it.

    Example:
        >>> from funcgrad.scipy.ndimage import zoom
        >>> zoom([0.0, 1.0, 4.0], 5 / 3, order=1)
        array([0. , 0.5, 1. , 2.5, 4. ])
    """
    if not is_plain(zoom):
        raise InputError(
            "ndimage.zoom: zoom sets the shape of the result, which has no derivative in it, got a traced value. Pass "
            "plain numbers, or scale with affine_transform."
        )
    settings = InterpolationSettings("zoom", order, mode, cval, prefilter)
    x, dtype = _image("zoom", input, output)
    lengths = backend.shape_of(x)
    factors = one_per_axis("zoom", "zoom", zoom, len(lengths))
    if prefilter and all(z == 1 for z in factors):
        return fnp.astype(x, dtype)
    coordinates = []
    for n, z in zip(lengths, factors, strict=True):
        m = round(n * z)
        steps, of = (m, n) if grid_mode else (m - 1, n - 1)
        scale = of / steps if steps else 1.0
        places = np.arange(float(m))
        coordinates.append((places + 0.5) * scale - 0.5 if grid_mode else places * scale)
    return _by_axes(x, coordinates, settings, dtype)


@mirrors
def affine_transform(
    input: ArrayLike,
    matrix: ArrayLike,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Return the array whose element at o is ``input`` at ``matrix @ o + offset``; differentiable in all three.

    Args:
        input: an array.
        matrix: a matrix; a vector for its diagonal; or homogeneous coordinates, with the offset as last column.
        offset: one number for all axes, or one for each.
        output_shape: the shape of the result; the default is that of ``input``.
        output: as for ``map_coordinates``, like all that follow.
        order: the order of the spline.
        mode: the border.
        cval: the value beyond the border.
        prefilter: whether ``input`` holds values.

    Raises:
        TypeError: as for ``map_coordinates``.
        ValueError: as for ``map_coordinates``, or the matrix has a wrong shape.

    Example:
        >>> from funcgrad.scipy.ndimage import affine_transform
        >>> affine_transform([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], order=1)
        array([[1., 3.], [2., 4.]])
    """
    settings = InterpolationSettings("affine_transform", order, mode, cval, prefilter)
    x, dtype = _image("affine_transform", input, output)
    shape = backend.shape_of(x) if output_shape is None else tuple(map(int, output_shape))
    matrix, offsets = _affine(as_double(matrix), offset, len(backend.shape_of(x)), len(shape))
    return _affinely(x, matrix, offsets, shape, settings, dtype)


def _affine(matrix: Array, offset: Any, rank: int, out: int) -> tuple[Array, list[Array]]:
    """Return the matrix, or its diagonal, and an offset for each axis."""
    size = backend.shape_of(matrix)
    if len(size) == 2 and size[1] == rank + 1 and size[0] in (rank, rank + 1):
        values = plain_values(matrix)
        if size[0] == rank + 1 and values is not None and not (values[..., rank, :] == [0] * rank + [1]).all():
            raise ShapeError(
                f"ndimage.affine_transform: the last row must be {[0] * rank + [1]}, got {describe(matrix)}."
            )
        offset, matrix = matrix[:rank, rank], matrix[:rank, :rank]
    if backend.shape_of(matrix) not in ((rank,), (rank, out)):
        raise ShapeError(
            f"ndimage.affine_transform: matrix must be of {rank} x {out}, a vector of {rank}, or of homogeneous "
            f"coordinates, got {describe(matrix)}."
        )
    return matrix, [as_double(o) for o in one_per_axis("affine_transform", "offset", offset, rank)]


def _affinely(
    x: Array, matrix: Array, offset: Sequence[Array], shape: Shape, settings: InterpolationSettings, dtype: Any
) -> Array:
    """Read the last axes of ``x``, as many as there are offsets, at the image of a grid of ``shape``."""
    if len(backend.shape_of(matrix)) == 1:
        scaled = [m * np.arange(float(n)) + o for n, m, o in zip(shape, matrix, offset, strict=True)]
        return _by_axes(x, scaled, settings, dtype)
    grid = [np.broadcast_to(g, shape) for g in np.ogrid[tuple([slice(0.0, float(n)) for n in shape])]]
    coordinates = []
    for i, o in enumerate(offset):
        c: Any = o
        for j, g in enumerate(grid):
            c = c + matrix[i, j] * g
        coordinates.append(c)
    return _with_outside_value(*sampled(coefficients(x, settings, len(offset)), coordinates, settings), settings, dtype)


@mirrors
def rotate(
    input: ArrayLike,
    angle: ArrayLike,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Rotate an array in the plane of two axes; differentiable in ``input`` and in ``angle``.

    Args:
        input: an array of two axes or more.
        angle: in degrees.
        axes: the two axes.
        reshape: whether the result is large enough for the whole rotated array; the derivative in ``angle`` is
            taken at a fixed shape.
        output: as for ``map_coordinates``, like all that follow.
        order: the order of the spline.
        mode: the border.
        cval: the value beyond the border.
        prefilter: whether ``input`` holds values.

    Raises:
        TypeError: as for ``map_coordinates``; with ``reshape`` an angle whose value is unknown.
        ValueError: as for ``map_coordinates``, or ``axes`` are not two different axes.

    Example:
        >>> from funcgrad.scipy.ndimage import rotate
        >>> rotate([[1.0, 2.0], [3.0, 4.0]], 90, order=1)
        array([[2., 4.], [1., 3.]])
    """
    settings = InterpolationSettings("rotate", order, mode, cval, prefilter)
    x, dtype = _image("rotate", input, output)
    rank = len(backend.shape_of(x))
    plane = sorted([normalize_axis(axis, rank) for axis in axes])
    if len(set(plane)) != 2:
        raise ShapeError(f"ndimage.rotate: axes must be two different axes, got {axes}.")
    angle = as_double(angle)
    c, s = cosdg(angle), sindg(angle)
    x = fnp.moveaxis(x, plane, (-2, -1))
    lengths = backend.shape_of(x)[-2:]
    shape = _turned_shape(c, s, lengths) if reshape else lengths
    matrix = fnp.stack([fnp.stack([c, s]), fnp.stack([-s, c])])
    offset = [
        (n - 1) / 2 - (matrix[i, 0] * ((shape[0] - 1) / 2) + matrix[i, 1] * ((shape[1] - 1) / 2))
        for i, n in enumerate(lengths)
    ]
    return fnp.moveaxis(_affinely(x, matrix, offset, shape, settings, dtype), (-2, -1), plane)


def _turned_shape(c: Array, s: Array, lengths: Shape) -> Shape:
    """Return the shape of the box around a rotated rectangle."""
    iy, ix = lengths
    sizes = fnp.stack([fnp.abs(c) * iy + fnp.abs(s) * ix, fnp.abs(s) * iy + fnp.abs(c) * ix])
    whole = fnp.astype(fnp.floor(sizes + 0.5), int)
    values = plain_values(whole)
    flat = np.empty((0, 2)) if values is None else values.reshape(-1, 2)
    if not len(flat) or (flat != flat[0]).any():
        raise ConcretizationError(
            "ndimage.rotate: with reshape the shape of the result depends on the angle, which is not known here or "
            f"differs between the examples of a vmap, got {describe(whole)}. Pass reshape=False."
        )
    report_answer(whole, values)
    return int(flat[0, 0]), int(flat[0, 1])


@mirrors
def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Array:
    """Compute the coefficients of the spline through the elements along one axis, for ``prefilter=False``.

    Example:
        >>> from funcgrad.scipy.ndimage import spline_filter1d
        >>> spline_filter1d([0.0, 1.0, 0.0]).round(6)
        array([-1.,  2., -1.])
    """
    settings = InterpolationSettings("spline_filter1d", order, mode, 0.0, True)
    x, dtype = _image("spline_filter1d", input, output)
    if order > 1:
        along, mode = normalize_axis(axis, len(backend.shape_of(x))), spline_mode(settings.mode)
        x = spline_axis(x, axis=along, order=settings.order, mode=mode, transposed=False)
    return fnp.astype(x, dtype)


_MODES = {"grid-mirror": "reflect"}
#: Border by which elements beyond the border follow from those inside, where it differs from the mode.
_BORDER_MODES = {"constant": "mirror", "wrap": "mirror", "grid-wrap": "wrap", "grid-constant": "nearest"}
_SUPPORTED_MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap")
_BORDER = 12  # elements that SciPy pads an array with before it computes the spline, for modes without an exact spline


class InterpolationSettings:
    """Settings that all functions that interpolate have in common.

    Raises:
        ShapeError: the order or mode is invalid.
    """

    def __init__(self, call: str, order: int, mode: str, cval: Any, prefilter: bool) -> None:
        if order not in range(6):
            raise ShapeError(f"ndimage.{call}: order must be an integer from 0 to 5, got {order}.")
        if mode not in _SUPPORTED_MODES:
            raise ShapeError(f"ndimage.{call}: mode must be one of {', '.join(_SUPPORTED_MODES)}, got {mode!r}.")
        self.call, self.order, self.mode, self.cval = call, int(order), _MODES.get(mode, mode), cval
        self.prefilter = bool(prefilter) and order > 1
        self.border = _BORDER if self.prefilter and mode in ("nearest", "grid-constant") else 0


def spline_mode(mode: str) -> str:
    """Return the border that SciPy's spline filter uses for ``mode``."""
    if mode in ("reflect", "grid-mirror", "nearest"):
        return "reflect"
    return "grid-wrap" if mode == "grid-wrap" else "mirror"


def coefficients(x: Array, settings: InterpolationSettings, rank: int) -> Array:
    """Compute the coefficients of the spline through ``x`` along its last ``rank`` axes, with their border."""
    axes = range(len(backend.shape_of(x)) - rank, len(backend.shape_of(x)))
    if settings.border:
        widths = [(settings.border, settings.border) if i in axes else (0, 0) for i in range(axes.stop)]
        if settings.mode == "nearest":
            x = fnp.pad(x, widths, "edge")
        else:
            x = fnp.pad(x, widths, constant_values=settings.cval)
    if settings.prefilter:
        for axis in axes:
            x = spline_axis(x, axis=axis, order=settings.order, mode=spline_mode(settings.mode), transposed=False)
    return x


def _inside(c: Array, n: int, mode: str) -> Array:
    """Return the coordinate between 0 and ``n - 1`` that is equivalent to ``c``, by SciPy's formulas."""
    if mode in ("grid-constant", "nearest"):  # missing elements are replaced, not coordinates
        return c
    if mode == "constant":
        return fnp.where((c < 0) | (c > n - 1), 0.0, c)
    if n == 1:
        return 0.0 * c
    below, above = c < 0, c > n - 1
    if mode == "mirror":
        period = 2 * n - 2
        low = period * fnp.floor(-c / period) + c
        low = fnp.where(low <= 1 - n, low + period, -low)
        high = c - period * fnp.floor(c / period)
        high = fnp.where(high >= n, period - high, high)
    elif mode == "reflect":
        period = 2 * n
        low = fnp.where(c < -period, period * fnp.floor(-c / period) + c, c)
        low = fnp.where(low < -n, low + period, fnp.where(low > -1e-15, 1e-15, -low) - 1)
        high = c - period * fnp.floor(c / period)
        high = fnp.where(high >= n, period - high - 1, high)
    else:
        period = n - 1 if mode == "wrap" else n
        low = c + period * (fnp.floor(-c / period) + 1)
        high = c - period * fnp.floor(c / period)
    return fnp.where(below, low, fnp.where(above, high, c))


def _weights(u: Array, order: int) -> list[Array]:
    """Return the values at ``u``, between 0 and 1, of the B-splines that are not zero there (Cox and de Boor)."""
    found: list[Any] = [1.0]
    for degree in range(1, order + 1):
        saved: Any = 0.0
        for i, term in enumerate(found):
            term = term / degree
            found[i] = saved + (i + 1 - u) * term
            saved = (u + (degree - 1 - i)) * term
        found.append(saved)
    return found


def _neighbours_and_weights(c: Array, n: int, settings: InterpolationSettings) -> tuple[Array, list[Array], Any]:
    """Return the elements of an axis of ``n`` that coordinates ``c`` read, their weights, and which elements exist.

    The elements are along a new first axis. The last result is None if all exist, in any mode except "grid-constant".
    """
    order = settings.order
    floor = fnp.floor(c) if order & 1 else fnp.floor(c + 0.5)
    if order == 1 and n > 1 and settings.mode in ("constant", "nearest", "mirror", "wrap"):
        floor = fnp.where(c == n - 1, n - 2.0, floor)  # at the last element the slope is the slope before it
    share = c - floor if order & 1 else c + 0.5 - floor
    reach = order + 2
    # coordinates that are not mapped inside may be clipped: places far beyond the border are all alike
    start = fnp.astype(fnp.clip(floor, -reach, n + reach), int) - order // 2
    steps = np.arange(order + 1).reshape(-1, *[1] * len(backend.shape_of(c)))
    places = start + steps
    table = sources(n, 2 * reach, 2 * reach, _BORDER_MODES.get(settings.mode, settings.mode))
    there = (places >= 0) & (places < n) if settings.mode == "grid-constant" else None
    return getitem(table, places + 2 * reach), _weights(share, order), there


def sampled(x: Array, coordinates: Sequence[Array], settings: InterpolationSettings) -> tuple[Array, Any]:
    """Read the coefficients ``x`` at ``coordinates`` along its last axes, one array of coordinates for each.

    Returns:
        The values, with the leading axes of ``x`` in front; which coordinates lie outside, None unless the mode is
        "constant".
    """
    rank, shape = len(coordinates), backend.shape_of(x)
    batch, lengths = shape[: len(shape) - rank], shape[len(shape) - rank :]
    out = backend.shape_of(coordinates[0])
    flat, there, outside, weights = 0, None, None, []
    for i, (c, n) in enumerate(zip(coordinates, lengths, strict=True)):
        c = c + settings.border if settings.border else c
        if settings.mode == "constant":
            beyond = (c < 0) | (c > n - 1)
            outside = beyond if outside is None else outside | beyond
        places, shares, exists = _neighbours_and_weights(_inside(c, n, settings.mode), n, settings)
        to = (*(1,) * i, settings.order + 1, *(1,) * (rank - 1 - i), *out)
        flat = flat + reshape(places, to=to) * prod(lengths[i + 1 :])
        weights.append(shares)
        if exists is not None:
            exists = reshape(exists, to=to)
            there = exists if there is None else there & exists
    values = getitem(reshape(x, to=(*batch, prod(lengths))), (*(slice(None),) * len(batch), flat))
    if there is not None:
        values = fnp.where(there, values, settings.cval)
    return _weighted(values, weights, batch, out), outside


def _weighted(values: Array, weights: list[list[Array]], batch: Shape, out: Shape) -> Array:
    """Sum over the elements that each coordinate reads, along one axis after the other."""
    skipped = (slice(None),) * len(batch)
    for shares in weights:
        if len(shares) == 1:
            values = getitem(values, (*skipped, 0))
            continue
        between = (1,) * (len(backend.shape_of(values)) - len(batch) - 1 - len(out))
        share = reshape(fnp.stack(shares), to=(len(shares), *between, *out))
        values = fnp.sum(values * share, axis=len(batch))
    return values
