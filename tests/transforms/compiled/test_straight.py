"""A recorded function that is called very often, as straight NumPy code."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import custom_jvp
from funcgrad.errors import EagerWarning
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.compiled import straight as module
from funcgrad.transforms.compiled.straight import StraightProgram

X = np.array([0.3, -1.2, 2.5])


def straight_program(fun):
    """Return ``fun`` of an array like ``X`` as a program."""
    found = StraightProgram(RecordedClosure("test", fun, X)).program(X.shape, [])
    return found and (lambda x: found[0](x, *found[1])[0])


def test_straight_code_matches_function():
    fun = lambda x: fnp.tanh(x) * 2.0 + fnp.cumsum(x)
    program = straight_program(fun)
    for x in (X, X * 3.0):
        np.testing.assert_allclose(program(x), fun(x), rtol=1e-15)


def test_equal_recordings_share_a_program():
    first, second = [straight_program(lambda x, c=c: fnp.sin(x) * np.array([c, 1.0, 2.0])) for c in (1.0, 5.0)]
    assert second(X)[0] == 5.0 * first(X)[0]


@custom_jvp
def branching(x):
    return fnp.cumsum(x) if x[0] > 0 else x


branching.defjvp(lambda primals, tangents: (branching(*primals), tangents[0] * 2.0))


def test_branch_on_values_gives_no_code():
    assert straight_program(lambda x: branching(x) * 2.0) is None


def test_differing_program_warns_once(monkeypatch):
    monkeypatch.setattr(module, "difference_message", lambda *args: "the recorded result 0 has different bits")
    fun = lambda x: fnp.sinh(x) * 11.0
    with pytest.warns(EagerWarning, match=r"^test: .*result 0 has different bits"):
        assert straight_program(fun) is None
    assert straight_program(fun) is None  # warnings are errors here


def test_failed_generation_raises(monkeypatch):
    def broken(*args):
        raise KeyError("v7")

    monkeypatch.setattr(module, "generate", broken)
    with pytest.raises(KeyError, match="v7"):
        straight_program(lambda x: fnp.cos(x) * 7.0)
