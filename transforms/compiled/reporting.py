"""What a recorded function has become: counts, memory, and where its time goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from funcgrad.transforms.inspection.drawing import describe_bytes

__all__ = ["Report", "reported"]

_ROUNDS = 20


@dataclass(frozen=True)
class Report:
    """What was recorded of a function. Printed, it is a table.

    Attributes:
        name: the function's.
        variants: for each ``(operations recorded, operations kept, statements, bytes of slots)``.
        eager: for forms of arguments that are run as they stand, why.
        seconds: of a call of the program and of the function as it stands, None where none were measured.
        lines: for each line of the user's, the seconds of the program that belong to it.
    """

    name: str
    variants: tuple[tuple[int, int, int, int], ...]
    eager: tuple[str, ...]
    seconds: tuple[float, float] | None
    lines: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        text = [f"{self.name}: {len(self.variants)} recorded program{'s' * (len(self.variants) != 1)}"]
        for n, (before, after, statements, size) in enumerate(self.variants, 1):
            counts = f"{before} operations recorded, {after} kept, {statements} statements"
            text.append(f"  {n}: {counts}, {describe_bytes(size)} kept between calls")
        text += [f"  run as it stands: {reason}" for reason in self.eager]
        if self.seconds is not None:
            ours, theirs = self.seconds
            text.append(f"  a call: {1e6 * ours:.1f} us, as it stands {1e6 * theirs:.1f} us: {ours / theirs:.2f} of it")
        width = max([len(line) for line, _ in self.lines], default=0)
        text += [f"  {line:{width}}  {1e6 * seconds:9.1f} us" for line, seconds in self.lines]
        return "\n".join(text)


def reported(
    name: str, fun: Callable[..., Any], entries: Iterable[Any], fast: Callable[..., Any], args: Any, kwargs: Any
) -> Report:
    """The report of what stands in ``entries``; of a call with arguments, where there are any, its times too."""
    entries = list(entries)
    found = [v for entry in entries for v in entry.variants]
    variants = tuple([(v.recorded, v.kept, v.program.statements, v.program.bytes) for v in found])
    eager = tuple([entry.eager for entry in entries if entry.eager is not None])
    if not args and not kwargs:
        return Report(name, variants, eager, None, ())
    fast(*args, **kwargs)  # it may have to be recorded
    seconds = (_best(lambda: fast(*args, **kwargs)), _best(lambda: fun(*args, **kwargs)))
    return Report(name, variants, eager, seconds, _by_line(fast, args, kwargs))


def _best(call: Callable[[], Any]) -> float:
    found = []
    for _ in range(_ROUNDS):
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return min(found)


def _by_line(fast: Any, args: Any, kwargs: Any) -> tuple[tuple[str, float], ...]:
    """The seconds between the comments of the program that goes this way; nothing where the function itself is run."""
    found = fast.variant_of(args, kwargs)
    if found is None:
        return ()
    form, variant = found
    labels: list[str] = ["before the first line"]
    text = []
    for line in variant.program.text.splitlines():
        comment = re.match(r"    # (.*)", line)
        if comment:
            labels.append(comment[1])
            text.append(f"    tick({len(labels) - 1})")
        else:
            text.append(line)
    space = dict(variant.program.space)
    best = [float("inf")] * len(labels)
    for _ in range(_ROUNDS):
        spent, clock = [0.0] * len(labels), [0, perf_counter()]

        def tick(n: int, spent: list[float] = spent, clock: list[Any] = clock) -> None:
            now = perf_counter()
            spent[clock[0]] += now - clock[1]
            clock[:] = [n, perf_counter()]

        space["tick"] = tick
        exec("\n".join(text), space)
        clock[1] = perf_counter()
        try:
            space["run"](*form.inputs, variant.program.allocate())
        except Exception:  # it gives up, as it does in a call
            return ()
        tick(0)
        best = [min(a, b) for a, b in zip(best, spent, strict=True)]
    joined: dict[str, float] = {}
    for label, seconds in zip(labels[1:], best[1:], strict=True):
        joined[label] = joined.get(label, 0.0) + seconds
    return tuple(joined.items())
