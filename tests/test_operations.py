"""Every row of the table of operations meets every demand: see ``operations/checks.py``.

One test makes a case meet several demands, whether or not it has missed another: pytest takes longer over a test than
most of these take.
"""

import pytest
from operations import batched, cases, checks

ROWS = cases.rows()
CASES = [case for row in ROWS for case in row.cases]


def mapped(case):
    return any(leaf.mapped for leaf in case.leaves)


def meets(case, *demands):
    """Make ``case`` meet all of ``demands``, and tell of all that it misses."""
    missed = []
    for demand in demands:
        try:
            demand(case)
        except Exception as error:
            error.add_note(f"Demanded of {case.id} by {demand.__name__}.")
            missed.append(error)
    if len(missed) == 1:
        raise missed[0]
    if missed:
        raise ExceptionGroup(f"{case.id} misses {len(missed)} demands", missed)


def each(admits=lambda case: True):
    """Run a test for the cases that ``admits`` names; all tests of one case one after the other."""
    chosen = [case for case in CASES if admits(case)]
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen], scope="module")


@each()
def test_value(case):
    meets(case, checks.check_value, *[batched.check_vmap] * mapped(case))


@each(lambda case: case.live)
def test_derivatives(case):
    meets(
        case,
        checks.check_jvp,
        checks.check_vjp,
        checks.check_arguments,
        checks.check_linearize,
        *[checks.check_jax] * (case.row.op.jax is not None),
        *[checks.check_second_order] * (case.row.op.order >= 2),
        checks.check_dtypes,
        checks.check_ownership,
        *[batched.check_vmap_of_derivatives] * mapped(case),
    )


@each(lambda case: case.live)
def test_on_jax_arrays(case):
    meets(case, checks.check_on_jax_arrays)


@each(lambda case: not case.row.op.differentiable)
def test_zero_derivative(case):
    meets(case, checks.check_zero)
