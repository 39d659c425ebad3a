"""Grey morphology of ``scipy.ndimage`` with footprints and structures, whose compiled filter has a counterpart."""

import numpy as np
import pytest
from helpers import normal
from scipy import ndimage

from funcgrad import grad, jvp, vmap

CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
WINDOWS = {
    "footprint": {"footprint": CROSS},
    "structure": {"structure": normal(3, 3, seed=5)},
    "both": {"footprint": CROSS, "structure": normal(3, 3, seed=5)},
    "constant": {"structure": normal(2, 3, seed=5), "mode": "constant", "cval": 0.3},
    "nearest": {"structure": normal(3, 3, seed=5), "mode": "nearest", "origin": (1, -1)},
    "wrap": {"footprint": np.ones((3, 2)), "structure": normal(3, 2, seed=5), "mode": "wrap"},
}
NAMES = (
    "grey_dilation grey_erosion grey_opening grey_closing morphological_gradient morphological_laplace white_tophat "
    "black_tophat"
)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", NAMES.split())
def test_derivatives_in_image_and_structure(name, window):
    options, image = WINDOWS[window], normal(5, 6)
    check(lambda x: getattr(ndimage, name)(x, **options), image)
    if "structure" in options:
        check(lambda s: getattr(ndimage, name)(image, **{**options, "structure": s}), options["structure"])


def check(fun, x):
    moved, h = normal(*x.shape, seed=1), 1e-7
    value, tangent = jvp(fun, (x,), (moved,))
    np.testing.assert_allclose(value, fun(x), rtol=1e-12, strict=True)
    np.testing.assert_allclose(tangent, (fun(x + h * moved) - fun(x - h * moved)) / (2 * h), atol=1e-5)
    weights = normal(*value.shape, seed=2)
    gradient = grad(lambda x: np.sum(fun(x) * weights))
    np.testing.assert_allclose(np.sum(gradient(x) * moved), np.sum(tangent * weights), rtol=1e-10)
    both = vmap(gradient)(np.stack([x, -x]))
    np.testing.assert_allclose(both, [gradient(x), gradient(-x)], rtol=1e-12)


def test_of_equal_pixels_the_first_in_the_window_is_chosen():
    dilated = lambda x: np.sum(ndimage.grey_dilation(x, structure=np.zeros((1, 3)))[0, 1])
    assert grad(dilated)(np.array([[1.0, 1.0, 0.0]])).tolist() == [[1.0, 0.0, 0.0]]
