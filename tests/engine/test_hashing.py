"""A traced value is not hashable: dictionaries, sets and caches raise an error that says what to do instead."""

import copy
import functools
import weakref

import numpy as np
import pytest
import toolz
from helpers import in_one_test

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, linearize, trace, vjp, vmap
from funcgrad.errors import ConcretizationError

pytestmark = pytest.mark.usefixtures("written")

cached = functools.lru_cache(lambda x: x * x)
memoized = toolz.memoize(lambda x: x * x)
KEYS = {
    "hash": hash,
    "dictionary": lambda x: {x: 1},
    "look-up": lambda x: {1.0: 2.0}.get(x),
    "set": lambda x: {x},
    "frozenset": lambda x: frozenset([x]),
    "in a set": lambda x: x in {1.0, 2.0},
    "tuple as key": lambda x: {(1, x): 1},
    "dict.fromkeys": lambda x: dict.fromkeys([x]),
    "lru_cache": cached,
    "memoize": memoized,
    "unique": lambda x: list(toolz.unique([x, x])),
    "groupby": lambda x: toolz.groupby(lambda v: v, [x]),
}
RUNS = {
    "grad": lambda f, x: grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "vmap": lambda f, x: vmap(f)(np.stack([x, x])),
    "linearize": lambda f, x: linearize(f, x),
    "trace": lambda f, x: trace(f)(x),
    "grad of vmap": lambda f, x: grad(lambda x: fnp.sum(vmap(f)(fnp.stack([x, x]))))(x),
}


@in_one_test({"x": [1.0, np.ones(2)], "run": RUNS, "key": KEYS})
def test_tracer_as_key_raises(key, run, x):
    def fun(x):
        KEYS[key](x)
        return x

    with pytest.raises(ConcretizationError, match=r"^hash\(x\): a traced (number|array) .* got float64.*:"):
        RUNS[run](fun, x)
    assert cached.cache_info().currsize == 0


def test_buffer_as_key_raises():
    with pytest.raises(ConcretizationError, match=r"^hash\(x\)"):
        grad(lambda x: x * len({fnp.zeros(2)}))(1.0)


def test_identity_lookups_work():
    def fun(x):
        seen = {id(x): x}
        alive = weakref.WeakValueDictionary(x=x)
        by_place = weakref.ref(x)
        assert seen[id(x)] is x
        assert alive["x"] is by_place() is x
        return x * copy.deepcopy({"x": x})["x"]

    for run in RUNS.values():
        run(fun, 3.0)
    assert grad(fun)(3.0) == 6.0


def test_cache_of_static_values_works():
    @functools.lru_cache
    def weights(n):
        return np.arange(float(n))

    assert grad(lambda x: fnp.sum(weights(4) * x))(2.0) == 6.0
