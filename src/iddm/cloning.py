"""Behavioural cloning: from states and actions (BC), and from states alone with inferred actions (BCO).

Both are maximum likelihood, θ* = argmax Σ log p_θ(a | x). For a policy x is the state; for an inverse dynamics model it is
the state and how it changed. So one `fit` serves both, and an inverse model is a policy that sees more.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from iddm.acting import Environments, iteration_key
from iddm.nets import GaussianPolicy, Normaliser, Policy, make_policy
from iddm.policy import Policy as SavedPolicy
from iddm.rollout import ExpertData, Rollout

if TYPE_CHECKING:
    from iddm.job import Job

HELD_OUT = 0.1
"""The share of the rows, the last in time, that is held out to report an error."""
LOWEST_LOG_STD = -3.0
"""A deterministic expert's likelihood has no maximum: σ would go to 0. It stops here."""


@dataclass(frozen=True)
class Cloning:
    """Settings of behavioural cloning."""

    learning_rate: float = 3e-4
    """Adam's rate."""
    batch_size: int = 512
    """Rows a gradient step."""
    epochs: int = 300
    """Passes over the demonstrations (bco: in each round)."""


@dataclass(frozen=True)
class InverseModel:
    """Settings of BCO's inverse dynamics model p(a | s, s')."""

    rounds: int = 20
    """Rounds of acting, learning the inverse model, and cloning; they share the steps of the run evenly."""
    epochs: int = 50
    """Passes over each round's transitions."""
    learning_rate: float = 3e-4
    """Adam's rate."""
    batch_size: int = 512
    """Rows a gradient step."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the hidden layers."""


class Fit(NamedTuple):
    """A model that is being fitted."""

    model: Policy
    opt_state: PyTree

    @staticmethod
    def start(model: Policy) -> "Fit":
        return Fit(model, optax.adam(1.0).init(eqx.filter(model, eqx.is_array)))


class Rows(NamedTuple):
    """What a model is fitted to: actions `a` given inputs `x`, with weight 0 where a row does not count."""

    x: Float[Array, "rows inputs"]
    a: Float[Array, "rows actions"] | Int[Array, " rows"]
    weight: Float[Array, " rows"]

    def split(self) -> tuple["Rows", "Rows"]:
        """The rows to fit, and the held-out ones: the last in time, so that neighbours in time are on one side."""
        n = self.x.shape[0]
        cut = n - round(HELD_OUT * n)
        return Rows(*(v[:cut] for v in self)), Rows(*(v[cut:] for v in self))


def cloning_loss(model: Policy, rows: Rows) -> Float[Array, ""]:
    """−E[log p(a | x)]: cross-entropy for choices, Gaussian likelihood (squared error in units of σ) for a Box."""
    return -(rows.weight @ model.log_prob(rows.x, rows.a)) / jnp.maximum(rows.weight.sum(), 1.0)


def prediction_error(model: Policy, rows: Rows) -> Float[Array, ""]:
    """How wrong the most likely action is: the share of wrong choices, or the root mean square in half-widths of the Box."""
    best, total = model.mode(rows.x), rows.weight.sum()
    if isinstance(model, GaussianPolicy):
        return jnp.sqrt(rows.weight @ jnp.mean((best - rows.a) ** 2, axis=-1) / total)
    return rows.weight @ (best != rows.a) / total


def fit(state: Fit, rows: Rows, key: PRNGKeyArray, epochs: int, batch_size: int, learning_rate: float) -> tuple[Fit, dict]:
    """Maximum likelihood by Adam for some epochs, and how well it does on held-out rows."""
    optimise = optax.adam(learning_rate)
    known, held_out = rows.split()
    num_rows = known.x.shape[0]
    batch_size = min(batch_size, num_rows)
    num_batches = num_rows // batch_size

    def step(state: Fit, batch: Rows) -> tuple[Fit, Array]:
        loss, grads = jax.value_and_grad(cloning_loss)(state.model, batch)
        updates, opt_state = optimise.update(grads, state.opt_state)
        return Fit(_bounded(eqx.apply_updates(state.model, updates)), opt_state), loss

    def epoch(state: Fit, key: PRNGKeyArray) -> tuple[Fit, Array]:
        order = jax.random.permutation(key, num_rows)[: num_batches * batch_size]
        batches = jax.tree.map(lambda v: v[order].reshape(num_batches, batch_size, *v.shape[1:]), known)
        return jax.lax.scan(step, state, batches)

    state, losses = jax.lax.scan(epoch, state, jax.random.split(key, epochs))
    figures = {
        "loss": losses[-1].mean(),
        "held_out_loss": cloning_loss(state.model, held_out),
        "held_out_error": prediction_error(state.model, held_out),
    }
    return state, figures


def _bounded(model: Policy) -> Policy:
    if not isinstance(model, GaussianPolicy):
        return model
    return eqx.tree_at(lambda m: m.log_std, model, jnp.maximum(model.log_std, LOWEST_LOG_STD))


def demo_scale(rows: Float[Array, "rows obs"]) -> Normaliser:
    """The demonstrations' scale, for whoever acts: the agent sees its own states as the expert's were seen.

    A column that does not move in the demonstrations keeps its unit.
    """
    var = rows.var(0)
    return Normaliser(jnp.ones(()), rows.mean(0), jnp.where(var > 1e-6, var, 1.0), None, None)


def change(s: Float[Array, "rows obs"], s_next: Float[Array, "rows obs"]) -> Float[Array, "rows inputs"]:
    """(s, s' − s): says what (s, s') says, and a small step is not lost beside a large state."""
    return jnp.concatenate([s, s_next - s], axis=-1)


def _policy_rows(expert: ExpertData, scale: Normaliser, actions: Array) -> Rows:
    x = scale.own(expert.rows[expert.starts])
    return Rows(x, actions, jnp.ones(len(x)))


def _as_taken(model: Policy, features: Array) -> Array:
    """An action's features as `log_prob` takes it: a choice's number, or the Box's components."""
    return features if isinstance(model, GaussianPolicy) else jnp.argmax(features, axis=-1)


class StateActionCloner:
    """BC: max_θ E_expert[log π_θ(a|s)]   (Pomerleau 1991; the paper's [BC]). It never acts, so it takes no environment steps."""

    epochs_per_iteration: ClassVar[int] = 10

    def __init__(self, job: "Job", iteration: int, replay: np.ndarray | None) -> None:
        config = job.config
        assert job.expert is not None
        assert job.expert.actions is not None
        assert config.cloning is not None
        self.job, self.settings = job, config.cloning
        self.since = iteration
        self.scale = demo_scale(job.expert.rows)
        self.num_iterations = -(-self.settings.epochs // self.epochs_per_iteration)
        self._fit = jax.jit(fit, static_argnums=(3, 4, 5))
        self._rows = _policy_rows(job.expert, self.scale, _as_taken(self.init().model, job.expert.actions))

    def init(self) -> Fit:
        config, shape = self.job.config, self.job.shape
        key = jax.random.PRNGKey(config.seed)
        return Fit.start(make_policy(key, shape.obs_size, shape.action_space, config.hidden, config.log_std_init))

    def iterate(self, state: Fit, iteration: int) -> tuple[Fit, dict[str, Any]]:
        now, c = min((iteration + 1) * self.epochs_per_iteration, self.settings.epochs), self.settings
        epochs = now - iteration * self.epochs_per_iteration
        key = iteration_key(self.job.config.seed, iteration)
        state, figures = self._fit(state, self._rows, key, epochs, c.batch_size, c.learning_rate)
        metrics = {f"cloning/{name}": x for name, x in jax.device_get(figures).items()}
        return state, {"steps": 0, "returns": [], "epochs": now, **metrics, "finite/cloning": _finite(state)}

    def renew(self, iteration: int) -> None:
        self.since = iteration

    def replay(self) -> np.ndarray | None:
        return None

    def policy(self, state: Fit) -> SavedPolicy:
        return self.job.export(state.model, self.scale)

    def close(self) -> None:
        pass


class Observer(NamedTuple):
    """What BCO learns."""

    policy: Fit
    inverse: Fit


class ObservationCloner:
    """BCO(α): act, learn p(a|s,s') from what was done, infer the demonstrations' actions, clone   (Torabi et al. 2018, Alg. 1).

    The first round acts uniformly at random. Each round starts its environments anew, so a checkpoint holds the models alone.
    Both models go on from the round before; the inverse model sees the newest round's transitions only, not all rounds'.
    """

    def __init__(self, job: "Job", iteration: int, replay: np.ndarray | None) -> None:
        config = job.config
        assert job.expert is not None
        assert config.cloning is not None
        assert config.inverse is not None
        self.job, self.settings, self.inverse = job, config.cloning, config.inverse
        self.since = iteration
        self.scale = demo_scale(job.expert.rows)
        self.num_iterations = self.inverse.rounds
        self.steps_per_round = max(config.steps // (self.inverse.rounds * config.num_envs), 1)
        self._learn = jax.jit(self._learn_from)

    def init(self) -> Observer:
        config, shape = self.job.config, self.job.shape
        k_policy, k_inverse = jax.random.split(jax.random.PRNGKey(config.seed))
        policy = make_policy(k_policy, shape.obs_size, shape.action_space, config.hidden, config.log_std_init)
        inverse = make_policy(k_inverse, 2 * shape.obs_size, shape.action_space, self.inverse.hidden, config.log_std_init)
        return Observer(Fit.start(policy), Fit.start(inverse))

    def iterate(self, state: Observer, iteration: int) -> tuple[Observer, dict[str, Any]]:
        envs = Environments(self.job, iteration, None)
        if iteration == 0:
            rollout, returns = envs.uniform(iteration, self.steps_per_round)
        else:
            rollout, returns = envs.sample(state.policy.model, self.scale, iteration, self.steps_per_round)
        envs.close()
        key = iteration_key(self.job.config.seed, iteration)
        state, metrics = self._learn(state, rollout, self.job.expert, self.scale, key)
        steps = (iteration + 1) * self.steps_per_round * self.job.config.num_envs
        finite = {"finite/inverse": _finite(state.inverse), "finite/cloning": _finite(state.policy)}
        return state, {"steps": steps, "returns": returns, **jax.device_get(metrics), **finite}

    def _learn_from(
        self, state: Observer, rollout: Rollout, expert: ExpertData, scale: Normaliser, key: PRNGKeyArray
    ) -> tuple[Observer, dict[str, Array]]:
        c, i = self.settings, self.inverse
        k_inverse, k_policy = jax.random.split(key)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
        valid = flat.valid.astype(float)
        ours = change(flat.obs, flat.next_obs)
        theirs = change(expert.rows[expert.starts], expert.rows[expert.starts + 1])
        both = Normaliser.start(ours.shape[1], theirs).update(ours, valid)  # one scale for agent and expert
        taken = _as_taken(state.inverse.model, state.inverse.model.features(flat.action))  # what the environment saw
        inverse, inferring = fit(
            state.inverse, Rows(both.mixture(ours), taken, valid), k_inverse, i.epochs, i.batch_size, i.learning_rate
        )
        model = inverse.model
        inferred = _as_taken(model, model.features(model.mode(both.mixture(theirs))))
        rows = _policy_rows(expert, scale, inferred)
        policy, copying = fit(state.policy, rows, k_policy, c.epochs, c.batch_size, c.learning_rate)
        metrics = {f"inverse/{name}": x for name, x in inferring.items()} | {f"cloning/{name}": x for name, x in copying.items()}
        return Observer(policy, inverse), metrics

    def renew(self, iteration: int) -> None:
        self.since = iteration

    def replay(self) -> np.ndarray | None:
        return None

    def policy(self, state: Observer) -> SavedPolicy:
        return self.job.export(state.policy.model, self.scale)

    def close(self) -> None:
        pass


def _finite(state: Fit) -> bool:
    return all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(eqx.filter(state.model, eqx.is_array)))
