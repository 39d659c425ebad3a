"""Products that share a matrix, whose cotangents are deferred and multiplied at once; and the avals of tracers."""

import tracemalloc

import numpy as np
import pytest

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import checkpoint, debug_nans, grad, hvp, jacrev, jvp, vjp, vmap
from funcgrad.core import aval_of
from funcgrad.errors import EscapedTracerError
from funcgrad.primitives import products
from funcgrad.reverse import CotangentAccumulator, ReverseTrace

rng = np.random.default_rng(11)
W, B = rng.normal(size=(5, 5)) / 3, rng.normal(size=5)
ROW, ROWS, BATCH = rng.normal(size=5), rng.normal(size=(1, 5)), rng.normal(size=(3, 5))
WIDE = rng.normal(size=(40, 40)) / 7


def right(h, w, b, steps):
    for _ in range(steps):
        h = fnp.tanh(h @ w + b)
    return fnp.sum(h * h)


def left(h, w, b, steps):
    for _ in range(steps):
        h = fnp.tanh(w @ h + b)
    return fnp.sum(h * h)


def columns(h, w, b, steps):
    return left(fnp.swapaxes(h, 0, 1), w, b[:, None], steps)


def dense(h, w, b, steps):
    for _ in range(steps):
        h = fnp.tanh(fnn.linear(h, w, b))
    return fnp.sum(h * h)


def constant_inputs(h, w, b, steps):
    total = 0.0
    for i in range(steps):
        total = total + fnp.sum(fnp.sin(fnn.linear(BATCH[:1] * i, w, b))) + fnp.sum(h)
    return total


PROGRAMS = {
    "vector_matrix": (right, ROW),
    "row_matrix": (right, ROWS),
    "rows_matrix": (right, BATCH),
    "matrix_vector": (left, ROW),
    "matrix_columns": (columns, BATCH),
    "linear_row": (dense, ROWS),
    "linear_rows": (dense, BATCH),
    "linear_constant_inputs": (constant_inputs, ROWS),
}


def one_at_a_time(f, h, w, b, steps, monkeypatch):
    """Return the gradient with a separate product for each cotangent: on the general path no product is deferred."""
    with monkeypatch.context() as patch:
        patch.setattr(products, "_MIN_ENTRIES", 1_000_000)
        with debug_nans():
            return grad(f, (0, 1, 2))(h, w, b, steps)


@pytest.mark.parametrize("steps", [1, 2, 7, 9, 63, 64, 65, 66, 200])
@pytest.mark.parametrize("program", PROGRAMS)
def test_deferred_sum_equals_single_products(program, steps, monkeypatch):
    f, h = PROGRAMS[program]
    expected = one_at_a_time(f, h, W, B, steps, monkeypatch)
    for a, b in zip(grad(f, (0, 1, 2))(h, W, B, steps), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13 * np.abs(b).max(), strict=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_forward_mode_and_second_order_agree(program):
    f, h = PROGRAMS[program]
    direction = rng.normal(size=W.shape)
    slope = jvp(lambda w: f(h, w, B, 70), (W,), (direction,))[1]
    np.testing.assert_allclose(np.vdot(grad(f, 1)(h, W, B, 70), direction), slope, rtol=1e-11)
    along = hvp(lambda w: f(h, w, B, 12), (W,), (direction,))
    twice = grad(lambda w: fnp.vdot(grad(f, 1)(h, w, B, 12), direction))(W)
    np.testing.assert_allclose(along[-1] if isinstance(along, tuple) else along, twice, rtol=1e-9, atol=1e-12)


def test_products_with_few_rows_are_deferred():
    few, many = rng.normal(size=(2, 40)), rng.normal(size=(30, 40))
    assert products.can_be_deferred(few, few)
    assert products.can_be_deferred(many[:1], many[:1])
    assert not products.can_be_deferred(many, many)
    for x in (few, many):
        f = lambda w, x=x: fnp.sum(fnp.tanh(fnp.tanh(x @ w) @ w) @ w)
        a, b, c = x, np.tanh(x @ WIDE), np.tanh(np.tanh(x @ WIDE) @ WIDE)
        ct = np.ones_like(c) @ WIDE.T * (1 - c * c)
        expected = c.T @ np.ones_like(c) + b.T @ ct + a.T @ (ct @ WIDE.T * (1 - b * b))
        np.testing.assert_allclose(grad(f)(WIDE), expected, rtol=1e-12, atol=1e-12)


def test_shared_matrix_is_also_read_and_added():
    def f(w, h):
        for i in range(80):
            h = fnp.tanh(h @ w) + w[i % 5] * 0.1 + fnp.sum(w * w) * 1e-3
        return fnp.sum(h)

    step = 1e-6
    direction = rng.normal(size=W.shape)
    measured = (f(W + step * direction, ROWS) - f(W - step * direction, ROWS)) / (2 * step)
    np.testing.assert_allclose(np.vdot(grad(f)(W, ROWS), direction), measured, rtol=1e-6)
    np.testing.assert_array_equal(grad(checkpoint(f))(W, ROWS), grad(f)(W, ROWS), strict=True)


def test_float32_is_kept():
    w, h = W.astype(np.float32), ROWS.astype(np.float32)
    for f in (right, dense):
        found = grad(f, (0, 1, 2))(h, w, B.astype(np.float32), 70)
        assert [a.dtype for a in found] == [np.float32] * 3
        for a, b in zip(found, grad(f, (0, 1, 2))(ROWS, W, B, 70), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4 * np.abs(b).max())
    mixed = grad(lambda w: fnp.sum(ROWS @ w))(w)
    assert mixed.dtype == np.float32


def test_pullback_is_reused_and_batched():
    _, pullback = vjp(lambda w: right(ROWS, w, B, 70), W)
    np.testing.assert_array_equal(pullback(1.0)[0], pullback(1.0)[0])
    outputs = lambda w: (fnp.tanh(fnp.tanh(ROWS @ w) @ w) @ w)[0]
    np.testing.assert_allclose(jacrev(outputs)(W)[2], grad(lambda w: outputs(w)[2])(W), rtol=1e-12)
    each = vmap(grad(lambda w, h: right(h, w, B, 20)), (None, 0))(W, BATCH)
    np.testing.assert_allclose(each, [grad(right, 1)(h, W, B, 20) for h in BATCH], rtol=1e-11, atol=1e-13)


def test_deferred_products_are_merged_regularly():
    product = products.ProductCotangent((ROWS, ROWS))
    gathered = CotangentAccumulator(product, product)
    for _ in range(1_000):
        assert gathered.add(product)
        assert len(gathered.entries) <= 65
    np.testing.assert_allclose(gathered.materialize(), 1_002 * ROWS.T @ ROWS)


def test_dense_cotangents_are_not_deferred():
    W, h = np.ones((200, 200)), np.ones(200)

    def peak(first):
        def f(w):
            total = 0.0 if first else fnp.sum(h @ w)
            for _ in range(100):
                total = total + fnp.sum(w * h)
            return total + fnp.sum(h @ w) if first else total

        grad(f)(W)
        tracemalloc.start()
        try:
            found = grad(f)(W)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        np.testing.assert_allclose(found, np.full((200, 200), 101.0))
        return most

    assert max(peak(True), peak(False)) < 6 * W.nbytes


def test_sparse_and_dense_cotangents_in_any_order():
    x, order = np.random.default_rng(5).normal(size=(12, 4)), np.random.default_rng(6).permutation(60)
    row = np.arange(4.0)
    ways = [lambda x, i: x[i % 12] * i, lambda x, i: x[i % 5 :] * i, lambda x, i: x * x * i, lambda x, i: row @ x.T]

    def f(x):
        return sum(fnp.sum(fnp.sin(ways[i % 4](x, int(i)))) for i in order)

    want = sum(grad(lambda x, i=i: fnp.sum(fnp.sin(ways[i % 4](x, int(i)))))(x) for i in order)
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, -x]))[0], want, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize(
    "cuts",
    [
        [slice(0, 4), slice(4, 9), slice(9, None)],
        [slice(9, None), slice(None, 4), slice(4, -3)],
        [slice(0, 4), slice(4, 9)],
        [slice(0, 6), slice(4, None)],
        [slice(0, 12), slice(None)],
        [slice(None, None, -1)],
        [slice(0, 4), slice(4, 4), slice(4, 2), slice(4, None)],
        [slice(None, None, 2), slice(1, None, 2)],
    ],
    ids=str,
)
def test_slices_that_do_or_do_not_cover_array(cuts):
    x = np.random.default_rng(7).normal(size=(12, 2))

    def of_one(x, i):
        return fnp.sum(fnp.sin(x[cuts[i]] * (i + 1.5)) * fnp.cos(x[cuts[i]]))

    def f(x):
        return sum(of_one(x, i) for i in range(len(cuts)))

    # Hessian-vector product by a formula, of each cut separately
    apart = np.zeros_like(x)
    for i, cut in enumerate(cuts):
        a, y = i + 1.5, x[cut]
        curved = -(a * a + 1) * np.sin(a * y) * np.cos(y) - 2 * a * np.cos(a * y) * np.sin(y)
        apart[cut] += curved * y
    np.testing.assert_allclose(hvp(f, (x,), (x,))[0], apart, rtol=1e-12, atol=1e-12)
    rows = vmap(lambda t: jvp(grad(f), (x,), (t,))[1])(np.stack([x, -x]))
    np.testing.assert_allclose(rows, [apart, -apart], rtol=1e-12, atol=1e-12)


# ---- avals of tracers ----


def test_aval_matches_value():
    trace = ReverseTrace()
    x, y = trace.leaf(np.ones(3)), trace.leaf(np.float64(2.0))
    assert y.aval is np.float64
    made = x * x + x * 2.0
    assert made.aval == (3,)
    assert fnp.sin(made).aval == (3,)
    assert (fnp.sin(y) * y).aval is np.float64
    assert (made * y).aval == (made * np.ones((2, 3)) + y).aval[1:] == (3,)
    assert fnn.log_cosh(y).aval == aval_of(fnn.log_cosh(y)._val)
    assert (fnp.astype(made, np.float32) * 2.0).aval is None


def test_writes_and_views_have_right_derivatives():
    def f(x):
        y = x * 2.0
        y[0] = fnp.sum(x)
        z = y + x
        z[1:] *= z[:-1]
        v = z.reshape(2, 2)
        v[0] = v[1] * 3.0
        return fnp.sum(z * x) + fnp.sum(v + v.T)

    x = rng.normal(size=4)
    direction = rng.normal(size=4)
    step = 1e-6
    measured = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    np.testing.assert_allclose(grad(f)(x) @ direction, measured, rtol=1e-7)
    np.testing.assert_allclose(jvp(f, (x,), (direction,))[1], measured, rtol=1e-7)


@pytest.mark.parametrize("constant", [0.0, -0.0, 2, 2.0, -3, 1e300, np.nan, np.inf, 10**30, True])
def test_special_constants_keep_value_and_sign(constant):
    x = np.array([1.5, -0.5, 0.0])
    with np.errstate(all="ignore"):
        for op in (lambda a, c: a * c, lambda a, c: a + c, lambda a, c: c - a, lambda a, c: a / c, lambda a, c: c / a):
            for _ in range(2):  # the second time the constant is known
                value, pullback = vjp(lambda x, op=op: op(x * 1.0, constant), x)
                np.testing.assert_array_equal(value, op(x, constant))
                np.testing.assert_array_equal(np.signbit(value), np.signbit(op(x, constant)))
                pullback(np.ones(3))


def test_operands_of_same_and_other_avals():
    x = rng.normal(size=(2, 3))
    constant = rng.normal(size=(2, 3))
    for other in (constant, constant[0], constant[:, :1], constant.astype(np.float32), np.ones((2, 3), int)):
        f = lambda x, other=other: fnp.sum(fnp.sin(x * 1.0) * other + other / (fnp.exp(x) + 1.0))
        value, slope = jvp(f, (x,), (np.ones_like(x),))
        gradient = grad(f)(x)
        assert gradient.dtype == np.float64
        assert gradient.shape == x.shape
        np.testing.assert_allclose(np.sum(gradient), slope, rtol=1e-12)
        np.testing.assert_allclose(value, f(x), rtol=1e-14)


def test_operation_after_end_of_run_raises():
    kept = []
    grad(lambda x: kept.append(x * 2.0) or fnp.sum(x))(np.ones(3))
    with pytest.raises(EscapedTracerError, match="finished reverse transform"):
        kept[0] * 2.0
    with pytest.raises(EscapedTracerError, match="finished reverse transform"):
        fnp.sin(kept[0])
