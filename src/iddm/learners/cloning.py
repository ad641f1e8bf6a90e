"""Behavioural cloning from the expert's states and actions (BC)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from iddm.envs.rollout import Rollout
from iddm.learners.base import Learner, Metrics, Problem, Progress, Schedule, all_finite
from iddm.learners.likelihood import Fit, Rows, as_action, maximise
from iddm.nets import Normaliser, Policy, make_policy
from iddm.rewards.expert import Expert
from iddm.utils.settings import BATCH, COUNT, RATE, WIDTH, Range, check

EPOCHS_PER_ITERATION = 10
LOG_STD = Range(-20, 5)


class Cloned(NamedTuple):
    """The policy that is being learned, and the demonstrations' scale."""

    policy: Fit
    scale: Normaliser


@dataclass(frozen=True)
class Cloning(Learner):
    """BC: max_θ E_expert[log π_θ(a|s)]   (Pomerleau 1991; the paper's [BC]). It never acts, so it takes no environment steps."""

    name: ClassVar[str] = "cloning"
    checkpoint_every: ClassVar[int] = 1
    hidden: tuple[int, ...] = (300, 400)
    """Width of the policy's hidden layers."""
    log_std_init: float = -1.0
    """Initial log standard deviation of a continuous policy (a bounded action is within [-1, 1])."""
    learning_rate: float = 3e-4
    """Learning rate of Adam."""
    batch_size: int = 512
    """Batch size per gradient step."""
    epochs: int = 300
    """Passes over the demonstrations."""

    def __post_init__(self) -> None:
        check(self, hidden=WIDTH, log_std_init=LOG_STD, learning_rate=RATE, batch_size=BATCH, epochs=COUNT)

    @property
    def needs_demos(self) -> bool:
        return True

    @property
    def needs_expert_actions(self) -> bool:
        return True

    def schedule(self, steps: int) -> Schedule:
        return Schedule(-(-self.epochs // EPOCHS_PER_ITERATION), epochs=self.epochs)

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> Cloned:
        assert expert is not None
        policy = make_policy(key, problem.obs_size, problem.action_space, self.hidden, self.log_std_init)
        return Cloned(Fit.start(policy), demo_scale(expert.rows))

    def actor(self, state: Cloned, progress: Progress) -> None:
        return None

    def update(
        self,
        problem: Problem,
        state: Cloned,
        rollout: Rollout | None,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[Cloned, Metrics]:
        assert expert is not None
        assert expert.actions is not None
        rows = policy_rows(expert, state.scale, as_action(state.policy.model, expert.actions))
        epochs_before = progress.iteration * EPOCHS_PER_ITERATION
        num_epochs = jnp.minimum(self.epochs - epochs_before, EPOCHS_PER_ITERATION)
        policy, learned = maximise(
            state.policy,
            rows,
            key,
            epochs=EPOCHS_PER_ITERATION,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            num_epochs=num_epochs,
            last=progress.last,
        )
        metrics = {"epochs": epochs_before + num_epochs} | {f"cloning/{name}": x for name, x in learned.items()}
        return Cloned(policy, state.scale), metrics | {"finite/cloning": all_finite(policy)}

    def policy(self, state: Cloned) -> tuple[Policy, Normaliser]:
        return state.policy.model, state.scale


def demo_scale(rows: Float[Array, "rows obs"]) -> Normaliser:
    """The demonstrations' scale, for whoever acts: the agent sees its own states as the expert's were seen.

    A column that does not move in the demonstrations keeps its unit.
    """
    var = rows.var(0)
    return Normaliser(jnp.ones(()), rows.mean(0), jnp.where(var > 1e-6, var, 1.0), None, None)


def policy_rows(expert: Expert, scale: Normaliser, actions: Array) -> Rows:
    """The demonstrated states with these actions."""
    x = scale.own(expert.rows[expert.starts])
    return Rows(x=x, a=actions, weight=jnp.ones(len(x)))
