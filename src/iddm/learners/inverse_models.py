"""Inverse dynamics models beside the replay buffer: they label demonstrated transitions, and know how far to be trusted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from iddm.nets import MLP, SquashedGaussianPolicy
from iddm.rewards.rows import AgentRows, Transitions
from iddm.utils.settings import RATE, SHARE, WEIGHT, WIDTH, Range, check


@dataclass(frozen=True)
class InverseModels:
    """Settings of an ensemble of p(a | s, s'), trained on every batch from the buffer.

    Half of a batch is demonstrated transitions with inferred actions, rewarded like the others (as RLPD does with offline
    data, Ball et al. 2023), and the policy clones those actions. Where the models disagree, or the agent has not been near a
    demonstrated transition, its label is not trusted.
    """

    members: int = 3
    """Number of models."""
    hidden: tuple[int, ...] = (128, 128)
    """Width of their hidden layers."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    share: float = 0.5
    """Share of a batch that is demonstrated transitions, where their labels are trusted."""
    cloning_weight: float = 250.0
    """Weight of cloning the labels at first, beside the critics, whose values are of the order of 1 / (1 − γ) = 100."""
    cloning_left: float = 0.1
    """The part of that weight that is left at the end of a run that anneals; until then it falls geometrically."""
    spread: float = 0.01
    """Variance between the models' actions at which the trust in a label has fallen to 1/e."""

    def __post_init__(self) -> None:
        check(self, "inverse", members=Range(2, 100, whole=True), hidden=WIDTH, learning_rate=RATE, share=SHARE)
        check(self, "inverse", cloning_weight=WEIGHT, cloning_left=Range(0, 1, above=True), spread=Range(0, 1e6, above=True))

    @property
    def used(self) -> bool:
        return self.share > 0

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int) -> PyTree:
        nets = [
            MLP(k, 2 * obs_size, self.hidden, action_size, last_gain=0.1, activation="relu")
            for k in jax.random.split(key, self.members)
        ]
        return nets, self._adam().init(eqx.filter(nets, eqx.is_array))

    def _adam(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def annealed_weight(self, left: Array | float) -> Array | float:
        """Of cloning, with this part of the run left: labels lead first, then the critics correct them."""
        return self.cloning_weight * self.cloning_left ** (1 - left)

    def learn(
        self, state: PyTree, x: Float[Array, "rows inputs"], action: Float[Array, "rows actions"]
    ) -> tuple[PyTree, Float[Array, ""]]:
        """One step on Σ_m E[‖q_m(s, s') − a‖²], and the mean squared error per member and action dimension."""
        nets, opt_state = state

        def loss(nets: list[MLP]) -> Array:
            return jnp.stack([((jnp.tanh(net(x)) - action) ** 2).mean() for net in nets]).sum()

        error, grads = jax.value_and_grad(loss)(nets)
        updates, opt_state = self._adam().update(grads, opt_state)
        return (eqx.apply_updates(nets, updates), opt_state), error / self.members

    def infer(self, state: PyTree, x: Float[Array, "rows inputs"]) -> tuple[Float[Array, "rows actions"], Float[Array, " rows"]]:
        """The members' mean action, and exp(−spread / scale): 1 where they agree."""
        nets, _ = state
        actions = jnp.stack([jnp.tanh(net(x)) for net in nets])
        spread = actions.var(axis=0, ddof=1).mean(axis=-1)
        return actions.mean(axis=0), jnp.exp(-spread / self.spread)


class Labels(NamedTuple):
    """Demonstrated transitions, in the environment's units, with inferred actions."""

    s: Float[Array, "n obs"]
    s_next: Float[Array, "n obs"]
    action: Float[Array, "n actions"]
    terminated: Bool[Array, " n"]
    used: Bool[Array, " n"]
    """Whether a row takes the place of one of the agent's in the batch."""
    trust: Float[Array, " n"]
    """Weight of cloning its action."""

    def replace_rows(
        self, batch: AgentRows, obs: Array, action: Array, scale: Callable[[Array], Array]
    ) -> tuple[AgentRows, Array, Array]:
        """The batch with these rows in the place of its first ones, where they are used."""
        n = self.used.shape[0]

        def put(ours: Array, theirs: Array) -> Array:
            used = self.used.reshape(n, *[1] * (theirs.ndim - 1))
            return ours.at[:n].set(jnp.where(used, theirs, ours[:n]))

        rows = batch.transitions
        transitions = Transitions(
            s=put(rows.s, scale(self.s)), a=put(action, self.action), s_next=put(rows.s_next, scale(self.s_next))
        )
        batch = batch._replace(
            transitions=transitions,
            terminated=put(batch.terminated, self.terminated),
            next_obs=put(batch.next_obs, self.s_next),
        )
        return batch, put(obs, self.s), put(action, self.action)

    def cloning_loss(self, policy: SquashedGaussianPolicy, scale: Callable[[Array], Array]) -> Float[Array, ""]:
        """E[w ‖tanh μ(s) − a‖²]: the labels' actions, as far as they are trusted."""
        gap = policy.mode(scale(self.s)) - self.action
        return (self.trust * (gap**2).sum(axis=-1)).mean()
