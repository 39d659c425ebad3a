"""Reference values of the stiff systems: ``python tests/stiff_references.py`` writes them again.

Two methods solve each system that share only the right-hand side and its exact Jacobian: Radau (collocation, SciPy's
Python) and LSODA (multistep, ODEPACK), or DOP853 where the system is not stiff. Tolerances are ten and a hundred times
tighter than those of the tests and near the limit of doubles. The file contains both values; their difference shows
how many digits are certain.
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.integrate
from ode_systems import STIFF

import funcgrad.numpy as fnp
from funcgrad import jacfwd

FILE = Path(__file__).with_name("stiff_references.json")
#: Methods by system, and an absolute tolerance in units of the relative one.
RUNS = {
    "robertson": (("Radau", "LSODA"), 1e-8),
    "hires": (("Radau", "LSODA"), 1e-5),
    "orego": (("Radau", "LSODA"), 1e-3),
    "e5": (("Radau", "LSODA"), 1e-17),
    "van der pol 1e6": (("Radau", "LSODA"), 1e-3),
    "pleiades": (("DOP853", "LSODA"), 1e-2),
    "brusselator on 200 points": (("Radau", "LSODA"), 1e-2),
}
TOLERANCES = (1e-11, 1e-12)


def solved(system, method, rtol):
    """Return the state at the end, by SciPy alone except for the Jacobian."""
    p, (_, atol) = np.array(system.parameters), RUNS[system.name]
    slope = lambda t, y: fnp.array(system.fun(t, y, p)) if system.name != "pleiades" else system.fun(t, y, p)
    options = {"rtol": rtol, "atol": rtol * atol}
    if method != "DOP853":
        options["jac"] = lambda t, y: jacfwd(lambda y: slope(t, y))(y)
    found = scipy.integrate.solve_ivp(slope, (0.0, system.end), np.array(system.start, float), method, **options)
    assert found.success, (system.name, method, found.message)
    return found.y[:, -1]


def reference(system):
    """Return the values at the end by method and tolerance, first the looser one, then the tighter."""
    methods, _ = RUNS[system.name]
    return {method: [solved(system, method, rtol).tolist() for rtol in TOLERANCES] for method in methods}


if __name__ == "__main__":
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for system in STIFF:
        if sys.argv[1:] in ([], [system.name]):
            known[system.name] = found = reference(system)
            first, second = (np.array(values[-1]) for values in found.values())
            print(system.name, np.max(np.abs(first - second) / np.maximum(np.abs(first), 1e-300)), flush=True)
            FILE.write_text(json.dumps(known, indent=1) + "\n")
