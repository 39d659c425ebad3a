"""Large Jacobians are made of parts of their rows: they are what one batch of all rows gives."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import custom_vjp, grad, jacrev, tree, vmap
from funcgrad.transforms import jacobians

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
    """What counts as large here."""
    monkeypatch.setattr(jacobians, "_LARGE", 2)
    monkeypatch.setattr(jacobians, "_NEAR", 1)
    monkeypatch.setattr(jacobians, "_FEW_ROWS", 3)
    monkeypatch.setattr(jacobians, "_WORK", 0)


@pytest.mark.parametrize("name", CASES)
def test_parts_are_the_whole(name, request):
    fun, args, options = CASES[name]
    whole = jacrev(fun, **options)(*args)
    request.getfixturevalue("small")
    passes = []
    counted = custom_vjp(lambda x: x)
    counted.defvjp(lambda x: (x, None), lambda kept, ct: (passes.append(1), (ct,))[1])
    parts = jacrev(lambda *given: tree.map(lambda x: counted(x) if hasattr(x, "dtype") else x, fun(*given)), **options)
    found = parts(*args)
    assert len(passes) > 1 or name == "many inputs"
    assert tree.structure(found) == tree.structure(whole)
    for one, other in zip(tree.leaves(found), tree.leaves(whole), strict=True):
        assert type(one) is type(other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        if getattr(one, "dtype", None) is None or one.dtype.kind != "V":
            np.testing.assert_allclose(one, other, rtol=1e-6 if getattr(one, "dtype", 0) == np.float32 else 1e-14)


def test_inside_of_other_transforms_all_is_one_batch(small):
    x = RNG.normal(size=6)
    cubes = lambda x: x**3
    np.testing.assert_allclose(grad(lambda x: jacrev(cubes)(x).sum())(x), 6 * x, rtol=1e-14)
    np.testing.assert_allclose(jacrev(jacrev(cubes))(x).sum((1, 2)), 6 * x, rtol=1e-14)
    np.testing.assert_allclose(vmap(jacrev(cubes))(x.reshape(2, 3)).sum(-1), 3 * x.reshape(2, 3) ** 2, rtol=1e-14)


def test_many_operations_on_numbers_are_one_batch():
    """They would take their time for each part."""
    passes = []
    counted = custom_vjp(lambda x: x)
    counted.defvjp(lambda x: (x, None), lambda kept, ct: (passes.append(1), (ct,))[1])
    numbers = lambda x: counted(fnp.stack([v * v for v in x]))
    x = RNG.normal(size=2100)
    np.testing.assert_allclose(np.diagonal(jacrev(numbers)(x)), 2.0 * x)
    assert len(passes) == 1
    jacrev(lambda x: counted(x * x))(x)
    assert len(passes) > 2


def test_a_large_jacobian_takes_the_memory_of_its_result():
    import tracemalloc

    x = RNG.normal(size=2100)
    tracemalloc.start()
    try:
        jacobian = jacrev(lambda x: x - (x @ x) * x)(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert jacobian.nbytes > 1 << 25
    assert peak < 1.4 * jacobian.nbytes
    np.testing.assert_allclose(jacobian, np.eye(2100) * (1.0 - x @ x) - 2.0 * np.outer(x, x), atol=1e-9)
