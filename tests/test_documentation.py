"""Docstrings of public functions have one line, arguments and an example; pages use the field's words.

Doctest runs the examples, together with the modules.
"""

import ast
import builtins
import doctest
import importlib
import inspect
import re
import symtable
from types import ModuleType

import numpy as np
import pytest
from helpers import at_least, in_one_test
from scripts import ROOT
from test_completeness import further, public

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import extend, interop, tree
from funcgrad.scipy.own_code import OWN_CODE

FUNCTIONS = {
    f"funcgrad.{name}": function
    for name, function in {
        **public(funcgrad),
        **{f"numpy.{name}": function for name, function in public(fnp).items()},
        **further(),
    }.items()
}
#: Functions that are not those of other libraries, by name.
OURS = {
    name: function
    for name, function in FUNCTIONS.items()
    if getattr(function, "__module__", "").startswith("funcgrad")
    and name not in {f"funcgrad.scipy.{home}.{name}" for home, names in OWN_CODE.items() for name in names}
}
#: Functions and classes of modules with few functions.
OF_MODULES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (extend, interop, tree)
    for name in module.__all__
    if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))
}
#: Names that examples use without an import, as in ``conftest.py``.
KNOWN = {"np", "fnp", "fnn", "fsp", "grad", *dir(builtins)}
#: Names without an example, and the reasons.
NO_EXAMPLE: dict[str, str] = {}
#: Phrases for arguments that another function explains.
ELSEWHERE = re.compile(
    r"arguments (as|of|are)|same arguments|Takes the arguments|[Tt]he inverse of ``|takes what ``|Options are those|"
    r"under its other name|[Ss]ee ``"
)
#: Words that readers stumbled over, and their replacements.
WORDS = {
    r"\bbeside\b": "next to, with, at the same time",
    r"\b(the|a|its|whose|record's) pulls?\b|\bpulls of\b": "VJP rule",
    r"\bpushes\b": "JVP rule, forward mode",
    r"\btwins?\b": "shallow copy",
    r"\bquick ways?\b|\bless ado\b": "fast path",
    r"\bknown[_ ]later\b": "abstract",
    r"\bkeep_off\b": "safe_where",
    r"\bmap_leaves\b": "tree.map",
    r"\bguests?\b": "library, object of another library",
    r"\bleft alone\b": "not changed",
    r"\bnobody has looked\b": "until first use",
}
#: Openings of a first line that put neither subject nor verb first.
OPENINGS = re.compile(r"(What|Of|That of|Those|Who|Where|The same|Such|As|By|So)\b")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if path.name != "CHANGELOG.md"
)


def documented(function):
    """Return the docstring of ``function`` without the code of its examples."""
    return re.sub(r"^ *(>>>|\.\.\.) .*$", "", inspect.getdoc(function) or "", flags=re.MULTILINE)


def mirrored(name):
    """Return the function of NumPy or SciPy with the same name in the same module."""
    home, _, attribute = name.removeprefix("funcgrad.").rpartition(".")
    if not home.startswith(("numpy", "scipy")):
        return None
    try:
        return getattr(importlib.import_module(home), attribute, None)
    except ImportError:
        return None


def parameters(function):
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some functions in C have no signature
        return []


def unexplained(name, function):
    """Return the arguments that neither the docstring nor the mirrored function of NumPy or SciPy explains."""
    text, theirs, own = documented(function), mirrored(name), parameters(function)
    if ELSEWHERE.search(text):
        return []
    known = set() if theirs is None else set(parameters(theirs))
    if theirs is not None and not known and not at_least(np, "2.4.0"):  # before, compiled functions had no signature
        return []
    known |= {"out", "casting", "order", "dtype", "subok", "signature", "axes", "axis", "keepdims", "where"} & set(
        own if "signature" in own else ()
    )  # the options of every ufunc
    spans = " ".join(re.findall(r"``[^`]+``", text))
    said = lambda p: re.search(rf"\b{p}\b", spans) or re.search(rf"^ *\**{p}\b.*:", text, re.MULTILINE)
    plainly = lambda p: p != "a" and re.search(rf"\b{p}\b", text)  # formulas in words: the integral from x to y
    own = [p for p in own if p not in known and p not in ("args", "kwargs")]
    return [] if len(own) == 1 else [p for p in own if not said(p) and not plainly(p)]


def not_imported(text):
    """Return the names that the examples in a docstring use and neither import nor define."""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    tables = [symtable.symtable(source, "example", "exec")]
    made = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module"}
    return sorted(used - made - KNOWN)


def without_code(text):
    """Return a page's words, without code and links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def avoided(text):
    """Return the lines of ``text`` that use words of ``WORDS``, with the replacements."""
    return [
        f"{line.strip()!r}: say {better}"
        for line in text.splitlines()
        for word, better in WORDS.items()
        if re.search(word, line)
    ]


@in_one_test({"name": OURS})
def test_public_functions_are_documented(name):
    function = OURS[name]
    text = inspect.getdoc(function) or ""
    first = text.partition("\n\n")[0]
    assert "\n" not in first, "the first paragraph is one line"
    assert re.fullmatch(r"[A-Z`0-9-].*[.:]", first), first
    assert ">>>" in text or name in NO_EXAMPLE, "an example"
    assert unexplained(name, function) == []
    assert avoided(documented(function)) == []


@in_one_test({"name": OURS | OF_MODULES})
def test_examples_import_what_they_use(name):
    assert not_imported(inspect.getdoc((OURS | OF_MODULES)[name]) or "") == []


def test_missing_import_is_found():
    assert not_imported(">>> import math\n>>> f = lambda x: math.sin(g(x))\n>>> f(np.pi)\n0.0") == ["g"]


def test_functions_excepted_have_no_example():
    assert all(">>>" not in (inspect.getdoc(OURS[name]) or "") for name in NO_EXAMPLE)


@pytest.mark.parametrize("page", PAGES)
def test_pages_use_the_words_of_the_field(page):
    assert avoided(without_code((ROOT / page).read_text(encoding="utf-8"))) == []


def test_missing_explanation_is_found():
    def scaled(x, factor, mode="up"):
        """Return ``x`` times something."""

    assert unexplained("funcgrad.scaled", scaled) == ["factor", "mode"]
    assert avoided("a twin stands\nbeside it") == [
        "'a twin stands': say shallow copy",
        "'beside it': say next to, with, at the same time",
    ]
    assert avoided(without_code("```\ntwin\n```\n`twin` and [a](twin.md)")) == []


def test_modules_are_documented():
    for module in (funcgrad, fnp, *(value for value in vars(fnp).values() if isinstance(value, ModuleType))):
        if module.__name__.startswith("funcgrad"):
            assert re.match(r"[A-Z`].*[.:]", module.__doc__ or ""), module.__name__


@pytest.mark.parametrize("top", ["funcgrad", "transforms", "interop", "benchmarks", "examples"])
def test_first_lines_begin_with_a_subject_or_a_verb(top):
    kinds, found = (ast.Module, ast.ClassDef, ast.FunctionDef), 0
    for path in sorted((ROOT / top).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                found += 1
                assert not OPENINGS.match(text), f"{path}: {text.splitlines()[0]}"
    assert found
