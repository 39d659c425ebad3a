"""Initial value problems, solved by SciPy's solvers and differentiated."""
