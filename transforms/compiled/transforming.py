"""Transforms of recorded functions: a call is one operation, whose derivative and batching rules are programs.

The rule of a transform is the transform of the function, recorded itself. For example, the pullback is a program of
arguments and cotangents that runs forward and back. Its derivative is a program too, so every order has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, named_axes
from funcgrad.core import Primitive, Tracer, bind
from funcgrad.forward import ForwardTrace
from funcgrad.reverse import ReverseTrace, vjp_for_all
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.compiled.arguments import is_number, is_setting
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.static_arguments import replace_at
from funcgrad.transforms.vectorize import vmap

__all__ = ["Through", "can_go_through", "is_input"]

Leaves = Sequence[Any]
Run = Callable[..., Any]
_TRACES = (ReverseTrace, ForwardTrace, BatchTrace)


class Part:
    """Function of leaves, its recorded version, and the functions that transforms have derived from it.

    Attributes:
        fun: the function itself.
        run: the recorded version, for plain values.
        record: ``record(fun, strict)`` returns the recorded version of a function, for plain values.
        name: the name of the function.
        strict: whether ``run`` refuses calls without a recorded program; the caller then takes another path.
        at_one: by traced arguments, whether the last pullback got a number's cotangent of 1.
    """

    def __init__(self, fun: Run, run: Run, record: Callable[[Run, bool], Run], name: str, strict: bool) -> None:
        self.fun, self.run, self.record, self.name, self.strict = fun, run, record, name, strict
        self.at_one: dict[tuple[int, ...], bool] = {}
        self._derived: dict[Any, Part] = {}

    def derived(self, make: Callable[..., Run], *details: Any) -> Part:
        """Return the part of ``make(fun, *details)``. If it cannot be recorded, a pullback may run eagerly."""
        found = self._derived.get((make, details))
        if found is None:
            fun, strict = make(self.fun, *details), self.strict and make not in (_pulled, _with_slopes)
            made = Part(fun, self.record(fun, strict), self.record, self.name, strict)
            found = self._derived.setdefault((make, details), made)
        return found


class Call:
    """Call of a part.

    Attributes:
        part: the part that is called.
        told: the structure of the result, once it is known.
    """

    __slots__ = ("part", "told")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.told: Any = None

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        """Return the leaves of the result, through all transforms among ``leaves``."""
        for x in leaves:
            if isinstance(x, Tracer):
                found: tuple[Any, ...] = bind(_recorded_call, leaves, {"call": self})
                return found
        outs, self.told = tree.flatten(self.part.run(*leaves))
        return tuple(outs)

    def __repr__(self) -> str:
        return self.part.name


class Through:
    """Recorded function for arguments of one structure with the same settings.

    Args:
        fun: the function itself.
        run: the recorded version.
        record: see ``Part``.
        name: the name of the function.
        spec: the structure of ``(args, kwargs)``.
        leaves: the leaves of ``(args, kwargs)``; arrays and numbers among them are inputs.
    """

    def __init__(self, fun: Run, run: Run, record: Any, name: str, spec: tree.PyTreeSpec, leaves: Leaves) -> None:
        self._settings = [None if is_input(x) else x for x in leaves]
        self._live = [is_input(x) for x in leaves]
        self._spec = spec
        self._part = Part(self._of_inputs(fun), self._of_inputs(run), record, name, strict=True)

    def __call__(self, leaves: Leaves) -> Any:
        """Return the result for other inputs, some of which are tracers."""
        call = Call(self._part)
        outs = call(*compress(leaves, self._live))
        return tree.unflatten(call.told, list(outs))

    def _of_inputs(self, fun: Run) -> Run:
        def run(*inputs: Any) -> Any:
            args, kwargs = tree.unflatten(self._spec, merge_leaves(self._settings, self._live, inputs))
            return fun(*args, **kwargs)

        return run


def is_input(x: Any) -> bool:
    """Whether a leaf of the arguments is an input, not a setting."""
    return type(x) is np.ndarray or isinstance(x, Tracer) or is_number(x)


def can_go_through(leaves: Leaves) -> bool:
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
    outs, call.told = tree.flatten(call.part.run(*leaves))
    return tuple(outs)


def _pulled(fun: Run, traced: tuple[int, ...], live: tuple[int, ...]) -> Run:
    """Make the function from all arguments and cotangents of results ``live`` to cotangents of ``traced``."""

    def pulled(*values: Any) -> list[Any]:
        count = len(values) - len(live)
        of, moving = _of_some(fun, values[:count], traced, live)
        return list(vjp(lambda *xs: of(*xs)[0], *moving)[1](list(values[count:])))

    return pulled


def _with_slopes(fun: Run, traced: tuple[int, ...]) -> Run:
    """Make the function that returns the result, a number, and its derivatives by the arguments ``traced``."""

    def with_slopes(*values: Any) -> tuple[Any, list[Any]]:
        of, moving = _of_some(fun, values, traced, None)
        (value,), pullback, result = vjp(of, *moving, has_aux=True)
        return result, list(pullback([np.ones((), backend.dtype_of(value))[()]]))

    return with_slopes


def _pushed(fun: Run, traced: tuple[int, ...]) -> Run:
    """Make the function from all arguments and tangents of ``traced`` to the result and its tangents."""

    def pushed(*values: Any) -> tuple[Any, list[Any]]:
        count = len(values) - len(traced)
        of, moving = _of_some(fun, values[:count], traced, None)
        _, tangents, result = jvp(of, tuple(moving), tuple(values[count:]), has_aux=True)
        return result, tangents

    return pushed


def _batched(fun: Run, flags: tuple[bool, ...]) -> Run:
    return vmap(fun, in_axes=tuple([0 if flag else None for flag in flags]))


def _of_some(fun: Run, values: Leaves, traced: tuple[int, ...], live: Any) -> tuple[Run, list[Any]]:
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
    part, traced, slopes = call.part, tuple(traced), None
    if part.at_one.get(traced):
        both = Call(part.derived(_with_slopes, traced))
        found = both(*args)
        result, slopes = tree.unflatten(both.told, list(found))
        leaves, call.told = tree.flatten(result)
        outs = tuple(leaves)
    else:
        first = Call(part)
        outs = first(*args)
        call.told = first.told
    return outs, vjp_for_all("jit", _backwards, len(traced)), (part, args, traced, slopes)


def _backwards(ct: Any, part: Part, args: Leaves, traced: tuple[int, ...], slopes: Any) -> Any:
    live = tuple([i for i, c in enumerate(ct) if c is not None])
    if not live:
        return [None] * len(traced)
    part.at_one[traced] = at_one = len(ct) == 1 and type(ct[0]) is np.float64 and bool(ct[0] == 1.0)
    if at_one and slopes is not None:
        return slopes
    return Call(part.derived(_pulled, traced, live))(*args, *[ct[i] for i in live])


def _forward(args: Leaves, tangents: Leaves, params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    traced = tuple([i for i, t in enumerate(tangents) if t is not None])
    pushed = Call(call.part.derived(_pushed, traced))
    found = pushed(*args, *[tangents[i] for i in traced])
    result, moving = tree.unflatten(pushed.told, list(found))
    outs, call.told = tree.flatten(result)
    rest = iter(moving)
    return tuple(outs), tuple([next(rest) if backend.is_inexact(out) else None for out in outs])


def _batch(within: BatchTrace, args: Leaves, batched: tuple[bool, ...], params: dict[str, Any]) -> Any:
    call: Call = params["call"]
    mapped = Call(call.part.derived(_batched, tuple(batched)))
    outs = mapped(*args)
    call.told = mapped.told
    return outs, (True,) * len(outs)


_recorded_call = Primitive("jit", _impl, _reverse, _forward, _batch, multiple=True, runs_user_code=True)
