"""Special functions at the ends of their arguments: derivatives of two orders in both modes, against a table.

``docs/special_extremes.py`` writes the table with mpmath. A row has the derivatives of order 0 to 3, or the reason
why there are none. The tests skip a row if SciPy's value is wrong, NaN or infinite, if mpmath's derivative is not
real or not a limit, and if ``EXCLUDED`` lists the row.
"""

import importlib.util
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import funcgrad.scipy.special as fsp
from funcgrad import jvp, vjp

HERE = Path(__file__).resolve().parent
TABLE = json.loads((HERE / "special_extremes.json").read_text())
#: Functions that share the rows of another function.
ALIASES = {"jn": "jv", "jve": "jv", "yve": "yv", "psi": "digamma"}
CASES = [(name, i) for name in [*TABLE, *ALIASES] for i in sorted({i for i, _, _ in TABLE[ALIASES.get(name, name)]})]
EPS = 2.0**-52
#: Derivatives that are differences of values: accurate relative to the function's size, not to their own size.
BY_DIFFERENCES = {
    *[(name, 0) for name in ("jv", "jn", "jve", "yv", "yve", "iv", "ive", "struve", "modstruve", "hyp0f1")],
    *[(name, 0) for name in ("hankel1", "hankel2", "hankel1e", "hankel2e", "hyp1f1", "hyp2f1")],
    *[("hyp1f1", 1), ("hyp2f1", 1), ("hyp2f1", 2)],
    *[(name, 1) for name in ("eval_genlaguerre", "eval_gegenbauer", "eval_jacobi")],
    ("eval_jacobi", 2),
}


def large(i, size=1e9):
    return lambda p: abs(p[i]) >= size


def tiny(i, size=1e-9):
    return lambda p: abs(p[i]) <= size


def always(p):
    return True


#: Functions whose SciPy values take minutes for huge arguments.
ENDLESS = {"hyp1f1", "hyp2f1", "hyperu"}
OVERFLOWS = "the functions of both neighbouring orders overflow: NaN"
#: Exclusions: names, argument, condition on the point, orders, and reason.
EXCLUDED = [
    ("betainc", 0, tiny(0, 0.0), (1, 2), "NaN at 0, the end of the parameter's domain"),
    ("betainc", 1, tiny(1, 0.0), (1, 2), "NaN at 0, the end of the parameter's domain"),
    ("gammainc gammaincc", 0, tiny(0, 0.0), (1, 2), "NaN at 0, the end of the parameter's domain"),
    ("voigt_profile", 1, tiny(1, 1e-200), (1, 2), "NaN near 0, not at 0: the argument of wofz overflows"),
    ("hyperu", 0, lambda p: p[0] < -1e4, (1, 2), "the recurrence has too many steps"),
    ("hyperu", 1, lambda p: abs(p[1]) > 1e7, (1, 2), "the integral has too many terms"),
    ("pseudo_huber", 0, lambda p: math.copysign(1, p[0]) < 0, (1, 2), "SciPy returns inf for negative delta"),
    ("kl_div rel_entr xlogy entr", 0, tiny(0, 0.0), (2,), "the first derivative is infinite at 0"),
    (
        "airye",
        0,
        tiny(0, 0.0),
        (2,),
        "the scaling begins at 0: the second derivative is infinite only from the right",
    ),
    ("i1e", 0, tiny(0, 0.0), (2,), "a kink: the second derivative is that from the right"),
    ("ive", 1, tiny(1, 0.0), (2,), "the same"),
    ("voigt_profile", 2, lambda p: p[2] < 0, (1, 2), "for negative gamma the function is not a convolution"),
    ("betainc fdtr", 2, tiny(2, 1e-100), (2,), "the rule uses the first derivative, which underflows"),
    ("fdtr", 0, large(0), (1, 2), "huge degrees of freedom: the tail ends near 1, where digits are missing"),
    ("fdtr", 1, lambda p: p[1] > 1e9 or p[1] < 1e-9, (1, 2), "huge and tiny degrees of freedom: digits are missing"),
    ("fdtr", 2, large(2, math.inf), (1, 2), "infinity divided by infinity"),
    (
        "stdtr",
        0,
        lambda p: p[0] > 1e9 or p[0] < 1e-9,
        (1, 2),
        "tiny or huge degrees of freedom: 4 to 8 digits are right",
    ),
    ("agm", 0, tiny(0, 1e-200), (2,), "the second derivative overflows: NaN"),
    ("agm", 1, tiny(1, 1e-200), (2,), "the second derivative overflows: NaN"),
    ("inv_boxcox inv_boxcox1p", 0, large(0), (2,), "the second derivative overflows: NaN"),
    ("yn yv yve spherical_yn", 1, lambda p: abs(p[0]) >= 0.5 and p[1] <= 1, (1, 2), OVERFLOWS),
    ("spherical_yn spherical_kn", 1, tiny(1, 1e-200), (1, 2), OVERFLOWS),
    ("hankel1 hankel2 hankel1e hankel2e", 1, lambda p: abs(p[1]) <= 1, (1, 2), OVERFLOWS),
    ("hankel1e hankel2e", 1, lambda p: p[1] <= -1e9, (1, 2), "on the branch cut SciPy's neighbouring orders cancel"),
    ("spherical_in", 1, tiny(1, 1e-200), (1, 2), "SciPy's spherical_in(0, 1e-300) is 0; the correct value is 1"),
    (
        "jv jn jve yv yve iv ive struve modstruve hankel1 hankel2 hankel1e hankel2e",
        0,
        large(0),
        (1, 2),
        "differences in the order have too few digits",
    ),
    ("yv yve hankel1 hankel2 hankel1e hankel2e", 0, lambda p: abs(p[0]) > 90 and p[1] <= 1, (1, 2), "values overflow"),
    ("hyp0f1", 0, large(0), (1, 2), "the derivative is too small for differences of the function"),
    ("eval_genlaguerre eval_gegenbauer eval_jacobi", 1, large(1), (1, 2), "as for hyp0f1"),
    ("eval_jacobi", 2, large(2), (1, 2), "as for hyp0f1"),
    ("binom", 1, large(1), (1, 2), "the rule multiplies an infinite digamma by 0"),
    ("binom poch perm", 0, large(0, 1e299), (2,), "the square of the argument overflows"),
    ("poch", 0, lambda p: p[0] <= -1e9, (1, 2), "both gamma functions have a pole there"),
    ("rgamma", 0, lambda p: p[0] <= -1e9, (1, 2), "the function oscillates without bound"),
    ("ive", 1, lambda p: abs(p[0]) == 0.5 and abs(p[1]) < 1e-200, (1, 2), "SciPy's ive(-0.5, 0) is NaN"),
    ("struve", 0, lambda p: p == (700.0, 700.0), (2,), "SciPy's values have 10 correct digits there"),
    ("struve", 1, large(1, 1e299), (1, 2), "the power in the first term of the sum overflows or vanishes"),
    ("voigt_profile", 1, large(1, math.inf), (2,), "infinity divided by infinity"),
    ("struve", 1, lambda p: p[0] >= 300 and abs(p[1]) > 1e9, (1, 2), OVERFLOWS),
    ("logit", 0, tiny(0, 1e-200), (2,), "the second derivative overflows: NaN in reverse mode"),
    ("fresnel", 0, large(0, math.inf), (1, 2), "the derivatives oscillate and have no limit"),
]


def number(text):
    """Return a float or complex number of the table."""
    return complex(*map(number, text)) if isinstance(text, list) else float(text.removeprefix("overflow "))


def parts(x):
    return list(x) if isinstance(x, tuple) else [x]


def excluded(name, i, point, order):
    return any(
        name in names.split() and i == j and order in orders and where(point) for names, j, where, orders, _ in EXCLUDED
    )


def derivatives(fun, x, count):
    """Compute first and second derivatives of each result by forward mode, and of real results by reverse mode."""
    one = np.ones_like(x)
    push = lambda x: jvp(fun, (x,), (one,))[1]
    found = {("forward", 1): parts(push(x)), ("forward", 2): parts(jvp(push, (x,), (one,))[1])}
    found[("reverse", 1)], found[("reverse", 2)] = [], []
    for j in range(count):
        if np.iscomplexobj(found[("forward", 1)][j]):
            first, second = found[("forward", 1)][j], found[("forward", 2)][j]
        else:
            pull = lambda x, j=j: parts(vjp(lambda x: parts(fun(x))[j], x)[1](one))[0]
            first, second = pull(x), parts(vjp(pull, x)[1](one))[0]
        found[("reverse", 1)].append(first)
        found[("reverse", 2)].append(second)
    return found


def asked(value, column):
    """Whether SciPy's value is right at the point, so that the derivative is tested."""
    if column[0] in ("nan", "inf", "-inf"):
        return False
    want = number(column[0])
    if isinstance(want, complex) and not np.iscomplexobj(value):
        return False
    if np.isinf(want):
        return value == want
    return abs(value - want) <= 1e-6 * abs(want) + 1e-300


def allowed(name, i, x, column, order):
    """Return the allowed error: from rounding the argument, and from differences."""
    numbers = [number(text) for text in column]
    sizes = [abs(n) if np.isfinite(n) else 0.0 for n in numbers]
    limit = 1e-10 * sizes[order] + 1e-300
    if math.isfinite(x):
        limit += 32 * EPS * min(abs(x) * sizes[order + 1], 1e300)
    if numbers[order] == 0:  # steps as small as mpmath's may vanish
        limit += 1e-100
    if (name, i) in BY_DIFFERENCES:
        limit += 1e-11 * max(sizes[:3])
    return limit


def failures(name, i):
    rows = [(tuple(map(float, point)), found) for j, point, found in TABLE[ALIASES.get(name, name)] if j == i]
    if name == "multigammaln":
        rows = [row for row in rows if row[0][0] > 0]  # other arguments are refused
    if name in ENDLESS:
        rows = [row for row in rows if max(map(abs, row[0])) < 1e9]
    whole = [text.lstrip("-").isdigit() for _, point, _ in TABLE[ALIASES.get(name, name)][:1] for text in point]
    columns = [np.array([point[k] for point, _ in rows], int if w else float) for k, w in enumerate(whole)]
    if name == "multigammaln":
        columns[1] = int(columns[1][0])  # the dimension is one number
    fun = lambda x: getattr(fsp, name)(*columns[:i], x, *columns[i + 1 :])
    values = parts(fun(columns[i]))
    found = derivatives(fun, columns[i], len(values))
    for at, (point, expected) in enumerate(rows):
        if isinstance(expected, str):
            continue
        for j, column in enumerate(expected):
            if not asked(values[j][at], column):
                continue
            for (mode, order), got in found.items():
                want, result = number(column[order]), got[j][at]
                if order == 2 and not np.isfinite(number(column[1])):
                    continue  # an infinite value has no derivative
                if np.isnan(want) or (isinstance(want, complex) and not np.iscomplexobj(result)):
                    continue
                if not np.isfinite(want):
                    right = result == want if isinstance(want, float) else not np.all(np.isfinite(result))
                else:
                    right = abs(result - want) <= allowed(name, i, point[i], column, order)
                if not right and not excluded(name, i, point, order):
                    yield f"{mode}, order {order}, result {j} at {point}: {result}, expected {want}"


@pytest.mark.parametrize(("name", "i"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_derivatives_at_extremes(name, i):
    with np.errstate(all="ignore"):
        assert list(failures(name, i)) == []


def test_every_exclusion_matches_a_row():
    """Check that every exclusion matches a point of the table."""
    for names, i, where, _, why in EXCLUDED:
        for name in names.split():
            points = [tuple(map(float, p)) for j, p, found in TABLE[ALIASES.get(name, name)] if j == i]
            assert any(where(point) for point in points), (name, why)


@pytest.mark.filterwarnings("ignore")
def test_wrong_number_is_found(monkeypatch):
    monkeypatch.setitem(TABLE, "j1", TABLE["j0"])
    assert list(failures("j1", 0)) == []  # the values differ, so nothing is tested
    monkeypatch.setitem(TABLE, "sici", [[i, p, f and [[f[0][0], "2.0", *f[0][2:]], f[1]]] for i, p, f in TABLE["sici"]])
    assert len(list(failures("sici", 0))) > 10


@pytest.fixture(scope="module")
def generator():
    before = sys.path[:]
    spec = importlib.util.spec_from_file_location("special_extremes", HERE.parents[2] / "docs" / "special_extremes.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = before


def test_every_function_has_rows_or_shares_rows(generator):
    assert set(generator.ENTRIES) == set(TABLE) | set(generator.SAME) | generator.WITHOUT
    assert not set(TABLE) & set(generator.SAME)
    assert not generator.WITHOUT & (set(TABLE) | set(generator.SAME))


def test_stored_rows_match_generator(generator):
    for name in ("erfc", "entr", "log1p", "cosdg"):
        for i, point, found in TABLE[name]:
            at = tuple(float(text) for text in point)
            assert generator.found_at(generator.ENTRIES[name], i, at) == found


# ---- dtypes ------------------------------------------------------------------------------------------------


def combinations(entry):
    """Generate points from the middle of each grid in single and double precision, as numbers and arrays, and mixed."""
    point = tuple(grid[len(grid) // 2] for grid in entry.grids)
    real = [i for i, x in enumerate(point) if isinstance(x, float)]
    for dtypes in itertools.product((np.float32, np.float64), repeat=len(real)):
        for wrap in (lambda x, dtype: dtype(x), lambda x, dtype: np.array([x], dtype)):
            args = list(point)
            for i, dtype in zip(real, dtypes, strict=True):
                args[i] = wrap(point[i], dtype)
            yield real, args


@pytest.mark.filterwarnings("ignore")
def test_tangents_and_cotangents_have_right_dtype(generator):
    wrong = []
    dtypes = lambda result: [np.asarray(part).dtype for part in parts(result)]
    for name, entry in generator.ENTRIES.items():
        for real, args in combinations(entry):
            for i in real:
                fun = lambda x, name=name, args=args, i=i: getattr(fsp, name)(*args[:i], x, *args[i + 1 :])
                one = np.ones_like(args[i])
                push = lambda x, fun=fun, one=one: jvp(fun, (x,), (one,))
                primal, tangent = push(args[i])
                second = jvp(lambda x, push=push: push(x)[1], (args[i],), (one,))[1]
                result = fun(args[i])
                value, pull = vjp(lambda x, fun=fun: parts(fun(x))[0], args[i])
                cotangent = parts(pull(np.ones_like(value)))[0]
                if not dtypes(result) == dtypes(primal) == dtypes(tangent) == dtypes(second):
                    wrong.append((name, i, args, dtypes(result), dtypes(tangent), dtypes(second)))
                if np.asarray(cotangent).dtype != args[i].dtype:
                    wrong.append((name, i, args, "cotangent", np.asarray(cotangent).dtype))
    assert wrong == []
