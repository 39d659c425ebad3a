"""Templates of random programs: features of Python. ``random_programs`` says what the letters are.

Blocks of ``CONTROL`` and ``OUTSIDE`` are separated by blank lines. What stands above ``---`` in a block of ``OUTSIDE``
comes before the program, which closes over it; ``{n}`` begins the names in both.
"""

NUMBERS = """
[t := {s}, t * t][1]|sum((y := e * 0.5) + y * y for e in {v}) + 0.0|matched(("scale", {s}, {s}))
matched({{"kind": "shift", "by": {s}, "more": {s}}})|matched(Meter({s}))|matched(Pair({s}, {s}))
matched([{s}, {s}, {s}])|matched({s})|tallied({v})|sent({v})|delegated({v}, {s})|closed({v})|carried({s})
finished({s}, [])|chained({s})|grouped({s})|managed({v} * 1.0, {s})|stacked({s}, {v})|fibonacci({s}, 6)
bernstein({v}, {s} * 0.1)|keyword_only({s}, {s}, c={s}, d={s})|keyword_only(*{v}[:2], **dict(c={s}))|noted({s}, {s})
composed(math.sin, lambda t: t * {s}, math.exp)({s})|curried({s})({s})({s})|shortest({v}) * 0.1|edit({v}, {v} * 0.7)
by_sign({v})|bisected({s})|integrated(lambda t: math.sin(t * {s}), 0.0, 1.0)
runge_kutta(lambda t, y: -y * {s} * 0.3, {s})
runge_kutta(lambda t, y: np.array([y[1], -math.sin(y[0])]), np.array([{s}, {s}]))[0]|Meter({s}, 0.5).metres
(Meter({s}, 0.5) + Meter({s})).value|replace(Meter({s}), unit={s}).metres|max(Ranked({s}), Ranked({s}, 0.3)).load
sorted([Ranked({s}), Ranked({s}), Ranked({s})])[1].load|asdict(Ranked({s}))["table"]["seed"]
astuple(Meter({s}, {s}))[1]|Slotted({s}, scale={s}).push({s}).a|Slotted({s}).push({s}).push({s}).v[-1]
Pair.of({v}).norm|(Pair({s}, {s}) + Pair({s})).b|sum(Pair({s}))|Pair({s}, {s})._asdict()["b"]
max(Pair({s}, 0.1), Pair({s}, 0.2)).a|dict(zip(Pair._fields, Pair({s}, {s})))["b"]|Gain.HIGH.of({s})
Gain.pick({s}).value * {s}|Gain(0.3).value * {s}|sum(g.value * {s} for g in Gain)|Wave("cos")({s})|Wave.SIN({s})
sum(p.pull({s}) for p in Planet) * 0.1|{v}[Axis.Y] * Axis.Z|{m}[Axis.X, Axis.Z]|Form("bell").fun({s})
({s} if Use.A in Use.BOTH else 0.0) * Use.BOTH.value|{{Gain.LOW: {s}, Gain.HIGH: 0.1}}[Gain.LOW]
Thermometer({s}).warmed({s})|Spring({s}, {s}).energy()|Spring({s}, 0.3).k|Grid({v})[1:3][0]|Grid({v}).at_2
sum(Grid({v}))|Grid({v})({s} * 0.1)|np.sum(Grid({v}))|float(np.array(Grid({v})) @ {v})
(0.5 if {s} in Grid({v}) else -0.3) * {s}|next(reversed(Grid({v})))|np.mean([*Grid({v})])|max(Grid({v}))
abs({s} * Vector({s}, {s}) + Vector(0.3, {s}))|{s} / Vector({s}, {s})|{s} - Vector({s}, 1.0)|({s} + Vector({s}, {s})).y
(abs({s}) + 0.2) ** Vector({s}, 0.0)|sum(Vector({s}, {s}) * 0.5)|(Vector({s}, {s}) * Vector({s}, {s}))
operator.iadd(Vector({s}, {s}), {s}).y|({s} if Vector({s}, 0.1) else 0.3)|abs(-Vector({s}, 0.4))
(Vector({s}, {s}) == Vector({s}, 0.3)) + {s}|({s} * Dual({s}, 1.0) ** 3).b * 0.1|np.sin(Dual({s}, 1.0) * {s}).b
(Dual({s}, 1.0) - {s}).a|(1.5 + Dual({s}) * Dual({s}, 1.0)).b
functools.reduce(lambda t, c: t * Dual({s}, 1.0) + c, {v}).b * 0.3|max(Version({s}), Version({s}, 0.1)).v
float(Version({s}))|sorted([Version({s}), Version({s}), Version({s})])[1].v|math.sin(Version({s}))
min(Version({s}), Version({s})) .extra + {s}|Shape[{s}]|Square({s}).value()|Cube[{s}]|Registry.made["square"]({s}).s
Plugin.plugins["tanh"]({s}).run()|sum(p({s}).run() for p in Plugin.plugins.values())|Mixed({s}, {s}).value()
Tally.reset().add({s}).add({s}).total|Tally.reset().add({s}).items[-1]|Bell({s} ** 2 + 0.5).matrix({v}).sum() * 0.1
(Bell(1.3) + Cosine({s})).at({s})|Methods({s}).twice()|Methods({s}).take({s})|Methods({s}).take([{s}, {s}])
Methods({s}).take("abc")|Methods({s}).slow|Methods.clipped({s})|Node.build([*{v}]).total()
sum(Node.build({v}.tolist()))|Link.of({v}).folded({s} * 0.3)|Table(a={s}, b={s}).get("b", 0.0)
sum(Table(a={s}, b={s}).values())|math.hypot(*Table(a={s}).values(), **{{}})|sum(Squares({v})) * 0.3
Squares({v})[-1] if len(Squares({v})) else 0.0|Missing(base={s})["abc"]
(lambda d: d["xy"] + d["xy"] + len(d))(Missing(base={s}))|Store({s}).put({s}).last()|Store[float]({s}).last()
(Spring({s}, 0.3).energy() if isinstance(Spring({s}, 0.3), HasEnergy) else 0.0)
(lambda r: sum(r.values()) + len(r))(Recent(a={s}, b={s}, c={s}))|sum(Countdown({s}, 3))|[*Countdown({s}, 2)][-1]
(Matrix2([[{s}, {s}], [0.3, 1.0]]) @ Matrix2([[{s}, 0.1], [0.2, {s}]])).det()
Matrix2([{v}[:2], {v}[2:]]).transposed[0, 1]
Chain().then(math.sin).then(pow, 2).then(lambda t, k: t * k, k={s}).run({s})|Workspace(4).energy({v}, {s}) * 0.3
Workspace(4).noted({s})|Workspace(4).remembered({v})|heapq.nsmallest(2, {v})[1]
heapq.nlargest(3, {v}, key=lambda t: t * t)[0]|heapq.heappushpop([0.1, 0.5], {s})
list(heapq.merge(sorted({v}), [{s}]))[2]|heapq.heapreplace([{s}], {s})|heapq.nsmallest(1, [({s}, 1), ({s}, 0)])[0][0]
bisect.bisect([-0.5, 0.4, 1.1], {s}) * {s}|collections.Counter(a={s}, b=2.0)["a"]
collections.Counter(dict(a={s}, b={s})).total()|collections.Counter(dict(a={s}, b={s})).most_common(1)[0][1]
collections.ChainMap(dict(a={s}), dict(a=0.1, b={s}))["b"]
(lambda d: d.popitem(last=False)[1])(collections.OrderedDict(a={s}, b=0.3))|collections.defaultdict(lambda: {s})["k"]
collections.UserDict(a={s})["a"]|collections.UserList({v})[1]
sum(a * b for a, b in itertools.combinations({v}, 2)) * 0.2
sum(map(math.prod, itertools.product({v}, [{s}, 0.3]))) * 0.2
sum(p[0] * p[1] for p in itertools.permutations({v}, 2)) * 0.1
sum(math.fsum(g) * k for k, g in itertools.groupby({v}, key=lambda e: e > {c}))|sum(itertools.islice({v}, 1, None, 2))
sum(a * b for a, b in itertools.zip_longest({v}, {v}[:2], fillvalue={s})) * 0.3
sum(itertools.starmap(pow, [({s}, 2), (abs({s}) + 0.3, {s} * 0.3)]))
sum(b - a * 0.5 for a, b in itertools.pairwise({v}))|sum(itertools.chain.from_iterable([{v}, [{s}]]))
sum(itertools.takewhile(lambda e: e > -0.3, {v}), {s})|sum(itertools.dropwhile(lambda e: e > 0.2, {v}))
sum(itertools.filterfalse(lambda e: e > {c}, {v}), 0.1)|sum(itertools.compress({v}, [1, 0, 1, 1]))
sum(e * w for e, w in zip({v}, itertools.cycle([1.0, {s}]))) * 0.3|sum(itertools.repeat({s}, 3)) * 0.3
list(itertools.accumulate({v}, max, initial={s}))[-1]|sum(next(itertools.count({s}, 0.5)) for _ in range(2))
sum(map(operator.mul, *itertools.tee({v})))|float(f"{{{s}}}")|float(f"{{{s}:.17g}}")|len(f"{{{s}:8.2f}}") * {s}
len("%8.3f" % {s}) * 0.1 + {s}|len("{{:>10}}".format(1)) * 0.1 * {s}|{{f"w{{i}}": e for i, e in enumerate({v})}}["w2"]
float(repr(float(1.5))) * {s}|all(e > -9 for e in {v}) * {s}|any({v} > {c}) * {s}
operator.attrgetter("value")(Meter({s}))|operator.itemgetter(1, 2)({v})[1]|operator.methodcaller("dot", {v})({v}) * 0.3
sum(filter(lambda e: e > {c}, {v}), 0.0)|min({v}, default=0.0)|max([], default={s})|pow({s}, 3)
round({s} * 0.0 + 1.234, 1) * {s}|sum(divmod({s}, 0.831))|(-{s} // 1.0) * 0.1 + {s}|{s} % 1.173|abs({s}) ** 0.5
{s}.real + 0.0|complex({s}, {s}).conjugate().imag|{s}.conjugate() + 0|bool({s} > 0) * {s}|isinstance({s}, float) * {s}
isinstance({s}, (int, float, np.floating)) * {s}|type({s})({s}) * 1.0|{s}.is_integer() + {s}|hash("a") * 0.0 + {s}
statistics.median({v})|statistics.stdev({v}) * 0.5|statistics.linear_regression([1, 2, 3, 4], {v}).slope
statistics.correlation([1, 2, 3, 5], {v} + np.arange(4))|statistics.harmonic_mean(np.abs({v}) + 0.1)
math.dist({v}, {v} * 0.3)|math.sumprod({v}, {v}) if hasattr(math, "sumprod") else {s}|math.comb(4, 2) * {s}
math.remainder({s}, 1.37)|math.fmod({s}, 0.77)|math.cbrt({s} + 3.0)|math.expm1({s} * 0.3)|math.log2({s} ** 2 + 1)
math.nextafter({s}, 9.0)|math.frexp({s})[0]|math.trunc({s}) + {s}|math.lgamma({s} ** 2 + 0.5)|math.erfc({s})
math.radians({s}) + math.degrees({s}) * 0.01|math.isclose({s}, 0.3) + {s}|cmath.polar(complex({s}, {s}) + 2)[0]
cmath.phase(complex({s} ** 2 + 0.3, {s}))|cmath.rect(1.3, {s}).imag|cmath.sqrt(complex({s}, 0.3)).real
cmath.log(complex({s}, 1.1)).imag|(complex({s}, {s}) ** 2 / (1 + 2j)).real|next(iter({v}))
next((e for e in {v} if e > 9), {s})|[e for e in {v}][-1]|(*{v}, {s})[-2]|list({v})[1:][0]|tuple({v})[::-1][0]
sum(a if a > {s} else 0.3 * {s} for a in {v})|(lambda l: l.index(l[2]))({v}.tolist()) * {s}
[[a * b for a in {v}] for b in {v}][1][2]|{{**dict(a={s}), "b": {s}}}["a"]|dict.fromkeys("ab", {s})["b"]
(lambda *a, **k: a[-1] * k["s"])(*{v}, s={s})
(lambda f: f(f, {s}, 3))(lambda f, t, n: t if n == 0 else f(f, math.sin(t), n - 1))
vars(types.SimpleNamespace(a={s}))["a"]|getattr(types.SimpleNamespace(a={s}), "a")
types.MappingProxyType(dict(a={s}))["a"]|eval("math.sin(t) * u", dict(math=math, t={s}, u={s}))
copy.copy(Meter({s})).metres|copy.deepcopy(Grid({v}))[2]
dataclasses.replace(Meter({s}), unit=0.3).value if hasattr(copy, "replace") else {s}|functools.partial(pow, exp=2)({s})
functools.reduce(lambda t, e: t * 0.3 + e, {v}, {s})|functools.cmp_to_key(lambda a, b: a - b)({s}).obj
sorted({v}, key=functools.cmp_to_key(lambda a, b: 1 if a > b else -1))[2]
sorted(enumerate({v}), key=lambda p: -p[1])[0][1]|max(range(4), key=lambda i: {v}[i]) * 0.1 + {s}
sorted(dict(a={s}, b={s}).items(), key=operator.itemgetter(1))[0][1]|({s} < {s}) * {s} + {s}|(0.0 < {s} < 1.0) * {s}
(lambda: (yield {s}))().__next__() * 0.5|type("Made", (), dict(v={s}, get=lambda self: self.v * 2))().get()
type("Made", (Root,), {{}})({s}).value()
"""
VECTORS = """
np.array(Grid({v}))|np.array(Grid({v})[::-1])|np.array([*Squares({v})])
np.array(list(Link.of({v}).__dict__.values())[:1] * 4, dtype=float)|Workspace(4).filled({v})
np.array([g.of({s}) for g in (*Gain, *Gain)])|Bell(1.1).matrix({v})[1]|np.array([*Countdown({s}, 4)])
np.array(list(Table(a={s}, b={s}, c=0.1, d={s}).values()))|np.array(sorted({v}.tolist() + [{s}])[:4])
np.array([fibonacci({s}, n) for n in range(4)])|np.fromiter(map(Meter, {v}), dtype=object, count=4).shape[0] * {v}
np.array([m.metres for m in map(Meter, {v})])|np.asarray(collections.deque({v}, maxlen=4))
np.array(Pair({s}, {s}) + Pair(0.1, {s}) and [*Pair({s}, {s}), *Pair({s})])
np.array([a + b for a, b in itertools.product([{s}, 0.1], [{s}, 0.2])])
np.array([list(g)[0] for _, g in itertools.groupby({v}, key=id)])|np.array(list(zip({v}, {v})))[:, 1]
np.array([*{v}[:3], {s}])|np.array([e for row in [{v}[:2], {v}[2:]] for e in row])|np.array(heapq.nlargest(4, {v}))
np.array(Matrix2([{v}[:2], {v}[2:]]).transposed.rows).ravel()|np.array([Gain.pick(e).value for e in {v}]) * {v}
"""
CONTROL = """
{n} = 0.0
for {n}i, {n}j in itertools.product(range(2), repeat=2):
    match ({n}i, {n}j):
        case (0, 0):
            {n} += {s}
        case (0, _) if {s} > {c}:
            {n} -= {NUMBER}
        case (k, _):
            {n} += k * {NUMBER}

{n}g = averaging()
next({n}g)
for {n}i in {v}:
    {n} = {n}g.send({n}i)
    if ({n}k := {n} * {n}) > 0.8123:
        {a}[{k}] = {n}k

def {n}f(depth):
    nonlocal_total = 0.0
    def inner(t):
        nonlocal nonlocal_total
        nonlocal_total += t * {s}
        return nonlocal_total
    return inner(0.5) if depth == 0 else inner({n}f(depth - 1)) + inner(0.1)
{n} = {n}f(3)

class {n}C(Root):
    rate = {s}
    table = {v}
    def value(self):
        return super().value() * self.rate + self.table[1] + __class__.rate
{n} = {n}C({s}).value()

@dataclass
class {n}D:
    a: float = {s}
    v: list = field(default_factory=lambda: [{s}])
    def __post_init__(self):
        self.v.append(self.a)
{n} = sum({n}D().v) + {n}D({s}).a

{n} = None
for {n}i in {v}:
    try:
        if {n}i > 1.2117:
            raise CarriedError({n}i)
        {a}[{k}] += 0.1 * {n}i
    except CarriedError as error:
        {n} = error.value
        break
else:
    {n} = 0.3
{n} = {s} if {n} is None else {n}

{n}q = collections.deque([{s}, {s}])
{n}q.append({NUMBER}); {n}q.appendleft({s}); {n}q.rotate(1)
{n} = {n}q.popleft() * 0.5 + {n}q[-1]

{n}d = collections.defaultdict(float)
for {n}i, {n}e in enumerate({v}):
    {n}d[{n}i % 2] += {n}e
{n}d.setdefault(7, {s}); {n}d |= dict(b={s})
{n} = sum({n}d.values()) + {n}d.pop(0)

{n}l = [*{v}]
{n}l.insert(1, {s}); {n}l[3:] = [{s}, {s}]; {n}l.sort(); {n}l.reverse(); del {n}l[0]
{n}l += ({s},); {n}l.extend({v}[:1]); {n} = {n}l.pop(1) + {n}l[-1] * {n}l.count(0.3) + {n}l[0]

{n}h = []
for {n}i, {n}e in enumerate({v}):
    heapq.heappush({n}h, ({n}e, {n}i))
{n} = heapq.heappop({n}h)[0] * 0.3 + heapq.heappop({n}h)[0]

{n}l = [0.2, 0.9]
bisect.insort({n}l, {s}); bisect.insort_left({n}l, {s})
{n} = sum(e * i for i, e in enumerate({n}l))

{n}o = Grid({a})
{n}o[1] = {s}; {n}o[2] *= 0.5; {n}o[0] += {s}; del {n}o[3]
{n} = sum({n}o); {a}[:3] = {n}o

{n}o = Vector({s}, {s}); {n}p = {n}o
{n}o += {s}
{n} = {n}p.x * 0.3 + {n}p.y

{n}o = Thermometer({s}); {n}o.fahrenheit = {s}; {n}o.fahrenheit *= 1.1
{n} = {n}o.fahrenheit * 0.1
del {n}o.fahrenheit
{n} += {n}o.fahrenheit * 0.01

{n}t = ({s}, [{s}, {s}], dict(k={s}))
{n}a, ({n}b, *{n}c), {n}e = {n}t
{n} = {n}a + {n}b * {n}c[0] + {n}e["k"]

{n}f = [lambda t, i=i: t * i + {s} for i in range(3)]
{n} = sum(f({s}) for f in {n}f)

{n}w, {n}t = {s}, 0
while True:
    {n}w = 0.5 * {n}w + 0.1 * {s}
    {n}t += 1
    if {n}w ** 2 < 0.3117 or {n}t > 4:
        break
    {a} *= 0.9
else:
    {n}w = 0.0
{n} = {n}w

with contextlib.suppress(CarriedError, ZeroDivisionError):
    {a}[{k}] = {s}
    raise CarriedError({s})
{n} = {a}[{k}] * 0.5

with np.errstate(all="raise"):
    try:
        {n} = float(np.log(np.float64({s})))
    except FloatingPointError:
        {n} = {NUMBER}

{n} = {s}
assert {n} == {n} and {n} is not None, f"{{{n}}} is bad"
del {n}
{n} = {NUMBER}

{n}s = io.StringIO()
print({s}, f"{{{s}:.3f}}", file={n}s)
{n} = {s} * (len({n}s.getvalue()) > 3)

{n}c = Chain().then(math.tanh)
for {n}i in {v}:
    {n}c.then(lambda t, k: t * k + 0.1, {n}i)
{n} = {n}c.run({s})

{n}m = functools.cache(lambda n: {s} if n < 2 else 0.5 * {n}m(n - 1) + 0.4 * {n}m(n - 2))
{n} = {n}m(5)

{n}p = Slotted({s}, [{s}]); {n}q = copy.deepcopy({n}p); {n}r = replace({n}p, a={s})
{n}p.push({s}); {n}q.v[0] *= 2
{n} = {n}q.v[0] + {n}r.a + len({n}r.v) + {n}p.a

{n} = 0.0
for {n}i in (yielded for yielded in {v} if yielded > {c}):
    {n} += {n}i
    if {n} > 1.5119: continue
    {n} *= 0.9
"""
OUTSIDE = """
{n}o = Workspace(4)
---
{n} = {n}o.energy({v}, {s}) * 0.3

{n}o = Workspace(4, 0.2)
---
with {n}o as {n}w:
    {n} = {n}w.filled({v})[1] + {n}w.rate * {s}
{n} += {n}o.energy({v}, 0.0) * 0.1

{n}o = Workspace(2)
---
{n} = {n}o.noted({s}) + {n}o.remembered({v})

{n}o = Grid([0.3, 0.7, -0.2])
---
{n} = {n}o({s} * 0.3) + np.sum({n}o) * {s} + sum(e * {s} for e in {n}o) + {n}o.at_1 * {s}

{n}o = Vector(0.3, -0.4)
---
{n} = abs({s} * {n}o + {n}o) + {s} / {n}o + sum({n}o) * {s}

{n}o = Dual(0.7, 1.0)
---
{n} = ({s} * {n}o + {s}).b + np.sin({n}o * {s}).b

{n}o = Bell(0.8) + Cosine(1.2)
---
{n} = {n}o.matrix({v})[0, 2] + {n}o.at({s})

{n}o = Node.build([0.3, 0.1, 0.7])
---
{n} = {n}o.total() * {s} + sum(e * {s} for e in {n}o)

{n}o = Chain().then(math.sin).then(lambda t, k: t * k + 0.1, 0.7).then(np.tanh)
---
{n} = {n}o.run({s}) + {n}o.run({s})

{n}o = Table(a=0.3, b=0.9)
---
{n} = sum(e * {s} for e in {n}o.values()) + {n}o.get("c", {s})

{n}o = Missing(base=0.4)
---
{n} = {n}o["abc"] * {s} + {n}o.get("zz", {s})

{n}o = {{"f": math.sin, "g": lambda t: t * t, "w": np.arange(4.0)}}
---
{n} = {n}o["f"]({s}) * {n}o["g"]({s}) + {n}o["w"] @ {v}

{n}w = np.array([0.3, 0.2, 0.7, 0.1])
{n}b = np.zeros(4)
---
{n}b[:] = {v} * {n}w
{n}b[1:] += {n}b[:-1] * 0.5
{n} = {n}b.sum()

{n}l = [0.0] * 4
---
for {n}i, {n}e in enumerate({v}):
    {n}l[{n}i] = {n}e * {s}
{n} = sum({n}l) * 0.3

{n}k = functools.partial(keyword_only, 0.7, c=0.2)
---
{n} = {n}k({s}) + {n}k({s}, d={s})

{n}e = Meter(0.7, 2.0)
---
{n} = ({n}e + Meter({s})).metres * 0.3 + replace({n}e, value={s}).metres

{n}r = Ranked(0.4)
---
{n} = {n}r.load * {s} + max({n}r, Ranked({s})).load

{n}p = Spring(0.3, 0.5)
---
{n} = {n}p.energy() * {s} + Spring({n}p.k * {s}, {s}).energy()

{n}i = interpolate.CubicSpline([0, 1, 2, 3.0], [0.1, 0.7, -0.3, 0.9])
{n}j = interpolate.PchipInterpolator([0, 1, 2, 3.0], [0.1, 0.7, -0.3, 0.9])
---
{n} = float({n}i(1.5 + math.tanh({s}))) + {n}j(1.5 + np.tanh({v})).sum() * 0.3 + {n}i.derivative()({s}) * 0.1

{n}d = stats.norm(0.3, 1.2)
{n}e = stats.gamma(2.0, scale=0.7)
---
{n} = {n}d.logpdf({s}) * 0.1 + {n}d.cdf({v}).sum() + {n}e.cdf({s} ** 2) + {n}e.ppf(special.expit({s})) * 0.1

{n}p = np.polynomial.Polynomial([0.1, -0.3, 0.5])
{n}q = np.poly1d([0.5, 0.1])
---
{n} = {n}p({s}) * 0.3 + {n}p.deriv()({s}) + {n}q({s}) + ({n}p * {s})(0.7)

{n}t = sparse.csr_array(np.diag([1.0, 2.0, 3.0, 4.0]))
{n}f = scipy.linalg.lu_factor(np.eye(4) * 2 + 0.3)
---
{n} = ({n}t @ {v}).sum() * 0.1 + scipy.linalg.lu_solve({n}f, {v})[1] + ({n}t * {s}).toarray()[0, 0]

{n}v = np.vectorize(lambda a, b: a * b if a > b else a - b)
{n}u = np.frompyfunc(lambda a: math.sin(a) * 0.5, 1, 1)
---
{n} = {n}v({v}, 0.2137).sum() * 0.3 + {n}u({v}).sum()

{n}g = np.ma.masked_less([0.3, -9.0, 0.7, 0.2], 0)
---
{n} = ({n}g * {v}).sum() + ({n}g - {s}).mean()

{n}t = np.array([(1.0, 2.0), (0.3, 0.4)], dtype=[("x", float), ("y", float)])
{n}r = {n}t.view(np.recarray)
---
{n} = ({n}t["x"] * {s}).sum() + {n}r.y @ {v}[:2] + sum(row["x"] * {s} for row in {n}t)

{n}h = lambda fun: lambda *a: fun(*a) * 0.5
@{n}h
def {n}f(a, b=0.3):
    return math.sin(a) * b
---
{n} = {n}f({s}) + {n}f({s}, {s})

{n}c = 0.0
def {n}add(t):
    global {n}c
    {n}c = t * 0.5
    return {n}c + t
---
{n} = {n}add({s})

class {n}K:
    scale = 0.7
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    table = {{"sq": lambda t: t * t * 0.5}}
    def __init__(self):
        self.fun = self.table["sq"]
        self.bound = self.run
    def run(self, t):
        return math.sin(t) * self.scale
    def __call__(self, v):
        return float(v @ self.weights) + self.fun(v[0]) + self.bound(v[1])
{n}o = {n}K()
---
{n} = {n}o({v}) + {n}K.table["sq"]({s}) + {n}o.bound({s})
"""
