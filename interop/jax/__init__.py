"""Bridge to JAX: compiled functions, functions of either library for the other, and JAX's devices."""
