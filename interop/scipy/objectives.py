"""Trees as vectors of real numbers, and functions of trees with the derivatives that SciPy's solvers take."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array, shallow_copy
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.interop.jax.devices import put_on_device
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.optional import import_jax, import_scipy
from funcgrad.transforms.arguments import check_leaf, split_aux
from funcgrad.transforms.gradients import grad, value_and_grad
from funcgrad.transforms.jacobians import hessian, jacfwd, jacrev
from funcgrad.transforms.products import jvp, linearize, vjp
from funcgrad.transforms.transformed import name_of
from funcgrad.typing import PyTree

__all__ = ["Layout", "Objective", "VectorFunction", "elementwise_loss", "require_concrete"]


class Slot(NamedTuple):
    """Position of a leaf's numbers in the vector, and the kind of the leaf. Imaginary parts follow the real parts."""

    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    number: bool  # not an ndarray, not even one without axes
    home: Any  # the sharding of a JAX array, else None


class Layout:
    """Positions of the leaves of a tree in a vector, one leaf after the other.

    Args:
        call: name of the public function, for messages.
        what: name of the tree, for messages.
        params: the tree, with real or complex floating leaves.

    Raises:
        InputError: a leaf is not a floating array or number (a ``TypeError``).
        NotDifferentiableError: a leaf is being differentiated or batched (a ``TypeError``).

    Example:
        >>> layout = Layout("minimize", "params", {"b": 1.0, "w": np.ones((1, 2))})
        >>> layout.size, layout.tree(np.arange(3.0))
        (3, {'b': np.float64(0.0), 'w': array([[1., 2.]])})
    """

    def __init__(self, call: str, what: str, params: PyTree) -> None:
        paths, leaves, self.spec = tree.flatten_with_path(params)
        self.paths = [what + path for path in paths]
        self.slots: list[Slot] = []
        start = 0
        for path, leaf in zip(self.paths, leaves, strict=True):
            slot = _slot(call, path, require_concrete(call, path, leaf), start)
            self.slots.append(slot)
            start = slot.stop
        self.size = start
        self.single = len(leaves) == 1 and self.spec.is_leaf()

    def vector(self, params: PyTree, *, gradient: bool = False) -> Any:
        """Return the numbers of a tree with this layout as a vector; tracers give a tracer.

        Args:
            params: the tree.
            gradient: whether the tree is a gradient, which for a complex leaf z = x + iy is du/dx - i du/dy.
        """
        parts = []
        for leaf, slot in zip(tree.leaves(params), self.slots, strict=True):
            flat = fnp.ravel(shallow_copy(leaf))
            if slot.dtype.kind == "c":
                imaginary = fnp.imag(flat)
                parts += [fnp.real(flat), -imaginary if gradient else imaginary]
            else:
                parts.append(flat)
        joined = parts[0] if len(parts) == 1 else fnp.concatenate(parts)
        # A copy: solvers keep vectors, and ``joined`` may be the caller's array.
        return joined if isinstance(joined, Tracer) else np.array(joined, np.float64)

    def tree(self, vector: Any, *, gradient: bool = False) -> PyTree:
        """Return the tree with these numbers and the layout's dtypes; a tracer gives tracers."""
        if type(vector) is np.ndarray:
            vector = vector.copy()  # solvers overwrite their vectors
        return tree.unflatten(self.spec, [_leaf(vector[slot.start : slot.stop], slot, gradient) for slot in self.slots])


def _slot(call: str, path: str, leaf: Any, start: int) -> Slot:
    check_leaf(call, leaf, lambda: path)
    shape, dtype = backend.shape_and_dtype_of(leaf)
    if not backend.is_inexact(leaf):
        raise InputError(
            f"{call}: {path} must be real or complex floating point, got dtype {dtype}. Convert it to float; "
            "pass constants in args."
        )
    count = prod(shape) * (2 if dtype.kind == "c" else 1)
    home = leaf.sharding if backend.namespace_of(leaf) is not np else None
    return Slot(start, start + count, shape, dtype, not shape and type(leaf) is not np.ndarray, home)


def _leaf(part: Any, slot: Slot, gradient: bool) -> Any:
    if slot.dtype.kind == "c":
        half = (slot.stop - slot.start) // 2
        part = part[:half] + (-1j if gradient else 1j) * part[half:]
    part = part.reshape(slot.shape)
    if part.dtype != slot.dtype:
        part = part.astype(slot.dtype)
    if slot.home is not None:
        return put_on_device(import_jax("device_put"), part, slot.home)
    return part[()] if slot.number and type(part) is np.ndarray else part


def require_concrete(call: str, what: str, value: PyTree) -> PyTree:
    """Return ``value``, which must not be differentiated, batched or compiled: an outside solver takes plain values.

    Raises:
        NotDifferentiableError: a leaf is traced (a ``TypeError``).
    """
    found = tree.map(shallow_copy, value)
    for leaf in tree.leaves(found):
        if isinstance(leaf, Tracer):
            raise NotDifferentiableError(
                f"{call}: {what} is being differentiated, batched or compiled, got {describe(leaf)}. SciPy sees plain "
                "numbers only: make this call the solver of funcgrad.custom_root to differentiate its answer, or apply "
                "stop_gradient to constants."
            )
    return found


class Objective:
    """Scalar function of a tree, as functions of a vector.

    Args:
        call: name of the public function, for messages.
        fun: the function.
        layout: positions of the leaves in the vector.
        args: further arguments of the function.
        has_aux: whether the function returns a pair ``(value, aux)``.
    """

    def __init__(
        self, call: str, fun: Callable[..., Any], layout: Layout, args: tuple[Any, ...], *, has_aux: bool = False
    ) -> None:
        self.call, self.fun, self.layout, self.args, self.has_aux = call, SelfRebuilding(fun), layout, args, has_aux
        self._cached_point: Any = None
        self._hvp: Callable[..., Any] | None = None

    def scalar(self, params: PyTree) -> Any:
        """Compute the function of the tree alone, without aux."""
        out = self.fun(params, *self.args)
        if self.has_aux:
            out, _ = split_aux(self.call, out)
        if (
            not is_array(out)
            or backend.shape_of(out)
            or not backend.is_inexact(out)
            or backend.dtype_of(out).kind == "c"
        ):
            raise InputError(
                f"{self.call}: {name_of(self.fun)} must give one real number, got {describe(out)}. Sum the "
                "numbers; root and least_squares take several."
            )
        return out

    def value(self, x: Any) -> float:
        """Return the value."""
        return float(_require_concrete(self, self.scalar(self.layout.tree(x))))

    def value_and_gradient(self, x: Any) -> tuple[float, Any]:
        """Return the value and the gradient."""
        value, gradient = _require_concrete(self, value_and_grad(self.scalar)(self.layout.tree(x)))
        return float(value), self.layout.vector(gradient, gradient=True)

    def product(self, x: Any, direction: Any) -> Any:
        """Return the Hessian at ``x`` times a direction. The linearized gradient is cached for the next direction."""
        if self._hvp is None or not np.array_equal(x, self._cached_point):
            _, self._hvp = linearize(grad(self.scalar), self.layout.tree(x))
            self._cached_point = np.array(x)
        return self.layout.vector(_require_concrete(self, self._hvp(self.layout.tree(direction))), gradient=True)

    def hessian(self, x: Any) -> Any:
        """Return the Hessian."""
        return np.asarray(_require_concrete(self, hessian(lambda v: self.scalar(self.layout.tree(v)))(x)), np.float64)

    def aux(self, params: PyTree) -> Any:
        """Return the second result of the function."""
        return split_aux(self.call, self.fun(params, *self.args))[1]


class VectorFunction:
    """Function from trees to trees, as a function of a vector, with its Jacobian.

    Args:
        call: name of the public function, for messages.
        fun: the function.
        layout: positions of the leaves in the vector.
        args: further arguments of the function.
        params: a tree; the function is called with it to learn the layout of the result.
        mode: "forward" or "reverse" for the mode that computes the Jacobian, else the cheaper one.
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
        self.call, self.fun, self.layout, self.args = call, SelfRebuilding(fun), layout, args
        self._cached_point = layout.vector(params)
        first = _require_concrete(self, fun(layout.tree(self._cached_point), *args))
        self.out = Layout(call, f"the result of {name_of(fun)}", first)
        self._value = self.out.vector(first)
        forward = mode == "forward" or (mode != "reverse" and layout.size <= self.out.size)
        self.differentiate = jacfwd if forward else jacrev

    def flat(self, x: Any) -> Any:
        """Return the result as a vector; a tracer gives a tracer."""
        return self.out.vector(self.fun(self.layout.tree(x), *self.args))

    def __call__(self, x: Any) -> Any:
        """Return the result as a plain vector, from the cache if ``x`` is the last point."""
        if not np.array_equal(x, self._cached_point):
            self._value = _require_concrete(self, self.flat(x))
            self._cached_point = np.array(x)
        return self._value.copy()

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian as a matrix."""
        return np.asarray(_require_concrete(self, self.differentiate(self.flat)(x)), np.float64)

    def operator(self, x: Any) -> Any:
        """Return the Jacobian as an operator that computes products."""
        _, push = linearize(self.flat, x)
        out, pullback = vjp(self.flat, x)
        return import_scipy(self.call, "scipy.sparse.linalg").LinearOperator(
            (self.out.size, self.layout.size),
            matvec=lambda t: np.asarray(push(_doubles(t))),
            rmatvec=lambda ct: np.asarray(pullback(_doubles(ct).astype(out.dtype))[0]),
            dtype=np.float64,
        )

    def curvature(self, x: Any, weights: Any) -> Any:
        """Return the Hessian of the weighted sum of the results, as an operator that computes products."""

        def weighted(v: Any) -> Any:
            return fnp.sum(self.flat(v) * weights)

        _, push = linearize(grad(weighted), x)
        return import_scipy(self.call, "scipy.sparse.linalg").LinearOperator(
            (self.layout.size, self.layout.size), matvec=lambda t: push(_doubles(t)), dtype=np.float64
        )


def _doubles(direction: Any) -> Any:
    """Return SciPy's operand of an operator as a vector of doubles; it may be a column, or hold integers."""
    return np.ravel(direction).astype(np.float64)


def _require_concrete(problem: Objective | VectorFunction, result: PyTree) -> PyTree:
    """Return a result after the check that it depends on the parameters only, not on traced values."""
    return require_concrete(problem.call, f"the result of {name_of(problem.fun)}", result)


def elementwise_loss(rho: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a loss for least_squares in SciPy's form, with the value and both derivatives."""

    def rows(z: Any) -> Any:
        value, one = rho(z), np.ones(z.shape)
        if np.shape(value) != z.shape:
            return value  # ``rho`` uses SciPy's form already
        first, second = jvp(lambda z: jvp(rho, (z,), (one,))[1], (z,), (one,))
        return np.stack([value, first, second])

    return rows
