"""Packages whose functions are rebuilt, and packages that are used as they are."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import differences
from matplotlib import mlab

from funcgrad import grad, hessian, vmap
from funcgrad.errors import ConversionError

try:  # copies of the same module
    import sklearn.externals.array_api_compat.numpy.linalg as compat
except ModuleNotFoundError:  # before scikit-learn 1.7
    import scipy._lib.array_api_compat.numpy.linalg as compat

SOURCE = "import numpy as np\ndef total(x): return np.asarray(x, dtype=float).sum()"


def function_of(package):
    """Return a function that converts its argument, as if it were the package's."""
    names = {"__name__": f"{package}.example"}
    exec(SOURCE, names)
    return names["total"]


@pytest.mark.parametrize("package", ["sklearn", "skimage", "statsmodels", "mine"])
def test_functions_of_packages_are_rebuilt(package):
    total = function_of(package)
    np.testing.assert_array_equal(grad(lambda x: total(x))(np.ones(2)), np.ones(2))


@pytest.mark.parametrize("package", ["joblib", "mpmath", "narwhals", "threadpoolctl", "torch", "pydantic"])
def test_packages_used_unchanged(package):
    total = function_of(package)
    with pytest.raises(ConversionError, match=r"numpy.asarray\(x\): converting a traced value"):
        grad(lambda x: total(x))(np.ones(2))


class DUFunc:
    """Function that Numba's ``vectorize`` compiled."""

    nin, nout = 2, 1
    __module__ = "numba.np.ufunc.dufunc"

    def __init__(self, fun):
        self._dispatcher = SimpleNamespace(py_func=fun)

    def __call__(self, *args):
        return np.frompyfunc(self._dispatcher.py_func, 2, 1)(*map(memoryview, args))

    def reduce(self, x):
        return self(x[:1], x[1:])[0]


@DUFunc
def growth(a, b):
    return math.exp(a) * b if a > 0.5 else a * b * b


def test_functions_that_numba_vectorizes():
    x = np.array([0.3, 0.7])
    f = lambda x: growth(x, 2.0 * x[0]).sum() + growth.reduce(x)
    want = np.array([12 * 0.3**2 + 2 * math.exp(0.7) + 0.7**2, 2 * 0.3 * math.exp(0.7) + 2 * 0.3 * 0.7])
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x + 0.01]))[0], want, rtol=1e-12)
    assert hessian(f)(x)[1, 1] == pytest.approx(2 * 0.3 * (math.exp(0.7) + 1.0))


def test_solve_of_the_array_api_calls_private_functions_of_numpy():
    f = lambda x: compat.solve(np.array([[2.0, x], [x, 3.0]]), np.ones(2)).sum()
    assert grad(f)(0.5) == pytest.approx((f(0.5 + 1e-6) - f(0.5 - 1e-6)) / 2e-6, rel=1e-8)


MAKER = """
def lambdify(text):
    made = {}
    exec("def f(a): return " + text, {"np": np}, made)
    return made["f"]
"""


def test_functions_that_sympy_makes_inside_are_rebuilt():
    names = {"__name__": "sympy.utilities.lambdify", "np": np}
    exec(MAKER, names)
    lambdify = names["lambdify"]
    f = lambda x: np.linalg.det(lambdify("np.array([[a, 1.0], [2.0, a * a]])")(x))
    assert grad(f)(2.0) == pytest.approx(12.0)
    assert hessian(f)(2.0) == pytest.approx(12.0)


def test_spectra_of_matplotlib_are_rebuilt():
    f = lambda x: mlab.psd(x, NFFT=4)[0] @ np.arange(3.0) + mlab.detrend_linear(x) @ np.arange(8.0)
    x = np.sin(np.arange(8.0) ** 2)
    np.testing.assert_allclose(grad(f)(x), differences(f, x, 1e-3), rtol=1e-9, atol=1e-9)


CLASSES = """
class Base:
    def __init__(self, size):
        self.size = size

    def wave(self, x):
        return math.sin(x) * self.size


class Doubled(Base):
    def wave(self, x):
        return 2.0 * super().wave(x)
"""


def test_classes_of_a_text_that_has_no_module_name():
    names = {"math": math}
    exec(CLASSES, names)
    assert names["Base"].__module__ == "builtins"
    outside = names["Doubled"](3.0)
    assert grad(outside.wave)(0.5) == pytest.approx(6.0 * math.cos(0.5), rel=1e-12)
    assert grad(lambda x: names["Doubled"](x).wave(0.5) * isinstance(outside, names["Base"]))(3.0) == pytest.approx(
        2.0 * math.sin(0.5), rel=1e-12
    )
