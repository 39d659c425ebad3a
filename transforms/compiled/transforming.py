"""Transforms of recorded functions: a call is one operation, whose derivative and batching rules are programs.

The rule of a transform is the transform of the function, recorded itself. For example, the pullback is a program of
arguments and cotangents that runs forward and back. Its derivative is a program too, so every order has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, named_axes
from funcgrad.core import Primitive, Tracer, bind, replace_at
from funcgrad.forward import ForwardTrace
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.reverse import ReverseTrace, vjp_for_all
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.compiled.arguments import is_number, is_setting
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.vectorize import vmap

Leaves = Sequence[Any]
Run = Callable[..., Any]
_TRACES = (ReverseTrace, ForwardTrace, BatchTrace)


@dataclass(eq=False)
class RecordedPart:
    """Function of leaves, its recorded version, and the functions that transforms have derived from it.

    Attributes:
        fun: the function itself.
        run: the recorded version, for plain values.
        record: ``record(fun, strict)`` returns the recorded version of a function, for plain values.
        name: the name of the function.
        strict: whether ``run`` refuses calls without a recorded program; the caller then takes another path.
        unit_cotangent: by traced arguments, whether the last pullback got a number's cotangent of 1.
    """

    fun: Run
    run: Run
    record: Callable[[Run, bool], Run]
    name: str
    strict: bool
    unit_cotangent: dict[tuple[int, ...], bool] = field(default_factory=dict)
    _derived: dict[Any, RecordedPart] = field(default_factory=dict)

    def derived(self, make: Callable[..., Run], *details: Any) -> RecordedPart:
        """Return the part of ``make(fun, *details)``. If it cannot be recorded, a pullback may run eagerly."""
        found = self._derived.get((make, details))
        if found is None:
            fun, strict = make(self.fun, *details), self.strict and make not in (_vjp_function, _with_gradients)
            made = RecordedPart(fun, self.record(fun, strict), self.record, self.name, strict)
            found = self._derived.setdefault((make, details), made)
        return found


@dataclass(eq=False, slots=True)
class Call:
    """Call of a part.

    Attributes:
        part: the part that is called.
        result_structure: the structure of the result, once it is known.
    """

    part: RecordedPart
    result_structure: Any = None

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        """Return the leaves of the result, through all transforms among ``leaves``."""
        for x in leaves:
            if isinstance(x, Tracer):
                found: tuple[Any, ...] = bind(_recorded_call, leaves, {"call": self})
                return found
        return _impl(np, *leaves, call=self)

    def __repr__(self) -> str:
        return self.part.name


def recorded_function(
    fun: Run, run: Run, record: Callable[[Run, bool], Run], name: str, spec: tree.PyTreeSpec, leaves: Leaves
) -> Callable[[Leaves], Any]:
    """Return ``fun`` as a function of its leaves, some of which are tracers, for one structure with the same settings.

    Args:
        fun: the function itself.
        run: the recorded version.
        record: see ``RecordedPart``.
        name: the name of the function.
        spec: the structure of ``(args, kwargs)``.
        leaves: the leaves of ``(args, kwargs)``; arrays and numbers among them are inputs.
    """
    live = tuple(map(is_input, leaves))  # tuples: a program checks in each call that lists are unchanged
    settings = tuple([None if flag else x for x, flag in zip(leaves, live, strict=True)])

    def of_inputs(fun: Run) -> Run:
        def of(*inputs: Any) -> Any:
            args, kwargs = tree.unflatten(spec, merge_leaves(settings, live, inputs))
            return fun(*args, **kwargs)

        return of

    # a pullback that a caller keeps runs the function outside of the transform, which would rebuild it
    part = RecordedPart(of_inputs(SelfRebuilding(fun)), of_inputs(run), record, name, strict=True)

    def recorded(leaves: Leaves) -> Any:
        call = Call(part)
        outs = call(*compress(leaves, live))
        return tree.unflatten(call.result_structure, list(outs))

    return recorded


def is_input(x: Any) -> bool:
    """Whether a leaf of the arguments is an input, not a setting."""
    return type(x) is np.ndarray or isinstance(x, Tracer) or is_number(x)


def can_transform(leaves: Leaves) -> bool:
    """Whether recorded code can handle the transforms of these leaves: derivatives and batches of NumPy arrays."""
    if named_axes.get():
        return False
    traced = False
    for x in leaves:
        if isinstance(x, Tracer):
            traced = True
            while isinstance(x, Tracer) and isinstance(x._trace, _TRACES):
                x = x._val
        if not (type(x) is np.ndarray and x.dtype.kind in "fciub") and not is_number(x) and not is_setting(x):
            return False
    return traced


# ---- the operation ---------------------------------------------------------------------------------------------------


def _impl(xp: Any, *leaves: Any, call: Call) -> tuple[Any, ...]:
    outs, call.result_structure = tree.flatten(call.part.run(*leaves))
    return tuple(outs)


def _vjp_function(fun: Run, traced: tuple[int, ...], live: tuple[int, ...]) -> Run:
    """Make the function from all arguments and cotangents of results ``live`` to cotangents of ``traced``."""

    def run_vjp(*values: Any) -> list[Any]:
        count = len(values) - len(live)
        of, moving = _function_of_traced(fun, values[:count], traced, live)
        return list(vjp(lambda *xs: of(*xs)[0], *moving)[1](list(values[count:])))

    return run_vjp


def _with_gradients(fun: Run, traced: tuple[int, ...]) -> Run:
    """Make the function that returns the result, a number, and its derivatives by the arguments ``traced``."""

    def with_gradients(*values: Any) -> tuple[Any, list[Any]]:
        of, moving = _function_of_traced(fun, values, traced, None)
        (value,), pullback, result = vjp(of, *moving, has_aux=True)
        return result, list(pullback([np.ones((), backend.dtype_of(value))[()]]))

    return with_gradients


def _jvp_function(fun: Run, traced: tuple[int, ...]) -> Run:
    """Make the function from all arguments and tangents of ``traced`` to the result and its tangents."""

    def run_jvp(*values: Any) -> tuple[Any, list[Any]]:
        count = len(values) - len(traced)
        of, moving = _function_of_traced(fun, values[:count], traced, None)
        _, tangents, result = jvp(of, tuple(moving), tuple(values[count:]), has_aux=True)
        return result, tangents

    return run_jvp


def _batched_function(fun: Run, flags: tuple[bool, ...]) -> Run:
    return vmap(fun, in_axes=tuple([0 if flag else None for flag in flags]))


def _function_of_traced(fun: Run, values: Leaves, traced: tuple[int, ...], live: Any) -> tuple[Run, list[Any]]:
    """Return the function of the arguments ``traced``, and the values of these arguments.

    The function returns the leaves ``live`` of the result (None for all that may have a derivative) and the result.
    """

    def of(*moving: Any) -> tuple[list[Any], Any]:
        result = fun(*replace_at(values, traced, moving))
        outs = tree.leaves(result)
        return [out for i, out in enumerate(outs) if (backend.is_inexact(out) if live is None else i in live)], result

    return of, [values[i] for i in traced]


def _reverse(args: Leaves, traced: tuple[int, ...], params: dict[str, Any]) -> Any:
    """Compute a call. If the last cotangent was 1, as for most losses, one run gives the derivatives too."""
    call: Call = params["call"]
    part, traced, gradients = call.part, tuple(traced), None
    if part.unit_cotangent.get(traced):
        both = Call(part.derived(_with_gradients, traced))
        found = both(*args)
        result, gradients = tree.unflatten(both.result_structure, list(found))
        leaves, call.result_structure = tree.flatten(result)
        outs = tuple(leaves)
    else:
        first = Call(part)
        outs = first(*args)
        call.result_structure = first.result_structure
    return outs, vjp_for_all("jit", _vjp_of_call, len(traced)), (part, args, traced, gradients)


def _vjp_of_call(ct: Any, part: RecordedPart, args: Leaves, traced: tuple[int, ...], gradients: Any) -> Any:
    live = tuple([i for i, c in enumerate(ct) if c is not None])
    if not live:
        return [None] * len(traced)
    part.unit_cotangent[traced] = unit_cotangent = len(ct) == 1 and type(ct[0]) is np.float64 and bool(ct[0] == 1.0)
    if unit_cotangent and gradients is not None:
        return gradients
    return Call(part.derived(_vjp_function, traced, live))(*args, *[ct[i] for i in live])


def _forward(args: Leaves, tangents: Leaves, params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    traced = tuple([i for i, t in enumerate(tangents) if t is not None])
    run_jvp = Call(call.part.derived(_jvp_function, traced))
    found = run_jvp(*args, *[tangents[i] for i in traced])
    result, moving = tree.unflatten(run_jvp.result_structure, list(found))
    outs, call.result_structure = tree.flatten(result)
    rest = iter(moving)
    return tuple(outs), tuple([next(rest) if backend.is_inexact(out) else None for out in outs])


def _batch(within: BatchTrace, args: Leaves, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    mapped = Call(call.part.derived(_batched_function, tuple(batched)))
    outs = mapped(*args)
    call.result_structure = mapped.result_structure
    return outs, (True,) * len(outs)


_recorded_call = Primitive("jit", _impl, _reverse, _forward, _batch, multiple=True, runs_user_code=True)
