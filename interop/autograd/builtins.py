"""HIPS autograd's ``builtins``. Containers of traced values are Python's own here; `type` looks through."""

from __future__ import annotations

import builtins
from typing import Any

from funcgrad.interop.autograd.boxes import plain_type
from funcgrad.interop.autograd.spaces import ContainerVSpace

__all__ = ["ContainerVSpace", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple
isinstance = builtins.isinstance  # a traced value answers for what it stands for


class SequenceBox:
    """For annotations: a list or tuple is itself, with traced values in it, and nothing is an instance of this."""


class DictBox:
    """For annotations: a dictionary is itself, with traced values in it, and nothing is an instance of this."""


def type(x: Any) -> Any:
    """The type of ``x``, or of the array or number that it stands for."""
    return plain_type(x)
