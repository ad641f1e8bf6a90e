"""Names of an observation's columns, where the environment or its model has them."""

from typing import Any

import gymnasium as gym

FREE = (("x", "y", "z", "qw", "qx", "qy", "qz"), ("x_vel", "y_vel", "z_vel", "wx", "wy", "wz"))
BALL = (("qw", "qx", "qy", "qz"), ("wx", "wy", "wz"))
"""Positions and velocities of joints that have several; slides and hinges have one of each (mujoco.mjtJoint)."""

DOCUMENTED = {
    "CartPoleEnv": ("cart_position", "cart_velocity", "pole_angle", "pole_angular_velocity"),
    "PendulumEnv": ("theta_cos", "theta_sin", "theta_vel"),
    "MountainCarEnv": ("position", "velocity"),
    "Continuous_MountainCarEnv": ("position", "velocity"),
    "AcrobotEnv": ("theta1_cos", "theta1_sin", "theta2_cos", "theta2_sin", "theta1_vel", "theta2_vel"),
    "LunarLander": ("x", "y", "x_vel", "y_vel", "angle", "angle_vel", "left_leg", "right_leg"),
    "InvertedDoublePendulumEnv": (
        *("slider", "hinge_sin", "hinge2_sin", "hinge_cos", "hinge2_cos", "slider_vel", "hinge_vel", "hinge2_vel"),
        "constraint_force",
    ),
    "ReacherEnv": (
        *("joint0_cos", "joint1_cos", "joint0_sin", "joint1_sin", "target_x", "target_y", "joint0_vel", "joint1_vel"),
        *("to_target_x", "to_target_y"),
    ),
}
"""Gymnasium's environments whose observations are not just a model's positions and velocities, by class."""


def names_of(env: gym.Env, obs_size: int) -> tuple[str, ...]:
    """One name per column of the observation; nothing where they are not known."""
    inner: Any = env.unwrapped
    names = names_in_space(inner.observation_space) or _names_in_model(inner)
    if not names and type(inner).__module__.startswith("gymnasium."):
        names = list(DOCUMENTED.get(type(inner).__name__, ()))
    return tuple(names) if len(names) == obs_size else ()  # a wrapper may have changed them


def names_in_space(space: gym.Space, name: str = "") -> list[str]:
    """ "place.x", "place.y[0]", … of a dictionary or tuple of spaces; nothing for a single one."""
    parts: list[tuple[str, gym.Space]] = []
    if isinstance(space, gym.spaces.Dict):
        parts = [(str(key), part) for key, part in space.spaces.items()]
    elif isinstance(space, gym.spaces.Tuple):
        parts = [(str(i), part) for i, part in enumerate(space.spaces)]
    elif name:
        return _numbered(name, gym.spaces.flatdim(space))
    return [column for key, part in parts for column in names_in_space(part, f"{name}.{key}" if name else key)]


def _names_in_model(env: Any) -> list[str]:
    """The joints of Gymnasium's MuJoCo environments (version 5): `rootz`, `rootz_vel`, then other parts as `cfrc_ext[0]`."""
    model: Any
    structure, model = getattr(env, "observation_structure", None), getattr(env, "model", None)
    if not isinstance(structure, dict) or not hasattr(model, "jnt_type"):
        return []
    positions, velocities = [], []
    for i, kind in enumerate(model.jnt_type):
        joint = model.joint(i).name or f"joint{i}"
        several = {0: FREE, 1: BALL}.get(int(kind))
        positions += [f"{joint}_{part}" for part in several[0]] if several else [joint]
        velocities += [f"{joint}_{part}" for part in several[1]] if several else [f"{joint}_vel"]
    known = {"qpos": positions[structure.get("skipped_qpos", 0) :], "qvel": velocities}
    parts = [known.get(part) or _numbered(part, size) for part, size in structure.items() if part != "skipped_qpos"]
    return [name for part in parts for name in part]


def _numbered(name: str, size: int) -> list[str]:
    return [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
