"""The Python code of README.md and of docs/ runs from top to bottom, and gives what it says it gives.

All blocks of one document share a namespace and run with warnings as errors. A comment behind an expression that
stands on a line by itself is what its value looks like.
"""

import ast
import re

import pytest
from scripts import ROOT, run_script

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def named(document):
    """A document by its path below docs/, without the ending."""
    return document.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md")


# One line, so that it fits above the code without moving it: a document begins with its title.
COMPARISON = (
    "def _shows(value, expected): assert ' '.join(repr(value).split()) == expected, f'{value!r} is not {expected}'"
)


def python_only(markdown):
    """The Python blocks, each on the lines it has in the document, so that a traceback points there."""
    lines, inside = [], False
    for line in markdown.splitlines():
        if inside and line.startswith("```"):
            inside = False
        elif not inside and re.fullmatch(r"```python\s*", line):
            inside = True
            lines.append("")
            continue
        lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


def with_comparisons(code):
    """``code`` with every ``expression  # value`` made a comparison, on the same line."""
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.Expr) and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1].encode()  # columns are counted in bytes
            expression, comment = line[: node.end_col_offset].decode(), line[node.end_col_offset :].decode().strip()
            if comment.startswith("# "):
                lines[node.lineno - 1] = f"_shows(({expression}), {comment[2:]!r})"
    assert not lines[0]
    return "\n".join([COMPARISON, *lines[1:]]) + "\n"


def run(code, folder):
    script = folder / "document.py"
    script.write_text(code, encoding="utf-8")
    # In a process of its own: what the code configures does not reach other tests.
    return run_script(script, folder)


def test_python_blocks_keep_their_lines():
    markdown = "# Title\n```python\nx = 1\n```\ntext\n```sh\nmake\n```\n```python\ny = x\n```\n"
    assert python_only(markdown) == "\n\nx = 1\n\n\n\n\n\n\ny = x\n\n"


def test_values_are_compared(tmp_path):
    markdown = "# Title\n```python\nx = 'é'  # not compared\nx * 2  # '{}'\n[1,\n 2]  # not compared\n```\n"
    assert run(with_comparisons(python_only(markdown.format("éé"))), tmp_path).returncode == 0
    done = run(with_comparisons(python_only(markdown.format("other"))), tmp_path)
    assert done.returncode != 0
    assert "'éé' is not 'other'" in done.stderr
    assert "line 4" in done.stderr


def test_there_are_documents():
    assert {"README", "index", "pipelines", "transforms", "conventions", "engine"} <= {*map(named, DOCUMENTS)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_code_of_a_document_runs(document, tmp_path):
    text = document.read_text(encoding="utf-8")
    code = python_only(text)
    assert ("import" in code) == ("```python" in text)
    done = run(with_comparisons(code), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_of_a_document_lead_somewhere(document):
    prose = re.sub(r"```.*?```|`[^`]*`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", prose)
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []
