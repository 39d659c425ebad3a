"""Generated functions are compiled at their first call, and otherwise behave like functions in a file."""

import ast
import builtins
import inspect
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from funcgrad import generated

TEXT = "def operation(x, y, /, *rest, **params):\n    return factor * x / y + sum(rest) + len(params)"


def made(**values):
    return generated.make_function("ratio", TEXT, {"__name__": __name__}, **values)


def test_first_call_passes_arguments_like_later_calls():
    ratio = made(factor=2)
    assert str(inspect.signature(ratio)) == "(x, y, /, *rest, **params)"
    assert ratio(6, 3, 1, 2, a=5) == ratio(6, 3, 1, 2, a=5) == 8
    assert str(inspect.signature(ratio)) == "(x, y, /, *rest, **params)"
    assert (ratio.__name__, ratio.__qualname__, ratio.__module__) == ("ratio", "ratio", __name__)


def test_functions_from_one_text_have_own_values():
    double, triple = made(factor=2), made(factor=3)
    assert (double(1, 1), triple(1, 1), double(1, 1)) == (2, 3, 2)
    assert generated.own_values(triple) == {"factor": 3}
    assert generated.source_of(double).startswith("# factor: 2\ndef ratio(x, y, /, *rest, **params):\n")


@pytest.mark.parametrize("call", [1, 2])
def test_tracebacks_show_the_line_that_ran(call):
    ratio = made(factor=2)
    if call == 2:
        ratio(1, 1)
    with pytest.raises(ZeroDivisionError) as caught:
        ratio(1, 0)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.line) == ("ratio", "return factor * x / y + sum(rest) + len(params)")
    assert last.filename == f"<generated for {__name__}>"


def test_call_after_interrupted_first_call_works(monkeypatch):
    ratio = made(factor=2)

    def interrupted(text, file):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(generated, "_compile_text", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ratio(1, 1)
    assert ratio(1, 1) == 2


def test_first_call_in_several_threads():
    for factor in range(50):
        ratio = made(factor=factor)
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _, ratio=ratio: ratio(2, 1), range(8))) == [2 * factor] * 8


def test_recursive_function_keeps_its_own_values():
    text = "def operation(n):\n    return 1 if n < 1 else factor * operation(n - 1)"
    power = generated.make_function("power", text, {"__name__": __name__}, factor=2)
    other = generated.with_values(power, factor=5)
    assert (other(3), power(3), other(3)) == (20, 8, 20)
    assert generated.own_values(other) == {"factor": 5}


def test_importing_compiles_no_operation():
    code = "import linecache, funcgrad.numpy; print([f for f in linecache.cache if f.startswith('<generated for f')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == ["<generated for first calls>"]


def test_first_call_holds_no_reference_to_arguments():
    """Reference counts decide what a VJP rule may overwrite."""
    text = "def operation(x, y):\n    return count(x), count(y)"
    counts = generated.make_function("counts", text, {"__name__": __name__}, count=sys.getrefcount)
    first, later = counts([1], [2]), counts([1], [2])
    assert first == later


def test_numpy_warnings_work_in_generated_code():
    """``warnings`` looks up Python's builtins, such as ``__import__``, in the globals of the running function."""
    text = "def operation(x):\n    return compute(x)"
    logarithm = generated.make_function("logarithm", text, {"__name__": __name__}, compute=np.log)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert logarithm(0.0) == -np.inf
    assert logarithm.__globals__["__builtins__"] is builtins
