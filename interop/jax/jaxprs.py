"""Computations that JAX has recorded, as lists of operations on variables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from funcgrad.optional import loaded_jax


def is_variable(v: Any) -> bool:
    """Whether an argument of an operation is a variable, not a literal."""
    return not hasattr(v, "val")  # only a literal has ``val``


def read(values: dict[Any, Any], v: Any) -> Any:
    """Return the value of a variable or a literal."""
    return values[v] if is_variable(v) else v.val


def evaluate(eqns: Sequence[Any], values: dict[Any, Any]) -> None:
    """Run the operations; read arguments from ``values`` and store results there."""
    for eqn in eqns:
        bound = eqn.primitive.get_bind_params(eqn.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)  # older versions of JAX return a pair
        context = getattr(eqn, "ctx", None)
        with nullcontext() if context is None else context.manager:
            found = eqn.primitive.bind(*functions, *[read(values, v) for v in eqn.invars], **params)
        values.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found], strict=True))


def evaluated(closed: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return the results of ``closed``, which ``jax.make_jaxpr`` made, for these arguments, as arrays."""
    jax, jaxpr = loaded_jax(), closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *leaves], strict=True))
    evaluate(jaxpr.eqns, values)
    found = [read(values, v) for v in jaxpr.outvars]
    return [x if isinstance(x, jax.Array) else jax.numpy.asarray(x) for x in found]  # a literal is a number
