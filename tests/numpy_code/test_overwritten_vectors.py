"""Programs that use what solvers of SciPy write to their right-hand side, as ``overwrite_b=True`` lets them do."""

import math

import numpy as np
import pytest
import scipy.linalg
from helpers import close, differences

from funcgrad import grad, value_and_grad

A = np.tril(np.arange(1.0, 10).reshape(3, 3)) + np.eye(3)
S = A @ A.T
BANDS = np.array([[0.0, 0.3, 0.2], [4.0, 5.0, 6.0], [0.1, 0.4, 0.0]])
SOLVERS = {
    "solve_triangular": lambda b, t: scipy.linalg.solve_triangular(A * t, b, lower=True, overwrite_b=True),
    "solve_triangular, by position": lambda b, t: scipy.linalg.solve_triangular(A * t, b, 0, True, False, True),
    "cho_solve": lambda b, t: scipy.linalg.cho_solve((A * t, True), b, overwrite_b=True),
    "lu_solve": lambda b, t: scipy.linalg.lu_solve(scipy.linalg.lu_factor(S * t), b, overwrite_b=True),
    "solve": lambda b, t: scipy.linalg.solve(S * t, b, overwrite_b=True),
    "solve_banded": lambda b, t: scipy.linalg.solve_banded((1, 1), BANDS * t, b, overwrite_b=True),
    "solveh_banded": lambda b, t: scipy.linalg.solveh_banded(BANDS[:2] * t, b, overwrite_b=True),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solver_overwrites_constant_right_hand_side(name):
    def fun(x):
        table = np.zeros((2, 3))
        table[1] = [1.0, 2.0, 3.0]
        SOLVERS[name](table[1], 1.0)
        return math.sin(x) * table.sum()

    value, slope = value_and_grad(fun)(0.4)
    close(value, fun(0.4))
    close(slope, value / math.tan(0.4))


@pytest.mark.parametrize("name", SOLVERS)
def test_solver_overwrites_traced_right_hand_side(name):
    def fun(x):
        table = np.zeros((2, 3))
        table[1] = [1.0, x, 3.0]
        SOLVERS[name](table[1], math.exp(x))
        return (table[1] * [1.0, -1.0, 2.0]).sum()

    close(value_and_grad(fun)(0.4)[0], fun(0.4))
    close(grad(fun)(0.4), differences(fun, 0.4), 1e-8)


def test_solver_leaves_right_hand_side_by_default():
    def fun(x):
        b = np.array([1.0, x, 3.0])
        scipy.linalg.solve_triangular(A, b, lower=True)
        return b.sum()

    assert grad(fun)(0.4) == 1.0
