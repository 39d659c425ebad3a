"""The class that a traced value reports: the class of the array or number that it represents."""

import numbers
import sys
import threading
from collections.abc import Iterable
from functools import singledispatch

import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, trace, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConversionError, UnsizedError
from funcgrad.interop import jit, to_jax
from funcgrad.writable import is_buffer

KINDS = (float, complex, int, np.ndarray, np.floating, np.float64, np.float32, np.generic, numbers.Real, Iterable)
MODES = {
    "grad": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "vmap": lambda f, x: vmap(f)(np.stack([x, x])),
    "nested": lambda f, x: vjp(lambda x: jvp(f, (x,), (x,))[1], x),
    "vmap of grad": lambda f, x: vmap(lambda x: vjp(f, x)[0])(np.stack([x, x])),
    "trace": lambda f, x: trace(f)(x),
}


def answers(x):
    found = [isinstance(x, kind) for kind in KINDS[:-1]]
    return [*found, np.isscalar(x), np.iterable(x), hasattr(x, "__len__")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("x", [1.5, 1.5 + 1j, np.float32(1.5), np.array(1.5), np.ones(2), np.ones((2, 1), np.float32)])
def test_class_of_arguments(mode, x):
    seen = []

    def f(x):
        assert isinstance(x, Tracer)
        seen.append(answers(x))
        return x * x

    MODES[mode](f, x)
    example = x if "vmap" not in mode else np.stack([x, x])[0]  # a loop over examples yields NumPy scalars
    assert seen[0] == answers(example)


def check_answers(made, mode, number):
    """Check that the results of the functions ``made`` give the same answers in a transform as for a plain number."""
    seen = []

    def f(x):
        seen.append([answers(of(x)) for of in made])
        return x * 1.0

    MODES[mode](f, number)
    assert seen[-1] == [answers(of(number)) for of in made]


@pytest.mark.parametrize("number", [1.5, np.float64(1.5)])
@pytest.mark.parametrize("mode", MODES)
def test_zero_dimensional_arrays_are_ndarrays(mode, number):
    made = (
        np.asarray,
        np.array,
        np.copy,
        np.i0,
        np.require,
        lambda x: np.asarray(x)[...],
        lambda x: np.broadcast_arrays(x)[0],
        lambda x: np.broadcast_arrays(x, 2.0)[0],
        lambda x: np.add(x, 1.0, out=np.empty(())),
        lambda x: np.where(x > 0, x, 0.0),
    )
    check_answers(made, mode, number)


@pytest.mark.parametrize("number", [1.5, np.float64(1.5)])
@pytest.mark.parametrize("mode", MODES)
def test_function_results_are_numpy_scalars(mode, number):
    made = (
        lambda x: np.asarray(x) * 2.0,
        lambda x: np.round(x, 2),
        lambda x: np.dot(x, 2.0),
        lambda x: np.inner(2.0, x),
        lambda x: np.kron(x, 2.0),
        lambda x: np.einsum("->", x),
        lambda x: np.einsum(",->", x, 2.0),
        lambda x: np.clip(x, None, None),
    )
    check_answers(made, mode, number)


@pytest.mark.parametrize("mode", MODES)
def test_class_of_results(mode):
    results = (
        lambda x: x[0],
        lambda x: x.sum(),
        lambda x: np.mean(x),
        lambda x: x[:1],
        lambda x: x @ x,
        lambda x: (x > 0)[0],
        lambda x: np.argmax(x),
        lambda x: x[0] * 2 > 1,
        lambda x: x[:1].reshape(()),
        lambda x: x[1] * 1j,
        lambda x: fnp.zeros(2) if isinstance(x, Tracer) else np.zeros(2),
    )
    seen = []

    def f(x):
        seen.append([answers(made(x)) for made in results])
        return x * 1.0

    x = np.array([1.0, 2.0])
    MODES[mode](f, x)
    want = [answers(made(x)) for made in results]
    if "vmap" in mode:  # NumPy has an array without axes here, the batch has numbers
        seen[0][8], want[8] = None, None
    assert seen[0] == want


def test_singledispatch_and_match_by_class():
    @singledispatch
    def by_class(x):
        raise AssertionError(type(x))

    by_class.register(float)(lambda x: 3.0 * x)
    by_class.register(np.ndarray)(lambda x: 5.0 * fnp.sum(x))
    assert grad(by_class)(2.0) == 3.0
    assert grad(lambda x: by_class(x) + by_class(x[0]))(np.ones(2)).tolist() == [8.0, 5.0]

    def by_match(x):
        match x:
            case float():
                return x**2
            case np.ndarray():
                return np.sum(x**3)

    assert grad(grad(by_match))(2.0) == 2.0
    assert hessian(by_match)(np.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert vmap(grad(by_match))(np.ones((1, 2))).tolist() == [[3.0, 3.0]]


def test_write_keeps_class():
    """An object that was written to refers to a value of another trace, and keeps its class."""

    def f(x):
        a = fnp.zeros(2)
        before = isinstance(a, np.ndarray), type(a), a._trace
        a[0] = x
        assert (isinstance(a, np.ndarray), type(a)) == before[:2]
        assert a._trace is x._trace is not before[2]
        return a[0] * a[0]

    assert grad(f)(3.0) == 6.0


def test_len_of_scalars():
    def f(x):
        with pytest.raises(
            UnsizedError, match=r"^len\(x\): a number has none, got float64\[\], at .* Use np.atleast_1d"
        ):
            len(x[0])
        with pytest.raises(TypeError, match="unsized"):
            len(x[:1].reshape(()))
        assert len(x) == 2
        return x[0]

    assert grad(f)(np.ones(2)).tolist() == [1.0, 0.0]


def test_class_of_tracer_is_callable():
    made = []

    def f(x):
        made.append(x.__class__(2))
        return made[0] * x

    assert grad(f)(np.float64(3.0)) == 2.0
    assert type(made[0]) is np.float64


NAMES = (
    "funcgrad",
    "jax._src",
    "numpy.testing",
    "scipy.sparse",
    "pandas",
    "sklearn",
    "numba",
    "torch",
    "__main__",
    "a",
)
QUESTIONS = """
def answer(ask):
    try:
        return ask()
    except TypeError as error:
        return type(error).__name__

found.append(
    [
        isinstance(x, np.ndarray),
        x.__class__,
        isinstance(x[0], float),
        answer(lambda: float(x[0])),
        answer(lambda: int(x[0])),
        answer(lambda: "%.1f" % x[0]),
        answer(lambda: f"{x[0]:.1f}"),
        answer(lambda: np.asarray(x)),
        answer(lambda: np.testing.assert_allclose(x, x)),
        type(x > 0),
        type(x * x),
    ]
)
made.append(answer(lambda: is_buffer(fnp.zeros(2))))
"""


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("mode", MODES)
def test_class_does_not_depend_on_caller(mode):
    """The answers do not depend on the module that asks, a notebook cell, code without a source, or another thread."""

    def f(x):
        for name in (*NAMES, None):
            space = {"x": x, "np": np, "fnp": fnp, "is_buffer": is_buffer, "found": (found := []), "made": (made := [])}
            space |= {} if name is None else {"__name__": name}
            exec(QUESTIONS, space)
            exec(compile(QUESTIONS, "<a cell>", "exec"), space)
            worker = threading.Thread(target=exec, args=(QUESTIONS, space))
            worker.start()
            worker.join()
            answers.extend(found)
            types.update(made[:2])
            assert len(found) == 3
        return x

    answers, types = [], set()
    with pytest.raises(ConversionError, match="continued after this error"):
        MODES[mode](f, np.ones(2))
    assert len(answers) == 3 * (len(NAMES) + 1)
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][:3] == [True, np.ndarray, True]
    assert answers[0][3] == answers[0][7] == answers[0][8] == "ConversionError"
    assert answers[0][5] == ("ConversionError" if sys.version_info < (3, 15) else "TypeError")  # Python's own
    assert types == {True}


@pytest.mark.usefixtures("written")
def test_libraries_reading_memory_are_correct_or_raise():
    A = scipy.sparse.csr_array(np.eye(2))
    assert grad(lambda x: np.sum(fnp.matmul(A, x)))(np.ones(2)).tolist() == [1.0, 1.0]
    assert grad(lambda x: fnp.sum(jax.numpy.ones(2) * x))(np.ones(2)).tolist() == [1.0, 1.0]
    refused = (
        lambda x: A @ x,
        lambda x: scipy.linalg.inv(np.diag(x)),
        lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x),
        lambda x: LinearRegression().fit(np.ones((2, 1)), x),
        lambda x: StandardScaler().fit_transform(x[:, None]),
    )
    for program in refused:
        for mode in ("grad", "jvp", "vmap"):
            with pytest.raises((TypeError, ValueError)):
                MODES[mode](lambda x, program=program: (program(x), x)[1], np.array([1.0, 2.0]))


def test_class_on_jax_arrays():
    """Compiled functions were written for NumPy, so their tracers report NumPy's classes; plain JAX arrays do not."""
    seen = []

    def f(x):
        seen.append((isinstance(x, np.ndarray), isinstance(x[0], float), np.isscalar(x[0])))
        return fnp.sum(x**2)

    x = np.ones(2)
    jit(f)(x)
    jit(grad(f))(x)
    jax.grad(to_jax(f))(x.astype(np.float32))
    assert set(seen[:2]) == {(True, True, True)}
    assert {found[0] for found in seen} == {True}
    seen.clear()
    grad(f)(jax.numpy.ones(2))
    assert seen == [(False, False, False)]
