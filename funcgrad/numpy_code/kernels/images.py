"""Compiled functions of ``scipy.ndimage``: Fourier filters, and filters and transforms with users' functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.conversions import is_traced
from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy
from funcgrad.primitives.norms import sqrt_flat_at_zero

#: Names in NumPy's ``pad`` for the borders that SciPy numbers.
_BORDERS = ("edge", "wrap", "symmetric", "reflect", "constant", "wrap", "constant")


def _waves(shape: tuple[int, ...], n: int, axis: int) -> list[np.ndarray]:
    """Return the frequencies along each axis; ``n`` is the length of the real-transformed ``axis``, or -1."""
    waves = []
    for i, length in enumerate(shape):
        wave = np.arange(length) / n if n >= 0 and i == axis else np.fft.fftfreq(length)
        waves.append(wave.reshape([-1 if j == i else 1 for j in range(len(shape))]))
    return waves


def _fourier_filter(input: Any, widths: Any, n: int, axis: int, output: Any, kind: int) -> None:
    """Multiply the transform by that of a Gaussian, a box or an ellipsoid; the ellipsoid is SciPy's."""
    input = fnp.asarray(input)
    waves = [w * wave for w, wave in zip(widths, _waves(input.shape, n, axis), strict=True)] if kind < 2 else []
    if kind == 0:
        output[...] = input * math.prod([fnp.exp(-2 * (np.pi * wave) ** 2) for wave in waves])
    elif kind == 1:
        boxes = [fnp.where(w > 0, fnp.sinc(wave), 0.0) for w, wave in zip(widths, waves, strict=True)]
        output[...] = input * math.prod(boxes)
    elif is_traced(widths):
        raise ConversionError(
            f"ndimage.fourier_ellipsoid: size has no derivative, got a traced {describe(widths)}. Pass plain numbers, "
            "or take fourier_gaussian or fourier_uniform."
        )
    else:
        ellipsoid = import_scipy("ndimage.fourier_ellipsoid", "scipy.ndimage").fourier_ellipsoid
        output[...] = input * ellipsoid(np.ones(input.shape), np.asarray(widths), n, axis)


def _fourier_shift(input: Any, shifts: Any, n: int, axis: int, output: Any) -> None:
    input = fnp.asarray(input)
    waves = _waves(input.shape, n, axis)
    output[...] = input * math.prod([fnp.exp(-2j * np.pi * (s * w)) for s, w in zip(shifts, waves, strict=True)])


def _bordered(x: Any, lengths: Any, origins: Any, mode: int, cval: Any) -> Any:
    """Return ``x`` extended by what windows of these lengths see beyond its borders."""
    before = [m // 2 + int(o) for m, o in zip(lengths, origins, strict=True)]
    widths = [(b, m - 1 - b) for m, b in zip(lengths, before, strict=True)]
    border = _BORDERS[mode] if x.size else "constant"
    return fnp.pad(x, widths, border, **({"constant_values": cval} if border == "constant" else {}))


def _binary_erosion(input: Any, structure: Any, mask: Any, output: Any, *rest: Any) -> Any:
    """Compute ``_nd_image.binary_erosion``. It asks only which elements are 0, so its result carries no derivative."""
    erode = import_scipy("ndimage.binary_erosion", "scipy.ndimage._nd_image").binary_erosion
    made = np.empty(fnp.shape(output), output.dtype)
    given = [None if x is None else np.asarray(fnp.not_equal(x, 0)) for x in (input, structure, mask)]
    found = erode(*given, made, *rest)
    output[...] = made
    return found


def _windows(x: Any, footprint: np.ndarray, origins: Any, mode: int, cval: Any) -> Any:
    """Return the elements in the window of each element of ``x``, along a new first axis."""
    wide = _bordered(x, footprint.shape, origins, mode, cval)
    starts = np.argwhere(footprint)
    return fnp.stack([wide[tuple([slice(i, i + n) for i, n in zip(at, x.shape, strict=True)])] for at in starts])


def _min_or_max_filter(
    input: Any, footprint: Any, structure: Any, output: Any, mode: int, cval: Any, origins: Any, minimum: Any
) -> None:
    """Write the extremum in each window, to whose elements ``structure`` is added, or for a minimum subtracted."""
    x, footprint = fnp.asarray(input), np.asarray(fnp.not_equal(footprint, 0))
    windows = _windows(x, footprint, origins, mode, cval)
    if structure is not None:
        heights = fnp.asarray(structure)[footprint].reshape((-1, *(1,) * x.ndim))
        windows = windows - heights if minimum else windows + heights
    chosen = (fnp.argmin if minimum else fnp.argmax)(windows, axis=0, keepdims=True)
    output[...] = fnp.take_along_axis(windows, chosen, axis=0)[0]


def _generic_filter(
    input: Any,
    function: Callable[..., Any],
    footprint: Any,
    output: Any,
    mode: int,
    cval: Any,
    origins: Any,
    arguments: Any,
    keywords: Any,
) -> None:
    """Apply ``function`` to the elements in each window."""
    x, footprint = fnp.asarray(input), np.asarray(footprint)
    windows = _windows(x, footprint, origins, mode, cval)
    output[...] = fnp.apply_along_axis(function, 0, windows, *arguments, **keywords)


def _generic_filter1d(
    input: Any,
    function: Callable[..., Any],
    size: int,
    axis: int,
    output: Any,
    mode: int,
    cval: Any,
    origin: int,
    arguments: Any,
    keywords: Any,
) -> None:
    """Call ``function`` with each line, extended beyond its borders, and a line to which it writes its result."""
    x = fnp.moveaxis(fnp.asarray(input), axis, -1)
    lengths, origins = [1] * (x.ndim - 1) + [size], [0] * (x.ndim - 1) + [origin]

    def line(wide: Any) -> Any:
        made = fnp.zeros(x.shape[-1:])
        function(wide, made, *arguments, **keywords)
        return made

    output[...] = fnp.moveaxis(fnp.apply_along_axis(line, -1, _bordered(x, lengths, origins, mode, cval)), -1, axis)


def _geometric_transform(
    input: Any,
    mapping: Callable[..., Any],
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
) -> Any:
    """Compute ``scipy.ndimage.geometric_transform``: read the array at ``mapping`` of each index of the result."""
    shape = fnp.shape(input) if output_shape is None else tuple(output_shape)
    at = [fnp.stack(list(mapping(i, *extra_arguments, **(extra_keywords or {})))) for i in np.ndindex(shape)]
    coordinates = fnp.reshape(fnp.stack(at, axis=1) * 1.0, (fnp.ndim(input), *shape))
    read = own("scipy.ndimage").map_coordinates
    return read(input, coordinates, output, order, mode, cval, prefilter)


def _generic_gradient_magnitude(
    input: Any,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """Compute ``scipy.ndimage.generic_gradient_magnitude``; a zero gradient's length has the derivative 0."""
    support = import_scipy("ndimage.generic_gradient_magnitude", "scipy.ndimage._ni_support")
    x = fnp.asarray(input)
    axes = support._check_axes(axes, x.ndim)
    given = isinstance(output, (np.ndarray, Tracer))
    made = output if given else fnp.zeros(x.shape, x.dtype if output is None else output)
    if not axes:
        made[...] = x
        return made
    first, *others = zip(axes, support._normalize_sequence(mode, len(axes)), strict=True)
    rest = extra_arguments, extra_keywords or {}
    derivative(x, first[0], made, first[1], cval, *rest[0], **rest[1])
    total = made * made
    for axis, how in others:
        along = derivative(x, axis, made.dtype, how, cval, *rest[0], **rest[1])
        total = total + along * along
    made[...] = sqrt_flat_at_zero(total)
    return made


IMAGES: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.ndimage._nd_image", "binary_erosion"): _binary_erosion,
    ("scipy.ndimage._nd_image", "fourier_filter"): _fourier_filter,
    ("scipy.ndimage._nd_image", "fourier_shift"): _fourier_shift,
    ("scipy.ndimage._nd_image", "generic_filter"): _generic_filter,
    ("scipy.ndimage._nd_image", "generic_filter1d"): _generic_filter1d,
    ("scipy.ndimage._nd_image", "min_or_max_filter"): _min_or_max_filter,
    ("scipy.ndimage._filters", "generic_gradient_magnitude"): _generic_gradient_magnitude,
    ("scipy.ndimage._interpolation", "geometric_transform"): _geometric_transform,
}
