"""Compiled functions of ``scipy.sparse.csgraph`` for graphs whose weights are traced.

The choice of edges depends on the plain weights. Lengths of paths, and trees, have derivatives with respect to the
weights of their edges.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.masked import Masked, data_of, mask_of
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy_code.matrices import arrays_of
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.sparse.objects import plain_matrix


class _Weights:
    """Weights of the edges of a graph, real and in double precision, and SciPy's graph of the plain weights."""

    plain: Any

    def __init__(self, name: str, graph: Any, directed: bool = True) -> None:
        mask, graph = mask_of(graph), arrays_of(data_of(graph))
        self.is_dense = isinstance(graph, Tracer)
        if self.is_dense:
            self.graph = fnp.astype(fnp.real(graph), float)
            self.plain = np.ascontiguousarray(concrete(self.graph, name))
            if mask is not None:
                self.plain = np.ma.array(self.plain, mask=concrete(mask, name))
        else:
            matrices = own("scipy.sparse.matrices")
            if not isinstance(graph, matrices.SparseArray):  # constant beside a traced ``null_value``, or filled
                graph = matrices.as_sparse(name, plain_matrix(graph))
            if not directed and graph.format == "csc":  # as SciPy does, which finds edges in another order then
                graph = graph.T
            stores_no_zeros = matrices.is_of_dense(graph)
            graph = graph.real.astype(float)
            self.graph = _without_parallel_edges(graph.tocsr(), name)
            self.plain = self.graph.plain(name)
            for part in ("indices", "indptr"):  # SciPy 1.15 accepts no other dtype
                setattr(self.plain, part, np.int32(getattr(self.plain, part)))
            if stores_no_zeros:
                self.plain = self.plain.copy()
                self.plain.eliminate_zeros()

    def of(self, rows: Any, columns: Any, directed: bool = True) -> Any:
        """Return the weights of edges; for an undirected edge, the smaller weight of both directions."""
        if not directed:
            ahead, back = (self._lengths(*pair) for pair in ((rows, columns), (columns, rows)))
            turned = back < ahead
            rows, columns = np.where(turned, columns, rows), np.where(turned, rows, columns)
        if self.is_dense:
            return self.graph[rows, columns]
        first, _, order = self.graph._found(rows, columns)
        return self.graph.values[order[first]]

    def _lengths(self, rows: Any, columns: Any) -> Any:
        if not np.size(rows):  # SciPy's matrices return a sparse array for no index
            return np.zeros(np.shape(rows))
        found = self.plain[rows, columns]
        if isinstance(found, np.ma.MaskedArray):
            return found.filled(np.inf)
        found = np.asarray(found).reshape(np.shape(rows))
        return np.where(np.isfinite(found) & (found != 0), found, np.inf)


def _without_parallel_edges(graph: Any, name: str) -> Any:
    """Return the graph with one edge for each pair of nodes: of several values at one place, SciPy takes the least."""
    if graph.has_canonical_format:
        return graph
    rows, columns = graph.places()
    order = np.lexsort((concrete(graph.values, name), columns, rows))
    places = np.stack([rows, columns])[:, order]
    kept = order[np.append(True, (np.diff(places) != 0).any(axis=0))]
    return _sparse(graph.values[kept], (rows[kept], columns[kept]), graph.shape)


# ---- functions of the weights, the other arguments by name, and SciPy's function -----------------------------


def _paths(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Compute the lengths of shortest paths: sums of the weights along the paths."""
    wanted = given.pop("return_predecessors", False)
    found = scipy_function(weights.plain, **given, return_predecessors=True)
    lengths, before = found[:2]
    if not given.get("unweighted", False):
        lengths = _path_lengths(weights, lengths, before, given.get("directed", True))
    return (lengths, *found[1:]) if wanted else lengths


def _path_lengths(weights: _Weights, lengths: Any, before: Any, directed: bool) -> Any:
    """Return ``lengths`` as sums over the edges of the paths, which are followed back from their ends."""
    n = before.shape[-1]
    table = before.reshape(-1, n)
    sources, nodes = np.indices(table.shape).reshape(2, -1)
    place, ends, starts, paths = np.arange(table.size), [], [], []
    while place.size:
        previous = table[sources, nodes]
        open_ = previous >= 0
        place, sources, nodes, previous = place[open_], sources[open_], nodes[open_], previous[open_]
        paths.append(place)
        starts.append(previous)
        ends.append(nodes)
        nodes = previous
    path = np.concatenate(paths)
    edges = weights.of(np.concatenate(starts), np.concatenate(ends), directed)
    total = fnp.zeros(table.size, edges.dtype)
    fnp.add.at(total, path, edges)
    return fnp.where(np.isin(np.arange(table.size), path), total, lengths.ravel()).reshape(lengths.shape)


def _tree(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Compute a graph of some of the edges, with their weights."""
    found = scipy_function(weights.plain, **given).tocoo()
    return _sparse(weights.of(found.row, found.col, given.get("directed", True)), found.coords, found.shape)


def _sparse(values: Any, coords: Any, shape: Any) -> Any:
    """Return the sparse matrix of these values at these places."""
    kind = own("numpy_code.sparse.objects").replacement_class(sys.modules["scipy.sparse"].csr_array)
    return kind((values, coords), shape)


def _lengths_of_paths(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Compute the lengths of given paths: ``construct_dist_matrix``."""
    lengths = scipy_function(weights.plain, **given)
    return _path_lengths(weights, lengths, given["predecessors"], given.get("directed", True))


def _several(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Compute the lengths of several paths between two nodes: ``yen``."""
    wanted = given.pop("return_predecessors", False)
    lengths, before = scipy_function(weights.plain, **given, return_predecessors=True)
    if not given.get("unweighted", False):
        lengths = _path_lengths(weights, np.zeros(before.shape), before, given.get("directed", True))
        lengths = lengths[:, given["sink"]]
    return (lengths, before) if wanted else lengths


def _from_dense(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Make a sparse matrix from the edges of a dense one."""
    found = scipy_function(weights.plain, **given).tocoo()
    return _sparse(weights.graph[found.row, found.col], found.coords, found.shape)


def _masked_from_dense(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Make a masked array from a dense one, whose mask says where there is no edge."""
    return Masked(weights.graph, scipy_function(weights.plain, **given).mask)


def _to_dense(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Make the dense matrix, with another value where there is no edge."""
    is_edge = ~np.isnan(scipy_function(weights.plain, np.nan))
    return fnp.where(is_edge, weights.graph.toarray(), given.get("null_value", 0))


def _constant_result(weights: _Weights, given: dict[str, Any], scipy_function: Any) -> Any:
    """Compute a result that depends on the edges and their order by length only: a constant."""
    return scipy_function(weights.plain, **given)


_KINDS = {
    _paths: "_shortest_path bellman_ford dijkstra floyd_warshall johnson shortest_path",
    _tree: (
        "_min_spanning_tree minimum_spanning_tree;_traversal breadth_first_tree depth_first_tree;"
        "_tools reconstruct_path"
    ),
    _lengths_of_paths: "_tools construct_dist_matrix",
    _several: "_shortest_path yen",
    _from_dense: "_tools csgraph_from_dense csgraph_from_masked",
    _masked_from_dense: "_tools csgraph_masked_from_dense",
    _to_dense: "_tools csgraph_to_dense",
    _constant_result: (
        "_traversal breadth_first_order connected_components depth_first_order;"
        "_reordering reverse_cuthill_mckee structural_rank;"
        "_matching maximum_bipartite_matching min_weight_full_bipartite_matching"
    ),
}


def _of_graph(compute: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        scipy_function = getattr(import_module(module), name)
        given = dict(inspect.signature(scipy_function).bind(*args, **kwargs).arguments)
        graph = given.pop(next(iter(given)))
        if type(graph) is list:
            graph = fnp.asarray(graph)
        if issubclass(type(graph), np.ndarray):  # one example of a batch, or a constant beside a traced value
            return scipy_function(*args, **kwargs)
        weights = _Weights(f"csgraph.{name}", graph, given.get("directed", True))
        return compute(weights, given, scipy_function)

    call.takes_masked = True  # type: ignore[attr-defined]
    return call


GRAPHS: dict[tuple[str, str], Callable[..., Any]] = {
    (f"scipy.sparse.csgraph.{home}", name): _of_graph(compute, f"scipy.sparse.csgraph.{home}", name)
    for compute, lists in _KINDS.items()
    for home, *names in (part.split() for part in lists.split(";"))
    for name in names
}
