"""The equations of soft actor-critic   (Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications")."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from iddm.nets import MLP, SquashedGaussianPolicy

Critics = tuple[MLP, MLP]


def lower_value(critics: Critics, state_action: Float[Array, "rows inputs"]) -> Float[Array, " rows"]:
    """min(Q_1, Q_2)   (Fujimoto et al. 2018): the lower of the two does not overestimate."""
    first, second = (critic(state_action)[:, 0] for critic in critics)
    return jnp.minimum(first, second)


def critic_target(
    reward: Float[Array, " rows"],
    targets: Critics,
    next_state_action: Float[Array, "rows inputs"],
    terminated: Bool[Array, " rows"],
    discount: float,
    terminal_value: Float[Array, ""] | float = 0.0,
) -> Float[Array, " rows"]:
    """y = r + γ min Q̄(s', a'), a' ~ π   (Eq. 5); after an end, the value of staying there.

    The entropy is not part of the value (as in RLPD, Ball et al. 2023): it acts on the policy alone, so that a temperature that
    is being tuned moves no values. A truncated episode goes on: only `terminated` rows end.
    """
    return reward + discount * jnp.where(terminated, terminal_value, lower_value(targets, next_state_action))


def critic_loss(
    critics: Critics, state_action: Float[Array, "rows inputs"], target: Float[Array, " rows"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Σ_i E[(Q_i(s, a) − y)²]   (Eq. 5), and the mean of Q_1."""
    values = [critic(state_action)[:, 0] for critic in critics]
    return sum(((q - target) ** 2).mean() for q in values) + jnp.zeros(()), values[0].mean()


def actor_loss(
    policy: SquashedGaussianPolicy,
    critics: Critics,
    s: Float[Array, "rows obs"],
    temperature: Float[Array, ""],
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """E[α log π(a|s) − min Q(s, a)], a ~ π   (Eq. 9), and the mean log-probability."""
    action, log_prob = policy.sample_with_log_prob(s, key)
    value = lower_value(critics, jnp.concatenate([s, action], axis=-1))
    return (temperature * log_prob - value).mean(), log_prob.mean()


def temperature_loss(
    log_temperature: Float[Array, ""], log_prob: Float[Array, ""], target_entropy: Float[Array, ""] | float
) -> Float[Array, ""]:
    """−log α · (E[log π] + H̄)   (Eq. 18, in log α): α rises where the policy's entropy is below the target H̄."""
    return -log_temperature * (jax.lax.stop_gradient(log_prob) + target_entropy)
