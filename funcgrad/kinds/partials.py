"""Rules of elementwise operations: the product of a partial derivative with a tangent or cotangent.

The Jacobian is diagonal, so one expression serves both modes. The expression is text, in terms of ``ct`` and the values
that the rule names. The functions of an operation are made from these texts, see ``generated``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.kinds.linear import astype, broadcast_to, conform
from funcgrad.kinds.rules import ARGUMENT_NAMES, check_names, positional_names
from funcgrad.ownership import LARGE, is_temporary, is_unshared_argument
from funcgrad.writable import is_buffer

__all__ = ["Partial", "PartialRule", "promote", "product", "product_in_place", "scaled", "broadcast_tangent"]

#: A partial derivative: a function whose arguments are named x, y, z or ans, for the values that it needs; one of these
#: names, for that value itself; a number, for a constant; a function whose first argument is named ``t``, if it acts on
#: the tangent or cotangent itself; None if there is no derivative.
Partial: TypeAlias = Callable[..., Any] | str | int | float | None

ndarray = np.ndarray
float64 = np.float64
_DOUBLE = np.dtype(float64)


class PartialRule:
    """Partial derivative of an operation in one argument.

    Attributes:
        names: the names of the values that the partial needs, among x, y, z, ans.
        forward: the expression for the product of the partial with a tangent ``ct``.
        reverse: the expression for the product with a cotangent that is not needed afterwards; it may be overwritten.
        functions: the functions ``d{argument}`` and ``raw_d{argument}`` that these expressions name.
        differentiable: whether there is a derivative.
        constant: the partial if it is a number, else None.
        promotes: whether the partial is a function whose values are converted by ``promote``.
    """

    __slots__ = ("constant", "differentiable", "forward", "functions", "names", "promotes", "reverse")

    def __init__(self, operation: str, argument: str, partial: Partial, arity: int) -> None:
        known = (*ARGUMENT_NAMES[:arity], "ans")
        rule = f"d{argument}"
        self.differentiable = partial is not None
        self.constant = partial if isinstance(partial, (int, float)) else None
        self.names: tuple[str, ...] = ()
        self.functions: dict[str, Any] = {}
        self.promotes = False
        if partial is None:
            self.forward = self.reverse = "None"
        elif isinstance(partial, str):
            self.names = tuple(check_names(operation, (partial,), known))
            small = f"{partial} * ct if (type(ct) is ndarray and ct.size < LARGE) or type(ct) is float64 else"
            self.forward, self.reverse = f"{small} product(ct, {partial})", f"{small} product_in_place(ct, {partial})"
        elif not callable(partial):
            self.forward = self.reverse = (
                "ct" if partial == 1 else "-ct" if partial == -1 else f"ct * {float(partial)!r}"
            )
        else:
            names = positional_names(partial)
            acts = names[:1] == ("t",)
            self.names = tuple(check_names(operation, names[1:] if acts else names, known))
            self.functions[rule] = partial
            values = ", ".join(self.names)
            if acts:
                self.forward = self.reverse = f"{rule}(ct, {values})"
            else:
                self.promotes = arity > 1
                self.forward = self.reverse = _expression_of_values(rule, values, partial, self.functions)

    def added_to(self, total: str) -> str:
        """Return the expression that adds the product with a tangent ``ct`` to ``total``; subtract if it is ``-ct``."""
        return f"{total} - ct" if self.constant == -1 else f"{total} + ({self.forward})"

    def conformed(self, position: int, last: bool) -> str:
        """Return the expression for the cotangent in the shape and dtype of the argument, ``like_{position}``.

        ``like_{position}`` is None if both agree with those of the result. Only the ``last`` argument uses ``reverse``.
        """
        like, whole = f"like_{position}", self.reverse if last else self.forward
        if self.constant == 1:
            conformed = f"conform(ct, *{like})"
        elif self.constant is not None:
            conformed = f"conform({self.forward.replace('ct', f'conform(ct, *{like})')}, None, {like}[1])"
        else:
            conformed = f"conform({whole}, *{like})"
        return f"({whole}) if {like} is None else {conformed}"


def _expression_of_values(rule: str, values: str, partial: Callable[..., Any], functions: dict[str, Any]) -> str:
    """Return the expression of a partial derivative that is a function of values."""
    primitive = getattr(partial, "primitive", None)
    if primitive is not None and primitive.impl is None and "," not in values:  # call NumPy's function directly
        functions["raw_" + rule] = primitive.kernel(np)
        plain = f"type({values}) is type(ct) and ((type(ct) is ndarray and ct.size < LARGE) or type(ct) is float64)"
        return f"raw_{rule}({values}) * ct if {plain} else scaled(ct, {rule}({values}))"
    numbers = " is ".join(["type(ct)", *[f"type({name})" for name in values.split(", ") if name], "float64"])
    plain = f"(type(ct) is ndarray and ct.size < LARGE) or {numbers}"
    return f"{rule}({values}) * ct if {plain} else scaled(ct, {rule}({values}))"


def promote(v: Any, dtype: np.dtype[Any]) -> Any:
    """Promote ``v`` as in an operation whose result has this dtype.

    Without promotion, NumPy takes the logarithm of an int8 in half precision, and negated unsigned integers wrap
    around. A Python number is not converted if NumPy's functions convert it to a double anyway.
    """
    kind = type(v)
    if kind is float or kind is int or kind is bool:
        return v if dtype is _DOUBLE and kind is not bool else _real(dtype).type(v)
    have: np.dtype[Any] = backend.dtype_of(v)
    if have is dtype or have.kind in "cV":
        return v
    to = _real(dtype)
    return astype(v, to=to) if have.kind in "biu" or (have.kind == to.kind and have.itemsize < to.itemsize) else v


@lru_cache(maxsize=64)
def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of a number of ``dtype``."""
    found: np.dtype[Any] = np.empty(0, dtype).real.dtype
    return found


def product(ct: Any, factor: Any) -> Any:
    """Compute ``ct * factor``, where ``factor`` is a shared value."""
    if type(ct) is ndarray or (type(ct) is float64 and (type(factor) is float64 or type(factor) is float)):
        return factor * ct
    return scaled(ct, factor)


def product_in_place(ct: Any, factor: Any) -> Any:
    """Compute ``ct * factor`` in the memory of a large unshared ``ct``. VJP rules must call this function directly."""
    if type(ct) is ndarray:
        if ct.size >= LARGE and is_unshared_argument(ct) and _can_take(ct, factor):
            return np.multiply(factor, ct, out=ct)
        return factor * ct
    return product(ct, factor)


def _can_take(ct: ndarray, factor: Any) -> bool:
    """Whether the product of ``ct`` and ``factor`` has the shape and dtype of ``ct``."""
    if type(factor) is ndarray:
        return factor.dtype is ct.dtype and (factor.shape == ct.shape or not factor.shape)
    return type(factor) is float and ct.dtype.kind == "f"


def scaled(ct: Any, partial: Any) -> Any:
    """Compute ``ct * partial``. A tracer is the left operand, because NumPy's operators dispatch to it slowly.

    A large unshared ``partial`` is overwritten, because new memory costs more than the product.
    """
    if type(ct) is ndarray:
        if (
            type(partial) is ndarray
            and partial.size >= LARGE
            and is_temporary(partial)
            and partial.base is None
            and partial.dtype is ct.dtype
            and (partial.shape == ct.shape or np.broadcast(partial, ct).shape == partial.shape)
        ):
            return np.multiply(partial, ct, out=partial)
        return partial * ct
    if type(ct) is Tracer and type(ct._val) is ndarray and (ct._trace.is_bit_exact or is_buffer(ct)):
        return partial * ct  # the order of factors determines the rounding of complex products and the memory layout
    # float64 * tracer would be slow, and Python's complex * float64 a Python number
    return partial * ct if type(ct) is float64 and type(partial) is not complex else ct * partial


def broadcast_tangent(tangent: Any, ans: Any) -> Any:
    """Convert ``tangent`` to the shape and dtype of ``ans``, the result to which it belongs."""
    if type(tangent) is type(ans) is ndarray and tangent.dtype is ans.dtype and tangent.shape == ans.shape:
        return tangent
    shape, dtype = backend.shape_of(ans), backend.dtype_of(ans)
    if type(tangent) is complex and type(ans) is not complex:
        tangent = np.complex128(tangent)  # a Python complex number times a float64 stays Python's
    if backend.dtype_of(tangent) != dtype:
        tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)
