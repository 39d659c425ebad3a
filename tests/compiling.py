"""How XLA compiles in the tests: comparing with JAX costs little else, and what is compiled there runs once."""

import os
import subprocess
import sys

__all__ = ["flags"]

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
