"""Settings out of range: one sentence and exit code 2, from the command line, from Python and from a saved config alike."""

import json
from pathlib import Path

import pytest

import iddm
from iddm.cli import main
from iddm.cli.train import train_flags
from iddm.config import Config, command_of, configure, default_config, setting, usual_learner
from iddm.errors import UserError

BAD = [
    (["--adversarial.batch-size", "0"], {"adversarial": {"batch_size": 0}}, "adversarial.batch_size is 0"),
    (["--adversarial.hidden", "0"], {"adversarial": {"hidden": (0,)}}, r"adversarial.hidden is \(0,\): each must be"),
    (["--adversarial.updates", "-1"], {"adversarial": {"updates": -1}}, "adversarial.updates is -1"),
    (["--seed", "-1"], {"seed": -1}, "seed is -1: it must be a whole number from 0"),
    (["--seed", "99999999999999999999"], {"seed": 99999999999999999999}, "seed is 99999999999999999999"),
    (["--hidden", "-5", "8"], {"hidden": (-5, 8)}, r"hidden is \(-5, 8\)"),
    (["--rollout-length", "1000000000000"], {"rollout_length": 10**12}, "rollout_length is 1000000000000"),
    (["--rollout-length", "1000000", "--num-envs", "64"], {"rollout_length": 10**6, "num_envs": 64}, "does not fit into memory"),
    (["--learning-rate", "-1"], {"learning_rate": -1.0}, "learning_rate is -1.0: it must be a number above 0"),
    (["--ppo.learning-rate", "0"], {"ppo": {"learning_rate": 0.0}}, "learning_rate is 0.0"),
    (["--mi.weight", "1e9"], {"mi": {"weight": 1e9}}, "mi.weight is 1000000000.0"),
    (["--checkpoint-every", "0"], {"checkpoint_every": 0}, "checkpoint_every is 0"),
]


@pytest.mark.parametrize(("flags", "settings", "words"), BAD)
def test_a_bad_setting_is_one_sentence_from_everywhere_and_nothing_is_written(
    flags: list[str], settings: dict, words: str, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "run"
    assert main(["train", "Hopper", "--out", str(out), *flags]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises(UserError, match=words) as raised:
        iddm.train("Hopper", out=out, **settings)
    assert error == f"iddm: {raised.value}\n"
    assert not out.exists()
    (tmp_path / "config.json").write_text(saved_with(settings))
    with pytest.raises(UserError, match=words):
        _ = iddm.Run.open(tmp_path).config


def saved_with(settings: dict) -> str:
    """The config of a good run, changed in the file."""
    data = json.loads(default_config("Hopper").to_json())
    for name, value in settings.items():
        if name in data["terms"]:
            data["terms"][name] |= value
        elif name in data:
            data[name] = value
        else:
            data["learner"] |= value if name == "ppo" else {name: value}
    return json.dumps(data)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="learning_rate is nan"):
        configure(default_config("Hopper"), {"learning_rate": float("nan")})


@pytest.mark.parametrize("method", ["iddm", "bc", "bco", "deepmimic", "random"])
def test_a_config_comes_back_from_its_text(method: str) -> None:
    config = default_config("Hopper", method)
    assert Config.from_json(config.to_json(), "text") == config


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("steps"), "'steps' is missing"),
        (lambda d: d.update(extra=1), "'extra' is unknown"),
        (lambda d: d.update(steps="many"), "Expected `int`"),
        (lambda d: d.update(terms=[]), "not the config of a run"),
        (lambda d: d["learner"].update(name="sorcery"), "the learner 'sorcery' is none of iddm's"),
        (lambda d: d["learner"].pop("clip"), "'clip' is missing"),
        (lambda d: d["terms"]["mi"].update(hidden="wide"), "Expected `array`"),
    ],
)
def test_a_saved_config_with_a_wrong_field_is_one_sentence(change, words: str, tmp_path: Path) -> None:
    data = json.loads(default_config("Hopper").to_json())
    change(data)
    with pytest.raises(UserError, match=words):
        Config.from_json(json.dumps(data), "config.json")


def test_a_setting_is_found_by_the_name_of_its_flag() -> None:
    config = configure(default_config("Hopper"), {"entropy": {"weight": 0.5}, "hidden": (8,), "ppo": {"epochs": 3}})
    assert setting(config, "entropy.weight") == 0.5
    assert setting(config, "hidden") == (8,)
    assert setting(config, "epochs") == setting(config, "ppo.epochs") == 3
    assert setting(default_config("Hopper", "bco"), "inverse.epochs") == 50


def test_a_learner_is_chosen_by_its_name_else_by_the_actions_and_the_method() -> None:
    def learner(*args: str) -> str:
        return train_flags([*args])[0].learner.name

    assert [learner(env) for env in ("Hopper", "HalfCheetah-v5", "CartPole", "Acrobot-v1")] == ["sac", "sac", "ppo", "ppo"]
    assert learner("Hopper", "--learner", "ppo") == learner("Hopper", "--ppo.epochs", "2") == "ppo"
    assert learner("Hopper", "--preset", "paper") == learner("Hopper", "--method", "deepmimic") == "ppo"
    assert learner("Hopper", "--method", "bco") == "bco"
    assert learner("--out", "CartPole", "Hopper") == learner("--out", "ppo", "Hopper") == "sac"
    assert usual_learner("Hopper", "ppo") == "ppo"  # an expert
    assert usual_learner("no-such-env") == "ppo"  # what is wrong with it is said later
    assert "--learner ppo" in command_of(default_config("Hopper", "gaifo"))


def test_batches_that_do_not_fit_into_memory_are_one_sentence() -> None:
    with pytest.raises(UserError, match=r"6,400 batches of 1,000,000 rows .* do not fit into memory"):
        configure(default_config("Hopper", "gaifo", learner="sac"), {"updates_per_step": 100.0, "batch_size": 1_000_000})
