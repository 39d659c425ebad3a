"""A type checker's messages about a program that uses the library, and the modules that it has to read."""

import re
import subprocess
import sys

from compiling import FOLDER
from scripts import ROOT

PROGRAM = """
import numpy as np
from numpy.typing import NDArray

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import checkpoint, debug_nans, grad, hessian, jvp, linearize, no_grad, stop_gradient, strict
from funcgrad import value_and_grad, vjp, vmap

Vector = NDArray[np.float64]


def loss(w: Vector, x: Vector, scale: float = 1.0) -> float:
    return float(fnp.sum(fnp.tanh(x @ w) ** 2)) * scale


def with_aux(w: Vector) -> tuple[float, int]:
    return 1.0, 2


w, x = np.ones(2), np.ones((3, 2))
grad(loss)(w, x, scale=2.0)
grad(lambda w: w @ w)(w)
grad(grad(lambda t: t**3))(2.0)
hessian(lambda v: v[0] * v[1] ** 2)(w)
pairs = vmap(grad(loss), in_axes=(None, 0))(w, x)
grad(fnp.tanh)(0.0), grad(np.tanh)(0.0)
fg.nn.relu(x), fg.scipy.special.erf(x), fg.errors.InputError, fg.tree.map(np.sin, {"w": w})
reveal_type(value_and_grad(loss)(w, x)[0])
reveal_type(grad(with_aux, has_aux=True)(w)[1])
reveal_type(vjp(loss, w, x))
reveal_type(vjp(with_aux, w, has_aux=True))
reveal_type(jvp(loss, (w, x), (w, x)))
reveal_type(linearize(loss, w, x)[0])
reveal_type(stop_gradient({"w": 1.0}))
reveal_type(checkpoint(loss)(w, x))
reveal_type(no_grad(loss)(w, x))
reveal_type(fg.jit(loss)(w, x))
reveal_type(fg.crosscheck(loss)(w, x))
reveal_type(debug_nans(strict(loss))(w, x))
grad(loss)(w, x, other=2.0)
value_and_grad(loss)("w", x)
value_and_grad(loss, argnum=1)
"""

REVEALED = [
    "float",
    "int",
    "tuple[float, funcgrad.transforms.products.Pullback]",
    "tuple[float, funcgrad.transforms.products.Pullback, int]",
    "tuple[float, float]",
    "float",
    "dict[str, float]",
    "float",
    "float",
    "float",
    "funcgrad.interop.crosschecks.report.CrossCheck",
    "float",
]


def mypy_output(folder):
    """Return mypy's strict output for the program with the library installed, and the modules that mypy reads.

    As for an installed package, mypy leaves out what stands in the library's functions, which takes most of the time.
    What it found in modules that have not changed since an earlier run is kept.
    """
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nmypy_path = {ROOT}\n[mypy-toolz.*,opt_einsum.*]\nignore_missing_imports = true\n"
        "[mypy-funcgrad.*]\nfollow_imports = silent\n"
    )
    command = [sys.executable, "-m", "mypy", "-v", "--cache-dir", str(FOLDER / "mypy"), "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    read = re.findall(r"(?:Parsing \S+ \(|Metadata fresh for )([\w.]+)", done.stderr)
    return done.stdout, {name.partition(".")[0] for name in read}


def test_mypy_messages_for_user_program(tmp_path):
    """Check types, wrong calls and the modules read, in one test, because mypy takes long.

    With JAX and PyTorch, which optree's annotations refer to, it took a minute and a half.
    """
    output, read = mypy_output(tmp_path)
    assert re.findall(r'Revealed type is "(.+)"', output) == REVEALED
    errors = re.findall(r"^(program\.py):(\d+): error: (.+?)  \[", output, re.MULTILINE)
    lines = PROGRAM.splitlines()
    assert [lines[int(line) - 1] for _, line, _ in errors] == lines[-3:], output
    assert "error" not in re.sub(r"^program\.py.*\n|^Found.*\n", "", output, flags=re.MULTILINE)
    assert {"funcgrad", "numpy"} <= read
    assert not {"jax", "jaxlib", "torch", "scipy", "optree"} & read
