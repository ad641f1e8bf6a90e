"""Absorbing states: what a discriminator is shown of an episode after its end   (Kostrikov et al. 2019, DAC, Section 4.2).

A state gets one more column, 0 while the episode lives. A transition into a terminal state leads to the absorbing state
(zeros and a 1), from which every step leads to itself. Without these rows a reward that is never negative pays for being
alive, and one that is never positive for dying.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iddm.rollout import AgentBatch, ExpertData, Transitions


def flagged(states: Float[Array, "rows obs"], absorbed: Bool[Array, " rows"] | bool) -> Float[Array, "rows obs_and_flag"]:
    """States with the flag; those that are absorbed become the absorbing state."""
    absorbed = jnp.broadcast_to(jnp.asarray(absorbed), states.shape[:1])
    return jnp.concatenate([jnp.where(absorbed[:, None], 0.0, states), absorbed[:, None].astype(states.dtype)], axis=-1)


def with_ends(rows: Transitions, terminated: Bool[Array, " rows"]) -> Transitions:
    """(s, a, s') with flags, where a terminal s' is the absorbing state."""
    return Transitions(flagged(rows.s, False), rows.a, flagged(rows.s_next, terminated))


def after_the_end(rows: Transitions) -> Transitions:
    """One row: from the absorbing state to itself, with an action of zeros."""
    s, a = jnp.zeros_like(rows.s[:1]), None if rows.a is None else jnp.zeros_like(rows.a[:1])
    return Transitions(flagged(s, True), a, flagged(s, True))


def expert_share(expert: ExpertData) -> Float[Array, ""]:
    """The part of the rows that are absorbed, once every terminated episode is continued to the time limit."""
    assert expert.num_absorbed is not None
    return expert.num_absorbed / (expert.num_absorbed + expert.starts.shape[0])


def agent_share(agent: AgentBatch, limit: Float[Array, ""]) -> Float[Array, ""]:
    """The same part of a rollout."""
    left = jnp.where(agent.terminated, jnp.maximum(limit - (agent.step + 1), 0.0), 0.0)
    absorbed = agent.valid @ left
    return absorbed / (absorbed + agent.valid.sum())
