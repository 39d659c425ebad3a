"""funcgrad without JAX and SciPy: only the bridge to JAX fails, with an error that names the missing package."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"jax", "jaxlib", "scipy"}:
            raise ImportError(f"No module named {name!r} (blocked)")
        return None

sys.meta_path.insert(0, Blocked())
"""

GRADIENTS = """
import numpy as np
import funcgrad
import funcgrad.interop
import funcgrad.numpy as fnp
from funcgrad import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize
from funcgrad import no_grad, stop_gradient, value_and_grad, vjp, vmap

x = np.array([0.3, 0.7, 1.1])
close = np.testing.assert_allclose
close(grad(lambda x: x**3)(2.0), 12.0)
close(grad(lambda x: fnp.sum(fnp.sin(x)))(x), np.cos(x))
close(grad(lambda x: np.sum(np.exp(x) * x))(x), np.exp(x) * (1 + x))
close(grad(lambda p: p["w"] * p["b"][0])({"w": 2.0, "b": [3.0]})["w"], 3.0)
close(grad(grad(lambda x: fnp.tanh(x)))(0.5), -2 * np.tanh(0.5) * (1 - np.tanh(0.5) ** 2))
close(value_and_grad(lambda x: fnp.logsumexp(x))(x)[1], np.exp(x) / np.sum(np.exp(x)))
close(hessian(lambda x: fnp.prod(x))(x)[0], [0, x[2], x[1]])
close(hvp(lambda x: fnp.sum(x**3), (x,), (x,))[0], 6 * x * x)
close(jacfwd(fnp.cumsum)(x), np.tril(np.ones((3, 3))))
close(jacrev(lambda x: fnp.sort(-x))(x), -np.eye(3)[::-1])
close(jvp(fnp.log, (x,), (x,))[1], np.ones(3))
close(vjp(lambda x: x[1:] @ x[:2], x)[1](1.0)[0], [x[1], x[0] + x[2], x[1]])
close(vmap(grad(lambda x: fnp.where(x > 0.5, x**2, x)))(x), [1.0, 1.4, 2.2])
close(linearize(fnp.sqrt, x)[1](x), 0.5 * np.sqrt(x))
close(grad(lambda x: x * stop_gradient(x))(3.0), 3.0)
close(grad(lambda x: x * no_grad(lambda y: y * y)(x))(3.0), 9.0)
assert not {"jax", "jaxlib", "scipy"} & set(sys.modules)
"""

BRIDGE = """
from funcgrad.errors import MissingExtraError
interop = funcgrad.interop
for bridge in (interop.crosscheck, interop.to_jax, interop.jit, interop.from_jax):
    try:
        bridge(fnp.sin)(1.0)
    except MissingExtraError as error:
        assert isinstance(error, ImportError)
        assert isinstance(error.__cause__, ImportError)
        print(error)
    else:
        raise AssertionError("no error")
"""


def run(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], text=True, capture_output=True, check=False)


def test_gradients_without_jax():
    done = run(BLOCKED + GRADIENTS)
    assert done.returncode == 0, done.stderr


def test_jax_bridge_error_names_extra():
    done = run(BLOCKED + "import funcgrad.interop, funcgrad.numpy as fnp" + BRIDGE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{call}: JAX cannot be imported, got ImportError: No module named 'jax' (blocked). "
        "Install it with the extra: pip install 'funcgrad[jax]'."
        for call in ("crosscheck", "to_jax", "jit", "from_jax")
    ]


@pytest.mark.parametrize("module", ["funcgrad", "funcgrad.numpy", "funcgrad.interop", "funcgrad.transforms"])
def test_import_loads_no_jax(module):
    done = run(f"import sys, {module}; print(sorted({{'jax', 'jaxlib', 'scipy'}} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


def test_import_blocker_blocks():
    for module in ("jax", "jax.numpy", "jaxlib", "scipy.special"):
        done = run(BLOCKED + f"import {module}")
        assert "(blocked)" in done.stderr
