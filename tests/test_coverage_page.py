"""The coverage page has an entry for each public name of NumPy, and agrees with the code."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad.core import Tracer

PATH = Path(__file__).resolve().parent.parent / "docs" / "coverage.py"


@pytest.fixture(scope="module")
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_page", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: Names that NumPy had before 2.4, which warned or reported their removal.
GONE = {"in1d", "trapz", "linalg", "helper", "itemset", "newbyteorder", "ptp", "tostring"}


@pytest.mark.parametrize(("prefix", "module"), [("", np), ("linalg.", np.linalg), ("fft.", np.fft)])
def test_every_public_name_of_numpy_has_an_entry(coverage, prefix, module):
    tested = coverage.rows()
    silent = {name for name in coverage.public(module) if not coverage.verdict(prefix + name, tested)[0]}
    assert silent - GONE == set(), "give these to funcgrad.numpy, or say in docs/coverage.py why not"


def test_every_method_of_an_ndarray_has_an_entry(coverage):
    missing = coverage.listed(coverage.NO_METHOD)
    silent = {name for name in coverage.public(np.ndarray) if not hasattr(Tracer, name) and name not in missing}
    assert silent - GONE == set()


def test_missing_entries_are_missing(coverage):
    there = [name for name in coverage.listed(coverage.NOT_COVERED) if name in fnp.__all__]
    assert there == []


def test_page_is_up_to_date(coverage):
    if at_least(np, "2.4.0"):  # the page describes that version
        assert coverage.PAGE.read_text() == coverage.page(), "run: python docs/coverage.py"
