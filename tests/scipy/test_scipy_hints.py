"""Messages when a function of SciPy receives a traced value: they name the function to use."""

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.spatial.transform
import scipy.stats
from helpers import at_least

from funcgrad import grad
from funcgrad.errors import ConcretizationError
from funcgrad.scipy import integrate

pytestmark = pytest.mark.usefixtures("written")

POINTS = np.arange(3.0)
HINTS = {
    "a function": (lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x), "Use funcgrad.scipy.signal.lfilter for"),
    "a function of batches": (lambda x: scipy.linalg.toeplitz(x), "Use funcgrad.scipy.linalg.toeplitz for"),
    "a wrapped function": (
        lambda x: scipy.linalg.cho_factor(x * np.eye(3)),
        "Use funcgrad.scipy.linalg.cho_factor for",
    ),
    "a filter": (lambda x: scipy.ndimage.gaussian_filter(x, 1.0), "Use funcgrad.scipy.ndimage.gaussian_filter for"),
    "a module of a module": (
        lambda x: scipy.spatial.distance.pdist(x[:, None]),
        "Use funcgrad.scipy.spatial.distance.pdist for",
    ),
    "a static method": (
        lambda x: scipy.spatial.transform.Rotation.from_rotvec(x).as_matrix(),
        "Use funcgrad.scipy.spatial.transform.Rotation for",
    ),
    "a distribution": (lambda x: scipy.stats.norm.cdf(x), "Use funcgrad.scipy.stats.norm for"),
    "a curve": (
        lambda x: scipy.interpolate.CubicSpline(POINTS, x)(0.5),
        "Use funcgrad.scipy.interpolate.CubicSpline for",
    ),
    "a point on a curve": (
        lambda x: scipy.interpolate.PchipInterpolator(POINTS, POINTS)(x),
        "Use funcgrad.scipy.interpolate.PchipInterpolator for",
    ),
    "a closure": (
        lambda x: scipy.integrate.quad(lambda z: np.exp(-x[0] * z), 0.0, 1.0)[0],
        "Use funcgrad.scipy.integrate.quad for",
    ),
    "a closure that looks at the number of points": (
        lambda x: integrate.tanhsinh(lambda t: x[0] * t if np.size(t) > 30 else t, 0.0, 1.0).integral,
        "Pass the traced values that the function closes over in args",
    ),
}
if not at_least(scipy, "1.17.0"):  # older rotations are compiled, so that nothing tells which function was called
    del HINTS["a static method"]


@pytest.mark.parametrize(("program", "hint"), HINTS.values(), ids=HINTS)
def test_errors_name_function_to_use(program, hint):
    with pytest.raises(ConcretizationError, match=hint):
        grad(lambda x: np.sum(program(x)))(np.ones(3))
