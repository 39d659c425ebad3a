"""Functions of ``funcgrad.scipy`` that are SciPy's code, rebuilt: signature, values, derivatives."""

import importlib
import inspect
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy_samples
import scipy_samples_more
from fuzz.evaluating import evaluated
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, vmap
from funcgrad.errors import InputError
from funcgrad.optional import double_precision
from funcgrad.scipy import linalg, ndimage
from funcgrad.scipy.own_code import OWN_CODE, rebuilt

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.array([0.62, 1.41, 0.93, 1.77])
NAMES = [(home, name) for home, names in OWN_CODE.items() for name in sorted(names) if name != "tplquad"]  # slow
#: Names that JAX arrays cannot use: JAX has no such kernels, and quad chooses points by values.
NO_JAX = {*scipy_samples_more.BESSEL, "dblquad"}


def modules(home):
    return importlib.import_module(f"funcgrad.scipy.{home}"), importlib.import_module(f"scipy.{home}")


def of(home, name):
    """Return two functions that make a number of the sample's result, with funcgrad's module and with SciPy's."""
    ours, theirs = modules(home)
    sample = scipy_samples.TABLE[f"scipy.{home}"][name]

    def number(module):
        def f(x):
            out = fnp.ravel(fnp.asarray(sample(module, x)))
            return fnp.sum(fnp.real(out) * np.cos(np.arange(out.size)))

        return f

    return number(ours), number(theirs)


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_signatures_and_values_match_scipy(home, name):
    ours, theirs = (getattr(module, name) for module in modules(home))
    assert name in modules(home)[0].__all__
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert inspect.getdoc(theirs).startswith(inspect.getdoc(ours))
    assert "Parameters" in ours.__doc__
    assert ">>>" not in ours.__doc__
    assert pickle.loads(pickle.dumps(ours)) is ours
    f, plain = of(home, name)
    np.testing.assert_array_equal(f(X), plain(X))


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_derivatives(home, name):
    f, plain = of(home, name)
    slope, t = grad(f)(X), np.cos(X)
    steps = 1e-5 * np.eye(4)
    np.testing.assert_allclose(slope, [(plain(X + s) - plain(X - s)) / 2e-5 for s in steps], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jvp(f, (X,), (t,)), (plain(X), slope @ t), rtol=1e-9, atol=1e-12)
    want = [(grad(f)(X + s) - grad(f)(X - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(hessian(f)(X), want, rtol=1e-5, atol=1e-6)
    batch = np.stack([X, X * 1.01])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("home", "name"), [pair for pair in NAMES if pair[1] not in NO_JAX])
def test_derivatives_on_jax_arrays(home, name, monkeypatch):
    monkeypatch.setattr(scipy_samples, "np", fnp)
    f, _ = of(home, name)
    want = grad(f)(X)
    with double_precision(jax):
        x = jnp.asarray(X)
        np.testing.assert_allclose(evaluated(grad(f), x), want, rtol=1e-8, atol=1e-10)
        if name != "eigvals" or at_least(jax, "0.10.0"):  # older versions have no rule for the vectors of eig
            np.testing.assert_allclose(evaluated(jax.grad(f), x), want, rtol=1e-8, atol=1e-10)


def test_writes_to_parts_of_jax_arrays(monkeypatch):
    def raised(x):
        made = np.sin(x)
        part = made[2:]
        part += x[:2] ** 2
        return np.sum(made * np.arange(4.0))

    monkeypatch.setattr(scipy.signal, "raised", raised, raising=False)
    ours = rebuilt("signal", "raised")
    with double_precision(jax):
        value, slope = jax.value_and_grad(ours)(jnp.asarray(X))
    np.testing.assert_allclose(value, raised(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(slope, grad(ours)(X), rtol=1e-12)


def test_hankel_takes_several_axes_as_scipy_does():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jvp(linalg.hankel, (x,), (x,))[0], scipy.linalg.hankel(x))


def test_out_arrays_raise():
    with pytest.raises(InputError, match="laplace: output must be a dtype"):
        grad(lambda x: ndimage.laplace(x, output=np.empty(3)).sum())(np.ones(3))
    found = np.empty(3)
    assert ndimage.laplace(np.arange(3.0), found) is found


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        ndimage.other  # noqa: B018
