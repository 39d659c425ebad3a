"""Pullbacks, and derivatives by ``linearize``, keep copies of the program's arrays.

While a function is being recorded, records refer to the arrays that it used, which costs nothing. Such a derivative
outlives the call: the program may write to the arrays then, and it must still be that of what was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ReplayError
from funcgrad.graph import Recording, Ref
from funcgrad.ownership import copies_of_shared
from funcgrad.records import Node, reachable, saved_by, with_saved
from funcgrad.replay import Chain

__all__ = ["Unchanged", "kept_apart", "recording_apart"]

ndarray = np.ndarray


def kept_apart(nodes: list[Node | None]) -> tuple[list[Node | None], Unchanged | None]:
    """The same records with copies of what the program can write to.

    A function that the backward pass runs again reads the program's own arrays then, so where there is one the
    records stay what they are.

    Returns:
        The records, and what knows whether those arrays are still what they were, None where nobody needs to ask.
    """
    records = list(reachable(nodes).values())
    chains = {id(x): x for node in records for x in saved_by(node) if type(x) is Chain}
    copies = copies_of_shared(_visitor(records, list(chains.values())))
    if not copies:
        return nodes, None
    if chains:
        return nodes, Unchanged(copies, _visitor(records, list(chains.values())))
    return with_saved(nodes, lambda x: _replaced(x, copies)), None


def recording_apart(recording: Recording) -> None:
    """Let a recording hold copies of what the program can write to."""
    steps = recording.operations

    def visit(note: Callable[[ndarray], None]) -> None:
        seen: set[int] = set()
        for place in range(len(steps)):
            for x in steps[place].args:
                if type(x) not in _ATOMS:
                    _visit(x, note, seen)
            for x in steps[place].params.values():
                if not _is_atomic(x):
                    _visit(x, note, seen)
            x = None
        _visit(recording.outputs, note, seen)

    copies = copies_of_shared(visit)
    if copies:
        recording.outputs = _replaced(recording.outputs, copies)
        recording.operations = [
            step._replace(args=_replaced(step.args, copies), params=_replaced(step.params, copies)) for step in steps
        ]


class Unchanged:
    """Says whether arrays are still what they were.

    Args:
        copies: copies of them, by the identity of each.
        visit: ``visit(note)`` calls ``note`` with each.
    """

    __slots__ = ("_pairs",)

    def __init__(self, copies: dict[int, ndarray], visit: Callable[[Callable[[ndarray], None]], None]) -> None:
        found: dict[int, ndarray] = {}
        visit(lambda x: found.update({id(x): x}))
        self._pairs = [(found[key], copy) for key, copy in copies.items()]

    def check(self, call: str) -> None:
        """Refuse to go on where one of them was written to.

        Raises:
            ReplayError: it was.
        """
        for array, copy in self._pairs:
            if array.tobytes() != copy.tobytes():
                raise ReplayError(
                    f"{call}: an array that a checkpointed function reads again was written to after vjp, got other "
                    f"numbers in {array.dtype}{list(array.shape)}. Give vjp a copy of the array, or write to a copy."
                )


def _visitor(records: Sequence[Node], chains: Sequence[Chain]) -> Callable[[Callable[[ndarray], None]], None]:
    """What visits each array that records hold, once for each reference."""

    def visit(note: Callable[[ndarray], None]) -> None:
        seen: set[int] = set()
        for node in records:
            for x in saved_by(node):
                _visit(x, note, seen)
            x = None
        for chain in chains:
            _visit(chain.states(), note, seen)

    return visit


def _visit(x: Any, note: Callable[[ndarray], None], seen: set[int]) -> None:
    """Show ``note`` the arrays in ``x``, but none that a chain keeps."""
    tree.visit_arrays(x, note, seen, Chain)


def _is_atomic(x: Any) -> bool:
    """Whether nothing in ``x`` can be an array, as far as that is seen at once."""
    return type(x) in _ATOMS or (type(x) is tuple and _ATOMS.issuperset(map(type, x)))


_ATOMS = tree.ATOMS | {Ref}


def _replaced(x: Any, copies: dict[int, ndarray]) -> Any:
    """``x`` with copies in place of arrays; itself where it holds none of these."""
    kind = type(x)
    if kind is ndarray:
        return copies.get(id(x), x)
    if kind in _ATOMS:
        return x
    if isinstance(x, (tuple, list)):
        new = [_replaced(item, copies) for item in x]
        if all(a is b for a, b in zip(x, new, strict=True)):
            return x
        return kind(*new) if hasattr(x, "_fields") else kind(new)
    if kind is dict:
        renewed = {key: _replaced(item, copies) for key, item in x.items()}
        return renewed if any(renewed[key] is not item for key, item in x.items()) else x
    if not tree.is_container(kind):
        return x
    leaves, spec = tree.flatten(x)
    found = [_replaced(leaf, copies) for leaf in leaves]
    return tree.unflatten(spec, found) if any(a is not b for a, b in zip(leaves, found, strict=True)) else x
