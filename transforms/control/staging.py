"""JAX's control flow as one operation, for values that are known only when a compiled program runs.

Under ``jax.jit`` a loop cannot run here, it can only be passed on to JAX. Then ``scan``, ``cond`` and the others bind
one operation, ``staged``, whose parameter is a function of JAX values that calls ``jax.lax``. Each
interpreter turns the function into others: reverse mode into one that returns the residuals of
``jax.vjp`` together with the results, and one that takes residuals and cotangents; forward mode by ``jax.jvp``;
``vmap`` by ``jax.vmap``. Levels therefore nest as always, and this module has no rule for any kind of loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.batching import is_in_batch, named_axes
from funcgrad.core import (
    Primitive,
    Trace,
    Tracer,
    bind,
    describe,
    plain_value,
    raise_escaped,
    replace_at,
    shallow_copy,
    tracer_of,
)
from funcgrad.errors import InputError, NotDifferentiableError, text_of
from funcgrad.kinds.rules import Operation, finish_operation
from funcgrad.optional import loaded_jax
from funcgrad.reverse import call_vjp, vjp_for_all
from funcgrad.shared_state import open_path
from funcgrad.transforms.lifting import LiftedTrace, innermost_body
from funcgrad.writable import as_argument, writable_result

Leaves: TypeAlias = Sequence[Any]

_WEAK = frozenset((int, float, complex))
_ZEROS = {"i": 0, "f": 0.0, "c": 0j}
#: Whether a function is run only for the shapes of its results.
evaluating_shapes: ContextVar[bool] = ContextVar("evaluating_shapes", default=False)


class Aval(NamedTuple):
    """Shape and dtype that a loop or a branch keeps of a value. A weak dtype is promoted, like Python's numbers."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool


def is_batched_anywhere(x: Any) -> bool:
    """Whether ``x`` represents one value per example of a ``vmap``."""
    return is_in_batch(x)


def is_abstract(leaves: Leaves) -> bool:
    """Whether any of ``leaves`` has no value yet: it represents a value in a program that JAX compiles.

    A tracer of ``jax.grad`` outside of ``jax.jit`` has a value.
    """
    return any(backend.is_jax_tracer(x) and x.to_concrete_value() is None for x in map(plain_value, leaves))


#: What ``before_staging`` returns in place of a result.
UNKNOWN = object()


def before_staging(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the first step of a loop, for which no value is known to be missing yet.

    If Python asks for a truth value that is not known, because of values that ``fun`` closes over, the function returns
    ``UNKNOWN``: the loop has to be compiled.
    """
    path = open_path.get()
    return fun if path is None else lambda *args: path.result_if_known(fun, args, UNKNOWN)


def aval_of(x: Any) -> Aval:
    """Return shape and dtype of ``x``, as its library defines them."""
    end, shape, dtype = plain_value(x), backend.shape_of(x), backend.dtype_of(x)
    weak = type(end) in _WEAK or bool(getattr(end, "weak_type", False))
    return Aval(shape, dtype, weak and not shape and dtype.kind in _ZEROS)


def as_jax_aval(aval: Aval) -> Aval:
    """Return ``aval`` with the dtype that JAX uses for it."""
    return aval._replace(dtype=backend.native_dtype(loaded_jax().numpy, aval.dtype))


def placeholder(aval: Aval) -> Any:
    """Return a placeholder for a value like ``aval``, from which JAX takes the shape."""
    shape, dtype, weak = as_jax_aval(aval)
    return _ZEROS[dtype.kind] if weak else loaded_jax().ShapeDtypeStruct(shape, dtype)


class StagedProgram:
    """Parameter of ``staged``: the function of JAX values to call.

    Args:
        name: the name of the public call.
        fun: ``fun(*leaves) -> tuple of leaves``, of JAX values.
        avals: shapes and dtypes of its results, if they are known.
    """

    __slots__ = ("avals", "fun", "name")

    def __init__(self, name: str, fun: Callable[..., tuple[Any, ...]], avals: Sequence[Aval] | None = None) -> None:
        self.name, self.fun, self.avals = name, fun, avals

    def __repr__(self) -> str:
        return f"<stage of {self.name}>"

    def with_fixed(self, leaves: Leaves, moving: Sequence[int]) -> Callable[..., tuple[Any, ...]]:
        """Return the function of the leaves at the indices ``moving``, with the other leaves fixed."""
        return lambda *values: self.fun(*replace_at(leaves, moving, values))


def _impl(xp: Any, *leaves: Any, stage: StagedProgram) -> tuple[Any, ...]:
    jnp = loaded_jax().numpy  # JAX has been imported, or else every value would be known
    if stage.avals is not None and evaluating_shapes.get():
        return tuple([jnp.zeros(shape, dtype) for shape, dtype, _ in stage.avals])
    return tuple(stage.fun(*[jnp.asarray(leaf) for leaf in leaves]))


class _StagedVjp:
    """Reverse mode of a stage with respect to some of its arguments, as two more stages."""

    def __init__(self, stage: StagedProgram, traced: Sequence[int]) -> None:
        self.stage, self.traced = stage, traced
        self.avals: list[Any] = []
        self._spec: Any = None
        self._constants: list[Any] = []

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        """Return the results, followed by the residuals for ``backward``."""
        jax = loaded_jax()
        with explained_limits(self.stage.name):
            outs, pullback = jax.vjp(self.stage.with_fixed(leaves, self.traced), *[leaves[i] for i in self.traced])
        self.avals = [(out.shape, out.dtype, backend.is_inexact(out)) for out in outs]
        residuals, self._spec = jax.tree_util.tree_flatten(pullback)
        self._constants = [None if backend.is_value(r) else (r,) for r in residuals]
        return (*outs, *[r for r, still in zip(residuals, self._constants, strict=True) if still is None])

    def backward(self, given: Sequence[bool], *leaves: Any) -> tuple[Any, ...]:
        """Return the cotangents of the arguments, from the residuals of ``forward`` and the ``given`` cotangents."""
        jax = loaded_jax()
        rest = iter(leaves)
        residuals = [next(rest) if still is None else still[0] for still in self._constants]
        cts = [self._ct(rest, index, flag) for index, flag in enumerate(given)]
        with explained_limits(self.stage.name):
            return tuple(jax.tree_util.tree_unflatten(self._spec, residuals)(tuple(cts)))

    def _ct(self, rest: Any, index: int, given: bool) -> Any:
        shape, dtype, inexact = self.avals[index]
        if not inexact:
            return np.zeros(shape, backend.FLOAT0)
        jnp = loaded_jax().numpy
        return jnp.asarray(next(rest), dtype) if given else jnp.zeros(shape, dtype)


#: Parts of JAX's messages about missing derivatives, and the messages that replace them.
_JAX_LIMITS = {
    "Reverse-mode differentiation does not work": (
        "a compiled while_loop, or fori_loop with bounds known only when it runs, has no reverse mode, got one inside "
        "jit. Use scan, or fori_loop between plain integers; differentiate in forward mode; or leave the derivative "
        "outside of jit, where loops are run as plain Python."
    ),
    "can't apply forward-mode autodiff": (
        "JAX differentiates compiled control flow and its own functions, and has no forward mode for functions with a "
        "pullback of their own, got one inside. Use reverse mode, also for second derivatives: jacrev(grad(f)); or "
        "give the function a tangent rule only."
    ),
}


@contextmanager
def explained_limits(name: str) -> Iterator[None]:
    """Raise this library's error for a derivative that JAX does not have."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for said, limit in _JAX_LIMITS.items():
            if said in text_of(error):
                raise NotDifferentiableError(f"{name}: {limit}") from error
        raise


def _reverse(args: Leaves, traced: tuple[int, ...], params: dict[str, Any]) -> Any:
    stage: StagedProgram = params["stage"]
    staged_vjp = _StagedVjp(stage, tuple(traced))
    results = staged(*args, stage=StagedProgram(stage.name, staged_vjp.forward))
    count = len(staged_vjp.avals)
    if not any(inexact for _, _, inexact in staged_vjp.avals):
        return results[:count], None, ()
    return results[:count], vjp_for_all(_name, _apply_staged_vjp, len(traced)), (staged_vjp, results[count:])


def _apply_staged_vjp(ct: Any, staged_vjp: _StagedVjp, residuals: Any) -> list[Any]:
    given = tuple([c is not None for c in ct])
    stage = StagedProgram(staged_vjp.stage.name, functools.partial(staged_vjp.backward, given))
    return list(staged(*residuals, *[c for c in ct if c is not None], stage=stage))


def _name(staged_vjp: _StagedVjp, *_: Any) -> str:
    """Return the operation's name for a record that saved these values."""
    return staged_vjp.stage.name


def _forward(args: Leaves, tangents: Leaves, params: dict[str, Any]) -> Any:
    stage: StagedProgram = params["stage"]
    moving = [i for i, t in enumerate(tangents) if t is not None]
    inexact: list[bool] = []

    def pushed(*leaves: Any) -> tuple[Any, ...]:
        jax = loaded_jax()
        primals, ways = leaves[: len(args)], leaves[len(args) :]
        xs = [primals[i] for i in moving]
        ts = [jax.numpy.asarray(t, x.dtype) for t, x in zip(ways, xs, strict=True)]
        with explained_limits(stage.name):
            outs, found = jax.jvp(stage.with_fixed(primals, moving), tuple(xs), tuple(ts))
        inexact[:] = [backend.is_inexact(out) for out in outs]
        return (*outs, *[t for t, flag in zip(found, inexact, strict=True) if flag])

    results = staged(*args, *[tangents[i] for i in moving], stage=StagedProgram(stage.name, pushed))
    count = len(inexact)
    rest = iter(results[count:])
    return results[:count], tuple([next(rest) if flag else None for flag in inexact])


def _batch(size: int, args: Leaves, flags: tuple[bool, ...], params: dict[str, Any]) -> tuple[Any, tuple[bool, ...]]:
    stage: StagedProgram = params["stage"]
    moving: list[bool] = []  # which results differ between the examples: Python may branch on the others

    def mapped(*leaves: Any) -> tuple[Any, ...]:
        found, moving[:] = mapped_on_jax(loaded_jax(), stage.fun, leaves, flags, size)
        return tuple(found)

    return staged(*args, stage=StagedProgram(stage.name, mapped)), tuple(moving)


def mapped_on_jax(
    jax: Any, fun: Callable[..., Leaves], leaves: Leaves, flags: Sequence[bool], size: int | None = None
) -> tuple[list[Any], list[bool]]:
    """Return the results of ``fun`` for a batch, by ``jax.vmap``, and for each whether it has the batch axis.

    Args:
        jax: the JAX module.
        fun: a function of values of JAX.
        leaves: its arguments.
        flags: for each argument, whether its first axis is that of the batch.
        size: the number of examples, if no argument tells it.
    """
    moving: list[bool] = []
    still: list[Any] = []

    def one(*xs: Any) -> list[Any]:
        # A value that carries this batch has the type of a leaf that came in with the batch.
        carriers = {type(x) for x, flag in zip(xs, flags, strict=True) if flag}
        found = fun(*xs)
        moving[:] = [type(x) in carriers for x in found]
        still[:] = [x for x, m in zip(found, moving, strict=True) if not m]
        return [x for x, m in zip(found, moving, strict=True) if m]

    axes = tuple([0 if flag else None for flag in flags])
    rows = iter(jax.vmap(one, axes, axis_size=size)(*leaves))
    fixed = iter(still)
    return [next(rows) if m else next(fixed) for m in moving], moving


def staged_call(
    name: str, run: Callable[..., tuple[Any, ...]], leaves: Leaves, avals: Sequence[Aval]
) -> tuple[Any, ...]:
    """Call ``run(*leaves)``, a function of JAX values that calls the user's functions.

    ``run`` is traced once, here, to find out what it computes: later, in a pullback or when a graph is evaluated, the
    user's functions may hold tracers of transforms that have finished.

    Args:
        name: the name of the public call.
        run: the function.
        leaves: its arguments, tracers or not.
        avals: shapes and dtypes of its results.
    """
    if evaluating_shapes.get():
        return tuple(staged(*leaves, stage=StagedProgram(name, run, avals)))
    jax = loaded_jax()
    takes = [as_jax_aval(aval_of(leaf)) for leaf in leaves]
    program = jax.make_jaxpr(run)(*[placeholder(aval) for aval in takes])

    def fun(*values: Any) -> tuple[Any, ...]:
        arrays = [jax.numpy.asarray(x, aval.dtype) for x, aval in zip(values, takes, strict=True)]
        return tuple(jax.core.eval_jaxpr(program.jaxpr, program.consts, *arrays))

    return tuple(staged(*leaves, stage=StagedProgram(name, fun, avals)))


_staged = Primitive("staged", _impl, _reverse, _forward, _batch, multiple=True)

#: Operation ``staged(*leaves, stage)``, which returns the results of a function of JAX values.
staged: Operation = finish_operation(
    _staged, lambda *args, **params: writable_result(args, bind(_staged, args, params))
)


def _is_taken_for_numpy(x: Any) -> bool:
    """Whether a function takes ``x`` for a NumPy array or number, though its value is JAX's."""
    while type(x) is Tracer:
        if x._trace.as_numpy:
            return True
        x = x._val
    return False


class NeverReturns(BaseException):
    """Signal that the body of a loop raises ``error`` in every step."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Shapes(NamedTuple):
    """Form of the result of a function that JAX compiles.

    Attributes:
        spec: its structure.
        avals: shapes and dtypes of its leaves.
        checks: the errors that the function may raise.
    """

    spec: tree.PyTreeSpec
    avals: list[Aval]
    checks: Sequence[Any]


class Captured:
    """Tracers that the functions of one call close over.

    JAX runs the body of a loop in a trace of its own. No operation there may get a tracer of funcgrad: it
    would take a value of that trace out to the outer tapes. The body therefore runs twice. The first run
    is for shapes only: it notes every tracer of an outer transform that an operation gets, and replaces it by a
    value of the same shape. In the second run, arguments of the call replace those tracers.
    A tracer that the first run has not noted is refused in the second, not dropped silently.

    Args:
        call: the public call, for messages.
        given: arguments of the call. If one of them belongs to a function that takes its values for NumPy arrays, as
            under ``jit``, so do the bodies: ``isinstance(x, numpy.ndarray)`` has one answer inside and outside.

    Attributes:
        tracers: the tracers, which become arguments of the call.
    """

    def __init__(self, call: str, given: Leaves) -> None:
        self.call = call
        self.as_numpy = any(map(_is_taken_for_numpy, given))
        self.tracers: list[Tracer] = []
        self._indices: dict[Any, int] = {}
        path = open_path.get()
        self._number = None if path is None else path.begin_call()
        self._functions: list[Any] = []

    def eval_shape(self, fun: Callable[..., Any], avals: Sequence[Aval]) -> Shapes:
        """Run ``fun`` for the form of its result; add the tracers that it closes over to ``tracers``."""
        jax = loaded_jax()
        found: list[Any] = []

        def run(*leaves: Any) -> tuple[()]:
            spec, results, checks = self._run(fun, leaves, None)
            found[:] = spec, [aval_of(x) for x in results], [] if checks is None else checks.checks
            return ()

        token = evaluating_shapes.set(True)
        try:
            jax.eval_shape(run, *[placeholder(aval) for aval in avals])
        finally:
            evaluating_shapes.reset(token)
        spec, results, checks = found
        return Shapes(spec, [as_jax_aval(aval) for aval in results], checks)

    def shapes_or_error(self, fun: Callable[..., Any], avals: Sequence[Aval]) -> Shapes | Exception:
        """Return the form of the result of ``fun``, or the error that it raises whatever its arguments are."""
        try:
            return self.eval_shape(fun, avals)
        except Exception as error:
            path = open_path.get()
            if path is None:
                raise
            kept: Exception = path.error_to_raise(error)
            return kept

    def run(
        self,
        fun: Callable[..., Any],
        leaves: Sequence[Any],
        values: Sequence[Any],
        avals: Sequence[Aval],
        before: Sequence[Any] = (),
    ) -> tuple[Any, ...]:
        """Return the leaves of the result in the dtypes of ``avals``, with ``values`` in place of the tracers.

        They are followed by the conditions of the errors that ``fun`` may raise, as one array, if there are any;
        ``before`` holds those of the step before.
        """
        jnp = loaded_jax().numpy
        _, results, checks = self._run(fun, leaves, values, before)
        made = [jnp.asarray(x, aval.dtype) for x, aval in zip(results, avals, strict=True)]
        return (*made, *([] if checks is None else [checks.failed]))

    def index_of(self, x: Tracer, *, known: bool) -> int:
        """Return the index of ``x`` in ``tracers``. Shallow copies of a tracer share one index."""
        key = (id(x._trace), id(x._val), id(x.link))
        if key not in self._indices:
            if known:
                raise NotDifferentiableError(
                    f"{self.call}: a function closes over a traced value that it did not close over when it was run "
                    f"before, got {describe(x)}. Let it do the same in every call, and write to nothing outside."
                )
            self._indices[key] = len(self.tracers)
            self.tracers.append(shallow_copy(x))  # the program may write to ``x``
        return self._indices[key]

    def _run(
        self,
        fun: Callable[..., Any],
        leaves: Sequence[Any],
        values: Sequence[Any] | None,
        before: Sequence[Any] = (),
    ) -> tuple[tree.PyTreeSpec, Sequence[Any], Any]:
        """Return structure and leaves of the result, and the checks that ``fun`` makes; None if there are none."""
        path = open_path.get()
        if path is None:
            return (*self._run_once(fun, leaves, values), None)
        if fun not in self._functions:
            self._functions.append(fun)
        number = self._number, self._functions.index(fun)
        found: tuple[tree.PyTreeSpec, Sequence[Any], Any] = path.run_body(
            f"a function of {self.call}", number, lambda *xs: self._run_once(fun, xs, values), leaves, before
        )
        return found

    def _run_once(
        self, fun: Callable[..., Any], leaves: Sequence[Any], values: Sequence[Any] | None
    ) -> tuple[tree.PyTreeSpec, list[Any]]:
        """Return structure and leaves of the result of ``fun`` on the open path."""
        replacements = _Replacements(self, values)
        trace = replacements.trace
        # An outer vmap is applied by JAX to the whole call: its axis has no name inside the body.
        token, around = named_axes.set(MappingProxyType({})), innermost_body.set(trace)
        try:
            with blocks.Block(lambda state: state._replace(watcher=_ReplacingWatcher(replacements))):
                out = fun(*[as_argument(trace.wrap(leaf)) for leaf in leaves])
                found, spec = tree.flatten(out)
                return spec, [replacements.leave(leaf) for leaf in found]
        finally:
            innermost_body.reset(around)
            named_axes.reset(token)
            trace.close()


class _Replacements:
    """Replacements of outer tracers in one run: zeros in the first run, ``values`` in the second."""

    def __init__(self, captured: Captured, values: Sequence[Any] | None) -> None:
        self.captured, self.values = captured, values
        self.known: dict[int, Tracer] = {}
        path = open_path.get()
        self.trace = LiftedTrace(
            lambda x: self.replacement_of(x)._val,
            prepare=None if path is None else path.prepare,
            watch=None if path is None else path.watch,
            as_numpy=captured.as_numpy or path is not None,
        )

    def replacement_of(self, x: Tracer) -> Tracer:
        index = self.captured.index_of(x, known=self.values is not None)
        if index not in self.known:
            value = _jax_zeros(aval_of(x)) if self.values is None else self.values[index]
            # not a constant, though a no_grad may be open when it is first needed
            self.known[index] = tracer_of(value, self.trace)
        return self.known[index]

    def leave(self, leaf: Any) -> Any:
        leaf = shallow_copy(leaf)
        leaf = self.trace.leave(self.replacement_of(leaf) if self.trace.is_outer(leaf) else leaf)
        if isinstance(leaf, Tracer):
            raise_escaped(type(leaf._trace))
        if not backend.is_value(leaf):
            raise InputError(
                f"{self.captured.call}: a function returned something that is not an array or a number, got "
                f"{describe(leaf)}. Return pytrees of arrays."
            )
        return loaded_jax().numpy.asarray(leaf)


class _ReplacingWatcher:
    """Watcher of a body: it makes operations that only involve outer tracers a part of the body too."""

    nans = all = False  # read by a debug_nans inside
    writes = True

    def __init__(self, replacements: _Replacements) -> None:
        self.replacements = replacements
        self.dropped: list[Any] = []
        self.meter = self  # a debug_nans inside calls its ``process`` for the operations that it checks

    def begin_pass(self) -> Callable[..., Any]:
        """Return the function that calls VJP rules, unchanged."""
        return call_vjp

    def begin(self, trace: Trace) -> None:
        """Note nothing about new traces."""

    def note_stopped(self, trace: Trace, args: tuple[Any, ...]) -> None:
        """Note nothing: a value that ``no_grad`` hides is a constant."""

    def backward_pass(self, pending: dict[int, Any]) -> None:
        """Return None: backward passes run unchanged."""

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let the operation work on the replacements of outer tracers."""
        replacements = self.replacements
        outer = replacements.trace.is_outer
        if any(outer(a) for a in args):
            return bind(primitive, tuple([replacements.replacement_of(a) if outer(a) else a for a in args]), params)
        return trace.process(primitive, args, params)


def _jax_zeros(aval: Aval) -> Any:
    """Return JAX zeros like ``aval``."""
    given = placeholder(aval)
    jnp = loaded_jax().numpy
    return jnp.asarray(given) if aval.weak else jnp.zeros(given.shape, given.dtype)
