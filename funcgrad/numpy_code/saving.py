"""NumPy's functions that write arrays to files: they write the numbers of traced values.

What a function reads from such a file has no derivative. So each run remembers the files that it wrote traced values
to, and refuses to read them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.conversions import is_traced, numbers_of, plain_values
from funcgrad.numpy_code.replacements import current_run
from funcgrad.shared_state import note_refusal

__all__ = ["WRITERS", "refusing_files_of_run", "saving"]

#: Functions that write arrays to files.
WRITERS: frozenset[Callable[..., Any]] = frozenset((np.save, np.savetxt, np.savez, np.savez_compressed))
_SUFFIXES = ("", ".npy", ".npz")


def saving(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of ``WRITERS`` such that it writes the numbers of traced values."""

    @wraps(fun)
    def save(*args: Any, **kwargs: Any) -> Any:
        file = _file_among(args, kwargs)

        def numbers(x: Tracer) -> Any:
            if is_traced(x):
                current_run().note_file(file, _name_of(file))
            return numbers_of(x, f"numpy.{fun.__name__}(file, x)")

        return fun(*plain_values(args, numbers), **plain_values(kwargs, numbers))

    return save


def refusing_files_of_run(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that reads files such that it refuses files that the run wrote traced values to."""

    @wraps(fun)
    def read(*args: Any, **kwargs: Any) -> Any:
        given = _file_among(args, kwargs)
        for file, name in current_run().saved_to:
            if given is file or (name and _name_of(given) in [name + suffix for suffix in _SUFFIXES]):
                raise note_refusal(
                    ConversionError(
                        f"numpy.{fun.__name__}(file): the function wrote traced values to this file, so what it reads "
                        f"would have no derivative, got {given!r}{user_line()}. Use the arrays themselves."
                    )
                )
        return fun(*args, **kwargs)

    return read


def _file_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("file", kwargs.get("fname"))


def _name_of(file: Any) -> str:
    """Return the full name of a file, given open or by its name; "" for a file in memory."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.path.realpath(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else ""
