"""The package in Python: what one sees at the prompt, and tables of a run's metrics."""

from pathlib import Path

import numpy as np
import pytest

import iddm
from iddm.config import default_config
from iddm.training.display import TrainingDisplay
from iddm.training.run_dir import Run
from iddm.training.train import _displayed


@pytest.fixture
def run(tmp_path: Path) -> Run:
    with Run.create(tmp_path / "run", default_config("CartPole", "gaifo"), None) as run:
        for i, value in enumerate((10.0, np.nan, 30.0), 1):
            row = {"iteration": i, "steps": 100 * i, "seconds": float(i), "episode_return": value, "episodes": 1}
            run.metrics_file.append(row)
    return run


def test_a_curve_leaves_out_rows_without_a_value_and_a_table_keeps_them(run: Run) -> None:
    steps, returns = run.curve()
    assert (steps.tolist(), returns.tolist()) == ([100.0, 300.0], [10.0, 30.0])
    table = run.table()
    assert list(table) == ["iteration", "steps", "seconds", "episode_return", "episodes"]
    assert np.isnan(table["episode_return"]).tolist() == [False, True, False]
    with pytest.raises(iddm.UserError, match="there is no metric 'fame'; there are iteration, steps"):
        run.curve("fame")


def test_what_stands_at_the_prompt_is_one_short_line(run: Run) -> None:
    policy = iddm.bundled_expert("HalfCheetah")
    evaluation = iddm.Evaluation("Hopper-v5", np.array([1000.0, 3000.0]))
    assert repr(run) == f"Run({run.path}, not finished)"
    assert repr(evaluation) == "Evaluation(Hopper-v5: 2,000.0 ± 1,000.0 over 2 episodes)"
    assert repr(policy) == "Policy(ppo on HalfCheetah-v5: 17 → 6, 64 × 64)"
    assert repr(iddm.bundled_demos("CartPole")) == "Demos(10 episodes, 2000 transitions, 4 columns, no actions)"


def test_progress_shows_rows_and_still_calls_the_users_function(capsys) -> None:
    seen = []
    row = {"steps": 100.0, "seconds": 1.0, "episode_return": 7.0}
    with _displayed(TrainingDisplay("iddm on CartPole", 100), seen.append) as on_row:
        on_row(row)
    assert seen == [row]
    assert "iddm on CartPole" in capsys.readouterr().err


def test_the_version_is_that_of_the_command_line(capsys) -> None:
    from iddm.cli import main

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == iddm.__version__
