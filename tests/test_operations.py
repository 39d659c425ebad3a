"""Every row of the table of operations passes every check: see ``operations/checks.py``.

One test runs several checks on all cases of a row, also after a failure: pytest's overhead for a test is larger than
most of these checks.
"""

import pytest
from operations import batched, cases, checks, older, ownership

ROWS = [row for row in cases.rows() if row.op.name not in older.LEFT_OUT]


def mapped(case):
    return any(leaf.mapped for leaf in case.leaves)


def run_checks(row, checks_of):
    """Run the checks that ``demands`` yields on each case of ``row``, and report all failures together."""
    missed = []
    for case in row.cases:
        for demand in checks_of(case):
            try:
                demand(case)
            except Exception as error:
                error.add_note(f"Demanded of {case.id} by {demand.__name__}.")
                missed.append(error)
    if len(missed) == 1:
        raise missed[0]
    if missed:
        raise ExceptionGroup(f"{row.op.name} misses {len(missed)} demands", missed)


def checks_of(case):
    """Yield the checks for ``case``."""
    yield checks.check_value
    if mapped(case):
        yield batched.check_vmap
    if not case.row.op.differentiable:
        yield checks.check_zero
    if case.live:
        yield from derivative_checks(case)


def derivative_checks(case):
    """Yield the checks of derivatives for ``case``."""
    yield from (checks.check_jvp, checks.check_vjp, checks.check_arguments, checks.check_linearize)
    if case.row.op.jax is not None:
        yield checks.check_jax
    if case.row.op.order >= 2:
        yield checks.check_second_order
    yield from (checks.check_dtypes, ownership.check_ownership)
    if mapped(case):
        yield batched.check_vmap_of_derivatives


def by_row(rows):
    """Parametrize a test by ``rows``; the tests of one row run together, because they share JAX's answers."""
    return pytest.mark.parametrize("row", rows, ids=[row.op.name for row in rows], scope="module")


@by_row(ROWS)
def test_operation(row):
    run_checks(row, checks_of)


@by_row([row for row in ROWS if any(case.live for case in row.cases)])
def test_on_jax_arrays(row):  # separate, because it also runs with older versions of JAX
    run_checks(row, lambda case: [checks.check_on_jax_arrays] if case.live else [])
