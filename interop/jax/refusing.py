"""What cannot be compiled, said in the user's words: which line, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from funcgrad.errors import StagingError
from funcgrad.numpy.concretization import user_line

__all__ = ["staging"]

_STATIC = "If the value is known before, make it a static argument (static_argnums of jit)"
#: By the name of JAX's error: what was asked for, and what to write instead.
_ASKED = {
    "TracerBoolConversionError": (
        "the truth value of an array (if, while, and, or, not, min, max)",
        "Use where(condition, a, b) for values, cond, while_loop or fori_loop for steps of a program, logical_and, "
        f"logical_or and logical_not for conditions. {_STATIC}.",
    ),
    "TracerIntegerConversionError": (
        "an integer out of an array (an index of a list, a length, range)",
        f"Use take(table, i, axis=0) to look up, fori_loop or scan to repeat. {_STATIC}.",
    ),
    "NonConcreteBooleanIndexError": (
        "the number of true entries of a mask (x[mask])",
        "Shapes must not depend on values: use where(mask, x, 0).",
    ),
    "TracerArrayConversionError": (
        "an ndarray of its values (numpy.asarray, or a function that funcgrad does not know)",
        "Use functions of funcgrad.numpy, where stack and array join values, and from_jax for functions of JAX. "
        f"{_STATIC}.",
    ),
    "ConcretizationTypeError": (
        "a value (float(x), int(x), or a shape that depends on one, as of nonzero and unique)",
        f"Use functions of funcgrad.numpy on arrays, and where(condition, a, b) in place of a selection. {_STATIC}.",
    ),
}
_MASK = _ASKED["NonConcreteBooleanIndexError"]


@contextmanager
def staging(jax: Any, call: str, name: str) -> Iterator[None]:
    """Inside, what JAX says of values that are not known yet is said as a ``StagingError``.

    Args:
        jax: the module.
        call: the public call.
        name: the function that is run.
    """
    try:
        yield
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        known = next((kind for kind in kinds if kind in _ASKED), None)
        if known is None or not isinstance(error, getattr(jax.errors, known)):
            raise
        what, remedy = _MASK if _masked(error) else _ASKED[known]
        raise StagingError(
            f"{call}: {name} is being compiled, when values are not known yet, got a question for "
            f"{what}{user_line(error)}. {remedy}"
        ) from error


def _masked(error: Exception) -> bool:
    """Whether the error came from a look into a mask."""
    return any("mask" in frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__))
