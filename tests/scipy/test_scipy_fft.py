"""Transforms with SciPy's arguments: every type and scale of cosine and sine transforms, errors, hints."""

import inspect
import itertools
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
from helpers import differences
from operations.spec import array

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, linear_transpose, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.interop import from_numpy
from funcgrad.scipy import fft

KINDS = ("dct", "idct", "dst", "idst")
SCALES = (("backward", False), ("backward", True), ("ortho", None), ("ortho", False), ("forward", None))


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", KINDS)
def test_every_scale_and_length(name, type):
    """Check SciPy's value, on JAX arrays too; forward mode is the transform itself, reverse mode its transpose."""
    ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
    for (norm, orthogonalize), length, n in itertools.product(SCALES, (2, 3), (None, 2, 3, 4)):
        how = {"type": type, "n": n, "norm": norm, "orthogonalize": orthogonalize}
        x, t = array(length), array(length, seed=1)
        want, pushed = theirs(x, **how), theirs(t, **how)
        out, pullback = vjp(lambda x, how=how: ours(x, **how), x)
        np.testing.assert_array_equal(out, want)
        np.testing.assert_array_equal(jvp(lambda x, how=how: ours(x, **how), (x,), (t,))[1], pushed)
        np.testing.assert_allclose(ours(jnp.asarray(x), **how), want, rtol=1e-13, atol=1e-14)
        ct = np.cos(np.arange(out.size))
        (pulled,) = pullback(ct)
        np.testing.assert_allclose(pulled @ t, ct @ pushed, rtol=1e-12)
        (back,) = linear_transpose(lambda ct, pullback=pullback: pullback(ct)[0], ct)(t)
        np.testing.assert_allclose(back, pushed, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_orthonormal_transform_keeps_norm(name, type):
    x = array(5)
    found = grad(lambda x: fnp.sum(getattr(fft, name)(x, type, norm="ortho") ** 2))(x)
    np.testing.assert_allclose(found, 2 * x, rtol=1e-13)
    back = getattr(fft, f"i{name}")(getattr(fft, name)(x, type), type)
    np.testing.assert_allclose(back, x, rtol=1e-13)


@pytest.mark.parametrize("name", ["dct", "dst"])
def test_transform_of_one_entry(name):
    for type in (1, 2, 3, 4) if name == "dst" else (2, 3, 4):
        fun = lambda x, type=type: getattr(fft, name)(x, type)
        out, pullback = vjp(fun, np.array([0.7]))
        np.testing.assert_array_equal(out, getattr(scipy.fft, name)([0.7], type))
        np.testing.assert_allclose(pullback(np.array([1.0]))[0], out / 0.7, rtol=1e-15)
        np.testing.assert_allclose(fun(jnp.array([0.7])), out, rtol=1e-15)


def test_dct_type_1_of_one_entry_raises():
    for x in (np.ones(1), jnp.ones(1)):
        with pytest.raises(RuntimeError):
            fft.dct(x, 1)
    with pytest.raises(RuntimeError):
        grad(lambda x: fft.dct(x, 1)[0])(np.ones(1))


@pytest.mark.parametrize("name", sorted(fft.__all__))
def test_signatures_match_scipy(name):
    def described(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    assert described(getattr(fft, name)) == described(getattr(scipy.fft, name))


def test_all_scipy_fft_names_are_covered():
    plain_only = {"fhtoffset", "get_workers", "set_workers"}
    backends = {name for name in scipy.fft.__all__ if name.endswith("_backend")}
    assert set(scipy.fft.__all__) - set(fft.__all__) == plain_only | backends
    assert fft.get_workers() == scipy.fft.get_workers()
    assert fft.fhtoffset is scipy.fft.fhtoffset
    with pytest.raises(AttributeError, match="has no attribute 'fftt'"):
        _ = fft.fftt


@pytest.mark.parametrize("transform", [fft.fht, fft.ifht])
def test_hankel_transform_derivatives(transform):
    x = array(5)
    np.testing.assert_allclose(vmap(lambda x: fft.ifht(fft.fht(x, 0.2, 0.5), 0.2, 0.5))(x[None])[0], x, rtol=1e-12)
    assert vjp(lambda x: fft.fht(x, 0.2, 0.5), x.astype("f"))[1](x.astype("f"))[0].dtype == np.float32
    for place in range(4):
        at = lambda v, place=place: transform(x, *[v if i == place else 0.3 for i in range(4)])[0]
        np.testing.assert_allclose(grad(at)(0.5), differences(at, 0.5), rtol=1e-8)
    moved = lambda v: transform(x * v, v, 0.5)
    np.testing.assert_allclose(jvp(moved, (0.5,), (1.0,))[1], differences(moved, 0.5), rtol=1e-8)
    np.testing.assert_allclose(vmap(moved)(x[:2]), [moved(v) for v in x[:2]], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("dct", {"type": 5}, ValueError),
        ("dct", {"norm": "none"}, ValueError),
        ("dct", {"n": 0}, ValueError),
        ("dct", {"axis": 2}, IndexError),
        ("fft", {"norm": "none"}, ValueError),
        ("fft", {"n": 0}, ValueError),
        ("fft", {"axis": 2}, IndexError),
        ("fft", {"plan": 1}, NotImplementedError),
        ("fftn", {"axes": (0, 0)}, ValueError),
        ("fftn", {"s": (2, 3, 4)}, ValueError),
        ("fftn", {"s": (2,), "axes": (0, 1)}, ValueError),
        ("fftn", {"plan": 1}, NotImplementedError),
        ("hfftn", {"norm": "none"}, ValueError),
        ("rfftn", {"axes": ()}, ValueError),
        ("hfftn", {"axes": ()}, ValueError),
        ("dctn", {"axes": (0, 0)}, ValueError),
        ("dstn", {"s": (0, 1)}, ValueError),
    ],
)
def test_invalid_calls_raise_as_scipy(name, arguments, error):
    x = array(2, 3)
    with pytest.raises(error):
        getattr(scipy.fft, name)(x, **arguments)
    with pytest.raises(error):
        vjp(lambda x: getattr(fft, name)(x, **arguments), x)


def test_complex_orthogonalize_raises():
    x = array(3, kind="complex")
    np.testing.assert_array_equal(fft.dct(x, orthogonalize=True), scipy.fft.dct(x, orthogonalize=True))
    with pytest.raises(InputError, match="orthogonalize"):
        vjp(lambda x: fft.dct(x, orthogonalize=True), x)
    turned = fft.dct(x.real, norm="ortho", orthogonalize=False)
    pulled = vjp(lambda x: fft.dct(x.real, norm="ortho", orthogonalize=False), x)[1](turned)[0]
    assert pulled.dtype == x.dtype


@pytest.mark.parametrize("name", ["fft", "irfft", "hfft", "rfft2", "irfftn", "ihfftn", "dct", "dst", "idctn"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble"])
def test_dtypes_match_scipy(name, dtype):
    x = array(2, 4).astype(dtype)
    out, pullback = vjp(getattr(fft, name), x)
    assert out.dtype == getattr(scipy.fft, name)(x).dtype
    assert pullback(out)[0].dtype == x.dtype


def test_integers_and_lists_are_transformed():
    for x in ([1, 2, 4], np.array([1, 2, 4]), jnp.array([1, 2, 4])):
        np.testing.assert_allclose(fft.dct(x), scipy.fft.dct([1.0, 2, 4]), rtol=1e-14)
    out = vmap(fft.dst)(np.array([[1, 2, 4]]))
    np.testing.assert_allclose(out, scipy.fft.dst([[1.0, 2, 4]]), rtol=1e-14)


def test_derivatives_overwrite_no_input():
    x = array(4)
    before = x.copy()
    grad(lambda x: fnp.sum(fft.dct(x, overwrite_x=True, workers=2) ** 2))(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", ["fft", "rfft", "irfftn", "hfft2", "dct", "idstn"])
def test_scipy_functions_name_funcgrad_functions(name):
    with pytest.raises(ConcretizationError, match=f"Use funcgrad.scipy.fft.{name} for"):
        grad(lambda x: fnp.sum(abs(getattr(scipy.fft, name)(x))))(array(2, 3))


def test_import_loads_no_scipy():
    code = "import sys, funcgrad.scipy.fft; assert not any(m.partition('.')[0] == 'scipy' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["dct", "idst", "dctn"])
def test_constants_are_not_overwritten(name):
    """SciPy overwrites its copy of an array; of a constant in a rebuilt function it took the array for the copy."""
    constant = np.arange(1.0, 5.0)
    kept = constant.copy()
    value = vjp(from_numpy(lambda x: x * getattr(scipy.fftpack, name)(constant)), 2.0)[0]
    np.testing.assert_array_equal(constant, kept)
    np.testing.assert_array_equal(value, 2.0 * getattr(scipy.fftpack, name)(constant))
