"""Products of what was broadcast with numbers are computed before it is broadcast: the same bits, of fewer elements."""

from __future__ import annotations

from math import prod

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Const, Graph, Op
from funcgrad.transforms.compiled.storage import FILLED, is_ufunc

__all__ = ["broadcast_later"]


def broadcast_later(graph: Graph) -> None:
    """Do so in ``graph`` for large arrays, where nothing sees that they lie otherwise in memory then."""
    made = {item.outs[0]: item for item in graph.items if type(item) is Op and item.name == "broadcast_to"}
    large = {v for v in made if prod(graph.shapes[v]) > FILLED}
    if not large:
        return
    seen = set(graph.outputs)
    users: dict[int, list[Op]] = {}
    for item in graph.items:
        if type(item) is Ask:
            seen.add(item.value)
        else:
            for a in item.args:
                if type(a) is int:
                    users.setdefault(a, []).append(item)
    items = []
    for item in graph.items:
        broadcast = _of_broadcast(item, graph, large) if type(item) is Op else None
        if broadcast is None or item.outs[0] in seen or not _meets_others(item.outs[0], users, graph):
            items.append(item)
            continue
        first = made[broadcast]
        (x,) = first.args
        v = item.outs[0]
        if type(x) is not int or graph.facts[x].kind is not np.ndarray:
            items.append(item)
            continue
        small = graph.new(graph.shapes[x], graph.dtypes[v], graph.facts[x])
        args = [x if a == broadcast else a for a in item.args]
        items.append(Op(item.primitive, args, {}, [small], item.line))
        items.append(Op(first.primitive, (small,), first.params, [v], item.line))
    graph.items = items
    graph.drop()


def _of_broadcast(op: Op, graph: Graph, large: set[int]) -> int | None:
    """The large broadcast array of which and of numbers an elementwise operation is made."""
    values = [a for a in op.args if type(a) is int]
    if len(values) != 1 or values[0] not in large or not is_ufunc(op) or op.params:
        return None
    if any(type(a) is Const and (a.live or a.shape) for a in op.args):
        return None
    return values[0]


def _meets_others(v: int, users: dict[int, list[Op]], graph: Graph) -> bool:
    """Whether only elementwise operations need ``v``, each with an array as large that lies in memory row by row."""
    for op in users.get(v, ()):
        others = [a for a in op.args if type(a) is int and a != v and graph.shapes[a] == graph.shapes[v]]
        if not is_ufunc(op) or not any(graph.facts[a].contiguous for a in others):
            return False
    return graph.facts[v].kind is np.ndarray
