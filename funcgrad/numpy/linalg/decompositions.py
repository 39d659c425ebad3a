"""Eigenvalues, singular values, QR, pseudo-inverses and least squares."""

from __future__ import annotations

__all__: list[str] = []
