"""``crosscheck``: comparison of funcgrad's derivatives with JAX's and with a numerical referee."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Never, ParamSpec

import numpy as np

from funcgrad.errors import InputError
from funcgrad.interop.crosschecks.blame import blame_search
from funcgrad.interop.crosschecks.comparing import ALSO, KINDS, Comparison, random_directions
from funcgrad.interop.crosschecks.divergences import divergences_at
from funcgrad.interop.crosschecks.judging import KNOWN_SUFFIX, Judge
from funcgrad.interop.crosschecks.report import Blame, CrossCheck, Row, without_numbers
from funcgrad.interop.jax.devices import find_device
from funcgrad.interop.jax.lift import lifted
from funcgrad.numpy.plain_values.concretization import user_line
from funcgrad.optional import double_precision, import_jax
from funcgrad.transforms.checking import Problem
from funcgrad.transforms.transformed import Transformed, check_callable, hide_extra_arguments, name_of

P = ParamSpec("P")

MANY_OPERATIONS = 3000  # operations; a compiler reads all of them at once

#: For each kind the kinds that it depends on: if one of these differs, the dependent kind shows nothing new.
DEPENDS_ON = {kind: KINDS[: 1 if kind in KINDS[:3] else 3] for kind in KINDS[1:]}


class _Options(NamedTuple):
    order: int
    argnums: Any
    has_aux: bool
    rtol: float
    atol: float
    seed: int
    also: tuple[str, ...]
    blame: bool
    device: Any


@hide_extra_arguments
def crosscheck(
    fun: Callable[P, Any],
    *_others: Never,
    order: int = 2,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    seed: int = 0,
    also: Collection[str] = ALSO,
    blame: bool = True,
    device: Any = None,
) -> Callable[P, CrossCheck]:
    """Check the derivatives of ``fun`` against JAX's and against numerical ones, in double precision.

    The report compares four quantities: the value; the gradient (for results other than one real number, a pullback of
    random cotangents); the derivative along a random direction in forward mode; and with ``order=2`` the product of the
    Hessian with that direction. Value and gradient are compared again in a batch of examples, against a loop; compiled,
    by the rules of both libraries; and in single precision, against double precision.

    JAX differentiates the same function by its own rules. The function may be written with plain NumPy,
    ``funcgrad.numpy``, pipelines or funcgrad's transforms. The referee uses values of the function only: complex steps
    where the function is analytic, extrapolated differences elsewhere.

    If results differ, a search halves the run until it finds the operation with which the difference begins: its
    line, its pipeline stage, and whose rule is the outlier.

    Args:
        fun: a pure function from arrays, numbers or pytrees to arrays, numbers or pytrees.
        order: 1 or 2.
        argnums: the positional arguments to differentiate; None for every floating leaf of all of them.
            Other leaves and keyword arguments are passed through.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; aux is ignored.
        rtol: the largest error allowed, relative to the largest entry of a derivative. Comparisons with the referee
            allow ten times its own error estimate in addition.
        atol: the largest absolute error allowed in addition.
        seed: seed of the random directions and cotangents.
        also: further comparisons: some of "vmap", "jit" and "float32". A function that branches on values cannot be
            compiled, and can be mapped only if all examples take the same branch; the report says so.
        blame: whether to search for the operation with which a difference begins.
        device: where JAX runs: "cpu", "gpu", a ``jax.Device``; None for JAX's default.

    Returns:
        A function of the same arguments whose result is a ``CrossCheck``: a report with a row for each
        quantity and leaf, true when all rows pass. A row in which the referee alone disagrees passes at a kink of the
        function and fails where the function is smooth: both libraries then miss a part of the derivative, for example
        behind ``stop_gradient``.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        InputError: there is nothing to differentiate, or ``order`` is not 1 or 2 (a ``TypeError``).
        DeviceError: there is no such device (a ``RuntimeError``).

    Example:
        >>> from funcgrad import crosscheck
        >>> crosscheck(lambda x: np.sum(np.sin(x) * x))(np.array([0.5, 1.0]))
        <CrossCheck of <lambda>: OK: 11 quantities agree to 1e-09.>
    """
    check_callable("crosscheck", fun, _others)
    if order not in (1, 2):
        raise InputError(
            f"crosscheck: order must be 1 or 2, got {order!r}. For a higher order write crosscheck(grad(f))."
        )
    if not (rtol > 0 and atol >= 0):
        raise InputError(f"crosscheck: rtol must be positive, got rtol={rtol!r}, atol={atol!r}.")
    if isinstance(also, str) or not {*also} <= {*ALSO}:
        raise InputError(f"crosscheck: also must be some of {ALSO}, got {also!r}. Pass a tuple of them.")
    options = _Options(order, argnums, has_aux, rtol, atol, seed, tuple(also), blame, device)
    return Transformed(run_crosscheck, fun, options, "A cross-check of {fun}, with a report as the result.")


@contextmanager
def comparison_settings(jax: Any, device: Any = None, call: str = "crosscheck") -> Iterator[None]:
    """Set up JAX for a comparison: in double precision, with full precision in products, on ``device``.

    The end of the block restores all settings, also after an error.
    """
    with ExitStack() as stack:
        stack.enter_context(double_precision(jax))
        stack.enter_context(jax.default_matmul_precision("float32"))
        if device is not None:
            stack.enter_context(jax.default_device(find_device(jax, call, device)))
        yield


def run_crosscheck(fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> CrossCheck:
    """Run ``crosscheck(fun)`` on these arguments."""
    jax = import_jax("crosscheck")
    problem = Problem(fun, args, kwargs, options.argnums, has_aux=options.has_aux)
    kinds = [*KINDS[: options.order + 2], *[kind for kind in ALSO if kind in options.also]]
    rng = np.random.default_rng(options.seed)
    directions = random_directions(rng, problem)
    with comparison_settings(jax, options.device):
        notes, met_at, length = _watch_run(jax, problem)
        if length > MANY_OPERATIONS:
            kinds = [kind for kind in kinds if kind != "jit"]
        comparison = Comparison(jax, problem, directions, kinds, rng)
        for kind in KINDS[: options.order + 2]:
            if isinstance(comparison.funcgrad_answers[kind], Exception):
                raise comparison.funcgrad_answers[kind]
        judge = Judge(options.rtol, options.atol, bool(notes))
        rows = {kind: comparison.rows(kind, judge) for kind in kinds}
        blames = find_blames(jax, problem, comparison, rows, judge, by_halving=options.blame)
    if length > MANY_OPERATIONS and "jit" in options.also:
        verdict = f"not compared, {length} operations are too many to compile"
        rows["jit"] = [without_numbers("jit", "result", verdict, True)]
    every = tuple(row for found in rows.values() for row in found)
    return CrossCheck(name_of(fun), every, options.rtol, comparison.measured.methods, notes, blames, met_at)


def _watch_run(jax: Any, problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Return the known divergences of JAX in a run on JAX arrays, their lines, and the number of operations."""
    found: dict[str, str] = {}
    count = 0

    def watch(primitive: Any, values: Any, params: Any) -> None:
        nonlocal count
        count += 1
        for text in divergences_at(primitive, values, params):
            found.setdefault(text, user_line())

    try:
        lifted(jax, problem, watch)(*[jax.numpy.asarray(x) for x in problem.point])
    except Exception as error:
        error.add_note(f"crosscheck: raised while JAX ran {name_of(problem.fun)}.")
        raise
    return tuple(found), tuple(line.removeprefix(", ") for line in found.values()), count


def find_blames(
    jax: Any, problem: Problem, comparison: Comparison, rows: dict[str, list[Row]], judge: Judge, *, by_halving: bool
) -> tuple[Blame, ...]:
    """Say where differences begin. Differences that a known divergence excuses must begin at its operation."""
    blames: list[Blame] = []
    wrong: set[str] = set()
    searches: list[Any] = []
    for kind, found in rows.items():
        failed = [row for row in found if not row.ok]
        excused = [row for row in found if row.verdict.endswith(KNOWN_SUFFIX)]
        wrong |= {kind} if failed else set()
        if wrong & {*DEPENDS_ON.get(kind, ())} or not (excused or (failed and by_halving)):
            continue
        what = (failed or excused)[0].what
        try:
            if not searches:
                searches.append(blame_search(jax, problem, comparison.directions, judge))
            search = searches[0](kind, any(not row.funcgrad_jax <= judge.rtol for row in (*failed, *excused)))
            # compiled, funcgrad's rules can be wrong in the way that JAX's are; at a kink, only funcgrad's may differ
            jax_only = kind != "jit" and not any(row.funcgrad_referee > row.jax_referee for row in excused)
            position = search.one_by_one(jax_only=jax_only and not failed) if judge.has_known_divergence else None
            if position is not None or failed:
                blames.append(search.find_blame(what) if position is None else search.blame(what, position))
            doubted = excused and search.one_by_one(jax_only=jax_only) is not None
        except Exception as error:  # the report is worth more than the blame
            why = f"the search for the operation was given up, {type(error).__name__}: {error}"
            blames.append(Blame(what, None, None, None, None, why=why))
            continue
        if doubted:
            rows[kind] = comparison.rows(kind, judge._replace(has_known_divergence=False))
    return tuple(blames)
