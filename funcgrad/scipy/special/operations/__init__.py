"""Definitions of special functions: SciPy's kernels, and derivatives defined here."""
