"""``make release-check``: build wheel and sdist, and test the wheel in an empty environment.

First the wheel with only its required packages; then with the extras, on README and the tests of the sdist.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "release"
COPY, DIST, ENVIRONMENT, SOURCES = PLACE / "copy", PLACE / "dist", PLACE / "env", PLACE / "sdist"
PYTHON = ENVIRONMENT / "bin" / "python"

#: Tests of files that are in the repository only: sources, benchmarks, examples.
OF_THE_REPOSITORY = (
    "test_benchmarks",
    "test_coverage_page",
    "interop/jax/test_data_parallel",
    "test_examples",
    "test_house",
    "test_packaging",
)

#: Program that checks what works with the required packages alone, and the errors about missing extras.
ALONE = """
import importlib.util
import sys

import numpy as np
import funcgrad.numpy as fnp
from funcgrad import errors, grad, hessian, interop, nn, scipy, vmap

assert "site-packages" in grad.__code__.co_filename, grad.__code__.co_filename
for extra in ("jax", "scipy", "pytest"):
    assert importlib.util.find_spec(extra) is None, extra
x = np.array([0.5, 1.0])
assert np.array_equal(vmap(grad(np.sin))(x), np.cos(x))
assert np.array_equal(hessian(lambda x: fnp.sum(x**3))(x), np.diag(6 * x))
assert np.allclose(grad(lambda x: np.sum(nn.softplus(x)))(x), 1 / (1 + np.exp(-x)))
for call in (lambda: interop.crosscheck(np.sin)(x), lambda: grad(scipy.special.erf)(0.5)):
    try:
        call()
    except errors.MissingExtraError as error:
        assert "pip install" in str(error)
    else:
        raise AssertionError("an extra that is missing was not missed")
print("the wheel alone: ok")
"""


def run(*command: object, cwd: Path = PLACE) -> None:
    """Run a command, and stop if it fails."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def install(*what: object) -> None:
    """Install into the environment, with pip."""
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def absolute(readme: str, address: str, version: str) -> str:
    """Return the README with links that work outside the repository at ``address``.

    Example:
        >>> absolute("[a](docs/a.md#b), ![c](docs/c.png), [d](https://d)", "https://forge/f", "0.2.0")
        '[a](https://forge/f/blob/v0.2.0/docs/a.md#b), ![c](https://forge/f/raw/v0.2.0/docs/c.png), [d](https://d)'
    """

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({address}/{kind}/v{version}/{found[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)", link, readme)


def copied(address: str) -> Path:
    """Copy the files that git tracks. If the repository's address is known, the README gets links to it."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        path = COPY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path, follow_symlinks=False)
    if address:
        version = tomllib.loads((COPY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        readme = COPY / "README.md"
        readme.write_text(absolute(readme.read_text(encoding="utf-8"), address, version), encoding="utf-8")
        project = COPY / "pyproject.toml"
        urls = f'[project.urls]\nRepository = "{address}"\n\n[tool.setuptools]\n'
        project.write_text(
            project.read_text(encoding="utf-8").replace("[tool.setuptools]\n", urls, 1), encoding="utf-8"
        )
    return COPY


def build(address: str) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist."""
    shutil.rmtree(PLACE, ignore_errors=True)
    COPY.mkdir(parents=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, copied(address))
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def unpacked(sdist: Path) -> Path:
    """Unpack the sdist without the library's sources, so that only the wheel can be imported."""
    with tarfile.open(sdist) as archive:
        archive.extractall(SOURCES, filter="data")
    (folder,) = SOURCES.iterdir()
    for name in ("funcgrad", "transforms", "interop", "pytest_funcgrad.py"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def main() -> None:
    """Build, install, test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="the address of the repository, for links in the README")
    parser.add_argument("--workers", default="2", help="processes that run the tests")
    parser.add_argument("tests", nargs="*", default=["tests"], help="which tests, by default all")
    options = parser.parse_args()
    wheel, sdist = build(options.url.rstrip("/"))
    run(sys.executable, "-m", "venv", ENVIRONMENT)
    install(wheel)
    run(PYTHON, "-I", "-W", "error", "-c", ALONE)
    install(f"{wheel}[test]")
    folder = unpacked(sdist)
    run(ENVIRONMENT / "bin" / "funcgrad", "crosscheck", "numpy:tanh", "--args", "f64[3]", cwd=folder)
    ignored = [f"--ignore=tests/{name}.py" for name in OF_THE_REPOSITORY]
    parallel = ["--numprocesses", options.workers, "--dist", "worksteal"] if options.workers != "1" else []
    run(PYTHON, "-m", "pytest", "--quiet", *parallel, *ignored, *options.tests, cwd=folder)
    print(f"all is well with {wheel.relative_to(ROOT)} and {sdist.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
