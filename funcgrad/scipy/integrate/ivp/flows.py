"""The right-hand side of a differential equation as a function of real vectors and of all other values it uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array, is_in_transform, plain_value, replace_at
from funcgrad.errors import (
    ConcretizationError,
    ConversionError,
    InputError,
    NotDifferentiableError,
    ShapeError,
    StagingError,
)
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code.rebuilding import SelfRebuilding
from funcgrad.transforms.closures import BranchRecordings, looks_at_tracers, solve_with_new_branches
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.vectorize import vmap

R = TypeVar("R")


def is_foreign(*values: Any) -> bool:
    """Whether the trees ``values`` contain an array of another library than NumPy, possibly inside tracers."""
    return any(backend.is_of_other_library(plain_value(leaf)) for leaf in tree.leaves(values))


def differentiable_indices(leaves: Sequence[Any]) -> list[int]:
    """Return the indices of the inexact arrays among ``leaves``."""
    values = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    return [i for i in values if backend.is_inexact(leaves[i])]


def separate_leaves(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
    """Return ``func`` as a function of ``x`` and of the inexact arrays in ``args``, and a list of these arrays."""
    leaves, spec = tree.flatten(args)
    live = differentiable_indices(leaves)

    def flat(x: Any, *values: Any) -> Any:
        return func(x, *tree.unflatten(spec, replace_at(leaves, live, values)))

    return flat, [leaves[i] for i in live]


class Packing:
    """The conversion of a state, an array or a tree of arrays, to a vector and back.

    Args:
        call: the public call, for messages.
        y0: the first state. Numbers in a list are a vector, as in SciPy; other containers are trees.

    Attributes:
        vector: the first state as a vector of doubles.
        is_complex: whether the state is complex.
        size: the length of the vector.
    """

    def __init__(self, call: str, y0: Any) -> None:
        self.call = call
        leaves, self.spec = tree.flatten(y0)
        self.is_tree = self.needed(y0)
        if self.is_tree:
            parts = [as_value(leaf) for leaf in leaves]
            self.shapes = [backend.shape_of(part) for part in parts]
            self.vector = _joined(parts)
        else:
            self.vector = as_value(y0)
            self.shapes = [backend.shape_of(self.vector)]
            if len(self.shapes[0]) != 1:
                raise ShapeError(f"{call}: y0 must be a vector or a tree of arrays, got {describe(self.vector)}.")
        self.is_complex = backend.dtype_of(self.vector).kind == "c"
        self.vector = fnp.astype(self.vector, complex if self.is_complex else float)
        self.bounds = np.cumsum([0, *[int(np.prod(shape)) for shape in self.shapes]]).tolist()
        self.size = self.bounds[-1]

    @staticmethod
    def needed(y0: Any) -> bool:
        """Whether ``y0`` is a tree and not a vector."""
        leaves = tree.leaves(y0)
        return not (leaves and leaves[0] is y0) and not _is_vector(y0)

    def unpacked(self, y: Any) -> Any:
        """Convert a vector, or columns of vectors, to the form that the caller's functions take."""
        if not self.is_tree:
            return y
        more = backend.shape_of(y)[1:]
        pieces = zip(self.bounds[:-1], self.bounds[1:], self.shapes, strict=True)
        return tree.unflatten(self.spec, [fnp.reshape(y[a:b], (*shape, *more)) for a, b, shape in pieces])

    def packed(self, y: Any) -> Any:
        """Convert the result of the caller's function to a vector."""
        if self.is_tree:
            leaves, spec = tree.flatten(y)
            if spec != self.spec:
                raise InputError(f"{self.call}: fun must return a tree like y0, got {spec}, expected {self.spec}.")
            return _joined([as_value(leaf) for leaf in leaves])
        if isinstance(y, (list, tuple)):
            y = fnp.array(y)
        y = as_value(y)
        return y if len(backend.shape_of(y)) == 1 else fnp.ravel(y)

    def real(self, y: Any) -> Any:
        """Convert a complex vector to its real and imaginary parts, joined along the last axis."""
        return fnp.concatenate([fnp.real(y), fnp.imag(y)], axis=-1) if self.is_complex else y

    def from_real(self, y: Any) -> Any:
        """Convert real and imaginary parts back to a complex vector."""
        return y[..., : self.size] + 1j * y[..., self.size :] if self.is_complex else y


def _is_vector(y: Any) -> bool:
    """Whether ``y`` is a list or tuple of numbers."""
    return type(y) in (list, tuple) and not any(backend.shape_of(leaf) for leaf in y if not isinstance(leaf, str))


def _joined(parts: Sequence[Any]) -> Any:
    return fnp.concatenate([fnp.ravel(part) for part in parts]) if parts else np.zeros(0)


class Parameters:
    """Values that the caller's functions use besides time and state: their arguments and closed-over values.

    Args:
        call: the public call, for messages.
        args: further arguments, a tree.
        t: a time for a trial.
        y: a state for a trial, a tree.

    Attributes:
        values: the differentiable arrays among the arguments, then the values that functions close over.
    """

    def __init__(self, call: str, args: Any, t: Any, y: Any) -> None:
        self.call, self.args = call, args
        self.leaves, self.spec = tree.flatten(args)
        self.live = differentiable_indices(self.leaves)
        self.values = [self.leaves[i] for i in self.live]
        self._own_count = len(self.values)
        self._trial = stop_gradient((t, y))
        self._hoisted: list[tuple[HoistedFunction, BranchRecordings]] = []
        self._not_hoisted: list[HoistedFunction] = []

    def with_values(self, values: Sequence[Any]) -> Any:
        """Return the arguments with other values."""
        return tree.unflatten(self.spec, replace_at(self.leaves, self.live, values[: len(self.live)]))

    def hoist(self, fun: Callable[..., Any]) -> HoistedFunction:
        """Return ``fun(t, y, *args)`` as a function of ``t``, ``y`` and ``values``, closed-over values among them."""
        if not is_in_transform():
            return HoistedFunction(self, SelfRebuilding(fun))  # an exact Jacobian runs it in a transform
        function = HoistedFunction(self, fun)
        if not self._hoist_closed_over(function):
            self._not_hoisted.append(function)
        return function

    def _hoist_closed_over(self, function: HoistedFunction, always: bool = False) -> bool:
        """Make closed-over values arguments, if a trial finds some or ``always``; return whether this was done."""
        (t, y), own = self._trial, self.values[: self._own_count]
        always = always or looks_at_tracers(function.fun)
        try:
            if not always and _is_plain(function.fun(t, y, *self.with_values(stop_gradient(own)))):
                return False
            fun = function.fun
            ways = BranchRecordings(self.call, lambda x: _arrays(fun(x[0], x[1], *self.with_values(x[2]))), (t, y, own))
        except (ConcretizationError, InputError, NotDifferentiableError, StagingError):
            forget_refusal()
            return False  # SciPy's conversion to numbers raises if a derivative would be lost
        if not (always or ways.captured):
            return False
        function.fun, function.value_ranges = ways, (self._own_count, self._own_count, self._own_count)
        self._hoisted.append((function, ways))
        return True

    def solved(self, solve: Callable[[Sequence[Any]], R]) -> R:
        """Return ``solve(values)``; ``values`` include all that the functions close over on the branches they take."""
        try:
            return solve_with_new_branches([ways for _, ways in self._hoisted], lambda: solve(self._collect_values()))
        except ConversionError:  # a function closes over a traced value on a branch that the trial did not take
            closed, self._not_hoisted = self._not_hoisted, []
            closure = [function for function in closed if self._hoist_closed_over(function, always=True)]
            if not closure:
                raise
            forget_refusal()
        return self.solved(solve)

    def _collect_values(self) -> list[Any]:
        self.values = self.values[: self._own_count]
        for closure, ways in self._hoisted:
            first = len(self.values)
            self.values += ways.captured
            closure.value_ranges = (self._own_count, first, len(self.values))
        return self.values


class HoistedFunction:
    """A function of time, state and all other values that it depends on.

    Args:
        parameters: these other values.
        fun: a function of ``t``, ``y`` and the arguments, or ``BranchRecordings`` that take closed-over values too.
        value_ranges: for ``BranchRecordings``, the number of arguments, and the bounds of the closed-over values.
    """

    def __init__(
        self, parameters: Parameters, fun: Callable[..., Any], value_ranges: tuple[int, int, int] | None = None
    ) -> None:
        self.parameters, self.fun, self.value_ranges = parameters, fun, value_ranges

    def __call__(self, t: Any, y: Any, *values: Any) -> Any:
        """Return the value of the function."""
        return self.bound(values)(t, y)

    def bound(self, values: Sequence[Any]) -> Callable[[Any, Any], Any]:
        """Return the function with fixed values, for many calls."""
        fun = self.fun
        if self.value_ranges is None:
            args = self.parameters.with_values(values)
            return lambda t, y: fun(t, y, *args)
        own, first, last = self.value_ranges
        given, held = list(values[:own]), values[first:last]
        return lambda t, y: fun((t, y, given), held)


def _is_plain(y: Any) -> bool:
    """Whether a result consists of NumPy and Python numbers only."""
    return all(
        type(leaf) in (float, int, complex)
        or (issubclass(type(leaf), (np.ndarray, np.generic)) and leaf.dtype.kind in "fciub")
        for leaf in tree.leaves(y)
    )


def _arrays(y: Any) -> Any:
    """Return numbers in a list as one array, and another tree as it is."""
    return fnp.array(y) if _is_vector(y) else y


class Flow:
    """The right-hand side as a function of one real vector or of many at once.

    Args:
        packing: the conversion between states and vectors.
        fun: a function of states in the caller's form.
        vectorized: whether ``fun`` takes columns.
    """

    def __init__(self, packing: Packing, fun: HoistedFunction, vectorized: bool) -> None:
        self.packing, self.fun, self.vectorized = packing, fun, vectorized
        self.size = packing.size * (1 + packing.is_complex)
        self.one_by_one = False  # True once a batch has failed, because the function looks at values

    def vector(self, t: Any, y: Any, *values: Any) -> Any:
        """Return the slope at a vector of the caller's dtype."""
        state = self.packing.unpacked(y[:, None] if self.vectorized else y)
        return self.packing.packed(self.fun(t, state, *values))

    def __call__(self, t: Any, y: Any, *values: Any) -> Any:
        """Return the slope at a real vector."""
        slope = self.vector(t, self.packing.from_real(y), *values)
        if backend.shape_of(slope) != (self.packing.size,):
            raise ShapeError(
                f"{self.packing.call}: fun must return an array like y, got {describe(slope)}, expected "
                f"[{self.packing.size}]."
            )
        if self.packing.is_complex:
            return self.packing.real(fnp.astype(slope, complex))
        return slope if backend.dtype_of(slope) == np.float64 else fnp.astype(slope, float)

    def slopes(self, t: Any, y: Any, *values: Any) -> Any:
        """Return the slopes at states along all axes but the last, at times with the same leading axes."""
        shape = backend.shape_of(y)
        count = int(np.prod(shape[:-1]))
        times, states = fnp.reshape(t, (count,)), fnp.reshape(y, (count, shape[-1]))
        if not self.one_by_one:
            try:
                found = vmap(self, in_axes=(0, 0, *[None] * len(values)))(times, states, *values)
                return fnp.reshape(found, shape)
            except (ConcretizationError, NotDifferentiableError, TypeError, IndexError):
                forget_refusal()
                self.one_by_one = True
        plain = not isinstance(times, Tracer)
        slopes = [self(float(times[i]) if plain else times[i], states[i], *values) for i in range(count)]
        return fnp.reshape(fnp.stack(slopes), shape)
