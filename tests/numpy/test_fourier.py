"""Fourier transforms: every length and normalization, ignored input, refusals, and cost."""

import itertools
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close
from operations.spec import array

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, jacfwd, jacrev, jvp, linear_transpose, vjp, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.primitives import fourier

same = partial(close, rtol=1e-13, atol=1e-14)

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")
OF_REALS = ("rfft", "ihfft", "rfft2", "rfftn")
NORMS = (None, "backward", "ortho", "forward")


def sample(name, *shape):
    return array(*shape, kind="float" if name in OF_REALS else "complex")


def inner(a, b):
    """Return the real part of ``sum(a * b)``, the pairing of cotangents and tangents."""
    return np.sum(np.real(a * b))


def check_transposed(ours, numpys, x):
    """Check that the value is NumPy's, forward mode the function itself, and reverse mode its transpose."""
    out, pullback = vjp(ours, x)
    same(out, numpys(x))
    assert out.dtype == numpys(x).dtype
    t = x[::-1] * (0.5 + 0.25j if x.dtype.kind == "c" else 0.5)
    pushed = jvp(ours, (x,), (t,))[1]
    same(pushed, numpys(t))
    for turn in (1, 1j) if out.dtype.kind == "c" else (1,):
        ct = np.cos(np.arange(out.size)).reshape(out.shape).astype(out.dtype) * turn
        (pulled,) = pullback(ct)
        assert (pulled.shape, pulled.dtype) == (x.shape, x.dtype)
        np.testing.assert_allclose(inner(pulled, t), inner(ct, pushed), rtol=1e-12)


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfft2", "irfftn"])
def test_real_inverse_of_empty_input_is_zero(name):
    """NumPy 2.4 reads the first entry from memory outside of the array."""
    several = name.endswith(("2", "n"))
    x = np.zeros((2, 0), complex)
    asked = {"s": (2, 3), "axes": (0, 1)} if several else {"n": 3}
    fun = lambda x: getattr(fnp.fft, name)(x, **asked)
    for out in (fun(x), vjp(fun, x)[0], jvp(fun, (x,), (x,))[1], vmap(lambda x: fun(x))(x[None])[0]):
        np.testing.assert_array_equal(out, np.zeros((2, 3)))
    (pulled,) = vjp(fun, x)[1](np.ones((2, 3)))
    assert (pulled.shape, pulled.dtype) == (x.shape, x.dtype)


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfftn"])
def test_scalar_raises_as_numpy(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011, its type is what is compared
        getattr(np.fft, name)(1.0)
    with pytest.raises(theirs.type):
        getattr(fnp.fft, name)(1.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_every_length(name, norm):
    for length, n in itertools.product(range(1, 6), (None, 1, 2, 3, 4, 5, 6, 7)):
        if n is None and length == 1 and name in ("irfft", "hfft"):
            continue  # refused, see the tests below
        check_transposed(
            lambda x, n=n: getattr(fnp.fft, name)(x, n, norm=norm),
            lambda x, n=n: getattr(np.fft, name)(x, n, norm=norm),
            sample(name, length),
        )


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("name", ONE)
def test_every_axis(name, axis):
    check_transposed(
        lambda x: getattr(fnp.fft, name)(x, 3, axis), lambda x: getattr(np.fft, name)(x, 3, axis), sample(name, 2, 3, 4)
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"axes": (0,)},
        {"axes": [2, 0]},
        {"axes": (-1, -3, 1)},
        {"s": (3, 5), "axes": (0, 2)},
        {"s": [-1, 2], "axes": [2, 1]},
        {"axes": (1, 1)},
        {"s": (3, 4), "axes": (2, 2), "norm": "ortho"},
        {"axes": (0, 1, 0), "norm": "forward"},
    ],
)
@pytest.mark.parametrize("name", SEVERAL)
def test_axes_and_lengths(name, arguments):
    check_transposed(
        lambda x: getattr(fnp.fft, name)(x, **arguments),
        lambda x: getattr(np.fft, name)(x, **arguments),
        sample(name, 2, 3, 2),
    )


@pytest.mark.parametrize("name", ["fftn", "irfftn"])
@pytest.mark.parametrize(
    "arguments", [{"s": (2, 4)}, {"s": (None, 4), "axes": (0, 1)}, {"s": (4, None), "axes": (0, 1)}]
)
def test_numpy_deprecations_warn_on_tracers(name, arguments):
    x = sample(name, 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        check_transposed(
            lambda x: getattr(fnp.fft, name)(x, **arguments), lambda x: getattr(np.fft, name)(x, **arguments), x
        )
    for run in (
        lambda: getattr(np.fft, name)(x, **arguments),
        lambda: vjp(lambda x: getattr(fnp.fft, name)(x, **arguments), x),
    ):
        with pytest.warns(DeprecationWarning, match="eprecate"):
            run()


def test_empty_axes_change_nothing():
    x = array(2, 3)
    assert grad(lambda x: fnp.sum(fnp.fft.fftn(x, axes=())))(x).tolist() == np.ones((2, 3)).tolist()
    for name in ("rfftn", "irfftn"):
        with pytest.raises(ShapeError, match=f"{name}: .*got none"):
            vjp(lambda x, name=name: getattr(fnp.fft, name)(x, axes=()), x)


@pytest.mark.parametrize(("n", "real_at"), [(4, (0, 2)), (5, (0,))])
def test_irfft_ignores_imaginary_parts(n, real_at):
    """``irfft`` ignores those of the first entry, and for even n those of the last entry, as JAX does."""
    z = array(3, kind="complex")
    weights = array(n, seed=1)
    ours = grad(lambda z: fnp.sum(fnp.fft.irfft(z, n) * weights))(z)
    assert [k for k in range(3) if ours[k].imag == 0] == list(real_at)
    same(ours, jax.grad(lambda z: jnp.sum(jnp.fft.irfft(z, n) * weights))(z))
    moved = jvp(lambda z: fnp.fft.irfft(z, n), (z,), (np.where(np.isin(range(3), real_at), 1j, 0),))[1]
    assert moved.tolist() == [0.0] * n


def test_shift_theorem():
    """The power spectrum is shift-invariant, and the phase rotates: d/ds fft(x shifted by s) = -i k fft(x)."""
    x = array(8)
    k = 2 * np.pi * np.fft.fftfreq(8)

    def shifted(s):
        return fnp.fft.ifft(fnp.fft.fft(x) * fnp.exp(-1j * k * s)).real

    same(jacfwd(shifted)(0.0), np.fft.ifft(-1j * k * np.fft.fft(x)).real)
    same(jacrev(shifted)(1.0), jacfwd(shifted)(1.0))


def test_parseval():
    x = array(7)
    same(grad(lambda x: fnp.sum(fnp.abs(fnp.fft.fft(x)) ** 2))(x), 2 * 7 * x)
    same(grad(lambda x: fnp.sum(fnp.abs(fnp.fft.rfft(x, norm="ortho")[1:]) ** 2))(x), x - np.mean(x))


def test_higher_orders():
    x = array(5)
    check_grads(lambda x: fnp.fft.irfft(fnp.fft.rfft(x) ** 3, 5), (x,), order=3)
    check_grads(lambda x: fnp.abs(fnp.fft.hfft(fnp.fft.ihfft(x) * (1 + 2j), 4)) ** 2, (x,), order=2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "longdouble", "clongdouble", "int32", "bool"])
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_dtypes(name, dtype):
    dtype = np.dtype(dtype)
    if name == "rfft" and dtype.kind == "c":
        return
    x = (array(4) > 0 if dtype.kind == "b" else array(4) * 2).astype(dtype)
    want = getattr(np.fft, name)(x)
    out, pullback = vjp(getattr(fnp.fft, name), x)
    assert (out.dtype, type(out)) == (want.dtype, type(want))
    (pulled,) = pullback(np.ones_like(out))
    if dtype.kind in "fc":
        assert pulled.dtype == dtype
    assert vmap(getattr(fnp.fft, name))(np.stack([x, x])).dtype == want.dtype


def test_fft_of_half_precision_on_jax_arrays():
    x = jnp.asarray(array(4), jnp.float16)
    assert fnp.fft.rfft(x).dtype == jnp.complex64
    assert grad(lambda x: fnp.sum(fnp.abs(fnp.fft.rfft(x))))(x).dtype == jnp.float16


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "fftshift", "ifftshift"])
def test_numpy_functions_dispatch_on_tracers(name):
    x = sample(name, 3, 3)
    out, pullback = vjp(getattr(np.fft, name), x)
    same(out, getattr(np.fft, name)(x))
    same(pullback(out)[0], vjp(getattr(fnp.fft, name), x)[1](out)[0])


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_fftfreq_dispatches_on_tracers(name):
    for n in (1, 4, 5):
        want = -getattr(np.fft, name)(n) / 0.5**2
        same(jacfwd(lambda d, n=n: getattr(np.fft, name)(n, d))(0.5), want)
        same(jacrev(lambda d, n=n: getattr(fnp.fft, name)(n, d))(0.5), want)
    with pytest.raises(ValueError, match="integer"):
        grad(lambda d: fnp.sum(getattr(fnp.fft, name)(4.0, d)))(0.5)


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1), [1], (1, 1), ()])
def test_shifts(axes):
    for name in ("fftshift", "ifftshift"):
        check_transposed(
            lambda x, name=name: getattr(fnp.fft, name)(x, axes),
            lambda x, name=name: getattr(np.fft, name)(x, axes),
            array(3, 4),
        )


def traced(fun, x):
    return lambda: vjp(fun, x)


REFUSED = [
    ("no data points", lambda fft, x: fft.fft(x, 0), ValueError, "data points"),
    ("no values to infer", lambda fft, x: fft.irfft(x[:1]), ValueError, "data points"),
    ("an unknown norm", lambda fft, x: fft.fft(x, norm="no"), ValueError, "norm"),
    ("an unknown norm turned", lambda fft, x: fft.hfft(x, norm="no"), ValueError, "norm"),
    ("an axis out of range", lambda fft, x: fft.fft(x, axis=1), (ValueError, IndexError), "out of (bounds|range)"),
    ("one length for two axes", lambda fft, x: fft.fftn(x, s=(3,), axes=(0, 0)), ValueError, "different lengths"),
    ("complex numbers", lambda fft, x: fft.rfft(x * 1j), TypeError, "rfft"),
]


@pytest.mark.parametrize(("call", "error", "match"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_invalid_calls_raise_as_numpy(call, error, match):
    x = array(3)
    with pytest.raises(error, match=match):
        call(np.fft, x)
    with pytest.raises(error, match=match):
        vjp(lambda x: call(fnp.fft, x), x)


def test_lists_and_numbers():
    same(fnp.fft.fft([1, 2, 3]), np.fft.fft([1, 2, 3]))
    same(fnp.fft.rfft2([[1, 2], [3, 4]]), np.fft.rfft2([[1, 2], [3, 4]]))
    assert grad(lambda x: fnp.fft.fft([x, 2.0, 3 * x])[1].real)(1.0) == pytest.approx(-0.5)
    with pytest.raises((ValueError, IndexError)):
        fnp.fft.fft(1.0)
    with pytest.raises((ValueError, IndexError)):
        grad(lambda x: fnp.fft.fft(x).real)(1.0)


@pytest.mark.usefixtures("written")
def test_ndarray_as_out_raises():
    with pytest.raises(InputError, match="out"):
        vjp(lambda x: fnp.fft.fft(x, out=np.empty(3, complex)), array(3))


class Counted:
    """Functions of ``numpy.fft`` that count their calls."""

    def __init__(self, monkeypatch):
        self.calls = []
        for name in ("fft", "ifft", "rfft", "irfft"):
            monkeypatch.setattr(np.fft, name, self.counting(name, getattr(np.fft, name)))

    def counting(self, name, fun):
        def counted(*args, **kwargs):
            self.calls.append(name)
            return fun(*args, **kwargs)

        return counted


@pytest.mark.parametrize(
    ("name", "there", "back"),
    [("fft", "fft", "fft"), ("ifft", "ifft", "ifft"), ("rfft", "rfft", "irfft"), ("irfft", "irfft", "rfft")],
)
def test_pullback_costs_one_transform(name, there, back, monkeypatch):
    x = sample(name, 6)
    counted = Counted(monkeypatch)
    out, pullback = vjp(lambda x: getattr(fnp.fft, name)(x), x)
    assert counted.calls == [there]
    pullback(out)
    assert counted.calls == [there, back]


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_linear_transpose_twice_is_identity(name):
    x = sample(name, 5)
    fun = getattr(fourier, name)
    params = {"n": 6, "axis": 0, "norm": "ortho"}
    once = linear_transpose(lambda x: fun(x, **params), x)
    twice = linear_transpose(lambda ct: once(ct)[0], fun(x, **params))
    same(twice(x)[0], fun(x, **params))
