"""What a reward term is."""

from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rollout import AgentBatch, ExpertData

Metrics = dict[str, Float[Array, ""]]


@runtime_checkable
class Term(Protocol):
    """A part of the reward: a frozen dataclass of settings with three pure functions, all traced into one iteration.

    Its state is any pytree of arrays. `update` learns from the newest rollout and the demonstrations, whose states are on
    one scale; `reward` pays each row. What stands here as a body is for terms that learn nothing.
    """

    name: ClassVar[str]

    @property
    def needs_demos(self) -> bool:
        return False

    @property
    def needs_expert_actions(self) -> bool:
        return False

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, shown: tuple[int, int] | None = None) -> PyTree:
        """`shown`: columns that a discriminator sees of the states before and of the newest, where that is not `obs_size`."""
        return ()

    def update(
        self,
        state: PyTree,
        agent: AgentBatch,
        expert: ExpertData | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        return state, {}

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]: ...
