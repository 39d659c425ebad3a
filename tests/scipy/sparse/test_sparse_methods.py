"""Methods of SciPy's sparse matrices on traced values: of functions as they stand, beside SciPy's and differences."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

from funcgrad import check_grads, grad, jit, vmap
from funcgrad.errors import InputError

ROWS, COLUMNS = np.array([0, 2, 1, 1, 2, 2, 0, 0]), np.array([0, 0, 1, 2, 2, 2, 2, 0])
VALUES, WEIGHTS = np.array([4.0, 0.2, 3.0, 0.5, 2.0, 1.5, 0.3, 1.0]), np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])
SORTED = np.lexsort((COLUMNS, ROWS))
#: Two places have two values each; the values are in no order of rows or columns.
PAIRS = (ROWS, COLUMNS)
MADE = {
    **{f"{form}_{kind}": form + "_" + kind for form in ("csr", "csc", "coo") for kind in ("array", "matrix")},
    "csr, two values at a place": "csr_array",
    "csc, two values at a place": "csc_array",
}


def matrix(x, made):
    """A matrix of these values; SciPy adds values at one place up where they stand, so those are copied."""
    make = getattr(scipy.sparse, MADE[made])
    if "two values" in made:
        return make((1.0 * x, COLUMNS[SORTED], [0, 3, 5, 8]), shape=(3, 3))
    return make((x, PAIRS), shape=(3, 3))


weighed = lambda A: np.sum(A.toarray() * WEIGHTS)
METHODS = {
    "power": lambda A: weighed(A.tocsr().power(3)),
    "abs": lambda A: weighed(abs(A)),
    "sqrt": lambda A: weighed(A.sqrt()),
    "tanh": lambda A: weighed(A.tanh()),
    "log1p": lambda A: weighed(A.tocsc().log1p()),
    "conjugate": lambda A: weighed(A.conj()),
    "astype": lambda A: weighed(A.astype(float)),
    "real": lambda A: weighed(A.real),
    "maximum": lambda A: A.max() ** 2,
    "minimum": lambda A: A.min() ** 2 + A.sum(),
    "mean": lambda A: A.mean() ** 2,
    "means of columns": lambda A: np.sum(np.asarray(A.mean(axis=0)) ** 3),
    "trace": lambda A: A.trace() ** 2,
    "norm": scipy.sparse.linalg.norm,
    "norm of columns": lambda A: scipy.sparse.linalg.norm(A, 1),
    "values": lambda A: A.data @ np.arange(1.0, 1 + len(A.data)) ** 2,
    "values of rows": lambda A: A.tocsr().data ** 2 @ np.arange(1.0, 1 + A.tocsr().nnz),
    "values of columns": lambda A: A.tocsc().data ** 2 @ np.arange(1.0, 1 + A.tocsc().nnz),
    "places": lambda A: np.sum(A.tocoo().data ** 2 * (A.tocoo().row + 3 * A.tocoo().col)),
    "places in rows": lambda A: np.sum(A.tocsr().data ** 2 * A.tocsr().indices) + A.tocsr().indptr[1] * A.sum(),
    "inverse": lambda A: weighed(scipy.sparse.linalg.inv(A.tocsc())),
    "exponential": lambda A: weighed(scipy.sparse.linalg.expm((A / 10).tocsc())),
    "transposed": lambda A: weighed(A.T.tocsr().power(2)),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("made", MADE)
def test_of_values_that_are_traced(made, name):
    def fun(x):
        return METHODS[name](matrix(x, made))

    if "two values" not in made:  # which SciPy adds up where they stand: that is run as it is
        np.testing.assert_allclose(jit(fun, backend="numpy")(VALUES), fun(VALUES), rtol=1e-12)
    check_grads(fun, (VALUES,), order=2)
    if name != "exponential":  # which looks at values
        rows = vmap(grad(fun))(np.stack([VALUES, 1.1 * VALUES]))
        np.testing.assert_allclose(rows[1], grad(fun)(1.1 * VALUES), rtol=1e-9)


def test_formats_are_scipys():
    formats = []

    def fun(x):
        A = scipy.sparse.csr_array((x, PAIRS), shape=(3, 3))
        formats.extend(B.format for B in (A, A.T, A.tocsc(), A.tocoo(), A.T.T, 2 * A.T, A.tocoo().tocsr(), A.power(2)))
        return A.sum()

    fun(VALUES)
    grad(fun)(VALUES)
    assert formats[8:] == formats[:8]


def test_powers_of_older_matrices_are_products():
    make = lambda x, kind: kind((x, PAIRS), shape=(3, 3))
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        check_grads(lambda x, kind=kind: weighed(make(x, kind) ** 3), (VALUES,), order=2)
    with pytest.raises(InputError, match="n must be 1, 2, 3"):
        grad(lambda x: weighed(make(x, scipy.sparse.csr_matrix) ** 0.5))(VALUES)


def test_refusals():
    for fun, problem in (
        (lambda A: A.max(axis=0).sum(), "axis and out must be None"),
        (lambda A: A.power(0).sum(), "must not be 0"),
    ):
        with pytest.raises(InputError, match=problem):
            grad(lambda x, fun=fun: fun(scipy.sparse.csr_array((x, PAIRS), shape=(3, 3))))(VALUES)


def test_values_of_formats_that_have_them_in_several_axes_are_refused():
    make = lambda x: scipy.sparse.dia_array((np.stack([x, 2 * x]), [0, 1]), shape=(3, 3))
    check_grads(lambda x: make(x).tocsr().data ** 2 @ np.arange(1.0, 6.0), (VALUES[:3],), order=2)
    with pytest.raises(InputError, match=r"dia_array\.data: .* Use A\.tocsr\(\)\.data"):
        grad(lambda x: np.sum(make(x).data ** 2))(VALUES[:3])
