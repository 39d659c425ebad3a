"""SciPy's optimisers on trees of parameters, with exact derivatives in place of finite differences.

SciPy receives exact gradients, Hessian-vector products and Jacobians. SciPy works on one vector of double
precision; the functions and the caller see trees with the structure, shapes and dtypes of the first guess.
SciPy is needed only when one of these functions is called; it comes with ``funcgrad[scipy]``.

Example:
    >>> from funcgrad.interop.scipy import minimize
    >>> found = minimize(lambda p: (p["a"] - 1.0) ** 2 + (p["b"] + 2.0) ** 2, {"a": 0.0, "b": 0.0})
    >>> {name: round(float(x), 6) for name, x in found.x.items()}
    {'a': 1.0, 'b': -2.0}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.errors import InputError
from funcgrad.interop.scipy.boxes import as_list, to_bounds, to_constraints, to_x_scale
from funcgrad.interop.scipy.objectives import Layout, Objective, VectorFunction, elementwise_loss, require_concrete
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import (
    GRADIENT_FREE_METHODS,
    HESSIAN_METHODS,
    HVP_METHODS,
    JACOBIAN_METHODS,
    default_method,
)
from funcgrad.transforms.transformed import check_callable, name_of
from funcgrad.typing import PyTree

__all__ = ["hessian_operator", "jacobian_operator", "least_squares", "minimize", "root", "root_scalar"]


def minimize(
    fun: Callable[..., Any],
    params: PyTree,
    args: Any = (),
    method: Any = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    has_aux: bool = False,
) -> Any:
    """Find a minimum of ``fun`` near ``params``, by ``scipy.optimize.minimize`` with exact derivatives.

    Every method that uses gradients receives them. Newton-CG, trust-ncg, trust-krylov and trust-constr receive
    Hessian-vector products; dogleg and trust-exact receive Hessians.

    Args:
        fun: ``fun(params, *args)`` returns one real number.
        params: the first guess: an array, a number, or a tree of them, real or complex.
        args: further arguments, which are constants; a tuple, or a single argument.
        method: name of a method of SciPy, by default L-BFGS-B with bounds, SLSQP with constraints, else BFGS; or a
            function as SciPy takes it.
        bounds: a tree like ``params`` with a pair ``(lower, upper)`` for each leaf, or None for an unbounded leaf. A
            side is a number, an array that broadcasts to the leaf, or None for no bound. Other forms: one pair of
            numbers for all leaves; a ``scipy.optimize.Bounds``. For a single array in place of a tree: one of these
            other forms, or SciPy's sequence with a pair for each number.
        constraints: one constraint of SciPy or several: dictionaries or ``NonlinearConstraint`` with functions of the
            tree, whose Jacobians SciPy receives as well, and ``LinearConstraint`` with a column for each number of
            ``params``, in the order of the leaves.
        tol: SciPy's tolerance.
        callback: function called after each iteration with the tree, or, if its only parameter is named
            ``intermediate_result``, with a result that holds the tree. ``StopIteration`` ends the search.
        options: SciPy's options for the method.
        has_aux: whether ``fun`` returns a pair ``(value, aux)``; the result then has ``aux`` at the minimum.

    Returns:
        SciPy's ``OptimizeResult``. ``x`` and the gradient, ``jac`` (``grad`` for trust-constr), are trees like
        ``params``, with its dtypes; everything else is SciPy's. The answer has no derivative: to differentiate it, see
        ``funcgrad.custom_root``.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
        InputError: a leaf or a result is not a floating number, or bounds do not fit (a ``TypeError``).
        NotDifferentiableError: a value that is being differentiated or batched is involved (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.scipy import minimize
        >>> def rosenbrock(x):
        ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
        >>> found = minimize(rosenbrock, np.array([1.3, 0.7, 0.8]), method="trust-ncg")
        >>> found.success, found.x.round(4)
        (True, array([1., 1., 1.]))
    """
    optimize = import_scipy("minimize")
    layout, args = _check_arguments("minimize", "params", fun, params, args)
    objective = Objective("minimize", fun, layout, args, has_aux=has_aux)
    kind = default_method(method, bounds, as_list(constraints))
    given: dict[str, Any] = {}
    if kind in HESSIAN_METHODS:
        given["hess"] = objective.hessian
    if kind in HVP_METHODS or not kind:
        given["hessp"] = objective.product
    result = optimize.minimize(
        objective.value if kind in GRADIENT_FREE_METHODS else objective.value_and_gradient,
        layout.vector(params),
        jac=None if kind in GRADIENT_FREE_METHODS else True,
        method=method,
        bounds=to_bounds("minimize", optimize, layout, bounds),
        constraints=to_constraints(optimize, constraints, layout, params, second=kind == "trust-constr"),
        tol=tol,
        callback=_with_trees(callback, layout),
        options=options,
        **given,
    )
    _vectors_to_trees(result, layout)
    if has_aux:
        result.aux = objective.aux(result.x)
    return result


def root(
    fun: Callable[..., Any],
    params: PyTree,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of ``fun`` near ``params``, by ``scipy.optimize.root``; hybr and lm receive exact Jacobians.

    Args:
        fun: ``fun(params, *args)`` returns an array or a tree with as many numbers as ``params`` has. With lm,
            which finds the smallest sum of squares, the result may have more numbers.
        params: the first guess, an array, a number, or a tree of them.
        args: further arguments, which are constants; a tuple, or a single argument.
        method: name of a method of SciPy.
        tol: SciPy's tolerance.
        callback: for the methods that take one; called with the trees of the point and of ``fun`` at the point.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``OptimizeResult``, with ``x`` a tree like ``params`` and ``fun`` a tree like the function's result.
        No derivative flows through it; for that, give ``lambda f, x: root(f, x).x`` to ``funcgrad.custom_root``.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
        InputError: a leaf is not a floating number, or the counts of numbers differ (a ``TypeError``).
        NotDifferentiableError: a value that is being differentiated or batched is involved (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.scipy import root
        >>> found = root(lambda p: (p["x"] + p["y"] - 3.0, p["x"] * p["y"] - 2.0), {"x": 3.0, "y": 0.0})
        >>> {name: round(float(v), 6) for name, v in found.x.items()}
        {'x': 2.0, 'y': 1.0}
    """
    optimize = import_scipy("root")
    layout, args = _check_arguments("root", "params", fun, params, args)
    system = VectorFunction("root", fun, layout, args, params)
    if system.out.size != layout.size and method != "lm":
        raise InputError(
            f"root: {name_of(fun)} must give as many numbers as params has, got {system.out.size} for {layout.size}. "
            "Use least_squares where there are more equations than unknowns."
        )
    result = optimize.root(
        system,
        layout.vector(params),
        jac=system.jacobian if method in JACOBIAN_METHODS else None,
        method=method,
        tol=tol,
        callback=None if callback is None else lambda x, f: callback(layout.tree(x), system.out.tree(np.asarray(f))),
        options=options,
    )
    result.x, result.fun = layout.tree(result.x), system.out.tree(np.asarray(result.fun))
    return result


def root_scalar(
    fun: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    *,
    bracket: Any = None,
    x0: float | None = None,
    x1: float | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of one number, by ``scipy.optimize.root_scalar`` with exact derivatives.

    Args:
        fun: ``fun(x, *args)`` returns one real number.
        args: further arguments, which are constants; a tuple, or a single argument.
        method: name of a method of SciPy; by default brentq with a bracket, secant with two guesses, newton with one.
            newton receives the derivative, halley the second derivative as well.
        bracket: two numbers where ``fun`` has different signs.
        x0: the first guess.
        x1: a second guess.
        xtol: SciPy's absolute tolerance.
        rtol: SciPy's relative tolerance.
        maxiter: the largest number of iterations.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``RootResults``. No derivative flows through the result, see ``root``.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
        InputError: a result of ``fun`` is not one real number (a ``TypeError``).
        NotDifferentiableError: a value that is being differentiated or batched is involved (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.scipy import root_scalar
        >>> root_scalar(lambda x, a: x**3 - a, 8.0, x0=1.0, method="halley").iterations
        5
    """
    optimize = import_scipy("root_scalar")
    x0, x1, bracket = [
        require_concrete("root_scalar", *each) for each in (("x0", x0), ("x1", x1), ("bracket", bracket))
    ]
    layout, args = _check_arguments("root_scalar", "x0", fun, 0.0 if x0 is None else float(x0), args)
    if method is None and x0 is not None and x1 is None and bracket is None:
        method = "newton"
    objective = Objective("root_scalar", fun, layout, args, has_aux=False)
    orders = {"newton": 1, "halley": 2}.get(str(method).lower(), 0)

    def at(x: float) -> Any:
        point = np.array([x], float)
        if not orders:
            return objective.value(point)
        value, slope = objective.value_and_gradient(point)
        return (value, slope[0]) if orders == 1 else (value, slope[0], objective.hessian(point)[0, 0])

    return optimize.root_scalar(
        at,
        method=method,
        bracket=bracket,
        fprime=orders > 0 or None,
        fprime2=orders > 1 or None,
        x0=x0,
        x1=x1,
        xtol=xtol,
        rtol=rtol,
        maxiter=maxiter,
        options=options,
    )


def least_squares(
    fun: Callable[..., Any],
    params: PyTree,
    args: Any = (),
    *,
    bounds: Any = None,
    method: str = "trf",
    loss: Any = "linear",
    jac: str = "auto",
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """Find the smallest sum of squared residuals near ``params``, by SciPy's ``least_squares`` with exact Jacobians.

    Args:
        fun: ``fun(params, *args)`` returns the residuals, an array or a tree. The real and the imaginary part of a
            complex residual count as two residuals.
        params: the first guess, an array, a number, or a tree of them.
        args: further arguments, which are constants; a tuple, or a single argument.
        bounds: as for ``minimize``; for a single array also SciPy's pair of arrays.
        method: name of a method of SciPy.
        loss: name of a loss of SciPy, or a function that maps squared residuals to their contributions. The function
            is applied elementwise to an array and differentiated. A function in SciPy's form, which returns the
            derivatives as well in an array of three rows, is accepted too.
        jac: ``"forward"`` or ``"reverse"`` for the mode that computes the Jacobian; ``"auto"`` takes the mode with
            fewer columns or rows to compute. ``"operator"`` computes no matrix: SciPy receives products with the
            Jacobian, for very many residuals and parameters; the method must be trf or dogbox.
        callback: function called after each iteration, as for ``minimize``; needs SciPy 1.16.
        options: SciPy's other arguments; ``x_scale`` may be a tree like ``params``.

    Returns:
        SciPy's ``OptimizeResult``, with ``x`` and ``grad`` trees like ``params`` and ``fun`` a tree like the
        residuals. ``jac`` is the matrix, with rows and columns in the order of the leaves.
        The answer has no derivative: to differentiate it, see ``funcgrad.custom_root``.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
        InputError: a leaf or a result is not a floating number, or bounds do not fit (a ``TypeError``).
        NotDifferentiableError: a value that is being differentiated or batched is involved (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.scipy import least_squares
        >>> t = np.linspace(0.0, 1.0, 20)
        >>> decay = lambda p, t: p["height"] * np.exp(-p["rate"] * t)
        >>> y = decay({"height": 2.0, "rate": 3.0}, t)
        >>> found = least_squares(lambda p, t: decay(p, t) - y, {"height": 1.0, "rate": 1.0}, t)
        >>> {name: round(float(v), 6) for name, v in found.x.items()}
        {'height': 2.0, 'rate': 3.0}
    """
    optimize = import_scipy("least_squares")
    layout, args = _check_arguments("least_squares", "params", fun, params, args)
    if jac not in ("auto", "forward", "reverse", "operator"):
        raise InputError(
            f"least_squares: jac must be 'auto', 'forward', 'reverse' or 'operator', got {jac!r}. The Jacobian comes "
            "from the residuals: leave jac out."
        )
    residuals = VectorFunction("least_squares", fun, layout, args, params, jac)
    if callback is not None:
        options["callback"] = _with_trees(callback, layout)
    if "x_scale" in options:
        options["x_scale"] = to_x_scale("least_squares", layout, options["x_scale"])
    if bounds is not None:
        options["bounds"] = to_bounds("least_squares", optimize, layout, bounds)
    result = optimize.least_squares(
        residuals,
        layout.vector(params),
        jac=residuals.operator if jac == "operator" else residuals.jacobian,
        method=method,
        loss=elementwise_loss(loss) if callable(loss) else loss,
        **options,
    )
    result.x, result.grad = layout.tree(result.x), layout.tree(result.grad, gradient=True)
    result.fun = residuals.out.tree(result.fun)
    return result


def jacobian_operator(fun: Callable[..., Any], params: PyTree, *args: Any) -> Any:
    """Return the Jacobian of ``fun`` at ``params`` as a ``scipy.sparse.linalg.LinearOperator``, without a matrix.

    Args:
        fun: ``fun(params, *args)`` returns an array or a tree.
        params: the point: an array, a number, or a tree of them.
        args: further arguments, which are passed on unchanged.

    Returns:
        An operator with a row for each number of the result and a column for each number of ``params``, in the
        order of the leaves. ``fun`` runs twice; products do not run its Python code.

    Raises:
        MissingExtraError: SciPy is not installed (an ``ImportError``).
        InputError: a leaf is not a floating number (a ``TypeError``).

    Example:
        >>> from funcgrad.interop.scipy import jacobian_operator
        >>> jacobian = jacobian_operator(np.cumsum, np.ones(3))
        >>> jacobian @ np.array([1.0, 0.0, 2.0]), jacobian.T @ np.ones(3)
        (array([1., 1., 3.]), array([3., 2., 1.]))
    """
    layout, args = _check_arguments("jacobian_operator", "params", fun, params, args)
    residuals = VectorFunction("jacobian_operator", fun, layout, args, params)
    return residuals.operator(layout.vector(params))


def hessian_operator(fun: Callable[..., Any], params: PyTree, *args: Any) -> Any:
    """Return the Hessian of a scalar ``fun`` at ``params`` as a ``scipy.sparse.linalg.LinearOperator``.

    ``hessian_operator`` takes the arguments of ``jacobian_operator``, and raises the same errors.

    Example:
        >>> from scipy.sparse.linalg import cg
        >>> from funcgrad.interop.scipy import hessian_operator
        >>> curvature = hessian_operator(lambda x: np.sum(x**4), np.array([1.0, 2.0]))
        >>> cg(curvature, np.array([12.0, 96.0]))[0].round(6)
        array([1., 2.])
    """
    linalg = import_scipy("hessian_operator", "scipy.sparse.linalg")
    layout, args = _check_arguments("hessian_operator", "params", fun, params, args)
    objective = Objective("hessian_operator", fun, layout, args, has_aux=False)
    point = layout.vector(params)

    def product(direction: Any) -> Any:
        return objective.product(point, np.ravel(direction))

    return linalg.LinearOperator((layout.size, layout.size), matvec=product, rmatvec=product, dtype=np.float64)


def _check_arguments(call: str, what: str, fun: Any, params: PyTree, args: Any) -> tuple[Layout, tuple[Any, ...]]:
    """Check the arguments of a call; return the layout of the parameters, and ``args`` as a tuple of plain values."""
    check_callable(call, fun)
    args = args if isinstance(args, tuple) else (args,)
    args = require_concrete(call, "args", args)
    layout = Layout(call, what, params)
    if not layout.size:
        raise InputError(f"{call}: there are no unknowns, got {what} without numbers. Pass floating arrays.")
    return layout, args


def _vectors_to_trees(result: Any, layout: Layout) -> None:
    """Replace SciPy's vectors in ``result`` by trees if they have the size of the parameters."""
    result.x = layout.tree(np.asarray(result.x))
    for name in ("jac", "grad"):  # with trust-constr, jac holds the Jacobians of the constraints
        if isinstance(vector := result.get(name), np.ndarray) and vector.shape == (layout.size,):
            result[name] = layout.tree(vector, gradient=True)


def _with_trees(callback: Callable[..., Any] | None, layout: Layout) -> Callable[..., Any] | None:
    """Return a callback for SciPy, which reads its parameters' names, that passes trees to the caller's callback."""
    if callback is None:
        return None
    try:
        takes_result = set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):  # some functions written in C have no signature
        takes_result = False
    if not takes_result:
        return lambda x, *rest: callback(layout.tree(np.asarray(x)), *rest)

    def with_tree(intermediate_result: Any) -> Any:
        if isinstance(intermediate_result, np.ndarray):  # methods that report only the point
            return callback(layout.tree(intermediate_result))
        found = type(intermediate_result)(intermediate_result)
        _vectors_to_trees(found, layout)
        return callback(intermediate_result=found)

    return with_tree
