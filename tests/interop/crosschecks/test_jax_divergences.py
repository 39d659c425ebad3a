"""Known errors and refusals of JAX where funcgrad differs on purpose: one table, with reasons.

Each entry shows both results. The right values come from the definition of the derivative, not from either library.
"""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad
import funcgrad.numpy as fnp
from funcgrad.errors import FuncgradError, InputError, ShapeError

OBSERVED = (0, 10)  # the version of JAX for which the entries hold
WEIGHTS = np.array([1.0, 10.0, 100.0])
FLOAT0 = [("float0", "V")]


@dataclass(frozen=True)
class Divergence:
    """A difference between funcgrad and JAX.

    Args:
        name: subject of the difference.
        run: ``run(library, numpy)`` computes the result, with the library's NumPy as ``numpy``.
        right: the right answer, or the error that funcgrad raises.
        theirs: JAX's answer, or the error that JAX raises.
        reason: why funcgrad does not follow JAX.
    """

    name: str
    run: Callable[[Any, Any], Any]
    right: Any
    theirs: Any
    reason: str


def squared(lib: Any) -> Any:
    """Return ``x -> x^2`` with a custom VJP rule only."""
    f = lib.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
    return f


TABLE = [
    Divergence(
        "item",
        lambda lib, xp: lib.grad(lambda x: x.item() * x)(xp.asarray(2.0)),
        4.0,
        2.0,
        "the true gradient is 4: item() drops the derivative without a word, where float(x) raises",
    ),
    Divergence(
        "arange",
        lambda lib, xp: lib.grad(lambda a: xp.sum(xp.arange(a, 3.0)))(0.5),
        3.0,
        0.0,
        "a + (a+1) + (a+2) has the derivative 3",
    ),
    Divergence(
        "partition with ties",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.partition(x, 1) * WEIGHTS))(np.array([2.0, 2.0, 1.0])),
        np.array([10.0, 100.0, 1.0]),
        np.array([110.0, 0.0, 1.0]),
        "two places of the result come from two elements, not both from one",
    ),
    Divergence(
        "sign of a complex number",
        lambda lib, xp: lib.grad(lambda z: xp.real(xp.sign(z)))(1 + 2j),
        # z / |z|: the gradient of x / r is (y^2, -x y) / r^3, as du/dx - i du/dy
        (4 + 2j) / 5**1.5,
        0.0,
        "z / |z| is not constant",
    ),
    Divergence(
        "x to the power 0.0",
        lambda lib, xp: lib.grad(lambda x: x**0.0)(0.0),
        0.0,
        np.nan,
        "x**0.0 is 1 everywhere, as x**0 is",
    ),
    Divergence(
        "second derivative of x to the power 1.0",
        lambda lib, xp: lib.grad(lib.grad(lambda x: x**1.0))(0.0),
        0.0,
        np.nan,
        "x**1.0 is x",
    ),
    Divergence(
        "vander at 0",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.vander(x, 3) * WEIGHTS))(np.zeros(1)),
        np.array([10.0]),
        np.array([np.nan]),
        "x**0 is 1 everywhere; JAX takes floating exponents",
    ),
    Divergence(
        "second derivative of an element of a running sum, compiled",
        lambda lib, xp: lib.jit(lib.hessian(lambda w: xp.cumsum(w * xp.ones(3))[1] ** 2))(1.0),
        8.0,
        12.0,
        "(2 w)^2: XLA folds the padding of the element's derivative into the running sum, and sums too much",
    ),
    Divergence(
        "norm of a Fourier transform, compiled",
        lambda lib, xp: (jax.jit if lib is jax else lambda f: f)(lambda x: xp.linalg.norm(xp.fft.fft(x), 2))(np.eye(2)),
        2**0.5,
        RuntimeError,
        "XLA for CPUs compiles no Fourier transform from which LAPACK reads",
    ),
    Divergence(
        "index out of bounds",
        lambda lib, xp: lib.grad(lambda x: x[5])(xp.ones(3)),
        IndexError,
        np.array([0.0, 0.0, 1.0]),
        "NumPy's indexing rules are NumPy's: no clamping",
    ),
    Divergence(
        "take out of bounds",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.take(x, 5)))(xp.ones(3)),
        IndexError,
        np.zeros(3),
        "as for indexing: no silent NaN, no silent zero",
    ),
    Divergence(
        "list as an index",
        lambda lib, xp: lib.grad(lambda x: xp.sum(x[[0, 1]]))(xp.ones(3)),
        np.array([1.0, 1.0, 0.0]),
        TypeError,
        "NumPy takes lists",
    ),
    Divergence(
        "no argnums",
        lambda lib, xp: lib.grad(lambda x: x * x, argnums=())(1.0),
        InputError,
        ValueError,
        "JAX's message is that of max() on an empty sequence",
    ),
    Divergence(
        "argnums repeated",
        lambda lib, xp: lib.grad(lambda x, y: x * y, argnums=(0, 0))(1.0, 2.0),
        ShapeError,
        TypeError,
        "JAX's message speaks of an operand NoneType",
    ),
    Divergence(
        "vjp with keyword arguments",
        lambda lib, xp: lib.vjp(lambda x, k: x * k, 2.0, k=3.0)[1](1.0)[0],
        3.0,
        TypeError,
        "keyword arguments pass through undifferentiated, as for grad",
    ),
    Divergence(
        "jvp with keyword arguments",
        lambda lib, xp: lib.jvp(lambda x, k: x * k, (2.0,), (1.0,), k=3.0)[1],
        3.0,
        TypeError,
        "keyword arguments pass through undifferentiated, as for grad",
    ),
    Divergence(
        "forward mode through a custom_vjp",
        lambda lib, xp: lib.jvp(squared(lib), (3.0,), (1.0,))[1],
        6.0,
        TypeError,
        "a pullback determines the pushforward, its transpose",
    ),
    Divergence(
        "jacfwd of an integer result",
        lambda lib, xp: lib.jacfwd(lambda x: xp.argmax(x))(np.array([1.0, 3.0, 2.0])),
        np.zeros(3, FLOAT0),
        np.zeros(3, int),
        "the tangent of an integer has dtype float0, as jvp gives it",
    ),
    Divergence(
        "second derivative of a determinant that lacks two ranks",
        lambda lib, xp: lib.hessian(lambda s: xp.linalg.det(np.diag([1.0, 2.0, 0.0, 0.0]) + s * np.eye(4)))(0.0),
        4.0,
        0.0,
        "(1 + s) (2 + s) s^2 has the second derivative 4; of three rows JAX has it right",
    ),
    Divergence(
        "gradient of the determinant of no rows",
        lambda lib, xp: lib.grad(xp.linalg.det)(np.ones((0, 0))),
        np.ones((0, 0)),
        IndexError,
        "the determinant is 1 and its gradient has no elements",
    ),
    Divergence(
        "pseudo-inverse without a singular value that is not zero",
        lambda lib, xp: lib.jvp(
            lambda x: xp.linalg.pinv(x, rcond=0.6), (np.diag([2.0, 1.0]),), (np.array([[0.0, 1.0], [0.0, 0.0]]),)
        )[1],
        # the first singular value of [[2, h], [0, 1]] counts; its vectors are (1, h/3) and (1, 2h/3) to first order
        np.array([[0.0, 1 / 6], [1 / 3, 0.0]]),
        np.array([[0.0, 0.0], [0.25, 0.0]]),
        "the vectors turn towards those of the singular value that is left out",
    ),
    Divergence(
        "projector on eigenvectors of one eigenvalue",
        lambda lib, xp: lib.grad(
            lambda x: xp.sum((lambda v: v[:, :2] @ v[:, :2].T)(xp.linalg.eigh(x)[1]) * np.arange(9.0).reshape(3, 3))
        )(np.diag([1.0, 1.0, 2.0])),
        # dP[i, 2] = dA[i, 2] / (1 - 2), for symmetric weights; one triangle is read
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-8.0, -12.0, 0.0]]),
        np.full((3, 3), np.nan),
        "the projector does not depend on the choice of eigenvectors",
    ),
    Divergence(
        "relative tolerance of a rank",
        lambda lib, xp: lib.vmap(lambda x: xp.linalg.matrix_rank(x, rtol=0.5))(np.diag([4.0, 1.0])[None]),
        np.array([1]),
        np.array([2]),
        "NumPy compares singular values with rtol times the largest one",
    ),
    Divergence(
        "second derivative of i0 at 0",
        lambda lib, xp: lib.grad(lib.grad(xp.i0))(0.0),
        0.5,
        0.0,
        "i0(x) is 1 + x**2 / 4 + ...",
    ),
    Divergence(
        "unwrap at half a period",
        lambda lib, xp: lib.grad(lambda p: xp.sum(xp.unwrap(p, period=1.0) * WEIGHTS))(np.array([0.0, 0.5, 0.7])),
        np.array([1.0, 10.0, 100.0]),
        np.array([111.0, -100.0, 100.0]),
        "the periods that are added are constant on both sides of the jump",
    ),
    Divergence(
        "interp at last knots that coincide",
        lambda lib, xp: lib.grad(xp.interp, 2)(1.0, np.array([0.0, 1.0, 1.0]), np.array([0.0, 10.0, 20.0])),
        np.array([0.0, 0.0, 1.0]),
        np.array([0.0, 1.0, 0.0]),
        "NumPy's value there is the last one's, and so is its derivative",
    ),
    Divergence(
        "a Fourier transform along one axis twice",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.real(xp.fft.fftn(x, axes=(0, 0)))))(np.array([1.0, 2.0, 3.0])),
        np.array([3.0, 3.0, 3.0]),
        ValueError,
        "NumPy allows it: twice the transform is the reflection, times the length",
    ),
    Divergence(
        "gradient of unique",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.unique(x) * np.array([1.0, 10.0])))(np.array([3.0, 1.0, 3.0])),
        np.array([10.0, 1.0, 0.0]),
        np.zeros(3),
        "values are read from where they stand first, as JAX does once it is told their number",
    ),
    Divergence(
        "second derivative of a correlation of 1",
        lambda lib, xp: lib.hessian(
            lambda t: xp.corrcoef(xp.stack([t * 0, t * 0 + 1, t + 2]), np.array([1.0, 3.0, 5.0]))[0, 1]
        )(0.0),
        -1 / 12,
        -1 / 24,
        "it is a maximum of a smooth function; JAX halves what passes the clip that takes rounding away",
    ),
    Divergence(
        "covariance with one more column",
        lambda lib, xp: xp.cov(np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 2.0]]), np.array([1.0, 5.0, 3.0]), rowvar=False),
        np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [2.0, 2.0, 4.0]]),
        ValueError,
        "an array of one axis is one variable, also where variables are columns",
    ),
    Divergence(
        "characteristic polynomial of equal eigenvalues",
        lambda lib, xp: lib.jacrev(lambda a: xp.real(xp.poly(a))[2])(xp.asarray([[1.0, 1.0], [0.0, 1.0]])),
        np.array([[1.0, 0.0], [-1.0, 1.0]]),
        np.eye(2),
        "the last coefficient is the determinant, and its derivative the cofactors; JAX goes through eigenvectors",
    ),
    Divergence(
        "zeros of a polynomial whose leading coefficient is 0",
        lambda lib, xp: lib.jacrev(lambda p: xp.real(xp.roots(p)))(xp.asarray([0.0, 2.0, -8.0])),
        np.array([[-8.0, -2.0, -0.5]]),
        np.array([[0.0, -2.0, -0.5]]),
        "the zero at 4 moves by -4**2 / 2 with the coefficient that JAX strips",
    ),
]


def logsumexp(xp: Any) -> Any:
    """Return ``logsumexp``, which JAX has in another module."""
    return fnp.logsumexp if xp is fnp else jax.nn.logsumexp


NUMBERS = [
    Divergence(
        "arccosh in the left half plane",
        lambda lib, xp: lib.grad(xp.arccosh, holomorphic=True)(-1.3 + 0.7j),
        1 / (np.sqrt(-2.3 + 0.7j) * np.sqrt(-0.3 + 0.7j)),
        -1 / (np.sqrt(-2.3 + 0.7j) * np.sqrt(-0.3 + 0.7j)),
        "the derivative belongs to the branch of the value",
    ),
    Divergence(
        "logaddexp beside infinity",
        lambda lib, xp: lib.grad(xp.logaddexp, 1)(np.inf, 1.0),
        0.0,
        np.e,
        "the sum is infinite whatever the other number is",
    ),
    Divergence(
        "heaviside of NaN",
        lambda lib, xp: lib.grad(xp.heaviside)(np.nan, 0.5),
        0.0,
        1.0,
        "a step function is flat on both sides",
    ),
    Divergence(
        "angle of a real 0",
        lambda lib, xp: lib.grad(xp.angle)(0.0),
        0.0,
        np.nan,
        "real numbers do not turn",
    ),
    Divergence(
        "second derivative of arctanh at its pole, forward over reverse",
        lambda lib, xp: lib.jvp(lib.grad(xp.arctanh), (1.0,), (1.0,))[1],
        np.inf,
        np.nan,
        "2 x / (1 - x^2)^2",
    ),
    Divergence(
        "sinc next to 0",
        lambda lib, xp: lib.grad(xp.sinc)(1e-9),
        -(np.pi**2) / 3 * 1e-9,
        0.0,
        "-pi^2 / 3 x to first order",
    ),
    Divergence(
        "hypot of large numbers",
        lambda lib, xp: lib.grad(xp.hypot)(1e200, 1e200),
        np.sqrt(0.5),
        0.75 * np.sqrt(2.0),
        "the squares overflow, the quotient does not",
    ),
    Divergence(
        "logsumexp with a factor 0",
        lambda lib, xp: lib.grad(lambda b: logsumexp(xp)(WEIGHTS / 100, b=b, return_sign=True)[0])(
            np.array([1.0, -2.0, 0.0])
        ),
        np.exp(WEIGHTS / 100) / np.dot([1.0, -2.0, 0.0], np.exp(WEIGHTS / 100)),
        np.array([1.0, 1.0, 0.0]) * np.exp(WEIGHTS / 100) / np.dot([1.0, -2.0, 0.0], np.exp(WEIGHTS / 100)),
        "a term without weight still has a derivative in its weight",
    ),
    Divergence(
        "logsumexp of nothing but -inf",
        lambda lib, xp: lib.grad(lambda x: logsumexp(xp)(x))(np.full(3, -np.inf)),
        np.zeros(3),
        np.full(3, np.nan),
        "a convention: elements at -inf get no gradient, with a mask or without",
    ),
    Divergence(
        "forward mode of a variance of too few elements",
        lambda lib, xp: lib.jvp(lambda x: xp.var(x, ddof=1), (xp.ones(1),), (xp.ones(1),))[1],
        np.nan,
        0.0,
        "both modes must say that there is none, as JAX's reverse mode does",
    ),
]
TABLE += NUMBERS


def scipy_of(lib: Any, module: str) -> Any:
    """Return the counterpart of a module of SciPy."""
    return importlib.import_module(f"{'jax' if lib is jax else 'funcgrad'}.scipy.{module}")


MATRIX = np.array([[4.0, 1.0], [1.0, 3.0]])
SCIPY = [
    Divergence(
        "cholesky of a triangle",
        lambda lib, xp: lib.grad(lambda a: xp.sum(scipy_of(lib, "linalg").cholesky(a, lower=True)))(MATRIX)[0, 1],
        0.0,
        -0.125 / np.sqrt(2.75),
        "the upper triangle is not read; what JAX puts there is missing in the lower one",
    ),
    Divergence(
        "solve with a triangle",
        lambda lib, xp: lib.grad(
            lambda a: xp.sum(scipy_of(lib, "linalg").solve(a, np.ones(2), lower=True, assume_a="pos"))
        )(MATRIX)[0, 1],
        0.0,
        -6.0 / 121.0,
        "the upper triangle is not read; the lower one stands for both",
    ),
    Divergence(
        "the scale of gumbel_r",
        lambda lib, xp: lib.grad(scipy_of(lib, "stats").gumbel_r.logpdf, 2)(1.0, 0.0, 2.0),
        -0.25 * (1 + np.exp(-0.5)),
        TypeError,
        "the density has a scale, and a derivative in it",
    ),
]
TABLE += SCIPY


def at(name: str, *point: float, argument: int = 0) -> Callable[[Any, Any], Any]:
    """Return a function that computes the derivative of a function of ``scipy.special`` in one argument."""
    return lambda lib, xp: lib.grad(getattr(scipy_of(lib, "special"), name), argument)(*point)


SPECIAL = [
    Divergence("spence at 1", at("spence", 1.0), -1.0, 0.0, "log(z) / (1 - z) has the limit -1"),
    Divergence("spence beyond 1", at("spence", 1.5), -2 * np.log(1.5), np.nan, "log(z) / (1 - z) is smooth there"),
    Divergence("rel_entr at 0", at("rel_entr", 0.0, 1.0), -np.inf, 0.0, "log(x / y) + 1 is not bounded"),
    Divergence("kl_div at 0", at("kl_div", 0.0, 1.0), -np.inf, -1.0, "log(x / y) is not bounded"),
    Divergence("boxcox at 0", at("boxcox", 2.0, 0.0, argument=1), np.log(2) ** 2 / 2, 0.0, "the limit for small ones"),
    Divergence("loggamma left of 0", at("loggamma", -1.5), np.nan, 0.0, "the value is NaN too"),
    Divergence("erfcx far out", at("erfcx", 1e9), -1e-18 / np.sqrt(np.pi), 0.0, "JAX's formula cancels"),
    Divergence("hypot twice", lambda lib, xp: lib.grad(lib.grad(xp.hypot))(1.0, 1.0), 8**-0.5, 0.0, "y^2 / r^3"),
    Divergence("betainc in a", at("betainc", 1.0, 1.0, 0.5), 0.5 * np.log(0.5), ValueError, "it is x**a here"),
    Divergence(
        "exp1 twice",
        lambda lib, xp: lib.grad(lib.grad(scipy_of(lib, "special").exp1))(1.0),
        2 * np.exp(-1.0),
        TypeError,
        "the derivative, -exp(-x) / x, has a derivative",
    ),
]
TABLE += SPECIAL
TABLE += [
    Divergence(
        "median of a number with keepdims",
        lambda lib, xp: lib.grad(lambda x: xp.median(x, keepdims=True).ndim * x)(2.0),
        0.0,
        1.0,
        "NumPy keeps the axes that there are, which are none",
    ),
    Divergence(
        "quantile of a number with keepdims",
        lambda lib, xp: lib.grad(lambda x: xp.quantile(x, 0.3, keepdims=True).ndim * x)(2.0),
        0.0,
        1.0,
        "NumPy keeps the axes that there are, which are none",
    ),
]
each = pytest.mark.parametrize("entry", TABLE, ids=[entry.name.replace(" ", "-") for entry in TABLE])


@pytest.fixture
def _silent():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Degrees of freedom")
        yield


def agrees(entry: Divergence, lib: Any, xp: Any, want: Any) -> bool:
    """Whether the entry's result in a library, or the error raised, is ``want``."""
    if isinstance(want, type):
        try:
            entry.run(lib, xp)
        except want:
            return True
        return False
    got = np.asarray(entry.run(lib, xp))
    want = np.asarray(want)
    if want.dtype == FLOAT0:
        return got.dtype == FLOAT0 and got.shape == want.shape
    return got.shape == want.shape and np.allclose(got, want, rtol=1e-12, atol=0, equal_nan=True)


@each
@pytest.mark.usefixtures("_silent")
def test_funcgrad_is_right(entry):
    if not (isinstance(entry.right, type) and issubclass(entry.right, FuncgradError)):
        assert agrees(entry, funcgrad, fnp, entry.right)
        return
    with pytest.raises(entry.right, match=r"got .*\."):
        entry.run(funcgrad, fnp)


@each
def test_jax_is_as_observed(entry):
    """Check that JAX behaves as recorded: an entry becomes unnecessary when JAX changes."""
    if jax.__version_info__[:2] == OBSERVED:
        assert agrees(entry, jax, jnp, entry.theirs)


def test_every_entry_has_a_reason():
    assert all(entry.reason for entry in TABLE)
    assert len({entry.name for entry in TABLE}) == len(TABLE)


def test_jax_crashes_on_full_reversed_scatter():
    """Check a program that ends the process: XLA's simplifier turns this scatter into a map, and aborts.

    A write to all elements of an array is therefore not a scatter here, see ``primitives.index_spec.covers_all``.
    """
    if jax.__version_info__[:2] == OBSERVED:
        code = "import jax; jax.jit(lambda x: x.at[...].set(0.5)[::-1])(jax.numpy.ones(3))"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert ended.returncode == -signal.SIGABRT
        assert "Invalid binary instruction opcode map" in ended.stderr
    np.testing.assert_array_equal(jax.jit(lambda x: fnp.at(x)[...].set(0.5)[::-1])(jnp.ones(3)), 0.5)
