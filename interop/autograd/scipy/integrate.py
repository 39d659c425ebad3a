"""HIPS autograd's ``scipy.integrate``."""

from funcgrad.interop.autograd.lookup import of_scipy

__getattr__, __dir__ = of_scipy("integrate")
