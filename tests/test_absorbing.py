"""Absorbing states: what the discriminator is shown after an episode's end, and what that end is worth."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iddm.config import configure, default_config
from iddm.demos import Demos
from iddm.envs.spec import resolve, shape_of
from iddm.errors import UserError
from iddm.learners.ppo_loss import gae
from iddm.rewards import Adversarial
from iddm.rewards.absorbing import after_the_end, agent_share, expert_share, with_ends
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.training.demonstrations import expert_ends
from iddm.training.setup import Setup
from iddm.training.train import train

from .conftest import TINY
from .test_rewards import ACT, OBS, ROWS, agent_batch


def demos_of(lengths: list[int], limit: int, terminated: list[bool] | None = None) -> ExpertSampler:
    rng = np.random.default_rng(0)
    demos = Demos(
        observations=tuple(2 + rng.normal(size=(n + 1, OBS)).astype(np.float32) for n in lengths),
        terminated=None if terminated is None else np.array(terminated),
    )
    rows, starts = demos.flat()
    return ExpertSampler(Expert(jnp.asarray(rows), jnp.asarray(starts), ends=expert_ends(demos, demos, limit)))


def absorbed_share(demos: ExpertSampler) -> float:
    assert demos.expert.ends is not None
    return float(expert_share(demos.expert.ends, demos.expert.starts.shape[0]))


def test_terminal_state_becomes_the_absorbing_one_and_all_others_keep_theirs() -> None:
    rows = agent_batch().transitions
    ends = jnp.zeros(ROWS, bool).at[5].set(True)
    shown = with_ends(rows, ends)
    np.testing.assert_array_equal(shown.s_next[5], [0, 0, 0, 1])
    np.testing.assert_array_equal(shown.s[5], [*rows.s[5], 0])
    np.testing.assert_array_equal(shown.s_next[4], [*rows.s_next[4], 0])
    np.testing.assert_array_equal(after_the_end(rows).inputs(("s", "a", "s_next")), [[0, 0, 0, 1, 0, 0, 0, 0, 0, 1]])


def test_episodes_shorter_than_the_limit_ended_unless_the_file_says_otherwise() -> None:
    unsaid = demos_of([4, 10, 6], limit=10)
    assert unsaid.expert.ends.terminal.nonzero()[0].tolist() == [4, 22]
    assert absorbed_share(unsaid) == pytest.approx((6 + 4) / (6 + 4 + 20))
    said = demos_of([4, 10, 6], limit=10, terminated=[False, False, True])
    assert said.expert.ends.terminal.nonzero()[0].tolist() == [22]
    assert absorbed_share(said) == pytest.approx(4 / 24)
    assert absorbed_share(demos_of([10, 10], limit=10)) == 0


def test_terminal_rows_of_the_demonstrations_are_the_absorbing_state() -> None:
    expert, key = demos_of([4, 10], limit=10), jax.random.PRNGKey(0)
    plain, ends = expert.sample(key, 500), expert.sample_ends(key, 500)
    shown = with_ends(plain, ends)
    np.testing.assert_array_equal(ends, (plain.s_next == expert.expert.rows[4]).all(-1))
    assert 0 < ends.sum() < 100
    np.testing.assert_array_equal(shown.s_next[ends], jnp.tile(jnp.array([0.0, 0, 0, 1]), (int(ends.sum()), 1)))
    assert shown.s[:, -1].max() == 0


def test_agents_share_counts_the_steps_that_terminated_episodes_left_unused() -> None:
    batch = agent_batch()
    ends = jnp.zeros(ROWS, bool).at[jnp.array([9, 99, 100])].set(True)
    batch = batch._replace(terminated=ends, step=jnp.arange(ROWS), valid=batch.valid.at[100].set(0.0))
    unused = (1000 - 10) + (1000 - 100)
    assert agent_share(batch, jnp.asarray(1000.0)) == pytest.approx(unused / (unused + ROWS - 1))


def test_terminal_state_is_worth_the_return_of_staying_there() -> None:
    term = Adversarial(hidden=(16,), absorbing=True)
    state, batch = term.init(jax.random.PRNGKey(0), OBS, ACT), agent_batch()
    paid = term.absorbing_reward(state, batch)
    net, _ = state
    assert paid == pytest.approx(float(jax.nn.softplus(net(jnp.array([0, 0, 0, 1.0, 0, 0, 0, 1]))[0])), rel=1e-5)
    discount = 0.9
    one = jnp.ones((1, 1))
    forever = sum(discount**t * float(paid) for t in range(500))
    advantage = gae(one, 0 * one, 7 * one, one > 0, one > 0, discount, 0.95, terminal_value=paid / (1 - discount))
    assert advantage[0, 0] == pytest.approx(1 + discount * forever, rel=1e-4)


def test_without_the_option_an_end_is_worth_nothing_and_the_network_is_as_before() -> None:
    plain, absorbing = Adversarial(hidden=(16,)), Adversarial(hidden=(16,), absorbing=True)
    batch = agent_batch()
    state = plain.init(jax.random.PRNGKey(0), OBS, ACT)
    assert plain.absorbing_reward(state, batch) == 0.0
    assert state[0].weights[0].shape[0] + 2 == absorbing.init(jax.random.PRNGKey(0), OBS, ACT)[0].weights[0].shape[0]
    ended = batch._replace(terminated=jnp.ones(ROWS, bool))
    np.testing.assert_array_equal(*(plain.reward(state, b, jax.random.PRNGKey(0)) for b in (batch, ended)))


def test_discriminator_learns_what_an_early_end_is_worth() -> None:
    """An agent that dies early beside an expert that never does: staying dead is told from the expert, and pays least."""
    term = Adversarial(hidden=(32,), learning_rate=3e-3, absorbing=True)
    batch = agent_batch(shift=2.0)._replace(terminated=jnp.arange(ROWS) % 16 == 15, step=jnp.arange(ROWS) % 16)
    expert = demos_of([128, 128], limit=128)
    state = term.init(jax.random.PRNGKey(0), OBS, ACT)
    update = jax.jit(lambda state, key: term.update(state, batch, expert, key)[0])
    for i in range(20):
        state = update(state, jax.random.PRNGKey(i))
    pay = term.reward(state, batch, jax.random.PRNGKey(0))
    dead = float(term.absorbing_reward(state, batch))
    assert dead < 0.3 * float(pay[~batch.terminated].mean())


@pytest.mark.parametrize("sees", [("s",), ("s", "a"), ("s", "s_next")])
def test_rows_after_the_end_fit_whatever_the_discriminator_sees(sees) -> None:
    term = Adversarial(sees=sees, hidden=(8,), updates=1, batch_size=16, absorbing=True)
    expert = demos_of([4, 10], limit=10)
    expert = expert._replace(expert=expert.expert._replace(actions=jnp.zeros((14, ACT))))
    state, metrics = term.update(term.init(jax.random.PRNGKey(0), OBS, ACT), agent_batch(), expert, jax.random.PRNGKey(1))
    assert jnp.isfinite(metrics["loss"])
    assert jnp.isfinite(term.absorbing_reward(state, agent_batch()))


def test_run_with_absorbing_states_is_another_run(hopper_demos, tmp_path: Path) -> None:
    small = {"hidden": (16,), "updates": 1, "batch_size": 64, "reward_form": "softplus"}
    for name, absorbing in (("with", True), ("without", False)):
        settings = TINY | {"steps": 512, "adversarial": small | {"absorbing": absorbing}}
        run = train("Hopper-v5", hopper_demos, "gail", tmp_path / name, **settings)
        assert run.config.terms["adversarial"].absorbing == absorbing
        assert all(np.isfinite(row["adversarial/loss"]) for row in run.metrics())
    assert (tmp_path / "with/policy.safetensors").read_bytes() != (tmp_path / "without/policy.safetensors").read_bytes()


def test_absorbing_states_need_a_time_limit_and_whole_episodes(hopper_demos, tmp_path: Path) -> None:
    endless = dataclasses.replace(shape_of(resolve("Hopper-v5")), max_episode_steps=None)
    with pytest.raises(UserError, match="need a time limit"):
        Adversarial(absorbing=True).for_env(endless)
    with pytest.raises(UserError, match="needs whole episodes"):
        train("Hopper-v5", hopper_demos, "gaifo", tmp_path / "run", adversarial={"absorbing": True}, demo_transitions=8, **TINY)


@pytest.mark.parametrize(
    ("terminated", "lengths", "more", "expected"),
    [
        ([True, True, False], (30, 40, 50), {}, ("logit", True)),
        ([False, False, True], (30, 40, 50), {}, ("softplus", False)),
        (None, (30, 40, 1000), {}, ("logit", True)),
        (None, (1000, 1000, 40), {}, ("softplus", False)),
        ([True] * 3, (30, 40, 50), {"columns": "0:5"}, ("logit", False)),
        ([True] * 3, (30, 40, 50), {"adversarial": {"reward_form": "softplus"}}, ("softplus", False)),
    ],
)
def test_the_reward_follows_how_the_demonstrations_end_unless_it_is_given(terminated, lengths, more, expected, caplog) -> None:
    rng = np.random.default_rng(0)
    demos = Demos(
        observations=tuple(rng.normal(size=(n + 1, 11)) for n in lengths),
        terminated=None if terminated is None else np.array(terminated),
    )
    with caplog.at_level("INFO", "iddm"):
        setup = Setup.prepare(configure(default_config("Hopper", "gaifo"), more), demos)
    term = setup.config.terms["adversarial"]
    assert (term.reward_form, term.absorbing) == expected
    assert ("demonstrated episodes end by themselves" in caplog.text) == (expected[0] == "logit")
    assert ("the file does not say" in caplog.text) == (expected[0] == "logit" and terminated is None)


def test_the_papers_preset_keeps_the_papers_reward() -> None:
    assert default_config("Hopper", "gaifo", "paper").terms["adversarial"].reward_form == "softplus"
