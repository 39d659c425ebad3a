"""Every bad input raises the builtin type that a caller would catch, with a message that says what to do."""

import dataclasses
import datetime
import functools
import hashlib
import json
import math
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
import toolz

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors
from funcgrad.interop import from_numpy


def cube(x):
    return x**3


def first(x, y):
    return x * y


def raises(kind, *says):
    """Check the builtin type of the error, and every piece of text that the message must contain."""
    pattern = "".join(f"(?=.*{text})" for text in says)
    return pytest.raises(kind, match=f"(?s){pattern}")


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian"])
@pytest.mark.parametrize("value", [2, True, np.arange(3), np.array([True])], ids=["int", "bool", "ints", "bools"])
def test_integer_input(call, value):
    says = [call, r"argument 0\['w'\]\[1\]", "floating", str(np.asarray(value).dtype)]
    if call in ("grad", "value_and_grad", "jacrev"):
        says.append("allow_int")
    with raises(TypeError, *says):
        getattr(fg, call)(lambda p: p["w"][1])({"w": [1.0, value]})


@pytest.mark.parametrize("call", ["grad", "value_and_grad"])
def test_complex_output(call):
    with raises(TypeError, call, "complex128", "holomorphic=True", "vjp"):
        getattr(fg, call)(lambda z: z * z)(1 + 2j)


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev"])
def test_integer_output(call):
    with raises(TypeError, call, "int64", "vjp"):
        getattr(fg, call)(lambda x: 3)(1.0)


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian"])
def test_holomorphic_with_real_input(call):
    with raises(TypeError, call, "holomorphic", "float64"):
        getattr(fg, call)(cube, holomorphic=True)(1.0)


def test_holomorphic_with_real_output():
    with raises(TypeError, "grad", "complex scalar", "float64"):
        fg.grad(lambda z: abs(z), holomorphic=True)(1 + 2j)


@pytest.mark.parametrize("call", ["jacfwd", "hessian"])
def test_complex_input_without_holomorphic(call):
    with raises(TypeError, call, "complex128", "holomorphic=True"):
        getattr(fg, call)(cube)(1 + 2j)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (lambda x: x * np.ones(1), r"\(1,\)"),
        (lambda x: x * np.ones((1, 1)), r"\(1, 1\)"),
        (lambda x: x * np.ones(3), r"\(3,\)"),
        (lambda x: (x, x), r"a tuple of float64\[\], float64\[\]\. Pass has_aux=True"),
        (lambda x: (x * np.ones(2), x), r"a tuple of float64\[2\], float64\[\]"),
        (lambda x: [x] * 5, "a list of float64.*, ..."),
        (lambda x: {"a": x}, "dict"),
        (lambda x: "text", "str 'text'"),
    ],
    ids=["one", "one-one", "three", "pair", "vector-first", "list", "dict", "str"],
)
@pytest.mark.parametrize("call", ["grad", "value_and_grad"])
def test_nonscalar_output(call, result, says):
    with raises(TypeError, call, "scalar", says, "jacrev"):
        getattr(fg, call)(result)(2.0)


@pytest.mark.parametrize("call", ["jacrev", "jacobian", "jacfwd", "hessian"])
@pytest.mark.parametrize("result", [None, (), {}], ids=repr)
def test_missing_return_of_arrays(call, result):
    name = "jacrev" if call == "jacobian" else call
    with raises(TypeError, f"{name}: the function must return an array", "got none. Return what"):
        getattr(fg, call)(lambda x: result)(np.ones(2))


def test_jacobian_of_text_names_the_call():
    for call in (fg.jacrev, fg.hessian):
        with raises(TypeError, f"{call.__name__}: result leaf 0 of the function is not an array"):
            call(lambda x: "text")(np.ones(2))


def test_text_as_cotangent_or_tangent():
    with raises(TypeError, "pullback: the cotangent is not an array or a number, got str 'a'. Pass arrays or numbers"):
        fg.vjp(cube, 1.0)[1]("a")
    with raises(TypeError, r"jvp: the tangent at \[0\] is not an array", "Pass arrays or numbers"):
        fg.jvp(cube, (1.0,), ("a",))
    with raises(TypeError, "jvp: argument 0 is not an array", r"got str 'a'\. Close over it, or pass it by keyword"):
        fg.jvp(cube, ("a",), (1.0,))


def test_pullback_takes_one_cotangent():
    pullback = fg.vjp(lambda x: (x, x), 1.0)[1]
    with raises(TypeError, "pullback: it takes one cotangent", r"got 2\. For a tuple of results pass a tuple"):
        pullback(1.0, 1.0)
    assert pullback((1.0, 1.0)) == (2.0,)


def test_objects_are_named_without_addresses():
    with raises(TypeError, r"got function <function cube>\. Pass the second result of vjp"):
        fg.tape(cube)


def test_unknown_lengths():
    for make in (fnp.zeros, fnp.ones, fnp.empty, lambda n: fnp.full(n, 1.0), lambda n: fnp.ones(4).reshape(n, 1)):
        with raises(TypeError, "jit: .* is being compiled", "got a request for an integer"):
            fg.jit(lambda n, make=make: make(n))(4)
    with raises(TypeError, "differs between the 2 examples of a vmap"):
        fg.vmap(fnp.zeros)(np.array([2, 3]))
    assert fg.vmap(lambda n: fnp.zeros(n))(np.array([3, 3])).shape == (2, 3)


def test_ppermute_names_examples_that_exist():
    with raises(ValueError, "ppermute: perm must name examples from 0 to 2", r"got \(0, 5\)"):
        fg.vmap(lambda x: fg.ppermute(x, "i", [(0, 5)]), axis_name="i")(np.ones(3))


def test_parts_for_each_example():
    x = np.ones((3, 2, 4))
    with raises(ValueError, "all_to_all: axis split_axis=0 must have length 3", "Pass tiled=True"):
        fg.vmap(lambda x: fg.all_to_all(x, "i", 0, 0), axis_name="i")(x)
    with raises(ValueError, "psum_scatter: axis scatter_dimension=1 must have length a multiple of 3"):
        fg.vmap(lambda x: fg.psum_scatter(x, "i", scatter_dimension=1, tiled=True), axis_name="i")(x)
    with raises(ValueError, "psum_scatter: scatter_dimension must name an axis of x, got 2"):
        fg.vmap(lambda x: fg.psum_scatter(x, "i", scatter_dimension=2), axis_name="i")(x)
    with raises(ValueError, "all_to_all: concat_axis must be from -2 to 1, got 2"):
        fg.vmap(lambda x: fg.all_to_all(x, "i", 0, 2), axis_name="i")(np.ones((3, 3, 4)))


def test_ppermute_receives_once():
    with raises(ValueError, "ppermute: an example receives from one example at most", "got two pairs to 1"):
        fg.vmap(lambda x: fg.ppermute(x, "i", [(0, 1), (2, 1)]), axis_name="i")(np.ones(3))


def test_all_gather_names_an_axis_of_the_result():
    with raises(ValueError, "all_gather: axis must be from -1 to 0", "got 1"):
        fg.vmap(lambda x: fg.all_gather(x, "i", axis=1), axis_name="i")(np.ones(3))


def test_modules_of_interop_need_no_import_statement():
    program = (
        "import funcgrad; print(funcgrad.interop.scipy.minimize.__name__, funcgrad.interop.autograd.grad.__name__)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["minimize", "grad"]


def test_fortran_functions_are_named():
    with raises(TypeError, "^dgetrf: it is compiled code", r"got a traced float64\[2, 2\]", "custom_vjp"):
        fg.grad(lambda x: scipy.linalg.lapack.dgetrf(x * np.eye(2))[0].sum())(1.0)


def test_newton_at_a_singular_point():
    with pytest.raises(np.linalg.LinAlgError) as found:
        fg.transforms.newton(lambda x: x * x + 1.0, 1.0)
    assert found.value.__notes__ == ["newton: the Jacobian is singular at a point on the way. Begin at another point."]


def test_carries_are_shown_as_code():
    with raises(TypeError, r"scan: .* got \(\*, \*\) after a step from \*, with \* for each array"):
        fg.scan(lambda c, x: ((c, c), x), 0.0, np.ones(3))
    with raises(ValueError, r"scan: .* got \[3\] and length=2"):
        fg.scan(lambda c, x: (c, x), 0.0, np.ones(3), length=2)


@pytest.mark.parametrize("call", ["grad", "value_and_grad"])
@pytest.mark.parametrize("argument", [2.0, None])
def test_missing_return(call, argument):
    with raises(TypeError, call, "got None. Return what is to be differentiated"):
        getattr(fg, call)(lambda x: None)(argument)


@pytest.mark.parametrize(
    ("name", "ours"),
    [("detach", "stop_gradient"), ("numpy", "as it is"), ("backward", "grad"), ("requires_grad", "grad")],
)
def test_torch_attributes_name_funcgrad_functions(name, ours):
    with raises(AttributeError, f"x.{name}: PyTorch's", r"float64\[2\]", "test_errors.py", f"Use .*{ours}") as found:
        fg.grad(lambda x: getattr(x, name))(np.ones(2))
    assert not getattr(found.value, "__notes__", ()), "nothing is said twice"
    assert fg.grad(lambda x: x * hasattr(x, name))(2.0) == 0.0


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian"])
class TestArgnums:
    @pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
    def test_out_of_range(self, call, argnums):
        with raises(TypeError, call, "argnums", "out of range", "2 positional"):
            getattr(fg, call)(first, argnums=argnums)(1.0, 2.0)

    def test_keyword_instead(self, call):
        with raises(TypeError, call, "argnums=0", "0 positional arguments", "position"):
            getattr(fg, call)(first)(x=1.0, y=2.0)

    @pytest.mark.parametrize("argnums", [(0, 0), (0, -2)])
    def test_repeated(self, call, argnums):
        with raises(ValueError, call, "argnums", "twice"):
            getattr(fg, call)(first, argnums=argnums)(1.0, 2.0)

    @pytest.mark.parametrize("argnums", [(), [], 1.5, "x", None, ("x",), (0, 1.0)])
    def test_not_ints(self, call, argnums):
        with raises(TypeError, call, "argnums", "ints"):
            getattr(fg, call)(first, argnums=argnums)


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "profile"])
@pytest.mark.parametrize("x", [1.0, np.ones(3), np.ones(0), [1.0, 2.0], {"w": 1.0}], ids=repr)
def test_argument_passed_as_argnums(call, x):
    with raises(TypeError, f"{call}: argnums must", re.escape(f"Write {call}(f)(x), not {call}(f, x).")):
        getattr(fg, call)(cube, x)


@pytest.mark.parametrize("transform", [fg.checkpoint, fg.crosscheck, fg.trace, from_numpy], ids=lambda f: f.__name__)
def test_argument_passed_beside_function(transform):
    call = transform.__name__
    with raises(TypeError, f"{call}: .* got float64.3. after", re.escape(f"Write {call}(f)(x), not {call}(f, x)")):
        transform(cube, np.ones(3))


def test_argnums_given_as_names():
    for names in ("x", ("x", "y")):
        with raises(TypeError, "Use positions, not names"):
            fg.grad(first, argnums=names)


def test_argument_passed_as_option():
    with raises(TypeError, "vmap: in_axes must be", r"Write vmap\(f\)\(x\), not vmap\(f, x\)"):
        fg.vmap(cube, np.ones(3))
    with raises(TypeError, "jit: static_argnums must be", r"Write jit\(f\)\(x\), not jit\(f, x\)"):
        fg.jit(cube, 1.0)


@pytest.mark.parametrize(
    ("fun", "says"),
    [
        (
            lambda x: {"loss": x, "rest": x},
            r"got a dict of 'loss': float64\[\], 'rest': float64\[\]\. Return one number",
        ),
        (lambda x: (v for v in [x]), "got generator .*Return a number that is computed from the arguments"),
        (lambda x: x > 0, "dtype bool. Return a floating-point number: a comparison has no derivative"),
        (lambda x: x.astype(int), "dtype int64. Return a floating-point number: an integer has no derivative"),
    ],
    ids=["dict", "generator", "bool", "int"],
)
def test_nonnumeric_result_names_one_remedy(fun, says):
    with raises(TypeError, f"grad: the function must return .*{says}"):
        fg.grad(fun)(1.0)


def test_remedy_for_integers_is_code():
    with raises(TypeError, r"got int 3 of dtype int64\. Convert it to float: 3\.0\.") as found:
        fg.grad(cube)(3)
    assert "allow_int=True" in found.value.__notes__[0]
    with raises(TypeError, r"got int64\[2\]\. Convert it to float: x\.astype\(float\)\."):
        fg.grad(cube)(np.arange(2))


def test_lists_raise_and_name_arrays():
    for fun in (lambda x: (x**2).sum(), lambda x: sum(x + 1), lambda x: sum(2.0 * x), lambda x: x[0, 1], math.sin):
        with raises(TypeError, "list|sequence", r"Argument 0 is a list, .* Pass an array: numpy\.asarray\(x\)"):
            fg.grad(fun)([1.0, 2.0])
    with raises(ValueError, "A list is a container of arrays: pass numpy.asarray"):
        fg.vmap(cube)([1.0, 2.0])


def test_structures_in_messages_look_like_python():
    with raises(TypeError, r"jvp: .* got \(\*,\), expected \(\*, \*\), with \* for each array"):
        fg.jvp(first, (1.0, 2.0), (1.0,))
    with raises(TypeError, "pullback: .* got None, .* pass zeros"):
        fg.vjp(cube, 1.0)[1](None)
    with raises(ValueError, "tree.map: the trees have different structures: .*Pass the same containers"):
        fg.tree.map(lambda a, b: a, [1.0], (1.0,))


def test_tangents_of_tables_name_remedy():
    with raises(TypeError, "jvp: the tangent has another structure", "Pass a table with the same labels"):
        fg.jvp(lambda s: (s**2).sum(), (pd.Series([1.0, 2.0]),), (np.ones(2),))


def test_vmap_keyword_error_explains_mapping():
    with raises(ValueError, r"vmap: keyword argument \['s'\] has rank 0", "pass it by position, with None for it"):
        fg.vmap(lambda x, s: x * s)(np.ones(2), s=2.0)


def test_vmap_result_error_names_arrays():
    with raises(TypeError, "vmap: result leaf 0 .* got str 'a'", "Return arrays, numbers"):
        fg.vmap(lambda x: "a")(np.ones(2))


def test_hvp_errors_name_hvp():
    with raises(TypeError, "hvp: the function must return a scalar"):
        fg.hvp(cube, (np.ones(2),), (np.ones(2),))


def test_decimals_and_rounded_comparisons_raise():
    with raises(TypeError, r"grad: argument 0 .* got Decimal\('1'\)\. Convert it: float\(x\)"):
        fg.grad(cube)(Decimal(1))
    with raises(TypeError, r"multiply: argument 1 .* got Decimal\('2'\)\. Convert it: float\(x\)"):
        fg.grad(lambda x: x * Decimal(2))(1.0)
    with raises(TypeError, r"greater: argument 1 .* got Fraction\(1, 10\)\. Convert it: float\(x\)"):
        fg.grad(lambda x: x if x > Fraction(1, 10) else -x)(0.1)  # true: Python compares without rounding


def test_sparse_matrix_argument_names_remedy():
    A = scipy.sparse.csr_array(np.eye(2))
    with raises(TypeError, r"argument 0 is a sparse matrix, .* Pass its values, A\.data"):
        fg.grad(lambda A: A.sum())(A)
    got = fg.grad(lambda data: (scipy.sparse.csr_array((data, A.indices, A.indptr)) @ np.array([1.0, 3.0])).sum())(
        A.data
    )
    assert got.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: fg.switch(0, np.sin, 1.0), TypeError, "switch: branches must be a list of functions"),
        (lambda: fg.grad(lambda x: x.at.__setitem__(0, 1.0))(np.ones(2)), TypeError, r"Write x = x\.at\[i\]\.set\(y\)"),
        (lambda: fg.grad(lambda x: x.__delitem__(0))(np.ones(2)), ValueError, r"Use funcgrad\.numpy\.delete\(x, i\)"),
        (lambda: fg.grad(lambda x: fg.numpy.stack(x, x))(np.ones(2)), TypeError, "arrays to join come in one list"),
        (lambda: fg.check_grads(cube, (1.0,), order=0), TypeError, "order must be at least 1"),
        (lambda: fg.check_grads(lambda x: "a", (1.0,)), TypeError, "returns nothing .* got str 'a'"),
        (lambda: fg.remat, AttributeError, "Use checkpoint"),
        (lambda: fg.gradient, AttributeError, "Use grad"),
    ],
)
def test_common_mistakes(call, kind, says):
    with raises(kind, says):
        call()


def test_hashlib_error_names_remedy():
    with raises(TypeError, "buffer API", r"hashlib accepts no traced values: pass stop_gradient\(x\)\.tobytes\(\)"):
        fg.grad(lambda x: x[0] * hashlib.md5(x).digest()[0])(np.ones(2))
    slope = fg.grad(lambda x: x[0] * hashlib.md5(fg.stop_gradient(x).tobytes()).digest()[0])(np.ones(2))
    assert slope[0] == hashlib.md5(np.ones(2)).digest()[0]


def test_json_writes_traced_numbers():
    for number in (lambda x: x, fg.stop_gradient):
        assert fg.grad(lambda x, number=number: x * len(json.dumps({"x": number(x)})))(3.0) == 10.0
    with fg.as_written(), raises(TypeError, "JSON serializable", r"pass stop_gradient\(x\) for a number"):
        fg.grad(lambda x: x * len(json.dumps({"x": x})))(3.0)


def test_lru_cache_error_names_remedy():
    cached = toolz.memoize(lambda x: x * x)
    with raises(TypeError, r"hash\(x\): a traced number cannot be a key", "call the function without its cache"):
        fg.grad(cached)(3.0)


@pytest.mark.parametrize("fun", [lambda x: x.T(), lambda x: np.sum(x, dim=0)], ids=["call", "keyword"])
def test_wrong_call_error_does_not_mention_tracers(fun):
    with pytest.raises(TypeError) as found:
        fg.grad(fun)(np.ones(2))
    assert not getattr(found.value, "__notes__", ())


@dataclasses.dataclass
class Parameters:
    w: float


class Model:
    pass


class Tensor:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


@pytest.mark.parametrize(
    ("thing", "remedy"),
    [
        (Parameters(1.0), "put @register_dataclass above @dataclass of Parameters"),
        (Model(), r"register_pytree_node\(Model"),
        (Tensor(), r"Convert it: numpy\.asarray"),
        (datetime.date(2026, 1, 1), "Leave it out"),
        ("text", "Leave it out"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_nonarray_leaf_error_names_conversion(thing, remedy):
    with raises(TypeError, r"grad: argument 0\['p'\] is not an array or a number", remedy):
        fg.grad(lambda p: 1.0)({"p": thing})


def test_unmappable_argument_error_names_in_axes():
    with raises(TypeError, "vmap: argument 1 is not an array or a number", "None for it in in_axes"):
        fg.vmap(lambda x, how: x)(np.ones(2), "mean")


class Pair:
    def __init__(self, *parts):
        self.parts = parts


fg.register_pytree_node(Pair, lambda pair: (pair.parts, None), lambda _, parts: Pair(*parts))


@pytest.mark.parametrize(
    ("pair", "where"), [(Pair(1), "argument 0 must"), (Pair(1.0, 2), r"argument 0 \(child 1\) must")]
)
def test_unnamed_children_are_numbered(pair, where):
    with raises(TypeError, f"grad: {where} be real"):
        fg.grad(lambda pair: pair.parts[0])(pair)


LEAVES = {"str": "text", "object": object(), "array": np.array(["a"]), "object array": np.array([None])}


@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES.keys())
@pytest.mark.parametrize(
    "call",
    [
        lambda bad: fg.grad(lambda p: 1.0)({"w": bad}),
        lambda bad: fg.value_and_grad(lambda p: 1.0)({"w": bad}),
        lambda bad: fg.jacrev(lambda p: 1.0)({"w": bad}),
        lambda bad: fg.jacfwd(lambda p: 1.0)({"w": bad}),
        lambda bad: fg.vjp(lambda p: 1.0, {"w": bad}),
        lambda bad: fg.linearize(lambda p: 1.0, {"w": bad}),
        lambda bad: fg.jvp(lambda p: 1.0, ({"w": bad},), ({"w": 1.0},)),
        lambda bad: fg.vmap(lambda p: 1.0)({"w": bad}),
    ],
    ids=["grad", "value_and_grad", "jacrev", "jacfwd", "vjp", "linearize", "jvp", "vmap"],
)
def test_nonarray_leaf(call, leaf):
    with raises(TypeError, r"argument 0\['w'\]", "not an array or a number"):
        call(leaf)


def test_masked_arrays_raise():
    with raises(TypeError, "argument 0", "not an array"):
        fg.grad(lambda x: x.sum())(np.ma.array([1.0, 2.0], mask=[True, False]))


@pytest.mark.parametrize("call", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "vmap"])
@pytest.mark.parametrize("thing", [3, None, np.ones(2), "f"])
def test_not_callable(call, thing):
    with raises(TypeError, call, "must be a function", "got"):
        getattr(fg, call)(thing)


def test_noncallable_arguments_of_other_functions():
    for call in (fg.vjp, fg.linearize):
        with raises(TypeError, "must be a function", "got int 3", rf"Write {call.__name__}\(f, x\)\."):
            call(3, 1.0)
    for call in (fg.jvp, fg.hvp):
        with raises(TypeError, "must be a function", "got int 3", r"\(f, \(x,\), \(t,\)\)\."):
            call(3, (1.0,), (1.0,))
    with raises(TypeError, "no_grad", "must be a function", r"Write no_grad\(f\)\(x\), not no_grad\(f\(x\)\)\."):
        fg.no_grad(3)
    with raises(TypeError, "tree.map: the first argument must be a function", r"got \{'w': 1\}"):
        fg.tree.map({"w": 1}, cube)
    with raises(TypeError, "custom_root: solve must be a function, got float 2.0", "without calling it"):
        fg.custom_root(cube, 1.0, 2.0)


@pytest.mark.parametrize("call", [fg.vjp, fg.linearize])
def test_missing_primal_value(call):
    for keywords in ({}, {"x": 1.0}):
        with raises(TypeError, f"{call.__name__}: there is nothing to differentiate", rf"{call.__name__}\(f, x\), not"):
            call(cube, **keywords)


@pytest.mark.parametrize("fun", [cube, np.sin, fnp.sin, fg.grad(cube), math.sin])
def test_stop_gradient_of_a_function(fun):
    with raises(TypeError, "stop_gradient: x must be a value", r"stop_gradient\(f\(x\)\), or no_grad\(f\)\(x\)"):
        fg.stop_gradient(fun)
    assert fg.stop_gradient({"f": fun})["f"] is fun


def test_sparse_hessian_of_nonscalar():
    with raises(TypeError, "hessian: the function must return a scalar", r"got shape \(3,\)"):
        fg.hessian(np.sin, sparsity="auto")(np.ones(3))


def test_names_in_other_namespaces_are_named():
    for name, ours in {"relu": "funcgrad.nn.relu", "clamp": "clip", "norm": "linalg.norm"}.items():
        with raises(AttributeError, f"module 'funcgrad.numpy' has no attribute '{name}'. Use {ours}."):
            getattr(fnp, name)


@pytest.mark.parametrize("result", [lambda x: x, lambda x: (x, 1, 2), lambda x: (x,), lambda x: {"a": x, "b": x}])
@pytest.mark.parametrize(
    "call",
    [
        lambda f: fg.grad(f, has_aux=True)(1.0),
        lambda f: fg.value_and_grad(f, has_aux=True)(1.0),
        lambda f: fg.vjp(f, 1.0, has_aux=True),
        lambda f: fg.jvp(f, (1.0,), (1.0,), has_aux=True),
        lambda f: fg.linearize(f, 1.0, has_aux=True),
        lambda f: fg.jacrev(f, has_aux=True)(1.0),
        lambda f: fg.jacfwd(f, has_aux=True)(1.0),
    ],
    ids=["grad", "value_and_grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd"],
)
def test_aux_without_a_pair(call, result):
    with raises(TypeError, "has_aux=True", "pair", "got"):
        call(result)


class TestCotangents:
    @pytest.fixture
    def pullback(self):
        return fg.vjp(lambda x: {"y": x * x}, np.ones(3))[1]

    def test_shape(self, pullback):
        with raises(ValueError, "pullback", "cotangent", r"\['y'\]", r"got \(2,\)", r"expected \(3,\)"):
            pullback({"y": np.ones(2)})

    @pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool"])
    def test_dtype(self, pullback, dtype):
        with raises(TypeError, "pullback", r"\['y'\]", dtype, "float64"):
            pullback({"y": np.ones(3, dtype)})

    @pytest.mark.parametrize("ct", [np.ones(3), {"z": np.ones(3)}, [np.ones(3)], None], ids=repr)
    def test_tree(self, pullback, ct):
        with raises(TypeError, "pullback", "structure"):
            pullback(ct)

    def test_leaf(self, pullback):
        with raises(TypeError, "pullback", r"\['y'\]", "str 'text'"):
            pullback({"y": "text"})

    def test_real_cotangent_of_complex_result(self):
        _, pullback = fg.vjp(lambda x: x * (1 + 2j), np.ones(2))
        with raises(TypeError, "float64", "complex128"):
            pullback(np.ones(2))


@pytest.mark.parametrize("call", [fg.jvp, fg.hvp], ids=["jvp", "hvp"])
class TestTangents:
    def test_shape(self, call):
        with raises(ValueError, "tangent", r"\[0\]", r"got \(2,\)", r"expected \(3,\)"):
            call(lambda x: (x * x).sum(), (np.ones(3),), (np.ones(2),))

    def test_dtype(self, call):
        with raises(TypeError, "tangent", "float32", "float64"):
            call(lambda x: (x * x).sum(), (np.ones(3),), (np.ones(3, np.float32),))

    def test_tree(self, call):
        with raises(TypeError, "tangent", "structure"):
            call(lambda x: (x["a"] * x["a"]).sum(), ({"a": np.ones(3)},), (np.ones(3),))

    @pytest.mark.parametrize("position", [0, 1])
    def test_no_tuple(self, call, position):
        pair = [(1.0,), (1.0,)]
        pair[position] = 1.0
        with raises(TypeError, ("primals", "tangents")[position], "tuple or a list"):
            call(cube, *pair)


def test_linearized_tangent():
    _, push = fg.linearize(cube, 2.0)
    with raises(ValueError, "linearize", "tangent", r"got \(3,\)"):
        push(np.ones(3))


class TestVmap:
    def test_sizes(self):
        with raises(ValueError, "vmap", "disagree", "argument 0: axis 0 has size 3", "argument 1: axis 1 has size 4"):
            fg.vmap(first, in_axes=(0, 1))(np.ones(3), np.ones((2, 4)))

    def test_axis_size(self):
        with raises(ValueError, "vmap", "disagree", "axis_size: 5"):
            fg.vmap(cube, axis_size=5)(np.ones(3))

    @pytest.mark.parametrize("axis", [1, -2])
    def test_rank(self, axis):
        with raises(ValueError, "vmap", r"argument 1\['a'\]", "rank 1", f"in_axes={axis}"):
            fg.vmap(lambda x, y: x, in_axes=(0, axis))(np.ones(3), {"a": np.ones(3)})

    def test_scalar(self):
        with raises(ValueError, "vmap", "argument 0", "rank 0", "None"):
            fg.vmap(cube)(2.0)

    @pytest.mark.parametrize("axes", [{"in_axes": True}, {"in_axes": (True,)}, {"out_axes": True}], ids=str)
    def test_truth_values_are_no_axes(self, axes):
        with raises((TypeError, ValueError), "vmap: (in|out)_axes"):
            fg.vmap(lambda x: x, **axes)(np.ones((2, 3)))

    def test_in_axes_length(self):
        with raises(ValueError, "vmap", "in_axes", "3 entries", "2 positional"):
            fg.vmap(first, in_axes=(0, 0, 0))(np.ones(3), np.ones(3))

    def test_in_axes_tree(self):
        with raises(ValueError, "vmap", "in_axes", "structure"):
            fg.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": np.ones(3)})

    def test_in_axes_type(self):
        with raises(TypeError, "vmap", "in_axes", "dict"):
            fg.vmap(cube, in_axes={"a": 0})
        with raises(TypeError, "vmap", "in_axes", "ints and None", "argument 0"):
            fg.vmap(cube, in_axes=(1.5,))(np.ones(3))

    def test_nothing_mapped(self):
        with raises(ValueError, "vmap", "nothing to map"):
            fg.vmap(first, in_axes=None)(1.0, 2.0)

    def test_out_axes_none(self):
        with raises(ValueError, "vmap", "out_axes=None", "depends on the example"):
            fg.vmap(cube, out_axes=None)(np.ones(3))

    def test_out_axes_tree(self):
        with raises(ValueError, "vmap", "out_axes", "structure"):
            fg.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(np.ones(3))

    @pytest.mark.parametrize("axis", [1, -2, "x"])
    def test_out_axes_range(self, axis):
        with raises(ValueError, "vmap", "out_axes", "out of range"):
            fg.vmap(cube, out_axes=axis)(np.ones(3))

    def test_result(self):
        with raises(TypeError, "vmap", "result leaf 0", "str"):
            fg.vmap(lambda x: "text")(np.ones(3))

    def test_axis_name(self):
        with raises(NameError, "psum", "'j'", "'i'"):
            fg.vmap(lambda x: fg.psum(x, "j"), axis_name="i")(np.ones(3))
        with raises(NameError, "axis_index", "'i'", "none"):
            fg.axis_index("i")

    def test_axis_name_ends_with_its_vmap(self):
        fg.vmap(lambda x: fg.psum(x, "i"), axis_name="i")(np.ones(3))
        with raises(NameError, "'i'"):
            fg.psum(1.0, "i")


def fails(x):
    raise RuntimeError("the user's own")


RUNS = {
    "grad": lambda f: fg.grad(f)(1.0),
    "vjp": lambda f: fg.vjp(f, 1.0),
    "jvp": lambda f: fg.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: fg.linearize(f, 1.0),
    "vmap": lambda f: fg.vmap(f, axis_name="i")(np.ones(3)),
    "jacrev": lambda f: fg.jacrev(f)(1.0),
    "jacfwd": lambda f: fg.jacfwd(f)(1.0),
    "hessian": lambda f: fg.hessian(f)(1.0),
    "no_grad": lambda f: fg.no_grad(f)(1.0),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_user_error_passes_and_leaves_no_state(run):
    kept = []

    def keeps(x):
        kept.append(x)
        fails(x)

    with pytest.raises(RuntimeError, match="the user's own"):
        run(keeps)
    from funcgrad import batching, blocks, core

    assert blocks.current() == blocks.State()
    assert batching.named_axes.get() == {}
    if isinstance(kept[0], core.Tracer):
        with pytest.raises(errors.EscapedTracerError, match=r"finished .* transform"):
            kept[0] * 2.0
    assert fg.grad(cube)(2.0) == 12.0


def test_errors_derive_from_builtins():
    assert issubclass(errors.InputError, TypeError)
    assert issubclass(errors.ShapeError, ValueError)
    assert issubclass(errors.NotDifferentiableError, TypeError)
    assert issubclass(errors.ConcretizationError, TypeError)
    assert issubclass(errors.EscapedTracerError, RuntimeError)
    assert issubclass(errors.AxisNameError, NameError)
    assert all(issubclass(getattr(errors, name), errors.FuncgradError) for name in errors.__all__)


def test_partial_is_named_by_its_function():
    with raises(TypeError, "has_aux"):
        fg.grad(functools.partial(first, y=2.0), has_aux=True)(1.0)
