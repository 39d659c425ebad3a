"""Signals: traced values give SciPy's results, with all options; errors."""

import jax
import numpy as np
import pytest
import scipy.signal
from helpers import differences, traced

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, jacfwd, jacrev, jvp, trace, vmap
from funcgrad.errors import ConversionError, InputError, ShapeError
from funcgrad.primitives.signals import convolve
from funcgrad.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 37))
B, A = np.array([0.4, 0.3, -0.1]), np.array([1.3, 0.4, -0.2, 0.1])
SECTIONS = np.array([[0.4, 0.3, -0.1, 1.0, 0.3, -0.1], [0.4, 0.3, 0.2, 1.0, 0.2, 0.1]])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "fftconvolve", "oaconvolve", "correlate"])
def test_convolve_any_shape(name, mode):
    for shapes in (((5,), (3,)), ((3,), (5,)), ((4, 5), (3, 2)), ((2, 3), (4, 3)), ((3, 3, 2), (2, 2, 2))):
        x, y = (RNG.normal(size=shape) for shape in shapes)
        want = getattr(scipy.signal, name)(x, y, mode)
        np.testing.assert_allclose(traced(lambda x, y: getattr(signal, name)(x, y, mode), x, y), want, atol=1e-13)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("options", [("fill", 0), ("fill", 0.7), ("wrap", 0), ("symm", 0)], ids=str)
def test_convolve2d_boundaries(mode, options):
    x, y = RNG.normal(size=(5, 4)), RNG.normal(size=(2, 3))
    want = scipy.signal.convolve2d(x, y, mode, *options)
    np.testing.assert_allclose(traced(lambda x, y: signal.convolve2d(x, y, mode, *options), x, y), want, atol=1e-13)
    want = scipy.signal.correlate2d(x, y, mode)
    np.testing.assert_allclose(traced(lambda x, y: signal.correlate2d(x, y, mode), x, y), want, atol=1e-13)


def test_filters_with_states_and_axes():
    zi = RNG.normal(size=(2, 3))
    want = scipy.signal.lfilter(B, A, X, zi=zi)
    got = traced(lambda b, a, x, z: signal.lfilter(b, a, x, zi=z), B, A, X, zi)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-12)
    first, state = traced(lambda x: signal.lfilter(B, A, x[:, :20], zi=zi), X)
    second, _ = traced(lambda x: signal.lfilter(B, A, x[:, 20:], zi=state), X)
    np.testing.assert_allclose(np.concatenate([first, second], 1), want[0], atol=1e-12)
    turned = traced(lambda x: signal.lfilter(B, [2.0], x, axis=0), X.T)
    np.testing.assert_allclose(turned, scipy.signal.lfilter(B, [2.0], X.T, axis=0), atol=1e-13)
    np.testing.assert_allclose(traced(signal.lfilter_zi, B, A), scipy.signal.lfilter_zi(B, A), atol=1e-13)
    for b, a in ((B, A[:2]), (B[:1], A)):
        np.testing.assert_allclose(traced(signal.lfilter_zi, b, a), scipy.signal.lfilter_zi(b, a), atol=1e-13)
    with pytest.raises(ZeroDivisionError, match="sum to 0"):
        traced(signal.lfilter_zi, B, np.array([1.0, -1.0]))
    sections = scipy.signal.butter(4, 0.3, output="sos")
    got = traced(lambda s, x: signal.sosfilt(s, x), sections, X)
    np.testing.assert_allclose(got, scipy.signal.sosfilt(sections, X), atol=1e-13)
    states = RNG.normal(size=(2, 2, 37))  # states of two sections, for time along the first axis of X
    for axis, given in ((0, states), (1, RNG.normal(size=(2, 2, 2)))):
        want = scipy.signal.sosfilt(sections, X, axis, zi=given)
        got = traced(lambda s, x, z, axis=axis: signal.sosfilt(s, x, axis, zi=z), sections, X, given)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, atol=1e-13)
    check_grads(lambda b, a, x, z: signal.lfilter(b, a, x, zi=z), (B, A, X[:, :5], zi), order=2)
    batch = vmap(lambda a: signal.lfilter(B, a, X[0]))(np.stack([A, 2 * A]))
    np.testing.assert_allclose(batch[1], scipy.signal.lfilter(B, 2 * A, X[0]), atol=1e-13)


@pytest.mark.parametrize("padtype", ["odd", "even", "constant", None])
def test_filtfilt(padtype):
    want = scipy.signal.filtfilt(B, A, X, padtype=padtype)
    got = traced(lambda b, a, x: signal.filtfilt(b, a, x, padtype=padtype), B, A, X)
    np.testing.assert_allclose(got, want, atol=1e-12)
    for sections in (scipy.signal.butter(4, 0.3, output="sos"), scipy.signal.butter(3, 0.2, "high", output="sos")):
        want = scipy.signal.sosfiltfilt(sections, X, padtype=padtype)
        got = traced(lambda s, x: signal.sosfiltfilt(s, x, padtype=padtype), sections, X)
        np.testing.assert_allclose(got, want, atol=1e-12)
    batch = vmap(lambda s: signal.sosfiltfilt(s, X, padtype=padtype))(np.stack([sections, sections]))
    np.testing.assert_allclose(batch[1], want, atol=1e-12)


def test_filtfilt_by_gustafsson_method():
    got = traced(lambda b, a, x: signal.filtfilt(b, a, x, method="gust"), B, A, X)
    np.testing.assert_allclose(got, scipy.signal.filtfilt(B, A, X, method="gust"), atol=1e-12)
    check_grads(lambda b, x: signal.filtfilt(b, A, x, method="gust"), (B, X), order=2)


@pytest.mark.parametrize("mode", ["interp", "mirror", "nearest", "wrap", "constant"])
def test_savgol_filter(mode):
    for options in ({}, {"axis": 0, "cval": 0.7}, {"deriv": 1, "delta": 0.3}):
        x = X.T if "axis" in options else X
        want = scipy.signal.savgol_filter(x, 7, 2, mode=mode, **options)
        got = traced(lambda x, o=options: signal.savgol_filter(x, 7, 2, mode=mode, **o), x)
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_detrend_and_hilbert():
    for options in ({"type": "constant"}, {"type": "linear"}, {"bp": [10, 20]}, {"axis": 0}):
        got = traced(lambda x, o=options: signal.detrend(x, **o), X)
        np.testing.assert_allclose(got, scipy.signal.detrend(X, **options), atol=1e-13)
    for n in (None, 40, 30):
        np.testing.assert_allclose(
            traced(lambda x, n=n: signal.hilbert(x, n), X), scipy.signal.hilbert(X, n), atol=1e-13
        )


STFT = [
    {},
    {"noverlap": 3, "nfft": 16, "window": "hamming"},
    {"boundary": None, "padded": False},
    {"scaling": "psd", "fs": 5.0, "detrend": "linear"},
    {"return_onesided": False},
]


@pytest.mark.parametrize("options", STFT, ids=str)
def test_stft(options):
    want = scipy.signal.stft(X, nperseg=8, **options)
    found = traced(lambda x: signal.stft(x, nperseg=8, **options)[2], X)
    np.testing.assert_allclose(found, want[2], atol=1e-13)
    kept = []
    grad(lambda x: kept.append(signal.stft(x, nperseg=8, **options)) or fnp.sum(x))(X)
    for got, w in zip(kept[0][:2], want[:2], strict=True):
        np.testing.assert_allclose(got, w, atol=1e-13)


@pytest.mark.parametrize(
    "options", [{}, {"boundary": False, "window": "boxcar"}, {"scaling": "psd", "fs": 3.0}, {"noverlap": 5}], ids=str
)
def test_istft(options):
    forward = {"noverlap": options["noverlap"]} if "noverlap" in options else {}
    Z = scipy.signal.stft(X, nperseg=8, **forward)[2]
    want = scipy.signal.istft(Z, **options)
    np.testing.assert_allclose(traced(lambda z: signal.istft(z, **options)[1], Z), want[1], atol=1e-12)
    window = np.hanning(9)[:8] + 0.5
    options["window"] = window
    of_window = lambda lib, w: lib.istft(Z, **{**options, "window": w})[1]
    np.testing.assert_allclose(vmap(lambda w: of_window(signal, w))(window[None]), [of_window(scipy.signal, window)])
    check_grads(lambda w: of_window(signal, w), (window,), order=2)


@pytest.mark.parametrize(
    "options",
    [{}, {"scaling": "spectrum", "fs": 4.0}, {"detrend": "linear", "nfft": 15}, {"return_onesided": False}],
    ids=str,
)
def test_power_spectra(options):
    y = RNG.normal(size=(2, 30))
    got = traced(lambda x: signal.welch(x, nperseg=9, **options)[1], X)
    np.testing.assert_allclose(got, scipy.signal.welch(X, nperseg=9, **options)[1], atol=1e-13)
    got = traced(lambda x, y: signal.csd(x, y, nperseg=9, **options)[1], X, y)
    np.testing.assert_allclose(got, scipy.signal.csd(X, y, nperseg=9, **options)[1], atol=1e-13)
    own = traced(lambda x: signal.csd(x, x, nperseg=9, **options)[1], X)
    np.testing.assert_allclose(own, want := scipy.signal.csd(X, X, nperseg=9, **options)[1], atol=1e-13)
    assert own.dtype == want.dtype == float
    for more in ({}, {"nfft": 20}, {"nfft": 50, "window": "hann"}, {"axis": 0}):
        want = scipy.signal.periodogram(X, **{**options, **more})[1]
        got = traced(lambda x, more=more: signal.periodogram(x, **{**options, **more})[1], X)
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_filters_run_under_jit():
    compiled = jax.jit(lambda a: fnp.sum(signal.lfilter(B, a, X) ** 2))
    np.testing.assert_allclose(compiled(A), np.sum(scipy.signal.lfilter(B, A, X) ** 2), rtol=1e-12)


def test_sosfiltfilt_under_jit_needs_padlen():
    with pytest.raises(InputError, match="padlen is needed"):
        jax.eval_shape(lambda s: signal.sosfiltfilt(s, X), np.ones((1, 6)))


def test_windows_match_scipy():
    assert signal.windows is scipy.signal.windows
    assert np.array_equal(signal.get_window("hamming", 5), scipy.signal.get_window("hamming", 5))
    with pytest.raises(AttributeError, match="no attribute 'butter'"):
        signal.butter  # noqa: B018


REFUSED = [
    (ValueError, "axes exceeds dimensionality", lambda x: signal.fftconvolve(x, x, axes=9)),
    (ShapeError, "boundary must be", lambda x: signal.correlate2d(x, x, boundary="other")),
    (InputError, "must be odd", lambda x: signal.savgol_filter(x, 4, 2)),
    (ShapeError, "as long as the window", lambda x: signal.savgol_filter(x, 99, 2)),
    (ShapeError, "mode must be", lambda x: signal.savgol_filter(x, 5, 2, mode="other")),
    (ShapeError, "rows of six", lambda x: signal.sosfiltfilt(x, x)),
    (ValueError, "Unknown boundary option", lambda x: signal.stft(x, nperseg=8, boundary="other")),
    (ValueError, "average must be", lambda x: signal.csd(x, x, nperseg=8, average="mode")),
    (ShapeError, "mode must be", lambda x: signal.convolve(x, x, "some")),
    (ShapeError, "same number of axes", lambda x: signal.convolve(x, x[0])),
    (ShapeError, "at least as long", lambda x: signal.convolve(x, x.T, "valid")),
    (ShapeError, "must be matrices", lambda x: signal.convolve2d(x[0], x[0])),
    (ShapeError, "boundary must be", lambda x: signal.convolve2d(x, x, boundary="other")),
    (ShapeError, "must be vectors", lambda x: signal.lfilter(x, [1.0], x)),
    (ShapeError, "as long as the state", lambda x: signal.lfilter(B, A, x[:, :2], zi=np.ones((2, 3)))),
    (ShapeError, "padtype must be", lambda x: signal.sosfiltfilt(SECTIONS, x, padtype="other")),
    (ShapeError, "longer than padlen", lambda x: signal.sosfiltfilt(SECTIONS, x[:, :5])),
    (ShapeError, "rows of six", lambda x: signal.sosfilt(x, x)),
    (ValueError, "noverlap must be less", lambda x: signal.stft(x, nperseg=8, noverlap=8)),
    (ValueError, "Parameter scaling=", lambda x: signal.stft(x, nperseg=8, scaling="other")),
    (ShapeError, "scaling must be", lambda x: signal.welch(x, nperseg=8, scaling="other")),
    (ValueError, "Trend type", lambda x: signal.detrend(x, type="other")),
    (ValueError, "Breakpoints", lambda x: signal.detrend(x, bp=99)),
    (ValueError, "x must be real", lambda x: signal.hilbert(x * 1j)),
]


@pytest.mark.parametrize(("error", "match", "fun"), REFUSED, ids=[match for _, match, _ in REFUSED])
def test_errors_name_a_remedy(error, match, fun):
    with pytest.raises(error, match=match):
        traced(fun, X)


def test_nonunique_place_poles_gain_raises():
    """Check the refusal with several inputs, where SciPy's gains depend on the start."""
    A = np.array([[1.4, -0.2, 6.7], [-0.6, -4.3, 0.0], [1.1, 4.3, -6.7]])
    B = np.array([[0.0, 5.7], [1.1, 1.1], [0.0, -3.1]])
    poles = np.array([-0.2, -0.5, -5.1])

    def gains(A, B):
        return scipy.signal.place_poles(A, B, poles).gain_matrix.sum()

    with pytest.raises(ConversionError, match=r"signal.place_poles: with several inputs .* one input"):
        grad(gains)(A, B)
    one = B[:, 1:]
    np.testing.assert_allclose(grad(gains)(A, one), differences(lambda A: gains(A, one), A, 1e-5), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_convolutions_of_numbers(name, mode):
    fun = lambda x, y: getattr(scipy.signal, name)(x, y, mode=mode)
    np.testing.assert_allclose(traced(fun, 2.0, 3.0), fun(2.0, 3.0), rtol=1e-14)
    assert grad(fun, (0, 1))(2.0, 3.0) == (3.0, 2.0)


@pytest.mark.parametrize("shapes", [((2, 3), (4, 3)), ((2, 2), (3, 3)), ((3, 3), (2, 2)), ((3, 2), (3, 4))])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_complex_correlations_of_smaller_and_larger_matrices(mode, shapes):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in shapes)
    fun = lambda x, y: scipy.signal.correlate2d(x, y, mode=mode)
    np.testing.assert_allclose(traced(fun, x, y), fun(x, y), rtol=1e-12)
    check_grads(lambda x, y: abs(fun(x, y)) ** 2, (x, y), order=1)


@pytest.mark.parametrize(
    "system",
    [
        lambda t: ([1.0, t], [1.0, 2.0 + t, 1.0 + t**2]),
        lambda t: (np.array([[-1.0, 1.0], [t, -1.0]]), [[t], [1.0]], [[1.0, 0.5]], [[0.2 + t]]),
        lambda t: scipy.signal.StateSpace(np.eye(2) * (t - 1.0), [[0.0], [1.0]], [[1.0, 0.5 + t]], [[0.2]]),
    ],
    ids=["polynomials", "matrices", "object"],
)
def test_frequency_response_of_a_system_with_a_double_pole(system):
    """SciPy computes with the poles, which have no derivative where they coincide; the response has one."""
    w = np.array([0.5, 1.0, 2.0])
    bode = lambda t: np.stack(scipy.signal.bode(system(t), w)[1:])
    for f in (bode, lambda t: scipy.signal.freqresp(system(t), w)[1].imag):
        value, slope = jvp(f, (0.0,), (1.0,))
        np.testing.assert_allclose(value, f(0.0), rtol=1e-14)
        np.testing.assert_allclose(slope, differences(f, 0.0, 1e-3), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(vmap(jacfwd(f))(np.array([0.0, 0.1]))[0], slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"floating_mean": True, "normalize": True}, {"normalize": "amplitude"}], ids=str
)
def test_lombscargle_at_the_frequencies_of_an_fft(options):
    """SciPy computes with a phase, which has no derivative where the fitted cosine and sine are orthogonal at any."""
    n = 16
    times, values = 0.7 * np.arange(n), X[0, :n]
    freqs = 2 * np.pi / 0.7 * np.arange(1, 4) / n

    def f(z):
        found = scipy.signal.lombscargle(times + z * np.cos(np.arange(n)), values * (1 + z), freqs * (1 - z), **options)
        return np.stack([found.real, found.imag])

    np.testing.assert_allclose(traced(f, 0.0), f(0.0), rtol=1e-14)
    for derivative, order in ((jacfwd(f), 1), (jacrev(f), 1), (jacfwd(jacrev(f)), 2)):
        want = differences(f if order == 1 else jacfwd(f), 0.0)
        np.testing.assert_allclose(derivative(0.0), want, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(vmap(derivative)(np.array([0.3, 0.0]))[1], derivative(0.0), rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_savgol_filter_drops_the_imaginary_part():
    f = lambda x: scipy.signal.savgol_filter(x, 5, 2)
    x = X[0] + 1j * X[1]
    np.testing.assert_allclose(traced(f, x), f(x), rtol=1e-12, strict=True)
    np.testing.assert_array_equal(jvp(f, (x,), (1j * x,))[1], jvp(f, (x,), (-X[1] + 0j,))[1])


@pytest.mark.parametrize("count", [0, 1, 50])
def test_pairs_of_rows_on_jax_are_no_groups_of_channels(count):
    """XLA's convolution of groups multiplies each row by zeros for every other row, in memory for all of them."""
    x = np.sin(np.arange(count * 300.0)).reshape(count, 300)
    y = np.cos(np.arange(count * 120.0)).reshape(2, count, 60)
    f = lambda x, y: convolve(x, y, start=20, length=250)
    np.testing.assert_allclose(jax.jit(f)(x, y), f(x, y), rtol=1e-12, atol=1e-12)
    memory = jax.jit(f).lower(x, y).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 8 * (x.nbytes + y.nbytes) + 10_000


def test_upfirdn_keeps_no_window_of_each_sample():
    x, h = np.sin(np.arange(300.0)), np.cos(np.arange(40.0))
    graph = trace(grad(lambda scale: np.sum(scipy.signal.upfirdn(scale * h, scale * x, 3, 2) ** 2)))(1.1)
    assert max(np.prod(shape, dtype=int) for node in graph for shape in node.shapes) < 5 * len(x)
