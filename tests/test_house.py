"""Rules of the repository: allowed imports, forbidden names, allowed skips.

Ruff checks how complex a function may be: see ``pyproject.toml``.
"""

import ast
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ("funcgrad", "transforms")
PACKAGE = (*ENGINE, "interop")
OPTIONAL = {"jax", "jaxlib", "scipy"}
#: The only module of the engine that imports optional packages, by name and on demand.
LOADER = "funcgrad/optional.py"

# Split into parts, because the test searches this file too.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("download", "pytorch", "org"),
    )
]

# Number of skips and expected failures of each test file, and the reason.
SKIPS: dict[str, tuple[int, str]] = {}


def walk(folder):
    """Yield every file below a folder of the project, without links, hidden caches and build outputs."""
    for directory, folders, files in os.walk(ROOT / folder):
        built = {".git", ".venv", "__pycache__", "build", "dist", "out"}
        folders[:] = [
            name
            for name in folders
            if name not in built and not name.endswith(("_cache", ".egg-info")) and name != ".hypothesis"
        ]
        yield from (Path(directory, name) for name in files)


def sources(folders):
    found = {path for folder in folders for path in walk(folder) if path.suffix == ".py"}
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(found)}


def imports(text):
    """Yield the top-level names that a source imports, by statement or by a call with a literal name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and name_of(node.func).endswith("import_module"):
            yield from (a.value.partition(".")[0] for a in node.args if isinstance(a, ast.Constant))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "__import__":
            yield from (a.value.partition(".")[0] for a in node.args[:1] if isinstance(a, ast.Constant))


def name_of(function):
    """Return the name of a called function, without what stands before the last dot; "" for other expressions."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def skips(text):
    """Return the number of places where a test source can leave something untested."""
    names = ("skip", "skipif", "xfail", "importorskip", "SkipTest", "skipIf", "skipUnless", "expectedFailure")
    if text.isascii() and not any(name in text for name in names):  # most files, and reading them takes long
        return 0
    nodes = [*ast.walk(ast.parse(text))]
    attributes = sum(isinstance(node, ast.Attribute) and node.attr in names for node in nodes)
    return attributes + sum(
        alias.name in names for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    )


def test_engine_imports_nothing_optional():
    texts = sources(ENGINE)
    assert texts.pop(LOADER, None), "this is where optional libraries are asked for"
    named = {name: text for name, text in texts.items() if any(module in text for module in OPTIONAL)}
    assert {name: found for name, text in named.items() if (found := OPTIONAL & set(imports(text)))} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "import jax",
        "import jax.numpy as jnp",
        "from jax.numpy import sin",
        "def f():\n    from jax import jit",
        "importlib.import_module('jax.numpy')",
        "__import__('jax')",
    ],
)
def test_imports_are_found(statement):
    assert set(imports(statement)) & OPTIONAL == {"jax"}


def test_one_module_checks_for_jax():
    asking = {
        path for path, text in sources(PACKAGE).items() if 'sys.modules["jax' in text or 'modules.get("jax' in text
    }
    assert asking == {LOADER}


#: Modules that inspect frames, and the purpose: never for a value; for a branch callers' frames in one file only.
FRAMES = {
    "funcgrad/kinds/rules.py": "the module in which an operation is defined, for pickling",
    "funcgrad/numpy/tables/frames.py": "the names that an expression of pandas' eval refers to, as pandas' own",
    "funcgrad/numpy/plain_values/hints.py": "the user's line and what to call instead, for messages",
    "funcgrad/numpy/plain_values/guarded.py": "whether code of SciPy compares whose steps lack the derivative: refused",
    "funcgrad/numpy_code/refusals.py": "the library that raised an error, which decides whether a function runs again",
    "funcgrad/numpy_code/scope.py": "what eval and exec in rebuilt code evaluate in, as Python's own",
    "funcgrad/tree.py": "the public call, for messages",
    "transforms/compiled/capture.py": "the line of an operation, for comments and names in what is written",
    "transforms/origins.py": "the line and the pipeline stage of an operation, to be shown",
}
#: Functions that make texts of frames or find the line of a warning; other modules may import them for messages.
TEXTS = {
    "funcgrad.numpy.plain_values.hints": {
        "add_hint",
        "counterpart_hint",
        "hints_for_request",
        "math_counterpart",
        "package_line",
        "standard_library_hint",
        "user_line",
        "user_stacklevel",
    },
}


def test_no_value_depends_on_the_caller():
    frames = re.compile(r"_getframe|currentframe|f_back|f_globals|inspect\.stack|extract_stack")
    assert {path for path, text in sources(PACKAGE).items() if frames.search(text)} == set(FRAMES)
    for path, text in sources(PACKAGE).items():
        for module, names in TEXTS.items():
            found = re.findall(rf"^from {re.escape(module)} import (.+)$", text, re.MULTILINE)
            taken = {name.strip() for line in found for name in line.split(",")}
            if path not in FRAMES:
                assert taken <= names | {"user_frame"}, path


def test_only_reverse_reads_records_by_position():
    """Only the module that defines records reads them by position."""
    reading = {path for path, text in sources(PACKAGE).items() if re.search(r"\b(node|record|parent)\[", text)}
    assert reading == {"funcgrad/reverse.py"}


def test_one_module_reads_reference_counts():
    counting = {path for path, text in sources(PACKAGE).items() if "getrefcount" in text}
    assert counting == {"funcgrad/ownership.py"}


def test_own_modules_do_not_count_as_optional():
    assert not set(imports("from funcgrad.interop.jax import bridge\nsys.modules.get('jax')")) & OPTIONAL


def test_no_package_registry_is_named():
    named = {}
    for path in walk("."):
        text = path.read_bytes().decode("utf-8", errors="ignore").lower()
        if hosts := [host for host in REGISTRIES if host in text]:
            named[path.relative_to(ROOT).as_posix()] = hosts
    assert (ROOT / "pyproject.toml") in set(walk("."))
    assert named == {}


def test_skips_are_counted():
    counts = {Path(name).name: skips(text) for name, text in sources(["tests"]).items()}
    assert Path(__file__).name in counts
    assert {name: count for name, count in counts.items() if count} == {
        name: count for name, (count, _) in SKIPS.items()
    }
    assert all(reason for _, reason in SKIPS.values())


def test_test_folders_match_library_folders():
    """``tests/engine`` has the tests of the modules directly in ``funcgrad/``."""
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in walk("tests") if path.match("test_*.py")}
    assert {"engine", "numpy", "transforms/control"} <= folders
    assert [name for name in folders - {".", "engine"} if not (ROOT / "funcgrad" / name).is_dir()] == []


@pytest.mark.parametrize(
    "statement",
    [
        "@pytest.mark.skip\ndef test(): ...",
        "@pytest.mark.xfail(reason='later')\ndef test(): ...",
        "marks = [pytest.mark.skipif(True, reason='never')]",
        "def test():\n    pytest.skip('not today')",
        "jax = pytest.importorskip('jax')",
        "from pytest import skip",
    ],
)
def test_skips_are_found(statement):
    assert skips(statement) == 1


def test_tables_of_tests_have_names_of_their_own():
    """A second table of the same name takes the place of the first also in the tests above it."""
    shared = []
    for name, text in sources(["tests"]).items():
        known = set()
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.Assign):
                used = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
                names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
                shared += [(name, table) for table in (names & known) - used]
                known |= names
    assert shared == []
