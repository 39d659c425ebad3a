"""``max``, ``min`` and ``sorted`` of Python where the examples of a batch order their numbers differently."""

import functools
import itertools
import math

import numpy as np
import pytest
from helpers import differences

from funcgrad import as_written, grad, hessian, jacfwd, vmap
from funcgrad.interop import jit

PROGRAMS = {
    "two": lambda x: max(x[0] * x[1], x[2]) + min(x[0], 0.5, x[1] ** 2),
    "clamped": lambda x: min(max(x[0] - x[1], 0.0), 0.4) * x[2] + max(0, x[1] - 0.6),
    "generator": lambda x: max(abs(a - b) for a, b in zip(x, [0.3, 0.2, 0.9], strict=True)) * math.sin(x[0]),
    "array": lambda x: max(x**2) * min(np.sin(x)),
    "key": lambda x: max(x, key=lambda t: -((t - 0.5) ** 2)) * x[1] + min([x[0], x[1]], key=math.sin, default=3.0),
    "default": lambda x: max([], default=x[0]) + min([x[1]], default=2.0) * max([x[0], x[2]], default=1.0),
    "marks of constants": lambda x: max([0.2, 0.7, 0.4], key=lambda t: math.sin(t * x[0])) * x[1],
    "sorted": lambda x: sum(i * t**2 for i, t in enumerate(sorted([x[0], x[1] * x[2], 0.4, 1]))),
    "sorted by key": lambda x: sum(
        i * t for i, t in enumerate(sorted([x[0] ** 2, x[1], x[2]], reverse=True, key=lambda t: math.sin(3.0 * t)))
    ),
    "median": lambda x: sorted(x)[1] * x[0],
    "passed to a function": lambda x: (
        functools.reduce(max, [x[0] * x[1], x[1], x[2]]) * math.sin(x[1])
        + sum(map(min, [x[0], x[1]], [x[1], 0.5]))
        + sum(itertools.accumulate(x, max))
        + functools.partial(max, 0.3)(x[0], x[2])
    ),
}
POINTS = np.random.default_rng(0).uniform(0.1, 1.0, (7, 3))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    alone = [f(x) for x in POINTS]
    np.testing.assert_allclose(vmap(f)(POINTS), alone, rtol=1e-14)
    slopes = [grad(f)(x) for x in POINTS]
    for x, slope in zip(POINTS[:2], slopes, strict=False):
        measured = [differences(lambda t, x=x, e=e: f(x + t * e), 0.0, 1e-5) for e in np.eye(3)]
        np.testing.assert_allclose(slope, measured, rtol=1e-6, atol=1e-8)
    for found in (vmap(grad(f))(POINTS), vmap(jacfwd(f))(POINTS), grad(lambda x: vmap(f)(x).sum())(POINTS)):
        np.testing.assert_allclose(found, slopes, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(vmap(hessian(f))(POINTS), [hessian(f)(x) for x in POINTS], rtol=1e-10, atol=1e-12)
    two = vmap(vmap(grad(f)))(POINTS[:6].reshape(2, 3, 3))
    np.testing.assert_allclose(two.reshape(6, 3), slopes[:6], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["two", "generator", "key", "sorted by key"])
def test_compiled_by_jax(name):
    f = PROGRAMS[name]
    for x in POINTS[:2]:
        np.testing.assert_allclose(jit(f)(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(jit(grad(f))(x), grad(f)(x), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", [lambda a, b: max(a, b), lambda a, b: min(a, b), lambda a, b: sorted([a, b])[1]])
def test_first_of_equal_numbers_is_taken(f):
    """The third example has equal numbers, the fourth a NaN in front, which no comparison replaces."""
    a, b = np.array([1.0, 3.0, 2.0]), np.array([2.0, 1.0, 2.0])
    slopes = vmap(grad(f, (0, 1)))(a, b)
    np.testing.assert_array_equal(np.transpose(slopes), [grad(f, (0, 1))(*pair) for pair in zip(a, b, strict=True)])


def test_number_that_is_not_a_number_is_kept_as_python_keeps_it():
    a, b = np.array([np.nan, 1.0, 3.0]), np.array([1.0, np.nan, 2.0])
    np.testing.assert_array_equal(vmap(lambda x, y: max(x, y))(a, b), [max(x, y) for x, y in zip(a, b, strict=True)])


def test_other_calls_are_pythons():
    words = ["pear", "fig", "apple"]

    def f(x):
        assert (max(words), min(words, key=len), sorted(words, key=len)) == ("pear", "fig", ["fig", "pear", "apple"])
        assert (max(3, 2.5), max({1: 2, 5: 1}), min((2, 1), (1, 9))) == (3, 5, (1, 9))
        assert max(iter([x, 2.0 * x])) is not None
        assert sorted([3, 1, 2], reverse=True) == [3, 2, 1]
        return max(x, 1.0) * math.sin(x)

    x = np.array([0.5, 2.0])
    np.testing.assert_allclose(vmap(f)(x), [f(0.5), f(2.0)], rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: max(), "max expected at least 1 argument"),
        (lambda x: max([]), r"max\(\) (arg|iterable argument) is (an empty sequence|empty)"),
        (lambda x: max(x, 2.0, default=1.0), "Cannot specify a default"),
        (lambda x: max([x, 2.0], other=1.0), "unexpected keyword argument|invalid keyword argument"),
        (lambda x: min(3), "'int' object is not iterable"),
    ],
)
def test_wrong_calls_raise_as_pythons(f, message):
    with pytest.raises((TypeError, ValueError), match=message):
        grad(lambda x: math.sin(x) + f(x))(0.5)
    with pytest.raises((TypeError, ValueError), match=message):
        vmap(lambda x: math.sin(x) + f(x))(np.ones(2))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: max(np.array([x, 1.0]), np.array([2.0, x])).sum(),
        lambda x: max((x, 1.0), (1.0, x))[0],
        lambda x: sorted([(x, 1.0), (1.0, x)])[0][0],
    ],
)
def test_what_is_no_number_raises_where_examples_differ(f):
    with pytest.raises((TypeError, ValueError)):
        vmap(f)(np.array([0.5, 2.0]))


def test_as_written_raises():
    with as_written(), pytest.raises(TypeError, match="differs between the 2 examples"):
        vmap(lambda x: max(x, 1.0))(np.array([0.5, 2.0]))


def test_key_is_called_once_for_each_item():
    calls = []

    def mark(t):
        calls.append(1)
        return t * t

    f = lambda x: max([x, 1.0, 2.0 * x], key=mark) + float(x)
    assert grad(f)(0.2) == 1.0
    calls.clear()
    grad(f)(0.2)
    assert len(calls) == 3
