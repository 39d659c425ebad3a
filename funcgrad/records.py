"""Records of a tape: what they hold, and how rules and readers get at it by name.

A record (a *node*) is a flat tuple of data and a static rule, never a closure::

    (number, pull, first parent, second parent, *saved values)

Three layouts say how ``pull(ct, record)`` answers: with one parent (second is None) it returns one
cotangent; with two, a pair; where the first is None the second is a tuple of any number of parents
and ``pull`` returns as many cotangents, None for zero. A leaf is ``(number, None)``.

A rule takes what was saved as arguments, one for each: ``reading`` makes a pull of it.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

__all__ = [
    "Node",
    "called",
    "gives_one",
    "number_of",
    "operation_of",
    "parents_of",
    "parting",
    "pull_in",
    "reachable",
    "reading",
    "saved_by",
    "with_parent",
    "with_pull",
    "with_saved",
]

Node: TypeAlias = tuple[Any, ...]

#: The place of a record in the order of execution, counted downwards.
number_of: Callable[[Node], int] = itemgetter(0)
#: What pulls a cotangent through a record; None for a leaf.
pull_in: Callable[[Node], Any] = itemgetter(1)
#: What a record has saved, in order.
saved_by: Callable[[Node], tuple[Any, ...]] = itemgetter(slice(4, None))


def reading(
    rule: Callable[..., Any], places: tuple[int, ...] | None = None, *, params: bool = False
) -> Callable[[Any, Node], Any]:
    """The pull that calls ``rule(ct, *saved)``.

    Args:
        rule: what gives the cotangents.
        places: which of the saved values it takes behind the cotangent; by default all that it names.
        params: whether the first saved value is a dictionary that the rule takes as keywords.

    Example:
        >>> pull = reading(lambda ct, x, shape: (ct * x, shape))
        >>> pull(2.0, (-1, pull, (0, None), None, 3.0, (4, 5)))
        (6.0, (4, 5))
    """
    if places is None:
        places = tuple(range(rule.__code__.co_argcount - 1))
    made: Callable[[Any, Node], Any] = _reader(places, params)(rule)
    return made


@lru_cache(maxsize=64)
def _reader(places: tuple[int, ...], params: bool) -> Callable[[Callable[..., Any]], Callable[[Any, Node], Any]]:
    """What makes a pull of a rule of these saved values: as text, for a slice and a star take longer than the rest."""
    given = [*[f"record[{4 + place}]" for place in places], *["**record[4]"] * params]
    return _made(f"rule({', '.join(['ct', *given])})")


def parting(collect: Callable[..., Any], saved: int) -> Callable[[Any, Node], Any]:
    """The pull that gives the part ``(collect, ct, *saved)`` of a cotangent, see ``reverse.Parts``.

    Args:
        collect: what makes the whole of parts.
        saved: how many values were saved.

    Example:
        >>> pull = parting(sum, 2)
        >>> pull(2.0, (-1, pull, (0, None), None, 3.0, (4, 5)))[1:]
        (2.0, 3.0, (4, 5))
    """
    made: Callable[[Any, Node], Any] = _made(", ".join(["rule, ct", *[f"record[{4 + i}]" for i in range(saved)]]))(
        collect
    )
    return made


def _made(answer: str) -> Callable[[Callable[..., Any]], Callable[[Any, Node], Any]]:
    """What makes a pull of a rule, from the text of what it returns."""
    text = f"def make(rule):\n    def pull(ct, record):\n        return {answer}\n    return pull\n"
    file = f"<funcgrad: pull of {answer}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # so that tracebacks show it
    scope: dict[str, Any] = {"__name__": __name__}  # the library's, for who looks for the user's lines
    exec(compile(text, file, "exec"), scope)
    make: Callable[[Callable[..., Any]], Callable[[Any, Node], Any]] = scope["make"]
    return make


def called(ct: Any, node: Node) -> Any:
    """What the pull of a record makes of a cotangent."""
    return node[1](ct, node)


def operation_of(node: Node) -> str:
    """The name of the operation that a record belongs to; "part" for one of several results of its parent."""
    name = getattr(node[1], "operation", node[1].__name__)
    return name if isinstance(name, str) else name(*node[4:])


def parents_of(node: Node) -> tuple[Node, ...]:
    """The records that a record depends on."""
    if node[1] is None:
        return ()
    first, second = node[2], node[3]
    if first is None:
        return tuple(second)
    return (first,) if second is None else (first, second)


def gives_one(node: Node) -> bool:
    """Whether the pull of a record answers with one cotangent, and not with one for each of several parents."""
    return node[3] is None


def with_pull(node: Node, pull: Any) -> Node:
    """The same record with another pull."""
    return (node[0], pull, *node[2:])


def with_parent(node: Node, parent: Node) -> Node:
    """The same record, of one parent, with another one."""
    return (*node[:2], parent, *node[3:])


def reachable(ends: Sequence[Node | None]) -> dict[int, Node]:
    """All records that a backward pass from ``ends`` may visit, by their place in the order of execution."""
    found = {-node[0]: node for node in ends if node is not None}
    waiting = list(found.values())
    while waiting:
        for parent in parents_of(waiting.pop()):
            if -parent[0] not in found:
                found[-parent[0]] = parent
                waiting.append(parent)
    return found


def with_saved(ends: Sequence[Node | None], change: Callable[[Any], Any]) -> list[Node | None]:
    """The same records, in which ``change(x)`` stands for each value ``x`` that was saved.

    A record that would be the same, down to what it depends on, is itself.
    """
    records = reachable(ends)
    made: dict[int, Node] = {}
    for place in sorted(records):
        node = made[place] = records[place]
        if node[1] is None:
            continue
        first, second = node[2], node[3]
        if first is not None:
            first = made[-first[0]]
        if type(second) is tuple:
            several = first is None
            second = tuple([made[-parent[0]] for parent in second]) if several else made[-second[0]]
        saved = [change(x) for x in node[4:]]
        old = (*parents_of(node), *node[4:])
        new = (*parents_of((*node[:2], first, second)), *saved)
        if any(a is not b for a, b in zip(old, new, strict=True)):
            made[place] = (*node[:2], first, second, *saved)
    return [None if node is None else made[-node[0]] for node in ends]
