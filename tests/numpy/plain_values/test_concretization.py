"""Answers of a tracer where Python or NumPy needs a plain value, its refusals, and their texts."""

import cmath
import copy
import inspect
import io
import math
import operator
import pickle
import re

import jax
import numpy as np
import pandas
import pytest
import scipy.spatial
from toolz import pipe

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jit, jvp, linearize, no_grad, stop_gradient, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, EscapedTracerError, InputError, ReadOnlyError
from funcgrad.graph import GraphTrace

pytestmark = pytest.mark.usefixtures("written")

X = np.array([1.0, 2.0, 3.0])


def in_grad(fun, x=2.0):
    return vjp(fun, x)[0]


def in_jvp(fun, x=2.0):
    return jvp(fun, (x,), (np.ones_like(x),))[0]


def in_vmap(fun, x=2.0):
    return vmap(fun)(np.stack([x, x * 0.0]))  # examples that differ, also in their truth values


def in_linearize(fun, x=2.0):
    return linearize(fun, x)[0]


def in_grad_of_jvp(fun, x=2.0):
    return in_grad(lambda y: in_jvp(fun, y), x)


def in_jvp_of_grad(fun, x=2.0):
    return in_jvp(lambda y: in_grad(fun, y), x)


def in_grad_of_vmap(fun, x=2.0):
    return in_grad(lambda y: vmap(fun)(y), np.stack([x, x * 0.0]))


def in_vmap_of_grad(fun, x=2.0):
    return in_vmap(lambda y: in_grad(fun, y), x)


SINGLE = [in_grad, in_jvp, in_linearize, in_grad_of_jvp, in_jvp_of_grad]
BATCHED = [in_vmap, in_grad_of_vmap, in_vmap_of_grad]
EVERYWHERE = [*SINGLE, *BATCHED]

single = pytest.mark.parametrize("run", SINGLE)
batched = pytest.mark.parametrize("run", BATCHED)
everywhere = pytest.mark.parametrize("run", EVERYWHERE)


def result_on_tracer(run, fun, x=2.0):
    """Return the result of ``fun`` on the tracer of ``x`` in ``run``."""
    results = []

    def body(t):
        assert isinstance(t, Tracer)
        results.append(fun(t))
        return t * 1.0

    run(body, x)
    return results[-1]


# ---- truth values ------------------------------------------------------------------------------------------


@single
def test_bool_of_one_value(run):
    assert result_on_tracer(run, bool) is True
    assert result_on_tracer(run, bool, 0.0) is False
    assert result_on_tracer(run, bool, np.array([[0.5]])) is True
    assert result_on_tracer(run, lambda x: x > 1) in (True, np.True_)
    assert result_on_tracer(run, lambda x: not x) is False
    assert result_on_tracer(run, lambda x: "yes" if x < 1 else "no") == "no"
    assert result_on_tracer(run, lambda x: max(x, 3.0)) == 3.0


@single
@pytest.mark.parametrize("x", [X, np.ones((0,)), np.ones((2, 2))])
def test_bool_of_several_elements_raises_as_numpy(run, x):
    with pytest.raises(ValueError, match=r"truth value|ambiguous") as expected:
        bool(x)
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        result_on_tracer(run, bool, x)


@batched
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: 1 if x > 1 else 0,
        lambda x: x and 1,
        lambda x: not x,
        lambda x: max(x, 1.0),
        lambda x: bool(x),
        lambda x: sorted([x, 1.0]),
    ],
)
def test_bool_of_batch_error_names_vmap_and_where(run, fun):
    with pytest.raises(ConcretizationError) as caught:
        result_on_tracer(run, fun)
    message = str(caught.value)
    assert message.startswith("bool(x): ")
    assert "2 examples of a vmap" in message
    assert "where(condition, a, b)" in message
    assert here(fun) in message


def test_bool_of_batch_with_equal_answers():
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(vmap(lambda x: x if x else 0.0)(x), x)
    np.testing.assert_array_equal(vmap(grad(lambda x: x * x if x and not x - x else 0.0))(x), 2 * x)


def check_agreeing_batch(fun):
    """Check ``fun`` on a batch whose examples take the same branch: plain, under other transforms, and recorded."""
    xs = np.array([[1.0, 2.0, -3.0], [4.0, 0.5, -0.1]])
    want = np.stack([fun(x) for x in xs])
    for run in (vmap(fun), jit(vmap(fun), backend="numpy")):
        np.testing.assert_allclose(run(xs), want, rtol=1e-15)
    slopes = np.stack([jacrev(fun)(x) for x in xs])
    np.testing.assert_allclose(vmap(jacrev(fun))(xs), slopes, rtol=1e-15)
    np.testing.assert_allclose(vmap(jacfwd(fun))(xs), slopes, rtol=1e-15)
    np.testing.assert_allclose(jacrev(lambda xs: vmap(fun)(xs).sum(0))(xs), np.moveaxis(slopes, 0, -2), rtol=1e-15)
    np.testing.assert_allclose(vmap(vmap(fun))(np.stack([xs, 2.0 * xs]))[0], want, rtol=1e-15)


def test_batch_with_equal_answers_takes_one_branch():
    """Python's questions about values are answered if all examples give the same answer."""
    check_agreeing_batch(lambda x: x * 2.0 if x[0] > 0 else x)
    check_agreeing_batch(lambda x: x[x > 0] ** 2)
    check_agreeing_batch(lambda x: x[(np.sign(x[0]) + 0.5).astype(int)] * x)
    check_agreeing_batch(lambda x: np.sum(x[np.nonzero(x > 0)]) * x)
    check_agreeing_batch(lambda x: np.compress(x > 0, x) * 3.0)
    check_agreeing_batch(lambda x: sum((x * i for i in range(np.argmin(x))), x))

    def stopped(x):
        y = x
        while np.max(np.abs(y)) > 1e-3:
            y = y * 0.5
        return y

    with pytest.raises(ConcretizationError, match="2 examples of a vmap"):
        vmap(stopped)(np.array([[1.0], [100.0]]))
    np.testing.assert_array_equal(vmap(stopped)(np.array([[1.0], [0.9]]))[0], stopped(np.ones(1)))


def test_recorded_batch_checks_answers_again():
    def fun(x):
        return x * 2.0 if x > 0 else x * 3.0

    recorded = jit(vmap(fun), backend="numpy")
    for xs in (np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([-1.0, -2.0])):
        np.testing.assert_array_equal(recorded(xs), [fun(x) for x in xs])
    with pytest.raises(ConcretizationError, match="2 examples of a vmap"):
        recorded(np.array([1.0, -1.0]))


def here(fun):
    """Return the text by which a message names the line of ``fun``."""
    return f"{__file__}:{inspect.getsourcelines(fun)[1]}"


def test_control_flow_on_values():
    def f(x):
        while x < 100:
            x = x * x
        return x

    assert grad(f)(3.0) == 8 * 3.0**7  # 3, 9, 81, 6561


# ---- integers and indices ----------------------------------------------------------------------------------


def captured_integer(fun):
    """Apply ``fun`` to a traced integer with one known value: derivatives never trace integers, graphs do."""
    index = fnp.argmax(GraphTrace().input(X))
    assert isinstance(index, Tracer)
    return fun(index)


def test_tracer_as_index():
    values = ["a", "b", "c"]
    assert values[captured_integer(operator.index)] == "c"
    assert captured_integer(lambda i: values[i]) == "c"
    assert captured_integer(lambda i: list(range(i))) == [0, 1]


@everywhere
def test_noninteger_tracer_as_index_raises(run):
    for use in (operator.index, range, lambda x: [1, 2, 3][x]):
        with pytest.raises(TypeError) as caught:
            result_on_tracer(run, use)
        assert isinstance(caught.value, ConcretizationError)
        assert "must be an integer, got float64[]" in str(caught.value)
        assert ".astype(int)" in str(caught.value)


def test_batched_index():
    for use in (operator.index, range, lambda i: "abc"[i]):
        with pytest.raises(
            ConcretizationError, match=r"^index\(x\): .* 3 examples of a vmap.*take\(table, x, axis=0\)"
        ):
            vmap(use)(np.arange(3))


def test_batched_index_of_an_ndarray():
    table = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ConcretizationError, match=r"numpy.asarray\(x\): .*take\(table, x, axis=0\)"):
        vmap(lambda i: table[i])(np.array([2, 0]))
    np.testing.assert_array_equal(vmap(lambda i: fnp.take(table, i, axis=0))(np.array([2, 0])), table[[2, 0]])


# ---- plain numbers and arrays ------------------------------------------------------------------------------

REFUSED = {
    "float": (float, "float(x)"),
    "int": (int, "int(x)"),
    "complex": (complex, "complex(x)"),
    "math.sin": (math.sin, "float(x)"),
    "math.floor": (math.floor, "math.floor(x)"),
    "math.ceil": (math.ceil, "math.ceil(x)"),
    "math.trunc": (math.trunc, "math.trunc(x)"),
    "math.fsum": (lambda x: math.fsum([x]), "float(x)"),
    "cmath.exp": (cmath.exp, "complex(x)"),
    "item": (lambda x: x.item(), "x.item()"),
    "tolist": (lambda x: x.tolist(), "x.tolist()"),
    "tobytes": (lambda x: x.tobytes(), "x.tobytes()"),
    "tofile": (lambda x: x.tofile(io.BytesIO()), "x.tofile()"),
    "dump": (lambda x: x.dump(io.BytesIO()), "x.dump()"),
    "dumps": (lambda x: x.dumps(), "x.dumps()"),
    "asarray": (np.asarray, "numpy.asarray(x)"),
    "array": (lambda x: np.array([x, x]), "numpy.asarray(x)"),
    "nested array": (lambda x: np.array([[1.0, x], [2.0, 3.0]]), "numpy.asarray(x)"),
    "array of dtype": (lambda x: np.array(x, dtype=np.float32), "numpy.asarray(x)"),
    "full": (lambda x: np.full(3, x), "numpy.asarray(x)"),
    "operator with a list of tracers": (lambda x: np.ones(2) * [x, x], "numpy.asarray(x)"),
    "assignment": (lambda x: operator.setitem(np.zeros((2, 3)), 0, x), "numpy.asarray(x)"),
    "assignment of a list": (lambda x: operator.setitem(np.zeros(2), slice(None), [x, x]), "numpy.asarray(x)"),
    "save": (lambda x: np.save(io.BytesIO(), x), "numpy.save"),
    "copyto": (lambda x: np.copyto(np.zeros(3), x), "numpy.copyto"),
    "put": (lambda x: np.put(np.zeros(3), [0], x), "numpy.put"),
}


@everywhere
@pytest.mark.parametrize(("ask", "name"), REFUSED.values(), ids=REFUSED)
def test_conversion_to_plain_value_raises(run, ask, name):
    with pytest.raises(TypeError) as caught:
        result_on_tracer(run, lambda x: ask(x))
    assert isinstance(caught.value, ConcretizationError)
    message = str(caught.value)
    assert message.startswith(f"{name}: "), message
    for part in ("float64[]", f", at {__file__}:"):
        assert part in message
    ways = "\n".join([message, *caught.value.__notes__])
    for part in ("has_aux=True", "stack"):
        assert part in ways
    if run in SINGLE:
        assert "would lose the derivative" in message
        assert "use stop_gradient(x)" in ways
    else:
        assert "would lose the batch" in message
        assert "each of the 2 examples of a vmap" in ways


#: The one remedy that the message contains, by the call that fails; the other remedies are absent.
REMEDIES = {
    "float": (lambda x: float(x), "Use x itself in place of float(x); if a constant is meant, use stop_gradient(x)."),
    "item": (lambda x: x.item(), "Use x itself in place of x.item(); if a constant is meant, use stop_gradient(x)."),
    "int": (lambda x: int(x), "If a constant is meant, use stop_gradient(x)."),
    "class": (lambda x: np.float64(x), "Leave numpy.float64 out: a traced value is used as it is, or converted by"),
    "array": (lambda x: np.array([x, x]), "Use funcgrad.numpy.array for numpy.array."),
    "dot": (lambda x: np.ones(1).dot(x), "Write a @ x (not a.dot(x)): NumPy's method accepts no traced"),
    "save": (lambda x: np.save(io.BytesIO(), x), "numpy.save accepts no traced values: pass stop_gradient(x) if"),
    "copyto": (lambda x: np.copyto(np.zeros(3), x), "For `a[i] = x` make a with funcgrad.numpy.zeros, empty or"),
    "setitem": (lambda x: operator.setitem(np.zeros(3), 0, x), "For `a[i] = x` make a with funcgrad.numpy.zeros,"),
    "tree": (lambda x: scipy.spatial.cKDTree([[x]]), "scipy.spatial.cKDTree accepts no traced values: pass stop_gr"),
    "frame": (lambda x: pandas.DataFrame({"a": fnp.ones(2) * x}), "pandas accepts no traced values here: compute"),
}


@pytest.mark.parametrize(("ask", "remedy"), REMEDIES.values(), ids=REMEDIES)
def test_message_has_one_remedy_and_notes_have_others(ask, remedy):
    with pytest.raises(ConcretizationError) as caught:
        grad(lambda x: ask(x) and x)(2.0)
    message = str(caught.value)
    line, found = message.split("`. ", 1) if "`. " in message else (message, "")
    assert f", at {__file__}:" in line
    assert found.startswith(remedy), message
    assert len(re.findall(r"\. [A-Z]", found)) == 0, "one sentence"
    assert len(caught.value.__notes__) >= 3
    assert not [note for note in caught.value.__notes__ if note in message]


def test_assignment_error_names_line_that_made_array():
    def f(x):
        a = np.zeros(3)
        a[0] = x
        return a.sum()

    with pytest.raises(ConcretizationError) as caught:
        grad(f)(2.0)
    assert str(caught.value).endswith("`a[0] = x`. For `a[i] = x` make a with funcgrad.numpy.zeros, empty or copy "
                                      "(not numpy's).")  # fmt: skip


def test_frames_of_other_packages_are_notes():
    with pytest.raises(ConcretizationError) as caught:
        grad(lambda x: pandas.DataFrame({"a": x * 1.0}).sum())(X)
    assert f", at {__file__}:" in str(caught.value)
    asked = [note for note in caught.value.__notes__ if note.startswith("The value was asked for at ")]
    assert len(asked) == 1
    assert "pandas" in asked[0]


def test_message_quotes_the_line():
    def f(x):
        y = x * 2
        return math.sqrt(y)  # this one

    with pytest.raises(ConcretizationError) as caught:
        grad(f)(2.0)
    line = inspect.getsourcelines(f)[1] + 2
    assert f", at {__file__}:{line} `return math.sqrt(y)  # this one`" in str(caught.value)


def test_message_line_is_outside_of_pipelines():
    with pytest.raises(ConcretizationError) as caught:
        grad(lambda x: pipe(x, fnp.sin, float))(2.0)
    assert f", at {__file__}:" in str(caught.value)
    assert "pipe(x, fnp.sin, float)" in str(caught.value)


def test_message_names_the_mode():
    with pytest.raises(ConcretizationError, match=r"got float64\[3\] in reverse mode, at "):
        grad(lambda x: np.asarray(x).sum())(X)
    with pytest.raises(ConcretizationError, match=r"in forward mode"):
        in_jvp(float)
    with pytest.raises(ConcretizationError, match=r"in batch mode"):
        in_vmap(float)


@everywhere
def test_element_assignment_raises_original_error(run):
    """NumPy replaces the error by a useless one; the transforms raise the original error."""
    with pytest.raises(ConcretizationError) as caught:
        result_on_tracer(run, lambda x: operator.setitem(np.zeros(3), 0, x))
    message = str(caught.value)
    assert "For `a[i] = x` make a with funcgrad.numpy.zeros, empty or copy (not numpy's)." in message
    assert f"{__file__}:" in message


def test_remedies_in_messages_work():
    def f(x):
        made = fnp.stack([x, fnp.array([x, 2.0]).sum(), stop_gradient(x)])
        chosen = fnp.where(np.array([True, False, True]), made, fnp.zeros(3))
        return fnp.concatenate([chosen, fnp.ones(1)]).sum(), (made, float(stop_gradient(x)))

    value, (made, constant) = grad(f, has_aux=True)(3.0)
    assert value == 1.0
    np.testing.assert_array_equal(made, [3.0, 5.0, 3.0])
    assert constant == 3.0


def test_no_grad_makes_constants():
    def f(x):
        with no_grad():
            numbers = [float(x), x.item(), np.asarray(x) + 0, math.exp(x), int(x), f"{x:.1f}"]
        return x * numbers[0], numbers

    slope, numbers = grad(f, has_aux=True)(2.0)
    assert slope == 2.0
    assert numbers == [2.0, 2.0, 2.0, math.exp(2.0), 2, "2.0"]
    assert jvp(lambda x: x * no_grad(float)(x), (2.0,), (1.0,)) == (4.0, 2.0)


def test_no_grad_keeps_batch():
    with no_grad(), pytest.raises(ConcretizationError):
        vmap(float)(X)

    def f(x):
        with no_grad():
            return vmap(float)(x)

    with pytest.raises(ConcretizationError):
        vjp(f, X)


def test_no_grad_keeps_inner_traces():
    with no_grad(), pytest.raises(ConcretizationError):
        grad(lambda x: x * float(x))(2.0)


# ---- writing -----------------------------------------------------------------------------------------------


@everywhere
def test_arguments_are_read_only(run):
    def write(x):
        x[0] = 1.0

    def add(x):
        x += 1.0

    def write_to_view(x):
        x.T[1:][0] = 1.0

    changes = [lambda x, name=name: setattr(x, name, 1.0) for name in ("real", "flat")]
    calls = {"sort": (), "partition": (1,), "fill": (1.0,), "put": ([0], 1.0)}
    changes += [lambda x, name=name, args=args: getattr(x, name)(*args) for name, args in calls.items()]
    for change in (write, add, write_to_view, *changes):
        with pytest.raises(ReadOnlyError) as caught:
            result_on_tracer(run, change, X)
        message = str(caught.value)
        call = "x += y" if change is add else "x[i] = y"
        for part in (f"{call}: an argument", "float64[", "x = x.copy()", f"{__file__}:"):
            assert part in message
    with pytest.raises(AttributeError):
        result_on_tracer(run, lambda x: setattr(x, "T", 1), X)
    with pytest.raises(InputError, match=r"x.dtype = ...: .*x = x.view\(dtype\)"):
        result_on_tracer(run, lambda x: setattr(x, "dtype", np.int64), X)
    with pytest.raises(ReadOnlyError, match=r"x.shape = ...: an argument .*x = x.reshape\(shape\)"):
        result_on_tracer(run, lambda x: setattr(x, "shape", (3, 1)), X)
    with pytest.raises(AttributeError, match=r"incompatible shape for in-place .* x of shape \(.*x.reshape\(shape\)"):
        result_on_tracer(run, lambda x: setattr(fnp.outer(x, x[:2]).T, "shape", (6,)), X)
    with pytest.raises(ValueError, match="cannot reshape array of size 6"):
        result_on_tracer(run, lambda x: setattr(fnp.outer(x, x[:2]), "shape", (5,)), X)
    with pytest.raises(ReadOnlyError, match=r"x.resize\(\): an argument .*x = x\[:n\]"):
        result_on_tracer(run, lambda x: x.resize(2), X)


@pytest.mark.parametrize(
    ("method", "args", "instead"),
    [
        ("view", (np.int64,), "x.astype(dtype)"),
        ("byteswap", (), "stop_gradient(x)"),
        ("setflags", (), "x.copy() to have an array"),
        ("getfield", (np.int8,), "x.astype(dtype)"),
        ("setfield", (1, np.int8), "x[...] = y"),
    ],
)
@everywhere
def test_methods_that_write_in_place(run, method, args, instead):
    with pytest.raises(InputError) as caught:
        result_on_tracer(run, lambda x: getattr(x, method)(*args), X)
    message = str(caught.value)
    for part in (f"x.{method}(): ", "float64[3]", instead, f"{__file__}:"):
        assert part in message


def test_augmented_assignment_rebinds():
    def f(x):
        start = x
        x += 1.0
        x *= 2.0
        x -= start
        x /= 2.0
        x **= 2
        return x, start

    (value, start), pull = vjp(f, 3.0)
    assert (value, start) == (6.25, 3.0)
    assert pull((1.0, 0.0)) == (2.5,)


# ---- copying and storing -----------------------------------------------------------------------------------


@everywhere
def test_copies_are_writable(run):
    def f(x):
        for make in (copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x, {"a": x}])[1]["a"], lambda x: x.copy()):
            made, before = make(x), repr(x)
            assert repr(made) == before
            made[0] = x[0] + 5.0
            yield repr(made) != before and repr(x) == before

    assert result_on_tracer(run, lambda x: list(f(x)), X) == [True] * 4


@everywhere
def test_pickling_tracer_raises(run):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(ConcretizationError, match=r"pickle: .*float64\[\].*stop_gradient\(x\)"):
            result_on_tracer(run, lambda x, protocol=protocol: pickle.dumps({"x": x}, protocol))


@everywhere
def test_tracers_are_unhashable(run):
    with pytest.raises(TypeError, match=r"^hash\(x\)"):
        result_on_tracer(run, hash)
    with pytest.raises(TypeError, match=r"^hash\(x\)"):
        result_on_tracer(run, lambda x: {x: 1})


# ---- printing ----------------------------------------------------------------------------------------------


def test_repr():
    assert re.fullmatch(
        r"ReverseTracer\(level=\d+, float64\[3\], value=array\(\[1\., 2\., 3\.\]\)\)",
        result_on_tracer(in_grad, repr, X),
    )
    assert re.fullmatch(
        r"ForwardTracer\(level=\d+, float64\[\], value=np.float64\(2\.0\)\)",
        result_on_tracer(in_jvp, repr, np.float64(2.0)),
    )
    assert re.fullmatch(r"ReverseTracer\(level=\d+, float64\[\], value=2\.0\)", result_on_tracer(in_grad, repr))
    assert re.fullmatch(
        r"BatchTracer\(level=\d+, float32\[2\], value=array\(\[\[1\., 1\.\],\n *\[0\., 0\.\]\], dtype=float32\)\)",
        result_on_tracer(in_vmap, repr, np.ones(2, np.float32)),
    )


def test_repr_of_nested_tracers():
    inner = result_on_tracer(in_grad_of_jvp, repr)
    assert re.fullmatch(
        r"ForwardTracer\(level=(\d+), float64\[\], value=ReverseTracer\(level=(\d+), float64\[\], value=2\.0\)\)", inner
    )
    levels = [int(n) for n in re.findall(r"level=(\d+)", inner)]
    assert levels[0] > levels[1]


def test_repr_of_large_values_is_short():
    text = result_on_tracer(in_grad, repr, np.zeros((100, 100)))
    assert len(text) < 300
    assert "float64[100, 100]" in text
    assert "..." in text


@everywhere
def test_str_repr_and_format_agree(run):
    kinds = (
        result_on_tracer(run, lambda x: [repr(x), f"{x!r}", np.array_repr(x)]),
        result_on_tracer(run, lambda x: [str(x), f"{x}", f"{x!s}"]),
    )
    described, shown = map(set, kinds)
    assert len(described) == len(shown) == 1
    assert "Tracer(level=" in described.pop()
    assert "Tracer(level=" not in shown.pop()


@single
def test_format_of_one_value(run):
    assert result_on_tracer(run, lambda x: f"{x:.2f}", 2.346) == "2.35"
    assert result_on_tracer(run, lambda x: f"{x:8.3e}", np.float32(1.5)) == "1.500e+00"
    assert result_on_tracer(run, lambda x: format(x, ".1f"), np.array(2.25)) == "2.2"
    assert result_on_tracer(run, lambda x: f"{x[0]:+.1f}", X) == "+1.0"
    with pytest.raises(TypeError, match=r"unsupported format string"):
        result_on_tracer(run, lambda x: f"{x:.2f}", X)


@batched
def test_format_of_a_batch(run):
    assert result_on_tracer(run, lambda x: f"{x:.2f}").startswith("[")


def test_printing_keeps_derivative(capsys):
    def f(x):
        print(x, f"{x:.1f}", repr(x))
        return x * x

    assert grad(f)(3.0) == 6.0
    assert "3.0" in capsys.readouterr().out


def test_array2string():
    assert result_on_tracer(in_grad, lambda x: np.array2string(x, precision=1), X) == "[1. 2. 3.]"


# ---- escaped tracers ---------------------------------------------------------------------------------------


def test_escaped_tracers():
    kept = []
    grad(lambda x: kept.append(x) or x * 1.0)(2.0)
    (x,) = kept
    for use in (bool, float, operator.index, np.asarray, lambda x: x + 1, lambda x: x.item(), np.sin, math.sin):
        with pytest.raises(EscapedTracerError):
            use(x)
    assert re.fullmatch(r"ReverseTracer\(level=\d+, float64\[\], value=2\.0\)", repr(x))
    assert f"{x:.1f}" == "2.0"  # a debugger may show it


# ---- JAX's tracers inside ----------------------------------------------------------------------------------


def test_jax_tracers_keep_jax_answers():
    assert jax.grad(lambda x: grad(lambda y: y * y if y > 1 else y)(x))(2.0) == 2.0
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(grad(lambda y: y * y if y > 1 else y))(2.0)
    with pytest.raises(ConcretizationError):
        jax.jit(grad(lambda y: y * float(y)))(2.0)
