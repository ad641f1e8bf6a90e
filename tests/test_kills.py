"""Runs killed (kill -9) at random moments, again and again: they end with the bytes of a run that nobody touched.

`python -m tests.test_kills LEARNER COUNT SEED` kills as often as you like.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from iddm.demos import Demos, save_demos
from iddm.learners import LEARNERS
from iddm.methods import TUNED
from iddm.training.run_dir import Run
from iddm.utils.files import is_leftover

KILLS = 100
"""Over all learners."""
SMALL: dict[str, Any] = {
    "num_envs": 2,
    "rollout_length": 16,
    "rounds": 60,
    "hidden": 8,
    "batch_size": 64,
    "epochs": 2,
    "restart_every": 3,
    "random_steps": 64,
}
"""Settings that make iterations short, for the learners that have them."""
EPOCHS = {"cloning": 600}
"""A learner whose iterations are epochs needs many."""


class Kills(NamedTuple):
    """How often a run was killed, and how often that left half a checkpoint."""

    killed: int
    half_written: int
    finished: int
    """Runs that ended on their own between kills, each with the right bytes."""


ELSEWHERE = {"sac": ["InvertedPendulum", "--method", "gaifo", "--learner", "sac", "--inverse.hidden", "8"]}
"""A learner of continuous actions needs another task, and its bundled demonstrations."""


def method_of(learner: str) -> str:
    return next(name for name, method in TUNED.items() if method.learner.name == learner)


def flags_of(learner: str, demos: Path) -> list[str]:
    """A run of some sixty iterations with a checkpoint after each."""
    settings = {f.name: SMALL[f.name] for f in fields(LEARNERS[learner]) if f.name in SMALL}  # pyright: ignore[reportArgumentType]
    settings |= {"epochs": EPOCHS[learner]} if learner in EPOCHS else {}
    own = [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    task = ELSEWHERE.get(learner) or ["CartPole", "--method", method_of(learner), "--demos", str(demos)]
    return [*task, "--steps", "1920", "--checkpoint-every", "1", *own]


def kill_again_and_again(learner: str, demos: Path, folder: Path, count: int, seed: int) -> Kills:
    """Start or resume a run and kill it, `count` times; every run that ends must have the bytes of an untouched one."""
    command, flags = [sys.executable, "-m", "iddm", "train"], flags_of(learner, demos)
    subprocess.run([*command, *flags, "--out", str(folder / "whole")], check=True, capture_output=True)
    whole = (folder / "whole" / "policy.safetensors").read_bytes()
    took = Run.open(folder / "whole").metrics()[-1]["seconds"]
    rng, half_written, finished = np.random.default_rng(seed), 0, 0
    paths = (folder / f"killed_{i}" for i in range(count + 1))
    out = next(paths)

    def go_on() -> list[str]:
        return [*command, *(["--resume", str(out)] if (out / "config.json").exists() else [*flags, "--out", str(out)])]

    def check(path: Path) -> None:
        assert (path / "policy.safetensors").read_bytes() == whole, f"{path}: another policy than without a kill"
        assert [row["iteration"] for row in Run.open(path).metrics()] == list(range(1, len(Run.open(path).metrics()) + 1))
        assert not leftovers(path), "half-written files stayed"

    for _ in range(count):
        process = subprocess.Popen(go_on(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = changed(out)
        while process.poll() is None and changed(out) == began:  # importing and compiling: nothing to harm yet
            time.sleep(0.001)
        time.sleep(rng.uniform(0, took / 4))
        if rng.random() < 0.5:  # a random moment is seldom in the middle of a write, so every other time wait for one
            while process.poll() is None and not half_a_checkpoint(out):
                pass
        process.kill()
        process.wait()
        half_written += half_a_checkpoint(out)
        if (out / "policy.safetensors").exists():
            check(out)
            finished, out = finished + 1, next(paths)
    subprocess.run(go_on(), check=True, capture_output=True)
    check(out)
    return Kills(count, half_written, finished)


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if is_leftover(path)]


def half_a_checkpoint(out: Path) -> bool:
    return bool(leftovers(out / "checkpoints"))


def changed(out: Path) -> tuple[bool, int]:
    """Changes as soon as the run writes anything."""
    metrics = out / "metrics.csv"
    return (out / "config.json").exists(), metrics.stat().st_mtime_ns if metrics.exists() else 0


@pytest.fixture
def demos(cartpole_demos: Demos, tmp_path: Path) -> Path:
    save_demos(cartpole_demos, tmp_path / "demos.npz")
    return tmp_path / "demos.npz"


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(learner: str, demos: Path, tmp_path: Path) -> None:
    kills = kill_again_and_again(learner, demos, tmp_path, -(-KILLS // len(LEARNERS)), seed=0)
    print(f"{learner}: {kills}")


def main(learner: str, count: int = 10, seed: int = 0) -> None:
    """Kill runs of one learner on CartPole, with the bundled expert's episodes and actions."""
    from iddm.bundled import bundled_demos, with_expert_actions

    with tempfile.TemporaryDirectory() as name:
        save_demos(with_expert_actions(bundled_demos("CartPole"), "CartPole"), Path(name) / "demos.npz")
        print(f"{learner}: {kill_again_and_again(learner, Path(name) / 'demos.npz', Path(name), count, seed)}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
