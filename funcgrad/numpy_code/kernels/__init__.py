"""Functions with derivatives in place of compiled ones of SciPy, scikit-learn and others; ``table`` finds them."""
