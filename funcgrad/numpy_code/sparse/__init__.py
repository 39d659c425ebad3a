"""SciPy's sparse matrices in rebuilt code: constant matrices, and matrices of traced values."""
