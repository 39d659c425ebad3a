"""``linear_transpose``: the transpose of a function, which it checks to be linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Primitive, Tracer, describe, is_array
from funcgrad.errors import InputError
from funcgrad.graph import GraphTrace, Note
from funcgrad.numpy_code import run_or_rebuild
from funcgrad.transforms.debugging import saved_values
from funcgrad.transforms.products import Pullback, vjp
from funcgrad.transforms.transformed import check_callable, name_of
from funcgrad.typing import PyTree


def linear_transpose(fun: Callable[..., Any], *primals: PyTree) -> Pullback:
    """Return the transpose of ``fun``, a function that is linear in all its arguments together.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree. It may close over traced values.
        primals: examples of its arguments: arrays, numbers, or anything with a shape and a floating
            dtype. Their values do not matter.

    Returns:
        A function that maps a cotangent like the result to a tuple with a tree for each argument. For complex values it
        is the plain transpose, without conjugation.

    Raises:
        TypeError: an argument that is not a floating array; a function that is not linear (the message names
            the nonlinear operation).

    Example:
        >>> from funcgrad import linear_transpose
        >>> transpose = linear_transpose(fnp.cumsum, np.zeros(3))
        >>> transpose(np.array([1.0, 0.0, 2.0]))
        (array([3., 2., 2.]),)
    """
    check_callable("linear_transpose", fun)
    zeros = tree.map(_zeros, primals)
    run_or_rebuild(fun, lambda fun: _check_linear(fun, zeros))
    pullback: Pullback = vjp(fun, *zeros)[1]
    return pullback


def _zeros(like: Any) -> Any:
    if not is_array(like):
        if not hasattr(like, "shape") or not hasattr(like, "dtype"):
            raise InputError(
                f"linear_transpose: an argument must have a shape and a dtype, got {describe(like)}. Pass arrays or "
                "numbers; their values do not matter."
            )
        like = np.broadcast_to(np.zeros((), like.dtype), like.shape)
    if not backend.is_inexact(like):
        raise InputError(
            f"linear_transpose: the arguments must be floating or complex, got {describe(like)}. Close over the others."
        )
    return backend.zeros_like(like)


def _check_linear(fun: Callable[..., Any], zeros: tuple[Any, ...]) -> None:
    """Run ``fun`` once and check that each operation is linear in the values that come from the arguments."""
    leaves, spec = tree.flatten(zeros)
    watch = _LinearOnly(name_of(fun))
    try:
        out = fun(*tree.unflatten(spec, [watch.input(leaf) for leaf in leaves]))
    finally:
        watch.close()
    for leaf in tree.leaves(out):
        value = leaf
        while isinstance(value, Tracer) and not value._trace.is_bit_exact:
            value = value._val
        numbers = isinstance(value, Tracer) or type(value) in _PLAIN  # a graph records the answer about its tracer
        if not (isinstance(leaf, Tracer) and leaf._trace is watch) or (numbers and np.any(np.not_equal(value, 0))):
            raise InputError(
                f"linear_transpose: {name_of(fun)} is not linear, got a result that is not zero, or constant, for "
                "arguments that are. Remove the constant term."
            )


_PLAIN = (np.ndarray, np.float32, np.float64, np.complex64, np.complex128, float, complex)


class _LinearOnly(GraphTrace):
    """Run in which every operation must be linear in the values that come from the inputs."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def run(
        self, primitive: Primitive, args: tuple[Any, ...], slots: tuple[int, ...], params: dict[str, Any]
    ) -> tuple[Any, Callable[[tuple[int, ...]], Note] | None]:
        """Return the result; refuse an operation whose VJP rule saves a value that depends on the inputs."""
        traced = tuple([i for i, slot in enumerate(slots) if slot not in self.constants])
        if primitive.runs_user_code:  # custom rules say nothing about linearity
            return primitive.call(*args, **params), None
        ans, vjp, saved = None, None, None
        if primitive.reverse is not None:
            ans, vjp, saved = primitive.reverse(args, traced, params)
        moving = {id(args[i]) for i in traced} | {id(a) for a in (ans if primitive.multiple and ans else (ans,))}
        if vjp is None or any(id(x) in moving for x in saved_values(saved)):
            raise self.refusal(primitive.name)
        return ans, None

    def note_decision(self, tracer: Tracer, answer: bool | int) -> None:
        """Refuse a branch: a value that decides a branch is not linear."""
        raise self.refusal("a branch")

    def refusal(self, what: str) -> InputError:
        """Return the error that names the nonlinear operation."""
        return InputError(
            f"linear_transpose: {self.name} is not linear, got {what} of a value that depends on its arguments. For "
            "the derivative of a function that is not linear, use vjp."
        )
