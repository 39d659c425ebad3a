"""Compiled functions with a Python version in their package, such as ``loops_python.run`` next to ``loops.run``."""

import sys

import numpy as np
import pandas as pd
import pytest

from funcgrad import grad
from funcgrad.errors import ConversionError

PYTHON = """
def run(out, x):
    for i in range(len(out)):
        out[i] = x[0] * (out[i - 1] if i else 1.0)
    return out
"""
COMPILED = """
import numpy as np
def _make(name):
    class cython_function_or_method:
        __name__ = name
        __module__ = "twin_package.loops"
        def __call__(self, out, x):
            x = np.frombuffer(memoryview(np.asarray(x)))
            out[:] = np.cumprod(np.full(len(out), x[0]))
            return out
    return cython_function_or_method()
run, alone, mean = _make("run"), _make("alone"), _make("mean")
"""
SLOW = "import numpy as np\ndef mean(out, x):\n    return np.nanmean(x)"


@pytest.fixture
def loops(tmp_path, monkeypatch):
    package = tmp_path / "twin_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "loops.py").write_text(COMPILED)
    (package / "loops_python.py").write_text(PYTHON)
    (package / "slow.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))
    import twin_package.loops

    yield twin_package.loops
    for name in [name for name in sys.modules if name.startswith("twin_package")]:
        del sys.modules[name]


def test_python_version_accepts_traced_values(loops):
    def f(x):
        out = np.zeros(3)
        loops.run(out, x)
        return out.sum()

    x = np.array([0.5])
    assert f(x) == 0.875
    assert grad(f)(x).tolist() == [2.75]
    with pytest.raises(ConversionError, match="it is compiled code"):
        grad(lambda x: loops.alone(np.zeros(3), x).sum())(x)


def test_slow_form_accepts_traced_values(loops):
    x = np.array([0.5, np.nan, 1.5])
    assert grad(lambda x: loops.mean(None, x))(x).tolist() == [0.5, 0.0, 0.5]
    assert grad(lambda x: loops.mean(None, pd.Series(x)))(x).tolist() == [0.5, 0.0, 0.5]
