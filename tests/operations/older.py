"""What rows of the table are not asked with older versions of the libraries that they are compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import scipy
from helpers import at_least

from operations.spec import Op

#: Library, version, what a row has with older ones, names of rows.
CAME_LATER: list[tuple[Any, str, dict[str, Any], str]] = [
    (  # functions, arguments and derivatives that JAX had not, and products of complex and real numbers that warned
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
    (  # those among them that compute on JAX's arrays by JAX's function
        jax,
        "0.10.0",
        {"on_jax": None},
        "scipy.special.dawsn scipy.special.erfcx scipy.special.erfi scipy.special.hyp2f1 scipy.special.log_ndtr"
        " scipy.special.loggamma scipy.special.ndtri_exp scipy.special.owens_t scipy.special.sici"
        " scipy.special.sph_harm_y scipy.special.voigt_profile scipy.special.wofz scipy.stats.exponnorm"
        " scipy.stats.norm scipy.stats.skewnorm scipy.stats.truncnorm",
    ),
    (np, "2.4.0", {"numpy": None}, "count_nonzero"),  # it gave Python's number
    (scipy, "1.17.0", {"numpy": None}, "scipy.integrate.cumulative_simpson scipy.special.comb"),
]
#: Rows that do not meet the demands: values were not exact enough to be differentiated by differences, or sinc of a
#: half 0 was no number.
LEFT_OUT = [
    *["scipy.special.btdtria", "scipy.special.pdtrik"] * (not at_least(scipy, "1.17.0")),
    # off by 3e-12 and 2e-9 of what mpmath has
    *["scipy.special.chndtrix", "scipy.special.nctdtrit"] * (not at_least(scipy, "1.17.0")),
    *["scipy.special.sici"] * (not at_least(np, "2.4.0")),
]


def asked(op: Op) -> Op:
    """The row as it is asked with the versions that are there."""
    for library, version, changes, names in CAME_LATER:
        if op.name in names.split() and not at_least(library, version):
            op = replace(op, **changes, reason=op.reason or f"came with {library.__name__} {version}")
    return op
