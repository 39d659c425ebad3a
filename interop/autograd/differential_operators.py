"""Derivatives of functions, with the names and arguments of HIPS autograd.

``argnum`` says which positional argument to differentiate: a position or a tuple of positions. Arguments may
be arrays, floating numbers and containers of them; integer arrays are converted to floating point.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, is_array
from funcgrad.errors import InputError
from funcgrad.interop.autograd.spaces import VSpace, differentiable, vspace
from funcgrad.interop.autograd.wrap_util import get_name, unary_to_nary
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.transforms.gradients import value_and_grad_of

__all__ = [
    "checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp", "make_hvp",
    "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "tensor_jacobian_product", "value_and_grad",
    "vector_jacobian_product",
]  # fmt: skip


def with_warning(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``fun`` with a warning if its result does not depend on the argument, so that the derivative is zero."""
    is_nary = getattr(fun, "__module__", None) == unary_to_nary.__module__
    stands = fun if is_nary else SelfRebuilding(fun)

    def run(x: Any) -> Any:
        out = stands(x)
        traces = {leaf._trace for leaf in tree.leaves(x) if isinstance(leaf, Tracer)}
        depends = any(isinstance(leaf, Tracer) and leaf._trace in traces for leaf in tree.leaves(out))
        if not depends:
            warnings.warn(f"{get_name(fun)}: Output seems independent of input.", stacklevel=user_stacklevel())
        return out

    run.__name__ = get_name(fun)
    return run


def pullback(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Compute ``make_vjp`` for a function of one argument."""
    out, pullback = fg.vjp(with_warning(fun), differentiable(x))
    return lambda g: pullback(vspace(out).conformed(g))[0], out


def pushforward(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Compute ``make_jvp`` for a function of one argument."""
    x = differentiable(x)
    space: VSpace = vspace(x)
    return lambda v: fg.jvp(with_warning(fun), (x,), (space.conformed(v),))


def make_vjp(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of the same arguments that returns ``(vjp, value)``; ``vjp(g)`` is the pullback of ``g``.

    The pullback can be called any number of times. A cotangent may be any value that broadcasts to the value's shape.

    Example:
        >>> vjp, value = make_vjp(lambda x, y: x * y)(3.0, 4.0)
        >>> value, vjp(1.0)
        (12.0, np.float64(4.0))
    """
    return unary_to_nary(_named("make_vjp", pullback))(fun, argnum)


def make_jvp(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of the same arguments that returns ``jvp``; ``jvp(v)`` is ``(value, tangent)``.

    Example:
        >>> make_jvp(lambda x: x * x)(3.0)(1.0)
        (9.0, np.float64(6.0))
    """
    return unary_to_nary(_named("make_jvp", pushforward))(fun, argnum)


def _named(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def named(fun: Callable[[Any], Any], x: Any) -> Any:
        return operator(fun, x)

    named.__name__ = name
    return named


def _scalar(call: str, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the value and the gradient of a function whose result is one real number, in any shape."""
    shape: tuple[int, ...] = ()

    def flat(x: Any) -> Any:
        nonlocal shape
        out = fun(x)
        if not is_array(out):
            return out  # the transform refuses it with its own message
        shape, dtype = backend.shape_and_dtype_of(out)
        if prod(shape) != 1 or dtype.kind == "c":
            raise InputError(
                f"{call}: the function must return one real number, got dtype {dtype} and shape {shape}. Use jacobian, "
                "elementwise_grad or holomorphic_grad."
            )
        return fnp.reshape(out, ()) if shape else out

    flat.__name__ = get_name(fun)
    value, gradient = value_and_grad_of(f"autograd.{call}", with_warning(flat))(differentiable(x))
    return fnp.reshape(value, shape) if shape else value, gradient


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of a function whose result is one real number, in any shape: ``grad(fun, argnum=0)``.

    The gradient has the structure of the argument. For a complex argument z = x + iy it is du/dx - i du/dy.

    Example:
        >>> grad(lambda x, y: x * y**2, 1)(3.0, 4.0)
        np.float64(24.0)
    """
    return _scalar("grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return a function that returns value and gradient, from one evaluation: ``value_and_grad(fun, argnum=0)``."""
    return _scalar("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the gradient of the sum of all entries of a real result: ``elementwise_grad(fun, argnum=0)``.

    If each entry of the result depends on its own entry of the argument only, the gradient holds their derivatives.

    Example:
        >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    vjp, out = pullback(fun, x)
    space = vspace(out)
    if any(s.iscomplex for s in tree.leaves(space.shape) if isinstance(s, VSpace)) or space.iscomplex:
        raise InputError(
            "elementwise_grad: the function must return real numbers, got complex ones. Use holomorphic_grad, or take "
            "a real part."
        )
    return vjp(space.ones())


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the tangent of the result when all entries of the argument grow at rate 1: ``deriv(fun, argnum=0)``."""
    return pushforward(fun, x)(tree.map(lambda leaf: vspace(leaf).zeros() + 1, differentiable(x)))[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return all derivatives of a real result, with shape ``out.shape + x.shape``: ``jacobian(fun, argnum=0)``.

    Example:
        >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return fg.jacrev(with_warning(fun))(differentiable(x))


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a holomorphic function's derivative, with one number as result: ``holomorphic_grad(fun, argnum=0)``.

    Example:
        >>> holomorphic_grad(lambda z: z**2)(1 + 2j)
        np.complex128(2+4j)
    """
    x = differentiable(x)
    if not any(backend.dtype_of(leaf).kind == "c" for leaf in tree.leaves(x)):
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=user_stacklevel())
    return _scalar("holomorphic_grad", lambda x: fnp.real(fun(x)), x)[1]


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the second derivatives, with shape ``out.shape + x.shape + x.shape``: ``hessian(fun, argnum=0)``.

    Example:
        >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    return fg.jacrev(fg.jacrev(with_warning(fun)))(differentiable(x))  # the program's own rules may be VJP rules only


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return a function giving ``(hvp, gradient)``; ``hvp(v)`` is Hessian times v: ``make_hvp(fun, argnum=0)``."""
    return pullback(grad(fun), x)


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Return a function that returns ``jvp``, made of two reverse passes: ``make_jvp_reversemode(fun, argnum=0)``."""
    vjp, out = pullback(fun, x)
    return pullback(vjp, vspace(out).zeros())[0]


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return gradient and aux of a function that returns ``(result, aux)``: ``grad_and_aux(fun, argnum=0)``."""
    out, pullback, aux = fg.vjp(fun, differentiable(x), has_aux=True)
    return pullback(vspace(out).ones())[0], aux


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return the gradient with respect to the argument called ``argname``, which is passed by position.

    Example:
        >>> grad_named(lambda x, y: x * y, "y")(3.0, 4.0)
        np.float64(3.0)
    """
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


def hessian_tensor_product(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of ``(*args, tensor)``: the Hessian times a tensor with the differentiated argument's shape.

    Example:
        >>> hessian_tensor_product(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
        array([4., 2.])
    """
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        return make_vjp(gradient, argnum)(*args[:-1], **kwargs)[0](args[-1])  # the Hessian is symmetric

    product.__name__ = f"hessian_tensor_product_of_{get_name(fun)}"
    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function of ``(*args, tensor)``: a tensor times the Jacobian, contracted over all axes of the tensor.

    Example:
        >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
        array([2., 4.])
    """

    def contracted(*args: Any, **kwargs: Any) -> Any:
        return fnp.tensordot(args[-1], fun(*args[:-1], **kwargs), axes=fnp.ndim(args[-1]))

    contracted.__name__ = f"tensor_times_{get_name(fun)}"
    return jacobian(contracted, argnum)


vector_jacobian_product = tensor_jacobian_product


def make_ggnvp(
    f: Callable[..., Any],
    g: Callable[[Any], Any] = lambda x: 0.5 * fnp.sum(x**2, axis=-1),
    f_argnum: int = 0,
) -> Callable[..., Any]:
    """Return a function that returns ``ggnvp``: the generalised Gauss-Newton matrix of ``g(f(x))`` times a vector.

    The matrix is J' H J, with the Jacobian J of ``f`` and the Hessian H of ``g`` at ``f(x)``.
    """

    def of_unary(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
        vjp, out = pullback(f, x)
        jvp, _ = pullback(vjp, vspace(out).zeros())
        hvp, _ = pullback(grad(g), out)
        return lambda v: vjp(hvp(jvp(v)))

    return unary_to_nary(_named("make_ggnvp", of_unary))(f, f_argnum)


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., OrderedDict[str, Any]]:
    """Return a function that returns the gradients with respect to all arguments, by the names of the arguments.

    Example:
        >>> dict(multigrad_dict(lambda x, y: x * y)(3.0, y=4.0))
        {'x': np.float64(4.0), 'y': np.float64(3.0)}
    """
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_arguments(arguments: dict[str, Any]) -> Any:
            call = inspect.BoundArguments(signature, OrderedDict(arguments))
            return fun(*call.args, **call.kwargs)

        found = grad(of_arguments)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradients


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun``; the backward pass computes its intermediate values again instead of keeping them."""
    return fg.checkpoint(fun)
