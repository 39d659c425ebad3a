"""Unchanged programs of NumPy and SciPy, without any name of funcgrad: value and derivative in both modes."""

import cmath
import math

import numpy as np
import pytest
from helpers import differences
from numpy_programs import algorithms, classes, language, scipy_calls
from scipy import integrate

from funcgrad import grad, jvp, vmap
from funcgrad.errors import InputError

PROGRAMS = [*algorithms.PROGRAMS, *classes.PROGRAMS, *language.PROGRAMS, *scipy_calls.PROGRAMS]

#: Tolerances of programs that call solvers with default tolerances: funcgrad's solvers take other steps.
SOLVERS = {
    "initial_value_problem": 1e-9,
    "old_integrator": 1e-9,
    "integrators_by_name": 1e-9,
    "minima": 1e-7,
    "curve_fitting": 1e-4,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # on plain arrays, since NumPy 2.5
@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs(f, x):
    plain = f(x if isinstance(x, float) else x.copy())
    slope = grad(f)(x)
    off = SOLVERS.get(f.__name__, 0.0)
    assert slope == pytest.approx(differences(f, x, 5e-4), rel=max(2e-6, off), abs=2e-7)
    direction = 1.0 if isinstance(x, float) else np.cos(np.arange(x.size, dtype=float)).reshape(x.shape)
    value, pushed = jvp(f, (x,), (direction,))
    assert value == pytest.approx(plain, rel=max(1e-12, off))
    assert pushed == pytest.approx(np.sum(slope * direction), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("f", [algorithms.kalman, algorithms.black_scholes, algorithms.hidden_markov, algorithms.garch])
def test_programs_in_batches(f):
    x = dict(PROGRAMS)[f]
    xs = np.stack([x, x * 1.01])
    assert vmap(grad(f))(xs) == pytest.approx(np.stack([grad(f)(x) for x in xs]), rel=1e-10)


def test_named_tuples_with_methods():
    state = classes.State(0.4, 0.7)
    slope = grad(lambda state: state.moved(0.1).energy)(state)
    expected = differences(lambda x: classes.State(*x).moved(0.1).energy, np.array(state), 5e-4)
    assert type(slope) is classes.State
    assert slope == pytest.approx(tuple(expected), rel=1e-8)
    found, slopes = jvp(lambda x: {"all": [classes.State(math.sin(x), x)]}, (1.0,), (1.0,))
    assert type(found["all"][0]) is type(slopes["all"][0]) is classes.State
    assert slopes["all"][0] == pytest.approx((math.cos(1.0), 1.0), rel=1e-15)
    assert type(vmap(lambda x: classes.State(math.sin(x), x))(np.ones(2))) is classes.State


def test_subclasses_lists_original_classes():
    expected = differences(classes.subclasses_found, classes.X, 5e-4)
    for _ in range(2):
        assert grad(classes.subclasses_found)(classes.X) == pytest.approx(expected, rel=1e-8)


def test_python_functions_with_two_results_in_batch():
    radius = grad(lambda x: math.fsum(cmath.polar(complex(x, 0.3))) + math.modf(x)[0] * math.frexp(x)[0])
    assert vmap(radius)(np.array([0.4, 0.5])) == pytest.approx([radius(0.4), radius(0.5)], rel=1e-15)


@pytest.mark.parametrize("options", [{"step": True}, {"relax": True}])
def test_single_integrator_steps_raise(options):
    def stepped(x):
        way = integrate.ode(lambda t, y: -x * y).set_integrator("vode")
        return way.set_initial_value(1.0).integrate(1.0, **options)[0]

    with pytest.raises(InputError, match=r"integrate\.ode: .* step=True"):
        grad(stepped)(0.5)


CACHE = {}


def cached_table(n):
    if n not in CACHE:
        CACHE[n] = np.array([[math.cos(i * j) for j in range(n)] for i in range(n)])
    return CACHE[n]


def test_program_cache_receives_ndarrays():
    x = np.array([0.3, 1.2, 0.7])
    for _ in range(2):
        CACHE.clear()
        slope = grad(lambda x: cached_table(3).dot(x) @ x)(x)
        assert type(CACHE[3]) is np.ndarray
        np.testing.assert_allclose(slope, (CACHE[3] + CACHE[3].T) @ x, rtol=1e-14)


class Names:
    """Names for evaluated code, which can be looked up and not listed, as patsy's."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, name):
        return self.values[name]


def test_evaluated_code_with_names_that_cannot_be_listed():
    def f(x):
        return eval("sin(x) * y", {"y": np.array([x])[0]}, Names({"x": x, "sin": np.sin}))

    def missing(x):
        return eval("sin(x) * y", {}, Names({"x": np.array([x])[0], "sin": np.sin}))

    assert grad(f)(0.5) == pytest.approx(np.sin(0.5) + 0.5 * np.cos(0.5))
    with pytest.raises(NameError, match="'y'"):
        grad(missing)(0.5)
