"""Conversion of bounds, scales and constraints of trees to SciPy's, which are for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from funcgrad import tree
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.interop.scipy.objectives import Layout, Slot, VectorFunction, require_concrete
from funcgrad.typing import PyTree

__all__ = ["to_bounds", "to_constraints", "as_list", "to_x_scale"]

#: Lower and upper limits for the two types of constraints in dictionaries.
_LIMITS = {"eq": (0.0, 0.0), "ineq": (0.0, np.inf)}


def to_bounds(call: str, optimize: Any, layout: Layout, bounds: Any) -> Any:
    """Return bounds as SciPy's ``Bounds`` of vectors.

    Raises:
        InputError: the structure differs from the parameters', or a leaf's bounds are not a pair (a ``TypeError``).
        NotDifferentiableError: a bound is traced (a ``TypeError``).
        ShapeError: bounds do not broadcast to their leaf (a ``ValueError``).
    """
    if bounds is None:
        return None
    bounds = require_concrete(call, "bounds", bounds)
    keep: Any = False
    if isinstance(bounds, optimize.Bounds):
        sides, keep = [_side(call, layout, side) for side in (bounds.lb, bounds.ub)], np.ravel(bounds.keep_feasible)
    elif _is_pair(bounds) and all(_is_number(side) for side in bounds):
        sides = [np.full(layout.size, _bound_or_infinite(side, i)) for i, side in enumerate(bounds)]
    elif layout.single and call == "least_squares" and _is_pair(bounds):
        sides = [_for_each_number(call, layout, 0, _bound_or_infinite(side, i)) for i, side in enumerate(bounds)]
    elif layout.single:
        sides = _rows(call, layout, bounds)
    else:
        pairs = list(enumerate(_pairs(call, layout, bounds)))
        sides = [
            np.concatenate([_for_each_number(call, layout, n, _bound_or_infinite(p[i], i)) for n, p in pairs])
            for i in (0, 1)
        ]
    free = np.isinf(sides[0]) & np.isinf(sides[1])
    if any(slot.dtype.kind == "c" and not free[slot.start : slot.stop].all() for slot in layout.slots):
        raise InputError(f"{call}: complex numbers have no order, got bounds for them. Split them into two arrays.")
    return optimize.Bounds(*sides, keep_feasible=keep)


def _is_pair(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and len(x) == 2


def _is_number(x: Any) -> bool:
    return x is None or issubclass(type(x), (int, float, np.integer, np.floating))


def _bound_or_infinite(side: Any, which: int) -> Any:
    """Return a lower (0) or an upper (1) bound, which is infinite if ``side`` is None."""
    return (-np.inf, np.inf)[which] if side is None else side


def _side(call: str, layout: Layout, side: Any) -> Any:
    """Return one side of SciPy's ``Bounds`` for all numbers; a single array may have a side of its shape."""
    array = np.asarray(side, float)
    if array.size == 1:
        return np.full(layout.size, array.item())
    if array.shape == (layout.size,):
        return array
    if layout.single:
        return _for_each_number(call, layout, 0, array)
    raise ShapeError(
        f"{call}: a Bounds has a number for each of params, got {array.shape} for {layout.size}. Give a tree of pairs "
        "to bound leaf by leaf."
    )


def _rows(call: str, layout: Layout, bounds: Any) -> list[Any]:
    """Return the sides of SciPy's sequence of pairs, one pair for each number of a single array."""
    pairs = list(bounds) if isinstance(bounds, (Sequence, np.ndarray)) else []
    if len(pairs) != layout.size or not all(np.shape(_with_infinities(p)) == (2,) for p in pairs):
        raise ShapeError(
            f"{call}: bounds of one array are a pair (lower, upper) for each of its numbers, or one pair for "
            f"all, got {describe(bounds)} for {layout.size} numbers. Give a scipy.optimize.Bounds(lower, upper) for "
            "two arrays."
        )
    return [np.array([_with_infinities(pair)[i] for pair in pairs], float) for i in (0, 1)]


def _with_infinities(pair: Any) -> Any:
    return [_bound_or_infinite(side, i) for i, side in enumerate(pair)] if _is_pair(pair) or np.ndim(pair) else pair


def _pairs(call: str, layout: Layout, bounds: Any) -> list[Any]:
    entries: list[Any] = []
    try:
        entries += layout.spec.flatten_up_to(bounds)
    except ValueError:
        _raise_no_pairs(call, layout, describe(bounds))
    for path, pair in zip(layout.paths, entries, strict=True):
        if pair is not None and not _is_pair(pair):
            _raise_no_pairs(call, layout, f"{describe(pair)} for {path}")
    return [(None, None) if pair is None else pair for pair in entries]


def _raise_no_pairs(call: str, layout: Layout, got: str) -> NoReturn:
    raise InputError(
        f"{call}: bounds must be a tree like params with a pair (lower, upper) or None for each leaf, got {got}. "
        f"The leaves are {', '.join(layout.paths[:5])}{', ...' if len(layout.paths) > 5 else ''}."
    ) from None


def _for_each_number(call: str, layout: Layout, number: int, value: Any) -> Any:
    """Return a value for each number of a leaf."""
    slot: Slot = layout.slots[number]
    try:
        whole = np.ravel(np.broadcast_to(np.asarray(value, float), slot.shape))
    except ValueError:
        raise ShapeError(
            f"{call}: what is given for {layout.paths[number]} must broadcast to its shape {slot.shape}, got "
            f"{describe(value)}. Give one number, or an array of that shape."
        ) from None
    return np.tile(whole, 2) if slot.dtype.kind == "c" else whole


def to_x_scale(call: str, layout: Layout, scale: PyTree) -> Any:
    """Return a scale for each number; leave SciPy's keywords and vectors as they are.

    Raises:
        InputError: the structure differs from the parameters' (a ``TypeError``).
        ShapeError: a scale does not broadcast to its leaf (a ``ValueError``).
    """
    if isinstance(scale, str) or _is_number(scale) or (type(scale) is np.ndarray and scale.shape == (layout.size,)):
        return scale
    try:
        entries = tree.broadcast_prefix(scale, tree.unflatten(layout.spec, layout.paths))
    except ValueError:
        raise InputError(
            f"{call}: x_scale must be a tree like params, one number, or 'jac', got {describe(scale)}. Give a number "
            "or an array for each leaf."
        ) from None
    return np.concatenate([_for_each_number(call, layout, n, entry) for n, entry in enumerate(entries)])


def as_list(constraints: Any) -> list[Any]:
    """Return constraints as a list; a single constraint makes a list of one."""
    return list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]


def to_constraints(optimize: Any, constraints: Any, layout: Layout, params: PyTree, *, second: bool) -> list[Any]:
    """Return SciPy's constraints as functions of vectors in place of functions of trees, with derivatives.

    Args:
        optimize: SciPy's module ``scipy.optimize``.
        constraints: the caller's constraints, one or several.
        layout: positions of the leaves in the vector.
        params: the tree of parameters.
        second: whether the method uses second derivatives of constraints.

    Raises:
        InputError: the caller passed derivatives of constraints (a ``TypeError``).
    """
    found = []
    for one in as_list(constraints):
        if isinstance(one, dict) and callable(one.get("fun")):
            made = _constraint_function(one["fun"], layout, one.get("args", ()), params, one.get("jac"))
            kind = one.get("type")
            if second and kind in _LIMITS:
                one = optimize.NonlinearConstraint(made, *_LIMITS[kind], jac=made.jacobian, hess=made.curvature)
            else:
                one = {"type": kind, "fun": made, "jac": made.jacobian}
        elif isinstance(one, optimize.NonlinearConstraint):
            made = _constraint_function(one.fun, layout, (), params, *[d for d in (one.jac, one.hess) if callable(d)])
            given = {"hess": made.curvature} if second else {}
            one = optimize.NonlinearConstraint(
                made, one.lb, one.ub, jac=made.jacobian, keep_feasible=one.keep_feasible, **given
            )
        found.append(one)
    return found


def _constraint_function(
    fun: Any, layout: Layout, args: tuple[Any, ...], params: PyTree, *derivatives: Any
) -> VectorFunction:
    """Return the function of a constraint as ``VectorFunction``; refuse derivatives from the caller."""
    for derivative in derivatives:
        if derivative is not None:
            raise InputError(
                f"minimize: the derivatives of constraints are made from their functions, got {describe(derivative)}. "
                "Leave jac and hess out."
            )
    return VectorFunction("minimize", fun, layout, args, params)
