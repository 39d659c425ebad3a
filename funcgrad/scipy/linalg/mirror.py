"""What SciPy computes itself: see ``funcgrad.scipy.mirror``."""

from funcgrad.scipy.mirror import mirrors

__all__ = ["mirrors"]
