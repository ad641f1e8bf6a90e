"""What a run says is true: whom it is compared with, in which environment, and that saving does not change learning."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iddm
from iddm.cli import main
from iddm.demos import Demos
from iddm.doctor import diagnose
from iddm.evaluation import record_demos
from iddm.report.run_page import compare
from iddm.training.loop import Interrupted
from tests.conftest import TINY_GAIFO


def worse(demos: Demos) -> Demos:
    """Demonstrations of somebody else, with returns of their own."""
    assert demos.episode_returns is not None
    return replace(demos, episode_returns=np.full(demos.num_episodes, 110.0))


def test_demonstrations_given_in_python_are_what_a_run_is_compared_with(cartpole_demos: Demos, tmp_path: Path, capsys) -> None:
    run = iddm.train("CartPole", worse(cartpole_demos), "gaifo", tmp_path / "run", **TINY_GAIFO)
    assert run.demos is not None
    assert (run.demos.source, run.demos.sha256) == ("given in Python", cartpole_demos.states_only().digest())
    expert = compare(run, 2)[-1]
    assert (expert.who, expert.mean, expert.episodes) == ("expert", 110.0, 5)
    assert main(["eval", str(run.path), "--episodes", "2"]) == 0
    assert "Its demonstrations: 110.0 ± 0.0 over 5" in capsys.readouterr().out


def test_doctor_compares_with_the_demonstrations_that_the_run_had_not_with_the_bundled_ones(
    cartpole_demos: Demos, tmp_path: Path
) -> None:
    moved = tuple(rows + np.float32([0, 90, 0, 0]) for rows in cartpole_demos.observations)
    iddm.train("CartPole", replace(cartpole_demos, observations=moved), "gaifo", tmp_path / "run", **TINY_GAIFO)
    assert "far from the demonstrations' in column 1" in " ".join(sentence for _, sentence in diagnose(tmp_path / "run"))


def test_report_evaluates_everybody_in_the_runs_own_environment(tmp_path: Path) -> None:
    run = iddm.train("CartPole", None, "gaifo", tmp_path / "run", max_episode_steps=7, **TINY_GAIFO)
    assert [row.mean for row in compare(run, 3)] == [7.0, 7.0, 7.0]


def test_report_works_for_a_task_without_a_bundled_expert(tmp_path: Path, capsys) -> None:
    small = {"steps": 256, "num_envs": 2, "rollout_length": 64, "hidden": (8,)}
    iddm.train("MountainCar-v0", None, "ppo", tmp_path / "run", **small)
    assert main(["report", str(tmp_path / "run"), "--episodes", "1", "--out", str(tmp_path / "page.html")]) == 0
    assert "random actions" in capsys.readouterr().out


def test_recorded_demonstrations_say_which_environment_they_are_of(tmp_path: Path, capsys) -> None:
    demos = record_demos(iddm.bundled_expert("InvertedPendulum"), 1)
    assert demos.metadata["env_id"] == "InvertedPendulum-v5"
    iddm.save_demos(demos, tmp_path / "d.npz")
    main(["inspect", str(tmp_path / "d.npz"), "--env", "CartPole"])
    assert "recorded on InvertedPendulum-v5, not on CartPole-v1" in " ".join(capsys.readouterr().out.split())


def test_how_often_one_saves_does_not_change_what_is_learned(hopper_demos: Demos, tmp_path: Path) -> None:
    policies = []
    for every in (1, 3, 1000):
        settings = TINY_GAIFO | {"checkpoint_every": every}
        run = iddm.train("Hopper-v5", hopper_demos, "gaifo", tmp_path / str(every), restart_every=3, **settings)
        policies.append(run.policy_path.read_bytes())
    assert policies[0] == policies[1] == policies[2]


@pytest.mark.parametrize("restart_every", [0, 2, 3])
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_resumed_run_brings_its_environments_to_where_they_were(
    restart_every: int, stop_after: int, cartpole_demos: Demos, tmp_path: Path
) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    settings = TINY_GAIFO | {"restart_every": restart_every, "checkpoint_every": 1000}
    whole = iddm.train("CartPole", cartpole_demos, "gaifo", tmp_path / "whole", **settings)
    with pytest.raises(Interrupted):
        iddm.train("CartPole", cartpole_demos, "gaifo", tmp_path / "run", on_row=interrupt, **settings)
    resumed = iddm.resume(tmp_path / "run", demos=cartpole_demos)
    assert resumed.policy_path.read_bytes() == whole.policy_path.read_bytes()
