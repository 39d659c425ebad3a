"""Lifting: functions of funcgrad and NumPy as functions that JAX can transform.

Tracers of a ``LiftedTrace`` wrap JAX's tracers. That trace interprets nothing: it binds every primitive on the JAX
values inside and wraps the results again. ``np.sin(x)``, a pipeline or a funcgrad transform inside the function
therefore ends in ``jax.numpy`` on JAX's tracers, and JAX differentiates the calls by its own rules, without
funcgrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, ParamSpec

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Primitive, Tracer, describe, is_array, plain_value
from funcgrad.errors import StagingError
from funcgrad.interop.jax.conversion import Containers, copied_to_jax, flatten
from funcgrad.interop.jax.paths import Subject, follow_paths
from funcgrad.interop.jax.programs import Checks, Static, split_checks, with_checks
from funcgrad.interop.jax.unknown import as_staging_errors, staging_error
from funcgrad.kinds.custom import CustomRules, custom_call, without_deferred
from funcgrad.optional import import_jax, loaded_jax
from funcgrad.shared_state import open_path
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.control.staging import is_abstract
from funcgrad.transforms.lifting import LiftedTrace, Prepare, Watch
from funcgrad.transforms.transformed import Transformed, check_callable, name_of

P = ParamSpec("P")

CUSTOM: Primitive = custom_call.primitive


class ClosedOverTracer(BaseException):
    """Signal that a function to be staged closes over a value that is being transformed.

    ``ClosedOverTracer`` is not an ``Exception``, so the function does not catch it.
    """


def lifted_trace(
    *, refuse_closures: bool = False, watch: Watch | None = None, prepare: Prepare | None = None
) -> LiftedTrace:
    """Return a run of a function that takes values of JAX for NumPy's.

    Args:
        refuse_closures: whether to raise ``ClosedOverTracer`` when a value of an outer transform comes in.
        watch: function called with each primitive, the values it is applied to and its parameters.
        prepare: prepares each operation; by default ``with_rules`` does.
    """
    return LiftedTrace(
        _raise_closure if refuse_closures else None, prepare=prepare or with_rules, watch=watch, as_numpy=True
    )


def _raise_closure(x: Tracer) -> NoReturn:
    raise ClosedOverTracer


def with_rules(primitive: Primitive, args: Any, params: Any) -> tuple[Any, dict[str, Any]]:
    """Prepare any call: long integers become floating numbers, and the user's rules take values of JAX."""
    params = {**params, "rules": _with_rules_on_jax(params["rules"])} if primitive is CUSTOM else params
    return _without_long_integers(args), params


def _without_long_integers(args: Sequence[Any]) -> Sequence[Any]:
    """Return ``args`` with floating numbers for Python's integers that JAX's integers cannot hold, as NumPy has them.

    ``x / math.factorial(25)`` is such a case. Beside integers NumPy refuses them, too.
    """
    if int not in map(type, args):
        return args
    limit = 1 << (63 if loaded_jax().config.jax_enable_x64 else 31)
    long = [type(a) is int and not -limit <= a < limit for a in args]
    if not any(long) or not any(backend.is_value(a) and backend.is_inexact(a) for a in args):
        return args
    return [float(a) if flag else a for a, flag in zip(args, long, strict=True)]


def with_numpy_dtypes(primitive: Primitive, args: Any, params: Any) -> tuple[Any, dict[str, Any]]:
    """Prepare any call: as ``with_rules`` does, with the arguments in NumPy's dtypes."""
    return with_rules(primitive, _as_numpy_would(primitive, args), params)


def _as_numpy_would(primitive: Primitive, args: Sequence[Any]) -> Sequence[Any]:
    """Return ``args`` in the dtypes of NumPy's ufunc, if the ufunc turns integers into floating numbers.

    JAX would make float32 of int32, and of int64 combined with float32.
    """
    ufunc = getattr(np, primitive.name, None)
    jax = loaded_jax()
    if not isinstance(ufunc, np.ufunc) or ufunc.nin != len(args) or not jax.config.jax_enable_x64:
        return args
    if not any(isinstance(a, jax.Array) and a.dtype.kind in "biu" for a in args):
        return args
    given = [_WEAK.get(a.dtype.kind, a.dtype) if getattr(a, "weak_type", False) else _kind(a) for a in args]
    if all(isinstance(kind, type) for kind in given):  # Python's numbers, or counters that stand for them: they stay so
        return args
    loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    if loop[-1].kind not in "fc":
        return args
    return [jax.numpy.asarray(a, to) if _kind(a) != to else a for a, to in zip(args, loop, strict=False)]


_WEAK = {"i": int, "f": float, "c": complex}


def _kind(a: Any) -> Any:
    """Return what NumPy's promotion looks at: the type of a Python number, else the dtype."""
    return type(a) if type(a) in (int, float, complex) else backend.dtype_of(a)


def to_jax(fun: Callable[P, Any]) -> Callable[P, Any]:
    """Return ``fun`` as a function that JAX can transform, even if it calls plain NumPy.

    Functions of ``funcgrad.numpy`` work on JAX arrays without ``to_jax``. It is for functions that call plain
    NumPy (``np.sin(x)``), which would turn a JAX array into an ndarray and refuse a JAX tracer.

    Args:
        fun: a function of arrays or pytrees, written with NumPy, funcgrad.numpy or funcgrad's transforms.

    Returns:
        A function of the same arguments. JAX computes with floating and complex arrays, and with all JAX arrays;
        Python's and NumPy's integers, booleans and other leaves stay unchanged.
        Precision is JAX's: float64 needs its x64 mode. Where Python branches on values that are not known, the
        function runs once for each path, as in ``jit``; a path that raises an error gives NaN.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        StagingError: under ``jax.jit``, the function needed a concrete value, takes too many paths, or raises an error
            on one and its result cannot be NaN (a ``TypeError``).

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from funcgrad.interop import to_jax
        >>> slope = jax.jit(jax.grad(to_jax(lambda x: np.sin(x) * x)))
        >>> print(f"{slope(1.0):.3f}")
        1.382
    """
    check_callable("to_jax", fun)
    return Transformed(run_lifted, fun, None, "{fun} as a function that JAX can transform.")


def run_lifted(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run ``to_jax(fun)`` on these arguments."""
    jax = import_jax("to_jax")
    leaves, containers = flatten((args, kwargs))
    return lifted(jax, lambda *found: containers.apply(fun, found), name=name_of(fun))(*leaves)


def lifted(
    jax: Any, fun: Callable[..., Any], watch: Watch | None = None, *, name: str = "the function"
) -> Callable[..., Any]:
    """Return ``fun``, a function of leaves, as a function of JAX values; its results are trees of JAX values."""

    def call(*leaves: Any) -> Any:
        with as_staging_errors(jax, "to_jax", name):
            return _run(jax, Subject("to_jax", name), fun, leaves, watch)

    return call


#: Functions with rules of the user, which JAX calls.
_RULES = Subject("jit", "a function with custom rules, in a compiled program,")


@dataclass(eq=False)
class _Result(Static):
    """Static part of a result; ``inner`` are the containers of its leaves, of which ``others`` are not arrays."""

    others: list[Any]
    arrays: list[bool]


def _run(jax: Any, subject: Subject, fun: Callable[..., Any], args: tuple[Any, ...], watch: Watch | None = None) -> Any:
    """Call ``fun`` with trees of JAX values, on all paths that it may take."""
    leaves, containers = flatten(args)
    unknown = [isinstance(leaf, jax.Array) and is_abstract([leaf]) for leaf in leaves]

    def run_once(given: Sequence[Any], watch: Watch | None) -> tuple[list[Any], Containers]:
        trace = lifted_trace(watch=watch)
        try:
            out = fun(*containers(*[_enter(jax, trace, leaf) for leaf in given]))
        finally:
            trace.close()
        found, structure = flatten(out)
        return [trace.leave(leaf) for leaf in found], structure

    if not any(unknown):
        of_run = any(isinstance(leaf, Tracer) for leaf in leaves)  # of ``jit``, which goes on here
        path = open_path.set(open_path.get() if of_run else None)
        try:
            found, structure = run_once(leaves, watch)
        finally:
            open_path.reset(path)
        return structure(*found)

    def run(*values: Any) -> Any:
        path = open_path.get()
        path.leaves, path.prepare = values, with_rules
        found, structure = run_once(merge_leaves(leaves, unknown, values), path.watch)
        if path.has_answered and any(isinstance(x, Tracer) for x in found):  # of a transform of funcgrad around
            raise staging_error(subject.call, subject.name)
        arrays = [is_array(x) for x in found]
        others = [None if flag else x for x, flag in zip(found, arrays, strict=True)]
        results = [x for x, flag in zip(found, arrays, strict=True) if flag]
        return with_checks(jax, _Result(structure, others, arrays), results, path.made_checks(jax))

    out = follow_paths(jax, subject.anew(), run, [leaf for leaf, flag in zip(leaves, unknown, strict=True) if flag])
    static, results, checks = split_checks(out.func, list(out.args))
    if checks is not None:
        results = [_nan_if_failed(jax, subject, x, checks) for x in results]
    return static.inner(*merge_leaves(static.others, static.arrays, results))


def _nan_if_failed(jax: Any, subject: Subject, x: Any, checks: Checks) -> Any:
    """Return a result that is NaN, with derivatives of NaN, where a check has failed: JAX raises no errors."""
    place = checks.checks[0].place
    if subject is _RULES:
        raise StagingError(
            f"{subject.call}: {subject.name} must not raise an error that depends on a value, got one{place}. Check "
            "the value before the call."
        )
    if not backend.is_inexact(x):
        raise StagingError(
            f"{subject.call}: {subject.name} raises an error on a path, where JAX needs a result that is NaN, got "
            f"{describe(x)}{place}. Check the value before, or compile the function with funcgrad's jit."
        )
    return x * jax.numpy.where(checks.failed.any(), jax.numpy.nan, 1.0).astype(backend.dtype_of(x))


def _with_rules_on_jax(rules: CustomRules) -> CustomRules:
    """Return the user's custom rules as functions of JAX values; the rules may be written with NumPy too."""
    jax = loaded_jax()

    def lifting(fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            out = _run(jax, _RULES, fun, args)
            return tree.map(lambda x: plain_value(x) if isinstance(getattr(x, "_trace", None), LiftedTrace) else x, out)

        return call

    return replace(
        rules,
        fun=lifting(rules.fun),
        fwd=None if rules.fwd is None else lifting(rules.fwd),
        bwd=None if rules.bwd is None else lifting(without_deferred(rules.bwd)),
        jvp=None if rules.jvp is None else lifting(rules.jvp),
    )


def _enter(jax: Any, trace: LiftedTrace, leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        return trace.leaf(leaf)
    if not isinstance(leaf, Tracer) and backend.is_value(leaf) and backend.is_inexact(leaf):
        return trace.leaf(copied_to_jax(jax, leaf))
    return leaf
