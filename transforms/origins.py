"""Where an operation comes from: the line of the user's program, and the stage of a toolz pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import toolz.functoolz

from funcgrad.graph import Source, Stage
from funcgrad.numpy.concretization import user_frame
from funcgrad.transforms.transformed import name_of

__all__ = ["Origin", "Origins"]

#: Where toolz runs the stages of a pipeline in Python: from its local variables the stage, all stages, the argument.
_PIPELINES: dict[CodeType, Callable[[Any], tuple[Any, Any, Any]]] = {
    toolz.functoolz.pipe.__code__: lambda local: (local.get("func"), local.get("funcs", ()), local.get("data")),
    toolz.functoolz.Compose.__call__.__code__: lambda local: (
        local["f"] if "f" in local else local["self"].first,
        (local["self"].first, *local["self"].funcs),
        local.get("ret"),
    ),
}


class Origin(NamedTuple):
    """Where an operation was asked for, as far as it is known."""

    source: Source | None
    stage: Stage | None

    def __str__(self) -> str:
        if self.source is None:
            line = "an unknown line"
        else:
            text = self.source.text
            line = f"{self.source.path}:{self.source.line}" + (f" `{text}`" if text else "")
        return line if self.stage is None else f"{line} (stage {self.stage} of the pipeline)"


class Origins:
    """Finds where the operation that is being done comes from. One object watches one run."""

    def __init__(self) -> None:
        self._sources: dict[Source, Source] = {}
        self._piped: tuple[FrameType, Any, int] | None = None

    def line(self, frame: FrameType | None = None) -> Source | None:
        """The user's line; that of ``frame``, where it is known already."""
        frame = frame or user_frame()
        if frame is None:
            return None
        source = Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        return self._sources.setdefault(source, source)

    def stage(self, ends: Callable[[FrameType, bool], bool]) -> Stage | None:
        """The stage of the outermost pipeline among the frames that come before the search ends.

        Args:
            ends: ``ends(frame, found)``, asked of every frame from the innermost one on; ``found`` says
                whether there has been a pipeline.
        """
        found: FrameType | None = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not ends(frame, found is not None):
            if frame.f_code in _PIPELINES:
                found = frame
            frame = frame.f_back
        return None if found is None else self._at(found)

    def find(self) -> Origin:
        """Line and stage; the pipeline is the outermost one inside the innermost transform that holds one."""
        return Origin(self.line(), self.stage(_at_transform))

    def forget(self) -> None:
        """Let go of frames."""
        self._piped = None

    def _at(self, frame: FrameType) -> Stage | None:
        """The stage that a frame of toolz's own ``pipe`` or ``Compose`` is at."""
        current, funcs, value = _PIPELINES[frame.f_code](frame.f_locals)
        before, old, last = self._piped or (None, None, 0)
        at = [i for i, fun in enumerate(funcs, 1) if fun is current]
        if before is frame:  # a function that stands there twice: where its argument is new, it has gone on
            at = [i for i in at if i > last or (i == last and old is value)]
        if not at:
            return None
        self._piped = (frame, value, at[0])
        return Stage(at[0], name_of(current))


def _at_transform(frame: FrameType, found: bool) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return found and name.startswith("funcgrad.transforms")
