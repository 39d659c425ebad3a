"""SciPy's least-squares solvers and ``expm_multiply`` where their steps end early: the solution has the derivative."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from helpers import differences
from scipy.sparse.linalg import expm_multiply, lsmr, lsqr

from funcgrad import grad, jacfwd, jacobian, jvp, vmap

WEIGHTS = np.array([1.0, 0.3])
A = np.array([[1.0, 0.5], [1.0, 1.0], [0.0, 1.0]])
MOVED = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, -1.0]])
#: No step is needed, one is, and two are; all solvers end at a tolerance.
RIGHT_SIDES = {
    "zero": np.zeros(3),
    "first step": A[:, 0] - np.array([0.5, -0.5, 0.5]),
    "all steps": np.arange(1.0, 4.0),
}


def exact(t, b, damp, start):
    rows = np.concatenate([A + t * MOVED, damp * np.eye(2)])
    right = np.concatenate([b + t - (A + t * MOVED) @ start, np.zeros(2)])
    return WEIGHTS @ (start + np.linalg.lstsq(rows, right, rcond=None)[0])


@pytest.mark.parametrize("damp", [0.0, 0.4])
@pytest.mark.parametrize("name", RIGHT_SIDES)
@pytest.mark.parametrize("solver", [lsmr, lsqr])
def test_derivatives_of_least_squares_solutions(solver, name, damp):
    b, moves = RIGHT_SIDES[name], damp > 0.0 and name != "zero"
    start = np.array([0.0, 0.2]) if moves else np.zeros(2)

    def f(t):
        rows = scipy.sparse.csr_array(A + t * MOVED)
        return WEIGHTS @ solver(rows, b + t, damp, x0=start if moves else None, atol=1e-13, btol=1e-13)[0]

    first = differences(lambda t: exact(t, b, damp, start), 0.0, 1e-4)
    second = differences(lambda t: differences(lambda s: exact(s, b, damp, start), t, 1e-3), 0.0, 1e-3)
    assert grad(f)(0.0) == pytest.approx(first, rel=1e-8)
    assert jvp(f, (0.0,), (1.0,))[1] == pytest.approx(first, rel=1e-8)
    assert grad(grad(f))(0.0) == pytest.approx(second, rel=1e-5)
    np.testing.assert_allclose(vmap(grad(f))(np.array([0.05, 0.1])), [grad(f)(0.05), grad(f)(0.1)], rtol=1e-10)


@pytest.mark.parametrize(("solver", "between"), [(lsmr, (None, False)), (lsqr, (None, False, False))])
def test_first_guess_by_position(solver, between):
    b, start = np.arange(1.0, 4.0), np.array([0.0, 0.2])

    def f(t):
        rows = scipy.sparse.csr_array(A + t * MOVED)
        return WEIGHTS @ solver(rows, b + t, 0.4, 1e-13, 1e-13, 1e8, *between, start)[0]

    assert grad(f)(0.0) == pytest.approx(differences(lambda t: exact(t, b, 0.4, start), 0.0, 1e-4), rel=1e-8)
    assert f(0.0) == pytest.approx(exact(0.0, b, 0.4, start), rel=1e-12)


@pytest.mark.parametrize("solver", [lsmr, lsqr])
def test_derivative_in_the_right_side_of_a_constant_matrix(solver):
    rows = scipy.sparse.csr_array(A)
    slope = grad(lambda b: WEIGHTS @ solver(rows, b)[0])(np.zeros(3))
    np.testing.assert_allclose(slope, WEIGHTS @ np.linalg.pinv(A), rtol=1e-12)


def test_exponentials_where_the_terms_of_the_value_vanish():
    turn = np.array([[0.1, 0.7], [-0.4, 0.3]])
    sparse = scipy.sparse.csr_array(turn)
    for end, found in (
        (1.0, jacobian(lambda b: expm_multiply(sparse, b))(np.zeros(2))),
        (1.0, jacobian(lambda b: expm_multiply(sparse, b, start=0, stop=1, num=7)[-1])(np.zeros(2))),
        (2.0, jacobian(lambda b: expm_multiply(sparse, b, start=0, stop=2, num=300)[-1])(np.zeros(2))),
    ):
        np.testing.assert_allclose(found, scipy.linalg.expm(end * turn), rtol=1e-12)
    third = jacfwd(jacfwd(jacfwd(lambda t: expm_multiply(sparse * t, np.ones(2)))))
    np.testing.assert_allclose(third(0.0), turn @ turn @ turn @ np.ones(2), rtol=1e-12)


@pytest.mark.parametrize("times", [None, {"start": 1, "stop": 2, "num": 3}, {"start": 0, "stop": 2, "num": 7}])
def test_exponentials_of_multiples_of_the_identity(times):
    b = np.array([0.4, 0.1])
    matrix = lambda t: np.array([[1.0 + t, 0.5 * t], [0.0, 1.0 + t * t]])

    def f(t):
        found = expm_multiply(scipy.sparse.csr_array(matrix(t)), b, **(times or {}))
        return found.sum() * 1.0

    def wanted(t):
        ends = np.linspace(*times.values()) if times else [1.0]
        return sum((scipy.linalg.expm(end * matrix(t)) @ b).sum() for end in ends)

    assert grad(f)(0.0) == pytest.approx(differences(wanted, 0.0, 1e-4), rel=1e-8)
    assert grad(grad(f))(0.0) == pytest.approx(differences(lambda t: differences(wanted, t, 1e-3), 0.0, 1e-3), rel=1e-5)
    assert f(0.0) == pytest.approx(wanted(0.0), rel=1e-13)
