"""The programs of PyTorch's autograd tutorials, written as pure functions.

Each function stands next to the PyTorch program that does the same; if PyTorch is installed, both run and are compared.
No ``requires_grad`` is needed, nothing accumulates in ``.grad``, nothing has to be reset: a gradient is a
function of its arguments.
"""

import importlib.util
from textwrap import dedent

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import checkpoint, compose_left, custom_vjp, grad, pipe, trace

X = np.array([[0.5, -1.0, 2.0], [-0.3, 0.8, -1.5]])
W = np.array([[0.1, -0.4], [0.7, 0.2], [-0.5, 0.3]])


def multiply():
    """
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    z = x * y + x ** 2
    z.backward()
    found = x.grad, y.grad
    """
    return grad(lambda x, y: x * y + x**2, argnums=(0, 1))(2.0, 3.0)


def clamp_relu():
    """
    class ReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return torch.where(x > 0, ct, torch.zeros_like(ct))

    x = torch.tensor(X, requires_grad=True)
    w = torch.tensor(W, requires_grad=True)
    (ReLU.apply(x) @ w).square().sum().backward()
    found = x.grad, w.grad
    """

    @custom_vjp
    def relu(x):
        return fnp.maximum(x, 0.0)

    relu.defvjp(lambda x: (relu(x), x), lambda x, ct: (fnp.where(x > 0, ct, 0.0),))
    return grad(lambda x, w: fnp.sum(fnp.square(relu(x) @ w)), argnums=(0, 1))(X, W)


def rnn_cell():
    """
    w = torch.tensor(W, requires_grad=True)
    h = torch.zeros(2, dtype=torch.float64)
    for x in torch.tensor(X):
        h = torch.tanh(x @ w + 0.5 * h)
    h.sum().backward()
    found = (w.grad,)
    """

    def last(w):
        h = np.zeros(2)
        for x in X:
            h = fnp.tanh(x @ w + 0.5 * h)
        return fnp.sum(h)

    return (grad(last)(W),)


def conditional():
    """
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y = x * 2
    while y.abs() < 100:
        y = y * y if y > 2 else y * 3
    y.backward()
    found = (x.grad,)
    """

    def f(x):
        y = x * 2
        while abs(y) < 100:
            y = y * y if y > 2 else y * 3
        return y

    return (grad(f)(0.3),)


def checkpointed():
    """
    from torch.utils.checkpoint import checkpoint
    x = torch.tensor(X, requires_grad=True)
    block = lambda h: torch.tanh(h * h - 0.5)
    h = x
    for _ in range(3):
        h = checkpoint(block, h, use_reentrant=False)
    h.sum().backward()
    found = (x.grad,)
    """
    block = checkpoint(lambda h: fnp.tanh(h * h - 0.5))
    return (grad(lambda x: fnp.sum(pipe(x, block, block, block)))(X),)


def exploring_the_graph():
    """
    x = torch.tensor(X, requires_grad=True)
    y = x.square().exp().sum()
    print(y.grad_fn, y.grad_fn.next_functions)
    y.backward()
    found = (x.grad,)
    """
    f = compose_left(fnp.square, fnp.exp, fnp.sum)
    print(trace(f)(X))
    return (grad(f)(X),)


PROGRAMS = (multiply, clamp_relu, rnn_cell, conditional, checkpointed, exploring_the_graph)


def theirs(program):
    """Return PyTorch's results."""
    exec(dedent(program.__doc__), names := {"torch": importlib.import_module("torch"), "X": X, "W": W})
    return [np.asarray(found) for found in names["found"]]


def main():
    compared = importlib.util.find_spec("torch") is not None
    for program in PROGRAMS:
        print(
            f"--- {program.__name__.replace('_', ' ')}: PyTorch's program",
            dedent(program.__doc__),
            "gives here",
            sep="\n",
        )
        found = program()
        print(*[np.round(x, 6) for x in found], sep="\n")
        if compared:
            apart = max(np.abs(a - b).max() for a, b in zip(found, theirs(program), strict=True))
            assert apart < 1e-6, f"{apart:.1e} from PyTorch's"
    print(f"{len(PROGRAMS)} programs" + (", all results equal PyTorch's" if compared else "; PyTorch is not installed"))


if __name__ == "__main__":
    main()
