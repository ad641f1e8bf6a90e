"""The discriminator: tells the expert's transitions from the agent's, and pays the agent for being mistaken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.nets import MLP
from iddm.rewards.term import Metrics, Term
from iddm.rollout import AgentBatch, ExpertData

Part = Literal["s", "a", "s_next"]


def discriminator_loss(expert_logits: Float[Array, " n"], agent_logits: Float[Array, " n"]) -> Float[Array, ""]:
    """−E_A[log D_φ] − E_E[log(1 − D_φ)]   (IDDM, Algorithm 1), with D_φ = σ(−logit): logits are expert-is-high."""
    return jax.nn.softplus(agent_logits).mean() + jax.nn.softplus(-expert_logits).mean()


def gradient_penalty(net: Callable[[Array], Array], x: Float[Array, "n inputs"]) -> Float[Array, ""]:
    """E[(‖∇_x logit(x)‖ − 1)²]   (Gulrajani et al. 2017, Eq. 3). Not in the paper; keeps D from saturating."""
    slope = jax.grad(lambda x: net(x).sum())(x)
    return jnp.mean((jnp.sqrt(jnp.sum(slope**2, axis=-1) + 1e-12) - 1) ** 2)


def imitation_reward(logits: Float[Array, " n"], form: str) -> Float[Array, " n"]:
    """The paper's cost is log D_φ(s, s'), so the reward is −log D_φ = softplus(logit) ("softplus", never negative).

    The others are for study: log(1 − D_φ) ("log_expert", never positive) and their sum, the logit ("logit", AIRL's).
    """
    forms = {"softplus": jax.nn.softplus, "log_expert": jax.nn.log_sigmoid, "logit": lambda x: x}
    return forms[form](logits)


@dataclass(frozen=True)
class Adversarial(Term):
    """Matches the expert's distribution over the parts it sees: (s, a) is GAIL, (s, s') GAIfO and IDDM, (s) GAIfO-s."""

    name: ClassVar[str] = "adversarial"
    sees: tuple[Part, ...] = ("s", "s_next")
    """What the discriminator is shown."""
    reward_form: Literal["softplus", "log_expert", "logit"] = "softplus"
    """How a logit becomes a reward."""
    learning_rate: float = 3e-4
    """Adam's rate."""
    updates: int = 8
    """Gradient steps an iteration."""
    batch_size: int = 512
    """Rows of each side a gradient step."""
    gradient_penalty: float = 10.0
    """Weight of the penalty on interpolates; 0 turns it off."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the hidden layers."""

    @property
    def needs_demos(self) -> bool:
        return True

    @property
    def needs_expert_actions(self) -> bool:
        return "a" in self.sees

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, shown: tuple[int, int] | None = None) -> PyTree:
        past, now = shown or (obs_size, obs_size)
        width = {"s": past, "a": action_size, "s_next": now}
        net = MLP(key, sum(width[part] for part in self.sees), self.hidden, 1)
        return net, self._optimiser().init(eqx.filter(net, eqx.is_array))

    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def update(
        self,
        state: PyTree,
        agent: AgentBatch,
        expert: ExpertData | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        assert expert is not None
        optimise = self._optimiser()

        def loss(net: MLP, x_expert: Array, x_agent: Array, mix: Array) -> tuple[Array, Metrics]:
            logits = net(jnp.concatenate([x_expert, x_agent]))[:, 0]
            on_expert, on_agent = jnp.split(logits, 2)
            bce = discriminator_loss(on_expert, on_agent)
            metrics = {
                "loss": bce,
                "expert_accuracy": (on_expert > 0).mean(),
                "agent_accuracy": (on_agent < 0).mean(),
            }
            if not self.gradient_penalty:
                return bce, metrics
            return bce + self.gradient_penalty * gradient_penalty(net, mix * x_expert + (1 - mix) * x_agent), metrics

        def step(state: PyTree, key: PRNGKeyArray) -> tuple[PyTree, Metrics]:
            net, opt_state = state
            k_expert, k_agent, k_mix = jax.random.split(key, 3)
            x_expert = expert.sample(k_expert, self.batch_size).shown(self.sees)
            x_agent = agent.sample(k_agent, self.batch_size).shown(self.sees)
            mix = jax.random.uniform(k_mix, (self.batch_size, 1))
            grads, metrics = jax.grad(loss, has_aux=True)(net, x_expert, x_agent, mix)
            updates, opt_state = optimise.update(grads, opt_state)
            return (eqx.apply_updates(net, updates), opt_state), metrics

        state, metrics = jax.lax.scan(step, state, jax.random.split(key, self.updates))
        return state, jax.tree.map(jnp.mean, metrics)

    def reward(self, state: PyTree, agent: AgentBatch, key: PRNGKeyArray) -> Float[Array, " rows"]:
        net, _ = state
        return imitation_reward(net(agent.transitions.shown(self.sees))[:, 0], self.reward_form)
