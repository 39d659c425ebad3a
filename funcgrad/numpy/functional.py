"""Functions applied along axes, over grids, piece by piece, and element by element."""

from __future__ import annotations

__all__: list[str] = []
