"""What a run of rebuilt code does when it ends."""

import math

import pytest

from funcgrad import grad
from funcgrad.errors import EscapedTracerError
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
