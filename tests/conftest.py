"""Set-up of every test: JAX in double precision on the CPU, and a check that the test leaves no state behind.

Warnings are errors (pyproject.toml), also NumPy's floating-point warnings: a test at a kink, where NumPy divides by
zero or takes an invalid root, uses ``numpy.errstate``.
"""

import gc
import linecache
import os
import sys
import threading
from importlib.util import find_spec
from types import EllipsisType, FunctionType

# BLAS threads that wait for each other slow down these small matrices many times; set before NumPy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import compiling
import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from funcgrad import ownership, shared_state

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.update(compiling.CACHE, XLA_FLAGS=compiling.flags())  # before JAX starts

import jax

from funcgrad import as_written, blocks
from funcgrad.numpy_code import rebuilding

# Bytecode of tests and library is cached, even if Python is told not to: compiling takes a third of the collection
# time, and a third of the import time of each process that a test starts.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# JAX makes many small long-lived objects, which would trigger collections.
gc.set_threshold(20_000, 20, 20)

# These run in separate processes, see test_array_api.py and test_autograd_names.py.
collect_ignore = ["interop/autograd/autograd_programs.py"]
# SciPy 1.15 has no Python code of rigid transforms.
collect_ignore += (
    [] if find_spec("scipy.spatial.transform._rigid_transform_xp") else ["numpy_code/kernels/test_rotations.py"]
)
collect_ignore += [] if os.environ.get("SCIPY_ARRAY_API") == "1" else ["numpy/array_api_libraries.py"]

# The debugger of every doctest checks each file whose lines were ever read for changes on disk: that took most of
# the time of the doctests. Files do not change here.
ask_of_file = linecache.checkcache
linecache.checkcache = lambda filename=None: None if filename is None else ask_of_file(filename)

compiling.share_contexts()
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)

settings.register_profile("default", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


#: Names of the measurements in the module of reference counts.
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
    """Deselect tests that need reference counts: without counts, reuse of memory cannot be observed."""
    if config.getoption("--without-counts"):
        out = [item for item in items if item.get_closest_marker("counts") or "ownership.py" in item.nodeid]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def code_text(code):
    """Return the source text of the body of a lambda expression; of a constant, Python 3.12 does not know the place."""
    places = [place for place in code.co_positions() if None not in place and place[::2] != place[1::2]]
    if not places:
        return f"line {code.co_firstlineno}"
    first, start = min((line, column) for line, _, column, _ in places)
    last, end = max((line, column) for _, line, _, column in places)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return " ".join(b" ".join(lines).decode().split())


def label(value):
    """Return a text for a parameter of a test, or None if pytest's default is better."""
    if type(value) is FunctionType and value.__name__ == "<lambda>":
        return code_text(value.__code__)
    if type(value) in (tuple, list):
        parts = [label(part) for part in value]
        return None if None in parts else f"({', '.join(parts)})"
    if type(value) is dict:
        parts = [label(part) for part in value.values()]
        return None if None in parts else ", ".join(f"{k}={part}" for k, part in zip(value, parts, strict=True)) or "{}"
    if type(value) is np.ndarray:
        return str(value.tolist()) if value.size <= 6 else f"{value.dtype}{value.shape}"
    if value is None or isinstance(value, (str, int, float, complex, slice, range, EllipsisType, np.generic)):
        return str(value)
    return getattr(value, "__name__", None)


def pytest_make_parametrize_id(val):
    """Name a parameter by its code or contents: the default, such as ``fun0`` or ``args3``, says nothing."""
    text = None if isinstance(val, (str, int, float, complex, type(None))) else label(val)
    return text and (text if len(text) <= 70 else f"{text[:67]}...")


def pytest_runtest_protocol(item, nextitem):
    """Make a worker report each test once, not five times: most tests are shorter than their reports."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > 1:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def state():
    """Return the state that a test could leave changed for later tests."""
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
    """Run functions as written, without rewriting: operations that would lose a derivative are refused."""
    with as_written():
        yield


def forget_names():
    """Forget the names of test modules that are done: every later run would check that they are still the same."""
    for translator in rebuilding._TRANSLATORS.values():
        watched = translator.watched
        for number, known in list(watched.modules.items()):
            if (names := known()) is not None and is_of_test_module(names.real):
                watched.modules.pop(number, None)
        watched.note_change()


def is_of_test_module(names):
    return str(names.get("__name__")).rpartition(".")[2].startswith("test_")


# Hooks instead of fixtures: pytest would create new fixtures for every test.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Remember the state that the test must not change.

    Freeze the objects of earlier modules after a collection: traversing them, with JAX's caches, took half of the time.
    """
    if item.path != collected.get("for"):
        forget_names()
        collected["for"] = item.path
        gc.collect()
        gc.freeze()
    item.stash[BEFORE] = state()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    """Check that the test left no state behind, and close runs that the test did not finish."""
    yield
    for trace in shared_state.unfinished_traces():
        trace.close()
    before, after = item.stash[BEFORE], state()
    assert after == before, {name: (before[name], after[name]) for name in before if before[name] != after[name]}


#: Module for which objects were last collected.
collected = {}
BEFORE = pytest.StashKey()
