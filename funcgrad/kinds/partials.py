"""Rules of elementwise operations: the product of a partial derivative with a tangent or cotangent.

The Jacobian is diagonal, so one expression serves both modes. The expression is text, in terms of ``ct`` and the values
that the rule names. The functions of an operation are made from these texts, see ``generated``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from funcgrad.kinds.rules import ARGUMENT_NAMES, check_names, positional_names

#: A partial derivative: a function whose arguments are named x, y, z or ans, for the values that it needs; one of these
#: names, for that value itself; a number, for a constant; a function whose first argument is named ``t``, if it acts on
#: the tangent or cotangent itself; None if there is no derivative.
Partial: TypeAlias = Callable[..., Any] | str | int | float | None


class PartialRule:
    """Partial derivative of an operation in one argument.

    Attributes:
        names: the names of the values that the partial needs, among x, y, z, ans.
        forward: the expression for the product of the partial with a tangent ``ct``.
        reverse: the expression for the product with a cotangent that is not needed afterwards; it may be overwritten.
        functions: the functions ``d{argument}`` and ``raw_d{argument}`` that these expressions name.
        differentiable: whether there is a derivative.
        constant: the partial if it is a number, else None.
        promotes: whether the partial is a function whose values are converted by ``linear.promote``.
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
