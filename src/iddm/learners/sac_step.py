"""One gradient step of SAC on everything: inverse models, terms of the reward, critics, policy and temperature."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.learners.base import Metrics, Problem
from iddm.learners.inverse_models import Labels
from iddm.learners.replay_buffer import Columns
from iddm.learners.sac_loss import actor_loss, critic_loss, critic_target, temperature_loss
from iddm.nets import MLP, Normaliser, SquashedGaussianPolicy
from iddm.rewards import Adversarial, PolicyEntropy
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions

if TYPE_CHECKING:
    from iddm.learners.sac import SAC


class SACState(eqx.Module):
    """Everything that learning changes."""

    policy: SquashedGaussianPolicy
    average: SquashedGaussianPolicy
    """Of the policy's weights over its last updates: what is evaluated and saved."""
    critics: tuple[MLP, MLP]
    targets: tuple[MLP, MLP]
    log_temperature: Float[Array, ""]
    opt_states: dict[str, PyTree]
    terms: dict[str, PyTree]
    inverse: PyTree
    normaliser: Normaliser
    """The scale of all networks: of demonstrations and first random steps, with equal weight; it stays as it is."""
    change_var: Float[Array, " obs"]
    """Variance of s' − s in the first random steps; it stays too."""


class ReplayBatches(NamedTuple):
    """K batches of rows from the buffer, with the scales to put them on."""

    rows: Float[np.ndarray, "K batch width"]
    """From all that the agent did: for policy, critics and inverse models."""
    recent: Float[np.ndarray, "K batch width"]
    """From its newest steps: for the terms of the reward."""
    seen: tuple[np.ndarray, np.ndarray]
    """Mean and variance of all states that the agent has seen."""
    change_var: np.ndarray
    """Variance of s' − s in the newest rollout."""
    ends: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Steps, terminated episodes, and the sum of their lengths."""


class Batch(NamedTuple):
    """What critics and policy learn from: rows of the buffer and demonstrated transitions."""

    rows: AgentRows
    """As the terms of the reward see them."""
    s: Float[Array, "batch obs"]
    action: Float[Array, "batch actions"]
    s_next: Float[Array, "batch obs"]


class Rewards(NamedTuple):
    """Of a batch, by all terms together."""

    of_steps: Float[Array, " batch"]
    after_end: Float[Array, ""]
    """Of each step after an episode's end."""


class Acting(NamedTuple):
    """What only every few steps learn."""

    policy: SquashedGaussianPolicy
    log_temperature: Float[Array, ""]
    policy_opt: PyTree
    temperature_opt: PyTree

    @staticmethod
    def of(state: SACState) -> "Acting":
        return Acting(state.policy, state.log_temperature, state.opt_states["policy"], state.opt_states["temperature"])

    def put_into(self, state: SACState) -> SACState:
        opt_states = state.opt_states | {"policy": self.policy_opt, "temperature": self.temperature_opt}
        return replace(state, policy=self.policy, log_temperature=self.log_temperature, opt_states=opt_states)


def change_scale(expert: Expert | None, change_var: Float[Array, " obs"]) -> Float[Array, " obs"]:
    """Deviation of s' − s over demonstrations and the agent's first random steps, with equal weight."""
    if expert is None or expert.view.columns is not None:
        return jnp.ones_like(change_var)  # no inverse models to scale for
    theirs = (expert.rows[expert.starts + 1] - expert.rows[expert.starts]).var(axis=0)
    return jnp.sqrt(0.5 * theirs + 0.5 * change_var + 1e-8)


@dataclass(frozen=True)
class GradientStep:
    """One gradient step of everything, on one batch."""

    sac: "SAC"
    problem: Problem
    expert: Expert | None
    batches: ReplayBatches
    change_scale: Float[Array, " obs"]
    """Deviation of s' − s, for the inverse models' inputs."""
    left: Array | float

    def run(self, state: SACState, rows: Array, recent: Array, key: PRNGKeyArray, with_policy: Array) -> tuple[SACState, Metrics]:
        """Label demonstrations, reward a batch with the newest terms, and learn critics, policy and temperature from it."""
        k_terms, k_label, k_next, k_policy = jax.random.split(key, 4)
        state, labels, of_models = self._label(state, rows, k_label)
        batch = self._batch(state.normaliser, rows, labels)
        state, rewards, of_terms = self._reward(state, batch, rows, recent, k_terms)
        lowest = sum(term.weight for term in self.problem.terms if isinstance(term, PolicyEntropy))
        temperature = jnp.maximum(jnp.exp(state.log_temperature), lowest)
        state, of_critics = self._learn_critics(state, batch, rewards, k_next)
        learn_policy = partial(self._learn_policy, state, batch, labels, temperature, k_policy)
        acting, of_policy = jax.lax.cond(
            with_policy, learn_policy, lambda acting: (acting, {"sac/entropy": jnp.asarray(jnp.nan)}), Acting.of(state)
        )
        rate = jnp.where(with_policy, self.sac.average_rate, 0.0)
        average = jax.tree.map(lambda a, p: a + rate * (p - a), state.average, acting.policy)
        metrics = of_models | of_terms | of_policy | of_critics | {"sac/temperature": temperature}
        return acting.put_into(replace(state, average=average)), metrics

    def _batch(self, scale: Normaliser, rows: Array, labels: Labels | None) -> Batch:
        """Demonstrated transitions with inferred actions take the place of some rows, as far as they are trusted."""
        batch, obs, action = self._agent_rows(rows, scale), rows[:, self._columns.obs], rows[:, self._columns.action]
        if labels is not None:
            batch, obs, action = labels.replace_rows(batch, obs, action, scale.mixture)
        return Batch(batch, scale.mixture(obs), action, scale.mixture(batch.next_obs))

    def _reward(
        self, state: SACState, batch: Batch, rows: Array, recent: Array, key: PRNGKeyArray
    ) -> tuple[SACState, Rewards, Metrics]:
        """The terms learn from the newest rows and reward the batch, whose old rows the discriminator must not forget."""
        scale, sampler = state.normaliser, None
        if self.expert is not None:
            sampler = ExpertSampler(self.expert, partial(scale.mixture_of, columns=self.expert.view.columns))
        agent = self._agent_rows(recent, scale)
        half = len(rows) // 2
        old_and_new = self._agent_rows(jnp.concatenate([recent[:half], rows[half:]]), scale)
        terms, of_steps, after_end, metrics = {}, jnp.zeros(len(rows)), jnp.zeros(()), {}
        for number, term in enumerate(self.problem.terms):
            if isinstance(term, PolicyEntropy):  # SAC's own: the temperature
                terms[term.name] = state.terms[term.name]
                continue
            k_update, k_reward = jax.random.split(jax.random.fold_in(key, number))
            seen = old_and_new if isinstance(term, Adversarial) else agent
            terms[term.name], learned = term.update(state.terms[term.name], seen, sampler, k_update)
            term_reward = term.reward(terms[term.name], batch.rows, k_reward)
            of_steps = of_steps + term_reward
            after_end = after_end + term.absorbing_reward(terms[term.name], batch.rows)
            metrics |= {f"{term.name}/{name}": x for name, x in learned.items()}
            metrics |= {f"{term.name}/reward": term_reward.mean(), f"{term.name}/reward_std": term_reward.std()}
        return replace(state, terms=terms), Rewards(of_steps, after_end), metrics

    def _learn_critics(self, state: SACState, batch: Batch, rewards: Rewards, key: PRNGKeyArray) -> tuple[SACState, Metrics]:
        sac = self.sac
        next_action, _ = state.policy.sample_with_log_prob(batch.s_next, key)
        target = critic_target(
            rewards.of_steps,
            state.targets,
            jnp.concatenate([batch.s_next, next_action], axis=-1),
            batch.rows.terminated,
            sac.discount,
            terminal_value=rewards.after_end / (1 - sac.discount),
        )
        (loss, q), grads = jax.value_and_grad(critic_loss, has_aux=True)(
            state.critics, jnp.concatenate([batch.s, batch.action], axis=-1), target
        )
        updates, opt_state = sac.critic_adam().update(grads, state.opt_states["critics"])
        critics = eqx.apply_updates(state.critics, self._annealed(updates))
        targets = jax.tree.map(lambda t, c: t + sac.target_rate * (c - t), state.targets, critics)
        opt_states = state.opt_states | {"critics": opt_state}
        return replace(state, critics=critics, targets=targets, opt_states=opt_states), {"sac/critic_loss": loss, "sac/q": q}

    def _learn_policy(
        self, state: SACState, batch: Batch, labels: Labels | None, temperature: Array, key: PRNGKeyArray, acting: Acting
    ) -> tuple[Acting, Metrics]:
        """Policy and temperature, which `state` does not change while they are learned."""
        sac, scale = self.sac, state.normaliser

        def loss(policy: SquashedGaussianPolicy) -> tuple[Array, Array]:
            rl_loss, log_prob = actor_loss(policy, state.critics, batch.s, temperature, key)
            if labels is not None:
                weight = sac.inverse.annealed_weight(self.left) if sac.anneal else sac.inverse.cloning_weight
                rl_loss = rl_loss + weight * labels.cloning_loss(policy, scale.mixture)
            return rl_loss, log_prob

        grads, log_prob = jax.grad(loss, has_aux=True)(acting.policy)
        updates, policy_opt = sac.adam().update(grads, acting.policy_opt)
        policy = eqx.apply_updates(acting.policy, self._annealed(updates))
        wanted = sac.final_target_entropy + self.left * (sac.target_entropy - sac.final_target_entropy)
        grad = jax.grad(temperature_loss)(acting.log_temperature, log_prob, wanted * self.problem.action_space.size)
        updates, temperature_opt = sac.adam().update(grad, acting.temperature_opt)
        log_temperature = jnp.asarray(optax.apply_updates(acting.log_temperature, updates))
        return Acting(policy, log_temperature, policy_opt, temperature_opt), {"sac/entropy": -log_prob}

    def _annealed(self, updates: PyTree) -> PyTree:
        """The updates of a learning rate that falls linearly over the run."""
        return jax.tree.map(lambda x: x * self.left, updates) if self.sac.anneal else updates

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

    def _label(self, state: SACState, rows: Array, key: PRNGKeyArray) -> tuple[SACState, Labels | None, Metrics]:
        """Train the inverse models on the batch, and label demonstrated transitions."""
        if self.expert is None or not self.sac.labels(self.expert):
            return state, None, {}
        k_draw, k_use = jax.random.split(key)
        columns, expert, scale = self._columns, self.expert, state.normaliser

        def inputs(s: Array, s_next: Array) -> Array:
            change = jnp.clip((s_next - s) / self.change_scale, -scale.clip, scale.clip)
            return jnp.concatenate([scale.mixture(s), change], axis=-1)

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
        learned = {"inverse/error": error, "inverse/agreement": agreement.mean(), "inverse/trust": labels.trust.mean()}
        return replace(state, inverse=inverse), labels, learned

    def _covered(self, state: SACState, rows: Transitions, terminated: Array) -> Array:
        """min(1, 2(1 − D)): below 1 where the discriminator is sure that the agent has not been there."""
        logits = [
            term.expert_logit(state.terms[term.name], rows, terminated)
            for term in self.problem.terms
            if isinstance(term, Adversarial)
        ]
        return jnp.minimum(1.0, 2 * jax.nn.sigmoid(-logits[0])) if logits else jnp.ones(len(rows.s))
