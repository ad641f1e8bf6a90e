"""The environment's own reward: what experts are trained on."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.term import Term
from iddm.rollout import AgentBatch


@dataclass(frozen=True)
class EnvironmentReward(Term):
    """Pays what the environment pays. No imitation method holds this term."""

    name: ClassVar[str] = "environment"
    weight: float = 1.0
    """Scale of the reward (advantages and value targets are normalised, so it matters only beside other terms)."""

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return self.weight * agent.env_reward
