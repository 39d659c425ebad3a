"""``numpy.matrix`` in unchanged programs: products are matrix products, and parts of a matrix are matrices."""

import numpy as np
import pytest
import scipy.linalg
from helpers import differences

from funcgrad import grad, jvp
from funcgrad.errors import ConversionError

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")
X = np.arange(1.0, 7.0)


def wide(x):
    return np.matrix(x.reshape(2, 3))


def square(x):
    return np.matrix(x[:4].reshape(2, 2)) + np.eye(2)


def row(x):
    return np.matrix(x[:2])


def of_its_class(x):
    found = square(x)
    assert type(found) is np.matrix
    assert isinstance(found, np.matrix)
    assert issubclass(type(found), np.ndarray)
    return type(found)(x.reshape(2, 3)) * found[0, 1]


def reduced_into(x):
    sums, largest = np.asmatrix(np.zeros((1, 3))), np.asmatrix(np.zeros((2, 1)))
    assert wide(x).sum(axis=0, out=sums) is sums
    np.max(wide(x), axis=1, out=largest)
    return largest * sums


def texts(x):
    """Texts of constant matrices; a shape that no matrix has."""
    constant = np.asmatrix(np.eye(2))
    assert repr(constant) == "matrix([[1., 0.],\n        [0., 1.]])"
    assert str(constant) == "[[1. 0.]\n [0. 1.]]"
    assert repr(wide(x)).startswith("matrix(")
    with pytest.raises(ValueError, match="shape too large to be a matrix"):
        np.matrix(np.ones((2, 1, 2, 2)) * x[0])
    with pytest.raises(TypeError, match="argument"):
        np.sum()
    return constant * np.matrix(x.reshape(2, 1, 3))


def written(x):
    """Results of functions that are written to a matrix."""
    made = np.matrix(np.zeros((2, 2)))
    np.matmul(square(x), square(x), out=made)
    np.tanh(made / 9.0, out=made)
    np.copyto(made, x[0], where=[[True, False], [False, False]])
    np.fill_diagonal(made[:, ::-1], x[4:])
    return made


def shared(x):
    """A matrix made by ``asmatrix`` shows what is written to its array later, and a copy does not."""
    array = x.reshape(2, 3) * 1.0
    view, copy = np.asmatrix(array), np.matrix(array)
    array[0, 0] = x[1] * x[2]
    view[1, 1] = x[3] ** 2
    return view * copy.T + array[1, 1]


PROGRAMS = {
    "shared": shared,
    "written": written,
    "texts": texts,
    "of its class": of_its_class,
    "a number times a matrix": lambda x: 2.0 * square(x) + x[0] * square(x),
    "a list times a matrix": lambda x: [1.0, 2.0] * wide(x),
    "as a new array": lambda x: np.array(square(x)) * x[:2],
    "names of arguments": lambda x: np.sum(a=np.asarray(wide(x)), axis=0),
    "product": lambda x: square(x) * row(x).T,
    "with an array": lambda x: np.ones((2, 2)) * wide(x),
    "with a vector": lambda x: wide(x) * x[:3].reshape(3, 1),
    "view": lambda x: x[:4].reshape(2, 2).view(np.matrix) * row(x).T,
    "power": lambda x: square(x) ** 2,
    "inverse": lambda x: square(x).I * row(x).T,
    "a row": lambda x: wide(x)[0],
    "a column": lambda x: wide(x)[:, 1],
    "rows": lambda x: sum(r * r.T for r in wide(x)),
    "sum": lambda x: np.sum(wide(x), axis=0) * wide(x).T,
    "mean": lambda x: np.mean(wide(x), 1).T * wide(x),
    "largest": lambda x: np.max(wide(x), 0),
    "deviations": lambda x: wide(x).std(0),
    "places": lambda x: x[:2][np.asarray(wide(x).argmax(0)).ravel()],
    "running": lambda x: np.cumsum(wide(x)),
    "ravel": lambda x: np.ravel(wide(x)),
    "flat": lambda x: wide(x).flatten(),
    "reshape": lambda x: np.reshape(wide(x), (3, 2)) * row(x).T,
    "in a row": lambda x: wide(x).reshape(-1),
    "diagonal": lambda x: square(x).diagonal(),
    "trace": lambda x: np.trace(square(x)),
    "joined": lambda x: np.concatenate([row(x), row(2 * x)]) * row(x).T,
    "stacked": lambda x: np.vstack([row(x), x[3:5]]) * row(x).T,
    "side by side": lambda x: np.hstack([row(x).T, row(2 * x).T]) * row(x).T,
    "inv": lambda x: np.linalg.inv(square(x)) * row(x).T,
    "solve": lambda x: np.linalg.solve(square(x), row(x).T),
    "singular values": lambda x: np.linalg.svd(wide(x))[1],
    "norm": lambda x: np.linalg.norm(wide(x), axis=1),
    "kron": lambda x: np.kron(square(x), row(x)),
    "dot": lambda x: np.dot(wide(x), x[:3]),
    "elements": lambda x: np.exp(square(x) / 5) * row(x).T,
    "multiply": lambda x: np.multiply(wide(x), wide(x)),
    "as an array": lambda x: np.asarray(square(x)) * x[:4].reshape(2, 2),
    "names of methods": lambda x: square(x).getA() + square(x).getI(),
    "sorted": lambda x: np.sort(-wide(x)) * wide(x).T + np.sort(wide(x), axis=None)[0, 1],
    "of a text": lambda x: np.matrix("1 2; 3 4") * row(x).T,
    "solver of SciPy": lambda x: scipy.linalg.solve(square(x), row(x).T) + scipy.linalg.expm(A=square(x) / 9),
    "banded system": lambda x: scipy.linalg.solve_banded((1, 1), np.matrix([x[:2], x[1:3] + 9, x[:2]]), x[:2]),
    "blocks of SciPy": lambda x: scipy.linalg.block_diag(square(x), [row(x)[0, 0]]),
    "into a matrix": reduced_into,
    "a number": lambda x: (row(x) * row(x).T).item() + float((row(x) * row(x).T)[0, 0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_matrix_programs(name):
    made, program = [], PROGRAMS[name]

    def f(x):
        made.append(program(x * 1.0))
        out = np.asarray(made[-1])
        return np.sum(out * np.cos(np.arange(out.size)).reshape(out.shape))

    slope = grad(f)(X)
    found, wanted = made[-1], program(X)
    assert np.shape(found) == np.shape(wanted)
    assert (type(found).__name__ == "Matrix") == isinstance(wanted, np.matrix)
    np.testing.assert_allclose(slope, differences(f, X, 1e-6), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jvp(f, (X,), (X,))[1], slope @ X, rtol=1e-10)


@pytest.mark.parametrize(
    "function",
    [
        *(np.median, np.average, np.ptp, lambda m: np.tile(m, 2), np.atleast_2d, np.add.reduce, np.add.accumulate),
        *(lambda m: np.add.reduceat(m, [0, 1]), lambda m: np.add.accumulate(m, out=m)),
    ],
)
def test_losing_matrix_class_raises(function):
    with pytest.raises(ConversionError, match=r"numpy.matrix: this function .* numpy.asarray\(M\)"):
        grad(lambda x: np.asarray(function(wide(x))).sum())(X)
