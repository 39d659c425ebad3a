"""Powers and functions of matrices, and products of several."""

from __future__ import annotations

__all__: list[str] = []
