"""Helper functions of HIPS autograd's ``util``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

__all__ = ["func", "subval", "subvals", "toposort"]


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return ``x`` as a tuple in which entry ``i`` is ``v`` for each pair ``(i, v)``.

    Example:
        >>> subvals((1, 2, 3), [(0, 10), (-1, 30)])
        (10, 2, 30)
    """
    entries = list(x)
    for i, v in ivs:
        entries[i] = v
    return tuple(entries)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Return ``x`` as a tuple whose entry ``i`` is ``v``.

    Example:
        >>> subval((1, 2), 1, 20)
        (1, 20)
    """
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """Return ``f``: a function read from a class is a plain function, so there is nothing to unwrap."""
    return f


def toposort(end_node: Any, parents: Callable[[Any], Iterable[Any]] = attrgetter("parents")) -> Iterator[Any]:
    """Yield the nodes that ``end_node`` depends on, each before the nodes that it was computed from.

    Args:
        end_node: a node, which comes first.
        parents: function that returns the nodes from which a node was computed.

    Example:
        >>> list(toposort("abc", lambda text: [text[1:]] if text else []))
        ['abc', 'bc', 'c', '']
    """
    waiting: dict[Any, int] = {}
    stack = [end_node]
    while stack:
        node = stack.pop()
        waiting[node] = waiting.get(node, 0) + 1
        if waiting[node] == 1:
            stack.extend(parents(node))
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
