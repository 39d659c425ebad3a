"""Value and pullback of functions with many results, which Gauss-Newton steps and solvers compute repeatedly."""

from __future__ import annotations

from typing import Any

import numpy as np
from programs import LESS, Program

import funcgrad.numpy as fnp
from funcgrad import vjp

__all__ = ["programs"]

HIDDEN = 10


def programs(quick: bool) -> list[Program]:
    return [pulled_back(2, quick), pulled_back(50, quick)]


def problem(dtype: Any) -> tuple[Any, ...]:
    """Return parameters, points, and the cotangent of the residuals."""
    rng = np.random.default_rng(0)
    shapes = {"first": (3, HIDDEN), "bias": (HIDDEN,), "inner": (HIDDEN, HIDDEN), "last": (HIDDEN,)}
    params = {name: rng.normal(size=shape).astype(dtype) / 3 for name, shape in shapes.items()}
    return params, rng.normal(size=(4, 3)).astype(dtype), rng.normal(size=4).astype(dtype)


def network(tanh: Any, layers: int) -> Any:
    def residuals(params: Any, x: Any) -> Any:
        hidden = tanh(x @ params["first"] + params["bias"])
        for _ in range(layers - 1):
            hidden = tanh(hidden @ params["inner"] + params["bias"])
        return hidden @ params["last"]

    return residuals


def pulled_back(layers: int, quick: bool) -> Program:
    layers = min(layers, 3) if quick else layers
    residuals = network(fnp.tanh, layers)

    def in_funcgrad(params: Any, x: Any, ct: Any) -> Any:
        return lambda: vjp(residuals, params, x)[1](ct)[0]

    def in_torch(params: Any, x: Any, ct: Any) -> Any:
        import torch

        leaves = {name: torch.from_numpy(p).requires_grad_() for name, p in params.items()}
        points, cotangent, run = torch.from_numpy(x), torch.from_numpy(ct), network(torch.tanh, layers)

        def call() -> Any:
            out = run(leaves, points)
            found = torch.autograd.grad(out, list(leaves.values()), cotangent)
            return dict(zip(leaves, found, strict=True))

        return call

    def in_autograd(params: Any, x: Any, ct: Any) -> Any:
        import autograd
        import autograd.numpy as anp

        run = network(anp.tanh, layers)
        return lambda: autograd.make_vjp(lambda params: run(params, x))(params)[0](ct)

    def in_jax(params: Any, x: Any, ct: Any) -> Any:
        import jax
        import jax.numpy as jnp

        pulled = jax.jit(lambda params, x, ct: jax.vjp(network(jnp.tanh, layers), params, x)[1](ct)[0])
        return lambda: pulled(params, x, ct)

    return Program(
        name=f"pullback of a network, {layers} layers",
        args=problem,
        libraries={"funcgrad": in_funcgrad, "torch": in_torch, "autograd": in_autograd},
        reference=in_jax,
        bars=LESS,
    )
