"""Functions written for NumPy, SciPy and ``math``, compiled by ``jit`` and passed to JAX without changes."""

import dataclasses
import functools
import math
import statistics
from types import FunctionType

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from helpers import at_least
from numpy_programs import classes, language

import funcgrad.numpy as fnp
from funcgrad import as_written, grad, hessian, vmap
from funcgrad.errors import ConcretizationError, ConvergenceError, StagingError
from funcgrad.interop import jit, to_jax

X = np.array([0.7, 1.3, -0.4, 2.1])


def written(x):
    out = np.zeros(5)
    out[0] = x[0]
    for i in range(1, 4):
        out[i] = out[i - 1] * x[i] + math.sin(i)
    return out @ out


def of_math(x):
    return math.exp(x[0]) * math.erf(x[1]) + math.hypot(x[2], x[3]) + math.lgamma(x[1] + 3)


def long_integers(x):
    series = sum((-1) ** k * x[0] ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(13))
    return series + np.sum(x * 2**80 - (x > -(2**70)) * x * 2**80) + np.sum(x / 3**50)


def numbers(x):
    return float(x[0]) * np.sum(x) + x[1].item() * x.tolist()[2]


def converted(x):
    return np.sum(np.asarray(x) ** 2) + np.array([x[0], 2.0, x[1]]) @ np.arange(3.0)


def filled_diagonal(x):
    a = np.diag([1.0, 2.0, 3.0])
    a[0, 1] = x[0]
    a[1, 2] = x[1] * x[2]
    return np.linalg.det(a @ a.T + np.eye(3))


def runge_kutta(x):
    y, h = np.array([x[0], x[1]]), 0.1

    def slope(y):
        return np.array([y[1], -x[2] * y[0]])

    for _ in range(10):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        y = y + h * k2
    return y.sum()


@dataclasses.dataclass
class Decay:
    scale: float
    rate: float

    def __call__(self, t):
        return self.scale * np.exp(-self.rate * np.asarray(t))


def of_an_object(x):
    return np.sum((Decay(x[0], x[1])([0.0, 1.0, 2.0]) - 1) ** 2)


def cached(x):
    @functools.lru_cache
    def fibonacci(n):
        return x[n] if n < 2 else fibonacci(n - 1) * 0.5 + fibonacci(n - 2)

    return math.sqrt(fibonacci(8) ** 2)


def of_statistics(x):
    return statistics.fmean(x) + np.var(x)


def likelihood(x):
    return scipy.stats.norm.logpdf(np.arange(5.0), x[0], np.exp(x[1])).sum()


def specials(x):
    return scipy.special.gammaln(x[1] + 2) + scipy.special.logsumexp(x) + scipy.special.expit(x).sum()


def simpson(x):
    t = np.linspace(0, 1, 21)
    return scipy.integrate.simpson(np.exp(x[0] * t), x=t)


def spline(x):
    return scipy.interpolate.CubicSpline(np.arange(4.0), x)(1.7)


def exponential(x):
    return np.trace(scipy.linalg.expm(np.outer(x, x) / 10))


def filtered(x):
    return scipy.signal.lfilter([1, 0.5], [1, -0.3], x) @ x


def statistics_of_samples(x):
    both = np.stack([x, x**2])
    moments = scipy.stats.skew(x) + np.sum(scipy.stats.kurtosis(both, axis=1)) + scipy.stats.sem(x)
    tests = scipy.stats.ttest_1samp(x, 0.0).pvalue + scipy.stats.ttest_ind(x, x * 2).statistic
    compared = scipy.stats.f_oneway(x, x * 2 + 1).statistic + scipy.stats.pearsonr(x, x**3)[0]
    return moments + tests + compared + scipy.stats.gstd(x**2)


def chosen_by_one_number(x):
    y = x * 2
    y[x[0] > 1] = 0.0
    y[x[1] > 1] = x**2
    return np.sum(y)


PROGRAMS = [
    written,
    of_math,
    long_integers,
    numbers,
    converted,
    filled_diagonal,
    runge_kutta,
    of_an_object,
    cached,
    of_statistics,
    statistics_of_samples,
    chosen_by_one_number,
    likelihood,
    specials,
    simpson,
    spline,
    exponential,
    filtered,
]


#: Programs that use many features of Python.
ODD = [*classes.PROGRAMS, *language.PROGRAMS]
#: Programs that need values: in branches, loops, lengths and texts.
UNKNOWN = {
    "assertions",
    "cached_recursion",
    "while_loops",
    "formatted",
    "texts_filled_by_percent",
}


def fresh(f):
    """Return a copy of the function that no transform has seen."""
    return FunctionType(f.__code__.replace(), f.__globals__, f.__name__)


@pytest.mark.parametrize("f", PROGRAMS)
def test_unchanged_programs(f):
    value, slope = f(X), grad(f)(X)
    given, inner = jax.numpy.asarray(X), jit(fresh(f))
    found = {
        "jit": (jit(fresh(f))(X), value),
        "gradient of jit": (grad(jit(fresh(f)))(X), slope),
        "jit of the gradient": (jit(grad(fresh(f)))(X), slope),
        "jit of vmap": (jit(vmap(fresh(f)))(np.stack([X, X]))[1], value),
        "jit in jit": (jit(lambda x: 2 * inner(x))(X), 2 * value),
        "jax.jit of jax.grad": (jax.jit(jax.grad(to_jax(fresh(f))))(given), slope),
        "jax.vmap": (jax.vmap(to_jax(fresh(f)))(jax.numpy.stack([given, given]))[1], value),
    }
    for way, (out, expected) in found.items():
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12, err_msg=way)


@pytest.mark.parametrize("f", [written, likelihood])
def test_second_derivatives(f):
    expected = hessian(f)(X)
    np.testing.assert_allclose(hessian(jit(fresh(f)))(X), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(jit(hessian(fresh(f)))(X), expected, rtol=1e-8, atol=1e-9)


def test_second_call_is_compiled():
    runs = []

    def f(x):
        runs.append(1)
        return math.sin(x[0]) + float(x[1])

    compiled = jit(f)
    first = compiled(X)
    count = len(runs)
    assert compiled(X + 0) == pytest.approx(first)
    assert len(runs) == count


@pytest.mark.parametrize("f", [written, of_math, numbers, likelihood])
def test_as_written_turns_rebuild_off(f):
    with as_written(), pytest.raises((StagingError, ValueError)):
        jit(fresh(f))(X)
    with as_written(), pytest.raises((StagingError, ValueError)):
        jax.jit(to_jax(fresh(f)))(X)


def test_points_chosen_by_values_are_refused_after_rebuild():
    with pytest.raises(StagingError, match=r"integrate\.quad: points are chosen by values"):
        jit(lambda x: scipy.integrate.quad(lambda t: np.exp(-x[0] * t), 0, 1)[0])(X)


def scaled(x, n):
    return math.sin(x[0]) * n


class Model:
    def __init__(self):
        self.w = np.array([1.0, 2.0, 3.0, 4.0])

    def loss(self, x):
        return math.sin(x[0]) + self.w.dot(x)

    def __call__(self, x):
        return math.cos(x[0])


def test_all_kinds_of_callables():
    sine, model = math.sin(X[0]), Model()
    assert jit(fresh(scaled), static_argnums=1)(X, 3) == pytest.approx(3 * sine)
    assert jit(fresh(scaled), static_argnames="n")(X, n=3) == pytest.approx(3 * sine)
    assert jit(functools.partial(fresh(scaled), n=2))(X) == pytest.approx(2 * sine)
    assert jit(model.loss)(X) == pytest.approx(model.loss(X))
    assert jit(model)(X) == pytest.approx(model(X))
    for each in (np.vectorize, fnp.vectorize):
        np.testing.assert_allclose(jit(each(lambda x: math.sin(x)))(X), np.sin(X))


def test_closure_over_values_of_other_transform():
    def f(w):
        return jit(lambda x: math.sin(w) * np.asarray(x)[0])(X)

    assert grad(f)(0.3) == pytest.approx(math.cos(0.3) * X[0])
    np.testing.assert_allclose(vmap(f)(np.array([0.3, 0.4])), np.sin([0.3, 0.4]) * X[0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy.integrate.quad(lambda t: np.exp(-x[0] * t) * np.cos(x[1] * t), 0.0, x[3])[0],
        lambda x: scipy.integrate.dblquad(lambda a, b: a * b * x[0], 0.0, 1.0, 0.0, lambda a: x[1])[0],
        lambda x: scipy.stats.beta(2, 3).logpdf(scipy.special.expit(x)).sum(),
        lambda x: scipy.optimize.newton(
            lambda z: z - 0.1 * x[0] * np.sin(z) - x[1],
            x[1] if at_least(jax, "0.5.0") else 0.7,  # JAX 0.4 traces the flag of success, too
            fprime=lambda z: 1 - 0.1 * x[0] * np.cos(z),
        ),
    ],
    ids=["quad", "dblquad", "beta with integers", "newton from a traced point"],
)
def test_jax_differentiates(f):
    np.testing.assert_allclose(to_jax(f)(X), f(X), rtol=1e-9)
    np.testing.assert_allclose(jax.grad(to_jax(f))(X), grad(f)(X), rtol=1e-7)


def test_statistics_of_unknown_numbers_keep_nans():
    x = np.array([0.7, np.nan, -0.4, 2.1])
    assert np.isnan(jit(scipy.stats.skew)(x))
    errors = jit(lambda x: scipy.stats.sem(x, axis=1, keepdims=True))(np.stack([x, X]))
    assert np.isnan(errors).tolist() == [[True], [False]]
    omitting = lambda x: scipy.stats.skew(x, nan_policy="omit")
    if at_least(scipy, "1.18.0"):  # its code selects x[~mask]
        assert jit(omitting)(x) == pytest.approx(omitting(x))
    else:
        with pytest.raises(StagingError):
            jit(omitting)(x)


def test_root_that_has_not_converged_has_no_derivative_in_jax():
    def f(x):
        residual = lambda z: np.array([z[0] ** 2 + x[1] - z[1], z[1] - x[3] * z[0]])
        return scipy.optimize.root(residual, [2.0, 3.0]).x[0]

    assert to_jax(f)(X) == pytest.approx(f(X))
    for transform in (grad, lambda f: jax.grad(to_jax(f))):
        with pytest.raises(ConvergenceError, match="the solver has not converged"):
            transform(f)(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize(("f", "x"), ODD, ids=[f.__name__ for f, _ in ODD])
def test_odd_programs_are_correct_or_raise(f, x):
    """Check that a program that catches errors, or checks types, gives the plain result or raises."""
    expected = f(x if isinstance(x, float) else x.copy())
    try:
        found = jit(f)(x)
    except (StagingError, ConcretizationError):
        assert f.__name__ in UNKNOWN
    else:
        assert f.__name__ not in UNKNOWN
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
