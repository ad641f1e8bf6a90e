"""The survival bonus: what a policy reaches that is paid for nothing but being there."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.term import Term
from iddm.rollout import AgentBatch


@dataclass(frozen=True)
class Survival(Term):
    """r = 1 at every step: a control, for every reward that is never negative also pays for being alive."""

    name: ClassVar[str] = "survival"
    weight: float = 1.0
    """The pay a step."""

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return jnp.full_like(agent.env_reward, self.weight)
