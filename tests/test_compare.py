"""`iddm compare`: what is grouped, what a group is called, and the numbers of its table, on runs written by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from iddm.cli import main
from iddm.config import configure, default_config
from iddm.studies.comparison import find_runs, grouped, lines
from iddm.training.demonstrations import DemosRecord
from iddm.training.run_dir import Run
from iddm.utils.files import from_csv

DEMOS = DemosRecord("bundled: CartPole", "ab" * 32, 1, 200, (200.0,), (0,), (0.0,), (1.0,))
MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes a run whose returns climb from 0 to `end` over ten iterations of 100 steps."""

    def make(name: str, end: float, seed: int = 0, method: str = "iddm", env: str = "CartPole", **settings) -> Path:
        learner = settings.pop("learner", None)
        demos = replace(DEMOS, sha256=settings.pop("sha256", DEMOS.sha256))
        config = configure(default_config(env, method, learner=learner), {"steps": 1000, "seed": seed, **settings})
        with Run.create(tmp_path / "runs" / name, config, demos) as run:
            for i in range(1, 11):
                returns = {"episode_return": end * i / 10, "episodes": 2}
                run.metrics_file.append({"iteration": i, "steps": 100 * i, "seconds": float(i), **returns, "ppo/entropy": 0.5})
        return run.path

    return make


def names_of(*paths: Path) -> list[str]:
    return [group.name for group in grouped(find_runs(paths), {"iddm": "IDDM"})]


def test_seeds_stand_together_and_what_differs_names_the_groups(make_run: MakeRun, tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(f"a{seed}", 10, seed)
        make_run(f"b{seed}", 20, seed, mi={"weight": 0.5})
        make_run(f"c{seed}", 20, seed, method="gaifo", checkpoint_every=3 + seed)
    groups = grouped(find_runs([tmp_path / "runs"]), {"iddm": "IDDM"})
    assert [(g.name, len(g.runs)) for g in groups] == [("IDDM, mi.weight 0.01", 2), ("IDDM, mi.weight 0.5", 2), ("gaifo", 2)]


def test_learners_and_demonstrations_tell_groups_apart(make_run: MakeRun) -> None:
    ppo, sac = make_run("ppo", 10, env="Hopper"), make_run("sac", 10, env="Hopper", learner="sac")
    assert names_of(ppo, sac) == ["IDDM (ppo)", "IDDM (sac)"]
    other = make_run("other", 10, env="Hopper", sha256="cd" * 32)
    assert names_of(ppo, other) == ["IDDM, demonstrations abababab", "IDDM, demonstrations cdcdcdcd"]


def test_settings_that_differ_only_between_tasks_are_in_no_name(make_run: MakeRun) -> None:
    assert names_of(make_run("a", 10, steps=1000), make_run("b", 10, steps=5000, env="Hopper")) == ["IDDM", "IDDM"]


def test_the_table_has_the_end_of_training_with_students_interval(make_run: MakeRun, tmp_path: Path, capsys) -> None:
    ends = np.array([50.0, 60.0, 90.0])
    for seed, end in enumerate(ends):
        make_run(f"a{seed}", end, seed)
    assert main(["compare", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 0
    assert "IDDM" in capsys.readouterr().out
    (row,) = from_csv(tmp_path / "out" / "table.csv")
    low, high = stats.t.interval(0.95, 2, ends.mean(), stats.sem(ends))
    found = [float(row[name]) for name in ("mean", "low", "high", "demonstrations")]
    assert found == pytest.approx([ends.mean(), low, high, 200.0], rel=1e-5)
    points = from_csv(tmp_path / "out" / "curves.csv")
    assert len(points) == 30
    assert {point["seed"] for point in points} == {"0", "1", "2"}
    assert (tmp_path / "out" / "curves.pdf").read_bytes().startswith(b"%PDF")
    svg = (tmp_path / "out" / "curves.svg").read_text()
    assert svg.count("FillBetweenPolyCollection") == 1  # one band


def test_one_seed_has_no_interval_and_an_unfinished_run_is_said_to_be_one(make_run: MakeRun, tmp_path: Path, capsys) -> None:
    path = make_run("a", 10)
    (line,) = lines(grouped(find_runs([path]), {}), "episode_return")
    assert (line.seeds, line.mean, np.isnan(line.low)) == (1, 10.0, True)
    assert main(["compare", str(path), "--out", str(tmp_path / "out"), "--metric", "ppo/entropy"]) == 0
    assert f"{path} is not finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere"], "nowhere: there is no such directory."),
        (["."], "no config.json"),
        ([], "Name the runs to compare"),
        (["runs/a", "--metric", "fame"], "--metric fame: the runs have episode_return"),
        (["runs/a", "runs/b"], "are the same run"),
        (["runs/a", "--out", "runs/a"], "runs/a is a run; choose another --out."),
    ],
)
def test_bad_input_is_one_sentence(args: list[str], words: str, make_run: MakeRun, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    if args != ["."]:
        make_run("a", 10)
        make_run("b", 20)
    assert main(["compare", *args]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "comparison").exists()


def test_a_run_given_twice_counts_once_and_no_text_of_a_file_steers_the_terminal(make_run: MakeRun, tmp_path: Path) -> None:
    path = make_run("a", 10, demos="\x1b[31mred")
    make_run("b", 10, demos="plain")
    groups = grouped(find_runs([path, tmp_path / "runs"]), {})
    assert [g.name for g in groups] == ["iddm, demos plain", "iddm, demos �[31mred"]
