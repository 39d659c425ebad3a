"""Packages whose functions are rebuilt, and packages that are used as they are."""

import numpy as np
import pytest

from funcgrad import grad
from funcgrad.errors import ConversionError

SOURCE = "import numpy as np\ndef total(x): return np.asarray(x, dtype=float).sum()"


def function_of(package):
    """Return a function that converts its argument, as if it were the package's."""
    names = {"__name__": f"{package}.example"}
    exec(SOURCE, names)
    return names["total"]


@pytest.mark.parametrize("package", ["sklearn", "skimage", "statsmodels", "mine"])
def test_functions_of_packages_are_rebuilt(package):
    total = function_of(package)
    np.testing.assert_array_equal(grad(lambda x: total(x))(np.ones(2)), np.ones(2))


@pytest.mark.parametrize("package", ["joblib", "narwhals", "threadpoolctl", "torch", "pydantic"])
def test_packages_used_unchanged(package):
    total = function_of(package)
    with pytest.raises(ConversionError, match=r"numpy.asarray\(x\): converting a traced value"):
        grad(lambda x: total(x))(np.ones(2))
