"""The discriminator: tells the expert's transitions from the agent's, and rewards the agent for being mistaken."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from iddm.envs.spec import EnvShape
from iddm.errors import UserError
from iddm.nets import MLP
from iddm.rewards.absorbing import after_the_end, agent_share, expert_share, with_ends
from iddm.rewards.expert import ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.rewards.term import Metrics, Term
from iddm.utils.settings import BATCH, COUNT, RATE, WEIGHT, WIDTH, check

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
    """What the discriminator compares."""
    reward_form: Literal["softplus", "log_expert", "logit"] | None = None
    """How a logit becomes a reward; without it, softplus, or logit with absorbing states where most demonstrated episodes end
    by themselves."""
    learning_rate: float = 3e-4
    """Learning rate of Adam."""
    updates: int = 8
    """Gradient steps per iteration."""
    batch_size: int = 512
    """Batch size per gradient step, from the expert and from the agent each."""
    gradient_penalty: float = 10.0
    """Weight of the penalty on interpolates; 0 turns it off."""
    hidden: tuple[int, ...] = (300, 400)
    """Width of the hidden layers."""
    absorbing: bool = False
    """Show the discriminator absorbing states, so that neither living nor ending is rewarded as such (needs a time limit)."""

    def __post_init__(self) -> None:
        check(self, self.name, learning_rate=RATE, updates=COUNT, batch_size=BATCH, gradient_penalty=WEIGHT, hidden=WIDTH)

    @property
    def needs_demos(self) -> bool:
        return True

    @property
    def needs_expert_actions(self) -> bool:
        return "a" in self.sees

    @property
    def needs_whole_episodes(self) -> bool:
        return self.absorbing

    def for_demos(self, end_early: bool, whole: bool) -> "Adversarial":
        if self.reward_form is not None:
            return self
        form = "logit" if end_early else "softplus"
        return replace(self, reward_form=form, absorbing=self.absorbing or (end_early and whole))

    def for_env(self, shape: EnvShape) -> "Adversarial":
        if self.absorbing and shape.max_episode_steps is None:
            raise UserError(f"Absorbing states need a time limit, and {shape.env_id} has none; give --max-episode-steps.")
        return self

    def init(self, key: PRNGKeyArray, obs_size: int, action_size: int, compared: tuple[int, int] | None = None) -> PyTree:
        before, newest = compared or (obs_size, obs_size)
        width = {"s": before + self.absorbing, "a": action_size, "s_next": newest + self.absorbing}
        net = MLP(key, sum(width[part] for part in self.sees), self.hidden, 1)
        return net, self._optimiser().init(eqx.filter(net, eqx.is_array))

    @property
    def _form(self) -> str:
        return self.reward_form or "softplus"

    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)

    def update(
        self,
        state: PyTree,
        agent: AgentRows,
        expert: ExpertSampler | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        assert expert is not None
        optimise = self._optimiser()
        shares = (0.0, 0.0)
        ended = None
        if self.absorbing:
            ends = expert.expert.ends
            assert ends is not None
            shares = expert_share(ends, expert.expert.starts.shape[0]), agent_share(agent, ends.limit)
            ended = after_the_end(agent.transitions).inputs(self.sees)
            agent = agent._replace(transitions=with_ends(agent.transitions, agent.terminated))

        def with_ended(x: Array, share: Array | float, key: PRNGKeyArray) -> Array:
            """Put a row from after the end in the place of each row with this probability."""
            return x if ended is None else jnp.where(jax.random.bernoulli(key, share, x.shape[:1])[:, None], ended, x)

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
            k_expert, k_agent, k_mix, k_expert_ended, k_agent_ended = jax.random.split(key, 5)
            demonstrated = expert.sample(k_expert, self.batch_size)
            if self.absorbing:
                demonstrated = with_ends(demonstrated, expert.sample_ends(k_expert, self.batch_size))
            x_expert = demonstrated.compared(self.sees)
            x_agent = agent.sample(k_agent, self.batch_size).compared(self.sees)
            x_expert = with_ended(x_expert, shares[0], k_expert_ended)
            x_agent = with_ended(x_agent, shares[1], k_agent_ended)
            mix = jax.random.uniform(k_mix, (self.batch_size, 1))
            grads, metrics = jax.grad(loss, has_aux=True)(net, x_expert, x_agent, mix)
            updates, opt_state = optimise.update(grads, opt_state)
            return (eqx.apply_updates(net, updates), opt_state), metrics

        state, metrics = jax.lax.scan(step, state, jax.random.split(key, self.updates))
        metrics = jax.tree.map(jnp.mean, metrics)
        if ended is not None:
            metrics |= {
                "absorbed_share": shares[1],
                "absorbing_reward": imitation_reward(state[0](ended)[0], self._form)[0],
            }
        return state, metrics

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        rows = with_ends(agent.transitions, agent.terminated) if self.absorbing else agent.transitions
        return self._reward_of(state, rows)

    def expert_logit(self, state: PyTree, rows: Transitions, terminated: Bool[Array, " rows"]) -> Float[Array, " rows"]:
        """How sure the discriminator is that these rows are the expert's: log D_E / (1 − D_E)."""
        net, _ = state
        rows = with_ends(rows, terminated) if self.absorbing else rows
        return net(rows.compared(self.sees))[:, 0]

    def share_recognised(self, state: PyTree, expert: ExpertSampler, key: PRNGKeyArray, n: int) -> Float[Array, ""]:
        """Of `n` demonstrated transitions, the share that the discriminator takes for the expert's."""
        terminated = expert.sample_ends(key, n) if self.absorbing else jnp.zeros(n, bool)
        return (self.expert_logit(state, expert.sample(key, n), terminated) > 0).mean()

    def absorbing_reward(self, state: PyTree, agent: AgentRows) -> Float[Array, ""] | float:
        return self._reward_of(state, after_the_end(agent.transitions))[0] if self.absorbing else 0.0

    def _reward_of(self, state: PyTree, rows: Transitions) -> Float[Array, " rows"]:
        net, _ = state
        return imitation_reward(net(rows.compared(self.sees))[:, 0], self._form)
