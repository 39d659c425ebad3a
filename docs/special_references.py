"""Special functions of mpmath, and the grids on which ``special_accuracy.py`` compares with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp

__all__ = ["ENTRIES", "UNMEASURED", "Entry"]


@dataclass(frozen=True)
class Entry:
    """A function's reference and the points where its errors are measured.

    Args:
        reference: ``reference(*args)`` with mpmath's numbers; it returns a tuple if the function does.
        grids: values for each argument; integers are constants.
    """

    reference: Callable[..., Any]
    grids: tuple[tuple[float, ...], ...]


ENTRIES: dict[str, Entry] = {}
#: Public functions without a table row, and the reason.
UNMEASURED: dict[str, str] = {}

E = Entry
ORDERS = (0.0, 0.4, 2.5, 20.3)
SIZES = (1e-3, 0.7, 5.3, 40.0)
REALS = (-6.1, -0.7, 0.3, 2.9)
UNIT = (1e-3, 0.3, 0.8, 0.999)
SHAPES = (0.3, 2.5, 20.0)
half = mp.mpf(1) / 2


def add(**found: Entry) -> None:
    """Enter functions by name."""
    ENTRIES.update(found)


# ---- Bessel functions and their relatives ------------------------------------------------------------------


def _scaled(fun: Callable[..., Any], factor: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda v, x: fun(v, x) * factor(x)


def _whole(fun: Callable[..., Any], n: int) -> Callable[..., Any]:
    return lambda x: fun(n, x)


def _slope(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda v, x: mp.diff(lambda z: fun(v, z), x)


def _spherical(fun: Callable[..., Any], factor: Any) -> Callable[..., Any]:
    return lambda n, x: mp.sqrt(factor) / mp.sqrt(x) * fun(n + half, x)


def _airy(z: Any) -> Any:
    """Compute near 0 by the series of DLMF 9.4, since mpmath gives constants for tiny numbers."""
    if abs(z) > 1:
        return mp.airyai(z), mp.airyai(z, derivative=1), mp.airybi(z), mp.airybi(z, derivative=1)
    third, cube = mp.mpf(1) / 3, z**3 / 9
    one, other = mp.rgamma(2 * third) / 3 ** (2 * third), mp.rgamma(third) / 3**third
    even, odd = one * mp.hyp0f1(2 * third, cube), other * z * mp.hyp0f1(4 * third, cube)
    even_slope, odd_slope = one * z * z / 2 * mp.hyp0f1(5 * third, cube), other * mp.hyp0f1(third, cube)
    root = mp.sqrt(3)
    return even - odd, even_slope - odd_slope, root * (even + odd), root * (even_slope + odd_slope)


def _airye(z: Any) -> Any:
    factor = mp.exp(2 * z * mp.sqrt(z) / 3)
    ai, aip, bi, bip = _airy(z)
    return ai * factor, aip * factor, bi / factor, bip / factor


def damped(x: Any) -> Any:
    """Return ``exp(-abs(x))``."""
    return mp.exp(-abs(x))


def _of_order(names: str, fun: Callable[..., Any]) -> None:
    for name in names.split():
        ENTRIES[name] = E(fun, (ORDERS, SIZES))


_of_order("jv jn jve", mp.besselj)
_of_order("yv yve", mp.bessely)
_of_order("iv", mp.besseli)
_of_order("kv", mp.besselk)
_of_order("ive", _scaled(mp.besseli, damped))
_of_order("kve", _scaled(mp.besselk, mp.exp))
_of_order("hankel1", mp.hankel1)
_of_order("hankel2", mp.hankel2)
_of_order("hankel1e", _scaled(mp.hankel1, lambda x: mp.exp(-1j * x)))
_of_order("hankel2e", _scaled(mp.hankel2, lambda x: mp.exp(1j * x)))
_of_order("struve", mp.struveh)
for _name, _fun in {
    "jvp": mp.besselj,
    "yvp": mp.bessely,
    "ivp": mp.besseli,
    "kvp": mp.besselk,
    "h1vp": mp.hankel1,
    "h2vp": mp.hankel2,
}.items():
    ENTRIES[_name] = E(_slope(_fun), ((0.4, 2.5), (0.7, 5.3)))
for _name, _fun in {"j": mp.besselj, "y": mp.bessely, "i": mp.besseli, "k": mp.besselk}.items():
    for _n in (0, 1):
        ENTRIES[f"{_name}{_n}"] = E(_whole(_fun, _n), (SIZES,))
    ENTRIES[f"spherical_{_name}n"] = E(_spherical(_fun, mp.pi / 2), ((0, 1, 5), SIZES[1:]))
add(
    modstruve=E(mp.struvel, (ORDERS, SIZES[:-1])),
    i0e=E(lambda x: mp.besseli(0, x) * damped(x), (SIZES,)),
    i1e=E(lambda x: mp.besseli(1, x) * damped(x), (SIZES,)),
    k0e=E(lambda x: mp.besselk(0, x) * mp.exp(x), (SIZES,)),
    k1e=E(lambda x: mp.besselk(1, x) * mp.exp(x), (SIZES,)),
    yn=E(mp.bessely, ((0, 3), SIZES)),
    kn=E(mp.besselk, ((0, 3), SIZES)),
    airy=E(_airy, ((-7.3, -0.4, 0.6, 8.0),)),
    airye=E(_airye, ((0.1, 0.6, 8.0, 60.0),)),
)
UNMEASURED["bessel_jn"] = "on NumPy arrays, bessel_jn computes jv with integer orders"

# ---- elliptic integrals and functions ----------------------------------------------------------------------

PARAMETERS = (-3.0, 1e-3, 0.5, 0.99)
POSITIVE = (0.01, 1.3, 40.0)


def _ellipj(u: Any, m: Any) -> Any:
    sn, cn, dn = (mp.ellipfun(kind, u, m=m) for kind in ("sn", "cn", "dn"))
    amplitude = mp.findroot(
        lambda p: mp.ellipf(p, m) - u, mp.asin(mp.re(sn)) if u < 1 else u * mp.pi / 2 / mp.ellipk(m)
    )
    return sn, cn, dn, amplitude


add(
    ellipk=E(mp.ellipk, (PARAMETERS,)),
    ellipkm1=E(lambda p: mp.ellipk(1 - p), ((1e-10, 0.1, 0.7),)),
    ellipe=E(mp.ellipe, (PARAMETERS,)),
    ellipkinc=E(mp.ellipf, ((-0.3, 1.2, 4.0), PARAMETERS)),
    ellipeinc=E(lambda phi, m: mp.ellipe(phi, m), ((-0.3, 1.2, 4.0), PARAMETERS)),
    ellipj=E(_ellipj, ((0.3, 2.1), (0.1, 0.9))),
    elliprc=E(mp.elliprc, (POSITIVE, POSITIVE)),
    elliprd=E(mp.elliprd, (POSITIVE, POSITIVE, (0.6, 3.0))),
    elliprf=E(mp.elliprf, (POSITIVE, POSITIVE, (0.6, 3.0))),
    elliprg=E(mp.elliprg, (POSITIVE, POSITIVE, (0.6, 3.0))),
    elliprj=E(mp.elliprj, ((0.01, 1.3), (0.2, 4.0), (0.6,), (0.3, 5.0))),
    agm=E(mp.agm, (POSITIVE, POSITIVE)),
)

# ---- hypergeometric functions, orthogonal polynomials ------------------------------------------------------

DEGREES = (0, 1, 6)
INSIDE = (-0.9, -0.2, 0.5)
ABOVE = (0.4, 2.3)


def _harmonic(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    n, m = int(n), int(m)
    size = mp.sqrt((2 * n + 1) / (4 * mp.pi) * mp.fac(n - m) / mp.fac(n + m))
    return size * mp.legenp(n, m, mp.cos(theta)) * mp.exp(1j * m * phi)


add(
    hyp0f1=E(mp.hyp0f1, ((0.4, 3.3, 12.0), REALS)),
    hyp1f1=E(mp.hyp1f1, ((-0.6, 2.3), (0.7, 5.2), (-20.0, -0.7, 0.3, 12.0))),
    hyp2f1=E(mp.hyp2f1, ((-0.6, 2.3), (0.7,), (1.6, 4.2), (-3.0, 0.3, 0.8))),
    hyperu=E(mp.hyperu, ((0.4, 2.3), (-1.6, 2.4), (0.3, 2.0, 15.0))),
    eval_legendre=E(mp.legendre, (DEGREES, INSIDE)),
    eval_chebyt=E(mp.chebyt, (DEGREES, INSIDE)),
    eval_chebyu=E(mp.chebyu, (DEGREES, INSIDE)),
    eval_chebyc=E(lambda n, x: 2 * mp.chebyt(n, x / 2), (DEGREES, INSIDE)),
    eval_chebys=E(lambda n, x: mp.chebyu(n, x / 2), (DEGREES, INSIDE)),
    eval_sh_legendre=E(lambda n, x: mp.legendre(n, 2 * x - 1), (DEGREES, UNIT)),
    eval_sh_chebyt=E(lambda n, x: mp.chebyt(n, 2 * x - 1), (DEGREES, UNIT)),
    eval_sh_chebyu=E(lambda n, x: mp.chebyu(n, 2 * x - 1), (DEGREES, UNIT)),
    eval_hermite=E(mp.hermite, (DEGREES, REALS)),
    eval_hermitenorm=E(lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n, (DEGREES, REALS)),
    eval_laguerre=E(lambda n, x: mp.laguerre(n, 0, x), (DEGREES, REALS)),
    eval_genlaguerre=E(mp.laguerre, (DEGREES, ABOVE, REALS)),
    eval_gegenbauer=E(mp.gegenbauer, (DEGREES, ABOVE, INSIDE)),
    eval_jacobi=E(mp.jacobi, (DEGREES, ABOVE, ABOVE, INSIDE)),
    eval_sh_jacobi=E(
        lambda n, p, q, x: mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n),
        (DEGREES, (2.3,), (0.6, 1.2), UNIT),
    ),
    lpmv=E(lambda m, v, x: mp.legenp(v, m, x), ((0, 2), (3,), INSIDE)),
    sph_harm_y=E(_harmonic, ((3,), (0, 2, -1), (0.4, 2.0), (0.7,))),
)
