"""Unique elements, set operations, and lexicographic sorting."""

from __future__ import annotations

__all__: list[str] = []
