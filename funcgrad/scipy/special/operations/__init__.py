"""Definitions of special functions: the kernels are SciPy's, the derivatives are here."""
