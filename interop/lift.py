"""Lifting: functions of funcgrad and NumPy as functions that JAX can transform.

JAX's own tracers are wrapped in tracers of an interpreter that interprets nothing: it binds every
primitive on the JAX values inside and wraps the results again. So ``np.sin(x)``, a pipeline or a funcgrad
transform inside the function ends in ``jax.numpy`` on JAX's tracers, and JAX differentiates that by its
own rules, knowing none of funcgrad's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer
from funcgrad.interop.conversion import bottom, private, take_apart
from funcgrad.interop.refusing import staging
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.optional import import_jax, loaded_jax
from funcgrad.transforms.transformed import Transformed, check_callable, name_of
from funcgrad.writable import released

__all__ = ["Closure", "LiftTrace", "LiftTracer", "lifted", "to_jax"]

P = ParamSpec("P")

CUSTOM: Primitive = custom_call.primitive  # type: ignore[attr-defined]


class LiftTracer(Tracer):
    """A value of JAX in a function that was not written for JAX.

    Where Python or NumPy ask it for a plain value, the value of JAX answers, if it knows.
    """

    __slots__ = ()
    as_numpy = True

    def __init__(self, value: Any, trace: LiftTrace) -> None:
        self.value = value
        self._trace = trace

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype, copy=copy)

    def item(self, *args: Any) -> Any:
        """The number itself."""
        return np.asarray(self.value).item(*args)

    def tolist(self) -> Any:
        """The numbers in nested lists."""
        return np.asarray(self.value).tolist()


class Closure(BaseException):
    """A function that is to be staged closes over a value that is being transformed.

    Not an ``Exception``: the function must not catch it.
    """


class LiftTrace(Trace):
    """One run of a function on values of JAX.

    Args:
        watch: called with each primitive, the values it is applied to and its parameters.
        alone: whether the values of outer transforms may not come in, but raise ``Closure``.
    """

    __slots__ = ("alone", "watch")

    #: What is inside its tracers are values of JAX, not of a derivative.
    runs_jax = True

    def __init__(self, watch: Callable[..., None] | None = None, *, alone: bool = False) -> None:
        super().__init__()
        self.watch = watch
        self.alone = alone

    def leaf(self, value: Any) -> LiftTracer:
        """An input of the function, which must not write to it."""
        made = LiftTracer(value, self)
        made.alias = READ_ONLY
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on what the tracers hold."""
        lowered = [a.value if type(a) is LiftTracer and a._trace is self else a for a in args]
        if self.alone:
            if any(isinstance(a, Tracer) for a in lowered):
                raise Closure
            lowered = _as_numpy_would(primitive, lowered)
        if primitive is CUSTOM:
            params = {**params, "rules": _lifting(params["rules"])}
        ans = primitive.call(*lowered, **params)
        if self.watch is not None:
            self.watch(primitive, lowered, params)
        if not primitive.multiple:
            return self.wrap(ans)
        return tuple([self.wrap(a) for a in ans])

    def wrap(self, value: Any) -> LiftTracer:
        """``value`` as a tracer; a constant for JAX too inside a ``no_grad`` that began after this run did."""
        if blocks.entered and self.level < blocks.current().floor:
            value = backend.detached(backend.library_of(value), value)
        return LiftTracer(value, self)

    def leave(self, leaf: Any) -> Any:
        """``leaf`` as it leaves the function: the value of JAX, where it is a tracer of this run."""
        return released(leaf.value if isinstance(leaf, LiftTracer) and leaf._trace is self else leaf)


def _as_numpy_would(primitive: Primitive, args: list[Any]) -> list[Any]:
    """``args`` in the dtypes that NumPy's ufunc computes in, where integers become floating numbers.

    JAX would make float32 of int32, and of int64 together with float32.
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
    """What NumPy's promotion looks at: the dtype, of Python's numbers the type."""
    return type(a) if type(a) in (int, float, complex) else backend.dtype_of(a)


def to_jax(fun: Callable[P, Any]) -> Callable[P, Any]:
    """``fun`` as a function that JAX can transform, whatever it is written with.

    A function of ``funcgrad.numpy`` works on JAX arrays as it is. This is for functions that call plain
    NumPy (``np.sin(x)``), which would turn a JAX array into an ndarray and refuse a JAX tracer.

    Args:
        fun: a function of arrays or pytrees, written with NumPy, funcgrad.numpy or funcgrad's transforms.

    Returns:
        A function of the same arguments. Floating and complex arrays, and all JAX arrays, are computed
        with by JAX; integers, booleans and other leaves of plain Python and NumPy stay what they are.
        Precision is JAX's: float64 needs its x64 mode.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        StagingError: under ``jax.jit``, the function asked for a value: it branched on one, say (a ``TypeError``).

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
    """What a ``to_jax`` does when it is called."""
    jax = import_jax("to_jax")
    leaves, frame = take_apart(jax, (args, kwargs))

    def call(*found: Any) -> Any:
        new_args, new_kwargs = frame(*found)
        return fun(*new_args, **new_kwargs)

    return lifted(jax, call, name=name_of(fun))(*leaves)


def lifted(
    jax: Any, fun: Callable[..., Any], watch: Callable[..., None] | None = None, *, name: str = "the function"
) -> Callable[..., Any]:
    """``fun``, a function of leaves, as a function of JAX values; results are trees of JAX values."""

    def call(*leaves: Any) -> Any:
        with staging(jax, "to_jax", name):
            return _run(jax, LiftTrace(watch), fun, leaves)

    return call


def _run(jax: Any, trace: LiftTrace, fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """``fun`` of trees of JAX values, in ``trace``, which ends with it."""
    try:
        leaves, frame = take_apart(jax, args)
        out = fun(*frame(*[_enter(jax, trace, leaf) for leaf in leaves]))
    finally:
        trace.close()
    found, frame = take_apart(jax, out)
    return frame(*[trace.leave(leaf) for leaf in found])


def _lifting(rules: CustomRules) -> CustomRules:
    """A function of the user's with its rules, for values of JAX: they may be written with NumPy too."""
    jax = loaded_jax()

    def lifting(fun: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            out = _run(jax, LiftTrace(), fun, args)
            return tree.map_leaves(lambda x: bottom(x) if type(x) is LiftTracer else x, out)  # it may hold one

        return call

    return replace(
        rules,
        fun=lifting(rules.fun),
        fwd=None if rules.fwd is None else lifting(rules.fwd),
        bwd=None if rules.bwd is None else lifting(rules.bwd),
        jvp=None if rules.jvp is None else lifting(rules.jvp),
    )


def _enter(jax: Any, trace: LiftTrace, leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        return trace.leaf(leaf)
    if not isinstance(leaf, Tracer) and backend.is_value(leaf) and backend.is_inexact(leaf):
        return trace.leaf(private(jax, leaf))
    return leaf
