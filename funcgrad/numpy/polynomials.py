"""Polynomials by their coefficients, highest power first."""

from __future__ import annotations

__all__: list[str] = []
