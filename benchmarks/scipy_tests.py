"""SciPy's tests of array libraries, run with funcgrad's arrays: how many pass, compared with other libraries.

python benchmarks/scipy_tests.py [special fft ...]

These tests take the library as an argument, ``xp``, and come with an installed SciPy, under ``SCIPY_ARRAY_API=1``. With
funcgrad each test runs unchanged inside a transform, as a program's function does: by ``from_array_api``, in which all
arrays have one namespace, or rebuilt as code written for NumPy if that is refused. The floating arrays that the test
makes from numbers are constants or, in a second run, traced. Libraries that are not installed are left out.

In a process of its own this file is also a plugin of pytest: it puts funcgrad's namespace where SciPy's tests look
for array-api-strict, and skips the tests that SciPy skips for that library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "cluster constants differentiate fft integrate interpolate linalg ndimage optimize signal spatial special stats"
)
STRICT = "array_api_strict"
LIBRARIES = {"funcgrad": STRICT, "funcgrad, traced": STRICT, "array-api-strict": STRICT, "jax.numpy": "jax.numpy"}
COUNTED = ("passed", "failed", "skipped")

TRACED = os.environ.get("SCIPY_TESTS_OF") == "funcgrad, traced"
if os.environ.get("SCIPY_TESTS_OF", "").startswith("funcgrad"):
    import funcgrad.numpy as fnp
    from funcgrad import vjp
    from funcgrad.core import Tracer
    from funcgrad.interop import from_array_api, from_numpy
    from funcgrad.numpy_code import is_conversion, take_refusal

    vars(fnp).update(set_array_api_strict_flags=lambda **flags: None, __version__="2.4.0")
    sys.modules[STRICT] = fnp

    def plain(x: Any) -> Any:
        """Return the value of an array of funcgrad to compare it."""
        while isinstance(x, Tracer):
            x = x._val
        return np.asarray(x)

    @cache
    def strictly(check: Any) -> Any:
        """Return SciPy's check of kinds, shapes and libraries, which then returns plain values to compare."""

        def checked(*args: Any, **kwargs: Any) -> Any:
            actual, desired, xp = check(*args, **kwargs)
            return plain(actual), plain(desired), np if xp.__name__ == fnp.__name__ else xp

        return checked

    def pytest_collection_modifyitems() -> None:
        """Skip the tests that SciPy skips for array-api-strict, such as those of functions for NumPy only."""
        conftest: Any = sys.modules["scipy.conftest"]
        reasons_of = conftest._backends_kwargs_from_request

        def reasons(*args: Any, **kwargs: Any) -> dict[str, str]:
            found = reasons_of(*args, **kwargs)
            return {**found, **({fnp.__name__: found[STRICT]} if STRICT in found else {})}

        conftest._backends_kwargs_from_request = reasons

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(pyfuncitem: Any) -> Any:
        """Run a test that takes a library inside a transform."""
        if "xp" not in pyfuncitem.funcargs:
            return (yield)
        from scipy._lib import _array_api as checks

        if not hasattr(checks, "strict_check_of_scipy"):
            checks.strict_check_of_scipy = checks._strict_check
            checks._strict_check = strictly(checks.strict_check_of_scipy)
        test = pyfuncitem.obj

        def inside(*args: Any, **kwargs: Any) -> None:
            def run(zero: Any, test: Any) -> Any:
                namespace = zero.__array_namespace__()
                xp = Traced(namespace, zero) if TRACED else namespace
                try:
                    with checks.default_xp(xp):
                        test(*args, **{**kwargs, "xp": xp})
                except BaseException as error:  # a transform would run this function again, not the test
                    failures.append(error)
                finally:
                    take_refusal()
                return zero

            failures: list[BaseException] = []
            vjp(from_array_api(lambda zero: run(zero, test)), 0.0)
            if failures and is_conversion(failures[0]):
                failures.clear()
                vjp(lambda zero: run(zero, from_numpy(test)), 0.0)
            if failures:
                raise failures[0]

        pyfuncitem.obj = inside
        try:
            return (yield)
        finally:
            pyfuncitem.obj = test

    class Traced:
        """A namespace in which ``asarray`` returns arrays that depend on ``zero``, if they are floating."""

        def __init__(self, namespace: Any, zero: Any) -> None:
            self._namespace, self._zero = namespace, zero

        def __getattr__(self, name: str) -> Any:
            return getattr(self._namespace, name)

        def __eq__(self, other: Any) -> bool:
            return other is self._namespace

        def __hash__(self) -> int:
            return hash(self._namespace)

        def asarray(self, *args: Any, **kwargs: Any) -> Any:
            """Return the array; trace it if its numbers are floating."""
            made = self._namespace.asarray(*args, **kwargs)
            return made + (self._zero * 0).astype(made.dtype) if made.dtype.kind in "fc" else made


def pytest_runtest_logreport(report: Any) -> None:
    """Record the outcome of a test."""
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        with open(os.environ["SCIPY_TESTS_TO"], "a") as file:
            file.write(json.dumps([report.nodeid.replace("-array_api_strict", ""), report.outcome]) + "\n")


def outcomes(package: str, library: str, folder: Path) -> dict[str, str]:
    """Return the outcome of each test of a package of SciPy, by the test's name."""
    to = folder / f"{package}-{library}"
    to.write_text("")
    environment = {
        **os.environ,
        "SCIPY_ARRAY_API": json.dumps([LIBRARIES[library]]),
        "SCIPY_TESTS_OF": library,
        "SCIPY_TESTS_TO": str(to),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]),
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "scipy_tests", "-p", "no:cacheprovider", "--no-header"]
    (folder / "pytest.ini").write_text("[pytest]\n")  # ignores this project's settings
    options = [
        "-c",
        "pytest.ini",
        "-m",
        "array_api_backends and not slow",
        "--pyargs",
        f"scipy.{package}",
        "-W",
        "ignore",
        "--tb=line",
    ]
    with open(f"{to}.log", "w") as log:
        subprocess.run([*command, *options], env=environment, stdout=log, stderr=log, cwd=folder, check=False)
    return dict(json.loads(line) for line in to.read_text().splitlines())


def main(packages: list[str]) -> None:
    """Print the counts, package by package."""
    folder = ROOT / "build" / "scipy_tests"
    folder.mkdir(parents=True, exist_ok=True)
    libraries = [name for name in LIBRARIES if find_spec(name.partition(".")[0].partition(",")[0].replace("-", "_"))]
    totals = dict.fromkeys(libraries, 0)
    shared, of_strict = {"funcgrad": 0, "funcgrad, traced": 0}, 0
    for package in packages or PACKAGES.split():
        found = {library: outcomes(package, library, folder) for library in libraries}
        for library, results in found.items():
            totals[library] += list(results.values()).count("passed")
            counts = ", ".join(f"{list(results.values()).count(kind)} {kind}" for kind in COUNTED)
            print(f"{package:14}{library:20}{counts}", flush=True)
        if "array-api-strict" in found:
            passed = [name for name, outcome in found["array-api-strict"].items() if outcome == "passed"]
            of_strict += len(passed)
            for library in shared:
                shared[library] += sum(found[library].get(name) == "passed" for name in passed)
    print(", ".join(f"{library}: {count} passed" for library, count in totals.items()))
    if of_strict:
        for library, count in shared.items():
            print(f"of {of_strict} that array-api-strict passes, {library}: {count}, {100 * count / of_strict:.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
