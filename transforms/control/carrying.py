"""The carry, the operands and their error messages, shared by loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array, own_results, shallow_copy
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.choice import where
from funcgrad.transforms.control.staging import Aval, aval_of
from funcgrad.typing import PyTree
from funcgrad.writable import as_argument, as_results

#: For each kind of dtype, the kinds of Python numbers that fit into it; the kind V is that of bfloat16.
_FITTING_KINDS = {"b": "", "i": "i", "u": "i", "f": "if", "V": "if", "c": "ifc"}
_PYTHON_NUMBERS = frozenset((int, float, complex))
_ARRAYS = (np.ndarray, np.generic, Tracer)
_LEAF = tree.structure(0)


def flatten(value: PyTree) -> tuple[list[Any], tree.PyTreeSpec]:
    """Return leaves and structure of ``value``, with a fast path for an array."""
    return ([value], _LEAF) if isinstance(value, _ARRAYS) else tree.flatten(value)


def unflatten(spec: tree.PyTreeSpec, leaves: Sequence[Any]) -> PyTree:
    """Return the tree of this structure."""
    return leaves[0] if spec is _LEAF else tree.unflatten(spec, leaves)


def checked_leaves(call: str, what: str, value: PyTree) -> tuple[list[Any], tree.PyTreeSpec]:
    """Return leaves and structure of ``value``, after a check that its leaves are arrays or numbers."""
    leaves, spec = flatten(value)
    for number, leaf in enumerate(leaves):
        if not is_array(leaf):
            raise InputError(
                f"{call}: {what}{tree.flatten_with_path(value)[0][number]} is not an array or a number, got "
                f"{describe(leaf)}. Let the function close over it instead."
            )
    return leaves, spec


class Carry:
    """Value that each step of a loop passes to the next; it keeps its structure, shapes and dtypes.

    Args:
        call: the public call, for messages.
        init: the first carry.

    Attributes:
        leaves: the leaves of the current carry.
    """

    def __init__(self, call: str, init: PyTree) -> None:
        self.call, self.init = call, init
        self.leaves, self.spec = checked_leaves(call, "the carry", init)
        self._first = self.leaves
        self.avals = [aval_of(leaf) for leaf in self.leaves]
        self._originals: dict[int, Any] = {}
        self._views: list[Any] = []  # keeps the objects alive, so that their ids stay theirs

    def result(self, xs: PyTree = None) -> PyTree:
        """Return the last carry, owned by the caller of the loop, which passed ``xs`` too; unchanged numbers stay."""
        leaves, self.leaves, self._views, self._originals = self.leaves, [], [], {}
        first = {id(leaf) for leaf in self._first}
        numbers = [id(leaf) in first and not isinstance(leaf, (Tracer, np.ndarray)) for leaf in leaves]
        results = as_results(own_results([shallow_copy(leaf) for leaf in leaves]), (self._first, xs))
        return unflatten(self.spec, [x if same else new for x, new, same in zip(leaves, results, numbers, strict=True)])

    def for_user(self) -> PyTree:
        """Return the carry for the user's function."""
        self._views = shown = [as_argument(leaf) for leaf in self.leaves]
        self._originals = {id(new): leaf for new, leaf in zip(shown, self.leaves, strict=True) if new is not leaf}
        return unflatten(self.spec, shown)

    def original(self, leaves: list[Any]) -> list[Any]:
        """Return ``leaves``, with shown leaves that come back unchanged replaced by their originals."""
        originals = self._originals
        return [originals.get(id(x), x) for x in leaves] if originals else leaves

    def advance(self, new: PyTree) -> None:
        """Make ``new`` the carry.

        Raises:
            InputError: another structure or dtype (a ``TypeError``).
            ShapeError: another shape (a ``ValueError``).
        """
        leaves, spec = flatten(new)
        if spec is not self.spec and spec != self.spec:
            refuse_structure(self.call, self.spec, spec)
        leaves = self.original(leaves)
        for index, leaf in enumerate(leaves):
            shape, dtype, weak = self.avals[index]
            if not isinstance(leaf, _ARRAYS):
                if not backend.is_value(leaf):
                    checked_leaves(self.call, "the carry", new)
                number = type(leaf) in _PYTHON_NUMBERS and not (weak or shape)
                if number and backend.dtype_of(leaf).kind in _FITTING_KINDS[dtype.kind]:
                    leaf = leaves[index] = dtype.type(leaf)
            elif weak and not isinstance(leaf, Tracer):
                dtype = None  # differs from every dtype, so ``carry_avals`` decides which dtype the number takes
            if backend.dtype_of(leaf) != dtype or backend.shape_of(leaf) != shape:
                self.avals = carry_avals(self.call, self.init, self.avals, [aval_of(x) for x in leaves])
                break
        self.leaves = leaves

    def select(self, chosen: Any, old: Sequence[Any]) -> None:
        """Go back to ``old`` where ``chosen`` is false."""
        pairs = zip(self.leaves, old, strict=True)
        self.leaves = [new if new is before else where(chosen, new, before) for new, before in pairs]


def refuse_structure(call: str, want: Any, have: Any) -> None:
    """Raise the error about a step that changed the structure of the carry."""
    raise InputError(
        f"{call}: the carry must keep its structure, got {tree.drawn(have)} after a step from {tree.drawn(want)}, "
        "with * for each array. Return the same containers with the same keys."
    )


def carry_avals(call: str, init: PyTree, avals: Sequence[Aval], outs: Sequence[Aval]) -> list[Aval]:
    """Return the carry's shapes and dtypes after a step from ``avals`` to ``outs``: Python numbers are promoted.

    Raises:
        InputError: another dtype (a ``TypeError``).
        ShapeError: another shape (a ``ValueError``).
    """
    results = []
    for number, (one, out) in enumerate(zip(avals, outs, strict=True)):
        if one.shape != out.shape:
            raise ShapeError(
                f"{call}: the carry{_path(init, number)} must keep its shape, got {out.shape} after a step from "
                f"{one.shape}. Give the first value the shape of the returned one."
            )
        both = promote_avals(one, out)
        if both is None or not all(x.weak or x.dtype == both.dtype for x in (one, out)):
            raise InputError(
                f"{call}: the carry{_path(init, number)} must keep its dtype, got {out.dtype} after a step from "
                f"{one.dtype}. Convert it with .astype({str(one.dtype)!r}), or give the first value this dtype."
            )
        results.append(both)
    return results


def promote_avals(a: Aval, b: Aval) -> Aval | None:
    """Return the shape and dtype common to ``a`` and ``b``, of one shape; None if no weak dtype can be promoted."""
    if a.dtype == b.dtype:
        return a._replace(weak=a.weak and b.weak)
    if a.weak and b.weak:
        return max(a, b, key=lambda one: "ifc".index(one.dtype.kind))
    weak, strong = (a, b) if a.weak else (b, a)
    return strong if weak.weak and weak.dtype.kind in _FITTING_KINDS[strong.dtype.kind] else None


def branch_avals(call: str, found: Sequence[tuple[tree.PyTreeSpec, Sequence[Aval]]]) -> list[Aval]:
    """Return the shapes and dtypes common to the results of all branches.

    Raises:
        InputError: the results differ in structure or dtype (a ``TypeError``).
        ShapeError: the results differ in shape (a ``ValueError``).
    """
    spec, first = found[0]
    results = list(first)
    for number, (other, avals) in enumerate(found[1:], 1):
        if other != spec:
            raise InputError(
                f"{call}: all branches must return the same structure, got {tree.drawn(spec)} from branch 0 "
                f"and {tree.drawn(other)} from branch {number}. Return the same containers with the same keys."
            )
        for index, (one, out) in enumerate(zip(results, avals, strict=True)):
            path = _path(tree.unflatten(spec, range(len(avals))), index)
            if one.shape != out.shape:
                raise ShapeError(
                    f"{call}: all branches must return the same shapes, got {one.shape} from branch 0 and "
                    f"{out.shape} from branch {number} in result{path}. Broadcast them to one shape."
                )
            both = promote_avals(one, out)
            if both is None:
                raise InputError(
                    f"{call}: all branches must return the same dtypes, got {one.dtype} from branch 0 and {out.dtype} "
                    f"from branch {number} in result{path}. Convert one with .astype({str(one.dtype)!r})."
                )
            results[index] = both
    return results


def _path(value: PyTree, number: int) -> str:
    path = tree.flatten_with_path(value)[0][number]
    return f" at {path}" if path else ""
