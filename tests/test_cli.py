"""Commands as a user types them. Bad input is one sentence on stderr, exit code 2, and nothing on disk is harmed."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import iddm
from iddm.cli import main
from iddm.cli.commands import COMMANDS
from iddm.cli.train import train_flags
from iddm.config import command_of, default_config, expert_config
from iddm.demos import Demos, save_demos
from iddm.training.display import TrainingDisplay

SMALL = ["--steps", "512", "--num-envs", "4", "--rollout-length", "64", "--hidden", "16", "16"]


@pytest.fixture(scope="module")
def trained(cartpole_demos, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    save_demos(cartpole_demos.states_only(), folder / "demos.npz")
    out = folder / "run"
    assert main(["train", "CartPole", "--demos", str(folder / "demos.npz"), "--method", "gaifo", "--out", str(out), *SMALL]) == 0
    return out


def test_train_leaves_a_run_directory(trained: Path) -> None:
    assert {p.name for p in trained.iterdir()} >= {"config.json", "metrics.csv", "policy.safetensors"}
    run = iddm.Run.open(trained)
    assert run.config.max_episode_steps is None
    assert run.policy.config["max_episode_steps"] == 200
    assert len(run.metrics()) == 2


def test_eval_prints_one_json_object(trained: Path, capsys) -> None:
    assert main(["eval", str(trained), "--episodes", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"env", "mean", "std", "episodes", "returns", "closeness", "demonstrations"}
    assert result["demonstrations"] == list(iddm.Run.open(trained).demos.returns)
    assert 0 < result["closeness"] < 2
    assert result["episodes"] == len(result["returns"]) == 3
    assert result["mean"] == pytest.approx(np.mean(result["returns"]))


def test_evaluation_is_repeatable_and_does_not_depend_on_how_many_run_side_by_side(trained: Path) -> None:
    from iddm.evaluation import env_of, run_episodes

    policy = iddm.load_policy(trained)
    one, many = (run_episodes(policy.predict, env_of(policy).own(), 5, 0, side_by_side=n) for n in (1, 4))
    assert [e.rewards.sum() for e in one] == [e.rewards.sum() for e in many]
    sampled = [iddm.evaluate(policy, episodes=3, stochastic=True).returns.tolist() for _ in range(2)]
    assert sampled[0] == sampled[1]


def test_demos_are_states_only_unless_actions_are_asked_for(trained: Path, tmp_path: Path, capsys) -> None:
    plain, full = tmp_path / "plain.npz", tmp_path / "full.npz"
    assert main(["demos", str(trained), "--episodes", "2", "--out", str(plain)]) == 0
    assert main(["demos", str(trained), "--episodes", "2", "--out", str(full), "--with-actions"]) == 0
    assert iddm.load_demos(plain).actions is None
    demos = iddm.load_demos(full)
    assert demos.actions is not None
    assert demos.lengths.tolist() == [len(a) for a in demos.actions]
    assert main(["inspect", str(plain), "--env", "CartPole"]) == 0
    assert "2 episodes" in capsys.readouterr().out


def test_recorded_demonstrations_with_actions_train_gail(trained: Path, tmp_path: Path) -> None:
    main(["demos", str(trained), "--episodes", "2", "--out", str(tmp_path / "d.npz"), "--with-actions"])
    args = ["train", "CartPole", "--demos", str(tmp_path / "d.npz"), "--method", "gail", "--out", str(tmp_path / "run"), *SMALL]
    assert main(args) == 0


def test_report_writes_a_page_that_escapes_what_it_shows(trained: Path, tmp_path: Path, capsys) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(trained), "--out", str(page), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "random actions" in out
    assert "of the expert" in out
    text = page.read_text()
    assert 'src="data:image/webp' in text
    assert 'src="http' not in text
    for words in ("What doctor says", "--method gaifo --learner ppo --steps 512 --seed 0", "Discriminator right, %", "began 20"):
        assert words in text


def test_tensorboard_event_files_are_written_when_asked_for(cartpole_demos, tmp_path: Path) -> None:
    iddm.train("CartPole", cartpole_demos, "gaifo", tmp_path / "run", tensorboard=True, steps=512, num_envs=4, rollout_length=64)
    assert list((tmp_path / "run" / "tensorboard").glob("events.out*"))


def test_every_flag_is_a_setting_of_the_method(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--method", "iddm", "--help"])
    shown = capsys.readouterr().out
    for flag in ("--mi.weight", "--entropy.weight", "--adversarial.gradient-penalty", "--clip", "--seed", "--backend"):
        assert flag in shown
    with pytest.raises(SystemExit):
        main(["train", "--method", "gaifo", "--help"])
    assert "--mi.weight" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["train", "--method", "bco", "--help"])
    shown = capsys.readouterr().out
    assert "--rounds" in shown
    assert "--inverse.epochs" in shown
    assert "--clip" not in shown
    with pytest.raises(SystemExit):
        main(["train", "--method", "deepmimic", "--help"])
    assert "--tracking.positions" in capsys.readouterr().out


def test_imitation_on_a_task_starts_from_its_noise_by_name_or_id_and_flags_change_it() -> None:
    def noise(*args: str) -> float:
        return train_flags([*args, "--learner", "ppo"])[0].learner.log_std_init

    assert (noise("Ant"), noise("ant-v5", "--method", "gail"), noise("HalfCheetah")) == (-2.0, -2.0, -1.0)
    assert noise("Ant", "--log-std-init", "-1.5") == -1.5
    assert (noise("--out", "Ant", "HalfCheetah"), noise("--out", "Ant", "Pendulum-v1")) == (-1.0, -1.0)
    assert noise("Ant", "--preset", "paper") == 0.0
    assert noise("Ant", "--method", "ppo") == expert_config("Ant").learner.log_std_init == -1.0


def test_expert_starts_from_the_tasks_settings_and_flags_change_them(tmp_path: Path) -> None:
    hopper = expert_config("Hopper-v5")
    assert (hopper.method, hopper.steps) == ("ppo", 4_000_000)
    assert (hopper.learner.discount, hopper.learner.log_std_init) == (0.995, -0.5)
    assert expert_config("Hopper-v5", "paper").learner.discount == 0.99
    assert expert_config("Swimmer-v5") == default_config("Swimmer-v5", "ppo")  # no task of ours
    flags = ["--num-envs", "2", "--steps", "128", "--rollout-length", "64", "--hidden", "8", "--ppo.epochs", "1"]
    assert main(["expert", "Hopper", "--out", str(tmp_path / "run"), *flags]) == 0
    config = iddm.Run.open(tmp_path / "run").config
    assert (config.learner.discount, config.learner.epochs, config.learner.log_std_init) == (0.995, 1, -0.5)
    assert (config.steps, config.learner.hidden) == (128, (8,))


def test_bundled_expert_records_demonstrations_by_flag(tmp_path: Path, capsys) -> None:
    out = tmp_path / "d.npz"
    assert main(["demos", "--expert", "Hopper-v5", "--episodes", "1", "--out", str(out)]) == 0
    assert iddm.load_demos(out).num_episodes == 1
    for wrong in ([], ["Hopper", "--expert", "Hopper"]):
        assert main(["demos", *wrong, "--out", str(tmp_path / "none.npz")]) == 2
        assert "Name one policy to record" in capsys.readouterr().err
    assert main(["demos", "--expert", "MountainCar-v0", "--out", str(tmp_path / "none.npz")]) == 2
    assert "no bundled expert" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["bc", "bco", "random"])
def test_learners_without_rewards_go_through_the_same_commands(method: str, cartpole_demos, tmp_path: Path, capsys) -> None:
    save_demos(cartpole_demos, tmp_path / "demos.npz")
    few = {
        "bc": ["--epochs", "20", "--hidden", "16"],
        "bco": ["--steps", "512", "--num-envs", "4", "--rounds", "2", "--inverse.epochs", "1", "--epochs", "1"],
        "random": ["--steps", "512", "--num-envs", "4", "--rollout-length", "64"],
    }
    out, page = tmp_path / "run", tmp_path / "page.html"
    args = ["train", "CartPole", "--method", method, "--demos", str(tmp_path / "demos.npz"), "--out", str(out)]
    assert main([*args, *few[method]]) == 0
    assert main(["train", "--resume", str(out)]) == 0
    assert main(["eval", str(out), "--episodes", "3", "--json"]) == 0
    assert main(["report", str(out), "--episodes", "2", "--out", str(page)]) == 0
    assert method in page.read_text()


def bad_file(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.npz"
    good = np.zeros((12, 11), np.float32)
    if kind == "nan":
        good[7, 3] = np.nan
        np.savez(path, observations=good)
    elif kind == "width":
        np.savez(path, observations=np.zeros((12, 9), np.float32))
    elif kind == "one_row":
        np.savez(path, observations=good[:1])
    elif kind == "empty":
        np.savez(path, observations=good[:0])
    elif kind == "pickle":
        np.savez(path, observations=np.array([good, None], dtype=object))
    elif kind == "garbage":
        path.write_bytes(b"not an archive")
    elif kind == "good":
        save_demos(Demos(observations=(good + np.arange(12, dtype=np.float32)[:, None],)), path)
    return path


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("missing", [], "missing.npz"),
        ("garbage", [], "garbage.npz"),
        ("pickle", [], "pickle"),
        ("nan", [], "NaN in column 3"),
        ("width", [], "9 columns"),
        ("one_row", [], "one_row.npz"),
        ("empty", [], "empty.npz"),
        ("good", ["--method", "gail"], "needs the expert's actions"),
        ("good", ["--method", "bc"], "bc needs the expert's actions"),
        ("good", ["--method", "deepmimic", "--demo-transitions", "3"], "needs whole episodes"),
        ("good", ["--method", "deepmimic", "--tracking.positions", "11"], "Column 11 is tracked"),
        ("good", ["--method", "gailx"], "unknown; there are iddm"),
        ("good", ["--demo-episodes", "5"], "episode"),
        ("good", ["--steps", "0"], "steps"),
        ("good", ["--env-kwargs", "{bad"], "JSON"),
        ("good", ["--backend", "envpool", "--env-kwargs", '{"ctrl_cost_weight": 0.1}'], "use --backend gymnasium"),
    ],
)
def test_bad_input_to_train_is_one_sentence_and_writes_nothing(
    kind: str, more: list[str], words: str, tmp_path: Path, capsys
) -> None:
    file, out = bad_file(tmp_path, kind), tmp_path / "run"
    assert main(["train", "Hopper-v5", "--demos", str(file), "--out", str(out), *more]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("iddm: ")
    assert error.strip().count("\n") == 0
    assert not out.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "Hoper-v5"], "Did you mean"),
        (["train", "MountainCar-v0"], "no bundled demonstrations"),
        (["train", "--resume", "nowhere"], "no run here"),
        (["eval", "nowhere"], "no policy here"),
        (["eval", "random"], "need an environment"),
        (["inspect", "nowhere.npz"], "nowhere.npz"),
        (["report", "nowhere"], "no run here"),
        (["trian"], "no command 'trian'"),
    ],
)
def test_bad_commands_are_one_sentence(args: list[str], words: str, capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_unfinished_run_cannot_be_evaluated(trained: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "config.json").write_bytes((trained / "config.json").read_bytes())
    assert main(["eval", str(tmp_path)]) == 2
    assert main(["report", str(tmp_path)]) == 2
    assert "not finished" in capsys.readouterr().err


def test_others_demonstrations_train_after_inspection(shared_demos, tmp_path: Path, capsys) -> None:
    file = shared_demos("opolo/Ant.npz")
    assert main(["inspect", str(file), "--env", "Ant-v5"]) == 2
    assert "include_cfrc_ext_in_observation" in capsys.readouterr().out
    kwargs = '{"include_cfrc_ext_in_observation": false}'
    assert main(["inspect", str(file), "--env", "Ant-v5", "--env-kwargs", kwargs]) == 0
    args = ["train", "Ant-v5", "--env-kwargs", kwargs, "--demos", str(file), "--method", "gaifo", "--out", str(tmp_path / "run")]
    assert main([*args, *SMALL]) == 0
    assert main(["eval", str(tmp_path / "run"), "--episodes", "1"]) == 0


FLAGS = "`iddm train --help` lists all flags."


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_flag_is_one_sentence_of_every_command(command: str, capsys) -> None:
    assert main([command, "--nonsense"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("iddm: ")
    assert f"`iddm {command} --help`" in line


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--stepz", "3"], f"Unrecognized options: --stepz, 3 (perhaps --steps); {FLAGS}"),
        (["--steps", "1e6x"], f"Error parsing --steps: '1e6x' is not a whole number; {FLAGS}"),
        (["--demo-episodes", "1.5"], f"Error parsing --demo-episodes: '1.5' is not a whole number; {FLAGS}"),
        (["--steps", "-1e6"], "Setting steps is -1000000: it must be a whole number from 1 to 1,000,000,000."),
        (["--ppo.learning-rate", "-1"], "Setting learning_rate is -1.0: it must be a number above 0 to 3.4e+38."),
        (["--mi.weight", "1e9"], "Setting mi.weight is 1000000000.0: it must be a number from 0 to 1,000,000."),
    ],
)
def test_flags_that_are_refused_say_why(args: list[str], sentence: str, capsys) -> None:
    assert main(["train", "HalfCheetah", *args]) == 2
    assert capsys.readouterr().err == f"iddm: {sentence}\n"


def test_whole_numbers_may_be_written_with_an_exponent() -> None:
    config, _ = train_flags(["HalfCheetah", "--steps", "1e6", "--demo-episodes", "1_0", "--hidden", "1e2", "64"])
    assert (config.steps, config.demo_episodes, config.learner.hidden) == (1_000_000, 10, (100, 64))


def test_the_help_of_train_names_its_positional_and_lists_import(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out
    assert "[OPTIONS] ENV" in shown
    assert "--import" in shown


def test_the_display_says_that_it_compiles_and_shows_the_return_beside_the_experts_without_a_speed_that_is_unknown() -> None:
    out = io.StringIO()
    console = Console(file=out, width=200)
    with TrainingDisplay("iddm on X", 300, console=console, plain_every=100.0, beside="expert 5.0, random 1.0") as display:
        for i in (1, 2, 3):
            seldom = {"episode_return": float(i), "evaluation_return": float("nan"), "closeness": float("nan")}
            display({"steps": 100 * i, "seconds": 2.0 * i, **seldom})
    first, one, three = out.getvalue().splitlines()
    assert first == "iddm on X: 300 steps; compiling …"
    assert re.sub(" +", " ", one) == "step 100 episode_return 1.0 (expert 5.0, random 1.0) evaluation_return – closeness –"
    assert (
        re.sub(" +", " ", three)
        == "step 300 50/s 0 s left episode_return 3.0 (expert 5.0, random 1.0) evaluation_return – closeness –"
    )


@pytest.mark.parametrize(
    ("flags", "anneal"),
    [([], None), (["--anneal"], True), (["--no-anneal"], False), (["--sac.no-anneal"], False), (["--anneal", "False"], False)],
)
def test_a_switch_that_may_be_left_open_takes_no_value(flags: list[str], anneal: bool | None) -> None:
    config, _ = train_flags(["HalfCheetah", *flags])
    assert config.learner.anneal is anneal
    again, _ = train_flags(command_of(config).split()[2:])
    assert again == config
