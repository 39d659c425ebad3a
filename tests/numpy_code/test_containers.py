"""Large containers of the program: dictionaries whose values are translated when they are looked up."""

import copy
import logging
import math
import pickle

import numpy as np
import pytest
from helpers import close, differences

from funcgrad import as_written, grad, tree, vmap
from funcgrad.interop import from_numpy
from funcgrad.numpy_code.containers import Registry


class Unit:
    """An object whose method has to be rebuilt: ``math.sin`` takes no traced number as it stands."""

    def __init__(self, factor):
        self.factor, self.used = factor, 0

    def of(self, x):
        self.used += 1
        return self.factor * math.sin(x)

    def __eq__(self, other):
        return self.factor == other.factor


UNITS = {f"u{i}": Unit(0.1 * i + 0.3) for i in range(100)}
LINES = {f"u{i}": [Unit(0.1 * i), {"a": Unit(0.2)}] for i in range(100)}


def keyword_sum(x, **units):
    return sum(unit.of(x) for unit in units.values())


def replaced(x):
    UNITS["u5"] = Unit(x)
    UNITS["new"] = UNITS["u5"]
    UNITS["u9"].factor = x
    del UNITS["u8"]
    return UNITS["new"].of(x) + UNITS["u5"].of(x) + UNITS["u9"].of(x) + len(UNITS) + ("u8" in UNITS)


def inserted(x):
    mine = UNITS.setdefault("mine", Unit(x))
    UNITS.update({"u1": Unit(2 * x)}, u2=Unit(3 * x))
    units = UNITS
    units |= {"u3": Unit(4 * x)}
    return mine.of(x) + UNITS.setdefault("u4").of(x) + sum(UNITS[f"u{i}"].of(x) for i in (1, 2, 3))


def taken(x):
    last = UNITS.popitem()[1]
    return UNITS.pop("u7").of(x) + UNITS.pop("none", Unit(x)).of(x) + last.of(x) + len(UNITS)


PROGRAMS = {
    "an item": lambda x: UNITS["u3"].of(x) * UNITS["u3"].of(2 * x),
    "get": lambda x: UNITS.get("u3").of(x) + UNITS.get("none", Unit(2.0)).of(x) + (UNITS.get("none") is None),
    "nested": lambda x: LINES["u7"][0].of(x) + LINES["u7"][1]["a"].of(x),
    "values": lambda x: sum(unit.of(x) for unit in UNITS.values()),
    "items": lambda x: sum(len(name) * unit.of(x) for name, unit in UNITS.items()),
    "keys": lambda x: (
        sum(UNITS[name].of(x) for name in UNITS) + sum(UNITS[name].of(x) for name in sorted(UNITS.keys()))
    ),
    "reversed": lambda x: UNITS[next(reversed(UNITS))].of(x),
    "dict": lambda x: dict(UNITS)["u3"].of(x) + dict(UNITS, u4=Unit(x))["u4"].of(x),
    "unpacked": lambda x: {**UNITS, "u4": Unit(x)}["u9"].of(x) + keyword_sum(x, **UNITS),
    "joined": lambda x: (UNITS | {"a": Unit(x)})["u3"].of(x) + ({"a": Unit(x)} | UNITS)["u3"].of(x),
    "updated": lambda x: (found := {}, found.update(UNITS))[0]["u3"].of(x),
    "copied": lambda x: UNITS.copy()["u3"].of(x) + copy.copy(UNITS)["u4"].of(x) + copy.deepcopy(UNITS)["u5"].of(x),
    "compared": lambda x: UNITS["u3"].of(x) * (dict(UNITS) == UNITS) * ({"u3": UNITS["u3"]} != UNITS),
    "classes": lambda x: UNITS["u3"].of(x) * (type(UNITS) is UNITS.__class__ is dict) * isinstance(UNITS, dict),
    "contained": lambda x: UNITS["u3"].of(x) * ("u3" in UNITS) + ("none" in UNITS) + len(UNITS) + bool(UNITS),
    "matched": lambda x: matched(UNITS, x),
    "text": lambda x: UNITS["u3"].of(x) * repr(UNITS).count("Unit"),
    "evaluated": lambda x: eval("u3.of(x) + u4.factor", {"x": x}, UNITS),
    "formatted": lambda x: UNITS["u3"].of(x) * len("{u3.factor:.3f}".format(**UNITS)),
    "replaced": replaced,
    "inserted": inserted,
    "taken": taken,
}


def matched(units, x):
    match units:
        case {"u3": unit, **rest}:
            return unit.of(x) + rest["u4"].of(x) + len(rest)


@pytest.mark.parametrize("name", PROGRAMS)
def test_large_dictionaries_of_objects(name):
    program = PROGRAMS[name]

    def plain(x):
        before = [dict(UNITS), [(unit, unit.factor, unit.used) for unit in UNITS.values()]]
        try:
            return program(float(x))
        finally:
            UNITS.clear()
            UNITS.update(before[0])
            for unit, factor, used in before[1]:
                unit.factor, unit.used = factor, used

    program_state = [list(UNITS), [(unit.factor, unit.used) for unit in UNITS.values()]]
    want, slope = plain(0.7), differences(plain, 0.7)
    once = from_numpy(program)  # it writes to objects, so it must not run straight before
    for _ in range(2):  # the first call learns which classes are rebuilt
        close(grad(once)(0.7), slope, 1e-8)
    close(vmap(once)(np.array([0.7, 0.7])), [want, want])
    assert [list(UNITS), [(unit.factor, unit.used) for unit in UNITS.values()]] == program_state


def test_values_are_translated_when_they_are_looked_up():
    asked = []

    def translate(value):
        asked.append(value)
        return value + 0.5, False

    found = Registry({"a": 1, "b": 2, "c": 3}, translate, {"a": 1.5})
    assert (found["a"], found.get("b"), found["b"], found.get("d")) == (1.5, 2.5, 2.5, None)
    assert (list(found), len(found), "c" in found, asked) == (["a", "b", "c"], 3, True, [2])
    with pytest.raises(KeyError, match="d"):
        found["d"]
    assert found.as_is() == {"a": 1.5, "b": 2.5, "c": 3}
    assert asked == [2]
    assert dict(found) == {"a": 1.5, "b": 2.5, "c": 3.5}
    assert asked == [2, 3]
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is dict
    assert again == found


def test_registry_that_changes_between_calls():
    units = {f"u{i}": Unit(0.1 * i + 0.3) for i in range(100)}
    fun = from_numpy(lambda x: units["u3"].of(x))
    close(grad(fun)(0.7), 0.6 * math.cos(0.7))
    units["u3"] = Unit(7.0)
    close(grad(fun)(0.7), 7.0 * math.cos(0.7))
    units["u3"].factor = 5.0
    close(grad(fun)(0.7), 5.0 * math.cos(0.7))
    assert units["u3"].used == 0


def test_large_containers_that_hold_nothing_to_rebuild():
    """They stay the program's own, as caches do, and are looked at again when they have changed."""
    log = logging.getLogger("funcgrad.test")
    table = {f"k{i}": (1.0 * i, log, ("name", i)) for i in range(100)}
    rows = [(0.5 * i, log) for i in range(100)]

    @from_numpy
    def fun(x):
        table["latest"] = (2.5, log)
        rows.append((3.5, log))
        weight, row = table["k7"], rows[3]
        return (weight.of(x) if isinstance(weight, Unit) else weight[0] * math.sin(x)) + row[0] * math.cos(x)

    for count in (1, 2, 3):
        close(grad(fun)(0.7), 7 * math.cos(0.7) - 1.5 * math.sin(0.7))
        assert table["latest"] == (2.5, log)
        assert rows[100:] == [(3.5, log)] * count
    table["k7"] = Unit(4.0)
    close(grad(fun)(0.7), 4 * math.cos(0.7) - 1.5 * math.sin(0.7))
    rows[3] = (9.0, log)
    close(grad(fun)(0.7), 4 * math.cos(0.7) - 9.0 * math.sin(0.7))


def test_tuples_of_functions_and_of_objects():
    functions = tuple(math.sin if i % 2 else math.cos for i in range(50))
    units = (Unit(2.0), functions, [Unit(3.0)])
    fun = from_numpy(lambda x: functions[1](x) + units[0].of(x) + units[1][0](x) + units[2][0].of(x))
    slope = 6 * math.cos(0.7) - math.sin(0.7)
    close(grad(fun)(0.7), slope)
    units[0].factor, units[2][0].factor = 3.0, 4.0
    close(grad(fun)(0.7), slope + 2 * math.cos(0.7))
    units[2][0] = Unit(1.0)
    close(grad(fun)(0.7), slope - math.cos(0.7))


def test_large_dictionaries_of_arrays_are_trees():
    weights = {f"w{i}": {"a": np.full(2, 0.1 * i)} for i in range(50)}

    def fun(x):
        total = sum(float(np.sum(leaf)) for leaf in tree.leaves(weights))
        inner = grad(lambda w: np.sum(w["w3"]["a"] ** 2))(weights)
        return total * math.sin(x) + inner["w3"]["a"][0]

    close(grad(fun)(0.7), sum(0.2 * i for i in range(50)) * math.cos(0.7))
    with as_written():
        close(fun(0.7), sum(0.2 * i for i in range(50)) * math.sin(0.7) + 0.6)
