"""Distances: traced values give SciPy's results, for all metrics; equal points; errors."""

import jax
import numpy as np
import pytest
import scipy.interpolate
import scipy.spatial.distance
from helpers import differences, traced

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.scipy.spatial import distance

RNG = np.random.default_rng(0)
X, Y, W = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3)), RNG.uniform(0.2, 2.0, 3)
WEIGHTED = [{}, {"w": W}, {"w": np.array([0.0, 1.0, 2.0])}]
POWERS = [{"p": p} for p in (0.7, 1, 1.5, 2, 3.0, np.inf)]
METRICS = {
    "euclidean": WEIGHTED,
    "e": [{}],
    "sqeuclidean": WEIGHTED,
    "cityblock": WEIGHTED,
    "CB": [{}],
    "chebyshev": WEIGHTED,
    "minkowski": [*POWERS, *[{**p, "w": W} for p in POWERS], {}],
    "cosine": [{}],
    "correlation": [{}],
    "canberra": WEIGHTED,
    "braycurtis": WEIGHTED,
    "mahalanobis": [{}, {"VI": np.diag(W) + 0.1}],
    "seuclidean": [{}, {"V": W}],
    "jensenshannon": [{}],
}


@pytest.mark.parametrize("metric", METRICS)
def test_pairwise_distances_by_every_metric(metric):
    x, y = (np.abs(X) + 0.3, np.abs(Y) + 0.3) if metric == "jensenshannon" else (X, Y)
    for options in METRICS[metric]:
        want = scipy.spatial.distance.cdist(x, y, metric, **options)
        got = traced(lambda x, y, o=options: distance.cdist(x, y, metric, **o), x, y)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
        want = scipy.spatial.distance.pdist(x, metric, **options)
        got = traced(lambda x, o=options: distance.pdist(x, metric, **o), x)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
        near = (x[:4], y[:2] + 0.1) if metric == "mahalanobis" else (x[2:4], y[:2] + 0.1)
        check_grads(lambda x, y, o=options: distance.cdist(x, y, metric, **o), near, order=2)


@pytest.mark.filterwarnings("ignore:Setting:UserWarning")
@pytest.mark.parametrize("metric", [m for m in METRICS if m.islower() and m != "e"])
def test_vector_distances_by_every_metric(metric):
    u, v = np.abs(X[:2])
    needed = {"mahalanobis": (np.diag(W) + 0.1,), "seuclidean": (W,)}.get(metric, ())
    for options in [{}] if needed else METRICS[metric]:
        want = getattr(scipy.spatial.distance, metric)(u, v, *needed, **options)
        got = traced(lambda u, v, o=options: getattr(distance, metric)(u, v, *needed, **o), u, v)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_cosine_correlation_and_jensenshannon_options():
    for name in ("cosine", "correlation"):
        want = getattr(scipy.spatial.distance, name)(X[0], X[1], W)
        got = traced(lambda u, v, n=name: getattr(distance, n)(u, v, W), X[0], X[1])
        np.testing.assert_allclose(got, want, rtol=1e-13)
    want = scipy.spatial.distance.correlation(X[0], X[1], centered=False)
    np.testing.assert_allclose(traced(lambda u: distance.correlation(u, X[1], centered=False), X[0]), want)
    p, q = np.abs(X), np.abs(X[::-1])
    for options in ({"axis": 1}, {"axis": 0, "keepdims": True, "base": 3.0}):
        want = scipy.spatial.distance.jensenshannon(p, q, **options)
        np.testing.assert_allclose(traced(lambda p, o=options: distance.jensenshannon(p, q, **o), p), want)


def test_probabilities_of_zero_count_as_constants_in_jensenshannon():
    """The slope there is infinite; the others are those of the probabilities that are not zero."""
    p, q = np.array([0.0, 0.5, 0.6, 0.0]), np.array([0.2, 0.3, 0.5, 0.0])
    f, move = lambda p: distance.jensenshannon(p, q, 2.0), np.array([0.0, 1e-4, -3e-4, 0.0])
    slope = grad(f)(p)
    np.testing.assert_array_equal(slope[[0, 3]], 0.0)
    around = scipy.spatial.distance.jensenshannon(p + move, q, 2.0) - f(p - move)
    np.testing.assert_allclose(2 * slope @ move, around, rtol=1e-6)
    np.testing.assert_allclose(jacfwd(f)(p), slope, rtol=1e-13)
    np.testing.assert_allclose(2 * hessian(f)(p) @ move, grad(f)(p + move) - grad(f)(p - move), rtol=1e-5)
    assert grad(lambda q: distance.jensenshannon(p, q))(q)[0] > 0


@pytest.mark.parametrize(
    "metric",
    ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "canberra", "mahalanobis", "seuclidean", "minkowski"],
)
def test_equal_points_have_zero_derivative(metric):
    options = {"p": 3.0} if metric == "minkowski" else {}
    if metric in ("mahalanobis", "seuclidean"):
        options = {"VI": np.diag(W)} if metric == "mahalanobis" else {"V": W}
    both = np.array([[1.0, 2.0, 0.0]])
    first = jacrev(lambda x: distance.cdist(x, both, metric, **options))(both)
    assert not first.any()
    assert not jacfwd(lambda x: distance.cdist(x, both, metric, **options))(both).any()
    second = hessian(lambda x: fnp.sum(distance.cdist(x, both, metric, **options)))(both)
    if metric == "sqeuclidean":
        np.testing.assert_array_equal(second.reshape(3, 3), 2 * np.eye(3))
    else:
        assert not second.any()
    whole = grad(lambda x: fnp.sum(distance.cdist(x, x, metric, **options) ** 2))(X)
    pairs = grad(lambda x: 2 * fnp.sum(distance.pdist(x, metric, **options) ** 2))(X)
    np.testing.assert_allclose(whole, pairs, atol=1e-11)


def test_close_points_far_from_origin_are_accurate():
    apart = RNG.integers(-4, 5, (6, 3)) / 8.0
    far = apart + 2.0**40
    for x in (apart, far):
        got = grad(lambda x: fnp.sum(fnp.exp(-distance.cdist(x, x, "sqeuclidean"))))(x)
        np.testing.assert_array_equal(
            got, grad(lambda x: fnp.sum(fnp.exp(-distance.cdist(x, x, "sqeuclidean"))))(apart)
        )


@pytest.mark.parametrize("width", [4, 20])
def test_many_points_are_split_into_blocks(width):
    x, y = RNG.normal(size=(300, width)), RNG.normal(size=(250, width))
    ct = RNG.normal(size=(300, 250))
    got = grad(lambda x: fnp.sum(ct * distance.cdist(x, y, "sqeuclidean")))(x)
    np.testing.assert_allclose(got, 2 * np.einsum("ij,ijk->ik", ct, x[:, None] - y), atol=1e-11)
    t = RNG.normal(size=x.shape)
    got = jvp(lambda x: distance.cdist(x, y, "sqeuclidean"), (x,), (t,))[1]
    np.testing.assert_allclose(got, 2 * np.einsum("ik,ijk->ij", t, x[:, None] - y), atol=1e-11)
    batch = vmap(lambda x: distance.cdist(x, y[:3]))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(batch[1], scipy.spatial.distance.cdist(2 * x, y[:3]))


def test_functions_as_metrics():
    own = lambda u, v: fnp.sum(fnp.abs(u - v) ** 3)
    want = scipy.spatial.distance.cdist(X, Y, own)
    np.testing.assert_allclose(distance.cdist(X, Y, own), want)
    np.testing.assert_allclose(traced(lambda x: distance.cdist(x, Y, own), X), want)
    np.testing.assert_allclose(traced(lambda x: distance.pdist(x, own), X), scipy.spatial.distance.pdist(X, own))
    for metric in (scipy.spatial.distance.cosine, distance.cosine):
        want = scipy.spatial.distance.cdist(X, Y, "cosine")
        np.testing.assert_allclose(distance.cdist(X, Y, metric), want)
        np.testing.assert_allclose(traced(lambda x, m=metric: distance.cdist(x, Y, m), X), want)
    scale = grad(lambda a: fnp.sum(distance.cdist(X, Y, lambda u, v: a * own(u, v))))(1.0)
    np.testing.assert_allclose(scale, scipy.spatial.distance.cdist(X, Y, own).sum())


def test_distance_matrices():
    for n in (2, 3, 7):
        v = RNG.uniform(1, 2, n * (n - 1) // 2)
        matrix = scipy.spatial.distance.squareform(v)
        np.testing.assert_array_equal(traced(distance.squareform, v), matrix)
        np.testing.assert_array_equal(traced(distance.squareform, matrix), v)
    assert traced(distance.squareform, np.ones(0)).tolist() == [[0.0]]
    np.testing.assert_array_equal(vmap(distance.squareform)(np.stack([v, v]))[1], matrix)


def test_under_jit():
    got = jax.jit(jax.grad(lambda x: fnp.sum(distance.cdist(x, x) ** 3)))(X)
    np.testing.assert_allclose(got, grad(lambda x: fnp.sum(distance.cdist(x, x) ** 3))(X), atol=1e-11)


REFUSED = [
    (InputError, "out must be None", lambda x: distance.cdist(x, x, out=np.empty((7, 7)))),
    (InputError, "out must be None", lambda x: distance.pdist(x, out=np.empty(21))),
    (InputError, "metric must be one that is differentiable", lambda x: distance.cdist(x, x, "hamming")),
    (ShapeError, "rows of a real matrix", lambda x: distance.pdist(x[0])),
    (ShapeError, "rows must be of one length", lambda x: distance.cdist(x, x[:, :2])),
    (ShapeError, "w must be a vector", lambda x: distance.cdist(x, x, "cityblock", w=x)),
    (ShapeError, "w must not be negative", lambda x: distance.cityblock(x[0], x[1], -W)),
    (ShapeError, "covariance of so few", lambda x: distance.pdist(x[:3], "mahalanobis")),
    (ShapeError, "p must be greater", lambda x: distance.minkowski(x[0], x[1], 0)),
    (ShapeError, "vectors of one length", lambda x: distance.euclidean(x[0], x[1, :2])),
    (ShapeError, "as force says", lambda x: distance.squareform(x[0], "tovector")),
    (ShapeError, "must be square", lambda x: distance.squareform(x)),
    (ValueError, "symmetric", lambda x: distance.squareform(x[:3])),
    (ShapeError, "that of all pairs", lambda x: distance.squareform(x[0, :2])),
]


@pytest.mark.parametrize(("error", "match", "fun"), REFUSED, ids=[match for _, match, _ in REFUSED])
def test_errors_name_a_remedy(error, match, fun):
    with pytest.raises(error, match=match):
        traced(fun, X)


def interpolated(points, x):
    """Interpolate by barycentric coordinates, as SciPy's documentation does."""
    mesh = scipy.spatial.Delaunay(points)
    i = mesh.find_simplex(x)
    shares = mesh.transform[i, :2].dot(x - mesh.transform[i, 2])
    shares = np.append(shares, 1.0 - shares.sum())
    corners = points[mesh.simplices]
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    areas = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2.0
    return shares @ np.arange(1.0, 9.0)[mesh.simplices[i]] ** 1.5 + (areas**2).sum() + mesh.max_bound @ mesh.min_bound


def test_triangulations():
    points, x = np.random.default_rng(0).random((8, 2)), np.array([0.5, 0.45])
    assert scipy.spatial.Delaunay(points).find_simplex(x) >= 0
    for argnum in (0, 1):
        f = lambda z, argnum=argnum: interpolated(z, x) if argnum == 0 else interpolated(points, z)
        at = (points, x)[argnum]
        np.testing.assert_allclose(grad(f)(at), differences(f, at, 1e-4), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(hessian(f)(at), differences(grad(f), at, 1e-4), rtol=1e-6, atol=1e-6)
    outside = scipy.spatial.Delaunay(points)

    def at_places(x):
        i = outside.find_simplex(x)
        return (outside.transform[i, :2].dot(x - outside.transform[i, 2]) ** 2).sum()

    np.testing.assert_allclose(grad(at_places)(x), differences(at_places, x, 1e-4), rtol=1e-7)
    np.testing.assert_allclose(
        vmap(grad(at_places))(np.stack([x, x + 1e-3])), [grad(at_places)(x), grad(at_places)(x + 1e-3)], rtol=1e-12
    )
    line = lambda x: scipy.interpolate.LinearNDInterpolator(outside, points[:, 0] ** 2)(x)[0]
    np.testing.assert_allclose(grad(line)(x), differences(line, x, 1e-4), rtol=1e-8)
    with pytest.raises(AttributeError, match=r"spatial\.Delaunay: equations is for plain points"):
        grad(lambda points: scipy.spatial.Delaunay(points).equations.sum())(points)
