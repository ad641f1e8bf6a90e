"""A user's environment with flat observations. Whatever goes wrong in it is one sentence: what, in which call, at which step."""

import math
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np

from iddm.errors import UserError, warn_user

MAX_OBS_SIZE = 1_000_000
"""Numbers in a flat observation. A Discrete observation becomes one-hot, so that Discrete(10**9) would be 4 GB per step."""


FAILURES = (Exception, SystemExit)
"""A user's code can fail in any way, and also call sys.exit."""


class GuardedEnv(gym.Wrapper):
    """Flattens observations and checks everything that the environment returns.

    `info` is dropped: nothing here reads it, and values whose types change from step to step break Gymnasium's vectors.
    """

    def __init__(self, env: Any, env_id: str) -> None:
        if not isinstance(env, gym.Env):
            raise UserError(f"{env_id}: the function made {_described(env)}, and should return a gymnasium.Env.")
        for name in ("observation_space", "action_space"):
            if not isinstance(getattr(env, name, None), gym.Space):
                raise UserError(f"{env_id}: its {name} is {_described(getattr(env, name, None))}, not a Gymnasium space.")
        super().__init__(env)
        self._id = env_id
        self._step = 0
        self._raw = env.observation_space
        self.observation_space = _flat_space(self._raw, env_id)
        self._shape = self.observation_space.shape

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        self._step = 0
        try:
            result = self.env.reset(seed=seed, options=options)
        except FAILURES as error:
            self._raised("reset", error)
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
            self._wrong(
                "reset", f"returned {_described(result)}; return two values, the observation and a dictionary (it may be empty)"
            )
        return self._flat(result[0], "reset"), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._step += 1
        try:
            result = self.env.step(action)
        except FAILURES as error:
            self._raised("step", error)
        if not isinstance(result, tuple) or len(result) != 5:
            self._wrong("step", f"returned {_described(result)}; {FIVE}")
        obs, reward, terminated, truncated, _ = result
        return self._flat(obs, "step"), self._number(reward), self._flag(terminated), self._flag(truncated), {}

    def close(self) -> None:
        """What was learned or measured is already there, so a failure is only a warning."""
        try:
            self.env.close()
        except FAILURES as error:
            warn_user(f"{self._id}: `close` raised {reason(error)}; nothing else was affected.")

    def _flat(self, obs: Any, call: str) -> np.ndarray:
        try:
            flat = gym.spaces.flatten(self._raw, obs)
        except Exception as error:
            self._wrong(call, f"returned an observation that does not fit {self._raw} ({reason(error)})", error)
        if not isinstance(flat, np.ndarray) or flat.shape != self._shape:
            self._wrong(call, f"returned {_described(obs)}, which does not fit the observation space {self._raw}")
        if not np.isfinite(flat).all():
            place = int(np.flatnonzero(~np.isfinite(flat))[0])
            self._wrong(call, f"returned an observation with {flat[place]} in place {place}; observations must be finite")
        return flat

    def _number(self, reward: Any) -> float:
        if not isinstance(reward, float):
            value = np.asarray(reward)
            if value.size != 1 or value.dtype.kind not in "fiub":
                self._wrong("step", f"returned {_described(reward)} as the reward; return a number, 0.0 where there is none")
            reward = float(value.item())
        if not math.isfinite(reward):
            self._wrong("step", f"returned {reward} as the reward; return a finite number, 0.0 where there is none")
        return float(reward)

    def _flag(self, flag: Any) -> bool:
        if not isinstance(flag, (bool, np.bool_)):
            value = np.asarray(flag)
            if value.size != 1 or value.dtype.kind not in "iub":
                self._wrong("step", f"returned {_described(flag)} as `terminated` or `truncated`; return True or False")
            return bool(value.item())
        return bool(flag)

    def _raised(self, call: str, error: BaseException) -> NoReturn:
        if isinstance(error, UserError):
            raise error
        hint = f"; {FIVE}" if call == "step" and "values to unpack" in str(error) else ""
        self._wrong(call, f"raised {reason(error)}{hint} (IDDM_TRACEBACK=1 shows where)", error)

    def _wrong(self, call: str, what: str, error: BaseException | None = None) -> NoReturn:
        place = f" number {self._step} of the episode" if call == "step" else ""
        raise UserError(f"{self._id}: `{call}`{place} {what}.") from error


FIVE = "return five values from `step`: observation, reward, terminated, truncated, info"


def _flat_space(space: gym.Space, env_id: str) -> gym.spaces.Box:
    try:
        size = gym.spaces.flatdim(space)
        if size > MAX_OBS_SIZE:
            raise UserError(
                f"{env_id}: observations are {space}, {size:,} numbers when flattened; at most {MAX_OBS_SIZE:,} are supported."
            )
        flat = gym.spaces.flatten_space(space)
    except (NotImplementedError, ValueError) as error:
        raise UserError(f"{env_id}: observations are {space}, which cannot be flattened.") from error
    if not isinstance(flat, gym.spaces.Box) or len(flat.shape) != 1 or flat.shape[0] == 0:
        raise UserError(f"{env_id}: observations are {space}, which cannot be flattened.")
    return flat


def reason(error: BaseException) -> str:
    """The type, and the first line of what it says."""
    line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__


def _described(value: Any) -> str:
    """ "None", "an array of shape (4,)", "a tuple of 4"."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a value of type {type(value).__name__}"
