"""The entropy of the agent's inverse dynamics as a reward: it is what is left to raise once transitions are matched."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.envs.spec import EnvShape
from iddm.nets import MLP
from iddm.rewards.expert import ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.rewards.term import Metrics, Term
from iddm.utils.settings import BATCH, COUNT, RATE, WEIGHT, WIDTH, Range, check

LOG_STD_RANGE = 3.0
"""A model's deviation lies between `resolution` and e^3 times that."""


@dataclass(frozen=True)
class InverseEntropy(Term):
    """λ H_π(a|s,s'): the reward of a step is −λ log q(a|s,s') with a learned q, up to a constant. Not in the paper.

    KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) ≤ −H_π(a|s,s') + C' (`iddm.theory.inverse_entropy_bound`). Where a transition names its
    action, q is as sharp as it may be and the reward is 0. With q held fixed it is the first-order gradient of the entropy;
    the mean over the rows is taken off, so that being alive is not rewarded.
    """

    name: ClassVar[str] = "inverse_entropy"
    weight: float = 0.01
    """λ."""
    kind: Literal["gaussian", "categorical"] | None = None
    """q's form; without it, gaussian for a Box of actions and categorical for choices."""
    resolution: float = 0.1
    """Smallest deviation of a gaussian q, in units where a Box is [-1, 1]: actions nearer than this count as the same."""
    clip: float = 10.0
    """Largest reward of a step before the weight, in nats."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    updates: int = 20
    """Gradient steps per iteration."""
    batch_size: int = 512
    """Batch size per gradient step."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of the hidden layers."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT, resolution=Range(0, 10, above=True), clip=WEIGHT, learning_rate=RATE)
        check(self, self.name, updates=COUNT, batch_size=BATCH, hidden=WIDTH)

    def for_env(self, shape: EnvShape) -> "InverseEntropy":
        fitting = "categorical" if shape.action_space.discrete else "gaussian"
        return replace(self, kind=fitting)

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, compared: tuple[int, int] | None = None) -> PyTree:
        num_outputs = action_size if self.kind == "categorical" else 2 * action_size
        net = MLP(key, 2 * obs_size, self.hidden, num_outputs, last_gain=0.1, activation="relu")
        return net, self._optimiser().init(eqx.filter(net, eqx.is_array))

    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def surprise(self, net: MLP, rows: Transitions) -> Float[Array, " rows"]:
        """log max q − log q(a|s,s') ≥ 0: nothing where the action is what the transition says it is."""
        assert rows.a is not None
        out = net(jnp.concatenate([rows.s, rows.s_next - rows.s], axis=-1))
        if self.kind == "categorical":
            return -jnp.sum(jax.nn.log_softmax(out) * rows.a, axis=-1)
        mean, raw = jnp.split(out, 2, axis=-1)
        log_ratio = LOG_STD_RANGE * jax.nn.sigmoid(raw)  # log σ/resolution
        z = (rows.a - mean) / (self.resolution * jnp.exp(log_ratio))
        return jnp.sum(log_ratio + 0.5 * z**2, axis=-1)

    def update(
        self,
        state: PyTree,
        agent: AgentRows,
        expert: ExpertSampler | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        optimise = self._optimiser()
        k_read, k_train = jax.random.split(key)
        # Read before training on this rollout: its rows are new to the model, so the entropy is a held-out one.
        entropy = self.surprise(state[0], agent.sample(k_read, 4 * self.batch_size)).mean()

        def step(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, Array]:
            net, opt_state = state
            rows = agent.sample(key, self.batch_size)
            loss, grads = jax.value_and_grad(lambda net: self.surprise(net, rows).mean())(net)
            updates, opt_state = optimise.update(grads, opt_state)
            return (eqx.apply_updates(net, updates), opt_state), loss

        state, losses = jax.lax.scan(step, state, jax.random.split(k_train, self.updates))
        return state, {"entropy": entropy, "loss": losses[-1]}

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        surprise = jnp.minimum(self.surprise(state[0], agent.transitions), self.clip)
        return self.weight * (surprise - (agent.valid @ surprise) / agent.valid.sum())
