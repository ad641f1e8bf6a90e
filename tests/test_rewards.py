"""Reward terms: what they see, what they reward, and what the methods are made of."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iddm.config import default_config
from iddm.envs.rollout import Rollout
from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.learners import PPO, Problem
from iddm.learners.base import Progress
from iddm.methods import PAPER, TUNED, find_method
from iddm.nets import Normaliser, make_policy
from iddm.rewards import Adversarial, MutualInformation, PolicyEntropy, Term
from iddm.rewards.adversarial import discriminator_loss, gradient_penalty, imitation_reward
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.rewards.rows import AgentRows, Transitions
from iddm.training.loop import update

OBS, ACT, ROWS = 3, 2, 256
BOX = ActionSpace(ACT, discrete=False, low=(-1.0,) * ACT, high=(1.0,) * ACT)


def agent_batch(seed: int = 0, shift: float = 0.0) -> AgentRows:
    k = jax.random.split(jax.random.PRNGKey(seed), 3)
    s = jax.random.normal(k[0], (ROWS, OBS)) + shift
    a = jax.random.uniform(k[1], (ROWS, ACT), minval=-1)
    s_next = s + 0.1 * jax.random.normal(k[2], (ROWS, OBS))
    ends, step = jnp.zeros(ROWS, bool), jnp.arange(ROWS)
    return AgentRows(
        transitions=Transitions(s, a, s_next),
        log_prob=jnp.linspace(-3, 0, ROWS),
        env_reward=jnp.ones(ROWS),
        valid=jnp.ones(ROWS),
        terminated=ends,
        step=step,
        next_obs=s_next,
        target=None,
    )


def expert(with_actions: bool = False) -> ExpertSampler:
    rows = 2 + jax.random.normal(jax.random.PRNGKey(9), (ROWS + 1, OBS))
    actions = jnp.zeros((ROWS, ACT)) if with_actions else None
    return ExpertSampler(Expert(rows, jnp.arange(ROWS), actions=actions))


def trained(term, demos: ExpertSampler | None = None, iterations: int = 20):
    state, metrics = term.init(jax.random.PRNGKey(0), OBS, ACT), {}
    update = jax.jit(lambda state, key: term.update(state, agent_batch(), demos, key))
    for i in range(iterations):
        state, metrics = update(state, jax.random.PRNGKey(i))
    return state, metrics


def test_discriminator_loss_is_that_of_algorithm_1() -> None:
    on_expert, on_agent = jnp.array([2.0, -1.0]), jnp.array([0.5, -3.0])
    d = lambda logit: 1 / (1 + np.exp(logit))  # the paper's D: the probability of *agent*  # noqa: E731
    expected = -np.log(d(on_agent)).mean() - np.log(1 - d(on_expert)).mean()
    assert discriminator_loss(on_expert, on_agent) == pytest.approx(expected, rel=1e-5)


def test_reward_is_the_negative_of_the_papers_cost() -> None:
    logits = jnp.array([-2.0, 0.0, 3.0])
    cost = jnp.log(jax.nn.sigmoid(-logits))  # log D(s, s')
    np.testing.assert_allclose(imitation_reward(logits, "softplus"), -cost, rtol=1e-5)
    both = imitation_reward(logits, "softplus") + imitation_reward(logits, "log_expert")
    np.testing.assert_allclose(both, imitation_reward(logits, "logit"), atol=1e-6)


def test_gradient_penalty_is_zero_for_a_unit_slope() -> None:
    unit = lambda x: x[:, :1]  # noqa: E731
    assert gradient_penalty(unit, jnp.ones((4, 3))) == pytest.approx(0, abs=1e-9)
    assert gradient_penalty(lambda x: 3 * x[:, :1], jnp.ones((4, 3))) == pytest.approx(4, rel=1e-5)


def test_discriminator_learns_to_tell_the_two_apart_and_rewards_likeness() -> None:
    term = Adversarial(hidden=(32,), learning_rate=3e-3)
    state, metrics = trained(term, expert())
    assert metrics["expert_accuracy"] > 0.9
    assert metrics["agent_accuracy"] > 0.9
    far, near = agent_batch(1), agent_batch(1, shift=2.0)
    assert term.reward(state, near, jax.random.PRNGKey(0)).mean() > term.reward(state, far, jax.random.PRNGKey(0)).mean() + 0.5


@pytest.mark.parametrize(("sees", "blind_to"), [(("s", "s_next"), "a"), (("s",), "s_next"), (("s", "a"), "s_next")])
def test_reward_ignores_what_the_discriminator_does_not_see(sees, blind_to: str) -> None:
    term = Adversarial(sees=sees, hidden=(16,))
    state = term.init(jax.random.PRNGKey(0), OBS, ACT)
    batch = agent_batch()
    changed = batch._replace(transitions=batch.transitions._replace(**{blind_to: getattr(batch.transitions, blind_to) + 1}))
    np.testing.assert_array_equal(*(term.reward(state, b, jax.random.PRNGKey(0)) for b in (batch, changed)))
    seen = batch._replace(transitions=batch.transitions._replace(**{sees[-1]: getattr(batch.transitions, sees[-1]) + 1}))
    assert (term.reward(state, seen, jax.random.PRNGKey(0)) != term.reward(state, batch, jax.random.PRNGKey(0))).any()


def test_entropy_reward_is_the_negative_log_probability() -> None:
    batch = agent_batch()
    np.testing.assert_allclose(PolicyEntropy(0.01).reward((), batch, jax.random.PRNGKey(0)), -0.01 * batch.log_prob)


def test_mean_entropy_reward_is_the_entropy() -> None:
    policy = make_policy(jax.random.PRNGKey(0), OBS, ActionSpace(2, False, (-1.0, -1.0), (1.0, 1.0), shape=(2,)), (8,), -0.5)
    s = jax.random.normal(jax.random.PRNGKey(1), (50_000, OBS))
    a = policy.sample(s, policy.noise(jax.random.PRNGKey(2), (50_000,)))
    assert -policy.log_prob(s, a).mean() == pytest.approx(float(policy.entropy(s)[0]), abs=0.02)


def test_information_reward_is_standardised_over_the_valid_rows() -> None:
    term = MutualInformation(0.5, hidden=(32,), learning_rate=3e-3, updates=30, first_updates=30)
    state, metrics = trained(term)
    batch = agent_batch()
    batch = batch._replace(valid=batch.valid.at[::4].set(0.0))
    pay = np.asarray(term.reward(state, batch, jax.random.PRNGKey(0)))[np.asarray(batch.valid) > 0]
    assert pay.mean() == pytest.approx(0, abs=1e-5)
    assert pay.std() == pytest.approx(0.5, rel=1e-3)
    assert metrics["information"] > 0.5


def test_first_iteration_of_the_critic_takes_its_own_number_of_updates() -> None:
    counts = []
    for first in (0, 30):
        term = MutualInformation(hidden=(16,), updates=0, first_updates=first)
        state = term.init(jax.random.PRNGKey(0), OBS, ACT)
        for _ in range(2):
            state, _ = term.update(state, agent_batch(), None, jax.random.PRNGKey(1))
        counts.append(int(state.opt_state[0].count))
    assert counts == [0, 30]


def test_pretraining_is_shared_by_the_first_iterations_and_rewards_nothing_before_its_end() -> None:
    term = MutualInformation(hidden=(16,), updates=1, first_updates=7, first_iterations=3)
    state, counts, rewarded = term.init(jax.random.PRNGKey(0), OBS, ACT), [], []
    for i in range(4):
        state, _ = term.update(state, agent_batch(), None, jax.random.PRNGKey(i))
        counts.append(int(state.opt_state[0].count))
        rewarded.append(bool(jnp.any(term.reward(state, agent_batch(), jax.random.PRNGKey(0)) != 0)))
    assert counts == [3, 6, 9, 10]
    assert rewarded == [False, False, True, True]


@pytest.mark.parametrize("estimator", ["mine", "js", "infonce"])
def test_every_estimator_gives_finite_bounded_rewards(estimator) -> None:
    term = MutualInformation(1.0, estimator, standardise=False, clip=3.0, hidden=(16,))
    state, _ = trained(term, iterations=3)
    pay = term.reward(state, agent_batch(), jax.random.PRNGKey(0))
    assert jnp.isfinite(pay).all()
    assert jnp.abs(pay).max() <= 3.0


def test_only_valid_rows_are_sampled() -> None:
    batch = agent_batch()
    valid = batch.valid.at[::2].set(0.0)
    marked = batch._replace(valid=valid, transitions=batch.transitions._replace(s=jnp.ones((ROWS, OBS)) * valid[:, None]))
    assert marked.sample(jax.random.PRNGKey(0), 2000).s.min() == 1.0


def test_expert_samples_are_pairs_of_consecutive_rows() -> None:
    rows = jnp.arange(20.0)[:, None]
    starts = jnp.array([0, 1, 2, 10, 11])
    got = ExpertSampler(Expert(rows, starts)).sample(jax.random.PRNGKey(0), 500)
    np.testing.assert_array_equal(got.s_next, got.s + 1)
    assert set(np.asarray(got.s[:, 0])) == {0, 1, 2, 10, 11}


def test_normaliser_reads_the_agents_own_scale_and_the_even_mixture_with_the_expert() -> None:
    rng = np.random.default_rng(0)
    demos, first, second = (rng.normal(m, 2, (5000, 2)).astype(np.float32) for m in (4.0, 0.0, -1.0))
    norm = Normaliser.start(2, jnp.asarray(demos))
    for part in (first, second):
        norm = norm.update(jnp.asarray(part), jnp.ones(5000))
    agent = np.concatenate([first, second])
    both = np.concatenate([agent, demos, demos])  # equal weights
    np.testing.assert_allclose(norm.own_scale(), [agent.mean(0), agent.std(0)], rtol=1e-3, atol=1e-3)
    mean, std = norm.mixture_scale()
    np.testing.assert_allclose(mean, both.mean(0), atol=1e-3)
    np.testing.assert_allclose(std, both.std(0), rtol=1e-3)


@dataclasses.dataclass(frozen=True)
class Compare(Term):
    """Learns nothing; reports how far the agent's states are from the same states among the demonstrations."""

    name: ClassVar[str] = "compare"

    def update(self, state, agent, expert, key):
        drawn, own = expert.sample(key, 200).s, agent.transitions.s
        return state, {"gap": jnp.abs(drawn[:, None] - own[None]).max(-1).min(1).max()}

    def reward(self, state, agent, key):
        return agent.env_reward


def test_the_first_state_has_no_weak_types_which_would_compile_the_iteration_twice() -> None:
    problem = Problem(OBS, BOX, TUNED["iddm"].terms)
    state = PPO(hidden=(8,)).init(problem, Expert(jnp.zeros((ROWS + 1, OBS)), jnp.arange(ROWS)), jax.random.PRNGKey(0))
    assert not [leaf for leaf in jax.tree.leaves(state) if leaf.weak_type]


def test_terms_see_the_same_state_the_same_whether_it_is_the_agents_or_the_experts() -> None:
    learner, problem = PPO(hidden=(8,)), Problem(OBS, BOX, (Compare(),))
    rng = np.random.default_rng(0)
    past, now = rng.normal(5, 3, (500, OBS)), rng.normal(-1, 2, (ROWS + 1, OBS)).astype(np.float32)
    demos = Expert(jnp.asarray(now), jnp.arange(ROWS))
    state = learner.init(problem, demos, jax.random.PRNGKey(0))
    state = eqx.tree_at(lambda s: s.normaliser, state, state.normaliser.update(jnp.asarray(past, jnp.float32), jnp.ones(500)))
    flag = np.zeros((ROWS, 1), bool)
    action, reward = np.zeros((ROWS, 1, ACT), np.float32), np.zeros((ROWS, 1), np.float32)
    rollout = Rollout(now[:-1, None], action, now[1:, None], reward, flag, flag, ~flag, np.arange(ROWS)[:, None])
    _, metrics = update(learner, problem, state, rollout, demos, jax.random.PRNGKey(0), Progress(0, 1.0))
    assert metrics["compare/gap"] == 0


def test_state_only_methods_never_ask_for_actions_and_gail_and_bc_do() -> None:
    for preset in ("tuned", "paper"):
        asks = {name: default_config("any", name, preset).needs_expert_actions for name in TUNED}
        assert asks == {name: name in ("gail", "bc") for name in TUNED}


def test_experts_and_controls_need_no_demonstrations_and_all_others_do() -> None:
    needs = {name: default_config("any", name).needs_demos for name in TUNED}
    assert needs == {name: name not in ("ppo", "none", "random") for name in TUNED}


def test_paper_preset_is_the_papers_table() -> None:
    adversarial, entropy, mi = PAPER["iddm"].terms
    assert (adversarial.hidden, adversarial.learning_rate, adversarial.batch_size) == ((300, 400), 3e-4, 512)
    assert (entropy.weight, mi.weight, mi.estimator) == (0.01, 0.1, "mine")
    assert (mi.first_updates, mi.updates, mi.hidden) == (10_000, 50, (512, 512))
    assert mi.first_iterations * 2_048 >= 50_000  # the paper's number of transitions, not one rollout
    bc, bco = PAPER["bc"].learner, PAPER["bco"].learner
    for learner in (bc, bco):
        assert (learner.learning_rate, learner.batch_size, learner.hidden) == (3e-4, 512, (300, 400))
    assert (bco.inverse.epochs, bco.inverse.learning_rate, bco.inverse.hidden) == (50, 3e-4, (300, 400))
    ppo = PAPER["iddm"].learner
    assert (ppo.learning_rate, ppo.batch_size, ppo.discount, ppo.hidden) == (3e-4, 512, 0.99, (300, 400))
    assert default_config("Hopper", "iddm", "paper").learner == ppo
    assert PAPER["gail"].terms[1] == PolicyEntropy(0.01)


def test_iddm_is_gaifo_with_two_more_terms() -> None:
    assert TUNED["iddm"].terms[0] == TUNED["gaifo"].terms[0]
    assert dataclasses.replace(TUNED["gaifo-s"].terms[0], sees=("s", "s_next")) == TUNED["gaifo"].terms[0]


def test_unknown_method_and_preset_are_one_sentence() -> None:
    with pytest.raises(UserError, match="Method 'gailfo' is unknown; there are iddm"):
        find_method("gailfo")
    with pytest.raises(UserError, match="Preset 'mine' is unknown"):
        find_method("iddm", "mine")
