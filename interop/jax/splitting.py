"""A computation cut in two: what is known before the cotangents are, and what needs them.

A function that computes results and their pullback in one run is traced once. The operations that depend
on no cotangent are the forward half; the others are the backward half, and what crosses the cut are the
residuals, which stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

__all__ = ["Backward", "halves", "mark"]

#: Operations that cost less to repeat in the backward half than their results cost to keep.
_LAYOUT = frozenset(
    (
        "broadcast_in_dim",
        "convert_element_type",
        "copy",
        "expand_dims",
        "iota",
        "reshape",
        "rev",
        "squeeze",
        "transpose",
    )
)
#: Of these the same is true where they have one argument only, besides numbers: it is as large as their result.
_ARITHMETIC = frozenset(("add", "integer_pow", "mul", "neg", "square", "sub"))


class Backward:
    """The backward half of a computation.

    Args:
        asarray: JAX's.
        eqns: its operations.
        constants: values that are known for good.
        places: the variables that the residuals are.
        markers: the variables that the cotangents of the results are.
        cts: what it computes.
    """

    def __init__(
        self,
        asarray: Any,
        eqns: list[Any],
        constants: dict[Any, Any],
        places: list[Any],
        markers: list[Any],
        cts: list[Any],
    ) -> None:
        self.asarray = asarray
        self.eqns, self.constants = eqns, constants
        self.places, self.markers, self.cts = places, markers, cts

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the leaves, from residuals and the cotangents of the results."""
        values = {**self.constants, **dict(zip([*self.places, *self.markers], [*residuals, *cts], strict=True))}
        _evaluate(self.eqns, values)
        return [self.asarray(_read(values, v)) for v in self.cts]


def halves(
    jax: Any, fun: Callable[..., tuple[list[Any], list[Any], list[Any]]], leaves: Sequence[Any]
) -> tuple[list[Any], list[Any], Backward]:
    """The results of ``fun``, the residuals, and the backward half.

    Args:
        jax: the module, while it traces.
        fun: ``fun(*leaves) -> (results, markers, cts)``, lists of values of JAX. A marker stands for the
            cotangent of a result, and comes straight out of ``mark``.
        leaves: values of JAX.
    """
    counts: list[int] = []

    def traced(*xs: Any) -> list[Any]:
        parts = fun(*xs)
        counts[:] = [len(part) for part in parts]
        return [x for part in parts for x in part]

    closed = jax.make_jaxpr(traced)(*leaves)
    jaxpr = closed.jaxpr
    ends = counts[0], counts[0] + counts[1]
    markers, cts = jaxpr.outvars[ends[0] : ends[1]], jaxpr.outvars[ends[1] :]
    first, second, needed = _cut(jaxpr.eqns, markers, cts)
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values = {**consts, **dict(zip(jaxpr.invars, leaves, strict=True))}
    _evaluate(first, values)
    # What JAX is tracing further out is a residual like others; other constants stay with the backward half.
    constants = {v: c for v, c in consts.items() if not isinstance(c, jax.core.Tracer)}
    places = [v for v in needed if v not in constants]
    asarray = jax.numpy.asarray  # of literals, which are numbers
    results = [asarray(_read(values, v)) for v in jaxpr.outvars[: ends[0]]]
    return results, [values[v] for v in places], Backward(asarray, second, constants, places, markers, cts)


def _cut(eqns: Sequence[Any], markers: list[Any], cts: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """The operations of the forward half and of the backward half, and the variables that cross the cut."""
    late = set(markers)
    first: list[Any] = []
    second: list[Any] = []
    for eqn in eqns:
        if any(v in late for v in eqn.outvars):
            continue  # what makes a marker
        if any(_is_var(v) and v in late for v in eqn.invars):
            late.update(eqn.outvars)
            second.append(eqn)
        else:
            first.append(eqn)
    needed = dict.fromkeys(v for v in cts if _is_var(v))
    kept: list[Any] = []
    for eqn in reversed([*(e for e in first if _is_cheap(e)), *second]):
        if getattr(eqn, "effects", None) or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            for v in eqn.outvars:
                needed.pop(v, None)
            needed.update(dict.fromkeys(v for v in eqn.invars if _is_var(v)))
    return first, kept[::-1], [v for v in needed if v not in markers]


def _is_cheap(eqn: Any) -> bool:
    name = eqn.primitive.name
    return name in _LAYOUT or (name in _ARITHMETIC and len({v for v in eqn.invars if _is_var(v)}) == 1)


def mark(jax: Any, result: Any) -> Any:
    """A new value like ``result``, to stand for its cotangent."""
    return jax.lax.neg(result)  # any operation would do: it is never carried out


def _is_var(v: Any) -> bool:
    return not hasattr(v, "val")  # a literal has one


def _read(values: dict[Any, Any], v: Any) -> Any:
    return values[v] if _is_var(v) else v.val


def _evaluate(eqns: Sequence[Any], values: dict[Any, Any]) -> None:
    """Do the operations; ``values`` holds their arguments and takes their results."""
    for eqn in eqns:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # the older way is a pair
        context = getattr(eqn, "ctx", None)
        with nullcontext() if context is None else context.manager:
            found = eqn.primitive.bind(*functions, *[_read(values, v) for v in eqn.invars], **params)
        values.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found], strict=True))
