"""HIPS autograd's ``builtins``. Containers of traced values are Python's own here; two questions look through."""

from __future__ import annotations

import builtins
from typing import Any

from funcgrad.interop.autograd.boxes import plain_type
from funcgrad.interop.autograd.spaces import ContainerVSpace

__all__ = ["ContainerVSpace", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple


class SequenceBox:
    """For annotations: a list or tuple is itself, with traced values in it, and nothing is an instance of this."""


class DictBox:
    """For annotations: a dictionary is itself, with traced values in it, and nothing is an instance of this."""


def isinstance(x: Any, kinds: Any) -> bool:
    """Whether ``x``, or the array or number that it stands for, is an instance.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop.autograd import grad
        >>> grad(lambda x: x * isinstance(x, float))(2.0)
        np.float64(1.0)
    """
    return issubclass(plain_type(x), kinds) or builtins.isinstance(x, kinds)


def type(x: Any) -> Any:
    """The type of ``x``, or of the array or number that it stands for."""
    return plain_type(x)
