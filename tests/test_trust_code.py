"""A file never names code: what a run or a policy says cannot make any command import or call anything."""

import importlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import iddm
from iddm.cli import main
from iddm.config import configure, default_config
from iddm.errors import UserError
from iddm.evaluation import env_of
from iddm.training.loop import Interrupted
from iddm.training.metrics_file import MetricsFile
from tests.test_trust_policies import write

ROW = {"iteration": 1, "steps": 64, "seconds": 1.0, "episode_return": -9.0, "episodes": 2}


def forged_run(folder: Path, env: str, kwargs: dict[str, Any], finished: bool = True) -> Path:
    """A run as an attacker would write it."""
    folder.mkdir()
    config = configure(default_config("Pendulum-v1", "ppo"), {"env": env, "env_kwargs": json.dumps(kwargs)})
    (folder / "config.json").write_text(config.to_json())
    MetricsFile(folder / "metrics.csv").append(ROW)
    if finished:
        write(folder / "policy.safetensors", about={"config": {"env": env, "env_kwargs": kwargs}})
    return folder


@pytest.fixture
def marker(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """A file that an attack writes, by a command, or by a module that waits to be imported."""
    marker = tmp_path / "pwned"
    (tmp_path / "waiting_module.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\ndef make(**options): return None\n"
    )
    iddm.save_demos(iddm.Demos((np.ones((5, 3)),), (np.ones((4, 1)),)), tmp_path / "shown.npz")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield marker
    sys.modules.pop("waiting_module", None)


ATTACKS: dict[str, tuple[str, dict[str, Any]]] = {
    "a command": ("os:system", {"command": "touch pwned"}),
    "a command as a list": ("subprocess:run", {"args": ["touch", "pwned"]}),
    "a function": ("waiting_module:make", {}),
    "a module, as Gymnasium imports it": ("waiting_module:Pendulum-v1", {}),
    "a module in the options of a wrapper": ("MakesAnother-v0", {"env_id": "waiting_module:Pendulum-v1"}),
    "a file in the options": ("MakesAnother-v0", {"xml_file": "../elsewhere.xml"}),
    "a file deep in the options": ("MakesAnother-v0", {"parts": [{"files": ["/etc/passwd"]}]}),
}


def makes_another(**options: Any) -> gym.Env:
    """As Shimmy's environments do: the options name what is made."""
    Path("pwned").touch()
    return gym.make(options["env_id"])


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    gym.register("MakesAnother-v0", entry_point=makes_another)
    yield
    del gym.registry["MakesAnother-v0"]


@pytest.mark.parametrize(
    "command",
    [
        "eval RUN --episodes 1",
        "demos RUN --out d.npz",
        "train --resume RUN",
        "doctor RUN",
        "report RUN --episodes 1",
        "film RUN",
        "disagreement RUN --demos shown.npz",
        "compare RUN --episodes 1",
    ],
)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_run_that_names_code_is_refused_in_one_sentence(attack: str, command: str, marker: Path, capsys) -> None:
    run = forged_run(marker.with_name("run"), *ATTACKS[attack], finished="--resume" not in command)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert main(command.replace("RUN", str(run)).split()) == 2
    error = capsys.readouterr().err
    assert "a file cannot name" in error
    assert "where it is yours, say it again: --env" in error
    assert error.count("\n") == 1
    assert not marker.exists()
    assert "waiting_module" not in sys.modules
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.name != ".lock"} == before


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_policy_file_that_names_code_is_refused_from_python(attack: str, marker: Path) -> None:
    env, kwargs = ATTACKS[attack]
    file = write(marker.with_name("p.safetensors"), about={"config": {"env": env, "env_kwargs": kwargs}})
    policy = iddm.load_policy(file)
    for use in (lambda: iddm.evaluate(policy), lambda: iddm.record_demos(policy, 1)):
        with pytest.raises(UserError, match=r"The policy was learned in .*, and a file cannot name"):
            use()
    assert not marker.exists()


def test_export_reads_a_run_that_names_code_without_running_it(marker: Path) -> None:
    run = forged_run(marker.with_name("run"), *ATTACKS["a function"])
    assert main(["export", str(run), "--to", "npz", "--out", "p.npz"]) == 0
    assert not marker.exists()


def test_the_name_given_again_does_not_bring_the_files_options_with_it(marker: Path, capsys) -> None:
    run = forged_run(marker.with_name("run"), *ATTACKS["a command"])
    assert main(["eval", str(run), "--env", "os:system", "--episodes", "1"]) == 2
    assert """--env os:system --env-kwargs '{"command": "touch pwned"}'""" in capsys.readouterr().err
    assert not marker.exists()


def test_text_of_a_file_in_a_sentence_neither_steers_a_terminal_nor_a_shell(marker: Path, capsys) -> None:
    run = forged_run(marker.with_name("run"), "a:$(touch pwned)\n\x1b[2Jb", {})
    assert main(["eval", str(run)]) == 2
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert error.count("\n") == 1
    assert "--env 'a:$(touch pwned)" in error


def test_an_environment_that_is_not_registered_is_asked_for(marker: Path, capsys) -> None:
    assert main(["eval", str(forged_run(marker.with_name("run"), "Mine-v0", {}))]) == 2
    assert (
        "'Mine-v0' is not registered with Gymnasium. A module that registers one is given with --import"
        in capsys.readouterr().err
    )


def test_options_of_numbers_and_words_come_from_the_file(tmp_path: Path) -> None:
    options = {"g": 9.0, "names": ["4x4", "ant.xml"], "nothing": None, "word": "", "deep": {"on": True}}
    file = write(tmp_path / "p", about={"config": {"env": "Pendulum-v1", "env_kwargs": options}})
    assert env_of(iddm.load_policy(file)).own().kwargs == options


OWN = """
import gymnasium as gym, numpy as np
class Own(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Box(-1, 1, (2,))
    def __init__(self, pay=1.0): self.pay = pay
    def reset(self, *, seed=None, options=None): return np.zeros(3, np.float32), {}
    def step(self, action): return np.zeros(3, np.float32), self.pay, False, False, {}
def make(pay=1.0): return Own(pay)
if "Own-v0" not in gym.registry: gym.register("Own-v0", entry_point=make)
"""
FEW = ["--method", "random", "--steps", "64", "--num-envs", "2", "--rollout-length", "16", "--max-episode-steps", "7"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """An environment of a user's own: a file, which is importable too."""
    (tmp_path / "own_envs.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("own_envs", None)
    gym.registry.pop("Own-v0", None)


@pytest.mark.parametrize(
    ("train", "flags", "earned"),
    [
        (["own_envs:make"], "--env own_envs:make", 7.0),
        (["own_envs:make", "--env-kwargs", '{"pay": 2}'], """--env own_envs:make --env-kwargs '{"pay": 2}'""", 14.0),
        (["Own-v0", "--import", "own_envs.py"], "--import own_envs.py", 7.0),
        (["Own-v0", "--import=own_envs", "--env-kwargs", '{"pay": 2}'], "--import own_envs", 14.0),
    ],
)
def test_the_next_step_works_as_it_is_printed(train: list[str], flags: str, earned: float, own: Path, capsys) -> None:
    assert main(["train", *train, "--out", "my run", *FEW]) == 0
    printed = capsys.readouterr().out.splitlines()[-1]
    assert printed == f"Evaluate it with: iddm eval 'my run' {flags}"
    assert json.loads((own / "my run" / "config.json").read_text())["env"] == train[0]
    gym.registry.pop("Own-v0", None)  # as in a new process
    sys.modules.pop("own_envs", None)
    again = shlex.split(flags)
    assert main([*shlex.split(printed.partition("iddm ")[2]), "--json", "--episodes", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["returns"] == [earned, earned]  # its options, and its time limit
    assert main(["demos", "my run", "--out", "d.npz", "--episodes", "1", *again]) == 0
    assert iddm.load_demos("d.npz").lengths.tolist() == [7]
    assert main(["report", "my run", "--episodes", "1", *again]) == 0
    assert main(["doctor", "my run", *again]) in (0, 1)
    assert main(["train", "--resume", "my run", *again]) == 0


def test_a_stopped_run_goes_on_where_its_function_is_given_again(own: Path, capsys) -> None:
    make = importlib.import_module("own_envs").make

    def stop(row: dict[str, float]) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    few: dict[str, Any] = {"steps": 64, "num_envs": 2, "rollout_length": 16, "max_episode_steps": 7}
    for name in ("by_name", "in_python"):
        with pytest.raises(Interrupted):
            iddm.train(make, method="random", out=name, on_row=stop, env_kwargs='{"pay": 2}', **few)
        assert main(["train", "--resume", name]) == 2
        assert f"{name} was learned in own_envs:make, and a file cannot name module:function" in capsys.readouterr().err
        assert main(["train", "--resume", name, "--env", "own_envs:Own"]) == 2
        assert f"{name} was learned in own_envs:make, not in own_envs:Own" in capsys.readouterr().err
        assert main(["train", "--resume", name, "--env", "own_envs:make", "--env-kwargs", '{"pay": 3}']) == 2
        assert """with the options {"pay": 2}, not {"pay": 3}""" in capsys.readouterr().err
    assert main(["train", "--resume", "by_name", "--env", "own_envs:make", "--env-kwargs", '{"pay": 2}']) == 0
    with pytest.raises(UserError, match="say it again"):
        iddm.resume("in_python", make=make)
    run = iddm.resume("in_python", make=make, env_kwargs={"pay": 2})
    assert iddm.evaluate(run.policy, make, 2, env_kwargs={"pay": 2}).returns.tolist() == [14, 14]
    assert iddm.Run.open("by_name").metrics()[-1]["episode_return"] == 14
