"""Trees as vectors of real numbers: the form in which solvers of SciPy hold what they look for."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, twin
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.interop.jax.devices import moved
from funcgrad.optional import import_jax
from funcgrad.transforms.arguments import check_leaf
from funcgrad.typing import PyTree

__all__ = ["Layout", "plain"]


class Slot(NamedTuple):
    """Where the numbers of a leaf stand, and what the leaf is. Complex ones have their imaginary parts behind."""

    start: int
    stop: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    number: bool  # no ndarray, not even one without axes
    home: Any  # the sharding of a JAX array, else None


class Layout:
    """How the leaves of a tree stand in a vector, one after the other.

    Args:
        call: the public call, for messages.
        what: what the tree is, for messages.
        whole: the tree; real or complex floating leaves.

    Raises:
        InputError: a leaf that is no floating array or number (a ``TypeError``).
        NotDifferentiableError: a leaf is being differentiated or batched (a ``TypeError``).

    Example:
        >>> layout = Layout("minimize", "params", {"b": 1.0, "w": np.ones((1, 2))})
        >>> layout.size, layout.tree(np.arange(3.0))
        (3, {'b': np.float64(0.0), 'w': array([[1., 2.]])})
    """

    def __init__(self, call: str, what: str, whole: PyTree) -> None:
        paths, leaves, self.spec = tree.flatten_with_path(whole)
        self.paths = [what + path for path in paths]
        self.slots: list[Slot] = []
        start = 0
        for path, leaf in zip(self.paths, leaves, strict=True):
            slot = _slot(call, path, plain(call, path, leaf), start)
            self.slots.append(slot)
            start = slot.stop
        self.size = start
        self.single = len(leaves) == 1 and self.spec.is_leaf()

    @property
    def complex(self) -> bool:
        """Whether there is a complex leaf."""
        return any(slot.dtype.kind == "c" for slot in self.slots)

    def vector(self, whole: PyTree, *, gradient: bool = False) -> Any:
        """The numbers of a tree like the first; tracers give a tracer.

        Args:
            whole: the tree.
            gradient: whether it is a gradient: of a complex leaf z = x + iy that is du/dx - i du/dy.
        """
        parts = []
        for leaf, slot in zip(tree.leaves(whole), self.slots, strict=True):
            flat = fnp.ravel(twin(leaf))
            if slot.dtype.kind == "c":
                imaginary = fnp.imag(flat)
                parts += [fnp.real(flat), -imaginary if gradient else imaginary]
            else:
                parts.append(flat)
        joined = parts[0] if len(parts) == 1 else fnp.concatenate(parts)
        # A copy: solvers keep vectors, and what is here may be the caller's own array.
        return joined if isinstance(joined, Tracer) else np.array(joined, np.float64)

    def tree(self, vector: Any, *, gradient: bool = False) -> PyTree:
        """The tree with these numbers, its leaves of the dtypes of before; a tracer gives tracers."""
        if type(vector) is np.ndarray:
            vector = vector.copy()  # solvers write over theirs
        return tree.unflatten(self.spec, [_leaf(vector[slot.start : slot.stop], slot, gradient) for slot in self.slots])


def _slot(call: str, path: str, leaf: Any, start: int) -> Slot:
    check_leaf(call, leaf, lambda: path)
    shape, dtype = backend.shape_of(leaf), backend.dtype_of(leaf)
    if not backend.is_inexact(leaf):
        raise InputError(
            f"{call}: {path} must be real or complex floating point, got dtype {dtype}. Convert it to float; what "
            "stays as it is goes into args."
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
        return moved(import_jax("device_put"), part, slot.home)
    return part[()] if slot.number and type(part) is np.ndarray else part


def plain(call: str, what: str, value: PyTree) -> PyTree:
    """``value`` without what is being differentiated, batched or compiled: a solver outside funcgrad sees none of that.

    Raises:
        NotDifferentiableError: a ``TypeError``.
    """
    found = tree.map(twin, value)
    for leaf in tree.leaves(found):
        if isinstance(leaf, Tracer):
            raise NotDifferentiableError(
                f"{call}: {what} is being differentiated, batched or compiled, got {describe(leaf)}. SciPy sees plain "
                "numbers only: make this call the solver of funcgrad.custom_root to differentiate its answer, or take "
                "stop_gradient of what is a constant."
            )
    return found
