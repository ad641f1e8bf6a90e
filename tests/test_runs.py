"""Runs on disk: resuming to the bit, whatever stopped the run, and refusing what would do harm."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import iddm
from iddm.errors import UserError, UserNotice
from iddm.policy import load_policy
from iddm.training.checkpoints import Checkpoint, Checkpoints
from iddm.training.finite import Diverged
from iddm.training.loop import Interrupted
from iddm.training.metrics_file import MetricsFile
from iddm.training.run_dir import Run
from iddm.training.train import resume, train

from .conftest import TINY, TINY_GAIFO, TINY_IDDM


def policy_bytes(path: Path) -> bytes:
    return (path / "policy.safetensors").read_bytes()


@pytest.fixture(scope="module")
def uninterrupted(hopper_demos, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "whole"
    train("Hopper-v5", hopper_demos, "iddm", out, **TINY_IDDM)
    return out


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resumed_run_equals_uninterrupted_run(uninterrupted: Path, hopper_demos, tmp_path: Path, stop_after: int) -> None:
    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="--resume"):
        train("Hopper-v5", hopper_demos, "iddm", tmp_path / "run", on_row=interrupt, **TINY_IDDM)
    assert Run.open(tmp_path / "run").checkpoints.load().iteration == stop_after
    run = resume(tmp_path / "run", demos=hopper_demos)
    assert policy_bytes(run.path) == policy_bytes(uninterrupted)
    assert [row["iteration"] for row in run.metrics()] == [1, 2, 3, 4]


def test_crash_between_checkpoints_goes_back_to_the_last_one(uninterrupted: Path, hopper_demos, tmp_path: Path) -> None:
    def crash(row: dict[str, float]) -> None:
        if row["iteration"] == 3:
            raise MemoryError

    with pytest.raises(MemoryError):
        train("Hopper-v5", hopper_demos, "iddm", tmp_path / "run", on_row=crash, **TINY_IDDM)
    with open(tmp_path / "run" / "metrics.csv", "a") as file:
        file.write("4,10")  # a half-written row
    run = resume(tmp_path / "run", demos=hopper_demos)
    assert policy_bytes(run.path) == policy_bytes(uninterrupted)
    assert len(run.metrics()) == 4


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(uninterrupted: Path, hopper_demos, tmp_path: Path) -> None:
    train("Hopper-v5", hopper_demos, "iddm", tmp_path / "again", **TINY_IDDM)
    train("Hopper-v5", hopper_demos, "iddm", tmp_path / "other", seed=1, **TINY_IDDM)
    assert policy_bytes(tmp_path / "again") == policy_bytes(uninterrupted)
    assert policy_bytes(tmp_path / "other") != policy_bytes(uninterrupted)


@pytest.mark.parametrize("method", ["iddm", "gaifo", "gaifo-s"])
def test_state_only_method_learns_the_same_bytes_with_and_without_actions(method: str, hopper_demos, tmp_path: Path) -> None:
    assert hopper_demos.actions is not None
    tiny = (TINY_IDDM if method == "iddm" else TINY_GAIFO) | {"steps": 256}
    train("Hopper-v5", hopper_demos, method, tmp_path / "with", **tiny)
    train("Hopper-v5", hopper_demos.states_only(), method, tmp_path / "without", **tiny)
    assert policy_bytes(tmp_path / "with") == policy_bytes(tmp_path / "without")


def small_network(term: str) -> list[str]:
    return [f"--{term}.hidden", "16", "16", f"--{term}.batch-size", "64"]


def test_killed_run_continues_to_the_same_bytes(uninterrupted: Path, hopper_file: Path, tmp_path: Path) -> None:
    settings = ["--steps", "1024", "--num-envs", "4", "--rollout-length", "64", "--hidden", "16", "16", "--checkpoint-every", "2"]
    settings += [
        "--learner",
        "ppo",
        "--evaluations",
        "0",
        *(flag for term in ("adversarial", "mi") for flag in small_network(term)),
    ]
    out = tmp_path / "run"
    command = [sys.executable, "-m", "iddm", "train"]
    start = [*command, "Hopper-v5", "--demos", str(hopper_file), "--out", str(out), *settings]
    process = subprocess.Popen(start, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run([*command, "--resume", str(out)], check=True, capture_output=True)
    assert policy_bytes(out) == policy_bytes(uninterrupted)


def test_finished_run_is_not_trained_again(uninterrupted: Path) -> None:
    before = policy_bytes(uninterrupted)
    assert resume(uninterrupted).finished
    assert policy_bytes(uninterrupted) == before


def test_only_the_last_two_checkpoints_stay_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for i in range(4):
        checkpoints.save(Checkpoint(i, {"x": np.full(3, float(i))}))
    names = sorted(p.name for p in (tmp_path / "checkpoints").iterdir())
    assert names == ["iteration_00000002.safetensors", "iteration_00000003.safetensors"]
    (tmp_path / "checkpoints" / names[1]).write_bytes(b"half")
    with pytest.warns(UserNotice, match="damaged; going on from"):
        assert checkpoints.load().iteration == 2
    (tmp_path / "checkpoints" / names[0]).write_bytes(b"")
    with pytest.raises(UserError, match="no checkpoint can be read"):
        checkpoints.load()


def test_changed_demonstrations_are_refused_on_resume(hopper_demos, tmp_path: Path) -> None:
    def interrupt(row: dict[str, float]) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train("Hopper-v5", hopper_demos, "gaifo", tmp_path / "run", on_row=interrupt, **TINY_GAIFO)
    with pytest.raises(UserError, match="not those that the run began with"):
        resume(tmp_path / "run", demos=hopper_demos.take_episodes(2))


def test_divergence_names_the_term_and_keeps_the_last_good_checkpoint(hopper_demos, tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"mi became non-finite at step .*; there is no checkpoint yet"):
        train("Hopper-v5", hopper_demos, "iddm", tmp_path / "run", mi={"learning_rate": 3e38}, learner="ppo", **TINY)
    assert not (tmp_path / "run" / "policy.safetensors").exists()


def test_directory_of_another_run_is_left_alone(uninterrupted: Path, hopper_demos) -> None:
    before = {p.name: p.read_bytes() for p in uninterrupted.iterdir() if p.is_file()}
    with pytest.raises(UserError, match="holds another run"):
        train("Hopper-v5", hopper_demos, "iddm", uninterrupted, **TINY_IDDM)
    assert {p.name: p.read_bytes() for p in uninterrupted.iterdir() if p.is_file()} == before


def test_two_processes_cannot_train_in_one_directory(uninterrupted: Path) -> None:
    with Run.open(uninterrupted).locked(), pytest.raises(UserError, match="another process"), Run.open(uninterrupted).locked():
        pass


def test_config_comes_back_from_disk_as_it_went(uninterrupted: Path) -> None:
    config = Run.open(uninterrupted).config
    assert config.from_json(config.to_json(), "text") == config
    assert json.loads((uninterrupted / "config.json").read_text())["terms"]["mi"]["weight"] == config.terms["mi"].weight


def test_saved_policy_acts_like_the_learner(uninterrupted: Path, hopper_demos) -> None:
    import jax

    from iddm.training.loop import from_arrays
    from iddm.training.setup import Setup

    run = Run.open(uninterrupted)
    setup = Setup.prepare(run.config, hopper_demos)
    state = run.config.learner.init(setup.problem, setup.expert, jax.random.PRNGKey(0))
    state = from_arrays(state, run.checkpoints.load().arrays)
    obs = np.concatenate([e[:50] for e in hopper_demos.observations])
    theirs = np.clip(jax.device_get(state.policy.net(state.normaliser.own(jax.numpy.asarray(obs)))), -1, 1)
    np.testing.assert_allclose(setup.saved_policy((state.policy, state.normaliser)).predict(obs), theirs, atol=1e-5)


def test_loading_and_using_a_policy_does_not_import_jax(uninterrupted: Path) -> None:
    code = f"""
import sys, numpy as np, iddm
policy = iddm.load_policy({str(uninterrupted)!r})
assert policy.predict(np.zeros(11)).shape == (3,)
assert policy.predict(np.zeros((5, 11)), np.random.default_rng(0)).shape == (5, 3)
assert "jax" not in sys.modules and "gymnasium" not in sys.modules, "heavy imports"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_policy_refuses_observations_of_another_size(uninterrupted: Path) -> None:
    with pytest.raises(UserError, match="takes observations of 11 numbers"):
        iddm.load_policy(uninterrupted).predict(np.zeros(12))


def test_file_that_is_not_a_policy_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"\x80\x04not a policy")
    with pytest.raises(UserError, match="not a policy file"):
        load_policy(tmp_path / "x.safetensors")
    with pytest.raises(UserError, match="there is no policy here"):
        load_policy(tmp_path / "nowhere")


@pytest.mark.slow
def test_run_killed_at_three_random_moments_ends_with_the_same_bytes(hopper_file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iddm", "train"]
    settings = ["Hopper-v5", "--demos", str(hopper_file), "--steps", "100000", "--checkpoint-every", "8"]
    subprocess.run([*command, *settings, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    took = Run.open(tmp_path / "whole").metrics()[-1]["seconds"]
    rng, out = np.random.default_rng(), tmp_path / "killed"
    args = [*settings, "--out", str(out)]
    for _ in range(3):
        process = subprocess.Popen([*command, *args], stderr=subprocess.DEVNULL)
        time.sleep(3 + rng.uniform(0, took / 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        args = ["--resume", str(out)] if (out / "config.json").exists() else args
    assert not Run.open(out).finished, "killed too late to show anything"
    subprocess.run([*command, "--resume", str(out)], check=True, capture_output=True)
    assert policy_bytes(out) == policy_bytes(tmp_path / "whole")


def test_a_run_that_an_older_version_began_keeps_its_rows_when_there_are_new_metrics(tmp_path) -> None:
    file = MetricsFile(tmp_path / "metrics.csv")
    old = {"iteration": 1, "steps": 10, "seconds": 1.0, "episode_return": 3.0, "episodes": 2}
    file.append(old)
    file.append(old | {"iteration": 2, "steps": 20, "mi/reward_std": 0.5})
    rows = file.rows()
    assert [row["steps"] for row in rows] == [10, 20]
    assert np.isnan(rows[0]["mi/reward_std"])
