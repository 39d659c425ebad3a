"""Errors where C code or NumPy itself gets a traced value; functions that only inspect values get an answer."""

import math
import struct
import sys
import time
import traceback

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
import scipy.stats

import funcgrad.numpy as fnp
from funcgrad import as_written, check_grads, grad, jvp, stop_gradient, vjp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, InputError, ReadOnlyError

pytestmark = pytest.mark.usefixtures("written")

X = np.array([1.0, 2.0, 4.0])
K = scipy.sparse.eye(3, format="csc")
rng = np.random.default_rng(0)


def error_text(program, x=X):
    """Return the text of the error that ``program`` raises, its notes included."""
    with pytest.raises(Exception, match=r".+") as caught:
        grad(lambda x: np.sum(program(x)))(x)
    return "".join(traceback.format_exception_only(caught.value))


def failing(z):
    """Fail as a Python function does that C calls while an error is already set."""
    raise AttributeError("__getitem__")


INSTEAD = {
    "r_": (lambda x: np.r_[x, 1.0], "Use funcgrad.numpy.r_ for numpy.r_"),
    "c_": (lambda x: np.c_[x, x], "Use funcgrad.numpy.c_ for numpy.c_"),
    "vectorize": (lambda x: np.vectorize(lambda v: v * v)(x), "Use funcgrad.numpy.vectorize for"),
    "array": (lambda x: np.array([x[0], 1.0]), "Use funcgrad.numpy.array for numpy.array"),
    "ascontiguousarray": (lambda x: np.ascontiguousarray(x), "Use funcgrad.numpy.ascontiguousarray for"),
    "require": (lambda x: np.require(x, requirements="C"), "Use funcgrad.numpy.require for"),
    "ndenumerate": (lambda x: [v for _, v in np.ndenumerate(x)], "Use funcgrad.numpy.ndenumerate for"),
    "nditer": (lambda x: list(np.nditer(x)), "Use funcgrad.numpy.nditer for"),
    "a class of series": (lambda x: np.polynomial.Chebyshev(x)(0.5), "Use funcgrad.numpy.polynomial.Chebyshev for"),
    "a series at traced points": (
        lambda x: np.polynomial.Polynomial([1, 2])(x),
        "funcgrad.numpy.polynomial.Polynomial",
    ),
    "math": (lambda x: math.sin(x[0]), "Use funcgrad.numpy.sin for math.sin"),
    "math.pow": (lambda x: math.pow(x[0], 2), "Use funcgrad.numpy.power for math.pow"),
    "math.lgamma": (lambda x: math.lgamma(x[0]), "Use funcgrad.scipy.special.gammaln for math.lgamma"),
    "normal": (lambda x: rng.normal(x, 1.0), "mu + sigma * rng.normal"),
    "normal of numbers": (lambda x: np.random.default_rng(1).normal(x[0]), "mu + sigma * rng.normal"),
    "the old normal": (lambda x: np.random.normal(x), "mu + sigma * rng.normal"),
    "choice": (lambda x: rng.choice(x, 2), r"x[rng.choice(len(x), ...)]"),
    "gamma": (lambda x: rng.gamma(x), "ppf of rng.uniform"),
    "rvs": (lambda x: scipy.stats.gamma.rvs(x), "ppf of rng.uniform"),
    "a root": (lambda x: scipy.optimize.brentq(lambda z: z - x[0], -9, 9), "Use funcgrad.scipy.optimize.brentq for"),
    "a minimum": (lambda x: scipy.optimize.minimize(lambda z: z @ x, X).x, "Use funcgrad.scipy.optimize.minimize"),
    "after a refusal": (lambda x: scipy.optimize.brentq(failing, -9, 9), "Use funcgrad.scipy.optimize.brentq for"),
    "another solver": (lambda x: scipy.optimize.anderson(lambda z: z - x, X), "Use funcgrad.transforms.custom_root"),
    "as_strided": (
        lambda x: np.lib.stride_tricks.as_strided(x, (2,), (8,)),
        "Use funcgrad.numpy.lib.stride_tricks.as_strided.",
    ),
    "float32": (lambda x: np.float32(x), "Use x.astype(numpy.float32)"),
    "diags": (lambda x: scipy.sparse.diags(x) @ X, "Use funcgrad.scipy.sparse.diags_array for scipy.sparse.diags"),
    "csr_matrix": (lambda x: scipy.sparse.csr_matrix(x[None]) @ X, "Use funcgrad.scipy.sparse.csr_array for"),
    "cg": (
        lambda x: scipy.sparse.linalg.cg(K, x)[0],
        "Use funcgrad.scipy.sparse.linalg.cg for scipy.sparse.linalg.cg",
    ),
    "splu": (lambda x: scipy.sparse.linalg.splu(K).solve(x), "Use funcgrad.scipy.sparse.linalg.splu for"),
    "factorized": (lambda x: scipy.sparse.linalg.factorized(K)(x), "Use funcgrad.scipy.sparse.linalg.splu for"),
    "circulant": (lambda x: scipy.linalg.circulant(x), "Use funcgrad.scipy.linalg.circulant for"),
}


@pytest.mark.parametrize(("program", "hint"), INSTEAD.values(), ids=INSTEAD)
def test_error_names_function_to_call_instead(program, hint):
    text = error_text(program)
    assert hint in text
    assert f"at {__file__}" in text


def test_every_transform_adds_hint_once():
    def program(x):
        return scipy.sparse.linalg.splu(K).solve(x)

    for run in (
        lambda: vjp(program, X),
        lambda: jvp(program, (X,), (X,)),
        lambda: vmap(program)(X[None]),
        lambda: grad(lambda x: grad(lambda y: fnp.sum(program(y)))(x)[0])(X),
    ):
        with pytest.raises(TypeError) as caught:
            run()
        assert [note for note in caught.value.__notes__ if "linalg.splu for" in note] == caught.value.__notes__
        assert len(caught.value.__notes__) == 1


def test_user_errors_are_unchanged():
    for error in (ValueError("Tracer"), KeyError("x"), AttributeError("ReverseTracer")):

        def program(x, error=error):
            raise error

        with pytest.raises(type(error)) as caught:
            grad(program)(1.0)
        assert not hasattr(caught.value, "__notes__")
    with pytest.raises(ValueError, match="square") as caught:
        grad(lambda x: x * scipy.linalg.det(np.ones((2, 3))))(1.0)
    assert not hasattr(caught.value, "__notes__")


def test_no_hint_without_source():
    made = {}
    exec("def program(rng, x):\n    return rng.normal(x)", made)
    with pytest.raises(ConcretizationError) as caught:
        grad(lambda x: made["program"](rng, x))(1.0)
    assert "rng.normal" not in str(caught.value)


# ---- inspection without an error --------------------------------------------------------------------------


ASSERTIONS = {
    "assert_allclose": (X + 1e-9,),
    "assert_array_equal": (X,),
    "assert_equal": (X,),
    "assert_almost_equal": (X + 1e-9,),
    "assert_array_almost_equal": (X + 1e-9,),
    "assert_array_less": (X + 1,),
    "assert_array_almost_equal_nulp": (X,),
    "assert_array_max_ulp": (X,),
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_numpy_assertions_compare_constants(name):
    """NumPy's assertions convert their argument to an array, as code does that loses the derivative."""
    check = getattr(np.testing, name)

    def program(x, shift=0.0):
        check(stop_gradient(x + shift), *ASSERTIONS[name])
        return np.sum(x * x)

    def asking(x):
        check(x, *ASSERTIONS[name])
        return np.sum(x * x)

    if name != "assert_array_almost_equal_nulp":  # its functions accept tracers
        with pytest.raises(ConcretizationError, match=r"use stop_gradient\(x\)"):
            grad(asking)(X)
    np.testing.assert_array_equal(grad(program)(X), 2 * X)
    np.testing.assert_array_equal(jvp(program, (X,), (X,))[1], 2 * X @ X)
    with pytest.raises(AssertionError):
        grad(program)(X, 3.0)


def test_approx_compares_constants():
    def program(x, shift=0.0):
        assert stop_gradient(x + shift) == pytest.approx(X)
        assert x[0] + shift == pytest.approx(1.0)
        return np.sum(x * x)

    def asking(x):
        assert x == pytest.approx(X)
        return np.sum(x * x)

    with pytest.raises((ConcretizationError, TypeError)):
        grad(asking)(X)
    np.testing.assert_array_equal(grad(program)(X), 2 * X)
    with pytest.raises(AssertionError):
        grad(program)(X, 3.0)


def test_numpy_assertions_on_batch_raise():
    with pytest.raises(ConcretizationError, match="examples"):
        vmap(lambda x: (np.testing.assert_allclose(x, X), x)[1])(np.stack([X, X]))


def test_percent_format_raises_like_float():
    """``"%.2f" % x`` calls ``float(x)``, and only the caller's source could distinguish the two."""
    form = "%.1f"
    for refused in (
        lambda x: "%.2f" % x,  # noqa: UP031
        lambda x: "%.1f and %s" % (x, "y"),  # noqa: UP031
        lambda x: form % x,
        lambda x: "%(x).1f" % {"x": x},  # noqa: UP031
        lambda x: "%.2f" % float(x),  # noqa: UP031
        lambda x: 5.0 % float(x),
        lambda x: float(x) % 2.0,
        lambda x: eval("'%.2f' % x", {"x": x}),
    ):
        for run in (grad, lambda f: lambda x: vmap(f)(np.stack([x, x]))):
            says = r"f'\{x:\.3f\}'" if sys.version_info < (3, 15) else r"^float\(x\)"  # there Python replaces the error
            with pytest.raises(ConcretizationError, match=says):
                run(lambda x, refused=refused: (refused(x), x)[1])(1.0)
    of_python = "%d format: a real number is required" if sys.version_info < (3, 15) else "To print it"
    with pytest.raises(TypeError, match=of_python) as caught:
        grad(lambda x: ("%d" % x, x)[1])(1.0)  # noqa: UP031
    assert "To print it, write f'{x:.3f}'" in "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert grad(lambda x: x * len("%s and %r" % (x, x)))(1.0) > 0  # noqa: UP031
    with pytest.raises(ConversionError, match="the text shows a traced number"):
        grad(lambda x: x * float(f"{x:.2f}"))(1.5)


@pytest.mark.parametrize("name", ["base", "ctypes", "data", "flags", "strides"])
def test_memory_attributes_raise_attribute_error(name):
    def program(x):
        assert not hasattr(x, name)
        assert getattr(x, name, None) is None
        getattr(x, name)

    with pytest.raises(
        AttributeError, match=rf"x\.{name}: a traced value has no memory of its own, got float64\[3\], at"
    ):
        grad(program)(X)


# ---- views -----------------------------------------------------------------------------------------------


def test_complex_view_as_pairs_and_back():
    z = np.array([[1.0 + 2.0j, -0.5j], [3.0, 1.0 - 1.0j]])
    check_grads(lambda z: z.view(float), (z,), order=2)
    check_grads(lambda x: x.view(complex) ** 2, (z.view(float),), order=2)
    for x, dtype in ((z, float), (z.view(float), complex), (z.astype("F"), np.float32), (z.real.astype("f"), "F")):
        value = vjp(lambda x, dtype=dtype: x.view(dtype), x)[0]
        np.testing.assert_array_equal(value, x.view(dtype))
        assert value.dtype == x.view(dtype).dtype
        np.testing.assert_array_equal(vmap(lambda x, dtype=dtype: x.view(dtype))(x), x.view(dtype))
    found = grad(lambda x: np.sum(np.abs(x.view(complex)) ** 2))(np.arange(4.0))
    np.testing.assert_allclose(found, 2 * np.arange(4.0), rtol=1e-14)
    for same in (
        lambda x: x.view(),
        lambda x: x.view(float),
        lambda x: x.view(np.ndarray),
        lambda x: x.view(type=np.ndarray),
    ):
        np.testing.assert_array_equal(grad(lambda x, same=same: np.sum(same(x) ** 2))(X), 2 * X)


def test_dtype_views_see_writes_and_can_be_written_to():
    def seen(x):
        y = x * 1.0
        pairs, itself = y.view(complex), y.view()
        y[0] = 3.0 * x[1]
        itself[1] = 0.0
        return np.sum(pairs.real + 2 * pairs.imag)

    np.testing.assert_array_equal(grad(seen)(np.ones(2)), [0.0, 3.0])

    def written(x):
        y = x * 1.0
        pairs = y.view(complex)
        pairs[0] *= 2.0j
        return y[0] + 3.0 * y[1]

    np.testing.assert_array_equal(grad(written)(np.ones(2)), [6.0, -2.0])
    with pytest.raises(ReadOnlyError):
        grad(lambda x: x.view(complex).__setitem__(0, 0.0))(np.ones(2))


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda x: x.view(np.int64), InputError),
        (lambda x: x.view(np.matrix), InputError),
        (lambda x: x.view(np.float32), InputError),
        (lambda x: x.view(complex), ValueError),
        (lambda x: x.reshape(1, 3).T.view(complex), ValueError),
        (lambda x: x[0].view(complex), ValueError),
    ],
)
def test_reinterpreting_views_raise(asked, error):
    with pytest.raises(error):
        grad(lambda x: np.sum(asked(x)).real)(X)


class Named(np.ndarray):
    """An array with a name."""

    def __new__(cls, values, name):
        made = np.asarray(values).view(cls)
        made.name = name
        return made


@pytest.mark.parametrize("run", [lambda slope: slope, as_written()])
def test_ndarray_subclass_is_named(run):
    with pytest.raises(ConversionError, match=r"Named is a subclass of numpy\.ndarray.*: use the array from which"):
        run(grad(lambda x: Named(x, "signal").sum()))(X)


def test_error_names_compiled_stdlib_function():
    assert "struct.pack accepts no traced values: pass stop_gradient(x)" in error_text(
        lambda x: struct.pack("d", x[0]) and x
    )
    assert "struct.pack accepts no traced values: pass stop_gradient(x)" in error_text(
        lambda x: struct.pack("3d", *x) and x
    )
    assert "got float64[]" in (text := error_text(lambda x: time.sleep(x[0]) or x))
    assert "time.sleep accepts no traced values: pass stop_gradient(x)" in text
    assert "x.astype(int)" in error_text(lambda x: range(x[0]) and x)


@pytest.mark.filterwarnings("error")
def test_hints_use_no_deprecated_numpy_names():
    assert "bytes" in error_text(lambda x: bytes(x[0]) and x)
