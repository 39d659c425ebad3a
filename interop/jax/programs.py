"""Functions that JAX runs, as one operation of funcgrad: differentiable in both modes, any order, batchable.

A ``Program`` is a JAX function of a flat list of arrays. The rules of the operation need other programs: its
tangents, its pullback, its residuals, its batched form. Each rule binds the same operation to another program, so
every outer transform finds the rules that it needs.

A program returns a ``jax.tree_util.Partial``: the arrays, and a static part that says what they mean. The static
part travels through ``jax.jit``, so nothing has to be traced again to know the structure of a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace, is_batched, named_axes
from funcgrad.core import Primitive, Tracer, bind, is_array, replace_at
from funcgrad.errors import StagingError
from funcgrad.interop.jax.checks import FailedCheck, raise_failed
from funcgrad.interop.jax.conversion import (
    Containers,
    as_views,
    copied_to_jax,
    flatten,
    results_on_host,
    to_numpy,
)
from funcgrad.optional import double_precision, import_jax
from funcgrad.reverse import vjp_for_all
from funcgrad.shared_state import open_path
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.control.staging import explained_limits, mapped_on_jax
from funcgrad.transforms.transformed import Transformed, check_callable, name_of
from funcgrad.writable import writable_result

Leaves = Sequence[Any]


class Program:
    """JAX function of a flat list of arrays.

    Args:
        jax: the JAX module.
        name: the function's name.
        fun: ``fun(*arrays)`` returns a ``Partial`` of a static part and arrays.
        compiled: whether ``jax.jit`` runs the program and all programs derived from it.
        options: options for ``jax.jit``; derived programs do not use them.
    """

    def __init__(
        self, jax: Any, name: str, fun: Callable[..., Any], *, compiled: bool, options: dict[str, Any] | None = None
    ) -> None:
        self.jax, self.name = jax, name
        self.fun = fun
        self.compiled = compiled
        #: Static parts of the results of a compiled program, by number.
        self.static: dict[int, Any] = {}
        self._number = itertools.count().__next__
        self.run: Callable[..., Any] = jax.jit(self.run_numbered, **options or {}) if compiled else fun
        self._derived: dict[Any, Program] = {}

    def run_numbered(self, *leaves: Any) -> dict[int, list[Any]]:
        """Run ``fun``, with a number for the static part.

        Caches of JAX keep the structures of results. A static part in them would keep the programs that it holds.
        """
        out, number = self.fun(*leaves), self._number()
        self.static[number] = out.func
        return {number: list(out.args)}

    def parts(self, out: Any) -> tuple[Any, Leaves]:
        """Return the static part and the arrays of a value that ``run`` returned."""
        if not self.compiled:
            return out.func, out.args
        ((number, results),) = out.items()
        static_part = self.static[number]
        return static_part.end(self.name, results) if type(static_part) is Checked else (static_part, results)

    def derived(self, *key: Any) -> Program:
        """Return the program ``self.make_<key[0]>(*key[1:])``; a compiled program makes it only once."""
        found = self._derived.get(key)
        if found is None:
            found = getattr(self, f"make_{key[0]}")(*key[1:])
            if self.compiled:
                found = self._derived.setdefault(key, found)
        return found

    def _restricted_to(self, leaves: Leaves, traced: Sequence[int]) -> tuple[Callable[..., list[Any]], list[Any]]:
        """Return the function of the leaves at ``traced`` alone, and a list that will hold its static part."""
        static_part: list[Any] = []

        def restricted(*moving: Any) -> list[Any]:
            out = self.fun(*replace_at(leaves, traced, moving))
            static_part[:] = [out.func]
            return list(out.args)

        return restricted, static_part

    def make_jvp(self, traced: tuple[int, ...]) -> Program:
        """Make the program that returns results and tangents of floating ones, from leaves and tangents of some."""
        jax = self.jax

        def fun(*values: Any) -> Any:
            n = len(values) - len(traced)
            restricted, static_part = self._restricted_to(values[:n], traced)
            results, tangents = jax.jvp(restricted, tuple(values[i] for i in traced), tuple(values[n:]))
            static, results, checks = split_checks(static_part[0], results)
            live = _inexact(results)
            arrays = [*results, *[tangents[i] for i in live]]
            return with_checks(jax, WithTangents(static, live), arrays, checks)

        return Program(jax, self.name, fun, compiled=self.compiled)

    def make_vjp(self, traced: tuple[int, ...], live: tuple[int, ...]) -> Program:
        """Make the program that returns cotangents of leaves, from all leaves and cotangents of ``live`` results."""
        jax = self.jax

        def fun(*values: Any) -> Any:
            n = len(values) - len(live)
            restricted, _ = self._restricted_to(values[:n], traced)
            results, pullback = jax.vjp(restricted, *[values[i] for i in traced])
            return jax.tree_util.Partial(
                no_static_part, *pullback(_with_zero_cotangents(jax, results, live, values[n:]))
            )

        return Program(jax, self.name, fun, compiled=self.compiled)

    def make_with_residuals(self, traced: tuple[int, ...]) -> Program:
        """Make the program that returns the results, then the residuals; its static part is ``Residuals``."""
        jax = self.jax

        def fun(*leaves: Any) -> Any:
            restricted, static_part = self._restricted_to(leaves, traced)
            results, pullback = jax.vjp(restricted, *[leaves[i] for i in traced])
            residuals, structure = jax.tree_util.tree_flatten(pullback)
            residuals = [copied_to_jax(jax, r) for r in residuals]  # include arrays that the function closes over
            shapes_dtypes = [ShapeDtype(r.shape, r.dtype) for r in results]
            program = Pullback(jax, self.name, structure.unflatten, shapes_dtypes, self.compiled)
            static, results, checks = split_checks(static_part[0], results)
            return with_checks(jax, Residuals(static, len(results), program), [*results, *residuals], checks)

        return Program(jax, self.name, fun, compiled=self.compiled)

    def make_batched(self, flags: tuple[bool, ...], names: tuple[Any, ...] = ()) -> Program:
        """Make the program on batches, batch axes first; results that depend on no batched leaf stay unbatched."""
        jax = self.jax

        def fun(*leaves: Any) -> Any:
            static_part: list[Any] = []

            def one(*xs: Any) -> Leaves:
                out = self.fun(*xs)
                static_part[:] = [out.func]
                found: Leaves = out.args
                return found

            results, moving = mapped_on_jax(jax, one, leaves, flags)
            inner, results, checks = split_checks(static_part[0], results)
            if checks is not None and moving[-1]:
                checks = checks._replace(failed=checks.failed.any(0))  # the check fails for one of the examples
            return with_checks(jax, Batched(inner, tuple(moving[: len(results)])), results, checks)

        return Program(jax, self.name, fun, compiled=self.compiled)


class ShapeDtype(NamedTuple):
    """Shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: Any


class Pullback(Program):
    """Program from residuals, and cotangents of all floating results, to cotangents of the leaves.

    Args:
        jax: the JAX module.
        name: the function's name.
        pullback_of: ``pullback_of(residuals)`` is a function of a list of cotangents.
        shapes_dtypes: shape and dtype of each result.
        compiled: whether ``jax.jit`` runs the program.
        live: indices of the results whose cotangents are given; None for all floating ones.
    """

    def __init__(
        self,
        jax: Any,
        name: str,
        pullback_of: Callable[..., Any],
        shapes_dtypes: list[ShapeDtype],
        compiled: bool,
        live: tuple[int, ...] | None = None,
    ) -> None:
        self.pullback_of, self.shapes_dtypes = pullback_of, shapes_dtypes
        self.floating = _inexact(shapes_dtypes)
        given = self.floating if live is None else live

        def fun(*values: Any) -> Any:
            n = len(values) - len(given)
            return jax.tree_util.Partial(
                no_static_part,
                *pullback_of(list(values[:n]))(_with_zero_cotangents(jax, shapes_dtypes, given, values[n:])),
            )

        super().__init__(jax, name, fun, compiled=compiled)

    def make_for_live(self, live: tuple[int, ...]) -> Program:
        """Make the program that takes the cotangents of the results at ``live`` only."""
        if live == self.floating:
            return self
        return Pullback(self.jax, self.name, self.pullback_of, self.shapes_dtypes, self.compiled, live)


def _inexact(results: Sequence[Any]) -> tuple[int, ...]:
    return tuple([i for i, r in enumerate(results) if isinstance(r.dtype, np.dtype) and backend.is_inexact(r)])


def _with_zero_cotangents(jax: Any, shapes_dtypes: Sequence[Any], live: Sequence[int], cts: Leaves) -> list[Any]:
    """Return a cotangent for each result: the given ones for ``live``, zeros for the others."""
    found, floating, zeros = dict(zip(live, cts, strict=True)), _inexact(shapes_dtypes), jax.numpy.zeros
    return [
        found[i] if i in found else zeros(x.shape, x.dtype) if i in floating else np.zeros(x.shape, backend.FLOAT0)
        for i, x in enumerate(shapes_dtypes)
    ]


# Static parts of the ``Partial`` that a program returns. A static part says what the arrays mean and must be callable.


def no_static_part(*results: Any) -> tuple[Any, ...]:
    """Return the arrays unchanged: static part of a program whose arrays need no description."""
    return results


@dataclass(eq=False)
class Static:
    """Static part of a result; ``inner`` is the static part of the function itself."""

    inner: Any

    def __call__(self, *results: Any) -> Any:
        """Return the arrays unchanged."""
        return results


@dataclass(eq=False)
class WithTangents(Static):
    """Static part of results with tangents; ``live`` holds the indices of the results that have a tangent."""

    live: tuple[int, ...]


@dataclass(eq=False)
class Residuals(Static):
    """Static part of ``count`` results followed by the residuals that ``pullback`` needs."""

    count: int
    pullback: Pullback


@dataclass(eq=False)
class Batched(Static):
    """Static part of a batch; ``flags`` says which results have the batch axis."""

    flags: tuple[bool, ...]


class Checks(NamedTuple):
    """Checks that a program makes, and their conditions: an array that says which have failed."""

    checks: Sequence[FailedCheck]
    failed: Any


@dataclass(eq=False)
class Checked(Static):
    """Static part of results followed by the conditions of ``checks``."""

    checks: Sequence[FailedCheck]

    def end(self, name: str, results: Leaves) -> tuple[Any, Leaves]:
        """Return the inner static part and the results of the program ``name``, if no check has failed.

        While JAX compiles a program around this one, the checks become checks of that program.
        """
        *results, failed = results
        if not backend.is_jax_tracer(failed) or failed.to_concrete_value() is not None:
            raise_failed(name, self.checks, failed)
        elif (path := open_path.get()) is not None:
            path.note_checks(self.checks, failed)
        else:
            raise StagingError(
                f"jit: {name} checks a value where no error can be raised, under a transform of JAX, got a condition"
                f"{self.checks[0].place}. Check the value before, or let to_jax call the function."
            )
        return self.inner, results


def split_checks(static_part: Any, results: list[Any]) -> tuple[Any, list[Any], Checks | None]:
    """Return the static part, the results without the conditions of checks, and the checks if there are any."""
    if type(static_part) is not Checked:
        return static_part, results, None
    return static_part.inner, results[:-1], Checks(static_part.checks, results[-1])


def with_checks(jax: Any, static_part: Any, arrays: Leaves, checks: Checks | None) -> Any:
    """Return what a program returns: a static part, arrays and the conditions of its checks."""
    if checks is None:
        return jax.tree_util.Partial(static_part, *arrays)
    return jax.tree_util.Partial(Checked(static_part, checks.checks), *arrays, checks.failed)


@dataclass(eq=False, slots=True)
class Call:
    """One call of a program.

    Attributes:
        program: the program.
        host: whether results are NumPy's. Residuals are always JAX's.
        static_part: static part of the result; None before the call.
    """

    program: Program
    host: bool
    static_part: Any = None

    def __call__(self, *leaves: Any) -> Any:
        """Return the results, computed through all transforms that have tracers among ``leaves``."""
        ans = bind(call_program, leaves, {"call": self})
        return writable_result(leaves, ans) if Tracer in map(type, leaves) else ans

    def __repr__(self) -> str:
        return self.program.name


def run(program: Program, leaves: Leaves) -> tuple[Any, Leaves]:
    """Return the static part and the arrays that ``program`` returns for these values, in double precision.

    Precision is JAX's if JAX is tracing, or if an uncompiled program is given JAX arrays only.
    """
    jax = program.jax
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    only_jax = not program.compiled and bool(leaves) and all(isinstance(leaf, jax.Array) for leaf in leaves)
    with nullcontext() if traced or only_jax else double_precision(jax):
        values = as_views(leaves) if program.compiled else [copied_to_jax(jax, leaf) for leaf in leaves]
        with explained_limits(program.name):
            found = program.run(*values)
        return program.parts(found)


def _impl(xp: Any, *leaves: Any, call: Call) -> tuple[Any, ...]:
    static_part, results = run(call.program, leaves)
    call.static_part = static_part
    if not call.host:
        return tuple(results)
    while type(static_part) is Batched:
        static_part = static_part.inner
    count = static_part.count if type(static_part) is Residuals else len(results)
    return (*to_numpy(call.program.jax, results[:count]), *results[count:])


def _can_keep_residuals(args: Leaves) -> bool:
    """Return whether residuals can be kept: no outer transform differentiates or records the values."""
    for x in args:
        while isinstance(x, Tracer):
            if not is_batched(x) and not x._trace.runs_jax:
                return False
            x = x._val
    return not named_axes.get()


def _reverse(args: Leaves, traced: tuple[int, ...], params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    traced = tuple(traced)
    if not _can_keep_residuals(args):
        rerun = Call(call.program, call.host)
        outs = rerun(*args)
        call.static_part = rerun.static_part
        return outs, vjp_for_all("jax_call", _backwards_by_rerun, len(traced)), (call.program, args, traced, call.host)
    first = Call(call.program.derived("with_residuals", traced), call.host)
    outs = first(*args)
    static_part: Residuals = first.static_part
    call.static_part = static_part.inner
    saved = static_part.pullback, outs[static_part.count :], len(traced), call.host
    return outs[: static_part.count], vjp_for_all("jax_call", _backwards, len(traced)), saved


def _backwards(ct: Any, program: Any, residuals: Any, count: int, host: Any) -> Any:
    live = tuple([i for i in program.floating if ct[i] is not None])
    if not live:
        return [None] * count
    return Call(program.derived("for_live", live), host)(*residuals, *[ct[i] for i in live])


def _backwards_by_rerun(ct: Any, program: Program, args: Leaves, traced: tuple[int, ...], host: Any) -> Any:
    """Run the function again to compute cotangents, for a call that is itself differentiated."""
    live = tuple([i for i, c in enumerate(ct) if c is not None and backend.is_inexact(c)])
    if not live:
        return [None] * len(traced)
    return Call(program.derived("vjp", traced, live), host)(*args, *[ct[i] for i in live])


def _forward(args: Leaves, tangents: Leaves, params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    traced = tuple([i for i, t in enumerate(tangents) if t is not None])
    jvp_call = Call(call.program.derived("jvp", traced), call.host)
    outs = jvp_call(*args, *[tangents[i] for i in traced])
    static_part: WithTangents = jvp_call.static_part
    call.static_part = static_part.inner
    count = len(outs) - len(static_part.live)
    moving = {i: t for i, t in zip(static_part.live, outs[count:], strict=True) if backend.is_inexact(outs[i])}
    return outs[:count], tuple([moving.get(i) for i in range(count)])


def _batch(within: BatchTrace, args: Leaves, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    names = tuple([name for name, trace in named_axes.get().items() if trace is within])
    mapped = Call(call.program.derived("batched", tuple(batched), names), call.host)
    outs = mapped(*args)
    static_part: Batched = mapped.static_part
    call.static_part = static_part.inner
    return outs, static_part.flags


#: ``bind(call_program, leaves, {"call": call})``: the results of a program.
call_program = Primitive("jax_call", _impl, _reverse, _forward, _batch, multiple=True, runs_user_code=True)


P = ParamSpec("P")


def from_jax(fun: Callable[P, Any]) -> Callable[P, Any]:
    """Return ``fun``, written for JAX, as a function of NumPy values that funcgrad can transform.

    JAX computes and differentiates ``fun``, by JAX's rules or by the rules of ``fun``: funcgrad's ``grad``, ``jvp``,
    ``vmap`` and the other transforms call ``jax.vjp``, ``jax.jvp`` and ``jax.vmap``, in any order and to any depth.

    Args:
        fun: a function of JAX arrays in any containers that funcgrad or JAX knows. It may be compiled, have rules of
            its own, and close over arrays; it need not be compilable. Python's numbers, and other values that are not
            arrays, reach it unchanged.

    Returns:
        A function of the same arguments. It runs in double precision and returns read-only NumPy arrays. For floating
        JAX arrays it calls ``fun`` itself and returns JAX arrays.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.interop import from_jax
        >>> softplus = from_jax(jax.nn.softplus)
        >>> softplus(np.zeros(2)).round(3)
        array([0.693, 0.693])
        >>> grad(grad(softplus))(0.0)
        np.float64(0.25)
    """
    check_callable("from_jax", fun)
    return Transformed(run_from_jax, fun, None, "{fun}, a function of JAX, on NumPy values.")


def run_from_jax(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run ``from_jax(fun)`` on these arguments."""
    jax = import_jax("from_jax")
    leaves, containers = flatten((args, kwargs))
    moving = [isinstance(x, (Tracer, np.ndarray, np.generic, jax.Array)) for x in leaves]
    given = [x for x, m in zip(leaves, moving, strict=True) if m]
    program = Program(jax, name_of(fun), _flat(jax, fun, containers, leaves, moving), compiled=False)
    call = Call(program, results_on_host([x for x in leaves if is_array(x)]))
    outs = call(*given)
    return call.static_part(*outs)


@dataclass(eq=False)
class _Result:
    """Containers of a result, and those of its leaves that are not arrays."""

    structure: Any
    others: list[Any]
    moving: list[bool]

    def __call__(self, *arrays: Any) -> Any:
        return self.structure.unflatten(merge_leaves(self.others, self.moving, arrays))


def _flat(
    jax: Any, fun: Callable[..., Any], containers: Containers, leaves: Sequence[Any], moving: list[bool]
) -> Callable[..., Any]:
    """Return ``fun`` as a function of those leaves that are arrays."""
    still = [None if m else x for x, m in zip(leaves, moving, strict=True)]  # holds no array longer than the call

    def flat(*arrays: Any) -> Any:
        found, structure = jax.tree_util.tree_flatten(containers.apply(fun, merge_leaves(still, moving, arrays)))
        arrays_only = [isinstance(x, jax.Array) or backend.is_value(x) for x in found]
        others = [None if a else x for x, a in zip(found, arrays_only, strict=True)]
        results = [jax.numpy.asarray(x) for x, a in zip(found, arrays_only, strict=True) if a]
        return jax.tree_util.Partial(_Result(structure, others, arrays_only), *results)

    return flat
