"""Containers that are registered with JAX: modules and states of its libraries."""

from __future__ import annotations

from typing import TypeVar

from funcgrad import tree
from funcgrad.optional import import_jax

__all__ = ["adopt"]

T = TypeVar("T")


def adopt(example: T) -> T:
    """Import JAX, so that funcgrad looks into the containers in ``example`` that are registered with it.

    Where JAX is imported, as it is for whoever has a module of flax or equinox, nothing needs to be called:
    transforms look into such containers by themselves.

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
