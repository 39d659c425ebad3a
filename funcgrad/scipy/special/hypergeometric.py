"""Hypergeometric functions: derivatives in the argument and in the parameters.

Those in parameters that come from central differences over 21 points are good to about 1e-13 of the function where
SciPy's values are; the fourth derivative is the last. At a pole of the function they are NaN.
"""

from __future__ import annotations

from funcgrad.scipy.special.operations import hypergeometric as prim
from funcgrad.scipy.special.ufunc import table

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu"]

row = table(__name__)

# fmt: off
hyp0f1 = row("hyp0f1(v, z)", lambda v, z: prim.hyp0f1(v, z, orders=(0, 0)), """The confluent limit function 0F1.

    Its derivative in z is ``hyp0f1(v + 1, z) / v``, DLMF 16.3.1; that in v comes from differences.
    Complex z are supported.""", "grad(fsp.hyp0f1)(0.5, 1.0).round(10)", "np.float64(-6.0726969045)")
hyp1f1 = row("hyp1f1(a, b, x)", lambda a, b, x: prim.hyp1f1(a, b, x, orders=(0, 0, 0)), """Kummer's function M, 1F1.

    Its derivative in x is ``a / b * hyp1f1(a + 1, b + 1, x)``, DLMF 13.3.15; those in a and b come from differences.
    Complex x are supported. JAX arrays too, with the accuracy of JAX's kernel.""",
    "grad(fsp.hyp1f1)(0.5, 1.5, 1.0).round(10)", "np.float64(1.0250371354)")
hyp2f1 = row("hyp2f1(a, b, c, z)", lambda a, b, c, z: prim.hyp2f1(a, b, c, z, orders=(0, 0, 0, 0)),
    """Gauss's function 2F1.

    Its derivative in z is ``a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)``, DLMF 15.5.1; those in a, b and c come from
    differences. Complex z are supported. JAX arrays too, with the accuracy of JAX's kernel.""",
    "grad(fsp.hyp2f1)(0.5, 1.5, 2.0, 0.3).round(10)", "np.float64(0.3003752441)")
hyperu = row("hyperu(a, b, x)", prim.hyperu, """Tricomi's function U, for x > 0.

    Its derivatives come from the integral DLMF 13.4.4. For a <= 0, where there is none, that in x is
    ``-a * hyperu(a + 1, b + 1, x)``, DLMF 13.3.22, and those in a and b are NaN.""",
    "grad(fsp.hyperu)(0.5, 1.5, 1.0).round(10)", "np.float64(-0.3309641863)")
# fmt: on
