"""The rules of elementwise operations: what an argument's partial derivative makes of a (co)tangent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, blocks
from funcgrad.blocks import here
from funcgrad.graph import GraphTracer, stands_for_array
from funcgrad.kinds.linear import astype, broadcast_to, conform
from funcgrad.kinds.rules import NAMES, check_names, positional_names, pull_of
from funcgrad.reverse import backward
from funcgrad.typing import Shape

__all__ = ["Contribution", "Partial", "PartialRule", "met", "pull_both", "scaled", "spread"]

#: A partial derivative: a function of what it names among x, y, z, ans; one of these names where it is that value;
#: a number where it is constant; a function whose first name is ``t`` where it acts on the (co)tangent itself; None
#: where there is none.
Partial: TypeAlias = Callable[..., Any] | str | int | float | None
Contribution: TypeAlias = Callable[[Any, Any], Any]

ndarray = np.ndarray
float64 = np.float64
_DOUBLE = np.dtype(float64)


class PartialRule:
    """One argument's partial derivative, ready to be applied to a (co)tangent and a node.

    Attributes:
        contribution: ``contribution(t, node)`` gives the product, in both modes.
        pull: the same for the backward pass alone, which writes over a large cotangent that nobody else holds.
        last: likewise where it is called for the second of two arguments.
        differentiable: whether there is a derivative.
        constant: whether the partial is a number.
        identity: whether it is 1.
        needs: the slots of a record that it reads.
    """

    __slots__ = ("constant", "contribution", "differentiable", "identity", "last", "needs", "pull")

    def __init__(self, name: str, partial: Partial, arity: int) -> None:
        slots = {**{n: 4 + i for i, n in enumerate(NAMES[:arity])}, "ans": 4 + arity}
        self.differentiable = partial is not None
        self.constant = isinstance(partial, (int, float))
        self.identity = self.constant and partial == 1
        contribution, names = _contribution(name, partial, slots)
        self.contribution = self.pull = self.last = pull_of(name, contribution)
        if isinstance(partial, str):
            self.pull = pull_of(name, _times(slots[partial], _ALONE_IN_PULL))
            self.last = pull_of(name, _times(slots[partial], _ALONE_IN_LAST))
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
        return _times(*[slots[n] for n in check_names(name, (partial,), slots)]), (partial,)
    if not callable(partial):
        if partial == 1:
            return lambda ct, node: ct, ()
        return (lambda ct, node: -ct) if partial == -1 else (lambda ct, node: ct * partial), ()
    names = positional_names(partial)
    acts = names[:1] == ("t",)
    names = tuple(check_names(name, names[1:] if acts else names, slots))
    where = [slots[n] for n in names]
    if not acts:
        return _of_values(partial, where, slots["ans"]), names
    if len(where) == 1:
        (i,) = where
        return lambda ct, node: partial(ct, node[i]), names
    if len(where) == 2:
        i, j = where
        return lambda ct, node: partial(ct, node[i], node[j]), names
    return lambda ct, node: partial(ct, *[node[i] for i in where]), names


def _of_values(partial: Callable[..., Any], where: Sequence[int], last: int) -> Contribution:
    """The contribution of a partial derivative that is a function of values: those in the slots ``where``.

    It is given them as they met, see ``met``. The result is in the slot ``last``.
    """
    if last == 5:  # of one argument, which is what is differentiated
        if len(where) == 1:
            return _product(partial, where[0])
        return lambda ct, node: scaled(ct, partial(*[node[i] for i in where]))

    def contribution(ct: Any, node: Any) -> Any:
        ans = node[last]
        dtype = backend.dtype_of(ct if ans is None else ans)  # a cotangent has the dtype of the result
        values = [node[i] for i in where]
        return scaled(ct, partial(*[v if type(v) is ndarray and v.dtype is dtype else met(v, dtype) for v in values]))

    return contribution


def met(v: Any, dtype: np.dtype[Any]) -> Any:
    """``v`` as it meets the other arguments of an operation whose result has this dtype.

    By itself NumPy takes the logarithm of a small integer in half precision, and what is below 0 is large if unsigned.
    A Python number stays one where that is no difference: NumPy's functions make doubles of it.
    """
    kind = type(v)
    if kind is float or kind is int or kind is bool:
        return v if dtype is _DOUBLE and kind is not bool else _real(dtype).type(v)
    have: np.dtype[Any] = backend.dtype_of(v)
    if have is dtype or have.kind in "cV":
        return v
    to = _real(dtype)
    return astype(v, to=to) if have.kind in "biu" or (have.kind == to.kind and have.itemsize < to.itemsize) else v


@lru_cache(maxsize=64)
def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a number of ``dtype``."""
    found: np.dtype[Any] = np.empty(0, dtype).real.dtype
    return found


def _product(partial: Callable[[Any], Any], slot: int) -> Contribution:
    """``scaled`` by what ``partial`` makes of the value in ``slot``; of small arrays and numbers without the detour."""
    primitive = getattr(partial, "primitive", None)
    theirs: Any = primitive.kernel(np) if primitive is not None and primitive.impl is None else None  # NumPy's function

    def product(ct: Any, node: Any) -> Any:
        v = node[slot]
        plain = theirs is not None and type(v) is type(ct) and not (blocks.runners and here())
        if type(ct) is ndarray and ct.size < _LARGE:
            return (theirs if plain else partial)(v) * ct
        if plain and type(ct) is float64:
            return theirs(v) * ct
        return scaled(ct, partial(v))

    return product


def _times(slot: int, alone: int = -1) -> Contribution:
    """The product with what stands in ``slot``, which overwrites a large ndarray of so many references."""

    def times(ct: Any, node: Any) -> Any:
        kept = node[slot]
        if type(ct) is ndarray:
            if ct.size >= _LARGE and _references(ct) == alone and _can_take(ct, kept):
                return np.multiply(kept, ct, out=ct)
            return kept * ct
        if type(ct) is float64 and (type(kept) is float64 or type(kept) is float):
            return kept * ct
        return scaled(ct, kept)

    return times


def _can_take(ct: ndarray, factor: Any) -> bool:
    """Whether ``ct`` has memory of its own that can take its product with ``factor``."""
    if type(factor) is ndarray:
        fits = factor.dtype is ct.dtype and (factor.shape == ct.shape or not factor.shape)
    else:
        fits = type(factor) is float and ct.dtype.kind == "f"
    return fits and ct.base is None and ct.flags.writeable


def pull_both(name: str, rules: Sequence[PartialRule]) -> Contribution:
    """The cotangents of two arguments that need not be conformed."""
    first, last = rules[0].contribution, rules[1].last
    return pull_of(name, (lambda ct, node: (ct, ct)) if rules[0].identity and rules[1].identity else _both(first, last))


def _both(first: Contribution, last: Contribution) -> Contribution:
    def pull(ct: Any, node: Any) -> Any:
        return first(ct, node), last(ct, node)

    return pull


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
            and (partial.shape == ct.shape or np.broadcast(partial, ct).shape == partial.shape)
        ):
            return np.multiply(partial, ct, out=partial)
        return partial * ct
    if type(ct) is GraphTracer and stands_for_array(ct) and ct.dtype.kind == "c":
        return partial * ct  # products of complex numbers round otherwise the other way round
    # a float64 left of a tracer, or of a Python complex number, which would take it for a float
    return partial * ct if type(ct) is float64 and type(partial) is not complex else ct * partial


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _references_alone(ct: Any, partial: Any) -> int:
    """What ``_references`` says in ``scaled`` of a value that was made for this call only."""
    return _references(partial)


def _references_in(join: Callable[[Contribution], tuple[Any, ...]]) -> int:
    """What ``_references`` says, in a pull of the backward pass, of a cotangent that only the pass holds.

    ``join(pull)`` are the pull of a record and its parents, of which ``pull`` is called last.
    """
    found: list[int] = []
    backward([((-1, *join(lambda ct, node: found.append(_references(ct)))), np.empty(1))], 1)
    return found[0]


_LARGE = 10_000
#: Without the interpreter's lock the counts of other threads are not seen, so nothing counts as alone.
_COUNTED = getattr(sys, "_is_gil_enabled", lambda: True)()
_LEAF = (0, None)
_ALONE = _references_alone(None, np.empty(1)) if _COUNTED else -1
_ALONE_IN_PULL = _references_in(lambda pull: (pull, _LEAF, None)) if _COUNTED else -1
_ALONE_IN_LAST = _references_in(lambda pull: (_both(lambda *_: None, pull), _LEAF, _LEAF)) if _COUNTED else -1


def spread(tangent: Any, ans: Any) -> Any:
    """``tangent`` in the shape and dtype of the result it belongs to."""
    shape, dtype = backend.shape_of(ans), backend.dtype_of(ans)
    if backend.dtype_of(tangent) != dtype:
        tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)
