"""The one normaliser at every network's input."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Normaliser(eqx.Module):
    """The running statistics of the agent's observations and the demonstrations' own, read in two ways.

    `mixture` puts agent and expert on one scale, for networks that see both: the even mixture of the two sets. `own` is the
    agent's scale, for its policy and value: where the expert is far away (its speed, say), the mixture's scale would squeeze
    what the agent itself sees into a small corner. Both are frozen within an iteration.
    """

    count: Float[Array, ""]
    mean: Float[Array, " obs"]
    var: Float[Array, " obs"]
    expert_mean: Float[Array, " obs"] | None
    expert_var: Float[Array, " obs"] | None
    clip: float = eqx.field(static=True, default=10.0)
    known: Float[Array, " obs"] | None = None
    """1 where the demonstrations have the column, else 0; None where they have all."""

    @staticmethod
    def start(
        obs_size: int, expert_rows: Float[Array, "rows shown"] | None, columns: Int[Array, " shown"] | None = None
    ) -> "Normaliser":
        zero, one = jnp.zeros(obs_size), jnp.ones(obs_size)
        if expert_rows is None:
            return Normaliser(jnp.zeros(()), zero, one, None, None)
        if columns is not None:
            mean, var = zero.at[columns].set(expert_rows.mean(0)), one.at[columns].set(expert_rows.var(0))
            return Normaliser(jnp.zeros(()), zero, one, mean, var, known=zero.at[columns].set(1.0))
        return Normaliser(jnp.zeros(()), zero, one, expert_rows.mean(0), expert_rows.var(0))

    def own(self, obs: Float[Array, "*b obs"]) -> Float[Array, "*b obs"]:
        """On the agent's scale."""
        return self._scaled(obs, *self.own_scale())

    def mixture(self, obs: Float[Array, "*b obs"]) -> Float[Array, "*b obs"]:
        """On the scale of agent and expert together."""
        return self._scaled(obs, *self.mixture_scale())

    def mixture_of(self, rows: Float[Array, "*b shown"], columns: Int[Array, " shown"] | None) -> Float[Array, "*b shown"]:
        """`mixture` for rows that hold only some of the columns."""
        mean, std = self.mixture_scale()
        return self._scaled(rows, mean, std) if columns is None else self._scaled(rows, mean[columns], std[columns])

    def own_scale(self) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and deviation of what the agent has seen; before its first rollout, the expert's."""
        return self._scale(jnp.where(self.count > 0, 1.0, 0.0))

    def mixture_scale(self) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        """Mean and deviation of both sets, with equal weight."""
        return self._scale(jnp.where(self.count > 0, 0.5, 0.0))

    def _scale(self, weight: Float[Array, "..."]) -> tuple[Float[Array, " obs"], Float[Array, " obs"]]:
        mean, var = self.mean, self.var
        if self.expert_mean is not None and self.expert_var is not None:
            if self.known is not None:  # elsewhere there is only the agent
                weight = jnp.where(self.known > 0, weight, 1.0)
            mean = weight * self.mean + (1 - weight) * self.expert_mean
            spread = weight * (1 - weight) * (self.mean - self.expert_mean) ** 2
            var = weight * self.var + (1 - weight) * self.expert_var + spread
        return mean, jnp.sqrt(jnp.maximum(var, 1e-8))

    def _scaled(
        self, obs: Float[Array, "*b obs"], mean: Float[Array, " obs"], std: Float[Array, " obs"]
    ) -> Float[Array, "*b obs"]:
        return jnp.clip((obs - mean) / std, -self.clip, self.clip)

    def with_agent(self, mean: Any, var: Any) -> "Normaliser":
        """The same with these statistics of the agent's observations."""
        mean, var = jnp.asarray(mean, jnp.float32), jnp.asarray(var, jnp.float32)
        return Normaliser(jnp.ones(()), mean, var, self.expert_mean, self.expert_var, self.clip, self.known)

    def settled(self, mean: Any, var: Any) -> "Normaliser":
        """The same with these statistics, but columns that the demonstrations have keep the first that they were given.

        Networks that learn for long from the same rows need them to look the same throughout.
        """
        new = self.with_agent(mean, var)
        if self.expert_mean is None:
            return new
        keeps = (self.count > 0) & (True if self.known is None else self.known > 0)
        return new.with_agent(jnp.where(keeps, self.mean, new.mean), jnp.where(keeps, self.var, new.var))

    def update(self, obs: Float[Array, "rows obs"], valid: Float[Array, " rows"]) -> "Normaliser":
        """Merge a rollout's valid rows into the agent's statistics (Chan et al.)."""
        n = valid.sum()
        new_mean = (valid @ obs) / n
        new_var = (valid @ (obs - new_mean) ** 2) / n
        total = self.count + n
        delta = new_mean - self.mean
        mean = self.mean + delta * n / total
        var = (self.var * self.count + new_var * n + delta**2 * self.count * n / total) / total
        return Normaliser(total, mean, var, self.expert_mean, self.expert_var, self.clip, self.known)
