"""Arrays with fields in unchanged programs: traced values are written to fields and records."""

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, hessian, jvp, vmap
from funcgrad.errors import ConversionError

X = np.array([0.7, 1.4, 2.3, 0.4])
PARTICLE = np.dtype([("position", float, 2), ("mass", float), ("name", "U4"), ("n", int)])
PAIR = np.dtype([("u", float), ("v", float)])
PAIRS = np.array([(3.0, 4.0), (7.0, 8.0)], dtype=PAIR)
NESTED = np.dtype([("at", [("x", float), ("y", float)]), ("w", float)])


def particles(x):
    s = np.zeros(4, dtype=PARTICLE)
    s["mass"] = [1.0, 2.0, 3.0, 4.0]
    s["position"][:, 0] = x
    s["position"][:, 1] = x[::-1] ** 2
    s["name"] = ["a", "b", "c", "d"]
    return s


def fields(x):
    s = particles(x)
    s["mass"] *= x
    s["position"] += 0.1 * s["mass"][:, None]
    heavy = s[s["mass"] > 1.0]
    return (s["mass"][:, None] * s["position"]).sum() + (heavy["mass"] ** 2).sum() + len(heavy) + s["n"].sum()


def records(x):
    s = particles(x)
    one = s[1]
    one["mass"] = x[0] * x[1]
    s[2]["position"][1] = x[2] ** 3
    s[0] = ((x[0], 2.0), x[3], "e", 3)
    s[3] = s[1]
    return sum(r["mass"] * r["position"].sum() for r in s) + s[0]["n"] + one[1]


def parts(x):
    s = particles(x)
    ahead = s[1:]
    ahead["mass"][0] = x[0] ** 2
    both = s[["mass", "position"]]
    both["mass"][3] = x[3] * x[2]
    return s["mass"] @ x + ahead["position"].sum() * both["mass"].prod()


def rows(x):
    s = np.array([(1.0, x[0]), (2.0, x[1] ** 2)], dtype=[("t", float), ("v", float)])
    s = np.append(s["v"], [t * v for t, v in s])
    one = np.array((x[2], 3), dtype=[("a", float), ("b", int)])
    return (s**2).sum() + one["a"] * one["b"]


def sorted_records(x):
    s = particles(x)
    s.sort(order="mass")
    t = s[np.argsort(-s["position"][:, 0])].copy()
    t["mass"][0] = 5.0
    return t["mass"] @ t["position"][:, 0] + s["mass"][0]


def sorted_copies(x):
    s = particles(-x)
    s["n"] = [1, 0, 1, 0]
    by_number = np.sort(s, order=["n", "name"])
    by_mass = s[np.argsort(s, order="mass")[::-1]]
    s["mass"] = x
    table = np.zeros((2, 2), dtype=[("n", int), ("v", float)])
    table["n"], table["v"] = [[2, 1], [1, 3]], x.reshape(2, 2)
    in_columns, whole = np.sort(table, axis=0, order="n"), np.sort(table, axis=None)
    rows = np.arange(4.0).reshape(2, 2) * (np.sort(table)["v"] + in_columns["v"] ** 2)
    return (
        (by_number["position"] * by_mass["position"]).sum()
        + np.sort(s, order="mass")["mass"] @ x
        + rows.sum()
        + (np.arange(4.0) @ whole["v"] + np.size(s) * np.copy(s)["mass"][2] * np.sort(table[0], order=["v"])["n"][0])
    )


def sorted_by_fields_in_fields(x):
    s = np.zeros(3, dtype=NESTED)
    s["at"]["x"], s["at"]["y"], s["w"] = [1.0, 0.0, 1.0], [2.0, 1.0, 1.0], x[:3]
    return np.sort(s, order="at")["w"] @ x[1:]


def record_arrays(x):
    r = np.rec.fromarrays([x, x**2], names="a,b")
    r.b[1] = x[0]
    r.a = r.a * 2.0
    q = np.recarray((2,), dtype=[("u", float), ("v", float)])
    q.u, q["v"] = x[:2], x[2:]
    p = np.rec.array([(x[0], 1.0), (x[1], 2.0)], dtype=[("u", float), ("v", float)])
    p[0].v = x[3]
    return (r.a * r.b).sum() + (q.u * q.v).sum() + p.u @ p.v + np.zeros(2, NESTED).view(np.recarray).w.sum() * x[0]


def nested(x):
    s = np.empty(2, dtype=NESTED)
    s["at"]["x"] = x[:2]
    s["at"]["y"] = x[2:]
    s["w"] = 2.0
    s[1]["at"]["x"] = x[0] ** 2
    return (s["at"]["x"] * s["at"]["y"] * s["w"]).sum()


def several_fields(x):
    r = np.zeros(3, dtype=[("a", float), ("b", float), ("n", int)])
    r["a"] = r["b"] = x[:3]
    other = np.array([(5, 2.0), (6, 3.0), (7, 4.0)], dtype=[("n", int), ("v", float)])
    r[["n", "b"]] = other
    r[["a", "b"]][1] = (x[3] ** 2, x[0])
    return (r["a"] * r["n"]).sum() + (r["b"] ** 2).sum()


def written_from_outside(x):
    s = np.zeros(4, dtype=PAIR)
    s["u"] = x
    s[1:3] = PAIRS
    t = np.zeros(3, dtype=NESTED)
    t["w"] = x[:3]
    t[1:] = np.array([((1.0, 2.0), x[3])], dtype=NESTED)
    t[:1] = np.array([((x[0], x[1]), 5.0)], dtype=NESTED)
    return s["u"] @ x + s["v"].sum() * x[0] + (t["at"]["x"] * t["w"]).sum() + t["at"]["y"] @ x[:3]


def views(x):
    r = np.zeros(4, dtype=PAIR)
    whole, ahead, last = r.view(float).reshape(4, 2), r[1:], r[3]
    pairs = ahead.view((float, 2))
    r["u"], r["v"][:2] = x, x[2:] * 2.0
    last["v"] = x[0] ** 2
    pairs[0] = x[1:3] ** 3
    whole[2, 1] = 5.0 * x[3]
    kept = r.copy()
    r.view(np.recarray).view(np.ndarray).view(float)[0] = x[3] ** 2
    table = np.zeros((2, 2), dtype=PAIR)
    table.view(float)[1] = x
    return (
        (whole[:, 0] * whole[:, 1]).sum() * kept["u"][0] + ahead.view(float).sum() + (table["u"] ** 2).sum() + r["u"][0]
    )


def same_memory(x):
    r, base = np.zeros(4, dtype=PAIR), np.zeros(4, dtype=PAIR)
    np.asarray(r)["u"][0] = 5.0
    np.asarray(r, dtype=PAIR)["u"][1] = x[1]
    np.array(r)["u"] = 7.0
    np.array(r, PAIR)["u"] = 7.0
    np.array(r, copy=None)["v"] = x
    other = np.rec.array(base)
    other.u = x**2
    r.reshape(2, 2)["u"][1, 0] = x[2] ** 2
    np.reshape(r, (2, 2)).ravel()["u"][3] = x[3]
    return r["u"] @ r["v"] + base["u"].sum() + other.u @ x


def converted(x):
    r = np.zeros(3, dtype=NESTED)
    r["at"]["x"], r["w"] = x[:3], x[1:]
    s = np.zeros((2, 2), dtype=PARTICLE)
    s["mass"] = x.reshape(2, 2)
    s["position"][0, 1] = x[:2]
    t = r[["w"]].astype([("n", float)])
    rows, shapes = r.tolist(), s.reshape(4)["position"][1] @ x[:2] + s.reshape(1, 4)["mass"][0] @ x
    one = np.array((x[0], 2.0), dtype=PAIR)
    counts = len(rows) + r.itemsize + r.nbytes + r.size + len(r[0]) + len(r[1].tolist()) + one.tolist()[1]
    return t["n"] @ x[:3] * counts + rows[1][0][0] ** 2 + r[2].item()[1] + shapes + one.tolist()[0]


def record_attributes(x):
    r = np.zeros(3, dtype=PAIR).view(np.recarray)
    r.u = x[:3]
    known = [hasattr(part, name) for part in (r, r[1]) for name in ("u", "other")]
    return r[1].u ** 2 * known.count(True) + getattr(r[0], "other", x[3])


def constants_of_a_rebuilt_run(x):
    y = np.zeros(4)
    y[0] = x[0] ** 2
    r = np.zeros(4, dtype=PAIR)
    r["u"] = [1.0, 2.0, 3.0, 4.0]
    same = (r == r).sum() + (r == PAIRS[0]).sum() + (r[1] == r[1]) + (r != r[2]).sum()
    shown = "u" in repr(r) and len(r.tobytes()) == r.nbytes
    return y.sum() * (same + shown) + np.asarray(r)["u"] @ x + np.asarray(r[1])["u"] * x[1] + r[2].item()[0] * x[2]


def constants(x):
    table = np.array([("a", 1.0), ("b", 2.0)], dtype=[("name", "U1"), ("value", float)])
    known = {row["name"]: float(row["value"]) for row in table}
    in_order = np.sort(table, order="value")
    return x.sum() * known["b"] + x[0] * in_order["value"][0] + len(table.tolist()) * x[1]


def copied(x):
    """Record arrays of structured arrays: copies, unless a program asks for the memory itself."""
    source, named = np.zeros(4, [("a", float), ("b", float)]), np.rec.array([(1.0, 2.0), (3.0, 4.0)], names="u,v")
    own, shared = np.rec.array(source), np.rec.array(source, copy=False)
    own.a = np.sin(x)
    shared.b = x**2
    return (own.a * source["b"]).sum() + (own.b + source["a"] + own.a[0]).sum() * named.v[1]


PROGRAMS = [
    copied,
    *(fields, records, parts, rows, sorted_records, sorted_copies, sorted_by_fields_in_fields, record_arrays, nested),
    *(several_fields, constants, written_from_outside, views, same_memory, converted, record_attributes),
    constants_of_a_rebuilt_run,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_programs(f):
    found = grad(f)(X)
    np.testing.assert_allclose(found, differences(f, X, 2e-4), rtol=1e-8, atol=1e-8)
    assert jvp(f, (X,), (X,)) == pytest.approx((float(f(X)), found @ X), rel=1e-12)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12)


def test_results_are_arrays_unless_a_field_is_traced():
    _, table = grad(lambda x: (particles(x)["mass"] @ x, np.ones(2, PARTICLE)), has_aux=True)(X)
    assert type(table) is np.ndarray
    assert table.dtype == PARTICLE
    with pytest.raises(ConversionError, match=r"an array with fields: .* the field 'position'"):
        jvp(particles, (X,), (X,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.view(float), r"its view must have the dtype of all fields, got float64 for"),
        (lambda s: s == s, r"takes no traced values in it, got the field 'position'"),
        (lambda s: s.tobytes(), r"takes no traced values in it, got the field 'position'"),
    ],
    ids=["view", "comparison", "bytes"],
)
def test_refused(call, message):
    with pytest.raises(ConversionError, match=message):
        grad(lambda x: (call(particles(x)), x.sum())[1])(X)


def test_unknown_fields():
    with pytest.raises(AttributeError, match="an array with fields that takes traced values has no attribute 'u'"):
        grad(lambda x: particles(x).u.sum())(X)
    with pytest.raises(AttributeError, match="a record has no attribute 'u'"):
        grad(lambda x: particles(x)[0].u)(X)
