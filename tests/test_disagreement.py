"""The estimate of the disagreement against the truth where it is known: finite MDPs and linear-Gaussian systems."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from iddm.bundled import bundled_demos, bundled_expert, with_expert_actions
from iddm.cli import main
from iddm.demos import save_demos
from iddm.disagreement.estimate import Disagreement, Episode, Estimate, estimate_disagreement
from iddm.disagreement.measure import Measured, expert_demos, measure
from iddm.envs.redundant import Motors
from iddm.envs.spec import resolve
from iddm.errors import UserError
from iddm.evaluation import run_episodes
from iddm.theory import disagreement, occupancy, random_mdp, random_policy
from iddm.theory.linear_gaussian import (
    LinearPolicy,
    joint_covariance,
    linear_disagreement,
    redundant_example,
    sample_transitions,
)

Sides = tuple[list[Episode], ...]


def episodes(rows: tuple[np.ndarray, ...], number: int = 10) -> list[Episode]:
    return [Episode(*(part[i::number] for part in rows)) for i in range(number)]


def finite(kind: str, num_states: int, num_actions: int) -> tuple[Callable[[int, int], Sides], float, bool]:
    """Draws rows of two random policies in a finite MDP; the truth; whether actions are choices."""
    mdp = random_mdp(kind, num_states, num_actions, 0)
    policies = random_policy(mdp, 1), random_policy(mdp, 2)

    def draw(rows: int, seed: int) -> Sides:
        rng, sides = np.random.default_rng(seed), []
        for policy in policies:
            rho = occupancy(mdp, policy).sas
            s, a, s_next = np.unravel_index(rng.choice(rho.size, rows, p=rho.ravel() / rho.sum()), rho.shape)
            sides.append(episodes((np.eye(num_states)[s], np.eye(num_actions)[a], np.eye(num_states)[s_next])))
        return tuple(sides)

    return draw, disagreement(mdp, *policies), True


def linear(**how: float) -> tuple[Callable[[int, int], Sides], float, bool]:
    system, agent, expert = redundant_example(**how)

    def draw(rows: int, seed: int) -> Sides:
        rng = np.random.default_rng(seed)
        return tuple(episodes(sample_transitions(system, policy, rows, rng)) for policy in (agent, expert))

    return draw, linear_disagreement(system, agent, expert), False


CASES = {
    "finite, deterministic": finite("deterministic", 8, 6),
    "finite, sparse": finite("sparse", 12, 4),
    "finite, injective": finite("injective", 8, 4),
    "linear, transitions matched": linear(null=1.0),
    "linear, transitions differ": linear(null=0.7, shift=0.3),
    "linear, far": linear(null=2.0, noise=0.2),
    "linear, four motors": linear(motors=4, joints=3, states=8, null=0.5, shift=0.1),
    "linear, one motor": linear(motors=1, null=0.0, shift=0.3),
}
"""By name: rows of agent and expert, the truth, and whether actions are choices."""


def test_the_truth_is_in_the_interval_and_all_transitions_are_shared_where_they_are_matched() -> None:
    draw, truth, discrete = CASES["linear, transitions matched"]
    found = estimate_disagreement(*draw(2_000, 0), discrete, steps=100)
    assert found.everywhere.low < truth < found.everywhere.high
    assert found.everywhere.value == pytest.approx(truth, rel=0.15)
    assert found.told_apart == pytest.approx(0.5, abs=0.05)
    assert found.shared.value == pytest.approx(found.everywhere.value, rel=0.05)
    assert found.caution == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_within_ten_percent_of_the_truth(name: str) -> None:
    draw, truth, discrete = CASES[name]
    found = estimate_disagreement(*draw(10_000, 1), discrete)
    assert found.everywhere.value == pytest.approx(truth, rel=0.1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["finite, deterministic", "linear, transitions matched", "linear, transitions differ"])
def test_intervals_cover_the_truth(name: str) -> None:
    draw, truth, discrete = CASES[name]
    found = [estimate_disagreement(*draw(4_000, seed), discrete, seed).everywhere for seed in range(20)]
    assert sum(e.low <= truth <= e.high for e in found) >= 17


def test_linear_disagreement_is_zero_with_one_motor_and_grows_with_the_null_space() -> None:
    """One motor per joint: nearly injective, as the noise of the system is small."""
    assert CASES["linear, one motor"][1] < 0.01
    assert 0 < CASES["linear, transitions matched"][1] < CASES["linear, far"][1]


def test_linear_covariance_is_the_process_own() -> None:
    system, agent, _ = redundant_example(shift=0.2)
    rng = np.random.default_rng(0)
    s, rows = np.zeros((2_000, 4)), []
    for _ in range(40):
        a = s @ agent.gain.T + rng.multivariate_normal(np.zeros(4), agent.noise, len(s))
        s_next = s @ system.a.T + a @ system.b.T + rng.multivariate_normal(np.zeros(4), system.noise, len(s))
        rows, s = [s, a, s_next], s_next
    found = np.cov(np.hstack(rows).T)
    np.testing.assert_allclose(found, joint_covariance(system, agent), atol=0.15 * np.abs(found).max())


def test_an_unstable_system_is_refused() -> None:
    system, agent, _ = redundant_example()
    with pytest.raises(UserError, match="not stationary"):
        joint_covariance(system, LinearPolicy(agent.gain + 100, agent.noise))


def test_what_rows_cannot_show_is_said() -> None:
    sound = Estimate(1.0, 0.9, 1.1)
    far = Estimate(50.0, 49.0, 51.0)
    assert Disagreement(sound, sound, 0.6, 10_000).caution == ""
    assert "at least 9.2" in Disagreement(far, far, 0.6, 10_000).caution
    assert "shared transitions means something" in Disagreement(far, sound, 0.97, 10_000).caution
    assert "few are shared" in Disagreement(far, Estimate(np.nan, np.nan, np.nan), 1.0, 10_000).caution


def test_what_is_not_known_is_null_in_json() -> None:
    sound, unknown = Estimate(1.0, 0.9, 1.1), Estimate(np.nan, np.nan, np.nan)
    found = Measured("Hopper-v5", Disagreement(sound, unknown, 0.97, 10_000), 0.3, 10, 10).to_json()
    assert json.loads(json.dumps(found, allow_nan=False))["shared"] is None
    assert "null_energy" not in found


def test_too_few_episodes_are_one_sentence() -> None:
    draw, _, discrete = CASES["finite, sparse"]
    agent, expert = draw(100, 0)
    with pytest.raises(UserError, match="4 episodes of the expert; cross-fitting needs at least 5"):
        estimate_disagreement(agent, expert[:4], discrete)


def test_demonstrations_without_actions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_demos(bundled_demos("CartPole"), tmp_path / "states.npz")
    assert main(["disagreement", "CartPole", "--demos", str(tmp_path / "states.npz")]) == 2
    assert "there are no actions in it" in capsys.readouterr().err


def test_another_tasks_demonstrations_are_refused() -> None:
    other = with_expert_actions(bundled_demos("InvertedPendulum"), "InvertedPendulum")
    with pytest.raises(UserError, match="11"):
        measure(bundled_expert("Hopper"), other, episodes=1)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["HalfCheetah", "Hopper"])
def test_motors_that_work_against_each_other_in_mujoco_disagree_by_their_energy(task: str) -> None:
    """The expert's torques, made unevenly by two motors: with noise σ on all actions the truth is k E[null energy] / 2σ²."""
    expert, motors, noise, rng = bundled_expert(task), Motors(2), 0.3, np.random.default_rng(0)
    joints = expert.action_space.size

    def unevenly(obs: np.ndarray) -> np.ndarray:
        torque = np.clip(expert.predict(obs), -1, 1)
        against = np.minimum(0.4 * np.tanh(3 * obs[:, 2 : 2 + joints]) ** 2, 1 - np.abs(torque))  # within the Box
        return np.concatenate([torque + against, torque - against], axis=1).astype(np.float32)

    recorded = run_episodes(unevenly, resolve(f"redundant/{task}"), 10, seed=0)
    evenly = with_expert_actions(bundled_demos(task), task, motors)
    agent = [(e.observations, e.actions) for e in recorded]
    assert evenly.actions is not None
    expert_side = list(zip(evenly.observations, evenly.actions, strict=True))
    blurred = [
        [Episode(rows[:-1], action + noise * rng.standard_normal(action.shape), rows[1:]) for rows, action in side]
        for side in (agent, expert_side)
    ]
    energy = float(np.mean([motors.null_energy(e.actions).mean() for e in recorded]))
    truth = 2 * energy / (2 * noise**2)
    found = estimate_disagreement(*blurred, discrete=False)
    assert truth > 1
    assert found.everywhere.low < truth < found.everywhere.high
    assert found.everywhere.value == pytest.approx(truth, rel=0.1)


@pytest.mark.slow
def test_the_bundled_expert_agrees_with_itself(tmp_path: Path) -> None:
    policy = bundled_expert("CartPole")
    found = measure(policy, expert_demos("CartPole", policy, None), episodes=5, stochastic=False)
    assert abs(found.disagreement.everywhere.value) < 0.02
    assert found.to_json()["env"] == "CartPole-v1"
