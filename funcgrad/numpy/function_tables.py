"""Helpers that define public functions as rows of a table: arguments, a line of text, an example and its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, Signature, cleandoc, signature
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

#: Import lines for names in examples; names that all examples know are in ``conftest.py``.
IMPORTS = {
    "fft": "from funcgrad.scipy import fft",
    "jvp": "from funcgrad import jvp",
    "optimize": "from funcgrad.scipy import optimize",
} | {
    name: f"from funcgrad.scipy.{module} import {name}"
    for module, names in {
        "linalg": "expm logm sqrtm tanhm",
        "ndimage": "convolve correlate maximum_filter maximum_filter1d median_filter minimum_filter minimum_filter1d",
        "sparse": "eye_array tril triu",
        "spatial.distance": "braycurtis canberra chebyshev cityblock cosine euclidean",
    }.items()
    for name in names.split()
}


def docstring(text: str, example: str, shows: str) -> str:
    r"""Return a docstring: ``text``, then a section with the expression ``example`` and its result ``shows``.

    Example:
        >>> docstring("The sum.", "np.add(1, 2)", "3").split("\n")[2:]
        ['Example:', '    >>> np.add(1, 2)', '    3']
    """
    needed = [line for name, line in IMPORTS.items() if re.search(rf"(?<![\w.]){name}\b", example)]
    lines = [f">>> {line}" for line in (*needed, *example.split("\n"))] + shows.split("\n")
    return "\n    ".join([f"{cleandoc(text)}\n\nExample:", *lines])


def set_identity(fun: F, module: str, name: str, doc: str) -> F:
    """Make ``fun`` the function ``name`` of ``module``, with ``doc`` as its docstring.

    Example:
        >>> fun = set_identity(lambda x: x, "here", "same", "What is given.")
        >>> fun.__module__, fun.__name__, fun.__doc__
        ('here', 'same', 'What is given.')
    """
    fun.__module__, fun.__name__, fun.__qualname__, fun.__doc__ = module, name, name, doc
    return fun


def with_signature_of(model: Callable[P, R]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a function that passes its arguments on the signature of ``model``, for editors and type checkers.

    Example:
        >>> def scaled(x, factor=2.0):
        ...     return factor * x
        >>> turned = with_signature_of(scaled)(lambda *args, **kwargs: -scaled(*args, **kwargs))
        >>> str(signature(turned)), turned(1.0, factor=3.0)
        ('(x, factor=2.0)', -3.0)
    """

    def decorate(fun: Callable[..., R]) -> Callable[P, R]:
        fun.__annotations__ = model.__annotations__
        fun.__signature__ = signature(model)  # type: ignore[attr-defined]
        return fun

    return decorate


def function_table(template: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """Return the function that makes from each row of a table a function that calls ``template(name, ...)``.

    A row holds the name, the text, an example, the result of the example, and defaults that differ from the template.

    Example:
        >>> @function_table
        ... def times(name, x, n=1):
        ...     return name * n * x
        >>> ab = times("ab", "The letters.", "ab(2)", "'abab'")
        >>> cd = times("cd", "Other letters.", "cd(1)", "'cdcd'", n=2)
        >>> ab(2), cd(1), str(signature(cd))
        ('abab', 'cdcd', '(x, n=2)')
    """
    plain, given = signature(template), cast(Any, template)
    parameters = list(plain.parameters.values())[1:]

    def row(name: str, text: str, example: str, shows: str, **defaults: Any) -> Callable[P, R]:
        own = [p.replace(default=defaults.get(p.name, p.default)) for p in parameters]
        code = given.__code__.replace(co_name=name, co_qualname=name)  # the name in error messages
        fixed = tuple([p.default for p in own if p.default is not p.empty and p.kind is not p.KEYWORD_ONLY])
        compute = FunctionType(code, given.__globals__, name, fixed, given.__closure__)
        compute.__kwdefaults__ = given.__kwdefaults__

        def call(*args: Any, **kwargs: Any) -> Any:
            return compute(name, *args, **kwargs)

        made: Any = set_identity(call, given.__module__, name, docstring(text, example, shows))
        made.__annotations__ = {key: value for key, value in given.__annotations__.items() if key != "name"}
        made.__signature__ = plain.replace(parameters=own)
        return cast(Callable[P, R], made)

    return row


def stub(module: str, call: str, doc: str) -> Any:
    """Make a function of ``module`` that does nothing, with the name and arguments of ``call``, as ``"sici(x)"``.

    An arrow in ``call`` precedes the type of the result, unless the result is one array.

    Example:
        >>> from inspect import signature
        >>> fun = stub("here", "add(x, y)", "The sum.")
        >>> fun.__module__, fun.__name__, str(signature(fun))
        ('here', 'add', "(x: 'ArrayLike', y: 'ArrayLike', /) -> 'Array'")
    """

    def fun() -> None: ...

    plain, _, result = call.partition(" -> ")
    name, arguments = plain.rstrip(")").split("(")
    parameters = [Parameter(p, Parameter.POSITIONAL_ONLY, annotation="ArrayLike") for p in arguments.split(", ")]
    result = result or "Array"
    made: Any = set_identity(fun, module, name, doc)
    made.__annotations__ = {**{p.name: "ArrayLike" for p in parameters}, "return": result}
    made.__signature__ = Signature(parameters, return_annotation=result)
    return made
