"""Where a run acts: its environments, and the randomness of its actions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from iddm.envs import make_vector
from iddm.nets import Normaliser, Policy
from iddm.rollout import Collector, Rollout

if TYPE_CHECKING:
    from iddm.job import Job


@jax.jit
def act(policy: Policy, normaliser: Normaliser, obs: Array, noise: Array) -> Array:
    """Actions for the rollout's next step."""
    return policy.sample(normaliser.own(obs), noise)


@jax.jit(static_argnums=(2,))
def rollout_noise(policy: Policy, key: PRNGKeyArray, shape: tuple[int, int]) -> Array:
    """The noise of a whole rollout's actions, drawn at once."""
    return policy.noise(key, shape)


def iteration_key(seed: int, iteration: int) -> PRNGKeyArray:
    """The randomness of one iteration: a resumed run draws what an uninterrupted one does."""
    return jax.random.fold_in(jax.random.PRNGKey(seed), iteration + 1)


class Environments:
    """The environments of a run. Where they are follows from (seed, iteration they started at, actions since)."""

    def __init__(self, job: "Job", iteration: int, replay: np.ndarray | None) -> None:
        self._job = job
        self._actions: list[np.ndarray] = []
        self._collector: Collector | None = None
        num_replayed = 0 if replay is None else len(replay) // job.config.rollout_length
        self.renew(iteration - num_replayed)
        if replay is not None:
            self.collect(lambda obs, t: replay[t], len(replay))

    def renew(self, iteration: int) -> None:
        """Start anew: from here on, only the seed and the iteration matter."""
        self.close()
        config = self._job.config
        seed = int(np.random.SeedSequence([config.seed, iteration]).generate_state(1)[0] >> 2)
        env = make_vector(self._job.spec, config.num_envs, seed, config.backend, self._job.reference)
        self._collector = Collector(env, self._job.shape.action_space, self._job.lags)
        self._actions = []
        self.since = iteration

    def sample(self, policy: Policy, normaliser: Normaliser, iteration: int, num_steps: int) -> tuple[Rollout, list[float]]:
        """Steps with actions that the policy draws."""
        config = self._job.config
        key = jax.random.fold_in(iteration_key(config.seed, iteration), 0)
        noise = np.asarray(rollout_noise(policy, key, (num_steps, config.num_envs)))
        return self.collect(lambda obs, t: act(policy, normaliser, obs, noise[t]), num_steps)

    def uniform(self, iteration: int, num_steps: int) -> tuple[Rollout, list[float]]:
        """Steps with uniformly random actions."""
        config, space = self._job.config, self._job.shape.action_space
        rng = np.random.default_rng([config.seed, iteration])
        actions = space.uniform(rng, (num_steps, config.num_envs))
        return self.collect(lambda obs, t: actions[t], num_steps)

    def collect(self, choose: Callable[[np.ndarray, int], Any], num_steps: int) -> tuple[Rollout, list[float]]:
        assert self._collector is not None
        rollout, returns = self._collector.collect(choose, num_steps)
        self._actions.append(rollout.action)
        return rollout, returns

    def replay(self) -> np.ndarray:
        """The actions since the start, to bring fresh environments to this very point."""
        return np.concatenate(self._actions)

    def close(self) -> None:
        if self._collector is not None:
            self._collector.close()
