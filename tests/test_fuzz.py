"""``make fuzz`` on a small scale, and its parts: random programs on funcgrad, JAX and a referee."""

import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.arguments import drawn, examined
from fuzz.calls import FAMILIES, Call
from fuzz.demands import judged
from fuzz.draws import draw
from fuzz.evaluating import evaluated
from fuzz.generating import generate
from fuzz.judging import FAILURES, Verdict, compiled, judge, theirs
from fuzz.programs import Line, Program
from fuzz.reproducers import script
from fuzz.running import CHUNK, Found, Summary, Workers, examine
from fuzz.shrinking import shrink
from helpers import at_least
from operations.spec import Sample

import funcgrad.numpy as fnp
from funcgrad.kinds import elementwise


@pytest.fixture(autouse=True, scope="module")
def _fewer_collections():
    """Collect garbage less often: JAX makes many small objects."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    yield
    gc.set_threshold(*before)


ROOT = Path(__file__).resolve().parent.parent
SEED = 0


@pytest.mark.parametrize("start", range(0, 200, 25))
def test_random_programs_agree(start):
    for number in range(start, start + 25):
        verdict = judge(generate(SEED, number))
        unknown = not at_least(jax, "0.10.0") and "Unimplemented case of QR" in verdict.details
        assert unknown or not verdict.failed, (number, verdict, generate(SEED, number).source())


def test_most_programs_are_compared():
    kinds = [judge(generate(1, number)).kind for number in range(20)]
    assert kinds.count("agree") >= 18, kinds


def test_number_determines_program():
    for number in range(20):
        one, other = generate(3, number), generate(3, number)
        assert (one.source(), one.transforms(), repr(one)) == (other.source(), other.transforms(), repr(other))
    assert generate(3, 0).source() != generate(4, 0).source()


@pytest.fixture
def _wrong_sine(monkeypatch):
    monkeypatch.setattr(fnp, "sin", elementwise("sin", dx=lambda x: fnp.cos(x) * 1.0001))


@pytest.mark.usefixtures("_wrong_sine")
def test_wrong_rule_is_found_and_shrunk():
    found = next(f for number in range(200) if (f := examine(SEED, number, seconds=6)).script)
    assert found.kind == "funcgrad differs from JAX and the referee"
    assert found.lines <= 2
    scope: dict = {"__name__": "__main__"}
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        exec(compile(found.script, "<reproducer>", "exec"), scope)


def program(text, x, *, stack=(("grad", 0),), **options):
    return Program((np.asarray(x),), lines=(Line(text, (0,), 1, **options),), result=(1,), stack=stack)


def test_printed_scripts_run():
    """Printed scripts need neither this folder nor its files, and pass if nothing is wrong."""
    two = Program(
        (np.ones(2), np.array([0.5, 2.0])),
        {"c0": np.array([2.0, 3.0])},
        (Line("np.sin({0}) if np.sum({1}) > 1 else {1}", (0, 1), 2, jax="np.sin({0})"), Line("{0} * c0", (2,), 3)),
        (0, 3),
        (("vjp", 1), ("jvp", 2)),
    )
    written = program("{0} * 2\n{out}[0] = 0.5".replace("{0} * 2", "{out} = {0} * 2"), [1.0, 2.0], jax="")
    for made in (two, written):
        text = script(made, Verdict("agree"), "A program.")
        assert "fuzz" not in text
        exec(compile(text, "<reproducer>", "exec"), {"__name__": "__main__"})


def test_programs_near_kinks_are_discarded():
    """Near a kink, tie or branch point, results cannot be compared."""
    assert judge(program("np.abs({0})", [0.5, 0.01], guard="away({0})")).kind == "unfit"
    assert judge(program("np.abs({0})", [0.5, 0.1], guard="away({0})")).kind == "agree"
    assert judge(program("np.linalg.inv({0})", np.ones((2, 2)), guard="conditioned({0})")).kind == "unfit"


def test_xla_compile_failure_is_not_reported():
    """XLA for CPUs cannot compile a Fourier transform whose result LAPACK reads, see test_jax_divergences.py."""
    made = program("np.abs(np.linalg.qr(np.fft.ifft({0}))[1])", np.eye(2) + 0.25, stack=(("jit", 0),))
    assert judge(made).kind in ("JAX refuses", "agree")


def test_shrinking_keeps_relevant_steps():
    big = generate(SEED, 13)
    small = shrink(big, lambda p: any("np.tanh" in line.text for line in p.lines) and judge(p).kind == "agree", 20)
    assert len(small.lines) <= 2
    assert any("np.tanh" in line.text for line in small.lines)


def test_shrunk_programs_do_not_write_to_arguments():
    written = Program((np.ones(2),), lines=(Line("{0}[0] = 2.0", (0,)),), stack=(("grad", 0),))
    assert judge(written).kind == "unfit"


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.pad(x, 1)[::2, 1:],
        lambda x: jnp.sort(x, 0).at[jnp.array([0, 0]), 1].add(x[0, :2]),
        lambda x: x.at[jnp.array([0, 5]), 1].set(2.0, mode="drop"),
        lambda x: jnp.cumsum(x[::-1], axis=1) @ jnp.linalg.inv(x),
        lambda x: jnp.linalg.solve(x, x[0]),
        lambda x: jax.scipy.linalg.solve_triangular(x, x.T, trans=1, lower=True),
        lambda x: jnp.linalg.qr(x)[1] ** 2 + jnp.linalg.svd(x, full_matrices=False)[1],
        lambda x: jax.lax.scan(lambda c, r: (c * r, c + r), x[0], x, reverse=True)[1],
        lambda x: jax.lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, x),
        lambda x: jax.lax.while_loop(lambda c: jnp.sum(c * c) > 1, lambda c: 0.5 * c, x),
        lambda x: jnp.real(jnp.fft.ifft2(jnp.fft.rfft(x, 4)) ** 2),
        lambda x: jnp.percentile(x, 40, axis=(1, 0)) + jnp.prod(x, axis=0, where=np.array([True, False, True])),
        lambda x: jnp.convolve(x[0], x[1]) * jnp.argmax(x),
        lambda x: jax.vmap(lambda r: r - jax.lax.pmean(r, "i"), axis_name="i")(x),
        lambda x: jnp.tile(jnp.copysign(x, x.T), 2) // 0.7,
    ],
)
def test_jax_programs_run_on_numpy(fun):
    x = np.array([[0.7, -1.2, 0.4], [1.1, 0.3, -0.6], [-0.2, 0.9, 1.5]])

    for of, at in ((fun, x), (jax.jacfwd(fun), x), (jax.vmap(fun), np.stack([x, x.T]))):
        np.testing.assert_allclose(evaluated(of, at), compiled(of, jnp.asarray(at)), rtol=1e-12, atol=1e-12)


def test_jax_programs_match_compiled_runs():
    """Compare a few programs, evaluated operation by operation, with runs that JAX compiles."""
    for number in range(40, 43):
        made = generate(SEED, number)
        got, want = jax.tree.leaves(theirs(made, evaluated)), jax.tree.leaves(theirs(made, compiled))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_summary_says_how_to_continue():
    summary = Summary(seed=5, start=100, stop=100 + 3 * CHUNK)
    summary.finished |= {100, 100 + 2 * CHUNK}
    summary.kinds["agree"] = 2 * CHUNK
    assert f"make fuzz SEED=5 START={100 + CHUNK} N={2 * CHUNK}" in summary.text()
    summary.finished.add(100 + CHUNK)
    assert "to go on" not in summary.text()


class Mortal:
    """A pool of processes that breaks when a process runs program 7."""

    def submit(self, fun, seed, numbers):
        future: Future = Future()
        if 7 in numbers:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result([Found(number, "agree", "", "") for number in numbers])
        return future

    def shutdown(self):
        pass


def test_crashing_program_is_reported(monkeypatch):
    monkeypatch.setattr(Workers, "_started", lambda self, jobs: Mortal())
    results = dict(Workers(2).results(SEED, iter([range(5), range(5, 10), range(10, 15)])))
    found = {one.number: one for chunk in results.values() for one in chunk}
    assert list(map(len, results.values())) == [5, 5, 5]
    assert [number for number, one in found.items() if one.kind != "agree"] == [7]
    assert found[7].kind in FAILURES
    assert "def program" in found[7].script


def test_interrupt_prints_summary():
    command = [sys.executable, "-m", "fuzz", "--count", "100000", "--jobs", "1", "--seed", "9"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith("programs 0 to 99999 of SEED=9")
        run.send_signal(signal.SIGINT)
        out, errors = run.communicate(timeout=60)
    assert "stopped" in errors
    assert "to go on: make fuzz SEED=9 START=0 N=100000" in out


@pytest.mark.parametrize("family", FAMILIES)
def test_random_arguments(family):
    for number in range(4):
        made, rng = drawn(family, SEED, number)
        assert made.text() == drawn(family, SEED, number)[0].text()
        assert not examined(made, rng).wrong, made.text()


def test_wrong_results_for_arguments_are_found():
    def found(ours, *args):
        rng, call = np.random.default_rng(0), Call("f", ours, np.sin, Sample(args))
        return "".join("".join(judged(draw(call, rng), rng).wrong) for _ in range(10))

    x = np.array([0.3, 0.7])
    assert found(fnp.sin, x) == ""
    assert "differences give" in found(elementwise("sin", dx=lambda x: fnp.cos(x) * 1.0001), x)
    assert "NumPy has" in found(fnp.cos, x)
    assert "raised AttributeError" in found(lambda x: fnp.sin(x.shapes), x)

    def overwriting(x):
        x[0] = 1.0
        return fnp.sin(x)

    assert found(overwriting, x.copy()) != ""
