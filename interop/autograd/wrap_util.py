"""Conversion of operators on functions of one argument to functions of several arguments, as in HIPS autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.interop.autograd.util import subvals
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.transforms.transformed import check_callable

__all__ = ["get_doc", "get_name", "unary_to_nary", "wrap_nary_f", "wraps"]


def get_name(f: Any) -> str:
    """Return the name of a function.

    Example:
        >>> get_name(max), get_name(3)
        ('max', '[unknown name]')
    """
    return str(getattr(f, "__name__", "[unknown name]"))


def get_doc(f: Any) -> str:
    """Return the docstring of a function, or an empty text if it has none."""
    return getattr(f, "__doc__", "") or ""


def wraps(
    fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that sets name and docstring from patterns, filled with those of ``fun`` and ``kwargs``."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        return f

    return decorate


def wrap_nary_f(fun: Any, op: Any, argnum: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that names the result of ``op`` on ``fun``, such as ``grad_of_f_wrt_argnum_0``."""
    says = "{op} of function {fun} with respect to argument number {argnum}: it takes the same arguments."
    return wraps(fun, "{op}_of_{fun}_wrt_argnum_{argnum}", says, op=get_name(op), argnum=argnum)


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Convert ``op(fun, x)``, for functions of one argument, to ``op(fun, argnum=0)(*args, **kwargs)``.

    If ``argnum`` is a tuple or a list of positions, ``x`` is the tuple of these arguments. The new operator passes
    its further arguments to ``op``.

    Example:
        >>> doubled = unary_to_nary(lambda fun, x: 2 * fun(x))
        >>> doubled(lambda a, b: a - b, 1)(5.0, 3.0)
        4.0
    """

    def nary_operator(
        fun: Callable[..., Any], argnum: int | Sequence[int] = 0, *options: Any, **more: Any
    ) -> Callable[..., Any]:
        check_callable(get_name(unary_operator), fun)
        if type(argnum) not in (int, tuple, list):
            raise InputError(
                f"{get_name(unary_operator)}: argnum must be a position or a tuple of positions, got "
                f"{describe(argnum)}. Pass an int."
            )

        stands = SelfRebuilding(fun)

        def nary_f(*args: Any, **kwargs: Any) -> Any:
            where: Any = argnum
            one = type(argnum) is int

            def unary_f(x: Any) -> Any:
                return stands(*subvals(args, [(where, x)] if one else zip(where, x, strict=True)), **kwargs)

            unary_f.__name__ = get_name(fun)
            try:
                x = args[where] if one else tuple(args[i] for i in where)
            except IndexError:
                raise InputError(
                    f"{get_name(unary_operator)}: argnum must name positional arguments, got {argnum} and "
                    f"{len(args)} of them. Pass the argument by position, or another argnum."
                ) from None
            return unary_operator(unary_f, x, *options, **more)

        return wrap_nary_f(fun, unary_operator, argnum)(nary_f)

    return wraps(unary_operator)(nary_operator)
