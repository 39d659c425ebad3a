"""Random programs written for NumPy and SciPy: expressions, writes, views, loops and branches over a few variables.

``python -m numpy_programs.random_programs --count 1000 --seed 7``, with ``tests`` on the path, judges many. In the
templates ``{s}``, ``{v}``, ``{m}`` are a number, a vector of four and a matrix that the program has by then, ``{c}`` is
a constant, ``{k}`` a position; ``{a}`` and ``{A}`` are a vector and a matrix that the program may write to, and ``{n}``
is a new name; these three are the same everywhere in a template. ``~`` begins a line. More templates stand in
``language_templates`` and ``library_templates``.
"""

import argparse
import dataclasses
import linecache
import random
import re
import warnings
from importlib import import_module

import numpy as np

from funcgrad import checkpoint, grad, jacfwd, jvp, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError
from funcgrad.interop import jit
from numpy_programs import (
    language_templates,
    library_templates,
    parts,
    parts_of_arrays,
    parts_of_classes,
    parts_of_language,
)

POINT = np.array([0.7103, 1.3217, -0.4339, 2.1571])
DIRECTION = np.array([0.3, -0.2, 0.5, 0.1])

#: Modules that the programs use, by the names that they have there.
_PYTHON = """
bisect cmath collections contextlib copy dataclasses functools heapq io itertools math operator statistics types scipy
"""
_SCIPY = "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
MODULES = {name: import_module(name) for name in _PYTHON.split()} | {"np": np}
MODULES |= {name: import_module(f"scipy.{name}") for name in _SCIPY.split()}
#: Other names that the programs use.
NAMES = {
    name: value
    for module in (dataclasses, parts, parts_of_arrays, parts_of_classes, parts_of_language)
    for name, value in vars(module).items()
    if not name.startswith("__")
}

NUMBERS = """
math.sin({s})|math.exp(-{s}**2)|math.log({s}**2 + 1.3)|math.sqrt({s}**2 + 0.5)|math.atan2({s}, {s}**2 + 1.0)
math.hypot({s}, {s}, 0.4)|float({v}[{k}])|{v}[{k}].item()|float(np.sum({v}))|sum({v}.tolist())|max({s}, {s}, {c})
min({s}, {c})|abs({s} - {c})|{s} * {s} - {s}|{v}.dot({v})|np.linalg.norm({v} + np.arange(1, 5) * 0.37)|{m}[{k}, {k}]
np.linalg.det({m} * 0.05 + np.eye(4))|np.prod(np.tanh({v}))|{v}.max()|np.median({v})|np.polyval({v}, {s} * 0.3)
np.interp({s}, [-2.0, -0.5, 0.7, 2.0], {v})|functools.reduce(lambda a, b: a * 0.5 + b, {v})|statistics.fmean({v})
math.fsum({v})|np.float64({s}) * {c}|abs(complex({s}, {s}) + 2.5)|(cmath.exp(1j * {s}) * (2 + 1j)).real|general({s})
general({s}, {s}, {s}, k={s}, z={s})|general(*[{s}, {s}], **dict(k={s}))|repeated({s}, 2)|Box({s}, {v}).area()
(lambda t, u={s}: t * u + {c})({s})|sum(e * e for e in {v} if e > {c}) + 0.0|({s} if {s} > {c} else -2 * {s})
dict(a={s}, b={s})["b"]|list(powers({v}))[-1]|[*{v}][{k}]|sorted({v})[1]|list(itertools.accumulate({v}))[2]
operator.mul({s}, {s})|math.prod([{s}, {s}, 0.5])|np.trapezoid({v}, dx=0.3)|({v} + np.arange(4) * 0.91).std()
np.quantile({v}, 0.37)|np.array([{s}, {s}]).sum()|special.expit({s})|math.erf({s})|math.gamma({s}**2 + 1.1) * 0.2
np.max(np.abs({m})) * 0.3|{m}.trace() * 0.3|np.einsum("ij,j->", {m}, {v}) * 0.1|np.min({v}) + np.ptp({v})
collections.deque({v}, maxlen=2)[0]|copy.deepcopy({v})[{k}]|{v}[np.argmax({v})]|math.copysign({s}, {s} + 0.003)
divmod({s} + 10.013, 0.777)[1]|pow(abs({s}) + 0.3, {s} * 0.5)|math.ldexp({s}, 1) - math.modf({s} * 1.01)[0]
Point({s}, {v}).total()|Point({s}, {v})._replace(a={s}).a|Base({v}, {s}).step({s}).value()
Base({v}).step({s}).log[-1][{k}]|Child({v}, {s}).step({s})({s})|Child.mix({s}, {s})|Child.of({s}).product|Base({v}).c2
decorated({s}, {s})|walked([{s}, ({s}, [{s}])])|(Base({v}) @ Child({v}, {s})) * 0.3
[add({s}) for add in [counter()] for _ in range(3)][-1]|shape_of({s}) + shape_of([{s}, {s}])
np.abs(np.fft.fft({v})[1] + 0.3)|np.real(np.vdot({v} + 1j, {v} * (1 - 2j))) * 0.2|np.array({s}).reshape(1, 1)[0, 0]
({v} > {c}).sum() * {s} * 0.3|int({s} > 0) * {s} + 0.1|{v}[int(abs({s}) * 1.37) % 4]
np.nansum(np.where({v} > {c}, {v}, np.nan))|integrate.quad(lambda t: math.sin(t * {s}), 0, 1)[0]
optimize.brentq(lambda t: t**3 + t - {s}, -9, 9)|special.logsumexp({v})
interpolate.CubicSpline([0, 1, 2, 3.0], {v})(1.37) + 0|stats.norm.logpdf({s}, {s}, 1.3) * 0.1
ndimage.gaussian_filter1d({v}, 1.0)[{k}]|optimize.newton(lambda t: t - 0.3 * math.sin(t) - {s}, 0.1)
(sparse.csr_array(np.diag([1.0, 2, 3, 4])) @ {v}).sum()|signal.lfilter([1, 0.5], [1, -0.3], {v})[-1]
stats.gamma.cdf({s}**2 + 0.1, {s}**2 + 0.7)|special.jv(1, {s})
np.linalg.lstsq(np.vander([1, 2, 3, 4.0], 2), {v}, rcond=None)[0][0]|np.polyfit([0, 1, 2, 3.0], {v}, 2)[1] * 0.3
scipy.linalg.expm({m} * 0.1)[0, 1]|max({v}, key=lambda t: (t - 0.211) ** 2)|functools.partial(decorated, {s})({s})
sum(a * b for a, b in zip({v}, reversed({v}))) * 0.3|{{i: t * t for i, t in enumerate({v})}}[2]
np.cov({v}, {v} * {v})[0, 1] * 0.3
"""
VECTORS = """
np.array([{s}, {s}, {s}, {s}])|np.full(4, {s})|{v}.copy()|{v} + {v} * {c}|np.where({v} > {c}, {v}, {v} * 2)
np.sort({v})|{v}[np.argsort({v})]|np.cumsum({v}) * 0.5|np.roll({v}, {k}) + 0|np.concatenate([{v}[:2], {v}[2:]])
np.linspace({s}, {s}, 4)|{m} @ {v} * 0.3|{m}[{k}] * 1.0|{m}[:, {k}].copy()|np.diag({m}).copy()|{m}.sum(axis=0) * 0.3
{m}.max(axis=1)|np.linalg.solve({m} * 0.05 + 3 * np.eye(4), {v})|np.clip({v}, -1.05, 1.07) + 0.1 * {v}
np.maximum({v}, {v})|np.gradient({v})|np.convolve({v}, {v}, "same") * 0.3|np.fft.fft({v}).real * 0.4
np.vectorize(lambda t: t * t * 0.3 + 1)({v})|special.expit({v})|np.fromiter((e * 2 - {s} for e in {v}), float)
np.apply_along_axis(lambda r: r * r.sum() * 0.2, 0, {v})|smooth({v})|np.array(list(map(math.sin, {v})))
np.repeat({v}[:2], 2)|np.tile({v}[1:3], 2)|np.einsum("i,i->i", {v}, {v}) * 0.5|np.outer({v}, {v})[{k}] * 0.5
with_first({v}.copy(), {s})|with_first({v} * 1.0, {s})[::-1].copy()|Box({s}, {v}.copy()).put({k}, {s}).scaled
np.array([t * {s} for t in {v}])|np.array([*powers({v})]) * 0.3|np.zeros(4) + {s}|np.tanh({v}, out=np.empty(4))
np.flip({v}).copy()|np.asarray({v}.tolist())|np.append({v}[:3], {s})|np.r_[{v}[:2], {s}, {s}]
np.delete(np.insert({v}, 1, {s}), 2)|np.diff({v}, append={s})|np.choose([0, 1, 0, 1], [{v}, {v}])
np.select([{v} > {c}, {v} < {c}], [{v}, {v} ** 2], {s})|{v}.reshape(2, 2).T.ravel() + 0|np.take({v}, [3, 1, 1, 0])
np.bincount([0, 1, 1, 3], weights={v}, minlength=4)|np.square({v}).clip(max=1.31)
(({v}[:, None] - {v}[None, :]) ** 2).sum(1) * 0.1|np.mean(({v}, {v}), axis=0)|np.array([max(t, {s}) for t in {v}])
scipy.linalg.solve_triangular(np.tril({m}) * 0.1 + 2 * np.eye(4), {v}, lower=True)|np.concatenate(halves({v})[::-1])
np.linalg.eigvalsh({m} + {m}.T + np.diag([0.0, 3, 6, 9])) * 0.2
np.linalg.eigvalsh(np.tril({m}) + np.diag([0.0, 3, 6, 9])) * 0.2|np.random.default_rng(3).normal({v}, 1.1) * 0.4
Child({v}, {s}).step(0.3).step({s}).v|mapped({v}, {v} + 0.0137) * 0.5
np.fft.ifft(np.fft.fft({v}) * np.exp(1j * {s})).real|np.abs({v} + 1j * {v} * 0.7 + 0.2)
np.sum(np.split({v}, 2), axis=0).repeat(2)|np.array([{v}[i - 1] * {v}[i] for i in range(4)]) * 0.4
signal.lfilter([1, 0.5], [1, -0.3], {v})|ndimage.uniform_filter1d({v}, 3)
interpolate.CubicSpline([0, 1, 2, 3.0], {v})(np.array([0.3, 1.1, 1.9, 2.6]))
integrate.cumulative_trapezoid({v}, initial=0)
integrate.solve_ivp(lambda t, y: -y * {s} ** 2 * 0.3, (0, 1), {v}, rtol=1e-9, atol=1e-11).y[:, -1]
stats.zscore({v} + np.arange(4))|np.ma.array({v}, mask=[0, 1, 0, 0]).filled({s})
np.linalg.qr({m} * 0.1 + np.eye(4))[0] @ {v}|np.logaddexp({v}, {s})
scipy.linalg.lu_solve(scipy.linalg.lu_factor({m} * 0.05 + 2 * np.eye(4)), {v})|np.array(sorted({v}, key=lambda t: -t))
np.piecewise({v}, [{v} < {c}], [lambda t: t * t * 0.3, lambda t: t * {s}])
np.fromfunction(lambda i: i * {s}, (4,)) * 0.3|functools.reduce(np.add, [{v}, {v}, {v}]) * 0.4
np.array(list(itertools.accumulate({v}, lambda a, b: a * 0.5 + b)))
np.lib.stride_tricks.sliding_window_view(np.r_[{v}, {s}], 2).mean(1)|np.sort_complex({v} + 1j * {v}).real
np.maximum.accumulate({v})|optimize.root(lambda z: z + 0.1 * np.sin(z) - {v}, np.zeros(4), tol=1e-12).x
np.linalg.multi_dot([{m} * 0.3, {m} * 0.3, {v}])
"""
MATRICES = """
np.outer({v}, {v}) * 0.5|np.diag({v}).copy()|{m}.T.copy()|{m} * {m} * 0.4|{m} @ {m} * 0.2
np.vstack([{v}, {v}, {v}, {v}])|np.array([{v}, {v}, [{s}] * 4, {v}])|{m}.reshape(2, 8).reshape(4, 4) + 0.0|np.tril({m})
np.eye(4) * {s}|np.zeros((4, 4)) + {v}|np.meshgrid({v}, {v})[1].copy()
np.array([[a * b for a in {v}] for b in {v}]) * 0.4|np.pad({m}[1:3, 1:3], 1, mode="edge")
np.kron(np.eye(2), {m}[:2, :2])|np.linalg.inv({m} * 0.05 + 2 * np.eye(4))|np.cumsum({m}, axis=0) * 0.3
np.sort({m}, axis=1)|np.column_stack(({v}, {v}, {v}, {v}))
np.block([[{m}[:2, :2], {m}[2:, 2:]], [{m}[:2, 2:], {m}[2:, :2]]])|np.where({m} > {c}, {m}, {s})
"""
CONSTANTS = """
np.zeros(4)|np.ones(4)[::-1]|np.array([0.3] * 4)|np.vectorize(lambda t: t * 0.3 + 1)(np.arange(4.0))
copy.deepcopy(np.arange(4.0))|interpolate.CubicSpline([0, 1, 2, 3.0], [0.0, 1, 0.5, -1])([0.3, 0.9, 1.7, 2.5])
special.jn_zeros(1, 4) * 0.1|integrate.solve_ivp(lambda t, y: -y, (0, 1), [1.0, 2, 0.3, -0.7]).y[:, -1]
sparse.eye_array(4).toarray()[1]
"""
CONSTANT_MATRICES = """
np.zeros((4, 4))|sparse.eye_array(4).toarray()|sparse.diags_array([np.ones(4), np.ones(3)], offsets=[0, 1]).toarray()
scipy.linalg.hilbert(4)|copy.copy(np.eye(4))|np.random.default_rng(2).random((4, 4))
"""
WRITES = """
{a}[{k}] = {s}|{a}[{k}] += {s}|{a}[{k}] *= {s}|{a}[1:3] = {v}[:2]|{a}[::2] += {s}|{a}[[0, 2]] *= 0.7
{a}[{a} > {c}] = {s}|{a} *= 0.6|{a} += 0.3|{a}[{a} < {c}] *= 0.3|np.add.at({a}, [0, 1, 1], {v}[:3])|{a}.sort()
{a}.fill({s})|{a}.flat[2] = {s}|{a}[...] = {v}|{a}[:] = {a}[::-1]|np.copyto({a}, {v}, where=[True, False, True, True])
np.multiply({a}, {v}, out={a})|{a} -= {a}.mean()|{a} /= 1.5 + np.abs({a}).max()|{a}[0], {a}[2] = {a}[2], {a}[0]
{a}[[0, 1]] = {a}[[1, 0]]|{a}.put([0], {s})|np.put({a}, [1, 3], {v}[:2])|{a}.reshape(2, 2)[1] += {s}
{a}.reshape(2, 2).T[0] = {v}[:2]|{a}.ravel()[3] = {s}|np.tanh({a}, out={a})|{a}[1:] += {a}[:-1]|{a}[:-1] *= {a}[1:]
np.clip({a}, -1.31, 1.29, out={a})|{a}[:2], {a}[2:] = {a}[2:].copy(), {a}[:2].copy()|operator.setitem({a}, 2, {s})
np.place({a}, [True, False, True, False], {v}[:2])|np.subtract({v}, {v}, out={a})|{a}.partition(2)
np.cumsum({a} * 0.5, out={a})|np.maximum({a}, {s}, out={a})|{a}[:] = [{s}, {s}, {s}, {s}]|np.dot({m}, {v}, out={a})
{a}.view()[0] = {s}|np.asarray({a})[3] = {s}|{a}[-1:0:-2] = {v}[:2]|{n}, {n}b = halves({a}); {n}[:] = {n}b[::-1] * {s}
{n} = dict(k={a}); {n}["k"][2] *= {s}|{n} = Point({s}, {a}); {n}.v[0] += {n}.a
{n} = Box({s}, {a}); {n}.put(1, {s}).put(2, {n}.a)|{n} = np.split({a}, 2); {n}[0][:] = {n}[1] * 0.5
{n} = lambda q: q.__setitem__(0, {s}); {n}({a})|({a}[0], {a}[1]), {n} = ({s}, {a}[0]), 2
{n} = {a}.astype(complex); {n}[1] *= 1j * {s}; {a}[:] = np.abs({n})
{n} = np.zeros((2, 2)); {n}[0] = {v}[:2]; {n}[:, 1] = {s}; {a}[:] = {n}.ravel()
{n} = {a}[[1, 2]]; {n} *= {s}; {a}[[2, 1]] += {n}|{n} = np.add({a}, {v}, out={a}); {n}[1] = {s}
{n} = {a}; {n} = {n} * 0.5; {n}[0] = {s}; {a}[1] += {n}[0]|{n} = {a}; {n} *= 0.5; {n}[2] = {s}
{a}[np.argsort({a})[0]] = {s}|{a}[np.where({a} > {c})] *= 0.6
{n} = types.SimpleNamespace(a={a}, s={s}); {n}.a[1] = {n}.s; {n}.s *= 2; {n}.a[2] -= {n}.s
*{n}, {n}z = {a}; {n}.append({s}); {a}[:] = {n}; {a}[0] = {n}z|{a}[::-1].sort()|np.random.default_rng(1).shuffle({a})
{a}.cumsum(out={a}); {a} *= 0.5|with scaled({a}, {s}) as {n}: {n}[0] = {s}
for {n} in np.nditer({a}, op_flags=["readwrite"]): {n}[...] = {n} * 0.9|while {a}[0] ** 2 > 1.7003: {a} *= 0.8
for {n}, {n}e in enumerate({a}): {a}[{n}] = {n}e * {n}e * 0.3 + {n} * 0.1
for {n} in {a}.reshape(2, 2): {n}[0], {n}[1] = {n}[1], {n}[0]|{A}[{k}] = {v}|{A}[:, {k}] += {v}|{A}.T[{k}] = {v}
{A}[{k}, {k}] = {s}|np.fill_diagonal({A}, {v})|{A}[np.diag_indices(4)] += {s}|{A} *= 0.7|for {n} in {A}: {n} *= 0.8
for {n}, {n}r in enumerate({A}): {n}r[{n}] = {s}|{A}[1:3, 1:3] = {A}[:2, :2].copy()|{A} += {A}.T
{A}[[0, 1]] = {A}[[1, 0]]|{A}[{A} > {c}] *= 0.5|{A}[np.ix_([0, 2], [1, 3])] += {s}|{n} = {A}[{k}]; {n}[1:] -= {s}
{A}.flat[::5] = {v}|np.add.at({A}, ([0, 0, 2], [1, 1, 3]), {s})|{A}[..., -1] = {s}|np.matmul({m}, {m} * 0.2, out={A})
{A}[:] = {A}.T.copy() * 0.7|np.einsum("ii->i", {A})[:] = {v}|np.fill_diagonal({A}, {A}.ravel()[2:6])|{A}.sort(axis=0)
{A}[0], {A}[1] = {A}[1].copy(), {A}[0].copy()
"""
VIEWS = """
{a}[:]|{a}.view()|{a}.reshape(4)|{a}[::-1]|np.asarray({a})|{a}|{A}[{k}]|{A}[:, {k}]|{A}.ravel()[2:6]|{A}.T[{k}]
{A}.reshape(-1)[::4]
"""
CONTROL = """
{n} = {s}~for {n}i in range(3):~    {n} = 0.6 * {n} + math.sin({NUMBER})~    {a}[{k}] += 0.1 * {n}
{n} = {s}~for {n}i in {v}:~    {n} = 0.6 * {n} + math.sin({n}i)~    if {n} > 1.913: break~    {a} *= 0.9
{n} = {s}~for {n}i, {n}j in zip({v}, {v}):~    if {n} < -1.817: continue~    {n} = 0.6 * {n} + {n}i * {n}j * 0.5~    {a}[{k}] = 0.5
{n}, {n}i = {s}, 0~while abs({n}) > 0.2113 and {n}i < 6:~    {n} = 0.5 * {n} + 0.03 * ({NUMBER}) * math.exp(-{n}i); {n}i += 1
if ({NUMBER}) > {c}:~    {n} = {NUMBER}~    {a}[{k}] = {s}~else:~    {n} = {NUMBER}
try:~    {n} = math.log({s} - 0.0371)~except ValueError:~    {n} = {NUMBER}
def {n}f(p, q={s}):~    {a}[{k}] += 0.2 * p~    return p * q + ({NUMBER})~{n} = {n}f({s}) - {n}f(q={s}, p={s})
{n} = [{s}, {s}]~{n}.append({NUMBER})~{n}[0] += {n}[-1] * 0.3~{n} = ({n}[::-1] + [{s}])[1]
try:~    {a}[2] = {s}; {a}[7] = 1.0~except IndexError:~    {n} = {NUMBER}
"""


def _listed(text):
    return [part for line in text.strip().splitlines() for part in line.split("|")]


def _blocks(text):
    return [block.replace("\n", "~") for block in text.strip().split("\n\n")]


TABLES = {name: _listed(text) for name, text in list(globals().items()) if name.isupper() and isinstance(text, str)}
TABLES["OUTSIDE"] = []
for _module in (language_templates, library_templates):
    for _name, _text in vars(_module).items():
        if _name.isupper():
            TABLES[_name] += _blocks(_text) if _name in ("CONTROL", "OUTSIDE") else _listed(_text)


class _Writer:
    """Writer of one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {"s": ["x[0]", "x[3]"], "v": ["x"], "m": [], "a": [], "A": []}
        self.lines, self.outside, self.count = [], [], 0

    def new_name(self):
        self.count += 1
        return f"w{self.count}"

    def filled(self, template, name=""):
        """Return a template with names in place of its letters."""
        random = self.random
        same = {"n": name, **{k: random.choice(self.names[k]) for k in "aA" if self.names[k]}}

        def pick(match):
            key = match[1]
            if key in same:
                return same[key]
            if key == "NUMBER":
                return self.filled(random.choice(TABLES["NUMBERS"]))
            if key == "c":
                return f"{random.uniform(-1.5, 1.5):.3f}"
            if key == "k":
                return str(random.randrange(4))
            if key == "m" and not self.names["m"]:
                return f"np.outer({random.choice(self.names['v'])}, x)"
            return random.choice(self.names[key])

        return re.sub(r"\{(s|v|m|a|A|c|k|n|NUMBER)\}", pick, template).replace("{{", "{").replace("}}", "}")

    def assign(self, table, *keys):
        """Add an assignment of an expression of a table."""
        name = self.new_name()
        self.lines.append(f"{name} = {self.filled(self.random.choice(table))}")
        for key in keys:
            self.names[key].append(name)

    def add_block(self, template):
        """Add a block, of which a part may stand outside of the program."""
        name = self.new_name()
        outside, _, inside = self.filled(template, name).rpartition("~---~")
        self.outside += outside.split("~") if outside else []
        lines = inside.split("~")
        self.lines += lines
        if any(f"{name} = " in line or f"{name}, " in line for line in lines):
            self.names["s"].append(name)

    def possible(self, table):
        """Return the templates of a table whose arrays the program has."""
        return [t for t in TABLES[table] if ("{a}" not in t or self.names["a"]) and ("{A}" not in t or self.names["A"])]

    def text(self, size):
        """Return the text of the program."""
        self.lines.append("v0 = x * 1.0")
        self.names["v"].append("v0")
        self.names["a"].append("v0")
        self.assign(TABLES["CONSTANTS"], "v", "a")
        if self.random.random() < 0.5:
            self.assign(TABLES["CONSTANT_MATRICES"], "m", "A")
        for _ in range(size):
            kind = self.random.choices("svmwuco", (22, 20, 10, 28, 6, 14, 5))[0]
            if kind == "s":
                self.assign(TABLES["NUMBERS"], "s")
            elif kind == "v":
                self.assign(TABLES["VECTORS"], "v", "a")
            elif kind == "m":
                self.assign(TABLES["MATRICES"], "m", "A")
            elif kind == "w":
                self.lines.append(self.filled(self.random.choice(self.possible("WRITES")), self.new_name()))
            elif kind == "u":
                self.assign(self.possible("VIEWS"), "v", "a")
            else:
                self.add_block(self.random.choice(TABLES["CONTROL" if kind == "c" else "OUTSIDE"]))
        return self.finished()

    def finished(self):
        """Return the text of the program as it is now."""
        sums = [f"math.sin(0.7 * {s})" for s in self.names["s"]]
        sums += [f"np.sin({v} * np.arange(1, 5) * 0.3).sum()" for v in self.names["v"]]
        sums += [f"np.sin({m} * np.arange(16).reshape(4, 4) * 0.1).sum()" for m in self.names["m"]]
        program = ["def program(x):", *(f"    {line}" for line in self.lines), "    return " + " + ".join(sums)]
        whole = [*self.outside, *program]
        if self.outside and self.random.random() < 0.5:  # the program closes over the names in place of globals
            whole = ["def made():", *(f"    {line}" for line in [*whole, "return program"]), "program = made()"]
        return "\n".join(whole) + "\n"


def text_of(seed, size=12):
    """Return the text of the program with this number, always the same."""
    return _Writer(seed).text(size)


def program_of(text):
    """Return the function that a text defines; tracebacks show its lines."""
    file = f"<random program {abs(hash(text))}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = {**NAMES, **MODULES, "__name__": "random_program"}
    exec(compile(text, file, "exec"), names)
    return names["program"]


def _differences(fun, step):
    found = []
    for e in np.eye(len(POINT)):
        a, b, c, d, f, g = [fun(POINT + k * step * e) for k in (-3, -2, -1, 1, 2, 3)]
        found.append((-a + 9 * b - 45 * c + 45 * d - 9 * f + g) / (60 * step))
    return np.array(found)


def _near(a, b, tolerance):
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.max(np.abs(b))))


def judged(fun):
    """Return what is wrong with the derivatives of a program, in words; None if they are right or it has none.

    A program that raises an error without a transform, whose value is not finite, or that has a kink near the point is
    not judged.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # NumPy announces that some calls will go
        try:
            value, *slopes = float(fun(POINT.copy())), _differences(fun, 1e-4), _differences(fun, 3e-5)
        except (ArithmeticError, IndexError, ValueError, np.linalg.LinAlgError):
            return None
    if not np.isfinite(value) or not _near(*slopes, 1e-6):
        return None
    with warnings.catch_warnings(action="ignore"):  # a program may be run without a recorded one
        return _judged(fun, value, slopes[1])


def _judged(fun, value, expected):
    x = POINT.copy()
    found, slope = value_and_grad(fun)(x)
    pushed = jvp(grad(fun), (x,), (DIRECTION,))[1]
    recorded, near = jit(grad(fun), backend="numpy"), x + 1e-6
    checks = {
        "the argument": (x, POINT, 0.0),
        "the value": (found, value, 1e-13),
        "grad": (slope, expected, 1e-5),
        "jacfwd": (jacfwd(fun)(x), slope, 1e-9),
        "checkpoint": (grad(checkpoint(fun))(x), slope, 1e-9),
        "jvp of grad": (pushed, (grad(fun)(x + 1e-5 * DIRECTION) - grad(fun)(x - 1e-5 * DIRECTION)) / 2e-5, 1e-5),
        "vjp of grad": (vjp(grad(fun), x)[1](DIRECTION)[0], pushed, 1e-8),
        "a recorded program": ((recorded(near), recorded(x))[1], slope, 1e-9),
    }
    try:
        checks["vmap of grad"] = vmap(grad(fun))(np.stack([x, near])), [slope, grad(fun)(near)], 1e-8
    except ConcretizationError:  # a branch on what differs between examples
        pass
    wrong = [
        f"{name}: {got}, expected {want}" for name, (got, want, near) in checks.items() if not _near(got, want, near)
    ]
    return "; ".join(wrong) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="number of programs")
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    options = parser.parse_args()
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        text = text_of(seed)
        try:
            problem = judged(program_of(text))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            bad += 1
            print(f"program {seed}: {problem}\n{text}", flush=True)
    print(f"{options.count - bad} of {options.count} programs without a fault")


if __name__ == "__main__":
    main()
