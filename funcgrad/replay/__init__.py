"""Runs that are repeated instead of remembered: ``Chain``, and what it keeps of them."""

from funcgrad.replay.chain import Chain

__all__ = ["Chain"]
