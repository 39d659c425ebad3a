"""Memory that the process keeps: counted in pages that the system had to hand over."""

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
    for _ in range(8):
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


def pages(transform: str, call: str, **environment: str) -> int:
    """How many pages the system hands over in three calls, after two others."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "FUNCGRAD_"))}
    command = [sys.executable, "-c", PAGES.format(transform=transform, call=call)]
    done = subprocess.run(command, env={**known, **environment}, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("transform", "call"),
    [("grad", "lambda: grad(f)(x)"), ("jvp", "lambda: jvp(f, (x,), (x,))"), ("vmap", "lambda: vmap(f)(x[None])")],
)
def test_memory_stays_with_the_process(transform, call):
    given_back, kept = pages(transform, call, FUNCGRAD_KEEP_MEMORY="0"), pages(transform, call)
    if GNU:  # the library that is known to give memory back, and to learn not to
        assert given_back > 1_000  # so that the comparison says something: an array has 235 pages
        assert kept < given_back / 20
    else:
        assert kept <= given_back + 1_000


def test_is_asked_for_once_by_the_first_transform():
    check = """
from funcgrad import grad, heap
assert heap.unasked
slope = grad(lambda x: x * x)
assert heap.unasked
slope(1.0)
assert not heap.unasked
"""
    subprocess.run([sys.executable, "-c", check], check=True)


def test_a_process_that_may_not_have_so_much_goes_on():
    check = """
from funcgrad import grad, heap
import numpy as np
allocate = np.empty
def refuse(*args):
    raise MemoryError
np.empty = refuse
assert heap.keep() is False
np.empty = allocate
print(grad(lambda x: x * x)(1.0))
"""
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "2.0"
