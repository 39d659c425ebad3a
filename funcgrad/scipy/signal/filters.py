"""Convolution, correlation, recursive filters along an axis, Savitzky-Golay filters, and detrending."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.graph import report_answer
from funcgrad.kinds.linear import conj
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain_zero
from funcgrad.numpy.reducing import as_inexact
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.signals import convolve as convolve_last
from funcgrad.scipy.own_code import mirrors
from funcgrad.scipy.signal.operations import all_pole, convolve_axes
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = [
    "detrend", "lfilter", "lfilter_zi", "savgol_filter", "sosfilt", "sosfiltfilt", "convolve", "convolve2d",
    "correlate2d",
]  # fmt: skip


def constant(values: np.ndarray, like: Array) -> np.ndarray:
    """Return ``values``, in single precision if ``like`` is."""
    return values.astype(np.float32) if backend.dtype_of(like).char in "fF" else values


def _coefficients(call: str, b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Return both polynomials, divided by the first coefficient of the denominator."""
    b, a = [fnp.atleast_1d(as_value(c)) for c in (b, a)]
    if len(backend.shape_of(b)) != 1 or len(backend.shape_of(a)) != 1:
        raise ShapeError(f"{call}: b and a must be vectors, got {backend.shape_of(b)} and {backend.shape_of(a)}.")
    return b / a[0], a / a[0]


@mirrors
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """Filter the signal ``x`` by the rational function ``b / a``; differentiable in ``b``, ``a``, ``x`` and ``zi``.

    Args:
        b: coefficients of the numerator.
        a: coefficients of the denominator; the first is not zero.
        x: the signal.
        axis: the axis of time.
        zi: the state before the first sample; its length along the axis is that of the longer polynomial minus 1.

    Returns:
        The filtered signal; with ``zi`` also the state after the last sample.

    Raises:
        ValueError: coefficients are not vectors, or the signal is shorter than its state.

    Example:
        >>> from funcgrad.scipy.signal import lfilter
        >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0])
        array([1.  , 0.5 , 0.25])
    """
    b, a, x = as_value(b), as_value(a), as_value(x)
    b, a = _coefficients("signal.lfilter", b, a)
    x = fnp.moveaxis(x, axis, -1)
    state = None if zi is None else fnp.moveaxis(as_value(zi), axis, -1)
    y, final_state = _filtered(b, a, x, state)
    y = fnp.moveaxis(y, -1, axis)
    return y if zi is None else (y, fnp.moveaxis(final_state, -1, axis))


def _filtered(b: Array, a: Array, x: Array, state: Array | None) -> tuple[Array, Any]:
    """Filter along the last axis. A state adds to the first samples that enter the recursion."""
    n = backend.shape_of(x)[-1]
    entering = convolve_last(b, x, start=0, length=n)
    order = max(backend.shape_of(b)[0], backend.shape_of(a)[0]) - 1
    if state is not None and order:
        if n < order:
            raise ShapeError(f"signal.lfilter: with zi the signal must be as long as the state, got {n} for {order}.")
        state = fnp.broadcast_to(state, (*backend.shape_of(x)[:-1], order))
        entering = fnp.concatenate([entering[..., :order] + state, entering[..., order:]], axis=-1)
    y = all_pole(a[1:], entering) if backend.shape_of(a)[0] > 1 else entering
    if state is None or not order:
        return y, state
    b, a = [
        fnp.concatenate([c, 0.0 * c[:1] * constant(np.ones(order + 1 - backend.shape_of(c)[0]), c)]) for c in (b, a)
    ]
    # the terms that past samples still add to the next ones
    last_x, last_y = x[..., n - order :], y[..., n - order :]
    rest = convolve_last(b, last_x, start=order, length=order) - convolve_last(a, last_y, start=order, length=order)
    return y, rest


@mirrors
def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """Return the state of ``lfilter`` in which a constant signal of 1 has no transient.

    Raises:
        ZeroDivisionError: the coefficients of the denominator sum to 0.

    Example:
        >>> from funcgrad.scipy.signal import lfilter_zi
        >>> lfilter_zi([1.0], [1.0, -0.5])
        array([1.])
    """
    b, a = as_value(b), as_value(a)
    b, a = _coefficients("signal.lfilter_zi", b, a)
    n = max(backend.shape_of(b)[0], backend.shape_of(a)[0])
    b, a = [fnp.pad(c, (0, n - backend.shape_of(c)[0])) for c in (b, a)]
    total = fnp.sum(a)
    if any_true(lambda total: total == 0, total):
        raise ZeroDivisionError(
            "signal.lfilter_zi: the coefficients of the denominator sum to 0, so that a constant signal grows without "
            f"end, got a={describe(a)}. Choose a stable filter."
        )
    # The filter turns a constant 1 into sum(b) / sum(a); the state is the share that later coefficients still add.
    return fnp.flip(fnp.cumsum(fnp.flip(b - a * (fnp.sum(b) / total))))[1:]


def _extended(x: Array, padtype: str | None, edge: int) -> Array:
    """Return ``x`` with ``edge`` more samples on both sides of the last axis."""
    n = backend.shape_of(x)[-1]
    if padtype not in (None, "odd", "even", "constant"):
        raise ShapeError(f"signal.sosfiltfilt: padtype must be odd, even, constant or None, got {padtype!r}.")
    if n <= edge:
        raise ShapeError(f"signal.sosfiltfilt: the signal must be longer than padlen={edge}, got {n} samples.")
    if not edge:
        return x
    first, last = x[..., :1], x[..., -1:]
    before, after = x[..., edge:0:-1], x[..., -2 : -edge - 2 : -1]
    if padtype == "odd":
        before, after = 2.0 * first - before, 2.0 * last - after
    elif padtype == "constant":
        before, after = [end * constant(np.ones(edge), x) for end in (first, last)]
    return fnp.concatenate([before, x, after], axis=-1)


@mirrors
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """Filter the signal ``x`` by second-order sections, one after the other.

    Args:
        sos: the sections, one in each row: three coefficients of the numerator and three of the denominator.
        x: the signal.
        axis: the axis of time.
        zi: the states before the first sample, of shape (sections, ..., 2, ...).

    Returns:
        The filtered signal; with ``zi`` also the states after the last sample.

    Raises:
        ValueError: rows do not have length 6, or a signal has one sample, with ``zi``.

    Example:
        >>> from funcgrad.scipy.signal import sosfilt
        >>> sosfilt([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]], [1.0, 2.0, 3.0])
        array([1., 3., 5.])
    """
    sos, x = as_value(sos), as_value(x)
    sections = _sections("signal.sosfilt", sos)
    axis = axis % len(backend.shape_of(x))
    states = None if zi is None else fnp.moveaxis(as_value(zi), axis + 1, -1)
    y, final_states = _filter_sections(sections, fnp.moveaxis(x, axis, -1), states)
    y = fnp.moveaxis(y, -1, axis)
    return y if zi is None else (y, fnp.moveaxis(fnp.stack(final_states), -1, axis + 1))


def _sections(call: str, sos: Array) -> list[tuple[Array, Array]]:
    """Return both polynomials of each section."""
    shape = backend.shape_of(sos)
    if len(shape) != 2 or shape[1] != 6:
        raise ShapeError(f"{call}: sos must have rows of six coefficients, got {list(shape)}.")
    return [_coefficients(call, sos[i, :3], sos[i, 3:]) for i in range(shape[0])]


def _filter_sections(sections: list[tuple[Array, Array]], x: Array, states: Any) -> tuple[Array, list[Any]]:
    """Filter by one section after the other along the last axis; return the signal and all states after its end."""
    final_states = []
    for i, (b, a) in enumerate(sections):
        x, state = _filtered(b, a, x, None if states is None else states[i])
        final_states.append(state)
    return x, final_states


@mirrors
def sosfiltfilt(
    sos: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Array:
    """Filter the signal ``x`` forwards and backwards by second-order sections, so that its phase is unchanged.

    Args:
        sos: the sections, one in each row: three coefficients of the numerator and three of the denominator.
        x: the signal.
        axis: the axis of time.
        padtype: how the signal is extended at both ends: "odd", "even", "constant", or None.
        padlen: the number of samples to extend it by; the default is three times the length of the filter.

    Raises:
        ValueError: the signal is not longer than ``padlen``, ``padtype`` is unknown, or rows do not have length 6.
        TypeError: ``padlen`` is not given, and ``jax.jit`` traces the coefficients.

    Example:
        >>> from funcgrad.scipy.signal import sosfiltfilt
        >>> sosfiltfilt([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], [0.0, 1.0, 0.0, 0.0], padlen=0)
        array([0.25, 0.5 , 0.25, 0.  ])
    """
    sos, x = as_value(sos), as_value(x)
    sections = _sections("signal.sosfiltfilt", sos)
    edge = 0 if padtype is None else _taps(sos) * 3 if padlen is None else padlen
    x = _extended(fnp.moveaxis(x, axis, -1), padtype, edge)
    states, gain = [], 1.0  # states in which a constant signal, amplified by the sections before, has no transient
    for b, a in sections:
        states.append(lfilter_zi(b, a) * gain)
        gain = gain * fnp.sum(b) / fnp.sum(a)
    for _ in range(2):
        x = fnp.flip(_filter_sections(sections, x, [state * x[..., :1] for state in states])[0], axis=-1)
    n = backend.shape_of(x)[-1]
    return fnp.moveaxis(x[..., edge : n - edge], -1, axis)


def _taps(sos: Array) -> int:
    """Return the length of the whole filter; first-order sections are shorter."""
    values = report_answer(sos, concrete_or_none(sos))
    if values is None:
        raise InputError("signal.sosfiltfilt: padlen is needed where sos is compiled by JAX, got None. Pass a number.")
    short = (values == 0).reshape(-1, *values.shape[-2:]).all(axis=0)
    return 2 * len(short) + 1 - int(min(short[:, 2].sum(), short[:, 5].sum()))


@mirrors
def savgol_filter(
    x: ArrayLike,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Array:
    """Smooth the signal ``x`` by least squares polynomials in a moving window (Savitzky and Golay, 1964).

    Args:
        x: the signal.
        window_length: the number of samples of a window; odd for traced values.
        polyorder: the order of the polynomials.
        deriv: the order of the derivative of the polynomials; 0 is the polynomials themselves.
        delta: the time from one sample to the next.
        axis: the axis of time.
        mode: how the ends are computed: "interp" by the polynomials of the first and last window; "mirror", "nearest",
            "wrap" and "constant" by samples beyond the ends.
        cval: the value of the samples beyond the ends for "constant".

    Raises:
        ValueError: ``mode`` is unknown, the window is longer than the signal, or ``polyorder`` is not less than
            ``window_length``.
        TypeError: ``window_length`` is even, with traced values.

    Example:
        >>> from funcgrad.scipy.signal import savgol_filter
        >>> savgol_filter([2.0, 2.0, 5.0, 2.0, 1.0], 3, 1).round(6)
        array([1.5     , 3.      , 3.      , 2.666667, 0.666667])
    """
    if window_length % 2 == 0:
        raise InputError(f"signal.savgol_filter: window_length must be odd for traced values, got {window_length}.")
    x = fnp.moveaxis(fnp.real(as_inexact(x)), axis, -1)  # SciPy drops the imaginary part too
    n, half = backend.shape_of(x)[-1], window_length // 2
    # each row computes one sample of a smoothed window from the whole window
    rows = savgol_filter(np.eye(window_length), window_length, polyorder, deriv, axis=0)
    rows = constant(rows, x) / fnp.astype(as_value(delta) ** deriv, np.empty(0, backend.dtype_of(x)).real.dtype)
    if mode != "interp":
        x = _continued(x, half, mode, cval)
    elif n < window_length:
        raise ShapeError(f"signal.savgol_filter: the signal must be as long as the window, got {n} samples.")
    inside = backend.shape_of(x)[-1] - window_length + 1
    y = convolve_last(rows[half, ::-1], x, start=window_length - 1, length=inside)
    if mode == "interp":
        first, last = rows[:half].T, rows[half + 1 :].T
        y = fnp.concatenate([x[..., :window_length] @ first, y, x[..., n - window_length :] @ last], axis=-1)
    return fnp.moveaxis(y, -1, axis)


def _continued(x: Array, half: int, mode: str, cval: float) -> Array:
    """Return ``x`` with ``half`` more samples on both sides of the last axis; modes are those of ``scipy.ndimage``."""
    modes: dict[str, dict[str, Any]] = {
        "mirror": {"mode": "reflect"},
        "nearest": {"mode": "edge"},
        "wrap": {"mode": "wrap"},
        "constant": {"mode": "constant", "constant_values": cval},
    }
    if mode not in modes:
        raise ShapeError(f"signal.savgol_filter: mode must be interp, {', '.join(modes)}, got {mode!r}.")
    return fnp.pad(x, [(0, 0)] * (len(backend.shape_of(x)) - 1) + [(half, half)], **modes[mode])


@mirrors
def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: ArrayLike = 0, overwrite_data: bool = False
) -> Array:
    """Remove the mean of ``data``, or its least squares line.

    Args:
        data: the samples.
        axis: the axis of time.
        type: "linear" or "constant".
        bp: indices at which new lines begin.
        overwrite_data: no effect.

    Raises:
        ValueError: ``type`` is unknown, or a break is outside of the data.

    Example:
        >>> from funcgrad.scipy.signal import detrend
        >>> detrend([1.0, 2.0, 4.0], type="constant").round(6)
        array([-1.333333, -0.333333,  1.666667])
    """
    x = as_value(data)
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    if type in ("constant", "c"):
        return x - fnp.mean(x, axis=axis, keepdims=True)
    x = fnp.moveaxis(x, axis, -1)
    n = backend.shape_of(x)[-1]
    breaks = np.unique(np.concatenate([[0], np.ravel(bp), [n]])).astype(int)
    if breaks[-1] > n:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    pieces = []
    for start, stop in itertools.pairwise(breaks):
        length = stop - start
        # an orthonormal basis of the lines: the projection of the samples onto it is the trend
        basis = np.linalg.qr(np.stack([np.ones(length), np.arange(1, length + 1) / length], 1))[0]
        basis, piece = constant(basis, x), x[..., start:stop]
        pieces.append(piece - fnp.matmul(fnp.matmul(piece, basis), basis.T))
    return fnp.moveaxis(fnp.concatenate(pieces, axis=-1), -1, axis)


def _part(call: str, mode: str, x: Shape, y: Shape) -> tuple[slice, ...]:
    """Return the slices of the full convolution that ``mode`` selects."""
    if mode not in ("full", "same", "valid"):
        raise ShapeError(f"{call}: mode must be full, same or valid, got {mode!r}.")
    if mode == "valid" and not (
        all(n >= m for n, m in zip(x, y, strict=True)) or all(n <= m for n, m in zip(x, y, strict=True))
    ):
        raise ShapeError(f"{call}: for valid one array must be at least as long in all axes, got {x} and {y}.")
    parts = []
    for n, m in zip(x, y, strict=True):
        length = {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]
        start = (n + m - 1 - length) // 2
        parts.append(slice(start, start + length))
    return tuple(parts)


def _convolved(call: str, x: Array, y: Array, mode: str, method: str) -> Array:
    shapes = backend.shape_of(x), backend.shape_of(y)
    if len(shapes[0]) != len(shapes[1]):
        raise ShapeError(f"{call}: both arrays must have the same number of axes, got {shapes[0]} and {shapes[1]}.")
    if not shapes[0]:
        return x * y
    part = _part(call, mode, *shapes)
    return getitem(convolve_axes(x, y, rank=len(part), method=method), part)


@mirrors
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Array:
    """Convolve two arrays over all axes.

    Args:
        in1: an array.
        in2: an array with the same number of axes.
        mode: "full" for all, "same" for the middle part with the shape of ``in1``, "valid" for the part where one array
            lies within the other.
        method: "direct", "fft", or "auto" for the faster of the two.

    Raises:
        ValueError: shapes do not match, or ``mode`` is unknown.

    Example:
        >>> from funcgrad.scipy.signal import convolve
        >>> convolve([1.0, 2.0, 3.0], [1.0, 10.0])
        array([ 1., 12., 23., 30.])
    """
    x, y = as_value(in1), as_value(in2)
    return _convolved("signal.convolve", x, y, mode, method)


def _reversed_conjugate(y: Array) -> Array:
    """Return ``y`` reversed in all axes, and conjugated."""
    y = fnp.flip(y)
    return conj(y) if backend.dtype_of(y).kind == "c" else y


@mirrors
def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Array:
    """Convolve two matrices.

    Args:
        in1: a matrix.
        in2: a matrix.
        mode: as for ``convolve``.
        boundary: the values around ``in1``: "fill" a constant, "wrap" ``in1`` repeated, "symm" its mirror image.
        fillvalue: the constant for "fill".

    Raises:
        ValueError: shapes do not match, or ``mode`` or ``boundary`` is unknown.

    Example:
        >>> from funcgrad.scipy.signal import convolve2d
        >>> convolve2d([[1.0, 2.0]], [[1.0, 10.0]], "same", boundary="wrap")
        array([[21., 12.]])
    """
    return _convolve_matrices("signal.convolve2d", as_value(in1), as_value(in2), mode, boundary, fillvalue)


def _convolve_matrices(
    call: str, x: Array, y: Array, mode: str, boundary: str, fillvalue: float, later: int = 0
) -> Array:
    """Convolve two matrices; ``later=1`` moves the middle part by one along axes where ``y`` has even length."""
    shapes = backend.shape_of(x), backend.shape_of(y)
    if any(len(shape) != 2 for shape in shapes):
        raise ShapeError(f"{call}: both arrays must be matrices, got {shapes[0]} and {shapes[1]}.")
    plain = boundary == "fill" and is_plain_zero(fillvalue)
    if mode == "valid" or (plain and mode != "same"):
        return _convolved(call, x, y, mode, "direct")
    modes = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise ShapeError(f"{call}: boundary must be fill, wrap or symm, got {boundary!r}.")
    part = _part(call, mode, *shapes)
    if mode == "same":
        starts = [(m - 1 + later) // 2 for m in shapes[1]]
        part = tuple([slice(i, i + n) for i, n in zip(starts, shapes[0], strict=True)])
    if plain:
        return getitem(_convolved(call, x, y, "full", "direct"), part)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    around = fnp.pad(x, [(m - 1, m - 1) for m in shapes[1]], modes[boundary], **options)
    whole = convolve_axes(around, y, rank=2, method="direct")
    inner = tuple([slice(m - 1, n) for n, m in zip(backend.shape_of(around), shapes[1], strict=True)])
    return getitem(getitem(whole, inner), part)


@mirrors
def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Array:
    """Cross-correlate two matrices; arguments as for ``convolve2d``.

    Example:
        >>> from funcgrad.scipy.signal import correlate2d
        >>> correlate2d([[1.0, 2.0]], [[1.0, 10.0]])
        array([[10., 21.,  2.]])
    """
    x, y = as_value(in1), as_value(in2)
    if mode == "valid" and backend.shape_of(x) < backend.shape_of(y):  # SciPy exchanges them, and conjugates the other
        x, y = conj(x), conj(y)
    # The middle part of SciPy starts one sample later than for convolve2d along axes of even length.
    return _convolve_matrices("signal.correlate2d", x, _reversed_conjugate(y), mode, boundary, fillvalue, later=1)
