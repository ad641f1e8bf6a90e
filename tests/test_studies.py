"""Studies: which runs they have, what spreads them, what is kept."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iddm.cli import main
from iddm.cli.train import train_flags
from iddm.config import default_config
from iddm.demos import Demos, save_demos
from iddm.errors import UserError
from iddm.report.table import NOTHING
from iddm.studies.catalogue import STUDIES
from iddm.studies.catalogue.ladder import CHANGES, by_change, rungs
from iddm.studies.catalogue.light import LIGHTER
from iddm.studies.catalogue.redundant import by_motors, by_pair
from iddm.studies.core import Settings, bundled_expert, config_of, setting
from iddm.studies.measures import DISAGREEMENT, NULL_ENERGY, measured
from iddm.studies.pool import in_parallel
from iddm.studies.results import Outcome, Result, Results, learning_curve, saturated
from iddm.studies.runner import Progress, complete, outcome_file, run_study
from iddm.studies.spec import EXPERT, SAME_AS_GAIFO, UNTRAINED, Grid, RunSpec
from iddm.training.demonstrations import find_demos

TINY = (("adversarial.hidden", (8, 8)), ("evaluations", 0), ("hidden", (8, 8)), ("num_envs", 2), ("rollout_length", 32))
ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
RESULT_FILES = ("runs.csv", "curves.csv")


def tiny(method: str, seed: int = 0, steps: int = 640) -> RunSpec:
    return RunSpec("Hopper", method, seed, TINY if method != EXPERT else (), steps, episodes=2)


def results(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in RESULT_FILES]


def test_only_the_command_line_imports_the_studies() -> None:
    package = ROOT / "src" / "iddm"
    outside = [file for file in package.rglob("*.py") if file.relative_to(package).parts[0] not in ("studies", "commands", "cli")]
    assert not [file for file in outside if "iddm.studies" in file.read_text()]


# Specs


def test_every_run_of_every_study_has_a_config_and_a_name_of_its_own() -> None:
    specs = [spec for study in STUDIES.values() for quick in (False, True) for spec in study.runs(quick=quick)]
    commands = {spec.name: (spec.command, spec.episodes) for spec in specs}
    assert len(set(commands.values())) == len(commands)
    for spec in specs:
        if spec.method != EXPERT:
            assert (spec.config.steps, spec.config.seed, spec.config.method) == (spec.steps, spec.seed, spec.method)
            assert all(setting(spec.config, name) == value for name, value in spec.settings)


def test_a_runs_command_makes_its_config() -> None:
    for spec in {spec.flags: spec for study in STUDIES.values() for spec in study.runs(seeds=1)}.values():
        if spec.method != EXPERT:
            assert train_flags(shlex.split(spec.command)[2:])[0] == spec.config


def test_a_variant_with_the_papers_preset_runs_the_papers_settings() -> None:
    variants = ({"preset": "paper"}, {"preset": "paper", "ppo.anneal": True}, {"preset": "paper", "ppo.anneal": False})
    plain, annealed, as_it_is = Grid(("HalfCheetah",), ("iddm",), variants).runs(1)
    assert plain.config == replace(default_config("HalfCheetah", "iddm", "paper"), steps=plain.steps)
    assert (plain.flags, annealed.flags) == ("--preset paper", "--ppo.anneal --preset paper")
    assert as_it_is == plain
    for spec in (plain, annealed):
        assert train_flags(spec.command.split()[2:])[0] == spec.config


def test_the_ladder_climbs_from_the_papers_settings_to_ours() -> None:
    for method in ("gaifo", "iddm"):
        ours = default_config("HalfCheetah", method)
        changed = {name: setting(ours, name) for names in CHANGES[method].values() for name in names}
        critic = {"mi.hidden": setting(ours, "mi.hidden")} if method == "iddm" else {}
        top = config_of("HalfCheetah", method, {"preset": "paper", **critic, **changed})
        softplus = {"adversarial.reward_form": "softplus"}  # ours on HalfCheetah, whose episodes are cut by the time limit
        assert replace(top, preset="tuned", hold_out=True) == config_of("HalfCheetah", method, softplus)
        first, *_, last = (config_of("HalfCheetah", method, settings) for settings in rungs(method).values())
        assert first == config_of("HalfCheetah", method, {"preset": "paper", **LIGHTER, **critic})
        assert last == config_of("HalfCheetah", method, {"preset": "paper", **LIGHTER, **critic, **changed})


def test_what_a_change_of_the_ladder_adds_is_over_pairs_of_runs_with_the_same_seed() -> None:
    ladder = STUDIES["ladder"]
    rung = {
        spec.settings: i
        for method in CHANGES
        for i, settings in enumerate(rungs(method).values())
        for spec in _ladder_run(method, settings)
    }
    outcomes = [
        Outcome(Result.of(spec, np.full(spec.episodes, 1000.0 * spec.seed + rung[spec.settings] * (100 + spec.seed))), (), {})
        for spec in ladder.runs(seeds=3)
    ]
    first, *_, last = by_change(ladder.results(Results({}).with_outcomes(outcomes))).rows
    assert first == ("+ initial noise", *["101 [99, 103]"] * 2, "101 [100, 102]", "101 [99, 103]")
    assert last == ("+ weights", *[NOTHING] * 3, "101 [99, 103]"), "the last changes are IDDM's alone"


def _ladder_run(method: str, settings: Settings) -> list[RunSpec]:
    return list(Grid(("HalfCheetah",), (method,), (settings,)).runs(seeds=1))


def test_table_2_has_the_papers_methods_on_its_six_tasks_and_no_deepmimic_on_cartpole() -> None:
    cells = {(spec.task, spec.method) for spec in STUDIES["table2"].runs()}
    assert len({task for task, _ in cells}) == 6
    assert ("CartPole", "deepmimic") not in cells
    assert ("Ant", "deepmimic") in cells
    assert len(cells) == 6 * 11 - 1


def test_studies_share_the_runs_that_both_want() -> None:
    names = {name: {spec.name for spec in study.runs(seeds=1)} for name, study in STUDIES.items()}
    p, s = names["lambda_p"], names["lambda_s"]
    assert p < names["grid"]
    assert s < names["grid"]
    assert len(p & s) == 1
    assert len(names["demos"] & p) == 1  # from all ten episodes with the default weights
    assert len(names["demos"] & names["table2"]) == 2 * 6 + 4 * 3  # controls and experts, and all ten on the first three tasks


def test_another_bundled_expert_is_another_run_except_for_methods_without_demonstrations(monkeypatch) -> None:
    learned, control = RunSpec("Hopper", "iddm", 0, steps=100), RunSpec("Hopper", "none", 0, steps=100)
    names = learned.name, control.name
    monkeypatch.setattr("iddm.studies.spec.bundled_fingerprint", lambda task: "another")
    assert learned.name != names[0]
    assert control.name == names[1]


def test_only_chooses_tasks_and_methods_and_seeds_come_whole() -> None:
    runs = STUDIES["table2"].runs(seeds=2, only=["hopper", "Ant-v5", "iddm"])
    assert [(r.task, r.method, r.seed) for r in runs] == [(t, "iddm", s) for s in range(2) for t in ("Hopper", "Ant")]
    with pytest.raises(UserError, match="--only walker"):
        STUDIES["table2"].runs(only=["walker"])


def test_only_chooses_learners_too() -> None:
    runs = STUDIES["samples"].runs(seeds=1, only=["hopper", "gaifo", "sac"])
    assert {(r.task, r.method, r.learner) for r in runs} == {("Hopper", "gaifo", "sac")}
    assert len(runs) == 2  # from one episode and from ten
    assert {r.method for r in STUDIES["samples"].runs(seeds=1, only=["gaifo", "bco"])} == {"gaifo", "bco"}  # a method first


@pytest.mark.parametrize(
    "wrong",
    [["nothing"], ["table2", "--seeds", "0"], ["table2", "--on", "moon"], ["table2", "--only", "iddm,x"], ["toy", "--on", "ray"]],
)
def test_wrong_options_are_one_sentence(wrong: list[str], tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["study", *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_without_a_name_every_study_is_listed(capsys) -> None:
    assert main(["study"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "] == list(STUDIES)


def test_listing_forgets_nothing(tmp_path: Path) -> None:
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert main(["study", "table2", "--only", "cartpole,expert", "--quick", "--workers", "1", *places]) == 0
    before = results(tmp_path / "out")
    assert main(["study", "table2", "--only", "cartpole,expert", "--quick", "--again", "--list", *places]) == 0
    assert results(tmp_path / "out") == before


# The pool


def _look(number: int) -> tuple[int, int]:
    if number == -1:
        raise UserError("negative")
    if number == -2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def test_workers_have_a_core_each_and_a_dead_one_does_not_stop_the_others() -> None:
    ended = {e.job[0]: e for e in in_parallel(_look, [(i,) for i in (0, -1, -2, 1)], 2)}
    assert ended[0].value == (0, 1)
    assert ended[1].value == (1, 1)
    assert ended[-1].error == "negative"
    assert ended[-2].error == "its process was ended by SIGKILL."


# The runner


def test_results_come_back_from_disk_as_they_went(tmp_path: Path) -> None:
    complete(tiny(EXPERT), str(tmp_path))
    outcome = Outcome.from_json((tmp_path / tiny(EXPERT).name / "outcome.json").read_text())
    Results({}).with_outcomes([outcome]).save(tmp_path / "out")
    assert Results.load(tmp_path / "out").outcomes == {outcome.result.name: outcome}
    assert outcome.result.mean > 3000


def test_measures_come_back_from_disk_and_are_in_the_table_of_redundant_motors(tmp_path: Path) -> None:
    specs = [spec for spec in STUDIES["redundant"].runs(seeds=2) if spec.method in ("gaifo", "iddm-inverse")]
    made = [
        Outcome(Result.of(spec, np.ones(50)), (), {}, (), {DISAGREEMENT: 2.5 + spec.seed, NULL_ENERGY: 0.25}) for spec in specs
    ]
    Results({}).with_outcomes(made).save(tmp_path)
    known = Results.load(tmp_path)
    assert known.outcomes == {outcome.result.name: outcome for outcome in made}
    table = by_motors(STUDIES["redundant"].results(known))
    assert len(table.rows) == 2 * 2 * (3 + 1)  # tasks, learners; GAIfO with one, two and four motors, inverse entropy with four
    found = {row[:4]: row[4:] for row in table.rows}
    _, disagreement, told_apart, energy = found["Hopper", "sac", "4", "IDDM, inverse entropy"]
    assert told_apart == "–"
    assert disagreement.startswith("3.00 [")
    assert energy == "0.250 [0.250, 0.250]"


def test_pairs_of_runs_with_redundant_motors_are_compared_seed_by_seed() -> None:
    values = {"gaifo": (10.0, 20.0), "iddm": (13.0, 25.0), "iddm-zero": (10.0, 25.0)}
    specs = [spec for spec in STUDIES["redundant"].runs(seeds=2, only=["redundant/hopper", "sac"]) if spec.method in values]
    made = [
        Outcome(Result.of(spec, np.full(50, values[spec.method][spec.seed])), (), {}, (), {NULL_ENERGY: 1.0 + spec.seed})
        for spec in specs
    ]
    table = by_pair(STUDIES["redundant"].results(Results({}).with_outcomes(made)))
    found = {row[2:4]: row[4:] for row in table.rows}
    assert len(found) == 3 + 1  # one, two and four motors; the control with four
    assert found["4", "IDDM − GAIfO"] == ("4 [-9, 17]", "–", "0.000 [0.000, 0.000]")
    assert found["4", "IDDM − IDDM, weights 0 (control)"][0].startswith("2 [")


def test_the_control_stands_beside_gaifo_in_every_study_that_compares_it_with_iddm() -> None:
    for study in STUDIES.values():
        methods = {spec.method for spec in study.runs(seeds=1)}
        assert SAME_AS_GAIFO in methods or not {"gaifo", "iddm"} <= methods, study.name


def test_the_study_of_demonstrations_draws_them_with_the_seed() -> None:
    hopper = [spec.config for spec in STUDIES["demos"].runs(only=["hopper", "iddm"])]
    few = [config for config in hopper if config.demo_episodes]
    assert {config.demo_choice for config in few} == {"random"}
    chosen = {find_demos(config)[1].digest() for config in few}
    assert len(chosen) > 3 * 3  # 1, 4 and 7 episodes, five seeds each; a draw may repeat


def test_quick_and_light_runs_and_methods_without_a_discriminator_are_not_measured() -> None:
    expert = bundled_expert("Hopper")
    assert measured(expert, RunSpec("Hopper", "iddm", 0, steps=100).quick) == {}
    assert measured(expert, RunSpec("Hopper", "iddm", 0, steps=100)) == {}
    assert measured(expert, RunSpec("Hopper", "bco", 0, steps=1_000_000)) == {}


def test_a_new_row_takes_the_place_of_the_one_with_the_same_command() -> None:
    def outcome(name: str, mean: float, seed: int = 0) -> Outcome:
        return Outcome(replace(Result.of(RunSpec("Hopper", "iddm", seed, steps=100), np.ones(2)), name=name, mean=mean), (), {})

    known = Results({}).with_outcomes([outcome("old", 1.0), outcome("other", 2.0, seed=1)])
    assert [(row.name, row.mean) for row in known.with_outcomes([outcome("new", 3.0)]).rows] == [("new", 3.0), ("other", 2.0)]


def test_thinned_curve_keeps_the_mean_over_episodes() -> None:
    rows = [{"steps": 10.0 * i, "episodes": i % 3, "episode_return": float(i) if i % 3 else float("nan")} for i in range(1, 200)]
    curve = learning_curve(rows)
    assert 1 < len(curve) <= 40
    assert curve[-1][0] == 1990
    assert learning_curve(rows[:2]) == ((10, 1.0), (20, 2.0))
    assert learning_curve([]) == ()


def test_saturated_is_the_longest_stretch_with_a_discriminator_that_is_always_right_and_gives_no_reward() -> None:
    def row(expert: float, agent: float, reward: float) -> dict[str, float]:
        return {"adversarial/expert_accuracy": expert, "adversarial/agent_accuracy": agent, "adversarial/reward": reward}

    failed, right_but_rewarding, mistaken = row(1.0, 0.995, 0.002), row(1.0, 1.0, 0.2), row(0.9, 1.0, 0.001)
    assert saturated([failed, mistaken, failed, failed, right_but_rewarding, failed, mistaken, mistaken]) == 2 / 8
    assert saturated([{"survival/reward": 1.0}]) == saturated([]) == 0.0


def test_a_failed_run_is_tried_twice_reported_and_does_not_stop_the_others(cartpole_demos: Demos, tmp_path: Path) -> None:
    save_demos(cartpole_demos, tmp_path / "of_another_task.npz")
    bad = RunSpec("Hopper", "gaifo", 0, (("demos", str(tmp_path / "of_another_task.npz")),), 64, 1)
    good = tiny(EXPERT)
    progress, ends = Progress([bad, good], tmp_path / "runs"), []
    run_study(progress, tmp_path / "out", workers=1, on_end=lambda spec: ends.append(spec.name))
    assert ends == [bad.name, good.name, bad.name]
    assert set(progress.failed) == {bad.name}
    assert set(Results.load(tmp_path / "out").outcomes) == {good.name}


STUDY = f"""
import sys
from pathlib import Path
from iddm.studies.runner import Progress, run_study
from iddm.studies.spec import RunSpec
if __name__ == "__main__":
    specs = [RunSpec("Hopper", "expert", 0, episodes=2), RunSpec("Hopper", "gaifo", 1, {TINY!r}, 3_200, episodes=2)]
    run_study(Progress(specs, Path(sys.argv[1]) / "runs"), Path(sys.argv[1]) / "out", workers=1)
"""


def test_a_killed_study_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(STUDY)
    command = [sys.executable, str(script)]
    second = tmp_path / "killed" / "runs" / tiny("gaifo", 1, 3_200).name
    with subprocess.Popen([*command, str(tmp_path / "killed")], env=ENVIRONMENT) as runner:
        deadline = time.monotonic() + 120
        while not list(second.glob("checkpoints/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        runner.kill()
    first = outcome_file(tiny(EXPERT, steps=0), tmp_path / "killed" / "runs")
    made, rows = first.stat().st_mtime_ns, len((second / "metrics.csv").read_text().splitlines())
    assert not (second / "policy.safetensors").exists()
    assert rows > 32
    subprocess.run([*command, str(tmp_path / "killed")], env=ENVIRONMENT, check=True)
    assert first.stat().st_mtime_ns == made
    whole = Results({}).with_outcomes(
        outcome_of(spec, tmp_path / "whole") for spec in (tiny(EXPERT, steps=0), tiny("gaifo", 1, 3_200))
    )
    whole.save(tmp_path / "whole" / "out")
    assert results(tmp_path / "killed" / "out") == results(tmp_path / "whole" / "out")


def outcome_of(spec: RunSpec, runs: Path) -> Outcome:
    """What a run leaves that nobody disturbs."""
    complete(spec, str(runs))
    return Outcome.from_json(outcome_file(spec, runs).read_text())


def _die_once_at_a_checkpoint(spec: RunSpec, runs: str, imports: tuple[str, ...]) -> None:
    """Like `complete`, but the first process that gets to a checkpoint is killed there."""
    died, checkpoints = Path(runs) / "died", Path(runs) / spec.name / "checkpoints"

    def die() -> None:
        while not list(checkpoints.glob("*")):
            time.sleep(0.01)
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    if not died.exists():
        threading.Thread(target=die, daemon=True).start()
    complete(spec, runs, imports)


ON_RAY = """
import sys
from pathlib import Path
from iddm.studies import runner
from iddm.studies.ray_pool import on_ray
from iddm.studies.spec import EXPERT
from tests.test_studies import _die_once_at_a_checkpoint, tiny
if __name__ == "__main__":
    specs = [tiny("gaifo", 0, 6_400), tiny(EXPERT)]
    here = Path(sys.argv[1])
    runner.run_study(runner.Progress(specs, here / "local"), here / "local_out")
    runner.complete = _die_once_at_a_checkpoint
    runner.run_study(runner.Progress(specs, here / "ray"), here / "ray_out", on_ray(None))
"""


@pytest.mark.slow
def test_ray_gives_the_same_bytes_as_the_local_pool_also_when_a_worker_dies(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = tmp_path / "study.py"
    script.write_text(ON_RAY)
    subprocess.run([sys.executable, str(script), str(tmp_path)], env=ENVIRONMENT, check=True)
    assert (tmp_path / "ray" / "died").exists()
    assert results(tmp_path / "ray_out") == results(tmp_path / "local_out")


def test_a_quick_study_is_small_whatever_the_study() -> None:
    for study in STUDIES.values():
        runs = study.runs(quick=True)
        assert len(runs) <= 28
        assert len({run.task for run in runs}) <= 2
        assert all(run.steps <= 4096 and run.episodes == 5 for run in runs)
        learned = [run for run in runs if run.method not in UNTRAINED]
        variants = {
            (run.task, run.method): [r for r in learned if (r.task, r.method) == (run.task, run.method)] for run in learned
        }
        assert all(len(some) <= 2 for some in variants.values())
        wide = [term.hidden for run in learned for term in run.config.terms.values() if hasattr(term, "hidden")]
        assert set(wide) <= {(32, 32)}
