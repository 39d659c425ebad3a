"""Names that ``dir`` lists, names from other libraries, and dataclasses registered as in JAX."""

import dataclasses
import importlib
import inspect

import jax
import numpy as np
import pytest
from helpers import at_least

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import grad, register_dataclass, tree
from funcgrad.numpy.namespace_info import NUMPYS


@pytest.mark.parametrize("module", [funcgrad, fnp], ids=lambda m: m.__name__)
def test_dir_lists_public_names_only(module):
    listed = [name for name in dir(module) if not name.startswith("__")]
    assert set(listed) >= {name for name in module.__all__ if not name.startswith("__")}
    assert all(hasattr(module, name) for name in module.__all__)
    later = {"crosscheck", "errors", "extend", "interop", "jit", "nn", "scipy", *NUMPYS}
    assert set(listed) - set(module.__all__) <= later


def test_interop_names_are_top_level():
    assert funcgrad.jit is funcgrad.interop.jit
    assert funcgrad.crosscheck is funcgrad.interop.crosscheck


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("tree_map", r"tree\.map"),
        ("elementwise_grad", "vmap"),
        ("grad_and_value", "value_and_grad"),
        ("make_vjp", "vjp"),
        ("minimize", r"funcgrad\.scipy\.optimize\.minimize"),
        ("stop_grad", "stop_gradient"),
    ],
)
def test_names_from_other_libraries_suggest_ours(name, ours):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Use .*{ours}"):
        getattr(funcgrad, name)


@pytest.mark.parametrize("home", ["", "numpy", "scipy.fft", "scipy.linalg", "scipy.optimize", "scipy.signal"])
def test_python_can_propose_a_similar_name(home):
    """Python proposes a similar name if an uncaught ``AttributeError`` carries the name and the object."""
    module = importlib.import_module(f"funcgrad.{home}".rstrip("."))
    with pytest.raises(AttributeError, match="gradd") as found:
        module.gradd  # noqa: B018
    assert (found.value.name, found.value.obj) == ("gradd", module)


@dataclasses.dataclass
class Model:
    w: object
    scale: float
    name: str = dataclasses.field(default="", metadata={"static": True})
    cache: object = None


def registered(**how):
    made = dataclasses.make_dataclass(
        "Made",
        [(f.name, f.type, dataclasses.field(default=None, metadata=f.metadata)) for f in dataclasses.fields(Model)],
    )
    return register_dataclass(made, **how)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"meta_fields": ["name", "cache"]},
        {"data_fields": ["w", "scale"], "meta_fields": ["name", "cache"]},
        {"data_fields": ["w"], "meta_fields": ["name", "scale"], "drop_fields": ["cache"]},
    ],
    ids=["metadata", "meta_fields", "both", "dropped"],
)
def test_dataclasses_are_registered_as_in_jax(how):
    ours, theirs = registered(**how), registered(**how)
    both = how if "data_fields" in how else {}
    if not both:
        static = how.get("meta_fields", ["name"])
        both = {"data_fields": [n for n in ("w", "scale", "name", "cache") if n not in static], "meta_fields": static}
    values = {"w": np.ones(2), "scale": 3.0, "name": "first"}
    if "drop_fields" not in how or at_least(jax, "0.10.0"):  # older versions dropped no field that ``__init__`` sets
        jax.tree_util.register_dataclass(theirs, **both)
        assert len(tree.leaves(ours(**values))) == len(jax.tree.leaves(theirs(**values)))
    slope = grad(lambda m: fnp.sum(m.w * m.scale))(ours(**values))
    np.testing.assert_array_equal(slope.w, [3.0, 3.0])
    assert slope.name == "first"


@pytest.mark.parametrize(
    ("how", "problem"),
    [({"data_fields": ["w"]}, "Name each field once"), ({"meta_fields": ["nothing"]}, "Name each field once")],
)
def test_wrong_dataclass_fields_raise(how, problem):
    with pytest.raises(TypeError, match=rf"register_dataclass: the fields of Made are .*{problem}"):
        registered(**how)


def test_registering_other_class_raises():
    with pytest.raises(TypeError, match="register_dataclass: a dataclass is needed"):
        register_dataclass(dict)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacrev", "jacfwd", "jacobian", "hessian"])
@pytest.mark.parametrize(
    ("other", "ours"), [("argnum", "argnums"), ("argnames", "argnums, with pos"), ("wrt", "argnums")]
)
def test_arguments_from_other_libraries_suggest_ours(name, other, ours):
    with pytest.raises(TypeError, match=rf"^{name}: there is no argument of this name, got {other}=1\. Use {ours}"):
        getattr(funcgrad, name)(np.sin, **{other: 1})


def test_unknown_arguments_raise():
    with pytest.raises(TypeError, match=r"^vmap: there is no argument of this name, got in_dims=0\. Use in_axes\."):
        funcgrad.vmap(np.sin, in_dims=0)
    with pytest.raises(TypeError, match=r"got nothing='x'\. help\(funcgrad\.grad\) lists its arguments\."):
        grad(np.sin, nothing="x")


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacrev", "jacfwd", "jacobian", "hessian", "vmap"])
def test_signature_hides_foreign_arguments(name):
    parameters = inspect.signature(getattr(funcgrad, name)).parameters
    assert "_others" not in parameters
    assert next(iter(parameters)) == "fun"
