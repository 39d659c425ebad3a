"""Convolution, correlation, interpolation, and window functions."""

from __future__ import annotations

__all__: list[str] = []
