"""Rows of transitions as reward terms and discriminators see them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Transitions(NamedTuple):
    """Rows (s, a, s') with normalised states and encoded actions; `a` is None where nobody recorded it."""

    s: Float[Array, "rows obs"]
    a: Float[Array, "rows features"] | None
    s_next: Float[Array, "rows obs"]
    compared_s: Float[Array, "rows before"] | None = None
    """What a discriminator compares in the place of `s`, where it is not `s` itself: some columns, or several states."""
    compared_s_next: Float[Array, "rows newest"] | None = None
    """What it compares in the place of `s_next`, likewise."""

    def take(self, rows: Int[Array, " n"]) -> "Transitions":
        return jax.tree.map(lambda part: part[rows], self)

    def compared(self, sees: tuple[str, ...]) -> Float[Array, "rows inputs"]:
        """The chosen parts as a discriminator compares them."""
        s = self.s if self.compared_s is None else self.compared_s
        s_next = self.s_next if self.compared_s_next is None else self.compared_s_next
        return Transitions(s=s, a=self.a, s_next=s_next).inputs(sees)

    def inputs(self, parts: tuple[str, ...]) -> Float[Array, "rows inputs"]:
        """The chosen parts side by side, e.g. ("s", "s_next")."""
        return jnp.concatenate([getattr(self, part) for part in parts], axis=-1)

    def with_view(self, past: Float[Array, "rows states obs"] | None, columns: Int[Array, " compared"] | None) -> "Transitions":
        """The agent's transitions with what a discriminator compares: `past` states in the place of s, and only some columns."""
        if past is None and columns is None:
            return self
        before, newest = self.s[:, None] if past is None else past, self.s_next
        if columns is not None:
            before, newest = before[..., columns], newest[:, columns]
        return self._replace(compared_s=before.reshape(before.shape[0], -1), compared_s_next=newest)


class AgentRows(NamedTuple):
    """What the agent did, flat: all rows of a rollout, or a batch from a replay buffer."""

    transitions: Transitions
    log_prob: Float[Array, " rows"]
    env_reward: Float[Array, " rows"]
    valid: Float[Array, " rows"]
    terminated: Bool[Array, " rows"]
    step: Int[Array, " rows"]
    """Time within the episode, from 0."""
    next_obs: Float[Array, "rows obs"]
    """s' in the environment's units."""
    target: Float[Array, "rows obs"] | None
    """The state of the first demonstration when this row's step is done, in the environment's units."""
    absorbed_share: Float[Array, ""] | None = None
    """The part of the agent's steps that lie after a terminal state, once episodes are continued to the time limit; None where
    these rows tell it themselves."""
    drawn: bool = False
    """Whether the rows were drawn independently, and all are valid: a batch from a replay buffer."""

    def sample(self, key: PRNGKeyArray, n: int) -> Transitions:
        """`n` valid rows, drawn independently."""
        if self.drawn and n <= self.valid.shape[0]:
            return self.transitions.take(jnp.arange(n))
        order = jnp.argsort(-self.valid, stable=True)  # valid rows first
        draw = jnp.floor(jax.random.uniform(key, (n,)) * self.valid.sum()).astype(int)
        return self.transitions.take(order[draw])
