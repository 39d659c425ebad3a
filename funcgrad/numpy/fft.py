"""Discrete Fourier transforms, as ``numpy.fft`` has them."""

from __future__ import annotations

__all__: list[str] = []
