"""The equations of proximal policy optimisation: advantages, the clipped loss, and the epochs over one rollout."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from iddm.nets import MLP, CategoricalPolicy, GaussianPolicy

Policy = GaussianPolicy | CategoricalPolicy


def gae(
    reward: Float[Array, "T N"],
    value: Float[Array, "T N"],
    next_value: Float[Array, "T N"],
    terminated: Bool[Array, "T N"],
    boundary: Bool[Array, "T N"],
    discount: float,
    decay: float,
    terminal_value: Float[Array, ""] | float = 0.0,
) -> Float[Array, "T N"]:
    """Generalised advantages, A_t = δ_t + γλ A_{t+1}, with δ_t = r_t + γ V(s'_t) − V(s_t)   (Schulman et al. 2016, Eq. 16).

    V(s') is `terminal_value` where an episode truly ended (`terminated`): zero, or the return of staying there. The sum stops
    at every `boundary` (end or time limit): a truncated episode bootstraps from the value of its true successor.
    """
    delta = reward + discount * jnp.where(terminated, terminal_value, next_value) - value

    def step(later: Float[Array, " N"], now: tuple[Array, Array]) -> tuple[Array, Array]:
        delta_t, boundary_t = now
        advantage = delta_t + discount * decay * jnp.where(boundary_t, 0.0, later)
        return advantage, advantage

    _, advantages = jax.lax.scan(step, jnp.zeros_like(delta[0]), (delta, boundary), reverse=True)
    return advantages


class PPOBatch(NamedTuple):
    """The rows of a rollout that the update needs."""

    s: Float[Array, "rows obs"]
    action: Float[Array, "rows actions"] | Int[Array, " rows"]
    log_prob: Float[Array, " rows"]
    advantage: Float[Array, " rows"]
    target: Float[Array, " rows"]
    valid: Float[Array, " rows"]


def ppo_loss(
    learned: tuple[Policy, MLP], batch: PPOBatch, clip: float, value_weight: float
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """−E[min(ρ A, clip(ρ, 1−ε, 1+ε) A)] + c E[(V − target)²]   (Schulman et al. 2017, Eq. 9), over the valid rows."""
    policy, value_net = learned
    total = jnp.maximum(batch.valid.sum(), 1.0)
    log_ratio = policy.log_prob(batch.s, batch.action) - batch.log_prob
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    gain = jnp.minimum(ratio * batch.advantage, clipped * batch.advantage)
    policy_loss = -(batch.valid @ gain) / total
    value_loss = (batch.valid @ (value_net(batch.s)[..., 0] - batch.target) ** 2) / total
    approx_kl = (batch.valid @ (ratio - 1 - log_ratio)) / total
    loss = policy_loss + value_weight * value_loss
    return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "approx_kl": approx_kl}


def optimiser(max_grad_norm: float) -> optax.GradientTransformation:
    """Adam on clipped gradients; the rate is applied where it is known."""
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), optax.scale_by_adam(eps=1e-5))


def ppo_epochs(
    learned: tuple[Policy, MLP],
    opt_state: PyTree,
    batch: PPOBatch,
    key: PRNGKeyArray,
    learning_rate: Float[Array, ""],
    *,
    epochs: int,
    batch_size: int,
    clip: float,
    value_weight: float,
    max_grad_norm: float,
) -> tuple[tuple[Policy, MLP], PyTree, dict[str, Float[Array, ""]]]:
    """All epochs over one rollout, every row once per epoch (but for those that do not fill a batch)."""
    optimise = optimiser(max_grad_norm)
    num_rows = batch.s.shape[0]
    batch_size = min(batch_size, num_rows)
    num_batches = num_rows // batch_size

    def step(carry: PyTree, rows: PPOBatch) -> tuple[PyTree, dict[str, Array]]:
        learned, opt_state = carry
        grads, metrics = jax.grad(ppo_loss, has_aux=True)(learned, rows, clip, value_weight)
        updates, opt_state = optimise.update(grads, opt_state)
        learned = eqx.apply_updates(learned, jax.tree.map(lambda u: -learning_rate * u, updates))
        return (learned, opt_state), metrics

    def epoch(carry: PyTree, key: PRNGKeyArray) -> tuple[PyTree, dict[str, Array]]:
        order = jax.random.permutation(key, num_rows)[: num_batches * batch_size]
        shuffled = jax.tree.map(lambda x: x[order].reshape(num_batches, batch_size, *x.shape[1:]), batch)
        return jax.lax.scan(step, carry, shuffled)

    (learned, opt_state), metrics = jax.lax.scan(epoch, (learned, opt_state), jax.random.split(key, epochs))
    return learned, opt_state, jax.tree.map(lambda x: x[-1].mean(), metrics)
