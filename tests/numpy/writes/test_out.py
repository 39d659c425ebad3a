"""``out=``: every NumPy function that has it writes into arrays that the transformed function made."""

import inspect
import operator
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from helpers import identical

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, vjp, vmap
from funcgrad.errors import InputError, NotDifferentiableError, ReadOnlyError
from funcgrad.writable import is_buffer

X = np.array([[0.7, -0.3, 0.45], [0.25, -0.85, 0.6]])
SQUARE = X[:, :2] @ X[:, :2].T + np.diag([0.3, 0.9])
HOLES = np.where(X > 0.65, np.nan, X)
PICK = np.array([[0, 1, 1], [1, 0, 1]])
COMPLEX = X + 1j * X[::-1]

#: Calls ``f(x, out=...)`` of each function: positional arguments with ``...`` for the traced array, and keywords.
CALLS = {
    "all": [((..., 0), {})],
    "amax": [((..., 1), {})],
    "amin": [((..., 0), {"keepdims": True})],
    "any": [((..., 1), {"keepdims": True})],
    "argmax": [((..., 1), {}), ((..., 0), {"keepdims": True})],
    "argmin": [((..., 0), {})],
    "around": [((..., 1), {})],
    "choose": [((PICK, ...), {}), ((PICK + 2, ...), {"mode": "wrap"})],
    "clip": [
        ((..., -0.1, 0.5), {}),
        ((..., None, 0.5), {}),
        ((..., -0.1, None), {}),
        ((...,), {"min": -0.1, "max": X + 0.01}),
        ((..., None, None), {}),
    ],
    "compress": [(([False, True, True], ..., 1), {})],
    "concat": [(((..., X), 1), {})],
    "concatenate": [((([X, ...]), 0), {}), (((..., X), None), {})],
    "cumprod": [((..., 1), {}), ((...,), {})],
    "cumsum": [((..., 0), {}), ((...,), {"dtype": np.float64})],
    "cumulative_prod": [((...,), {"axis": 1, "include_initial": True})],
    "cumulative_sum": [((...,), {"axis": 0})],
    "dot": [((..., X.T), {}), ((X.T, ...), {})],
    "einsum": [(("ij,kj->ik", ..., X), {}), (("ij->j", ...), {"optimize": True})],
    "fft.fft": [((..., 4), {})],
    "fft.fft2": [((...,), {})],
    "fft.fftn": [((...,), {"axes": (0,)})],
    "fft.hfft": [((...,), {"norm": "ortho"})],
    "fft.ifft": [((...,), {"axis": 0})],
    "fft.ifft2": [((...,), {})],
    "fft.ifftn": [((...,), {})],
    "fft.ihfft": [((...,), {})],
    "fft.irfft": [((..., 5), {})],
    "fft.irfft2": [((...,), {})],
    "fft.irfftn": [((...,), {})],
    "fft.rfft": [((...,), {})],
    "fft.rfft2": [((...,), {})],
    "fft.rfftn": [((...,), {})],
    "fix": [((...,), {})],
    "isneginf": [((...,), {})],
    "isposinf": [((...,), {})],
    "linalg.multi_dot": [(([..., X.T, X],), {})],
    "max": [((..., 0), {"initial": 0.5, "where": X < 0.4})],
    "mean": [((..., 1), {}), ((..., 0), {"where": X > -0.8, "keepdims": True})],
    "median": [((..., 1), {})],
    "min": [((..., (0, 1)), {"keepdims": True})],
    "nanargmax": [((..., 1), {})],
    "nanargmin": [((..., 0), {})],
    "nancumprod": [((..., 1), {})],
    "nancumsum": [((..., 0), {})],
    "nanmax": [((..., 1), {})],
    "nanmean": [((..., 1), {})],
    "nanmedian": [((..., 1), {})],
    "nanmin": [((..., 1), {"keepdims": True})],
    "nanpercentile": [((..., 30, 1), {})],
    "nanprod": [((..., 1), {})],
    "nanquantile": [((..., [0.2, 0.6], 1), {})],
    "nanstd": [((..., 1), {"ddof": 0.5})],
    "nansum": [((..., 1), {"initial": 2.0})],
    "nanvar": [((..., 1), {})],
    "outer": [((..., X[0]), {})],
    "percentile": [((..., [30, 60], 1), {"method": "median_unbiased"})],
    "prod": [((..., 0), {}), ((..., 1), {"initial": 2.0, "where": X > -0.8})],
    "ptp": [((..., 1), {})],
    "quantile": [((..., 0.3, 0), {"keepdims": True})],
    "round": [((...,), {"decimals": 1})],
    "stack": [(((..., X), 1), {})],
    "std": [((..., 1), {}), ((..., 0), {"correction": 0.5, "keepdims": True})],
    "sum": [((..., 0), {}), ((..., 1), {"initial": 2.0, "where": X > 0}), ((...,), {"axis": 1, "keepdims": True})],
    "take": [((..., [2, 0], 1), {}), ((..., [7, -1]), {"mode": "wrap"})],
    "trace": [((np.array([[...]], object), 1, 1, 2), {})],
    "var": [((..., 1), {"ddof": 1}), ((..., 0), {"where": X > -0.8})],
}
CASES = [pytest.param(name, *call, id=f"{name}-{i}") for name, calls in CALLS.items() for i, call in enumerate(calls)]


def look_up(namespace, name):
    return operator.attrgetter(name)(namespace)


def public(prefix, own):
    for name in own.__all__:
        function = getattr(own, name)
        if callable(function) and not isinstance(function, (type, types.ModuleType)):
            yield prefix + name, function


def test_functions_have_out_like_numpy():
    """``out`` is at NumPy's position, and the tests below use it; ufuncs have separate tests."""
    found = set()
    for prefix, own in (("", fnp), ("linalg.", fnp.linalg), ("fft.", fnp.fft)):
        for name, function in public(prefix, own):
            try:
                theirs = inspect.signature(look_up(np, name)).parameters
            except (AttributeError, TypeError, ValueError):
                continue
            if "out" in theirs and not isinstance(look_up(np, name), np.ufunc):
                found.add(name)
                mine = inspect.signature(function).parameters
                assert "out" in mine, name
                if theirs["out"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                    assert list(mine).index("out") == list(theirs).index("out"), name
    assert found - set(CALLS) == set()
    assert len(found) > 50


def sample(name):
    if name.startswith("nan"):
        return HOLES
    if name == "trace":
        return np.stack([SQUARE, X[:, :2]])
    return COMPLEX if (name.startswith("fft.i") and "ih" not in name) or name == "fft.hfft" else X


def filled(args, x):
    """Return ``args`` with ``x`` in place of ``...``."""
    if isinstance(args, np.ndarray) and args.dtype == object:
        return x
    if isinstance(args, (tuple, list)):
        return type(args)([filled(a, x) for a in args])
    return x if args is ... else args


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_out_with_plain_arrays_matches_numpy(name, args, kwargs):
    x = sample(name)
    want = np.asarray(look_up(np, name)(*filled(args, x), **kwargs))
    out = np.zeros(want.shape, want.dtype)
    given = np.zeros(want.shape, want.dtype)
    assert look_up(fnp, name)(*filled(args, x), **kwargs, out=out) is out
    if look_up(np, name)(*filled(args, x), **kwargs, out=given) is given:
        identical(out, given)
    else:  # NumPy 2.4 ignores ``out`` here
        assert name in ("fft.hfft", "fft.ifft2", "fft.irfft2")
        identical(out, want)


@pytest.mark.parametrize("face", [fnp, np], ids=["funcgrad", "numpy"])
@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_out_with_traced_values(name, args, kwargs, face):
    """Value, both derivatives and vmap equal those without ``out``, and the function returns ``out``."""
    x = sample(name)
    like = np.asarray(look_up(fnp, name)(*filled(args, x), **kwargs))

    def into(x):
        out = fnp.full((2, *like.shape), 7, like.dtype)
        part = out[1]
        assert look_up(face, name)(*filled(args, x), **kwargs, out=part) is part
        return out  # the array was written to through its view

    def plain(x):
        return look_up(fnp, name)(*filled(args, x), **kwargs)

    tangent = np.cos(x)
    got, want = jvp(into, (x,), (tangent,)), jvp(plain, (x,), (tangent,))
    identical(got[0][1], np.asarray(want[0]))
    assert np.all(got[0][0] == np.array(7, like.dtype))
    batched = vmap(into)(np.stack([x, x]))
    np.testing.assert_allclose(batched[1][1], want[0], rtol=1e-13)
    if like.dtype.kind in "fc":
        identical(got[1][1], np.asarray(want[1]))
        ct = np.sin(np.arange(1.0, 1.0 + like.size)).reshape(like.shape).astype(like.dtype)
        pulled = vjp(into, x)[1](np.stack([ct, ct]))[0]
        np.testing.assert_allclose(pulled, vjp(plain, x)[1](ct if ct.shape else ct[()])[0], rtol=1e-14)


METHODS = ("all", "any", "argmax", "argmin", "clip", "cumprod", "cumsum", "max", "mean", "min", "prod", "round", "std")


@pytest.mark.parametrize("name", [*METHODS, "sum", "var", "take", "dot", "compress", "choose", "trace"])
def test_methods_with_out(name):
    args = {
        "clip": (-0.1, 0.5),
        "round": (1,),
        "take": ([1, 0],),
        "dot": (X.T,),
        "compress": ([True, False],),
        "choose": ([X, 2 * X],),
        "trace": (),
    }.get(name, (0,))
    start = PICK if name == "choose" else X
    want = getattr(start, name)(*args)
    kinds = (
        (vmap(lambda x: getattr(x, name)(*args, out=fnp.zeros((1, *np.shape(want)), want.dtype)[0])), start[None])
        if np.shape(want)
        else None
    )
    if kinds is not None:
        np.testing.assert_allclose(kinds[0](kinds[1])[0], want)
    if start is X and want.dtype.kind == "f" and np.shape(want):
        got = grad(lambda x: getattr(x, name)(*args, out=fnp.zeros(want.shape)).sum())(X)
        np.testing.assert_allclose(got, grad(lambda x: getattr(x, name)(*args).sum())(X))


# ---- dtypes and shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod", "max", "var", "median"])
@pytest.mark.parametrize(("have", "to"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_out_with_other_precision(name, have, to):
    """Sums are accumulated in the dtype of ``out``, as in NumPy."""
    x = (np.arange(1, 7).reshape(2, 3) / np.float32(7)).astype(have)
    own, theirs = getattr(fnp, name), getattr(np, name)
    want = theirs(x, 1, out=np.zeros(np.shape(theirs(x, 1)), to))
    seen = []

    def fun(x):
        seen.append(own(x, 1, out=fnp.zeros(want.shape, to)))
        return seen[0].sum()

    assert grad(fun)(x).dtype == have
    assert seen[0].dtype == to
    rtol = 1e-6 if name in ("var", "median", "max", "mean") else 1e-15  # these round in between, as NumPy's mean does
    np.testing.assert_allclose(vjp(lambda x: own(x, 1, out=fnp.zeros(want.shape, to)), x)[0], want, rtol=rtol)


def test_out_may_be_complex_or_broadcast():
    def fun(x):
        out = fnp.zeros((2, 3), complex)
        np.multiply(x, 2.0, out=out)
        return (out * (1 + 2j)).real.sum()

    np.testing.assert_array_equal(grad(fun)(X[0]), [4.0, 4.0, 4.0])
    assert np.add(X[0], 1.0, out=np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add(x, 1, out=fnp.zeros(2)),
        lambda x: np.add(x, 1, out=fnp.zeros((3, 1))),
        lambda x: np.sum(x, out=fnp.zeros(2)),
        lambda x: np.cumsum(x, out=fnp.zeros((1, 3))),
        lambda x: np.add.reduce(x, out=fnp.zeros(3)),
        lambda x: np.add.accumulate(x, out=fnp.zeros(2)),
        lambda x: fnp.matmul(x[None], x[:, None], out=fnp.zeros(2)),
        lambda x: fnp.divmod(x, 2.0, out=(fnp.zeros(3),)),
    ],
)
def test_out_with_wrong_shape_raises(call):
    for run in (vjp, lambda f, x: jvp(f, (x,), (x,)), lambda f, x: f(x)):
        with pytest.raises(ValueError, match=r"out|shape|dimension"):
            run(call, X[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add(x, 1, out=fnp.zeros(3, int)),
        lambda x: fnp.sqrt(x, out=fnp.zeros(3, bool)),
        lambda x: np.multiply(x, 1j, out=fnp.zeros(3)),
        lambda x: np.cumsum(x, out=fnp.zeros(3, int)),
        lambda x: np.add.accumulate(x, out=fnp.zeros(3, int)),
        lambda x: np.add(x, 1, out=fnp.zeros(3, np.float32), casting="safe"),
        lambda x: fnp.concatenate([x, x], out=fnp.zeros(6, np.float32), casting="safe"),
    ],
)
def test_out_with_wrong_kind_raises(call):
    with pytest.raises(
        InputError, match=r"does not fit the dtype of out by casting='(same_kind|safe)', got .*Make out"
    ):
        grad(lambda x: fnp.sum(call(fnp.abs(x)).real))(X[0])


def test_out_with_unsafe_casting_to_integers():
    value = jvp(lambda x: np.multiply(x, 10, out=fnp.zeros(3, int), casting="unsafe"), (X[0],), (X[0],))
    assert value[0].tolist() == [7, -3, 4]


def test_joins_with_dtype_and_out_raise():
    for join in (fnp.concatenate, fnp.stack):
        with pytest.raises(TypeError, match="only takes `out` or `dtype`"):
            grad(lambda x, join=join: join([x, x], out=fnp.zeros(6), dtype=float).sum())(X[0])


# ---- what cannot be written to -----------------------------------------------------------------------------


PLAIN_OUT = {
    "add": lambda x: np.add(x, 1.0, out=np.zeros(3)),
    "sin": lambda x: fnp.sin(x, np.zeros(3)),
    "add.reduce": lambda x: np.add.reduce(x[None], out=np.zeros(3)),
    "add.accumulate": lambda x: np.add.accumulate(x, out=np.zeros(3)),
    "multiply.outer": lambda x: np.multiply.outer(x, x, out=np.zeros((3, 3))),
    "add.reduceat": lambda x: fnp.add.reduceat(x, [0, 1], out=np.zeros(2)),
    "divmod": lambda x: np.divmod(x, 1.0, out=(None, np.zeros(3))),
    "add +=": lambda x: operator.iadd(np.zeros(3), x),
    "matmul": lambda x: operator.imatmul(np.eye(3), x[:, None] * x),
    "divide": lambda x: np.divide(1.0, x, out=np.zeros(3), where=[True, False, True]),
    "cumsum": lambda x: np.cumsum(x, out=np.zeros(3)),
    "clip": lambda x: fnp.minimum(x, 1, out=np.zeros(3)),
    "stack": lambda x: np.stack([x, x], out=np.zeros((2, 3))),
    "fft": lambda x: np.fft.fft(x, out=np.zeros(3, complex)),
}


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", PLAIN_OUT)
def test_ndarray_out_for_traced_value_raises(name):
    fun = PLAIN_OUT[name]
    line = inspect.getsourcelines(fun)[1]
    for run in (lambda: vjp(fun, X[0]), lambda: jvp(fun, (X[0],), (X[0],)), lambda: vmap(fun)(X)):
        with pytest.raises(InputError) as caught:
            run()
        message = str(caught.value)
        assert message.startswith({"clip": "minimum"}.get(name, name.split(" ")[0]))
        for part in (
            "a traced value cannot be written into an array of NumPy, got out=",
            "Make the array with funcgrad.numpy.zeros, empty or copy (not numpy's), inside",
            f"{__file__}:{line}",
        ):
            assert part in message


@pytest.mark.usefixtures("written")
def test_zero_dimensional_out():
    """Arrays without axes can be written to; numbers cannot."""

    def fun(x):
        total = fnp.zeros(())
        assert np.sum(x, out=total) is total
        np.add(total, 1.0, out=total)
        np.multiply(total, total, out=total, where=True)
        return total * x[0]

    x = X[0]
    want = (x.sum() + 1) ** 2 + 2 * (x.sum() + 1) * x[0]
    np.testing.assert_allclose(grad(fun)(x), [want, want - (x.sum() + 1) ** 2, want - (x.sum() + 1) ** 2])
    with pytest.raises(ReadOnlyError, match="a number cannot be written to"):
        grad(lambda x: np.add(x, 1, out=x.sum()))(x)
    with pytest.raises(InputError, match="An array without axes is no more than a number: use the result"):
        grad(lambda x: np.sum(x, out=np.zeros(())))(x)


def test_ndarray_out_for_constants():
    out, total = np.zeros(3), np.zeros((1, 3))

    def fun(x):
        np.add(fnp.ones(3), 1.0, out=out)
        np.sum(fnp.ones((2, 3)), 0, out=total[0])
        np.argmax(x[None], 1, out=places)
        return (x * out).sum()

    places = np.zeros(1, int)
    assert grad(fun)(X[0]).tolist() == [2.0, 2.0, 2.0]
    assert total.tolist() == [[2.0, 2.0, 2.0]]
    assert places.tolist() == [0]


def test_argument_as_out_raises():
    for call in (
        lambda x: np.sin(x, out=x),
        lambda x: fnp.add(x, 1, x),
        lambda x: np.cumsum(x, out=x),
        lambda x: np.sin(x[:2], out=x[:2]),
        lambda x: fnp.clip(x, 0, 1, out=x),
        lambda x: np.sin(x, out=x, where=[True, False, False]),
    ):
        for run in (vjp, lambda f, x: jvp(f, (x,), (x,)), lambda f, x: vmap(f)(x[None])):
            with pytest.raises(ReadOnlyError):
                run(call, X[0])


def test_nonarray_out_raises():
    for out in ([0.0], 3.0, jnp.zeros(3)):
        with pytest.raises(InputError, match="out must be an array that can be written to"):
            grad(lambda x, out=out: fnp.sin(x, out=out).sum())(X[0])
        with pytest.raises(TypeError):
            fnp.sin(X[0], out=out)
    with pytest.raises(InputError, match="sum: a traced value cannot be written"):
        fnp.sum(jnp.ones((2, 3)), 0, out=np.zeros(3))


# ---- programs ----------------------------------------------------------------------------------------------


def test_out_is_also_an_operand():
    def fun(x):
        a = fnp.copy(x)
        b = a[::-1]
        np.multiply(a, b, out=a)
        np.sin(a, out=b)
        np.add(a, x, out=a)
        np.cumsum(a, out=a)
        a += np.exp(x)
        return a

    def plain(x):
        y = x * x[::-1]
        y = fnp.sin(y)[::-1] + x
        return fnp.cumsum(y) + fnp.exp(x)

    for x in X:
        np.testing.assert_array_equal(fun(x), plain(x))
        got, want = vjp(fun, x), vjp(plain, x)
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_allclose(got[1](x)[0], want[1](x)[0], rtol=1e-14)
        second = jvp(grad(lambda x: (fun(x) ** 2).sum()), (x,), (x,))[1]
        np.testing.assert_allclose(second, jvp(grad(lambda x: (plain(x) ** 2).sum()), (x,), (x,))[1], rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(lambda x: fun(x).sum()))(X), [grad(lambda x: plain(x).sum())(x) for x in X])


def test_loops_with_scratch_arrays():
    """Use scratch arrays that every step overwrites, the usual way to save memory in NumPy."""

    def leapfrog(x, np):
        v, force = np.zeros(3), np.empty(3)
        x = x.copy()
        for _ in range(4):
            np.multiply(x, x, out=force)
            np.subtract(force, 1.0, out=force)
            np.negative(force, out=force)
            np.add(v, force * 0.1, out=v)
            x += v * 0.1
        return x

    want = leapfrog(X[0], np)
    value, pullback = vjp(lambda x: leapfrog(x, fnp), X[0])
    np.testing.assert_array_equal(value, want)
    h = 1e-6
    for i in range(3):
        e = np.eye(3)[i] * h
        slope = (leapfrog(X[0] + e, np).sum() - leapfrog(X[0] - e, np).sum()) / (2 * h)
        np.testing.assert_allclose(pullback(np.ones(3))[0][i], slope, rtol=1e-7)


def test_out_on_jax_arrays():
    def fun(x):
        out = fnp.zeros((2, 3))
        np.sin(x, out=out)
        fnp.divide(1.0, x, out=out, where=x > 0)
        fnp.cumsum(out, 1, out=out)
        return fnp.sum(out * x)

    want = grad(fun)(X)
    for run in (grad(fun), jax.jit(grad(fun))):
        np.testing.assert_allclose(run(jnp.asarray(X)), want, rtol=1e-12)


# ---- constants ---------------------------------------------------------------------------------------------


def test_functions_without_a_rule_compute_constants():
    """Arrays made inside a transformed function stay NumPy arrays until a traced value is written to them."""
    seen = []

    def fun(x):
        n = fnp.copy(np.arange(1.0, 4.0))
        a = scipy.special.kolmogorov(n)
        out = fnp.zeros(3)
        assert scipy.special.kolmogorov(n, out=out) is out
        scipy.special.kolmogorov(n, out)
        b = np.is_busday(fnp.copy(np.array(["2024-01-01"], "datetime64[D]")))
        c = np.busday_count("2024-01-01", "2024-02-01", weekmask=fnp.ones(7, int))
        d, e = np.frexp(n)
        f = np.spacing(n)
        total = np.subtract.reduce(n)
        seen.append((a, out, b, c, d, e, f, total))
        return (x * a * out).sum()

    want = scipy.special.kolmogorov(np.arange(1.0, 4.0))
    np.testing.assert_allclose(grad(fun)(X[0]), want * want)
    a, out, b, c, d, e, f, total = seen[0]
    assert is_buffer(out)
    assert all(map(is_buffer, (a, b, d)))
    np.testing.assert_array_equal(a._val, want)
    assert b._val.tolist() == [True]
    assert c == 31
    assert e._val.tolist() == [1, 2, 2]
    np.testing.assert_array_equal(f._val, np.spacing(np.arange(1.0, 4.0)))
    assert total == -4.0
    with pytest.raises(NotDifferentiableError, match="mathieu_a: funcgrad has no rule for it"):
        grad(lambda x: scipy.special.mathieu_a(1, x, out=fnp.zeros(3)).sum())(X[0])


def test_untracked_views_are_read_only():
    def fun(x):
        a = fnp.zeros(4)
        view = np.lib.stride_tricks.as_strided(a, (2,), (8,), subok=False)
        windows = np.lib.stride_tricks.sliding_window_view(a, 2)
        for part in (view, windows):
            if is_buffer(part):
                with pytest.raises(ValueError, match=r"read-only|cannot be written"):
                    part[0] = x[0]
        return x.sum()

    assert grad(fun)(X[0]).tolist() == [1.0, 1.0, 1.0]


def test_buffer_written_with_constants_and_tracers():
    def fun(x):
        a = fnp.zeros((2, 3))
        np.add(fnp.ones(3), 1.0, out=a[0])  # constants, written through a view
        np.multiply(a, 2.0, out=a)
        np.add(x, a[0], out=a[1])
        return (a * a).sum()

    np.testing.assert_allclose(grad(fun)(X[0]), 2 * (X[0] + 4.0))
