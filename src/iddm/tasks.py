"""The tasks known by name: the paper's six and others, each with everything that is specific to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """One control task."""

    name: str
    env_id: str
    """Gymnasium's name."""
    obs_size: int
    max_episode_steps: int
    paper_obs_size: int | None = None
    """IDDM, Table 4; None where the paper does not have the task."""
    positions: tuple[int, ...] = ()
    """Columns of the joint angles (and of a cart's place, or an angle's sine and cosine): the root's pose is not a joint."""
    velocities: tuple[int, ...] = ()
    """Columns of the joint velocities."""
    random_return: float | None = None
    """Of uniformly random actions, over 50 episodes: `iddm eval random --env TASK`."""
    study_steps: int = 1_000_000
    """Environment steps of every method in the studies."""
    imitation: Mapping[str, Any] = field(default_factory=dict)
    """Settings of every imitation method on this task, where they differ from the method's own (docs/methods/iddm.md)."""
    expert: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its expert, where they differ from the learner's (PPO, unless they name another): `iddm expert TASK` starts
    from them."""


def _columns(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


TASKS: tuple[Task, ...] = (
    Task("CartPole", "CartPole-v1", 4, 200, 4, random_return=22.6, study_steps=100_000, expert={"steps": 100_000}),
    Task(
        "InvertedPendulum",
        "InvertedPendulum-v5",
        4,
        1000,
        4,
        random_return=5.6,
        positions=(0, 1),
        velocities=(2, 3),
        study_steps=200_000,
        expert={"steps": 200_000},
    ),
    Task(
        "InvertedDoublePendulum",
        "InvertedDoublePendulum-v5",
        9,
        1000,
        11,
        random_return=46.7,
        positions=_columns(0, 4),
        velocities=_columns(5, 7),
        study_steps=400_000,
        expert={"steps": 1_000_000, "hidden": (64, 64)},
    ),
    Task(
        "Hopper",
        "Hopper-v5",
        11,
        1000,
        11,
        random_return=17.7,
        positions=_columns(2, 4),
        velocities=_columns(8, 10),
        imitation={"log_std_init": -0.5},
        expert={
            "steps": 4_000_000,
            "hidden": (256, 256),
            "num_envs": 32,
            "log_std_init": -0.5,
            "batch_size": 1024,
            "discount": 0.995,
        },
    ),
    Task(
        "HalfCheetah",
        "HalfCheetah-v5",
        17,
        1000,
        17,
        random_return=-285.9,
        positions=_columns(2, 7),
        velocities=_columns(11, 16),
        expert={"steps": 1_000_000, "hidden": (64, 64)},
    ),
    Task(
        "Ant",
        "Ant-v5",
        105,
        1000,
        111,
        random_return=-52.2,
        positions=_columns(5, 12),
        velocities=_columns(19, 26),
        imitation={"log_std_init": -2.0},
        expert={"steps": 9_000_000, "hidden": (128, 128), "num_envs": 32, "batch_size": 1024, "discount": 0.995},
    ),
    Task("Walker2d", "Walker2d-v5", 17, 1000, random_return=0.7, positions=_columns(2, 7), velocities=_columns(11, 16)),
    Task(
        "Humanoid",
        "Humanoid-v5",
        348,
        1000,
        random_return=107.7,
        positions=_columns(5, 21),
        velocities=_columns(28, 44),
        expert={"steps": 2_000_000, "hidden": (128, 128), "num_envs": 32, "batch_size": 1024, "epochs": 5},
    ),
    Task(
        "Pendulum", "Pendulum-v1", 3, 200, random_return=-1180.2, expert={"learner": "sac", "steps": 20_000, "hidden": (64, 64)}
    ),
    Task("Reacher", "Reacher-v5", 10, 50, random_return=-43.1, expert={"learner": "sac", "steps": 100_000}),
    Task("Acrobot", "Acrobot-v1", 6, 500, random_return=-500.0, expert={"steps": 1_000_000, "hidden": (64, 64)}),
    Task("MountainCarContinuous", "MountainCarContinuous-v0", 2, 999, random_return=-33.1),
    Task(
        "LunarLanderContinuous",
        "LunarLanderContinuous-v3",
        8,
        1000,
        random_return=-225.7,
        expert={"steps": 3_000_000, "hidden": (64, 64), "discount": 0.999, "gae_decay": 0.98, "log_std_init": -0.5},
    ),
    Task(
        "PointMass",
        "iddm/PointMass-v0",
        4,
        100,
        random_return=-133.2,
        expert={"learner": "sac", "steps": 20_000, "hidden": (64, 64)},
    ),
    Task("Gridworld", "iddm/Gridworld-v0", 41, 200, random_return=-162.4),
)


REDUNDANT = "redundant/"
"""Before the name of an environment: the same with several motors per joint (`iddm.envs.redundant`)."""


def find_task(name: str) -> Task | None:
    """The task of this name ("Hopper"), Gymnasium id ("Hopper-v5") or either with redundant motors, or None."""
    plain = name.lower().removeprefix(REDUNDANT)
    return next((t for t in TASKS if plain in (t.name.lower(), t.env_id.lower())), None)
