"""Rows of Jacobians and Hessians that are computed once: the function's bits, for all values."""

import subprocess
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from fuzz.generating import generate
from fuzz.recorded import difference, examine

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jit, vjp, vmap
from funcgrad.transforms.compiled import agreeing, equal_rows

N = 61
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
DATA = RNG.normal(size=(N, N))
STEPS = np.where(np.eye(N) + np.eye(N, k=1) > 0, RNG.normal(size=(N, N)), -0.0)


def recorded(fun):
    return jit(fun, backend="numpy")


def is_short(fast):
    return "spread_out" in fast.source


FUNCTIONS = {
    "reversed": lambda x: fnp.sum(fnp.sin(x) * fnp.exp(x[::-1]) / (1 + x * x)),
    "neighbours": lambda x: fnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
    "three neighbours": lambda x: fnp.mean((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2 / (1 + x[1:-1] ** 2)),
    "square roots": lambda x: fnp.sum(abs(x) ** 1.5 * fnp.sqrt(abs(x))),
    "a choice": lambda x: fnp.sum(fnp.where(x > 0.3, x**3, fnp.exp(x)) * fnp.maximum(x, 0.1) ** 2),
    "in a circle": lambda x: fnp.sum(x * fnp.roll(x, 1) ** 2 + x**3),
    "joined": lambda x: fnp.sum(fnp.sin(fnp.concatenate([x, x[:1]])) ** 2 * 3.0),
    "as a matrix": lambda x: fnp.sum(fnp.sin(x[:60].reshape(6, 10)) ** 2 * fnp.cos(x[:60].reshape(6, 10))),
}
TRANSFORMS = {"hessian": hessian, "jacfwd": lambda f: jacfwd(grad(f)), "jacrev": lambda f: jacrev(grad(f))}
EXTREMES = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e200, -1e-320)


def points(x):
    """Generate other points, with NaN, infinities, extreme numbers or zeros of either sign at a few places."""
    yield from (x, -x, np.full_like(x, -0.0), np.zeros_like(x))
    for extreme in EXTREMES:
        other = x.copy()
        other[RNG.integers(len(x), size=3)] = extreme
        yield other


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_match_function_bitwise(fun, transform, dtype):
    fun, x = transform(fun), X.astype(dtype)
    fast = recorded(fun)
    fast(x)
    assert is_short(fast)
    with np.errstate(all="ignore"):
        for point in points(x):
            expected = fun(point)
            found = fast._fast_call((point,), {})  # the program itself, without fallback to the function
            assert not difference(found, expected)
            assert found.flags.owndata
            found[...] = 7.0
            assert not difference(fast(point), expected)


def computed(d, x):
    """Compute with a constant and a row, long enough for the rewriting to pay."""
    for _ in range(12):
        d = (d * x - d / 3.0) * abs(x)
    return d


#: Functions that need whole matrices: other results, matrix products, branches, constants that do not repeat.
NEEDING = {
    "its rows too": lambda d, x: (d := computed(d, x), d[3], d[::-1]),
    "product": lambda d, x: (d := computed(d, x), d @ x, d[:, ::2] @ x[::2], fnp.sum(d[:, 1:], 1)),
    "sums over rows": lambda d, x: fnp.sum(computed(d, x), 0),
    "turned and computed with": lambda d, x: (d := computed(d, x), d.T * x, d.T),
    "what does not repeat": lambda d, x: (computed(d, x) * DATA + d * 2.0, d * x + DATA),
    "a number of the data": lambda d, x: computed(d, x) * x[0],
    "other axes": lambda d, x: (d := computed(d, x), d.reshape(-1), d[:, None] * x[:, None], d[None]),
    "columns": lambda d, x: (d := computed(d, x), d[:, 5], d[:, 0:0], d[10:20], d[:, ::-3] * x[::-3]),
    "a question": lambda d, x: computed(d, x) if fnp.sum(d * x) > 0 else computed(d[::-1], x),
    "constants of several kinds": lambda d, x: computed(d, x) + STEPS * x - computed(STEPS[::-1], x) * 3.0,
    "a part of each": lambda d, x: (d := computed(d, x), fnp.stack([d, d]), fnp.tanh(d), d[0] + d[:, 0]),
}


@pytest.mark.parametrize("fun", NEEDING.values(), ids=NEEDING)
@pytest.mark.parametrize("constant", [np.eye(N), -np.eye(N)[:, ::-1], STEPS], ids=["eye", "turned", "two in a column"])
def test_operations_that_need_whole_rows(fun, constant):
    fast = recorded(lambda x: fun(constant.copy(), x))  # a copy, since the program reads reachable arrays at each call
    with np.errstate(all="ignore"):
        for point in (*points(X), *points(X)):
            assert not difference(fast(point), fun(constant, point))
    assert all(entry.eager is None for entry in fast._entries.values())
    assert is_short(fast)


def test_other_branches_get_own_variants():
    fun = hessian(lambda x: fnp.sum(fnp.sin(x) ** 2) if x[0] > 0 else fnp.sum(x[::-1] * x**2))
    fast = recorded(fun)
    for x in (X, -X, X, -X):
        assert not difference(fast(x), fun(x))
    assert fast.source.count("spread_out") == 2


def test_threads():
    fun = hessian(FUNCTIONS["reversed"])
    fast = recorded(fun)
    fast(X)
    at = [X * k for k in range(1, 7)]
    expected, wrong = [fun(x) for x in at], []

    def work(k):
        for _ in range(100):
            if difference(fast(at[k]), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_warnings_match_function():
    def heard(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = call(other)
        return result, {str(w.message) for w in found}

    fun = hessian(lambda x: fnp.sum(x * x * fnp.exp(x)))
    fast = recorded(fun)
    fast(X)
    assert is_short(fast)
    other = X.copy()
    other[3] = np.inf
    (found, said), (expected, should) = heard(fast), heard(fun)
    assert not difference(found, expected)
    assert said == should == {"invalid value encountered in multiply"}


def test_saved_module(tmp_path):
    fun = hessian(FUNCTIONS["neighbours"])
    fast = recorded(fun)
    fast(X)
    assert is_short(fast)
    fast.save(tmp_path / "kept.py", "kept")
    np.save(tmp_path / "x.npy", X * 3)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules['funcgrad'] = None\n"
        f"import numpy as np\nfrom kept import kept\nprint(kept(np.load({str(tmp_path / 'x.npy')!r})).tobytes().hex())"
    )
    said = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == np.ascontiguousarray(fun(X * 3)).tobytes().hex()


def test_mutable_arrays_do_not_count_as_constant_rows():
    eye = np.eye(N)
    fast = recorded(lambda x: (eye * x + eye) * x - eye * 2.0)
    for factor in (1.0, 2.0):
        eye *= factor
        assert not difference(fast(X), (eye * X + eye) * X - eye * 2.0)
        assert not is_short(fast)


def test_rewrite_only_where_it_pays():
    for size in (10, 50):
        eye = np.eye(size)
        fast = recorded(lambda x, eye=eye: vmap(lambda row: row @ x)(eye.copy() * x))
        x = X[:size]
        assert not difference(fast(x), vmap(lambda row, x=x: row @ x)(eye * x))
        assert not is_short(fast)
    fast = recorded(hessian(FUNCTIONS["reversed"]))
    fast(X[:10])
    assert not is_short(fast)


def test_memory_is_result_and_few_rows():
    """Check that the program needs memory for the result and a few rows only."""
    fast = recorded(hessian(FUNCTIONS["reversed"]))
    x = np.linspace(0.1, 1.0, 700)
    fast(x)
    fast(x)
    tracemalloc.start()
    result = fast(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.nbytes < peak < 1.1 * result.nbytes
    assert fast.source.count("(700, 700)") == 1


@pytest.mark.parametrize("rows", [np.zeros((20, 3)), np.eye(20)[:, :7], np.eye(40)[::-1] - np.eye(40, k=1)])
def test_repeated_rows_are_detected(rows):
    found = equal_rows._row_pattern(rows.view(np.int64) if rows.flags.c_contiguous else rows.copy().view(np.int64))
    short = np.take_along_axis(rows, found.first, 0)
    assert np.array_equal(np.take_along_axis(short, found.which, 0), rows)
    assert len(short) == max(len(np.unique(column)) for column in rows.T)


def test_unrepeated_rows_are_not_rewritten():
    assert equal_rows._row_pattern(np.arange(400).reshape(20, 20)) is None
    assert equal_rows._row_pattern(np.diag(np.arange(1, 21))[:, :1] * np.ones((20, 20), int)) is not None
    assert equal_rows._row_pattern(np.arange(20)[:, None] * (np.arange(40) == 3)) is None  # one column has all numbers


def test_pullback_of_unit_vectors():
    def fun(x):
        _, pull = vjp(lambda x: fnp.sin(x) * x + fnp.cos(x) * fnp.exp(x), x)
        return vmap(lambda ct: pull(ct)[0])(np.eye(N))

    fast = recorded(fun)
    for x in (X, -X, X * 2):
        assert not difference(fast(x), fun(x))
    assert is_short(fast)


def test_random_programs(monkeypatch):
    """Check random programs, with small arrays too, where the rewriting does not pay."""
    done = []

    def is_faster(self):
        done.append(bool(self._short))
        return True

    for name, value in {"_MIN_ROWS": 2, "_MIN_RATIO": 1, "_SPARSE": 0}.items():
        monkeypatch.setattr(equal_rows, name, value)
    monkeypatch.setattr(equal_rows._RewrittenGraph, "is_faster", is_faster)
    monkeypatch.setattr(agreeing, "_TRIALS_IF_SMALL", agreeing._TRIALS_IF_LARGE)  # ``examine`` has other arguments
    found = [examine(generate(78, number)) for number in range(40)]
    assert all(kind == "agree" or (kind == "not recorded" and why) for kind, why in found)
    assert sum(done) > 5
