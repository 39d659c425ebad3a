"""SciPy's iterative solvers of sparse systems that ``funcgrad.scipy.sparse.linalg`` does not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

__all__ = ["ITERATIONS"]


def _solved(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run ``scipy.sparse.linalg.<name>``: its derivative solves the transposed system by the same iteration."""
    return import_module("funcgrad.scipy.sparse.linalg").iterated(name, *args, **kwargs)


ITERATIONS: dict[tuple[str, str], Callable[..., Any]] = {
    (f"scipy.sparse.linalg._isolve.{home}", name): partial(_solved, name)
    for home, names in {
        "_gcrotmk": "gcrotmk",
        "iterative": "bicg cgs qmr",
        "lgmres": "lgmres",
        "minres": "minres",
        "tfqmr": "tfqmr",
    }.items()
    for name in names.split()
}
