"""Filters along an axis: recursive ones, forward and backward, and the removal of trends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.primitives.filtering import all_pole
from funcgrad.primitives.signals import convolve as convolve_last
from funcgrad.typing import Array, ArrayLike

__all__ = ["detrend", "filtfilt", "hilbert", "lfilter", "lfilter_zi", "sosfilt"]


def _scipy(name: str) -> Any:
    return getattr(import_scipy(f"signal.{name}", "scipy.signal"), name)


def constant(values: np.ndarray, like: Array) -> np.ndarray:
    """``values`` in single precision where ``like`` is."""
    return values.astype(np.float32) if backend.dtype_of(like).char in "fF" else values


def _coefficients(call: str, b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Both polynomials, with 1 as the first coefficient of the denominator."""
    b, a = [fnp.atleast_1d(as_value(c)) for c in (b, a)]
    if len(backend.shape_of(b)) != 1 or len(backend.shape_of(a)) != 1:
        raise ShapeError(f"{call}: b and a must be vectors, got {backend.shape_of(b)} and {backend.shape_of(a)}.")
    return b / a[0], a / a[0]


def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """The signal ``x`` filtered by the rational function ``b / a``; differentiable in all three and in ``zi``.

    Args:
        b: coefficients of the numerator.
        a: those of the denominator; the first is not zero.
        x: the signal.
        axis: the axis of time.
        zi: the state before the first sample, as long as the longer polynomial less 1 along the axis.

    Returns:
        The filtered signal; with ``zi`` also the state behind the last sample.

    Raises:
        ValueError: coefficients that are no vectors; a signal shorter than its state.

    Example:
        >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0])
        array([1.  , 0.5 , 0.25])
    """
    b, a, x = as_value(b), as_value(a), as_value(x)
    if is_plain(b, a, x, zi):
        return _scipy("lfilter")(b, a, x, axis, zi)
    b, a = _coefficients("signal.lfilter", b, a)
    x = fnp.moveaxis(x, axis, -1)
    state = None if zi is None else fnp.moveaxis(as_value(zi), axis, -1)
    y, behind = _filtered(b, a, x, state)
    y = fnp.moveaxis(y, -1, axis)
    return y if zi is None else (y, fnp.moveaxis(behind, -1, axis))


def _filtered(b: Array, a: Array, x: Array, state: Array | None) -> tuple[Array, Any]:
    """The filter along the last axis. A state adds to the first samples that enter the recursion."""
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
    # what the samples so far still add to the next ones
    last_x, last_y = x[..., n - order :], y[..., n - order :]
    rest = convolve_last(b, last_x, start=order, length=order) - convolve_last(a, last_y, start=order, length=order)
    return y, rest


def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """The state of ``lfilter`` in which a constant signal of 1 has no transient.

    Example:
        >>> lfilter_zi([1.0], [1.0, -0.5])
        array([1.])
    """
    b, a = as_value(b), as_value(a)
    if is_plain(b, a):
        return _scipy("lfilter_zi")(b, a)
    b, a = _coefficients("signal.lfilter_zi", b, a)
    n = max(backend.shape_of(b)[0], backend.shape_of(a)[0])
    b, a = [fnp.concatenate([c, 0.0 * c[:1] * constant(np.ones(n - backend.shape_of(c)[0]), c)]) for c in (b, a)]
    # the transpose of the companion matrix of a moves the state by one sample
    companion = fnp.concatenate([-a[1:, None], constant(np.eye(n - 1, n - 2), a)], axis=1)
    return fnp.linalg.solve(constant(np.eye(n - 1), a) - companion, b[1:] - a[1:] * b[0])


def filtfilt(
    b: ArrayLike,
    a: ArrayLike,
    x: ArrayLike,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Array:
    """The signal ``x`` filtered forwards and backwards, so that its phase stays.

    Args:
        b: coefficients of the numerator.
        a: those of the denominator.
        x: the signal.
        axis: the axis of time.
        padtype: how it goes on at both ends: "odd", "even", "constant", or None.
        padlen: by how many samples; by default three times the length of the filter.
        method: "pad"; "gust" is for plain values.
        irlen: see SciPy, of plain values.

    Raises:
        ValueError: a signal that is not longer than ``padlen``; an unknown ``padtype``.
        TypeError: ``method`` "gust" with traced values.

    Example:
        >>> filtfilt([0.5, 0.5], [1.0], [0.0, 1.0, 0.0, 0.0], padlen=0)
        array([0.25, 0.5 , 0.25, 0.  ])
    """
    b, a, x = as_value(b), as_value(a), as_value(x)
    if is_plain(b, a, x):
        return _scipy("filtfilt")(b, a, x, axis, padtype, padlen, method, irlen)
    if method != "pad":
        raise InputError(f"signal.filtfilt: only method pad is differentiable, got {method!r}. Leave it out.")
    b, a = _coefficients("signal.filtfilt", b, a)
    edge = 3 * max(backend.shape_of(b)[0], backend.shape_of(a)[0]) if padlen is None else padlen
    edge = 0 if padtype is None else edge
    x = _extended(fnp.moveaxis(x, axis, -1), padtype, edge)
    zi = lfilter_zi(b, a)
    for _ in range(2):
        x = fnp.flip(_filtered(b, a, x, zi * x[..., :1])[0], axis=-1)
    n = backend.shape_of(x)[-1]
    return fnp.moveaxis(x[..., edge : n - edge], -1, axis)


def _extended(x: Array, padtype: str | None, edge: int) -> Array:
    """``x`` with ``edge`` samples more on both sides of the last axis."""
    n = backend.shape_of(x)[-1]
    if padtype not in (None, "odd", "even", "constant"):
        raise ShapeError(f"signal.filtfilt: padtype must be odd, even, constant or None, got {padtype!r}.")
    if n <= edge:
        raise ShapeError(f"signal.filtfilt: the signal must be longer than padlen={edge}, got {n} samples.")
    if not edge:
        return x
    first, last = x[..., :1], x[..., -1:]
    before, behind = x[..., edge:0:-1], x[..., -2 : -edge - 2 : -1]
    if padtype == "odd":
        before, behind = 2.0 * first - before, 2.0 * last - behind
    elif padtype == "constant":
        before, behind = [end * constant(np.ones(edge), x) for end in (first, last)]
    return fnp.concatenate([before, x, behind], axis=-1)


def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """The signal ``x`` filtered by sections of second order, one after the other.

    Args:
        sos: the sections, one in each row: three coefficients of the numerator and three of the denominator.
        x: the signal.
        axis: the axis of time.
        zi: the states, of shape (sections, ..., 2, ...); of plain values.

    Raises:
        ValueError: rows of another length.
        TypeError: ``zi`` with traced values.

    Example:
        >>> sosfilt([[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]], [1.0, 2.0, 3.0])
        array([1., 3., 5.])
    """
    sos, x = as_value(sos), as_value(x)
    if is_plain(sos, x, zi):
        return _scipy("sosfilt")(sos, x, axis, zi)
    if zi is not None:
        raise InputError("signal.sosfilt: zi is for plain values, got traced ones. Use lfilter of each section.")
    shape = backend.shape_of(sos)
    if len(shape) != 2 or shape[1] != 6:
        raise ShapeError(f"signal.sosfilt: sos must have rows of six coefficients, got {list(shape)}.")
    x = fnp.moveaxis(x, axis, -1)
    for i in range(shape[0]):
        b, a = _coefficients("signal.sosfilt", sos[i, :3], sos[i, 3:])
        x = _filtered(b, a, x, None)[0]
    return fnp.moveaxis(x, -1, axis)


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: ArrayLike = 0, overwrite_data: bool = False
) -> Array:
    """``data`` without its mean, or without the line through it that fits best.

    Args:
        data: the samples.
        axis: the axis of time.
        type: "linear" or "constant".
        bp: where new lines begin.
        overwrite_data: no effect.

    Raises:
        ValueError: another ``type``; breaks outside of the data.

    Example:
        >>> detrend([1.0, 2.0, 4.0], type="constant").round(6)
        array([-1.333333, -0.333333,  1.666667])
    """
    x = as_value(data)
    if is_plain(x):
        return _scipy("detrend")(x, axis, type, bp)
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
        # an orthonormal basis of the lines: what of the samples lies along it is the trend
        basis = np.linalg.qr(np.stack([np.ones(length), np.arange(1, length + 1) / length], 1))[0]
        basis, piece = constant(basis, x), x[..., start:stop]
        pieces.append(piece - fnp.matmul(fnp.matmul(piece, basis), basis.T))
    return fnp.moveaxis(fnp.concatenate(pieces, axis=-1), -1, axis)


def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """The analytic signal of the real signal ``x``: without its negative frequencies.

    Args:
        x: real samples.
        N: the number of components; by default the length.
        axis: the axis of time.

    Raises:
        ValueError: complex samples.

    Example:
        >>> hilbert([1.0, 0.0, -1.0, 0.0]).round(12) + 0.0
        array([ 1.+0.j,  0.+1.j, -1.+0.j,  0.-1.j])
    """
    x = as_value(x)
    if is_plain(x):
        return _scipy("hilbert")(x, N, axis)
    if backend.dtype_of(x).kind == "c":
        raise ValueError("x must be real.")
    n = backend.shape_of(x)[axis] if N is None else N
    weights = np.zeros(n)
    weights[0] = 1.0
    weights[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    spectrum = fnp.moveaxis(fnp.fft.fft(x, n, axis=axis), axis, -1)
    return fnp.moveaxis(fnp.fft.ifft(spectrum * constant(weights, spectrum)), -1, axis)
