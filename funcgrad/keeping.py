"""Copies of the program's arrays that pullbacks, and derivatives by ``linearize``, keep.

Records refer to the arrays that the recorded function used, which costs nothing. But a pullback outlives
the call. The program may write to these arrays later, and such a write must not change the derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ReplayError
from funcgrad.graph import Recording
from funcgrad.ownership import Census, note_shared
from funcgrad.replay import Chain
from funcgrad.reverse import Record, all_saved, reachable, replace_saved

ndarray = np.ndarray


def copy_shared_arrays(nodes: list[Record | None]) -> tuple[list[Record | None], ChangeCheck | None]:
    """Replace the arrays in records to which the program can write by copies.

    A checkpointed function, which the backward pass runs again, reads the program's own arrays. Records of such a
    function keep the arrays.

    Returns:
        The records; and, if records keep such arrays, an object that checks whether these arrays changed; else None.
    """
    records, census = reachable(nodes), Census()
    containers, chains = _visit_records(records, census.note)
    copies = census.copies()
    if not copies:
        return nodes, None
    if chains:
        originals: dict[int, ndarray] = {}
        _visit_records(records, lambda x: originals.update({id(x): x}))
        return nodes, ChangeCheck([(originals[key], copy) for key, copy in copies.items()])
    new: dict[int, Any] = dict(copies)
    for x in containers:
        if (changed := _with_copies(copies, x)) is not x:
            new[id(x)] = changed
    return replace_saved(nodes, records, new), None


def copy_shared_constants(recording: Recording) -> None:
    """Replace the arrays in a recording to which the program can write by copies."""
    census = Census()
    _visit_recording(recording, census.note)
    copies = census.copies()
    if copies:
        recording.constants = {slot: _with_copies(copies, x) for slot, x in recording.constants.items()}
        recording.operations = [
            step if (params := _with_copies(copies, step.params)) is step.params else step._replace(params=params)
            for step in recording.operations
        ]


class ChangeCheck:
    """Check whether arrays have changed since they were copied.

    Args:
        pairs: each array with its copy.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple[ndarray, ndarray]]) -> None:
        self._pairs = pairs

    def check(self, call: str) -> None:
        """Check that the program has not written to the arrays; ``call`` is the public call, for the message.

        Raises:
            ReplayError: the program has written to an array.
        """
        for array, copy in self._pairs:
            if array.tobytes() != copy.tobytes():
                raise ReplayError(
                    f"{call}: an array that a checkpointed function reads again was written to after vjp, got other "
                    f"numbers in {array.dtype}{list(array.shape)}. Give vjp a copy of the array, or write to a copy."
                )


def _visit_records(records: dict[int, Record], note: Callable[[ndarray], None]) -> tuple[list[Any], list[Chain]]:
    """Call ``note`` for each reference from records to an array that may be shared.

    Return the saved containers that may hold arrays, and the chains among the saved values.
    """
    seen: set[int] = set()
    containers: list[Any] = []
    chains: dict[int, Chain] = {}
    for x in note_shared(all_saved(records), note, tree.ATOMS):
        if type(x) is Chain:
            chains[id(x)] = x
        elif not _is_atomic(x):
            containers.append(x)
            _visit(x, note, seen)
    for chain in chains.values():
        _visit(chain.states(), note, seen)
    return containers, list(chains.values())


def _visit_recording(recording: Recording, note: Callable[[ndarray], None]) -> None:
    """Call ``note`` for each reference from constants and parameters of a graph to an array that may be shared."""
    seen: set[int] = set()
    for x in note_shared(list(recording.constants.values()), note, tree.ATOMS):
        if not _is_atomic(x):
            _visit(x, note, seen)
    for step in recording.operations:
        for x in step.params.values():
            if not _is_atomic(x):
                _visit(x, note, seen)


def _visit(x: Any, note: Callable[[ndarray], None], seen: set[int]) -> None:
    """Call ``note`` with the arrays in ``x``, except those that a chain keeps."""
    tree.visit_arrays(x, note, seen, Chain)


def _is_atomic(x: Any) -> bool:
    """Whether a quick look shows that ``x`` contains no array."""
    kind = type(x)
    if kind is dict:
        return all(map(_is_atomic, x.values()))
    return kind in tree.ATOMS or (kind is tuple and (tree.ATOMS.issuperset(map(type, x)) or all(map(_is_atomic, x))))


def _with_copies(copies: dict[int, ndarray], x: Any) -> Any:
    """Return ``x`` with copies in place of arrays, or ``x`` itself if it contains none of these arrays."""
    kind = type(x)
    if kind is ndarray:
        return copies.get(id(x), x)
    if kind in tree.ATOMS:
        return x
    if issubclass(kind, (tuple, list)):
        new = [_with_copies(copies, item) for item in x]
        if not any(map(is_not, x, new)):
            return x
        return kind(*new) if hasattr(x, "_fields") else kind(new)
    if kind is dict:
        new = [_with_copies(copies, item) for item in x.values()]
        return dict(zip(x, new, strict=True)) if any(map(is_not, x.values(), new)) else x
    if not tree.is_container(kind):
        return x
    leaves, spec = tree.flatten(x)
    found = [_with_copies(copies, leaf) for leaf in leaves]
    return tree.unflatten(spec, found) if any(map(is_not, leaves, found)) else x
