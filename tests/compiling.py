"""XLA settings of the tests: compiling dominates comparisons with JAX, and compiled functions mostly run once.

Processes share compiled programs in a folder, also with the processes of examples and documents.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

__all__ = ["CACHE", "FOLDER", "flags", "share_contexts"]

#: The folder of what is kept between runs.
FOLDER = Path(__file__).resolve().parent.parent / ".pytest_cache"
#: Environment variables of JAX: the folder for compiled programs of any size.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(FOLDER / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

#: Flags with which compiling takes half of the processor time.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def flags() -> str:
    """Return the value for ``XLA_FLAGS``: the current value, with ``QUICK`` if this XLA accepts it."""
    given = os.environ.get("XLA_FLAGS", "")
    if "PYTEST_XDIST_WORKER" in os.environ:  # the parent process has checked
        return given
    return f"{given} {QUICK}".strip() if _accepts_quick() else given


def _accepts_quick() -> bool:
    """Ask whether this XLA accepts ``QUICK``. The answer for a version is kept: starting JAX takes a second."""
    kept = FOLDER / f"xla_flags_{version('jaxlib')}.json"
    with suppress(OSError, ValueError):
        known: dict[str, bool] = json.loads(kept.read_text())
        if QUICK in known:
            return known[QUICK]
    asked = subprocess.run(  # XLA ends the process if it does not know a flag
        [sys.executable, "-c", "import jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": QUICK},
        capture_output=True,
        check=False,
    )
    with suppress(OSError):  # the folder may be read-only
        FOLDER.mkdir(exist_ok=True)
        kept.write_text(json.dumps({QUICK: not asked.returncode}))
    return not asked.returncode


def share_contexts() -> None:
    """Make all programs of a thread share one MLIR context.

    By default JAX makes a context for each program and keeps it. Making one takes longer than lowering a small program,
    and each takes megabytes.
    """
    from jax._src.interpreters import mlir

    made, of_thread = mlir.make_ir_context, threading.local()

    def shared():
        if not hasattr(of_thread, "context"):
            of_thread.context = made()
        return of_thread.context

    mlir.make_ir_context = shared
