"""Many environments at once, behind one interface with two backends.

Both backends reset an ended environment on the step *after* its end (next-step autoreset): that step ignores the action and
yields the first observation of the new episode. It is not a transition of the environment, so the collector marks the
row invalid; in exchange, every step returns the true successor state, also at the end of an episode.
"""

from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from iddm.envs.redundant import OPTIONS, Drive
from iddm.envs.reference import ReferenceStarts
from iddm.envs.spaces import action_space_of
from iddm.envs.spec import EnvSpec, make_env, without_notices
from iddm.errors import UserError
from iddm.tasks import REDUNDANT
from iddm.utils.cores import available_cores

Backend = Literal["auto", "envpool", "gymnasium"]


class Step(NamedTuple):
    """What one step of all environments returns; `obs` is the true successor state."""

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


@runtime_checkable
class VectorEnv(Protocol):
    """The interface of both backends."""

    start: np.ndarray
    """[num_envs] int32: the time of its demonstration at which each environment's newest episode began; 0 without one."""

    def reset(self) -> np.ndarray: ...
    def restart(self, which: np.ndarray) -> np.ndarray:
        """Begin new episodes in these environments (a mask), at once; their first observations, in order."""
        ...

    def step(self, action: np.ndarray) -> Step: ...
    def close(self) -> None: ...


class GymnasiumVector:
    """Any Gymnasium environment, stepped one after another in this process."""

    def __init__(self, spec: EnvSpec, num_envs: int, seed: int, reference: np.ndarray | None = None) -> None:
        def make() -> gym.Env:
            env = make_env(spec)
            return env if reference is None else ReferenceStarts(env, reference, spec.id)

        try:
            self._env = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)
        except RuntimeError as error:
            raise UserError(
                f"{spec.id}: its spaces differ each time it is made, so copies cannot be stepped together."
            ) from error
        self._seed = seed
        self.start = np.zeros(num_envs, np.int32)

    def reset(self) -> np.ndarray:
        obs, info = self._env.reset(seed=self._seed)
        self._note_starts(info)
        return obs.astype(np.float32)

    def restart(self, which: np.ndarray) -> np.ndarray:
        obs, info = self._env.reset(options={"reset_mask": which})
        self._note_starts(info)
        return obs[which].astype(np.float32)

    def step(self, action: np.ndarray) -> Step:
        obs, reward, terminated, truncated, info = self._env.step(action)
        self._note_starts(info)
        return Step(obs.astype(np.float32), reward.astype(np.float32), terminated, truncated)

    def _note_starts(self, info: dict[str, Any]) -> None:
        if "start" in info:
            self.start = np.where(info["_start"], info["start"], self.start).astype(np.int32)

    def close(self) -> None:
        self._env.close()


class EnvPoolVector:
    """EnvPool's C++ environments, stepped by a pool of threads. Redundant motors drive the plain one."""

    def __init__(self, spec: EnvSpec, num_envs: int, seed: int) -> None:
        import envpool

        self.start = np.zeros(num_envs, np.int32)
        with without_notices():
            self._env = envpool.make(
                _without_motors(spec).id,
                env_type="gymnasium",
                num_envs=num_envs,
                num_threads=min(num_envs, len(available_cores())),
                seed=seed,
                max_episode_steps=spec.max_episode_steps or np.iinfo(np.int32).max,
            )
            self._dtype = self._env.action_space.dtype
            _ = self._env.observation_space  # made on first use, with a notice
        self._drive: Drive | None = None
        if spec.id.startswith(REDUNDANT):
            self._drive = Drive.of(spec.id, action_space_of(self._env.action_space, spec.id), **spec.kwargs)

    def reset(self) -> np.ndarray:
        obs, _ = self._env.reset()
        return obs.reshape(obs.shape[0], -1).astype(np.float32)

    def restart(self, which: np.ndarray) -> np.ndarray:
        obs, _ = self._env.reset(np.flatnonzero(which))
        return obs.reshape(obs.shape[0], -1).astype(np.float32)

    def step(self, action: np.ndarray) -> Step:
        effort = 0.0
        if self._drive is not None:
            action, effort = self._drive.torque_and_effort(action)
        obs, reward, terminated, truncated, _ = self._env.step(action.astype(self._dtype))
        flat = obs.reshape(obs.shape[0], -1).astype(np.float32)
        return Step(flat, (reward - effort).astype(np.float32), terminated, truncated)

    def close(self) -> None:
        self._env.close()


def envpool_has(spec: EnvSpec) -> bool:
    """Whether EnvPool is installed and steps this very environment (without options: its own differ, but motors are ours)."""
    try:
        import envpool
    except ImportError:
        return False
    plain = _without_motors(spec)
    if not spec.registered or plain.kwargs or plain.id not in envpool.list_all_envs():
        return False
    with without_notices():
        return isinstance(envpool.make_spec(plain.id).observation_space, gym.spaces.Box)


def _without_motors(spec: EnvSpec) -> EnvSpec:
    """The environment that redundant motors drive, with its own options; any other as it is."""
    if not spec.id.startswith(REDUNDANT):
        return spec
    own = {name: value for name, value in spec.kwargs.items() if name not in OPTIONS}
    return replace(spec, id=spec.id.removeprefix(REDUNDANT), kwargs=own)


def choose_backend(spec: EnvSpec, backend: Backend) -> Literal["envpool", "gymnasium"]:
    """EnvPool where it has the task, Gymnasium for everything else."""
    if backend == "gymnasium":
        return "gymnasium"
    if envpool_has(spec):
        return "envpool"
    if backend == "envpool":
        options = " with options" if spec.kwargs else ""
        raise UserError(f"EnvPool does not have {spec.id}{options} on this machine; use --backend gymnasium.")
    return "gymnasium"


def make_vector(spec: EnvSpec, num_envs: int, seed: int, backend: Backend, reference: np.ndarray | None = None) -> VectorEnv:
    """`num_envs` copies of the environment, seeded differently; with a reference, episodes start in its rows."""
    if reference is not None:
        if backend == "envpool":
            raise UserError("EnvPool cannot start episodes from demonstrated states; use --backend gymnasium.")
        return GymnasiumVector(spec, num_envs, seed, reference)
    vector = {"envpool": EnvPoolVector, "gymnasium": GymnasiumVector}[choose_backend(spec, backend)]
    return vector(spec, num_envs, seed)
