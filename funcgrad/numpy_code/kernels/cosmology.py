"""Inverse expansion rates of astropy's cosmologies, which are compiled; distances and times are their integrals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import funcgrad.numpy as fnp


def _relative_density(opz: Any, per_neutrino: Any, massless: int, masses: list[Any]) -> Any:
    """Return the density of neutrinos relative to photons: the fit of Komatsu et al. (2011), equation 26."""
    massive = [(1.0 + (0.3173 / opz * y) ** 1.83) ** 0.54644808743 for y in masses]
    return 0.22710731766 * per_neutrino * sum(massive, start=massless)


#: Densities of dark energy relative to today, by the name of the model, with the number of their parameters.
_DARK_ENERGY: dict[str, tuple[Callable[..., Any], int]] = {
    "lcdm": (lambda z, opz: 1.0, 0),
    "wcdm": (lambda z, opz, w0: opz ** (3.0 * (1.0 + w0)), 1),
    "w0wacdm": (lambda z, opz, w0, wa: opz ** (3.0 * (1.0 + w0 + wa)) * fnp.exp(-3.0 * wa * z / opz), 2),
    "wpwacdm": (
        lambda z, opz, wp, pivot, wa: opz ** (3.0 * (1.0 + wp + pivot * wa)) * fnp.exp(-3.0 * wa * z / opz),
        3,
    ),
    "w0wzcdm": (lambda z, opz, w0, wz: opz ** (3.0 * (1.0 + w0 - wz)) * fnp.exp(3.0 * wz * z), 2),
}


def _inverse_rate(model: str, flat: bool, radiation: str, z: Any, matter: Any, energy: Any, *rest: Any) -> Any:
    """Compute a function of ``scalar_inv_efuncs`` from the present densities of matter, dark energy and the rest."""
    scale, count = _DARK_ENERGY[model]
    opz, curvature = 1.0 + z, 0.0 if flat else rest[0]
    relativistic, parameters = rest[not flat : len(rest) - count], rest[len(rest) - count :]
    light = relativistic[0] if radiation != "_norel" else 0.0
    if not radiation:
        light = light * (1.0 + _relative_density(opz, *relativistic[1:]))
    return (((opz * light + matter) * opz + curvature) * opz**2 + energy * scale(z, opz, *parameters)) ** -0.5


_MODULE = "astropy.cosmology._src.flrw.scalar_inv_efuncs"
COSMOLOGY: dict[tuple[str, str], Callable[..., Any]] = {
    (_MODULE, f"{'f' * flat}{model}_inv_efunc{radiation}"): partial(_inverse_rate, model, flat, radiation)
    for model in _DARK_ENERGY
    for flat in (False, True)
    for radiation in ("", "_nomnu", "_norel")
}
