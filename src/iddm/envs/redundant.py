"""Redundant actuators: any environment with a Box of actions, where several motors drive each joint.

`redundant/HalfCheetah-v5` has k motors per joint, and the torque of a joint is the mean of what they do:

    u_j = (1/k) Σ_i φ(a_ij)     actions count motor by motor: a_00, a_01, …, a_10, a_11, …

Observations do not show who did the work, so demonstrations of the plain task are demonstrations here too. What the
motors of a joint do against each other, φ(a_ij) − u_j, is the null space: it changes no state, and nothing but effort.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import register

from iddm.envs.spaces import ActionSpace, action_space_of
from iddm.errors import UserError
from iddm.tasks import REDUNDANT

MAX_MOTORS = 100
MotorMap = Literal["mean", "sine"]
OPTIONS = ("motors", "map", "motor_cost")
"""Of `Redundant` itself; others are the plain environment's."""


@dataclass(frozen=True)
class Motors:
    """k motors per joint, in units where a joint's torque is within [-1, 1]."""

    count: int = 2
    map: MotorMap = "mean"
    """φ: the identity ("mean"), or φ(a) = sin(π a / 2), which maps [-1, 1] onto itself ("sine")."""

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or not 1 <= self.count <= MAX_MOTORS:
            raise UserError(f"motors is {self.count}: expected a whole number from 1 to {MAX_MOTORS}.")
        if self.map not in ("mean", "sine"):
            raise UserError(f"map is {self.map!r}: expected mean or sine.")

    def work(self, action: np.ndarray) -> np.ndarray:
        """φ(a_ij) as [..., motors, joints]."""
        by_motor = np.asarray(action).reshape(*np.shape(action)[:-1], self.count, -1)
        return by_motor if self.map == "mean" else np.sin(0.5 * np.pi * by_motor)

    def torque(self, action: np.ndarray) -> np.ndarray:
        """u [..., joints]: the mean over the motors."""
        return self.work(action).mean(axis=-2)

    def even(self, torque: np.ndarray) -> np.ndarray:
        """The action of least effort that makes this torque: all motors of a joint do the same."""
        single = torque if self.map == "mean" else np.arcsin(np.clip(torque, -1.0, 1.0)) * 2 / np.pi
        return np.concatenate([single] * self.count, axis=-1)

    def null_energy(self, action: np.ndarray) -> np.ndarray:
        """Σ_j (1/k) Σ_i (φ(a_ij) − u_j)²: the energy of the part of an action that changes no state; 0 for `even`."""
        work = self.work(action)
        return ((work - work.mean(axis=-2, keepdims=True)) ** 2).mean(axis=-2).sum(axis=-1)


def motors_of(name: str, kwargs: Mapping[str, Any]) -> Motors | None:
    """The motors per joint of an environment; None where it has no redundant ones."""
    return Motors(kwargs.get("motors", 2), kwargs.get("map", "mean")) if name.startswith(REDUNDANT) else None


def shared_evenly(action: np.ndarray, joints: ActionSpace, motors: Motors) -> np.ndarray:
    """An action of the plain environment as one of all motors, each of which does the same; both in the environment's units."""
    centre, scale = (np.tile(part, motors.count) for part in joints.centre_and_scale)
    return (centre + scale * motors.even(joints.from_env(action))).astype(np.float32)


@dataclass(frozen=True)
class Drive:
    """From the action of all motors to that of the plain environment, both in the environment's units."""

    motors: Motors
    joints: ActionSpace
    cost: float = 0.0
    """Of what single motors do, also against each other: c Σ_j (1/k) Σ_i a_ij² is taken from the reward."""

    @staticmethod
    def of(env: str, joints: ActionSpace, motors: int = 2, map: MotorMap = "mean", motor_cost: float = 0.0) -> "Drive":
        """With an environment's options, which are checked."""
        if not isinstance(motor_cost, int | float) or not np.isfinite(motor_cost):
            raise UserError(f"motor_cost is {motor_cost!r}: expected a number.")
        if joints.discrete:
            raise UserError(f"{env}: its actions are choices, and only joints (a Box) can have several motors.")
        if map == "sine" and not np.isfinite([*joints.low, *joints.high]).all():
            raise UserError(f"{env}: its actions have no limits, and the map sine needs some; use mean.")
        return Drive(Motors(motors, map), joints, float(motor_cost))

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = (np.tile(np.asarray(limit, np.float32), self.motors.count) for limit in (self.joints.low, self.joints.high))
        return low, high

    def torque_and_effort(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of one action, or of each of several."""
        centre, scale = (np.tile(part, self.motors.count) for part in self.joints.centre_and_scale)
        own = (np.asarray(action, np.float64) - centre) / scale
        return self.joints.to_env(self.motors.torque(own)), self.cost * (own**2).sum(axis=-1) / self.motors.count


class Redundant(gym.Wrapper):
    """An environment with several motors per joint; other options are the environment's own."""

    def __init__(self, env: str, motors: int = 2, map: MotorMap = "mean", motor_cost: float = 0.0, **options: Any) -> None:
        super().__init__(gym.make(env, max_episode_steps=-1, disable_env_checker=True, **options))
        self._drive = Drive.of(env, action_space_of(self.env.action_space, env), motors, map, motor_cost)
        self.action_space = gym.spaces.Box(*self._drive.limits, dtype=np.float32)

    def step(self, action: np.ndarray) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        torque, effort = self._drive.torque_and_effort(np.ravel(action))
        obs, reward, terminated, truncated, info = self.env.step(torque)
        return obs, float(reward) - float(effort), terminated, truncated, info


def register_redundant(env_id: str) -> str:
    """Make `redundant/ID` known to Gymnasium, for a registered ID; returns its name."""
    if ":" in env_id or "/" in env_id:
        raise UserError(f"{REDUNDANT}{env_id}: redundant motors are for registered environments without a namespace.")
    name = f"{REDUNDANT}{env_id}"
    if name not in gym.registry:
        register(name, entry_point="iddm.envs.redundant:Redundant", kwargs={"env": env_id})
    return name
