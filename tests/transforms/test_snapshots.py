"""Chains whose carries are stored in files: equal bits, no files left behind, little memory, clear errors."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint_chain, grad, hessian, jacfwd, vmap
from funcgrad.errors import InputError
from funcgrad.transforms import snapshots
from funcgrad.transforms.snapshots import Store

X = np.random.default_rng(0).normal(size=1024)


def last(w, folder=None, budget=5, length=60):
    step = lambda h, w: h + 0.01 * fnp.sin(w * h)
    return fnp.sum(checkpoint_chain(step, X, length=length, args=(w,), budget=budget, store=folder) ** 2)


@pytest.mark.parametrize(
    ("transform", "w"),
    [
        (grad, 1.3),
        (hessian, 1.3),
        (lambda f: jacfwd(grad(f)), 1.3),
        (lambda f: vmap(grad(f)), np.array([1.3, 0.7])),
    ],
)
def test_derivatives_are_bitwise_equal_and_no_file_is_left(tmp_path, transform, w):
    assert np.array_equal(transform(lambda w: last(w, tmp_path))(w), transform(last)(w))
    assert list(tmp_path.iterdir()) == []


def test_carries_are_stored_in_a_file(tmp_path, monkeypatch):
    written = []
    put = Store._write
    monkeypatch.setattr(Store, "_write", lambda self, x, place: written.append(place.nbytes) or put(self, x, place))
    grad(lambda w: last(w, str(tmp_path)))(1.3)
    assert set(written) == {X.nbytes}
    assert len(written) >= 5
    store = Store("checkpoint_chain", tmp_path)
    for array in (np.arange(6000.0).reshape(2, 3, 1000), np.asfortranarray(np.ones((50, 60))), np.ones(2000, ">i4")):
        there = store.take(store.put(array))
        assert (there == array).all()
        assert (there.dtype, there.strides, type(there)) == (array.dtype, array.strides, np.ndarray)
    small = np.ones(3)
    assert store.put(small) is small
    assert list(tmp_path.iterdir()) == []


def test_file_space_is_reused(tmp_path):
    store = Store("checkpoint_chain", tmp_path)
    kept = [store.put(np.full(1000, float(i))) for i in range(5)]
    larger = store.put(np.zeros(3000))
    size = os.fstat(store._file.fileno()).st_size
    kept[1] = kept[3] = None
    kept[1], kept[3] = store.put(np.full(999, 7.0)), store.put(np.full(1001, 8.0))
    assert [store.take(there)[-1] for there in kept] == [0.0, 7.0, 2.0, 8.0, 4.0]
    assert not store.take(larger).any()
    assert os.fstat(store._file.fileno()).st_size == size
    open_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    more = [store.put(np.full(1000, float(i))) for i in range(50)]  # not one file for each
    assert [store.take(there)[0] for there in more] == list(range(50))
    assert (len(os.listdir("/proc/self/fd")) if open_files else 0) == open_files


def test_truncated_file_raises(tmp_path):
    store = Store("checkpoint_chain", tmp_path)
    first, second = store.put(np.arange(2000.0)), store.put(np.ones(1000))
    store._file.truncate(5000)
    for there, found in ((first, "5000 of its 16000"), (second, "0 of its 8000")):
        match = rf"cannot be read from .*, got {found} bytes: .* Name another folder"
        with pytest.raises(OSError, match=match) as caught:
            store.take(there)
        assert caught.value.errno == errno.EIO


def test_error_leaves_no_file(tmp_path, monkeypatch):
    def failing(h, i):
        if i == 40:
            raise ZeroDivisionError
        return h + 0.01 * fnp.sin(h)

    with pytest.raises(ZeroDivisionError):
        grad(lambda w: fnp.sum(checkpoint_chain(failing, w * X, range(60), budget=5, store=tmp_path)))(1.0)
    assert list(tmp_path.iterdir()) == []

    class Full:
        def close(self):
            pass

        def seek(self, place):
            pass

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(snapshots.tempfile, "TemporaryFile", lambda **options: Full())
    with pytest.raises(OSError, match=r"snapshot of 8192 bytes cannot be written to .*No space left") as caught:
        grad(lambda w: last(w, tmp_path))(1.3)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
    for folder in (tmp_path / "none", 3):
        with pytest.raises(InputError, match="store must be an existing folder"):
            grad(lambda w, folder=folder: last(w, folder))(1.3)


def test_killed_process_leaves_no_file(tmp_path):
    program = f"""
        import os, signal
        import numpy as np
        import funcgrad.numpy as fnp
        from funcgrad import checkpoint_chain, grad

        def step(h, i):
            if i == 40:
                os.kill(os.getpid(), signal.SIGKILL)
            return h + 0.01 * fnp.sin(h)

        run = lambda w: checkpoint_chain(step, w * np.ones(2000), range(60), budget=9, store={str(tmp_path)!r})
        grad(lambda w: fnp.sum(run(w)))(1.0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_snapshots_use_no_memory(tmp_path):
    program = f"""
        import resource
        import numpy as np
        import funcgrad.numpy as fnp
        from funcgrad import checkpoint_chain, grad

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        x = np.ones(131072)
        step = lambda h, w: h + 0.01 * fnp.sin(w * h)
        grad(lambda w: fnp.sum(checkpoint_chain(step, x, length=3, args=(w,), budget=3)))(1.0)
        before = peak()
        loss = lambda w: fnp.sum(checkpoint_chain(step, x, length=120, args=(w,), budget=100, store={str(tmp_path)!r}))
        grad(loss)(1.0)
        print(peak() - before)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 20  # MB, where 100 snapshots have 100
