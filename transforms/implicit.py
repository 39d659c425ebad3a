"""Implicit differentiation: of what a solver finds, by what it solves and not by how.

Where ``f(x, p) = 0``, the derivative of ``x`` solves a linear system: ``df/dx dx = -df/dp dp``. The solver is
run once, on plain values, and never differentiated. Each function here is one operation with a rule for both
modes; the rules are made of such operations again, which gives every higher order. The parameters are
what ``f`` closes over: they are taken out of it and made arguments of the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConcretizationError, ConvergenceError, InputError, NotDifferentiableError, ShapeError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.kinds.linear import batch_rule, nondifferentiable
from funcgrad.numpy.concretization import forgive
from funcgrad.transforms.arguments import check_leaf, split_aux
from funcgrad.transforms.closures import Hoisted, example_by_example
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.solvers import anderson, dense_solve
from funcgrad.transforms.stopping import no_grad, stop_gradient
from funcgrad.transforms.transformed import check_callable, name_of
from funcgrad.typing import PyTree

__all__ = ["custom_linear_solve", "custom_root", "fixed_point"]

#: ``solve(matvec, b) -> x`` with ``matvec(x) = b``.
Solve = Callable[[Callable[[Any], Any], Any], Any]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: PyTree,
    solve: Solve,
    transpose_solve: Solve | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> PyTree:
    """Solve ``matvec(x) = b`` with any solver; the derivative follows from the system, not from the solver.

    Args:
        matvec: a linear function of a tree like ``b``, returning such a tree. It may close over traced values, with
            respect to which the solution has derivatives.
        b: the right-hand side, a tree of arrays.
        solve: ``solve(matvec, b)`` returns the solution; it sees plain values and may be any Python. Inside ``vmap`` it
            gets whole batches first, and if it does not take them, one example after the other.
        transpose_solve: the same for the transposed system, which reverse mode needs; it gets the transpose of
            ``matvec``.
        symmetric: whether the system is its own transpose, so that ``solve`` serves for both.
        has_aux: whether the solvers return a pair ``(solution, aux)``, aux being a tree of arrays.

    Returns:
        The solution, with ``has_aux=True`` ``(solution, aux)``; aux is a constant.

    Raises:
        TypeError: a leaf that is no array; ``matvec`` or ``solve`` return another structure; reverse mode
            without ``transpose_solve``.
        ValueError: they return another shape.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.transforms import custom_linear_solve
        >>> a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0])
        >>> solve = lambda matvec, b: np.linalg.solve(a, b)
        >>> grad(lambda b: custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True)[0])(b)
        array([ 0.4, -0.2])
    """
    check_callable("custom_linear_solve", matvec)
    check_callable("custom_linear_solve", solve)
    _check_arrays("custom_linear_solve", "b", b)
    system = _System(matvec, b, solve, solve if symmetric else transpose_solve, symmetric, has_aux)
    outs = custom_call(*tree.leaves(b), *system.held, rules=system.rules())
    count = len(system.likes)
    x = tree.unflatten(system.spec, outs[:count])
    return (x, tree.unflatten(system.aux_spec[0], outs[count:])) if has_aux else x


class _System:
    """A linear system: its function of a tree and of what it holds, and the solvers.

    Its operation takes the leaves of the right-hand side and then what the function holds.
    """

    def __init__(
        self,
        matvec: Callable[[Any], Any],
        b: PyTree,
        solve: Solve,
        transpose_solve: Solve | None,
        symmetric: bool,
        has_aux: bool,
    ) -> None:
        name = f"custom_linear_solve of {name_of(matvec)}"
        hoisted = Hoisted("custom_linear_solve", matvec, tree.map(backend.zeros_like, b))
        leaves, self.spec = tree.flatten(b)
        self.likes = [(backend.shape_of(leaf), backend.dtype_of(leaf)) for leaf in leaves]
        _check_like("custom_linear_solve: matvec", hoisted.outs, hoisted.out_spec, self.likes, self.spec)
        self.held = hoisted.held
        self.name = name
        self.apply: Callable[[Any, Any], Any] = hoisted
        self.solve, self.transpose_solve = solve, transpose_solve
        self.symmetric, self.has_aux = symmetric, has_aux
        self.aux_spec: list[Any] = [None]

    def transposed(self) -> _System:
        """The system with the transposed function."""
        if self.transpose_solve is None:
            raise NotDifferentiableError(
                f"{self.name}: reverse mode solves the transposed system, got no transpose_solve. Give one, or "
                "symmetric=True."
            )
        if self.symmetric:
            return self
        other: _System = object.__new__(_System)
        other.__dict__.update(self.__dict__)
        other.apply = lambda u, held: _transpose(lambda x: self.apply(x, held), self.zeros(u), u)
        other.solve, other.transpose_solve = self.transpose_solve, self.solve
        return other

    def zeros(self, like: PyTree) -> PyTree:
        """A zero vector, of the library of ``like``."""
        return tree.map(backend.zeros_like, like)

    def rules(self) -> CustomRules:
        """The operation."""
        return CustomRules(self.name, self.run, self.fwd, self.bwd, self.push)

    def parts(self, leaves: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The right-hand side, and what the function holds."""
        count = len(self.likes)
        return tree.unflatten(self.spec, leaves[:count]), list(leaves[count:])

    def run(self, *leaves: Any) -> list[Any]:
        """The solution, by the solver."""
        outs: list[Any] = no_grad(example_by_example)(self._run, leaves)
        # of no example at all the solution is as empty as the other side
        return outs or list(leaves[: len(self.likes)])

    def _run(self, *leaves: Any) -> list[Any]:
        b, held = self.parts(leaves)
        x, aux = self.solve(lambda v: self.apply(v, held), b), None
        if self.has_aux:
            x, aux = split_aux("custom_linear_solve", x)
        found, spec = tree.flatten(x)
        _check_like("custom_linear_solve: solve", found, spec, self.likes, self.spec)
        others, self.aux_spec[0] = tree.flatten(aux)
        return [*found, *others]

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        """The solution, and what the pullback needs."""
        outs = list(custom_call(*leaves, rules=self.rules()))
        return outs, (outs[: len(self.likes)], list(leaves[len(self.likes) :]))

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """The transposed system gives the cotangent of ``b``, from which that of the held values follows."""
        xs, held = residuals
        count = len(self.likes)
        z = list(custom_call(*cts[:count], *held, rules=self.transposed().rules()))[:count]
        x, ct = tree.unflatten(self.spec, xs), tree.unflatten(self.spec, z)
        return [*z, *_pulled(lambda values: self.apply(x, values), held, ct)]

    def push(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The same system for the tangent."""
        outs = list(custom_call(*leaves, rules=self.rules()))
        x = tree.unflatten(self.spec, outs[: len(self.likes)])
        (_, held), (db, dheld) = self.parts(leaves), self.parts(tangents)
        moved = _pushed(lambda values: self.apply(x, values), held, dheld)
        rhs = db if moved is None else tree.map(lambda a, m: a - m, db, moved)
        pushed = list(custom_call(*tree.leaves(rhs), *held, rules=self.rules()))[: len(self.likes)]
        return outs, [*pushed, *[None] * (len(outs) - len(pushed))]


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: PyTree,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Solve = dense_solve,
    has_aux: bool = False,
    transpose_solve: Solve | None = None,
) -> PyTree:
    """A root of ``f`` by any solver; its derivative follows from the implicit function theorem.

    Args:
        f: a function of a tree that returns a tree of the same structure, shapes and dtypes. The root has derivatives
            with respect to the values that ``f`` closes over.
        initial_guess: where the solver begins; the root does not depend on it.
        solve: ``solve(f, initial_guess)`` returns the root, as ``newton`` does; it sees plain values and may be any
            Python. Inside ``vmap`` it gets whole batches first, and if it does not take them, one example after the
            other.
        tangent_solve: ``tangent_solve(g, y)`` solves ``g(x) = y`` for a linear function ``g``: the derivative of
            ``f`` at the root and, in reverse mode, its transpose.
        has_aux: whether ``solve`` returns a pair ``(root, aux)``, aux being any tree; it is a constant.
        transpose_solve: the solver for the transpose, where ``tangent_solve`` does not fit.

    Returns:
        The root, with ``has_aux=True`` ``(root, aux)``.

    Raises:
        TypeError: a leaf that is no array; ``f`` or a solver return another structure.
        ValueError: they return another shape.
        ArithmeticError: the answer of a tangent solver does not solve its system.

    Example:
        >>> from funcgrad import grad
        >>> from funcgrad.transforms import custom_root, newton
        >>> root = lambda a: custom_root(lambda x: x**3 - a, 2.0, newton)
        >>> round(float(grad(root)(8.0)), 12), round(1 / 12, 12)
        (0.083333333333, 0.083333333333)
    """
    for fun in (f, solve, tangent_solve):
        check_callable("custom_root", fun)
    _check_arrays("custom_root", "initial_guess", initial_guess)
    found, aux = _solved("custom_root", f, initial_guess, solve), None
    if has_aux:
        found, aux = split_aux("custom_root", found)
    _check_arrays("custom_root", "the root", found)
    solvers = (_checked(tangent_solve), _checked(transpose_solve or tangent_solve))
    root = _Root(f, found, *solvers)
    x = tree.unflatten(root.spec, custom_call(*tree.leaves(found), *root.held, rules=root.rules()))
    return (x, aux) if has_aux else x


@no_grad
def _solved(
    call: str, f: Callable[[Any], Any], guess: PyTree, solve: Callable[[Callable[[Any], Any], Any], Any]
) -> Any:
    """What a solver finds, a constant. Where it takes plain values only, it becomes an operation.

    So a ``vmap`` runs it for one example after the other, and a graph remembers it.

    Args:
        call: the public call, for messages.
        f: the function that the solver evaluates.
        guess: a tree like what the solver finds.
        solve: ``solve(f, guess)``; it may hold nothing else that is batched.
    """
    try:
        return solve(f, guess)
    except (ConcretizationError, NotDifferentiableError):
        forgive()
        hoisted = Hoisted(call, f, guess, steered=True)
        leaves, spec = tree.flatten(guess)
        count, out_spec = len(leaves), list[Any]()

        def run(xp: Any, *values: Any) -> Any:
            found = solve(lambda x: hoisted(x, values[count:]), tree.unflatten(spec, values[:count]))
            outs, out_spec[:] = (pair := tree.flatten(found))[0], pair[1:]
            return tuple(outs)

        def batch(size: int, args: Any, batched: Any, params: Any) -> Any:
            if size:
                return one_by_one(size, args, batched, params)
            outs, out_spec[:] = (pair := tree.flatten(guess))[0], pair[1:]
            return tuple([np.zeros((0, *backend.shape_of(x)), backend.dtype_of(x)) for x in outs]), True

        operation = nondifferentiable(call, run, batch=batch, multiple=True)
        one_by_one = batch_rule("loop", operation)
        outs = operation(*stop_gradient([*leaves, *hoisted.held]))
        return tree.unflatten(out_spec[0], list(outs))


class _Root:
    """A root with its function. Its operation takes the leaves of the root and then what the function holds."""

    def __init__(self, f: Callable[[Any], Any], x: PyTree, tangent_solve: Solve, transpose_solve: Solve) -> None:
        self.apply = Hoisted("custom_root", f, x)
        self.held = self.apply.held
        leaves, self.spec = tree.flatten(x)
        self.count = len(leaves)
        likes = [(backend.shape_of(leaf), backend.dtype_of(leaf)) for leaf in leaves]
        _check_like("custom_root: f", self.apply.outs, self.apply.out_spec, likes, self.spec)
        self.name = f"custom_root of {name_of(f)}"
        self.tangent_solve, self.transpose_solve = tangent_solve, transpose_solve

    def rules(self) -> CustomRules:
        """The operation: the root itself, which depends on what the function holds by its rules alone."""
        return CustomRules(self.name, lambda *leaves: list(leaves[: self.count]), self.fwd, self.bwd, self.push)

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        """The root, and what the pullback needs."""
        outs = list(custom_call(*leaves, rules=self.rules()))
        return outs, (outs, list(leaves[self.count :]))

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """One transposed linear system."""
        outs, held = residuals
        x, ct = tree.unflatten(self.spec, outs), tree.unflatten(self.spec, cts)
        z = custom_linear_solve(
            lambda u: _transpose(lambda v: self.apply(v, held), x, u), ct, self.transpose_solve, self.tangent_solve
        )
        pulled = _pulled(lambda values: self.apply(x, values), held, z)
        return [*[None] * self.count, *pulled]

    def push(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """One linear system."""
        outs = list(custom_call(*leaves, rules=self.rules()))
        x, held = tree.unflatten(self.spec, outs), list(leaves[self.count :])
        moved = _pushed(lambda values: self.apply(x, values), held, tangents[self.count :])
        if moved is None:
            return outs, [None] * self.count
        step = custom_linear_solve(
            lambda v: jvp(lambda u: self.apply(u, held), (x,), (v,))[1], moved, self.tangent_solve, self.transpose_solve
        )
        return outs, [-leaf for leaf in tree.leaves(step)]


def fixed_point(
    f: Callable[..., Any],
    x0: PyTree,
    *params: PyTree,
    solver: Callable[[Callable[[Any], Any], Any], Any] = anderson,
    tangent_solve: Solve = dense_solve,
) -> PyTree:
    """The ``x`` with ``x = f(x, *params)``; its derivative follows from that equation, not from the iteration.

    Args:
        f: a function of a tree and of parameters that returns a tree like the first.
        x0: where the solver begins; the fixed point does not depend on it.
        params: trees. Values that ``f`` closes over are parameters as well.
        solver: ``solver(g, x0)`` finds the fixed point of ``g``: ``anderson``, ``picard``, or your own.
        tangent_solve: as in ``custom_root``.

    Raises:
        ArithmeticError: the solver does not converge.
        TypeError, ValueError: as ``custom_root``.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.transforms import fixed_point
        >>> heron = lambda x, a: 0.5 * (x + a / x)
        >>> root = lambda a: fixed_point(heron, 1.0, a)
        >>> float(np.round(root(9.0), 12)), float(np.round(grad(root)(9.0), 12))
        (3.0, 0.166666666667)
    """
    check_callable("fixed_point", f)
    check_callable("fixed_point", solver)

    def residual(x: Any) -> Any:
        return tree.map(lambda a, b: a - b, f(x, *params), x)

    return custom_root(residual, x0, lambda _, start: solver(lambda x: f(x, *params), start), tangent_solve)


def _transpose(fun: Callable[[Any], Any], x: PyTree, ct: PyTree) -> PyTree:
    """The transposed derivative of ``fun`` at ``x``, times ``ct``."""
    return vjp(fun, x)[1](ct)[0]


def _pulled(fun: Callable[[Any], Any], held: list[Any], ct: PyTree) -> list[Any]:
    """The cotangents of what a function holds, for minus ``ct``; None where there is no derivative."""
    live = [backend.is_inexact(value) for value in held]
    if not any(live):
        return [None] * len(held)
    pulled = vjp(fun, held)[1](tree.map(lambda leaf: -leaf, ct))[0]
    return [c if flag else None for c, flag in zip(pulled, live, strict=True)]


def _pushed(fun: Callable[[Any], Any], held: list[Any], tangents: Sequence[Any]) -> PyTree:
    """What the tangents of the held values make of ``fun``, None where nothing moves."""
    if not any(backend.is_inexact(value) for value in held):
        return None
    return jvp(fun, (held,), (list(tangents),))[1]


def _checked(solve: Solve) -> Solve:
    """``solve``, with a look whether its answer solves the system: it may not fit the transpose."""

    def checked(matvec: Callable[[Any], Any], b: PyTree) -> PyTree:
        x = solve(matvec, b)
        rest = _norm(tree.map(lambda y, rhs: y - rhs, matvec(x), b))
        whole = _norm(b)
        if rest is not None and whole is not None and rest > 0.01 * whole:
            raise ConvergenceError(
                f"custom_root: {name_of(solve)} does not solve the system that the derivative needs, got a residual of "
                f"{rest / whole:.0e}. It is called with the derivative of f at the root and, in reverse mode, with its "
                "transpose, for which transpose_solve may be another solver."
            )
        return x

    checked.__name__ = name_of(solve)
    return checked


def _norm(x: PyTree) -> float | None:
    """The length of all leaves together, None where they are not NumPy's."""
    total = 0.0
    for leaf in tree.leaves(x):
        while isinstance(leaf, Tracer):
            leaf = leaf.value
        if backend.namespace_of(leaf) is not np:
            return None
        total += float(np.sum(np.abs(leaf) ** 2))
    return float(total**0.5)


def _check_arrays(call: str, what: str, x: PyTree) -> None:
    paths, leaves, _ = tree.flatten_with_path(x)
    for path, leaf in zip(paths, leaves, strict=True):
        check_leaf(call, leaf, lambda path=path: f"{what}{path}")
        if not backend.is_inexact(leaf):
            raise InputError(
                f"{call}: {what}{path} must be floating or complex, got {describe(leaf)}. Convert it with astype."
            )


def _check_like(what: str, leaves: list[Any], spec: Any, likes: list[Any], expected: Any) -> None:
    """Refuse what has not the structure, shapes and dtypes of the unknown."""
    if spec != expected:
        raise InputError(f"{what} must return a tree like the unknown, got {spec}, expected {expected}.")
    for leaf, (shape, dtype) in zip(leaves, likes, strict=True):
        if backend.shape_of(leaf) != shape:
            raise ShapeError(
                f"{what} must return arrays like the unknown, got shape {list(backend.shape_of(leaf))}, expected "
                f"{list(shape)}."
            )
        if backend.dtype_of(leaf) != dtype:
            raise InputError(
                f"{what} must return arrays like the unknown, got dtype {backend.dtype_of(leaf)}, expected {dtype}."
            )
