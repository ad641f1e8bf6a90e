"""The survival bonus: a constant reward, as a control."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Term
from iddm.utils.settings import WEIGHT, check


@dataclass(frozen=True)
class Survival(Term):
    """r = 1 at every step: a control, because every reward that is never negative also rewards being alive."""

    name: ClassVar[str] = "survival"
    weight: float = 1.0
    """Reward per step."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT)

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        return jnp.full_like(agent.env_reward, self.weight)
