"""What a reward term is."""

from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs import EnvShape
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

    @property
    def needs_whole_episodes(self) -> bool:
        """Whether single transitions of the demonstrations are not enough: their time, or their end, matters."""
        return False

    @property
    def starts_from_demos(self) -> bool:
        """Whether episodes are to start in states of the first demonstration."""
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

    def absorbing_reward(self, state: PyTree, agent: AgentBatch) -> Float[Array, ""] | float:
        """What each step is paid after a terminal state: the value of that state is this / (1 − γ)."""
        return 0.0

    def fitted(self, shape: EnvShape) -> "Term":
        """The term with what its settings leave to the environment; a term that cannot be there says so."""
        return self

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]: ...
