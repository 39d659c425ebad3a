"""Parts of random programs that change between calls, see ``changing_programs``.

A part has three lines: what it defines, an expression of a number ``x``, and lines that change it. In them ``{n}`` is a
name of its own, ``{c}`` a constant and ``{u}`` one of the ``FUNCTIONS``; ``~`` begins a line.
"""

FUNCTIONS = """
math.sin|math.cos|np.tanh|(lambda x: math.exp(-x) * {c})|(lambda x: float(np.array([x, 1.0]).dot([{c}, 1.0])))|np.cosh
(lambda x, k={c}: math.atan(x) * k)|functools.partial(pow, exp=2.0)|abs|(lambda x: x * rate)
"""
PARTS = """
{n} = {c}
math.sin(x) * {n}
{n} = {c}|{n} = np.array({c})|del {n}|{n} += 0.5|{n} = np.float64(1.5)
{n} = np.array([{c}, {c}])
float({n} @ np.array([x, x * x]))
{n}[:] = {c}|{n}[0] += 0.3|{n} = {n}[::-1]|{n} = np.array([{c}, 1.0])|{n} *= 1.1|np.copyto({n}, {c})|{n} = [{c}, 2.0]
{n} = {{"k": {c}, "f": {u}}}
{n}["f"](x) * {n}["k"]
{n}["k"] = {c}|{n}["f"] = {u}|{n} = dict({n}, k={c})|{n}.update(f={u}, k={c})|{n} = collections.ChainMap(dict(k={c}), {n})
{n} = [{u}, {u}]
sum(f(x) for f in {n})
{n}.append({u})|{n}.pop(0)|{n}[-1] = {u}|{n} = [{u}]|{n}.insert(0, {u})|{n}.reverse()|{n} = tuple({n})|{n} = [*{n}, {u}]
def {n}(x): return {u}(x) * {c}
{n}(x)
def {n}(x): return {u}(x) * {c}|{n} = {u}|del {n}|def {n}(x, k={c}): return math.sin(x) * k|{n} = twice({n})|{n} = np.vectorize({n})|{n} = functools.partial({n})|def {n}(*, x=0, **k): return k|def {n}(x): return {u}(x) + {c}
def {n}(x): return math.sin(x) * {n}.k if {n}.hook is None else {n}.hook(x)~{n}.k = {c}; {n}.hook = None
{n}(x)
{n}.k = {c}|{n}.hook = {u}|{n}.hook = None|{n}.__dict__.update(k={c})
from math import sin as {n}
{n}(x) * math.cos(x)
from math import cos as {n}|from numpy import tanh as {n}|{n} = {u}|import scipy.special; {n} = scipy.special.expit
{n} = np
{n}.sin(x) + {n}.array([x, x]).sum()
import math; {n} = types.SimpleNamespace(sin=math.cos, array=np.array)|{n} = np|{n} = types.SimpleNamespace(sin={u}, array=np.asarray)
{n} = "math.sin(x) * rate"; rate = {c}
eval({n})
{n} = "math.cos(x) * {c}"|rate = {c}|{n} = compile("{u}(x)", "text", "eval")
@functools.lru_cache~def {n}(): return types.SimpleNamespace(k={c}, f={u})~{n}()
{n}().f(x) * {n}().k
{n}().k = {c}|{n}().f = {u}|{n}.cache_clear(); {n}()|@functools.cache~def {n}(): return types.SimpleNamespace(k={c}, f={u})
@functools.cache~def {n}(n): return np.linspace(0.1, n, 3) * rate~rate = {c}
float({n}(2) @ np.array([x, 1.0, math.sin(x)]))
rate = {c}|{n}.cache_clear()|{n}(2)[0] = {c}|{n}(2)|rate = {c}; {n}.cache_clear()
@functools.singledispatch~def {n}(t, x): return math.sin(x) * {c}~{n}t = 1.0
{n}({n}t, x)
{n}.register(float, lambda t, x: {u}(x) * t)|{n}t = "a"|{n}t = {c}|{n}.register(str, lambda t, x: {u}(x))
def {n}made():~    k, f, o = {c}, {u}, None~    def inner(x): return f(x) * k if o is None else o.run(x)~    def change(**new):~        nonlocal k, f, o~        k, f, o = new.get("k", k), new.get("f", f), new.get("o", o)~    return inner, change~{n}, {n}set = {n}made()
{n}(x)
{n}set(k={c})|{n}set(f={u})|{n}, {n}set = {n}made()|{n}.__closure__[0].cell_contents = {u}|class {n}C:~    def run(self, x): return {u}(x)~{n}set(o={n}C())
def {n}made():~    class Held:~        k = {c}~        def run(self, x): return math.sin(x) * self.k~    return lambda x: Held().run(x), Held~{n}, {n}C = {n}made()
{n}(x)
{n}C.k = {c}|{n}C.run = lambda self, x: {u}(x) * self.k|{n}, _ = {n}made()|{n}, {n}C = {n}made()
class {n}C:~    k, hook = {c}, None~    def __init__(self, a={c}): self.a = a~    def run(self, x): return self.part(x) * self.k + self.a * x~    def part(self, x): return math.sin(x) if self.hook is None else self.hook(x)~    @property~    def size(self): return self.a * 0.5~    @staticmethod~    def plain(x): return math.tanh(x)~    @classmethod~    def of(cls, x): return cls.plain(x) * cls.k~{n} = {n}C()
{n}.run(x) + {n}C.of(x) + {n}.size * x
{n}C.k = {c}|del {n}C.k|del {n}.a|{n}C.run = lambda self, x: {u}(x) * self.k|{n}C.part = lambda self, x: {u}(x)|{n}C.hook = lambda self, x: {u}(x)|{n}C.hook = None|{n}.hook = {u}|vars({n}).pop("hook", None)|{n}.a = {c}|{n} = {n}C({c})|{n}C.size = property(lambda self: {c})|{n}C.size = {c}|{n}C.plain = staticmethod({u})|{n}C.of = classmethod(lambda cls, x: {u}(x) * cls.k)|{n}.run = {u}|{n}.run = types.MethodType(lambda self, x: {u}(x) * self.a, {n})|{n} = copy.deepcopy({n})|{n}C.extra = {u}|{n}.a = np.array({c})|{n}C.__getattr__ = lambda self, name: 0.5|{n}C.a = {c}
class {n}A:~    def run(self, x): return math.sin(x) * {c}~class {n}B({n}A): pass~class {n}D({n}B):~    def run(self, x): return super().run(x) + 0.1 * x~{n}, {n}b = {n}D(), {n}D().run
{n}.run(x) + {n}b(x)
{n}A.run = lambda self, x: {u}(x)|{n}B.run = lambda self, x: {u}(x)|del {n}B.run|{n}.__class__ = {n}B|{n}.__class__ = {n}D|{n}D.run = lambda self, x: {u}(x)|{n}b = {n}.run|{n} = {n}A()|class {n}D({n}B):~    def run(self, x): return {u}(x)
class {n}S:~    __slots__ = ("a", "f")~    def __init__(self): self.a, self.f = {c}, {u}~    def __call__(self, x): return self.f(x) * self.a~{n} = {n}S()
{n}(x)
{n}.a = {c}|{n}.f = {u}|{n}S.__call__ = lambda self, x: {u}(x) * self.a|{n} = {n}S()
@dataclasses.dataclass(frozen=True)~class {n}C:~    a: float~    f: object = math.sin~    def run(self, x): return self.f(x) * self.a~{n} = {n}C({c})
{n}.run(x)
{n} = dataclasses.replace({n}, a={c})|{n} = dataclasses.replace({n}, f={u})|object.__setattr__({n}, "a", {c})|{n}C.run = lambda self, x: {u}(x) * self.a
class {n}T(typing.NamedTuple):~    a: float~    f: object = math.sin~    def run(self, x): return self.f(x) * self.a~{n} = {n}T({c})
{n}.run(x)
{n} = {n}._replace(a={c})|{n} = {n}T({c}, {u})|{n}T.run = lambda self, x: {u}(x) * self.a
class {n}E(enum.Enum):~    A = {c}~    B = {c}1~    def run(self, x): return math.sin(x) * self.value * getattr(self, "k", 1.0)~{n} = {n}E.A
{n}.run(x)
{n} = {n}E.B|{n}.k = {c}|{n}E.run = lambda self, x: {u}(x) * self.value|{n}E.B.k = {c}|class {n}E(enum.Enum):~    B = {c}~    def run(self, x): return {u}(x)~{n} = {n}E.B
class {n}L(list):~    k = {c}~    def run(self, x): return sum(math.sin(x) * e for e in self) * self.k~{n} = {n}L([{c}, 1.0])
{n}.run(x)
{n}.append({c})|{n}.k = {c}|{n}L.k = {c}|{n}L.run = lambda self, x: {u}(x) * len(self)|{n} = {n}L([{c}])|{n}[0] = {c}
class {n}L(dict):~    def run(self, x): return math.sin(x) * self["k"]~{n} = {n}L(k={c})
{n}.run(x)
{n}["k"] = {c}|{n}L.run = lambda self, x: {u}(x) * self["k"]|{n} = {n}L(k={c})|{n}L.__missing__ = lambda self, key: 1.5; {n}.pop("k", None)
class {n}Q(np.ndarray):~    k = {c}~    def run(self, x): return float(math.sin(x) * (self.k * self).dot([1.0, 2.0]))~{n} = np.array([{c}, 1.0]).view({n}Q)
{n}.run(x)
{n}[0] = {c}|{n}Q.k = {c}|{n}Q.run = lambda self, x: {u}(x) * self.k|{n} = {n} * 1.5|{n}.k = {c}
class {n}M(type):~    def make(cls, x): return math.sin(x) * cls.k~class {n}C(metaclass={n}M):~    k = {c}~    def run(self, x): return type(self).make(x)~{n} = {n}C()
{n}.run(x) + {n}C.make(x)
{n}M.make = lambda cls, x: {u}(x) * cls.k|{n}C.k = {c}|{n}M.run2 = {u}|{n}C.run = lambda self, x: {u}(x)
class {n}C:~    def __init__(self): self.a = {c}~    @functools.cached_property~    def rate(self): return self.a * 2.0~    def _part(self, k, x): return math.sin(x) * k~    part = functools.partialmethod(_part, {c})~    @functools.singledispatchmethod~    def by(self, t, x): return math.cos(x)~{n} = {n}C()
{n}.rate * x + {n}.part(x) + {n}.by(1.0, x)
{n}.rate|{n}.a = {c}|vars({n}).pop("rate", None)|{n}.rate = {c}|{n}C.part = functools.partialmethod({n}C._part, {c})|vars({n}C)["by"].register(float, lambda self, t, x: {u}(x))|{n} = {n}C()|{n}C._part = lambda self, k, x: {u}(x) * k
class {n}G:~    def __init__(self, k): self.k = k~    def __get__(self, obj, cls=None): return lambda x: math.sin(x) * self.k~class {n}C: d = {n}G({c})~{n} = {n}C()
{n}.d(x)
vars({n}C)["d"].k = {c}|{n}C.d = {n}G({c})|{n}G.__get__ = lambda self, obj, cls=None: lambda x: {u}(x) * self.k|{n}.d = {u}|vars({n}).clear()
class {n}C:~    n, last = 1.0, {c}~    def run(self, x):~        kind = type(self)~        kind.n = kind.n * 1.0~        self.last = math.sin(x) * kind.last~        return self.last * kind.n~{n} = {n}C()
{n}C().run(x)
{n}C.n = {c}|{n}C.last = {c}|{n}C.run = lambda self, x: {u}(x) * self.n
{n}v = contextvars.ContextVar("v", default={c})~class {n}C:~    k = {c}~    def run(self, x): return math.sin(x) * self.k * {n}v.get()~{n}o = {n}C(); {n}r = weakref.ref({n}o); {n}l = threading.local(); {n}l.o = {n}o
{n}r().run(x) + {n}l.o.run(x)
{n}v.set({c})|{n}o.k = {c}|{n}o = {n}C(); {n}r = weakref.ref({n}o)|{n}l.o = {n}C()|{n}C.run = lambda self, x: {u}(x) * self.k
{n} = functools.partial(lambda x, k: math.sin(x) * k, k={c})
{n}(x)
{n}.keywords["k"] = {c}|{n} = functools.partial({n}.func, k={c})|{n} = functools.partial(lambda x, k: {u}(x) * k, k={c})
{n} = types.ModuleType("{n}"); {n}.k = {c}; exec("import math\\ndef run(x): return math.sin(x) * k", vars({n}))
{n}.run(x)
{n}.k = {c}|exec("def run(x): return math.cos(x) + k", vars({n}))|{n}.run = {u}|{n} = types.SimpleNamespace(k={c}, run={u})
{n} = collections.UserDict(f={u}); {n}d = collections.defaultdict(lambda: {u}, a={u}); {n}q = collections.deque([{u}], maxlen=3)
{n}["f"](x) + {n}d["a"](x) + {n}q[-1](x)
{n}["f"] = {u}|{n}d["a"] = {u}|{n}q.append({u})|{n}q.rotate()|{n}q.appendleft({u})|{n}.data = dict(f={u})
{n} = random.Random(3); {n}s = {n}.getstate(); {n}g = 5
({n}.setstate({n}s) or {n}.random()) * math.sin(x) + np.random.default_rng({n}g).normal() * x
{n}.seed(4); {n}s = {n}.getstate()|{n}g = 7|{n}.random()
{n} = True; {n}w = np.ones(2)
(float(np.multiply({n}w, x, out=np.zeros(2)).sum()) if {n} else math.sin(x) * {n}w[0])
{n} = not {n}|{n}w[0] = {c}|{n}w = {n}w * {c}|{n} = 0
{n} = scipy.interpolate.CubicSpline([0.0, 1, 2, 4], [{c}, 1.0, {c}, 2.0]); {n}p = np.poly1d([{c}, 1.0])
float({n}(x)) + {n}p(x)
{n} = scipy.interpolate.CubicSpline([0.0, 1, 2, 4], [{c}, 1.0, {c}, 2.0])|{n}.c[-1, 0] += 0.5; {n}.c[-1, 1] += 0.5|{n}p[0] = {c}|{n}p = np.poly1d([{c}, 1.0, 2.0])
def {n}(values): return sum(values) * {c} + max(values)
{n}([x, math.sin(x)]) + abs(x)
max = lambda values: values[0] * {c}|del max|abs = {u}|del abs|sum = math.prod|del sum
class {n}I:~    def __init__(self, k): self.k = k~    def __iter__(self):~        for i in range(3): yield self.k * i~    def __contains__(self, e): return e > self.k~    def __len__(self): return 3~    def __add__(self, x): return math.sin(x) * self.k~    def __matmul__(self, x): return math.cos(x) * self.k~{n} = {n}I({c})
sum(math.sin(x * e) for e in {n}) + ({n} + x) + ({n} @ x) * len({n})
{n}.k = {c}|{n}I.__iter__ = lambda self: iter([{c}, 0.5])|{n}I.__add__ = lambda self, x: {u}(x)|{n}I.__matmul__ = lambda self, x: {u}(x)|{n}I.__len__ = lambda self: 2|{n} = {n}I({c})
class {n}C:~    ops = {{"a": {u}, "b": {u}}}~    w = np.array([{c}, 2.0])~    def run(self, x): return sum(f(x) for f in self.ops.values()) + float(self.w.dot([x, 1.0]))~{n} = {n}C()
{n}.run(x)
{n}C.ops["a"] = {u}|{n}C.ops = {{"c": {u}}}|{n}C.ops["d"] = {u}|{n}C.w[0] = {c}|{n}C.w = np.array([{c}, 1.0])|{n}.w = np.array([{c}, 0.5])|{n}C.ops.pop("a", None)|{n}.ops = [{u}]; {n}.ops = dict(enumerate({n}.ops))
class {n}B(abc.ABC):~    @abc.abstractmethod~    def run(self, x): ...~class {n}C({n}B):~    def run(self, x): return {u}(x)~class {n}D:~    def run(self, x): return math.cos(x)~{n} = {n}D()
({n}.run(x) if isinstance({n}, {n}B) else math.sin(x)) * (2 if issubclass({n}D, {n}B) else 1)
{n}B.register({n}D)|{n} = {n}C()|{n} = {n}D()|{n}C.run = lambda self, x: {u}(x)|{n}D.run = lambda self, x: {u}(x)|{n}B.__subclasshook__ = classmethod(lambda cls, other: True)
{n} = types.ModuleType("{n}"); {n}.inner = types.ModuleType("inner"); {n}.inner.k = {c}; {n}.inner.f = {u}~{n}.__getattr__ = lambda name: {c}
{n}.inner.f(x) * {n}.inner.k + {n}.anything * x
{n}.inner.k = {c}|{n}.inner.f = {u}|{n}.anything = {c}|{n}.__getattr__ = lambda name: {c}|{n}.inner = types.SimpleNamespace(k={c}, f={u})
class {n}P:~    found = []~    def __init_subclass__(cls): {n}P.found.append(cls)~class {n}Q({n}P):~    def run(self, x): return {u}(x)
sum(cls().run(x) for cls in {n}P.found)
class {n}R({n}P):~    def run(self, x): return {u}(x)|{n}P.found.pop()|{n}Q.run = lambda self, x: {u}(x)|{n}P.found = [{n}Q]
{n} = np.array([{c}, {c}, {c}]); {n}v = {n}[1:]; {n}i = np.array([0, 1]); {n}m = {n} > 1.0
float((np.sin(x) * {n}v[{n}i]).sum()) + float(np.where({n}m, x, x * x).sum())
{n}[:] = {c}|{n}[2] = {c}|{n}i[0] = 1|{n}i = [0]|{n}m = np.logical_not({n}m)|{n}m[0] = not {n}m[0]|{n}v = {n}[:2]|{n} = {n} * 2|{n}i = slice(1, 2)
{n}w = np.ones(2)~def {n}(x):~    w = {n}w.copy()~    y = x * w~    w *= {c}~    b = np.zeros(2)~    b[0], b[1] = x, w[1]~    return float((y * b).sum())
{n}(x)
{n}w[0] = {c}|{n}w = np.array([{c}, 2.0])|{n}w *= 1.2|def {n}(x): return {u}(x) * {n}w[0]
class {n}X:~    def __init__(self): self.k = {c}~    def __enter__(self): return self.k~    def __exit__(self, *args): return True~{n} = {n}X()~def {n}f(x):~    y = x~    with {n} as k:~        y = math.sin(x) * k~        math.log(-1.0)~    return y
{n}f(x)
{n}.k = {c}|{n}X.__enter__ = lambda self: {c}|{n}X.__enter__ = lambda self: 2 * self.k|{n} = {n}X()
def {n}(f):~    @functools.wraps(f)~    def call(x): return f(x) * {n}.k~    return call~{n}.k = {c}~@{n}~def {n}f(x): return {u}(x)
{n}f(x)
{n}.k = {c}|@{n}~def {n}f(x): return {u}(x)|{n}f = {n}f.__wrapped__|{n}f = {n}(twice({n}f))|{n}f.__wrapped__ = {u}
def {n}(n):~    for i in range(n): yield {u}, {c}
sum(f(x) * k for f, k in {n}(2))
def {n}(n): yield {u}, {c}|{n} = lambda n: [({u}, {c})] * n|{n} = lambda n: iter([({u}, {c})])
def {n}(x, depth=3): return x if depth == 0 else math.sin({n}(x, depth - 1)) * {c}
{n}(x)
def {n}(x, depth=2): return x if depth == 0 else math.cos({n}(x, depth - 1)) * {c}|{n}2 = {n}; {n} = lambda x, depth=2: x * {c}
{n}t = typing.TypeVar("{n}t")~class {n}C(typing.Generic[{n}t]):~    def __init__(self, v): self._v = v~    @property~    def v(self): return self._v * 2~    @v.setter~    def v(self, v): self._v = v~    def run(self, x): return math.sin(x) * self.v~{n} = {n}C({c})
{n}.run(x)
{n}.v = {c}|{n}._v = {c}|{n}C.v = property(lambda self: {c})|{n}C.v = {n}C.v.setter(lambda self, v: setattr(self, "_v", v * 2))|{n} = {n}C[float]({c})|{n}C.run = lambda self, x: {u}(x) * self.v
def {n}(t): return math.sin(t) * {c}~{n}y = {c}
scipy.integrate.quad(lambda t: {n}(t * x), 0.0, {n}y)[0] + scipy.optimize.brentq(lambda t: t ** 3 + t - {n}y * x, -9.0, 9.0)
def {n}(t): return math.cos(t) * {c}|{n}y = {c}|{n} = lambda t: t * {c}|{n} = np.tanh
{n} = scipy.sparse.csr_array(np.diag([{c}, 2.0])); {n}d = scipy.stats.norm({c}, 1.5)
float(({n} @ np.array([x, math.sin(x)])).sum()) + {n}d.logpdf(x)
{n}.data[0] = {c}|{n} = {n} * 2|{n} = scipy.sparse.csr_array(np.diag([{c}, 2.0]))|{n}d = scipy.stats.norm({c}, 1.1)|{n}d = scipy.stats.gamma(2.0, -3.0, {c})
{n} = np.ma.masked_greater([{c}, 2.0, 3.0], 2.5); {n}s = np.array([({c}, 1)], dtype=[("a", float), ("b", int)])
float((math.sin(x) * {n}).sum()) + {n}s["a"][0] * x
{n}[0] = {c}|{n}[1] = np.ma.masked|{n} = np.ma.array([{c}, 1.0])|{n}.mask = False|{n}s["a"] = {c}|{n}s = np.array([({c}, 1)], dtype={n}s.dtype)
{n} = np.frompyfunc(lambda t: t * rate, 1, 1); {n}v = np.vectorize({u}); rate = {c}
float({n}(x)) + float({n}v(x))
rate = {c}|{n} = np.frompyfunc({u}, 1, 1)|{n}v = np.vectorize({u})|{n}v.pyfunc = {u}
class {n}C:~    def __init__(self, owner=None): self.owner, self.k = owner, {c}~    def top(self): return self if self.owner is None else self.owner.top()~    def run(self, x): return math.sin(x) * self.top().k + self.k~{n}p = {n}C(); {n} = {n}C({n}C({n}p)); {n}p.child = {n}
{n}.run(x)
{n}p.k = {c}|{n}.owner = None|{n}.owner = {n}p|{n}.owner.owner = {n}C()|{n}C.top = lambda self: self|{n} = copy.deepcopy({n})|{n} = copy.copy({n}); {n}.k = {c}|{n}.__dict__.update(k={c})|{n} = pickle.loads(pickle.dumps([1.0]))[0]; {n} = {n}C()
{n} = {c}~def {n}set(v):~    global {n}~    {n} = v~def {n}f(x):~    {n}set({n} * 1.0)~    return math.sin(x) * {n}
{n}f(x)
{n}set({c})|{n} = {c}|{n}set(np.float64({c}))
{n}pool = [{c}, {c}]~def {n}(x):~    with concurrent.futures.ThreadPoolExecutor(2) as pool: return sum(pool.map(lambda k: {n}g(x) * k, {n}pool))~def {n}g(x): return math.sin(x)
{n}(x)
{n}pool[0] = {c}|{n}pool.append({c})|{n}g = {u}|def {n}g(x): return {u}(x)
{n} = "a"~def {n}f(x):~    match {n}:~        case "a": return math.sin(x)~        case ("b", k): return math.cos(x) * k~        case {{"c": k}}: return x * k~        case _: return {u}(x)
{n}f(x)
{n} = "a"|{n} = ("b", {c})|{n} = {{"c": {c}}}|{n} = None
{n} = operator.attrgetter("k"); {n}o = types.SimpleNamespace(k={c}, m={u}); {n}m = operator.methodcaller("m", {c})
{n}({n}o) * math.sin(x) + {n}m({n}o) * x + operator.itemgetter("k")(vars({n}o)) * x
{n}o.k = {c}|{n}o.m = {u}|{n} = operator.attrgetter("real.k") if False else (lambda o: o.k * 2)|{n}o = types.SimpleNamespace(k={c}, m={u})
"""
