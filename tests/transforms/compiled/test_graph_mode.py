"""``jit(f, backend="numpy")``: recorded programs of NumPy calls, which equal the function bit for bit."""

import collections.abc
import functools
import itertools
import pickle
import subprocess
import sys
import threading
import tracemalloc
import types
import warnings
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse
from fuzz.generating import generate
from fuzz.recorded import difference, examine, examine_inside
from helpers import close
from operations import cases
from toolz import compose_left

import funcgrad
import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    checkpoint_chain,
    checkpoint_name,
    checkpoint_policies,
    control,
    custom_jvp,
    custom_vjp,
    debug_nans,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    no_grad,
    profile,
    scan,
    stop_gradient,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import EagerWarning, InputError
from funcgrad.extend import elementwise
from funcgrad.transforms import transposing
from funcgrad.transforms.compiled import agreeing
from funcgrad.transforms.compiled.plain import MATH, has_same_bits

X = np.array([0.3, -1.2, 2.5])
ROWS = cases.rows()


def recorded(fun, **options):
    return jit(fun, backend="numpy", **options)


def agrees(fun, *points, **options):
    """Check that ``fun`` and its recording give equal bits at these points, twice; return the recording."""
    fast = recorded(fun, **options)
    expected = {}  # the function is repeatable, and slower than its program
    for i, point in [*enumerate(points)] * 2:
        args = point if isinstance(point, tuple) else (point,)
        if i not in expected:
            expected[i] = fun(*args)
        assert not difference(fast(*args), expected[i])
        assert not difference(fast._fast_call(args, {}), expected[i])  # on errors the function would run
    return fast


def variants(fast):
    return sum(len(entry.variants) for entry in fast._entries.values())


# ---- recordings ------------------------------------------------------------------------------------------------------


def test_later_calls_do_not_run_the_function(tmp_path):
    path = tmp_path / "calls"

    def f(x):
        with path.open("a") as file:  # a counter in memory would be a value that the function closes over
            file.write(".")
        return fnp.sum(fnp.sin(x) * x)

    fast = recorded(f)
    fast(X)
    before = path.read_text()
    assert fast(X * 2) == np.sum(np.sin(X * 2) * (X * 2))
    assert before == path.read_text() == ".."


def test_each_argument_signature_has_own_program():
    fast = agrees(grad(lambda x: fnp.sum(x**2)), X, np.ones((2, 3)), np.ones(3, np.float32), np.ones((3, 2)).T, 2.0)
    assert len(fast._entries) == 5


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.float32(2.0), np.array(2.0), 2, True, 1 + 2j, np.int64(3)])
def test_result_types_are_kept(x):
    for fun in (lambda x: x, lambda x: x * 2, lambda x: x / 4 + x, lambda x: -x, lambda x: fnp.sin(x) * x, abs):
        agrees(fun, x)


def test_branches_are_checked():
    def f(x):
        if x[0] > 0:
            return fnp.sum(x**2)
        return fnp.sum(fnp.exp(x))

    fast = agrees(value_and_grad(f), X, -X, X * 2, -X * 2)
    assert variants(fast) == 2
    assert "raise PathChanged" in fast.source


def test_loop_with_tolerance():
    def f(x):
        steps = 0
        while fnp.sum(x * x) > 1e-3:
            x, steps = x * 0.5, steps + 1
        return fnp.sum(x), steps

    fast = agrees(f, X, X * 4, X / 100, X)
    assert variants(fast) == 3


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x * float(x[0]),
        lambda x: x * x[0].item(),
        lambda x: x[x > 0.5],
        lambda x: x[int(fnp.argmax(x)) :],
        lambda x: x[fnp.argsort(x)[0]],
        lambda x: fnp.sum(x) * len(x.tolist()) + sum(x.tolist()),
        lambda x: x * (3.0 if bool(fnp.any(x > 2)) else 1.0),
        lambda x: fnp.zeros(int(abs(x[2]))) + x[0],
        lambda x: fnp.nonzero(x > 0)[0],
        lambda x: np.asarray(x) * 2,
    ],
)
def test_python_conversions_of_values(look):
    agrees(look, X, X * 2, -X, X[::-1].copy(), X * 0.1)


def test_too_many_branches_run_eagerly():
    def f(x):
        return x * int(x)

    fast = recorded(f)
    for i in range(16):
        assert fast(i + 0.5) == f(i + 0.5)
    with pytest.warns(EagerWarning, match="16 different branches"):
        assert fast(100.5) == f(100.5)
    assert fast(101.5) == f(101.5)


def test_static_arguments():
    def f(x, n, how="up"):
        for _ in range(n):
            x = x * 2 if how == "up" else x / 2
        return x

    fast = recorded(f, static_argnums=1, static_argnames="how")
    for n in (0, 1, 3):
        assert not difference(fast(X, n, how="down"), f(X, n, how="down"))
        assert not difference(fast(X, n), f(X, n))
    with pytest.raises(InputError, match="must be hashable"):
        fast(X, [1])


def test_derivatives_for_many_static_arguments():
    """Above 64 values of static arguments, the function runs as it is written."""
    f = lambda x, n: fnp.sum(fnp.sin(x) ** n)
    fast = recorded(f, static_argnums=1)
    for n in (*range(1, 68), 2, 67):
        assert not difference(fast(X, n), f(X, n))
        close(grad(fast)(X, n), grad(f)(X, n))
    close(hessian(fast)(X, 3), hessian(f)(X, 3))


OTHER_CONTAINERS = {
    "ordered dictionary": (lambda p: collections.OrderedDict(a=p["a"] * 2.0), collections.OrderedDict(a=X)),
    "dictionary with a default": (lambda p: p["a"] * 2.0, collections.defaultdict(float, a=X)),
    "queue": (lambda p: collections.deque([p[0] * 2.0]), collections.deque([X])),
    "numbers as keys": (lambda p: {2: p[1] * 2.0, 1: p["a"]}, {1: X, "a": X + 1.0}),
    "nothing beside": (lambda p: p[0] * 2.0 if p[1] is None else p[1] * p[0], (X, None)),
}


@pytest.mark.parametrize("name", OTHER_CONTAINERS)
def test_containers_without_a_fast_path(name):
    fun, value = OTHER_CONTAINERS[name]
    fast = recorded(fun)
    for scale in (1.0, 2.0, 3.0):
        given = tree.map(lambda x, scale=scale: x * scale, value)
        assert not difference(fast(given), fun(given))
    if name == "nothing beside":
        assert not difference(fast((X, X + 1.0)), fun((X, X + 1.0)))


def test_functions_that_are_not_hashable_run_as_they_are_written():
    class Tripled:
        __hash__ = None

        def __call__(self, x):
            return x * 3.0

    fun = lambda f, x: f(x) * 2.0
    with pytest.warns(EagerWarning, match="not hashable"):
        assert not difference(recorded(fun)(Tripled(), X), fun(Tripled(), X))


def test_errors_that_the_function_catches_are_a_path():
    def f(x):
        try:
            return fnp.sum(fnp.linalg.cholesky(fnp.diag(x)))
        except np.linalg.LinAlgError:
            return fnp.sum(x) ** 2

    fast = recorded(f)
    for x in (X, np.abs(X), X - 1.0, 2.0 * np.abs(X)):
        assert not difference(fast(x), f(x))


def test_integers_and_strings_are_part_of_signature():
    fast = agrees(
        lambda x, n, how: x**n if how == "power" else x * n, (X, 2, "power"), (X, 3, "power"), (X, 2, "times")
    )
    assert len(fast._entries) == 3


def test_too_many_signatures():
    fast = recorded(lambda x, n: x * n)
    for n in range(64):
        fast(X, n)
    with pytest.warns(EagerWarning, match="64 forms"):
        assert not difference(fast(X, 64), X * 64)
    assert not difference(fast(X, 65), X * 65)


def test_containers_and_keywords():
    def loss(params, x, *rest, scale=1.0, shift=None):
        out = fnp.tanh(x @ params["w"] + params["b"][0])
        return {"loss": fnp.mean(out**2) * scale, "parts": [out, (rest, shift)]}

    params = {"w": np.ones((3, 2)), "b": (np.zeros(2),)}
    fast = recorded(loss)
    for args, kwargs in [
        ((params, X), {}),
        ((params, X, X), {"scale": 2.0}),
        ((params, X), {"shift": X, "scale": 3.0}),
    ]:
        for _ in range(2):
            assert not difference(fast(*args, **kwargs), loss(*args, **kwargs))


# ---- closures --------------------------------------------------------------------------------------------------------


def test_closed_over_arrays_are_read_at_each_call():
    m, other = np.ones((3, 3)), np.arange(3.0)
    fast = recorded(grad(lambda x: (m * 2).sum() * fnp.sum(x * other) + fnp.sum(m @ x)))
    slow = grad(lambda x: (m * 2).sum() * fnp.sum(x * other) + fnp.sum(m @ x))
    for change in (lambda: None, lambda: m.fill(2), lambda: other.fill(3), lambda: m.__setitem__((0, 0), 7.0)):
        change()
        for _ in range(2):
            assert not difference(fast(X), slow(X))


def test_closed_over_names_may_be_rebound():
    scale, table = 2.0, {"shift": np.ones(3)}

    def f(x):
        return x * scale + table["shift"]

    fast = recorded(f)
    assert not difference(fast(X), f(X))
    scale = 3.0
    assert not difference(fast(X), f(X))
    table["shift"] = np.zeros(3)
    assert not difference(fast(X), f(X))
    table["more"] = 1
    assert not difference(fast(X), f(X))


SCALE = np.array([1.0, 2.0, 3.0])


def of_global(x):
    return fnp.sum(x * SCALE)


class Model:
    def __init__(self):
        self.w = np.ones(3)

    def __call__(self, x):
        return self.inner(x) * 2

    def inner(self, x):
        return fnp.tanh(x) * self.w


def test_globals_methods_and_partials(monkeypatch):
    model = Model()
    funs = [of_global, model, model.inner, partial(model.inner), compose_left(model, fnp.sum), lambda x: model(x) + 1]
    fasts = [recorded(fun) for fun in funs]
    for change in (lambda: None, lambda: SCALE.__imul__(2), lambda: model.w.fill(5), lambda: setattr(model, "w", X)):
        change()
        for fun, fast in zip(funs, fasts, strict=True):
            for _ in range(2):
                assert not difference(fast(X), fun(X))
    monkeypatch.setattr(sys.modules[__name__], "SCALE", X)
    assert not difference(fasts[0](X), of_global(X))


_CLASS = "class C:\n    k = 2.0\n    def get(self): return self.k\nc = C()"
_MEMBER = "rate = 2.0\nclass C:\n    {}\n    def get(self): return rate\nc = C()"
#: What a function reads, how, and a change of it.
CHANGES = {
    "namespace": ("c = types.SimpleNamespace(k=2.0)", "c.k", "c.k = 3.0"),
    "array in a namespace": ("c = types.SimpleNamespace(k=np.ones(2))", "c.k[0]", "c.k[0] = 3.0"),
    "ordered dictionary": ("c = collections.OrderedDict(k=2.0)", "c['k']", "c['k'] = 3.0"),
    "dictionary with defaults": ("c = collections.defaultdict(float, k=2.0)", "c['k']", "c['k'] = 3.0"),
    "user dictionary": ("c = collections.UserDict(k=2.0)", "c['k']", "c['k'] = 3.0"),
    "chain of dictionaries": ("c = collections.ChainMap({'k': 2.0})", "c['k']", "c['k'] = 3.0"),
    "proxy of a dictionary": ("d = {'k': 2.0}; c = types.MappingProxyType(d)", "c['k']", "d['k'] = 3.0"),
    "dictionary of a class": ("class C(dict): pass\nc = C(k=2.0)", "c['k']", "c['k'] = 3.0"),
    "list of a class": ("class C(list): pass\nc = C([2.0])", "c[0]", "c[0] = 3.0"),
    "set": ("c = {2.0}", "sum(c)", "c.add(3.0)"),
    "deque": ("c = collections.deque([2.0])", "c[0]", "c[0] = 3.0"),
    "attribute of a function": ("def c(): pass\nc.k = 2.0", "c.k", "c.k = 3.0"),
    "keywords of a partial": ("c = functools.partial(dict, k=2.0)", "c()['k']", "c.keywords['k'] = 3.0"),
    "default that is a keyword": ("def c(*, k=2.0): return k", "c()", "c.__kwdefaults__['k'] = 3.0"),
    "defaults": ("def c(k=2.0): return k", "c()", "c.__defaults__ = (3.0,)"),
    "defaults that are keywords": ("def c(*, k=2.0): return k", "c()", "c.__kwdefaults__ = {'k': 3.0}"),
    "code": ("def c(): return 2.0", "c()", "c.__code__ = (lambda: 3.0).__code__"),
    "bases": (
        "class A:\n    k = 2.0\nclass B:\n    k = 3.0\nclass C(A):\n    def get(self): return self.k\nc = C()",
        "c.get()",
        "C.__bases__ = (B,)",
    ),
    "attribute of a class": (_CLASS, "C.k", "C.k = 3.0"),
    "attribute of a class by its name": (_CLASS, "getattr(C, 'k')", "C.k = 3.0"),
    "attribute of a class, by an object": (_CLASS, "c.get()", "C.k = 3.0"),
    "attribute that hides that of the class": (_CLASS, "c.get()", "c.k = 3.0"),
    "method": (_CLASS, "c.get()", "C.get = lambda self: 3.0"),
    "method that hides that of the base": (
        _CLASS + "\nclass D(C): pass\nd = D()",
        "d.get()",
        "D.get = lambda self: 3.0",
    ),
    "class of an object": (_CLASS + "\nclass D(C):\n    k = 3.0", "c.get()", "c.__class__ = D"),
    "name in a property": (_MEMBER.format("@property"), "c.get", "rate = 3.0"),
    "name in a class method": (_MEMBER.format("@classmethod"), "C.get()", "rate = 3.0"),
    "name in a constructor": ("rate = 2.0\nclass C:\n    def __init__(self): self.k = rate", "C().k", "rate = 3.0"),
    "name in an operator": ("rate = 2.0\nclass C:\n    def __len__(self): return int(rate)", "len(C())", "rate = 3.0"),
    "method of a metaclass": (
        "class M(type):\n    def get(cls): return 2.0\nclass C(metaclass=M): pass",
        "C.get()",
        "M.get = lambda cls: 3.0",
    ),
    "descriptor": (
        "class D:\n    k = 2.0\n    def __get__(self, *of): return self.k\nclass C: get = D()",
        "C().get",
        "vars(C)['get'].k = 3.0",
    ),
    "module that another function names": (
        "m = types.ModuleType('m'); m.k = 2.0\ndef get(): return m.k\ndef other(): return get()",
        "(m is not None) * other()",
        "m.k = 3.0",
    ),
    "built-in name": ("", "abs(-2.0)", "abs = lambda x: 3.0"),
    "name in a text": ("rate = 2.0; text = 'rate'", "eval(text)", "rate = 3.0"),
    "object in a cache": (_CLASS + "\n@functools.cache\ndef get(): return C()", "get().k", "get().k = 3.0"),
    "dictionary in a cache": ("@functools.lru_cache\ndef get(): return {'k': 2.0}", "get()['k']", "get()['k'] = 3.0"),
    "cache that is emptied": (
        "rate = 2.0\n@functools.cache\ndef get(): return rate",
        "get()",
        "rate = 3.0; get.cache_clear(); get()",
    ),
    "context variable": ("c = contextvars.ContextVar('c', default=2.0)", "c.get()", "c.set(3.0)"),
    "variable of a thread": ("c = threading.local(); c.k = 2.0", "c.k", "c.k = 3.0"),
    "object that is referenced weakly": (_CLASS + "\nr = weakref.ref(c)", "r().k", "c.k = 3.0"),
    "polynomial": ("c = np.poly1d([1.0, 2.0])", "c(1.0)", "c[0] = 5.0"),
    "polynomial that gets other numbers": (
        "c = np.polynomial.Polynomial([1.0, 2.0])",
        "c(1.0)",
        "c.coef = np.array([3.0, 4.0])",
    ),
    "sparse matrix": (
        "import scipy.sparse\nc = scipy.sparse.csr_array(np.eye(2))",
        "c.sum()",
        "c.data = np.array([3.0, 4.0])",
    ),
    "series": ("import pandas\nc = pandas.Series([1.0, 2.0])", "c.sum()", "c.iloc[0] = 5.0"),
    "column of a table": ("import pandas\nc = pandas.DataFrame({'a': [1.0, 2.0]})", "c['a'].sum()", "c['a'] = 3.0"),
    "model": (
        "from sklearn.linear_model import LinearRegression\nrows = np.arange(4.0)[:, None]\n"
        "c = LinearRegression().fit(rows, rows[:, 0])",
        "c.predict(rows).sum()",
        "c.fit(rows, 2.0 * rows[:, 0])",
    ),
    "masked array": ("c = np.ma.array([1.0, 2.0])", "c.sum()", "c[0] = np.ma.masked"),
    "class that is registered": (
        "import abc\nclass A(abc.ABC): pass\nclass C: pass",
        "issubclass(C, A) + 1.0",
        "A.register(C)",
    ),
    "names that a module makes": (
        "m = types.ModuleType('m'); m.__getattr__ = lambda name: 2.0",
        "m.k",
        "m.__getattr__ = lambda name: 3.0",
    ),
    "name that a module gets": ("m = types.ModuleType('m'); m.__getattr__ = lambda name: 2.0", "m.k", "m.k = 3.0"),
    "ufunc of a function": ("rate = 2.0\nc = np.frompyfunc(lambda n: n * rate, 1, 1)", "c(1.0)", "rate = 3.0"),
    "another function of numbers": ("c = np.vectorize(lambda n: n)", "float(c(2.0))", "c.pyfunc = lambda n: 3.0"),
    "function of numbers in funcgrad": ("rate = 2.0\nc = fnp.vectorize(lambda n: n * rate)", "c(1.0)", "rate = 3.0"),
    "function of numbers": ("rate = 2.0\nc = np.vectorize(lambda n: n * rate)", "float(c(1.0))", "rate = 3.0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_what_a_function_reads(name):
    definition, expression, change = CHANGES[name]
    module = types.ModuleType("changing")
    imports = "import collections, contextvars, functools, threading, types, weakref\n"
    imports += "import numpy as np\nimport funcgrad.numpy as fnp\n"
    exec(f"{imports}{definition}\ndef f(x):\n    return np.sin(x) * {expression}", vars(module))
    fast, slope = recorded(module.f), recorded(grad(module.f))
    for _ in range(2):
        assert fast(0.5) == module.f(0.5)
        assert slope(0.5) == grad(module.f)(0.5)
    before = module.f(0.5)
    exec(change, vars(module))
    assert module.f(0.5) != before
    assert fast(0.5) == module.f(0.5)
    assert slope(0.5) == grad(module.f)(0.5)


def test_results_that_a_first_call_keeps_do_not_prevent_a_program():
    class Kept:
        data = np.arange(3.0)

        @functools.cached_property
        def basis(self):
            return self.data * 2.0

        def lazy(self):
            if not hasattr(self, "found"):
                self.found = self.data + 1.0
            return self.found

    kept = Kept()
    fast = recorded(lambda x: fnp.sum(x * kept.basis * kept.lazy()))
    for change in (lambda: None, lambda: kept.basis.fill(1.0), lambda: setattr(kept, "found", X)):
        change()
        for _ in range(2):
            assert fast(X) == fnp.sum(X * kept.basis * kept.lazy())
    assert fast.report().variants


def test_deleted_global_name(monkeypatch):
    fast = recorded(of_global)
    fast(X)
    monkeypatch.delattr(sys.modules[__name__], "SCALE")
    for _ in range(2):
        with pytest.raises(NameError):
            fast(X)


def test_array_written_between_two_uses():
    def f(x):
        table = np.ones(3)
        first = x * table
        table[0] = 5.0
        return first + x * table

    agrees(f, X, X * 2)


def test_large_closures_run_eagerly():
    table = [float(i) for i in range(10_000)]
    fast = recorded(lambda x: x * table[3])
    with pytest.warns(EagerWarning, match="thousands of values"):
        assert not difference(fast(X), X * 3.0)
    table[3] = 4.0
    assert not difference(fast(X), X * 4.0)


def test_recorded_function_pickles():
    fast = pickle.loads(pickle.dumps(recorded(of_global)))
    assert fast(X) == fast(X) == of_global(X)


def test_changed_state_runs_eagerly():
    state = [0.0]

    def f(x):
        state[0] += 1
        return x + state[0]

    fast = recorded(f)
    with pytest.warns(EagerWarning, match="closes over|a state"):
        assert not difference(fast(X), X + 1.0)
    assert fast(X)[0] + 1 == fast(X)[0]


def test_random_numbers_run_eagerly():
    rng = np.random.default_rng(0)
    fast = recorded(lambda x: x + rng.standard_normal(3))
    with pytest.warns(EagerWarning, match="draws random numbers"):
        one = fast(X)
    assert difference(fast(X), one)


# ---- results, errors, warnings ---------------------------------------------------------------------------------------


def test_results_own_their_memory():
    fast = recorded(lambda x, y: (x, x[1:], x.T, (x * y)[::2], y * 2, SCALE, fnp.sum(x * y)))
    x, y = X.copy(), np.ones(3)
    fast(x, y)
    results = fast(x, y)
    before = [np.array(r) for r in results]
    x[:], y[:] = 9.0, 8.0
    fast(x, y)
    for r, b in zip(results, before, strict=True):
        assert (np.asarray(r) == b).all()
    for r in results[:-1]:
        r[...] = 100.0
    assert not (SCALE == 100.0).any()


def test_one_array_returned_twice():
    fast = recorded(lambda x: (y := x * 2, y))
    fast(X)
    a, b = fast(X)
    a[0] = 7.0
    assert b[0] == X[0] * 2


@pytest.mark.parametrize("x", [0.0, -1.0, np.float64(0.0), np.zeros(2), 1e308])
@pytest.mark.parametrize(
    "fun", [lambda x: 1 / x, fnp.log, lambda x: x * 10, lambda x: x**-1, grad(lambda x: fnp.sum(1 / x))]
)
def test_errors_and_warnings_match_function(fun, x):
    def heard(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                result = call(x)
            except ArithmeticError as error:
                result = (type(error), str(error))
        return result, {str(w.message).partition(" in ")[0] for w in found}  # the name of NumPy's function follows

    fast = recorded(fun)
    fast(x * 0 + 2.0)  # this records the program for arguments without warnings
    (found, said), (expected, should) = heard(fast), heard(fun)
    assert found == expected if isinstance(expected, tuple) else not difference(found, expected)
    assert said == should


PLAIN = {
    "a chain": lambda x: x * 0.5 + fnp.sin(x) - x * x,
    "its gradient": grad(lambda x: fnp.sin(x * x) * x - fnp.cos(x)),
    "hidden": lambda x: fnp.tanh(x * x) + fnp.exp(-(x * x)),
    "beside an array": lambda x: fnp.sum(X * (x * 2.0)) + x,
    "beside single precision": lambda x: np.ones(2, np.float32) * (x * 2.0),
    "a question": lambda x: x * 2 if x * x > 1 else fnp.sin(x) * 3,
    "two results, one twice": lambda x: (x * 3, x * 3, [x, x + 1]),
    "of an array": lambda x: fnp.sum(x * X) * 2.0 - 1.0,
    "powers and quotients": lambda x: (x * x + 1.0) ** 2 / (x * 2.0 + 0.1) + abs(x) ** 0.5,
    "other types": lambda x: (x * 2 > 1, fnp.float32(1.5) * x, x * (1 + 2j), 3 * x, x + True),
}


@pytest.mark.parametrize("fun", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize("number", [np.float64, float])
def test_numbers_computed_with_python_floats(fun, number):
    """Check that bits, types and warnings are NumPy's."""
    points = [number(x) for x in (0.3, -1.7, 2.5, 1e-300, -0.0)]
    agrees(fun, *points)
    fast = recorded(fun)
    fast(number(0.4))
    for x in map(number, (1e200, -1e308, np.inf, np.nan)):
        with warnings.catch_warnings(record=True) as expected:
            warnings.simplefilter("always")
            theirs = fun(x)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ours = fast(x)
        assert not difference(ours, theirs)
        said = {str(w.message) for w in found if w.category is RuntimeWarning}
        assert said == {str(w.message) for w in expected}
        with np.errstate(all="raise", under="ignore"):
            if expected:
                with pytest.raises((FloatingPointError, OverflowError)):
                    fast(x)


def test_program_recorded_at_nan():
    for fun in (lambda x: x * 2 - x, grad(lambda x: fnp.sin(x) * x)):
        fast = recorded(fun)
        with np.errstate(all="ignore"):
            assert np.isnan(fast(np.float64(np.nan)))
            assert np.isnan(fast(np.float64(np.nan)))
        assert fast(np.float64(0.3)) == fun(np.float64(0.3))
        assert len(fast.report().variants) == 1
        assert not fast.report().eager


def test_math_functions_used_where_bitwise_equal():
    assert has_same_bits("sqrt")
    for name in ("sin", "cos"):
        ours = getattr(fnp, name)
        fun = grad(grad(lambda x, f=ours: f(x * x) * x))
        fast = agrees(fun, *[np.float64(x) for x in random_numbers(200) * 10.0 ** np.arange(-6, 4).repeat(20)])
        assert (f"math_{name}(" in fast.source) == has_same_bits(name)
    for name in ("tanh", "exp", "log", "arctan"):  # NumPy has implementations of its own on many machines
        tried = np.abs(random_numbers(5_000))
        alike = [getattr(np, name)(x) == MATH[name](x) for x in tried.tolist()]
        assert all(alike) or not has_same_bits(name)


def test_source_uses_python_floats():
    fast = recorded(PLAIN["its gradient"])
    fast(np.float64(0.5))
    assert "float(x)" in fast.source
    assert "raise NotFinite" in fast.source
    hidden = recorded(lambda x: fnp.tanh(x * x))
    hidden(np.float64(0.5))
    assert "float(" not in hidden.source


def test_function_errors_are_raised():
    def f(x):
        if x[0] < 0:
            raise ValueError("below zero")
        return fnp.linalg.inv(fnp.diag(x))

    fast = recorded(f)
    fast(np.ones(3))
    with pytest.raises(ValueError, match="below zero"):
        fast(-np.ones(3))
    with pytest.raises(np.linalg.LinAlgError):
        fast(np.zeros(3))
    assert not difference(fast(np.ones(3)), f(np.ones(3)))


def test_unrecordable_function_runs_eagerly():
    fast = recorded(lambda x: np.array([float(x[0]), "text" == 1]) if type(x) is np.ndarray else {}[1])
    with pytest.warns(EagerWarning, match="KeyError"):
        assert fast(X)[0] == X[0]
    assert fast(X)[0] == X[0]


@pytest.mark.parametrize("x", [np.ma.masked_array([1.0, 2.0]), np.array([None, 1.0]), np.array(["a"])])
def test_unsupported_arguments_run_eagerly(x):
    fast = recorded(lambda x: x)
    with pytest.warns(EagerWarning, match="an argument is"):
        assert repr(fast(x)) == repr(x)
    assert repr(fast(x)) == repr(x)


def test_backends():
    with pytest.raises(InputError, match="no such backend"):
        jit(fnp.sin, backend="fortran")
    with pytest.raises(InputError, match="no devices"):
        jit(fnp.sin, backend="numpy", donate_argnums=0)
    with pytest.raises(InputError, match="must be a function"):
        jit(1.0, backend="numpy")
    assert jit is funcgrad.interop.jit


def test_numpy_backend_needs_no_jax():
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import numpy as np\nfrom funcgrad import grad, jit\n"
        "fast = jit(grad(lambda x: np.sum(x * x)), backend='numpy')\n"
        "assert (fast(np.ones(2)) == 2).all() and (fast(np.ones(2)) == 2).all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- transforms ------------------------------------------------------------------------------------------------------


def network(params, x):
    for w, b in params:
        x = fnp.tanh(fnn.linear(x, w, b))
    return fnp.sum(x**2)


PARAMS = [(np.linspace(-1, 1, 12).reshape(3, 4), np.ones(4)), (np.linspace(1, -1, 8).reshape(4, 2), np.zeros(2))]


@pytest.mark.parametrize(
    "fun",
    [
        grad(network),
        value_and_grad(network, argnums=(0, 1)),
        jacrev(lambda p, x: fnp.tanh(x @ p[0][0])),
        hessian(network, argnums=1),
        lambda p, x: hvp(lambda x: network(p, x), (x,), (x * 2,)),
        lambda p, x: vmap(lambda x: grad(network)(p, x))(fnp.stack([x, 2 * x])),
        lambda p, x: jvp(lambda x: network(p, x), (x,), (x,)),
        lambda p, x: vjp(lambda x: fnp.tanh(x), x)[1](x),
        lambda p, x: linearize(lambda x: network(p, x), x)[1](x),
        grad(lambda p, x: network(p, checkpoint(fnp.sin)(x))),
        grad(lambda p, x: network(p, no_grad(fnp.sin)(x)) * stop_gradient(fnp.sum(x))),
        grad(lambda p, x: fnp.sum(grad(network, argnums=1)(p, x) ** 2)),
        lambda p, x: scan(lambda c, r: (fnp.tanh(c + r), c), x[0], x),
    ],
)
def test_transforms_inside(fun):
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    agrees(fun, (PARAMS, x), (PARAMS, -x), ([(w * 2, b + 1) for w, b in PARAMS], x))


def test_custom_rules_inside():
    @custom_vjp
    def clipped(x):
        return fnp.sin(x)

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (ct * fnp.minimum(x, 1.0),))

    @custom_jvp
    def other(x):
        return x**2

    other.defjvp(lambda primals, tangents: (other(*primals), tangents[0] * 3))
    fast = agrees(grad(lambda x: fnp.sum(clipped(x) * other(x))), X, X * 2)
    assert "custom" not in fast.source


def test_writes_inside():
    def f(x):
        y = fnp.zeros(3)
        for i in range(3):
            y[i] = x[i] ** 2
            y[1:] += y[:-1] * 0.5
        y *= 2
        return fnp.sum(y * x)

    agrees(f, X, X * 2)
    agrees(value_and_grad(f), X, X * 2)


def test_transforms_outside():
    f = lambda x: fnp.sum(fnp.sin(x) * x)
    fast = recorded(f)
    fast(X)
    for transform in (grad, hessian, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: vmap(lambda x: f(x * X))):
        assert not difference(transform(fast)(X), transform(f)(X))
    assert not difference(grad(lambda x: fast(X) * fnp.sum(x))(X), grad(lambda x: f(X) * fnp.sum(x))(X))


def counting(fun):
    """Return ``fun`` with a counter of its calls, and a function that reads the counter, hidden from the recording."""
    counter = itertools.count()

    def counted(*args, **kwargs):
        next(counter)
        return fun(*args, **kwargs)

    return counted, lambda: repr(counter)


OUTSIDE = {
    "grad": grad,
    "value_and_grad": value_and_grad,
    "hessian": hessian,
    "jacfwd": jacfwd,
    "jacrev": lambda f: jacrev(lambda x: fnp.stack([f(x), f(x * x)])),
    "hvp": lambda f: lambda x: hvp(f, (x,), (x + 1,)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](np.float64(2.0)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "vmap": lambda f: lambda x: vmap(f)(np.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: vmap(grad(f))(np.stack([x, 2 * x])),
    "grad of vmap": lambda f: grad(lambda x: fnp.sum(vmap(f)(fnp.stack([x, x * x])))),
    "third order": lambda f: grad(lambda x: fnp.sum(hessian(f)(x) ** 2)),
    "a part of a function": lambda f: grad(lambda x: f(fnp.sin(x)) * fnp.sum(x)),
    "checkpoint": lambda f: grad(checkpoint(f)),
    "custom rules": lambda f: grad(lambda x: f(x) * fnp.sum(fnp.tanh(x))),
}


@pytest.mark.parametrize("transform", OUTSIDE.values(), ids=OUTSIDE)
def test_transforms_outside_use_the_program(transform):
    """Check that transforms run the function while recording, and recorded code from then on."""
    f = lambda x: fnp.sum(fnp.sin(x) * x**2 + fnp.exp(-x * x))
    counted, calls = counting(f)
    through = transform(recorded(counted))
    for _ in range(3):
        through(X)
    before = calls()
    for point in (X, X * 0.5, X + 1):
        ours, theirs = through(point), transform(f)(point)
        for x, y in zip(tree.leaves(ours), tree.leaves(theirs), strict=True):
            assert (type(x), x.dtype) == (type(y), y.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
    assert calls() == before


def asks_for_methods(x):
    return isinstance(x, collections.abc.Iterable)


def test_program_is_used_beside_code_that_asks_for_methods():
    """Functions that can reach such code run rebuilt, without the program; a program keeps the names of its module."""
    counted, calls = counting(lambda x: fnp.sum(fnp.sin(x)))
    fast = recorded(counted)
    grad(fast)(X)
    outer = lambda x: fast(x) * 2.0
    grad(outer)(X)
    before = calls()
    grad(outer)(X)
    assert calls() == before
    assert asks_for_methods([])


def test_program_is_used_after_a_block():
    counted, calls = counting(lambda x: fnp.sum(fnp.sin(x)))
    through = grad(recorded(counted))
    through(X)
    before = calls()
    with no_grad():
        pass
    through(X)
    assert calls() == before


@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian, jacrev, jacfwd])
def test_transform_outside_is_one_program(transform):
    """Check the bits against the eager run; another such transform of the function has the program too."""
    f = lambda x, y=2.0: fnp.sum(fnp.sin(x) * x**y) if x[0] > 0 else fnp.sum(fnp.tanh(x))
    counted, calls = counting(f)
    fast = recorded(counted)
    for point in (X, -X, X * 0.5):
        assert not difference(transform(fast)(point), transform(f)(point))
    before = calls()
    assert not difference(transform(fast)(X + 1), transform(f)(X + 1))
    assert not difference(pickle.loads(pickle.dumps(transform(recorded(fnp.max))))(X), transform(fnp.max)(X))
    assert calls() == before
    with pytest.raises(InputError):
        transform(fast, argnums=7)(X)


def test_transform_outside_is_one_program_in_threads():
    f = lambda x: fnp.sum(fnp.sin(x) * x * fnp.exp(x) / (x + 3.0))
    fast, expected, found, over = recorded(f), grad(f)(X), [], threading.Event()

    def transforming():
        while not over.is_set():
            grad(lambda x: fnp.sum(x * x))(X)

    other = threading.Thread(target=transforming)
    other.start()
    try:
        found = [grad(fast)(X) for _ in range(200)]
    finally:
        over.set()
        other.join()
    assert not any(difference(slope, expected) for slope in found)
    assert not fast.report().variants  # the function by itself has no program


def test_transforms_outside_with_containers_and_complex_numbers():
    def f(params, n, *, name):
        z = params["a"] * params["b"][0] + (1.0 if name == "one" else 2.0)
        return {"value": fnp.sum(fnp.real(z * z)) * n, "more": (params["b"][0] * n, fnp.argmax(fnp.real(params["a"])))}

    params = {"a": random_numbers(3), "b": [random_numbers(3, dtype=complex)]}
    counted, calls = counting(f)
    fast = recorded(counted)
    for name in ("one", "two"):
        loss = lambda f, p, name=name: f(p, 3, name=name)["value"]
        for _ in range(2):
            ours, theirs = (grad(lambda p, f=f: loss(f, p))(params) for f in (fast, f))  # noqa: B023
            for x, y in zip(tree.leaves(ours), tree.leaves(theirs), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12)
    outer = lambda p: fast(p, 3, name="two")["value"]
    grad(outer)(params)  # the first call looks at the function itself
    before = calls()
    grad(outer)(params)
    assert calls() == before


def test_transforms_outside_follow_branches():
    f = lambda x: fnp.sum(x * x) if x[0] > 0 else fnp.sum(fnp.sin(x))
    fast = recorded(f)
    for x in (X, -X, X * 2, -X * 2):
        assert not difference(grad(fast)(x), grad(f)(x))
        assert not difference(hessian(fast)(x), hessian(f)(x))


def test_transforms_outside_see_closures():
    """Check a value that is being transformed, and arrays that change."""
    for _ in range(2):
        np.testing.assert_allclose(grad(lambda a: recorded(lambda x: fnp.sum(x * a))(X * a))(2.0), 4 * X.sum())
    held = np.ones(3)
    fast = recorded(lambda x: fnp.sum(held * x**2))
    for value in (1.0, 3.0):
        held[:] = value
        np.testing.assert_allclose(grad(fast)(X), 2 * value * X)

    scale = 1.0
    part = recorded(lambda x: fnp.sum(x**2) * scale)
    slopes = [transform(lambda x: part(x) + 1.0) for transform in (grad, jacfwd, hessian)]
    slopes.append(lambda x: jvp(part, (x,), (X,))[1])
    found = [slope(X) for slope in slopes]
    scale = 3.0
    for slope, before in zip(slopes, found, strict=True):
        np.testing.assert_allclose(slope(X), 3.0 * before, rtol=1e-14)

    a_now = [1.0]
    inner = recorded(lambda x: x * a_now[0])

    def outer(a):
        a_now[0] = a
        return inner(a * a)

    assert grad(outer)(2.0) == 12.0
    assert grad(outer)(3.0) == 27.0


def test_transforms_outside_of_unrecordable_function():
    """Check that value and gradient are of the same run."""
    rng = np.random.default_rng(0)
    fast = recorded(lambda x: fnp.sum(x * rng.normal(size=3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            value, slope = value_and_grad(fast)(X)
            assert value == fnp.sum(X * slope)
        for _ in range(3):
            values, slopes = vmap(value_and_grad(fast))(np.stack([X, 2 * X]))
            np.testing.assert_array_equal(values, (np.stack([X, 2 * X]) * slopes).sum(axis=1))


def test_transforms_outside_with_other_cotangents():
    """Check derivatives computed with the value: they are valid for cotangent 1 only, and the caller owns them."""
    fun = lambda x, y: fnp.sum(fnp.sin(x) * y)
    counted, calls = counting(fun)
    fast = recorded(counted)
    x, y = random_numbers(2, 3)
    for factor in (1.0, 1.0, 2.0, 1.0, 1.0, -0.5):
        for _ in range(2):
            ours = grad(lambda x, y, c=factor: c * fast(x, y), (0, 1))(x, y)
            theirs = grad(lambda x, y, c=factor: c * fun(x, y), (0, 1))(x, y)
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)
                a[:] = 7.0
    before = calls()
    value, pull = vjp(fast, x, y)
    for _ in range(2):
        for ct in (1.0, 3.0):
            for a, b in zip(pull(np.float64(ct)), vjp(fun, x, y)[1](np.float64(ct)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)
                a[:] = 7.0
    assert value == fun(x, y)
    for _ in range(3):  # the second call knows that the cotangent is 1
        np.testing.assert_allclose(hessian(fast)(x, y), hessian(fun)(x, y))
        before, earlier = calls(), before
    assert before == earlier


def test_transforms_outside_return_writable_arrays():
    fast = recorded(lambda x: x * 2)

    def f(x):
        y = fast(x)
        y[0] = x[1] ** 2
        return fnp.sum(y * x)

    for _ in range(3):
        np.testing.assert_allclose(grad(f)(X), grad(lambda x: x[1] ** 2 * x[0] + fnp.sum(2 * x[1:] ** 2))(X))


def test_transforms_outside_raise_function_errors():
    def f(x):
        if x[0] < 0:
            raise ValueError("below zero")
        return fnp.sum(x * x)

    fast = recorded(f)
    for _ in range(2):
        grad(fast)(np.ones(3))
        with pytest.raises(ValueError, match="below zero"):
            grad(fast)(-np.ones(3))


@pytest.mark.usefixtures("few_trials")
def test_random_programs_inside_transforms():
    found = [examine_inside(generate(7, number)) for number in range(40)]
    assert all(kind == "agree" or (kind == "not recorded" and why) for kind, why in found)
    assert [kind for kind, _ in found].count("agree") >= 38


def test_blocks_apply_to_recorded_function():
    fast = recorded(grad(lambda x: fnp.sum(fnp.log(x))))
    fast(X**2)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError), debug_nans():
        fast(X * 0)
    assert not difference(no_grad(fast)(X**2), 1 / X**2)
    assert profile(grad(lambda x: fnp.sum(recorded(fnp.log)(x))))(X**2) is not None


# ---- threads, memory -------------------------------------------------------------------------------------------------


def test_threads_have_own_buffers():
    f = grad(lambda x: fnp.sum(fnp.sin(x) * fnp.cos(x) * x))
    fast = recorded(f)
    fast(np.ones(500))
    points = [np.linspace(0, k, 500) for k in range(8)]
    expected = [f(x) for x in points]
    wrong = []

    def work(k):
        for _ in range(100):
            if difference(fast(points[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: fnp.mean(fnp.mean(y**2, axis=0) * x),
        lambda x, y: fnp.sum(fnp.sin(fnp.broadcast_to(x, y.shape)) * y),
        lambda x, y: fnp.sum(fnp.exp(fnp.broadcast_to(x, y.shape) * 2.0) + y),
    ],
    ids=["means", "sine", "exponential"],
)
def test_large_broadcasts(f):
    x, y = np.linspace(0.1, 1.0, 400), np.linspace(-1.0, 1.0, 120_000).reshape(300, 400)
    for argnums in (0, 1):
        agrees(grad(f, argnums), (x, y), (x * 0.9, y + 0.1))


def test_large_arrays_are_not_kept():
    f = grad(lambda x: fnp.sum(fnp.tanh(fnp.sin(x) * x)))
    fast = agrees(f, np.linspace(0, 1, 100_000), np.linspace(1, 2, 100_000))
    assert "del t" in fast.source
    (entry,) = fast._entries.values()
    assert entry.variants[0].program.slot_bytes == 0


def deep(h):
    for _ in range(4):
        h = fnp.sin(h) * fnp.exp(-h * h) + fnp.cos(h)
    return h


def layered(part, count=12):
    """Return the gradient of ``part`` applied repeatedly."""

    def fun(h):
        for _ in range(count):
            h = part(h)
        return fnp.sum(h)

    return grad(fun)


#: Functions that compute values again in the backward pass: all layers, a chain that keeps few states, nested
#: checkpoints, all but what a policy saves.
AGAIN = {
    "checkpoint": layered(checkpoint(deep)),
    "checkpoint_chain": grad(lambda h: fnp.sum(checkpoint_chain(deep, h, length=12, budget=3))),
    "inside of another": layered(checkpoint(lambda h: checkpoint(deep)(checkpoint(deep)(h))), 6),
    "with a policy": layered(
        checkpoint(
            lambda h: checkpoint_name(deep(deep(h)), "two"), policy=checkpoint_policies.save_only_these_names("two")
        ),
        6,
    ),
}


@cache
def computed_once(size):
    """Return the program without checkpoints, its result, and the bytes of a call."""
    x = np.linspace(0.1, 0.9, size)
    fast = agrees(layered(deep), x)
    return fast, fast(x), needed(fast, x)


@pytest.mark.parametrize("size", [100, 10_000], ids=["kept between calls", "of the call"])
@pytest.mark.parametrize("fun", AGAIN.values(), ids=AGAIN)
def test_checkpoint_saves_memory_in_program(fun, size):
    """Check that recordings recompute too: less memory than without checkpoints, no more than the function."""
    x = np.linspace(0.1, 0.9, size)
    fast, (plain, expected, bytes_of_all) = agrees(fun, x, x[::-1].copy()), computed_once(size)
    assert not difference(fast(x), expected)
    assert (ours := needed(fast, x)) < 0.5 * bytes_of_all
    assert ours < 1.05 * peak(fun, x)
    kept = [made.report().variants[0][1] for made in (fast, plain)]
    assert kept[0] > 1.2 * kept[1]  # numbers of operations


def needed(fast, *args):
    """Return the bytes of a call, including those kept between calls."""
    fast(*args)
    return peak(fast, *args) + sum(size for *_, size in fast.report().variants)


def peak(fun, *args):
    tracemalloc.start()
    try:
        fun(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_checkpoint_checks_branch_once():
    """Check that a branch inside is checked once; the other branch is another variant."""

    @checkpoint
    def part(x):
        return fnp.sin(x) if x.sum() > 0 else fnp.cos(x) * x

    fast = agrees(grad(lambda x: fnp.sum(part(part(x)))), X, -X, X * 0.5)
    assert fast.source.count("raise PathChanged") == 2 * variants(fast)


# ---- many programs ---------------------------------------------------------------------------------------------------


def gradient_of(case):
    smooth, cts = case.smooth, case.cotangents

    def f(*primals):
        outs, pull = vjp(smooth, *primals)
        return outs, pull(cts)

    return f


@pytest.fixture
def few_trials(monkeypatch):
    """Let recordings try few other arguments, for tests that compare several or many, and expect no warning.

    Running the function for each of the arguments takes half of the time of these tests.
    """
    monkeypatch.setattr(agreeing, "_TRIALS_IF_SMALL", agreeing._TRIALS_IF_LARGE)


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op.name)
def test_operations_match_bitwise(row):
    """Check value and gradient of every row of the table, also of those that are not recorded."""
    for case in row.cases:
        with cases.named_in_errors(case.id):
            run_recorded(case)


def value_of(call, fun, *values):
    return call(fun, values)


def run_recorded(case):
    fun = gradient_of(case) if case.live else partial(value_of, case.call, case.fun)
    points = list(case.primals if case.live else case.values)
    fast = recorded(fun)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = fun(*points)
        except Exception as error:
            with pytest.raises(type(error)):
                fast(*points)
            return
        if difference(fun(*points), expected):  # results of uninitialised memory, for example
            return
        for _ in range(3):
            assert not difference(fast(*points), expected)


@pytest.mark.parametrize("row", [row for row in ROWS if row.cases[0].live], ids=lambda row: row.op.name)
def test_composed_numpy_functions_match_bitwise(row):
    """Check functions that NumPy computes itself for plain arrays, and other operations compose for traced arrays."""
    rng = np.random.default_rng(1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in [case for case in row.cases if case.live][:2]:
            fun = lambda *xs, own=case.fun: list(own(*xs))
            fast = recorded(fun)
            for _ in range(6):
                points = [cast(x * (1 + 0.05 * rng.uniform(-1, 1, np.shape(x))), x) for x in case.primals]
                try:
                    expected = fun(*points)
                except Exception:  # the function is not defined there
                    continue
                if not difference(fun(*points), expected):
                    assert not difference(fast(*points), expected), case.id


#: Functions that NumPy computes itself for arrays, and a composition that rounds otherwise for traced arrays.
COMPOSED = {
    "a trace": np.trace,
    "an inner product": lambda a: fnp.inner(a, a),
    "einsum": lambda a: fnp.einsum("ij,kj->ik", a, a),
    "a norm": lambda a: fnp.linalg.norm(a, 2),
    "a power": lambda a: fnp.linalg.matrix_power(a, 3),
    "eigenvalues": fnp.linalg.eigvalsh,
    "an integral": fnp.trapezoid,
    "with an array that was made": lambda a: fnp.vdot(fnp.ones(a.shape), a),
    "in a list": lambda a: fnp.polyval([a[0, 0], a[0, 1]], a),
}


@pytest.mark.parametrize("fun", COMPOSED.values(), ids=COMPOSED)
def test_composed_functions_are_tried_with_more_arguments(fun):
    """Check that such functions are tried with more arguments, except in a transform that traces the arguments."""
    squared = lambda a: fnp.sum(fnp.sin(fun(a)) ** 2)
    for tried in (
        fun,
        squared,
        lambda a: (grad(squared)(a), fun(a * a)),
        lambda a: grad(lambda b: squared(a) * b)(2.0),
    ):
        assert is_tried(tried)
    if fun is not COMPOSED["in a list"]:  # its derivative multiplies arrays with negative strides, which are tried too
        assert not is_tried(grad(squared))
        assert not is_tried(hessian(squared))
    assert not is_tried(lambda a: fnp.sin(a) * a)


def is_tried(fun):
    """Whether the program is tried with more arguments than those that it was recorded with."""
    fast = recorded(fun)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        fast(random_numbers(3, 3, seed=1))
    (entry,) = fast._entries.values()
    return bool(entry.eager) or entry.variants[0].rounding_sensitive


def cast(x, like):
    return x.astype(like.dtype) if isinstance(like, np.ndarray) else type(like)(x)


@pytest.mark.usefixtures("few_trials")
def test_random_programs():
    """Check recordings on inputs that take other branches; see ``fuzz.recorded``. A fallback must give a reason."""
    found = [examine(generate(5, number)) for number in range(90)]
    assert [kind for kind, _ in found].count("agree") >= 87
    assert all(kind == "agree" or (kind == "not recorded" and why) for kind, why in found)


def random_numbers(*shape, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape)
    return (found + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else found.astype(dtype)


ROUNDED = {
    "powers of numbers by the operator": lambda x: fnp.sum(fnp.abs(x)) ** 0.3,
    "powers of numbers by the function": lambda x: fnp.power(fnp.sum(fnp.abs(x)), 0.3),
    "powers in a gradient": grad(lambda x: fnp.sum(fnp.abs(x) ** 3) ** (1 / 3)),
    "powers in a batch": vmap(lambda x: fnp.power(fnp.abs(x), 0.3)),
    "powers in forward mode": lambda x: jvp(lambda x: fnp.sum(fnp.abs(x)) ** 0.3, (x,), (x,)),
    "powers without derivative": grad(lambda x: fnp.sum(x) * no_grad(lambda x: fnp.sum(fnp.abs(x)) ** 0.3)(x)),
    "norms of a power": lambda x: grad(lambda x: fnp.linalg.vector_norm(x, ord=3))(x),
    "sums of cotangents of a split": grad(lambda x: fnp.sum(x + x) * 0.3 + 0.7 * fnp.sum(fnp.split(x, [1])[0])),
    "factors in another order in memory": lambda x: grad(
        lambda m: fnp.sum(fnp.sum(m.T * fnp.outer(x, x), axis=1) ** 2)
    )(fnp.outer(x, x + 1)),
    "additions one after the other": lambda x: _added(x),
    "cotangents of a batch": lambda x: vjp(
        vmap(lambda x: scan(lambda c, r: (c + r, 0.5 * c + fnp.sin(r)), x[0], x)[1] * x.mean()), fnp.stack([x, x * 2])
    )[1](fnp.stack([x, x * 3])),
}


def _added(x):
    y = x * 1.5
    fnp.add.at(y, np.array([0, -1, 0]), fnp.mean(y))
    return y


@pytest.mark.parametrize("fun", ROUNDED.values(), ids=ROUNDED)
def test_rounding_matches_function(fun):
    points = [random_numbers(5, seed=seed) for seed in range(30)]
    agrees(fun, *points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = recorded(fun)
        for x in points:
            fast(x)


COMPLEX = {
    "numbers by the operator": lambda z: z[0] * z[1] + z[2] ** 2 + abs(z[1]),
    "numbers by the function": lambda z: fnp.multiply(z[0], z[1]) + fnp.square(z[2]) + fnp.abs(z[1]),
    "a constant on the left": lambda z: (0.3 - 0.8j) * z + np.complex128(0.2 + 0.7j) * z[0],
    "a constant on the right": lambda z: z * (0.3 - 0.8j) + z[0] * np.complex128(0.2 + 0.7j),
    "in place": lambda z: _doubled(z),
    "in place, of one element": lambda z: _doubled(z[:1] + 0),
    "outer products": lambda z: fnp.outer(z, z) * 0.3 + fnp.abs(z),
    "a gradient": grad(lambda z: fnp.sum(fnp.real(fnp.sin(z) * z * (0.6 - 0.8j)))),
    "a gradient of matrices": grad(lambda z: fnp.sum(fnp.real(fnp.outer(z, z) @ z))),
}


def _doubled(z):
    y = z + 0.5
    y *= z * (0.4 + 0.9j)
    return y


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("fun", COMPLEX.values(), ids=COMPLEX)
def test_complex_products_round_like_function(fun, dtype):
    agrees(fun, *[random_numbers(5, dtype=dtype, seed=seed) for seed in range(30)])


#: Parts of an array, at constant indices, at indices from data, at the result of a branch.
PARTS = {
    "a number": lambda x: x[1],
    "a slice": lambda x: x[1:],
    "backwards": lambda x: x[::-1, ...],
    "an array": lambda x: x[np.array([0, 2, 0])],
    "the place of the largest": lambda x: x[np.argmax(abs(x))],
    "an order": lambda x: x[np.argsort(abs(x))],
    "what Python asked for": lambda x: x[int(np.argmin(abs(x)))],
    "taken": lambda x: fnp.take(x, 0, axis=0),
}


def read_often(x, first, second):
    """Add three parts of one array and the whole."""
    parts = (PARTS[first](x), PARTS[second](x), PARTS[first](fnp.sin(x)))
    return x * x + 0.1 * sum([fnp.sum(part * part) for part in parts], fnp.sum(x))


def pulled(fun, x):
    return vjp(fun, x)[1](np.asarray(x * 0 + 0.9, x.dtype))[0]


#: Transforms under which parts are read: with plain values, in a batch, with a tangent, as constants in a block.
AROUND_PARTS = {
    "grad": lambda f: lambda x: grad(lambda x: fnp.sum(fnp.real(f(x))))(x),
    "jacrev": lambda f: lambda x: vmap(lambda ct: vjp(f, x)[1](ct)[0])(np.eye(len(x), dtype=x.dtype)),
    "grad of vmap": lambda f: lambda x: grad(lambda x: fnp.sum(fnp.real(vmap(f)(fnp.stack([x, 0.75 * x])))))(x),
    "forward over reverse": lambda f: lambda x: jvp(partial(pulled, f), (x,), (x,)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "no_grad inside": lambda f: (
        lambda x: grad(lambda x: fnp.sum(fnp.real(pulled(f, x) * no_grad(partial(pulled, f))(x))))(x)
    ),
}


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("around", AROUND_PARTS.values(), ids=AROUND_PARTS)
@pytest.mark.parametrize("first", PARTS)
def test_part_cotangents_add_in_same_order(first, around, dtype):
    """Check that the cotangents of parts of one array are added in one order, for every kind of index."""
    for second in list(PARTS)[list(PARTS).index(first) :]:
        if around is AROUND_PARTS["grad of vmap"] and "what Python asked for" in (first, second):
            continue  # examples may give different answers
        fun = around(partial(read_often, first=first, second=second))
        fast = recorded(fun)
        for seed in range(6):
            x = random_numbers(3, dtype=dtype, seed=seed)
            assert not difference(fast(x), fun(x)), (second, seed)


#: Functions that make an array from a number, in the backward or forward pass.
SPREAD = {
    "a sum": fnp.sum,
    "a mean": fnp.mean,
    "a variance": fnp.var,
    "a norm": lambda x: fnp.linalg.vector_norm(x),
    "a largest": lambda x: fnp.max(x),
    "a sum of logarithms": lambda x: fnp.log(fnp.sum(fnp.exp(x))),
    "a mean of columns": lambda x: fnp.sum(fnp.mean(x, axis=0) ** 2),
    "a mean of rows": lambda x: fnp.sum(fnp.mean(x, axis=1, keepdims=True) ** 2),
    "broadcast": lambda x: fnp.sum(fnp.sin(x) * fnp.broadcast_to(x[0, 0], x.shape)),
    "filled": lambda x: fnp.sum(fnp.cos(x) * fnp.full(x.shape, x[1, 0])),
    "a Python number": lambda x: fnp.sum(fnp.sin(x)) * 2 + 3.0,
}
#: Memory layouts of the array that is combined with it.
LYING = {
    "by rows": lambda x: x,
    "by columns": lambda x: fnp.matrix_transpose(x),
    "with gaps": lambda x: x[:, ::2],
    "in another order": lambda x: fnp.moveaxis(fnp.reshape(x, (3, 2, 2)), 0, 1)[:, :, 1],
}


def slopes_of_product(x, spread, lying):
    """Return derivatives of a product of two numbers, one of an array whose memory layout is that of ``lying``."""
    made = grad(lambda y: fnp.sum(x**2) * spread(fnp.sin(y)))(lying(x))
    return made, fnp.sum(fnp.tanh(made)), fnp.sum(made * made)


#: Transforms in which cotangents of numbers are numbers, tracers of numbers, or batched tracers with one per example.
AROUND_NUMBERS = {
    "grad": lambda f: f,
    "forward over reverse": lambda f: lambda x: jvp(f, (x,), (x * 0.7,)),
    "reverse over reverse": lambda f: lambda x: vjp(f, x)[1]((lambda a, b, c: (a * 0.3, b, c))(*f(x)))[0],
    "forward over forward": lambda f: lambda x: jvp(lambda x: jvp(f, (x,), (x * 0.7,))[1], (x,), (x,)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "vmap": lambda f: lambda x: vmap(f)(fnp.stack([x, x * 0.75])),
    "vmap of forward over reverse": lambda f: (
        lambda x: vmap(lambda x: jvp(f, (x,), (x * 0.7,))[1])(fnp.stack([x, x * 0.75]))
    ),
}


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("around", AROUND_NUMBERS.values(), ids=AROUND_NUMBERS)
@pytest.mark.parametrize("lying", LYING.values(), ids=LYING)
@pytest.mark.parametrize("spread", SPREAD.values(), ids=SPREAD)
def test_arrays_from_numbers_keep_memory_layout(spread, lying, around):
    """Check the memory order of such arrays, in which their sums are added."""
    fun = around(partial(slopes_of_product, spread=spread, lying=lying))
    agrees(fun, *[random_numbers(3, 4, seed=seed) for seed in range(4)])


#: Functions that make arrays of shape ``to`` whose elements are broadcast, filled in, or repeated.
BROADCAST = {
    "a number": lambda x, to: fnp.broadcast_to(fnp.sum(x), to),
    "an array without axes": lambda x, to: fnp.broadcast_to(fnp.asarray(fnp.sum(x)), to),
    "one element": lambda x, to: fnp.broadcast_to(x[0, :1], to),
    "a row": lambda x, to: fnp.broadcast_to(fnp.resize(x[0], to[1:]), to),
    "a column": lambda x, to: fnp.broadcast_to(fnp.resize(x[0], (to[0], 1)), to),
    "with another": lambda x, to: fnp.broadcast_arrays(fnp.ones(to), x[0, 0])[1],
    "in place": lambda x, to: doubled_broadcast(x, to),
    "full": lambda x, to: fnp.full(to, x[0, 0]),
    "full like another": lambda x, to: fnp.full_like(fnp.ones(to[::-1]).T, x[0, 0]),
}


def doubled_broadcast(x, to):
    y = fnp.zeros(to)
    y += fnp.broadcast_to(x[0, 0], to)
    return y


AROUND_BROADCASTS = {
    "as it is": lambda f: f,
    "grad": lambda f: lambda x: grad(lambda x: f(x)[0])(x),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0.7,)),
    "vmap": lambda f: lambda x: vmap(f)(fnp.stack([x, x * 0.75])),
    "grad of grad": lambda f: lambda x: grad(lambda x: fnp.sum(fnp.tanh(grad(lambda x: f(x)[0])(x))))(x),
}


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("around", AROUND_BROADCASTS.values(), ids=AROUND_BROADCASTS)
@pytest.mark.parametrize("made", BROADCAST.values(), ids=BROADCAST)
def test_broadcast_results_keep_memory_layout(made, around):
    def f(x):
        product = x.T * made(x, x.shape[::-1])
        return fnp.sum(fnp.tanh(product)), product

    agrees(around(f), *[random_numbers(5, 7, seed=seed) for seed in range(8)])


#: Functions that broadcast rows and columns several times.
OFTEN = {
    "rows": lambda m, v, c: (m * v + v) / (v * v + 1.5) - m * v,
    "columns": lambda m, v, c: (m - c) * c + c,
    "both": lambda m, v, c: (m * v - c) * (v - m) * (m + c) + (v * c - m) * (v * c),
    "by columns in memory": lambda m, v, c: (m.T * c[:, 0] + c[:, 0]).T * v + m * v,
    "beside constants": lambda m, v, c: (np.arange(32.0).reshape(8, 4).astype(m.dtype) * v + m) * v,
    "powers": lambda m, v, c: fnp.abs(m) ** fnp.abs(c) * v + fnp.abs(m) ** fnp.abs(v) * v,
    "in place": lambda m, v, c: added_in_place(m, v),
}


def added_in_place(m, v):
    y = m * v
    y += v
    y[1:] *= v * 2.0
    return y


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("fun", OFTEN.values(), ids=OFTEN)
def test_repeated_broadcasts_share_one_row(fun, dtype):
    """Check that a broadcast row is filled in once, and loops over arrays of one shape give the same bits."""
    loss = lambda m, v, c: fnp.sum(fnp.real(fnp.sin(0.1 * fun(m, v, c))))
    shapes = ((8, 4), (4,), (8, 1))
    points = [tuple([random_numbers(*s, dtype=dtype, seed=seed) for s in shapes]) for seed in range(4)]
    agrees(lambda m, v, c: (fun(m, v, c), loss(m, v, c)), *points)
    agrees(grad(loss, (0, 1, 2)), *points)
    around = lambda m, v, c: jvp(grad(loss, (0, 1)), (m, v, c), (m * 0.5, v, c * 0.25))
    agrees(around, *points)
    agrees(lambda m, v, c: vmap(grad(loss), in_axes=(None, 0, None))(m, fnp.stack([v, v * 2.0]), c), *points)


def test_broadcast_row_is_filled_once():
    fun = lambda m, v: (m * v + 1.0) * v - v * m
    fast = recorded(fun)
    for seed in range(3):
        m, v = random_numbers(40, 50, seed=seed), random_numbers(50, seed=seed)
        assert not difference(fast(m, v), fun(m, v))
    assert fast.source.count("np_copyto") == 1


#: Indices of writes: constant, and from data.
WRITTEN = {
    "everywhere": lambda z, x: ...,
    "a slice": lambda z, x: slice(1, None),
    "an array": lambda z, x: np.array([2, 0]),
    "an array with one place twice": lambda z, x: np.array([2, 0, 2]),
    "a mask": lambda z, x: x > 0,
    "a mask of rows": lambda z, x: x[:, 0] > 0,
    "the place of the largest": lambda z, x: fnp.argmax(x[:, 0]),
    "an order": lambda z, x: fnp.argsort(x[:, 0])[:2],
    "places that meet": lambda z, x: fnp.argsort(x[:, 0])[np.array([0, 1, 0])],
}
WRITINGS = {
    "a sum": lambda x: fnp.sum(fnp.sin(x)),
    "a sum in single precision": lambda x: fnp.sum(fnp.sin(x)).astype(np.float32),
    "an element": lambda x: x[0, 1] * 1.7,
    "a row": lambda x: fnp.sin(x[0]).astype(np.float32),
    "a number": lambda x: 0.3,
}


def written_to(x, where, what):
    z = x * 1.5
    z[WRITTEN[where](z, x)] = WRITINGS[what](x)
    return z * 1.1 + 0.1 * fnp.sum(z[0]) + z[1]


#: A row has more elements than most masks select.
FITTING = [pair for pair in itertools.product(WRITTEN, WRITINGS) if pair != ("a mask", "a row")]


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize(("where", "what"), FITTING)
def test_written_value_cotangents_round_like_function(where, what):
    """Check the cotangent of a value written in place: it is rounded first, then added up in memory order."""
    f = partial(written_to, where=where, what=what)
    for around in (
        grad(lambda x: fnp.sum(f(x) * f(x))),
        jacrev(f),
        jacfwd(f),
        lambda x: jvp(partial(pulled, f), (x,), (x,)),
        grad(lambda x: fnp.sum(pulled(f, x) * no_grad(f)(x))),
    ):
        fast = recorded(around)
        for seed in range(6):
            x = random_numbers(3, 4, seed=seed)
            assert not difference(fast(x), around(x)), seed


#: Views of an array; a write to a view shows in the whole array.
VIEWED = {
    "a column": lambda z: z[..., 0],
    "rows": lambda z: z[1:],
    "backwards": lambda z: z[::-1, ::2],
    "the transpose": lambda z: z.T,
    "one row": lambda z: fnp.reshape(z, (-1,)),
    "a part of a part": lambda z: z.T[1:][::-1],
    "with another axis": lambda z: z[None, :, 1],
    "the array": lambda z: z,
}


def at_places(places, what=lambda v, x: fnp.sum(fnp.sin(x))):
    """Return a function that writes ``what(v, x)`` to the places of ``v`` that come from its values."""

    def write(v, x):
        v[places(v)] = what(v, x)

    return write


def added(v, x):
    v[v > 0.3] += 0.7


def multiplied(v, x):
    v[v > 0.3] *= fnp.sum(x)


def firsts(v):
    return fnp.reshape(v, (v.shape[0], -1))[:, 0]


#: Functions that write at a mask, or at places from data.
WRITERS = {
    "a number at a mask": at_places(lambda v: v > 0.3, lambda v, x: 0.2),
    "a sum at a mask": at_places(lambda v: v > 0.3),
    "a sum in single precision": at_places(lambda v: v > 0.3, lambda v, x: fnp.sum(fnp.sin(x)).astype(np.float32)),
    "a sum at a mask of rows": at_places(lambda v: firsts(v) > 0.1),
    "a row at a mask of rows": at_places(lambda v: firsts(v) > 0.1, lambda v, x: fnp.sin(v[0]) * fnp.sum(x)),
    "a mask in a tuple": at_places(lambda v: (v > 0.3,)),
    "what was there": at_places(lambda v: v > 0.1, lambda v, x: fnp.sin(v[v > 0.1])),
    "an order": at_places(lambda v: fnp.argsort(firsts(v))[:2]),
    "places that meet": at_places(lambda v: fnp.argsort(firsts(v))[np.array([0, 0])]),
    "what is not zero": at_places(lambda v: fnp.nonzero(v > 0.3)),
    "added": added,
    "multiplied": multiplied,
    "putmask": lambda v, x: fnp.putmask(v, v > 0.3, fnp.cos(v)),
    "copyto": lambda v, x: fnp.copyto(v, fnp.sum(fnp.sin(x)), where=v > 0.3),
    "place": lambda v, x: fnp.place(v, v > 0.3, fnp.sin(x)[0]),
    "put": lambda v, x: fnp.put(v, fnp.argsort(fnp.ravel(v))[:2], fnp.sum(x)),
    "add.at": lambda v, x: fnp.add.at(v, v > 0.3, fnp.sum(x)),
    "add.at places that meet": lambda v, x: fnp.add.at(v, fnp.argsort(firsts(v))[np.array([0, 0])], fnp.sum(x)),
    "out where": lambda v, x: fnp.multiply(v, 1.3, out=v, where=v > 0.3),
}
#: Index functions for ``x.at[index]``, with places from data.
PLACES = {
    "a mask": lambda z: z > 0.3,
    "a mask of rows": lambda z: firsts(z) > 0.1,
    "an order": lambda z: fnp.argsort(firsts(z))[:2],
    "places that meet": lambda z: fnp.argsort(firsts(z))[np.array([0, 1, 0])],
    "two": lambda z: (fnp.argsort(firsts(z))[:2], fnp.argsort(z[:2, 0])),
    "what is not zero": lambda z: fnp.nonzero(z > 0.3),
}
METHODS = {
    "set": lambda at, x: at.set(fnp.sum(fnp.sin(x))),
    "add": lambda at, x: at.add(fnp.sum(fnp.sin(x))),
    "multiply": lambda at, x: at.multiply(fnp.sum(fnp.sin(x))),
    "divide": lambda at, x: at.divide(fnp.sum(x**2)),
    "power": lambda at, x: at.power(3),
    "max": lambda at, x: at.max(0.5 * x[0, 0]),
    "apply": lambda at, x: at.apply(fnp.sin),
}
AROUND_WRITES = {
    "grad": lambda f: grad(lambda x: fnp.sum(f(x) * f(x))),
    "jacrev": jacrev,
    "forward over reverse": lambda f: lambda x: jvp(partial(pulled, f), (x,), (x,)),
}


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("around", AROUND_WRITES.values(), ids=AROUND_WRITES)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("view", VIEWED.values(), ids=VIEWED)
def test_written_part_cotangents_add_in_same_order(view, write, around):
    """Check the case that the whole is read before and after, so that its cotangents are added to those of the part."""

    def f(x):
        z = x * 1.5
        before, part = fnp.sum(z * z), view(z)
        write(part, x)
        return z * 1.1 + 0.1 * fnp.sum(z[0]) + 0.3 * before + z * fnp.sum(view(z) * 0.7)

    agrees(around(f), *[random_numbers(3, 4, seed=seed) for seed in range(2)])


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("around", AROUND_WRITES.values(), ids=AROUND_WRITES)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_at_with_computed_indices(places, method, around):
    def f(x):
        z = x * 1.5
        new = method(fnp.at(z)[places(z)], x)
        return z * 1.1 + 0.3 * fnp.sum(new * new) + new * 0.7

    agrees(around(f), *[random_numbers(3, 4, seed=seed) for seed in range(2)])


#: Linear maps of complex numbers that are applied to other tangents: Python's scalar operators round otherwise.
REPEATED = {
    "linearize": lambda z: linearize(lambda z: fnp.sin(z[0]) * z[1], z)[1](z * (0.3 - 0.8j)),
    "linearize of a map": lambda z: linearize(lambda z: control.map(lambda r: fnp.sum(fnp.sin(r)) * r, z), z)[1](z),
    "checkpoint": grad(lambda z: fnp.real(checkpoint(lambda z: z[0] * z[1] * fnp.sin(z[2]))(z))),
    "a constant on the left": lambda z: linearize(lambda z: z[0].dtype.type(0.2 + 0.7j) * z[0] * z[1], z)[1](z),
}


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("fun", REPEATED.values(), ids=REPEATED)
def test_repeated_products_of_complex_numbers(fun, dtype):
    agrees(fun, *[random_numbers(3, dtype=dtype, seed=seed) for seed in range(30)])


def test_xla_functions_inside():
    """Check that a function compiled with XLA is one operation, and its derivative another."""
    inner = jit(lambda x: fnp.sum(fnp.sin(x) * x))
    for fun in (inner, grad(inner), value_and_grad(lambda x: inner(x) ** 2), vmap(inner)):
        points = [random_numbers(2, 3, seed=seed) for seed in (0, 1)]
        agrees(fun, *points)
    fast = recorded(inner)
    fast(X)
    with pytest.raises(InputError, match="save"):
        fast.save("anywhere.py")


def test_arguments_with_negative_strides():
    """Check arguments with a negative stride: NumPy sums in memory order, which a copy would reverse."""
    fast = recorded(lambda x: fnp.sum(x * 2))
    with pytest.warns(EagerWarning, match="negative stride"):
        assert fast(X[::-1]) == 2 * fnp.sum(X[::-1])
    with warnings.catch_warnings():  # the warning is given once
        warnings.simplefilter("error")
        fast(X[::-1])
        fast(X)


def test_program_rounding_differently_runs_eagerly(monkeypatch):
    """Check that a program of complex numbers is tried once at other arguments too, when it is recorded."""
    monkeypatch.setattr("funcgrad.transforms.compiled.capture.operator_for", lambda *args: None)  # hide operators
    counted, calls = counting(lambda z: [(z[i] * z[i + 1]).real for i in range(19)])
    alike = np.repeat(1.0 + 2.0j, 20)
    fast = recorded(counted)
    with pytest.warns(EagerWarning, match="rounds differently"):
        fast(alike)  # products of equal numbers need no rounding
    assert calls() == "count(4)"  # the function, its recording, another argument, repeatability
    for seed in range(20):
        z = random_numbers(20, dtype=complex, seed=seed)
        assert not difference(fast(z), [(z[i] * z[i + 1]).real for i in range(19)])


NESTED = {
    "jacrev": jacrev,
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,)),
    "vjp": lambda f: lambda x: vjp(f, x)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
}
POWERS = {
    "of a constant": lambda x: np.float64(1.3) ** x,
    "to a constant": lambda x: x ** np.float64(1.7),
    "of both": lambda x: x**x,
    "by the function": lambda x: fnp.power(np.float64(1.3), x),
}


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("transforms", list(itertools.product(NESTED, repeat=2)), ids="-".join)
@pytest.mark.parametrize("power", POWERS.values(), ids=POWERS)
def test_powers_in_blocks_match_bitwise(power, transforms):
    """Check that powers of numbers have the same bits inside any block."""
    fun = power
    for transform in transforms:
        fun = NESTED[transform](fun)
    points = [np.float64(x) for x in np.random.default_rng(0).uniform(0.1, 3.0, 60)]
    for x in points:
        assert not difference(no_grad(fun)(x), fun(x))
    agrees(no_grad(fun), *points)


@pytest.mark.parametrize("number", [np.float64, float])
def test_power_operator_is_distinguished_from_function(number):
    """Check that Python's power of numbers, which is rounded otherwise than NumPy's, is recorded as such."""
    points = [number(x) for x in np.random.default_rng(0).uniform(0.1, 3.0, 100)]
    one = np.float64(1.3)
    for fun in (
        lambda x: x**1.7,
        lambda x: np.power(x, 1.7),
        lambda x: 1.3**x,
        lambda x: fnp.power(1.3, x),
        lambda x: one**x,
        jacfwd(lambda x: 1.3**x),
        jacfwd(grad(lambda x: 1.3**x * x**1.3)),
        lambda x: jvp(lambda x: one**x, (x,), (x,)),
        grad(lambda x: one**x + x**one),
    ):
        agrees(fun, *points)


def test_ambiguous_power_operator():
    one, fun = np.float64(1.3), lambda x, name: np.power(one, x) if name == "function" else one**x
    fast = recorded(fun, static_argnames="name")
    with pytest.warns(EagerWarning, match=r"cannot be told from numpy\.power"):
        assert fast(np.float64(0.7), name="function") == np.power(one, np.float64(0.7))
    with pytest.warns(EagerWarning, match=r"cannot be told from numpy\.power"):
        assert fast(np.float64(0.7), name="operator") == one ** np.float64(0.7)


# ---- loops -----------------------------------------------------------------------------------------------------------


def chain(steps, start=0.1):
    def run(x):
        for i in range(steps):
            x = x * start + fnp.sin(x)
            if i % 2:
                x = x - x**2 * 0.01
        return fnp.sum(x)

    return grad(run)


def recurrent(params, xs):
    h = np.zeros(4)
    total = 0.0
    for x in xs:
        h = fnp.tanh(params["w"] @ h + params["u"] @ x)
        total = total + fnp.sum(h * h)
    return total


@pytest.mark.parametrize("x", [0.7, np.float64(0.7), np.linspace(0.1, 1, 5), np.linspace(0, 1, 4, dtype=np.float32)])
@pytest.mark.parametrize("order", [1, 2])
def test_equal_steps_become_a_loop(x, order):
    fun = chain(500) if order == 1 else grad(lambda x: fnp.sum(chain(150)(x)))
    fast = agrees(fun, x, x * 0.5, x * 2)
    assert "for " in fast.source


@pytest.mark.parametrize("steps", range(260, 277))
def test_values_read_by_iterations_are_adjacent(steps):
    """Check that a backward iteration reads the values of one forward iteration, however many are left over."""

    def run(x):
        for _ in range(steps):
            x = x * 0.1 + fnp.sin(x)
        return x

    for exact in (True, False):
        fast = jit(grad(run), backend="numpy", exact=exact)
        found = [fast(x) for x in (0.7, 0.35, -1.4)]
        assert np.allclose(found, [grad(run)(x) for x in (0.7, 0.35, -1.4)], rtol=0 if exact else 1e-12, atol=0)
        assert ".append((" in fast.source


#: Functions whose backward iterations read forward values: one, several, slots besides, values needed elsewhere too.
READ_AGAIN = {
    "one": lambda step, x: step(fnp.sin, x * 0.5),
    "several": lambda step, x: step(lambda y: fnp.sin(y) * fnp.exp(-y * y) + fnp.cos(y) * 0.3 * y, x),
    "two ways back": lambda step, x: grad(lambda x: step(fnp.sin, x) * x)(x) + step(fnp.cos, x),
    "beside arrays": lambda step, x: fnp.sum(step(lambda y: fnp.sin(y) * fnp.sum(y) * 0.1, x * np.ones(3))),
    "all values": lambda step, x: fnp.sum(fnp.array(step(lambda y: (fnp.sin(y[0]), *y[:20]), (x,)))),
}


@pytest.mark.parametrize("fun", READ_AGAIN.values(), ids=READ_AGAIN)
@pytest.mark.parametrize("pieces", [False, True], ids=["in one", "in pieces"])
def test_iteration_reads_value_of_another(fun, pieces, monkeypatch):
    if pieces:
        monkeypatch.setattr("funcgrad.transforms.compiled.source._LONG", 10)
        monkeypatch.setattr("funcgrad.transforms.compiled.source._PIECE", 4)

    def step(body, x):
        for _ in range(333):
            x = body(x)
        return x

    of = lambda x: fun(step, x)
    agrees(value_and_grad(of), np.float64(0.7), np.float64(-1.3), np.float64(0.0))
    inexact = jit(grad(of), backend="numpy", exact=False)
    for x in (np.float64(0.7), np.float64(-1.3), np.float64(0.7)):
        assert np.isclose(inexact(x), grad(of)(x), rtol=1e-12, atol=0)
    if fun is READ_AGAIN["several"]:
        assert ".append((" in inexact.source
        assert "V[" not in inexact.source


def test_recurrent_network_becomes_a_loop():
    params = {"w": np.linspace(-1, 1, 16).reshape(4, 4), "u": np.linspace(1, -1, 12).reshape(4, 3)}
    for steps in (100, 300):
        xs = np.sin(np.arange(3.0 * steps)).reshape(steps, 3)
        fast = agrees(value_and_grad(recurrent), (params, xs), (params, -xs))
        assert fast.source.count("\n") < 2.5 * steps  # each step has a dozen operations


def test_source_size_is_independent_of_steps():
    short, long = [agrees(chain(steps), np.ones(3)).source.count("\n") for steps in (200, 2000)]
    assert long == short


def test_loop_with_branches():
    def f(x):
        for _ in range(150):
            x = x * 0.99 if x > 0.5 else x * 1.01
        return x

    agrees(value_and_grad(f), 3.0, 0.1, 2.9)


def irregular(steps):
    """Return a program without equal pieces."""
    rng = np.random.default_rng(0)
    plan = list(zip(*(rng.integers(0, n, steps).tolist() for n in (4, 5, 5)), rng.normal(size=steps), strict=True))

    def f(x):
        v = [x * (1 + 0.1 * i) for i in range(5)]
        for kind, a, b, c in plan:
            if kind == 0:
                v[a] = fnp.sin(v[b])
            elif kind == 1:
                v[a] = v[a] * float(c) * 0.5 + v[b] * 0.5
            elif kind == 2:
                v[a] = fnp.tanh(v[a] + v[b])
            else:
                v[a] = v[b] * 0.7 - v[a] * 0.1
        return fnp.sum(sum(v))

    return f


@pytest.mark.parametrize("x", [np.float64(0.3), X, np.linspace(0.1, 1.0, 10_000)], ids=["number", "few", "many"])
def test_long_programs_are_split(x, monkeypatch, tmp_path):
    """Check numbers, slots, and memory that is released, across the boundaries of pieces."""
    monkeypatch.setattr("funcgrad.transforms.compiled.source._LONG", 100)
    monkeypatch.setattr("funcgrad.transforms.compiled.source._PIECE", 40)
    fun = value_and_grad(irregular(150))
    fast = agrees(fun, x, x * 0.5, x * 2)
    assert fast.source.count("def run_") > 5
    fast.save(tmp_path / "kept.py", "kept")
    space = {"__name__": "kept"}
    exec(compile((tmp_path / "kept.py").read_text(), "kept.py", "exec"), space)
    assert not difference(space["kept"](x), fun(x))


def test_loops_and_branches_in_split_programs(monkeypatch):
    monkeypatch.setattr("funcgrad.transforms.compiled.source._LONG", 10)
    monkeypatch.setattr("funcgrad.transforms.compiled.source._PIECE", 4)
    f = lambda x: chain(600)(x) * (2.0 if x[0] > 0 else 3.0)
    agrees(f, X, -X)
    w = np.linspace(-1, 1, 16).reshape(4, 4)
    agrees(grad(recurrent), ({"w": w, "u": w[:, :3] * 0.5}, np.linspace(-1, 1, 400 * 3).reshape(400, 3)))


@pytest.mark.parametrize("size", [2_000, 10_000], ids=["kept between calls", "of the call"])
def test_released_names_are_reused_in_split_programs(size, monkeypatch):
    """Check that names of released values are reused, also inside loops and in a later piece."""
    monkeypatch.setattr("funcgrad.transforms.compiled.source._LONG", 10)
    monkeypatch.setattr("funcgrad.transforms.compiled.source._PIECE", 4)

    def f(x):
        for step in (fnp.sin, fnp.tanh):
            for _ in range(180):
                x = step(x * 1.1) * x + x
            x = fnp.exp(-x)
        return x

    x = np.linspace(0.1, 1.0, size)
    for fun in (f, grad(lambda x: fnp.sum(f(x)))):
        fast = agrees(fun, x, -x)
        assert fast.source.count("def run_") > 3
    assert "for _ in" in recorded_source(f, x)


def recorded_source(fun, *args):
    fast = recorded(fun)
    fast(*args)
    return fast.source


def test_split_programs_release_values(monkeypatch):
    """Check that a long chain of large arrays holds no more of them at once in pieces than in one."""
    monkeypatch.setattr("funcgrad.transforms.compiled.source._LONG", 20)
    monkeypatch.setattr("funcgrad.transforms.compiled.source._PIECE", 10)

    def f(x):
        for i in range(40):
            x = fnp.sin(x) * (1.0 + 0.01 * i)
        return fnp.sum(x)

    x = np.linspace(0.1, 1.0, 100_000)
    fast = agrees(f, x)
    tracemalloc.start()
    fast(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * x.nbytes


# ---- numbers by Python's functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.3, np.float64(0.3), X])
def test_exact_false(x):
    fun = grad(lambda x: fnp.sum(fnp.tanh(fnp.sin(x) * fnp.exp(x)) / x))
    fast = recorded(fun, exact=False)
    for _ in range(2):
        got, expected = fast(x), fun(x)
        assert type(got) is type(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-13)
    assert ("math_sin" in fast.source) == (np.ndim(x) == 0)


def test_exact_false_where_python_raises():
    fast = recorded(lambda x: fnp.exp(x), exact=False)
    assert fast(np.float64(1.0)) == np.exp(1.0)
    with np.errstate(over="ignore"):
        assert fast(np.float64(1e4)) == np.inf


# ---- source, report, saved modules -----------------------------------------------------------------------------------


def test_source_has_program_names():
    def loss(params, x):
        hidden = fnp.tanh(x @ params["w"])
        scale = fnp.sum(hidden)
        return scale * scale

    fast = agrees(loss, ({"w": np.ones((3, 2))}, X))
    text = fast.source
    assert text.startswith("def run(params_w, x, B):")
    assert "scale = " in text
    assert "hidden = fnp.tanh" in text


def test_report():
    def f(x):
        y = fnp.sin(x) * 1.0
        return fnp.sum(y) if x[0] > 0 else x

    fast = recorded(f)
    fast(X)
    fast(-X)
    report = fast.report()
    assert len(report.variants) == 2
    assert report.seconds is None
    recorded_, kept, statements, size = report.variants[1]
    assert recorded_ > kept > 0 < statements
    assert size == X.nbytes
    report = fast.report(X)
    assert all(seconds > 0 for seconds in report.seconds)
    assert any("fnp.sin(x)" in line for line, _ in report.lines)
    assert "a call:" in str(report)


def test_report_of_eager_function():
    fast = recorded(lambda x: fnp.sin(x) * x - x)
    fast(np.float64(0.5))
    with np.errstate(all="ignore"):
        report = fast.report(np.float64(np.inf))
    assert all(seconds > 0 for seconds in report.seconds)
    assert report.lines == ()
    assert fast.report(np.float64(0.5)).lines


def saved(fast, folder, check):
    """Run ``check`` in a process without funcgrad, next to the saved module ``kept``."""
    fast.save(folder / "kept.py", "kept")
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "for name in ('funcgrad', 'jax', 'toolz', 'optree', 'scipy'):\n    sys.modules[name] = None\n"
        f"import numpy as np\nfrom kept import kept\n{check}"
    )
    return subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout


RATE = 2.0


def raised(x, rate=RATE, *, more=RATE + 1.0):
    return x**rate + more


def test_saved_functions_with_defaults_and_others_on_their_line(tmp_path):
    on_one_line = (lambda xp, x: x * 2.0, lambda xp, x: x * 0.5)
    double, half = [elementwise(f"times_{i}", fun, dx=lambda x: x) for i, fun in enumerate(on_one_line)]
    power = elementwise("power_and_more", lambda xp, x: raised(x), dx=lambda x: 2.0 * x)
    f = lambda x: double(x) - half(x) + power(x)
    fast = recorded(f)
    assert not difference(
        fast(X), f(X)
    )  # an operation is compiled in its first call, which is no write of the function
    out = saved(fast, tmp_path, f"print(kept(np.array({X.tolist()})).tolist())")
    assert out.strip() == str(f(X).tolist())


def test_saved_module_of_a_lambda_can_be_imported(tmp_path):
    fast = recorded(lambda x: fnp.sin(x) * x)
    fast(X)
    fast.save(tmp_path / "kept.py")
    names = {}
    exec((tmp_path / "kept.py").read_text(encoding="utf-8"), names)
    assert not difference(names["function"](X), np.sin(X) * X)


def test_saved_module_needs_numpy_only(tmp_path):
    fun = value_and_grad(network)
    fast = recorded(fun)
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    fast(PARAMS, x)
    np.savez(tmp_path / "args.npz", x=x, **{f"p{i}": p for i, layer in enumerate(PARAMS) for p in layer[:1]})
    out = saved(
        fast,
        tmp_path,
        "params = [(np.linspace(-1, 1, 12).reshape(3, 4), np.ones(4)), "
        "(np.linspace(1, -1, 8).reshape(4, 2), np.zeros(2))]\n"
        "value, gradient = kept(params, np.linspace(-1, 1, 6).reshape(2, 3))\n"
        "print(value.hex(), [g.tobytes().hex() for layer in gradient for g in layer])",
    )
    value, gradient = fun(PARAMS, x)
    assert out.strip() == f"{value.hex()} {[g.tobytes().hex() for layer in gradient for g in layer]}"


def test_saved_module_with_nonfinite_results(tmp_path):
    """Check non-finite results: a saved module has no function to run instead, and gives no warning."""
    fast = recorded(grad(lambda x: fnp.sin(x * x) * x))
    fast(np.float64(0.5))
    assert "raise NotFinite" in fast.source
    call = (
        "np.seterr(all='ignore'); x = np.float64(0.7)\n"
        "print(kept(x).hex(), type(kept(x)).__name__, kept(np.float64(np.nan)), kept(np.float64(np.inf)))"
    )
    assert saved(fast, tmp_path, call).split() == [float(fast(np.float64(0.7))).hex(), "float64", "nan", "nan"]
    fast = recorded(lambda x: fnp.exp(x) * x, exact=False)
    fast(np.float64(0.5))
    call = "np.seterr(all='ignore'); print(kept(np.float64(1e4)), kept(np.float64(1.0)))"
    assert saved(fast, tmp_path, call).split() == ["inf", str(float(np.exp(1.0)))]


def test_saved_module_knows_its_branches(tmp_path):
    def f(x):
        return fnp.where(x > 0, x, -x) if fnp.sum(x) > 0 else fnp.cumsum(x)

    fast = recorded(f)
    fast(X)
    check = (
        "x = np.array([0.3, -1.2, 2.5])\n"
        "print(kept(x).tolist())\n"
        "for bad in (-x, x[:2]):\n"
        "    try:\n        kept(bad)\n    except (TypeError, ValueError) as error:\n        print(type(error).__name__)"
    )
    assert saved(fast, tmp_path, check).splitlines() == [str(f(X).tolist()), "ValueError", "TypeError"]
    fast(-X)
    assert "[-0.3" in saved(fast, tmp_path, "print(kept(-np.array([0.3, -1.2, 2.5])).tolist())")


def test_saved_running_sum_has_no_part_for_other_libraries(tmp_path):
    matrix = scipy.sparse.csr_array(np.eye(3))
    assert grad(lambda x: fnp.sum(matrix @ x))(X).tolist() == [1.0, 1.0, 1.0]  # from now on its class is known
    fast = recorded(grad(lambda x: fnp.sum(fnp.cumsum(x) ** 2)))
    found = fast(X).tolist()
    assert saved(fast, tmp_path, "print(kept(np.array([0.3, -1.2, 2.5])).tolist())").strip() == str(found)


def test_saving_without_program_raises(tmp_path):
    with pytest.raises(InputError, match="nothing has been recorded"):
        recorded(fnp.sin).save(tmp_path / "kept.py")


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("case", [row.cases[0] for row in ROWS if row.cases[0].live][::7], ids=lambda case: case.id)
def test_saved_operations(case, tmp_path):
    """Check that saved operations give the same bits; operations that use classes of this library raise InputError."""
    fun = gradient_of(case)
    fast = recorded(fun)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = fun(*case.primals)
        fast(*case.primals)
        try:
            fast.save(tmp_path / "kept.py", "kept")
        except InputError:
            return
        space = {"__name__": "kept"}
        exec(compile((tmp_path / "kept.py").read_text(), "kept.py", "exec"), space)
        assert not difference(space["kept"](*case.primals), expected)


#: Memory layouts of the factors of a product: where BLAS cannot take them, NumPy's matmul and dot round differently.
FACTORS = {
    "by rows": lambda a: a,
    "by columns": lambda a: a.T,
    "backwards": lambda a: a[::-1],
    "backwards in each row": lambda a: a[:, ::-1],
    "with gaps": lambda a: fnp.reshape(fnp.concatenate([a, 2 * a], 1), (4, 8))[:, ::2],
    "a column of a flipped row": lambda a: fnp.flip(a[0])[None, :].T,
}
PRODUCTS = {
    "as it is": lambda f: f,
    "grad": lambda f: grad(lambda x: fnp.sum(fnp.sin(f(x)))),
    "vjp": lambda f: lambda x: vjp(f, x)[1](f(x * 0.7))[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * 0.7,)),
}


@pytest.mark.parametrize("around", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("second", FACTORS.values(), ids=FACTORS)
@pytest.mark.parametrize("first", [f for name, f in FACTORS.items() if "column of" not in name])
def test_products_of_any_memory_layout(first, second, around):
    fun = around(lambda x: fnp.matmul(first(fnp.sin(x)), second(x)))
    fast = recorded(fun)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        for seed in range(12):
            x = random_numbers(4, 4, seed=seed)
            assert not difference(fast(x), fun(x))


def test_value_dependent_error_is_raised():
    """Check an error that depends on values: linearity is checked with numbers, and may hold for some only."""

    def f(x):
        y = x**0.5
        return transposing.linear_transpose(lambda z: 2 * z * fnp.sum(y), y)(fnp.sin(x))[0]

    fast = agrees(f, X * X, X * X + 1)
    for x in (-X, X * X, -X):
        with np.errstate(invalid="ignore"):
            if x[0] < 0:
                with pytest.raises(InputError):
                    fast(x)
            else:
                assert not difference(fast(x), f(x))


#: Reads of an array of four elements.
READ = {
    "a slice": lambda x: x[1:],
    "slices that make it up": lambda x: fnp.concatenate([x[1:], x[:1]]),
    "slices that meet": lambda x: x[1:] + x[:-1],
    "rows": lambda x: fnp.reshape(x, (2, 2))[1:],
    "one of all": lambda x: x[2],
    "with steps": lambda x: x[::2],
    "places": lambda x: x[np.array([0, 2])],
    "an element": lambda x: fnp.reshape(x, (2, 2))[:, 0],
}


@pytest.mark.parametrize("part", READ.values(), ids=READ)
def test_zero_cotangents_keep_sign(part):
    """Check the sign of zero cotangents: -0 added to zeros is 0, written over zeros it stays -0."""
    pull = lambda x, ct: vjp(part, x)[1](ct)[0]
    signs = np.array([-0.0, 0.0, -2.0, 1.0])
    fast = recorded(pull)
    for y in (signs + 1, signs, signs[::-1].copy(), -signs):
        ct = y.reshape(-1)[: np.size(part(y))].reshape(np.shape(part(y)))
        ct = ct if ct.ndim else ct[()]
        assert not difference(fast(y, ct), pull(y, ct))


@pytest.mark.filterwarnings("ignore::funcgrad.errors.EagerWarning")
@pytest.mark.parametrize("eager", [False, True])
def test_results_of_every_call_belong_to_caller(eager):
    closed, x = np.arange(6.0).reshape(2, 3), np.arange(3.0)

    def f(x):
        if eager:
            np.random.default_rng().normal()
        return closed, closed[0], x[1:], [x, x]

    fast = recorded(f)
    for _ in range(3):
        whole, row, part, pair = fast(x)
        for one in (whole, row, part, *pair):
            assert not np.shares_memory(one, closed)
            assert not np.shares_memory(one, x)
        assert not np.shares_memory(*pair)


def test_pullback_of_function_written_for_numpy():
    scaled = lambda x: x * float(x[0])
    _, pullback = vjp(recorded(scaled), X)
    _, expected = vjp(scaled, X)
    for ct in (X, 2 * X):
        np.testing.assert_allclose(pullback(ct)[0], expected(ct)[0])
    _, pullback = vjp(lambda x: 2 * recorded(scaled)(x), X)
    np.testing.assert_allclose(pullback(X)[0], 2 * expected(X)[0])
