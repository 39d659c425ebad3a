"""HIPS autograd's ``scipy.misc``, where SciPy once had ``logsumexp``."""

from funcgrad.numpy.special import logsumexp

__all__ = ["logsumexp"]
