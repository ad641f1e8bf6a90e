"""DeepMimic's reward, the time that it needs, and the controls that need no demonstration."""

import os
import signal
from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import iddm
from iddm.envs.rollout import Collector
from iddm.envs.spaces import ActionSpace
from iddm.envs.spec import resolve, shape_of
from iddm.envs.vector import make_vector
from iddm.errors import UserError
from iddm.evaluation import run_episodes
from iddm.rewards import Survival, Tracking
from iddm.rewards.expert import Expert
from iddm.rewards.tracking import tracking_reward
from iddm.tasks import TASKS
from iddm.training.loop import Interrupted
from iddm.training.train import resume, train

from .conftest import TINY
from .test_rewards import agent_batch


def test_tracking_reward_is_the_papers() -> None:
    q, v = np.array([[0.1, -0.3], [0.0, 0.0]]), np.array([[2.0, -5.0], [0.0, 0.0]])
    expected = [0.8 * np.exp(-2 * 0.4) + 0.2 * np.exp(-0.1 * 7.0), 1.0]
    np.testing.assert_allclose(tracking_reward(jnp.asarray(q), jnp.asarray(v)), expected, rtol=1e-5)


def test_tracking_pays_one_on_the_demonstration_whatever_the_other_columns_do() -> None:
    batch = agent_batch()
    batch = batch._replace(target=batch.next_obs.at[:, 1].add(100.0))
    pay = Tracking(positions=(0,), velocities=(2,)).reward((), batch, jax.random.PRNGKey(0))
    np.testing.assert_allclose(pay, 1.0, rtol=1e-6)
    assert Tracking(positions=(1,), velocities=(2,)).reward((), batch, jax.random.PRNGKey(0)).max() < 0.21


def test_target_is_the_first_episode_in_time_and_then_its_last_state() -> None:
    first = jnp.arange(4.0)[:, None]
    demos = Expert(jnp.zeros((9, 1)), jnp.arange(3), reference=first)
    np.testing.assert_array_equal(demos.reference_at(jnp.array([1, 3, 50]))[:, 0], [1, 3, 3])


def test_collector_counts_the_time_within_each_episode() -> None:
    spec = resolve("CartPole-v1", 5)
    collector = Collector(make_vector(spec, 2, 0, "gymnasium"), shape_of(spec).action_space)
    balance = lambda obs, t: (obs @ np.array([0.1, 0.5, 3.0, 1.0]) > 0).astype(int)  # noqa: E731
    parts = [collector.collect(balance, n)[0] for n in (4, 9)]
    step, valid = (np.concatenate([getattr(p, name) for p in parts]) for name in ("step", "valid"))
    assert step[valid[:, 0], 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]
    assert (~valid[:, 0]).nonzero()[0].tolist() == [5, 11]


@pytest.mark.parametrize("task", [t for t in TASKS if t.positions], ids=lambda t: t.name)
def test_joint_columns_move_with_the_simulators_joints(task) -> None:
    """Each angle column changes with its velocity column, and no root or contact column is among them."""
    env = gym.make(task.env_id)
    env.reset(seed=0)
    inner = env.unwrapped
    qpos, qvel = inner.data.qpos.copy(), inner.data.qvel.copy()
    num_joints = len(task.velocities)
    qvel[-num_joints:] = 0.01 * np.arange(1, num_joints + 1)
    if task.name != "InvertedDoublePendulum":  # whose angles are seen as sines and cosines
        qpos[-num_joints:] = 0.02 * np.arange(1, num_joints + 1)
    inner.set_state(qpos, qvel)
    obs = inner._get_obs()
    np.testing.assert_allclose(obs[list(task.velocities)], qvel[-num_joints:])
    if task.name != "InvertedDoublePendulum":
        np.testing.assert_allclose(obs[list(task.positions)], qpos[-num_joints:])
    else:
        angles = qpos[1:]
        np.testing.assert_allclose(obs[list(task.positions)], [qpos[0], *np.sin(angles), *np.cos(angles)])
    env.close()


def test_tracking_knows_the_tasks_columns_and_asks_for_others() -> None:
    hopper = Tracking().for_env(shape_of(resolve("Hopper-v5")))
    assert (hopper.positions, hopper.velocities) == ((2, 3, 4), (8, 9, 10))
    with pytest.raises(UserError, match="CartPole has no tracking reward, as in the paper"):
        Tracking().for_env(shape_of(resolve("CartPole")))
    with pytest.raises(UserError, match="name the columns with --tracking"):
        Tracking().for_env(shape_of(resolve("Pendulum-v1")))
    with pytest.raises(UserError, match="Column 3 is tracked"):
        Tracking(positions=(0, 3)).for_env(shape_of(resolve("Pendulum-v1")))
    assert Tracking(positions=(0, 1)).for_env(shape_of(resolve("Pendulum-v1"))) == Tracking(positions=(0, 1))


def test_resumed_deepmimic_run_equals_an_uninterrupted_one(hopper_demos, tmp_path: Path) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    whole = train("Hopper-v5", hopper_demos.states_only(), "deepmimic", tmp_path / "whole", **TINY)
    with pytest.raises(Interrupted):
        train("Hopper-v5", hopper_demos.states_only(), "deepmimic", tmp_path / "run", on_row=interrupt, **TINY)
    run = resume(tmp_path / "run", demos=hopper_demos)
    assert (run.path / "policy.safetensors").read_bytes() == (whole.path / "policy.safetensors").read_bytes()
    assert all(0 < row["tracking/reward"] < 1 for row in run.metrics())


@pytest.mark.parametrize("env", ["InvertedPendulum-v5", "Hopper-v5", "Ant-v5"])
def test_episodes_start_in_demonstrated_states_and_the_time_starts_there_too(env: str) -> None:
    spec = resolve(env, 4)
    rng = np.random.default_rng(0)
    start = run_episodes(lambda obs: np.zeros((len(obs), *shape_of(spec).action_space.shape), np.float32), spec, 1, seed=3)
    rows = np.concatenate([start[0].observations] * 4) + rng.normal(0, 1e-3, (20, start[0].observations.shape[1]))
    collector = Collector(make_vector(spec, 2, 0, "auto", rows.astype(np.float32)), shape_of(spec).action_space)
    rollout, _ = collector.collect(lambda obs, t: np.zeros((2, shape_of(spec).action_space.size), np.float32), 12)
    first = np.concatenate([np.ones((1, 2), bool), ~rollout.valid[:-1]])
    known = 27 if env == "Ant-v5" else rows.shape[1]  # contact forces are the simulator's own
    np.testing.assert_allclose(rollout.obs[first][:, :known], rows[rollout.step[first]][:, :known], atol=1e-5)
    assert len(set(rollout.step[first].tolist())) > 1
    going = rollout.valid[1:] & rollout.valid[:-1]
    assert (np.diff(rollout.step, axis=0)[going] == 1).all()


def test_reference_starts_resume_exactly_and_say_where_they_cannot_be(hopper_demos, tmp_path: Path) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    settings = TINY | {"tracking": {"reference_starts": True}}
    whole = train("Hopper-v5", hopper_demos, "deepmimic", tmp_path / "whole", **settings)
    with pytest.raises(Interrupted):
        train("Hopper-v5", hopper_demos, "deepmimic", tmp_path / "run", on_row=interrupt, **settings)
    run = resume(tmp_path / "run", demos=hopper_demos)
    assert (run.path / "policy.safetensors").read_bytes() == (whole.path / "policy.safetensors").read_bytes()
    with pytest.raises(UserError, match="EnvPool cannot start episodes from demonstrated states"):
        train("Hopper-v5", hopper_demos, "deepmimic", tmp_path / "no", backend="envpool", **settings)
    with pytest.raises(UserError, match="cannot be set to them"):
        make_vector(resolve("InvertedDoublePendulum-v5"), 1, 0, "auto", np.zeros((5, 9), np.float32))
    assert not (tmp_path / "no").exists()


def test_tracking_needs_whole_episodes(hopper_demos, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs whole episodes"):
        train("Hopper-v5", hopper_demos, "deepmimic", tmp_path / "run", demo_transitions=8, **TINY)


def test_survival_reward_is_one_per_step() -> None:
    assert (Survival().reward((), agent_batch(), jax.random.PRNGKey(0)) == 1.0).all()


def test_control_without_demonstrations_has_the_same_reward_at_every_step(tmp_path: Path) -> None:
    run = train("CartPole", None, "none", tmp_path / "run", **TINY)
    assert [row["survival/reward"] for row in run.metrics()] == [1.0] * 4


@pytest.mark.parametrize(
    "space",
    [
        ActionSpace(3, discrete=True, start=5),
        ActionSpace(2, False, (-2.0, 0.0), (2.0, 10.0), shape=(2,)),
        ActionSpace(1, False, (-np.inf,), (np.inf,), shape=(1,)),
    ],
)
def test_uniform_actions_fill_the_space(space: ActionSpace) -> None:
    drawn = space.to_env(space.uniform(np.random.default_rng(0), (4000,)))
    if space.discrete:
        assert sorted(set(drawn.tolist())) == [5, 6, 7]
    elif np.isfinite(space.low).all():
        np.testing.assert_allclose(drawn.mean(0), [0, 5], atol=0.2)
        np.testing.assert_allclose([drawn.min(0), drawn.max(0)], [space.low, space.high], atol=0.05)
    else:
        assert drawn.std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("env", ["CartPole", "InvertedPendulum"])
def test_random_run_leaves_a_policy_that_acts_at_random(env: str, tmp_path: Path) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    small = {name: value for name, value in TINY.items() if name != "hidden"}
    whole = train(env, None, "random", tmp_path / "whole", **small)
    with pytest.raises(Interrupted):
        train(env, None, "random", tmp_path / "run", on_row=interrupt, **small)
    run = resume(tmp_path / "run")
    assert [m["episode_return"] for m in run.metrics()] == [m["episode_return"] for m in whole.metrics()]
    policy = iddm.load_policy(run.path)
    first, again = (iddm.evaluate(policy, episodes=20) for _ in range(2))
    assert first.returns.tolist() == again.returns.tolist()
    assert first.mean == pytest.approx(iddm.evaluate("random", env=env, episodes=20).mean, rel=0.5)
    drawn = policy.predict(np.zeros((200, policy.obs_size)))
    assert len(np.unique(drawn)) >= 2
