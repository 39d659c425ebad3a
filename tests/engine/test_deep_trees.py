"""Pytrees that contain themselves, or are thousands of levels deep: every error names the call."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    check_grads,
    checkpoint,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    register_pytree_node,
    stop_gradient,
    trace,
    tree,
    vjp,
    vmap,
)
from funcgrad.errors import InputError
from funcgrad.interop import jit
from funcgrad.transforms.control import scan


def nested(leaf):
    for _ in range(5_000):
        leaf = [leaf]
    return leaf


def holding_itself(leaf):
    made = [leaf]
    made.append(made)
    return made


def holding_itself_in_a_dictionary(leaf):
    made = {"leaf": leaf}
    made["again"] = (made,)
    return made


def number(p):
    return 1.0


def with_aux(make):
    return lambda x: (x, make(x))


@custom_vjp
def own(x):
    return 1.0


own.defvjp(lambda x: (1.0, None), lambda residuals, ct: (ct,))
#: Calls with a bad tree that ``bad`` makes of a leaf; keys are the call and the part that the message names.
CALLS = {
    ("grad", "argument"): lambda bad: grad(number)(bad(1.0)),
    ("grad", "result"): lambda bad: grad(bad)(1.0),
    ("grad", "aux"): lambda bad: grad(with_aux(bad), has_aux=True)(1.0),
    ("vjp", "argument"): lambda bad: vjp(number, bad(1.0)),
    ("vjp", "result"): lambda bad: vjp(bad, 1.0),
    ("vjp", "aux"): lambda bad: vjp(with_aux(bad), 1.0, has_aux=True),
    ("pullback", "cotangent"): lambda bad: vjp(fnp.sin, 1.0)[1](bad(1.0)),
    ("jvp", "argument"): lambda bad: jvp(number, (bad(1.0),), (bad(1.0),)),
    ("jvp", "result"): lambda bad: jvp(bad, (1.0,), (1.0,)),
    ("jvp", "aux"): lambda bad: jvp(with_aux(bad), (1.0,), (1.0,), has_aux=True),
    ("linearize", "argument"): lambda bad: linearize(number, bad(1.0)),
    ("linearize", "result"): lambda bad: linearize(bad, 1.0),
    ("linearize", "aux"): lambda bad: linearize(with_aux(bad), 1.0, has_aux=True),
    ("vmap", "argument"): lambda bad: vmap(number)(bad(1.0)),
    ("vmap", "result"): lambda bad: vmap(bad)(np.ones(2)),
    ("vmap", "in_axes"): lambda bad: vmap(fnp.sin, in_axes=(bad(0),))(np.ones(2)),
    ("vmap", "out_axes"): lambda bad: vmap(fnp.sin, out_axes=bad(0))(np.ones(2)),
    ("jacrev", "argument"): lambda bad: jacrev(number)(bad(1.0)),
    ("jacrev", "result"): lambda bad: jacrev(bad)(1.0),
    ("jacfwd", "argument"): lambda bad: jacfwd(number)(bad(1.0)),
    ("jacfwd", "result"): lambda bad: jacfwd(bad)(1.0),
    ("hessian", "argument"): lambda bad: hessian(number)(bad(1.0)),
    ("checkpoint", "argument"): lambda bad: grad(lambda x: checkpoint(number)(bad(1.0)) * x)(1.0),
    ("checkpoint", "result"): lambda bad: grad(lambda x: tree.leaves(checkpoint(bad)(x))[0])(1.0),
    ("stop_gradient", "argument"): lambda bad: stop_gradient(bad(1.0)),
    ("trace", "argument"): lambda bad: trace(number)(bad(1.0)),
    ("trace", "result"): lambda bad: trace(bad)(1.0),
    ("scan", "first carry"): lambda bad: scan(lambda c, x: (c, x), bad(1.0), np.ones(3)),
    ("scan", "carry"): lambda bad: scan(lambda c, x: (bad(c), x), 0.0, np.ones(3)),
    ("scan", "output"): lambda bad: scan(lambda c, x: (c, bad(x)), 0.0, np.ones(3)),
    ("no_grad", "result"): lambda bad: no_grad(bad)(1.0),
    ("", "custom"): lambda bad: grad(lambda x: own(bad(1.0)) * x)(1.0),
    ("jit", "argument"): lambda bad: jit(number)(bad(1.0)),
    ("", "result of jit"): lambda bad: jit(bad)(1.0),
    ("check_grads", "argument"): lambda bad: check_grads(number, (bad(1.0),)),
    ("", "tree"): lambda bad: tree.map(abs, bad(1.0)),
}


@pytest.mark.parametrize("bad", [nested, holding_itself, holding_itself_in_a_dictionary], ids=lambda f: f.__name__)
@pytest.mark.parametrize("place", CALLS, ids=" ".join)
def test_error_names_the_call(place, bad):
    with pytest.raises(InputError, match=rf"^{place[0]}.*: .*, got .*\. [A-Z]") as caught:
        CALLS[place](bad)
    assert place[1] == "result" or "nested too deep, or holds itself" in str(caught.value)


def test_moderately_deep_trees_work():
    x = 2.0
    for _ in range(100):
        x = [x]
    assert tree.leaves(grad(lambda p: tree.leaves(p)[0] ** 2)(x)) == [4.0]


def test_infinite_recursion_stays_recursion_error():
    def endless(x):
        return endless(x)

    with pytest.raises(RecursionError):
        grad(endless)(1.0)


def test_paths_of_deep_trees():
    with pytest.raises(InputError, match="flatten_with_path: a pytree is nested too deep, or holds itself"):
        tree.flatten_with_path(nested(1.0))


def test_errors_of_nodes_of_users_pass():
    class Endless:
        pass

    def flatten(_):
        raise RecursionError("this node never ends")

    register_pytree_node(Endless, flatten, lambda static, leaves: Endless())
    for call in (tree.flatten, tree.flatten_with_path, grad(lambda x: 1.0)):
        with pytest.raises(RecursionError, match="this node never ends"):
            call(Endless())
