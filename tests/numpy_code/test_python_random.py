"""Python's module ``random``: numbers with traced parameters, from its hidden source, from sources made outside and
inside, and from a program's own class of sources.
"""

import copy
import math
import random
from random import choices, gammavariate

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, hessian, jvp, vmap

OUTSIDE = random.Random(5)


class Doubling(random.Random):
    def twice(self, x):
        return 2 * self.lognormvariate(x, 1.0)


OWN = Doubling(4)

DRAWS = {
    "betavariate": lambda x: random.betavariate(x + 1, x),
    "choice": lambda x: math.exp(random.choice([x, 2 * x])),
    "choices": lambda x: sum(choices([x, 2 * x, 3 * x], weights=[x, 1, 1], k=4)),
    "cum_weights": lambda x: math.exp(choices([x, 2 * x], cum_weights=[x, 3 * x])[0]),
    "expovariate": lambda x: random.expovariate(x),
    "gammavariate": lambda x: gammavariate(x + 1, x) + gammavariate(0.5, x),
    "gauss": lambda x: random.gauss(x, x) * random.gauss(1.0, x),
    "lognormvariate": lambda x: random.lognormvariate(x, x),
    "normalvariate": lambda x: random.normalvariate(x, x),
    "paretovariate": lambda x: random.paretovariate(x),
    "sample": lambda x: math.exp(sum(random.sample([x, 2 * x, 3 * x], 2))),
    "triangular": lambda x: random.triangular(0.0, x, x / 2),
    "uniform": lambda x: random.uniform(x, 2 * x),
    "vonmisesvariate": lambda x: random.vonmisesvariate(x, x),
    "weibullvariate": lambda x: random.weibullvariate(x, x),
}


def seeded(draw):
    def drawn(x):
        random.seed(3)
        return draw(x)

    return drawn


@pytest.mark.parametrize("name", DRAWS)
def test_parameters_have_derivatives(name):
    drawn = seeded(DRAWS[name])
    value, tangent = jvp(drawn, (0.7,), (1.0,))
    assert value == drawn(0.7)
    assert tangent == pytest.approx(differences(drawn, 0.7), rel=1e-6, abs=1e-9)
    assert grad(drawn)(0.7) == pytest.approx(tangent, rel=1e-12)
    assert hessian(drawn)(0.7) == pytest.approx(differences(grad(drawn), 0.7), rel=1e-5, abs=1e-7)


def outside(x):
    OUTSIDE.seed(1)
    first, second = OUTSIDE.gauss(x, 1.0), OUTSIDE.gauss(x, 1.0)  # the second comes from the same two numbers
    return first * second * OUTSIDE.gammavariate(x + 1, 1.0) * OUTSIDE.random()


def of_own_class(x):
    OWN.seed(3)
    return OWN.twice(x) * math.exp(x)


def repeated(x):
    random.seed(4)
    state = random.getstate()
    first = gammavariate(x + 1, x)
    random.setstate(state)
    return first + gammavariate(x + 1, 2 * x)


def inside(x):
    return random.Random(3).betavariate(x + 1, x) * math.sin(x)


@pytest.mark.parametrize("drawn", [outside, of_own_class, repeated, inside])
def test_sources_keep_their_state(drawn):
    assert grad(drawn)(0.7) == pytest.approx(differences(drawn, 0.7), rel=1e-6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_a_source(copied):
    drawn = lambda x: copied(OUTSIDE).lognormvariate(x, x)
    state = OUTSIDE.getstate()
    assert grad(drawn)(0.7) == pytest.approx(differences(drawn, 0.7), rel=1e-6)
    assert OUTSIDE.getstate() == state


def test_draws_advance_the_source():
    drawn = seeded(lambda x: gammavariate(2.0, x))
    drawn(1.0)
    expected = random.random()
    grad(drawn)(1.0)
    assert random.random() == expected


def test_each_example_of_a_batch_scales_the_same_number():
    drawn = seeded(lambda x: random.lognormvariate(0.0, 1.0) * math.exp(x))
    slopes = vmap(grad(drawn))(np.array([0.0, 1.0]))
    assert slopes == pytest.approx([drawn(0.0), drawn(1.0)])
