"""Programs of NumPy and SciPy as they stand, without a name of funcgrad's: value and derivative in both modes."""

import numpy as np
import pytest
from helpers import differences
from numpy_programs import algorithms, language, scipy_calls

from funcgrad import grad, jvp, vmap

PROGRAMS = [*algorithms.PROGRAMS, *language.PROGRAMS, *scipy_calls.PROGRAMS]

#: Programs whose values are those of solvers, to the tolerances that these have by default: ours takes other steps.
SOLVERS = {"initial_value_problem": 1e-9, "old_integrator": 1e-9, "minima": 1e-7, "curve_fitting": 1e-4}


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
def test_batches(f):
    x = dict(PROGRAMS)[f]
    xs = np.stack([x, x * 1.01])
    assert vmap(grad(f))(xs) == pytest.approx(np.stack([grad(f)(x) for x in xs]), rel=1e-10)
