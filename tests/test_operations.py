"""Every row of the table of operations meets every demand: see ``operations/checks.py``."""

import pytest
from operations import batched, cases, checks

ROWS = cases.rows()
CASES = [case for row in ROWS for case in row.cases]


def each(admits=lambda case: True):
    """Run a test for the cases that ``admits`` names; all tests of one case one after the other."""
    chosen = [case for case in CASES if admits(case)]
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen], scope="module")


def differentiable(case):
    return bool(case.live)


@each()
def test_value(case):
    checks.check_value(case)


@each(differentiable)
def test_jvp(case):
    checks.check_jvp(case)


@each(differentiable)
def test_vjp(case):
    checks.check_vjp(case)


@each(differentiable)
def test_arguments(case):
    checks.check_arguments(case)


@each(differentiable)
def test_linearize(case):
    checks.check_linearize(case)


@each(lambda case: differentiable(case) and case.row.op.jax is not None)
def test_jax(case):
    checks.check_jax(case)


@each(differentiable)
def test_on_jax_arrays(case):
    checks.check_on_jax_arrays(case)


@each(lambda case: differentiable(case) and case.row.op.order >= 2)
def test_second_order(case):
    checks.check_second_order(case)


@each(differentiable)
def test_dtypes(case):
    checks.check_dtypes(case)


@each(lambda case: any(leaf.mapped for leaf in case.leaves))
def test_vmap(case):
    batched.check_vmap(case)


@each(lambda case: differentiable(case) and any(leaf.mapped for leaf in case.leaves))
def test_vmap_of_derivatives(case):
    batched.check_vmap_of_derivatives(case)


@each(differentiable)
def test_ownership(case):
    checks.check_ownership(case)


@each(lambda case: not case.row.op.differentiable)
def test_zero_derivative(case):
    checks.check_zero(case)
