"""Blocks and transforms inside the bodies of loops and branches, on NumPy and compiled, under every transform."""

from functools import cache

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint, debug_nans, grad, jvp, no_grad, strict, value_and_grad, vmap
from funcgrad.errors import NanError
from funcgrad.interop import jit
from funcgrad.transforms.control import cond, fori_loop, scan, while_loop
from funcgrad.transforms.control import map as map_examples

YS = np.array([1.5, 0.5, 0.7])


def inside(block):
    def wrapper(body):
        def run(*args):
            with block():
                return body(*args)

        return run

    return wrapper


def promoted_constant(body):
    def run(c, y):
        with no_grad():
            offset = c - c
        return body(c, y) + offset

    return run


def with_own_gradient(block):
    """Add a gradient inside of the body, which runs a backward pass there."""

    def wrapper(body):
        def run(c, y):
            with block():
                value, slope = value_and_grad(lambda v: body(v, y))(c)
            return value + 0.0 * slope

        return run

    return wrapper


WRAPPERS = {
    "debug_nans": debug_nans,
    "with debug_nans": inside(debug_nans),
    "strict": strict,
    "with strict": inside(strict),
    "with no_grad": promoted_constant,
    "checkpoint": checkpoint,
    "strict in debug_nans": lambda body: strict(inside(debug_nans)(body)),
    "debug_nans in checkpoint": lambda body: checkpoint(debug_nans(body)),
    "a gradient in debug_nans": with_own_gradient(debug_nans),
    "a gradient in strict": with_own_gradient(strict),
}


def body(c, y):
    return fnp.sin(c) * y


PROGRAMS = {
    "scan": lambda step, x: scan(lambda c, y: (step(c, y), None), x, YS)[0],
    "closing over x": lambda step, x: scan(lambda c, y: (c + step(x, y), None), x * 0.0, YS)[0],
    "cond": lambda step, x: cond(x > 0, lambda v: step(v, 1.5), lambda v: v, x),
    "while_loop": lambda step, x: while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1], 1.5)), (0, x))[1],
    "fori_loop": lambda step, x: fori_loop(0, 3, lambda i, c: step(c, 1.5), x),
    "map": lambda step, x: fnp.sum(map_examples(lambda y: step(x, y), YS)),
}
RUNS = {
    "plain": lambda f, x: f(x),
    "jit": lambda f, x: jit(f)(x),
    "vmap": lambda f, x: vmap(f)(np.array([x, x + 0.2])),
    "grad": lambda f, x: grad(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (1.0,))[1],
    "jit of grad": lambda f, x: jit(grad(f))(x),
    "grad of jit": lambda f, x: grad(jit(f))(x),
    "vmap of grad": lambda f, x: vmap(grad(f))(np.array([x, x + 0.2])),
    "grad of grad": lambda f, x: grad(grad(f))(x),
}
#: JAX has no reverse mode of loops of unknown length.
LENGTH_UNKNOWN = {("while_loop", "jit of grad"), ("while_loop", "grad of jit")}
PLACES = [(p, r) for p in PROGRAMS for r in RUNS if (p, r) not in LENGTH_UNKNOWN]


@pytest.mark.parametrize("place", PLACES, ids=" under ".join)
@pytest.mark.parametrize("name", WRAPPERS)
def test_block_in_body_changes_no_value(name, place):
    np.testing.assert_allclose(result_of(WRAPPERS[name](body), place), without_a_block(place), rtol=1e-12)


def result_of(step, place):
    program, run = PROGRAMS[place[0]], RUNS[place[1]]
    return np.asarray(run(lambda x: program(step, x), 0.5))


@cache
def without_a_block(place):
    return result_of(body, place)


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name != "cond"])
def test_no_grad_in_body_is_constant(program):
    fun = lambda x: x * PROGRAMS[program](no_grad(body), x)
    for run in (grad(fun), jit(grad(fun)) if program != "while_loop" else grad(fun)):
        np.testing.assert_allclose(np.asarray(run(0.5)), PROGRAMS[program](body, 0.5), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_debug_nans_in_body_finds_nan(program):
    bad = debug_nans(lambda c, y: fnp.log(c - 10.0) * y)
    with pytest.raises(NanError):
        grad(lambda x: PROGRAMS[program](bad, x))(0.5)
