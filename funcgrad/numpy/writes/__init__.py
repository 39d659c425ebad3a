"""Writes to arrays that a program made, and views of their memory."""
