"""How the reference reads docstrings: what stands under ``Example:`` is a section of examples, not a remark."""

from __future__ import annotations

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Renames the section for the parser, which knows it in the plural only."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every object that has been read."""
        if isinstance(obj, griffe.Function) and "_others" in obj.parameters:  # it refuses them
            del obj.parameters["_others"]
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
