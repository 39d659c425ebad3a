"""Short-time Fourier transforms and their inverse, and averaged spectra."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import conj
from funcgrad.numpy.axes import normalize_axes
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.indexing import add_along_axis, getitem
from funcgrad.scipy.own_code import mirrors, rebuilt
from funcgrad.scipy.signal.filters import constant
from funcgrad.scipy.signal.filters import detrend as without_trend
from funcgrad.typing import Array, ArrayLike

__all__ = ["csd", "istft"]


def _window(window: Any, length: int) -> Any:
    if isinstance(window, str) and window.endswith("_periodic"):  # a name that older versions of SciPy lack
        window = window.removesuffix("_periodic")
    return fnp.asarray(rebuilt("signal", "get_window")(window, length))


class _Frames(NamedTuple):
    """Division of a signal into segments: their window, their length, the number of samples that two share."""

    window: Any
    length: int
    shared: int
    nfft: int

    @property
    def step(self) -> int:
        """Number of samples from one segment to the next."""
        return self.length - self.shared


def _frames(call: str, window: Any, nperseg: int | None, noverlap: int | None, nfft: int | None, n: int) -> _Frames:
    is_array = not isinstance(window, (str, tuple, float)) and np.ndim(window) > 0
    if is_array:
        window = as_value(window)
        nperseg = len(window) if nperseg is None else nperseg
    length = min(256 if nperseg is None else int(nperseg), n)
    made = window if is_array else _window(window, length)
    shared = length // 2 if noverlap is None else int(noverlap)
    size = length if nfft is None else int(nfft)
    if len(made) != length or size < length or not 0 <= shared < length:
        raise ShapeError(
            f"{call}: window, nperseg, noverlap and nfft do not fit, got {len(made)}, {length}, {shared} and {size}."
        )
    return _Frames(made, length, shared, size)


def _spectrum(x: Array, frames: _Frames, detrend: Any, onesided: bool) -> Array:
    """Return the transforms of all segments along the last axis; a segment in each row."""
    n = backend.shape_of(x)[-1]
    starts = np.arange(0, n - frames.length + 1, frames.step)
    cut = getitem(x, (..., starts[:, None] + np.arange(frames.length)))
    if detrend:
        cut = detrend(cut) if callable(detrend) else without_trend(cut, type=detrend)
    cut = cut * constant(frames.window, cut)
    return (fnp.fft.rfft if onesided else fnp.fft.fft)(cut, frames.nfft)


def _scale(frames: _Frames, fs: Any, scaling: str) -> Any:
    """Return the factor that makes the transform of a sine its amplitude, or makes its square a density."""
    if scaling not in ("spectrum", "psd"):
        raise ShapeError(f"signal.stft: scaling must be spectrum or psd, got {scaling!r}.")
    return 1 / (fnp.sum(frames.window) if scaling == "spectrum" else fnp.sqrt(fs * fnp.sum(frames.window**2)))


@mirrors
def istft(
    Zxx: ArrayLike,
    fs: float = 1.0,
    window: Any = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[np.ndarray, Array]:
    """Compute the signal from its ``stft`` ``Zxx``; arguments and results are SciPy's.

    Raises:
        ValueError: lengths do not match.

    Example:
        >>> from funcgrad.scipy.signal import stft
        >>> from funcgrad.scipy.signal import istft
        >>> istft(stft(np.arange(8.0), nperseg=4)[2])[1].round(12)
        array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    Z = as_value(Zxx)
    along, across = normalize_axes((time_axis, freq_axis), len(backend.shape_of(Z)))
    Z = fnp.moveaxis(Z, (along, across), (-2, -1))
    count, bins = backend.shape_of(Z)[-2:]
    even = 2 * (bins - 1) if input_onesided else bins
    length = even if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = length if input_onesided and length == even + 1 else even
    size = int(nfft)
    frames = _frames("signal.istft", window, length, noverlap, size, max(length, size))
    cut = fnp.fft.irfft(Z, size) if input_onesided else fnp.fft.ifft(Z, size)
    cut = cut[..., : frames.length] * constant(frames.window / _scale(frames, fs, scaling), cut)
    n = frames.length + (count - 1) * frames.step
    at = (np.arange(count)[:, None] * frames.step + np.arange(frames.length)).ravel()
    flat = fnp.reshape(cut, (*backend.shape_of(cut)[:-2], count * frames.length))
    rank = len(backend.shape_of(flat))
    places = at.reshape(*[1] * (rank - 1), -1)
    x = add_along_axis(flat, places, axis=rank - 1, shape=(*backend.shape_of(flat)[:-1], n))
    weight = fnp.bincount(at, fnp.tile(frames.window**2, count), n)
    x = x / constant(fnp.where(weight > 1e-10, weight, 1.0), x)
    if boundary:
        x = x[..., frames.length // 2 : n - frames.length // 2]
    x = fnp.moveaxis(x, -1, along - (across < along))
    return np.arange(backend.shape_of(x)[0]) / fs, x  # SciPy counts the first axis, also if it is not that of time


@mirrors
def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: float = 1.0,
    window: Any = "hann_periodic",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[np.ndarray, Array]:
    """Compute the cross power spectral density of two signals by Welch's method; arguments, results are SciPy's.

    Raises:
        ValueError: lengths do not match, or ``average`` is unknown.

    Example:
        >>> from funcgrad.scipy.signal import csd
        >>> csd(np.ones(8), np.ones(8), nperseg=4, detrend=False)[1].real.round(6)
        array([2.666667, 1.333333, 0.      ])
    """
    if average not in ("mean", "median"):
        raise ShapeError(f"signal.csd: average must be mean or median, got {average!r}.")
    if scaling not in ("density", "spectrum"):
        raise ShapeError(f"signal.csd: scaling must be density or spectrum, got {scaling!r}.")
    is_own = x is y
    x, y = as_value(x), as_value(y)
    x, y = [fnp.moveaxis(s, axis, -1) for s in (x, y)]
    n = max(backend.shape_of(x)[-1], backend.shape_of(y)[-1])
    x, y = [_lengthened(s, n) for s in (x, y)]
    frames = _frames("signal.csd", window, nperseg, noverlap, nfft, n)
    onesided = return_onesided and "c" not in (backend.dtype_of(x).kind, backend.dtype_of(y).kind)
    first = _spectrum(x, frames, detrend, onesided)
    second = first if is_own else _spectrum(y, frames, detrend, onesided)
    window = frames.window
    scale = 1 / (fs * fnp.sum(window**2)) if scaling == "density" else 1 / fnp.sum(window) ** 2
    weights = np.ones(backend.shape_of(first)[-1])
    if onesided:
        weights[1 : -1 if frames.nfft % 2 == 0 else None] *= 2
    products = conj(first) * second
    found = fnp.mean(products, axis=-2) if average == "mean" else _median(products)
    found = found * (constant(weights, found) * fnp.astype(scale, np.empty(0, backend.dtype_of(found)).real.dtype))
    frequencies = (np.fft.rfftfreq if onesided else np.fft.fftfreq)(frames.nfft, 1 / fs)
    return frequencies, fnp.moveaxis(found.real if is_own else found, -1, axis)


def _median(products: Array) -> Array:
    """Return the median over the segments, divided by the ratio of the median of a periodogram to its mean."""
    count = backend.shape_of(products)[-2]
    bias = 1 + sum([1 / (2 * k + 1) - 1 / (2 * k) for k in range(1, (count - 1) // 2 + 1)])
    middle = fnp.median(products.real, axis=-2) + 1j * fnp.median(products.imag, axis=-2)
    return middle / bias


def _lengthened(x: Array, n: int) -> Array:
    """Return ``x`` padded with zeros at the end to ``n`` samples."""
    missing = n - backend.shape_of(x)[-1]
    return fnp.pad(x, [(0, 0)] * (len(backend.shape_of(x)) - 1) + [(0, missing)]) if missing else x
