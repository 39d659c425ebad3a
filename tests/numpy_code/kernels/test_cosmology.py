"""Expansion rates of astropy's cosmologies; ``make packages`` runs the package itself."""

import math

import pytest
from helpers import differences

from funcgrad import grad
from funcgrad.numpy_code.kernels.cosmology import COSMOLOGY

RATES = {name: rate for (_, name), rate in COSMOLOGY.items()}
#: Exponents of ``1 + z`` and further factors, by the parameters of dark energy.
ENERGIES = {"lcdm": (), "wcdm": (-0.9,), "w0wacdm": (-0.9, 0.2), "wpwacdm": (-0.9, 0.7, 0.2), "w0wzcdm": (-0.9, 0.1)}
MATTER, ENERGY, CURVATURE, LIGHT, MASSES = 0.3, 0.65, 0.05, 5e-5, [3.0, 100.0]


def energy(model, z, w=-1.0, *rest):
    """Integrate ``3 (1 + w(z)) / (1 + z)`` by steps: the density of dark energy relative to today."""
    pivot, slope = rest if len(rest) == 2 else (1.0, *(rest or (0.0,)))
    at = lambda z: w + slope * (z if model == "w0wzcdm" else pivot - 1 / (1 + z))
    steps, h = 2000, z / 2000
    return math.exp(sum(3 * (1 + at((k + 0.5) * h)) / (1 + (k + 0.5) * h) * h for k in range(steps)))


@pytest.mark.parametrize("name", RATES)
def test_rates_are_those_of_densities(name):
    model, radiation = name.split("_inv_efunc")
    flat = model.startswith("f")
    model = model.removeprefix("f")
    given = [] if flat else [CURVATURE]
    given += {"": [LIGHT, 1.0, 1, MASSES], "_nomnu": [LIGHT], "_norel": []}[radiation]
    z = 1.2
    neutrinos = 1 + sum((1 + (0.3173 / (1 + z) * y) ** 1.83) ** 0.54644808743 for y in MASSES)
    light = {"": LIGHT * (1 + 0.22710731766 * neutrinos), "_nomnu": LIGHT, "_norel": 0.0}[radiation]
    squared = light * (1 + z) ** 4 + MATTER * (1 + z) ** 3 + (0.0 if flat else CURVATURE) * (1 + z) ** 2
    squared += ENERGY * energy(model, z, *ENERGIES[model])
    rate = lambda z: RATES[name](z, MATTER, ENERGY, *given, *ENERGIES[model])
    assert rate(z) == pytest.approx(squared**-0.5, rel=1e-6)
    assert grad(rate)(z) == pytest.approx(differences(rate, z), rel=1e-7)
