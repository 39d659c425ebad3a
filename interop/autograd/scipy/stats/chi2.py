"""The distribution ``scipy.stats.chi2`` as a module."""

from funcgrad.interop.autograd.lookup import of_scipy

__getattr__, __dir__ = of_scipy("stats.chi2")
