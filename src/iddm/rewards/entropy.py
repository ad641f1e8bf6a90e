"""The policy's entropy as a reward."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Term
from iddm.utils.settings import WEIGHT, check


@dataclass(frozen=True)
class PolicyEntropy(Term):
    """λ_p H_π(a|s): the reward of a step is −λ_p log π(a|s), whose sum to come is the paper's Q^H   (IDDM, Proposition 1)."""

    name: ClassVar[str] = "entropy"
    weight: float = 0.01
    """The paper's λ_p."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT)

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return -self.weight * agent.log_prob
