"""Programs of packages that use HIPS autograd, for ``packages.py``: with the real one, and with funcgrad in its place.

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


PROGRAMS: dict[str, list[Callable[[], Any]]] = {
    "autograd-gamma": [incomplete_gamma],
    "lifelines": [survival, regression],
    "pymanopt": [sphere],
    "surpyval": [reliability],
}


def main(which: str) -> None:
    """Print what each program gives, and how long it took, as JSON."""
    warnings.simplefilter("ignore")
    if which == "funcgrad":
        from funcgrad.interop.autograd import install

        install()
    found = {}
    for package, programs in PROGRAMS.items():
        for program in programs:
            start = time.perf_counter()
            try:
                values: Any = np.ravel(np.array(program(), float)).tolist()
            except Exception as error:
                values = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            found[f"{package} {program.__name__}"] = values, time.perf_counter() - start
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
