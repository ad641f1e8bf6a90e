"""What a reward term is."""

from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.spec import EnvShape
from iddm.rewards.expert import ExpertSampler
from iddm.rewards.rows import AgentRows

Metrics = dict[str, Float[Array, ""]]


@runtime_checkable
class Term(Protocol):
    """A part of the reward: a frozen dataclass of settings with three pure functions, all traced into one iteration.

    Its state is any pytree of arrays. `update` learns from the agent's newest rows and the demonstrations, whose states are on
    one scale; `reward` gives each row its reward. The bodies here are for terms that learn nothing.
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

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, compared: tuple[int, int] | None = None) -> PyTree:
        """`compared`: columns that a discriminator compares of the states before and of the newest; `obs_size` unless given."""
        return ()

    def update(
        self,
        state: PyTree,
        agent: AgentRows,
        expert: ExpertSampler | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        return state, {}

    def absorbing_reward(self, state: PyTree, agent: AgentRows) -> Float[Array, ""] | float:
        """The reward of each step after a terminal state: the value of that state is this / (1 − γ)."""
        return 0.0

    def for_demos(self, end_early: bool, whole: bool) -> "Term":
        """The term completed with what its settings leave to the demonstrations.

        `end_early`: most of their episodes end by themselves, before the time limit. `whole`: they are compared as they are, with
        every column and step, so that their ends are known.
        """
        return self

    def for_env(self, shape: EnvShape) -> "Term":
        """The term completed with what its settings leave to the environment; raises where it cannot be used there."""
        return self

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]: ...
