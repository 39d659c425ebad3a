"""The distribution ``scipy.stats.t`` as a module."""

from funcgrad.interop.autograd.lookup import of_scipy

__getattr__, __dir__ = of_scipy("stats.t")
