"""JAX's derivatives by forward mode alone, which costs a fraction of reverse mode.

Linearizing and transposing an operation costs JAX more than the rest of a random program. Gradients are therefore
made here from directional derivatives, all at once, by the definition of the transpose of a real-linear map: for
a complex number, the derivatives along 1 and along i are taken. If something seems to differ from funcgrad, JAX's
reverse mode computes it again before it counts, and every few programs use reverse mode in the first place.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fuzz.helpers import jax_library

__all__ = ["forward_library"]


def forward_library() -> Any:
    """Return the transforms of JAX under funcgrad's names, with reverse mode replaced."""
    replaced = {
        "checkpoint": lambda f: f,
        "grad": _grad,
        "hessian": lambda f: jax.jacfwd(jax.jacfwd(f)),
        "jacrev": jax.jacfwd,
        "linearize": _linearize,
        "value_and_grad": _value_and_grad,
        "vjp": _vjp,
    }
    return SimpleNamespace(**{**vars(jax_library()), **replaced})


def _vjp(f: Callable[..., Any], *args: Any) -> Any:
    out, _, slopes = _slopes(f, args)
    return out, lambda ct: _collected(slopes, ct, args)


def _value_and_grad(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        chosen = (argnums,) if isinstance(argnums, int) else argnums

        def part(*parts: Any) -> Any:
            whole = list(args)
            for n, value in zip(chosen, parts, strict=True):
                whole[n] = value
            found = f(*whole)
            return found if has_aux else (found, None)

        parts = tuple([args[n] for n in chosen])
        out, aux, slopes = _slopes(part, parts, has_aux=True)
        found = _collected(slopes, 1.0, parts)
        found = found[0] if isinstance(argnums, int) else found
        return ((out, aux) if has_aux else out), found

    return call


def _grad(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        out, found = _value_and_grad(f, argnums, has_aux)(*args)
        return (found, out[1]) if has_aux else found

    return call


def _linearize(f: Callable[..., Any], *args: Any) -> Any:
    return None, lambda *tangents: jax.jvp(f, args, tangents)[1]


def _slopes(f: Callable[..., Any], args: Any, has_aux: bool = False) -> tuple[Any, Any, Any]:
    """Return the value, its aux, and the derivatives along all elements, which the first axis counts."""
    leaves, tree = jax.tree.flatten(args)
    ways = _ways([(np.shape(x), np.dtype(jnp.result_type(x))) for x in leaves])

    def along(*tangents: Any) -> Any:
        found = jax.jvp(f, args, jax.tree.unflatten(tree, tangents), has_aux=has_aux)
        return found if has_aux else (*found, None)

    if len(ways[0]) == 1:
        out, slopes, aux = along(*[way[0] for way in ways])
        return out, aux, jax.tree.map(lambda s: s[None], slopes)
    out, slopes, aux = jax.vmap(along, out_axes=(None, 0, None))(*ways)
    return out, aux, slopes


def _ways(shapes: list[tuple[Any, Any]]) -> list[Any]:
    counts = [int(np.prod(shape)) * (2 if dtype.kind == "c" else 1) for shape, dtype in shapes]
    ways, before = [], 0
    for (shape, dtype), count in zip(shapes, counts, strict=True):
        units = np.eye(count) if dtype.kind != "c" else np.concatenate([np.eye(count // 2), 1j * np.eye(count // 2)])
        way = np.zeros((sum(counts), *shape), dtype)
        way[before : before + count] = units.reshape(count, *shape)
        before += count
        ways.append(way)
    return ways


def _collected(slopes: Any, ct: Any, args: Any) -> Any:
    """Multiply a cotangent by the derivatives; the result has the form of the arguments."""
    flat, cts = jax.tree.leaves(slopes), jax.tree.leaves(ct)
    parts = [jnp.sum(jnp.real(c * s), tuple(range(1, s.ndim))) for s, c in zip(flat, cts, strict=True)]
    found, before = [], 0
    leaves, tree = jax.tree.flatten(args)
    for leaf in leaves:
        shape, dtype = np.shape(leaf), np.dtype(jnp.result_type(leaf))
        count = int(np.prod(shape)) * (2 if dtype.kind == "c" else 1)
        row = sum(part[before : before + count] for part in parts)
        before += count
        if dtype.kind == "c":
            row = row[: count // 2] - 1j * row[count // 2 :]
        found.append(row.reshape(shape).astype(dtype))
    return jax.tree.unflatten(tree, found)
