"""Measure funcgrad against other libraries and against its own bars: ``python benchmarks/run.py [--quick]``.

Programs are measured pair by pair: funcgrad and one other library, each in a fresh interpreter on one thread, take
turns, after the gradients of both have been compared with JAX's in float64. Memory is measured in a fresh
interpreter too. The groups follow; they measure funcgrad alone or against compiled JAX, each in its own
interpreter. The tables go to the terminal, all figures to ``out/benchmarks.json``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import measuring
import table
import turns
from programs import Program

ROOT = Path(__file__).resolve().parent.parent
GROUPS = (
    "chains.growth",
    "chains.left_behind",
    "small.linear",
    "functions.against_autograd",
    "elements.one_by_one",
    "footprint.dropped_results",
    "footprint.composition",
    "footprint.start",
    "checkpoint.long_chain",
    "checkpoint.online_chain",
    "checkpoint.layers",
    "threads.scaling",
    "soak.flat_memory",
    "compiled.network",
    "compiled.convolution",
    "compiled.recurrent",
    "compiled.mixture",
    "compiled.hessian_product",
    "recorded.chains",
    "recorded.derivatives",
    "recorded.networks",
    "recorded.solvers",
    "recorded.first_calls",
    "recorded.against_xla",
    "recorded.memory",
    "equations.solutions",
    "equations.integrals",
    "equations.peers",
)
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
}
ENVIRONMENT = {**os.environ, **ONE_THREAD}
#: Libraries whose memory is measured in addition to funcgrad's.
MEMORY_OF = ("torch", "autograd", "mygrad")
PACKAGES = ("numpy", "torch", "autograd", "mygrad", "jax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter programs and fewer rounds: a smoke test")
    parser.add_argument("--only", metavar="PATTERN", default="", help="programs and groups in whose name this is found")
    parser.add_argument("--against", metavar="PATTERN", default="", help="libraries likewise, and no groups")
    parser.add_argument("--out", metavar="FILE", type=Path, default=ROOT / "out" / "benchmarks.json")
    parser.add_argument("--task", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task and options.task[0] == "serve":
        measuring.serve(measuring.find(options.quick)[options.task[1]], options.task[2], Path(options.task[3]))
        return
    if options.task:
        print(json.dumps(task(*options.task, quick=options.quick)))
        return
    report = {"setting": describe_machine(), "quick": options.quick, "only": options.only, "programs": [], "claims": []}
    print("\n".join(f"{name}: {value}" for name, value in report["setting"].items()), end="\n\n")
    wanted = re.compile(options.only, re.IGNORECASE)
    chosen = [program for name, program in measuring.find(options.quick).items() if wanted.search(name)]
    if chosen:
        table.print_head()
    for program in chosen:
        if labels := peers_of(program, options.against):
            report["programs"].append(measure_program(program, labels, options.quick))
            table.print_program(report["programs"][-1])
    groups = [name for name in GROUPS if wanted.search(name) and not options.against]
    if groups:
        table.print_claims_head()
    for name in groups:
        report["claims"] += run_group(name, options.quick)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    missed = table.missed(report)
    judged = table.judged(report)
    print(f"\n{len(missed)} of {judged} bars missed" if missed else f"\nall {judged} bars met")
    if options.quick:
        print("quick: the programs are too short for the bars to mean much")
    print(f"written to {options.out}")
    failed = any(claim["figure"] is None for claim in report["claims"]) or any(p["errors"] for p in report["programs"])
    sys.exit(failed if options.quick else bool(missed))


def task(kind: str, name: str, *rest: str, quick: bool) -> Any:
    """Run a task of a fresh interpreter."""
    if kind == "group":
        module, function = name.split(".")
        claims = getattr(importlib.import_module(module), function)(quick)
        return [{**asdict(claim), "met": claim.met} for claim in claims]
    program = measuring.find(quick)[name]
    if kind == "reference":
        return measuring.reference(program, Path(rest[0]))
    return measuring.memory(program, rest[0])


def command(quick: bool, *words: str) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), *["--quick"] * quick, "--task", *words]


def fresh(quick: bool, *words: str, before: Sequence[str] = ()) -> tuple[Any, str]:
    """Run a task in its own interpreter, started by the words ``before``; return its answer, and the error as text."""
    done = subprocess.run([*before, *command(quick, *words)], env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return None, f"{' '.join(words[:3:2])}: {(done.stderr.strip() or 'ended').splitlines()[-1]}"
    return json.loads(done.stdout.splitlines()[-1]), ""


def time_pair(program: Program, label: str, known: str, quick: bool) -> tuple[Any, str]:
    """Return median times of funcgrad and another library, taken in turn, in microseconds, and the error as text.

    Each runs in its own interpreter, as for its users, so changes that a library makes to its process stay there.
    """
    served = {name: command(quick, "serve", program.name, name, known) for name in ("funcgrad", label)}
    try:
        with turns.started(served, ENVIRONMENT) as servants:
            times = turns.in_turn(servants, quick)
            operations = servants["funcgrad"].said["operations"]
    except turns.EndedError as error:
        sys.stderr.write(error.stderr)
        return None, f"time {label}: {error}"
    us = {name: statistics.median(of) * 1e6 for name, of in times.items()}
    return {"us": us, "rounds": len(times["funcgrad"]), "operations": operations}, ""


def peers_of(program: Program, against: str) -> list[str]:
    """Return the installed libraries to measure against, and ``value``, the function itself."""
    wanted = re.compile(against, re.IGNORECASE)
    labels = [label for label in program.libraries if label != "funcgrad" and not missing(label)]
    labels += ["value"] * (program.value is not None)
    return [label for label in labels if wanted.search(label)]


def missing(label: str) -> bool:
    """Return whether the library of a column is not installed."""
    library = label.lower().partition(".")[0].partition(",")[0]
    return library in PACKAGES and importlib.util.find_spec(library) is None


def measure_program(program: Program, labels: list[str], quick: bool) -> dict[str, Any]:
    """Return all results of a program for the table."""
    peers, errors, own = {}, [], []
    with tempfile.TemporaryDirectory() as folder:
        known = str(Path(folder) / "gradient")
        _, error = fresh(quick, "reference", program.name, known)
        for label in [] if error else labels:
            answer, failure = time_pair(program, label, known, quick)
            if failure:
                errors.append(failure)
                continue
            ours, theirs = answer["us"]["funcgrad"], answer["us"][label]
            own.append(ours)
            bar = program.bars.get(label)
            peers[label] = {"us": theirs, "ratio": ours / theirs, "bar": bar, "rounds": answer["rounds"]}
            operations = answer["operations"]
    memory, failures = measure_memory(program, labels, quick)
    found = {"name": program.name, "dtype": np_name(program.dtype), "us": None, "us_per_operation": None}
    if own:
        found["us"] = statistics.median(own)
        found["us_per_operation"] = found["us"] / operations if operations else None
        found["operations"] = operations
    value = peers.pop("value", None)
    found["gradient_per_value"] = value and value["ratio"]
    found |= {"peers": peers, "memory": memory}
    return {**found, "errors": [*([error] if error else []), *errors, *failures]}


def measure_memory(program: Program, labels: list[str], quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Return megabytes for each library, and funcgrad's relative to those of the others."""
    if program.small is None or not set(MEMORY_OF) & set(labels):
        return {}, []
    found, errors = {}, []
    for label in ("funcgrad", *MEMORY_OF):
        if label in ("funcgrad", *labels):
            answer, error = fresh(quick, "memory", program.name, label)
            if error:
                errors.append(error)
            else:
                found[label] = {"megabytes": answer["megabytes"], "bar": program.memory_bars.get(label)}
    return found, errors


def np_name(dtype: Any) -> str:
    import numpy as np

    return np.dtype(dtype).name


def run_group(name: str, quick: bool) -> list[dict[str, Any]]:
    """Return the claims of one group, measured in their own interpreter and printed."""
    claims, error = fresh(quick, "group", name)
    if error:
        claims = [{"what": f"{name} failed", "ours": "", "against": "", "figure": None, "bar": None, "met": False}]
    for claim in claims:
        table.print_claim(claim)
    return list(claims)


def describe_machine() -> dict[str, str]:
    """Return the facts that a reader needs to judge the figures."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": f"{processor()}, {os.cpu_count()} cores, one thread used",
        "python": f"{platform.python_version()} on {platform.system()}",
        "funcgrad": tree_measured(),
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "NumPy's build": numpy_build(),
    }


def tree_measured() -> str:
    """Return the version of this tree, not of an installation, and its commit."""
    found = re.search(r'^__version__ = "(.+)"', (ROOT / "funcgrad" / "__init__.py").read_text(encoding="utf-8"), re.M)
    if found is None:
        raise LookupError("funcgrad/__init__.py has no line __version__ = ...")
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return f"{found[1]}, commit {commit or 'unknown'}"


def numpy_build() -> str:
    """Return the library with which NumPy multiplies matrices, and the processor features that NumPy uses."""
    import numpy as np

    found: Any = np.show_config(mode="dicts")
    blas, simd = found["Build Dependencies"]["blas"], found["SIMD Extensions"]
    return f"{blas['name']} {blas['version']}; {' '.join([*simd['baseline'], *simd.get('found', [])])}"


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
