"""Programs that use Python's features: objects made elsewhere, closures, decorators, caches, evaluated text."""

import abc
import bisect
import cmath
import collections
import contextlib
import copy
import dataclasses
import functools
import importlib
import itertools
import math
import operator
import pickle
import statistics
import sys
from math import exp, sqrt
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numpy import array, dot, zeros

MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
WEIGHTS = np.array([0.2, 0.3, 0.5])
START = np.zeros(3)


class Model:
    """An object made when the module is imported."""

    scale = 2.0

    def __init__(self, data, power=2):
        self.data = data
        self.power = power
        self.calls = 0
        self.kernel = lambda a, b: math.exp(-((a - b) ** 2))

    def energy(self, x):
        self.calls += 1
        out = np.zeros(len(self.data))
        for i, d in enumerate(self.data):
            out[i] = self.kernel(x[0], d) * x[1] ** self.power
        return out.sum() * self.scale

    @property
    def total(self):
        return self.data.sum()

    @staticmethod
    def squared(v):
        return np.array([v, v]).prod()

    @classmethod
    def default(cls):
        return cls(np.array([0.5, 1.5]))

    def __call__(self, x):
        return self.energy(x) + self.squared(x[0]) * self.total

    def __getitem__(self, i):
        return self.data[i]

    def __len__(self):
        return len(self.data)


MODEL = Model(np.array([0.1, 0.7, 1.3]))


def outside_object(x):
    return MODEL.energy(x) + MODEL.total * x[0]


def called_object(x):
    return MODEL(x)


def sequence_object(x):
    return sum(math.sin(x[0] * MODEL[i]) for i in range(len(MODEL))) + x[1]


def object_made_inside(x):
    model = Model.default()
    return model.energy(x) + Model(np.array([1.0]), power=3).energy(x)


class Layer:
    def __init__(self, w, activation=np.tanh):
        self.w = w
        self.activation = activation

    def forward(self, x):
        return self.activation(self.w.dot(x))


class Network:
    def __init__(self):
        self.layers = [Layer(MATRIX), Layer(MATRIX.T, lambda v: np.array([math.tanh(c) for c in v]))]
        self.options = {"head": np.sum}

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return self.options["head"](x)


NETWORK = Network()


def objects_in_lists(x):
    return NETWORK.forward(x)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def value(self, x):
        return np.array([self.a * x[0], self.b * x[1]]).sum()


SLOTTED = Slotted(2.0, 3.0)


def slots(x):
    return SLOTTED.value(x)


@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float = 0.5
    table: np.ndarray = dataclasses.field(default_factory=lambda: np.array([1.0, 2.0]))

    def apply(self, x):
        return self.table.dot(x) * self.rate


SETTING = Setting(rate=1.5)


def frozen_dataclass(x):
    return SETTING.apply(x) + dataclasses.replace(SETTING, rate=x[0]).apply(x)


class Shape(abc.ABC):
    def __init__(self, name):
        self.name = name

    @abc.abstractmethod
    def area(self, x): ...

    def cost(self, x):
        return math.sqrt(self.area(x))


class Rectangle(Shape):
    def __init__(self):
        super().__init__("rectangle")

    def area(self, x):
        return np.array(x).prod()

    def cost(self, x):
        return super().cost(x) + 1.0


SHAPES = {"r": Rectangle()}


def inheritance(x):
    return SHAPES["r"].cost(x)


class Stateful:
    def __init__(self):
        self.history = []
        self.state = np.zeros(2)

    def step(self, x):
        self.state[:] = self.state * 0.5 + x
        self.history.append(self.state.copy())
        return self


def stateful_object(x):
    filter_ = Stateful()
    for _ in range(3):
        filter_.step(x)
    return np.array(filter_.history).sum()


STATEFUL = SimpleNamespace(gain=1.5, f=lambda v: np.array([v, 2 * v]).sum())


def namespace_object(x):
    return STATEFUL.f(x[0]) * STATEFUL.gain + x[1]


def timed(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    return wrapper


def scaled(by):
    def decorate(f):
        return lambda x: by * f(x)

    return decorate


@timed
@scaled(3.0)
def decorated(x):
    return array([x[0], x[1] ** 2]).sum()


def make_closure(power):
    table = np.array([1.0, power])

    def inner(x):
        total = zeros(2)
        total[0] = x[0] ** power
        total[1] = dot(table, x)
        return total.sum()

    return inner


closure = make_closure(3)
closure.__name__ = "closure"


@functools.cache
def spline_basis(i, k, t):
    if k == 0:
        return 1.0 if i <= t < i + 1 else 0.0
    left = (t - i) / k * spline_basis(i, k - 1, t)
    return left + (i + k + 1 - t) / k * spline_basis(i + 1, k - 1, t)


def cached_recursion(x):
    return sum(c * spline_basis(i, 3, x[0]) for i, c in enumerate([1.0, 2.0, 0.5])) + x[1]


@functools.cache
def coefficients(n):
    return np.array([1.0 / math.factorial(k) for k in range(n)])


def cached_constants(x):
    return coefficients(5).dot(np.array([x[0] ** k for k in range(5)])) + x[1]


def power_sum(x, n, bias=0.0):
    return np.array([v**n for v in x]).sum() + bias


partial = functools.partial(power_sum, n=3, bias=1.0)


def partials(x):
    return partial(x) + functools.partial(power_sum, n=2)(x)


KERNELS = {"rbf": lambda r: math.exp(-r * r), "cauchy": lambda r: 1 / (1 + math.pow(r, 2))}
STEPS = [np.sin, lambda v: np.array([v, 1.0]).sum(), math.exp]


def functions_in_containers(x):
    value = sum(k(x[0]) for k in KERNELS.values())
    for step in STEPS:
        value = step(value)
    return value * x[1]


def default_function(x, f=math.cosh, *, g=lambda v: np.asarray([v])[0]):
    return f(x[0]) * g(x[1])


def generator(x):
    def terms():
        for i in range(1, 4):
            yield math.pow(x[0], i) / i

    total = 0.0
    for t in terms():
        total += t
    return total + sum(float(v) for v in x)


def comprehensions(x):
    table = {f"{i}{j}": math.sin(a) * b for i, a in enumerate(x) for j, b in enumerate(x)}
    return np.array([[table[f"{i}{j}"] for j in range(2)] for i in range(2)]).trace() + max(table.values())


def evaluated_text(x):
    formula = "np.array([x[0], x[1] ** 2]).sum() + math.exp(x[1]) + float(x[0])"
    return eval(formula)


def evaluated_names(x):
    return eval("a * sin(b)", {"sin": math.sin, "__builtins__": {}}, {"a": x[0], "b": x[1]})


def executed_text(x):
    names = {}
    exec("import numpy as np\ndef f(a, b):\n    out = np.zeros(2)\n    out[0] = a * b\n    return out.sum()\n", names)
    return names["f"](x[0], x[1])


def as_numbers(x):
    a, b = float(x[0]), x[1].item()
    values = list(map(float, x)) + x.tolist()
    return math.sqrt(a) * b + sum(values) + float(np.float64(a)) + complex(a, b).real


def used_as_integers(x):
    n = int(x[0])
    table = np.array([1.0, 2.0, 3.0, 4.0])
    return table[n] * x[1] + math.floor(x[1]) * x[0] + round(x[0]) * x[1]


def scalar_types(x):
    kind = x.dtype.type
    values = [np.float64(x[0]), np.float64(2.0) * x[1]]
    return sum(values) * kind(1.5)


def type_tests(x):
    value = np.array([x[0], 1.0])[0]
    if type(x) is not np.ndarray or type(value) is not np.float64:
        return 0.0
    return float(value) ** 2 if isinstance(float(value), float) else 1.0


def mathematics(x):
    a, b = x
    first = math.sin(a) + math.atan2(a, b) + math.hypot(a, b) + math.log(b, 3) + math.log1p(a) + math.lgamma(b)
    second = math.degrees(a) * 0.01 + math.copysign(1.0, a) * b + math.fmod(b, 0.4) + math.dist((a, b), (0.0, 1.0))
    return first + second + math.erf(a) + math.expm1(b) + math.prod([a, b, 2.0]) + math.fsum((a, b)) + math.modf(b)[0]


def complex_mathematics(x):
    z = complex(x[0], x[1])
    return abs(cmath.exp(z)) + cmath.phase(z) + cmath.sqrt(z).real + cmath.polar(z)[0]


def descriptive_statistics(x):
    values = [x[0], x[1], 2 * x[0], 0.3]
    return (
        statistics.mean(values)
        + statistics.stdev(values)
        + statistics.median(values)
        + statistics.pvariance(values)
        + statistics.geometric_mean(values)
        + statistics.NormalDist(0.5, 2.0).pdf(x[0])
    )


def normal_distributions(x):
    fitted = statistics.NormalDist.from_samples([x[0], x[1], 2.5])
    other = 2 * statistics.NormalDist(x[0], x[1]) + fitted
    return fitted.cdf(0.3) * other.inv_cdf(0.2) + sum(other.quantiles(3)) * fitted.stdev + other.overlap(fitted)


def moving_averages(x):
    window, total = collections.deque(maxlen=3), 0.0
    for i in range(5):
        window.append(math.sin(x[0] * i) + x[1])
        total += np.mean(window) ** 2 + statistics.fmean(window) * math.fsum(window)
    found = {"first": x[0], "second": x[0] * x[1]}
    return total + statistics.mean(found.values()) + math.prod(found.values())


class Point(NamedTuple):
    x: float
    y: float


def points(x):
    a, b = Point(*x), Point(x=x[1] ** 2, y=x[0])
    triangle = np.array([a, b, Point(1.0, 2.0)])
    away = np.ones(2) * a - np.cos(b)
    return np.linalg.det(triangle[:2]) + np.asarray(a) @ np.asarray(b) + math.dist(a, b) + np.max(a) + away.prod()


def reductions_of_functions(x):
    product = functools.reduce(operator.mul, [math.cos(v) for v in x])
    running = list(itertools.accumulate([math.exp(v) for v in x]))
    return product + running[-1] + sum(map(operator.mul, x, x))


def sorting(x):
    values = sorted([math.sin(x[0]), math.cos(x[1]), 0.1])
    table = [0.0, 0.5, 1.0]
    place = bisect.bisect(table, x[0])
    return values[0] * 2 + values[-1] + (x[0] - table[place - 1]) * x[1]


class Params(NamedTuple):
    mu: float
    sigma: float


def named_tuples(x):
    p = Params(*x)
    Point = collections.namedtuple("Point", "x y")
    q = Point(math.sin(p.mu), p._replace(mu=2.0).sigma)
    return q.x * q.y


def defaults_of_dictionaries(x):
    sums = collections.defaultdict(float)
    for i, v in enumerate(x):
        sums[i % 2] += math.exp(v)
    return sums[0] * sums[1]


def written_constants(x):
    out = START
    out = out + 0.0
    out[0] = x[0]
    second = WEIGHTS.copy()
    second[1:] = x
    third = MATRIX * 1.0
    third[0, 0] += x[1]
    return out.sum() + second.prod() + third.dot(x).sum()


def methods_of_constants(x):
    return MATRIX.dot(x).sum() + MATRIX.T.dot(x).max() + WEIGHTS[:2].dot(x) + WEIGHTS.astype(float).dot(np.ones(3))


def object_arrays(x):
    labels = np.append(np.array([]), np.full(1, None))
    names = np.array(["a", "b"], dtype=object)
    return x[0] * len(labels) + x[1] * len(names)


def copies(x):
    state = {"x": x, "list": [x[0], x[1]]}
    other = copy.deepcopy(state)
    other["list"].append(math.exp(x[0]))
    return sum(other["list"]) + state["x"].sum() + len(state["list"])


@contextlib.contextmanager
def doubled(value):
    yield np.array([value, value]).sum()


def context_managers(x):
    with doubled(x[0]) as value, np.errstate(all="ignore"):
        return value * x[1]


def exceptions(x):
    try:
        if x[0] > 100:
            raise ValueError("too large")
        value = math.sqrt(x[0])
    except ValueError:
        value = 0.0
    finally:
        scale = math.exp(x[1])
    return value * scale


def nonlocal_variables(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += math.sin(v)

    for v in x:
        add(v)
    return total


def class_inside(x):
    class Spring:
        def __init__(self, k):
            self.k = k

        def __mul__(self, other):
            return np.array([self.k * other, 1.0]).sum()

    return Spring(x[0]) * x[1]


class Quaternion:
    def __init__(self, *parts):
        self.q = np.array(parts)

    def __mul__(self, other):
        a, b = self.q, other.q
        return Quaternion(a[0] * b[0] - a[1:].dot(b[1:]), *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])))

    def norm(self):
        return math.sqrt((self.q**2).sum())

    @property
    def real(self):
        return self.q[0]


UNIT = Quaternion(0.0, 1.0, 0.5, 0.0)


def operators_of_objects(x):
    q = Quaternion(x[0], x[1], 0.5, 0.2) * UNIT
    return q.norm() + (UNIT * q).real + abs(q.q).sum()


def recursion(x):
    def fib(n):
        return x[n] if n < 2 else math.sin(fib(n - 1)) + fib(n - 2)

    return fib(6)


def while_loops(x):
    a, b = sqrt(x[0]), exp(x[1])
    while abs(a - b) > 1e-14:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


def imports_inside(x):
    from math import tan

    import numpy.linalg as la

    return la.norm(np.array([tan(x[0]), x[1]]))


def _gain(x):
    return math.exp(x)


def modules_by_name(x):
    from sys import modules

    sine, gain = "sin", "_gain"
    found = getattr(__import__("math"), sine)(x[0]) + importlib.import_module("math").cos(x[1])
    found += sys.modules["numpy"].array([x[0], 2.0]).dot(x) * modules.get("math").sqrt(x[1])
    assert "math" in sys.modules and sys.modules["sys"].maxsize == sys.maxsize  # noqa: PT018
    return found * getattr(sys.modules[__name__], gain)(x[0]) + sys.float_info.epsilon


def formatted(x):
    text = f"{x[0]:.3f}" + " and %.2f, %s" % (x[1], "done") + " of %d" % 3
    print(end="" if text == "0.600 and 1.40, done of 3" else text)
    joined = ", ".join(["%.3f"] * len(x)) % tuple(x)
    return math.exp(x[0]) * x[1] * (text.count("done") == 1) * len(joined)


def as_type(values, dtype=np.float64):
    def inner(v):
        return dtype(v) * 2

    return dtype(np.sum(values)) + inner(values[0])


def local_classes(x):
    return as_type(np.array([x[0], math.sin(x[1])])) + (lambda d: as_type(x, d))(np.float64)


RNG_STATE = np.random.RandomState(3)
GENERATOR = np.random.default_rng(8)


def random_numbers(x):
    rng = np.random.default_rng(0)
    noise = rng.normal(x[0], x[1], size=4) + rng.uniform(x[0], 3.0) + rng.exponential(x[1])
    RNG_STATE.seed(1)
    np.random.seed(2)
    picked = rng.choice(np.array([x[0], x[1], 1.0]), 3) * RNG_STATE.laplace(x[0]) + np.random.randn()
    return noise.sum() + picked.sum() + rng.permutation(np.asarray(x))[0] + rng.lognormal(x[0], 0.1)


def vectors_and_shapes_drawn(x):
    cov = np.array([[2.0, x[1]], [x[1], 1.0]])
    rng = np.random.default_rng(3)
    found = [rng.multivariate_normal([x[0], 1.0], cov, 2, method=method) for method in ("svd", "eigh", "cholesky")]
    found += [rng.multivariate_normal([x[0], 1.0], x[1] * np.eye(2), method=method) for method in ("svd", "eigh")]
    RNG_STATE.seed(4)
    found += [RNG_STATE.multivariate_normal([x[0], 1.0], cov), rng.triangular(-x[1], x[0], 2.0, size=6)]
    found += [rng.weibull([x[0], x[1]]), rng.pareto(x[1] + 2.0, 3), rng.power(x[0]), rng.gamma([2.0, 3.0], x[1])]
    return sum(np.sum(np.sin(v)) for v in found)


KINDS = {"rate": float, "count": int, "name": str, "phase": complex}


class Record:
    kinds = {"rate": float}

    def __init__(self):
        self.steps = [np.float64, float]

    def read(self, x):
        return self.kinds["rate"](x) * self.steps[0](x) + self.steps[-1](x)


def kinds_in_a_table(x, other={"rate": float}):  # noqa: B006
    row = {"rate": x[0], "count": "3", "name": "b", "phase": x[1]}
    read = {name: KINDS[name](value) for name, value in row.items()}
    assert read["name"] == "b"
    total = read["rate"] * read["count"] + abs(read["phase"]) ** 2 + KINDS["count"](x[1] + 4.5) * x[0]
    return total + other["rate"](x[0]) ** 2 + Record().read(x[1]) + [math.sin, float][0](x[0])


def copies_of_random_numbers(x):
    """Copied generators draw the same numbers and do not change the original generators."""
    RNG_STATE.seed(5)
    copies = [copy.deepcopy(GENERATOR), pickle.loads(pickle.dumps(GENERATOR)), copy.deepcopy(RNG_STATE)]
    drawn = [math.exp(x[0]) * rng.normal() + x[1] ** 2 * rng.uniform() for rng in copies]
    return sum(drawn) + copy.deepcopy(GENERATOR).normal(x[0], x[1]) * copy.copy(copy.deepcopy(GENERATOR)).normal()


def functions_of_elements(x):
    by_element = np.frompyfunc(lambda v: math.sin(v) * v, 1, 1)
    smoothed = np.frompyfunc(lambda a, b: 0.3 * a + math.tanh(b), 2, 1)
    table = np.outer(x, x)
    tails = smoothed.accumulate(table, axis=1)[:, -1].sum() + smoothed.reduce(table).sum() + smoothed.outer(x, x).sum()
    return (
        tails
        + by_element(x).sum()
        + np.vectorize(math.exp)(x).sum()
        + np.apply_along_axis(lambda v: math.cos(v[0]), 0, x)
    )


DAMPED = np.frompyfunc(lambda a, b: 0.3 * a + 0.5 * math.tanh(a * b), 2, 1)
BENT = np.vectorize(lambda v, k=2: v**k + math.sin(v))


def functions_of_elements_made_outside(x):
    whole = DAMPED.outer(x, x).sum() + DAMPED.reduce(x) + DAMPED.accumulate(x)[1] + DAMPED(x, 0.7).sum()
    return whole + BENT(x).sum() * BENT(x, k=3).sum()


def arrays_of_objects(x):
    """Collect numbers in an array of objects, and convert it in all the ways that NumPy has."""
    found = np.empty((2, 2), dtype=object)
    for i, j in np.ndindex(found.shape):
        found[i, j] = math.exp(x[i]) * x[j]
    found[0, 0] = 3
    first, *_ = x.astype(object)
    found[0, 1] += first * np.array([x[0], 2.0], dtype=object).sum()
    rows = found.astype(float).prod(axis=0) @ np.array(found, dtype=float).sum(axis=1)
    flat = found.ravel().astype(dtype=np.float64)
    return rows + np.stack(found[1]).prod() + np.asarray(found, float).std() + flat.max() + np.float64(found[1, 1])


@functools.singledispatch
def kind_of_term(weight, x):
    return weight * math.sin(x[0])


@kind_of_term.register
def _(weight: str, x):
    return math.exp(x[1]) * len(weight)


class Terms:
    @functools.singledispatchmethod
    def term(self, weight, x):
        return weight * math.cos(x[0])

    @term.register
    def _(self, weight: str, x):
        return math.sqrt(x[1]) * len(weight)


def dispatched_by_type(x):
    return sum(term(weight, x) for term in (kind_of_term, TERMS.term, Terms().term) for weight in (0.5, "ab"))


TERMS = Terms()


def dates_and_times(x):
    start = np.datetime64("2020-01-01")
    days = np.array(["2020-01-01", "2020-03-01"], dtype="datetime64[D]")
    days[0] += np.timedelta64(5, "D")
    months = np.arange("2020-01", "2020-04", dtype="datetime64[M]")
    steps = np.arange(2) * np.timedelta64(3, "D")  # plain integers are deprecated next to dates
    later = np.sort(np.concatenate([days, start + steps, start - steps]))
    years = (later - later[0]) / np.timedelta64(365, "D") + np.diff(months)[0].astype(float)
    years[0] = x[0]
    later[0] = start
    ages = later.astype("datetime64[Y]").astype(int) + days.min().astype("datetime64[s]").astype(float) / 1e9
    return math.exp(-x[0]) * (years.sum() + ages.sum() / 1e3) + np.where(
        later > start, x[1], 0.0
    ).sum() * np.searchsorted(later, days[0])


def names_in_arrays(x):
    kinds = np.empty(3, dtype="U4")
    kinds[0], kinds[1:] = "rate", ["bond", "cash"]
    chosen = np.isin(kinds, ["bond", "rate"])
    return math.sin(x[0]) * chosen.sum() + np.where(kinds == "cash", x[1], 1.0).sum() * len(kinds[0])


FORM = "%.4f"


class Shown:
    form = "%.3f"

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return self.form % self.value

    def __float__(self):
        return float(self.value)


def texts_filled_by_percent(x):
    table = [form % x[0] for form in ("%.2f", "%d", "%5.1e")]

    def line(form, end="%d"):
        form %= (x[1], "m")
        return form + FORM % x[0] + end % x[1]

    return math.sin(x[0]) * x[1] * (len(table) + len(line("%.1f %s")) + len(str(Shown(x[0]))))


def numbers_by_float(x):
    a, b = Shown(x[0]), Shown(x[1])
    return math.sqrt(a) * math.hypot(x[0], b) + math.atan2(b, 2.0) * math.log(a, x[1])


def sources_of_numbers(x):
    rng = np.random.default_rng(3)
    return math.exp(x[0]) * np.random.default_rng(rng).normal() * rng.normal()


def axes_in_arrays(x):
    cube = np.multiply.outer(np.multiply.outer(x, x), np.ones(2))
    return np.transpose(np.sin(cube), np.argsort([2, 0, 1]))[1, 0, 1] * math.exp(x[0])


def iterators(x):
    values = np.fromiter((math.sin(v) for v in x), dtype=float)
    grid = np.fromfunction(lambda i, j: i * x[0] + j * x[1], (2, 2))
    a, b = np.broadcast_arrays(x[0], [1.0, 2.0])
    return values.sum() + grid.sum() + (a * b).sum() + sum(v * i for i, v in np.ndenumerate(x) for i in i)


X = np.array([0.6, 1.4])


def number_or_default(x):
    def number(value, default=0.0):
        try:
            return float(value)
        except (TypeError, ValueError):
            return default

    return number(x[0]) * number("2.5") + number("none", 1.0) * number(x[1])


def written_arrays_of_all_kinds(x):
    makers = [
        lambda: np.broadcast_arrays(1.0, np.ones(3))[0].copy(),
        lambda: np.broadcast_to(1.0, (3,)).copy(),
        lambda: np.atleast_1d(1.0),
        lambda: np.ravel([1.0, 2.0]),
        lambda: np.random.default_rng(0).normal(size=3),
        lambda: np.random.RandomState(0).rand(3),
        lambda: np.fromiter([1.0, 2.0], float),
        lambda: np.loadtxt(["1 2 3"]),
    ]
    total = 0.0
    for i, make in enumerate(makers):
        out = make()
        out[0] = x[0] * (i + 1)
        out[-1] *= x[1]
        total = total + out.sum()
    return total


PROGRAMS = [
    (f, X)
    for f in (
        number_or_default,
        written_arrays_of_all_kinds,
        outside_object,
        called_object,
        sequence_object,
        object_made_inside,
        objects_in_lists,
        slots,
        frozen_dataclass,
        inheritance,
        stateful_object,
        namespace_object,
        decorated,
        closure,
        cached_recursion,
        cached_constants,
        partials,
        functions_in_containers,
        default_function,
        generator,
        comprehensions,
        evaluated_text,
        evaluated_names,
        executed_text,
        as_numbers,
        used_as_integers,
        scalar_types,
        type_tests,
        mathematics,
        complex_mathematics,
        descriptive_statistics,
        normal_distributions,
        moving_averages,
        points,
        reductions_of_functions,
        sorting,
        named_tuples,
        defaults_of_dictionaries,
        written_constants,
        methods_of_constants,
        object_arrays,
        copies,
        context_managers,
        exceptions,
        nonlocal_variables,
        class_inside,
        operators_of_objects,
        recursion,
        while_loops,
        imports_inside,
        modules_by_name,
        formatted,
        local_classes,
        random_numbers,
        vectors_and_shapes_drawn,
        copies_of_random_numbers,
        kinds_in_a_table,
        dates_and_times,
        names_in_arrays,
        texts_filled_by_percent,
        numbers_by_float,
        functions_of_elements,
        functions_of_elements_made_outside,
        arrays_of_objects,
        dispatched_by_type,
        sources_of_numbers,
        axes_in_arrays,
        iterators,
    )
]
