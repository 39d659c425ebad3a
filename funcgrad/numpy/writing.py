"""Writing into arrays: NumPy's functions that change one of their arguments."""

from __future__ import annotations

__all__: list[str] = []
