"""Loops: ``scan``, ``while_loop``, ``fori_loop``. Plain Python on values, ``jax.lax`` on values not known yet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe, is_array
from funcgrad.errors import InputError, ShapeError
from funcgrad.optional import loaded_jax
from funcgrad.primitives.indexing import getitem
from funcgrad.shared_state import open_path
from funcgrad.transforms.arguments import owned_tree
from funcgrad.transforms.control.carrying import (
    Carry,
    carry_avals,
    checked_leaves,
    refuse_structure,
    unflatten,
)
from funcgrad.transforms.control.failing import Failures
from funcgrad.transforms.control.outside import refuse_writes_outside
from funcgrad.transforms.control.selecting import call_where_needed
from funcgrad.transforms.control.staging import (
    UNKNOWN,
    Aval,
    Captured,
    NeverReturns,
    as_jax_aval,
    aval_of,
    before_staging,
    is_abstract,
    is_batched_anywhere,
    staged_call,
)
from funcgrad.transforms.transformed import check_functions
from funcgrad.transforms.vectorize import is_true_for_any_example
from funcgrad.typing import PyTree
from funcgrad.writable import as_argument, as_results


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Run ``carry, y = f(carry, x)`` along the first axes of ``xs``, and stack the results ``y``.

    On values ``scan`` is plain Python: every mode and order works, and reverse mode saves values of every step. If
    values are not known, under ``jax.jit``, ``jax.lax.scan`` runs, which is compiled once for all steps; JAX then
    differentiates its body.

    Args:
        f: ``f(carry, x) -> (carry, y)``. It must not write to its arguments. The carry keeps its
            structure, shapes and dtypes; Python numbers in ``init`` take the dtype of the returned carry.
        init: the first carry, a pytree.
        xs: a pytree of arrays with first axes of one length, or None; then ``f`` gets None.
        length: the number of steps, if ``xs`` does not tell it.
        reverse: whether to go from the last ``x`` to the first. ``ys`` keep the order of ``xs``.
        unroll: how many steps a compiled loop takes at a time; True or 0 for all.

    Returns:
        The last carry, and the results ``y`` of all steps, stacked along new first axes.

    Raises:
        TypeError: not a function, not a pair, a carry that changes structure or dtype.
        ValueError: lengths that disagree, a carry that changes shape.

    Example:
        >>> from funcgrad import grad, scan
        >>> def compound(rates):
        ...     return scan(lambda c, r: (c * (1 + r), c), 100.0, rates)
        >>> last, before = compound(np.array([0.5, 0.1]))
        >>> last.round(6), before
        (np.float64(165.0), array([100., 150.]))
        >>> grad(lambda rates: compound(rates)[0])(np.array([0.5, 0.1]))
        array([110., 150.])
    """
    check_functions("scan", f=f)
    items = _Items(xs, length)
    unroll = _check_unroll("scan", unroll)
    carry = Carry("scan", init)
    if is_abstract([*carry.leaves, *items.leaves]):
        return _staged_scan(f, carry, items, reverse, unroll)
    outs = _Outputs()
    order = range(items.length)
    for step, i in enumerate(reversed(order) if reverse else order):
        result = (f if step else before_staging(f))(carry.for_user(), items.item(i))
        if result is UNKNOWN:
            return _staged_scan(f, Carry("scan", init), items, reverse, unroll)
        new, y = _check_pair(result)
        outs.add(carry, y)
        carry.advance(new)
        if not step and is_abstract([*carry.leaves, *outs.rows[0]]):  # because of values that ``f`` closes over
            return _staged_scan(f, Carry("scan", init), items, reverse, unroll)
    if not items.length:
        return owned_tree(init), _empty_outputs(f, carry, items)
    return carry.result(xs), outs.stacked(reverse, (init, xs))


class _Items:
    """Items ``xs`` of a scan, one for each step."""

    def __init__(self, xs: PyTree, length: Any) -> None:
        self.leaves, self.spec = checked_leaves("scan", "xs", xs)
        of_xs = set()
        for number, leaf in enumerate(self.leaves):
            shape = backend.shape_of(leaf)
            if not shape:
                raise ShapeError(
                    f"scan: xs{tree.flatten_with_path(xs)[0][number]} has no first axis to go through, got "
                    f"{describe(leaf)}. Close over what is the same in every step."
                )
            of_xs.add(shape[0])
        if length is not None:
            length = _check_integer("scan", "length", length)
        sizes = of_xs if length is None else of_xs | {length}
        if not sizes:
            raise InputError("scan: the number of steps is unknown, got neither xs nor length. Pass one of them.")
        if len(sizes) > 1 or min(sizes) < 0:
            also = "" if length is None else f" and length={length}"
            raise ShapeError(
                f"scan: the first axes of xs must have one length, got {sorted(of_xs)}{also}. Cut them to one length."
            )
        self.length: int = sizes.pop()
        self._plain = [as_argument(leaf) if type(leaf) is np.ndarray else leaf for leaf in self.leaves]

    def item(self, i: int) -> PyTree:
        return unflatten(self.spec, [x[i] if type(x) is np.ndarray else getitem(x, i) for x in self._plain])

    def item_avals(self) -> list[Aval]:
        return [Aval(backend.shape_of(leaf)[1:], backend.dtype_of(leaf), False) for leaf in self.leaves]


class _Outputs:
    """Results of the steps of a scan, without the carry."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.spec: Any = None

    def add(self, carry: Carry, y: PyTree) -> None:
        leaves, spec = checked_leaves("scan", "y", y)
        if self.rows and spec is not self.spec and spec != self.spec:
            raise InputError(
                f"scan: y must have one structure in all steps, got {tree.drawn(spec)} after "
                f"{tree.drawn(self.spec)}. Return the same containers with the same keys."
            )
        self.spec = spec
        self.rows.append(carry.original(leaves))

    def stacked(self, reverse: bool, given: PyTree) -> PyTree:
        """Return all results, in the order of xs, for the caller of the loop, which passed the arguments ``given``."""
        if reverse:
            self.rows.reverse()
        columns = [list(column) for column in zip(*self.rows, strict=True)]
        for column in columns:
            shapes = {backend.shape_of(y) for y in column}
            if len(shapes) > 1:
                raise ShapeError(
                    f"scan: y must have one shape in all steps, got {sorted(shapes)}. Pad them, since they are stacked."
                )
        return tree.unflatten(self.spec, as_results([fnp.stack(column) for column in columns], given))


def _empty_outputs(f: Callable[[Any, Any], Any], carry: Carry, items: _Items) -> PyTree:
    """Return the stacked ``y`` of a scan without steps: ``f`` runs on zeros, for the shapes of its results."""
    x = tree.unflatten(items.spec, [np.zeros(shape, dtype)[()] for shape, dtype, _ in items.item_avals()])
    with np.errstate(all="ignore"):
        new, y = _check_pair(f(carry.for_user(), x))
    carry.advance(new)
    return tree.map(lambda y: np.zeros((0, *backend.shape_of(y)), backend.dtype_of(y)), y)


def _check_pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise InputError(
            f"scan: f must return a pair (carry, y), got {describe(result)}. Return exactly two things; y may be None."
        )
    return result[0], result[1]


def _staged_scan(
    f: Callable[[Any, Any], Any], carry: Carry, items: _Items, reverse: bool, unroll: Any
) -> tuple[Any, Any]:
    """Run the scan by ``jax.lax.scan``."""
    captured, count = Captured("scan", [*carry.leaves, *items.leaves]), len(carry.leaves)

    def body(*leaves: Any) -> tuple[Any, Any]:
        return _check_pair(f(tree.unflatten(carry.spec, leaves[:count]), tree.unflatten(items.spec, leaves[count:])))

    try:
        (_, y_spec), avals, outs, failures = _settle_carry("scan", captured, carry, body, items.item_avals())
    except NeverReturns as signal:
        if items.length:
            f(carry.for_user(), items.item(items.length - 1 if reverse else 0))
        raise signal.error from None
    end = count + len(outs)

    def run(*args: Any) -> tuple[Any, ...]:
        first, held = args[:count], args[count + len(items.leaves) :]

        def step(now: Any, x: Any) -> tuple[Any, Any]:
            found = captured.run(body, (*now[:count], *x), held, [*avals, *outs], now[count:])
            return (*found[:count], *failures.earliest(now[count:], found[end:])), found[count:end]

        lax = loaded_jax().lax
        rows = args[count : len(args) - len(held)]
        start = (*_cast(first, avals), *failures.none())
        last, ys = lax.scan(step, start, rows, items.length, reverse, unroll)
        return (*last[:count], *ys, *last[count:])

    stacked = [out._replace(shape=(items.length, *out.shape)) for out in outs]
    leaves = [*carry.leaves, *items.leaves, *captured.tracers]
    results = staged_call("scan", run, leaves, [*avals, *stacked, *failures.avals])
    failures.raise_first(results)
    return tree.unflatten(carry.spec, results[:count]), tree.unflatten(y_spec, results[count:end])


def _settle_carry(
    call: str, captured: Captured, carry: Carry, body: Callable[..., Any], rest: Sequence[Aval], first: bool = True
) -> tuple[Any, list[Aval], list[Aval], Failures]:
    """Return facts about a compiled loop: its carry after the promotion of Python numbers, and its other results.

    Returns:
        The structures of the parts of the result of ``body``, the carry's shapes and dtypes, the other results', and
        the errors that ``body`` may raise.
    """
    avals, count = [as_jax_aval(one) for one in carry.avals], len(carry.leaves)
    for _ in range(2):
        shapes = captured.shapes_or_error(body, [*avals, *rest] if first else [*rest, *avals])
        if isinstance(shapes, Exception):
            raise NeverReturns(shapes)
        spec, outs, checks = shapes
        parts = spec.children() if call == "scan" else [spec]
        if parts[0] != carry.spec:
            refuse_structure(call, carry.spec, parts[0])
        now = carry_avals(call, carry.init, avals, outs[:count])
        if [one.dtype for one in now] == [one.dtype for one in avals]:
            break
        avals = now
    return parts, [one._replace(weak=False) for one in now], outs[count:], Failures(checks)


def _without_step(carry: Carry, signal: NeverReturns, begins: Any, step: Callable[[], Any]) -> Any:
    """Return the first carry of a loop whose body raises an error in every step; if it ``begins``, take the step."""
    if begins:
        step()
        raise signal.error from None  # the body has done something else than before
    return carry.result()


def _cast(leaves: Sequence[Any], avals: Sequence[Aval]) -> tuple[Any, ...]:
    asarray = loaded_jax().numpy.asarray
    return tuple([asarray(leaf, one.dtype) for leaf, one in zip(leaves, avals, strict=True)])


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree) -> Any:
    """Run ``val = body_fun(val)`` while ``cond_fun(val)``.

    On values the loop is plain Python, so reverse mode works too, for any number of steps. Inside ``vmap`` the steps go
    on until all examples are done; an example that is done keeps its value. If values are not known, under ``jax.jit``,
    ``jax.lax.while_loop`` runs, which has no reverse mode.

    Args:
        cond_fun: ``cond_fun(val) -> bool``.
        body_fun: ``body_fun(val) -> val``. It keeps structure, shapes and dtypes, and must not write to
            its argument.
        init_val: the first value, a pytree.

    Returns:
        The first value for which ``cond_fun`` is false; without any step a value equal to ``init_val``.

    Raises:
        TypeError: not a function, not a truth value, a value that changes structure or dtype; reverse mode
            through a compiled loop.
        ValueError: a value that changes shape.

    Example:
        >>> from funcgrad import grad, while_loop
        >>> def root(a):
        ...     return while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
        >>> root(2.0), grad(root)(2.0).round(6)
        (1.414213562373095, np.float64(0.353553))
    """
    check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    return _run_while_loop("while_loop", cond_fun, body_fun, init_val)


def _run_while_loop(call: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: PyTree) -> Any:
    carry, first = Carry(call, init), True
    if is_abstract(carry.leaves):
        return _staged_while(call, cond_fun, body_fun, carry)
    while True:
        answer = (before_staging(cond_fun) if first else cond_fun)(carry.for_user())
        if answer is UNKNOWN or is_abstract([_check_condition(call, answer)]):
            return _staged_while(call, cond_fun, body_fun, Carry(call, init))
        if not is_true_for_any_example(answer):
            return carry.result()
        before = carry.leaves
        if is_batched_anywhere(answer):
            done = fnp.logical_not(answer)
            with refuse_writes_outside(call, body_fun, done):
                carry.advance(call_where_needed(body_fun, (carry.for_user(),), done, [answer, *before]))
            carry.select(answer, before)
        else:
            result = (before_staging(body_fun) if first else body_fun)(carry.for_user())
            if result is UNKNOWN:
                return _staged_while(call, cond_fun, body_fun, Carry(call, init))
            carry.advance(result)
        if first and is_abstract(carry.leaves):  # because of values that the functions close over
            return _staged_while(call, cond_fun, body_fun, Carry(call, init))
        first = False


def _check_condition(call: str, answer: Any) -> Any:
    """Return the result of ``cond_fun``, after a check that it is one truth value."""
    if not is_array(answer) or backend.dtype_of(answer).kind != "b" or backend.shape_of(answer):
        raise InputError(
            f"{call}: cond_fun must return one truth value, got {describe(answer)}. Return a comparison, or "
            "reduce it with all or any."
        )
    return answer


def _staged_while(call: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Carry) -> Any:
    """Run the loop by ``jax.lax.while_loop``."""
    captured, count = Captured(call, carry.leaves), len(carry.leaves)

    def body(*leaves: Any) -> Any:
        return body_fun(tree.unflatten(carry.spec, leaves))

    def condition(*leaves: Any) -> Any:
        return _check_condition(call, cond_fun(tree.unflatten(carry.spec, leaves)))

    try:
        _, avals, _, of_body = _settle_carry(call, captured, carry, body, [])
    except NeverReturns as signal:
        begins = _check_condition(call, cond_fun(carry.for_user()))
        return _without_step(carry, signal, begins, lambda: body_fun(carry.for_user()))
    _, answer, of_condition = captured.eval_shape(condition, avals)
    failures = Failures(of_body.checks, of_condition)
    path = open_path.get()
    stopped = None if path is None else path.is_left()  # the loop might not end with values that go another way

    def run(*args: Any) -> tuple[Any, ...]:
        first, held = _cast(args[:count], avals), args[count:]

        def goes_on(now: Any, failed: Any) -> tuple[Any, ...]:
            answer_now, *new = captured.run(condition, now, held, answer, failed)
            return (answer_now if stopped is None else answer_now & ~stopped, *new)

        def step(now: Any, failed: Any = ()) -> tuple[Any, ...]:
            return captured.run(body, now, held, avals, failed)

        def asked(now: Any, before: Any, of_step: Any) -> tuple[Any, ...]:
            """Return the carry, whether the loop goes on, and the conditions of errors, which cannot leave that."""
            failed = failures.earliest(before, failures.joined(of_step, ()))
            go, *of_condition = goes_on(now, failed)
            failed = failures.earliest(failed, failures.joined((), of_condition))
            return (*now, go & ~failed[0].any(), *failed)

        def step_and_ask(state: Any) -> tuple[Any, ...]:
            now, failed = state[:count], state[count + 1 :]
            found = step(now, failed)
            return asked(found[:count], failed, found[count:])

        lax = loaded_jax().lax
        if not failures.checks:
            return tuple(lax.while_loop(lambda now: goes_on(now, ())[0], step, first))
        last = lax.while_loop(lambda state: state[count], step_and_ask, asked(first, failures.none(), ()))
        return (*last[:count], *last[count + 1 :])

    results = staged_call(call, run, [*carry.leaves, *captured.tracers], [*avals, *failures.avals])
    failures.raise_first(results)
    return tree.unflatten(carry.spec, results[:count])


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: PyTree, *, unroll: int | bool | None = None
) -> Any:
    """Run ``val = body_fun(i, val)`` for ``i`` in ``range(lower, upper)``.

    On values the loop is plain Python. If values are not known, under ``jax.jit``, ``jax.lax.fori_loop`` runs, which
    has a reverse mode if the bounds are plain integers.

    Args:
        lower: an integer.
        upper: an integer; without a value above ``lower`` there is no step.
        body_fun: ``body_fun(i, val) -> val``, as in ``while_loop``.
        init_val: the first value, a pytree.
        unroll: how many steps a compiled loop takes at a time; True or 0 for all.

    Returns:
        The last value.

    Raises:
        TypeError: bounds that are not integers; else see ``while_loop``.
        ValueError: a value that changes shape; ``unroll`` with bounds that are known only later.

    Example:
        >>> from funcgrad import fori_loop, grad
        >>> grad(lambda x: fori_loop(0, 3, lambda i, v: v * x + i, 1.0))(2.0)
        np.float64(13.0)
    """
    check_functions("fori_loop", body_fun=body_fun)
    for name, bound in (("lower", lower), ("upper", upper)):
        _check_integer("fori_loop", name, bound, plain=False)
    if unroll is not None:
        unroll = _check_unroll("fori_loop", unroll)
    if is_abstract([lower, upper]):
        return _staged_fori((lower, upper), body_fun, Carry("fori_loop", init_val), unroll)
    if is_batched_anywhere(lower) or is_batched_anywhere(upper):
        return _run_while_loop(
            "fori_loop",
            lambda state: state[0] < state[1],
            lambda state: (state[0] + 1, state[1], body_fun(state[0], state[2])),
            (lower, upper, init_val),
        )[2]
    start, stop = operator.index(lower), operator.index(upper)
    carry = Carry("fori_loop", init_val)
    if is_abstract(carry.leaves):
        return _staged_fori((start, stop), body_fun, carry, unroll)
    for i in range(start, stop):
        result = (body_fun if i > start else before_staging(body_fun))(i, carry.for_user())
        if result is UNKNOWN:
            return _staged_fori((start, stop), body_fun, Carry("fori_loop", init_val), unroll)
        carry.advance(result)
        if i == start and is_abstract(carry.leaves):  # because of values that ``body_fun`` closes over
            return _staged_fori((start, stop), body_fun, Carry("fori_loop", init_val), unroll)
    return carry.result()


def _staged_fori(bounds: tuple[Any, Any], body_fun: Callable[[Any, Any], Any], carry: Carry, unroll: Any) -> Any:
    """Run the loop by ``jax.lax.fori_loop``; bounds that are plain integers stay plain integers."""
    captured, count = Captured("fori_loop", [*bounds, *carry.leaves]), len(carry.leaves)
    static = type(bounds[0]) is int and type(bounds[1]) is int
    if not static and unroll not in (None, False, 1):
        raise ShapeError(
            f"fori_loop: only a loop between plain integers can be unrolled, got unroll={unroll}. Leave it out."
        )

    def body(i: Any, *leaves: Any) -> Any:
        return body_fun(i, tree.unflatten(carry.spec, leaves))

    counter = Aval((), np.dtype(np.int64), True) if static else _counter_aval(bounds)
    try:
        _, avals, _, failures = _settle_carry("fori_loop", captured, carry, body, [counter], first=False)
    except NeverReturns as signal:
        return _without_step(carry, signal, fnp.less(*bounds), lambda: body_fun(bounds[0], carry.for_user()))
    moving = () if static else bounds

    def run(*args: Any) -> tuple[Any, ...]:
        jax = loaded_jax()
        ends = bounds if static else [jax.numpy.asarray(end, as_jax_aval(counter).dtype) for end in args[:2]]
        first, held = args[len(moving) : len(moving) + count], args[len(moving) + count :]

        def step(i: Any, now: Any) -> Any:
            found = captured.run(body, (i, *now[:count]), held, avals, now[count:])
            return (*found[:count], *failures.earliest(now[count:], found[count:]))

        return tuple(jax.lax.fori_loop(*ends, step, (*_cast(first, avals), *failures.none()), unroll=unroll))

    results = staged_call("fori_loop", run, [*moving, *carry.leaves, *captured.tracers], [*avals, *failures.avals])
    failures.raise_first(results)
    return tree.unflatten(carry.spec, results[:count])


def _counter_aval(bounds: tuple[Any, Any]) -> Aval:
    """Return shape and dtype of the counter of the steps between ``bounds``."""
    one, other = map(aval_of, bounds)
    if one.weak != other.weak:
        return other if one.weak else one
    return Aval((), np.promote_types(one.dtype, other.dtype), one.weak)


def _check_integer(call: str, name: str, x: Any, *, plain: bool = True) -> Any:
    """Check that ``x`` is an integer and return it, with ``plain`` as a Python integer."""
    if not is_array(x) or backend.dtype_of(x).kind not in "iu" or backend.shape_of(x):
        raise InputError(f"{call}: {name} must be an integer, got {describe(x)}. Pass one.")
    return operator.index(x) if plain else x


def _check_unroll(call: str, unroll: Any) -> int | bool:
    """Return ``unroll`` as every version of JAX takes it, without 0 for all steps."""
    steps = unroll if type(unroll) is bool else _check_integer(call, "unroll", unroll)
    if steps < 0:
        raise ShapeError(f"{call}: unroll must be True, False or an integer from 0, got {unroll}. Say 1 for none.")
    return steps or steps is not False
