"""Branches: ``cond`` and ``switch``. Plain Python on values, ``jax.lax`` on values not known yet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe, is_array
from funcgrad.errors import InputError, ShapeError
from funcgrad.optional import loaded_jax
from funcgrad.transforms.control.carrying import branch_avals, checked_leaves
from funcgrad.transforms.control.failing import Failures
from funcgrad.transforms.control.outside import refuse_writes_outside
from funcgrad.transforms.control.selecting import call_where_needed
from funcgrad.transforms.control.staging import (
    Captured,
    Shapes,
    as_jax_aval,
    aval_of,
    is_abstract,
    is_batched_anywhere,
    staged_call,
)
from funcgrad.transforms.transformed import check_functions

_NONE: Final[Any] = object()


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = _NONE
) -> Any:
    """Return ``true_fun(*operands)`` if ``pred``, else ``false_fun(*operands)``.

    On values ``cond`` is plain Python: the other function is not called. Inside ``vmap``, if ``pred`` differs between
    the examples, both are called and the derivative is that of the chosen result: in the other function all values
    are constants, so that an infinite derivative there does no harm. If ``pred`` is not known, under ``jax.jit``,
    ``jax.lax.cond`` runs.

    Args:
        pred: one truth value, or a number, which is true unless it is zero.
        true_fun: a function of the operands. Both functions must return the same structure, shapes and
            dtypes; that is checked if both are run.
        false_fun: another function of the operands.
        operands: any pytrees.
        operand: the only operand, passed by name.

    Raises:
        TypeError: not a function, not a truth value, results of other structure or dtype.
        ValueError: results of other shapes.

    Example:
        >>> from funcgrad import cond, grad, vmap
        >>> def f(x):
        ...     return cond(x > 0, fnp.exp, lambda x: x * x, x)
        >>> grad(f)(-3.0)
        np.float64(-6.0)
        >>> vmap(grad(f))(np.array([0.0, -1.0]))
        array([ 0., -2.])
    """
    check_functions("cond", true_fun=true_fun, false_fun=false_fun)
    if not is_array(pred) or backend.shape_of(pred):
        raise InputError(
            f"cond: pred must be one truth value, got {describe(pred)}. Reduce it with all or any, or choose entry by "
            "entry with funcgrad.numpy.where."
        )
    operands = _operands("cond", operands, operand)
    if not (later := is_abstract([pred])) and not is_batched_anywhere(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    truth = pred if backend.dtype_of(pred).kind == "b" else fnp.not_equal(pred, 0)
    branches = [false_fun, true_fun]
    if not later:
        return _select_results("cond", truth, branches, operands)
    return _staged("cond", truth, branches, operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NONE) -> Any:
    """Return ``branches[index](*operands)``; an ``index`` beyond the ends selects the first or the last branch.

    The branches run like those of ``cond``.

    Args:
        index: an integer.
        branches: functions of the operands, which return the same structure, shapes and dtypes.
        operands: any pytrees.
        operand: the only operand, passed by name.

    Raises:
        TypeError: not functions, not an integer, results of other structure or dtype.
        ValueError: an empty list of branches, results of other shapes.

    Example:
        >>> from funcgrad import grad, switch
        >>> grad(lambda x: switch(1, [fnp.sin, lambda x: x**3, fnp.exp], x))(2.0)
        np.float64(12.0)
    """
    if callable(branches):
        raise InputError(
            f"switch: branches must be a list of functions, got {describe(branches)}. Write switch(index, [f, g], x)."
        )
    branches = list(branches)
    if not branches:
        raise ShapeError("switch: there must be a branch, got none. Pass a list of functions.")
    check_functions("switch", **{f"branches[{i}]": branch for i, branch in enumerate(branches)})
    if not is_array(index) or backend.dtype_of(index).kind not in "iu" or backend.shape_of(index):
        raise InputError(f"switch: index must be one integer, got {describe(index)}. Convert it with .astype(int).")
    operands = _operands("switch", operands, operand)
    if len(branches) == 1:
        return branches[0](*operands)
    if is_abstract([index]):
        return _staged("switch", index, branches, operands)
    if is_batched_anywhere(index):
        return _select_results("switch", index, branches, operands)
    return branches[min(max(operator.index(index), 0), len(branches) - 1)](*operands)


def _operands(call: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NONE:
        return operands
    if operands:
        raise InputError(f"{call}: operands come by position or as operand, got both. Pass all by position.")
    return (operand,)


def _select_results(call: str, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """Run all branches, and return for each example the result of its branch ``index``."""
    found, count = [], len(branches)
    for number, branch in enumerate(branches):
        others = _is_other_branch(call, index, number, count)
        with refuse_writes_outside(call, branch, others):
            result = call_where_needed(branch, operands, others, [index, operands])
        found.append(checked_leaves(call, "the result", result))
    branch_avals(call, [(spec, [aval_of(leaf) for leaf in leaves]) for leaves, spec in found])
    results, spec = found[0]
    for number, (leaves, _) in enumerate(found[1:], 1):
        chosen = index if call == "cond" else fnp.greater_equal(index, number)
        pairs = zip(leaves, results, strict=True)
        results = [new if new is old else fnp.where(chosen, new, old) for new, old in pairs]
    return tree.unflatten(spec, results)


def _is_other_branch(call: str, index: Any, number: int, count: int) -> Any:
    """Return for each example whether ``index`` selects another branch than ``number``."""
    if call == "cond":
        return ~index if number else index
    if number == 0:
        return fnp.greater(index, 0)
    return (fnp.less if number == count - 1 else fnp.not_equal)(index, number)


def _of_others(
    call: str,
    index: Any,
    branches: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    found: Sequence[Shapes | Exception],
) -> Any:
    """Return the result of branch ``index``, if some branches always raise an error, those that ``found`` holds."""
    taken = index if call == "cond" else fnp.clip(index, 0, len(branches) - 1)
    others = [branch for branch, shapes in zip(branches, found, strict=True) if not isinstance(shapes, Exception)]
    raising = [number for number, shapes in enumerate(found) if isinstance(shapes, Exception)]
    for number in raising if others else raising[:-1]:
        if fnp.equal(taken, number):
            return branches[number](*operands)
    if len(others) <= 1:
        return (others[0] if others else branches[-1])(*operands)
    pairs = zip(branches, found, strict=True)
    return _staged(call, index, [others[0] if isinstance(shapes, Exception) else b for b, shapes in pairs], operands)


def _staged(call: str, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """Return the result of branch ``index``, by ``jax.lax``."""
    leaves, spec = checked_leaves(call, "the operand", operands)
    captured = Captured(call, [index, *leaves])

    def flat(branch: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: branch(*tree.unflatten(spec, xs))

    functions = [flat(branch) for branch in branches]
    examples = [as_jax_aval(aval_of(leaf)) for leaf in leaves]
    shapes_or_errors = [captured.shapes_or_error(function, examples) for function in functions]
    found = [shapes for shapes in shapes_or_errors if not isinstance(shapes, Exception)]
    if len(found) < len(functions):
        return _of_others(call, index, branches, operands, shapes_or_errors)
    avals = branch_avals(call, [(shapes.spec, shapes.avals) for shapes in found])
    failures = Failures(*[shapes.checks for shapes in found])

    def run(index: Any, *args: Any) -> tuple[Any, ...]:
        xs, held = args[: len(leaves)], args[len(leaves) :]

        def branch(number: int, *xs: Any) -> tuple[Any, ...]:
            results = captured.run(functions[number], xs, held, avals)
            failed = [results[len(avals) :] if i == number else () for i in range(len(functions))]
            return (*results[: len(avals)], *failures.joined(*failed))

        runs = [partial(branch, number) for number in range(len(functions))]
        lax = loaded_jax().lax
        return tuple(lax.cond(index, runs[1], runs[0], *xs) if call == "cond" else lax.switch(index, runs, *xs))

    results = staged_call(call, run, [index, *leaves, *captured.tracers], [*avals, *failures.avals])
    failures.raise_first(results)
    return tree.unflatten(found[0].spec, results[: len(avals)])
