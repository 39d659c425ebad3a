"""Less memory for more time: ``checkpoint`` and ``checkpoint_chain`` recompute the values that they do not save."""

from __future__ import annotations

import functools
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from types import CellType, FunctionType, MethodType
from typing import Any, NamedTuple, Never, ParamSpec, TypeVar, overload

import toolz
from toolz.functoolz import Compose

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import linear
from funcgrad.numpy_code import CheckedForWrites, Rebuilt
from funcgrad.numpy_code.functions import assigned_variables
from funcgrad.primitives.indexing import getitem
from funcgrad.replay import Chain
from funcgrad.replay.chain import states_for
from funcgrad.replay.memory import CHECKPOINT_NAME, Memory
from funcgrad.transforms.arguments import owned_tree
from funcgrad.transforms.policies import Policy, everything_saveable
from funcgrad.transforms.snapshots import Store
from funcgrad.transforms.transformed import Transformed, check_callable, hide_extra_arguments, name_of
from funcgrad.typing import PyTree
from funcgrad.writable import detached_copy


def _partial_with(x: Any, fun: Any) -> Any:
    return type(x)(fun, *x.args, **x.keywords)


#: By type of a callable made of other functions: what returns these functions, and what rebuilds it with others.
_PARTS: dict[type, tuple[Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    MethodType: (lambda x: (x.__func__,), lambda x, fun: MethodType(fun, x.__self__)),
    functools.partial: (lambda x: (x.func,), _partial_with),
    toolz.curry: (lambda x: (x.func,), _partial_with),
    Compose: (lambda x: (x.first, *x.funcs), lambda x, *functions: Compose(tuple(reversed(functions)))),
    Transformed: (lambda x: (x.fun,), lambda x, fun: Transformed(x.run, fun, x.options, x.summary)),
    Rebuilt: (lambda x: (x.fun,), lambda x, fun: Rebuilt(fun, x.level)),
    CheckedForWrites: (lambda x: (x.fun,), lambda _, fun: fun),
}


def has_value(cell: CellType) -> bool:
    """Whether a closed-over variable has a value already."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _freeze_closure(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun`` with its closed-over variables, and those of the functions it closes over, as they are now.

    ``for w in weights: h = checkpoint(lambda h: h @ w)(h)`` makes functions that all read one variable. When the
    backward pass runs the functions again, the variable has changed.

    Functions inside partials, toolz's compositions and curries, methods and transformed functions are
    included. Global variables, the insides of objects, and variables that one of the functions sets
    (``nonlocal``) stay shared.

    Example:
        >>> def make():
        ...     k = 1
        ...     copy = _freeze_closure(lambda: k)
        ...     k = 2
        ...     return copy
        >>> make()()
        1
    """
    functions: dict[int, FunctionType] = {}
    collect_closures(fun, functions)
    shared = {id(cell): cell for f in functions.values() for cell in _assigned_cells(f)}
    copy: Callable[..., Any] = _copy_callable(fun, {}, shared) if functions else fun
    return copy


def collect_closures(x: Any, found: dict[int, FunctionType]) -> None:
    """Add to ``found`` all functions with closed-over variables that ``x`` is made of or closes over."""
    if type(x) in _PARTS:
        for part in _PARTS[type(x)][0](x):
            collect_closures(part, found)
    elif type(x) is FunctionType and x.__closure__ is not None and id(x) not in found:
        found[id(x)] = x
        for cell in x.__closure__:
            if has_value(cell):
                collect_closures(cell.cell_contents, found)


def _assigned_cells(fun: FunctionType) -> list[CellType]:
    """Return the variables that ``fun`` itself sets; a copy of ``fun`` shares them with all other functions."""
    stores = assigned_variables(fun.__code__)
    return [cell for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True) if name in stores]


def _copy_callable(x: Any, done: dict[int, Any], cells: dict[int, CellType]) -> Any:
    """Return ``x`` with copies of its functions and variables; ``done`` and ``cells`` are the copies made so far."""
    if isinstance(x, Tracer):  # the program may write to it
        return detached_copy(x)
    if type(x) in _PARTS:
        parts_of, rebuilt = _PARTS[type(x)]
        parts = parts_of(x)
        copies = [_copy_callable(part, done, cells) for part in parts]
        return x if all(map(operator.is_, parts, copies)) else rebuilt(x, *copies)
    if type(x) is not FunctionType or x.__closure__ is None:
        return x
    if id(x) in done:
        return done[id(x)]
    new = [cell for cell in x.__closure__ if id(cell) not in cells]
    cells.update({id(cell): CellType() for cell in new})
    new_closure = tuple([cells[id(cell)] for cell in x.__closure__])
    copy = done[id(x)] = FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, new_closure)
    copy.__kwdefaults__, copy.__qualname__, copy.__dict__ = x.__kwdefaults__, x.__qualname__, x.__dict__
    for cell in new:  # a variable may hold ``x`` itself
        if has_value(cell):
            cells[id(cell)].cell_contents = _copy_callable(cell.cell_contents, done, cells)
    return copy


P = ParamSpec("P")
R = TypeVar("R")

#: Default number of states that a chain of unknown length keeps.
_DEFAULT_BUDGET = 32

_name_operation = linear(
    CHECKPOINT_NAME, lambda xp, x, *, name: x, transpose=lambda ct, *, name: ct, conforms=True, batch="leading"
)


def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """Return ``x``, under a name by which a policy of ``checkpoint`` can save it.

    Args:
        x: an array or a pytree.
        name: the name.

    Example:
        >>> from funcgrad import checkpoint, checkpoint_name, checkpoint_policies, grad
        >>> def layer(x):
        ...     return fnp.sum(fnp.sin(checkpoint_name(fnp.exp(x), "activation")))
        >>> kept = checkpoint(layer, policy=checkpoint_policies.save_only_these_names("activation"))
        >>> bool((grad(kept)(np.ones(3)) == grad(layer)(np.ones(3))).all())
        True
    """
    return tree.map(lambda leaf: _name_operation(leaf, name=name) if is_array(leaf) else leaf, x)


class _Options(NamedTuple):
    policy: Policy | None
    static_argnums: tuple[int, ...]


@overload
def checkpoint(
    fun: Callable[P, R], *, policy: Policy | None = None, static_argnums: int | Sequence[int] = ()
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None, *, policy: Policy | None = None, static_argnums: int | Sequence[int] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@hide_extra_arguments
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *_others: Never,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Compute ``fun`` but save only its arguments: the backward pass runs ``fun`` again.

    Values and derivatives equal those of ``fun`` bit for bit. Values that ``fun`` closes over are differentiated as
    usual. ``fun`` must do the same in the second run: it must not draw random numbers.

    Args:
        fun: any function; left out in ``@checkpoint(policy=...)``.
        policy: which results inside ``fun`` to save nevertheless, see ``checkpoint_policies``; None saves none.
            It is a function ``policy(operation, params, result) -> bool``.
        static_argnums: positions of arguments that must not be differentiated or batched.

    Returns:
        A function of the same arguments. It saves memory in reverse mode: in ``grad``, ``vjp``,
        ``jacrev``, in forward mode over those, and under ``vmap``. ``linearize`` still saves the values inside
        ``fun``, and so does the outer of two nested reverse modes when the inner one runs ``fun`` again.

    Raises:
        TypeError: ``fun`` is not callable; a static argument is traced. A call also raises what ``fun`` raises.
        RuntimeError: ``ReplayError`` in the backward pass, if the second run of ``fun`` differs from the first.

    Example:
        >>> from funcgrad import checkpoint, grad
        >>> def loss(w, x):
        ...     layer = checkpoint(lambda h: fnp.tanh(h @ w))
        ...     return fnp.sum(layer(layer(x)))
        >>> grad(loss)(np.eye(2), np.zeros(2))
        array([[0., 0.],
               [0., 0.]])
    """
    positions = _static_positions(static_argnums)
    if policy is not None and not callable(policy):
        raise InputError(
            f"checkpoint: policy must be a function of (operation, params, result), got {describe(policy)}. "
            "Take one from checkpoint_policies."
        )
    if fun is None:
        return functools.partial(checkpoint, policy=policy, static_argnums=positions)
    check_callable("checkpoint", fun, _others)
    summary = "{fun}, run again in the backward pass instead of remembered."
    return Transformed(run_checkpoint, fun, _Options(policy, positions), summary)


def _static_positions(argnums: Any) -> tuple[int, ...]:
    try:
        return tuple(operator.index(i) for i in (argnums if isinstance(argnums, (tuple, list)) else [argnums]))
    except TypeError:
        raise InputError(
            f"checkpoint: static_argnums must be an int or a tuple of ints, got {argnums!r}. Use positions."
        ) from None


def run_checkpoint(fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``checkpoint(fun)``."""
    policy, static = options
    for i in static:
        if not -len(args) <= i < len(args):
            raise InputError(
                f"checkpoint: static_argnums names position {i}, got {len(args)} positional arguments. Pass the "
                "argument by position."
            )
        if Tracer in map(type, tree.leaves(args[i])):
            raise InputError(
                f"checkpoint: argument {i} is static and is being transformed, got {describe(tree.leaves(args[i])[0])}."
                " Take it out of static_argnums."
            )
    if policy is everything_saveable:
        return owned_tree(fun(*args, **kwargs))
    name = f"checkpoint({name_of(fun)})"
    fixed = {i % len(args): args[i] for i in static}
    moving = tuple(None if i in fixed else arg for i, arg in enumerate(args))

    kept = _freeze_closure(fun)

    def step(_: int, state: Any, is_rerun: bool) -> Any:
        given, named = state
        function = _freeze_closure(kept) if is_rerun else fun
        return function(*[fixed.get(i, arg) for i, arg in enumerate(given)], **named)

    memory = None if policy is None else Memory(name, policy)
    return owned_tree(Chain(name, step, (moving, kwargs), memory=memory).run(1))


def checkpoint_chain(
    step: Callable[..., PyTree] | Sequence[Callable[..., PyTree]],
    init: PyTree,
    xs: Any = None,
    *,
    budget: int | None = None,
    length: int | None = None,
    args: tuple[Any, ...] = (),
    store: str | os.PathLike[str] | None = None,
) -> PyTree:
    """Run ``carry = step(carry, x)`` over ``xs`` and keep few carries; reverse mode recomputes the others.

    Values equal those of the loop bit for bit, and so do derivatives with respect to ``init``, ``xs``, ``args``
    and the values that the steps close over. With ``budget`` carries kept, ``binomial(budget + 1 + r, r)`` steps take
    about ``r`` repeats of each step.

    Args:
        step: ``step(carry, x, *args) -> carry``, without ``x`` when ``xs`` is None; or a list of such
            functions, one for each step, whose carries may differ in structure.
        init: the first carry, a pytree.
        xs: an array or a pytree of arrays, whose first axes the steps go along; or an iterable of other items: a
            range, or a generator, whose length may be unknown.
        budget: how many carries besides the first may be kept at a time. By default the smallest number with which
            steps are repeated about twice; 32 if the length is unknown.
        length: the number of steps, if neither ``xs`` nor ``step`` tells it.
        args: more arguments of every step.
        store: a folder for the kept carries, in place of memory. An unnamed file holds the carries, so nothing is left
            in the folder even if the process is killed.

    Returns:
        The last carry.

    Raises:
        TypeError: ``step`` is not callable, or nothing tells the length.
        ValueError: lengths that disagree, a negative ``budget``.
        OSError: a carry cannot be written to ``store``.
        RuntimeError: ``ReplayError`` in the backward pass, if the second run of a step differs from the first.

    Example:
        >>> from funcgrad import checkpoint_chain, grad
        >>> def last(w, xs):
        ...     return checkpoint_chain(lambda h, x: fnp.tanh(w * h + x), 0.5, xs, budget=3)
        >>> grad(last)(1.0, np.linspace(0.0, 0.1, 100)).round(6)
        np.float64(1.041954)
    """
    several = isinstance(step, (list, tuple))
    functions: list[Any] = list(step) if isinstance(step, (list, tuple)) else [step]
    for function in functions:
        check_callable("checkpoint_chain", function)
    if budget is not None and operator.index(budget) < 0:
        raise ShapeError(f"checkpoint_chain: budget must not be negative, got {budget}. Say how many carries to keep.")
    items, iterator = _chain_items(xs)
    known = _chain_length(
        xs=None if items is None else len(items), steps=len(functions) if several else None, length=length
    )
    if known is None and iterator is None:
        raise InputError(
            f"checkpoint_chain: the number of steps is unknown, got xs={describe(xs)}. Pass length, xs, or a list "
            "of steps."
        )
    if known is not None and iterator is not None:
        items, iterator = list(itertools.islice(iterator, known)), None
        if len(items) < known:
            raise ShapeError(
                f"checkpoint_chain: xs ended early, got {len(items)} items for {known} steps. They must agree."
            )
    given: Any = [] if items is None else items
    kept_items: Any = _items_for_rerun(given)
    one_step = _chain_step(functions, given, kept_items, args)
    if budget is None:
        budget = _DEFAULT_BUDGET if known is None else states_for(known, 2) - 1
    kept = None if store is None else Store("checkpoint_chain", store)
    name = "checkpoint_chain" if several else f"checkpoint_chain({name_of(step)})"
    chain = Chain(name, one_step, init, budget, store=kept)
    if iterator is None:
        return owned_tree(chain.run(known or 0))
    more = iterator

    def take_item() -> bool:  # whether there was one more
        given.extend(itertools.islice(more, 1))
        kept_items.extend(map(_detached_copies, given[len(kept_items) :]))
        return len(given) > chain.done

    return owned_tree(chain.run_while(take_item))


class _Rows(Sequence[Any]):
    """Rows of the arrays in a tree, each read when it is requested."""

    def __init__(self, leaves: list[Any], spec: tree.PyTreeSpec, size: int) -> None:
        self.leaves, self.spec, self.size = leaves, spec, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: Any) -> Any:
        return tree.unflatten(self.spec, [getitem(leaf, i) for leaf in self.leaves])


def _items_for_rerun(given: Sequence[Any]) -> Sequence[Any]:
    """Return the items for another run, which writes to the items in the meantime do not change."""
    if isinstance(given, _Rows):
        return _Rows(_detached_copies(given.leaves), given.spec, given.size)
    return given if type(given) is range else list(map(_detached_copies, given))


def _chain_step(
    functions: list[Any], given: Sequence[Any], kept: Sequence[Any], args: tuple[Any, ...]
) -> Callable[..., Any]:
    """Return the step of a chain, made of one function or one for each step. Another run gets the items ``kept``."""
    rerun_functions, rerun_args = [_freeze_closure(one) for one in functions], _detached_copies(args)

    def one_step(i: int, carry: Any, is_rerun: bool) -> Any:
        index = i if len(functions) > 1 else 0
        if not is_rerun:
            return functions[index](carry, *([given[i]] if given else ()), *args)
        return _freeze_closure(rerun_functions[index])(
            carry, *_detached_copies([kept[i]] if kept else []), *_detached_copies(rerun_args)
        )

    return one_step


def _detached_copies(values: Any) -> Any:
    """Return ``values``, a tree, as they are now: later writes to them do not change the result."""
    leaves, spec = tree.flatten(values)
    return tree.unflatten(spec, map(detached_copy, leaves)) if Tracer in map(type, leaves) else values


def _chain_length(**said: int | None) -> int | None:
    """Return the number of steps, or None if nothing tells it."""
    found = {name: operator.index(n) for name, n in said.items() if n is not None}
    if len(set(found.values())) > 1 or min(found.values(), default=0) < 0:
        listed = ", ".join(f"{n} by {name}" for name, n in found.items())
        raise ShapeError(f"checkpoint_chain: the number of steps is not clear, got {listed}. They must agree.")
    return next(iter(found.values()), None)


def _chain_items(xs: Any) -> tuple[Sequence[Any] | None, Iterator[Any] | None]:
    """Return the items of the steps as a sequence, or else as an iterator; both are None without ``xs``."""
    if xs is None:
        return None, None
    paths, leaves, spec = tree.flatten_with_path(xs)
    if len(leaves) == 1 and leaves[0] is xs and not is_array(xs):
        if not isinstance(xs, Iterable):
            raise InputError(
                f"checkpoint_chain: xs must be an array, a pytree of arrays or an iterable, got {describe(xs)}. "
                "Pass what the steps go through."
            )
        if type(xs) is range:
            return xs, None
        return (list(xs), None) if isinstance(xs, Sized) else (None, iter(xs))
    for path, leaf in zip(paths, leaves, strict=True):
        if not is_array(leaf) or not backend.shape_of(leaf):
            raise ShapeError(
                f"checkpoint_chain: xs{path} has no first axis to go through, got {describe(leaf)}. Pass arrays, or an "
                "iterator over the items: iter(xs)."
            )
    sizes = {backend.shape_of(leaf)[0] for leaf in leaves}
    if len(sizes) != 1:
        raise ShapeError(
            f"checkpoint_chain: the first axes of xs must have one length, got {sorted(sizes)}. Cut them to one length."
        )
    return _Rows(leaves, spec, sizes.pop()), None
