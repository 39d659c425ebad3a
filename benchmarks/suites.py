"""Test suites of packages that use HIPS autograd, run on autograd and with funcgrad in its place: a table.

python benchmarks/suites.py [package ...]

Pip fetches packages and their sources into ``build/suites``, an environment for each, which can be thrown away. A
suite consists of the tests of the source distribution. Each suite runs on both in turn, in separate processes, and the
fastest of three runs counts. The table has the number of tests that pass, the processor seconds within the tests that
pass on autograd, and the seconds of the whole process, which are mostly imports for many packages. Tests that pass only
on autograd follow. Tests that fail on both do not count in the first seconds: pytest spends them on reading the sources
that it shows.

In these processes this file is also a plugin of pytest: it installs funcgrad where the suite looks for autograd, and
records the outcome of each test.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "suites"
BASE = ("numpy==2.4.6", "scipy==1.17.1", "pytest==9.2.0", "toolz", "optree", "opt_einsum")


#: Number of runs of a suite on each library; one run if it takes more seconds than LONG.
TURNS = 3
LONG = 15

#: Outcome of the running test.
outcome: list[str] = []


class Suite(NamedTuple):
    """Package and the location of its tests.

    Attributes:
        version: version with which the table was made.
        tests: files and folders of the source distribution.
        chosen: pytest's expression for the tests that involve derivatives; empty for all.
        needs: other packages to install.
        autograd: version of HIPS autograd that the package allows.
        source: version whose source has tests, if that is another version.
        options: options of pytest.
    """

    version: str
    tests: tuple[str, ...]
    chosen: str = ""
    needs: tuple[str, ...] = ()
    autograd: str = "1.9.1"
    source: str = ""
    options: tuple[str, ...] = ()


SUITES = {
    "grcwa": Suite("0.1.2", ("tests",), "", ("nlopt",)),
    "legume-gme": Suite("1.0.3", ("tests",), "grad", ("matplotlib",)),
    "lifelines": Suite(
        "0.30.3", ("lifelines/tests/test_estimation.py",), "Regression or AFT", ("flaky", "dill", "matplotlib")
    ),
    "mici": Suite("0.4.1", ("tests/test_autodiff.py",)),
    "nannos": Suite("2.6.5", ("test/basic", "test/common")),
    "pennylane": Suite(  # the last source with tests; tests of features that the newer version lacks fail on both
        "0.45.1",
        tuple(
            f"tests/test_{name}.py" for name in ("grad", "classical_gradients", "vqe", "qnode", "return_types_qnode")
        ),
        "grad or Autograd or VQE",
        ("pytest-mock", "flaky"),
        autograd="1.8.0",
        source="0.30.0",
    ),
    "pot": Suite("0.9.7.post1", ("test/test_dr.py",), "", ("pymanopt", "scikit-learn")),
    "pymanopt": Suite(  # its conftest needs other libraries
        "2.2.1",
        ("tests/manifolds", "tests/optimizers", "tests/backends/test_autograd.py", "tests/test_multi_tools.py"),
        options=("--noconftest",),
    ),
    "reliability": Suite("0.9.0", ("tests",)),
    "surpyval": Suite("0.25", ("surpyval/tests/univariate/regression",), "fit"),
}


if os.environ.get("SUITE_ON") == "funcgrad":  # before anything imports autograd, including other plugins
    from funcgrad.interop.autograd import install

    install()


def pytest_runtest_setup() -> None:
    """Seed the random numbers, so that both libraries get the same."""
    random.seed(0)
    np.random.seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> Generator[None, Any, Any]:
    """Record the outcome of a test, and the processor time that it took."""
    outcome.clear()
    start = time.process_time()
    found = yield
    with open(os.environ["SUITE_TO"], "a") as file:
        file.write(json.dumps([item.nodeid, *outcome[:1], time.process_time() - start]) + "\n")
    return found


def pytest_runtest_logreport(report: Any) -> None:
    """Record the outcome of the running test."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        outcome.append(report.outcome)


def fetched(name: str, suite: Suite) -> tuple[Path, Path] | None:
    """Return the source folder of a package, and a Python that has it installed; None if it cannot be fetched."""
    home = HOME / name
    source, python = home / "source", home / "bin" / "python"
    if source.exists():
        return source, python
    venv.create(home, with_pip=True, clear=True)
    pip = [str(python), "-m", "pip", "-q", "--disable-pip-version-check"]
    wanted = [*BASE, f"autograd=={suite.autograd}", f"{name}=={suite.version}", *suite.needs]
    get = ["download", "--no-deps", "--no-binary", name, "-d", str(home), f"{name}=={suite.source or suite.version}"]
    if any(subprocess.run([*pip, *asked], check=False).returncode for asked in (["install", *wanted], get)):
        return None
    with tarfile.open(next(home.glob("*.tar.gz"))) as packed:
        packed.extractall(home / "packed", filter="data")
    next((home / "packed").iterdir()).rename(source)
    return source, python


class Run(NamedTuple):
    """One run of a suite: the outcome and the seconds of each test, and the seconds of the whole process."""

    outcomes: dict[str, str]
    seconds: dict[str, float]
    whole: float

    @property
    def passed(self) -> list[str]:
        return [test for test, outcome in self.outcomes.items() if outcome == "passed"]


def run(suite: Suite, source: Path, python: Path, on: str) -> Run:
    """Run the suite in its own process."""
    to = source.parent / on
    to.write_text("")
    environment = {**os.environ, "SUITE_ON": on, "SUITE_TO": str(to), "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"}
    environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # threads that wait for each other count as work
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONSAFEPATH"] = "1"  # else the source, which is not compiled, is found before the package
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    tests = [str(source / path) for path in suite.tests]
    options = ["-q", "-p", "suites", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short", "-o", "addopts="]
    options += ["--continue-on-collection-errors"]
    options += [*suite.options, *(["-k", suite.chosen] if suite.chosen else [])]
    first = (
        "from funcgrad.interop.autograd import install; install()"  # so that it is compiled, as what pip installs is
    )
    subprocess.run([str(python), "-c", first], env=environment, check=True)
    start = _spent()
    with open(f"{to}.log", "w") as log:
        command = [str(python), "-m", "pytest", *options, *tests]
        subprocess.run(command, env=environment, cwd=source, stdout=log, stderr=log, check=False)
    lines = [json.loads(line) for line in to.read_text().splitlines()]
    whole = _spent() - start
    return Run({test: outcome for test, outcome, _ in lines}, {test: took for test, _, took in lines}, whole)


def _spent() -> float:
    """Return the processor seconds of finished child processes, which other processes do not affect."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"{'package':20}{'autograd':>24}{'funcgrad':>24}", flush=True)
    for name in names or SUITES:
        found = fetched(name, SUITES[name])
        if found is None:
            print(f"{name:20}cannot be fetched here", flush=True)
            continue
        runs: dict[str, list[Run]] = {"autograd": [], "funcgrad": []}
        for turn in range(TURNS):
            if turn and runs["autograd"][0].whole > LONG:
                break
            for on, done in runs.items():
                done.append(run(SUITES[name], *found, on))
        theirs, ours = (done[0].outcomes for done in runs.values())
        counted = runs["autograd"][0].passed
        cells = []
        for done in runs.values():
            within = sum(min(each.seconds.get(test, 0.0) for each in done) for test in counted)
            cells.append(f"{len(done[0].passed)} in {within:.2f} s ({min(each.whole for each in done):.1f})")
        print(f"{name:20}{cells[0]:>24}{cells[1]:>24}", flush=True)
        for test, outcome in theirs.items():
            if outcome == "passed" and ours.get(test) != "passed":
                print(f"    {test}: {ours.get(test, 'not run')}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
