"""HIPS autograd's ``scipy.special``."""

from funcgrad.interop.autograd.lookup import names_of_scipy
from funcgrad.numpy.special import log_softmax, logsumexp, softmax

__all__ = ["log_softmax", "logsumexp", "softmax"]

__getattr__, __dir__ = names_of_scipy("special", __all__)
