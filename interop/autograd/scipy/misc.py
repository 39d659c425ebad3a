"""The place where SciPy, and HIPS autograd after it, once had ``logsumexp``."""

from funcgrad.numpy.special import logsumexp

__all__ = ["logsumexp"]
