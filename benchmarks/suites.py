"""The own test suites of packages that use HIPS autograd, on the real one and with funcgrad in its place: a table.

python benchmarks/suites.py [package ...]

Packages and their sources are fetched by pip into ``build/suites``, which can be thrown away. A suite is what the
source distribution brings along. Each is run twice, in processes of their own: counts and seconds of the processor
stand beside each other, and below them the tests that pass on autograd alone.

For these processes this file is a plugin of pytest, too: it installs funcgrad where the suite looks for autograd, and
notes what became of each test.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "suites"
BASE = ("numpy==2.4.6", "scipy==1.17.1", "autograd==1.9.1", "pytest==9.2.0", "toolz", "optree", "opt_einsum")


class Suite(NamedTuple):
    """A package and where its tests are.

    Attributes:
        version: the version that the table was made with.
        tests: files and folders of the source distribution.
        chosen: pytest's expression of the tests that have to do with derivatives; all of them where it is empty.
        needs: what else has to be installed.
    """

    version: str
    tests: tuple[str, ...]
    chosen: str = ""
    needs: tuple[str, ...] = ()


SUITES = {
    "grcwa": Suite("0.1.2", ("tests",), "", ("nlopt",)),
    "legume-gme": Suite("1.0.3", ("tests",), "grad", ("matplotlib",)),
    "lifelines": Suite(
        "0.30.3", ("lifelines/tests/test_estimation.py",), "Regression or AFT", ("flaky", "dill", "matplotlib")
    ),
    "surpyval": Suite("0.25", ("surpyval/tests/univariate/regression",), "fit"),
}


def pytest_configure(config: Any) -> None:
    """Put funcgrad in autograd's place before the suite imports it."""
    if os.environ.get("SUITE_ON") == "funcgrad":
        from funcgrad.interop.autograd import install

        install()


def pytest_runtest_logreport(report: Any) -> None:
    """Note what became of a test."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        with open(os.environ["SUITE_TO"], "a") as file:
            file.write(json.dumps([report.nodeid, report.outcome]) + "\n")


def fetched(name: str, suite: Suite, python: Path) -> Path | None:
    """The folder of the source of a package, which is installed as well; None where it cannot be had."""
    folder = HOME / "sources"
    pip = [str(python), "-m", "pip", "-q", "--disable-pip-version-check"]
    source = folder / name
    if source.exists():
        return source
    asked = f"{name}=={suite.version}"
    if subprocess.run([*pip[:3], "install", *pip[3:], asked, *suite.needs], check=False).returncode:
        return None
    get = [*pip[:3], "download", *pip[3:], "--no-deps", "--no-binary", ":all:", "-d", str(folder), asked]
    if subprocess.run(get, check=False).returncode:
        return None
    stem = name.replace("-", "_")
    archive = next(p for p in folder.glob("*.tar.gz") if p.name.replace("-", "_").startswith(stem))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    next(p for p in folder.iterdir() if p.is_dir() and p.name.replace("-", "_").startswith(stem)).rename(source)
    return source


def outcomes(suite: Suite, source: Path, python: Path, on: str) -> tuple[dict[str, str], float]:
    """What became of each test, and how many seconds of the processor all took."""
    to = HOME / f"{source.name}-{on}"
    to.write_text("")
    environment = {**os.environ, "SUITE_ON": on, "SUITE_TO": str(to), "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    tests = [str(source / path) for path in suite.tests]
    options = ["-q", "-p", "suites", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short"]
    options += ["-k", suite.chosen] if suite.chosen else []
    start = _spent()
    with open(f"{to}.log", "w") as log:
        command = [str(python), "-m", "pytest", *options, *tests]
        subprocess.run(command, env=environment, cwd=source, stdout=log, stderr=log, check=False)
    return dict(json.loads(line) for line in to.read_text().splitlines()), _spent() - start


def _spent() -> float:
    """The seconds that processes started from here, and ended, had a processor: others may be at work beside them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(names: list[str]) -> None:
    """Make the environment, and print the table."""
    python = HOME / "bin" / "python"
    if not python.exists():
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *BASE], check=True)
    print(f"{'package':20}{'autograd':>22}{'funcgrad':>22}", flush=True)
    for name in names or SUITES:
        source = fetched(name, SUITES[name], python)
        if source is None:
            print(f"{name:20}cannot be fetched here", flush=True)
            continue
        runs = {on: outcomes(SUITES[name], source, python, on) for on in ("autograd", "funcgrad")}
        cells = [f"{list(found.values()).count('passed')} in {took:.0f} s" for found, took in runs.values()]
        print(f"{name:20}{cells[0]:>22}{cells[1]:>22}", flush=True)
        (theirs, _), (ours, _) = runs.values()
        for test, outcome in theirs.items():
            if outcome == "passed" and ours.get(test) != "passed":
                print(f"    {test}: {ours.get(test, 'not run')}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
