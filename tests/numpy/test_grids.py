"""Grids and rows written as slices, iteration, and NumPy's questions about arrays, on traced values."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import traced

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, InputError

X = np.array([[1.5, -2.0, 0.5], [3.0, 4.0, -1.0]])


def same(got, want):
    if isinstance(want, tuple):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    else:
        assert (got.shape, got.dtype) == (np.shape(want), np.asarray(want).dtype)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)


# ---- slices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
@pytest.mark.parametrize(
    "key",
    [
        lambda a: np.s_[a:5:3j],
        lambda a: np.s_[a:5:1j],
        lambda a: np.s_[a:5:0j],
        lambda a: np.s_[a:5],
        lambda a: np.s_[a : 5 : a / 2],
        lambda a: np.s_[:a:4j],
        lambda a: np.s_[a:5:3j, 1:3],
        lambda a: np.s_[0:1:2j, a:4:0.5, 5:a:2j],
        lambda a: (np.s_[a:5:3j],),
    ],
)
def test_mgrid_and_ogrid_match_numpy(key, dtype):
    a = dtype(1)
    for name in ("mgrid", "ogrid"):
        ours, theirs = getattr(fnp, name), getattr(np, name)
        make = (lambda a, m=ours: m[key(a)]) if dtype is not np.int64 else (lambda _, m=ours: m[key(a)])
        same(traced(make, a if dtype is not np.int64 else 1.0), theirs[key(a)])


def test_slice_stop_has_no_derivative():
    """The stop of a slice with a step only determines the number of points, as in ``arange``."""
    grid = lambda a, b, c: fnp.mgrid[a:b:c]
    for jacobian in (jacrev, jacfwd):
        same(jacobian(grid, (0, 1, 2))(1.0, 2.9, 0.5), (np.ones(4), np.zeros(4), np.arange(4.0)))
    ends = lambda a, b: fnp.mgrid[a:b:3j]
    for jacobian in (jacrev, jacfwd):
        same(jacobian(ends, (0, 1))(1.0, 3.0), (np.array([1, 0.5, 0]), np.array([0, 0.5, 1])))


@pytest.mark.parametrize("make", [lambda a: fnp.mgrid[a:5], lambda a: fnp.ogrid[0:1, a:5], lambda a: fnp.r_[a:5]])
def test_differing_numbers_of_points_in_batch_raise(make):
    with pytest.raises(ConcretizationError, match="arange"):
        vmap(make)(np.array([1.0, 3.0]))


ROWS = [
    lambda r, x: r[x[0], 0, x[1]],
    lambda r, x: r[x],
    lambda r, x: r[1:4, x[0], 0:1:3j],
    lambda r, x: r["-1", x, x],
    lambda r, x: r["0,2", x[0], x[1]],
    lambda r, x: r["1,2,0", x[0], 1:4],
    lambda r, x: r["0,3,1", x[0], x[1]],
    lambda r, x: r["0,3,-2", x[0], x[1]],
    lambda r, x: r["0,3", x, x],
    lambda r, x: r[x[0], np.float32([1, 2]), np.float64(3)],
    lambda r, x: r[x[0], True],
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("row", ROWS)
def test_r_matches_numpy(row, dtype):
    same(traced(lambda x: row(fnp.r_, x), dtype(X)), row(np.r_, dtype(X)))


@pytest.mark.parametrize(
    "row", [lambda c, x: c[x[0], x[1]], lambda c, x: c[x, x], lambda c, x: c[x[0], 0:3], lambda c, x: c["0", x, x]]
)
def test_c_matches_numpy(row):
    same(traced(lambda x: row(fnp.c_, x), X), row(np.c_, X))


def test_invalid_r_raises():
    with pytest.raises(InputError, match=r"r_: a matrix cannot be made of traced values, got 'r'"):
        traced(lambda x: fnp.r_["r", x[0]], X)
    with pytest.raises(InputError, match=r"c_: matrices are not supported, got '1 2; 3 4'. Use block"):
        fnp.c_["1 2; 3 4"]
    with pytest.raises(ValueError, match="unknown special directive"):
        traced(lambda x: fnp.r_["a,b", x[0]], X)
    with pytest.raises(ValueError, match="must be the first entry"):
        traced(lambda x: fnp.r_[x[0], "0"], X)


def test_index_tricks_on_plain_values_match_numpy():
    same(fnp.r_[1:3, 5], np.r_[1:3, 5])
    same(fnp.c_[[1, 2]], np.c_[[1, 2]])
    assert len(fnp.r_) == len(np.r_) == 0
    assert fnp.s_[1:2, ...] == (slice(1, 2), ...)
    assert fnp.index_exp[1] == (1,)
    assert list(fnp.ndindex(1, 2)) == [(0, 0), (0, 1)]


# ---- elements ----------------------------------------------------------------------------------------------


def test_ndenumerate():
    same(
        grad(lambda x: sum(v * v * (i + 10 * j) for (i, j), v in fnp.ndenumerate(x)))(X),
        2 * X * [[0, 10, 20], [1, 11, 21]],
    )
    assert [(i, float(v)) for i, v in fnp.ndenumerate(X)] == [(i, float(v)) for i, v in np.ndenumerate(X)]
    assert traced(lambda x: [i for i, _ in fnp.ndenumerate(x)] == [()] and x, 2.0) == 2.0


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("index", ["c_index", "f_index"])
def test_nditer_matches_numpy(order, index):
    def seen(nditer, x):
        it = nditer(x, ["multi_index", index], [["readonly"]], order=order)
        return [(it.multi_index, it.index, it.iterindex, it.nop, it.ndim, it.shape, it.itersize, v) for v in it]

    found = traced(lambda x: [v[-1] * 1.0 for v in seen(fnp.nditer, x)], X)
    steps = []
    vjp(lambda x: (steps.extend(v[:-1] for v in seen(fnp.nditer, x)), fnp.sum(x))[1], X)
    want = seen(np.nditer, X)
    assert steps == [v[:-1] for v in want]
    same(np.array(found), X.ravel(order))


def test_nditer_manual_iteration():
    def fun(x, y):
        total = 0.0
        with fnp.nditer([x, y], order="C") as it:
            while not it.finished:
                assert len(it) == 2
                total = total + it[0] * it[1] ** 2
                more = it.iternext()
            assert not more
            it.reset()
            first, second = it.value
        return total + first - second

    y = np.array([1.0, 2.0, 3.0])
    got = grad(fun, (0, 1))(X, y)
    want = grad(lambda x, y: fnp.sum(x * y**2) + x[0, 0] - y[0], (0, 1))(X, y)
    same(got, want)
    assert [float(v) for v in itertools.islice(fnp.nditer(X), 2)] == [1.5, -2.0]


@pytest.mark.parametrize("dtype", [complex, np.float32])
def test_nditer_allocates_outputs_of_the_dtype_of_its_operands(dtype):
    def squares(x):
        with fnp.nditer([x, None]) as it:
            for a, b in it:
                b[...] = a * a
            return it.operands[1]

    x = np.array([1.0, 2.0], dtype) * dtype(1j if dtype is complex else 1.0)
    found, push = jvp(squares, (x,), (x,))
    assert found.dtype == push.dtype == dtype
    assert (found == x * x).all()
    assert (push == 2 * x * x).all()


def test_nditer_allocates_outputs():
    def squares(nditer, x, order):
        it = nditer([x, 2.0, None], [], [["readonly"], ["readonly"], ["writeonly", "allocate"]], order=order)
        for a, b, z in it:
            z[...] = b * a**2
        return it.operands[-1]

    for order in "CF":
        np.testing.assert_array_equal(traced(lambda x, o=order: squares(fnp.nditer, x, o), X), 2.0 * X**2)
        np.testing.assert_allclose(grad(lambda x, o=order: fnp.sum(squares(fnp.nditer, x, o) * X))(X), 4.0 * X * X)
    narrow = traced(lambda x: fnp.nditer([x, None], op_dtypes=[np.float32, np.int64]).operands, X)
    assert [part.dtype for part in narrow] == [np.float32, np.int64]
    with_array = [np.arange(2.0), X.ravel()[:2], None]  # comparing an array with None would be ambiguous
    kept = traced(
        lambda x: fnp.nditer([with_array[0], x, None], op_dtypes=[None, None, np.float64]).operands, with_array[1]
    )
    assert kept[2].shape == (2,)


def test_nditer_of_empty_arrays():
    empty = np.zeros((0, 2))
    with pytest.raises(ValueError, match="zero-sized"):
        traced(lambda x: [*fnp.nditer(x)], empty)
    assert traced(lambda x: [*fnp.nditer(x, ["zerosize_ok"])], empty) == []


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"flags": ["external_loop"]}, "'external_loop'"),
        ({"flags": ["buffered"]}, "'buffered'"),
        ({"op_dtypes": [float]}, "op_dtypes"),
        ({"itershape": (2, 3)}, "itershape"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_nditer_raises_where_memory_is_needed(options, what):
    with pytest.raises(
        InputError, match=rf"nditer: it goes through traced values one element at a time, got {what}.*Use whole-array"
    ):
        traced(lambda x: fnp.nditer(x, **options), X)
    with pytest.raises(InputError, match="positional"):
        traced(lambda x: fnp.nditer(x, None, None, None), X)
    with pytest.raises(ValueError, match="as many entries as operands"):
        traced(lambda x: fnp.nditer(x, None, [["readonly"], ["writeonly"]]), X)


def test_nditer_checks_flags():
    it = []
    vjp(lambda x: (it.append(fnp.nditer(x)), fnp.sum(x))[1], X)
    with pytest.raises(ValueError, match="multi-index"):
        _ = it[0].multi_index
    with pytest.raises(ValueError, match="does not have an index"):
        _ = it[0].index


# ---- inspection --------------------------------------------------------------------------------------------

ASKED = {
    "can_cast": lambda xp, x: (xp.can_cast(x, np.float32), xp.can_cast(np.float32, x.dtype)),
    "common_type": lambda xp, x: xp.common_type(x, np.ones(2, np.complex64)),
    "min_scalar_type": lambda xp, x: (xp.min_scalar_type(x), xp.min_scalar_type(x[0, 0])),
    "isfortran": lambda xp, x: xp.isfortran(x),
    "iterable": lambda xp, x: (xp.iterable(x), xp.iterable(x[0, 0])),
    "shares_memory": lambda xp, x: (xp.shares_memory(x, X), xp.shares_memory(x, X.copy())),
    "may_share_memory": lambda xp, x: (xp.may_share_memory(x, X), xp.may_share_memory(X.copy(), x)),
    "array2string": lambda xp, x: xp.array2string(x, precision=2),
    "format_float_positional": lambda xp, x: xp.format_float_positional(x[0, 0], trim="-"),
    "format_float_scientific": lambda xp, x: xp.format_float_scientific(x[0, 0]),
    "array_equiv": lambda xp, x: (xp.array_equiv(x, x), xp.array_equiv(x, x[0]), xp.array_equiv(x, X[:, :2])),
}


@pytest.mark.parametrize("name", ASKED)
def test_questions_match_numpy(name):
    answers = []
    x = X.copy() if "memory" not in name else X
    grad(lambda x: (answers.append(ASKED[name](fnp, x)), fnp.sum(x))[1])(x)  # vjp would make a copy
    assert answers[-1:] == [ASKED[name](np, x)]  # a function that may read a number from a text runs twice
    assert ASKED[name](fnp, x) == ASKED[name](np, x)


def test_printed_arrays_are_texts_of_traced_numbers():
    shorter = lambda x: np.array_str(x, precision=1)
    for make in (np.array2string, fnp.array2string, fnp.format_float_positional, fnp.format_float_scientific, shorter):
        with pytest.raises(ConversionError, match=r"float\(text\)"):
            grad(lambda x, make=make: x * float(make(x)))(1.25)
    texts = []
    vjp(lambda x: (texts.append(shorter(x)), fnp.sum(x))[1], X / 3)
    assert texts[-1] == shorter(X / 3)


def test_repr_describes_a_traced_value():
    texts = []
    vjp(lambda x: (texts.extend([fnp.array_repr(x), repr(x), fnp.array_str(x), str(x)]), fnp.sum(x))[1], X)
    assert texts[0] == texts[1]
    assert "1.5" in texts[0]
    assert texts[2] == texts[3] == str(X)
    assert fnp.array_repr(X, precision=1) == np.array_repr(X, precision=1)
    assert fnp.array_str(X, precision=1) == np.array_str(X, precision=1)
    with pytest.raises(ConcretizationError, match="array2string"):
        vmap(lambda x: fnp.array2string(x) and x)(X)
    with pytest.raises(ConcretizationError, match="min_scalar_type"):
        vmap(lambda x: fnp.min_scalar_type(x) and x)(X[0])


def test_memory_of_other_libraries_is_not_shared():
    assert not fnp.shares_memory(jnp.ones(2), np.ones(2))
    assert not fnp.may_share_memory(jnp.ones(2), np.ones(2))


def test_isnat_of_numbers_raises():
    assert fnp.isnat(np.datetime64("NaT", "s"))
    for x in (X, None):
        with pytest.raises(TypeError, match="isnat"):
            fnp.isnat(X) if x is None else traced(fnp.isnat, X)


def test_real_if_close_in_a_batch():
    z = np.array([[1.0 + 0j, 2.0], [3.0, 4.0]])
    same(vmap(fnp.real_if_close)(z), z.real)
    same(vmap(fnp.real_if_close)(z + 1j), z + 1j)
    with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
        vmap(fnp.real_if_close)(z + np.array([[0], [1j]]))
    tangent = jvp(lambda z: fnp.real_if_close(z, 0.5), (z + 0.25j,), (z + 3j,))[1]
    same(tangent, z.real)


def test_asarray_chkfinite_checks_values():
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            traced(fnp.asarray_chkfinite, np.array([1.0, bad]))
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            vmap(fnp.asarray_chkfinite)(np.array([1.0, bad]))
    same(traced(lambda x: fnp.asarray_chkfinite([x, 1.0], np.float32), 2.0), np.float32([2, 1]))


def test_packbits_under_vmap():
    x = np.array([[1, 0, 1], [0, 0, 1]])
    same(vmap(fnp.packbits)(x), np.stack([np.packbits(row) for row in x]))
    with pytest.raises(TypeError, match="integer or boolean"):
        traced(fnp.packbits, X)
    with pytest.raises(TypeError, match="unsigned byte"):
        traced(fnp.unpackbits, X)


def test_arrays_from_dlpack_iterators_and_buffers():
    same(grad(lambda x: fnp.sum(fnp.from_dlpack(x) ** 2))(X), 2 * X)
    same(fnp.from_dlpack(jnp.ones(2)), np.ones(2))
    same(grad(lambda x: fnp.sum(fnp.fromiter((v * i for i, v in enumerate(x)), float, 2)))(X[0]), np.array([0.0, 1, 0]))
    with pytest.raises(ValueError, match="too short"):
        traced(lambda x: fnp.fromiter(x, float, 4), X[0])
    with pytest.raises(ValueError, match="too short"):
        fnp.fromiter([1.0], float, 4)
    same(fnp.frombuffer(b"\x01\x02", np.uint8), np.array([1, 2], np.uint8))


@pytest.mark.parametrize("name", ["linspace", "logspace", "geomspace"])
@pytest.mark.parametrize("endpoint", [-1, 2.5, 0, np.False_])
def test_linspace_endpoint_is_any_truth_value(name, endpoint):
    value = vjp(lambda a, b: getattr(fnp, name)(a, b, 4, endpoint=endpoint), 1.0, 2.0)[0]
    np.testing.assert_allclose(value, getattr(np, name)(1.0, 2.0, 4, endpoint=endpoint))


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_arange_dtype_in_batch_matches_numpy(dtype):
    starts = np.array([0.5, 1.5], dtype)
    got = vmap(lambda a: fnp.arange(a, a + 2))(starts)
    np.testing.assert_array_equal(got, [np.arange(a, a + 2) for a in starts], strict=True)


def test_tensordot_axes_in_an_array():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    slope = grad(lambda x: fnp.sum(fnp.tensordot(x, y, axes=np.array([[1], [0]]))))(x)
    np.testing.assert_allclose(slope, np.broadcast_to(y.sum(1), (2, 3)))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: fnp.meshgrid(x, x, indexing="zz")[0], "Valid values for `indexing` are 'xy' and 'ij'"),
        (lambda x: fnp.diag_indices_from(x)[0], "input array must be at least 2-d"),
    ],
)
def test_invalid_arguments_raise(f, message):
    x = np.array([0.5, 2.0, -1.0])
    for run in (f, lambda x: vjp(f, x)):
        with pytest.raises(ValueError, match=message):
            run(x)
