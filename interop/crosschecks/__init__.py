"""The cross-check: compare funcgrad with JAX and a numerical referee, find where differences begin, and report."""
