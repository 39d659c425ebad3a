import pytest

# Reached from here these folders would be imported as `transforms` and `interop`: second copies of the
# modules that are collected through the links in `funcgrad/`.
collect_ignore_glob = ["transforms/*", "interop/*"]


@pytest.fixture(scope="session")
def doctest_namespace():
    """What the examples of docstrings know without an import, as NumPy's know ``np``."""
    import numpy as np

    import funcgrad.nn as fnn
    import funcgrad.numpy as fnp
    import funcgrad.scipy.special as fsp
    from funcgrad import grad

    return {"np": np, "fnp": fnp, "fnn": fnn, "fsp": fsp, "grad": grad}
