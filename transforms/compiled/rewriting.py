"""Rewrites of a recorded graph: later and shared broadcasts, and common factors taken out of sums."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from funcgrad.core import Primitive
from funcgrad.kinds.linear import broadcast_to
from funcgrad.transforms.compiled.graphs import C_CONTIGUOUS, Const, Graph, Op, Value, fact_of
from funcgrad.transforms.compiled.storage import MAX_FILLED, is_ufunc

_BROADCAST: Primitive = broadcast_to.primitive

#: Operations with the same bits for filled-in and for broadcast operands. Powers differ: they test for one number.
_SAME_BITS_IF_FILLED = frozenset(("add", "subtract", "multiply", "divide"))
#: Number of elements up to which filling in pays for a single use; largest size in bytes of a filled-in array.
_SHORT, _MAX_FILLED_BYTES = 1_000, 1 << 17


def broadcast_later(graph: Graph) -> None:
    """Broadcast large arrays after elementwise operations, where nothing depends on the memory layout of the result."""
    large = {
        op.outs[0]: op
        for op in graph.ops
        if op.name == "broadcast_to" and prod(graph.shapes[op.outs[0]]) > MAX_FILLED and graph.is_array(op.args[0])
    }
    if not large:
        return
    observed = set(graph.outputs)
    users: dict[int, list[Op]] = {}
    for op in graph.ops:
        for a in op.values:
            users.setdefault(a, []).append(op)
    ops = []
    for op in graph.ops:
        first = _broadcast_operand(op, large)
        if first is None or op.outs[0] in observed or not _used_with_full_arrays(op.outs[0], users, graph):
            ops.append(op)
            continue
        (x,), v = first.args, op.outs[0]
        small = graph.new_value(graph.shapes[x], graph.dtypes[v], graph.facts[x])
        args = [x if a == first.outs[0] else a for a in op.args]
        ops.append(Op(op.primitive, args, {}, [small], op.line))
        ops.append(Op(first.primitive, (small,), first.params, [v], op.line))
    graph.ops = ops
    graph.drop_unneeded()


def _broadcast_operand(op: Op, large: dict[int, Op]) -> Op | None:
    """Return the broadcast behind an elementwise operation of a large broadcast array and of numbers, or None."""
    values = op.values
    numbers = all(type(a) is int or not (a.is_reread or a.shape) for a in op.args)
    return large.get(values[0]) if len(values) == 1 and numbers and is_ufunc(op) and not op.params else None


def _used_with_full_arrays(v: int, users: dict[int, list[Op]], graph: Graph) -> bool:
    """Whether only elementwise operations use ``v``, each with a C-contiguous array of the same shape."""
    for op in users.get(v, ()):
        others = [a for a in op.values if a != v and graph.shapes[a] == graph.shapes[v]]
        if not is_ufunc(op) or not any(graph.facts[a].contiguous for a in others):
            return False
    return graph.facts[v].kind is np.ndarray


def broadcast_once(graph: Graph) -> None:
    """Fill in arrays that are broadcast repeatedly: loops over arrays of one shape take half the time or less."""
    if not any(len(shape) > 1 for shape in graph.shapes):
        return
    found: dict[tuple[int, tuple[int, ...]], list[Op]] = {}
    for op in graph.ops:
        for a in _broadcast_arguments(op, graph):
            found.setdefault((a, graph.shapes[op.outs[0]]), []).append(op)
    first: dict[int, list[tuple[int, tuple[int, ...]]]] = {}  # what to fill in first, by the operation's identity
    for (a, shape), ops in found.items():
        if len(ops) > 1 or prod(shape) <= _SHORT:
            first.setdefault(id(ops[0]), []).append((a, shape))
    if not first:
        return
    filled: dict[tuple[int, tuple[int, ...]], int] = {}
    ops = []
    for op in graph.ops:
        for a, shape in first.get(id(op), ()):
            v = filled[a, shape] = graph.new_value(shape, graph.dtypes[a], C_CONTIGUOUS)
            ops.append(Op(_BROADCAST, (a,), {"to": shape}, [v], op.line))
        if mine := _broadcast_arguments(op, graph):
            shape = graph.shapes[op.outs[0]]
            op.args = [filled.get((a, shape), a) if a in mine else a for a in op.args]
        ops.append(op)
    graph.ops = ops


def _broadcast_arguments(op: Op, graph: Graph) -> list[int]:
    """Return the arrays that an operation broadcasts to the shape of another operand, if all are C-contiguous."""
    if op.name not in _SAME_BITS_IF_FILLED:
        return []
    v = op.outs[0]
    shape, dtype = graph.shapes[v], graph.dtypes[v]
    if len(shape) < 2 or not graph.facts[v].contiguous or dtype.kind != "f":
        return []
    if prod(shape) * dtype.itemsize > _MAX_FILLED_BYTES or not all(_is_c_contiguous(a, graph, dtype) for a in op.args):
        return []
    shapes = [graph.shape(a) for a in op.args]
    broadcast = [a for a, one in zip(op.args, shapes, strict=True) if one != shape]
    return broadcast if shape in shapes and all(type(a) is int for a in broadcast) else []


def _is_c_contiguous(a: Any, graph: Graph, dtype: Any) -> bool:
    if type(a) is int:
        return bool(graph.shapes[a]) and graph.facts[a].contiguous and graph.dtypes[a] is dtype
    return type(a.value) is np.ndarray and not a.is_reread and a.dtype is dtype and fact_of(a.value).contiguous


#: Functions whose results are between -1 and 1.
_BOUNDED = frozenset(("sin", "cos", "tanh"))
_LARGEST = 1e100  # bound for constants, so that their sums cannot overflow


def take_out_factors(graph: Graph) -> None:
    """Replace ``a * x + b * x`` by ``(a + b) * x`` if a and b are bounded, so that their sum cannot overflow."""
    made: dict[int, Op] = {}
    uses = Counter([v for v in graph.outputs if type(v) is int])
    for op in graph.ops:
        uses.update(op.values)
        made.update(dict.fromkeys(op.outs, op))
    removed: set[int] = set()
    for op in graph.ops:
        if op.name != "add" or graph.facts[op.outs[0]].kind is not np.float64:
            continue
        products = [made[a] for a in op.values if uses[a] == 1 and a in made]
        if len(products) != 2 or any(p.name != "multiply" for p in products) or products[0] is products[1]:
            continue
        earlier, later = sorted(products, key=lambda p: p.outs[0])
        for x in earlier.args:
            if type(x) is not int or x not in later.args or not graph.facts[x].is_number:
                continue
            a, b = _other_factor(earlier, x), _other_factor(later, x)
            if _is_bounded(a, graph, made) and _is_bounded(b, graph, made):
                # the later product becomes the sum, the sum the product
                later.primitive, later.name, later.args = op.primitive, "add", (a, b)
                op.primitive, op.name, op.args = earlier.primitive, "multiply", (x, later.outs[0])
                removed.add(id(earlier))
                break
    graph.ops = [op for op in graph.ops if id(op) not in removed]


def _other_factor(product: Op, x: Value) -> Value:
    one, other = product.args
    return other if type(one) is int and one == x else one


def _is_bounded(a: Value, graph: Graph, made: dict[int, Op]) -> bool:
    if type(a) is Const:
        value: Any = a.value
        return type(value) in (int, float, np.ndarray) and not a.shape and bool(abs(value) <= _LARGEST)
    return graph.facts[a].is_number and a in made and made[a].name in _BOUNDED
