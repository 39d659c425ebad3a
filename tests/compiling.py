"""XLA settings of the tests: compiling dominates comparisons with JAX, and compiled functions mostly run once.

Processes share compiled programs in a folder, also with the processes of examples and documents.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

__all__ = ["CACHE", "flags", "share_contexts"]

#: Environment variables of JAX: the folder for compiled programs of any size.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "jax"),
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
    asked = subprocess.run(  # XLA ends the process if it does not know a flag
        [sys.executable, "-c", "import jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": QUICK},
        capture_output=True,
        check=False,
    )
    return given if asked.returncode else f"{given} {QUICK}".strip()


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
