"""Definitions of the operations, one statement each, grouped as NumPy groups them."""
