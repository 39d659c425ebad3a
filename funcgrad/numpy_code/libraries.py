"""Packages whose functions are not rebuilt."""

from __future__ import annotations

import sys

from funcgrad.numpy_code.mathematics import NUMBER_MODULES

#: Packages whose functions and classes stay unchanged: they do not compute with NumPy, or convert on purpose.
KEPT_PACKAGES = (sys.stdlib_module_names - set(NUMBER_MODULES) - {"__main__"}) | {
    "IPython",
    "PIL",
    "_pytest",
    "attr",
    "attrs",
    "autograd",
    "cupy",
    "cytoolz",
    "dask",
    "funcgrad",
    "h5py",
    "hypothesis",
    "jax",
    "jaxlib",
    "joblib",
    "matplotlib",
    "mypy",
    "numba",
    "opt_einsum",
    "optree",
    "pandas",
    "plotly",
    "polars",
    "pydantic",
    "pytest",
    "rich",
    "sklearn",
    "skimage",
    "sympy",
    "tensorflow",
    "toolz",
    "torch",
    "tqdm",
    "xarray",
}
