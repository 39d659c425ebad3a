"""The names and conventions of HIPS autograd, for programs that were written for it."""
