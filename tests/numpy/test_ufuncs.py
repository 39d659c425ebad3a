"""Options and attributes of ufuncs, and the methods reduce, accumulate, reduceat, outer and at of all ufuncs."""

import functools
import inspect
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close, identical

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ReadOnlyError
from funcgrad.numpy.ufuncs import UFUNCS

ALL = {own.__name__: own for own in UFUNCS.values()}
PLAIN = {name: own for name, own in ALL.items() if own.signature is None}
BINARY = {name: own for name, own in PLAIN.items() if own.nin == 2 and own.nout == 1}
INTEGER = {name for name, own in PLAIN.items() if not any(set("dD") & set(t) for t in own.types)}
MATRIX = np.array([[0.7, 0.3, 0.45], [0.25, 0.85, 0.6]])


def arguments(own):
    """Return two rows of arguments at which the ufunc is smooth."""
    first, second = (MATRIX + 1.0, MATRIX[:, ::-1] + 0.07) if own is fnp.arccosh else (MATRIX, MATRIX[:, ::-1] + 0.07)
    if own.__name__ in INTEGER:
        first, second = (first * 20).astype(int), (second * 4).astype(int) + 1
    elif own is fnp.ldexp:
        second = (second * 5).astype(int)
    return [first, second][: own.nin]


def live(own, call):
    """Return ``call`` as a function of the floating arguments of ``own``."""
    args = arguments(own)
    places = [i for i, a in enumerate(args) if a.dtype.kind == "f"]

    def of(*values):
        full = list(args)
        for place, value in zip(places, values, strict=False):
            full[place] = value
        return call(*full)

    return of


def differentiable(own):
    """Return whether ``own`` has a derivative: rounding, comparisons and integer functions have none."""
    value = own(*arguments(own))
    if own.nout > 1 or value.dtype.kind not in "fc":
        return False
    return any(np.any(ct) for ct in vjp(live(own, own), *floats(own))[1](np.ones_like(value)))


def floats(own):
    """Return the arguments that are differentiated."""
    return [a for a in arguments(own) if a.dtype.kind == "f"] or [MATRIX]


SMOOTH = {name: own for name, own in PLAIN.items() if differentiable(own)}


def check_in_all_modes(fun, *args, exact=True, order=2):
    """Check ``fun`` in both modes, in a vmap and to second order, against plain arrays and differences."""
    want = fun(*args)
    rng = np.random.default_rng(0)
    value, pullback = vjp(fun, *args)
    tangents = tuple(rng.normal(size=a.shape) for a in args)
    pushed = jvp(fun, args, tangents)
    for got in (value, pushed[0]):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=0 if exact else 1e-14, atol=0)
    ct = rng.normal(size=np.shape(want))
    pulled = pullback(ct)
    np.testing.assert_allclose(
        sum(np.sum(p * t) for p, t in zip(pulled, tangents, strict=True)),
        np.sum(ct * pushed[1]),
        rtol=1e-11,
        atol=1e-12,
    )
    h = 1e-6
    ahead, behind = ([a + s * h * t for a, t in zip(args, tangents, strict=True)] for s in (1, -1))
    np.testing.assert_allclose(pushed[1], (fun(*ahead) - fun(*behind)) / (2 * h), rtol=1e-6, atol=1e-7)
    in_batch = vmap(fun)(*[np.stack([a, np.flip(a) * 1.01]) for a in args])
    np.testing.assert_allclose(in_batch[0], want, rtol=1e-13)
    np.testing.assert_allclose(in_batch[1], fun(*[np.flip(a) * 1.01 for a in args]), rtol=1e-13)
    if order > 1:
        weighted = grad(lambda *x: fnp.sum(ct * fun(*x)), argnums=tuple(range(len(args))))
        second = jvp(weighted, args, tangents)[1]
        slope = [(a - b) / (2 * h) for a, b in zip(weighted(*ahead), weighted(*behind), strict=True)]
        for got, expected in zip(second, slope, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * (1 + np.max(np.abs(expected), initial=0)))
    return pulled


def by_name(table):
    return pytest.mark.parametrize("own", table.values(), ids=table)


# ---- attributes --------------------------------------------------------------------------------------------


@by_name(ALL)
def test_attributes_match_numpy(own):
    theirs = getattr(np, own.__name__)
    assert own.ufunc is theirs
    for name in ("nin", "nout", "signature"):
        assert getattr(own, name) == getattr(theirs, name)
    if own.signature is None:
        for name in ("nargs", "ntypes", "types", "identity"):
            assert getattr(own, name) == getattr(theirs, name)


@by_name(ALL)
def test_signature_matches_numpy(own):
    parameters = inspect.signature(own).parameters
    names = ["where"] if own.signature is None else []
    names += ["casting", "order", "dtype", "subok", "signature"]
    names += [] if own.signature is None else ["axes", "axis", "keepdims"]
    assert list(parameters)[own.nin :] == ["out", *names]
    assert ">>> " in own.__doc__
    assert own.__module__.startswith("funcgrad.numpy.")


@by_name(PLAIN)
def test_ufuncs_and_their_methods_pickle(own):
    assert pickle.loads(pickle.dumps(own)) is own
    method = pickle.loads(pickle.dumps(own.reduce))
    assert method.__self__ is own
    assert list(inspect.signature(own.at).parameters) == ["a", "indices", "b"]


def test_unknown_options_raise():
    for call in (lambda x: fnp.sin(x, whre=True), lambda x: fnp.add(x, x, axis=0), lambda x: fnp.matmul(x, x, where=x)):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            grad(lambda x, call=call: fnp.sum(call(x)))(np.eye(2))


# ---- options -----------------------------------------------------------------------------------------------


@by_name(PLAIN)
def test_options_on_plain_arrays_match_numpy(own):
    args, theirs = arguments(own), own.ufunc
    mask = np.array([True, False, True])
    for make in (np.zeros, np.ones):
        want = [make((2, 3), r.dtype) for r in _tuple(theirs(*args))]
        got = [np.array(w) for w in want]
        returned = _tuple(own(*args, out=tuple(got), where=mask))
        theirs(*args, out=tuple(want), where=mask)
        for g, w, r in zip(got, want, returned, strict=True):
            assert r is g
            identical(g, w)
    identical(own(*args, order="F", subok=False), theirs(*args, order="F", subok=False))


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("face", ["funcgrad", "numpy", "positional", "tuple"])
@by_name(PLAIN)
def test_out_on_traced_values(own, face):
    """``out`` receives the result with its derivative, and the function returns ``out``."""
    theirs, args = own.ufunc, arguments(own)
    want = _tuple(theirs(*args))

    def fun(*x):
        outs = tuple(fnp.empty((2, 3), w.dtype) for w in want)
        if face == "positional":
            made = own(*x, *outs)
        elif face == "tuple" or own.nout > 1:
            made = (own if face == "funcgrad" else theirs)(*x, out=outs)
        else:
            made = (own if face == "funcgrad" else theirs)(*x, out=outs[0])
        assert all(m is o for m, o in zip(_tuple(made), outs, strict=True))
        return made

    call, plain, primals = live(own, fun), live(own, own), tuple(floats(own))
    tangents = tuple(np.cos(p) for p in primals)
    got, expected = jvp(call, primals, tangents), jvp(plain, primals, tangents)
    identical(_tuple(got[0]), want)
    identical(_tuple(got[1]), _tuple(expected[1]))
    cts = tuple(np.ones_like(w) if w.dtype.kind == "f" else np.zeros(w.shape, jax.dtypes.float0) for w in want)
    cts = cts if own.nout > 1 else cts[0]
    (value, pullback), (_, reference) = vjp(call, *primals), vjp(plain, *primals)
    identical(_tuple(value), want)
    identical(pullback(cts), reference(cts))
    batched = vmap(call)(*[np.stack([p, p]) for p in primals])
    for b, w in zip(_tuple(batched), want, strict=True):
        np.testing.assert_allclose(b[1], w, rtol=1e-14)


@by_name({name: own for name, own in SMOOTH.items() if own is not fnp.heaviside})
def test_where_with_out(own):
    """Entries that are not selected keep their value and derivative, and add nothing to the arguments' cotangents."""
    mask = np.array([[True, False, True], [False, True, True]])
    theirs = own.ufunc

    def fun(face):
        def call(*args):
            out = fnp.copy(args[0]) if own is not fnp.ldexp else args[0] * 1.0
            return face(*args, out=out, where=mask)

        return live(own, call)

    primals = tuple(floats(own))
    for face in (own, theirs):
        check_in_all_modes(fun(face), *primals)
    # where the mask is False, the arguments may have any value
    wild = [np.where(mask, a, -1e300).astype(a.dtype) if a.dtype.kind == "f" else a for a in arguments(own)]
    keep = [i for i, a in enumerate(wild) if a.dtype.kind == "f"]

    def of(*values):
        full = list(wild)
        for place, value in zip(keep, values, strict=True):
            full[place] = value
        return own(*full, out=fnp.zeros((2, 3)), where=mask)

    with np.errstate(all="raise"):
        value, pullback = vjp(of, *[wild[i] for i in keep])
        pulled = pullback(np.ones((2, 3)))
    _, reference = vjp(live(own, own), *primals)
    identical(value, np.where(mask, theirs(*arguments(own)), 0.0))
    for got, want in zip(pulled, reference(np.where(mask, 1.0, 0.0)), strict=True):
        np.testing.assert_array_equal(got, np.where(mask, want, 0.0))


def test_where_differs_between_examples():
    def fun(x):
        return np.divide(1.0, x, out=fnp.zeros(3), where=x != 0)

    x = np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
    np.testing.assert_array_equal(vmap(fun)(x), [[1.0, 0.0, 0.5], [0.0, 0.25, 0.0]])
    got = vmap(grad(lambda x: fun(x).sum()))(x)
    np.testing.assert_array_equal(got, [[-1.0, 0.0, -0.25], [0.0, -0.0625, 0.0]])
    for row in x:
        second = np.diag(hessian(lambda x: fun(x).sum())(row))
        np.testing.assert_array_equal(second, [2 / v**3 if v else 0 for v in row])


def test_python_number_with_narrow_array_keeps_dtype():
    x = np.array([1.0, 2.0], np.float32)
    seen = []

    def fun(x):
        out = fnp.divide(1.0, x, out=fnp.zeros(2, np.float32), where=[True, False])
        seen.append(out.dtype)
        return out.sum()

    assert grad(fun)(x).dtype == np.float32
    assert seen == [np.float32]


def test_nonboolean_where_raises():
    with pytest.raises(TypeError, match="where= must be booleans"):
        grad(lambda x: fnp.sin(x, out=fnp.zeros(2), where=np.ones(2)).sum())(np.ones(2))


def test_where_without_out_raises():
    for call in (lambda x: fnp.log(x, where=x > 1), lambda x: np.log(x, where=x > 1)):
        with pytest.raises(InputError, match=r"^log: where= without out= .* Give out=, an array"):
            grad(lambda x, call=call: call(x).sum())(np.ones(2))


@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"dtype": np.float32}, np.float32),
        ({"signature": "dd->d"}, np.float64),
        ({"signature": "ff->f"}, np.float32),
        ({"sig": "ff->f"}, np.float32),
        ({"signature": (None, None, np.float32)}, np.float32),
        ({"dtype": complex}, np.complex128),
        ({"casting": "no"}, np.float64),
        ({"dtype": np.float32, "casting": "unsafe"}, np.float32),
    ],
)
def test_dtype_signature_and_casting(options, dtype):
    x = np.array([0.1, 0.2, 0.3])
    for face in (fnp.multiply, np.multiply):
        value, pullback = vjp(lambda x, face=face: face(x, x, **options), x)
        identical(value, np.multiply(x, x, **options))
        assert value.dtype == dtype
        (ct,) = pullback(np.ones_like(value))
        assert ct.dtype == np.float64
        np.testing.assert_allclose(ct, 2 * x, rtol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": np.float32, "casting": "no"},
        {"signature": "bb->b"},
        {"dtype": float, "signature": "dd->d"},
        {"dtype": "S3"},
    ],
)
def test_invalid_dtypes_raise_as_numpy(options):
    x = np.ones(2)
    with pytest.raises(TypeError):
        np.add(x, x, **options)
    with pytest.raises(TypeError):
        grad(lambda x: fnp.add(x, x, **options).sum())(x)


def test_signature_of_wrong_length_raises():
    with pytest.raises(ValueError, match="a signature has a dtype for each of 2 arguments and 1 results"):
        grad(lambda x: fnp.add(x, x, signature="d->d").sum())(np.ones(2))


# ---- functions of vectors and matrices ---------------------------------------------------------------------


A, B, V = (np.random.default_rng(i).normal(size=s) for i, s in enumerate([(2, 3, 4), (2, 4, 3), (2, 4)]))
AXES = {
    "matmul": lambda xp: lambda a, b: xp.matmul(a, b, axes=[(0, 1), (2, 0), (1, 2)]),
    "matmul default": lambda xp: lambda a, b: xp.matmul(a, b, axes=[(-2, -1), (-2, -1), (-2, -1)]),
    "matmul dtype": lambda xp: lambda a, b: xp.matmul(a, b, dtype=float, casting="safe"),
    "vecdot": lambda xp: lambda a, b: xp.vecdot(a, b.transpose(0, 2, 1), axis=1),
    "vecdot keepdims": lambda xp: lambda a, b: xp.vecdot(a, b.transpose(0, 2, 1), axis=0, keepdims=True),
    "vecdot last": lambda xp: lambda a, b: xp.vecdot(a, b.transpose(0, 2, 1), keepdims=True),
    "vecdot axes": lambda xp: lambda a, b: xp.vecdot(a, b, axes=[(1,), (2,), ()]),
    "vecdot two axes": lambda xp: lambda a, b: xp.vecdot(a, b, axes=[1, 2]),
    "matvec": lambda xp: lambda a, b: xp.matvec(a, b[..., 0], axes=[(-2, -1), 1, 0]),
    "vecmat": lambda xp: lambda a, b: xp.vecmat(b[..., 0], a, axes=[1, (2, 1), 0]),
}


@pytest.mark.parametrize("make", AXES.values(), ids=AXES)
def test_axes_argument_of_matmul(make):
    want = make(np)(A, B)
    for xp in (np, fnp):
        fun = make(xp)
        value, _ = vjp(fun, A, B)
        np.testing.assert_allclose(value, want, rtol=1e-13)
        assert value.dtype == want.dtype
    check_in_all_modes(make(fnp), A, B, exact=False)


@pytest.mark.parametrize(("name", "second"), [("matmul", B), ("vecdot", A[0]), ("matvec", V), ("vecmat", A)])
def test_out_argument_of_matmul(name, second):
    first = V[:, :3] if name == "vecmat" else A
    own, theirs = getattr(fnp, name), getattr(np, name)
    want = theirs(first, second)

    def fun(face):
        def call(a, b):
            out = fnp.zeros(want.shape)
            assert face(a, b, out=out) is out
            return out

        return call

    for face in (own, theirs):
        check_in_all_modes(fun(face), first, second, exact=False)
    plain = np.zeros(want.shape)
    assert own(first, second, out=plain) is plain
    identical(plain, want)


def test_invalid_axes_of_matmul_raise():
    for call, error in (
        (lambda x: fnp.matmul(x, x, axis=0), TypeError),
        (lambda x: fnp.matmul(x, x, keepdims=True), TypeError),
        (lambda x: fnp.vecdot(x, x, axis=0, axes=[0, 0]), TypeError),
        (lambda x: fnp.matmul(x, x, axes=[0]), ValueError),
    ):
        with pytest.raises(error):
            grad(lambda x, call=call: fnp.sum(call(x)))(np.eye(2))


# ---- reduce and accumulate ---------------------------------------------------------------------------------


CUBE = np.linspace(0.3, 0.9, 24).reshape(2, 3, 4)[:, ::-1]


def operand(own):
    return (CUBE * 20).astype(int) if own.__name__ in INTEGER else CUBE


def outcome(call):
    """Return NumPy's result, or the error that NumPy raises."""
    try:
        return call(), None
    except (IndexError, TypeError, ValueError) as error:
        return None, error


REDUCTIONS = {
    "first": {},
    "last": {"axis": -1},
    "kept": {"axis": 1, "keepdims": True},
    "two": {"axis": (0, 2)},
    "all": {"axis": None},
    "started": {"axis": 1, "initial": 2},
    "not started": {"axis": 1, "initial": None},
    "masked": {"axis": 1, "initial": 1, "where": np.array([[True], [False], [True]])},
    "masked from nothing": {"axis": 1, "where": np.array([[True], [False], [True]])},
    "narrow": {"dtype": np.float32},
}


@pytest.mark.parametrize("options", REDUCTIONS.values(), ids=REDUCTIONS)
@by_name(BINARY)
def test_reduce_matches_numpy(own, options):
    """Value, shape and dtype are NumPy's; calls that NumPy refuses are refused."""
    x = operand(own)
    want, error = outcome(lambda: own.ufunc.reduce(x, **options))
    if error is not None:
        for run in (lambda: own.reduce(x, **options), lambda: vmap(lambda x: own.reduce(x, **options))(x[None])):
            with pytest.raises((TypeError, ValueError)):
                run()
        return
    identical(own.reduce(x, **options), want)
    if own in (fnp.power, fnp.arctan2) and options == {"axis": -1}:
        # on some processors NumPy 2.4 does not fold these along the last axis, but combines the two ends
        want = functools.reduce(own.ufunc, np.moveaxis(x, -1, 0))
    for face in (own, own.ufunc):
        got = vmap(lambda x, face=face: face.reduce(x, **options))(np.stack([x, x]))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got[1], want, rtol=1e-6 if want.dtype == np.float32 else 1e-13)
        if x.dtype.kind == "f":
            value, _ = vjp(lambda x, face=face: face.reduce(x, **options), x)
            np.testing.assert_allclose(value, want, rtol=1e-6 if want.dtype == np.float32 else 1e-14)
            assert value.dtype == want.dtype
            assert np.shape(value) == np.shape(want)


@pytest.mark.parametrize("along", [0, 1])
@by_name(BINARY)
def test_accumulate_matches_numpy(own, along):
    x = operand(own)
    want, error = outcome(lambda: own.ufunc.accumulate(x, along))
    if error is not None:
        for run in (lambda: own.accumulate(x, along), lambda: vmap(lambda x: own.accumulate(x, along))(x[None])):
            with pytest.raises((TypeError, ValueError)):
                run()
        return
    identical(own.accumulate(x, along), want)
    for face in (own, own.ufunc):
        got = vmap(lambda x, face=face: face.accumulate(x, along))(np.stack([x, x]))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got[1], want, rtol=1e-15)
        if x.dtype.kind == "f":
            value, _ = vjp(lambda x, face=face: face.accumulate(x, along), x)
            assert value.dtype == want.dtype
            np.testing.assert_allclose(value, want, rtol=1e-15)


#: Ufuncs whose reductions are smooth at the sample.
FOLDS = {
    name: own
    for name, own in SMOOTH.items()
    if name in BINARY and name not in ("ldexp", "heaviside", "fmod", "remainder", "copysign", "nextafter")
}


#: NumPy 2.2 makes a double of a Python number beside single precision.
KEEPS_SINGLE = np.power.outer(np.ones(1, np.float32), 2.0).dtype == np.float32


@by_name(FOLDS)
def test_derivatives_of_ufunc_methods(own):
    check_in_all_modes(lambda x: own.reduce(x, axis=1), CUBE, exact=False)
    check_in_all_modes(lambda x: own.ufunc.reduce(x, initial=0.5, where=CUBE > 0.5), CUBE, exact=False)
    check_in_all_modes(lambda x: own.ufunc.accumulate(x, axis=1), CUBE, exact=False)
    check_in_all_modes(lambda x: own.reduceat(x, [0, 2, 1, 1], axis=1), CUBE, exact=False, order=1)
    check_in_all_modes(lambda x, y: own.outer(x, y), CUBE[0, :2, :2], CUBE[1, 0, :2] + 0.01)
    check_in_all_modes(lambda x: own.ufunc.outer(x[0], 2.0), CUBE[0, :2], order=1)
    single = CUBE[0, 0].astype(np.float32)
    for call in (lambda x: own.ufunc.outer(x, 2.0), lambda x: own.outer(3, x)):
        out, pull = vjp(call, single)
        assert out.dtype == call(single).dtype or not KEEPS_SINGLE
        assert pull(np.ones_like(out))[0].dtype == np.float32


JAX = {name: own for name, own in FOLDS.items() if isinstance(getattr(jnp, name, None), jnp.ufunc)}


@by_name(JAX)
def test_ufunc_methods_match_jax(own):
    theirs = getattr(jnp, own.__name__)
    x, row = CUBE[0, :3, :3], CUBE[1, 0, :3]
    calls = {
        "reduce": lambda u, x: u.reduce(x, axis=1),
        "accumulate": lambda u, x: u.accumulate(x, axis=1),
        "outer": lambda u, x: u.outer(x, row + 0.001),
        "reduceat": lambda u, x: u.reduceat(x, np.array([0, 2])),
    }
    for name, call in calls.items():
        if name == "reduceat" and own is not fnp.add:  # JAX has reduceat of sums only
            continue
        want, pull = jax.vjp(lambda x, call=call: call(theirs, x), jnp.asarray(x))
        ct = np.cos(np.arange(want.size).reshape(want.shape))
        got, pullback = vjp(lambda x, call=call: call(own, x), x)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(pullback(ct)[0], pull(jnp.asarray(ct))[0], rtol=1e-9, atol=1e-12)


def test_ufunc_methods_on_jax_arrays_compile():
    for own in (fnp.subtract, fnp.logaddexp, fnp.add):
        for call in (
            lambda x, own=own: own.reduce(x, axis=0),
            lambda x, own=own: own.accumulate(x, axis=1),
            lambda x, own=own: own.outer(x[0], x[1]),
            lambda x, own=own: own.reduceat(x, [0, 1], axis=1),
        ):
            want = grad(lambda x, call=call: call(x).sum())(MATRIX)
            got = jax.jit(grad(lambda x, call=call: call(x).sum()))(jnp.asarray(MATRIX))
            np.testing.assert_allclose(got, want, rtol=1e-12)
    x = jnp.asarray(MATRIX)
    np.testing.assert_allclose(jax.jit(lambda x: fnp.sin(x, dtype=np.float32))(x), np.sin(MATRIX), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "logaddexp", "hypot", "divide"])
def test_reductions_of_empty_and_single_elements(name):
    own, theirs = getattr(fnp, name), getattr(np, name)
    for x in (np.zeros((0, 2)), np.zeros((2, 0)), np.full((1, 2), 0.5), np.full((1, 2), -0.5), np.full(1, -0.5)):
        for call in (
            lambda u, x: u.reduce(x),
            lambda u, x: u.reduce(x, -1),
            lambda u, x: u.reduce(x, 0, initial=3.0),
            lambda u, x: u.reduce(x, 0, initial=None),
            lambda u, x: u.reduce(x, 0, where=x < 0),
            lambda u, x: u.reduceat(x, [0], axis=x.ndim - 1),
            lambda u, x: u.reduce(x, (), keepdims=True),
            lambda u, x: u.accumulate(x),
            lambda u, x: u.accumulate(x, -1),
            lambda u, x: u.outer(x, x),
        ):
            want, error = outcome(lambda call=call, x=x: call(theirs, x))
            if error is None:
                value, pullback = vjp(lambda x, call=call: call(own, x), x)
                identical(value, want)
                assert pullback(np.ones_like(want))[0].shape == x.shape
            else:
                with pytest.raises(type(error)):
                    vjp(lambda x, call=call: call(own, x), x)


@by_name({name: PLAIN[name] for name in ("sin", "divmod", "modf", "logical_not")})
def test_reduce_of_unsupported_ufunc_raises(own):
    for name in ("reduce", "accumulate"):
        with pytest.raises(ValueError, match="only supported for"):
            getattr(own.ufunc, name)(MATRIX)
        with pytest.raises(ValueError, match="only supported for"):
            vjp(lambda x, name=name: getattr(own, name)(x), MATRIX)
    with pytest.raises(ValueError, match="only supported for"):
        vjp(lambda x: own.reduceat(x, [0]), MATRIX)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract"])
def test_reduce_of_scalar(name):
    for axis in (0, -1, None):
        value, pullback = vjp(lambda x, axis=axis: getattr(fnp, name).reduce(x, axis), 2.5)
        assert value == 2.5
        assert pullback(1.0) == (1.0,)
    with pytest.raises(TypeError, match="cannot accumulate on a scalar"):
        vjp(getattr(fnp, name).accumulate, 2.5)


def test_invalid_axes_raise_as_numpy():
    for call in (
        lambda x: fnp.subtract.reduce(x, axis=(0, 1)),
        lambda x: fnp.subtract.reduce(x, axis=2),
        lambda x: fnp.add.reduce(x, axis=2),
        lambda x: fnp.subtract.accumulate(x, axis=2),
        lambda x: fnp.add.accumulate(x, axis=(0, 1)),
        lambda x: fnp.maximum.reduce(x, where=[True, False, True]),
        lambda x: fnp.subtract.reduce(x, where=[True, False, True]),
    ):
        want, error = outcome(lambda call=call: call(MATRIX))
        assert want is None
        with pytest.raises(type(error)):
            vjp(call, MATRIX)


def test_narrow_integers_accumulate_in_wide_dtype():
    x = np.ones((2, 3), np.int8)
    for call in (
        lambda u, x: u.reduce(x),
        lambda u, x: u.accumulate(x),
        lambda u, x: u.reduceat(x, [0, 1]),
        lambda u, x: u.outer(x, x),
    ):
        for name in ("add", "multiply", "subtract", "maximum"):
            want = call(getattr(np, name), x)
            got = vmap(lambda x, call=call, name=name: call(getattr(fnp, name), x))(np.stack([x, x]))
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got[0], want)


# ---- reduceat ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indices", [[0], [0, 2], [2, 0, 1], [1, 1, 2], np.array([0, 1, 2]), []])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "logaddexp", "logical_xor"])
def test_reduceat(name, indices):
    own, theirs = getattr(fnp, name), getattr(np, name)
    indices = np.array(indices, int) if len(indices) == 0 else indices
    for axis in (0, 1):
        starts = indices if axis else [i % 2 for i in indices] if len(indices) else indices
        want = theirs.reduceat(MATRIX, starts, axis)
        for face in (own, theirs):
            value, _ = vjp(lambda x, face=face, s=starts, axis=axis: face.reduceat(x, s, axis), MATRIX)
            assert value.dtype == want.dtype
            np.testing.assert_allclose(value, want, rtol=1e-14)
    if len(indices) and name != "logical_xor":
        check_in_all_modes(lambda x: own.reduceat(x, indices, 1), MATRIX + 0.01 * CUBE[:, :, 0], exact=False)


def test_reduceat_with_buffer_indices():
    got = grad(lambda x: fnp.add.reduceat(x, fnp.array([0, 2]))[1])(np.arange(4.0))
    assert got.tolist() == [0.0, 0.0, 1.0, 1.0]
    with pytest.raises(IndexError):
        grad(lambda x: fnp.add.reduceat(x, [0, 9]).sum())(np.arange(4.0))
    with pytest.raises(ConcretizationError):
        vmap(fnp.add.reduceat)(np.ones((2, 4)), np.array([[0, 1], [0, 2]]))


# ---- at ----------------------------------------------------------------------------------------------------


INDICES = {
    "one": 1,
    "some": [0, 3],
    "twice": [0, 2, 0, 0, 2],
    "slice": slice(1, None, 2),
    "mask": np.array([True, False, False, True]),
    "negative": np.array([[-1, 0], [3, -1]]),
    "nothing": np.array([], int),
    "all": ...,
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@by_name({n: BINARY[n] for n in ("add", "subtract", "multiply", "divide", "power", "maximum", "hypot", "logaddexp")})
def test_at_of_two_arguments(own, index):
    start = np.array([0.3, 0.5, 0.4, 0.7])
    room = start[index].shape
    y = 0.2 + 0.1 * np.arange(np.prod(room, dtype=int)).reshape(room) + 0.013

    def fun(face):
        def call(x, y):
            a = x.copy() if issubclass(type(x), np.ndarray) else fnp.copy(x)
            assert face.at(a, index, y) is None
            return a

        return call

    for face in (own, own.ufunc):
        check_in_all_modes(fun(face), start, y, exact=own not in (fnp.add, fnp.subtract))
    # here only the added values are traced
    constant = grad(lambda y: _at(own, fnp.full(4, 0.5), index, y).sum())(y)
    np.testing.assert_allclose(constant, grad(lambda y: fun(own)(np.full(4, 0.5) + 0 * y.sum(), y).sum())(y))


def _at(own, a, *rest):
    own.at(a, *rest)
    return a


@by_name({n: SMOOTH[n] for n in SMOOTH if SMOOTH[n].nin == 1})
def test_at_of_one_argument(own):
    start = np.array([1.3, 1.5, 1.2]) if own is fnp.arccosh else np.array([0.3, 0.5, 0.4])
    leaves = (fnp.arccosh, fnp.arccos, fnp.log, fnp.log2, fnp.log10, fnp.rad2deg, fnp.degrees)  # leave their own domain
    index = [0, 2] if own in leaves else [0, 2, 0]

    def fun(x):
        a = x * 1.0
        own.at(a, index)
        return a

    check_in_all_modes(fun, start)


def test_at_matches_jax():
    x, y = np.array([0.3, 0.5, 0.4]), np.array([2.0, 0.5, 3.0])
    for name, index in (("add", np.array([0, 2, 0])), ("multiply", np.array([2, 0, 1]))):  # unique for JAX products
        once = {} if name == "add" else {"unique_indices": True}
        want = jax.vjp(lambda x, y, name=name, i=index, once=once: getattr(x.at[i], name)(y, **once), jnp.asarray(x), y)
        got = vjp(lambda x, y, name=name, i=index: _at(getattr(fnp, name), x * 1.0, i, y), x, y)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
        for g, w in zip(got[1](y), want[1](jnp.asarray(y)), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-12)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum"])
def test_at_with_batched_indices(name):
    own, theirs = getattr(fnp, name), getattr(np, name)
    index = np.array([[0, 1, 0], [2, 2, 2]])
    y = np.array([[2.0, 0.5, 3.0], [1.5, 0.25, 4.0]])

    def fun(i, y):
        a = fnp.ones(3)
        own.at(a, i, y)
        return a

    got = vmap(fun)(index, y)
    slopes = vmap(grad(lambda y, i: (fun(i, y) * np.arange(1.0, 4.0)).sum()))(y, index)
    for row, i, values, slope in zip(got, index, y, slopes, strict=True):
        want = np.ones(3)
        theirs.at(want, i, values)
        np.testing.assert_allclose(row, want)
        expected = grad(lambda y, i=i: (_at(own, fnp.ones(3), i, y) * np.arange(1.0, 4.0)).sum())(values)
        np.testing.assert_allclose(slope, expected)


def test_at_of_several_axes_and_of_views():
    index = (np.array([0, 1, 0]), slice(None, 2))

    def fun(x):
        a = fnp.zeros((2, 3))
        np.add.at(a, index, x[:, None])
        fnp.multiply.at(a.T, [0, 0], 2.0)
        return a

    want = np.zeros((2, 3))
    np.add.at(want, index, np.arange(1.0, 4.0)[:, None])
    np.multiply.at(want.T, [0, 0], 2.0)
    identical(vjp(fun, np.arange(1.0, 4.0))[0], want)
    assert grad(lambda x: fun(x)[0].sum())(np.arange(1.0, 4.0)).tolist() == [5.0, 0.0, 5.0]


def test_at_on_constants_stays_constant():
    def fun(x):
        count = fnp.zeros(3, int)
        np.add.at(count, [0, 0, 2], 1)
        fnp.add.at(count, fnp.array([1]), fnp.array([5]))
        return (x * count).sum()

    assert grad(fun)(np.ones(3)).tolist() == [2.0, 5.0, 1.0]


@pytest.mark.usefixtures("written")
def test_invalid_at_raises():
    outside = np.zeros(3)
    for face in (fnp.add, np.add):
        for transform in (grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: lambda x: vmap(f)(x[None])):
            with pytest.raises(InputError, match=r"at: a traced value cannot be written .* at .*test_ufuncs.py"):
                transform(lambda x, face=face: face.at(outside, 0, x[0]) or x.sum())(np.ones(3))
            with pytest.raises(ReadOnlyError):
                transform(lambda x, face=face: face.at(x, 0, 1.0) or x.sum())(np.ones(3))
    with pytest.raises(InputError, match="results of dtype float64 do not fit"):
        grad(lambda x: fnp.add.at(fnp.zeros(3, int), 0, x[0]) or x.sum())(np.ones(3))
    with pytest.raises(InputError, match="results of dtype complex128 do not fit"):
        grad(lambda x: fnp.multiply.at(x * 1.0, 0, 1j) or x.sum())(np.ones(3))
    with pytest.raises(ValueError, match="the ufunc takes 2 arguments"):
        grad(lambda x: fnp.add.at(x * 1.0, 0) or x.sum())(np.ones(3))
    with pytest.raises(ValueError, match="broadcast"):
        grad(lambda x: fnp.add.at(x * 1.0, [0, 1], np.ones(3)) or x.sum())(np.ones(3))
    with pytest.raises(IndexError):
        grad(lambda x: fnp.add.at(x * 1.0, [7], 1.0) or x.sum())(np.ones(3))
    with pytest.raises(InputError, match="must be an array that can be written to"):
        fnp.add.at(jnp.ones(3), 0, 1.0)
    assert outside.tolist() == [0.0, 0.0, 0.0]


def test_nonnumeric_arrays_raise():
    """With options and in methods as without; NumPy itself would compute with such arrays differently."""
    masked, records = np.ma.array([1.0, 2.0], mask=[False, True]), np.zeros(2, "i4, f8")
    for x in (masked, records, np.array(["a", "b"]), np.array([1, None])):
        for call in (
            lambda x: fnp.add(x, x, dtype=float),
            lambda x: fnp.sin(x, out=np.zeros(2)),
            fnp.add.reduce,
            fnp.add.accumulate,
            lambda x: fnp.add.reduceat(x, [0]),
            lambda x: fnp.add.outer(x, x),
            lambda x: fnp.add.at(x, 0, 1.0),
        ):
            with pytest.raises(InputError):
                call(x)
    with pytest.raises(InputError, match="masked array"):
        fnp.cumsum(masked, out=np.zeros(2))


@pytest.mark.parametrize("operation", [np.fmax, np.fmin], ids=lambda f: f.__name__)
def test_extrema_of_complex_numbers_in_forward_mode(operation):
    x = np.array([1 + 2j, 5 - 1j])
    value, tangent = jvp(lambda x: operation(x, 3.0), (x,), (np.ones(2, complex),))
    np.testing.assert_array_equal(value, operation(x, 3.0))
    np.testing.assert_array_equal(tangent, operation(x, 3.0) == x)


@pytest.mark.parametrize("mask", [np.True_, np.array(True), np.array([True, True]), np.array([True])], ids=repr)
def test_where_of_all_true_needs_no_out(mask):
    x = np.array([0.5, 2.0])
    close(grad(lambda x: fnp.sum(fnp.log(x, where=mask)))(x), 1 / x)
    close(grad(lambda x: fnp.sum(fnp.divide(1.0, x, where=mask)))(x), -1 / x**2)


@pytest.mark.parametrize("mask", [np.array([True, False]), np.array([[True, True], [True, True]])], ids=repr)
def test_where_of_other_masks_needs_out(mask):
    with pytest.raises(InputError, match="where= without out="):
        grad(lambda x: fnp.sum(fnp.log(x, where=mask)))(np.ones(2))


def test_sign_of_infinite_complex_numbers():
    z = np.array([-np.inf, np.inf + 1j, 1j * np.inf, complex(np.inf, np.inf), np.nan + 1j, 3.0 + 4.0j])
    for out, tangent in (jvp(np.sign, (z,), (np.ones(6) + 0j,)), vmap(lambda z: jvp(np.sign, (z,), (1.0 + 0j,)))(z)):
        np.testing.assert_allclose(out, np.sign(z), rtol=1e-15)
        np.testing.assert_allclose(tangent, [0, 0, 0, 0, 0, 0.128 - 0.096j], rtol=1e-14)
    slope = vjp(np.sign, z)[1](np.ones(6) + 0j)[0]
    np.testing.assert_allclose(slope, [0, 0, 0, 0, 0, 0.128 + 0.096j], rtol=1e-14)


def test_outer_needs_two_arguments():
    for run in (lambda x: fnp.sin.outer(x, x), lambda x: vjp(lambda x: fnp.sin.outer(x, x), x)):
        with pytest.raises(ValueError, match="outer product only supported for binary functions"):
            run(np.array([0.5, 2.1]))


def test_classes_of_dtypes():
    single = np.dtypes.Float32DType
    f = lambda x: fnp.subtract(x, 1.0, dtype=single) * fnp.astype(x, single)
    value, slope = jvp(f, (3.0,), (1.0,))
    assert (value, value.dtype, slope) == (6.0, np.float32, 5.0)
    assert grad(lambda x: fnp.multiply(x, x, signature=(np.dtypes.Float64DType,) * 3))(3.0) == 6.0


COMPLEX = {name: own for name, own in PLAIN.items() if any("D" in types for types in own.types)}


@pytest.mark.parametrize(
    ("own", "imaginary"),
    [
        *(pytest.param(own, 0.0, id=f"{name}-real") for name, own in PLAIN.items()),
        *(pytest.param(own, 0.3j, id=f"{name}-complex") for name, own in COMPLEX.items()),
    ],
)
def test_lists_of_traced_numbers_have_the_derivatives_of_arrays(own, imaginary):
    theirs = getattr(np, own.__name__)
    rows = [x + imaginary * (x + 1.0) if imaginary else x for x in arguments(own)]

    def total(t, as_given):
        moved = [x if x.dtype.kind == "i" else x + t * (x * 0.5 + 0.1) for x in rows]
        out = theirs(*[as_given(x) for x in moved])
        parts = [fnp.asarray(part) for part in (out if isinstance(out, tuple) else (out,))]
        return sum(fnp.sum(fnp.real(p) * 1.0) + fnp.sum(fnp.imag(p) * 0.5) for p in parts)

    nested = lambda x: [list(row) for row in x] if x.dtype.kind != "i" else x
    for as_given in (nested, lambda x: tuple(map(tuple, nested(x))) if x.dtype.kind != "i" else x):
        close(grad(total)(0.0, as_given), grad(total)(0.0, lambda x: x))
        close(
            jvp(lambda t, g=as_given: total(t, g), (0.0,), (1.0,))[1],
            jvp(lambda t: total(t, lambda x: x), (0.0,), (1.0,))[1],
        )
