"""Every row of the table of operations meets every demand: see ``operations/checks.py``.

One test makes a case meet several demands, whether or not it has missed another: pytest takes longer over a test than
most of these take.
"""

import pytest
from operations import batched, cases, checks, ownership

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


def demands(case):
    """What ``case`` has to meet."""
    yield checks.check_value
    if mapped(case):
        yield batched.check_vmap
    if not case.row.op.differentiable:
        yield checks.check_zero
    if case.live:
        yield from derivatives(case)


def derivatives(case):
    """Of these, what is about derivatives."""
    yield from (checks.check_jvp, checks.check_vjp, checks.check_arguments, checks.check_linearize)
    if case.row.op.jax is not None:
        yield checks.check_jax
    if case.row.op.order >= 2:
        yield checks.check_second_order
    yield from (checks.check_dtypes, ownership.check_ownership)
    if mapped(case):
        yield batched.check_vmap_of_derivatives


def each(cases):
    """Run a test for ``cases``; all tests of one case one after the other, for they share what JAX says of it."""
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases], scope="module")


@each(CASES)
def test_operation(case):
    meets(case, *demands(case))


@each([case for case in CASES if case.live])
def test_on_jax_arrays(case):  # by itself, for it is what an older JAX is asked too
    meets(case, checks.check_on_jax_arrays)
