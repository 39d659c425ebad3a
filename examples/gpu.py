"""Check of funcgrad on this machine's GPU: every function compared with JAX, and programs timed.

JAX differentiates each function by its own rules on the accelerator. funcgrad's derivatives must agree, both on the
accelerator and in NumPy. Then the benchmark programs are compiled, as funcgrad functions and as JAX functions written
by hand, and both are timed. Run ``make gpu-check``, or ``python examples/gpu.py [NAME ...]`` for some functions only.
Without a GPU the program says so and runs on the processor. The exit status is 0 when all results agree.
"""

import argparse
import os
import platform
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import grad, tree
from funcgrad.errors import DeviceError
from funcgrad.interop import device_put, jit
from funcgrad.interop.crosschecks.primitives_table import COLUMNS, check_primitives
from funcgrad.interop.jax.devices import find_device

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from compiled import PROGRAMS, cast

jax.config.update("jax_enable_x64", True)  # for handwritten float64 programs; funcgrad switches by itself

QUICK = bool(os.environ.get("FUNCGRAD_QUICK"))
FEW = ("tanh", "sum", "matmul", "getitem")
#: Number of examples, and widths of a network whose arithmetic dominates the time on a GPU.
LARGE = (8192, (784, 2048, 2048, 10))
BAR = 1.05


def choose():
    """Return the first GPU, or the processor."""
    try:
        return find_device(jax, "gpu-check", "gpu")
    except DeviceError as error:
        print(f"No GPU, so this runs on the processor. {error}\n")
        return find_device(jax, "gpu-check", "cpu")


def describe(device):
    found = {
        "device": f"{device.device_kind} ({device.platform}), 1 of {len(jax.devices(device.platform))}",
        "runtime": " ".join(device.client.platform_version.split()),
        "versions": f"funcgrad {funcgrad.__version__}, JAX {jax.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}",
    }
    print("\n".join(f"{name:9} {value}" for name, value in found.items()), end="\n\n")


def show(name, place, count):
    if sys.stderr.isatty():
        print(f"\r{place + 1:4d} of {count}  {name:32}", end="", file=sys.stderr, flush=True)


def check_functions(names, device):
    """Compare every kind of derivative of every function; return the number of wrong functions."""
    # Tensor cores round float32 factors to ten bits by default.
    with jax.default_matmul_precision("float32"):
        table = check_primitives(names, device=device, before=show)
    if sys.stderr.isatty():
        print("\r" + 60 * " " + "\r", end="", file=sys.stderr)
    ran = [line for line in table.lines if not line.error]
    missing = [line for line in table.lines if "NotImplementedError" in line.error]
    wrong = [line for line in table.lines if not line.ok and line not in missing]
    print(f"{len(ran)} functions against JAX; largest errors in units in the last place:")
    for kind in table.kinds:
        cells = [(line.cells[kind].ulps, line.name) for line in ran if line.cells[kind].ulps < float("inf")]
        worst, name = max(cells, default=(0.0, "-"))
        middle = statistics.median(ulps for ulps, _ in cells) if cells else 0.0
        agree = sum(line.cells[kind].ok for line in ran)
        print(f"  {COLUMNS[kind]:9} {agree:4d} of {len(ran)} agree, median {middle:5.1f}, most {worst:9.1f} ({name})")
    for line in missing:
        print(f"  JAX has no {line.name} on this device: {line.error.splitlines()[0][:90]}")
    for line in wrong:
        told = line.error or ", ".join(f"{COLUMNS[k]}: {c.verdict}" for k, c in line.cells.items() if not c.ok)
        print(f"  WRONG {line.name}: {told}")
    return len(wrong)


def network(xp, softmax):
    """Return the loss of a network of any depth, for one of the two libraries."""

    def loss(layers, x, labels):
        *inner, last = layers
        for layer in inner:
            x = xp.tanh(x @ layer["w"] + layer["b"])
        return -xp.sum(labels * softmax(x @ last["w"] + last["b"])) / len(x)

    return loss


def problem(examples, widths, dtype):
    """Return layers, inputs and one-hot labels."""
    rng = np.random.default_rng(0)
    layers = [
        {"w": (rng.standard_normal((n, m)) / n**0.5).astype(dtype), "b": np.zeros(m, dtype)}
        for n, m in pairwise(widths)
    ]
    labels = np.eye(widths[-1], dtype=dtype)[rng.integers(0, widths[-1], examples)]
    return layers, rng.standard_normal((examples, widths[0])).astype(dtype), labels


def measure(ours, theirs, args, rounds):
    """Return the seconds of both calls, timed in turn, so that a slow spell of the machine affects both."""
    times = {ours: [], theirs: []}
    for number in range(rounds + 2):
        for call in (ours, theirs) if number % 2 else (theirs, ours):
            start = perf_counter()
            jax.block_until_ready(call(*args))
            if number > 1:  # the first two rounds compile and warm up
                times[call].append(perf_counter() - start)
    return times[ours], times[theirs]


def compared(name, ours, theirs, args, device, dtype):
    """Print the line of one program; return whether both agree and the time is within the bar."""
    pairs = list(zip(tree.leaves(ours(*args)), tree.leaves(theirs(*args)), strict=True))
    assert all(a.devices() == {device} and a.dtype == dtype for a, _ in pairs)
    apart = max(float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b))) for a, b in pairs)
    mine, other = measure(ours, theirs, args, rounds=11 if QUICK else 301)
    ratio = statistics.median(a / b for a, b in zip(mine, other, strict=True))
    print(
        f"  {name}, {dtype.__name__}: funcgrad {statistics.median(mine) * 1e3:.3f} ms, "
        f"JAX by hand {statistics.median(other) * 1e3:.3f} ms, ratio {ratio:.3f}; largest difference {apart:.1e}"
    )
    return apart < (1e-10 if dtype is np.float64 else 2e-3), ratio <= BAR


def programs(device, dtype):
    """Print the lines of one precision: the benchmark programs, and a network large enough for a GPU."""
    for made in PROGRAMS[:1] if QUICK else PROGRAMS:
        one = made()
        args = device_put(cast(one.args, dtype), device)
        yield compared(one.name, jit(one.ours()), jax.jit(one.theirs()), args, device, dtype)
    if device.platform != "cpu":
        args = device_put(problem(*LARGE, dtype), device)
        ours, theirs = jit(grad(network(fnp, fnp.log_softmax))), jax.jit(jax.grad(network(jnp, jax.nn.log_softmax)))
        shape = "-".join(map(str, LARGE[1]))
        yield compared(f"MLP {shape}, batch {LARGE[0]}", ours, theirs, args, device, dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions such as sum or linalg.inv, linalg for all of it")
    names = parser.parse_args().names or (FEW if QUICK else ())
    device = choose()
    describe(device)
    wrong = check_functions(names, device)
    print("\nThe programs of the benchmarks, compiled, on arrays that are on the device:")
    lines = [line for dtype in (np.float32, np.float64) for line in programs(device, dtype)]
    right = all(agree for agree, _ in lines)
    fast = all(met for _, met in lines)
    print(f"  aim of at most {BAR} times JAX's time: {'met' if fast else 'missed'}")
    print(f"\n{'all results agree' if right and not wrong else 'SOME RESULTS DIFFER'} on {device.device_kind}")
    sys.exit(bool(wrong) or not right)


if __name__ == "__main__":
    main()
