"""A whole run as one operation, for functions that are recorded and run again with other values.

A search under ``vmap``, or an integrand that closes over traced values, is recorded once and evaluated elsewhere. Steps
follow from values, so there the operation begins anew: SciPy steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError
from funcgrad.graph import GraphTrace
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.scipy.integrate.ivp.answers import Answer
from funcgrad.transforms.closures import example_by_example
from funcgrad.transforms.products import jvp, vjp

__all__ = ["is_recorded", "run_anew"]

_CALL = "integrate.solve_ivp"


def is_recorded(x: Any) -> bool:
    """Whether ``x`` is a value of a function that is being recorded."""
    while isinstance(x, Tracer):
        if isinstance(x._trace, GraphTrace):
            return True
        x = x.value
    return False


def run_anew(answer: Callable[..., Answer], leaves: Sequence[Any], count: int) -> tuple[Any, Any]:
    """Times and states, ``t`` and ``y``, as an operation on what they follow from.

    Args:
        answer: makes the answer from these.
        leaves: the first state, both ends, the times that are wanted, and what the functions depend on.
        count: how many times there were when the function was recorded.

    Raises:
        ConcretizationError: for other values there are more or fewer times (a ``TypeError``).
    """

    def outputs(*some: Any) -> tuple[Any, Any]:
        found = answer(*some)
        t, y = found.times(), found.states()
        if backend.shape_of(t)[0] != count:
            raise ConcretizationError(
                f"{_CALL}: a function that was recorded with {count} times was run again with other values, for which "
                f"there are {backend.shape_of(t)[0]}. Pass t_eval, or what it closes over in the args of what calls it."
            )
        return t, y

    def fwd(*some: Any) -> tuple[list[Any], Any]:
        return list(custom_call(*some, rules=rules)), some

    def bwd(some: Any, cts: list[Any]) -> list[Any]:
        return list(vjp(outputs, *some)[1](tuple(cts)))

    def push(some: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        return list(custom_call(*some, rules=rules)), list(jvp(outputs, tuple(some), tuple(tangents))[1])

    def run(*some: Any) -> list[Any]:
        return example_by_example(lambda *plain: list(outputs(*plain)), some)

    rules = CustomRules(_CALL, run, fwd, bwd, push)
    t, y = custom_call(*leaves, rules=rules)
    return t, y
