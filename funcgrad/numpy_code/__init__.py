"""Run functions written for NumPy, SciPy and ``math`` unchanged, with funcgrad's functions in place of theirs."""

from funcgrad.numpy_code.foreign_arrays import run_anywhere
from funcgrad.numpy_code.running import (
    Rebuilt,
    Standing,
    again,
    as_written,
    attempt,
    built_before,
    check_refused,
    is_as_written,
    is_conversion,
    put_back,
    ready,
    set_aside,
)

__all__ = [
    "Rebuilt",
    "Standing",
    "again",
    "as_written",
    "attempt",
    "check_refused",
    "is_as_written",
    "is_conversion",
    "put_back",
    "built_before",
    "ready",
    "run_anywhere",
    "set_aside",
]
