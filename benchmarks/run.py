"""Measure funcgrad against other libraries and against its own bars: ``python benchmarks/run.py [--quick]``.

Every group runs in an interpreter of its own, on one thread, with only the libraries it compares loaded.
Inside a group the candidates take turns and medians are compared; before anything is timed their gradients
are compared. The table goes to the terminal, all figures to ``out/benchmarks.json``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GROUPS = (
    "chains.first_order",
    "chains.long_chain",
    "chains.second_order",
    "chains.scalar_call",
    "elements.one_by_one",
    "mlp.network",
    "footprint.dropped_results",
    "footprint.composition",
    "footprint.start",
    "checkpoint.long_chain",
    "checkpoint.online_chain",
    "checkpoint.layers",
    "compiled.network",
    "compiled.convolution",
    "compiled.recurrent",
    "compiled.mixture",
    "compiled.hessian_product",
)
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
}
WIDTHS = (58, 15, 24, 17, 9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter programs and fewer rounds: a smoke test")
    parser.add_argument("--only", metavar="NAME", default="", help="groups whose name contains this")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.group:
        print(json.dumps(measure(options.group, options.quick)))
        return
    setting = describe_machine()
    print("\n".join(f"{name}: {value}" for name, value in setting.items()), end="\n\n")
    print_line("", "funcgrad", "against", "figure", "bar", "")
    print("-" * (sum(WIDTHS) + 14))
    claims = [claim for name in GROUPS if options.only in name for claim in run_group(name, options.quick)]
    missed = sum(not claim["met"] for claim in claims)
    print(f"\n{missed} of {len(claims)} missed" if missed else f"\nall {len(claims)} met")
    if options.quick:
        print("quick: the programs are too short for the bars to mean much")
    target = ROOT / "out" / "benchmarks.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"setting": setting, "quick": options.quick, "claims": claims}, indent=2) + "\n")
    print(f"written to {target.relative_to(ROOT)}")
    sys.exit(bool(missed) and not options.quick)


def measure(group: str, quick: bool) -> list[dict[str, Any]]:
    """The claims of one group, measured in this interpreter."""
    module, function = group.split(".")
    if "torch" in (ROOT / "benchmarks" / f"{module}.py").read_text():
        import torch

        torch.set_num_threads(1)
    claims = getattr(importlib.import_module(module), function)(quick)
    return [{**asdict(claim), "met": claim.met} for claim in claims]


def run_group(name: str, quick: bool) -> list[dict[str, Any]]:
    """The claims of one group, measured in an interpreter of its own and printed."""
    command = [sys.executable, str(Path(__file__).resolve()), "--group", name, *["--quick"] * quick]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        failed = {"what": f"{name} failed", "ours": "", "against": "", "figure": None, "bar": None, "met": False}
        print_line(failed["what"], "", "", "", "", "MISSED")
        return [failed]
    claims: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for claim in claims:
        bar, unit = claim["bar"], claim["unit"]
        figure = f"{claim['figure']:.3g} {unit}" if unit else f"{claim['figure']:.3f} times"
        verdict = "" if bar is None else "met" if claim["met"] else "MISSED"
        limit = "" if bar is None else f"<= {bar:.3g}"
        print_line(claim["what"], claim["ours"], claim["against"], figure, limit, verdict)
    return claims


def print_line(*cells: str) -> None:
    *columns, last = cells
    print("  ".join([f"{cell:{width}}" for cell, width in zip(columns, WIDTHS, strict=True)]) + f"  {last}", flush=True)


def describe_machine() -> dict[str, str]:
    """What a reader needs to weigh the figures."""
    packages = ("funcgrad", "numpy", "torch", "autograd", "jax", "toolz")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": f"{processor()}, {os.cpu_count()} cores, one thread used",
        "python": f"{platform.python_version()} on {platform.system()}",
        "packages": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
