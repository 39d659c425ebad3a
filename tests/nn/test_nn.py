"""The functions of neural networks: kinks, special values, grids of convolutions, extreme logits, narrow dtypes.

One compiled function per subject computes the values of JAX and optax.
"""

import inspect
import itertools
import math
import re
from functools import partial

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax.losses
import pytest
from helpers import at_least, close
from operations.spec import array, positive, spread

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jit, jvp, tape, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.nn.operations import convolution, patches

same = partial(close, rtol=1e-12, atol=1e-14)

INF, NAN = math.inf, math.nan
BFLOAT = np.dtype(ml_dtypes.bfloat16)


def slopes(fun, x):
    """Return the derivative in both modes."""
    return grad(fun)(x), jvp(fun, (x,), (np.ones_like(x)[()],))[1]


# ---- signatures --------------------------------------------------------------------------------------------

SHARED = [(home, name) for home in (jax.nn, optax.losses) for name in fnn.__all__ if hasattr(home, name)]
#: Functions whose signature was different in older versions.
CHANGED = set()
if not at_least(jax, "0.10.0"):
    CHANGED |= {"dot_product_attention", "log_softmax", "one_hot", "softmax", "standardize"}
if not at_least(optax, "0.2.8"):
    CHANGED |= {"cosine_distance", "cosine_similarity", "huber_loss", "smooth_labels"}
AS_NOW = [(home, name) for home, name in SHARED if name not in CHANGED]


def test_nn_shares_names_with_jax_and_optax():
    assert len(SHARED) > 40


@pytest.mark.parametrize(("home", "name"), AS_NOW, ids=[name for _, name in AS_NOW])
def test_signatures_match_jax_and_optax(home, name):
    def told(fun):
        parameters = inspect.signature(fun).parameters.values()
        return [(p.name, p.kind, p.default) for p in parameters if p.name != "out_sharding"]  # it names JAX's devices

    assert told(getattr(fnn, name)) == told(getattr(home, name))


@pytest.mark.parametrize("name", ["segment_sum", "segment_max", "segment_min", "segment_prod"])
def test_segment_signatures_start_like_jax(name):
    ours = list(inspect.signature(getattr(fnn, name)).parameters)
    assert ours == list(inspect.signature(getattr(jax.ops, name)).parameters)[: len(ours)]


# ---- the dense layer ---------------------------------------------------------------------------------------

LAYER = array(4, 3), array(3, 2, seed=1), array(2, seed=2)


def apart(x, kernel, bias):
    return x @ kernel + bias


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("argnums", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_linear_is_one_record_with_equal_values(argnums, dtype):
    args = [a.astype(dtype) for a in LAYER]

    def of(layer):
        return lambda *some: layer(*[some[argnums.index(i)] if i in argnums else a for i, a in enumerate(args)])

    moving = [args[i] for i in argnums]
    out, pullback = vjp(of(fnn.linear), *moving)
    want, wanted = vjp(of(apart), *moving)
    assert [node.name for node in tape(pullback)] == ["linear"]
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, want)
    ct = array(4, 2, seed=3).astype(dtype)
    for got, expected in zip(pullback(ct), wanted(ct), strict=True):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
    cts = array(5, 4, 2, seed=4).astype(dtype)
    for got, expected in zip(vmap(pullback)(cts), vmap(wanted)(cts), strict=True):
        same(got, expected, rtol=1e-6 if dtype == "f4" else 1e-14)


def test_linear_changes_no_argument_and_result_is_writable():
    x, kernel, bias = (a.copy() for a in LAYER)

    def fun(kernel, bias):
        y = fnn.linear(x, kernel, bias)
        y[0] = 7.0
        return fnp.sum(fnp.sin(fnn.linear(y, kernel.T @ kernel, bias)))

    def plain(kernel, bias):
        y = jnp.asarray(apart(x, kernel, bias)).at[0].set(7.0)
        return jnp.sum(jnp.sin(y @ (kernel.T @ kernel) + bias))

    for got, want in zip(grad(fun, (0, 1))(kernel, bias), jax.grad(plain, (0, 1))(kernel, bias), strict=True):
        same(got, want)
    for now, before in zip((x, kernel, bias), LAYER, strict=True):
        np.testing.assert_array_equal(now, before)


def test_linear_of_lists_vectors_and_empty_arrays():
    x, kernel, bias = LAYER
    assert fnn.linear(x.tolist(), kernel, bias.tolist()).tolist() == apart(x, kernel, bias).tolist()
    assert fnn.linear(x[0], kernel, 1.0).tolist() == (x[0] @ kernel + 1.0).tolist()
    assert fnn.linear(x, kernel).tolist() == (x @ kernel).tolist()
    assert fnn.linear(x[:0], kernel, bias).shape == (0, 2)
    wide = fnn.linear(x.astype("f4"), kernel, bias)
    assert wide.dtype == np.float64
    loss = lambda k: fnp.sum(fnn.linear(x, k, bias) ** 3)
    same(hessian(loss)(kernel), hessian(lambda k: fnp.sum(apart(x, k, bias) ** 3))(kernel))
    same(jax.jit(lambda *args: fnn.linear(*args))(*LAYER), apart(*LAYER))


@pytest.mark.parametrize("uses", [1, 3, 12])
def test_linear_of_few_rows_in_recorded_programs(uses):
    """Products of few rows are added up at the end, also where the gradient is recorded, as a sum of all uses."""
    rows, kernel, bias = array(3, 40), array(40, 64, seed=1), array(64, seed=2)

    def loss(layer, kernel, bias):
        return sum(fnp.sum(fnp.tanh(layer(rows / (i + 1), kernel, bias)) ** 2) for i in range(uses))

    def slope(grad, layer):
        return grad(lambda k, b: loss(layer, k, b), (0, 1))

    ours, theirs = slope(grad, fnn.linear), slope(jax.grad, apart)
    recorded = jit(ours, backend="numpy")
    for got, again, want in zip(ours(kernel, bias), recorded(kernel, bias), theirs(kernel, bias), strict=True):
        same(got, want)
        np.testing.assert_array_equal(again, got)
    for i in (0, 1):
        got = grad(lambda b, i=i: fnp.sum(ours(kernel, b)[i] ** 2))(bias)
        want = jax.grad(lambda b, i=i: jnp.sum(theirs(kernel, b)[i] ** 2))(bias)
        same(got, want, atol=1e-14 * abs(want).max())  # terms cancel


@pytest.mark.parametrize("shapes", [((4, 2), (3, 2), (2,)), ((4, 3), (3, 2), (3,))])
def test_linear_raises_for_shapes_like_numpy(shapes):
    args = [np.ones(shape) for shape in shapes]
    for fun in (apart, fnn.linear, grad(lambda *args: fnp.sum(fnn.linear(*args)))):
        with pytest.raises(ValueError, match=r"mismatch|broadcast"):
            fun(*args)


# ---- activations -------------------------------------------------------------------------------------------

KINKS = {
    "relu": (0.0,),
    "relu6": (0.0, 6.0),
    "leaky_relu": (0.0,),
    "hard_tanh": (-1.0, 1.0),
    "hard_sigmoid": (-3.0, 3.0),
    "hard_silu": (-3.0, 0.0, 3.0),
    "elu": (0.0,),
    "celu": (0.0,),
    "selu": (0.0,),
    "sparse_plus": (-1.0, 1.0),
    "sparse_sigmoid": (-1.0, 1.0),
    "soft_sign": (0.0,),
    "softplus": (0.0, -800.0, 800.0),
    "log_sigmoid": (0.0, -800.0, 800.0),
    "sigmoid": (0.0, -800.0, 800.0),
    "silu": (0.0, -800.0, 800.0),
    "mish": (0.0, -800.0, 800.0),
    "gelu": (0.0, -30.0, 30.0),
    "squareplus": (0.0, 3.0, -3.0),
    "log1mexp": (math.log(2), 1e-9, 40.0),
}
if not hasattr(jax.nn, "log1mexp"):  # missing in JAX 0.4
    del KINKS["log1mexp"]


def test_kinks_and_far_values_match_jax():
    points = [(name, x) for name, values in KINKS.items() for x in values]

    def everything(xs):
        named = [(getattr(jax.nn, name), x) for (name, _), x in zip(points, xs, strict=True)]
        return [(f(x), jax.grad(f)(x), jax.grad(jax.grad(f))(x)) for f, x in named]

    by_jax = jax.jit(everything)([x for _, x in points])
    for (name, x), (value, first, second) in zip(points, by_jax, strict=True):
        fun = getattr(fnn, name)
        assert fun(x) == pytest.approx(float(value), rel=1e-9, abs=1e-300), name
        for got in slopes(fun, np.float64(x)):
            assert got == pytest.approx(float(first), rel=1e-9, abs=1e-300), (name, x)
        for got in slopes(grad(fun), np.float64(x)):
            assert got == pytest.approx(float(second), rel=1e-8, abs=1e-14), (name, x)


def test_aliases():
    assert fnn.swish is fnn.silu
    assert fnn.hard_swish is fnn.hard_silu


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_for_large_arguments(approximate):
    """The results are the limits where the cube would overflow."""
    x = np.array([-1e300, -50.0, 50.0, 1e300])
    same(fnn.gelu(x, approximate), [0, 0, 50, 1e300])
    same(grad(lambda x: fnp.sum(fnn.gelu(x, approximate)))(x), [0, 0, 1, 1])


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_of_nonfinite_arguments(approximate):
    """Derivatives to second order raise no warning."""
    x = np.array([-INF, INF, NAN, 0.0])
    fun = lambda x: fnp.sum(fnn.gelu(x, approximate))
    same(fnn.gelu(x, approximate), [0, INF, NAN, 0])
    same(grad(fun)(x), [0, 1, NAN, 0.5])
    same(grad(lambda x: fnp.sum(grad(fun)(x)))(x), [0, 0, NAN, 4 / math.sqrt(2 * math.pi) / 2])
    same(grad(lambda x: fnp.sum(fnn.gelu(x, approximate) ** 2))(np.array([1e150, -1e150])), [2e150, 0])
    tangent = jvp(grad(lambda x: fnp.sum(fnn.gelu(x, approximate) ** 2)), (x[:2],), (np.ones(2),))[1]
    same(tangent, [0, 2])


def test_gelu_is_accurate_in_the_tail():
    x = np.array([-8.0, -5.0, -3.0])
    u = math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)
    same(fnn.gelu(x), x * np.exp(u) / (1 + np.exp(u)), rtol=1e-14, atol=0)
    same(fnn.gelu(x, False), [x * 0.5 * math.erfc(-x * math.sqrt(0.5)) for x in x], rtol=1e-13, atol=0)


def test_gelu_of_complex_numbers():
    z = array(3, kind="complex")
    c = math.sqrt(2 / math.pi)
    same(fnn.gelu(z), z * 0.5 * (1 + np.tanh(c * (z + 0.044715 * z**3))))
    check_grads(fnn.gelu, (z,), order=2)


def test_squareplus_is_accurate():
    x = np.array([-1e8, -1e200, 1e200])
    same(fnn.squareplus(x), [1e-8, 1e-200, 1e200], rtol=1e-15, atol=0)
    same(jacrev(lambda x: fnp.sum(fnn.squareplus(x)))(x), [1e-16, 0, 1], atol=1e-30)
    check_grads(fnn.squareplus, (np.array([-2.0, 0.5]), 3.0), order=2)


def test_log1mexp_at_ends_of_domain():
    same(fnn.log1mexp(np.array([0.0, -1.0, 1000.0])), [-INF, NAN, 0.0])
    assert grad(fnn.log1mexp)(1000.0) == 0.0
    assert grad(fnn.log1mexp)(1e-300) == pytest.approx(1e300)


def test_activation_parameters_are_differentiated():
    x = np.array([-1.5, 0.5])
    check_grads(fnn.leaky_relu, (x, 0.1), order=2)
    check_grads(fnn.elu, (x, 0.7), order=2)
    check_grads(fnn.celu, (x, 0.7), order=2)


def test_softmax_ignores_masked_elements():
    x, mask = array(2, 3), np.array([True, False, True])
    same(fnn.softmax(x, where=mask)[:, mask], fnn.softmax(x[:, mask]))
    assert not fnn.softmax(x, where=mask)[:, 1].any()
    assert (fnn.log_softmax(x, where=mask)[:, 1] == -INF).all()
    same(fnn.logmeanexp(x, 1, where=mask), np.log(np.exp(x[:, mask]).mean(1)))
    same(fnn.standardize(x, where=mask)[:, mask], fnn.standardize(x[:, mask]))
    gradient = grad(lambda x: fnp.sum(fnn.log_softmax(x, where=mask)[:, 0]))(x)
    assert not gradient[:, 1].any()
    assert np.isfinite(gradient).all()


def test_one_hot():
    same(fnn.one_hot(np.array([[0, 2], [-1, 3]]), 3, axis=0), jax.nn.one_hot(jnp.array([[0, 2], [-1, 3]]), 3, axis=0))
    assert fnn.one_hot(1, 3, dtype=np.float32).dtype == np.float32
    assert fnn.one_hot(np.array([0, 1]), 2, dtype=int).dtype == int


def test_glu_raises_for_odd_length():
    with pytest.raises(ShapeError, match="even length"):
        fnn.glu(np.ones(3))


def test_standardize_avoids_cancellation():
    x = 1e8 + np.array([-1.0, 0.0, 1.0])
    same(fnn.standardize(x, epsilon=0.0), np.array([-1, 0, 1]) * math.sqrt(1.5))
    assert fnn.standardize(x, mean=1e8, variance=1.0, epsilon=0.0).tolist() == [-1, 0, 1]


FUSED = {
    "relu": fnn.relu,
    "gelu": fnn.gelu,
    "exact gelu": lambda x: fnn.gelu(x, False),
    "softmax": fnn.softmax,
    "log_softmax": fnn.log_softmax,
    "softmax of several axes": lambda x: fnn.softmax(x, (0, -1)),
    "standardize": fnn.standardize,
    "standardize columns": lambda x: fnn.standardize(x, 0),
    "standardize several axes": lambda x: fnn.standardize(x, (-1, 0)),
    "layer_norm": lambda x: fnn.layer_norm(x, np.full(x.shape[-1], 2.0, x.dtype), np.ones(x.shape[-1], x.dtype)),
    "binary": lambda x: fnn.sigmoid_binary_cross_entropy(x, np.linspace(0, 1, x.size, dtype=x.dtype).reshape(x.shape)),
    "classes": lambda x: fnn.softmax_cross_entropy_with_integer_labels(x, np.full(x.shape[:-1], 3)),
    "weights": lambda x: fnn.softmax_cross_entropy(x, np.linspace(-1, 1, x.size, dtype=x.dtype).reshape(x.shape)),
}
LAYOUTS = {
    "few": lambda x: x[:3, :5].copy(),
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "strided": lambda x: x[:, ::2],
    "three": lambda x: x.reshape(10, 13, 100).transpose(1, 0, 2),
    "far": lambda x: x * 20,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUSED)
def test_activations_of_any_size_and_layout(name, layout, dtype):
    """Results for many elements equal those in long double; arguments are not overwritten."""
    fun, x = FUSED[name], LAYOUTS[layout](np.random.default_rng(0).normal(size=(130, 100)).astype(dtype))
    before = x.copy()
    out, pullback = vjp(fun, x)
    kept, ct = out.copy(), np.cos(np.arange(out.size, dtype=dtype)).reshape(out.shape)
    first, again = pullback(ct)[0], pullback(ct)[0]
    assert out.dtype == first.dtype == dtype
    assert out.flags.writeable
    first += 1
    same(first - 1, again, rtol=1e-5, atol=1e-5)
    assert np.array_equal(out, kept)
    assert np.array_equal(x, before)
    assert np.array_equal(ct, np.cos(np.arange(out.size, dtype=dtype)).reshape(out.shape))
    widest = np.float64 if name == "exact gelu" else np.longdouble  # SciPy's error function has no long double
    want, pull = vjp(fun, x.astype(widest))
    tolerance = 200 * np.finfo(dtype).eps
    same(out, want, rtol=tolerance, atol=tolerance)
    wanted = pull(ct.astype(widest))[0]
    same(again, wanted, rtol=tolerance, atol=tolerance * max(float(abs(wanted).max()), 0.01))
    pushed = jvp(fun, (x,), (again,))[1]
    same(np.sum(pushed * ct), np.sum(again * again), rtol=1e4 * np.finfo(dtype).eps)


def test_relu_of_large_arrays():
    x = np.resize([-1.0, 0.0, NAN, INF, -INF, 2.0, -0.0], 20_000)
    same(fnn.relu(x), np.maximum(x, 0))
    same(grad(lambda x: fnp.sum(fnn.relu(x)))(x), x > 0)
    for view in (x[::-1], x.reshape(2, -1).T, x[::2].reshape(10, -1), x.astype(">f8"), x.astype("f4")):
        assert fnn.relu(view).dtype == np.maximum(view, 0).dtype
        np.testing.assert_array_equal(fnn.relu(view), np.maximum(view, 0))
    ints = np.resize([-1, 0, 2], 20_000)
    assert np.array_equal(fnn.relu(ints), np.maximum(ints, 0))
    assert fnn.relu(ints).dtype == int


# ---- convolution -------------------------------------------------------------------------------------------

#: lhs, rhs, strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature groups, batch groups.
CONVOLUTIONS = [
    ((2, 3, 6), (4, 3, 3), (2,), "SAME", None, None, None, 1, 1),
    ((2, 3, 6), (4, 3, 4), (2,), "SAME_LOWER", None, (2,), None, 1, 1),
    ((2, 3, 7), (4, 3, 3), (3,), [(-1, 2)], None, None, None, 1, 1),
    ((2, 3, 5), (2, 3, 3), (1,), [(2, 1)], (3,), (2,), None, 1, 1),
    ((2, 3, 5), (2, 3, 3), (2,), [(3, 4)], (3,), None, None, 1, 1),
    ((2, 4, 5, 4), (6, 2, 3, 2), (1, 2), "VALID", None, None, None, 2, 1),
    ((4, 2, 5, 4), (6, 2, 2, 3), (2, 1), "SAME", None, (2, 1), None, 1, 2),
    ((2, 5, 4, 6), (2, 3, 1, 6), (1, 1), "SAME", None, None, ("NHWC", "HWIO", "NHWC"), 6, 1),
    ((5, 4, 2, 3), (2, 4, 2, 2), (1, 1), "VALID", None, None, ("HWCN", "OWIH", "CNWH"), 1, 1),
    ((1, 2, 3, 3, 4), (3, 2, 2, 1, 3), (1, 2, 1), "SAME", None, None, None, 1, 1),
    ((3, 2), (4, 2), (), "VALID", None, None, None, 1, 1),
    ((8, 2, 18, 18), (3, 2, 3, 3), (1, 1), "SAME", None, None, None, 1, 1),  # many places
    ((8, 4, 33, 35), (4, 2, 3, 2), (2, 2), "VALID", None, (1, 2), None, 2, 1),
]
TRANSPOSED = [
    ((2, 4, 3), (3, 3, 2), 2, "SAME", None, False),
    ((2, 4, 3), (2, 3, 2), 3, "VALID", None, False),
    ((2, 4, 3), (3, 2, 3), 2, [(2, 1)], (2,), True),
    ((1, 3, 2, 2), (4, 2, 2, 3), (2, 1), "SAME", None, False),
    ((1, 3, 2, 2), (2, 2, 2, 3), (2, 3), "VALID", (1, 2), False),
]


def pulled(fun, vjp, lhs, rhs):
    out, pullback = vjp(fun, lhs, rhs)
    return out, *pullback(out)


@pytest.fixture(scope="module")
def by_lax():
    """Return the values of ``jax.lax``: the result, and the cotangents of both arguments."""

    def everything(pairs, more):
        plain = [
            pulled(lambda x, y, r=rest: jax.lax.conv_general_dilated(x, y, *r), jax.vjp, *pair)
            for (_, _, *rest), pair in zip(CONVOLUTIONS, pairs, strict=True)
        ]
        turned = [
            pulled(
                lambda x, y, s=s, p=p, d=d, t=t: jax.lax.conv_transpose(
                    x, y, (s,) * (x.ndim - 2) if isinstance(s, int) else s, p, d, transpose_kernel=t
                ),
                jax.vjp,
                *pair,
            )
            for (_, _, s, p, d, t), pair in zip(TRANSPOSED, more, strict=True)
        ]
        return plain + turned

    pairs = [[(array(*row[0]), array(*row[1], seed=1)) for row in rows] for rows in (CONVOLUTIONS, TRANSPOSED)]
    return jax.jit(everything)(*pairs)


@pytest.mark.parametrize("number", range(len(CONVOLUTIONS)))
def test_convolution_matches_lax(number, by_lax):
    lhs, rhs, *rest = CONVOLUTIONS[number]
    fun = lambda x, y: fnn.conv(x, y, *rest)
    for got, want in zip(pulled(fun, vjp, array(*lhs), array(*rhs, seed=1)), by_lax[number], strict=True):
        same(got, want, atol=1e-12)


@pytest.mark.parametrize("number", range(len(TRANSPOSED)))
def test_transposed_convolution_matches_lax(number, by_lax):
    lhs, rhs, strides, padding, dilation, turned = TRANSPOSED[number]
    fun = lambda x, y: fnn.conv_transpose(x, y, strides, padding, dilation, transpose_kernel=turned)
    got = pulled(fun, vjp, array(*lhs), array(*rhs, seed=1))
    for part, want in zip(got, by_lax[len(CONVOLUTIONS) + number], strict=True):
        same(part, want, atol=1e-12)


def by_definition(x, y, geometry):
    """Compute the sum in the module's docstring, element by element."""
    stride, before, stretch, dilation, out = geometry
    ans = np.zeros((*x.shape[:2], y.shape[1], *out))
    for q in np.ndindex(out):
        for k in np.ndindex(y.shape[3:]):
            at = [s * i + r * j - o for s, i, r, j, o in zip(stride, q, dilation, k, before, strict=True)]
            inside = zip(at, stretch, x.shape[3:], strict=True)
            if all(place % e == 0 and 0 <= place // e < n for place, e, n in inside):
                place = tuple(i // e for i, e in zip(at, stretch, strict=True))
                ans[(..., *q)] += np.einsum("gac,gbc->gab", x[(..., *place)], y[(..., *k)])
    return ans


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_convolution_of_any_geometry(seed, transformed, monkeypatch):
    """Random strides, paddings and dilations on both sides, also with a kernel larger than the array."""
    monkeypatch.setattr(patches, "worth_transforming", lambda *args: transformed)
    rng = np.random.default_rng(seed)
    plain = (1, 2)
    limits = (plain, (-2, 5), plain, plain, (1, 8)) if transformed else ((1, 4), (-1, 4), (1, 4), (1, 3), (1, 5))
    for _ in range(8):
        rank = int(rng.integers(1, 3))
        lengths, places = rng.integers(1, 6, rank), rng.integers(1, 5, rank)
        geometry = convolution.Geometry(*[tuple(map(int, rng.integers(low, high, rank))) for low, high in limits])
        x, y = rng.normal(size=(2, 2, 3, *lengths)), rng.normal(size=(2, 1, 3, *places))
        fun = lambda x, y, geometry=geometry: convolution.convolution(x, y, geometry=geometry)
        out, pullback = vjp(fun, x, y)
        same(out, by_definition(x, y, geometry), atol=1e-12)
        ct, t, s = rng.normal(size=out.shape), rng.normal(size=x.shape), rng.normal(size=y.shape)
        in_x, in_y = pullback(ct)
        pushed = by_definition(t, y, geometry) + by_definition(x, s, geometry)
        same(jvp(fun, (x, y), (t, s))[1], pushed, atol=1e-12)
        same((in_x * t).sum() + (in_y * s).sum(), (ct * pushed).sum(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("block", [1, 400, 10**9])
def test_convolution_is_independent_of_block_size(block, monkeypatch):
    """The result does not depend on the block size that fits the cache."""
    x, y = array(3, 4, 7, 6), array(4, 2, 3, 2, seed=1)
    fun = lambda x, y: fnn.conv(x, y, (2, 1), "SAME", feature_group_count=2)
    want = pulled(fun, vjp, x, y)
    monkeypatch.setattr(patches, "_BLOCK", block)
    for got, expected in zip(pulled(fun, vjp, x, y), want, strict=True):
        same(got, expected, atol=1e-12)


#: Shapes of arrays and kernels, and options of the convolution.
LONG = [
    ((2, 3, 300), (2, 3, 70), {}),
    ((2, 2, 20, 16), (3, 2, 11, 8), {"padding": [(10, 3), (0, 7)]}),
    ((3, 10, 9, 8), (4, 10, 9, 5), {}),
    ((1, 4, 20, 20), (4, 2, 9, 9), {"padding": "SAME", "feature_group_count": 2}),
    ((4, 2, 300), (2, 2, 90), {"padding": [(-3, 5)], "batch_group_count": 2}),
    ((2, 2, 300), (2, 2, 70), {"padding": "SAME", "window_strides": 3}),
    ((2, 2, 300), (2, 2, 70), {"padding": "SAME", "rhs_dilation": 2}),
    ((2, 2, 150), (2, 2, 70), {"padding": [(9, 80)], "lhs_dilation": 2}),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("number", range(len(LONG)))
def test_long_kernels(number, dtype, monkeypatch):
    """FFTs and direct sums agree up to rounding of the largest element, in both modes, with and without strides."""
    lhs, rhs, options = LONG[number]
    rng = np.random.default_rng(number)
    x, y, t, s = [rng.normal(size=shape).astype(dtype) for shape in (lhs, rhs) * 2]
    if dtype == "complex128":
        x, y, t, s = [v + 1j * rng.normal(size=v.shape) for v in (x, y, t, s)]
    fun = lambda x, y: fnn.conv(x, y, **options)

    def everything():
        return [*pulled(fun, vjp, x, y), jvp(fun, (x, y), (t, s))[1]]

    used, by_transforms = [], patches.by_transforms
    monkeypatch.setattr(patches, "by_transforms", lambda *args: used.append(args) or by_transforms(*args))
    monkeypatch.setattr(patches, "worth_transforming", lambda *args: True)
    got = everything()
    assert len(used) == 6 or {"window_strides", "rhs_dilation", "lhs_dilation"} & set(options)
    monkeypatch.setattr(patches, "worth_transforming", lambda *args: False)
    for part, want in zip(got, everything(), strict=True):
        assert part.dtype == want.dtype == dtype
        assert part.shape == want.shape
        assert abs(part - want).max() <= 40 * np.finfo(dtype).eps * abs(want).max()


def test_long_kernels_per_example_and_to_second_order():
    x, y = array(2, 1, 1, 200), array(2, 1, 1, 80, seed=1)
    fun = lambda x, y: fnp.sum(fnn.conv(x, y) ** 2)
    got = vmap(grad(fun, (0, 1)))(x, y)
    for i in range(2):
        for part, want in zip(got, grad(fun, (0, 1))(x[i], y[i]), strict=True):
            same(part[i], want, atol=1e-10)
    second = hessian(lambda x: fun(x, y[0]))(x[0]).reshape(200, 200)
    rows = np.array([np.convolve(row, y[0, 0, 0, ::-1], "valid") for row in np.eye(200)])
    same(second, 2 * rows @ rows.T, atol=1e-10)


def test_long_kernels_with_nonfinite_values():
    """An infinity affects only the sums that contain it; if the transform would overflow, direct sums are used."""
    x, y = np.ones((1, 1, 1000)), np.ones((1, 1, 400))
    assert patches.worth_transforming((1, 1, 1, 1000), (1, 1, 1, 400), (0,), (601,), x.dtype)
    assert not patches.worth_transforming((1, 1, 1, 1000), (1, 1, 1, 9), (0,), (992,), x.dtype)
    x[0, 0, 50] = INF
    assert np.isinf(fnn.conv(x, y)).sum() == 51
    assert (fnn.conv(x, y)[0, 0, 51:] == 400).all()
    large = fnn.conv(np.full(x.shape, 5e152), np.full(y.shape, 5e152))
    same(large, np.full((1, 1, 601), 1e308), rtol=1e-13)


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [((2, 3, 64, 64), (5, 3, 1, 1)), ((2, 3, 32, 32), (5, 3, 32, 32)), ((26, 26, 130), (26, 26, 65))],
    ids=["kernels of one place", "results of one place", "many channels"],
)
def test_convolutions_by_matrix_products(lhs, rhs):
    x, y = (np.random.default_rng(0).normal(size=shape) for shape in (lhs, rhs))
    by_lax = lambda x, y: jax.lax.conv_general_dilated(x, y, (1,) * (x.ndim - 2), "VALID")
    for found, expected in zip(pulled(fnn.conv, vjp, x, y), pulled(by_lax, jax.vjp, x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


def test_convolution_of_nonfinite_values():
    """Entries beyond the borders are not read, so no zero there is multiplied by an infinity."""
    x, y = np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2))
    x[0, 0, 3, 3] = INF
    out, pullback = vjp(lambda x, y: fnn.conv(x, y), x, y)
    assert np.isinf(out).sum() == 1
    assert np.isfinite(out).sum() == 8
    _, in_y = pullback(np.ones_like(out))
    assert in_y.tolist() == [[[[9.0, 9.0], [9.0, INF]]]]
    out = fnn.conv(np.ones((1, 1, 3, 3)), np.array([[[[1.0, INF]]]]), 1, [(0, 0), (0, 1)])
    assert out.tolist() == [[[[INF, INF, 1.0]] * 3]]


def test_convolution_of_empty_arrays():
    for lhs, rhs, want in (
        ((0, 2, 4), (3, 2, 2), (0, 3, 3)),
        ((1, 2, 1), (3, 2, 2), (1, 3, 0)),
        ((1, 0, 4), (3, 0, 2), (1, 3, 3)),
        ((1, 2, 4), (0, 2, 2), (1, 0, 3)),
    ):
        out, *cts = pulled(fnn.conv, vjp, np.ones(lhs), np.ones(rhs))
        assert out.shape == want
        assert not out.any()
        assert [ct.shape for ct in cts] == [lhs, rhs]


def test_convolution_is_bilinear_to_any_order():
    x, y = array(1, 2, 4), array(2, 2, 2, seed=1)
    check_grads(lambda x, y: fnn.conv(x, y, 2, [(1, 1)]) ** 2, (x, y), order=2)
    second = hessian(lambda x: fnp.sum(fnn.conv(x, y) ** 2))(x)
    rows = jacfwd(lambda x: fnn.conv(x, y))(x).reshape(-1, x.size)
    same(second.reshape(x.size, x.size), 2 * rows.T @ rows, atol=1e-12)


def test_convolution_per_example():
    """One kernel for all examples, one array for all examples, and a kernel for each example."""
    x, y = array(3, 1, 2, 5), array(3, 2, 2, 3, seed=1)
    for axes in itertools.product((0, None), repeat=2):
        if axes == (None, None):
            continue
        args = [a if axis == 0 else a[0] for a, axis in zip((x, y), axes, strict=True)]
        loop = [grad(lambda x, y: fnp.sum(fnn.conv(x, y) ** 2), (0, 1)) for _ in range(3)]
        pairs = [[a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True)] for i in range(3)]
        got = vmap(loop[0], in_axes=axes)(*args)
        for part, want in zip(got, zip(*[f(*p) for f, p in zip(loop, pairs, strict=True)], strict=True), strict=True):
            same(part, np.stack(want), atol=1e-12)


def test_complex_convolution():
    x, y = array(1, 2, 5, kind="complex"), array(2, 2, 3, seed=1, kind="complex")
    same(fnn.conv(x, y)[0, 0], sum(np.correlate(x[0, c], y[0, c].conj(), "valid") for c in range(2)))
    check_grads(fnn.conv, (x, y), order=2)


@pytest.mark.parametrize("call", [fnn.conv, fnn.conv_transpose])
def test_unknown_padding_raises(call):
    with pytest.raises(InputError, match="unknown padding, got 'FULL'"):
        call(np.ones((1, 1, 3)), np.ones((1, 1, 2)), 1, "FULL")


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ShapeError, "same number of axes", {"rhs": np.ones((1, 2))}),
        (ShapeError, "do not fit a kernel", {"rhs": np.ones((1, 3, 2))}),
        (ShapeError, "do not fit a kernel", {"feature_group_count": 2}),
        (ShapeError, "do not fit a kernel", {"batch_group_count": 2}),
        (ShapeError, "window_strides must be 1 integers", {"window_strides": (1, 1)}),
        (ShapeError, "rhs_dilation must be 1 integers of at least 1", {"rhs_dilation": 0}),
        (ShapeError, "a pair", {"padding": [(0, 0), (0, 0)]}),
        (InputError, "three texts of 3 letters", {"dimension_numbers": ("NHC", "HWIO", "NHC")}),
        (InputError, "three texts of 3 letters", {"dimension_numbers": "NHC"}),
    ],
)
def test_invalid_convolution_raises(error, match, arguments):
    with pytest.raises(error, match=match):
        fnn.conv(**{"lhs": np.ones((1, 2, 3)), "rhs": np.ones((1, 2, 2)), **arguments})


def test_channels_last_error_names_dimension_numbers():
    with pytest.raises(ShapeError, match=r"8 features do not fit a kernel of 3 inputs, got .*pass dimension_numbers"):
        fnn.conv(np.ones((2, 8, 8, 3)), np.ones((3, 3, 3, 5)))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fnn.linear(np.ones((2, 3)), np.ones((4, 5))), r"linear: .*, got x \(2, 3\), kernel \(4, 5\)\."),
        (lambda: fnn.linear(np.ones((2, 3)), np.ones((3, 5)), np.ones(4)), r"bias \(outputs,\), got .* bias \(4,\)\."),
        (
            lambda: fnn.layer_norm(np.ones((2, 3)), np.ones(4)),
            r"normalised axes \(1,\), got x \(2, 3\), scale \(4,\)\.",
        ),
        (
            lambda: fnn.softmax_cross_entropy(np.ones((2, 3)), np.array([0, 1])),
            r"labels \(2,\)\. For numbers of classes use softmax_cross_entropy_with_integer_labels",
        ),
    ],
)
def test_mismatched_shape_error_names_shapes(call, says):
    with pytest.raises(ValueError, match=r"broadcast|mismatch") as found:
        call()
    assert re.search(says, found.value.__notes__[0])


def test_dimension_numbers_of_lax():
    numbers = jax.lax.conv_dimension_numbers((1, 4, 2), (2, 2, 3), ("NHC", "HIO", "NHC"))
    x, y = array(1, 4, 2), array(2, 2, 3, seed=1)
    assert np.array_equal(
        fnn.conv(x, y, dimension_numbers=numbers), fnn.conv(x, y, dimension_numbers=("NHC", "HIO", "NHC"))
    )


# ---- pooling -----------------------------------------------------------------------------------------------

POOLS = [
    ((4, 6), (2, 2), (2, 2), "VALID"),
    ((5, 5), (3, 2), (2, 1), "SAME"),
    ((5, 4), (2, 3), (3, 2), [(1, 2), (0, 1)]),
    ((2, 3), (3, 1), (1, 1), "SAME_LOWER"),
]


def test_scalar_window_raises():
    with pytest.raises(InputError, match=r"max_pool: window_shape must .* got int 2\. Write \(2, 2\)"):
        fnn.max_pool(np.ones((4, 4)), 2)


def test_pooling_matches_lax():
    """The samples have many ties: the first of equal elements gets the derivative."""
    arrays = [np.round(array(2, *shape)) for shape, *_ in POOLS]
    kinds = (("max", -INF), ("add", 0.0))

    def everything(arrays):
        return [
            pulled(
                lambda x, y, w=window, s=strides, p=padding, k=kind, i=start: jax.lax.reduce_window(
                    x, i, getattr(jax.lax, k), (1, *w), (1, *s), p if isinstance(p, str) else [(0, 0), *p]
                ),
                jax.vjp,
                x,
                0.0,
            )[:2]
            for x, (_, window, strides, padding) in zip(arrays, POOLS, strict=True)
            for kind, start in kinds
        ]

    found = iter(jax.jit(everything)(arrays))
    for x, (_, window, strides, padding) in zip(arrays, POOLS, strict=True):
        for pool in (fnn.max_pool, lambda *a: fnn.avg_pool(*a) * math.prod(a[1])):
            out, pullback = vjp(lambda x, pool=pool, rest=(window, strides, padding): pool(x, *rest), x)
            want, pulled_back = next(found)
            same(out, want, atol=1e-12)
            same(pullback(out)[0], pulled_back, atol=1e-12)


def test_max_pool_has_second_derivatives():
    check_grads(lambda x: fnn.max_pool(x, (2, 2), 1, "SAME") ** 3, (spread(3, 3),), order=2)
    check_grads(lambda x: fnn.min_pool(x, (2,), 2) ** 3, (spread(5),), order=2)


def test_pooling_of_padding_only_and_of_nan():
    assert fnn.max_pool(np.array([1.0, 2.0]), (1,), 1, [(1, 0)]).tolist() == [-INF, 1.0, 2.0]
    out, pullback = vjp(lambda x: fnn.max_pool(x, (2,), 2), np.array([1.0, NAN, 3.0, 2.0]))
    assert np.isnan(out[0])
    assert pullback(np.ones(2))[0].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert fnn.max_pool(np.array([3, 1, 2]), (2,)).tolist() == [3, 2]
    assert fnn.max_pool(np.ones((2, 1)), (3,)).shape == (2, 0)


def test_pooling_along_any_axes():
    x = spread(2, 5, 4, 3)
    want = fnn.max_pool(np.moveaxis(x, -1, 1), (2, 2), 2)
    assert np.array_equal(fnn.max_pool(x, (2, 2), 2, axes=(1, 2)), np.moveaxis(want, 1, -1))
    same(fnn.avg_pool(x, (5, 4), axes=(1, 2)), x.mean((1, 2), keepdims=True))


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        ("a window of 2 axes", ((2, 2),)),
        ("strides must be 1 integers of at least 1", ((2,), 0)),
        ("window_shape must be 1 integers of at least 1", ((0,),)),
    ],
)
def test_invalid_pooling_raises(match, arguments):
    with pytest.raises(ShapeError, match=match):
        fnn.max_pool(np.ones(3), *arguments)
    with pytest.raises(ShapeError, match="axes must name 1 axes"):
        fnn.avg_pool(np.ones((3, 3)), (2,), axes=(0, 1))


# ---- segments ----------------------------------------------------------------------------------------------

IDS = np.array([2, 0, 2, -1, 0, 7, 2])


def test_segment_functions_match_jax():
    """Ties share the derivative, empty segments have the extremum of no elements, ids out of range are dropped."""
    data = np.array([1.0, 5.0, 3.0, 9.0, 5.0, 8.0, 3.0])
    names = ("segment_sum", "segment_max", "segment_min")

    def everything(x):
        return [pulled(lambda x, y, n=n: getattr(jax.ops, n)(x, IDS, 4), jax.vjp, x, 0.0)[:2] for n in names]

    for name, (value, pulled_back) in zip(names, jax.jit(everything)(data), strict=True):
        out, pullback = vjp(lambda x, name=name: getattr(fnn, name)(x, IDS, 4), data)
        assert np.array_equal(out, value), name
        finite = np.where(np.isfinite(out), out, 0.0)
        same(pullback(finite)[0], np.where(np.isnan(pulled_back), 0.0, pulled_back))


def test_segment_products_are_exact_at_zeros():
    data = np.array([2.0, 0.0, 3.0, 1.0, 0.0, 1.0, 5.0])
    out, pullback = vjp(lambda x: fnn.segment_prod(x, IDS, 4), data)
    assert out.tolist() == [0.0, 1.0, 30.0, 1.0]
    assert pullback(np.ones(4))[0].tolist() == [15.0, 0.0, 10.0, 0.0, 0.0, 0.0, 6.0]
    second = hessian(lambda x: fnp.sum(fnn.segment_prod(x, IDS, 4)))(data)
    assert second[1, 4] == 1.0
    assert second[0, 2] == 5.0


def test_segments_of_rows_and_empty_segments():
    data = array(7, 2)
    same(fnn.segment_mean(data, IDS, 4)[2], data[[0, 2, 6]].mean(0))
    assert fnn.segment_sum(np.ones((0, 2)), np.zeros(0, int)).shape == (0, 2)
    assert fnn.segment_prod(np.ones((0, 2)), np.zeros(0, int), 2).tolist() == [[1, 1], [1, 1]]
    assert fnn.segment_max(np.ones(0), np.zeros(0, int), 1).tolist() == [-INF]
    assert fnn.segment_max(np.array([1, 2]), np.array([0, 0]), 2).tolist() == [2, np.iinfo(int).min]
    assert not grad(lambda x: fnp.sum(fnn.segment_max(x, np.array([0, 1]), 0)))(np.ones(2)).any()


def test_numbers_of_segments_in_a_jax_array():
    data, ids = array(4), np.array([0, 2, 0, 1])
    for fun in (fnn.segment_sum, fnn.segment_mean, fnn.segment_max, fnn.segment_min, fnn.segment_prod):
        np.testing.assert_allclose(fun(jnp.asarray(data), jnp.asarray(ids)), fun(data, ids, bucket_size=2))
        np.testing.assert_allclose(jax.grad(lambda x, fun=fun: fun(x, jnp.asarray(ids)).sum())(data)[1], 1.0)


def test_invalid_segments_raise():
    with pytest.raises(InputError, match="segment_ids must be integers"):
        fnn.segment_sum(np.ones(2), np.ones(2))
    with pytest.raises(ShapeError, match="a number for each row"):
        fnn.segment_sum(np.ones(2), np.array([0]))
    with pytest.raises(ShapeError, match="must not be negative"):
        fnn.segment_sum(np.ones(1), np.array([0]), -1)
    with pytest.raises(ConcretizationError, match="Pass num_segments"):
        vmap(lambda ids: fnn.segment_sum(np.ones(2), ids))(np.array([[0, 1]]))


# ---- losses ------------------------------------------------------------------------------------------------

EXTREME = [1e4, -1e4, 40.0, -40.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binary_cross_entropy_at_any_logit(dtype):
    x = np.array(EXTREME, dtype)
    for label in (0, 1):
        fun = lambda x, label=label: fnn.sigmoid_binary_cross_entropy(x, label)
        signed = x.astype(float) * (1 - 2 * label)
        same(fun(x), np.logaddexp(signed, 0), rtol=4 * np.finfo(dtype).eps, atol=0)
        value, gradient = value_and_grad(lambda x, fun=fun: fnp.sum(fun(x)))(x)
        assert gradient.dtype == value.dtype == dtype
        same(gradient, fnn.sigmoid(signed) * (1 - 2 * label), rtol=4 * np.finfo(dtype).eps, atol=1e-300)
    assert fnn.sigmoid_binary_cross_entropy(-INF, 0) == fnn.sigmoid_binary_cross_entropy(INF, 1) == 0
    assert fnn.sigmoid_binary_cross_entropy(-INF, 1) == INF


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_at_any_logit(dtype):
    """Classes with logit -inf are left out."""
    x = np.array([[1e4, 0.0, -INF], [40.0, 0.0, -1e4], [-1e4, -1e4, -INF]], dtype)
    labels = np.array([1, 0, 0])
    with np.errstate(invalid="ignore"):
        top = x.astype(float) - x.max(1, keepdims=True)
    logs = top - np.log1p(np.sort(np.exp(top))[:, :-1].sum(1, keepdims=True))
    want = -np.take_along_axis(logs, labels[:, None], 1)[:, 0]
    for fun in (
        lambda x: fnn.softmax_cross_entropy_with_integer_labels(x, labels),
        lambda x: fnn.softmax_cross_entropy(x, np.eye(3, dtype=dtype)[labels]),
    ):
        assert fun(x).dtype == dtype
        same(fun(x), want, rtol=1e-6, atol=1e-7 if dtype == np.float32 else 1e-16)
        gradient = grad(lambda x, fun=fun: fnp.sum(fun(x)))(x)
        same(gradient, np.exp(logs) - np.eye(3)[labels], atol=1e-6 if dtype == np.float32 else 1e-15)
        same(jvp(fun, (x,), (np.ones_like(x),))[1], 0, atol=1e-6)


def test_masked_cross_entropy_matches_optax():
    x, labels, mask = array(2, 3, 4), positive(2, 3, 4, seed=1), array(2, 3, 4) > -1
    integers, examples = np.array([[0, 3, 1], [2, 2, 0]]), np.array([True, False])
    calls = [
        ("softmax_cross_entropy", (labels, -1, mask)),
        ("softmax_cross_entropy", (labels, None)),
        ("softmax_cross_entropy_with_integer_labels", (np.array([[0, 1, 2, 0]] * 2), 1)),
        ("kl_divergence", (labels, -1, mask)),
        ("cosine_similarity", (labels,)),
    ]
    if at_least(optax, "0.2.8"):  # since then classes may have two axes, and a mask one entry per example
        calls += [
            ("softmax_cross_entropy_with_integer_labels", (np.array([11, 3]), (1, 2))),
            ("softmax_cross_entropy", (labels, (1, 2), examples)),
            ("softmax_cross_entropy_with_integer_labels", (integers, -1, np.array([[True, False, True]] * 2))),
        ]

    def everything(x):
        return [getattr(optax.losses, name)(x, *args) for name, args in calls]

    for (name, args), want in zip(calls, jax.jit(everything)(x), strict=True):
        same(getattr(fnn, name)(x, *args), want)


def test_mask_of_all_true_changes_nothing():
    """With a mask, other operations make up the cross entropies: the results agree to second order."""
    x, labels, classes = array(3, 4), positive(3, 4, seed=1), np.array([3, 0, 2])
    x[0, 1] = x[1, 2] = -INF
    labels[0, 1] = labels[1, 2] = 0.0
    everything = np.ones((3, 4), bool)
    for fun in (
        lambda x, y, **mask: fnn.softmax_cross_entropy(x, y, **mask),
        lambda x, y, **mask: fnn.softmax_cross_entropy(x, y, (1, 0), **mask),
        lambda x, y, **mask: fnn.softmax_cross_entropy_with_integer_labels(x, classes, **mask) * fnp.sum(y, 1),
    ):
        plain = lambda x, y, fun=fun: fun(x, y)
        masked = lambda x, y, fun=fun: fun(x, y, where=everything)
        same(plain(x, labels), masked(x, labels))
        finite = lambda fun: lambda x, y: fnp.sum(fnp.sin(fnp.where(fnp.isfinite(z := fun(x, y)), z, 0.0)))
        for part, want in zip(*[grad(finite(f), (0, 1))(x, labels) for f in (plain, masked)], strict=True):
            same(part, want)
        for row, wanted in zip(*[hessian(finite(f), (0, 1))(x, labels) for f in (plain, masked)], strict=True):
            for part, want in zip(row, wanted, strict=True):
                same(part, want, atol=1e-13)


def test_labels_of_cross_entropy():
    """Negative labels count from the end; invalid labels are refused; batches of labels share the logits."""
    x, classes = array(2, 3), np.array([2, 0])
    fun = fnn.softmax_cross_entropy_with_integer_labels
    same(fun(x, classes - 3), fun(x, classes))
    for wrong in (np.array([3, 0]), np.array([-4, 0])):
        with pytest.raises(IndexError):
            fun(x, wrong)
    for wrong in (np.array([1.0, 0.0]), np.array([True, False])):
        with pytest.raises(InputError, match=r"integer_labels: labels must be integers, got .*labels\.astype\(int\)"):
            fun(x, wrong)
    same(vmap(lambda y: fun(x, y))(np.stack([classes, classes[::-1]]))[1], fun(x, classes[::-1]))
    same(fun(x[:1], classes), [fun(x[0], classes[0]), fun(x[0], classes[1])])
    same(fun(x, classes[:1]), fun(x, np.array([2, 2])))  # as in Optax
    same(grad(lambda x: fnp.sum(fun(x, classes[:1])))(x), grad(lambda x: fnp.sum(fun(x, np.array([2, 2]))))(x))
    for shape in ((), (3,), (2, 1)):
        with pytest.raises(ShapeError, match=r"integer_labels: labels must have the shape \[2\]"):
            fun(x, np.zeros(shape, int))
    one = fun(x[0], 2)
    assert isinstance(one, np.float64)
    assert isinstance(fnn.softmax_cross_entropy(x[0], np.eye(3)[2]), np.float64)
    assert fnn.softmax_cross_entropy(x.astype(np.float32), np.eye(3, dtype=bool)[classes]).dtype == np.float32
    assert fnn.sigmoid_binary_cross_entropy(x.astype(np.float32), x > 0).dtype == np.float32
    pulled_back = grad(lambda x: fnp.sum(fun(x, np.array([[1, 0, 1]] * 2), 1)))(array(2, 4, 3))
    same(pulled_back.sum(1), 0, atol=1e-15)


def test_binary_cross_entropy_of_infinite_logits():
    x, labels = np.array([-INF, INF, -INF, INF, NAN, 0.0]), np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.25])
    same(fnn.sigmoid_binary_cross_entropy(x, labels), [0, 0, INF, INF, NAN, math.log(2)])
    same(grad(lambda x: fnp.sum(fnn.sigmoid_binary_cross_entropy(x, labels)))(x), [0, 0, -1, 1, NAN, 0.25])
    check_grads(fnn.sigmoid_binary_cross_entropy, (array(2, 3), positive(3, high=0.9)), order=2)
    assert jax.grad(lambda x: fnn.sigmoid_binary_cross_entropy(x, 0.25))(jnp.array(0.0)) == 0.25


def test_regression_losses_are_accurate():
    same(fnn.log_cosh(np.array([1e-9, 1e4, -1e4])), [5e-19, 1e4 - math.log(2), 1e4 - math.log(2)], atol=0)
    same(slopes(lambda x: fnn.log_cosh(x), np.float64(1e4)), [1.0, 1.0])
    assert fnn.huber_loss(2.0, 0.0, delta=2.0) == 2.0
    same(slopes(lambda x: fnn.huber_loss(x, delta=2.0), np.float64(2.0)), [2.0, 2.0])
    same(slopes(lambda x: fnn.huber_loss(x), np.float64(0.0)), [0.0, 0.0])
    same(slopes(lambda x: fnn.hinge_loss(x, 1.0), np.float64(1.0)), [-0.5, -0.5])


def test_divergence_with_zero_targets():
    x, targets = np.log([0.5, 0.5]), np.array([1.0, 0.0])
    assert fnn.kl_divergence(np.array([0.0, -INF]), targets) == 0
    assert grad(fnn.kl_divergence)(x, targets).tolist() == [-1.0, 0.0]
    with np.errstate(divide="ignore"):
        assert grad(fnn.kl_divergence, 1)(x, targets)[1] == -INF
    assert fnn.kl_divergence_with_log_targets(x, np.array([0.0, -INF])) == pytest.approx(math.log(2))


def test_cosine_similarity_of_zero_vectors():
    with np.errstate(invalid="ignore"):
        assert np.isnan(fnn.cosine_similarity(np.zeros(2), np.ones(2)))
    assert fnn.cosine_similarity(np.zeros(2), np.ones(2), epsilon=1e-6) == 0


def test_smooth_labels():
    mask = np.array([True, True, False])
    if "smooth_labels" not in CHANGED:
        want = optax.losses.smooth_labels(jnp.eye(3)[0], 0.3, where=jnp.asarray(mask))
        same(fnn.smooth_labels(np.eye(3)[0], 0.3, where=mask), want)
    same(fnn.smooth_labels(np.eye(3)[0], 0.3), optax.losses.smooth_labels(jnp.eye(3)[0], 0.3))
    with pytest.raises(ShapeError, match="there must be a class"):
        fnn.smooth_labels(np.ones((2, 0)), 0.1)


# ---- attention, normalisation, dropout ---------------------------------------------------------------------


def test_attention_matches_jax():
    """The test uses float32, the precision of JAX's softmax for all dtypes."""
    q, k, v = (array(*shape, seed=i).astype(np.float32) for i, shape in enumerate([(2, 3, 4, 2), *[(2, 5, 2, 2)] * 2]))
    lengths, mask = np.array([2, 3], np.int32), array(2, 1, 3, 5) > -1
    calls = [
        {},
        {"is_causal": True, "scale": 0.3},
        {"mask": mask, "bias": array(1, 4, 3, 5).astype(np.float32)},
        {"query_seq_lengths": lengths, "key_value_seq_lengths": lengths + np.int32(1)},
        {"local_window_size": 1, "is_causal": True},
    ]
    if "dot_product_attention" not in CHANGED:  # older versions had no residual and ignored a window without a mask
        calls.append({"local_window_size": (1, 0), "return_residual": True})

    def everything(q, k, v):
        return [jax.nn.dot_product_attention(q, k, v, **options) for options in calls]

    for options, want in zip(calls, jax.jit(everything)(q, k, v), strict=True):
        got = fnn.dot_product_attention(q, k, v, **options)
        for g, w in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, want)], strict=True):
            assert g.dtype == np.float32
            same(g, w, rtol=1e-5, atol=1e-6)
    same(fnn.dot_product_attention(q[0], k[0], v[0]), fnn.dot_product_attention(q, k, v)[0], rtol=1e-6)


def test_attention_with_masks_and_heads_is_differentiated():
    q, k, v = array(1, 2, 2, 2), array(1, 3, 1, 2, seed=1), array(1, 3, 1, 2, seed=2)
    mask = np.array([[True, False, True], [False, False, False]])
    fun = lambda q, k, v: fnn.dot_product_attention(q, k, v, mask=mask, return_residual=True)
    check_grads(lambda *x: fun(*x)[0], (q, k, v), order=2)
    same(fun(q, k, v)[0][0, 1], np.broadcast_to(v[0, :, 0].mean(0), (2, 2)))  # a masked query weights all keys equally
    with pytest.raises(ShapeError, match="shapes do not fit"):
        fnn.dot_product_attention(q, k[:, :2], v)


def test_normalisation():
    x = array(4, 6, 3)
    same(fnn.layer_norm(x, axis=(1, 2)), fnn.standardize(x.reshape(4, 18)).reshape(x.shape))
    same(fnn.layer_norm(x, np.ones((6, 3)), np.zeros((6, 3)), (1, 2)), fnn.layer_norm(x, axis=(1, 2)))
    same(fnn.group_norm(x, 6), fnn.standardize(x))
    same(fnn.group_norm(x, 1), fnn.layer_norm(x, axis=(1, 2)))
    scale, mean, variance = positive(6), array(6), positive(6, seed=1)
    want = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) * scale[:, None]
    same(fnn.batch_norm(x, scale, mean=mean, variance=variance), want)
    same(fnn.batch_norm(x)[:, 2], fnn.standardize(x[:, 2], None))
    with pytest.raises(ShapeError, match="must divide into groups"):
        fnn.group_norm(x, 4)


def test_dropout():
    x = np.ones(1000)
    kept = fnn.dropout(x, 0.25, np.random.default_rng(0))
    assert set(kept.tolist()) == {0.0, 1 / 0.75}
    assert 0.7 < (kept != 0).mean() < 0.8
    same(grad(lambda x: fnp.sum(fnn.dropout(x, 0.25, np.random.default_rng(0))))(x), kept)
    with pytest.raises(InputError, match="keep must be booleans"):
        fnn.dropout(x, 0.5, x)
    with pytest.raises(ShapeError, match="below 1"):
        fnn.dropout(x, 1.0, x > 0)


# ---- dtypes and kinds of values ----------------------------------------------------------------------------

IMAGE, KERNEL = array(1, 2, 4), array(2, 2, 2, seed=1)
NARROW = {
    "conv": lambda x: fnn.conv(x, x[:, :, :2]),
    "max_pool": lambda x: fnn.max_pool(x, (2,), 2),
    "avg_pool": lambda x: fnn.avg_pool(x, (2,), 2),
    "segment_sum": lambda x: fnn.segment_sum(x[0], np.array([0, 0])),
    "segment_max": lambda x: fnn.segment_max(x[0], np.array([0, 0])),
    "segment_prod": lambda x: fnn.segment_prod(x[0], np.array([0, 0])),
    "segment_mean": lambda x: fnn.segment_mean(x[0], np.array([0, 0])),
    "attention": lambda x: fnn.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None], is_causal=True),
    "l2_loss": fnn.l2_loss,
    "huber_loss": fnn.huber_loss,
    "log_cosh": fnn.log_cosh,
    "hinge_loss": lambda x: fnn.hinge_loss(x, 1.0),
    "binary": lambda x: fnn.sigmoid_binary_cross_entropy(x, 1),
    "cross_entropy": lambda x: fnn.softmax_cross_entropy_with_integer_labels(x, np.array([[0, 1]])),
    "layer_norm": lambda x: fnn.layer_norm(x, np.ones(4, x.dtype), np.zeros(4, x.dtype)),
    "rms_norm": fnn.rms_norm,
    "group_norm": lambda x: fnn.group_norm(x, 2),
    "glu": fnn.glu,
    "dropout": lambda x: fnn.dropout(x, 0.5, np.array([True, False, True, True])),
    "standardize": fnn.standardize,
    **{name: getattr(fnn, name) for name in KINKS if name != "log1mexp"},
}


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT, np.float32], ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_narrow_dtypes_are_kept(name, dtype):
    """Results, cotangents and tangents have the dtype of the argument, and the accuracy of that dtype."""
    fun, x = NARROW[name], IMAGE.astype(dtype)
    out, pullback = vjp(fun, x)
    assert out.dtype == fun(x).dtype == dtype
    ct = np.ones_like(out)
    (pulled_back,) = pullback(ct)
    pushed = jvp(fun, (x,), (np.ones_like(x),))[1]
    assert pulled_back.dtype == pushed.dtype == dtype
    wide, pull_wide = vjp(fun, x.astype(float))
    eps = float(ml_dtypes.finfo(dtype).eps)
    same(out.astype(float), wide, rtol=8 * eps, atol=8 * eps)
    same(pulled_back.astype(float), pull_wide(np.ones_like(wide))[0], rtol=40 * eps, atol=40 * eps)


@pytest.mark.parametrize("name", [name for name in KINKS if name != "log1mexp"])
def test_activations_accept_numbers_lists_and_integers(name):
    fun = getattr(fnn, name)
    assert isinstance(fun(0.5), np.float64)
    same(fun([1, -2]), fun(np.array([1.0, -2.0])))
    assert fun(np.array(0.5)).shape == ()
    assert fun(np.ones((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("labels", [1.0, np.array([0.0, 1.0, 0.5]), np.array([[0.0, 1.0]])], ids=np.shape)
def test_binary_cross_entropy_of_one_score_and_several_labels(labels):
    fun = lambda x: fnn.sigmoid_binary_cross_entropy(x, labels)
    for x in (0.3, np.array(0.3)):
        np.testing.assert_allclose(
            jvp(fun, (x,), (np.ones_like(x)[()],))[1], 1 / (1 + np.exp(-0.3)) - labels, rtol=1e-14
        )
        assert grad(lambda x: np.sum(fun(x)))(x) == pytest.approx(np.sum(1 / (1 + np.exp(-0.3)) - labels), rel=1e-14)
