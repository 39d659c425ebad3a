"""Runs inside of runs: a constant of the outer run is a constant inside, whichever operation uses it."""

import numpy as np
import pytest
from operations.cases import named_in_errors, rows

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacrev, jvp, no_grad, vjp

ROWS = [row for row in rows() if any(len(case.live) > 1 for case in row.cases)]


def parts(case, position, given):
    """Return results and cotangents of an operation, with ``given`` at ``position`` and traced values elsewhere."""
    place = case.live.index(position)

    def fun(*rest):
        return case.smooth(*rest[:place], given, *rest[place:])

    rest = [x for i, x in enumerate(case.primals) if i != place]
    outs, pullback = vjp(fun, *rest)
    return [np.asarray(x) for x in (*outs, *pullback(case.cotangents))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op.name)
def test_outer_value_in_no_grad_is_inner_constant(row):
    """If the inner run took the value for its own, the derivative would be lost or go to another value."""
    for case in [case for case in row.cases if len(case.live) > 1]:
        for position in case.live:
            with named_in_errors(f"argument {position} of {case.id}"):
                primal = case.leaves[position].value
                want = parts(case, position, primal)
                for outer in (lambda f, x: vjp(f, x), lambda f, x: jvp(f, (x,), (x,))):
                    for got, expected in zip(seen_inside(outer, case, position), want, strict=True):
                        np.testing.assert_array_equal(got, expected, strict=True)


def seen_inside(outer, case, position):
    seen = []

    def look(x):
        seen[:] = no_grad(lambda x: parts(case, position, x))(x)  # it may run twice
        return x

    outer(look, case.leaves[position].value)
    return seen


def inner(x):
    return grad(lambda y: fnp.sum(x * y * y))(fnp.ones(3))


@pytest.mark.parametrize("product", [lambda a, b: a * b, lambda a, b: b * a], ids=["before", "after"])
def test_inner_gradient_beside_its_no_grad_copy(product):
    x = np.array([0.5, 1.0, -2.0])
    found = jacrev(lambda x: product(inner(x), no_grad(inner)(x)))(x)
    np.testing.assert_array_equal(found, np.diag(4 * x))
    np.testing.assert_array_equal(hessian(lambda x: fnp.sum(product(inner(x), no_grad(inner)(x))))(x), np.zeros((3, 3)))
