"""Inspection of functions: graphs, tapes, profiles, and their pictures."""
