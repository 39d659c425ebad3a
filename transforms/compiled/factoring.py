"""``a * x + b * x`` of numbers as ``(a + b) * x``, where last bits do not matter: a product less in every step back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Const, Graph, Op, Value

__all__ = ["take_out_factors"]

#: Functions whose results are between -1 and 1.
_BOUNDED = frozenset(("sin", "cos", "tanh"))
_LARGEST = 1e100  # of constants whose sums cannot overflow


def take_out_factors(graph: Graph) -> None:
    """Do so in ``graph``, where a and b are constants or results of such functions: their sum does not overflow."""
    made: dict[int, Op] = {}
    uses = Counter([v for v in graph.outputs if type(v) is int])
    for item in graph.items:
        uses.update([item.value] if type(item) is Ask else [a for a in item.args if type(a) is int])
        if type(item) is Op:
            made[item.outs[0]] = item
    gone: set[int] = set()
    for item in graph.items:
        if type(item) is not Op or item.name != "add" or graph.facts[item.outs[0]].kind is not np.float64:
            continue
        products = [made[a] for a in item.args if type(a) is int and uses[a] == 1 and a in made]
        if len(products) != 2 or any(p.name != "multiply" for p in products) or products[0] is products[1]:
            continue
        earlier, later = sorted(products, key=lambda p: p.outs[0])
        for x in earlier.args:
            if type(x) is not int or x not in later.args or not graph.numbers[x]:
                continue
            a, b = _other(earlier, x), _other(later, x)
            if _is_small(a, graph, made) and _is_small(b, graph, made):
                # the later product becomes the sum, the sum the product
                later.primitive, later.name, later.args = item.primitive, "add", (a, b)
                item.primitive, item.name, item.args = earlier.primitive, "multiply", (x, later.outs[0])
                gone.add(id(earlier))
                break
    graph.items = [item for item in graph.items if id(item) not in gone]


def _other(product: Op, x: Value) -> Value:
    one, other = product.args
    return other if type(one) is int and one == x else one


def _is_small(a: Value, graph: Graph, made: dict[int, Op]) -> bool:
    if type(a) is Const:
        value: Any = a.value
        return type(value) in (int, float, np.ndarray) and not a.shape and bool(abs(value) <= _LARGEST)
    return graph.numbers[a] and a in made and made[a].name in _BOUNDED
