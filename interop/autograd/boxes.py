"""HIPS autograd's boxes, which are funcgrad's tracers, and the questions that programs ask about boxes."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace, is_batched
from funcgrad.core import Trace, Tracer, describe, tracer_of
from funcgrad.errors import InputError, NotDifferentiableError, ShapeError
from funcgrad.numpy.methods import TORCH_HINTS
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers

__all__ = ["Box", "as_registered", "check_array_class", "example_by_example", "getval", "isbox", "transposing"]

#: Trace of the run that transposes a VJP rule, by calling the rule with a traced cotangent; None outside such a run.
transposing: ContextVar[Trace | None] = ContextVar("transposing", default=None)


class _BoxType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tracer)


class _Ignored:
    """Attribute that arrays of a registered class set. A traced value accepts the write and keeps nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, cls: type | None = None) -> NoReturn:
        raise AttributeError(f"a traced value has no attribute {self.name!r}", name=self.name, obj=x)

    def __set__(self, x: Any, value: Any) -> None:
        pass


def _leaving_traced(array_ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``__array_ufunc__`` of a class, changed so that it leaves traced values to funcgrad."""

    @wraps(array_ufunc)
    def compute(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if Tracer in map(type, inputs):
            return NotImplemented
        return array_ufunc(self, ufunc, method, *inputs, **kwargs)

    return compute


class _Makers(dict[type, Callable[..., Any]]):
    """Functions applied to arrays of a class before tracing. Adding a class makes it known to all of funcgrad."""

    def __setitem__(self, kind: type, maker: Callable[..., Any]) -> None:
        super().__setitem__(kind, maker)
        if not issubclass(kind, np.ndarray):
            return
        backend.ARRAY_CLASSES.add(kind)
        of_class: Any = kind
        of_class.__array_ufunc__ = _leaving_traced(of_class.__array_ufunc__)
        code = getattr(kind.__array_finalize__, "__code__", None)
        for step in dis.get_instructions(code) if code else ():
            if step.opname == "STORE_ATTR" and (step.argval in TORCH_HINTS or not hasattr(Tracer, step.argval)):
                setattr(Tracer, step.argval, _Ignored(step.argval))


def check_array_class(call: str, kind: type) -> None:
    """Refuse a class that is not derived from ``ndarray``."""
    if not issubclass(kind, np.ndarray):
        raise InputError(
            f"{call}: values are arrays and numbers, or containers of them, got {kind.__name__}. Make the class a "
            "container with funcgrad.register_pytree_node or funcgrad.register_dataclass."
        )


class Box(metaclass=_BoxType):
    """Class of every value that represents an array or a number in a transform: ``isinstance(x, Box)`` tells.

    Containers have no box: lists, tuples and dictionaries stay themselves, with boxes in them. A class derived from
    ``ndarray`` may have a function in ``type_mappings`` that prepares its arrays for tracing: ``maker(value, trace,
    node)`` returns ``ArrayBox(value, trace, node)``, and may refuse. The array is then traced as an ordinary array.
    """

    type_mappings: ClassVar[dict[type, Callable[..., Any]]] = _Makers()

    def __new__(cls, value: Any, trace: Any, node: Any) -> Any:
        """Return the traced value of ``node``; without a node, return a traced value that no operation accepts."""
        value = strip_constant_tracers(value) if isbox(value) else value
        if node is None:
            return tracer_of(np.asarray(value), Trace())
        return node.boxed(np.asarray(value) if isinstance(value, np.ndarray) and not isbox(value) else value)

    @classmethod
    def register(cls, value_type: type) -> None:
        """Let arrays of a class derived from ``ndarray`` be traced.

        Raises:
            InputError: ``value_type`` is not derived from ``ndarray``.
        """
        check_array_class("Box.register", value_type)
        Box.type_mappings[value_type] = cls


class _Value:
    """Replacement for a node whose box is the array itself."""

    @staticmethod
    def boxed(value: Any) -> Any:
        return value


def as_registered(x: Any) -> Any:
    """Return the array of an object whose type is in ``Box.type_mappings``; return any other object unchanged."""
    maker = Box.type_mappings.get(type(x)) if Box.type_mappings else None
    return x if maker is None else maker(x, 0, _Value())


def isbox(x: object) -> bool:
    """Return whether ``x`` is being differentiated or batched.

    Example:
        >>> isbox(1.0)
        False
    """
    return isinstance(x, Tracer)


def getval(x: Any) -> Any:
    """Return the array or number that ``x`` represents, without derivatives; return any other object unchanged.

    Raises:
        InputError: ``x`` is batched by ``funcgrad.vmap`` and represents many values.
        NotDifferentiableError: ``x`` is the cotangent in a VJP rule from which forward mode is derived.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> grad(lambda x: getval(x) * x)(3.0)
        np.float64(3.0)
    """
    while isinstance(x, Tracer):
        if is_batched(x):
            raise InputError(
                f"getval: a batched value stands for many and has no plain value, got {describe(x)}. Take it outside "
                "of vmap, or use stop_gradient(x)."
            )
        if x._trace is transposing.get():
            raise NotDifferentiableError(
                "getval: a vjp rule takes the value of its cotangent, so no forward mode can be made of it, got "
                f"{describe(x)}. Declare the tangents with defjvp, or write the rule without getval."
            )
        x = x._val
    return x


def example_by_example(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any]:
    """Return ``fun(*leaves)``, computed one example at a time if leaves are batched: ``fun`` may call any routine.

    Args:
        fun: a function of array leaves that returns a list of arrays, or of None for zeros.
        leaves: arguments of ``fun``.
    """
    tracers = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
    top = max((t._trace for t in tracers), key=lambda trace: trace.level, default=None)
    if not isinstance(top, BatchTrace):
        return fun(*leaves)
    if not top.size:
        raise ShapeError(
            "vmap: a primitive is called example by example and has none to tell the shape of its result from, got an "
            "axis of length 0. Map over at least one example."
        )
    mine = [isinstance(leaf, Tracer) and leaf._trace is top for leaf in leaves]
    rows = [
        example_by_example(fun, [x._val[i] if m else x for x, m in zip(leaves, mine, strict=True)])
        for i in range(top.size)
    ]
    columns = zip(*rows, strict=True)
    return [None if c[0] is None else tracer_of(backend.namespace(c).stack(c), top) for c in columns]
