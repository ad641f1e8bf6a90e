"""Where a run acts: its environments, and the randomness of its actions."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from iddm.envs.rollout import Collector, Rollout, staggered
from iddm.envs.vector import make_vector
from iddm.nets import Actor, Normaliser
from iddm.training.setup import Setup
from iddm.utils.keys import Use, key_for


@jax.jit
def act(actor: Actor, normaliser: Normaliser, obs: Array, noise: Array) -> Array:
    """Actions for the rollout's next step."""
    return actor.sample(normaliser.own(obs), noise)


@jax.jit(static_argnums=(2,))
def rollout_noise(actor: Actor, key: PRNGKeyArray, shape: tuple[int, int]) -> Array:
    """The noise of a whole rollout's actions, drawn at once."""
    return actor.noise(key, shape)


class Environments:
    """The environments of a run. Where they are follows from (seed, iteration they started at, actions since)."""

    def __init__(self, setup: Setup, started_at: int = 0, actions: np.ndarray | None = None) -> None:
        """Started at this iteration; `actions`, those since then, bring them to where they were."""
        self._setup, self._schedule = setup, setup.config.schedule
        self._actions: list[np.ndarray] = []
        self._collector: Collector | None = None
        self.start(started_at)
        if actions is not None:
            self._collect(lambda obs, t: actions[t], len(actions))

    def start(self, iteration: int) -> None:
        """Start anew: from here on, only the seed and the iteration matter."""
        self.close()
        config = self._setup.config
        seed = int(np.random.SeedSequence([config.seed, iteration]).generate_state(1)[0] >> 2)
        env = make_vector(self._setup.spec, self._schedule.num_envs, seed, config.backend, self._setup.reference)
        first_lengths = staggered(self._schedule.num_envs, self._setup.spec.max_episode_steps)
        space, lags = self._setup.shape.action_space, self._setup.agent_lags
        self._collector = Collector(env, space, lags, first_lengths, self._setup.spec.id)
        self._actions = []
        self.started_at = iteration

    def rollout(self, actor: tuple[Actor, Normaliser] | None, iteration: int) -> tuple[Rollout, list[float]]:
        """The iteration's steps, with actions sampled from the actor (None: uniformly), and the returns of ended episodes."""
        if self._schedule.restart_every and iteration % self._schedule.restart_every == 0 and iteration != self.started_at:
            self.start(iteration)
        config, shape = self._setup.config, (self._schedule.length_of(iteration), self._schedule.num_envs)
        if actor is None:
            rng = np.random.default_rng([config.seed, iteration])
            actions = self._setup.shape.action_space.uniform(rng, shape)
            return self._collect(lambda obs, t: actions[t], shape[0])
        acting, normaliser = actor
        key = key_for(config.seed, Use.ACTING, iteration)
        noise = np.asarray(rollout_noise(acting, key, shape))
        return self._collect(lambda obs, t: act(acting, normaliser, obs, noise[t]), shape[0])

    def _collect(self, choose: Callable[[np.ndarray, int], Any], num_steps: int) -> tuple[Rollout, list[float]]:
        assert self._collector is not None
        rollout, returns = self._collector.collect(choose, num_steps)
        self._actions.append(rollout.action)
        return rollout, returns

    def actions(self) -> np.ndarray | None:
        """The actions since the start, to bring fresh environments to this very point."""
        return np.concatenate(self._actions) if self._actions else None

    def close(self) -> None:
        if self._collector is not None:
            self._collector.close()
