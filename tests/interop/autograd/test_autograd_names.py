"""``funcgrad.interop.autograd``: the names and conventions of HIPS autograd, without HIPS autograd."""

import gc
import json
import math
import subprocess
import sys
import threading
import types
import warnings
from importlib import import_module
from pathlib import Path

import jax
import numpy
import pytest
import scipy.signal

import funcgrad as fg
import funcgrad.interop.autograd as ag
import funcgrad.interop.autograd.numpy as np
from funcgrad import backend, shared_state
from funcgrad.core import Tracer
from funcgrad.errors import GradientCheckError, InputError, NotDifferentiableError, ShapeError
from funcgrad.interop.autograd import (
    elementwise_grad,
    grad,
    hessian,
    holomorphic_grad,
    jacobian,
    make_jvp,
    make_vjp,
    value_and_grad,
)
from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.core import VSpace, backward_pass, func, vspace
from funcgrad.interop.autograd.extend import (
    JVPNode,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
)
from funcgrad.interop.autograd.installing import InstallError
from funcgrad.interop.autograd.numpy import numpy_vjps, numpy_wrapper
from funcgrad.interop.autograd.numpy.numpy_boxes import ArrayBox
from funcgrad.interop.autograd.numpy.numpy_vspaces import ArrayVSpace
from funcgrad.interop.autograd.scipy.signal import convolve
from funcgrad.interop.autograd.tracer import Node, new_box, trace, trace_stack
from funcgrad.interop.autograd.util import toposort
from funcgrad.optional import double_precision

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).with_name("autograd_programs.py")
#: Results of the programs in HIPS autograd 1.9.1, to 13 digits.
NUMBERS = json.loads(Path(__file__).with_name("autograd_numbers.json").read_text(encoding="utf-8"))
X = numpy.array([0.3, -0.7, 1.1])

# Public names of HIPS autograd 1.9.1 that have a meaning outside of its tracer. The list leaves out its
# spaces for containers, nodes, the trace stack, sparse cotangents, deprecated declarations and helpers of rules.
OPERATORS = """checkpoint deriv elementwise_grad grad grad_and_aux grad_named hessian hessian_tensor_product
    hessian_vector_product holomorphic_grad jacobian make_ggnvp make_hvp make_jvp make_vjp multigrad_dict
    tensor_jacobian_product value_and_grad vector_jacobian_product"""
DECLARING = "def_linear defjvp defjvp_argnum defjvp_argnums defvjp defvjp_argnum defvjp_argnums primitive"
NAMES = {
    "": f"""builtins core dict differential_operators extend isinstance list misc numpy primitive scipy test_util tracer
        tuple type util wrap_util {OPERATORS}""",
    "builtins": "DictBox SequenceBox dict isinstance list tuple type",
    "core": f"""Box JVPNode Node VJPNode VSpace backward_pass func getval isbox make_jvp make_vjp subval toposort trace
        vspace {DECLARING}""",
    "differential_operators": f"make_jvp_reversemode {OPERATORS}",
    "extend": f"Box JVPNode VJPNode VSpace notrace_primitive register_notrace vspace {DECLARING}",
    "misc": "const_graph flatten",
    "misc.fixed_points": "fixed_point",
    "misc.flatten": "flatten flatten_func",
    "misc.optimizers": "adam rmsprop sgd unflatten_optimizer",
    "misc.tracers": "const_graph",
    "numpy": "array_from_args c_ concatenate_args fft linalg make_diagonal metadata r_ random row_stack where",
    "numpy.fft": "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft",
    "numpy.linalg": """LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul
        matrix_norm matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals
        tensordot tensorinv tensorsolve trace vecdot vector_norm""",
    "numpy.numpy_boxes": "ArrayBox Box",
    "numpy.numpy_vjps": "balanced_eq match_complex repeat_to_match_shape replace_zero unbroadcast unbroadcast_f",
    "numpy.numpy_vspaces": "ArrayVSpace ComplexArrayVSpace VSpace",
    "numpy.random": "RandomState default_rng normal permutation rand randint randn seed uniform",
    "scipy.integrate": "odeint",
    "scipy.linalg": "solve_banded solve_sylvester solve_triangular sqrtm",
    "scipy.misc": "logsumexp",
    "scipy.signal": "convolve",
    "scipy.special": """beta betainc betaln digamma erf erfc erfcinv erfinv expit gamma gammainc gammaincc gammaln
        gammasgn i0 i1 iv ive j0 j1 jn logit logsumexp multigammaln polygamma psi rgamma y0 y1 yn""",
    "scipy.stats": "beta chi2 dirichlet gamma multivariate_normal norm poisson t",
    "scipy.stats.beta": "cdf logpdf pdf",
    "scipy.stats.chi2": "cdf logpdf pdf",
    "scipy.stats.dirichlet": "logpdf pdf rvs",
    "scipy.stats.gamma": "cdf logpdf pdf",
    "scipy.stats.multivariate_normal": "entropy logpdf pdf",
    "scipy.stats.norm": "cdf logcdf logpdf logsf pdf sf",
    "scipy.stats.poisson": "cdf logpmf pmf",
    "scipy.stats.t": "cdf logcdf logpdf pdf",
    "test_util": "check_equivalent check_grads check_jvp check_vjp combo_check scalar_close",
    "tracer": "Box Node getval isbox new_box notrace_primitive primitive register_notrace toposort trace trace_stack",
    "util": "func subval subvals toposort",
    "wrap_util": "get_doc get_name unary_to_nary wrap_nary_f wraps",
}


def run_python(code, *options):
    done = subprocess.run([sys.executable, *options, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def same(found, stored, path):
    if isinstance(stored, list):
        assert len(found) == len(stored), path
        for i, (f, s) in enumerate(zip(found, stored, strict=True)):
            same(f, s, f"{path}[{i}]")
    else:
        assert found == pytest.approx(stored, rel=1e-10, abs=1e-11), path


# Names


@pytest.mark.parametrize("module", NAMES)
def test_names_of_autograd_exist(module):
    home = import_module("funcgrad.interop.autograd" + ("." + module if module else ""))
    missing = [name for name in NAMES[module].split() if not hasattr(home, name)]
    assert missing == []


@pytest.mark.parametrize("module", ["", ".linalg", ".fft", ".random"])
def test_names_of_numpy_exist(module):
    theirs, ours = import_module("numpy" + module), import_module("funcgrad.interop.autograd.numpy" + module)
    public = {n for n, v in vars(theirs).items() if not n.startswith("_") and not isinstance(v, types.ModuleType)}
    assert sorted(name for name in public if not hasattr(ours, name)) == []
    assert {name for name in ours.__all__ if not hasattr(ours, name)} == set()


def test_numpy_functions_wrap_funcgrad():
    assert np.sin.__wrapped__ is fg.numpy.sin
    assert np.linalg.solve.__wrapped__ is fg.numpy.linalg.solve
    assert np.fft.fft.__wrapped__ is fg.numpy.fft.fft
    assert np.add.reduce(X) == X.sum()
    assert np.random.randn is numpy.random.randn
    assert np.ndarray is numpy.ndarray
    assert np.pi == numpy.pi
    assert np.polynomial.polynomial.polyval is fg.numpy.polynomial.polynomial.polyval


def test_array_likes_of_other_libraries():
    class Column:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return numpy.array(self.values, dtype)

    column = Column([1.0, 2.0, 3.0])
    numpy.testing.assert_array_equal(np.exp(column), numpy.exp([1.0, 2.0, 3.0]))
    numpy.testing.assert_array_equal(np.abs(column), [1.0, 2.0, 3.0])
    assert grad(lambda x: np.sum(np.multiply(x, column)))(X).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InputError, match="argument 1"):
        grad(lambda x: np.sum(np.multiply(x, object())))(X)
    with pytest.raises(TypeError):
        np.exp("text")


def test_scipy_functions_wrap_funcgrad():
    special = import_module("funcgrad.interop.autograd.scipy.special")
    assert special.digamma is import_module("funcgrad.scipy.special").digamma
    assert special.psi is import_module("funcgrad.scipy.special").psi
    assert {"digamma", "logsumexp"} <= set(dir(special))
    numpy.testing.assert_allclose(grad(special.logsumexp)(numpy.zeros(4)), 0.25 * numpy.ones(4))
    assert grad(special.gammaln)(3.0) == pytest.approx(1.5 - numpy.euler_gamma)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_function'"):
        special.no_such_function  # noqa: B018


def test_import_loads_no_scipy():
    code = "import sys, funcgrad.interop.autograd as ag; ag.install(); import autograd.scipy.stats.norm"
    code += "; print(*sys.modules)"
    assert not {name for name in run_python(code).split() if name.partition(".")[0] in ("scipy", "jax")}


# Whole programs


def test_programs_run_unchanged():
    code = (
        "from funcgrad.interop.autograd import install; install(); import runpy; "
        f"runpy.run_path({str(PROGRAMS)!r}, run_name='__main__')"
    )
    found = json.loads(run_python(code, "-W", "error"))
    assert sorted(found) == sorted(NUMBERS)
    for name, stored in NUMBERS.items():
        same(found[name], stored, name)


def test_install_and_uninstall():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "autograd"}
    with ag.install(replace=True):
        import autograd
        import autograd.numpy as anp
        from autograd.scipy.stats import norm

        assert autograd is ag
        assert anp is np
        assert norm is import_module("funcgrad.interop.autograd.scipy.stats.norm")
        with ag.install():  # the outer install stays active
            pass
        assert sys.modules["autograd"] is ag
        assert ag.__spec__.name == "funcgrad.interop.autograd"
        assert anp.__name__ == "autograd.numpy"  # programs check the name
    assert np.__name__ == "funcgrad.interop.autograd.numpy"
    assert {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "autograd"} == before
    ag.uninstall()


def test_install_raises_if_autograd_is_imported(monkeypatch):
    real, part = types.ModuleType("autograd"), types.ModuleType("autograd.numpy")
    for name in [n for n in sys.modules if n.partition(".")[0] == "autograd"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "autograd", real)
    monkeypatch.setitem(sys.modules, "autograd.numpy", part)
    with pytest.raises(InstallError, match="imported already, got autograd"):
        ag.install()
    assert sys.modules["autograd"] is real

    def inside():
        with ag.install(replace=True):
            assert sys.modules["autograd.numpy"] is np
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        inside()
    assert sys.modules["autograd"] is real
    assert sys.modules["autograd.numpy"] is part
    assert "autograd.core" not in sys.modules


# Differential operators


def test_argnum_may_be_a_tuple_or_a_list_or_negative():
    f = lambda a, b, c=2.0: a * b**2 * c
    assert grad(f, (0, 1))(2.0, 3.0) == (18.0, 24.0)
    assert grad(f, [1])(2.0, 3.0) == (24.0,)
    assert grad(f, -1)(2.0, 3.0) == 24.0
    assert grad(f, 1)(2.0, 3.0, c=1.0) == 12.0
    with pytest.raises(InputError, match="argnum must name positional arguments, got 2 and 2"):
        grad(f, 2)(2.0, 3.0)
    with pytest.raises(TypeError, match="argnum must be a position"):
        grad(f, "a")


def test_operator_results_have_names():
    def f(x):
        return x

    assert grad(f).__name__ == "grad_of_f_wrt_argnum_0"
    assert "grad of function f" in grad(f).__doc__
    with pytest.raises(InputError, match="grad"):
        grad(3)


def test_single_number_of_any_shape_is_scalar():
    value, gradient = value_and_grad(lambda x: np.sum(x**2, keepdims=True))(X)
    assert value.shape == (1,)
    numpy.testing.assert_allclose(gradient, 2 * X)
    for fun in (lambda x: x, lambda x: x[:0], lambda x: x[0] * 1j):
        with pytest.raises(TypeError, match="must return one real number"):
            grad(fun)(X)


def test_integers():
    point = numpy.array([1, 2, 3])
    for f in (lambda x: np.sum(x**2), lambda x: x[0] ** 2 + x[1] ** 2 / 2 + x[2] * 0.5):
        assert grad(f)(point).dtype == float
    numpy.testing.assert_array_equal(grad(lambda x: x[0] / 4 + x[0] * 0.5)(point), [0.75, 0, 0])
    with pytest.raises(TypeError, match="floating"):
        grad(lambda x: x**2)(3)


def test_gradient_has_dtype_of_argument():
    assert grad(lambda x: np.sum(x * numpy.float64(2)))(X.astype(numpy.float32)).dtype == numpy.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda: grad(lambda x: 3.0)(2.0),
        lambda: jacobian(lambda x: X)(X),
        lambda: make_vjp(lambda x: 3.0)(2.0),
        lambda: holomorphic_grad(lambda x: x)(2.0),
    ],
    ids=["grad", "jacobian", "make_vjp", "holomorphic_grad"],
)
def test_warnings_point_at_calling_line(call):
    with pytest.warns(UserWarning, match="independent|not complex") as caught:
        call()
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, call.__code__.co_firstlineno)}


def test_independent_of_input():
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert grad(lambda x: 3.0)(2.0) == 0
    with pytest.warns(UserWarning, match="independent"):
        numpy.testing.assert_array_equal(jacobian(lambda x: X)(X), numpy.zeros((3, 3)))
    with pytest.warns(UserWarning, match="independent"):
        assert make_jvp(lambda x: 3.0)(2.0)(1.0) == (3.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(lambda x: grad(lambda y: x * y)(1.0))(2.0)


def test_results_in_containers():
    vjp, value = make_vjp(lambda x: (x[0] * x[1], [x[2]]))(X)
    assert value == (X[0] * X[1], [X[2]])
    numpy.testing.assert_allclose(vjp((1.0, [2.0])), [X[1], X[0], 2.0])


def test_cotangents_may_broadcast():
    vjp, _ = make_vjp(np.sin)(X)
    numpy.testing.assert_allclose(vjp(1), numpy.cos(X))
    with pytest.raises(ShapeError, match="got shape \\(2,\\)"):
        vjp(numpy.ones(2))
    with pytest.raises(InputError, match="must be real"):
        vjp(1j)


def test_jacobian_and_hessian_of_several_arguments():
    f = lambda a, b: np.sum(a * b**2)
    found = jacobian(lambda a, b: a * b, (0, 1))(X, 2 * X)
    numpy.testing.assert_allclose(found[1], numpy.diag(X))
    second = hessian(f, (0, 1))(X, 2 * X)
    numpy.testing.assert_allclose(second[0][1], numpy.diag(4 * X))


def test_hessian_product_of_containers():
    f = lambda p: p["a"] ** 2 * np.sum(p["b"] ** 2)
    point, direction = {"a": 2.0, "b": X}, {"a": 1.0, "b": numpy.zeros(3)}
    found = ag.hessian_vector_product(f)(point, direction)
    assert found["a"] == pytest.approx(2 * numpy.sum(X**2))
    numpy.testing.assert_allclose(found["b"], 8 * X)


def test_multigrad_dict():
    def f(x, *args, y=2.0, **kwargs):
        return x * args[0] * y + kwargs["z"] ** 2

    found = ag.multigrad_dict(f)(3.0, 4.0, z=5.0)
    assert list(found) == ["x", "args", "y", "kwargs"]
    assert found == {"x": 8.0, "args": (6.0,), "y": 12.0, "kwargs": {"z": 10.0}}


def test_holomorphic_grad_of_a_real_number_warns():
    with pytest.warns(UserWarning, match="not complex"):
        ag.holomorphic_grad(lambda x: x**2)(2.0)
    with pytest.raises(TypeError, match="real"):
        elementwise_grad(lambda x: x * 1j)(X)


def test_under_jax():
    f = lambda x: np.sum(np.abs(x) * np.clip(x, 0.0, 1.0)) + np.linalg.eigh(np.outer(x, x) + numpy.eye(3))[0][2]
    with double_precision(jax):
        found = jax.jit(grad(f))(jax.numpy.asarray(X))
        assert isinstance(found, jax.Array)
        numpy.testing.assert_allclose(found, grad(f)(X), rtol=1e-12)


def test_threads_do_not_mix():
    inside, leave = threading.Event(), threading.Event()

    def other(x):
        inside.set()
        assert leave.wait(30)
        return x**2

    thread = threading.Thread(target=lambda: grad(other)(1.0))
    thread.start()
    assert inside.wait(30)

    def outer(x):
        leave.set()
        thread.join(30)
        return x * grad(lambda y: x * y * y)(1.0)

    assert grad(outer)(1.0) == 4.0


def test_known_autograd_errors_are_right():
    mask = numpy.array([True, False, True])
    numpy.testing.assert_array_equal(grad(lambda x: np.sum(x, where=mask))(X), [1, 0, 1])
    assert grad(lambda a: np.sum(np.full_like(X, a)))(2.0) == 3.0
    numpy.testing.assert_array_equal(grad(lambda x: np.linalg.norm(x, np.inf))(X), [0, 0, 1])
    numpy.testing.assert_array_equal(grad(np.prod)(numpy.array([0.0, 2.0, 3.0])), [6, 0, 0])
    assert grad(np.sinc)(0.0) == 0.0
    numpy.testing.assert_allclose(elementwise_grad(np.vectorize(lambda x: x**2))(X), 2 * X)
    with pytest.raises(RuntimeError, match="stop"):
        grad(lambda x: (_ for _ in ()).throw(RuntimeError("stop")))(1.0)
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6.0


# Kinks: reverse and forward mode


@pytest.mark.parametrize(
    ("fun", "point", "slopes"),
    [
        (np.abs, [-1.0, 0.0, 2.0, numpy.inf], [-1, 0, 1, 1]),
        (np.absolute, [-1.0, 0.0, 2.0], [-1, 0, 1]),
        (np.fabs, [-1.0, 0.0, 2.0], [-1, 0, 1]),
        (lambda x: np.clip(x, 0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0], [0, 0, 1, 0, 0]),
        (lambda x: np.clip(x, None, 1.0), [0.0, 1.0], [1, 0]),
        (lambda x: np.clip(x, a_min=0.0, a_max=None), [0.0, 1.0], [0, 1]),
        (lambda x: np.clip(X, x, 2.0), [0.0, -0.7, 1.5], [0, 1, 1]),
        (lambda x: np.clip(X, -2.0, x), [0.0, -0.7, 2.0], [1, 1, 0]),
        (lambda x: np.fmax(x, 1), [0.0, 1.0, 2.0, numpy.nan], [0, 0.5, 1, 0]),
        (lambda x: np.fmax(1.0, x), [0.0, 1.0, 2.0], [0, 0.5, 1]),
        (lambda x: np.fmin(x, 1.0), [0.0, 1.0, 2.0], [1, 0.5, 0]),
        (lambda x: np.maximum(x, 1.0), [0.0, 1.0, 2.0], [0, 0.5, 1]),
        (lambda x: np.power(0.0, x), [0.0, 1.0], [0, 0]),
        (lambda x: np.power(x, x), [0.0, 1.0], [0, 1]),
        (lambda x: np.power(x, 2), [0.0, 3.0], [0, 6]),
    ],
)
def test_kinks(fun, point, slopes):
    point = numpy.array(point)
    numpy.testing.assert_allclose(elementwise_grad(fun)(point), slopes)
    numpy.testing.assert_allclose(make_jvp(fun)(point)(numpy.ones(len(point)))[1], slopes)


@pytest.mark.parametrize("name", ["abs", "fabs", "fmax", "fmin", "clip", "power", "linalg.eigh", "linalg.eigvalsh"])
def test_values_match_numpy(name):
    args = {
        "f": (X, X[::-1]),
        "c": (X, 0, [1.0, 2.0, 3.0]),
        "p": (numpy.abs(X), X),
        "l": (numpy.outer(X, X) + numpy.eye(3),),
    }
    ours, theirs = np, numpy
    for part in name.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    chosen = (X,) if name in ("abs", "fabs") else args[name[0]]
    for found, wanted in zip(numpy.atleast_2d(*ours(*chosen)), numpy.atleast_2d(*theirs(*chosen)), strict=True):
        numpy.testing.assert_array_equal(found, wanted)
    plain = make_vjp(lambda x: ours(x, *chosen[1:]))(chosen[0])[1]
    numpy.testing.assert_allclose(fg.tree.leaves(plain)[0], fg.tree.leaves(theirs(*chosen))[0], rtol=1e-12)


def test_values_of_numbers_and_integers_match_numpy():
    assert np.abs(-3) == 3
    assert type(np.abs(-3)) is type(numpy.abs(-3))
    assert np.clip(numpy.array([1, 5]), 2, 3).dtype == int
    assert np.abs(3 + 4j) == 5.0
    assert np.maximum.reduce([1, 3]) == 3
    numpy.testing.assert_array_equal(np.abs(X, where=X > 0, out=X.copy()), X)
    numpy.testing.assert_allclose(grad(lambda z: np.abs(z))(3 + 4j), 0.6 - 0.8j)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh_reads_one_triangle(uplo):
    a = numpy.array([[2.0, 0.5 + 1j, 0.1], [0.5 - 1j, 1.0, 0.3j], [0.1, -0.3j, -1.0]])
    other = numpy.triu(numpy.ones((3, 3)), 1) if uplo == "L" else numpy.tril(numpy.ones((3, 3)), -1)
    for fun in (lambda a: np.linalg.eigh(a, uplo)[0][0], lambda a: np.linalg.eigvalsh(a, uplo)[0]):
        gradient = grad(fun)(a)
        assert not numpy.any(gradient * other)
        symmetric = fg.grad(lambda a: fg.numpy.linalg.eigvalsh(a, uplo)[0])(a)
        numpy.testing.assert_allclose(numpy.tril(gradient + gradient.conj().T), numpy.tril(2 * symmetric), atol=1e-12)
    fg.check_grads(lambda a: np.linalg.eigh(a)[0], (a.real,), modes=("fwd", "rev"), order=1)


# Primitives


def cube():
    @primitive
    def cube(x, scale=1.0):
        assert not isbox(x)
        return numpy.asarray(x) ** 3 * scale

    return cube


def test_primitive_without_rules():
    f = cube()
    numpy.testing.assert_array_equal(f(X), X**3)
    assert f.fun(2.0) == 8.0
    assert f.__name__ == "cube"
    for transform in (grad(f), lambda x: make_jvp(f)(x)(1.0)):
        with pytest.raises(NotDifferentiableError, match="no derivative rule for arguments \\(0,\\)"):
            transform(2.0)


def test_one_rule_gives_both_modes_and_higher_orders():
    by_vjp, by_jvp = cube(), cube()
    defvjp(by_vjp, lambda ans, x, scale=1.0: lambda g: g * 3 * x**2 * scale)
    defjvp(by_jvp, lambda g, ans, x, scale=1.0: g * 3 * x**2 * scale)
    for f in (by_vjp, by_jvp):
        fg.check_grads(lambda x, f=f: f(x, scale=2.0), (X,), order=2)
        numpy.testing.assert_allclose(jacobian(f)(X), numpy.diag(3 * X**2))
        numpy.testing.assert_allclose(hessian(lambda x, f=f: np.sum(f(x)))(X), numpy.diag(6 * X))
        assert grad(grad(grad(f)))(2.0) == 6.0
        numpy.testing.assert_allclose(fg.vmap(grad(f))(X), 3 * X**2)
        numpy.testing.assert_allclose(fg.vmap(fg.jacfwd(f))(X), 3 * X**2)
        numpy.testing.assert_allclose(fg.vmap(grad(grad(f)))(X), 6 * X)


def test_vjp_rule_reading_cotangent_has_no_forward_mode():
    by_getval, by_stopping = cube(), cube()
    defvjp(by_getval, lambda ans, x, scale=1.0: lambda g: getval(g) * 3 * getval(x) ** 2 + g)
    defvjp(by_stopping, lambda ans, x, scale=1.0: lambda g: fg.stop_gradient(g) * 3 * x**2)
    assert grad(by_getval)(2.0) == 13.0
    numpy.testing.assert_array_equal(jacobian(by_getval)(X[:1]), [[3 * X[0] ** 2 + 1]])
    with pytest.raises(NotDifferentiableError, match="getval: a vjp rule takes the value of its cotangent"):
        make_jvp(by_getval)(2.0)(1.0)
    with pytest.raises(NotDifferentiableError, match="cube: the vjp rule does not compute with its cotangent"):
        make_jvp(by_stopping)(2.0)(1.0)
    # Second derivatives need reverse mode only.
    f = cube()
    defvjp(f, lambda ans, x, scale=1.0: lambda g: getval(g) * 3 * x**2)
    assert hessian(f)(2.0) == 12.0
    assert ag.hessian_vector_product(f)(2.0, 1.0) == 12.0


def test_primitives_under_transforms():
    f = cube()
    defvjp(f, lambda ans, x, scale=1.0: lambda g: g * 3 * x**2)

    def constant(x):
        with fg.no_grad():
            return f(x) * x

    assert grad(lambda x: constant(x) + x)(2.0) == 1.0
    assert fg.trace(lambda x: f(x) + x)(2.0).outputs is not None
    assert grad(fg.checkpoint(lambda x: f(x) ** 2))(2.0) == 192.0
    found = fg.vmap(lambda x, y: grad(lambda x: f(x) * y)(x), in_axes=(0, None))(X, 2.0)
    numpy.testing.assert_allclose(found, 6 * X**2)
    found = fg.vmap(lambda x: fg.vmap(f)(x))(numpy.outer(X, X))
    numpy.testing.assert_allclose(found, numpy.outer(X, X) ** 3)
    with pytest.raises(ShapeError, match="axis of length 0"):
        fg.vmap(f)(X[:0])


def test_vmap_passes_single_examples_to_rules():
    @primitive
    def total(x):
        return float(numpy.sum(x))

    seen = []

    def maker(ans, x):
        def pull(g):
            seen.append(type(g))
            return float(g) * numpy.ones(x.shape)

        return pull

    defvjp(total, maker)
    found = jacobian(lambda x: np.stack([total(x), total(2 * x)]))(X)
    numpy.testing.assert_array_equal(found, [[1, 1, 1], [2, 2, 2]])
    assert fg.core.Tracer not in {kind.__mro__[-2] for kind in seen}


def test_rules_of_several_arguments():
    @primitive
    def f(how, x, y):
        return {"plus": numpy.add, "times": numpy.multiply}[how](x, y)

    asked = []

    def vjps(argnums, ans, args, kwargs):
        asked.append(argnums)
        how, x, y = args
        others = {1: y, 2: x}
        return lambda g: [g if how == "plus" else g * others[i] for i in argnums]

    def jvps(argnums, gs, ans, args, kwargs):
        others = {1: args[2], 2: args[1]}
        return sum(g if args[0] == "plus" else g * others[i] for i, g in zip(argnums, gs, strict=True))

    defvjp_argnums(f, vjps)
    defjvp_argnums(f, jvps)
    assert grad(f, 2)("times", 3.0, 4.0) == 3.0
    assert grad(f, (1, 2))("plus", 3.0, 4.0) == (1.0, 1.0)
    assert asked == [(2,), (1, 2)]
    assert make_jvp(f, (1, 2))("times", 3.0, 4.0)((1.0, 10.0))[1] == 34.0
    assert grad(lambda x: f("times", x, x))(3.0) == 6.0
    assert grad(lambda x: x * grad(lambda y: f("times", x, y))(2.0))(3.0) == 6.0
    defvjp_argnum(f, lambda argnum, ans, args, kwargs: lambda g: g * 100.0 * argnum)
    defjvp_argnum(f, lambda argnum, g, ans, args, kwargs: g * 100.0 * argnum)
    assert grad(f, (1, 2))("plus", 3.0, 4.0) == (100.0, 200.0)
    assert make_jvp(f, (1, 2))("plus", 3.0, 4.0)((1.0, 1.0))[1] == 300.0


def test_missing_rules():
    @primitive
    def f(x, y, z):
        return x * y * z

    defvjp(f, lambda ans, x, y, z: lambda g: g * y * z, None)
    assert grad(f, (0, 1))(2.0, 3.0, 4.0) == (12.0, 0.0)
    with pytest.raises(NotDifferentiableError, match="no vjp rule for argument 2"):
        grad(f, 2)(2.0, 3.0, 4.0)
    defvjp(f, lambda ans, x, y, z: lambda g: g * x * y, argnums=[2])
    assert grad(f, 2)(2.0, 3.0, 4.0) == 6.0
    defjvp(f, None, "same", argnums=[0, 1])
    assert make_jvp(f, (0, 1))(2.0, 3.0, 4.0)((1.0, 1.0))[1] == 8.0
    with pytest.raises(InputError, match="a rule must be a function or None"):
        defvjp(f, "same")
    with pytest.raises(InputError, match="must be a primitive, got"):
        defvjp(3, None)


def test_containers_as_arguments_and_results():
    @primitive
    def both(point):
        return {"product": point[0] * point[1]["b"], "sum": point[0] + point[1]["b"]}

    def maker(ans, point):
        a, b = point[0], point[1]["b"]
        return lambda g: (g["product"] * b + g["sum"], {"b": g["product"] * a + g["sum"], "c": 0.0})

    defvjp(both, maker)

    def f(a, b):
        out = both((a, {"b": b, "c": 7.0}))
        return out["product"] * 2 + out["sum"]

    assert grad(f, (0, 1))(3.0, 4.0) == (9.0, 7.0)
    assert hessian(f, 0)(3.0, 4.0) == 0.0
    defvjp(both, lambda ans, point: lambda g: (1.0,))
    with pytest.raises(InputError, match="a cotangent of the argument's structure"):
        grad(f)(3.0, 4.0)


def test_cotangents_get_shape_and_dtype_of_arguments():
    f, g = cube(), cube()
    defvjp(f, lambda ans, x, scale=1.0: lambda ct: numpy.asarray(ct * 3 * x**2, numpy.complex128).reshape(-1))
    found = grad(f)(numpy.float32(2.0))
    assert found == 12.0
    assert found.dtype == numpy.float32
    defvjp(g, lambda ans, x, scale=1.0: lambda ct: numpy.ones(2))
    with pytest.raises(ShapeError, match="vjp rule gave the wrong shape, got \\(2,\\), expected \\(3,\\)"):
        elementwise_grad(g)(X)


def test_linear_primitives():
    @primitive
    def twice(x):
        return 2 * numpy.asarray(x)

    def_linear(twice)
    assert make_jvp(twice)(3.0)(1.5) == (6.0, 3.0)
    with pytest.raises(NotDifferentiableError, match="no derivative rule"):
        grad(twice)(3.0)
    defvjp(twice, lambda ans, x: twice)
    assert grad(lambda x: twice(x) * x)(3.0) == 12.0


def test_constants():
    assert grad(lambda x: x * notrace_primitive(int)(x))(2.5) == 2.0
    f = primitive(lambda x: numpy.floor(x))
    register_notrace(VJPNode, f)
    register_notrace(JVPNode, f)
    assert grad(lambda x: x * f(x))(2.5) == 2.0
    assert make_jvp(lambda x: x * f(x))(2.5)(1.0)[1] == 2.0
    with pytest.raises(InputError, match="must be VJPNode or JVPNode"):
        register_notrace(int, f)


def test_defvjp_on_differentiable_function_warns():
    with pytest.warns(UserWarning, match="cumprod is differentiated by what it is made of"):
        defvjp(np.cumprod, lambda ans, x: lambda g: 0 * g)
    numpy.testing.assert_allclose(grad(lambda x: np.cumprod(x)[1])(X), [X[1], X[0], 0])


def test_primitive_under_jax():
    f = primitive(lambda x: x**3)
    defvjp(f, lambda ans, x: lambda g: g * 3 * x**2)
    with double_precision(jax):
        assert jax.jit(grad(f))(2.0) == 12.0


# Boxes


def test_boxes():
    seen = []

    def f(x):
        seen.extend([isbox(x), isinstance(x, Box), isinstance(x, np.numpy_boxes.ArrayBox), ag.isinstance(x, float)])
        seen.extend([ag.type(x) is float, getval(x) == 2.0, not isbox(getval(x)), ag.isinstance([x], list)])
        return x

    fg.vjp(lambda x: grad(f)(x), 2.0)
    assert seen == [True] * 8
    assert not isinstance(2.0, Box)
    assert ag.isinstance(True, (int, str))
    assert not ag.isinstance("a", float)
    with pytest.raises(InputError, match="a batched value stands for many"):
        fg.vmap(getval)(X)
    with pytest.raises(InputError, match="register_pytree_node"):
        Box.register(set)
    with pytest.raises(InputError, match="register_pytree_node"):
        VSpace.register(set)


def test_vector_spaces():
    point = (2.0, {"b": X, "z": numpy.array([1j])})
    space = vspace(point)
    assert space.size == 1 + 3 + 2
    assert space == vspace((5.0, {"b": 2 * X, "z": numpy.array([1 + 1j])}))
    assert space != vspace((2.0, {"b": X, "z": X}))
    basis = list(space.standard_basis())
    assert len(basis) == 6
    gram = [[space.inner_prod(a, b) for a in basis] for b in basis]
    numpy.testing.assert_array_equal(gram, numpy.eye(6))
    summed = space.zeros()
    for vector in basis:
        summed = space.mut_add(summed, vector)
    assert vspace(summed) == space
    assert fg.tree.map(numpy.array_equal, summed, space.ones()) == (True, {"b": True, "z": True})
    numpy.testing.assert_array_equal(space.covector(space.ones())[1]["z"], [1 - 1j])
    assert space.inner_prod(space.scalar_mul(space.randn(), 0.0), space.ones()) == 0.0
    assert vspace(numpy.float32(1)).dtype == numpy.float32
    assert vspace(X).ndim == 1
    assert space.mut_add(None, space.ones())[0] == 1.0
    assert vspace(numpy.zeros((2, 3))).shape == (2, 3)
    assert grad(lambda x: vspace(X).inner_prod(x, x))(X).tolist() == (2 * X).tolist()
    for other in ("text", 3, object()):
        with pytest.raises(TypeError, match="vspace"):
            vspace(other)


# Other names


def test_flatten_can_be_differentiated():
    flat, unflatten = ag.misc.flatten({"b": X, "a": [1.0, ()]})
    assert flat.tolist() == [1.0, *X]
    numpy.testing.assert_allclose(grad(lambda v: np.sum(unflatten(v)["b"] ** 2))(flat), [0, *2 * X])
    numpy.testing.assert_allclose(grad(lambda p: np.sum(ag.misc.flatten(p)[0] ** 2))([X])[0], 2 * X)
    parts = unflatten(flat)
    parts["b"] += 1
    assert flat.tolist() == [1.0, *X]
    assert ag.misc.flatten([])[0].size == 0


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimisers_call_back(name):
    optimize, seen = getattr(import_module("funcgrad.interop.autograd.misc.optimizers"), name), []
    loss = lambda p, i: p["x"] ** 2
    found = optimize(grad(loss), {"x": 1.0}, lambda x, i, g: seen.append((x["x"], i, g["x"])), 2)
    assert [(i, float(g)) for _, i, g in seen] == [(0, 2.0), (1, 2 * seen[1][0])]
    assert 0 < found["x"] < 1


def test_test_util():
    test_util = ag.test_util
    wrong = cube()
    defvjp(wrong, lambda ans, x, scale=1.0: lambda g: g)
    test_util.check_grads(lambda x, y: x * y, (0, 1), modes=["rev"], order=1)(X, X)
    test_util.combo_check(np.sum, [0], order=1)([X, 2 * X], axis=[None, 0])
    test_util.check_equivalent(X, X.copy())
    for check in (test_util.check_vjp, test_util.check_jvp):
        check(np.sin, X)
        with pytest.raises(GradientCheckError):
            check(wrong, X)
    for other in (2 * X, X[:2]):
        with pytest.raises(GradientCheckError, match="check_equivalent"):
            test_util.check_equivalent(X, other)
    assert test_util.scalar_close(1.0, 1.0 + 1e-9)


def test_fixed_point_keeps_nothing_alive():
    fixed_point = import_module("funcgrad.interop.autograd.misc.fixed_points").fixed_point
    weights = 0.1 * numpy.outer(X, X)
    layer = lambda p: lambda x: np.tanh(np.dot(p["w"], x) + p["b"])
    solve = lambda p: fixed_point(layer, p, numpy.zeros(3), lambda x, y: np.max(np.abs(x - y)), 1e-13)
    fg.check_grads(solve, ({"w": weights, "b": X},), order=1)
    gc.collect()
    assert not [t for t in shared_state.unfinished_traces() if t.open]


def test_signal_convolve_against_numpy():
    signal = import_module("funcgrad.interop.autograd.scipy.signal")
    for mode in ("full", "valid", "same"):
        found = signal.convolve(numpy.arange(5.0), X, mode=mode)
        numpy.testing.assert_allclose(found, numpy.convolve(numpy.arange(5.0), X, mode), atol=1e-14)
    with pytest.raises(InputError, match="mode must be"):
        signal.convolve(X, X, mode="other")
    with pytest.raises(ShapeError, match="must be the larger"):
        signal.convolve(numpy.ones((2, 3)), numpy.ones((3, 2)), mode="valid")
    assert callable(signal.fftconvolve)


# Functions of NumPy whose derivative HIPS autograd 1.9.1 declares undefined

V = numpy.array([0.3, -0.7, 1.1, 0.4])
M2 = numpy.array([[1.3, 0.2], [-0.4, 0.9]])
B = numpy.arange(1.0, 5.0)
LACKING = {
    "apply_along_axis": lambda np, x: np.apply_along_axis(lambda row: row[0] * row, 0, x),
    "apply_over_axes": lambda np, x: np.apply_over_axes(np.sum, np.outer(x, x), [0, 1]),
    "asanyarray": lambda np, x: np.asanyarray([x[0], x[1] * x[2]]),
    "asarray": lambda np, x: np.asarray([x[0], x[1] * x[2]]),
    "average": lambda np, x: np.average(x, weights=x**2),
    "bincount": lambda np, x: np.bincount(numpy.array([0, 1, 1, 2]), weights=x**2),
    "block": lambda np, x: np.block([[x, x * 2], [x**2, x]]),
    "broadcast_arrays": lambda np, x: np.broadcast_arrays(x, x[:, None] ** 2)[1],
    "cbrt": lambda np, x: np.cbrt(x),
    "choose": lambda np, x: np.choose(numpy.array([0, 1, 1, 0]), [x, x**2]),
    "concat": lambda np, x: np.concat([x, x**2]),
    "convolve": lambda np, x: np.convolve(x, x[:2] ** 2),
    "copy": lambda np, x: np.copy(x) * x,
    "copysign": lambda np, x: np.copysign(x**2, x),
    "corrcoef": lambda np, x: np.corrcoef(x, x**2),
    "correlate": lambda np, x: np.correlate(x, x[:2] ** 2, "full"),
    "cov": lambda np, x: np.cov(x, x**2),
    "cumprod": lambda np, x: np.cumprod(x),
    "cumulative_prod": lambda np, x: np.cumulative_prod(x),
    "cumulative_sum": lambda np, x: np.cumulative_sum(x**2),
    "delete": lambda np, x: np.delete(x**2, 1),
    "diagflat": lambda np, x: np.diagflat(x**2),
    "divmod": lambda np, x: np.divmod(x, 0.25)[1],
    "dstack": lambda np, x: np.dstack([x, x**2]),
    "ediff1d": lambda np, x: np.ediff1d(x**2),
    "extract": lambda np, x: np.extract(numpy.array([True, False, True, True]), x**2),
    "flip": lambda np, x: np.flip(x) * x,
    "float_power": lambda np, x: np.float_power(x, 2),
    "fmod": lambda np, x: np.fmod(x, 0.25) * x,
    "geomspace": lambda np, x: np.geomspace(x[0], x[2], 5),
    "histogram": lambda np, x: np.histogram(B, 3, weights=x**2)[0],
    "i0": lambda np, x: np.i0(x),
    "insert": lambda np, x: np.insert(x, 1, x[0] * x[2]),
    "interp": lambda np, x: np.interp(x, numpy.array([-1.0, 0.0, 0.5, 2.0]), x**2),
    "kaiser": lambda np, x: np.kaiser(5, 3.0 + x[0]),
    "ldexp": lambda np, x: np.ldexp(x**2, 2),
    "logspace": lambda np, x: np.logspace(x[0], x[1], 4),
    "matrix_transpose": lambda np, x: np.matrix_transpose(np.outer(x, x**2)),
    "matvec": lambda np, x: np.matvec(np.outer(x, x), x),
    "median": lambda np, x: np.median(x**3),
    "meshgrid": lambda np, x: np.meshgrid(x, x**2)[1],
    "modf": lambda np, x: np.modf(x * x)[0],
    "nancumprod": lambda np, x: np.nancumprod(x),
    "nancumsum": lambda np, x: np.nancumsum(x**2),
    "nanmax": lambda np, x: np.nanmax(x**3),
    "nanmean": lambda np, x: np.nanmean(x**3),
    "nanmedian": lambda np, x: np.nanmedian(x**3),
    "nanmin": lambda np, x: np.nanmin(x**3),
    "nanpercentile": lambda np, x: np.nanpercentile(x**3, 30),
    "nanprod": lambda np, x: np.nanprod(x),
    "nanquantile": lambda np, x: np.nanquantile(x**3, 0.3),
    "nanstd": lambda np, x: np.nanstd(x),
    "nansum": lambda np, x: np.nansum(x**3),
    "nanvar": lambda np, x: np.nanvar(x),
    "percentile": lambda np, x: np.percentile(x**3, 30),
    "piecewise": lambda np, x: np.piecewise(x, [numpy.array([True, False, True, True])], [lambda v: v**2, 1.0]),
    "poly": lambda np, x: np.poly(x),
    "polyadd": lambda np, x: np.polyadd(x, x[:2] ** 2),
    "polyder": lambda np, x: np.polyder(x**2),
    "polydiv": lambda np, x: np.polydiv(x, x[:2])[0],
    "polyfit": lambda np, x: np.polyfit(B, x**2, 2),
    "polyint": lambda np, x: np.polyint(x**2),
    "polymul": lambda np, x: np.polymul(x, x[:2]),
    "polysub": lambda np, x: np.polysub(x**2, x[:2]),
    "polyval": lambda np, x: np.polyval(x, x[1]),
    "positive": lambda np, x: np.positive(x) * x,
    "ptp": lambda np, x: np.ptp(x**3),
    "quantile": lambda np, x: np.quantile(x**3, 0.3),
    "resize": lambda np, x: np.resize(x**2, (3, 2)),
    "roots": lambda np, x: np.abs(np.roots(np.stack([1.0, x[0], x[1]]))),
    "sort_complex": lambda np, x: np.real(np.sort_complex(x**2)),
    "take": lambda np, x: np.take(x**2, [1, 1, 3]),
    "take_along_axis": lambda np, x: np.take_along_axis(x**2, numpy.array([3, 1]), 0),
    "trapezoid": lambda np, x: np.trapezoid(x**2, x),
    "trim_zeros": lambda np, x: np.trim_zeros(x * numpy.array([0.0, 1.0, 1.0, 0.0])),
    "unstack": lambda np, x: np.stack(np.unstack(np.outer(x, x))),
    "unwrap": lambda np, x: np.unwrap(x * 5),
    "vander": lambda np, x: np.vander(x),
    "vdot": lambda np, x: np.vdot(x, x**2),
    "vecdot": lambda np, x: np.vecdot(x, x**2),
    "vecmat": lambda np, x: np.vecmat(x, np.outer(x, x)),
    "linalg.cond": lambda np, x: np.linalg.cond(M2 * x[0]) + np.linalg.cond(x.reshape(2, 2)),
    "linalg.cross": lambda np, x: np.linalg.cross(x[:3], x[:3] ** 2),
    "linalg.diagonal": lambda np, x: np.linalg.diagonal(np.outer(x, x)),
    "linalg.eigvals": lambda np, x: np.abs(np.linalg.eigvals(x.reshape(2, 2))),
    "linalg.eigvalsh": lambda np, x: np.linalg.eigvalsh(np.outer(x, x) + numpy.diag(B)),
    "linalg.lstsq": lambda np, x: np.linalg.lstsq(np.stack([x, x**2], 1), B, rcond=None)[0],
    "linalg.matmul": lambda np, x: np.linalg.matmul(np.outer(x, x), x),
    "linalg.matrix_norm": lambda np, x: np.linalg.matrix_norm(np.outer(x, x)),
    "linalg.matrix_power": lambda np, x: np.linalg.matrix_power(x.reshape(2, 2), 3),
    "linalg.matrix_transpose": lambda np, x: np.linalg.matrix_transpose(np.outer(x, x**2)),
    "linalg.multi_dot": lambda np, x: np.linalg.multi_dot([np.outer(x, x), np.outer(x, x**2), x]),
    "linalg.outer": lambda np, x: np.linalg.outer(x, x**2),
    "linalg.qr": lambda np, x: np.abs(np.linalg.qr(x.reshape(2, 2))[1]),
    "linalg.svdvals": lambda np, x: np.linalg.svdvals(x.reshape(2, 2)),
    "linalg.tensordot": lambda np, x: np.linalg.tensordot(np.outer(x, x), x, axes=1),
    "linalg.tensorinv": lambda np, x: np.linalg.tensorinv(x.reshape(2, 2), 1),
    "linalg.tensorsolve": lambda np, x: np.linalg.tensorsolve(x.reshape(2, 2), x[:2]),
    "linalg.trace": lambda np, x: np.linalg.trace(np.outer(x, x)),
    "linalg.vecdot": lambda np, x: np.linalg.vecdot(x, x**2),
    "linalg.vector_norm": lambda np, x: np.linalg.vector_norm(x),
    "fft.hfft": lambda np, x: np.fft.hfft(x**2),
    "fft.ihfft": lambda np, x: np.real(np.fft.ihfft(x**2)),
}


@pytest.mark.parametrize("name", LACKING)
def test_functions_without_derivative_in_autograd(name):
    f = LACKING[name]
    tangent, h = numpy.array([0.3, 1.0, -0.5, 0.7]), 1e-5
    after, before = [numpy.asarray(f(numpy, V + step * tangent)) for step in (h, -h)]
    measured = (after - before) / (2 * h)
    numpy.testing.assert_allclose(make_jvp(lambda x: f(np, x))(V)(tangent)[1], measured, rtol=1e-6, atol=1e-7)
    weights = numpy.random.default_rng(0).normal(size=measured.shape)
    slope = grad(lambda x: np.sum(f(np, x) * weights))(V)
    assert slope @ tangent == pytest.approx(numpy.sum(measured * weights), rel=1e-5, abs=1e-6)


# Traces that a program makes by hand


class Printed(Node):
    """Node that records the operations, as the examples of HIPS autograd print them."""

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        self.lines, self.name = parents[0].lines, f"v{len(parents[0].lines)}"
        shown = [str(arg) for arg in args]
        for argnum, parent in zip(parent_argnums, parents, strict=True):
            shown[argnum] = parent.name
        self.parents = parents
        self.lines.append(f"{self.name} = {fun.__name__}({', '.join(shown)}) = {value:g}")

    def initialize_root(self, x):
        self.lines, self.name, self.parents = [f"v0 = {x}"], "v0", ()


def test_custom_nodes_see_each_operation():
    start = Printed.new_root(2.0)
    value, end = trace(start, lambda x: np.exp(x) * x + 1.0, 2.0)
    assert value == pytest.approx(2 * numpy.exp(2) + 1)
    assert start.lines == [
        "v0 = 2.0",
        "v1 = exp(v0) = 7.38906",
        "v2 = multiply(v1, v0) = 14.7781",
        "v3 = add(v2, 1.0) = 15.7781",
    ]
    assert end.name == "v3"
    assert {node.name for node in toposort(end)} == {"v0", "v1", "v2", "v3"}
    assert trace(Printed.new_root(1.0), lambda x: grad(lambda y: y * y)(x), 3.0)[0] == 6.0
    with pytest.warns(UserWarning, match="independent"):
        assert trace(Printed.new_root(1.0), lambda x: 2.0, 1.0) == (2.0, None)
    assert not shared_state.unfinished_traces()


def test_manual_forward_and_backward_pass():
    with ag.install(replace=True):  # this gives boxes their nodes
        start = VJPNode.new_root()
        box = new_box(X, 0, start)
        out = np.stack([np.sum(box**2), box[0] * box[1]])
        assert isbox(out)
        assert numpy.array_equal(out._value, [numpy.sum(X**2), X[0] * X[1]])
        rows = []
        for unit in np.eye(2):
            row = backward_pass(new_box(unit, 0, VJPNode.new_root()), out._node)
            assert isbox(row)
            rows.append(row)
        found = np.stack(rows)._value
        assert type(found) is numpy.ndarray
        numpy.testing.assert_allclose(found, [2 * X, [X[1], X[0], 0.0]])
        del start, box, out, rows, row
    assert not hasattr(Box, "_node")
    assert not shared_state.unfinished_traces()
    assert trace(VJPNode.new_root(), np.sin, 0.5)[0] == numpy.sin(0.5)
    _, end = trace(JVPNode.new_root(2.0), np.sin, 0.5)
    assert end.g == pytest.approx(2 * numpy.cos(0.5))
    boxes = new_box((1.0, X), 0, VJPNode.new_root())
    with trace_stack.new_trace() as number:
        assert isinstance(number, int)
    assert [isbox(part) for part in boxes] == [True, True]
    assert boxes._trace is boxes[0]._trace
    with pytest.raises(InputError, match="Can't differentiate w"):
        new_box("text", 0, VJPNode.new_root())
    assert func(X) is X


class Tensor(numpy.ndarray):
    """Class of arrays that records whether an array takes part, as in PennyLane."""

    def __array_finalize__(self, obj):
        self.moves = getattr(obj, "moves", True)
        self.requires_grad = True

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [x.view(numpy.ndarray) if isinstance(x, Tensor) else x for x in inputs]
        return tensor(super().__array_ufunc__(ufunc, method, *plain, **kwargs))


def tensor(values, moves=True):
    made = np.asarray(values).view(Tensor)
    made.moves = moves
    return made


def as_box(x, *args):
    if not x.moves:
        raise ValueError("it does not take part")
    return ArrayBox(x, *args)


def test_custom_array_classes(monkeypatch):
    numpy.testing.assert_allclose(grad(lambda x: np.sum(np.sin(x) * tensor(X)))(X), numpy.cos(X) * X, rtol=1e-15)
    monkeypatch.setattr(backend, "ARRAY_CLASSES", set())
    requires_grad = Tracer.requires_grad
    Box.type_mappings[Tensor] = as_box
    VSpace.mappings[Tensor] = ArrayVSpace
    try:
        assert isinstance(np.exp(tensor(X)), numpy.ndarray)
        assert grad(lambda x: np.sum(np.sin(x) * tensor(X)))(tensor(X)).tolist() == (numpy.cos(X) * X).tolist()
        found = grad(lambda x: np.sum(tensor(x * 2) ** 2))(X)  # the class is requested for a traced value
        numpy.testing.assert_allclose(found, 8 * X)
        numpy.testing.assert_allclose(jacobian(lambda x, y: x * y**2, 1)(X, tensor(X)), numpy.diag(2 * X**2))
        numpy.testing.assert_allclose(jacobian(lambda x, y: x * y, 1)(tensor(X), tensor(X)), numpy.diag(X))
        numpy.testing.assert_allclose(grad(lambda x: tensor(math.exp(x)) * x)(0.5), 1.5 * numpy.exp(0.5))
        with pytest.raises(ValueError, match="does not take part"):
            grad(np.sum)(tensor(X, moves=False))
        assert isbox(as_box(tensor(X), None, None))
        with pytest.raises(AttributeError, match="moves"):
            grad(lambda x: x.moves)(1.0)
        with pytest.raises(InputError, match=r"Box\.register"):
            Box.register(set)
        with pytest.raises(InputError, match=r"VSpace\.register"):
            VSpace.register(set)
    finally:
        del Box.type_mappings[Tensor], VSpace.mappings[Tensor]
        del Tracer.moves
        Tracer.requires_grad = requires_grad


def test_derivatives_of_scipy_functions_can_be_declared():
    special = import_module("funcgrad.interop.autograd.scipy.special")
    fun = special.mathieu_a
    assert fun is special.mathieu_a
    with pytest.raises(TypeError, match="mathieu_a"):
        grad(fun, 1)(2, 0.5)
    value = fun(2, 0.5)
    defvjp(fun, None, lambda ans, m, q: lambda g: g * special.mathieu_b(m, q))
    assert fun(2, 0.5) == value
    assert grad(lambda q: fun(2, 2 * q))(0.25) == pytest.approx(2 * special.mathieu_b(2, 0.5), rel=1e-14)


def test_unchanged_math_functions():
    assert grad(math.sin)(0.5) == pytest.approx(math.cos(0.5))
    assert hessian(lambda x: math.sin(x))(0.5) == pytest.approx(-math.sin(0.5))
    assert make_vjp(lambda x: math.exp(x) * x)(0.5)[0](1.0) == pytest.approx(1.5 * math.exp(0.5))
    assert ag.core.make_vjp(lambda x: math.exp(x), 0.5)[0](1.0) == pytest.approx(math.exp(0.5))
    assert make_jvp(lambda x: math.exp(x))(0.5)(2.0)[1] == pytest.approx(2 * math.exp(0.5))


def test_arrays_made_in_primitives_are_ndarrays():
    kinds = []

    @primitive
    def f(x):
        made = np.zeros(3)
        kinds.append(type(made))
        made[:] = x
        return made

    defvjp(f, lambda ans, x: lambda g: np.sum(g))
    assert grad(lambda x: np.sum(f(x)))(2.0) == 3.0
    assert kinds == [numpy.ndarray]


def test_container_names_are_distinct_from_builtins():
    names = import_module("funcgrad.interop.autograd.builtins")
    for ours, theirs in ((names.list, list), (names.tuple, tuple), (names.dict, dict)):
        assert ours is not theirs
        assert type(ours()) is theirs
        assert isinstance(theirs(), ours)
    assert "__getattr__" not in vars(np)
    assert np.polynomial.Polynomial is not None


def test_helpers_of_rules():
    ones, j = numpy.ones, 1j
    narrow = numpy_wrapper.metadata(ones((3, 1)))
    numpy.testing.assert_array_equal(
        numpy_vjps.unbroadcast(ones((2, 3, 4)) * (8 + j), narrow), numpy.full((3, 1), 64.0)
    )
    assert numpy_vjps.repeat_to_match_shape(2.0, (), float, None, False) == (2.0, 1)
    assert [type(numpy_vjps.match_complex(a, b)) for a, b in ((j, 2.0), (j, j), (1.0, 2.0), (1.0, j))] == [
        complex, complex, float, float,
    ]  # fmt: skip
    numpy.testing.assert_array_equal(numpy_vjps.replace_zero(numpy.array([0.0, 2.0]), 7.0), [7.0, 2.0])
    x, z, y = numpy.array([[1.0, 2.0, 3.0], [1.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    numpy.testing.assert_array_equal(numpy_vjps.balanced_eq(x, z, y), [0.5, 1.0, 0.0])
    numpy.testing.assert_array_equal(numpy_wrapper.concatenate_args(0, ones(1), 2 * ones(2)), [1.0, 2.0, 2.0])
    made = numpy_wrapper.array_from_args((), {"dtype": numpy.float32}, 1.0, 2.0)
    numpy.testing.assert_array_equal(made, numpy.array([1.0, 2.0], numpy.float32), strict=True)


@pytest.mark.parametrize("mode", ["full", "valid"])
def test_convolutions_whose_second_array_is_larger(mode):
    rng = numpy.random.default_rng(0)
    x, y = rng.normal(size=(2, 2, 3)), rng.normal(size=(4, 5, 6))
    fun = lambda x, y: convolve(x, y, axes=([1, 2], [1, 2]), mode=mode)
    want = numpy.array([[scipy.signal.convolve(a, b, mode=mode) for b in y] for a in x])
    numpy.testing.assert_allclose(fun(x, y), want, rtol=1e-12, atol=1e-12)
    fg.check_grads(fun, (x, y), order=1)


def test_results_and_cotangents_of_other_structures_raise():
    for found, says in (("text", "got str"), (None, "got None")):
        with pytest.raises(InputError, match=says), pytest.warns(UserWarning, match="independent of input"):
            ag.grad(lambda x, found=found: found)(1.0)
    with pytest.raises(InputError, match="got a tuple"):
        ag.grad(lambda x: (x,))(1.0)
    with pytest.raises(ShapeError, match="different structures"):
        vspace({"a": numpy.ones(2), "b": 1.0}).conformed({"a": numpy.ones(2)})
    numpy.testing.assert_array_equal(ag.make_vjp(lambda x: 2.0 * x)(numpy.ones(2))[0]([1.0, 3.0]), [2.0, 6.0])


def test_clip_with_options():
    x = numpy.array([-1.0, 0.5, 2.0])
    numpy.testing.assert_array_equal(
        ag.elementwise_grad(lambda x: np.clip(x, 0.0, 1.0, dtype=float))(x), [0.0, 1.0, 0.0]
    )
