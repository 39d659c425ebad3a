"""The command of the cross-check, its table of all functions, its reports, and the helper for pytest."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jax
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import errors
from funcgrad.extend import elementwise
from funcgrad.interop import crosscheck
from funcgrad.interop.crosschecks import primitives_table, printing
from funcgrad.interop.crosschecks.command import main, read_arguments
from funcgrad.interop.crosschecks.primitives_table import COLUMNS, Cell, Line, Table, check_primitives
from funcgrad.interop.crosschecks.printing import page_of_report, page_of_table
from funcgrad.interop.crosschecks.samples import EXCLUDED, Sample, public_names, samples
from funcgrad.interop.pytest_helper import assert_agrees
from funcgrad.optional import precision_switch

ROOT = Path(__file__).resolve().parents[3]
X = np.array([0.3, 0.7, 1.1])
wrong_sin = elementwise("wrong_sin", lambda xp, x: xp.sin(x), dx=lambda x: 1.001 * fnp.cos(x))

MODULE = """
import numpy as np
import funcgrad.numpy as fnp
from funcgrad.extend import elementwise

wrong_sin = elementwise("wrong_sin", lambda xp, x: xp.sin(x), dx=lambda x: 1.001 * fnp.cos(x))

def good(params, x, scale=1.0):
    return np.sum(np.tanh(params["w"] @ x) * scale)

def bad(x):
    y = np.exp(x)
    return np.sum(wrong_sin(y))

def broken(x):
    raise ValueError("this is my own error")

class Model:
    @staticmethod
    def loss(x):
        return np.sum(x * x)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the current folder and return its path."""
    path = tmp_path / "my_model.py"
    path.write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    sys.modules.pop("my_model", None)


def run(*arguments):
    return main([*arguments, "--color", "never"])


QUICK = ("--without", "vmap", "jit", "float32")


# The table.


def test_table_has_every_public_function():
    named = {sample.name for sample in samples()}
    types = {"mgrid", "vectorize"}  # public classes, not functions
    assert sorted(public_names() - named - EXCLUDED) == []
    assert sorted(named - public_names() - types) == []
    assert sorted(EXCLUDED - public_names()) == [], "these are gone"
    assert not named & EXCLUDED


def test_samples_are_deterministic():
    for once, again in zip(samples(), samples(), strict=True):
        np.testing.assert_equal(once.args, again.args)


def test_functions_agree(capsys, tmp_path):
    assert run("--primitives", "--only", "tanh", "nonzero", "linalg.inv", "--json", str(tmp_path / "table.json")) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^function +value +VJP +JVP +2nd order +vmap +jit +float32$", printed, re.MULTILINE)
    assert re.search(r"^tanh( +\d+){7}$", printed, re.MULTILINE)
    assert "    jit: not compared, both refuse: StagingError" in printed
    assert "OK: 3 functions agree." in printed
    assert f"jax {jax.__version__}" in printed
    found = json.loads((tmp_path / "table.json").read_text())
    assert [line["name"] for line in found["functions"]] == ["tanh", "nonzero", "linalg.inv"]
    assert list(found["functions"][0]["quantities"]) == list(COLUMNS.values())
    assert found["functions"][1]["quantities"]["jit"]["ulps"] is None
    assert found["ok"]
    assert found["checked"] == found["total"] == 3
    for line in found["functions"]:
        assert all(q["ulps"] is None or q["ulps"] < 100 for q in line["quantities"].values())


def planted(name, fun):
    return lambda: [Sample("sin", fnp.sin, (X,), {}), Sample(name, fun, (X,), {}), Sample("cos", fnp.cos, (X,), {})]


def test_wrong_rule_is_found(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(primitives_table, "samples", planted("wrong_sin", lambda x: fnp.exp(wrong_sin(x))))
    assert run("--primitives", "--html", str(tmp_path / "table.html"), "--without", "jit") == 1
    printed = capsys.readouterr().out
    assert "FAILED in 1 of 3 functions: wrong_sin." in printed
    assert re.search(r"^wrong_sin +\d +✗ \de\+12 ", printed, re.MULTILINE)
    assert "First to differ, vjp and jvp: wrong_sin at" in printed
    page = (tmp_path / "table.html").read_text(encoding="utf-8")
    assert page.count('<td class="bad"') == 3
    assert "First to differ, vjp and jvp: wrong_sin at" in page


def test_raising_function_is_one_line(monkeypatch):
    def raising(x):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(primitives_table, "samples", planted("raising", raising))
    table = check_primitives(kinds=["value"])
    assert [line.ok for line in table.lines] == [True, False, True]
    assert table.lines[1].error == "ZeroDivisionError: oh"
    assert page_of_table(table).count("error") >= 1


def test_known_divergence_is_named(monkeypatch):
    monkeypatch.setattr(primitives_table, "samples", lambda: [Sample("x", lambda x: x**0.0, (np.zeros(2),), {})])
    (line,) = check_primitives(kinds=["value", "reverse"]).lines
    assert line.ok
    assert line.cells["reverse"] == Cell(np.inf, True, "JAX stands alone, a known divergence")
    assert "x**0.0 at x = 0" in line.notes[0]


def test_interrupt_prints_finished_rows(monkeypatch, capsys, tmp_path):
    def interrupt(x):
        raise KeyboardInterrupt

    monkeypatch.setattr(primitives_table, "samples", planted("interrupt", interrupt))
    with precision_switch(jax)(False):
        assert run("--primitives", *QUICK, "--json", str(tmp_path / "table.json")) == 130
        assert not jax.config.jax_enable_x64
    printed = capsys.readouterr().out
    assert re.search(r"^sin( +\d+){4}$", printed, re.MULTILINE)
    assert "OK: 1 functions agree. 2 were not checked." in printed
    found = json.loads((tmp_path / "table.json").read_text())
    assert (found["checked"], found["total"]) == (1, 3)


def test_several_calls_share_one_line():
    table = check_primitives(["fft.fft"], kinds=["value", "reverse"])
    assert [line.name for line in table.lines] == ["fft.fft"]
    assert table.ok
    assert set(table.lines[0].cells) == {"value", "reverse"}


def test_namespace_name_selects_its_functions():
    chosen = {sample.name for sample in primitives_table._chosen(["linalg", "sum"])}
    assert "linalg.svd" in chosen
    assert "sum" in chosen
    assert "cumsum" not in chosen
    with pytest.raises(errors.InputError, match="there is no such function in the table, got 'summ'"):
        check_primitives(["summ"])


# One function.


def test_function_of_a_module(module, capsys, tmp_path):
    np.save(tmp_path / "x.npy", X)
    arguments = ["my_model:good", "--args", "{'w': f64[2,3]}", "x.npy", "scale=2.0"]
    assert run(*arguments, "--json", "report.json", "--html", "report.html", *QUICK) == 0
    printed = capsys.readouterr().out
    assert "Cross-check of good" in printed
    assert "  gradient  params['w']" in printed
    assert "OK: 6 quantities agree to 1e-09." in printed
    found = json.loads(Path("report.json").read_text())
    assert found["function"] == "good"
    assert [row["what"] for row in found["rows"]] == ["value", "gradient", "gradient", "jvp", "hvp", "hvp"]
    assert "<code>good</code>" in Path("report.html").read_text(encoding="utf-8")


def test_wrong_function_is_blamed(module, capsys):
    assert run("my_model.py:bad", "--args", "f64[3]", "--order", "1", *QUICK) == 1
    printed = capsys.readouterr().out
    assert "First to differ, gradient and jvp: wrong_sin at " in printed
    assert "my_model.py:13 `return np.sum(wrong_sin(y))`: funcgrad stands alone" in printed
    assert "FAILED in 2 of 3 quantities" in printed


def test_method_and_selected_arguments(module, capsys):
    assert run("my_model:Model.loss", "--args", "array([1.0, f64])", "--seed", "3", *QUICK) == 0
    assert run("my_model:good", "--args", "{'w': f64[2,3]}", "f64[3]", "--argnums", "1", "--device", "cpu", *QUICK) == 0
    assert "params" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["my_model:broken", "--args", "1.0"], "ValueError: this is my own error"),
        (["my_model:nothing", "--args", "1.0"], "my_model has no function 'nothing'"),
        (["my_module:good"], "there is no module 'my_module'"),
        (["other.py:good"], "there is no file 'other.py'"),
        (["my_model"], "a module and a name are needed, got 'my_model'"),
        (["my_model:good", "--args", "f64[3"], "the text is no argument, got 'f64.3'"),
        (["my_model:good", "--args", "none.npy"], "the file cannot be read, got 'none.npy'"),
        (["my_model:bad", "--args", "1.0", "--device", "tpu"], "JAX finds no device of the platform 'tpu'"),
        (["--primitives", "--only", "nothing"], "there is no such function in the table, got 'nothing'"),
    ],
)
def test_unusable_function_says_why(module, capsys, arguments, message):
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert said.out == ""


@pytest.mark.parametrize("arguments", [[], ["my_model:good", "--primitives"], ["--without", "everything"]])
def test_unknown_command_shows_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code == 2
    assert "usage: python -m funcgrad.interop" in capsys.readouterr().err


def test_command_runs_as_module(module):
    command = [sys.executable, "-W", "error", "-m", "funcgrad.interop"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}

    def done(*arguments):
        return subprocess.run(
            [*command, *arguments], cwd=module.parent, env=environment, capture_output=True, text=True, timeout=300
        )

    bad = done("my_model:bad", "--args", "f64[3]", *QUICK)
    assert (bad.returncode, bad.stderr) == (1, "")
    assert "wrong_sin at " in bad.stdout
    table = done("--primitives", "--only", "tanh", *QUICK)
    assert (table.returncode, table.stderr) == (0, "")
    assert "\x1b" not in table.stdout


# Arguments.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2.5", -2.5),
        ("1+2j", 1 + 2j),
        ("'text'", "text"),
        ("None", None),
        ("(1, [True, {'a': 2.0}])", (1, [True, {"a": 2.0}])),
        ("inf", np.inf),
    ],
)
def test_arguments_as_literals(text, value):
    ((found,), kwargs) = read_arguments([text])
    assert found == value
    assert type(found) is type(value)
    assert kwargs == {}


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("f64[3,4]", (3, 4), "float64"),
        ("f32[5]", (5,), "float32"),
        ("f64", (), "float64"),
        ("c128[2]", (2,), "complex128"),
        ("i32[3]", (3,), "int32"),
        ("bool[4]", (4,), "bool"),
        ("f64[2,0]", (2, 0), "float64"),
        ("f64[100](2, 3)", (100,), "float64"),
        ("f64(2, 3)", (), "float64"),
        ("u8[100](2, 3)", (100,), "uint8"),
    ],
)
def test_arguments_as_random_numbers(text, shape, dtype):
    ((found,), _), ((again,), _), ((other,), _) = [read_arguments([text], seed) for seed in (0, 0, 1)]
    assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
    np.testing.assert_array_equal(found, again)
    if "(2, 3)" in text:
        assert np.all((found >= 2) & (found < 3))
    elif found.size and dtype not in ("bool", "int32"):
        assert np.any(found != other)


def test_arguments_as_keywords_and_containers():
    np.testing.assert_array_equal(read_arguments(["array([[1, 2.5], [0, -1]])"])[0][0], [[1, 2.5], [0, -1]])
    args, kwargs = read_arguments(["[f64[2], 1.0]", "n=3", "w={'a': f64[2]}"])
    assert args[0][0].shape == (2,)
    assert args[0][1] == 1.0
    assert kwargs["n"] == 3
    assert kwargs["w"]["a"].shape == (2,)
    assert not np.array_equal(args[0][0], kwargs["w"]["a"])


@pytest.mark.parametrize(
    "text", ["f64[-1]", "f64[1.5]", "f65[3]", "open('x')", "__import__('os')", "f64[3](1)", "{**{}}"]
)
def test_invalid_argument_text_raises(text):
    with pytest.raises(errors.InputError, match="the text is no argument"):
        read_arguments([text])


# Reports.


class Checker(HTMLParser):
    """Parser that finds tags that are not closed, and addresses that a page would load from elsewhere."""

    def __init__(self, page):
        super().__init__()
        self.open, self.loads = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def table_of(*lines):
    return Table(("value", "reverse"), len(lines), {"device": "cpu <0>"}, list(lines))


def test_html_pages_are_valid_and_self_contained():
    fine, bad = Cell(1.0, True, "agree"), Cell(np.inf, False, "funcgrad <stands> alone")
    odd = Cell(np.nan, True, "not compared, both refuse: E")
    table = table_of(
        Line("exp", {"value": fine, "reverse": fine}),
        Line("bad<", {"value": fine, "reverse": bad}),
        Line("odd", {"value": fine._replace(ulps=1e3), "reverse": odd}),
        Line("none", {}, error="ValueError: <x>"),
    )
    report = crosscheck(lambda x: fnp.sum(wrong_sin(x)), also=())(X)
    for page in (page_of_table(table), page_of_report(report)):
        checked = Checker(page)
        assert checked.open == []
        assert checked.loads == []
        assert "<stands>" not in page
        assert "http" not in page
    page = page_of_table(table)
    assert page.count("<tr data-name=") == 4
    assert page.count("data-odd") == 6  # three lines with a line below each
    assert "bad&lt;" in page
    assert "FAILED in 2 of 4 functions: bad&lt;, none." in page


def test_output_has_colours_with_rich(capsys):
    assert main(["--primitives", "--only", "tanh", *QUICK, "--color", "always"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b[" in printed
    assert "2nd order" in printed
    screen = printing.terminal("always")
    screen.report(crosscheck(lambda x: fnp.sum(wrong_sin(x)), also=())(X))
    assert "\x1b[31m✗ gradient" in capsys.readouterr().out
    screen.end(table_of(Line("bad", {"value": Cell(5.0, True, "agree"), "reverse": Cell(9e9, False, "all differ")})))
    assert "\x1b[1;31m✗ 9e+09" in capsys.readouterr().out


def test_output_has_no_colours_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert type(printing.terminal("always")) is printing.Plain


def test_numbers_are_short():
    told = [printing.ulps_text(Cell(ulps, True, "")) for ulps in (0.0, 1.4, 9999.0, 1e12, np.inf, np.nan)]
    assert told == ["0", "1", "9999", "1e+12", "inf", "–"]


# The helper for pytest.


def test_pytest_helper_passes_and_fails():
    report = assert_agrees(lambda x: np.sum(np.exp(x)), X, also=(), order=1)
    assert len(report.rows) == 3
    with pytest.raises(AssertionError, match="First to differ, gradient and jvp: wrong_sin at"):
        assert_agrees(lambda x: fnp.sum(wrong_sin(x)), X, also=())


def test_pytest_helper_shows_the_report(tmp_path):
    test = tmp_path / "test_mine.py"
    test.write_text(MODULE + "\nfrom funcgrad.interop.pytest_helper import assert_agrees\n\ndef test_bad():\n"
                    "    assert_agrees(bad, np.ones(2), also=())\n", encoding="utf-8")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "First to differ, gradient and jvp: wrong_sin at" in done.stdout
    assert "pytest_helper.py" not in done.stdout


def test_pytest_helper_skips_without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    with pytest.raises(BaseException, match="JAX cannot be imported") as caught:
        assert_agrees(np.sum, X)
    assert type(caught.value).__name__ == "Skipped"
