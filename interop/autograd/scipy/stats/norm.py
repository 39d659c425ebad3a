"""The distribution ``scipy.stats.norm`` as a module."""

from funcgrad.interop.autograd.lookup import of_scipy

__getattr__, __dir__ = of_scipy("stats.norm")
