"""Elliptic integrals and functions with SciPy's arguments: the parameter is m, the square of the modulus.

Derivatives of any order are integrals of one form, without cancellation: they are accurate to about 1e-14.
"""

from __future__ import annotations

from funcgrad.scipy.special.operations import elliptic as prim
from funcgrad.scipy.special.ufunc import table

__all__ = [
    "agm", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf",
    "elliprg", "elliprj",
]  # fmt: skip

row = table(__name__)

# fmt: off
ellipk = row("ellipk(m)", prim.ellipk,
    "The complete elliptic integral of the first kind. The derivative at 1 is infinite.",
    "grad(fsp.ellipk)(0.0).round(10)", "np.float64(0.3926990817)")
ellipkm1 = row("ellipkm1(p)", prim.ellipkm1, "The integral ``ellipk(1 - p)``, accurate for small p.",
    "grad(fsp.ellipkm1)(1.0).round(10)", "np.float64(-0.3926990817)")
ellipe = row("ellipe(m)", prim.ellipe,
    "The complete elliptic integral of the second kind. The derivative at 1 is minus infinity.",
    "grad(fsp.ellipe)(0.0).round(10)", "np.float64(-0.3926990817)")
ellipkinc = row("ellipkinc(phi, m)", prim.ellipkinc,
    """The incomplete elliptic integral of the first kind up to the angle ``phi``, with parameter ``m``, DLMF 19.2.4.

    The derivative in m is half the integral of ``sin(t)**2 / (1 - m * sin(t)**2)**1.5``.""",
    "grad(fsp.ellipkinc, 1)(1.0, 0.0).round(10)", "np.float64(0.1363378216)")
ellipeinc = row("ellipeinc(phi, m)", prim.ellipeinc,
    """The incomplete elliptic integral of the second kind up to the angle ``phi``, with parameter ``m``, DLMF 19.2.5.

    The derivative in m is minus half the integral of ``sin(t)**2 / sqrt(1 - m * sin(t)**2)``.""",
    "grad(fsp.ellipeinc, 1)(1.0, 0.0).round(10)", "np.float64(-0.1363378216)")
elliprc = row("elliprc(x, y)", prim.elliprc, """Carlson's degenerate elliptic integral ``R_C(x, y)``, DLMF 19.2.17.

    The derivatives are integrals of the same form. For negative ``x`` they are NaN; for negative ``y`` they belong to
    Cauchy's principal value.

    Raises:
        NotDifferentiableError: a derivative at complex arguments is requested.""",
    "grad(fsp.elliprc)(1.0, 2.0).round(10)", "np.float64(-0.1073009183)")
elliprd = row("elliprd(x, y, z)", prim.elliprd,
    """Carlson's elliptic integral ``R_D(x, y, z)``, symmetric in ``x`` and ``y``, DLMF 19.16.5.

    The derivatives are integrals of the same form. They are NaN for negative arguments.

    Raises:
        NotDifferentiableError: a derivative at complex arguments is requested.""",
    "grad(fsp.elliprd)(1.0, 2.0, 3.0).round(10)", "np.float64(-0.0671629841)")
elliprf = row("elliprf(x, y, z)", prim.elliprf, """Carlson's symmetric elliptic integral ``R_F(x, y, z)``, DLMF 19.16.1.

    The derivatives are integrals of the same form. They are NaN for negative arguments.

    Raises:
        NotDifferentiableError: a derivative at complex arguments is requested.""",
    "grad(fsp.elliprf)(1.0, 2.0, 3.0).round(10)", "np.float64(-0.0931853696)")
elliprg = row("elliprg(x, y, z)", prim.elliprg, """Carlson's symmetric elliptic integral ``R_G(x, y, z)``, DLMF 19.16.3.

    The derivatives are integrals of the same form. They are NaN for negative arguments.

    Raises:
        NotDifferentiableError: a derivative at complex arguments is requested.""",
    "grad(fsp.elliprg)(1.0, 2.0, 3.0).round(10)", "np.float64(0.1351437991)")
elliprj = row("elliprj(x, y, z, p)", prim.elliprj,
    """Carlson's elliptic integral ``R_J(x, y, z, p)``, symmetric in ``x``, ``y`` and ``z``, DLMF 19.16.2.

    The derivatives are integrals of the same form. They are NaN for negative arguments.

    Raises:
        NotDifferentiableError: a derivative at complex arguments is requested.""",
    "grad(fsp.elliprj)(1.0, 2.0, 3.0, 4.0).round(10)", "np.float64(-0.0532106863)")
ellipj = row("ellipj(u, m) -> tuple[Array, Array, Array, Array]", prim.ellipj,
    """Jacobi's elliptic functions sn, cn and dn, and the amplitude, for m from 0 to 1.

    The derivatives in u are DLMF 22.13.1. The derivatives in m follow from ``ellipkinc(p, m) = u`` for the amplitude p.
    """, "grad(lambda u, m: fsp.ellipj(u, m)[0], 1)(1.0, 0.5).round(10)", "np.float64(-0.0800484189)")
agm = row("agm(a, b)", prim.agm,
    "The arithmetic-geometric mean of ``a`` and ``b``, which have the same sign. Derivatives: DLMF 19.8.5.",
    "grad(fsp.agm)(1.0, 1.0).round(10)", "np.float64(0.5)")
# fmt: on
