"""The Python code of README.md and of docs/ runs from top to bottom, and gives the results that it states.

All blocks of one document share a namespace and run with warnings as errors. A comment behind an expression that is a
statement shows the expression's value. If the line is too long, the comment is on the next line.
"""

import ast
import re

import pytest
import sklearn
from helpers import at_least
from scripts import ROOT, run_script

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(document):
    """Return a document by its path below docs/, without the extension."""
    return document.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")


HELPERS = """
import re as _re


def _shows(value, expected):
    assert repr(value).split() == expected.split(), f"{value!r} is not {expected}"


_printed = []


def print(*values, sep=" ", end="\\n", file=None, flush=False, _print=print):
    _print(*values, sep=sep, end=end, file=file, flush=flush)
    if file is None:
        _printed.append(sep.join(map(str, values)) + end)


def _said(text):
    \"\"\"Without numbers, widths and paths of programs, which differ from one machine to the next.\"\"\"
    text = _re.sub(r"[^\\s`]+\\.py:", "program.py:", text)
    text = _re.sub(r"[-+]?\\d[\\d.]*(e[-+]?\\d+)?", "#", text)
    return _re.sub(r"─+", "─", " ".join(text.split()))


def _prints(expected):
    got = "".join(_printed)
    assert _said(got) == _said(expected), f"printed was {got}"
"""
# One line, to keep line numbers: it replaces the document's title.
COMPARISON = f"exec({HELPERS!r})"
PRINTED = '```text title="printed"'


def python_only(markdown):
    """Return the Python blocks at their line numbers in the document, so that tracebacks point there.

    A text block with the title "printed" is the output of the Python block above it, up to numbers.
    """
    lines, inside, printed = [], False, None
    for line in markdown.splitlines():
        closing = line.startswith("```") and (inside or printed is not None)
        if printed is not None and not closing:
            printed.append(line)
        elif printed is not None:
            lines.append(f"_prints({chr(10).join(printed)!r})")
            inside = printed = None
            continue
        elif closing:
            inside = False
        elif not inside and (re.fullmatch(r"```python\s*", line) or line == PRINTED):
            inside, printed = (False, []) if line == PRINTED else (True, None)
            lines.append("" if line == PRINTED else "_printed.clear()")
            continue
        lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


def with_comparisons(code):
    """Return ``code`` with every ``expression  # value`` turned into a comparison, on the same lines."""
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.Expr):
            line = lines[node.end_lineno - 1].encode()  # columns are counted in bytes
            expression, comment = line[: node.end_col_offset].decode(), line[node.end_col_offset :].decode().strip()
            below = "" if comment else "".join(lines[node.end_lineno : node.end_lineno + 1])
            if comment.startswith("# ") or re.match(r"# [\[({'\"\d]", below):
                lines[node.end_lineno - 1] = f"{expression}), {(comment or below)[2:]!r})"
                lines[node.lineno - 1] = f"_shows(({lines[node.lineno - 1]}"
    assert not lines[0]
    return "\n".join([COMPARISON, *lines[1:]]) + "\n"


def run(code, folder):
    script = folder / "document.py"
    script.write_text(code, encoding="utf-8")
    # A separate process: settings of the code do not affect other tests.
    return run_script(script, folder)


def test_python_blocks_keep_line_numbers():
    markdown = "# Title\n```python\nx = 1\n```\ntext\n```sh\nmake\n```\n```python\ny = x\n```\n"
    clear = "_printed.clear()"
    assert python_only(markdown) == f"\n{clear}\nx = 1\n\n\n\n\n\n{clear}\ny = x\n\n"


def test_printed_output_is_compared(tmp_path):
    markdown = f"# Title\n```python\nprint('two  of', 1.5e-3)\n```\n\n{PRINTED}\n{{}}\n```\n```python\nx = 2\n```\n"
    code = python_only(markdown.format("two of 7.25"))
    assert len(code.splitlines()) == len(markdown.splitlines())
    assert run(with_comparisons(code), tmp_path).returncode == 0
    done = run(with_comparisons(python_only(markdown.format("three of 1"))), tmp_path)
    assert done.returncode != 0
    assert "printed was two  of 0.0015" in done.stderr


@pytest.mark.parametrize(
    ("values", "said"),
    [(("éé", 1, 2), ""), (("other", 1, 2), "'éé' is not 'other'"), (("éé", 3, 2), "[3, 2]"), (("éé", 1, 3), "(1, 3)")],
)
def test_stated_values_are_compared(values, said, tmp_path):
    code = "x = 'é'  # not compared\nx * 2  # '{}'\n[1,\n 2]  # [{}, 2]\n(1, 2)\n# (1, {})\n".format(*values)
    done = run(with_comparisons(python_only(f"# Title\n```python\n{code}```\n")), tmp_path)
    assert (done.returncode != 0) == bool(said)
    assert said in done.stderr
    assert values[0] == "éé" or "line 4" in done.stderr


def test_documents_are_found():
    assert {"README", "index", "pipelines", "transforms", "conventions", "engine"} <= {*map(named, DOCUMENTS)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_document_code_runs(document, tmp_path):
    if named(document) == "array_api" and not at_least(sklearn, "1.9.0"):  # older versions accept NumPy arrays only
        return
    text = document.read_text(encoding="utf-8")
    code = python_only(text)
    assert ("_printed.clear()" in code) == ("```python" in text)
    if not code.strip():
        return
    done = run(with_comparisons(code), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def anchors(document):
    """Return the anchors of the headings of a document, as the site and forges make them."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_document_links_exist(document):
    prose = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", prose)
    inside = [(document.parent / path if path else document, anchor) for path, anchor in links if "://" not in path]
    assert [path for path, _ in inside if not path.exists()] == []
    assert [(path.name, anchor) for path, anchor in inside if anchor and anchor not in anchors(path)] == []


def test_site_finds_the_sections_of_the_readme():
    """The site cuts a page out of the README by its headings; ``make docs`` needs more packages than the tests."""
    cuts = re.findall(r'part\("(.+?)", "(.+?)"\)', (ROOT / "docs" / "site.py").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cuts
    assert [name for cut in cuts for name in cut if name not in headings] == []
