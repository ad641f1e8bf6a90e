"""Soft actor-critic on the same reward terms, off-policy: old transitions are learned from again and again.

The terms of the reward are asked when a batch is drawn, so the newest discriminator judges old transitions too. The paper's
entropy term λ_p H(a|s) *is* SAC's: its weight is the lowest temperature (docs/methods/sac.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.rollout import Rollout
from iddm.errors import UserError
from iddm.learners.base import Learner, Metrics, Problem, Progress, Schedule, all_finite
from iddm.learners.inverse_models import InverseModels, Labels
from iddm.learners.replay_buffer import Columns, ReplayBuffer
from iddm.learners.sac_loss import actor_loss, critic_loss, critic_target, temperature_loss
from iddm.nets import MLP, Normaliser, SquashedGaussianPolicy
from iddm.rewards import Adversarial, PolicyEntropy
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.utils.settings import BATCH, COUNT, DISCOUNT, RATE, SHARE, WIDTH, Range, check

NATURAL = Range(0, 1_000_000_000, whole=True)


class SACState(eqx.Module):
    """Everything that learning changes."""

    policy: SquashedGaussianPolicy
    critics: tuple[MLP, MLP]
    targets: tuple[MLP, MLP]
    log_temperature: Float[Array, ""]
    opt_states: dict[str, PyTree]
    terms: dict[str, PyTree]
    inverse: PyTree
    normaliser: Normaliser
    """The scale of policy and critics: of all that the agent has seen and the demonstrations, with equal weight."""


class ReplayBatches(NamedTuple):
    """K batches of rows from the buffer, with the scales to put them on."""

    rows: Float[np.ndarray, "K batch width"]
    """From all that the agent did: for policy, critics and inverse models."""
    recent: Float[np.ndarray, "K batch width"]
    """From its newest steps: for the terms of the reward."""
    seen: tuple[np.ndarray, np.ndarray]
    """Mean and variance of all states that the agent has seen."""
    seen_recently: tuple[np.ndarray, np.ndarray]
    change_var: np.ndarray
    """Variance of s' − s in the newest steps."""
    ends: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Steps, terminated episodes, and the sum of their lengths."""


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
    """The newest transitions, from which the terms of the reward learn."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of the hidden layers of the policy and the critics."""
    learning_rate: float = 3e-4
    """Learning rate of Adam, for policy and temperature."""
    critic_learning_rate: float = 1e-3
    """Learning rate of Adam, for the critics."""
    discount: float = 0.99
    """The paper's γ."""
    target_rate: float = 0.005
    """How fast the target critics follow the critics."""
    policy_every: int = 2
    """Critic updates per update of the policy."""
    temperature: float = 0.01
    """Initial weight of the policy's entropy; it is tuned towards `target_entropy`, never below the entropy term's weight."""
    target_entropy: float = -1.0
    """Entropy per action dimension that the temperature is tuned towards at first, in nats."""
    final_target_entropy: float = -3.0
    """The same at the end of the run; in between it falls linearly: explore first, be exact later."""
    inverse: InverseModels = field(default_factory=InverseModels)
    """Models of p(a | s, s') that label the demonstrations with actions."""

    def __post_init__(self) -> None:
        check(self, num_envs=Range(1, 100_000, whole=True), rollout_length=Range(1, 1_000_000, whole=True), restart_every=NATURAL)
        check(self, random_steps=COUNT, updates_per_step=Range(0, 100, above=True), batch_size=BATCH, recent_steps=COUNT)
        check(self, buffer_size=Range(1_000, 100_000_000, whole=True), hidden=WIDTH, learning_rate=RATE)
        check(self, critic_learning_rate=RATE, discount=DISCOUNT, target_rate=SHARE, policy_every=COUNT)
        check(self, temperature=Range(0, 100, above=True), target_entropy=Range(-100, 100), final_target_entropy=Range(-100, 100))

    @property
    def updates(self) -> int:
        """Gradient steps per iteration."""
        return max(round(self.num_envs * self.rollout_length * self.updates_per_step), 1)

    def schedule(self, steps: int) -> Schedule:
        random_length = max(min(self.random_steps, steps) // self.num_envs, 1)
        left = max(steps - random_length * self.num_envs, 0)
        num_iterations = 1 + left // (self.num_envs * self.rollout_length)
        return Schedule(
            num_iterations, self.rollout_length, self.num_envs, self.restart_every, first_rollout_length=random_length
        )

    def check_problem(self, problem: Problem) -> None:
        space = problem.action_space
        if space.discrete or not np.isfinite([space.low, space.high]).all():
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
        inverse = self.inverse.init(k_inverse, obs_size, action_size) if self._labels(expert) else ()
        opt_states = {
            "policy": self._adam().init(eqx.filter(policy, eqx.is_array)),
            "critics": self._critic_adam().init(eqx.filter(critics, eqx.is_array)),
            "temperature": self._adam().init(log_temperature),
        }
        normaliser = Normaliser.start(obs_size, *((None, None) if expert is None else (expert.rows, expert.view.columns)))
        copy = jax.tree.map(lambda x: x + 0, critics)  # buffers of its own: the state's memory is used again
        return SACState(policy, critics, copy, log_temperature, opt_states, terms, inverse, normaliser)

    def _adam(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def _critic_adam(self) -> optax.GradientTransformation:
        return optax.adam(self.critic_learning_rate)

    def _labels(self, expert: Expert | None) -> bool:
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
        newest = buffer.newest(self.recent_steps)
        obs, change = newest[:, columns.obs], newest[:, columns.next_obs] - newest[:, columns.obs]
        scales = {
            "seen": (known.mean.astype(np.float32), (known.square / np.maximum(known.num_rows, 1)).astype(np.float32)),
            "seen_recently": (obs.mean(axis=0), obs.var(axis=0)),
            "change_var": change.var(axis=0),
            "ends": (known.num_rows, known.num_terminated, known.terminated_steps),
        }
        owed = rollout.valid.size * self.updates_per_step
        shape = (self.updates, self.batch_size)
        for _ in range(max(round(owed / self.updates), 1)):
            yield ReplayBatches(buffer.draw(rng, shape), buffer.draw(rng, shape, self.recent_steps), **scales)

    def actor(self, state: SACState, iteration: int) -> tuple[SquashedGaussianPolicy, Normaliser] | None:
        return None if iteration == 0 else self.policy(state)

    def policy(self, state: SACState) -> tuple[SquashedGaussianPolicy, Normaliser]:
        mean, std = state.normaliser.mixture_scale()
        return state.policy, Normaliser(jnp.ones(()), mean, std**2, None, None)

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
        state = eqx.tree_at(lambda s: s.normaliser, state, state.normaliser.with_agent(*batches.seen))

        def step(state: SACState, inputs: tuple[Array, Array, PRNGKeyArray, Array]) -> tuple[SACState, Metrics]:
            rows, recent, key, i = inputs
            return _Step(self, problem, expert, batches, now).run(state, rows, recent, key, i % self.policy_every == 0)

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


@dataclass(frozen=True)
class _Step:
    """One gradient step of everything, on one batch."""

    sac: SAC
    problem: Problem
    expert: Expert | None
    batches: ReplayBatches
    left: Array | float

    def run(self, state: SACState, rows: Array, recent: Array, key: PRNGKeyArray, with_policy: Array) -> tuple[SACState, Metrics]:
        sac, metrics = self.sac, {}
        k_terms, k_label, k_next, k_policy = jax.random.split(key, 4)
        scale = state.normaliser.with_agent(
            *self.batches.seen_recently
        )  # of the reward's networks: what is recent, and the expert
        sampler = None
        if self.expert is not None:
            sampler = ExpertSampler(self.expert, partial(scale.mixture_of, columns=self.expert.view.columns))
        agent = self._agent_rows(recent, scale)

        # Demonstrated transitions with inferred actions take the place of some rows, as far as they are trusted.
        inverse, labels = state.inverse, None
        batch = self._agent_rows(rows, scale)
        obs, action = rows[:, self._columns.obs], rows[:, self._columns.action]
        if sac._labels(self.expert):
            inverse, labels, learned = self._label(state, rows, scale, k_label)
            metrics |= {f"inverse/{name}": x for name, x in learned.items()}
            batch, obs, action = labels.replace_rows(batch, obs, action, scale.mixture)

        # The terms learn from the newest rows and reward the batch.
        terms, reward, absorbing_reward = {}, jnp.zeros(len(rows)), jnp.zeros(())
        for number, term in enumerate(self.problem.terms):
            if isinstance(term, PolicyEntropy):  # SAC's own: the temperature
                terms[term.name] = state.terms[term.name]
                continue
            k_update, k_reward = jax.random.split(jax.random.fold_in(k_terms, number))
            terms[term.name], learned = term.update(state.terms[term.name], agent, sampler, k_update)
            term_reward = term.reward(terms[term.name], batch, k_reward)
            reward, absorbing_reward = reward + term_reward, absorbing_reward + term.absorbing_reward(terms[term.name], batch)
            metrics |= {f"{term.name}/{name}": x for name, x in learned.items()}
            metrics |= {f"{term.name}/reward": term_reward.mean(), f"{term.name}/reward_std": term_reward.std()}

        # Critics.
        lowest = sum(term.weight for term in self.problem.terms if isinstance(term, PolicyEntropy))
        temperature = jnp.maximum(jnp.exp(state.log_temperature), lowest)
        s, s_next = state.normaliser.mixture(obs), state.normaliser.mixture(batch.next_obs)
        next_action, next_log_prob = state.policy.sample_with_log_prob(s_next, k_next)
        target = critic_target(
            reward,
            state.targets,
            jnp.concatenate([s_next, next_action], axis=-1),
            temperature * next_log_prob,
            batch.terminated,
            sac.discount,
            terminal_value=absorbing_reward / (1 - sac.discount),
        )
        (loss, q), grads = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, jnp.concatenate([s, action], axis=-1), target
        )
        updates, critic_opt = sac._critic_adam().update(grads, state.opt_states["critics"])
        critics = eqx.apply_updates(state.critics, updates)
        targets = jax.tree.map(lambda t, c: t + sac.target_rate * (c - t), state.targets, critics)

        # Policy and temperature, every few steps.
        def learn_policy(carry: PyTree) -> tuple[PyTree, Metrics]:
            policy, log_temperature, policy_opt, temperature_opt = carry

            def loss(policy: SquashedGaussianPolicy) -> tuple[Array, Array]:
                rl_loss, log_prob = actor_loss(policy, critics, s, temperature, k_policy)
                if labels is not None:
                    rl_loss = rl_loss + sac.inverse.cloning_weight * labels.cloning_loss(policy, state.normaliser.mixture)
                return rl_loss, log_prob

            grads, log_prob = jax.grad(loss, has_aux=True)(policy)
            updates, policy_opt = sac._adam().update(grads, policy_opt)
            policy = eqx.apply_updates(policy, updates)
            wanted = sac.final_target_entropy + self.left * (sac.target_entropy - sac.final_target_entropy)
            wanted = wanted * self.problem.action_space.size
            grad = jax.grad(temperature_loss)(log_temperature, log_prob, wanted)
            updates, temperature_opt = sac._adam().update(grad, temperature_opt)
            log_temperature = jnp.asarray(optax.apply_updates(log_temperature, updates))
            return (policy, log_temperature, policy_opt, temperature_opt), {"sac/entropy": -log_prob}

        carry = (state.policy, state.log_temperature, state.opt_states["policy"], state.opt_states["temperature"])
        (policy, log_temperature, policy_opt, temperature_opt), learned = jax.lax.cond(
            with_policy, learn_policy, lambda carry: (carry, {"sac/entropy": jnp.asarray(jnp.nan)}), carry
        )
        opt_states = {"policy": policy_opt, "critics": critic_opt, "temperature": temperature_opt}
        metrics |= learned | {"sac/critic_loss": loss, "sac/q": q, "sac/temperature": temperature}
        return SACState(policy, critics, targets, log_temperature, opt_states, terms, inverse, state.normaliser), metrics

    @property
    def _columns(self) -> Columns:
        past = None if self.expert is None else self.expert.view.past
        num_past = 0 if past is None else past.shape[1]
        return Columns.of(self.problem.obs_size, self.problem.action_space.size, num_past)

    def _agent_rows(self, rows: Array, scale: Normaliser) -> AgentRows:
        """Rows of the buffer as the terms of the reward see them."""
        columns, n = self._columns, len(rows)
        transitions = Transitions(
            s=scale.mixture(rows[:, columns.obs]), a=rows[:, columns.action], s_next=scale.mixture(rows[:, columns.next_obs])
        )
        absorbed = None
        if self.expert is not None:
            past = None
            if self.expert.view.past is not None:
                past = scale.mixture(rows[:, columns.past].reshape(n, -1, self.problem.obs_size))
            transitions = transitions.with_view(past, self.expert.view.columns)
            if self.expert.ends is not None:
                count, num_terminated, lengths = self.batches.ends
                unused = jnp.maximum(self.expert.ends.limit * num_terminated - lengths, 0.0)
                absorbed = unused / (unused + count)
        return AgentRows(
            transitions=transitions,
            log_prob=jnp.zeros(n),
            env_reward=rows[:, columns.env_reward],
            valid=jnp.ones(n),
            terminated=rows[:, columns.terminated] > 0,
            step=rows[:, columns.step].astype(int),
            next_obs=rows[:, columns.next_obs],
            target=None,
            absorbed_share=absorbed,
            drawn=True,
        )

    def _label(
        self, state: SACState, rows: Array, scale: Normaliser, key: PRNGKeyArray
    ) -> tuple[PyTree, Labels, dict[str, Array]]:
        """Train the inverse models on the batch, and label demonstrated transitions."""
        assert self.expert is not None
        k_draw, k_use = jax.random.split(key)
        columns, expert = self._columns, self.expert
        change_scale = self._change_scale()

        def inputs(s: Array, s_next: Array) -> Array:
            return jnp.concatenate([scale.mixture(s), jnp.clip((s_next - s) / change_scale, -scale.clip, scale.clip)], axis=-1)

        inverse, error = self.sac.inverse.learn(
            state.inverse, inputs(rows[:, columns.obs], rows[:, columns.next_obs]), rows[:, columns.action]
        )
        n = round(self.sac.batch_size * self.sac.inverse.share)
        which = jax.random.randint(k_draw, (n,), 0, expert.starts.shape[0])
        start = expert.starts[which]
        s, s_next = expert.rows[start], expert.rows[start + 1]
        terminated = jnp.zeros(n, bool) if expert.ends is None else expert.ends.terminal[start + 1]
        if expert.actions is not None:  # the method was given them: nothing has to be inferred
            action, agreement = expert.actions[which], jnp.ones(n)
        else:
            action, agreement = self.sac.inverse.infer(inverse, inputs(s, s_next))
        covered = self._covered(state, Transitions(s=scale.mixture(s), a=action, s_next=scale.mixture(s_next)), terminated)
        used = jax.random.uniform(k_use, (n,)) < agreement
        labels = Labels(s=s, s_next=s_next, action=action, terminated=terminated, used=used, trust=agreement * covered)
        return inverse, labels, {"error": error, "agreement": agreement.mean(), "trust": labels.trust.mean()}

    def _covered(self, state: SACState, rows: Transitions, terminated: Array) -> Array:
        """min(1, 2(1 − D)): below 1 where the discriminator is sure that the agent has not been there recently."""
        logits = [
            term.expert_logit(state.terms[term.name], rows, terminated)
            for term in self.problem.terms
            if isinstance(term, Adversarial)
        ]
        return jnp.minimum(1.0, 2 * jax.nn.sigmoid(-logits[0])) if logits else jnp.ones(len(rows.s))

    def _change_scale(self) -> Array:
        """Deviation of s' − s over demonstrations and the agent's newest steps, with equal weight."""
        assert self.expert is not None
        rows, starts = self.expert.rows, self.expert.starts
        theirs = (rows[starts + 1] - rows[starts]).var(axis=0)
        return jnp.sqrt(0.5 * theirs + 0.5 * self.batches.change_var + 1e-8)
