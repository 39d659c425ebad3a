"""Rows for convolution, filters and spectra."""

from dataclasses import replace

import numpy as np
import scipy.signal

import funcgrad.numpy as fnp
from funcgrad.scipy import signal
from operations.spec import Sample, array, op

NO_JAX = "JAX has no such function"
SECTIONS = np.array([[1.0, 0.3, -0.2, 0.4, 0.1]])


def theirs(name, place=None):
    """Return SciPy's function, made to refuse float16, for which its dtypes are missing or inconsistent."""

    def call(*args, **kwargs):
        if any(getattr(a, "dtype", None) == np.float16 for a in args):
            raise TypeError("float16")
        found = getattr(scipy.signal, name)(*args, **kwargs)
        return found if place is None else found[place]

    return call


def with_leading_ones(coefficients):
    """Return second-order sections with the leading ones that SciPy requires."""
    return fnp.concatenate([coefficients[:, :3], 0 * coefficients[:, :1] + 1, coefficients[:, 3:]], axis=1)


def part(name, *args, place=-1, **kwargs):
    """Return functions of signals alone, for a function that also returns frequencies and times."""
    return {
        "fun": lambda *xs: getattr(signal, name)(*xs, *args, **kwargs)[place],
        "numpy": lambda *xs: theirs(name, place)(*xs, *args, **kwargs),
    }


OPS = [
    op(
        "scipy.signal.convolve",
        (array(4), array(3, seed=1)),
        Sample((array(3, 2), array(2, 2, seed=1)), {"mode": "same"}),
        complex_samples=[Sample((array(2, kind="complex"), array(3, seed=1, kind="complex")), {"mode": "valid"})],
    ),
    op("scipy.signal.fftconvolve", (array(4), array(3, seed=1), "same")),
    op("scipy.signal.oaconvolve", (array(4), array(3, seed=1), "valid"), jax=None, reason=NO_JAX),
    op(
        "scipy.signal.correlate",
        (array(4), array(3, seed=1)),
        complex_samples=[Sample((array(3, kind="complex"), array(2, seed=1, kind="complex")), {"mode": "same"})],
    ),
    op(
        "scipy.signal.convolve2d",
        (array(3, 2), array(2, 2, seed=1)),
        Sample((array(3, 2), array(2, 2, seed=1)), {"mode": "same", "boundary": "symm"}),
        jax=None,
        reason="JAX knows one boundary only",
    ),
    op("scipy.signal.correlate2d", (array(3, 2), array(2, 2, seed=1))),
    op(
        "scipy.signal.lfilter",
        (array(2), np.array([1.3, 0.4, -0.2]), array(2, 4, seed=1)),
        jax=None,
        reason=NO_JAX,
    ),
    op("scipy.signal.lfilter_zi", (array(2), np.array([1.3, 0.4, -0.2])), jax=None, reason=NO_JAX),
    op(
        "scipy.signal.sosfilt",
        (SECTIONS, array(4)),
        fun=lambda c, x: signal.sosfilt(with_leading_ones(c), x),
        numpy=lambda c, x: theirs("sosfilt")(with_leading_ones(c), x),
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.signal.filtfilt",
        Sample((array(2), np.array([1.3, 0.4]), array(6, seed=1)), {"padlen": 2}),
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.signal.sosfiltfilt",
        Sample((SECTIONS, array(5)), {"padlen": 2}),
        fun=lambda c, x, padlen: signal.sosfiltfilt(with_leading_ones(c), x, padlen=padlen),
        numpy=lambda c, x, padlen: theirs("sosfiltfilt")(with_leading_ones(c), x, padlen=padlen),
        jax=None,
        reason=NO_JAX,
    ),
    op("scipy.signal.savgol_filter", Sample((array(6, 2), 3, 1), {"axis": 0}, frozen=(1, 2)), jax=None, reason=NO_JAX),
    op("scipy.signal.detrend", Sample((array(5, 2),), {"axis": 0}), jax=None, reason="compared with SciPy"),
    op("scipy.signal.hilbert", (array(5),), jax=None, reason=NO_JAX),
    op("scipy.signal.stft", (array(6),), jax=None, reason="a tuple: test_scipy_signal.py", **part("stft", nperseg=4)),
    op(
        "scipy.signal.istft",
        (array(3, 4, kind="complex"),),
        jax=None,
        reason="a tuple: test_scipy_signal.py",
        **part("istft"),
    ),
    op("scipy.signal.welch", (array(8),), jax=None, reason="a tuple: test_scipy_signal.py", **part("welch", nperseg=4)),
    op("scipy.signal.periodogram", (array(5),), jax=None, reason="compared with SciPy", **part("periodogram")),
    op(
        "scipy.signal.csd",
        (array(7), array(8, seed=1)),
        jax=None,
        reason="a tuple: test_scipy_signal.py",
        **part("csd", nperseg=4),
    ),
    op("scipy.signal.get_window", ("hann", 4), differentiable=False, jax=None, reason=NO_JAX),
]


#: Rows for which SciPy's function refuses float16 itself.
OPS = [replace(row, numpy=theirs(row.name.rpartition(".")[2])) if row.numpy == "same name" else row for row in OPS]
