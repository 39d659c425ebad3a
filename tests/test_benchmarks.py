"""The benchmarks run, their findings are judged correctly, and the page shows the stored figures."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "benchmarks" / "run.py"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_of_benchmarks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def performance():
    return load(ROOT / "docs" / "performance.py")


@pytest.fixture(scope="module")
def table():
    return load(ROOT / "benchmarks" / "table.py")


def report(ratio, memory, met=True):
    """Return a report of one program and one claim."""
    program = {
        "name": "a program",
        "us": 1.0,
        "us_per_operation": None,
        "gradient_per_value": 2.0,
        "peers": {"torch": {"us": 1 / ratio, "ratio": ratio, "bar": 0.5, "rounds": 1}},
        "memory": {"funcgrad": {"megabytes": 1e2 * memory, "bar": None}, "torch": {"megabytes": 1e2, "bar": 1.0}},
        "errors": [],
    }
    claim = {"what": "a claim", "ours": "", "against": "", "figure": 1.0, "bar": 2.0, "unit": "", "met": met}
    return {"setting": {}, "quick": False, "programs": [program], "claims": [claim]}


def test_benchmark_measures_funcgrad_and_manual_gradient(tmp_path):
    target = tmp_path / "found.json"
    command = [sys.executable, str(RUN), "--quick", "--only", "3-3-1", "--against", "hand", "--out", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(target.read_text())
    (program,) = found["programs"]
    assert found["quick"]
    assert program["errors"] == []
    assert program["us"] > 0 < program["peers"]["NumPy by hand"]["us"]
    assert program["operations"] > 5


def quick_programs():
    """Return the measuring module, and short versions of every program with each installed library except JAX."""
    sys.path.insert(0, str(RUN.parent))
    try:
        run = importlib.import_module("run")
        found = [
            pytest.param(program, label, id=f"{name} in {label}")
            for name, program in run.measuring.find(True).items()
            for label in program.libraries
            if not run.missing(label) and not label.startswith("JAX")
        ]
        return run.measuring, found
    finally:
        sys.path.remove(str(RUN.parent))


MEASURING, PROGRAMS = quick_programs()


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("program", "label"), PROGRAMS)
def test_libraries_agree_on_results(program, label):
    """A comparison of times needs equal results. ``make bench`` installs the libraries."""
    right = jax.tree.map(np.asarray, program.reference(*program.args(np.float64))())
    call = program.libraries[label](*program.args(np.float64))
    MEASURING.checked(call, right, label, MEASURING.TOLERANCE["float64"])


SERVES = """
import json, sys
print(json.dumps({"first": 1e-3, "operations": 0}), flush=True)
for place, line in enumerate(sys.stdin):
    print(1e-3 * (1 + place % 2), flush=True)
"""


def test_processes_alternate(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    turns = importlib.import_module("turns")
    command = [sys.executable, "-c", SERVES]
    with turns.started({"ours": command, "theirs": command}, os.environ) as servants:
        times = turns.in_turn(servants, quick=True)
    assert times == {"ours": [2e-3, 1e-3, 2e-3], "theirs": [2e-3, 1e-3, 2e-3]}
    broken = turns.started({"theirs": [sys.executable, "-c", "print(1 / 0)"]}, os.environ)
    with pytest.raises(turns.EndedError, match="division by zero") as caught, broken:
        pass
    assert "ZeroDivisionError" in caught.value.stderr


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (report(0.4, 0.9), []),
        (report(0.6, 0.9), ["a program, of torch"]),
        (report(0.4, 1.1), ["a program, memory of torch"]),
        (report(0.4, 0.9, met=False), ["a claim"]),
    ],
)
def test_figure_above_target_is_missed(table, found, missed):
    assert table.missed(found) == missed
    assert table.judged(found) == 3


def test_negligible_memory_peaks_are_not_compared(table):
    small = {"funcgrad": {"megabytes": 0.9, "bar": None}, "torch": {"megabytes": 0.1, "bar": 1.0}}
    assert table.memory_ratio(small, "torch") is None


def test_loss_is_reported_and_bold(performance):
    text = performance.figures(report(1.5, 0.5))
    assert "| **1.50** (0.5) |" in text
    assert "Time, compared with PyTorch: funcgrad needs less in 0 of 1 programs, more in a program (1.50)." in text
    assert "Memory, compared with PyTorch: funcgrad needs less in 1 of 1 programs." in text


def test_page_without_markers_raises(performance):
    with pytest.raises(ValueError, match="must both be there"):
        performance.page("no marks", report(1.0, 1.0))


def test_page_shows_stored_figures(performance):
    kept = json.loads(performance.RESULTS.read_text())
    assert not kept["quick"]
    text = performance.PAGE.read_text()
    assert performance.page(text, kept) == text, "run: python docs/performance.py"


def test_programs_measured_again_replace_older_figures(performance):
    kept = json.loads(performance.RESULTS.read_text())
    kept["programs"] = [{**program, "us": 1.0} for program in kept["programs"] if "measured" not in program]
    again = {**kept["programs"][3], "us": 2.0}
    new = {"setting": {"date": "2030-01-01", "funcgrad": "9.9"}, "programs": [again]}
    both = performance.merged(kept, new)
    assert [program["us"] for program in both["programs"]].count(2.0) == 1
    assert performance.measured_later(kept | {"programs": [again]}) == []
    assert performance.measured_later(both) == [f"Measured later (2030-01-01, 9.9): {again['name']}.\n"]
