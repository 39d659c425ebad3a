"""HIPS autograd's ``scipy.stats``: a module per distribution, with ``logpdf``, ``cdf`` and the rest."""

import sys
from types import ModuleType

from funcgrad.interop.autograd.lookup import names_of_scipy

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

__getattr__, __dir__ = names_of_scipy("stats")


def _module_of(distribution: str) -> ModuleType:
    made = ModuleType(f"{__name__}.{distribution}", f"The distribution ``scipy.stats.{distribution}`` as a module.")
    vars(made)["__getattr__"], vars(made)["__dir__"] = names_of_scipy(f"stats.{distribution}")
    sys.modules[made.__name__] = made
    return made


beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t = map(_module_of, __all__)
