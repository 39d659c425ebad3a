"""What a run of rebuilt code does when it ends."""

import gc
import math

import numpy as np
import pytest

from funcgrad import checkpoint, grad, hessian, jacfwd, jvp, no_grad, value_and_grad, vjp, vmap
from funcgrad.errors import EscapedTracerError
from funcgrad.numpy_code.reachable import reachable
from funcgrad.numpy_code.replacements import Run, end_run


class Ending:
    compared = 0

    def __init__(self, calls):
        self.calls = calls

    def __call__(self):
        self.calls.append(self)

    def __eq__(self, other):
        Ending.compared += 1
        return self is other

    __hash__ = object.__hash__


def test_endings_are_called_once_without_a_search():
    """A run has an ending for each list of the tables that it reads, so a search for each would take quadratic time."""
    calls, run = [], Run()
    endings = [Ending(calls) for _ in range(200)]
    for ending in [*endings, *endings]:
        run.at_end(ending)
    end_run(run)
    assert calls == endings
    assert not run.endings
    assert Ending.compared <= len(endings) * 2


def test_value_kept_by_the_stopped_run_is_refused_in_the_next():
    kept = {}

    def fun(x):
        y = kept.get("x", 0.0) + x
        kept["x"] = x
        return math.sin(y)

    with pytest.raises(EscapedTracerError) as caught:
        grad(fun)(0.5)
    assert "wrote a traced value to an object outside of it" in caught.value.__notes__[0]


INNER = {
    "vmap": vmap,
    "grad": lambda f: grad(lambda y: f(y).sum()),
    "jvp": lambda f: lambda y: jvp(f, (y,), (y,)),
    "vjp": lambda f: lambda y: vjp(f, y),
    "jacfwd": jacfwd,
    "hessian": lambda f: hessian(lambda y: f(y).sum()),
    "checkpoint": checkpoint,
    "no_grad": no_grad,
}


@pytest.mark.parametrize("name", INNER)
def test_writes_in_an_inner_transform_reach_the_array_of_the_function_around_it(name):
    """Check that a function is rebuilt too whose array a rebuilt function inside of it writes to."""

    def f(x):
        made = np.zeros(1)

        def inner(y):
            made[0] = x * 2.0
            return y

        INNER[name](inner)(np.ones(2))
        return made[0] * x

    for _ in range(2):
        assert value_and_grad(f)(3.0) == (18.0, 6.0 if name == "no_grad" else 12.0)
        assert jvp(f, (3.0,), (1.0,))[1] == (6.0 if name == "no_grad" else 12.0)


def test_arrays_that_a_function_only_works_in_may_lie_outside():
    work = np.zeros(3)

    def f(x):
        work[:] = 2.0 * x
        return (work**2).sum()

    def g(x):
        return grad(f)(x) @ x

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(hessian(f)(x), 8.0 * np.eye(3))
    np.testing.assert_array_equal(grad(g)(x), 16.0 * x)
    np.testing.assert_array_equal(vmap(grad(g))(np.stack([x, x])), np.stack([16.0 * x] * 2))


def test_tables_that_the_garbage_collector_changes():
    """Weak references remove entries of tables when objects are collected, as while a function is searched."""
    tables, threshold = [{0: 1} for _ in range(30)], gc.get_threshold()

    def fun():
        return tables

    def change(phase, info):
        for table in tables:
            table[len(table)] = 1

    gc.callbacks.append(change)
    try:
        for often in range(1, 6):
            gc.set_threshold(often)
            for count in range(6):
                held = [[] for _ in range(count)]  # the collection comes elsewhere
                assert len(list(reachable(fun))) == len(tables) + 2, held
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(change)
