"""Memory that the process keeps, measured by page faults."""

import os
import platform
import subprocess
import sys

import pytest

GNU = platform.system() == "Linux" and platform.libc_ver()[0] == "glibc"
PAGES = """
import resource
import numpy as np
import funcgrad.numpy as fnp
from funcgrad import {transform}

def f(x):
    for _ in range({steps}):
        x = fnp.sin(x) + 1.0
    return fnp.sum(x)

x = np.ones(120_000)
call = {call}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

call()
call()
before = faults()
for _ in range(3):
    call()
print(faults() - before)
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {n: v for n, v in os.environ.items() if not n.startswith(("MALLOC_", "FUNCGRAD_", "GLIBC_"))}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env={**known, **environment}, capture_output=True, text=True)


def pages(transform: str, call: str, steps: int = 8, **environment: str) -> int:
    """Return the number of pages that the system provides in three calls, after two others."""
    done = run(PAGES.format(transform=transform, call=call, steps=steps), **environment)
    assert not done.returncode, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    ("transform", "call", "steps"),
    [
        ("grad", "lambda: grad(f)(x)", 8),
        ("grad", "lambda: grad(f)(x)", 100),  # about 100 MB
        ("jvp", "lambda: jvp(f, (x,), (x,))", 8),
        ("vmap", "lambda: vmap(f)(x[None])", 8),
    ],
)
def test_freed_memory_stays_in_process(transform, call, steps):
    given_back, kept = pages(transform, call, steps, FUNCGRAD_KEEP_MEMORY="0"), pages(transform, call, steps)
    if GNU:  # the C library known to return memory to the system, with a setting against it
        assert given_back > 1_000  # makes the comparison meaningful: an array has 235 pages
        assert kept < given_back / 20
    else:
        assert kept <= given_back + 1_000


def test_kept_memory_is_configurable():
    if GNU:
        assert pages("grad", "lambda: grad(f)(x)", 100, FUNCGRAD_KEEP_MEMORY="8") > 10_000


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_malloc_settings_take_precedence(name):
    done = run("from funcgrad import heap; print(heap.configure_malloc())", **{name: "131072"})
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("asked", ["much", "-1", "1e3", "4000", ""])
def test_invalid_setting_raises(asked):
    done = run("from funcgrad import grad; grad(lambda x: x * x)(1.0)", FUNCGRAD_KEEP_MEMORY=asked)
    assert done.returncode
    assert f"must be a number of MiB from 0 to 2047, got {asked!r}" in done.stderr


def test_first_call_configures_malloc():
    check = """
from funcgrad import grad, heap
assert heap.not_configured
slope = grad(lambda x: x * x)
assert heap.not_configured
slope(1.0)
assert not heap.not_configured
"""
    done = run(check)
    assert not done.returncode, done.stderr


def test_other_c_library_is_not_configured():
    check = """
import ctypes
from funcgrad import grad, heap
class Other:
    def __getattr__(self, name):
        raise AttributeError(name)
ctypes.pythonapi = Other()
assert heap.configure_malloc() is False
print(grad(lambda x: x * x)(1.0))
"""
    done = run(check)
    assert done.stdout.strip() == "2.0", done.stderr


def test_configuring_creates_no_cycles():
    check = """
import gc
from funcgrad import grad
slope = grad(lambda x: x * x)
gc.collect()
gc.disable()
slope(1.0)
print(gc.collect())
"""
    done = run(check)
    assert done.stdout.strip() == "0", done.stderr
