"""Packages that were written without funcgrad, their unchanged functions under ``grad``: a table of results.

python benchmarks/packages.py

Pip fetches the packages into a separate environment, ``build/packages``, which can be thrown away. Each program
is a function of an array; its gradient is compared with differences. Packages that use HIPS autograd follow,
with autograd and with funcgrad in its place: the fitted values must agree. Processor seconds of two calls
stand beside them, first those with autograd: the first call imports what the program needs.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import venv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import package_programs
import package_programs_physics
import package_programs_statistics

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "packages"
PROGRAMS = [*package_programs.PROGRAMS, *package_programs_physics.PROGRAMS, *package_programs_statistics.PROGRAMS]
#: Versions with which the table was made.
PINNED = {
    "numpy": "2.4.6",
    "scipy": "1.17.1",
    "ahrs": "0.4.0",
    "arch": "8.0.0",
    "ase": "3.29.0",
    "astropy": "8.0.2",
    "autograd": "1.9.1",
    "autograd-gamma": "0.5.0",
    "bayespy": "0.6.6",
    "burnman": "1.1.0",
    "ceviche": "0.1.3",
    "chemicals": "1.5.2",
    "colorspacious": "1.1.2",
    "colour-science": "0.4.7",
    "control": "0.10.2",
    "empyrical-reloaded": "0.7.1",
    "filterpy": "2.0.0",
    "fipy": "4.0.3",
    "fluids": "1.3.1",
    "geographiclib": "2.1",
    "hcipy": "0.7.1",
    "ht": "1.2.0",
    "iapws": "1.5.5",
    "ikpy": "4.2.1",
    "lifelines": "0.30.3",
    "linearmodels": "7.1",
    "lmfit": "1.3.4",
    "magpylib": "6.3.0",
    "metpy": "1.7.1",
    "miepython": "3.3.0",
    "networkx": "3.6.1",
    "pint": "0.25.3",
    "pints": "0.6.1",
    "pot": "0.9.7.post1",
    "pvlib": "0.16.1",
    "py-vollib": "1.0.12",
    "pybaselines": "1.2.1",
    "pyerrors": "2.17.0",
    "pyhf": "0.7.6",
    "pykalman": "0.11.2",
    "pymanopt": "2.2.1",
    "pymap3d": "3.2.0",
    "pymoo": "0.6.2",
    "pyriemann": "0.12",
    "pyromat": "2.2.6",
    "pyrr": "0.10.3",
    "pytransform3d": "3.17.0",
    "quantecon": "0.11.4",
    "quantities": "0.16.4",
    "rocketpy": "1.13.0",
    "ruptures": "1.1.10",
    "scikit-fem": "12.0.2",
    "scikit-rf": "2.2.0",
    "seawater": "3.3.5",
    "sgp4": "2.27",
    "spatialmath-python": "1.1.18",
    "statsmodels": "0.15.0",
    "surpyval": "0.25",
    "sympy": "1.14.0",
    "tensorly": "0.10.0",
    "thermo": "0.6.1",
    "tmm": "0.2.0",
    "transforms3d": "0.4.2",
    "uncertainties": "3.2.3",
    "unyt": "3.2.0",
}
#: Number of runs with autograd and with funcgrad, in turn.
TURNS = 3


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient by central differences of fourth order."""
    import numpy as np

    found = np.zeros(x.size)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-4 * abs(x[i])
        values = [float(np.ravel(f(x + k * step))[0]) for k in (0.5, -0.5, 1, -1)]
        found[i] = (8 * (values[0] - values[1]) - (values[2] - values[3])) / (6 * step[i])
    return found


def verdict(f: Callable[[Any], Any], at: list[float]) -> str:
    """Return in a word or two whether the gradient of a function is right."""
    import numpy as np

    from funcgrad import grad

    x = np.array(at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            measured = differences(f, x)
        except Exception as error:
            return f"the package itself: {type(error).__name__}: {str(error)[:90]}"
        try:
            slope = grad(f)(x)
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    return "ok" if np.allclose(slope, measured, rtol=1e-5, atol=1e-9) else f"wrong: {slope}, measured {measured}"


def report() -> None:
    """Print the table; run in the environment of the packages."""
    good = 0
    for package, f, at in PROGRAMS:
        found = verdict(f, at)
        good += found == "ok"
        print(f"{package:20}{f.__name__:32}{found}", flush=True)
    print(f"{good} of {len(PROGRAMS)} programs, {math.floor(100 * good / len(PROGRAMS))} %")


def compared(theirs: Any, ours: Any) -> str:
    """Return whether a package gives the same results with funcgrad in autograd's place, in words."""
    if isinstance(theirs, str):
        return f"the package itself: {theirs}"
    if isinstance(ours, str):
        return ours
    near = len(theirs) == len(ours) and all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-6) for a, b in zip(theirs, ours, strict=True)
    )
    return "ok" if near else f"other values: {ours} for {theirs}"


def main() -> None:
    """Make the environment, and print the table in it."""
    python = HOME / "bin" / "python"
    if not python.exists():
        venv.create(HOME, with_pip=True, clear=True)
        packages = [f"{name}=={version}" for name, version in PINNED.items()]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages, "toolz", "optree", "opt_einsum"], check=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    code = "import sys; sys.path[:0] = sys.argv[1:]; import packages; packages.report()"
    subprocess.run([python, "-c", code, str(ROOT), str(ROOT / "benchmarks")], check=True)
    # What Python compiles is kept, as what pip installs is; the first turn compiles, and the fastest one counts.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times: dict[str, list[list[float]]] = {}
    found: dict[str, Any] = {}
    for which in ("autograd", "funcgrad") * TURNS:
        command = [str(python), str(ROOT / "benchmarks" / "autograd_packages.py"), which]
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        found[which] = json.loads(done.stdout.splitlines()[-1])
        for name, (_, took) in found[which].items():
            times.setdefault(f"{name} {which}", []).append(took)
    for name, (theirs, _) in found["autograd"].items():
        fastest = [min(call) for which in found for call in zip(*times[f"{name} {which}"], strict=True)]
        cells = "{:6.2f} {:6.3f} s {:6.2f} {:6.3f} s".format(*fastest)
        print(f"{name:42}{compared(theirs, found['funcgrad'][name][0]):40}{cells}")


if __name__ == "__main__":
    sys.exit(main())
