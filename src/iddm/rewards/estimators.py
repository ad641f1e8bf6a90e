"""Lower bounds on mutual information I(x; y) with a learned critic T(x, y), and the pointwise information that T holds.

Three ways to train T. `x` and `y` are paired rows; pairs of independent rows (the product of the marginals) are made by
shifting `y` against `x`, which is fair because training rows were drawn independently. The rows of a whole rollout are in
order of time, so the pointwise functions shuffle instead.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Critic = Callable[[Float[Array, "n x"], Float[Array, "n y"]], Float[Array, " n"]]
Scalar = Float[Array, ""]

NUM_CONTRASTS = 64
"""InfoNCE compares each pair with this many; the bound cannot exceed its logarithm."""


def log_mean_exp(x: Float[Array, "..."], axis: int | None = None) -> Float[Array, "..."]:
    size = x.size if axis is None else x.shape[axis]
    return jax.nn.logsumexp(x, axis=axis) - jnp.log(size)


def _on_joint_and_marginals(
    critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    both = critic(jnp.concatenate([x, x]), jnp.concatenate([y, jnp.roll(y, 1, axis=0)]))
    joint, marginals = jnp.split(both, 2)
    return joint, marginals


def donsker_varadhan_bound(joint: Float[Array, " n"], marginals: Float[Array, " n"]) -> Scalar:
    """I ≥ E_joint[T] − log E_marginals[e^T]   (Donsker and Varadhan; MINE, Eq. 10)."""
    return joint.mean() - log_mean_exp(marginals)


def mine_loss(
    critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"], log_average: Scalar, rate: float = 0.01
) -> tuple[Scalar, Scalar]:
    """−E_joint[T] + E_marginals[e^T] / average(e^T), whose gradient is the bound's without the bias of small batches.

    The moving average of E_marginals[e^T] is kept as a logarithm   (MINE, Eq. 12).
    """
    joint, marginals = _on_joint_and_marginals(critic, x, y)
    log_mean = log_mean_exp(marginals)
    log_average = jnp.logaddexp(jnp.log1p(-rate) + log_average, jnp.log(rate) + jax.lax.stop_gradient(log_mean))
    return -joint.mean() + jnp.exp(log_mean - log_average), log_average


def js_loss(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"], log_average: Scalar) -> tuple[Scalar, Scalar]:
    """E_joint[softplus(−T)] + E_marginals[softplus(T)]   (Deep InfoMax, Eq. 4): at its minimum T is the pointwise information."""
    joint, marginals = _on_joint_and_marginals(critic, x, y)
    return jax.nn.softplus(-joint).mean() + jax.nn.softplus(marginals).mean(), log_average


def _scores(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"]) -> Float[Array, "n n"]:
    """T(x_i, y_j) for all i, j."""
    n = x.shape[0]
    return critic(jnp.repeat(x, n, axis=0), jnp.tile(y, (n, 1))).reshape(n, n)


def infonce_bound(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"]) -> Scalar:
    """I ≥ E[T(x_i, y_i) − log mean_j e^{T(x_j, y_i)}] ≤ log n   (van den Oord et al. 2018, Eq. 4)."""
    scores = _scores(critic, x, y)
    return (jnp.diag(scores) - log_mean_exp(scores, axis=0)).mean()


def infonce_loss(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"], log_average: Scalar) -> tuple[Scalar, Scalar]:
    """The negative bound, on a part of the batch: its cost grows with the square of the rows."""
    return -infonce_bound(critic, x[:NUM_CONTRASTS], y[:NUM_CONTRASTS]), log_average


def dv_estimate(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"]) -> Scalar:
    """The Donsker-Varadhan bound at this critic, whichever loss trained it."""
    return donsker_varadhan_bound(*_on_joint_and_marginals(critic, x, y))


def infonce_estimate(critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"]) -> Scalar:
    """The InfoNCE bound, averaged over groups of rows."""
    groups = max(x.shape[0] // NUM_CONTRASTS, 1)
    size = min(x.shape[0], NUM_CONTRASTS)
    xs, ys = (v[: groups * size].reshape(groups, size, -1) for v in (x, y))
    return jax.lax.map(lambda xy: infonce_bound(critic, *xy), (xs, ys)).mean()


def mine_pmi(
    critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"], valid: Float[Array, " n"], key: PRNGKeyArray
) -> Float[Array, " n"]:
    """log p(x, y) / p(x)p(y) = T − log E_marginals[e^T] at the bound's optimum: T alone is off by a constant.

    Invalid rows are in no marginal.
    """
    order = jax.random.permutation(key, len(x))
    weight = valid * valid[order]
    marginal = jax.nn.logsumexp(critic(x[order], y), b=weight) - jnp.log(weight.sum())
    return critic(x, y) - marginal


def js_pmi(
    critic: Critic, x: Float[Array, "n x"], y: Float[Array, "n y"], valid: Float[Array, " n"], key: PRNGKeyArray
) -> Float[Array, " n"]:
    """log p(x, y) / p(x)p(y) = T at the optimum of the Jensen-Shannon loss."""
    return critic(x, y)


def infonce_pmi(
    critic: Critic,
    x: Float[Array, "n x"],
    y: Float[Array, "n y"],
    valid: Float[Array, " n"],
    key: PRNGKeyArray,
    num_partners: int = 16,
) -> Float[Array, " n"]:
    """T(x_i, y_i) − log mean_j e^{T(x_j, y_i)}: InfoNCE leaves T free up to a function of y, which this removes.

    Invalid rows are nobody's partners.
    """
    pair = critic(x, y)

    def scores(key: PRNGKeyArray) -> tuple[Array, Array]:
        order = jax.random.permutation(key, len(x))
        return critic(x[order], y), valid[order]

    partners, weights = jax.lax.map(scores, jax.random.split(key, num_partners))
    partners, weights = jnp.concatenate([pair[None], partners]), jnp.concatenate([jnp.ones_like(valid)[None], weights])
    return pair - (jax.nn.logsumexp(partners, axis=0, b=weights) - jnp.log(weights.sum(axis=0)))


@dataclass(frozen=True)
class Estimator:
    """How a critic is trained, how the information is read from it, and the reward of each row."""

    loss: Callable[..., tuple[Scalar, Scalar]]
    estimate: Callable[..., Scalar]
    pmi: Callable[..., Float[Array, " n"]]


ESTIMATORS = {
    "mine": Estimator(mine_loss, dv_estimate, mine_pmi),
    "js": Estimator(js_loss, dv_estimate, js_pmi),
    "infonce": Estimator(infonce_loss, infonce_estimate, infonce_pmi),
}
