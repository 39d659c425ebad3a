"""What neural networks are made of, as pure functions of arrays."""
