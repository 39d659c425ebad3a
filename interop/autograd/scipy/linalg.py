"""HIPS autograd's ``scipy.linalg``."""

from funcgrad.interop.autograd.lookup import names_of_scipy

__getattr__, __dir__ = names_of_scipy("linalg")
