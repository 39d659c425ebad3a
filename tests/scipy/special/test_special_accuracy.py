"""The page on accuracy has an entry for each special function, and some of its rows agree with new measurements."""

import importlib.util
import sys
from pathlib import Path

import pytest

import funcgrad.scipy.special as fsp

PATH = Path(__file__).resolve().parents[3] / "docs" / "special_accuracy.py"
#: Rows that are measured again: fast ones, with every kind of derivative.
AGAIN = [
    "j1",
    "airy",
    "ellipk",
    "elliprc",
    "eval_laguerre",
    "hyp0f1",
    "erfcx",
    "digamma",
    "gammainc",
    "stdtr",
    "exprel",
]


@pytest.fixture(scope="module")
def accuracy():
    before = sys.path[:]
    spec = importlib.util.spec_from_file_location("special_accuracy", PATH)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = before


def test_every_function_has_an_entry(accuracy):
    silent = set(fsp.__all__) - set(accuracy.ENTRIES) - set(accuracy.UNMEASURED)
    assert sorted(silent) == [], "measure these in docs/special_references*.py, or say why not"


def test_every_entry_names_a_function(accuracy):
    assert sorted({*accuracy.ENTRIES, *accuracy.UNMEASURED} - set(fsp.__all__)) == []
    assert not set(accuracy.ENTRIES) & set(accuracy.UNMEASURED)


def test_page_has_every_entry(accuracy):
    page = accuracy.PAGE.read_text()
    assert [name for name in accuracy.ENTRIES if f"| `{name}` |" not in page] == [], (
        "run: python docs/special_accuracy.py"
    )
    assert [name for name in accuracy.UNMEASURED if f"- `{name}`:" not in page] == []


@pytest.mark.parametrize("name", AGAIN)
def test_measured_accuracy_is_not_worse_than_page(accuracy, name):
    line = next(line for line in accuracy.PAGE.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    *_, value, slopes, _ = [part.strip() for part in line.split("|")]
    said = [value, *slopes.split(", ")]
    live = accuracy.live(accuracy.points(accuracy.ENTRIES[name])[0])
    found = [accuracy.worst(name, i) for i in (None, *live)]
    assert len(said) == len(found)
    for claim, (size, _) in zip(said, found, strict=True):
        # another version of SciPy or of the C library may round otherwise
        assert size <= 4 * float(claim.removesuffix(" c")) + 20


def test_wrong_derivative_is_found(accuracy, monkeypatch):
    monkeypatch.setitem(accuracy.ENTRIES, "j1", accuracy.Entry(accuracy.ENTRIES["j0"].reference, ((0.7,),)))
    assert accuracy.worst("j1", 0)[0] > 1e10
