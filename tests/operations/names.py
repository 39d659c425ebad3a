"""Lookup of the functions that rows name: ours and their counterparts."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import funcgrad.numpy as fnp

#: Namespaces other than ``funcgrad.numpy``: their modules here, in SciPy, and in JAX.
HOMES = {"scipy": ("funcgrad.scipy", "scipy", "jax.scipy"), "nn": ("funcgrad.nn", "", "jax.nn")}
OURS, THEIRS, JAXS = 0, 1, 2


def look_up(root: Any, name: str) -> Any:
    """Return ``root.a.b`` for the name ``a.b``, or None if it is missing."""
    for part in name.split("."):
        root = getattr(root, part, None)
    return root


def named(name: str, place: int) -> Any:
    """Return the function of a row, ours, NumPy's or SciPy's, or JAX's, or None if it is missing.

    ``sum`` and ``linalg.inv`` are names of ``funcgrad.numpy``; ``scipy.special.erf`` and ``nn.relu`` belong to others.
    """
    space, _, rest = name.partition(".")
    if space not in HOMES:
        root = (fnp, np, None)[place] or importlib.import_module("jax.numpy")
        return look_up(root, name)
    module, _, function = rest.rpartition(".")
    home = ".".join([part for part in (HOMES[space][place], module) if part])
    return getattr(importlib.import_module(home), function, None) if HOMES[space][place] else None
