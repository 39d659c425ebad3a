"""Programs with classes of their own: numbers, arrays and containers, and NumPy's older array classes."""

import math
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided


class Vector:
    """A vector with componentwise arithmetic that converts to a number."""

    __array_priority__ = 1000

    def __init__(self, data):
        self.data = np.asarray(data, dtype=float)

    def __add__(self, other):
        return Vector(self.data + getattr(other, "data", other))

    __radd__ = __add__

    def __mul__(self, other):
        return Vector(self.data * getattr(other, "data", other))

    __rmul__ = __mul__

    def __float__(self):
        return float(self.data.sum())

    def __complex__(self):
        return complex(self.data[0], self.data[1])

    def __len__(self):
        return len(self.data)


def numbers_of_objects(x):
    v = x * Vector([1.0, 2.0]) + Vector(x)
    return float(v) ** 2 + abs(complex(v)) + len(v)


class Rotor:
    """An object that NumPy converts to an array by ``__array__``."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.parts, dtype=dtype)


def objects_as_arrays(x):
    a, b = Rotor(1.0, 2.0), Rotor(x[0], math.sin(x[1]))
    rows = np.array([b, a])
    return np.sum(np.asarray(b) * a) + x.dot(np.array(a)) + np.add(b, a).prod() + np.linalg.norm(b) + rows[0] @ rows[1]


class Scaled(np.lib.mixins.NDArrayOperatorsMixin):
    """A value with a unit that implements NumPy's ufuncs."""

    def __init__(self, value, unit=1.0):
        self.value, self.unit = np.asarray(value), unit

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [x.value * x.unit if isinstance(x, Scaled) else x for x in inputs]
        return Scaled(getattr(ufunc, method)(*plain, **kwargs))


def objects_in_ufuncs(x):
    return float((np.exp(Scaled(x, 0.5)) * 2 - Scaled([1.0, 2.0], 3.0) / 3).value.prod())


class State(NamedTuple):
    position: float
    momentum: float

    def moved(self, dt):
        half = self.momentum - 0.5 * dt * math.sin(self.position)
        position = self.position + dt * half
        return State(position, half - 0.5 * dt * math.sin(position))

    @property
    def energy(self):
        return math.fsum([self.momentum**2 / 2, -math.cos(self.position)])


REST = State(0.1, 0.0)


def methods_of_named_tuples(x):
    states = [State(*x)]
    for _ in range(5):
        states.append(states[-1].moved(0.1))
    position, momentum = states[-1]
    return np.array(states).std() + position * momentum + REST.moved(0.1)._replace(momentum=x[0]).energy


class Point(namedtuple("Point", "x y")):
    __slots__ = ()

    def __add__(self, other):
        return Point(*(a + b for a, b in zip(self, other, strict=True)))

    def turned(self, angle):
        return Point(self.x * math.cos(angle) - self.y * math.sin(angle), self.x * math.sin(angle))


def named_tuples_with_operators(x):
    p = Point(1.0, x[0]).turned(x[1]) + Point(0.5, x[0])
    return p.x * p.y + len(p)


class Options(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__

    def norm(self):
        return math.sqrt(sum(float(v) ** 2 for v in self.values()))


class Bunch(dict):
    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self

    def energy(self):
        return math.exp(-self.rate) * self["data"].dot(np.ones(2))


class Coefficients(tuple):
    def __call__(self, x):
        return sum(c * math.pow(x, i) for i, c in enumerate(self))


class Path(list):
    __slots__ = ("weights",)

    def weighted(self):
        return self.weights.dot([math.exp(x) for x in self])

    def add(self, step):
        self.append((self[-1] if self else 0.0) + float(step))
        return self


class Ordered(OrderedDict):
    def first(self):
        return math.exp(next(iter(self.values())))


class Sums(defaultdict):
    __slots__ = ("scale",)

    def norm(self):
        return math.sqrt(sum(v * v for v in self.values()))

    def scaled(self):
        return self.scale[0] * math.sin(self["a"]) * self["absent"]


class Ring(deque):
    def mean(self):
        return math.fsum(self) / len(self)


class Settings:
    """Settings whose attributes are looked up in a dictionary, so a missing one raises KeyError."""

    def __init__(self, **items):
        self.__dict__ = dict(items=items)

    def __getattr__(self, name):
        return self.items[name]

    def gain(self):
        return math.exp(self.rate)


#: In a dictionary, because pytest reads attributes of a module's objects, and these would raise ``KeyError``.
SET_UP = {
    "options": Options(scale=2.0, data=np.array([1.0, 3.0])),
    "bunch": Bunch(rate=0.5, data=np.array([1.0, 2.0])),
    "settings": Settings(rate=0.5, data=np.array([1.0, 2.0])),
}
ORDERED, SUMS, RING = Ordered(a=0.3, f=math.sin), Sums(float, a=1.0, b=2.0), Ring([1.0, 2.0], maxlen=2)
SERIES = Coefficients((1.0, 2.0, 0.5))
PATH, COUNTS = Path([0.5, 1.0]), Sums(lambda: 3.0, a=0.5)
PATH.weights, COUNTS.scale = np.array([1.0, 2.0]), [np.float64(2.0)]


def containers_of_ones_own(x):
    options = Options(a=x[0])
    options.b = options.a * x[1]
    bunch = Bunch(rate=x[0], data=np.array([x[1], 2.0]))
    bunch.more = 3.0
    path = Path().add(x[0]).add(x[1]).add(0.5)
    own, held, settings = SET_UP.values()
    outside = own.scale * own["data"].dot(x) + held.energy() * x[0] + SERIES(x[1])
    inside = options.norm() + bunch.energy() + bunch["more"] + Coefficients((x[0], 1.0))(x[1]) + path[-1] * np.sum(path)
    return inside + outside + settings.gain() * settings.data.dot(x)


def containers_with_slots(x):
    return PATH.weighted() * math.sin(x[0]) + COUNTS.scaled() * x[1]


with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    TRANSITION = np.matrix([[1.0, 0.1], [0.0, 1.0]])


def matrices(x):
    H = np.matrix("1 0")
    m, P, Q = np.matrix([[0.0], [1.0]]), np.matrix(np.eye(2)), np.asmatrix(np.diag(x))
    likelihood = 0.0
    for z in (0.1, 0.3):
        m, P = TRANSITION * m, TRANSITION * P * TRANSITION.T + Q
        S, v = H * P * H.T + 0.3, z - H * m
        m, P = m + P * H.T * S.I * v, P - P * H.T * S.I * H * P
        likelihood -= 0.5 * (v.T * S.I * v).item() + 0.5 * np.log(np.linalg.det(S))
    assert isinstance(m, np.matrix)
    return likelihood + m[0, 0] + P.trace()[0, 0] + m.A1[1]


def iterators_that_write(x):
    y, squares = np.zeros(len(x)), x * 1.0
    with np.nditer([x, y], op_flags=[["readonly"], ["writeonly"]]) as it:
        for a, b in it:
            b[...] = 2 * math.sin(a)
    for v in np.nditer(squares, op_flags=["readwrite"]):
        v[...] = v * v
    with np.nditer([x, None]) as it:
        for a, b in it:
            b[...] = math.exp(a)
        made = it.operands[1]
    pairs = np.broadcast(x[:, None], np.ones((1, 2)))
    filled = np.empty(pairs.shape)
    filled.flat = [a * a + b * i for i, (a, b) in enumerate(pairs)]
    return y.sum() + squares.prod() + made.std() + filled.std() + np.broadcast(x, 2.0).size


def shapes_set_in_place(x):
    y = np.outer(x, x) * 2
    part = y[1]
    y.shape = (4,)
    part += 1.0
    y[0] = 3 * x[1]
    column = y[::2]
    column.shape = (2, 1)
    column *= x[0]
    z = np.zeros(3)
    z.shape = (3, 1)
    z[1] = x[0]
    longer = np.array(x)
    longer.resize((2, 2), refcheck=False)
    return y.std() + part @ x + z.sum() ** 2 + longer[0].prod() + longer.size


def strides(x):
    image = np.zeros((4, 4))
    image[1:3, 1:3] = np.outer(x, x)
    rows, columns = image.strides
    patches = as_strided(image, (3, 3, 2, 2), (rows, columns, rows, columns))
    kernel = as_strided(x, (2, 2), (0, x.strides[0]), writeable=False)
    return np.tensordot(patches, kernel * [[1.0], [2.0]], axes=([2, 3], [0, 1])).std()


def assertions(x):
    np.testing.assert_allclose(x @ np.eye(2), x, rtol=1e-7)
    np.testing.assert_array_less(0, [x[0], x[1]])
    try:
        np.testing.assert_allclose(x, x + 1)
    except AssertionError:
        return math.exp(x[0]) * x[1]
    return 0.0


def masks_of_nothing(x):
    if isinstance(x, np.ma.MaskedArray):
        x = x.filled(np.nan)
    weights = np.ma.MaskedArray(np.arange(3.0), mask=[0, 1, 0])
    return np.ma.masked_array(x, mask=False).prod() + np.ma.array(x).mean() + weights.sum() * np.array([x[0]])[0]


def older_containers_of_ones_own(x):
    sums, ring = Sums(float), Ring(maxlen=2)
    for i, v in enumerate((*x, 0.5)):
        sums[i % 2] += v
        ring.append(v)
    inside = Ordered(a=x[0], b=x[1]).first() + sums.norm() + ring.mean() * ring[0]
    outside = ORDERED.first() * ORDERED["f"](x[1]) + SUMS.norm() * math.exp(x[0]) + (RING.mean() + RING.maxlen) * x[1]
    return inside * outside + SUMS["c"]


class Part:
    def __init__(self, k):
        self.k = k

    def value(self, x):
        return self.k * math.sin(x)


class Whole:
    """A class whose methods use its attributes: arrays, function tables, objects, classes, work arrays."""

    weights = np.array([[0.5, 1.0], [2.0, 0.1]])
    table: ClassVar = {"sin": lambda v: math.sin(v), "square": lambda v: np.array([v, v]).prod()}
    parts = (Part(1.0), Part(0.5))
    default = Part(2.0)
    work = np.zeros(2)
    function = math.cos

    class Inner:
        @staticmethod
        def value(x):
            return math.exp(x)

    def total(self, x):
        for i in range(2):
            self.work[i] = x[i] ** 2
        return self.weights.dot(x) @ x + self.table["sin"](x[0]) + self.work.prod() + self.of_class(x[1])

    @classmethod
    def of_class(cls, x):
        return cls.Inner.value(x) + cls.function(x) + sum(part.value(x) for part in cls.parts) + cls.default.value(x)


class Derived(Whole):
    default = Part(3.0)


WHOLE = Derived()


def attributes_of_classes(x):
    return Whole().total(x) + WHOLE.total(x) + Whole.table["square"](x[1]) + Whole.default.value(x[0])


class Step:
    weight = 1.0

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, y):
        return y


class Forward(Step):
    weight = 2.0

    def __call__(self, y):
        return y + self.rate * math.sin(y)


class Middle(Step):
    weight = 3.0

    def __call__(self, y):
        return y + self.rate * math.sin(super().__call__(y) + self.rate / 2 * math.sin(y))


def subclasses_found(x):
    return sum(step.weight * step(x[0])(x[1]) for step in Step.__subclasses__())


class Dual:
    """A number with a slope, for which NumPy's ufuncs call methods and operators."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __mul__(self, other):
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def sin(self):
        return type(self)(math.sin(self.value), math.cos(self.value) * self.slope)


def methods_called_by_ufuncs(x):
    a, b = Dual(math.exp(x[0]), 1.0), Dual(x[1], 2.0)
    both = np.sin([a, b])
    return (np.sin(a * b) * np.negative(a)).slope + both[0].slope * both[1].value


def classes_of_values_called(x):
    y = np.array([math.sin(x[0]), x[1]])
    state = type(REST)(y[0], x[1]).moved(0.1)
    numbers = [type(x[0])(y[1]), x.dtype.type(y[0]), y[0].__class__(x[1]), (lambda kind: kind)(type(y[0]))(x[0])]
    return sum(numbers) * state.energy + type(x.tolist())([y[1]])[0] ** 2


X = np.array([0.4, 0.7])
PROGRAMS = [
    (f, X)
    for f in (
        numbers_of_objects,
        objects_as_arrays,
        objects_in_ufuncs,
        methods_of_named_tuples,
        named_tuples_with_operators,
        containers_of_ones_own,
        containers_with_slots,
        matrices,
        iterators_that_write,
        shapes_set_in_place,
        strides,
        assertions,
        masks_of_nothing,
        older_containers_of_ones_own,
        attributes_of_classes,
        methods_called_by_ufuncs,
        classes_of_values_called,
    )
]
