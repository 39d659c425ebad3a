"""SciPy's sparse matrices in code that was built anew: constants, and matrices that are made of traced values."""
