"""Shaping and joining beyond the table: NumPy's errors, shared memory, mixed dtypes, memory use of the tape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jit, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError

V, M, T = np.arange(1.0, 5.0), np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)

#: Arguments that NumPy refuses, by function: traced arrays are refused with the same type of error.
REFUSED = {
    "reshape": [(M, (4, 2)), (M, (-1, -1)), (M, (4, -1)), (np.ones((0, 3)), (-1, 0))],
    "transpose": [(M, (0,)), (M, (0, 0)), (M, (0, 2))],
    "matrix_transpose": [(V,)],
    "swapaxes": [(M, 0, 2)],
    "moveaxis": [(M, 0, 2), (M, (0, 1), 0), (M, (0, 0), (0, 1))],
    "rollaxis": [(M, 2), (M, 0, 3)],
    "expand_dims": [(M, 3), (M, (0, 0))],
    "squeeze": [(M, 0), (M, 2)],
    "broadcast_to": [(M, (2, 2)), (M, (3,))],
    "flip": [(M, 2), (M, (0, 0))],
    "flipud": [(np.array(1.0),)],
    "fliplr": [(V,)],
    "rot90": [(M, 1, (0, 0)), (M, 1, (0,)), (V,)],
    "roll": [(M, 1, 2), (M, (1, 2, 3), (0, 1))],
    "repeat": [(V, -1), (V, [1, 2]), (M, 1, 2)],
    "resize": [(V, (-1, 2))],
    "pad": [(V, -1), (V, 1.5), (M, ((1, 1), (1, 1), (1, 1))), (np.ones(0), 1, "edge")],
    "concatenate": [([M, V],), ([M, M[:, :2]],), ([M, M], 2), ([np.array(1.0), np.array(2.0)],)],
    "stack": [([M, V],), ([M, M[:, :2]],), ([M, M], 3)],
    "vstack": [([M, V],)],
    "hstack": [([M, V],)],
    "block": [([[M, M[:1]]],), ([M, [M]],), ([[], [M]],), (([M], [M]),)],
    "split": [(V, 3), (V, 0), (M, 2, 2)],
    "array_split": [(V, 0)],
    "vsplit": [(V, 2)],
    "hsplit": [(np.array(1.0), 1)],
    "dsplit": [(M, 1)],
    "unstack": [(np.array(1.0),)],
    "insert": [(V, 6, 1.0), (M, 0, np.ones(5), 0), (M, 0, 1.0, 2)],
    "delete": [(V, 4), (M, 0, 2)],
    "diagonal": [(V,), (M, 0, 0, 0), (M, 0, 0, 2)],
    "diag": [(T,)],
    "tril": [(np.array(1.0),)],
    "triu": [(np.array(1.0),)],
    "vander": [(M,)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_calls_raise_as_numpy(name):
    ours, theirs = getattr(fnp, name), getattr(np, name)
    for first, *rest in REFUSED[name]:
        with pytest.raises((ValueError, IndexError, TypeError, ZeroDivisionError)) as refused:
            theirs(first, *rest)
        kinds = (ValueError, IndexError, TypeError, ZeroDivisionError)
        kind = next(kind for kind in kinds if isinstance(refused.value, kind))

        def traced(c, first=first, rest=rest):
            return ours(scaled(first, c), *rest)

        with pytest.raises(kind):
            ours(first, *rest)
        with pytest.raises(kind):
            jvp(traced, (1.0,), (1.0,))
        with pytest.raises(kind):
            vmap(traced)(np.ones(2))


def scaled(arrays, c):
    """Return nested lists with every array multiplied by ``c``."""
    return type(arrays)([scaled(a, c) for a in arrays]) if isinstance(arrays, (list, tuple)) else arrays * c


CUBE = np.arange(24.0).reshape(2, 3, 4)
LAID_OUT = {
    "C": lambda x: x * 1.0,
    "F": lambda x: np.asfortranarray(x * 1.0),
    "transposed": lambda x: (x * 1.0).transpose(1, 2, 0),
    "gaps": lambda x: (x * 1.0).transpose(2, 0, 1)[::2],
    "backwards": lambda x: (x * 1.0).T[:, ::-1],
    "one axis": lambda x: (x * 1.0)[0, 0],
}
IN_ORDER = {
    "reshape A": lambda x: np.reshape(x, -1, "A"),
    "method A": lambda x: x.reshape((x.size,), order="A"),
    "ravel A": lambda x: np.ravel(x, "A"),
    "ravel K": lambda x: x.ravel("K"),
    "flatten A": lambda x: x.flatten("A"),
    "flatten K": lambda x: x.flatten("K"),
    "flatten f": lambda x: x.flatten("f"),
    "ravel k": lambda x: np.ravel(x, "k"),
    "copy f": lambda x: x.copy("f").ravel("k"),
    "array c": lambda x: np.array(x, order="c").ravel("K"),
    "astype f": lambda x: x.astype(float, order="f").ravel("K"),
}


@pytest.mark.parametrize("laid_out", LAID_OUT.values(), ids=LAID_OUT)
@pytest.mark.parametrize("call", IN_ORDER.values(), ids=IN_ORDER)
def test_order_k_follows_memory_layout(call, laid_out):
    def fun(x):
        return call(laid_out(x))

    def written(x):  # writes to a view of it, where NumPy gives one
        y = laid_out(x)
        z = call(y)
        z[:2] = 7.0
        return y

    for f in (fun, written):
        want = f(CUBE)
        out, tangent = jvp(f, (CUBE,), (CUBE,))
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(tangent, np.where(want == 7.0, tangent, want))
        np.testing.assert_array_equal(vmap(f)(np.stack([CUBE, -CUBE]))[0], want)
        np.testing.assert_array_equal(jit(f, backend="numpy")(CUBE), want)
    recorded = jit(call, backend="numpy")
    for x in (CUBE, np.asfortranarray(CUBE), CUBE.transpose(1, 0, 2)):
        np.testing.assert_array_equal(recorded(x), call(x))


def test_unknown_orders_raise():
    for attempt in (lambda x: fnp.reshape(x, 6, "K"), lambda x: fnp.ravel(x, "B")):
        with pytest.raises(ValueError, match="order"):
            jvp(attempt, (M,), (M,))


PADDED = [
    *[(mode, {}) for mode in ("constant", "edge", "linear_ramp", "mean", "median", "maximum", "minimum", "wrap")],
    *[(mode, {"reflect_type": kind}) for mode in ("reflect", "symmetric") for kind in ("even", "odd")],
    *[(mode, {"stat_length": ((2, 1), (1, 9))}) for mode in ("mean", "median", "maximum", "minimum")],
    ("linear_ramp", {"end_values": ((1, 2), (3, 4))}),
]


@pytest.mark.parametrize(("mode", "options"), PADDED)
@pytest.mark.parametrize(
    ("x", "widths"),
    [
        (M, 1),
        (M, ((0, 2), (9, 7))),
        (V, (5, 0)),
        (M[:, :1], ((1, 0), (2, 3))),
        (M[:, :0], ((1, 2), (0, 0))),
        (M * 1j, 1),
        (M.astype(np.float32), 2),
        (M.astype(int), 3),
        (np.array([np.inf, 1.0, 2.0]), (0, 4)),
    ],
)
def test_pad_modes_match_numpy(x, widths, mode, options):
    if x.ndim == 1 and options.get("stat_length"):
        options = {"stat_length": (2, 1)}
    if x.ndim == 1 and "end_values" in options:
        options = {"end_values": (1, 2)}
    with np.errstate(invalid="ignore"):
        want = np.pad(x, widths, mode, **options)
        got = vmap(lambda x: fnp.pad(x, widths, mode, **options))(x[None])[0]
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=3e-7 if x.dtype == np.float32 else 1e-14)


def test_pad_values_have_derivatives():
    fun = lambda x, ends: fnp.pad(x, (1, 2), "linear_ramp", end_values=(ends, 2 * ends))
    of_x, of_ends = jacrev(fun, (0, 1))(np.array([1.0, 7.0]), 4.0)
    np.testing.assert_allclose(of_ends, [1, 0, 0, 1, 2], atol=1e-15)
    np.testing.assert_allclose(of_x, [[0, 0], [1, 0], [0, 1], [0, 0.5], [0, 0]], atol=1e-15)
    shared = grad(lambda x: fnp.pad(x, (0, 1), "maximum")[-1])
    np.testing.assert_array_equal(shared(np.array([2.0, 1.0, 2.0])), [0.5, 0, 0.5])
    odd = jacrev(lambda x: fnp.pad(x, (3, 0), "reflect", reflect_type="odd"))(np.array([1.0, 5.0, 7.0]))
    np.testing.assert_array_equal(odd[:3], [[2, 1, -2], [2, 0, -1], [2, -1, 0]])


def test_pad_with_function():
    def ends(vector, width, axis, options):
        vector[: width[0]] = options["scale"] * vector[width[0]]
        vector[len(vector) - width[1] :] = axis

    for x, widths in ((M + 1, ((1, 2), (2, 1))), (V, (1, 1))):
        fun = lambda x, widths=widths: fnp.pad(x, widths, ends, scale=3)
        want = np.pad(x, widths, ends, scale=3)
        got, tangent = jvp(fun, (x,), (x,))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(tangent, np.pad(x, widths, lambda *args: ends(*args[:2], 0, args[3]), scale=3))
        np.testing.assert_array_equal(
            jvp(fun, (x,), (x,))[1], np.einsum("...i,i", jacrev(fun)(x).reshape(*want.shape, -1), x.ravel())
        )


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((M, 1, "nearest"), {}),
        ((M, 1, "edge"), {"constant_values": 1.0}),
        ((M, 1, "mean"), {"reflect_type": "odd"}),
        ((M, 1, "maximum"), {"stat_length": 0}),
        ((M[:0], 1, "mean"), {}),
    ],
)
def test_invalid_pad_raises(arguments, options):
    for fun in (np.pad, lambda x, *rest, **kw: jvp(lambda x: fnp.pad(x, *rest, **kw), (x,), (x,))):
        with pytest.raises(ValueError, match=r"not supported|unsupported|stat_length|empty axis"):
            fun(*arguments, **options)


def test_pad_with_dictionary_of_axes():
    fun = lambda x: fnp.pad(x, {-1: (1, 2)})
    np.testing.assert_array_equal(jvp(fun, (M,), (M,))[0], np.pad(M, ((0, 0), (1, 2))))
    if at_least(np, "2.4.0"):  # NumPy's function handles plain arrays; before, it accepted no dictionary
        np.testing.assert_array_equal(fun(M), np.pad(M, ((0, 0), (1, 2))))
    assert vmap(lambda x: fnp.pad(x, {0: 1}))(M).shape == (2, 5)


def test_differing_shapes_in_batch_raise():
    counts = np.array([1, 2])
    for attempt in (
        lambda n: fnp.repeat(V, n),
        lambda n: fnp.delete(V, fnp.stack([n, 0])),
        lambda n: fnp.insert(V, fnp.stack([n, 0]), 0.0),
    ):
        with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
            vmap(attempt)(counts)


def test_cotangents_keep_the_dtypes_of_mixed_arguments():
    parts = (V.astype(np.float32), V, V.astype(np.float16), np.arange(4), V * 1j)
    for join in (fnp.concatenate, fnp.stack):
        fun = lambda a, b, c, e, join=join: join([a, b, c, parts[3], e])
        args = (*parts[:3], parts[4])
        outs, pullback = vjp(fun, *args)
        assert outs.dtype == np.complex128
        cts = pullback(np.ones(outs.shape, complex))
        assert [ct.dtype for ct in cts] == [a.dtype for a in args]
        out, tangent = jvp(fun, args, args)
        assert tangent.dtype == out.dtype
        np.testing.assert_array_equal(tangent, join([*parts[:3], 0 * V, parts[4]]))


def test_dtype_and_casting_of_joins():
    fun = lambda x: fnp.concatenate([x, V], dtype=np.float32)
    outs, pullback = vjp(fun, V)
    assert outs.dtype == np.float32
    assert pullback(np.ones(8, np.float32))[0].dtype == np.float64
    for join in (np.concatenate, fnp.concatenate):
        with pytest.raises(TypeError, match="Cannot cast"):
            join([V, V], dtype=int)
    with pytest.raises(TypeError, match="Cannot cast"):
        jvp(lambda x: fnp.stack([x, V], dtype=int), (V,), (V,))
    assert grad(lambda x: fnp.concatenate([x, V], dtype=int, casting="unsafe")[0] + x[1])(V)[0] == 0.0


def test_one_array_joined_with_itself():
    np.testing.assert_array_equal(grad(lambda x: fnp.concatenate([x, 2 * x, x]) @ np.arange(12.0))(V), [16, 20, 24, 28])
    assert grad(grad(lambda x: fnp.stack([x, x * x, x]) @ V[:3]))(3.0) == 4.0


def test_joining_nonnumeric_arrays_raises():
    for other in (np.array(["text"] * 4), np.array([None] * 4), np.ma.array(V)):
        for join in (fnp.concatenate, fnp.stack):
            with pytest.raises(InputError, match="argument 1"):
                grad(lambda x, join=join, other=other: join([x, other])[0])(V)


def test_joins_accept_array_as_sequence_of_rows():
    for join in (fnp.concatenate, fnp.stack, fnp.vstack, fnp.hstack, fnp.column_stack):
        value, tangent = jvp(join, (T,), (2 * T,))
        np.testing.assert_array_equal(value, join(T))
        np.testing.assert_array_equal(tangent, join(2 * T))
    with pytest.raises(InputError, match="list"):
        fnp.concatenate({1: V})


def test_joins_of_constants_return_ndarrays():
    seen = []
    grad(lambda x: seen.append(fnp.concatenate([V, V])) or x)(1.0)
    assert type(seen[0]) is np.ndarray


def test_unused_pieces_have_zero_cotangents():
    np.testing.assert_array_equal(grad(lambda x: fnp.split(x, 2)[1] @ V[:2])(V), [0, 0, 1, 2])
    np.testing.assert_array_equal(grad(lambda x: fnp.unstack(x)[1] @ V[:3])(M), [[0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(jacfwd(lambda x: fnp.array_split(x, [3, 1])[2])(V), np.eye(4)[1:])
    np.testing.assert_array_equal(jacrev(lambda x: fnp.array_split(x, [3, 1])[2])(V), np.eye(4)[1:])


def test_pad_corners_belong_to_last_axis():
    fun = lambda c: fnp.pad(M, 1, constant_values=((c, 2 * c), (3 * c, 4 * c)))
    want = np.pad(M, 1, constant_values=((1, 2), (3, 4)))
    want[1:-1, 1:-1] = 0
    np.testing.assert_array_equal(jacrev(fun)(1.0), want)
    np.testing.assert_array_equal(jacfwd(fun)(1.0), want)


def test_inserting_into_integers_converts_the_values():
    fun = lambda v: fnp.insert(np.arange(3), 1, v)[1] + v
    assert fun(1.7) == np.insert(np.arange(3), 1, 1.7)[1] + 1.7
    assert grad(fun)(1.7) == 1.0


#: Functions of integers that the examples of a batch do not share, and the integers.
OF_PLACES = {
    "roll": (lambda np, x, i: np.roll(x, i), [1, -2, 30]),
    "roll, one axis": (lambda np, x, i: np.roll(x, i, -1), [1, -2, 30]),
    "roll, two axes": (lambda np, x, i: np.roll(x, (i, 2), (0, 1)), [1, -2, 30]),
    "roll, two shifts": (lambda np, x, i: np.roll(x, i, 2), [[1, -2], [30, 0]]),
    "delete": (lambda np, x, i: np.delete(x, i), [0, -1, 7]),
    "delete, one axis": (lambda np, x, i: np.delete(x, i, 1), [[0], [-1], [1]]),
    "insert": (lambda np, x, i: np.insert(x, i, [7.0, 8.0]), [0, 24, -1]),
    "insert, one axis": (lambda np, x, i: np.insert(x, i, V, -1 if x.ndim == 1 else 0), [0, 2, -1]),
    "insert, listed place": (lambda np, x, i: np.insert(x, i, [[7.0], [8.0]], 1), [[0], [3], [-1]]),
}


@pytest.mark.parametrize("name", OF_PLACES)
def test_places_that_differ_between_examples(name):
    fun, places = OF_PLACES[name]
    x = T[0, :2] if name.endswith("listed place") else T
    places = np.array(places)
    want = [fun(np, x, i) for i in places]
    np.testing.assert_array_equal(vmap(lambda i: fun(fnp, x, i))(places), want)
    np.testing.assert_array_equal(jax.vmap(lambda i: fun(fnp, x, i))(places), want)
    np.testing.assert_array_equal([jit(lambda x, i: fun(np, x, i))(x, i) for i in places], want)
    x = x + 1
    slope = vmap(grad(lambda x, i: fnp.sum(fun(fnp, x, i) ** 2)), in_axes=(None, 0))(x, places)
    one_by_one = [grad(lambda x: fnp.sum(fun(fnp, x, i) ** 2))(x) for i in places]  # noqa: B023 (called at once)
    np.testing.assert_array_equal(slope, one_by_one)


def test_refused_places_of_a_batch():
    for fun in (lambda i: fnp.delete(V, i), lambda i: fnp.insert(V, i, 1.0)):
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis with size 4"):
            vmap(fun)(np.array([0, 5]))
    for fun, places in ((fnp.roll, [0.0, 1.0]), (fnp.delete, [[0, 1], [1, 2]])):
        with pytest.raises(ConcretizationError, match="one value was asked for"):
            vmap(lambda i, fun=fun: fun(V, i))(np.array(places))
    with pytest.raises(ValueError, match="should be scalars or 1D"):
        vmap(lambda i: fnp.roll(V, i))(np.arange(4).reshape(2, 1, 2))


def test_on_jax_arrays_outside_jit():
    x = jnp.asarray(M)
    for fun in (
        lambda a: fnp.reshape(a, -1, "F"),
        lambda a: fnp.concatenate([a, [[1.0, 2.0, 3.0]]]),
        lambda a: fnp.stack([a, M]),
        lambda a: fnp.pad(a, 1, "wrap"),
        lambda a: fnp.insert(a, [0, 2], 9.0, 1),
        lambda a: fnp.split(a, 3, 1)[1],
        lambda a: fnp.diag(a[0], 1),
        lambda a: fnp.block([[a, a], [a, a]]),
        lambda a: fnp.tile(a, (2, 1, 2)),
        lambda a: fnp.repeat(a, [1, 0, 2], 1),
    ):
        got = fun(x)
        assert isinstance(got, jax.Array)
        np.testing.assert_array_equal(got, fun(M))
        assert isinstance(jacrev(fun)(x), jax.Array)
        np.testing.assert_array_equal(jacrev(fun)(x), jacfwd(fun)(M))


def test_results_for_plain_values_match_numpy():
    for name, args in {
        "reshape": [(3.0, ()), (np.float64(3), ()), ([[1, 2]], 2)],
        "squeeze": [(3.0,), (np.float32(3),), ([[1, 2]],)],
        "expand_dims": [(3.0, 0), ([1, 2], 0)],
        "transpose": [(3.0,), (np.float64(3),), ([[1, 2]],)],
        "ravel": [(3.0,), ([[1], [2]],)],
        "flip": [(3.0,), ([[1, 2]],), ([[1, 2]], (0, 1))],
        "roll": [(3.0, 1), ([1, 2, 3], 1)],
        "tile": [(3.0, 2), ([1, 2], 2), ([1, 2], np.array([2, 1]))],
        "repeat": [(3.0, 2), ([1, 2], 2)],
        "pad": [(3.0, 1), ([1, 2], 1), ([1, 2], 1, "mean")],
        "broadcast_to": [(3.0, 2), ([1, 2], (2, 2))],
        "atleast_3d": [(3.0,), ([1, 2],), ([[1, 2]],)],
        "diag": [([1, 2],), ([[1, 2]],)],
        "tril": [([[1, 2], [3, 4]],), ([1, 2],), ([[True, True], [True, True]],)],
        "concatenate": [([[1, 2], [3.0]],), ([1, [2, 3]], None)],
        "stack": [([1, 2],), ([[1], [2.0]],)],
        "block": [([1, 2],), (3,)],
        "append": [(1, 2)],
        "insert": [([1, 2, 3], [0, 1], 9)],
        "delete": [([1, 2, 3], slice(0, 2))],
        "vander": [([1, 2, 3],)],
        "size": [([[1, 2]],), ([[1, 2]], 1), (3,)],
        "ndim": [([[1, 2]],), (3,)],
        "iscomplexobj": [([1j],), (1.0,)],
        "isrealobj": [([1j],), (1.0,)],
        "isscalar": [(1.0,), (np.float32(1),), (np.ones(1),), ("text",)],
        "result_type": [(np.float32(1), 1.0), (np.ones(1, np.float32), np.float64), (1, 2)],
        "broadcast_shapes": [((2, 1), (1, 3)), (2, (3, 1))],
    }.items():
        for call in args:
            got, want = getattr(fnp, name)(*call), getattr(np, name)(*call)
            assert type(got) is type(want), (name, call)
            assert getattr(got, "dtype", None) == getattr(want, "dtype", None), (name, call)
            np.testing.assert_array_equal(got, want, strict=isinstance(want, np.ndarray))


def test_shape_dtype_and_type_queries():
    seen = []

    def fun(x, y):
        seen.append((fnp.shape(x), fnp.ndim(x), fnp.size(x), fnp.size(x, 0), fnp.isscalar(x), fnp.iscomplexobj(x)))
        seen.append((fnp.isscalar(y), fnp.result_type(x, y), fnp.result_type(x, 1j), fnp.isrealobj(x)))
        return x[0, 0] * y

    grad(fun, argnums=(0, 1))(M.astype(np.float32), 2.0)
    assert seen[0] == ((2, 3), 2, 6, 2, False, False)
    assert seen[1] == (True, np.float32, np.complex64, True)
    vmap(fun, in_axes=(0, None))(np.stack([M, M, M]), 2.0)
    assert seen[2][:4] == ((2, 3), 2, 6, 2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("small", "large"),
    [
        ((2,), (5000, 2)),
        ((8,), (20, 9, 11, 8)),
        ((1, 3), (700, 3)),
        ((600, 1), (600, 3)),
        ((2, 1, 600), (2, 3, 600)),
        ((5, 1, 2), (5, 300, 2)),
        ((300, 1, 2), (300, 3, 2)),
        ((4, 1, 1, 3), (4, 16, 20, 3)),
        ((1, 40, 1), (30, 40, 2)),
        ((), (40, 40)),
        ((1, 1), (2, 1000)),
        ((1, 1, 1), (2, 1, 1000)),
    ],
)
def test_cotangents_of_broadcast_are_sums(small, large, order, dtype):
    rng = np.random.default_rng(0)
    ct = (1 + rng.standard_normal(large)).astype(dtype, order=order)
    x, y = rng.standard_normal(small).astype(dtype), rng.standard_normal(large).astype(dtype)
    kept = (1,) * (len(large) - len(small)) + small
    axes = tuple(i for i, n in enumerate(kept) if n != large[i])
    for fun in (lambda x: fnp.broadcast_to(x, large), lambda x: x + y):
        (pulled,) = vjp(fun, x)[1](ct)
        assert np.shape(pulled) == small
        assert pulled.dtype == dtype
        wide = np.clongdouble if np.dtype(dtype).kind == "c" else np.longdouble
        want = ct.astype(wide).sum(axes).reshape(small)
        allowed = 20 * float(np.finfo(dtype).eps) * np.sqrt(ct.size / max(1, x.size))
        assert np.all(np.abs(pulled.astype(wide) - want) <= allowed * np.abs(ct.astype(wide)).sum(axes).reshape(small))


LAYOUTS = {
    "new": lambda x: fnp.outer(x, x),
    "transposed": lambda x: fnp.outer(x, x).T,
    "rows": lambda x: fnp.outer(x, x)[::2],
    "columns": lambda x: fnp.outer(x, x)[:, :2],
    "fortran": lambda x: fnp.asfortranarray(fnp.outer(x, x)),
    "vector": lambda x: x * 2.0,
}


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_reshape_without_a_copy(name, order):
    """Where NumPy would copy, ``copy=False`` raises, in every mode."""
    x = np.array([0.5, 2.0, -1.0])
    like = LAYOUTS[name](x)
    for shape in ((like.size,), (1, like.size), (like.size, 1), like.shape, like.shape[::-1]):
        f = lambda x, shape=shape: fnp.reshape(LAYOUTS[name](x), shape, order, copy=False)
        modes = [lambda f=f: vjp(f, x)[0], lambda f=f: jvp(f, (x,), (x,))[0], lambda f=f: vmap(f)(x[None])[0]]
        try:
            wanted = f(x)
        except ValueError:
            for run in modes:
                with pytest.raises(ValueError, match="Unable to avoid creating a copy while reshaping"):
                    run()
        else:
            for run in modes:
                np.testing.assert_array_equal(run(), wanted)


def test_repeats_may_be_floats():
    f = lambda x: fnp.repeat(x, 2.9) @ np.arange(4.0) + fnp.repeat(x[None], np.float64(2.0), axis=0)[1, 0]
    assert grad(f)(np.ones(2)).tolist() == [2.0, 5.0]
