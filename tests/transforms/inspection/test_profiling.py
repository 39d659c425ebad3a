"""``profile``: every figure against a clock that only the operations move, and against the graph of ``trace``.

The clock moves only inside the kernels and rules of the operations made here, so the seconds of each row are known
exactly; no test measures real time.
"""

import contextlib
import io
import json
import sys
import threading
import tracemalloc
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    blocks,
    checkpoint,
    checkpoint_chain,
    compose,
    compose_left,
    custom_vjp,
    debug_nans,
    grad,
    hessian,
    jvp,
    no_grad,
    pipe,
    profile,
    scan,
    shared_state,
    strict,
    tape,
    trace,
    transforms,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import InputError, NanError
from funcgrad.extend import elementwise
from funcgrad.transforms.inspection import metering, profile_report, profiling
from funcgrad.transforms.inspection.profile_report import Block, Pass, Profile, describe_seconds, flames

X = np.linspace(0.1, 1.0, 5)


class Clock:
    """Clock that moves only if told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def takes(self, seconds, value):
        self.now += seconds
        return value


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for module in (metering, profiling):
        monkeypatch.setattr(module, "perf_counter", made)
    return made


@pytest.fixture(autouse=True)
def nothing_stays_open():
    yield
    assert not shared_state.open_traces
    assert blocks.none_open()
    assert blocks.current() == blocks.State()
    assert (profiling._active, tracemalloc.is_tracing()) == ([], False)


@pytest.fixture
def slow(clock):
    """Return an operation ``2 * x`` that takes a second; its VJP rule takes ten seconds."""
    return elementwise("slow", lambda xp, x: clock.takes(1.0, 2.0 * x), dx=lambda x: clock.takes(10.0, 2.0))


def rows(found):
    return [(row.operation, row.calls, row.forward, row.backward) for row in found.operations]


def by_name(found, operation):
    (row,) = [row for row in found.operations if row.operation == operation]
    return row


# ---- seconds -------------------------------------------------------------------------------------------------


def test_seconds_of_operations_and_vjp_rules(slow, clock):
    def f(x):
        clock.takes(0.25, None)  # Python's function
        y = slow(slow(x))
        return fnp.sum(y)

    found = profile(f)(X)
    assert rows(found) == [("slow", 2, 2.0, 20.0), ("reduce_sum", 1, 0.0, 0.0)]
    assert by_name(found, "slow").kernel == found.kernels == 2.0
    assert found.passes == (
        Pass("forward", 2.25, 2.25, 0.25, found.passes[0].peak),
        Pass("backward", 20, 20, 0, found.passes[1].peak),
    )
    assert (found.seconds, found.measured, found.elsewhere) == (22.25, 22.25, 0.25)


def test_profile_by_line(slow):
    def f(x):
        y = slow(x)
        z = slow(y)
        return fnp.sum(slow(z) + slow(z))

    found = profile(f)(X)
    begin = f.__code__.co_firstlineno
    assert [(row.operation, row.source.line - begin, row.calls) for row in found.operations] == [
        ("slow", 1, 1),
        ("slow", 2, 1),
        ("slow", 3, 2),
        ("add", 3, 1),
        ("reduce_sum", 3, 1),
    ]
    assert [(row.operation, row.source.line - begin, row.forward, row.backward) for row in found.lines] == [
        ("slow", 1, 1.0, 10.0),
        ("slow", 2, 1.0, 10.0),
        (None, 3, 2.0, 20.0),
    ]
    assert all(row.source.path == __file__ and "slow" in row.source.text for row in found.lines)


@pytest.mark.parametrize("form", ["compose_left", "compose", "pipe", "grad of another"])
def test_profile_by_pipeline_stage(slow, form):
    def twice(x):
        return slow(slow(x))

    stages = (twice, fnp.square, slow, fnp.sum)
    made = {
        "compose_left": compose_left(*stages),
        "compose": compose(*reversed(stages)),
        "pipe": lambda x: pipe(x, *stages),
        "grad of another": lambda x: grad(lambda z: z * pipe(x, *stages))(1.0),
    }
    found = profile(made[form])(X)
    assert [(str(row.stage), row.calls, row.forward, row.backward) for row in found.stages if row.forward] == [
        ("1 twice", 2, 2.0, 20.0),
        ("3 slow", 1, 1.0, 10.0),
    ]
    assert [str(row.stage) for row in found.stages][:4] == ["1 twice", "2 square", "3 slow", "4 sum"]


def test_nested_transforms_count_no_second_twice(slow):
    """Check that the inner passes count as a part of the outer forward pass, with their VJP rules as backward time."""
    found = profile(lambda x: grad(lambda y: fnp.sum(slow(y)))(x) * x)(X)
    assert by_name(found, "slow")[3:6] == (1, 1.0, 10.0)
    assert (found.passes[0].measured, found.passes[1].measured) == (11.0, 0.0)
    assert found.elsewhere == 0.0
    batch = profile(lambda x: fnp.sum(vmap(lambda y: fnp.sum(slow(y)))(x)))(np.ones((3, 2)))
    assert by_name(batch, "slow")[3:6] == (1, 1.0, 10.0)
    forward = profile(lambda x: jvp(slow, (x,), (x,))[1])(X)
    assert by_name(forward, "slow")[3:5] == (1, 11.0)  # the JVP rule runs with the operation


def test_profiler_overhead_is_not_counted(slow, clock, monkeypatch):
    inside = {"__name__": "funcgrad.of_a_test", "takes": clock.takes, "frame": metering.user_frame}  # library code
    monkeypatch.setattr(metering, "user_frame", eval("lambda: takes(100.0, frame())", inside))
    found = profile(lambda x: fnp.sum(grad(lambda y: fnp.sum(slow(y) * y))(x)))(X)
    assert by_name(found, "slow")[3:7] == (1, 1.0, 20.0, 1.0)
    assert (found.measured, found.elsewhere) == (21.0, 0.0)
    assert found.own >= 500.0
    assert found.own % 100.0 == 0.0


def test_without_differentiating(slow):
    """Check the profile without differentiation, which measures a training step, for example."""

    def step(x):
        return x - 0.1 * grad(lambda x: fnp.sum(slow(x)))(x)

    found = profile(step, argnums=None)(X)
    assert rows(found) == [("slow", 1, 1.0, 10.0), ("reduce_sum", 1, 0.0, 0.0)]
    assert [one.name for one in found.passes] == ["forward"]
    assert found.passes[0].measured == 11.0
    assert found.svg().count("<title>slow: ") == 2


def test_operations_on_constants(slow):
    """Check that operations in a ``no_grad`` block have rows; those on ordinary arrays are the rest of a pass."""

    def f(x):
        with no_grad():
            hidden = slow(x)
        return fnp.sum(x * slow(np.ones(5)) + hidden)

    found = profile(f)(X)
    (row,) = [row for row in found.operations if row.operation == "slow"]
    assert row[3:] == (1, 1.0, 0.0, 1.0, 0, 40)
    assert found.passes[0].elsewhere == 1.0


def test_functions_inside_rules(slow):
    """Check that functions inside a user's rule count for the rule's operation if they run on ordinary arrays."""

    @custom_vjp
    def f(x):
        return slow(x)

    f.defvjp(lambda x: (slow(x), x), lambda x, ct: (ct * slow(x),))
    found = profile(lambda x: fnp.sum(f(x)))(X)
    assert [(row.operation, row.calls, row.forward, row.backward) for row in found.operations] == [
        ("f", 1, 1.0, 1.0),
        ("reduce_sum", 1, 0.0, 0.0),
    ]


def test_checkpoint_rerun_is_counted(slow):
    def block(x):
        return slow(x)

    found = profile(compose_left(checkpoint(block), fnp.sum))(X)
    assert [(row.operation, str(row.stage), row[3:6]) for row in found.operations] == [
        ("slow", "1 block", (2, 2.0, 10.0)),
        ("reduce_sum", "2 sum", (1, 0.0, 0.0)),
        ("checkpoint(block)", "None", (0, 0.0, 0.0)),
    ]
    chained = profile(lambda x: fnp.sum(checkpoint_chain(lambda h, y: slow(h * y), x, np.ones((3, 5)))))(X)
    assert by_name(chained, "slow").backward == 30.0
    assert by_name(chained, "slow").calls == by_name(chained, "slow").forward == by_name(chained, "multiply").calls > 3


def test_fastest_of_several_runs(clock):
    taken = iter([9.0, 3.0, 7.0, 2.0, 5.0, 4.0, 6.0])  # a first run, then three unmeasured and three measured, in turn
    uneven = elementwise("uneven", lambda xp, x: clock.takes(next(taken), x), dx=1)
    found = profile(lambda x: fnp.sum(uneven(x)), runs=3)(X)
    assert (found.passes[0].seconds, found.passes[0].measured) == (2.0, 5.0)
    assert by_name(found, "uneven").forward == 5.0
    assert next(taken, None) is None


# ---- bytes ---------------------------------------------------------------------------------------------------


def example(params, x):
    hidden = fnp.tanh(x @ params["w"] + params["b"])
    with no_grad():
        scale = fnp.max(hidden)
    picked = hidden[1:] * hidden[:-1]
    return fnp.sum(fnp.exp(-picked) / scale + fnp.stack([picked[0]] * len(picked)) ** 2)


PARAMS = {"w": np.ones((3, 2)) / 3, "b": np.zeros(2)}


def test_bytes_match_graph_and_tape():
    x = np.linspace(0.0, 1.0, 12).reshape(4, 3)
    found, graph = profile(example)(PARAMS, x), trace(example)(PARAMS, x)
    expected = {}
    for node in graph:
        calls, saved, results = expected.get((node.name, node.source), (0, 0, 0))
        # reverse mode's graph lacks the operations in no_grad, which are computed
        expected[node.name, node.source] = (calls + 1, saved + node.saved, results + node.bytes)
    measured = {(r.operation, r.source): (r.calls, r.saved, r.results) for r in found.operations}
    assert {key: figures[::2] for key, figures in measured.items()} == {k: v[::2] for k, v in expected.items()}
    of_x = trace(lambda p: example(p, x))(PARAMS)
    of_tape = tape(vjp(lambda p: example(p, x), PARAMS)[1])
    assert found.saved == of_tape.saved == of_x.saved
    assert sum(row.saved for row in found.operations) == sum(node.saved for node in of_tape)


def test_shared_saved_value_counts_once():
    found = profile(lambda x: fnp.sum(fnp.sin(x) * fnp.cos(x)))(X)
    assert [row.saved for row in found.operations] == [40, 40, 80, 0]
    assert found.saved == 3 * 40


def test_saved_batches_count_all_examples():
    found = profile(lambda w: fnp.sum(vmap(lambda x: fnp.sin(x * w))(np.ones((100, 5)))))(X)
    assert by_name(found, "sin").saved == by_name(found, "sin").results == 100 * 5 * 8


def test_peak_memory():
    x = np.ones(20_000)

    def deep(x):
        for _ in range(20):
            x = fnp.sin(x)
        return fnp.sum(x)

    def chained(x):
        return fnp.sum(checkpoint_chain(lambda h, _: fnp.sin(h), x, np.ones(20), budget=2))

    found, kept = profile(deep)(x), profile(chained)(x)
    assert found.saved == found.operations[0].saved == 20 * x.nbytes
    assert found.peak >= 19 * x.nbytes  # the first saved array is the argument itself
    assert 2 * x.nbytes < kept.peak < found.peak / 2
    assert profile(deep, memory=False)(x).peak is None
    assert profile(lambda x: x[0] * (np.zeros(50_000) + 1.0)[0])(x).peak >= 400_000


def test_nested_peaks():
    def f(x):
        first = np.ones(200_000).sum()
        inner = profile(lambda x: fnp.sum(fnp.sin(x)))(np.ones(100))
        assert inner.peak < 100_000
        return fnp.sum(x) * first

    assert profile(f)(X).peak >= 1_600_000


def test_running_tracemalloc_stays_on():
    tracemalloc.start()
    try:
        assert profile(fnp.sum)(X).peak > 0
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


# ---- what can be profiled ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fun", "names"),
    [
        (lambda x: fnp.outer(x, x), {"einsum"}),
        (lambda x: {"a": fnp.sin(x), "b": (fnp.cos(x[0]), 3, fnp.argmax(x))}, {"sin", "cos", "getitem", "argmax"}),
        (lambda x: fnp.exp(1j * x), {"multiply", "exp"}),
        (lambda x: fnp.sum(hessian(lambda y: fnp.sum(fnp.sin(y)))(x)), {"sin", "cos", "negative"}),
        (lambda x: fnp.sum(scan(lambda c, y: (c * y, c + y), x, np.ones((4, 5)))[1]), {"multiply", "add", "stack"}),
        (lambda x: fnp.linalg.svd(fnp.outer(x, x) + np.eye(5))[1], {"svd", "add"}),
        (lambda x: 3.0, set()),
        (lambda x: None, set()),
    ],
)
def test_results_of_all_kinds(fun, names):
    found = profile(fun)(X)
    assert names <= {row.operation for row in found.operations}
    differentiated = {row.operation for row in found.operations if row.backward}
    assert differentiated <= {row.operation for row in found.operations}
    assert bool(differentiated) == bool(names)
    assert str(found).startswith("profile of <lambda>: forward ")


def test_arguments():
    def f(a, b, *, scale):
        return fnp.sum(fnp.sin(a["x"]) * scale), {"aux": fnp.cos(b)}

    found = profile(f, argnums=(0, 1), has_aux=True)({"x": X, "n": 3}, X, scale=2.0)
    assert by_name(found, "sin").backward > 0
    assert by_name(found, "cos").calls == 1
    assert by_name(found, "cos").backward == 0
    assert [row.operation for row in profile(f, -1, has_aux=True)({"x": X}, X, scale=2.0).operations] == ["cos"]


def test_function_runs_requested_number_of_times():
    calls = []
    profile(lambda x: calls.append(type(x)) or fnp.sum(x), runs=2)(X)
    assert len(calls) == 5
    calls.clear()
    profile(lambda x: calls.append(type(x)) or fnp.sum(x), argnums=None)(X)
    assert calls == [np.ndarray] * 3


def test_writes_are_profiled():
    def f(x):
        out = fnp.zeros(5)
        out[1:] = x[1:]
        out *= x
        return fnp.sum(out)

    found = profile(f)(X)
    assert [row.operation for row in found.operations] == ["getitem", "write", "multiply", "reduce_sum"]
    assert all(row.forward > 0 and row.backward > 0 for row in found.operations)


def test_profiler_waits_for_jax_arrays(monkeypatch):
    waited = []
    wait = profiling._wait_until_ready
    monkeypatch.setattr(profiling, "_wait_until_ready", lambda x: waited.append(x) or wait(x))
    found = profile(lambda x: fnp.sum(x * x))(jnp.ones(3))
    assert [(row.operation, row.saved) for row in found.operations] == [("multiply", 24), ("reduce_sum", 0)]
    assert len(waited) >= 2 * 2 + 2 + 2  # both passes, twice; two operations and two VJP rules


def test_profiled_function_is_a_transformed_function():
    made = profile(example, argnums=1)
    assert repr(made) == "<profile of example>"
    assert made == profile(example, 1)
    assert transforms.profile is profile


# ---- nested, in threads, with errors -------------------------------------------------------------------------


def test_strict_and_debug_nans_inside_and_outside(slow):
    f = lambda x: fnp.sum(grad(lambda y: fnp.sum(slow(y) * y), strict=True)(x))
    assert by_name(profile(f)(X), "slow")[3:6] == (1, 1.0, 20.0)  # the VJP rules of the inner and of the outer pass
    with debug_nans():
        assert by_name(profile(f)(X), "slow")[3:6] == (1, 1.0, 20.0)
    with debug_nans(), np.errstate(all="ignore"), pytest.raises(NanError, match="in the value of log"):
        profile(lambda x: fnp.sum(fnp.log(x)))(np.zeros(2))
    with np.errstate(all="ignore"), pytest.raises(NanError, match="in the value of log"):
        profile(debug_nans(lambda x: fnp.sum(fnp.log(x))))(np.zeros(2))
    with pytest.raises(TypeError, match="cut by floor"):
        profile(lambda x: fnp.sum(x) + grad(strict(fnp.floor), strict=True)(x[0]))(X)


def test_nested_profiles(slow):
    inner = []

    def f(x):
        inner.append(profile(lambda y: fnp.sum(slow(y)))(np.ones(2)))
        return fnp.sum(slow(x))

    found = profile(f)(X)
    assert [by_name(one, "slow")[3:6] for one in inner] == [(1, 1.0, 10.0)] * 3
    assert [row.forward for row in found.operations if row.operation == "slow"][-1] == 1.0


def test_other_threads_are_not_measured(slow):
    """Check that neither a thread started by the function nor an unrelated thread is measured."""
    values = []

    def other():
        values.append(value_and_grad(lambda x: fnp.sum(fnp.cos(slow(x))))(X))

    def f(x):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        part = []
        thread = threading.Thread(target=lambda: part.append(fnp.exp(x)))  # on the same tape, but in another thread
        thread.start()
        thread.join()
        return fnp.sum(slow(x) * part[0])

    found = profile(f)(X)
    assert [row.operation for row in found.operations if row.calls] == ["slow", "multiply", "reduce_sum"]
    assert by_name(found, "slow")[3:6] == (1, 1.0, 10.0)
    assert len(values) == 3
    assert all(np.array_equal(value[1], values[0][1]) for value in values)


def profiles_of_threads():
    found = {}

    def work(k):
        x = np.linspace(0.1, 1.0, 1_000)
        found[k] = profile(lambda x: fnp.sum(sum(fnp.sin(x * i) for i in range(k))))(x)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_profiles_in_several_threads_at_once():
    """Check several threads; memory is the process's, so a peak may lack what another thread releases meanwhile."""
    whole = []
    for _ in range(5):
        found = profiles_of_threads()
        assert {k: by_name(one, "sin").calls for k, one in found.items()} == {1: 1, 2: 2, 3: 3, 4: 4}
        whole.append(all(one.peak > 8_000 * k for k, one in found.items()))
    assert any(whole)


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("run", [1, 2, 3])
def test_errors_and_interrupts(error, where, run):
    """Check that an error in any of the three runs leaves nothing open, see the fixture; the next call works."""
    ran = {"forward": 0, "backward": 0}

    def passing(place, value):
        ran[place] += 1
        if place == where and ran[place] == run:
            raise error("stop")
        return value

    op = elementwise("op", lambda xp, x: passing("forward", x * 1.0), dx=lambda x: passing("backward", 1.0))
    f = lambda x: fnp.sum(op(x))
    with pytest.raises(error, match="stop"):
        profile(f)(X)
    assert by_name(profile(f)(X), "op").calls == 1


def test_error_caught_by_function(slow, clock):
    def failing(x):
        slow(x)
        return fnp.linalg.cholesky(-fnp.diag(x))

    def f(x):
        with contextlib.suppress(np.linalg.LinAlgError):
            failing(x)
        return fnp.sum(slow(x))

    found = profile(f)(X)
    assert [row[3:6] for row in found.operations if row.operation == "slow"] == [(1, 1.0, 0.0), (1, 1.0, 10.0)]
    assert by_name(found, "cholesky")[3:6] == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: profile(3), r"profile: the first argument must be a function, got int 3"),
        (lambda: profile(fnp.sum, runs=0), r"profile: runs must be a positive integer, got int 0"),
        (lambda: profile(fnp.sum, runs="many"), r"profile: runs must be a positive integer, got str 'many'"),
        (lambda: profile(fnp.sum, argnums="x"), r"profile: argnums must be an int or a non-empty tuple"),
        (lambda: profile(fnp.sum, argnums=1)(X), r"profile: argnums=1 is out of range, got 1 positional"),
        (
            lambda: profile(fnp.sum)(3),
            r"profile: argnums=0 must name an argument with a floating-point leaf, got int 3",
        ),
        (lambda: profile(fnp.sum)("text"), r"profile: argument 0 is not an array or a number, got str 'text'"),
        (lambda: profile(lambda x: "text")(X), r"profile: result leaf 0 of the function is not an array"),
        (lambda: profile(fnp.sum, has_aux=True)(X), r"profile: with has_aux=True the function must return a pair"),
    ],
)
def test_invalid_calls_raise(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- tables and pictures -------------------------------------------------------------------------------------


@pytest.fixture
def found(slow):
    return profile(compose_left(lambda x: slow(slow(x)), fnp.exp, fnp.sum))(X)


def test_profile_table(found):
    head, _, *lines = str(found).split("\n")
    assert head.startswith("profile of sum_of_exp_of_<lambda>: forward 2 s, backward 20 s; tapes saved 120 B, the peak")
    stages, operations = lines[: lines.index("")], lines[lines.index("") + 1 : -2]
    assert [line.split()[:2] for line in stages] == [["stage", "calls"], ["1", "<lambda>"], ["2", "exp"], ["3", "sum"]]
    assert operations[0].split() == list(profile_report._HEAD)
    row = operations[1].split()
    assert row[0] == "slow"
    assert row[1].startswith("test_profiling.py:")
    assert " ".join(row[2:]) == "1 <lambda> 2 2 s 20 s 100% 80 B 80 B"
    assert " ".join(operations[-1].split()) == "elsewhere 0 µs 0 µs 0%"
    assert lines[-1].startswith(
        "Measured one by one: forward 2 s, backward 20 s; kernels of the operations 2 s. The prof"
    )
    assert repr(found) == f"<{head}>"


def test_long_tables_are_cut(slow):
    def f(x):
        for name in ("sin", "cos", "tanh", "exp"):
            x = getattr(fnp, name)(x)
        return fnp.sum(slow(x))

    lines = profile(f)(X).text(limit=1).split("\n")
    assert [line.split()[0] for line in lines[2:6]] == ["operation", "slow", "5", "elsewhere"]
    assert lines[4].split()[:3] == ["5", "more", "5"]


def test_profile_picture(found):
    picture = ElementTree.fromstring(found.svg())
    space = "{http://www.w3.org/2000/svg}"
    shapes = [
        (group.find(f"{space}title").text, float(group.find(f"{space}rect").get("width")))
        for group in picture.iter(f"{space}g")
    ]
    whole = shapes[[text for text, _ in shapes].index("backward 20 s")][1]
    widths = {text: width / whole for text, width in shapes if text.startswith(("forward", "slow", "1 "))}
    assert widths == {
        "forward 2 s": pytest.approx(0.1, abs=1e-3),
        "1 <lambda>: 2 s": pytest.approx(0.1, abs=1e-3),
        "1 <lambda>: 20 s": pytest.approx(1.0),
        "slow: 2 s, calls 2, saved 80 B": pytest.approx(0.1, abs=1e-3),
        "slow: 20 s, calls 2, saved 80 B": pytest.approx(1.0),
    }
    assert any("slow(slow(x))" in text for text, _ in shapes)


def test_flame_graph_of_empty_profile():
    assert ElementTree.fromstring(flames("<&>", [])).find("{http://www.w3.org/2000/svg}title").text == "<&>"
    ElementTree.fromstring(flames("no time", [Block("", 0.0, colour="#00796b")]))
    empty = Profile("f", (), (Pass("forward", 0.0, 0.0, 0.0, None),), own=0.0, saved=0)
    assert "elsewhere" in str(empty)
    ElementTree.fromstring(empty.svg())


def test_profile_as_json(found):
    told = json.loads(json.dumps(found.as_json()))
    assert told["operations"][0]["operation"] == "slow"
    assert told["operations"][0]["source"]["path"] == __file__
    assert told["operations"][0]["stage"] == {"number": 1, "name": "<lambda>"}
    assert [one["seconds"] for one in told["passes"]] == [2.0, 20.0]
    assert told["seconds"] == 22.0


def test_profile_in_notebooks(found):
    page = found._repr_html_()
    assert page.startswith("<svg")
    assert page.count("<tr>") == 1 + len(found.operations) + 1
    assert "1 &lt;lambda&gt;" in page
    assert found._repr_svg_() == found.svg()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("rich", [True, False])
def test_profile_show(found, rich, monkeypatch):
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    found.show()
    monkeypatch.undo()
    assert "profile of sum_of_exp" in screen.getvalue()
    assert (screen.getvalue() == f"{found}\n") is not rich
    plain = io.StringIO()
    with contextlib.redirect_stdout(plain):
        found.show()
    assert plain.getvalue() == f"{found}\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.5e-7, "0.15 µs"),
        (4.25e-5, "42.5 µs"),
        (0.002, "2 ms"),
        (1.0, "1 s"),
        (99.96, "100 s"),
        (7210.0, "7210 s"),
    ],
)
def test_seconds_are_human_readable(seconds, text):
    assert describe_seconds(seconds) == text
