"""What a run leaves on disk: damaged files are a sentence, half-written ones go, and a directory holds one run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import iddm
from iddm.cli import main
from iddm.config import Config, default_config
from iddm.errors import UserError
from iddm.training.metrics_file import MetricsFile
from iddm.training.run_dir import Run
from iddm.utils.files import append_text, is_leftover, write_whole
from tests.test_trust_code import ROW, forged_run

PAIRS = 30
ONE_OF_TWO = """
import sys, time
from pathlib import Path
from iddm.config import configure, default_config
from iddm.errors import UserError
from iddm.training.run_dir import Run
from iddm.utils.files import write_whole

folder, me, pairs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
config = configure(default_config("Hopper", "ppo"), {"seed": me})
for i in range(pairs):
    (folder / f"ready_{i}_{me}").touch()
    while not (folder / f"ready_{i}_{1 - me}").exists():
        pass
    try:
        with Run.create(folder / f"run_{i}", config, None) as run:
            time.sleep(0.001 * (i % 3))
            write_whole(run.policy_path, str(me))
    except UserError as error:
        print(i, error)
"""


def test_of_two_runs_started_together_in_one_directory_one_is_refused(tmp_path: Path) -> None:
    start = [sys.executable, "-c", ONE_OF_TWO, str(tmp_path)]
    both = [subprocess.Popen([*start, str(me), str(PAIRS)], stdout=subprocess.PIPE, text=True) for me in (0, 1)]
    refused = [line for process in both for line in process.communicate(timeout=300)[0].splitlines()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(int(line.split()[0]) for line in refused) == list(range(PAIRS))
    assert all("another process is training" in line or "holds another run" in line for line in refused)
    for i in range(PAIRS):
        run = Run.open(tmp_path / f"run_{i}")
        assert run.policy_path.read_text() == str(run.config.seed)


GOOD = "iteration,steps,seconds,episode_return,episodes\n1,64,1,-9,2\n"
BAD_METRICS = {
    "text": (GOOD.replace("64", "many").encode(), "could not convert string to float: 'many'"),
    "bytes": (b"\xff\xfe\x00\n\xff\n", "can't decode byte"),
    "a column left out": (GOOD.replace("seconds", "hours").encode(), "'seconds' is missing"),
    "another table": (b"a,b\n1,2\n", "'iteration' is missing"),
    "a field without end": (b'iteration\n"' + b"1" * 200_000 + b'"\n', "field larger than field limit"),
}


@pytest.mark.parametrize("name", BAD_METRICS)
@pytest.mark.parametrize("command", ["doctor RUN", "report RUN --episodes 1 --out page.html", "train --resume RUN"])
def test_damaged_metrics_are_one_sentence(name: str, command: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    run = forged_run(tmp_path / "run", "Acrobot-v1", {}, finished="--resume" not in command)
    if "report" in command:
        monkeypatch.setattr("iddm.report.run_page.compare", lambda *given: [])
    content, words = BAD_METRICS[name]
    (run / "metrics.csv").write_bytes(content)
    assert main(command.replace("RUN", str(run)).split()) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"iddm: {run / 'metrics.csv'}: not the metrics of a run (")
    assert words in error
    assert (run / "metrics.csv").read_bytes() == content


DEMOS = {"source": "d.npz", "sha256": "0", "num_episodes": 1, "num_transitions": 9, "returns": [3.0]}
DEMOS |= {"columns": [0, 1], "column_mean": [0.0, 0.0], "column_std": [1.0, 1.0]}
BAD_DEMOS: dict[str, tuple[Any, str]] = {
    "no object": ([], "Expected `object`"),
    "a field left out": ({"source": "d.npz"}, "missing required field `sha256`"),
    "returns of text": (DEMOS | {"returns": ["many"]}, "Expected `float`"),
    "no return": (DEMOS | {"returns": []}, "it has no returns"),
    "columns without means": (DEMOS | {"column_mean": []}, "its columns do not fit"),
    "columns before the first": (DEMOS | {"columns": [-1, 0]}, "its columns do not fit"),
    "columns that the policy does not have": (DEMOS | {"columns": [0, 10**6]}, "are not of the same run"),
    "nesting without end": ("[" * 100_000, "demos.json: not the record"),
    "bytes": (b"\xff\xfe", "demos.json: cannot be read"),
}


@pytest.mark.parametrize("name", BAD_DEMOS)
def test_a_damaged_record_of_the_demonstrations_is_one_sentence(name: str, tmp_path: Path, capsys) -> None:
    run = forged_run(tmp_path / "run", "Pendulum-v1", {})
    content, words = BAD_DEMOS[name]
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    (run / "demos.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["doctor", str(run)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"learner": 3}', '{"learner": {"name": []}}', "\x00"])
def test_what_is_no_config_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"config.json: not the config of a run") as caught:
        Config.from_json(text, "config.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", ["{bad", "[]", "[" * 100_000, "1" * 10_000])
def test_options_of_an_environment_that_are_none_are_one_sentence(options: str, tmp_path: Path) -> None:
    run = forged_run(tmp_path / "run", "Pendulum-v1", {}, finished=False)
    data = json.loads((run / "config.json").read_text()) | {"env_kwargs": options}
    (run / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"config.json: --env-kwargs"):
        iddm.resume(run)


HALF = (".config.json.123.tmp", "checkpoints/.iteration_00000008.safetensors.4567.tmp", ".policy.safetensors.1.tmp")


def test_what_a_killed_run_had_half_written_goes_when_it_is_resumed(tmp_path: Path) -> None:
    few: dict[str, Any] = {"steps": 64, "num_envs": 2, "rollout_length": 16}
    path = iddm.train("Pendulum-v1", method="random", out=tmp_path / "run", **few).path
    before = (path / "policy.safetensors").read_bytes()
    (path / "policy.safetensors").unlink()
    (path / "checkpoints").mkdir(exist_ok=True)
    for name in HALF:
        (path / name).write_bytes(b"half")
    (path / "notes.tmp").write_text("the user's own")
    assert iddm.resume(path).policy_path.read_bytes() == before
    assert not list(filter(is_leftover, path.rglob(".*")))
    assert (path / "notes.tmp").exists()


def test_a_run_killed_before_its_config_was_written_can_be_started_again(tmp_path: Path) -> None:
    config, path = default_config("Hopper", "ppo"), tmp_path / "run"
    write_whole(path / "demos.json", json.dumps(DEMOS))
    write_whole(path / ".config.json.77.tmp", '{"env"')
    with Run.create(path, config, None) as run:
        assert run.config == config
    assert not (path / ".config.json.77.tmp").exists()
    write_whole(tmp_path / "other" / "demos.json", '{"of": "somebody else"}')
    with pytest.raises(UserError, match="holds other files"), Run.create(tmp_path / "other", config, None):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_sentence() -> None:
    for write in (lambda path: append_text(path, "1,2\n"), lambda path: MetricsFile(path).append(ROW)):
        with pytest.raises(UserError, match=r"/dev/full: could not be written \(No space left on device\)"):
            write(Path("/dev/full"))


@pytest.mark.parametrize("leaves", ["sys.exit(3)", "raise SystemExit('bye')", "1 / 0"])
def test_code_of_ones_own_that_exits_is_one_sentence(leaves: str, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "leaves_module.py").write_text(f"import sys\n{leaves}\n")
    (tmp_path / "leaves_in_make.py").write_text(f"import sys\ndef make():\n    {leaves}\n")
    (tmp_path / "leaves_in_step.py").write_text(
        "import sys\nfrom gymnasium.envs.classic_control import PendulumEnv\nclass Leaves(PendulumEnv):\n"
        f"    def step(self, action):\n        {leaves}\ndef make(): return Leaves()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for args, words in [
        (["Pendulum-v1", "--import", "leaves_module"], "--import leaves_module: "),
        (["Pendulum-v1", "--import", str(tmp_path / "leaves_module.py")], "leaves_module.py: "),
        (["leaves_module:make"], "Environment 'leaves_module:make': importing leaves_module raised "),
        (["leaves_in_make:make"], "leaves_in_make:make: the environment could not be made ("),
        (["leaves_in_step:make"], "leaves_in_step:make: `step` number 1 of the episode raised "),
    ]:
        for name in [name for name in sys.modules if name.startswith("leaves_")]:
            del sys.modules[name]
        assert main(["eval", "random", "--episodes", "1", "--env", *args]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert "SystemExit" in error or "ZeroDivisionError" in error
        assert error.count("\n") == 1
