"""DeepMimic's reward: be where the demonstration is, at the same time."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.spec import EnvShape
from iddm.errors import UserError
from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Term
from iddm.tasks import find_task
from iddm.utils.settings import WEIGHT, Range, check

COLUMN = Range(0, 10_000_000, whole=True)


def tracking_reward(
    position_gap: Float[Array, "rows joints"],
    velocity_gap: Float[Array, "rows joints2"],
    position_weight: float = 0.8,
    velocity_weight: float = 0.2,
) -> Float[Array, " rows"]:
    """r_t = w_p exp(−2 Σ_j ‖q̂_t^j − q_t^j‖₂) + w_v exp(−0.1 Σ_j ‖q̂̇_t^j − q̇_t^j‖₂)   (IDDM, Table 3).

    The gaps are q̂ − q and q̂̇ − q̇, in the environment's units; each joint is one number, so its norm is the absolute value.
    """
    near = jnp.exp(-2.0 * jnp.abs(position_gap).sum(-1))
    alike = jnp.exp(-0.1 * jnp.abs(velocity_gap).sum(-1))
    return position_weight * near + velocity_weight * alike


@dataclass(frozen=True)
class Tracking(Term):
    """Follows the first demonstration in time: s' of an episode's step t is compared with the demonstration's row t + 1.

    After the demonstration's end its last state stays the target. The joints' columns of our tasks are in `tasks.py`.
    """

    name: ClassVar[str] = "tracking"
    positions: tuple[int, ...] = ()
    """Columns of the joint angles; for our tasks, known."""
    velocities: tuple[int, ...] = ()
    """Columns of the joint velocities; for our tasks, known."""
    position_weight: float = 0.8
    """The paper's w_p."""
    velocity_weight: float = 0.2
    """The paper's w_v."""
    reference_starts: bool = False
    """Start episodes in states of the demonstration (Gymnasium's MuJoCo environments only; not in the paper)."""

    def __post_init__(self) -> None:
        check(self, self.name, position_weight=WEIGHT, velocity_weight=WEIGHT, positions=COLUMN, velocities=COLUMN)

    @property
    def needs_demos(self) -> bool:
        return True

    @property
    def needs_whole_episodes(self) -> bool:
        return True

    @property
    def starts_from_demos(self) -> bool:
        return self.reference_starts

    def for_env(self, shape: EnvShape) -> "Tracking":
        task = find_task(shape.env_id)
        if self.positions or self.velocities:
            wrong = [c for c in (*self.positions, *self.velocities) if not 0 <= c < shape.obs_size]
            if wrong:
                raise UserError(f"Column {wrong[0]} is tracked, and an observation of {shape.env_id} has {shape.obs_size}.")
            return self
        name_them = "name the columns with --tracking.positions and --tracking.velocities"
        if task is None or task.obs_size != shape.obs_size:
            raise UserError(
                f"{shape.env_id}: where joint angles and velocities are in its observation is not known; {name_them}."
            )
        if not task.positions:
            raise UserError(f"{task.name} has no tracking reward, as in the paper: it has no joints to follow ({name_them}).")
        return replace(self, positions=task.positions, velocities=task.velocities)

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        assert agent.target is not None
        gap = agent.target - agent.next_obs
        angles, speeds = (gap[:, jnp.array(columns, int)] for columns in (self.positions, self.velocities))
        return tracking_reward(angles, speeds, self.position_weight, self.velocity_weight)
