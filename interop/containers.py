"""Containers that JAX knows and funcgrad does not: modules and states of JAX's libraries."""

from __future__ import annotations

from typing import Any, TypeVar

from funcgrad import tree
from funcgrad.interop.conversion import is_array
from funcgrad.optional import import_jax

__all__ = ["adopt"]

T = TypeVar("T")


def adopt(example: T) -> T:
    """Let funcgrad look into the containers in ``example`` that so far only JAX can look into.

    ``from_jax``, ``to_jax`` and ``jit`` see through them without. The transforms need it to differentiate a
    whole module of flax or equinox, or to map over one. Classes are adopted for good, with all that they hold.

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
    jax = import_jax("adopt")
    waiting: list[Any] = [example]
    while waiting:
        x = waiting.pop()
        inside = tree.leaves(x)
        if len(inside) != 1 or inside[0] is not x:
            waiting += inside
        elif not is_array(x):
            children, structure = _one_level(jax, x)
            if not jax.tree_util.treedef_is_leaf(structure):
                tree.register_pytree_node(type(x), lambda x: _one_level(jax, x), _rebuilt)
                waiting += children
    return example


def _rebuilt(structure: Any, children: Any) -> Any:
    return structure.unflatten(children)


def _one_level(jax: Any, container: Any) -> tuple[list[Any], Any]:
    """What a container of JAX holds directly, and its structure."""
    children, structure = jax.tree_util.tree_flatten(container, is_leaf=lambda x: x is not container)
    return children, structure
