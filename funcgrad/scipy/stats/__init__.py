"""Probability distributions: those of ``scipy.stats``, differentiable in their values and parameters."""
