"""Bessel and Hankel functions.

Derivatives in the argument come from recurrences and are exact to rounding wherever the values are. Derivatives in a
real order ``v`` come from an integral (``kv``, ``kve``: any order of derivative) or from central differences over 21
points (accurate to about 1e-13 of the function, up to the fourth derivative). SciPy's kernels take NumPy arrays; JAX
has only ``i0``, ``i1``, ``i0e`` and ``i1e``.
"""

from __future__ import annotations

from funcgrad.scipy.special.operations import bessel as prim
from funcgrad.scipy.special.ufunc import table

__all__ = [
    "j0", "j1", "y0", "y1", "i0", "i1", "i0e", "i1e", "k0", "k1", "k0e", "k1e", "jn", "jv", "jve", "yn", "yv", "yve",
    "iv", "ive", "kn", "kv", "kve", "hankel1", "hankel1e", "hankel2", "hankel2e",
]  # fmt: skip

row = table(__name__)

# fmt: off
j0 = row("j0(x)", prim.j0,
    "The Bessel function of the first kind of order 0. Its derivative is ``-j1(x)``, DLMF 10.6.3.",
    "grad(fsp.j0)(1.0).round(12)", "np.float64(-0.440050585745)")
j1 = row("j1(x)", prim.j1,
    "The Bessel function of the first kind of order 1. Its derivative is ``(j0(x) - jn(2, x)) / 2``, DLMF 10.6.1.",
    "grad(fsp.j1)(0.0).round(12)", "np.float64(0.5)")
y0 = row("y0(x)", prim.y0,
    "The Bessel function of the second kind of order 0. Its derivative is ``-y1(x)``, DLMF 10.6.3.",
    "grad(fsp.y0)(1.0).round(12)", "np.float64(0.7812128213)")
y1 = row("y1(x)", prim.y1,
    "The Bessel function of the second kind of order 1. Its derivative is ``(y0(x) - yn(2, x)) / 2``, DLMF 10.6.1.",
    "grad(fsp.y1)(1.0).round(12)", "np.float64(0.869469785516)")
i0 = row("i0(x)", prim.i0,
    "The modified Bessel function of the first kind of order 0. Its derivative is ``i1(x)``, DLMF 10.29.3.",
    "grad(fsp.i0)(1.0).round(12)", "np.float64(0.565159103992)")
i1 = row("i1(x)", prim.i1, """The modified Bessel function of the first kind of order 1.

    Its derivative is ``(i0(x) + iv(2, x)) / 2``, DLMF 10.29.1.""", "grad(fsp.i1)(0.0).round(12)", "np.float64(0.5)")
i0e = row("i0e(x)", lambda x: prim.scaled_bessel_i(x, order=0),
    "The scaled function ``exp(-abs(x)) * i0(x)``. At 0, a kink, the derivative is that for positive x.",
    "grad(fsp.i0e)(0.0).round(12)", "np.float64(-1.0)")
i1e = row("i1e(x)", lambda x: prim.scaled_bessel_i(x, order=1), "The scaled function ``exp(-abs(x)) * i1(x)``.",
    "grad(fsp.i1e)(0.0).round(12)", "np.float64(0.5)")
k0 = row("k0(x)", prim.k0,
    "The modified Bessel function of the second kind of order 0. Its derivative is ``-k1(x)``, DLMF 10.29.3.",
    "grad(fsp.k0)(1.0).round(12)", "np.float64(-0.601907230197)")
k1 = row("k1(x)", prim.k1, """The modified Bessel function of the second kind of order 1.

    Its derivative is ``-(k0(x) + kn(2, x)) / 2``, DLMF 10.29.1.""", "grad(fsp.k1)(1.0).round(12)",
    "np.float64(-1.022931668438)")
k0e = row("k0e(x)", prim.k0e, "The scaled function ``exp(x) * k0(x)``.", "grad(fsp.k0e)(1.0).round(12)",
    "np.float64(-0.491690406456)")
k1e = row("k1e(x)", prim.k1e, "The scaled function ``exp(x) * k1(x)``.", "grad(fsp.k1e)(1.0).round(12)",
    "np.float64(-1.144463079807)")
jv = row("jv(v, z)", prim.jv, """The Bessel function of the first kind of real order.

    The derivative in z is ``(jv(v - 1, z) - jv(v + 1, z)) / 2``, DLMF 10.6.1. The derivative in v is NaN for negative
    z, where only whole orders give real numbers. Complex z are supported.""", "grad(fsp.jv)(0.5, 1.0).round(10)",
    "np.float64(-0.4081037814)")
yv = row("yv(v, z)", prim.yv, """The Bessel function of the second kind of real order.

    The derivative in z is ``(yv(v - 1, z) - yv(v + 1, z)) / 2``, DLMF 10.6.1. The derivative in v at v = 0 is
    ``-pi / 2 * j0(z)``, DLMF 10.15.4. Complex z are supported.""", "grad(fsp.yv)(0.5, 1.0).round(10)",
    "np.float64(-0.8490394201)")
iv = row("iv(v, z)", prim.iv, """The modified Bessel function of the first kind of real order.

    The derivative in z is ``(iv(v - 1, z) + iv(v + 1, z)) / 2``, DLMF 10.29.1. The derivative in v at v = 0 is
    ``-k0(z)``, DLMF 10.38.4. Complex z are supported.""", "grad(fsp.iv)(0.5, 1.0).round(10)",
    "np.float64(-0.7801261782)")
kv = row("kv(v, z)", prim.kv, """The modified Bessel function of the second kind of real order.

    The derivative in z is ``-(kv(v - 1, z) + kv(v + 1, z)) / 2``, DLMF 10.29.1. The derivative in v, to any order, is
    that of the integral DLMF 10.32.9. Complex z are supported.""", "grad(fsp.kv)(0.5, 1.0).round(10)",
    "np.float64(0.166597245)")
jve = row("jve(v, z)", prim.jve, """The scaled function ``jv(v, z) * exp(-abs(z.imag))``, equal to ``jv`` for real z.

    Raises:
        NotDifferentiableError: a derivative in a complex z, where the function is not analytic, is requested.""",
    "grad(fsp.jve)(0.5, 1.0).round(10)", "np.float64(-0.4081037814)")
yve = row("yve(v, z)", prim.yve, """The scaled function ``yv(v, z) * exp(-abs(z.imag))``, equal to ``yv`` for real z.

    Raises:
        NotDifferentiableError: a derivative in a complex z, where the function is not analytic, is requested.""",
    "grad(fsp.yve)(0.5, 1.0).round(10)", "np.float64(-0.8490394201)")
ive = row("ive(v, z)", prim.ive,
    """The scaled function ``iv(v, z) * exp(-abs(z.real))``. The derivative at 0 takes the slope of ``abs`` to be 0.

    Raises:
        NotDifferentiableError: a derivative in a complex z, where the function is not analytic, is requested.""",
    "grad(fsp.ive)(0.5, 1000.0).round(10)", "np.float64(-6.311e-06)")
kve = row("kve(v, z)", prim.kve, "The scaled function ``kv(v, z) * exp(z)``. Complex z are supported.",
    "grad(fsp.kve)(0.5, 1000.0).round(10)", "np.float64(1.98067e-05)")
hankel1 = row("hankel1(v, z)", prim.hankel1,
    "The Hankel function ``jv(v, z) + 1j * yv(v, z)``, which is complex, with derivatives as for ``jv``.",
    "jvp(lambda z: fsp.hankel1(0.5, z), (1.0,), (1.0,))[1].round(10)", "np.complex128(0.0954005144+0.8869461412j)")
hankel1e = row("hankel1e(v, z)", prim.hankel1e, "The scaled function ``hankel1(v, z) * exp(-1j * z)``.",
    "jvp(lambda z: fsp.hankel1e(0.5, z), (1.0,), (1.0,))[1].round(10)", "np.complex128(0.3989422804j)")
hankel2 = row("hankel2(v, z)", prim.hankel2,
    "The Hankel function ``jv(v, z) - 1j * yv(v, z)``, which is complex, with derivatives as for ``jv``.",
    "jvp(lambda z: fsp.hankel2(0.5, z), (1.0,), (1.0,))[1].round(10)", "np.complex128(0.0954005144-0.8869461412j)")
hankel2e = row("hankel2e(v, z)", prim.hankel2e, "The scaled function ``hankel2(v, z) * exp(1j * z)``.",
    "jvp(lambda z: fsp.hankel2e(0.5, z), (1.0,), (1.0,))[1].round(10)", "np.complex128(-0.3989422804j)")
yn = row("yn(n, x)", prim.yn, """The Bessel function of the second kind of whole order ``n`` at ``x``.

    Raises:
        NotDifferentiableError: a derivative in n is requested, which ``yv`` has.""",
    "grad(fsp.yn, 1)(2, 1.0).round(12)", "np.float64(2.520152392332)")
kn = row("kn(n, x)", prim.kn, """The modified Bessel function of the second kind of whole order ``n`` at ``x``.

    Raises:
        NotDifferentiableError: a derivative in n is requested, which ``kv`` has.""",
    "grad(fsp.kn, 1)(2, 1.0).round(12)", "np.float64(-3.851585027468)")
jn = jv  # SciPy's second name for jv
# fmt: on
