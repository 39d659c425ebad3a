"""Values on their way between NumPy and JAX, and the containers they come in.

JAX may keep what it is given: the very ndarray, its memory, or what it once made of that object, even in
another precision. So JAX never sees an ndarray that belongs to somebody else: a compiled function, which
copies while it is called, gets a new view of it, everything else a copy. What comes back is read-only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.optional import import_jax
from funcgrad.writable import bottom

__all__ = [
    "HOST", "Frame", "adopt", "filling", "is_array", "on_host", "private", "take_apart", "to_numpy",
    "viewed",
]  # fmt: skip

ndarray = np.ndarray
#: The types of numbers and arrays that are NumPy's or Python's.
HOST = frozenset((ndarray, bool, int, float, complex, np.bool_, *(np.dtype(code).type for code in "bBhHiIlLqQefdFD")))


def to_numpy(jax: Any, arrays: Sequence[Any]) -> list[Any]:
    """Arrays of JAX as read-only ndarrays, those without axes as NumPy scalars.

    What has no numbers to show stays what it is: tracers, random keys, arrays of which other processes hold a part.
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


def viewed(leaves: Sequence[Any]) -> list[Any]:
    """``leaves`` for a compiled function."""
    return [_native(leaf.view(ndarray)) if issubclass(type(leaf), ndarray) else _short(leaf) for leaf in leaves]


def _native(array: ndarray) -> ndarray:
    """``array`` with its bytes in the order of this machine, as JAX wants them.

    Raises:
        InputError: numbers longer than JAX has them (a ``TypeError``).
    """
    if array.dtype.char in "gG":
        raise InputError(
            f"jax: it has no numbers longer than float64 and complex128, got {describe(array)}. Shorten them with "
            f"astype({'complex' if array.dtype.kind == 'c' else 'float'})."
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _short(number: Any) -> Any:
    """``number``, which is no ndarray, if JAX has such numbers."""
    if isinstance(number, (np.longdouble, np.clongdouble)):
        _native(np.asarray(number))
    return number


def private(jax: Any, leaf: Any) -> Any:
    """An array or number as an array of JAX that shares no memory with anybody; Python's numbers stay weak."""
    if isinstance(leaf, jax.Array):
        return leaf
    return jax.numpy.array(_native(np.array(leaf))) if isinstance(leaf, ndarray) else jax.numpy.asarray(_short(leaf))


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array, a number or a tracer."""
    return isinstance(x, Tracer) or backend.is_value(x)


def on_host(leaves: Sequence[Any]) -> bool:
    """Whether results shall be NumPy's: no floating value is JAX's, and where NumPy has none, no value at all.

    So random keys and integer arrays of JAX can go along with NumPy arrays.
    """
    values = [bottom(leaf) for leaf in leaves]
    theirs = [v for v in values if backend.namespace_of(v) not in (None, np)]
    if any(isinstance(v.dtype, np.dtype) and backend.is_inexact(v) for v in theirs):
        return False
    return not theirs or any(backend.namespace_of(v) is np and backend.is_inexact(v) for v in values)


class Frame:
    """Containers without their leaves; calling it with leaves fills it. Compared by what it holds.

    Args:
        spec: the structure as funcgrad sees it.
        inner: where JAX alone knows a container, its structure; else None. Empty where that is nowhere.
    """

    __slots__ = ("inner", "spec")

    def __init__(self, spec: tree.PyTreeSpec, inner: tuple[Any, ...] = ()) -> None:
        self.spec = spec
        self.inner = inner

    def __call__(self, *leaves: Any) -> Any:
        """The containers with these leaves."""
        if not self.inner:
            return tree.unflatten(self.spec, leaves)
        rest = iter(leaves)
        outer = [
            next(rest) if one is None else one.unflatten([next(rest) for _ in range(one.num_leaves)])
            for one in self.inner
        ]
        return tree.unflatten(self.spec, outer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and (self.spec, self.inner) == (other.spec, other.inner)

    def __hash__(self) -> int:
        return hash((self.spec, self.inner))


def filling(frame: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    """``frame`` as a function of a list of leaves, made for speed: after a program Python is in no cache any more."""
    if not isinstance(frame, Frame) or frame.inner:
        return lambda leaves: frame(*leaves)
    spec = frame.spec
    if spec.is_leaf():
        return operator.itemgetter(0)
    if spec.type is dict and all(child.is_leaf() for child in spec.children()):
        items = list(frame(*range(spec.num_leaves)).items())
        return lambda leaves: {key: leaves[place] for key, place in items}
    fill: Callable[[Sequence[Any]], Any] = spec.unflatten
    return fill


def take_apart(jax: Any, value: Any) -> tuple[list[Any], Frame]:
    """The leaves of ``value`` and the containers around them, those that JAX alone knows included."""
    leaves, spec = tree.flatten(value)
    if all(type(leaf) in HOST or is_array(leaf) for leaf in leaves):
        return leaves, Frame(spec)
    found: list[Any] = []
    inner: list[Any] = []
    for leaf in leaves:
        parts, structure = [leaf], None
        if not is_array(leaf):
            parts, structure = jax.tree_util.tree_flatten(leaf)
            if jax.tree_util.treedef_is_leaf(structure):
                structure = None
        found += parts
        inner.append(structure)
    return found, Frame(spec, tuple(inner)) if any(one is not None for one in inner) else Frame(spec)


T = TypeVar("T")


def adopt(example: T) -> T:
    """Import JAX, so that funcgrad looks into the containers in ``example`` that are registered with it.

    Transforms look into such containers by themselves once JAX is imported, as flax and equinox do. Then this call
    is not needed.

    Args:
        example: a module, a state, or any containers with such inside.

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
