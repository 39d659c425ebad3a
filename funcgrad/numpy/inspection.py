"""Questions about arrays and dtypes, and how arrays are printed: NumPy's own answers, for tracers too."""

from __future__ import annotations

__all__: list[str] = []
