"""Full Jacobians and Hessians: ``jacrev``, ``jacfwd``, ``jacobian``, ``hessian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Never, ParamSpec

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import is_in_transform, replace_at
from funcgrad.errors import InputError
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.tables.containers import unflatten_nested
from funcgrad.transforms.arguments import (
    Options,
    argument_positions,
    check_differentiable,
    leaf_path,
    owned_tree,
    split_aux,
)
from funcgrad.transforms.partwise import LARGE, PartwiseTrace, basis, compute_rows, split_rows
from funcgrad.transforms.products import Pullback, evaluate_jvp, evaluate_vjp, tape_size
from funcgrad.transforms.transformed import (
    Transformed,
    check_argnums,
    check_callable,
    hide_extra_arguments,
    transformed,
)
from funcgrad.transforms.vectorize import moveaxis, vmap

if TYPE_CHECKING:
    from funcgrad.transforms.sparse_jacobians import Sparsity

P = ParamSpec("P")


@hide_extra_arguments
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    **_others: Never,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian in reverse mode, by batches of cotangents. Best for few outputs.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; then so does the new function.
        holomorphic: promises that ``fun`` is complex differentiable.
        allow_int: lets integer inputs pass; their derivative has dtype float0.

    Returns:
        A function of the same arguments. Its result has the tree of the output. Each leaf is replaced by the
        tree of the input, with leaves of shape ``output.shape + input.shape``. For a real function of complex
        inputs these are du/dx - i du/dy, as in ``grad``.

    Raises:
        TypeError: integer inputs, or complex results, without the option for them; integer results.

    Example:
        >>> from funcgrad import jacrev
        >>> jacrev(lambda x: x * x)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    check_callable("jacrev", fun, _others)
    options = Options("jacrev", check_argnums("jacrev", argnums), has_aux, holomorphic, allow_int)
    return transformed(run_jacrev, fun, options, _SUMMARY)


@hide_extra_arguments
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    **_others: Never,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian in forward mode, by batches of tangents. Best for few inputs.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; then so does the new function.
        holomorphic: promises that ``fun`` is complex differentiable.

    Returns:
        A function of the same arguments whose result is that of ``jacrev``: leaves have the shape
        ``output.shape + input.shape``.

    Raises:
        TypeError: integer or complex inputs without the option for them.

    Example:
        >>> from funcgrad import jacfwd
        >>> jacfwd(lambda x: np.array([1.0, 2.0]) * x)(3.0)
        array([1., 2.])
    """
    check_callable("jacfwd", fun, _others)
    options = Options("jacfwd", check_argnums("jacfwd", argnums), has_aux, holomorphic)
    return transformed(run_jacfwd, fun, options, _SUMMARY)


_SUMMARY = "Jacobian of {fun} with respect to its positional arguments."


@hide_extra_arguments
def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    sparsity: Any = None,
    check: bool = True,
    **_others: Never,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian in reverse mode, with ``sparsity`` as a sparse matrix.

    Without ``sparsity`` it is ``jacrev``. With it, columns that share no row form a colour, and the Jacobian costs one
    product for each colour.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; then so does the new function.
        holomorphic: promises that ``fun`` is complex differentiable.
        allow_int: lets integer inputs pass; their derivative has dtype float0.
        sparsity: where the derivative may be nonzero: a sparse or boolean matrix with a row per output and a column per
            input, or "auto", which finds the pattern at each call from one run.
        check: whether to compare the sparse matrix times a random vector with a directional derivative, which finds a
            pattern that lacks an entry.

    Returns:
        A function of the same arguments. Leaves of its result have the shape ``output.shape + input.shape``. With
        ``sparsity`` the result is a ``scipy.sparse`` matrix in compressed rows, with a row per output and a column per
        input, each flattened in the order of its leaves.

    Raises:
        TypeError: as ``jacrev``; with ``sparsity`` also complex or traced inputs.
        ValueError: a pattern of another shape.
        AssertionError: a pattern that lacks an entry (``check``).

    Example:
        >>> from funcgrad import jacobian
        >>> jacobian(lambda x: x[1:] * x[:-1], sparsity="auto")(np.array([1.0, 2.0, 3.0])).toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
    """
    check_callable("jacobian", fun, _others)
    if sparsity is None:
        return jacrev(fun, argnums, has_aux, holomorphic, allow_int)
    options = Options("jacobian", check_argnums("jacobian", argnums), has_aux, holomorphic)
    return _sparse_transform(run_sparse_jacobian, fun, options, sparsity, check)


@hide_extra_arguments
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    sparsity: Any = None,
    check: bool = True,
    **_others: Never,
) -> Callable[P, Any]:
    """Return a function that computes the matrix of second derivatives by forward mode over reverse mode.

    Args:
        fun: a function of arrays or pytrees, returning one number, or an array or a pytree of them.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; then so does the new function.
        holomorphic: promises that ``fun`` is complex differentiable.
        sparsity: where the second derivative may be nonzero: a symmetric sparse or boolean matrix with one row and one
            column per input, or "auto", which finds the pattern at each call from one run.
        check: whether to compare the sparse matrix times a random vector with a directional derivative, which finds a
            pattern that lacks an entry.

    Returns:
        A function of the same arguments. Its result has the shape ``input.shape + input.shape``, after the shape of the
        output. For several arguments or trees it is nested: the tree of the input, each leaf again the tree of the
        input. With ``sparsity`` it is one ``scipy.sparse`` matrix.

    Raises:
        TypeError: as ``jacrev`` and ``jacfwd``.
        ValueError: a pattern of another shape.
        AssertionError: a pattern that lacks an entry (``check``).

    Example:
        >>> from funcgrad import hessian
        >>> hessian(lambda x: x[0] * x[1] ** 2)(np.array([1.0, 2.0]))
        array([[0., 4.],
               [4., 2.]])
    """
    check_callable("hessian", fun, _others)
    options = Options("hessian", check_argnums("hessian", argnums), has_aux, holomorphic)
    if sparsity is not None:
        return _sparse_transform(run_sparse_hessian, fun, options, sparsity, check)
    summary = "Hessian of {fun} with respect to its positional arguments."
    return transformed(run_hessian, fun, options, summary)


def run_jacrev(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``jacrev(fun)``."""
    return owned_tree(_jacobian_by_rows(fun, options, args, kwargs), args)


def _jacobian_by_rows(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Return the Jacobian, computed from cotangents."""
    inputs, of_inputs = _as_function_of_inputs(fun, options, args, kwargs)
    result, pullback, *aux = evaluate_vjp(of_inputs, inputs, options.has_aux, {}, lasting=False, call=options.call)
    outs, out_spec = tree.flatten(result)
    _check_outputs(options.call, outs, options.holomorphic)
    shapes = [backend.shape_of(x) for x in outs]
    if shapes == [()]:  # a gradient: one pass without a batch
        leaves, in_spec = tree.flatten(pullback(tree.unflatten(out_spec, [backend.ones_like(outs[0])])))
        rows = [[leaf] for leaf in leaves]
    else:
        leaves, in_spec = _pull_back_basis(pullback, inputs, outs, out_spec)
        rows = [_split_axis(leaf, 0, shapes) for leaf in leaves]
    blocks = [tree.unflatten(in_spec, [rows[i][k] for i in range(len(leaves))]) for k in range(len(outs))]
    jacobian_tree = unflatten_nested(out_spec, [b[0] if isinstance(options.argnums, int) else b for b in blocks])
    return (jacobian_tree, *aux) if options.has_aux else jacobian_tree


def _pull_back_basis(pullback: Pullback, inputs: Any, outs: list[Any], out_spec: Any) -> tuple[list[Any], Any]:
    """Apply ``pullback`` to the standard basis and return the leaves; a large basis goes through part by part.

    The parts stay in the processor's cache, so only the result takes much memory. Traced values go through as one
    batch. Operations on few numbers do too, because their calls would take most of the time of each part.
    """

    def pull_leaves(cotangents: list[Any]) -> list[Any]:  # a batch of leaves: a batch of tables would have no labels
        return pullback.pull_leaves(cotangents, cotangents)

    pull, (given, in_spec) = vmap(pull_leaves), tree.flatten(inputs)
    total, width = [sum([prod(backend.shape_of(x)) for x in leaves]) for leaves in (outs, given)]
    width, parts = max(total, width), [range(total)]
    if total * width > LARGE and not is_in_transform() and all(backend.library_of(x) is np for x in (*outs, *given)):
        operations, numbers = tape_size(pullback)
        parts = split_rows(total, 4 * width, numbers, operations)
    if len(parts) == 1:
        return pull(basis(outs)), in_spec
    return compute_rows(parts, lambda part: pull(basis(outs, part))), in_spec


def run_jacfwd(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``jacfwd(fun)``."""
    return owned_tree(_jacobian_by_columns(fun, options, args, kwargs), args)


def _jacobian_by_columns(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Return the Jacobian, computed from tangents."""
    argnums, has_aux = options.argnums, options.has_aux
    inputs, of_inputs = _as_function_of_inputs(fun, options, args, kwargs)
    leaves, in_spec = tree.flatten(inputs)
    if _is_large(leaves):
        outs, out_spec, *aux = _push_basis_in_parts(of_inputs, leaves, in_spec, has_aux)
    else:
        outs, out_spec, *aux = _push_basis_at_once(of_inputs, inputs, has_aux)
    _check_any_output(options.call, outs)
    shapes = [backend.shape_of(x) for x in leaves]
    blocks = []
    for out in outs:
        columns = _split_axis(out, len(backend.shape_of(out)) - 1, shapes)
        block = tree.unflatten(in_spec, columns)
        blocks.append(block[0] if isinstance(argnums, int) else block)
    jacobian_tree = unflatten_nested(out_spec, blocks)
    return (jacobian_tree, *aux) if has_aux else jacobian_tree


def _is_large(leaves: list[Any]) -> bool:
    """Return whether a batch of all tangents takes so much memory that recording the operations on tangents pays."""
    total = sum([prod(backend.shape_of(x)) for x in leaves])
    if total * total <= LARGE or blocks.current() != blocks.NO_BLOCK or is_in_transform():
        return False
    return all(backend.library_of(x) is np for x in leaves)


def _push_basis_at_once(fun: Callable[..., Any], inputs: Any, has_aux: bool) -> tuple[Any, ...]:
    """Return the leaves of the Jacobian's columns, along the last axis, their tree, and aux: by one batch."""
    leaves, in_spec = tree.flatten(inputs)
    specs = []

    def push(tangents: list[Any]) -> Any:  # a batch of leaves: a batch of tables would have no labels
        _, tangent, *aux = evaluate_jvp(fun, list(leaves), in_spec, tangents, has_aux, {}, (inputs, tangents))
        outs, spec = tree.flatten(tangent)
        specs.append(spec)
        return outs, *aux

    outs, *aux = vmap(push, out_axes=(-1, None) if has_aux else (-1,))(basis(leaves))
    return outs, specs[-1], *aux


def _push_basis_in_parts(fun: Callable[..., Any], leaves: list[Any], spec: Any, has_aux: bool) -> tuple[Any, ...]:
    """Return the same as ``_push_basis_at_once``, by one run and parts of the basis."""
    trace = PartwiseTrace(leaves)
    try:
        _, tangent, *aux = evaluate_jvp(fun, list(leaves), spec, trace.tangents(leaves), has_aux, {})
    finally:
        trace.close()
    flat, out_spec = tree.flatten(tangent)
    del tangent
    columns = [moveaxis(x, 0, x.ndim - 1) for x in trace.rows_of(flat)]
    return columns, out_spec, *aux


def run_hessian(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``hessian(fun)``."""
    inner = transformed(run_jacrev, fun, options, _SUMMARY)
    return owned_tree(_jacobian_by_columns(inner, options, args, kwargs), args)


def _sparse_transform(
    run: Callable[..., Any], fun: Callable[..., Any], options: Options, sparsity: Any, check: bool
) -> Callable[..., Any]:
    """Return the transform of ``fun`` whose result is a sparse matrix."""
    call = options.call
    if options.holomorphic:
        raise InputError(f"{call}: a sparse derivative is that of real numbers, got holomorphic=True. Leave one out.")
    from funcgrad.transforms.sparse_jacobians import check_sparsity  # only here: few programs need it

    summary = f"Sparse {call} of {{fun}} with respect to its positional arguments."
    return Transformed(run, fun, (options, check_sparsity(call, sparsity, check)), summary)


def run_sparse_jacobian(fun: Callable[..., Any], options: tuple[Options, Sparsity], args: Any, kwargs: Any) -> Any:
    """Run a call of ``jacobian(fun, sparsity=...)``."""
    from funcgrad.transforms.sparse_jacobians import sparse_jacobian

    one, leaves, result, aux = _as_function_of_leaves(fun, options[0], args, kwargs)
    outs = tree.leaves(result)
    _check_outputs("jacobian", outs, False)
    found = sparse_jacobian(one, leaves, sum(prod(backend.shape_of(x)) for x in outs), options[1])
    return (found, *aux) if aux else found


def run_sparse_hessian(fun: Callable[..., Any], options: tuple[Options, Sparsity], args: Any, kwargs: Any) -> Any:
    """Run a call of ``hessian(fun, sparsity=...)``."""
    from funcgrad.transforms.sparse_jacobians import sparse_hessian

    one, leaves, _, aux = _as_function_of_leaves(fun, options[0], args, kwargs)
    found = sparse_hessian(one, leaves, options[1])
    return (found, *aux) if aux else found


def _as_function_of_leaves(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Return ``fun`` as a function of the leaves of its inputs, these leaves, and the result and aux of ``fun``."""
    inputs, of_inputs = _as_function_of_inputs(fun, options, args, kwargs)
    leaves, spec = tree.flatten(inputs)

    def one(*values: Any) -> Any:
        result = of_inputs(*tree.unflatten(spec, values))
        return split_aux(options.call, result)[0] if options.has_aux else result

    result = fun(*args, **kwargs)
    if not options.has_aux:
        return one, leaves, result, ()
    result, aux = split_aux(options.call, result)
    return one, leaves, result, (aux,)


def _as_function_of_inputs(
    fun: Callable[..., Any], options: Options, args: Any, kwargs: Any
) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    """Return the chosen arguments, and ``fun`` as a function of them."""
    call = options.call
    chosen = argument_positions(call, options.argnums, args)
    inputs = tuple(args[i] for i in chosen)
    for number, leaf in enumerate(tree.leaves(inputs)):
        check_differentiable(options, leaf, args, chosen, number)
        dtype = backend.dtype_of(leaf)
        if call != "jacrev" and dtype.kind == "c" and not options.holomorphic:
            raise InputError(
                f"{call}: {leaf_path(args, chosen, number)} is complex, got dtype {dtype}. Pass holomorphic=True if "
                "the function is complex differentiable, else split it into real and imaginary parts or use jvp."
            )
    return inputs, lambda *values: fun(*replace_at(args, chosen, values), **kwargs)


def _check_any_output(call: str, outs: list[Any]) -> None:
    if not outs:
        raise InputError(
            f"{call}: the function must return an array or a container of arrays, got none. Return what is to be "
            "differentiated."
        )


def _check_outputs(call: str, outs: list[Any], holomorphic: bool) -> None:
    """Check that the results of the function can be differentiated.

    Raises:
        InputError: a ``TypeError`` for no result, for a real or complex one without the option for it, for integers.
    """
    _check_any_output(call, outs)
    for number, leaf in enumerate(outs):
        dtype = backend.dtype_of(leaf)
        if holomorphic != (dtype.kind == "c"):
            need = "complex results" if holomorphic else "real results"
            raise InputError(
                f"{call}: with holomorphic={holomorphic} the function must give {need}, got dtype {dtype} in "
                f"result leaf {number}. Use vjp or jvp for the mixed case."
            )
        if not backend.is_inexact(leaf):
            raise InputError(
                f"{call}: the function must give floating results, got dtype {dtype} in result leaf {number}. "
                "Convert it to float, or use vjp."
            )


def _split_axis(x: Any, axis: int, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Cut ``x`` along ``axis`` into one part per entry of ``shapes``, and reshape that axis of each part to it."""
    shape = backend.shape_of(x)
    parts, start = [], 0
    for inner in shapes:
        stop = start + prod(inner)
        part = x if len(shapes) == 1 else x[(*[slice(None)] * axis, slice(start, stop))]
        made = reshape(part, to=(*shape[:axis], *inner, *shape[axis + 1 :]))
        parts.append(made[()] if type(made) is np.ndarray and not made.shape else made)  # a number, as from grad
        start = stop
    return parts
