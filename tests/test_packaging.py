"""Contents of the package, contents of the built archives, and modules that importing it loads."""

import ast
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, SETUPTOOLS = SETTINGS["project"], SETTINGS["tool"]["setuptools"]
FOLDERS = SETUPTOOLS["package-dir"]
LINKS = {"funcgrad/transforms": "../transforms", "funcgrad/interop": "../interop"}


def source_modules():
    """Map each module's path inside an installed `funcgrad` to its file, without following links."""
    modules = {}
    for package, folder in FOLDERS.items():
        for directory, folders, files in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            inside = package.replace(".", "/") / Path(directory).relative_to(ROOT / folder)
            modules |= {(inside / name).as_posix(): Path(directory, name) for name in files if name.endswith(".py")}
    return modules


def run_python(*arguments, cwd=ROOT):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Return the names in the wheel and in the sdist; the wheel is built from the sdist, which has no links."""
    copy = tmp_path_factory.mktemp("build") / "funcgrad"
    copy.mkdir()
    no_caches = shutil.ignore_patterns("__pycache__")
    for name in ("funcgrad", "transforms", "interop", "tests"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=no_caches)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    run_python("-m", "build", "--no-isolation", "--outdir", "dist", ".", cwd=copy)
    (wheel,) = copy.glob("dist/funcgrad-*.whl")
    (sdist,) = copy.glob("dist/funcgrad-*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    return in_wheel, in_sdist


def folders_with(pattern):
    """Return the dotted names of the folders with a file that matches the pattern."""
    return sorted({".".join(Path(name).parent.parts) for name in source_modules() if Path(name).match(pattern)})


def test_listed_packages_match_folders():
    assert "funcgrad" in folders_with("__init__.py")
    assert sorted(SETUPTOOLS["packages"]) == folders_with("__init__.py")


def test_declared_lowest_versions_are_tested():
    lines = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    parts = {name: [int(n) for n in version.split(".")] for name, version in tested.items()}
    every = [*PROJECT["dependencies"], *itertools.chain(*PROJECT["optional-dependencies"].values())]
    declared = {(m[1], m[2]) for m in (re.match(r"([\w-]+)>=([\d.]+)", one) for one in every) if m and m[1] in tested}
    assert {name for name, _ in declared} == set(tested) - {"jaxlib"}  # jax requires jaxlib
    for name, version in declared:
        numbers = [int(n) for n in version.split(".")]
        assert parts[name] == numbers + [0] * (len(parts[name]) - len(numbers)), name
    assert tested["jaxlib"] == tested["jax"]
    told = re.search(r"NumPy (\S+), SciPy (\S+) and JAX (\S+)\. With", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {("numpy", told[1]), ("scipy", told[2]), ("jax", told[3])} <= declared


def test_version_is_same_everywhere():
    version = PROJECT["version"]
    assert run_python("-c", "import funcgrad; print(funcgrad.__version__)").strip() == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert [name for name, _ in sections[:2]] == ["Unreleased", version]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in sections[1:])


def test_workflow_checks_are_makefile_targets():
    (workflow,) = (ROOT / ".github" / "workflows").glob("*.yml")
    commands = re.findall(r"run: (?:>-\s+)?(.+)", workflow.read_text(encoding="utf-8"))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert {command.split()[1] for command in commands} == {"lint", "test", "test-lowest", "release-check", "docs"}
    assert all(command.split()[0] == "make" and command.split()[1] in targets for command in commands)


def test_every_source_folder_is_a_package():
    assert folders_with("*.py") == folders_with("__init__.py")


@pytest.mark.parametrize("link", LINKS)
def test_links_are_relative(link):
    assert os.readlink(ROOT / link) == LINKS[link]


def test_wheel_has_every_module_and_nothing_else(archives):
    in_wheel, _ = archives
    content = {name for name in in_wheel if ".dist-info/" not in name}
    assert content == {*source_modules(), "funcgrad/py.typed", "pytest_funcgrad.py"}


def test_wheel_has_licence(archives):
    in_wheel, _ = archives
    assert [name for name in in_wheel if name.endswith(".dist-info/licenses/LICENSE")]


def test_sdist_has_every_source_once(archives):
    _, in_sdist = archives
    sources = {path.relative_to(ROOT).as_posix() for path in source_modules().values()}
    assert {*sources, "funcgrad/py.typed", "pytest_funcgrad.py", "pyproject.toml", "LICENSE", "README.md"} <= in_sdist
    assert not [name for name in in_sdist if name.startswith(tuple(LINKS))]


def imported(statement):
    """Return the names of the modules in a fresh interpreter after `statement`."""
    return set(run_python("-c", f"{statement}\nimport sys\nprint(*sys.modules)").split())


def test_import_loads_no_second_copy():
    modules = imported("import funcgrad, funcgrad.transforms, funcgrad.interop")
    assert "funcgrad.transforms" in modules
    assert not {"transforms", "interop"} & modules


def test_import_loads_no_optional_package():
    modules = imported("import funcgrad, funcgrad.numpy, funcgrad.transforms")
    assert "funcgrad.transforms" in modules
    assert not {"jax", "jaxlib", "scipy"} & modules


def test_import_works_without_optional_packages():
    missing = "import sys; sys.modules.update(dict.fromkeys(['jax', 'jaxlib', 'scipy']))"
    run_python("-c", f"{missing}; import funcgrad, funcgrad.numpy, funcgrad.transforms")


def test_every_module_has_a_docstring():
    silent = [
        name
        for name, path in source_modules().items()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert source_modules()
    assert silent == []


#: Modules that ``import funcgrad`` does not load; they are imported at first use.
LATER = {
    "": "html jax numpy.polynomial scipy string tracemalloc",
    "funcgrad.": "extend interop nn scipy",
    "funcgrad.numpy.": "fft lib linalg polynomial",
    "funcgrad.primitives.": "decompositions determinants fourier special",
    "funcgrad.transforms.": (
        "checking checkpointing collectives control custom drawing implicit profiling solvers sparse_jacobians tapes "
        "tracing transposing"
    ),
}
PROGRAM = """
vmap(hessian(lambda x: fnp.sum(fnp.sin(x) * x)))(np.ones((2, 3)))
"""


def left_for_later(loaded, packages=tuple(LATER)):
    names = [package + name for package in packages for name in LATER[package].split()]
    return [name for name in names if any(m == name or m.startswith(f"{name}.") for m in loaded)]


def test_import_loads_common_modules():
    loaded = run_python(
        "-c", "import sys, numpy; before = {*sys.modules}; import funcgrad; print(*{*sys.modules} - before)"
    ).split()
    assert "funcgrad.transforms.gradients" in loaded
    assert left_for_later(loaded) == []


def test_program_loads_only_needed_modules():
    names = "import sys, numpy as np, funcgrad.numpy as fnp; from funcgrad import hessian, vmap"
    loaded = run_python("-c", f"{names}\n{PROGRAM}\nprint(*sys.modules)").split()
    assert left_for_later(loaded, [package for package in LATER if package]) == []


BUILT_ANEW = """
import math, sys
import numpy as np
from funcgrad import grad
before = {*sys.modules}
def f(x):
    out = np.zeros(2)
    out[0] = math.sin(x)
    return float(out.sum())
assert grad(f)(0.0) == 1.0
print("loaded", *{*sys.modules} - before)
"""


def test_rebuilt_function_loads_only_needed_modules(tmp_path):
    program = tmp_path / "program.py"  # a refusal reads the line
    program.write_text(BUILT_ANEW)
    loaded = run_python(str(program)).split()
    assert loaded[0] == "loaded"
    assert not {"numpy.random", "logging"} & {*loaded}


@pytest.mark.parametrize("module", ["funcgrad", "funcgrad.numpy", "funcgrad.transforms"])
def test_lazily_loaded_names_exist(module):
    run_python(
        "-c",
        f"import {module} as m\n"
        "assert set(m.__all__) <= set(dir(m))\n"
        "for name in m.__all__:\n"
        f"    exec(f'from {module} import {{name}}')\n"
        "    assert getattr(m, name) is vars(m)[name]\n"
        f"from {module} import *\n"
        "assert {*m.__all__} <= {*globals()}",
    )
    said = run_python(
        "-c", f"import {module} as m\ntry:\n    m.nothing\nexcept AttributeError as error:\n    print(error)"
    )
    assert said.strip() == f"module '{module}' has no attribute 'nothing'"
