"""How the reference reads docstrings: what stands under ``Example:`` is a section of examples, not a remark.

Functions that are rows of a table in the source are read from the module instead.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Renames the section for the parser, which knows it in the plural only."""

    def on_module_members(self, *, mod: griffe.Module, **kwargs: Any) -> None:
        """Called when a module has been read."""
        named = {name: member for name, member in mod.members.items() if not member.is_alias}
        for name in [name for name, member in named.items() if member.is_attribute and not member.docstring]:
            value = getattr(importlib.import_module(mod.path), name, None)
            if inspect.isfunction(value) and (value.__module__, value.__name__) == (mod.path, name):
                mod.set_member(name, function(mod, value))

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every object that has been read."""
        if isinstance(obj, griffe.Function) and "_others" in obj.parameters:  # it refuses them
            del obj.parameters["_others"]
        plural(obj)


def plural(obj: griffe.Object) -> None:
    """What griffe's parser calls the section."""
    if obj.docstring:
        obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")


def function(mod: griffe.Module, value: Any) -> griffe.Function:
    """A function as the running program has it."""
    signature, line = inspect.signature(value), mod.members[value.__name__].lineno
    plain = lambda x: None if x is inspect.Parameter.empty else x if isinstance(x, str) else repr(x)
    parameters = griffe.Parameters(
        *[
            griffe.Parameter(
                p.name,
                annotation=plain(p.annotation),
                kind=griffe.ParameterKind[p.kind.name.lower()],
                default=plain(p.default),
            )
            for p in signature.parameters.values()
        ]
    )
    found = griffe.Function(
        value.__name__, parameters=parameters, returns=plain(signature.return_annotation), lineno=line, parent=mod
    )
    found.docstring = griffe.Docstring(inspect.getdoc(value) or "", lineno=line, parent=found)
    plural(found)
    return found
