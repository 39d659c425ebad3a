"""How XLA compiles in the tests: comparing with JAX costs little else, and what is compiled there runs once.

What one process has compiled the others find in a folder, those of examples and documents too.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

__all__ = ["CACHE", "flags", "share_contexts"]

#: What JAX reads from the environment: where programs are kept that it has compiled, however small they are.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

#: With these compiling takes half of the processor's time.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def flags() -> str:
    """The value for ``XLA_FLAGS``: what stands there, with ``QUICK`` if this XLA knows it."""
    given = os.environ.get("XLA_FLAGS", "")
    if "PYTEST_XDIST_WORKER" in os.environ:  # who started the worker has asked
        return given
    asked = subprocess.run(  # XLA ends the process where it does not know a flag
        [sys.executable, "-c", "import jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": QUICK},
        capture_output=True,
        check=False,
    )
    return given if asked.returncode else f"{given} {QUICK}".strip()


def share_contexts() -> None:
    """Programs of a thread are written in one context of MLIR.

    JAX makes a new one for each and keeps it with the program. That takes longer than to write a small program, and
    takes megabytes.
    """
    from jax._src.interpreters import mlir

    made, of_thread = mlir.make_ir_context, threading.local()

    def shared():
        if not hasattr(of_thread, "context"):
            of_thread.context = made()
        return of_thread.context

    mlir.make_ir_context = shared
