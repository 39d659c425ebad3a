"""HIPS autograd's ``scipy.stats``: a module per distribution, with ``logpdf``, ``cdf`` and the rest."""

from funcgrad.interop.autograd.lookup import names_of_scipy
from funcgrad.interop.autograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

__getattr__, __dir__ = names_of_scipy("stats")
