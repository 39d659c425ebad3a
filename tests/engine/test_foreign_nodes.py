"""Containers registered with JAX or optree, in any namespace, are pytrees here without further registration."""

import dataclasses
import uuid

import jax
import numpy as np
import optree
import optree.dataclasses
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, register_dataclass, register_pytree_node, stop_gradient, tree, vjp, vmap

X = np.array([1.0, 2.0, 3.0])


class Plain:
    """A container with two data fields and one static field."""

    def __init__(self, w, b, name="plain"):
        self.w, self.b, self.name = w, b, name


def flattened(x):
    return (x.w, x.b), x.name


def of_jax_node():
    made = type("OfJaxNode", (Plain,), {})
    jax.tree_util.register_pytree_node(made, flattened, lambda name, children: made(*children, name))
    return made


def of_jax_keys():
    made = type("OfJaxKeys", (Plain,), {})
    key = jax.tree_util.GetAttrKey
    jax.tree_util.register_pytree_with_keys(
        made,
        lambda x: (((key("w"), x.w), (key("b"), x.b)), x.name),
        lambda name, children: made(*children, name),
    )
    return made


def of_jax_dataclass():
    made = dataclasses.make_dataclass("OfJaxDataclass", ["w", "b", ("name", str, "plain")])
    return jax.tree_util.register_dataclass(made, data_fields=["w", "b"], meta_fields=["name"])


def of_optree_node():
    made = type("OfOptreeNode", (Plain,), {})
    optree.register_pytree_node(
        made, flattened, lambda name, children: made(*children, name), namespace=uuid.uuid4().hex
    )
    return made


def of_optree_dataclass():
    @optree.dataclasses.dataclass(namespace=uuid.uuid4().hex)
    class OfOptree:
        w: object
        b: object
        name: str = optree.dataclasses.field(default="plain", pytree_node=False)

    return OfOptree


KINDS = [of_jax_node, of_jax_keys, of_jax_dataclass, of_optree_node, of_optree_dataclass]
every = pytest.mark.parametrize("made", KINDS, ids=lambda made: made.__name__)


def loss(model, x):
    return fnp.sum(fnp.tanh(x * model.w) + model.b)


@every
@pytest.mark.parametrize(
    "call",
    [
        lambda m: tree.leaves(m),
        lambda m: tree.flatten([m])[0],
        lambda m: tree.flatten_with_path({"m": m})[1],
        lambda m: tree.structure(m).unflatten([2.0, 0.5]) and [2.0, 0.5],
        lambda m: tree.leaves(tree.map(lambda x: x, m)),
        lambda m: tree.leaves(tree.map(lambda a, b: a, m, m)),
        lambda m: tree.broadcast_prefix(m, m),
    ],
)
def test_tree_functions_flatten_foreign_nodes(made, call):
    assert call(made()(2.0, 0.5)) == [2.0, 0.5]


@every
def test_transforms_flatten_foreign_nodes(made):
    cls = made()
    slope = grad(loss)(cls(2.0, 0.5, "first"), X)
    assert (type(slope), slope.name) == (cls, "first")
    want = grad(lambda w, b: fnp.sum(fnp.tanh(X * w) + b), (0, 1))(2.0, 0.5)
    assert (slope.w, slope.b) == want
    assert jvp(loss, (cls(2.0, 0.5), X), (cls(1.0, 0.0), 0 * X))[1] == pytest.approx(want[0], rel=1e-14)
    assert vjp(lambda w: cls(w, 3 * w, "out"), 2.0)[1](cls(1.0, 1.0, "out")) == (4.0,)
    np.testing.assert_allclose(
        vmap(grad(loss), in_axes=(None, 0))(cls(2.0, 0.5), X[:, None]).w,
        [grad(loss)(cls(2.0, 0.5), x).w for x in X],
        rtol=1e-14,
    )
    batch = vmap(grad(loss), in_axes=(cls(0, None), None))(cls(X, 0.5), 1.0)
    np.testing.assert_allclose(batch.w, 1 - np.tanh(X) ** 2, rtol=1e-14)
    assert hessian(loss)(cls(2.0, 0.5), 1.0).w.w == pytest.approx(hessian(loss)(cls(2.0, 0.5), X[:1]).w.w, rel=1e-14)
    assert grad(lambda m: loss(stop_gradient(m), 1.0) * m.w)(cls(2.0, 0.5)).b == 0.0


@every
def test_nested_containers(made):
    cls = made()
    slope = grad(lambda m: m["inner"].w.b * m["inner"].b)({"inner": cls(cls(1.0, 3.0), 2.0)})["inner"]
    assert (slope.w.w, slope.w.b, slope.b) == (0.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("made", "path"),
    [(of_jax_keys, r"\.b"), (of_jax_dataclass, r"\.b"), (of_jax_node, r" \(child 1\)"), (of_optree_dataclass, r"\.b")],
)
def test_error_names_the_field(made, path):
    with pytest.raises(TypeError, match=rf"argument 0{path} must be real or complex floating point, got int"):
        grad(loss)(made()(1.0, 1), X)


def test_jax_static_node_has_no_leaves():
    @jax.tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Setting:
        power: int

    assert tree.leaves([Setting(2), 1.0]) == [1.0]
    assert grad(lambda p: p[1] ** p[0].power)((Setting(3), 2.0)) == (Setting(3), 12.0)


@every
def test_own_registration_replaces_foreign_one(made):
    cls = made()
    assert tree.leaves(cls(1.0, 2.0)) == [1.0, 2.0]
    if dataclasses.is_dataclass(cls):
        register_dataclass(cls, data_fields=["w"], meta_fields=["b", "name"])
    else:
        register_pytree_node(cls, lambda x: ((x.w,), (x.b, x.name)), lambda rest, children: cls(*children, *rest))
    assert tree.leaves(cls(1.0, 2.0)) == [1.0]


def test_unregistered_class_is_a_leaf():
    thing = Plain(1.0, 2.0)
    assert tree.leaves([thing]) == [thing]
    with pytest.raises(TypeError, match="argument 0 is not an array or a number"):
        grad(loss)(thing, X)
