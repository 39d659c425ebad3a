"""Global names of rebuilt functions: they see names that are rebound between calls, or during a call."""

import enum
import functools
import gc
import math
import sys
import types

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, value_and_grad
from funcgrad.numpy_code import rebuilding

SOURCE = """
import math
import numpy as np

rate = 2.0
flag = 1
table = {"a": 3.0}
data = np.ones(2)
calls = 0

def helper(x):
    return math.sin(x) * rate

def f(x):
    return float(helper(x)) + abs(x) * 0 + (x if flag is True else 0.0) + table["a"] * x + data[0] * x

def total(x):
    return sum([float(x), x])

def counted(x):
    global calls
    calls = calls + 1
    return math.sin(x) * calls + calls

def written(x):
    globals()["rate"] = 5.0
    return float(helper(x))

def evaluated(x):
    return eval("math.sin(x) * rate")

def scaled(x):
    return math.sin(x) * scaled.factor + float(x) * helper.power

scaled.factor, helper.power = 2.0, 1.0

def tallied(x):
    tallied.calls = getattr(tallied, "calls", 0) + 1
    return math.sin(x) * tallied.calls

def local(x):
    class Scaled:
        factor = rate
        where = __name__
        sine = math.sin(x) * factor
    assert Scaled.where == __name__
    return Scaled.sine
"""


@pytest.fixture
def module():
    found = types.ModuleType("rebinding_example")
    sys.modules[found.__name__] = found
    exec(compile(SOURCE, "<example>", "exec"), vars(found))
    yield found
    del sys.modules[found.__name__]


def test_names_rebound_between_calls(module):
    slope = grad(module.f)
    assert [slope(0.0) for _ in range(3)] == [6.0] * 3
    module.rate = 3.0
    assert slope(0.0) == 7.0
    module.flag = True  # equal to 1, but another object
    assert slope(0.0) == 8.0
    module.helper = lambda x: 10.0 * x
    assert slope(0.0) == 15.0
    module.table = {"a": 0.0}
    module.data = np.zeros(2)
    assert slope(0.0) == 11.0
    module.table["a"] = 2.0  # the same object
    module.data[0] = 1.0
    assert slope(0.0) == 14.0
    module.float = lambda x: 100.0 * x
    assert slope(0.0) == 1004.0
    del module.float
    assert slope(0.0) == 14.0
    module.abs = lambda x: np.inf
    assert np.isnan(module.f(0.0))
    del module.abs
    del module.helper
    with pytest.raises(NameError, match="helper"):
        slope(0.0)


def test_builtin_names_shadowed_by_module(module):
    slope = grad(module.total)
    assert [slope(1.0), slope(1.0)] == [2.0, 2.0]
    module.sum = lambda values: values[0] * 7.0
    assert slope(1.0) == 7.0
    del module.sum
    assert slope(1.0) == 2.0


def test_names_assigned_by_functions(module):
    slope = grad(module.counted)
    for _ in range(4):
        before = module.calls
        found = slope(0.0)
        assert found == module.calls > before
    module.calls = 10
    assert slope(0.0) == 11.0
    assert grad(module.written)(0.0) == 5.0
    assert module.rate == 5.0
    module.rate = 4.0
    assert grad(module.helper)(0.0) == 4.0


def test_names_in_exec_and_class_bodies(module):
    for rate in (2.0, 3.0):
        module.rate = rate
        assert grad(module.evaluated)(0.0) == rate
        assert grad(module.local)(0.0) == rate


def test_module_attributes_set_by_functions(module):
    def f(x):
        first = float(module.helper(x))
        module.rate = 7.0
        return first + float(module.helper(x))

    for _ in range(3):
        module.rate = 2.0
        assert grad(f)(0.0) == 9.0
        assert module.rate == 7.0


def test_function_attributes(module):
    """Attributes that a program sets between calls, and that a function sets itself."""
    assert grad(module.scaled)(0.0) == 3.0
    module.scaled.factor = 3.0
    module.helper.power = 4.0
    assert grad(module.scaled)(0.0) == 7.0
    del module.helper.power
    with pytest.raises(AttributeError, match="power"):
        grad(module.scaled)(0.0)
    grad(module.tallied)(0.0)
    before = module.tallied.calls
    assert grad(module.tallied)(0.0) == before + 1 == module.tallied.calls
    module.tallied.calls = 10
    assert grad(module.tallied)(0.0) == 11.0


RELOADED = """
import math

def helper(x):
    return math.sin(x) * RATE

def f(x):
    return helper(x) + 0.0 * float(x)

class Model:
    def run(self, x):
        return float(x) * self.rate

    @property
    def rate(self):
        return RATE
"""


def test_code_replaced_by_reloader_is_used():
    """IPython's autoreload assigns new code to the old functions of a module, and drops the new functions."""
    module, rates = types.ModuleType("reloaded"), (2.0, 5.0, 7.0)

    def versions(rate):
        names = {"__name__": "reloaded"}
        exec(RELOADED.replace("RATE", str(rate)), names)
        return [names["helper"], names["f"], names["Model"].run, names["Model"].rate.fget], names

    old, names = versions(rates[0])
    vars(module).update(names)
    model = names["Model"]()
    slopes = [grad(f) for f in (names["helper"], names["f"], model.run, lambda x: model.run(x) + names["f"](x))]
    assert [g(0.0) for g in slopes] == [2.0, 2.0, 2.0, 4.0]
    for rate in rates[1:]:
        new, other = versions(rate)
        for fun, replaced in zip(old, new, strict=True):
            fun.__code__ = replaced.__code__
        del new, other, replaced
        gc.collect()  # functions and their globals form reference cycles
        assert [g(0.0) for g in slopes] == [rate, rate, rate, 2 * rate]


class Base:
    def f(self, x):
        return float(x)


class Derived(Base):
    gain = property(lambda self: 1.0)

    def __init__(self, start=0.0):
        self.start = start

    def __call__(self, x):
        return self.f(x) * self.gain

    def with_super(self, x):
        return super().f(x) + self.scaled(x) + self.start

    @staticmethod
    def scaled(x):
        return float(x) * 2.0


MODEL = Derived()
PATCHES = {
    "method": (lambda x: Derived().f(x), Derived, "f", lambda self, x: float(x) * 5.0, 1.0, 5.0),
    "of the base": (lambda x: Derived().with_super(x), Base, "f", lambda self, x: float(x) * 3.0, 3.0, 5.0),
    "property": (lambda x: Derived()(x), Derived, "gain", property(lambda self: 4.0), 1.0, 4.0),
    "static": (lambda x: Derived.scaled(x), Derived, "scaled", staticmethod(lambda x: float(x) * 7.0), 2.0, 7.0),
    "call": (lambda x: MODEL(x), Derived, "__call__", lambda self, x: float(x) * 9.0, 1.0, 9.0),
    "init": (
        lambda x: Derived(float(x)).start,
        Derived,
        "__init__",
        lambda self, start: setattr(self, "start", float(start) * 6.0),
        1.0,
        6.0,
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_methods_assigned_to_class_are_used(name, monkeypatch):
    f, cls, member, other, before, after = PATCHES[name]
    slope = grad(f)
    assert slope(0.3) == before
    with monkeypatch.context() as patch:
        patch.setattr(cls, member, other)
        assert slope(0.3) == grad(f)(0.3) == after
    assert slope(0.3) == before


#: Programs, and changes of what they are made of.
CHANGING = {
    "method of a list": (
        """
class Stack(list):
    def f(self, x):
        return math.sin(x) * len(self)

stack = Stack([1.0, 2.0])
held = {"stack": stack}
del Stack

def f(x):
    return held["stack"].f(x)
""",
        ["type(stack).f = lambda self, x: math.cos(x)", "stack.append(1.0)", "type(stack).f = lambda self, x: x**3"],
    ),
    "class in a variable of a closure": (
        """
def made():
    class Scaled:
        def f(self, x):
            return math.sin(x)

    return lambda x: Scaled().f(x), Scaled

f, cls = made()
del made
held = [cls]
del cls
""",
        ["held[0].f = lambda self, x: math.cos(x)", "held[0].f = lambda self, x: x**3"],
    ),
    "class in a default": (
        """
class Scaled:
    def f(self, x):
        return math.sin(x)

def f(x, cls=Scaled):
    return cls().f(x)

del Scaled
""",
        [f"f.__defaults__[0].f = lambda self, x: {other}" for other in ("math.cos(x)", "x**3")],
    ),
    "class in a tuple": (
        """
class Scaled:
    def f(self, x):
        return math.sin(x)

kinds, nested = (Scaled,), ((math.sin, (Scaled,)),)
del Scaled

def f(x):
    return kinds[0]().f(x) + nested[0][1][0]().f(x)
""",
        [f"kinds[0].f = lambda self, x: {other}" for other in ("math.cos(x)", "x**3")],
    ),
    "method of an enumeration": (
        """
class Kind(enum.Enum):
    A = 1.0
    B = 2.0

    def f(self, x):
        return math.sin(x) * self.value * getattr(self, "rate", 1.0)

def f(x):
    return Kind.A.f(x) + Kind.B.f(x)
""",
        [
            "Kind.f = lambda self, x: math.cos(x) * getattr(self, 'rate', 3.0)",
            "Kind.B.rate = 3.0",
            "Kind.A.rate = Kind.B.rate = 4.0",
        ],
    ),
    "method of a class derived from ndarray": (
        """
class Signal(np.ndarray):
    rate = 2.0

    def f(self, x):
        return float(math.sin(x) * self.dot([1.0, 2.0])) * self.rate

signal = np.ones(2).view(Signal)

def f(x):
    return signal.f(x)
""",
        ["Signal.f = lambda self, x: math.cos(x) * self.rate", "Signal.rate = 3.0", "Signal.f = lambda self, x: x**3"],
    ),
    "method of a metaclass": (
        """
class Meta(type):
    def g(cls, x):
        return math.sin(x) * cls.rate

class Scaled(metaclass=Meta):
    rate = 2.0

def f(x):
    return Scaled.g(x)
""",
        ["Meta.g = lambda cls, x: math.cos(x) * cls.rate", "Scaled.rate = 3.0", "Meta.g = lambda cls, x: x**3"],
    ),
    "methods that are new": (
        """
class Scaled:
    def f(self, x):
        return sum([math.sin(x), *[getattr(self, name)(x) for name in "abcde" if hasattr(self, name)]])

def f(x):
    return Scaled().f(x)
""",
        [f"Scaled.{name} = lambda self, x: math.cos(x)" for name in "abcde"],
    ),
    "None, then a function": (
        """
class Scaled:
    hook = None

    def f(self, x):
        return math.sin(x) if self.hook is None else self.hook(x)

def f(x):
    return Scaled().f(x) * (1.0 if f.hook is None else f.hook(x))

f.hook = None
""",
        [
            *["Scaled.hook = lambda self, x: math.cos(x)", "Scaled.hook = None"] * 4,
            *["f.hook = math.cos", "f.hook = None"] * 4,
        ],
    ),
    "what is registered": (
        """
class Scaled:
    @functools.singledispatchmethod
    def f(self, kind, x):
        return math.sin(x)

def f(x):
    return Scaled().f("kind", x)
""",
        [f"vars(Scaled)['f'].register(str, lambda self, kind, x: {other})" for other in ("math.cos(x)", "x**3")],
    ),
    "objects in a cache": (
        """
@functools.cache
def settings(name="one", *, size=(2, 3)):
    return types.SimpleNamespace(rate=2.0, wave=math.sin)

class Kept:
    rate = 2.0

    @classmethod
    @functools.cache
    def only(cls):
        return cls()

settings(), settings("two", size=(1, 2)), Kept.only()

def f(x):
    one, two = settings(), settings("two", size=(1, 2))
    return one.wave(x) * one.rate + two.wave(x) * two.rate + x * Kept.only().rate
""",
        [
            *["settings().rate = 3.0", "settings('two', size=(1, 2)).wave = math.cos", "Kept.only().rate = 5.0"],
            *["settings.cache_clear()", "settings().rate = 4.0; settings('two', size=(1, 2)).rate = 7.0"],
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_programs_that_change_between_calls(name):
    text, changes = CHANGING[name]
    module = types.ModuleType("changing_example")
    exec(f"import enum, functools, math, types\nimport numpy as np\n{text}", vars(module))
    for change in ("", *changes):
        exec(change, vars(module))
        for _ in range(2):
            value, found = value_and_grad(module.f)(0.7)
            assert value == pytest.approx(module.f(0.7), rel=1e-14), change
            assert found == pytest.approx(differences(module.f, 0.7), rel=1e-8), change


class Counted:
    rate = 2.0
    last = 0.0

    def f(self, x):
        kind = type(self)
        kind.last = math.sin(x) * kind.rate
        kind.rate = 7.0
        return self.last

    def g(self, x):
        return math.cos(x) * self.last


class CountedEnum(enum.Enum):
    A = 1.0

    def f(self, x):
        self.last = math.sin(x) * getattr(self, "rate", 2.0)
        self.rate = 7.0
        return self.last

    def g(self, x):
        return math.cos(x) * getattr(self, "last", 0.0)


class CountedArray(np.ndarray):
    rate = 2.0
    last = 0.0
    f, g = Counted.f, Counted.g


@pytest.mark.parametrize("make", [Counted, lambda: CountedEnum.A, lambda: np.ones(2).view(CountedArray)])
def test_what_a_run_writes_to_a_class_or_member_is_gone_after_it(make):
    first, last = (lambda x: make().f(x)), (lambda x: make().g(x))
    for _ in range(2):
        assert grad(first)(0.7) == pytest.approx(2.0 * math.cos(0.7), rel=1e-14)
        assert value_and_grad(last)(0.7) == (0.0, 0.0)
    kind = type(make())
    kind.rate = 3.0
    if isinstance(make(), enum.Enum):
        make().rate = 3.0
    assert grad(first)(0.7) == pytest.approx(3.0 * math.cos(0.7), rel=1e-14)


@functools.lru_cache
def nodes(count):
    return np.linspace(0.0, 1.0, count)


def with_cache(x):
    nodes.cache_clear()
    total = sum(math.sin(x * float(node)) for node in nodes(3))
    return total * nodes.cache_info().maxsize


def test_cache_of_a_program_is_cleared_in_a_run():
    nodes(2)
    expected = sum(node * math.cos(0.7 * node) for node in (0.0, 0.5, 1.0)) * 128
    assert grad(with_cache)(0.7) == pytest.approx(expected, rel=1e-14)
    assert nodes.cache_info().currsize <= 1


def namespace_with_function(rate):
    names = {"math": math, "rate": rate}
    exec("def f(x):\n    return math.sin(x) * rate", names)
    return names


def test_names_of_many_namespaces():
    kept = [namespace_with_function(float(i)) for i in range(1, 101)]
    for names in kept:
        assert grad(names["f"])(0.0) == names["rate"]
    watched = rebuilding._TRANSLATORS[rebuilding.FUNCTIONS].watched
    assert len(watched.passing) <= 32
    for names in kept:  # most are not watched any more
        names["rate"] += 0.5
        assert grad(names["f"])(0.0) == names["rate"]
    for names in reversed(kept):
        names["rate"] += 0.5
        assert grad(names["f"])(0.0) == names["rate"]


def test_namespace_that_is_forgotten_during_run():
    names = namespace_with_function(2.0)

    def many(x):
        first = names["f"](x)
        for i in range(40):
            exec(f"def g(x):\n    return math.sin(x) * rate + {i}", made := {"math": math, "rate": 3.0})
            first = first + made["g"](x)
        return first + names["f"](x)

    assert grad(many)(0.0) == 2.0 + 40 * 3.0 + 2.0
    names["rate"] = 4.0
    assert grad(many)(0.0) == 4.0 + 40 * 3.0 + 4.0
