"""The printed source of an operation is the code that runs; watched runs make the records of plain runs."""

import inspect
import traceback
from contextlib import nullcontext

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import in_one_test
from operations.cases import named_in_errors, rows

import funcgrad.numpy as fnp
from funcgrad import blocks, grad, jvp, tree, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.extend import elementwise, linear, primitive, source
from funcgrad.primitives import arithmetic, comparison, products, reductions
from funcgrad.primitives import elementwise as functions
from funcgrad.primitives.index_spec import index_from_spec
from funcgrad.reverse import (
    backward,
    call_vjp,
    number_of,
    operation_of,
    parents_of,
    reachable,
    record_function,
    saved_by,
)

ROWS = [row for row in rows() if any(case.live for case in row.cases)]


class Watch:
    """A watcher that changes nothing; ``seen`` lists the operations that traces processed.

    With ``writes=False`` writes in place are not shown to it, as to the watcher of the first call of a function.
    """

    nans = all = False

    def __init__(self, writes=True):
        self.seen, self.meter, self.writes = [], self, writes

    def begin(self, trace):
        return None

    def note_stopped(self, trace, args):
        pass

    def backward_pass(self, pending):
        return None

    def begin_pass(self):
        return call_vjp

    def process(self, trace, primitive, args, params):
        self.seen.append(primitive.name)
        return trace.process(primitive, args, params)


def recorded(case):
    """Return the records of a run in order: operation, positions of its parents, saved values."""
    values = [x.copy() if isinstance(x, np.ndarray) else x for x in case.values]
    fun = case.of_live(case.fun, values)
    _, nodes = record_function(lambda *leaves: list(fun(*leaves)), [values[i] for i in case.live])
    found = reachable(nodes)
    places = {number: place for place, number in enumerate(sorted(found))}
    return [
        (operation_of(node), sorted(places[-number_of(parent)] for parent in parents_of(node)), saved_by(node))
        for _, node in sorted(found.items())
        if parents_of(node)
    ]


def places_read(saved):
    """Return the positions that a read touches; the index is saved as written or as ``index_spec`` describes it."""
    index, arrays, shape, _ = saved
    places = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return np.asarray(places[index if arrays is None else index_from_spec(index, arrays)])


def same(a, b):
    """Return whether two saved values are equal in type and bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return True if callable(a) or hasattr(a, "__dict__") or hasattr(type(a), "__slots__") else a == b


@in_one_test({"row": ROWS})
def test_watched_run_makes_same_records(row):
    """Fast paths against general rules: a watched run makes the records of the plain run, in the same order."""
    for case in [case for case in row.cases if case.live]:
        with named_in_errors(case.id):
            check_records(case)


def check_records(case):
    plain = recorded(case)
    watch = Watch()
    with blocks.Block(lambda state: state._replace(watcher=watch)):
        watched = recorded(case)
    assert [r[:2] for r in watched] == [r[:2] for r in plain]
    for (operation, _, saved), (_, _, again) in zip(plain, watched, strict=True):
        if operation == "getitem":
            saved, again = [(places_read(each), *each[2:]) for each in (saved, again)]
        if operation == "write":  # it also saves the written positions, in one of two forms, and nothing else
            continue
        assert same(saved, again), (operation, saved, again)


OPERANDS = {
    "complex number": np.complex128(0.3 + 0.7j),
    "complex array": np.array([0.3 + 0.7j, -1.2 + 0.4j, 0.5 - 0.1j]),
    "one complex number": np.array([0.6 - 0.2j]),
    "number": np.float64(1.3),
    "array": np.array([1.1, 0.4, 0.7]),
    "single": np.array([1.1 + 1j, 0.4, -0.7], np.complex64),
    "Python's complex number": 0.2 + 1.5j,
    "Python's number": 1.7,
    "Python's integer": 2,
}


@in_one_test(
    {
        "apply": [fnp.add, fnp.subtract, fnp.multiply, fnp.divide, fnp.power],
        "left": OPERANDS,
        "right": OPERANDS,
        "traced": [(0,), (1,), (0, 1)],
    }
)
def test_watched_run_of_complex_operands_makes_same_records(apply, left, right, traced):
    values = [OPERANDS[left], OPERANDS[right]]
    if any(type(values[i]) is int for i in traced):
        return

    def records():
        fun = lambda *leaves: apply(*[leaves[traced.index(i)] if i in traced else values[i] for i in (0, 1)])
        primals = [values[i] for i in traced]
        tangents = [np.ones_like(x)[()] for x in primals]
        out, (node,) = record_function(lambda *leaves: [fun(*leaves)], primals)
        pulled = backward([(node, np.ones_like(out[0]))], len(traced))
        pushed = jvp(fun, primals, tangents)[1], jvp(lambda *x: jvp(fun, x, tangents)[1], primals, tangents)[1]
        cotangents = tuple([np.asarray(ct, np.asarray(x).dtype)[()] for ct, x in zip(pulled, primals, strict=True)])
        second = lambda: vjp(lambda *x: vjp(fun, *x)[1](np.ones_like(out[0])), *primals)[1](cotangents)
        return out, operation_of(node), saved_by(node), pulled, pushed, second()

    plain, watch = records(), Watch()
    with blocks.Block(lambda state: state._replace(watcher=watch)):
        watched = records()
    assert same(plain, watched), (plain, watched)
    for ct, i in zip(plain[3], traced, strict=True):
        assert np.asarray(ct).dtype == np.asarray(values[i]).dtype
        assert np.shape(ct) == np.shape(values[i])


INDICES = {
    "number": 1,
    "slice": slice(1, None),
    "array": np.array([2, 0]),
    "mask": np.array([True, False, True]),
    "mask of all axes": np.arange(6).reshape(3, 2) % 2 == 0,
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("traced", [False, True])
def test_watched_write_makes_same_records(index, traced):
    def written(x):
        y = x * 2.0
        y[index] = x[0, 0] if traced else 0.5
        return [y * x]

    def records():
        _, nodes = record_function(written, [np.arange(1.0, 7.0).reshape(3, 2)])
        found = [node for _, node in sorted(reachable(nodes).items())]
        return [(operation_of(node), len(parents_of(node))) for node in found if parents_of(node)]

    plain = records()
    watch = Watch()
    with blocks.Block(lambda state: state._replace(watcher=watch)):
        assert records() == plain


READS = [slice(0, 1), slice(1, None), (slice(1, None), slice(None)), ..., (slice(None), None), 0, (..., slice(0, 1)),
         slice(None, None, -1), np.array([0, 2]), np.array([True, False, True]), [1, 0]]  # fmt: skip
POINT = np.arange(1.0, 7.0).reshape(3, 2)


def records_of(fun, watch):
    """Return the records of a run of ``fun``, of which the first part is watched, or not: ``fun(x, block)``."""
    block = blocks.Block(lambda state: state._replace(watcher=watch)) if watch else nullcontext()
    found = reachable(record_function(lambda x: [fun(x, block)], [POINT])[1])
    places = {number: place for place, number in enumerate(sorted(found))}
    nodes = [node for _, node in sorted(found.items()) if parents_of(node)]
    return [(operation_of(node), sorted(places[-number_of(parent)] for parent in parents_of(node))) for node in nodes]


def assert_same_records(fun):
    plain = records_of(fun, None)
    for writes in (True, False):
        assert records_of(fun, Watch(writes)) == plain


def pulled(fun):
    """Return the gradient of ``fun``, which is watched; the backward pass is not watched."""

    def gradient(x, block):
        with block:
            out, pullback = vjp(fun, x)
        return pullback(out * 1.0)[0]

    return gradient


@pytest.mark.parametrize("first", READS, ids=str)
@pytest.mark.parametrize("whole", [False, True])
def test_watched_reads_have_same_derivative(first, whole):
    """The first call of a function is watched, a repetition is not: ``checkpoint`` compares their operations."""
    for second in READS:

        def fun(x, second=second):
            y = x * x if whole else x
            parts = fnp.sum(fnp.sin(y[first])) * fnp.sum(fnp.cos(y[second]))
            return parts * fnp.sum(y) if whole else parts

        assert_same_records(pulled(fun))


@pytest.mark.parametrize("mode", ["reverse", "forward", "batch"])
@pytest.mark.parametrize("first", READS, ids=str)
def test_watched_writes_have_same_derivative(first, mode):
    def fun(x):
        for second in READS:
            copied, filled = x * x, fnp.zeros((3, 2))
            for index in (first, second):
                copied[index] = fnp.sin(x[index])
                copied[index] *= 2.0
                filled[index] = fnp.sin(x[index])
            x = x + copied * filled
        return fnp.sum(x)

    def pushed(x):
        return vmap(fun)(fnp.stack([x, x * x])) if mode == "batch" else jvp(fun, (x,), (fnp.sin(x),))[1]

    assert_same_records(pulled(fun if mode == "reverse" else pushed))


VIEWS = {
    "flip": fnp.flip, "transpose": fnp.transpose, "diagonal": fnp.diagonal, "reshape": lambda x: x.reshape(-1)[::-1],
    "swapped": lambda x: fnp.swapaxes(x, 0, 1), "rotated": fnp.rot90,
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("written", [False, True])
def test_watched_views_have_same_layout(name, written):
    """A copy keeps the order in memory, which a rule computes one level out: both levels know what is a view."""

    def fun(x):
        made = fnp.copy(VIEWS[name](x))
        if written:
            made[:1] *= 2.0
        return fnp.sum(fnp.sin(made) * made)

    def examples(x, block):
        with block:
            return vmap(lambda scale: grad(fun)(x * scale))(np.array([1.0, 2.0]))

    assert_same_records(examples)


def test_results_without_derivative_are_writable():
    """Results may come from a fast path, from the general path, or from ``bind`` under a watcher."""
    results = []

    def each(x, y):
        found = [fnp.heaviside(x, 0.5), fnp.copysign(2.0, x), fnp.floor(x), fnp.modf(x)[1], fnp.nextafter(2.0, x)]
        for ans in found:
            ans[0] = y
            results.append(ans)
        return sum(map(fnp.sum, found))

    both = grad(each, (0, 1))
    for x in (np.array([0.5, -1.5]), np.array([0.5, -1.5], np.float32), jnp.asarray([0.5, -1.5])):
        assert both(x, 2.0)[1] == 5.0
        with blocks.Block(lambda state: state._replace(watcher=Watch())):
            assert both(x, 2.0)[1] == 5.0
        assert jvp(each, (x, 2.0), (x, 1.0))[1] == 5.0
    assert all(type(ans) is Tracer for ans in results)


@in_one_test({"row": ROWS})
def test_watched_run_gives_same_classes(row):
    """Whether a traced value can be written to a result does not depend on the path that computed the result."""
    for case in [case for case in row.cases if case.live]:
        with named_in_errors(case.id):
            check_classes(case)


def check_classes(case):
    kinds = []
    for watch in (None, Watch()):
        values = [x.copy() if isinstance(x, np.ndarray) else x for x in case.values]
        fun = case.of_live(case.fun, values)
        with blocks.Block(lambda state, watch=watch: state._replace(watcher=watch)) if watch else nullcontext():
            outs = []
            record_function(lambda *leaves, fun=fun, outs=outs: outs.extend(fun(*leaves)) or outs, case.primals)
        kinds.append([type(out) for out in outs])
    plain, watched = kinds
    assert plain == watched


BINARY = [op for op in vars(arithmetic).values() if hasattr(op, "primitive") and op.__code__.co_argcount == 2]
PAIRS = {
    "alike": (np.array([[0.5, 1.5], [2.5, 3.5]]), np.array([[1.25, 0.75], [3.0, 2.0]])),
    "left-row": (np.array([0.5, 1.5]), np.array([[1.25, 0.75], [3.0, 2.0]])),
    "right-column": (np.array([[0.5, 1.5], [2.5, 3.5]]), np.array([[1.25], [3.0]])),
    "left-number": (np.float64(0.5), np.array([1.25, 0.75])),
    "right-number": (np.array([0.5, 1.5]), np.float64(1.25)),
    "numbers": (np.float64(0.7), np.float64(1.3)),
    "singles": (np.array([0.5, 1.5], np.float32), np.array([[1.25], [3.0]], np.float32)),
    "mixed": (np.array([0.5, 1.5], np.float32), np.array([[1.25], [3.0]])),
    "matrices": (np.array([[0.5, 1.5], [2.5, 3.5]]), np.array([[1.25, 0.75, 1.0], [3.0, 2.0, 0.5]])),
    "matrix-vector": (np.array([[0.5, 1.5], [2.5, 3.5]]), np.array([1.25, 0.75])),
}


def fits(op, values):
    try:
        op(*values)
    except ValueError:
        return False
    return True


MEETINGS = [
    pytest.param(op, pair, id=f"{op.__name__}-{pair}")
    for op in (*BINARY, products.matmul)
    for pair, values in PAIRS.items()
    if fits(op, values)
]


@pytest.mark.parametrize(("op", "pair"), MEETINGS)
def test_watched_forward_mode_is_bitwise_equal(op, pair):
    """Fast paths against general rules, for any moving arguments, alone, around and inside of reverse mode."""
    values = PAIRS[pair]

    def moved(places):
        def fun(*moving):
            rest = iter(moving)
            return op(*[next(rest) if i in places else x for i, x in enumerate(values)])

        return fun, tuple(values[i] for i in places)

    def outcome(places):
        fun, x = moved(places)
        wide = tuple(1 + np.arange(v.size, dtype=v.dtype).reshape(v.shape)[()] for v in x)
        out, tangent = jvp(fun, x, wide)
        if not np.issubdtype(np.asarray(out).dtype, np.inexact):
            return out, tangent
        squares = lambda y: (fnp.abs(y) if np.iscomplexobj(out) else y) ** 2
        summed = lambda *x: fnp.sum(squares(fun(*x)))
        each = tuple(range(len(x)))
        around = jvp(lambda *x: grad(summed, each)(*x), x, wide)
        inside = grad(lambda *x: fnp.sum(squares(jvp(fun, x, wide)[1])), each)(*x)
        return out, tangent, around, inside

    for places in ((0,), (1,), (0, 1)):
        plain = outcome(places)
        with blocks.Block(lambda state: state._replace(watcher=Watch())):
            watched = outcome(places)
        if op is arithmetic.power and pair == "numbers":  # Python's operator rounds differently from NumPy's kernel
            for a, b in zip(tree.leaves(plain), tree.leaves(watched), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)
        else:
            assert same(plain, watched), (places, plain, watched)


ALL = [
    operation
    for module in (arithmetic, comparison, functions, products, reductions)
    for name, operation in vars(module).items()
    if hasattr(operation, "primitive") and operation.__module__ == module.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize("operation", ALL, ids=lambda op: op.primitive.name)
def test_operation_source_fits_a_screen(operation):
    try:
        text = source(operation)
    except InputError:
        assert inspect.getsource(operation)  # the operation is defined in a file
        return
    assert operation.primitive.name in text
    for section in text.split("\n\n# ---- "):
        assert len(section.splitlines()) <= 75


def test_source_of_numpy_functions():
    assert "np" not in source(fnp.sin).splitlines()[0]
    assert "kernel: numpy.sin" in source(fnp.sin)
    assert "def multiply(x, y, /, out=None, **options):" in source(fnp.multiply)
    assert "def matmul(x, y):" in source(fnp.matmul)
    for function in (fnp.mean, fnp.float_power):
        with pytest.raises(InputError, match="source: an operation is needed"):
            source(function)


def test_source_of_user_operations():
    cube = elementwise("cube", lambda xp, x: x**3, dx=lambda x: 3 * x * x)
    assert "def cube(x, /):" in source(cube)
    twice = linear("twice", lambda xp, x: 2 * x, transpose=lambda ct: 2 * ct, batch="leading")
    assert "def twice(" in source(twice)
    last = primitive("last", lambda xp, x: x[..., -1], vjps=[lambda ct, x: ct], batch="leading")
    assert "def last(" in source(last)


def test_tracebacks_show_source():
    def fails(ct, x):
        raise ZeroDivisionError

    broken = primitive("broken", lambda xp, x: x + 1, vjps=[fails], batch="elementwise")
    try:
        grad(lambda x: fnp.sum(broken(x)))(np.ones(2))
    except ZeroDivisionError as error:
        shown = "".join(traceback.format_exception(error))
    assert "in broken" in shown
    assert "rule_0(ct, x)" in shown


def test_records_of_plain_runs_hold_no_tracer():
    some = [case for row in ROWS for case in row.cases if case.live][:200]
    for saved in [saved for case in some for _, _, saved in recorded(case)]:
        assert not any(isinstance(x, Tracer) for x in saved)
