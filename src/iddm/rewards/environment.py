"""The environment's own reward: what experts are trained on."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Term
from iddm.utils.settings import WEIGHT, check


@dataclass(frozen=True)
class EnvironmentReward(Term):
    """The reward that the environment gives. No imitation method holds this term."""

    name: ClassVar[str] = "environment"
    weight: float = 1.0
    """Scale of the reward (advantages and value targets are normalised, so it matters only beside other terms)."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT)

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return self.weight * agent.env_reward
