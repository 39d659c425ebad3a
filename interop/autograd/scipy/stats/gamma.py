"""The distribution ``scipy.stats.gamma`` as a module."""

from funcgrad.interop.autograd.lookup import names_of_scipy

__getattr__, __dir__ = names_of_scipy("stats.gamma")
