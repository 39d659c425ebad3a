"""Runs that the backward pass repeats instead of keeping their records: ``Chain`` and the data that it keeps."""

from funcgrad.replay.chain import Chain

__all__ = ["Chain"]
