"""Programs of ``packages`` about physics."""

from __future__ import annotations

from typing import Any

from package_programs import Program, adding_to

PROGRAMS: list[Program] = []
program = adding_to(PROGRAMS)


@program("burnman", 25e9, 1500.0)
def mantle(x: Any) -> Any:
    import burnman
    from burnman.minerals import SLB_2011

    rock = burnman.Composite([SLB_2011.mg_perovskite(), SLB_2011.periclase()], [0.7, 0.3])
    rock.set_state(x[0], x[1])
    return rock.density + rock.v_p + rock.v_s


@program("burnman", 0.1, 1500.0)
def solid_solution(x: Any) -> Any:
    from burnman.minerals import SLB_2011

    mineral = SLB_2011.ferropericlase()
    mineral.set_composition([1 - x[0], x[0]])
    mineral.set_state(25e9, x[1])
    return mineral.gibbs * 1e-3 + mineral.density + mineral.activities.sum()


@program("hcipy", 0.3, 0.5)
def optical_field(x: Any) -> Any:
    import hcipy
    import numpy as np

    grid = hcipy.make_pupil_grid(8)
    phase = hcipy.make_zernike_basis(3, 1, grid)[2] * x[0]
    wave = hcipy.Wavefront(hcipy.make_gaussian_influence_functions(grid, 2, 0.5)[0] * np.exp(1j * phase))
    return (wave.real * phase.grid.x**2).sum() + (wave.imag * wave.grid.y).sum() * x[1]


@program("magpylib", 1.1, 0.5, 0.7)
def magnets(x: Any) -> Any:
    import magpylib

    cuboid = magpylib.magnet.Cuboid((0.0, 0.0, x[2]), dimension=(1.0, 2.0, x[1]), polarization=(0.1, 0.2, x[0]))
    loop = magpylib.current.Circle(current=1e6, diameter=2.0)
    return magpylib.Collection(cuboid.rotate_from_angax(30, "x"), loop).getB((x[0], 2.0, 1.0)).sum()


@program("metpy", 25.0, 10.0)
def parcel(x: Any) -> Any:
    import metpy.calc
    import numpy as np
    from metpy.units import units

    pressure = np.array([950.0, 900.0, 800.0, 700.0]) * units.hPa
    temperature, dewpoint = units.Quantity(x[0], "degC"), units.Quantity(x[1], "degC")
    profile = metpy.calc.parcel_profile(pressure, temperature, dewpoint)
    return profile.m.sum() + metpy.calc.equivalent_potential_temperature(pressure[0], temperature, dewpoint).m


@program("pybaselines", 10.0, 50.0, 8.0)
def baselines(x: Any) -> Any:
    import numpy as np
    from pybaselines import Baseline

    t = np.linspace(20.0, 80.0, 31)
    y = x[0] * np.exp(-(((t - x[1]) / x[2]) ** 2)) + 1.0 + 1e-3 * t**2
    fitter = Baseline(t)
    return fitter.poly(y, 2)[0][:5].sum() + fitter.mixture_model(y, lam=1e3)[0][:5].sum()


@program("pymap3d", 42.0, -82.0, 200.0)
def places(x: Any) -> Any:
    import pymap3d
    from pymap3d.vincenty import vdist

    earth = pymap3d.geodetic2ecef(*x)
    return sum(pymap3d.ecef2aer(*earth, 42.1, -82.1, 100.0)) + vdist(x[0], x[1], 41.0, -80.0)[0] * 1e-3


@program("pyromat", 400.0, 2.0)
def gas_and_vapour(x: Any) -> Any:
    import pyromat

    air, carbon_dioxide = pyromat.get("ig.air"), pyromat.get("mp.CO2")
    return air.s(T=x[0], p=x[1])[0] + air.T_s(s=7.0, p=x[1])[0] + carbon_dioxide.hs(T=0.7 * x[0])[0][0]


@program("rocketpy", 1.5, 0.7, 0.2)
def rocket(x: Any) -> Any:
    from rocketpy import Function, NoseCone
    from rocketpy.mathutils.vector_matrix import Matrix, Vector

    thrust = Function([(0.0, 0.0), (1.0, 2.0 * x[1]), (2.0, 1.0), (3.0, x[2])], interpolation="spline")
    turned = Matrix.transformation([x[0], x[1], 0.1, 0.2]) @ Vector(list(x))
    nose = NoseCone(length=x[0], kind="vonKarman", base_radius=x[1], rocket_radius=0.05)
    return thrust.integral(0.2, 2.5) + thrust.differentiate(1.2) + abs(turned) + nose.cpz


@program("scikit-fem", 1.0, 0.5)
def finite_elements(x: Any) -> Any:
    import numpy as np
    import skfem
    from skfem.helpers import dot, grad
    from skfem.models.poisson import unit_load

    basis = skfem.Basis(skfem.MeshTri().refined(2), skfem.ElementTriP1())
    stiffness = skfem.BilinearForm(lambda u, v, w: (1.0 + x[0] * np.sin(x[1] * w.x[0])) * dot(grad(u), grad(v)))
    system = skfem.condense(stiffness.assemble(basis), unit_load.assemble(basis), D=basis.mesh.boundary_nodes())
    return (skfem.solve(*system) ** 2).sum()
