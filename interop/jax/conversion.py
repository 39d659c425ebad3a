"""Conversion of values, and of the containers around them, between NumPy and JAX.

JAX may keep what it receives: the ndarray itself, its memory, or a value that JAX made from that object before, even
in another precision. JAX therefore never sees an ndarray of the caller. A compiled function, which copies during the
call, gets a new view of the ndarray; everything else gets a copy. Results of JAX come back read-only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import describe, plain_value
from funcgrad.errors import InputError
from funcgrad.optional import import_jax

ndarray = np.ndarray
#: Types of NumPy's and Python's numbers and arrays.
HOST_TYPES = frozenset(
    (ndarray, bool, int, float, complex, np.bool_, *(np.dtype(code).type for code in "bBhHiIlLqQefdFD"))
)


def to_numpy(jax: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return arrays of JAX as read-only ndarrays, and arrays without axes as NumPy scalars.

    Values whose numbers are not available stay as they are: tracers, random keys, arrays that other processes share.
    """
    tracer, dtype = jax.core.Tracer, np.dtype
    found = []
    for x in arrays:
        if isinstance(x, tracer) or not isinstance(x.dtype, dtype) or not x.is_fully_addressable:
            found.append(x)
        else:
            array = np.asarray(x)
            found.append(array if array.ndim else array[()])
    return found


def as_views(leaves: Sequence[Any]) -> list[Any]:
    """Return ``leaves`` in the form that a compiled function takes: ndarrays as new views, numbers checked."""
    return [
        _in_native_byte_order(leaf.view(ndarray)) if issubclass(type(leaf), ndarray) else _checked_number(leaf)
        for leaf in leaves
    ]


def _in_native_byte_order(array: ndarray) -> ndarray:
    """Return ``array`` with its bytes in this machine's order, as JAX requires.

    Raises:
        InputError: the numbers are longer than JAX's (a ``TypeError``).
    """
    if array.dtype.char in "gG":
        raise InputError(
            f"jax: it has no numbers longer than float64 and complex128, got {describe(array)}. Shorten them with "
            f"astype({'complex' if array.dtype.kind == 'c' else 'float'})."
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _checked_number(number: Any) -> Any:
    """Return ``number``, which is not an ndarray; raise ``InputError`` if it is longer than JAX's numbers."""
    if isinstance(number, (np.longdouble, np.clongdouble)):
        _in_native_byte_order(np.asarray(number))
    return number


def copied_to_jax(jax: Any, leaf: Any) -> Any:
    """Return an array or number as a JAX array that shares its memory with nothing; Python's numbers stay weak."""
    if isinstance(leaf, jax.Array):
        return leaf
    if isinstance(leaf, ndarray):
        return jax.numpy.array(_in_native_byte_order(np.array(leaf)))
    return jax.numpy.asarray(_checked_number(leaf))


def results_on_host(leaves: Sequence[Any]) -> bool:
    """Whether results shall be NumPy's: no floating value is JAX's, and a floating one is NumPy's or none is JAX's.

    Random keys and integer arrays of JAX can thus be combined with NumPy arrays.
    """
    values = [plain_value(leaf) for leaf in leaves]
    jax_values = [v for v in values if backend.is_of_other_library(v)]
    if any(isinstance(v.dtype, np.dtype) and backend.is_inexact(v) for v in jax_values):
        return False
    return not jax_values or any(backend.namespace_of(v) is np and backend.is_inexact(v) for v in values)


@dataclass(slots=True, unsafe_hash=True)
class Containers:
    """Containers without their leaves, of structure ``spec``. Calling them with leaves fills them."""

    spec: tree.PyTreeSpec

    def __call__(self, *leaves: Any) -> Any:
        """Return the containers with these leaves."""
        return tree.unflatten(self.spec, leaves)

    def apply(self, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """Call ``fun`` with the positional and the keyword arguments that the containers hold with these leaves."""
        args, kwargs = self(*leaves)
        return fun(*args, **kwargs)


def unflattener(containers: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    """Return ``containers`` as a fast function of a list of leaves: after a run of XLA caches hold no Python code."""
    if not isinstance(containers, Containers):
        return lambda leaves: containers(*leaves)
    spec = containers.spec
    if spec.is_leaf():
        return operator.itemgetter(0)
    if spec.type is dict and all(child.is_leaf() for child in spec.children()):
        items = list(containers(*range(spec.num_leaves)).items())
        return lambda leaves: {key: leaves[place] for key, place in items}
    unflatten: Callable[[Sequence[Any]], Any] = spec.unflatten
    return unflatten


def flatten(value: Any) -> tuple[list[Any], Containers]:
    """Return the leaves of ``value`` and the containers around them."""
    leaves, spec = tree.flatten(value)
    return leaves, Containers(spec)


T = TypeVar("T")


def adopt(example: T) -> T:
    """Import JAX, so that funcgrad looks into the containers in ``example`` that are registered with JAX.

    This call is not needed once JAX is imported, as flax and equinox do: transforms then look into such containers by
    themselves.

    Args:
        example: a module, a state, or any containers with registered containers inside.

    Returns:
        ``example`` itself.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).

    Example:
        >>> import jax
        >>> from funcgrad import grad
        >>> from funcgrad.interop import adopt
        >>> @jax.tree_util.register_pytree_node_class
        ... class Line:
        ...     def __init__(self, slope, height):
        ...         self.slope, self.height = slope, height
        ...
        ...     def tree_flatten(self):
        ...         return (self.slope, self.height), None
        ...
        ...     @classmethod
        ...     def tree_unflatten(cls, _, children):
        ...         return cls(*children)
        >>> line = adopt(Line(2.0, 1.0))
        >>> grad(lambda line, x: line.slope * x + line.height)(line, 3.0).slope
        np.float64(3.0)
    """
    import_jax("adopt")
    tree.leaves(example)
    return example
