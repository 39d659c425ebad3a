"""Exceptions for rows that older versions of the compared libraries cannot meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import scipy
from helpers import at_least

from operations.spec import Op

#: Library, version, changes to the rows with older versions, names of rows.
CAME_LATER: list[tuple[Any, str, dict[str, Any], str]] = [
    (  # missing functions, arguments and derivatives, and products of complex and real numbers that warned
        jax,
        "0.10.0",
        {"jax": None},
        "average dot einsum frexp inner linalg.eig linalg.eigvals linalg.matrix_rank linalg.multi_dot linalg.qr"
        " linalg.solve matmul nn.identity nn.log1mexp nn.logmeanexp pad scipy.linalg.circulant scipy.linalg.companion"
        " scipy.linalg.convolution_matrix scipy.linalg.fiedler scipy.linalg.hankel scipy.linalg.leslie"
        " scipy.linalg.lu_solve scipy.special.dawsn scipy.special.erfcx scipy.special.loggamma scipy.special.owens_t"
        " scipy.special.sici scipy.special.sph_harm_y scipy.special.wofz scipy.stats.gumbel_l scipy.stats.gumbel_r sort"
        " vdot vecdot",
    ),
    (  # rows that compute on JAX arrays by a missing JAX function
        jax,
        "0.10.0",
        {"on_jax": None},
        "scipy.special.dawsn scipy.special.erfcx scipy.special.erfi scipy.special.hyp2f1 scipy.special.log_ndtr"
        " scipy.special.loggamma scipy.special.ndtri_exp scipy.special.owens_t scipy.special.sici"
        " scipy.special.sph_harm_y scipy.special.voigt_profile scipy.special.wofz scipy.stats.exponnorm"
        " scipy.stats.norm scipy.stats.skewnorm scipy.stats.truncnorm",
    ),
    (np, "2.4.0", {"numpy": None}, "count_nonzero"),  # it returned a Python number
    (scipy, "1.17.0", {"numpy": None}, "scipy.integrate.cumulative_simpson scipy.special.comb"),
]
#: Rows left out: values were too inexact for numerical differentiation, or sinc of a half-precision 0
#: was NaN.
LEFT_OUT = [
    *["scipy.special.btdtria", "scipy.special.pdtrik"] * (not at_least(scipy, "1.17.0")),
    # off by 3e-12 and 2e-9 from mpmath's values
    *["scipy.special.chndtrix", "scipy.special.nctdtrit"] * (not at_least(scipy, "1.17.0")),
    *["scipy.special.sici"] * (not at_least(np, "2.4.0")),
]


def asked(op: Op) -> Op:
    """Return the row with the changes for the installed versions."""
    for library, version, changes, names in CAME_LATER:
        if op.name in names.split() and not at_least(library, version):
            op = replace(op, **changes, reason=op.reason or f"came with {library.__name__} {version}")
    return op
