"""``tape``: what a pullback holds, to look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.graph import Node, Operand
from funcgrad.reverse import number_of, operation_of, parents_of, pull_in, reachable, saved_by
from funcgrad.transforms.inspection.drawing import Picture
from funcgrad.transforms.products import Pullback
from funcgrad.writable import identity

__all__ = ["Tape", "arrays_in", "tape"]


class Tape(Picture):
    """The tape of a pullback: what the backward pass will visit, from the youngest to the oldest.

    Made by ``tape``. Iterating gives the records in order of execution. ``node.index`` is the place of the record in
    that order, ``node.saved`` the bytes the record keeps; ``saved`` counts each array once. A tape does not know
    shapes, and it knows lines and stages only when it was recorded under ``debug_nans``.

    Example:
        >>> import numpy as np
        >>> import funcgrad.numpy as fnp
        >>> from funcgrad import tape, vjp
        >>> y, pullback = vjp(lambda x: fnp.sum(fnp.exp(x) * 2.0), np.ones(3))
        >>> [(node.index, node.name, node.saved) for node in tape(pullback)]
        [(1, 'exp', 24), (2, 'multiply', 0), (3, 'reduce_sum', 0)]
    """

    kind = "tape"


def tape(pullback: Pullback) -> Tape:
    """The tape of a pullback that ``vjp`` returned, to be read. The pullback does not change.

    Args:
        pullback: the second result of ``vjp``.

    Raises:
        TypeError: not a pullback.

    Example:
        >>> import numpy as np
        >>> from funcgrad import tape, vjp
        >>> y, pullback = vjp(lambda a, b: a * b + a, np.ones(3), np.ones(3))
        >>> print(tape(pullback))
        tape of <lambda>: 2 inputs, 2 operations, 1 output; reverse mode saves 48 B
                    operation  result      arguments               saved
        primals[0]  input      float64[3]
        primals[1]  input      float64[3]
        %2          multiply               primals[0], primals[1]  48 B
        %3          add                    %2, primals[0]
        returns %3
    """
    if not isinstance(pullback, Pullback):
        raise InputError(f"tape: a pullback is needed, got {describe(pullback)}. Pass the second result of vjp.")
    names = [f"primals{path}" for path in tree.flatten_with_path(tree.unflatten(pullback._spec, pullback._leaves))[0]]
    live = [(n, x) for n, x, flag in zip(names, pullback._leaves, pullback._live, strict=True) if flag]
    inputs = [
        Node(i, name, "input", shapes=[backend.shape_of(x)], dtypes=[backend.dtype_of(x)])
        for i, (name, x) in enumerate(live)
    ]
    made: dict[int, Node] = dict(enumerate(inputs))
    kept: dict[int, int] = {}
    records = reachable(pullback._nodes)
    for number in sorted(records):
        if number >= len(inputs):
            record = records[number]
            arrays = arrays_in(saved_by(record))
            kept.update(arrays)
            args = tuple([Operand(made[-number_of(parent)], 0) for parent in parents_of(record)])
            made[number] = Node(number, operation_of(record), args=args, saved=sum(arrays.values()))
            made[number].source, made[number].stage = getattr(pull_in(record), "origin", (None, None))
    nodes = [node for number, node in made.items() if number >= len(inputs)]
    outputs = [
        out if record is None else Operand(made[-number_of(record)], 0)
        for out, record in zip(pullback._outs, pullback._nodes, strict=True)
    ]
    return Tape(pullback._name, inputs, nodes, outputs, saved=sum(kept.values()))


def arrays_in(saved: Any) -> dict[Any, int]:
    """The arrays anywhere in what a record keeps: by identity, their bytes. One without axes is a constant number's."""
    found: dict[Any, int] = {}
    seen: set[Any] = set()
    waiting = [saved]
    while waiting:
        x = waiting.pop()
        key = identity(x)
        if key in seen:
            continue
        seen.add(key)
        if type(x) is tuple or type(x) is list:
            waiting.extend(x)
        elif type(x) is dict:
            waiting.extend(x.values())
        elif hasattr(x, "dtype") and hasattr(x, "nbytes") and not (type(x) is np.ndarray and not x.ndim):
            found[key] = int(x.nbytes)
    return found
