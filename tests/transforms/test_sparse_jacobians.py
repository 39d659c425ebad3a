"""Sparse Jacobians and Hessians: patterns, colours, and the number of products."""

import numpy as np
import pytest
import scipy.sparse

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    no_grad,
    scan,
    stop_gradient,
    vmap,
)
from funcgrad.errors import GradientCheckError, InputError, ShapeError
from funcgrad.extend import elementwise, numpy_only
from funcgrad.transforms.dependence import colour_columns, split_dense_rows

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1.0, 9)
N = 10_000


@custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))


@custom_jvp
def straight_through(x):
    return fnp.round(x)


straight_through.defjvp(lambda primals, tangents: (fnp.round(primals[0]), tangents[0]))


def written(x):
    y = fnp.zeros(9)
    y[1:4] = x[:3] ** 2
    y[5] += x[8]
    return y


def by_steps(x):
    return scan(lambda c, a: (a, c * a), 0.0, x)[1]


def bands(x):
    return fnp.concatenate([x[:1], x[1:-1] * x[2:] - fnp.sin(x[:-2]), x[-1:] * x[-2:-1]])


# a function, and the number of entries in its pattern, if that is guaranteed
FUNCTIONS = {
    "bands": (bands, 24),
    "roll": (lambda x: fnp.roll(x, 1) * x, 18),
    "cumsum": (fnp.cumsum, 45),
    "sort": (lambda x: fnp.sort(x) ** 2, 9),
    "fft": (lambda x: fnp.real(fnp.fft.fft(x)), None),
    "fft of rows": (lambda x: fnp.abs(fnp.fft.rfft(x.reshape(3, 3))), 18),
    "convolve": (lambda x: fnp.convolve(x, np.array([1.0, 2.0, 1.0]), "same"), 25),
    "where": (lambda x: fnp.where(x > 0.5, x, x[::-1]), None),
    "maximum": (lambda x: fnp.maximum(x, x[::-1]), None),
    "branch": (lambda x: x * x if x[0] > 0 else x, 9),
    "lower triangle": (lambda x: np.tri(9) @ x, 45),
    "matrices": (lambda x: x.reshape(3, 3) @ x.reshape(3, 3), 45),
    "batches": (lambda x: fnp.matmul(x.reshape(3, 1, 3), np.stack([np.tri(3)] * 3)), 18),
    "einsum": (lambda x: fnp.einsum("ij,kj->ik", x.reshape(3, 3), np.eye(3)), 9),
    "prod": (lambda x: fnp.prod(x.reshape(3, 3), 0), 9),
    "gradient": (fnp.gradient, 18),
    "solve": (lambda x: fnp.linalg.solve(np.eye(9) * 2 + np.tri(9), x), 45),
    "inv": (lambda x: fnp.linalg.inv(x.reshape(3, 3) + 3 * np.eye(3)), 81),
    "mean": (lambda x: x - fnp.mean(x), 81),
    "stack": (lambda x: fnp.stack([x[0] * x[1], x[2]]), 3),
    "take": (lambda x: fnp.take(x, [0, 0, 3]), 3),
    "scatter": (lambda x: fnp.bincount(np.array([0, 2, 0, 1, 1, 2, 3, 0, 3]), x), 9),
    "written": (written, 4),
    "steps": (by_steps, 17),
    "vmap": (lambda x: vmap(lambda a: a * a)(x), 9),
    "inner gradient": (lambda x: grad(lambda z: fnp.sum(bands(z)))(x), 21),
    "checkpoint": (checkpoint(bands), 24),
    "own pullback": (squared, 9),
    "own tangent": (straight_through, 9),
    "constant": (lambda x: stop_gradient(x) * 2 + no_grad(fnp.sin)(x), 0),
    "scalar": (lambda x: fnp.sum(x[:4] ** 2), 4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_automatic_patterns(name):
    function, entries = FUNCTIONS[name]
    found = jacobian(function, sparsity="auto")(X)
    assert scipy.sparse.issparse(found)
    assert found.format == "csr"
    np.testing.assert_allclose(found.toarray(), jacobian(function)(X).reshape(found.shape), rtol=1e-12, atol=1e-14)
    assert entries is None or found.nnz == entries


@pytest.mark.parametrize("name", FUNCTIONS)
def test_automatic_patterns_of_hessians(name):
    function = FUNCTIONS[name][0]

    def total(x):
        return fnp.sum(fnp.sin(function(x)))

    found = hessian(total, sparsity="auto")(X)
    np.testing.assert_allclose(found.toarray(), hessian(total)(X), rtol=1e-11, atol=1e-13)


class Counter:
    """Operation that doubles a tangent or cotangent of ``N`` entries, and counts them."""

    def __init__(self):
        self.rows = 0
        self.double = elementwise("double", numpy_only(self.run), dx=2.0)

    def run(self, t):
        self.rows += np.size(t) // N
        return 2.0 * t

    def square(self, x):
        """Square ``x``; each tangent or cotangent that passes is counted."""
        made = custom_jvp(lambda x: x * x)
        made.defjvp(lambda primals, tangents: (primals[0] * primals[0], primals[0] * self.double(tangents[0])))
        return made(x)


TRIDIAGONAL = scipy.sparse.diags_array([np.ones(N - 1), np.ones(N), np.ones(N - 1)], offsets=[-1, 0, 1])


@pytest.mark.parametrize(("sparsity", "most"), [("auto", 5), (TRIDIAGONAL, 3)], ids=["auto", "given"])
def test_large_tridiagonal_jacobian_costs_three_products(sparsity, most):
    counter = Counter()

    def function(x):
        y = counter.square(x)
        return fnp.concatenate([y[:1], y[1:-1] * x[2:] - x[:-2], y[-1:] * x[-2:-1]])

    x = RNG.uniform(0.1, 1.0, N)
    found = jacobian(function, sparsity=sparsity, check=False)(x)
    assert found.shape == (N, N)
    assert 3 <= counter.rows <= most  # with "auto" including the rows that the trace itself computes
    v = RNG.normal(size=N)
    tail = np.zeros(N)
    tail[0] = 2 * x[0] * v[0]
    tail[1:-1] = 2 * x[1:-1] * v[1:-1] * x[2:] + x[1:-1] ** 2 * v[2:] - v[:-2]
    tail[-1] = 2 * x[-1] * v[-1] * x[-2] + x[-1] ** 2 * v[-2]
    np.testing.assert_allclose(found @ v, tail, rtol=1e-12, atol=1e-12)


def test_large_sparse_hessian():
    def energy(x):
        return fnp.sum((x[1:] - x[:-1] ** 2) ** 2) + fnp.sum(x**4)

    x = RNG.uniform(0.1, 1.0, N)
    found = hessian(energy, sparsity="auto")(x)
    assert found.nnz == 3 * N - 2
    middle = 2 * np.r_[0, np.ones(N - 1)] + 12 * x**2 + np.r_[12 * x[:-1] ** 2 - 4 * x[1:], 0]
    np.testing.assert_allclose(found.diagonal(), middle, rtol=1e-12)
    np.testing.assert_allclose(found.diagonal(1), -4 * x[:-1], rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fnp.concatenate([fnp.sum(x**2)[None], x[1:] * x[:-1]]),  # a full row
        lambda x: fnp.concatenate([x[0] * x[1:], x[1:] * x[:-1]]),  # a full column
        lambda x: fnp.concatenate([x[0] * x, fnp.sum(x * x)[None], x[1:] * x[:-1]]),  # both
    ],
)
def test_dense_rows_and_columns_cost_one_product_each(function):
    x = RNG.uniform(0.1, 1.0, 400)
    found = jacobian(function, sparsity="auto")(x)
    np.testing.assert_allclose(found.toarray(), jacfwd(function)(x), rtol=1e-12, atol=1e-14)


def test_arrow_pattern_costs_two_products():
    def arrow(x):
        return fnp.sum(x * x[0]) + fnp.sum(fnp.sin(x))

    x = RNG.uniform(0.1, 1.0, N)
    found = hessian(arrow, sparsity="auto")(x)
    assert found.nnz == 3 * N - 2
    np.testing.assert_allclose(found.diagonal()[1:], -np.sin(x[1:]), rtol=1e-12)
    np.testing.assert_allclose(hessian(arrow, sparsity="auto")(X).toarray(), hessian(arrow)(X), rtol=1e-12)


@pytest.mark.parametrize("operation", [fnp.cumsum, lambda x, axis: fnp.real(fnp.fft.rfft(x, axis=axis))])
@pytest.mark.parametrize("axis", [0, -1])
def test_operation_along_long_axis_keeps_other_axes_apart(operation, axis):
    x = np.moveaxis(RNG.normal(size=(3, 120)), -1, axis)
    found = jacobian(lambda x: operation(x, axis=axis), sparsity="auto")(x)
    want = jacrev(lambda x: operation(x, axis=axis))(x).reshape(found.shape)
    np.testing.assert_allclose(found.toarray(), want, atol=1e-12)
    assert found.nnz == found.shape[0] * 120


def test_patterns_of_two_axes_and_of_trees():
    def stencil(u):
        padded = fnp.pad(u, 1)
        return u**3 + padded[1:-1, 2:] + padded[1:-1, :-2] + padded[2:, 1:-1] + padded[:-2, 1:-1] - 4 * u

    u = RNG.normal(size=(5, 4))
    found = jacobian(stencil, sparsity="auto")(u)
    np.testing.assert_allclose(found.toarray(), jacrev(stencil)(u).reshape(20, 20))
    assert found.nnz == 20 + 2 * (5 * 3 + 4 * 4)

    def of_tree(p, c):
        return {"a": p["w"] * c, "b": p["v"][::-1]}

    p = {"v": np.array([1.0, 2.0]), "w": np.array([3.0, 4.0, 5.0])}
    both = jacobian(of_tree, argnums=(0, 1), sparsity="auto")(p, 2.0)
    want = np.zeros((5, 6))  # columns v, w, c; rows a, b
    want[:3, 2:5], want[:3, 5], want[3:, :2] = 2 * np.eye(3), p["w"], np.eye(2)[::-1]
    assert np.array_equal(both.toarray(), want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_follow_the_inputs(dtype):
    x = X.astype(dtype)
    assert jacobian(bands, sparsity="auto")(x).dtype == dtype
    assert hessian(lambda x: fnp.sum(bands(x)), sparsity="auto")(x).dtype == dtype
    np.testing.assert_allclose(jacobian(bands, sparsity="auto")(x).toarray(), jacobian(bands)(x))


def test_aux_and_other_arguments_pass_through():
    found, aux = jacobian(lambda s, x, *, k: (s * x**k, "aux"), 1, True, sparsity="auto")(2.0, X, k=2)
    assert aux == "aux"
    np.testing.assert_allclose(found.diagonal(), 4 * X)


def test_given_pattern_is_used_unchanged():
    want = jacobian(bands)(X)
    for pattern in (want != 0, scipy.sparse.coo_array(want != 0), np.ones((9, 9), bool)):
        found = jacobian(bands, sparsity=pattern)(X)
        assert found.nnz == (pattern.sum() if isinstance(pattern, np.ndarray) else pattern.nnz)
        np.testing.assert_allclose(found.toarray(), want)


@pytest.mark.parametrize("transform", [jacobian, hessian])
def test_pattern_with_missing_entry_raises(transform):
    function = bands if transform is jacobian else lambda x: fnp.sum(bands(x))
    pattern = transform(function)(X) != 0
    pattern[3, 4] = pattern[4, 3] = False
    with pytest.raises(GradientCheckError, match="the sparsity pattern lacks entries"):
        transform(function, sparsity=pattern)(X)
    transform(function, sparsity=pattern, check=False)(X)


def test_errors():
    with pytest.raises(ShapeError, match=r"got \(8, 9\), expected \(9, 9\)"):
        jacobian(bands, sparsity=np.ones((8, 9)))(X)
    with pytest.raises(InputError, match='must be "auto", a sparse matrix'):
        jacobian(bands, sparsity="all")
    with pytest.raises(InputError, match="is complex, got"):
        jacobian(bands, sparsity="auto", holomorphic=False)(X + 1j)
    with pytest.raises(InputError, match="holomorphic"):
        hessian(bands, holomorphic=True, sparsity="auto")
    with pytest.raises(InputError, match="no traced values"):
        grad(lambda x: jacobian(bands, sparsity="auto")(x).sum())(X)
    with pytest.raises(InputError, match="must be real or complex floating point"):
        jacobian(bands, sparsity="auto")(np.arange(9))
    with pytest.raises(InputError, match="no argument of this name, got argnum=0"):
        hessian(bands, argnum=0, sparsity="auto")
    with pytest.raises(InputError, match="is not sparse"):
        jacobian(lambda x: fnp.real(fnp.fft.fft(x)), sparsity="auto")(np.ones(8000))


def test_colouring_is_valid_and_small():
    rng = np.random.default_rng(3)
    for density in (0.01, 0.1, 0.5):
        pattern = scipy.sparse.random(60, 50, density, "csr", rng=rng) != 0
        colours = colour_columns(pattern)
        for row in pattern.toarray():
            assert len(set(colours[row])) == row.sum()
    assert colour_columns(TRIDIAGONAL).max() == 2
    assert colour_columns(TRIDIAGONAL, max_colours=2) is None
    assert colour_columns(np.zeros((3, 0))).size == 0


def test_dense_rows_are_separated():
    pattern = np.eye(50, dtype=bool)
    pattern[7] = pattern[30, ::2] = True
    rows, bound = split_dense_rows(scipy.sparse.csr_matrix(pattern))
    assert rows.tolist() == [7, 30]
    assert bound == 3


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.zeros(0),
        lambda x: np.cumsum(x)[:0],
        lambda x: np.sort(x[:0]),
        lambda x: np.sign(x) * x,
        lambda x: np.round(x) * x,
        lambda x: x[np.argsort(x)],
        lambda x: x[x > 0.5] ** 2,
    ],
    ids=["constants", "no sums", "no inputs", "signs", "rounded", "sorted", "selected"],
)
def test_patterns_of_empty_and_constant_parts(fun):
    found = jacobian(fun, sparsity="auto")(X)
    np.testing.assert_allclose(found.toarray(), np.reshape(jacobian(fun)(X), found.shape), rtol=1e-14)
    assert found.shape == (len(fun(X)), len(X))
