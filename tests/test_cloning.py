"""Behavioural cloning, with the expert's actions (bc) and with inferred ones (bco)."""

import os
import signal
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import iddm
from iddm.bundled import bundled_expert, with_expert_actions
from iddm.demos import Demos
from iddm.envs.spaces import ActionSpace
from iddm.envs.spec import resolve
from iddm.errors import UserError
from iddm.evaluation import record_demos, run_episodes
from iddm.learners.bco import change
from iddm.learners.cloning import demo_scale
from iddm.learners.likelihood import LOWEST_LOG_STD, Fit, Rows, cloning_loss, maximise, prediction_error
from iddm.nets import make_policy
from iddm.training.loop import Interrupted
from iddm.training.train import resume, train

BOX = ActionSpace(2, discrete=False, low=(-1.0, -1.0), high=(1.0, 1.0), shape=(2,))
CHOICES = ActionSpace(3, discrete=True)
QUICK = {
    "bc": {"epochs": 35, "batch_size": 64, "hidden": (16, 16)},
    "bco": {
        "steps": 1200,
        "num_envs": 4,
        "hidden": (16, 16),
        "rounds": 3,
        "epochs": 2,
        "batch_size": 64,
        "inverse": {"epochs": 2, "batch_size": 64, "hidden": (16,)},
    },
}


def policy_bytes(path: Path) -> bytes:
    return (path / "policy.safetensors").read_bytes()


def hold_upright(obs: np.ndarray) -> np.ndarray:
    """A linear controller that keeps InvertedPendulum up."""
    return np.clip(obs @ np.array([[0.5], [10.0], [1.0], [2.0]]) / 3, -3, 3).astype(np.float32)


@pytest.fixture(scope="module")
def pendulum_demos() -> Demos:
    episodes = run_episodes(hold_upright, resolve("InvertedPendulum-v5", 300), 3, seed=0)
    assert all(len(e.actions) == 300 for e in episodes), "the controller fell"
    return Demos(observations=tuple(e.observations for e in episodes), actions=tuple(e.actions for e in episodes))


def rows_of(space: ActionSpace, n: int = 400) -> Rows:
    x = jax.random.normal(jax.random.PRNGKey(3), (n, 4))
    a = jnp.argmax(x[:, :3], axis=-1) if space.discrete else jnp.clip(x[:, :2] / 3, -1, 1)
    return Rows(x, a, jnp.ones(n))


def test_cloning_loss_is_the_mean_negative_log_likelihood_of_the_rows_that_count() -> None:
    model, rows = make_policy(jax.random.PRNGKey(0), 4, CHOICES, (8,), 0.0), rows_of(CHOICES)
    half = rows._replace(weight=rows.weight.at[200:].set(0.0))
    assert cloning_loss(model, half) == pytest.approx(float(-model.log_prob(rows.x, rows.a)[:200].mean()), rel=1e-5)


def test_gaussian_likelihood_at_unit_deviation_is_half_the_squared_error_and_a_constant() -> None:
    model, rows = make_policy(jax.random.PRNGKey(0), 4, BOX, (8,), 0.0), rows_of(BOX)
    squared = float(((model.mode(rows.x) - rows.a) ** 2).sum(-1).mean())
    assert cloning_loss(model, rows) == pytest.approx(squared / 2 + np.log(2 * np.pi), rel=1e-5)
    assert prediction_error(model, rows) == pytest.approx((squared / 2) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("space", [BOX, CHOICES])
def test_maximum_likelihood_learns_and_its_held_out_rows_are_the_last_tenth(space: ActionSpace) -> None:
    rows = rows_of(space)
    known, held_out = rows.split()
    assert (len(known.x), len(held_out.x)) == (360, 40)
    np.testing.assert_array_equal(jnp.concatenate([known.x, held_out.x]), rows.x)
    start = Fit.start(make_policy(jax.random.PRNGKey(0), 4, space, (32,), -0.5))
    learned, metrics = maximise(start, rows, jax.random.PRNGKey(1), epochs=60, batch_size=64, learning_rate=3e-3)
    assert metrics["held_out_error"] < 0.5 * prediction_error(start.model, held_out)
    assert metrics["held_out_error"] == pytest.approx(float(prediction_error(learned.model, held_out)), rel=1e-4)
    final, told = maximise(start, rows, jax.random.PRNGKey(1), epochs=60, batch_size=64, learning_rate=3e-3, last=True)
    assert told["held_out_error"] == metrics["held_out_error"], "the error is told before the held-out rows are learned from"
    assert prediction_error(final.model, held_out) < metrics["held_out_error"]
    changed = rows._replace(a=rows.a.at[360:].set(0))
    again, _ = maximise(start, changed, jax.random.PRNGKey(1), epochs=60, batch_size=64, learning_rate=3e-3)
    assert eqx.tree_equal(again.model, learned.model), "held-out rows were learned from"


def test_deviation_of_a_deterministic_expert_stops_at_its_lowest() -> None:
    rows = rows_of(BOX)._replace(a=jnp.zeros((400, 2)))
    start = Fit.start(make_policy(jax.random.PRNGKey(0), 4, BOX, (8,), -2.0))
    learned, _ = maximise(start, rows, jax.random.PRNGKey(0), epochs=100, batch_size=64, learning_rate=3e-2)
    assert learned.model.log_std.min() == LOWEST_LOG_STD


def test_agent_and_expert_are_on_the_demonstrations_scale_and_a_still_column_keeps_its_unit() -> None:
    rows = jnp.stack([jnp.linspace(0.0, 8.0, 50), jnp.full(50, 3.0)], axis=-1)
    scale = demo_scale(rows)
    np.testing.assert_allclose(scale.own(rows).std(0), [1.0, 0.0], rtol=1e-4)
    np.testing.assert_allclose(scale.own(jnp.array([[4.0, 5.0]])), [[0.0, 2.0]], atol=1e-5)


def test_change_holds_state_and_successor() -> None:
    s, s_next = jnp.ones((3, 2)), jnp.full((3, 2), 1.5)
    np.testing.assert_array_equal(change(s, s_next), jnp.concatenate([s, jnp.full((3, 2), 0.5)], axis=-1))


def test_bc_clones_a_continuous_controller_and_takes_no_steps(pendulum_demos: Demos, tmp_path: Path) -> None:
    run = train("InvertedPendulum-v5", pendulum_demos, "bc", tmp_path / "run", hidden=(64, 64), batch_size=128)
    assert iddm.evaluate(run.policy, episodes=5).mean > 900
    rows = run.metrics()
    assert {row["steps"] for row in rows} == {0}
    assert run.policy.config["steps"] == 0
    assert rows[-1]["epochs"] == 300
    first, *later = (row["cloning/held_out_error"] for row in rows)
    assert min(later) < first  # the last may not be: both are far below what the actions need


def test_bco_clones_a_continuous_controller_from_states_alone(pendulum_demos: Demos, tmp_path: Path) -> None:
    run = train(
        "InvertedPendulum-v5",
        pendulum_demos.states_only(),
        "bco",
        tmp_path / "run",
        steps=9_000,
        num_envs=8,
        hidden=(64, 64),
        rounds=3,
        epochs=100,
        batch_size=128,
        learning_rate=1e-3,
        inverse={"hidden": (64, 64), "batch_size": 128, "learning_rate": 1e-3},
    )
    assert iddm.evaluate(run.policy, episodes=5).mean > 500
    assert all(0 < row["inverse/held_out_error"] < 0.5 for row in run.metrics())
    assert run.metrics()[-1]["steps"] == 9_000


def test_bco_clones_choices_from_states_alone(cartpole_demos: Demos, tmp_path: Path) -> None:
    run = train(
        "CartPole",
        cartpole_demos.states_only(),
        "bco",
        tmp_path / "run",
        steps=6_000,
        num_envs=8,
        hidden=(64, 64),
        rounds=2,
        epochs=100,
        batch_size=128,
        learning_rate=1e-3,
        inverse={"hidden": (64, 64), "batch_size": 128, "learning_rate": 1e-3},
    )
    assert iddm.evaluate(run.policy, episodes=10).mean > 180
    assert run.metrics()[-1]["inverse/held_out_error"] < 0.05


@pytest.mark.parametrize("method", ["bc", "bco"])
def test_resumed_cloning_equals_uninterrupted_cloning(method: str, cartpole_demos: Demos, tmp_path: Path) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    def crash(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise MemoryError

    whole = train("CartPole", cartpole_demos, method, tmp_path / "whole", **QUICK[method])
    with pytest.raises(Interrupted, match="--resume"):
        train("CartPole", cartpole_demos, method, tmp_path / "stopped", on_row=interrupt, **QUICK[method])
    with pytest.raises(MemoryError):
        train("CartPole", cartpole_demos, method, tmp_path / "crashed", on_row=crash, **QUICK[method])
    for name in ("stopped", "crashed"):
        run = resume(tmp_path / name, demos=cartpole_demos)
        assert policy_bytes(run.path) == policy_bytes(whole.path)
        assert [row["iteration"] for row in run.metrics()] == [row["iteration"] for row in whole.metrics()]
    other = train("CartPole", cartpole_demos, method, tmp_path / "other", seed=1, **QUICK[method])
    assert policy_bytes(other.path) != policy_bytes(whole.path)


def test_bco_learns_the_same_bytes_with_and_without_the_experts_actions(cartpole_demos: Demos, tmp_path: Path) -> None:
    train("CartPole", cartpole_demos, "bco", tmp_path / "with", **QUICK["bco"])
    train("CartPole", cartpole_demos.states_only(), "bco", tmp_path / "without", **QUICK["bco"])
    assert policy_bytes(tmp_path / "with") == policy_bytes(tmp_path / "without")


def test_bc_without_actions_is_one_sentence_and_its_settings_are_its_own(cartpole_demos: Demos, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="bc needs the expert's actions"):
        train("CartPole", cartpole_demos.states_only(), "bc", tmp_path / "run")
    with pytest.raises(UserError, match=r"'bc' .* learns with cloning, not with 'ppo'"):
        train("CartPole", cartpole_demos, "bc", tmp_path / "run", ppo={"clip": 0.1})
    with pytest.raises(UserError, match="Setting rounds is 0: it must be a whole number from 1"):
        train("CartPole", cartpole_demos, "bco", tmp_path / "run", rounds=0)
    with pytest.raises(UserError, match=r"Setting inverse\.epochs is 0"):
        train("CartPole", cartpole_demos, "bco", tmp_path / "run", inverse={"epochs": 0})
    assert not (tmp_path / "run").exists()


def test_bundled_experts_actions_are_those_that_it_took() -> None:
    recorded = record_demos(bundled_expert("Hopper"), 1, with_actions=True)
    inferred = with_expert_actions(recorded.states_only(), "Hopper")
    assert inferred.actions is not None
    assert recorded.actions is not None
    np.testing.assert_allclose(inferred.actions[0], recorded.actions[0], atol=1e-5)


def test_methods_that_need_actions_train_from_the_bundled_expert_and_resume(tmp_path) -> None:
    run = train("CartPole", method="bc", out=tmp_path / "bc", hidden=(8,), epochs=20)
    assert run.metrics()[-1]["cloning/held_out_error"] < 0.5
    (tmp_path / "bc" / "policy.safetensors").unlink()
    assert resume(tmp_path / "bc").finished
