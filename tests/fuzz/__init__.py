"""Random programs under random stacks of transforms, on funcgrad and on JAX: ``make fuzz``, see docs/fuzzing.md."""
