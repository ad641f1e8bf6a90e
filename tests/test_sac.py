"""The off-policy learner: its equations against independent computations, its buffer, and exact resuming."""

import os
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import iddm
from iddm.demos import Demos
from iddm.envs.rollout import Rollout
from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.learners.base import Problem, Progress
from iddm.learners.inverse_models import InverseModels
from iddm.learners.replay_buffer import ReplayBuffer
from iddm.learners.sac import SAC
from iddm.learners.sac_loss import actor_loss, critic_loss, critic_target, temperature_loss
from iddm.learners.sac_step import ReplayBatches
from iddm.nets import MLP, SquashedGaussianPolicy
from iddm.rewards import EnvironmentReward
from iddm.training.checkpoints import Checkpoint
from iddm.training.loop import Interrupted
from iddm.training.replay_file import Mark, ReplayFile

SMALL: dict[str, Any] = {
    "steps": 160,
    "num_envs": 2,
    "rollout_length": 8,
    "random_steps": 64,
    "hidden": (16, 16),
    "batch_size": 16,
    "inverse": {"hidden": (16,)},
    "adversarial": {"hidden": (16,), "batch_size": 16},
    "checkpoint_every": 2,
    "restart_every": 3,
    "evaluations": 0,
}


BOX = ActionSpace(2, discrete=False, low=(-1.0, -1.0), high=(1.0, 1.0), shape=(2,))


def policy_and_critics() -> tuple[SquashedGaussianPolicy, tuple[MLP, MLP]]:
    k = jax.random.split(jax.random.PRNGKey(0), 3)
    policy = SquashedGaussianPolicy(MLP(k[0], 3, (8,), 4, activation="relu"))
    first, second = (MLP(key, 5, (8,), 1, activation="relu", layer_norm=True) for key in k[1:])
    return policy, (first, second)


def forward(net: MLP, x: np.ndarray) -> np.ndarray:
    """A normalised ReLU network with one hidden layer, in NumPy."""
    x = x @ np.asarray(net.weights[0]) + np.asarray(net.biases[0])
    if net.gains:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return np.maximum(x, 0) @ np.asarray(net.weights[1]) + np.asarray(net.biases[1])


def test_critic_target_is_the_bellman_backup_of_the_lower_critic() -> None:
    _, critics = policy_and_critics()
    rng = np.random.default_rng(0)
    x, reward = rng.normal(size=(6, 5)), rng.normal(size=6)
    ended = np.array([0, 1, 0, 0, 1, 0], bool)
    ours = critic_target(jnp.asarray(reward), critics, jnp.asarray(x), jnp.asarray(ended), 0.9, 7.0)
    lower = np.minimum(*(forward(critic, x)[:, 0] for critic in critics))
    np.testing.assert_allclose(ours, reward + 0.9 * np.where(ended, 7.0, lower), rtol=1e-4)


def test_critic_loss_is_the_sum_of_both_squared_errors() -> None:
    _, critics = policy_and_critics()
    x, target = np.random.default_rng(1).normal(size=(6, 5)), np.arange(6.0)
    loss, mean = critic_loss(critics, jnp.asarray(x), jnp.asarray(target))
    values = [forward(critic, x)[:, 0] for critic in critics]
    assert loss == pytest.approx(sum(((v - target) ** 2).mean() for v in values), rel=1e-4)
    assert mean == pytest.approx(values[0].mean(), rel=1e-4)


def test_actor_gradient_is_that_of_the_loss_at_the_same_noise() -> None:
    policy, critics = policy_and_critics()
    s, key, temperature = jax.random.normal(jax.random.PRNGKey(5), (4, 3)), jax.random.PRNGKey(6), 0.3
    noise = np.asarray(jax.random.normal(key, (4, 2)))

    def loss_at(bias: np.ndarray) -> float:
        """The loss from its definition, in float64, with another last bias of the policy."""
        hidden = np.maximum(np.asarray(s, np.float64) @ np.asarray(policy.net.weights[0]) + np.asarray(policy.net.biases[0]), 0)
        mean, raw = np.split(hidden @ np.asarray(policy.net.weights[1]) + bias, 2, axis=-1)
        log_std = -5 + 3.5 * (np.tanh(raw) + 1)
        u = mean + np.exp(log_std) * noise
        log_prob = (-0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi) - np.log(1 - np.tanh(u) ** 2)).sum(-1)
        x = np.concatenate([np.asarray(s), np.tanh(u)], axis=-1)
        return (temperature * log_prob - np.minimum(*(forward(c, x)[:, 0] for c in critics))).mean()

    bias = np.asarray(policy.net.biases[1], np.float64)
    slope = [(loss_at(bias + step) - loss_at(bias - step)) / 2e-4 for step in 1e-4 * np.eye(4)]
    grads = jax.grad(lambda p: actor_loss(p, critics, s, jnp.asarray(temperature), key)[0])(policy)
    np.testing.assert_allclose(grads.net.biases[1], slope, rtol=2e-2, atol=1e-3)


def test_temperature_rises_where_entropy_is_below_its_target() -> None:
    for log_prob, rises in ((3.0, True), (-3.0, False)):  # entropy −3 and 3, target −1
        grad = jax.grad(temperature_loss)(jnp.asarray(0.0), jnp.asarray(log_prob), -1.0)
        assert (grad < 0) == rises


def test_density_of_a_squashed_gaussian_integrates_to_one_and_matches_its_samples() -> None:
    policy = SquashedGaussianPolicy(MLP(jax.random.PRNGKey(0), 3, (8,), 2, activation="relu"))
    s = jnp.ones((20_001, 3))
    a = jnp.linspace(-1 + 1e-5, 1 - 1e-5, 20_001)[:, None]
    density = np.exp(np.asarray(policy.log_prob(s, a), np.float64))
    assert np.trapezoid(density, np.asarray(a[:, 0], np.float64)) == pytest.approx(1, abs=5e-3)
    drawn, log_prob = policy.sample_with_log_prob(s[:500], jax.random.PRNGKey(1))
    near = np.abs(np.asarray(drawn[:, 0])) < 0.999
    np.testing.assert_allclose(np.asarray(policy.log_prob(s[:500], drawn))[near], np.asarray(log_prob)[near], atol=2e-2)


def rollout_of(values: np.ndarray, valid: np.ndarray) -> Rollout:
    shape = values.shape
    flags = np.zeros(shape, bool)
    obs = values[..., None].astype(np.float32)
    step = np.zeros(shape, np.int32)
    return Rollout(obs, obs, obs + 1, values.astype(np.float32), flags, flags, valid, step)


def test_actions_are_taken_with_noise_that_falls_and_within_their_limits() -> None:
    sac, problem = SAC(hidden=(8,), noise=0.5, final_noise=0.005), Problem(3, BOX)
    state = sac.init(problem, None, jax.random.key(0))
    assert sac.actor(state, Progress(0, 1.0, False)) is None, "the first iteration is random"
    s, taken = jax.random.normal(jax.random.key(1), (1000, 3)), {}
    for left in (1.0, 0.5, 0.0):
        acting, _ = sac.actor(state, Progress(1, left, False)) or pytest.fail("no actor")
        noise = acting.noise(jax.random.key(2), (1000,))
        taken[left] = acting.sample(s, noise)
        own = state.policy.sample(s, noise)
        deviation = 0.005 * 100**left  # half-way in time is half-way in the logarithm
        np.testing.assert_allclose(taken[left], np.clip(own + deviation * noise, -1, 1), atol=1e-6)
    assert float(jnp.abs(taken[1.0]).max()) == 1.0


def test_annealed_learning_rates_fall_to_nothing_at_the_end() -> None:
    problem, rows = Problem(3, BOX, (EnvironmentReward(),)), np.random.default_rng(0).normal(size=(2, 16, 11)).astype(np.float32)
    batches = ReplayBatches(rows, rows, (np.zeros(3), np.ones(3)), np.ones(3), (np.array(32), np.array(0), np.array(0)))

    def moved(left: float, **settings: Any) -> dict[str, float]:
        sac = SAC(hidden=(8,), batch_size=16, **{"anneal": True, **settings})
        state = sac.init(problem, None, jax.random.key(0))
        after, _ = sac.update(problem, state, batches, None, jax.random.key(1), Progress(1, left))
        parts = {"policy": (state.policy, after.policy), "critics": (state.critics, after.critics)}
        return {
            name: max(float(jnp.abs(x - y).max()) for x, y in zip(*map(jax.tree.leaves, p), strict=True))
            for name, p in parts.items()
        }

    first, half, last = (moved(left) for left in (1.0, 0.5, 0.0))
    for part in first:
        assert 0 < half[part] < first[part]
        assert last[part] == 0
    assert min(moved(0.0, anneal=False).values()) > 0


def test_the_weight_of_cloning_falls_geometrically_and_stays_off_where_it_is_off() -> None:
    models = InverseModels(cloning_weight=200.0, cloning_left=0.01)
    assert [models.annealed_weight(left) for left in (1.0, 0.5, 0.0)] == pytest.approx([200, 20, 2])
    assert InverseModels(cloning_weight=0.0).annealed_weight(0.0) == 0
    with pytest.raises(UserError, match=r"inverse\.cloning_left is 0.*above 0 to 1"):
        InverseModels(cloning_left=0.0)


def test_a_run_anneals_unless_demonstrations_end_by_themselves_or_the_user_says() -> None:
    assert SAC().for_demos(end_early=False).anneal is True
    assert SAC().for_demos(end_early=True).anneal is False
    assert SAC(anneal=True).for_demos(end_early=True).anneal is True
    assert SAC(anneal=False).for_demos(end_early=False).anneal is False


def test_invalid_rows_never_enter_the_buffer_and_only_the_newest_are_kept() -> None:
    buffer = ReplayBuffer(1, 1, 0, capacity=10)
    valid = np.ones((4, 2), bool)
    valid[1, 0] = False
    buffer.add(rollout_of(np.arange(8.0).reshape(4, 2), valid))
    assert (buffer.total, buffer.size) == (7, 7)
    buffer.add(rollout_of(np.arange(8.0, 16.0).reshape(4, 2), np.ones((4, 2), bool)))
    rng = np.random.default_rng(0)
    kept = set(buffer.draw(rng, (500,))[:, 0].tolist())
    assert kept == set(range(6, 16))
    assert set(buffer.draw(rng, (500,), newest=3)[:, 0].tolist()) == {13, 14, 15}
    assert buffer.newest(2)[:, 0].tolist() == [14, 15]
    everything = np.r_[0, 1, 3:16]
    np.testing.assert_allclose(buffer.statistics.mean, everything.mean())
    np.testing.assert_allclose(buffer.statistics.square / 15, everything.var())
    assert len(buffer.take_unsaved()) == 15
    assert len(buffer.take_unsaved()) == 0


def test_the_buffer_on_disk_comes_back_to_a_mark_and_a_changed_byte_is_found(tmp_path: Path) -> None:
    file, mark = ReplayFile(tmp_path / "replay.f32"), Mark()
    source = ReplayBuffer(1, 1, 0, capacity=6)
    marks = []
    for i in range(3):
        source.add(rollout_of(np.arange(4.0).reshape(4, 1) + 4 * i, np.ones((4, 1), bool)))
        mark = file.append(source.take_unsaved(), mark)
        marks.append(mark)
    restored = ReplayBuffer(1, 1, 0, capacity=6)
    file.restore(restored, marks[1])
    assert (restored.total, restored.newest(10)[:, 0].tolist()) == (8, [2, 3, 4, 5, 6, 7])
    assert file.path.stat().st_size == 8 * 4 * source.columns.width, "what came after the mark is cut off"
    data = bytearray(file.path.read_bytes())
    data[20] ^= 1
    file.path.write_bytes(data)
    with pytest.raises(UserError, match="replay buffer is damaged"):
        file.restore(ReplayBuffer(1, 1, 0, capacity=6), marks[1])


class Clock(gym.Env):
    """Reward 1 per step, whatever is done; an episode is cut, or ends, after four steps."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, ends: bool) -> None:
        self.ends, self.time = ends, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.time += 1
        over = self.time == (1 if self.ends else 4)
        return np.zeros(1, np.float32), 1.0, over and self.ends, over and not self.ends, {}


def endless() -> gym.Env:
    return Clock(ends=False)


def one_step() -> gym.Env:
    return Clock(ends=True)


@pytest.mark.parametrize(("make", "value"), [(endless, 5.0), (one_step, 1.0)])
def test_values_of_a_constant_reward_are_known_and_truncation_is_not_termination(make, value: float, tmp_path: Path) -> None:
    settings = {"steps": 1_200, "random_steps": 200, "num_envs": 2, "hidden": (16,), "discount": 0.8, "target_rate": 0.05}
    slow_entropy = {"temperature": 1e-6, "learning_rate": 1e-6}
    run = iddm.train(make, None, "ppo", tmp_path / "run", learner="sac", **settings, **slow_entropy)
    assert run.metrics()[-1]["sac/q"] == pytest.approx(value, rel=0.1)


@pytest.fixture(scope="module")
def whole(hopper_demos: Demos, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sac") / "whole"
    return iddm.train("Hopper-v5", hopper_demos, "gaifo", out, learner="sac", **SMALL).path


@pytest.mark.parametrize("stop_after", [1, 3, 4])
def test_a_resumed_run_with_a_buffer_equals_an_uninterrupted_one(
    stop_after: int, whole: Path, hopper_demos: Demos, tmp_path: Path
) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        iddm.train("Hopper-v5", hopper_demos, "gaifo", tmp_path / "run", learner="sac", on_row=interrupt, **SMALL)
    run = iddm.resume(tmp_path / "run", demos=hopper_demos)
    assert run.policy_path.read_bytes() == (whole / "policy.safetensors").read_bytes()


def test_a_crash_after_the_buffer_was_written_but_before_the_checkpoint_loses_nothing(
    whole: Path, hopper_demos: Demos, tmp_path: Path, monkeypatch
) -> None:
    from iddm.training.checkpoints import Checkpoints

    saved = Checkpoints.save

    def crash(self: Checkpoints, checkpoint: Checkpoint) -> None:
        if checkpoint.iteration == 4:
            raise MemoryError
        saved(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "save", crash)
    with pytest.raises(MemoryError):
        iddm.train("Hopper-v5", hopper_demos, "gaifo", tmp_path / "run", learner="sac", **SMALL)
    monkeypatch.undo()
    run = iddm.resume(tmp_path / "run", demos=hopper_demos)
    assert run.policy_path.read_bytes() == (whole / "policy.safetensors").read_bytes()


def test_state_only_methods_learn_the_same_with_and_without_actions(whole: Path, hopper_demos: Demos, tmp_path: Path) -> None:
    run = iddm.train("Hopper-v5", hopper_demos.states_only(), "gaifo", tmp_path / "run", learner="sac", **SMALL)
    assert run.policy_path.read_bytes() == (whole / "policy.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("iddm", {"mi": {"hidden": (16,), "batch_size": 64}}),
        ("gaifo", {"columns": "0:5", "window": 3, "stride": "2"}),
        ("gaifo", {"adversarial": {"absorbing": True, "hidden": (16,), "batch_size": 16}}),
    ],
)
def test_what_ppo_can_do_sac_can_too(method: str, more: dict[str, Any], hopper_demos: Demos, tmp_path: Path) -> None:
    run = iddm.train("Hopper-v5", hopper_demos, method, tmp_path / "run", learner="sac", **SMALL | {"steps": 96} | more)
    last = run.metrics()[-1]
    assert np.isfinite([value for name, value in last.items() if "/" in name]).all()
    assert ("inverse/error" in last) == ("columns" not in more and "stride" not in more)
    assert iddm.load_policy(run.path).predict(np.zeros((5, 11)), np.random.default_rng(0)).shape == (5, 3)


def test_the_entropy_terms_weight_is_the_lowest_temperature(hopper_demos: Demos, tmp_path: Path) -> None:
    run = iddm.train("Hopper-v5", hopper_demos, "gail", tmp_path / "run", learner="sac", **SMALL, entropy={"weight": 0.5})
    assert run.metrics()[-1]["sac/temperature"] == pytest.approx(0.5)


def test_saved_policy_of_sac_acts_like_its_network_and_onnx_like_it(whole: Path, tmp_path: Path) -> None:
    policy = iddm.load_policy(whole)
    obs = np.random.default_rng(0).normal(size=(7, 11)).astype(np.float32)
    x = np.clip((obs - policy.mean) / policy.std, -10, 10)
    for weight, bias in zip(policy.weights[:-1], policy.biases[:-1], strict=True):
        x = np.maximum(x @ weight + bias, 0)
    expected = np.tanh((x @ policy.weights[-1] + policy.biases[-1])[:, :3])
    np.testing.assert_allclose(policy.predict(obs), expected, atol=1e-6)
    iddm.export_policy(policy, "onnx", tmp_path / "p.onnx")
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "p.onnx")
    np.testing.assert_allclose(session.run(None, {"obs": obs})[0], expected, atol=1e-5)
    with pytest.raises(UserError, match="exported to onnx or npz"):
        iddm.export_policy(policy, "sb3", tmp_path / "p.zip")


def test_discrete_actions_and_other_methods_stay_with_their_learner(cartpole_demos: Demos, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="use --learner ppo"):
        iddm.train("CartPole", cartpole_demos, "gaifo", tmp_path / "run", learner="sac")
    with pytest.raises(UserError, match="'bc' with preset 'tuned' learns with cloning, not with 'sac'"):
        iddm.train("CartPole", cartpole_demos, "bc", tmp_path / "run", learner="sac")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_sac_swings_a_pendulum_up_from_its_own_experts_states(tmp_path: Path) -> None:
    expert = iddm.train("Pendulum-v1", None, "ppo", tmp_path / "expert", learner="sac", steps=15_000).policy
    demos = iddm.record_demos(expert, 10)
    run = iddm.train("Pendulum-v1", demos, "gaifo", tmp_path / "run", learner="sac", steps=20_000)
    assert iddm.evaluate(run.policy, episodes=20).mean > demos.episode_returns.mean() - 60
