"""Programs of packages that use HIPS autograd, for ``packages.py``: run with autograd or with funcgrad.

python benchmarks/autograd_packages.py autograd|funcgrad
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

DURATIONS = np.array([5.0, 3, 9, 8, 7, 4, 4, 3, 2, 5, 6, 7])
OBSERVED = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0])


def incomplete_gamma() -> Any:
    from autograd import grad
    from autograd_gamma import betainc, gammainc, gammaincln

    first = grad(lambda a: gammainc(a, 1.3) + gammaincln(a, 0.7))(2.0)
    return [first, grad(lambda b: betainc(1.5, b, 0.3))(2.0)]


def survival() -> Any:
    from lifelines import LogLogisticFitter, PiecewiseExponentialFitter, WeibullFitter

    fits = [WeibullFitter(), LogLogisticFitter(), PiecewiseExponentialFitter([4.0])]
    return [v for fit in fits for v in fit.fit(DURATIONS, OBSERVED).summary["coef"]]


def regression() -> Any:
    import pandas as pd
    from lifelines import CoxPHFitter, LogNormalAFTFitter, WeibullAFTFitter

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"T": rng.exponential(2, 60) + 0.1, "E": rng.uniform(size=60) < 0.8, "x": rng.normal(size=60)})
    fits = [WeibullAFTFitter(), LogNormalAFTFitter(), CoxPHFitter()]
    return [v for fit in fits for v in fit.fit(table, "T", "E").summary["coef"]]


def sphere() -> Any:
    import pymanopt
    from pymanopt.manifolds import Sphere
    from pymanopt.optimizers import SteepestDescent

    matrix = np.diag([1.0, 2.0, 5.0])
    manifold = Sphere(3)

    @pymanopt.function.autograd(manifold)
    def cost(x: Any) -> Any:
        return -x @ matrix @ x

    problem = pymanopt.Problem(manifold, cost)
    return abs(SteepestDescent(verbosity=0).run(problem, initial_point=np.ones(3) / np.sqrt(3)).point)


def reliability() -> Any:
    import surpyval

    kinds = [surpyval.Weibull, surpyval.Gamma, surpyval.LogNormal, surpyval.Gumbel]
    return [v for kind in kinds for v in kind.fit(DURATIONS).params]


def waves() -> Any:
    import autograd.numpy as npa
    import ceviche

    source = np.zeros((24, 30))
    source[6, 12:18] = 1.0

    def transmitted(block: Any) -> Any:
        design = npa.pad(npa.reshape(block, (4, 6)), ((10, 10), (12, 12)), mode="constant")
        field = ceviche.fdfd_ez(2 * np.pi * 2e14, 5e-8, 1.0 + design, [5, 5]).solve(source)[2]
        return npa.sum(npa.abs(field[18, 12:18]) ** 2) * 1e12

    return ceviche.jacobian(transmitted, mode="reverse")(np.linspace(1.0, 6.0, 24)).ravel()


def waves_in_time() -> Any:
    import autograd.numpy as npa
    import ceviche

    def measured(eps: Any) -> Any:
        run = ceviche.fdtd(1.0 + eps[0] * np.ones((15, 15, 1)), dL=5e-8, npml=[4, 4, 0])
        source = np.zeros((15, 15, 1))
        source[6, 7] = 1.0
        fields = [run.forward(Jz=source * np.exp(-(((t - 10) / 4) ** 2)))["Ez"][9, 7] for t in range(30)]
        return npa.sum(npa.abs(npa.array(fields)) ** 2) * 1e3

    return [ceviche.jacobian(measured, mode=mode)(np.array([2.0])).item() for mode in ("forward", "reverse")]


def test_problems() -> Any:
    import pymoo.gradient
    from pymoo.gradient.automatic import AutomaticDifferentiation
    from pymoo.problems import get_problem

    pymoo.gradient.activate("autograd")
    found = []
    for name in ("zdt1", "zdt3", "dtlz2", "osy", "tnk", "bnh", "rosenbrock", "ackley", "rastrigin", "griewank"):
        problem = AutomaticDifferentiation(get_problem(name))
        share = np.linspace(0.2, 0.7, 3 * problem.n_var).reshape(3, -1)
        wanted = ["F", "dF", "dG"] if problem.n_constr else ["F", "dF"]
        values = problem.evaluate(problem.xl + (problem.xu - problem.xl) * share, return_values_of=wanted)
        found += [v for part in values for v in np.ravel(part)]
    return found


def propagation_of_errors() -> Any:
    import autograd.numpy as npa
    import pyerrors as pe

    rng = np.random.default_rng(0)
    x = np.linspace(0.5, 3.0, 6)
    y = [pe.Obs([2 * np.exp(-0.7 * t) + 0.3 + 0.02 * rng.normal(size=200)], ["run"]) for t in x]
    for each in y:
        each.gamma_method()
    matrix = np.array([[y[0], y[1]], [y[1], y[2] + 2.0]])
    found = [
        *pe.least_squares(x, y, lambda a, t: a[0] * npa.exp(-a[1] * t) + a[2], silent=True).fit_parameters,
        pe.derived_observable(lambda v, **options: npa.log(v[0] / v[1]) * npa.sin(v[2]), y[:3]),
        pe.roots.find_root(y[0], lambda v, d: npa.exp(-(v**2)) * 2 - d, 0.8),
        pe.integrate.quad(lambda p, t: p[0] * npa.exp(-t * p[1]), [y[0], y[1]], 0, 1)[0],
        *pe.linalg.inv(matrix).ravel(),
        *pe.linalg.eigh(matrix)[0],
    ]
    for each in found:
        each.gamma_method()
    return [v for each in found for v in (each.value, each.dvalue)]


PROGRAMS: dict[str, list[Callable[[], Any]]] = {
    "autograd-gamma": [incomplete_gamma],
    "ceviche": [waves, waves_in_time],
    "lifelines": [survival, regression],
    "pyerrors": [propagation_of_errors],
    "pymoo": [test_problems],
    "pymanopt": [sphere],
    "surpyval": [reliability],
}


def main(which: str) -> None:
    """Print the result of each program, and the processor seconds of two calls, as JSON."""
    warnings.simplefilter("ignore")
    if which == "funcgrad":
        from funcgrad.interop.autograd import install

        install()
    found = {}
    for package, programs in PROGRAMS.items():
        for program in programs:
            times = []
            try:
                for _ in range(2):
                    start = time.process_time()
                    values: Any = np.ravel(np.array(program(), float)).tolist()
                    times.append(time.process_time() - start)
            except Exception as error:
                values, times = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}", [0.0, 0.0]
            found[f"{package} {program.__name__}"] = values, times
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
