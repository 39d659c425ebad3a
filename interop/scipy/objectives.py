"""Functions of trees as functions of vectors, with the derivatives that solvers of SciPy ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.interop.scipy.flattening import Layout, plain
from funcgrad.numpy_code import Standing
from funcgrad.optional import import_scipy
from funcgrad.transforms.arguments import split_aux
from funcgrad.transforms.gradients import grad, value_and_grad
from funcgrad.transforms.jacobians import hessian, jacfwd, jacrev
from funcgrad.transforms.products import jvp, linearize, vjp
from funcgrad.transforms.transformed import name_of
from funcgrad.typing import PyTree

__all__ = ["Objective", "Residuals", "elementwise_loss"]


class Objective:
    """A scalar function of a tree, as functions of a vector.

    Args:
        call: the public call, for messages.
        fun: the function.
        layout: how the tree stands in the vector.
        args: further arguments of the function.
        has_aux: whether it returns a pair ``(value, aux)``.
    """

    def __init__(
        self, call: str, fun: Callable[..., Any], layout: Layout, args: tuple[Any, ...], *, has_aux: bool = False
    ) -> None:
        self.call, self.fun, self.layout, self.args, self.has_aux = call, Standing(fun), layout, args, has_aux
        self._at: Any = None
        self._push: Callable[..., Any] | None = None

    def scalar(self, params: PyTree) -> Any:
        """The function of the tree alone."""
        out = self.fun(params, *self.args)
        if self.has_aux:
            out, _ = split_aux(self.call, out)
        known = isinstance(out, Tracer) or backend.is_value(out)
        if not known or backend.shape_of(out) != () or not backend.is_inexact(out) or backend.dtype_of(out).kind == "c":
            raise InputError(
                f"{self.call}: {name_of(self.fun)} must give one real number, got {describe(out)}. Sum what is "
                "several; root and least_squares take several."
            )
        return out

    def value(self, x: Any) -> float:
        """The value."""
        return float(_plain(self, self.scalar(self.layout.tree(x))))

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        """The value and the gradient."""
        value, gradient = _plain(self, value_and_grad(self.scalar)(self.layout.tree(x)))
        return float(value), self.layout.vector(gradient, gradient=True)

    def product(self, x: Any, direction: Any) -> Any:
        """The Hessian at ``x`` times a direction. The derivative of the gradient is kept for the next direction."""
        if self._push is None or not np.array_equal(x, self._at):
            _, self._push = linearize(grad(self.scalar), self.layout.tree(x))
            self._at = np.array(x)
        return self.layout.vector(_plain(self, self._push(self.layout.tree(direction))), gradient=True)

    def hessian(self, x: Any) -> Any:
        """The Hessian."""
        return np.asarray(_plain(self, hessian(lambda v: self.scalar(self.layout.tree(v)))(x)), np.float64)

    def aux(self, params: PyTree) -> Any:
        """What the function gives besides its value."""
        return split_aux(self.call, self.fun(params, *self.args))[1]


class Residuals:
    """A function from trees to trees, as a function of a vector, with its Jacobian.

    Args:
        call: the public call, for messages.
        fun: the function.
        layout: how the tree stands in the vector.
        args: further arguments of the function.
        params: a tree, at which the function tells what it gives.
        mode: "forward" or "reverse" for the mode that makes the Jacobian, else the cheaper one.
    """

    def __init__(
        self,
        call: str,
        fun: Callable[..., Any],
        layout: Layout,
        args: tuple[Any, ...],
        params: PyTree,
        mode: str = "auto",
    ) -> None:
        self.call, self.fun, self.layout, self.args = call, Standing(fun), layout, args
        self._at = layout.vector(params)
        first = _plain(self, fun(layout.tree(self._at), *args))
        self.out = Layout(call, f"the result of {name_of(fun)}", first)
        self._value = self.out.vector(first)
        forward = mode == "forward" or (mode != "reverse" and layout.size <= self.out.size)
        self.differentiate = jacfwd if forward else jacrev

    def flat(self, x: Any) -> Any:
        """The result as a vector; of a tracer, a tracer."""
        return self.out.vector(self.fun(self.layout.tree(x), *self.args))

    def __call__(self, x: Any) -> Any:
        """The result as a vector."""
        if not np.array_equal(x, self._at):
            self._value = _plain(self, self.flat(x))
            self._at = np.array(x)
        return self._value.copy()

    def jacobian(self, x: Any) -> Any:
        """The Jacobian as a matrix."""
        return np.asarray(_plain(self, self.differentiate(self.flat)(x)), np.float64)

    def operator(self, x: Any) -> Any:
        """The Jacobian as products with it."""
        _, push = linearize(self.flat, x)
        out, pull = vjp(self.flat, x)
        return import_scipy(self.call, "scipy.sparse.linalg").LinearOperator(
            (self.out.size, self.layout.size),
            matvec=lambda t: np.asarray(push(_doubles(t))),
            rmatvec=lambda ct: np.asarray(pull(_doubles(ct).astype(out.dtype))[0]),
            dtype=np.float64,
        )

    def curvature(self, x: Any, weights: Any) -> Any:
        """The Hessian of the weighted sum of the results, as products with it."""

        def weighted(v: Any) -> Any:
            return fnp.sum(self.flat(v) * weights)

        _, push = linearize(grad(weighted), x)
        return import_scipy(self.call, "scipy.sparse.linalg").LinearOperator(
            (self.layout.size, self.layout.size), matvec=lambda t: push(_doubles(t)), dtype=np.float64
        )


def _doubles(direction: Any) -> Any:
    """What SciPy multiplies an operator by, as a vector: it may be a column, or of integers."""
    return np.ravel(direction).astype(np.float64)


def _plain(problem: Objective | Residuals, result: PyTree) -> PyTree:
    """A result that depends on nothing but the parameters."""
    return plain(problem.call, f"the result of {name_of(problem.fun)}", result)


def elementwise_loss(rho: Callable[..., Any]) -> Callable[[Any], Any]:
    """A loss for least_squares in the form SciPy asks for: the value and both derivatives."""

    def rows(z: Any) -> Any:
        value, one = rho(z), np.ones(z.shape)
        if np.shape(value) != z.shape:
            return value  # in that form already
        first, second = jvp(lambda z: jvp(rho, (z,), (one,))[1], (z,), (one,))
        return np.stack([value, first, second])

    return rows
