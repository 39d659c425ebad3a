"""Products: every pair of ranks under every transform, Einstein sums and their formulas, and cost."""

import itertools
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, no_grad, vjp, vmap
from funcgrad.errors import InputError, ShapeError

SIZE = 3
LEFT = [(3,), (2, 3), (4, 2, 3), (1, 2, 3), (5, 1, 2, 3)]
RIGHT = [(3,), (3, 2), (4, 3, 2), (1, 3, 2), (5, 4, 3, 2)]


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


# ---- matmul ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", list(itertools.product(LEFT, RIGHT)), ids=str)
def test_matmul_of_all_ranks_under_vmap(shapes):
    """Compare value and both cotangents with a loop, for every choice of batched arguments."""

    def pulled(ct, x, y):
        return vjp(fnp.matmul, x, y)[1](ct)

    arrays = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    batches = [numbers(SIZE, *shape, seed=i + 2) for i, shape in enumerate(shapes)]
    cts = numbers(SIZE, *np.matmul(*arrays).shape, seed=4)
    for flags in itertools.product((0, None), repeat=2):
        args = [a if f is None else b for a, b, f in zip(arrays, batches, flags, strict=True)]
        each = [[a if f is None else a[k] for a, f in zip(args, flags, strict=True)] for k in range(SIZE)]
        if flags != (None, None):
            np.testing.assert_allclose(vmap(fnp.matmul, flags)(*args), [np.matmul(*e) for e in each], atol=1e-13)
        got = vmap(pulled, (0, *flags))(cts, *args)
        want = [pulled(ct, *e) for ct, e in zip(cts, each, strict=True)]
        for i in range(2):
            np.testing.assert_allclose(got[i], [w[i] for w in want], atol=1e-12)


def test_matmul_of_scalars_raises():
    x = np.ones((2, 3))
    for position, fun in enumerate((lambda c, v: fnp.matmul(c, v), lambda c, v: fnp.matmul(v, c))):
        for attempt in (
            lambda fun=fun: fun(np.ones(2)[0], x[0]),
            lambda fun=fun: grad(lambda c: fun(c, x[0]))(1.0),
            lambda fun=fun: vmap(fun)(np.ones(2), x),
            lambda fun=fun: vmap(fun, (0, None))(np.ones(2), x[0]),
        ):
            with pytest.raises(ValueError, match=f"operand {position} does not have enough dimensions"):
                attempt()


def test_matmul_with_mismatched_lengths_raises():
    for attempt in (
        lambda: grad(lambda x: (x @ np.ones(2)).sum())(np.ones((2, 3))),
        lambda: vmap(lambda x: x @ np.ones(2))(np.ones((2, 3))),
        lambda: vmap(lambda x, y: x @ y)(np.ones((4, 2)), np.ones((4, 3))),
        lambda: vmap(lambda y: np.ones((5, 2)) @ y)(np.ones((4, 3))),
    ):
        with pytest.raises(ValueError, match=r"size|remapped|lengths"):
            attempt()


@pytest.mark.parametrize("dtypes", list(itertools.product(["f4", "f8", "c8", "c16"], repeat=2)), ids=str)
@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((4, 2, 3), (3, 2))]
)
def test_products_keep_dtype(shapes, dtypes):
    x, y = (numbers(*shape).astype(dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    for fun, numpys in ((fnp.matmul, np.matmul), (lambda x, y: fnp.einsum("...i,i...", x.T, y.T), None)):
        if numpys is None and (x.ndim, y.ndim) != (1, 1):
            continue
        out, pullback = vjp(fun, x, y)
        assert out.dtype == np.result_type(x, y)
        for ct, like in zip(pullback(np.ones_like(out)), (x, y), strict=True):
            assert ct.dtype == like.dtype
            assert ct.shape == like.shape
        assert jvp(fun, (x, y), (x, y))[1].dtype == out.dtype


def test_fast_path_and_general_path_agree():
    """The fast path is for factors of one dtype; a second dtype, or no_grad, leads to the general path."""
    x, y = numbers(2, 3), numbers(3, 4)
    want = np.ones((2, 4)) @ y.T, x.T @ np.ones((2, 4))
    for cast in (lambda a: a, lambda a: a.astype("f4"), lambda a: a.astype(complex)):
        got = vjp(lambda x, y, cast=cast: fnp.real(fnp.matmul(x, cast(y))), x, y)[1](np.ones((2, 4)))
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-6)

    def stopped(x):
        with no_grad():
            z = x @ y
        return (z * (x @ y)).sum()

    np.testing.assert_allclose(grad(stopped)(x), (x @ y) @ y.T)


def test_higher_orders_of_a_quadratic_form():
    a, x = numbers(3, 3), numbers(3)
    form = lambda x: x @ (a @ x)
    np.testing.assert_allclose(grad(form)(x), (a + a.T) @ x)
    for second in (hessian(form), jacrev(grad(form)), jacfwd(jacrev(form)), jacrev(jacfwd(form))):
        np.testing.assert_allclose(second(x), a + a.T)
    cube = lambda a: fnp.trace(a @ a @ a)
    np.testing.assert_allclose(grad(cube)(a), 3 * (a @ a).T)
    third = jacfwd(jacrev(grad(cube)))(a)
    t = numbers(3, 3, seed=1)
    np.testing.assert_allclose(np.einsum("ijklmn,ij,kl,mn", third, t, t, t), 6 * np.trace(t @ t @ t))


def test_trace_has_the_requested_dtype():
    x = np.full((2, 2), 100, np.int8)
    assert vjp(lambda x: fnp.trace(x, dtype=np.float32), np.eye(2))[0].dtype == np.float32
    assert vjp(lambda x: fnp.trace(x, dtype=np.uint16), np.eye(2))[0].dtype == np.uint16
    in_a_batch = vmap(lambda x: fnp.trace(x, dtype=np.int8))(x[None])
    np.testing.assert_array_equal(in_a_batch, np.trace(x, dtype=np.int8)[None], strict=True)  # it overflows


@pytest.mark.parametrize("side", ["left", "right"])
def test_shared_matrix_needs_no_batch_of_matrices(side):
    """The cotangent of a matrix that multiplies a batch is one product, not a sum over a batch of matrices."""
    w = np.ones((40, 40))
    x = np.ones((400, 8, 40) if side == "right" else (400, 40, 8))
    out, pullback = vjp(lambda w: x @ w if side == "right" else w @ x, w)
    ct = np.ones_like(out)
    tracemalloc.start()
    try:
        pullback(ct)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * x.nbytes < 400 * w.nbytes


# ---- Einstein sums -----------------------------------------------------------------------------------------


def random_formula(rng):
    """Return a formula of one to four operands, with repeated and summed letters and ellipses, and its operands."""
    lengths = dict(zip("abcdef", rng.permutation([1, 2, 3, 2, 3, 4]), strict=True))
    terms, shapes = [], []
    dots = tuple(rng.integers(1, 4, rng.integers(0, 3)))
    for _ in range(rng.integers(1, 5)):
        letters = [str(i) for i in rng.choice(list(lengths), rng.integers(0, 4))]
        shape = [lengths[i] for i in letters]
        if rng.random() < 0.4:
            at = int(rng.integers(0, len(letters) + 1))
            letters.insert(at, "...")
            shape[at:at] = [1 if rng.random() < 0.2 else n for n in dots[rng.integers(0, len(dots) + 1) :]]
        terms.append("".join(letters))
        shapes.append(tuple(shape))
    text = ",".join(terms)
    if rng.random() < 0.8:
        named = [i for i in lengths if i in text]
        out = [str(i) for i in rng.permutation(named)[: rng.integers(0, len(named) + 1)]]
        if "..." in text:
            out.insert(int(rng.integers(0, len(out) + 1)), "...")
        text += "->" + "".join(out)
    return text, [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("seed", range(120))
def test_random_einsum_formula(seed):
    """The value is NumPy's; each cotangent is the transpose of NumPy's linear map; ``vmap`` equals a loop."""
    rng = np.random.default_rng(seed)
    text, operands = random_formula(rng)
    want = np.einsum(text, *operands)
    sum_up = lambda *xs: fnp.einsum(text, *xs)
    value, pullback = vjp(sum_up, *operands)
    np.testing.assert_allclose(value, want, atol=1e-12)
    ct = rng.normal(size=np.shape(want))
    for i, (got, x) in enumerate(zip(pullback(ct), operands, strict=True)):
        assert got.shape == x.shape
        for _ in range(2):
            t = rng.normal(size=x.shape)
            moved = np.einsum(text, *operands[:i], t, *operands[i + 1 :])
            np.testing.assert_allclose(np.sum(got * t), np.sum(ct * moved), atol=1e-10)
    pushed = jvp(sum_up, tuple(operands), tuple(operands))[1]
    np.testing.assert_allclose(pushed, len(operands) * want, atol=1e-11)  # the product is homogeneous
    batches = [np.stack([x, 2 * x, x + 1]) for x in operands]
    flags = tuple(0 if rng.random() < 0.6 else None for _ in operands)
    args = [x if f is None else b for x, b, f in zip(operands, batches, flags, strict=True)]
    if any(f == 0 for f in flags):
        each = [
            np.einsum(text, *[a if f is None else a[k] for a, f in zip(args, flags, strict=True)]) for k in range(3)
        ]
        np.testing.assert_allclose(vmap(sum_up, flags)(*args), each, atol=1e-11)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk", [(2, 3)]),
        ("i", [(2, 3)]),
        ("ijk", [(2, 3)]),
        ("i.j", [(2, 3)]),
        ("i1", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("...i...", [(2, 3)]),
        ("...i->i", [(2, 3)]),
        ("ij->i->j", [(2, 3)]),
        ("ii", [(2, 3)]),
        ("ii", [(1, 3)]),
        ("ij,jk", [(2, 3), (4, 2)]),
        ("i...,i...", [(2, 3), (2, 4)]),
    ],
)
def test_invalid_einsum_formulas_raise(text, shapes):
    operands = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are NumPy's
        np.einsum(text, *operands)
    with pytest.raises(ValueError, match="einsum"):
        vjp(lambda *xs: fnp.einsum(text, *xs), *operands)


def test_einsum_with_lists_of_axes():
    x, y = numbers(2, 3), numbers(3, 4)
    np.testing.assert_allclose(vjp(lambda x: fnp.einsum(x, [0, 1], y, [1, 2], [2, 0]), x)[0], (x @ y).T)
    np.testing.assert_allclose(vjp(lambda x: fnp.einsum(x, [7, 3], y, [3, 5]), x)[0], np.einsum("hd,df", x, y))
    with pytest.raises(InputError, match="einsum"):
        fnp.einsum(x, ["a", 1])
    with pytest.raises(InputError, match="einsum"):
        fnp.einsum(x, [0, 99])


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal", ["einsum_path", (0, 1), (0, 1)], [(0, 1, 2)]])
def test_contraction_order_does_not_change_result(optimize):
    xs = numbers(2, 3), numbers(3, 4), numbers(4, 2)
    value, pullback = vjp(lambda *xs: fnp.einsum("ij,jk,ki->", *xs, optimize=optimize), *xs)
    np.testing.assert_allclose(value, np.trace(xs[0] @ xs[1] @ xs[2]))
    np.testing.assert_allclose(pullback(np.float64(1.0))[1], (xs[2] @ xs[0]).T)


def test_long_chain_uses_good_contraction_order():
    """The naive order has a million terms and takes minutes; the tape holds products of pairs."""
    n = 30
    xs = [numbers(n, n, seed=i) / n for i in range(6)]
    g = grad(lambda x: fnp.einsum("ab,bc,cd,de,ef,fa->", x, *xs[1:]))(xs[0])
    np.testing.assert_allclose(g, (xs[1] @ xs[2] @ xs[3] @ xs[4] @ xs[5]).T, atol=1e-14)


def test_einsum_path_of_traced_operands():
    xs = numbers(2, 9), numbers(9, 9), numbers(9, 2)
    want = np.einsum_path("ij,jk,kl->il", *xs)
    seen = []
    grad(lambda x: (seen.append(fnp.einsum_path("ij,jk,kl->il", x, *xs[1:])), x.sum())[1])(xs[0])
    assert seen == [want]


def test_opt_einsum_is_imported_on_first_long_product():
    """The first product of three factors imports ``opt_einsum``."""
    script = (
        "import sys, numpy as np, funcgrad.numpy as fnp; from funcgrad import grad; x = np.ones((2, 2))\n"
        "grad(lambda x: fnp.einsum('ij,ij->', x, x))(x); assert 'opt_einsum' not in sys.modules\n"
        "grad(lambda x: fnp.einsum('ij,jk,ki->', x, x, x))(x); assert 'opt_einsum' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# ---- other products ----------------------------------------------------------------------------------------


def test_invalid_calls_raise():
    x = np.ones((2, 3))
    for message, fun in (
        ("tensordot: axes=3", lambda x: fnp.tensordot(x, x, 3)),
        ("tensordot: the axes to sum over", lambda x: fnp.tensordot(x, x, 1)),
        ("tensordot: axes come in pairs", lambda x: fnp.tensordot(x, x, ([0, 1], [0]))),
        ("dot: the axes to sum over", lambda x: fnp.dot(x, np.ones((2, 2, 2)))),
        ("inner: the axes to sum over", lambda x: fnp.inner(x, np.ones(2))),
        ("vecdot: vectors of one length", lambda x: fnp.vecdot(x, np.ones(2))),
        ("matvec: an argument needs 2", lambda x: fnp.matvec(x[0], x[0])),
        ("vecmat: an argument needs 2", lambda x: fnp.vecmat(x[0], x[0])),
        ("cross: vectors have three", lambda x: fnp.cross(x[:, :1], x)),
    ):
        with pytest.raises(ShapeError, match=message):
            vjp(fun, x)
    with pytest.raises(InputError, match="tensordot: axes is a number"):
        vjp(lambda x: fnp.tensordot(x, x, None), x)


def test_dot_converts_python_number_to_float64():
    """NumPy converts a Python number to float64 in dot, unlike in arithmetic."""
    x = np.ones(2, np.float32)
    assert fnp.dot(2.0, x).dtype == np.float64
    out, pullback = vjp(lambda x: fnp.dot(2.0, x), x)
    assert out.dtype == np.float64
    (ct,) = pullback(np.ones(2))
    assert ct.dtype == np.float32
    np.testing.assert_array_equal(ct, [2.0, 2.0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, bool, np.int64])
@pytest.mark.parametrize("subscripts", ["ii", "ij->", "ij->j", "ij,ij->i", "ij,jk->ik", "ij,j->", "...i->..."])
def test_einsum_of_integers_keeps_dtype(subscripts, dtype):
    """Sums and products wrap around in the integer dtype, as in NumPy."""
    x = np.array([[100, 90, 1], [0, 77, 60], [3, 120, 9]]).astype(dtype)
    operands = [x, x[0] if ",j->" in subscripts else x][: 1 + subscripts.count(",")]
    want = np.einsum(subscripts, *operands)
    got = vmap(lambda first: fnp.einsum(subscripts, first, *operands[1:]))(x[None])[0]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_outer_product_keeps_sign_of_zero():
    a, b = np.array([-0.0, 0.0, 2.0]), np.array([-0.0, 3.0])
    value, _ = vjp(lambda x: fnp.outer(a, x), b)
    np.testing.assert_array_equal(np.signbit(value), np.signbit(np.outer(a, b)))
    value = vmap(lambda x: fnp.outer(a, x))(b[None])[0]
    np.testing.assert_array_equal(np.signbit(value), np.signbit(np.outer(a, b)))


@pytest.mark.parametrize("product", [fnp.matmul, fnp.dot, fnp.vdot, fnp.inner, fnp.vecdot], ids=lambda f: f.__name__)
def test_batched_vectors_of_different_lengths_raise(product):
    """A length of 1 would broadcast in the product of the whole batch."""
    one, three = np.ones((2, 1)), np.ones((2, 3))
    for axes in ((0, 0), (0, None), (None, 0)):
        args = [x if axis == 0 else x[0] for x, axis in zip((one, three), axes, strict=True)]
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's texts differ
            vmap(product, in_axes=axes)(*args)


def test_einsum_checks_casting():
    x = np.array([0.5, 2.0, -1.0])
    for dtype, casting in ((np.float32, "safe"), (np.int64, "same_kind")):
        f = lambda x, dtype=dtype, casting=casting: fnp.einsum("i,i->i", x, x, dtype=dtype, casting=casting)
        for run in (lambda f=f: f(x), lambda f=f: vjp(f, x)):
            with pytest.raises(TypeError, match=f"could not be cast from .*float64.* rule '{casting}'"):
                run()
    single = lambda x: fnp.einsum("i,i->i", x, x, dtype=np.float32, casting="same_kind")
    np.testing.assert_array_equal(vjp(single, x)[0], single(x), strict=True)
