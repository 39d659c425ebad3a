"""Scripts in separate processes that skip the imports of JAX, funcgrad and SciPy, which take most of the time.

Each script runs in a fork of a process that has imported the slow modules but run none of them. Without fork,
scripts start from nothing.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

__all__ = ["ROOT", "run_script"]

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300  # seconds

FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT = multiprocessing.get_context("forkserver" if FORKS else "spawn")
if FORKS:
    CONTEXT.set_forkserver_preload(["jax.numpy", "optree", "funcgrad", "scipy.optimize"])


def run_script(script: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``script`` in ``folder`` as ``python -W error script`` does, and return its output."""
    with tempfile.TemporaryDirectory() as kept:
        files = [Path(kept) / name for name in ("stdout", "stderr")]
        process = CONTEXT.Process(target=_run, args=(script, folder, files, environment))
        process.start()
        process.join(LIMIT)
        if process.exitcode is None:
            process.kill()
            process.join()
        stdout, stderr = [file.read_text(encoding="utf-8") if file.exists() else "" for file in files]
        return subprocess.CompletedProcess([str(script)], process.exitcode, stdout, stderr)


def _run(script: Path, folder: Path, files: list[Path], environment: dict[str, str]) -> None:
    for number, file in enumerate(files, 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.environ.update(environment, JAX_PLATFORMS="cpu", MPLBACKEND="agg")
    os.chdir(folder)
    sys.argv = [str(script)]
    own = str(Path(__file__).parent)
    sys.path[:] = [str(script.parent), str(ROOT), *[path for path in sys.path if path not in ("", own, str(ROOT))]]
    warnings.simplefilter("error")
    # the only warning that pyproject.toml ignores, for the reason given there
    warnings.filterwarnings("ignore", "invalid value encountered in matmul", RuntimeWarning)
    runpy.run_path(str(script), run_name="__main__")
