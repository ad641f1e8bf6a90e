"""What the training loop drives: one learner for each kind of method. A method names its own (`Method.learner`)."""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import numpy as np

from iddm.acting import Environments, iteration_key
from iddm.cloning import ObservationCloner, StateActionCloner
from iddm.job import Job
from iddm.learner import TrainState, init_state, make_iteration
from iddm.policy import Policy, uniform_policy


class Learner(Protocol):
    """One kind of learning. All that it knows is in its state, a pytree of arrays, and in where its environments are."""

    num_iterations: int

    @property
    def since(self) -> int:
        """The iteration that fresh environments would be brought forward from."""
        ...

    def init(self) -> Any:
        """The state before the first iteration, determined by the seed."""
        ...

    def iterate(self, state: Any, iteration: int) -> tuple[Any, dict[str, Any]]:
        """One iteration: the next state and its figures, with `steps` so far and the `returns` of the episodes that ended."""
        ...

    def renew(self, iteration: int) -> None:
        """A checkpoint was written: from here on, only the state, the seed and the iteration matter."""

    def replay(self) -> np.ndarray | None:
        """What a checkpoint needs beside the state."""

    def policy(self, state: Any) -> Policy:
        """What the run leaves."""
        ...

    def close(self) -> None: ...


class Acting:
    """What learners share whose environments go on from iteration to iteration."""

    def __init__(self, job: Job, iteration: int, replay: np.ndarray | None) -> None:
        self.job = job
        self.num_iterations = job.config.num_iterations
        self.envs = Environments(job, iteration, replay)

    @property
    def since(self) -> int:
        return self.envs.since

    def renew(self, iteration: int) -> None:
        self.envs.renew(iteration)

    def replay(self) -> np.ndarray | None:
        return self.envs.replay()

    def close(self) -> None:
        self.envs.close()


class PolicyGradient(Acting):
    """PPO on the sum of reward terms: every method that pays the agent."""

    def __init__(self, job: Job, iteration: int, replay: np.ndarray | None) -> None:
        super().__init__(job, iteration, replay)
        self._iterate = make_iteration(job.config)

    def init(self) -> TrainState:
        return init_state(self.job.config, self.job.shape.obs_size, self.job.shape.action_space, self.job.expert)

    def iterate(self, state: TrainState, iteration: int) -> tuple[TrainState, dict[str, Any]]:
        config = self.job.config
        rollout, returns = self.envs.sample(state.policy, state.normaliser, iteration, config.rollout_length)
        key, left = iteration_key(config.seed, iteration), 1 - iteration / config.num_iterations
        state, metrics = self._iterate(state, rollout, self.job.expert, key, left)
        return state, {"steps": (iteration + 1) * config.steps_per_iteration, "returns": returns, **jax.device_get(metrics)}

    def policy(self, state: TrainState) -> Policy:
        return self.job.export(state.policy, state.normaliser)


class RandomActions(Acting):
    """No learning: the returns of uniformly random actions, and a policy that goes on like that."""

    def init(self) -> tuple[()]:
        return ()

    def iterate(self, state: tuple[()], iteration: int) -> tuple[tuple[()], dict[str, Any]]:
        config = self.job.config
        _, returns = self.envs.uniform(iteration, config.rollout_length)
        return state, {"steps": (iteration + 1) * config.steps_per_iteration, "returns": returns}

    def policy(self, state: tuple[()]) -> Policy:
        return uniform_policy(self.job.shape.obs_size, self.job.shape.action_space, self.job.about())


LEARNERS: dict[str, Callable[[Job, int, np.ndarray | None], Learner]] = {
    "policy_gradient": PolicyGradient,
    "cloning": StateActionCloner,
    "cloning_from_observation": ObservationCloner,
    "random": RandomActions,
}
