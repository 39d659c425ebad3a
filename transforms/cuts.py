"""Where derivatives were cut: what ``strict`` reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from funcgrad import backend, blocks
from funcgrad.core import Trace, Tracer
from funcgrad.errors import StructuralZeroError
from funcgrad.reverse import Node, number_of, pull_in, reachable
from funcgrad.transforms.origins import Origin

__all__ = ["Cuts"]

_MOST = 5  # so many cuts are named


class Cuts:
    """What became of the tracers of one trace whose derivatives ended."""

    def __init__(self) -> None:
        self._cuts: list[tuple[str, Origin | None, tuple[Node, ...]]] = []
        self._uses: dict[int, tuple[str, Origin]] = {}  # by number of a leaf's record: the first operation on it

    def note(self, trace: Trace, name: str, args: Sequence[Any], ans: Any, find: Callable[[], Origin]) -> None:
        """An operation was done on ``args``; it gave ``ans``."""
        nodes: tuple[Node, ...] = tuple(
            [a.node if trace.counter is not None else () for a in args if type(a) is Tracer and a._trace is trace]
        )
        outs = ans if type(ans) is tuple else (ans,)
        if not any(isinstance(out, Tracer) and out._trace is trace for out in outs):
            self._cuts.append((name, find(), nodes))
        elif any(node and pull_in(node) is None and number_of(node) not in self._uses for node in nodes):
            origin = find()
            for node in nodes:
                if pull_in(node) is None:
                    self._uses.setdefault(number_of(node), (name, origin))

    def check_outputs(self, call: str, nodes: Sequence[Node | None], names: Callable[[int], str], leaves: int) -> None:
        """Refuse a leaf of a tape from which no way leads to the results.

        Raises:
            StructuralZeroError: a leaf has a structurally zero derivative.
        """
        reached = _behind([node for node in nodes if node is not None])
        for number in range(leaves):
            if -number not in reached:
                self._refuse(call, number, names(number), self._cuts)

    def check(self, call: str, cts: Sequence[Any], names: Callable[[int], str]) -> None:
        """Refuse a leaf without cotangent, naming what cut it.

        Args:
            call: the public call, for messages.
            cts: a cotangent per leaf, None for zero.
            names: the key path of a leaf, by its number.

        Raises:
            StructuralZeroError: a leaf has a structurally zero derivative.
        """
        watch = blocks.watching()
        dropped = [] if watch is None else [(name, origin, (parent,)) for name, origin, parent in watch.dropped]
        for number, ct in enumerate(cts):
            if ct is None:
                self._refuse(call, number, names(number), [*self._cuts, *dropped])

    def check_tangents(self, call: str, results: Sequence[Any], tangents: Sequence[Any]) -> None:
        """Refuse a floating result without tangent, or results of which none has one.

        Raises:
            StructuralZeroError: a result has a structurally zero tangent.
        """
        for i, (result, tangent) in enumerate(zip(results, tangents, strict=True)):
            if tangent is None and (backend.is_inexact(result) or all(t is None for t in tangents)):
                reason = _listed(self._cuts) if self._cuts else "it does not depend on the arguments"
                raise StructuralZeroError(
                    f"{call}: the tangent of result leaf {i} is zero whatever the arguments: {reason}. {_ADVICE}"
                )

    def _refuse(self, call: str, number: int, name: str, cuts: list[Any]) -> NoReturn:
        mine = [cut for cut in cuts if -number in _behind(cut[2])]
        reason = _listed(mine) if mine else self._reason(number)
        raise StructuralZeroError(
            f"{call}: the derivative with respect to {name} is zero whatever its value: {reason}. {_ADVICE}"
        )

    def _reason(self, number: int) -> str:
        if -number in self._uses:
            name, origin = self._uses[-number]
            return f"the result does not depend on it, it was used first by {name} (at {origin})"
        return "it was never used"


_ADVICE = "Leave it out of what is differentiated (argnums), or leave strict out if zero is meant."


def _listed(cuts: Sequence[Any]) -> str:
    """What cut, each once."""
    known = [f"{name} (at {origin})" if origin is not None else name for name, origin, _ in cuts]
    said = list(dict.fromkeys(known))
    more = f", and {len(said) - _MOST} more" if len(said) > _MOST else ""
    return "cut by " + ", ".join(said[:_MOST]) + more


def _behind(nodes: Sequence[Node]) -> set[int]:
    """The numbers of the records that these depend on, their own among them."""
    return {-place for place in reachable([node for node in nodes if node])}
