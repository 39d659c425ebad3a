"""``scipy.fftpack``, whose Python code runs rebuilt with derivatives of the compiled transforms that it calls."""

from functools import partial

import numpy as np
import pytest
from helpers import complex_normal, normal
from scipy import fftpack

from funcgrad import grad, hessian, jvp, vjp, vmap

ONE_AXIS = {
    **{name: (getattr(fftpack, name), ()) for name in ("fft", "ifft", "rfft", "irfft")},
    "fft of seven": (fftpack.fft, (7,)),
    "rfft of three": (fftpack.rfft, (3,)),
    "irfft of three": (fftpack.irfft, (3,)),
    **{
        f"{name} {kind} {norm}": (partial(getattr(fftpack, name), type=kind, norm=norm), ())
        for name in ("dct", "idct", "dst", "idst")
        for kind in (1, 2, 3, 4)
        for norm in (None, "ortho")
    },
    "diff": (fftpack.diff, ()),
    "second diff": (fftpack.diff, (2,)),
    "integral": (fftpack.diff, (-1,)),
    "diff with a period": (fftpack.diff, (1, 3.0)),
    **{name: (getattr(fftpack, name), ()) for name in ("hilbert", "ihilbert")},
    **{name: (getattr(fftpack, name), (0.5,)) for name in ("tilbert", "itilbert", "shift")},
    **{name: (getattr(fftpack, name), (0.5, 0.7)) for name in ("cs_diff", "sc_diff", "ss_diff", "cc_diff")},
}


def check(fun, x, moved):
    """Compare value, dtype and both modes with those of a linear function."""
    value, tangent = jvp(fun, (x,), (moved,))
    expected = fun(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13, strict=True)
    np.testing.assert_allclose(tangent, fun(moved), rtol=1e-12, atol=1e-13)
    ct = complex_normal(*expected.shape, seed=3) if np.iscomplexobj(expected) else normal(*expected.shape, seed=3)
    (pulled,) = vjp(fun, x)[1](ct)
    inner = np.sum(ct * tangent)
    np.testing.assert_allclose(
        np.sum(pulled * moved), inner if np.iscomplexobj(x) else inner.real, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("n", [2, 5, 6])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_transforms_of_one_axis(name, n):
    fun, options = ONE_AXIS[name]
    check(lambda x: fun(x, *options), normal(n), normal(n, seed=1))


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "diff"])
def test_transforms_of_complex_numbers(name):
    fun = getattr(fftpack, name)
    of = (lambda x: fun(x[0])) if name == "diff" else fun
    check(of, complex_normal(3, 4), complex_normal(3, 4, seed=1))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn"])
def test_cosines_and_sines_of_complex_numbers(name):
    """Real and imaginary parts are transformed apart."""
    fun = getattr(fftpack, name)
    check(fun, complex_normal(3, 4), complex_normal(3, 4, seed=1))
    np.testing.assert_allclose(vmap(fun)(complex_normal(2, 3, 4))[1], fun(complex_normal(2, 3, 4)[1]), rtol=1e-12)


@pytest.mark.parametrize("name", ["dctn", "idctn", "dstn", "idstn"])
def test_transforms_of_several_axes(name):
    check(lambda x: getattr(fftpack, name)(x, 3, norm="ortho"), normal(3, 4), normal(3, 4, seed=1))
    check(lambda x: getattr(fftpack, name)(x, axes=(0,)), normal(3, 4), normal(3, 4, seed=1))


def test_transforms_along_another_axis():
    for fun in (fftpack.fft, fftpack.rfft, fftpack.irfft, fftpack.dct):
        check(lambda x, fun=fun: fun(x, axis=0), normal(4, 3), normal(4, 3, seed=1))


def test_nested_transforms():
    energy = lambda x: np.sum(fftpack.rfft(x) ** 4)
    x = normal(5)
    curvature = hessian(energy)(x)
    np.testing.assert_allclose(curvature @ x, 3 * grad(energy)(x), rtol=1e-10)
    np.testing.assert_allclose(vmap(grad(energy))(np.stack([x, 2 * x]))[1], 8 * grad(energy)(x), rtol=1e-10)
