"""`iddm doctor` on small real runs made to fail, and on the record of a sound run with one figure changed."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import iddm
from iddm.cli import main
from iddm.demos import Demos
from iddm.doctor import diagnose
from tests.conftest import TINY, TINY_GAIFO, TINY_IDDM


def said(run: Path, control: Path | None = None) -> str:
    return " ".join(sentence for _, sentence in diagnose(run, control))


@pytest.fixture(scope="module")
def sound(cartpole_demos: Demos, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor")
    iddm.save_demos(cartpole_demos, folder / "demos.npz")
    return iddm.train("CartPole", folder / "demos.npz", "iddm", folder / "run", seed=1, **TINY_IDDM).path


@pytest.fixture
def altered(sound: Path, tmp_path: Path) -> Callable[..., Path]:
    """The sound run with other metrics in its record."""

    def alter(**metrics: float) -> Path:
        run = tmp_path / "altered"
        shutil.copytree(sound, run)
        with open(run / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        changes = {name.replace("__", "/"): str(value) for name, value in metrics.items()}
        with open(run / "metrics.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(row | changes for row in rows)
        assert set(changes) <= set(rows[0])
        return run

    return alter


def test_a_sound_run_is_let_go(sound: Path, capsys) -> None:
    assert main(["doctor", str(sound)]) == 0
    assert "Nothing wrong found" in capsys.readouterr().out


def test_demonstrations_in_other_units_saturate_the_discriminator_and_are_named(cartpole_demos: Demos, tmp_path: Path) -> None:
    moved = replace(cartpole_demos, observations=tuple(o + np.float32([0, 50, 0, 0]) for o in cartpole_demos.observations))
    iddm.save_demos(moved, tmp_path / "d.npz")
    hasty = {"gradient_penalty": 0.0, "learning_rate": 0.01, "updates": 100, "hidden": (32,), "batch_size": 64}
    iddm.train("CartPole", tmp_path / "d.npz", "gaifo", tmp_path / "run", adversarial=hasty, **TINY)
    text = said(tmp_path / "run")
    assert "The discriminator is saturated" in text
    assert "raise --adversarial.gradient-penalty" in text
    assert "The reward is constant: adversarial gives every step" in text
    assert "far from the demonstrations' in column 1: column 1 is" in text


def test_only_columns_that_are_compared_are_far_from_the_demonstrations(cartpole_demos: Demos, tmp_path: Path) -> None:
    moved = replace(cartpole_demos, observations=tuple(o + np.float32([0, 50, 0, 70]) for o in cartpole_demos.observations))
    iddm.save_demos(moved, tmp_path / "d.npz")
    iddm.train("CartPole", tmp_path / "d.npz", "gaifo", tmp_path / "run", columns="0,2,3", **TINY_GAIFO)
    assert "far from the demonstrations' in column 3: column 3 is" in said(tmp_path / "run")


def test_a_collapsed_entropy_is_found_for_a_continuous_policy(hopper_demos: Demos, tmp_path: Path) -> None:
    iddm.train("Hopper-v5", hopper_demos, "gaifo", tmp_path / "run", log_std_init=-6.0, **TINY_GAIFO)
    text = said(tmp_path / "run")
    assert "The policy's entropy has collapsed" in text
    assert "--log-std-init" in text


def test_a_term_that_drowns_the_imitation_and_returns_below_doing_nothing_are_found(hopper_demos: Demos, tmp_path: Path) -> None:
    iddm.save_demos(hopper_demos, tmp_path / "d.npz")
    iddm.train("Hopper-v5", tmp_path / "d.npz", "iddm", tmp_path / "run", mi={"weight": 50.0}, **TINY)
    text = said(tmp_path / "run")
    assert "The term mi drowns the imitation" in text
    assert "--mi.weight" in text
    assert "less than doing nothing" in text


def test_a_diverging_estimate_of_information_is_found(hopper_demos: Demos, tmp_path: Path) -> None:
    hasty = {"estimator": "mine", "learning_rate": 1.0}
    iddm.train("Hopper-v5", hopper_demos, "iddm", tmp_path / "run", mi=hasty, **TINY)
    text = said(tmp_path / "run")
    assert "The mutual information diverges" in text
    assert "--mi.estimator js" in text


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"ppo__entropy": 1e-4}, ["The policy's entropy has collapsed: 0.00 nats", "--entropy.weight"]),
        ({"adversarial__reward_std": 1e-6}, ["The reward is constant", "--adversarial.reward-form logit"]),
        (
            {"adversarial__expert_accuracy": 0.5, "adversarial__agent_accuracy": 0.52},
            ["cannot tell the two apart", "--adversarial.learning-rate"],
        ),
        ({"adversarial__expert_accuracy": 0.99, "adversarial__agent_accuracy": 1.0}, ["saturated: right on 99.0%"]),
    ],
)
def test_each_metric_that_shows_trouble_is_read(metrics: dict[str, float], words: list[str], altered) -> None:
    text = said(altered(**metrics))
    for part in words:
        assert part in text


def test_a_discriminator_that_cannot_tell_is_success_where_the_agent_earns_what_the_expert_does(altered) -> None:
    blind = {"adversarial__expert_accuracy": 0.5, "adversarial__agent_accuracy": 0.52}
    assert "cannot tell the two apart" not in said(altered(**blind, episode_return=195.0))


def test_returns_below_a_control_are_found(altered, sound: Path) -> None:
    text = said(altered(episode_return=9.0), control=sound)
    assert f"The agent earns 9.0 per episode, less than the control run {sound}" in text


def test_an_unfinished_run_and_one_without_metrics_are_told(altered) -> None:
    run = altered()
    (run / "policy.safetensors").unlink()
    lines = (run / "metrics.csv").read_text().splitlines()
    (run / "metrics.csv").write_text("\n".join(lines[:3]) + "\n")
    assert "stopped at step 512 of 1,024" in said(run)
    (run / "metrics.csv").unlink()
    assert "no metrics yet" in said(run)


def test_no_run_is_one_sentence(tmp_path: Path, capsys) -> None:
    assert main(["doctor", str(tmp_path)]) == 2
    assert "no run here" in capsys.readouterr().err


class Line(gym.Env):
    """A point on a line that the action pushes; the episode ends at 1."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-0.1, 0.1))
        return np.array([self.place], np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.place += 0.05 * float(action[0])
        return np.array([self.place], np.float32), 0.0, self.place >= 1, False, {}


def line() -> gym.Env:
    return gym.wrappers.TimeLimit(Line(), 100)


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two iterations: the agent stays where it starts, and the demonstrations walk to the end."""
    rng = np.random.default_rng(0)
    demos = Demos(tuple(np.arange(rng.uniform(-0.1, 0.1), 1.05, 0.05)[:, None] for _ in range(6)), terminated=np.ones(6, bool))
    settings = TINY_GAIFO | {"steps": 512, "evaluations": 2, "log_std_init": -5.0}
    return iddm.train(line, demos, "gaifo", tmp_path_factory.mktemp("stuck") / "run", **settings).path


def test_an_agent_that_never_finishes_and_stands_still_is_found(stuck: Path) -> None:
    text = " ".join(sentence for _, sentence in diagnose(stuck, env=line))
    assert "does not finish: its episodes last 100 steps, the demonstrations' 2" in text
    assert "hardly moves" in text
    assert "end early" not in text


class Goals(Line):
    """The same with a goal in eight columns, which is another one in each episode."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (9,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        place, info = super().reset(seed=seed)
        self.goal = self.np_random.normal(size=8).astype(np.float32)
        return np.concatenate([place, self.goal]), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        place, reward, terminated, truncated, info = super().step(action)
        return np.concatenate([place, self.goal]), reward, terminated, truncated, info


def goals() -> gym.Env:
    return gym.wrappers.TimeLimit(Goals(), 20)


def test_a_discriminator_that_knows_few_demonstrations_by_heart_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    walks = [np.c_[np.linspace(0, 1, 21), np.tile(rng.normal(size=8), (21, 1))].astype(np.float32) for _ in range(5)]
    hasty = {"gradient_penalty": 0.0, "learning_rate": 0.01, "updates": 50, "hidden": (32,), "batch_size": 64}
    settings = TINY | {"steps": 512, "evaluations": 1, "adversarial": hasty}
    run = iddm.train(goals, Demos(tuple(walks)), "gaifo", tmp_path / "run", **settings)
    text = " ".join(sentence for _, sentence in diagnose(run.path, env=goals))
    assert f"right on 100.0% of those that it learns from, and on {run.metrics()[-1]['held_out_accuracy']:.1%} of" in text
    assert "by heart" in text
    assert "method bco" in text


def test_an_agent_that_ends_early_is_found(tmp_path: Path) -> None:
    settings = TINY_GAIFO | {"steps": 256, "evaluations": 1}
    run = iddm.train("InvertedPendulum", None, "gaifo", tmp_path / "run", demo_episodes=5, **settings)
    assert "episodes end early: after" in said(run.path)


def test_a_policy_that_swings_late_is_found(altered: Callable[..., Path]) -> None:
    run = altered()
    lines = (run / "metrics.csv").read_text().splitlines()
    header = lines[0].split(",")
    rows = [dict(zip(header, row.split(","), strict=True)) for row in lines[1:]]
    values = [0.1, 0.9, 0.8, 0.2]
    changed = [",".join((row | {"closeness": str(value)}).values()) for row, value in zip(rows, values, strict=True)]
    (run / "metrics.csv").write_text("\n".join([lines[0], *changed, ""]))
    assert "swings late in training: its closeness was 0.90 and is 0.20" not in said(run)  # two late evaluations are too few
    (run / "metrics.csv").write_text("\n".join([lines[0], *changed[:1], *changed, ""]))
    assert "swings late in training: its closeness was 0.90 and is 0.20" in said(run)
