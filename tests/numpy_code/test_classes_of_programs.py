"""What a program asks of its own classes and objects: attributes, members, bases, classes, copies."""

import abc
import copy
import enum
import math
from types import ModuleType

import numpy as np

from funcgrad import grad, value_and_grad


class Constants:
    """Class whose constants a program loops over, between methods and members that need a replacement."""

    first = 2.0

    def rule(self, x):
        return math.sin(x)

    second = np.array([3.0])
    third = 5.0

    def weighted(self, x):
        members = {**vars(type(self)), **Constants.__dict__}
        values = [v for v in members.values() if isinstance(v, (float, np.ndarray))]
        assert members["rule"](self, 0.0) == 0.0
        return sum(i * np.sum(v) for i, v in enumerate(values)) * self.rule(x)


class More(Constants):
    fourth = 7.0


def test_members_of_a_rebuilt_class_are_those_of_the_program():
    def written(x):
        class Inner(Constants):
            fifth = 11.0

        Inner.sixth = x
        names = [name for name in vars(Inner) if not name.startswith("_")]
        assert names == ["fifth", "sixth"]
        return math.exp(Inner.sixth) * len(vars(More))

    model = Constants()
    assert grad(model.weighted)(0.0) == model.weighted(math.pi / 2) == 3.0 + 2 * 5.0
    assert grad(written)(0.0) == written(0.0)


class Layered:
    """Object with attributes that need a replacement, lists and functions, between others."""

    def __init__(self):
        self.first = [2.0]
        self.second = 3.0
        self.rule = math.sin
        self.third = 5.0

    def weighted(self, x):
        self.last = 7.0
        values = [v for v in vars(self).values() if not callable(v)]
        return sum(i * np.sum(v) for i, v in enumerate(values)) * self.rule(x)


def test_attributes_of_an_object_keep_their_order():
    def f(x):
        return Layered.weighted(copy.copy(model), x)

    model = Layered()
    assert grad(model.weighted)(0.0) == grad(f)(0.0) == 3.0 + 10.0 + 21.0


class Plain:
    """Class of Python's own metaclass."""

    def at(self, x):
        return math.sin(x)


class Counting(type):
    """Metaclass of a program."""


class Counted(metaclass=Counting):
    def at(self, x):
        return math.sin(x)


class Row(np.ndarray):
    """Array with a name, which its constructor needs."""

    def __new__(cls, data, name):
        made = np.asarray(data).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, source):
        self.name = getattr(source, "name", None)


class Color(enum.Enum):
    RED = 1.0

    def at(self, x):
        return self.value * math.sin(x)


def test_code_may_ask_for_the_class_of_a_class():
    """Code that takes a class or an object, and asks `type(x) == type` which one it got, takes the same branch."""

    def f(x):
        kinds = [type(kind) for kind in (Plain, Counted, Row, Color)]
        assert kinds == [type, Counting, type, enum.EnumMeta]
        assert kinds == [kind.__class__ for kind in (Plain, Counted, Row, Color)]
        made = [kind() if type(kind) == type else kind for kind in (Plain, Plain())]  # noqa: E721
        made.append(type(Counted)("Further", (Counted,), {})())
        return sum(one.at(x) for one in made) + Color.RED.at(x) + Row([x, x], "a").sum()

    assert grad(f)(0.0) == 6.0


def test_copies_of_an_array_of_a_program_keep_its_class():
    def f(x):
        row = Row(x, "a")
        deep, shallow = copy.deepcopy(row), copy.copy(row)
        deep[0] = 5.0
        shallow *= 2.0
        assert (type(deep), deep.name, shallow.name) == (Row, "a", "a")
        return (row * shallow + deep).sum()

    assert grad(f)(np.array([1.0, 2.0])).tolist() == [4.0, 9.0]


class Shape:
    """Base of classes with parameters that a program collects over the bases."""

    size = 2.0


class Square(Shape):
    corners = 4.0

    def parameters(self):
        return [v for kind in type(self).__mro__ for v in vars(kind).values() if isinstance(v, float)]

    def at(self, x):
        return sum(self.parameters()) * math.sin(x)


def test_bases_of_a_rebuilt_class_are_those_of_the_program():
    def f(x):
        kind = type(square)
        assert [base.__name__ for base in kind.__mro__] == ["Square", "Shape", "object"]
        assert (kind.__bases__, kind.__base__, Shape.__bases__) == ((Shape,), Shape, (object,))
        further = type("Further", (Square,), {"more": 5.0})
        assert further.__bases__ == (Square,)
        return square.at(x) + further().at(x)

    square = Square()
    assert grad(f)(0.0) == 6.0 + 11.0


class Slotted:
    """Object without a dictionary, whose attributes a program looks up by its slots."""

    __slots__ = ("left", "right")

    def __init__(self):
        self.left, self.right = 2.0, 3.0

    def at(self, x):
        return sum(getattr(self, name) for name in self.__slots__) * math.sin(x)


def test_slots_of_a_rebuilt_class_are_those_of_the_program():
    assert grad(Slotted().at)(0.0) == 5.0
    assert grad(lambda x: Slotted().at(x))(0.0) == 5.0


class Readable(abc.ABC):
    """Abstract class under which a program registers others."""

    @abc.abstractmethod
    def at(self, x): ...


Readable.register(Slotted)


def test_registered_classes_are_subclasses_of_an_abstract_class():
    def f(x):
        assert isinstance(slotted, Readable)
        assert issubclass(Slotted, Readable)
        assert not isinstance(square, Readable)
        return slotted.at(x) + square.at(x)

    slotted, square = Slotted(), Square()
    assert grad(f)(0.0) == 11.0


class Shared:
    """Object that holds one array under several names."""

    def __init__(self):
        self.rows = np.array([1.0, 2.0])
        self.same, self.listed = self.rows, [self.rows]

    def filled(self, x):
        self.rows[0] = math.sin(x)
        return self.rows.sum()

    def copied(self, x):
        made = copy.deepcopy(self)
        made.rows[0] = math.sin(x)
        assert copy.copy(self).same is self.rows
        return made.same[0] + 2.0 * made.listed[0][0] + self.rows[0]


def test_deep_copies_share_what_the_object_shares():
    assert grad(Shared().filled)(0.0) == 1.0  # from now on, views have the array from the beginning
    value, slope = value_and_grad(Shared().copied)(0.0)
    assert (value, slope) == (1.0, 3.0)


REGISTERED = {}


class Registering(abc.ABCMeta):
    """Metaclass that computes an attribute from the class's body, and registers the class."""

    def __new__(cls, name, bases, body):
        made = super().__new__(cls, name, bases, {**body, "count": float(sum(v is None for v in body.values()))})
        REGISTERED[name] = made
        return made


class Panel(metaclass=Registering):
    width = None
    height = None

    def at(self, x):
        return self.count * math.sin(x)


def test_metaclass_of_a_program_does_not_make_the_rebuilt_class():
    known = dict(REGISTERED)
    assert grad(Panel().at)(0.0) == 2.0
    assert known == REGISTERED
    assert grad(lambda x: sum(kind().at(x) for kind in REGISTERED.values()))(0.0) == 2.0


def test_local_variables_by_name():
    def f(x):
        first = math.sin(x)
        second = 2.0 * first
        return vars()["second"] + sum(v for name, v in vars().items() if name != "x") + second * vars(math)["cos"](x)

    assert grad(f)(0.0) == 2.0 + 3.0 + 2.0


class Pair:
    """Object that may refer to another one."""

    def __init__(self, scale):
        self.scale = scale

    def at(self, x):
        return self.scale * math.sin(x)


def test_objects_are_known_by_their_number():
    """Tables that were filled outside, and memos of `copy`, know objects by ``id(obj)``."""
    pair, other = Pair(2.0), Pair(3.0)
    pair.other, known = other, {id(pair): 5.0, id(other): 7.0}

    def f(x):
        seen = {id(pair), id(pair.other), id(other)}
        list(vars(other))  # from now on, the view does not refer to the object
        return known[id(pair)] * pair.at(x) + known[id(pair.other)] * other.at(x) + len(seen)

    assert value_and_grad(f)(0.0) == (2.0, 5.0 * 2.0 + 7.0 * 3.0)


class Namespace(ModuleType):
    """Class for modules, whose attributes a program reads from the class, as packages with several backends do."""

    pair = Pair(2.0)

    @classmethod
    def current(cls):
        return cls.pair


def test_classes_of_modules():
    def f(x):
        return Namespace.pair.at(x) + 2.0 * Namespace.current().at(x) + Namespace("made").pair.at(x)

    assert value_and_grad(f)(0.0) == (0.0, 8.0)
