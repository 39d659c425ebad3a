"""SciPy functions that look at values, run inside ``vmap`` for one example after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from itertools import compress
from threading import get_ident
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, is_in_batch, split_into_examples
from funcgrad.core import Tracer, is_array, replace_at, tracer_of, traces_of
from funcgrad.errors import ConcretizationError, FuncgradError, NotDifferentiableError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.own import own
from funcgrad.shared_state import pending_refusals

_Flat = Callable[..., list[Any]]


def is_public(fun: Any, homes: Sequence[str]) -> bool:
    """Whether ``fun`` is a public function of SciPy, found in one of the modules ``homes``."""
    name, home = getattr(fun, "__name__", "_"), getattr(fun, "__module__", None)
    if name.startswith("_") or not isinstance(home, str) or not home.startswith("scipy."):
        return False
    shown = [sys.modules.get(module) for module in (*homes, home.replace("._", ".")) if "._" not in module]
    return any(module is not None and vars(module).get(name) is fun for module in shown)


def with_example_loop(fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return ``fun`` such that, if it refuses the batch of a ``vmap``, it is called for each example in turn.

    The results must have one shape, and everything that differs between the examples must be an argument of ``fun``.
    """

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except (ConcretizationError, NotDifferentiableError) as error:
            if _writes_to_argument(fun, args, kwargs):
                raise  # the write would be for one example only
            leaves, spec = tree.flatten((args, kwargs))
            traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]
            if getattr(error, "compiled", False) or not any(map(is_in_batch, leaves)):
                raise
            if any(type(trace) is BatchTrace and not trace.size for trace in traces_of(leaves)):
                public = ".".join([part for part in name.split(".") if part[0] != "_"])
                raise ConcretizationError(
                    f"{public}: the shape of the result follows from an example, got a vmap without examples"
                    f"{user_line()}. Return the result for an empty batch before the vmap."
                ) from None
            forget_refusal()
            results = _FlatCall(fun, leaves, spec, traced)
            try:
                outs = _run_or_loop(name, results.flat, *[leaves[i] for i in traced])
            except (FuncgradError, ValueError):
                pending_refusals[get_ident()] = str(error)
                raise error from None
            return results.unflatten(outs)

    call.__module__ = __name__  # else it would be rebuilt
    return call


#: Names under which functions of SciPy take arrays for their results.
_RESULTS = ("out", "output", "distances", "indices")


def _writes_to_argument(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call gives an array for results, by name or by place."""
    given = kwargs
    if args:
        try:
            given = signature(fun).bind_partial(*args, **kwargs).arguments
        except (TypeError, ValueError):  # compiled code without a signature, or arguments that do not fit
            pass
    return any(is_array(given.get(name)) for name in _RESULTS)


class _FlatCall:
    """Call as a function of its traced leaves that returns the arrays in its result."""

    def __init__(self, fun: Callable[..., Any], leaves: list[Any], spec: Any, traced: list[int]) -> None:
        self.fun, self.leaves, self.spec, self.traced = fun, leaves, spec, traced
        self.rest: list[Any] = []
        self.out_spec: Any = None

    def flat(self, *values: Any) -> list[Any]:
        """Return the arrays in the result for these values of the traced leaves."""
        args, kwargs = tree.unflatten(self.spec, replace_at(self.leaves, self.traced, values))
        result = self.fun(*args, **kwargs)
        self.kind = type(result)
        if hasattr(self.kind, "_extra_fields"):
            raise NotDifferentiableError("the result has attributes that are no elements of it")
        found, out_spec = tree.flatten(dict(result) if self._is_dict_subclass() else result)
        arrays = list(map(is_array, found))
        rest = [None if array else x for x, array in zip(found, arrays, strict=True)]
        known = all(type(x) in tree.ATOMS for x in rest)
        if not known or (self.out_spec is not None and (self.out_spec != out_spec or self.rest != rest)):
            raise NotDifferentiableError("the result holds what is no array, or not the same in each example")
        self.rest, self.arrays, self.out_spec = rest, arrays, out_spec
        return list(compress(found, arrays))

    def unflatten(self, outs: list[Any]) -> Any:
        """Return the result with these arrays in it."""
        given = iter(outs)
        filled = [next(given) if array else x for x, array in zip(self.rest, self.arrays, strict=True)]
        found = tree.unflatten(self.out_spec, filled)
        return self.kind(**found) if self._is_dict_subclass() else found

    def _is_dict_subclass(self) -> bool:
        """Whether the result is of a SciPy class derived from ``dict``."""
        return issubclass(self.kind, dict) and self.kind is not dict


def _run_or_loop(name: str, flat: _Flat, *leaves: Any) -> list[Any]:
    """Return ``flat(*leaves)``; if it is refused, call ``flat`` for each example of the innermost ``vmap`` in turn.

    A derivative that is taken inside of the ``vmap`` is taken for each example.
    """
    try:
        return flat(*leaves)
    except (ConcretizationError, NotDifferentiableError):
        if not any(map(is_in_batch, leaves)):
            raise
        forget_refusal()
    moving = [i for i, leaf in enumerate(leaves) if backend.is_inexact(leaf)]
    rules = CustomRules(
        name,
        lambda *leaves: _split(name, flat, leaves),
        lambda *leaves: (_run_or_loop(name, flat, *leaves), leaves),
        lambda leaves, cts: _compute_vjp(name, flat, moving, leaves, cts),
        lambda leaves, tangents: _compute_jvp(name, flat, moving, leaves, tangents),
    )
    return list(custom_call(*leaves, rules=rules))


def _split(name: str, flat: _Flat, leaves: Sequence[Any]) -> list[Any]:
    """Call ``flat`` for each example of the innermost ``vmap`` among ``leaves``, and stack the results."""
    split = split_into_examples(leaves)
    if split is None:
        return flat(*leaves)
    within, examples = split
    found = [_run_or_loop(name, flat, *example) for example in examples]
    levels = [part._trace.level for parts in found for part in parts if isinstance(part, Tracer)]
    if any(level >= within.level for level in levels):  # because functions in the call close over values of the batch
        raise NotDifferentiableError("a value of the vmap that is no argument")
    return [tracer_of(fnp.stack(parts), within) for parts in zip(*found, strict=True)]


def _inexact_results_of(flat: _Flat, moving: list[int], leaves: Sequence[Any]) -> Callable[..., list[Any]]:
    def of(*moved: Any) -> list[Any]:
        return [out for out in flat(*replace_at(leaves, moving, moved)) if backend.is_inexact(out)]

    return of


def _compute_vjp(name: str, flat: _Flat, moving: list[int], leaves: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    n = len(leaves)
    cts = [ct for ct in cts if backend.is_inexact(ct)]

    def back(*both: Any) -> list[Any]:
        vjp = own("transforms").vjp
        return list(vjp(_inexact_results_of(flat, moving, both[:n]), *[both[i] for i in moving])[1](list(both[n:])))

    found = dict(zip(moving, _run_or_loop(name, back, *leaves, *cts), strict=True))
    return [found.get(i) for i in range(n)]


def _compute_jvp(
    name: str, flat: _Flat, moving: list[int], leaves: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    n = len(leaves)

    def ahead(*both: Any) -> list[Any]:
        jvp = own("transforms").jvp
        point = tuple([both[i] for i in moving])
        return list(jvp(_inexact_results_of(flat, moving, both[:n]), point, tuple(both[n:]))[1])

    outs = _run_or_loop(name, flat, *leaves)
    moved = iter(_run_or_loop(name, ahead, *leaves, *[tangents[i] for i in moving]))
    return outs, [next(moved) if backend.is_inexact(out) else None for out in outs]
