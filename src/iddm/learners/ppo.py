"""Proximal policy optimisation on the sum of the reward terms: the body of the paper's Algorithm 1, traced whole."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.rollout import Rollout
from iddm.errors import UserError
from iddm.learners.base import KnownPolicy, Learner, Metrics, Problem, Progress, Schedule, all_finite
from iddm.learners.ppo_loss import PPOBatch, gae, optimiser, ppo_epochs
from iddm.nets import MLP, CategoricalPolicy, GaussianPolicy, Normaliser, Policy, ValueFunction, make_policy
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.utils.settings import BATCH, COUNT, DISCOUNT, RATE, ROLLOUT, SHARE, WEIGHT, WIDTH, Range, check, check_rollout

LOG_STD = Range(-20, 5)
ROWS_BEHIND_A_POLICY = 10_000
"""How much the scale of a policy that is started from counts, in observations."""


class PPOState(eqx.Module):
    """Everything that learning changes."""

    policy: GaussianPolicy | CategoricalPolicy
    value: ValueFunction
    opt_state: PyTree
    normaliser: Normaliser
    terms: dict[str, PyTree]


@dataclass(frozen=True)
class PPO(Learner):
    """PPO (Schulman et al. 2017), on-policy: the paper's learner."""

    name: ClassVar[str] = "ppo"
    num_envs: int = 16
    """Number of environments stepped side by side."""
    rollout_length: int = 128
    """Steps of each environment per iteration."""
    restart_every: int = 32
    """Iterations after which the environments start anew; 0 for never. A resumed run replays the actions since."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the hidden layers of the policy and the value function."""
    log_std_init: float = -1.0
    """Initial log standard deviation of a continuous policy (a bounded action is within [-1, 1])."""
    learning_rate: float = 3e-4
    """Learning rate of Adam, for policy and value function."""
    anneal: bool = True
    """Lower the learning rate linearly to zero over the run."""
    epochs: int = 10
    """Passes over each rollout."""
    batch_size: int = 512
    """Batch size per gradient step."""
    discount: float = 0.99
    """The paper's γ."""
    gae_decay: float = 0.95
    """λ of generalised advantage estimation."""
    clip: float = 0.2
    """How far the probability ratio may move."""
    value_weight: float = 0.5
    """Weight of the value function's loss beside the policy's."""
    max_grad_norm: float = 0.5
    """The joint gradient is scaled down to this norm."""

    def __post_init__(self) -> None:
        check(self, num_envs=ROLLOUT, rollout_length=ROLLOUT, restart_every=Range(0, 1_000_000_000, whole=True))
        check(self, hidden=WIDTH, log_std_init=LOG_STD, learning_rate=RATE, epochs=COUNT, batch_size=BATCH, discount=DISCOUNT)
        check(self, gae_decay=SHARE, clip=Range(0, 100, above=True), value_weight=WEIGHT, max_grad_norm=RATE)
        check_rollout(self.num_envs, self.rollout_length)

    def schedule(self, steps: int) -> Schedule:
        num_iterations = max(steps // (self.num_envs * self.rollout_length), 1)
        return Schedule(num_iterations, self.rollout_length, self.num_envs, self.restart_every)

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> PPOState:
        return _compiled_init(self, problem, expert, key)

    def _init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> PPOState:
        k_policy, k_value, *k_terms = jax.random.split(key, 2 + len(problem.terms))
        obs_size, space = problem.obs_size, problem.action_space
        policy = make_policy(k_policy, obs_size, space, self.hidden, self.log_std_init)
        value = ValueFunction.start(MLP(k_value, obs_size, self.hidden, 1))
        compared = None if expert is None else expert.compared_sizes
        terms = {t.name: t.init(k, obs_size, space.size, compared) for k, t in zip(k_terms, problem.terms, strict=True)}
        opt_state = optimiser(self.max_grad_norm).init(eqx.filter((policy, value.net), eqx.is_array))
        normaliser = Normaliser.start(obs_size, *((None, None) if expert is None else (expert.rows, expert.view.columns)))
        return PPOState(policy, value, opt_state, normaliser, terms)

    def start_from(self, state: PPOState, policy: KnownPolicy) -> PPOState:
        net = state.policy.net
        if [w.shape for w in net.weights] != [w.shape for w in policy.weights]:
            hidden = " ".join(str(len(bias)) for bias in policy.biases[:-1])
            raise UserError(f"The policy to start from has other layers; give it its own size with --hidden {hidden}.")
        layers = (list(map(jnp.asarray, policy.weights)), list(map(jnp.asarray, policy.biases)))
        state = eqx.tree_at(lambda s: (s.policy.net.weights, s.policy.net.biases), state, layers)
        scale = state.normaliser.with_agent(policy.mean, policy.std**2)
        scale = eqx.tree_at(lambda n: n.count, scale, jnp.asarray(float(ROWS_BEHIND_A_POLICY)))
        return eqx.tree_at(lambda s: s.normaliser, state, scale)

    def actor(self, state: PPOState, progress: Progress) -> tuple[Policy, Normaliser]:
        return state.policy, state.normaliser

    def policy(self, state: PPOState) -> tuple[Policy, Normaliser]:
        return state.policy, state.normaliser

    def update(
        self,
        problem: Problem,
        state: PPOState,
        rollout: Rollout | None,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[PPOState, Metrics]:
        """Algorithm 1 after the rollout D_A was sampled: update I and D_φ, take their rewards, update π_θ   (IDDM, Alg. 1)."""
        assert rollout is not None
        *term_keys, policy_key = jax.random.split(key, 2 * len(problem.terms) + 1)
        agent, demonstrated = agent_rows(state, rollout, expert)
        valid = agent.valid

        # Update the MI estimator I and the discriminator D_φ with D_A, and let each term give its reward.
        terms, reward, absorbing_reward, metrics = {}, jnp.zeros(len(valid)), 0.0, {}
        for term, k_update, k_reward in zip(problem.terms, term_keys[::2], term_keys[1::2], strict=True):
            terms[term.name], learned = term.update(state.terms[term.name], agent, demonstrated, k_update)
            term_reward = term.reward(terms[term.name], agent, k_reward)
            reward, absorbing_reward = reward + term_reward, absorbing_reward + term.absorbing_reward(terms[term.name], agent)
            metrics |= {f"{term.name}/{name}": x for name, x in learned.items()}
            metrics[f"{term.name}/reward"] = _mean(term_reward, valid)
            metrics[f"{term.name}/reward_std"] = jnp.sqrt(_variance(term_reward, valid))
            metrics[f"finite/{term.name}"] = all_finite((terms[term.name], term_reward))

        # Q(s, a): the rewards to come, as advantages over the value function.
        shape = rollout.env_reward.shape
        s, s_next = (state.normaliser.own(_flat(obs)) for obs in (rollout.obs, rollout.next_obs))
        value, next_value = state.value(jnp.concatenate([s, s_next])).reshape(2, *shape)
        terminated = jnp.asarray(rollout.terminated)
        advantage = gae(
            reward.reshape(shape),
            value,
            next_value,
            terminated,
            terminated | rollout.truncated | ~rollout.valid,
            self.discount,
            self.gae_decay,
            terminal_value=absorbing_reward / (1 - self.discount),
        ).reshape(-1)
        target = advantage + value.reshape(-1)
        value_function = state.value.follow(target, valid)
        centred = advantage - _mean(advantage, valid)

        # Update the policy π_θ, and the value function beside it.
        batch = PPOBatch(
            s=s,
            action=_flat(rollout.action),
            log_prob=agent.log_prob,
            advantage=centred / jnp.sqrt(_mean(centred**2, valid) + 1e-8),
            target=value_function.normalise(target),
            valid=valid,
        )
        (policy, net), opt_state, learned = ppo_epochs(
            (state.policy, value_function.net),
            state.opt_state,
            batch,
            policy_key,
            self.learning_rate * (jnp.asarray(progress.left) if self.anneal else jnp.ones(())),
            epochs=self.epochs,
            batch_size=self.batch_size,
            clip=self.clip,
            value_weight=self.value_weight,
            max_grad_norm=self.max_grad_norm,
        )
        normaliser = state.normaliser.update(_flat(rollout.obs), valid)
        metrics |= {f"ppo/{name}": x for name, x in learned.items()}
        metrics["ppo/entropy"] = _mean(state.policy.entropy(s), valid)
        metrics["ppo/explained_variance"] = 1 - _mean(centred**2, valid) / _variance(target, valid)
        metrics |= {"finite/policy": all_finite(policy), "finite/value": all_finite(net)}
        value_function = eqx.tree_at(lambda v: v.net, value_function, net)
        return PPOState(policy, value_function, opt_state, normaliser, terms), metrics


_compiled_init = jax.jit(PPO._init, static_argnums=(0, 1))


def agent_rows(state: PPOState, rollout: Rollout, expert: Expert | None) -> tuple[AgentRows, ExpertSampler | None]:
    """A rollout and the demonstrations as the reward terms see them: on the scale of both together."""
    mixture = state.normaliser.mixture
    action, next_obs, step = _flat(rollout.action), _flat(rollout.next_obs), _flat(rollout.step)
    transitions = Transitions(s=mixture(_flat(rollout.obs)), a=state.policy.features(action), s_next=mixture(next_obs))
    sampler = None
    if expert is not None:
        past = None if rollout.past is None else mixture(_flat(rollout.past))
        transitions = transitions.with_view(past, expert.view.columns)
        sampler = ExpertSampler(expert, partial(state.normaliser.mixture_of, columns=expert.view.columns))
    rows = AgentRows(
        transitions=transitions,
        log_prob=state.policy.log_prob(state.normaliser.own(_flat(rollout.obs)), action),
        env_reward=_flat(rollout.env_reward),
        valid=_flat(rollout.valid).astype(float),
        terminated=_flat(rollout.terminated),
        step=step,
        next_obs=next_obs,
        target=None if expert is None else expert.reference_at(step + 1),
    )
    return rows, sampler


def _flat(x: Any) -> Array:
    """[T, N, …] as [T·N, …]."""
    return jnp.asarray(x).reshape(-1, *x.shape[2:])


def _mean(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return (weight @ x) / weight.sum()


def _variance(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return _mean((x - _mean(x, weight)) ** 2, weight) + 1e-8
