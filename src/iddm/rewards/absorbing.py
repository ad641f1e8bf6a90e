"""Absorbing states: what a discriminator is shown of an episode after its end   (Kostrikov et al. 2019, DAC, Section 4.2).

A state gets one more column, 0 while the episode lives. A transition into a terminal state leads to the absorbing state
(zeros and a 1), from which every step leads to itself. Without these rows a reward that is never negative rewards being
alive, and one that is never positive rewards dying.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iddm.rewards.expert import ExpertEnds
from iddm.rewards.rows import AgentRows, Transitions


def flagged(states: Float[Array, "rows obs"], absorbed: Bool[Array, " rows"] | bool) -> Float[Array, "rows obs_and_flag"]:
    """States with the flag; those that are absorbed become the absorbing state."""
    absorbed = jnp.broadcast_to(jnp.asarray(absorbed), states.shape[:1])
    return jnp.concatenate([jnp.where(absorbed[:, None], 0.0, states), absorbed[:, None].astype(states.dtype)], axis=-1)


def with_ends(rows: Transitions, terminated: Bool[Array, " rows"]) -> Transitions:
    """(s, a, s') with flags, where a terminal s' is the absorbing state."""
    return Transitions(s=flagged(rows.s, False), a=rows.a, s_next=flagged(rows.s_next, terminated))


def after_the_end(rows: Transitions) -> Transitions:
    """One row: from the absorbing state to itself, with an action of zeros."""
    s, a = jnp.zeros_like(rows.s[:1]), None if rows.a is None else jnp.zeros_like(rows.a[:1])
    return Transitions(s=flagged(s, True), a=a, s_next=flagged(s, True))


def expert_share(ends: ExpertEnds, num_transitions: int) -> Float[Array, ""]:
    """The part of the rows that are absorbed, once every terminated episode is continued to the time limit."""
    return ends.num_absorbed / (ends.num_absorbed + num_transitions)


def agent_share(agent: AgentRows, limit: Float[Array, ""]) -> Float[Array, ""]:
    """The same part of what the agent did."""
    if agent.absorbed_share is not None:
        return agent.absorbed_share
    left = jnp.where(agent.terminated, jnp.maximum(limit - (agent.step + 1), 0.0), 0.0)
    absorbed = agent.valid @ left
    return absorbed / (absorbed + agent.valid.sum())
