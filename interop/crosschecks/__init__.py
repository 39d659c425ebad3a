"""The cross-check: funcgrad, JAX and a numerical referee compared, blamed and reported."""
