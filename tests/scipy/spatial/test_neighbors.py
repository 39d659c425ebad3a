"""Nearest neighbours by SciPy's trees in unchanged programs: values, derivatives, batches, recordings, JAX."""

import copy

import jax
import numpy as np
import pytest
from helpers import differences
from scipy.spatial import ConvexHull, KDTree, cKDTree

from funcgrad import grad, hessian, jacfwd, jacrev, jit, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.scipy import spatial

RNG = np.random.default_rng(4)
POINTS, X = RNG.uniform(size=(9, 2)), RNG.uniform(size=(4, 2))
TREE, AROUND = cKDTree(POINTS), KDTree(POINTS, boxsize=[1.0, 0.0])

OF_QUERIES = {
    "one neighbor": lambda x: TREE.query(x)[0],
    "three": lambda x: KDTree(POINTS).query(x, k=3)[0],
    "of one point": lambda x: TREE.query(x[0], k=2)[0],
    "some": lambda x: TREE.query(x, k=[2, 4])[0],
    "Manhattan": lambda x: TREE.query(x, k=2, p=1)[0],
    "largest": lambda x: TREE.query(x, p=np.inf)[0],
    "another p": lambda x: TREE.query(x, k=2, p=3)[0],
    "in a box": lambda x: AROUND.query(x, k=4)[0],
    "bounded": lambda x: np.minimum(TREE.query(x, k=5, distance_upper_bound=0.3)[0], 1.0),
    "more than there are": lambda x: TREE.query(x, k=10)[0][:, :9],
    "values there": lambda x: np.sin(POINTS)[TREE.query(x)[1]] * x,
}
OF_POINTS = {
    "distances": lambda x: KDTree(x).query(POINTS, k=2)[0],
    "to each other": lambda x: cKDTree(x).query(x, k=2)[0][:, 1],
    "in a ball": lambda x: np.stack([np.sum(x[i], axis=0) for i in KDTree(x).query_ball_point(POINTS, 0.5)]),
    "pairs": lambda x: np.sum([np.sum((x[i] - x[j]) ** 2) for i, j in cKDTree(x).query_pairs(0.6)]) * x[0],
}


@pytest.mark.parametrize("fun", (OF_QUERIES | OF_POINTS).values(), ids=OF_QUERIES | OF_POINTS)
def test_distances_to_neighbors(fun):
    value, _ = vjp(fun, X)
    np.testing.assert_allclose(value, fun(X), rtol=1e-14)
    slopes = jacrev(fun)(X)
    np.testing.assert_allclose(slopes, differences(fun, X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacfwd(fun)(X), slopes, rtol=1e-12, atol=1e-15)

    def total(x):
        return np.sum(fun(x) ** 2)

    np.testing.assert_allclose(hessian(total)(X), differences(grad(total), X), rtol=1e-5, atol=1e-6)
    recorded = jit(grad(total), backend="numpy")
    for x in (X, X[::-1].copy()):
        np.testing.assert_array_equal(recorded(x), grad(total)(x))


TREES_OF_A_BATCH = {
    **{name: OF_POINTS[name] for name in ("distances", "to each other")},
    "around a box": lambda x: KDTree(x, boxsize=[2.0, 0.0]).query(POINTS, k=3)[0],
    "bounds": lambda x: np.minimum(KDTree(x).query(POINTS, k=[1, 9], distance_upper_bound=0.3)[0], 1.0),
    "sizes": lambda x: KDTree(x).query(POINTS)[0] * KDTree(x).n,
}


@pytest.mark.parametrize("fun", (OF_QUERIES | TREES_OF_A_BATCH).values(), ids=OF_QUERIES | TREES_OF_A_BATCH)
def test_neighbors_in_a_batch(fun):
    batch = np.stack([X, X[::-1], 1.0 - X])
    np.testing.assert_allclose(vmap(fun)(batch), [fun(x) for x in batch], rtol=1e-13)
    np.testing.assert_allclose(vmap(jacrev(fun))(batch), [jacrev(fun)(x) for x in batch], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("make", [lambda x: TREE, KDTree])
def test_query_ball_shared_by_batch(make):
    def fun(x):
        found = make(x * 1.0).query_ball_point(x[:2] * 1.01, 0.4)
        return sum(np.sum((POINTS[i] - x[0]) ** 2) for i in found)

    batch = np.stack([X, X * 1.0001])
    np.testing.assert_allclose(vmap(grad(fun))(batch), [grad(fun)(x) for x in batch], rtol=1e-12)
    np.testing.assert_allclose(grad(fun)(X), differences(fun, X), rtol=1e-7, atol=1e-8)


def test_neighbors_under_jax():
    tree = spatial.KDTree(POINTS)

    def total(x):
        return tree.query(x, k=2)[0].sum()

    np.testing.assert_allclose(jax.jit(grad(total))(X), grad(total)(X), rtol=1e-13)
    of_points = lambda x: spatial.KDTree(x).query(POINTS, k=2)[0].sum()
    np.testing.assert_allclose(jax.jit(grad(of_points))(X), grad(of_points)(X), rtol=1e-13)


def test_invalid_calls_raise():
    with pytest.raises(ConcretizationError, match="distance_upper_bound"):
        vmap(lambda x: spatial.KDTree(x).query_ball_point(POINTS, 0.3))(np.stack([X, X + 1.0]))
    with pytest.raises(AttributeError, match="query_pairs of traced points"):
        vmap(lambda x: spatial.KDTree(x).query_pairs(0.3))(np.stack([X, X + 1.0]))
    with pytest.raises(ValueError, match="of shape"):
        vmap(lambda x: spatial.KDTree(x[0]))(np.stack([X, X + 1.0]))
    with pytest.raises(ShapeError, match="2 long"):
        grad(lambda x: TREE.query(x)[0].sum())(np.ones((2, 3)))
    with pytest.raises(AttributeError, match="count_neighbors of traced points"):
        vmap(lambda x: spatial.KDTree(x).count_neighbors(TREE, 0.3))(np.stack([X, X + 1.0]))
    for call in (lambda x: TREE.sparse_distance_matrix(cKDTree(x), 0.3), lambda x: TREE.count_neighbors(TREE, x[0, 0])):
        with pytest.raises(InputError, match="traced points, or weights"):
            grad(lambda x, call=call: call(x) * x.sum())(X)


@pytest.mark.parametrize("name", ["count_neighbors", "query_ball_tree"])
def test_neighbors_in_two_trees_are_constants(name):
    want = getattr(TREE, name)(cKDTree(X), 0.3)
    traced = lambda x: KDTree(POINTS + 0 * x[0, 0])
    for call in (lambda x: getattr(TREE, name)(cKDTree(x), 0.3), lambda x: getattr(traced(x), name)(KDTree(x), 0.3)):
        found = []
        slope = grad(lambda x, call=call, found=found: (found.append(call(x)), x.sum())[1])(X)
        np.testing.assert_array_equal(slope, np.ones((4, 2)))
        assert call(X) == found[-1] == want
    assert getattr(spatial.KDTree(POINTS), name)(TREE, 0.3) == getattr(TREE, name)(TREE, 0.3)


def test_copies_of_trees_and_hulls():
    points = np.random.default_rng(0).normal(size=(8, 2))
    near = lambda p, tree=lambda p: p: tree(KDTree(p)).query(np.zeros(2))[0]
    area = lambda p, hull=lambda p: p: hull(ConvexHull(p)).volume
    for fun in (near, area):
        for copied in (copy.copy, copy.deepcopy):
            np.testing.assert_array_equal(grad(lambda p: fun(p, copied))(points), grad(fun)(points))  # noqa: B023
