"""Random programs that change between calls: their names, functions, classes, objects, closures, caches and arrays.

``python -m numpy_programs.changing_programs --count 100 --seed 7``, with ``tests`` on the path, judges many. A program
consists of a few of the parts in ``changing_templates``. A twin of the program, which changes in the same way and which
no transform ever sees, tells what is right.
"""

import argparse
import collections
import linecache
import random
import sys
import types
import warnings

import numpy as np

from funcgrad import checkpoint, grad, hessian, jacfwd, jvp, value_and_grad, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.interop import from_numpy, jit
from numpy_programs.changing_templates import FUNCTIONS, PARTS

POINT, DIRECTION = np.array([0.7103, 1.3217]), np.array([0.3, -0.2])
START = """
import abc, collections, concurrent.futures, contextvars, copy, dataclasses, enum, functools, math, operator, pickle
import random, scipy.integrate, scipy.interpolate, scipy.optimize, scipy.sparse, scipy.stats, threading, types, typing
import weakref, numpy as np
rate, stop = 0.8, []
def twice(f): return lambda x: f(x) * 2.0
def tick(x):
    if stop: raise stop.pop()
    return x
"""
_FUNCTIONS = FUNCTIONS.strip().replace("\n", "|").split("|")
_PARTS = list(zip(*[iter(PARTS.strip().split("\n"))] * 3))


class Program:
    """Random program.

    Attributes:
        text: what defines it.
        changes: by round, the statements that change it.
    """

    def __init__(self, seed, rounds=3):
        self.random = choose = random.Random(seed)
        parts = [(f"n{i}", choose.choice(_PARTS)) for i in range(choose.choice((1, 2, 2, 3)))]
        self.text = START + "\n".join(self._filled(part[0], name) for name, part in parts)
        terms = []
        for i, (name, part) in enumerate(parts):
            self.text += f"\ndef use{i}(x): return ({self._filled(part[1], name)})"
            terms.append(choose.choice((f"use{i}(x[{i % 2}])", f"use{i}(float(x[{i % 2}] * x[1]) * 0.7)")))
        self.text += f"\nother = use{len(parts) - 1}\ndef f(x):\n    total = {terms[0]}\n"
        self.text += "".join(f"    total = tick(total) + math.sin(total) * {term}\n" for term in terms[1:])
        self.text += "    return tick(total) + math.exp(-0.1 * x[0] * x[1])\n"
        counts = [choose.choice((1, 1, 2, 3)) for _ in range(rounds)]
        self.changes = [[self._change(*choose.choice(parts)) for _ in range(count)] for count in counts]

    def _change(self, name, part):
        return self._filled(self.random.choice(part[2].split("|")), name)

    def _filled(self, template, name):
        while "{u}" in template:
            template = template.replace("{u}", self.random.choice(_FUNCTIONS), 1)
        while "{c}" in template:
            template = template.replace("{c}", f"{self.random.uniform(0.5, 1.5):.3f}", 1)
        return template.replace("{n}", name).replace("{{", "{").replace("}}", "}").replace("~", "\n")


def _run(text, module):
    file = f"<changing program {abs(hash(text))}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), vars(module))


def _outcome(run, *args):
    """Return the result, or the class of the error."""
    try:
        with warnings.catch_warnings(action="ignore"):  # a program may be run without a recorded one
            return run(*args)
    except Exception as error:
        return type(error)


def _differences(fun, step=1e-4):
    near = lambda e, k: np.asarray(fun(POINT + k * step * e))
    found = [near(e, -2) - 8 * near(e, -1) + 8 * near(e, 1) - near(e, 2) for e in np.eye(2)]
    return np.stack(found, -1) / (12 * step)


def _state(value, seen):
    """Return what a value of a program holds, as a text; refuse traced values."""
    kind = type(value)
    assert not isinstance(value, Tracer), value
    if kind in (bool, int, float, str, type(None)) or isinstance(value, np.generic):
        return repr(value)
    if id(value) in seen:
        return f"<{seen[id(value)][0]}>"
    seen[id(value)] = len(seen), value
    held, home = {}, (value if isinstance(value, type) else kind).__module__
    if isinstance(value, dict):
        held = {key: x for key, x in dict.items(value) if key != "__builtins__"}
    elif isinstance(value, np.ndarray):
        held = {"numbers": str(value.tolist())}
    elif isinstance(value, (list, tuple, set, collections.deque)):
        held = dict(enumerate(value))
    elif kind is types.FunctionType:
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = {"of": [value.__qualname__, value.__defaults__, value.__kwdefaults__, vars(value), *cells]}
    elif kind is types.MethodType:
        held = {"of": [value.__func__, value.__self__]}
    if home in ("changing", "types") and kind not in (types.FunctionType, types.ModuleType):
        held |= {key: x for key, x in getattr(value, "__dict__", {}).items() if key[:2] != "__"}
        held |= {key: getattr(value, key) for key in getattr(kind, "__slots__", ()) if hasattr(value, key)}
    return repr([kind.__qualname__, *[(key, _state(x, seen)) for key, x in held.items()]])


class Judge:
    """Comparison of a program, whose derivatives are taken, with its twin."""

    def __init__(self, program):
        self.module, self.twin = types.ModuleType("changing"), types.ModuleType("changing")
        sys.modules["changing"] = self.module
        for module in (self.twin, self.module):
            _run(program.text, module)
        f, self.random, self.faults = self.module.f, program.random, []
        value_and_slope, slopes = value_and_grad(f), vmap(grad(f))
        self.transformed = {
            "grad": grad(f),
            "new grad": lambda x: grad(f)(x),
            "value_and_grad": lambda x: np.hstack(value_and_slope(x)),
            "jvp": lambda x: np.stack(jvp(f, (x,), (DIRECTION,))),
            "vmap of grad": lambda x: slopes(np.stack([x, x]))[1],
            "hessian": hessian(f),
            "jacfwd": jacfwd(f),
            "grad of a rebuilt function": grad(from_numpy(f)),
            "grad of a checkpoint": grad(checkpoint(f)),
            "pullback": lambda x: vjp(f, x)[1](1.0)[0],
        }
        self.recorded = jit(grad(f), backend="numpy")

    def check(self, name, got, want, near):
        wrong = got is not want if isinstance(want, type) else isinstance(got, type)
        if wrong or not (isinstance(want, type) or np.allclose(got, want, near, near * (1 + np.max(np.abs(want))))):
            self.faults.append(f"{name}: {got}, expected {want}")

    def begin(self):
        """Do what comes before the first call of a round; return whether the program was called."""
        first = self.random.choice(("plain", "plain", "grad", "other", "error", "interrupt"))
        if first == "plain":
            _outcome(self.module.f, POINT)
        elif first == "other":
            _outcome(grad(self.module.other), POINT[0])
        elif first != "grad":
            self.module.stop[:] = [ValueError() if first == "error" else KeyboardInterrupt()]
            try:
                grad(self.module.f)(POINT)
            except BaseException:
                pass
            self.module.stop.clear()
        return first == "plain"

    def look(self):
        """Compare everything as it is now."""
        was_called, f = self.begin(), self.twin.f
        value, slope = _outcome(f, POINT), _outcome(_differences, f)
        wanted = dict.fromkeys(self.transformed, slope)
        if not isinstance(slope, type):
            if not np.all(np.isfinite(slope)):
                return
            wanted |= {"value_and_grad": np.hstack([value, slope]), "jvp": [value, slope @ DIRECTION]}
        state = _state(vars(self.module), {}) if was_called else None
        for name in self.random.sample(list(wanted), 3):
            if name == "hessian" and not isinstance(slope, type):
                wanted[name] = _outcome(_differences, grad(self.module.f))
            self.check(name, _outcome(self.transformed[name], POINT), wanted[name], 1e-6)
        if was_called and (now := _state(vars(self.module), {})) != state:
            self.faults.append(f"state: {now}, before {state}")
        self.check("recorded", _outcome(self.recorded, POINT), slope, 1e-6)
        self.check("value", _outcome(self.module.f, POINT), value, 1e-14)


def judged(seed):
    """Return what is wrong with the derivatives of a program, and the program, in words; None if all is right."""
    program = Program(seed)
    text, judge = program.text, Judge(program)
    judge.look()
    for changes in program.changes:
        for change in changes:
            text += f"# ---- change\n{change}\n"
            if len({_outcome(_run, change, module) for module in (judge.module, judge.twin)}) == 2:
                judge.faults.append("the change did something else in the twin")
        text += "# ---- look\n"
        if not judge.faults:
            judge.look()
    return f"{judge.faults}\n{text}" if judge.faults else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="number of programs; each makes all later ones slower")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    options = parser.parse_args()
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        if problem := judged(seed):
            bad += 1
            print(f"program {seed}: {problem}", flush=True)
    print(f"{options.count - bad} of {options.count} programs without a fault")


if __name__ == "__main__":
    main()
