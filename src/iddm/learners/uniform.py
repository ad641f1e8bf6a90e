"""Uniformly random actions: a control that learns nothing."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import PRNGKeyArray

from iddm.envs.rollout import Rollout
from iddm.learners.base import Learner, Metrics, Problem, Progress, Schedule
from iddm.rewards.expert import Expert
from iddm.utils.settings import Range, check


@dataclass(frozen=True)
class RandomActions(Learner):
    """No learning: the returns of uniformly random actions, and a policy that goes on like that."""

    name: ClassVar[str] = "random"
    num_envs: int = 16
    """Number of environments stepped side by side."""
    rollout_length: int = 128
    """Steps of each environment per iteration."""

    def __post_init__(self) -> None:
        rollout = Range(1, 10_000_000, whole=True)
        check(self, num_envs=rollout, rollout_length=rollout)

    def schedule(self, steps: int) -> Schedule:
        num_iterations = max(steps // (self.num_envs * self.rollout_length), 1)
        return Schedule(num_iterations, self.rollout_length, self.num_envs, restart_every=self.checkpoint_every)

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> tuple[()]:
        return ()

    def actor(self, state: tuple[()], progress: Progress) -> None:
        return None

    def update(
        self,
        problem: Problem,
        state: tuple[()],
        rollout: Rollout | None,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[tuple[()], Metrics]:
        return state, {}

    def policy(self, state: tuple[()]) -> None:
        return None
