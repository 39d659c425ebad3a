"""Results of the transforms: order, structure, shapes, dtypes, agreement with one another and with JAX."""

import collections
import dataclasses
import inspect
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.tree import register_dataclass, register_pytree_node

FLOAT0 = np.dtype([("float0", "V")])
X = np.array([0.5, -1.0, 2.0])


def cube(x):
    return x**3


def product(x, y, *, scale=1.0):
    return (x * y * scale).sum()


def with_aux(x):
    return x * x, {"double": 2 * x, "text": "any object", "none": None}


class TestGrad:
    def test_orders(self):
        f = fg.grad(cube)
        assert f(2.0) == 12.0
        assert fg.grad(f)(2.0) == 12.0
        assert fg.grad(fg.grad(f))(2.0) == 6.0
        assert fg.grad(fg.grad(fg.grad(f)))(2.0) == 0.0

    def test_argnums(self):
        x, y = X, X + 1
        np.testing.assert_array_equal(fg.grad(product)(x, y), y)
        np.testing.assert_array_equal(fg.grad(product, 1)(x, y), x)
        np.testing.assert_array_equal(fg.grad(product, -1)(x, y), x)
        for argnums in ((0, 1), [0, 1], (0,), [1], (1, 0), (-1, 0)):
            result = fg.grad(product, argnums)(x, y)
            assert type(result) is tuple
            for position, g in zip(argnums, result, strict=True):
                np.testing.assert_array_equal(g, (y, x)[position])
        assert fg.grad(product, np.int64(1))(x, y).shape == x.shape

    def test_keywords_pass_undifferentiated(self):
        np.testing.assert_array_equal(fg.grad(product)(X, y=X, scale=3.0), 3 * X)
        _, pullback = fg.vjp(product, X, X, scale=2.0)
        np.testing.assert_array_equal(pullback(1.0)[0], 2 * X)
        assert fg.jvp(product, (X, X), (X, X), scale=2.0)[1] == 4 * (X * X).sum()
        assert fg.linearize(product, X, X, scale=2.0)[1](X, X) == 4 * (X * X).sum()

    def test_value_and_aux(self):
        assert fg.value_and_grad(cube)(2.0) == (8.0, 12.0)
        g, aux = fg.grad(with_aux, has_aux=True)(3.0)
        assert (g, aux["double"], aux["text"], aux["none"]) == (6.0, 6.0, "any object", None)
        (value, aux), g = fg.value_and_grad(with_aux, has_aux=True)(3.0)
        assert (value, aux["double"], g) == (9.0, 6.0, 6.0)
        assert fg.grad(lambda x: [x * x, 1], has_aux=True)(3.0) == (6.0, 1)

    def test_aux_has_no_tracer_of_its_own_level(self):
        def inner(x):
            return x * x, x * 5.0

        assert fg.grad(lambda x: fg.grad(inner, has_aux=True)(x)[1])(2.0) == 5.0

    def test_unused_argument_has_zero_gradient(self):
        g = fg.grad(lambda p: p["a"] * 2.0)({"a": 1.0, "b": np.ones((2, 3), np.float32)})
        assert g["a"] == 2.0
        assert g["b"].shape == (2, 3)
        assert g["b"].dtype == np.float32
        assert not g["b"].any()
        assert fg.grad(lambda x: 3.0)(1.0) == 0.0

    def test_caller_owns_gradient(self):
        x = np.ones(3)
        gx, gy = fg.grad(lambda x, y: (x + y).sum(), (0, 1))(x, x)
        gx[0] = 7.0
        assert gy[0] == 1.0
        (ga, gb), ct = [None, None], np.ones(3)
        ga, gb = fg.vjp(lambda a, b: a + b, x, x)[1](ct)
        ga[:] = 5.0
        assert (ct == 1).all()
        assert (gb == 1).all()

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
    @pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 1, 3)])
    def test_gradient_has_shape_and_dtype_of_input(self, dtype, shape):
        x = np.ones(shape, dtype)

        def loss(x):
            return fnp.sum(fnp.real(x * np.ones((2, *shape)) * 2.5)) * np.float64(1.5)

        g = fg.grad(loss)(x)
        assert g.dtype == x.dtype
        assert g.shape == x.shape

    def test_python_numbers_stay_weak(self):
        seen = []

        def f(s):
            y = s * s * np.ones(2, np.float32) / s
            seen.append(y.dtype)
            return y.sum()

        g = fg.grad(f)(2.0)
        assert seen == [np.float32]
        assert type(g) is np.float64
        assert g == 2.0

    def test_large_partials_are_overwritten_only_if_unshared(self):
        x, held = np.linspace(0.2, 0.9, 20_000), np.linspace(0.5, 1.0, 20_000)
        before = x.copy(), held.copy()

        def f(x, y):
            return (np.exp(x) * held * y + np.tanh(x * y) + x / y + np.sqrt(x) * np.log(y) + y**3).sum()

        _, pullback = fg.vjp(f, x, held.copy())
        once, again = pullback(1.0), pullback(1.0)
        few = fg.grad(lambda x, y: (np.exp(x) * held[:9] * y + np.tanh(x * y) + x / y).sum(), (0, 1))(x[:9], held[:9])
        part = fg.vjp(lambda x, y: np.exp(x) * held * y + np.tanh(x * y) + x / y, x, held)[1](np.ones(20_000))
        for a, b, c, d in zip(once, again, part, few, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(c[:9], d, rtol=1e-14)
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(held, before[1])

    def test_closures_and_control_flow(self):
        def f(x):
            if x > 0:
                for _ in range(3):
                    x = x * x
                return x
            return -x

        assert fg.grad(f)(2.0) == 8 * 2.0**7
        assert fg.grad(f)(-2.0) == -1.0


class TestVjp:
    def test_pullback_returns_tuple_and_is_reusable(self):
        y, pullback = fg.vjp(cube, X)
        np.testing.assert_array_equal(y, X**3)
        for _ in range(3):
            (ct,) = pullback(X)
            np.testing.assert_allclose(ct, 3 * X**3)
        np.testing.assert_allclose(fg.vmap(pullback)(np.eye(3))[0], np.diag(3 * X**2))
        assert fg.grad(lambda t: (pullback(t)[0] ** 2).sum())(X).shape == X.shape

    def test_trees_in_and_out(self):
        y, pullback, aux = fg.vjp(lambda p, s: ({"y": p[0] * s, "n": None}, "aux"), (X, 1.0), 2.0, has_aux=True)
        assert aux == "aux"
        assert y["n"] is None
        (p, s) = pullback({"y": np.ones(3), "n": None})
        np.testing.assert_array_equal(p[0], 2 * np.ones(3))
        assert p[1] == 0.0
        assert s == X.sum()

    def test_integers(self):
        _, pullback = fg.vjp(lambda x, n: x * n, 2.0, 3)
        gx, gn = pullback(1.0)
        assert gx == 3.0
        assert gn.dtype == FLOAT0
        assert gn.shape == ()
        g = fg.grad(lambda n, x: x * n[0], (0, 1), allow_int=True)(np.arange(3), 2.0)
        assert g[0].dtype == FLOAT0
        assert g[0].shape == (3,)
        assert g[1] == 0.0
        _, pullback = fg.vjp(lambda x: fnp.argmax(x), X)
        (ct,) = pullback(np.zeros((), FLOAT0))
        assert (ct == 0).all()

    def test_integers_beside_complex_numbers(self):
        def scaled(x, n):
            return x**2 * n

        x, n, options = np.array([1.0 + 2.0j, 3.0]), 3, {"holomorphic": True, "allow_int": True}
        of_rows = fg.jacrev(scaled, (0, 1), **options)(x, n)
        np.testing.assert_allclose(of_rows[0], np.diag(6 * x))
        assert of_rows[1].dtype == FLOAT0
        assert of_rows[1].shape == (2,)
        of_one = fg.grad(scaled, (0, 1), **options)(x[0], n)
        np.testing.assert_allclose(of_one[0], 6 * x[0])
        assert of_one[1].dtype == FLOAT0

    def test_complex_vjp_is_plain_transpose(self):
        z = 1 + 2j
        assert fg.vjp(lambda z: z * z, z)[1](1 + 0j)[0] == 2 * z
        assert fg.vjp(fnp.conj, z)[1](3j)[0] == -3j
        _, pullback = fg.vjp(lambda x: x * (1 + 2j), 1.0)
        assert pullback(1 + 0j)[0] == 1.0
        assert pullback(1j)[0] == -2.0
        assert fg.jvp(fnp.conj, (z,), (1j,))[1] == -1j
        assert fg.grad(lambda z: fnp.abs(z) ** 2)(z) == pytest.approx(2 - 4j)
        assert fg.grad(fnp.real)(z) == 1
        assert fg.grad(fnp.imag)(z) == -1j
        assert fg.grad(lambda z: z**3, holomorphic=True)(z) == pytest.approx(3 * z**2)
        assert fg.grad(fnp.conj, holomorphic=True)(z) == 1


class TestForward:
    def test_jvp(self):
        y, t = fg.jvp(lambda x, p: (x * p["a"], 3.0), (X, {"a": 2.0}), (X, {"a": 1.0}))
        np.testing.assert_array_equal(t[0], 2 * X + X)
        assert t[1] == 0.0
        y, t, aux = fg.jvp(with_aux, [3.0], [1.0], has_aux=True)
        assert (y, t, aux["double"]) == (9.0, 6.0, 6.0)

    def test_linearize(self):
        y, push = fg.linearize(lambda x, y: x * y**2, 3.0, 4.0)
        assert (y, push(1.0, 0.0), push(0.0, 1.0)) == (48.0, 16.0, 24.0)
        assert fg.vmap(push)(np.array([1.0, 0.0]), np.array([0.0, 1.0])).tolist() == [16.0, 24.0]
        assert fg.grad(push)(1.0, 1.0) == 16.0
        y, push, aux = fg.linearize(with_aux, 3.0, has_aux=True)
        assert (push(1.0), aux["double"]) == (6.0, 6.0)
        assert fg.grad(lambda x: fg.linearize(cube, x)[1](1.0))(2.0) == 12.0

    def test_linearize_branch_on_tangent_raises(self):
        """Check that a branch on a tangent raises: the tangent is unknown, and one branch would serve all tangents."""
        signed = fg.custom_jvp(lambda x: x)
        signed.defjvp(lambda primals, tangents: (primals[0], 2.0 * tangents[0] if tangents[0] > 0 else tangents[0]))
        assert fg.jvp(signed, (1.0,), (1.0,)) == (1.0, 2.0)
        with pytest.raises(fg.errors.ConcretizationError, match="linearize: Python asked for a number of a tangent"):
            fg.linearize(signed, 1.0)

    def test_linearize_runs_the_function_once(self):
        runs = []

        def f(x):
            runs.append(1)
            return fnp.sin(x) * 2

        _, push = fg.linearize(f, X)
        assert len(push.graph) == 2
        for _ in range(3):
            push(X)
        assert len(runs) == 1

    def test_hvp(self):
        (h,) = fg.hvp(lambda x: (x**3).sum(), (X,), (X,))
        np.testing.assert_allclose(h, 6 * X * X)
        hx, hp = fg.hvp(lambda x, p: (x * x).sum() * p["s"], (X, {"s": 2.0}), (X, {"s": 1.0}))
        np.testing.assert_allclose(hx, 4 * X + 2 * X)
        assert hp["s"] == pytest.approx(2 * (X * X).sum())


class TestJacobians:
    TREE: ClassVar = {"a": X, "b": (2.0, None, np.arange(4.0).reshape(2, 2))}

    @staticmethod
    def function(t, xp):
        return {"v": t["a"] * t["b"][0], "m": xp.outer(t["b"][2][0], t["a"]), "s": xp.sum(t["a"] * t["a"]) * t["b"][0]}

    @pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
    def test_trees(self, name):
        ours = getattr(fg, name)(lambda t: self.function(t, fnp))(self.TREE)
        theirs = getattr(jax, name)(lambda t: self.function(t, jnp))(self.TREE)
        assert jax.tree.structure(ours) == jax.tree.structure(theirs)
        jax.tree.map(np.testing.assert_allclose, ours, theirs)

    def test_argnums(self):
        f, g = (lambda xp: lambda x, y: xp.outer(x, y) * x[0] for _ in range(2))
        x, y = X, np.array([2.0, 3.0])
        for argnums in (1, (0,), (1, 0), (-1,)):
            for name in ("jacrev", "jacfwd"):
                ours = getattr(fg, name)(f(fnp), argnums)(x, y)
                theirs = getattr(jax, name)(g(jnp), argnums)(x, y)
                assert jax.tree.structure(ours) == jax.tree.structure(theirs)
                jax.tree.map(np.testing.assert_allclose, ours, theirs)

    def test_aux(self):
        for name in ("jacrev", "jacfwd"):
            j, aux = getattr(fg, name)(lambda x: (x * x, x.sum()), has_aux=True)(X)
            np.testing.assert_array_equal(j, np.diag(2 * X))
            assert aux == X.sum()

    def test_hessian_of_trees(self):
        def loss(t, xp):
            return xp.sum(self.function(t, xp)["m"] ** 2)

        ours = fg.hessian(lambda t: loss(t, fnp))(self.TREE)
        theirs = jax.hessian(lambda t: loss(t, jnp))(self.TREE)
        assert jax.tree.structure(ours) == jax.tree.structure(theirs)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), ours, theirs)
        nested = fg.hessian(lambda x, y: (x * y**2).sum(), (0, 1))(X, X)
        assert [[b.shape for b in row] for row in nested] == [[(3, 3)] * 2] * 2

    def test_complex(self):
        z = np.array([1 + 2j, 0.5j])
        np.testing.assert_allclose(fg.jacfwd(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))
        np.testing.assert_allclose(fg.jacrev(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))
        np.testing.assert_allclose(fg.jacrev(fnp.real)(z), jax.jacrev(jnp.real)(z))
        np.testing.assert_allclose(fg.jacfwd(lambda x: x * 1j)(X), jax.jacfwd(lambda x: x * 1j)(X))


class TestVmap:
    def test_axes(self):
        m = np.arange(6.0).reshape(2, 3)
        for axis in (0, 1, -1, -2):
            for out in (0, 1, -1, -2):
                ours = fg.vmap(lambda v: v * 2, in_axes=axis, out_axes=out)(m)
                np.testing.assert_array_equal(ours, jax.vmap(lambda v: v * 2, in_axes=axis, out_axes=out)(m))

    def test_axes_per_leaf(self):
        p = {"w": np.arange(6.0).reshape(2, 3), "b": (np.ones(4), 3.0)}
        axes = ({"w": 1, "b": (None, None)}, 0)

        def f(p, x):
            return {"r": p["w"] * x, "c": p["b"][1]}

        ours = fg.vmap(f, in_axes=axes, out_axes={"r": 1, "c": None})(p, X)
        theirs = jax.vmap(f, in_axes=axes, out_axes={"r": 1, "c": None})(p, X)
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
        ours = fg.vmap(lambda q: q["b"][0] * 2, in_axes=({"w": None, "b": 0},))({"w": 1.0, "b": (X, X)})
        np.testing.assert_array_equal(ours, 2 * X)

    def test_constants_are_broadcast(self):
        np.testing.assert_array_equal(fg.vmap(lambda x: 3.0)(X), [3.0] * 3)
        np.testing.assert_array_equal(fg.vmap(lambda x: (x, 3.0), out_axes=(0, None))(X)[1], 3.0)

    def test_keywords_are_mapped(self):
        np.testing.assert_array_equal(fg.vmap(lambda x, y: x * y)(X, y=X), X * X)

    def test_axis_size(self):
        np.testing.assert_array_equal(fg.vmap(lambda x: x, in_axes=None, axis_size=2)(1.0), [1.0, 1.0])

    def test_nested(self):
        table = fg.vmap(fg.vmap(lambda x, y: x * y**2, in_axes=(None, 0)), in_axes=(0, None))(X, X)
        np.testing.assert_allclose(table, np.outer(X, X**2))
        per_example = fg.vmap(fg.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))(X, np.eye(3))
        np.testing.assert_allclose(per_example, np.diag(2 * X))


COLLECTIVES = {
    "psum": lambda x, m: m.psum(x, "i"),
    "pmean": lambda x, m: m.pmean(x * x, "i"),
    "pmax": lambda x, m: m.pmax(x, "i") * x,
    "pmin": lambda x, m: m.pmin(x, "i") * x,
    "all_gather": lambda x, m: m.all_gather(x * x, "i"),
    "all_gather-axis1": lambda x, m: m.all_gather(x * x, "i", axis=1),
    "all_gather-last": lambda x, m: m.all_gather(x * x, "i", axis=-1),
    "all_gather-tiled": lambda x, m: m.all_gather(x * x, "i", tiled=True),
    "all_gather-tiled-last": lambda x, m: m.all_gather(x * x, "i", axis=-1, tiled=True),
    "axis_index": lambda x, m: x * m.axis_index("i"),
    "ppermute": lambda x, m: m.ppermute(x * x, "i", [(0, 1), (1, 2), (2, 0)]),
    "constant": lambda x, m: m.psum(2.0, "i") * x,
    "all_to_all": lambda x, m: m.all_to_all(three_rows(x), "i", 0, 1),
    "all_to_all-last": lambda x, m: m.all_to_all(three_rows(x), "i", -2, 0),
    "all_to_all-tiled": lambda x, m: m.all_to_all(three_rows(x), "i", 0, 1, tiled=True),
    "all_to_all-tiled-same": lambda x, m: m.all_to_all(three_rows(x), "i", 0, 0, tiled=True),
    "psum_scatter": lambda x, m: m.psum_scatter(three_rows(x), "i"),
    "psum_scatter-tiled": lambda x, m: m.psum_scatter(three_rows(x), "i", scatter_dimension=0, tiled=True) * x,
}


def three_rows(x):
    return x * x * np.array([[1.0], [2.0], [3.0]])


class Lax:
    """JAX's collectives, and from them those that JAX lacks: pmax and pmin with derivatives, some across two axes."""

    psum, pmean, axis_index, psum_scatter = (
        staticmethod(getattr(jax.lax, name)) for name in ("psum", "pmean", "axis_index", "psum_scatter")
    )

    @staticmethod
    def all_to_all(x, name, split, concat, tiled=False):  # JAX's own has no gradient in a vmap, as of 0.10
        parts = jnp.stack(jnp.split(x, 3, split)) if tiled else jnp.moveaxis(x, split, 0)
        received = jax.lax.all_gather(parts, name)[:, jax.lax.axis_index(name)]
        return jnp.concatenate(list(received), concat) if tiled else jnp.moveaxis(received, 0, concat)

    @staticmethod
    def all_gather(x, name, axis=0, tiled=False):
        if isinstance(name, str):
            return jax.lax.all_gather(x, name, axis=axis, tiled=tiled)
        both = jax.lax.all_gather(jax.lax.all_gather(x, name[1]), name[0])
        both = jnp.moveaxis(jnp.reshape(both, (-1, *x.shape)), 0, axis)
        return jnp.concatenate(both) if tiled else both

    @staticmethod
    def pmax(x, name):
        return jnp.max(Lax.all_gather(x, name), axis=0)

    @staticmethod
    def pmin(x, name):
        return jnp.min(Lax.all_gather(x, name), axis=0)

    @staticmethod
    def ppermute(x, name, perm):
        if isinstance(name, str):
            return jax.lax.ppermute(x, name, perm)
        sources = (
            jnp.zeros(6, int).at[jnp.array([stop for _, stop in perm])].set(jnp.array([start for start, _ in perm]))
        )
        receives = jnp.isin(jnp.arange(6), jnp.array([stop for _, stop in perm]))
        index = jax.lax.axis_index(name)
        return jnp.where(receives[index], Lax.all_gather(x, name)[sources[index]], 0.0)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    f = COLLECTIVES[name]
    x = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 5.0]])
    w = np.cos(np.arange(24.0))

    def ours(x):
        return fg.vmap(lambda x: f(x, fg), axis_name="i")(x)

    def theirs(x):
        return jax.vmap(lambda x: f(x, Lax), axis_name="i")(x)

    np.testing.assert_allclose(ours(x), theirs(x))

    def scalar(y, xp):
        return xp.sum(xp.reshape(y, (-1,)) * w[: y.size])

    np.testing.assert_allclose(
        fg.grad(lambda x: scalar(ours(x), fnp))(x), jax.grad(lambda x: scalar(theirs(x), jnp))(x), rtol=1e-12
    )
    np.testing.assert_allclose(fg.jvp(ours, (x,), (x,))[1], jax.jvp(theirs, (x,), (x,))[1], rtol=1e-12)
    inner = fg.vmap(fg.grad(lambda x: scalar(f(x, fg), fnp)), axis_name="i")(x)
    np.testing.assert_allclose(inner, jax.vmap(jax.grad(lambda x: scalar(f(x, Lax), jnp)), axis_name="i")(x))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_inside_an_inner_vmap(name):
    f = COLLECTIVES[name]
    x, u = np.array([[1.0, 2.0, 3.0, 4.0], [3.0, -1.0, 0.7, 2.0], [0.5, 5.0, -3.0, 0.1]]), np.array([0.5, 2.0])

    def of_one_example(x, module, xp, lib):
        """Batch over ``u``, whose length is that of no other axis, and differentiate inside of the named axis."""
        loss = lambda x, y: xp.sum(f(y * x, lib) ** 2) * y
        weights = module.vmap(lambda y: f(y * x, lib))(u)
        slopes = module.vmap(module.grad(loss, (0, 1)), (None, 0))(x, u)
        outer = module.grad(lambda x: xp.sum(module.vmap(lambda y: loss(x, y))(u)))(x)
        return weights, slopes, outer, module.jacfwd(lambda x: f(x, lib))(x), module.hessian(lambda x: loss(x, 2.0))(x)

    found = fg.vmap(lambda x: of_one_example(x, fg, fnp, fg), axis_name="i")(x)
    expected = jax.vmap(lambda x: of_one_example(x, jax, jnp, Lax), axis_name="i")(x)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_values_that_are_the_same_in_all_examples(name):
    f = COLLECTIVES[name]
    x, c = np.array([1.0, -2.0, 0.5]), np.array([[1.0, 3.0], [2.0, 0.1], [-0.5, 0.2]])

    def loss(x, module, xp, lib):
        def of_one_example(c):
            inner = module.grad(lambda y: xp.sum(f(y * x, lib) ** 2) * c[1])(xp.sin(x))
            return xp.sum(f(x, lib) ** 2) * c[0] + xp.sum(inner) * c[1]

        return xp.sum(module.vmap(of_one_example, axis_name="i")(c))

    ours, theirs = lambda x: loss(x, fg, fnp, fg), lambda x: loss(x, jax, jnp, Lax)
    np.testing.assert_allclose(fg.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-12)
    np.testing.assert_allclose(fg.hessian(ours)(x), jax.hessian(theirs)(x), rtol=1e-12)
    np.testing.assert_allclose(fg.grad(fg.checkpoint(ours))(x), jax.grad(theirs)(x), rtol=1e-12)
    fast = fg.jit(fg.grad(ours), backend="numpy")
    for scale in (1.0, 0.5):
        np.testing.assert_allclose(fast(scale * x), jax.grad(theirs)(scale * x), rtol=1e-12)


ACROSS_TWO_AXES = {
    "psum": lambda x, m: x / m.psum(x * x, ("i", "j")),
    "psum-no-axis": lambda x, m: m.psum(x * x, ()),
    "pmean": lambda x, m: x - m.pmean(x * x, ("j", "i")),
    "pmax": lambda x, m: m.pmax(x, ("i", "j")) * x,
    "pmin": lambda x, m: m.pmin(x, ("j", "i")) * x,
    "all_gather": lambda x, m: m.all_gather(x * x, ("i", "j"), axis=1),
    "all_gather-order": lambda x, m: m.all_gather(x * x, ("j", "i")),
    "all_gather-tiled": lambda x, m: m.all_gather(x * x, ("i", "j"), tiled=True),
    "axis_index": lambda x, m: x * m.axis_index(("i", "j")) + m.axis_index(("j", "i")),
    "ppermute": lambda x, m: m.ppermute(x * x, ("i", "j"), [(0, 1), (1, 5), (3, 2)]),
}


@pytest.mark.parametrize("name", ACROSS_TWO_AXES)
def test_collectives_across_several_axes(name):
    f = ACROSS_TWO_AXES[name]
    x = np.cos(np.arange(12.0)).reshape(2, 3, 2) + 2

    def over_both(module, lib):
        inner = module.vmap(lambda x: f(x, lib), axis_name="j")
        return module.vmap(inner, axis_name="i")

    def loss(x, module, xp, lib):
        y = over_both(module, lib)(x)
        return xp.sum(y * xp.sin(xp.reshape(xp.arange(1.0 * y.size), y.shape)))

    np.testing.assert_allclose(over_both(fg, fg)(x), over_both(jax, Lax)(x), rtol=1e-14)
    ours, theirs = lambda x: loss(x, fg, fnp, fg), lambda x: loss(x, jax, jnp, Lax)
    np.testing.assert_allclose(fg.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-12)
    np.testing.assert_allclose(fg.hessian(ours)(x), jax.hessian(theirs)(x), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("concat", [0, 1, 2])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_all_to_all_matches_jax(split, concat, tiled):
    x = np.sin(np.arange(3 * 3 * 3 * 3.0)).reshape(3, 3, 3, 3)

    def of(module):
        return lambda x: module.all_to_all(x, "i", split, concat, tiled=tiled)

    np.testing.assert_array_equal(
        fg.vmap(of(fg), axis_name="i")(x), jax.vmap(of(jax.lax), axis_name="i")(x), strict=True
    )


def test_parts_sent_across_several_axes():
    x = np.cos(np.arange(72.0)).reshape(2, 3, 6, 2)

    def of_both(f):
        return fg.vmap(fg.vmap(f, axis_name="j"), axis_name="i")(x)

    flat = x.reshape(6, 6, 2)
    sent = of_both(lambda x: fg.all_to_all(x, ("i", "j"), 0, 0))
    np.testing.assert_array_equal(sent.reshape(6, 6, 2), flat.swapaxes(0, 1))
    summed = of_both(lambda x: fg.psum_scatter(x, ("i", "j")))
    np.testing.assert_allclose(summed.reshape(6, 2), flat.sum(axis=0), rtol=1e-14)


def test_a_tuple_may_be_the_name_of_one_axis():
    np.testing.assert_array_equal(fg.vmap(lambda x: fg.psum(x, ("a", 1)), axis_name=("a", 1))(np.arange(3.0)), 3.0)


def test_ppermute_sends_zeros_past_infinities():
    send = fg.vmap(lambda x: fg.ppermute(x, "i", [(1, 2)]), axis_name="i")
    np.testing.assert_array_equal(send(np.array([np.inf, 1.0, np.nan])), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(send(np.array([True, True, True])), [False, False, True])
    np.testing.assert_array_equal(
        fg.jacrev(send)(np.array([np.inf, 1.0, np.nan])), np.eye(3)[[0, 0, 1]] * [[0], [0], [1]]
    )


class TestNoGrad:
    def test_as_context(self):
        def f(x):
            with fg.no_grad():
                c = x * x
            return c * x

        assert fg.grad(f)(3.0) == 9.0
        assert fg.jvp(f, (3.0,), (1.0,))[1] == 9.0

    def test_as_transform_and_decorator(self):
        square = fg.no_grad(lambda x: x * x)
        assert fg.grad(lambda x: square(x) * x)(3.0) == 9.0
        assert fg.grad(lambda x: fg.no_grad(lambda y: y)(x) * x)(3.0) == 3.0

        @fg.no_grad
        def plain(x):
            return x * x

        @fg.no_grad()
        def called(x):
            return {"y": x * x, "n": None}

        assert fg.grad(lambda x: plain(x) + called(x)["y"] + x)(3.0) == 1.0
        assert fg.jvp(lambda x: plain(x) + x, (3.0,), (1.0,))[1] == 1.0
        assert plain.__name__ == "plain"

    def test_inner_transforms_record_in_no_grad(self):
        with fg.no_grad():
            assert fg.grad(cube)(2.0) == 12.0
            assert fg.jvp(cube, (2.0,), (1.0,))[1] == 12.0
        assert fg.grad(lambda x: x * fg.no_grad(fg.grad(cube))(x))(2.0) == 12.0

    def test_vmap_continues_in_no_grad(self):
        f = fg.vmap(fg.no_grad(lambda x: x * x))
        np.testing.assert_array_equal(f(X), X * X)
        np.testing.assert_array_equal(fg.grad(lambda x: (f(x) * x).sum())(X), X * X)

    def test_generators(self):
        @fg.no_grad
        def numbers(x):
            yield x * x
            yield x * x * x

        assert fg.grad(lambda x: sum(c * x for c in numbers(x)))(2.0) == 4.0 + 8.0

    def test_no_grad_leaves_no_state(self):
        with pytest.raises(ZeroDivisionError), fg.no_grad():
            raise ZeroDivisionError
        assert fg.grad(cube)(2.0) == 12.0

    def test_stop_gradient(self):
        tree = {"a": X, "b": [1.0, "text", None]}
        assert fg.stop_gradient(tree)["b"] == [1.0, "text", None]
        assert fg.grad(lambda x: x * fg.stop_gradient({"x": x})["x"])(3.0) == 3.0
        assert fg.grad(fg.grad(lambda x: x**2 * fg.stop_gradient(x)))(3.0) == 6.0
        assert fg.jvp(lambda x: x * fg.stop_gradient(x), (3.0,), (1.0,))[1] == 3.0
        np.testing.assert_array_equal(fg.vmap(fg.grad(lambda x: x * fg.stop_gradient(x)))(X), X)


Point = collections.namedtuple("Point", "x y")


@register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))


class TestTrees:
    @pytest.mark.parametrize(
        ("make", "get"),
        [
            (lambda a, b: {"a": a, "b": b}, lambda t: (t["a"], t["b"])),
            (lambda a, b: collections.OrderedDict([("b", b), ("a", a)]), lambda t: (t["a"], t["b"])),
            (lambda a, b: [a, [b]], lambda t: (t[0], t[1][0])),
            (lambda a, b: (a, (b, None)), lambda t: (t[0], t[1][0])),
            (lambda a, b: Point(a, b), lambda t: (t.x, t.y)),
            (lambda a, b: Layer(a, b), lambda t: (t.w, t.b)),
            (lambda a, b: Pair(a, b), lambda t: (t.a, t.b)),
        ],
        ids=["dict", "OrderedDict", "list", "tuple", "namedtuple", "dataclass", "registered"],
    )
    def test_containers(self, make, get):
        def loss(t):
            a, b = get(t)
            return (a * b).sum()

        value = make(X, 2.0)
        g = fg.grad(loss)(value)
        assert type(g) is type(value)
        np.testing.assert_array_equal(get(g)[0], [2.0] * 3)
        assert get(g)[1] == X.sum()
        _, pullback = fg.vjp(lambda t: make(get(t)[0] * 2, get(t)[1]), value)
        (back,) = pullback(make(X, 1.0))
        np.testing.assert_array_equal(get(back)[0], 2 * X)
        batched = fg.vmap(lambda t: make(*get(t)))(make(np.eye(3), X))
        assert type(batched) is type(value)

    def test_dictionaries_keep_their_order(self):
        assert list(fg.grad(lambda t: t["b"] * t["a"])({"b": 1.0, "a": 2.0})) == ["b", "a"]
        ordered = collections.OrderedDict([("b", 1.0), ("a", 2.0)])
        assert list(fg.grad(lambda t: t["b"] * t["a"])(ordered)) == ["b", "a"]


class TestNames:
    def test_name_signature_docstring(self):
        for name in ("grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "vmap", "no_grad"):
            made = getattr(fg, name)(product)
            assert made.__name__ == "product"
            assert inspect.signature(made) == inspect.signature(product)
            assert "product" in made.__doc__
            assert "product" in repr(made)

    def test_docstring_starts_with_purpose(self):
        assert fg.grad(fnp.sin).__doc__.startswith("Gradient of sin with respect to positional argument(s) 0.")

    def test_as_a_method(self):
        class Model:
            def loss(self, x):
                return x * x

            slope = fg.grad(loss, argnums=1)

        assert Model().slope(3.0) == 6.0


@pytest.mark.parametrize("transform", [fg.grad, fg.jacrev, fg.jacfwd, fg.hessian])
@pytest.mark.parametrize("x", [2.0, np.float32(2.0)])
def test_derivative_of_number_is_a_scalar(transform, x):
    kind = np.result_type(x).type
    assert type(transform(lambda x: x**3)(x)) is kind
    assert type(fg.jit(transform(lambda x: x**3), backend="numpy")(x)) is kind
    nested = transform(lambda p: p["a"] ** 2)({"a": x, "b": np.ones(2)})["a"]
    assert type(nested["a"] if transform is fg.hessian else nested) is kind
    assert fg.vmap(transform(lambda x: x**3))(np.full(2, x)).shape == (2,)


def test_vjp_needs_positional_arguments():
    with pytest.raises(fg.errors.InputError, match="there is nothing to differentiate"):
        fg.vjp(lambda x: x)
    with pytest.raises(
        TypeError, match="at least 1 argument"
    ):  # Python's own error: ``max`` does not tell its arguments
        fg.vjp(max)
