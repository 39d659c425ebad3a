"""Compiled functions of SciPy in unchanged programs: values, derivatives in both modes, ``vmap``, graphs."""

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats
from helpers import at_least, differences, traced

from funcgrad import grad, jvp, trace, vmap
from funcgrad.errors import ConversionError, InputError

RNG = np.random.default_rng(5)
IMAGE, LINE = RNG.normal(size=(4, 5)), RNG.normal(size=7)
KNOTS = np.array([0.3, 0.8, 1.9, 2.6, 3.1])
PLACES = np.array([0.5, 1.1, 2.9])
POINTS, OTHERS = RNG.normal(size=(5, 2)), RNG.normal(size=(3, 2))
nd, sig, ip, la = scipy.ndimage, scipy.signal, scipy.interpolate, scipy.linalg


def cubes(line, out, power=3):
    out[:] = line[1:-1] ** power * line[2:]


def ndimage():
    for x in (IMAGE, LINE):
        yield x, lambda x: nd.fourier_gaussian(np.fft.fftn(x), 0.6)
        yield x, lambda x: nd.fourier_uniform(np.fft.fftn(x), 2.0)
        yield x, lambda x: nd.fourier_ellipsoid(np.fft.fftn(x), 2.0)
        yield x, lambda x: nd.fourier_shift(np.fft.rfftn(x), 0.4, n=x.shape[-1])
        yield x, lambda x: nd.generic_filter(x, lambda v: (v**2).sum(), 3, mode="wrap")
        yield x, lambda x: nd.generic_filter(x, lambda v, p: v[0] * v[-1] ** p, 2, mode="constant", cval=1.5,
                                             origin=-1, extra_arguments=(2,))  # fmt: skip
        yield x, lambda x: nd.generic_filter1d(x, cubes, 3, 0, mode="nearest", origin=-1)
        yield x, lambda x: nd.generic_filter1d(x, cubes, 3, mode="mirror", extra_keywords={"power": 2})
        yield x, lambda x: nd.geometric_transform(x, lambda q: tuple(0.9 * i for i in q), order=3, mode="wrap")
        yield x, lambda x: nd.geometric_transform(x, lambda q, s: tuple(s * i for i in q), order=1, cval=0.5,
                                                  output_shape=(3,) * x.ndim, extra_arguments=(1.1,))  # fmt: skip
    yield LINE[:2], lambda s: nd.fourier_shift(np.fft.fftn(IMAGE), s)
    yield np.abs(LINE[:2]), lambda s: nd.fourier_gaussian(np.fft.fftn(IMAGE), s)
    yield np.abs(LINE[:2]), lambda s: nd.fourier_uniform(np.fft.fftn(IMAGE), s)
    yield LINE[:1], lambda s: nd.geometric_transform(LINE, lambda q: (q[0] * 0.6 + 1.3 + 0.1 * s[0],), order=3)


def signal():
    wave, rows = np.sin(1.3 * np.arange(14)) + 0.4 * RNG.normal(size=14), RNG.normal(size=(2, 9))
    for x in (wave, rows):
        for mode in [
            "constant",
            "symmetric",
            "wrap",
            "reflect",
            "edge",
            "smooth",
            "antisymmetric",
            "antireflect",
            "line",
        ]:
            yield x, lambda x, mode=mode: sig.upfirdn(LINE, x, 2, 3, mode=mode)
        yield x, lambda x: sig.upfirdn(LINE, x[..., :2], 1, 1, mode="antisymmetric")  # more than one extension
        yield x, lambda x: sig.upfirdn(LINE, x, cval=1.5)
        for padtype in ("line", "mean", "symmetric"):
            yield x, lambda x, padtype=padtype: sig.resample_poly(x, 3, 2, axis=-1, padtype=padtype)
        for nperseg in (3, 4):
            yield x, lambda x, n=nperseg: sig.csd(x, x**2, nperseg=n, average="median")[1]
        yield x, lambda x: sig.welch(x, nperseg=4, average="median")[1]
        for width in (0, 0.5, 1):
            yield x, lambda x, width=width: sig.sawtooth(x, width)
    yield RNG.normal(size=(6, 7)), lambda x: sig.sepfir2d(x, LINE[:3], LINE[:5])
    for boundary, mode in ((b, m) for b in ("fill", "symm", "wrap") for m in ("full", "same", "valid")):
        yield rows, lambda x, m=mode, b=boundary: sig.correlate2d(x, IMAGE[:2, :3], m, b, 1.5 if b == "fill" else 0)


def peaks():
    x = np.sin(1.3 * np.arange(14)) + 0.4 * RNG.normal(size=14)
    yield x, lambda x: x[sig.find_peaks(x)[0]]
    yield x, lambda x: sig.peak_prominences(x, sig.find_peaks(x)[0], wlen=5)[0]
    for rel_height in (0.3, 0.5, 1.0):
        for i in range(4):
            yield x, lambda x, i=i, r=rel_height: sig.peak_widths(x, sig.find_peaks(x)[0], r)[i]
    for name in ("peak_heights", "left_thresholds", "prominences", "widths", "left_ips"):
        options = {"height": -0.5, "threshold": 0.01, "distance": 2, "prominence": 0.1, "width": 0.1}
        yield x, lambda x, name=name, options=options: sig.find_peaks(x, **options)[1][name]


def interpolate():
    for x in (LINE[:5], POINTS):
        for kind in ("slinear", "quadratic", "zero", "nearest-up", 2, 4):
            yield x, lambda y, kind=kind: ip.interp1d(KNOTS, y, kind, axis=0)(PLACES)
        yield x, lambda y: ip.griddata(POINTS, y, OTHERS, method="nearest")
        yield x, lambda y: ip.NearestNDInterpolator(POINTS, y, rescale=True)(OTHERS)
        yield x, lambda x: ip.make_interp_spline(KNOTS, LINE[:5])(x)
    spline, nearest = ip.interp1d(KNOTS, LINE[:5], "quadratic"), ip.NearestNDInterpolator(POINTS, LINE[:5])
    yield PLACES, lambda q: spline(q)
    yield OTHERS, lambda q: nearest(q) * q[:, 0]
    yield POINTS, lambda p: ip.NearestNDInterpolator(p, LINE[:5])(OTHERS) * p[:3, 0]


def linalg():
    square, tall, wide = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=(2, 4))
    far = square + 4 * np.eye(4)
    yield POINTS.T[:, :3], lambda x: la.cholesky_banded(np.vstack([x[0] * 0.1, 5 + x[1]]))
    for x in (square, tall, wide):
        yield x, lambda x: la.qr(x, mode="r")[0]
        yield x, lambda x: la.rq(x)[0]
        yield x, lambda x: la.rq(x, mode="r")
        for i in (0, 1):
            yield x, lambda x, i=i: la.rq(x, mode="economic")[i]
            yield x, lambda x, i=i: la.qr_multiply(x, LINE[: len(x)])[i]
        yield x, lambda x: la.qr_multiply(x, IMAGE[: min(x.shape)], "left", conjugate=True)[0]
    yield far, la.signm
    yield far, lambda x: la.funm(x, np.sin)
    yield square, lambda x: la.funm(x + 1j * x.T, lambda t: t**3)
    yield square, lambda x: la.orth(x[:, :3]) ** 2
    yield square, lambda x: la.null_space(x[:3]) ** 2
    yield square, lambda x: la.subspace_angles(x[:, :2], x[:, 2:3])


def pivots():
    square, tall = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2))
    skewed = square * np.array([1.0, 100.0, 1.0, 0.01])
    for x in (square, tall):
        for i in (0, 1):
            yield x, lambda x, i=i: la.qr(x, pivoting=True, mode="economic")[i]
        yield x, lambda x: la.qr(x, pivoting=True, mode="r")[0]
        yield x, lambda x: la.qr_multiply(x, LINE[:4], pivoting=True)[0]
    yield skewed, lambda x: la.matrix_balance(x)[0]
    yield skewed, lambda x: la.matrix_balance(np.triu(x), separate=True)[0]
    yield square, lambda x: la.bandwidth(np.triu(x))[1] * x
    for lower in (True, False):
        for i in (0, 1):
            yield square, lambda x, i=i, lower=lower: la.ldl(x + x.T, lower)[i]
            yield square, lambda x, i=i, lower=lower: la.ldl(x * (1 - np.eye(4)), lower)[i]
            yield square, lambda x, i=i, lower=lower: la.ldl(x + 1j * (x - x.T), lower)[i]
            yield square, lambda x, i=i, lower=lower: la.ldl(x + 1j * x.T, lower, hermitian=False)[i]


def inverse_in_place(x):
    """Compute an inverse as programs do that save memory: the second routine overwrites the result of the first."""
    factor, _ = la.lapack.dpotrf(x @ x.T + np.eye(4))
    diagonal = factor.diagonal()
    logarithm = np.log(diagonal).sum()
    la.lapack.dpotri(factor, overwrite_c=1)
    return (factor + factor.T - np.diag(diagonal)) * logarithm


def products_in_place(x):
    rest = np.zeros((4, 4), order="F")
    rest[0] = x[1]
    product = la.blas.dsyrk(1.5, x, beta=0.5, c=rest, lower=1, overwrite_c=1)
    return product + la.blas.dsyrk(x[0, 0], x[:2], trans=1) * la.blas.dgemm(2.0, x, x[:, :1], trans_a=1)


def lapack():
    square, raw = RNG.normal(size=(4, 4)), la.lapack
    far = square + 4 * np.eye(4)
    yield square, inverse_in_place
    yield square, products_in_place
    for lower in (0, 1):
        yield far, lambda x, lower=lower: raw.dpotrf(x @ x.T + np.triu(x, 1), lower=1, clean=lower)[0]
        yield far, lambda x, lower=lower: raw.dtrtri(x, lower, 1 - lower)[0]
        yield far, lambda x, lower=lower: raw.dtrtrs(x, x[:, :2], lower, 1 - lower, lower)[0]
        yield (
            far,
            lambda x, lower=lower: raw.dposv(x @ x.T, x[:, :2], lower)[1] * raw.dposv(x @ x.T, x, lower)[0][:, :2],
        )
    yield square, lambda x: raw.dpotrf(x @ x.T - 50 * np.eye(4))[1] * x
    yield far, lambda x: raw.dgesv(x, x[:, :2])[2] * raw.dgesv(x, x[0])[0][:, :2]
    yield far, lambda x: raw.dgtsv(x[0, 1:], 9 + x[1], x[2, 1:], x[3])[3]
    yield square, lambda x: (raw.dgtsv(0 * x[0, 1:], 0 * x[1], x[2, 1:], x[3])[4] + raw.dgesv(0 * x, x)[3]) * x


FAMILIES = (ndimage, signal, peaks, interpolate, linalg, lapack, pivots)
CALLS = [(f.__name__, i, x, call) for f in FAMILIES for i, (x, call) in enumerate(f())]


@pytest.mark.parametrize("case", CALLS, ids=[f"{c[0]}-{c[1]}" for c in CALLS])
def test_calls_match_differences(case):
    *_, x, call = case
    weights = np.cos(np.arange(np.size(call(x)), dtype=float))

    def f(x):
        out = np.ravel(call(x))
        return np.sum((np.real(out) + 0.3 * np.imag(out)) * weights)

    slope, want = grad(f)(x), differences(f, x, 1e-3)
    np.testing.assert_allclose(slope, want, rtol=1e-7, atol=1e-8)
    direction = np.sin(1 + np.arange(x.size, dtype=float)).reshape(x.shape)
    value, pushed = jvp(f, (x,), (direction,))
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(pushed, np.sum(slope * direction), rtol=1e-10, atol=1e-12)
    second = grad(lambda x: np.sum(grad(f)(x) * direction))(x)
    # the Hessian is symmetric: its product is the change of the gradient along the direction
    along = differences(lambda s: grad(f)(x + s * direction), 0.0, 1e-3)
    np.testing.assert_allclose(second, along, rtol=1e-6, atol=1e-7)
    other = x * 1.001
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, other])), [slope, grad(f)(other)], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(trace(f)(x)(other), f(other), rtol=1e-10)


@pytest.mark.parametrize("mode", ["constant", "line", "antisymmetric", "wrap"])
def test_filters_keep_float32(mode):
    x = LINE.astype("f")
    for fun in (lambda x: scipy.signal.upfirdn(x[:3], x, 2, 3, mode=mode), lambda x: scipy.signal.sawtooth(x, 0.3)):
        assert traced(fun, x).dtype == fun(x).dtype


@pytest.mark.parametrize("n", [1, 4, 5])
def test_dirichlet_kernel_at_zeros_of_sine(n):
    x = np.array([0.0, 2 * np.pi, -4 * np.pi, np.pi, 1.3, 7.7, 1e-9])
    fun = lambda x: scipy.special.diric(x, n)
    np.testing.assert_allclose(traced(fun, x), fun(x), rtol=1e-13, atol=1e-13)
    assert np.isnan(traced(lambda x: scipy.special.diric(x, -1), x)).all()
    total = lambda x: np.sum(scipy.special.diric(x, n) * np.arange(1.0, 8.0))
    np.testing.assert_allclose(grad(total)(x), np.diagonal(differences(fun, x)) * np.arange(1.0, 8.0), atol=1e-6)
    second = vmap(grad(grad(fun)))(x)
    signs = np.array([1, (-1) ** (n - 1), 1])
    np.testing.assert_allclose(second[:3], -signs * (n * n - 1) / 12, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["mirror", "reflect", ("nearest", "wrap")])
def test_gradient_magnitude_at_zero_gradient(mode):
    """Check pixels with gradient 0, such as the corners of a mirrored image; they made the whole derivative NaN."""
    x = np.cos(np.arange(20.0).reshape(4, 5) ** 2)

    def slope(x, axis, output, mode, cval, factor, power=1.0):
        return scipy.ndimage.correlate1d(factor * x**power, [-1.0, 0.0, 1.0], axis, output, mode, cval)

    for fun in (
        lambda x: scipy.ndimage.generic_gradient_magnitude(x, scipy.ndimage.sobel, mode=mode),
        lambda x: scipy.ndimage.generic_gradient_magnitude(x, scipy.ndimage.sobel, np.float32, mode, axes=(1, 0)),
        lambda x: scipy.ndimage.generic_gradient_magnitude(x, slope, None, mode, 0.0, (2.0,), {"power": 2.0}),
    ):
        got = traced(fun, x)
        np.testing.assert_allclose(got, fun(x), rtol=1e-13 if got.dtype == np.float64 else 1e-6, atol=1e-7)
        assert got.dtype == fun(x).dtype
        if got.dtype == np.float64:
            slopes = grad(lambda x, fun=fun: np.sum(fun(x) * x))(x)
            np.testing.assert_allclose(
                slopes, differences(lambda x, fun=fun: np.sum(fun(x) * x), x), rtol=1e-7, atol=1e-7
            )
    flat = np.ones((3, 3))
    assert not grad(lambda x: np.sum(scipy.ndimage.generic_gradient_magnitude(x, scipy.ndimage.sobel)))(flat).any()


def test_gradient_magnitude_along_no_axis():
    def f(x):
        made = np.zeros(x.shape)
        nd.generic_gradient_magnitude(x, nd.sobel, made, axes=())
        return np.sum(made * nd.generic_gradient_magnitude(x**2, nd.sobel, axes=()))

    np.testing.assert_allclose(grad(f)(IMAGE), 3.0 * IMAGE**2, rtol=1e-12)
    assert jvp(f, (IMAGE,), (IMAGE,))[0] == pytest.approx(f(IMAGE), rel=1e-13)


REFUSED = {
    "ellipsoid": (lambda x: nd.fourier_ellipsoid(np.fft.fftn(x), x[0]), ConversionError, "size has no derivative"),
    "border": (lambda x: sig.upfirdn([1.0, 2.0], x, mode="other", cval=x[0]), InputError, "must be one of SciPy's"),
    "polynomial": (lambda x: scipy.special.genlaguerre(2, x[0])(x), ConversionError, "plain values only"),
    "counts": (lambda x: RNG.poisson([x[0] ** 2, 2.0]), ConversionError, "got a list with one"),
    "shape of gamma": (lambda x: RNG.gamma(x[0] ** 2, 2.0), ConversionError, r"rng\.gamma: random numbers"),
    "missing argument": (lambda x: scipy.stats.ttest_ind(x), TypeError, "required positional argument"),
    "missing parameter": (lambda x: scipy.stats.pmean(x), TypeError, "required positional argument"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_without_a_derivative_raise(name):
    f, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        jvp(lambda x: np.full(1, x[0])[0] * f(x), (LINE,), (LINE,))


def test_functions_of_newer_versions_raise():
    if at_least(scipy, "1.15.0"):
        with pytest.raises(ConversionError, match="traced angles go without diff_n"):
            grad(lambda x: scipy.special.sph_harm_y_all(2, 2, x, 0.3, diff_n=1)[1].real.sum())(0.4)
    if at_least(scipy, "1.17.0"):
        for axes, message in (((1, 1), "duplicate value"), ((1, 0, 2), "axes")):
            with pytest.raises(ValueError, match=message):
                grad(lambda x, axes=axes: scipy.sparse.permute_dims(scipy.sparse.coo_array(x), axes).sum())(IMAGE)
