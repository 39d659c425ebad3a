"""Images: traced values give SciPy's results, with all borders and options; errors; conventions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
import scipy.ndimage
from helpers import at_least, traced

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.interop import from_numpy
from funcgrad.scipy import ndimage

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5))
CUBE = RNG.normal(size=(4, 3, 5))
BORDERS = ["reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-mirror", "grid-constant"]
LABELS = np.array(
    [[0, 1, 1, 2, 0], [4, 4, 1, 2, 2], [0, 0, 0, 7, 7], [1, 1, 4, 4, 0], [2, 2, 2, 2, 0], [0, 7, 0, 7, 0]]
)


@pytest.fixture(autouse=True)
def _seeded():
    """Reset the random numbers, so that a test that runs alone sees the numbers of a full run."""
    RNG.bit_generator.state = np.random.default_rng(1).bit_generator.state


def same(name, *args, tolerance=1e-13, **kwargs):
    """Check that the traced call gives SciPy's result."""
    floats = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]

    def call(*values):
        full = list(args)
        for i, value in zip(floats, values, strict=True):
            full[i] = value
        return getattr(ndimage, name)(*full, **kwargs)

    want = getattr(scipy.ndimage, name)(*args, **kwargs)
    got = traced(call, *[args[i] for i in floats])
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1, np.abs(np.nan_to_num(want)).max()))


@pytest.mark.parametrize("mode", BORDERS)
def test_linear_filters_at_every_border(mode):
    for m, name in itertools.product((1, 2, 3, 4, 13), ("correlate1d", "convolve1d")):
        weights = RNG.normal(size=m)
        for origin in {0, -(m // 2), (m - 1) // 2}:
            origin = -origin - (1 - m % 2) if name == "convolve1d" else origin
            same(name, X, weights, 0, mode=mode, cval=0.7, origin=origin)
    for name in ("correlate", "convolve"):
        same(name, X, RNG.normal(size=(3, 2)), mode=mode, cval=-0.4)
        same(name, X, RNG.normal(size=(4, 9)), mode=mode, origin=(-1, 2))
        same(name, CUBE, RNG.normal(size=(3, 4)), mode=mode, axes=(0, 2), origin=(1, -1))
        same(name, X[:1], RNG.normal(size=(3, 2)), mode=mode, cval=-0.4)
    for size, origin in ((1, 0), (2, -1), (5, 2), (11, 0)):
        same("uniform_filter1d", X, size, 0, mode=mode, cval=0.3, origin=origin)
    same("uniform_filter", CUBE, (2, 3), mode=mode, cval=0.3, axes=(0, 2), origin=(-1, 1))
    for name in ("prewitt", "sobel"):
        same(name, CUBE, 1, mode=mode, cval=1.5)
    same("laplace", CUBE, mode=mode, cval=1.5)


@pytest.mark.parametrize("mode", BORDERS)
def test_gaussian_filters_at_every_border(mode):
    for order in range(4):
        same("gaussian_filter1d", X, 1.3, 0, order, mode=mode, cval=0.4)
    same("gaussian_filter", CUBE, (0.4, 2.0), (1, 0), mode=mode, axes=(2, 0), cval=0.4)
    same("gaussian_filter", X, (0.0, 1.5), mode=mode, truncate=2.0)
    same("gaussian_filter", X, np.array([0.7, 1.5]), mode=mode, radius=(3, 2))
    same("gaussian_laplace", CUBE, 0.8, mode=mode, truncate=3.0)
    same("gaussian_laplace", CUBE, (0.8, 0.5), mode=mode, axes=(2, 1))
    same("gaussian_gradient_magnitude", X, 0.8, mode=mode, cval=0.2)


@pytest.mark.parametrize("mode", BORDERS)
def test_rank_filters_at_every_border(mode):
    for name in ("maximum_filter1d", "minimum_filter1d"):
        for size, origin in ((1, 0), (2, -1), (5, 2), (13, 0)):
            same(name, X, size, 0, mode=mode, cval=0.3, origin=origin)
    cross = np.array([[0, 1, 0], [1, 1, 1]], bool)
    for name in ("maximum_filter", "minimum_filter", "median_filter"):
        same(name, X, 3, mode=mode, cval=0.1)
        same(name, X, footprint=cross, mode=mode, origin=(-1, 1))
        same(name, CUBE, (3, 2), mode=mode, axes=(0, 2))
    for percentile in (0, 30, -20, 100):
        same("percentile_filter", X, percentile, (2, 3), mode=mode)
    for rank in (0, 2, -1, -2):
        same("rank_filter", X, rank, footprint=cross, mode=mode)


COORDINATES = np.concatenate(
    [RNG.uniform(-14, 18, (2, 40)), RNG.uniform(0, 4, (2, 20)), [[0, 5, 2, 5], [0, 4, 3, 0.0]]], 1
)


@pytest.mark.filterwarnings("ignore:The behavior of affine_transform with a 1-D array:UserWarning")  # SciPy 1.15 warns
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("mode", BORDERS)
def test_interpolation_at_every_border(mode, order):
    same("map_coordinates", X, COORDINATES, order=order, mode=mode, cval=0.7)
    same("map_coordinates", X, COORDINATES, order=order, mode=mode, prefilter=False)
    same("map_coordinates", X[:1], COORDINATES, order=order, mode=mode)
    same("shift", CUBE, (0.4, -1.3, 2.0), order=order, mode=mode, cval=-0.2)
    same("affine_transform", X, RNG.normal(size=(2, 2)), RNG.normal(size=2), (4, 3), order=order, mode=mode)
    same("affine_transform", X, RNG.normal(size=(2, 3)), order=order, mode=mode, cval=0.3)
    same("affine_transform", X, np.array([0.7, 1.2]), (1.3, -0.4), order=order, mode=mode)
    same("rotate", CUBE, np.float64(33.0), (0, 2), order=order, mode=mode)
    same("rotate", X, np.float64(-90.0), order=order, mode=mode, cval=0.3)
    same("rotate", X, np.float64(200.0), reshape=False, order=order, mode=mode)
    same("zoom", CUBE, (1.4, 1.0, 0.6), order=order, mode=mode)
    if mode not in ("constant", "wrap"):
        same("zoom", CUBE, 1.7, order=order, mode=mode, grid_mode=True)


@pytest.mark.parametrize("mode", BORDERS)
def test_spline_filters_at_every_border(mode):
    for order, n in itertools.product((2, 3, 4, 5), (1, 2, 6, 70)):
        x = RNG.normal(size=(n, 2))
        same("spline_filter1d", x, order, 0, mode=mode)
        matrix = scipy.ndimage.spline_filter1d(np.eye(n), order, 0, mode=mode)
        pulled = vjp(lambda x, order=order: ndimage.spline_filter1d(x, order, 0, mode=mode), x)[1](x)[0]
        np.testing.assert_allclose(pulled, matrix.T @ x, atol=1e-12)
    same("spline_filter", X, 3, mode=mode)


def test_dtypes_and_complex_numbers():
    single, z = X.astype(np.float32), X + 1j * X[::-1]
    for name, args in (
        ("correlate1d", (np.array([1.0, 0.3]),)),
        ("gaussian_filter", (1.2,)),
        ("uniform_filter", (3,)),
        ("sobel", ()),
        ("map_coordinates", (COORDINATES,)),
    ):
        same(name, single, *args, tolerance=1e-6)
        same(name, single, *args, output=float, tolerance=1e-6)
        same(name, X, *args, output=np.float32, tolerance=1e-6)
        if name not in ("gaussian_filter", "sobel"):
            same(name, z, *args)
    same("correlate", z, z[:2, :2], cval=0.3j, mode="constant")
    same("convolve", X, z[:2, :2])
    same("correlate1d", X, z[0])
    same("shift", z, 0.4, cval=1j)
    got = traced(lambda w: ndimage.correlate1d(np.arange(5), w, output=float), np.array([0.3, 0.4]))
    np.testing.assert_allclose(got, scipy.ndimage.correlate1d(np.arange(5), [0.3, 0.4], output=float))


def test_nan_as_border_value():
    for name, args in (("correlate1d", ([1.0, 2.0, 1.0],)), ("shift", (1.5,)), ("uniform_filter1d", (3,))):
        want = getattr(scipy.ndimage, name)(X, *args, mode="constant", cval=np.nan)
        got = traced(lambda x, n=name, a=args: getattr(ndimage, n)(x, *a, mode="constant", cval=np.nan), X)
        assert np.isnan(want).any()
        np.testing.assert_allclose(got, want, atol=1e-13)


@pytest.mark.parametrize("mode", BORDERS)
def test_derivatives_at_every_border(mode):
    x, w, v = X[:4, :3], RNG.normal(size=4), RNG.normal(size=(3, 2))
    check_grads(lambda x, w, c: ndimage.correlate1d(x, w, 0, mode=mode, cval=c, origin=-1), (x, w, 0.4), order=1)
    check_grads(lambda x, w, c: ndimage.convolve(x, w, mode=mode, cval=c, origin=(1, 0)), (x, v, 0.4), order=1)
    check_grads(lambda x: ndimage.uniform_filter(x, (3, 8), mode=mode), (x,), order=1)
    check_grads(lambda x, s: ndimage.gaussian_filter(x, s, (1, 2), mode=mode, radius=4), (x, 0.9), order=1)
    at = np.array([[-1.3, 0.4, 2.7, 4.6], [0.3, -0.6, 1.4, 1.8]])
    for order in (1, 2, 3):
        check_grads(
            lambda x, at, c, order=order: ndimage.map_coordinates(x, at, order=order, mode=mode, cval=c),
            (x, at, 0.3),
            order=1,
        )
    check_grads(lambda x, a: ndimage.rotate(x, a, mode=mode, reshape=False), (x, 17.0), order=1)


def test_second_derivatives_of_interpolation():
    at = RNG.uniform(0.3, 2.7, (2, 3))
    check_grads(lambda at: ndimage.map_coordinates(X, at, order=3), (at,), order=2)
    check_grads(lambda s, x: ndimage.shift(x, s, order=4, mode="mirror"), (0.3, X), order=2)
    check_grads(lambda m, o: ndimage.affine_transform(X, m, o, order=5), (0.4 * np.eye(2) + 0.1, np.ones(2)), order=2)
    check_grads(lambda s: ndimage.gaussian_gradient_magnitude(X, s), (0.9,), order=2)
    assert jacfwd(lambda c: ndimage.map_coordinates(X[0], [c], order=0))(np.array([1.2])).tolist() == [[0.0]]


def test_last_element_uses_left_derivative():
    x, grid = np.array([0.0, 1.0, 4.0, 9.0]), np.arange(4.0)
    for mode in ("constant", "nearest", "mirror", "wrap"):
        slopes = grad(lambda c, mode=mode: fnp.sum(ndimage.map_coordinates(x, [c], order=1, mode=mode)))(grid)
        np.testing.assert_allclose(slopes, [1, 3, 5, 5])


def test_rank_filter_derivative_goes_to_chosen_element():
    x = np.array([1.0, 3.0, 3.0, 0.0, 2.0])
    assert grad(lambda x: ndimage.maximum_filter(x, 3)[2])(x).tolist() == [0, 1, 0, 0, 0]
    assert grad(lambda x: ndimage.median_filter(x, 5)[2])(x).tolist() == [0, 0, 0, 0, 1]
    at = jax.grad(lambda x: ndimage.median_filter(x, 3)[1])(jnp.asarray(x))
    assert at.tolist() == grad(lambda x: ndimage.median_filter(x, 3)[1])(x).tolist() == [0, 1, 0, 0, 0]
    slope = grad(lambda c: fnp.sum(ndimage.minimum_filter(x, 3, mode="constant", cval=c)))(-1.0)
    assert slope == 2.0
    wide = RNG.normal(size=(2, 700, 700))
    want = scipy.ndimage.median_filter(wide[1], 5)  # sorted in parts
    np.testing.assert_array_equal(vmap(lambda x: ndimage.median_filter(x, 5))(wide)[1], want)


def test_gradient_magnitude_of_flat_image_has_zero_derivative():
    flat = np.ones((4, 4))
    assert not grad(lambda x: fnp.sum(ndimage.gaussian_gradient_magnitude(x, 1.0)))(flat).any()


def test_tiny_weights_are_accurate():
    w = 1e-30 * RNG.normal(size=(2, 3))
    want = jvp(lambda w: ndimage.correlate(X, w), (1e30 * w,), (1e30 * w,))[1]
    got = jvp(lambda w: ndimage.correlate(X, w), (w,), (w,))[1]
    np.testing.assert_allclose(1e30 * got, want, rtol=1e-13)


def test_batches_of_images_weights_and_widths():
    x, w, s = RNG.normal(size=(3, 6, 5)), RNG.normal(size=(3, 2, 3)), np.array([0.95, 1.0, 1.05])
    for axes in ((0, 0), (0, None), (None, 0)):
        a, b = (v if i == 0 else v[0] for v, i in zip((x, w), axes, strict=True))
        got = vmap(lambda x, w: ndimage.correlate(x, w, mode="wrap"), in_axes=axes)(a, b)
        for i in range(3):
            pair = [v[i] if k == 0 else v for v, k in zip((a, b), axes, strict=True)]
            np.testing.assert_allclose(got[i], scipy.ndimage.correlate(*pair, mode="wrap"), atol=1e-13)
    got = vmap(lambda x, s: ndimage.gaussian_filter(x, s, truncate=4.0))(x, s)
    np.testing.assert_allclose(got[2], scipy.ndimage.gaussian_filter(x[2], 1.05, truncate=4.0), atol=1e-13)
    got = vmap(lambda a: ndimage.rotate(X, a, reshape=False))(20 * s)
    np.testing.assert_allclose(got[2], scipy.ndimage.rotate(X, 21.0, reshape=False), atol=1e-12)


def test_filters_on_jax_arrays():
    x, at = jnp.asarray(X), jnp.asarray(RNG.uniform(-2, 7, (2, 9)))
    for mode in BORDERS:
        programs = (
            lambda x, at, mode=mode: ndimage.gaussian_filter(x, 1.1, 1, mode=mode),
            lambda x, at, mode=mode: ndimage.uniform_filter(x, 4, mode=mode),
            lambda x, at, mode=mode: ndimage.map_coordinates(x, at, order=3, mode=mode),
        )
        for program in programs[: 3 if mode in ("nearest", "reflect", "wrap") else 1]:
            want = jacrev(lambda x, f=program: f(x, np.asarray(at)))(X)
            np.testing.assert_allclose(jax.jit(jax.jacrev(program))(x, at), want, atol=1e-12)
    got = jax.jit(lambda s: ndimage.gaussian_filter(x, s, radius=3))(1.1)
    np.testing.assert_allclose(got, scipy.ndimage.gaussian_filter(X, 1.1, radius=3), atol=1e-13)


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")  # SciPy's, of unused labels
def test_measurements_of_regions():
    for name in ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum"):
        same(name, X)
        same(name, X, LABELS)
        same(name, X, LABELS, 4)
        same(name, X, LABELS, [4, 0, 7, 4])
        same(name, X, LABELS, np.array([[2, 1], [7, 0]]))
        same(name, X, LABELS[0], [2, 1])
        same(name, X.astype(np.float32), LABELS, [4, 0], tolerance=1e-6)
    for name in ("sum_labels", "minimum", "maximum"):
        same(name, X, LABELS, [4, 3, -1])
    for name, dtype in itertools.product(("minimum", "maximum"), (np.uint8, int, bool)):
        for args in ((), (LABELS,), (LABELS, [4, 0, 7, 4])):
            measure, images = getattr(scipy.ndimage, name), np.stack([10 * X, 20 * X]).astype(dtype)
            want = np.stack([measure(image, *args) for image in images])
            np.testing.assert_array_equal(vmap(lambda x: measure(x, *args))(images), want, strict=True)  # noqa: B023
    want = scipy.ndimage.center_of_mass(X**2, LABELS, [1, 4])
    np.testing.assert_allclose(traced(lambda x: ndimage.center_of_mass(x**2, LABELS, [1, 4]), X), want)
    check_grads(lambda x: ndimage.variance(x, LABELS, [4, 0, 7, 4]), (X,), order=2)
    assert hessian(lambda x: ndimage.sum_labels(x, LABELS, 1))(X).any() == 0


REFUSED = [
    (InputError, "output must be a dtype", lambda x: ndimage.sobel(x, output=np.empty((6, 5)))),
    (InputError, "output must be a dtype", lambda x: ndimage.maximum_filter(x, 3, output=np.empty((6, 5)))),
    (InputError, "integers have no derivative", lambda x: ndimage.correlate1d(np.arange(3), x[0])),
    (InputError, "integers have no derivative", lambda x: ndimage.gaussian_filter(x, 1.0, output=int)),
    (InputError, "complex numbers have no order", lambda x: ndimage.median_filter(x * 1j, 3)),
    (InputError, "a window is needed", lambda x: ndimage.maximum_filter(x)),
    (InputError, "a window is needed", lambda x: ndimage.rank_filter(x, 0)),
    (InputError, "zoom sets the shape", lambda x: ndimage.zoom(X, x[0, 0])),
    (InputError, "coordinates must be real", lambda x: ndimage.map_coordinates(x, COORDINATES * 1j)),
    (InputError, "must be plain arrays", lambda x: ndimage.minimum(X, x)),
    (InputError, "only real numbers", lambda x: ndimage.minimum(x * 1j, LABELS, [1])),
    (ShapeError, "must be a vector", lambda x: ndimage.correlate1d(x, x)),
    (ShapeError, "weights must have one axis", lambda x: ndimage.correlate(x, x[0])),
    (ShapeError, "origin must leave", lambda x: ndimage.correlate1d(x, [1.0, 2.0], origin=1)),
    (ShapeError, "mode must be", lambda x: ndimage.correlate1d(x, [1.0], mode="other")),
    (ShapeError, "mode must be", lambda x: ndimage.shift(x, 1, mode="other")),
    (ShapeError, "order must be", lambda x: ndimage.shift(x, 1, order=6)),
    (ShapeError, "order must not", lambda x: ndimage.gaussian_filter(x, 1, -1)),
    (ShapeError, "radius must not", lambda x: ndimage.gaussian_filter(x, 1, radius=-1)),
    (ShapeError, "sigma must be one number", lambda x: ndimage.gaussian_filter1d(x, x[0])),
    (ShapeError, "sigma must be one, or one for each", lambda x: ndimage.gaussian_filter(x, x[0])),
    (ShapeError, "axes must be different", lambda x: ndimage.gaussian_filter(x, 1.0, axes=(0, 0))),
    (ShapeError, "size must be positive", lambda x: ndimage.uniform_filter1d(x, 0)),
    (ShapeError, "size must be positive", lambda x: ndimage.maximum_filter1d(x, 0)),
    (ShapeError, "footprint must have", lambda x: ndimage.median_filter(x, footprint=np.ones(3))),
    (ShapeError, "rank must be", lambda x: ndimage.rank_filter(x, 9, 3)),
    (ShapeError, "percentile must lie", lambda x: ndimage.percentile_filter(x, 101, 3)),
    (ShapeError, "input must have an axis", lambda x: ndimage.shift(x[0, 0], 1)),
    (ShapeError, "coordinates must have 2", lambda x: ndimage.map_coordinates(x, COORDINATES[:1])),
    (ShapeError, "matrix must be", lambda x: ndimage.affine_transform(x, np.eye(4))),
    (ShapeError, "the last row", lambda x: ndimage.affine_transform(x, np.ones((3, 3)))),
    (ShapeError, "two different axes", lambda x: ndimage.rotate(x, 3, (1, 1))),
]


def test_output_argument_with_plain_values():
    found = np.empty_like(X)
    assert ndimage.gaussian_filter(X, 1.0, output=found) is found
    np.testing.assert_array_equal(found, scipy.ndimage.gaussian_filter(X, 1.0))


@pytest.mark.parametrize(("error", "match", "fun"), REFUSED, ids=[match for _, match, _ in REFUSED])
def test_errors_name_a_remedy(error, match, fun):
    with pytest.raises(error, match=match):
        traced(fun, X)


def test_static_options_are_needed_under_jit():
    for program, match in (
        (lambda s: ndimage.gaussian_filter(X, s), "Pass radius"),
        (lambda s: ndimage.rotate(X, s), "Pass reshape=False"),
    ):
        with pytest.raises(ConcretizationError, match=match):
            jax.eval_shape(program, 1.0)
        with pytest.raises(ConcretizationError, match=match):
            vmap(program)(np.array([1.0, 60.0]))


@pytest.mark.parametrize("options", [{}, {"iterations": 2}, {"iterations": 3, "brute_force": True}])
@pytest.mark.parametrize("name", ["binary_erosion", "binary_dilation", "binary_opening"])
def test_binary_images_of_traced_values(name, options):
    """Which pixels are 0 carries no derivative, as the result of a comparison."""
    x = np.zeros((9, 9))
    x[1:8, 2:8], x[4, 4] = 1.5, 0.0
    want = getattr(scipy.ndimage, name)(x, **options)
    np.testing.assert_array_equal(grad(lambda x: np.sum(x * getattr(scipy.ndimage, name)(x, **options)))(x), want)


@pytest.mark.parametrize("name", ["minimum_filter", "median_filter"])
def test_traced_footprints(name):
    x, footprint = np.random.default_rng(0).normal(size=(4, 5)), np.tri(3)
    fun = lambda x, t: np.sum(getattr(scipy.ndimage, name)(x, footprint=footprint * t))
    np.testing.assert_array_equal(grad(fun)(x, 1.0), grad(lambda x: fun(x, 1.0))(x))
    assert grad(fun, 1)(x, 1.0) == 0.0


def test_constants_of_a_rebuilt_function_are_filtered_by_scipy():
    """The numbers that it makes may be integers, as nothing is traced; traced values can be written to the result."""

    def fun(x):
        image, kernel = np.zeros((2, 3), int), np.zeros((2, 2), int)
        image[...] = [[1, 2, 3], [4, 5, 6]]
        kernel[[0, 1], [0, 1]] = 1
        out = np.zeros((2, 3), int)
        scipy.ndimage.correlate(image, kernel, output=out)
        smooth = scipy.ndimage.gaussian_filter(image * 1.0, 1.0)
        smooth[0] = x
        return out * x + smooth

    want = np.array([[2, 3, 5], [5, 6, 8]]) + np.array([[1], [0]])
    np.testing.assert_array_equal(jacfwd(from_numpy(fun))(2.0), want)


#: SciPy 1.15 warns of the wrapping there, and has no images of complex numbers.
UNUSUAL = [{"mode": "wrap", "grid_mode": True}, {"output": np.complex128}] if at_least(scipy, "1.16.0") else []


@pytest.mark.parametrize("options", [{}, {"prefilter": False}, *UNUSUAL], ids=str)
def test_zoom_by_one(options):
    fun = lambda x: scipy.ndimage.zoom(x, 1.0, **options)
    np.testing.assert_allclose(traced(fun, X), fun(X), rtol=1e-12)
    np.testing.assert_allclose(jvp(fun, (X,), (X**2,))[1], fun(X**2), rtol=1e-12)
