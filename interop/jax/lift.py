"""Lifting: functions of funcgrad and NumPy as functions that JAX can transform.

Tracers of a ``LiftedTrace`` wrap JAX's tracers. That trace interprets nothing: it binds every primitive on the JAX
values inside and wraps the results again. ``np.sin(x)``, a pipeline or a funcgrad transform inside the function
therefore ends in ``jax.numpy`` on JAX's tracers, and JAX differentiates the calls by its own rules, without
funcgrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from traceback import walk_tb
from typing import Any, NoReturn, ParamSpec

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Primitive, Tracer, plain_value
from funcgrad.errors import StagingError, text_of
from funcgrad.interop.jax.conversion import copied_to_jax, flatten_with_jax
from funcgrad.kinds.custom import CustomRules, custom_call, without_deferred
from funcgrad.numpy.plain_values.hints import package_line, user_line
from funcgrad.optional import import_jax, loaded_jax
from funcgrad.shared_state import FORMAT_ERROR, open_path
from funcgrad.transforms.lifting import LiftedTrace, Watch
from funcgrad.transforms.transformed import Transformed, check_callable, name_of

P = ParamSpec("P")

CUSTOM: Primitive = custom_call.primitive


class ClosedOverTracer(BaseException):
    """Signal that a function to be staged closes over a value that is being transformed.

    ``ClosedOverTracer`` is not an ``Exception``, so the function does not catch it.
    """


def lifted_trace(*, refuse_closures: bool = False, watch: Watch | None = None) -> LiftedTrace:
    """Return a run of a function that takes values of JAX for NumPy's.

    Args:
        refuse_closures: whether to raise ``ClosedOverTracer`` when a value of an outer transform comes in.
        watch: function called with each primitive, the values it is applied to and its parameters.
    """
    return LiftedTrace(
        _raise_closure if refuse_closures else None,
        prepare=_with_numpy_dtypes if refuse_closures else _with_rules,
        watch=watch,
        as_numpy=True,
    )


def _raise_closure(x: Tracer) -> NoReturn:
    raise ClosedOverTracer


def _with_rules(primitive: Primitive, args: Any, params: Any) -> tuple[Any, dict[str, Any]]:
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


def _with_numpy_dtypes(primitive: Primitive, args: Any, params: Any) -> tuple[Any, dict[str, Any]]:
    """Prepare any call: as ``_with_rules`` does, with the arguments in NumPy's dtypes."""
    return _with_rules(primitive, _as_numpy_would(primitive, args), params)


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
        Precision is JAX's: float64 needs its x64 mode.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        StagingError: under ``jax.jit``, the function needed a concrete value, such as in a branch (a ``TypeError``).

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
    leaves, containers = flatten_with_jax(jax, (args, kwargs))
    return lifted(jax, lambda *found: containers.apply(fun, found), name=name_of(fun))(*leaves)


def lifted(
    jax: Any, fun: Callable[..., Any], watch: Watch | None = None, *, name: str = "the function"
) -> Callable[..., Any]:
    """Return ``fun``, a function of leaves, as a function of JAX values; its results are trees of JAX values."""

    def call(*leaves: Any) -> Any:
        with as_staging_errors(jax, "to_jax", name):
            return _run(jax, lifted_trace(watch=watch), fun, leaves)

    return call


def _run(jax: Any, trace: LiftedTrace, fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call ``fun`` with trees of JAX values in ``trace``; close ``trace`` afterwards."""
    path = open_path.set(None)  # JAX may be tracing further in than the program that could follow paths
    try:
        leaves, containers = flatten_with_jax(jax, args)
        out = fun(*containers(*[_enter(jax, trace, leaf) for leaf in leaves]))
    finally:
        open_path.reset(path)
        trace.close()
    found, containers = flatten_with_jax(jax, out)
    return containers(*[trace.leave(leaf) for leaf in found])


def _with_rules_on_jax(rules: CustomRules) -> CustomRules:
    """Return the user's custom rules as functions of JAX values; the rules may be written with NumPy too."""
    jax = loaded_jax()

    def lifting(fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            out = _run(jax, lifted_trace(), fun, args)
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


_STATIC = "If the value is known before, make it a static argument (static_argnums of jit)"
#: Pairs of what the code needed and what to write instead, by the name of JAX's error.
_JAX_ERRORS = {
    "TracerBoolConversionError": (
        "the truth value of an array (if, while, and, or, not)",
        "Use where(condition, a, b) for values, cond, while_loop or fori_loop for steps of a program, logical_and, "
        f"logical_or and logical_not for conditions. {_STATIC}.",
    ),
    "TracerIntegerConversionError": (
        "an integer from an array (an index of a list, a length, range)",
        f"Use take(table, i, axis=0) to look up an entry, fori_loop or scan to repeat. {_STATIC}.",
    ),
    "NonConcreteBooleanIndexError": (
        "the number of true entries of a mask (x[mask])",
        "Shapes must not depend on values: use where(mask, x, 0) for x[mask]. Sums, means, arithmetic and writes of "
        "x[mask] can stay.",
    ),
    "TracerArrayConversionError": (
        "an ndarray of its values (numpy.asarray, or a function that funcgrad does not know)",
        f"Use functions of funcgrad.numpy (stack and array join values), and from_jax for functions of JAX. {_STATIC}.",
    ),
    "ConcretizationTypeError": (
        "a value (float(x), int(x), or a shape that depends on values, as in nonzero and unique)",
        f"Use functions of funcgrad.numpy on arrays, and where(condition, a, b) in place of a selection. {_STATIC}.",
    ),
}


@contextmanager
def as_staging_errors(jax: Any, call: str, name: str) -> Iterator[None]:
    """Return a block that turns JAX's errors about values that are not known yet into ``StagingError``.

    Args:
        jax: the JAX module.
        call: name of the public function.
        name: name of the function that is run.
    """
    try:
        yield
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        known = next((kind for kind in kinds if kind in _JAX_ERRORS), None)
        text = text_of(error)
        if type(error) is TypeError and text.startswith(FORMAT_ERROR) and "Tracer" in text:
            known = "ConcretizationTypeError"
        elif known is None or not isinstance(error, getattr(jax.errors, known)):
            raise
        masked = any("mask" in frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__))  # looks into a mask
        raise staging_error(call, name, "NonConcreteBooleanIndexError" if masked else known, error) from error


def staging_error(
    call: str, name: str, kind: str = "TracerBoolConversionError", error: Exception | None = None, places: str = ""
) -> StagingError:
    """Return the error for a request for a value that is not known yet.

    Args:
        call: name of the public function.
        name: name of the function that is run.
        kind: name of JAX's error.
        error: the error that was raised; None if the request is running.
        places: what to say of where such values are requested.
    """
    what, remedy = _JAX_ERRORS[kind]
    what += places
    asked = package_line(error)
    if asked:  # which the user cannot rewrite
        what = f"{what}, by {asked}"
        remedy = "Call the function of the package outside of what is compiled, or write its formula with NumPy."
    return StagingError(
        f"{call}: {name} is being compiled, when values are not known yet, got a request for "
        f"{what}{getattr(error, 'user_line', None) or user_line(error)}. {remedy}"
    )
