"""Recorded programs as modules that need neither this library nor the user's program.

A function of this library may compute an operation. Its source is then copied, together with everything that it refers
to. Each function gets a scope of its own, where the names that it uses mean what they mean in its module.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import functools
import inspect
import keyword
import re
import sys
from collections.abc import Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from funcgrad.core import Primitive, Tracer
from funcgrad.errors import InputError
from funcgrad.transforms.compiled.arguments import FormMismatch, OtherContainerError, call_lines, result_text
from funcgrad.transforms.compiled.source import PathChanged, Program, allocated, differs, has_other_aval
from funcgrad.transforms.compiled.statements import RAISE_NOT_FINITE

ndarray = np.ndarray
_STANDARD = sys.stdlib_module_names - {"builtins"}
_LITERAL = 64  # largest number of elements of an array that is written as numbers


class Bundle:
    """Definitions, each before those that use it.

    Attributes:
        lines: the text of the definitions.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[int, str] = {}
        self._keep_alive: list[Any] = []  # keeps objects alive whose identity is a key
        self._in_progress: set[int] = set()

    def text(self, value: Any, hint: str) -> str:
        """Return an expression for a value. ``hint`` names the value in messages."""
        if value is None or value is ... or type(value) in (bool, int, str, bytes):
            return repr(value)
        if type(value) is float or type(value) is complex:
            return repr(value) if np.isfinite(value) else f"{type(value).__name__}({str(value)!r})"
        if isinstance(value, np.dtype):
            return f"np.dtype({value.str!r})"
        if isinstance(value, np.generic):
            return f"np.dtype({value.dtype.str!r}).type({self.text(value.item(), hint)})"
        if isinstance(value, (slice, range)):
            return repr(value)
        if isinstance(value, (tuple, list, set, frozenset, dict)):
            return self._container(value, hint)
        return self._name_of(value, hint)

    def _container(self, value: Any, hint: str) -> str:
        kind = type(value)
        if kind is dict:
            parts = [f"{self.text(k, hint)}: {self.text(v, hint)}" for k, v in value.items()]
            return "{" + ", ".join(parts) + "}"
        inner = ", ".join([self.text(x, hint) for x in value])
        if kind is tuple:
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if kind is list:
            return f"[{inner}]"
        if kind in (set, frozenset):
            return f"{kind.__name__}([{inner}])"
        return f"{self._name_of(kind, hint)}({inner})"  # a named tuple

    def _name_of(self, value: Any, hint: str) -> str:
        known = self._names.get(id(value))
        if known is not None:
            return known
        if (found := _known_name(value)) is not None:
            return found
        module, word = getattr(value, "__module__", None), str(getattr(value, "__name__", ""))
        if isinstance(module, str) and module in _STANDARD and getattr(sys.modules.get(module), word, None) is value:
            return f"{self.text(sys.modules[module], hint)}.{word}"
        if id(value) in self._in_progress:
            raise _refusal(hint, "functions that call each other")
        self._in_progress.add(id(value))
        name = self._define(value, hint)
        self._in_progress.discard(id(value))
        self._keep_alive.append(value)
        self._names[id(value)] = name
        return name

    def _define(self, value: Any, hint: str) -> str:
        if type(value) is ndarray:
            return self._assign(_array_expression(value), "array")
        if isinstance(value, ModuleType):
            return self._module(value, hint)
        if isinstance(value, functools.partial):
            words = [self.text(x, hint) for x in (value.func, *value.args)]
            words += [f"{k}={self.text(x, hint)}" for k, x in value.keywords.items()]
            return self._assign(f"functools.partial({', '.join(words)})", "function")
        if isinstance(value, functools._lru_cache_wrapper):
            return self.text(value.__wrapped__, hint)
        if isinstance(primitive := getattr(value, "primitive", None), Primitive):  # an operation of this library
            return self.text(primitive.kernel(np), hint)
        if isinstance(value, FunctionType):
            return self._function(value, hint)
        if isinstance(value, type):
            return self._class(value, hint)
        raise _refusal(hint, f"it uses {value!r:.60}")

    def _assign(self, expression: str, kind: str) -> str:
        name = f"_{kind}_{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def _module(self, value: ModuleType, hint: str) -> str:
        if value.__name__.partition(".")[0] == "funcgrad":
            raise _refusal(hint, f"it uses the module {value.__name__}")
        name = value.__name__.replace(".", "_")
        self.lines.append(f"import {value.__name__} as {name}")
        return name

    def _function(self, fun: FunctionType, hint: str) -> str:
        node = _syntax_tree(fun, hint)
        name = f"_{fun.__code__.co_name.strip('<>_')}_{len(self.lines)}"
        self.lines.append("")  # reserves the name
        node.args.defaults = [self._syntax_tree_of(x, hint) for x in fun.__defaults__ or ()]
        known = fun.__kwdefaults__ or {}
        node.args.kw_defaults = [
            self._syntax_tree_of(known[arg.arg], hint) if arg.arg in known else None for arg in node.args.kwonlyargs
        ]
        scope = self._scope(fun, hint)
        words = ", ".join([f"{k}={v}" for k, v in scope.items()])
        if isinstance(node, ast.Lambda):
            own, body = "_it", f"_it = {ast.unparse(node)}"
        else:
            own, body = node.name, ast.unparse(_without_annotations(node))
        inner = "\n".join("    " + line for line in body.splitlines())
        self.lines.append(f"def {name}({', '.join(scope)}):\n{inner}\n    return {own}\n\n{name} = {name}({words})")
        return name

    def _syntax_tree_of(self, value: Any, hint: str) -> ast.expr:
        return ast.parse(self.text(value, hint), mode="eval").body

    def _scope(self, fun: FunctionType, hint: str) -> dict[str, str]:
        """Return expressions for the names that a function uses from outside."""
        outside = dict(zip(fun.__code__.co_freevars, [c.cell_contents for c in fun.__closure__ or ()], strict=True))
        found: dict[str, str] = {}
        names, used = _names_used(fun.__code__)
        for name in sorted(names):
            if name in outside:
                value = outside[name]
            elif name in fun.__globals__:
                value = fun.__globals__[name]
            else:
                continue  # a builtin
            if value is fun:
                continue
            if isinstance(value, ModuleType) and value.__name__.startswith("funcgrad"):
                attributes = [a for a in sorted(used) if hasattr(value, a)]
                inner = ", ".join([f"{a}={self.text(getattr(value, a), hint)}" for a in attributes])
                found[name] = self._assign(f"types.SimpleNamespace({inner})", "module")
            else:
                found[name] = self.text(value, hint)
        return found

    def _class(self, value: type, hint: str) -> str:
        if value.__module__ == "builtins":
            singular = {type(None): "type(None)", type(...): "type(...)"}
            return singular.get(value, value.__name__)
        if issubclass(value, Tracer):
            return self._assign(f"type({value.__name__!r}, (), {{}})", "class")  # no instances exist
        if issubclass(value, Exception):
            bases = [kind.__name__ for kind in value.__mro__ if kind.__module__ == "builtins"]
            return self._assign(f"type({value.__name__!r}, ({bases[0]},), {{}})", "error")
        if not issubclass(value, tuple) or not hasattr(value, "_fields"):
            raise _refusal(hint, f"it uses the class {value.__name__}")
        return self._assign(f"collections.namedtuple({value.__name__!r}, {value._fields!r})", "class")


def _refusal(hint: str, why: str) -> InputError:
    return InputError(
        f"save: {hint} cannot be written into a module of its own: {why}, got it in the program. Keep the function in "
        "memory, or let another operation do it."
    )


def _array_expression(x: ndarray) -> str:
    if x.size <= _LITERAL and x.dtype.kind in "fiub" and bool(np.isfinite(x).all()):
        made = f"np.array({x.reshape(-1).tolist()!r}, {x.dtype.str!r})"
    else:
        made = f"np.frombuffer(bytes.fromhex({x.tobytes().hex()!r}), {x.dtype.str!r}).copy()"
    made += f".reshape({x.shape!r})"
    return f"np.asfortranarray({made})" if x.flags.f_contiguous and not x.flags.c_contiguous else made


def _known_name(value: Any) -> str | None:
    """Return the name of an object of NumPy, ``builtins``, ``math`` or ``operator``; None for other objects."""
    name = getattr(value, "__name__", None)
    if value is np:
        return "np"
    if isinstance(value, BuiltinFunctionType) and value == np.add.reduce:
        return "np.add.reduce"
    if not isinstance(name, str):
        return None
    for namespace, word in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
        if getattr(namespace, name, None) is value:
            return f"{word}.{name}"
    if getattr(builtins, name, None) is value:
        return name
    if isinstance(value, BuiltinFunctionType) and value.__module__ in ("math", "operator", "_operator"):
        return f"{value.__module__.strip('_')}.{name}"
    return None


def _names_used(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the names that a function's code uses from outside, and the names of attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(instruction.argval)
            elif instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
                attributes.add(instruction.argval)
        waiting += [c for c in one.co_consts if isinstance(c, CodeType)]
    return names | set(code.co_freevars), attributes


def _without_annotations(node: Any) -> Any:
    """Remove decorators, annotations and the docstring from a function."""
    node.decorator_list = []
    node.returns = None
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            inner.annotation = None
    if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) and len(node.body) > 1:
        node.body = node.body[1:]
    return node


def _syntax_tree(fun: FunctionType, hint: str) -> Any:
    code = fun.__code__
    try:
        module = inspect.getmodule(fun)
        nodes = _functions_in(inspect.getsource(module) if module is not None else inspect.getsource(fun))
    except (OSError, TypeError, SyntaxError):
        raise _refusal(hint, "its source cannot be read") from None
    arguments = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    found = []
    for node in nodes:
        if code.co_name == "<lambda>":
            fits = isinstance(node, ast.Lambda) and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0)
        else:
            start = min([d.lineno for d in getattr(node, "decorator_list", [])], default=getattr(node, "lineno", 0))
            fits = isinstance(node, ast.FunctionDef) and node.name == code.co_name and start == code.co_firstlineno
        if fits and [a.arg for a in (*node.args.args, *node.args.kwonlyargs)] == arguments:
            found.append(node)
    if len(found) > 1:
        found = [node for node in found if node.lineno == code.co_firstlineno and _has_same_code(node, code)][:1]
    if len(found) != 1:
        raise _refusal(hint, "its source cannot be told from others on one line")
    return copy.deepcopy(found[0])  # writing changes the tree


@functools.lru_cache(maxsize=8)
def _functions_in(source: str) -> list[ast.FunctionDef | ast.Lambda]:
    """Return all functions of a module; cached, because parsing takes longer than the other steps together."""
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.Lambda))]


def _has_same_code(node: Any, code: CodeType) -> bool:
    consts = compile(ast.Expression(node), "<lambda>", "eval").co_consts  # defaults come first
    made = next(part for part in consts if isinstance(part, CodeType))
    return bool((made.co_code, made.co_names, made.co_consts) == (code.co_code, code.co_names, code.co_consts))


_HEAD = '''"""{name}: recorded by funcgrad, written for NumPy.

Arrays that the function closed over keep the values that they had when this file was written. Arguments with other
shapes or dtypes than the recorded ones raise a TypeError; values that need an unrecorded branch raise a ValueError.
"""

from __future__ import annotations

import collections
import functools
import math
import operator
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [{name!r}]

ndarray = np.ndarray
'''
#: What every saved module defines, as it is defined here.
_HELPERS = (PathChanged, FormMismatch, differs, has_other_aval, allocated)

_TAIL = '''
_PATHS = [{paths}]


def {name}(*args, **kwargs):
    """The recorded function."""
    other = False
    for path in _PATHS:
        try:
            return path(args, kwargs)
        except FormMismatch:
            continue
        except PathChanged:
            other = True
    if other:
        raise ValueError("{name}: for these values the function takes a branch that was not recorded.")
    raise TypeError("{name}: the arguments have other shapes, dtypes or containers than the recorded ones.")
'''


def module_text(name: str, recorded: Sequence[tuple[Any, Any]]) -> str:
    """Return the text of a module with one function.

    Args:
        name: the name of the function.
        recorded: pairs of a form of arguments and a variant for it.

    Raises:
        InputError: nothing was recorded, or something in it cannot be written as text.
    """
    if not recorded:
        raise InputError(
            "save: nothing has been recorded, got no program. Call the function once, with what it is for."
        )
    name = re.sub(r"\W", "_", name).strip("_")
    name = name if name.isidentifier() and not keyword.iskeyword(name) else "function"
    bundle = Bundle()
    parts = [_path_text(n, form, variant, bundle) for n, (form, variant) in enumerate(recorded)]
    paths = ", ".join([f"_path_{n}" for n in range(len(recorded))])
    definitions = "\n".join([line for line in bundle.lines if line])
    helpers = [re.sub("  # noqa.*", "", inspect.getsource(helper)) for helper in _HELPERS]
    body = "\n\n".join([_HEAD.format(name=name), *helpers, definitions, *parts])
    return f"{body}{_TAIL.format(name=name, paths=paths)}"


#: Names that each saved module or program defines itself, or does not need.
_KNOWN = {"NotFinite", "__builtins__", "run", *[helper.__name__ for helper in _HELPERS]}


def _path_text(n: int, form: Any, variant: Any, bundle: Bundle) -> str:
    """Return the text of one program, the objects that it needs, and the code that binds arguments to it."""
    program = variant.program
    # NumPy's functions replace these at their limits
    math_names = [key for key in program.namespace if key.startswith(_MATH)]
    try:
        put = result_text(variant.spec)
        call, objects = call_lines(form, variant.spec.num_leaves, put, bool(program.slots), bool(math_names))
    except OtherContainerError:
        raise InputError(
            f"save: arguments and results must be in tuples, lists and dictionaries, got {form.spec}. Give the "
            "function such containers."
        ) from None
    objects = {key: x for key, x in (program.namespace | objects).items() if key not in _KNOWN | set(math_names)}
    slots = [
        f"({bundle.text(shape, 'a slot')}, {bundle.text(what, 'a slot')})"
        if isinstance(shape, tuple)
        else f"({shape}, lambda x: {what})"
        for shape, what in program.slots
    ]
    body = [
        *[f"{key} = {bundle.text(x, key)}" for key, x in objects.items()],
        f"new, pool = functools.partial(allocated, [{', '.join(slots)}]), []",
        *_program_lines(math_names, program, bundle),
        "",
        *call,
        "",
        "return call",
    ]
    inner = "\n".join(["    " + line if line else "" for line in body])
    return f"\ndef _path_{n}():\n{inner}\n\n\n_path_{n} = _path_{n}()\n"


#: Prefix of the names of Python's functions of numbers, see ``statements``.
_MATH = "math_"


def _program_lines(math_names: Sequence[str], program: Program, bundle: Bundle) -> list[str]:
    """Return the program, and, if it calls Python's functions, a second version that calls NumPy's.

    Where Python's functions raise errors, for an infinite number for example, NumPy's give a result.
    """
    lines = [line for line in program.text.splitlines() if not line.endswith(RAISE_NOT_FINITE)]
    if not math_names:
        return lines
    python_functions = ", ".join([bundle.text(program.namespace[key], key) for key in math_names])
    numpy_functions = ", ".join([f"lambda *x: float(np.{key.removeprefix(_MATH)}(*x))" for key in math_names])
    inner = ["    " + line for line in lines]
    return [
        f"def make_run({', '.join(math_names)}):", *inner, "    return run", "",
        f"run, run_at_limits = make_run({python_functions}), make_run({numpy_functions})",
    ]  # fmt: skip
