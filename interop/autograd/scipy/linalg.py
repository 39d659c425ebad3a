"""HIPS autograd's ``scipy.linalg``."""

from funcgrad.interop.autograd.lookup import of_scipy

__getattr__, __dir__ = of_scipy("linalg")
