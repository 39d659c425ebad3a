"""NumPy's functions, operators with arrays on the left, and JAX's operators, applied to tracers."""

import inspect
import operator
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from helpers import in_one_test
from operations import checks
from operations.cases import Case, kind_of, named_in_errors, random_like, rows
from operations.names import look_up

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, NotDifferentiableError
from funcgrad.numpy import protocols
from funcgrad.numpy.ufuncs import UFUNCS

pytestmark = pytest.mark.usefixtures("written")

X = np.array([0.5, 1.5, 2.5])
MATRIX = np.array([[0.5, 1.5, -2.5], [1.0, -3.0, 0.25]])

#: NumPy converts arguments to arrays without dispatch, so it raises an error; funcgrad's functions work.
NOT_ASKED = {
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "format_float_positional",
    "format_float_scientific",
    "from_dlpack",
    "fromiter",
    "full",
    "full_like",
    "isfortran",
    "isscalar",
    "kaiser",
    "require",
}
#: Their results are texts: see test_concretization.py and test_grids.py.
PRINTING = {"array2string", "array_repr", "array_str"}
#: Its entries are arbitrary; see below.
ARBITRARY = {"empty_like"}
#: Functions without an argument that can be traced.
STATIC = {
    "base_repr",
    "binary_repr",
    "bitwise_count",
    "broadcast_shapes",
    "diag_indices",
    "empty",
    "eye",
    "frombuffer",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "identity",
    "indices",
    "isdtype",
    "isnat",
    "mask_indices",
    "mintypecode",
    "ones",
    "printoptions",
    "promote_types",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
    "tri",
    "tril_indices",
    "triu_indices",
    "typename",
    "zeros",
}


#: Functions that take a function or write to an argument: they have separate tests.
ELSEWHERE = {
    "copyto",
    "fill_diagonal",
    "fromfunction",
    "frompyfunc",
    "linalg.cholesky",
    "linalg.eig",
    "linalg.eigh",
    "linalg.eigvals",
    "linalg.eigvalsh",
    "linalg.lstsq",
    "linalg.matmul",
    "linalg.matrix_transpose",
    "linalg.vecdot",
    "piecewise",
    "place",
    "put",
    "put_along_axis",
    "putmask",
    "real_if_close",
}


def shared():
    """Return the names of the functions that funcgrad.numpy and numpy share."""
    found = set()
    for prefix, own in (("", fnp), ("linalg.", getattr(fnp, "linalg", None)), ("fft.", getattr(fnp, "fft", None))):
        for name in getattr(own, "__all__", ()):
            theirs = look_up(np, prefix + name)
            if callable(theirs) and not isinstance(theirs, (type, types.ModuleType)):
                found.add(prefix + name)
    return found


SHARED = shared()
ROWS = {row.op.name: row for row in rows() if row.op.name in SHARED and row.op.fun is None}


def test_every_shared_name_is_tested():
    assert len(SHARED) > 200
    assert SHARED - NOT_ASKED - STATIC - PRINTING - ARBITRARY - ELSEWHERE - set(ABOUT) - set(ROWS) == set()


def results(run, case: Case, fun):
    """Return values and derivatives of ``fun`` on a case's arguments, computed by ``run``."""
    live = [i for i, leaf in enumerate(case.leaves) if kind_of(leaf.value) in "fc" and (leaf.live or not case.live)]
    primals = tuple(case.values[i] for i in live)

    def of_live(*values):
        full = case.values
        for i, value in zip(live, values, strict=True):
            full[i] = value
        return case.call(fun, full)

    return run(of_live, primals, np.random.default_rng(0)) if primals else None


def reverse(fun, primals, rng):
    outs, pullback = vjp(fun, *primals)
    cts = tuple(random_like(o, rng) if kind_of(o) in "fc" else np.zeros(np.shape(o), checks.FLOAT0) for o in outs)
    return outs, pullback(cts)


def forward(fun, primals, rng):
    return jvp(fun, primals, tuple(random_like(p, rng) for p in primals))


def mapped(fun, primals, rng):
    return vmap(lambda *x: fun(*x), axis_size=2, in_axes=0)(*[np.stack([p, p]) for p in primals])


def assert_identical(got, want):
    assert type(got) is type(want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_identical(g, w)
    elif hasattr(want, "dtype"):
        assert got.dtype == want.dtype
        if want.dtype != checks.FLOAT0:
            np.testing.assert_array_equal(got, want, strict=True)
    else:
        assert got == want


@pytest.mark.parametrize("name", [name for name in ROWS if name not in NOT_ASKED])
def test_numpy_function_calls_funcgrad_function(name):
    """Compare in reverse mode, in forward mode, and under ``vmap`` where all arrays can be mapped."""
    theirs = look_up(np, name)
    for case in ROWS[name].cases:
        can_be_mapped = case.leaves and all(leaf.mapped for leaf in case.leaves)
        for run in (reverse, forward, *[mapped] * bool(can_be_mapped)):
            with named_in_errors(f"{case.id}, {run.__name__}"):
                assert_identical(results(run, case, theirs), results(run, case, case.fun))


def test_every_ufunc_maps_to_its_function():
    for ufunc, own in UFUNCS.items():
        assert own is getattr(fnp, own.__name__), ufunc


@pytest.mark.parametrize(
    "make",
    [
        np.arange,
        np.array,
        np.asanyarray,
        np.asarray,
        np.ascontiguousarray,
        np.asfortranarray,
        lambda x: np.full(3, x),
        lambda x: np.full_like(np.ones(3), x),
    ],
)
def test_functions_without_dispatch_raise(make):
    message = refusal_message(ConcretizationError, make, np.array(2.0))
    assert "Arrays of traced values: funcgrad.numpy's stack" in message


# ---- ufuncs ------------------------------------------------------------------------------------------------


def results_in_all_traces(fun, x):
    """Return the results of ``fun`` in every kind of trace; check that they agree, and derivatives by differences."""
    want = fun(x)
    value, pullback = vjp(fun, x)
    tangent = np.cos(np.arange(x.size, dtype=float)).reshape(x.shape)
    pushed = jvp(fun, (x,), (tangent,))
    batched = vmap(fun)(np.stack([x, x]))
    np.testing.assert_array_equal(value, want)
    np.testing.assert_array_equal(pushed[0], want)
    np.testing.assert_allclose(batched[1], want, rtol=1e-14)
    ct = np.sin(1.0 + np.arange(np.size(want))).reshape(np.shape(want))
    h = 1e-6
    slope = (fun(x + h * tangent) - fun(x - h * tangent)) / (2 * h)
    np.testing.assert_allclose(pushed[1], slope, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(np.sum(pullback(ct)[0] * tangent), np.sum(ct * pushed[1]), rtol=1e-12)
    return value


UFUNC_METHODS = {
    "add.reduce": lambda x: np.add.reduce(x),
    "add.reduce of all": lambda x: np.add.reduce(x, axis=None),
    "add.reduce of an axis": lambda x: np.add.reduce(x, 1, keepdims=True),
    "add.reduce of some": lambda x: np.add.reduce(x, initial=2.0, where=[True, False, True], dtype=float),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=(0, 1)),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=1),
    "minimum.reduce": lambda x: np.minimum.reduce(x),
    "add.accumulate": lambda x: np.add.accumulate(x),
    "add.accumulate of an axis": lambda x: np.add.accumulate(x, axis=1, out=None),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x),
    "add.outer": lambda x: np.add.outer(x, X),
    "multiply.outer": lambda x: np.multiply.outer(X, x),
    "subtract.outer": lambda x: np.subtract.outer(x, x * 2.0),
    "divide.outer of numbers": lambda x: np.divide.outer(2.0, x),
    "multiply.outer of lists": lambda x: np.multiply.outer([1.0, 2.0], x),
    "dtype": lambda x: np.multiply(x, 2.0, dtype=np.float64),
    "no out": lambda x: np.multiply(x, 2.0, out=None, where=True, casting="same_kind", order="K", subok=True),
}


@pytest.mark.parametrize("fun", UFUNC_METHODS.values(), ids=UFUNC_METHODS)
def test_ufunc_methods(fun):
    results_in_all_traces(fun, MATRIX)


@pytest.mark.parametrize("ufunc", [np.logical_and, np.logical_or])
def test_logical_reductions(ufunc):
    x = np.array([[1.0, 0.0], [2.0, 3.0]])
    want = ufunc.reduce(x)
    assert jvp(lambda x: (x, ufunc.reduce(x)), (x,), (x,), has_aux=True)[2].tolist() == want.tolist()
    np.testing.assert_array_equal(vmap(ufunc.reduce)(np.stack([x, x]))[1], want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.power, np.arctan2, np.sin, np.negative])
def test_dtype_argument_matches_numpy(ufunc, dtype):
    args = [X, X + 0.5][: ufunc.nin]
    try:
        want = ufunc(*args, dtype=dtype)
    except TypeError:
        with pytest.raises(TypeError):
            vjp(lambda *a: ufunc(*a, dtype=dtype), *args)
        return
    got, pullback = vjp(lambda *a: ufunc(*a, dtype=dtype), *args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert [ct.dtype for ct in pullback(np.ones_like(want))] == [np.dtype(float)] * ufunc.nin


@pytest.mark.parametrize("casting", ["no", "safe"])
def test_casting_matches_numpy(casting):
    def add(x):
        return np.add(x, x, dtype=np.float32, casting=casting)

    with pytest.raises(TypeError) as expected:
        add(X)
    assert refusal_message(type(expected.value), add) == str(expected.value)


def refusal_message(error, fun, x=X):
    """Return the message with which every kind of trace refuses ``fun``."""
    messages = []
    for run in (lambda: vjp(fun, x), lambda: jvp(fun, (x,), (x,)), lambda: vmap(fun)(np.stack([x, x]))):
        with pytest.raises(error) as caught:
            run()
        messages.append("\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())]))
    assert len(set(messages)) == 1 or error is ConcretizationError
    return messages[0]


def test_nondifferentiable_ufunc_methods_return_constants():
    """Values decide, not the trace: a comparison of traced values is a constant for derivatives."""
    assert jvp(lambda x: (x, np.logical_xor.reduce(x > 1)), (X,), (X,), has_aux=True)[2] == np.logical_xor.reduce(X > 1)


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (np.frompyfunc(lambda v: v, 1, 1), "<lambda> (vectorized): "),
        (np.is_busday, "numpy.is_busday"),
        (lambda x: np.busday_offset(x, 1), "numpy.busday_offset"),
    ],
)
def test_function_without_rule_raises_by_name(fun, name):
    message = refusal_message(NotDifferentiableError, fun)
    assert message.startswith(name)
    for part in ("funcgrad has no rule for it, got float64[3]", "stop_gradient(x)", f"{__file__}:"):
        assert part in message


def test_foreign_ufuncs_raise():
    assert refusal_message(NotDifferentiableError, lambda x: scipy.special.mathieu_a(2, x)).startswith("mathieu_a: ")


# ---- functions that describe arrays ------------------------------------------------------------------------


ABOUT = {
    "shape": np.shape,
    "ndim": np.ndim,
    "size": np.size,
    "size along an axis": lambda x: np.size(x, 0),
    "result_type": lambda x: np.result_type(x, np.float32),
    "common_type": lambda x: np.common_type(x, np.ones(2, complex)),
    "can_cast": lambda x: np.can_cast(np.float32, np.result_type(x)),
    "min_scalar_type": lambda x: np.min_scalar_type(x),
    "iscomplexobj": np.iscomplexobj,
    "isrealobj": np.isrealobj,
    "iterable": np.iterable,
    "einsum_path": lambda x: np.einsum_path("ij,ij->i", x, x)[0],
    "diag_indices_from": lambda x: [i.tolist() for i in np.diag_indices_from(x[:, :2])],
    "tril_indices_from": lambda x: [i.tolist() for i in np.tril_indices_from(x)],
    "triu_indices_from": lambda x: [i.tolist() for i in np.triu_indices_from(x, 1)],
    "issubdtype": lambda x: np.issubdtype(x.dtype, np.floating),
    "may_share_memory": lambda x: np.may_share_memory(x, X),
    "shares_memory": lambda x: np.shares_memory(X, x),
}


@pytest.mark.parametrize("ask", ABOUT.values(), ids=ABOUT)
def test_functions_of_shape_and_dtype(ask):
    want = ask(MATRIX)
    for run in (
        lambda f: vjp(f, MATRIX, has_aux=True)[2],
        lambda f: jvp(f, (MATRIX,), (MATRIX,), has_aux=True)[2],
    ):
        assert run(lambda x: (x, ask(x))) == want
    seen = []
    vmap(lambda x: seen.append(ask(x)) or x)(np.stack([MATRIX, MATRIX]))
    assert seen == [want]


@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like, np.empty_like, lambda x: np.full_like(x, 2.0)])
def test_arrays_created_like_a_tracer_are_constants(make):
    x = MATRIX.astype(np.float32)
    seen = []
    vjp(lambda x: seen.append(make(x)) or x, x)
    vmap(lambda x: seen.append(make(x)) or x)(np.stack([x, x]))
    for made in seen:
        assert type(made._val) is np.ndarray
        assert made.dtype == np.float32
        assert made.shape == (2, 3)
        made[0, 0] = 1.0  # the result can be written to


@pytest.mark.parametrize("home", ["linalg", "fft"])
def test_numpy_namespaces_map_to_funcgrad_namespaces(monkeypatch, home):
    """``numpy.linalg.norm`` is ``funcgrad.numpy.linalg.norm``, never ``funcgrad.numpy.norm``."""
    theirs = {"linalg": np.linalg.norm, "fft": np.fft.fft}[home]
    name = theirs.__name__
    own = types.ModuleType(f"funcgrad.numpy.{home}")
    own.__all__ = [name]
    setattr(own, name, lambda x: fnp.sum(x * x))
    monkeypatch.setitem(sys.modules, own.__name__, own)
    monkeypatch.setattr(protocols, "_FUNCTIONS", {})
    np.testing.assert_array_equal(grad(lambda x: theirs(x))(X), 2 * X)
    own.__all__.clear()
    monkeypatch.setattr(protocols, "_FUNCTIONS", {})
    assert refusal_message(NotDifferentiableError, lambda x: theirs(x)).startswith(f"numpy.{home}.{name}: ")


def test_tracers_inside_lists():
    assert grad(lambda x: np.concatenate([x, [1.0], x * 2.0]).sum())(X).tolist() == [3.0] * 3
    assert grad(lambda x: np.stack([x[0], 2.0, x[1] * x[2]]).sum())(X).tolist() == [1.0, 2.5, 1.5]
    assert grad(lambda x: np.where(X > 1, x, 0.0).sum())(X).tolist() == [0.0, 1.0, 1.0]
    assert grad(lambda x: np.sum([1.0, 2.0], where=np.array([True, False])) * np.sum(x))(X).tolist() == [1.0] * 3


@pytest.mark.parametrize("make", [np.array, np.asarray, np.asanyarray, np.ascontiguousarray])
def test_numpy_array_of_tracers(make):
    for fun in (make, lambda x: make([x, x]), lambda x: make([x[0], 1.0])):
        message = refusal_message(ConcretizationError, fun)
        assert "stack" in message
        assert "not numpy.array([x, y])" in message


def test_array_namespace():
    def norm(x):
        xp = x.__array_namespace__(api_version="2023.12")
        assert xp is fnp
        return xp.sqrt(xp.sum(x * x))

    np.testing.assert_allclose(grad(norm)(X), X / np.linalg.norm(X), rtol=1e-14)


# ---- a plain left operand ----------------------------------------------------------------------------------


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.lt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.floordiv,
]
LEFT = {
    "ndarray": np.array([2.0, 3.0, 4.0]),
    "row": np.array([[2.0], [3.0]]),
    "0-d ndarray": np.array(2.0),
    "float32 ndarray": np.array([2.0, 3.0, 4.0], np.float32),
    "integers": np.array([2, 3, 4]),
    "float64": np.float64(2.0),
    "float32": np.float32(2.0),
    "int64": np.int64(2),
    "float": 2.0,
    "int": 2,
    "bool": True,
    "list": [2.0, 3.0, 4.0],
    "tuple": (2.0, 3.0, 4.0),
}


@in_one_test({"apply": OPERATORS, "left": LEFT.values(), "x": [X, np.float32(X), np.float64(1.5)]})
def test_operand_on_the_left(left, x, apply):
    # NumPy compares and repeats a list next to a scalar as a Python object
    want = apply(np.array(left) if isinstance(left, (list, tuple)) and not np.ndim(x) else left, x)
    got, pullback = vjp(lambda x: apply(left, x), x)
    assert_like(got, want)
    pushed = jvp(lambda x: apply(left, x), (x,), (np.ones_like(x),))
    assert_like(pushed[0], want)
    batched = vmap(lambda x: apply(left, x))(np.stack([x, x]))
    assert_like(batched[1], want)
    if kind_of(want) == "f":
        ones = np.ones_like(want)
        (pulled,) = pullback(ones)
        assert pulled.dtype == np.asarray(x).dtype
        np.testing.assert_allclose(np.sum(pulled, dtype=float), np.sum(pushed[1], dtype=float), rtol=1e-6)


def assert_like(got, want):
    want = np.asarray(want)
    assert np.asarray(got).dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-14)


def test_derivatives_with_an_operand_on_the_left():
    a = np.array([2.0, 3.0, 4.0])
    checks_ = {
        "a * x": (lambda x: a * x, a),
        "a - x": (lambda x: a - x, -np.ones(3)),
        "a / x": (lambda x: a / x, -a / X**2),
        "a ** x": (lambda x: a**x, np.log(a) * a**X),
        "float64 / x": (lambda x: np.float64(2.0) / x, -2.0 / X**2),
        "list - x": (lambda x: [1.0, 2.0, 3.0] - x, -np.ones(3)),
    }
    for fun, want in checks_.values():
        np.testing.assert_allclose(vjp(fun, X)[1](np.ones(3))[0], want, rtol=1e-14)
        np.testing.assert_allclose(jvp(fun, (X,), (np.ones(3),))[1], want, rtol=1e-14)
    np.testing.assert_allclose(grad(lambda x: MATRIX @ x @ np.ones(2))(X), MATRIX.sum(0), rtol=1e-14)
    np.testing.assert_allclose(grad(lambda x: (MATRIX.tolist() @ x).sum())(X), MATRIX.sum(0), rtol=1e-14)


def test_nested_lists_with_tracers_in_operators():
    assert grad(lambda x: (x * [x[0], 1.0, 2.0]).sum())(X) == pytest.approx([2.0 * X[0], 1.0, 2.0])


# ---- JAX arrays --------------------------------------------------------------------------------------------

JAX_LEFT = [op for op in OPERATORS if op is not operator.eq and op is not operator.ne]


@pytest.mark.parametrize("apply", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("swap", [False, True], ids=["left", "right"])
@pytest.mark.parametrize("x", [X, jnp.asarray(X)], ids=["ndarray", "jax"])
def test_jax_array_with_a_tracer(apply, swap, x):
    other = jnp.array([2.0, 3.0, 4.0])

    def fun(x):
        return apply(x, other) if swap else apply(other, x)

    want = fun(jnp.asarray(x))
    value, pullback = vjp(fun, x)
    pushed = jvp(fun, (x,), (np.ones(3) if x is X else jnp.ones(3),))
    batched = vmap(fun)(x[None])
    for got in (value, pushed[0], batched[0]):
        assert isinstance(got, jax.Array)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-14)
    if kind_of(want) == "f":
        expected = jax.grad(lambda x: fun(x).sum())(jnp.asarray(x))
        np.testing.assert_allclose(pullback(jnp.ones(3))[0], expected, rtol=1e-14)
        np.testing.assert_allclose(pushed[1], expected, rtol=1e-14)


def test_jax_arrays_defer_inside_jit():
    def f(x, c):
        return (c * x + c @ x - c / x).sum()

    x, c = jnp.asarray(X), jnp.array([2.0, 3.0, 4.0])
    np.testing.assert_allclose(jax.jit(grad(f))(x, c), jax.grad(f)(x, c), rtol=1e-13)


@pytest.mark.parametrize(
    "use",
    [
        jnp.sin,
        jnp.asarray,
        lambda x: jnp.multiply(jnp.ones(3), x),
        lambda x: jnp.stack([x, x]),
        lambda x: jnp.where(True, x, 0.0),
        lambda x: jnp.full(3, x[0]),
        lambda x: jnp.ones(3).at[0].set(x[0]),
        jnp.ones(3).dot,
        jax.lax.sin,
        jax.jit(lambda x: x),
        jax.vmap(jnp.sin),
        jax.grad(jnp.sum),
        jax.device_put,
    ],
)
def test_jax_functions_raise_for_tracers(use):
    """JAX's functions do not dispatch; they must raise an error, not return a wrong result silently."""
    for x in (X, jnp.asarray(X)):
        for run in (lambda x: vjp(use, x), lambda x: jvp(use, (x,), (x,)), lambda x: vmap(use)(x[None])):
            with pytest.raises((TypeError, ValueError)) as caught:
                run(x)
            said = [str(caught.value), *getattr(caught.value, "__notes__", ())]
            assert "__jax_array__" not in said[0] or any("interop.from_jax(f)" in text for text in said)


def test_jax_functions_accept_constants():
    def f(x):
        made = fnp.array([2.0, 3.0, 4.0])
        assert isinstance(jnp.ones(3) * made, Tracer)
        return x * np.asarray(jnp.array(np.asarray(made)))

    assert vjp(f, X)[1](np.ones(3))[0].tolist() == [2.0, 3.0, 4.0]


# ---- NumPy programs ----------------------------------------------------------------------------------------


def test_unchanged_numpy_program_is_differentiated():
    """Compare a function written for NumPy with the same function of funcgrad.numpy, in all transforms."""

    def model(np, w, x):
        hidden = np.tanh(np.dot(x, w.T) + np.sum(w, axis=1))
        scores = np.exp(hidden - np.max(hidden))
        return np.mean(np.log(np.sum(scores)) - hidden[0]) + np.sum(np.abs(w)) / np.size(w)

    def plain(w, x):
        return model(np, w, x)

    def own(w, x):
        return model(fnp, w, x)

    np.testing.assert_array_equal(grad(plain)(MATRIX, X), grad(own)(MATRIX, X))
    np.testing.assert_array_equal(hessian(plain)(MATRIX, X), hessian(own)(MATRIX, X))
    xs = np.stack([X, X * 2.0])
    np.testing.assert_array_equal(
        vmap(grad(plain), in_axes=(None, 0))(MATRIX, xs), vmap(grad(own), in_axes=(None, 0))(MATRIX, xs)
    )
    np.testing.assert_allclose(
        vmap(grad(plain), in_axes=(None, 0))(MATRIX, xs)[1], grad(plain)(MATRIX, xs[1]), rtol=1e-12
    )


def test_error_names_the_line_of_the_numpy_call():
    def f(x):
        y = np.sin(x)
        return np.is_busday(y)

    with pytest.raises(NotDifferentiableError) as caught:
        grad(f)(X)
    line = inspect.getsourcelines(f)[1] + 2
    assert re.search(rf"{re.escape(__file__)}:{line} `return np\.is_busday\(y\)`", str(caught.value))
