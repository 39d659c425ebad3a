"""Random programs under random stacks of transforms, on funcgrad and JAX: ``make fuzz``, see docs/fuzzing.md."""
