"""Functions of random programs: match, generators, errors that carry values, searches and tables of the program."""

import contextlib
import functools
import heapq
import itertools
import math
from collections import defaultdict

from numpy_programs.parts_of_classes import Meter, Pair

_calls = 0


def matched(item):
    match item:
        case ("scale", by, to) if by > 0:
            return by * to
        case ("scale", by, to):
            return 0.5 * by - to
        case {"kind": "shift", "by": by, **rest}:
            return by + sum(rest.values())
        case Meter(value=value):
            return math.tanh(value)
        case Pair(a, float(b)):
            return a - 0.3 * b
        case [first, *middle, last]:
            return first * last + len(middle)
        case float() | int():
            return math.cos(item)
    return 0.25


def tallied(v):
    global _calls
    _calls = 0
    total = 0.0

    def add(e):
        global _calls
        nonlocal total
        _calls += 1
        total = total * 0.5 + e / _calls

    for e in v:
        add(e)
    return total


def averaging():
    mean, n = 0.0, 0
    while True:
        e = yield mean
        if e is None:
            return mean
        n += 1
        mean += (e - mean) / n


def sent(v):
    mean = averaging()
    next(mean)
    for e in v:
        last = mean.send(e * e)
    try:
        mean.send(None)
    except StopIteration as stop:
        return stop.value + last
    return 0.0


def _counted(v):
    n = 0.0
    for e in v:
        n += math.sin(e)
        yield e
    return n


def delegated(v, s):
    def both():
        a = yield from _counted(v)
        yield a * s
        return a

    return sum(itertools.chain(both(), [s]))


def closed(v):
    seen = []

    def numbers():
        try:
            yield from v
        finally:
            seen.append(v[-1] * 0.5)

    it = numbers()
    first = next(it)
    it.close()
    return first + seen[0]


class CarriedError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value


def carried(s):
    try:
        try:
            if s * s > 0.05:
                raise CarriedError(math.sin(s))
        except ValueError:
            return 0.0
        else:
            return s * 2.0
    except CarriedError as error:
        return error.value + 0.5 * error.args[0]


def finished(s, log):
    try:
        log.append(s)
        return log[-1] * 2.0
    finally:
        log.append(s * s)
        log[0] *= 0.5


def chained(s):
    try:
        try:
            raise CarriedError(s)
        except CarriedError as error:
            raise KeyError(error.value * 2) from error
    except KeyError as error:
        return error.args[0] + error.__cause__.value


def grouped(s):
    total = 0.0
    try:
        raise ExceptionGroup("several", [CarriedError(s), ValueError(s * 2.0)])
    except* CarriedError as group:
        total += group.exceptions[0].value
    except* ValueError as group:
        total += group.exceptions[0].args[0] * 0.3
    return total


class Doubled:
    """A context manager that holds a value and swallows an error."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.value = self.value * 2
        return self

    def __exit__(self, kind, error, trace):
        self.value = self.value * 0.25
        return kind is CarriedError


def managed(a, s):
    with Doubled(s) as held, Doubled(a) as other:
        other.value[0] = held.value
        raise CarriedError(s)
    return held.value + other.value[0]


def stacked(s, v):
    with contextlib.ExitStack() as stack:
        helds = [stack.enter_context(Doubled(e)) for e in v]
        stack.callback(helds.append, Doubled(s))
        total = sum(h.value for h in helds)
    return total + sum(h.value for h in helds)


def fibonacci(s, n, memo=None):
    memo = {0: s, 1: s * s} if memo is None else memo
    if n not in memo:
        memo[n] = 0.5 * fibonacci(s, n - 1, memo) + 0.3 * fibonacci(s, n - 2, memo)
    return memo[n]


@functools.cache
def binomial(n, k):
    return 1.0 if k in (0, n) else binomial(n - 1, k - 1) + binomial(n - 1, k)


def bernstein(v, t):
    n = len(v) - 1
    return sum(binomial(n, i) * t**i * (1 - t) ** (n - i) * p for i, p in enumerate(v))


def keyword_only(a, /, b, *, c=1.0, **kw):
    return a * b - c + kw.get("d", 0.0)


def traced_calls(fun):
    """Decorator that notes its calls in an attribute."""

    @functools.wraps(fun)
    def inner(*args):
        inner.args = args
        return fun(*args) + inner.args[0] * 0.1

    return inner


@traced_calls
def noted(a, b):
    return a * math.exp(-b * b)


def composed(*funs):
    return functools.reduce(lambda f, g: lambda t: g(f(t)), funs)


def curried(a):
    return lambda b: lambda c: a * b - c


def shortest(costs):
    """Dijkstra's search over four nodes whose edges are numbers."""
    queue, best = [(0.0, 0)], {}
    while queue:
        d, node = heapq.heappop(queue)
        if node in best:
            continue
        best[node] = d
        for other, c in enumerate(costs):
            if other != node:
                heapq.heappush(queue, (d + c * c + 0.1 * abs(node - other), other))
    return sum(best.values())


def edit(v, w):
    """Dynamic programming: the cost of aligning two sequences."""
    table = [[0.0] * (len(w) + 1) for _ in range(len(v) + 1)]
    for i, j in itertools.product(range(1, len(v) + 1), range(1, len(w) + 1)):
        step = table[i - 1][j - 1] + (v[i - 1] - w[j - 1]) ** 2
        table[i][j] = min(step, table[i - 1][j] + 0.311, table[i][j - 1] + 0.297)
    return table[-1][-1]


def by_sign(v):
    groups = defaultdict(list)
    for e in v:
        groups["up" if e > 0 else "down"].append(e)
    return sum(len(g) * math.fsum(g) for g in groups.values())


def bisected(s):
    low, high = -10.0, 10.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle**3 + middle > s:
            high = middle
        else:
            low = middle
    for _ in range(3):
        middle = middle - (middle**3 + middle - s) / (3 * middle**2 + 1)
    return middle


def integrated(f, a, b, n=8):
    h = (b - a) / n
    return h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * f(a + i * h) for i in range(n + 1))


def runge_kutta(f, y, t=0.0, h=0.2, n=4):
    for _ in range(n):
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y, t = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), t + h
    return y
