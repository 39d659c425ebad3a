"""Sparse arrays of traced values with one axis, or with more than two."""

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from helpers import at_least, differences

from funcgrad import grad, hessian, value_and_grad, vmap

X = np.array([1.3, 0.7, 2.1, 1.6])
CONSTANT = sp.coo_array(np.array([1.0, 0.0, 3.0, 4.0]))
EYE = (np.arange(4), np.arange(4))
PLACES = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]])


def vector(x):
    return sp.coo_array((x, (np.array([0, 2, 3, 5]),)), shape=(7,))


def cube(x):
    return sp.coo_array((x, tuple(PLACES)), shape=(2, 2, 3))


def written_sums(a):
    sums, means = np.zeros((2, 3)), np.zeros((2, 2))
    a.sum(axis=1, out=sums)
    a.mean(axis=2, out=means)
    return sums[:, :2] @ means


PROGRAMS = {
    "expanded": lambda x: sp.expand_dims(vector(x), axis=0),
    "expanded to three axes": lambda x: sp.expand_dims(sp.coo_array((x, EYE)), axis=-2),
    "expanded constants": lambda x: sp.expand_dims(CONSTANT, axis=1) * x[0],
    "vector": vector,
    "of another": lambda x: sp.coo_array(vector(x)) + type(vector(x))(vector(x).toarray() ** 2),
    "of an array": lambda x: sp.coo_array(x) + sp.csr_array(x) * 2.0 - CONSTANT,
    "values": lambda x: sp.coo_array(x).data + vector(x).coords[0],
    "repeated places": lambda x: sp.coo_array((x, (np.array([0, 2, 2, 3]),))),
    "powers of repeated places": lambda x: (
        sp.coo_array((x, (np.array([0, 2, 2, 3]),))).power(2) + abs(sp.coo_array((x - 1.2, (np.array([0, 2, 2, 3]),))))
    ),
    "products": lambda x: CONSTANT.multiply(sp.coo_array(x)) + sp.coo_array(x) * CONSTANT * x[0],
    "constants": lambda x: (CONSTANT * x[0] + sp.csr_array(np.array([0.0, 1.0, 0.0, 2.0])) / x[1]) - x,
    "inner products": lambda x: (
        sp.coo_array(x) @ np.arange(4.0) + sp.coo_array(x).dot(sp.coo_array(x)) + CONSTANT @ x + x @ vector(x)[:4]
    ),
    "of a matrix": lambda x: sp.coo_array(x) @ sp.coo_array((x, EYE)).toarray(),
    "reshaped": lambda x: sp.coo_array(x).reshape(2, 2) @ vector(x)[:2].toarray(),
    "reductions": lambda x: vector(x).sum() ** 2 + vector(x).max() * vector(x).mean() - abs(-vector(x)).min(),
    "elements": lambda x: sp.csr_array(x)[1] ** 2 + (vector(x) ** 2)[5],
    "transposed": lambda x: sp.permute_dims(cube(x), (2, 0, 1)),
    "exchanged": lambda x: sp.swapaxes(cube(x), 0, 2).T + cube(x),
    "sums": lambda x: cube(x).sum(axis=0),
    "largest": lambda x: cube(x).max(axis=0) + cube(x).min(axis=(0, 2)).sum(),
    "means": lambda x: cube(x).mean(axis=(0, 2)) + cube(x).mean(),
    "means along the first axis": lambda x: cube(x).mean(axis=0) ** 2,
    "written sums": lambda x: written_sums(cube(x)),
    "compared": lambda x: (cube(x) > 0.2) * x[0] + (cube(x) != 0) * x[1] + (cube(x) != cube(x**2)) * x[2],
    "columns first": lambda x: cube(x).reshape(4, 3, order="F").power(3, dtype=float),
    "contracted": lambda x: cube(x).tensordot(np.arange(6.0).reshape(2, 3), axes=2),
    "contracted with sparse": lambda x: cube(x).tensordot(vector(x)[:3], axes=1),
    "rows": lambda x: sum(
        [(i + 2.0) * row * row.sum() for i, row in enumerate(sp.csr_array((x, EYE)) + sp.csr_array(np.ones((4, 4))))]
    ),
    "row and column": lambda x: sp.csc_array((x, EYE))[-1, 1:] * sp.csr_array(x.reshape(2, 2))[:, 0].sum(),
    "copied": lambda x: cube(x).astype(float).copy().tocoo().power(2),
}
if not at_least(scipy, "1.17.0"):  # older versions have no such functions, indices and reductions
    for newer in (
        *("expanded", "expanded to three axes", "expanded constants", "inner products", "reshaped", "elements"),
        *("transposed", "exchanged", "sums", "largest", "means", "contracted with sparse", "rows", "row and column"),
        *("means along the first axis", "written sums", "compared"),
    ):
        del PROGRAMS[newer]


def number(found):
    """Return a number that depends on each element of a result."""
    found = found.toarray() if hasattr(found, "toarray") else found
    return (found * np.arange(1.0, np.size(found) + 1).reshape(np.shape(found))).sum() ** 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def f(x):
        found = PROGRAMS[name](x)
        shapes.append(getattr(found, "shape", ()))
        return number(found)

    shapes = []
    value, gradient = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-12)
    assert len(set(shapes)) == 1
    np.testing.assert_allclose(gradient, differences(f, X), rtol=1e-7)
    np.testing.assert_allclose(hessian(f)(X) @ X, differences(lambda h: grad(f)(X + h * X), 0.0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 2 * X]))[1], grad(f)(2 * X), rtol=1e-12)


def test_sparse_classes_and_errors():
    def f(x):
        a = vector(x)
        assert isinstance(a, sp.coo_array)
        assert sp.issparse(a)
        assert np.shape(a) == (7,)
        assert np.shape(a.reshape(1, 7)) == (1, 7)
        assert (a.ndim, a.nnz, a.format, a.dtype, a.shape) == (1, 4, "coo", float, (7,))
        return a.sum()

    assert grad(f)(X).tolist() == [1.0] * 4
    with pytest.raises(AttributeError, match=r"1 axes has no attribute 'nothing'. Use A.toarray"):
        grad(lambda x: vector(x).nothing)(X)
    if at_least(scipy, "1.17.0"):
        with pytest.raises(ValueError, match="Invalid axis 4"):
            grad(lambda x: sp.expand_dims(vector(x), axis=4).sum())(X)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("key", [4, (0, -5), (slice(None), 4)], ids=str)
def test_index_outside_raises(kind, key):
    with pytest.raises(IndexError):
        grad(lambda x: kind((x, EYE))[key].sum())(X)
