"""Compiled functions of ``scipy.signal`` that ``funcgrad.scipy.signal`` does not have: resampling, peaks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.numpy.plain_values.peeking import is_plain_zero, shared_numbers
from funcgrad.numpy_code.conversions import holds_traced, with_writable_results
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy
from funcgrad.primitives.signals import convolve

#: Names in NumPy's ``pad`` for the extension modes of ``upfirdn``.
_CONTINUED = {
    **{mode: mode for mode in ("symmetric", "reflect", "edge", "wrap")},
    "antisymmetric": "symmetric",
    "antireflect": "reflect",
}


def _continued(x: Any, by: int, mode: str, cval: Any) -> Any:
    """Return ``x`` extended by ``by`` samples on both sides of its last axis, as ``upfirdn`` does."""
    n = x.shape[-1]
    widths = [(0, 0)] * (x.ndim - 1) + [(by, by)]
    if mode in ("line", "smooth"):
        step = (x[..., -1:] - x[..., :1]) / max(n - 1, 1)
        first, last = (
            (step, step) if mode == "line" or n < 2 else (x[..., 1:2] - x[..., :1], x[..., -1:] - x[..., -2:-1])
        )
        away = np.arange(1.0, by + 1)
        return fnp.concatenate([x[..., :1] - first * away[::-1], x, x[..., -1:] + last * away], axis=-1)
    if mode in ("constant", None):
        return fnp.pad(x, widths, constant_values=cval)
    if mode not in _CONTINUED:
        raise InputError(f"signal.upfirdn: mode must be one of SciPy's, got {mode!r}. Take constant.")
    wide = fnp.pad(x, widths, _CONTINUED[mode], **({"reflect_type": "odd"} if mode == "antireflect" else {}))
    turned = (np.arange(-by, n + by) // n) % 2 if mode == "antisymmetric" else 0
    return wide * np.where(turned, -1.0, 1.0)


def _upfirdn(
    h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: float = 0
) -> Any:
    """Compute ``scipy.signal.upfirdn``: insert zeros between samples, filter, and keep every ``down``-th sample."""
    h, x = fnp.asarray(h), fnp.moveaxis(fnp.asarray(x), axis, -1)
    more = 0 if mode in ("constant", None) and is_plain_zero(cval) else len(h) // up + 1
    size, dtype = (x.shape[-1] - 1) * up + len(h), fnp.result_type(x, h, np.float32)
    x = _continued(x, more, mode, cval) if more else x
    wide = fnp.zeros((*x.shape[:-1], (x.shape[-1] - 1) * up + 1), dtype)
    wide[..., ::up] = x
    found = convolve(fnp.astype(h, dtype), wide, start=more * up, length=size)
    return fnp.moveaxis(found[..., ::down], -1, axis)


def _sepfir2d(image: Any, hrow: Any, hcol: Any) -> Any:
    """Compute ``scipy.signal.sepfir2d``: filter both axes of the image, extended by reflection."""
    along = own("scipy.ndimage").convolve1d
    return along(along(fnp.asarray(image), hrow, 1, mode="reflect"), hcol, 0, mode="reflect")


def _sawtooth(t: Any, width: Any = 1) -> Any:
    t, w = fnp.asarray(t) * 1.0, fnp.asarray(width) * 1.0
    share = fnp.mod(t, 2 * np.pi) / np.pi
    rises = share < 2 * w
    up = share / fnp.where(w > 0, w, 1.0) - 1
    down = (w + 1 - share) / fnp.where(w < 1, 1 - w, 1.0)
    found = fnp.where((w >= 0) & (w <= 1), fnp.where(rises, up, down), np.nan)
    return fnp.astype(found, float if _widens() else fnp.result_type(t, width))


@cache
def _widens() -> bool:
    """Whether SciPy's ``sawtooth`` returns double precision for single, as before SciPy 1.18."""
    theirs = import_scipy("signal.sawtooth", "scipy.signal").sawtooth
    return bool(theirs(np.zeros(1, np.float32)).dtype == float)


# ---- peaks -------------------------------------------------------------------------------------------------


def _call_scipy(name: str, *args: Any) -> Any:
    """Call SciPy's function with plain values: the indices that it finds do not change with the values."""
    library = import_scipy("signal.find_peaks", "scipy.signal._peak_finding_utils")
    return with_writable_results(getattr(library, name))(*[shared_numbers(a) if fnp.ndim(a) else a for a in args])


def _peak_prominences(x: Any, peaks: Any, wlen: Any) -> tuple[Any, Any, Any]:
    _, left, right = _call_scipy("_peak_prominences", x, peaks, wlen)
    return x[peaks] - fnp.maximum(x[left], x[right]), left, right


def _peak_widths(
    x: Any, peaks: Any, rel_height: Any, prominences: Any, left_bases: Any, right_bases: Any
) -> tuple[Any, Any, Any, Any]:
    """Find where a peak has its relative height, between samples by linear interpolation."""
    *_, left, right = _call_scipy("_peak_widths", x, peaks, rel_height, prominences, left_bases, right_bases)
    height = x[peaks] - prominences * rel_height

    def crossing(place: np.ndarray, step: int) -> Any:
        """Interpolate from the sample below ``height``, if there is one between ``place`` and the base."""
        low = np.floor(place) if step > 0 else np.ceil(place)
        low = low.astype(int)
        inside = place != low
        high = np.where(inside, low + step, low)
        rise = fnp.where(inside, x[high] - x[low], 1.0)
        return low + step * fnp.where(inside, (height - x[low]) / rise, 0.0)

    left, right = crossing(left, 1), crossing(right, -1)
    return right - left, height, left, right


def _medfilt2d(image: Any, size: Any) -> Any:
    """Compute ``_sigtools._medfilt2d``: the median of each rectangle of the image, extended by zeros."""
    lengths = [int(n) for n in size]
    ranked = import_scipy("signal.medfilt2d", "scipy.signal").order_filter
    return own("numpy_code").run_anywhere(ranked, (image, np.ones(lengths), np.prod(lengths) // 2), {})


def _response(system: tuple[Any, ...], w: Any) -> Any:
    """Return the response of a system at angular frequencies, from polynomials or from the matrices of its states."""
    s = 1j * fnp.asarray(w)
    if len(system) == 2:
        over, under = [fnp.polyval(fnp.ravel(fnp.asarray(x)), s) for x in system]
        return over / under
    A, B, C, D = [fnp.atleast_2d(fnp.asarray(x)) for x in system]
    return (C @ fnp.linalg.solve(s[..., None, None] * np.eye(len(A)) - A, B) + D)[..., 0, 0]


@around
def response_without_roots(built: Built, system: Any, w: Any = None, n: int = 10000) -> Any:
    """Wrap ``freqresp``, which computes with the poles and zeros: these have no derivative where they coincide."""
    if type(system).__name__ == "StateSpaceContinuous":
        system = (system.A, system.B, system.C, system.D)
    if not isinstance(system, tuple) or len(system) not in (2, 4) or not holds_traced(system):
        return built(system, w, n)
    fixed = tuple([own("transforms.stopping").stop_gradient(fnp.asarray(x)) for x in system])
    at, found = built(fixed, w, n)
    return at, found + (_response(system, at) - _response(fixed, at))


def _periodogram(data: tuple[Any, ...], turned: Any, normalize: Any, floating_mean: bool) -> Any:
    """Return what ``lombscargle`` returns, from the fit of a cosine and a sine that need not be orthogonal.

    ``turned`` is the phase at which they are orthogonal; the result does not depend on it, so it may be a constant.
    """
    x, y, freqs, weights = data
    angle = x[:, None] * freqs - turned
    c, s = fnp.cos(angle), fnp.sin(angle)
    if floating_mean:
        c, s, y = c - weights @ c, s - weights @ s, y - weights @ y
    yc, ys, cs = (weights * y) @ c, (weights * y) @ s, weights @ (c * s)
    least = np.finfo(float).epsneg
    cc, ss = [fnp.where((square := weights @ (part * part)) < least, least, square) for part in (c, s)]
    cs = fnp.where((cc <= least) | (ss <= least), 0.0, cs)
    determinant = cc * ss - cs * cs
    a, b = (ss * yc - cs * ys) / determinant, (cc * ys - cs * yc) / determinant
    if normalize == "amplitude":
        found = (a + 1j * b) * fnp.exp(1j * turned)
    elif normalize in ("normalize", True):
        found = (a * yc + b * ys) / (weights @ (y * y))
    else:
        found = (a * yc + b * ys) * (len(x) / 2)
    return fnp.squeeze(found)


@around
def periodogram_at_any_phase(
    built: Built,
    x: Any,
    y: Any,
    freqs: Any,
    precenter: Any = None,
    normalize: Any = False,
    *,
    weights: Any = None,
    floating_mean: bool = False,
) -> Any:
    """Wrap ``lombscargle``, whose phase has no derivative where every phase does, as at the frequencies of an FFT."""
    given = (x, y, freqs, fnp.ones(fnp.shape(y)) if weights is None else weights)
    fixed = [own("transforms.stopping").stop_gradient(fnp.asarray(part)) for part in given]
    options: Any = {"normalize": normalize, "floating_mean": floating_mean}
    centring = {} if precenter is None else {"precenter": precenter}
    found = built(*fixed[:3], weights=fixed[3], **options, **centring)

    def prepared(x: Any, y: Any, freqs: Any, weights: Any) -> tuple[Any, ...]:
        x, y, freqs, weights = [fnp.asarray(part, float) for part in (x, y, freqs, weights)]
        return x, y - fnp.mean(y) if precenter else y, freqs, weights / fnp.sum(weights)

    data, constants = prepared(*given), prepared(*fixed)
    x, _, freqs, weights = constants
    turns = fnp.exp(1j * x[:, None] * freqs)
    doubled = weights @ (turns * turns) - (weights @ turns) ** 2 * floating_mean
    phase = fnp.angle(doubled) / 2
    return found + (_periodogram(data, phase, **options) - _periodogram(constants, phase, **options))


_PEAKS = "scipy.signal._peak_finding_utils"
SIGNALS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.signal._upfirdn", "upfirdn"): _upfirdn,
    ("scipy.signal._sigtools", "_medfilt2d"): _medfilt2d,
    ("scipy.signal._spline", "sepfir2d"): _sepfir2d,
    ("scipy.signal._waveforms", "sawtooth"): _sawtooth,
    **{(_PEAKS, name): partial(_call_scipy, name) for name in ("_local_maxima_1d", "_select_by_peak_distance")},
    (_PEAKS, "_peak_prominences"): _peak_prominences,
    (_PEAKS, "_peak_widths"): _peak_widths,
}
