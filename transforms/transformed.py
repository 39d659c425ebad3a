"""The callable that every transform returns. It keeps a useful name, signature and docstring, and pickles.

Pipelines are the reason for a class instead of a closure: a closure does not pickle, and
``functools.wraps`` would reduce a toolz ``Compose`` to its first stage.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

import numpy as np

from funcgrad.core import describe
from funcgrad.errors import ConcretizationError, InputError, ShapeError, short_repr, text_of
from funcgrad.numpy.plain_values.hints import add_hint
from funcgrad.numpy.tables.containers import LIBRARIES, REGISTERED, register_loaded
from funcgrad.numpy_code import (
    DATA_TYPES,
    Choice,
    check_refused,
    choice_for_next_call,
    deciding,
    is_conversion,
    known_codes,
    rebuilt_if_known,
    restore_refusal,
    retry_rebuilt,
    take_refusal,
)
from funcgrad.shared_state import pending_refusals

#: Number of calls after which the choice is not noted any more: what the function holds changes with each.
_MOST_CHOICES = 5
Argnums = int | tuple[int, ...]
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def raise_funcgrad_error(error: Exception) -> None:
    """Raise funcgrad's error in place of the error that NumPy or SciPy raise when they convert a tracer to a number.

    An error of another library that cannot take a tracer gets a note that says what to call instead.
    """
    if isinstance(error, (ValueError, SystemError)) and isinstance(error.__cause__, ConcretizationError):
        raise error.__cause__ from None
    if "must be hashable" in text_of(error):  # from toolz.memoize, whose error may come from a second run
        cause = error.__context__
        while cause is not None and not isinstance(cause, ConcretizationError):
            cause = cause.__context__
        if cause is not None:
            raise cause from None
    add_hint(error)


class _InstanceProperty:
    """Property of instances that the class itself does not have."""

    def __init__(self, compute: Callable[[Any], Any], on_class: Any = None) -> None:
        self.compute = compute
        self.on_class = on_class

    def __get__(self, obj: Any, cls: type) -> Any:
        if obj is not None:
            return self.compute(obj)
        if self.on_class is None:
            raise AttributeError
        return self.on_class


class Transformed(Generic[P, R]):
    """Function made from another function by a transform.

    Args:
        run: the transform's work, a module-level function ``run(fun, options, args, kwargs)``.
        fun: the function that was transformed.
        options: the transform's own arguments.
        summary: the docstring's sentence about the transform; ``{fun}`` is replaced by the function's name,
            ``{argnums}`` by the positions among the options. A sentence that begins with ``{fun}`` describes the same
            function: then the function's docstring comes first, else this sentence does.

    Example:
        >>> slope = grad(fnp.sin)
        >>> slope.__name__, str(slope.__doc__).splitlines()[0]
        ('sin', 'Gradient of sin with respect to positional argument(s) 0.')
    """

    #: Whether a call itself repeats a run that would lose a derivative, so that its caller need not.
    retries_itself = True

    def __init__(self, run: Callable[..., R], fun: Callable[P, Any], options: Any, summary: str) -> None:
        self.run = run
        self.fun = fun
        self.options = options
        self.summary = summary
        self._choice: Choice | None = None
        self._calls = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the transformed function."""
        run, options, given, choice = self.run, self.options, self.fun, self._choice
        if choice is not None:
            given = choice.given if choice.fits(given, args, kwargs) else self._choose(args, kwargs)
        elif self._calls == 0 and (known := self._as_it_is(args, kwargs)) is not None:
            given, self._calls = known, 1
        else:
            given = self._choose(args, kwargs)
        outer_refusals = take_refusal() if pending_refusals else None
        try:
            found = run(given, options, args, kwargs)
            if pending_refusals:
                check_refused(given)
            return found
        except Exception as error:
            if is_conversion(error):
                return self._retry_rebuilt(given, error, args, kwargs)
            if isinstance(error, InputError) and register_loaded():  # a library of tables was imported during the call
                return self(*args, **kwargs)
            raise_funcgrad_error(error)
            _explain_list_argument(error, args)
            raise
        finally:
            if pending_refusals or outer_refusals is not None:
                restore_refusal(outer_refusals, self.fun)

    def _as_it_is(self, args: Any, kwargs: Any) -> Any:
        """Return what runs if the function is known to run as it is, else None. Asked in the first call."""
        fun = self.fun
        if type(fun) is not FunctionType:
            return fun if type(fun) is Transformed else None
        known = known_codes.get(id(fun.__code__))
        if known is None or not known.stored.runs_as_it_is or kwargs or getattr(self.options, "argnums", 0):
            return None
        try:
            for cell in fun.__closure__ or ():
                if type(cell.cell_contents) not in DATA_TYPES:
                    return None
        except ValueError:  # the variable has no value yet
            return None
        chosen = fun.__kwdefaults__ or not DATA_TYPES.issuperset(map(type, (*args, *(fun.__defaults__ or ()))))
        return None if chosen else known.stored.followed(fun) if known.stored.paths else fun

    def _choose(self, args: Any, kwargs: Any) -> Any:
        """Return what runs in place of the function, and note it for the next call."""
        before = None if self._choice is None else self._choice.given
        others = deciding(args, kwargs, getattr(self.options, "argnums", 0))
        given = rebuilt_if_known(self.fun, others, before, self.run)
        if 0 < self._calls < _MOST_CHOICES:
            self._choice = choice_for_next_call(self.fun, given, args, kwargs)
        self._calls += 1
        return given

    def _retry_rebuilt(self, given: Any, error: Exception, args: Any, kwargs: Any) -> R:
        """Run the call again with the function rebuilt; the function as written would lose the derivative."""
        run, options, self._choice = self.run, self.options, None
        try:
            found: R = retry_rebuilt(self.fun, given, lambda fun: run(fun, options, args, kwargs), error)
            return found
        except Exception as other:
            raise_funcgrad_error(other)
            raise
        finally:
            del error  # the error refers to this frame

    def apply_transform(self, run: Callable[..., Any], options: Any, summary: str) -> Any:
        """Return a transform of this function, see ``transformed``."""
        return Transformed(run, self, options, summary)

    def _with_functions(self, translate: Callable[[Any], Any]) -> Transformed[..., Any]:
        """Return the same transform, applied to the translation of its function."""
        fun = translate(self.fun)
        return self if fun is self.fun else Transformed(self.run, fun, self.options, self.summary)

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        """Bind the function to an instance, as a method of a class."""
        return self if obj is None else MethodType(self, obj)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.run, self.fun, self.options, self.summary)

    def __repr__(self) -> str:
        made = self.run.__name__.removeprefix("run_")
        inner = self.fun
        return f"<{made} of {repr(inner)[1:-1] if isinstance(inner, Transformed) else name_of(inner)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transformed):
            return NotImplemented
        same = type(self) is type(other) and self.run is other.run and self.fun == other.fun
        return same and _are_same(self.options, other.options)

    def __hash__(self) -> int:
        return hash((self.run, self.fun, repr(self.options)))

    __name__ = _InstanceProperty(lambda self: name_of(self.fun), "Transformed")
    __qualname__ = "Transformed"
    __signature__ = _InstanceProperty(lambda self: inspect.signature(self.fun))
    __doc__ = _InstanceProperty(lambda self: _docstring(self), __doc__)


def _are_same(a: Any, b: Any) -> bool:
    """Whether two options are the same; True is not 1, since equal transforms must have equal hashes."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_are_same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if hasattr(a, "tocsr"):
        return bool(a.shape == b.shape and a.dtype == b.dtype and (a != b).nnz == 0)
    return bool(a == b)


def _explain_list_argument(error: Exception, args: Any) -> None:
    """Add a note to Python's error about arithmetic on a list argument: how to make the list an array."""
    if not isinstance(error, (TypeError, AttributeError)) or not re.search(
        r"\blist\b|multiply sequence", text_of(error)
    ):
        return
    places = [str(i) for i, arg in enumerate(args) if type(arg) is list]
    if places:
        error.add_note(
            f"Argument {' and '.join(places)} is a list, which transforms take as a container of arrays and functions "
            "get as a list. Pass an array: numpy.asarray(x)."
        )


def transformed(run: Callable[..., R], fun: Callable[P, Any], options: Any, summary: str) -> Transformed[P, R]:
    """Return ``Transformed(run, fun, options, summary)``; a ``Transformed`` decides itself, by ``apply_transform``."""
    if isinstance(fun, Transformed):
        made: Transformed[P, R] = fun.apply_transform(run, options, summary)
        return made
    return Transformed(run, fun, options, summary)


def _docstring(made: Transformed[..., Any]) -> str:
    fun = made.fun
    name = name_of(fun)
    own = None if isinstance(fun, functools.partial) else getattr(fun, "__doc__", None)
    note = made.summary.format(fun=name, argnums=_listed(getattr(made.options, "argnums", ())))
    if own and made.summary.startswith("{fun}"):
        return f"{inspect.cleandoc(own)}\n\n{note}"
    lines = [note, "", f"Takes the same arguments as {name}."]
    if own:
        lines += ["", f"Original documentation of {name}:", "", inspect.cleandoc(own)]
    return "\n".join(lines)


def name_of(fun: Any) -> str:
    """Return a name for ``fun``: its own, the name inside a partial or curry, the names in a juxt, or its type's.

    Example:
        >>> import functools
        >>> name_of(functools.partial(max, 1))
        'max'
    """
    name = getattr(fun, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(fun, functools.partial):
        return name_of(fun.func)
    inner = getattr(fun, "func", None)  # toolz.curry
    if callable(inner):
        return name_of(inner)
    if type(fun).__name__ == "juxt":  # toolz has two classes of this name, and neither has a __name__
        return "_and_".join(map(name_of, fun.funcs))
    return type(fun).__name__


def _listed(argnums: Any) -> str:
    return ", ".join(map(str, argnums)) if isinstance(argnums, tuple) else str(argnums)


#: Arguments of other libraries' transforms, and the corresponding arguments here.
_NAMES_ELSEWHERE = {
    "argnames": "argnums, with positions; keyword arguments are not differentiated",
    "argnum": "argnums",
    "dim": "in_axes",
    "in_dims": "in_axes",
    "out_dims": "out_axes",
    "wrt": "argnums",
}


def hide_extra_arguments(transform: F) -> F:
    """Hide ``*others`` and ``**others`` from the signature of ``transform``, which takes them only to refuse them.

    Example:
        >>> str(inspect.signature(hide_extra_arguments(lambda fun, **others: fun)))
        '(fun)'
    """
    signature, hidden = inspect.signature(transform), (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [p for p in signature.parameters.values() if p.kind not in hidden]
    transform.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return transform


def refuse_unknown_arguments(call: str, others: dict[str, Any]) -> NoReturn:
    """Refuse arguments that ``call`` does not have; name the argument that corresponds to one of another library.

    Raises:
        InputError: always (a ``TypeError``).
    """
    name = next(iter(others))
    known = (
        f"Use {_NAMES_ELSEWHERE[name]}." if name in _NAMES_ELSEWHERE else f"help(funcgrad.{call}) lists its arguments."
    )
    raise InputError(f"{call}: there is no argument of this name, got {name}={short_repr(others[name])}. {known}")


#: Calls that take a function first and return a function of its arguments.
_RETURN_FUNCTIONS = frozenset({
    "checkpoint", "crosscheck", "custom_jvp", "custom_vjp", "debug_nans", "from_array_api", "from_jax", "from_numpy",
    "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jit", "no_grad", "profile", "strict", "to_jax", "trace",
    "value_and_grad", "vmap",
})  # fmt: skip
#: How to write calls that take the arguments of the function as well.
_CALLS = {
    "vjp": "vjp(f, x)",
    "linearize": "linearize(f, x)",
    "linear_transpose": "linear_transpose(f, x)",
    "jvp": "jvp(f, (x,), (t,))",
    "hvp": "hvp(f, (x,), (t,))",
    "check_grads": "check_grads(f, (x,))",
}


def check_callable(call: str, fun: Any, others: dict[str, Any] | tuple[Any, ...] = ()) -> None:
    """Check that ``fun`` is callable, and that there are no ``others``: arguments that ``call`` does not have.

    Others by position are taken for arguments of ``fun``.

    Raises:
        InputError: a ``TypeError`` that names what was passed instead.
    """
    if not REGISTERED.issuperset(LIBRARIES.keys() & sys.modules.keys()):  # table libraries imported since the last call
        register_loaded()
    if others:
        if isinstance(others, dict):
            refuse_unknown_arguments(call, others)
        problem = f"the arguments of the function go to its result, got {describe(others[0])} after the function"
        raise InputError(f"{call}: {problem}. Write {call}(f)(x), not {call}(f, x).")
    if not callable(fun):
        code = f"{call}(f)(x), not {call}(f(x))" if call in _RETURN_FUNCTIONS else _CALLS.get(call, f"{call}(f, ...)")
        raise InputError(f"{call}: the first argument must be a function, got {describe(fun)}. Write {code}.")


def check_functions(call: str, **functions: Any) -> None:
    """Check that the named arguments are callable.

    Raises:
        InputError: a ``TypeError`` that names the argument and what was passed instead.
    """
    for name, fun in functions.items():
        if not callable(fun):
            raise InputError(
                f"{call}: {name} must be a function, got {describe(fun)}. Pass the function without calling it: f, not "
                "f(x)."
            )


def check_argnums(call: str, argnums: Any) -> Argnums:
    """Return ``argnums`` as an int or a tuple of ints.

    Raises:
        InputError: not an int or a sequence of ints; empty.
        ShapeError: a position named twice.
    """
    if type(argnums) is int:
        return argnums
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    if not isinstance(argnums, (tuple, list)) or not argnums:
        raise InputError(
            f"{call}: argnums must be an int or a non-empty tuple of ints, got {short_repr(argnums)}. "
            f"{_hint_for_argnums(call, argnums)}"
        )
    try:
        found = tuple(operator.index(a) for a in argnums)
    except TypeError:
        problem = f"{call}: argnums must hold ints, got {short_repr(argnums)}."
        raise InputError(f"{problem} {_hint_for_argnums(call, argnums[0])}") from None
    if len(set(found)) != len(found):
        raise ShapeError(f"{call}: argnums names a position twice, got {argnums!r}. Name each position once.")
    return found


def _hint_for_argnums(call: str, given: Any) -> str:
    """Return advice for ``argnums`` that are not positions: names, nothing, or a value meant as an argument."""
    if isinstance(given, str):
        return "Use positions, not names."
    if given is None or (isinstance(given, (tuple, list)) and not given):
        return "Name the positions of the arguments to differentiate."
    return f"Write {call}(f)(x), not {call}(f, x)."
