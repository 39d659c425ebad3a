"""For every test: JAX in double precision on the CPU, and nothing left behind.

Warnings are errors (pyproject.toml), NumPy's about floating-point too: a test at a kink, where NumPy
divides by zero or takes an invalid root, says so with ``numpy.errstate``.
"""

import gc
import linecache
import os
import sys
import threading

# Threads of BLAS that wait for each other take many times what these small matrices take; set before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import compiling
import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from funcgrad import ownership, running

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.update(compiling.CACHE, XLA_FLAGS=compiling.flags())  # before JAX starts

import jax

from funcgrad import as_written, blocks

# What is compiled of tests and of the library is kept beside them, also where Python is told not to: to compile it anew
# takes a third of collecting, and of what each process that a test starts takes to import the library.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# JAX makes a great many small objects that live on, and would wait for their collection.
gc.set_threshold(20_000, 20, 20)

# These run in processes of their own, see test_array_api.py and test_autograd_names.py.
collect_ignore = ["interop/autograd/autograd_programs.py"]
collect_ignore += [] if os.environ.get("SCIPY_ARRAY_API") == "1" else ["numpy/array_api_libraries.py"]

# The debugger that every doctest makes asks the disk of each file whose lines were ever read whether it has changed:
# that took most of the time of the doctests. Nothing is written anew here.
ask_of_file = linecache.checkcache
linecache.checkcache = lambda filename=None: None if filename is None else ask_of_file(filename)

compiling.share_contexts()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)

settings.register_profile("default", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


#: What the module of reference counts has measured.
COUNTS = ("_ENTRY", "_BASE", "_ATTRIBUTE", "_ARGUMENT", "_TEMPORARY", "_ITEM")


def pytest_addoption(parser):
    parser.addoption(
        "--without-counts", action="store_true", help="nothing counts as held by one alone, as without the GIL"
    )


def pytest_configure(config):
    if config.getoption("--without-counts"):
        for name in COUNTS:
            setattr(ownership, name, -1)


def pytest_collection_modifyitems(config, items):
    """Without counts nothing shows that memory is used again."""
    if config.getoption("--without-counts"):
        out = [item for item in items if item.get_closest_marker("counts") or "ownership.py" in item.nodeid]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_runtest_protocol(item, nextitem):
    """A worker tells of a test once, not six times: most tests take less time than to tell of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > 1:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def state():
    """What a test could leave changed for the tests after it."""
    blocks.none_open()
    return {
        "open no_grad blocks": len(blocks.open_exits),
        "what blocks say": blocks.current(),
        "numpy.errstate": np.geterr(),
        "numpy.errcall": np.geterrcall(),
        "jax x64": jax.config.jax_enable_x64,
        "garbage collection": gc.isenabled(),
        "threads": threading.active_count(),
    }


@pytest.fixture
def written():
    """Functions are run as they are written: what would lose a derivative is refused."""
    with as_written():
        yield


# Hooks, not fixtures, of which pytest makes new ones for every test.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Remember what the test may not leave changed.

    What earlier modules have left is collected and looked at no more: with what JAX remembers that took half of all.
    """
    if item.path != collected.get("for"):
        collected["for"] = item.path
        gc.collect()
        gc.freeze()
    item.stash[BEFORE] = state()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    """Nothing is left behind, no transform either: a run that a test never finished is no business of the next one."""
    yield
    for trace in running.unfinished_traces():
        trace.close()
    before, after = item.stash[BEFORE], state()
    assert after == before, {name: (before[name], after[name]) for name in before if before[name] != after[name]}


#: The module for which was collected.
collected = {}
BEFORE = pytest.StashKey()
