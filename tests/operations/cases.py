"""Rows of the table of operations as cases: functions of a flat list of arrays, with directions to test."""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from funcgrad import jvp, vjp
from operations.names import OURS, THEIRS, named
from operations.older import asked
from operations.spec import Op, Sample

MACHINERY = {"spec", "names", "older", "cases", "checks", "batched", "comparing"}
MACHINERY |= {"numeric", "jax_reference", "ownership"}


def row_modules() -> dict[str, Any]:
    """Return the modules that hold rows, by name."""
    package = importlib.import_module("operations")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return {name: importlib.import_module(f"operations.{name}") for name in names if name not in MACHINERY}


def rows() -> list[Row]:
    """Return every row of every module; the rows are shared, because making their cases takes long."""
    return list(_made())


@cache
def _made() -> tuple[Row, ...]:
    seen: dict[str, int] = {}
    return tuple(Row(asked(op), seen) for module in row_modules().values() for op in module.OPS)


@contextmanager
def named_in_errors(what: Any) -> Iterator[None]:
    """Add a note that names ``what`` to an error; one test runs many cases, because pytest is slow per test."""
    try:
        yield
    except BaseException as error:  # pytest's outcomes derive from BaseException
        error.add_note(f"In {what}.")
        raise


@dataclass(frozen=True)
class Leaf:
    """An array (or number) among the arguments of a sample."""

    value: Any
    live: bool  # is differentiated
    mapped: bool  # may be mapped by vmap


class Hole:
    """The position of a leaf in the arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


class Row:
    """A row with its cases."""

    def __init__(self, op: Op, seen: dict[str, int] | None = None) -> None:
        """Make the cases; ``seen`` counts the ids in use, so that all ids are different."""
        self.op = op
        self.cases: list[Case] = []
        seen = {} if seen is None else seen
        for sample in (*op.samples, *op.complex_samples):
            label = "-".join([op.name, *_labels(sample)])
            seen[label] = seen.get(label, 0) + 1
            self.cases.append(Case(self, sample, label if seen[label] == 1 else f"{label}-{seen[label]}"))
        for group in (self.cases[: len(op.samples)], self.cases[len(op.samples) :]):
            for case in group[:1]:  # JAX is slow; rounding does not depend on axes, and differences check the others
                case.is_first = True
                case.compares_second = op.jax is not None and op.order >= 2
            for case in group[:2]:
                case.among_first = True


class Case:
    """One sample of one row.

    Attributes:
        row: the row of the sample.
        id: the name in the tests, such as ``sum-3x4-axis1``.
        leaves: the arrays among the positional arguments, read-only, in order.
        is_first: whether it is the first real or complex case of its row.
        compares_second: whether its second derivatives are compared with JAX's.
        among_first: whether it is one of the first two real or complex cases of its row.
        answers: JAX's answers, None until first use.
    """

    is_first = compares_second = among_first = False

    def __init__(self, row: Row, sample: Sample, id: str) -> None:
        self.row = row
        self.sample = sample
        self.id = id
        self.answers: dict[str, Any] | None = None
        self.leaves: list[Leaf] = []
        self.template = tuple(self._template(i, arg) for i, arg in enumerate(sample.args))
        self.live = [i for i, leaf in enumerate(self.leaves) if leaf.live]
        self.inexact = [i for i, leaf in enumerate(self.leaves) if kind_of(leaf.value) in "fc"]

    def __repr__(self) -> str:
        return f"<case {self.id}>"

    def _template(self, position: int, arg: Any) -> Any:
        """Return the argument with a ``Hole`` in place of each array."""
        if _holds_arrays(arg):
            return type(arg)([self._template(position, a) for a in arg])
        fixed, frozen = position in self.sample.unbatched, position in self.sample.frozen
        number = type(arg) in (float, complex)
        if not (isinstance(arg, (np.ndarray, np.generic)) or (number and not fixed)):
            return arg
        if isinstance(arg, np.ndarray):
            arg = arg.copy()
            arg.flags.writeable = False
        inexact = np.asarray(arg).dtype.kind in "fc"
        self.leaves.append(Leaf(arg, inexact and not frozen and self.row.op.differentiable, not fixed))
        return Hole(len(self.leaves) - 1)

    @cached_property
    def call(self) -> Callable[[Callable[..., Any], Sequence[Any]], tuple[Any, ...]]:
        """Function ``call(fun, values)`` that applies ``fun`` to ``values`` as leaves and returns the leaves.

        The function closes over only what it needs, because recording inspects all closed-over values.
        """
        template, kwargs = self.template, self.sample.kwargs

        def call(fun: Callable[..., Any], values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(flatten(fun(*[_filled(part, values) for part in template], **kwargs)))

        return call

    @cached_property
    def fun(self) -> Callable[..., Any]:
        """Operation in funcgrad."""
        found = self.row.op.fun or named(self.row.op.name, OURS)
        assert found is not None, f"funcgrad has no {self.row.op.name}"
        return found

    @cached_property
    def numpy(self) -> Callable[..., Any] | None:
        """Counterpart in NumPy."""
        theirs = self.row.op.numpy
        name = self.row.op.name if theirs == "same name" else theirs
        found = named(name, THEIRS) if isinstance(name, str) else name
        assert found is not None or self.row.op.numpy is None, f"numpy has no {self.row.op.name}: name it or say None"
        return found

    @property
    def values(self) -> list[Any]:
        """Values of all leaves."""
        return [leaf.value for leaf in self.leaves]

    @property
    def primals(self) -> list[Any]:
        """Values of the differentiated leaves."""
        return [self.leaves[i].value for i in self.live]

    def of_live(self, fun: Callable[..., Any], values: Sequence[Any] | None = None) -> Callable[..., tuple[Any, ...]]:
        """Return ``fun`` as a function of the differentiated leaves that returns its floating results only."""
        base, live, call = self.values if values is None else list(values), self.live, self.call

        def smooth(*primals: Any) -> tuple[Any, ...]:
            full = list(base)
            for i, primal in zip(live, primals, strict=True):
                full[i] = primal
            return tuple(out for out in call(fun, full) if kind_of(out) in "fc")

        return smooth

    @cached_property
    def smooth(self) -> Callable[..., tuple[Any, ...]]:
        """Operation of funcgrad as a function of the differentiated leaves."""
        return self.of_live(self.fun)

    @cached_property
    def referee(self) -> Callable[..., tuple[Any, ...]]:
        """NumPy's operation as a function of the differentiated leaves, or funcgrad's if NumPy has none."""
        return self.of_live(self.numpy or self.fun)

    @cached_property
    def outs(self) -> tuple[Any, ...]:
        """Floating results."""
        return self.smooth(*self.primals)

    @cached_property
    def pulled(self) -> tuple[Any, ...]:
        """Result of the pullback for ``cotangents``."""
        pullback: Any = vjp(self.smooth, *self.primals)[1]
        return tuple(pullback(self.cotangents))

    @cached_property
    def pushed(self) -> tuple[Any, ...]:
        """Result of the pushforward for ``tangents``."""
        return tuple(jvp(self.smooth, tuple(self.primals), self.tangents)[1])

    @cached_property
    def eps(self) -> float:
        """Rounding unit of the coarsest dtype among the primals and the results."""
        dtypes = [np.asarray(x).dtype for x in (*self.primals, *self.outs)]
        return float(max([np.finfo(d).eps for d in (np.dtype(float), *dtypes)]))

    def within(self, tolerance: float) -> float:
        """Return ``tolerance``, or the larger error that rounding allows."""
        return tolerance if self.eps < 1e-12 else max(tolerance, 100 * self.eps)

    @cached_property
    def tangents(self) -> tuple[Any, ...]:
        """Direction in the space of the primals."""
        return self.random(self.primals, "tangents")

    @cached_property
    def others(self) -> tuple[Any, ...]:
        """Another direction, for second order."""
        return self.random(self.primals, "others")

    @cached_property
    def cotangents(self) -> tuple[Any, ...]:
        """Direction in the space of the results."""
        return self.random(self.outs, "cotangents")

    def random(self, likes: Sequence[Any], name: str) -> tuple[Any, ...]:
        """Return random read-only numbers of the shapes and dtypes of ``likes``; ``name`` determines the numbers."""
        rng = np.random.default_rng(zlib.crc32(f"{self.id} {name}".encode()))
        return tuple(random_like(like, rng) for like in likes)


def _holds_arrays(arg: Any) -> bool:
    return isinstance(arg, (list, tuple)) and any(isinstance(a, np.ndarray) or _holds_arrays(a) for a in arg)


def _filled(part: Any, values: Sequence[Any]) -> Any:
    """Return ``part`` of a template with a value in each hole."""
    if isinstance(part, Hole):
        return values[part.number]
    return type(part)([_filled(p, values) for p in part]) if _has_holes(part) else part


def _has_holes(part: Any) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(p, Hole) or _has_holes(p) for p in part)


def flatten(out: Any) -> Iterator[Any]:
    """Yield the arrays in nested tuples and lists."""
    if isinstance(out, (tuple, list)):
        for part in out:
            yield from flatten(part)
    else:
        yield out


def kind_of(x: Any) -> str:
    """Return the kind of the dtype of an array, a tracer or a number."""
    return (x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype).kind


def random_like(like: Any, rng: np.random.Generator, dtype: Any = None) -> Any:
    """Return numbers from -1 to 1 of the shape and dtype of ``like``, none of them small."""
    like = np.asarray(like)
    made = rng.uniform(0.2, 1.0, like.shape) * rng.choice([-1.0, 1.0], like.shape)
    if like.dtype.kind == "c":
        made = made + 1j * rng.uniform(0.2, 1.0, like.shape)
    made = np.asarray(made).astype(dtype or like.dtype)
    made.flags.writeable = False
    return made if like.ndim else made[()]


def _labels(sample: Sample) -> Iterator[str]:
    """Return a short description of a sample: shapes, then static arguments."""
    for arg in sample.args:
        yield _label(arg)
    for key, value in sample.kwargs.items():
        yield key if value is True else key + _label(value)


def _label(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        shape = "x".join(map(str, arg.shape)) or "scalar"
        kind = "" if arg.dtype == np.float64 else str(arg.dtype).replace("complex128", "complex")
        return shape + kind
    if isinstance(arg, np.generic):
        return str(arg.dtype)
    if isinstance(arg, (list, tuple)):
        return "_".join(_label(a) for a in arg) or "empty"
    return getattr(arg, "__name__", None) or "".join(c for c in str(arg) if c.isalnum() or c in "_.,->")
