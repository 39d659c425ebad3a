"""The rules of elementwise operations: what an argument's partial derivative makes of a (co)tangent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import broadcast_to, conform
from funcgrad.kinds.rules import NAMES, check_names, positional_names, pull_of
from funcgrad.typing import Shape

__all__ = ["Contribution", "Partial", "PartialRule", "scaled", "spread"]

#: A partial derivative: a function of what it names among x, y, z, ans; one of these names where it is that value;
#: a number where it is constant; a function whose first name is ``t`` where it acts on the (co)tangent itself; None
#: where there is none.
Partial: TypeAlias = Callable[..., Any] | str | int | float | None
Contribution: TypeAlias = Callable[[Any, Any], Any]

ndarray = np.ndarray
float64 = np.float64


class PartialRule:
    """One argument's partial derivative, ready to be applied to a (co)tangent and a node."""

    __slots__ = ("constant", "contribution", "differentiable", "identity", "needs")

    def __init__(self, name: str, partial: Partial, arity: int) -> None:
        slots = {**{n: 4 + i for i, n in enumerate(NAMES[:arity])}, "ans": 4 + arity}
        self.differentiable = partial is not None
        self.constant = isinstance(partial, (int, float))
        self.identity = self.constant and partial == 1
        contribution, names = _contribution(name, partial, slots)
        self.contribution = pull_of(name, contribution)
        self.needs = frozenset(slots[n] for n in names)

    def conformed(self, ct: Any, node: Any, shape: Shape | None, dtype: Any) -> Any:
        """The contribution in the shape and dtype of the argument; what is summed is multiplied after that."""
        if self.identity:
            return conform(ct, shape, dtype)
        if self.constant:
            return conform(self.contribution(conform(ct, shape, dtype), node), None, dtype)
        return conform(self.contribution(ct, node), shape, dtype)


def _contribution(name: str, partial: Partial, slots: dict[str, int]) -> tuple[Contribution, Sequence[str]]:
    """``contribution(ct, node)`` and the names of what it reads from the node."""
    if partial is None:
        return lambda ct, node: None, ()
    if isinstance(partial, str):
        (i,) = [slots[n] for n in check_names(name, (partial,), slots)]

        def times(ct: Any, node: Any) -> Any:
            kept = node[i]
            return kept * ct if type(ct) is ndarray or type(ct) is type(kept) is float64 else scaled(ct, kept)

        return times, (partial,)
    if not callable(partial):
        if partial == 1:
            return lambda ct, node: ct, ()
        return (lambda ct, node: -ct) if partial == -1 else (lambda ct, node: ct * partial), ()
    names = positional_names(partial)
    acts = names[:1] == ("t",)
    names = tuple(check_names(name, names[1:] if acts else names, slots))
    where = [slots[n] for n in names]
    if len(where) == 1:
        (i,) = where
        if acts:
            return lambda ct, node: partial(ct, node[i]), names
        return lambda ct, node: scaled(ct, partial(node[i])), names
    if len(where) == 2:
        i, j = where
        if acts:
            return lambda ct, node: partial(ct, node[i], node[j]), names
        return lambda ct, node: scaled(ct, partial(node[i], node[j])), names
    if acts:
        return lambda ct, node: partial(ct, *[node[i] for i in where]), names
    return lambda ct, node: scaled(ct, partial(*[node[i] for i in where])), names


def scaled(ct: Any, partial: Any) -> Any:
    """``ct * partial``, with a tracer on the left where there is one: NumPy's operators reach it slowly.

    A large partial that nobody else holds is overwritten: new memory costs more than the product.
    """
    if type(ct) is ndarray:
        if (
            type(partial) is ndarray
            and partial.size >= _LARGE
            and _references(partial) == _ALONE
            and partial.base is None
            and partial.dtype is ct.dtype
            and partial.shape == ct.shape
        ):
            return np.multiply(partial, ct, out=partial)
        return partial * ct
    # a float64 left of a tracer, or of a Python complex number, which would take it for a float
    return partial * ct if type(ct) is float64 and type(partial) is not complex else ct * partial


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _references_alone(ct: Any, partial: Any) -> int:
    """What ``_references`` says in ``scaled`` of a value that was made for this call only."""
    return _references(partial)


_LARGE = 10_000
#: Without the interpreter's lock the counts of other threads are not seen, so nothing counts as alone.
_ALONE = _references_alone(None, np.empty(1)) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1


def spread(tangent: Any, ans: Any) -> Any:
    """``tangent`` in the shape and dtype of the result it belongs to."""
    shape, dtype = backend.shape_of(ans), backend.dtype_of(ans)
    if backend.dtype_of(tangent) != dtype:
        tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)
