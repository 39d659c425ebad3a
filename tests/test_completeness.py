"""Nothing is left out: every operation has rows, every row is of an operation that exists, every gap has a reason."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import numpy as np
import pytest
from operations import cases
from operations.cases import MACHINERY, look_up, row_modules

import funcgrad.numpy as fnp
import funcgrad.primitives
from funcgrad import core, jvp, vjp

ROWS = cases.rows()

#: Public names of funcgrad.numpy without a row, and why.
NO_ROW: dict[str, str] = {}
#: Primitives that no row reaches, and why.
NO_USE: dict[str, str] = {}


def public(module, prefix=""):
    """The functions that a namespace offers, by name."""
    found = {}
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            found.update(public(value, f"{prefix}{name}."))
        elif callable(value) and not inspect.isclass(value):
            found[prefix + name] = value
    return found


def primitives():
    """Every primitive that a module of funcgrad.primitives, or kinds.linear, holds, by the name it has there."""
    package = funcgrad.primitives
    modules = [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    modules.append(importlib.import_module("funcgrad.kinds.linear"))
    found = {}
    for module in modules:
        for name, value in vars(module).items():
            primitive = getattr(value, "primitive", value)
            if isinstance(primitive, core.Primitive):
                assert found.setdefault(name, primitive) is primitive, f"two primitives are called {name}"
    return found


class Collector(core.Trace):
    """A trace that changes nothing and notes which primitives were applied."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def tracer(self, value):
        made = core.Tracer()
        made.value, made._trace = value, self
        return made

    def process(self, primitive, args, params):
        self.seen.add(primitive)
        lowered = [a.value if type(a) is core.Tracer and a._trace is self else a for a in args]
        ans = primitive.call(*lowered, **params)
        return tuple(map(self.tracer, ans)) if primitive.multiple else self.tracer(ans)


def used_by(case):
    """The primitives that a case applies, in its value and in both modes of its derivative."""
    trace = Collector()
    if not case.live:
        case.call(case.fun, [trace.tracer(x) if isinstance(x, np.ndarray) else x for x in case.values])
        return trace.seen
    primals = tuple(trace.tracer(x) for x in case.primals)
    vjp(case.smooth, *primals)[1](tuple(map(trace.tracer, case.cotangents)))
    jvp(case.smooth, primals, case.tangents)
    return trace.seen


def test_there_are_rows():
    assert len(ROWS) > 100
    assert all(row.cases for row in ROWS), [row.op.name for row in ROWS if not row.cases]


def test_every_module_of_rows_has_rows():
    found = row_modules()
    assert found
    assert not set(found) & set(MACHINERY)
    assert [name for name, module in found.items() if not getattr(module, "OPS", None)] == []


def test_case_ids_are_unique():
    ids = [case.id for row in ROWS for case in row.cases]
    assert len(ids) == len(set(ids))


def test_every_row_names_a_function_that_exists():
    missing = [row.op.name for row in ROWS if row.op.fun is None and not callable(look_up(fnp, row.op.name))]
    assert missing == []


def test_every_row_without_a_comparison_says_why():
    silent = [
        row.op.name for row in ROWS if not row.op.reason and (row.op.jax is None or row.op.order < 2 or not row.op.jit)
    ]
    assert silent == []


def test_every_public_function_has_a_row():
    named = [row.op.fun or look_up(fnp, row.op.name) for row in ROWS]
    named += [look_up(fnp, row.op.name) for row in ROWS]
    tested = {id(function) for function in named}
    untested = {name for name, function in public(fnp).items() if id(function) not in tested}
    assert sorted(untested - set(NO_ROW)) == []
    assert sorted(set(NO_ROW) - untested) == [], "these are tested, or are gone"
    assert all(NO_ROW.values())


def test_every_primitive_is_reached_by_a_row():
    seen = set().union(*[used_by(case) for row in ROWS for case in row.cases])
    unseen = {name for name, primitive in primitives().items() if primitive not in seen}
    assert sorted(unseen - set(NO_USE)) == []
    assert sorted(set(NO_USE) - unseen) == [], "these are reached, or are gone"
    assert all(NO_USE.values())


@pytest.mark.parametrize("name", ["reshape", "permute", "conj", "astype", "read", "add"])
def test_primitives_are_found(name):
    assert name in primitives()
