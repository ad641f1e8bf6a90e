"""The paper's six tasks as data, with two more beside them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One control task: what Gymnasium calls it and the size of its state in the paper (IDDM, Table 4)."""

    name: str
    env_id: str
    obs_size: int
    max_episode_steps: int
    paper_obs_size: int | None = None
    note: str = ""
    positions: tuple[int, ...] = ()
    """Columns of the joint angles (and of a cart's place, or an angle's sine and cosine): the root's pose is not a joint."""
    velocities: tuple[int, ...] = ()
    """Columns of the joint velocities."""


def _columns(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


TASKS: tuple[Task, ...] = (
    Task("CartPole", "CartPole-v1", 4, 200, 4, "v1 with the paper's 200 steps"),
    Task("InvertedPendulum", "InvertedPendulum-v5", 4, 1000, 4, positions=(0, 1), velocities=(2, 3)),
    Task(
        "InvertedDoublePendulum",
        "InvertedDoublePendulum-v5",
        9,
        1000,
        11,
        note="v5 drops two constraint forces that are always zero",
        positions=_columns(0, 4),
        velocities=_columns(5, 7),
    ),
    Task(
        "Hopper",
        "Hopper-v5",
        11,
        1000,
        11,
        positions=_columns(2, 4),
        velocities=_columns(8, 10),
    ),
    Task(
        "HalfCheetah",
        "HalfCheetah-v5",
        17,
        1000,
        17,
        positions=_columns(2, 7),
        velocities=_columns(11, 16),
    ),
    Task(
        "Ant",
        "Ant-v5",
        105,
        1000,
        111,
        note="v5 drops the world body's six contact forces, which are always zero",
        positions=_columns(5, 12),
        velocities=_columns(19, 26),
    ),
    Task(
        "Walker2d",
        "Walker2d-v5",
        17,
        1000,
        note="not in the paper",
        positions=_columns(2, 7),
        velocities=_columns(11, 16),
    ),
    Task(
        "Humanoid",
        "Humanoid-v5",
        348,
        1000,
        note="not in the paper",
        positions=_columns(5, 21),
        velocities=_columns(28, 44),
    ),
)


def find_task(name: str) -> Task | None:
    """The task of this name ("Hopper") or Gymnasium id ("Hopper-v5"), or None."""
    return next((t for t in TASKS if name.lower() in (t.name.lower(), t.env_id.lower())), None)
