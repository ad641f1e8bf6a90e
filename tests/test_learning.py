"""Real learning, small: from states alone to a policy that acts like the expert."""

import pytest

import iddm
from iddm.training.train import train

pytestmark = pytest.mark.usefixtures("well_compiled")

LEARN = {"num_envs": 8, "rollout_length": 128, "hidden": (64, 64), "checkpoint_every": 1000, "evaluations": 0}
FAST = {"ppo": {"learning_rate": 1e-3, "batch_size": 256}}
DISCRIMINATOR = {"hidden": (64, 64), "learning_rate": 1e-3, "batch_size": 256}


def test_ppo_learns_cartpole_from_its_reward(tmp_path) -> None:
    run = train("CartPole", None, "ppo", tmp_path / "run", steps=30_000, **LEARN, **FAST)
    assert iddm.evaluate(run.policy, episodes=10).mean > 190


@pytest.mark.parametrize("method", ["iddm", "gaifo"])
def test_state_only_imitation_learns_cartpole(method: str, cartpole_demos, tmp_path) -> None:
    terms = {"adversarial": DISCRIMINATOR} | ({"mi": {"hidden": (64, 64)}} if method == "iddm" else {})
    demos = cartpole_demos.states_only()
    run = train("CartPole", demos, method, tmp_path / "run", steps=40_000, **LEARN, **FAST, **terms)
    assert iddm.evaluate(run.policy, episodes=10).mean > 180
    assert all(row["adversarial/loss"] == row["adversarial/loss"] for row in run.metrics())


def test_categorical_and_gaussian_policies_learn_through_the_gymnasium_backend(tmp_path) -> None:
    run = train("InvertedPendulum-v5", None, "ppo", tmp_path / "run", steps=24_000, backend="gymnasium", **LEARN, **FAST)
    assert iddm.evaluate(run.policy, episodes=5).mean > 200


@pytest.mark.slow
@pytest.mark.parametrize("method", ["iddm", "gaifo"])
@pytest.mark.parametrize("seed", [0, 1])
def test_halfcheetah_from_two_episodes_of_others(method: str, seed: int, shared_demos, tmp_path) -> None:
    file = shared_demos("cs285_2023/HalfCheetah.npz")
    run = train("HalfCheetah-v5", file, method, tmp_path / "run", steps=1_000_000, seed=seed)
    assert iddm.evaluate(run.policy).mean >= 3900


@pytest.mark.slow
def test_hopper_from_ten_episodes_of_others(shared_demos, tmp_path) -> None:
    run = train("Hopper-v5", shared_demos("opolo/Hopper.npz"), "iddm", tmp_path / "run", steps=1_000_000)
    assert iddm.evaluate(run.policy).mean >= 3300
