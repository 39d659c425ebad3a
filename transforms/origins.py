"""Origin of an operation: the line of the user's program, and the stage of a toolz pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import toolz.functoolz

from funcgrad.graph import PipelineStage, Source
from funcgrad.numpy.plain_values.concretization import user_frame
from funcgrad.transforms.transformed import name_of

#: By code in which toolz runs stages: function of its local variables that returns the stage, all stages, the argument.
_PIPELINES: dict[CodeType, Callable[[Any], tuple[Any, Any, Any]]] = {
    toolz.functoolz.pipe.__code__: lambda local: (local.get("func"), local.get("funcs", ()), local.get("data")),
    toolz.functoolz.Compose.__call__.__code__: lambda local: (
        local["f"] if "f" in local else local["self"].first,
        (local["self"].first, *local["self"].funcs),
        local.get("ret"),
    ),
}


class Origin(NamedTuple):
    """Place in the program from which an operation was called, as far as it is known."""

    source: Source | None
    stage: PipelineStage | None

    def __str__(self) -> str:
        if self.source is None:
            line = "an unknown line"
        else:
            text = self.source.text
            line = f"{self.source.path}:{self.source.line}" + (f" `{text}`" if text else "")
        return line if self.stage is None else f"{line} (stage {self.stage} of the pipeline)"


class Origins:
    """Finder of the origin of the current operation. One object watches one run."""

    def __init__(self) -> None:
        self._sources: dict[Source, Source] = {}
        self._last_pipeline: tuple[FrameType, Any, int] | None = None

    def line(self, frame: FrameType | None = None) -> Source | None:
        """Return the user's line, or the line of ``frame`` if it is given."""
        frame = frame or user_frame()
        if frame is None:
            return None
        source = Source(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        return self._sources.setdefault(source, source)

    def stage(self, ends: Callable[[FrameType, bool], bool]) -> PipelineStage | None:
        """Return the stage of the outermost pipeline among the frames before the search ends.

        Args:
            ends: ``ends(frame, found)``, called with every frame from the innermost one on; ``found`` says
                whether the search has seen a pipeline.
        """
        found: FrameType | None = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not ends(frame, found is not None):
            if frame.f_code in _PIPELINES:
                found = frame
            frame = frame.f_back
        return None if found is None else self._stage_at(found)

    def find(self) -> Origin:
        """Return line and stage. The pipeline is the outermost one inside the innermost transform that contains any."""
        return Origin(self.line(), self.stage(_ends_at_transform))

    def forget(self) -> None:
        """Drop the references to frames."""
        self._last_pipeline = None

    def _stage_at(self, frame: FrameType) -> PipelineStage | None:
        """Return the stage that a frame of toolz's ``pipe`` or ``Compose`` is running."""
        current, funcs, value = _PIPELINES[frame.f_code](frame.f_locals)
        before, old, last = self._last_pipeline or (None, None, 0)
        at = [i for i, fun in enumerate(funcs, 1) if fun is current]
        if before is frame:  # if the pipeline contains a function twice, a new argument means a later stage
            at = [i for i in at if i > last or (i == last and old is value)]
        if not at:
            return None
        self._last_pipeline = (frame, value, at[0])
        return PipelineStage(at[0], name_of(current))


def _ends_at_transform(frame: FrameType, found: bool) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return found and name.startswith("funcgrad.transforms")
