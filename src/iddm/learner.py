"""One iteration of learning, traced whole: reward terms, rewards, advantages, PPO. All state is one pytree."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

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


def make_iteration(config: Config) -> Iterate:
    """Algorithm 1's body: update the MI estimator and the discriminator on the rollout, then the policy.

    Seed and progress (the part of the run that is left) come as arguments, so that one compiled program serves all runs.
    """

    def iterate(
        state: TrainState, rollout: Rollout, expert: ExpertData | None, key: PRNGKeyArray, left: Array
    ) -> tuple[TrainState, dict[str, Array]]:
        keys = iter(jax.random.split(key, 2 * len(config.terms) + 1))
        shape = rollout.env_reward.shape
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
        own, mixture = state.normaliser.own, state.normaliser.mixture
        s, s_next = own(flat.obs), own(flat.next_obs)
        log_prob = state.policy.log_prob(s, flat.action)
        valid = flat.valid.astype(float)
        transitions = Transitions(mixture(flat.obs), state.policy.features(flat.action), mixture(flat.next_obs))
        if expert is not None:
            transitions = show(transitions, None if flat.past is None else mixture(flat.past), expert.columns)
        tracked = None if expert is None else expert.at(flat.step + 1)
        agent = AgentBatch(
            transitions, log_prob, flat.env_reward, valid, flat.terminated, flat.step, jnp.asarray(flat.next_obs), tracked
        )
        shown = None if expert is None else expert.scaled(partial(state.normaliser.mixture_of, columns=expert.columns))

        reward = jnp.zeros(shape[0] * shape[1])
        absorbed = 0.0  # pay for each step after a terminal state
        terms, metrics, finite = {}, {}, {}
        for name, term in config.terms.items():
            terms[name], learned = term.update(state.terms[name], agent, shown, next(keys))
            paid = term.reward(terms[name], agent, next(keys))
            metrics |= {f"{name}/{key}": x for key, x in learned.items()}
            metrics[f"{name}/reward"] = _mean(paid, valid)
            metrics[f"{name}/reward_std"] = jnp.sqrt(_variance(paid, valid))
            finite[name] = _all_finite((terms[name], paid))
            reward = reward + paid
            absorbed = absorbed + term.absorbing_reward(terms[name], agent)

        value, next_value = state.value(jnp.concatenate([s, s_next])).reshape(2, *shape)
        terminated = jnp.asarray(rollout.terminated)
        boundary = terminated | rollout.truncated | ~rollout.valid
        advantage = gae(
            reward.reshape(shape),
            value,
            next_value,
            terminated,
            boundary,
            config.ppo.discount,
            config.ppo.gae_decay,
            terminal_value=absorbed / (1 - config.ppo.discount),
        ).reshape(-1)
        target = advantage + value.reshape(-1)
        value_function = state.value.follow(target, valid)
        centred = advantage - _mean(advantage, valid)
        advantage = centred / jnp.sqrt(_mean(centred**2, valid) + 1e-8)

        batch = PPOBatch(s, flat.action, log_prob, advantage, value_function.normalise(target), valid)
        (policy, net), opt_state, learned = ppo_update(
            (state.policy, value_function.net),
            state.opt_state,
            batch,
            next(keys),
            config.ppo.learning_rate * (left if config.ppo.anneal else jnp.ones(())),
            config.ppo,
        )
        metrics |= {f"ppo/{key}": x for key, x in learned.items()}
        metrics["ppo/entropy"] = _mean(state.policy.entropy(s), valid)
        metrics["ppo/explained_variance"] = 1 - _mean(centred**2, valid) / _variance(target, valid)
        finite["policy"], finite["value"] = _all_finite(policy), _all_finite(net)

        value_function = eqx.tree_at(lambda v: v.net, value_function, net)
        normaliser = state.normaliser.update(flat.obs, valid)
        state = TrainState(policy, value_function, opt_state, normaliser, terms)
        return state, metrics | {f"finite/{name}": ok for name, ok in finite.items()}

    return jax.jit(iterate, donate_argnums=0)


def _mean(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return (weight @ x) / weight.sum()


def _variance(x: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, ""]:
    return _mean((x - _mean(x, weight)) ** 2, weight) + 1e-8


def _all_finite(tree: PyTree) -> Array:
    leaves = [jnp.isfinite(x).all() for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([*leaves, jnp.array(True)]).all()
