"""Methods of SciPy's sparse matrices on traced values in unchanged functions, against SciPy and differences."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from helpers import at_least, differences, identical, traced

from funcgrad import check_grads, grad, jacfwd, jacrev, jit, jvp, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.scipy import sparse

ROWS, COLUMNS = np.array([0, 2, 1, 1, 2, 2, 0, 0]), np.array([0, 0, 1, 2, 2, 2, 2, 0])
VALUES, WEIGHTS = np.array([4.0, 0.2, 3.0, 0.5, 2.0, 1.5, 0.3, 1.0]), np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])
SORTED = np.lexsort((COLUMNS, ROWS))
#: Rows and columns of the values, in no order; two places have two values each.
PAIRS = (ROWS, COLUMNS)
MADE = {
    **{f"{form}_{kind}": form + "_" + kind for form in ("csr", "csc", "coo") for kind in ("array", "matrix")},
    "csr, two values at a place": "csr_array",
    "csc, two values at a place": "csc_array",
}


def matrix(x, made):
    """Return a matrix of these values, which are copied, as methods change them."""
    make = getattr(scipy.sparse, MADE[made])
    if "two values" in made:
        return make((1.0 * x, COLUMNS[SORTED], [0, 3, 5, 8]), shape=(3, 3))
    return make((1.0 * x, PAIRS), shape=(3, 3))


weighed = lambda A: np.sum(A.toarray() * WEIGHTS)


def changed(name, *args):
    """Return a function of the matrix after a method has changed it."""

    def fun(A):
        getattr(A, name)(*args)
        return weighed(A) + A.data @ np.arange(1.0, 1 + A.nnz)

    return fun


def own_diagonals(A):
    A.setdiag(A.diagonal() ** 2)
    A.setdiag(A.data[0], k=-1)
    A.setdiag(A.data[1:2] ** 2, k=1)
    return weighed(A)


def written(A, row, column, values):
    A[row, column] = values
    return A


def scaled(A):
    A *= 2.0
    A /= A.data[0]
    A.data[1:] *= 3.0
    A.data[0] = A.data[1] ** 2
    return weighed(A)


def without_loops(A):
    A.setdiag(0)
    A.eliminate_zeros()
    return A.sum() ** 2 / A.nnz


laplacian = scipy.sparse.csgraph.laplacian
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
    "extremes of columns": lambda A: (A.max(axis=0).toarray() ** 2 - A.min(axis=0).toarray()) @ np.arange(3.0),
    "extremes of rows": lambda A: np.sum(A.max(axis=-1).toarray() ** 2 + (0.6 * A - A.T).tocsr().min(1).toarray()),
    "stored extremes": lambda A: A.min(axis=1, explicit=True).toarray().sum() ** 2 + A.min(explicit=True) ** 2,
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
    "from the left": lambda A: (np.arange(1.0, 4.0) @ A) @ np.arange(3.0) ** 2 + (WEIGHTS @ A)[0, 1] ** 2,
    "sum_duplicates": changed("sum_duplicates"),
    "eliminate_zeros": changed("eliminate_zeros"),
    "setdiag": changed("setdiag", 2.0),
    "setdiag beside": changed("setdiag", np.array([1.0, 2.0, 9.0]), 1),
    "setdiag of traced": own_diagonals,
    "without loops": without_loops,
    "in place": scaled,
    "sorted_indices": lambda A: changed("sort_indices")(A.tocsr().sorted_indices()),
    "repeated writes": lambda A: weighed(written(A.tocsr(), [0, 0, 1], [2, 2, 1], A.data[:3] ** 2)),
    "copies": lambda A: weighed(A) + weighed(written(A.tocsr().transpose(copy=True), 0, 2, weighed(A))),
    "counted by axis": lambda A: weighed(A) * A.count_nonzero(axis=1)[2] + A.trace() * A.count_nonzero(axis=0)[2],
    "sort_indices": lambda A: changed("sort_indices")(A.tocsr()),
    "nonzero": lambda A: weighed(A) * A.nonzero()[0].sum() + A.data[0] * A.nonzero()[1].sum(),
    "order": lambda A: A.tocsr().has_sorted_indices * A.sum() ** 2 + A.tocsr().has_canonical_format,
    "elements": lambda A: A.tocsr()[[0, 1], [2, 1]].sum() ** 2 + A.tocsr()[A.tocsr() > 2.5].sum(),
    "larger": lambda A: A.maximum(2.1 * A.T).sum() ** 2 + weighed(A.minimum(2.3)),
    "counted": lambda A: A.sum() * A.count_nonzero() + A.data[0] * A.argmax(),
    "reshaped": lambda A: A.reshape((1, 9)).tocsr().power(2).sum() + A.sum(),
    "laplacian": lambda A: weighed(laplacian(A + A.T)),
    "normalised laplacian": lambda A: weighed(laplacian(A + A.T, normed=True)),
    "blocks": lambda A: scipy.sparse.bmat([[A, None], [np.ones((2, 3)), A.tocsr()[:2] * 2]]).power(3).sum(),
    "blocks of one format": lambda A: weighed(scipy.sparse.block_array([[None, A], [A, None]]).tocsr()[2:5, 1:4]),
    "filled": lambda A: weighed(A.tolil().tocsr()) + A.todok()[0, 0] ** 2,
    "diagonals": lambda A: weighed(A.todia().tocsr()),
}


#: Names of methods that branch on values.
LOOKING = ("exponential", "nonzero", "elements", "counted")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("made", MADE)
def test_methods_with_traced_values(made, name):
    method = METHODS[name]  # an unchanged function looks up all names that it uses

    def fun(x):
        return method(matrix(x, made))

    if "matrix" in made:  # matrices and arrays differ in their operators only, which first derivatives show
        check_grads(fun, (VALUES,), order=1)
        return
    check_grads(fun, (VALUES,), order=2)
    if name in LOOKING:
        return
    slope = grad(fun)(1.1 * VALUES)
    rows = vmap(grad(fun))(np.stack([VALUES, 1.1 * VALUES]))
    np.testing.assert_allclose(rows[1], slope, rtol=1e-9)
    if "csr" in made:  # a recorded program has no matrices any more
        run = jit(grad(fun), backend="numpy")
        run(VALUES)
        np.testing.assert_allclose(run(1.1 * VALUES), slope, rtol=1e-12)


#: Column indices of rows, in no order, and where the rows begin.
UNSORTED = [2, 0, 1, 0, 2, 1, 0], [0, 2, 4, 7]


@pytest.mark.parametrize("values", [2.0, np.array([3.0, 5.0]), np.array([])])
@pytest.mark.parametrize("k", [-2, 0, 1])
@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array"])
def test_setdiag_stores_values_as_scipy(kind, k, values):
    """Check unordered values in single precision, with values at most places of the diagonal or at none."""
    make = getattr(scipy.sparse, kind)

    def fun(x):
        columns, starts = UNSORTED
        places = (columns, [0, 0, 1, 1, 2, 2, 2]) if kind == "coo_array" else None
        A = make((1 * x, places), shape=(3, 3)) if places else make((1 * x, columns, starts), shape=(3, 3))
        A.setdiag(values, k)
        return A.data

    x = VALUES[:7].astype(np.float32)
    identical(traced(fun, x), fun(x))


COPIES = {
    "itself": lambda A: A,
    "copy": lambda A: A.copy(),
    "csr": lambda A: A.tocsr(),
    "csr, copied": lambda A: A.tocsr(copy=True),
    "csc": lambda A: A.tocsc(),
    "coo": lambda A: A.tocoo(),
    "coo, not copied": lambda A: A.tocoo(copy=False),
    "format": lambda A: A.asformat("csr"),
    "transpose": lambda A: A.T,
    "transpose, copied": lambda A: A.transpose(copy=True),
    "conjugate": lambda A: A.conj(),
    "dtype": lambda A: A.astype(float),
    "dtype, not copied": lambda A: A.astype(float, copy=False),
    "real": lambda A: A.real,
    "negative": lambda A: -A,
    "made of it": lambda A: type(A)(A) if isinstance(A, scipy.sparse.coo_array) else scipy.sparse.csr_matrix(A),
    "made of its parts": lambda A: scipy.sparse.csr_array((A.tocsr().data, A.tocsr().indices, A.tocsr().indptr)),
}


def divided(A):
    A.data /= 2.0


def bound(A):
    A.data = A.data * 3.0


def one_written(A):
    A.data[0] = 5.0


def some_written(A):
    A.data[1:] *= A.data[0]


def diagonal_written(A):
    A.setdiag(2.0)


WRITES = (divided, bound, one_written, some_written, diagonal_written)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array"])
@pytest.mark.parametrize("copied", COPIES)
def test_writes_show_in_matrices_sharing_memory(copied, kind, constant):
    """Check that a write to a matrix's values shows in the matrices that share memory in SciPy, and in no other."""
    copy = COPIES[copied]
    for write in WRITES:

        def fun(x, write=write):
            A = getattr(scipy.sparse, kind)(((VALUES if constant else x) * 1.0, PAIRS), shape=(3, 3))
            B = copy(A)
            if constant:
                B.data[-1] = x[0]
            write(B)
            return weighed(A) + 2.0 * weighed(B) ** 2

        np.testing.assert_allclose(grad(fun)(VALUES), differences(fun, VALUES, 1e-4), rtol=1e-6, atol=1e-4)


def values_bound(A, x):
    A.data = x[:4] * 2


def values_written(A, x):
    A.data[:] = x[:4] * 2


def values_scaled(A, x):
    A.data *= x[:4] * 2


def element_written(A, x):
    A[0, 0] = x[0]
    A[1, 2] = x[1] ** 2


def rows_written(A, x):
    A[[0, 2], 1] = x[:2]
    A[1] = x[2:5]


def diagonal(A, x):
    y = A @ x[:3]
    A.setdiag(7.0)
    y = y * (A @ y)
    A.setdiag(y)


def matrix_scaled(A, x):
    A *= x[0]
    A /= 2.0


TAKING = (values_bound, values_written, values_scaled, element_written, rows_written, diagonal, matrix_scaled)


@pytest.mark.filterwarnings("ignore:Changing the sparsity")
@pytest.mark.parametrize("taking", TAKING)
@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "csc_matrix"])
def test_constants_take_traced_values(kind, taking):
    def fun(x):
        A = getattr(scipy.sparse, kind)((np.array([1.0, 2.0, 3.0, 4.0]), ([0, 1, 2, 0], [0, 1, 2, 2])), shape=(3, 3))
        B, y = A, A @ x[:3]
        taking(A, x)
        return weighed(A) + weighed(B) ** 2 + y @ (A @ y)

    check_grads(fun, (VALUES,), order=2)
    np.testing.assert_allclose(grad(fun)(VALUES), differences(fun, VALUES, 1e-3), rtol=1e-5)
    run = jit(grad(fun), backend="numpy")
    run(VALUES)
    np.testing.assert_allclose(run(1.1 * VALUES), grad(fun)(1.1 * VALUES), rtol=1e-12)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array"])
def test_later_write_to_traced_values(kind):
    places = PAIRS if kind == "coo_array" else (COLUMNS[SORTED], [0, 3, 5, 8])

    def fun(x):
        values = x * 1.0
        A = getattr(scipy.sparse, kind)((values, *([places] if kind == "coo_array" else places)), shape=(3, 3))
        values[2] = x[0] ** 2
        return weighed(A)

    np.testing.assert_allclose(grad(fun)(VALUES), differences(fun, VALUES, 1e-3), rtol=1e-5)


def test_later_write_to_constant_values():
    def fun(x):
        values = np.zeros(4)
        A = scipy.sparse.csr_matrix((values, [0, 1, 2, 2], [0, 2, 3, 4]), shape=(3, 3))
        first = weighed(A + scipy.sparse.eye(3))
        values[:2] = 3.0
        second = weighed(A)
        values[1:] = x[:3]
        return first + second * x[0] + weighed(A) ** 2

    check_grads(fun, (VALUES,))
    np.testing.assert_allclose(grad(fun)(VALUES), differences(fun, VALUES, 1e-3), rtol=1e-5)


OUTSIDE = scipy.sparse.csr_array(WEIGHTS)


def test_outside_constants_are_unchanged():
    before = OUTSIDE.toarray()

    def bind(x):
        OUTSIDE.data = x
        return OUTSIDE.sum()

    def write(x):
        OUTSIDE[0, 0] = x[0]
        return OUTSIDE.sum()

    for fun in (bind, write):
        with pytest.raises(InputError, match=r"constant matrix.* cannot take traced values"):
            grad(fun)(np.ones(9))
        OUTSIDE.data = before.ravel()
    np.testing.assert_array_equal(OUTSIDE.toarray(), before)

    def fun(x):
        A = OUTSIDE.copy()
        A.data[:3] = x
        return weighed(A)

    np.testing.assert_allclose(grad(fun)(np.ones(3)), WEIGHTS[0])


def test_formats_match_scipy():
    formats = []

    def fun(x):
        A = scipy.sparse.csr_array((x, PAIRS), shape=(3, 3))
        formats.extend(B.format for B in (A, A.T, A.tocsc(), A.tocoo(), A.T.T, 2 * A.T, A.tocoo().tocsr(), A.power(2)))
        return A.sum()

    fun(VALUES)
    grad(fun)(VALUES)
    assert formats[8:] == formats[:8]


FOUR = np.array([1.05, 0.57, 2.13, 0.31])
ORDERED = {
    **{f"{form}_{kind}": form + "_" + kind for form in ("csr", "csc", "coo") for kind in ("array", "matrix")},
    "csc, unsorted": "csc_array",
}
RESULTS = {
    "multiple": lambda A: 2 * A,
    "transpose": lambda A: A.T,
    "absolute": lambda A: abs(-A),
    "power": lambda A: A.power(2),
    "after a power": lambda A: (A.power(2), A)[1],
    "root": lambda A: A.sqrt(),
    "times a row": lambda A: A.multiply(np.arange(1.0, 5)),
    "times itself": lambda A: A.multiply(A),
    "sum": lambda A: A + A.T,
    "difference": lambda A: A - 2 * A,
    "columns": lambda A: A.tocsc()[:, 1:],
    "rows of columns": lambda A: A.tocsc()[1:],
    "columns of rows": lambda A: A.tocsr()[:, [2, 0]],
    "product": lambda A: A @ A.T,
    "product with constants": lambda A: A @ scipy.sparse.eye(4) + scipy.sparse.diags(FOUR) @ A,
    "side by side": lambda A: scipy.sparse.hstack([A, A.T]),
    "one below the other": lambda A: scipy.sparse.vstack([A, A]),
    "triangle": lambda A: scipy.sparse.tril(A + A.T),
    "triangle of a dense matrix": lambda A: scipy.sparse.triu(A.toarray() + np.eye(4), -1),
    "triangle without zeros": lambda A: scipy.sparse.tril(scipy.sparse.csr_array(A.toarray() + np.eye(4))).tocsc(),
    "largest of columns": lambda A: A.max(axis=0),
    "smallest of rows": lambda A: (-A).min(axis=1),
    "kron": lambda A: scipy.sparse.kron(A, np.ones((1, 2)), format="csr"),
    "larger": lambda A: A.maximum(A.T),
    "reshaped": lambda A: A.reshape((2, 8)),
    "filled": lambda A: A.tolil().tocsr(),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("made", ORDERED)
def test_result_storage_matches_scipy(made, name):
    """Check class, format and order of results, which programs see through ``A.data`` and ``A.indices``."""
    seen = []

    def fun(x):
        kind = getattr(scipy.sparse, ORDERED[made])
        if made == "csc, unsorted":
            A = kind((1.0 * x, [2, 0, 1, 0], [0, 2, 2, 4, 4]), shape=(4, 4))
        else:
            A = kind((1.0 * x, ([3, 1, 0, 2], [0, 1, 2, 3])), shape=(4, 4))
        B = RESULTS[name](A)
        places = B.coords if B.format == "coo" else (B.indices, B.indptr)
        seen.append((isinstance(B, scipy.sparse.sparray), B.format, [np.asarray(place).tolist() for place in places]))
        return B.data @ np.arange(1.0, 1 + len(B.data)) ** 2

    np.testing.assert_allclose(grad(fun)(FOUR), differences(fun, FOUR, 1e-3), rtol=1e-5, atol=1e-8)
    assert all(each == seen[-1] for each in seen)


STORED = {
    "made of it": lambda A: scipy.sparse.csr_array(A).data,
    "made of it by columns": lambda A: scipy.sparse.csc_matrix(A).data ** 2,
    "with another dtype": lambda A: A.astype(np.float32).data,
    "places": lambda A: np.array(A.nonzero()) * A.data[0],
    "largest of rows": lambda A: (A.argmax(axis=1) * A.trace()).sum(axis=0) + A.argmin(),
    "shape of places": lambda A: A.trace() * np.ones(A.argmin(axis=0).shape),
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("made", MADE)
def test_places_with_several_values_are_stored_as_by_scipy(made, name):
    fun = lambda x: STORED[name](matrix(x, made))
    want = fun(VALUES)
    got = traced(fun, VALUES)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert (np.shape(got), got.dtype) == (np.shape(want), want.dtype)


WRITTEN = [
    lambda A, v: written(A, 0, 1, v[0]),
    lambda A, v: written(A, [0, 2, 0], [1, 1, 1], v),
    lambda A, v: written(A, slice(0, 2), 2, v[:2] ** 2),
    lambda A, v: written(A, 1, slice(None), v * A.data[0]),
]


@pytest.mark.parametrize("write", WRITTEN)
def test_writes_to_coordinates(write):
    """Check ``coo_array[i, j] = value``, which SciPy knows since 1.17."""

    def fun(x):
        A = write(scipy.sparse.coo_array((1.0 * x, PAIRS), shape=(3, 3)), x[:3])
        return np.append(A.data, weighed(A))

    if hasattr(scipy.sparse.coo_array, "__setitem__"):
        np.testing.assert_array_equal(traced(fun, VALUES), fun(VALUES))
        check_grads(fun, (VALUES,), order=2)
    else:
        with pytest.raises(TypeError, match="does not support item assignment"):
            grad(lambda x: fun(x).sum())(VALUES)


@pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_graphs_have_real_weights_in_double_precision(made):
    graph = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 3.0], [5.0, 3.0, 0.0]])
    paths = lambda g: scipy.sparse.csgraph.shortest_path(made(g)) ** 2
    tree = lambda g: scipy.sparse.csgraph.minimum_spanning_tree(made(g)).toarray()
    for weights in (graph * (1.0 + 0.5j), graph.astype(np.float32)):
        for fun in (paths, tree):
            value, tangent = jvp(fun, (weights,), (weights,))
            identical(value, fun(weights))
            np.testing.assert_allclose(tangent, value * (2.0 if fun is paths else 1.0))


def test_power_of_sparse_matrix_is_matrix_power():
    make = lambda x, kind: kind((x, PAIRS), shape=(3, 3))
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        check_grads(lambda x, kind=kind: weighed(make(x, kind) ** 3), (VALUES,), order=2)
    with pytest.raises(InputError, match="n must be 1, 2, 3"):
        grad(lambda x: weighed(make(x, scipy.sparse.csr_matrix) ** 0.5))(VALUES)


def without_zeros(A):
    A.eliminate_zeros()
    return A


def test_writes_to_positions_with_several_values():
    def fun(x):
        A = scipy.sparse.csr_array((1.0 * x, [0, 0, 1, 2, 0], [0, 2, 3, 5]), shape=(3, 3))
        A[[0, 1], [0, 1]] = x[:2] ** 2
        return A.toarray() * x[4] + A.nnz

    x = np.arange(1.0, 6.0)
    np.testing.assert_array_equal(traced(fun, x), fun(x))
    check_grads(fun, (x,), order=2)


@pytest.mark.parametrize("value", [np.ones((3, 3)), "itself"], ids=["dense", "sparse"])
def test_products_in_place_with_matrices(value):
    def fun(x):
        A = scipy.sparse.csr_array((1.0 * x, PAIRS), shape=(3, 3))
        A *= A.copy() if isinstance(value, str) else value
        A = A / 2.0 if scipy.sparse.issparse(A) else A
        return A.toarray() if hasattr(A, "toarray") else A

    np.testing.assert_array_equal(traced(fun, VALUES), fun(VALUES))
    check_grads(fun, (VALUES,), order=2)


def test_matrices_of_funcgrad_remove_zeros_that_were_written():
    def fun(x):
        A = sparse.csr_array((1.0 * x, *UNSORTED), shape=(3, 3))
        A[0, 2] = 0.0
        A[1, 1] = x[0] * x[1]
        A.sort_indices()
        assert "<SparseArray 3 x 3, 7 values of float64>" in repr(A)
        A.eliminate_zeros()
        B = A.copy()
        B[0, 0] = 7.0
        assert A.tocoo() is A
        return A.data @ np.arange(1.0, A.nnz + 1) + B.transpose(copy=True).toarray()[0, 0] * x[2]

    x = np.arange(1.0, 8.0)
    assert traced(fun, x) == np.array([2.0, 4.0, 2.0, 7.0, 6.0, 5.0]) @ np.arange(1.0, 7.0) + 21.0
    check_grads(fun, (x,), order=2)
    with pytest.raises(InputError, match="a traced value that is zero now may have a derivative"):
        grad(fun)(np.zeros(7))


def test_invalid_calls_raise():
    for fun, problem in (
        (lambda A: A.power(0).sum(), "must not be 0"),
        (lambda A: without_zeros(A - A).data.sum(), "a traced value that is zero now may have a derivative"),
        (lambda A: without_zeros(A - A)[:2].T.nnz * A.sum(), "a traced value that is zero now may have a derivative"),
    ):
        with pytest.raises(InputError, match=problem):
            grad(lambda x, fun=fun: fun(scipy.sparse.csr_array((x, PAIRS), shape=(3, 3))))(VALUES)
    with pytest.raises(ShapeError, match="k must be a diagonal of 3 x 3"):
        grad(lambda x: scipy.sparse.csr_array((x, PAIRS), shape=(3, 3)).setdiag(x[0], 3))(VALUES)


def test_missing_methods_raise():
    make = lambda x: scipy.sparse.csr_array((x, PAIRS), shape=(3, 3))
    with pytest.raises(AttributeError, match=r"csr_array of traced values has no attribute 'nanmax'\. Use A\.toarray"):
        grad(lambda x: make(x).nanmax())(VALUES)
    assert grad(lambda x: make(x).sum() * (1 + hasattr(make(x), "nobody")))(VALUES)[0] == 1.0


def test_multi_axis_data_formats_raise():
    make = lambda x: scipy.sparse.dia_array((np.stack([x, 2 * x]), [0, 1]), shape=(3, 3))
    check_grads(lambda x: make(x).tocsr().data ** 2 @ np.arange(1.0, 6.0), (VALUES[:3],), order=2)
    with pytest.raises(InputError, match=r"dia_array\.data: .* Use A\.tocsr\(\)\.data"):
        grad(lambda x: np.sum(make(x).data ** 2))(VALUES[:3])


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "bsr_array", "csr_matrix"])
def test_extremes_of_stored_elements_and_conversions_by_name(kind):
    """Elements that are 0 in a dense matrix are not stored, and an infinite element stays alone."""
    x = np.array([[0.0, 0.05, 0.1], [0.25, 0.0, -0.35], [0.0, 0.2, 0.7]])
    make = getattr(scipy.sparse, kind)
    programs = {
        "least of columns": lambda x: make(x).min(axis=0, explicit=True).toarray(),
        "greatest of rows": lambda x: make(x).max(axis=1, explicit=True).toarray(),
        "least of all": lambda x: make(x).min(explicit=True),
        "as an array": lambda x: make(x).asformat("array"),
        "as blocks": lambda x: make(x).tobsr(blocksize=(3, 1)).toarray(),
        "infinite": lambda x: make(x / np.array([1.0, 1.0, 0.0])).toarray()[:, :2],
        "infinite slope": lambda x: make(x).sqrt().toarray()[:1, 1:],
    }
    if at_least(scipy, "1.16.0"):  # before, an axis was a number
        programs["both axes"] = lambda x: make(x).max(axis=(0, 1))
    for name, f in programs.items():
        with np.errstate(all="ignore"):
            value, slope = jvp(f, (x,), (x,))
            np.testing.assert_array_equal(value, f(x), err_msg=name)
            want = (f(x * (1 + 1e-6)) - f(x * (1 - 1e-6))) / 2e-6
        np.testing.assert_allclose(slope, want, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csc_matrix"])
def test_rows_and_columns_as_one_array(kind):
    f = lambda x: getattr(scipy.sparse, kind)((x, np.stack([ROWS, COLUMNS])), shape=np.array([3, 4])).toarray()
    check_grads(f, (VALUES,), order=2)
    np.testing.assert_array_equal(jvp(f, (VALUES,), (VALUES,))[0], f(VALUES))


@pytest.mark.parametrize("name", ["breadth_first_tree", "depth_first_tree"])
@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_trees_of_undirected_graphs_have_edges_in_the_order_of_scipy(name, kind):
    """SciPy searches the transposed graph if columns are stored: the first edge to a node is another one."""
    rows, columns = np.array([0, 0, 1, 4, 5, 2]), np.array([1, 5, 4, 5, 0, 1])

    def f(weights):
        graph = getattr(scipy.sparse, kind)((weights, (rows, columns)), shape=(6, 6))
        return getattr(scipy.sparse.csgraph, name)(graph, 0, directed=False).toarray()

    weights = np.array([3.0, 2.6, 1.1, 2.2, 4.0, 0.7])
    np.testing.assert_allclose(traced(f, weights), f(weights))
    for derivative in (jacfwd, jacrev):
        np.testing.assert_allclose(derivative(f)(weights), differences(f, weights), atol=1e-9)


def test_tree_of_an_undirected_graph_without_edges():
    def f(weight):
        graph = scipy.sparse.csr_array((weight[None], (np.array([1]), np.array([1]))), shape=(2, 2))
        return scipy.sparse.csgraph.breadth_first_tree(graph, 0, directed=False).toarray() + weight

    np.testing.assert_array_equal(jacrev(f)(2.0), np.ones((2, 2)))
