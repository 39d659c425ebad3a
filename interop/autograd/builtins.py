"""HIPS autograd's ``builtins``. Containers of traced values are Python's; ``type`` looks at the value inside."""

from __future__ import annotations

import builtins
from typing import Any

from funcgrad.interop.autograd.spaces import ContainerVSpace
from funcgrad.writable import plain_value

__all__ = ["ContainerVSpace", "DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

isinstance = builtins.isinstance  # a traced value reports the class of the value that it represents


class _Container(builtins.type):
    """Metaclass of a class that makes Python's container but differs from it, for programs that register both."""

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
    """Class for annotations. It has no instances: a list or tuple that holds traced values stays a list or tuple."""


class DictBox:
    """Class for annotations. It has no instances: a dictionary that holds traced values stays a dictionary."""


def type(x: Any) -> Any:
    """Return the type of ``x``, or of the array or number that ``x`` represents."""
    return builtins.type(plain_value(x))
