"""Dtypes, memory layouts, and inputs that are not arrays of numbers: NumPy's promotion; derivatives keep dtypes."""

import enum
import itertools
import operator
import re
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from helpers import at_least, in_one_test
from ml_dtypes import bfloat16, int4  # they come with JAX
from operations import cases
from operations.comparing import assert_all_close, assert_like, assert_transposed

import funcgrad.numpy as fnp
from funcgrad import as_written, grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, no_grad, value_and_grad, vjp, vmap
from funcgrad.errors import FuncgradError, InputError

FLOATS = [np.float16, bfloat16, np.float32, np.float64, np.longdouble]
COMPLEX = [np.complex64, np.complex128, np.clongdouble]
WHOLE = [bool, np.int8, np.uint8, np.int32, np.int64, np.uint64]
NUMBERS = [True, 2, 2.5, 1j]  # Python numbers, which are weakly typed
X = np.array([1.0, 2.0])


def named(value):
    return getattr(value, "__name__", None) or str(value)


def inexact(x):
    return np.asarray(x).dtype in (*map(np.dtype, FLOATS), *map(np.dtype, COMPLEX))


@pytest.fixture
def _silent():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        yield


# ---- every operation ---------------------------------------------------------------------------------------

ROWS = [row for row in cases.rows() if any(case.live for case in row.cases)]
#: Other dtypes than those of ``check_dtypes`` of ``operations/checks.py``.
SAME = {"bfloat16": bfloat16, "longdouble": np.longdouble}
PAIRED = {np.longdouble: np.clongdouble}
#: Rows left out: LAPACK and NumPy's einsum do not support bfloat16, NumPy's histograms and windows compute in double.
#: SciPy does not support bfloat16; its linear algebra, solvers, images and xlogy no long double; its quadrature is in
#: double. The gradient of a cosine is orthogonal to its vector, so their product consists of rounding errors.
LEFT_OUT = {
    "bfloat16": r"linalg\.|.*fit$|convolve|correlate|polymul|polydiv|histogram|scipy\.",
    "longdouble": r"kaiser|scipy\.(linalg|ndimage|optimize|sparse|spatial\.distance\.cosine)"
    r"|scipy\.interpolate\.(LinearND|CloughTocher)|scipy\.stats\.(mult|loglaplace)|scipy\.integrate\.(quad|tanhsinh)$",
}


def cast(x, dtype):
    """Return ``x`` in ``dtype`` or in its complex counterpart, or None if ``dtype`` has no complex counterpart."""
    x = np.asarray(x)
    to = PAIRED.get(dtype) if x.dtype.kind == "c" else dtype
    return None if to is None else x.astype(to)[()]


def as_likes(directions, likes):
    return tuple(np.asarray(d).astype(np.asarray(like).dtype)[()] for d, like in zip(directions, likes, strict=True))


def check_case(case, dtype):
    """Check that result dtypes are NumPy's, and that tangents and cotangents have the dtypes of their values."""
    primals = [cast(x, dtype) for x in case.primals]
    if any(x is None for x in primals):
        return
    values = list(case.values)
    for i, primal in zip(case.live, primals, strict=True):
        values[i] = primal

    def fun(*moving):
        full = list(values)
        for i, primal in zip(case.live, moving, strict=True):
            full[i] = primal
        return tuple(out for out in case.call(case.fun, full) if inexact_dtype(out.dtype))

    if case.numpy is None:
        return
    try:
        want = case.call(case.numpy, values)
    except (TypeError, ValueError):
        return
    if any(np.asarray(out).dtype == object for out in want):  # as above: NumPy does not support the dtype
        return
    outs, pullback = vjp(fun, *primals)
    if case.row.op.numpy == "same name":
        want = [out for out in want if inexact(out)]
        if dtype is bfloat16:  # NumPy's Python code does not count it as floating and may go on in double
            want = [w.astype(min(w.dtype, np.asarray(out).dtype, key=width)) for w, out in zip(want, outs, strict=True)]
        assert_like([np.asarray(out)[()] for out in outs], want, "result")
    cts, tangents = as_likes(case.cotangents, outs), as_likes(case.tangents, primals)
    pulled = pullback(cts)
    assert_like(pulled, primals, "cotangent")
    pushed = jvp(fun, tuple(primals), tangents)[1]
    assert_like(pushed, outs, "tangent")

    def again(*x):
        return vjp(fun, *x)[1](cts)

    if case.row.op.order >= 2:
        assert_like(jvp(again, tuple(primals), tangents)[1], primals, "tangent of the pullback")
        assert_like(vjp(again, *primals)[1](tangents), primals, "cotangent of the pullback")
    if all(case.leaves[i].mapped for i in case.live):
        batch = [np.stack([x, x]) for x in primals]
        assert_like(vmap(fun)(*batch), [np.stack([ct, ct]) for ct in cts], "result of vmap")
        assert_like(vmap(again)(*batch), batch, "vmap of the pullback")
    if dtype is np.longdouble and all(np.finfo(np.asarray(x).dtype).eps < 1e-17 for x in (*outs, *primals)):
        assert_transposed_precisely(cts, pushed, pulled, tangents)
        doubles = vjp(case.smooth, *case.primals)[1](case.cotangents)
        assert_all_close(
            [np.asarray(p).astype(d.dtype) for p, d in zip(pulled, doubles, strict=True)], doubles, 1e-10, ""
        )


def assert_transposed_precisely(cts, pushed, pulled, tangents):
    """Check ``<ct, J t> == <J^T ct, t>`` to the precision of long double."""

    def terms(side, other):
        return np.concatenate([np.ravel(np.asarray(a) * b) for a, b in zip(side, other, strict=True)])

    left, right = terms(cts, pushed), terms(pulled, tangents)
    size = max(np.abs(left).sum(), np.abs(right).sum())
    assert abs(left.sum().real - right.sum().real) <= 1000 * np.finfo(np.longdouble).eps * size


def width(dtype):
    return dtype.itemsize


def inexact_dtype(dtype):
    return np.dtype(dtype) in (*map(np.dtype, FLOATS), *map(np.dtype, COMPLEX))


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.op.name}-{i}" for i, row in enumerate(ROWS)])
def test_derivatives_keep_dtype(row):
    live = [case for case in row.cases if case.live]
    for case in (*live[:2], *[c for c in live if c.primals and np.asarray(c.primals[0]).dtype.kind == "c"][:1]):
        for name, dtype in SAME.items():
            if not re.match(LEFT_OUT.get(name, "$"), row.op.name):
                check_case(case, dtype)


#: SciPy computes these in a dtype other than half precision; its quadrature is in double.
HALF = (
    r"scipy\.signal\.(fftconvolve|oaconvolve|stft|welch|periodogram|csd)$"
    r"|scipy\.integrate\.quad$|scipy\.spatial\.distance\.euclidean$"
)


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.op.name}-{i}" for i, row in enumerate(ROWS)])
def test_transforms_keep_result_dtype(row):
    """Tangents have the result's dtype, even if it is not the argument's, as in float_power."""
    for dtype in (np.float32, np.float16):
        with cases.named_in_errors(dtype.__name__):
            check_result_dtypes(row, dtype)


def check_result_dtypes(row, dtype):
    if dtype is np.float16 and re.match(HALF, row.op.name):
        return
    if row.op.name == "scipy.integrate.cumulative_simpson" and not at_least(scipy, "1.17.0"):  # always in double
        return
    to = {"f": dtype, "c": np.complex64}
    for case in [case for case in row.cases if case.live]:
        primals, tangents = (
            tuple(np.asarray(x).astype(to[np.asarray(x).dtype.kind])[()] for x in xs)
            for xs in (case.primals, case.tangents)
        )
        try:
            plain = case.smooth(*primals)
        except (TypeError, ValueError, RuntimeError):  # NumPy, LAPACK or SciPy does not support the dtype
            continue
        kinds = [np.asarray(out).dtype for out in plain]
        outs, pushed = jvp(case.smooth, primals, tangents)
        value, pullback = vjp(case.smooth, *primals)
        assert [np.asarray(out).dtype for out in outs] == kinds
        assert [np.asarray(out).dtype for out in value] == kinds
        assert [np.asarray(t).dtype for t in pushed] == kinds
        pulled = pullback(tuple(np.ones_like(out) for out in value))
        assert [np.asarray(ct).dtype for ct in pulled] == [x.dtype for x in primals]


WITH_NUMBERS = {
    "float_power(x, 2.0)": lambda x: np.float_power(x, 2.0),
    "float_power(2, x)": lambda x: np.float_power(2, x),
    "float_power(x, x)": lambda x: np.float_power(x, x),
    "emath.power(2, x)": lambda x: fnp.emath.power(2, x),
    "emath.logn(2, x)": lambda x: fnp.emath.logn(2, x),
    "power(x, 2.0)": lambda x: np.power(x, 2.0),
    "ldexp(x, 2)": lambda x: np.ldexp(x, 2) if x.dtype.kind == "f" else x,
    "x * float64": lambda x: x * np.float64(2.0),
    "x * 2.0": lambda x: x * 2.0,
}
if at_least(np, "2.3.0"):  # before, ``x ** np.array(2.0)`` and ``np.power(x, np.array(2.0))`` had different dtypes
    WITH_NUMBERS["emath.power(x, 2.0)"] = lambda x: fnp.emath.power(x, 2.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_python_numbers_with_narrow_dtypes(name, dtype):
    fun = WITH_NUMBERS[name]
    for x in (np.array([0.5, 1.5], dtype), dtype(0.5)):
        kind = fun(x).dtype
        out, pushed = jvp(fun, (x,), (x,))
        value, pullback = vjp(fun, x)
        again = jvp(lambda x, f=fun: jvp(f, (x,), (x,))[1], (x,), (x,))[1]
        linear = linearize(fun, x)[1](x)
        assert [v.dtype for v in (out, pushed, value, again, linear)] == [kind] * 5
        assert pullback(np.ones_like(value))[0].dtype == dtype
        assert vmap(fun)(np.stack([x, x])).dtype == kind


# ---- promotion ---------------------------------------------------------------------------------------------

ELEMENTWISE = [
    *("add", "subtract", "multiply", "divide", "power", "float_power", "remainder", "fmod", "floor_divide"),
    *("maximum", "minimum", "fmax", "fmin", "hypot", "arctan2", "logaddexp", "logaddexp2", "copysign", "heaviside"),
    *("nextafter", "greater", "equal", "where"),
]
PRODUCTS = ["matmul", "dot", "inner", "outer", "tensordot", "kron", "vdot", "cross"]
JOINING = ["concatenate", "stack", "append"]


def binary(namespace, name):
    """Return a function of two arrays by its name."""
    function = getattr(namespace, name)
    if name == "where":
        return lambda a, b: function(np.array([True, False, True]), a, b)
    if name in ("concatenate", "stack"):
        return lambda a, b: function([a, b])
    return (lambda a, b: function(a, b, 1)) if name == "tensordot" else function


def operands(name):
    """Yield pairs of arrays, of NumPy scalars, and of an array and a Python number."""
    dtypes = [*WHOLE, *FLOATS, *COMPLEX]
    for first, second in itertools.product(dtypes, dtypes):
        yield np.array([1, 2, 1], first), np.array([1, 2, 2], second)
        if name in ELEMENTWISE:
            yield np.dtype(first).type(2), np.array([1, 2, 2], second)
            yield np.dtype(first).type(2), np.dtype(second).type(2)
    if name in (*ELEMENTWISE, "dot", "inner", "kron", "append"):
        for dtype, number in itertools.product(dtypes, NUMBERS):
            yield np.array([1, 2, 1], dtype), number
            yield number, np.array([1, 2, 1], dtype)


def lacks_numpy_result(name, a, b, want):
    """Return whether NumPy has no good answer for bfloat16: no common dtype, or a result of Python objects."""
    dtypes = [np.asarray(x).dtype for x in (a, b)]
    if name in ELEMENTWISE or bfloat16 not in dtypes:
        return False
    try:
        np.result_type(*dtypes)
    except TypeError:
        return True
    return np.asarray(want).dtype == object


@pytest.mark.usefixtures("_silent")
@pytest.mark.parametrize("name", [*ELEMENTWISE, *PRODUCTS, *JOINING])
def test_promotion_matches_numpy(name):
    theirs, ours = binary(np, name), binary(fnp, name)
    for a, b in operands(name):
        label = f"{np.asarray(a).dtype} {type(a).__name__}, {np.asarray(b).dtype} {type(b).__name__}"
        try:
            want = theirs(a, b)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                ours(a, b)
            continue
        got = ours(a, b)
        if not lacks_numpy_result(name, a, b, want):
            assert (type(got), got.dtype) == (type(want), want.dtype), label
            check_traced(ours, (a, b), want.dtype, label)


def check_traced(fun, args, dtype, label):
    """Check that dtypes stay the same where the inexact arrays among ``args`` are differentiated or mapped."""
    chosen = [i for i in range(2) if hasattr(args[i], "dtype") and inexact(args[i])]
    if not chosen:
        return

    def of_chosen(*values):
        full = list(args)
        for i, value in zip(chosen, values, strict=True):
            full[i] = value
        return fun(*full)

    primals = tuple(args[i] for i in chosen)
    out, pullback = vjp(of_chosen, *primals)
    assert np.asarray(out).dtype == dtype, label
    value, tangent = jvp(of_chosen, primals, primals)
    assert np.asarray(value).dtype == dtype, label
    if inexact(out):
        assert_like(pullback(np.ones_like(out)), primals, label)
        assert_like([tangent], [out], label)
    batch = [np.stack([x, x]).astype(x.dtype) for x in primals]
    assert vmap(of_chosen)(*batch).dtype == dtype, label


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=named)
def test_wider_intermediates_keep_derivative_dtype(dtype):
    """Wider numbers in the computation, or a wider result, do not change the dtype of a derivative."""
    x, wide = np.array([0.5, 1.5, 2.5], dtype), np.array([2.0, 3.0, 4.0])

    def loss(x):
        return fnp.sum(fnp.real(x * x * x) * wide) * np.float64(1.5)

    def ends(x):
        return x[:2] * x[1:] * 0.5

    assert grad(loss)(x).dtype == dtype
    assert value_and_grad(loss)(x)[1].dtype == dtype
    assert jacrev(loss)(x).dtype == dtype
    assert vmap(grad(loss))(np.stack([x, x])).dtype == dtype
    assert grad(lambda x: fnp.sum(fnp.real(grad(loss)(x))))(x).dtype == dtype
    assert hvp(loss, (x,), (x,))[0].dtype == dtype
    for value, tangent in (jvp(ends, (x,), (x,)), (ends(x), linearize(ends, x)[1](x))):
        assert tangent.dtype == np.asarray(value).dtype
    if np.dtype(dtype).kind != "c":
        assert jacfwd(loss)(x).dtype == jvp(loss, (x,), (x,))[1].dtype
        assert hessian(loss)(x).dtype == dtype
    assert_like([grad(loss)(np.zeros((0, 3), dtype))], [np.zeros((0, 3), dtype)], "gradient of nothing")


def test_long_double_derivatives_have_full_precision():
    x = np.longdouble(1) / 3
    eps = np.finfo(np.longdouble).eps
    for fun, slope in ((fnp.exp, np.exp(x)), (fnp.sin, np.cos(x)), (fnp.log, 1 / x), (fnp.tanh, 1 - np.tanh(x) ** 2)):
        for got in (
            grad(fun)(x),
            jvp(fun, (x,), (np.longdouble(1),))[1],
            grad(lambda x, f=fun: f(x * x[()]))(x) / (2 * x),
        ):
            assert got.dtype == np.longdouble
        assert abs(grad(fun)(x) - slope) <= 4 * eps * abs(slope)


# ---- shapes and memory -------------------------------------------------------------------------------------

SHAPES = [(), (1,), (3,), (1, 3), (2, 1), (0,), (2, 0), (1, 1), (0, 3)]


def fits(pair):
    try:
        np.broadcast_shapes(*pair)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("shapes", [pair for pair in itertools.product(SHAPES, SHAPES) if fits(pair)], ids=str)
def test_broadcasting_of_empty_single_and_scalar_arguments(shapes):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.uniform(1, 2, shape)) for shape in shapes)

    def fun(x, y):
        return x * y + fnp.maximum(x, y) / y

    ct = np.ones(np.broadcast_shapes(*shapes))
    value, pullback = vjp(fun, x, y)
    np.testing.assert_array_equal(value, np.broadcast_to(x * y + np.maximum(x, y) / y, ct.shape))
    assert_like(pullback(ct), (x, y), "cotangent")
    tangent = jvp(fun, (x, y), (x, y))[1]
    assert_like([tangent], [ct], "tangent")
    assert_transposed([ct], [tangent], pullback(ct), [x, y], "broadcasting", 1e-14)
    second = vjp(lambda x, y: vjp(fun, x, y)[1](ct), x, y)[1]((x, y))
    assert_like(second, (x, y), "cotangent of the pullback")
    batch = [np.stack([x, x]), np.stack([y, y])]
    assert_like(vmap(lambda x, y: vjp(fun, x, y)[1](ct))(*batch), batch, "vmap of the pullback")


def layouts(x):
    """Return ``x`` in several memory layouts."""
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    yield "Fortran order", np.asfortranarray(x)
    yield "transposed", np.ascontiguousarray(x.T).T
    yield "negative strides", x[::-1, ::-1].copy()[::-1, ::-1]
    yield "every other", np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2]
    yield "unaligned", np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(x.dtype).reshape(x.shape)
    yield "repeated", np.broadcast_to(x[:, :1], x.shape)
    yield "overlapping", np.lib.stride_tricks.sliding_window_view(x.reshape(-1)[:5], 3)


def many(x):
    flat = fnp.ravel(x, order="F") * fnp.reshape(x, -1)
    return fnp.sum(fnp.sin(x) @ x.T) + fnp.sum(flat[::-1] ** 3) + fnp.max(x) * fnp.sum(fnp.cumsum(fnp.sort(x, 0), 1)[1])


@pytest.mark.parametrize("number", range(8))
def test_memory_layout_does_not_change_results(number):
    x = np.array([[0.3, -1.2, 0.7], [2.1, 0.4, -0.6], [1.7, -0.1, 0.9]])
    name, other = list(layouts(x))[number]
    plain = np.ascontiguousarray(other)
    assert np.array_equal(other, plain), name
    t = np.cos(plain)
    kept = plain.copy()
    for derivative in (
        many,
        grad(many),
        hessian(many),
        jacfwd(many),
        lambda x: jvp(many, (x,), (t,))[1],
        lambda x: jvp(grad(many), (x,), (t,))[1],
        vmap(lambda row: fnp.sum(row**3)),
        vmap(grad(lambda row: fnp.sum(row**3)), in_axes=1),
    ):
        want = np.asarray(derivative(plain))
        np.testing.assert_allclose(derivative(other), want, rtol=1e-14, atol=1e-14 * np.abs(want).max())
    pulled = grad(many)(other)
    assert pulled.flags.writeable
    assert not np.shares_memory(pulled, other)
    np.testing.assert_array_equal(other, kept)


def test_memory_mapped_files(tmp_path):
    file = np.memmap(tmp_path / "x", np.float64, "w+", shape=(3,))
    file[:] = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x**3))(file), [3.0, 12.0, 27.0])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x * file))(np.ones(3)), file)
    np.testing.assert_array_equal(vmap(grad(lambda x: x**2))(file), 2 * np.asarray(file))


class Two(enum.IntEnum):
    IT = 2


class Precise(float):
    """A subclass of Python's float."""


class Own(np.float64):
    """A subclass of NumPy's float64."""


@pytest.mark.parametrize(
    "two", [2, 2.0, np.int8(2), np.uint64(2), np.float32(2), np.longdouble(2), Two.IT, Precise(2), Own(2)]
)
def test_numpy_and_python_number_classes(two):
    assert grad(lambda x: x**two + x * two)(3.0) == 8.0
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(two * x / two))(X), np.ones(2))
    np.testing.assert_array_equal(vmap(lambda x: x * two)(X), 2 * X)
    assert jvp(lambda x: two + x * x, (3.0,), (1.0,)) == (11.0, 6.0)
    if not isinstance(two, (int, np.integer)):
        assert grad(lambda x: x * x)(two) == 4.0
        assert np.isscalar(grad(lambda x: x * x)(two))


# ---- the bytes of another machine --------------------------------------------------------------------------

FOREIGN = X.astype(X.dtype.newbyteorder())


def test_foreign_byte_order_in_constants():
    for fun in (
        lambda x, c: fnp.sum(fnp.sin(x) * c),
        lambda x, c: fnp.sum(fnp.concatenate([x, c]) ** 2),
        lambda x, c: fnp.sum(fnp.where(x > 1.5, x, c) * fnp.stack([c, x])),
        lambda x, c: x @ c + fnp.max(fnp.maximum(x, c)),
        lambda x, c: fnp.sum(c[1] * x + c[::-1] ** x),
        lambda x, c: fnp.sum(x.astype(c.dtype) ** 3),
        lambda x, c: fnp.sum(fnp.asarray(x, dtype=c.dtype) ** 3),
    ):
        for derivative in (grad(fun), hessian(fun), lambda x, c, f=fun: jvp(f, (x,), (X,), c=c)[1]):
            got = derivative(X, c=FOREIGN)
            np.testing.assert_array_equal(got, derivative(X, c=X))
            assert got.dtype.isnative
    np.testing.assert_array_equal(vmap(lambda x: x * FOREIGN)(X), np.outer(X, X))


# ---- refused inputs ----------------------------------------------------------------------------------------


class Quantity(np.ndarray):
    """An array with arithmetic of its own, as arrays with units have."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented


def characters():
    """Return an array of a class that NumPy 2.5 deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.array(["a"]).view(np.char.chararray)


RECORDS = np.array([(1.0, 2.0)], dtype=[("a", float), ("b", float)])
#: Value, its description in the message, and the remedy in the message.
REFUSED = {
    "masked": (np.ma.array(X, mask=[True, False]), "is a masked array, got MaskedArray", "where(mask, 0, data)"),
    "matrix": (X[None].view(np.matrix), "ndarray subclass, got matrix", "numpy.asarray(x)"),
    "quantity": (X.view(Quantity), "ndarray subclass, got Quantity", "numpy.asarray(x)"),
    "records": (RECORDS, "holds records, got [('a', '<f8'), ('b', '<f8')][1]", "x['name']"),
    "recarray": (RECORDS.view(np.recarray), "holds records, got recarray", "x['name']"),
    "record": (RECORDS[0], "holds records, got void", "x['name']"),
    "bytes without a meaning": (np.zeros(2, "V8"), "holds records, got |V8[2]", "x['name']"),
    "objects": (np.array([1.0, None]), "holds Python objects, got object[2]", "x.astype(float)"),
    "numbers as objects": (np.array([1.0, 2.0], object), "holds Python objects, got object[2]", "x.astype(float)"),
    "text": (np.array(["a", "b"]), "holds text, got <U1[2]", "Encode it"),
    "bytes": (np.array([b"a", b"b"]), "holds text, got |S1[2]", "Encode it"),
    "text of any length": (np.array(["a"], np.dtypes.StringDType()), "holds text, got StringDType()[1]", "Encode it"),
    "characters": (characters(), "holds text, got chararray", "Encode it"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "holds dates or times, got datetime64[D][1]", "timedelta64(1, 's')"),
    "date": (np.datetime64("2020-01-01"), "holds dates or times, got datetime64", "timedelta64(1, 's')"),
    "durations": (np.array([1, 2], "m8[s]"), "holds dates or times, got timedelta64[s][2]", "timedelta64(1, 's')"),
    "string": ("text", "got str 'text'", ""),
}  # fmt: skip
refused = pytest.mark.parametrize("name", REFUSED)


def check_refusal(call, name, starts):
    """Check that the error of ``call`` starts with ``starts`` and names the problem, the input and the remedy."""
    value, what, remedy = REFUSED[name]
    with as_written(), pytest.raises(InputError) as caught:  # in rewritten code a matrix works with traced values, too
        call(value)
    message = str(caught.value)
    assert message.startswith(starts), message
    assert " is not an array or a number" in message, message
    assert what in message, message
    assert remedy in message, message
    assert message.endswith("."), message


TRANSFORMS = {
    "grad": lambda bad: grad(fnp.sum)(bad),
    "value_and_grad": lambda bad: value_and_grad(fnp.sum)(bad),
    "vjp": lambda bad: vjp(fnp.sum, bad),
    "jvp": lambda bad: jvp(fnp.sum, (bad,), (bad,)),
    "linearize": lambda bad: linearize(fnp.sum, bad),
    "jacrev": lambda bad: jacrev(fnp.sum)(bad),
    "jacfwd": lambda bad: jacfwd(fnp.sum)(bad),
    "hessian": lambda bad: hessian(fnp.sum)(bad),
    "hvp": lambda bad: hvp(fnp.sum, (bad,), (bad,)),
    "vmap": lambda bad: vmap(fnp.sum)(bad),
}


@refused
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_raise_for_nonnumeric_arrays(transform, name):
    check_refusal(TRANSFORMS[transform], name, f"{transform}: argument 0 is")


@refused
def test_nonnumeric_tangents_cotangents_and_results_raise(name):
    check_refusal(lambda bad: jvp(fnp.sin, (X,), (bad,)), name, "jvp: the tangent at [0] is")
    check_refusal(lambda bad: vjp(fnp.sin, X)[1](bad), name, "pullback: the cotangent is")
    check_refusal(lambda bad: vjp(lambda x: bad, X), name, "vjp: result leaf 0 of the function is")
    check_refusal(lambda bad: vmap(lambda x: bad)(X), name, "vmap: result leaf 0 of the function is")


BESIDE = {
    "add": lambda x, bad: fnp.add(x, bad),
    "multiply": lambda x, bad: fnp.multiply(bad, x),
    "power": lambda x, bad: fnp.power(x, bad),
    "hypot": lambda x, bad: fnp.hypot(bad, x),
    "greater": lambda x, bad: fnp.greater(x, bad),
    "equal": lambda x, bad: fnp.equal(bad, x),
    "clip": lambda x, bad: fnp.clip(x, bad, 2.0),
    "where": lambda x, bad: fnp.where(x > 1.5, x, bad),
    "where ": lambda x, bad: fnp.where(bad, x, x),
    "matmul": lambda x, bad: fnp.matmul(x, np.ravel(bad) if isinstance(bad, str) else bad),
    "stack": lambda x, bad: fnp.stack([x, bad]),
    "concatenate": lambda x, bad: fnp.concatenate([bad, x]),
}


@in_one_test(
    {
        "name": [name for name in REFUSED if name != "numbers as objects"],
        "mode": ["reverse", "forward", "vmap", "nested"],
        "operation": BESIDE,
    }
)
def test_functions_raise_for_nonnumeric_arrays_beside_tracers(operation, mode, name):
    run = {
        "reverse": lambda fun: vjp(fun, X),
        "forward": lambda fun: jvp(fun, (X,), (X,)),
        "vmap": lambda fun: vmap(fun)(np.stack([X, X])),
        "nested": lambda fun: grad(lambda x: fnp.sum(vjp(fun, x)[1](X)[0]))(X),
    }[mode]
    value = REFUSED[name][0]
    with as_written(), pytest.raises((InputError, ValueError)) as caught:
        run(lambda x: BESIDE[operation](x, value))
    message = str(caught.value)
    if isinstance(caught.value, InputError):
        found = r"\w+: (argument \d+|result leaf 0 of the function) is not an array or a number"  # a masked array
        assert re.match(found, message), message
        assert message.endswith("."), message
    else:  # the shape did not fit either
        assert np.ndim(value) != 1 or np.shape(value) == (1,), message


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "**", "@", "<", ">="])
@pytest.mark.parametrize("name", ["masked", "quantity", "objects", "text", "dates", "durations"])
def test_operators_raise_for_nonnumeric_arrays_on_both_sides(operator, name):
    bad = REFUSED[name][0]
    for expression in (f"x {operator} bad", f"bad {operator} x"):
        for run in (lambda fun: vjp(fun, X), lambda fun: vmap(fun)(np.stack([X, X]))):
            with pytest.raises(TypeError) as caught:
                run(lambda x, e=expression: eval(e, {"x": x, "bad": bad}))
            # a masked array on the left requests the tracer's numbers itself
            own = FuncgradError if expression.startswith("bad") and name == "masked" else InputError
            # the class itself refuses the operation, and NumPy says so
            itself = name == "quantity" and "all returned NotImplemented" in str(caught.value)
            assert itself or isinstance(caught.value, own), (expression, caught.value)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_raise_for_foreign_byte_order(transform):
    with pytest.raises(InputError, match=rf"^{transform}: argument 0 has its bytes .*got >f8\[2\]\. Convert it: .*\.$"):
        TRANSFORMS[transform](FOREIGN)
    with pytest.raises(InputError, match="of another machine"):
        grad(lambda p: fnp.sum(p["w"]))({"w": FOREIGN})
    TRANSFORMS[transform](FOREIGN.astype(FOREIGN.dtype.newbyteorder("="))) if transform != "hessian" else None


def test_plain_values_behave_as_in_numpy():
    """Without a tracer funcgrad's functions are NumPy's, also for objects and texts."""
    objects = np.array([1, 2], object)
    assert fnp.add(objects, objects).tolist() == [2, 4]
    assert fnp.subtract(np.array(["2020-01-03"], "M8[D]"), np.array(["2020-01-01"], "M8[D]")).astype(int).tolist() == [
        2
    ]
    assert fnp.equal(np.array(["a", "b"]), np.array(["a", "c"])).tolist() == [True, False]
    assert fnp.concatenate([np.array(["a"]), np.array(["bc"])]).tolist() == ["a", "bc"]


def test_narrow_integer_dtypes_are_constants():
    """All dtypes of ml_dtypes have the same ``kind``, integers and floating ones alike."""
    n = np.array([1, 2], int4)
    with pytest.raises(InputError, match="must be real or complex floating point, got int4"):
        grad(fnp.sum)(n)
    assert vjp(lambda n: n.astype(float), n)[1](X)[0].dtype == np.dtype([("float0", "V")])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x * n.astype(float)))(X), [1.0, 2.0])


def test_bfloat16_of_jax_matches_numpy():
    x = np.array([0.5, 1.5, 2.5], bfloat16)

    def loss(x):
        return fnp.sum(fnp.sqrt(x) * x)

    ours, theirs = grad(loss)(x), grad(loss)(jnp.asarray(x))
    assert ours.dtype == theirs.dtype == bfloat16
    np.testing.assert_allclose(ours.astype(float), np.asarray(theirs).astype(float), rtol=2e-2)
    np.testing.assert_allclose(ours.astype(float), 1.5 * np.sqrt(x.astype(float)), rtol=2e-2)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_half_precision_cotangents_sum_in_higher_precision(dtype):
    """Sums in half precision would give 2048 + 1 = 2048; JAX adds cotangents up in higher precision, too."""
    bias, x = np.zeros(2, dtype), np.ones((5000, 2), dtype)
    want = np.full(2, 5000, dtype)

    def gradient(bias):
        return vjp(lambda bias: x + bias, bias)[1](x)[0]

    assert_all_close([gradient(bias)], [jax.vjp(lambda b: x + b, jnp.asarray(bias))[1](jnp.asarray(x))[0]], 0, "JAX's")
    np.testing.assert_array_equal(gradient(bias), want)
    np.testing.assert_array_equal(vmap(gradient)(np.stack([bias, bias])), [want, want])
    np.testing.assert_array_equal(vjp(lambda b: np.broadcast_to(b, x.shape), bias)[1](x)[0], want)
    twice = jvp(lambda b: vjp(lambda b: x * b * b, b)[1](x)[0], (np.ones(2, dtype),), (np.ones(2, dtype),))
    np.testing.assert_array_equal(twice, [want * dtype(2), want * dtype(2)])


@pytest.mark.parametrize("product", [lambda x: x * 1j, lambda x: 1j * x, lambda x: 2.0 * x * 1j, lambda x: x + 1j * x])
def test_tangents_times_complex_numbers_match_numpy(product):
    x = np.float64(1.5)
    for out, tangent in (jvp(product, (x,), (x,)), jvp(product, (x,), (1.0,))):
        assert type(out) is type(tangent) is np.complex128
    assert type(jvp(product, (1.5,), (1.0,))[0]) is complex  # computed from Python numbers alone


ARITHMETIC = {
    **{name: getattr(operator, name) for name in ("neg", "pos", "abs")},
    **{name: partial(getattr(operator, name), 2.0) for name in ("add", "sub", "mul", "truediv", "pow", "mod")},
    "square": lambda k: k**2,
    "floordiv": lambda k: k // 2 + k,
    "round": lambda k: round(k, 1) + k,
    "round to an integer": lambda k: round(k) * k,
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_python_number_arithmetic_does_not_promote(name):
    """A Python number does not promote single precision to double, however it was computed."""

    def scaled(k):
        return ARITHMETIC[name](k) * np.ones(2, np.float32)

    assert scaled(0.7).dtype == np.float32
    value, tangent = jvp(scaled, (0.7,), (1.0,))
    found = {
        "jvp": value,
        "tangent": tangent,
        "vjp": vjp(scaled, 0.7)[0],
        "jvp of vjp": jvp(lambda k: vjp(scaled, k)[0], (0.7,), (1.0,))[0],
        "vjp of jvp": vjp(lambda k: jvp(scaled, (k,), (1.0,))[0], 0.7)[0],
        "no_grad": vjp(no_grad(scaled), 0.7)[0],
        "no_grad in forward mode": jvp(no_grad(scaled), (0.7,), (1.0,))[0],
    }
    assert {mode: out.dtype for mode, out in found.items()} == dict.fromkeys(found, np.dtype(np.float32))


@pytest.mark.parametrize("other", [np.ones(3, int), np.ones(3, np.float16), np.uint64(3), np.float16(2)])
def test_bfloat16_without_a_common_dtype(other):
    """NumPy's ufuncs accept pairs of dtypes that have no common dtype; its products make Python objects of them."""
    x = np.array([0.5, 2.0, -1.0], bfloat16)
    for f in (np.outer, np.maximum, np.dot, np.inner):
        value, pullback = vjp(lambda x, f=f: f(x, other), x)
        wanted = np.asarray(f(x, other))
        assert value.dtype == np.result_type(value, np.float32)
        np.testing.assert_array_equal(value, wanted.astype(value.dtype))
        (slope,) = pullback(np.ones_like(value))
        assert slope.dtype == bfloat16
        tangent = jvp(lambda x, f=f: f(x, other), (x,), (np.ones_like(x),))[1]
        np.testing.assert_allclose(slope.astype(float).sum(), np.sum(tangent, dtype=float), rtol=1e-2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("swapped", [False, True])
def test_powers_beside_traced_python_numbers_keep_narrow_dtypes(dtype, swapped):
    x = np.array([1.5, 0.5], dtype)

    def pulled(x, number):
        return vjp(lambda *both: fnp.power(*both[:: -1 if swapped else 1]), x, number)[1](np.ones_like(x))

    (of_x, of_number), pullback = vjp(pulled, x, 1.7)
    assert of_x.dtype == dtype
    assert np.asarray(of_number).dtype == float
    assert pullback((np.ones_like(x), 1.0))[0].dtype == dtype
