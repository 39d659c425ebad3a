"""Implicit differentiation: derivatives of a solver's result from the equation it solves, not from its steps.

If ``f(x, p) = 0``, the derivative of ``x`` solves a linear system: ``df/dx dx = -df/dp dp``. The solver runs
once, on plain values, and is never differentiated. Each function here is one operation with a rule for both
modes; the rules are made of such operations again, which gives every higher order. The parameters are the
values that ``f`` closes over: they are taken out of ``f`` and made arguments of the operation.

The solvers, of dense linear systems, by Newton's method, and of fixed points by iteration, are ordinary functions of
``funcgrad.numpy``. Under ``vmap`` they iterate until every example has converged. They can be differentiated through,
which gives the unrolled derivative.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, is_batched
from funcgrad.core import describe, is_in_transform, join_repetition, plain_value, traces_of
from funcgrad.errors import ConcretizationError, ConvergenceError, InputError, NotDifferentiableError, ShapeError
from funcgrad.extend import primitive
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.kinds.linear import batch_rule, nondifferentiable
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code import run_or_rebuild
from funcgrad.numpy_code.refusals import is_own
from funcgrad.transforms.arguments import check_leaf, split_aux
from funcgrad.transforms.closures import RecordedClosure, example_by_example
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.stopping import no_grad, stop_gradient
from funcgrad.transforms.transformed import check_callable, check_functions, name_of
from funcgrad.transforms.vectorize import is_true_for_any_example, vmap
from funcgrad.typing import PyTree

_solve: Operation = primitive(
    "dense_solve",
    lambda xp, a, b: xp.linalg.solve(a, b[..., None])[..., 0],
    vjps=[
        lambda ct, x, ans: -_solve(fnp.swapaxes(x, -1, -2), ct)[..., :, None] * ans[..., None, :],
        lambda ct, x: _solve(fnp.swapaxes(x, -1, -2), ct),
    ],
    jvps=[lambda t, x, ans: -_solve(x, fnp.matvec(t, ans)), lambda t, x: _solve(x, t)],
    batch="leading",
)


class _VectorConversion:
    """Conversion of a tree to one vector, and back."""

    def __init__(self, like: PyTree) -> None:
        leaves, self.spec = tree.flatten(like)
        self.avals = list(map(backend.shape_and_dtype_of, leaves))
        self.sizes = [int(np.prod(shape, dtype=int)) for shape, _ in self.avals]
        self.dtype = np.result_type(*[dtype for _, dtype in self.avals])
        self.xp = backend.library_of(leaves[0]) if leaves else np

    def vector(self, value: PyTree) -> Any:
        """Return the leaves of ``value`` one after the other."""
        parts = [fnp.reshape(leaf, (-1,)) for leaf in tree.leaves(value)]
        return parts[0] if len(parts) == 1 else fnp.concatenate(parts)

    def tree(self, vector: Any) -> PyTree:
        """Return the tree with the entries of ``vector``."""
        leaves, start = [], 0
        for (shape, dtype), size in zip(self.avals, self.sizes, strict=True):
            part = fnp.reshape(vector[start : start + size], shape) if shape else vector[start]  # a number stays one
            leaves.append(part if backend.dtype_of(part) == dtype else part.astype(dtype))
            start += size
        return tree.unflatten(self.spec, leaves)


def dense_solve(matvec: Callable[[Any], Any], b: PyTree) -> PyTree:
    """Solve ``matvec(x) = b`` by forming the matrix: exact, for systems of up to a few thousand unknowns.

    Args:
        matvec: a linear function of a tree like ``b`` that returns such a tree.
        b: the right-hand side.

    Raises:
        numpy.linalg.LinAlgError: the matrix is singular.

    Example:
        >>> from funcgrad.transforms import dense_solve
        >>> dense_solve(lambda x: np.array([[2.0, 0.0], [1.0, 4.0]]) @ x, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    flat = _VectorConversion(b)
    basis = flat.xp.eye(sum(flat.sizes), dtype=flat.dtype)
    matrix = vmap(lambda e: flat.vector(matvec(flat.tree(e))), out_axes=1)(basis)
    return flat.tree(_solve(matrix, flat.vector(b)))


def newton(f: Callable[[Any], Any], x0: PyTree, *, tol: float | None = None, maxiter: int = 50) -> PyTree:
    """Find a root of ``f`` near ``x0`` by Newton's method.

    Args:
        f: a function of a tree that returns a tree of the same structure and shapes.
        x0: the starting point.
        tol: the largest last step, relative to 1 plus the largest entry of the root; None for ``eps**0.75``.
        maxiter: the largest number of steps.

    Raises:
        ArithmeticError: no convergence.
        numpy.linalg.LinAlgError: the Jacobian of ``f`` is singular at a point on the way.

    Example:
        >>> from funcgrad.transforms import newton
        >>> newton(lambda x: x * x - 2.0, 1.0).round(6)
        np.float64(1.414214)
    """

    def step(x: PyTree) -> tuple[PyTree, PyTree]:
        try:
            change = dense_solve(lambda v: jvp(f, (x,), (v,))[1], f(x))
        except np.linalg.LinAlgError as error:
            error.add_note("newton: the Jacobian is singular at a point on the way. Begin at another point.")
            raise
        return tree.map(operator.sub, x, change), change

    return _iterate("newton", "a step", step, x0, tol, maxiter)


def picard(g: Callable[[Any], Any], x0: PyTree, *, tol: float | None = None, maxiter: int = 1000) -> PyTree:
    """Find a fixed point of ``g`` by plain iteration, for contractions.

    Args:
        g: a function of a tree that returns a tree of the same structure and shapes.
        x0: the starting point.
        tol: the largest last step, relative to 1 plus the largest entry of the fixed point; None for ``eps**0.75``.
        maxiter: the largest number of steps.

    Raises:
        ArithmeticError: no convergence.

    Example:
        >>> from funcgrad.transforms import picard
        >>> picard(np.cos, 1.0).round(6)
        np.float64(0.739085)
    """

    def step(x: PyTree) -> tuple[PyTree, PyTree]:
        new = g(x)
        return new, tree.map(operator.sub, new, x)

    return _iterate("picard", "a step", step, x0, tol, maxiter)


def anderson(
    g: Callable[[Any], Any], x0: PyTree, *, memory: int = 5, tol: float | None = None, maxiter: int = 200
) -> PyTree:
    """Find a fixed point of ``g`` by Anderson's accelerated iteration.

    Each step mixes the last iterates so that the residual is smallest. (D. G. Anderson, Iterative procedures
    for nonlinear integral equations, 1965; in the form of Walker and Ni, 2011.) Arguments and errors as for ``picard``.

    Args:
        memory: how many iterates are mixed.
        tol: the largest last residual, relative to 1 plus the largest entry of the fixed point; None for ``eps**0.75``.

    Example:
        >>> from funcgrad.transforms import anderson
        >>> anderson(np.cos, 1.0).round(6)
        np.float64(0.739085)
    """
    flat = _VectorConversion(x0)
    points: list[Any] = []
    residuals: list[Any] = []

    def step(x: Any) -> tuple[Any, Any]:
        if points:
            x = x + residuals[-1]
        if len(points) > 1:
            x = x - _anderson_correction(flat, points, residuals)
        residual = flat.vector(g(flat.tree(x))) - x
        points[:], residuals[:] = [*points, x][-memory - 1 :], [*residuals, residual][-memory - 1 :]
        return x, residual

    x = _iterate("anderson", "a residual", step, flat.vector(x0), tol, maxiter)
    return flat.tree(x + residuals[-1])


def _anderson_correction(flat: _VectorConversion, points: list[Any], residuals: list[Any]) -> Any:
    """Return the correction that the earlier iterates subtract from the plain step, by least squares."""
    moved = fnp.stack([b - a for a, b in pairwise(points)])
    changed = fnp.stack([b - a for a, b in pairwise(residuals)])
    gram = changed @ changed.T
    info = np.finfo(flat.dtype)
    # Near the end the changes are nearly parallel, or all zero where an example of a batch has converged.
    ridge = fnp.trace(gram) * float(info.eps) * 10 + float(info.tiny)
    weights = _solve(gram + ridge * np.eye(len(points) - 1, dtype=flat.dtype), changed @ residuals[-1])
    return weights @ (moved + changed)


def _iterate(
    call: str, what: str, step: Callable[[PyTree], tuple[PyTree, PyTree]], x: PyTree, tol: float | None, maxiter: int
) -> PyTree:
    """Repeat ``x, change = step(x)`` until ``change`` is small for all examples of every enclosing ``vmap``."""
    flat, size = _VectorConversion(x), np.nan
    tol = float(np.finfo(flat.dtype).eps) ** 0.75 if tol is None else tol
    for _ in range(maxiter):
        x, change = step(x)
        largest, scale = [fnp.max(fnp.abs(flat.vector(v)), initial=0.0) for v in (change, x)]
        size = largest / (1 + scale)
        if not is_true_for_any_example(fnp.logical_not(size <= tol)):  # of NaN, no comparison is true
            return x
    raise ConvergenceError(
        f"{call}: no convergence after {maxiter} steps, got {what} of relative size {np.max(plain_value(size)):.1e}. "
        "Begin nearer to the solution, or allow more steps or a larger tol."
    )


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
        matvec: a linear function of a tree like ``b``, returning such a tree. It may close over traced values; the
            solution has derivatives with respect to them.
        b: the right-hand side, a tree of arrays.
        solve: ``solve(matvec, b)`` returns the solution; it sees plain values and may be any Python. Inside ``vmap`` it
            gets whole batches first, and if it does not take them, one example after the other.
        transpose_solve: a solver like ``solve`` for the transposed system, which reverse mode needs; it gets the
            transpose of ``matvec``.
        symmetric: whether the system is its own transpose, so that ``solve`` solves both.
        has_aux: whether the solvers return a pair ``(solution, aux)``; aux is a tree of arrays.

    Returns:
        The solution, or ``(solution, aux)`` with ``has_aux=True``; aux is a constant.

    Raises:
        TypeError: a leaf that is not an array; ``matvec`` or ``solve`` returns another structure; reverse mode
            without ``transpose_solve``.
        ValueError: ``matvec`` or ``solve`` returns another shape.

    Example:
        >>> from funcgrad import custom_linear_solve, grad
        >>> a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0])
        >>> solve = lambda matvec, b: np.linalg.solve(a, b)
        >>> grad(lambda b: custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True)[0])(b)
        array([ 0.4, -0.2])
    """
    check_callable("custom_linear_solve", matvec)
    check_functions("custom_linear_solve", solve=solve)
    _check_arrays("custom_linear_solve", "b", b)
    system = _LinearSystem(matvec, b, solve, solve if symmetric else transpose_solve, symmetric, has_aux)
    outs = system.call(*tree.leaves(b), *system.captured)
    x = system.unknown(outs)
    return (x, tree.unflatten(system.aux_spec, outs[system.count :])) if has_aux else x


class _Equation:
    """Operation on the leaves of the unknown of an equation, followed by the values that the equation closes over.

    Attributes:
        apply: the function of the equation, of a tree like the unknown and of the values that it closes over.
        captured: these values.
        count: the number of leaves of the unknown.
        gathered: the traces of ``vmap``s over whose examples the equation combines values of the unknown.
        outs: the values of its function, where there are such traces.
    """

    def __init__(self, call: str, what: str, fun: Callable[[Any], Any], x: PyTree) -> None:
        closure = RecordedClosure(call, fun, x)
        self.apply: Callable[[Any, Any], Any] = closure
        self.captured, self.name = closure.captured, f"{call} of {name_of(fun)}"
        leaves, self.spec = tree.flatten(x)
        self.gathered = _gathered_axes(closure, len(leaves))
        self.outs = closure.outs if self.gathered else []
        self.count, self.avals = len(leaves), list(map(backend.shape_and_dtype_of, leaves))
        _check_avals(f"{call}: {what}", closure.outs, closure.out_spec, self.avals, self.spec)

    def call(self, *leaves: Any) -> list[Any]:
        """Return the leaves of the unknown that solves the equation, and the leaves of aux."""
        return list(custom_call(*leaves, rules=CustomRules(self.name, self.run, self.fwd, self.bwd, self.jvp_rule)))

    def unknown(self, leaves: Sequence[Any]) -> PyTree:
        """Return the unknown, whose leaves come first among ``leaves``."""
        return tree.unflatten(self.spec, leaves[: self.count])

    def run(self, *leaves: Any) -> list[Any]:
        raise NotImplementedError

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        """Return the results, and the residuals for the backward pass: the unknown and the captured values."""
        outs = self.call(*leaves)
        return outs, (outs[: self.count], list(leaves[self.count :]))

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        raise NotImplementedError

    def jvp_rule(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        raise NotImplementedError

    def captured_cotangents(self, x: PyTree, captured: list[Any], ct: PyTree) -> list[Any]:
        """Return the cotangents of the ``captured`` values, for minus ``ct``; None for values without a derivative."""
        live = [backend.is_inexact(value) for value in captured]
        if not any(live):
            return [None] * len(captured)
        pulled = vjp(lambda values: self.apply(x, values), captured)[1](tree.map(operator.neg, ct))[0]
        return [c if flag else None for c, flag in zip(pulled, live, strict=True)]

    def captured_tangent(self, x: PyTree, captured: list[Any], tangents: Sequence[Any]) -> PyTree:
        """Return the tangent for the tangents of the ``captured`` values; None if none of them can have one."""
        if not any(backend.is_inexact(value) for value in captured):
            return None
        return jvp(lambda values: self.apply(x, values), (captured,), (list(tangents),))[1]

    def refuse_coupling(self, leaves: Sequence[Any]) -> None:
        """Refuse equations of the examples of a ``vmap`` that depend on each other. ``leaves`` belong to the unknown.

        An unknown that is the same in all examples couples nothing, until a backward pass gives it one cotangent in
        each of them.
        """
        mapped = set(traces_of([*leaves, *self.outs]))
        if any(over in mapped or not (over.open or join_repetition(over.level)) for over in self.gathered):
            raise NotDifferentiableError(
                f"{self.name}: the equation of each example of the vmap contains the unknowns of the other examples, "
                "got a collective of the unknown, such as psum. Solve one equation for all examples, outside of the "
                "vmap."
            )


def _gathered_axes(closure: RecordedClosure, count: int) -> set[BatchTrace]:
    """Return the ``vmap``s over whose examples ``closure`` combines values of its first ``count`` leaves."""
    moving, found = set(closure.recording.inputs[:count]), set()
    for step in closure.recording.operations:
        if not moving.isdisjoint(step.args):
            moving.update(step.outs)
            if (over := step.params.get("over")) is not None:
                found.add(over)
    return found


class _LinearSystem(_Equation):
    """Linear system: its unknown is solved for in place of the right-hand side, whose leaves the operation takes."""

    def __init__(
        self,
        matvec: Callable[[Any], Any],
        b: PyTree,
        solve: Solve,
        transpose_solve: Solve | None,
        symmetric: bool,
        has_aux: bool,
    ) -> None:
        super().__init__("custom_linear_solve", "matvec", matvec, tree.map(backend.zeros_like, b))
        self.solve, self.transpose_solve = solve, transpose_solve
        self.symmetric, self.has_aux = symmetric, has_aux
        self.aux_spec: Any = None

    def transposed_system(self) -> _LinearSystem:
        """Return the system with the transposed function."""
        if self.transpose_solve is None:
            raise NotDifferentiableError(
                f"{self.name}: reverse mode solves the transposed system, got no transpose_solve. Give one, or "
                "symmetric=True."
            )
        if self.symmetric:
            return self
        other = copy.copy(self)
        other.apply = lambda u, captured: _transposed_derivative(
            lambda x: self.apply(x, captured), tree.map(backend.zeros_like, u), u
        )
        other.solve, other.transpose_solve = self.transpose_solve, self.solve
        return other

    def run(self, *leaves: Any) -> list[Any]:
        """Return the solution, computed by the solver."""
        self.refuse_coupling(leaves[: self.count])
        outs: list[Any] = no_grad(example_by_example)(self._run, leaves)
        # a batch of no examples gives no results: the solution is as empty as the right-hand side
        return outs or list(leaves[: self.count])

    def _run(self, *leaves: Any) -> list[Any]:
        captured = leaves[self.count :]
        x, aux = self.solve(lambda v: self.apply(v, captured), self.unknown(leaves)), None
        if self.has_aux:
            x, aux = split_aux("custom_linear_solve", x)
        found, spec = tree.flatten(x)
        _check_avals("custom_linear_solve: solve", found, spec, self.avals, self.spec)
        others, self.aux_spec = tree.flatten(aux)
        return [*found, *others]

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """Solve the transposed system for the cotangent of ``b``, and derive those of the captured values."""
        outs, captured = residuals
        z = self.transposed_system().call(*cts[: self.count], *captured)[: self.count]
        return [*z, *self.captured_cotangents(self.unknown(outs), captured, self.unknown(z))]

    def jvp_rule(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Solve the same system for the tangent."""
        outs, captured, rhs = self.call(*leaves), list(leaves[self.count :]), self.unknown(tangents)
        moved = self.captured_tangent(self.unknown(outs), captured, tangents[self.count :])
        if moved is not None:
            rhs = tree.map(operator.sub, rhs, moved)
        pushed = self.call(*tree.leaves(rhs), *captured)[: self.count]
        return outs, [*pushed, *[None] * (len(outs) - self.count)]


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: PyTree,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Solve = dense_solve,
    has_aux: bool = False,
    transpose_solve: Solve | None = None,
) -> PyTree:
    """Find a root of ``f`` with any solver; its derivative follows from the implicit function theorem.

    Args:
        f: a function of a tree that returns a tree of the same structure, shapes and dtypes. The root has derivatives
            with respect to the values that ``f`` closes over.
        initial_guess: the point where the solver begins; the root does not depend on it.
        solve: ``solve(f, initial_guess)`` returns the root, as ``newton`` does; it sees plain values and may be any
            Python. Inside ``vmap`` it gets whole batches first, and if it does not take them, one example after the
            other.
        tangent_solve: ``tangent_solve(g, y)`` solves ``g(x) = y`` for a linear function ``g``: the derivative of
            ``f`` at the root and, in reverse mode, its transpose.
        has_aux: whether ``solve`` returns a pair ``(root, aux)``; aux is any tree, and a constant.
        transpose_solve: the solver for the transpose, if ``tangent_solve`` cannot solve it.

    Returns:
        The root, or ``(root, aux)`` with ``has_aux=True``.

    Raises:
        TypeError: a leaf that is not an array; ``f`` or a solver returns another structure.
        ValueError: ``f`` or a solver returns another shape.
        ArithmeticError: the answer of a tangent solver does not solve its system.

    Example:
        >>> from funcgrad import custom_root, grad
        >>> from funcgrad.transforms import newton
        >>> root = lambda a: custom_root(lambda x: x**3 - a, 2.0, newton)
        >>> round(float(grad(root)(8.0)), 12), round(1 / 12, 12)
        (0.083333333333, 0.083333333333)
    """
    check_callable("custom_root", f)
    check_functions("custom_root", solve=solve, tangent_solve=tangent_solve)
    _check_arrays("custom_root", "initial_guess", initial_guess)
    f = isolated(f) if is_in_transform() and not is_own(f) else f
    found, aux = _run_solver(f, initial_guess, solve), None
    if has_aux:
        found, aux = split_aux("custom_root", found)
    _check_arrays("custom_root", "the root", found)
    solvers = (_with_residual_check(tangent_solve), _with_residual_check(transpose_solve or tangent_solve))
    root = _Root(f, found, *solvers)
    x = root.unknown(root.call(*tree.leaves(found), *root.captured))
    settle(f, x)
    return (x, aux) if has_aux else x


@no_grad
def _run_solver(f: Callable[[Any], Any], guess: PyTree, solve: Callable[[Callable[[Any], Any], Any], Any]) -> Any:
    """Return ``solve(f, guess)`` as a constant. A solver that takes only plain values becomes an operation.

    A ``vmap`` then runs the solver for one example after the other, and a graph records the operation. The solver may
    close over no batched value besides ``f``.
    """
    try:
        return solve(f, guess)
    except (ConcretizationError, NotDifferentiableError):
        forget_refusal()
        closure = RecordedClosure("custom_root", f, guess, checks_branches=True)
        leaves, spec = tree.flatten(guess)
        count, out_spec = len(leaves), spec

        def run(xp: Any, *values: Any) -> Any:
            nonlocal out_spec
            found = solve(lambda x: closure(x, values[count:]), tree.unflatten(spec, values[:count]))
            outs, out_spec = tree.flatten(found)
            return tuple(outs)

        def batch(size: int, args: Any, batched: Any, params: Any) -> Any:
            if size:
                return one_by_one(size, args, batched, params)
            outs = tree.leaves(guess)
            return tuple([np.zeros((0, *backend.shape_of(x)), backend.dtype_of(x)) for x in outs]), True

        operation = nondifferentiable("custom_root", run, batch=batch, multiple=True)
        one_by_one = batch_rule("loop", lambda: operation)
        outs = operation(*stop_gradient([*leaves, *closure.captured]))
        return tree.unflatten(out_spec, list(outs))


class _Root(_Equation):
    """Equation whose root is known: the operation returns it, and only its rules express what it depends on."""

    def __init__(self, f: Callable[[Any], Any], x: PyTree, tangent_solve: Solve, transpose_solve: Solve) -> None:
        super().__init__("custom_root", "f", f, x)
        self.tangent_solve, self.transpose_solve = tangent_solve, transpose_solve

    def run(self, *leaves: Any) -> list[Any]:
        """Return the root."""
        return list(leaves[: self.count])

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """Solve one transposed linear system for the cotangents."""
        self.refuse_coupling(cts)
        outs, captured = residuals
        x = self.unknown(outs)
        z = custom_linear_solve(
            lambda u: _transposed_derivative(lambda v: self.apply(v, captured), x, u),
            self.unknown(cts),
            self.transpose_solve,
            self.tangent_solve,
        )
        return [*[None] * self.count, *self.captured_cotangents(x, captured, z)]

    def jvp_rule(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Solve one linear system for the tangent."""
        self.refuse_coupling(leaves[: self.count])
        outs, captured = self.call(*leaves), list(leaves[self.count :])
        x = self.unknown(outs)
        moved = self.captured_tangent(x, captured, tangents[self.count :])
        if moved is None:
            return outs, [None] * self.count
        step = custom_linear_solve(
            lambda v: jvp(lambda u: self.apply(u, captured), (x,), (v,))[1],
            moved,
            self.tangent_solve,
            self.transpose_solve,
        )
        return outs, [-leaf for leaf in tree.leaves(step)]


def fixed_point(
    f: Callable[..., Any],
    x0: PyTree,
    *params: PyTree,
    solver: Callable[[Callable[[Any], Any], Any], Any] = anderson,
    tangent_solve: Solve = dense_solve,
) -> PyTree:
    """Find the ``x`` with ``x = f(x, *params)``; its derivative follows from that equation, not from the iteration.

    Args:
        f: a function of a tree and of parameters that returns a tree like its first argument.
        x0: the point where the solver begins; the fixed point does not depend on it.
        params: trees. Values that ``f`` closes over are parameters as well.
        solver: ``solver(g, x0)`` finds the fixed point of ``g``: ``anderson``, ``picard``, or your own.
        tangent_solve: see ``custom_root``.

    Returns:
        The fixed point, a tree like ``x0``.

    Raises:
        ArithmeticError: the solver does not converge.
        TypeError, ValueError: as ``custom_root``.

    Example:
        >>> from funcgrad import fixed_point, grad
        >>> heron = lambda x, a: 0.5 * (x + a / x)
        >>> root = lambda a: fixed_point(heron, 1.0, a)
        >>> float(np.round(root(9.0), 12)), float(np.round(grad(root)(9.0), 12))
        (3.0, 0.166666666667)
    """
    check_callable("fixed_point", f)
    f = isolated(f, params) if is_in_transform() else f
    check_functions("fixed_point", solver=solver)

    def residual(x: Any) -> Any:
        return run_or_rebuild(f, lambda f: tree.map(operator.sub, f(x, *params), x))

    found = custom_root(residual, x0, lambda _, start: solver(lambda x: f(x, *params), start), tangent_solve)
    settle(f, found, *params)
    return found


def _transposed_derivative(fun: Callable[[Any], Any], x: PyTree, ct: PyTree) -> PyTree:
    """Return the transposed derivative of ``fun`` at ``x``, times ``ct``."""
    return vjp(fun, x)[1](ct)[0]


def _with_residual_check(solve: Solve) -> Solve:
    """Return ``solve`` with a check that its answer solves the system: the solver may not fit the transpose."""

    def checked(matvec: Callable[[Any], Any], b: PyTree) -> PyTree:
        x = solve(matvec, b)
        rest, whole = _norm(tree.map(operator.sub, matvec(x), b)), _norm(b)
        if rest is not None and whole is not None and is_true_for_any_example(rest > 0.01 * whole):
            ratio = np.max(plain_value(rest / whole))
            raise ConvergenceError(
                f"custom_root: {name_of(solve)} does not solve the system that the derivative needs, got a residual of "
                f"{ratio:.0e}. It is called with the derivative of f at the root and, in reverse mode, with its "
                "transpose, for which transpose_solve may be another solver."
            )
        return x

    checked.__name__ = name_of(solve)
    return checked


def _norm(x: PyTree) -> Any:
    """Return the Euclidean norm of all leaves together, of all examples of a batch; None if a leaf is not NumPy's."""
    total: Any = 0.0
    for leaf in map(_of_all_examples, stop_gradient(tree.leaves(x))):
        if backend.namespace_of(plain_value(leaf)) is not np:
            return None
        total = total + fnp.sum(fnp.abs(leaf) ** 2)
    return fnp.sqrt(total)


def _of_all_examples(x: Any) -> Any:
    while is_batched(x):
        x = x._val
    return x


def _check_arrays(call: str, what: str, x: PyTree) -> None:
    paths, leaves, _ = tree.flatten_with_path(x)
    for path, leaf in zip(paths, leaves, strict=True):
        check_leaf(call, leaf, lambda path=path: f"{what}{path}")
        if not backend.is_inexact(leaf):
            raise InputError(
                f"{call}: {what}{path} must be floating or complex, got {describe(leaf)}. Convert it with astype."
            )


def _check_avals(what: str, leaves: list[Any], spec: Any, avals: list[Any], expected: Any) -> None:
    """Check that the leaves have the structure, shapes and dtypes of the unknown."""
    if spec != expected:
        raise InputError(
            f"{what} must return a tree like the unknown, got {tree.drawn(spec)}, expected {tree.drawn(expected)}."
        )
    for leaf, (shape, dtype) in zip(leaves, avals, strict=True):
        if backend.shape_of(leaf) != shape:
            raise ShapeError(
                f"{what} must return arrays like the unknown, got shape {backend.shape_of(leaf)}, expected {shape}."
            )
        if backend.dtype_of(leaf) != dtype:
            raise InputError(
                f"{what} must return arrays like the unknown, got dtype {backend.dtype_of(leaf)}, expected {dtype}."
            )
