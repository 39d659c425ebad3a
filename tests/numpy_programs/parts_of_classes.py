"""Classes of random programs: dataclasses, enumerations, descriptors, containers, operators, metaclasses, mixins."""

import abc
import enum
import functools
import math
import operator
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Meter:
    value: float
    unit: float = 1.0
    tags: tuple = field(default=(), compare=False)

    @property
    def metres(self):
        return self.value * self.unit

    def __add__(self, other):
        return replace(self, value=self.value + other.metres / self.unit)


@dataclass(order=True)
class Ranked:
    key: float
    load: float = field(compare=False, default=0.5)
    table: dict = field(default_factory=dict, compare=False)
    seed: InitVar[float] = 0.1
    rate: ClassVar[float] = 0.7

    def __post_init__(self, seed):
        self.table["seed"] = self.key * seed
        self.load = self.load * self.rate + self.table["seed"]


@dataclass(slots=True)
class Slotted:
    a: float
    v: list = field(default_factory=list)
    _: KW_ONLY
    scale: float = 2.0

    def push(self, s):
        self.v.append(s * self.scale)
        self.a += self.v[-1]
        return self


class Pair(NamedTuple):
    a: float
    b: float = 0.7

    def __add__(self, other):
        return Pair(self.a + other[0], self.b * other[1])

    @classmethod
    def of(cls, v):
        return cls(*v[:2])

    @property
    def norm(self):
        return math.hypot(*self)


class Gain(enum.Enum):
    LOW = 0.3
    HIGH = 1.7

    def of(self, s):
        return self.value * s

    @classmethod
    def pick(cls, s):
        return cls.HIGH if s > 0.1 else cls.LOW


class Wave(enum.Enum):
    SIN = "sin"
    COS = "cos"

    def __call__(self, s):
        return getattr(math, self.value)(s)


class Planet(enum.Enum):
    NEAR = (3.3, 0.4)
    FAR = (5.9, 1.2)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    def pull(self, s):
        return self.mass / (self.radius + s * s)


class Axis(enum.IntEnum):
    X, Y, Z = range(3)


class Use(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    BOTH = A | B


class Form(enum.StrEnum):
    BELL = enum.auto()
    RAMP = enum.auto()

    @property
    def fun(self):
        return {"bell": lambda t: math.exp(-t * t), "ramp": lambda t: 0.3 * t}[self]


class Thermometer:
    def __init__(self, celsius):
        self._c = celsius

    @property
    def fahrenheit(self):
        return self._c * 1.8 + 32

    @fahrenheit.setter
    def fahrenheit(self, f):
        self._c = (f - 32) / 1.8

    @fahrenheit.deleter
    def fahrenheit(self):
        self._c = 0.0

    def warmed(self, s):
        self.fahrenheit += s
        return self._c


class Positive:
    """A descriptor that keeps a value in the object's dictionary."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else obj.__dict__[self.name]

    def __set__(self, obj, value):
        obj.__dict__[self.name] = math.log1p(math.exp(value))


class Spring:
    k = Positive()
    x = Positive()

    def __init__(self, k, x):
        self.k, self.x = k, x

    def energy(self):
        return 0.5 * self.k * self.x**2


class Grid:
    """A container with all of a container's methods."""

    def __init__(self, items):
        self.items = list(items)

    def __getitem__(self, i):
        return Grid(self.items[i]) if isinstance(i, slice) else self.items[i]

    def __setitem__(self, i, value):
        self.items[i] = value

    def __delitem__(self, i):
        del self.items[i]

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return (e * 0.9 for e in self.items[::-1])

    def __len__(self):
        return len(self.items)

    def __contains__(self, value):
        return any(abs(value - e) < 0.2 for e in self.items)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.items, dtype=dtype)

    def __call__(self, s):
        return math.fsum(e * s**i for i, e in enumerate(self.items))

    def __getattr__(self, name):
        if name.startswith("at_"):
            return self.items[int(name[3:])]
        raise AttributeError(name)


class Vector:
    """Two components with operators of all kinds; it takes no part in NumPy's operators."""

    __array_ufunc__ = None
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(self.x + other.x, self.y + other.y)

    def __radd__(self, other):
        return Vector(other + self.x, other + self.y)

    def __mul__(self, other):
        return (
            self.x * other.x + self.y * other.y if isinstance(other, Vector) else Vector(self.x * other, self.y * other)
        )

    def __rmul__(self, other):
        return Vector(other * self.x, other * self.y)

    def __iadd__(self, other):
        self.x += other
        self.y -= other
        return self

    def __rtruediv__(self, other):
        return other / (self.x**2 + self.y**2 + 0.3)

    def __rpow__(self, other):
        return other ** (0.1 * self.x)

    def __rsub__(self, other):
        return other - self.x

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __abs__(self):
        return math.sqrt(self.x * self.x + self.y * self.y)

    def __iter__(self):
        yield self.x
        yield self.y

    def __bool__(self):
        return bool(self.x > 0.3)

    def __eq__(self, other):
        return isinstance(other, Vector) and self.x == other.x and self.y == other.y

    __hash__ = None


class Dual:
    """A number with a slope: derivatives of the program's own, which NumPy's numbers multiply from the left."""

    def __init__(self, a, b=0.0):
        self.a, self.b = a, b

    @classmethod
    def lift(cls, other):
        return other if isinstance(other, cls) else cls(other)

    def __add__(self, other):
        other = Dual.lift(other)
        return Dual(self.a + other.a, self.b + other.b)

    def __mul__(self, other):
        other = Dual.lift(other)
        return Dual(self.a * other.a, self.a * other.b + self.b * other.a)

    def __pow__(self, n):
        return functools.reduce(operator.mul, [self] * n)

    def __sub__(self, other):
        return self + Dual.lift(other) * -1.0

    __radd__, __rmul__ = __add__, __mul__

    def sin(self):
        return Dual(np.sin(self.a), np.cos(self.a) * self.b)


@functools.total_ordering
class Version:
    def __init__(self, v, extra=0.0):
        self.v, self.extra = v, extra

    def __eq__(self, other):
        return self.v == other.v

    def __lt__(self, other):
        return self.v < other.v

    def __hash__(self):
        return id(self)

    def __format__(self, spec):
        return format(self.v, spec)

    def __float__(self):
        return float(self.v * 1.1)


class Registry(type):
    """A metaclass that keeps its classes by name and makes objects."""

    made: ClassVar[dict] = {}

    def __new__(cls, name, bases, names, factor=1.0):
        made = super().__new__(cls, name, bases, names)
        made.factor = factor
        cls.made[name.lower()] = made
        return made

    def __init__(cls, name, bases, names, factor=1.0):
        super().__init__(name, bases, names)

    def __call__(cls, *args):
        obj = super().__call__(*args)
        obj.s = obj.s * cls.factor
        return obj

    def __getitem__(cls, s):
        return cls(s).value()


class Shape(metaclass=Registry):
    def __init__(self, s):
        self.s = s

    def value(self):
        return self.s


class Square(Shape, factor=0.5):
    def value(self):
        return super().value() ** 2


class Cube(Square, factor=0.7):
    def value(self):
        return math.sin(super().value() * self.s)


class Plugin:
    """A class that keeps its subclasses."""

    plugins: ClassVar[dict] = {}

    def __init_subclass__(cls, /, name, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.plugins[name] = cls

    def __new__(cls, s):
        made = super().__new__(cls)
        made.s = s * 2
        return made


class Tanh(Plugin, name="tanh"):
    def run(self):
        return math.tanh(self.s)


class Logistic(Plugin, name="logistic"):
    def run(self):
        return 1 / (1 + math.exp(-self.s))


class Root:
    def __init__(self, s, **kwargs):
        super().__init__(**kwargs)
        self.s = s

    def value(self):
        return self.s


class LoudMixin:
    def __init__(self, *, loud=2.0, **kwargs):
        super().__init__(**kwargs)
        self.loud = loud

    def value(self):
        return super().value() * self.loud


class ShiftedMixin:
    shift = 0.3

    def value(self):
        return super().value() + self.shift


class Mixed(LoudMixin, ShiftedMixin, Root):
    def __init__(self, s, loud):
        super().__init__(loud=loud, s=s)


class Tally:
    """A class whose variables change."""

    total, items = 0.0, []

    @classmethod
    def reset(cls):
        cls.total, cls.items = 0.0, []
        return cls

    @classmethod
    def add(cls, s):
        cls.total += s
        cls.items.append(cls.total)
        return cls


class Kernel(abc.ABC):
    def __init__(self, width):
        self.width = width

    @abc.abstractmethod
    def at(self, d): ...

    @property
    @abc.abstractmethod
    def name(self): ...

    def matrix(self, v):
        return np.array([[self.at(a - b) for a in v] for b in v])

    def __add__(self, other):
        return SumKernel([self, other])


class Bell(Kernel):
    name = "bell"

    def at(self, d):
        return math.exp(-0.5 * (d / self.width) ** 2)


class Cosine(Kernel):
    @property
    def name(self):
        return "cosine"

    def at(self, d):
        return math.cos(d * self.width)


class SumKernel(Kernel):
    name = "sum"

    def __init__(self, parts):
        self.parts = parts

    def at(self, d):
        return sum(part.at(d) for part in self.parts)


class Methods:
    """Methods that functools makes."""

    def __init__(self, s):
        self.s = s

    def scaled(self, k, shift=0.0):
        return self.s * k + shift

    twice = functools.partialmethod(scaled, 2.0, shift=0.1)

    @functools.singledispatchmethod
    def take(self, arg):
        return self.s * arg

    @take.register(list)
    @take.register(tuple)
    def _(self, arg):
        return self.s + sum(arg)

    @take.register
    def _(self, arg: str):
        return self.s * len(arg)

    @functools.cached_property
    def slow(self):
        return self.s**3 * 0.2

    @staticmethod
    def clipped(s):
        return min(max(s, -0.913), 0.887)


class Node:
    """A tree that is built by recursion."""

    def __init__(self, value, *children):
        self.value, self.children = value, children

    @classmethod
    def build(cls, v):
        if not v:
            return cls(0.1)
        m = len(v) // 2
        return cls(v[m], cls.build(v[:m]), cls.build(v[m + 1 :]))

    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child

    def total(self, depth=0):
        return self.value / (1 + depth) + sum(child.total(depth + 1) for child in self.children)


class Link:
    """A linked list."""

    def __init__(self, head, tail=None):
        self.head, self.tail = head, tail

    @classmethod
    def of(cls, items):
        made = None
        for item in items:
            made = cls(item, made)
        return made

    def folded(self, decay):
        node, total = self, 0.0
        while node is not None:
            total, node = node.head + decay * total, node.tail
        return total


class Table(Mapping):
    """A mapping of the abstract class; missing names are computed."""

    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


class Squares(Sequence):
    def __init__(self, v):
        self.v = v

    def __getitem__(self, i):
        if i >= len(self.v):
            raise IndexError(i)
        return self.v[i] ** 2

    def __len__(self):
        return len(self.v)


class Missing(dict):
    def __missing__(self, key):
        self[key] = made = math.sin(self["base"] * len(key))
        return made


class Store(Generic[T]):
    def __init__(self, first: T):
        self.values: list[T] = [first]

    def put(self, value: T) -> "Store[T]":
        self.values.append(value)
        return self

    def last(self) -> T:
        return self.values[-1]


@runtime_checkable
class HasEnergy(Protocol):
    def energy(self): ...


class Recent(OrderedDict):
    """The last two entries, as a cache keeps them."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > 2:
            self.popitem(last=False)


class Countdown:
    """An iterator of the program."""

    def __init__(self, s, n):
        self.s, self.n = s, n

    def __iter__(self):
        return self

    def __next__(self):
        if not self.n:
            raise StopIteration
        self.n -= 1
        self.s = self.s * 0.7 + 0.1
        return self.s


class Matrix2:
    """A matrix of lists with @, indices in pairs, and a transpose."""

    def __init__(self, rows):
        self.rows = [list(row) for row in rows]

    def __matmul__(self, other):
        columns = list(zip(*other.rows, strict=True))
        return Matrix2([[sum(map(operator.mul, row, c)) for c in columns] for row in self.rows])

    def __getitem__(self, key):
        i, j = key
        return self.rows[i][j]

    def __setitem__(self, key, value):
        self.rows[key[0]][key[1]] = value

    @property
    def transposed(self):
        return Matrix2(zip(*self.rows, strict=True))

    def det(self):
        (a, b), (c, d) = self.rows
        return a * d - b * c


class Chain:
    """A fluent object that keeps functions and runs them later."""

    def __init__(self):
        self.steps = []

    def then(self, step, *args, **kwargs):
        self.steps.append((step, args, kwargs))
        return self

    def run(self, s):
        for step, args, kwargs in self.steps:
            s = step(s, *args, **kwargs)
        return s
