"""Pages of the site besides those in this folder: sources of examples, and the reference, made from the code.

MkDocs calls these functions while it builds, see ``hooks`` in mkdocs.yml.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Namespaces of the reference: heading, module, and whether each function has its own page.
SPACES = (
    ("Transforms", "funcgrad.transforms", True),
    ("funcgrad.numpy", "funcgrad.numpy", False),
    ("funcgrad.scipy", "funcgrad.scipy", False),
    ("funcgrad.nn", "funcgrad.nn", False),
    ("funcgrad.interop", "funcgrad.interop", True),
    ("funcgrad.extend", "funcgrad.extend", False),
    ("funcgrad.errors", "funcgrad.errors", False),
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and their places in the menu."""
    made = {"compared.md": compared(), **of_the_project(), **sources()}
    reference = []
    for heading, name, single in SPACES:
        pages = dict(page_of_each(name) if single else page_of_modules(name))
        made |= pages
        reference.append({heading: list(pages)})
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    assert config.nav is not None
    config.nav = [{"Reference": reference} if "Reference" in section else section for section in config.nav]
    return files


def on_page_markdown(markdown: str, page: Page, **kwargs: Any) -> str:
    """Make links to files of the repository lead to the pages made from these files."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"\]\((?:\.\./)+README\.md#compared\)", f"]({up}compared.md#compared)", markdown)
    markdown = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", rf"]({up}sources/\1.md)", markdown)
    return re.sub(
        r"\]\((?:\.\./)+(CONTRIBUTING|CHANGELOG)\.md\)", lambda m: f"]({up}project/{m[1].lower()}.md)", markdown
    )


def of_the_project() -> dict[str, str]:
    """Return the pages made from the files at the top of the repository."""
    return {f"project/{name.lower()}.md": _of_the_top(name) for name in ("CONTRIBUTING", "CHANGELOG")}


def _of_the_top(name: str) -> str:
    text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
    text = text.replace("](docs/", "](../")
    return re.sub(r"\]\((CONTRIBUTING|CHANGELOG)\.md\)", lambda m: f"]({m[1].lower()}.md)", text)


def sources() -> dict[str, str]:
    """Return a page for the source of each example, without the helpers that several examples share."""
    found = {}
    for path in sorted((ROOT / "examples").glob("[a-z]*.py")):
        fence = f'```python linenums="1"\n{path.read_text(encoding="utf-8")}```\n'
        found[f"sources/{path.stem}.md"] = (
            f"# {path.name}\n\nOne of the programs in [the gallery](../examples.md).\n\n{fence}"
        )
    return found


def part(begin: str, end: str) -> str:
    """Return the README from one of its sections to another, as a page; links lead to the site's pages."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text[text.index(f"## {begin}\n") + 1 : text.index(f"## {end}\n")]
    return re.sub(r"\]\(docs/", "](", text)


def compared() -> str:
    """Return two sections of the README under one title."""
    return "# What is different\n" + part("What is different", "Status").partition("\n")[2]


def page_of_each(name: str) -> list[tuple[str, str]]:
    """Return one page for each public function of a module."""
    module = importlib.import_module(name)
    folder = name.replace(".", "/")
    pages = []
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, ModuleType) or value.__module__.partition(".")[0] != "funcgrad":
            continue
        pages.append((f"{folder}/{public}.md", f"# {public}\n\n::: {value.__module__}.{public}\n"))
    return pages


def page_of_modules(name: str) -> list[tuple[str, str]]:
    """Return one page for each module of a package that has public functions, or one for a module."""
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        return [(f"{name.replace('.', '/')}.md", listed(name))]
    found = [m.name for m in pkgutil.walk_packages(module.__path__, f"{name}.")]
    return [(f"{inner.replace('.', '/')}.md", listed(inner)) for inner in found if own_names(inner)]


def own_names(name: str) -> list[str]:
    """Return the names of the public functions and classes that a module defines."""
    module = importlib.import_module(name)
    if name.rpartition(".")[2].startswith("_") or hasattr(module, "__path__"):
        return []
    return [n for n in getattr(module, "__all__", ()) if defined_in(getattr(module, n), name) and is_public(n, name)]


def is_public(public: str, name: str) -> bool:
    """Whether a package above the module ``name`` exports its ``public``, or no package is above it."""
    value = getattr(importlib.import_module(name), public)
    above = [name.rsplit(".", k)[0] for k in range(1, name.count("."))]
    return not above or any(getattr(importlib.import_module(p), public, None) is value for p in above)


def defined_in(value: Any, name: str) -> bool:
    """Whether ``value`` is a documented function or class of the module ``name``."""
    return callable(value) and getattr(value, "__module__", "") == name and bool(value.__doc__)


def listed(name: str) -> str:
    """Return a page on the public functions of a module."""
    prose, example, code = (inspect.getdoc(importlib.import_module(name)) or "").partition("\nExample:\n")
    parts = [f"# {name.removeprefix('funcgrad.')}", prose]
    parts += [f"```pycon\n{dedent(code)}\n```"] if example else []
    parts += [f"::: {name}.{public}" for public in own_names(name)]
    return "\n\n".join(parts) + "\n"
