"""Errors for requests for values that are not known yet, while JAX compiles, in the words of this library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from funcgrad.errors import StagingError, text_of
from funcgrad.numpy.plain_values.hints import package_line, user_line
from funcgrad.shared_state import FORMAT_ERROR

_STATIC = "If the value is known before, make it a static argument (static_argnums of jit)"
#: What to write in place of a loop that takes too many branches.
_LOOPS = (
    "Write a loop that ends on a value as while_loop(condition, step, start), with functions of the values that change "
    f"in it, and a choice between values as where(condition, a, b). {_STATIC}."
)
#: Pairs of what the code needed and what to write instead, by the name of JAX's error.
_JAX_ERRORS = {
    "TracerBoolConversionError": (
        "the truth value of an array (if, while, and, or, not)",
        "Use where(condition, a, b) for values, cond, while_loop or fori_loop for steps of a program, logical_and, "
        f"logical_or and logical_not for conditions. {_STATIC}.",
    ),
    "TracerIntegerConversionError": (
        "an integer from an array (an index of a list, a length, range)",
        f"Use take(table, i, axis=0) to look up an entry, fori_loop or scan to repeat. {_STATIC}.",
    ),
    "NonConcreteBooleanIndexError": (
        "the number of true entries of a mask (x[mask])",
        "Shapes must not depend on values: use where(mask, x, 0) for x[mask]. Sums, means, arithmetic and writes of "
        "x[mask] can stay.",
    ),
    "TracerArrayConversionError": (
        "an ndarray of its values (numpy.asarray, or a function that funcgrad does not know)",
        f"Use functions of funcgrad.numpy (stack and array join values), and from_jax for functions of JAX. {_STATIC}.",
    ),
    "ConcretizationTypeError": (
        "a value (float(x), int(x), or a shape that depends on values, as in nonzero and unique)",
        f"Use functions of funcgrad.numpy on arrays, and where(condition, a, b) in place of a selection. {_STATIC}.",
    ),
}


@contextmanager
def as_staging_errors(jax: Any, call: str, name: str) -> Iterator[None]:
    """Return a block that turns JAX's errors about values that are not known yet into ``StagingError``.

    Args:
        jax: the JAX module.
        call: name of the public function.
        name: name of the function that is run.
    """
    try:
        yield
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        known = next((kind for kind in kinds if kind in _JAX_ERRORS), None)
        text = text_of(error)
        if type(error) is TypeError and text.startswith(FORMAT_ERROR) and "Tracer" in text:
            known = "ConcretizationTypeError"
        elif known is None or not isinstance(error, getattr(jax.errors, known)):
            raise
        masked = any("mask" in frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__))  # looks into a mask
        raise staging_error(call, name, "NonConcreteBooleanIndexError" if masked else known, error) from error


def staging_error(
    call: str, name: str, kind: str = "TracerBoolConversionError", error: Exception | None = None, places: str = ""
) -> StagingError:
    """Return the error for a request for a value that is not known yet.

    Args:
        call: name of the public function.
        name: name of the function that is run.
        kind: name of JAX's error.
        error: the error that was raised; None if the request is running.
        places: what to say of where such values are requested.
    """
    what, remedy = _JAX_ERRORS[kind]
    if places:
        what, remedy = what + places, _LOOPS
    asked = package_line(error)
    if asked:  # which the user cannot rewrite
        what = f"{what}, by {asked}"
        remedy = "Call the function of the package outside of what is compiled, or write its formula with NumPy."
    return StagingError(
        f"{call}: {name} is being compiled, when values are not known yet, got a request for "
        f"{what}{getattr(error, 'user_line', None) or user_line(error)}. {remedy}"
    )
