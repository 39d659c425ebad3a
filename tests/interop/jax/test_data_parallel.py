"""Many devices and processes: the gradient equals that of one, and a process that dies is an error, not a hang."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import funcgrad.numpy as fnp
from funcgrad import grad
from funcgrad.interop import jit

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 200  # seconds per test: in JAX 0.4 a process notices after 100 s that another process has died

#: Program of each process: a number of steps, each compared with the gradient that NumPy gives.
PROGRAM = """
import inspect
import sys
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import funcgrad.numpy as fnp
from funcgrad import tree, value_and_grad
from funcgrad.interop import device_put, jit

jax.config.update("jax_cpu_collectives_implementation", "gloo")  # where that is not yet the default
port, process, processes, steps, patience = map(int, sys.argv[1:])
known = inspect.signature(jax.distributed.initialize).parameters
waits = {"initialization_timeout": patience, "heartbeat_timeout_seconds": 6, "shutdown_timeout_seconds": 10}
jax.distributed.initialize(
    f"127.0.0.1:{port}",
    num_processes=processes,
    process_id=process,
    coordinator_bind_address=f"127.0.0.1:{port}",
    **{name: seconds for name, seconds in waits.items() if name in known},
)
mesh = Mesh(np.array(jax.devices()), ("data",))
everywhere, in_parts = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))


def loss(params, x, y):
    return fnp.mean((fnp.tanh(x @ params["w"] + params["b"]) - y) ** 2)


rng = np.random.default_rng(0)
params = {"w": rng.standard_normal(4), "b": 0.5}
x, y = rng.standard_normal((16, 4)), rng.standard_normal(16)
expected = tree.leaves(value_and_grad(loss)(params, x, y))

share = slice(process * 16 // processes, (process + 1) * 16 // processes)
placed = jax.make_array_from_process_local_data
mine = [placed(in_parts, part[share]) for part in (x, y)]
shared = device_put(params, everywhere)
step = jit(value_and_grad(loss), in_shardings=(everywhere, in_parts, in_parts), out_shardings=everywhere)
print("devices", len(jax.devices()), len(jax.local_devices()), len(mine[0].addressable_shards), flush=True)
for _ in range(steps):
    found = [np.asarray(leaf.addressable_data(0)) for leaf in tree.leaves(step(shared, *mine))]
    apart = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, expected, strict=True))
    print("apart", apart, found[0].dtype, flush=True)
    time.sleep(0.05 if steps > 5 else 0)
"""


class Process:
    """Python process whose output goes to a file, so that no pipe fills up."""

    def __init__(self, folder, name, *arguments, devices=2):
        self.log = folder / f"{name}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")},
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
            "JAX_PLATFORMS": "cpu",
            "JAX_ENABLE_X64": "1",
            "FUNCGRAD_QUICK": "1",
            "PYTHONPATH": str(ROOT),
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", *map(str, arguments)], stdout=log, stderr=log, env=environment
            )

    @property
    def output(self):
        return self.log.read_text(errors="replace")

    def wait(self, until):
        """Return the exit status; a process that has not ended by then fails the test."""
        try:
            return self.process.wait(timeout=max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            pytest.fail(f"{self.log.stem} hangs:\n{self.output}")

    def wait_for(self, text, until):
        while text not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < until, f"{self.log.stem} never said {text!r}:\n{self.output}"
            time.sleep(0.05)


@contextmanager
def processes(folder, numbers, *, of, steps, patience=20):
    """Start processes that connect on a free port of the loopback interface, and end them after the test."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = folder / "program.py"
    program.write_text(PROGRAM)
    started = []
    try:
        for number in numbers:
            started.append(Process(folder, f"process {number}", program, port, number, of, steps, patience))
        yield started
    finally:
        for one in started:
            one.process.kill()
        for one in started:
            one.process.wait(timeout=10)


@pytest.mark.parametrize("made_by_jax", [False, *[True] * hasattr(jax, "make_mesh")])  # the newest: explicit axes
def test_sharding_of_any_mesh_is_kept(made_by_jax):
    mesh = jax.make_mesh((1,), ("data",)) if made_by_jax else Mesh(np.array(jax.devices()[:1]), ("data",))

    def loss(w, x):
        return fnp.mean(fnp.tanh(x @ w) ** 2)

    everywhere, in_parts = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    w, x = np.ones(3), np.arange(24.0).reshape(8, 3) / 9
    inside = jit(grad(loss), in_shardings=(everywhere, in_parts), out_shardings=everywhere)(w, x)
    outside = grad(jit(loss, in_shardings=(everywhere, in_parts), out_shardings=everywhere))(w, x)
    for found in (inside, outside):
        np.testing.assert_allclose(found, grad(loss)(w, x), rtol=1e-12)


def test_example_matches_single_device(tmp_path):
    until = time.monotonic() + LIMIT
    example = Process(tmp_path, "example", ROOT / "examples" / "data_parallel.py", devices=1)
    try:
        assert example.wait(until) == 0, example.output
    finally:
        example.process.kill()
    found = re.search(r"8 devices, 1792 examples; largest difference from one device (\S+)", example.output)
    assert found, example.output
    assert float(found[1]) < 1e-12


def test_two_processes_match_single_process(tmp_path):
    until = time.monotonic() + LIMIT
    with processes(tmp_path, (0, 1), of=2, steps=2) as both:
        assert [one.wait(until) for one in both] == [0, 0], "\n".join(one.output for one in both)
        for one in both:
            assert "devices 4 2 2" in one.output
            found = re.findall(r"^apart (\S+) float64$", one.output, re.MULTILINE)
            assert len(found) == 2, one.output
            assert max(map(float, found)) < 1e-12


@pytest.mark.parametrize("victim", [0, 1], ids=["the coordinator", "another"])
def test_dead_process_ends_other_process_with_error(tmp_path, victim):
    until = time.monotonic() + LIMIT
    with processes(tmp_path, (0, 1), of=2, steps=2000) as both:
        for one in both:
            one.wait_for("apart", until)
        both[victim].process.send_signal(signal.SIGKILL)
        survivor = both[1 - victim]
        assert survivor.wait(until) != 0, survivor.output
        assert re.search("another task died|heartbeat|Socket closed|Connection", survivor.output), survivor.output


def test_missing_process_is_an_error(tmp_path):
    until = time.monotonic() + LIMIT
    with processes(tmp_path, (0,), of=2, steps=1, patience=2) as (alone,):
        assert alone.wait(until) != 0, alone.output
        assert re.search("DEADLINE_EXCEEDED|timed out", alone.output, re.IGNORECASE), alone.output
