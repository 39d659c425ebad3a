"""What is compiled when funcgrad is imported: kept for the next process, where Python keeps the code of modules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import builtins
compiled, plain = [], builtins.compile
def compile(source, file, *args, **kwargs):
    compiled.append(file)
    return plain(source, file, *args, **kwargs)
builtins.compile = compile
import funcgrad, numpy
print(funcgrad.grad(lambda x: (numpy.sin(x) / x).sum())(numpy.ones(2)).tolist())
print(sum([str(file).startswith("<generated") for file in compiled]))
"""


def run(place, **changes):
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(place), **changes}
    environment = {name: value for name, value in environment.items() if value is not None}
    done = subprocess.run([sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True)
    slope, compiled = done.stdout.splitlines()
    return slope, int(compiled)


def kept(place):
    return list(Path(place).rglob("generated.*.codes"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = tmp_path_factory.mktemp("code")
    return place, run(place, PYTHONDONTWRITEBYTECODE=None)


def test_the_next_process_compiles_little(filled):
    place, (slope, compiled) = filled
    assert len(kept(place)) == 1
    again, fewer = run(place, PYTHONDONTWRITEBYTECODE=None)
    assert again == slope
    assert fewer <= 20 < 100 < compiled  # what the gradient itself needs is compiled when it is asked for


@pytest.mark.parametrize("size", [0, 3, 4, 1000, 50_000])
def test_a_file_that_cannot_be_read_is_made_anew(filled, size):
    place, (slope, compiled) = filled
    (file,) = kept(place)
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    try:
        assert run(place, PYTHONDONTWRITEBYTECODE="1") == (slope, compiled)
        run(place, PYTHONDONTWRITEBYTECODE=None)
        assert len(file.read_bytes()) == len(whole)
    finally:
        file.write_bytes(whole)


def test_nothing_is_written_where_python_writes_none(tmp_path):
    run(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert not kept(tmp_path)
