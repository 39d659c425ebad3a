"""The fixtures for users' tests, and the command ``funcgrad``, as an installation provides them."""

import os
import subprocess
import sys
import tomllib

import pytest
from scripts import ROOT

from funcgrad.interop.crosschecks.command import program

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

TESTS = """
import numpy as np
import funcgrad.numpy as fnp
from funcgrad.extend import elementwise

wrong_sin = elementwise("wrong_sin", lambda xp, x: xp.sin(x), dx=lambda x: 1.001 * fnp.cos(x))
X = np.array([0.3, 0.7])

def test_right(assert_agrees, check_grads):
    check_grads(np.sin, (X,))
    assert assert_agrees(lambda x: np.sum(np.sin(x)), X, also=(), order=1).ok

def test_wrong_by_differences(check_grads):
    check_grads(wrong_sin, (X,), order=1)

def test_wrong_by_jax(assert_agrees):
    assert_agrees(lambda x: fnp.sum(wrong_sin(x)), X, also=())
"""


def run(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


def run_tests(text, cwd, *options):
    (cwd / "test_mine.py").write_text(text, encoding="utf-8")
    plugin = PROJECT["entry-points"]["pytest11"]["funcgrad"]
    return run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin, *options, "test_mine.py", cwd=cwd)


def test_fixtures_detect_wrong_derivatives(tmp_path):
    done = run_tests(TESTS, tmp_path)
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "2 failed" in done.stdout
    assert "check_grads: the derivative of wrong_sin by fwd is wrong at result" in done.stdout
    assert "First to differ, gradient and jvp: wrong_sin at" in done.stdout
    assert not [line for line in done.stdout.splitlines() if "pytest_funcgrad.py:" in line or "checking.py:" in line]


def test_fixtures_are_listed_with_descriptions(tmp_path):
    done = run_tests(TESTS, tmp_path, "--fixtures")
    assert "fail unless funcgrad, JAX and numerical derivatives agree" in done.stdout
    assert "fail unless the derivatives agree with numerical derivatives" in done.stdout


def test_plugin_imports_lazily(tmp_path):
    text = "import sys\n\ndef test_mine():\n    assert not {'numpy', 'funcgrad', 'jax'} & {*sys.modules}\n"
    done = run_tests(text, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def module(tmp_path):
    (tmp_path / "my_model.py").write_text("import numpy as np\n\ndef loss(x):\n    return np.sum(np.tanh(x) ** 2)\n")
    return tmp_path


def test_command_finds_modules_in_current_folder(module):
    name, function = PROJECT["scripts"]["funcgrad"].split(":")
    script = module / "bin" / "funcgrad"
    script.parent.mkdir()
    script.write_text(f"import sys\nfrom {name} import {function}\nsys.exit({function}())\n")
    done = run(str(script), "crosscheck", "my_model:loss", "--args", "f64[3]", "--without", "vmap", "jit", cwd=module)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Cross-check of loss" in done.stdout
    done = run(str(script), "crosscheck", "my_model:nothing", cwd=module)
    assert done.returncode == 2
    assert "my_model has no function 'nothing'" in done.stderr


def test_command_shows_usage(capsys):
    for arguments, code, text in (
        (["--help"], 0, "crosscheck"),
        (["crosscheck", "--help"], 0, "usage: funcgrad crosscheck"),
        (["--version"], 0, "funcgrad "),
        (["other"], 2, "invalid choice: 'other'"),
        ([], 2, "command"),
        (["crosscheck"], 2, "give module:function or --primitives"),
    ):
        with pytest.raises(SystemExit) as ended:
            program(arguments)
        assert ended.value.code == code
        said = capsys.readouterr()
        assert text in said.out + said.err


def test_command_runs_crosscheck(capsys):
    assert program(["crosscheck", "numpy:tanh", "--args", "0.5", "--without", "vmap", "jit", "float32"]) == 0
    assert "OK: 4 quantities agree" in capsys.readouterr().out
