"""Writes of branches and loops to what they close over, which a ``vmap`` cannot undo for single examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import Tracer, shallow_copy
from funcgrad.errors import InputError
from funcgrad.numpy_code.overwriting import may_change_arrays, numbers_of
from funcgrad.transforms.checkpointing import collect_closures, has_value
from funcgrad.transforms.vectorize import is_true_for_any_example
from funcgrad.writable import identity_key

_NUMBERS = frozenset((bool, int, float, complex))


@contextmanager
def refuse_writes_outside(call: str, fun: Callable[..., Any], others: Any) -> Iterator[None]:
    """Refuse writes of ``fun`` to what it closes over, if ``others`` is true for any example of a ``vmap``.

    ``fun`` runs inside, for all examples. Those for which ``others`` is true do not take this branch or step.

    Raises:
        InputError: a ``TypeError`` about such a write.
    """
    before = _state_outside(fun)
    yield
    if not _state_outside(fun).keys() <= before.keys() and is_true_for_any_example(others):
        raise InputError(
            f"{call}: a function writes to a variable or an array that it closes over, got a vmap whose examples take "
            "different ways. Return the value instead: in the result of a branch, in the carry of a loop."
        )


def _state_outside(fun: Callable[..., Any]) -> dict[Any, Any]:
    """Return the values that ``fun`` closes over, by keys that change with a write: traced ones, arrays and numbers.

    Traced values are copies, which keep the identities of the keys taken, and make the next write copy a buffer's
    memory. The numbers of arrays are compared if the code may change them.
    """
    closures: dict[int, FunctionType] = {}
    collect_closures(fun, closures)
    cells = [cell for inner in closures.values() for cell in inner.__closure__ or () if has_value(cell)]
    compares = any(may_change_arrays(inner.__code__) for inner in closures.values())
    found: dict[Any, Any] = {}
    for cell in cells:
        for place, x in enumerate(_leaves(cell.cell_contents)):
            if type(x) is Tracer:
                found[identity_key(x)] = shallow_copy(x)
            elif type(x) is np.ndarray and compares:
                found[id(x), numbers_of(x)] = x
            elif type(x) in _NUMBERS:
                found[id(cell), place, x] = cell
    return found


def _leaves(x: Any) -> list[Any]:
    try:
        return tree.leaves(x)
    except Exception:  # for example a dictionary whose keys cannot be sorted
        return []
