"""Programs of ``packages``: functions of an array that use packages which were written without funcgrad."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

#: The name of a package, a program that uses it, and the point at which to differentiate the program.
Program: TypeAlias = tuple[str, Callable[[Any], Any], list[float]]


def adding_to(table: list[Program]) -> Callable[..., Callable[[Callable[[Any], Any]], Callable[[Any], Any]]]:
    """Return ``program(package, *at)``, a maker of decorators that add a function to a table."""

    def program(package: str, *at: float) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        def add(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
            table.append((package, fun, list(at)))
            return fun

        return add

    return program


PROGRAMS: list[Program] = []
program = adding_to(PROGRAMS)


@program("filterpy", 0.1, 0.5)
def kalman_filter(x: Any) -> Any:
    import numpy as np
    from filterpy.kalman import KalmanFilter

    f = KalmanFilter(dim_x=2, dim_z=1)
    f.x = np.array([[0.0], [1.0]])
    f.F = np.array([[1.0, 1.0], [0.0, 1.0]])
    f.H = np.array([[1.0, 0.0]])
    f.P = np.eye(2) * 10.0
    f.R = np.array([[x[1]]])
    f.Q = np.eye(2) * x[0]
    total = 0.0
    for z in (1.1, 1.9, 3.2, 3.9):
        f.predict()
        f.update(z)
        total = total + f.log_likelihood
    return total


@program("filterpy", 0.1, 0.5)
def unscented_kalman_filter(x: Any) -> Any:
    import numpy as np
    from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

    points = MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
    f = UnscentedKalmanFilter(
        2, 1, 1.0, hx=lambda s: np.array([s[0]]), fx=lambda s, dt: np.array([s[0] + dt * s[1], s[1]]), points=points
    )
    f.x = np.array([0.0, 1.0])
    f.P = np.eye(2)
    f.R = np.eye(1) * x[1]
    f.Q = np.eye(2) * x[0]
    for z in (1.1, 1.9, 3.2):
        f.predict()
        f.update(np.array([z]))
    return f.x.sum()


@program("filterpy", 0.4, 0.2)
def g_h_filter(x: Any) -> Any:
    from filterpy.gh import GHFilter

    f = GHFilter(x=0.0, dx=1.0, dt=1.0, g=x[0], h=x[1])
    return sum(f.update(z)[0] for z in (1.1, 1.9, 3.2))


@program("filterpy", 0.3, 1.2)
def gaussian_density(x: Any) -> Any:
    import numpy as np
    from filterpy.stats import gaussian, multivariate_gaussian

    return gaussian(0.5, x[0], x[1]) + multivariate_gaussian([0.1, 0.2], x, np.eye(2))


@program("chemicals", 350.0)
def antoine(x: Any) -> Any:
    from chemicals.vapor_pressure import Antoine, Wagner

    return Antoine(x[0], 8.95894, 510.595, -15.95) + Wagner(x[0], 190.53, 4596420.0, -6.00435, 1.1885, -0.834, -1.228)


@program("chemicals", 0.3, 0.4)
def flash(x: Any) -> Any:
    from chemicals.rachford_rice import flash_inner_loop

    return flash_inner_loop([x[0], x[1], 1.0 - x[0] - x[1]], [2.4, 1.1, 0.3])[0]


@program("chemicals", 330.0, 1e5)
def viscosity(x: Any) -> Any:
    from chemicals.viscosity import Letsou_Stiel, Lucas

    first = Letsou_Stiel(x[0], 46.07, 516.25, 6.383e6, 0.6371) * 1e4
    return first + Lucas(x[0], x[1], 572.2, 34.7e5, 0.236, 0, 0.00068)


@program("chemicals", 300.0)
def heat_capacity(x: Any) -> Any:
    from chemicals.heat_capacity import TRCCp, Zabransky_cubic

    first = TRCCp(x[0], 4.0, 7.65e5, 720.0, 3.565, -0.052, -1.55e-6, 52.0, 201.0)
    return first + Zabransky_cubic(x[0], 20.9634, -10.1344, 2.8253, -0.256738)


@program("fluids", 1e5, 1e-4)
def friction_factor(x: Any) -> Any:
    from fluids.friction import Churchill_1977, Colebrook, friction_factor

    return Colebrook(x[0], x[1]) + Churchill_1977(x[0], x[1]) + friction_factor(Re=x[0], eD=x[1])


@program("fluids", 300.0, 50.0)
def air(x: Any) -> Any:
    from fluids.atmosphere import ATMOSPHERE_1976
    from fluids.core import Reynolds

    a = ATMOSPHERE_1976(x[0])
    return a.T + a.rho + Reynolds(V=x[1], D=0.1, nu=1e-4) * 1e-5


@program("fluids", 0.02, 0.05)
def orifice(x: Any) -> Any:
    from fluids.flow_meter import C_Reader_Harris_Gallagher

    return C_Reader_Harris_Gallagher(D=x[1], Do=x[0], rho=1.17, mu=1.86e-5, m=0.12, taps="flange")


@program("thermo", 300.0, 1e6)
def equation_of_state(x: Any) -> Any:
    from thermo.eos import PR

    return PR(Tc=507.6, Pc=3025000.0, omega=0.2975, T=x[0], P=x[1]).V_l * 1e5


@program("thermo", 0.3, 0.4)
def activity(x: Any) -> Any:
    from thermo.nrtl import NRTL_gammas

    gammas = NRTL_gammas(xs=[x[0], 1 - x[0]], taus=[[0, x[1]], [0.6, 0]], alphas=[[0, 0.3], [0.3, 0]])
    return sum(gammas)


@program("pvlib", 1.0, 1e-9)
def single_diode(x: Any) -> Any:
    from pvlib.pvsystem import i_from_v

    return i_from_v(0.5, 6.0, x[1], 0.01, 100.0, 0.03 * x[0], method="newton")


@program("pvlib", 800.0, 25.0)
def cell_temperature(x: Any) -> Any:
    from pvlib.temperature import faiman, pvsyst_cell, sapm_cell

    return sapm_cell(x[0], x[1], 2.0, -3.5, -0.06, 3.0) + pvsyst_cell(x[0], x[1]) + faiman(x[0], x[1])


@program("pvlib", 40.0, 0.2)
def irradiance(x: Any) -> Any:
    from pvlib.atmosphere import get_relative_airmass
    from pvlib.irradiance import aoi_projection, isotropic

    return get_relative_airmass(x[0]) + aoi_projection(30.0, 180.0, x[0], 170.0) + isotropic(x[0], 100.0 * x[1])


@program("pvlib", 40.0, 3.0)
def clear_sky(x: Any) -> Any:
    from pvlib.clearsky import simplified_solis

    return simplified_solis(x[0], aod700=0.1, precipitable_water=x[1])["dni"]


@program("pykalman", 0.3, 0.7)
def kalman_likelihood(x: Any) -> Any:
    import numpy as np
    from pykalman import KalmanFilter

    f = KalmanFilter(
        transition_matrices=np.array([[1.0, 1.0], [0.0, 1.0]]),
        observation_matrices=np.array([[1.0, 0.0]]),
        transition_covariance=np.eye(2) * x[0],
        observation_covariance=np.eye(1) * x[1],
        initial_state_mean=np.zeros(2),
        initial_state_covariance=np.eye(2),
    )
    return f.loglikelihood(np.array([[1.1], [1.9], [3.2]]))


@program("arch", 0.1, 0.2, 0.6)
def garch_likelihood(x: Any) -> Any:
    import numpy as np
    from arch.univariate import GARCH, Normal

    y = np.array([0.5, -0.3, 0.8, -1.2, 0.4])
    sigma2 = np.zeros(5)
    bounds = np.tile([1e-6, 100.0], (5, 1))
    GARCH(p=1, q=1).compute_variance(x, y, sigma2, 0.5, bounds)
    return Normal().loglikelihood([], y, sigma2)


@program("arch", 6.0)
def student_likelihood(x: Any) -> Any:
    import numpy as np
    from arch.univariate import StudentsT

    return StudentsT().loglikelihood(x, np.array([0.5, -0.3, 0.8]), np.ones(3))


@program("control", 1.0, 0.5)
def step_response(x: Any) -> Any:
    import control
    import numpy as np

    return control.step_response(control.tf([1.0], [1.0, x[1], x[0]]), np.linspace(0, 3, 7)).outputs.sum()


@program("control", 1.0, 0.5)
def frequency_response(x: Any) -> Any:
    import control

    return abs(control.tf([x[0]], [1.0, x[1], 1.0])(0.7j))


@program("control", 1.0, 0.5)
def state_feedback(x: Any) -> Any:
    import control
    import numpy as np

    gain = control.lqr(np.array([[0.0, 1.0], [-x[0], -x[1]]]), np.array([[0.0], [1.0]]), np.eye(2), np.eye(1))[0]
    return gain.sum()


@program("pint", 3.0, 0.5)
def quantities(x: Any) -> Any:
    import numpy as np
    import pint

    units = pint.UnitRegistry()
    height, mass = x[0] * units.m, units.Quantity(x[1], "kg")
    energy = mass * units.Quantity(9.81, "m/s**2") * height
    speeds = np.array([1.0, 2.0]) * units.km / units.hour
    return (energy + (0.5 * mass * speeds**2).sum()).to("kJ").magnitude


@program("astropy", 7000.0, 0.1)
def orbital_speed(x: Any) -> Any:
    import numpy as np
    from astropy import units as u
    from astropy.constants import GM_earth

    a = x[0] * u.km
    r = a * (1 - x[1])
    period = 2 * np.pi * np.sqrt(a**3 / GM_earth)
    return np.sqrt(GM_earth * (2 / r - 1 / a)).to("km/s").value + period.to(u.hour).value


@program("astropy", 5800.0, 0.5)
def planck(x: Any) -> Any:
    import numpy as np
    from astropy import units as u
    from astropy.constants import c, h, k_B

    temperature, wavelength = x[0] * u.K, x[1] * u.um
    radiance = 2 * h * c**2 / wavelength**5 / np.expm1((h * c / (wavelength * k_B * temperature)).decompose())
    return np.log10(radiance.to_value("W / m3"))


@program("astropy", 1.0, 2.0)
def planet(x: Any) -> Any:
    import numpy as np
    from astropy import units as u
    from astropy.constants import G, M_sun

    r = np.array([1.0, 0.0]) * u.AU * x[0]
    v = np.array([0.0, 15.0]) * u.km / u.s * x[1]
    for _ in range(5):
        v = v - G * M_sun * r / np.linalg.norm(r) ** 3 * (5 * u.day)
        r = r + v * (5 * u.day)
    return np.concatenate([r, np.cumsum(r)]).to_value(u.AU).sum()


@program("astropy", 1.0, 0.2)
def separation(x: Any) -> Any:
    from astropy import units as u
    from astropy.coordinates import SkyCoord

    return SkyCoord(x[0] * u.rad, x[1] * u.rad).separation(SkyCoord(0.3 * u.rad, 0.4 * u.rad)).degree


@program("astropy", 70.0, 0.3)
def expansion(x: Any) -> Any:
    from astropy.cosmology import FlatLambdaCDM

    return FlatLambdaCDM(H0=x[0], Om0=x[1]).H(0.5).value


@program("unyt", 300.0, 2.0)
def ideal_gas(x: Any) -> Any:
    import numpy as np
    import unyt as u

    gas = 8.314 * u.J / u.mol / u.K
    pressures = (2.0 * u.mol) * gas * u.unyt_array([x[0], 2 * x[0]], "K") / (x[1] * u.m**3)
    return float((np.mean(pressures) + np.linalg.norm(pressures)).to("kPa"))


@program("unyt", 1.3, 2.0)
def year(x: Any) -> Any:
    import numpy as np
    import unyt as u
    from unyt.physical_constants import G, solar_mass

    return (2 * np.pi * np.sqrt((x[0] * u.AU) ** 3 / (G * solar_mass * x[1]))).to("yr").value


@program("quantities", 1.2, 2.0)
def kinetic_energy(x: Any) -> Any:
    import quantities as pq

    return float((0.5 * pq.Quantity(x[0], "kg") * pq.Quantity(x[1], "km/hour") ** 2).rescale("J"))


@program("pint", 3.0, 2.0)
def geometry(x: Any) -> Any:
    import math

    import numpy as np
    import pint

    q = x * pint.get_application_registry().m
    parts = np.concatenate([q, np.where(q > q[1], q, 2 * q)])
    return math.sin(x[0]) + (np.linalg.norm(parts) + np.sum(parts) + np.sqrt(np.dot(q, q))).m_as("cm")


@program("colour-science", 0.3, 0.4, 0.2)
def lightness(x: Any) -> Any:
    from colour import XYZ_to_Lab, XYZ_to_xyY

    return XYZ_to_Lab(x).sum() + XYZ_to_xyY(x).sum()


@program("colour-science", 0.3, 0.4, 0.2)
def display(x: Any) -> Any:
    from colour import XYZ_to_sRGB, sRGB_to_XYZ

    return XYZ_to_sRGB(x).sum() + sRGB_to_XYZ(x).sum()


@program("colour-science", 50.0, 20.0, 10.0)
def difference(x: Any) -> Any:
    import numpy as np
    from colour.difference import delta_E_CIE1976, delta_E_CIE2000

    return delta_E_CIE2000(x, np.array([48.0, 12.0, 30.0])) + delta_E_CIE1976(x, np.array([48.0, 12.0, 30.0]))


@program("uncertainties", 2.0, 0.1)
def error_of_product(x: Any) -> Any:
    from uncertainties import ufloat, umath

    length = ufloat(x[0], x[1])
    found = length * umath.sin(length) + ufloat(1.0, 0.2)
    return found.nominal_value + found.std_dev


@program("uncertainties", 2.0, 0.3)
def correlated(x: Any) -> Any:
    import numpy as np
    from uncertainties import correlated_values

    a, b = correlated_values([x[0], 1.0], np.array([[0.2, 0.1], [0.1, x[1]]]))
    return (a / b).std_dev


@program("iapws", 300.0, 3.0)
def steam_region(x: Any) -> Any:
    from iapws.iapws97 import _Region1

    found = _Region1(x[0], x[1])
    return found["v"] * 1e3 + found["h"] + found["cp"]


@program("iapws", 300.0, 0.9)
def water_properties(x: Any) -> Any:
    from iapws._iapws import _Dielectric, _Tension, _Viscosity

    return _Tension(x[0]) + _Dielectric(1000 * x[1], x[0]) + 1e3 * _Viscosity(1000 * x[1], x[0])


@program("iapws", 400.0)
def saturation(x: Any) -> Any:
    from iapws.iapws97 import _PSat_T, _TSat_P

    return _PSat_T(x[0]) + _TSat_P(x[0] * 1e-3)


@program("colorspacious", 0.3, 0.4, 0.2)
def appearance_of_colour(x: Any) -> Any:
    from colorspacious import cspace_convert

    return cspace_convert(x, "sRGB1", "CAM02-UCS").sum()


@program("colorspacious", 0.3, 0.4, 0.2)
def chroma_and_hue(x: Any) -> Any:
    from colorspacious import cspace_convert

    return cspace_convert(x, "sRGB1", "CIELCh").sum()


@program("colorspacious", 0.3, 0.4, 0.2)
def colour_difference(x: Any) -> Any:
    import numpy as np
    from colorspacious import deltaE

    return deltaE(x, np.array([0.5, 0.2, 0.1]), input_space="sRGB1")


@program("pyhf", 1.0, 1.1)
def histogram_likelihood(x: Any) -> Any:
    import pyhf

    model = pyhf.simplemodels.uncorrelated_background([5.0, 10.0], [50.0, 60.0], [5.0, 12.0])
    data = [53.0, 65.0, *model.config.auxdata]
    return model.logpdf([x[0], x[1], 0.9], data)[0]


@program("pyhf", 1.0, 1.1)
def expected_counts(x: Any) -> Any:
    import numpy as np
    import pyhf

    model = pyhf.simplemodels.correlated_background([5.0, 10.0], [50.0, 60.0], [55.0, 62.0], [45.0, 57.0])
    return model.expected_data(np.array([x[0], x[1]])).sum()


@program("pyhf", 1.3)
def likelihood_ratio(x: Any) -> Any:
    import numpy as np
    import pyhf

    model = pyhf.simplemodels.uncorrelated_background([5.0, 10.0], [50.0, 60.0], [5.0, 12.0])
    data = np.array([53.0, 65.0, *model.config.auxdata])
    return pyhf.infer.mle.twice_nll(np.array([x[0], 1.0, 1.0]), data, model)[0]


@program("scikit-rf", 50.0, 1e-9)
def circuit(x: Any) -> Any:
    import skrf

    media = skrf.media.DefinedGammaZ0(skrf.Frequency(1, 3, 3, "GHz"), z0=50.0)
    net = media.resistor(x[0]) ** media.inductor(x[1]) ** media.match()
    return (abs(net.s) ** 2).sum()


@program("scikit-rf", 75.0)
def reflection(x: Any) -> Any:
    import numpy as np
    import skrf

    return abs(skrf.network.z2s(np.array([[[x[0] + 5.0j]]]), 50.0)).sum()


@program("scikit-rf", 0.3, 0.4)
def network_parameters(x: Any) -> Any:
    import numpy as np
    import skrf

    s = np.array([[[x[0], 0.5j], [0.5j, x[1]]]])
    return (abs(skrf.network.s2z(s)) + abs(skrf.network.s2t(s)) + abs(skrf.network.s2a(s))).sum()


@program("ruptures", 0.5, 0.2)
def cost_of_segment(x: Any) -> Any:
    import numpy as np
    import ruptures

    signal = np.concatenate([x[0] * np.arange(4.0), x[1] + np.arange(5.0) ** 2])
    cost = ruptures.costs.CostL2().fit(signal)
    return cost.error(0, 4) + cost.error(4, 9)


@program("ruptures", 0.5, 0.2)
def cost_autoregressive(x: Any) -> Any:
    import numpy as np
    import ruptures

    signal = x[0] * np.arange(12.0) ** 2 + np.sin(3 * np.arange(12.0) * x[1])
    costs = [ruptures.costs.CostAR(order=2), ruptures.costs.CostRbf(gamma=0.1)]
    return sum(cost.fit(signal).error(3, 12) for cost in costs)


@program("lmfit", 2.0, 0.3, 0.5)
def peak_on_a_line(x: Any) -> Any:
    import numpy as np
    from lmfit.models import LinearModel, VoigtModel

    model = VoigtModel() + LinearModel()
    made = model.make_params(amplitude=x[0], center=x[1], sigma=x[2], slope=0.3, intercept=1.0)
    return (model.eval(made, x=np.linspace(-1.0, 1.0, 7)) ** 2).sum()


@program("lmfit", 2.0, 0.3)
def constrained_parameters(x: Any) -> Any:
    from lmfit import Parameters

    made = Parameters()
    made.add("a", value=x[0], min=0.0, max=10.0)
    made.add("b", value=x[1])
    made.add("c", expr="a * exp(-b) + sin(a)")
    return made["c"].value * made["a"].value


@program("sgp4", 0.5, 1.1)
def satellite(x: Any) -> Any:
    from sgp4.model import WGS72, Satrec

    orbit = (0.1859667, 5.7904160274885 + 0.1 * x[0], 0.5980929187319 * x[1], 0.3373093125574, 0.0472294454407)
    s = Satrec()
    s.sgp4init(WGS72, "i", 5, 18441.785, 2.8098e-05, 6.969196665e-13, 0.0, *orbit, 6.0863854713832)
    _, place, speed = s.sgp4_tsince(20.0)
    return place[0] + 2 * place[1] + speed[2]


@program("astropy", 2.0, 0.3, 0.5)
def models_of_spectra(x: Any) -> Any:
    import numpy as np
    from astropy.modeling.models import Gaussian1D, Moffat1D, Sersic1D

    t = np.linspace(0.1, 1.0, 5)
    models = [Gaussian1D(*x), Moffat1D(*x, alpha=1.5), Sersic1D(amplitude=x[0], r_eff=x[1], n=4)]
    return sum(model(t).sum() for model in models)


@program("astropy", 0.3, 0.7)
def periodogram(x: Any) -> Any:
    import numpy as np
    from astropy.timeseries import LombScargle

    t = np.array([0.0, 0.3, 1.0, 1.7, 2.2, 3.1])
    y = x[0] * np.sin(2 * t) + x[1] * np.cos(t)
    return LombScargle(t, y).power(np.array([0.2, 0.4, 0.5]), method="slow").sum()


@program("ht", 100.0, 20.0)
def heat_exchanger(x: Any) -> Any:
    from ht import LMTD
    from ht.conv_internal import turbulent_Gnielinski
    from ht.hx import NTU_from_effectiveness, effectiveness_from_NTU

    first = LMTD(x[0], 60.0, x[1], 40.0) + effectiveness_from_NTU(x[1] * 0.1, 0.5, subtype="counterflow")
    second = NTU_from_effectiveness(0.5, x[0] * 0.005, subtype="crossflow")
    return first + second + turbulent_Gnielinski(Re=100 * x[0], Pr=x[1] * 0.03, fd=0.02)


@program("seawater", 35.0, 10.0, 1000.0)
def sea(x: Any) -> Any:
    import seawater

    return seawater.dens(*x) + seawater.svel(*x) + seawater.ptmp(*x, 0) + 1e4 * seawater.adtg(*x)


@program("transforms3d", 0.3, 0.5, 0.7)
def rotation_and_quaternion(x: Any) -> Any:
    from transforms3d import euler, quaternions

    matrix = euler.euler2mat(*x)
    axis, angle = quaternions.quat2axangle(quaternions.mat2quat(matrix))
    return axis[0] + 2 * axis[1] + angle + euler.mat2euler(matrix, "rzyx")[0]


@program("pytransform3d", 0.3, 0.5, 0.7)
def screw_motion(x: Any) -> Any:
    import numpy as np
    from pytransform3d import transformations

    moved = transformations.transform_from_exponential_coordinates(np.hstack([x, 2 * x]))
    back = transformations.invert_transform(moved)
    twice = transformations.exponential_coordinates_from_transform(transformations.concat(moved, moved))
    return back.sum() + (twice**2).sum()


@program("ikpy", 0.3, 0.5)
def robot_arm(x: Any) -> Any:
    from ikpy.chain import Chain
    from ikpy.link import OriginLink, URDFLink

    links = [
        URDFLink("a", [0.0, 0.0, 0.1], [0.0, 0.1, 0.0], rotation=[0, 0, 1]),
        URDFLink("b", [0.2, 0.0, 0.0], [0.0, 0.0, 0.3], rotation=[0, 1, 0]),
    ]
    arm = Chain([OriginLink(), *links], active_links_mask=[False, True, True])
    return arm.forward_kinematics([0.0, x[0], x[1]])[:3].sum()


@program("sympy", 0.3, 0.5)
def formulas(x: Any) -> Any:
    import numpy as np
    import sympy

    a, b = sympy.symbols("a b")
    matrix = sympy.lambdify([(a, b)], sympy.Matrix([[sympy.cos(a), -sympy.sin(b)], [sympy.exp(a), sympy.Max(a, b)]]))
    number = sympy.lambdify((a, b), sympy.atan2(a, b) + sympy.sqrt(a), "math")
    special = sympy.lambdify((a, b), sympy.Piecewise((a**2, a > b), (b**3, True)) + sympy.besselk(1, a), "scipy")
    return np.linalg.det(matrix(x)) + number(x[0], x[1]) + special(x[0], x[1])


@program("geographiclib", 10.0, 20.0)
def geodesic(x: Any) -> Any:
    from geographiclib.geodesic import Geodesic

    found = Geodesic.WGS84.Inverse(10.5, 20.3, x[0] + 20.0, x[1] + 30.0)
    return found["s12"] * 1e-5 + found["azi1"]


@program("ahrs", 0.03, 0.7)
def orientation_filter(x: Any) -> Any:
    import numpy as np
    from ahrs.filters import Mahony

    turns = np.array([[0.1, 0.2, 0.3], [0.2, 0.1, 0.0], [0.3, 0.0, 0.1]])
    pulls = np.array([[0.1, 0.2, 9.7], [0.2, 0.1, 9.8], [0.4, 0.1, 9.6]])
    return Mahony(gyr=turns * x[1], acc=pulls, frequency=100.0, k_P=x[0], k_I=0.3).Q[-1] @ np.arange(1.0, 5.0)


@program("ase", 2.3, 0.1)
def energy_of_atoms(x: Any) -> Any:
    import numpy as np
    from ase import Atoms
    from ase.calculators.emt import EMT

    atoms = Atoms("Cu3", positions=np.array([[0.0, 0.0, 0.0], [x[0], 0.0, 0.0], [0.5, 2.2, x[1]]]))
    atoms.calc = EMT()
    return atoms.get_potential_energy()


@program("tmm", 100.0, 1.5)
def thin_films(x: Any) -> Any:
    import numpy as np
    import tmm

    found = tmm.unpolarized_RT([1, x[1], 3.5 + 0.1j, 1.0], [np.inf, x[0], 50.0, np.inf], 0.2, 600.0)
    angles = tmm.ellips([1, x[1], 3.5 + 0.1j], [np.inf, x[0], np.inf], 0.9, 600.0)
    return found["R"] + 2 * found["T"] + angles["psi"] + angles["Delta"]


@program("miepython", 1.5, 2.0)
def scattering(x: Any) -> Any:
    import miepython

    return sum(miepython.efficiencies_mx(x[0] - 0.1j, x[1]))


@program("quantecon", 0.9, 0.7)
def linear_regulator(x: Any) -> Any:
    import numpy as np
    import quantecon

    A, B = np.array([[0.9, 0.1], [0.0, 0.8]]), np.array([[1.0], [0.5]])
    P, F, _ = quantecon.LQ(np.eye(1) * x[1], np.eye(2), A, B, beta=x[0]).stationary_values()
    return F.sum() + P[0, 0]


@program("pyriemann", 0.3, 0.7)
def distances_of_covariances(x: Any) -> Any:
    import numpy as np
    from pyriemann.geometry.distance import distance_kullback, distance_riemann, distance_wasserstein

    a, b = np.array([[2.0, x[0]], [x[0], 1.0]]), np.array([[1.0, 0.1], [0.1, x[1]]])
    return distance_riemann(a, b) + distance_kullback(a, b) + distance_wasserstein(a, b)


@program("py-vollib", 4.0)
def implied_volatility(x: Any) -> Any:
    from py_vollib.black_scholes.implied_volatility import implied_volatility

    return implied_volatility(x[0], 100.0, 105.0, 0.5, 0.01, "c")


@program("fipy", 2.0, 0.5)
def diffusion(x: Any) -> Any:
    os.environ["FIPY_SOLVERS"] = "scipy"
    from fipy import CellVariable, DiffusionTerm, Grid1D

    mesh = Grid1D(nx=6, dx=0.2)
    v = CellVariable(mesh=mesh, value=0.0)
    v.constrain(x[0], mesh.facesLeft)
    v.constrain(x[1] ** 2, mesh.facesRight)
    DiffusionTerm(coeff=1.0 + mesh.faceCenters[0] * x[1]).solve(var=v)
    return v.value.sum()
