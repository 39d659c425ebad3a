"""Objects that make arrays when indexed: meshes, joined pieces, index expressions."""

from __future__ import annotations

__all__: list[str] = []
