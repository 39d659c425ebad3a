"""Functions of one example of a ``vmap`` that branch on it, so that Python cannot run them for all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.batching import BatchTrace
from funcgrad.core import Tracer, are_tracers_of
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.control.failing import Failures
from funcgrad.transforms.control.staging import Captured, as_jax_aval, aval_of, staged_call


def run_for_one(trace: BatchTrace, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``fun(*args, **kwargs)``, which runs on the values of one example; ``jax.vmap`` maps the result.

    Args:
        trace: the run of the ``vmap``.
        fun: a function of one example.
        args: its arguments, with tracers of the ``vmap``.
        kwargs: its keyword arguments.
    """
    given, spec = tree.flatten((args, kwargs))
    moving = are_tracers_of(trace, given)
    leaves = [x for x, flag in zip(given, moving, strict=True) if flag]
    captured = Captured("vmap", leaves)

    def body(*xs: Any) -> Any:
        args, kwargs = tree.unflatten(spec, merge_leaves(given, moving, xs))
        return fun(*args, **kwargs)

    shapes = captured.eval_shape(body, [as_jax_aval(aval_of(leaf)) for leaf in leaves])
    failures, count = Failures(shapes.checks), len(shapes.avals)

    def run(*values: Any) -> tuple[Any, ...]:
        return captured.run(body, values[: len(leaves)], values[len(leaves) :], shapes.avals)

    results = staged_call("vmap", run, [*leaves, *captured.tracers], [*shapes.avals, *failures.avals])
    if failures.checks:
        failed = results[-1]  # an error of one example is that of the vmap
        is_mapped = type(failed) is Tracer and failed._trace is trace
        failures.raise_first([fnp.any(failed._val, axis=0) if is_mapped else failed])
    return tree.unflatten(shapes.spec, results[:count])
