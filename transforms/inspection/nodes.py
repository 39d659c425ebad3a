"""Nodes: one operation of a graph or of a tape, presented to readers with its parents and other facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from funcgrad.core import Primitive
from funcgrad.graph import PipelineStage, Source


class Operand(NamedTuple):
    """An argument that is not a constant: a node, and the index of one of its results."""

    node: Node
    output: int


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """One operation, input or leaf of a graph or of a tape. Nodes are compared and hashed by identity.

    Attributes:
        index: the position of the operation, on a tape of its record, in the order of execution; for an input its
            position among the inputs.
        name: the name of the operation or of the input.
        kind: "operation" or "input".
        primitive: the primitive; None for inputs and on a tape.
        args: for each argument an ``Operand`` or a constant.
        params: static parameters.
        shapes: the shape of each result; empty on a tape, which does not know the shapes.
        dtypes: the dtype of each result; empty on a tape.
        saved: the number of bytes that reverse mode saves for this operation.
        source: the user's line, or None if it is unknown.
        stage: the pipeline stage, or None outside of pipelines.
        decided: the answer if Python read this value as a truth value, an index, or an array of either; else None.
    """

    index: int
    name: str
    kind: str = "operation"
    primitive: Primitive | None = None
    args: tuple[Any, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[Any, ...] = ()
    saved: int = 0
    source: Source | None = None
    stage: PipelineStage | None = None
    decided: Any = None

    @property
    def parents(self) -> tuple[Node, ...]:
        """Nodes whose results are arguments of this node, each once; cf. ``next_functions`` in PyTorch."""
        return tuple(dict.fromkeys(a.node for a in self.args if type(a) is Operand))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first result, None on a tape."""
        return self.shapes[0] if self.shapes else None

    @property
    def dtype(self) -> Any:
        """Dtype of the first result, None on a tape."""
        return self.dtypes[0] if self.dtypes else None

    @property
    def bytes(self) -> int:
        """Number of bytes of all results."""
        return sum(math.prod(s) * d.itemsize for s, d in zip(self.shapes, self.dtypes, strict=True))

    def ancestors(self) -> list[Node]:
        """Return all nodes that this node depends on, inputs included, each once, nearest first."""
        found: dict[Node, None] = dict.fromkeys(self.parents)
        for node in (queue := list(found)):
            new = [p for p in node.parents if p not in found]
            found.update(dict.fromkeys(new))
            queue.extend(new)
        return list(found)

    def __repr__(self) -> str:
        results = ", ".join(f"{d}{list(s) if s else ''}" for s, d in zip(self.shapes, self.dtypes, strict=True))
        return f"<{self.kind} {self.index}: {self.name}{f' -> {results}' if results else ''}>"
