"""Unchanged NumPy functions under every transform: a rebuilt run replaces a run that would lose a derivative."""

import abc
import concurrent.futures
import copy
import functools
import gc
import importlib
import linecache
import logging
import math
import pickle
import re
import threading
import types
import weakref
from collections.abc import Iterable, Sized
from importlib import import_module
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.spatial
from helpers import differences

import funcgrad.numpy as fnp
from funcgrad import (
    as_written,
    check_grads,
    checkpoint,
    cond,
    control,
    curry,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    no_grad,
    pipe,
    profile,
    scan,
    tape,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import ConcretizationError, ConversionError, FuncgradError
from funcgrad.interop import crosscheck, from_numpy, jit
from funcgrad.interop.scipy import hessian_operator, jacobian_operator, least_squares, minimize, root, root_scalar
from funcgrad.kinds import elementwise
from funcgrad.numpy_code import is_conversion, rebuilding

X = np.array([0.5, 1.5])
SLOPE = np.array([math.cos(0.5), 3.0])


def filled(x):
    out = np.zeros(2)
    out[0] = math.sin(x[0])
    out[1] = float(x[1]) ** 2
    return out


def summed(x):
    return filled(x).sum()


def new(f):
    """Return a copy of the function with new code, which no transform has seen."""
    return type(f)(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


MODES = {
    "grad": lambda f: grad(f)(X),
    "value_and_grad": lambda f: value_and_grad(f)(X)[1],
    "strict": lambda f: grad(f, strict=True)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "jacrev": lambda f: jacrev(f)(X),
    "vjp": lambda f: vjp(f, X)[1](1.0)[0],
    "jvp": lambda f: np.array([jvp(f, (X,), (e,))[1] for e in np.eye(2)]),
    "linearize": lambda f: np.array([linearize(f, X)[1](e) for e in np.eye(2)]),
    "vmap": lambda f: vmap(grad(f))(X[None])[0],
    "grad of vmap": lambda f: grad(lambda xs: vmap(f)(xs).sum())(X[None])[0],
    "vmap alone": lambda f: SLOPE + vmap(f)(X[None])[0] - f(X),
    "checkpoint": lambda f: grad(checkpoint(f))(X),
    "jit": lambda f: jit(grad(f))(X),
    "grad of jit": lambda f: grad(jit(f))(X),
    "from_numpy": lambda f: grad(from_numpy(f))(X),
    "cond": lambda f: grad(lambda x: cond(x[0] > 0, f, f, x))(X),
    "scan": lambda f: grad(lambda x: scan(lambda c, a: (c + f(x * a), None), 0.0, np.ones(1))[0])(X),
    "fori_loop": lambda f: grad(lambda x: fori_loop(0, 1, lambda i, c: c + f(x), 0.0))(X),
    "control.map": lambda f: grad(lambda xs: control.map(f, xs).sum())(X[None])[0],
    "partial": lambda f: grad(functools.partial(lambda a, x: a * f(x), 1.0))(X),
    "curry": lambda f: grad(curry(lambda a, x: a * f(x))(1.0))(X),
    "pipe": lambda f: pipe(X, grad(f)),
    "pickle": lambda f: pickle.loads(pickle.dumps(grad(summed)))(X),
    "copy": lambda f: copy.deepcopy(grad(f))(X),
    "has_aux": lambda f: grad(lambda x: (f(x), {"a": x}), has_aux=True)(X)[0],
    "a tree": lambda f: grad(lambda p: f(p["x"]))({"x": X})["x"],
    "by keyword": lambda f: grad(lambda x, *, g: g(x))(X, g=f),
    "hessian": lambda f: SLOPE + np.diag(hessian(f)(X)) - [-math.sin(0.5), 2.0],
    "hvp": lambda f: SLOPE + hvp(f, (X,), (np.ones(2),))[0] - [-math.sin(0.5), 2.0],
    "sparse jacobian": lambda f: np.asarray(jacobian(new(filled), sparsity=np.eye(2))(X).sum(0)).ravel(),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_transform(mode):
    f = new(summed)
    for _ in range(2):  # the second time the function is known
        assert MODES[mode](f) == pytest.approx(SLOPE, rel=1e-12)


def test_inspection_tools_accept_rebuilt_functions():
    assert crosscheck(new(summed))(X)
    check_grads(new(summed), (X,))
    assert "sin" in str(trace(new(summed))(X))
    assert "sin" in str(tape(vjp(new(summed), X)[1]))
    assert "summed" in str(profile(grad(new(summed)))(X))
    assert grad(no_grad(new(summed)))(X).tolist() == [0.0, 0.0]
    assert linear_transpose(lambda v: np.array([v[1], 2 * v[0]]), X)(X)[0].tolist() == [3.0, 0.5]


def test_optimisers():
    def bowl(p):
        return np.array([math.exp(p[0]) - 2 * p[0], float(p[1]) ** 2]).sum()

    def equations(p):
        out = np.zeros(2)
        out[0] = math.exp(p[0]) - 2
        out[1] = p[1] ** 3 - 1
        return out

    assert minimize(bowl, X).x == pytest.approx([math.log(2), 0.0], abs=1e-5)
    assert least_squares(equations, X).x == pytest.approx([math.log(2), 1.0])
    assert root(equations, X).x == pytest.approx([math.log(2), 1.0])
    assert root_scalar(lambda t: math.exp(t) - 2, x0=0.5).root == pytest.approx(math.log(2))
    assert hessian_operator(bowl, X).matvec(np.ones(2)) == pytest.approx([math.exp(0.5), 2.0])
    assert jacobian_operator(equations, X).matvec(np.ones(2)) == pytest.approx([math.exp(0.5), 3 * 1.5**2])


def test_rebuild_is_cached_and_logged():
    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return math.sin(x)

    with log() as lines:
        assert [grad(counted)(0.0) for _ in range(3)] == [1.0, 1.0, 1.0]
    assert count == 4  # the first call ran the function twice
    assert len(lines) == 1
    assert "counted" in lines[0]
    assert "with funcgrad's functions" in lines[0]
    assert "float(x)" in lines[0]
    for _ in range(2):
        assert grad(lambda x: math.sin(x) * counted(x))(0.5) == pytest.approx(2 * math.sin(0.5) * math.cos(0.5))
    assert count == 4 + 2


class log:  # noqa: N801
    """Context manager that collects the messages of the logger."""

    def __enter__(self):
        self.lines = []
        self.handler = logging.Handler()
        self.handler.emit = lambda record: self.lines.append(record.getMessage())
        logger = logging.getLogger("funcgrad.numpy_code")
        self.level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self.handler)
        return self.lines

    def __exit__(self, *exc):
        logger = logging.getLogger("funcgrad.numpy_code")
        logger.removeHandler(self.handler)
        logger.setLevel(self.level)


def test_differentiable_function_is_not_rebuilt():
    def straight(x):
        assert id(globals_of_caller()) == here
        return np.sin(x)

    here = id(globals())  # not the dictionary, from which nearly everything can be reached
    assert grad(straight)(0.0) == 1.0
    assert rebuilding.level_of(straight) == 0


def globals_of_caller():
    import sys

    return sys._getframe(1).f_globals


def test_as_written_turns_rebuild_off():
    f = new(summed)
    with as_written(), pytest.raises(ConversionError, match=r"For `a\[i\] = x`|float\(x\)"):
        grad(f)(X)
    assert grad(f)(X) == pytest.approx(SLOPE)
    with as_written(), pytest.raises(ConversionError):
        grad(f)(X)

    @as_written()
    def refused(x):
        return grad(f)(x)

    for _ in range(2):
        with pytest.raises(ConversionError):
            refused(X)


def test_code_is_not_kept_alive():
    def made():
        constant = np.ones(3)
        f = eval("lambda x: math.sin(x) + c[0]", {"math": math, "c": constant})
        grad(f)(0.5)
        return weakref.ref(f.__code__), weakref.ref(f)

    code, f = made()
    gc.collect()
    assert code() is None
    assert f() is None


def test_rebuild_in_threads():
    f = new(summed)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(grad(f), [X * i for i in range(1, 17)]))
    assert found == [pytest.approx([math.cos(0.5 * i), 3.0 * i]) for i in range(1, 17)]


def test_threads_inside_rebuilt_function():
    def parallel(x):
        out = np.zeros(4)

        def work(i):
            out[i] = math.sin(x[0]) * i

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(work, range(4)))
        return out.sum()

    assert grad(parallel)(X) == pytest.approx([6 * math.cos(0.5), 0.0])


def test_threads_that_make_arrays():
    def work(x, i):
        made = np.zeros(2)
        made[0] = x[i]
        made[1] = np.array([x[i], 1.0]).sum() * np.ones(2).dot(x)
        return made @ made

    def parallel(x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda i: work(x, i), range(2))) + pool.submit(work, x, 0).result()

    def in_turn(x):
        return work(x, 0) + work(x, 1) + work(x, 0)

    np.testing.assert_allclose(grad(parallel)(X), differences(in_turn, X, 5e-4), rtol=1e-9)
    np.testing.assert_allclose(hessian(parallel)(X), hessian(in_turn)(X), rtol=1e-13)
    batch = np.stack([X, X + 0.1])
    np.testing.assert_allclose(vmap(grad(parallel))(batch), vmap(grad(in_turn))(batch), rtol=1e-13)


def test_pool_error_names_refusal_in_thread():
    """Check errors that a pool has raised again: ``joblib`` keeps the text of the refusal only."""

    def parallel(x):
        def work(i):
            made = np.zeros(2)
            made[0] = x[i]
            return made

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            try:
                return sum(pool.map(work, range(2))).sum()
            except (TypeError, ValueError):
                raise ValueError("the pool's own error") from None

    with as_written(), pytest.raises(ConversionError, match=r"This thread does not run the transform") as raised:
        grad(parallel)(X)
    assert str(raised.value.__cause__) == "the pool's own error"


def test_rebuild_in_nested_transforms():
    def outer(x):
        inner = grad(lambda y: math.exp(y[0]) * float(x[0]) * y[1])(x)
        return np.array([inner.sum(), 1.0]).sum()

    def by_hand(x):
        return fnp.exp(x[0]) * x[0] * (x[1] + 1)

    assert grad(outer)(X) == pytest.approx(grad(by_hand)(X))
    assert hessian(outer)(X) == pytest.approx(hessian(by_hand)(X))
    assert jacfwd(lambda x: grad(new(summed))(x))(X) == pytest.approx(np.diag([-math.sin(0.5), 2.0]))


class Counter:
    def __init__(self):
        self.count = 0
        self.table = np.zeros(2)
        self.log = []

    def __call__(self, x):
        self.count += 1
        self.table[0] = x[0]
        self.table[1] = math.sin(x[1])
        self.log.append(self.table.sum())
        return self.table.prod() + self.count

    def made(self):
        return Pair(self, self.count)


class Pair:
    def __init__(self, one, two):
        self.one, self.two = one, two


def test_objects_are_not_changed():
    counter = Counter()
    assert grad(counter)(X) == pytest.approx([math.sin(1.5), 0.5 * math.cos(1.5)])
    assert grad(counter.__call__)(X) == pytest.approx([math.sin(1.5), 0.5 * math.cos(1.5)])
    assert (counter.table.tolist(), type(counter.table)) == ([0.0, 0.0], np.ndarray)
    assert type(counter) is Counter
    assert set(vars(counter)) == {"count", "table", "log"}
    # the abandoned run has counted, too
    assert all(isinstance(x, int) for x in [counter.count])


def test_results_are_of_the_original_classes():
    counter = Counter()

    def f(x):
        return math.sin(x), (counter, Pair(counter, 1.0), [Counter()])

    slope, (same, pair, others) = grad(f, has_aux=True)(0.0)
    assert slope == 1.0
    assert same is counter
    assert [type(v) for v in (pair, others[0])] == [Pair, Counter]
    assert type(pair.one) is Counter
    pickle.loads(pickle.dumps(pair))


def test_result_keeps_module_alive():
    class Model:
        def __init__(self):
            self.library = np

    given = Model()

    def f(x):
        made = Model()
        return made.library.sin(float(x)) + given.library.cos(x), (made, given)

    slope, (made, same) = grad(f, has_aux=True)(0.5)
    assert slope == pytest.approx(math.cos(0.5) - math.sin(0.5))
    assert made.library is np
    assert same is given


def test_object_arguments_are_rebuilt():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def energy(self, x):
            return np.array([x, self.scale]).prod()

    def f(x, model, functions, data):
        return model.energy(x) * functions["sin"](x) + data.dot(np.array([x, 1.0]))

    slope = grad(f)(0.5, Model(3.0), {"sin": math.sin}, np.array([2.0, 1.0]))
    assert slope == pytest.approx(3 * (math.sin(0.5) + 0.5 * math.cos(0.5)) + 2)


def test_changed_constants_are_seen():
    scale = np.ones(1)

    def f(x):
        return math.sin(x) * np.asarray(scale).dot(np.array([x]))

    assert grad(f)(0.5) == pytest.approx(math.sin(0.5) + 0.5 * math.cos(0.5))
    scale[0] = 2.0
    assert grad(f)(0.5) == pytest.approx(2 * (math.sin(0.5) + 0.5 * math.cos(0.5)))
    scale = np.full(1, 3.0)
    assert grad(f)(0.5) == pytest.approx(3 * (math.sin(0.5) + 0.5 * math.cos(0.5)))


def test_repeated_calls_of_one_transform():
    """Check that a transform's cache stays valid: in a block, for constants that are written to, after an error."""
    parts = {"scale": np.ones(2), "raises": False, "writes": False}

    class Model:
        factor = 2.0

        def loss(self, x):
            if parts["raises"]:
                raise ZeroDivisionError("its own")
            if parts["writes"]:
                parts["scale"][0] = x[1]
            return math.sin(x[0]) * self.factor * parts["scale"][0] + 0.0 * x[1]

    model = Model()
    slope = grad(model.loss)
    expected = np.array([2.0 * math.cos(0.5), 0.0])
    for _ in range(3):
        np.testing.assert_allclose(slope(X), expected)
    with as_written(), pytest.raises(ConversionError):
        slope(X)
    parts["raises"] = True
    with pytest.raises(ZeroDivisionError):
        slope(X)
    parts["raises"] = False
    model.factor = 3.0
    np.testing.assert_allclose(slope(X), 1.5 * expected)
    parts["writes"] = True
    for _ in range(3):
        np.testing.assert_allclose(slope(X), [3.0 * math.cos(0.5) * 1.5, 3.0 * math.sin(0.5)])
    assert parts["scale"].tolist() == [1.0, 1.0]
    parts["writes"] = False
    np.testing.assert_allclose(slope(X), 1.5 * expected)


@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide, np.power, np.hypot, np.fmod])
def test_later_write_to_operand_keeps_result(operation):
    def written(x, first):
        made = fnp.full(2, 2.0)
        y = operation(made, x) if first else operation(x, made)
        made[:] = 7.0 * x
        return y.sum()

    for first in (True, False):
        plain = lambda x, first=first: operation(*([2.0, x] if first else [x, 2.0])).sum()
        for transform in (grad, jacfwd, lambda f: lambda x, *rest: jvp(lambda x: f(x, *rest), (x,), (X,))[1]):
            np.testing.assert_allclose(transform(written)(X, first), transform(plain)(X))


KINDS = []


class Registered:
    """Class that records its subclasses."""

    def __init_subclass__(cls, factor, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.factor = factor
        KINDS.append(cls)

    def value(self, x):
        return self.factor * math.sin(x)


class Second(Registered, factor=2.0):
    def value(self, x):
        return super().value(x) + self.factor * math.sin(x)


class Third(Second, factor=3.0):
    pass


def test_rebuilt_classes_are_not_registered():
    def f(x):
        class Fourth(Third, factor=4.0):
            pass

        return sum(kind().value(x) for kind in KINDS if kind.__name__ != "Fourth") + Fourth().value(x)

    for _ in range(2):
        assert grad(f)(0.5) == pytest.approx((4.0 + 6.0 + 8.0) * math.cos(0.5))
        assert KINDS[:2] == [Second, Third]
        assert {kind.__name__ for kind in KINDS[2:]} == {"Fourth"}


@pytest.mark.parametrize("calls", [1, 2, 3, 6])
def test_function_that_another_transform_rebuilt(calls):
    text = """
class Model:
    scale = 2.0
    def value(self, x):
        return self.scale * x * x if x < 1.0 else math.sin(x)

def plain(x):
    return x * x if x < 1.0 else math.sin(x)

def with_default(x, scale=2.0):
    return scale * x * x if x < 1.0 else math.sin(x)

def make(scale):
    return lambda x: scale * x * x if x < 1.0 else math.sin(x)
"""
    names = {"math": math}
    exec(text, names)  # new code: each function is called for the first time
    functions = [(names["plain"], 1.0), (names["with_default"], 2.0), (names["make"](2.0), 2.0)]
    for fun, slope in [*functions, (names["Model"]().value, 2.0)]:
        first, second = grad(fun), grad(fun)
        for _ in range(calls):
            assert first(0.5) == pytest.approx(slope)
        assert second(2.0) == pytest.approx(math.cos(2.0))
        for _ in range(3):
            assert first(0.5) == pytest.approx(slope)
            assert first(2.0) == pytest.approx(math.cos(2.0))


GENERIC_KINDS = []


class Parametrized(Generic[TypeVar("T")]):
    """Generic class that records its subclasses."""

    factor = 1.0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        GENERIC_KINDS.append(cls)

    def value(self, x):
        return self.factor * math.sin(x)


class Doubled(Parametrized[int]):
    factor = 2.0


def test_rebuilt_generic_classes_are_not_registered():
    for _ in range(2):
        assert grad(Doubled().value)(0.5) == pytest.approx(2.0 * math.cos(0.5))
        assert grad(lambda x: Doubled().value(x))(0.5) == pytest.approx(2.0 * math.cos(0.5))
        assert len(GENERIC_KINDS) == 1


def test_inner_error_causes_no_outer_rerun():
    runs = []

    def inner(x):
        runs.append(1)
        math.sin(x)
        raise ValueError("its own")

    def outer(x):
        return grad(inner)(x) * x

    with pytest.raises(ValueError, match="its own"):
        grad(outer)(0.5)
    assert len(runs) == 2  # the plain run, and the rebuilt run


WORK = np.zeros(4)
TOP = WORK[:2]


def test_write_to_shared_global_memory_raises():
    def shared(x):
        WORK[0] = math.sin(x)
        return TOP[0] + WORK[0]

    def shared_other_way(x):
        before = TOP[0]
        WORK[0] = math.sin(x)
        return TOP[0] + before

    for f in (shared, shared_other_way):
        with pytest.raises((FuncgradError, ValueError)):
            grad(f)(0.5)
    assert WORK.tolist() == [0.0] * 4


def test_compiled_code_error_names_line():
    def reduced(x):
        return scipy.linalg.cossin(np.eye(4) * x, 2, 2)[1][0, 0]

    with pytest.raises(ConversionError) as caught:
        grad(reduced)(0.5)
    message = str(caught.value)
    assert "dorcsd: it is compiled code, which accepts no traced values, so the derivative ends there" in message
    assert f"at {__file__}:" in message
    assert "return scipy.linalg.cossin(" in message
    assert "custom_vjp" in message


def test_changed_source_file_is_not_recompiled(tmp_path, monkeypatch):
    path = tmp_path / "their_module.py"
    text = "import numpy as np\n\ndef f(x, kind=np.float64):\n    return kind(np.asarray(x)) * 2\n"
    path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("their_module")
    path.write_text(text.replace("* 2", "* 3"))
    with pytest.raises(ConversionError):
        grad(module.f)(1.0)
    path.write_text(text)
    linecache.checkcache()
    again = importlib.reload(module)
    assert grad(again.f)(1.0) == 2.0


def test_program_errors_pass_through():
    def wrong(x):
        out = np.array([x, 1.0])
        raise KeyError("missing")
        return out

    with pytest.raises(KeyError, match="missing") as caught:
        grad(wrong)(0.5)
    assert "with funcgrad's functions" in caught.value.__notes__[0]
    assert not is_conversion(caught.value, caught.value.__context__)


def test_custom_rules():
    @custom_vjp
    def rule(x):
        return x * 2.0

    rule.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (5.0 * ct,))
    assert grad(lambda x: math.sin(x) * 0 + rule(np.asarray(x)))(0.5) == 5.0


def test_scipy_solvers():
    def f(a):
        return scipy.optimize.brentq(lambda t: math.exp(t) - a, 0.0, 3.0)

    assert grad(f)(2.0) == pytest.approx(0.5)
    assert grad(grad(f))(2.0) == pytest.approx(-0.25)


def test_graph_shows_rebuilt_function():
    graph = trace(lambda x: math.sin(x) * x)(0.5)
    assert graph.rebuilt
    assert repr(graph).endswith("run with funcgrad's functions>")
    assert str(graph).splitlines()[0].endswith("; run with funcgrad's functions")
    assert pickle.loads(pickle.dumps(trace(math.sin)(0.5))).rebuilt
    straight = trace(lambda x: fnp.sin(x) * x)(0.5)
    assert not straight.rebuilt
    assert "run with" not in repr(straight)


class Mixed:
    """Object whose attributes are read, written and hidden in every way."""

    shared = 1.0

    def __init__(self):
        self.scale, self.table, self.names = 2.0, np.array([1.0, 2.0]), ["a"]
        self.shared = 3.0
        self.fun = math.sin

    def value(self, x):
        found = self.fun(x)
        self.scale = self.scale * x
        return found * self.scale * self.shared * math.fsum(self.table * np.ones(len(self.names) + 1))


def test_objects_keep_their_attributes():
    mixed = Mixed()
    for _ in range(2):
        assert grad(mixed.value)(0.5) == pytest.approx(18 * (math.cos(0.5) * 0.5 + math.sin(0.5)))
        assert mixed.scale == 2.0
    mixed.table = np.array([1.0, 1.0])
    assert grad(mixed.value)(0.5) == pytest.approx(12 * (math.cos(0.5) * 0.5 + math.sin(0.5)))
    mixed.fun = math.cos
    assert grad(mixed.value)(0.5) == pytest.approx(12 * (-math.sin(0.5) * 0.5 + math.cos(0.5)))


class Partner:
    """Object that refers back to itself, and whose class may change."""

    def __init__(self, scale):
        self.scale, self.other, self.notes, self.mask = scale, None, [], np.array([True, False])

    def value(self, x, given=None):
        met = given is None or given is self
        is_it = self.other.other is self and self.other.other.notes is self.notes and met and PARTNERS[0].other is self
        return math.sin(x) * self.scale * self.other.scale * self.mask.sum() if is_it else None


class Squared(Partner):
    def value(self, x, given=None):
        return super().value(x, given) ** 2


PARTNERS = []


def test_cyclic_and_repeated_objects_keep_identity():
    pair = Partner(2.0)
    pair.other = Partner(3.0)
    pair.other.other = pair
    PARTNERS[:] = [pair.other]
    for _ in range(2):
        assert grad(pair.value)(0.5) == pytest.approx(6.0 * math.cos(0.5))
        assert grad(pair.value)(0.5, pair) == grad(pair.value)(0.5, given=pair) == grad(pair.value)(0.5)
        assert grad(Partner.value, 1)(pair, 0.5) == pytest.approx(6.0 * math.cos(0.5))
    slope = grad(pair.value)
    pair.scale = 4  # an integer now
    assert slope(0.5) == pytest.approx(12.0 * math.cos(0.5))
    pair.__class__ = Squared
    assert grad(pair.value)(0.5) == pytest.approx(144.0 * math.sin(1.0))
    del pair.mask
    with pytest.raises(AttributeError, match="mask"):
        grad(pair.value)(0.5)


class Shape(abc.ABC):
    """Class with members of all kinds, some of which its methods take from the class dictionary."""

    def __init__(self):
        self.__dict__["size"] = 5.0  # hidden by the property

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    @abc.abstractmethod
    def side(self, x): ...

    @property
    def size(self):
        return float(np.array([2.0])[0])

    @size.setter
    def size(self, value):
        self.factor = math.sqrt(value)

    @classmethod
    def made(cls):
        return cls()

    @staticmethod
    def root(x):
        return math.sqrt(x)


class Square(Shape):
    def side(self, x):
        return math.sin(x)

    def area(self, x):
        other = self.made()
        other.size = x
        own = vars(Square)["side"](self, x) * vars(Shape)["root"](4.0)
        return {self: own * self.size * other.factor * self.root(x)}[self]


def shape_of(x):
    try:
        Shape()
    except TypeError:
        return math.sin(x)


@pytest.mark.parametrize("kind", [type(Shape), type("Kind", (type(Shape),), {"__init__": lambda *args: None})])
def test_class_members_are_rebuilt_on_access(kind):
    square = kind("Square", (Square,), {"__module__": __name__})()
    for _ in range(2):
        assert grad(square.area)(0.5) == pytest.approx(4.0 * (math.sin(0.5) + 0.5 * math.cos(0.5)))
        assert grad(shape_of)(0.5) == pytest.approx(math.cos(0.5))
    assert vars(square) == {"size": 5.0}


class Namespace(dict):
    """Dictionary with a ``copy`` method of its own, which must not be called."""

    def copy(self):
        raise AssertionError


class Named:
    def __init__(self):
        self.__dict__ = Namespace(scale=2.0, fun=math.sin)

    def value(self, x):
        found = self.fun(x)
        self.scale = self.scale * x
        return found * self.scale


def test_objects_with_custom_attribute_dictionary():
    named = Named()
    for _ in range(2):
        assert grad(named.value)(0.5) == pytest.approx(2.0 * (math.sin(0.5) + 0.5 * math.cos(0.5)))
    assert named.scale == 2.0


TABLE, SPACE = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2)


def level(f):
    """Return the level at which a function is rebuilt from now on."""
    return rebuilding.level_of(f)


def test_read_constants_are_shared_between_runs():
    f = new(lambda x: TABLE.dot(x).sum() + (TABLE.T @ x)[0])
    assert grad(f)(X) == pytest.approx([5.0, 9.0])
    assert level(f) == rebuilding.READ_ONLY_ARRAYS
    TABLE[0] *= 2.0
    try:
        assert grad(f)(X) == pytest.approx([7.0, 11.0])  # writes to the array between runs show
        assert type(f(X)) is np.float64
        assert type(from_numpy(f)(X)) is np.float64
    finally:
        TABLE[0] /= 2.0


def test_written_constants_are_new_in_every_run():
    def f(x, written):
        y = TABLE.dot(x)
        if written:
            SPACE[0] += y[0]
            return SPACE.sum()
        return y.sum()

    assert grad(f)(X, False) == pytest.approx([4.0, 6.0])
    assert level(f) == rebuilding.READ_ONLY_ARRAYS
    for _ in range(2):
        assert grad(f)(X, True) == pytest.approx([1.0, 2.0])
        assert level(f) == rebuilding.WRITABLE_ARRAYS
    assert grad(f)(X, False) == pytest.approx([4.0, 6.0])
    assert not SPACE.any()


def test_caught_refused_write_does_not_change_branch():
    def f(x):
        y = TABLE.dot(x)
        space = np.asarray(SPACE)
        try:
            space += y
        except ValueError:
            return 1000.0 * x.sum()
        return space.sum()

    space = SPACE.copy()
    try:
        assert grad(f)(X) == pytest.approx([4.0, 6.0])
    finally:
        SPACE[:] = space


class Holder:
    """Object with constant arrays."""

    def __init__(self):
        self.table, self.flags, self.space = TABLE, np.array([True, False]), np.zeros(2)

    def read(self, x):
        return self.table.dot(x)[self.flags].sum()

    def written(self, x):
        self.space[:] = self.table.dot(x)
        return (self.space * self.table.sum()).sum()


def test_object_arrays_are_read_and_written():
    holder = Holder()
    for _ in range(3):
        assert grad(holder.read)(X) == pytest.approx([1.0, 2.0])
        assert grad(holder.written)(X) == pytest.approx([40.0, 60.0])
        assert not holder.space.any()
    holder.table = TABLE * 2.0
    assert grad(holder.read)(X) == pytest.approx([2.0, 4.0])


def test_user_module_attributes_of_any_name(tmp_path, monkeypatch):
    text = "import numpy as np\n\ndef find(x):\n    out = np.zeros(2)\n    out[0] = x * FACTOR\n    return out.sum()\n"
    (tmp_path / "program_with_names.py").write_text(text + "\nmodule = find\nFACTOR = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module("program_with_names")
    f = lambda x: program.find(x) + program.module(x) * math.sin(x)
    for _ in range(2):
        assert grad(f)(0.5) == pytest.approx(2.0 + 2.0 * math.sin(0.5) + math.cos(0.5))
    monkeypatch.setattr(program, "FACTOR", 3.0)
    monkeypatch.setattr(program, "module", lambda x: 1.0)
    assert grad(f)(0.5) == pytest.approx(3.0 + math.cos(0.5))
    assert not hasattr(rebuilding._TRANSLATORS[1](program)[0], "range")


@pytest.mark.parametrize("round_", range(5))
def test_threads_rebuilding_one_class(round_):
    base = type(
        "Base",
        (Holder,),
        {name: new(member) for name, member in vars(Holder).items() if name != "__doc__" and callable(member)},
    )
    holder, barrier = type("Derived", (base,), {})(), threading.Barrier(6)

    def slope(number):
        barrier.wait()
        return [grad(holder.read if number % 2 else holder.written)(X) for _ in range(20)]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for number, slopes in enumerate(pool.map(slope, range(6))):
            assert np.array(slopes) == pytest.approx(np.tile([1.0, 2.0] if number % 2 else [40.0, 60.0], (20, 1)))


# ---- closures are rebuilt once --------------------------------------------------------------------------------


def built_of(fun):
    return rebuilding._TRANSLATORS[rebuilding.FUNCTIONS](fun)[0]


def test_nested_closures_are_cached():
    scale = 2.0

    def inner(x):
        return math.sin(scale * x)

    def outer(x):
        return inner(x) * x

    def outermost(x):
        return outer(x) + 1.0

    f = grad(outermost)
    assert np.isclose(f(0.5), math.sin(1.0) + 0.5 * 2.0 * math.cos(1.0))
    before = built_of(outermost)
    assert built_of(outermost) is before
    scale = 3.0
    assert built_of(outermost) is not before
    assert np.isclose(f(0.5), math.sin(1.5) + 0.5 * 3.0 * math.cos(1.5))


def test_closures_over_imported_math_names_are_cached():
    from math import cos, sin

    def made(factor):
        return lambda x: sin(x) * cos(x) * factor

    f = made(2.0)
    assert np.isclose(grad(f)(0.5), 2.0 * math.cos(1.0))
    assert built_of(f) is built_of(f)
    assert np.isclose(grad(made(3.0))(0.5), 3.0 * math.cos(1.0))


def test_new_closures_leak_no_memory():
    held = []

    def made(data):
        return lambda x: math.sin(x) * data[0]

    for _ in range(200):
        data = np.ones(3)
        held.append(weakref.ref(data))
        grad(made(data))(0.5)
    del data
    gc.collect()
    assert sum(ref() is not None for ref in held) <= 2  # the data of the first and the last closure


def test_new_closures_see_current_values():
    def made(factor):
        def f(x):
            return factor(x) if callable(factor) else math.sin(x) * np.sum(factor)

        def put(other):
            nonlocal factor
            factor = other

        return f, put

    sine, cosine = math.cos(0.5), -math.sin(0.5)
    for _ in range(2):
        for factor, expected in [(2.0, 2 * sine), (3, 3 * sine), (np.ones(2), 2 * sine), (math.cos, cosine)]:
            assert grad(made(factor)[0])(0.5) == pytest.approx(expected)
    f, put = made(2.0)
    slope = grad(f)
    for factor, expected in [(2.0, 2 * sine), (True, sine), (math.cos, cosine), (np.full(3, 2.0), 6 * sine)]:
        put(factor)
        assert slope(0.5) == grad(f)(0.5) == pytest.approx(expected)


def test_closure_over_unbound_variable_raises_name_error():
    def made(is_set):
        if is_set:
            factor = 2.0
        return lambda x: math.sin(x) * factor

    for _ in range(2):
        assert grad(made(True))(0.5) == pytest.approx(2.0 * math.cos(0.5))
        with pytest.raises(NameError, match="factor"):
            grad(made(False))(0.5)


def test_one_code_object_in_several_modules():
    def made(factor):
        return lambda x: sin(x) * factor + SHIFT * x  # noqa: F821

    code = made(2.0).__code__
    for _ in range(2):
        for sin, shift, slope in ((math.sin, 1.0, math.cos(0.5)), (math.exp, 5.0, math.exp(0.5))):
            names = {"sin": sin, "SHIFT": shift, "__name__": "made_by_hand"}
            f = type(made)(code, names, "f", None, made(2.0).__closure__)
            assert grad(f)(0.5) == pytest.approx(2.0 * slope + shift)


def test_nested_transform_uses_cached_rebuild():
    def f(x):
        return math.sin(x) * x

    twice = grad(grad(f))
    expected = 2.0 * math.cos(0.5) - 0.5 * math.sin(0.5)
    for _ in range(3):
        assert np.isclose(twice(0.5), expected)
    assert np.isclose(pickle.loads(pickle.dumps(grad(grad(math.sin))))(0.5), -math.sin(0.5))


# ---- errors of math that programs catch -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: math.sqrt(x),
        lambda x: math.log(x),
        lambda x: math.log(x, 2.0),
        lambda x: math.acos(x - 1.0),
        lambda x: math.gamma(x),
        lambda x: math.exp(-1000.0 * x),
        lambda x: math.pow(x, 0.5),
        lambda x: math.atanh(x + 0.5),
    ],
)
def test_math_domain_errors_are_raised(fun):
    def safe(x):
        try:
            return fun(x)
        except (ValueError, OverflowError):
            return 7.0 * x

    assert grad(safe)(-2.0) == 7.0
    assert grad(safe)(0.25) == grad(fun)(0.25) != 7.0
    with pytest.raises((ValueError, OverflowError)) as plain:
        fun(-2.0)
    with pytest.raises(type(plain.value), match=re.escape(str(plain.value))):  # the text depends on the Python version
        grad(fun)(-2.0)
    assert vmap(grad(safe))(np.array([-2.0, -3.0])).tolist() == [7.0, 7.0]
    assert np.allclose(vmap(grad(safe))(np.array([0.25, 0.3])), [grad(fun)(0.25), grad(fun)(0.3)])
    with pytest.raises(ConcretizationError, match="in 1 of 2 examples"):
        vmap(safe)(np.array([-2.0, 0.25]))


cdist_hamming = import_module("scipy.spatial._distance_pybind").cdist_hamming


OTHER_ROWS = np.array([[1.0, 1.0, 5.0]])


def test_pybind11_functions_with_tracers_raise():
    """Check that calls with traced values raise, and calls with constants work; Python sees these as methods."""

    def smooth(x, y):
        rows = np.zeros((1, 3))
        rows[0, :] = y
        return cdist_hamming(rows, OTHER_ROWS)[0, 0] * math.sin(x)

    y = np.array([3.0, 1.0, 2.0])
    np.testing.assert_allclose(jacrev(smooth)(0.5, y), np.cos(0.5) * 2 / 3)
    with pytest.raises(ConversionError, match="cdist_hamming: it is compiled code"):
        jacrev(smooth, 1)(0.5, y)


def test_compiled_code_sorts_a_list():
    """Check SciPy's compiled sorting of the corners of each region, over which the area is summed."""

    def areas(x):
        directions = x / np.linalg.norm(x, axis=1, keepdims=True)
        return scipy.spatial.SphericalVoronoi(directions).calculate_areas()

    points = np.random.default_rng(0).normal(size=(8, 3))
    found, pushed = jvp(areas, (points,), (np.cos(points),))
    np.testing.assert_allclose(found, areas(points))
    np.testing.assert_allclose(pushed, differences(lambda t: areas(points + t * np.cos(points)), 0.0), rtol=1e-8)


def test_compiled_functions_that_select_elements():
    """Check compiled functions that choose elements by plain values: results made of the elements have derivatives."""

    def peaks(x):
        found, kept = scipy.signal.find_peaks(x, prominence=0.1, distance=2)
        return np.sum(x[found] ** 2) + kept["prominences"] @ np.arange(1.0, 1 + len(found))

    def matched(x):
        costs = np.abs(x[:3, None] - np.array([1.1, 2.3, 0.4])) ** 1.5
        rows, columns = scipy.optimize.linear_sum_assignment(costs)
        return costs[rows, columns].sum()

    for fun in (peaks, matched):
        check_grads(fun, (np.array([0.3, 1.7, 0.9, 0.2, 2.1, 0.7, 1.2, 0.6]),))


def test_masked_array_with_positional_mask():
    """``MaskedArray`` takes the mask before the dtype, and ``numpy.ma.array`` the dtype before the mask."""

    def both(x):
        weights = np.ma.masked_array(np.arange(3.0), [False, True, False], np.float32)
        return float(x[0]) * (weights.sum() + np.ma.array([1, 2], float, mask=[True, False]).sum())

    assert grad(both)(X).tolist() == [4.0, 0.0]
    assert grad(lambda x: float(np.ma.masked_array(x, [False, False]).sum()))(X).tolist() == [1.0, 1.0]


def test_polynomial_object_is_evaluated():
    points = np.arange(3.0)
    check_grads(lambda x: np.polyval(np.poly1d(x), points) @ np.polyval(np.poly1d(x).deriv(), points), (X,), order=2)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * np.asarray(x)


class Holding:
    """Class that holds objects, arrays and containers of objects and arrays."""

    weights = np.array([1.0, 2.0])
    scaled = Scaled(3.0)
    table: ClassVar = {"a": Scaled(2.0)}
    rows: ClassVar = [np.array([3.0, 1.0])]

    def of_object(self, x):
        return self.weights.dot(x) + self.scaled(x).sum() + Holding.table["a"](x).sum() + self.rows[0].dot(x)

    @classmethod
    def of_class(cls, x):
        made = np.zeros(2)
        made[:] = x
        return cls.weights.dot(made)


class Shadowing(Holding):
    def __init__(self):
        self.scaled = Scaled(5.0)

    def own(self, x):
        return self.scaled(x).sum()


def test_class_attributes_are_rebuilt():
    held, x = Holding(), np.ones(2)
    np.testing.assert_array_equal(grad(held.of_object)(x), [9.0, 8.0])
    np.testing.assert_array_equal(grad(Holding.of_class)(x), [1.0, 2.0])
    np.testing.assert_array_equal(grad(Shadowing().own)(x), [5.0, 5.0])
    np.testing.assert_array_equal(grad(lambda x: Shadowing().own(x))(x), [5.0, 5.0])
    np.testing.assert_array_equal(vmap(grad(held.of_object))(np.stack([x, -x])), [[9.0, 8.0]] * 2)
    assert vars(held) == {}
    assert type(Holding.weights) is np.ndarray
    assert type(Holding.scaled) is Scaled
    Holding.scaled = Scaled(4.0)
    try:
        np.testing.assert_array_equal(grad(held.of_object)(x), [10.0, 9.0])
    finally:
        Holding.scaled = Scaled(3.0)


def test_branch_in_batch_is_tried_twice():
    runs = []

    def f(x):
        runs.append(1)
        return x if x > 0 else -x

    with pytest.raises(ConcretizationError, match="one value was asked for"):
        vmap(f)(np.array([1.0, -1.0]))
    assert len(runs) == 2


def test_user_operation_in_rebuilt_function_keeps_rule():
    steep = elementwise("sin", dx=lambda x: 3.0 * np.cos(x))
    other = elementwise("steep", lambda xp, x: np.sin(x), dx=lambda x: 3.0 * np.cos(x))
    for f in (steep, other):
        assert grad(f)(0.0) == grad(from_numpy(f))(0.0) == grad(from_numpy(lambda x, f=f: f(x)))(0.0) == 3.0


NUMBERS = {
    "float": lambda x: float(x),
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "item of some": lambda x: np.stack([x, x]).item(1),
    "float64": lambda x: np.float64(x),
    "float32": lambda x: np.float32(x),
    "complex": lambda x: complex(x).real,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_item_of_zero_dimensional_array_is_scalar(name):
    def f(x):
        number = NUMBERS[name](np.asarray(math.sin(x[0])).reshape(()))
        seen.append((type(number) is np.ndarray, isinstance(number, np.ndarray), isinstance(number, float)))
        return number * 2.0

    seen, kinds = [], []
    for run in (f, grad(f), lambda x: jvp(f, (x,), (x,)), lambda x: grad(lambda t: grad(f)(x * t)[0])(1.0)):
        run(np.array([0.7]))
        kinds.append(seen[-1])
    assert len(set(kinds)) == 1
    assert grad(f)(np.array([0.7]))[0] == pytest.approx(2 * np.cos(0.7))


def test_type_and_isinstance_of_zero_dimensional_arrays():
    def f(x):
        y = x.reshape(())
        seen.append((type(y), isinstance(y, np.ndarray), isinstance(y, float)))
        return math.sin(float(y))

    seen = []
    f(np.array([0.5]))
    grad(f)(np.array([0.5]))
    assert seen[-1] == seen[0] == (np.ndarray, True, False)


def test_numpy_integer_conversions_in_batch():
    def f(x):
        kind = np.int32
        return math.sin(x) * np.int64(x) + kind(2 * x)

    x = np.array([1.5, 2.5])
    np.testing.assert_allclose(vmap(f)(x), [f(one) for one in x])
    np.testing.assert_allclose(vmap(grad(f))(x), np.cos(x) * np.floor(x))


def test_batched_index_of_constant_booleans():
    table = np.array([[True, False], [False, False], [True, True]])

    class Holder:
        def __init__(self):
            self.table = table

        def row(self, i):
            return self.table[i]

    for f in (lambda i: table[i], lambda i: table[i, 1:] & True, Holder().row):
        np.testing.assert_array_equal(vmap(f)(np.array([2, 0])), [f(2), f(0)])
    holes = vmap(grad(lambda x, i: np.where(table[i], x, 0.0).sum()))(np.ones((2, 2)), np.array([2, 0]))
    np.testing.assert_array_equal(holes, [[1, 1], [1, 0]])


def test_percent_format_of_batch():
    def f(x):
        texts.append("%.1f of %d" % (math.exp(x), 3))  # noqa: UP031
        return x

    texts = []
    vmap(f)(np.zeros(4) + np.arange(4.0))
    assert texts[-1] == "1.0 of 3 | 2.7 of 3 | 7.4 of 3 | ..."

    def by_name(x):
        texts.append("%(x).1f of %(n)d" % {"x": math.exp(x), "n": 3})  # noqa: UP031
        return x

    vmap(by_name)(np.arange(2.0))
    assert texts[-1] == "1.0 of 3 | 2.7 of 3"


def test_percent_formats_that_a_program_composes():
    def f(x):
        texts.append(("x =" + len(x) * " %.2f" + " %d") % (*x, 3))
        texts.append(("%6.1f" * len(x)) % tuple(x))
        log.debug("%.2e" + ":" * len(x), x[1])
        return math.sin(x[0]) * float("2.5")

    texts, log = [], logging.getLogger("composed")
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    np.testing.assert_allclose(grad(f)(X), [2.5 * math.cos(0.5), 0.0], rtol=1e-15)
    assert texts[-3:] == ["x = 0.50 1.50 3", "   0.5   1.5", "1.50e+00::"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(("%.3f" + "0" * len(x)) % x[0]) * x[1],
        lambda x: float((("%.3e," * len(x)) % tuple(x)).split(",")[1]) * x[1],
        lambda x: float("%(x).2f" % {"x": x[0]}) * x[1],  # noqa: UP031
    ],
    ids=["composed", "repeated", "by_name"],
)
def test_numbers_read_from_percent_formats_raise(f):
    with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number"):
        grad(f)(X)


def by_iterable(x):
    return sum(by_iterable(one) for one in x) if isinstance(x, (list, Iterable)) else x * x


def by_sized(x):
    return np.sum(np.asarray(x) ** 2) if isinstance(x, Sized) else math.pow(x, 2)


def by_attribute(x):
    return sum(by_attribute(one) for one in x) if hasattr(x, "__iter__") else x * x


def by_trial(x):
    try:
        parts = iter(x)
    except TypeError:
        return x * x
    return sum(one * one for one in parts)


@pytest.mark.parametrize("f", [by_iterable, by_sized, by_attribute, by_trial])
def test_programs_that_test_for_iterables(f):
    for x in (1.5, np.float64(1.5)):
        assert value_and_grad(f)(x) == (2.25, 3.0)
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(grad(f)(x), 2 * x)
    np.testing.assert_array_equal(vmap(grad(f))(x), 2 * x)
    np.testing.assert_array_equal(vmap(f)(np.stack([x, x])), [5.0, 5.0])


def test_python_number_has_no_array_attributes():
    def f(x):
        seen.append([hasattr(x, name) for name in ("shape", "dtype", "__len__", "__getitem__", "is_integer")])
        return math.sin(x)

    seen = []
    f(0.5)
    grad(f)(0.5)
    assert seen[-1] == seen[0]


def test_iteration_over_number_raises():
    with pytest.raises(TypeError, match="a number has no elements"):
        grad(lambda x: sum(x))(0.5)
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        grad(lambda x: sum(x))(np.array(0.5))


def test_is_integer_of_tracer():
    f = lambda x: x**2 if x.is_integer() else 3.0 * x
    assert [grad(f)(x) for x in (2.0, 2.5, np.float64(-1.0))] == [4.0, 3.0, -2.0]
    np.testing.assert_array_equal(vmap(grad(f))(np.array([2.0, 3.0])), [4.0, 6.0])


class _Wave:
    def __init__(self, x):
        self.parts = [math.sin(x)]

    @classmethod
    def twice(cls, x):
        return cls(2.0 * math.sin(x))

    @property
    def last(self):
        return self.parts[-1]


class _Louder(_Wave):
    def __init__(self, x):
        super(_Louder, self).__init__(x)  # noqa: UP008
        self.parts.append(3.0 * self.parts[-1])

    @classmethod
    def twice(cls, x):
        return super(_Louder, cls).twice(x + 1.0)  # noqa: UP008

    @property
    def last(self):
        return 1.0 + super(_Louder, self).last  # noqa: UP008


class _Loudest(_Louder):
    def __init__(self, x):
        super(__class__, self).__init__(x)  # noqa: UP008
        self.parts.append(5.0 * self.parts[-1])


def test_methods_with_explicit_super_run_once():
    def loud(x):
        wave = _Loudest(x)
        return sum(wave.parts) * wave.last + _Louder.twice(x).last

    def local(x):
        class Slow(_Louder):
            def __init__(self, x):
                super(Slow, self).__init__(math.exp(x))  # noqa: UP008

        return Slow(x).last

    for f in (loud, local):
        value, slope = value_and_grad(f)(0.7)
        np.testing.assert_allclose(value, f(0.7))
        np.testing.assert_allclose(slope, (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rtol=1e-8)


class _Chooses:
    def __init__(self, factor):
        self.factor, self.found = factor, 0.0
        self.value = self.fast  # an attribute that hides the method of this name

    def value(self, x):
        return x

    def fast(self, x):
        self.found = math.sin(self.factor * x)
        return self.found

    def both(self, x):
        return self.value(x) + 2.0 * self.found


def test_instance_attribute_replaces_method():
    chooses = _Chooses(2.0)

    def found(x):
        chooses.value(x)
        return chooses.found

    for f, count in ((chooses.value, 1), (chooses.both, 3), (found, 1), (lambda x: chooses.both(x), 3)):
        np.testing.assert_allclose(grad(f)(0.7), count * 2.0 * math.cos(1.4))


def test_explicit_call_of_dunder_array_keeps_derivative():
    def squares(x):
        rows = [np.asarray(x).__array__(), x.__array__()]
        return np.sum(rows[0] * rows[1]) + np.sum(np.eye(2).__array__().dot(x))

    np.testing.assert_allclose(grad(squares)(np.array([1.0, 2.0])), [3.0, 5.0])

    def mean_of_a_masked_array(x):
        return np.ma.masked_invalid(x.__array__().mean() * x).sum()

    np.testing.assert_allclose(grad(mean_of_a_masked_array)(np.array([1.0, 2.0])), [3.0, 3.0])


def test_statsmodels_regression_has_derivatives():
    regression = importlib.import_module("statsmodels.regression.linear_model")
    table = np.column_stack([np.ones(9), np.arange(9.0), np.cos(np.arange(9.0))])

    def told(y):
        fit = regression.OLS(y, table).fit()
        return fit.params @ [1.0, 2.0, 3.0] + fit.rsquared + np.sum(fit.bse)

    y = np.sin(np.arange(9.0))
    np.testing.assert_allclose(grad(told)(y), differences(told, y), rtol=1e-6)


def test_functions_of_exec_are_freed():
    """A rebuilt function refers to the original and to its namespace, which only a cache of limited size may keep."""
    text = "def f(x):\n    z = np.zeros(2); z[0] = x\n    return z.sum() * data[0]"
    alive = []
    for _ in range(300):
        names = {"np": np, "data": np.ones(3)}
        exec(text, names)
        assert grad(names["f"])(1.0) == 1.0
        alive.append(weakref.ref(names["f"]))
    del names
    gc.collect()
    assert sum(f() is not None for f in alive) < 150


def test_as_written_in_several_threads():
    barrier = threading.Barrier(4)

    @as_written()
    def work():
        barrier.wait(60)
        with pytest.raises(ConversionError):
            grad(math.sin)(0.0)
        barrier.wait(60)
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(run.result() for run in [pool.submit(work) for _ in range(4)])
    assert grad(math.sin)(0.0) == 1.0


def test_as_written_ended_inside_a_run():
    def f(x):
        with as_written(), pytest.raises(ConversionError):
            grad(lambda y: math.sin(y))(0.5)
        return grad(lambda y: math.sin(y))(0.5) * x

    assert grad(f)(2.0) == pytest.approx(math.cos(0.5))


def test_modules_that_refuse_unknown_names():
    """Some modules define `__getattr__`, which warns of old names; nothing looks up names that the program does not."""
    module = types.ModuleType("with_old_names")

    def refuse(name):
        raise DeprecationWarning(name)

    module.at, module.__getattr__ = math.sin, refuse
    scope = {"module": module}
    exec("def f(x):\n    return module.at(x) + float(x)", scope)
    assert grad(scope["f"])(0.0) == 2.0
