"""Soft actor-critic on the same reward terms, off-policy: old transitions are learned from again and again.

The terms of the reward are asked when a batch is drawn, so the newest discriminator judges old transitions too. The paper's
entropy term λ_p H(a|s) *is* SAC's: its weight is the lowest temperature (docs/methods/sac.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from iddm.envs.rollout import Rollout
from iddm.errors import UserError
from iddm.learners.base import Learner, Metrics, Problem, Progress, Schedule, all_finite
from iddm.learners.inverse_models import InverseModels
from iddm.learners.replay_buffer import ReplayBuffer
from iddm.learners.sac_step import GradientStep, ReplayBatches, SACState, change_scale
from iddm.nets import MLP, Normaliser, SquashedGaussianPolicy, WithNoise
from iddm.rewards.expert import Expert
from iddm.utils.settings import BATCH, COUNT, DISCOUNT, RATE, ROLLOUT, SHARE, WIDTH, Range, check, check_rollout

NATURAL = Range(0, 1_000_000_000, whole=True)


@dataclass(frozen=True)
class SAC(Learner):
    """SAC (Haarnoja et al. 2018) with layer-normalised critics, and inverse models that label the demonstrations."""

    name: ClassVar[str] = "sac"
    checkpoint_every: ClassVar[int] = 64
    num_envs: int = 4
    """Number of environments stepped side by side."""
    rollout_length: int = 16
    """Steps of each environment per iteration."""
    restart_every: int = 256
    """Iterations after which the environments start anew; 0 for never. A resumed run replays the actions since."""
    random_steps: int = 5_000
    """Environment steps with uniformly random actions before learning begins."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    batch_size: int = 128
    """Batch size per gradient step."""
    buffer_size: int = 1_000_000
    """Transitions kept in memory: a million of HalfCheetah's take 0.2 GB, of Ant's 0.9 GB."""
    recent_steps: int = 20_000
    """The newest transitions, from which the terms of the reward learn; the discriminator half from them, half from all."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of the hidden layers of the policy and the critics."""
    learning_rate: float = 3e-4
    """Learning rate of Adam, for policy and temperature."""
    critic_learning_rate: float = 1e-3
    """Learning rate of Adam, for the critics."""
    anneal: bool | None = None
    """Let both learning rates fall linearly to 0 over the run, and the weight of cloning to its part `inverse.cloning_left`.
    Without it: where there are demonstrations, unless most of them end by themselves."""
    discount: float = 0.99
    """The paper's γ."""
    target_rate: float = 0.005
    """How fast the target critics follow the critics."""
    policy_every: int = 2
    """Critic updates per update of the policy."""
    average_rate: float = 4e-4
    """How fast the policy that is kept, an average of weights, follows the one that acts; 1 keeps the one that acts."""
    temperature: float = 0.01
    """Initial weight of the policy's entropy; it is tuned towards `target_entropy`, never below the entropy term's weight."""
    target_entropy: float = -1.0
    """Entropy per action dimension that the temperature is tuned towards at first, in nats."""
    final_target_entropy: float = -3.0
    """The same at the end of the run; in between it falls linearly: explore first, be exact later."""
    noise: float = 0.18
    """Deviation of noise on the actions that are taken, beside the policy's own, at first (an action is within [-1, 1])."""
    final_noise: float = 0.024
    """The same at the end of the run; in between it falls geometrically."""
    inverse: InverseModels = field(default_factory=InverseModels)
    """Models of p(a | s, s') that label the demonstrations with actions."""

    def __post_init__(self) -> None:
        check(self, num_envs=ROLLOUT, rollout_length=ROLLOUT, restart_every=NATURAL)
        check(self, random_steps=COUNT, updates_per_step=Range(0, 100, above=True), batch_size=BATCH, recent_steps=COUNT)
        check(self, buffer_size=Range(1_000, 100_000_000, whole=True), hidden=WIDTH, learning_rate=RATE)
        check(self, critic_learning_rate=RATE, discount=DISCOUNT, target_rate=SHARE, policy_every=COUNT, average_rate=SHARE)
        check(self, temperature=Range(0, 100, above=True), target_entropy=Range(-100, 100), final_target_entropy=Range(-100, 100))
        check(self, noise=Range(0, 1, above=True), final_noise=Range(0, 1, above=True))
        check_rollout(self.num_envs, self.rollout_length)
        if self.updates * self.batch_size > ROLLOUT.high:
            raise UserError(
                f"{self.updates:,} batches of {self.batch_size:,} rows in an iteration do not fit into memory: "
                "lower --batch-size, --updates-per-step or --rollout-length."
            )

    @property
    def updates(self) -> int:
        """Gradient steps per iteration."""
        return max(round(self.num_envs * self.rollout_length * self.updates_per_step), 1)

    def for_demos(self, end_early: bool) -> "SAC":
        return replace(self, anneal=not end_early) if self.anneal is None else self

    def schedule(self, steps: int) -> Schedule:
        random_length = max(min(self.random_steps, steps) // self.num_envs, 1)
        left = max(steps - random_length * self.num_envs, 0)
        num_iterations = 1 + left // (self.num_envs * self.rollout_length)
        return Schedule(
            num_iterations, self.rollout_length, self.num_envs, self.restart_every, first_rollout_length=random_length
        )

    def check_problem(self, problem: Problem) -> None:
        if not problem.action_space.bounded:
            raise UserError("The learner sac is for continuous actions with limits; use --learner ppo.")
        if any(term.starts_from_demos or term.name == "tracking" for term in problem.terms):
            raise UserError("The learner sac cannot follow a demonstration in time; use --learner ppo.")

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> SACState:
        return _compiled_init(self, problem, expert, key)

    def _init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> SACState:
        k_policy, k_first, k_second, k_inverse, *k_terms = jax.random.split(key, 4 + len(problem.terms))
        obs_size, action_size = problem.obs_size, problem.action_space.size
        policy = SquashedGaussianPolicy(MLP(k_policy, obs_size, self.hidden, 2 * action_size, last_gain=0.1, activation="relu"))
        first, second = (
            MLP(k, obs_size + action_size, self.hidden, 1, activation="relu", layer_norm=True) for k in (k_first, k_second)
        )
        critics, log_temperature = (first, second), jnp.log(jnp.asarray(self.temperature, jnp.float32))
        compared = None if expert is None else expert.compared_sizes
        terms = {t.name: t.init(k, obs_size, action_size, compared) for k, t in zip(k_terms, problem.terms, strict=True)}
        inverse = self.inverse.init(k_inverse, obs_size, action_size) if self.labels(expert) else ()
        opt_states = {
            "policy": self.adam().init(eqx.filter(policy, eqx.is_array)),
            "critics": self.critic_adam().init(eqx.filter(critics, eqx.is_array)),
            "temperature": self.adam().init(log_temperature),
        }
        normaliser = Normaliser.start(obs_size, *((None, None) if expert is None else (expert.rows, expert.view.columns)))
        average, targets = jax.tree.map(lambda x: x + 0, (policy, critics))  # with memory of their own, for it is used again
        return SACState(
            policy, average, critics, targets, log_temperature, opt_states, terms, inverse, normaliser, jnp.ones(obs_size)
        )

    def adam(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def critic_adam(self) -> optax.GradientTransformation:
        return optax.adam(self.critic_learning_rate)

    def labels(self, expert: Expert | None) -> bool:
        """Whether demonstrated transitions get actions: they must have all columns, at the environment's rate."""
        return expert is not None and self.inverse.used and expert.view.past is None and expert.view.columns is None

    def buffer(self, problem: Problem, expert: Expert | None) -> ReplayBuffer:
        past = None if expert is None else expert.view.past
        num_past = 0 if past is None else past.shape[1]
        return ReplayBuffer(problem.obs_size, problem.action_space.size, num_past, self.buffer_size)

    def batches(self, buffer: ReplayBuffer, rollout: Rollout, rng: np.random.Generator) -> Iterator[ReplayBatches]:
        """Take in a rollout and draw what is learned from it; after the random steps, as much as they are owed."""
        buffer.add(rollout)
        columns, known = buffer.columns, buffer.statistics
        newest = buffer.newest(rollout.valid.size)
        scales = {
            "seen": (known.mean.astype(np.float32), (known.square / np.maximum(known.num_rows, 1)).astype(np.float32)),
            "change_var": (newest[:, columns.next_obs] - newest[:, columns.obs]).var(axis=0),
            "ends": (known.num_rows, known.num_terminated, known.terminated_steps),
        }
        owed = rollout.valid.size * self.updates_per_step
        shape = (self.updates, self.batch_size)
        for _ in range(max(round(owed / self.updates), 1)):
            yield ReplayBatches(buffer.draw(rng, shape), buffer.draw(rng, shape, self.recent_steps), **scales)

    def actor(self, state: SACState, progress: Progress) -> tuple[WithNoise, Normaliser] | None:
        if progress.iteration == 0:
            return None
        noise = self.final_noise * (self.noise / self.final_noise) ** progress.left
        return WithNoise(state.policy, jnp.asarray(noise, jnp.float32)), self._scale(state)

    def policy(self, state: SACState) -> tuple[SquashedGaussianPolicy, Normaliser]:
        return state.average, self._scale(state)

    def _scale(self, state: SACState) -> Normaliser:
        mean, std = state.normaliser.mixture_scale()
        return Normaliser(jnp.ones(()), mean, std**2, None, None)

    def update(
        self,
        problem: Problem,
        state: SACState,
        rollout: ReplayBatches,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[SACState, Metrics]:
        """Algorithm 1 off-policy, K times: update I and D_φ, take their rewards for a batch, update Q, π_θ and temperature."""
        batches, now = rollout, progress.left
        change_var = jnp.where(state.normaliser.count > 0, state.change_var, batches.change_var)
        settled = state.normaliser.settled(*batches.seen), change_var
        state = eqx.tree_at(lambda s: (s.normaliser, s.change_var), state, settled)
        gradient_step = GradientStep(self, problem, expert, batches, change_scale(expert, change_var), now)

        def step(state: SACState, inputs: tuple[Array, Array, PRNGKeyArray, Array]) -> tuple[SACState, Metrics]:
            rows, recent, key, i = inputs
            return gradient_step.run(state, rows, recent, key, i % self.policy_every == 0)

        num_updates = batches.rows.shape[0]
        inputs = (
            jnp.asarray(batches.rows),
            jnp.asarray(batches.recent),
            jax.random.split(key, num_updates),
            jnp.arange(num_updates),
        )
        state, metrics = jax.lax.scan(step, state, inputs)
        metrics = jax.tree.map(lambda x: jnp.nanmean(x, axis=0), metrics)
        finite = {"policy": state.policy, "critics": state.critics, "inverse": state.inverse, "observations": state.normaliser}
        finite = {name: part for name, part in finite.items() if jax.tree.leaves(part)} | state.terms
        return state, metrics | {f"finite/{name}": all_finite(part) for name, part in finite.items()}


_compiled_init = jax.jit(SAC._init, static_argnums=(0, 1))
