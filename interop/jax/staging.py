"""Functions of funcgrad as programs that JAX compiles, differentiated by funcgrad's rules.

The function is run once on tracers of JAX; so are its tangents and its pullback, which are functions of
funcgrad too. JAX sees the resulting computations and differentiates none of them.

A function that computes results and their pullback in one run is cut into two halves. The operations that depend
on no cotangent are the forward half; the others are the backward half. The values that cross the cut are the
residuals, which stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.batching import BatchTrace, named_axes
from funcgrad.core import Tracer, are_tracers_of, describe, is_array, replace_at
from funcgrad.errors import InputError
from funcgrad.forward import ForwardTrace
from funcgrad.interop.jax.conversion import unflattener
from funcgrad.interop.jax.jaxprs import evaluate, is_variable, read
from funcgrad.interop.jax.lift import ClosedOverTracer, lifted_trace, with_numpy_dtypes
from funcgrad.interop.jax.paths import Forked, Subject, follow_paths, on_only_path
from funcgrad.interop.jax.programs import (
    Batched,
    Checked,
    Checks,
    Program,
    Pullback,
    Residuals,
    ShapeDtype,
    WithTangents,
    no_static_part,
    split_checks,
    with_checks,
)
from funcgrad.interop.jax.unknown import as_staging_errors
from funcgrad.kinds.linear import to_batch
from funcgrad.reverse import backward, record_function
from funcgrad.shared_state import open_path
from funcgrad.transforms.lifting import LiftedTrace

#: Names of operations that are cheaper to repeat in the backward half than their results are to keep.
_LAYOUT = frozenset((
    "broadcast_in_dim", "convert_element_type", "copy", "expand_dims", "iota", "reshape", "rev", "squeeze", "transpose",
))  # fmt: skip
#: Names of operations that are as cheap with one array argument, which is then as large as the result.
_ARITHMETIC = frozenset(("add", "integer_pow", "mul", "neg", "square", "sub"))


@dataclass(eq=False)
class Backward:
    """Backward half of a computation.

    Attributes:
        asarray: ``jax.numpy.asarray``.
        eqns: operations of the backward half.
        constants: values of the variables that do not change between calls.
        places: variables that hold the residuals.
        markers: variables that represent the cotangents of the results.
        cts: variables that hold the computed cotangents of the leaves.
    """

    asarray: Any
    eqns: list[Any]
    constants: dict[Any, Any]
    places: list[Any]
    markers: list[Any]
    cts: list[Any]

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the leaves, from the residuals and the cotangents of the results."""
        values = {**self.constants, **dict(zip([*self.places, *self.markers], [*residuals, *cts], strict=True))}
        evaluate(self.eqns, values)
        return [self.asarray(read(values, v)) for v in self.cts]


def halves(
    jax: Any, fun: Callable[..., tuple[list[Any], list[Any], list[Any]]], leaves: Sequence[Any]
) -> tuple[list[Any], list[Any], Backward]:
    """Return the results of ``fun``, the residuals, and the backward half.

    Args:
        jax: the JAX module, while it traces.
        fun: ``fun(*leaves) -> (results, markers, cts)``, lists of values of JAX. A marker represents the
            cotangent of a result, and is an unchanged result of ``cotangent_marker``.
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
    first, second, needed = _split_operations(jaxpr.eqns, markers, cts)
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values = {**consts, **dict(zip(jaxpr.invars, leaves, strict=True))}
    evaluate(first, values)
    # A constant that JAX is tracing further out is a residual; other constants stay with the backward half.
    constants = {v: c for v, c in consts.items() if not isinstance(c, jax.core.Tracer)}
    places = [v for v in needed if v not in constants]
    asarray = jax.numpy.asarray  # results may be literals, which are numbers
    results = [asarray(read(values, v)) for v in jaxpr.outvars[: ends[0]]]
    return results, [values[v] for v in places], Backward(asarray, second, constants, places, markers, cts)


def _split_operations(
    eqns: Sequence[Any], markers: list[Any], cts: list[Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the operations of the forward half and of the backward half, and the variables that cross the cut."""
    late = set(markers)
    first: list[Any] = []
    second: list[Any] = []
    for eqn in eqns:
        if any(v in late for v in eqn.outvars):
            continue  # this operation makes a marker
        if any(is_variable(v) and v in late for v in eqn.invars):
            late.update(eqn.outvars)
            second.append(eqn)
        else:
            first.append(eqn)
    needed = dict.fromkeys(v for v in cts if is_variable(v))
    kept: list[Any] = []
    for eqn in reversed([*(e for e in first if _is_cheap(e)), *second]):
        if getattr(eqn, "effects", None) or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            for v in eqn.outvars:
                needed.pop(v, None)
            needed.update(dict.fromkeys(v for v in eqn.invars if is_variable(v)))
    return first, kept[::-1], [v for v in needed if v not in markers]


def _is_cheap(eqn: Any) -> bool:
    name = eqn.primitive.name
    return name in _LAYOUT or (name in _ARITHMETIC and len({v for v in eqn.invars if is_variable(v)}) == 1)


def cotangent_marker(jax: Any, result: Any) -> Any:
    """Return a new value like ``result``, which represents its cotangent."""
    return jax.lax.neg(result)  # any operation would do: it is never executed


#: Type of a function from leaves to the leaves of its result and a static part that describes them.
Flat = Callable[..., tuple[list[Any], Any]]


class StagedProgram(Program):
    """Compiled program made from a function of funcgrad.

    Args:
        jax: the JAX module.
        name: the function's name, for messages.
        flat: the function.
        options: options for ``jax.jit``.
        shardings: sharding of each leaf, or None to leave it open.
        out_shardings: shardings of the result, as a prefix tree of it.
    """

    def __init__(
        self,
        jax: Any,
        name: str,
        flat: Flat,
        options: dict[str, Any] | None = None,
        shardings: Sequence[Any] = (),
        out_shardings: Any = None,
    ) -> None:
        self.flat = flat
        self.shardings, self.out_shardings = shardings, out_shardings
        #: Functions that make a result from its leaves, by the number of its static part.
        self.unflatten_by_number: dict[int, Callable[[Sequence[Any]], Any]] = {}
        super().__init__(jax, name, self.run_on_jax, compiled=True, options=options)

    def run_numbered(self, *leaves: Any) -> dict[int, list[Any]]:
        """Run ``run_on_jax`` as ``Program`` does, and note how to make the result without Python code of JAX."""
        out = super().run_numbered(*leaves)
        for number in out:
            self.unflatten_by_number[number] = self._unflattener(self.static[number])
        return out

    def _unflattener(self, static_part: Any) -> Callable[[Sequence[Any]], Any]:
        if type(static_part) is not Checked:
            return unflattener(static_part)
        unflatten = unflattener(static_part.inner)
        return lambda results: unflatten(static_part.end(self.name, results)[1])

    def run_on_jax(self, *leaves: Any) -> Any:
        """Run the function on values of JAX, on all paths that it may take."""
        return follow_paths(self.jax, Subject("jit", self.name), self.run_once, leaves)

    def run_once(self, *leaves: Any) -> Any:
        """Run the function on values of JAX, on the open path."""
        with self.lifted_run(leaves) as (trace, values):
            outs, static_part = self.flat(*values)
            results = [self.leave(trace, out) for out in outs]
        if self.out_shardings is not None:
            places = tree.broadcast_prefix(self.out_shardings, static_part(*range(len(results))))
            results = _constrained(self.jax, results, places)
        return with_checks(self.jax, static_part, results, open_path.get().made_checks(self.jax))

    @contextmanager
    def lifted_run(self, leaves: Sequence[Any]) -> Iterator[tuple[LiftedTrace, list[Any]]]:
        """Return a block with a run on values of JAX that no outer transform observes."""
        if self.shardings:
            leaves = _constrained(self.jax, leaves, [*self.shardings, *[None] * (len(leaves) - len(self.shardings))])
        unseen = blocks.Block(lambda state: state._replace(watcher=None, runner=None))
        with unseen if blocks.current() != blocks.State() else nullcontext():
            path = open_path.get()
            path.leaves, path.prepare = leaves, with_numpy_dtypes
            trace = lifted_trace(refuse_closures=True, watch=path.watch, prepare=path.prepare)
            try:
                with as_staging_errors(self.jax, "jit", self.name):
                    yield trace, [trace.leaf(leaf) for leaf in leaves]
            finally:
                trace.close()

    def leave(self, trace: LiftedTrace, out: Any) -> Any:
        """Return a result as a value of JAX."""
        value = trace.leave(out)
        if isinstance(value, Tracer):
            raise ClosedOverTracer
        if not is_array(value):
            raise InputError(
                f"jit: {self.name} must return arrays, numbers, or containers of them, got {describe(value)}. Leave "
                "it out of what is compiled."
            )
        return self.jax.numpy.asarray(value)

    def make_jvp(self, traced: tuple[int, ...]) -> Program:
        """Make the program of results and tangents, by funcgrad's rules."""
        return StagedProgram(self.jax, self.name, _jvp_of(self.flat, traced), shardings=self.shardings)

    def make_vjp(self, traced: tuple[int, ...], live: tuple[int, ...]) -> Program:
        """Make the program of cotangents, by funcgrad's rules."""
        return StagedProgram(self.jax, self.name, _vjp_of(self.flat, traced, live), shardings=self.shardings)

    def make_with_residuals(self, traced: tuple[int, ...]) -> Program:
        """Make the program of results and residuals, by funcgrad's rules, cut into two halves."""
        return Program(self.jax, self.name, lambda *leaves: self.with_residuals(leaves, traced), compiled=True)

    def with_residuals(self, leaves: Sequence[Any], traced: tuple[int, ...]) -> Any:
        """Compute the results and the residuals."""
        static_part: list[Any] = []

        def both(*xs: Any) -> tuple[list[Any], list[Any], list[Any]]:
            with self.lifted_run(xs) as (trace, values):

                def of(*moving: Any) -> list[Any]:
                    outs, static = self.flat(*replace_at(values, traced, moving))
                    static_part[:] = [static]
                    return outs

                outs, nodes = record_function(of, [values[i] for i in traced])
                results = [self.leave(trace, out) for out in outs]
                markers = [cotangent_marker(self.jax, r) if backend.is_inexact(r) else None for r in results]
                pairs = zip(nodes, markers, strict=True)
                seeds = [(n, trace.leaf(m)) for n, m in pairs if n is not None and m is not None]
                cts = backward(seeds, len(traced))
                zeros = [backend.zeros_like(values[i]) if ct is None else ct for i, ct in zip(traced, cts, strict=True)]
                found = [self.leave(trace, ct) for ct in zeros]
            made = open_path.get().made_checks(self.jax)
            if made is not None:
                results.append(made.failed)
                static_part[:] = [Checked(static_part[0], made.checks)]
            return results, [m for m in markers if m is not None], found

        try:
            results, residuals, back = on_only_path(
                self.jax, Subject("jit", self.name), self.run_once, leaves, lambda: halves(self.jax, both, leaves)
            )
        except Forked:
            return self.with_leaves_as_residuals(leaves, traced)
        static, results, checks = split_checks(static_part[0], results)
        floating = [i for i, r in enumerate(results) if backend.is_inexact(r)]

        def pullback_of(kept: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
            return lambda cts: back(kept, [cts[i] for i in floating])

        return self._with_pullback(static, results, residuals, pullback_of, checks)

    def with_leaves_as_residuals(self, leaves: Sequence[Any], traced: tuple[int, ...]) -> Any:
        """Compute the results of a function with several paths, whose pullback runs it again."""
        out = self.run_on_jax(*leaves)
        static, results, checks = split_checks(out.func, list(out.args))
        floating = tuple([i for i, r in enumerate(results) if backend.is_inexact(r)])
        again = self.derived("vjp", traced, floating)

        def pullback_of(kept: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
            def pullback(cts: Sequence[Any]) -> list[Any]:
                found = again.fun(*kept, *[cts[i] for i in floating])
                return split_checks(found.func, list(found.args))[1]

            return pullback

        return self._with_pullback(static, results, leaves, pullback_of, checks)

    def _with_pullback(
        self,
        static: Any,
        results: list[Any],
        residuals: Sequence[Any],
        pullback_of: Callable[..., Any],
        checks: Checks | None,
    ) -> Any:
        shapes_dtypes = [ShapeDtype(r.shape, r.dtype) for r in results]
        pullback = Pullback(self.jax, self.name, pullback_of, shapes_dtypes, True)
        return with_checks(self.jax, Residuals(static, len(results), pullback), [*results, *residuals], checks)

    def make_batched(self, flags: tuple[bool, ...], names: tuple[Any, ...] = ()) -> Program:
        """Make the program on batches; use funcgrad's ``vmap`` if the function may look up the batch axis by name."""
        if not names:
            return super().make_batched(flags)
        return StagedProgram(self.jax, self.name, _batched_of(self.flat, flags, names))


def _constrained(jax: Any, values: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    """Return ``values`` with JAX's constraints on how to distribute them."""
    put = jax.lax.with_sharding_constraint
    return [x if s is None else put(x, _with_automatic_axes(jax, s)) for x, s in zip(values, shardings, strict=True)]


def _with_automatic_axes(jax: Any, sharding: Any) -> Any:
    """Return ``sharding`` with automatic axes, which the constraint needs; ``jax.make_mesh`` makes explicit axes."""
    mesh: Any = getattr(sharding, "mesh", None)
    if not any(getattr(kind, "name", "") == "Explicit" for kind in getattr(mesh, "axis_types", None) or ()):
        return sharding
    return jax.sharding.NamedSharding(jax.sharding.Mesh(mesh.devices, mesh.axis_names), sharding.spec)


def _jvp_of(flat: Flat, traced: tuple[int, ...]) -> Flat:
    """Return the function that gives results and tangents of floating ones, from leaves and tangents of some."""

    def jvp_fun(*values: Any) -> tuple[list[Any], Any]:
        n = len(values) - len(traced)
        trace = ForwardTrace()
        pairs = zip(traced, values[n:], strict=True)
        try:
            outs, static_part = flat(*replace_at(values[:n], traced, [trace.leaf(values[i], t) for i, t in pairs]))
        finally:
            trace.close()
        mine = are_tracers_of(trace, outs)
        results = [out._val if m else out for out, m in zip(outs, mine, strict=True)]
        live = tuple([i for i, r in enumerate(results) if is_array(r)])
        tangents = [outs[i].tangent if mine[i] else _zero_tangent(results[i]) for i in live]
        return [*results, *tangents], WithTangents(static_part, live)

    return jvp_fun


def _zero_tangent(x: Any) -> Any:
    """Return the tangent of a result that depends on nothing; on another path an integer may be floating."""
    return backend.zeros_like(x) if backend.is_inexact(x) else np.zeros(np.shape(x), np.float32)


def _vjp_of(flat: Flat, traced: tuple[int, ...], live: tuple[int, ...]) -> Flat:
    """Return the function that gives cotangents of leaves, from all leaves and the cotangents of ``live`` results."""

    def vjp_fun(*values: Any) -> tuple[list[Any], Any]:
        n = len(values) - len(live)

        def moving(*xs: Any) -> list[Any]:
            return flat(*replace_at(values[:n], traced, xs))[0]

        start = [values[i] for i in traced]
        _, nodes = record_function(moving, start)
        seeds = [(node, ct) for i, ct in zip(live, values[n:], strict=True) if (node := nodes[i]) is not None]
        return backend.with_zeros(backward(seeds, len(start)), start), no_static_part

    return vjp_fun


def _batched_of(flat: Flat, flags: tuple[bool, ...], names: tuple[Any, ...]) -> Flat:
    """Return ``flat`` applied to batches, with names for the batch axis."""

    def batched_fun(*values: Any) -> tuple[list[Any], Any]:
        size = next(v.shape[0] for v, flag in zip(values, flags, strict=True) if flag)
        trace = BatchTrace(size)
        token = named_axes.set({**named_axes.get(), **dict.fromkeys(names, trace)})
        try:
            outs, static_part = flat(*[trace.leaf(v) if flag else v for v, flag in zip(values, flags, strict=True)])
            mine = are_tracers_of(trace, outs)
            whole = [out._val if m else to_batch(out, size) for out, m in zip(outs, mine, strict=True)]
        finally:
            named_axes.reset(token)
            trace.close()
        return whole, Batched(static_part, (True,) * len(whole))

    return batched_fun
