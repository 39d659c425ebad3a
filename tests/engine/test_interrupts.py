"""Ctrl-C and other signals arrive wherever the program is, and leave no state behind.

The library changes neither the garbage collector nor signal handlers.
"""

import dis
import gc
import itertools
import signal
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest
from scripts import ROOT

import funcgrad.numpy as fnp
from funcgrad import blocks, checkpoint, debug_nans, grad, jvp, no_grad, strict, vjp, vmap
from funcgrad.shared_state import write_lock
from funcgrad.transforms import debugging

# Nested lists give the collector work to do; a signal arrives every few milliseconds.
PROGRAM = """
import gc, signal
frozen = gc.get_freeze_count()  # Python 3.12 begins with some
import funcgrad

arrived = sent = 0


class AlarmError(Exception):
    pass


def raised(number, frame):
    global sent
    sent += 1
    raise AlarmError


def work(kept):  # a function: Python 3.14 takes a signal at the end of a loop for one behind its ``try``
    while True:
        kept.append([[] for _ in range(10)])
        if len(kept) > 5000:
            kept.clear()


signal.signal(signal.SIGALRM, raised)
kept = []
for _ in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        work(kept)
    except AlarmError:
        arrived += 1
print(sent, arrived, gc.callbacks, gc.get_freeze_count() - frozen)
"""


def test_import_loses_no_signal():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("200 200 [] 0\n", "")


def test_garbage_collector_settings_unchanged():
    before, frozen = (list(gc.callbacks), gc.get_threshold(), gc.isenabled()), gc.get_freeze_count()

    def long(x):
        for _ in range(20_000):
            x = x * 1.0
        return x

    grad(long)(1.0)
    vjp(long, 1.0)[1](1.0)
    assert (list(gc.callbacks), gc.get_threshold(), gc.isenabled()) == before
    assert gc.get_freeze_count() <= frozen  # objects that an earlier test froze may have been freed


class Interrupt(BaseException):
    pass


def interrupt(program, place):
    """Run ``program`` and interrupt it at step number ``place`` inside the library, if it takes that many steps.

    Steps are the places where Python delivers signals: after calls, at the start of functions and at the ends of loops.
    """
    steps, before_this = itertools.count(), {}

    def look(frame, event, arg):
        if not frame.f_globals.get("__name__", "").startswith("funcgrad"):
            return None
        if frame.f_code.co_name == "<genexpr>":  # Python 3.12 takes a step to close it, and only warns of errors there
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            last, before_this[id(frame)] = (
                before_this.get(id(frame), ""),
                dis.opname[frame.f_code.co_code[frame.f_lasti]],
            )
            if last.startswith(("CALL", "RESUME", "JUMP_BACKWARD")) and next(steps) == place:
                sys.settrace(None)
                raise Interrupt
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        program()
    finally:
        sys.settrace(before)


def interrupted(program, place):
    """Interrupt ``program`` at ``place`` and return whether it got that far."""
    try:
        interrupt(program, place)
    except Interrupt:
        return True
    return False


def in_a_block():
    with no_grad():
        pass


def looking():
    with debug_nans():
        grad(lambda x: x * x)(2.0)


def nested():
    with no_grad(), debug_nans():
        pass


def around_a_function():
    no_grad(lambda x: x)(1.0)


def strictly():
    with strict():
        pass


def watched():
    grad(lambda x: x * x, strict=True)(2.0)


def mapped():
    vmap(lambda x: x * 2.0, axis_name="i")(np.ones(2))


def repeated():
    grad(checkpoint(lambda x: x * x))(2.0)


def written():
    def f(x):
        out = fnp.zeros(2)
        with no_grad():
            out[0] = x
        return out[1] * x

    grad(f)(2.0)


PROGRAMS = [in_a_block, looking, nested, around_a_function, strictly, watched, mapped, repeated, written]


@pytest.mark.parametrize("program", PROGRAMS)
def test_interrupt_leaves_no_block_open(program):
    interrupt(program, -1)  # no interrupt: Python 3.12 shows the steps from the second run on
    place = 0
    while interrupted(program, place):
        assert blocks.current() == blocks.State(), place
        assert debugging._rule_origin.get() is None, place
        assert not write_lock._is_owned(), place  # otherwise other threads would wait for ever
        assert grad(lambda x: x**2)(3.0) == 6.0, place
        assert jvp(lambda x: x**2, (3.0,), (1.0,))[1] == 6.0, place
        # every step up to the 400th, then every seventh
        place += 1 if place < 400 else 7
    assert place > 5  # at least one interrupt happened
    assert blocks.none_open()


def test_block_has_ended_while_interrupt_is_handled():
    """The traceback holds the frames of the block's exit; the block's effect has ended all the same."""
    met = 0
    for place in range(200):
        try:
            interrupt(in_a_block, place)
        except Interrupt:
            met += 1
            assert grad(lambda x: x**2)(3.0) == 6.0, place
    assert met > 5


def test_random_signals_leave_no_block_open():
    """Send real signals at random places."""
    lost = []

    class AlarmError(Exception):
        pass

    def raised(number, frame):
        raise AlarmError

    before = signal.signal(signal.SIGALRM, raised)
    gc.disable()  # JAX has a callback in the collector, in which signals get lost
    try:
        for delay in np.random.default_rng(0).uniform(1e-5, 4e-4, 300):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                while True:
                    with no_grad():
                        pass
            except AlarmError:
                lost.append(grad(lambda x: x**2)(3.0) != 6.0 or blocks.current() != blocks.State())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert len(lost) == 300
    assert not any(lost)


def test_interrupts_in_exit_stack():
    block = no_grad()
    with ExitStack() as stack:
        stack.enter_context(block)
        stack.enter_context(block)
        assert grad(lambda x: x**2)(3.0) == 6.0
        assert blocks.current().min_level
    assert blocks.current() == blocks.State()


def test_interrupts_in_reentered_block():
    block = no_grad()

    def f(x):
        with block, block:
            y = x * 2.0
        with block:
            z = y * x
        return z * x

    assert grad(f)(3.0) == 18.0
