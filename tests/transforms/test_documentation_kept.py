"""Docstrings of transformed functions: the function's documentation first, then a note of the transform."""

import asyncio
import inspect
import pydoc

import numpy as np
import pytest

from funcgrad import checkpoint, debug_nans, grad, no_grad, strict, vmap
from funcgrad.errors import InputError
from funcgrad.interop import from_numpy

SAME = {
    "no_grad": no_grad,
    "no_grad()": lambda f: no_grad()(f),
    "checkpoint": checkpoint,
    "checkpoint()": lambda f: checkpoint()(f),
    "debug_nans": debug_nans,
    "strict": strict,
    "from_numpy": from_numpy,
}


def scaled(x, *, by=2.0):
    """Scale x.

    By two, if nothing else is said.
    """
    return x * by


def undocumented(x):
    return x


class Model:
    """A model."""

    def __call__(self, x):
        return x

    @no_grad()
    def method(self, x):
        """Of an instance."""
        return x * 2

    @classmethod
    @no_grad
    def of_class(cls, x):
        """Of the class."""
        return x * 2

    @staticmethod
    @no_grad()
    def static(x):
        """Of nobody."""
        return x * 2

    @no_grad()
    def steps(self, x):
        """In steps."""
        yield x * 2

    @no_grad()
    async def waiting(self, x):
        """Later."""
        await asyncio.sleep(0)
        return x * 2


@pytest.mark.parametrize("name", SAME)
def test_function_docstring_comes_first(name):
    made = SAME[name](scaled)
    lines = made.__doc__.splitlines()
    assert lines[:3] == ["Scale x.", "", "By two, if nothing else is said."]
    assert lines[3] == ""
    assert "scaled" in lines[4]
    assert len(lines) == 5
    assert (made.__name__, str(inspect.signature(made))) == ("scaled", "(x, *, by=2.0)")
    shown = pydoc.plain(pydoc.render_doc(made))
    assert shown.index("Scale x.") < shown.index(lines[4])
    assert made(3.0) == 6.0


@pytest.mark.parametrize("name", SAME)
def test_note_is_first_without_docstring(name):
    assert "undocumented" in SAME[name](undocumented).__doc__.splitlines()[0]


@pytest.mark.parametrize("transform", [grad, vmap])
def test_note_comes_first_if_result_differs(transform):
    lines = transform(scaled).__doc__.splitlines()
    assert "scaled" in lines[0]
    assert "Scale x." in lines


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("method", "Of an instance."),
        ("of_class", "Of the class."),
        ("static", "Of nobody."),
        ("steps", "In steps."),
        ("waiting", "Later."),
    ],
)
def test_methods_and_generators(name, says):
    method = getattr(Model(), name)
    assert method.__doc__.splitlines() == [says, "", f"{name} without recording: its result is a constant."]
    assert str(inspect.signature(method)) == "(x)"

    def result(x):
        out = method(x)
        if name == "steps":
            return next(out) * x
        return (asyncio.run(out) if name == "waiting" else out) * x

    assert grad(result)(3.0) == 6.0


def test_instances_of_classes():
    assert no_grad(Model())(2.0) == 2.0
    assert inspect.iscoroutinefunction(Model.waiting)
    np.testing.assert_array_equal(grad(lambda x: x + no_grad(Model())(x))(2.0), 1.0)


def test_concurrent_coroutines_do_not_mix():
    order = []

    @no_grad
    async def constant(x, turns):
        for _ in range(turns):
            order.append(turns)
            await asyncio.sleep(0)
        return x * x

    async def both(x):
        async def recorded():
            await asyncio.sleep(0)
            return x * x

        a, b, c = await asyncio.gather(constant(x, 1), recorded(), constant(x, 3))
        return a * x + b + c * x

    assert grad(lambda x: asyncio.run(both(x)))(3.0) == 9.0 + 6.0 + 9.0
    assert order[:2] == [1, 3]


def test_asynchronous_generator_raises():
    async def values(x):
        yield x

    with pytest.raises(InputError, match=r"^no_grad: .* values\. Put"):
        no_grad(values)
