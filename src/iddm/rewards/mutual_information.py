"""The mutual information of a state with what follows it, as a reward."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from iddm.nets import MLP
from iddm.rewards.estimators import ESTIMATORS, Critic
from iddm.rewards.expert import ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.rewards.term import Metrics, Term
from iddm.utils.settings import BATCH, COUNT, RATE, WEIGHT, WIDTH, Range, check

UPDATES = Range(0, 1_000_000_000, whole=True)


class CriticState(NamedTuple):
    net: MLP
    opt_state: PyTree
    log_average: Float[Array, ""]
    """MINE's moving average of E[e^T], as a logarithm."""
    iteration: Int[Array, ""]


def critic_of(net: MLP) -> Critic:
    """T(x, y) from a perceptron on both."""
    return lambda x, y: net(jnp.concatenate([x, y], axis=-1))[:, 0]


def state_and_outcome(rows: Transitions) -> tuple[Float[Array, "rows x"], Float[Array, "rows y"]]:
    """The two sides of I(s; (s', a))   (IDDM, Eq. 10)."""
    return rows.s, rows.inputs(("s_next", "a"))


@dataclass(frozen=True)
class MutualInformation(Term):
    """λ_s I_π(s; (s', a)): the reward of a step is its pointwise information, whose sum to come is Q^I   (IDDM, Proposition 2).

    With the critic held fixed this is the first-order gradient of I. In continuous deterministic dynamics I is infinite, so
    it is clipped; `standardise` makes λ_s mean the same on every task and removes the constant reward for being alive.
    """

    name: ClassVar[str] = "mi"
    weight: float = 0.01
    """The paper's λ_s."""
    estimator: Literal["mine", "js", "infonce"] = "js"
    """How the critic is trained: mine (the paper's), js (steadiest) or infonce."""
    standardise: bool = True
    """Scale the reward to mean 0 and standard deviation 1 within a rollout."""
    clip: float = 10.0
    """Clip the pointwise information to ± this, in nats."""
    learning_rate: float = 3e-4
    """Learning rate of Adam."""
    updates: int = 10
    """Gradient steps per iteration."""
    first_updates: int = 10
    """Gradient steps before the first reward: over `first_iterations` iterations together."""
    first_iterations: int = 1
    """Iterations that share `first_updates`; before the last of them there is no reward. With one, it learns one rollout."""
    batch_size: int = 512
    """Batch size per gradient step."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of the hidden layers."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT, clip=WEIGHT, learning_rate=RATE, updates=UPDATES, first_updates=UPDATES)
        check(self, self.name, first_iterations=COUNT, batch_size=BATCH, hidden=WIDTH)

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, compared: tuple[int, int] | None = None) -> CriticState:
        net = MLP(key, 2 * obs_size + action_size, self.hidden, 1)
        opt_state = self._optimiser().init(eqx.filter(net, eqx.is_array))
        return CriticState(net, opt_state, jnp.zeros(()), jnp.zeros((), int))

    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def update(
        self,
        state: CriticState,
        agent: AgentRows,
        expert: ExpertSampler | None,
        key: PRNGKeyArray,
    ) -> tuple[CriticState, Metrics]:
        estimator, optimise = ESTIMATORS[self.estimator], self._optimiser()
        # Read before training on this rollout: its rows are new to the critic, so the estimate is a held-out one.
        k_read, k_train = jax.random.split(key)
        held_out = state_and_outcome(agent.sample(k_read, 4 * self.batch_size))
        information = estimator.estimate(critic_of(state.net), *held_out)

        def loss(net: MLP, rows: Transitions, log_average: Array) -> tuple[Array, Array]:
            return estimator.loss(critic_of(net), *state_and_outcome(rows), log_average)

        def step(i: Array, carry: tuple[CriticState, Array]) -> tuple[CriticState, Array]:
            state, _ = carry
            rows = agent.sample(jax.random.fold_in(k_train, i), self.batch_size)
            (value, log_average), grads = jax.value_and_grad(loss, has_aux=True)(state.net, rows, state.log_average)
            updates, opt_state = optimise.update(grads, state.opt_state)
            return CriticState(eqx.apply_updates(state.net, updates), opt_state, log_average, state.iteration), value

        first = -(-self.first_updates // self.first_iterations)
        num_updates = jnp.where(state.iteration < self.first_iterations, first, self.updates)
        state, last_loss = jax.lax.fori_loop(0, num_updates, step, (state, jnp.zeros(())))
        return state._replace(iteration=state.iteration + 1), {"information": information, "loss": last_loss}

    def reward(self, state: CriticState, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        rows = state_and_outcome(agent.transitions)
        pmi = ESTIMATORS[self.estimator].pmi(critic_of(state.net), *rows, agent.valid, key)
        pmi = jnp.clip(pmi, -self.clip, self.clip)
        if self.standardise:
            total = agent.valid.sum()
            mean = (agent.valid @ pmi) / total
            std = jnp.sqrt((agent.valid @ (pmi - mean) ** 2) / total)
            pmi = (pmi - mean) / jnp.maximum(std, 1e-6)
        return jnp.where(state.iteration >= self.first_iterations, self.weight * pmi, 0.0)
