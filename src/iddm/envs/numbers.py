"""Whether what environments return can be learned from: checked once per rollout, whatever steps them."""

import numpy as np

from iddm.errors import UserError

LARGEST = 1e15
"""Squares of observations, summed over a rollout, must be finite in float32."""


def check_observations(env_id: str, obs: np.ndarray, step: np.ndarray) -> None:
    """Raise one sentence for the first bad number of `obs` [T, N, obs]; `step` [T, N] is the time within the episode."""
    if _sound(obs):
        return
    t, env, column = np.argwhere(~(np.abs(obs) <= LARGEST))[0].tolist()
    raise UserError(_sentence(env_id, f"observation column {column}", float(obs[t, env, column]), int(step[t, env]), env))


def check_rewards(env_id: str, reward: np.ndarray, step: np.ndarray) -> None:
    """Raise one sentence for the first bad reward of [T, N]."""
    if _sound(reward):
        return
    t, env = np.argwhere(~(np.abs(reward) <= LARGEST))[0].tolist()
    raise UserError(_sentence(env_id, "the reward", float(reward[t, env]), int(step[t, env]), env))


def _sound(numbers: np.ndarray) -> bool:
    return bool((np.abs(numbers) <= LARGEST).all())  # NaN is not


def _sentence(env_id: str, what: str, value: float, step: int, env: int) -> str:
    return (
        f"{env_id}: {what} is {value:g} at step {step} of environment {env}: an environment must return numbers between "
        f"±{LARGEST:g}, so mend it, or clip them in a wrapper."
    )
