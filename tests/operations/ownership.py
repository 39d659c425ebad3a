"""Results of a transform belong to the caller: they share memory with nothing else.

Every transform runs on copies of a case's arrays. Then the test overwrites all results and all arguments: functions
returned for later use, such as a pullback, must still give the same results, and another call must give the same as
the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import checkpoint, grad, hvp, jacfwd, jacrev, jvp, linearize, no_grad, trace, value_and_grad, vjp, vmap
from funcgrad.core import Tracer
from operations.cases import Case, kind_of

__all__ = ["check_ownership"]

#: Largest number of entries of a Jacobian to compute: larger ones take long.
FEW = 40


class Arrays:
    """Copies of the arrays of a case, and functions of these copies.

    Attributes:
        values: all arrays; the differentiated ones are also passed as arguments, the others are closed over.
        live: the differentiated arrays.
        cotangents: directions in the space of the results.
        tangents: directions in the space of the arguments.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.values = [_copy(x) for x in case.values]
        self.live = tuple(self.values[i] for i in case.live)
        self.cotangents, self.tangents = tuple(map(_copy, case.cotangents)), tuple(map(_copy, case.tangents))

    def outs(self, *primals: Any) -> tuple[Any, ...]:
        """Return the floating results."""
        return self.case.of_live(self.case.fun, self.values)(*primals)

    def both(self, *primals: Any) -> Any:
        """Return the results, and as aux the results, the arguments and copies: the same values many times."""
        outs = self.outs(*primals)
        return outs, (outs, primals, {"copies": [fnp.array(x) for x in primals]}, self.values)

    def scalar(self, *primals: Any) -> Any:
        """Return one number, computed from all results."""
        parts = zip(self.outs(*primals), self.cotangents, strict=True)
        total = sum((fnp.sum(fnp.real(out * ct)) for out, ct in parts), 0.0 * fnp.real(fnp.ravel(primals[0])[:1].sum()))
        return total

    def scalar_and_aux(self, *primals: Any) -> Any:
        """Return one number, and as aux values that share memory with others."""
        return self.scalar(*primals), self.both(*primals)[1]

    def given(self) -> list[Any]:
        """Return all arrays that the library was given."""
        return _arrays([self.values, self.cotangents, self.tangents])


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _arrays(results: Any) -> list[np.ndarray]:
    if isinstance(results, dict):
        results = list(results.values())
    if isinstance(results, (tuple, list)):
        return [x for part in results for x in _arrays(part)]
    assert not issubclass(type(results), Tracer), "a transform gave away what stands for an array"
    return [results] if type(results) is np.ndarray and results.size else []


def _vjp(a: Arrays) -> Any:
    outs, pullback, aux = vjp(a.both, *a.live, has_aux=True)
    return (outs, aux, pullback(a.cotangents), pullback(a.cotangents)), lambda: pullback(a.cotangents)


def _linearize(a: Arrays) -> Any:
    outs, push, aux = linearize(a.both, *a.live, has_aux=True)
    return (outs, aux, push(*a.tangents), push(*a.tangents)), lambda: push(*a.tangents)


def _graph(a: Arrays) -> Any:
    graph = trace(a.outs)(*a.live)
    primals = tuple(map(_copy, a.live))
    return graph(*primals), lambda: graph(*primals)


def _checkpointed(a: Arrays) -> Any:
    outs, pullback = vjp(checkpoint(a.outs), *a.live)
    return (outs, pullback(a.cotangents), checkpoint(lambda *xs: xs)(*a.live)), None


def _mapped(a: Arrays) -> Any:
    """Map over a new axis of the arrays; the mapped function returns its arguments twice."""
    rows = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in a.live]
    axes = tuple([0 if isinstance(x, np.ndarray) else None for x in a.live])
    found = vmap(lambda *xs: (a.outs(*xs), xs, xs), in_axes=axes)(*rows)
    return (found, rows), None  # the rows are arguments: results must not share their memory either


def _argnums(a: Arrays) -> tuple[int, ...]:
    return tuple(range(len(a.live)))


def runs(case: Case) -> Iterator[tuple[str, Callable[[Arrays], Any]]]:
    """Yield names of transforms, and functions that return results and, if possible, a second derivative call."""
    real = all(kind_of(x) == "f" for x in (*case.primals, *case.outs))
    yield "vjp", _vjp
    yield "linearize", _linearize
    if not case.among_first:
        return  # sharing depends on the operation, hardly on its sample
    yield "jvp", lambda a: (jvp(a.both, a.live, a.tangents, has_aux=True), None)
    yield "checkpoint", _checkpointed
    yield "no_grad", lambda a: (no_grad(a.both)(*a.live), None)
    yield "trace", _graph
    real = real and case.is_first  # these transforms are made of the ones above
    if real:
        yield "grad", lambda a: (grad(a.scalar, _argnums(a))(*a.live), None)
        yield "value_and_grad", lambda a: (value_and_grad(a.scalar_and_aux, _argnums(a), has_aux=True)(*a.live), None)
    size = sum(np.size(x) for x in case.primals)
    if real and size * sum(np.size(x) for x in case.outs) <= FEW:
        yield "jacrev", lambda a: (jacrev(a.both, _argnums(a), has_aux=True)(*a.live), None)
        yield "jacfwd", lambda a: (jacfwd(a.outs, _argnums(a))(*a.live), None)
    if real and case.row.op.order >= 2 and size <= FEW:
        yield "hvp", lambda a: (hvp(a.scalar, a.live, a.tangents), None)
    if all(leaf.mapped for leaf in case.leaves) and any(isinstance(x, np.ndarray) for x in case.primals):
        yield "vmap", _mapped


def check_ownership(case: Case) -> None:
    """Check that all results of every transform belong to the caller."""
    for name, run in runs(case):
        _check(name, run, Arrays(case))


def _check(name: str, run: Callable[[Arrays], Any], arrays: Arrays) -> None:
    results, again = run(arrays)
    found = _arrays(results)
    expected = [x.copy() for x in found]
    given = arrays.given()
    for i, x in enumerate(found):
        assert x.flags.writeable, f"result {i} of {name} is read-only"
        shared = [j for j, other in enumerate(found) if j != i and _share(x, other)]
        assert not shared, f"results {i} and {shared} of {name} share memory"
        shared = [j for j, other in enumerate(given) if _share(x, other)]
        assert not shared, f"result {i} of {name} shares memory with what was given, {shared}"
    kept = [x.copy() for x in given]
    before = None if again is None else [x.copy() for x in _arrays(again())]
    directions = {id(x) for x in _arrays([arrays.cotangents, arrays.tangents])}  # later calls use these again
    for x in (*found, *[x for x in given if id(x) not in directions]):
        _overwrite(x)
    if again is not None:
        _same(f"what {name} returned, after everything was overwritten", _arrays(again()), before)
    for x, old in zip(given, kept, strict=True):
        x[...] = old
    _same(f"{name}, after results were overwritten", _arrays(run(arrays)[0]), expected)


def _share(x: np.ndarray, other: np.ndarray) -> bool:
    return np.may_share_memory(x, other) and np.shares_memory(x, other)


def _overwrite(x: np.ndarray) -> None:
    x[...] = ~x if x.dtype.kind == "b" else 0 if x.dtype.kind in "iu" else 77.0 if x.dtype.kind in "fc" else x


def _same(what: str, found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected), what
    for x, y in itertools.zip_longest(found, expected):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), what
        assert x.tobytes() == y.tobytes() or np.allclose(x, y, rtol=1e-12, atol=0, equal_nan=True), what
