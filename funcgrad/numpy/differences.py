"""Differences, gradients on grids, integrals of samples, and unwrapped phases."""

from __future__ import annotations

__all__: list[str] = []
