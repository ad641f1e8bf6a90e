"""One iteration of learning, traced whole: reward terms, rewards, advantages, PPO. All state is one pytree."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.config import Config
from iddm.nets import MLP, Normaliser, Policy, make_policy
from iddm.ppo import PPOBatch, ValueFunction, gae, optimiser, ppo_update
from iddm.rollout import AgentBatch, ExpertData, Rollout, Transitions, show
from iddm.spaces import ActionSpace


class TrainState(eqx.Module):
    """Everything that learning changes."""

    policy: Policy
    value: ValueFunction
    opt_state: PyTree
    normaliser: Normaliser
    terms: dict[str, PyTree]


def keep_compiled_code() -> None:
    """Let a second run start at once: compiled code stays in the user's cache, unless JAX was told of another place."""
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "iddm" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def init_state(config: Config, obs_size: int, space: ActionSpace, expert: ExpertData | None) -> TrainState:
    """The state before the first iteration, determined by the config's seed."""
    init = jax.jit(lambda key, expert: _init_state(config, obs_size, space, key, expert))
    return init(jax.random.PRNGKey(config.seed), expert)


def _init_state(config: Config, obs_size: int, space: ActionSpace, key: PRNGKeyArray, expert: ExpertData | None) -> TrainState:
    k_policy, k_value, *k_terms = jax.random.split(key, 2 + len(config.terms))
    policy = make_policy(k_policy, obs_size, space, config.hidden, config.log_std_init)
    value = ValueFunction.start(MLP(k_value, obs_size, config.hidden, 1))
    shown = None if expert is None else expert.shown
    terms = {n: t.init(k, obs_size, space.size, shown) for k, (n, t) in zip(k_terms, config.terms.items(), strict=True)}
    opt_state = optimiser(config.ppo.max_grad_norm).init(eqx.filter((policy, value.net), eqx.is_array))
    normaliser = Normaliser.start(obs_size, None) if expert is None else Normaliser.start(obs_size, expert.rows, expert.columns)
    return TrainState(policy, value, opt_state, normaliser, terms)


Iterate = Callable[[TrainState, Rollout, ExpertData | None, PRNGKeyArray, float], tuple[TrainState, dict[str, Array]]]


class Seen(NamedTuple):
    """A rollout as the networks see it: its T·N rows, flat."""

    s: Float[Array, "rows obs"]
    """On the agent's scale, for policy and value."""
    s_next: Float[Array, "rows obs"]
    action: Array
    agent: AgentBatch
    """On the scale of agent and expert together, for the reward terms."""
    expert: ExpertData | None
    """The demonstrations on the same scale."""


class Paid(NamedTuple):
    """What the reward terms learned and pay."""

    terms: dict[str, PyTree]
    reward: Float[Array, " rows"]
    absorbing_reward: Float[Array, ""] | float
    """For each step after a terminal state."""
    metrics: dict[str, Array]
    finite: dict[str, Array]


def see(state: TrainState, rollout: Rollout, expert: ExpertData | None) -> Seen:
    """Put a rollout and the demonstrations on the scales of the networks that see them."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
    own, mixture = state.normaliser.own, state.normaliser.mixture
    s, s_next = own(flat.obs), own(flat.next_obs)
    log_prob = state.policy.log_prob(s, flat.action)
    transitions = Transitions(mixture(flat.obs), state.policy.features(flat.action), mixture(flat.next_obs))
    if expert is not None:
        transitions = show(transitions, None if flat.past is None else mixture(flat.past), expert.columns)
    tracked = None if expert is None else expert.at(flat.step + 1)
    valid, next_obs = flat.valid.astype(float), jnp.asarray(flat.next_obs)
    agent = AgentBatch(transitions, log_prob, flat.env_reward, valid, flat.terminated, flat.step, next_obs, tracked)
    shown = None if expert is None else expert.scaled(partial(state.normaliser.mixture_of, columns=expert.columns))
    return Seen(s, s_next, flat.action, agent, shown)


def pay(config: Config, terms: dict[str, PyTree], seen: Seen, key: PRNGKeyArray) -> Paid:
    """Update every reward term on the rollout, then let it pay; the rewards add up."""
    agent, keys = seen.agent, iter(jax.random.split(key, 2 * len(config.terms) + 1))
    paid = Paid({}, jnp.zeros(len(agent.valid)), 0.0, {}, {})
    for name, term in config.terms.items():
        paid.terms[name], learned = term.update(terms[name], agent, seen.expert, next(keys))
        reward = term.reward(paid.terms[name], agent, next(keys))
        paid.metrics.update({f"{name}/{key}": x for key, x in learned.items()})
        paid.metrics[f"{name}/reward"] = _mean(reward, agent.valid)
        paid.metrics[f"{name}/reward_std"] = jnp.sqrt(_variance(reward, agent.valid))
        paid.finite[name] = _all_finite((paid.terms[name], reward))
        absorbing_reward = paid.absorbing_reward + term.absorbing_reward(paid.terms[name], agent)
        paid = paid._replace(reward=paid.reward + reward, absorbing_reward=absorbing_reward)
    return paid


def make_iteration(config: Config) -> Iterate:
    """Algorithm 1's body: update the MI estimator and the discriminator on the rollout, then the policy.

    Seed and progress (the part of the run that is left) come as arguments, so that one compiled program serves all runs.
    """

    def iterate(
        state: TrainState, rollout: Rollout, expert: ExpertData | None, key: PRNGKeyArray, left: Array
    ) -> tuple[TrainState, dict[str, Array]]:
        seen = see(state, rollout, expert)
        paid = pay(config, state.terms, seen, key)
        shape, valid = rollout.env_reward.shape, seen.agent.valid

        value, next_value = state.value(jnp.concatenate([seen.s, seen.s_next])).reshape(2, *shape)
        terminated = jnp.asarray(rollout.terminated)
        boundary = terminated | rollout.truncated | ~rollout.valid
        advantage = gae(
            paid.reward.reshape(shape),
            value,
            next_value,
            terminated,
            boundary,
            config.ppo.discount,
            config.ppo.gae_decay,
            terminal_value=paid.absorbing_reward / (1 - config.ppo.discount),
        ).reshape(-1)
        target = advantage + value.reshape(-1)
        value_function = state.value.follow(target, valid)
        centred = advantage - _mean(advantage, valid)
        advantage = centred / jnp.sqrt(_mean(centred**2, valid) + 1e-8)

        batch = PPOBatch(seen.s, seen.action, seen.agent.log_prob, advantage, value_function.normalise(target), valid)
        (policy, net), opt_state, learned = ppo_update(
            (state.policy, value_function.net),
            state.opt_state,
            batch,
            jax.random.split(key, 2 * len(config.terms) + 1)[-1],
            config.ppo.learning_rate * (left if config.ppo.anneal else jnp.ones(())),
            config.ppo,
        )
        metrics = paid.metrics | {f"ppo/{key}": x for key, x in learned.items()}
        metrics["ppo/entropy"] = _mean(state.policy.entropy(seen.s), valid)
        metrics["ppo/explained_variance"] = 1 - _mean(centred**2, valid) / _variance(target, valid)
        finite = paid.finite | {"policy": _all_finite(policy), "value": _all_finite(net)}

        value_function = eqx.tree_at(lambda v: v.net, value_function, net)
        normaliser = state.normaliser.update(jnp.asarray(rollout.obs).reshape(-1, rollout.obs.shape[-1]), valid)
        state = TrainState(policy, value_function, opt_state, normaliser, paid.terms)
        return state, metrics | {f"finite/{name}": ok for name, ok in finite.items()}

    return jax.jit(iterate, donate_argnums=0)


def _mean(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return (weight @ x) / weight.sum()


def _variance(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return _mean((x - _mean(x, weight)) ** 2, weight) + 1e-8


def _all_finite(tree: PyTree) -> Array:
    leaves = [jnp.isfinite(x).all() for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([*leaves, jnp.array(True)]).all()
