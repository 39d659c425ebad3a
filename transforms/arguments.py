"""Argument handling that transforms share: argnums, leaves, pairs, and the error messages about them."""

from __future__ import annotations

import numbers
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Trace, Tracer, describe, is_in_transform, is_plain_float, own_results, shallow_copy
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.tables.containers import have_same_labels, holds_tables
from funcgrad.transforms.transformed import Argnums
from funcgrad.typing import PyTree
from funcgrad.writable import as_inner_results, is_selection


class Options(NamedTuple):
    """Options of a gradient, a Jacobian or a Hessian, see ``grad``; ``call`` is the public call, for messages."""

    call: str
    argnums: Argnums
    has_aux: bool = False
    holomorphic: bool = False
    allow_int: bool = False
    strict: bool = False


def argument_positions(call: str, argnums: Argnums, args: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions that ``argnums`` selects among ``args``, as non-negative numbers.

    Raises:
        InputError: out of range, or a keyword argument was meant.
        ShapeError: a position named twice, once by a negative number.
    """
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    n = len(args)
    for a in wanted:
        if not -n <= a < n:
            raise InputError(
                f"{call}: argnums={argnums} is out of range, got {n} positional argument{'s' * (n != 1)}. "
                "Keyword arguments are passed through undifferentiated: pass by position what is to be differentiated."
            )
    found = tuple(a % n for a in wanted)
    if len(set(found)) != len(found):
        raise ShapeError(f"{call}: argnums={argnums} names a position twice for {n} arguments. Name each once.")
    return found


def leaf_path(args: Sequence[Any], chosen: Sequence[int], number: int) -> str:
    """Return the key path of leaf ``number`` of the chosen arguments, for messages: ``argument 0['w'][1]``."""
    for position in chosen:
        paths, _, _ = tree.flatten_with_path(args[position])
        if number < len(paths):
            # a class registered without names: say which of its children, if there are several
            nameless = "" if len(paths) == 1 else r" (child \1)"
            path = re.sub(r"\[<flat index (\d+)>\]", nameless, paths[number])
            return f"argument {position}{path}"
        number -= len(paths)
    return "an argument"


def check_leaves(call: str, leaves: Sequence[Any], where: Callable[[int], str]) -> list[bool]:
    """Return for each leaf whether a derivative can flow through it; refuse leaves that are not arrays or numbers.

    Args:
        call: the public call, for messages.
        leaves: the leaves to check.
        where: gives the key path of a leaf by its number.

    Raises:
        InputError: a ``TypeError`` naming key path and type.
    """
    if all(map(is_plain_float, leaves)):  # the most frequent case
        return [True] * len(leaves)
    for number, leaf in enumerate(leaves):
        check_leaf(call, leaf, partial(where, number))
    return list(map(backend.is_inexact, leaves))


def merge_leaves(
    leaves: Sequence[Any], flags: Sequence[bool], chosen: Sequence[Any], other: Callable[[Any], Any] = lambda leaf: leaf
) -> list[Any]:
    """Return the ``chosen`` values, in order, for leaves with a flag, and ``other(leaf)`` for leaves without."""
    if len(chosen) == len(leaves):  # the most frequent case
        return list(chosen)
    rest = iter(chosen)
    return [next(rest) if flag else other(leaf) for leaf, flag in zip(leaves, flags, strict=True)]


def check_results(call: str, leaves: Sequence[Any]) -> None:
    """Check that all leaves of a result are arrays or numbers.

    Raises:
        InputError: a ``TypeError`` naming the number of the leaf and its type.
    """
    check_leaves(call, leaves, "result leaf {} of the function".format)


def check_leaf(call: str, leaf: Any, where: Any) -> None:
    """Check that a leaf is an array or a number. ``where()`` returns its key path.

    Float0 zeros pass: the derivatives of integer values are leaves too, though no operation computes with them.
    Arrays in the byte order of another machine are refused: NumPy's results are in the byte order of this machine,
    so a derivative could not keep the dtype of its argument.

    Raises:
        InputError: a ``TypeError`` naming key path and type.
    """
    if is_plain_float(leaf) or type(leaf) is Tracer:
        return
    if not backend.is_value(leaf):
        if getattr(leaf, "dtype", None) == backend.FLOAT0:
            return
        if is_selection(leaf):
            leaf.refuse_as_result()
        problem, remedy = backend.problem_and_remedy(leaf)
        path = where()
        if not isinstance(leaf, (np.ndarray, np.generic)):
            if path.startswith("result"):
                remedy = "Return arrays, numbers, or containers of them."
            else:
                remedy = _remedy(call, type(leaf)) if "argument" in path else "Pass arrays or numbers."
        raise InputError(f"{call}: {path} {problem}. {remedy}")
    if backend.has_foreign_byte_order(leaf):
        raise InputError(
            f"{call}: {where()} has its bytes in the order of another machine, got {describe(leaf)}. Convert it: "
            "x.astype(x.dtype.newbyteorder('='))."
        )


def check_differentiable(options: Options, leaf: Any, args: Any, chosen: Sequence[int], number: int) -> bool:
    """Return whether to differentiate ``leaf``, leaf ``number`` of the chosen arguments.

    Raises:
        InputError: a ``TypeError`` for a leaf that cannot be differentiated, naming its key path.
    """
    if is_plain_float(leaf) and not options.holomorphic:
        return True

    def where() -> str:
        return leaf_path(args, chosen, number)

    check_leaf(options.call, leaf, where)
    if not backend.is_inexact(leaf):
        if options.allow_int:
            return False
        raise integer_argument_error(options.call, where(), leaf)
    dtype = backend.dtype_of(leaf)
    if options.holomorphic and dtype.kind != "c":
        raise InputError(
            f"{options.call}: holomorphic=True needs complex inputs, {where()} has dtype {dtype}. "
            "Convert it to complex, or leave holomorphic out."
        )
    return True


def integer_argument_error(call: str, where: str, leaf: Any) -> InputError:
    """Return the error about an argument without a derivative because it holds integers or truth values."""
    plain = type(leaf) in (int, bool)
    error = InputError(
        f"{call}: {where} must be real or complex floating point, got {describe(leaf)}"
        f"{f' of dtype {backend.dtype_of(leaf)}' if plain else ''}. Convert it to float: "
        f"{f'{float(leaf)}' if plain else 'x.astype(float)'}."
    )
    if call in ("grad", "value_and_grad", "jacrev"):
        error.add_note("With allow_int=True, and in vjp, integers pass and get a derivative of dtype float0.")
    return error


def _remedy(call: str, kind: type) -> str:
    """Return advice for an argument of another library's class, of a user's class, or of a Python class."""
    if is_dataclass(kind):
        return f"Make its class a container: put @register_dataclass above @dataclass of {kind.__name__}."
    if hasattr(kind, "__array__"):
        return "Convert it: numpy.asarray(x)."
    if issubclass(kind, numbers.Number):
        return "Convert it: float(x)."
    if callable(getattr(kind, "tocsr", None)):
        values = "csr_array((data, A.indices, A.indptr))"
        return f"Pass its values, A.data, and make the matrix of them in the function: {values}."
    if kind.__module__.partition(".")[0] not in sys.stdlib_module_names:
        return f"Make its class a container: register_pytree_node({kind.__name__}, ...)."
    if call == "vmap":
        return "Close over it, or pass None for it in in_axes."
    if call in ("vjp", "jvp", "hvp", "linearize"):
        return "Close over it, or pass it by keyword."
    return "Leave it out of what is differentiated (argnums), close over it, or pass it by keyword."


def describe_result(value: Any) -> str:
    """Describe ``value``, the result of a function, in a few words; a tuple, list or dictionary by its entries."""
    if type(value) not in (tuple, list, dict):
        return describe(value)
    parts = (
        [f"{key!r}: {describe(part)}" for key, part in value.items()] if type(value) is dict else map(describe, value)
    )
    return f"a {type(value).__name__} of {', '.join([*islice(parts, 4)])}{', ...' if len(value) > 4 else ''}"


def split_aux(call: str, result: Any) -> tuple[Any, Any]:
    """Split the result of a function with ``has_aux=True`` into ``(result, aux)``.

    Raises:
        InputError: the function did not return a pair.
    """
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise InputError(
            f"{call}: with has_aux=True the function must return a pair (result, aux), got {describe_result(result)}. "
            "Return exactly two things."
        )
    return result[0], result[1]


#: The leaves of a result, its structure, and the indices of leaves that were tracers.
Stripped: TypeAlias = tuple[list[Any], tree.PyTreeSpec, list[int]]


def strip_tracers(trace: Trace | None, result: PyTree) -> Stripped:
    """Return the leaves of ``result`` with each tracer of ``trace`` replaced by the value inside it.

    Args:
        trace: the finished run of a transform; None if nothing was traced.
        result: an output of the run in addition to its main result.
    """
    leaves, spec = tree.flatten(result)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]
    for i in places:
        leaves[i] = shallow_copy(leaves[i]._val if leaves[i]._trace is trace else leaves[i])
    return leaves, spec, places


def owned_aux(stripped: Stripped, given: PyTree) -> PyTree:
    """Return the result of ``strip_tracers``, now owned by the caller, for a transform called with ``given``."""
    leaves, spec, places = stripped
    own_results(leaves)
    if is_in_transform() and places:
        for i, leaf in zip(places, as_inner_results([leaves[i] for i in places], given), strict=True):
            leaves[i] = leaf
    return tree.unflatten(spec, leaves)


def owned_tree(results: PyTree, given: PyTree = None) -> PyTree:
    """Return ``results``, now owned by the caller, for a transform called with the arguments ``given``.

    Pass the results straight from a call, ``owned_tree(fun(), given)``: an array that a variable also holds is copied.
    """
    leaves, spec = tree.flatten(results)
    del results
    own_results(leaves)
    return tree.unflatten(spec, as_inner_results(leaves, given) if given is not None and is_in_transform() else leaves)


def match_leaves(call: str, what: str, given: PyTree, leaves: Sequence[Any], spec: tree.PyTreeSpec) -> list[Any]:
    """Return the leaves of ``given`` (tangents or cotangents), checked against the values that they belong to.

    Args:
        call: the public call, for messages.
        what: "tangent" or "cotangent".
        given: the tree that the caller passed.
        leaves: the values, whose shapes and dtypes ``given`` must have; Python numbers are weakly typed.
        spec: the structure of the values, which ``given`` must have.

    Raises:
        InputError: another structure or dtype (a ``TypeError``).
        ShapeError: another shape (a ``ValueError``).
    """
    found, given_spec = tree.flatten(given)
    if given_spec != spec and not have_same_labels((spec, leaves), (given_spec, found)):
        remedy = "Pass the same containers with the same keys."
        if holds_tables(spec):
            remedy = "Pass a table with the same labels, or take series.to_numpy() or table.data as the argument."
        elif given is None:
            remedy = f"For a {what} of zero pass zeros: tree.map(funcgrad.numpy.zeros_like, value)."
        raise InputError(
            f"{call}: the {what} has another structure than the value it belongs to, got {tree.drawn(given_spec)}, "
            f"expected {tree.drawn(spec)}, with * for each array. {remedy}"
        )

    def path(number: int) -> str:  # only errors call it: it takes longer than the rest of this function
        return tree.flatten_with_path(given)[0][number]

    results: list[Any] = []
    for number, (t, leaf) in enumerate(zip(found, leaves, strict=True)):
        if (
            type(t) is type(leaf) is np.ndarray
            and t.dtype is leaf.dtype
            and t.shape == leaf.shape
            and is_plain_float(t)
        ):
            results.append(t)  # the most frequent case
            continue
        check_leaf(call, t, lambda number=number: f"the {what}{_at_path(path(number))}")
        shape, dtype = backend.shape_and_dtype_of(leaf)
        have = backend.dtype_of(t)
        if backend.shape_of(t) != shape:
            raise ShapeError(
                f"{call}: the {what}{_at_path(path(number))} has the wrong shape, got {backend.shape_of(t)}, "
                f"expected {shape}. A {what} has the shape of its value."
            )
        if not backend.is_inexact(leaf):
            results.append(None)  # whatever was passed, float0 or not: no derivative flows here
            continue
        xp = backend.library_of(leaf)
        if (type(t) in (int, float) and dtype.kind == "f") or (type(t) is complex and dtype.kind == "c"):
            t = dtype.type(t)
        elif backend.native_dtype(xp, have) != dtype and not _is_weak(leaf, have):
            raise InputError(
                f"{call}: the {what}{_at_path(path(number))} has the wrong dtype, got {have}, expected {dtype}. "
                f"Convert it with .astype({str(dtype)!r})."
            )
        if xp is not np and backend.namespace_of(t) is np:
            t = backend.taken_like(leaf, xp.asarray(t, dtype))  # the result may be this tangent or cotangent itself
        results.append(t)
    return results


def _is_weak(leaf: Any, have: np.dtype[Any]) -> bool:
    """Whether ``leaf`` is a Python number that takes any dtype of its kind."""
    return type(leaf) in (float, complex) and have.kind == backend.dtype_of(leaf).kind


def _at_path(path: str) -> str:
    return f" at {path}" if path else ""
