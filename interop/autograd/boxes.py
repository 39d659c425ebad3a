"""What HIPS autograd calls boxes are funcgrad's tracers; here is what programs ask of them."""

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
from funcgrad.numpy.concretization import constant
from funcgrad.numpy.methods import OF_TORCH

__all__ = [
    "Box",
    "as_registered",
    "batched_within",
    "example_by_example",
    "getval",
    "innermost",
    "isbox",
    "plain_type",
    "transposing",
]

#: The run of a vjp rule on a traced cotangent that gives its transpose, while it lasts.
transposing: ContextVar[Trace | None] = ContextVar("transposing", default=None)


class _BoxType(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tracer)


class _Ignored:
    """An attribute that arrays of a registered class have: where a traced value is made one, it is not kept."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, cls: type | None = None) -> NoReturn:
        raise AttributeError(f"a traced value has no attribute {self.name!r}", name=self.name, obj=x)

    def __set__(self, x: Any, value: Any) -> None:
        pass


def _leaving_traced(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A class's way to compute ufuncs, which leaves those of traced values to funcgrad."""

    @wraps(theirs)
    def compute(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, Tracer) for x in inputs):
            return NotImplemented
        return theirs(self, ufunc, method, *inputs, **kwargs)

    return compute


class _Makers(dict[type, Callable[..., Any]]):
    """What to do with arrays of a class before they are traced. Such a class is known to all functions from then on."""

    def __setitem__(self, kind: type, maker: Callable[..., Any]) -> None:
        super().__setitem__(kind, maker)
        if not issubclass(kind, np.ndarray):
            return
        backend.ARRAY_CLASSES.add(kind)
        of_class: Any = kind
        of_class.__array_ufunc__ = _leaving_traced(of_class.__array_ufunc__)
        code = getattr(kind.__array_finalize__, "__code__", None)
        for step in dis.get_instructions(code) if code else ():
            if step.opname == "STORE_ATTR" and (step.argval in OF_TORCH or not hasattr(Tracer, step.argval)):
                setattr(Tracer, step.argval, _Ignored(step.argval))


class Box(metaclass=_BoxType):
    """What stands for an array or a number while a derivative is taken: ``isinstance(x, Box)`` tells.

    There is none for containers: lists, tuples and dictionaries are themselves, with boxes in them. A class derived
    from ``ndarray`` may say in ``type_mappings`` what to do with its arrays before they are traced: ``maker(value,
    trace, node)``, which returns ``ArrayBox(value, trace, node)``, and may refuse. It is traced as an array.
    """

    type_mappings: ClassVar[dict[type, Callable[..., Any]]] = _Makers()

    def __new__(cls, value: Any, trace: Any, node: Any) -> Any:
        """The traced value that ``node`` stands for; without a node one that nothing can be computed with."""
        value = constant(value) if isbox(value) else value
        if node is None:
            loose = Tracer()
            loose._val, loose._trace, loose.aval = np.asarray(value), Trace(), None
            return loose
        return node.boxed(np.asarray(value) if isinstance(value, np.ndarray) and not isbox(value) else value)

    @classmethod
    def register(cls, value_type: type) -> None:
        """Let arrays of a class derived from ``ndarray`` be traced.

        Raises:
            InputError: another type of value.
        """
        if not issubclass(value_type, np.ndarray):
            raise InputError(
                f"Box.register: values are arrays and numbers, or containers of them, got {value_type.__name__}. Make "
                "the class a container with funcgrad.register_pytree_node or funcgrad.register_dataclass."
            )
        Box.type_mappings[value_type] = cls


class _Value:
    """In place of a node: its box is the array itself."""

    @staticmethod
    def boxed(value: Any) -> Any:
        return value


def as_registered(x: Any) -> Any:
    """The array of an object whose type is in ``Box.type_mappings``; anything else as it is."""
    maker = Box.type_mappings.get(type(x)) if Box.type_mappings else None
    return x if maker is None else maker(x, 0, _Value())


def isbox(x: object) -> bool:
    """Whether ``x`` is being differentiated or batched.

    Example:
        >>> isbox(1.0)
        False
    """
    return isinstance(x, Tracer)


def getval(x: Any) -> Any:
    """What ``x`` stands for, an array or a number without derivatives; anything else as it is.

    Raises:
        InputError: a value inside of ``funcgrad.vmap``, which stands for many.
        NotDifferentiableError: in a vjp rule that forward mode is made of, the cotangent.

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


def innermost(x: Any) -> Any:
    """What ``x`` holds in the end; of a batched value all examples."""
    while isinstance(x, Tracer):
        x = x._val
    return x


def plain_type(x: Any) -> type:
    """The type of what ``x`` stands for."""
    return type(innermost(x))


def batched_within(x: Any) -> bool:
    """Whether ``x`` is batched, itself or what it stands for."""
    while isinstance(x, Tracer):
        if is_batched(x):
            return True
        x = x._val
    return False


def example_by_example(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any]:
    """``fun(*leaves)``, for one example after the other where leaves are batched: ``fun`` may call any routine.

    Args:
        fun: a function of array leaves that returns a list of arrays, or of None for zeros.
        leaves: its arguments.
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
