"""Inverses, systems of equations, determinants, and Cholesky factors."""

from __future__ import annotations

__all__: list[str] = []
