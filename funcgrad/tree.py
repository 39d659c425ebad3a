"""Pytrees: nested containers with arrays at their leaves, by optree.

None is an empty container, as in JAX. The leaves of a dictionary are in the order of its sorted keys; ``unflatten``
returns a dictionary with its keys in the original order.
Register other classes with ``register_pytree_node`` or ``register_dataclass``. Classes that are registered with JAX,
or with optree in any namespace, are containers here without that.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np

from funcgrad.errors import InputError, ShapeError, short_repr
from funcgrad.foreign_nodes import LEAVES, NAMESPACE, adopt_classes, forget_class
from funcgrad.typing import PyTree

if TYPE_CHECKING:
    # optree's own annotations lead a type checker through all of JAX and PyTorch, where these are installed.
    optree: Any

    class PyTreeSpec(Protocol):
        """Structure of a tree, optree's ``PyTreeSpec``."""

        num_leaves: int
        type: type | None
        accessors: Callable[[], list[Any]]
        children: Callable[[], list[PyTreeSpec]]
        flatten_up_to: Callable[[PyTree], list[PyTree]]
        is_leaf: Callable[[], bool]
        unflatten: Callable[[Iterable[Any]], PyTree]
else:
    import optree
    from optree import PyTreeSpec

__all__ = [
    "ATOMS", "PyTreeSpec", "broadcast_prefix", "drawn", "flatten", "flatten_with_path", "is_container", "leaves", "map",
    "prefix_parts", "register_dataclass", "register_pytree_node", "structure", "unflatten", "visit_arrays",
]  # fmt: skip

_DTYPES = {type(np.dtype(code)) for code in np.typecodes["All"]}
_PYTHON = (int, float, complex, bool, str, type(None), slice, type(Ellipsis))
#: Types whose values contain no array.
ATOMS: frozenset[type[Any]] = frozenset((*_DTYPES, *_PYTHON, np.float64))
_LEAF: PyTreeSpec = optree.tree_flatten(0.0, namespace=NAMESPACE)[1]
T = TypeVar("T", bound=type)
map_ = map  # Python's builtin, which tree.map shadows below


def _refuse_depth(error: RecursionError) -> NoReturn:
    """Raise ``InputError`` for a tree that contains itself or is nested too deep for optree."""
    if "tree" not in str(error):  # the error of a user function
        raise error
    raise InputError(
        f"{_public_call(sys._getframe(2))}: a pytree is nested too deep, or holds itself, got one of more than "
        f"{optree.MAX_RECURSION_DEPTH} levels. Keep what is deep in an array, or in a list with an entry per level."
    ) from None


def _public_call(frame: FrameType | None) -> str:
    """Return the name of the public function of funcgrad that the user has called."""
    name = "tree"
    while frame is not None and frame.f_globals.get("__name__", "").startswith("funcgrad"):
        run = getattr(frame.f_locals.get("self"), "run", None)
        called = run.__name__.removeprefix("run_") if callable(run) else frame.f_code.co_name
        if called == "__call__":
            called = type(frame.f_locals.get("self")).__name__.lower()
        name = name if called.startswith(("_", "<")) else called
        frame = frame.f_back
    return name


def flatten(tree: PyTree) -> tuple[list[Any], PyTreeSpec]:
    """Return the leaves of ``tree`` and its structure.

    The leaves are in the order of the containers, those of a dictionary in the order of its sorted keys. None is a
    container without leaves.

    Example:
        >>> from funcgrad import tree
        >>> tree.flatten({"b": 1, "a": (2, None)})[0]
        [2, 1]
    """
    if type(tree) in LEAVES:  # the most frequent case
        return [tree], _LEAF
    try:
        found, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
        while not LEAVES.issuperset(map_(type, found)) and adopt_classes(found):
            found, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
        return found, spec
    except RecursionError as error:
        _refuse_depth(error)


def flatten_with_path(tree: PyTree) -> tuple[list[str], list[Any], PyTreeSpec]:
    """Return the key path of each leaf as Python code, the leaves, and the structure, see ``flatten``.

    Example:
        >>> from funcgrad import tree
        >>> tree.flatten_with_path({"w": [1, 2]})[0]
        ["['w'][0]", "['w'][1]"]
    """
    try:
        flatten(tree)
        paths, found, spec = optree.tree_flatten_with_path(tree, namespace=NAMESPACE)
    except RecursionError as error:
        _refuse_depth(error)
    accessors = spec.accessors()
    return [a.codify("") for a in accessors] if paths else [], found, spec


def unflatten(spec: PyTreeSpec, found: Iterable[Any]) -> PyTree:
    """Build the tree of structure ``spec`` with the leaves ``found``.

    Raises:
        ValueError: the number of leaves is not that of the structure.

    Example:
        >>> from funcgrad import tree
        >>> leaves, spec = tree.flatten({"a": 1, "b": 2})
        >>> tree.unflatten(spec, [10, 20])
        {'a': 10, 'b': 20}
    """
    return spec.unflatten(found)


def leaves(tree: PyTree) -> list[Any]:
    """Return the leaves of ``tree`` in the order of ``flatten``.

    Example:
        >>> from funcgrad import tree
        >>> tree.leaves([1, (2, None), {"k": 3}])
        [1, 2, 3]
    """
    if type(tree) in LEAVES:
        return [tree]
    try:
        found = optree.tree_leaves(tree, namespace=NAMESPACE)
    except RecursionError as error:
        _refuse_depth(error)
    return found if LEAVES.issuperset(map_(type, found)) else flatten(tree)[0]


def structure(tree: PyTree) -> PyTreeSpec:
    """Return the structure of ``tree`` without its leaves.

    Example:
        >>> from funcgrad import tree
        >>> tree.structure((1, 2)) == tree.structure((3, 4))
        True
    """
    return flatten(tree)[1]


def drawn(spec: PyTreeSpec) -> str:
    """Return a structure as Python code with ``*`` for each leaf, for messages.

    Example:
        >>> from funcgrad import tree
        >>> tree.drawn(tree.structure({"a": (1, 2)}))
        "{'a': (*, *)}"
    """
    text = str(spec).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(f", namespace={NAMESPACE!r}")
    return re.sub(r"CustomTreeNode\((\w+)\[[^\]]*\], ", r"\1(", text)


def map(fun: Callable[..., Any], tree: PyTree, *rest: PyTree) -> PyTree:
    """Apply ``fun`` to the leaves of ``tree`` and of ``rest``, trees of the same structure; keep the structure.

    Args:
        fun: a function with a parameter for ``tree`` and one for each of ``rest``.
        tree: a pytree, or a leaf.
        rest: further trees with the same containers and keys; in place of a leaf they may have a whole tree.

    Raises:
        TypeError: ``fun`` is not callable.
        ValueError: the trees have different structures.

    Example:
        >>> from funcgrad import tree
        >>> tree.map(lambda a, b: a + b, {"w": 1}, {"w": 2})
        {'w': 3}
    """
    if not callable(fun):
        raise InputError(
            f"tree.map: the first argument must be a function, got {short_repr(fun)}. Write tree.map(f, tree)."
        )
    found, spec = flatten(tree)
    try:
        others = [spec.flatten_up_to(other) for other in rest]
    except ValueError as error:
        raise ShapeError(
            f"tree.map: the trees have different structures: {error} Pass the same containers with the same keys."
        ) from None
    return spec.unflatten([fun(*entries) for entries in zip(found, *others, strict=True)])


def broadcast_prefix(prefix: PyTree, whole: PyTree) -> list[Any]:
    """Return for each leaf of ``whole`` its entry of ``prefix``, a prefix of the tree. None is an entry, too.

    Raises:
        ValueError: ``prefix`` is not a prefix of ``whole``.

    Example:
        >>> from funcgrad import tree
        >>> tree.broadcast_prefix((0, None), ({"a": 1, "b": 2}, 3))
        [0, 0, None]
    """
    return [entry for entry, part in prefix_parts(prefix, whole) for _ in leaves(part)]


def prefix_parts(prefix: PyTree, whole: PyTree) -> list[tuple[Any, PyTree]]:
    """Return the entries of ``prefix``, a prefix of the tree ``whole``, each with the subtree in its place.

    None is an entry of ``prefix``.

    Raises:
        ValueError: ``prefix`` is not a prefix of ``whole``.

    Example:
        >>> from funcgrad import tree
        >>> tree.prefix_parts((0, None), (1, {"a": 2, "b": 3}))
        [(0, 1), (None, {'a': 2, 'b': 3})]
    """
    try:
        entries, spec = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
        while not LEAVES.issuperset(map_(type, entries)) and adopt_classes(entries):
            entries, spec = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
    except RecursionError as error:
        _refuse_depth(error)
    return list(zip(entries, spec.flatten_up_to(whole), strict=True))


def is_container(cls: type) -> bool:
    """Whether ``cls`` is registered as a container, so that its instances hold leaves.

    Example:
        >>> from funcgrad import tree
        >>> tree.is_container(dict), tree.is_container(set)
        (True, False)
    """
    return optree.register_pytree_node.get(cls, namespace=NAMESPACE) is not None


def visit_arrays(x: Any, visit: Callable[[np.ndarray], None], seen: set[int], skipped: type | tuple[()] = ()) -> None:
    """Call ``visit`` with each ndarray in ``x``, once for each place in it; visit each container once.

    Args:
        x: an array or a container of any depth: records of a tape, for instance, contain each other.
        visit: the function to call. It may count references: no other variable here holds the array.
        seen: the ``id``s of containers to skip; those of visited containers are added.
        skipped: a class whose instances are not visited.

    Example:
        >>> from funcgrad import tree
        >>> inner = [np.ones(2)]
        >>> tree.visit_arrays((inner, inner, 3.0), print, set())
        [1. 1.]
    """
    waiting = [x]
    del x
    while waiting:
        x = waiting.pop()
        kind = type(x)
        if kind is np.ndarray:
            visit(x)
        elif kind not in ATOMS and id(x) not in seen and not isinstance(x, skipped):
            inner = _parts(x)
            if inner is not None:
                seen.add(id(x))
                waiting.extend(inner)


def _parts(x: Any) -> Any:
    """Return the entries of a container, or None if ``x`` is not a container."""
    if isinstance(x, (tuple, list)):
        return x
    if type(x) is dict:
        return x.values()
    return leaves(x) if is_container(type(x)) else None


def register_pytree_node(
    cls: T,
    flatten_fun: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fun: Callable[[Any, Iterable[Any]], Any],
) -> T:
    """Register ``cls``, so that its instances are containers of leaves.

    Args:
        cls: the class.
        flatten_fun: ``flatten_fun(obj) -> (children, static)``.
        unflatten_fun: ``unflatten_fun(static, children) -> obj``, as in JAX.

    Example:
        >>> from funcgrad import register_pytree_node, tree
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> _ = register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
        >>> tree.leaves(Pair(1, 2))
        [1, 2]
    """
    _register(cls, flatten_fun, unflatten_fun)
    return cls


def _register(cls: type, flatten_fun: Any, unflatten_fun: Any, **how: Any) -> None:
    """Register a class with optree, in place of a registration adopted from another library."""
    forget_class(cls)
    optree.register_pytree_node(cls, flatten_fun, unflatten_fun, namespace=NAMESPACE, **how)


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Register a dataclass as a container; also a decorator, above ``@dataclass``.

    Args:
        nodetype: the dataclass.
        data_fields: the fields that are leaves or containers; by default all fields that are not static.
        meta_fields: the fields that are structure, not leaves; by default the fields with
            ``static=True`` in their ``metadata``.
        drop_fields: fields that are neither, such as caches. Results of transforms do not have these fields.

    Raises:
        TypeError: not a dataclass, a name that is not a field, a field named twice, or a field that is missing.

    Example:
        >>> import dataclasses
        >>> from funcgrad import register_dataclass, tree
        >>> @register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     w: float
        ...     b: float
        ...     name: str = dataclasses.field(default="", metadata=dict(static=True))
        >>> tree.leaves(Layer(w=1.0, b=2.0, name="first"))
        [1.0, 2.0]
    """
    dynamic, constant = _fields(nodetype, data_fields, meta_fields, drop_fields)

    def flatten_fun(obj: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        entries = tuple(dynamic)
        return tuple(getattr(obj, n) for n in dynamic), tuple(getattr(obj, n) for n in constant), entries

    def unflatten_fun(metadata: Any, children: Iterable[Any]) -> Any:
        # __init__ is not called: a transform may put any object in a leaf, which validation there might refuse.
        obj: Any = object.__new__(nodetype)
        for name, child in (*zip(dynamic, children, strict=True), *zip(constant, metadata, strict=True)):
            object.__setattr__(obj, name, child)
        return obj

    _register(nodetype, flatten_fun, unflatten_fun, path_entry_type=optree.GetAttrEntry)
    return nodetype


def _fields(cls: type, data: Any, meta: Any, dropped: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of the data fields of a dataclass, and of the fields that are structure."""
    if not dataclasses.is_dataclass(cls):
        raise InputError(
            f"register_dataclass: a dataclass is needed, got {cls!r}. Put @dataclass below it, or use "
            "register_pytree_node."
        )
    names = {f.name: f for f in dataclasses.fields(cls)}
    static = [n for n, f in names.items() if f.metadata.get("static", False)] if meta is None else list(meta)
    given = [n for n in names if n not in (*static, *dropped)] if data is None else list(data)
    if sorted([*given, *static, *dropped]) != sorted(names):
        raise InputError(
            f"register_dataclass: the fields of {cls.__name__} are {list(names)}, got data_fields={given}, "
            f"meta_fields={static} and drop_fields={list(dropped)}. Name each field once."
        )
    return given, static
