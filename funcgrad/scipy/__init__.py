"""SciPy's functions, differentiable: the same names, arguments and results.

The kernels are SciPy's for NumPy values, and JAX's for JAX arrays where it has them. SciPy is needed when
a function is called, not to import it; it comes with ``funcgrad[scipy]``.
"""
