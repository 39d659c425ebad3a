"""Vector spaces of values: shape, dtype and structure, and functions that make vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, ClassVar

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array
from funcgrad.errors import InputError, ShapeError
from funcgrad.interop.autograd.boxes import as_registered, check_array_class

__all__ = ["ArrayVSpace", "ComplexArrayVSpace", "ContainerVSpace", "VSpace", "differentiable", "vspace"]


class VSpace:
    """Vector space over the real numbers, made by ``vspace``. Spaces are equal if their vectors can be added.

    ``zeros``, ``ones`` and ``randn`` make vectors, ``standard_basis`` makes a basis. The operations leave
    their arguments unchanged and can be differentiated. A vector has the structure of ``shape``.
    """

    iscomplex = False
    shape: Any
    #: Functions that make the space of a value, by the type of the value.
    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    @property
    def size(self) -> int:
        """Number of real numbers in a vector."""
        spaces: list[VSpace] = tree.leaves(self.shape)
        return sum(space.size for space in spaces)

    def zeros(self) -> Any:
        """Return the zero vector."""
        return tree.map(lambda space: space.zeros(), self.shape)

    def ones(self) -> Any:
        """Return the sum of the standard basis."""
        return tree.map(lambda space: space.ones(), self.shape)

    def randn(self) -> Any:
        """Return a vector of standard normal numbers, from NumPy's global generator."""
        return tree.map(lambda space: space.randn(), self.shape)

    def standard_basis(self) -> Iterator[Any]:
        """Yield the vectors with one entry that is 1, and for complex entries the vectors with one entry that is 1j."""
        spaces, spec = tree.flatten(self.shape)
        for i, space in enumerate(spaces):
            for vector in space.standard_basis():
                yield tree.unflatten(spec, [vector if j == i else s.zeros() for j, s in enumerate(spaces)])

    def conformed(self, x: Any) -> Any:
        """Return ``x``, a vector or a value that broadcasts to one, with the shape and dtype of this space."""
        return tree.map(lambda space, leaf: space.conformed(leaf), self.shape, x)

    def add(self, x_prev: Any, x_new: Any) -> Any:
        """Return the sum of two vectors."""
        return tree.map(lambda a, b: a + b, x_prev, x_new)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """Return the sum of two vectors; ``x_prev`` may be None for zero. Neither vector is written to."""
        return self.add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """Return a vector times a number."""
        return tree.map(lambda leaf: leaf * a, x)

    def covector(self, x: Any) -> Any:
        """Return the vector that represents the linear map ``y -> inner_prod(x, y)`` in a vector-Jacobian product."""
        return tree.map(lambda leaf: fnp.conj(leaf) if backend.dtype_of(leaf).kind == "c" else leaf, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the inner product, which is a real number for complex vectors too."""
        pairs = zip(tree.leaves(x), tree.leaves(y), strict=True)
        return sum(fnp.real(fnp.vdot(a, b)) for a, b in pairs)

    @classmethod
    def register(cls, value_type: type, vspace_maker: Any = None) -> None:
        """Make ``vspace_maker(value)`` the space of arrays of a class derived from ``ndarray``.

        Raises:
            InputError: ``value_type`` is not derived from ``ndarray``.
        """
        check_array_class("VSpace.register", value_type)
        VSpace.mappings[value_type] = vspace_maker or cls

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{self.__dict__}"


class ArrayVSpace(VSpace):
    """Space of the arrays of one shape and one real dtype.

    Example:
        >>> space = vspace(np.ones(2))
        >>> space.zeros(), space.size, space.inner_prod(np.ones(2), np.ones(2))
        (array([0., 0.]), 2, np.float64(2.0))
    """

    def __init__(self, value: Any) -> None:
        self.shape = backend.shape_of(value)
        self.dtype = backend.dtype_of(value)

    @property
    def size(self) -> int:
        """Number of real numbers in a vector."""
        count: int = prod(self.shape)
        return count * (2 if self.iscomplex else 1)

    @property
    def ndim(self) -> int:
        """Number of axes of a vector."""
        return len(self.shape)

    def zeros(self) -> Any:
        """Return the zero array."""
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        """Return the array of ones, or of ``1 + 1j`` if the dtype is complex."""
        return np.full(self.shape, 1 + 1j if self.iscomplex else 1, self.dtype)

    def randn(self) -> Any:
        """Return an array of standard normal numbers, from NumPy's global generator."""
        draws = np.random.standard_normal
        return np.asarray(draws(self.shape) + (1j * draws(self.shape) if self.iscomplex else 0), self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        """Yield the arrays with one entry that is 1; if the dtype is complex, also those with one entry that is 1j."""
        for place in np.ndindex(*self.shape):
            for unit in (1, 1j) if self.iscomplex else (1,):
                vector = self.zeros()
                vector[place] = unit
                yield vector

    def conformed(self, x: Any) -> Any:
        """Return ``x`` broadcast to the shape, in the dtype of this space.

        Raises:
            ShapeError: ``x`` does not broadcast to the shape.
            InputError: ``x`` is not an array, or is complex although the space is real.
        """
        if not is_array(x):
            x = np.asarray(x)
        shape, dtype = backend.shape_and_dtype_of(x)
        if dtype == self.dtype and shape == self.shape:
            return x
        if dtype.kind == "c" and not self.iscomplex:
            raise InputError(f"a vector of a real array must be real, got dtype {dtype}. Take its real part.")
        if shape != self.shape:
            try:
                x = fnp.broadcast_to(x, self.shape)
            except ValueError:
                raise ShapeError(
                    f"a vector of an array of shape {self.shape} was asked for, got shape {shape}. Pass one of the "
                    "same shape."
                ) from None
        return x if dtype == self.dtype else fnp.astype(fnp.asarray(x), self.dtype)


class ComplexArrayVSpace(ArrayVSpace):
    """Space of the arrays of one shape and one complex dtype: a real space of twice as many dimensions."""

    iscomplex = True


class ContainerVSpace(VSpace):
    """Space of lists, tuples, dictionaries and other containers of vectors, all nested in the same way.

    Attributes:
        shape: the container, with the space of each array in place of the array.
    """

    def __init__(self, value: Any) -> None:
        self.shape = tree.map(vspace, value)


def vspace(value: Any) -> VSpace:
    """Return the space of ``value``: an array, a floating number, or a container of them; also if they are traced.

    Raises:
        InputError: ``value`` is something else, such as a Python integer (a ``TypeError``).

    Example:
        >>> vspace([1.0, np.zeros(3)]).zeros()
        [array(0.), array([0., 0., 0.])]
    """
    if type(value) in VSpace.mappings:
        made: VSpace = VSpace.mappings[type(value)](value)
        return made
    if is_array(value) and type(value) not in (int, bool):
        return (ComplexArrayVSpace if backend.dtype_of(value).kind == "c" else ArrayVSpace)(value)
    if tree.structure(value).is_leaf():
        raise InputError(
            f"vspace: there are vectors for arrays, floating numbers and containers of them, got {describe(value)}. "
            "Write it as a float, or pass what is constant in another way."
        )
    return ContainerVSpace(value)


def differentiable(x: Any) -> Any:
    """Return ``x`` with integer arrays as floating ones: HIPS autograd differentiates with respect to them."""
    if type(x) is float or (type(x) is np.ndarray and x.dtype.kind in "fc") or isinstance(x, Tracer):
        return x
    x = tree.map(as_registered, x)
    return tree.map(lambda a: a.astype(float) if type(a) is np.ndarray and a.dtype.kind in "iu" else a, x)
