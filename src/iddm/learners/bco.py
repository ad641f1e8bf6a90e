"""Behavioural cloning from observation: from states alone, with actions that an inverse dynamics model infers (BCO)."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from iddm.envs.rollout import Rollout
from iddm.learners.base import Learner, Metrics, Problem, Progress, Schedule, all_finite
from iddm.learners.cloning import LOG_STD, demo_scale, policy_rows
from iddm.learners.likelihood import Fit, Rows, as_action, maximise
from iddm.nets import Normaliser, Policy, make_policy
from iddm.rewards.expert import Expert
from iddm.utils.settings import BATCH, COUNT, RATE, WIDTH, Range, check


@dataclass(frozen=True)
class InverseModel:
    """Settings of the inverse dynamics model p(a | s, s')."""

    epochs: int = 50
    """Passes over each round's transitions."""
    learning_rate: float = 3e-4
    """Learning rate of Adam."""
    batch_size: int = 512
    """Batch size per gradient step."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the hidden layers."""

    def __post_init__(self) -> None:
        check(self, "inverse", epochs=COUNT, learning_rate=RATE, batch_size=BATCH, hidden=WIDTH)


class BCOState(NamedTuple):
    policy: Fit
    inverse: Fit
    scale: Normaliser
    """The demonstrations'."""


@dataclass(frozen=True)
class BCO(Learner):
    """BCO(α): act, learn p(a|s,s') from what was done, infer the demonstrations' actions, clone   (Torabi et al. 2018, Alg. 1).

    The first round acts uniformly at random. Each round starts its environments anew, so a checkpoint holds the models alone.
    Both models go on from the round before; the inverse model sees the newest round's transitions only, not all rounds'.
    """

    name: ClassVar[str] = "bco"
    checkpoint_every: ClassVar[int] = 1
    num_envs: int = 16
    """Number of environments stepped side by side."""
    rounds: int = 20
    """Rounds of acting, learning the inverse model, and cloning; they share the steps of the run evenly."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the policy's hidden layers."""
    log_std_init: float = -1.0
    """Initial log standard deviation of a continuous policy (a bounded action is within [-1, 1])."""
    learning_rate: float = 3e-4
    """Learning rate of Adam, for the policy."""
    batch_size: int = 512
    """Batch size per gradient step of the policy."""
    epochs: int = 50
    """Passes over the demonstrations per round."""
    inverse: InverseModel = field(default_factory=InverseModel)

    def __post_init__(self) -> None:
        check(self, num_envs=Range(1, 10_000_000, whole=True), rounds=COUNT, hidden=WIDTH, log_std_init=LOG_STD)
        check(self, learning_rate=RATE, batch_size=BATCH, epochs=COUNT)

    @property
    def needs_demos(self) -> bool:
        return True

    def schedule(self, steps: int) -> Schedule:
        return Schedule(self.rounds, max(steps // (self.rounds * self.num_envs), 1), self.num_envs, restart_every=1)

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> BCOState:
        assert expert is not None
        k_policy, k_inverse = jax.random.split(key)
        obs_size, space = problem.obs_size, problem.action_space
        policy = make_policy(k_policy, obs_size, space, self.hidden, self.log_std_init)
        inverse = make_policy(k_inverse, 2 * obs_size, space, self.inverse.hidden, self.log_std_init)
        return BCOState(Fit.start(policy), Fit.start(inverse), demo_scale(expert.rows))

    def actor(self, state: BCOState, progress: Progress) -> tuple[Policy, Normaliser] | None:
        return None if progress.iteration == 0 else self.policy(state)

    def update(
        self,
        problem: Problem,
        state: BCOState,
        rollout: Rollout | None,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[BCOState, Metrics]:
        assert rollout is not None
        assert expert is not None
        k_inverse, k_policy = jax.random.split(key)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
        valid = flat.valid.astype(float)
        ours = change(flat.obs, flat.next_obs)
        theirs = change(expert.rows[expert.starts], expert.rows[expert.starts + 1])
        both = Normaliser.start(ours.shape[1], theirs).update(ours, valid)  # one scale for agent and expert
        taken = as_action(state.inverse.model, state.inverse.model.features(flat.action))  # what the environment saw
        inverse, inferring = maximise(
            state.inverse,
            Rows(x=both.mixture(ours), a=taken, weight=valid),
            k_inverse,
            epochs=self.inverse.epochs,
            batch_size=self.inverse.batch_size,
            learning_rate=self.inverse.learning_rate,
        )
        model = inverse.model
        inferred = as_action(model, model.features(model.mode(both.mixture(theirs))))
        policy, copying = maximise(
            state.policy,
            policy_rows(expert, state.scale, inferred),
            k_policy,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            last=progress.last,
        )
        metrics = {f"inverse/{name}": x for name, x in inferring.items()} | {f"cloning/{name}": x for name, x in copying.items()}
        metrics |= {"finite/inverse": all_finite(inverse), "finite/cloning": all_finite(policy)}
        return BCOState(policy, inverse, state.scale), metrics

    def policy(self, state: BCOState) -> tuple[Policy, Normaliser]:
        return state.policy.model, state.scale


def change(s: Float[Array, "rows obs"], s_next: Float[Array, "rows obs"]) -> Float[Array, "rows inputs"]:
    """(s, s' − s): says what (s, s') says, and a small step is not lost beside a large state."""
    return jnp.concatenate([s, s_next - s], axis=-1)
