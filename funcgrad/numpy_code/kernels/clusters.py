"""Compiled functions of ``scipy.cluster``: memberships are constants, distances and means have derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy_code.own import known_value, own

_VQ, _HIERARCHY = "scipy.cluster._vq", "scipy.cluster._hierarchy"
#: Modules of these functions since SciPy 1.18.
_MOVED = {_VQ: "scipy.cluster.vq._vq", _HIERARCHY: "scipy.cluster.hierarchy._hierarchy"}
_PYTHON, _ONCE = "scipy.cluster.hierarchy", "_check_hierarchy_uses_cluster_more_than_once"


def _plain_arrays(name: str, args: tuple[Any, ...]) -> list[Any]:
    return [np.ascontiguousarray(known_value(x, name)) if isinstance(x, Tracer) else x for x in args]


def _call_scipy(module: str, name: str, *args: Any) -> Any:
    """Call SciPy's function with the plain values."""
    return getattr(_home(module), name)(*_plain_arrays(name, args))


@cache
def _home(module: str) -> Any:
    """Return the module of compiled functions under its old or new name."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return import_module(_MOVED[module])


def _vq(obs: Any, code_book: Any) -> tuple[Any, Any]:
    """Return the nearest code for each observation, and the distance to it."""
    codes, _ = _call_scipy(_VQ, "vq", obs, code_book)
    nearest = code_book[codes]
    if obs.ndim == 1:
        return codes, fnp.abs(obs - nearest)
    return codes, own("scipy.spatial.metrics").minkowski(obs, nearest, 2.0)


def _means(obs: Any, labels: Any, nc: int) -> tuple[Any, Any]:
    """Return the mean of each cluster, and whether the cluster has members."""
    labels = np.asarray(labels)
    count = np.bincount(labels, minlength=nc)
    total = fnp.zeros((nc, *obs.shape[1:]), obs.dtype)
    fnp.add.at(total, labels, obs)
    return total / np.maximum(count, 1).reshape(-1, *(1,) * (obs.ndim - 1)), count > 0


#: Distance of a third cluster from two that are joined, by SciPy's number of the method: Lance and Williams, "A
#: general theory of classificatory sorting strategies", 1967. ``p`` and ``q`` are its distances from the two, ``d`` is
#: the distance between the two; ``i``, ``j`` and ``k`` are the sizes.
_JOINED: tuple[Callable[..., Any], ...] = (
    lambda p, q, d, i, j, k: fnp.minimum(p, q),
    lambda p, q, d, i, j, k: fnp.maximum(p, q),
    lambda p, q, d, i, j, k: (i * p + j * q) / (i + j),
    lambda p, q, d, i, j, k: fnp.sqrt((i * p**2 + j * q**2 - i * j * d**2 / (i + j)) / (i + j)),
    lambda p, q, d, i, j, k: fnp.sqrt((p**2 + q**2) / 2 - d**2 / 4),
    lambda p, q, d, i, j, k: fnp.sqrt(((k + i) * p**2 + (k + j) * q**2 - k * d**2) / (i + j + k)),
    lambda p, q, d, i, j, k: (p + q) / 2,
)


def _linkage(name: str, dists: Any, n: int, method: int = 0) -> Any:
    """Return the joins, in SciPy's order, with the distances at which they happen."""
    found = _call_scipy(_HIERARCHY, name, dists, n, *([] if name == "mst_single_linkage" else [method]))
    table = fnp.zeros((n, n), dists.dtype)
    table[np.triu_indices(n, 1)] = dists
    table = table + table.T
    places, sizes, heights = list(range(n)), np.ones(n), []
    for a, b in found[:, :2].astype(int):
        left, right = places[a], places[b]
        d, i, j = table[left, right], sizes[left], sizes[right]
        sizes[left], sizes[right] = 0, i + j
        others = np.flatnonzero(sizes * (np.arange(n) != right))
        joined = _JOINED[method](table[left, others], table[right, others], d, i, j, sizes[others])
        table[right, others] = joined
        table[others, right] = joined
        places.append(right)
        heights.append(d)
    return fnp.concatenate([found[:, :2], fnp.stack(heights)[:, None], found[:, 3:]], 1)


def _below(Z: Any) -> np.ndarray:
    """Return which joins each join consists of, including itself."""
    joins = np.asarray(known_value(Z, "linkage"))[:, :2].astype(int)
    n = len(joins) + 1
    below = np.eye(n - 1, dtype=bool)
    for row, pair in zip(below, joins, strict=True):
        for child in pair[pair >= n] - n:
            row |= below[child]
    return below


def _cophenetic(Z: Any, zz: Any, n: int) -> None:
    """Write for each pair of observations the distance at which they are first joined."""
    parts: list[np.ndarray] = [np.array([i]) for i in range(n)]
    first = np.zeros((n, n), int)
    for t, (a, b) in enumerate(np.asarray(known_value(Z, "cophenet"))[:, :2].astype(int)):
        first[np.ix_(parts[a], parts[b])] = first[np.ix_(parts[b], parts[a])] = t
        parts.append(np.concatenate([parts[a], parts[b]]))
    zz[...] = Z[first[np.triu_indices(n, 1)], 2]


def _largest(values: Any, Z: Any, out: Any) -> None:
    """Write the largest value of each join and the joins that it consists of."""
    out[...] = values[np.where(_below(Z), known_value(values, "linkage"), -np.inf).argmax(1)]


def _inconsistent(Z: Any, R: Any, n: int, d: int) -> None:
    """Write mean, deviation and number of the distances of joins up to ``d`` deep, and each join's inconsistency."""
    joins = np.asarray(known_value(Z, "inconsistent"))[:, :2].astype(int)
    within = np.eye(n - 1, dtype=bool)
    near = within.copy()
    for _ in range(1, d):
        reached = np.zeros_like(near)
        for pair in joins.T:
            rows = np.flatnonzero(pair >= n)
            reached[rows] |= near[pair[rows] - n]
        near = reached
        within |= near
    count, height = within.sum(1), Z[:, 2]
    mean = within @ height / count
    square = (within * (height - mean[:, None]) ** 2).sum(1) / np.maximum(count - 1, 1)
    varies = np.asarray(known_value(square, "inconsistent")) > 0
    deviation = fnp.where(varies, fnp.sqrt(fnp.where(varies, square, 1.0)), 0.0)
    off = fnp.where(varies, (height - mean) / fnp.where(varies, deviation, 1.0), 0.0)
    R[...] = fnp.stack([mean, deviation, count * 1.0, off], 1)


def _labels(name: str, *args: Any) -> Any:
    """Number clusters by SciPy's function: write the constant numbers to integer arrays among the arguments."""
    plain = _plain_arrays(name, args)
    found = getattr(_home(_HIERARCHY), name)(*plain)
    for given, now in zip(args, plain, strict=True):
        if isinstance(given, Tracer) and given.dtype.kind == "i":
            target: Any = given
            target[...] = now
    return found


#: Functions that number clusters.
_NUMBERING = (
    "calculate_cluster_sizes cluster_dist cluster_in cluster_maxclust_dist cluster_maxclust_monocrit cluster_monocrit "
    "leaders prelist"
)
_COMPILED: dict[tuple[str, str], Callable[..., Any]] = {
    (_VQ, "vq"): _vq,
    (_VQ, "update_cluster_means"): _means,
    (_HIERARCHY, "cophenetic_distances"): _cophenetic,
    (_HIERARCHY, "get_max_dist_for_each_cluster"): lambda Z, MD, n: _largest(Z[:, 2], Z, MD),
    (_HIERARCHY, "get_max_Rfield_for_each_cluster"): lambda Z, R, out, n, rf: _largest(R[:, rf], Z, out),
    (_HIERARCHY, "inconsistent"): _inconsistent,
    **{(_HIERARCHY, name): partial(_linkage, name) for name in ("fast_linkage", "mst_single_linkage", "nn_chain")},
    **{(_HIERARCHY, name): partial(_labels, name) for name in _NUMBERING.split()},
}

CLUSTERS: dict[tuple[str, str], Callable[..., Any]] = {
    # SciPy 1.15 checks in Python whether cluster numbers are members of a set
    (_PYTHON, _ONCE): partial(_call_scipy, _PYTHON, _ONCE),
    **_COMPILED,
    **{(_MOVED[module], name): ours for (module, name), ours in _COMPILED.items()},
}
