"""JAX: functions compiled by it, functions of either library for the other, and its devices."""
