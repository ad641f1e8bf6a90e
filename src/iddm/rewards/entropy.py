"""The policy's entropy as a reward."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.term import Term
from iddm.rollout import AgentBatch


@dataclass(frozen=True)
class PolicyEntropy(Term):
    """λ_p H_π(a|s): each step is paid −λ_p log π(a|s), whose sum to come is the paper's Q^H   (IDDM, Proposition 1)."""

    name: ClassVar[str] = "entropy"
    weight: float = 0.01
    """The paper's λ_p."""

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return -self.weight * agent.log_prob
