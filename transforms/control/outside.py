"""Writes of branches and loops to what they close over, which a ``vmap`` cannot undo for single examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from funcgrad import tree
from funcgrad.core import Tracer, shallow_copy
from funcgrad.errors import InputError
from funcgrad.transforms.checkpointing import collect_closures, has_value
from funcgrad.transforms.vectorize import is_true_for_any_example
from funcgrad.writable import identity_key


@contextmanager
def refuse_writes_outside(call: str, fun: Callable[..., Any], others: Any) -> Iterator[None]:
    """Refuse writes of traced values to what ``fun`` closes over, if ``others`` is true for any example of a ``vmap``.

    ``fun`` runs inside, for all examples. Those for which ``others`` is true do not take this branch or step.

    Raises:
        InputError: a ``TypeError`` about such a write.
    """
    before = _traced_outside(fun)
    yield
    if not _traced_outside(fun).keys() <= before.keys() and is_true_for_any_example(others):
        raise InputError(
            f"{call}: a function writes to a variable or an array that it closes over, got a vmap whose examples take "
            "different ways. Return the value instead: in the result of a branch, in the carry of a loop."
        )


def _traced_outside(fun: Callable[..., Any]) -> dict[Any, Any]:
    """Return the traced values, and buffers, that ``fun`` closes over, by keys that change with a write.

    The values are copies, which keep the identities of the keys taken, and make the next write copy a buffer's memory.
    """
    closures: dict[int, FunctionType] = {}
    collect_closures(fun, closures)
    cells = [cell for inner in closures.values() for cell in inner.__closure__ or () if has_value(cell)]
    found = [x for cell in cells for x in _leaves(cell.cell_contents) if type(x) is Tracer]
    copies = [shallow_copy(x) for x in found]
    return {identity_key(x): copy for x, copy in zip(found, copies, strict=True)}


def _leaves(x: Any) -> list[Any]:
    try:
        return tree.leaves(x)
    except Exception:  # for example a dictionary whose keys cannot be sorted
        return []
