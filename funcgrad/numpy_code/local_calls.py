"""Code in which calls of local variables, such as ``dtype(x)``, first check whether the variable holds a class.

The code shows which names are called, but not whether a local variable or an entry of a table holds a class. So
the function is compiled again from its source, with ``⟨called⟩(dtype)(x)`` for ``dtype(x)`` and
``⟨called⟩(kinds["rate"])(x)`` for ``kinds["rate"](x)``, and likewise for ``type(x)(y)``, and for ``pd.Series(x)`` if
the function, or one around it, imports ``pd``; ``x.copy()`` becomes ``⟨.copy⟩(x)``, and ``type(x).sum`` becomes
``⟨methods⟩(type(x)).sum``. ``A = matrix.toarray()`` becomes ``A = ⟨assigned⟩(matrix.toarray())``, so that traced values
can be written to ``A`` whatever code made it. ``f"rate {x}"`` becomes ``⟨parts⟩("rate ", f"{x}")``. If there is no
source, or the source has changed, the code stays unchanged.
"""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import linecache
import operator
from types import CodeType
from typing import Any

import numpy as np

from funcgrad.numpy.tables.containers import CONSTRUCTING_METHODS
from funcgrad.numpy_code.calls import IdentityCache, call_name
from funcgrad.numpy_code.joined_texts import has_joined_texts
from funcgrad.numpy_code.reachable import names_in
from funcgrad.numpy_code.reading import READER_MODULES, TABLE_CLASSES

_COMPILED_CODES = {True: IdentityCache(), False: IdentityCache()}
#: Classes of Python that read numbers from texts.
_READERS = frozenset(name for names in READER_MODULES.values() for name in names if name[0].isupper())
#: Classes that are called as those of modules, which a function may import itself.
_CLASSES = _READERS.union(map(str, np.sctypeDict), ("double", "ndarray", "single"), *TABLE_CLASSES.values())
#: Attributes that are classes: ``x.__class__(y)``, ``x.dtype.type(y)``.
_TYPES = frozenset(("__class__", "type"))
#: Methods that are replaced by functions, see ``scope``, and whether they are called with arguments.
_TEXT_METHODS = {"format": True, "join": True}
CALLED_METHODS = {"__array__": False, "astype": True, "copy": False, **_TEXT_METHODS}
_LAMBDA = (lambda: None).__code__.co_name
_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag


def with_local_calls(code: CodeType, names: dict[str, Any], *, of_arrays: bool = True) -> CodeType:
    """Return ``code`` compiled from its source with calls of local variables replaced, or ``code`` if that fails.

    Args:
        code: a function's code.
        names: the function's global names, which tell how to read the source of a module in an archive.
        of_arrays: whether to replace all these calls. If not, and in a ``lambda``, only joined texts are replaced, and
            calls of variables in a function that names a class that reads numbers from texts.
    """
    of_arrays, variables = of_arrays and code.co_name != _LAMBDA, _variables(code)
    if not (of_arrays or has_joined_texts(code) or not _READERS.isdisjoint(variables | names_in(code))):
        return code
    known = _COMPILED_CODES[of_arrays]
    made: CodeType | None = known.get(code)
    if made is None:
        try:
            made = _compiled(code, names, _Calls(variables) if of_arrays else _Readers(variables)) or code
        except (OSError, SyntaxError, TypeError, ValueError, IndexError):  # no source, or the source of other code
            made = code
        known.put(code, made)
    return made


class _Texts(ast.NodeTransformer):
    """Replace f-strings of several parts, and methods that join texts."""

    methods = _TEXT_METHODS
    changed = False

    def visit_Call(self, node: ast.Call) -> Any:
        """Change a call, and the calls inside it."""
        self.generic_visit(node)
        func = node.func
        if isinstance(func, ast.Attribute) and self.methods.get(func.attr) == bool(node.args or node.keywords):
            node.args = [func.value, *node.args]
            node.func = ast.copy_location(ast.Name(call_name(f".{func.attr}"), ast.Load()), func)
            self.changed = True
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Pass the parts of an f-string to a function."""
        self.generic_visit(node)
        if len(node.values) < 2:
            return node
        alone = lambda x: x if isinstance(x, ast.Constant) else ast.copy_location(ast.JoinedStr([x]), x)
        parts: list[ast.expr] = list(map(alone, node.values))
        self.changed = True
        return _call("parts", parts, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """Change the value, not the format, which has to be an f-string."""
        node.value = self.visit(node.value)
        return node


class _Readers(_Texts):
    """Wrap variables that are called, too.

    Args:
        names: local variables.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> Any:
        """Change a call, and the calls inside it."""
        super().visit_Call(node)
        if self._may_be_class(node.func):
            node.func = self._asked(node.func)
        return node

    def _may_be_class(self, node: ast.expr) -> bool:
        return self._is_class(node)

    def _asked(self, node: ast.expr) -> ast.expr:
        return self._wrapped("called", node)

    def _wrapped(self, helper: str, node: ast.expr) -> ast.expr:
        self.changed = True
        return _call(helper, [node], node)

    def _is_class(self, node: ast.expr) -> bool:
        return self._is_of_module(node) or self._is_local(node)

    def _is_local(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.names

    def _is_of_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and node.attr in _CLASSES and self._is_local(node.value)


class _Calls(_Readers):
    """Wrap variables and table entries that are called and results that are assigned; replace ``CALLED_METHODS``."""

    methods = CALLED_METHODS

    def _may_be_class(self, node: ast.expr) -> bool:
        is_type = isinstance(node, ast.Attribute) and node.attr in _TYPES
        return is_type or isinstance(node, (ast.Subscript, ast.Call)) or self._is_class(node)

    def visit_Call(self, node: ast.Call) -> Any:
        """Change a call, and the calls inside it."""
        super().visit_Call(node)
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in CONSTRUCTING_METHODS and self._is_class(func.value):
            func.value = self._asked(func.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Wrap ``type(x)`` in ``type(x).sum``, and a class of a module that the function imports itself."""
        self.generic_visit(node)
        made = node.value
        if not isinstance(node.ctx, ast.Load) or node.attr in CONSTRUCTING_METHODS:
            return node
        if (isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "type") or (
            isinstance(made, ast.Attribute) and (made.attr == "__class__" or self._is_of_module(made))
        ):
            node.value = self._wrapped("methods", made)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Wrap the results of calls, parts of them and arithmetic with them."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple):
            node.value.elts = list(map(self._assigned, node.value.elts))
        else:
            node.value = self._assigned(node.value)
        return node

    def _assigned(self, node: ast.expr) -> ast.expr:
        return self._wrapped("assigned", node) if _is_made_by_call(node) else node


def _call(helper: str, args: list[ast.expr], node: ast.expr) -> ast.Call:
    """Return a call of a helper at the place of ``node``."""
    name = ast.copy_location(ast.Name(call_name(helper), ast.Load()), node)
    return ast.copy_location(ast.Call(name, args, []), node)


def _is_made_by_call(node: ast.expr) -> bool:
    """Whether a call makes the value of an expression, which may be a part of its result or computed from it."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    if isinstance(node, ast.BinOp):
        return _is_made_by_call(node.left) or _is_made_by_call(node.right)
    return isinstance(node, ast.Call)


def _variables(code: CodeType) -> frozenset[str]:
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return frozenset(own.union(*[_variables(c) for c in code.co_consts if isinstance(c, CodeType)]))


def _compiled(code: CodeType, names: dict[str, Any], change: _Texts) -> CodeType | None:
    is_private = any(name.startswith("_") and "__" in name[1:] and not name.endswith("__") for name in code.co_names)
    if is_private:
        return None  # private names, which depend on the class
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, names)
    function = _lambda(code, lines) if code.co_name == _LAMBDA else _definition(code, lines)
    if function is None or not _do_the_same(_function(function, code), code):
        return None  # the file has changed since it was imported
    function = change.visit(function)
    return _function(function, code) if change.changed else None


def _lambda(code: CodeType, lines: list[str]) -> ast.FunctionDef | None:
    """Return a ``lambda`` as a definition that is compiled to the same code."""
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = ast.copy_location(ast.Return(node.body), node)
            made = ast.copy_location(ast.FunctionDef(code.co_name, node.args, [body], []), node)
            if _do_the_same(_function(made, code), code):
                return made
    return None


def _definition(code: CodeType, lines: list[str]) -> ast.FunctionDef | None:
    """Return the definition of a function, given the lines of its file, with the line numbers of the file."""
    first = code.co_firstlineno
    try:
        function = _parsed(lines[first - 1 : _last_line(code)], first)
    except SyntaxError:  # the last expression goes on after the last line that has code
        function = _parsed(inspect.getblock(lines[first - 1 :]), first)
    return function if isinstance(function, ast.FunctionDef) and function.name == code.co_name else None


def _last_line(code: CodeType) -> int:
    """Return the last line that has code; to find the end of the text instead takes longer than to parse it."""
    inner = [_last_line(x) for x in code.co_consts if isinstance(x, CodeType)]
    return max([code.co_firstlineno, *inner, *[end for _, end, *_ in code.co_positions() if end is not None]])


def _parsed(lines: list[str], first: int) -> ast.stmt:
    """Parse the lines of a statement that begins on line ``first``, and may be indented."""
    if lines[0][:1].isspace():
        block: Any = ast.parse("\n" * (first - 2) + "if 1:\n" + "".join(lines)).body[0]
        return block.body[0]  # type: ignore[no-any-return]
    return ast.parse("\n" * (first - 1) + "".join(lines)).body[0]


def _do_the_same(code: CodeType, other: CodeType) -> bool:
    return _are_equal(code, other) or _steps(code) == _steps(other)


def _are_equal(x: Any, y: Any) -> bool:
    """Whether two codes have the same instructions, names and constants; or whether two constants are the same."""
    if not isinstance(x, CodeType):
        return type(x) is type(y) and repr(x) == repr(y)
    return (
        isinstance(y, CodeType)
        and _instructions(x) == _instructions(y)
        and len(x.co_consts) == len(y.co_consts)
        and all(map(_are_equal, x.co_consts, y.co_consts))
    )


_instructions = operator.attrgetter("co_code", "co_names", "co_varnames", "co_cellvars", "co_freevars")


def _steps(code: CodeType) -> list[Any]:
    """Return what the code does, step by step, in the same way whether a name is that of a module or not."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    found: list[Any] = []
    for step in dis.get_instructions(code):
        if isinstance(step.argval, CodeType):
            found.append(_steps(step.argval))
        elif step.opname not in ("PUSH_NULL", "EXTENDED_ARG"):
            name = "LOAD_ATTR" if step.opname == "LOAD_METHOD" else step.opname
            said = step.argrepr if name == "BINARY_OP" else step.argval
            qualified = name == "LOAD_CONST" and isinstance(said, str) and "<locals>" in said
            found.append((name, None if step.opcode in jumps or qualified else said))
    return found


def _function(function: ast.FunctionDef, code: CodeType) -> CodeType:
    """Return the code of ``function`` with the closure variables of ``code``."""
    function.returns = None
    module = ast.parse(f"def outer({', '.join(code.co_freevars)}): pass")
    outer: Any = module.body[0]
    outer.body = [function]
    found = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    for name in ("outer", code.co_name):
        found = next(c for c in found.co_consts if isinstance(c, CodeType) and c.co_name == name)
    made: CodeType = found
    if made.co_freevars != code.co_freevars:
        raise ValueError("the function closes over other variables")
    return made.replace(co_qualname=code.co_qualname)
