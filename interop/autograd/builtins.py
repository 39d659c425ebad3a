"""HIPS autograd's ``builtins``. Containers of traced values are Python's own here; `type` looks through."""

from __future__ import annotations

import builtins
from typing import Any

from funcgrad.interop.autograd.boxes import plain_type
from funcgrad.interop.autograd.spaces import ContainerVSpace

__all__ = ["ContainerVSpace", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

isinstance = builtins.isinstance  # a traced value answers for what it stands for


class _Container(builtins.type):
    """The class of a class that makes Python's own containers. It is another, for who registers both somewhere."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.__base__(*args, **kwargs)  # type: ignore[misc]

    def __instancecheck__(cls, x: object) -> bool:
        return builtins.isinstance(x, cls.__base__)  # type: ignore[arg-type]


class list(builtins.list[Any], metaclass=_Container):  # noqa: N801  (autograd's name)
    """Python's ``list``: ``list(...)`` makes one, and every list is an instance."""


class tuple(builtins.tuple[Any, ...], metaclass=_Container):  # noqa: N801
    """Python's ``tuple``: ``tuple(...)`` makes one, and every tuple is an instance."""


class dict(builtins.dict[Any, Any], metaclass=_Container):  # noqa: N801
    """Python's ``dict``: ``dict(...)`` makes one, and every dictionary is an instance."""


class SequenceBox:
    """For annotations: a list or tuple is itself, with traced values in it, and nothing is an instance of this."""


class DictBox:
    """For annotations: a dictionary is itself, with traced values in it, and nothing is an instance of this."""


def type(x: Any) -> Any:
    """The type of ``x``, or of the array or number that it stands for."""
    return plain_type(x)
