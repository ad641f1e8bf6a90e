"""A study of one's own from a TOML file, and a term and a method of one's own from outside the package."""

import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import iddm
from iddm import methods
from iddm.cli import main
from iddm.cli.train import train_flags
from iddm.config import Config, default_config
from iddm.envs.spec import import_module
from iddm.errors import UserError
from iddm.learners import PPO
from iddm.rewards import TERMS, Adversarial, Survival
from iddm.rewards.rows import AgentRows, Transitions
from iddm.studies.own_study import COPY, flat, read_study
from iddm.studies.report.page import study_page
from iddm.studies.results import Results
from iddm.training.run_dir import Run
from tests import made_up

ROOT = Path(__file__).parents[1]
TERM, STUDY = ROOT / "examples" / "own_term.py", ROOT / "examples" / "own_study.toml"
GOOD = """
title = "Which <weight>?"
tasks = ["CartPole", {env = "Hopper", steps = 5000, settings = {log_std_init = -1.0}}]
methods = ["iddm", "gaifo", "expert"]
seeds = 2
steps = 1000
episodes = 7
[settings]
hidden = [8, 8]
[variants.weak]
adversarial.gradient_penalty = 1.0
[variants.strong]
adversarial.gradient_penalty = 9.0
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_a_file_is_methods_times_tasks_times_variants_times_seeds(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, GOOD))
    runs = study.runs()
    assert (study.name, study.title, len(runs)) == ("mine", "Which <weight>?", 2 + 2 * 2 * 2 * 2)
    assert {run.episodes for run in runs} == {7}
    by_task = {task: [run for run in runs if run.task == task and run.method != "expert"] for task in ("CartPole", "Hopper")}
    assert {run.steps for run in by_task["CartPole"]} == {1000}
    assert {run.steps for run in by_task["Hopper"]} == {5000}
    assert {run.config.learner.log_std_init for run in by_task["Hopper"]} == {-1.0}
    assert {run.config.terms["adversarial"].gradient_penalty for run in by_task["Hopper"]} == {1.0, 9.0}
    assert {run.config.learner.hidden for run in runs if run.method != "expert"} == {(8, 8)}


def test_its_page_has_its_title_variants_and_curves_and_escapes_them(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, GOOD))
    results = Results({}).with_outcomes(made_up.outcome(run) for run in study.runs())
    page = study_page(results, tmp_path, own=study)
    assert "<h1>Which &lt;weight&gt;?</h1>" in page
    assert ">weak</td>" in page
    assert '"IDDM, strong"' in page
    assert "No headline yet" not in page
    assert "Table 2" not in page


def test_results_keep_the_file_that_their_page_is_made_from(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'tasks = ["CartPole"]\nmethods = ["expert"]\nepisodes = 2\n'
    assert main(["study", str(write(tmp_path, text)), "--workers", "1"]) == 0
    assert (tmp_path / "results" / "mine" / COPY).read_text() == text
    assert "See them with: iddm report results/mine" in capsys.readouterr().out
    assert main(["report", "results/mine", "--out", "page.html"]) == 0
    assert "<h1>mine</h1>" in Path("page.html").read_text()
    assert main(["report", "results/mine", "--docs"]) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("tasks = [", "mine.toml: not a study ("),
        ("methods = []", "mine.toml: a study has at least one method."),
        ('methods = ["idm"]', "mine.toml: Method 'idm' is unknown; there are iddm"),
        ("seeds = 0", "mine.toml: a study has at least one seed."),
        ('seeds = "3"', "mine.toml: not a study (Expected `int`, got `str` - at `$.seeds`)."),
        ("sedes = 3", "mine.toml: not a study (Object contains unknown field `sedes`)."),
        ("settings = {hiden = [8]}", "mine.toml: Setting 'hiden' is unknown to iddm"),
        ("settings = {epochs = -1}", "mine.toml: Setting epochs is -1"),
        ('settings = {demos = "nowhere.npz"}', "mine.toml: nowhere.npz"),
        ('tasks = ["os:system"]', "mine.toml: 'os:system' names code, which a file cannot"),
        ('tasks = ["Walker2d-v5"]', "mine.toml: Walker2d-v5 has no bundled demonstrations"),
    ],
)
def test_a_bad_file_is_one_sentence_before_anything_runs(change: str, words: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    lines = {"tasks": 'tasks = ["CartPole"]', "methods": 'methods = ["iddm"]'}
    write(tmp_path, "\n".join((lines | {change.split(" ")[0]: change}).values()))
    assert main(["study", "mine.toml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"iddm: {words}")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_tables_of_toml_are_flags() -> None:
    assert flat({"mi": {"weight": 0.1}, "num-envs": 4, "hidden": [8]}) == {"mi.weight": 0.1, "num_envs": 4, "hidden": (8,)}


def test_variants_that_differ_by_steps_alone_keep_their_names(tmp_path: Path) -> None:
    text = 'tasks = ["CartPole"]\nmethods = ["gaifo"]\n[variants.short]\nsteps = 100\n[variants.long]\nsteps = 200\n'
    study = read_study(write(tmp_path, text))
    results = Results({}).with_outcomes(made_up.outcome(run) for run in study.runs(1))
    assert [study.variant_of(cell) for cell in study.results(results).cells] == ["short", "long"]


def test_results_of_other_studies_are_not_mixed_with_ones_own(tmp_path: Path, capsys) -> None:
    made_up.results(["absorbing"], seeds=1).save(tmp_path / "results")
    file = write(tmp_path, 'tasks = ["CartPole"]\nmethods = ["expert"]\n')
    assert main(["study", str(file), "--out", str(tmp_path / "results")]) == 2
    assert "holds the results of other studies" in capsys.readouterr().err
    assert not (tmp_path / "results" / COPY).exists()


def test_a_study_may_choose_the_learner(tmp_path: Path) -> None:
    text = 'tasks = ["Hopper"]\nmethods = ["gaifo"]\n[variants.on]\n[variants.off]\nlearner = "sac"\n'
    on, off = read_study(write(tmp_path, text)).runs(1)
    assert (on.config.learner.name, off.config.learner.name) == ("ppo", "sac")
    assert "--learner sac" in off.command
    assert "--learner ppo" in on.command


# A term and a method of one's own


def test_the_example_gives_its_reward_flags_and_config(clean: None, tmp_path: Path, capsys) -> None:
    import_module(str(TERM))
    config, _ = train_flags(["CartPole", "--method", "calm", "--calm.weight", "0.5"])
    assert config.terms["calm"].weight == 0.5
    rows = Transitions(s=jnp.zeros((2, 4)), a=None, s_next=jnp.array([[2.0, 0, 0, 0], [0, 0, 0, 0]]))
    zeros = jnp.zeros(2)
    agent = AgentRows(rows, zeros, zeros, zeros + 1, zeros > 0, zeros.astype(int), rows.s_next, None)
    assert config.terms["calm"].reward((), agent, jax.random.key(0)).tolist() == [-0.5, 0.0]
    assert Config.from_json(config.to_json(), "here") == config
    with Run.create(tmp_path / "run", config, None):
        pass
    del TERMS["calm"], methods.TUNED["calm"]
    assert main(["compare", str(tmp_path / "run")]) == 2
    assert "the term 'calm' is none of iddm's; where it is yours, give its code with --import FILE.py" in capsys.readouterr().err


def test_a_run_with_a_term_of_ones_own_reaches_a_process_that_does_not_know_it_yet(clean: None, monkeypatch) -> None:
    import_module(str(TERM))
    spec = next(run for run in read_study(STUDY).runs(1) if run.method == "calm")
    assert "calm" in spec.config.terms
    sent = pickle.dumps(spec)
    monkeypatch.delitem(sys.modules, TERM.stem)
    assert pickle.loads(sent) == spec


def test_a_method_of_ones_own_cannot_take_the_place_of_ours(clean: None) -> None:
    class Survival2(Survival):
        pass

    with pytest.raises(UserError, match="Method 'iddm' is one of iddm's own"):
        iddm.register_method("iddm", iddm.Method((Adversarial(),)))
    with pytest.raises(UserError, match="iddm has its own 'survival'; choose another name for Survival2"):
        iddm.register_method("mine", iddm.Method((Survival2(),)))
    iddm.register_method("mine", iddm.Method((Adversarial(),), PPO(epochs=3)))
    assert default_config("CartPole", "mine").learner == PPO(epochs=3)
    config = default_config("CartPole", "mine")
    assert Config.from_json(config.to_json(), "here") == config


@pytest.mark.slow
def test_the_example_study_runs_as_written_with_fewer_steps(tmp_path: Path) -> None:
    """A new term, two tasks, three seeds, a figure."""
    text = STUDY.read_text().replace("20_000", "1_024").replace("30_000", "1_024")
    write(tmp_path, text + "num_envs = 4\nrollout_length = 64\n", STUDY.name)
    for command in (
        ["study", STUDY.name],
        ["report", "results/own_study", "--out", "own_study.html"],
        ["compare", "runs/own_study"],
    ):
        words = [sys.executable, "-m", "iddm", *command, "--import", str(TERM)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Does it help to be calm?" in (tmp_path / "own_study.html").read_text()
    assert "calm" in (tmp_path / "comparison" / "table.csv").read_text()
    assert (tmp_path / "comparison" / "curves.pdf").stat().st_size > 1000
