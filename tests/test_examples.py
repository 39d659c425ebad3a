"""Every example runs, in its quick form and with warnings as errors."""

import pytest
from scripts import ROOT, run_script

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    # In an empty folder, so that files that an example writes stay out of the project.
    done = run_script(example, tmp_path, FUNCGRAD_QUICK="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
