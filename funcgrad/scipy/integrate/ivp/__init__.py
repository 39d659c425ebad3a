"""Initial value problems by SciPy's solvers, differentiated."""
