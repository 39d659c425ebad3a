"""Creation of arrays: traced values stay traced, plain values give NumPy arrays, JAX arrays give JAX arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.writable import is_buffer

V = np.array([0.5, -1.5, 2.5])
LIKE = [fnp.zeros_like, fnp.ones_like, fnp.empty_like]


# ---- array and asarray -------------------------------------------------------------------------------------


def nested(x):
    return fnp.array([[x, 1.0], [np.float64(2.0), x * x]])


def test_nested_lists_of_numbers_and_traced_values():
    value, tangent = jvp(nested, (3.0,), (1.0,))
    np.testing.assert_array_equal(value, [[3.0, 1.0], [2.0, 9.0]])
    np.testing.assert_array_equal(tangent, [[1.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(jacrev(nested)(3.0), [[1.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(hessian(nested)(3.0), [[0.0, 0.0], [0.0, 2.0]])


def test_arrays_with_lists():
    def fun(x):
        return fnp.asarray([x, [1.0, 2.0, 3.0], (x[0], 0, x[2])])

    want = np.zeros((3, 3, 3))
    want[0] = np.eye(3)
    want[2, 0, 0] = want[2, 2, 2] = 1.0
    np.testing.assert_array_equal(fun(V), [V, [1.0, 2.0, 3.0], [V[0], 0, V[2]]])
    np.testing.assert_array_equal(jacrev(fun)(V), want)
    np.testing.assert_array_equal(jacfwd(fun)(V), want)


def test_deep_nesting():
    def fun(x):
        return fnp.array([[[[x]], [[2.0]]]])

    assert fun(1.0).shape == (1, 2, 1, 1)
    np.testing.assert_array_equal(jacrev(fun)(1.0), np.array([1.0, 0.0]).reshape(1, 2, 1, 1))


def test_nested_lists_under_vmap():
    def fun(x, y):
        return fnp.array([[x, y], [0.0, x * y]])

    want = np.stack([np.array([[x, 7.0], [0.0, x * 7.0]]) for x in V])
    np.testing.assert_array_equal(vmap(fun, in_axes=(0, None))(V, 7.0), want)
    np.testing.assert_array_equal(vmap(grad(lambda x: fun(x, 7.0)[1, 1]))(V), [7.0] * 3)


def test_list_with_tracers_of_two_levels():
    def fun(x):
        return grad(lambda y: fnp.array([x, y, x * y])[2])(2.0)

    assert grad(fun)(3.0) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64, "float64"])
def test_dtype_argument(dtype):
    outs, pullback = vjp(lambda x: fnp.array([x, 1.0], dtype=dtype), 3.0)
    assert outs.dtype == dtype
    (ct,) = pullback(np.array([2, 5], dtype))
    assert ct == 2.0
    assert np.asarray(ct).dtype == np.float64


@pytest.mark.parametrize("make", [fnp.array, fnp.asarray])
def test_dtype_of_traced_entries_matches_numpy(make):
    single = np.float32(1.5)
    for other in (single, 1, 2.0, np.float64(2.0), True, 1j):
        made, _ = vjp(lambda x, other=other: make([x, other]), single)
        assert made.dtype == np.array([single, other]).dtype, other


def test_array_with_integer_dtype_has_zero_derivative():
    assert grad(lambda x: fnp.array([x, 2.0 * x], dtype=int)[1] * 1.0 + x)(1.7) == 1.0
    np.testing.assert_array_equal(fnp.array([1.7, 3.4], dtype=int), [1, 3])


def test_array_of_plain_values_matches_numpy():
    x = np.arange(3.0)
    assert fnp.asarray(x) is x
    assert fnp.array(x) is not x
    assert fnp.array(x, copy=False) is x
    assert fnp.array(x, copy=None) is x
    assert fnp.asarray(x, dtype=float) is x
    assert fnp.asarray(x, copy=True) is not x
    assert fnp.asarray(2).dtype == np.int64
    assert fnp.array([[1, 2.5]]).dtype == np.float64
    assert fnp.array(1.0, ndmin=2).shape == (1, 1)
    assert fnp.array([[1, 2], [3, 4]], order="F").flags.f_contiguous
    with pytest.raises(ValueError, match="copy"):
        fnp.array([1.0], copy=False)
    with pytest.raises(ValueError, match="inhomogeneous"):
        fnp.array([[1.0], [1.0, 2.0]])


def test_array_of_tracer_is_same_object_or_copy():
    seen = []

    def fun(x):
        seen.extend(make(x) is x for make in (fnp.array, fnp.asarray, fnp.asanyarray, fnp.copy))
        seen.append(fnp.asarray(x, dtype=float, copy=False) is x)
        return fnp.array(x, ndmin=3)[0, 0, 1]

    np.testing.assert_array_equal(grad(fun)(V), [0.0, 1.0, 0.0])
    assert seen == [False, True, True, False, True]


def test_array_with_a_largest_number_of_axes():
    x = np.array([0.7, 1.4])
    assert grad(lambda x: fnp.array([x[0], 2.0 * x[1]], ndmax=1).sum())(x).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"array: more axes than ndmax=1 allows, got float64\[2, 2\].* dtype=object"):
        grad(lambda x: fnp.array([x, x], ndmax=1).sum())(x)
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":

        def rows(x):
            made = fnp.array([[x[0], 1.0], [x[1], 2.0, 3.0]], dtype=object, ndmax=1)
            return made[0][0] * made[1][0] * len(made[1])

        assert grad(rows)(x).tolist() == [3.0 * 1.4, 3.0 * 0.7]


def test_copy_false_raises_if_copy_is_needed():
    for attempt in (
        lambda x: fnp.asarray(x, dtype=np.float32, copy=False),
        lambda x: fnp.array([x, x], copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            jvp(attempt, (1.0,), (1.0,))


def test_ragged_list_raises():
    with pytest.raises(ValueError, match="same shape"):
        grad(lambda x: fnp.array([x, [1.0, 2.0]])[0, 0])(V)


def test_nonnumeric_entries_raise():
    with pytest.raises(InputError, match=r"stack: argument 1 .* str"):
        grad(lambda x: fnp.array([x, "text"])[0])(1.0)


def test_jax_arrays_stay_jax_arrays():
    x = jnp.arange(3.0)
    assert fnp.asarray(x) is x
    for made in (
        fnp.array(x),
        fnp.array([x, x]),
        fnp.array([[x[0], 1.0]]),
        fnp.array([x, [1.0, 2.0, 3.0]]),
        fnp.asarray(x, dtype=np.float32),
        fnp.copy(x),
        fnp.full((2,), x[1]),
        fnp.full_like(x, 2.0),
        fnp.full_like(V, x[1]),
        fnp.linspace(x[0], 1.0, 3),
        *[like(x) for like in LIKE],
    ):
        assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(jax.jit(grad(lambda x: fnp.array([x, [x[0], 1.0, x[2]]])[1, 2] * x[1]))(x), [0, 2, 1])
    np.testing.assert_array_equal(jax.grad(lambda x: fnp.array([[x[0]], [x[1] ** 2]])[1, 0])(x), [0, 2, 0])


# ---- filled arrays -----------------------------------------------------------------------------------------


def test_full_has_derivative_of_fill_value():
    fun = lambda c: fnp.full((2, 3), c)
    np.testing.assert_array_equal(jacrev(fun)(1.5), np.ones((2, 3)))
    np.testing.assert_array_equal(jacfwd(fun)(1.5), np.ones((2, 3)))
    assert grad(lambda c: fnp.full(4, c * c)[1])(3.0) == 6.0
    assert grad(lambda c: fnp.full_like(V, c)[2])(3.0) == 1.0
    assert grad(lambda c: fnp.full_like(V, [c, 2 * c, 0.0])[1])(3.0) == 2.0
    np.testing.assert_array_equal(vmap(fun)(V), np.stack([np.full((2, 3), c) for c in V]))


def test_full_like_uses_dtype_of_prototype():
    outs, pullback = vjp(lambda c: fnp.full_like(np.zeros(2, np.float32), c), 1.5)
    assert outs.dtype == np.float32
    assert pullback(np.ones(2, np.float32))[0] == 2.0
    assert grad(lambda c: fnp.full_like(np.zeros(2, int), c)[0] + c)(1.5) == 1.0


@pytest.mark.parametrize("like", LIKE)
def test_like_functions_return_constants_of_array_library(like):
    seen = []

    def fun(x):
        seen.append(like(x))
        return x[0] * 1.0

    grad(fun)(V.astype(np.float32))
    vmap(fun)(np.ones((5, 3)))
    vmap(grad(fun))(np.ones((5, 3)))
    grad(grad(lambda c: fun(c * V)))(1.0)
    assert [(is_buffer(a), type(a._val), a.shape) for a in seen] == [(True, np.ndarray, (3,))] * 4
    assert seen[0].dtype == np.float32
    seen.clear()
    grad(fun)(jnp.asarray(V))
    vmap(fun)(jnp.ones((5, 3)))
    assert all(isinstance(a._val, jax.Array) and a.shape == (3,) for a in seen)
    assert jax.jit(lambda x: like(x))(jnp.ones(4)).shape == (4,)


@pytest.mark.parametrize("like", LIKE)
def test_like_functions_of_plain_values_match_numpy(like):
    theirs = getattr(np, like.__name__)
    for x in (1.0, 2, [1, 2], V, np.float32(3), np.ones((2, 0), complex)):
        got, want = like(x), theirs(x)
        assert (type(got), got.shape, got.dtype) == (type(want), want.shape, want.dtype)
    assert like(V, dtype=int, shape=(2, 2)).shape == (2, 2)


def test_constant_creation_matches_numpy():
    for name, args in {
        "zeros": [(3,), ((2, 3), int)],
        "ones": [(3,), ((2, 3), np.float32)],
        "full": [(3, 2.5), ((2, 2), [1, 2])],
        "eye": [(3,), (2, 3), (3, None, 1)],
        "identity": [(3,), (2, int)],
        "tri": [(3,), (2, 3, -1, int)],
        "arange": [(3,), (1, 3), (0.5, 2.0, 0.25)],
        "indices": [((2, 3),)],
        "tril_indices": [(3,), (3, 1), (3, 0, 4)],
        "triu_indices": [(3,), (3, 1), (3, 0, 4)],
        "diag_indices": [(3,), (2, 3)],
        "tril_indices_from": [(np.ones((2, 3)),), (np.ones((3, 3)), -1)],
        "triu_indices_from": [(np.ones((2, 3)),), (np.ones((3, 3)), -1)],
        "diag_indices_from": [(np.ones((3, 3)),)],
    }.items():
        for call in args:
            got, want = np.asarray(getattr(fnp, name)(*call)), np.asarray(getattr(np, name)(*call))
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    assert fnp.empty((2, 3), np.float32).shape == (2, 3)


def test_index_functions_use_shape_only():
    fun = lambda x: x[fnp.triu_indices_from(x, 1)]
    np.testing.assert_array_equal(vmap(fun)(np.arange(9.0).reshape(1, 3, 3)), [[1, 2, 5]])
    assert jacrev(fun)(np.eye(3)).shape == (3, 3, 3)
    with pytest.raises(ValueError, match="matrix"):
        fnp.tril_indices_from(V)
    with pytest.raises(ValueError, match="equal length"):
        fnp.diag_indices_from(np.ones((2, 3)))


# ---- sequences ---------------------------------------------------------------------------------------------


def test_arange_has_the_derivative_of_start_and_step():
    fun = lambda start, stop, step: fnp.arange(start, stop, step)
    args = (0.5, 3.2, 0.7)
    np.testing.assert_allclose(fun(*args), np.arange(*args))
    for jacobian in (jacrev, jacfwd):
        start, stop, step = jacobian(fun, argnums=(0, 1, 2))(*args)
        np.testing.assert_array_equal(start, np.ones(4))
        np.testing.assert_array_equal(stop, np.zeros(4))
        np.testing.assert_array_equal(step, np.arange(4))
    assert grad(lambda stop: fnp.arange(stop)[2])(3.5) == 0.0
    assert grad(lambda x: fnp.arange(x, 5.0, x)[2])(1.1) == 3.0
    assert grad(lambda x: fnp.arange(x, 5.0, dtype=int)[1] + x)(1.5) == 1.0


def test_arange_in_single_precision():
    outs, pullback = vjp(lambda x: fnp.arange(x, 5.0, dtype=np.float32), np.float32(1.5))
    assert outs.dtype == np.float32
    assert pullback(np.ones(4, np.float32))[0].dtype == np.float32


def test_arange_of_batched_bounds():
    x = np.array([0.5, 0.6, 0.65])
    for make in (
        lambda s: fnp.arange(s, s + 2.0, 0.5),
        lambda s: fnp.arange(s, 2.0, 0.5),
        lambda s: fnp.arange(1.0, 2.0 + s, s),
        lambda s: fnp.arange(0.0, s + 0.35, 0.4),
        lambda s: fnp.arange(s, s - 1.0),
        lambda s: fnp.mgrid[s:2:1.0],
    ):
        np.testing.assert_array_equal(vmap(make)(x), [make(s) for s in x])
        f = lambda s, make=make: fnp.sum(make(s) ** 2)
        np.testing.assert_allclose(vmap(grad(f))(x), [grad(f)(s) for s in x], rtol=1e-14)
        np.testing.assert_allclose(grad(lambda x, f=f: fnp.sum(vmap(f)(x)))(x), [grad(f)(s) for s in x], rtol=1e-14)
        np.testing.assert_allclose(vmap(grad(grad(f)))(x), [grad(grad(f))(s) for s in x], rtol=1e-13)
    whole = vmap(lambda n: fnp.arange(n, n + 3))(np.array([1, 5]))
    assert whole.tolist() == [[1, 2, 3], [5, 6, 7]]
    assert whole.dtype == int


def test_arange_of_differing_lengths_in_batch_raises():
    with pytest.raises(ConcretizationError, match="arange"):
        vmap(lambda x: fnp.arange(x, 5.0))(V)
    np.testing.assert_array_equal(vmap(lambda x: fnp.arange(3.0) * x)(V), np.outer(V, np.arange(3.0)))


def test_arange_on_jax_arrays():
    x = jnp.float32(0.5)
    assert grad(lambda x: fnp.arange(x, 3.0)[1])(x) == 1.0
    assert fnp.arange(x, 3.0).dtype == jnp.float32


def test_linspace_edge_cases():
    assert np.isnan(fnp.linspace(1.0, 2.0, 1, retstep=True)[1])
    assert grad(lambda a: fnp.linspace(a, 2.0, 1, retstep=True)[0][0])(1.0) == 1.0
    assert grad(lambda a: fnp.linspace(a, 2.0, 5, retstep=True)[1])(1.0) == -0.25
    assert grad(lambda a: fnp.linspace(a, 3.0, 3, dtype=int)[1] + a)(1.5) == 1.0
    ends = []
    grad(lambda a: ends.append(fnp.linspace(a, 0.3, 11)) or a)(0.1)
    assert (ends[0]._val[0], ends[0]._val[-1]) == (0.1, 0.3)
    with pytest.raises(ValueError, match="non-negative"):
        grad(lambda a: fnp.linspace(a, 1.0, -1)[0])(0.0)
    singles = []
    grad(lambda a: singles.append(fnp.linspace(a, 1.0, 3)) or a)(np.float32(0.0))
    assert singles[0].dtype == np.float32


def test_geomspace_from_nan():
    assert np.isnan(jvp(lambda a: fnp.geomspace(a * np.nan, 4.0, 3), (1.0,), (1.0,))[0]).all()
    np.testing.assert_allclose(
        jvp(lambda a: fnp.geomspace(-a, -8.0, 4), (1.0,), (1.0,))[0], [-1, -2, -4, -8], rtol=1e-15
    )


def test_geomspace_with_ends_of_opposite_sign():
    with np.errstate(invalid="ignore"):
        assert np.isnan(grad(lambda a: fnp.geomspace(a, 4.0, 3)[1])(-1.0))
    got = jvp(lambda a: fnp.geomspace(a, 4.0, 5, dtype=complex), (-1.0,), (1.0,))[0]
    np.testing.assert_allclose(got, np.geomspace(-1.0, 4.0, 5, dtype=complex), atol=1e-14)


# ---- change of dtype ---------------------------------------------------------------------------------------


def test_astype_cotangent_has_primal_dtype():
    for have in (np.float16, np.float32, np.float64, np.complex64, np.complex128):
        for to in (np.float32, np.float64, np.complex64, np.complex128):
            x = np.array([1.5, -2.5]).astype(have)
            outs, pullback = vjp(lambda x, to=to: fnp.astype(x, to), x)
            assert outs.dtype == to
            (ct,) = pullback(np.ones(2, to))
            assert ct.dtype == have
            np.testing.assert_array_equal(ct, np.ones(2))
            assert jvp(lambda x, to=to: fnp.astype(x, to), (x,), (x,))[1].dtype == to


def test_astype_to_integers_and_back_has_zero_derivative():
    fun = lambda x: fnp.astype(fnp.astype(x, int), float)[0] + x[1]
    np.testing.assert_array_equal(grad(fun)(V), [0.0, 1.0, 0.0])
    assert not isinstance(jvp(fun, (V,), (V,))[1], Tracer)
    np.testing.assert_array_equal(vmap(lambda x: fnp.astype(x, bool))(V), [True] * 3)


def test_astype_of_plain_values_matches_numpy():
    assert type(fnp.astype(np.float32(1.5), np.float64)) is np.float64
    assert fnp.astype(V, np.float64) is not V
    assert fnp.astype(V, np.float64, copy=False) is V
    with pytest.raises(TypeError):
        grad(lambda x: fnp.astype(x, "no dtype")[0])(V)
    with pytest.raises(
        InputError, match=r"no dtype of numbers, got .*, at .*test_creation\.py:.*keep other objects in a list"
    ):
        grad(lambda x: fnp.astype(x, "U3")[0])(V)
    with pytest.raises(InputError, match=r"\('a', '<f8'\)\] is no dtype of numbers"):
        grad(lambda x: fnp.astype(x, [("n", int), ("a", float)])["a"][0])(V)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool, np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("name", ["linspace", "geomspace", "logspace"])
def test_ranges_of_narrow_dtypes_match_numpy(name, dtype):
    """The dtypes are too small for the difference of the ends, or for their logarithms."""
    ours, theirs = getattr(fnp, name), getattr(np, name)
    for start, stop in ((2, 1), (1, 2), (1, 1)):
        args = np.array(start).astype(dtype), np.array(stop).astype(dtype)
        want = theirs(*args, 4)
        got = vmap(lambda start, stop: ours(start, stop, 4))(*[a[None] for a in args])[0]
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(want.dtype).eps)
    step = vmap(lambda a, b: fnp.linspace(a, b, 5, retstep=True)[1])(*[np.array([n]).astype(dtype) for n in (3, 1)])
    assert step[0] == np.linspace(dtype(3), dtype(1), 5, retstep=True)[1]


@pytest.mark.parametrize("num", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("endpoint", [True, False])
def test_ranges_with_traced_bounds_match_numpy_exactly(num, endpoint):
    """A program takes the same branch when it compares with the sequence."""
    bounds = [(0.1, 1.3), (np.array([0.3, 2.0, 0.7]), 1.7), (2.0, np.array([[0.1], [0.7]]))]
    for name in ("linspace", "logspace", "geomspace"):
        ours, theirs = getattr(fnp, name), getattr(np, name)
        for start, stop in bounds:
            found = vjp(lambda a, b, ours=ours: ours(a, b, num, endpoint), start, stop)[0]
            np.testing.assert_array_equal(found, theirs(start, stop, num, endpoint))
    for start, step in ((0.1, 0.3), (1.3, -0.17)):
        stop = start + num * step
        found = vjp(lambda start, step, stop=stop: fnp.arange(start, stop, step), start, step)[0]
        np.testing.assert_array_equal(found, np.arange(start, stop, step))
    step = vjp(lambda a: fnp.linspace(a, 2.0, num, endpoint, retstep=True)[1], 0.3)[0]
    np.testing.assert_array_equal(step, np.linspace(0.3, 2.0, num, endpoint, retstep=True)[1])


def test_logsumexp_promotes_weights_first():
    a, b = np.array([0.1, 0.7], np.float32), np.array([0.3, 1.1])
    np.testing.assert_array_equal(fnp.logsumexp(a, b=b), fnp.logsumexp(a.astype(float), b=b))


@pytest.mark.parametrize("make", [
    lambda x: fnp.array(x, x.dtype.newbyteorder("="), copy=None),
    lambda x: fnp.asarray(x, x.dtype.newbyteorder("=")),
    lambda x: fnp.array(x, copy=False, ndmin=2),
])  # fmt: skip
def test_views_of_an_array_say_whose_memory_they_share(make):
    """Code that may overwrite its copy of an array looks at ``base``: without it the caller's array was changed."""
    x = np.arange(3.0)
    bases = []
    grad(lambda zero: bases.append(make(x).base) or zero)(0.0)
    assert bases[0] is x
