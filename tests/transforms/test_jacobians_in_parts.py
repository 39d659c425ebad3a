"""Large Jacobians computed in parts of their rows or columns: they equal the result of a single batch."""

import tracemalloc

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, tree, vmap
from funcgrad.errors import ConcretizationError
from funcgrad.transforms import checkpoint, control, jacobians, partwise

RNG = np.random.default_rng(0)


def trees(given, y):
    x = given["x"]
    return {"first": fnp.outer(x, y).ravel()[1:], "second": (fnp.sum(x * y), [fnp.cumsum(given["z"] * x[0])])}


TREE = {"x": RNG.normal(size=7), "z": RNG.normal(size=(2, 3)).astype(np.float32)}
CASES = {
    "trees": (trees, (TREE, RNG.normal(size=7)), {"argnums": (0, 1)}),
    "aux": (lambda x: (fnp.sin(x) @ x.T, x.shape), (RNG.normal(size=(3, 5)),), {"has_aux": True}),
    "integers": (lambda x, n: x[n] * x, (RNG.normal(size=9), np.arange(9)), {"argnums": (0, 1), "allow_int": True}),
    "complex": (lambda z: z * z[::-1], (RNG.normal(size=8) + 1j * RNG.normal(size=8),), {"holomorphic": True}),
    "single": (lambda x: fnp.exp(x) * x.sum(), (RNG.normal(size=20).astype(np.float32),), {}),
    "independent": (lambda x, y: y * 2.0, (RNG.normal(size=20), RNG.normal(size=5)), {"argnums": (0, 1)}),
    "many inputs": (lambda x: x[:3] * x.sum(), (RNG.normal(size=200),), {}),
}


@pytest.fixture
def small(monkeypatch):
    """Make small Jacobians count as large."""
    monkeypatch.setattr(jacobians, "LARGE", 2)
    monkeypatch.setattr(partwise, "_PART_ENTRIES", 1)
    monkeypatch.setattr(partwise, "_MIN_ROWS", 3)
    monkeypatch.setattr(partwise, "_MIN_WORK", 0)


#: Ways in which a recording goes on: normally, computed after each operation, given up after the first ones.
WAYS = {"recorded": {}, "settled": {"_STEP_BYTES": 1 << 40}, "given up": {"_MIN_WORK": 1 << 60}}


@pytest.fixture(params=WAYS)
def settings(request):
    """Settings of one of the ways in which a recording goes on."""
    return WAYS[request.param]


def prepare(settings, request):
    """Make all Jacobians count as large from here on, and set the way in which recordings go on."""
    request.getfixturevalue("small")
    for name, value in settings.items():
        request.getfixturevalue("monkeypatch").setattr(partwise, name, value)


def assert_trees_close(found, whole):
    """Check that two trees of arrays agree, except for rounding."""
    assert tree.structure(found) == tree.structure(whole)
    for one, other in zip(tree.leaves(found), tree.leaves(whole), strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        if getattr(one, "dtype", None) is None or one.dtype.kind != "V":
            single = getattr(one, "dtype", 0) == np.float32
            np.testing.assert_allclose(one, other, rtol=1e-6 if single else 1e-14)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_rows_equal_whole(name, request):
    fun, args, options = CASES[name]
    whole = jacrev(fun, **options)(*args)
    request.getfixturevalue("small")
    passes = []
    counted = custom_vjp(lambda x: x)
    counted.defvjp(lambda x: (x, None), lambda kept, ct: (passes.append(1), (ct,))[1])
    parts = jacrev(lambda *given: tree.map(lambda x: counted(x) if hasattr(x, "dtype") else x, fun(*given)), **options)
    found = parts(*args)
    assert len(passes) > 1 or name == "many inputs"
    assert_trees_close(found, whole)


def network(p, x):
    """Return the loss of a network whose parameters are in one array."""
    hidden = fnp.tanh(x @ p[:12].reshape(3, 4) + p[12:16])
    return fnp.mean((hidden @ p[16:] - fnp.sin(x).sum(1)) ** 2)


def loops(x):
    """Return a loop with a checkpointed body, a custom rule, a write, a sort and a choice."""
    step = checkpoint(lambda c, v: (fnp.cos(c) * v, c + v))
    last, all_of_them = control.scan(step, x[0], x)
    tripled = custom_jvp(lambda x: x**3)
    tripled.defjvp(lambda primals, tangents: (primals[0] ** 3, 3.0 * primals[0] ** 2 * tangents[0]))
    y = fnp.zeros(len(x))
    y[1:] = tripled(x[:-1])
    y[0] = last
    inverse = fnp.linalg.inv(fnp.outer(x, x) + fnp.eye(len(x)))
    return {"sorted": fnp.sort(y * x), "others": (all_of_them, fnp.where(x > 0.0, x, 0.0) @ y, inverse)}


FORWARD = {
    **{name: (fun, args, options) for name, (fun, args, options) in CASES.items() if name != "integers"},
    "loops": (loops, (RNG.normal(size=6),), {}),
    "network": (network, (RNG.normal(size=20), RNG.normal(size=(9, 3))), {}),
    "nothing": (lambda x: (x, x[:0], 2.0, x[0] * 0 + 1, np.arange(3)), (RNG.normal(size=5),), {}),
    "number": (lambda x: x[0] * x[1], (RNG.normal(size=5),), {}),
}
CALLS = [(jacfwd, name) for name in FORWARD] + [(hessian, "network"), (hessian, "number")]


@pytest.mark.parametrize(("transform", "name"), CALLS, ids=lambda x: getattr(x, "__name__", x))
def test_parts_of_columns_equal_whole(transform, name, settings, request):
    fun, args, options = FORWARD[name]
    whole = transform(fun, **options)(*args)
    prepare(settings, request)
    runs = []
    counted = transform(lambda *given: (runs.append(1), fun(*given))[1], **options)
    counted(*args)  # the function may run twice where its arguments have new shapes
    runs.clear()
    found = counted(*args)
    assert len(runs) == 1
    assert_trees_close(found, whole)


def test_write_to_ndarray_after_use_changes_no_column(settings, request):
    """Check that forward mode is right after such a write."""
    prepare(settings, request)
    factor = np.ones(5)

    def scaled(x):
        factor[:] = 1.0
        y = x * factor
        factor[:] = 2.0
        z = x * factor
        factor[:] = 3.0
        return y, z

    first, second = jacfwd(scaled)(RNG.normal(size=5))
    np.testing.assert_array_equal(first, np.eye(5))
    np.testing.assert_array_equal(second, 2.0 * np.eye(5))


def test_caller_owns_result(settings, request):
    prepare(settings, request)
    x = RNG.normal(size=5)
    same = jacfwd(lambda x: (x, x))
    first, second = same(x)
    first[:] = 7.0
    np.testing.assert_array_equal(second, np.eye(5))
    np.testing.assert_array_equal(same(x)[0], np.eye(5))


def test_rule_converting_tangent_to_float_raises(small):
    signed = custom_jvp(lambda x: x)
    signed.defjvp(lambda primals, tangents: (primals[0], tangents[0] if tangents[0][0] > 0 else -tangents[0]))
    with pytest.raises(ConcretizationError, match="asked for a number of a tangent"):
        jacfwd(signed)(RNG.normal(size=5))


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_nested_jacobian_is_one_batch(jacobian, small):
    x = RNG.normal(size=6)
    cubes = lambda x: x**3
    np.testing.assert_allclose(grad(lambda x: jacobian(cubes)(x).sum())(x), 6 * x, rtol=1e-14)
    np.testing.assert_allclose(jacobian(jacobian(cubes))(x).sum((1, 2)), 6 * x, rtol=1e-14)
    np.testing.assert_allclose(vmap(jacobian(cubes))(x.reshape(2, 3)).sum(-1), 3 * x.reshape(2, 3) ** 2, rtol=1e-14)


def test_rows_of_scalar_code_are_one_batch():
    """Check that such functions are not split, since each part would repeat the operations."""
    passes = []
    counted = custom_vjp(lambda x: x)
    counted.defvjp(lambda x: (x, None), lambda kept, ct: (passes.append(1), (ct,))[1])
    numbers = lambda x: counted(fnp.stack([v * v for v in x]))
    x = RNG.normal(size=1100)
    np.testing.assert_allclose(np.diagonal(jacrev(numbers)(x)), 2.0 * x)
    assert len(passes) == 1
    jacrev(lambda x: counted(x * x))(x)
    assert len(passes) > 2


def test_columns_of_scalar_code_are_one_batch():
    sizes = []
    counted = custom_jvp(lambda x: x)
    counted.defjvp(lambda primals, tangents: (sizes.append(type(tangents[0]._trace)), (primals[0], tangents[0]))[1])
    x = RNG.normal(size=1100)
    np.testing.assert_allclose(np.diagonal(jacfwd(lambda x: counted(fnp.stack([v * v for v in x])))(x)), 2.0 * x)
    jacfwd(lambda x: counted(x * x))(x)
    assert [kind.__name__ for kind in sizes] == ["BatchTrace", "PartwiseTrace"]


def flow(u):
    left, right = fnp.roll(u, 1), fnp.roll(u, -1)
    return 0.1 * (left - 2.0 * u + right) - 0.5 * u * (right - left)


LARGE = {
    "rows": (jacrev, lambda x: x - (x @ x) * x, 2100, 1.4),
    "rows of a flow": (jacrev, flow, 1000, 2.1),
    "columns": (jacfwd, lambda x: x - (x @ x) * x, 2100, 1.4),
    "columns of a flow": (jacfwd, flow, 1000, 1.8),
    "second derivatives": (hessian, lambda x: fnp.sum(x * x) ** 2 + fnp.sum(fnp.roll(x, 1) * x), 1500, 2.0),
}


@pytest.mark.counts
@pytest.mark.parametrize("name", LARGE)
def test_large_jacobian_uses_little_extra_memory(name):
    transform, fun, size, most = LARGE[name]
    x = RNG.normal(size=size)
    tracemalloc.start()
    try:
        jacobian = transform(fun)(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert jacobian.nbytes == 8 * size**2
    assert peak < most * jacobian.nbytes
    some = RNG.normal(size=size)
    nudged = grad(fun) if transform is hessian else fun
    expected = (nudged(x + 1e-6 * some) - nudged(x - 1e-6 * some)) / 2e-6
    np.testing.assert_allclose(jacobian @ some, expected, atol=1e-6 * abs(expected).max())


def test_long_program_is_recorded_in_parts(small, monkeypatch):
    """Check that a recording is computed from time to time, if that takes less memory."""
    lengths, record = [], partwise.Recording
    monkeypatch.setattr(partwise, "Recording", lambda *args: (lengths.append(len(args[2])), record(*args))[1])
    monkeypatch.setattr(partwise, "_RECORDING_BYTES", 0)

    def long(x, kept=False):
        all_of_them = [x]
        for _ in range(500):
            all_of_them = [*all_of_them, x] if kept else [x]
            x = x + 0.001 * fnp.sin(x)
        return x + 0.0 * sum(all_of_them)

    x = RNG.normal(size=50)
    slope = grad(lambda x: long(x).sum())(x)
    np.testing.assert_allclose(jacfwd(long)(x), np.diag(slope), rtol=1e-10)
    assert len(lengths) > 10
    assert max(lengths) < 200
    lengths.clear()
    np.testing.assert_allclose(jacfwd(lambda x: long(x, kept=True))(x), np.diag(slope), rtol=1e-10)
    assert len(lengths) < 4  # batches of all kept values would be larger
