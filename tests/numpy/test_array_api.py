"""The Python array API standard, 2024.12: names, signatures, dtypes, and code for it, on traced values."""

import inspect
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy
import sklearn
from helpers import at_least, in_one_test
from operations.names import look_up

import funcgrad.numpy as fnp
from funcgrad import as_written, check_grads, checkpoint, grad, hessian, jacfwd, jacrev, jvp, stop_gradient, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, EscapedTracerError, ReadOnlyError
from funcgrad.interop import from_array_api
from funcgrad.transforms.lifting import LiftedTrace

HERE = Path(__file__).resolve().parent
X = np.array([0.7, -1.3, 2.1, 0.4])
M = np.array([[2.0, 0.5, -1.0], [0.3, 1.5, 0.2]])

#: Parameters of the standard's functions; parameters before "/" are positional-only, so their names do not matter.
SIGNATURES = {
    "()": "__array_namespace_info__",
    "(x, /)": (
        "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf "
        "isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square "
        "sqrt tan tanh trunc matrix_transpose nonzero unique_all unique_counts unique_inverse unique_values finfo "
        "iinfo linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.matrix_transpose linalg.slogdet linalg.svdvals"
    ),
    "(x1, x2, /)": (
        "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
        "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
        "minimum multiply nextafter not_equal pow remainder subtract matmul can_cast tile "
        "linalg.matmul linalg.outer linalg.solve linalg.matrix_power"
    ),
    "(x, y, z, /)": "where moveaxis",
    "(*arrays)": "broadcast_arrays result_type",
    "(*arrays, indexing='xy')": "meshgrid",
    "(shape, *, dtype=None, device=None)": "empty ones zeros",
    "(x, /, *, dtype=None, device=None)": "empty_like ones_like zeros_like",
    "(shape, fill_value, *, dtype=None, device=None)": "full",
    "(x, /, fill_value, *, dtype=None, device=None)": "full_like",
    "(x, /, *, dtype=None, device=None, copy=None)": "asarray",
    "(x, /, *, device=None, copy=None)": "from_dlpack",
    "(x, dtype, /, *, copy=True, device=None)": "astype",
    "(start, /, stop=None, step=1, *, dtype=None, device=None)": "arange",
    "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)": "linspace",
    "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)": "eye",
    "(x, /, *, k=0)": "tril triu",
    "(dtype, kind)": "isdtype",
    "(x, /, min=None, max=None)": "clip",
    "(x, indices, /, *, axis=None)": "take repeat",
    "(x, indices, /, *, axis=-1)": "take_along_axis",
    "(x1, x2, /, *, axes=2)": "tensordot linalg.tensordot",
    "(x1, x2, /, *, axis=-1)": "vecdot linalg.cross linalg.vecdot",
    "(x1, x2, /, *, side='left', sorter=None)": "searchsorted",
    "(x, /, shape)": "broadcast_to",
    "(x, /, shape, *, copy=None)": "reshape",
    "(x, /, axis)": "expand_dims squeeze",
    "(x, /, axes)": "permute_dims",
    "(x, /, shift, *, axis=None)": "roll",
    "(x, /, *, axis=0)": "concat stack unstack",
    "(x, /, *, axis=None)": "flip",
    "(x, /, *, axis=None, keepdims=False)": "argmax argmin count_nonzero max mean min all any",
    "(x, /, *, axis=None, dtype=None, keepdims=False)": "prod sum",
    "(x, /, *, axis=None, correction=0.0, keepdims=False)": "std var",
    "(x, /, *, axis=None, dtype=None, include_initial=False)": "cumulative_sum cumulative_prod",
    "(x, /, *, axis=-1, descending=False, stable=True)": "argsort sort",
    "(x, /, *, axis=-1, n=1, prepend=None, append=None)": "diff",
    "(x, /, *, upper=False)": "linalg.cholesky",
    "(x, /, *, offset=0)": "linalg.diagonal",
    "(x, /, *, offset=0, dtype=None)": "linalg.trace",
    "(x, /, *, keepdims=False, ord='fro')": "linalg.matrix_norm",
    "(x, /, *, axis=None, keepdims=False, ord=2)": "linalg.vector_norm",
    "(x, /, *, rtol=None)": "linalg.matrix_rank linalg.pinv",
    "(x, /, *, mode='reduced')": "linalg.qr",
    "(x, /, *, full_matrices=True)": "linalg.svd",
    "(x, /, *, n=None, axis=-1, norm='backward')": "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft",
    "(x, /, *, s=None, axes=None, norm='backward')": "fft.fftn fft.ifftn fft.rfftn fft.irfftn",
    "(n, /, *, d=1.0, dtype=None, device=None)": "fft.fftfreq fft.rfftfreq",
    "(x, /, *, axes=None)": "fft.fftshift fft.ifftshift",
}
DECLARED = [(name, text) for text, names in SIGNATURES.items() for name in names.split()]
#: Parameters whose default is NumPy's and not the standard's; but for ``argsort`` that means the same.
OTHER_DEFAULTS = {
    ("argsort", "stable"),
    ("sort", "stable"),
    ("std", "correction"),
    ("var", "correction"),
    ("eye", "dtype"),
}
OTHER_DEFAULTS |= {("vecdot", "axis"), ("linalg.vecdot", "axis")}
OTHER_DEFAULTS |= {(name, "norm") for name, text in DECLARED if "norm=" in text}
DTYPES = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
ATTRIBUTES = ["T", "device", "dtype", "mT", "ndim", "shape", "size", "to_device"]
UNARY = [
    "abs",
    "array_namespace",
    "bool",
    "complex",
    "dlpack",
    "dlpack_device",
    "float",
    "getitem",
    "index",
    "int",
    "invert",
]
UNARY += ["neg", "pos", "setitem", "eq", "ne", "lt", "le", "gt", "ge"]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]


def declared(text):
    """Return the signature that ``text`` spells out."""
    space = {}
    exec(f"def function{text}: ...", space)
    return inspect.signature(space["function"])


@in_one_test({"name, text": DECLARED})
def test_function_signatures_follow_the_standard(name, text):
    ours, theirs = inspect.signature(look_up(fnp, name)), declared(text).parameters.values()
    fixed = [p for p in theirs if p.kind is p.POSITIONAL_ONLY]
    either = [p for p in theirs if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = {p.name: object() for p in theirs if p.kind is p.KEYWORD_ONLY}
    many = [object()] * 3 if any(p.kind is p.VAR_POSITIONAL for p in theirs) else []
    values = [object() for _ in fixed]
    ours.bind(*values, *many, *[object() for _ in either], **named)
    ours.bind(*values, *many, **{p.name: object() for p in either}, **named)
    ours.bind(*[object() for p in fixed if p.default is p.empty], *many, *[o for o in either if o.default is o.empty])


@in_one_test({"name, text": DECLARED})
def test_defaults_follow_the_standard(name, text):
    ours = inspect.signature(look_up(fnp, name)).parameters
    for p in declared(text).parameters.values():
        if p.default is p.empty or p.kind is p.POSITIONAL_ONLY or (name, p.name) in OTHER_DEFAULTS:
            continue
        found = ours[p.name].default if p.name in ours else p.default
        assert found == p.default or found is np._NoValue


def test_defaults_that_are_written_differently():
    x = X[:3]
    assert np.array_equal(fnp.sort(x), fnp.sort(x, stable=True))
    assert fnp.eye(2).dtype == fnp.__array_namespace_info__().default_dtypes()["real floating"]
    assert np.array_equal(fnp.vecdot(M, M), fnp.vecdot(M, M, axis=-1))
    assert np.array_equal(fnp.linalg.vecdot(M, M), fnp.linalg.vecdot(M, M, axis=-1))
    assert fnp.std(x) == fnp.std(x, correction=0.0)
    assert np.array_equal(fnp.fft.fft(x), fnp.fft.fft(x, norm="backward"))


@pytest.mark.parametrize("name", ["e", "inf", "nan", "newaxis", "pi"])
def test_constants(name):
    assert getattr(fnp, name) is getattr(np, name)


# ---- inspection --------------------------------------------------------------------------------------------


def test_namespace_info():
    info = fnp.__array_namespace_info__()
    assert fnp.__array_api_version__ == "2024.12"
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {
        "real floating": np.dtype(float),
        "complex floating": np.dtype(complex),
        "integral": np.dtype(int),
        "indexing": np.dtype(np.intp),
    }
    assert info.default_dtypes(device="cpu") == info.default_dtypes()


@pytest.mark.parametrize("kind", DTYPES)
def test_dtypes_by_kind(kind):
    dtypes = fnp.__array_namespace_info__().dtypes
    assert dtypes(kind=kind) == {name: np.dtype(name) for name in DTYPES[kind]}
    assert all(fnp.isdtype(np.dtype(name), kind) and getattr(fnp, name) is getattr(np, name) for name in DTYPES[kind])
    assert fnp.zeros(2, dtype=dtypes(kind=kind)[DTYPES[kind][0]], device="cpu").dtype == DTYPES[kind][0]


def test_several_kinds_of_dtypes():
    dtypes = fnp.__array_namespace_info__().dtypes
    integers = DTYPES["signed integer"] + DTYPES["unsigned integer"]
    assert list(dtypes(kind="integral")) == integers
    assert list(dtypes(kind=("complex floating", "bool"))) == ["bool", "complex64", "complex128"]
    assert list(dtypes(kind="numeric")) == integers + DTYPES["real floating"] + DTYPES["complex floating"]
    assert dtypes() == dtypes(device="cpu") == {name: np.dtype(name) for names in DTYPES.values() for name in names}
    assert dtypes(kind=()) == {}


def test_unknown_kinds_and_devices():
    info = fnp.__array_namespace_info__()
    with pytest.raises(ValueError, match="unknown kind of dtypes, got 'real'"):
        info.dtypes(kind="real")
    with pytest.raises(ValueError, match="got device='gpu'"):
        info.dtypes(device="gpu")
    with pytest.raises(ValueError, match="got device='gpu'"):
        info.default_dtypes(device="gpu")


def test_limits_of_dtypes_and_arrays():
    assert fnp.finfo(np.float32) is np.finfo(np.float32)
    assert fnp.finfo(X) is np.finfo(float)
    assert fnp.finfo(np.complex64).bits == 32
    assert fnp.finfo(jnp.ones(2, "float32")).bits == 32
    assert fnp.finfo(np.dtype(ml_dtypes.bfloat16)).bits == 16
    assert fnp.iinfo(np.ones(2, np.int8)).max == 127
    assert fnp.iinfo("uint16").max == 65535
    assert grad(lambda x: x * fnp.finfo(x).bits)(1.0) == 64
    with pytest.raises(ValueError, match=r"not inexact|not compatible with finfo"):
        fnp.finfo(int)
    with pytest.raises(ValueError, match="Invalid integer data type"):
        fnp.iinfo(float)


# ---- array objects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATTRIBUTES + [f"__{name}__" for name in UNARY])
def test_array_objects_follow_the_standard(name):
    assert hasattr(Tracer, name)


@pytest.mark.parametrize("name", BINARY)
def test_operators_come_in_three_forms(name):
    assert all(callable(getattr(Tracer, f"__{prefix}{name}__")) for prefix in ("", "r", "i"))


def test_attributes_of_a_traced_array():
    def fun(x):
        assert (x.device, x.dtype, x.ndim, x.shape, x.size) == ("cpu", np.dtype(float), 2, (2, 3), 6)
        assert x.to_device("cpu") is x
        assert x.T.shape == x.mT.shape == (3, 2)
        return fnp.sum(x.mT @ x)

    assert np.allclose(grad(fun)(M), 2 * M.sum(axis=1, keepdims=True))


def test_traced_array_stays_on_its_device():
    with pytest.raises(ValueError, match=r"a traced value stays where it is, on 'cpu', got 'gpu'\. Use .*device_put"):
        grad(lambda x: fnp.sum(x.to_device("gpu")))(X)


def test_traced_array_knows_its_namespace():
    def fun(x):
        assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is fnp
        with pytest.raises(ValueError, match=r"unknown version .*, got '2020\.01'\. Ask for '2024\.12'"):
            x.__array_namespace__(api_version="2020.01")
        return fnp.sum(x)

    grad(fun)(X)


@as_written()
def test_dlpack_exports_constants_only():
    def fun(x):
        made = fnp.asarray([1.0, 2.0])
        assert np.array_equal(np.from_dlpack(made), [1.0, 2.0])
        assert made.__dlpack_device__() == np.ones(1).__dlpack_device__()
        assert np.array_equal(np.from_dlpack(stop_gradient(x)), X)
        return fnp.sum(x)

    grad(fun)(X)
    with pytest.raises(ConcretizationError, match=r"x.__dlpack__\(\): converting a traced value to a plain one"):
        grad(lambda x: fnp.sum(x * np.from_dlpack(x)))(X)
    with pytest.raises(ConcretizationError, match=r"x.__dlpack_device__\(\)"):
        grad(lambda x: fnp.sum(x) * len(x.__dlpack_device__()))(X)


def test_from_dlpack_of_other_libraries():
    def fun(x):
        y = fnp.from_dlpack(np.ones(4))
        y[1] = x[1] * x[0]
        z = fnp.from_dlpack(x, copy=True)
        z[0] = 5.0
        return fnp.sum(y) + fnp.sum(z)

    assert np.allclose(grad(fun)(X), [X[1], 1 + X[0], 1, 1])
    assert type(fnp.from_dlpack(np.ones(2))) is np.ndarray


# ---- additions of the standard to NumPy ---------------------------------------------------------------------

TIES = np.array([1.0, 3.0, 1.0, 2.0, 3.0])
FALLING = [1, 4, 3, 0, 2]


@pytest.mark.parametrize("derivative", [jacrev, jacfwd])
def test_sort_descending(derivative):
    assert np.array_equal(fnp.argsort(TIES, descending=True), FALLING)
    assert np.array_equal(fnp.sort(TIES, descending=True), TIES[FALLING])
    assert np.array_equal(derivative(lambda x: fnp.sort(x, descending=True))(TIES), np.eye(5)[FALLING])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sort_descending_along_axes(axis):
    ways = [lambda x: fnp.sort(x, axis=axis, descending=True), lambda x: np.sort(-x, axis=axis) * -1]
    assert np.array_equal(ways[0](M), -np.sort(-M, axis))
    assert np.array_equal(fnp.argsort(M, axis=axis, descending=True), np.argsort(-M, axis, stable=True))
    check_grads(lambda x: fnp.sum(fnp.sin(ways[0](x))), (M,), order=2)
    assert np.array_equal(vmap(ways[0])(np.stack([M, -M])), np.stack([-np.sort(-M, axis), -np.sort(M, axis)]))
    assert fnp.argsort(jnp.asarray(M), axis=axis, descending=True).tolist() == fnp.argsort(-M, axis=axis).tolist()


def test_sort_descending_puts_nan_last():
    x = np.array([1.0, math.nan, 2.0, -math.inf, math.nan, math.inf])
    assert fnp.argsort(x, descending=True).tolist() == [5, 2, 0, 3, 1, 4]
    assert fnp.argsort(jnp.asarray(x), descending=True).tolist() == [5, 2, 0, 3, 1, 4]
    assert np.array_equal(fnp.sort(x, descending=True), x[[5, 2, 0, 3, 1, 4]], equal_nan=True)
    assert np.array_equal(jacrev(lambda x: fnp.sort(x, descending=True))(x), np.eye(6)[[5, 2, 0, 3, 1, 4]])
    z = np.array([complex(math.nan, 1), 1j, complex(1, math.nan), complex(math.nan, math.nan), 2, complex(math.nan, 1)])
    assert fnp.argsort(z, descending=True).tolist() == [4, 1, 2, 0, 5, 3]
    if "descending" in inspect.signature(np.sort).parameters:  # NumPy has it since 2.5
        for values in (x, z, TIES, np.array([3, 1, 3])):
            want = np.argsort(values, stable=True, descending=True)
            assert np.array_equal(fnp.argsort(values, descending=True), want)
    columns = vmap(lambda x: fnp.sort(x, axis=0, descending=True), 1, 1)(x.reshape(3, 2))
    assert np.array_equal(columns, [[2, math.inf], [1, -math.inf], [math.nan, math.nan]], equal_nan=True)


def test_sort_method_descending():
    def fun(x):
        y = 2.0 * x
        y.sort(descending=True)
        return y

    assert np.array_equal(jacrev(fun)(TIES), 2 * np.eye(5)[FALLING])


def test_sort_descending_empty():
    assert fnp.sort(np.zeros((0, 2)), axis=0, descending=True).shape == (0, 2)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_in_another_dtype(name):
    fun, theirs = getattr(fnp.fft, name), getattr(np.fft, name)
    found = fun(5, d=0.5, dtype=np.float32)
    assert found.dtype == np.float32
    assert np.array_equal(found, theirs(5, 0.5).astype(np.float32))
    assert fun(5, 0.5).dtype == np.float64
    slope = jacfwd(lambda d: fun(5, d=d, dtype=np.float32))(np.float32(0.5))
    assert slope.dtype == np.float32
    assert np.allclose(slope, -2 * theirs(5, 0.5))
    with pytest.raises(TypeError, match=f"{name}: frequencies are real numbers"):
        fun(5, dtype=int)


@pytest.mark.parametrize("limits", [{"min": 0.0, "max": 1.0}, {"a_min": 0.0, "a_max": 1.0}, {"min": 0.0, "a_max": 1.0}])
def test_clip_limits_have_two_names(limits):
    assert np.array_equal(fnp.clip(X, **limits), np.clip(X, 0.0, 1.0))
    assert np.array_equal(fnp.clip(X, 0.0, 1.0), np.clip(X, 0.0, 1.0))
    assert np.array_equal(grad(lambda x: fnp.sum(fnp.clip(x, **limits)))(X), [1, 0, 0, 1])
    assert np.array_equal(grad(lambda x: fnp.sum(np.clip(x, 0.0, a_max=1.0)))(X), [1, 0, 0, 1])


def test_clip_limits_given_twice_raise():
    for limits in ({"min": 0.0, "a_min": 0.0}, {"max": 0.0, "a_max": 0.0}):
        with pytest.raises(ValueError, match="a limit is given twice"):
            fnp.clip(X, **limits)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0), (0, 3), (0,)])
def test_empty_masks(shape):
    mask = np.zeros(shape, bool)
    got = []
    vjp(lambda x: got.append(x[fnp.asarray(mask)]) or fnp.sum(x), M)
    assert got[0].shape == M[mask].shape
    with pytest.raises(IndexError, match="boolean index did not match"):
        grad(lambda x: fnp.sum(x[fnp.asarray(np.zeros((0, 5), bool))]))(M)


def test_matrix_rank_with_traced_tolerance():
    ranks = []
    grad(lambda t: ranks.append(fnp.linalg.matrix_rank(fnp.asarray(np.diag([1.0, 0.1])), rtol=t)) or t)(0.5)
    assert ranks == [1]


# ---- code written for any array library ---------------------------------------------------------------------


def namespace(*arrays):
    """Return the common namespace as array_api_compat does; for NumPy's arrays alone it is funcgrad's."""
    (xp,) = {x.__array_namespace__() for x in arrays}
    return fnp if xp is np else xp


def softmax(x):
    xp = namespace(x)
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def smooth_absolute(x):
    """Compute with masks, and write where a mask is True."""
    xp = namespace(x)
    small = xp.abs(x) < 1.0
    namespace(small, x)
    y = xp.asarray(xp.abs(x) - 0.5, copy=True)
    y[small] = 0.5 * x[small] ** 2
    return xp.sum(y)


def smooth_absolute_of_numbers(x):
    return sum(smooth_absolute(x[i]) for i in range(x.shape[0]))


def householder(a):
    """Compute R of a QR decomposition, column by column, in place."""
    xp = namespace(a)
    r = xp.asarray(a, copy=True)
    for k in range(min(r.shape)):
        v = xp.asarray(r[k:, k], copy=True)
        length = xp.linalg.vector_norm(v)
        v[0] += xp.where(v[0] < 0, -length, length)
        v /= xp.linalg.vector_norm(v)
        r[k:, k:] -= 2 * xp.linalg.outer(v, xp.linalg.vecdot(v, r[k:, k:].mT))
    return xp.sum(xp.triu(r) ** 3)


def rank_weighted(x):
    """Compute with positions, counts and conversions of values without a derivative."""
    xp = namespace(x)
    order = xp.argsort(x, descending=True)
    weights = 1.0 / xp.astype(xp.arange(1, x.shape[0] + 1), x.dtype)
    positive = xp.sum(xp.astype(x > 0, x.dtype))
    namespace(order, weights, positive, x)
    return xp.vecdot(weights, xp.take(x, order) ** 2) / positive


def spectrum(x):
    xp = namespace(x)
    power = xp.abs(xp.fft.rfft(x)) ** 2
    return xp.sum(xp.fft.rfftfreq(x.shape[0], d=0.1, dtype=x.dtype) * power)


def whitened(a):
    xp = namespace(a)
    centred = a - xp.mean(a, axis=0, keepdims=True)
    values, vectors = xp.linalg.eigh(centred.mT @ centred + xp.eye(a.shape[1], dtype=a.dtype))
    return xp.sum((centred @ vectors) ** 4 / values)


PROGRAMS = [
    (lambda x: namespace(x).sum(softmax(x)[0] ** 2), M),
    (smooth_absolute, X),
    (smooth_absolute_of_numbers, X),
    (householder, M.T + np.eye(3, 2)),
    (rank_weighted, X),
    (spectrum, X),
    (whitened, M.T),
]
PROGRAMS = [(from_array_api(fun), x) for fun, x in PROGRAMS]
IDS = ["softmax", "masks", "numbers", "householder", "positions", "spectrum", "whitened"]


@pytest.mark.parametrize(("fun", "x"), PROGRAMS, ids=IDS)
class TestPrograms:
    def test_values(self, fun, x):
        seen = []
        grad(lambda x: seen.append(stop_gradient(fun(x))) or fnp.sum(x))(x)
        assert np.allclose(seen[0], fun(x), rtol=1e-14)

    def test_derivatives(self, fun, x):
        check_grads(fun, (x,), order=2)

    def test_batches(self, fun, x):
        xs = np.stack([x, 1.5 * x, x[::-1]])
        alone = np.stack([grad(fun)(x) for x in xs])
        if fun.fun in (smooth_absolute, smooth_absolute_of_numbers):  # in vmap, masks must select equally many elements
            fun = from_array_api(masked_by_where)
        assert np.allclose(vmap(grad(fun))(xs), alone, rtol=1e-12)

    def test_under_checkpoint(self, fun, x):
        assert np.allclose(grad(checkpoint(fun))(x), grad(fun)(x), rtol=1e-14)
        assert np.allclose(hessian(fun)(x), jacfwd(grad(fun))(x))


def masked_by_where(x):
    xp = namespace(x)
    return xp.sum(xp.where(xp.abs(x) < 1.0, 0.5 * x**2, xp.abs(x) - 0.5))


def test_programs_match_closed_forms():
    assert np.allclose(grad(from_array_api(smooth_absolute))(X), np.clip(X, -1, 1))
    assert np.allclose(grad(from_array_api(smooth_absolute_of_numbers))(X), np.clip(X, -1, 1))
    p = softmax(X)
    assert np.allclose(jacrev(softmax)(X), np.diag(p) - np.outer(p, p))
    order = np.argsort(-X)
    assert np.allclose(grad(from_array_api(rank_weighted))(X)[order], 2 * X[order] / np.arange(1, 5) / 3)


# ---- truth values, positions and numbers --------------------------------------------------------------------


def parts(x):
    """Return results without a derivative, and numbers computed from constants."""
    xp = x.__array_namespace__()
    made = xp.asarray([3.0, 4.0])
    return [
        x > 0,
        x[0] > 0,
        xp.argmax(x),
        xp.isfinite(x),
        xp.any(x > 0),
        xp.count_nonzero(x),
        xp.nonzero(x)[0],
        xp.unique_counts(x).counts,
        xp.sum(made),
        made[0],
        xp.asarray(2.0),
        xp.vecdot(made, made),
        xp.asarray(X),
        next(iter(made)),
    ]


@pytest.mark.parametrize("transform", [lambda f: f, grad, lambda f: lambda x: jvp(f, (x,), (x,)), jacfwd])
def test_results_keep_namespace_of_operands(transform):
    found = []

    def fun(x):
        found.extend(parts(x))
        assert all(part.__array_namespace__() is x.__array_namespace__() for part in found)
        return x.__array_namespace__().sum(x)

    transform(from_array_api(fun))(X)
    assert all(isinstance(part._trace, LiftedTrace) for part in found)


def test_result_type_depends_on_arguments_only():
    """A call of ``__array_namespace__`` changes nothing: not here, not in an outer run, not in another thread."""

    def types(x):
        return [type(x > 0), type(x[0] > 0), type(fnp.argmax(x)), type(fnp.asarray(X)), type(fnp.sum(fnp.zeros(2)))]

    def fun(x):
        before = types(x)
        assert before == [np.ndarray, np.bool, np.int64, np.ndarray, np.float64]
        assert x.__array_namespace__() is fnp
        assert types(x) == before
        from_array_api(parts)(x)
        grad(from_array_api(lambda y: parts(y) and y.__array_namespace__().sum(y)))(X)
        assert types(x) == before
        worker = threading.Thread(target=lambda: seen.append(types(x)[:3]))
        worker.start()
        worker.join()
        assert seen[-1] == before[:3]
        return fnp.sum(x)

    seen = []
    grad(fun)(X)
    jvp(fun, (X,), (X,))


def test_namespace_mirrors_module():
    def fun(x):
        xp = x.__array_namespace__()
        assert xp is not fnp
        assert repr(xp) == "<namespace of funcgrad.numpy>"
        assert "linalg" in dir(xp)
        assert xp.float32 is np.float32
        assert xp.pi == np.pi
        assert xp.finfo(x.dtype).eps == np.finfo(float).eps
        assert xp.isdtype(x.dtype, "real floating") is True
        assert xp.result_type(x, xp.float32) == np.dtype(float)
        assert xp.__array_namespace_info__().default_device() == "cpu"
        values, vectors = found = xp.linalg.eigh(xp.eye(2))
        assert found.eigenvalues is values
        assert {
            part.__array_namespace__() for part in (values, vectors, xp.fft.fft(x), xp.broadcast_arrays(x, x)[0])
        } == {xp}
        assert xp.shape(x) == (4,)
        assert inspect.signature(xp.mean) == inspect.signature(fnp.mean)
        with pytest.raises(AttributeError):
            xp.nothing  # noqa: B018
        with pytest.raises(ValueError, match="an unknown version"):
            x.__array_namespace__(api_version="1999.12")
        return 2.0 * x

    assert np.array_equal(from_array_api(fun)(X), 2 * X)


def test_arguments_and_results_are_trees():
    def fun(tree, scale, name=None):
        assert type(scale) is float
        assert name == "text"
        mask = tree["x"] > 0
        assert mask.__array_namespace__() is tree["x"].__array_namespace__()
        return {"y": tree["x"] * mask * scale, "mask": mask, "none": None, "n": 3}

    out = from_array_api(fun)({"x": X, "unused": None}, 2.0, name="text")
    assert np.array_equal(out["y"], np.maximum(X, 0) * 2)
    assert type(out["y"]) is type(out["mask"]) is np.ndarray
    assert out["n"] == 3
    _, back = vjp(lambda x: from_array_api(fun)({"x": x, "unused": None}, 2.0, name="text")["y"], X)
    assert np.array_equal(back(np.ones(4))[0], 2.0 * (X > 0))


def test_namespace_array_used_after_run_raises():
    kept = []
    from_array_api(lambda x: kept.append(x) or x)(X)
    with pytest.raises(EscapedTracerError):
        kept[0] + 1
    with pytest.raises(TypeError, match="from_array_api"):
        from_array_api(3)


def test_from_array_api_inside_and_around_transforms():
    inner = from_array_api(smooth_absolute)
    cubed = from_array_api(lambda x: x.__array_namespace__().sum(grad(inner)(x) ** 3))
    assert np.allclose(grad(cubed)(X), 3 * np.clip(X, -1, 1) ** 2 * (np.abs(X) < 1))
    assert np.allclose(hessian(inner)(X), np.diag((np.abs(X) < 1) * 1.0))
    converting = from_array_api(lambda x: float(x[0]) * x[0])
    assert np.allclose(grad(converting)(X), 2 * X[0] * (np.arange(len(X)) == 0))
    with as_written(), pytest.raises(ConcretizationError):
        grad(converting)(X)


def test_transform_results_are_ndarrays():
    value, aux = jvp(lambda x: (fnp.sum(x), from_array_api(parts)(x)), (X,), (X,), has_aux=True)[::2]
    assert value == X.sum()
    assert not any(isinstance(part, Tracer) for part in aux)


def test_zero_dimensional_arrays_are_writable():
    def fun(x):
        made = fnp.zeros(())
        made[()] = x[0]
        copied = fnp.asarray(x[1], copy=True)
        copied[...] = copied * made
        also = fnp.array(x[2])
        also += copied
        return also * made

    assert np.allclose(grad(fun)(X[:3]), [2 * X[0] * X[1] + X[2], X[0] ** 2, X[0]])
    assert np.allclose(jacfwd(fun)(X[:3]), grad(fun)(X[:3]))


def test_scalars_are_writable_in_array_api_code():
    def fun(x):
        y = x[0] * x[1]
        y[y > 0] = x[2] ** 2
        return y

    standard = from_array_api(fun)
    assert np.allclose(grad(standard)(np.array([1.0, 2.0, 3.0])), [0, 0, 6])
    assert np.allclose(grad(standard)(np.array([1.0, -2.0, 3.0])), [-2, 1, 0])
    with pytest.raises(ReadOnlyError, match="a number cannot be written to"):
        grad(fun)(X)


def test_unique_values_are_sorted():
    def fun(x):
        return fnp.sum(fnp.unique_values(x) * fnp.asarray([1.0, 2.0]))

    assert np.array_equal(grad(fun)(np.array([4.0, 3.0, 4.0])), [2, 1, 0])


# ---- other libraries ----------------------------------------------------------------------------------------


def test_scipy_and_scikit_learn():
    """Both libraries run in a process of their own, because SciPy reads SCIPY_ARRAY_API at import."""
    if not at_least(scipy, "1.17.0") or not at_least(sklearn, "1.9.0"):  # before, many functions accepted NumPy only
        return
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "array_api_libraries.py")]
    done = subprocess.run(
        command,
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_integers_in_descending_order():
    rows = np.array([[0.5, 2.1, -1.3], [2.1, 2.2, 0.0]])
    integers = lambda x: fnp.astype(x * 2.0, np.int64)
    order = lambda x: x.__array_namespace__().argsort(integers(x), descending=True)
    assert vmap(order)(rows).tolist() == [[1, 0, 2], [0, 1, 2]]
    values = lambda x: x.__array_namespace__().sort(integers(x), descending=True)
    assert vmap(values)(rows).tolist() == [[4, 1, -2], [4, 4, 0]]
