"""What the agent did: steps of many environments, with the true successor of every state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from iddm.envs.numbers import check_observations, check_rewards
from iddm.envs.spaces import ActionSpace
from iddm.envs.vector import VectorEnv


class Rollout(NamedTuple):
    """`T` steps of `N` environments. `next_obs` is the true successor, also where an episode ends."""

    obs: Float[np.ndarray, "T N obs"]
    action: Float[np.ndarray, "T N actions"] | Int[np.ndarray, "T N"]
    next_obs: Float[np.ndarray, "T N obs"]
    env_reward: Float[np.ndarray, "T N"]
    terminated: Bool[np.ndarray, "T N"]
    truncated: Bool[np.ndarray, "T N"]
    valid: Bool[np.ndarray, "T N"]
    """False on the row that an autoreset makes: the action was ignored, and the successor is a new episode's start."""
    step: Int[np.ndarray, "T N"]
    """Time within the episode: 0 on its first row, or the time in the demonstration where the episode began."""
    past: Float[np.ndarray, "T N states obs"] | None = None
    """The states before `next_obs` that a discriminator compares, oldest first; None where that is `obs` alone."""


class Collector:
    """Steps the environments and remembers where they are; also keeps the returns of the episodes that ended."""

    def __init__(
        self,
        env: VectorEnv,
        space: ActionSpace,
        lags: tuple[int, ...] = (1,),
        first_lengths: Int[np.ndarray, " N"] | None = None,
        env_id: str = "The environment",
    ) -> None:
        """`first_lengths`: the first episode of each environment is cut after so many steps, if it lasts that long."""
        self._env = env
        self._env_id = env_id
        self._space = space
        self._obs = env.reset()
        check_observations(env_id, self._obs[None], np.zeros((1, len(self._obs)), np.int32))
        self._ended = np.zeros(len(self._obs), bool)
        self._return = np.zeros(len(self._obs))
        self._step = env.start
        self._past = Past(lags, self._obs) if lags != (1,) else None
        never = np.full(len(self._obs), np.iinfo(np.int64).max)
        self._left_of_first = never if first_lengths is None else first_lengths.astype(np.int64)

    def collect(self, act: Callable[[np.ndarray, int], np.ndarray], num_steps: int) -> tuple[Rollout, list[float]]:
        """`num_steps` steps with `act(obs, t)`, and the returns of the episodes that ended on the way."""
        rows, finished = [], []
        for t in range(num_steps):
            action = np.asarray(act(self._obs, t))
            step = self._env.step(self._space.to_env(action))
            valid = ~self._ended
            past = None if self._past is None else self._past.before_successor(self._obs, valid)
            self._left_of_first -= 1
            cut = (self._left_of_first == 0) & valid & ~step.terminated & ~step.truncated
            rows.append(
                Rollout(
                    obs=self._obs,
                    action=action,
                    next_obs=step.obs,
                    env_reward=step.reward,
                    terminated=step.terminated,
                    truncated=step.truncated | cut,
                    valid=valid,
                    step=self._step,
                    past=past,
                )
            )
            self._step = np.where(valid, self._step + 1, self._env.start).astype(np.int32)
            self._return = np.where(valid, self._return + step.reward, 0.0)
            self._ended = (step.terminated | step.truncated) & valid
            self._left_of_first[self._ended] = np.iinfo(np.int64).max
            finished += self._return[self._ended].tolist()
            self._obs = step.obs
            if cut.any():
                self._restart(cut)
        stacked: list[Any] = [None if part[0] is None else np.stack(part) for part in zip(*rows, strict=True)]
        rollout = Rollout(*stacked)
        check_observations(self._env_id, rollout.next_obs, rollout.step + 1)
        check_rewards(self._env_id, rollout.env_reward, rollout.step + 1)
        return rollout, finished

    def _restart(self, which: np.ndarray) -> None:
        self._obs = self._obs.copy()  # the rows that were collected keep their successors
        self._obs[which] = self._env.restart(which)
        self._return[which] = 0.0
        self._step = np.where(which, self._env.start, self._step).astype(np.int32)
        if self._past is not None:
            self._past.begin(which)

    def close(self) -> None:
        self._env.close()


def staggered(num_envs: int, limit: int | None) -> Int[np.ndarray, " N"] | None:
    """First episodes of different lengths, so that environments do not run in step: a rollout then samples whole episodes."""
    return None if limit is None else -(-limit * np.arange(1, num_envs + 1) // num_envs)


class Past:
    """The last states of each environment's episode; its first state stands in for those before it."""

    def __init__(self, lags: tuple[int, ...], first: np.ndarray) -> None:
        self._lags = np.array(lags)
        self._states = np.repeat(first[None], self._lags.max(), axis=0)
        self._fresh = np.ones(len(first), bool)

    def begin(self, which: np.ndarray) -> None:
        """The next states of these environments begin episodes."""
        self._fresh = self._fresh | which

    def before_successor(self, obs: np.ndarray, valid: np.ndarray) -> Float[np.ndarray, "N states obs"]:
        """Take in the newest state; the states `lags` before its successor. The row after an autoreset begins an episode."""
        self._states = np.where(self._fresh[:, None], obs, np.concatenate([self._states[1:], obs[None]]))
        self._fresh = ~valid
        return np.swapaxes(self._states[-self._lags], 0, 1)
