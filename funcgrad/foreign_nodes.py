"""Classes registered as containers with JAX or in another namespace of optree: they are containers here, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad import backend
from funcgrad.optional import loaded_jax

if TYPE_CHECKING:
    # optree's own annotations lead a type checker through all of JAX and PyTorch, where these are installed.
    optree: Any
else:
    import optree

#: Namespace of funcgrad's registrations in optree.
NAMESPACE = "funcgrad"
#: Types of leaves that need no check; types of other arrays and of tracers are added when they are first seen.
LEAVES = {np.ndarray, float, int, bool, complex, np.float64, np.float32, np.int64, np.bool_, str, object}
_adopted: set[type] = set()

Flatten = Callable[[Any], tuple[Iterable[Any], Any, tuple[Any, ...]]]
Unflatten = Callable[[Any, Iterable[Any]], Any]


class _JaxPathEntry(optree.PyTreeEntry):  # type: ignore[misc]
    """Entry of a key path, in the text form that JAX gives it."""

    def codify(self, /, node: str = "") -> str:
        return f"{node}{self.entry}"


def adopt_classes(leaves: Iterable[Any]) -> bool:
    """Register the classes of ``leaves`` that are containers elsewhere; return whether any class was registered."""
    before = len(_adopted)
    for leaf in leaves:
        kind = type(leaf)
        if kind in LEAVES or kind in _adopted:
            continue
        if backend.is_value(leaf):
            LEAVES.add(kind)
            continue
        _adopt(leaf)
        if kind not in _adopted and kind.__module__.startswith("funcgrad."):
            LEAVES.add(kind)  # a tracer
    return len(_adopted) > before


def forget_class(kind: type) -> None:
    """Undo the registration that ``adopt_classes`` made for a class, before the class is registered in another way."""
    if kind in _adopted:
        _adopted.discard(kind)
        optree.unregister_pytree_node(kind, namespace=NAMESPACE)


def _adopt(leaf: Any) -> None:
    kind = type(leaf)
    found = _optree_functions(kind) or _jax_functions(leaf)
    if found is not None:
        flatten, unflatten, entry = found
        _adopted.add(kind)
        try:
            optree.register_pytree_node(kind, flatten, unflatten, path_entry_type=entry, namespace=NAMESPACE)
        except ValueError:  # another thread has registered it
            assert optree.register_pytree_node.get(kind, namespace=NAMESPACE) is not None


def _optree_functions(kind: type) -> tuple[Flatten, Unflatten, type] | None:
    """Return the functions and the path entry type registered for ``kind`` in the first optree namespace with it."""
    registry = getattr(optree.registry, "_NODETYPE_REGISTRY", {})
    found = next((registry[key] for key in registry if isinstance(key, tuple) and key[1] is kind), None)
    return None if found is None else (found.flatten_func, found.unflatten_func, found.path_entry_type)


def _jax_functions(leaf: Any) -> tuple[Flatten, Unflatten, type] | None:
    """Return functions that flatten and unflatten the class of ``leaf`` as JAX does; None if JAX has no such class."""
    jax = loaded_jax()
    tools = getattr(jax, "tree_util", None)  # None while another thread imports it
    if tools is None or tools.all_leaves([leaf]):
        return None

    def flatten(container: Any) -> tuple[list[Any], Any, tuple[str, ...]]:
        pairs, structure = tools.tree_flatten_with_path(container, is_leaf=lambda x: x is not container)
        return [child for _, child in pairs], structure, tuple(tools.keystr(path) for path, _ in pairs)

    return flatten, lambda structure, children: structure.unflatten(children), _JaxPathEntry
