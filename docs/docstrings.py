"""griffe extension for the reference: the text under ``Example:`` becomes a section of examples, not a remark.

For functions that are rows of a table in the source, the extension reads the module instead.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Extension that renames the section ``Example:``, since the parser knows the plural only."""

    def on_module_members(self, *, mod: griffe.Module, **kwargs: Any) -> None:
        """Handle a module that has been read."""
        named = {name: member for name, member in mod.members.items() if not member.is_alias}
        for name in [name for name, member in named.items() if member.is_attribute and not member.docstring]:
            value = getattr(importlib.import_module(mod.path), name, None)
            if inspect.isfunction(value) and (value.__module__, value.__name__) == (mod.path, name):
                mod.set_member(name, function(mod, value))

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Handle an object that has been read."""
        if isinstance(obj, griffe.Function) and "_others" in obj.parameters:  # the function refuses these arguments
            del obj.parameters["_others"]
        plural(obj)


def plural(obj: griffe.Object) -> None:
    """Rename the section to the plural, which griffe's parser recognises."""
    if obj.docstring:
        obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")


def function(mod: griffe.Module, value: Any) -> griffe.Function:
    """Return the griffe entry of a function that was imported."""
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
