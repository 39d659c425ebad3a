"""Libraries that only this folder needs: imported when they are asked for, and missed with one clear message."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from funcgrad.errors import MissingExtraError

__all__ = ["double_precision", "import_jax"]


def import_jax(call: str) -> Any:
    """The module ``jax``, with ``jax.numpy`` loaded.

    Args:
        call: the public call that needs it, for the message.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).

    Example:
        >>> import_jax("crosscheck").__name__
        'jax'
    """
    try:
        importlib.import_module("jax.numpy")
        return importlib.import_module("jax")
    except ImportError as error:
        raise MissingExtraError(
            f"{call}: JAX cannot be imported, got {type(error).__name__}: {error}. "
            "Install it with the extra: pip install 'funcgrad[jax]'."
        ) from error


@contextmanager
def double_precision(jax: Any) -> Iterator[None]:
    """JAX in x64 mode for a while; the mode of before comes back, also after an error.

    Example:
        >>> jax = import_jax("crosscheck")
        >>> with double_precision(jax):
        ...     print(jax.numpy.ones(2).dtype)
        float64
    """
    enable = getattr(jax, "enable_x64", None)
    if enable is None:  # before it was public
        enable = importlib.import_module("jax.experimental").enable_x64
    with enable(True):
        yield
