"""Every example runs, in its quick form and with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    environment = {
        **os.environ,
        "FUNCGRAD_QUICK": "1",
        "JAX_PLATFORMS": "cpu",
        "MPLBACKEND": "agg",
        "PYTHONPATH": str(ROOT),
    }
    # In an empty folder, so that what an example writes stays out of the project.
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
