"""Log-likelihood of a Gaussian mixture with a Wishart prior: the problem of ADBench."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program, of_losses

import funcgrad.numpy as fnp

__all__ = ["programs"]

Params = dict[str, Any]
GAMMA, EXTRA = 1.0, 0  # parameters of the prior


def programs(quick: bool) -> list[Program]:
    """Return mixtures from few components in two dimensions to many in 64."""
    sizes = [(2, 5, 50)] if quick else [(2, 5, 1_000), (10, 10, 1_000), (32, 25, 1_000), (64, 25, 1_000)]
    return [mixture(*size) for size in sizes]


def problem(d: int, k: int, n: int, dtype: Any) -> tuple[Params, np.ndarray]:
    """Return log weights, means, factors of the precisions (log diagonals, then the rest), points."""
    rng = np.random.default_rng(0)
    params = {
        "alphas": rng.standard_normal(k),
        "means": rng.standard_normal((k, d)),
        "icf": rng.standard_normal((k, d * (d + 1) // 2)) * 0.3,
    }
    return {name: p.astype(dtype) for name, p in params.items()}, rng.standard_normal((n, d)).astype(dtype)


@lru_cache
def below(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns below the diagonal, one column after the other."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


@lru_cache
def places(d: int) -> np.ndarray:
    """Return the index in ``icf`` of each entry of the matrix; above the diagonal it is the index past the end."""
    found = np.full((d, d), d * (d + 1) // 2)
    found[below(d)] = np.arange(d, d * (d + 1) // 2)
    found[np.diag_indices(d)] = np.arange(d)
    return found


def log_prior_constant(d: int, k: int) -> float:
    """Return the part of the prior that depends on no parameter."""
    n = d + EXTRA + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (n - j)) for j in range(d))
    return -k * (n * d * math.log(GAMMA / math.sqrt(2)) - log_gamma)


def constants(n: int, d: int, k: int) -> float:
    return -0.5 * n * d * math.log(2 * math.pi) + log_prior_constant(d, k)


def with_array_of(xp: Any, logsumexp: Any, factors: Any) -> Any:
    """Return the function as NumPy users write it: matrices and products of all components at once."""

    def log_posterior(params: Params, x: Any) -> Any:
        (n, d), alphas, icf = x.shape, params["alphas"], params["icf"]
        sums, scales = xp.sum(icf[:, :d], axis=1), xp.exp(icf[:, :d])
        centred = x - params["means"][:, None, :]
        z = xp.matmul(centred, xp.swapaxes(factors(scales, icf), 1, 2))
        inner = (alphas + sums)[:, None] - 0.5 * xp.sum(z**2, axis=2)
        squares = xp.sum(scales**2) + xp.sum(icf[:, d:] ** 2)
        prior = 0.5 * GAMMA**2 * squares - EXTRA * xp.sum(sums)
        likelihood = xp.sum(logsumexp(inner, axis=0)) - n * logsumexp(alphas, axis=0)
        return likelihood + prior + constants(n, d, len(alphas))

    return log_posterior


def factors_funcgrad(scales: Any, icf: Any) -> Any:
    k, d = scales.shape
    found = fnp.zeros((k, d, d), scales.dtype)
    rows, columns = below(d)
    found[:, rows, columns] = icf[:, d:]
    found[:, np.arange(d), np.arange(d)] = scales
    return found


LOSS = with_array_of(fnp, fnp.logsumexp, factors_funcgrad)


def gathered(xp: Any) -> Any:
    """Return the matrices without writing to arrays: gather each entry, those above the diagonal from a 0."""

    def factors(scales: Any, icf: Any) -> Any:
        k, d = scales.shape
        return xp.concatenate([scales, icf[:, d:], np.zeros((k, 1))], axis=1)[:, places(d)]

    return factors


def in_autograd(params: Params, x: Any) -> Any:
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    return with_array_of(anp, logsumexp, gathered(anp))(params, x)


def in_mygrad(params: Params, x: Any) -> Any:
    import mygrad

    def logsumexp(value: Any, axis: int) -> Any:
        largest = mygrad.max(value, axis=axis, keepdims=True).data
        return mygrad.log(mygrad.sum(mygrad.exp(value - largest), axis=axis)) + largest.squeeze(axis)

    return with_array_of(mygrad, logsumexp, gathered(mygrad))(params, x)


def in_jax(params: Params, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return with_array_of(jnp, jax.scipy.special.logsumexp, gathered(jnp))(params, x)


def in_torch(params: Params, x: Any) -> Any:
    import torch

    (n, d), alphas, icf = x.shape, params["alphas"], params["icf"]
    sums, scales = icf[:, :d].sum(1), icf[:, :d].exp()
    rows, columns = below(d)
    factors = torch.diag_embed(scales)
    factors[:, rows, columns] = icf[:, d:]
    z = torch.bmm(x - params["means"][:, None], factors.mT)
    inner = (alphas + sums)[:, None] - 0.5 * (z**2).sum(2)
    prior = 0.5 * GAMMA**2 * ((scales**2).sum() + (icf[:, d:] ** 2).sum()) - EXTRA * sums.sum()
    likelihood = inner.logsumexp(0).sum() - n * alphas.logsumexp(0)
    return likelihood + prior + constants(n, d, len(alphas))


def by_hand(params: Params, x: np.ndarray) -> Any:
    """Return the gradient by hand, without cotangents of centred points: those of a component share one factor."""
    (n, d), (alphas, means, icf) = x.shape, (params[name] for name in ("alphas", "means", "icf"))
    (rows, columns), diagonal = below(d), np.arange(d)

    def call() -> Params:
        scales, sums = np.exp(icf[:, :d]), icf[:, :d].sum(axis=1)
        factors = np.zeros((len(alphas), d, d), x.dtype)
        factors[:, rows, columns] = icf[:, d:]
        factors[:, diagonal, diagonal] = scales
        centred = x - means[:, None]
        z = centred @ factors.swapaxes(1, 2)
        inner = np.einsum("kni,kni->kn", z, z)
        inner *= -0.5
        inner += (alphas + sums)[:, None]
        largest = inner.max(axis=0)
        inner -= largest
        weights = np.exp(inner, out=inner)
        total = weights.sum(axis=0)
        weights /= total
        shares = np.exp(alphas - alphas.max())
        all_shares = shares.sum()
        (
            np.log(total).sum()
            + largest.sum()
            - n * (np.log(all_shares) + alphas.max())
            + constants(n, d, len(alphas))
            + (0.5 * GAMMA**2 * (np.vdot(scales, scales) + np.vdot(icf[:, d:], icf[:, d:])) - EXTRA * sums.sum())
        )  # the value, which every library computes too
        members = weights.sum(axis=1)
        z *= weights[:, :, None]
        slopes = np.negative(z.swapaxes(1, 2) @ centred)  # with respect to the factors
        gradient = np.empty_like(icf)
        gradient[:, d:] = slopes[:, rows, columns] + GAMMA**2 * icf[:, d:]
        gradient[:, :d] = slopes[:, diagonal, diagonal] * scales + members[:, None] + GAMMA**2 * scales**2 - EXTRA
        return {
            "alphas": members - n / all_shares * shares,
            "means": (z.sum(axis=1)[:, None] @ factors)[:, 0],
            "icf": gradient,
        }

    return call


def mixture(d: int, k: int, n: int) -> Program:
    return Program(
        name=f"Gaussian mixture, d = {d}, k = {k}, n = {n:,}",
        args=lambda dtype: problem(d, k, n, dtype),
        **of_losses(LOSS, in_torch, in_autograd, in_mygrad, in_jax, {BY_HAND: by_hand}),
        bars={**LESS, BY_HAND: 1.4},
        small=(lambda dtype: problem(2, 2, 3, dtype)) if d >= 10 else None,
    )
