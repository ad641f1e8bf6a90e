"""An effort prior: among actions that make the same transition, the cheap one."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.spec import EnvShape
from iddm.errors import UserError
from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Term
from iddm.utils.settings import WEIGHT, check


@dataclass(frozen=True)
class Effort(Term):
    """r = −c ‖a‖²: a guess at what the expert prefers where states do not show it. Not in the paper.

    Entropy spreads over redundant actions evenly; experts that were trained or built take the cheap ones.
    """

    name: ClassVar[str] = "effort"
    weight: float = 0.01
    """c, for actions in units where a bounded Box is [-1, 1]."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT)

    def for_env(self, shape: EnvShape) -> "Effort":
        if shape.action_space.discrete:
            raise UserError(f"{shape.env_id}: its actions are choices, which have no effort; the term is for a Box of actions.")
        return self

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        assert agent.transitions.a is not None
        return -self.weight * jnp.sum(agent.transitions.a**2, axis=-1)
